//! Servers with different faults.

use std::fs;
use std::path::Path;

use blosc2::NDArray;
use blosc2_store::TreeStore;

use crate::commands::files;
use crate::common::{blosc2, bytes, error, text};
use crate::server::{Faults, Server};

/// Writes an array, a store and an npy file, and puts them on a server.
fn start(folder: &Path) -> Server {
    let array = NDArray::builder().chunk_shape([50, 100]).block_shape([10, 50]);
    let array = array.from_fn([200, 300], |[row, column]| (row * 1009 + column * 31 % 17) as i32);
    array.unwrap().save(folder.join("a.b2nd")).unwrap();
    let mut store = TreeStore::create(folder.join("s.b2z")).unwrap();
    let member = NDArray::builder().arange(0i64, 1000, 1).unwrap();
    store.insert("/group/a", member.schunk()).unwrap();
    store.finish().unwrap();
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    bytes(&["export", &path("a.b2nd"), &path("a.npy")]);
    let server = Server::start();
    for name in ["a.b2nd", "s.b2z", "a.npy"] {
        server.put(name, fs::read(folder.join(name)).unwrap());
    }
    server.put("empty", Vec::new());
    server
}

const QUERY: &str = "download=1&token=s3cret99%2F";

#[test]
fn every_command_that_reads_takes_a_url() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    let local = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let faults = [
        Faults::default(),
        Faults { ignores_ranges: true, no_etags: true, ..Faults::default() },
        Faults { ignores_whole_ranges: true, ..Faults::default() },
        Faults { query: Some(QUERY), refuses_head: true, ..Faults::default() },
        Faults { encoding: Some("gzip"), ..Faults::default() },
        Faults { ignores_ranges: true, no_sizes: true, ..Faults::default() },
    ];
    for (number, fault) in faults.into_iter().enumerate() {
        let query = fault.query.map_or(String::new(), |query| format!("?{query}"));
        server.set(fault);
        let url = |name: &str| server.url(&format!("{name}{query}"));
        let same = |name: &str, args: &[&str]| {
            let run = |file: &str| {
                let args: Vec<&str> =
                    args.iter().map(|arg| if *arg == "IN" { file } else { arg }).collect();
                text(&args)
            };
            let (found, expected) = (run(&url(name)), run(&local(name)));
            assert!(!found.contains("s3cret99"), "{found}");
            let shown =
                if query.is_empty() { url(name) } else { server.url(&format!("{name}?...")) };
            assert_eq!(found.replace(&shown, &local(name)), expected, "{args:?}");
        };
        for name in ["a.b2nd", "s.b2z"] {
            same(name, &["info", "IN", "--json"]);
            same(name, &["check", "IN"]);
        }
        same("s.b2z", &["ls", "IN"]);
        same("a.b2nd", &["info", "IN", "--stats"]);
        same("a.b2nd", &["cat", "IN"]);
        same("a.b2nd", &["cat", "IN", "--engine", "rust"]);
        same("a.b2nd", &["cat", "IN", "--slice", "3:5,7", "--text"]);
        same("s.b2z", &["cat", "IN", "--key", "/group/a"]);
        same("a.b2nd", &["export", "IN", "-"]);
        same("a.b2nd", &["meta", "IN"]);
        same("a.b2nd", &["diff", "IN", &local("a.b2nd")]);
        same("a.b2nd", &["view", "IN", "-o", &local(&format!("{number}.png")), "--force"]);
        for (command, name) in [("copy", "a.b2nd"), ("import", "a.npy")] {
            let out = local(&format!("{command}{number}.b2nd"));
            bytes(&[command, &url(name), &out]);
            assert_eq!(bytes(&["cat", &out]), bytes(&["cat", &local("a.b2nd")]));
        }
        // Raw items, with and without their number.
        for shape in [&[][..], &["--shape", "200,300"]] {
            let out = local("raw.b2nd");
            let args = ["import", &url("empty"), &out, "--dtype", "i4", "--force"];
            match shape {
                [] => drop(bytes(&args)),
                _ => assert!(error(&[&args, shape].concat(), 1).contains("truncated")),
            }
        }
        for command in ["info", "ls", "cat", "check", "view", "meta"] {
            let found = error(&[command, &url("empty")], 1);
            assert!(found.contains("empty") && !found.contains("s3cret99"), "{command}: {found}");
        }
        assert!(
            error(&["import", &url("a.b2nd"), &local("x.b2nd")], 1).contains("not an npy file")
        );
    }
}

#[test]
fn the_limit_of_downloads_is_an_option() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    server.set(Faults { ignores_ranges: true, ..Faults::default() });
    let url = server.url("a.b2nd");
    let found = error(&["info", &url, "--storage-option", "download_limit=1KiB"], 1);
    for part in [&*url, "127.0.0.1", "1024 bytes", "download the file", "`download_limit`"] {
        assert!(found.contains(part), "{part}: {found}");
    }
    bytes(&["info", &url, "--storage-option", "download_limit=1GiB"]);
}

/// All commands, with URLs in all arguments that are paths.
#[test]
fn secrets_of_urls_are_in_no_output() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    let local = folder.path().join("a.b2nd").to_str().unwrap().to_owned();
    let directory = folder.path().join("d.b2nd");
    bytes(&["copy", &local, directory.to_str().unwrap(), "--directory"]);
    for (name, content) in files(&directory) {
        server.put(&format!("d.b2nd/{name}"), content);
    }
    let out = folder.path().join("out").to_str().unwrap().to_owned();
    let secret = |name: &str| {
        let url = server.url(name).replace("//", "//me5678:pass1234@");
        format!("{url}?token=s3cret99")
    };
    let nobody = "http://me5678:pass1234@127.0.0.1:1/a.b2nd?token=s3cret99";
    // With one slash, with unescaped characters, of another scheme, and with a mistake.
    let one_slash = secret("a.b2nd").replace("//", "/");
    let unescaped = "http://me5678:pa,ss/pass1234?s3cret99@127.0.0.1:1/a.b2nd";
    for url in [
        &*secret("a.b2nd"),
        &secret("d.b2nd/"),
        &secret("s.b2z"),
        &secret("missing"),
        &secret("missing/"),
        &secret("empty"),
        nobody,
        &one_slash,
        unescaped,
        "ftp://me5678:pass1234?s3cret99@host",
        "http//me5678:pass1234@host/a.b2nd",
    ] {
        let (slice, plot) = (format!("--slice={url}"), format!("--plot={url}"));
        let quick = ["--storage-option", "max_retries=0"];
        for args in [
            &["info", url][..],
            &["info", url, "--json"],
            &["info", url, "--stats"],
            &["info", url, url],
            &["info", url, "--no-such-option"],
            &["info", "--slice", url, url],
            &["ls", url],
            &["ls", url, "--key", "/none"],
            &["cat", url],
            &["cat", url, "--text"],
            &["cat", url, "--slice", "1000000"],
            &["cat", url, "--key", "/none"],
            &["cat", &local, "--key", url],
            &["cat", &local, &slice],
            &["cat", &local, "--slice", url],
            &["check", &local, "--svg", url],
            &["checksums", url],
            &["checksums", url, "--verify"],
            &["check", url],
            &["check", url, "--json"],
            &["check", url, &local, url],
            &["checksums", url, "on"],
            &["copy", url, &out],
            &["copy", &local, url],
            &["copy", url, url],
            &["diff", url, &local],
            &["diff", &local, url],
            &["diff", url, url],
            &["meta", url],
            &["meta", url, "set", "a", "1"],
            &["meta", &local, "set", url, url],
            &["meta", &local, "get", url],
            &["repair", url],
            &["repair", url, "-o", &out],
            &["repair", &local, "-o", url],
            &["import", url, &out, "--force"],
            &["import", &local, url],
            &["export", url, &out, "--force"],
            &["export", &local, url],
            &["view", url],
            &["view", url, "-o", &out],
            &["view", &local, "-o", url],
            &["bench", url, "--time", "1", "--codecs", "lz4", "--levels", "1"],
            &["bench", &local, &plot],
            &["bench", &local, "--codecs", url],
            &["man", "--dir", url],
            &[url],
        ] {
            let quick = if ["man", url].contains(&args[0]) { &[] } else { &quick[..] };
            let output = blosc2(&[args, quick].concat());
            for text in [&output.stdout, &output.stderr] {
                let text = String::from_utf8_lossy(text);
                for secret in ["me5678", "pass1234", "s3cret99"] {
                    assert!(!text.contains(secret), "{args:?}: {text}");
                }
            }
        }
    }
    let found = error(&["info", &secret("a.b2nd"), "--storage-option", "s3cret99"], 2);
    assert!(!found.contains("s3cret99"), "{found}");
}

#[test]
fn errors_name_the_host_and_the_cause() {
    let found =
        error(&["info", "http://127.0.0.1:1/a.b2nd", "--storage-option", "max_retries=0"], 1);
    assert!(found.contains("127.0.0.1:1") && found.contains("refused"), "{found}");
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    let found = error(&["info", &server.url("missing.b2nd")], 1);
    assert!(found.contains("missing.b2nd") && found.contains("404"), "{found}");
}
