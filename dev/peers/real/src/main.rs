//! Measures this crate and other libraries on real data. `cargo xtask bench real` runs it.
//!
//! Arguments: the folder of the sets, the folder of the results, and the Python and the script of the other libraries.
//! `--quick` measures only the default settings.

mod columns;
mod library;
#[allow(dead_code, reason = "the other comparison uses more of it")]
#[path = "../../../bench/compare/machine.rs"]
mod machine;
mod measure;
mod npy;
mod ours;
mod peak;
mod remote;
mod set;
mod suggest;
mod zarr;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;
use std::{env, fs};

use serde_json::{Value, json};

use crate::library::Library;
use crate::set::Set;

/// The settings of all libraries of this program that can store the set.
fn libraries(set: &Set) -> Vec<Box<dyn Library>> {
    let mut all = Vec::<Box<dyn Library>>::new();
    ours::Ours::all(set.itemsize).into_iter().for_each(|it| all.push(Box::new(it)));
    if !all.iter().any(|library| library.is_default()) {
        all.push(Box::new(ours::Ours::default_settings()));
    }
    zarr::Zarrs::all(set).into_iter().for_each(|it| all.push(Box::new(it)));
    [1, 3, 9, 19].into_iter().for_each(|level| all.push(Box::new(npy::Npy(level))));
    if set.has_columns() {
        columns::Parquet::all().into_iter().for_each(|it| all.push(Box::new(it)));
    }
    all
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
    let is_quick = args.iter().any(|arg| arg == "--quick");
    let [sets, target, python, script] = &args[..4] else { panic!("too few arguments") };
    let (sets, target) = (Path::new(sets), Path::new(target));
    // Files in memory, so that the speed of the disk is not part of the times.
    let shared = Path::new("/dev/shm");
    let work = if shared.is_dir() { shared.to_owned() } else { target.to_owned() };
    let work = work.join(format!("blosc2-bench-real-{}", std::process::id()));
    fs::create_dir_all(&work).expect("a folder");
    let (started, mut machine) = (Instant::now(), machine::facts());
    let (mut records, mut choices, mut requests) = (Vec::new(), Vec::new(), Vec::new());
    let folder = sets;
    for set in &Set::all(folder) {
        let start = Instant::now();
        let mut found = Vec::new();
        for library in &libraries(set) {
            if is_quick && !library.is_default() {
                continue;
            }
            let mut record = measure::measure(&**library, set, &work);
            if library.is_default() {
                record["peak_read"] = peak::measure(folder, set, &**library, &work, "read").into();
                record["peak_write"] =
                    peak::measure(folder, set, &**library, &work, "write").into();
            }
            found.push(record);
        }
        found.extend(peers(python, script, folder, set, &work, is_quick));
        let measured = start.elapsed().as_secs_f64();
        if !is_quick {
            choices.extend(suggest::evaluate(set, &found, &work));
        }
        println!(
            "{}: {} settings in {measured:.0} s, choices in {:.0} s",
            set.name,
            found.len(),
            start.elapsed().as_secs_f64() - measured
        );
        records.append(&mut found);
        if is_quick || remote::SETS.contains(&&*set.name) {
            requests.extend(remote::measure(set, is_quick));
        }
        let _ = std::io::stdout().flush();
        // After each set, so that an interrupted run leaves the results of those before.
        machine["seconds"] = started.elapsed().as_secs().into();
        let report = json!({
            "machine": machine, "records": records, "choices": choices, "requests": requests,
        });
        fs::write(target.join("real.json"), format!("{report:#}\n")).expect("the report");
    }
    fs::remove_dir_all(&work).expect("the folder can be removed");
}

/// Measures the libraries of Python. It writes the parts to read to a file for them.
fn peers(
    python: &str,
    script: &str,
    folder: &Path,
    set: &Set,
    work: &Path,
    is_quick: bool,
) -> Vec<Value> {
    let part = |part: &set::Part| part.iter().map(|range| [range.start, range.end]).collect();
    let parts = |parts: Vec<set::Part>| parts.iter().map(part).collect::<Vec<Vec<[u64; 2]>>>();
    let places = work.join("places.json");
    let text = json!({"tiles": parts(set.tiles()), "rows": parts(set.rows())}).to_string();
    fs::write(&places, text).expect("the places");
    let mut command = Command::new(python);
    command.args(["-I", script]).arg(folder).arg(&set.name).arg(work).arg(&places);
    command.args(is_quick.then_some("--quick")).stdout(Stdio::piped());
    let mut child = command.spawn().expect("Python starts");
    let output = BufReader::new(child.stdout.take().expect("stdout is a pipe"));
    let lines = output.lines().map(|line| line.expect("a line"));
    let records = lines.map(|line| serde_json::from_str(&line).expect("a record")).collect();
    assert!(child.wait().expect("Python ends").success(), "{script} failed");
    records
}
