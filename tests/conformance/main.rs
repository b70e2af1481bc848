//! The conformance matrix: each writer writes the objects of one table, and each reader reads them.
//!
//! `cargo xtask conformance` runs it and writes `docs/reports/CONFORMANCE.md`, which describes what is compared. The table is in
//! `table.rs`, the facts that are compared are in `object.rs`, and the reasons for empty cells in `excuses.rs`.

#[path = "../common/mod.rs"]
mod common;

mod c;
mod containers;
mod excuses;
mod format;
mod object;
mod python;
mod report;
mod table;
mod wrapper;

use std::collections::BTreeMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value as Json;

use excuses::Excuse;
use object::{Facts, Kind, Object, SIDES, Side, ZLIB};
use report::{Cells, SameBytes};
use table::Table;

/// The outcome of writing or reading.
type Outcome<T> = std::result::Result<T, String>;

/// An object and its writer.
type Written = (usize, Side);

/// The least number of cases, below which a part of the table is lost.
const LEAST: usize = 15_000;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let (mut check, mut only) = (false, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--check" => check = true,
            "--only" => only = Some(arguments.next().context("--only needs a part of a name")?),
            other => bail!("unknown argument {other}: expected --check or --only PART"),
        }
    }
    let start = Instant::now();
    let folder = tempfile::tempdir()?;
    let table = Table::new();
    let chosen = |object: &Object| {
        let row = &table.rows[object.row];
        let name = format!("{}: {}", row.section, row.name);
        only.as_ref().is_none_or(|only| name.contains(only))
    };
    let objects: Vec<&Object> = table.objects.iter().filter(|object| chosen(object)).collect();
    let matrix = Matrix::new(&objects, folder.path())?;
    let written = matrix.write()?;
    println!("conformance: written after {:.1} s", start.elapsed().as_secs_f64());
    let read = matrix.read(&written)?;
    println!("conformance: read after {:.1} s", start.elapsed().as_secs_f64());
    let cells = matrix.cells(&written, &read);
    let cases: usize = cells.values().map(|cell| cell.good).sum();
    let failed: Vec<_> = cells.iter().filter(|(_, cell)| !cell.failures.is_empty()).collect();
    for ((row, writer, reader), cell) in &failed {
        let (name, count) = (&table.rows[*row].name, cell.failures.len());
        println!("FAILED {name}, {} -> {}: {count} cases", writer.letter(), reader.letter());
        for failure in cell.failures.iter().take(3) {
            println!("    {failure}");
        }
    }
    println!(
        "conformance: {cases} cases of {} objects in {:.1} s",
        objects.len(),
        start.elapsed().as_secs_f64()
    );
    ensure!(failed.is_empty(), "{} cells of the conformance matrix fail", failed.len());
    if only.is_some() {
        return Ok(());
    }
    ensure!(cases >= LEAST, "{cases} cases, expected at least {LEAST}");
    let versions = versions()?;
    let report = report::report(&table, &cells, &matrix.same_bytes(&written)?, &versions)?;
    let path = blosc2_testing::root().join("docs/reports/CONFORMANCE.md");
    let old = fs::read_to_string(&path).unwrap_or_default();
    if old == report {
        println!("conformance: CONFORMANCE.md is up to date");
    } else if check {
        bail!("CONFORMANCE.md is stale: run `cargo xtask conformance` and commit the file");
    } else {
        fs::write(&path, report)
            .with_context(|| format!("{} cannot be written", path.display()))?;
        println!("conformance: CONFORMANCE.md is written");
    }
    Ok(())
}

/// A sentence with the versions of all programs.
fn versions() -> Result<String> {
    let python = python::version()?;
    let (python, wheel) = python.split_once(' ').context("Python prints two versions")?;
    let c = blosc2::library::c_version();
    Ok(format!(
        "B and C use C-Blosc2 {c}, F contains no C code, and P is python-blosc2 {python} with \
         C-Blosc2 {wheel}."
    ))
}

/// All objects, with their descriptions for Python.
struct Matrix<'t> {
    objects: &'t [&'t Object],
    for_python: Vec<Json>,
    folder: &'t Path,
}

impl<'t> Matrix<'t> {
    /// Writes the bytes of all objects to the blob.
    fn new(objects: &'t [&'t Object], folder: &'t Path) -> Result<Self> {
        let mut blob = Vec::new();
        let for_python = objects.iter().map(|object| object.to_json(&mut blob)).collect();
        fs::write(folder.join("blob"), blob)?;
        for side in SIDES {
            fs::create_dir(folder.join(side.letter()))?;
        }
        Ok(Self { objects, for_python, folder })
    }

    /// The work of Python: keys, descriptions and paths.
    fn python_work(&self, keys: &[Written]) -> Vec<Json> {
        let work = |&(index, writer): &Written| {
            let path = self.objects[index].path(self.folder, writer);
            serde_json::json!([[index, writer as usize], self.for_python[index], path])
        };
        keys.iter().map(work).collect()
    }

    /// Lets each side write all objects, also those that it cannot write.
    fn write(&self) -> Result<BTreeMap<Written, Outcome<()>>> {
        let all = 0..self.objects.len();
        let others = SIDES.into_iter().filter(|&side| side != Side::Python);
        let jobs: Vec<Written> =
            others.flat_map(|side| all.clone().map(move |index| (index, side))).collect();
        let for_python: Vec<Written> = all.map(|index| (index, Side::Python)).collect();
        let python = self.python_work(&for_python);
        thread::scope(|scope| {
            let python = scope.spawn(move || python::run("write", python, self.folder));
            let written = in_parallel(&jobs, |&(index, side)| {
                let object = self.objects[index];
                let path = object.path(self.folder, side);
                match side {
                    Side::Blosc2 => wrapper::write(object, &path),
                    Side::Format => format::write(object, &path),
                    Side::C => c::write(object, &path),
                    Side::Python => unreachable!(),
                }
            });
            let mut all: BTreeMap<_, _> = jobs.iter().copied().zip(written).collect();
            for (key, outcome) in python.join().expect("the thread does not panic")? {
                all.insert(key, outcome.map(drop));
            }
            Ok(all)
        })
    }

    /// Lets each side read everything that was written.
    fn read(
        &self,
        written: &BTreeMap<Written, Outcome<()>>,
    ) -> Result<BTreeMap<(Written, Side), Outcome<Facts>>> {
        let good: Vec<Written> =
            written.iter().filter(|(_, outcome)| outcome.is_ok()).map(|(key, _)| *key).collect();
        let others = SIDES.into_iter().filter(|&side| side != Side::Python);
        let jobs: Vec<(Written, Side)> =
            others.flat_map(|side| good.iter().map(move |key| (*key, side))).collect();
        let python = self.python_work(&good);
        thread::scope(|scope| {
            let python = scope.spawn(move || python::run("read", python, self.folder));
            let found = in_parallel(&jobs, |&((index, writer), reader)| {
                let object = self.objects[index];
                let path = object.path(self.folder, writer);
                match reader {
                    Side::Blosc2 => wrapper::read(object, &path),
                    Side::Format => format::read(object, &path),
                    Side::C => c::read(object, &path),
                    Side::Python => unreachable!(),
                }
            });
            let mut all: BTreeMap<_, _> = jobs.iter().copied().zip(found).collect();
            for (key, outcome) in python.join().expect("the thread does not panic")? {
                all.insert((key, Side::Python), outcome);
            }
            Ok(all)
        })
    }

    /// Compares what was found, and counts the cases of each cell.
    fn cells(
        &self,
        written: &BTreeMap<Written, Outcome<()>>,
        read: &BTreeMap<(Written, Side), Outcome<Facts>>,
    ) -> Cells {
        let mut cells = Cells::new();
        for (index, object) in self.objects.iter().enumerate() {
            let facts = object.facts();
            for writer in SIDES {
                for reader in SIDES {
                    let cell = cells.entry((object.row, writer, reader)).or_default();
                    let wrote = &written[&(index, writer)];
                    let found = read.get(&((index, writer), reader));
                    match judge(object, &facts, writer, reader, wrote, found) {
                        Ok(None) => cell.good += 1,
                        Ok(Some(reason)) => *cell.excuses.entry(reason).or_default() += 1,
                        Err(failure) => {
                            cell.failures.push(format!("{failure}; {}", object.describe()));
                        }
                    }
                }
            }
        }
        cells
    }

    /// Compares the files of the other writers with those of `blosc2`.
    fn same_bytes(&self, written: &BTreeMap<Written, Outcome<()>>) -> Result<SameBytes> {
        let mut same = SameBytes::new();
        for (index, object) in self.objects.iter().enumerate() {
            let is_compared =
                object.params.codec != ZLIB && !matches!(object.kind, Kind::Container(_));
            if !is_compared || written[&(index, Side::Blosc2)].is_err() {
                continue;
            }
            let ours = content(&object.path(self.folder, Side::Blosc2))?;
            for writer in [Side::Format, Side::Python, Side::C] {
                let excuse = excuses::cannot_read(Side::Blosc2, object, writer);
                let is_undefined = matches!(excuse, Some(Excuse::Undefined(_)))
                    || writer == Side::Python && excuses::has_index_of_blocks(object);
                if !is_undefined && written[&(index, writer)].is_ok() {
                    let (equal, all) = same.entry((object.row, writer)).or_default();
                    *all += 1;
                    let is_same = content(&object.path(self.folder, writer))? == ours;
                    *equal += usize::from(is_same);
                }
            }
        }
        Ok(same)
    }
}

/// The files of an object, with their names if it is a directory.
fn content(path: &Path) -> Result<Vec<(Option<PathBuf>, Vec<u8>)>> {
    if path.is_file() {
        return Ok(vec![(None, fs::read(path)?)]);
    }
    let files = common::listing(path).into_iter();
    files
        .map(|(file, _)| Ok((file.strip_prefix(path).ok().map(Path::to_path_buf), fs::read(file)?)))
        .collect()
}

/// The outcome of a case: `None` if it is good, the reason if it is excused, or the failure.
fn judge(
    object: &Object,
    facts: &Facts,
    writer: Side,
    reader: Side,
    wrote: &Outcome<()>,
    found: Option<&Outcome<Facts>>,
) -> Outcome<Option<&'static str>> {
    match (excuses::cannot_write(writer, object), wrote) {
        (Some(Excuse::Always(reason)), Ok(())) => {
            return Err(format!("it was written, in spite of the reason: {reason}"));
        }
        (Some(Excuse::Undefined(reason)), _)
        | (Some(Excuse::Always(reason) | Excuse::Sometimes(reason)), Err(_)) => {
            return Ok(Some(reason));
        }
        (None, Err(error)) => return Err(format!("not written: {error}")),
        (None | Some(Excuse::Sometimes(_)), Ok(())) => {}
    }
    let found = match found.ok_or("no answer")? {
        Ok(found) => compare(facts, found, excuses::unknown_facts(reader, object)),
        Err(error) => Err(error.clone()),
    };
    match (excuses::cannot_read(reader, object, writer), found) {
        (Some(Excuse::Always(reason)), Ok(())) => {
            Err(format!("it was read, in spite of the reason: {reason}"))
        }
        (Some(Excuse::Undefined(reason)), _)
        | (Some(Excuse::Always(reason) | Excuse::Sometimes(reason)), Err(_)) => Ok(Some(reason)),
        (None | Some(Excuse::Sometimes(_)), Ok(())) => Ok(None),
        (None, Err(error)) => Err(error),
    }
}

/// Compares the facts that were found with those that had to be.
fn compare(facts: &Facts, found: &Facts, unknown: &[&str]) -> Outcome<()> {
    for (name, expected) in facts.iter().filter(|(name, _)| !unknown.contains(&name.as_str())) {
        match found.get(name) {
            None => return Err(format!("{name} is missing")),
            Some(found) if found == expected => {}
            Some(found) => return Err(format!("{name}: found {found}, expected {expected}")),
        }
    }
    Ok(())
}

/// Does the work of all jobs in threads. A panic is an error of its job.
fn in_parallel<J: Sync, T: Send>(
    jobs: &[J],
    work: impl Fn(&J) -> Result<T> + Sync,
) -> Vec<Outcome<T>> {
    let next = AtomicUsize::new(0);
    let done: Vec<Mutex<Option<Outcome<T>>>> = jobs.iter().map(|_| Mutex::new(None)).collect();
    let threads = thread::available_parallelism().map_or(2, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(index) else { break };
                    let outcome = match catch_unwind(AssertUnwindSafe(|| work(job))) {
                        Ok(outcome) => outcome.map_err(|error| format!("{error:#}")),
                        Err(_) => Err("a panic".to_owned()),
                    };
                    *done[index].lock().unwrap() = Some(outcome);
                }
            });
        }
    });
    done.into_iter().map(|outcome| outcome.into_inner().unwrap().expect("each is done")).collect()
}
