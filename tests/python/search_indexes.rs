//! Python's search indexes after changes in Rust: Python's queries and sorts are those of NumPy.

use std::fs;
use std::path::{Path, PathBuf};

use blosc2::{Appender, NDArray, OpenOptions, RawItems, Selection};
use blosc2_store::{Object, TreeStore};
use serde_json::{Value as Json, json};

use crate::common::{Rng, repeats, run_python};

/// Python code that makes arrays with search indexes of every kind, and compares queries with NumPy.
const PYTHON: &str = r#"
import json, sys
import numpy as np
import blosc2

blosc2.set_nthreads(1)

# C-Blosc2 in Python returns the start of the next block if a read starts inside a block and is as long as a block
# (`getitem_takes_the_second_block_for_all` in blosc2/SAFETY.md). Queries read index files like that, for example if as
# many items match as a block has, and then return wrong rows, with or without this project (UPSTREAM.md). Two shorter
# reads are right.
read_span = blosc2.NDArray.get_1d_span_numpy

def read_span_in_blocks(array, out, chunk, start, count):
    block = array.blocks[0]
    first = block - start % block if count == block else count
    read_span(array, out[:first], chunk, start, first)
    if first < count:
        read_span(array, out[first:], chunk, start + first, count - first)
    return out

blosc2.NDArray.get_1d_span_numpy = read_span_in_blocks

KINDS = ["FULL", "SUMMARY", "BUCKET", "PARTIAL", "OPSI"]

def opened(job, mode):
    """The array, and the store that has to be closed."""
    if job["form"] in ("tree", "zip"):
        store = blosc2.TreeStore(job["path"], mode=mode)
        return store["/g/a"], store
    return blosc2.open(job["path"], mode=mode), None

def close(store):
    if store is not None:
        store.close()

def make(number, job):
    rng = np.random.default_rng(number)
    size, kind = job["size"], getattr(blosc2.IndexKind, job["kind"])
    grid = dict(chunks=(100,), blocks=(25,))
    dtype = np.dtype([("k", "<i4"), ("v", "<f8")]) if job["form"] == "fields" else np.dtype(job["dtype"])
    x = np.zeros(size, dtype)
    if dtype.fields:
        x["k"], x["v"] = rng.integers(0, 1000, size), rng.integers(0, 1000, size)
    else:
        x[:] = rng.integers(0, 1000, size).astype(dtype)
    if job["form"] in ("tree", "zip"):
        store = blosc2.TreeStore(job["path"], mode="w")
        store["/g/a"] = blosc2.asarray(x, **grid)
        store["/other"] = np.arange(3)
        array = store["/g/a"]
    else:
        store = None
        array = blosc2.asarray(x, urlpath=job["path"], mode="w", contiguous=job["form"] != "directory", **grid)
    if dtype.fields:
        array.create_index("k", kind=kind)
        array.create_index("v", kind=blosc2.IndexKind.BUCKET)
        array.create_index(expression="k + 1", operands=array.fields, kind=blosc2.IndexKind.FULL)
    else:
        array.create_index(kind=kind)
    close(store)

def where(form, expression, operands, array, x):
    lazy = blosc2.lazyexpr(expression, operands)
    if form in ("directory", "zip"):
        # Python cannot gather the items of such arrays, with or without an index.
        return x[lazy.compute()[:]]
    return lazy.where(array).compute()[:]

def query(array, form, what):
    x = array[:]
    fields = x.dtype.fields
    key = x["k"] if fields else x
    operands = array.fields if fields else {"k": array}
    for low, high in [(500, 2000), (100, 120), (990, 990), (2000, 3000)]:
        expected = x[(key >= low) & (key < high)]
        found = where(form, f"(k >= {low}) & (k < {high})", operands, array, x)
        assert np.array_equal(np.sort(found), np.sort(expected)), (what, low, high, found, expected)
    above = where(form, "k > 700", operands, array, x)
    assert np.array_equal(np.sort(above), np.sort(x[key > 700])), what
    if fields:
        found = where(form, "v < 300", operands, array, x)
        assert np.array_equal(np.sort(found), np.sort(x[x["v"] < 300])), what
        found = where(form, "k + 1 > 900", operands, array, x)
        assert np.array_equal(np.sort(found), np.sort(x[key + 1 > 900])), what
    order = "k" if fields else None
    positions = np.argsort(key, kind="stable")
    found = blosc2.argsort(array, order=order)[:]
    if fields:
        # NumPy orders rows with the same key by their other fields, an index of Python by their positions.
        assert np.array_equal(np.sort(found), np.arange(len(x))) and np.array_equal(key[found], key[positions]), what
        assert np.array_equal(blosc2.sort(array, order="k")[:]["k"], key[positions]), what
    else:
        assert np.array_equal(found, positions), what
    try:
        found = np.array(list(array.iter_sorted(order=order)), dtype=x.dtype)
    except ValueError as error:
        assert "full index" in str(error), error
    else:
        assert np.array_equal(found, x[positions]), what

def main():
    round, first = sys.argv[1], int(sys.argv[2])
    for number, job in list(enumerate(json.load(open("jobs.json"))))[first : first + 25]:
        form, what = job["form"], (round, number, job)
        is_rebuilt = job["rebuild"] and form != "zip"
        if round == "make":
            make(number, job)
        elif round == "rebuild" and is_rebuilt:
            array, store = opened(job, "a")
            for index in array.indexes:
                array.rebuild_index(name=index.name)
            close(store)
        elif round == "changed" or round == "rebuilt" and is_rebuilt:
            array, store = opened(job, "r")
            count = 0 if form == "zip" else 3 if form == "fields" else 1
            stale = [index.stale for index in array.indexes]
            assert stale == [round == "changed"] * count, (what, stale)
            query(array, form, what)
            close(store)
            if "copy" in job:
                query(blosc2.open(job["copy"], mode="r"), "file", what)

main()
"#;

const FORMS: [&str; 5] = ["file", "directory", "fields", "tree", "zip"];
const KINDS: [&str; 5] = ["FULL", "SUMMARY", "BUCKET", "PARTIAL", "OPSI"];
const DTYPES: [&str; 5] = ["<i8", "<i4", "<u2", "<f8", "<f4"];

/// Returns the bytes of `count` items of small numbers.
fn items(dtype: &str, count: u64, rng: &mut Rng) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..count {
        let number = rng.below(1000) as u16;
        match dtype {
            "<i8" => bytes.extend(i64::from(number).to_le_bytes()),
            "<i4" => bytes.extend(i32::from(number).to_le_bytes()),
            "<u2" => bytes.extend(number.to_le_bytes()),
            "<f8" => bytes.extend(f64::from(number).to_le_bytes()),
            "<f4" => bytes.extend(f32::from(number).to_le_bytes()),
            _ => {
                bytes.extend(i32::from(number).to_le_bytes());
                bytes.extend((rng.below(1000) as f64).to_le_bytes());
            }
        }
    }
    bytes
}

/// Makes one random change of an array of at least one item.
fn change(array: &mut NDArray, dtype: &str, rng: &mut Rng) -> blosc2::Result<()> {
    let len = array.len();
    let at = rng.below(len);
    let count = 1 + rng.below((len - at).min(150));
    let has_fields = dtype == "fields";
    match rng.below(if has_fields { 13 } else { 12 }) {
        0 => array.write(at..at + count, RawItems(&items(dtype, count, rng))),
        1 => {
            let points: Vec<[u64; 1]> = (0..1 + rng.below(9)).map(|_| [rng.below(len)]).collect();
            array.write(
                Selection::points(&points),
                RawItems(&items(dtype, points.len() as u64, rng)),
            )
        }
        2 => {
            let mask: Vec<bool> = (0..len).map(|index| index == at || rng.below(20) == 0).collect();
            let set = mask.iter().filter(|set| **set).count() as u64;
            array.write(Selection::mask(&mask), RawItems(&items(dtype, set, rng)))
        }
        3 => array.write(at..at + count, RawItems(&items(dtype, 1, rng))),
        4 => array.resize([(len + 2 * rng.below(100)).saturating_sub(100).max(1)]),
        5 if len > count => array.delete(0, at..at + count),
        6 => array.append(0, RawItems(&items(dtype, count, rng))),
        7 => {
            // The same shape afterwards.
            array.delete(0, len - count..len)?;
            array.append(0, RawItems(&items(dtype, count, rng)))
        }
        8 => array.insert(0, at, RawItems(&items(dtype, count, rng))),
        9 => array.transaction(|array| {
            array.write(at..at + count, RawItems(&items(dtype, count, rng)))?;
            array.append(0, RawItems(&items(dtype, 1, rng)))
        }),
        10 => {
            let mut appender = Appender::new(array, 0)?;
            for _ in 0..3 {
                appender.append(RawItems(&items(dtype, 40, rng)))?;
            }
            appender.finish().map(drop)
        }
        12 => {
            let numbers: Vec<i32> = (0..count).map(|_| rng.below(1000) as i32).collect();
            array.write(Selection::from(at..at + count).field("k"), &numbers)
        }
        _ => array.write(at..at + 1, RawItems(&items(dtype, 1, rng))),
    }
}

fn change_chunks(path: &Path, rng: &mut Rng) {
    let mut schunk = OpenOptions::new().write(true).open(path).unwrap();
    let count = schunk.nchunks();
    let chunk = schunk.chunk(rng.index(count)).unwrap();
    schunk.replace(rng.index(count), &chunk).unwrap();
}

fn change_in_turn(path: &Path, form: &str, dtype: &str, copy: Option<&Path>, rng: &mut Rng) {
    let times = 1 + rng.below(4);
    if form == "tree" || form == "zip" {
        let mut store = TreeStore::open_rw(path).unwrap();
        let Object::NDArray(mut array) = store.edit("/g/a").unwrap() else { panic!() };
        (0..times).for_each(|_| change(&mut array, dtype, rng).unwrap());
        drop(array);
        store.finish().unwrap();
        return;
    }
    if let Some(copy) = copy {
        let _ = fs::remove_file(copy);
        NDArray::open(path).unwrap().save(copy).unwrap();
    }
    if rng.below(4) == 0 {
        return change_chunks(path, rng);
    }
    let mut array = NDArray::open_rw(path).unwrap();
    (0..times).for_each(|_| change(&mut array, dtype, rng).unwrap());
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn python_queries_equal_numpy_after_changes() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // Each form with each kind of index at least once.
    let count = repeats(300).max(25);
    let jobs = (0..count).map(|number| {
        let mut rng = Rng(number as u64);
        let form = FORMS[number % 5];
        let ending = ["b2nd", "b2nd", "b2nd", "b2d", "b2z"][number % 5];
        let mut job = json!({
            "form": form, "path": format!("{number}.{ending}"), "kind": KINDS[number / 5 % 5],
            "dtype": rng.pick(&DTYPES), "size": 150 + rng.below(600), "rebuild": rng.below(3) > 0,
        });
        if number % 5 < 3 && rng.below(3) == 0 {
            job["copy"] = format!("{number}.copy.b2nd").into();
        }
        job
    });
    let jobs: Vec<Json> = jobs.collect();
    fs::write(folder.join("jobs.json"), serde_json::to_string(&jobs).unwrap()).unwrap();
    // Each in its own process, because a process of Python keeps the indexes and files that it has read, and searches
    // all of them in each query.
    let run = |round| {
        for first in (0..count).step_by(25) {
            run_python(PYTHON, folder, &[round, &first.to_string()]);
        }
    };
    run("make");
    for turn in 1..=2 {
        for (number, job) in jobs.iter().enumerate() {
            let mut rng = Rng(1000 * turn + number as u64);
            let text = |name: &str| job[name].as_str();
            let form = text("form").unwrap();
            let dtype = if form == "fields" { form } else { text("dtype").unwrap() };
            let copy: Option<PathBuf> = text("copy").map(|name| folder.join(name));
            let path = folder.join(text("path").unwrap());
            change_in_turn(&path, form, dtype, copy.as_deref(), &mut rng);
        }
        ["changed", "rebuild", "rebuilt"].into_iter().for_each(run);
    }
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn python_does_not_search_copies_by_the_indexes_of_the_original() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let python = |script: &str| {
        let start = "import blosc2, numpy as np, os\nx = np.arange(2000)[::-1]\nkind = blosc2.IndexKind.FULL\n";
        run_python(&[start, script].concat(), folder, &[])
    };
    python(
        r#"
a = blosc2.asarray(x, urlpath="a.b2nd", chunks=(200,), blocks=(50,))
a.create_index(kind=kind)
with blosc2.TreeStore("t.b2d", mode="w") as t:
    t["/g/a"] = blosc2.asarray(x, chunks=(200,), blocks=(50,))
    t["/g/a"].create_index(kind=kind)
"#,
    );
    let array = NDArray::open(folder.join("a.b2nd")).unwrap();
    array.save(folder.join("copy.b2nd")).unwrap();
    NDArray::builder().target(folder.join("other.b2nd")).copy(&array).unwrap();
    let store = TreeStore::open(folder.join("t.b2d")).unwrap();
    store.pack(folder.join("packed.b2z")).unwrap();
    store.unpack(folder.join("copied.b2d")).unwrap();
    let packed = TreeStore::open(folder.join("packed.b2z")).unwrap();
    packed.pack(folder.join("again.b2z")).unwrap();
    packed.unpack(folder.join("unpacked.b2d")).unwrap();
    let mut new = TreeStore::create(folder.join("new.b2d")).unwrap();
    new.insert("/g/a", array.schunk()).unwrap();
    new.finish().unwrap();
    drop((array, store, packed, new));
    // The originals get other items, and new indexes in the same files.
    python(
        r#"
a = blosc2.open("a.b2nd", mode="a")
a[:] = x[::-1] + 10_000
a.rebuild_index()
with blosc2.TreeStore("t.b2d", mode="a") as t:
    a = t["/g/a"]
    a[:] = x[::-1] + 10_000
    a.rebuild_index()
"#,
    );
    python(
        r#"
def check(array, x, name):
    assert np.array_equal(blosc2.argsort(array)[:], np.argsort(x)), name
    # Python cannot gather the items of an array in a zip file.
    if not name.endswith(".b2z"):
        found = blosc2.lazyexpr("a >= 1500", {"a": array}).where(array).compute()[:]
        assert np.array_equal(np.sort(found), np.sort(x[x >= 1500])), (name, found)
check(blosc2.open("a.b2nd"), x[::-1] + 10_000, "a.b2nd")
for name in ["copy.b2nd", "other.b2nd"]:
    check(blosc2.open(name), x, name)
for name in ["packed.b2z", "copied.b2d", "again.b2z", "unpacked.b2d", "new.b2d"]:
    with blosc2.TreeStore(name, mode="r") as t:
        array = t["/g/a"]
        assert "blosc2_indexes" not in array.schunk.vlmeta, name
        check(array, x, name)
"#,
    );
}
