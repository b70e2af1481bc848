//! The processes of a cluster, and the S3 server.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ballista_core::extension::SessionConfigExt;
use blosc2_datafusion::ballista::connect;
use datafusion::prelude::{SessionConfig, SessionContext};
use object_store::aws::{AmazonS3, AmazonS3Builder};
use tempfile::TempDir;

use crate::proxy::Proxy;
use crate::python;

/// More than a slow machine needs to start a process, or to end a query that sees a lost executor.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// A process that ends with the test.
#[derive(Debug)]
pub(crate) struct Process(Child);

impl Process {
    fn start(command: &mut Command) -> Self {
        Self(command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}")))
    }

    /// Ends the process without a chance to clean up.
    pub(crate) fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A port that nobody uses. Each call returns another one. The system gives ports from 32768 on to connections. The
/// tests make many of them, so that such a port could be in use again when a server binds it.
fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = 10_000 + (std::process::id() % 200) as u16 * 100;
    let ports = std::iter::repeat_with(|| first + NEXT.fetch_add(1, Ordering::Relaxed));
    let mut free = ports.take(2000).filter(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok());
    free.next().expect("a port is free")
}

/// The response of a server to a request without a body.
fn request(port: u16, method: &str, path: &str, headers: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 0\r\nconnection: close\r\n{headers}\r\n"
    )?;
    let mut response = String::new();
    stream.read_to_string(&mut response)?;
    Ok(response)
}

/// Waits until a server responds to a request with the status 200.
fn wait_for(port: u16, method: &str, path: &str, headers: &str) {
    let start = Instant::now();
    loop {
        let response = request(port, method, path, headers);
        if response.as_ref().is_ok_and(|response| response.starts_with("HTTP/1.1 200")) {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "{method} {path}: {response:?}");
        thread::sleep(Duration::from_millis(50));
    }
}

/// An S3 server with the bucket `bucket`.
#[derive(Debug)]
pub(crate) struct S3 {
    _process: Process,
    port: u16,
}

impl S3 {
    pub(crate) fn start() -> Self {
        let port = free_port();
        let mut command = Command::new(python());
        command.args(["-m", "moto.server", "-H", "127.0.0.1", "-p", &port.to_string()]);
        let process = Process::start(command.stdout(Stdio::null()).stderr(Stdio::null()));
        let signature =
            "authorization: AWS4-HMAC-SHA256 Credential=key/20260101/us-east-1/s3/aws4_request\r\n";
        wait_for(port, "PUT", "/bucket", signature);
        Self { _process: process, port }
    }

    pub(crate) fn proxy(&self) -> Proxy {
        Proxy::start(self.port)
    }

    /// The object store of the client.
    pub(crate) fn store(&self) -> Arc<AmazonS3> {
        let builder = AmazonS3Builder::new()
            .with_endpoint(format!("http://127.0.0.1:{}", self.port))
            .with_allow_http(true)
            .with_bucket_name("bucket")
            .with_region("us-east-1")
            .with_access_key_id("key")
            .with_secret_access_key(SECRET);
        Arc::new(builder.build().unwrap())
    }
}

/// The secret key, which appears in no message.
pub(crate) const SECRET: &str = "a-secret-of-this-test";

/// A scheduler and executors that run one task at a time.
#[derive(Debug)]
pub(crate) struct Cluster {
    _scheduler: Process,
    pub(crate) executors: Vec<Process>,
    port: u16,
    folder: TempDir,
}

impl Cluster {
    /// Starts a cluster with an executor for each proxy. The executors reach the S3 server through their proxies.
    pub(crate) fn start(s3: &S3, proxies: &[&Proxy]) -> Self {
        let endpoints: Vec<String> = proxies.iter().map(|proxy| proxy.endpoint()).collect();
        Self::with_endpoints(&format!("http://127.0.0.1:{}", s3.port), &endpoints, "debug")
    }

    /// Starts a cluster with an executor for each of these endpoints of S3.
    pub(crate) fn with_endpoints(endpoint: &str, of_executors: &[String], level: &str) -> Self {
        let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
        let command = |role: &str, endpoint: &str, name: &str| {
            let log = std::fs::File::create(folder.path().join(name)).unwrap();
            let mut command = Command::new(env!("CARGO_BIN_EXE_blosc2-cluster"));
            command
                .args([role, "--bind-host", "127.0.0.1", "--external-host", "127.0.0.1"])
                .envs([
                    ("AWS_ENDPOINT", endpoint),
                    ("AWS_ALLOW_HTTP", "true"),
                    ("AWS_REGION", "us-east-1"),
                    ("AWS_ACCESS_KEY_ID", "key"),
                    ("AWS_SECRET_ACCESS_KEY", SECRET),
                    ("RUST_LOG", level),
                ])
                .stderr(log);
            command
        };
        let scheduler = Process::start(
            command("scheduler", endpoint, "scheduler.log")
                .args(["--bind-port", &port.to_string()])
                .args(["--min-ready-executors", &of_executors.len().to_string()])
                .args(["--executor-timeout-seconds", "4"])
                .args(["--expire-dead-executor-interval-seconds", "1"]),
        );
        let executors = of_executors.iter().enumerate().map(|(at, endpoint)| {
            Process::start(
                command("executor", endpoint, &format!("executor{at}.log"))
                    .args(["--scheduler-host", "127.0.0.1"])
                    .args(["--scheduler-port", &port.to_string()])
                    .args(["--scheduler-connect-timeout-seconds", "60"])
                    .args(["--bind-port", &free_port().to_string()])
                    .args(["--bind-grpc-port", &free_port().to_string()])
                    .args(["--bind-health-port", &free_port().to_string()])
                    .args(["--executor-heartbeat-interval-seconds", "1"])
                    .args(["--vcores", "1"])
                    .arg("--work-dir")
                    .arg(folder.path().join(format!("work{at}"))),
            )
        });
        let executors = executors.collect();
        wait_for(port, "GET", "/readyz", "");
        Self { _scheduler: scheduler, executors, port, folder }
    }

    /// A client whose queries run on the cluster.
    pub(crate) fn client(&self, s3: &S3) -> SessionContext {
        with_files(self.session(), s3)
    }

    /// The address of the scheduler.
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// A client that reads local files.
    pub(crate) fn session(&self) -> SessionContext {
        let config = SessionConfig::new_with_ballista()
            .with_target_partitions(4)
            .set_u64("datafusion.optimizer.repartition_file_min_size", 1);
        let config = config.set_usize("ballista.scheduler.max_partitions_per_task", 1);
        connect(&format!("http://{}", self.address()), config, Arc::default()).unwrap()
    }

    /// Waits until at least this number of tasks of the only query has ended.
    pub(crate) fn wait_for_tasks(&self, count: usize) {
        let get = |path: &str| request(self.port, "GET", path, "").unwrap();
        let start = Instant::now();
        loop {
            let jobs = get("/api/jobs");
            let (_, job) = jobs.split_once("\"job_id\":\"").expect("there is a query");
            let (job, _) = job.split_once('"').unwrap();
            let stages = get(&format!("/api/job/{job}/stages"));
            match stages.matches("\"status\":\"Successful\"").count() {
                found if found >= count => return,
                _ => assert!(start.elapsed() < PATIENCE, "{stages}"),
            }
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until the scheduler knows this number of executors.
    pub(crate) fn wait_for_executors(&self, count: usize) {
        let start = Instant::now();
        loop {
            let executors = request(self.port, "GET", "/api/executors", "").unwrap();
            match executors.matches("\"specification\":").count() {
                found if found == count => return,
                _ => assert!(start.elapsed() < PATIENCE, "{executors}"),
            }
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// What the processes have written to their logs.
    pub(crate) fn logs(&self) -> String {
        let is_log = |path: &Path| path.extension().is_some_and(|extension| extension == "log");
        let entries = std::fs::read_dir(self.folder.path()).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path()).filter(|path| is_log(path));
        paths.map(|path| std::fs::read_to_string(path).unwrap()).collect()
    }
}

/// A session of one process, which is not configured for Ballista.
pub(crate) fn local(s3: &S3) -> SessionContext {
    let context = SessionContext::new();
    blosc2_datafusion::register(&context).unwrap();
    with_files(context, s3)
}

fn with_files(context: SessionContext, s3: &S3) -> SessionContext {
    context.register_object_store(&"s3://bucket".try_into().unwrap(), s3.store());
    context
}
