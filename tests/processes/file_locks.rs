//! Several processes on one frame: with locking, and when one of them is killed.
//!
//! Each test starts this program again as the second process.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use blosc2::repair::{Repaired, repair};
use blosc2::{CParams, Codec, OpenOptions, SChunk, Target};

use crate::common::{FOLDER, Rng, VARIABLES, own_process, python};

/// Items of a chunk.
const ITEMS: usize = 500;
/// The environment variable with the role of the other process.
const ROLE: &str = "BLOSC2_TEST_ROLE";

/// The duration of concurrent work of the processes: 2 seconds, or as the environment sets it.
fn duration() -> Duration {
    let seconds = env::var("BLOSC2_TEST_SECONDS").map(|text| text.parse().unwrap());
    Duration::from_secs(seconds.unwrap_or(2))
}

/// Starts this test in a second process, with the folder and its role in the environment.
pub(super) fn beside(test: &str, folder: &Path, role: &str) -> Child {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args([test, "--nocapture", "--test-threads=1"]);
    command.env(FOLDER, folder).env(ROLE, role).stdout(Stdio::piped()).stderr(Stdio::piped());
    for (name, _) in VARIABLES {
        command.env_remove(name);
    }
    command.spawn().unwrap()
}

/// Starts a process that changes the frame at `path`, and kills it at a random moment after its first change.
pub(super) fn kill(path: &Path, start: impl FnOnce() -> Child, rng: &mut Rng) {
    let index = if path.is_dir() { path.join("chunks.b2frame") } else { path.to_owned() };
    let look = || fs::metadata(&index).ok().map(|found| (found.len(), found.modified().unwrap()));
    let before = look();
    let mut writer = start();
    let end = Instant::now() + Duration::from_secs(60);
    while look() == before {
        assert!(writer.try_wait().unwrap().is_none(), "the writer failed");
        assert!(Instant::now() < end, "the writer changes nothing");
        thread::sleep(Duration::from_millis(5));
    }
    thread::sleep(Duration::from_micros(rng.below(20_000)));
    assert!(writer.try_wait().unwrap().is_none(), "the writer failed");
    writer.kill().unwrap();
    writer.wait().unwrap();
}

pub(super) fn role() -> String {
    env::var(ROLE).unwrap()
}

/// Waits for a process, which has to have succeeded.
fn finished(child: Child) -> String {
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    text.into_owned()
}

pub(super) fn params() -> CParams {
    CParams::new().codec(Codec::BloscLz).typesize(4)
}

/// The chunk of a number, in this version of it.
pub(super) fn chunk(number: u32, version: u32) -> Vec<u32> {
    (0..ITEMS as u32).map(|at| number * 1000 + version + ((at % 7) << 24)).collect()
}

/// The version of a chunk, all of whose items have to be of the same one.
pub(super) fn version(number: u32, found: &[u32], what: &str) -> u32 {
    let version = found[0].wrapping_sub(number * 1000);
    assert!(version < 1000 && found == chunk(number, version), "{what}: chunk {number} is mixed");
    version
}

/// Both ways in which a frame is stored.
pub(super) const KINDS: [(&str, bool); 2] = [("a.b2frame", false), ("a.directory", true)];

pub(super) fn locked() -> OpenOptions {
    OpenOptions::new().write(true).locking(true)
}

pub(super) fn make(path: &Path, directory: bool) {
    let options = OpenOptions::new().create_new(true).locking(true).cparams(params());
    drop(options.open(Target::from(path).directory(directory)).unwrap());
}

/// Appends chunks until the file `stop` exists, and replaces the first one regularly. Returns the number of chunks.
fn write_until_stopped(path: &Path, stop: &Path) -> u32 {
    let mut schunk = locked().open(path).unwrap();
    let mut count = 0;
    while !stop.exists() {
        schunk.append(&chunk(count, 0)).unwrap();
        count += 1;
        if count % 5 == 0 {
            schunk.replace(0, &chunk(0, count / 5 % 1000)).unwrap();
        }
    }
    count
}

/// Reads for the duration of the test, and asserts that each chunk is one that was written.
fn read_for_a_while(path: &Path) -> usize {
    let (end, mut rng) = (Instant::now() + duration(), Rng(1));
    let mut kept = OpenOptions::new().locking(true).open(path).unwrap();
    let (mut count, mut looks) = (0, 0);
    while Instant::now() < end || looks < 10 {
        // A handle that stays, and one that is opened now.
        let new;
        let schunk = if looks % 4 == 3 {
            new = OpenOptions::new().locking(true).open(path).unwrap();
            &new
        } else {
            kept.refresh().unwrap();
            &kept
        };
        let found = schunk.nchunks();
        assert!(found >= count, "{found} chunks after {count}");
        count = found;
        for _ in 0..5.min(count) {
            let number = rng.below(count as u64) as usize;
            let items = schunk.decompress_chunk::<u32>(number).unwrap();
            let version = version(number as u32, &items, "reading");
            assert!(version == 0 || number == 0);
        }
        if count > 2 {
            // Items across chunks.
            let start = (count as u64 - 2) * ITEMS as u64;
            let items = schunk.read::<u32>(start..start + 2 * ITEMS as u64).unwrap();
            let expected = [chunk(count as u32 - 2, 0), chunk(count as u32 - 1, 0)].concat();
            assert!(items == expected, "the last two of {count} chunks");
        }
        looks += 1;
    }
    count
}

#[test]
fn what_another_process_reads_is_always_what_was_written_so_far() {
    let test = "what_another_process_reads_is_always_what_was_written_so_far";
    if let Some(folder) = own_process() {
        write_until_stopped(&folder.join(role()), &folder.join("stop"));
        return;
    }
    for (name, directory) in KINDS {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        make(&path, directory);
        let writer = beside(test, folder.path(), name);
        let mut count = read_for_a_while(&path);
        // However slow the machine is.
        while count < 3 {
            thread::sleep(Duration::from_millis(10));
            count = SChunk::open(&path).map_or(0, |schunk| schunk.nchunks());
        }
        fs::write(folder.path().join("stop"), b"").unwrap();
        finished(writer);
        let all = SChunk::open(&path).unwrap();
        assert!(all.nchunks() >= count);
        for number in 0..all.nchunks() {
            version(number as u32, &all.decompress_chunk::<u32>(number).unwrap(), "at the end");
        }
    }
}

#[test]
fn two_processes_that_append_lose_nothing() {
    const CHUNKS: u32 = 60;
    let test = "two_processes_that_append_lose_nothing";
    let append = |path: &Path, who: u32| {
        let mut schunk = locked().open(path).unwrap();
        for number in 0..CHUNKS {
            schunk.append(&chunk(1000 * who + number, 0)).unwrap();
            let name = format!("of {who}");
            schunk.vlmeta_mut().set(&name, &[number as u8; 40]).unwrap();
        }
    };
    if let Some(folder) = own_process() {
        return append(&folder.join(role()), 2);
    }
    for (name, directory) in KINDS {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        make(&path, directory);
        let other = beside(test, folder.path(), name);
        append(&path, 1);
        finished(other);
        let schunk = SChunk::open(&path).unwrap();
        let mut next = [0, 0];
        for index in 0..schunk.nchunks() {
            let items = schunk.decompress_chunk::<u32>(index).unwrap();
            let who = (items[0] / 1_000_000) as usize;
            assert_eq!(items, chunk(1000 * who as u32 + next[who - 1], 0), "{index} of {name}");
            next[who - 1] += 1;
        }
        assert_eq!(next, [CHUNKS; 2], "{name}");
        for name in ["of 1", "of 2"] {
            assert_eq!(schunk.vlmeta().get(name).unwrap(), Some(vec![CHUNKS as u8 - 1; 40]));
        }
        assert_eq!(repair(&path).unwrap(), Repaired::Sound);
    }
}

/// Python code that writes with the same lock.
const WRITE: &str = r#"
import os, sys
import numpy as np
import blosc2
path, stop = sys.argv[1:]
schunk = blosc2.open(path, mode="a", locking=True)
at = np.arange(500, dtype="u4")
count = 0
while not os.path.exists(stop):
    schunk.append_data(np.uint32(count * 1000) + (at % 7 << 24))
    count += 1
"#;
const READ: &str = r#"
import sys, time
import numpy as np
import blosc2
path, seconds = sys.argv[1], float(sys.argv[2])
schunk = blosc2.open(path, mode="r", locking=True)
at = np.arange(500, dtype="u4")
end, count = time.time() + seconds, 0
while time.time() < end or count < 3:
    if count % 4 == 3:
        schunk = blosc2.open(path, mode="r", locking=True)
    schunk.refresh()
    found = schunk.nchunks
    assert found >= count, (found, count)
    count = found
    for number in range(max(count - 3, 1), count):
        expected = np.uint32(number * 1000) + (at % 7 << 24)
        data = np.frombuffer(schunk.decompress_chunk(number), dtype="u4")
        assert np.array_equal(data, expected), number
print(count)
"#;

/// Python with a script, beside this process.
fn python_beside(script: &str, folder: &Path, arguments: &[&str]) -> Child {
    let file = folder.join("script_of_this_test.py");
    fs::write(&file, script).unwrap();
    let mut command = Command::new(python());
    command.arg("-I").arg(&file).args(arguments).current_dir(folder);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    for (name, _) in VARIABLES {
        command.env_remove(name);
    }
    command.spawn().unwrap()
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn python_reads_what_is_being_written() {
    for (name, directory) in KINDS {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        make(&path, directory);
        let seconds = duration().as_secs().to_string();
        let reader = python_beside(READ, folder.path(), &[name, &seconds]);
        let (stop, path) = (folder.path().join("stop"), path.clone());
        let writer = thread::spawn({
            let (path, stop) = (path.clone(), stop.clone());
            move || write_until_stopped(&path, &stop)
        });
        let output = reader.wait_with_output().unwrap();
        fs::write(&stop, b"").unwrap();
        let written = writer.join().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {errors}");
        let read: u32 = String::from_utf8_lossy(&output.stdout).trim().parse().unwrap();
        assert!((3..=written).contains(&read), "{name}: {read} of {written}");
    }
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn what_python_is_writing_is_read() {
    for (name, directory) in KINDS {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        make(&path, directory);
        let writer = python_beside(WRITE, folder.path(), &[name, "stop"]);
        let mut count = read_for_a_while(&path);
        while count < 3 {
            thread::sleep(Duration::from_millis(10));
            let open = OpenOptions::new().locking(true).open(&path);
            count = open.unwrap().nchunks();
        }
        fs::write(folder.path().join("stop"), b"").unwrap();
        finished(writer);
        assert!(SChunk::open(&path).unwrap().nchunks() >= count);
    }
}

/// Changes the file until the process is killed: readers find each chunk whole.
fn change_until_killed(path: &Path, locking: bool) {
    let mut schunk = OpenOptions::new().write(true).locking(locking).open(path).unwrap();
    let mut rng = Rng(u64::from(std::process::id()));
    loop {
        let count = schunk.nchunks();
        let index = rng.below(count.max(1) as u64) as usize;
        match rng.below(6) {
            0 if count > 40 => schunk.remove(count - 1).unwrap(),
            1 => schunk.vlmeta_mut().set("n", &vec![7; rng.below(300) as usize]).unwrap(),
            2 | 3 if count > 0 => {
                schunk.replace(index, &chunk(index as u32, rng.below(1000) as u32)).unwrap();
            }
            _ => schunk.append(&chunk(count as u32, 0)).unwrap(),
        }
    }
}

#[test]
fn a_writer_that_is_killed_leaves_a_frame_or_what_repair_takes_back() {
    let test = "a_writer_that_is_killed_leaves_a_frame_or_what_repair_takes_back";
    if let Some(folder) = own_process() {
        let role = role();
        let (name, locking) = role.split_once(' ').unwrap();
        return change_until_killed(&folder.join(name), locking == "locking");
    }
    let mut rng = Rng(5);
    for ((name, directory), locking) in KINDS
        .into_iter()
        .zip(["locking", "alone"])
        .chain(KINDS.into_iter().zip(["alone", "locking"]))
    {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        make(&path, directory);
        for round in 0..12 {
            let what = format!("{name}, {locking}, killed {round} times");
            let role = format!("{name} {locking}");
            if round % 2 == 0 {
                kill(&path, || beside(test, folder.path(), &role), &mut rng);
            } else {
                // Also while it starts.
                let mut writer = beside(test, folder.path(), &role);
                thread::sleep(Duration::from_millis(20 + rng.below(60)));
                writer.kill().unwrap();
                writer.wait().unwrap();
            }
            let is_marked = SChunk::open(&path).is_err();
            assert!(!directory || !is_marked, "{what}");
            match repair(&path).unwrap() {
                Repaired::Sound => assert!(!is_marked, "{what}"),
                Repaired::RolledBack | Repaired::Completed => assert!(is_marked, "{what}"),
                other => panic!("{what}: {other:?}"),
            }
            let schunk = SChunk::open(&path).unwrap();
            for number in 0..schunk.nchunks() {
                version(number as u32, &schunk.decompress_chunk::<u32>(number).unwrap(), &what);
            }
            assert!(schunk.vlmeta().get("n").unwrap().is_none_or(|note| !note.contains(&0)));
        }
        let schunk = SChunk::open(&path).unwrap();
        assert!(schunk.nchunks() > 0, "{name}: nothing was written");
    }
}
