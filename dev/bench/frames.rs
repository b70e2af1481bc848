//! Frames in files: the cost of opening one and reading an item, compared with the equivalent C calls; the cost of each
//! depth of checks; the throughput by number of threads; and the cost of checksums. For files of many chunks, also the cost of rewriting and
//! appending a chunk, the cost of 1,000 changes in one transaction, and the memory that changes take.
//! `cargo xtask bench frames` runs it.
//!
//! C and this crate are measured alternately. The table shows for each case the medians over the rounds.

use std::cell::RefCell;
use std::ffi::CString;
use std::fs::File;
use std::hint::black_box;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use blosc2::{CParams, Check, Chunk, Codec, OpenOptions, SChunk};
use blosc2_format::chunk::{Encoder, Params, SplitMode};
use blosc2_format::frame::Writer;
use blosc2_sys as sys;
use blosc2_testing::Rng;
use serde_json::{Value, json};

/// Chunks of the file, and items of each.
const CHUNKS: u64 = 1000;
const ITEMS: u64 = 10_000;
const ROUNDS: usize = 41;
/// Items that a thread reads at once.
const RANGE: u64 = 25_000;
/// The maximum cost relative to C, and the minimum gain of threads on a machine with two cores or more.
const MOST: f64 = 1.5;
const LEAST: f64 = 1.6;

/// The number of chunks of the files with checksums, and the maximum cost of checksums.
const CHECKED_CHUNKS: u64 = 40;
const MOST_CHECKED: f64 = 1.05;

/// The numbers of chunks of the large files, and the items of each of their chunks.
const COUNTS: [u64; 3] = [100, 100_000, 1_000_000];
const FEW_ITEMS: u64 = 32;
/// The index of an item that is random in each chunk.
const ITEM: u64 = 3;
/// The maximum cost of opening and reading an item with the most chunks, relative to the fewest, and the maximum memory
/// for the file with the most chunks, in MB.
const MOST_GROWTH: f64 = 3.0;
const MOST_MEMORY: f64 = 40.0;
/// The number of changes in a transaction, and the minimum gain of appending in one, relative to C one by one.
const TOGETHER: usize = 1000;
const LEAST_GAIN: f64 = 50.0;
/// The argument with which this program uses a file and prints the memory that it took.
const MEMORY: &str = "--memory";
/// The task that changes the file; the others only read.
const CHANGE: &str = "change";

fn main() {
    // This also initializes C.
    assert!(Codec::Lz4.is_available());
    let args: Vec<String> = env::args().skip(1).collect();
    if let [MEMORY, side, task, path] = args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        let (path, change) = (Path::new(path), task == CHANGE);
        if side == "C" {
            use_once::<CFrame>(path, change);
        } else {
            use_once::<SChunk>(path, change);
        }
        if let Some(peak) = peak_memory() {
            println!("{peak}");
        }
        return;
    }
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
    let report = json!({
        "open": open(&path),
        "depths": depths(&path),
        "threads": threads(&path),
        "checksums": checksums(folder.path()),
        "many": many(folder.path()),
    });
    write_report(&report);
}

fn chunk(number: u64) -> Vec<u32> {
    (0..ITEMS).map(|at| ((number * ITEMS + at) as u32).wrapping_mul(2_654_435_761) >> 20).collect()
}

/// Opening and reading one item.
fn open(path: &Path) -> Value {
    let at = CHUNKS * ITEMS / 2 + 17;
    let expected = chunk(CHUNKS / 2)[17];
    println!("{}", heading("open and read one item"));
    let mut cases = Vec::new();
    for (what, check) in [("default", None), ("structure", Some(Check::Structure))] {
        let options = check.map_or(OpenOptions::new(), |check| OpenOptions::new().check(check));
        let times = medians(
            20,
            timed(|| read_one::<CFrame>(path, at, expected)),
            timed(|| {
                let item = options.open(path).unwrap().item_at(at);
                assert!(black_box(item) == expected, "other data");
            }),
        );
        let most = check.map_or(MOST, |_| f64::INFINITY);
        cases.push(compared("check", what, times, most));
    }
    cases.into()
}

/// Opening alone, by the depth of the check.
fn depths(path: &Path) -> Value {
    println!("\nopen with a check of             µs");
    let mut cases = Vec::new();
    let depths = [
        ("what is around the chunks", Check::Header),
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

/// Opening and reading all items, without and with checksums.
fn checksums(folder: &Path) -> Value {
    println!("\nopen and read all items          without, µs  with, µs  with / without");
    let mut cases = Vec::new();
    for codec in [Codec::Lz4, Codec::Zstd] {
        let paths = [false, true].map(|checksums| {
            let path = folder.join(format!("{codec} {checksums}"));
            let options = OpenOptions::new().create_new(true).checksums(checksums).typesize(4);
            let mut schunk = options.cparams(CParams::new().codec(codec)).open(&path).unwrap();
            for number in 0..CHECKED_CHUNKS {
                let data: Vec<u32> =
                    (0..CHECKED_CHUNKS).flat_map(|at| chunk(number + at)).collect();
                schunk.append(&data).unwrap();
            }
            path
        });
        let mut items = vec![0u32; (CHECKED_CHUNKS * CHECKED_CHUNKS * ITEMS) as usize];
        let items = RefCell::new(&mut items[..]);
        let read = |path: &Path| {
            SChunk::open(path).unwrap().read_into(.., &mut items.borrow_mut()).unwrap();
        };
        let times = medians(1, timed(|| read(&paths[0])), timed(|| read(&paths[1])));
        cases.push(compared("codec", &codec.to_string(), times, MOST_CHECKED));
    }
    cases.into()
}

/// Returns the throughput of `count` reading threads in MB/s.
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
                        schunk.read_into(at..at + RANGE, &mut target).unwrap();
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

/// A file of many small chunks, a copy that C changes, and a copy that this crate changes.
struct Many {
    chunks: u64,
    original: PathBuf,
    copies: [PathBuf; 2],
}

#[derive(Clone, Copy)]
enum Change {
    Rewrite,
    Append,
}

/// Files of few and of many chunks.
fn many(folder: &Path) -> Value {
    let pool = pool();
    let files = COUNTS.map(|chunks| write_many(folder, chunks, &pool));
    let [expected, other] = [&pool[0], &pool[1]].map(random_item);
    println!("\n{}", heading("open and read one item"));
    let mut opened = Vec::new();
    let mut times = Vec::new();
    for Many { chunks, original, .. } in &files {
        let at = chunks / 2 * FEW_ITEMS + ITEM;
        let [c, ours] = medians(
            20,
            timed(|| read_one::<CFrame>(original, at, expected)),
            timed(|| read_one::<SChunk>(original, at, expected)),
        );
        opened.push(compared("case", &format!("{chunks:7} chunks"), [c, ours], MOST));
        times.push([c, ours]);
    }
    let [c, ours] = [0, 1].map(|side| times[2][side] / times[0][side]);
    let verdict = if ours > MOST_GROWTH { "  above the limit" } else { "" };
    println!("{:32}{c:10.3}{ours:10.3}{verdict}", format!("{} / {} chunks", COUNTS[2], COUNTS[0]));
    let report = json!({
        "open": opened,
        "growth": { "c": c, "ours": ours },
        "rewrite": changes("rewrite one chunk", &files, &pool, Change::Rewrite),
        "append": changes("append one chunk", &files, &pool, Change::Append),
        "transaction": transactions(&files[1], &pool),
        "memory": memory(&files[2]),
    });
    // Each side reads the file that the other side wrote.
    for file in &files {
        for path in &file.copies {
            let schunk = SChunk::open(path).unwrap();
            let middle = schunk.item_at(file.chunks / 2 * FEW_ITEMS + ITEM);
            assert!(middle == expected || middle == other, "other data");
            assert!(schunk.nchunks() as u64 > file.chunks, "no chunk was appended");
            CFrame::open_to_read(path).item_at(schunk.len() - 1);
        }
    }
    report
}

/// Compressed chunks of one size with different compressed sizes. Those of the first two are equal.
fn pool() -> Vec<Chunk> {
    let params = many_params();
    let (mut rng, mut encoder) = (Rng(1), Encoder::new(params).unwrap());
    let mut pool: Vec<_> = (0..1000)
        .map(|_| {
            // Random bytes do not compress, and zeros compress to almost nothing.
            let random = 16 + rng.index(81);
            let mut data = rng.bytes(random);
            data.resize(FEW_ITEMS as usize * 4, 0);
            Chunk::new(encoder.encode(&data).unwrap()).unwrap()
        })
        .collect();
    assert!(pool.iter().all(|chunk| (64..200).contains(&chunk.cbytes())));
    let same = (1..1000).find(|&at| pool[at].cbytes() == pool[0].cbytes()).unwrap();
    pool.swap(1, same);
    pool
}

fn many_params() -> Params {
    let (codec, split) = (1, SplitMode::Never);
    Params { codec, typesize: 4, filters: [0; 6], split, ..Params::default() }
}

fn random_item(chunk: &Chunk) -> u32 {
    chunk.items::<u32>(ITEM as usize..ITEM as usize + 1).unwrap()[0]
}

/// Writes a file of `chunks` chunks, with the first chunk of `pool` in the middle.
fn write_many(folder: &Path, chunks: u64, pool: &[Chunk]) -> Many {
    let [original, c, ours] =
        ["original", "C", "ours"].map(|name| folder.join(format!("{chunks}-{name}.b2frame")));
    let file = BufWriter::new(File::create(&original).unwrap());
    let (mut rng, mut writer) = (Rng(2), Writer::new(file, many_params(), &[]).unwrap());
    for number in 0..chunks {
        let chunk = if number == chunks / 2 { &pool[0] } else { rng.pick(pool) };
        writer.push_chunk(chunk.as_bytes()).unwrap();
    }
    drop(writer.finish().unwrap());
    let copies = [c, ours];
    for copy in &copies {
        fs::copy(&original, copy).unwrap();
    }
    Many { chunks, original, copies }
}

/// Measures a change of one chunk, with an open handle and with one that is opened for the change.
fn changes(what: &str, files: &[Many], pool: &[Chunk], change: Change) -> Value {
    println!("\n{}", heading(what));
    let mut cases = Vec::new();
    for file in files {
        for (how, open) in [("open handle", true), ("open, close", false)] {
            // Few calls, so that a round of appends does not make the smallest file much longer.
            let times = medians(
                5,
                changing::<CFrame>(file, 0, open, pool, change),
                changing::<SChunk>(file, 1, open, pool, change),
            );
            let what = format!("{:7} chunks, {how}", file.chunks);
            cases.push(compared("case", &what, times, MOST));
        }
    }
    cases.into()
}

/// Returns a closure that changes a side's copy of the file a number of times and returns the seconds.
fn changing<'a, F: Frame>(
    file: &'a Many,
    side: usize,
    open: bool,
    pool: &'a [Chunk],
    change: Change,
) -> impl FnMut(u32) -> f64 + 'a {
    let path = &file.copies[side];
    let mut replacements = [&pool[1], &pool[0]].into_iter().cycle();
    let mut call = move |frame: &mut F| match change {
        Change::Rewrite => frame.rewrite_one(file.chunks / 2, replacements.next().unwrap()),
        Change::Append => frame.append_one(&pool[2]),
    };
    move |calls| {
        if file.chunks == COUNTS[0] && matches!(change, Change::Append) {
            // A fresh copy for each round. Files with more chunks do not get noticeably longer over all rounds.
            fs::copy(&file.original, path).unwrap();
        }
        if !open {
            return timed(|| call(&mut F::open_to_change(path)))(calls);
        }
        let mut frame = F::open_to_change(path);
        call(&mut frame); // The first change of a handle does more, and is not measured.
        timed(|| call(&mut frame))(calls)
    }
}

/// Many changes, one by one and in one transaction; and appended one by one by C.
fn transactions(file: &Many, pool: &[Chunk]) -> Value {
    let what = format!("{TOGETHER} changes, {} chunks", file.chunks);
    println!("\n{what:32}one by one, ms  together, ms     ratio");
    let [c_copy, copy] = file.copies.each_ref().map(|path| path.with_extension("changed"));
    let mut cases = Vec::new();
    let mut row = |what: &str, single: f64, together: f64, least: f64| {
        let ratio = single / together;
        let verdict = if ratio < least { "  below the limit" } else { "" };
        println!("{what:32}{single:14.1}{together:14.2}{ratio:10.1}{verdict}");
        cases.push(json!({
            "case": what, "one_by_one_ms": single, "together_ms": together, "ratio": ratio,
        }));
    };
    for what in ["append", "insert", "update", "delete"] {
        let change = |schunk: &mut SChunk, number: usize| {
            // Anywhere in the file.
            let index = number * 7919 % (file.chunks as usize - TOGETHER);
            match what {
                "append" => schunk.append(&pool[number]),
                "insert" => schunk.insert(index, &pool[number]),
                "update" => schunk.replace(index, &pool[number]),
                _ => schunk.remove(index),
            }
        };
        let all = |schunk: &mut SChunk| (0..TOGETHER).try_for_each(|at| change(schunk, at));
        let mut times = [const { Vec::new() }; 3];
        for _ in 0..5 {
            // The same file for each measurement.
            fs::copy(&file.original, &copy).unwrap();
            let mut schunk = SChunk::open_rw(&copy).unwrap();
            times[0].push(timed(|| all(&mut schunk).unwrap())(1) * 1e3);
            drop(schunk);
            fs::copy(&file.original, &copy).unwrap();
            let mut schunk = SChunk::open_rw(&copy).unwrap();
            times[1].push(timed(|| schunk.transaction(all).unwrap())(1) * 1e3);
            if what == "append" {
                fs::copy(&file.original, &c_copy).unwrap();
                let mut c = CFrame::open_to_change(&c_copy);
                let append_all = || pool[..TOGETHER].iter().for_each(|chunk| c.append_one(chunk));
                times[2].push(timed(append_all)(1) * 1e3);
            }
        }
        let [single, together, by_c] = times;
        let together = median(together);
        row(what, median(single), together, 0.0);
        if what == "append" {
            row("append, one by one by C", median(by_c), together, LEAST_GAIN);
        }
    }
    cases.into()
}

/// The peak memory of a process that uses a file of many chunks. It is a child process, since the peak of this one
/// includes everything before.
fn memory(file: &Many) -> Value {
    println!("\npeak memory, {} chunks         C, MB  ours, MB", file.chunks);
    let mut cases = Vec::new();
    for (what, task) in [("open, read", "read"), ("open, read, rewrite, append", CHANGE)] {
        let [c, ours] = [("C", &file.copies[0]), ("ours", &file.copies[1])].map(|(side, path)| {
            let mut child = Command::new(env::current_exe().unwrap());
            let output = child.args([MEMORY, side, task]).arg(path).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap().trim().parse::<f64>().ok()
        });
        match (c, ours) {
            (Some(c), Some(ours)) => {
                let verdict = if ours > MOST_MEMORY { "  above the limit" } else { "" };
                println!("{what:32}{c:10.1}{ours:10.1}{verdict}");
            }
            _ => println!("{what:32}not measured on this system"),
        }
        cases.push(json!({ "what": what, "c_mb": c, "ours_mb": ours }));
    }
    cases.into()
}

/// The work of the child process whose memory is measured.
fn use_once<F: Frame>(path: &Path, change: bool) {
    let (pool, middle) = (pool(), COUNTS[2] / 2);
    let mut frame = if change { F::open_to_change(path) } else { F::open_to_read(path) };
    black_box(frame.item_at(middle * FEW_ITEMS + ITEM));
    if change {
        frame.rewrite_one(middle, &pool[1]);
        frame.append_one(&pool[2]);
    }
}

/// The peak memory of this process in MB, if the system reports it.
fn peak_memory() -> Option<f64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = peak.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024.0 / 1e6)
}

/// The operations of both sides on a file of `u32`.
trait Frame {
    fn open_to_read(path: &Path) -> Self;
    fn open_to_change(path: &Path) -> Self;
    fn item_at(&self, at: u64) -> u32;
    fn rewrite_one(&mut self, number: u64, chunk: &Chunk);
    fn append_one(&mut self, chunk: &Chunk);
}

impl Frame for SChunk {
    fn open_to_read(path: &Path) -> Self {
        Self::open(path).unwrap()
    }

    fn open_to_change(path: &Path) -> Self {
        Self::open_rw(path).unwrap()
    }

    fn item_at(&self, at: u64) -> u32 {
        self.read(at..at + 1).unwrap()[0]
    }

    fn rewrite_one(&mut self, number: u64, chunk: &Chunk) {
        self.replace(number as usize, chunk).unwrap();
    }

    fn append_one(&mut self, chunk: &Chunk) {
        self.append(chunk).unwrap();
    }
}

/// A C super-chunk, opened from a file.
struct CFrame(*mut sys::blosc2_schunk);

impl Frame for CFrame {
    fn open_to_read(path: &Path) -> Self {
        let path = CString::new(path.to_str().unwrap()).unwrap();
        // SAFETY: C copies the path, which ends with a zero.
        let schunk = unsafe { sys::blosc2_schunk_open(path.as_ptr()) };
        assert!(!schunk.is_null(), "C opens it");
        Self(schunk)
    }

    fn open_to_change(path: &Path) -> Self {
        // C opens the file for each access, to write where it has to.
        Self::open_to_read(path)
    }

    fn item_at(&self, at: u64) -> u32 {
        let (mut item, at) = (0u32, at as i64);
        let target = (&raw mut item).cast();
        // SAFETY: the super-chunk is open; its items have 4 bytes, and the target has room for the one.
        let code = unsafe { sys::blosc2_schunk_get_slice_buffer(self.0, at, at + 1, target) };
        assert!(code >= 0, "C reads an item: {code}");
        item
    }

    fn rewrite_one(&mut self, number: u64, chunk: &Chunk) {
        let bytes = chunk.as_bytes().as_ptr().cast_mut();
        // SAFETY: the super-chunk is open; the chunk is whole, and C only reads it and keeps a copy.
        let code = unsafe { sys::blosc2_schunk_update_chunk(self.0, number as i64, bytes, true) };
        assert!(code >= 0, "C rewrites a chunk: {code}");
    }

    fn append_one(&mut self, chunk: &Chunk) {
        let bytes = chunk.as_bytes().as_ptr().cast_mut();
        // SAFETY: as for `rewrite_one`.
        let code = unsafe { sys::blosc2_schunk_append_chunk(self.0, bytes, true) };
        assert!(code >= 0, "C appends a chunk: {code}");
    }
}

impl Drop for CFrame {
    fn drop(&mut self) {
        // SAFETY: it comes from C's `blosc2_schunk_open`, and is freed once.
        unsafe { sys::blosc2_schunk_free(self.0) };
    }
}

fn read_one<F: Frame>(path: &Path, at: u64, expected: u32) {
    assert!(black_box(F::open_to_read(path).item_at(at)) == expected, "other data");
}

/// Returns a closure that makes a number of calls and returns the seconds.
fn timed(mut call: impl FnMut()) -> impl FnMut(u32) -> f64 {
    move |calls| {
        let start = Instant::now();
        (0..calls).for_each(|_| call());
        start.elapsed().as_secs_f64()
    }
}

/// The medians of the times of one call of both sides, in µs. Both closures take the number of calls of a round, at
/// most `most`, and return the seconds.
fn medians(most: u32, c: impl FnMut(u32) -> f64, ours: impl FnMut(u32) -> f64) -> [f64; 2] {
    let (mut c, mut ours) = (c, ours);
    let mut sides: [&mut dyn FnMut(u32) -> f64; 2] = [&mut c, &mut ours];
    // The first call is a warm-up. The time of the second one determines the number of calls and rounds.
    let first = sides.each_mut().map(|side| {
        side(1);
        side(1)
    });
    let calls = first.map(|time| ((2e-3 / time) as u32).clamp(1, most));
    let rounds = ((2.0 / (first[0] + first[1])) as usize).clamp(7, ROUNDS);
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..rounds {
        // The order alternates.
        for which in if round % 2 == 0 { [0, 1] } else { [1, 0] } {
            times[which].push(sides[which](calls[which]) * 1e6 / f64::from(calls[which]));
        }
    }
    times.map(median)
}

fn heading(what: &str) -> String {
    format!("{what:32}     C, µs  ours, µs  ours / C")
}

/// Prints a row of a table, and returns it for the report.
fn compared(key: &str, what: &str, [c, ours]: [f64; 2], most: f64) -> Value {
    let ratio = ours / c;
    let verdict = if ratio > most { "  above the limit" } else { "" };
    println!("{what:32}{c:10.1}{ours:10.1}{ratio:10.3}{verdict}");
    json!({ key: what.trim_start(), "c_us": c, "ours_us": ours, "ratio": ratio })
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn write_report(report: &Value) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/bench");
    let written = fs::create_dir_all(&folder)
        .and_then(|()| fs::write(folder.join("frames.json"), format!("{report:#}\n")));
    if let Err(error) = written {
        eprintln!("cannot write the report: {error}");
        process::exit(1);
    }
    println!("written to target/bench/frames.json");
}
