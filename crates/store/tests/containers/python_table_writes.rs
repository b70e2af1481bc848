//! Random tables that this crate and Python write in turn; after each turn, both read the same.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::common::{FOLDER, Rng, own_process, repeats, run_python};
use crate::python_tables::{PRELUDE, check, encoded, expected, open};
use crate::table_model::Model;
use blosc2::{ErrorKind, Value};
use blosc2_store::{CTable, Data, ItemKind, ItemType, Object, Schema, TreeStore};
use serde_json::{Value as Json, json};

/// Python code that makes random tables, and changes them.
const RANDOM: &str = r#"
import random, sys, zlib

def spec_of(rng, name):
    """A random column: the annotation, the spec, and a default."""
    ints = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
    kind = rng.choice(ints + ["float32", "float64", "complex64", "complex128", "bool", "timestamp", "string", "bytes",
        "utf8", "utf8", "vlstring", "vlbytes", "dictionary", "list", "struct", "object", "ndarray"])
    nullable = rng.random() < 0.5
    kwargs = dict(nullable=nullable)
    sentinel = nullable and rng.random() < 0.4 and kind not in ("complex64", "complex128", "vlstring", "vlbytes",
        "dictionary", "list", "struct", "object")
    if sentinel:
        kwargs["null_storage"] = "sentinel"
    if kind == "timestamp":
        return object, S.timestamp(unit=rng.choice(["s", "ms", "us", "ns"]), **kwargs), 0
    if kind in ("string", "bytes"):
        made = (S.string if kind == "string" else S.bytes)(max_length=rng.randint(1, 12), **kwargs)
        return (str if kind == "string" else bytes), made, ("d" if kind == "string" else b"d")
    if kind in ("utf8", "vlstring"):
        return str, getattr(S, kind)(**kwargs), "dé"
    if kind == "vlbytes":
        return bytes, S.vlbytes(**kwargs), b"\0d"
    if kind == "dictionary":
        return str, S.dictionary(nullable=nullable, ordered=rng.random() < 0.5), "d"
    if kind == "list":
        item, of = rng.choice([(int, S.int64()), (str, S.vlstring()), (list[float], S.list(S.float64()))])
        storage = rng.choice(["batch", "vl"])
        return list[item], S.list(of, nullable=nullable, storage=storage, batch_rows=rng.choice([3, 2048])), dataclasses.MISSING
    if kind == "struct":
        return dict, S.struct({"x": S.int32(), "tags": S.list(S.vlstring())}, nullable=nullable), dataclasses.MISSING
    if kind == "object":
        return object, S.object(nullable=nullable), dataclasses.MISSING
    if kind == "ndarray":
        dtype = rng.choice([np.float32, np.int16, np.bool_, np.uint8])
        return np.ndarray, S.ndarray(rng.choice([(2,), (3, 2)]), dtype=dtype, **kwargs), dataclasses.MISSING
    annotation = bool if kind == "bool" else complex if kind.startswith("c") else float if kind[0] == "f" else int
    if kind in ints and rng.random() < 0.3:
        kwargs.update(ge=0, le=100)
    return annotation, getattr(S, kind)(**kwargs), annotation(1)

def cell(rng, meta):
    kind = meta["kind"]
    if meta.get("nullable") and rng.random() < 0.25:
        # A sentinel is written as such: Python does not convert None in batches of every kind.
        return meta.get("null_value")
    text = lambda n: "".join(rng.choice("aé𝄞z ") for _ in range(rng.randint(0, n)))
    if kind.startswith(("int", "uint")):
        if "le" in meta:
            return rng.randint(max(0, meta.get("ge", 0)), meta["le"])
        info = np.iinfo(kind)
        low, high = max(info.min + 1, meta.get("ge", info.min)), min(info.max - 1, meta.get("lt", info.max) - 1)
        return rng.randint(int(low), int(high))
    if kind == "float32":
        return float(np.float32(rng.random()))
    if kind == "float64":
        return rng.random() if "ge" in meta else rng.choice([0.0, -0.0, float("inf"), -1e300, rng.random()])
    if kind.startswith("complex"):
        return complex(rng.randint(0, 9), 0.5)
    if kind == "bool":
        return rng.random() < 0.5
    if kind == "timestamp":
        return rng.randint(-10**15, 10**15)
    if kind == "string":
        return text(meta["max_length"]).rstrip("\0")
    if kind == "bytes":
        return bytes(rng.randint(1, 250) for _ in range(rng.randint(0, meta["max_length"])))
    if kind in ("utf8", "vlstring"):
        return text(20)
    if kind == "vlbytes":
        return bytes(rng.randint(0, 30))
    if kind == "dictionary":
        return f"wörd {rng.randint(0, 8)}"
    if kind == "list":
        return [cell(rng, meta["item"]) for _ in range(rng.randint(0, 3))]
    if kind == "struct":
        return {field["name"]: cell(rng, field) for field in meta["fields"]}
    if kind == "object":
        return rng.choice([1, "x", 2.5, [1, None], {"k": b"\0"}])
    if kind == "ndarray":
        dtype = np.dtype(meta["dtype_str"])
        high = 2 if dtype == np.bool_ or meta.get("bool_widened_to_uint8") else 100
        return np.array([rng.randrange(high) for _ in range(int(np.prod(meta["item_shape"])))]).astype(dtype).reshape(meta["item_shape"])
    raise ValueError(kind)

def cells(rng, meta, count):
    found = [cell(rng, meta) for _ in range(count)]
    if meta["kind"] == "ndarray" and "null_value" in meta:
        dtype = np.dtype(meta["dtype_str"])
        found = [np.full(meta["item_shape"], meta["null_value"], dtype) if not isinstance(c, np.ndarray) else c for c in found]
    return found

def meta_of(table, name):
    return table.column_schema(name).spec.to_metadata_dict()

def extend(rng, table):
    count = rng.choice([1, 3, 20, 60])
    # Its checks fail on strings that are all null.
    table.extend({name: cells(rng, meta_of(table, name), count) for name in table.col_names}, validate=False)

def in_batches(meta):
    return meta["kind"] in ("list", "vlstring", "vlbytes", "struct", "object", "utf8")

def change(rng, table):
    batches = any(in_batches(meta_of(table, name)) for name in table.col_names)
    for _ in range(rng.randint(1, 4)):
        which = rng.randrange(4)
        if which <= 1 or len(table) < 3:
            extend(rng, table)
        elif which == 2:
            # Python 4.14 puts rows that follow a deleted last row at different places of different columns.
            last = len(table) - 1 if batches else len(table)
            table.delete([k for k in range(last) if rng.random() < 0.2])
        else:
            name = rng.choice(table.col_names)
            meta = meta_of(table, name)
            if meta["kind"] in ("dictionary", "ndarray") or "null_value" in meta:
                continue
            # C-Blosc2 cannot append a chunk after one that Python has replaced by a smaller one.
            if in_batches(meta) and meta["kind"] != "utf8":
                continue
            row = rng.randrange(len(table))
            table[name][[row]] = cells(rng, meta, 1)

def opened(name, mode):
    """Opens a table, and returns what has to be closed, too."""
    if name.endswith(".b2e"):
        with open(name, "rb") as file:
            return b2.ctable_from_cframe(file.read()), None
    if ":" in name:
        path, key = name.split(":")
        store = b2.TreeStore(path, mode=mode)
        return store[key], store
    return b2.CTable.open(name, mode=mode), None

def record(names):
    for name in names:
        table, store = opened(name, "r")
        try:
            expect(name, table)
        except Exception as error:
            raise RuntimeError(f"{name} is not read") from error
        if store is not None:
            store.close()
        elif not name.endswith(".b2e"):
            table.close()
    json.dump(expected, open("expected.json", "w"))

def create(count):
    names = []
    for seed in range(count):
        rng = random.Random(seed)
        fields = []
        for number in range(rng.randint(1, 6)):
            annotation, spec, default = spec_of(rng, f"c{number}")
            kwargs = {} if default is dataclasses.MISSING or rng.random() < 0.5 else dict(default=default)
            if not kwargs:
                kwargs = dict(default=None) if spec.to_metadata_dict().get("nullable") else {}
            fields.append((f"c{number}", annotation, b2.field(spec, **kwargs)))
        # Fields without a default come first.
        fields.sort(key=lambda field: field[2].default is not dataclasses.MISSING)
        row = dataclasses.make_dataclass("Row", fields)
        name = f"p{seed}.b2" + "dz"[seed % 2]
        table = b2.CTable(row, urlpath=name, mode="w", expected_size=rng.choice([1, 50, 1 << 14]))
        for _ in range(rng.randint(0, 3)):
            extend(rng, table)
        if len(table) > 4 and rng.random() < 0.5:
            table.delete([k for k in range(len(table) - 1) if rng.random() < 0.3])
        if rng.random() < 0.3:
            table.vlmeta["author"] = "me"
        table.close()
        names.append(name)
    return names

def changed(names):
    for name in names:
        rng = random.Random(zlib.crc32(name.encode()))
        if name.endswith(".b2e"):
            continue
        table, store = opened(name, "a")
        try:
            change(rng, table)
            table.close()
        except Exception as error:
            raise RuntimeError(f"{name} is not changed: {list(table.schema_dict()['columns'])}") from error
        if store is not None:
            store.close()

names = json.load(open("names.json"))
for command in sys.argv[1:]:
    if command == "create":
        names = create(int(names))
    elif command == "change":
        changed(names)
    else:
        record(names)
"#;

fn python(folder: &Path, names: &Json, commands: &[&str]) -> BTreeMap<String, Json> {
    fs::write(folder.join("names.json"), names.to_string()).unwrap();
    run_python(&[PRELUDE, RANDOM].concat(), folder, commands);
    expected(folder)
}

/// Checks that the rows that Python reads are those of a model.
fn check_model(name: &str, model: &Model, expected: &Json) {
    let columns = expected["columns"].as_array().unwrap();
    assert_eq!(columns.len(), model.columns.len(), "{name}");
    assert_eq!(expected["nrows"].as_u64(), Some(model.rows.len() as u64), "{name}");
    for (number, (made, column)) in model.columns.iter().zip(columns).enumerate() {
        assert_eq!(column["name"].as_str(), Some(made.name.as_str()), "{name}");
        let cells = model.rows.iter().map(|row| encoded(&row[number]));
        let found = column["values"].as_array().unwrap();
        for (row, (cell, found)) in cells.zip(found).enumerate() {
            assert_eq!(*found, cell, "{name}, {made:?}, row {row}");
        }
    }
}

/// Opens a table for changing, and calls a function.
fn edit(folder: &Path, name: &str, change: impl FnOnce(&mut CTable)) {
    let Some((file, key)) = name.split_once(':') else {
        let mut table = CTable::open_rw(folder.join(name)).unwrap();
        change(&mut table);
        return table.finish().unwrap();
    };
    let mut store = TreeStore::open_rw(folder.join(file)).unwrap();
    let Object::CTable(mut table) = store.edit(key).unwrap() else { panic!("{name}") };
    change(&mut table);
    table.finish().unwrap();
    drop(table);
    store.finish().unwrap();
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn tables_that_this_crate_writes_are_read_and_changed_by_python() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut models = BTreeMap::new();
    for seed in 0..repeats(300) {
        let mut rng = Rng(1000 + seed as u64);
        let (mut model, schema) = Model::new(&mut rng);
        let steps = rng.below(8);
        let change = |table: &mut CTable, model: &mut Model, rng: &mut Rng| {
            for _ in 0..steps {
                model.change(table, rng);
            }
            table.finish().unwrap();
        };
        // Python puts such a name into the name of an index file, which is not unpacked from a zip file.
        let has_backslash = model.columns.iter().any(|made| made.name.contains('\\'));
        let name = match if has_backslash { 0 } else { seed % 5 } {
            4 => {
                let mut table = CTable::in_memory(&schema).unwrap();
                change(&mut table, &mut model, &mut rng);
                let name = format!("r{seed}.b2e");
                fs::write(folder.join(&name), table.to_cframe().unwrap()).unwrap();
                name
            }
            3 => {
                let file = format!("r{seed}.b2{}", if seed % 2 == 0 { 'd' } else { 'z' });
                let mut store = TreeStore::create(folder.join(&file)).unwrap();
                let mut table = store.create_table("/group/table", &schema).unwrap();
                change(&mut table, &mut model, &mut rng);
                drop(table);
                store.finish().unwrap();
                format!("{file}:/group/table")
            }
            place => {
                let name = format!("r{seed}.b2{}", if place == 0 { 'd' } else { 'z' });
                let mut table = CTable::create(folder.join(&name), &schema).unwrap();
                change(&mut table, &mut model, &mut rng);
                name
            }
        };
        models.insert(name, (model, rng));
    }
    let names = json!(models.keys().collect::<Vec<_>>());
    let read = python(folder, &names, &["record"]);
    for (name, (model, _)) in &models {
        check_model(name, model, &read[name]);
    }

    // Python adds to them, and then this crate.
    let read = python(folder, &names, &["change", "record"]);
    for (name, (_, rng)) in &mut models {
        if name.ends_with(".b2e") {
            continue;
        }
        check(name, &open(folder, name), &read[name]);
        edit(folder, name, |table| {
            let mut model = Model::of(table);
            for _ in 0..3 {
                model.change(table, rng);
            }
            model.check(table, name);
        });
    }
    let read = python(folder, &names, &["record"]);
    for name in models.keys().filter(|name| !name.ends_with(".b2e")) {
        check(name, &open(folder, name), &read[name]);
    }
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn tables_that_python_writes_are_read_and_changed_by_this_crate() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let read = python(folder, &json!(repeats(300)), &["create", "record"]);
    assert_eq!(read.len(), repeats(300));
    let mut models = BTreeMap::new();
    for (number, (name, expected)) in read.iter().enumerate() {
        check(name, &open(folder, name), expected);
        let mut rng = Rng(number as u64);
        edit(folder, name, |table| {
            let mut model = Model::of(table);
            for _ in 0..1 + rng.below(6) {
                model.change(table, &mut rng);
            }
            model.check(table, name);
            models.insert(name.clone(), model);
        });
    }
    let names = json!(read.keys().collect::<Vec<_>>());
    let read = python(folder, &names, &["record"]);
    for (name, model) in &models {
        check_model(name, model, &read[name]);
    }
    let read = python(folder, &names, &["change", "record"]);
    for (name, expected) in &read {
        check(name, &open(folder, name), expected);
    }
}

/// Python code that creates tables with indexes and computed columns.
const INDEXED: &str = r#"
@dataclasses.dataclass
class Row:
    n: int = b2.field(S.int64(), default=0)
    word: str = b2.field(S.dictionary(), default="")
    text: str = b2.field(S.utf8(), default="")
for path in ["i.b2d", "i.b2z"]:
    table = b2.CTable(Row, urlpath=path, mode="w")
    table.extend(dict(n=np.arange(1000) * 7 % 1000, word=[f"w{k % 5}" for k in range(1000)], text=[f"t{k:04}" for k in range(1000)]))
    for column in ["n", "word", "text"]:
        table.create_index(column, kind=b2.IndexKind.FULL)
    table.add_generated_column("half", values="n / 2", dtype=np.float64)
    table.close()
"#;

const QUERIED: &str = r#"
import sys
for path in ["i.b2d", "i.b2z"]:
    with b2.CTable.open(path, mode="r") as table:
        n, text, word = table["n"][:], list(table["text"][:]), list(table["word"][:])
        assert sorted(n.tolist()) == sorted(json.loads(sys.argv[1])), path
        for low in [-50, 0, 500, 995, 2000]:
            found = sorted(table.where(f"n >= {low}")["n"][:].tolist())
            assert found == sorted(k for k in n.tolist() if k >= low), (path, low)
        for each in ["t0003", "new", "none"]:
            assert len(table.where(table["text"] == each)) == text.count(each), (path, each)
        for each in ["w1", "new", "none"]:
            assert len(table.where(table["word"] == each)) == word.count(each), (path, each)
        assert table.sort_by("n")["n"][:].tolist() == sorted(n.tolist()), path
        assert table["n"].min() == n.min() and table["n"].max() == n.max(), path
        assert len(table) == len(n)
        try:
            half = table["half"][:]
        except ValueError as error:
            assert "stale" in str(error) or "half" not in table.col_names, error
        else:
            assert (half == n / 2).all(), path
"#;

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn python_does_not_answer_from_indexes_that_are_stale() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    run_python(&[PRELUDE, INDEXED].concat(), folder, &[]);
    let mut n: Vec<i64> = (0..1000).map(|n| n * 7 % 1000).collect();
    let query = |n: &[i64]| {
        run_python(&[PRELUDE, QUERIED].concat(), folder, &[&json!(n).to_string()]);
    };
    query(&n);
    let each = |change: &mut dyn FnMut(&mut CTable)| {
        for path in ["i.b2d", "i.b2z"] {
            edit(folder, path, |table| change(table));
        }
    };
    each(&mut |table| {
        assert_eq!(table.delete_rows(100..200).unwrap(), 100);
    });
    n.drain(100..200);
    query(&n);
    each(&mut |table| table.update("n", [0, 5], Data::items(&[-40i64, 3000])).unwrap());
    (n[0], n[5]) = (-40, 3000);
    query(&n);
    each(&mut |table| {
        assert!(table.column("half").unwrap().is_stale());
        let texts = || Data::texts([Some("new"), Some("t0003")]);
        let columns = [("n", Data::items(&[5000i64, -49])), ("word", texts()), ("text", texts())];
        table.append(columns).unwrap();
    });
    n.extend([5000, -49]);
    query(&n);
    each(&mut |table| table.compact().unwrap());
    query(&n);
    each(&mut |table| {
        assert!(table.rename_column("n", "m").is_err(), "another column is computed from it");
        table.drop_column("half").unwrap();
        table.rename_column("n", "m").unwrap();
        table.rename_column("m", "n").unwrap();
    });
    query(&n);
}

/// Whether a part of the table has the mark of a change.
fn is_unfinished(path: &Path) -> bool {
    let read = CTable::open(path).and_then(|table| {
        let names: Vec<_> = table.columns().iter().map(|column| column.name().to_owned()).collect();
        names.iter().try_for_each(|name| table.values(name, ..).map(drop))
    });
    read.is_err_and(|error| error.kind() == ErrorKind::Unfinished)
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn killed_writers_leave_the_old_rows() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let schema = Schema::new()
        .column("n", ItemType::from(ItemKind::Int64).nullable())
        .column("t", ItemKind::Utf8)
        .column("v", ItemKind::VlString)
        .column("w", ItemKind::Dictionary { ordered: false })
        .expected_rows(5);
    let rows = |start: i64| {
        let texts: Vec<_> = (start..start + 10).map(|n| Some(n.to_string())).collect();
        let numbers: Vec<Value> =
            (start..start + 10).map(|n| if n % 3 == 0 { Value::None } else { n.into() }).collect();
        vec![
            ("n", Data::values(numbers)),
            ("t", Data::texts(texts.clone())),
            ("v", Data::texts(texts.clone())),
            ("w", Data::texts(texts)),
        ]
    };
    if let Some(path) = own_process() {
        // Killed by the other process.
        let mut table = CTable::open_rw(path).unwrap();
        for start in (table.nrows() as i64..).step_by(10) {
            table.append(rows(start)).unwrap();
        }
    }
    let mut names = Vec::new();
    let mut rng = Rng(3);
    for round in 0..repeats(100) {
        let name = format!("k{round}.b2d");
        let path = folder.join(&name);
        let mut table = CTable::create(&path, &schema).unwrap();
        table.append(rows(0)).unwrap();
        drop(table);
        let test = "killed_writers_leave_the_old_rows";
        let mut writer = std::process::Command::new(std::env::current_exe().unwrap());
        writer.args([test, "--include-ignored", "--test-threads=1"]).env(FOLDER, &path);
        let mut writer = writer.stdout(std::process::Stdio::null()).spawn().unwrap();
        while CTable::open(&path).map_or(0, |table| table.nrows()) < 20 {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_micros(rng.below(50_000)));
        writer.kill().unwrap();
        writer.wait().unwrap();
        names.push(name);
    }
    for name in &names {
        // Killed between the mark of a change in a file and its end: every program rejects the file until this crate
        // opens it for changing.
        if is_unfinished(&folder.join(name)) {
            edit(folder, name, |_| {});
        }
    }
    let read = python(folder, &json!(names), &["record"]);
    for name in &names {
        let table = open(folder, name);
        let texts: Vec<_> = (0..table.nrows()).map(|n| Some(n.to_string())).collect();
        assert!(
            table.nrows() >= 20 && table.nrows().is_multiple_of(10),
            "{name}: {} rows",
            table.nrows()
        );
        for column in ["t", "v", "w"] {
            assert_eq!(table.texts(column, ..).unwrap(), texts, "{name}");
        }
        let nulls = (0..table.nrows()).map(|n| n % 3 == 0);
        assert!(table.nulls("n", ..).unwrap().into_iter().eq(nulls), "{name}");
        check(name, &table, &read[name]);
        // The next change removes the remains, also for Python.
        edit(folder, name, |_| {});
    }
    let read = python(folder, &json!(names), &["change", "record"]);
    for name in &names {
        check(name, &open(folder, name), &read[name]);
    }
}
