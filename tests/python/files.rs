//! Automatic shapes, and the first example, against Python. `cargo xtask conformance` exchanges files with Python.

use std::fs;
use std::path::Path;

use crate::common::run_python;
use blosc2::{CParams, Codec, NDArray, RawItems};
use serde_json::Value;

fn numbers(value: &Value) -> Vec<u64> {
    value.as_array().unwrap().iter().map(|each| each.as_u64().unwrap()).collect()
}

fn read_json(path: &Path) -> Vec<Value> {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn automatic_shapes_are_those_of_python_with_the_same_caches() {
    let folder = tempfile::tempdir().unwrap();
    let script = r#"
import json, random
import numpy as np
import blosc2
import platform

blosc2.cpu_info.clear()
blosc2.cpu_info.update(l1_data_cache_size=32768, l2_cache_size=1 << 20, l3_cache_size=32 << 20)
platform.machine = lambda: "x86_64"
platform.system = lambda: "Linux"
random.seed(3)
cases = []
limit = 16 << 20
def add(shape, itemsize, chunks=None):
    found = blosc2.compute_chunks_blocks(shape, chunks, None, dtype=f"V{itemsize}")
    cases.append(dict(shape=shape, typesize=itemsize, given=chunks, chunks=found[0], blocks=found[1]))
while len(cases) < 550:
    itemsize = random.choice([1, 1, 2, 4, 4, 8, 8, 16, 40, 3, 7, 100, 300, 5000, 200_000, 9_000_000])
    ndim = random.randint(0, 6) if random.random() < 0.95 else 16
    # A few large ones; the rest are small, or there would be nothing else to do.
    room = (limit if len(cases) % 10 == 0 else 1 << 20) // itemsize
    shape = []
    for _ in range(ndim):
        size = random.choice([1, 2, 3, random.randint(0, 20), random.randint(1, max(room, 1)),
                              random.randint(1, 1000), 2 ** random.randint(0, 12)])
        size = min(size, max(room, 1))
        shape.append(size)
        room //= max(size, 1)
    random.shuffle(shape)
    if np.prod(shape, dtype=object) * itemsize > limit: continue
    chunks = None
    if shape and 0 not in shape and random.random() < 0.3:
        chunks = [random.randint(1, size) for size in shape]
    add(shape, itemsize, chunks)
json.dump(cases, open("cases.json", "w"), default=int)
"#;
    run_python(script, folder.path(), &[]);
    let cases = read_json(&folder.path().join("cases.json"));
    assert!(cases.len() >= 550);
    let zeros = vec![0u8; 16 << 20];
    let mut wrong = Vec::new();
    for case in &cases {
        let shape = numbers(&case["shape"]);
        let typesize = case["typesize"].as_u64().unwrap() as usize;
        let len = shape.iter().product::<u64>() as usize * typesize;
        let mut builder = NDArray::builder().cparams(CParams::new().codec(Codec::Lz4).level(1));
        if !case["given"].is_null() {
            builder = builder.chunk_shape(numbers(&case["given"]));
        }
        let array = builder.dtype("|V1", typesize).from_slice(RawItems(&zeros[..len]), &shape);
        let array = array.unwrap_or_else(|error| panic!("{case}: {error}"));
        // Without items Python's chunks have none; ours have, so that the array can grow.
        let is_empty = shape.contains(&0) && case["given"].is_null();
        let same = array.chunk_shape() == numbers(&case["chunks"])
            && array.block_shape() == numbers(&case["blocks"]);
        if same == is_empty {
            wrong.push(format!("{case}: {:?} {:?}", array.chunk_shape(), array.block_shape()));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn python_reads_what_the_first_example_writes() {
    let folder = tempfile::tempdir().unwrap();
    let manifest = blosc2_testing::root().join("Cargo.toml");
    let output = std::process::Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--example", "quickstart", "--manifest-path"])
        .arg(manifest)
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(printed.contains("[1000, 365]"), "{printed}");
    let script = r#"
import numpy as np
import blosc2
array = blosc2.open("temperatures.b2nd")
assert array.shape == (1000, 365) and array.dtype == np.float32
expected = (np.tile(np.arange(365), 1000).astype("f4") / np.float32(10)).reshape(1000, 365)
assert (array[:] == expected).all()
assert (array[:, 0:31] == expected[:, 0:31]).all()
"#;
    run_python(script, folder.path(), &[]);
}
