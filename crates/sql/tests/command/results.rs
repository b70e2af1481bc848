//! The formats of results, and new files.

use std::fs::{self, File};
use std::process::Stdio;

use blosc2_store::arrow::ReadOptions;
use blosc2_store::{CTable, TreeStore};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::compute::{cast, concat_batches};
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::ipc::reader::FileReader;
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::json;

use crate::common::Folder;

/// All kinds of values.
const VALUES: &str = "SELECT 9007199254740993 AS i, 0.1::double AS f, 'NaN'::double AS nan, 'a,\"b' AS t, \
    NULL::bigint AS n, true AS b, arrow_cast('2024-02-29T01:02:03.5', 'Timestamp(Millisecond, None)') AS w, \
    ['x', NULL] AS l, 'inf'::double AS inf";

fn read(folder: &Folder, name: &str) -> RecordBatch {
    let file = || File::open(folder.path(name)).unwrap();
    let batches: Vec<RecordBatch> = match name.rsplit('.').next().unwrap() {
        "parquet" => {
            let reader = ParquetRecordBatchReaderBuilder::try_new(file()).unwrap().build().unwrap();
            reader.collect::<Result<_, _>>().unwrap()
        }
        "arrow" => FileReader::try_new(file(), None).unwrap().collect::<Result<_, _>>().unwrap(),
        _ => {
            let table = CTable::open(folder.path(name)).unwrap();
            let reader = ReadOptions::new().read(&table).unwrap();
            reader.collect::<Result<_, _>>().unwrap()
        }
    };
    concat_batches(batches[0].schema_ref(), &batches).unwrap()
}

fn column(batch: &RecordBatch, name: &str, data: DataType) -> ArrayRef {
    cast(batch.column_by_name(name).unwrap(), &data).unwrap()
}

#[test]
fn directories_are_tables() {
    let folder = Folder::new();
    folder.trips();
    TreeStore::open(folder.path("trips.b2z")).unwrap().unpack(folder.path("t.b2d")).unwrap();
    let all = |name: &str| folder.text(&[&format!("t={name}"), "SELECT * FROM t ORDER BY km"]);
    assert_eq!(all("t.b2d"), all("trips.b2z"));
    assert_eq!(folder.text(&["t.b2d", "SELECT * FROM t ORDER BY km"]), all("trips.b2z"));
}

#[test]
fn binary_formats_have_the_rows_and_types() {
    let folder = Folder::new();
    for name in ["o.parquet", "o.arrow", "o.b2z"] {
        folder.good(&[VALUES, "-o", name]);
        let batch = read(&folder, name);
        let names: Vec<_> = batch.schema().fields().iter().map(|it| it.name().clone()).collect();
        assert_eq!(names, ["i", "f", "nan", "t", "n", "b", "w", "l", "inf"], "{name}");
        assert_eq!(batch.num_rows(), 1);
        let ints = column(&batch, "i", DataType::Int64);
        let ints = ints.as_primitive::<datafusion::arrow::datatypes::Int64Type>();
        assert_eq!(ints.value(0), 9_007_199_254_740_993, "{name}");
        let float = |name| {
            let array = column(&batch, name, DataType::Float64);
            array.as_primitive::<datafusion::arrow::datatypes::Float64Type>().value(0)
        };
        assert_eq!((float("f"), float("inf")), (0.1, f64::INFINITY));
        assert!(float("nan").is_nan() && batch.column_by_name("nan").unwrap().is_valid(0));
        assert!(batch.column_by_name("n").unwrap().is_null(0));
        let text = column(&batch, "t", DataType::Utf8);
        assert_eq!(text.as_string::<i32>().value(0), "a,\"b");
        let when = batch.column_by_name("w").unwrap().data_type().clone();
        assert!(matches!(when, DataType::Timestamp(_, None)), "{name}: {when}");
        let shown = pretty_format_batches(&[batch]).unwrap().to_string();
        assert!(shown.contains("2024-02-29T01:02:03.5") && shown.contains("[x, "), "{shown}");
        // The same on stdout.
        let format = name.split_once('.').unwrap().1;
        folder.write("piped", folder.good(&[VALUES, "--format", format]));
        fs::rename(folder.path("piped"), folder.path(&format!("p.{format}"))).unwrap();
        let piped = read(&folder, &format!("p.{format}"));
        assert_eq!(pretty_format_batches(&[piped]).unwrap().to_string(), shown);
    }
}

#[test]
fn texts_of_values() {
    let folder = Folder::new();
    let csv = folder.text(&[VALUES, "--format", "csv"]);
    assert_eq!(
        csv,
        "i,f,nan,t,n,b,w,l,inf\n9007199254740993,0.1,NaN,\"a,\"\"b\",,true,2024-02-29T01:02:03.500,\
         \"[\"\"x\"\",null]\",inf\n"
    );
    let csv = folder.text(&["SELECT NULL AS a, 1 AS b", "--format", "csv", "--null", "NA"]);
    assert_eq!(csv, "a,b\nNA,1\n");
    let row = json!({"i": 9_007_199_254_740_993_i64, "f": 0.1, "nan": null, "t": "a,\"b", "n": null, "b": true,
        "w": "2024-02-29T01:02:03.500", "l": ["x", null], "inf": null});
    assert_eq!(folder.json(&[VALUES]), json!([row]));
    let two = "SELECT * FROM (VALUES (1), (2)) AS t (x)";
    assert_eq!(folder.text(&[two, "--format", "ndjson"]), "{\"x\":1}\n{\"x\":2}\n");
    assert_eq!(folder.text(&[two, "--format", "json"]), "[{\"x\":1},{\"x\":2}]\n");
    let text = folder.text(&["SELECT NULL AS a, E'\\x1b[2J' AS b, '' AS c"]);
    let expected = "+------+------+---+\n| a    | b    | c |\n+------+------+---+\n| NULL | \u{fffd}[2J |   |\n+------+------+---+\n";
    assert_eq!(text, expected);
    // Results without rows.
    let none = "SELECT 1 AS a WHERE false";
    for (format, expected) in
        [("csv", "a\n"), ("json", "[]\n"), ("ndjson", ""), ("text", "+---+\n| a |\n+---+\n+---+\n")]
    {
        assert_eq!(folder.text(&[none, "--format", format]), expected, "{format}");
    }
    for name in ["n.parquet", "n.arrow", "n.b2z"] {
        folder.good(&[none, "-o", name]);
        assert_eq!(folder.json(&[name, "SELECT count(*) AS n FROM n"]), json!([{"n": 0}]));
    }
}

#[test]
fn text_has_a_limited_number_of_rows() {
    let folder = Folder::new();
    let sql = "SELECT value AS v FROM range(100)";
    let text = folder.text(&[sql]);
    assert_eq!(text.lines().filter(|line| line.starts_with("| ")).count(), 41, "{text}");
    assert!(
        text.ends_with("The first 40 rows; `--rows N` or `--rows all` prints more.\n"),
        "{text}"
    );
    let text = folder.text(&[sql, "--rows", "all"]);
    assert!(text.lines().count() == 104 && text.ends_with("+\n"), "{text}");
    assert_eq!(folder.text(&[sql, "--rows", "100"]), text, "nothing is left out");
    folder.good(&[sql, "-o", "all.txt"]);
    assert_eq!(folder.read("all.txt"), text.as_bytes());
    // More rows than could be printed: the query is stopped.
    folder.text(&["SELECT * FROM range(100000000000)", "--rows", "3"]);
}

/// Results with several batches, and with other dictionaries in each.
#[test]
fn large_results_are_complete() {
    let folder = Folder::new();
    let sql = "SELECT value AS v, arrow_cast('w' || (value / 30000)::text, 'Dictionary(Int32, Utf8)') AS w FROM range(200000)";
    let check = "SELECT count(*) AS n, sum(v) AS s, count(DISTINCT w) AS d, max(w) AS m FROM o";
    let expected = json!([{"n": 200_000, "s": 19_999_900_000_i64, "d": 7, "m": "w6"}]);
    for name in ["o.csv", "o.json", "o.jsonl", "o.parquet", "o.arrow", "o.b2z"] {
        folder.good(&[sql, "--output", name]);
        assert_eq!(folder.json(&[name, check]), expected, "{name}");
        let word = folder.json(&[name, "SELECT w FROM o WHERE v = 65000"]);
        assert_eq!(word, json!([{"w": "w2"}]), "{name}");
    }
}

#[test]
fn files_appear_when_they_are_complete() {
    let folder = Folder::new();
    folder.trips();
    let failing = "SELECT 1 / (value - 150000) AS x FROM range(200000)";
    for extension in ["csv", "json", "ndjson", "txt", "parquet", "arrow", "b2z"] {
        let name = format!("o.{extension}");
        let line = folder.bad(1, &[failing, "-o", &name]);
        assert!(line.contains("ivide by zero"), "{line}");
        folder.write(&name, "precious");
        let line = folder.bad(1, &["SELECT 1 AS x", "-o", &name]);
        assert!(line.contains("it already exists; --force replaces it"), "{line}");
        folder.bad(1, &[failing, "-o", &name, "--force"]);
        folder.good(&["SELECT 1 AS x", "-o", &name, "--force"]);
        assert_ne!(folder.read(&name), b"precious");
    }
    // A table is replaced by rows of itself.
    folder.good(&["trips.b2z", "SELECT * FROM trips WHERE km > 3", "-o", "trips.b2z", "--force"]);
    assert_eq!(folder.json(&["trips.b2z", "SELECT count(*) AS n FROM trips"]), json!([{"n": 1}]));
    let line = folder.bad(1, &["SELECT 1", "-o", "nothing/o.csv"]);
    assert!(line.contains("there is no directory nothing"), "{line}");
}

#[test]
fn closed_and_full_pipes() {
    let folder = Folder::new();
    for format in ["csv", "json", "ndjson", "parquet", "arrow"] {
        let mut command = folder.command(&["SELECT * FROM range(100000000)", "--format", format]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{format}: {output:?}");
        #[cfg(target_os = "linux")]
        {
            let mut command = folder.command(&["SELECT 1 AS x", "--format", format]);
            let full = File::options().write(true).open("/dev/full").unwrap();
            let output = command.stdout(full).output().unwrap();
            let line = String::from_utf8(output.stderr).unwrap();
            assert!(line.starts_with("blosc2-sql: cannot write to stdout: "), "{format}: {line}");
            assert_eq!(output.status.code(), Some(1));
        }
    }
}

/// Ctrl-C ends a query at once, and leaves no file.
#[test]
#[cfg(unix)]
fn interruption() {
    use std::process::Command;

    let many = "SELECT * FROM range(100000000000)";
    let join =
        "SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE a.value * b.value % 7 = 3";
    for args in [
        &[many, "-o", "o.csv"][..],
        &[many, "-o", "o.b2z"],
        &[join, "-o", "o.parquet"],
        &["COPY (SELECT * FROM range(100000000000)) TO 'o.csv'"],
    ] {
        let folder = Folder::new();
        let mut command = blosc2_testing::with_default_signals(crate::common::PROGRAM);
        command.current_dir(folder.path("")).args(args).stdin(Stdio::null());
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // The temporary file.
        while folder.files().is_empty() {
            std::thread::yield_now();
        }
        let id = child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{args:?}: {output:?}");
        assert_eq!(output.stderr, b"blosc2-sql: interrupted\n", "{args:?}");
        assert!(folder.files().is_empty(), "{args:?} left {:?}", folder.files());
    }
}

/// Columns with views, which DataFusion makes of Parquet files, are written with types that all programs know.
#[test]
fn texts_of_parquet_files() {
    let folder = Folder::new();
    folder.good(&["SELECT 'a' AS t, 'b'::bytea AS b", "-o", "in.parquet"]);
    for name in ["o.arrow", "o.parquet"] {
        folder.good(&["x=in.parquet", "SELECT * FROM x", "-o", name]);
        let schema = read(&folder, name).schema();
        let types: Vec<_> = schema.fields().iter().map(|field| field.data_type().clone()).collect();
        assert_eq!(types, [DataType::LargeUtf8, DataType::LargeBinary], "{name}");
    }
}
