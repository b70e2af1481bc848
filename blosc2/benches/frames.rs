//! Frames in files: what opening one and reading an item costs against the C calls that do the same, what each depth
//! of checking costs, and how reading grows with threads. `cargo xtask bench frames` runs it.
//!
//! Of each case the medians over the rounds are shown; C and this crate are measured turn by turn.

use std::ffi::CString;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, process, thread};

use blosc2::{CParams, Check, Codec, OpenOptions, SChunk};
use blosc2_sys as sys;
use blosc2_testing::Rng;
use serde_json::{Value, json};

/// Chunks of the file, and items of each.
const CHUNKS: u64 = 1000;
const ITEMS: u64 = 10_000;
const ROUNDS: usize = 41;
/// Items that a thread reads at once.
const RANGE: u64 = 25_000;
/// The most that opening and reading an item may cost, in what C costs, and the least that threads have to bring
/// on a machine with two cores or more.
const MOST: f64 = 1.5;
const LEAST: f64 = 1.6;

fn main() {
    assert!(Codec::Lz4.is_available());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("many.b2frame");
    let params = CParams::new().codec(Codec::Lz4);
    let mut schunk = SChunk::create::<u32>(&path, &params).unwrap();
    for number in 0..CHUNKS {
        schunk.append(&chunk(number)).unwrap();
    }
    drop(schunk);
    let len = fs::metadata(&path).unwrap().len();
    println!("{CHUNKS} chunks of {ITEMS} items in {len} bytes\n");
    let report = json!({ "open": open(&path), "depths": depths(&path), "threads": threads(&path) });
    write_report(&report);
}

fn chunk(number: u64) -> Vec<u32> {
    (0..ITEMS).map(|at| ((number * ITEMS + at) as u32).wrapping_mul(2_654_435_761) >> 20).collect()
}

/// Opening and reading one item.
fn open(path: &Path) -> Value {
    let name = CString::new(path.to_str().unwrap()).unwrap();
    let at = CHUNKS * ITEMS / 2 + 17;
    let expected = chunk(CHUNKS / 2)[17];
    println!("open and read one item       C, µs  ours, µs   ours / C");
    let mut cases = Vec::new();
    for (what, check) in [("default", None), ("structure", Some(Check::Structure))] {
        let options = check.map_or(OpenOptions::new(), |check| OpenOptions::new().check(check));
        let [c, ours] = medians(
            || assert!(black_box(c_item(&name, at)) == expected, "other data"),
            || {
                let schunk = options.open(path).unwrap();
                let item = schunk.items::<u32>(at..at + 1).unwrap();
                assert!(black_box(item) == [expected], "other data");
            },
        );
        let ratio = ours / c;
        let verdict = match check {
            None if ratio > MOST => "  above the limit",
            _ => "",
        };
        println!("{what:24}  {c:8.1}  {ours:8.1}   {ratio:8.3}{verdict}");
        cases.push(json!({ "check": what, "c_us": c, "ours_us": ours, "ratio": ratio }));
    }
    cases.into()
}

/// Opening alone, by the depth of the check.
fn depths(path: &Path) -> Value {
    println!("\nopen with a check of             µs");
    let mut cases = Vec::new();
    let depths = [
        ("what is around the chunks", Check::Around),
        ("the structure", Check::Structure),
        ("the content", Check::Content),
    ];
    for (what, check) in depths {
        let options = OpenOptions::new().check(check);
        let count = if check == Check::Content { 3 } else { ROUNDS };
        let times = (0..count).map(|_| {
            let start = Instant::now();
            drop(black_box(options.open(path).unwrap()));
            start.elapsed().as_secs_f64() * 1e6
        });
        let time = median(times.collect());
        println!("{what:26} {time:11.1}");
        cases.push(json!({ "check": what, "us": time }));
    }
    cases.into()
}

/// Random ranges of one handle, read by one thread and by eight.
fn threads(path: &Path) -> Value {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let schunk = SChunk::open(path).unwrap();
    println!("\nranges of {RANGE} items on {cores} cores   MB/s");
    let mut speeds = [Vec::new(), Vec::new()];
    for _ in 0..7 {
        for (count, speeds) in [1, 8].into_iter().zip(&mut speeds) {
            speeds.push(throughput(&schunk, count));
        }
    }
    let [one, eight] = speeds.map(median);
    let ratio = eight / one;
    let verdict = if cores >= 2 && ratio < LEAST { "  below the limit" } else { "" };
    println!("one thread                   {one:9.1}");
    println!("eight threads                {eight:9.1}\neight / one {ratio:.3}{verdict}");
    json!({ "cores": cores, "one_mb_s": one, "eight_mb_s": eight, "ratio": ratio })
}

/// MB that so many threads read in a second.
fn throughput(schunk: &SChunk, count: u64) -> f64 {
    let long = Duration::from_millis(300);
    let start = Instant::now();
    let items: u64 = thread::scope(|scope| {
        let threads: Vec<_> = (0..count)
            .map(|seed| {
                scope.spawn(move || {
                    let (mut rng, mut items) = (Rng(seed), 0);
                    let mut target = vec![0u32; RANGE as usize];
                    while start.elapsed() < long {
                        let at = rng.below(CHUNKS * ITEMS - RANGE);
                        schunk.items_into(at, &mut target).unwrap();
                        items += black_box(&target).len() as u64;
                    }
                    items
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    items as f64 * 4.0 / 1e6 / start.elapsed().as_secs_f64()
}

/// What C takes to open a file and to read one item of it.
fn c_item(path: &CString, at: u64) -> u32 {
    let (mut item, at) = (0u32, at as i64);
    // SAFETY: C copies the path; the target has room for the one item; the super-chunk is freed once.
    unsafe {
        let schunk = sys::blosc2_schunk_open(path.as_ptr());
        assert!(!schunk.is_null(), "C opens it");
        let target = (&raw mut item).cast();
        let code = sys::blosc2_schunk_get_slice_buffer(schunk, at, at + 1, target);
        assert!(code >= 0, "C reads an item: {code}");
        sys::blosc2_schunk_free(schunk);
    }
    item
}

/// The medians of what both take, in µs.
fn medians(mut c: impl FnMut(), mut ours: impl FnMut()) -> [f64; 2] {
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..=ROUNDS {
        // Who goes first changes, and the first round warms up.
        for which in if round % 2 == 0 { [0, 1] } else { [1, 0] } {
            const COUNT: u32 = 20;
            let start = Instant::now();
            for _ in 0..COUNT {
                if which == 0 { c() } else { ours() }
            }
            if round > 0 {
                times[which].push(start.elapsed().as_secs_f64() * 1e6 / f64::from(COUNT));
            }
        }
    }
    times.map(median)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn write_report(report: &Value) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/bench");
    let written = fs::create_dir_all(&folder)
        .and_then(|()| fs::write(folder.join("frames.json"), format!("{report:#}\n")));
    if let Err(error) = written {
        eprintln!("cannot write the report: {error}");
        process::exit(1);
    }
    println!("written to target/bench/frames.json");
}
