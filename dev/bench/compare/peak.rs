//! The peak memory of a read and of a write, each in a process of its own.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

use blosc2::{Appender, CParams, Codec, NDArray};

use crate::Shared;

const MIB: u64 = 1 << 20;
/// The argument after which this program measures, and the variable of the workload in that case.
const CHILD: &str = "--peak";

/// The peak memory of a workload.
#[derive(Debug)]
pub(crate) struct Peak {
    pub(crate) name: String,
    /// The memory of the result that the caller keeps, in bytes.
    pub(crate) result: u64,
    /// The peak memory above the memory before the workload, in bytes.
    pub(crate) peak: u64,
    /// What it may be, in bytes.
    pub(crate) most: u64,
}

/// Measures the workloads in child processes.
pub(crate) fn measure(shared: &Shared) -> Vec<Peak> {
    if cfg!(not(target_os = "linux")) {
        println!("the peak memory is measured on Linux only");
        return Vec::new();
    }
    let path = shared.file("peak");
    let array =
        NDArray::builder().chunk_shape(shared.plan.chunks()).block_shape(shared.plan.blocks());
    let array = array.cparams(CParams::new().codec(Codec::Lz4)).target(&path);
    drop(array.from_slice(&shared.items, shared.plan.shape()).unwrap());
    let bytes = shared.plan.bytes();
    let written = 16 * bytes;
    let cases = [
        ("read", format!("read {} from a file", crate::workloads::bytes(bytes)), bytes, 16 * MIB),
        ("write", format!("append {} to a file", crate::workloads::bytes(written)), 0, 128 * MIB),
    ];
    let mut peaks = Vec::new();
    for (case, name, result, more) in cases {
        let program = env::current_exe().expect("this program has a path");
        let mut command = Command::new(program);
        let output = command.args([CHILD, case]).arg(&path).output().expect("the child runs");
        let text = String::from_utf8_lossy(&output.stdout);
        let peak = text.trim().parse().unwrap_or_else(|_| {
            panic!("no peak memory of `{name}`: {}", String::from_utf8_lossy(&output.stderr))
        });
        let peak = Peak { name, result, peak, most: result + more };
        println!(
            "peak memory: {} MiB of at most {} MiB: {}",
            peak.peak / MIB,
            peak.most / MIB,
            peak.name
        );
        peaks.push(peak);
    }
    peaks
}

/// Runs the workload and prints its peak memory, if this process is a child.
pub(crate) fn is_child() -> bool {
    let mut args = env::args().skip(1);
    if args.next().as_deref() != Some(CHILD) {
        return false;
    }
    let (case, path) = (args.next().expect("the case"), args.next().expect("the path"));
    let peak = if case == "read" { read(Path::new(&path)) } else { write(Path::new(&path)) };
    println!("{peak}");
    true
}

fn read(path: &Path) -> u64 {
    let array = NDArray::open(path).unwrap();
    let before = reset();
    let items = array.read::<Vec<f32>>(..).unwrap();
    let peak = status("VmHWM") - before;
    assert!(items.len() as u64 == array.len());
    peak
}

/// Appends 16 times the array, in pieces of half a chunk.
fn write(path: &Path) -> u64 {
    let array = NDArray::open(path).unwrap();
    let (rows, columns) = (array.chunk_shape()[0] / 2, array.chunk_shape()[1]);
    let count = 16 * array.shape()[0] / rows;
    let piece = array.read::<Vec<f32>>((0..rows, ..)).unwrap();
    let before = reset();
    let builder =
        NDArray::builder().chunk_shape(array.chunk_shape()).block_shape(array.block_shape());
    let builder = builder.cparams(array.info().cparams).target(path.with_extension("written"));
    let mut appender = Appender::new(builder.zeros::<f32>([0, columns]).unwrap(), 0).unwrap();
    (0..count).for_each(|_| appender.append(&piece).unwrap());
    let written = appender.finish().unwrap();
    let peak = status("VmHWM") - before;
    assert!(written.shape()[0] == count * rows);
    peak
}

/// Resets the peak to the current memory, and returns that in bytes.
fn reset() -> u64 {
    fs::write("/proc/self/clear_refs", "5").expect("the peak memory can be reset");
    status("VmRSS")
}

/// A value of this process in bytes.
fn status(key: &str) -> u64 {
    let text = fs::read_to_string("/proc/self/status").expect("the status can be read");
    let line = text.lines().find(|line| line.starts_with(key)).expect("the status has this value");
    let kib: u64 = line.split_whitespace().nth(1).and_then(|word| word.parse().ok()).expect("KiB");
    kib << 10
}
