//! The session of DataFusion.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread::available_parallelism;

use anyhow::{Context, Result};
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};

use crate::interrupt::Runtime;
use crate::message::failed;
use crate::sources::Source;
use crate::stores::Stores;

/// A session, and the threads on which its queries run.
pub(crate) struct Session {
    pub(crate) context: SessionContext,
    pub(crate) runtime: Runtime,
}

impl Session {
    /// Starts a session. `None` is one thread for each processor, and no limit of memory.
    pub(crate) fn new(threads: Option<NonZeroUsize>, memory: Option<usize>) -> Result<Self> {
        let threads = threads.or_else(|| available_parallelism().ok()).map_or(1, NonZeroUsize::get);
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(threads).enable_all().build();
        // Not an error of stdout.
        let runtime = runtime.map_err(|error| anyhow::anyhow!("cannot start threads: {error}"))?;
        let config = SessionConfig::new()
            .with_information_schema(true)
            .with_target_partitions(threads)
            // Types that are known outside of Arrow.
            .set_bool("datafusion.optimizer.expand_views_at_output", true);
        let mut environment =
            RuntimeEnvBuilder::new().with_object_store_registry(Arc::new(Stores::default()));
        if let Some(bytes) = memory {
            environment = environment.with_memory_pool(Arc::new(FairSpillPool::new(bytes)));
        }
        let environment = environment.build_arc().map_err(failed)?;
        let context = SessionContext::new_with_config_rt(config, environment);
        blosc2_datafusion::register(&context).map_err(failed)?;
        let context = context.enable_url_table();
        Ok(Self { context, runtime: Runtime::new(runtime) })
    }

    /// Adds the tables.
    pub(crate) fn add(&self, sources: &[Source], dims: Option<&[String]>) -> Result<()> {
        for source in sources {
            let add = source.add(&self.context, dims);
            let added = self.runtime.wait(add);
            added.with_context(|| format!("cannot open ({})", source.location()))?;
        }
        Ok(())
    }
}
