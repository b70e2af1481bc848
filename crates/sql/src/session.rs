//! The session of DataFusion.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread::available_parallelism;

use anyhow::{Context, Result};
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::prelude::{SessionConfig, SessionContext};

use crate::interrupt::Runtime;
use crate::message::failed;
use crate::sources::Source;

/// A session, and the threads on which its queries run.
pub(crate) struct Session {
    pub(crate) context: SessionContext,
    pub(crate) runtime: Runtime,
    is_of_cluster: bool,
}

impl Session {
    /// Starts a session. `None` is one thread for each processor, no limit of memory, and no cluster.
    pub(crate) fn new(
        threads: Option<NonZeroUsize>,
        memory: Option<usize>,
        cluster: Option<&str>,
    ) -> Result<Self> {
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
        let mut environment = RuntimeEnvBuilder::new();
        #[cfg(feature = "remote")]
        {
            let stores = Arc::new(blosc2_datafusion::ObjectStores::from_env());
            environment = environment.with_object_store_registry(stores);
        }
        if let Some(bytes) = memory {
            environment = environment.with_memory_pool(Arc::new(FairSpillPool::new(bytes)));
        }
        let environment = environment.build_arc().map_err(failed)?;
        let context = match cluster {
            None => {
                let context = SessionContext::new_with_config_rt(config, environment);
                blosc2_datafusion::register(&context).map_err(failed)?;
                context.enable_url_table()
            }
            Some(scheduler) => connect(scheduler, config, environment)?,
        };
        Ok(Self { context, runtime: Runtime::new(runtime), is_of_cluster: cluster.is_some() })
    }

    /// Adds the tables, and returns their names and locations.
    pub(crate) fn add(
        &self,
        sources: &[Source],
        dims: Option<&[String]>,
    ) -> Result<Vec<(String, String)>> {
        let mut tables = Vec::new();
        for source in sources {
            let add = source.add(&self.context, self.is_of_cluster, dims);
            let added = self.runtime.wait(add);
            let names = added.with_context(|| format!("cannot open ({})", source.location()))?;
            tables.extend(names.into_iter().map(|name| (name, source.location())));
        }
        Ok(tables)
    }
}

#[cfg(feature = "cluster")]
fn connect(
    scheduler: &str,
    config: SessionConfig,
    environment: Arc<RuntimeEnv>,
) -> Result<SessionContext> {
    use std::net::{TcpStream, ToSocketAddrs};
    use std::time::Duration;

    // The error of Ballista is not for people.
    const LIMIT: Duration = Duration::from_secs(10);
    let reach = || -> std::io::Result<()> {
        let mut result = Err(std::io::ErrorKind::NotFound.into());
        for address in scheduler.to_socket_addrs()? {
            result = TcpStream::connect_timeout(&address, LIMIT).map(drop);
            if result.is_ok() {
                break;
            }
        }
        result
    };
    reach().map_err(|error| {
        let hint = "`blosc2-cluster scheduler` starts one";
        anyhow::anyhow!("cannot connect to the scheduler {scheduler}: {error}; {hint}")
    })?;
    let url = format!("http://{scheduler}");
    blosc2_datafusion::ballista::connect(&url, config, environment).map_err(failed)
}

#[cfg(not(feature = "cluster"))]
fn connect(_: &str, _: SessionConfig, _: Arc<RuntimeEnv>) -> Result<SessionContext> {
    unreachable!("this build has no option for a cluster")
}
