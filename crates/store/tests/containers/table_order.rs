//! The order of rows by a column: that of Python, with its FULL indexes and without them, and never from a stale index.

use std::fs;
use std::path::Path;

use blosc2::{ErrorKind, Limits, NDArray, OpenOptions, Special, Value};
use blosc2_store::{CTable, Data, ItemKind, ItemType, Object, Schema, SortOrder};
use serde_json::Value as Json;

use crate::common::{Rng, run_python};
use crate::python_tables::PRELUDE;

/// Tables with and without FULL indexes, and the order of their rows.
const ORDER: &str = r#"
import shutil
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
        for ascending in [True, False]:
            order = table.sort_by(column, ascending=ascending, view=True)["id"][:]
            orders[f"{column} {ascending}"] = np.searchsorted(ids, order).tolist()
    for column in ["name", "text"]:
        # `sort_by` reverses equal strings, unlike equal numbers.
        values = table[column][:].tolist()
        orders[f"{column} False"] = sorted(range(len(ids)), key=values.__getitem__, reverse=True)
    found[name] = orders
    table.close()
make("plain.b2d", 3000, lambda k: False, 3000, False)
make("indexed.b2d", 3000, lambda k: False, 3000, True)
make("deleted.b2d", 5000, lambda k: k % 17 == 3 or 800 < k < 1900, 1 << 14, True)
make("deleted.b2z", 5000, lambda k: k % 17 == 3 or k > 4500, 1 << 14, True)
# With a wrong order of an index, which shows its use. `full.positions` also has the places of rows that are deleted or
# only expected.
shutil.copytree("deleted.b2d", "reversed.b2d")
positions = b2.open("reversed.b2d/_indexes/a/full.positions.b2nd", mode="a")
positions[:] = positions[:][::-1].copy()
table = b2.CTable.open("reversed.b2d", mode="r")
table.to_b2z("reversed.b2z")
table.close()
json.dump(found, open("found.json", "w"))
"#;

const COLUMNS: [&str; 10] = ["a", "u", "f", "g", "i", "t", "flag", "name", "text", "word"];

use SortOrder::{Ascending, Descending};

/// Writes the tables with Python. Returns a function of the expected rows of a table in the order of a column.
fn tables(folder: &Path) -> impl Fn(&str, &str, SortOrder) -> Vec<u64> {
    run_python(&[PRELUDE, ORDER].concat(), folder, &[]);
    let found: Json =
        serde_json::from_slice(&fs::read(folder.join("found.json")).unwrap()).unwrap();
    move |table, column, order| {
        let key = format!("{column} {}", if order == Ascending { "True" } else { "False" });
        serde_json::from_value(found[table][key].clone()).unwrap()
    }
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn orders_are_those_of_python_and_indexes_are_used_while_they_are_valid() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let rows = tables(folder);
    let mut rng = Rng(55);
    for name in ["plain.b2d", "indexed.b2d", "deleted.b2d", "deleted.b2z"] {
        let table = CTable::open(folder.join(name)).unwrap();
        for (column, order) in COLUMNS.iter().flat_map(|it| [(it, Ascending), (it, Descending)]) {
            let expected = rows(name, column, order);
            let what = format!("{name}, {column}, {order:?}");
            assert_eq!(table.argsort(column, order, ..).unwrap(), expected, "{what}");
            let len = expected.len() as u64;
            let (one, other) = (rng.below(len), rng.below(len));
            for ranks in [0..10, len - 3..len + 9, one.min(other)..one.max(other)] {
                let part = &expected[ranks.start as usize..ranks.end.min(len) as usize];
                let found = table.argsort(column, order, ranks.clone()).unwrap();
                assert_eq!(found, part, "{what}, {ranks:?}");
            }
        }
    }

    // An index is used, also with deleted rows and in a zip file: a wrong order of it is the result.
    let expected = rows("deleted.b2d", "a", Ascending);
    let reversed: Vec<u64> = expected.iter().rev().copied().collect();
    for name in ["reversed.b2d", "reversed.b2z"] {
        let table = CTable::open(folder.join(name)).unwrap();
        assert_eq!(table.argsort("a", Ascending, ..).unwrap(), reversed, "{name}");
        assert_eq!(table.argsort("a", Ascending, 3..20).unwrap(), reversed[3..20], "{name}");
        // Only the ascending order is in it.
        let descending = rows("deleted.b2d", "a", Descending);
        assert_eq!(table.argsort("a", Descending, ..).unwrap(), descending, "{name}");
    }

    // A change makes it stale, also if it is stored by another handle.
    let mut changed = CTable::open_rw(folder.join("indexed.b2d")).unwrap();
    changed.update("a", [7], Data::items(&[-5000i16])).unwrap();
    assert_eq!(changed.argsort("a", Ascending, ..1).unwrap(), [7]);
    changed.finish().unwrap();
    let mut changed = CTable::open_rw(folder.join("reversed.b2z")).unwrap();
    changed.update("a", [9], Data::items(&[-5000i16])).unwrap();
    changed.finish().unwrap();
    // The same for a change by Python.
    let change = "import blosc2 as b2\nt = b2.CTable.open('reversed.b2d', mode='a')\nt['a'][3] = -6000\nt.close()";
    run_python(change, folder, &[]);
    for (name, first) in [("indexed.b2d", 7), ("reversed.b2z", 9), ("reversed.b2d", 3)] {
        let fresh = CTable::open(folder.join(name)).unwrap();
        let numbers = fresh.read::<i16>("a", ..).unwrap();
        let mut sorted: Vec<u64> = (0..numbers.len() as u64).collect();
        sorted.sort_by_key(|row| numbers[*row as usize]);
        assert_eq!(sorted[0], first, "{name}");
        assert_eq!(fresh.argsort("a", Ascending, ..).unwrap(), sorted, "{name}");
        assert_eq!(fresh.argsort("a", Ascending, ..2).unwrap(), sorted[..2], "{name}");
    }
}

/// Whatever the positions of an index are: the rows are right, and found in time.
#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn damaged_indexes_are_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let rows = tables(folder);
    for (name, len) in [("indexed.b2d", 3000), ("deleted.b2d", 5000)] {
        let path = folder.join(name).join("_indexes/a/full.positions.b2nd");
        let meta = folder.join(name).join("_meta.b2f");
        let (intact, intact_meta) = (fs::read(&path).unwrap(), fs::read(&meta).unwrap());
        let places = NDArray::open(&path).unwrap().read::<Vec<i64>>(..).unwrap();
        let check = |what: &str| {
            let table = CTable::open(folder.join(name)).unwrap();
            let expected = rows(name, "a", Ascending);
            for ranks in [0..2, 0..10, 500..600, 0..len] {
                let found = table.argsort("a", Ascending, ranks.clone()).unwrap();
                let end = expected.len().min(ranks.end as usize);
                assert_eq!(found, expected[ranks.start as usize..end], "{name}, {what}, {ranks:?}");
            }
        };
        let write = |places: &[i64]| {
            fs::remove_file(&path).unwrap();
            NDArray::builder().target(&*path).from_slice(places, places.len() as u64).unwrap();
        };
        check("intact");
        for place in [places[1], -1, places.len() as i64, i64::MAX] {
            write(&[&[place], &places[1..]].concat());
            check("a wrong place");
        }
        // Places that repeat, at the start and behind the first ranks.
        for (from, to) in [(1, 0), (1, 5), (5, 400)] {
            let mut repeated = places.clone();
            repeated[to] = places[from];
            write(&repeated);
            check("a repeated place");
        }
        let reserved = *places.iter().max().unwrap();
        for kept in [0, 3, 1000] {
            let mut repeated = places.clone();
            repeated[kept..].fill(reserved);
            write(&repeated);
            check("a place that repeats to the end");
        }
        write(&[&places[..], &[places.len() as i64]].concat());
        check("one more");
        for start in [1, places.len()] {
            write(&places[start..]);
            check("fewer");
        }
        // Chunks of zeros, and of NaN, whose bytes are places.
        let special = |special, dtype, len: u64| {
            fs::remove_file(&path).unwrap();
            let builder = NDArray::builder().target(&*path).dtype(dtype, 8).chunk_shape(1 << 26);
            builder.special(special, len).unwrap();
        };
        let len = places.len() as u64;
        for len in [len, 1 << 40] {
            special(Special::Zeros, "<i8", len);
            check("zeros");
            special(Special::Nan, "<f8", len);
            check("NaN");
            let mut frame = fs::read(&path).unwrap();
            let at = frame.windows(3).position(|bytes| bytes == b"<f8").unwrap();
            frame[at + 1] = b'i';
            fs::write(&path, frame).unwrap();
            check("the bytes of NaN");
        }
        // The metadata state as many places.
        for len in [1u64 << 21, 1 << 40, 1 << 50] {
            let mut schunk = OpenOptions::new().write(true).open(&*meta).unwrap();
            let mut catalog = schunk.vlmeta().value("index_catalog").unwrap().unwrap();
            *member(member(&mut catalog, "a"), "shape") = Value::List(vec![len.into()]);
            schunk.vlmeta_mut().set_value("index_catalog", &catalog).unwrap();
            drop(schunk);
            check("many places in the metadata");
            special(Special::Zeros, "<i8", len.min(1 << 40));
            check("many zeros");
        }
        fs::write(&meta, &intact_meta).unwrap();
        for end in [0, 20, intact.len() / 2, intact.len() - 1] {
            fs::write(&path, &intact[..end]).unwrap();
            check("cut");
        }
        fs::remove_file(&path).unwrap();
        check("missing");
        fs::write(&path, &intact).unwrap();
        check("intact again");
    }
}

/// The value of a key of a map.
fn member<'a>(map: &'a mut Value, key: &str) -> &'a mut Value {
    let Value::Map(pairs) = map else { panic!("{map:?} is not a map") };
    &mut pairs.iter_mut().find(|(name, _)| name.as_str() == Some(key)).unwrap().1
}

#[test]
fn tables_without_indexes_are_sorted() {
    let schema = Schema::new()
        .column("x", ItemKind::Float32)
        .column("list", ItemKind::List(Box::new(ItemKind::Int8.into())));
    let mut table = CTable::in_memory(&schema).unwrap();
    assert!(table.argsort("x", Ascending, ..).unwrap().is_empty());
    let items = [0.0f32, -0.0, f32::NAN, -1.5, f32::INFINITY, f32::NEG_INFINITY];
    let lists = Value::List(vec![]);
    table.append([("x", Data::items(&items)), ("list", Data::values(vec![lists; 6]))]).unwrap();
    assert_eq!(table.argsort("x", Ascending, ..).unwrap(), [5, 3, 0, 1, 4, 2]);
    assert_eq!(table.argsort("x", Descending, ..).unwrap(), [4, 0, 1, 3, 5, 2]);
    assert_eq!(table.argsort("x", Ascending, 1..=2).unwrap(), [3, 0]);
    assert!(table.argsort("x", Ascending, 6..).unwrap().is_empty());
    let kind = |column| table.argsort(column, Ascending, ..).unwrap_err().kind();
    assert_eq!(kind("list"), ErrorKind::TypeMismatch);
    assert_eq!(kind("none"), ErrorKind::NotFound);
}

/// Columns of each type with an order, in more rows than are kept at once, against a stable sort of their values.
#[test]
fn ranks_of_many_rows_are_those_of_a_stable_sort() {
    const ROWS: usize = 300_000;
    let schema = Schema::new()
        .column("i", ItemType::from(ItemKind::Int64).nullable())
        .column("u", ItemKind::UInt64)
        .column("f", ItemType::from(ItemKind::Float64).nullable())
        .column("text", ItemKind::Utf8)
        .column("word", ItemType::from(ItemKind::Dictionary { ordered: false }).nullable());
    let mut rng = Rng(2);
    let numbers: Vec<i64> = (0..ROWS).map(|_| rng.below(60_000) as i64 - 30_000).collect();
    let extreme = |n: i64| match n {
        -30_000 => i64::MIN,
        29_999 => i64::MAX,
        n => n,
    };
    let ints: Vec<i64> = numbers.iter().map(|n| extreme(*n)).collect();
    let unsigned: Vec<u64> = ints.iter().map(|n| (*n as u64).wrapping_add(1 << 63)).collect();
    let float = |n: &i64| if n % 7 == 0 { f64::NAN } else { *n as f64 / 8.0 };
    let floats: Vec<f64> = numbers.iter().map(float).collect();
    let nulls: Vec<bool> = numbers.iter().map(|n| n % 5 == 1).collect();
    let texts = || numbers.iter().map(|n| Some(format!("{n}")));
    let words = || numbers.iter().map(|n| (n % 3 != 0).then(|| format!("{}", n % 100)));
    let mut table = CTable::in_memory(&schema).unwrap();
    table
        .append([
            ("i", Data::items(&ints).nulls(&nulls[..])),
            ("u", Data::items(&unsigned)),
            ("f", Data::items(&floats).nulls(&nulls[..])),
            ("text", Data::texts(texts())),
            ("word", Data::texts(words())),
        ])
        .unwrap();
    fn expected<K: Ord>(
        order: SortOrder,
        key: impl Fn(usize) -> Option<K>,
        last: impl Fn(usize) -> u8,
    ) -> Vec<u64> {
        let mut rows: Vec<u64> = (0..ROWS as u64).collect();
        rows.sort_by(|one, other| {
            let (one, other) = (*one as usize, *other as usize);
            let keys = key(one).cmp(&key(other));
            let keys = if order == Descending { keys.reverse() } else { keys };
            last(one).cmp(&last(other)).then(keys)
        });
        rows
    }
    let valid = |row: usize| !nulls[row];
    for order in [Ascending, Descending] {
        let float = |row: usize| (valid(row) && !floats[row].is_nan()).then(|| numbers[row]);
        let float_class = |row: usize| if !valid(row) { 2 } else { floats[row].is_nan().into() };
        let texts: Vec<String> = texts().flatten().collect();
        let words: Vec<Option<String>> = words().collect();
        let all = [
            ("i", expected(order, |row| valid(row).then(|| ints[row]), |row| nulls[row].into())),
            ("u", expected(order, |row| Some(unsigned[row]), |_| 0)),
            ("f", expected(order, float, float_class)),
            ("text", expected(order, |row| Some(&texts[row]), |_| 0)),
            ("word", expected(order, |row| words[row].as_ref(), |row| words[row].is_none().into())),
        ];
        for (column, expected) in all {
            assert_eq!(table.argsort(column, order, ..).unwrap(), expected, "{column}, {order:?}");
            for ranks in [0..7, 1000..70_000, 299_900..400_000] {
                let part = &expected[ranks.start..ranks.end.min(ROWS)];
                let found = table.argsort(column, order, ranks.start as u64..ranks.end as u64);
                assert_eq!(found.unwrap(), part, "{column}, {order:?}, {ranks:?}");
            }
        }
    }
}

/// Sorting says how to sort within a limit.
#[test]
fn a_sort_is_limited_and_few_ranks_fit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.b2z");
    let rows = 400_000u64;
    let schema = Schema::new().column("n", ItemKind::Int64).column("text", ItemKind::Utf8);
    let mut table = CTable::create(&path, &schema).unwrap();
    let items: Vec<i64> = (0..rows as i64).map(|n| n * 7919 % rows as i64).collect();
    let texts = items.iter().map(|n| Some(format!("{n:06}")));
    table.append([("n", Data::items(&items)), ("text", Data::texts(texts))]).unwrap();
    table.finish().unwrap();
    let open = |max| match Object::open_with_limits(&path, Limits::default(), Some(max)).unwrap() {
        Object::CTable(table) => table,
        other => panic!("{other:?}"),
    };
    // 24 bytes for each number; twice the rows that are kept, and the values of a part.
    let table = open(24 * rows - 1);
    let error = table.argsort("n", Ascending, ..).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    let message = error.to_string();
    assert!(message.contains("`n`") && message.contains("fewer ranks"), "{message}");
    for column in ["n", "text"] {
        let first = table.argsort(column, Descending, ..1000).unwrap();
        assert_eq!(first.len(), 1000);
        assert!(first.iter().zip((0..rows).rev()).all(|(row, n)| items[*row as usize] == n as i64));
    }
    assert_eq!(open(24 * rows).argsort("n", Ascending, ..).unwrap().len() as u64, rows);
    // Rows are dropped when the memory is full.
    let table = open(1 << 20);
    let first = table.argsort("n", Ascending, ..1000).unwrap();
    assert!(first.iter().zip(0..).all(|(row, n)| items[*row as usize] == n));
    assert_eq!(
        open(24 * rows).argsort("text", Ascending, ..).unwrap_err().kind(),
        ErrorKind::TooLarge
    );
}
