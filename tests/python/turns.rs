//! Files and directories that Rust and Python change alternately. Before and after each turn both read all of them, and
//! the content has to equal a plain model.
//!
//! When Python shrinks an array, C leaves the removed items in the padding, and they reappear when Python enlarges the
//! array again. Such arrays therefore only grow by appended items in Python. In Rust new items are zeros.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use blosc2::{CParams, Filter, NDArray, OpenOptions, RawItems, SChunk, SplitMode, Target};
use serde_json::{Value, json};

use crate::common::{Kind, Model, Rng, assert_same, codecs, data, random_box, run_python};
use crate::metadata::Value as LayerValue;

const OBJECTS: usize = 80;
const TURNS: usize = 5;
/// The dtypes of arrays; super-chunks have items as large.
const DTYPES: [(&str, usize); 4] = [("|u1", 1), ("<u2", 2), ("<f8", 8), ("|S10", 10)];

/// What is in a file or a directory.
#[derive(Debug, Clone)]
enum Content {
    Array(Model),
    Chunks { size: usize, chunks: Vec<Vec<u8>> },
}

#[derive(Debug, Clone)]
struct Object {
    path: PathBuf,
    is_directory: bool,
    dtype: &'static str,
    typesize: usize,
    content: Content,
    /// A fixed metalayer, whose value keeps its length.
    fixed: LayerValue,
    vlmeta: BTreeMap<String, LayerValue>,
    /// Whether C may have left items in the padding.
    stale: bool,
    log: Vec<Value>,
}

/// How one is made.
struct Making {
    chunks: Vec<u64>,
    blocks: Vec<u64>,
    params: CParams,
}

/// A change that one side makes in its turn.
#[derive(Debug, Clone)]
enum Change {
    Write {
        ranges: Vec<Range<u64>>,
        bytes: Vec<u8>,
    },
    Append {
        axis: usize,
        bytes: Vec<u8>,
    },
    Resize {
        shape: Vec<u64>,
    },
    /// Recompresses all chunks and replaces the old file.
    Copy {
        params: CParams,
    },
    AppendChunk {
        bytes: Vec<u8>,
    },
    InsertChunk {
        at: usize,
        bytes: Vec<u8>,
    },
    UpdateChunk {
        at: usize,
        bytes: Vec<u8>,
    },
    DeleteChunk {
        at: usize,
    },
    /// Counted in items.
    WriteItems {
        start: usize,
        bytes: Vec<u8>,
    },
    Fixed(LayerValue),
    Set(String, LayerValue),
    Remove(String),
}

const FIXED: &str = "fixed";

fn fixed(rng: &mut Rng) -> LayerValue {
    let bytes: Vec<u8> = (0..4).map(|_| rng.next() as u8).collect();
    let text: String = bytes.iter().map(|byte| format!("\\x{byte:02x}")).collect();
    LayerValue { text: format!("b'{text}'"), stored: rmpv::Value::Binary(bytes) }
}

fn params(rng: &mut Rng) -> CParams {
    let filters = *rng.pick(&[&[][..], &[Filter::Shuffle], &[Filter::Bitshuffle]]);
    CParams::new().codec(*rng.pick(&codecs())).level(rng.below(10) as u8).filters(filters)
}

fn bytes(rng: &mut Rng, len: usize) -> Vec<u8> {
    data(*rng.pick(&[Kind::Random, Kind::Zeros, Kind::Runs, Kind::Ramp]), len, rng.next())
}

/// Of each item of a shape, whether it is in the box, and its number among those that are.
fn inside(shape: &[u64], ranges: &[Range<u64>]) -> Vec<Option<usize>> {
    let count: u64 = shape.iter().product();
    let numbers = (0..count).map(|mut number| {
        let mut index = vec![0; shape.len()];
        for (at, size) in index.iter_mut().zip(shape).rev() {
            *at = number % size;
            number /= size;
        }
        let is_inside = index.iter().zip(ranges).all(|(at, range)| range.contains(at));
        is_inside.then(|| {
            let each = index.iter().zip(ranges);
            each.fold(0, |all, (at, range)| all * (range.end - range.start) + (at - range.start))
                as usize
        })
    });
    numbers.collect()
}

fn whole(shape: &[u64]) -> Vec<Range<u64>> {
    shape.iter().map(|&size| 0..size).collect()
}

fn write(model: &mut Model, ranges: &[Range<u64>], bytes: &[u8]) {
    let items = model.bytes.chunks_exact_mut(model.typesize);
    for (item, from) in items.zip(inside(&model.shape, ranges)) {
        if let Some(from) = from {
            item.copy_from_slice(&bytes[from * model.typesize..][..model.typesize]);
        }
    }
}

fn resize(model: &mut Model, shape: &[u64]) {
    let kept: Vec<u64> = model.shape.iter().zip(shape).map(|(&old, &new)| old.min(new)).collect();
    let items = model.read(&whole(&kept));
    model.shape = shape.to_vec();
    model.bytes = vec![0; shape.iter().product::<u64>() as usize * model.typesize];
    write(model, &whole(&kept), &items);
}

/// Where items go that are appended.
fn appended(model: &Model, axis: usize, bytes: &[u8]) -> (Vec<u64>, Vec<Range<u64>>) {
    let items = (bytes.len() / model.typesize) as u64;
    let per_row: u64 = model.shape.iter().product::<u64>() / model.shape[axis];
    let mut shape = model.shape.clone();
    shape[axis] += items / per_row;
    let mut ranges = whole(&shape);
    ranges[axis].start = model.shape[axis];
    (shape, ranges)
}

impl Object {
    /// One that is still to be made.
    fn new(number: usize, folder: &Path, rng: &mut Rng) -> Self {
        let (dtype, typesize) = *rng.pick(&DTYPES);
        let (is_array, is_directory) = (number.is_multiple_of(2), number % 4 > 1);
        let content = match is_array {
            true => {
                let ndim = 1 + rng.below(3) as usize;
                let shape: Vec<u64> = (0..ndim).map(|_| 1 + rng.below(12)).collect();
                let len = shape.iter().product::<u64>() as usize * typesize;
                Content::Array(Model { shape, typesize, bytes: bytes(rng, len) })
            }
            false => {
                let size = typesize * (1 + rng.below(200) as usize);
                let mut chunks: Vec<_> = (0..1 + rng.below(4)).map(|_| bytes(rng, size)).collect();
                if rng.below(2) == 0 {
                    let items = 1 + rng.below((size / typesize) as u64) as usize;
                    chunks.push(bytes(rng, typesize * items));
                }
                Content::Chunks { size, chunks }
            }
        };
        let path = folder.join(format!("{number}.{}", if is_array { "b2nd" } else { "b2frame" }));
        let (fixed, vlmeta, stale, log) = (fixed(rng), BTreeMap::new(), false, Vec::new());
        Self { path, is_directory, dtype, typesize, content, fixed, vlmeta, stale, log }
    }

    /// How it may be made.
    fn making(&self, rng: &mut Rng) -> Making {
        let (mut chunks, mut blocks) = (vec![], vec![]);
        if let Content::Array(model) = &self.content {
            chunks = model.shape.iter().map(|size| 1 + rng.below(size + 2)).collect();
            blocks = chunks.iter().map(|&size| 1 + rng.below(size)).collect();
        }
        Making { chunks, blocks, params: params(rng) }
    }

    fn make(&self, making: Making) {
        let Making { chunks, blocks, params } = making;
        match &self.content {
            Content::Array(model) => {
                let builder =
                    NDArray::builder().chunk_shape(&chunks).block_shape(&blocks).cparams(params);
                let builder = builder.options(OpenOptions::new().meta(FIXED, &self.fixed.bytes()));
                let builder = match self.is_directory {
                    true => builder.target(Target::from(&self.path).directory(true)),
                    false => builder.target(&self.path),
                };
                builder
                    .dtype(self.dtype, self.typesize)
                    .from_slice(RawItems(&model.bytes), &model.shape)
                    .unwrap();
            }
            Content::Chunks { chunks, .. } => {
                let options = OpenOptions::new().create_new(true);
                let options = options.typesize(self.typesize).cparams(&params);
                let options = options.meta(FIXED, &self.fixed.bytes());
                let target = Target::from(&self.path).directory(self.is_directory);
                let mut schunk = options.open(target).unwrap();
                for chunk in chunks {
                    schunk.append(&chunk[..]).unwrap();
                }
            }
        }
    }

    /// The same for Python.
    fn making_to_json(&self, making: &Making) -> Value {
        let size = if let Content::Chunks { size, .. } = self.content { size } else { 0 };
        json!({
            "do": "make", "chunks": making.chunks, "blocks": making.blocks, "chunksize": size,
            "contiguous": !self.is_directory, "typesize": self.typesize,
            "cparams": for_python(&making.params, self.typesize),
        })
    }

    /// What one side can do.
    fn choose(&self, rng: &mut Rng, by_python: bool) -> Change {
        if rng.below(4) == 0 {
            let names: Vec<&String> = self.vlmeta.keys().collect();
            return match rng.below(4) {
                0 => Change::Fixed(fixed(rng)),
                1 if !names.is_empty() => Change::Remove((*rng.pick(&names)).clone()),
                _ => {
                    let name = format!("layer {}", rng.below(6));
                    Change::Set(name, LayerValue::random(rng, 2, true))
                }
            };
        }
        // Python copies arrays only.
        if matches!(self.content, Content::Array(_)) && !self.is_directory && rng.below(8) == 0 {
            return Change::Copy { params: params(rng) };
        }
        match &self.content {
            Content::Array(model) => self.choose_of_array(model, rng, by_python),
            Content::Chunks { size, chunks } => {
                let is_full = chunks.last().is_none_or(|last| last.len() == *size);
                let count = chunks.len();
                match rng.below(5) {
                    0 if is_full && count < 12 => Change::AppendChunk { bytes: bytes(rng, *size) },
                    // Before a short one C inserts what it cannot read: chunks of zeros.
                    1 if (is_full || !by_python) && count < 12 => {
                        let at = rng.below((count + usize::from(is_full)) as u64) as usize;
                        Change::InsertChunk { at, bytes: bytes(rng, *size) }
                    }
                    2 if count > 2 => Change::DeleteChunk { at: rng.below(count as u64) as usize },
                    3 => {
                        let len = chunks.iter().map(Vec::len).sum::<usize>();
                        let items = (len / self.typesize) as u64;
                        let start = rng.below(items) as usize;
                        let len = 1 + rng.below(items - start as u64) as usize;
                        Change::WriteItems { start, bytes: bytes(rng, len * self.typesize) }
                    }
                    _ => {
                        let at = rng.below(count as u64) as usize;
                        Change::UpdateChunk { at, bytes: bytes(rng, chunks[at].len()) }
                    }
                }
            }
        }
    }

    fn choose_of_array(&self, model: &Model, rng: &mut Rng, by_python: bool) -> Change {
        let axis = rng.below(model.shape.len() as u64) as usize;
        let items: u64 = model.shape.iter().product();
        match rng.below(4) {
            0 if items < 3000 => {
                let rows = 1 + rng.below(8);
                let len = items / model.shape[axis] * rows;
                Change::Append { axis, bytes: bytes(rng, len as usize * self.typesize) }
            }
            1 => {
                let mut shape = model.shape.clone();
                let more = if self.stale && by_python || items > 3000 { 0 } else { 5 };
                shape[axis] = 1 + rng.below(shape[axis] + more);
                Change::Resize { shape }
            }
            _ => {
                let ranges = random_box(&model.shape, rng);
                let len = ranges.iter().map(|range| range.end - range.start).product::<u64>();
                Change::Write { ranges, bytes: bytes(rng, len as usize * self.typesize) }
            }
        }
    }

    /// Applies the change to the model.
    fn follow(&mut self, change: &Change, by_python: bool) {
        match (&mut self.content, change) {
            (Content::Array(model), Change::Write { ranges, bytes }) => write(model, ranges, bytes),
            (Content::Array(model), Change::Append { axis, bytes }) => {
                let (shape, ranges) = appended(model, *axis, bytes);
                resize(model, &shape);
                write(model, &ranges, bytes);
            }
            (Content::Array(model), Change::Resize { shape }) => {
                let shrinks = shape.iter().zip(&model.shape).any(|(new, old)| new < old);
                self.stale |= by_python && shrinks;
                resize(model, shape);
            }
            (Content::Chunks { chunks, .. }, change) => match change {
                Change::AppendChunk { bytes } => chunks.push(bytes.clone()),
                Change::InsertChunk { at, bytes } => chunks.insert(*at, bytes.clone()),
                Change::UpdateChunk { at, bytes } => chunks[*at].clone_from(bytes),
                Change::DeleteChunk { at } => drop(chunks.remove(*at)),
                Change::WriteItems { start, bytes } => {
                    let all = chunks.iter_mut().flatten().skip(start * self.typesize);
                    all.zip(bytes).for_each(|(old, new)| *old = *new);
                }
                _ => {}
            },
            _ => {}
        }
        match change {
            Change::Fixed(value) => self.fixed = value.clone(),
            Change::Set(name, value) => drop(self.vlmeta.insert(name.clone(), value.clone())),
            Change::Remove(name) => drop(self.vlmeta.remove(name)),
            _ => {}
        }
    }

    /// Makes the change in Rust.
    fn apply(&self, change: &Change) -> blosc2::Result<()> {
        let is_array = matches!(self.content, Content::Array(_));
        if let Change::Copy { params } = change {
            let array = NDArray::open_rw(fs::read(&self.path).unwrap())?;
            let builder = NDArray::builder().cparams(params.clone()).target(&self.path);
            return builder.options(OpenOptions::new().replace(true)).copy(&array).map(drop);
        }
        if is_array {
            let mut array = NDArray::open_rw(&self.path)?;
            match change {
                Change::Write { ranges, bytes } => return array.write(ranges, RawItems(bytes)),
                Change::Append { axis, bytes } => return array.append(*axis, RawItems(bytes)),
                Change::Resize { shape } => return array.resize(shape),
                _ => {}
            }
        }
        let mut schunk = SChunk::open_rw(&self.path)?;
        match change {
            Change::AppendChunk { bytes } => schunk.append(&bytes[..]),
            Change::InsertChunk { at, bytes } => schunk.insert(*at, &bytes[..]),
            Change::UpdateChunk { at, bytes } => schunk.replace(*at, &bytes[..]),
            Change::DeleteChunk { at } => schunk.remove(*at),
            Change::WriteItems { start, bytes } => {
                schunk.write((start * self.typesize) as u64, &bytes[..])
            }
            Change::Fixed(value) => schunk.meta_mut().set_value(FIXED, &value.value()),
            Change::Set(name, value) => schunk.vlmeta_mut().set_value(name, &value.value()),
            Change::Remove(name) => schunk.vlmeta_mut().remove(name).map(|found| assert!(found)),
            change => unreachable!("{change:?}"),
        }
    }

    /// Asserts that Rust reads the content of the model.
    fn check(&self, when: &str) {
        let outcome = std::panic::catch_unwind(|| {
            let mut schunk = SChunk::open(&self.path).unwrap();
            match &self.content {
                Content::Array(model) => {
                    let array = NDArray::from_schunk(schunk).unwrap();
                    assert_eq!(
                        (array.shape(), array.dtype_str()),
                        (&model.shape[..], Some(self.dtype))
                    );
                    assert_same(&array.read::<RawItems>(..).unwrap().0, &model.bytes, "the items");
                    schunk = array.into_schunk();
                }
                Content::Chunks { chunks, .. } => {
                    let found: Vec<Vec<u8>> =
                        schunk.iter_chunks::<u8>().map(|chunk| chunk.unwrap()).collect();
                    assert_eq!(found.len(), chunks.len());
                    for (found, chunk) in found.iter().zip(chunks) {
                        assert_same(found, chunk, "a chunk");
                    }
                    assert_same(&schunk.read::<u8>(..).unwrap(), &chunks.concat(), "all items");
                }
            }
            assert_eq!(schunk.meta().get(FIXED).unwrap(), Some(self.fixed.bytes()));
            let mut names = schunk.vlmeta().names();
            names.sort();
            assert!(names.iter().eq(self.vlmeta.keys()), "{names:?}");
            for (name, value) in &self.vlmeta {
                assert_eq!(schunk.vlmeta().get(name).unwrap(), Some(value.bytes()), "{name}");
            }
        });
        assert!(outcome.is_ok(), "{when}, {}: {:#?}", self.path.display(), self.log);
    }

    /// Python's turn, which makes of it what it is now by what was logged last.
    fn turn(&self, before: Option<Value>, items: &mut Vec<u8>) -> Value {
        json!({
            "path": self.path, "dtype": self.dtype, "before": before, "after": self.to_json(items),
            "change": self.log.last(), "log": self.log,
        })
    }

    /// What Python has to find. Bytes go behind those that there are.
    fn to_json(&self, all: &mut Vec<u8>) -> Value {
        let vlmeta: Vec<Value> =
            self.vlmeta.iter().map(|(name, value)| json!([name, value.text])).collect();
        let mut found = json!({ "fixed": self.fixed.text, "vlmeta": vlmeta });
        match &self.content {
            Content::Array(model) => {
                found["shape"] = json!(model.shape);
                found["items"] = stored(&model.bytes, all);
            }
            Content::Chunks { chunks, .. } => {
                let chunks: Vec<Value> = chunks.iter().map(|chunk| stored(chunk, all)).collect();
                found["chunks"] = chunks.into();
            }
        }
        found
    }
}

/// Where the bytes are.
fn stored(bytes: &[u8], all: &mut Vec<u8>) -> Value {
    let start = all.len();
    all.extend(bytes);
    json!([start, all.len()])
}

impl Change {
    fn to_json(&self, object: &Object, all: &mut Vec<u8>) -> Value {
        let boxed = |ranges: &[Range<u64>]| -> Vec<[u64; 2]> {
            ranges.iter().map(|range| [range.start, range.end]).collect()
        };
        match self {
            Self::Write { ranges, bytes } => {
                json!({ "do": "write", "box": boxed(ranges), "items": stored(bytes, all) })
            }
            Self::Append { axis, bytes } => {
                let Content::Array(model) = &object.content else { unreachable!() };
                let (shape, ranges) = appended(model, *axis, bytes);
                let items = stored(bytes, all);
                json!({ "do": "append", "shape": shape, "box": boxed(&ranges), "items": items })
            }
            Self::Resize { shape } => json!({ "do": "resize", "shape": shape }),
            Self::Copy { params } => {
                json!({ "do": "copy", "cparams": for_python(params, object.typesize) })
            }
            Self::AppendChunk { bytes } => {
                json!({ "do": "append chunk", "items": stored(bytes, all) })
            }
            Self::InsertChunk { at, bytes } => {
                json!({ "do": "insert chunk", "at": at, "items": stored(bytes, all) })
            }
            Self::UpdateChunk { at, bytes } => {
                json!({ "do": "update chunk", "at": at, "items": stored(bytes, all) })
            }
            Self::DeleteChunk { at } => json!({ "do": "delete chunk", "at": at }),
            Self::WriteItems { start, bytes } => {
                let stop = start + bytes.len() / object.typesize;
                json!({ "do": "write items", "at": [start, stop], "items": stored(bytes, all) })
            }
            Self::Fixed(value) => json!({ "do": "meta", "value": value.text }),
            Self::Set(name, value) => json!({ "do": "set", "name": name, "value": value.text }),
            Self::Remove(name) => json!({ "do": "remove", "name": name }),
        }
    }
}

/// The start of Python's script.
const COMMON: &str = r#"
import json, os
import blosc2
import numpy as np

blosc2.set_nthreads(1)

def cparams_of(case):
    """The filters are in the last places, as they are by default."""
    given = dict(case["cparams"])
    empty = [0] * (6 - len(given["filters"]))
    given["codec"] = blosc2.Codec(given["codec"])
    given["splitmode"] = blosc2.SplitMode(given["splitmode"])
    given["filters"] = [blosc2.Filter(code) for code in empty + given["filters"]]
    given["filters_meta"] = empty + given["filters_meta"]
    return given

def equal(found, data):
    """Equal as bytes; and, where NumPy can compare the items, equal to it."""
    if found.shape != data.shape or found.dtype != data.dtype or found.tobytes() != data.tobytes():
        return False
    # Not every sixteen bytes are a number.
    if data.dtype.kind == "V" or data.dtype.char in "gG":
        return True
    return np.array_equal(found, data, equal_nan=data.dtype.kind in "fcmM")

with open("items", "rb") as items:
    items = items.read()
with open("cases.json") as cases:
    cases = json.load(cases)
"#;

/// Python's turn.
const TURN: &str = r#"
def find(case, state):
    found = blosc2.open(case["path"], mode="r")
    schunk = found
    if "shape" in state:
        schunk = found.schunk
        start, end = state["items"]
        data = np.frombuffer(items[start:end], case["dtype"]).reshape(state["shape"])
        assert equal(found[...], data), "the items differ"
    else:
        chunks = [items[start:end] for start, end in state["chunks"]]
        assert schunk.nchunks == len(chunks), schunk.nchunks
        for number, chunk in enumerate(chunks):
            assert schunk.decompress_chunk(number) == chunk, number
        assert not chunks or schunk[:] == b"".join(chunks), "all bytes"
    assert schunk.meta["fixed"] == eval(state["fixed"]), "meta"
    expected = {name: eval(text) for name, text in state["vlmeta"]}
    vlmeta = schunk.vlmeta.getall()
    assert {name: repr(value) for name, value in vlmeta.items()} == \
        {name: repr(value) for name, value in expected.items()}, (vlmeta, expected)

def make_again(case, making):
    more = dict(urlpath=case["path"], contiguous=making["contiguous"], cparams=cparams_of(making))
    state = case["after"]
    more["meta"] = dict(fixed=eval(state["fixed"]))
    if "shape" in state:
        start, end = state["items"]
        data = np.frombuffer(items[start:end], case["dtype"]).reshape(state["shape"])
        blosc2.asarray(data, chunks=making["chunks"], blocks=making["blocks"], **more)
        return
    more["cparams"]["typesize"] = making["typesize"]
    schunk = blosc2.SChunk(chunksize=making["chunksize"], **more)
    for start, end in state["chunks"]:
        schunk.append_data(items[start:end])

def change(case, change):
    path, what = case["path"], change["do"]
    if what == "make":
        make_again(case, change)
        return
    found = blosc2.open(path, mode="a")
    array = found if isinstance(found, blosc2.NDArray) else None
    schunk = found if array is None else found.schunk
    if "items" in change:
        start, end = change["items"]
        raw = items[start:end]
    if what in ("append", "resize"):
        if what == "append" and array.ndim == 1:
            array.append(np.frombuffer(raw, array.dtype))
            return
        array.resize(tuple(change["shape"]))
    if what in ("write", "append"):
        box = tuple(slice(start, end) for start, end in change["box"])
        shape = [end - start for start, end in change["box"]]
        if raw:
            array[box] = np.frombuffer(raw, array.dtype).reshape(shape)
    elif what == "copy":
        cparams = dict(cparams_of(change), typesize=schunk.typesize)
        found.copy(urlpath="copy", contiguous=True, cparams=cparams)
        os.replace("copy", path)
    elif what == "append chunk":
        schunk.append_data(raw)
    elif what == "insert chunk":
        schunk.insert_data(change["at"], raw, True)
    elif what == "update chunk":
        schunk.update_data(change["at"], raw, True)
    elif what == "delete chunk":
        schunk.delete_chunk(change["at"])
    elif what == "write items":
        start, stop = change["at"]
        schunk[start:stop] = raw
    elif what == "meta":
        schunk.meta["fixed"] = eval(change["value"])
    elif what == "set":
        schunk.vlmeta[change["name"]] = eval(change["value"])
    elif what == "remove":
        del schunk.vlmeta[change["name"]]
    else:
        assert what == "resize", what

right = 0
for case in cases:
    at = "before"
    try:
        if case["before"] is not None:
            find(case, case["before"])
        at = "the change"
        change(case, case["change"])
        at = "after"
        find(case, case["after"])
        right += 1
    except Exception as error:
        print("WRONG", at, type(error).__name__, str(error)[:1000], case["path"], json.dumps(case["log"], indent=1))
print(right, "are as they should be")
"#;

/// Parameters as Python takes them.
pub(crate) fn for_python(params: &CParams, typesize: usize) -> Value {
    let split = match params.split {
        SplitMode::Always => 1,
        SplitMode::Never => 2,
        SplitMode::Auto => 3,
        _ => 4,
    };
    let meta = |filter: &Filter| match filter {
        Filter::Bytedelta(0) => typesize as u8,
        filter => filter.meta(),
    };
    json!({
        "codec": params.codec.code(), "clevel": params.level, "splitmode": split,
        "use_dict": params.dictionary, "nthreads": params.threads.count(),
        "filters": params.filters.iter().map(|filter| filter.code()).collect::<Vec<_>>(),
        "filters_meta": params.filters.iter().map(meta).collect::<Vec<_>>(),
    })
}

/// Lets Python have its turn.
fn python(folder: &Path, items: Vec<u8>, cases: Vec<Value>, objects: &[Object], when: &str) {
    let count = cases.len();
    fs::write(folder.join("items"), items).unwrap();
    fs::write(folder.join("cases.json"), Value::from(cases).to_string()).unwrap();
    let printed = run_python(&[COMMON, TURN].concat(), folder, &[]);
    assert_eq!(printed.trim(), format!("{count} are as they should be"), "{when}");
    for object in objects {
        object.check(when);
    }
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn both_change_the_same_files_in_turns() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut rng = Rng(21);
    let mut objects: Vec<Object> =
        (0..OBJECTS).map(|number| Object::new(number, folder, &mut rng)).collect();
    let (mut items, mut cases) = (Vec::new(), Vec::new());
    for (number, object) in objects.iter_mut().enumerate() {
        let making = object.making(&mut rng);
        object.log.push(object.making_to_json(&making));
        match number % 8 < 4 {
            true => object.make(making),
            false => cases.push(object.turn(None, &mut items)),
        }
    }
    python(folder, items, cases, &objects, "as it is made");
    let mut done = BTreeSet::new();
    for turn in 0..TURNS {
        let (mut items, mut cases) = (Vec::new(), Vec::new());
        for object in &mut objects {
            let change = object.choose(&mut rng, false);
            object.log.push(change.to_json(object, &mut Vec::new()));
            done.insert(("Rust", object.log.last().unwrap()["do"].to_string()));
            let applied = object.apply(&change);
            assert!(applied.is_ok(), "{applied:?} in {:#?}", object.log);
            object.follow(&change, false);
            object.check("after Rust's turn");

            let change = object.choose(&mut rng, true);
            let before = object.to_json(&mut items);
            object.log.push(change.to_json(object, &mut items));
            done.insert(("Python", object.log.last().unwrap()["do"].to_string()));
            object.follow(&change, true);
            cases.push(object.turn(Some(before), &mut items));
        }
        python(folder, items, cases, &objects, &format!("after Python's turn {turn}"));
    }
    // Each has done everything.
    assert_eq!(done.len(), 2 * 12, "{done:?}");
}

/// C opens no directory where the number of a file is above the bytes of all chunks, less 32.
#[test]
fn files_of_chunks_that_are_often_replaced_keep_small_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("small.b2frame");
    let options = OpenOptions::new().create_new(true);
    let mut schunk = options.open(Target::from(&path).directory(true)).unwrap();
    schunk.append(b"ab").unwrap();
    schunk.append(b"ab").unwrap();
    for turn in 1..100u8 {
        schunk.replace(usize::from(turn % 2), &[turn, turn + 1]).unwrap();
        if turn % 10 == 0 {
            drop(schunk);
            schunk = SChunk::open_rw(&path).unwrap();
        }
        let numbers: Vec<u64> = schunk.offsets().unwrap().into_iter().flatten().collect();
        assert!(numbers.iter().all(|&number| number <= schunk.cbytes() - 32), "{numbers:?}");
        assert_ne!(numbers[0], numbers[1]);
    }
    assert_eq!(schunk.read::<u8>(..).unwrap(), [98, 99, 99, 100]);
    // An index and two chunks.
    assert_eq!(fs::read_dir(&path).unwrap().count(), 3);

    // The first one goes, and one comes at the end.
    for turn in 1..100u8 {
        schunk.append(&[turn, turn]).unwrap();
        schunk.remove(0).unwrap();
        let numbers: Vec<u64> = schunk.offsets().unwrap().into_iter().flatten().collect();
        assert!(numbers.iter().all(|&number| number < 4), "{numbers:?}");
    }
    assert_eq!(schunk.read::<u8>(..).unwrap(), [98, 98, 99, 99]);
    // Numbers that went are taken again, before there are new ones.
    for turn in 0..10u8 {
        schunk.append(&[turn, turn]).unwrap();
    }
    let mut numbers: Vec<u64> = schunk.offsets().unwrap().into_iter().flatten().collect();
    numbers.sort();
    assert!(numbers.into_iter().eq(0..12));
}
