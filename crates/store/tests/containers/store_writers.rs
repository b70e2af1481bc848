//! Several writers of one store, in threads and in processes, and writers that are killed.
//!
//! The tests with processes start this program again.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{env, thread};

use blosc2::{ErrorKind, NDArray, Result};
use blosc2_store::{EmbedStore, TreeStore};

use crate::common::{FOLDER, Rng, own_process, repeats, run_python};

/// The three kinds of stores.
const STORES: [&str; 3] = ["a.b2d", "a.b2z", "a.b2e"];
/// The environment variables of the other process: what it does, and with which store.
const ROLE: &str = "BLOSC2_TEST_ROLE";
const STORE: &str = "BLOSC2_TEST_STORE";

fn array(items: &[i32]) -> NDArray {
    NDArray::from_slice(items, items.len()).unwrap()
}

/// A store of any kind.
enum Store {
    Tree(Box<TreeStore>),
    Embed(Box<EmbedStore>),
}

type Content = BTreeMap<String, Vec<i32>>;

impl Store {
    fn create(path: &Path) -> Self {
        match path.extension().unwrap().to_str() {
            Some("b2e") => Self::Embed(Box::new(EmbedStore::create(path).unwrap())),
            _ => {
                let mut store = TreeStore::create(path).unwrap();
                store.finish().unwrap();
                Self::Tree(Box::new(store))
            }
        }
    }

    fn open_rw(path: &Path) -> Result<Self> {
        match path.extension().unwrap().to_str() {
            Some("b2e") => EmbedStore::open_rw(path).map(|store| Self::Embed(Box::new(store))),
            _ => TreeStore::open_rw(path).map(|store| Self::Tree(Box::new(store))),
        }
    }

    fn insert(&mut self, key: &str, items: &[i32]) -> Result<()> {
        match self {
            Self::Embed(store) => store.insert(key, array(items).schunk()),
            Self::Tree(store) => {
                store.insert(key, array(items).schunk())?;
                store.finish()
            }
        }
    }

    fn remove(&mut self, key: &str) -> Result<()> {
        match self {
            Self::Embed(store) => store.remove(key),
            Self::Tree(store) => {
                store.remove(key)?;
                store.finish()
            }
        }
    }

    fn contains(&self, key: &str) -> bool {
        match self {
            Self::Embed(store) => store.contains(key),
            Self::Tree(store) => store.contains(key),
        }
    }
}

/// The content as a reader finds it.
fn content(path: &Path) -> Result<Content> {
    let read = |object: blosc2_store::Object| object.into_ndarray()?.read::<Vec<i32>>(..);
    let mut content = Content::new();
    if path.extension().unwrap() == "b2e" {
        let store = EmbedStore::open(path)?;
        for key in store.keys() {
            content.insert(key.to_owned(), read(store.get(key)?)?);
        }
    } else {
        let store = TreeStore::open(path)?;
        for key in store.keys() {
            content.insert(key.to_owned(), read(store.get(key)?)?);
        }
    }
    Ok(content)
}

/// Starts this test in another process.
fn beside(test: &str, folder: &Path, store: &str, role: &str) -> Child {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args([test, "--nocapture", "--test-threads=1", "--include-ignored"]);
    command.env(FOLDER, folder).env(ROLE, role).env(STORE, store);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// What one of two writers does: changes its keys one after the other, and repeats a change for which the store is busy.
/// Returns what its keys have to contain then.
fn write(path: &Path, who: u32) -> Content {
    let mut own = Content::new();
    for at in 0..repeats(400) {
        let key = format!("/writer{who}/{}", at % 10);
        let items = [at as i32, who as i32];
        let stored = loop {
            let stored = Store::open_rw(path).and_then(|mut store| {
                for key in own.keys() {
                    assert!(store.contains(key), "{path:?}: {key} of a former change is lost");
                }
                if at % 7 == 6 && own.contains_key(&key) {
                    return store.remove(&key).map(|()| false);
                }
                store.insert(&key, &items).map(|()| true)
            });
            match stored {
                Ok(stored) => break stored,
                Err(error) if error.kind() == ErrorKind::Busy => {
                    thread::sleep(Duration::from_micros(300));
                }
                Err(error) => panic!("{path:?}: {error}"),
            }
        };
        if stored {
            own.insert(key, items.to_vec())
        } else {
            own.remove(&key)
        };
    }
    own
}

#[test]
fn no_change_of_two_threads_is_lost() {
    for store in STORES {
        for _ in 0..repeats(20) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join(store);
            drop(Store::create(&path));
            let mut expected = Content::new();
            thread::scope(|scope| {
                let writers = [0, 1].map(|who| {
                    scope.spawn({
                        let path = &path;
                        move || write(path, who)
                    })
                });
                for writer in writers {
                    expected.extend(writer.join().unwrap());
                }
            });
            assert_eq!(content(&path).unwrap(), expected, "{store}");
            only_the_store_is_left(folder.path(), store);
        }
    }
}

/// Checks that nothing but the store and the lock of an embedded store is in a folder.
fn only_the_store_is_left(folder: &Path, store: &str) {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    let lock = format!("{store}.b2lock");
    let is_expected = |name: &String| name == store || *name == lock && store == "a.b2e";
    assert!(names.iter().all(is_expected), "{names:?}");
}

#[test]
fn no_change_of_two_processes_is_lost() {
    let test = "store_writers::no_change_of_two_processes_is_lost";
    if let Some(folder) = own_process() {
        let who = env::var(ROLE).unwrap();
        let own = write(&folder.join(env::var(STORE).unwrap()), who.parse().unwrap());
        fs::write(folder.join(format!("own{who}")), serde_json::to_string(&own).unwrap()).unwrap();
        return;
    }
    for store in STORES {
        for _ in 0..repeats(20) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join(store);
            drop(Store::create(&path));
            let writers = ["0", "1"].map(|who| beside(test, folder.path(), store, who));
            for writer in writers {
                let output = writer.wait_with_output().unwrap();
                let text = String::from_utf8_lossy(&output.stdout);
                let errors = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "{store}: {text}{errors}");
            }
            let mut expected = Content::new();
            for who in 0..2 {
                let file = folder.path().join(format!("own{who}"));
                let own = fs::read_to_string(&file).unwrap();
                expected.extend(serde_json::from_str::<Content>(&own).unwrap());
                fs::remove_file(file).unwrap();
            }
            assert_eq!(content(&path).unwrap(), expected, "{store}");
            only_the_store_is_left(folder.path(), store);
        }
    }
}

#[test]
fn of_two_writers_the_second_gets_an_error_at_once() {
    let test = "store_writers::of_two_writers_the_second_gets_an_error_at_once";
    if let Some(folder) = own_process() {
        let error = TreeStore::open_rw(folder.join(env::var(STORE).unwrap())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
        return;
    }
    for store in ["a.b2d", "a.b2z"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(store);
        let mut one = TreeStore::create(&path).unwrap();
        one.finish().unwrap();
        for _ in 0..2 {
            let error = TreeStore::open_rw(&path).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Busy);
            assert!(error.to_string().contains("has it open for changing"), "{error}");
            let output = beside(test, folder.path(), store, "").wait_with_output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
            // Readers are not affected.
            assert!(TreeStore::open(&path).unwrap().is_empty());
            drop(one);
            one = TreeStore::open_rw(&path).unwrap();
        }
    }
}

/// The content after the first changes of a writer that is killed.
fn after(changes: usize) -> Content {
    let mut content = Content::new();
    for at in 0..changes {
        match change(at) {
            (key, Some(items)) => content.insert(key, items),
            (key, None) => content.remove(&key),
        };
    }
    content
}

/// A change: the key with its new items, or without an entry.
fn change(at: usize) -> (String, Option<Vec<i32>>) {
    let key = |at: usize| format!("/group{}/k{}", at % 3, at % 5);
    // What is removed was inserted by the change before.
    if at % 4 == 3 { (key(at - 1), None) } else { (key(at), Some(vec![at as i32; 1 + at % 900])) }
}

/// Changes a store in a folder until it is killed, and writes the number of each complete change to a file.
fn change_until_killed(folder: &Path) {
    let path = &folder.join(env::var(STORE).unwrap());
    let first: usize = env::var(ROLE).unwrap().parse().unwrap();
    let mut log = File::options().append(true).create(true).open(folder.join("log")).unwrap();
    writeln!(log, "{first}").unwrap();
    for at in first.. {
        let mut store = Store::open_rw(path).unwrap();
        match change(at) {
            (key, Some(items)) => store.insert(&key, &items).unwrap(),
            (key, None) => store.remove(&key).unwrap(),
        }
        drop(store);
        writeln!(log, "{}", at + 1).unwrap();
    }
}

/// Kills a writer at random moments. Returns copies of the store with their expected content.
fn kill(test: &str, store: &str, folder: &Path, rounds: usize) -> Vec<(PathBuf, Content)> {
    let (path, log) = (folder.join(store), folder.join("log"));
    drop(Store::create(&path));
    let mut rng = Rng(rounds as u64);
    let (mut first, mut copies, mut cut) = (0, Vec::new(), 0);
    for round in 0..rounds {
        let mut child = beside(test, folder, store, &first.to_string());
        let count = || fs::read_to_string(&log).unwrap_or_default().lines().count();
        while count() == 0 {
            assert!(child.try_wait().unwrap().is_none(), "the writer has ended");
            thread::sleep(Duration::from_micros(100));
        }
        thread::sleep(Duration::from_micros(rng.below(100_000)));
        child.kill().unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(!output.status.success());
        let text = fs::read_to_string(&log).unwrap();
        fs::remove_file(&log).unwrap();
        let done: usize = text.lines().last().unwrap().parse().unwrap();
        let mut found = content(&path);
        if found.as_ref().is_err_and(|error| error.kind() == ErrorKind::Unfinished) {
            // A frame is changed in place, and the next writer recovers it.
            assert_eq!(store, "a.b2e");
            drop(Store::open_rw(&path).unwrap());
            found = content(&path);
        }
        let found = found.unwrap();
        first = match (found == after(done), found == after(done + 1)) {
            (true, _) => done,
            (_, true) => done + 1,
            _ => panic!("round {round}: after {done} changes: {:?}", found.keys()),
        };
        cut += first - done;
        let copy = folder.join(format!("{round}.{}", path.extension().unwrap().to_str().unwrap()));
        copy_all(&path, &copy);
        copies.push((copy, found));
        // The next writer has to remove what is left.
        drop(Store::open_rw(&path).unwrap());
        let left = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let left: Vec<_> = left.filter(|name| name.to_string_lossy().contains("work")).collect();
        assert!(left.is_empty(), "{left:?}");
    }
    println!("{store}: {rounds} writers killed in {first} changes, {cut} of them unnoticed");
    copies
}

fn copy_all(from: &Path, to: &Path) {
    if from.is_file() {
        fs::copy(from, to).unwrap();
        return;
    }
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        copy_all(&entry.path(), &to.join(entry.file_name()));
    }
}

#[test]
fn a_killed_writer_leaves_the_state_before_or_after() {
    let test = "store_writers::a_killed_writer_leaves_the_state_before_or_after";
    if let Some(folder) = own_process() {
        return change_until_killed(&folder);
    }
    for store in STORES {
        let folder = tempfile::tempdir().unwrap();
        kill(test, store, folder.path(), repeats(100));
    }
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn python_reads_what_a_killed_writer_leaves() {
    let test = "store_writers::python_reads_what_a_killed_writer_leaves";
    if let Some(folder) = own_process() {
        return change_until_killed(&folder);
    }
    for store in STORES {
        let folder = tempfile::tempdir().unwrap();
        let copies = kill(test, store, folder.path(), repeats(100));
        let expected: BTreeMap<String, &Content> = copies
            .iter()
            .map(|(path, content)| (path.file_name().unwrap().to_str().unwrap().into(), content))
            .collect();
        let expected = serde_json::to_string(&expected).unwrap();
        fs::write(folder.path().join("expected.json"), expected).unwrap();
        let script = r#"
import json
import blosc2

with open("expected.json") as file:
    expected = json.load(file)
for name, content in expected.items():
    store = blosc2.open(name, mode="r")
    groups = {key.rpartition("/")[0] for key in content} if not name.endswith(".b2e") else set()
    assert set(store.keys()) == set(content) | groups, (name, sorted(store.keys()))
    for key, items in content.items():
        assert store[key][:].tolist() == items, (name, key)
    # Python can continue to change it.
    if name.endswith(".b2e"):
        store = blosc2.EmbedStore(name, mode="a")
        store["/python"] = blosc2.arange(3)
    else:
        with blosc2.TreeStore(name, mode="a") as store:
            store["/python"] = blosc2.arange(3)
"#;
        run_python(script, folder.path(), &[]);
        for (path, expected) in copies {
            let mut found = if path.extension().unwrap() == "b2e" {
                let store = EmbedStore::open(&path).unwrap();
                store.keys().map(str::to_owned).collect::<Vec<_>>()
            } else {
                TreeStore::open(&path).unwrap().keys().map(str::to_owned).collect()
            };
            found.retain(|key| key != "/python");
            found.sort();
            assert!(found.iter().eq(expected.keys()), "{path:?}");
        }
    }
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn python_with_locking_waits_for_a_writer_and_finds_its_changes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.b2d");
    let mut store = TreeStore::create(&path).unwrap();
    store.insert("/first", array(&[1]).schunk()).unwrap();
    drop(store);
    let script = r#"
import sys
import blosc2

store = blosc2.TreeStore("a.b2d", mode="a", locking=True)
assert list(store.keys()) == ["/first"]
print("ready", flush=True)
sys.stdin.readline()
# Rust has the store open: this access waits until it is closed.
print("asking", flush=True)
assert sorted(store.keys()) == ["/first", "/second"], sorted(store.keys())
assert store["/second"][:].tolist() == [2, 3]
store["/third"] = blosc2.arange(3)
print("done", flush=True)
"#;
    fs::write(folder.path().join("script.py"), script).unwrap();
    let mut command = Command::new(crate::common::python());
    command.arg("-I").arg("script.py").current_dir(folder.path());
    let mut python = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(python.stdout.take().unwrap()));
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    let mut store = TreeStore::open_rw(&path).unwrap();
    store.insert("/second", array(&[2, 3]).schunk()).unwrap();
    python.stdin.take().unwrap().write_all(b"go\n").unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "asking");
    // Time for an access that does not wait.
    thread::sleep(Duration::from_millis(300));
    assert!(store.keys().eq(["/first", "/second"]));
    assert!(!path.join("third.b2nd").exists());
    drop(store);
    assert_eq!(lines.next().unwrap().unwrap(), "done");
    assert!(python.wait().unwrap().success());
    assert!(TreeStore::open(&path).unwrap().keys().eq(["/first", "/second", "/third"]));
}
