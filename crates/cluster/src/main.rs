//! The command `blosc2-cluster`: a scheduler and executors of Ballista that read Blosc2.

mod executors;
mod graph;

use std::net::{IpAddr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;

use ballista_core::config::{LogRotationPolicy, TaskSchedulingPolicy};
use ballista_core::error::{BallistaError, Result};
use ballista_core::extension::SessionConfigExt;
use ballista_core::utils::default_session_builder;
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use ballista_executor::health::spawn_health_server;
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::SchedulerConfig;
use ballista_scheduler::scheduler_process::{create_scheduler, start_grpc_service};
use ballista_scheduler::scheduler_server::SchedulerServer;
use blosc2_datafusion::ObjectStores;
use blosc2_datafusion::ballista::{configure, logical_codec, physical_codec};
use clap::Parser;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::SessionConfig;
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};
use tokio::sync::{mpsc, oneshot};
use tracing_appender::rolling::{RollingFileAppender, Rotation};
use tracing_subscriber::EnvFilter;

use crate::executors::Executors;

/// Runs SQL over tables and arrays of Blosc2 on several machines, with Ballista.
#[derive(Debug, Parser)]
#[command(name = "blosc2-cluster", version)]
enum Role {
    /// Plans the queries of clients and assigns the parts to executors. One for each cluster.
    Scheduler(ballista_scheduler::config::Config),
    /// Reads parts of the files and computes. One for each machine.
    Executor(ballista_executor::config::Config),
}

/// Nested plans are decoded by recursion.
const STACK_BYTES: usize = 32 << 20;

fn main() -> ExitCode {
    match run(Role::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("blosc2-cluster: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(role: Role) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_stack_size(STACK_BYTES)
        .build()?;
    match role {
        Role::Scheduler(options) => runtime.block_on(scheduler(options)),
        Role::Executor(options) => runtime.block_on(executor(options)),
    }
}

async fn scheduler(options: ballista_scheduler::config::Config) -> Result<()> {
    let name = format!("scheduler_{}_{}", options.external_host, options.bind_port);
    let rotation = options.log_rotation_policy;
    log(
        &options.log_level_setting,
        options.log_dir.as_deref(),
        rotation,
        &name,
        options.print_thread_info,
    )?;
    let address = address(&options.bind_host, options.bind_port)?;
    if !address.ip().is_loopback() && options.external_host == "localhost" {
        eprintln!("executors on other machines need the name of this one: --external-host HOST");
    }
    let stores = Arc::new(ObjectStores::from_env());
    if !matches!(options.scheduler_policy, TaskSchedulingPolicy::PushStaged) {
        let expected = "start the scheduler: expected `--scheduler-policy push-staged`";
        return Err(BallistaError::Configuration(expected.to_owned()));
    }
    let mut config = SchedulerConfig::try_from(options)?
        .with_override_config_producer(Arc::new(new_config))
        .with_override_session_builder(Arc::new(move |config| {
            // A client cannot enable what changes results.
            let config = configure(config);
            let runtime = runtime(&stores).build_arc()?;
            let state = default_session_builder(config)?;
            Ok(SessionStateBuilder::new_from_existing(state).with_runtime_env(runtime).build())
        }));
    config.override_logical_codec = Some(logical_codec());
    config.override_physical_codec = Some(physical_codec());
    let jobs = BallistaCluster::new_from_config(&config).await?.job_state();
    let (failed, mut failures) = mpsc::unbounded_channel();
    let cluster = BallistaCluster::new(Arc::new(Executors::new(failed)), jobs);
    config.validate()?;
    let scheduler: SchedulerServer<LogicalPlanNode, PhysicalPlanNode> =
        create_scheduler(cluster, Arc::new(config)).await?;
    let of_failures = scheduler.clone();
    tokio::spawn(async move {
        while let Some(job) = failures.recv().await {
            // It fails if the scheduler ends.
            let _ = of_failures.cancel_job(job).await;
        }
    });
    start_grpc_service(address, scheduler).await
}

async fn executor(options: ballista_executor::config::Config) -> Result<()> {
    let health_address = address(&options.bind_host, options.bind_health_port)?;
    let scheduler = format!("{}:{}", options.scheduler_host, options.scheduler_port);
    let mut config = ExecutorProcessConfig::try_from(options)?;
    let name = config.log_file_name_prefix();
    let (level, directory) = (config.special_mod_log_level.clone(), config.log_dir.as_deref());
    log(&level, directory, config.log_rotation_policy, &name, config.print_thread_info)?;
    config.override_config_producer = Some(Arc::new(new_config));
    let (stores, work_dir) = (Arc::new(ObjectStores::from_env()), config.work_dir.clone());
    config.override_runtime_producer = Some(Arc::new(move |_config| {
        let runtime = runtime(&stores);
        match &work_dir {
            Some(work_dir) => runtime.with_temp_file_path(work_dir).build_arc(),
            None => runtime.build_arc(),
        }
    }));
    config.override_logical_codec = Some(logical_codec());
    config.override_physical_codec = Some(physical_codec());
    let (_stop, stopped) = oneshot::channel();
    let health = spawn_health_server(health_address, config.health.clone(), stopped);
    tokio::select! {
        result = start_executor_process(Arc::new(config)) => result.map_err(|error| match error {
            BallistaError::GrpcConnectionError(detail) => {
                let hint = "`blosc2-cluster scheduler` starts one";
                BallistaError::GrpcConnectionError(format!("{detail} {scheduler}: {hint}"))
            }
            other => other,
        }),
        // It ends only if the port is in use.
        health = health => health.map_err(|error| BallistaError::General(error.to_string()))?,
    }
}

/// The configuration of the sessions of clients, before their own settings.
fn new_config() -> SessionConfig {
    configure(SessionConfig::new_with_ballista()).with_information_schema(true)
}

/// The settings of the tasks of a query: the object stores are shared by all queries.
fn runtime(stores: &Arc<ObjectStores>) -> RuntimeEnvBuilder {
    RuntimeEnvBuilder::new().with_object_store_registry(Arc::clone(stores) as _)
}

fn address(host: &str, port: u16) -> Result<SocketAddr> {
    let ip: IpAddr = host.parse().map_err(|error| {
        let detail = format!("bind to `{host}`: expected an IP address: {error}");
        BallistaError::Configuration(detail)
    })?;
    Ok(SocketAddr::new(ip, port))
}

/// Writes messages to standard error, or to files in a directory. The environment variable `RUST_LOG` has priority over
/// `level`.
fn log(
    level: &str,
    directory: Option<&str>,
    rotation: LogRotationPolicy,
    name: &str,
    threads: bool,
) -> Result<()> {
    let level = std::env::var(EnvFilter::DEFAULT_ENV).unwrap_or_else(|_| level.to_owned());
    let messages = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_thread_names(threads)
        .with_thread_ids(threads)
        .with_env_filter(EnvFilter::new(level));
    let Some(directory) = directory else {
        messages.with_writer(std::io::stderr).init();
        return Ok(());
    };
    let rotation = match rotation {
        LogRotationPolicy::Minutely => Rotation::MINUTELY,
        LogRotationPolicy::Hourly => Rotation::HOURLY,
        LogRotationPolicy::Daily => Rotation::DAILY,
        LogRotationPolicy::Never => Rotation::NEVER,
    };
    let files = RollingFileAppender::builder().rotation(rotation).filename_prefix(name);
    let files = files.build(directory).map_err(|error| {
        BallistaError::Configuration(format!("write messages to `{directory}`: {error}"))
    })?;
    messages.with_writer(files).init();
    Ok(())
}
