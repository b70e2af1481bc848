//! Helpers of the tests: data, a plain model of arrays, upstream's files, Python.

// Each test file uses a part of this.
#![allow(dead_code)]

pub(crate) mod counting;
pub(crate) mod measure;
pub(crate) mod mutants;
pub(crate) mod round_trip;

use std::collections::BTreeSet;
use std::env;
use std::fmt::Debug;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use blosc2::{Codec, ErrorKind, Filter};
#[allow(unused_imports)]
pub(crate) use blosc2_testing::{
    KINDS, Kind, OTHER_ORDER, Rng, data, native, records, repeats, swapped,
};

/// Whether C reads valid frames. On big-endian processors, it reads and writes the offsets of chunks in native byte
/// order.
pub(crate) const C_READS_FRAMES: bool = cfg!(target_endian = "little");

/// The codecs of this build that support dictionaries.
pub(crate) fn dictionary_codecs() -> Vec<Codec> {
    let has = |codec: &Codec| matches!(codec, Codec::Zstd | Codec::Lz4 | Codec::Lz4Hc);
    codecs().into_iter().filter(has).collect()
}

/// The codecs of this build that work outside arrays.
pub(crate) fn codecs() -> Vec<Codec> {
    [Codec::BloscLz, Codec::Lz4, Codec::Lz4Hc, Codec::Zlib, Codec::Zstd]
        .into_iter()
        .filter(|codec| codec.is_available())
        .collect()
}

/// A random lossless filter for items of this size; delta only as the first filter.
pub(crate) fn lossless(typesize: usize, first: bool, rng: &mut Rng) -> Filter {
    loop {
        let filter = match rng.below(6) {
            0 => Filter::Shuffle,
            1 => Filter::ShuffleBytes(1 + rng.below(255) as u8),
            2 => Filter::Bitshuffle,
            3 => Filter::Delta,
            4 => Filter::Bytedelta(0),
            _ => Filter::Bytedelta(1 + rng.below(255) as u8),
        };
        let allowed = match filter {
            Filter::Delta => first,
            Filter::Bytedelta(0) => typesize <= 255,
            _ => true,
        };
        if allowed {
            return filter;
        }
    }
}

/// A plain array of bytes, the model of an [`NDArray`](blosc2::NDArray).
#[derive(Debug, Clone)]
pub(crate) struct Model {
    pub(crate) shape: Vec<u64>,
    pub(crate) typesize: usize,
    pub(crate) bytes: Vec<u8>,
}

impl Model {
    pub(crate) fn new(shape: &[u64], typesize: usize, kind: Kind, seed: u64) -> Self {
        let items: u64 = shape.iter().product();
        let bytes = data(kind, items as usize * typesize, seed);
        Self { shape: shape.to_vec(), typesize, bytes }
    }

    /// Reads a box, item by item.
    pub(crate) fn read(&self, ranges: &[Range<u64>]) -> Vec<u8> {
        let mut out = Vec::new();
        if ranges.iter().any(|range| range.is_empty()) {
            return out;
        }
        let mut index: Vec<u64> = ranges.iter().map(|range| range.start).collect();
        loop {
            let at = index.iter().zip(&self.shape).fold(0, |at, (index, size)| at * size + index);
            let at = at as usize * self.typesize;
            out.extend(&self.bytes[at..at + self.typesize]);
            let mut axis = index.len();
            loop {
                if axis == 0 {
                    return out;
                }
                axis -= 1;
                index[axis] += 1;
                if index[axis] < ranges[axis].end {
                    break;
                }
                index[axis] = ranges[axis].start;
            }
        }
    }
}

/// A random box inside a shape; sometimes without items, sometimes a full axis.
pub(crate) fn random_box(shape: &[u64], rng: &mut Rng) -> Vec<Range<u64>> {
    shape
        .iter()
        .map(|&size| {
            if rng.below(4) == 0 {
                return 0..size;
            }
            let (one, other) = (rng.below(size + 1), rng.below(size + 1));
            one.min(other)..one.max(other)
        })
        .collect()
}

/// The kind of the error that a call failed with.
#[track_caller]
pub(crate) fn kind<T: Debug>(result: blosc2::Result<T>) -> ErrorKind {
    result.unwrap_err().kind()
}

/// Bytes as hexadecimal digits, shortened.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let digits: String = bytes.iter().take(400).map(|byte| format!("{byte:02x}")).collect();
    if bytes.len() > 400 { format!("{digits}... ({} bytes)", bytes.len()) } else { digits }
}

/// Asserts that the bytes are equal. The message has the first difference only.
#[track_caller]
pub(crate) fn assert_same(found: &[u8], expected: &[u8], what: &str) {
    if found == expected {
        return; // Fast, for long data.
    }
    assert_eq!(found.len(), expected.len(), "{what}: length");
    if found == expected {
        return; // Faster than the search below.
    }
    if let Some(at) = (0..found.len()).find(|&at| found[at] != expected[at]) {
        let end = (at + 16).min(found.len());
        panic!(
            "{what}: byte {at} of {}: found {:?}, expected {:?}",
            found.len(),
            &found[at..end],
            &expected[at..end]
        );
    }
}

/// A file of the C library's sources.
pub(crate) fn upstream(path: &str) -> PathBuf {
    let path = blosc2_testing::root().join("c-blosc2").join(path);
    assert!(path.exists(), "{} is missing: run `cargo xtask vendor`", path.display());
    path
}

/// The files in a folder of the C library's sources whose names end with `suffix`, sorted.
pub(crate) fn upstream_files(folder: &str, suffix: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(upstream(folder))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| name(path).ends_with(suffix))
        .collect();
    found.sort();
    found
}

/// The last part of a path.
pub(crate) fn name(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}

/// The parts of a text between backticks.
fn quoted(text: &str) -> BTreeSet<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// The columns of the table at the start of a test file: names of upstream's tests, and of the tests here.
pub(crate) fn table(text: &str) -> (BTreeSet<&str>, BTreeSet<&str>) {
    let rows = text.lines().filter_map(|line| line.strip_prefix("//! | `"));
    let rows: Vec<_> = rows.map(|row| row.split_once(" | ").unwrap()).collect();
    let names = rows.iter().flat_map(|(names, _)| names.split(['`', ',', ' ']));
    let tests = rows.iter().flat_map(|(_, tests)| quoted(tests));
    (names.filter(|name| !name.is_empty()).collect(), tests.collect())
}

/// All files below a folder with their lengths, to check that nothing was written or lost.
pub(crate) fn listing(folder: &Path) -> Vec<(PathBuf, u64)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let metadata = entry.metadata().unwrap();
        if metadata.is_dir() {
            found.extend(listing(&entry.path()));
        }
        found.push((entry.path(), if metadata.is_dir() { 0 } else { metadata.len() }));
    }
    found.sort();
    found
}

/// A Python with the packages `blosc2` and `numpy`.
pub(crate) fn python() -> PathBuf {
    if let Some(given) = std::env::var_os("BLOSC2_TEST_PYTHON") {
        return given.into();
    }
    let venv = blosc2_testing::root().join("target").join("python-venv");
    let found = [venv.join("bin").join("python"), venv.join("Scripts").join("python.exe")]
        .into_iter()
        .find(|path| path.exists());
    found.expect("there is no Python for the tests: run `cargo xtask test`, which sets it up")
}

/// Runs a script with arguments in a folder and returns its output. Panics if the script fails.
pub(crate) fn run_python(script: &str, folder: &Path, arguments: &[&str]) -> String {
    let file = folder.join("script_of_this_test.py");
    // The search for cycles of references takes a third of the time of some scripts.
    std::fs::write(&file, ["import gc; gc.disable()\n", script].concat()).unwrap();
    let mut command = Command::new(python());
    command.arg("-I").arg(&file).args(arguments).current_dir(folder);
    // Python's library reads these variables.
    for (name, _) in VARIABLES {
        command.env_remove(name);
    }
    let output = command.output().expect("Python does not start");
    std::fs::remove_file(&file).unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "Python failed ({}):\n{printed}\n{}\nIf packages are missing, run `cargo xtask test`.",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    printed
}

/// The variable that tells a test that it runs in its own process.
pub(crate) const FOLDER: &str = "BLOSC2_TEST_FOLDER";

/// The folder of this test, if it runs in its own process.
pub(crate) fn own_process() -> Option<PathBuf> {
    env::var_os(FOLDER).map(PathBuf::from)
}

/// Runs a test of this program in its own process, with only these variables of the library, and returns its
/// output. The name may omit the modules.
pub(crate) fn run_alone(test: &str, folder: &Path, variables: &[(&str, &str)]) -> String {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args([test, "--nocapture", "--test-threads=1"]).env(FOLDER, folder);
    for (name, _) in VARIABLES {
        command.env_remove(name);
    }
    let output = command.envs(variables.iter().copied()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("test result: ok. 1 passed"), "{text}");
    text.into_owned()
}

/// Variables with which C-Blosc2 overrides the parameters of a program.
pub(crate) const VARIABLES: [(&str, &str); 11] = [
    ("BLOSC_TYPESIZE", "3"),
    ("BLOSC_CLEVEL", "0"),
    ("BLOSC_COMPRESSOR", "zlib"),
    ("BLOSC_NTHREADS", "64"),
    ("BLOSC_SHUFFLE", "BITSHUFFLE"),
    ("BLOSC_DELTA", "1"),
    ("BLOSC_BLOCKSIZE", "4096"),
    ("BLOSC_SPLITMODE", "NEVER"),
    ("BLOSC_BLOSC1_COMPAT", "1"),
    ("BLOSC_NOLOCK", "1"),
    ("BTUNE_TRADEOFF", "0.5"),
];

/// Forks and returns the exit status of the child, or `None` if it hangs.
#[cfg(unix)]
pub(crate) fn fork(child: impl FnOnce() -> i32) -> Option<i32> {
    use std::time::{Duration, Instant};
    // SAFETY: the test runs in a process of its own, whose other thread waits for this one; the
    // child only calls what this test is about, and leaves without running anything else.
    let process = unsafe { libc::fork() };
    if process == 0 {
        let status = child();
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(status) };
    }
    assert!(process > 0);
    let start = Instant::now();
    let mut status = 0;
    loop {
        // SAFETY: the child is ours, and `status` is writable.
        match unsafe { libc::waitpid(process, &mut status, libc::WNOHANG) } {
            0 if start.elapsed() > Duration::from_secs(60) => {
                // SAFETY: the child is ours and has not been waited for.
                unsafe { libc::kill(process, libc::SIGKILL) };
                return None;
            }
            0 => std::thread::sleep(Duration::from_millis(10)),
            _ => return libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)),
        }
    }
}
