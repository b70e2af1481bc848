//! Files and stores of Python on nginx, Python's `http.server` and an S3 server.

use std::path::Path;

use blosc2::storage::FolderMut;

use crate::commands;
use crate::common::{blosc2, bytes, error, text};
use crate::servers::{self, Nginx, PlainServer, S3, run_python};

/// Bytes as Python's `hex` prints them.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Writes an array and a store with Python, and returns the bytes that Python reads from slices of them.
fn write(folder: &Path) -> [String; 2] {
    let program = "
import sys
import blosc2
import numpy as np
folder = sys.argv[1]
items = np.arange(60_000, dtype='i4').reshape(200, 300)
array = blosc2.asarray(items, urlpath=f'{folder}/a.b2nd', mode='w', chunks=(50, 100), blocks=(10, 50))
array.schunk.vlmeta['unit'] = 'kelvin'
with blosc2.TreeStore(f'{folder}/store.b2z', mode='w') as store:
    store['/group/a'] = items
    store['/b'] = np.arange(10, dtype='f8') / 4
store = blosc2.open(f'{folder}/store.b2z')
print(array[100, 5:9].tobytes().hex())
print(store['/group/a'][7:9, 299].tobytes().hex())
";
    let printed = run_python(program, &[folder.to_str().unwrap()]);
    let mut lines = printed.lines().map(str::to_owned);
    [lines.next().unwrap(), lines.next().unwrap()]
}

#[test]
fn urls_are_read_like_files() {
    let nginx = Nginx::start();
    let files = nginx.files();
    let [slice, member] = write(&files);
    let (array, store) = (nginx.url("a.b2nd"), nginx.url("store.b2z"));
    let (local, local_store) = (files.join("a.b2nd"), files.join("store.b2z"));
    let (local, local_store) = (local.to_str().unwrap(), local_store.to_str().unwrap());

    let info = text(&["info", &array, "--json"]);
    assert_eq!(info.replace(&array, local), text(&["info", local, "--json"]));
    let list = text(&["ls", &store]);
    assert_eq!(list.replace(&store, local_store), text(&["ls", local_store]));
    assert_eq!(hex(&bytes(&["cat", &array, "--slice", "100,5:9"])), slice);
    let args = ["cat", &store, "--key", "/group/a", "--slice", "7:9,299"];
    assert_eq!(hex(&bytes(&args)), member);
    for engine in ["c", "rust"] {
        let run = |file: &str| bytes(&["cat", file, "--engine", engine]);
        assert_eq!(run(&array), run(local));
    }
    for (url, file) in [(&array, local), (&store, local_store)] {
        let found = text(&["check", url]);
        assert_eq!(found.replace(url.as_str(), file), text(&["check", file]));
    }
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.b2nd");
    let copy = copy.to_str().unwrap();
    text(&["copy", &array, copy]);
    assert_eq!(bytes(&["cat", copy]), bytes(&["cat", local]));
}

/// Only what is needed is transferred.
#[test]
fn slices_transfer_few_bytes() {
    let nginx = Nginx::start();
    let program = "
import sys
import blosc2
import numpy as np
items = np.random.default_rng(1).integers(0, 1 << 30, (2000, 4000), dtype='i8')
blosc2.asarray(items, urlpath=sys.argv[1], mode='w', chunks=(500, 4000), blocks=(20, 4000))
";
    run_python(program, &[nginx.files().join("large.b2nd").to_str().unwrap()]);
    let before = nginx.counts();
    assert_eq!(bytes(&["cat", &nginx.url("large.b2nd"), "--slice", "700,10:20"]).len(), 80);
    let (requests, bytes) = nginx.counts();
    let (requests, bytes) = (requests - before.0, bytes - before.1);
    println!("cat --slice: {requests} requests, {bytes} bytes");
    assert!(requests <= 5 && bytes < 2 << 20, "{requests} requests, {bytes} bytes");
}

#[test]
fn options_of_urls_are_used() {
    let s3 = S3::start();
    let array = blosc2::NDArray::builder().arange(0i32, 1000, 1).unwrap();
    s3.remote().save("x/a.b2nd", array.schunk(), false).unwrap();
    let url = format!("s3://{}/x/a.b2nd", servers::BUCKET);
    let options = s3.options().map(|(key, value)| format!("{key}={value}"));
    let mut args = vec!["cat", &url, "--slice", "10:13", "--text"];
    let options: Vec<&str> =
        options.iter().flat_map(|option| ["--storage-option", option]).collect();
    args.extend(&options);
    assert_eq!(text(&args).trim(), "[10 11 12]");

    // A directory, with a file that its index does not name.
    let mut folder = s3.remote().folder("x/d.b2nd").unwrap();
    let builder = blosc2::NDArray::builder().target(blosc2::Target::folder(folder.clone()));
    builder.arange(0i32, 1000, 1).unwrap();
    folder.put("00000007.chunk", b"unused", false).unwrap();
    let url = format!("s3://{}/x/d.b2nd/", servers::BUCKET);
    let args = [&["cat", &url, "--slice", "10:13", "--text"], &options[..]].concat();
    assert_eq!(text(&args).trim(), "[10 11 12]");
    let output = blosc2(&[&["check", &url], &options[..]].concat());
    let found = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{found}");
    assert!(found.contains("00000007.chunk: warning [directory.unused]"), "{found}");
}

#[test]
fn errors_name_the_url() {
    let nginx = Nginx::start();
    let url = nginx.url("missing.b2nd");
    for command in ["info", "ls", "cat", "check"] {
        let found = error(&[command, &url], 1);
        assert!(found.contains(&url) && found.lines().count() == 1, "{command}: {found}");
    }
    std::fs::write(nginx.files().join("text"), "no frame, but a text of some length").unwrap();
    let url = nginx.url("text");
    for command in ["info", "cat"] {
        let found = error(&[command, &url], 1);
        assert!(found.contains(&url), "{command}: {found}");
    }
    let found = error(&["info", "ftp://host/a.b2nd"], 1);
    assert!(found.contains("ftp://host/a.b2nd"), "{found}");
    error(&["info", &url, "--storage-option", "timeout"], 2);
    let found = error(&["meta", &url, "set", "name", "1"], 1);
    assert!(found.contains("can only be read"), "{found}");
}

/// The table of the README, and directories of Python.
#[test]
fn servers_without_ranges_or_lists_are_read() {
    let (plain, nginx) = (PlainServer::start(), Nginx::start());
    for (files, url) in [
        (plain.files(), &(|name: &str| plain.url(name)) as &dyn Fn(&str) -> String),
        (&nginx.files(), &|name| nginx.url(name)),
    ] {
        commands::write(files);
        commands::run_table(files, url);
        let program = "
import sys
import blosc2
import numpy as np
items = np.arange(60_000, dtype='i4').reshape(200, 300)
blosc2.asarray(items, urlpath=f'{sys.argv[1]}/python.b2nd', mode='w', contiguous=False, chunks=(50, 100))
print(items[100, 5:9].tobytes().hex())
";
        let expected = run_python(program, &[files.to_str().unwrap()]);
        let args = ["cat", &url("python.b2nd/"), "--slice", "100,5:9"];
        assert_eq!(hex(&bytes(&args)), expected.trim());
    }
}
