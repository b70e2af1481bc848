//! Tensors, npy files, fields and floating-point types that NumPy lacks: all commands read them in the same way.

use std::path::Path;

use blosc2::{CParams, NDArray, RawItems, SChunk, Value};
use blosc2_store::Tensor;
use serde_json::json;

use crate::common::{Folder, OTHER_ORDER, native};

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

/// Creates a tensor with chunks of `chunk` bytes, as Python's `save_tensor` does.
fn tensor(path: &Path, bytes: &[u8], shape: &[u64], dtype: &str, chunk: usize) {
    let mut schunk = SChunk::create::<u8>(path, CParams::new()).unwrap();
    bytes.chunks(chunk).for_each(|chunk| {
        schunk.append(chunk).unwrap();
    });
    let shape = Value::Tuple(shape.iter().map(|&side| side.into()).collect());
    let described = Value::Tuple(vec!["numpy".into(), shape, dtype.into()]);
    schunk.vlmeta_mut().with_reserved().set_value("__pack_tensor__", &described).unwrap();
}

/// Asserts that all commands print the same of a tensor, an npy file and an array with the same items.
fn assert_same(bytes: &[u8], shape: &[u64], dtype: &str, slices: &[&str], chunk: usize) {
    let folder = Folder::new();
    let typesize = blosc2::Dtype::parse(dtype).unwrap().size();
    let builder = NDArray::builder().target(folder.path("array"));
    builder.dtype(dtype, typesize).from_slice(RawItems(bytes), shape).unwrap();
    tensor(&folder.path("tensor"), bytes, shape, dtype, chunk);
    folder.good(&["export", "array", "npy"]);
    folder.good(&["export", "tensor", "npy of the tensor"]);
    assert!(folder.read("npy") == folder.read("npy of the tensor"), "{shape:?} {dtype}");
    let mut all = vec![vec![]];
    all.extend(slices.iter().map(|slice| vec!["--slice", slice]));
    for slice in &all {
        let [cat, print, export]: [&[&str]; 3] =
            [&["cat", "array"], &["cat", "array", "--text"], &["export", "array", "-"]];
        for args in [cat, print, export] {
            let of = |file: &str, more: &[&str]| {
                let mut args = [args, slice, more].concat();
                args[1] = file;
                folder.good(&args)
            };
            let expected = of("array", &[]);
            assert_eq!(of("tensor", &[]), expected, "{args:?} {slice:?} {shape:?}");
            assert_eq!(of("npy", &[]), expected, "{args:?} {slice:?} {shape:?}");
            if args[0] == "cat" {
                assert_eq!(of("tensor", &["--engine", "rust"]), expected, "{args:?} {slice:?}");
            }
        }
        let csv = |file: &str| {
            let export = ["export", file, "-", "--format", "csv"];
            let output = folder.run(&[&export, &slice[..]].concat());
            (output.status.success(), output.stdout)
        };
        for file in ["tensor", "npy"] {
            assert_eq!(csv(file), csv("array"), "{file} {slice:?} {shape:?} {dtype}");
        }
        for file in ["array", "tensor"] {
            folder.good(&[&["copy", file, &format!("copy of {file}")], &slice[..]].concat());
        }
        if !slice.is_empty() {
            let output = folder.run(&["diff", "copy of tensor", "copy of array"]);
            assert_eq!(text(output.stdout), "equal\n", "{slice:?} {shape:?} {dtype}");
            let selected = folder.good(&[&["cat", "array"], &slice[..]].concat());
            assert_eq!(folder.good(&["cat", "copy of tensor"]), selected);
        }
        for file in ["array", "tensor"] {
            std::fs::remove_file(folder.path(&format!("copy of {file}"))).unwrap();
        }
    }
    let stats = |file: &str| {
        let json = folder.good(&["info", file, "--stats", "--json"]);
        serde_json::from_slice::<serde_json::Value>(&json).unwrap()["stats"].clone()
    };
    assert_eq!(stats("tensor"), stats("array"), "{shape:?} {dtype}");
    for other in ["array", "npy"] {
        let output = folder.run(&["diff", "tensor", other, "--no-meta"]);
        assert_eq!(text(output.stdout), "kind     tensor != ndarray\n", "{shape:?} {dtype}");
    }
    let view = |file: &str| {
        let slice: &[&str] = if shape.len() > 2 { &["--slice", "...,0,:"] } else { &[] };
        let json = folder.good(&[&["view", file, "--json"], slice].concat());
        let mut facts: serde_json::Value = serde_json::from_slice(&json).unwrap();
        facts["path"].take();
        facts
    };
    for other in ["tensor", "npy"] {
        assert_eq!(view(other), view("array"), "{shape:?} {dtype}");
    }
}

#[test]
fn tensors_and_npy_files_are_read_as_arrays() {
    let items: Vec<u8> =
        (0..30 * 20 * 7).flat_map(|item| (item as f32 / 7.0).to_ne_bytes()).collect();
    let slices = ["3", "::-1,2:9:3", "...,1", "5:25:4,::-3,::2", "-1,-1,-1", "7:7", "1:2,3:4,5:6"];
    // Chunks that end at items only, at rows, and in the middle of an item.
    for chunk in [400, 4 * 20 * 7, 1001, 1 << 20] {
        assert_same(&items, &[30, 20, 7], &native("<f4"), &slices, chunk);
    }
    let swapped: Vec<u8> = (0..100i16).flat_map(|item| item.swap_bytes().to_ne_bytes()).collect();
    assert_same(&swapped, &[10, 10], &format!("{OTHER_ORDER}i2"), &["::3,4"], 64);
    assert_same(&[7], &[], "|u1", &["..."], 1);
    assert_same(&[7], &[1, 1], "|b1", &["0"], 1);
    assert_same(&[], &[0, 3], &native("<f8"), &[":,1"], 1);
    assert_same(&[1; 24], &[3], &native("<f8"), &["::-2"], 5);
}

#[test]
fn distant_parts_of_a_tensor_are_read_without_what_is_between() {
    let folder = Folder::new();
    // 64 GiB of zeros.
    let side = 1u64 << 18;
    let mut schunk = SChunk::create::<u8>(folder.path("t"), CParams::new()).unwrap();
    let chunk = blosc2::Chunk::zeros::<u8>(1 << 30, &CParams::new()).unwrap();
    (0..64).for_each(|_| {
        schunk.append(&chunk).unwrap();
    });
    let shape = Value::Tuple(vec![side.into(), side.into()]);
    let described = Value::Tuple(vec!["numpy".into(), shape, "|u1".into()]);
    schunk.vlmeta_mut().with_reserved().set_value("__pack_tensor__", &described).unwrap();
    drop(schunk);
    let items = folder.good(&["cat", "t", "--slice", "::100000,::100000"]);
    assert_eq!(items, [0; 9]);
    let all = text(folder.good(&["cat", "t", "--text"]));
    assert!(all.starts_with("[[0 0 0 ... 0 0 0]\n") && all.lines().count() == 7, "{all}");
}

#[test]
fn damaged_tensors_are_refused() {
    let folder = Folder::new();
    tensor(&folder.path("t"), &[0; 10], &[3, 4], "|u1", 5);
    for args in [
        &["cat", "t"][..],
        &["cat", "t", "--engine", "rust"],
        &["export", "t", "o"],
        &["view", "t"],
        &["info", "t", "--stats"],
        &["copy", "t", "o", "--slice", "0"],
    ] {
        let line = folder.bad(1, args);
        assert!(line.contains("the shape [3, 4] do not match its 10 bytes"), "{args:?}: {line}");
    }
    // Any number of items without bytes.
    tensor(&folder.path("s"), &[], &[1 << 60], "|S0", 1);
    for args in [&["cat", "s"][..], &["cat", "s", "--text"], &["export", "s", "o"], &["view", "s"]]
    {
        let line = folder.bad(1, args);
        assert!(line.contains("(s): its dtype `|S0` has no bytes"), "{args:?}: {line}");
    }
    let dtype = "[('empty', 'S'), ('a', 'u1')]";
    NDArray::builder()
        .target(folder.path("f"))
        .dtype(dtype, 1)
        .from_slice(RawItems(&[1; 3]), [3])
        .unwrap();
    let printed = text(folder.good(&["cat", "f", "--text", "--field", "empty"]));
    assert_eq!(printed, "[b'' b'' b'']\n");
}

#[test]
fn parts_are_exported_and_copied() {
    let folder = Folder::new();
    folder.array("a", &[10, 7, 5], &[4, 3, 5], &[2, 3, 5]);
    folder.good(&["meta", "a", "set", "author", "\"Ada\""]);
    for slice in ["2", "::2,1", "...,-1", "9:0:-2,::3,1:1", "0,0,0", ":"] {
        let of = |file: &str, args: &[&str]| folder.good(&[&["cat", file], args].concat());
        let expected = of("a", &["--slice", slice]);
        folder.good(&["export", "a", "o.npy", "--force", "--slice", slice]);
        assert_eq!(of("o.npy", &[]), expected, "{slice}");
        let cut: &[&str] =
            if slice == "::2,1" { &["--chunks", "2,2", "--level", "9"] } else { &[] };
        folder.good(&[&["copy", "a", "o", "--force", "--slice", slice], cut].concat());
        assert_eq!(of("o", &[]), expected, "{slice}");
        let (info, output) = (folder.info("o"), folder.run(&["diff", "o", "o.npy", "--no-meta"]));
        assert_eq!(text(output.stdout), "equal\n", "{slice}");
        if slice == "::2,1" {
            assert_eq!((&info["chunks"], &info["clevel"]), (&json!([2, 2]), &json!(9)));
        }
        // All items are a copy of the file.
        let names = if slice == ":" { json!(["author"]) } else { json!([]) };
        assert_eq!((&info["codec"], &info["vlmeta"]), (&folder.info("a")["codec"], &names));
    }
    folder.good(&["copy", "a", "d", "--directory", "--slice", "1"]);
    assert_eq!(folder.info("d")["contiguous"], false);
    for command in ["copy", "export"] {
        let line = folder.bad(1, &[command, "a", "x", "--slice", "10"]);
        assert!(line.contains("axis 0 has 10 items") && line.contains("(--slice of a)"), "{line}");
        folder.bad(2, &[command, "a", "x", "--slice", "1:2:3:4"]);
    }
    folder.schunk("s", &CParams::new());
    let line = folder.bad(2, &["copy", "s", "x", "--slice", "1"]);
    assert_eq!(line, "blosc2: --slice requires an array or a tensor, and s is a super-chunk\n");
    tensor(&folder.path("t"), &[7; 12], &[3, 4], "|u1", 5);
    let line = folder.bad(2, &["copy", "t", "x", "--chunks", "2,2"]);
    assert!(line.contains("t is a tensor; with `--slice ...` the copy is an array"), "{line}");
    folder.good(&["copy", "t", "x", "--chunks", "2,2", "--slice", "..."]);
    assert_eq!(folder.info("x")["chunks"], json!([2, 2]));
}

#[test]
fn several_files_are_described() {
    let folder = Folder::new();
    folder.array("a", &[10], &[5], &[5]);
    folder.schunk("b", &CParams::new());
    let of = |args: &[&str]| text(folder.good(&[&["info"], args].concat()));
    assert_eq!(of(&["a", "b"]), format!("{}\n{}", of(&["a"]), of(&["b"])));
    let json = |args: &[&str]| -> serde_json::Value { serde_json::from_str(&of(args)).unwrap() };
    assert_eq!(json(&["--json", "a", "b"]), json!([folder.info("a"), folder.info("b")]));
    assert!(json(&["--json", "a"]).is_object());
    assert_eq!(json(&["--json", "--stats", "a", "a"])[1]["stats"]["count"], 10);
    // The other files are described if one cannot be.
    folder.write("bad", b"text");
    for args in [&["bad", "a", "missing", "b"][..], &["--json", "bad", "a", "missing", "b"]] {
        let output = folder.run(&[&["info"], args].concat());
        let good: Vec<&str> =
            args.iter().copied().filter(|it| !["bad", "missing"].contains(it)).collect();
        assert_eq!(text(output.stdout), of(&good));
        let errors = text(output.stderr);
        let lines: Vec<&str> = errors.lines().collect();
        assert!(lines.len() == 2 && lines[0].contains("(bad): not a Blosc2 file"), "{errors}");
        assert_eq!(lines[1], "blosc2: cannot open (missing): no such file");
        assert_eq!(output.status.code(), Some(1));
    }
    folder.bad(2, &["info"]);
}

#[test]
fn fields_with_sub_arrays_have_more_axes() {
    let folder = Folder::new();
    let row = |id: u32| (0..6).map(move |at| f64::from(10 * id + at));
    let values: Vec<f64> = (0..20).flat_map(row).collect();
    let row = |(id, row): (u8, &[f64])| {
        [vec![id], row.iter().flat_map(|value| value.to_ne_bytes()).collect()].concat()
    };
    let rows: Vec<u8> = (0..20).zip(values.chunks(6)).flat_map(row).collect();
    let dtype = format!("[('id', 'u1'), ('values', '{}', (2, 3))]", native("<f8"));
    let builder = NDArray::builder().target(folder.path("rows")).chunk_shape([7]);
    builder.dtype(&dtype, 49).from_slice(RawItems(&rows), [20]).unwrap();
    NDArray::builder().target(folder.path("values")).from_slice(&values, [20, 2, 3]).unwrap();
    folder.good(&["export", "rows", "rows.npy"]);
    for slice in ["...,0", "::-3,1", "4:9,:,1:2", "5", "-1,0,2"] {
        for file in ["rows", "rows.npy"] {
            let print = |file: &str, more: &[&str]| {
                text(folder.good(&[&["cat", file, "--text", "--slice", slice], more].concat()))
            };
            assert_eq!(print(file, &["--field", "values"]), print("values", &[]), "{slice}");
            let view = |file: &str, more: &[&str]| {
                let args = ["view", file, "--slice", slice, "--json"];
                let json = folder.good(&[&args, more].concat());
                let mut facts: serde_json::Value = serde_json::from_slice(&json).unwrap();
                facts["path"] = json!(null);
                facts
            };
            assert_eq!(view(file, &["--field", "values"]), view("values", &[]), "{slice}");
        }
    }
    let dtype = format!("('{}', (2, 3))", native("<f8"));
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
    let builder = NDArray::builder().target(folder.path("items"));
    builder.dtype(&dtype, 48).from_slice(RawItems(&bytes), [20]).unwrap();
    let json = folder.good(&["view", "items", "--slice", "...,1", "--json"]);
    let facts: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!((&facts["shape"], &facts["max"]), (&json!([20, 2]), &json!(194.0)));
    assert_eq!(facts["dtype"], native("<f8"));
    let png = folder.good(&["view", "rows", "--field", "values", "--slice", ":,0", "-o", "-"]);
    assert!(png.starts_with(b"\x89PNG"));
    let line = folder.bad(1, &["cat", "rows", "--text", "--field", "x"]);
    assert_eq!(line, "blosc2: cannot print (rows): its dtype has no field `x`, only: id, values\n");
    let line = folder.bad(1, &["cat", "values", "--text", "--field", "x"]);
    assert!(line.contains("--field requires a structured dtype, got `"), "{line}");
    let line = folder.bad(1, &["view", "rows", "--field", "values"]);
    assert!(line.contains("the slice has 3 dimensions"), "{line}");
    folder.bad(2, &["cat", "rows", "--field", "id"]);
}

#[test]
fn small_floats_are_printed_and_drawn() {
    let folder = Folder::new();
    // 1.5, -2, 3.140625, NaN, infinity, and the smallest number.
    let codes = [0x3fc0u16, 0xc000, 0x4049, 0x7fc0, 0x7f80, 0x0001];
    let bytes: Vec<u8> = codes.iter().flat_map(|code| code.to_le_bytes()).collect();
    let values: Vec<f32> =
        codes.iter().map(|&code| f32::from_bits(u32::from(code) << 16)).collect();
    NDArray::builder()
        .target(folder.path("b"))
        .dtype("|V2", 2)
        .from_slice(RawItems(&bytes), [2, 3])
        .unwrap();
    NDArray::builder().target(folder.path("f4")).from_slice(&values, [2, 3]).unwrap();
    let mut schunk = SChunk::create::<u8>(folder.path("s"), CParams::new()).unwrap();
    schunk.append(&bytes).unwrap();
    drop(schunk);
    let print = |args: &[&str]| text(folder.good(&[&["cat"], args].concat()));
    let expected = print(&["f4", "--text"]);
    assert_eq!(print(&["b", "--text", "--dtype", "bfloat16"]), expected);
    let flat = print(&["s", "--text", "--dtype", "bfloat16", "--slice", "4::-2"]);
    assert_eq!(flat, "[     inf 3.140625 1.5     ]\n");
    let view = |args: &[&str]| -> serde_json::Value {
        serde_json::from_slice(&folder.good(&[&["view", "--json"], args].concat())).unwrap()
    };
    let found = view(&["b", "--dtype", "bfloat16"]);
    assert_eq!(found["dtype"], "bfloat16");
    for key in ["shape", "count", "nan", "infinite", "min", "max", "mean"] {
        assert_eq!(found[key], view(&["f4"])[key], "{key}");
    }
    let picture = |args: &[&str]| folder.good(&[&["view", "-o", "-"], args].concat());
    assert!(picture(&["b", "--dtype", "bfloat16"]).starts_with(b"\x89PNG"));
    folder.write("codes", &[0x38, 0x7e, 0x7f, 0xb8]);
    folder.good(&["import", "codes", "f8", "--dtype", "V1"]);
    let printed = print(&["f8", "--text", "--dtype", "float8_e4m3fn"]);
    assert_eq!(printed, "[  1. 448.  nan  -1.]\n");
    let line = folder.bad(2, &["cat", "b", "--text", "--dtype", "float8_e5m2"]);
    assert!(line.contains("--dtype float8_e5m2 has 1 bytes, and the items of b have 2"), "{line}");
    folder.bad(1, &["view", "b", "--dtype", "float8_e5m2"]);
    for dtype in ["bfloat8", "float8", "bf16"] {
        let line = folder.bad(2, &["view", "b", "--dtype", dtype]);
        assert!(line.contains("one of bfloat16, float8_e3m4, "), "{line}");
    }
    for args in [&["view", "b"][..], &["cat", "b", "--text"]] {
        let line = folder.bad(1, &[args, &["--dtype", "bfloat16", "--field", "x"]].concat());
        assert!(line.contains("--field requires a structured dtype, got `bfloat16`"), "{line}");
    }
}

#[test]
fn npy_files_in_fortran_order_are_refused() {
    let folder = Folder::new();
    let header = "{'descr': '<i2', 'fortran_order': True, 'shape': (2, 2), }";
    let npy = [b"\x93NUMPY\x01\x00", &[header.len() as u8, 0][..], header.as_bytes(), &[0; 8]];
    folder.write("f.npy", &npy.concat());
    for args in [&["cat", "f.npy"][..], &["view", "f.npy"], &["export", "f.npy", "o"]] {
        let line = folder.bad(1, args);
        assert!(line.contains("in Fortran order; `import` converts them"), "{line}");
    }
    folder.array("a", &[3], &[3], &[3]);
    folder.good(&["export", "a", "a.npy"]);
    let line = folder.bad(2, &["cat", "a.npy", "--engine", "c"]);
    assert_eq!(line, "blosc2: --engine cannot be combined with an npy file\n");
}

#[test]
fn tensors_of_this_crate_have_their_dtype() {
    let folder = Folder::new();
    Tensor::from_slice(&[1i16, -2, 3], &[3]).unwrap().save(folder.path("t")).unwrap();
    assert_eq!(text(folder.good(&["cat", "t", "--text"])), "[ 1 -2  3]\n");
}
