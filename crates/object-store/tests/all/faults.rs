//! Servers with faults: the right data or a clear error, in bounded time.

use std::time::{Duration, Instant};

use blosc2::{ErrorKind, NDArray, Result};
use blosc2_object_store::Remote;

use crate::data::{self, within_a_minute};
use crate::server::{Faults, Server};

const SHAPE: [u64; 2] = [2048, 2048];

/// A server with an array of 8 chunks, and the items.
fn start() -> (Server, Vec<f32>) {
    let server = Server::start();
    let (frame, items) = data::array(SHAPE, [256, 2048], [32, 2048]);
    server.put("a.b2nd", frame);
    (server, items)
}

fn remote(server: &Server) -> Remote {
    Remote::from_url(&server.url(""), [("timeout", "3s")]).unwrap().0
}

fn read(array: &NDArray) -> Result<Vec<f32>> {
    array.read::<Vec<f32>>(..)
}

#[test]
fn server_errors_and_lost_connections_are_repeated() {
    within_a_minute(|| {
        let (server, items) = start();
        server.set(Faults { fail: 2, ..Faults::default() });
        let array = remote(&server).array("a.b2nd").unwrap();
        assert!(read(&array).unwrap() == items);
        server.set(Faults { fail: 2, ..Faults::default() });
        assert!(read(&array).unwrap() == items);
        server.set(Faults { drop: 3, ..Faults::default() });
        assert!(read(&array).unwrap() == items);
        server.set(Faults { delay: Duration::from_millis(300), ..Faults::default() });
        assert!(read(&array).unwrap() == items);
    });
}

#[test]
fn a_server_that_stalls_is_an_error_in_bounded_time() {
    within_a_minute(|| {
        let (server, items) = start();
        let options = [("timeout", "1s"), ("max_retries", "2")];
        let (remote, _) = Remote::from_url(&server.url(""), options).unwrap();
        let array = remote.array("a.b2nd").unwrap();
        server.set(Faults { stalls: true, ..Faults::default() });
        let start = Instant::now();
        let error = read(&array).map(drop).unwrap_err();
        println!("stalled: {error}, after {:?}", start.elapsed());
        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
        // The array works again with the server.
        server.set(Faults::default());
        assert!(read(&array).unwrap() == items);
    });
}

#[test]
fn another_range_is_an_error() {
    within_a_minute(|| {
        let (server, items) = start();
        let array = remote(&server).array("a.b2nd").unwrap();
        server.set(Faults { wrong_range: true, ..Faults::default() });
        let error = read(&array).map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
        server.set(Faults::default());
        assert!(read(&array).unwrap() == items);
    });
}

/// Whatever the server tells about its versions, their data is not mixed.
#[test]
fn a_changed_object_is_an_error() {
    within_a_minute(|| {
        for (no_etags, ignores_conditions) in [(false, false), (false, true), (true, false)] {
            for count in 0..12 {
                let (server, items) = start();
                let changes_after = Some(count);
                let faults =
                    Faults { no_etags, ignores_conditions, changes_after, ..Faults::default() };
                server.set(faults);
                let found = remote(&server).array("a.b2nd").and_then(|array| read(&array));
                match found {
                    Ok(found) => assert!(found == items && count > 2, "after {count} requests"),
                    // The first response is of the other version.
                    Err(error) if count == 0 => {
                        assert_ne!(error.kind(), ErrorKind::Busy, "{error}")
                    }
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
                        assert!(error.to_string().contains("has changed"), "{error}");
                    }
                }
            }
        }
    });
}

#[test]
fn missing_and_empty_objects_are_errors() {
    within_a_minute(|| {
        let (server, _) = start();
        let error = remote(&server).array("b.b2nd").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        server.put("empty", Vec::new());
        let error = remote(&server).array("empty").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData, "{error}");
        server.put("short", vec![1, 2, 3]);
        let error = remote(&server).array("short").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData, "{error}");
        // Nobody listens.
        let options = [("timeout", "1s"), ("connect_timeout", "1s")];
        let (remote, path) = Remote::from_url("http://127.0.0.1:1/a.b2nd", options).unwrap();
        let start = Instant::now();
        let error = remote.array(path).unwrap_err();
        println!("no server: {error}, after {:?}", start.elapsed());
        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    });
}

#[test]
fn bad_urls_and_options_are_errors() {
    let none = [("", ""); 0];
    for url in ["", "a.b2nd", "ftp://host/a", "http://", "s3://bucket/a?x=1", "s3://"] {
        let error = Remote::from_url(url, none).map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{url}: {error}");
    }
    for (url, key, value) in [
        ("http://host/a", "region", "x"),
        ("s3://bucket/a", "regoin", "x"),
        ("http://host/a", "timeout", "soon"),
        ("http://host/a", "max_retries", "-1"),
        ("http://host/a", "retry_timeout", "1"),
        ("http://host/a", "download_limit", "many"),
        ("http://host/a", "download_limit", "18014398509481984KiB"),
        ("file:///a", "timeout", "1s"),
    ] {
        let error = Remote::from_url(url, [(key, value)]).map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{url}, {key}: {error}");
    }
}
