//! `blosc2 meta`: output, changes and refused arguments.

use blosc2::{ArrayValue, CParams, Dtype, SChunk, SaveOptions, Target};
use serde_json::{Value, json};

use crate::common::Folder;

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

#[test]
fn values_are_set_listed_and_removed() {
    let folder = Folder::new();
    let bytes = folder.schunk("a.b2frame", &CParams::new());
    let array = folder.array("a.b2nd", &[10, 7], &[4, 7], &[2, 3]);
    let schunk = SChunk::open(folder.path("a.b2frame")).unwrap();
    SaveOptions::new()
        .save(&schunk, Target::from(folder.path("d.b2frame")).directory(true))
        .unwrap();
    assert_eq!(folder.good(&["meta", "a.b2frame"]), b"");
    for (file, bytes) in [("a.b2frame", &bytes), ("d.b2frame", &bytes), ("a.b2nd", &array)] {
        for (name, value) in [
            ("text", r#""a text""#),
            ("number", "-1.5"),
            ("object", r#"{"list":[1,-2,null,true],"e":{}}"#),
            ("text", r#""another""#),
        ] {
            assert_eq!(folder.good(&["meta", file, "set", name, value]), b"");
            assert_eq!(text(folder.good(&["meta", file, "get", name])), format!("{value}\n"));
        }
        assert_eq!(
            folder.good(&["meta", file, "get", "number", "--raw"]),
            b"\xcb\xbf\xf8\0\0\0\0\0\0"
        );
        let schunk = SChunk::open(folder.path(file)).unwrap();
        assert_eq!(schunk.vlmeta().get_value::<String>("text").unwrap().unwrap(), "another");
        drop(schunk);
        folder.good(&["meta", file, "set", "long", &format!("{:?}", "x".repeat(100))]);
        folder.good(&["meta", file, "del", "number"]);
        let list = text(folder.good(&["meta", file]));
        let expected = format!(
            "vlmeta text                                   8 \"another\"\n\
             vlmeta object                                14 {{\"list\":[1,-2,null,true],\"e\":{{}}}}\n\
             vlmeta long                                 102 \"{}...\n",
            "x".repeat(59)
        );
        let list =
            list.strip_prefix(list.lines().next().filter(|_| file == "a.b2nd").unwrap_or(""));
        assert_eq!(list.unwrap().trim_start(), expected, "{file}");
        assert_eq!(folder.info(file)["vlmeta"], json!(["text", "object", "long"]));
        assert_eq!(folder.good(&["cat", file]), *bytes);
        folder.good(&["check", file]);
    }
    let rows: Value = serde_json::from_slice(&folder.good(&["meta", "a.b2nd", "--json"])).unwrap();
    assert_eq!((&rows[0]["kind"], &rows[0]["name"]), (&json!("meta"), &json!("b2nd")));
    assert_eq!(rows[0]["value"][2], json!([10, 7]));
    let text = json!({"kind": "vlmeta", "name": "text", "length": 8, "value": "another"});
    assert_eq!(rows[1], text);
    assert_eq!(rows.as_array().unwrap().len(), 4);
}

#[test]
fn bytes_are_taken_as_they_are() {
    let folder = Folder::new();
    folder.schunk("a.b2frame", &CParams::new());
    folder.good(&["meta", "a.b2frame", "set", "raw", "-x \"", "--raw"]);
    assert_eq!(folder.good(&["meta", "a.b2frame", "get", "raw", "--raw"]), b"-x \"");
    let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let output = folder.piped(&["meta", "a.b2frame", "set", "all", "-", "--raw"], &bytes);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(folder.good(&["meta", "a.b2frame", "get", "all", "--raw"]), bytes);
    let output = folder.piped(&["meta", "a.b2frame", "set", "json", "-"], b" [1,\n2]\n");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(folder.good(&["meta", "a.b2frame", "get", "json"]), b"[1,2]\n");

    let list = text(folder.good(&["meta", "a.b2frame"]));
    let raw = list.lines().next().unwrap();
    assert!(raw.ends_with(r#"       4 b"-x \"""#), "{raw}");
    let line = folder.bad(1, &["meta", "a.b2frame", "get", "raw"]);
    assert!(line.contains("not msgpack") && line.ends_with("--raw prints its bytes\n"), "{line}");
}

#[test]
fn large_values_are_listed_without_them() {
    let folder = Folder::new();
    folder.schunk("a.b2frame", &CParams::new());
    let mut schunk = SChunk::open_rw(folder.path("a.b2frame")).unwrap();
    // Bytes of 100 MiB of zeros, and a million values that take more memory than their bytes. The list ends early, which
    // is not noticed, because only its start is decoded.
    schunk.vlmeta_mut().set("zeros", &vec![0; 100 << 20]).unwrap();
    let many = [&b"\xdd\x00\x10\xc8\xe0"[..], &vec![0; 1_099_999]].concat();
    schunk.vlmeta_mut().set("many", &many).unwrap();
    schunk.vlmeta_mut().set("small", b"\x07").unwrap();
    drop(schunk);
    let list = text(folder.good(&["meta", "a.b2frame", "--max-memory", "64M"]));
    let lines: Vec<&str> = list.lines().collect();
    assert!(lines[0].ends_with(" - (too large to list; `get` reads it)"), "{list}");
    assert!(
        lines[1].ends_with(&format!(" 1100004 [{}...", "0,".repeat(30)[..59].to_owned())),
        "{list}"
    );
    assert!(lines[2].ends_with(" 1 7") && lines.len() == 3, "{list}");
    let zeros = folder.good(&["meta", "a.b2frame", "get", "zeros", "--raw"]);
    assert!(zeros.len() == 100 << 20 && zeros.iter().all(|&byte| byte == 0));
}

#[test]
fn the_list_shows_the_start_of_each_value() {
    let folder = Folder::new();
    folder.schunk("a.b2frame", &CParams::new());
    let long = json!([1, "é".repeat(200), 2.5]);
    let values = [
        json!((0..1000).collect::<Vec<_>>()),
        json!("é".repeat(500)),
        json!("日本語".repeat(100)),
        json!({ "k".repeat(300): [1, 2] }),
        json!([[[[1, [2, [3]]]], "x"], { "a": { "b": [null, true, -1] } }]),
        json!({ "first": (0..10).map(|n| json!([n, { "n": n }])).collect::<Vec<_>>() }),
        json!(vec![long; 100]),
    ];
    for value in values {
        folder.good(&["meta", "a.b2frame", "set", "v", &value.to_string()]);
        let all = text(folder.good(&["meta", "a.b2frame", "get", "v"]));
        let all = all.trim_end();
        let expected = match all.char_indices().nth(60) {
            Some((end, _)) => format!("{}...", &all[..end]),
            None => all.to_owned(),
        };
        let list = text(folder.good(&["meta", "a.b2frame"]));
        assert!(list.ends_with(&format!(" {expected}\n")), "{list} {expected}");
    }
    // Frames and unknown extensions are cut as well.
    let mut schunk = SChunk::open_rw(folder.path("a.b2frame")).unwrap();
    let frame = blosc2::Value::Frame(vec![7; 1 << 20]).to_msgpack().unwrap();
    schunk.vlmeta_mut().set("v", &frame).unwrap();
    drop(schunk);
    let list = text(folder.good(&["meta", "a.b2frame"]));
    assert!(list.contains("070707") && list.ends_with("...\n"), "{list}");
}

#[test]
fn values_that_json_lacks_are_still_shown() {
    let folder = Folder::new();
    folder.schunk("a.b2frame", &CParams::new());
    let mut schunk = SChunk::open_rw(folder.path("a.b2frame")).unwrap();
    let array = [
        &b"\xc7\x26\x2e\x83\xa5dtype\x81\xa3str\xa3>u2\xa5shape\x92\x01\x03"[..],
        b"\xa4data\xc4\x06\x00\x01\x02\x03\xff\xff",
    ];
    let array = array.concat();
    let values: [(&str, &[u8], &str); 9] = [
        ("bytes", b"\xc4\x02a\xff", r#"{"bytes":"61ff"}"#),
        ("ext", b"\xd5\x05\x91\x01", r#"{"ext":5,"bytes":"9101"}"#),
        ("set", b"\xd5\x2d\x91\x01", "[1]"),
        ("complex", b"\xd8\x2c\x3f\xf8\0\0\0\0\0\0\x7f\xf0\0\0\0\0\0\0", r#"[1.5,"inf"]"#),
        ("array", &array, "[[1,515,65535]]"),
        ("keys", b"\x82\x01\x02\xc0\x03", r#"{"1":2,"None":3}"#),
        ("nan", b"\xca\x7f\xc0\x00\x00", r#""NaN""#),
        ("tuple", b"\x93\xa9__tuple__\x01\x02", "[1,2]"),
        ("big", b"\xcf\xff\xff\xff\xff\xff\xff\xff\xff", "18446744073709551615"),
    ];
    for (name, bytes, _) in values {
        schunk.vlmeta_mut().set(name, bytes).unwrap();
    }
    drop(schunk);
    for (name, _, shown) in values {
        assert_eq!(text(folder.good(&["meta", "a.b2frame", "get", name])), format!("{shown}\n"));
    }
    let list = text(folder.good(&["meta", "a.b2frame"]));
    assert!(list.lines().zip(values).all(|(line, (.., shown))| line.ends_with(shown)), "{list}");
    let rows: Value =
        serde_json::from_slice(&folder.good(&["meta", "a.b2frame", "--json"])).unwrap();
    for (row, (.., shown)) in rows.as_array().unwrap().iter().zip(values) {
        assert_eq!(row["value"].to_string(), shown);
    }
}

#[test]
fn what_json_cannot_say_is_listed_and_not_printed() {
    let folder = Folder::new();
    folder.schunk("a.b2frame", &CParams::new());
    let mut schunk = SChunk::open_rw(folder.path("a.b2frame")).unwrap();
    // A quintillion lists of no items, and a number of 128 bits.
    for (name, dtype, shape, len) in
        [("lists", "<f8", vec![1 << 60, 0], 0), ("long", "<f16", vec![1], 16)]
    {
        let array = ArrayValue::new(Dtype::parse(dtype).unwrap(), shape, vec![0; len]).unwrap();
        schunk.vlmeta_mut().set_value(name, &blosc2::Value::from(array)).unwrap();
    }
    drop(schunk);
    let list = text(folder.good(&["meta", "a.b2frame"]));
    let lines: Vec<&str> = list.lines().collect();
    assert!(
        lines[0].ends_with(" array([], shape=(1152921504606846976, 0), dtype='<f8')"),
        "{list}"
    );
    assert!(lines[1].ends_with(" array([?], dtype='<f16')"), "{list}");
    let rows: Value =
        serde_json::from_slice(&folder.good(&["meta", "a.b2frame", "--json"])).unwrap();
    assert_eq!((&rows[0]["value"], &rows[1]["value"]), (&Value::Null, &Value::Null));
    for (name, told) in [("lists", "too many values"), ("long", "Rust has no number type")] {
        let line = folder.bad(1, &["meta", "a.b2frame", "get", name]);
        assert!(line.contains("(a.b2frame)") && line.contains(told), "{line}");
        assert!(line.ends_with("--raw prints its bytes\n"), "{line}");
    }
}

#[test]
fn control_characters_are_escaped() {
    let folder = Folder::new();
    folder.array("a", &[4], &[4], &[4]);
    let value = json!("\u{1b}\u{7f}\u{85}\u{9b}\u{a0}");
    folder.good(&["meta", "a", "set", "\u{9b}31m", &value.to_string()]);
    let get = text(folder.good(&["meta", "a", "get", "\u{9b}31m"]));
    assert_eq!(get, "\"\\u001b\\u007f\\u0085\\u009b\u{a0}\"\n");
    for args in
        [&["meta", "a", "--json"][..], &["view", "a", "--json"], &["diff", "a", "a", "--json"]]
    {
        let found = text(folder.good(args));
        assert!(!found.contains(|each: char| each.is_control() && each != '\n'), "{found}");
    }
    let list: Value = serde_json::from_slice(&folder.good(&["meta", "a", "--json"])).unwrap();
    assert_eq!((&list[1]["name"], &list[1]["value"]), (&json!("\u{9b}31m"), &value));
}

#[test]
fn fixed_metalayers_keep_their_lengths() {
    let folder = Folder::new();
    let mut schunk = SChunk::create::<u8>(folder.path("a.b2frame"), &CParams::new()).unwrap();
    schunk.meta_mut().set_value("version", &1).unwrap();
    drop(schunk);
    folder.good(&["meta", "a.b2frame", "set", "more", "[1,2]", "--fixed"]);
    folder.good(&["meta", "a.b2frame", "set", "none", "1", "--fixed"]);
    folder.good(&["meta", "a.b2frame", "del", "none", "--fixed"]);
    let mut schunk = SChunk::open_rw(folder.path("a.b2frame")).unwrap();
    schunk.append(&[1u8, 2]).unwrap();
    drop(schunk);
    folder.good(&["meta", "a.b2frame", "set", "version", "2", "--fixed"]);
    assert_eq!(folder.good(&["meta", "a.b2frame", "get", "version", "--fixed"]), b"2\n");
    assert_eq!(folder.info("a.b2frame")["meta"], json!(["version", "more"]));
    for args in [&["set", "version", "2000"][..], &["set", "late", "1"], &["del", "more"]] {
        let args = [&["meta", "a.b2frame"], args, &["--fixed"]].concat();
        let line = folder.bad(1, &args);
        assert!(line.contains("(a.b2frame)"), "{line}");
    }
    let line = folder.bad(1, &["meta", "a.b2frame", "get", "version"]);
    assert!(line.contains("but a fixed-length one: use --fixed"), "{line}");
}

#[test]
fn mistakes_change_nothing() {
    let folder = Folder::new();
    folder.schunk("a.b2frame", &CParams::new());
    folder.array("a.b2nd", &[3], &[3], &[3]);
    folder.write("old", b"\0");
    folder.write("text", b"no frame");
    for (status, args, told) in [
        (1, &["a.b2frame", "get", "none"][..], "there is no variable-length metalayer `none`"),
        (1, &["a.b2frame", "del", "none"], "there is no variable-length metalayer `none`"),
        (1, &["a.b2frame", "get", "none", "--fixed"], "there is no fixed-length metalayer `none`"),
        (1, &["a.b2frame", "set", "", "1"], "(a.b2frame)"),
        (1, &["a.b2frame", "set", "12345678901234567890123456789012", "1"], "31"),
        (1, &["a.b2frame", "set", "b2o", "1"], "`b2o` is a reserved name"),
        (1, &["a.b2nd", "set", "b2nd", "1", "--fixed"], "--force changes it"),
        (1, &["a.b2nd", "del", "b2nd", "--fixed"], "--force changes it"),
        (1, &["missing", "get", "a"], "(missing)"),
        (1, &["text"], "(text)"),
        (1, &["a.b2frame", "set", "a", "1", "--offset", "1"], ""),
        (2, &["a.b2frame", "set", "a", "text"], "a string needs its own double quotes"),
        (2, &["a.b2frame", "set", "a", "[1"], "VALUE is not JSON"),
        (2, &["a.b2frame", "set", "a"], "<VALUE>"),
        (2, &["a.b2frame", "get"], "<NAME>"),
        (2, &["a.b2frame", "put", "a", "1"], "put"),
        (2, &["a.b2frame", "--json", "get", "a"], "--json applies to the list"),
    ] {
        let line = folder.bad(status, &[&["meta"], args].concat());
        assert!(line.contains(told), "{line}");
    }
    folder.good(&["meta", "a.b2frame", "set", "b2o", "{}", "--force"]);
    assert!(folder.bad(1, &["cat", "a.b2frame"]).contains("a Python object"));
    folder.good(&["meta", "a.b2frame", "del", "b2o", "--force"]);
    folder.good(&["cat", "a.b2frame"]);
}
