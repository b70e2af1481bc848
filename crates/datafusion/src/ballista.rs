//! Plans for the scheduler and the executors of Ballista.

use std::sync::Arc;

use ballista_core::extension::{SessionConfigExt, SessionStateExt};
use ballista_core::serde::{BallistaLogicalExtensionCodec, BallistaPhysicalExtensionCodec};
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_proto::logical_plan::LogicalExtensionCodec;
use datafusion_proto::physical_plan::{ComposedPhysicalExtensionCodec, PhysicalExtensionCodec};

use crate::{Blosc2Codec, Blosc2LogicalCodec};

/// Returns the codec of logical plans for a scheduler (`override_logical_codec` of its configuration) and for clients.
pub fn logical_codec() -> Arc<dyn LogicalExtensionCodec> {
    Arc::new(Blosc2LogicalCodec::new(Arc::new(BallistaLogicalExtensionCodec::default())))
}

/// Returns the codec of physical plans for schedulers and executors (`override_physical_codec` of their configurations)
/// and for clients.
pub fn physical_codec() -> Arc<dyn PhysicalExtensionCodec> {
    // The bytes contain the position in this list.
    Arc::new(ComposedPhysicalExtensionCodec::new(vec![
        Arc::new(BallistaPhysicalExtensionCodec::default()),
        Arc::new(Blosc2Codec),
    ]))
}

/// Creates the session of a client, whose queries run on the cluster of the scheduler with this URL, such as
/// `http://host:50050`. The formats of this crate are [registered](crate::register).
///
/// [`configure`] changes `config`. The object stores of `runtime` read the schemas of tables. No connection is made before
/// the first query.
///
/// ```
/// use std::sync::Arc;
///
/// use datafusion::execution::runtime_env::RuntimeEnv;
/// use datafusion::prelude::SessionConfig;
///
/// // The number of parts of a scan: the threads of all executors.
/// let config = SessionConfig::new().with_target_partitions(64);
/// let runtime = Arc::new(RuntimeEnv::default());
/// let context = blosc2_datafusion::ballista::connect("http://host:50050", config, runtime)?;
/// // Now: CREATE EXTERNAL TABLE trips STORED AS CTABLE LOCATION '/shared/trips/'
/// # Ok::<(), datafusion::error::DataFusionError>(())
/// ```
///
/// # Errors
/// Fails if DataFusion refuses the formats, which does not happen at present.
pub fn connect(
    scheduler: &str,
    config: SessionConfig,
    runtime: Arc<RuntimeEnv>,
) -> Result<SessionContext> {
    let state = SessionStateBuilder::new()
        .with_default_features()
        .with_config(configure(config))
        .with_runtime_env(runtime)
        .build();
    let state = state.upgrade_for_ballista(scheduler.to_owned())?;
    let context = SessionContext::new_with_state(state);
    for rule in EMPTY {
        context.remove_optimizer_rule(rule);
    }
    crate::register(&context)?;
    Ok(context)
}

/// The rules of the optimizer that replace a query without rows by an empty relation. Its schema is lost on the way to the
/// scheduler, which optimizes the plan again. A limit of zero rows remains: it fails if executors evaluate it.
const EMPTY: [&str; 3] = ["eliminate_filter", "eliminate_join", "propagate_empty_relation"];

/// Configures the session of a client, so that its queries over Blosc2 run on a cluster: installs the codecs, and disables
/// work stealing between the partitions of a scan and adaptive planning, which would change results. [`connect`] does this.
///
/// In such a session, dictionary columns of tables are columns of their values (`Utf8`): Ballista sends the values
/// between machines.
///
/// The cluster is `blosc2-cluster`, or another scheduler with executors that use [`logical_codec`] and
/// [`physical_codec`].
pub fn configure(config: SessionConfig) -> SessionConfig {
    config
        .upgrade_for_ballista()
        .with_ballista_logical_extension_codec(logical_codec())
        .with_ballista_physical_extension_codec(physical_codec())
        // The partitions of a scan are executed with separate copies of the plan, which share no list of files.
        .set_bool("datafusion.execution.enable_file_stream_work_stealing", false)
        // With it, Ballista 55 returns rows several times for an ordered `UNION ALL`, also of other formats.
        .set_bool("ballista.planner.adaptive.enabled", false)
        // The cache compares size and time only, and files of two buckets can have one key.
        .set_bool("ballista.scheduler.share_file_statistics_cache", false)
}
