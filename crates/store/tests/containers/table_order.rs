//! The order of rows by a column: that of Python, with its FULL indexes and without them, and never from a stale index.

use std::fs;
use std::path::Path;

use blosc2::{ErrorKind, NDArray, OpenOptions};
use blosc2_store::{CTable, Data, ItemKind, Schema};
use serde_json::Value as Json;

use crate::common::{Rng, run_python};
use crate::python_tables::PRELUDE;

/// Tables with and without FULL indexes, and the order of their rows.
const ORDER: &str = r#"
import os
rng = np.random.default_rng(55)

@dataclasses.dataclass
class Row:
    id: int = b2.field(S.int64(), default=0)
    a: int = b2.field(S.int16(), default=0)
    u: int = b2.field(S.uint64(), default=0)
    f: float = b2.field(S.float64(), default=0.0)
    g: float = b2.field(S.float32(nullable=True), default=0.0)
    i: int = b2.field(S.int64(null_value=-2**63), default=0)
    t: object = b2.field(S.timestamp(unit="ms", nullable=True), default=0)
    flag: bool = b2.field(S.bool(), default=False)
    name: str = b2.field(S.string(max_length=4), default="")
    text: str = b2.field(S.utf8(), default="")
    word: str = b2.field(S.dictionary(nullable=True), default="")
COLUMNS = ["a", "u", "f", "g", "i", "t", "flag", "name", "text", "word"]

def rows(count, start=0):
    n = np.arange(start, start + count)
    null = lambda values, of: [None if k % of == 1 else value for k, value in enumerate(values)]
    return dict(
        id=n, a=rng.integers(-99, 99, count), u=rng.integers(2**63 - 50, 2**63 + 50, count, dtype="u8"),
        f=np.where(n % 9 == 4, np.nan, np.where(n % 5 == 2, -0.0, rng.integers(-3, 3, count) / 2)),
        g=null((rng.integers(0, 60, count) / 4).tolist(), 7),
        i=[-2**63 if k % 6 == 1 else int(k * 7 % 300) for k in n], t=null((n * 13 % 700).tolist(), 5), flag=n % 3 == 0,
        name=[["é", "z", "", "ab", "𝄞"][k % 5] for k in n], text=[str(k * 7 % 31) for k in n],
        word=null([f"w{k * 5 % 13}" for k in n], 9))

found = {}
def make(name, count, deleted, size, indexed):
    table = b2.CTable(Row, urlpath=name, mode="w", expected_size=size)
    table.extend(rows(count))
    table.delete([k for k in range(count) if deleted(k)])
    if indexed:
        for column in COLUMNS:
            table.create_index(column, kind=b2.IndexKind.FULL)
    table.close()
    table = b2.CTable.open(name, mode="r")
    # Python sorts the rows itself, without the index.
    table._sorted_positions_from_full_index = lambda *_: None
    ids = table["id"][:]
    orders = {}
    for column in COLUMNS:
        order = table.sort_by(column, view=True)["id"][:]
        orders[column] = np.searchsorted(ids, order).tolist()
    found[name] = orders
    table.close()
make("plain.b2d", 3000, lambda k: False, 3000, False)
make("indexed.b2d", 3000, lambda k: False, 3000, True)
make("deleted.b2d", 5000, lambda k: k % 17 == 3 or 800 < k < 1900, 1 << 14, True)
make("deleted.b2z", 5000, lambda k: k % 17 == 3 or k > 4500, 1 << 14, True)
json.dump(found, open("found.json", "w"))
"#;

const COLUMNS: [&str; 10] = ["a", "u", "f", "g", "i", "t", "flag", "name", "text", "word"];

/// Replaces the positions of an index by others, so that a use of the index is seen.
fn replace(folder: &Path, column: &str, positions: impl Fn(&mut Vec<i64>)) {
    let path = folder.join(format!("indexed.b2d/_indexes/{column}/full.positions.b2nd"));
    let mut array =
        NDArray::from_schunk(OpenOptions::new().write(true).open(&path).unwrap()).unwrap();
    let mut places = array.read::<Vec<i64>>(..).unwrap();
    positions(&mut places);
    array.write(.., &places[..]).unwrap();
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn orders_are_those_of_python_and_indexes_are_used_while_they_are_valid() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    run_python(&[PRELUDE, ORDER].concat(), folder, &[]);
    let found: Json =
        serde_json::from_slice(&fs::read(folder.join("found.json")).unwrap()).unwrap();
    let order = |table: &str, column: &str| -> Vec<u64> {
        serde_json::from_value(found[table][column].clone()).unwrap()
    };
    let mut rng = Rng(55);
    for name in ["plain.b2d", "indexed.b2d", "deleted.b2d", "deleted.b2z"] {
        let table = CTable::open(folder.join(name)).unwrap();
        for column in COLUMNS {
            let expected = order(name, column);
            assert_eq!(table.argsort(column, ..).unwrap(), expected, "{name}, {column}");
            let len = expected.len() as u64;
            let (one, other) = (rng.below(len), rng.below(len));
            for ranks in [0..10, len - 3..len + 9, one.min(other)..one.max(other)] {
                let part = &expected[ranks.start as usize..ranks.end.min(len) as usize];
                assert_eq!(
                    table.argsort(column, ranks.clone()).unwrap(),
                    part,
                    "{name}, {column}, {ranks:?}"
                );
            }
        }
    }

    // The index is used: a wrong order of it is the result.
    let path = folder.join("indexed.b2d");
    let expected = order("indexed.b2d", "a");
    replace(folder, "a", |places| places.reverse());
    let table = CTable::open(&path).unwrap();
    let reversed: Vec<u64> = expected.iter().rev().copied().collect();
    assert_eq!(table.argsort("a", ..).unwrap(), reversed);
    // Damaged indexes are not.
    replace(folder, "u", |places| places[5] = places[6]);
    replace(folder, "f", |places| places[5] = -1);
    replace(folder, "i", |places| places[5] = i64::MAX);
    for column in ["u", "f", "i"] {
        assert_eq!(table.argsort(column, ..).unwrap(), order("indexed.b2d", column), "{column}");
    }

    // A change makes the index stale, also if it is stored by another handle.
    let mut changed = CTable::open_rw(&path).unwrap();
    changed.update("a", [7], Data::items(&[-5000i16])).unwrap();
    assert_eq!(changed.argsort("a", ..1).unwrap(), [7]);
    changed.finish().unwrap();
    let fresh = CTable::open(&path).unwrap();
    let numbers = fresh.read::<i16>("a", ..).unwrap();
    let mut sorted: Vec<u64> = (0..numbers.len() as u64).collect();
    sorted.sort_by_key(|row| numbers[*row as usize]);
    assert_eq!(fresh.argsort("a", ..).unwrap(), sorted);
    assert_eq!(sorted[0], 7);
    // The same for a change by Python.
    run_python(
        "import blosc2 as b2\nt = b2.CTable.open('deleted.b2d', mode='a')\nt['a'][3] = -6000\nt.close()",
        folder,
        &[],
    );
    let table = CTable::open(folder.join("deleted.b2d")).unwrap();
    assert_eq!(table.argsort("a", ..1).unwrap(), [3]);
}

#[test]
fn tables_without_indexes_are_sorted() {
    let schema = Schema::new()
        .column("x", ItemKind::Float32)
        .column("list", ItemKind::List(Box::new(ItemKind::Int8.into())));
    let mut table = CTable::in_memory(&schema).unwrap();
    assert!(table.argsort("x", ..).unwrap().is_empty());
    let items = [0.0f32, -0.0, f32::NAN, -1.5, f32::INFINITY, f32::NEG_INFINITY];
    let lists = blosc2::Value::List(vec![]);
    table.append([("x", Data::items(&items)), ("list", Data::values(vec![lists; 6]))]).unwrap();
    assert_eq!(table.argsort("x", ..).unwrap(), [5, 3, 0, 1, 4, 2]);
    assert_eq!(table.argsort("x", 1..=2).unwrap(), [3, 0]);
    assert!(table.argsort("x", 6..).unwrap().is_empty());
    assert_eq!(table.argsort("list", ..).unwrap_err().kind(), ErrorKind::TypeMismatch);
    assert_eq!(table.argsort("none", ..).unwrap_err().kind(), ErrorKind::NotFound);
}
