//! Tables to Parquet and back, compared with the tables, and with what pyarrow reads.

use std::path::Path;
use std::process::Command;

use blosc2::{Dtype, Value};
use blosc2_store::{CTable, Data, ItemKind, ItemType, Schema, TimeUnit};
use parquet_example::{parquet_to_table, table_to_parquet};

fn run_python(script: &str, folder: &Path) {
    let python = std::env::var_os("BLOSC2_TEST_PYTHON").expect(
        "BLOSC2_TEST_PYTHON is the path of a Python with blosc2 and pyarrow; \
         `cargo xtask integrations parquet` sets it",
    );
    let output =
        Command::new(python).args(["-I", "-c", script]).current_dir(folder).output().unwrap();
    let printed =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success(), "Python failed ({}):\n{}", output.status, printed.join("\n"));
}

/// Creates a table of 70,000 rows, and deletes some of them.
fn make(path: &Path) {
    const ROWS: usize = 70_000;
    let names = ["id", "price", "when", "name", "word", "tags", "box"];
    let dtype = Dtype::parse("<f4").unwrap();
    let schema = Schema::new()
        .column("id", ItemKind::Int64)
        .column("price", ItemType::from(ItemKind::Float32).nullable())
        .column(
            "when",
            ItemKind::Timestamp { unit: TimeUnit::Microseconds, timezone: Some("UTC".into()) },
        )
        .column("name", ItemType::from(ItemKind::Utf8).nullable())
        .column("word", ItemType::from(ItemKind::Dictionary { ordered: false }).nullable())
        .column("tags", ItemType::from(ItemKind::List(ItemKind::VlString.into())).nullable())
        .column("box", ItemKind::NDArray { shape: vec![2, 2], dtype })
        .expected_rows(ROWS as u64);
    let mut table = CTable::create(path, &schema).unwrap();
    let ids: Vec<i64> = (0..ROWS as i64).collect();
    let prices: Vec<f32> = ids.iter().map(|&id| id as f32 / 4.0).collect();
    let no_price: Vec<bool> = ids.iter().map(|id| id % 7 == 0).collect();
    let text = |id: &i64| (id % 5 != 0).then(|| format!("näme {}", id % 1000));
    let word = |id: &i64| (id % 3 != 0).then(|| ["red", "green", "blue"][*id as usize % 7 % 3]);
    let tags = |id: &i64| match id % 4 {
        0 => Value::None,
        count => (0..count - 1).map(|tag| format!("tag {tag}")).collect(),
    };
    let boxes: Vec<f32> = (0..4 * ROWS).map(|item| item as f32).collect();
    let data = [
        Data::items(&ids),
        Data::items(&prices).nulls(&no_price[..]),
        Data::items(&ids),
        Data::texts(ids.iter().map(text)),
        Data::texts(ids.iter().map(word)),
        Data::values(ids.iter().map(tags).collect::<Vec<_>>()),
        Data::items(&boxes),
    ];
    table.append(names.into_iter().zip(data)).unwrap();
    let deleted: Vec<u64> = (0..ROWS as u64).filter(|row| row % 11 == 3).collect();
    table.delete_rows(&deleted[..]).unwrap();
    table.finish().unwrap();
}

#[test]
fn a_table_goes_to_parquet_and_back() {
    let folder = tempfile::tempdir().unwrap();
    let [source, file, copy] =
        ["source.b2d", "file.parquet", "copy.b2z"].map(|name| folder.path().join(name));
    make(&source);
    table_to_parquet(&source, &file).unwrap();
    parquet_to_table(&file, &copy).unwrap();
    let [source, copy] = [source, copy].map(|path| CTable::open(path).unwrap());
    assert_eq!(source.nrows(), copy.nrows());
    for (one, other) in source.columns().iter().zip(copy.columns()) {
        assert_eq!((one.name(), one.is_nullable()), (other.name(), other.is_nullable()));
        if one.name() != "tags" {
            // The items of lists are nullable in Arrow.
            assert_eq!(one.kind(), other.kind());
        }
        let [one, other] = [&source, &copy].map(|table| table.values(one.name(), ..).unwrap());
        assert_eq!(one, other);
    }

    // pyarrow reads the same from the file as from the table; its extension type for arrays has other nulls.
    let script = "\
import blosc2 as b2, pyarrow as pa, pyarrow.parquet as pq
found = pq.read_table('file.parquet')
with b2.CTable.open('source.b2d', mode='r') as table:
    expected = table.to_arrow()
for name in expected.column_names:
    one, other = found.column(name).combine_chunks(), expected.column(name).combine_chunks()
    if name == 'box':
        assert one.type.shape == [2, 2], one.type
        one = one.storage
        assert one.to_pylist() == other.to_pylist()
    elif name == 'word':
        assert one.dictionary_decode().equals(other.dictionary_decode())
    else:
        assert one.equals(other), (name, one, other)
";
    run_python(script, folder.path());
}

#[test]
fn a_parquet_file_of_python_becomes_a_table() {
    let folder = tempfile::tempdir().unwrap();
    let script = "\
import pyarrow as pa, pyarrow.parquet as pq
rows = 70_000
table = pa.table({
    'n': pa.array([None if k % 3 == 0 else k for k in range(rows)], pa.int32()),
    's': pa.array([None if k % 4 == 0 else str(k) for k in range(rows)]),
    'd': pa.array([str(k % 10) for k in range(rows)]).dictionary_encode(),
    'l': pa.array([None if k % 5 == 0 else [k, None] for k in range(rows)], pa.list_(pa.int64())),
    'p': pa.array([dict(x=k / 2, y='a') for k in range(rows)]),
})
pq.write_table(table, 'file.parquet')
";
    run_python(script, folder.path());
    parquet_to_table(&folder.path().join("file.parquet"), &folder.path().join("table.b2d"))
        .unwrap();
    let script = "\
import blosc2 as b2, pyarrow.parquet as pq
expected = pq.read_table('file.parquet')
with b2.CTable.open('table.b2d', mode='r') as table:
    found = table.to_arrow()
for name in expected.column_names:
    assert found.column(name).to_pylist() == expected.column(name).to_pylist(), name
";
    run_python(script, folder.path());
}
