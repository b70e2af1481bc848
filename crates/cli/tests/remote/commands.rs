//! The table of the README: each argument that is a path, with the URL of a file and of a directory.

use std::fs;
use std::path::Path;

use blosc2::{NDArray, OpenOptions, Target};
use blosc2_store::{EmbedStore, TreeStore, without_secrets};

use crate::common::{bytes, error, text};
use crate::server::{Faults, Server};

/// Writes the files of the table.
pub(crate) fn write(folder: &Path) {
    let path = |name: &str| folder.join(name);
    let text = |name: &str| path(name).to_str().unwrap().to_owned();
    let builder = NDArray::builder().chunk_shape([50, 100]).block_shape([10, 50]);
    let array = builder.from_fn([200, 300], |[row, column]| (row * 1009 + column * 31 % 17) as i32);
    array.unwrap().save(path("a.b2nd")).unwrap();
    bytes(&["checksums", &text("a.b2nd")]);
    bytes(&["copy", &text("a.b2nd"), &text("directory.b2nd"), "--directory"]);
    bytes(&["checksums", &text("directory.b2nd")]);
    bytes(&["export", &text("a.b2nd"), &text("a.npy")]);

    let member = NDArray::builder().arange(0i64, 1000, 1).unwrap();
    let mut store = TreeStore::create(path("s.b2z")).unwrap();
    store.insert("/group/a", member.schunk()).unwrap();
    store.finish().unwrap();
    let mut store = TreeStore::create(path("s.b2d")).unwrap();
    store.insert("/group/a", member.schunk()).unwrap();
    store.finish().unwrap();
    let mut embedded = EmbedStore::create(path("e.b2e")).unwrap();
    embedded.insert("/a", member.schunk()).unwrap();
    let embedded = OpenOptions::new().open(path("e.b2e")).unwrap();
    embedded.save(Target::from(path("directory.b2e")).directory(true)).unwrap();
}

/// All files in a folder, with their paths in the folder.
pub(crate) fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let (path, name) = (entry.as_ref().unwrap().path(), entry.unwrap().file_name());
        let name = name.to_str().unwrap().to_owned();
        match path.is_dir() {
            true => {
                let inside = self::files(&path).into_iter();
                files.extend(inside.map(|(file, bytes)| (format!("{name}/{file}"), bytes)));
            }
            false => files.push((name, fs::read(path).unwrap())),
        }
    }
    files
}

/// The rows of the table: an argument, and whether it can be the URL of a file and of a directory.
fn table() -> Vec<[String; 3]> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");
    let readme = fs::read_to_string(path).unwrap();
    let section = readme.split("\n## URLs\n").nth(1).unwrap();
    let rows = section.split("\n## ").next().unwrap().lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| `")?.trim_end_matches(" |").split(" | ");
        let argument = cells.next()?.trim_end_matches('`');
        Some([argument.to_owned(), cells.next()?.to_owned(), cells.next()?.to_owned()])
    });
    rows.collect()
}

/// The arguments of a command that reads `IN` and writes `OUT`, and the names of a file and of a directory. For another
/// argument, the name of the file is empty.
fn example(argument: &str) -> (&'static [&'static str], &'static str, &'static str) {
    const ARRAY: (&str, &str) = ("a.b2nd", "directory.b2nd");
    let (args, (file, directory)): (&[&str], _) = match argument {
        "info FILE" => (&["info", "IN", "--json"], ARRAY),
        "ls FILE" => (&["ls", "IN", "--long"], ("s.b2z", "directory.b2e")),
        "cat FILE" => (&["cat", "IN"], ARRAY),
        "check FILE" => (&["check", "IN"], ARRAY),
        "checksums FILE" => (&["checksums", "IN", "--verify"], ARRAY),
        "copy IN" => (&["copy", "IN", "OUT.b2nd"], ARRAY),
        "diff A" => (&["diff", "IN", "LOCAL"], ARRAY),
        "diff B" => (&["diff", "LOCAL", "IN"], ARRAY),
        "meta FILE" => (&["meta", "IN"], ARRAY),
        "repair FILE" => (&["repair", "IN", "--output", "OUT.b2nd"], ARRAY),
        "import IN" => (&["import", "IN", "OUT.b2nd"], ("a.npy", "directory.b2nd")),
        "export IN" => (&["export", "IN", "OUT.npy"], ARRAY),
        "view FILE" => (&["view", "IN"], ARRAY),
        "bench FILE" => (&["bench", "IN", "--time=1", "--codecs=lz4", "--levels=1"], ARRAY),
        "check --svg" => (&["check", "LOCAL", "--svg", "IN"], ("", "")),
        "copy OUT" => (&["copy", "LOCAL", "IN"], ("", "")),
        "repair --output" => (&["repair", "LOCAL", "--output", "IN"], ("", "")),
        "import OUT" => (&["import", "LOCAL", "IN"], ("", "")),
        "export OUT" => (&["export", "LOCAL", "IN"], ("", "")),
        "view --output" => (&["view", "LOCAL", "--output", "IN"], ("", "")),
        "bench --plot" => (&["bench", "LOCAL", "--plot", "IN"], ("", "")),
        "man --dir" => (&["man", "--dir", "IN"], ("", "")),
        _ => panic!("`{argument}` is not tested"),
    };
    (args, file, directory)
}

/// Runs a command for each row of the table. `url` returns the URL of a file in `folder`, or of a directory if the name
/// ends with a slash.
pub(crate) fn run_table(folder: &Path, url: &dyn Fn(&str) -> String) {
    let local = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let written = tempfile::tempdir().unwrap();
    let rows = table();
    assert_eq!(rows.len(), 22);
    for [argument, file_allowed, directory_allowed] in rows {
        let (args, file, directory) = example(&argument);
        for (name, allowed) in [(file, file_allowed), (&format!("{directory}/"), directory_allowed)]
        {
            let out = |place: &str, end: &str| {
                written.path().join(format!("{place}{end}")).to_str().unwrap().to_owned()
            };
            let args_for = |place: &str, input: &str| -> Vec<String> {
                let of = |arg: &&str| match *arg {
                    "IN" => input.to_owned(),
                    "LOCAL" => local("a.b2nd"),
                    arg => match arg.strip_prefix("OUT") {
                        Some(end) => out(place, end),
                        None => arg.to_owned(),
                    },
                };
                args.iter().map(of).collect()
            };
            let url = url(if file.is_empty() { "new.b2nd" } else { name });
            let shown = without_secrets(&url);
            let run = args_for("remote", &url);
            let run: Vec<&str> = run.iter().map(String::as_str).collect();
            if allowed == "no" {
                let found = error(&run, 1);
                assert!(found.contains(&shown), "{argument}: {found}");
                continue;
            }
            assert!(allowed.starts_with("yes"), "{argument}: {allowed}");
            let found = text(&run);
            if args[0] == "bench" {
                // It measures times.
                assert!(found.contains("lz4"), "{found}");
                continue;
            }
            let expected = args_for("local", &local(name));
            let expected = text(&expected.iter().map(String::as_str).collect::<Vec<_>>());
            let found =
                found.replace(&shown, &local(name)).replace(&out("remote", ""), &out("local", ""));
            assert_eq!(found, expected, "{argument}, {name}");
            for end in [".b2nd", ".npy"] {
                let [found, expected] = ["remote", "local"].map(|place| {
                    let path = out(place, end);
                    let content = fs::read(&path).ok();
                    // It can contain the time at which it was written.
                    let items = content.as_ref().map(|_| bytes(&["cat", &path]));
                    drop(fs::remove_file(&path));
                    (items, content.is_some())
                });
                assert!(found == expected, "{argument}, {name}");
            }
        }
    }
    // What depends on an option.
    let [file, directory] = [url("a.b2nd"), url("directory.b2nd/")];
    for url in [&file, &directory] {
        for args in [&["checksums", url][..], &["repair", url], &["meta", url, "set", "a", "1"]] {
            let found = error(args, 1);
            let is_clear =
                ["can only be read", "`blosc2 copy`"].iter().all(|part| found.contains(part));
            assert!(is_clear && found.contains(&without_secrets(url)), "{found}");
        }
    }
    // Stores in directories, other directories, and what is not there.
    for (name, reason) in [
        ("s.b2d/", "a store in a directory"),
        ("s.b2d/group/", "neither a sparse frame"),
        ("none/", "neither a sparse frame"),
    ] {
        for command in ["info", "ls", "cat", "check", "meta", "view"] {
            let found = error(&[command, &url(name)], 1);
            assert!(found.contains(reason), "{command}: {found}");
            assert!(found.contains(&without_secrets(&url(name))), "{command}: {found}");
        }
    }
    let entry = bytes(&["cat", &url("s.b2d/group/a.b2nd")]);
    assert_eq!(entry, bytes(&["cat", &local("s.b2d"), "--key", "/group/a"]));
    for args in [&["--engine", "rust"][..], &["--engine", "c"], &["--slice", "3:5,7", "--text"]] {
        let run = |path: &str| bytes(&[&["cat", path], args].concat());
        assert_eq!(run(&directory), run(&local("directory.b2nd")));
    }
}

/// A server like Python's `http.server`: without ranges, ETags and lists of files.
#[test]
fn every_argument_of_the_table_takes_a_url() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    let server = Server::start();
    for (name, content) in files(folder.path()) {
        server.put(&name, content);
    }
    for query in [None, Some("download=1&token=s3cret99%2F")] {
        server.set(Faults { ignores_ranges: true, no_etags: true, query, ..Faults::default() });
        run_table(folder.path(), &|name| match query {
            Some(query) => server.url(&format!("{name}?{query}")),
            None => server.url(name),
        });
    }
}

/// A store in a directory of an object store that lists its objects.
#[test]
fn stores_in_directories_are_read() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    let local = folder.path().join("s.b2d").to_str().unwrap().to_owned();
    let url = format!("file://{local}/");
    for args in [
        &["ls", "IN", "--long"][..],
        &["cat", "IN", "--key", "/group/a"],
        &["view", "IN", "--key", "/group/a"],
        &["meta", "IN", "--key", "/group/a"],
    ] {
        let run = |name: &str| {
            let args = args.iter().map(|arg| if *arg == "IN" { name } else { arg });
            text(&args.collect::<Vec<_>>()).replace(name, "NAME")
        };
        assert_eq!(run(&url), run(&local), "{args:?}");
    }
    assert!(text(&["info", &url]).contains("treestore"));
    let copy = folder.path().join("copy.b2nd").to_str().unwrap().to_owned();
    bytes(&["copy", &url, &copy, "--key", "/group/a"]);
    assert_eq!(bytes(&["cat", &copy]), bytes(&["cat", &local, "--key", "/group/a"]));
    assert!(error(&["check", &url], 1).contains("copy its files to a local directory"));
    assert!(error(&["cat", &url], 1).contains("store"));
    let other = format!("{copy}.b2nd");
    assert!(error(&["copy", &url, &other], 1).contains("this is a store"));
    assert!(error(&["import", &url, &copy, "--force"], 1).contains("directory"));
    // A group is a directory with frames.
    assert!(text(&["ls", &format!("{url}group/")]).contains("/a"));
    fs::write(folder.path().join("s.b2d/embed.b2e"), "text").unwrap();
    let found = error(&["ls", &url], 1);
    assert!(found.contains("embed.b2e") && !found.contains("does not list"), "{found}");
}

#[test]
fn a_cache_on_disk_serves_the_second_command() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    let server = Server::start();
    server.put("a.b2nd", fs::read(folder.path().join("a.b2nd")).unwrap());
    let (url, local) = (server.url("a.b2nd"), folder.path().join("a.b2nd"));
    let cache = folder.path().join("cache").to_str().unwrap().to_owned();
    let expected = bytes(&["cat", local.to_str().unwrap()]);
    for _ in 0..2 {
        assert!(bytes(&["cat", &url, "--cache", &cache]) == expected);
        assert_eq!(server.taken().0.len(), 1);
    }
    let found = text(&["info", &url, "--cache", &cache]);
    let row = |name: &str| {
        let mut rows = found.lines().filter_map(|line| line.strip_prefix(name));
        rows.next().unwrap_or_else(|| panic!("{found}")).trim().to_owned()
    };
    assert_eq!((row("requests"), row("received")), ("1".to_owned(), "0".to_owned()));
    assert!(row("cache_hits").parse::<u64>().unwrap() >= 1);
    // The variable, and a directory that cannot be one.
    let file = local.to_str().unwrap();
    for (value, warning) in [(&*cache, ""), (file, "the cache is not used"), ("", "")] {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_blosc2"));
        let output = command.args(["cat", &url]).env("BLOSC2_CACHE", value).output().unwrap();
        assert!(output.status.success() && output.stdout == expected);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(errors.contains(warning) && errors.is_empty() == warning.is_empty(), "{errors}");
    }
}

/// Only the refusal of the method means that the server has no lists.
#[test]
fn a_list_that_fails_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    let server = Server::start();
    for (name, content) in files(folder.path()) {
        server.put(&name, content);
    }
    for (status, expected) in
        [("405 Method Not Allowed", "does not list its files"), ("401 Unauthorized", "401")]
    {
        server.set(Faults { list: Some(status), ..Faults::default() });
        let found = error(&["ls", &server.url("s.b2d/")], 1);
        assert!(found.contains(expected), "{found}");
        assert_eq!(found.contains("does not list"), status.starts_with("405"), "{found}");
    }
}

/// The parts of a damaged file that are intact.
#[test]
fn damaged_files_are_repaired_locally() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    let server = Server::start();
    let content = fs::read(folder.path().join("a.b2nd")).unwrap();
    server.put("a.b2nd", content[..content.len() - 30].to_vec());
    let out = folder.path().join("repaired.b2nd");
    let (url, out) = (server.url("a.b2nd"), out.to_str().unwrap());
    let found = text(&["repair", &url, "--output", out]);
    assert!(found.starts_with(&format!("{url}: rebuilt from 12 intact chunks")), "{found}");
    let local = folder.path().join("a.b2nd");
    assert_eq!(bytes(&["cat", out]), bytes(&["cat", local.to_str().unwrap()]));
    let found = error(&["repair", &url, "--output", out], 1);
    assert!(found.contains("already exists") && found.contains(out), "{found}");
    server.put("text", b"no frame, but a text of some length".to_vec());
    let found = error(&["repair", &server.url("text"), "--output", &format!("{out}2")], 1);
    assert!(found.contains(&server.url("text")) && found.contains("a text file"), "{found}");

    // One changed byte of a chunk, and one missing file of a directory.
    let mut changed = content;
    changed[1000] ^= 1;
    server.put("a.b2nd", changed);
    let found = error(&["checksums", &url, "--verify"], 1);
    assert!(found.contains("checksum of a chunk") && found.contains(&url), "{found}");
    for (name, content) in files(&folder.path().join("directory.b2nd")) {
        if name != "00000003.chunk" {
            server.put(&format!("directory.b2nd/{name}"), content);
        }
    }
    let output = crate::common::blosc2(&["check", &server.url("directory.b2nd/")]);
    assert_eq!(output.status.code(), Some(1));
    let found = String::from_utf8(output.stdout).unwrap();
    assert!(found.contains("00000003.chunk: error [directory.missing]"), "{found}");
    let found = String::from_utf8(output.stderr).unwrap();
    assert!(found.contains("does not list the files"), "{found}");
}
