//! Python reads the files that the command converts from old versions, and `cat --text` prints as NumPy does.

use std::path::{Path, PathBuf};
use std::process::Command;

use blosc2_testing::repeats;

use crate::common::{Folder, old_files};

/// Prints for each file: its length decompressed, typesize, and names of its metalayers.
const READ: &str = r#"
import sys
import blosc2

for path in sys.argv[1:]:
    schunk = blosc2.open(path, mode="r")
    data = b"".join(schunk.decompress_chunk(i) for i in range(schunk.nchunks))
    assert data == open(path + ".raw", "rb").read(), path
    names = list(schunk.meta.keys()), sorted(schunk.vlmeta.get_names())
    print(path, len(data), schunk.typesize, *names[0], *names[1])
"#;

/// Writes tensors of many dtypes, and for each what NumPy saves and prints of all items and of a part.
const TENSORS: &str = r#"
import sys
import blosc2
import numpy as np

names = ["f2", "<f4", ">f8", "b1", "i1", ">i2", "<u4", "i8", "<c8", ">c16", "S5", "<U3", ">U2", "M8[s]", "m8[ns]", "V6"]
names.append([("a", "i1"), ("b", ">f4"), ("c", "S3")])
random = np.random.default_rng(3)
number = 0
for name in names:
    dtype = np.dtype(name)
    for shape in [(), (0, 3), (7,), (20, 6), (5, 4, 3)]:
        count = int(np.prod(shape))
        letters = random.integers(97, 110, size=(count, dtype.itemsize), dtype="u1")
        items = letters.view(dtype) if dtype.kind not in "USMb" else np.arange(count).astype(dtype)
        array = items.reshape(shape)
        blosc2.save_tensor(array, urlpath=f"{number}", mode="w", chunksize=2 * dtype.itemsize * 7)
        part = array[..., ::-2] if shape else array
        for kind, result in ("all", array), ("part", part):
            np.save(f"{number}-{kind}.npy", np.ascontiguousarray(result).reshape(result.shape))
            open(f"{number}-{kind}.txt", "w").write(f"{result}\n")
        number += 1
print(number)
"#;

/// Prints the items of arrays whose dtypes are names.
const NAMED: &str = r#"
import sys
import blosc2
import numpy as np

for path in sys.argv[1:]:
    np.save(path + ".npy", blosc2.open(path, mode="r")[:])
"#;

/// Writes arrays, and what NumPy prints of a selection of each.
const PRINT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/print_cases.py");

/// Writes stores of each form and kind, and zip files that are not stores or are damaged.
const STORES: &str = r#"
import zipfile
import blosc2
import numpy as np
from dataclasses import dataclass

numbers = np.arange(3000, dtype="i4").reshape(300, 10)
for ending in ("b2d", "b2z"):
    with blosc2.TreeStore(f"tree.{ending}", mode="w") as store:
        store["/array"] = blosc2.asarray(numbers, chunks=(50, 10), blocks=(10, 10))
        store["/group/deep/chunks"] = blosc2.SChunk(data=b"abc" * 1000)
        store["/group/zeros"] = blosc2.zeros((1000, 1000))
        store.vlmeta["title"] = "a tree"
    with blosc2.DictStore(f"dict.{ending}", mode="w", threshold=None) as store:
        store["/array"] = blosc2.asarray(numbers)
        store["/é"] = blosc2.asarray(numbers[:0])
    with blosc2.TreeStore(f"empty.{ending}", mode="w") as store:
        pass

    @dataclass
    class Row:
        number: int = blosc2.field(blosc2.int64(), default=0)
        text: str = blosc2.field(blosc2.vlstring(nullable=True), default="")
        items: list[int] = blosc2.field(blosc2.list(blosc2.int64()), default=None)

    table = blosc2.CTable(Row, urlpath=f"table.{ending}", mode="w")
    for number in range(100):
        table.append({"number": number, "text": None if number % 7 == 0 else "é" * number, "items": [number] * 3})
    table.delete([2, 7])
    table.close()
store = blosc2.EmbedStore(urlpath="embedded.b2e", mode="w")
store["/array"] = blosc2.asarray(numbers)
store["/group/array"] = blosc2.asarray(numbers * 2)
del store["/array"]
with zipfile.ZipFile("tree.b2z") as old, zipfile.ZipFile("deflated.b2z", "w", zipfile.ZIP_DEFLATED) as new:
    for name in old.namelist():
        new.writestr(name, old.read(name))
with zipfile.ZipFile("other.zip", "w", zipfile.ZIP_DEFLATED) as new:
    new.writestr("a.txt", "text")
"#;

/// Writes a table with columns that Python computes, and prints two of them.
const COMPUTED: &str = r#"
import dataclasses
import blosc2

@dataclasses.dataclass
class Row:
    n: int = blosc2.field(blosc2.int32())
    x: float = blosc2.field(blosc2.float32())

table = blosc2.CTable(Row, urlpath="table.b2z", mode="w")
table.extend([(i, i / 10) for i in range(20)])
table.add_computed_column("thin", "x * 3")
table.add_computed_column("large", "n > 10")
for thin, large in zip(table["thin"][:], table["large"][:]):
    print(f"{thin!s},{str(large).lower()}")
table.close()
"#;

/// A Python with the package `blosc2`.
fn python() -> PathBuf {
    if let Some(given) = std::env::var_os("BLOSC2_TEST_PYTHON") {
        return given.into();
    }
    let venv = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/python-venv");
    let found = [venv.join("bin").join("python"), venv.join("Scripts").join("python.exe")];
    let found = found.into_iter().find(|path| path.exists());
    found.expect("there is no Python for the tests: run `cargo xtask test`, which sets it up")
}

/// Runs Python in the folder with these arguments, and returns its stdout.
fn run(folder: &Folder, args: &[&str]) -> String {
    let mut command = Command::new(python());
    command.arg("-I").args(args).current_dir(folder.path("."));
    let output = command.output().expect("Python does not start");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn old_files_become_frames_that_python_reads() {
    let folder = Folder::new();
    let (mut names, mut expected) = (Vec::new(), String::new());
    for (number, (path, raw)) in old_files().iter().enumerate() {
        let name = format!("{number}.b2frame");
        assert!(folder.run(&["copy", path, &name]).status.success(), "{path}");
        folder.write(&format!("{name}.raw"), raw);
        let info = folder.info(path);
        let line = format!("{name} {} {}", info["nbytes"], info["typesize"]);
        let mut vlmeta: Vec<_> = info["vlmeta"].as_array().unwrap().iter().collect();
        vlmeta.sort_by_key(|name| name.as_str());
        let all = info["meta"].as_array().unwrap().iter().chain(vlmeta);
        expected += &all.fold(line, |line, name| format!("{line} {}", name.as_str().unwrap()));
        expected.push('\n');
        names.push(name);
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    assert_eq!(run(&folder, &[&["-c", READ], &names[..]].concat()), expected);
}

/// Writes arrays of numbers, and prints for each its name, the number of NaN, and minimum, maximum and mean of the
/// finite items.
const STATISTICS: &str = r#"
import blosc2
import numpy as np

random = np.random.default_rng(7)
values = random.normal(scale=50, size=(37, 41))
values[3, 5:9] = np.nan
dates = np.datetime64("2020-01-01") + np.arange(60).astype("m8[D]")
dates[7] = np.datetime64("NaT")
with_fields = np.zeros(50, dtype=[("a", "i1"), ("b", ">f8")])
with_fields["b"] = random.normal(size=50)
arrays = {
    **{dtype: values.astype(dtype) for dtype in ["<f2", ">f2", "<f4", ">f4", "<f8", ">f8"]},
    **{dtype: np.nan_to_num(values).astype(dtype) for dtype in ["i1", "<i2", ">i4", "<i8", "b1"]},
    **{dtype: np.abs(np.nan_to_num(values)).astype(dtype) for dtype in ["u1", ">u2", "<u4", ">u8"]},
    "<c8": (values + 1j * values[::-1]).astype("<c8"),
    ">c16": (values - 2j * values).astype(">c16"),
    "dates": dates,
    "fields": with_fields,
}
for name, array in arrays.items():
    name = name.replace("<", "little-").replace(">", "big-")
    blosc2.asarray(array, urlpath=name, mode="w")
    if array.dtype.fields:
        array = array["b"]
    numbers = np.abs(array.astype("c16")) if array.dtype.kind == "c" else array
    if array.dtype.kind == "M":
        numbers = np.where(np.isnat(array), np.nan, array.astype("i8"))
    numbers = numbers.astype("f8")
    finite = numbers[np.isfinite(numbers)]
    missing = array.size - finite.size
    print(name, array.size, missing, finite.min(), finite.max(), finite.mean())
"#;

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn statistics_are_those_of_numpy() {
    let folder = Folder::new();
    let lines = run(&folder, &["-c", STATISTICS]);
    assert_eq!(lines.lines().count(), 19, "{lines}");
    for line in lines.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let field: &[&str] = if words[0] == "fields" { &["--field", "b"] } else { &[] };
        let json = folder.good(&[&["view", words[0], "--json"], field].concat());
        let found: serde_json::Value = serde_json::from_slice(&json).unwrap();
        for (key, word) in ["count", "nan", "min", "max", "mean"].iter().zip(&words[1..]) {
            let (found, expected) = (found[key].as_f64().unwrap(), word.parse::<f64>().unwrap());
            let error = (found - expected).abs();
            assert!(error <= 1e-9 * expected.abs().max(1.0), "{line}: {key} {found}");
        }
    }
}

/// Writes arrays, and prints for each its name and the expected `stats` of `info`. Mean and variance are computed as
/// fractions and rounded once. Means of integers are multiples of 1/4096.
const EXACT_STATISTICS: &str = r#"
import json
import math
from fractions import Fraction

import blosc2
import numpy as np

random = np.random.default_rng(11)
values = random.normal(scale=50, size=(64, 64))
missing = np.where(random.random(values.shape) < 0.1, np.nan, values)
infinite = missing.copy()
infinite[5, 7] = -np.inf
arrays = {dtype: values.astype(dtype) for dtype in ["i1", "<i2", ">i2", "<i4", ">i4", "<i8", ">i8"]} | {"b1": values > 0}
arrays |= {dtype: abs(values).astype(dtype) for dtype in ["u1", "<u2", ">u2", "<u4", ">u4", "<u8", ">u8"]}
floats = {"missing": missing, "infinite": infinite, "empty": values[:0], "cube": missing[:63].reshape(8, 12, 42)}
for name, array in floats.items():
    arrays |= {name + dtype: array.astype(dtype) for dtype in ["<f2", ">f2", "<f4", ">f4", "<f8", ">f8"]}
for name, array in arrays.items():
    name = name.replace("<", "little-").replace(">", "big-")
    blosc2.asarray(array, urlpath=name, mode="w")
    items = array[~np.isnan(array)]
    finite = items[np.isfinite(items)].astype("f8")
    mean = std = None
    if finite.size and finite.size == items.size:
        fractions = [Fraction(item) for item in finite.tolist()]
        mean = sum(fractions) / len(fractions)
        std = math.sqrt(sum((item - mean) ** 2 for item in fractions) / len(fractions))
        mean = float(mean)
    number = float if array.dtype.kind == "f" else int
    ends = [number(end) if np.isfinite(end) else None for end in (items.min(), items.max())] if items.size else [None] * 2
    counts, edges = np.histogram(finite, bins=16) if finite.size else (np.array([]), np.array([]))
    print(name, json.dumps({
        "count": items.size,
        "nan_count": array.size - items.size,
        "min": ends[0],
        "max": ends[1],
        "mean": mean,
        "std": std,
        "histogram": {"edges": edges.tolist(), "counts": counts.tolist()},
    }))
"#;

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn statistics_of_info_are_those_of_exact_fractions() {
    let folder = Folder::new();
    let lines = run(&folder, &["-c", EXACT_STATISTICS]);
    assert_eq!(lines.lines().count(), 39, "{lines}");
    for line in lines.lines() {
        let (name, expected) = line.split_once(' ').unwrap();
        let json = folder.good(&["info", name, "--stats", "--json"]);
        let mut found: serde_json::Value = serde_json::from_slice(&json).unwrap();
        let mut expected: serde_json::Value = serde_json::from_str(expected).unwrap();
        let found = found["stats"].take();
        let largest = ["min", "max"].map(|end| expected[end].as_f64().unwrap_or(0.0).abs());
        // The errors that the documentation of `LazyExpr` states, and the rounding of the quotient and of the root.
        for (key, error) in [
            ("mean", largest[0].max(largest[1]) * 2f64.powi(-46)),
            ("std", expected["std"].as_f64().unwrap_or(0.0) * 2f64.powi(-36)),
        ] {
            if let (Some(number), Some(exact)) = (found[key].as_f64(), expected[key].as_f64()) {
                assert!((number - exact).abs() <= error, "{name}: {key} {number} {exact}");
                expected[key] = found[key].clone();
            }
        }
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn values_are_printed_as_numpy_prints_them() {
    const CASES: usize = 50;
    for seed in 0..repeats(25) {
        let folder = Folder::new();
        let cases = run(&folder, &[PRINT, &seed.to_string(), &CASES.to_string()]);
        assert!(cases.lines().count() >= CASES, "{cases}");
        for case in cases.lines() {
            let (name, args, expected): (String, Vec<String>, String) =
                serde_json::from_str(case).unwrap();
            let mut all = vec!["cat", &name, "--text"];
            all.extend(args.iter().map(String::as_str));
            let text = String::from_utf8(folder.good(&all)).unwrap();
            assert_eq!(
                text,
                expected + "\n",
                "seed {seed}: {all:?} of {}",
                folder.info(&name)["dtype"]
            );
        }
    }
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn tensors_are_those_of_python() {
    let folder = Folder::new();
    let count: usize = run(&folder, &["-c", TENSORS]).trim().parse().unwrap();
    assert_eq!(count, 85);
    for number in 0..count {
        let name = number.to_string();
        let info = folder.info(&name);
        let is_scalar = info["shape"].as_array().unwrap().is_empty();
        for (kind, slice) in [("all", "..."), ("part", "...,::-2")] {
            let slice = if is_scalar { "..." } else { slice };
            let expected = folder.read(&format!("{name}-{kind}.npy"));
            let what = format!("{} {} {kind}", info["dtype"], info["shape"]);
            assert_eq!(folder.good(&["export", &name, "-", "--slice", slice]), expected, "{what}");
            if is_scalar {
                // `cat --text` prints scalars as Python's `print` does, which is not the text of 0-d arrays.
                continue;
            }
            let expected = folder.read(&format!("{name}-{kind}.txt"));
            for engine in ["c", "rust"] {
                let args = ["cat", &name, "--text", "--slice", slice, "--engine", engine];
                let (found, expected) = (folder.good(&args), String::from_utf8_lossy(&expected));
                assert_eq!(String::from_utf8_lossy(&found), expected, "{what} {engine}");
            }
        }
    }
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn arrays_whose_dtype_is_a_name_are_those_of_python() {
    let folder = Folder::new();
    let dtypes = [
        "float64",
        "double",
        "float32",
        "single",
        "half",
        "int32",
        "uint16",
        "bool",
        "int64",
        "long",
        "l",
        "q",
        "B",
        "complex128",
        "csingle",
        "datetime64[ns]",
        "timedelta64[25s]",
        "f8",
        ">d",
        "=H",
        "S8",
        "U2",
        "intc",
        "str_",
    ];
    let mut names = Vec::new();
    for (number, text) in dtypes.into_iter().enumerate() {
        let size = blosc2::Dtype::parse(text).unwrap().size();
        // A type without bytes has no items.
        if size > 0 {
            let bytes: Vec<u8> = (0..size * 6).map(|at| (at % 2) as u8 * 64).collect();
            let builder = blosc2::NDArray::builder().target(folder.path(&number.to_string()));
            builder.dtype(text, size).from_slice(blosc2::RawItems(&bytes), [3, 2]).unwrap();
            assert_eq!(folder.info(&number.to_string())["dtype"], text);
            names.push(number.to_string());
        }
    }
    let paths: Vec<&str> = names.iter().map(String::as_str).collect();
    run(&folder, &[&["-c", NAMED], &paths[..]].concat());
    for (name, text) in names.iter().zip(dtypes) {
        let expected = folder.read(&format!("{name}.npy"));
        assert_eq!(folder.good(&["export", name, "-"]), expected, "{text}");
        folder.good(&["cat", name, "--text"]);
    }
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn stores_that_python_writes_are_good() {
    let folder = Folder::new();
    run(&folder, &["-c", STORES]);
    for name in ["tree", "dict", "empty", "table"] {
        for ending in ["b2d", "b2z"] {
            let file = format!("{name}.{ending}");
            let text = String::from_utf8(folder.good(&["check", &file])).unwrap();
            assert!(text.contains(" store, good: ") && text.contains(" 0 errors, "), "{text}");
            folder.good(&["info", &file]);
            folder.good(&["ls", &file, "--long"]);
        }
    }
    let text = String::from_utf8(folder.good(&["check", "embedded.b2e"])).unwrap();
    assert!(text.contains("embedded store, good: 1 member, 0 errors"), "{text}");
    let output = folder.run(&["check", "deflated.b2z"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let finding = "deflated.b2z: array.b2nd: error [store.member] ";
    assert!(text.contains(finding) && text.contains("is compressed"), "{text}");
    assert_eq!(output.status.code(), Some(1));
    let line = folder.bad(1, &["check", "other.zip"]);
    let reason =
        "not a Blosc2 file: it is a zip file with neither `embed.b2e` nor frames, not a store";
    assert_eq!(line, format!("blosc2: cannot check (other.zip): {reason}\n"));
    // The checksum shows any changed bit of a frame.
    let good = folder.read("tree.b2z");
    let start = good.windows(7).position(|bytes| bytes == b"b2frame").unwrap() - 2;
    let len = u64::from_be_bytes(good[start + 16..start + 24].try_into().unwrap()) as usize;
    for at in (start..start + len).step_by(len / 20) {
        let mut bytes = good.clone();
        bytes[at] ^= 1;
        folder.write("bad.b2z", &bytes);
        let output = folder.run(&["check", "bad.b2z"]);
        assert_eq!(output.status.code(), Some(1), "byte {at}: {output:?}");
    }
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn computed_columns_are_printed_if_they_are_selected() {
    let folder = Folder::new();
    let expected = run(&folder, &["-c", COMPUTED]).replace("\r\n", "\n");
    let text = |args: &[&str]| String::from_utf8(folder.good(args)).unwrap();
    let columns = ["--columns", "thin,large"];
    let csv = text(&[&["cat", "table.b2z", "--csv"][..], &columns].concat());
    assert_eq!(csv, format!("thin,large\n{expected}"));
    let export = [&["export", "table.b2z", "-", "--format", "csv"][..], &columns].concat();
    assert_eq!(text(&export), csv);
    let part = ["--json", "--where", "large == true", "--slice", ":1"];
    let json = text(&[&["cat", "table.b2z"][..], &columns, &part].concat());
    assert_eq!(json, "[\n{\"thin\":3.3000002,\"large\":true}\n]\n");
    assert!(text(&["cat", "table.b2z", "--slice", ":1"]).starts_with("n\tx\n0\t0.0\n"));
}
