//! Measures this crate and other libraries on real data. `cargo xtask bench real` runs it.
//!
//! Arguments: the folder of the sets, the folder of the results, and the Python and the script of the other libraries.
//! Without the feature `peers` it only checks that it works: it measures the default settings of this crate.

#[cfg(feature = "peers")]
mod columns;
mod large;
mod library;
mod lossy;
#[allow(dead_code, reason = "the other comparison uses more of it")]
#[path = "../../../bench/compare/machine.rs"]
mod machine;
mod measure;
#[cfg(feature = "peers")]
mod npy;
mod ours;
mod peak;
#[cfg(feature = "peers")]
mod remote;
mod set;
mod suggest;
#[cfg(feature = "peers")]
mod zarr;

use std::io::{BufRead, BufReader, Write};
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs};

use serde_json::{Value, json};

use crate::library::Library;
use crate::set::Set;

/// Whether only the default settings of this crate are measured.
const IS_QUICK: bool = cfg!(not(feature = "peers"));
/// After this time, no measurement of a set starts.
const LIMIT: Duration = Duration::from_secs(33 * 60);

/// The settings of all libraries of this program that can store the set.
fn libraries(set: &Set) -> Vec<Box<dyn Library>> {
    let mut all = Vec::<Box<dyn Library>>::new();
    ours::Ours::all(set.itemsize).into_iter().for_each(|it| all.push(Box::new(it)));
    if !all.iter().any(|library| library.is_default()) {
        all.push(Box::new(ours::Ours::default_settings()));
    }
    #[cfg(feature = "peers")]
    add_peers(set, &mut all);
    all
}

#[cfg(feature = "peers")]
fn add_peers(set: &Set, all: &mut Vec<Box<dyn Library>>) {
    ours::Ours::more(set).into_iter().for_each(|it| all.push(Box::new(it)));
    zarr::Zarrs::all(set).into_iter().for_each(|it| all.push(Box::new(it)));
    [1, 3, 9, 19].into_iter().for_each(|level| all.push(Box::new(npy::Npy(level))));
    if set.has_columns() {
        columns::Parquet::all().into_iter().for_each(|it| all.push(Box::new(it)));
    }
}

/// The number of cores, for the facts about the machine.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn main() {
    let args: Vec<String> = env::args().skip(1).collect();
    if args.first().is_some_and(|arg| arg == peak::CHILD) {
        return peak::child(&args[1..]);
    }
    if args.first().is_some_and(|arg| arg == large::CHILD) {
        return large::child(&args[1..]);
    }
    let [folder, target, python, script] = &args[..4] else { panic!("too few arguments") };
    let (folder, target) = (Path::new(folder), Path::new(target));
    // Files in memory, so that the speed of the disk is not part of the times.
    let shared = Path::new("/dev/shm");
    let work = if shared.is_dir() { shared.to_owned() } else { target.to_owned() };
    let work = work.join(format!("blosc2-bench-real-{}", std::process::id()));
    fs::create_dir_all(&work).expect("a folder");
    let (started, mut machine) = (Instant::now(), machine::facts());
    let sets = Set::all(folder);
    let bytes = |sets: &[Set]| sets.iter().map(|set| set.items.len()).sum::<usize>();
    let mut all = Results::default();
    for (index, set) in sets.iter().enumerate() {
        if started.elapsed() > LIMIT {
            all.failures.push(json!({"set": set.name, "error": "the time was over"}));
        } else {
            // A set that fails does not lose the results of the others.
            let one = || one(set, folder, &work, [python, script], &mut all);
            match panic::catch_unwind(AssertUnwindSafe(one)) {
                Ok(()) => {}
                Err(_) => {
                    // What it left must not disturb the next one.
                    fs::remove_dir_all(&work).expect("the folder can be removed");
                    fs::create_dir_all(&work).expect("a folder");
                    let error = "it failed: see the output of the run";
                    all.failures.push(json!({"set": set.name, "error": error}));
                }
            }
            let rest = started.elapsed().as_secs_f64() / bytes(&sets[..=index]) as f64
                * bytes(&sets[index + 1..]) as f64;
            println!("about {:.0} minutes left", rest / 60.0);
        }
        // After each set, so that an interrupted run leaves the results of those before.
        all.write(&mut machine, started, target);
    }
    if !IS_QUICK {
        let tasks: [(&str, &dyn Fn() -> Vec<Value>); 2] =
            [("100 GB", &|| large::measure(&work)), ("1 TB", &|| large::measure_long(target))];
        for (name, measure) in tasks {
            match panic::catch_unwind(AssertUnwindSafe(measure)) {
                Ok(found) => all.large.extend(found),
                Err(_) => all.failures.push(json!({
                    "set": name, "error": "it failed: see the output of the run",
                })),
            }
        }
        all.write(&mut machine, started, target);
    }
    fs::remove_dir_all(&work).expect("the folder can be removed");
}

/// What was measured.
#[derive(Default)]
struct Results {
    records: Vec<Value>,
    choices: Vec<Value>,
    requests: Vec<Value>,
    lossy: Vec<Value>,
    large: Vec<Value>,
    failures: Vec<Value>,
}

impl Results {
    fn write(&self, machine: &mut Value, started: Instant, target: &Path) {
        let _ = std::io::stdout().flush();
        machine["seconds"] = started.elapsed().as_secs().into();
        let Self { records, choices, requests, lossy, large, failures } = self;
        let report = json!({
            "machine": machine, "records": records, "choices": choices, "requests": requests,
            "lossy": lossy, "large": large, "failures": failures,
        });
        fs::write(target.join("real.json"), format!("{report:#}\n")).expect("the report");
    }
}

/// Measures a set and adds the results.
fn one(set: &Set, folder: &Path, work: &Path, [python, script]: [&str; 2], all: &mut Results) {
    let (start, mut found) = (Instant::now(), Vec::new());
    for library in &libraries(set) {
        if IS_QUICK && !library.is_default() {
            continue;
        }
        let mut record = measure::measure(&**library, set, work);
        if library.is_default() {
            for (key, case) in [("peak_read", "read"), ("peak_write", "write")] {
                record[key] = peak::measure(folder, set, &**library, work, case).into();
            }
        }
        found.push(record);
    }
    if !IS_QUICK {
        found.extend(peers(python, script, folder, set, work));
    }
    let measured = start.elapsed().as_secs_f64();
    // Before what can fail later.
    all.records.extend(found.iter().cloned());
    if !IS_QUICK {
        all.choices.extend(suggest::evaluate(set, &found, work));
        all.lossy.extend(lossy::measure(set, work));
    }
    println!(
        "{}: {} settings in {measured:.0} s, choices in {:.0} s",
        set.name,
        found.len(),
        start.elapsed().as_secs_f64() - measured
    );
    #[cfg(feature = "peers")]
    if remote::SETS.contains(&&*set.name) {
        all.requests.extend(remote::measure(set));
    }
}

/// Measures the libraries of Python. It writes the parts to read to a file for them.
fn peers(python: &str, script: &str, folder: &Path, set: &Set, work: &Path) -> Vec<Value> {
    let part = |part: &set::Part| part.iter().map(|range| [range.start, range.end]).collect();
    let parts = |parts: Vec<set::Part>| parts.iter().map(part).collect::<Vec<Vec<[u64; 2]>>>();
    let places = work.join("places.json");
    let text = json!({"tiles": parts(set.tiles()), "rows": parts(set.rows())}).to_string();
    fs::write(&places, text).expect("the places");
    let mut command = Command::new(python);
    command.args(["-I", script]).arg(folder).arg(&set.name).arg(work).arg(&places);
    command.stdout(Stdio::piped());
    let mut child = command.spawn().expect("Python starts");
    let output = BufReader::new(child.stdout.take().expect("stdout is a pipe"));
    let lines = output.lines().map(|line| line.expect("a line"));
    let records = lines.map(|line| serde_json::from_str(&line).expect("a record")).collect();
    assert!(child.wait().expect("Python ends").success(), "{script} failed");
    records
}
