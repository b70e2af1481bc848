//! One array of 100 GB and 10,000,000 chunks. Nearly all of them are special chunks. And one of 1 TB with 8 GB of items
//! that hardly get smaller, on the disk.

use std::path::Path;
use std::process::Command;
use std::time::Instant;
use std::{env, fs};

use blosc2::{CParams, Codec, DParams, NDArray, Threads};
use serde_json::{Value, json};

use crate::measure::{remove, size};
use crate::peak;

/// The argument after which this program measures.
pub const CHILD: &str = "--large";

/// One chunk for each row, of 10 kB.
const ROWS: u64 = 10_000_000;
const COLUMNS: u64 = 1250;
/// The step between the rows with items that are not zero.
const STEP: u64 = 100_000;
/// The operations, in the order in which the file is changed.
const TASKS: [(&str, &str); 6] = [
    ("create", "100 GB: create, and write 100 chunks"),
    ("item", "100 GB: open and read an item"),
    ("sum", "100 GB: open and sum 1,000,000 rows"),
    ("append", "100 GB: open and append a row"),
    ("delete", "100 GB: open and delete a row in the middle"),
    ("resize", "100 GB: open and halve the number of rows"),
];

/// The other array: one chunk for each row, of 1 MB.
const LONG_ROWS: u64 = 1_000_000;
const LONG_COLUMNS: u64 = 125_000;
/// Its rows with items that are not zero: this number, after each step.
const PART: u64 = 16;
const LONG_STEP: u64 = 2_000;
const LONG_TASKS: [(&str, &str); 3] = [
    ("write", "1 TB: create, and write 8 GB, 16 MB at a time"),
    ("read", "1 TB: open and read these 8 GB, 16 MB at a time"),
    ("max", "1 TB: open and compute the maximum of all items"),
];

/// Measures each operation in a process of its own: seconds, and peak memory above the memory before.
pub fn measure(work: &Path) -> Vec<Value> {
    run_tasks(&work.join("large.b2nd"), &TASKS)
}

/// The same for the array of 1 TB, whose file is too large for files in memory.
pub fn measure_long(disk: &Path) -> Vec<Value> {
    let path = disk.join("large.b2nd");
    // An interrupted run leaves it.
    remove(&path);
    run_tasks(&path, &LONG_TASKS)
}

fn run_tasks(path: &Path, tasks: &[(&str, &str)]) -> Vec<Value> {
    let mut found = Vec::new();
    for (task, about) in tasks {
        let mut command = Command::new(env::current_exe().expect("this program has a path"));
        let output = command.args([CHILD, task]).arg(path).output().expect("the child runs");
        let text = String::from_utf8_lossy(&output.stdout);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{task}: {error}");
        let mut record: Value = serde_json::from_str(text.trim()).expect("a record");
        record["task"] = (*about).into();
        record["bytes"] = size(path).into();
        println!("{record}");
        found.push(record);
    }
    remove(path);
    found
}

/// Runs an operation and prints its record.
pub fn child(args: &[String]) {
    let [task, path] = args else { panic!("two arguments") };
    let path = Path::new(path);
    // Starts the library, whose memory does not count.
    drop(NDArray::from_slice(&[1u8], 1));
    let reset = cfg!(target_os = "linux");
    if reset {
        fs::write("/proc/self/clear_refs", "5").expect("the peak memory can be reset");
    }
    let before = reset.then(|| peak::status("VmRSS"));
    let start = Instant::now();
    run(task, path);
    let seconds = start.elapsed().as_secs_f64();
    let memory = before.map(|before| peak::status("VmHWM").saturating_sub(before));
    println!("{}", json!({"seconds": seconds, "memory": memory}));
}

fn row(number: u64) -> Vec<f64> {
    (0..COLUMNS).map(|column| (number + column) as f64).collect()
}

/// Fills rows from this number on with items of seven random bytes and a zero.
fn fill(number: u64, items: &mut [u64]) {
    for (item, place) in items.iter_mut().zip(number * LONG_COLUMNS..) {
        let mixed = (place ^ place >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        *item = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 8;
    }
}

/// The numbers of the rows at which parts start.
fn parts() -> impl Iterator<Item = u64> {
    (0..LONG_ROWS).step_by(LONG_STEP as usize)
}

fn run_long(task: &str, path: &Path) {
    let mut expected = vec![0; (PART * LONG_COLUMNS) as usize];
    let place = |number| [number..number + PART, 0..LONG_COLUMNS];
    let threads = Threads::new(crate::cores());
    if task == "write" {
        // A fast codec, because no codec makes random bytes smaller.
        let params = CParams::new().codec(Codec::Lz4).threads(threads);
        let builder = NDArray::builder().chunk_shape([1, LONG_COLUMNS]).cparams(params);
        let shape = [LONG_ROWS, LONG_COLUMNS];
        let mut array = builder.target(path).zeros::<u64>(shape).expect("an array");
        for number in parts() {
            fill(number, &mut expected);
            array.write(place(number), &expected[..]).expect("rows");
        }
        return;
    }
    let mut array = NDArray::open(path).expect("an array");
    array.set_dparams(DParams::new().threads(threads));
    if task == "read" {
        let mut items = expected.clone();
        for number in parts() {
            fill(number, &mut expected);
            array.read_into(place(number), &mut items[..]).expect("rows");
            assert!(items == expected, "other items in the rows from {number} on");
        }
        return;
    }
    let found = array.lazy::<u64>().threads(threads).max().expect("a maximum");
    let mut most = 0;
    for number in parts() {
        fill(number, &mut expected);
        most = expected.iter().fold(most, |most, &item| most.max(item));
    }
    assert!(found == most, "a maximum of {found:?}, expected {most}");
}

fn run(task: &str, path: &Path) {
    let open = || NDArray::open_rw(path).expect("an array");
    let check = |array: &NDArray, at: u64, expected: f64| {
        let item = array.item::<f64>(&[at, 7]).expect("an item");
        assert!(item == expected, "{item} at {at}, expected {expected}");
    };
    let last = ROWS - STEP;
    match task {
        "create" => {
            let builder = NDArray::builder().chunk_shape(&[1, COLUMNS]).target(path);
            let mut array = builder.zeros::<f64>(&[ROWS, COLUMNS]).expect("an array");
            array
                .transaction(|array| {
                    (0..ROWS).step_by(STEP as usize).try_for_each(|number| {
                        array.write(&[number..number + 1, 0..COLUMNS], &row(number)[..])
                    })
                })
                .expect("rows");
        }
        "item" => check(&NDArray::open(path).expect("an array"), last, (last + 7) as f64),
        "sum" => {
            let array = NDArray::open(path).expect("an array");
            let part = array.view().slice(&[0..1_000_000, 0..COLUMNS]).expect("a part");
            let sum: f64 = part.lazy::<f64>().sum().expect("a sum");
            let expected: f64 = (0..1_000_000)
                .step_by(STEP as usize)
                .map(|number| row(number).iter().sum::<f64>())
                .sum();
            assert!(sum == expected, "{sum}, expected {expected}");
        }
        "append" => {
            let mut array = open();
            array.append(0, &row(1)[..]).expect("a row");
            check(&array, ROWS, 8.0);
        }
        "delete" => {
            let mut array = open();
            array.delete(0, ROWS / 2 + 1..ROWS / 2 + 2).expect("a row less");
            check(&array, ROWS - 1, 8.0);
            check(&array, last - 1, (last + 7) as f64);
        }
        "resize" => {
            let mut array = open();
            array.resize(&[ROWS / 2, COLUMNS]).expect("fewer rows");
            check(&array, STEP, (STEP + 7) as f64);
        }
        _ => run_long(task, path),
    }
}
