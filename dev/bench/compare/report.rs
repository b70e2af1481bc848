//! The report: lines on the terminal, JSON, and tables for BENCHMARKS.md and README.md.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use serde_json::{Map, Value, json};

use crate::measure::{Library, Measured, quartiles};
use crate::peak::Peak;
use crate::workloads::Group;

pub(crate) fn print_head(libraries: &[Library]) {
    let names: Vec<&str> = libraries.iter().map(|library| library.name).collect();
    println!("libraries: {}", names.join(", "));
    println!(
        "ms: the time of one call of this crate. Then the time of each other library divided by it."
    );
}

/// Prints a line.
pub(crate) fn print(measured: &Measured) {
    let name = &measured.workload.name;
    let Some(ours) = measured.median("ours") else { return };
    let mut line =
        format!("{name:54} {:>7} {} {:>10.4} ms ", measured.codec, measured.threads, ours * 1e3);
    for (other, _) in &measured.seconds[1..] {
        let ratio = measured.ratio(other).unwrap_or(f64::NAN);
        write!(line, " {other} {ratio:.2}").expect("a string can be written to");
    }
    for (other, least, ratio) in measured.required() {
        if ratio < least {
            write!(line, "  BELOW {least:.2} ({other})").expect("a string can be written to");
        }
    }
    println!("{line}");
}

/// The libraries in report.json.
const NAMES: [&str; 11] = [
    "ours",
    "python",
    "c",
    "numpy",
    "memcpy",
    "read",
    "hdf5",
    "blosc2_rs",
    "pure_rs",
    "blusc",
    "zarrs",
];

/// Writes the report to a folder.
pub(crate) fn write(folder: &Path, machine: &Value, all: &[Measured], peaks: &[Peak]) {
    let mut machine = machine.clone();
    machine["peak_memory"] = peaks.iter().map(peak).collect();
    let report: Vec<Value> = all.iter().map(case).collect();
    let files = [
        ("report.json", format!("{:#}\n", Value::from(report))),
        ("machine.json", format!("{machine:#}\n")),
        ("tables.md", tables(&machine, all, peaks)),
        ("readme.md", readme(&machine, all)),
    ];
    for (name, text) in files {
        let path = folder.join(name);
        fs::write(&path, text).unwrap_or_else(|error| panic!("cannot write {name}: {error}"));
        println!("written: {}", path.display());
    }
}

fn peak(peak: &Peak) -> Value {
    json!({
        "workload": peak.name, "result_bytes": peak.result, "peak_bytes": peak.peak,
        "most_bytes": peak.most, "holds": peak.peak <= peak.most,
    })
}

fn case(measured: &Measured) -> Value {
    let workload = &measured.workload;
    let mut case = Map::new();
    let mut put = |key: String, value: Value| case.insert(key, value);
    put("workload".into(), workload.name.as_str().into());
    put("key".into(), workload.key.into());
    put("codec".into(), measured.codec.into());
    put("threads".into(), measured.threads.into());
    put("bytes".into(), workload.bytes.into());
    for name in NAMES {
        put(format!("{name}_s"), measured.median(name).into());
    }
    for name in NAMES {
        let spread = measured.seconds_of(name).map(|seconds| {
            let [low, median, high] = quartiles(seconds);
            (high - low) / median
        });
        put(format!("{name}_spread"), spread.into());
    }
    for name in NAMES {
        put(format!("{name}_rounds"), measured.seconds_of(name).map(<[f64]>::len).into());
    }
    for name in &NAMES[1..] {
        put(format!("{name}_over_ours"), measured.ratio(name).into());
    }
    let least = |(name, least, ratio): (&str, f64, f64)| {
        (name.to_owned(), json!({ "least": least, "ratio": ratio, "holds": ratio >= least }))
    };
    put("least".into(), Value::Object(measured.required().into_iter().map(least).collect()));
    Value::Object(case)
}

const GROUPS: [(Group, &str); 7] = [
    (Group::Read, "The whole array"),
    (Group::Slices, "Slices, items, orthogonal indexing, points"),
    (Group::Files, "Files"),
    (Group::Write, "Create, write, append"),
    (Group::Compute, "Compute"),
    (Group::Chunks, "Chunks"),
    (Group::Sizes, "Cost against size"),
];

/// The names of the other libraries in the tables of BENCHMARKS.md.
const OTHERS: [(&str, &str); 7] = [
    ("memcpy", "`memcpy`"),
    ("numpy", "NumPy"),
    ("hdf5", "HDF5"),
    ("blosc2_rs", "`blosc2` 0.2"),
    ("pure_rs", "`blosc2-pure-rs`"),
    ("blusc", "`blusc`"),
    ("zarrs", "`zarrs`"),
];

/// The generated part of BENCHMARKS.md.
fn tables(machine: &Value, all: &[Measured], peaks: &[Peak]) -> String {
    let mut text = machine_list(machine);
    text += &missed(all);
    for (group, title) in GROUPS {
        let cases: Vec<&Measured> =
            all.iter().filter(|measured| measured.workload.group == group).collect();
        if !cases.is_empty() {
            let table = if group == Group::Sizes { sizes(&cases) } else { main_table(&cases) };
            text += &format!("\n### {title}\n\n{table}");
        }
    }
    text += &format!("\n### Other libraries\n\n{}", others(all));
    if !peaks.is_empty() {
        text += "\n### Memory\n\n| workload | peak memory, MiB | at most, MiB |\n|---|---|---|\n";
        for Peak { name, peak, most, .. } in peaks {
            text += &format!("| {name} | {} | {} |\n", peak >> 20, most >> 20);
        }
    }
    text
}

fn machine_list(machine: &Value) -> String {
    let word = |key: &str| machine[key].as_str().unwrap_or("unknown").to_owned();
    let changes = if machine["has_uncommitted_changes"] == true { ", with changes" } else { "" };
    let caches: Vec<&str> =
        machine["caches"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let memory = machine["memory_bytes"].as_u64().unwrap_or(0) as f64 / f64::from(1 << 30);
    format!(
        "- Run: commit {}{changes}, {}\n- CPU: {}, {} cores; {}\n- Memory: {memory:.1} GiB; transparent huge pages: {}\n\
         - System: {}; load before the run: {}\n- Versions: {}; {}\n",
        word("commit"),
        word("date"),
        word("cpu"),
        machine["cores"],
        caches.join(", "),
        word("transparent_huge_pages"),
        word("system"),
        word("load"),
        word("rustc"),
        word("python"),
    )
}

/// The required ratios that were not reached.
fn missed(all: &[Measured]) -> String {
    let mut lines = String::new();
    let mut count = 0;
    for measured in all {
        for (name, least, ratio) in measured.required() {
            count += 1;
            if ratio < least {
                lines += &format!(
                    "- {}, {}, {}: ratio {ratio:.2} to {}, required {least:.2}\n",
                    measured.workload.name,
                    measured.codec,
                    threads(measured.threads),
                    title(name)
                );
            }
        }
    }
    let missed = lines.lines().count();
    format!("\n{} of {count} required ratios are reached.", count - missed)
        + if missed == 0 { "\n" } else { " The others:\n\n" }
        + &lines
}

fn threads(count: usize) -> String {
    if count == 1 { "1 thread".to_owned() } else { format!("{count} threads") }
}

fn title(name: &str) -> &str {
    match name {
        "python" => "python-blosc2",
        "c" => "C-Blosc2",
        "read" => "a read",
        _ => OTHERS.iter().find(|(other, _)| *other == name).map_or(name, |(_, title)| title),
    }
}

/// Times of this crate, and the ratios of Python, C and the other libraries that requirements name.
fn main_table(cases: &[&Measured]) -> String {
    let names: Vec<&str> = ["python", "c", "numpy", "read"]
        .into_iter()
        .filter(|name| cases.iter().any(|case| case.seconds_of(name).is_some()))
        .filter(|name| *name != "numpy" || cases[0].workload.group == Group::Compute)
        .collect();
    let mut text = "| workload | codec | threads | this crate | MB/s |".to_owned();
    names.iter().for_each(|name| text += &format!(" {} |", title(name)));
    text += &format!("\n|---|---|---|---|---|{}\n", "---|".repeat(names.len()));
    for case in cases {
        let Some(ours) = case.median("ours") else { continue };
        let speed = case.workload.bytes as f64 / ours / 1e6;
        text += &format!(
            "| {} | {} | {} | {} | {speed:.0} |",
            case.workload.name,
            case.codec,
            case.threads,
            time(ours)
        );
        names.iter().for_each(|name| text += &format!(" {} |", ratio(case, name)));
        text += "\n";
    }
    text
}

/// A ratio, with the required ratio in parentheses. It is bold if it is less.
fn ratio(case: &Measured, name: &str) -> String {
    let Some(ratio) = case.ratio(name) else { return String::new() };
    match case.required().into_iter().find(|(other, ..)| *other == name) {
        Some((_, least, _)) if ratio < least => format!("**{ratio:.2}** ({least:.2})"),
        Some((_, least, _)) => format!("{ratio:.2} ({least:.2})"),
        None => format!("{ratio:.2}"),
    }
}

/// A time with its unit.
fn time(seconds: f64) -> String {
    match seconds {
        ..1e-3 => format!("{:.2} µs", seconds * 1e6),
        ..1.0 => format!("{:.2} ms", seconds * 1e3),
        _ => format!("{seconds:.2} s"),
    }
}

/// The ratios of the other libraries, for the workloads that one of them has.
fn others(all: &[Measured]) -> String {
    let mut text = "| workload | codec | threads |".to_owned();
    OTHERS.iter().for_each(|(_, title)| text += &format!(" {title} |"));
    text += &format!("\n|---|---|---|{}\n", "---|".repeat(OTHERS.len()));
    for case in all {
        if OTHERS.iter().any(|(name, _)| case.seconds_of(name).is_some()) {
            text += &format!("| {} | {} | {} |", case.workload.name, case.codec, case.threads);
            OTHERS.iter().for_each(|(name, _)| text += &format!(" {} |", ratio(case, name)));
            text += "\n";
        }
    }
    text
}

/// Nanoseconds per byte by size.
fn sizes(cases: &[&Measured]) -> String {
    let mut text = "| workload | threads | this crate, ns/byte | python-blosc2, ns/byte |\n|---|---|---|---|\n".to_owned();
    for case in cases {
        let cost = |name| {
            let seconds = case.median(name);
            seconds.map_or(String::new(), |seconds| {
                format!("{:.3}", seconds * 1e9 / case.workload.bytes as f64)
            })
        };
        let (ours, python) = (cost("ours"), cost("python"));
        text += &format!("| {} | {} | {ours} | {python} |\n", case.workload.name, case.threads);
    }
    for key in ["read_size", "write_size"] {
        for count in [1, 2] {
            if let Some(ratio) = growth(cases, key, count) {
                let verb = if key == "read_size" { "read" } else { "write" };
                text += &format!(
                    "\nTo {verb} with {}, the time per byte at 4 GiB is {ratio:.2} times that at 64 MiB \
                     (required: at most 1.2).\n",
                    threads(count)
                );
            }
        }
    }
    text
}

/// The time per byte at 4 GiB divided by that at 64 MiB.
fn growth(cases: &[&Measured], key: &str, threads: usize) -> Option<f64> {
    let cost = |size: usize| {
        let found = |case: &&&Measured| {
            (case.workload.key, case.threads, case.workload.size) == (key, threads, size)
        };
        Some(cases.iter().find(found)?.median("ours")? / size as f64)
    };
    Some(cost(4 << 30)? / cost(64 << 20)?)
}

/// The generated table of README.md.
fn readme(machine: &Value, all: &[Measured]) -> String {
    const ROWS: [(&str, &str); 6] = [
        ("read_new", "read the array into new memory"),
        ("read_file", "read the array from a file"),
        ("slice_row", "read slices of 1 x 64 items"),
        ("points", "read 1,000 points"),
        ("create", "create an array"),
        ("appender", "append 64 x 10,000 items (`Appender`)"),
    ];
    let commit = machine["commit"].as_str().unwrap_or_default();
    let mut text =
        "| python-blosc2's time / ours | LZ4, 1 thread | LZ4, 2 threads | Zstandard, 1 thread | \
                    Zstandard, 2 threads |\n|---|---|---|---|---|\n"
            .to_owned();
    for (key, name) in ROWS {
        text += &format!("| {name} |");
        for (codec, threads) in [("lz4", 1), ("lz4", 2), ("zstd", 1), ("zstd", 2)] {
            let found = all.iter().find(|case| {
                (case.workload.key, case.codec, case.threads) == (key, codec, threads)
            });
            let ratio = found.and_then(|case| case.ratio("python"));
            text += &ratio.map_or(" |".to_owned(), |ratio| format!(" {ratio:.2} |"));
        }
        text += "\n";
    }
    text + &format!(
        "\nMeasured by `cargo xtask bench` at commit {}, {}.\n",
        &commit[..commit.len().min(12)],
        machine["date"].as_str().unwrap_or_default()
    )
}
