//! Frames and tables that are made to harm a reader are errors, in bounded time and memory.

mod common;

use std::path::Path;
use std::time::Duration;

use blosc2::NDArray;
use blosc2_store::{CTable, Data, ItemKind, Schema, TreeStore};
use blosc2_testing::Rng;
use blosc2_testing::mutants::mutate;
use common::{add, context, create, number, rows};
use datafusion::prelude::SessionContext;

/// The longest time of a query, far above that of a damaged file.
const LONGEST: Duration = Duration::from_secs(60);
/// The most memory of the process, in KiB.
const MOST: u64 = 2 << 20;

/// Runs a query. Errors are expected; a panic is not.
async fn run(context: &SessionContext, sql: &str, what: &str) -> bool {
    let run = async {
        match context.sql(sql).await {
            Ok(frame) => frame.collect().await.is_ok(),
            Err(_) => false,
        }
    };
    tokio::time::timeout(LONGEST, run).await.unwrap_or_else(|_| panic!("{what}: {sql}: no end"))
}

fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

/// Runs queries over a file as tables and as arrays, and returns how many have a result.
async fn query(path: &Path, what: &str) -> usize {
    let location = path.display();
    let mut good = 0;
    for format in ["B2ND", "CTABLE"] {
        let context = context(2);
        let create = format!("CREATE EXTERNAL TABLE t STORED AS {format} LOCATION '{location}'");
        if !run(&context, &create, what).await {
            continue;
        }
        for sql in [
            "SELECT count(*) FROM t",
            "SELECT * FROM t LIMIT 1000",
            "SELECT * FROM t WHERE axis_0 = 1 LIMIT 1000",
            "SELECT max(id) FROM t WHERE id > 100 AND word = 'red'",
        ] {
            good += usize::from(run(&context, sql, what).await);
        }
    }
    good
}

fn check_memory() {
    if let Some(peak) = peak_memory() {
        assert!(peak < MOST, "{peak} KiB of memory");
    }
}

/// The frames of the repository that crash an unguarded C-Blosc2, and ten damaged copies of each.
#[tokio::test(flavor = "multi_thread")]
async fn crashing_frames_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("frame.b2nd");
    let frames = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/hostile");
    let (mut count, mut good, mut rng) = (0, 0, Rng(52));
    for kind in ["crashing", "intact"] {
        for file in std::fs::read_dir(frames.join(kind)).unwrap() {
            let file = file.unwrap().path();
            let frame = std::fs::read(&file).unwrap();
            for copy in 0..=10 {
                let mut bytes = frame.clone();
                if copy > 0 {
                    mutate(&mut bytes, &mut rng);
                }
                std::fs::write(&path, bytes).unwrap();
                good += query(&path, &format!("copy {copy} of {}", file.display())).await;
                count += 1;
            }
        }
    }
    assert!(count >= 1140 && good >= 3, "{count} frames, {good} queries are good");
    check_memory();
}

/// Tables with changed bytes, in the list of members, in metadata and in columns.
#[tokio::test(flavor = "multi_thread")]
async fn damaged_tables_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.b2z");
    create(&path, &rows(3000), 2048, |row| row.is_deleted());
    let table = std::fs::read(&path).unwrap();
    assert_eq!(query(&path, "intact").await, 3);
    let (mut good, mut rng) = (0, Rng(53));
    for copy in 0..300 {
        let mut bytes = table.clone();
        // A change near a random place too: `mutate` prefers the ends.
        let at = rng.index(bytes.len() - 200);
        mutate(&mut bytes[at..], &mut rng);
        if copy % 2 == 0 {
            mutate(&mut bytes, &mut rng);
        }
        std::fs::write(&path, bytes).unwrap();
        good += query(&path, &format!("copy {copy}")).await;
    }
    assert!((20..900).contains(&good), "{good} queries are good");
    check_memory();
}

/// A file of a few kilobytes with 2^31 rows.
#[tokio::test(flavor = "multi_thread")]
async fn tables_of_very_many_rows_take_bounded_memory() {
    const ROWS: u64 = 1 << 31;
    let folder = tempfile::tempdir().unwrap();
    let (directory, path) = (folder.path().join("t.b2d"), folder.path().join("t.b2z"));
    let mut table =
        CTable::create(&directory, &Schema::new().column("id", ItemKind::Int64)).unwrap();
    table.append([("id", Data::items(&[1i64]))]).unwrap();
    table.finish().unwrap();
    drop(table);
    std::fs::remove_dir_all(directory.join("_indexes")).unwrap();
    let replace = |array: NDArray, file: &str| {
        std::fs::remove_file(directory.join(file)).unwrap();
        array.save(directory.join(file)).unwrap();
    };
    let grid = || NDArray::builder().chunk_shape([1 << 26]).block_shape([1 << 20]);
    replace(grid().full(7i64, [ROWS]).unwrap(), "_cols/id.b2nd");
    replace(NDArray::builder().full(true, [ROWS]).unwrap(), "_valid_rows.b2nd");
    TreeStore::open(&directory).unwrap().pack(&path).unwrap();
    assert!(path.metadata().unwrap().len() < 1 << 16);
    let context = context(2);
    add(&context, "t", path.display()).await;
    for (sql, expected) in [
        ("SELECT count(*) FROM t", ROWS as i64),
        ("SELECT sum(id) FROM (SELECT id FROM t LIMIT 1000)", 7000),
        ("SELECT count(*) FROM (SELECT id FROM t WHERE id = 7 LIMIT 1000)", 1000),
    ] {
        assert_eq!(number(&context, sql).await, expected, "{sql}");
    }
    check_memory();
}
