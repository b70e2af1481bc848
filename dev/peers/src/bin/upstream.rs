//! Compares what Python reads with what this project reads.
//!
//! `upstream FOLDER` gets the lines of `upstream/read.py` on its standard input, each about a copy in the folder. A frame
//! is read by both engines: `blosc2`, which calls C for chunks, and `blosc2-format`, which is Rust only. A container is
//! read by `blosc2-store`. The output is one JSON object: the numbers of what was compared, and the differences.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{self, BufRead};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::thread;

use blosc2::super_chunk::Metalayers;
use blosc2::{NDArray, RawItems, SChunk, Value};
use blosc2_format::Limits;
use blosc2_format::file::File;
use blosc2_store::{CTable, EmbedStore, Object, TreeStore};
use serde_json::{Map, Value as Json, json};
use sha2::{Digest, Sha256};

/// As in `read.py`.
const ROWS: u64 = 2000;

/// Parts of errors that are documented limits.
const LIMITS: [(&str, &str); 5] = [
    ("needs the feature `arrow`", "refused here: values in the format of Arrow"),
    ("not supported: codec", "refused here: a codec that only `blosc2` has"),
    ("not supported: filter", "refused here: a filter that only `blosc2` has"),
    ("(feature `zfp`)", "refused here: the codec ZFP, which this build does not have"),
    ("is compressed: a store is read in place", "refused here: a zip file with compressed members"),
];

const PARAMETERS: [&str; 3] = ["codec", "filters", "filters_meta"];

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// What was compared.
#[derive(Default)]
struct Outcome {
    counts: BTreeMap<String, usize>,
    differences: Vec<String>,
}

fn main() -> Result<()> {
    let folder = PathBuf::from(std::env::args_os().nth(1).ok_or("no folder")?);
    let lines = io::stdin().lock().lines().collect::<io::Result<Vec<_>>>()?;
    std::panic::set_hook(Box::new(|_| {}));
    let threads = thread::available_parallelism()?.get();
    let outcomes = thread::scope(|scope| {
        let part = |first: usize| {
            let (folder, lines) = (&folder, &lines);
            scope.spawn(move || {
                let mut outcome = Outcome::default();
                for line in lines.iter().skip(first).step_by(threads) {
                    outcome.compare(folder, line).map_err(|error| format!("{line}: {error}"))?;
                }
                Ok(outcome)
            })
        };
        let parts: Vec<_> = (0..threads).map(part).collect();
        parts
            .into_iter()
            .map(|part| part.join().unwrap_or_else(|_| Err("a thread has panicked".to_owned())))
            .collect::<std::result::Result<Vec<_>, String>>()
    })?;
    let mut all = Outcome::default();
    for outcome in outcomes {
        for (what, number) in outcome.counts {
            *all.counts.entry(what).or_default() += number;
        }
        all.differences.extend(outcome.differences);
    }
    all.differences.sort();
    println!("{}", json!({"counts": all.counts, "differences": all.differences}));
    Ok(())
}

impl Outcome {
    /// Reads a copy, and compares it with the line about it.
    fn compare(&mut self, folder: &Path, line: &str) -> Result<()> {
        let line: Json = serde_json::from_str(line)?;
        let name = line["file"].as_str().ok_or("no file")?;
        let path = folder.join(name);
        if let Some(expected) = line.get("frame") {
            self.add(name, "frames", "C", expected, || in_c(&path));
            self.add(name, "frames", "Rust", expected, || in_rust(&path));
        }
        if let Some(expected) = line.get("object") {
            self.add(name, "containers", "store", expected, || {
                container(Object::open(&path)?, expected)
            });
        }
        Ok(())
    }

    fn count(&mut self, what: String) {
        *self.counts.entry(what).or_default() += 1;
    }

    /// Compares the content of a file, as one engine reads it, with the expected content.
    fn add(
        &mut self,
        name: &str,
        kind: &str,
        engine: &str,
        expected: &Json,
        read: impl FnOnce() -> Result<Json>,
    ) {
        let found = catch_unwind(AssertUnwindSafe(read));
        let items = &expected["items"]["error"];
        let what = match (found, expected.get("error")) {
            (Err(_), _) => {
                self.differences.push(format!("{name} ({engine}): panic"));
                "different"
            }
            (Ok(Ok(found)), _) if !found["reference"].is_null() => {
                "a reference, whose data is elsewhere"
            }
            (Ok(Ok(_)), Some(error)) => {
                eprintln!("{name} ({engine}): only Python refuses it: {error}");
                "refused by Python only"
            }
            (Ok(Err(error)), None) if items.is_null() => {
                let error = error.to_string();
                match LIMITS.iter().find(|(part, _)| error.contains(part)) {
                    Some((_, limit)) => limit,
                    None => {
                        self.differences.push(format!("{name} ({engine}): {error}"));
                        "different"
                    }
                }
            }
            (Ok(Err(error)), None) => {
                eprintln!("{name} ({engine}): {error}; Python: {items}");
                "items refused by both"
            }
            (Ok(Err(error)), Some(other)) => {
                eprintln!("{name} ({engine}): {error}; Python: {other}");
                "refused by both"
            }
            (Ok(Ok(found)), None) => {
                let mut list = Vec::new();
                differences("", expected, &found, &mut list);
                for difference in &list {
                    self.differences.push(format!("{name} ({engine}): {difference}"));
                }
                if list.is_empty() { "equal" } else { "different" }
            }
        };
        self.count(format!("{kind}, {engine}, {what}"));
    }
}

/// Adds the differences of two values, each with its place. What Python refuses, or did not read, is not compared.
fn differences(place: &str, expected: &Json, found: &Json, list: &mut Vec<String>) {
    match (expected, found) {
        (Json::Object(expected), _) if expected.contains_key("error") => {}
        (Json::Object(all), Json::Object(found)) => {
            // `blosc2` returns the parameters of new chunks, which the user can choose, not those in the header.
            let compared = |name: &str| found.contains_key("codec") || !PARAMETERS.contains(&name);
            for (name, expected) in all.iter().filter(|(name, _)| compared(name)) {
                let found = found.get(name).unwrap_or(&Json::Null);
                differences(&format!("{place}/{name}"), expected, found, list);
            }
            for name in found.keys().filter(|name| !all.contains_key(*name)) {
                if ["error", "items"].contains(&name.as_str()) {
                    continue;
                }
                list.push(format!("{place}/{name}: only found here"));
            }
        }
        (Json::Array(expected), Json::Array(found)) if place.ends_with("chunks") => {
            // An uninitialized chunk has no hash.
            let same = |(one, other): (&Json, &Json)| one.is_null() || one == other;
            if expected.len() != found.len() || !expected.iter().zip(found).all(same) {
                list.push(format!("{place}: {expected:?}, found {found:?}"));
            }
        }
        (Json::Array(all), Json::Array(found)) if all.len() == found.len() => {
            for (index, (expected, found)) in all.iter().zip(found).enumerate() {
                differences(&format!("{place}/{index}"), expected, found, list);
            }
        }
        _ if expected == found => {}
        _ => {
            let short = |value: &Json| value.to_string().chars().take(200).collect::<String>();
            list.push(format!("{place}: {}, found {}", short(expected), short(found)));
        }
    }
}

fn hash(data: &[u8]) -> String {
    let mut text = format!("{:x}", Sha256::digest(data));
    text.truncate(32);
    text
}

/// Reads a frame with `blosc2`.
fn in_c(path: &Path) -> Result<Json> {
    schunk(SChunk::open(path)?)
}

fn schunk(schunk: SChunk) -> Result<Json> {
    let layers = |layers: Metalayers<'_>| -> Result<Json> {
        let mut all = Map::new();
        for name in layers.names() {
            let content = layers.get(&name)?.unwrap_or_default();
            all.insert(name, json!(hash(&content)));
        }
        Ok(Json::Object(all))
    };
    let (mut lengths, mut chunks) = (Vec::new(), Vec::new());
    for chunk in schunk.iter_chunks::<u8>() {
        let data = chunk?;
        lengths.push(data.len());
        chunks.push(hash(&data));
    }
    let mut content = json!({
        "typesize": schunk.typesize(),
        "nbytes": schunk.nbytes(),
        "lengths": lengths,
        "chunks": chunks,
        "meta": layers(schunk.meta())?,
        "vlmeta": layers(schunk.vlmeta())?,
    });
    if schunk.info().is_array {
        let array = blosc2::array::from_python_object(schunk)?;
        content["shape"] = json!(array.shape());
        content["blocks"] = json!([array.chunk_shape(), array.block_shape()]);
        content["itemsize"] = json!(array.dtype().map_or(array.typesize(), |dtype| dtype.size()));
        content["items"] = json!(hash(&array.read::<RawItems>(..)?.0));
    }
    Ok(content)
}

/// Reads a frame with `blosc2-format`.
fn in_rust(path: &Path) -> Result<Json> {
    let mut file = File::open(path, &Limits::default())?;
    let info = file.info().clone();
    let (mut lengths, mut chunks, mut data) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..info.nchunks {
        file.decode_chunk(number, &mut data)?;
        lengths.push(data.len());
        chunks.push(hash(&data));
    }
    let meta: Map<_, _> = info
        .metalayers
        .iter()
        .map(|layer| (layer.name.clone(), json!(hash(&layer.content))))
        .collect();
    let mut vlmeta = Map::new();
    for name in &info.vlmetalayers {
        let content = file.vlmetalayer(name)?.ok_or("a listed metalayer is missing")?;
        vlmeta.insert(name.clone(), json!(hash(&content)));
    }
    let mut content = json!({
        "typesize": info.typesize,
        "nbytes": info.nbytes,
        "lengths": lengths,
        "chunks": chunks,
        "codec": info.codec,
        "filters": info.filters,
        "filters_meta": info.filters_meta,
        "meta": meta,
        "vlmeta": vlmeta,
    });
    if let Some(geometry) = file.geometry() {
        let whole: Vec<_> = geometry.shape().iter().map(|&size| 0..size).collect();
        content["shape"] = json!(geometry.shape());
        content["blocks"] = json!([geometry.chunk_shape(), geometry.block_shape()]);
        content["itemsize"] = json!(geometry.typesize());
        content["items"] = json!(hash(&file.read_box(&whole)?));
    }
    Ok(content)
}

/// Reads a container. Of a store, the entries are read as the expected kinds.
fn container(object: Object, expected: &Json) -> Result<Json> {
    match object {
        Object::CTable(table) => self::table(&table, expected),
        Object::ObjectArray(array) => {
            values("ObjectArray", array.len() as u64, |index| Ok(array.get(index as usize)?))
        }
        Object::BatchArray(array) => values("BatchArray", array.len() as u64, |index| {
            Ok(Value::List(array.batch(index as usize)?))
        }),
        Object::ListArray(array) => values("ListArray", array.len(), |row| {
            Ok(array.get(row)?.map_or(Value::None, Value::List))
        }),
        Object::TreeStore(store) => {
            entries("store", tree_keys(&store), expected, |key| Ok(store.get(key)?))
        }
        Object::EmbedStore(store) => {
            entries("embed", embed_keys(&store), expected, |key| Ok(store.get(key)?))
        }
        Object::Carrier(_) => Ok(json!({"reference": object.kind()})),
        other => Ok(json!({"kind": other.kind()})),
    }
}

fn tree_keys(store: &TreeStore) -> Vec<String> {
    // Python lists the groups of a tree. A dict has none.
    let groups = store.groups().filter(|_| !store.is_dict());
    store.keys().chain(groups).map(str::to_owned).collect()
}

fn embed_keys(store: &EmbedStore) -> Vec<String> {
    store.keys().map(str::to_owned).collect()
}

fn entries(
    kind: &str,
    keys: Vec<String>,
    expected: &Json,
    get: impl Fn(&str) -> Result<Object>,
) -> Result<Json> {
    let mut all = Map::new();
    for key in keys {
        let expected = &expected["entries"][&key];
        let found = match expected["kind"].as_str() {
            Some("TreeStore") => json!({"kind": "TreeStore"}),
            Some("table" | "ObjectArray" | "BatchArray" | "ListArray") => {
                container(get(&key)?, expected)?
            }
            // References and computations have the names of their classes.
            Some(class) => json!({"kind": class, "error": get(&key)?.kind()}),
            // A member of a zip file that Python does not list, and that cannot be read here.
            None if expected.is_null() && get(&key).is_err() => continue,
            None if expected.is_null() || !expected["error"].is_null() => Json::Null,
            None => match get(&key)? {
                Object::NDArray(array) => schunk(array.into_schunk())?,
                Object::SChunk(found) => schunk(found)?,
                other => json!({"kind": other.kind()}),
            },
        };
        all.insert(key, found);
    }
    Ok(json!({"kind": kind, "entries": all}))
}

fn values(kind: &str, len: u64, get: impl Fn(u64) -> Result<Value>) -> Result<Json> {
    let values =
        (0..len.min(ROWS)).map(|index| Ok(encoded(&get(index)?))).collect::<Result<Vec<_>>>()?;
    Ok(json!({"kind": kind, "len": len, "values": values}))
}

fn table(table: &CTable, expected: &Json) -> Result<Json> {
    let rows = ..table.nrows().min(ROWS);
    let mut columns = Vec::new();
    for (index, column) in table.columns().iter().enumerate() {
        let expected = &expected["columns"][index];
        let name = column.name();
        if !expected["computed"].is_null() || !expected["error"].is_null() {
            columns.push(expected.clone());
            continue;
        }
        let kind = column.kind().to_string();
        let kind = kind.split('[').next().unwrap_or_default();
        let found: Vec<Json> = table.values(name, rows)?.iter().map(encoded).collect();
        columns.push(json!({"name": name, "kind": kind, "values": found}));
    }
    Ok(json!({"kind": "table", "nrows": table.nrows(), "columns": columns}))
}

/// A value as JSON, as `read.py` encodes it.
fn encoded(value: &Value) -> Json {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let list = |items: &[Value]| items.iter().map(encoded).collect::<Vec<_>>();
    match value {
        Value::None => Json::Null,
        Value::Bool(value) => json!(value),
        Value::Int(number) => match (u64::try_from(*number), i64::try_from(*number)) {
            (Ok(number), _) => json!(number),
            (_, Ok(number)) => json!(number),
            _ => json!(number.to_string()),
        },
        Value::Float(number) => json!(["float", hex(&number.to_le_bytes())]),
        Value::Complex { re, im } => {
            json!(["complex", hex(&[re.to_le_bytes(), im.to_le_bytes()].concat())])
        }
        Value::Str(text) => json!(text),
        Value::Bytes(bytes) => json!(["bytes", hex(bytes)]),
        Value::List(items) => json!(["list", list(items)]),
        Value::Tuple(items) => json!(["tuple", list(items)]),
        Value::Set(items) => {
            let mut items = list(items);
            items.sort_by_key(Json::to_string);
            json!(["set", items])
        }
        Value::Map(pairs) => {
            let pairs = pairs.iter().map(|(key, value)| json!([encoded(key), encoded(value)]));
            json!(["map", pairs.collect::<Vec<_>>()])
        }
        Value::Array(array) => {
            json!(["array", array.dtype().to_string(), array.shape(), hex(array.data())])
        }
        Value::Frame(_) => json!(["frame"]),
        other => json!(["unknown", format!("{other:?}")]),
    }
}
