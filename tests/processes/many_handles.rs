//! Random sequences of operations of several handles on one file, on several threads and in two processes. After each
//! sequence, the file has the results of all calls that succeeded.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, thread};

use blosc2::{CParams, Check, Codec, ErrorKind, OpenOptions, Result, SChunk, SaveOptions, Target};
use blosc2_testing::repeats;
use serde_json::{Value, json};

use crate::common::{FOLDER, Rng, VARIABLES, own_process};

/// Sequences in a long run.
const SEQUENCES: usize = 2000;
/// What a thread does in one of them.
const STEPS: usize = 12;
/// The file, a symbolic link to it, and a hard link to it.
const NAMES: [&str; 3] = ["a.b2frame", "link", "hard"];
const ITEMS: usize = 50;

/// A successful operation: its start and end in nanoseconds, and its number.
#[derive(Debug, Clone, Copy)]
struct Done {
    what: What,
    start: u64,
    end: u64,
    id: u32,
    /// Where a frame was appended to the file.
    offset: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    /// A chunk was appended.
    Append,
    /// The first chunk was replaced.
    Update,
    /// The file was replaced by one with a first chunk only.
    Replace,
    /// A frame was appended to the file.
    AppendFile,
}

const WHATS: [What; 4] = [What::Append, What::Update, What::Replace, What::AppendFile];

impl Done {
    fn to_json(self) -> Value {
        json!([self.what as u64, self.start, self.end, self.id, self.offset])
    }

    fn from_json(value: &Value) -> Self {
        let number = |index: usize| value[index].as_u64().unwrap();
        Self {
            what: WHATS[number(0) as usize],
            start: number(1),
            end: number(2),
            id: number(3) as u32,
            offset: number(4),
        }
    }
}

/// A clock that all processes share.
fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the system writes the time to a structure of its own type.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) }, 0);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn params() -> CParams {
    CParams::new().codec(Codec::BloscLz).typesize(4)
}

fn frame_of(id: u32) -> SChunk {
    let mut schunk = SChunk::in_memory::<u32>(&params()).unwrap();
    schunk.append(&[id; ITEMS]).unwrap();
    schunk
}

/// The number of a chunk, which has to be whole.
fn id_of(schunk: &SChunk, index: usize) -> Result<u32> {
    let items = schunk.decompress_chunk::<u32>(index)?;
    assert!(items.len() == ITEMS && items.iter().all(|item| *item == items[0]), "a mixed chunk");
    Ok(items[0])
}

/// Errors that concurrent calls may cause. All others are faults.
fn expected(error: &blosc2::Error) -> bool {
    use ErrorKind::*;
    let text = error.to_string();
    match error.kind() {
        Busy | ReadOnly | NotFound => true,
        // An appended frame follows, or the lock would not be visible through the hard link.
        InvalidArgument => text.contains("follow the frame") || text.contains("itself"),
        Unsupported => text.contains("hard links"),
        _ => false,
    }
}

/// The programs that use the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Setting {
    /// One program.
    Alone,
    /// One program, and the file has a hard link. It is not replaced, as the link would stay with the old one.
    HardLink,
    /// Several programs, which lock it.
    Locked,
}

/// What a thread does in a sequence.
fn work(folder: &Path, setting: Setting, rng: &mut Rng, first: u32) -> Vec<Done> {
    let locking = setting == Setting::Locked;
    let names = if setting == Setting::HardLink { 3 } else { 2 };
    let mut done = Vec::new();
    let mut handles: Vec<SChunk> = Vec::new();
    for id in first..first + STEPS as u32 {
        let path = folder.join(NAMES[rng.below(names) as usize]);
        let at = rng.below(handles.len().max(1) as u64) as usize;
        let start = now();
        let mut keep = |what, offset| done.push(Done { what, start, end: now(), id, offset });
        let result = (|| -> Result<()> {
            match rng.below(12) {
                0..3 => {
                    let locks = locking || rng.below(3) == 0;
                    let options = OpenOptions::new().locking(locks);
                    let options = match rng.below(4) {
                        0 => options,
                        1 => options.append(true),
                        _ => options.write(true),
                    };
                    let by_file = !locking && rng.below(4) == 0;
                    if handles.len() > 1 {
                        handles.swap_remove(at);
                    }
                    handles.push(match by_file {
                        true => {
                            let file = File::options().read(true).write(true).open(&path).unwrap();
                            let opened = file.try_clone().unwrap();
                            let handle = options.open(Target::storage(file))?;
                            // If it was replaced before, it is a file without a name, and
                            // its changes do not appear at the path.
                            if opened.metadata().unwrap().nlink() == 0 {
                                return Ok(());
                            }
                            handle
                        }
                        false => options.open(&path)?,
                    });
                }
                3 if setting != Setting::HardLink => {
                    SaveOptions::new().replace(true).save(&frame_of(id), &path)?;
                    keep(What::Replace, 0);
                }
                4 if rng.below(4) == 0 => {
                    let offset = SaveOptions::new().append(&frame_of(id), &path)?;
                    keep(What::AppendFile, offset);
                }
                _ if handles.is_empty() => {}
                3 | 4 => drop(handles.swap_remove(at)),
                5..9 => {
                    handles[at].append(&[id; ITEMS])?;
                    keep(What::Append, 0);
                }
                9 => {
                    handles[at].replace(0, &[id; ITEMS])?;
                    keep(What::Update, 0);
                }
                10 => drop(handles[at].refresh()?),
                _ => {
                    let count = handles[at].nchunks();
                    id_of(&handles[at], rng.below(count as u64) as usize)?;
                }
            }
            Ok(())
        })();
        if let Err(error) = result {
            assert!(expected(&error), "{error}");
        }
    }
    done
}

fn make(folder: &Path) {
    let path = folder.join(NAMES[0]);
    frame_of(0).save(&path).unwrap();
    std::os::unix::fs::symlink(&path, folder.join(NAMES[1])).unwrap();
}

/// Checks that the file holds what has succeeded.
fn check(folder: &Path, done: &[Done]) {
    let path = folder.join(NAMES[0]);
    let schunk = OpenOptions::new().check(Check::Content).open(&path).unwrap();
    let found: Vec<u32> =
        (0..schunk.nchunks()).map(|index| id_of(&schunk, index).unwrap()).collect();
    let of = |what: What| done.iter().copied().filter(move |each| each.what == what);
    let made = Done { what: What::Replace, start: 0, end: 0, id: 0, offset: 0 };
    let mut replaced: Vec<Done> = of(What::Replace).collect();
    replaced.push(made);
    let last = |each: &&Done| replaced.iter().all(|other| other.start <= each.end);
    let explains = |base: &Done| {
        let updates: Vec<Done> = of(What::Update).filter(|each| each.end > base.start).collect();
        let first = found[0];
        let by_update = updates.iter().any(|update| {
            update.id == first && updates.iter().all(|other| other.start <= update.end)
        });
        let by_base = first == base.id && updates.iter().all(|update| update.start <= base.end);
        let rest: BTreeSet<u32> = found[1..].iter().copied().collect();
        let all_there = of(What::Append)
            .filter(|each| each.start > base.end)
            .all(|each| rest.contains(&each.id));
        let known = rest
            .iter()
            .all(|id| of(What::Append).any(|each| each.id == *id && each.end > base.start));
        (by_update || by_base) && all_there && known && rest.len() == found.len() - 1
    };
    assert!(replaced.iter().filter(last).any(explains), "{found:?} after {done:#?}");
    for appended in of(What::AppendFile) {
        let gone = replaced.iter().any(|other| other.end > appended.start);
        if !gone {
            let second =
                OpenOptions::new().open(Target::from(&path).offset(appended.offset)).unwrap();
            assert_eq!(id_of(&second, 0).unwrap(), appended.id);
        }
    }
}

/// Runs the threads of a sequence.
fn on_threads(folder: &Path, setting: Setting, seed: u64, threads: u32, first: u32) -> Vec<Done> {
    thread::scope(|scope| {
        let all: Vec<_> = (0..threads)
            .map(|number| {
                let seed = seed * 100 + u64::from(first + number);
                scope.spawn(move || {
                    work(folder, setting, &mut Rng(seed), first + 1 + number * STEPS as u32)
                })
            })
            .collect();
        all.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn threads_of_one_program_lose_nothing() {
    let mut all = [0; 4];
    for seed in 0..repeats(SEQUENCES) as u64 {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        make(folder);
        let setting = [Setting::Alone, Setting::HardLink][seed as usize % 2];
        if setting == Setting::HardLink {
            fs::hard_link(folder.join(NAMES[0]), folder.join(NAMES[2])).unwrap();
        }
        let threads = [1, 2, 4][seed as usize % 3];
        let done = on_threads(folder, setting, seed, threads, 0);
        done.iter().for_each(|each| all[each.what as usize] += 1);
        check(folder, &done);
    }
    assert!(all.iter().all(|&count| count > 0), "{all:?}");
}

/// The other process: reads the number of a sequence and its folder, and writes what it has done.
fn serve() {
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let (seed, folder) = line.split_once(' ').unwrap();
        let seed: u64 = seed.parse().unwrap();
        let done = on_threads(Path::new(folder), Setting::Locked, seed, 2, 1000);
        let done: Vec<Value> = done.into_iter().map(Done::to_json).collect();
        println!("done {}", Value::from(done));
    }
}

#[test]
fn two_programs_that_lock_a_file_lose_nothing() {
    if own_process().is_some() {
        return serve();
    }
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["two_programs_that_lock_a_file_lose_nothing", "--nocapture"]);
    command.env(FOLDER, PathBuf::new().join(".")).stdin(Stdio::piped()).stdout(Stdio::piped());
    for (name, _) in VARIABLES {
        command.env_remove(name);
    }
    let mut other = command.spawn().unwrap();
    let mut to = other.stdin.take().unwrap();
    let mut from = BufReader::new(other.stdout.take().unwrap()).lines();
    for seed in 0..repeats(SEQUENCES) as u64 {
        let folder = tempfile::tempdir().unwrap();
        make(folder.path());
        // The file has a lock from the start, which is taken then also where it is replaced.
        drop(OpenOptions::new().locking(true).open(folder.path().join(NAMES[0])).unwrap());
        writeln!(to, "{seed} {}", folder.path().display()).unwrap();
        let mut done = on_threads(folder.path(), Setting::Locked, seed + 1_000_000, 2, 0);
        let line = from
            .by_ref()
            .map(|line| line.unwrap())
            .find_map(|line| line.split_once("done ").map(|(_, text)| text.to_owned()));
        let theirs: Value = serde_json::from_str(&line.expect("the other process failed")).unwrap();
        done.extend(theirs.as_array().unwrap().iter().map(Done::from_json));
        check(folder.path(), &done);
    }
    drop(to);
    assert!(other.wait().unwrap().success());
}
