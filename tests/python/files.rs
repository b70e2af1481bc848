//! Files that Python writes and files that Python reads. `cargo xtask test` sets Python up.

use std::fs;
use std::path::Path;

use crate::common::{Kind, Model, Rng, assert_same, codecs, random_box, run_python};
use blosc2::{CParams, Codec, Filter, NDArray, SChunk, SaveOptions, SplitMode};
use blosc2_format::Limits;
use serde_json::{Value, json};

fn numbers(value: &Value) -> Vec<u64> {
    value.as_array().unwrap().iter().map(|each| each.as_u64().unwrap()).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn read_json(path: &Path) -> Vec<Value> {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// Checks the files of Python against `manifest.json` and the bytes beside each file.
fn check_arrays_of_python(folder: &Path, least: usize) {
    let cases = read_json(&folder.join("manifest.json"));
    assert!(cases.len() >= least, "{} files", cases.len());
    let mut rng = Rng(1);
    let mut wrong = Vec::new();
    for case in &cases {
        let outcome = std::panic::catch_unwind({
            let mut rng = Rng(rng.next());
            move || check_array_of_python(folder, case, &mut rng)
        });
        if outcome.is_err() {
            wrong.push(case.to_string());
        }
    }
    assert!(wrong.is_empty(), "{} of {} are read wrong:\n{}", wrong.len(), cases.len(), {
        wrong.join("\n")
    });
}

fn check_array_of_python(folder: &Path, case: &Value, rng: &mut Rng) {
    let file = text(&case["file"]);
    let array = NDArray::open(folder.join(file)).unwrap_or_else(|error| panic!("{case}: {error}"));
    assert_eq!(array.shape(), numbers(&case["shape"]), "{case}");
    assert_eq!(array.chunks(), numbers(&case["chunks"]), "{case}");
    assert_eq!(array.blocks(), numbers(&case["blocks"]), "{case}");
    assert_eq!(array.dtype_str(), Some(text(&case["dtype"])), "{case}");
    assert_eq!(array.typesize() as u64, case["typesize"].as_u64().unwrap(), "{case}");
    let format = array.schunk().file_format().unwrap();
    assert_eq!(format.contiguous, case["contiguous"].as_bool().unwrap(), "{case}");
    if let Some(codec) = case["codec"].as_u64() {
        assert_eq!(u64::from(array.cparams().codec.code()), codec, "{case}");
    }

    let raw = fs::read(folder.join(text(&case["raw"]))).unwrap();
    let model =
        Model { shape: array.shape().to_vec(), typesize: array.typesize(), bytes: raw.clone() };
    let read = |ranges: &[std::ops::Range<u64>]| {
        array.bytes().read(ranges).unwrap_or_else(|error| panic!("{case}: {ranges:?}: {error}"))
    };
    assert_same(&read(&[]), &raw, &case.to_string());
    for _ in 0..12 {
        let ranges = random_box(array.shape(), rng);
        assert_same(&read(&ranges), &model.read(&ranges), &format!("{case}: {ranges:?}"));
    }
}

/// The start of every script: `put` writes an array and records its content in the manifest.
const PUT: &str = r#"
import itertools, json, os, sys
import numpy as np
import blosc2

manifest = []
rng = np.random.default_rng(1)

def dtype_text(dtype):
    return str(dtype) if dtype.kind == "V" else dtype.str

def put(array, data, file, contiguous=True, **more):
    """`data` is what has to be read; the array is in `file` already."""
    data = np.ascontiguousarray(data).reshape(array.shape)
    raw = file + ".raw"
    with open(raw, "wb") as out:
        out.write(data.tobytes())
    assert data.tobytes().__len__() == array.size * array.schunk.typesize, file
    manifest.append(dict(
        file=file, raw=raw, shape=list(array.shape), chunks=list(array.chunks),
        blocks=list(array.blocks), typesize=array.schunk.typesize, contiguous=contiguous,
        dtype=dtype_text(array.dtype), **more))

def name(contiguous):
    return f"{len(manifest):04}.b2nd"

def done():
    with open("manifest.json", "w") as out:
        json.dump(manifest, out)

def values(dtype, shape):
    """Numbers that compress somewhat."""
    dtype = np.dtype(dtype)
    size = int(np.prod(shape, dtype=np.int64))
    base = np.cumsum(rng.integers(0, 4, size))
    if dtype.kind in "iu":
        out = base.astype(np.int64).astype(dtype)
    elif dtype.kind == "f":
        out = (np.sqrt(base + 1.0) % 1000).astype(dtype)
    elif dtype.kind == "c":
        out = (np.sqrt(base + 1.0) - 1j * base).astype(dtype)
    elif dtype.kind == "b":
        out = base % 3 == 0
    elif dtype.kind in "SU":
        out = np.array([f"item {each}" for each in base], dtype=dtype)
    elif dtype.kind in "Mm":
        out = base.astype("<i8").view(dtype)
    else:
        raw = np.repeat(base.astype("u1"), dtype.itemsize)
        out = np.frombuffer(raw.tobytes(), dtype=dtype)
    return out.reshape(shape)
"#;

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn arrays_that_python_wrote_with_every_codec_and_filter_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let script = r#"
F, C = blosc2.Filter, blosc2.Codec
pipelines = [
    ([], []),
    ([F.SHUFFLE], [0]),
    ([F.SHUFFLE], [2]),
    ([F.BITSHUFFLE], [0]),
    ([F.DELTA], [0]),
    ([F.DELTA, F.SHUFFLE], [0, 0]),
    ([F.DELTA, F.BITSHUFFLE], [0, 0]),
    ([F.SHUFFLE, F.BYTEDELTA], [0, None]),
    ([F.DELTA, F.SHUFFLE, F.BYTEDELTA], [0, 0, None]),
    ([F.BITSHUFFLE, F.SHUFFLE, F.BITSHUFFLE, F.SHUFFLE], [0, 0, 0, 0]),
    ([F.TRUNC_PREC, F.SHUFFLE], [10, 0]),
    ([F.INT_TRUNC, F.SHUFFLE], [5, 0]),
    ([F.NDCELL], [4]),
    ([F.NDMEAN], [4]),
]
shapes = [((150,), (64,), (16,)), ((33, 27), (16, 20), (7, 20)), ((9, 10, 11), (4, 10, 5), (2, 5, 5))]
def case(codec, meta, filters, metas, dtype, shape, chunks, blocks, **more):
    contiguous = len(manifest) % 3 != 0
    file = name(contiguous)
    dtype = np.dtype(dtype)
    metas = [dtype.itemsize if meta is None else meta for meta in metas]
    data = values(dtype, shape)
    cparams = dict(codec=codec, codec_meta=meta, filters=filters, filters_meta=metas, **more)
    array = blosc2.asarray(data, urlpath=file, contiguous=contiguous, chunks=chunks,
                           blocks=blocks, cparams=cparams)
    # With three filters or more, what Python stores is already not what it was given.
    lossy = len(filters) > 2 or any(each in (F.TRUNC_PREC, F.INT_TRUNC, F.NDMEAN) for each in filters)
    put(array, array[...] if lossy else data, file, contiguous, codec=int(codec.value),
        filters=[each.name for each in filters])

for codec in [C.BLOSCLZ, C.LZ4, C.LZ4HC, C.ZLIB, C.ZSTD]:
    for filters, metas in pipelines:
        for dtype in ["u1", "<i4", "<f8"]:
            if F.TRUNC_PREC in filters and dtype != "<f8": continue
            if F.INT_TRUNC in filters and dtype == "<f8": continue
            if F.NDMEAN in filters and dtype != "<f8": continue
            for shape, chunks, blocks in shapes:
                nd = F.NDCELL in filters or F.NDMEAN in filters
                if nd: blocks = tuple(min(each, 8) for each in chunks)
                case(codec, 0, filters, metas, dtype, shape, chunks, blocks,
                     clevel=int(rng.integers(0, 10)) if not nd else 5,
                     nthreads=int(rng.integers(1, 4)),
                     splitmode=blosc2.SplitMode(int(rng.integers(1, 5))))
for side in (4, 8):
    for shape, chunks, blocks in [((60, 50), (40, 32), (16, 16)), ((17, 100), (17, 64), (17, 33))]:
        case(C.NDLZ, side, [], [], "u1", shape, chunks, blocks)
# Dictionaries: some chunks are large enough for one.
for codec in (C.ZSTD, C.LZ4, C.LZ4HC):
    for shape, chunks, blocks in [((300, 400), (100, 400), (10, 400)), ((20, 20), (7, 7), (3, 3))]:
        case(codec, 0, [F.SHUFFLE], [0], "<i4", shape, chunks, blocks, use_dict=True, nthreads=1)
done()
"#;
    run_python(&format!("{PUT}{script}"), folder.path(), &[]);
    check_arrays_of_python(folder.path(), 400);
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn arrays_that_python_wrote_of_every_dtype_and_shape_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let script = r#"
dtypes = ["|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8", "<c8",
          "<c16", ">i4", ">f8", "|S1", "|S10", "|S300", "<U1", "<U10", ">U3", "<M8[ns]", "<M8[D]",
          "<m8[us]", "|V5", [("a", "<i4"), ("b", "<f8")], [("p", [("x", "<f4"), ("y", "<f4", (3,))]),
          ("ok", "?")], [("name", "S290"), ("n", "<i2")]]
shapes = [(), (0,), (1,), (100,), (3, 0, 2), (7, 11, 13), (1, 1, 1), (40, 30), (2,) * 6 + (1,) * 9 + (3,)]
for dtype in dtypes:
    for shape in shapes:
        for mode in range(2):
            contiguous = (len(manifest) + mode) % 2 == 0
            file = name(contiguous)
            data = values(dtype, shape)
            chunks = blocks = None
            if mode == 1 and shape and 0 not in shape:
                chunks = tuple(int(rng.integers(1, size + 3)) for size in shape)
                blocks = tuple(int(rng.integers(1, size + 1)) for size in chunks)
                if len(shape) == 16:
                    chunks = shape[:1] + (1,) * 14 + (2,)
                    blocks = (1,) * 15 + (2,)
            # Of plain bytes, asarray changes structured dtypes; a new array keeps them.
            if data.dtype.kind == "V":
                array = blosc2.empty(shape, dtype=data.dtype, urlpath=file, contiguous=contiguous,
                                     chunks=chunks, blocks=blocks)
                if 0 not in shape:
                    array[...] = data
            else:
                array = blosc2.asarray(data, urlpath=file, contiguous=contiguous, chunks=chunks,
                                       blocks=blocks)
            put(array, data, file, contiguous)
done()
"#;
    run_python(&format!("{PUT}{script}"), folder.path(), &[]);
    check_arrays_of_python(folder.path(), 500);
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn arrays_that_python_made_without_data_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let script = r#"
kinds = {
    "zeros": lambda shape, dtype, **more: (blosc2.zeros(shape, dtype=dtype, **more), 0),
    "full": lambda shape, dtype, **more: (blosc2.full(shape, 7, dtype=dtype, **more), 7),
    "ones": lambda shape, dtype, **more: (blosc2.ones(shape, dtype=dtype, **more), 1),
    "nans": lambda shape, dtype, **more: (blosc2.nans(shape, dtype=dtype, **more), np.nan),
    "empty": lambda shape, dtype, **more: (blosc2.empty(shape, dtype=dtype, **more), 0),
    "uninit": lambda shape, dtype, **more: (blosc2.uninit(shape, dtype=dtype, **more), 0),
}
for kind, make in kinds.items():
    for dtype in ["u1", "<i4", "<f4", "<f8", "<c16"]:
        if kind == "nans" and dtype not in ("<f4", "<f8"): continue
        for shape, chunks, blocks in [((1000,), None, None), ((1000,), (300,), (64,)),
                                      ((50, 40), (16, 40), (7, 9)), ((), None, None), ((5, 0), None, None)]:
            for contiguous in (True, False):
                file = name(contiguous)
                array, value = make(shape, dtype, urlpath=file, contiguous=contiguous, chunks=chunks,
                                    blocks=blocks)
                data = np.full(shape, value, dtype=dtype)
                if kind == "full" and shape == (50, 40):
                    # Some chunks get data of their own.
                    array[10:20, 5:30] = 3
                    data[10:20, 5:30] = 3
                put(array, data, file, contiguous, kind=kind)
# Many chunks: the index does not fit a block.
file = name(True)
data = values("<i4", (5000,))
array = blosc2.asarray(data, urlpath=file, chunks=(2,), blocks=(2,))
put(array, data, file)
done()
"#;
    run_python(&format!("{PUT}{script}"), folder.path(), &[]);
    check_arrays_of_python(folder.path(), 150);
}

/// One array that Rust writes, and the content that Python has to read.
struct Written {
    file: String,
    dtype: &'static str,
    model: Model,
    array: NDArray,
    params: CParams,
}

impl Written {
    fn to_json(&self, folder: &Path) -> Value {
        let raw = format!("{}.raw", self.file);
        fs::write(folder.join(&raw), &self.model.bytes).unwrap();
        let params = &self.params;
        let split = match params.split {
            SplitMode::Always => 1,
            SplitMode::Never => 2,
            SplitMode::Auto => 3,
            _ => 4,
        };
        json!({
            "file": self.file, "raw": raw, "dtype": self.dtype, "shape": self.model.shape,
            "chunks": self.array.chunks(), "blocks": self.array.blocks(),
            "codec": params.codec.code(), "codec_meta": params.codec_meta, "clevel": params.level,
            "splitmode": split, "use_dict": params.dictionary,
            "filters": params.filters.iter().map(|each| each.code()).collect::<Vec<_>>(),
            "filters_meta": params.filters.iter().map(|each| match each {
                Filter::ByteDelta(0) => self.model.typesize as u8,
                each => each.meta(),
            }).collect::<Vec<_>>(),
        })
    }
}

/// Python reads the files in `written.json`, and writes the same arrays with the same parameters;
/// it prints a line for each file whose bytes differ from its own.
const READ: &str = r#"
import json, sys
import numpy as np
import blosc2

wrong = 0
for case in json.load(open("written.json")):
    file = case["file"]
    raw = open(case["raw"], "rb").read()
    array = blosc2.open(file)
    expected = dict(shape=tuple(case["shape"]), chunks=tuple(case["chunks"]),
                    blocks=tuple(case["blocks"]), dtype=np.dtype(case["dtype"]))
    found = {key: getattr(array, key) for key in expected}
    if found != expected:
        print("WRONG", file, "has", found, "not", expected)
        wrong += 1
    lossy = any(each in (4, 33, 36) for each in case["filters"])
    data = np.frombuffer(raw, dtype=case["dtype"]).reshape(case["shape"])
    if array[...].tobytes() != raw and not lossy:
        print("WRONG content in", case)
        wrong += 1
    box = tuple(slice(size // 4, max(size // 2, size // 4 + 1)) for size in case["shape"])
    delta = 3 in case["filters"]  # Python's own reading of boxes is wrong with it.
    if not lossy and not delta and case["shape"] and 0 not in case["shape"]:
        if array[box].tobytes() != data[box].tobytes():
            print("WRONG box", box, "of", case)
            wrong += 1
    # Python puts the filters that it is given into the first slots; its own default, into the last.
    empty = [0] * (6 - len(case["filters"]))
    cparams = dict(
        codec=blosc2.Codec(case["codec"]), codec_meta=case["codec_meta"], clevel=case["clevel"],
        splitmode=blosc2.SplitMode(case["splitmode"]), use_dict=case["use_dict"],
        filters=[blosc2.Filter(each) for each in empty + case["filters"]],
        filters_meta=empty + case["filters_meta"], nthreads=1)
    twin = blosc2.asarray(data, urlpath="twin.b2nd", mode="w", chunks=tuple(case["chunks"]),
                          blocks=tuple(case["blocks"]), cparams=cparams, dparams=dict(nthreads=1))
    if lossy and array[...].tobytes() != twin[...].tobytes():
        print("WRONG lossy content in", case)
        wrong += 1
    mine, its = open(file, "rb").read(), open("twin.b2nd", "rb").read()
    if mine != its:
        at = next((at for at in range(min(len(mine), len(its))) if mine[at] != its[at]), -1)
        print("DIFFERENT", len(mine), "bytes, Python writes", len(its), "first at", at, case)
    blosc2.remove_urlpath("twin.b2nd")
sys.exit(1 if wrong else 0)
"#;

fn shapes() -> Vec<[Vec<u64>; 3]> {
    vec![
        [vec![], vec![], vec![]],
        [vec![1], vec![1], vec![1]],
        [vec![1000], vec![300], vec![64]],
        [vec![33, 27], vec![16, 20], vec![7, 20]],
        [vec![9, 10, 11], vec![4, 10, 5], vec![2, 5, 5]],
        [vec![8, 3], vec![12, 5], vec![5, 5]],
        [vec![0, 4], vec![2, 4], vec![1, 2]],
        [[vec![2; 3], vec![1; 12], vec![3]].concat(), [vec![1; 15], vec![2]].concat(), vec![1; 16]],
    ]
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn arrays_that_rust_wrote_are_read_by_python_which_writes_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let mut written = Vec::new();
    let mut add =
        |dtype: &'static str, typesize: usize, shapes: &[Vec<u64>; 3], params: &CParams| {
            let file = format!("{:04}.b2nd", written.len());
            let kind = [Kind::Ramp, Kind::Runs, Kind::Mixed, Kind::Zeros][written.len() % 4];
            // Any byte is no valid bool, and floats are compared as bytes.
            let kind = if dtype == "|b1" { Kind::Zeros } else { kind };
            let model = Model::new(&shapes[0], typesize, kind, written.len() as u64);
            let array = NDArray::builder()
                .chunks(&shapes[1])
                .blocks(&shapes[2])
                .cparams(params.clone())
                .file(folder.path().join(&file))
                .from_bytes(&model.bytes, &shapes[0], dtype, typesize)
                .unwrap();
            written.push(Written { file, dtype, model, array, params: params.clone() });
        };

    let pipelines: [&[Filter]; 9] = [
        &[],
        &[Filter::Shuffle],
        &[Filter::ShuffleBytes(2)],
        &[Filter::Bitshuffle],
        &[Filter::Delta],
        &[Filter::Delta, Filter::Shuffle],
        &[Filter::Shuffle, Filter::ByteDelta(0)],
        &[Filter::NdCell(2)],
        &[Filter::TruncPrec(10), Filter::Bitshuffle],
    ];
    let mut rng = Rng(2);
    for codec in codecs() {
        for filters in pipelines {
            for shapes in &shapes()[2..5] {
                let split = [SplitMode::Always, SplitMode::Never, SplitMode::Auto];
                let params = CParams::new()
                    .codec(codec)
                    .filters(filters)
                    .level(if filters.contains(&Filter::NdCell(2)) {
                        5
                    } else {
                        rng.below(10) as u8
                    })
                    .split(*rng.pick(&split));
                add("<f8", 8, shapes, &params);
                if filters.first() != Some(&Filter::TruncPrec(10)) {
                    add("<i2", 2, shapes, &params);
                }
            }
        }
    }
    let lossy = [Filter::IntTrunc(5), Filter::Shuffle];
    add("<u4", 4, &shapes()[2], &CParams::new().filters(&lossy));
    add(
        "<f4",
        4,
        &[vec![20, 20], vec![16, 16], vec![8, 8]],
        &CParams::new().filters(&[Filter::NdMean(4)]),
    );
    let ndlz = CParams::new().codec(Codec::Ndlz).codec_meta(4).filters(&[]);
    add("|u1", 1, &[vec![40, 50], vec![32, 32], vec![16, 16]], &ndlz);
    for (dtype, typesize) in [
        ("|b1", 1),
        ("|i1", 1),
        ("|u1", 1),
        ("<i2", 2),
        ("<u4", 4),
        ("<f2", 2),
        ("<f4", 4),
        (">f8", 8),
        ("<c16", 16),
        ("|S10", 10),
        ("|S300", 300),
        ("<M8[ns]", 8),
    ] {
        for shapes in shapes() {
            add(dtype, typesize, &shapes, &CParams::new());
        }
    }

    let cases: Vec<Value> = written.iter().map(|each| each.to_json(folder.path())).collect();
    fs::write(folder.path().join("written.json"), Value::from(cases).to_string()).unwrap();
    let printed = run_python(READ, folder.path(), &[]);
    // The streams of zlib come from another implementation here.
    let different: Vec<&str> =
        printed.lines().filter(|line| !line.contains(r#"'codec': 4,"#)).collect();
    assert!(
        different.is_empty(),
        "{} of {} files differ from Python's:\n{}",
        different.len(),
        written.len(),
        different.join("\n")
    );
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn super_chunks_that_python_wrote_are_read_and_appended_to() {
    let folder = tempfile::tempdir().unwrap();
    let script = r#"
import json
import msgpack, numpy as np
import blosc2

meta = {"one": {"version": 1, "names": ["a", "b"]}, "two": b"\x00\x01bytes", "empty": None}
vlmeta = {"text": "a text", "number": 1.5, "list": [1, 2, 3], "long": "x" * 5000, "empty": ""}
expected = {}
for contiguous in (True, False):
    for chunksize, lengths in [(4000, [4000, 4000, 4000]), (4000, [4000, 4000, 1204]), (4000, [40]),
                               (4000, []), (4, [4] * 700)]:
        file = f"{'c' if contiguous else 'd'}_{len(expected)}.b2frame"
        s = blosc2.SChunk(chunksize=chunksize, urlpath=file, contiguous=contiguous, meta=meta,
                          cparams=dict(typesize=4, nthreads=1))
        all = []
        for at, length in enumerate(lengths):
            data = (np.arange(length // 4, dtype="<i4") * (at + 1) + at).tobytes()
            s.append_data(data)
            all.append(data.hex() if length > 4 else data.hex())
        for key, value in vlmeta.items():
            s.vlmeta[key] = value
        expected[file] = all
packed = lambda value: msgpack.packb(value, use_bin_type=True).hex()
json.dump(dict(files=expected, meta={k: packed(v) for k, v in meta.items()},
               vlmeta={k: packed(v) for k, v in vlmeta.items()}), open("expected.json", "w"))
"#;
    run_python(script, folder.path(), &[]);
    let expected: Value =
        serde_json::from_slice(&fs::read(folder.path().join("expected.json")).unwrap()).unwrap();
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let check = |schunk: &SChunk, file: &str, extra: &[Vec<u8>]| {
        let chunks = expected["files"][file].as_array().unwrap();
        assert_eq!(schunk.nchunks(), chunks.len() + extra.len(), "{file}");
        for (index, chunk) in chunks.iter().enumerate() {
            assert_eq!(
                hex(&schunk.decompress_chunk::<u8>(index).unwrap()),
                text(chunk),
                "{file} {index}"
            );
        }
        for (index, chunk) in extra.iter().enumerate() {
            assert_eq!(
                &schunk.decompress_chunk::<u8>(chunks.len() + index).unwrap(),
                chunk,
                "{file}"
            );
        }
        for (layers, values) in
            [(schunk.meta(), &expected["meta"]), (schunk.vlmeta(), &expected["vlmeta"])]
        {
            let values = values.as_object().unwrap();
            assert_eq!(layers.names(), values.keys().cloned().collect::<Vec<_>>(), "{file}");
            for (name, value) in values {
                let found = layers.get(name).unwrap().unwrap();
                assert_eq!(hex(&found), text(value), "{file}, {name}");
            }
            assert_eq!(layers.get("none").unwrap(), None);
        }
    };
    let mut appended = Vec::new();
    for file in expected["files"].as_object().unwrap().keys() {
        let path = folder.path().join(file);
        let schunk = SChunk::open(&path).unwrap();
        check(&schunk, file, &[]);
        let copy = folder.path().join(format!("copy_{file}"));
        schunk.save(&copy).unwrap();
        check(&SChunk::open(&copy).unwrap(), file, &[]);
        let last = schunk
            .nchunks()
            .checked_sub(1)
            .map(|last| schunk.decompress_chunk::<u8>(last).unwrap());
        let full = last.as_ref().is_none_or(|last| last.len() == schunk.chunksize());
        drop(schunk);
        if full {
            let len = last.map_or(4000, |last| last.len());
            // Python joins chunks of whole items only.
            let short = (len / 8 * 4).max(4);
            let extra = vec![
                crate::common::data(Kind::Ramp, len, 1),
                crate::common::data(Kind::Runs, short, 2),
            ];
            let mut schunk = SChunk::open_rw(&path).unwrap();
            for (at, bytes) in extra.iter().enumerate() {
                let count = schunk.append(&bytes[..]).unwrap_or_else(|e| panic!("{file}: {e}"));
                assert_eq!(count, schunk.nchunks(), "{file} {at}");
            }
            check(&schunk, file, &extra);
            drop(schunk);
            check(&SChunk::open(&path).unwrap(), file, &extra);
            let all: Vec<String> = extra.iter().map(|bytes| hex(bytes)).collect();
            appended.push(json!({"file": file, "chunks": all}));
        }
    }
    assert!(appended.len() >= 6, "{}", appended.len());
    fs::write(folder.path().join("appended.json"), Value::from(appended).to_string()).unwrap();
    let script = r#"
import json
import blosc2
expected = json.load(open("expected.json"))
for case in json.load(open("appended.json")):
    file = case["file"]
    chunks = expected["files"][file] + case["chunks"]
    s = blosc2.open(file)
    assert s.nchunks == len(chunks), (file, s.nchunks, len(chunks))
    for index, chunk in enumerate(chunks):
        assert s.decompress_chunk(index).hex() == chunk, (file, index)
    found, joined = s[:], bytes.fromhex("".join(chunks))
    different = [at for at in range(len(joined)) if found[at:at + 1] != joined[at:at + 1]]
    assert found == joined, (file, s.nbytes, s.chunksize, len(found), len(joined), different[:20])
    assert s.vlmeta["list"] == [1, 2, 3] and s.meta["one"]["names"] == ["a", "b"], file
    copy = blosc2.open("copy_" + file)
    assert copy[:] == bytes.fromhex("".join(expected["files"][file])), file
    assert copy.vlmeta["long"] == "x" * 5000 and len(copy.meta) == 3, file
"#;
    run_python(script, folder.path(), &[]);
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn super_chunks_that_rust_wrote_are_read_by_python() {
    let folder = tempfile::tempdir().unwrap();
    let mut cases = Vec::new();
    for codec in codecs() {
        for lengths in [&[][..], &[1000], &[1000, 1000, 1000], &[1000, 1000, 3], &[1; 600]] {
            for (which, filters) in
                [vec![], vec![Filter::Shuffle], vec![Filter::Delta, Filter::Bitshuffle]]
                    .into_iter()
                    .enumerate()
            {
                let file = format!("{codec}_{}_{which}.b2frame", cases.len());
                let params = CParams::new().codec(codec).filters(&filters).level(7);
                let mut schunk = SChunk::create::<i32>(folder.path().join(&file), &params).unwrap();
                let mut all: Vec<i32> = Vec::new();
                for (at, len) in lengths.iter().enumerate() {
                    let items: Vec<i32> = (0..*len).map(|item| item * at as i32 - 5).collect();
                    schunk.append(&items).unwrap();
                    all.extend(items);
                }
                drop(schunk);
                cases.push(json!({
                    "file": file, "nchunks": lengths.len(), "items": all, "codec": codec.code(),
                    "filters": filters.iter().map(|each| each.code()).collect::<Vec<_>>(),
                }));
                // Recompressed, with metalayers or none.
                let again = format!("copy_{file}");
                let reopened = SChunk::open(folder.path().join(&file)).unwrap();
                reopened
                    .save_with(
                        folder.path().join(&again),
                        &SaveOptions::new().cparams(CParams::new().level(1)),
                    )
                    .unwrap();
                let mut copy = cases[cases.len() - 1].clone();
                copy["file"] = again.into();
                copy["codec"] = 5.into();
                copy["filters"] = json!([1]);
                cases.push(copy);
            }
        }
    }
    fs::write(folder.path().join("cases.json"), Value::from(cases).to_string()).unwrap();
    let script = r#"
import json
import numpy as np
import blosc2
for case in json.load(open("cases.json")):
    s = blosc2.open(case["file"])
    assert s.nchunks == case["nchunks"] and s.typesize == 4, case["file"]
    found = b"".join(s.decompress_chunk(index) for index in range(s.nchunks))
    assert np.frombuffer(found, "<i4").tolist() == case["items"], case["file"]
    if case["items"]:
        assert s[:] == found, case["file"]
    c = s.cparams
    assert c.codec.value == case["codec"], case["file"]
    assert [f.value for f in c.filters if f.value] == case["filters"], case["file"]
"#;
    run_python(script, folder.path(), &[]);
}

/// Pipelines for items of this size.
fn pipelines(typesize: usize) -> Vec<Vec<Filter>> {
    let mut all = vec![
        vec![],
        vec![Filter::Shuffle],
        vec![Filter::ShuffleBytes(3)],
        vec![Filter::Bitshuffle],
        vec![Filter::Delta],
        vec![Filter::Delta, Filter::Shuffle],
        vec![Filter::Shuffle, Filter::Bitshuffle],
    ];
    if typesize < 256 {
        all.extend([vec![Filter::ByteDelta(0)], vec![Filter::Shuffle, Filter::ByteDelta(0)]]);
    }
    if matches!(typesize, 4 | 8) {
        all.push(vec![Filter::TruncPrec(10), Filter::Shuffle]);
    }
    if matches!(typesize, 1 | 2 | 4 | 8) {
        all.push(vec![Filter::IntTrunc(-3), Filter::Bitshuffle]);
    }
    all
}

/// Chunks of every codec, filter and kind of typesize. The two libraries write the same bytes, except for zlib, whose
/// implementations differ, and for bytedelta of single bytes, which Python replaces.
#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn chunks_go_both_ways() {
    let folder = tempfile::tempdir().unwrap();
    let mut rng = Rng(6);
    let mut cases = Vec::new();
    for codec in codecs() {
        for typesize in [1usize, 2, 3, 4, 8, 16, 100, 255, 300] {
            for filters in pipelines(typesize) {
                let index = cases.len();
                let items = rng.below(30_000 / typesize as u64) as usize;
                let kind = *rng.pick(&crate::common::KINDS);
                let bytes = crate::common::data(kind, items * typesize, index as u64);
                let level = rng.below(10) as u8;
                let (split, mode) = *rng.pick(&[
                    (SplitMode::Always, 1),
                    (SplitMode::Never, 2),
                    (SplitMode::Auto, 3),
                    (SplitMode::ForwardCompat, 4),
                ]);
                let params = CParams::new()
                    .codec(codec)
                    .level(level)
                    .typesize(typesize)
                    .split(split)
                    .filters(&filters);
                let chunk = blosc2::compress(&bytes[..], &params).unwrap();
                // What is left by lossy filters.
                let found = blosc2::decompress::<u8>(&chunk).unwrap();
                let write = |end: &str, bytes: &[u8]| {
                    fs::write(folder.path().join(format!("{index}.{end}")), bytes).unwrap();
                };
                write("raw", &bytes);
                write("chunk", &chunk);
                write("found", &found);
                // Python puts them into the given places, this crate into the last of the six places.
                let none = || std::iter::repeat_n(0, 6 - filters.len());
                let metas = none().chain(filters.iter().map(|filter| match filter {
                    Filter::ByteDelta(0) => typesize as u8,
                    filter => filter.meta(),
                }));
                let codes = none().chain(filters.iter().map(|filter| filter.code()));
                cases.push(json!({
                    "codec": codec.code(), "level": level, "typesize": typesize, "split": mode,
                    "filters": codes.collect::<Vec<_>>(),
                    "metas": metas.map(|meta| meta as i8).collect::<Vec<_>>(),
                }));
            }
        }
    }
    assert!(cases.len() > 400, "{}", cases.len());
    fs::write(folder.path().join("cases.json"), Value::from(cases.clone()).to_string()).unwrap();
    let script = r#"
import json
import blosc2
different = []
for index, case in enumerate(json.load(open("cases.json"))):
    raw = open(f"{index}.raw", "rb").read()
    chunk = open(f"{index}.chunk", "rb").read()
    if raw:
        assert blosc2.decompress2(chunk) == open(f"{index}.found", "rb").read(), (index, case)
    cparams = dict(codec=blosc2.Codec(case["codec"]), clevel=case["level"],
                   typesize=case["typesize"], splitmode=blosc2.SplitMode(case["split"]),
                   filters=[blosc2.Filter(code) for code in case["filters"]],
                   filters_meta=case["metas"], nthreads=1)
    its = blosc2.compress2(raw, **cparams) if raw else chunk
    replaced = case["typesize"] == 1 and 35 in case["filters"]
    if its != chunk and case["codec"] != 4 and not replaced:
        different.append((index, case, len(its), len(chunk)))
    open(f"{index}.python", "wb").write(its)
assert not different, (len(different), different[:5])
"#;
    run_python(script, folder.path(), &[]);
    for (index, case) in cases.iter().enumerate() {
        let read = |end: &str| fs::read(folder.path().join(format!("{index}.{end}"))).unwrap();
        let (found, chunk) = (read("found"), read("python"));
        assert!(blosc2::decompress::<u8>(&chunk).unwrap() == found, "{case}");
        let typesize = case["typesize"].as_u64().unwrap() as usize;
        let chunk = blosc2_format::chunk::Chunk::new(&chunk, &Limits::default()).unwrap();
        assert!(chunk.with_typesize(typesize).decode().unwrap() == found, "{case}");
    }
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
            builder = builder.chunks(numbers(&case["given"]));
        }
        let array = builder.from_bytes(&zeros[..len], &shape, "|V1", typesize);
        let array = array.unwrap_or_else(|error| panic!("{case}: {error}"));
        // Without items Python's chunks have none; ours have, so that the array can grow.
        let is_empty = shape.contains(&0) && case["given"].is_null();
        let same = array.chunks() == numbers(&case["chunks"])
            && array.blocks() == numbers(&case["blocks"]);
        if same == is_empty {
            wrong.push(format!("{case}: {:?} {:?}", array.chunks(), array.blocks()));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn python_reads_what_the_first_example_writes() {
    let folder = tempfile::tempdir().unwrap();
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
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
