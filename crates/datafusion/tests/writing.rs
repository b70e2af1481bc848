//! `COPY ... TO` and `INSERT INTO` write complete tables, or nothing.

mod common;

use std::path::Path;
use std::sync::Arc;

use blosc2_store::CTable;
use common::{add, context, create, number, query, rows, run, text};
use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::UInt64Type;
use datafusion::prelude::SessionContext;
use object_store::ObjectStoreExt;
use object_store::memory::InMemory;

/// The error of a command.
async fn error(context: &SessionContext, sql: &str) -> String {
    let result = match context.sql(sql).await {
        Ok(frame) => frame.collect().await.map(drop),
        Err(error) => Err(error),
    };
    result.err().unwrap_or_else(|| panic!("{sql}: no error")).to_string()
}

fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn copies_have_the_rows_and_types_of_the_query() {
    let folder = tempfile::tempdir().unwrap();
    create(&folder.path().join("t.b2z"), &rows(30_000), 4096, |row| row.is_deleted());
    let context = context(3);
    add(&context, "t", folder.path().join("t.b2z").display()).await;
    let store = Arc::new(InMemory::new());
    context.register_object_store(&"test://bucket/".parse().unwrap(), store.clone());
    let local = folder.path().join("copy.b2z");
    for location in [local.to_str().unwrap(), "test://bucket/a/copy.b2z"] {
        // Twice: a file is replaced.
        for limit in [10, 1_000_000] {
            let sql = format!("COPY (SELECT * FROM t ORDER BY id LIMIT {limit}) TO '{location}'");
            let found = query(&context, &sql).await;
            let count = found[0].column(0).as_primitive::<UInt64Type>();
            let all = rows(30_000).iter().filter(|row| !row.is_deleted()).count() as u64;
            assert_eq!(count.value(0), all.min(limit), "{location}");
        }
        add(&context, "c", location).await;
        let of = |name: &str| format!("SELECT * FROM {name} ORDER BY id");
        assert!(text(&context, &of("c")).await == text(&context, &of("t")).await, "{location}");
        let [one, other] = [
            context.table("c").await.unwrap().schema().clone(),
            context.table("t").await.unwrap().schema().clone(),
        ];
        assert_eq!(one.as_arrow().fields(), other.as_arrow().fields());
        // The new file has summaries.
        let (found, matched, pruned) = run(&context, "SELECT id FROM c WHERE id < 0").await;
        assert_eq!((found, matched), (0, 0));
        assert!(pruned > 0, "{location}");
        context.sql("DROP TABLE c").await.unwrap();
    }
    let keys = store.get(&"a/copy.b2z".into()).await.unwrap().meta.size;
    assert!(keys > 1000);
    // Expressions, texts of functions, and no rows.
    let path = folder.path().join("made.b2z");
    let copy = async |select: &str| {
        query(&context, &format!("COPY ({select}) TO '{}' STORED AS CTABLE", path.display())).await;
        CTable::open(&path).unwrap()
    };
    let table = copy("SELECT word, count(*) AS n, avg(price) AS mean, upper(word) AS up FROM t GROUP BY word ORDER BY word").await;
    let names: Vec<_> = table.columns().iter().map(|column| column.name()).collect();
    assert_eq!(names, ["word", "n", "mean", "up"]);
    assert_eq!(table.nrows(), 5);
    let table = copy("SELECT id FROM t WHERE id < 0").await;
    assert_eq!((table.nrows(), table.columns().len()), (0, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_inserted_as_new_files() {
    let folder = tempfile::tempdir().unwrap();
    let parts = folder.path().join("parts");
    std::fs::create_dir(&parts).unwrap();
    create(&parts.join("0.b2z"), &rows(100), 4096, |_| false);
    let context = context(3);
    add(&context, "t", format!("{}/", parts.display())).await;
    for round in 1..4 {
        let sql = "INSERT INTO t SELECT id + 100000, price, count, word, text, \"when\", flag, tags FROM t LIMIT 50";
        query(&context, sql).await;
        assert_eq!(number(&context, "SELECT count(*) FROM t").await, 100 + 50 * round);
    }
    let before = files(&parts);
    assert_eq!(before.len(), 4);
    query(&context, "INSERT INTO t SELECT * FROM t WHERE id < 0").await;
    assert_eq!(files(&parts).len(), 4, "no rows, no file");
    let found = error(&context, "INSERT INTO t SELECT 1 / (id - 99), price, count, word, text, \"when\", flag, tags FROM t ORDER BY id").await;
    assert!(found.contains("ivide by zero"), "{found}");
    assert_eq!(files(&parts).len(), 4, "a failed command writes nothing");
    let found = error(&context, "INSERT OVERWRITE t SELECT * FROM t").await;
    assert!(found.contains("Insert Overwrite"), "{found}");
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_copies_leave_the_old_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.b2z");
    create(&path, &rows(1000), 4096, |_| false);
    let old = std::fs::read(&path).unwrap();
    let context = context(2);
    add(&context, "t", path.display()).await;
    let copy = |select: &str| format!("COPY ({select}) TO '{}'", path.display());
    for (select, expected) in [
        ("SELECT 1 / (id - 990) AS x FROM t", "ivide by zero"),
        ("SELECT CAST('2020-01-01' AS DATE) AS day FROM t", "day"),
        ("SELECT CAST(id AS DECIMAL(20, 3)) AS exact FROM t", "exact"),
    ] {
        let found = error(&context, &copy(select)).await;
        assert!(found.contains(expected), "{select}: {found}");
        assert!(std::fs::read(&path).unwrap() == old, "{select}");
    }
    assert_eq!(files(folder.path()), ["t.b2z"]);
    let partitioned = format!(
        "COPY t TO '{}/' STORED AS CTABLE PARTITIONED BY (word)",
        folder.path().join("new").display()
    );
    let found = error(&context, &partitioned).await;
    assert!(found.contains("directory for each value"), "{found}");
    let found =
        error(&context, &format!("{} OPTIONS ('format.level' '3')", copy("SELECT 1"))).await;
    assert!(found.contains("level"), "{found}");
    // A file can be replaced by rows of itself.
    query(&context, &copy("SELECT * FROM t WHERE id < 10")).await;
    assert_eq!(CTable::open(&path).unwrap().nrows(), 10);
}
