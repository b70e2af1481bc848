//! Expressions, compared with a read of the whole array and with python-blosc2: the same data, chunks, blocks and number
//! of threads. `cargo xtask bench compute` runs it.
//!
//! All are measured alternately in one run; Python is a process that waits while this program works. The table shows
//! the medians over the rounds: the times, and the time of this crate divided by that of the read and by that of Python
//! in the same round, each with the required maximum if there is one.

use std::hint::black_box;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;
use std::{env, fs, process};

use blosc2::compute::zip;
use blosc2::{CParams, Codec, DParams, NDArray, NDArrayBuilder, Threads};
use blosc2_testing::Rng;
use serde_json::{Value, json};

/// The arrays: 256 MiB of items each.
const SHAPE: [u64; 2] = [8192, 8192];
const CHUNKS: [u64; 2] = [256, 8192];
const BLOCKS: [u64; 2] = [4, 8192];
const THREADS: usize = 2;
const ROUNDS: usize = 7;

/// Reads the frames in the folder that is the argument, and then runs the expression of each line of stdin. Prints how
/// many seconds it took.
const PYTHON: &str = r#"
import sys, time, blosc2
threads, folder = int(sys.argv[1]), sys.argv[2]
blosc2.set_nthreads(threads)

def load(name):
    # Without the copy, the array uses the bytes after they are freed.
    array = blosc2.ndarray_from_cframe(open(f"{folder}/{name}", "rb").read(), copy=True)
    array.schunk.dparams = blosc2.DParams(nthreads=threads)
    return array

a, b, spikes = load("a"), load("b"), load("spikes")
cparams = blosc2.CParams(codec=a.schunk.cparams.codec, nthreads=threads)
for line in sys.stdin:
    code = compile(line, "workload", "eval")
    start = time.perf_counter()
    result = eval(code)
    seconds = time.perf_counter() - start
    del result
    print(seconds, flush=True)
"#;

fn main() {
    let [a, b, spikes] = items();
    let python = env::var_os("BLOSC2_TEST_PYTHON");
    if python.is_none() {
        println!(
            "python-blosc2 is NOT MEASURED: BLOSC2_TEST_PYTHON is not set; run `cargo xtask bench compute`"
        );
    }
    println!(
        "workload                codec   read, ms  python, ms   ours, ms   / read  max   / python  max"
    );
    let mut report = Vec::new();
    for codec in [Codec::Lz4, Codec::Zstd] {
        let array = |items: &[f32]| builder(codec).from_slice(items, SHAPE).unwrap();
        let (a, b, spikes) = (array(&a), array(&b), array(&spikes));
        let folder = tempfile::tempdir().unwrap();
        for (name, array) in [("a", &a), ("b", &b), ("spikes", &spikes)] {
            array.save(folder.path().join(name)).unwrap();
        }
        let python =
            python.as_deref().map(|program| Python::start(program.as_ref(), folder.path()));
        let mut bench =
            Bench { codec, python, target: vec![0.0; a.len() as usize], report: &mut report };
        bench.reductions(&a);
        bench.elementwise(&a, &b);
        bench.selection(&a, &spikes);
    }
    write_report(&report);
}

/// A surface that is smooth in both directions, another one, and the first one with spikes at one of 100 items.
fn items() -> [Vec<f32>; 3] {
    let at = |index: u64| index as f64 / SHAPE[0] as f64;
    let surface = |item: fn(f64, f64) -> f64| -> Vec<f32> {
        let row = |row| (0..SHAPE[1]).map(move |column| item(at(row), at(column)) as f32);
        (0..SHAPE[0]).flat_map(row).collect()
    };
    let a = surface(|u, v| (u * u * (3.0 - 2.0 * u)) * (1.0 + v * v) + 0.25 * v);
    let b = surface(|u, v| u * (1.0 - v) + v * v);
    let mut rng = Rng(42);
    let spikes =
        a.iter().map(|item| if rng.below(100) == 0 { item + 8.0 } else { *item }).collect();
    [a, b, spikes]
}

fn builder(codec: Codec) -> NDArrayBuilder {
    let threads = Threads::new(THREADS);
    NDArray::builder()
        .chunks(CHUNKS)
        .blocks(BLOCKS)
        .cparams(CParams::new().codec(codec).threads(threads))
        .dparams(DParams::new().threads(threads))
}

/// The cases for a codec.
struct Bench<'a> {
    codec: Codec,
    python: Option<Python>,
    target: Vec<f32>,
    report: &'a mut Vec<Value>,
}

/// The required maxima of the time divided by that of the read, and by that of Python.
type Most = [Option<f64>; 2];

const NONE: Most = [None, None];

impl Bench<'_> {
    fn reductions(&mut self, a: &NDArray) {
        let e = || a.lazy::<f32>();
        let mut items = vec![0f32; a.len() as usize];
        self.case("read", a, "a[:]", NONE, || a.read_into(.., &mut items[..]).unwrap());
        self.case("sum", a, "a.sum()", [Some(1.3), Some(0.5)], || e().sum().unwrap());
        self.case("mean over axis 0", a, "a.mean(axis=0)", NONE, || e().axes(0).mean().unwrap());
        self.case("mean over axis 1", a, "a.mean(axis=1)", NONE, || e().axes(1).mean().unwrap());
        self.case("var", a, "a.var()", NONE, || e().var(0).unwrap());
        self.case("min", a, "a.min()", NONE, || e().min().unwrap());
        self.case("argmax", a, "a.argmax()", NONE, || e().argmax().unwrap());
        self.case("describe", a, "", NONE, || e().describe(&[]).unwrap());
        let edges: Vec<f64> = (0..=100).map(|edge| f64::from(edge) * 0.0225).collect();
        self.case("describe, 100 bins", a, "", NONE, || e().describe(&edges).unwrap());
    }

    fn elementwise(&mut self, a: &NDArray, b: &NDArray) {
        let product = || zip((a, b)).map(|(x, y): (f32, f32)| x * y + 1.0).sum().unwrap();
        self.case("sum of a * b + 1", a, "(a * b + 1).sum()", [None, Some(0.5)], product);
        let codec = self.codec;
        let create = || a.lazy::<f32>().map(|x| x * 2.0 + 1.0).create(builder(codec)).unwrap();
        self.case("create a * 2 + 1", a, "(a * 2 + 1).compute(cparams=cparams)", NONE, create);
    }

    /// One of 100 items: in one region, and everywhere.
    fn selection(&mut self, a: &NDArray, spikes: &NDArray) {
        let mut sorted = a.read_all::<f32>().unwrap();
        let place = sorted.len() / 100 * 99;
        let (_, threshold, _) = sorted.select_nth_unstable_by(place, f32::total_cmp);
        let threshold = *threshold;
        let select = |array: &NDArray, threshold: f32| {
            array.lazy::<f32>().select(|x| x > threshold).items().unwrap()
        };
        for (array, threshold) in [(a, threshold), (spikes, 4.0)] {
            let mut items = array.read_all::<f32>().unwrap();
            items.retain(|item| *item > threshold);
            assert!(select(array, threshold) == items, "other items");
        }
        let most = [Some(1.5), None];
        let code = format!("a[a > {threshold:?}][:]");
        self.case("select 1 %, a region", a, &code, most, || select(a, threshold));
        let code = "spikes[spikes > 4][:]";
        self.case("select 1 %, scattered", spikes, code, most, || select(spikes, 4.0));
    }

    /// Measures the read of `array`, a workload, and the same in Python unless the code is empty.
    fn case<R>(
        &mut self,
        what: &str,
        array: &NDArray,
        code: &str,
        most: Most,
        mut ours: impl FnMut() -> R,
    ) {
        let Self { python, target, codec, .. } = self;
        let mut python = python.as_mut().filter(|_| !code.is_empty());
        let mut round = |round: usize| {
            let mut all = [0.0; 3];
            // The order alternates.
            for which in if round.is_multiple_of(2) { [0, 1, 2] } else { [2, 1, 0] } {
                let start = Instant::now();
                match which {
                    0 => array.read_into(.., black_box(&mut target[..])).unwrap(),
                    1 => drop(black_box(ours())),
                    _ => {
                        all[2] = python.as_mut().map_or(f64::NAN, |python| python.time(code));
                        continue;
                    }
                }
                all[which] = start.elapsed().as_secs_f64();
            }
            all
        };
        // The first round is a warm-up.
        let times: Vec<[f64; 3]> = (0..=ROUNDS).map(&mut round).skip(1).collect();
        let median_of = |value: fn(&[f64; 3]) -> f64| median(times.iter().map(value).collect());
        let (read, python) = (median_of(|all| all[0]), median_of(|all| all[2]));
        let ours = median_of(|all| all[1]);
        let ratios = [median_of(|all| all[1] / all[0]), median_of(|all| all[1] / all[2])];
        let is_above = |at: usize| most[at].is_some_and(|most| ratios[at] > most);
        println!(
            "{what:22}  {codec:>5}  {}  {}  {}  {} {}  {} {}{}",
            shown(read * 1e3, 9),
            shown(python * 1e3, 10),
            shown(ours * 1e3, 9),
            shown(ratios[0], 7),
            shown(most[0].unwrap_or(f64::NAN), 5),
            shown(ratios[1], 9),
            shown(most[1].unwrap_or(f64::NAN), 5),
            if is_above(0) || is_above(1) { "  above" } else { "" }
        );
        // JSON has no NaN: it becomes null.
        self.report.push(json!({
            "workload": what, "codec": codec.to_string(), "threads": THREADS,
            "ours_s": ours, "python_s": python, "c_s": null, "read_s": read,
            "ratio_read": ratios[0], "most_read": most[0],
            "ratio_python": ratios[1], "most_python": most[1],
        }));
    }
}

/// Returns a number for the table; nothing for NaN.
fn shown(value: f64, width: usize) -> String {
    if value.is_nan() { " ".repeat(width) } else { format!("{value:width$.2}") }
}

/// A process that runs expressions of python-blosc2.
struct Python {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Python {
    fn start(program: &Path, folder: &Path) -> Self {
        let mut command = Command::new(program);
        command.args(["-I", "-c", PYTHON, &THREADS.to_string()]).arg(folder);
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("Python starts");
        let input = process.stdin.take();
        let output = BufReader::new(process.stdout.take().expect("stdout is a pipe"));
        Self { process, input, output }
    }

    /// Returns the time that the expression takes in seconds.
    fn time(&mut self, code: &str) -> f64 {
        let input = self.input.as_mut().expect("stdin is a pipe");
        writeln!(input, "{code}").and_then(|()| input.flush()).expect("Python reads");
        let mut line = String::new();
        self.output.read_line(&mut line).expect("Python writes");
        line.trim().parse().unwrap_or_else(|_| panic!("`{code}` failed in Python"))
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        // The end of its input ends the process.
        self.input = None;
        self.process.wait().expect("Python ends");
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn write_report(cases: &[Value]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/bench");
    let report = json!({ "compute": cases });
    let written = fs::create_dir_all(&folder)
        .and_then(|()| fs::write(folder.join("compute.json"), format!("{report:#}\n")));
    if let Err(error) = written {
        eprintln!("cannot write the report: {error}");
        process::exit(1);
    }
    println!("written to target/bench/compute.json");
}
