//! `bench`: the rows of the table, and the recommendation.

use blosc2::{CParams, Codec, Filter, NDArray, RawItems};
use serde_json::{Value, json};

use crate::common::{Folder, golden_files};

fn report(folder: &Folder, args: &[&str]) -> Value {
    serde_json::from_slice(&folder.good(&[&["bench"], args, &["--json"]].concat())).unwrap()
}

fn column(report: &Value, key: &str) -> Vec<Value> {
    report["rows"].as_array().unwrap().iter().map(|row| row[key].clone()).collect()
}

#[test]
fn rows_have_all_combinations() {
    let folder = Folder::new();
    folder.array("a.b2nd", &[100, 100], &[50, 100], &[10, 100]);
    let args = ["a.b2nd", "--codecs", "lz4,zstd", "--levels", "1,5", "--time", "1000"];
    let found = report(&folder, &args);
    for (key, expected) in [
        ("path", json!("a.b2nd")),
        ("nbytes", json!(40_000)),
        ("sample_nbytes", json!(40_000)),
        ("sample_chunks", json!(2)),
        ("threads", json!(1)),
        ("left_out", json!(0)),
    ] {
        assert_eq!(found[key], expected, "{key}");
    }
    let rows = found["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2 * 2 * 5);
    let ratios: Vec<f64> = rows.iter().map(|row| row["ratio"].as_f64().unwrap()).collect();
    assert!(ratios.is_sorted_by(|a, b| a >= b), "{ratios:?}");
    for row in rows {
        let cbytes = row["cbytes"].as_u64().unwrap();
        assert!((row["ratio"].as_f64().unwrap() - 40_000.0 / cbytes as f64).abs() < 1e-9);
        for key in
            ["compress_bytes_per_second", "decompress_bytes_per_second", "random_reads_per_second"]
        {
            assert!(row[key].as_u64().unwrap() > 0, "{row}");
        }
    }
    let mut options = column(&found, "options");
    options.sort_by_key(Value::to_string);
    options.dedup();
    assert_eq!(options.len(), rows.len());
    // The parameters of the file are in the table once.
    let current = rows.iter().filter(|row| row["current"] == true).collect::<Vec<_>>();
    let options = "--codec zstd --level 5 --filters shuffle";
    assert_eq!((current.len(), &current[0]["options"]), (1, &json!(options)));

    // The options of the recommendations are those of `copy`.
    let recommended = found["recommended"].as_object().unwrap();
    assert_eq!(
        recommended.keys().collect::<Vec<_>>(),
        ["smallest", "fastest", "best_compromise", "random_access"]
    );
    assert_eq!(recommended["smallest"], rows[0]["options"]);
    for (name, options) in recommended {
        let options: Vec<&str> = options.as_str().unwrap().split(' ').collect();
        folder.good(&[&["copy", "a.b2nd", name][..], &options].concat());
        let row = rows.iter().find(|row| row["options"] == recommended[name]).unwrap();
        let info = folder.info(name);
        for key in ["codec", "clevel"] {
            assert_eq!(info[key], row[key], "{name}");
        }
        // The frame has a header and an index besides the chunks.
        let more = info["cbytes"].as_u64().unwrap() - row["cbytes"].as_u64().unwrap();
        assert!(more < 1000, "{name} {more}");
    }
}

#[test]
fn tables_mark_the_parameters_of_the_file() {
    let folder = Folder::new();
    let params = CParams::new()
        .codec(Codec::BloscLz)
        .level(3)
        .filters(&[Filter::Shuffle, Filter::Bytedelta(4)]);
    let items: Vec<f32> = (0..1000).map(|k| k as f32).collect();
    NDArray::builder()
        .cparams(params)
        .target(folder.path("a"))
        .from_slice(&items, &[1000])
        .unwrap();
    let args =
        ["bench", "a", "--codecs", "lz4", "--levels", "9", "--threads", "2", "--time", "1000"];
    let text = String::from_utf8(folder.good(&args)).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "sample: 3.91 KiB of 3.91 KiB in 1 chunk, 2 threads");
    assert_eq!(lines.len(), 2 + 6 + 4, "{text}");
    let marked: Vec<_> = lines.iter().filter(|line| line.starts_with('*')).collect();
    assert_eq!(marked.len(), 1, "{text}");
    assert!(marked[0].starts_with("* blosclz      3 shuffle,bytedelta "), "{text}");
    // All lines of the table have the same width.
    let widths: Vec<usize> = lines[1..8].iter().map(|line| line.chars().count()).collect();
    assert!(widths.iter().all(|width| *width == widths[0]), "{text}");
    let names = ["smallest", "fastest", "best compromise", "random access"];
    for (line, name) in lines[8..].iter().zip(names) {
        let options = line.strip_prefix(name).unwrap().trim_start();
        assert!(options.starts_with("--codec "), "{text}");
    }
}

#[test]
fn filters_depend_on_the_typesize() {
    let folder = Folder::new();
    let bytes: Vec<u8> = (0..255 * 20).map(|k| (k / 255) as u8).collect();
    for (name, dtype, typesize, expected) in
        [("1", "|u1", 1, 3 + 1), ("255", "|V255", 255, 5), ("510", "|V510", 510, 3 + 1)]
    {
        let shape = [(bytes.len() / typesize) as u64];
        let builder = NDArray::builder().target(folder.path(name));
        builder.dtype(dtype, typesize).from_slice(RawItems(&bytes), &shape).unwrap();
        let args = [name, "--codecs", "zstd", "--levels", "5", "--time", "1000"];
        let found = report(&folder, &args);
        assert_eq!(found["rows"].as_array().unwrap().len(), expected, "{name}");
        assert_eq!(found["sample_nbytes"], json!(5100));
    }
}

#[test]
fn samples_are_limited() {
    let folder = Folder::new();
    folder.array("a.b2nd", &[1000, 10], &[100, 10], &[10, 10]);
    let rest = ["--codecs", "lz4", "--levels", "1", "--time", "1000"];
    for (size, bytes, chunks) in
        [("12000", 12_000, 3), ("4000", 4000, 1), ("900", 800, 1), ("1", 4, 1)]
    {
        let found = report(&folder, &[&["a.b2nd", "--size", size], &rest[..]].concat());
        let sample = (&found["sample_nbytes"], &found["sample_chunks"], &found["nbytes"]);
        assert_eq!(sample, (&json!(bytes), &json!(chunks), &json!(40_000)), "{size}");
    }
    for (slice, size, nbytes, bytes) in
        [("5", "99999", 40, 40), ("::2,3", "99999", 2000, 2000), (":500", "1000", 20_000, 1000)]
    {
        let args = ["a.b2nd", "--slice", slice, "--size", size];
        let found = report(&folder, &[&args, &rest[..]].concat());
        assert_eq!((&found["nbytes"], &found["sample_nbytes"]), (&json!(nbytes), &json!(bytes)));
    }
    // Without time the first row remains, which is that of the file.
    let found = report(&folder, &[&["a.b2nd"], &rest[..4], &["--time", "1"]].concat());
    assert!(!found["rows"].as_array().unwrap().is_empty());
}

#[test]
fn data_that_cannot_be_compared_is_refused() {
    let folder = Folder::new();
    folder.array("a.b2nd", &[100], &[50], &[10]);
    NDArray::builder().target(folder.path("empty")).from_slice(&[0f32; 0], &[0, 5]).unwrap();
    let line = folder.bad(1, &["bench", "empty"]);
    assert_eq!(line, "blosc2: cannot compare parameters (empty): there are no items\n");
    let line = folder.bad(1, &["bench", "a.b2nd", "--slice", "5:5"]);
    assert!(line.contains("there are no items"), "{line}");
    let line = folder.bad(2, &["bench", "a.b2nd", "--codecs", "lz4,snappy"]);
    assert!(line.contains("expected one of blosclz, lz4") && line.contains("`snappy`"), "{line}");
    let line = folder.bad(1, &["bench", "a.b2nd", "--codecs", "ndlz"]);
    assert!(line.contains("cannot compare parameters (a.b2nd): --codec ndlz"), "{line}");
    for args in [["--levels", "10"], ["--levels", "a"], ["--threads", "0"], ["--size", "0"]] {
        folder.bad(2, &[&["bench", "a.b2nd"], &args[..]].concat());
    }
    folder.write("plot.png", b"kept");
    let line = folder.bad(1, &["bench", "a.b2nd", "--plot", "plot.png"]);
    assert!(line.contains("(plot.png): it already exists"), "{line}");
    // Before the data is read.
    let line = folder.bad(1, &["bench", "missing", "--plot", "no/plot.png"]);
    assert_eq!(line, "blosc2: cannot create a file (no/plot.png): there is no directory no\n");
}

#[test]
fn parameters_that_need_an_array_are_left_out() {
    let folder = Folder::new();
    let params = CParams::new().codec(Codec::Ndlz).codec_meta(4).filters(&[]);
    let builder = NDArray::builder().cparams(params).target(folder.path("a"));
    builder.from_slice(&[7u8; 6400], &[80, 80]).unwrap();
    let output = folder.run(&["bench", "a", "--codecs", "lz4", "--levels", "1", "--json"]);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{errors}");
    assert!(errors.starts_with("blosc2: warning (a): the parameters of the file"), "{errors}");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(column(&found, "current"), [json!(false), json!(false), json!(false)]);
}

#[test]
fn legacy_files_are_compared() {
    let folder = Folder::new();
    let (path, raw) =
        golden_files("early-frame/").into_iter().max_by_key(|file| file.1.len()).unwrap();
    let args = [&path[..], "--codecs", "lz4", "--levels", "1", "--time", "1000"];
    let found = report(&folder, &args);
    assert_eq!(found["sample_nbytes"], json!(raw.len()));
}

#[test]
fn plots_have_points_and_labels() {
    let folder = Folder::new();
    folder.array("a.b2nd", &[100, 100], &[50, 100], &[10, 100]);
    let args = ["a.b2nd", "--codecs", "lz4,zstd", "--levels", "1", "--time", "1000"];
    folder.good(&[&["bench"], &args[..], &["--plot", "a.png"]].concat());
    let bytes = folder.read("a.png");
    let mut reader = png::Decoder::new(std::io::Cursor::new(&bytes[..])).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    assert_eq!((info.width, info.height), (1000, 600));
    let count = |colour: [u8; 3]| pixels.chunks(3).filter(|pixel| **pixel == colour).count();
    // The points of both codecs, in the order of their codes, and text.
    for colour in [[31, 119, 180], [255, 127, 14], [40, 40, 40]] {
        assert!(count(colour) > 60, "{colour:?}");
    }
    assert!(count([255; 3]) > 400_000);
}
