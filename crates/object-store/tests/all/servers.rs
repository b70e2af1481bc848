//! Servers of other projects, on the loopback interface: nginx and an S3 server. They end with the test.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use blosc2_object_store::Remote;
use tempfile::TempDir;

/// Returns the Python with which the tests compare.
pub(crate) fn python() -> PathBuf {
    let python = std::env::var_os("BLOSC2_TEST_PYTHON");
    python
        .expect("BLOSC2_TEST_PYTHON is the path of a Python; `cargo xtask integrations` sets it")
        .into()
}

/// Returns a port that nobody uses.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn wait_for(port: u16) {
    let end = Instant::now() + Duration::from_secs(60);
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(Instant::now() < end, "no server listens on port {port}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// A process that is stopped when the value is dropped.
#[derive(Debug)]
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An nginx that serves a folder.
#[derive(Debug)]
pub(crate) struct Nginx {
    _process: Process,
    folder: TempDir,
    port: u16,
}

impl Nginx {
    pub(crate) fn start() -> Self {
        let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
        let at = folder.path().display();
        fs::create_dir(folder.path().join("files")).unwrap();
        let config = format!(
            "daemon off; master_process off; pid {at}/pid; error_log {at}/errors;\n\
             events {{}}\n\
             http {{\n\
             log_format short '$request_method $status $body_bytes_sent';\n\
             access_log {at}/log short;\n\
             client_body_temp_path {at}; proxy_temp_path {at}; fastcgi_temp_path {at};\n\
             uwsgi_temp_path {at}; scgi_temp_path {at}; sendfile on;\n\
             server {{ listen 127.0.0.1:{port}; root {at}/files; }}\n\
             }}\n"
        );
        let path = folder.path().join("nginx.conf");
        fs::write(&path, config).unwrap();
        // One process: workers would continue to run after the end of their master.
        let mut command = Command::new("nginx");
        command.arg("-e").arg(folder.path().join("errors")).arg("-c").arg(path);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let process = Process(command.spawn().expect("nginx runs: install Debian's package nginx"));
        wait_for(port);
        Self { _process: process, folder, port }
    }

    pub(crate) fn files(&self) -> PathBuf {
        self.folder.path().join("files")
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}", self.port)
    }

    /// Returns the number of requests so far, and the bytes of their responses.
    pub(crate) fn counts(&self) -> (usize, u64) {
        // The log is written after the response.
        thread::sleep(Duration::from_millis(100));
        let log = fs::read_to_string(self.folder.path().join("log")).unwrap();
        let bytes =
            log.lines().map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap());
        (log.lines().count(), bytes.sum())
    }
}

/// Python's `http.server`, which ignores ranges, with a folder.
#[derive(Debug)]
pub(crate) struct PlainServer {
    _process: Process,
    folder: TempDir,
    port: u16,
}

impl PlainServer {
    pub(crate) fn start() -> Self {
        let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
        let mut command = Command::new(python());
        command.args(["-m", "http.server", &port.to_string(), "--bind", "127.0.0.1"]);
        command.arg("--directory").arg(folder.path());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let process = Process(command.spawn().expect("Python's server runs"));
        wait_for(port);
        Self { _process: process, folder, port }
    }

    pub(crate) fn files(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}", self.port)
    }
}

/// An S3 server with a bucket, in Python.
#[derive(Debug)]
pub(crate) struct S3 {
    _process: Process,
    port: u16,
}

pub(crate) const BUCKET: &str = "bucket";

impl S3 {
    pub(crate) fn start() -> Self {
        let port = free_port();
        let mut command = Command::new(python());
        command.args(["-m", "moto.server", "-H", "127.0.0.1", "-p", &port.to_string()]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let process = Process(command.spawn().expect("the S3 server runs"));
        wait_for(port);
        // The bucket.
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let request = format!(
            "PUT /{BUCKET} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 0\r\nconnection: close\r\n\
             authorization: AWS4-HMAC-SHA256 Credential=key/20260101/us-east-1/s3/aws4_request\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        Self { _process: process, port }
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn options(&self) -> [(&'static str, String); 4] {
        [
            ("endpoint", self.endpoint()),
            ("access_key_id", "key".to_owned()),
            ("secret_access_key", "secret".to_owned()),
            ("region", "us-east-1".to_owned()),
        ]
    }

    pub(crate) fn remote(&self) -> Remote {
        Remote::from_url(&format!("s3://{BUCKET}/"), self.options()).unwrap().0
    }
}

/// Runs a Python program with arguments, and returns what it prints.
pub(crate) fn run_python(program: &str, args: &[&str]) -> String {
    let output = Command::new(python()).arg("-c").arg(program).args(args).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program}\n{errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// Writes a file for Python or nginx.
pub(crate) fn write(folder: &Path, name: &str, bytes: &[u8]) {
    fs::write(folder.join(name), bytes).unwrap();
}
