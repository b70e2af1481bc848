//! `info --stats`.

use blosc2::{CParams, Element, NDArray, OpenOptions, RawItems};
use half::f16;
use serde_json::{Value, json};

use crate::common::{Folder, golden_files};

fn stats(folder: &Folder, name: &str) -> Value {
    let json = folder.good(&["info", name, "--stats", "--json"]);
    serde_json::from_slice::<Value>(&json).unwrap()["stats"].take()
}

/// The statistics of an array of these items.
fn of<T: Element>(folder: &Folder, items: &[T], shape: &[u64]) -> Value {
    NDArray::builder()
        .target(folder.path("a"))
        .options(OpenOptions::new().replace(true))
        .from_slice(items, shape)
        .unwrap();
    stats(folder, "a")
}

#[test]
fn all_dtypes_of_real_numbers_in_both_byte_orders() {
    let folder = Folder::new();
    let items = [9u8, 1, 3, 3];
    for dtype in ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"] {
        let little = |item: u8| match dtype {
            "f2" => f16::from(item).to_le_bytes().to_vec(),
            "f4" => f32::from(item).to_le_bytes().to_vec(),
            "f8" => f64::from(item).to_le_bytes().to_vec(),
            _ => u64::from(item).to_le_bytes()[..dtype[1..].parse().unwrap()].to_vec(),
        };
        for order in ['<', '>'] {
            let bytes: Vec<u8> = items
                .iter()
                .flat_map(|item| match order {
                    '<' => little(*item),
                    _ => little(*item).into_iter().rev().collect(),
                })
                .collect();
            folder.write("raw", &bytes);
            let dtype = format!("{order}{dtype}");
            let chunks = ["--chunks", "3", "--blocks", "2"];
            folder.good(
                &[&["import", "raw", "a", "--force", "--dtype", &dtype][..], &chunks].concat(),
            );
            let [min, max] = match dtype.contains('f') {
                true => [json!(1.0), json!(9.0)],
                false => [json!(1), json!(9)],
            };
            let edges: Vec<f64> = (0..=16).map(|edge| 1.0 + 0.5 * f64::from(edge)).collect();
            let expected = json!({
                "count": 4,
                "nan_count": 0,
                "min": min,
                "max": max,
                "mean": 4.0,
                "std": 3.0,
                "histogram": {
                    "edges": edges,
                    "counts": [1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
                },
            });
            assert_eq!(stats(&folder, "a"), expected, "{dtype}");
        }
    }
    let found = of(&folder, &[true, false, true, true, true], &[5]);
    assert_eq!((&found["min"], &found["max"]), (&json!(0), &json!(1)));
    assert_eq!((&found["mean"], &found["std"]), (&json!(0.8), &json!(0.4)));
    assert_eq!(found["histogram"]["counts"][15], json!(4));
}

#[test]
fn integers_are_exact() {
    let folder = Folder::new();
    let found = of(&folder, &[u64::MAX, 0, u64::MAX - 1], &[3]);
    assert_eq!((&found["min"], &found["max"]), (&json!(0), &json!(u64::MAX)));
    assert_eq!(found["histogram"]["counts"][15], json!(2));
    let found = of(&folder, &[i64::MIN, i64::MIN + 1], &[2]);
    assert_eq!((&found["min"], &found["max"]), (&json!(i64::MIN), &json!(i64::MIN + 1)));
    // `f64` does not represent the difference.
    let edge = i64::MIN as f64;
    assert_eq!(found["histogram"], json!({ "edges": [edge, edge], "counts": [2] }));
}

#[test]
fn numbers_that_are_not_finite() {
    let folder = Folder::new();
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    let found = of(&folder, &[nan, 1.0, inf, 17.0, 2.5, nan, 1.5], &[7]);
    let mut counts = vec![0; 16];
    (counts[0], counts[1], counts[15]) = (2, 1, 1);
    let edges: Vec<f64> = (1..=17).map(f64::from).collect();
    let expected = json!({
        "count": 5,
        "nan_count": 2,
        "min": 1.0,
        "max": null,
        "mean": null,
        "std": null,
        "histogram": { "edges": edges, "counts": counts },
    });
    assert_eq!(found, expected);
    let text = String::from_utf8(folder.good(&["info", "a", "--stats"])).unwrap();
    let lines = "min            1.0\nmax            inf\nmean           inf\nstd            nan\n";
    assert!(text.contains(lines), "{text}");

    let none = json!({ "edges": [], "counts": [] });
    for (items, count, nan_count) in [(&[][..], 0, 0), (&[nan; 3], 0, 3), (&[inf, -inf], 2, 0)] {
        let found = of(&folder, items, &[items.len() as u64]);
        assert_eq!((&found["count"], &found["nan_count"]), (&json!(count), &json!(nan_count)));
        assert_eq!(found["histogram"], none, "{items:?}");
        assert_eq!(found["mean"], Value::Null, "{items:?}");
    }
    of::<f32>(&folder, &[], &[3, 0]);
    let text = String::from_utf8(folder.good(&["info", "a", "--stats"])).unwrap();
    let end = "\ncount          0\nnan_count      0\nmin            -\nmax            -\n\
               mean           nan\nstd            nan\n";
    assert!(text.ends_with(end), "{text}");
    // The difference of the ends overflows.
    let found = of(&folder, &[f64::MIN, f64::MAX], &[2]);
    let mut counts = vec![0; 16];
    (counts[0], counts[15]) = (1, 1);
    assert_eq!(found["histogram"]["counts"], json!(counts));
}

#[test]
fn statistics_follow_the_facts_as_text() {
    let folder = Folder::new();
    folder.array("a.b2nd", &[4, 8], &[2, 8], &[1, 8]);
    let facts = String::from_utf8(folder.good(&["info", "a.b2nd"])).unwrap();
    let text = String::from_utf8(folder.good(&["info", "a.b2nd", "--stats"])).unwrap();
    // 1.9375 is a sixteenth of the range, so each bin has two items.
    let bar = "#".repeat(30);
    let mut expected = "count          32\nnan_count      0\nmin            0\nmax            31\n\
                        mean           15.5\nstd            9.233092656309694\n   from       to  items\n"
        .to_owned();
    for bin in 0..16 {
        let edge = |bin: i32| {
            let text = format!("{:7.4}", 1.9375 * f64::from(bin));
            format!("{:<7}", text.trim_end_matches('0'))
        };
        expected += &format!("{}  {}      2  {bar}\n", edge(bin), edge(bin + 1));
    }
    assert_eq!(text.strip_prefix(&facts), Some(&*expected), "{text}");
    // One bin, and bars in proportion to the largest count.
    of(&folder, &[2.5f64; 3], &[3]);
    let text = String::from_utf8(folder.good(&["info", "a", "--stats"])).unwrap();
    assert!(text.ends_with(&format!("\nfrom   to  items\n 2.5  2.5      3  {bar}\n")), "{text}");
    of(&folder, &[0i8, 0, 0, 1], &[4]);
    let text = String::from_utf8(folder.good(&["info", "a", "--stats"])).unwrap();
    assert!(text.ends_with(&format!(" 1.          1  {}\n", &bar[..10])), "{text}");

    let both = folder.good(&["info", "a.b2nd", "--stats", "--chunks", "--json"]);
    let both: Value = serde_json::from_slice(&both).unwrap();
    assert_eq!(
        (&both["stats"]["count"], &both["chunk_list"][1]["nbytes"]),
        (&json!(32), &json!(64))
    );
    assert_eq!(folder.info("a.b2nd").get("stats"), None);
}

#[test]
fn what_has_no_statistics_is_refused() {
    let folder = Folder::new();
    for (dtype, size) in [("<c8", 8), ("<M8[s]", 8), ("|S3", 3), ("[('a', '<i4')]", 4)] {
        let builder =
            NDArray::builder().target(folder.path("a")).options(OpenOptions::new().replace(true));
        builder.dtype(dtype, size).from_slice(RawItems(&vec![0; size]), &[1]).unwrap();
        let line = folder.bad(1, &["info", "a", "--stats"]);
        let reason = format!("items of dtype `{dtype}` are not real numbers");
        assert_eq!(line, format!("blosc2: cannot compute statistics (a): {reason}\n"));
    }
    folder.schunk("s.b2frame", &CParams::new());
    let line = folder.bad(1, &["info", "s.b2frame", "--stats"]);
    let reason = "this is a super-chunk, not an array; `view --dtype` interprets its items";
    assert_eq!(line, format!("blosc2: cannot compute statistics (s.b2frame): {reason}\n"));
    let (path, _) = &golden_files("packed/a2_lz4_shuf_ts8_n3_meta_user")[0];
    let line = folder.bad(1, &["info", path, "--stats"]);
    let reason = "this is a packed super-chunk; `view` computes those of such files";
    assert_eq!(line, format!("blosc2: cannot compute statistics ({path}): {reason}\n"));
    // A chunk that cannot be decoded.
    folder.array("d.b2nd", &[1000], &[1000], &[100]);
    let mut bytes = folder.read("d.b2nd");
    let header = u32::from_be_bytes(bytes[11..15].try_into().unwrap()) as usize;
    // The decompressed size of the chunk.
    bytes[header + 4] ^= 0xff;
    folder.write("d.b2nd", &bytes);
    let line = folder.bad(1, &["info", "d.b2nd", "--stats"]);
    assert!(line.starts_with("blosc2: cannot read chunk 0 (d.b2nd): "), "{line}");
}
