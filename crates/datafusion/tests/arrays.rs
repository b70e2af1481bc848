//! Arrays as tables, compared with the same items as rows in memory.

mod common;

use std::path::Path;
use std::sync::Arc;

use blosc2::{NDArray, RawItems};
use blosc2_store::TreeStore;
use common::{context, number, query, run, text};
use datafusion::arrow::array::{
    ArrayRef, AsArray, Float32Array, Float64Array, Int16Array, Int64Array, RecordBatch,
    TimestampMicrosecondArray,
};
use datafusion::datasource::MemTable;
use datafusion::physical_plan::{ExecutionPlanProperties, collect};
use datafusion::prelude::{SessionConfig, SessionContext};

const SHAPE: [u64; 3] = [50, 7, 9];

async fn add(context: &SessionContext, name: &str, path: &Path, options: &str) {
    let location = path.display();
    let sql =
        format!("CREATE EXTERNAL TABLE {name} STORED AS B2ND LOCATION '{location}' {options}");
    context.sql(&sql).await.unwrap();
}

async fn error(context: &SessionContext, path: &Path, options: &str) -> String {
    let location = path.display();
    let sql = format!("CREATE EXTERNAL TABLE x STORED AS B2ND LOCATION '{location}' {options}");
    match context.sql(&sql).await {
        Ok(_) => panic!("{location} {options}: no error"),
        Err(error) => error.to_string(),
    }
}

fn temperature(index: u64) -> f32 {
    match index % 97 {
        5 => f32::NAN,
        other => other as f32 / 4.0 - 10.0,
    }
}

fn set_dims(array: &mut NDArray, dims: &[&str]) {
    array.vlmeta_mut().set_value("dims", &dims.to_vec()).unwrap();
}

/// A store with two arrays of three axes, the coordinates of two of the axes, and arrays of other shapes.
fn create_climate(path: &Path, with_dims: bool) {
    let mut store = TreeStore::create(path).unwrap();
    let items = SHAPE.iter().product::<u64>();
    let temperatures: Vec<f32> = (0..items).map(temperature).collect();
    let rains: Vec<i16> = (0..items).map(|index| (index * 7 % 1000) as i16).collect();
    let days: Vec<i64> = (0..SHAPE[0] as i64).map(|day| (18_000 + day) * 86_400_000_000).collect();
    let latitudes: Vec<f64> = (0..SHAPE[1]).map(|at| 60.0 - 20.0 * at as f64).collect();
    let grid =
        |chunk: [u64; 3], block: [u64; 3]| NDArray::builder().chunk_shape(chunk).block_shape(block);
    let mut arrays = vec![
        (
            "/temperature",
            grid([8, 5, 4], [4, 2, 4]).from_slice(&temperatures, SHAPE).unwrap(),
            vec!["time", "lat", "lon"],
        ),
        (
            "/rain",
            grid([50, 7, 3], [6, 7, 2]).from_slice(&rains, SHAPE).unwrap(),
            vec!["time", "lat", "lon"],
        ),
        (
            "/time",
            NDArray::builder()
                .dtype("<M8[us]", 8)
                .from_slice(RawItems(blosc2::elements::bytes_of(&days).as_ref()), [SHAPE[0]])
                .unwrap(),
            vec!["time"],
        ),
        ("/lat", NDArray::from_slice(&latitudes, [SHAPE[1]]).unwrap(), vec!["lat"]),
        ("/mask", NDArray::builder().full(true, [SHAPE[1], SHAPE[2]]).unwrap(), vec!["lat", "lon"]),
        ("/other", NDArray::from_slice(&[1u8, 2][..], [2]).unwrap(), vec!["other"]),
    ];
    for (key, array, dims) in &mut arrays {
        if with_dims {
            set_dims(array, dims);
        }
        store.insert(key, array.schunk()).unwrap();
    }
    store.finish().unwrap();
}

/// The same rows in memory.
fn climate() -> SessionContext {
    let items = SHAPE.iter().product::<u64>();
    let index = |axis: usize| {
        let inner: u64 = SHAPE[axis + 1..].iter().product();
        move |item: u64| item / inner % SHAPE[axis]
    };
    let (time, lat, lon) = (index(0), index(1), index(2));
    let times = (0..items).map(|item| (18_000 + time(item) as i64) * 86_400_000_000);
    let columns: [(&str, ArrayRef); 5] = [
        ("time", Arc::new(times.map(Some).collect::<TimestampMicrosecondArray>())),
        (
            "lat",
            Arc::new(
                (0..items).map(|item| 60.0 - 20.0 * lat(item) as f64).collect::<Float64Array>(),
            ),
        ),
        ("lon", Arc::new((0..items).map(|item| lon(item) as i64).collect::<Int64Array>())),
        ("rain", Arc::new((0..items).map(|item| (item * 7 % 1000) as i16).collect::<Int16Array>())),
        ("temperature", Arc::new((0..items).map(temperature).collect::<Float32Array>())),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let context = context(2);
    let table = MemTable::try_new(batch.schema(), vec![vec![batch]]).unwrap();
    context.register_table("c", Arc::new(table)).unwrap();
    context
}

const QUERIES: &[&str] = &[
    "SELECT * FROM c ORDER BY time, lat, lon",
    "SELECT temperature FROM c WHERE lat = 20 AND lon = 3 ORDER BY time",
    "SELECT lon, count(*), sum(rain), min(temperature) FROM c WHERE temperature < 5 GROUP BY lon ORDER BY lon",
    "SELECT date_trunc('month', time) AS month, avg(rain) FROM c GROUP BY month ORDER BY month",
    "SELECT date_part('day', time) AS day, lat * 2 AS north, lon % 2 = 0 AS even, max(rain), max(lat) FROM c GROUP BY day, north, even ORDER BY day, north, even",
    "SELECT time + interval '1 hour', -lat, lon / 2, rain * 2, temperature + lat FROM c ORDER BY time, lat, lon",
    "SELECT lat, avg(temperature) FROM c WHERE time >= '2019-05-01' AND time < '2019-05-03' AND NOT isnan(temperature) GROUP BY lat ORDER BY lat",
    "SELECT * FROM c WHERE lat BETWEEN -30 AND 30 AND lon IN (1, 2, 8) AND rain > 900 ORDER BY time, lat, lon",
    "SELECT * FROM c WHERE lat > 0 OR lon = 1 ORDER BY time, lat, lon LIMIT 40",
    "SELECT * FROM c WHERE lat > 1000",
    "SELECT count(*) FROM c WHERE lon % 4 = 1 AND 10 / (lon - 20) < 3",
    "SELECT a.rain FROM c a JOIN (VALUES (1, 40.0), (5, 0.0)) b(lon, lat) ON a.lon = b.lon AND a.lat = b.lat ORDER BY a.rain",
    "SELECT max(time), min(time), count(DISTINCT lat) FROM c",
    "SELECT time, lat, lon, rank() OVER (PARTITION BY lat ORDER BY rain, time, lon) AS r FROM c ORDER BY lat, r LIMIT 30",
    "SELECT count(*) FROM c",
    "SELECT 1 FROM c WHERE lon = 2 AND time = '2019-04-20' LIMIT 5",
    "SELECT rain FROM c WHERE lon IS NULL OR lat IS NOT NULL AND lon = 7 ORDER BY rain LIMIT 9",
];

#[tokio::test(flavor = "multi_thread")]
async fn queries_over_arrays_return_the_same_as_over_rows() {
    let folder = tempfile::tempdir().unwrap();
    let expected = climate();
    for (with_dims, options) in [(true, ""), (false, "OPTIONS ('dims' 'time, lat, lon')")] {
        let path = folder.path().join(format!("{with_dims}.b2z"));
        create_climate(&path, with_dims);
        for partitions in [1, 4] {
            let context = context(partitions);
            add(&context, "c", &path, options).await;
            for sql in QUERIES {
                let [found, expected] = [text(&context, sql).await, text(&expected, sql).await];
                assert!(found == expected, "{partitions} partitions: {sql}\n{found}\n{expected}");
            }
            let plan = text(
                &context,
                "EXPLAIN SELECT date_trunc('month', time), avg(rain) FROM c GROUP BY 1",
            )
            .await;
            let scan = plan.lines().find(|line| line.contains("DataSourceExec")).unwrap();
            assert!(scan.contains("date_trunc(month, time@0)"), "{plan}");
            let (rows, matched, pruned) =
                run(&context, "SELECT * FROM c WHERE lat = 20 AND lon = 3 AND time < '2019-04-14'")
                    .await;
            assert_eq!((rows, matched), (0, 0), "{pruned}");
            let (rows, matched, pruned) =
                run(&context, "SELECT * FROM c WHERE lat = 20 AND lon = 3").await;
            assert_eq!((rows, matched, pruned), (50, 1, 2));
        }
    }
    let context = context(1).enable_url_table();
    let path = folder.path().join("true.b2z");
    assert_eq!(number(&context, &format!("SELECT count(*) FROM '{}'", path.display())).await, 3150);
}

#[tokio::test(flavor = "multi_thread")]
async fn single_arrays_have_indices_as_coordinates() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let context = context(3);
    let save = |array: NDArray, name: &str| array.save(path(name)).unwrap();
    save(
        NDArray::builder()
            .chunk_shape([3, 3])
            .block_shape([2, 2])
            .from_slice(&(0..35u16).collect::<Vec<_>>(), [5, 7])
            .unwrap(),
        "a.b2nd",
    );
    add(&context, "a", &path("a.b2nd"), "").await;
    let sql = "SELECT count(*) FROM a WHERE value = axis_0 * 7 + axis_1";
    assert_eq!(number(&context, sql).await, 35);
    assert_eq!(run(&context, "SELECT * FROM a WHERE axis_0 = 4 AND axis_1 > 5").await, (1, 1, 5));
    add(&context, "named", &path("a.b2nd"), "OPTIONS ('dims' 'y,x')").await;
    assert_eq!(
        number(&context, "SELECT sum(x * value) FROM named WHERE y = 2").await,
        (14..21).zip(0..).map(|(v, x)| v * x).sum::<i64>()
    );
    let found = error(&context, &path("a.b2nd"), "OPTIONS ('dims' 'x')").await;
    assert!(found.contains("`dims` is `x`") && found.contains("[5, 7]"), "{found}");
    let found = error(&context, &path("a.b2nd"), "OPTIONS ('dims' 'x,x')").await;
    assert!(found.contains("two columns have the name `x`"), "{found}");
    let found = error(&context, &path("a.b2nd"), "OPTIONS ('level' '3')").await;
    assert!(found.contains("`level` is no option of B2ND"), "{found}");

    // Other shapes: no items, no axes, one item, big-endian, one axis.
    save(
        NDArray::builder().dtype("<f4", 4).special(blosc2::Special::Zeros, [0, 4]).unwrap(),
        "empty.b2nd",
    );
    save(NDArray::from_slice(&[7i64][..], ()).unwrap(), "scalar.b2nd");
    save(
        NDArray::builder().dtype(">i4", 4).from_slice(RawItems(&[0, 0, 1, 2]), [1, 1]).unwrap(),
        "one.b2nd",
    );
    save(
        NDArray::builder()
            .chunk_shape([1000])
            .from_slice(&(0..10_000i64).collect::<Vec<_>>(), [10_000])
            .unwrap(),
        "long.b2nd",
    );
    for (name, rows) in [("empty", 0), ("scalar", 1), ("one", 1), ("long", 10_000)] {
        add(&context, name, &path(&format!("{name}.b2nd")), "").await;
        assert_eq!(number(&context, &format!("SELECT count(*) FROM {name}")).await, rows);
        assert_eq!(run(&context, &format!("SELECT * FROM {name} WHERE true")).await.0 as i64, rows);
    }
    assert_eq!(number(&context, "SELECT value FROM scalar").await, 7);
    assert_eq!(
        number(&context, "SELECT CAST(value AS BIGINT) FROM one WHERE axis_1 = 0").await,
        258
    );
    assert_eq!(
        number(&context, "SELECT sum(value) FROM long WHERE axis_0 >= 9000").await,
        (9000..10_000).sum::<i64>()
    );
    assert_eq!(run(&context, "SELECT value FROM long WHERE axis_0 >= 9000").await, (1000, 1, 9));
    assert_eq!(run(&context, "SELECT value FROM long LIMIT 10").await.0, 10);

    // Structures: a table of their fields.
    let mut bytes = Vec::new();
    for row in 0..1000i32 {
        bytes.extend(row.to_le_bytes());
        bytes.extend((f64::from(row) / 2.0).to_le_bytes());
    }
    let dtype = "[('id', '<i4'), ('price', '<f8')]";
    save(
        NDArray::builder()
            .dtype(dtype, 12)
            .chunk_shape([300])
            .from_slice(RawItems(&bytes), [1000])
            .unwrap(),
        "s.b2nd",
    );
    add(&context, "s", &path("s.b2nd"), "").await;
    let found = query(&context, "SELECT sum(price), max(id) FROM s WHERE id % 2 = 0").await;
    assert_eq!(
        found[0].column(0).as_primitive::<datafusion::arrow::datatypes::Float64Type>().value(0),
        124_750.0
    );
    let names = query(&context, "SELECT * FROM s LIMIT 1").await;
    assert_eq!(
        names[0].schema().fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>(),
        ["id", "price"]
    );

    // A few bytes that represent very many items.
    let huge = NDArray::builder()
        .dtype("<i2", 2)
        .chunk_shape([1 << 20, 1])
        .block_shape([1 << 16, 1])
        .special(blosc2::Special::Zeros, [1u64 << 40, 3]);
    save(huge.unwrap(), "huge.b2nd");
    add(&context, "huge", &path("huge.b2nd"), "").await;
    assert_eq!(number(&context, "SELECT count(*) FROM huge").await, 3 << 40);
    assert_eq!(run(&context, "SELECT * FROM huge LIMIT 5").await.0, 5);
    let frame = context.sql("SELECT * FROM huge WHERE axis_1 > 5").await.unwrap();
    let stopped =
        tokio::time::timeout(std::time::Duration::from_millis(200), frame.collect()).await;
    assert!(stopped.is_err_and(|_| true), "it ends when it is dropped");

    std::fs::write(path("text.b2nd"), "no array, but long enough to look into").unwrap();
    assert!(error(&context, &path("text.b2nd"), "").await.contains("text.b2nd"));
    common::create(&path("table.b2z"), &common::rows(3), 4096, |_| false);
    let found = error(&context, &path("table.b2z"), "").await;
    assert!(found.contains("expected an array or a store of arrays"), "{found}");
}

/// Many files with the same axes are one table.
#[tokio::test(flavor = "multi_thread")]
async fn several_files_are_one_table() {
    let folder = tempfile::tempdir().unwrap();
    for part in 0..3i64 {
        let items: Vec<i64> = (0..100).map(|item| part * 100 + item).collect();
        let mut array = NDArray::builder().chunk_shape([30]).from_slice(&items, [100]).unwrap();
        set_dims(&mut array, &["step"]);
        array.save(folder.path().join(format!("{part}.b2nd"))).unwrap();
    }
    let context = context(4);
    let location = format!("{}/", folder.path().display());
    context
        .sql(&format!("CREATE EXTERNAL TABLE t STORED AS B2ND LOCATION '{location}'"))
        .await
        .unwrap();
    assert_eq!(number(&context, "SELECT sum(value) FROM t").await, (0..300).sum::<i64>());
    assert_eq!(number(&context, "SELECT sum(value) FROM t WHERE step = 7").await, 7 + 107 + 207);
    let error =
        context.sql("INSERT INTO t VALUES (1, 2)").await.unwrap().collect().await.unwrap_err();
    assert!(error.to_string().contains("STORED AS CTABLE"), "{error}");
}

#[cfg(feature = "proto")]
#[tokio::test(flavor = "multi_thread")]
async fn plans_over_arrays_can_be_sent() {
    use blosc2_datafusion::Blosc2Codec;
    use datafusion_proto::bytes::{
        physical_plan_from_bytes_with_extension_codec, physical_plan_to_bytes_with_extension_codec,
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.b2z");
    create_climate(&path, false);
    let context = context(3);
    add(&context, "c", &path, "OPTIONS ('dims' 'time,lat,lon')").await;
    let sql = "SELECT lon FROM c WHERE lat = 40 AND time < '2019-05-01'";
    let plan = context.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
    let config = SessionConfig::new()
        .set_bool("datafusion.execution.enable_file_stream_work_stealing", false);
    let other = SessionContext::new_with_config(config);
    let bytes =
        physical_plan_to_bytes_with_extension_codec(Arc::clone(&plan), &Blosc2Codec).unwrap();
    let mut rows = 0;
    for partition in 0..plan.output_partitioning().partition_count() {
        let copy =
            physical_plan_from_bytes_with_extension_codec(&bytes, &other.task_ctx(), &Blosc2Codec)
                .unwrap();
        use futures::TryStreamExt;
        let batches: Vec<RecordBatch> =
            copy.execute(partition, other.task_ctx()).unwrap().try_collect().await.unwrap();
        rows += batches.iter().map(|batch| batch.num_rows()).sum::<usize>();
    }
    let expected: usize =
        collect(plan, context.task_ctx()).await.unwrap().iter().map(|batch| batch.num_rows()).sum();
    assert_eq!(rows, expected);
    assert!(rows > 0);
}

/// An expression is not computed for rows after the limit.
#[tokio::test(flavor = "multi_thread")]
async fn expressions_of_rows_after_a_limit_do_not_fail() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.b2nd");
    NDArray::from_slice(&[1i64, 2, 0, 3][..], [4]).unwrap().save(&path).unwrap();
    let context = context(1);
    add(&context, "a", &path, "").await;
    for sql in ["SELECT 6 / value FROM a LIMIT 1", "SELECT 6 / (axis_0 - 3) + 8 FROM a LIMIT 1"] {
        assert_eq!(number(&context, sql).await, 6, "{sql}");
    }
    let all = context.sql("SELECT 6 / value FROM a").await.unwrap().collect().await;
    assert!(all.unwrap_err().to_string().contains("ivide by zero"));
}

#[tokio::test(flavor = "multi_thread")]
async fn special_chunks_that_cannot_match_are_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let builder = NDArray::builder().chunk_shape([100]).block_shape([10]);
    let numbers: Vec<f64> = (0..100).map(f64::from).collect();
    for (name, array) in [
        ("zeros", builder.clone().full(0.0, [100])),
        ("nan", builder.clone().full(f64::NAN, [100])),
        ("one", builder.clone().full(7.5, [100])),
        ("numbers", builder.from_slice(&numbers, [100])),
    ] {
        let array = array.unwrap();
        let special = array.schunk().chunk_info(0).unwrap().special;
        assert_eq!(special.is_some(), name != "numbers", "{name}");
        array.save(folder.path().join(name).with_extension("b2nd")).unwrap();
    }
    let context = context(1);
    add(&context, "a", &folder.path().join(""), "").await;
    for (condition, rows, chunks) in [
        ("value > 5", 294, 3), // NaN is above all numbers
        ("value < 5", 105, 2),
        ("isnan(value)", 100, 2),
        ("value = 7.5 AND axis_0 < 50", 50, 2),
        ("value < 0", 0, 1),
        ("value > axis_0", 108, 4),
    ] {
        let sql = format!("SELECT * FROM a WHERE {condition}");
        assert_eq!(run(&context, &sql).await, (rows, chunks, 4 - chunks), "{condition}");
    }
}
