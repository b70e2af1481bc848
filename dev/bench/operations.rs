//! Operations that create an array from arrays, compared with Python. `cargo xtask bench operations` runs it. It prints
//! ratios of times in one run.
//!
//! The sources are files of 64 MiB of `f64`, which this crate writes and both programs open. The results are files, too.
//! Both programs use two threads, and the default compression parameters of their library. A time is the minimum of
//! some rounds.
//! - `blosc2`: the function of python-blosc2.
//! - `NumPy`: the function of NumPy, for which the array is decompressed and the result is compressed by python-blosc2.
//!
//! This crate uses at most 64 MiB in addition to the caches of the sources; the functions of NumPy need whole arrays.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use blosc2::{
    CParams, DParams, NDArray, NDArrayBuilder, OpenOptions, Result as BloscResult, Threads,
};
use blosc2_testing::Rng;

/// The number of items of the row, and of rows and columns of the square.
const LEN: u64 = 1 << 23;
const SIDE: u64 = 2896;
const ROUNDS: usize = 3;
const MEMORY: usize = 64 << 20;

/// A row and a square of random numbers, and a square of column numbers.
struct Sources([NDArray; 3]);

type Create = fn(NDArrayBuilder, &Sources) -> BloscResult<NDArray>;

/// The names of libraries, and expressions in Python.
type Others = &'static [(&'static str, &'static str)];

/// The name of each operation, its code, and expressions in Python with the same result. There, `row`, `square` and
/// `columns` are the sources, and `out` contains the arguments that state the file of the result.
const OPERATIONS: [(&str, Create, Others); 11] = [
    ("sort", |to, Sources([row, ..])| to.sort::<f64>(row), &[("NumPy", "store(np.sort(row[:]))")]),
    (
        "argsort",
        |to, Sources([row, ..])| to.argsort::<f64>(row),
        &[
            ("blosc2", "blosc2.argsort(row, **out)"),
            ("NumPy", "store(np.argsort(row[:], stable=True))"),
        ],
    ),
    (
        "unique",
        |to, Sources([row, ..])| to.unique::<f64>(row),
        &[("NumPy", "store(np.unique(row[:]))")],
    ),
    (
        "cumulative_sum, axis 0",
        |to, Sources([_, square, _])| to.cumulative_sum::<f64>(square, 0),
        &[
            ("blosc2", "blosc2.cumulative_sum(square, axis=0, **out)"),
            ("NumPy", "store(np.cumsum(square[:], axis=0))"),
        ],
    ),
    (
        "cumulative_sum, axis 1",
        |to, Sources([_, square, _])| to.cumulative_sum::<f64>(square, 1),
        &[
            ("blosc2", "blosc2.cumulative_sum(square, axis=1, **out)"),
            ("NumPy", "store(np.cumsum(square[:], axis=1))"),
        ],
    ),
    (
        "diff, axis 1",
        |to, Sources([_, square, _])| to.diff::<f64>(square, 1, 1),
        &[("NumPy", "store(np.diff(square[:], axis=1))")],
    ),
    (
        "take_along_axis",
        |to, Sources([_, square, columns])| to.take_along_axis(square, columns, 1),
        &[
            ("blosc2", "blosc2.take_along_axis(square, columns, axis=1).copy(**out)"),
            ("NumPy", "store(np.take_along_axis(square[:], columns[:], 1))"),
        ],
    ),
    (
        "reshape",
        |to, Sources([row, ..])| to.reshape(row, (1u64 << 11, LEN >> 11)),
        &[
            ("blosc2", "blosc2.reshape(row, (1 << 11, LEN >> 11), **out)"),
            ("NumPy", "store(row[:].reshape(1 << 11, -1))"),
        ],
    ),
    (
        "broadcast_to",
        |to, Sources([_, square, _])| {
            to.broadcast_to(square.view().slice((0..1, ..))?, (SIDE, SIDE))
        },
        &[
            ("blosc2", "blosc2.broadcast_to(square[0:1], (SIDE, SIDE)).copy(**out)"),
            ("NumPy", "store(np.broadcast_to(square[0:1], (SIDE, SIDE)).copy())"),
        ],
    ),
    (
        "copy, transposed",
        |to, Sources([_, square, _])| to.copy(square.view().transpose()),
        &[
            ("blosc2", "blosc2.permute_dims(square, (1, 0), **out)"),
            ("NumPy", "store(np.ascontiguousarray(square[:].T))"),
        ],
    ),
    (
        "matmul",
        |to, Sources([_, square, _])| to.matmul::<f64>(square, square),
        &[
            ("blosc2", "blosc2.matmul(square, square, **out)"),
            ("NumPy", "store(np.matmul(square[:], square[:]))"),
        ],
    ),
];

const SCRIPT: &str = "\
import os, time, numpy as np, blosc2
blosc2.set_nthreads(2)
row, square, columns = (blosc2.open(f'{name}.b2nd') for name in ('row', 'square', 'columns'))
out = {'urlpath': 'out.b2nd', 'mode': 'w'}
store = lambda items: blosc2.asarray(items, **out)
def measure(name, work):
    best = 1e9
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    print(name, best, sep='\\t', flush=True)
";

fn main() {
    let folder = tempfile::tempdir().unwrap();
    write_sources(folder.path());
    let python = python(folder.path());
    println!("operation                 ours, s  blosc2, s  ours / blosc2  NumPy, s  ours / NumPy");
    let sources = Sources(["row", "square", "columns"].map(|name| {
        let options = OpenOptions::new().dparams(DParams::new().threads(Threads::new(2)));
        NDArray::open_with(folder.path().join(format!("{name}.b2nd")), &options).unwrap()
    }));
    for (name, create, _) in OPERATIONS {
        let times = (0..ROUNDS).map(|_| {
            let options = OpenOptions::new().replace(true);
            let builder = NDArray::builder()
                .target(folder.path().join("out.b2nd"))
                .options(options)
                .cparams(CParams::new().threads(Threads::new(2)))
                .max_memory(MEMORY);
            let start = Instant::now();
            create(builder, &sources).unwrap();
            start.elapsed().as_secs_f64()
        });
        let ours = times.fold(f64::INFINITY, f64::min);
        let [blosc2, numpy] = ["blosc2", "NumPy"].map(|library| {
            python
                .get(&format!("{name}, {library}"))
                .map_or((String::new(), String::new()), |time| {
                    (format!("{time:.3}"), format!("{:.2}", ours / time))
                })
        });
        println!(
            "{name:<24} {ours:>8.3} {:>10} {:>14} {:>9} {:>13}",
            blosc2.0, blosc2.1, numpy.0, numpy.1
        );
    }
}

fn write_sources(folder: &Path) {
    let to = |name: &str| NDArray::builder().target(folder.join(format!("{name}.b2nd")));
    let mut rng = Rng(1);
    // Three decimals, so that the items can be compressed, and some are equal.
    let mut random = || (rng.below(1 << 24) as f64) / 1000.0;
    let row: Vec<f64> = (0..LEN).map(|_| random()).collect();
    to("row").from_slice(&row, LEN).unwrap();
    let square: Vec<f64> = (0..SIDE * SIDE).map(|_| random()).collect();
    to("square").from_slice(&square, (SIDE, SIDE)).unwrap();
    let column = |[row, column]: [u64; 2]| ((row * 31 + column * 7) % SIDE) as i64;
    to("columns").from_fn([SIDE, SIDE], column).unwrap();
}

/// The times of Python in seconds, by operation and library. Operations that the installed version does not have are
/// missing.
fn python(folder: &Path) -> HashMap<String, f64> {
    let Some(python) = std::env::var_os("BLOSC2_TEST_PYTHON") else {
        println!("no Python to compare with");
        return HashMap::new();
    };
    let mut script = format!("ROUNDS, LEN, SIDE = {ROUNDS}, {LEN}, {SIDE}\n{SCRIPT}");
    for (name, _, expressions) in OPERATIONS {
        for (library, expression) in expressions {
            script += &format!("measure('{name}, {library}', lambda: {expression})\n");
        }
    }
    let output = Command::new(python).args(["-I", "-c", &script]).current_dir(folder).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().filter_map(|line| line.split_once('\t'));
    lines.map(|(name, time)| (name.to_owned(), time.parse().unwrap())).collect()
}
