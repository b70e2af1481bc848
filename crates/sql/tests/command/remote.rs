//! URLs: servers on the loopback interface.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::common::{Folder, bad, good};

/// Serves a folder over HTTP, with ranges, until the test ends. Returns the address.
fn serve(folder: &Path) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let files = tower_http::services::ServeDir::new(folder);
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            axum::serve(listener, axum::Router::new().fallback_service(files)).await.unwrap();
        });
    });
    format!("http://{address}")
}

#[test]
fn files_of_http_servers() {
    let served = Folder::new();
    served.trips();
    served.arrays();
    served.write("cities.csv", "city,country\nOslo,Norway\nRome,Italy\n");
    served.write("list.json", r#"[{"city": "Oslo"}]"#);
    served.good(&["trips.b2z", "SELECT city, km FROM trips", "-o", "p.parquet"]);
    served.good(&["trips.b2z", "SELECT city, km FROM trips", "-o", "a.arrow"]);
    let url = serve(&served.path(""));
    let folder = Folder::new();
    let at = |name: &str| format!("{url}/{name}");
    let sql = "SELECT country, sum(km) AS km FROM trips JOIN cities USING (city) GROUP BY country ORDER BY km";
    let expected = json!([{"country": "Italy", "km": 2.0}, {"country": "Norway", "km": 5.5}]);
    assert_eq!(folder.json(&[&at("trips.b2z"), &at("cities.csv"), sql]), expected);
    for name in ["p.parquet", "a.arrow"] {
        let sql = "SELECT sum(km) AS km FROM t";
        assert_eq!(folder.json(&[&format!("t={}", at(name)), sql]), json!([{"km": 7.5}]));
    }
    assert_eq!(folder.json(&[&at("list.json"), "SELECT * FROM list"]), json!([{"city": "Oslo"}]));
    let sum = "SELECT sum(value) AS s FROM x WHERE time = 1";
    let array = format!("x={}", at("array.b2nd"));
    assert_eq!(folder.json(&[&array, "--dims", "time,lat", sum]), json!([{"s": 12.0}]));
    let sql = format!("SELECT count(*) AS n FROM '{}'", at("trips.b2z"));
    assert_eq!(folder.json(&[&sql]), json!([{"n": 3}]));
    let line = folder.bad(1, &[&at("missing.b2z"), "SELECT 1"]);
    assert!(line.contains("missing.b2z not found"), "{line}");
    let private = at("missing.b2z").replace("//", "//me:secret@");
    let line = folder.bad(1, &[&private, "SELECT 1"]);
    assert!(line.contains("without user") && !line.contains("secret"), "{line}");
    let line = folder.bad(1, &[&at("*.b2z"), "SELECT 1"]);
    assert!(line.contains("HTTP servers do not list their files"), "{line}");
}

/// A process that is stopped when the value is dropped.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts an S3 server, and returns its address.
fn s3() -> (Process, String) {
    let python = std::env::var_os("BLOSC2_TEST_PYTHON");
    let python = python
        .expect("BLOSC2_TEST_PYTHON is the path of a Python; `cargo xtask integrations` sets it");
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut command = Command::new(python);
    command.args(["-m", "moto.server", "-H", "127.0.0.1", "-p", &port.to_string()]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let process = Process(command.spawn().expect("the S3 server runs"));
    let end = Instant::now() + Duration::from_secs(60);
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(Instant::now() < end, "no server listens on port {port}");
        thread::sleep(Duration::from_millis(20));
    }
    (process, format!("http://127.0.0.1:{port}"))
}

#[test]
fn objects_on_s3() {
    use object_store::aws::AmazonS3Builder;
    use object_store::{ObjectStoreExt, PutPayload};

    let (_process, endpoint) = s3();
    let folder = Folder::new();
    folder.ids("a.b2z", 0..10);
    folder.ids("b.b2z", 10..20);
    // The bucket.
    let request = "PUT /bucket HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 0\r\nconnection: close\r\n\
        authorization: AWS4-HMAC-SHA256 Credential=key/20260101/us-east-1/s3/aws4_request\r\n\r\n";
    let address = endpoint.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    std::io::Write::write_all(&mut stream, request.as_bytes()).unwrap();
    let answer = std::io::read_to_string(stream).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let store = AmazonS3Builder::new()
        .with_endpoint(&endpoint)
        .with_allow_http(true)
        .with_bucket_name("bucket")
        .with_region("us-east-1")
        .with_access_key_id("key")
        .with_secret_access_key("hidden42")
        .build()
        .unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    for name in ["a.b2z", "b.b2z"] {
        let key = format!("d/{name}").into();
        runtime.block_on(store.put(&key, PutPayload::from(folder.read(name)))).unwrap();
    }
    let command = |args: &[&str]| {
        let mut command = folder.command(args);
        command.env("AWS_ENDPOINT", &endpoint).env("AWS_ALLOW_HTTP", "true");
        command.env("AWS_ACCESS_KEY_ID", "key").env("AWS_SECRET_ACCESS_KEY", "hidden42");
        command.env("AWS_REGION", "us-east-1");
        command
    };
    for (file, name, count) in [
        ("s3://bucket/d/a.b2z", "a", 10),
        ("s3://bucket/d/*.b2z", "d", 20),
        ("s3://bucket/d/", "d", 20),
    ] {
        let sql = format!("SELECT count(*) AS n, max(id) AS m FROM {name}");
        let found = good(command(&[file, &sql, "--format", "csv"]));
        assert_eq!(String::from_utf8(found).unwrap(), format!("n,m\n{count},{}\n", count - 1));
    }
    let copy = "COPY (SELECT id FROM a WHERE id > 6) TO 's3://bucket/new.b2z'; SELECT sum(id) AS s FROM 's3://bucket/new.b2z'";
    let found = good(command(&["s3://bucket/d/a.b2z", copy, "--format", "csv"]));
    assert_eq!(found, b"s\n24\n");
    let line = bad(1, command(&["s3://bucket/missing.b2z", "SELECT 1"]));
    assert!(line.contains("(s3://bucket/missing.b2z): no file was found"), "{line}");
    let line = bad(1, command(&["s3://none/a.b2z", "SELECT 1"]));
    assert!(line.contains("(s3://none/a.b2z)") && !line.contains("hidden42"), "{line}");
}
