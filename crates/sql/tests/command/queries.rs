//! Files as tables, and queries over them.

use std::fs;

use serde_json::json;

use crate::common::{Folder, PROGRAM};

#[test]
fn each_file_is_a_table() {
    let folder = Folder::new();
    folder.trips();
    folder.arrays();
    folder.write("My-Cities.csv", "city,country\nOslo,Norway\nRome,Italy\n");
    let sql = "SELECT c.country, sum(t.km) AS km FROM trips t JOIN my_cities c USING (city) GROUP BY c.country ORDER BY km";
    let expected = json!([{"country": "Italy", "km": 2.0}, {"country": "Norway", "km": 5.5}]);
    assert_eq!(folder.json(&["trips.b2z", "My-Cities.csv", sql]), expected);
    let sql = "SELECT sum(value) AS s, max(axis_0) AS a FROM array";
    assert_eq!(folder.json(&["array.b2nd", sql]), json!([{"s": 15.0, "a": 1}]));
    let sql = "SELECT lat, sum(value) AS s FROM x WHERE time = 1 GROUP BY lat ORDER BY lat";
    let expected = json!([{"lat": 0, "s": 3.0}, {"lat": 1, "s": 4.0}, {"lat": 2, "s": 5.0}]);
    // The names of the axes do not matter for tables.
    for file in ["x=array.b2nd", "X=climate.b2z"] {
        assert_eq!(folder.json(&["trips.b2z", file, sql, "--dims", "time,lat"]), expected);
    }
    assert_eq!(folder.json(&["SELECT count(*) AS n FROM 'trips.b2z'"]), json!([{"n": 3}]));
    let sql = "CREATE EXTERNAL TABLE t STORED AS CTABLE LOCATION 'trips.b2z'; SELECT count(*) AS n FROM t";
    assert_eq!(folder.json(&[sql]), json!([{"n": 3}]));
    let names = folder.text(&["trips.b2z", "x=array.b2nd", "My-Cities.csv", "--tables"]);
    assert_eq!(names, "trips      trips.b2z\nx          array.b2nd\nmy_cities  My-Cities.csv\n");
}

#[test]
fn tables_in_a_store_have_the_names_of_their_keys() {
    let folder = Folder::new();
    folder.store();
    let sql = r#"SELECT sum(n) AS s FROM "group/table""#;
    assert_eq!(folder.json(&["store.b2z", sql]), json!([{"s": 6}]));
    let sql = r#"SELECT sum(value) AS s FROM store JOIN "group/table" ON n = axis_0"#;
    assert_eq!(folder.json(&["store.b2z", sql]), json!([{"s": 15.0}]));
    let names = folder.text(&["store.b2z", "--tables"]);
    assert_eq!(names, "\"group/table\"  store.b2z\nstore          store.b2z\n");
    let sql = "CREATE EXTERNAL TABLE t STORED AS CTABLE LOCATION 'store.b2z' OPTIONS ('key' '/group/table'); SELECT max(n) AS m FROM t";
    assert_eq!(folder.json(&[sql]), json!([{"m": 3}]));
    fs::copy(folder.path("store.b2z"), folder.path("other.b2z")).unwrap();
    let error = folder.bad(2, &["store.b2z", "other.b2z", "SELECT 1"]);
    assert!(error.contains("two tables are named \"group/table\""), "{error}");
}

#[test]
fn directories_and_patterns_are_one_table() {
    let folder = Folder::new();
    for part in ["parts", "parts/day=1", "parts/day=2"] {
        fs::create_dir(folder.path(part)).unwrap();
    }
    folder.ids("parts/a-1.b2z", 0..10);
    folder.ids("parts/a-2.b2z", 10..20);
    folder.ids("parts/b[1].b2z", 20..30);
    folder.write("parts/readme.txt", "no table");
    let sum = |file: &str, name: &str| {
        folder.json(&[file, &format!("SELECT count(*) AS n, max(id) AS m FROM {name}")])
    };
    assert_eq!(sum("parts", "parts"), json!([{"n": 30, "m": 29}]));
    assert_eq!(sum("p=parts/", "p"), json!([{"n": 30, "m": 29}]));
    assert_eq!(sum("parts/a-*.b2z", "a"), json!([{"n": 20, "m": 19}]));
    assert_eq!(sum("parts/*.b2z", "parts"), json!([{"n": 30, "m": 29}]));
    assert_eq!(sum("parts/b[1].b2z", "b_1_"), json!([{"n": 10, "m": 29}]), "a file, no pattern");
    let sql = "INSERT INTO parts VALUES (99); SELECT count(*) AS n, max(id) AS m FROM parts";
    assert_eq!(folder.json(&["parts", sql]), json!([{"n": 31, "m": 99}]));

    fs::create_dir(folder.path("days")).unwrap();
    for day in 1..3 {
        fs::create_dir(folder.path(&format!("days/day={day}"))).unwrap();
        folder.ids(&format!("days/day={day}/t.b2z"), 0..day);
    }
    let sql = "SELECT day, count(*) AS n FROM days GROUP BY day ORDER BY day";
    let expected = json!([{"day": "1", "n": 1}, {"day": "2", "n": 2}]);
    assert_eq!(folder.json(&["days", sql]), expected);
    // A file, not the name `days/day` of a table.
    assert_eq!(folder.json(&["days/day=2/t.b2z", "SELECT max(id) AS m FROM t"]), json!([{"m": 1}]));
}

#[test]
fn other_formats_are_read() {
    let folder = Folder::new();
    folder.write("a.tsv", "x\ty\n1\ta,b\n");
    folder.write("b.json", r#" [{"x": 1, "y": "b"}]"#);
    folder.write("c.ndjson", "{\"x\": 1, \"y\": \"c\"}\n");
    folder.write("d.JSONL", "{\"x\": 1, \"y\": \"d\"}\n");
    let sql = "SELECT a.y || b.y || c.y || d.y AS y FROM a, b, c, d WHERE a.x = 1";
    let found = folder.json(&["a.tsv", "b.json", "c.ndjson", "d.JSONL", sql]);
    assert_eq!(found, json!([{"y": "a,bbcd"}]));
    folder.good(&[
        "COPY (SELECT 7 AS x) TO 'e.csv.gz' STORED AS CSV OPTIONS ('format.compression' 'gzip')",
    ]);
    assert!(folder.read("e.csv.gz").starts_with(b"\x1f\x8b"));
    assert_eq!(folder.json(&["e.csv.gz", "SELECT x FROM e"]), json!([{"x": 7}]));
}

#[test]
fn the_query_comes_from_an_argument_a_file_or_stdin() {
    let folder = Folder::new();
    folder.trips();
    let sql = "SELECT count(*) AS n\nFROM trips -- all\n;\n";
    folder.write("q.sql", sql);
    let expected = folder.text(&["trips.b2z", sql]);
    assert!(expected.contains("| 3 |"), "{expected}");
    assert_eq!(folder.text(&["trips.b2z", "--file", "q.sql"]), expected);
    for args in [&["trips.b2z", "-"][..], &["trips.b2z", "--file", "-"]] {
        let output = folder.piped(args, sql);
        assert_eq!(String::from_utf8(output.stdout).unwrap(), expected, "{args:?}");
    }
    let text = folder
        .text(&["trips.b2z", "SELECT 1 AS a; CREATE VIEW v AS SELECT 2 AS b; SELECT * FROM v"]);
    let (a, b) = (text.find("| a |").unwrap(), text.find("| b |").unwrap());
    assert!(a < b && text.contains("| 2 |"), "{text}");
    assert_eq!(folder.text(&["SELECT 1 AS a; SELECT 2 AS b", "--format", "csv"]), "b\n2\n");
}

#[test]
fn plans_and_functions() {
    let folder = Folder::new();
    folder.trips();
    let sql = "SELECT km FROM trips WHERE km > 3";
    let plan = folder.text(&["trips.b2z", sql, "--explain"]);
    assert!(plan.contains("DataSourceExec") && plan.contains("trips.b2z"), "{plan}");
    assert_eq!(folder.text(&["trips.b2z", &format!("EXPLAIN {sql}")]), plan);
    let analyzed = folder.text(&["trips.b2z", &format!("EXPLAIN ANALYZE {sql}")]);
    assert!(analyzed.contains("segments_pruned"), "{analyzed}");
    assert!(folder.text(&["trips.b2z", "DESCRIBE trips"]).contains("| km"));
    assert!(folder.text(&["trips.b2z", "SHOW TABLES"]).contains("| trips"));
    let sql = "SELECT date_trunc('day', max(day)) AS d, regexp_replace('abc', 'b+', 'x') AS r, round(2.567, 1) AS n, \
        upper('ä') AS u, md5('') AS m, array_length([1, 2]) AS l, encode('a', 'hex') AS h FROM trips";
    let expected = json!([{"d": "1970-01-03T00:00:00", "r": "axc", "n": 2.6, "u": "Ä",
        "m": "d41d8cd98f00b204e9800998ecf8427e", "l": 2, "h": "61"}]);
    assert_eq!(folder.json(&["trips.b2z", sql]), expected);
}

#[test]
fn threads_and_memory_are_limited() {
    let folder = Folder::new();
    let sort = "SELECT value % 977 AS m, value FROM range(2000000) ORDER BY m, value";
    let limits = ["--threads", "1", "--memory", "24MiB"];
    let analyzed = folder.text(&[&[&*format!("EXPLAIN ANALYZE {sort}")], &limits[..]].concat());
    let spills = analyzed.split("spill_count=").skip(1).map(|rest| !rest.starts_with('0'));
    assert!(spills.into_iter().any(|spills| spills), "{analyzed}");
    let sums = "SELECT sum(n * m) AS s FROM (SELECT m, row_number() OVER (ORDER BY m, value) AS n \
        FROM (SELECT value % 977 AS m, value FROM range(2000000)))";
    let expected = folder.json(&[sums]);
    assert_eq!(folder.json(&[&[sums], &limits[..]].concat()), expected, "with temporary files");
    let line = folder.bad(
        1,
        &[
            "SELECT count(*) FROM range(1000000) a JOIN range(1000000) b USING (value)",
            "--memory",
            "1MiB",
        ],
    );
    assert!(line.contains("Resources exhausted") || line.contains("memory"), "{line}");
    let plan = folder.text(&["SHOW datafusion.execution.target_partitions", "--threads", "7"]);
    assert!(plan.contains("| 7"), "{plan}");
}

/// The lines of the README, with their output.
#[test]
#[cfg(unix)]
fn the_readme_is_right() {
    let folder = Folder::new();
    folder.trips();
    folder.arrays();
    folder.write("cities.csv", "city,country\nOslo,Norway\nRome,Italy\n");
    let readme = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).unwrap();
    let block = readme.split("```text\n").nth(1).unwrap().split("```").next().unwrap();
    let programs = std::path::Path::new(PROGRAM).parent().unwrap();
    let mut count = 0;
    for case in block.split("$ ").skip(1) {
        let (line, expected) = case.split_once('\n').unwrap();
        let mut command = std::process::Command::new("/bin/sh");
        command.arg("-c").arg(line).current_dir(folder.path("")).env("PATH", programs);
        let found = String::from_utf8(crate::common::good(command)).unwrap();
        assert_eq!(found, expected, "{line}");
        count += 1;
    }
    assert_eq!(count, 5);
}
