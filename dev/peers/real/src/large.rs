//! One array of 100 GB and 10,000,000 chunks. Nearly all of them are special chunks.

use std::path::Path;
use std::process::Command;
use std::time::Instant;
use std::{env, fs};

use blosc2::NDArray;
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
    ("create", "create, and write 100 chunks"),
    ("item", "open and read an item"),
    ("sum", "open and sum 1,000,000 rows"),
    ("append", "open and append a row"),
    ("delete", "open and delete a row in the middle"),
    ("resize", "open and halve the number of rows"),
];

/// Measures each operation in a process of its own: seconds, and peak memory above the memory before.
pub fn measure(work: &Path) -> Vec<Value> {
    let path = work.join("large.b2nd");
    let mut found = Vec::new();
    for (task, about) in TASKS {
        let mut command = Command::new(env::current_exe().expect("this program has a path"));
        let output = command.args([CHILD, task]).arg(&path).output().expect("the child runs");
        let text = String::from_utf8_lossy(&output.stdout);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{task}: {error}");
        let mut record: Value = serde_json::from_str(text.trim()).expect("a record");
        record["task"] = about.into();
        record["bytes"] = size(&path).into();
        println!("100 GB in {ROWS} chunks: {record}");
        found.push(record);
    }
    remove(&path);
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
        other => panic!("no task {other}"),
    }
}
