//! `import` and `export` of tables and arrays: CSV, Parquet, Arrow and Zarr files.

#[path = "../cli/common.rs"]
#[expect(unused_imports, reason = "this test uses a part of it")]
mod common;
mod python;
mod zarr;

use std::fs;
use std::path::{Path, PathBuf};

use blosc2::{Dtype, NDArray, RawItems, Value};
use blosc2_store::{CTable, Data, ItemKind, ItemType, Schema, TimeUnit};
use blosc2_testing::Rng;

use crate::common::Folder;

/// Rows of the tables with many columns, and of others: more than a batch.
const FEW: usize = 3_000;
const ROWS: usize = 66_000;

/// A table with a column of each kind with which all formats agree.
fn plain_schema() -> Schema {
    let time = |unit, timezone: Option<&str>| ItemKind::Timestamp {
        unit,
        timezone: timezone.map(str::to_owned),
    };
    let nullable = |kind: ItemKind| ItemType::from(kind).nullable();
    Schema::new()
        .column("bool", ItemKind::Bool)
        .column("int", ItemKind::Int64)
        .column("maybe int", nullable(ItemKind::Int64))
        .column("float", nullable(ItemKind::Float64))
        .column("text", nullable(ItemKind::Utf8))
        .column("s", time(TimeUnit::Seconds, None))
        .column("us", nullable(time(TimeUnit::Microseconds, None)))
        .column("ns", time(TimeUnit::Nanoseconds, Some("+00:00")))
}

/// Columns that CSV files do not have, or not with this type.
fn rich_schema() -> Schema {
    let nullable = |kind: ItemKind| ItemType::from(kind).nullable();
    let fields = vec![
        ("x".to_owned(), nullable(ItemKind::Int32)),
        ("names".to_owned(), nullable(ItemKind::List(Box::new(nullable(ItemKind::VlString))))),
    ];
    plain_schema()
        .column("i1", ItemKind::Int8)
        .column("u8", nullable(ItemKind::UInt64))
        .column("f4", nullable(ItemKind::Float32))
        .column("c16", ItemKind::Complex128)
        .column("fixed", nullable(ItemKind::String { max_length: 12 }))
        .column("vl", nullable(ItemKind::VlString))
        .column("bytes", nullable(ItemKind::VlBytes))
        .column("word", nullable(ItemKind::Dictionary { ordered: false }))
        .column("list", nullable(ItemKind::List(Box::new(nullable(ItemKind::Int16)))))
        .column("struct", nullable(ItemKind::Struct(fields)))
        .column(
            "array",
            ItemKind::NDArray { shape: vec![2, 2], dtype: Dtype::parse("<f4").unwrap() },
        )
}

/// A value of a kind.
fn value(kind: &ItemKind, rng: &mut Rng) -> Value {
    let text = |rng: &mut Rng| {
        let parts = ["", "a", "é", ",", "\"", "\n", "\r", "null", " ", "1"];
        (0..rng.below(4)).map(|_| *rng.pick(&parts)).collect::<String>()
    };
    match kind {
        ItemKind::Bool => (rng.below(2) == 1).into(),
        ItemKind::Int8 => i64::from(rng.next() as i8).into(),
        ItemKind::Int16 => i64::from(rng.next() as i16).into(),
        ItemKind::Int32 => i64::from(rng.next() as i32).into(),
        ItemKind::Int64 => (rng.next() as i64).into(),
        ItemKind::UInt64 => rng.next().into(),
        ItemKind::Float32 => f64::from(rng.next() as f32 / 7.0).into(),
        ItemKind::Float64 => match rng.below(20) {
            0 => f64::INFINITY.into(),
            1 => (-0.0).into(),
            _ => (rng.next() as i64 as f64 / 1e9).into(),
        },
        ItemKind::Complex128 => Value::Complex { re: rng.next() as f64, im: -1.5 },
        ItemKind::Timestamp { .. } => ((rng.next() >> 4) as i64 / 1_000_000_000).into(),
        ItemKind::Dictionary { .. } => (*rng.pick(&["red", "green", ""])).into(),
        ItemKind::VlBytes => Value::Bytes(rng.bytes(3)),
        ItemKind::List(item) => {
            (0..rng.below(3)).map(|_| cell(item, rng)).collect::<Vec<_>>().into_iter().collect()
        }
        ItemKind::Struct(fields) => {
            fields.iter().map(|(name, item)| (name.as_str(), cell(item, rng))).collect()
        }
        _ => text(rng).into(),
    }
}

/// A value or null.
fn cell(item: &ItemType, rng: &mut Rng) -> Value {
    match item.is_nullable() && rng.below(5) == 0 {
        true => Value::None,
        false => value(item.kind(), rng),
    }
}

/// Creates a table with deleted rows.
fn table(path: &Path, schema: &Schema, rows: usize) -> CTable {
    let mut rng = Rng(7);
    let mut table = CTable::create(path, schema).unwrap();
    let columns = schema.columns().map(|(name, item)| {
        let data = match item.kind() {
            ItemKind::NDArray { .. } => {
                let items: Vec<f32> = (0..rows * 4).map(|at| at as f32).collect();
                let bytes: Vec<u8> = items.iter().flat_map(|item| item.to_le_bytes()).collect();
                Data::bytes(Dtype::parse("<f4").unwrap(), bytes)
            }
            _ => Data::values((0..rows).map(|_| cell(item, &mut rng)).collect::<Vec<_>>()),
        };
        (name, data)
    });
    table.append(columns.collect::<Vec<_>>()).unwrap();
    table.delete_rows([1, 5, rows as u64 - 100]).unwrap();
    table.finish().unwrap();
    drop(table);
    CTable::open(path).unwrap()
}

/// Fails if two tables differ in their columns or values.
fn assert_same(found: &CTable, expected: &CTable, what: &str) {
    assert_eq!(found.nrows(), expected.nrows(), "{what}");
    let names = |table: &CTable| -> Vec<String> {
        table.columns().iter().map(|column| column.name().to_owned()).collect()
    };
    assert_eq!(names(found), names(expected), "{what}");
    for column in expected.columns() {
        let name = column.name();
        assert_eq!(found.column(name).unwrap().kind(), column.kind(), "{what}: {name}");
        let (one, two) = (found.values(name, ..).unwrap(), expected.values(name, ..).unwrap());
        if let Some(row) = one.iter().zip(&two).position(|(one, two)| one != two) {
            panic!("{what}: {name}[{row}] is {}, expected {}", one[row], two[row]);
        }
    }
}

#[test]
fn tables_return_from_every_format() {
    let folder = Folder::new();
    let rich = table(&folder.path("rich.b2z"), &rich_schema(), FEW);
    for name in ["a.parquet", "a.arrow", "a.arrows"] {
        folder.good(&["export", "rich.b2z", name]);
        for out in ["a.b2z", "a.b2d"] {
            folder.good(&["import", name, out]);
            assert_same(&CTable::open(folder.path(out)).unwrap(), &rich, name);
            folder.good(&["check", out]);
        }
        fs::remove_file(folder.path("a.b2z")).unwrap();
        fs::remove_dir_all(folder.path("a.b2d")).unwrap();
    }
    let plain = table(&folder.path("plain.b2d"), &plain_schema(), ROWS);
    folder.good(&["export", "plain.b2d", "a.csv"]);
    folder.good(&["import", "a.csv", "a.b2z"]);
    assert_same(&CTable::open(folder.path("a.b2z")).unwrap(), &plain, "CSV");
    // The longest name of a file.
    let long = format!("{}.b2z", "n".repeat(251));
    folder.good(&["import", "a.csv", &long]);
    assert_same(&CTable::open(folder.path(&long)).unwrap(), &plain, "a long name");
    // From a pipe, to stdout.
    let csv = fs::read(folder.path("a.csv")).unwrap();
    let output = folder.piped(&["import", "-", "-", "--format", "csv"], &csv);
    assert!(output.status.success(), "{output:?}");
    fs::write(folder.path("b.b2z"), output.stdout).unwrap();
    assert_same(&CTable::open(folder.path("b.b2z")).unwrap(), &plain, "stdout");
    let parquet = folder.good(&["export", "plain.b2d", "-", "--format", "parquet"]);
    fs::write(folder.path("c"), parquet).unwrap();
    folder.good(&["import", "c", "c.b2z", "--codec", "lz4", "--threads", "2"]);
    assert_same(&CTable::open(folder.path("c.b2z")).unwrap(), &plain, "parquet by its first bytes");
}

#[test]
fn selections_are_exported() {
    let folder = Folder::new();
    let all = table(&folder.path("t.b2z"), &plain_schema(), ROWS);
    let condition = "`maybe int` >= 0 and bool == true";
    folder.good(&["export", "t.b2z", "a.parquet", "--columns", "text,int", "--where", condition]);
    folder.good(&["import", "a.parquet", "a.b2z", "--columns", "text"]);
    let found = CTable::open(folder.path("a.b2z")).unwrap();
    let rows = all.find_where(&condition.parse().unwrap()).unwrap();
    assert!(rows.len() > 1000);
    let zoned =
        |text: &str| all.find_where(&format!("ns < '1970-01-01T00:00:01{text}'").parse().unwrap());
    let plain = zoned("").unwrap();
    assert!(!plain.is_empty() && zoned("Z").unwrap() == plain && zoned("+00:00").unwrap() == plain);
    assert!(zoned("+01:00").is_err());
    assert!(all.find_where(&"s < '1970-01-01T00:00:01Z'".parse().unwrap()).is_err());
    assert_eq!(found.columns().len(), 1);
    assert_eq!(found.values("text", ..).unwrap(), all.values("text", rows).unwrap());
    folder.good(&["export", "t.b2z", "b.arrow", "--slice", "10:65570:7", "--columns", "int"]);
    folder.good(&["import", "b.arrow", "b.b2z"]);
    let found = CTable::open(folder.path("b.b2z")).unwrap();
    let rows: Vec<u64> = (10..65570).step_by(7).collect();
    assert_eq!(found.values("int", ..).unwrap(), all.values("int", rows).unwrap());
    let line = folder.bad(1, &["export", "t.b2z", "c.arrow", "--slice", "::-1"]);
    assert!(line.contains("ascending order"), "{line}");
    let line = folder.bad(1, &["export", "t.b2z", "c.arrow", "--columns", "other"]);
    assert!(line.contains("there is no column `other`; there are `bool`, `int`"), "{line}");
    let line = folder.bad(1, &["import", "a.parquet", "c.b2z", "--columns", "other"]);
    assert!(line.contains("there is no column `other`; there are `text`, `int`"), "{line}");
}

#[test]
fn numbers_are_rounded_to_floats_of_32_bits() {
    let folder = Folder::new();
    let schema = Schema::new().column("x", ItemKind::Float32);
    let mut table = CTable::create(folder.path("t.b2z"), &schema).unwrap();
    let items = [0.1f32, 16_777_216.0, f32::MAX, f32::INFINITY];
    let values: Vec<Value> = items.iter().map(|&item| f64::from(item).into()).collect();
    table.append([("x", Data::values(values))]).unwrap();
    for (condition, expected) in [
        ("x == 0.1", &[0][..]),
        ("x != 0.1", &[1, 2, 3]),
        ("x == 16777217", &[1]),
        ("x < 1e300", &[0, 1, 2]),
        ("x == 1e300", &[]),
    ] {
        let found = table.find_where(&condition.parse().unwrap()).unwrap();
        assert_eq!(found, expected, "{condition}");
    }
}

/// The files of arrays that Python wrote, one for each dtype of the conformance table.
fn arrays() -> Vec<PathBuf> {
    let folder = blosc2_testing::root().join("tests/python_files/4.14.1");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_dtype = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("dtype_"))
    };
    let mut files: Vec<_> = files.filter(is_dtype).collect();
    files.sort();
    assert_eq!(files.len(), 16);
    files
}

fn read(path: &Path) -> (String, Vec<u64>, Vec<u8>) {
    let array = NDArray::open(path).unwrap();
    let dtype = array.dtype().unwrap().to_string();
    (dtype, array.shape().to_vec(), array.read::<RawItems>(..).unwrap().0)
}

#[test]
fn arrays_return_from_every_format() {
    let folder = Folder::new();
    for file in arrays() {
        let file = file.to_str().unwrap();
        let expected = read(Path::new(file));
        folder.good(&["export", file, "a.zarr"]);
        folder.good(&["import", "a.zarr", "a.b2nd"]);
        assert_eq!(read(&folder.path("a.b2nd")), expected, "{file}");
        fs::remove_dir_all(folder.path("a.zarr")).unwrap();
        fs::remove_file(folder.path("a.b2nd")).unwrap();
        for name in ["a.parquet", "a.arrow"] {
            let output = folder.run(&["export", file, name]);
            if !output.status.success() {
                let line = String::from_utf8(output.stderr).unwrap();
                assert!(line.contains("no Arrow type"), "{file}: {line}");
                continue;
            }
            let output = folder.run(&["import", name, "a.b2nd"]);
            if !output.status.success() {
                // Strings have no fixed length in these formats.
                let line = String::from_utf8(output.stderr).unwrap();
                let is_text = expected.0.contains(['S', 'U']);
                assert!(is_text && line.contains("values of different lengths"), "{file}: {line}");
                fs::remove_file(folder.path(name)).unwrap();
                continue;
            }
            let native = Dtype::parse(&expected.0).unwrap().to_native().to_string();
            let found = read(&folder.path("a.b2nd"));
            assert_eq!((&found.0, &found.1), (&native, &expected.1), "{file} {name}");
            fs::remove_file(folder.path("a.b2nd")).unwrap();
            fs::remove_file(folder.path(name)).unwrap();
        }
    }
}

#[test]
fn parts_of_chunks_are_padded() {
    let folder = Folder::new();
    let items: Vec<i32> = (0..5 * 7 * 3).collect();
    for shape in [&[5, 7, 3][..], &[105], &[0, 3], &[]] {
        let len = shape.iter().product::<u64>() as usize;
        let chunks: Vec<u64> = shape.iter().map(|&side| 4.min(side).max(1)).collect();
        let builder = NDArray::builder().chunk_shape(&chunks).target(folder.path("a.b2nd"));
        builder.from_slice(&items[..len], shape).unwrap();
        let expected = read(&folder.path("a.b2nd"));
        folder.good(&["export", "a.b2nd", "a.zarr"]);
        folder.good(&["import", "a.zarr", "b.b2nd"]);
        assert_eq!(read(&folder.path("b.b2nd")), expected, "{shape:?}");
        if shape.len() == 3 {
            folder.good(&["export", "a.b2nd", "part.zarr", "--slice", "1:4"]);
            folder.good(&["import", "part.zarr", "part.b2nd", "--chunks", "2,2,2"]);
            let (_, shape, bytes) = read(&folder.path("part.b2nd"));
            assert_eq!((&shape[..], &bytes[..]), (&[3, 7, 3][..], &expected.2[84..336]));
            // A missing chunk has the fill value.
            fs::remove_file(folder.path("a.zarr/c/0/1/0")).unwrap();
            folder.good(&["import", "a.zarr", "c.b2nd"]);
            let found = folder.good(&["cat", "c.b2nd", "--slice", "0,3:5,0", "--text"]);
            assert_eq!(found, b"[9 0]\n");
        }
        fs::remove_dir_all(folder.path("a.zarr")).unwrap();
        fs::remove_file(folder.path("a.b2nd")).unwrap();
        fs::remove_file(folder.path("b.b2nd")).unwrap();
    }
}

#[test]
fn what_a_format_does_not_have_is_refused() {
    let folder = Folder::new();
    table(&folder.path("rich.b2z"), &rich_schema(), FEW);
    let array = NDArray::from_slice(&[1u8, 2, 3, 4], &[2, 2]).unwrap();
    array.save(folder.path("a.b2nd")).unwrap();
    folder.write("dates.csv", b"a,b\n1,x\n");
    folder.write("name.csv", b"a,\n1,2\n");
    folder.write("bad.csv", b"a,b\n1\n");
    folder.write("quote.csv", b"a,b\n1,\"x\n2,3\n");
    folder.write("bad.parquet", b"PAR1 and nothing else PAR1");
    folder.write("bad.arrow", b"ARROW1\0\0 and nothing else");
    fs::create_dir(folder.path("group.zarr")).unwrap();
    folder.write("group.zarr/zarr.json", br#"{"zarr_format": 3, "node_type": "group"}"#);
    for (status, args, says) in [
        (1, &["export", "rich.b2z", "x.csv"][..], "the column `c16` of complex128 has no notation"),
        (1, &["export", "rich.b2z", "x.npy"], "it is a table, and the format of a table is"),
        (1, &["export", "rich.b2z", "x.zarr"], "it is a table, and the format of a table is"),
        (2, &["export", "rich.b2z", "x.xlsx"], "expected `.npy`, `.csv`, `.parquet`"),
        (2, &["export", "a.b2nd", "x.parquet", "--where", "a == 1"], "require a table"),
        (2, &["export", "a.b2nd", "x.parquet", "--slice", ":,1"], "a part of the first axis"),
        (1, &["export", "a.b2nd", "-", "--format", "zarr"], "which stdout cannot be"),
        (2, &["import", "dates.csv", "x.b2nd"], "cannot write a table to a `.b2nd` file"),
        (2, &["import", "dates.csv", "x.b2z", "--chunks", "3"], "require an array"),
        (1, &["import", "name.csv", "x.b2z"], "has no name in the first line"),
        (1, &["import", "bad.csv", "x.b2z"], "cannot import (bad.csv)"),
        (1, &["import", "bad.parquet", "x.b2z"], "cannot import (bad.parquet)"),
        (1, &["import", "bad.arrow", "x.b2z"], "cannot import (bad.arrow)"),
        (1, &["import", "missing.parquet", "x.b2z"], "no such file"),
        (1, &["import", "group.zarr", "x.b2nd"], "it is a group"),
        (2, &["import", "a.npy", "x.b2nd", "--columns", "a"], "--columns requires"),
        (2, &["import", "dates.csv", "x.b2z", "--columns", "a,b,a"], "names the column `a` twice"),
        (2, &["cat", "rich.b2z", "--columns", "int,int", "--json"], "names the column `int` twice"),
        (1, &["import", "quote.csv", "x.b2z"], "the quote that begins in line 2 has no end"),
    ] {
        let line = folder.bad(status, args);
        assert!(line.contains(says), "{args:?}: {line}");
    }
    // The format of a pipe is named.
    for (bytes, says) in [
        (&b"PAR1 and nothing else"[..], "a Parquet file; `--format parquet` imports it"),
        (b"ARROW1\0\0 and nothing else", "an Arrow file; `--format arrow` imports it"),
        (b"a,b\n1,x\n", "a text file; `--format csv` imports"),
    ] {
        let output = folder.piped(&["import", "-", "x.b2z"], bytes);
        let line = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && line.contains(says), "{line}");
    }
    // An existing file is replaced with --force only, and a directory never.
    folder.write("x.b2z", b"x");
    assert!(folder.bad(1, &["import", "dates.csv", "x.b2z"]).contains("already exists"));
    folder.good(&["import", "dates.csv", "x.b2z", "--force"]);
    folder.good(&["import", "dates.csv", "y"]);
    assert!(folder.bad(1, &["import", "dates.csv", "y", "--force"]).contains("it is a directory"));
    // Of a link, the target is replaced.
    #[cfg(unix)]
    {
        folder.write("target", b"x");
        std::os::unix::fs::symlink("target", folder.path("link")).unwrap();
        folder.good(&["import", "dates.csv", "link", "--force"]);
        assert!(folder.path("link").is_symlink() && !folder.path("target").is_symlink());
        assert_eq!(CTable::open(folder.path("target")).unwrap().nrows(), 1);
    }
}

/// Damaged files are errors, without a panic and without a new file.
#[test]
fn damaged_files_are_errors() {
    let folder = Folder::new();
    let schema = rich_schema();
    let mut small = CTable::create(folder.path("t.b2z"), &schema).unwrap();
    let mut rng = Rng(3);
    let columns = schema.columns().map(|(name, item)| {
        let data = match item.kind() {
            ItemKind::NDArray { .. } => Data::bytes(Dtype::parse("<f4").unwrap(), vec![0; 16 * 20]),
            _ => Data::values((0..20).map(|_| cell(item, &mut rng)).collect::<Vec<_>>()),
        };
        (name, data)
    });
    small.append(columns.collect::<Vec<_>>()).unwrap();
    small.finish().unwrap();
    drop(small);
    for name in ["a.parquet", "a.arrow", "a.arrows"] {
        folder.good(&["export", "t.b2z", name]);
        let good = fs::read(folder.path(name)).unwrap();
        for _ in 0..blosc2_testing::repeats(60) {
            let mut bytes = good.clone();
            match rng.below(4) {
                0 => bytes.truncate(rng.index(good.len())),
                _ => {
                    for _ in 0..=rng.below(3) {
                        let at = rng.index(bytes.len());
                        bytes[at] = rng.next() as u8;
                    }
                }
            }
            folder.write(name, &bytes);
            let output = folder.run(&["import", name, "x.b2z", "--force"]);
            let text = String::from_utf8_lossy(&output.stderr);
            assert!(matches!(output.status.code(), Some(0 | 1)), "{name}: {text}");
            assert!(text.lines().count() < 2 && !text.contains("panicked"), "{name}: {text}");
        }
        folder.write(name, &good);
    }
}
