//! Filters skip blocks by the summaries of columns, and never rows.

mod common;

use std::path::Path;
use std::sync::Arc;

use blosc2_store::{CTable, Data, ItemKind, ItemType, Schema, TimeUnit};
use common::{add, context, number, query, run, text};
use datafusion::datasource::MemTable;
use datafusion::prelude::SessionContext;

#[tokio::test(flavor = "multi_thread")]
async fn a_selective_filter_reads_few_blocks() {
    const ROWS: i64 = 6_000_000;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.b2z");
    let time = ItemKind::Timestamp { unit: TimeUnit::Milliseconds, timezone: None };
    let schema = Schema::new()
        .column("id", ItemKind::Int64)
        .column("time", time)
        .column("price", ItemType::from(ItemKind::Float32).nullable())
        .column("late", ItemKind::Bool);
    let mut table = CTable::create(&path, &schema).unwrap();
    let ids: Vec<i64> = (0..ROWS).collect();
    let times: Vec<i64> = ids.iter().map(|id| id * 1000).collect();
    let prices: Vec<f32> = ids.iter().map(|id| *id as f32).collect();
    let late: Vec<bool> = ids.iter().map(|id| *id >= ROWS - 100).collect();
    // The first quarter has no price.
    let nulls = ids.iter().map(|id| *id < ROWS / 4).collect::<Vec<_>>();
    table
        .append([
            ("id", Data::items(&ids)),
            ("time", Data::items(&times)),
            ("price", Data::items(&prices).nulls(nulls)),
            ("late", Data::items(&late)),
        ])
        .unwrap();
    table.finish().unwrap();

    for partitions in [1, 3] {
        let context = context(partitions);
        add(&context, "t", path.display()).await;
        for (sql, rows, most) in [
            ("SELECT * FROM t WHERE id BETWEEN 1000000 AND 1059999", 60_000, 0.03),
            ("SELECT id FROM t WHERE time < '1970-01-01T16:40:00'", 60_000, 0.03),
            ("SELECT id FROM t WHERE price >= 5980000 AND id < 5990000", 10_000, 0.03),
            ("SELECT id FROM t WHERE id IN (5, 6, 7) OR id = 5999999", 4, 0.03),
            ("SELECT id FROM t WHERE late", 100, 0.03),
            ("SELECT id FROM t WHERE id < 0", 0, 0.0),
            ("SELECT id FROM t WHERE price > -1", ROWS as usize * 3 / 4, 0.77),
            ("SELECT id FROM t WHERE id % 2 = 0", ROWS as usize / 2, 1.0),
        ] {
            let (found, matched, pruned) = run(&context, sql).await;
            assert_eq!(found, rows, "{sql}");
            let share = matched as f64 / (matched + pruned).max(1) as f64;
            assert!(share <= most, "{sql}: {matched} of {} segments", matched + pruned);
        }
        let explained = text(&context, "EXPLAIN ANALYZE SELECT id FROM t WHERE id < 20000").await;
        assert!(explained.contains("segments_pruned"), "{explained}");
        assert!(explained.contains("predicate=id"), "{explained}");
        // The filter of a join or of the first rows is known only while the query runs.
        let sql = "SELECT a.id FROM t a JOIN (VALUES (7), (1000)) b(id) ON a.id = b.id";
        assert_eq!(run(&context, sql).await.0, 2);
        // Without the filter of the first rows, each block is read.
        for (order, expected) in [
            ("id", 0),
            ("price DESC NULLS LAST", ROWS - 1),
            ("price NULLS LAST, time", ROWS / 4),
            ("late DESC, id", ROWS - 100),
        ] {
            let sql = format!("SELECT id, time, price FROM t ORDER BY {order} LIMIT 3");
            let (rows, matched, pruned) = run(&context, &sql).await;
            assert_eq!(rows, 3, "{sql}");
            assert_eq!(number(&context, &sql).await, expected, "{sql}");
            assert!(matched + pruned > 0, "{sql}: the summaries are not read");
        }
    }
}

/// Values that Arrow and Python order in different ways, and nulls that are values.
#[tokio::test(flavor = "multi_thread")]
async fn special_values_are_never_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.b2z");
    let schema = Schema::new()
        .column("f", ItemKind::Float64)
        .column("g", ItemType::from(ItemKind::Float32).nullable())
        .column("u", ItemKind::UInt64)
        .column("b", ItemType::from(ItemKind::Bool).with("null_value", 255))
        .column("n", ItemType::from(ItemKind::Int16).with("null_value", -32768))
        .expected_rows(10);
    let mut table = CTable::create(&path, &schema).unwrap();
    let parts: [&[f64]; 5] = [
        &[0.0, -0.0, 0.0, 0.0],
        &[-0.0; 4],
        &[f64::NAN, -f64::NAN, 1.0, 2.0],
        &[f64::NAN; 4],
        &[f64::INFINITY, f64::NEG_INFINITY, f64::MIN_POSITIVE, -1.0],
    ];
    let mut row = 0u64;
    for part in parts {
        // Equal items in several blocks.
        for _ in 0..10 {
            let len = part.len();
            let narrow: Vec<f32> = part.iter().map(|item| *item as f32).collect();
            let nulls = vec![row.is_multiple_of(3); len];
            let large: Vec<u64> = (0..len as u64).map(|k| u64::MAX - row * 4 - k).collect();
            let value = |null: bool, value: i64| match null {
                true => blosc2::Value::None,
                false => value.into(),
            };
            let bools = (0..len).map(|k| match k % 3 {
                0 => blosc2::Value::None,
                k => blosc2::Value::Bool(k == 1),
            });
            let numbers = (0..len).map(|k| value(k % 2 == 0, k as i64 - 2));
            table
                .append([
                    ("f", Data::items(part)),
                    ("g", Data::items(&narrow).nulls(nulls)),
                    ("u", Data::items(&large)),
                    ("b", Data::values(bools.collect::<Vec<_>>())),
                    ("n", Data::values(numbers.collect::<Vec<_>>())),
                ])
                .unwrap();
            row += 1;
        }
    }
    table.delete_rows([0, 1, 2, 3, 50, 60]).unwrap();
    table.finish().unwrap();
    let batches: Vec<_> = table.record_batches().unwrap().collect::<Result<_, _>>().unwrap();
    let memory = SessionContext::new();
    let whole = MemTable::try_new(batches[0].schema(), vec![batches]).unwrap();
    memory.register_table("t", Arc::new(whole)).unwrap();
    let context = context(2);
    add(&context, "t", path.display()).await;
    let numbers = ["0.0", "-0.0", "'NaN'::double", "'inf'::double", "'-inf'::double", "1.5", "-1"];
    let mut conditions = Vec::new();
    for column in ["f", "g"] {
        for operator in ["<", "<=", "=", "<>", ">", ">="] {
            conditions.extend(numbers.map(|number| format!("{column} {operator} {number}")));
        }
    }
    conditions.extend(
        [
            "u > 18446744073709551515",
            "u <= 18446744073709551450",
            "u = 18446744073709551615",
            "b",
            "NOT b",
            "b IS NULL",
            "b IS NOT NULL",
            "n < 0",
            "n IS NULL",
            "n IS NOT NULL AND n >= 1",
            "g IS NULL",
            "g IS NOT NULL",
            "f IS NOT NULL",
            "f > 0 AND u < 18446744073709551500 OR b",
        ]
        .map(String::from),
    );
    let mut skipped = 0;
    for condition in conditions {
        let sql = format!("SELECT * FROM t WHERE {condition} ORDER BY u");
        let [found, expected] = [text(&context, &sql).await, text(&memory, &sql).await];
        assert!(found == expected, "{sql}\n{found}\n{expected}");
        skipped += run(&context, &sql).await.2;
    }
    assert!(skipped > 100, "{skipped} segments are skipped");
}

/// The filter of the first rows of an order becomes stricter while the rows are read.
#[tokio::test(flavor = "multi_thread")]
async fn the_first_rows_are_those_of_all_rows() {
    const ROWS: u64 = 500_000;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.b2z");
    let schema = Schema::new()
        .column("f", ItemKind::Float64)
        .column("g", ItemType::from(ItemKind::Float32).nullable())
        .column("n", ItemType::from(ItemKind::Int16).with("null_value", -32768))
        .column("u", ItemKind::UInt64)
        .expected_rows(200_000);
    let mut table = CTable::create(&path, &schema).unwrap();
    let mut rng = Rng(7);
    // Runs of rows have one of several ranges of items, so that blocks differ.
    let (mut floats, mut numbers, mut nulls) = (Vec::new(), Vec::new(), Vec::new());
    for row in 0..ROWS {
        let item = rng.below(1000) as f64;
        floats.push(match row / 7000 % 9 {
            0 if item < 3.0 => f64::NAN,
            1 if item < 3.0 => -f64::NAN,
            2 if item < 3.0 => f64::INFINITY,
            3 => -0.0,
            4 => 0.0,
            5 => item - 5000.0,
            _ => item,
        });
        nulls.push(matches!(row / 7000 % 9, 6 | 7) || item < 5.0);
        numbers.push(match rng.below(50) {
            0 => blosc2::Value::None,
            _ => ((row / 9000 % 11 * 1000) as i64 - item as i64).into(),
        });
    }
    let narrow: Vec<f32> = floats.iter().map(|item| *item as f32).collect();
    let unique: Vec<u64> = (0..ROWS).map(|row| row * 7919 % ROWS).collect();
    table
        .append([
            ("f", Data::items(&floats)),
            ("g", Data::items(&narrow).nulls(nulls)),
            ("n", Data::values(numbers)),
            ("u", Data::items(&unique)),
        ])
        .unwrap();
    let deleted: Vec<u64> = (0..ROWS).step_by(1000).chain(100_100..100_900).collect();
    table.delete_rows(&deleted[..]).unwrap();
    table.finish().unwrap();
    let batches: Vec<_> = table.record_batches().unwrap().collect::<Result<_, _>>().unwrap();
    let memory = SessionContext::new();
    let whole = MemTable::try_new(batches[0].schema(), vec![batches]).unwrap();
    memory.register_table("t", Arc::new(whole)).unwrap();
    for partitions in [1, 3] {
        let context = context(partitions);
        add(&context, "t", path.display()).await;
        for column in ["f", "g", "n", "u"] {
            for order in ["", " DESC", " NULLS FIRST", " DESC NULLS LAST"] {
                let limit = 1 + rng.below(30);
                // The last key makes the order total.
                let order = format!("{column}{order}, u DESC LIMIT {limit}");
                let sql = format!("SELECT * FROM t ORDER BY {order}");
                let [found, expected] = [text(&context, &sql).await, text(&memory, &sql).await];
                assert!(found == expected, "{sql}\n{found}\n{expected}");
            }
        }
        for items in [
            "min(f), max(f), min(g), max(g), min(n), max(n), min(u), max(u), count(u)",
            "count(u), count(f), count(g), count(n)",
            "min(u), max(u)",
            // Texts have another order.
            "min(CAST(u AS VARCHAR)), max(CAST(u AS VARCHAR))",
        ] {
            let sql = format!("SELECT {items} FROM t");
            assert_eq!(text(&context, &sql).await, text(&memory, &sql).await, "{sql}");
        }
    }
}

/// A small generator of pseudo-random numbers.
struct Rng(u64);

impl Rng {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % n
    }
}

/// Adds a file as a table, and compares filters with the same rows in memory.
async fn check(path: &Path, rng: &mut Rng, what: &str) -> usize {
    let table = CTable::open(path).unwrap();
    let batches: Vec<_> = table.record_batches().unwrap().collect::<Result<_, _>>().unwrap();
    let context = context(1 + rng.below(3) as usize);
    add(&context, "t", path.display()).await;
    let Some(first) = batches.first() else {
        assert_eq!(number(&context, "SELECT count(*) FROM t WHERE n > 3").await, 0);
        return 0;
    };
    let whole = MemTable::try_new(first.schema(), vec![batches.clone()]).unwrap();
    context.register_table("memory", Arc::new(whole)).unwrap();
    let mut skipped = 0;
    for _ in 0..2 {
        let (low, high) = (rng.below(3000), rng.below(3000));
        let condition = match rng.below(4) {
            0 => format!("n >= {low} AND n < {high}"),
            1 => format!("x < {low}"),
            2 => format!("n > {low} AND x > {high}"),
            _ => format!("n = {low} OR x IS NULL"),
        };
        let of = |name: &str| format!("SELECT n, x FROM {name} WHERE {condition} ORDER BY n, x");
        let [found, expected] =
            [query(&context, &of("t")).await, query(&context, &of("memory")).await];
        let rows = |batches: &[datafusion::arrow::array::RecordBatch]| {
            datafusion::arrow::util::pretty::pretty_format_batches(batches).unwrap().to_string()
        };
        assert!(rows(&found) == rows(&expected), "{what}: {condition}");
        skipped += run(&context, &of("t")).await.2;
    }
    skipped
}

/// Summaries that do not describe the items are never used: after each of 300 changes, with and without `finish`.
#[tokio::test(flavor = "multi_thread")]
async fn stale_summaries_are_never_used() {
    let mut rng = Rng(52);
    let mut skipped = 0;
    for round in 0..10 {
        let folder = tempfile::tempdir().unwrap();
        let (source, path) = (folder.path().join("t.b2d"), folder.path().join("t.b2z"));
        let schema = Schema::new()
            .column("n", ItemKind::Int32)
            .column("x", ItemType::from(ItemKind::Float64).nullable())
            .expected_rows(10);
        let mut table = CTable::create(&source, &schema).unwrap();
        for change in 0..30 {
            let what = format!("round {round}, change {change}");
            let rows = table.nrows();
            match rng.below(5) {
                0 | 1 => {
                    let count = rng.below(60);
                    let start = rng.below(2500) as i32;
                    let numbers: Vec<i32> = (start..start + count as i32).collect();
                    let items: Vec<f64> = (0..count).map(|_| rng.below(3000) as f64).collect();
                    let nulls = (0..count).map(|_| rng.below(5) == 0).collect::<Vec<_>>();
                    let items = Data::items(&items).nulls(nulls);
                    table.append([("n", Data::items(&numbers)), ("x", items)]).unwrap();
                }
                2 if rows > 0 => {
                    let row = rng.below(rows);
                    table.update("n", [row], Data::items(&[rng.below(3000) as i32])).unwrap();
                }
                3 if rows > 0 => {
                    let start = rng.below(rows);
                    table.delete_rows(start..rows.min(start + 1 + rng.below(15))).unwrap();
                }
                4 if rng.below(4) == 0 => table.compact().unwrap(),
                _ => {}
            }
            match rng.below(3) {
                0 => {}
                1 => {
                    if rng.below(2) == 0 {
                        table.rebuild_summary("n").unwrap();
                        table.rebuild_summary("x").unwrap();
                    }
                    table.finish().unwrap();
                }
                _ => {
                    drop(table);
                    table = CTable::open_rw(&source).unwrap();
                }
            }
            let _ = std::fs::remove_file(&path);
            // As the files are now, also without `finish`.
            blosc2_store::TreeStore::open(&source).unwrap().pack(&path).unwrap();
            skipped += check(&path, &mut rng, &what).await;
        }
    }
    assert!(skipped > 500, "{skipped} segments are skipped");
}

/// A table of hours and numbers, in blocks of ten rows.
fn create_hours(path: &Path, numbers: &[i64]) {
    let time = ItemKind::Timestamp { unit: TimeUnit::Microseconds, timezone: None };
    let schema = Schema::new()
        .column("id", ItemKind::Int64)
        .column("time", time)
        .column("n", ItemKind::Int64)
        .expected_rows(10);
    let mut table = CTable::create(path, &schema).unwrap();
    let ids: Vec<i64> = (0..numbers.len() as i64).collect();
    let times: Vec<i64> = ids.iter().map(|id| 1_700_000_000_000_000 + id * 3_600_000_000).collect();
    table
        .append([
            ("id", Data::items(&ids)),
            ("time", Data::items(&times)),
            ("n", Data::items(numbers)),
        ])
        .unwrap();
    table.finish().unwrap();
}

/// The bounds have the types of the file, which can differ from those that the table declares.
#[tokio::test(flavor = "multi_thread")]
async fn converted_columns_are_not_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.b2z");
    create_hours(&path, &(0..100).collect::<Vec<_>>());
    let context = context(1);
    query(&context, "SET datafusion.execution.time_zone = '+10:00'").await;
    for (name, columns) in [
        ("same", ""),
        ("nanoseconds", "(id BIGINT, time TIMESTAMP, n DOUBLE)"),
        ("zone", "(id SMALLINT, time TIMESTAMPTZ, n VARCHAR)"),
    ] {
        let location = path.display();
        let sql = format!(
            "CREATE EXTERNAL TABLE {name} {columns} STORED AS CTABLE LOCATION '{location}'"
        );
        query(&context, &sql).await;
        for condition in ["time >= '2023-11-15T00:00:00'", "id >= 50", "n >= 5", "id IN (1, 2)"] {
            let count = |of: &str| format!("SELECT count(*) FROM {name} WHERE {of}");
            let found = number(&context, &count(condition)).await;
            // DataFusion does not derive bounds from this condition.
            let all = format!("CASE WHEN random() < 2 THEN {condition} ELSE false END");
            assert_eq!(found, number(&context, &count(&all)).await, "{name}: {condition}");
            assert!(found > 0, "{name}: {condition}");
        }
    }
}

/// The name of a directory can have the name of a column in the files.
#[tokio::test(flavor = "multi_thread")]
async fn names_of_directories_are_no_columns_of_files() {
    let folder = tempfile::tempdir().unwrap();
    for year in [2020, 2021] {
        let [tables, arrays] =
            ["t", "a"].map(|name| folder.path().join(name).join(format!("n={year}")));
        std::fs::create_dir_all(&tables).unwrap();
        std::fs::create_dir_all(&arrays).unwrap();
        create_hours(&tables.join("t.b2z"), &[1; 100]);
        let array = blosc2::NDArray::builder().chunk_shape([10]).from_slice(&[1; 100][..], [100]);
        array.unwrap().save(arrays.join("a.b2nd")).unwrap();
    }
    let context = context(2);
    for (name, format, column) in
        [("t", "CTABLE", "id BIGINT"), ("a", "B2ND OPTIONS ('dims' 'n')", "value INT")]
    {
        let (format, options) = format.split_once(' ').unwrap_or((format, ""));
        let location = folder.path().join(name);
        let location = location.display();
        let sql = format!(
            "CREATE EXTERNAL TABLE {name} ({column}, n BIGINT) STORED AS {format} PARTITIONED BY (n) LOCATION '{location}/' {options}"
        );
        query(&context, &sql).await;
        let first = column.split_once(' ').unwrap().0;
        for (condition, rows) in [
            ("n = 2020".to_owned(), 100),
            (format!("n = 2020 OR {first} = -1"), 100),
            (format!("n > 2000 OR {first} < -5"), 200),
            ("n + 0 = 2021".to_owned(), 100),
            ("n < 2000".to_owned(), 0),
        ] {
            let sql = format!("SELECT count(*) FROM {name} WHERE {condition}");
            assert_eq!(number(&context, &sql).await, rows, "{sql}");
        }
        let sql = format!(
            "SELECT count(*) FROM {name} JOIN (VALUES (2020), (2030)) v(k) ON {name}.n = v.k"
        );
        assert_eq!(number(&context, &sql).await, 100);
    }
}

/// A filter that fails for the bounds of deleted rows does not fail.
#[tokio::test(flavor = "multi_thread")]
async fn bounds_are_no_items() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.b2z");
    let mut numbers: Vec<i64> = (0..100).collect();
    (numbers[50], numbers[60]) = (i64::MIN, 1 << 40);
    create_hours(&path, &numbers);
    let mut table = CTable::open_rw(&path).unwrap();
    table.delete_rows([50, 60]).unwrap();
    table.finish().unwrap();
    let context = context(1);
    add(&context, "t", path.display()).await;
    for (condition, rows) in [
        ("CAST(n AS INT) < 10", 10),
        ("arrow_cast(n, 'Int8') > 97.5", 2),
        ("CAST(CAST(n AS INT) AS DOUBLE) < 1.5", 2),
        ("10 / (n - 200) = 0 AND n < 3", 3),
    ] {
        let sql = format!("SELECT count(*) FROM t WHERE {condition}");
        assert_eq!(number(&context, &sql).await, rows, "{sql}");
    }
}
