//! The command on stores, tables and other containers of Python.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

/// Runs the command in the folder of the files that Python wrote.
fn run(args: &[&str]) -> Output {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/python_files/4.14.1");
    Command::new(env!("CARGO_BIN_EXE_blosc2")).args(args).current_dir(folder).output().unwrap()
}

fn good(args: &[&str]) -> Vec<u8> {
    let output = run(args);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {output:?}");
    assert!(output.stderr.is_empty(), "{args:?}: {output:?}");
    output.stdout
}

fn text(args: &[&str]) -> String {
    String::from_utf8(good(args)).unwrap()
}

fn json_of(args: &[&str]) -> Value {
    serde_json::from_slice(&good(args)).unwrap()
}

fn bad(status: i32, args: &[&str]) -> String {
    let output = run(args);
    assert_eq!(output.status.code(), Some(status), "{args:?}: {output:?}");
    assert!(output.stdout.is_empty(), "{args:?}");
    let line = String::from_utf8(output.stderr).unwrap();
    assert_eq!(line.lines().count(), 1, "{line}");
    line
}

#[test]
fn trees_are_told() {
    for (file, form) in [("tree.b2d", "folder"), ("tree.b2z", "zip")] {
        let expected = json!({
            "path": file,
            "kind": "treestore",
            "form": form,
            "keys": ["/array", "/batches", "/group/chunks", "/group/deep/one", "/objects"],
            "groups": ["/group", "/group/deep"],
            "attributes": {"title": "a tree"},
        });
        assert_eq!(json_of(&["info", file, "--json"]), expected);
        let list =
            "/array\n/batches\n/group/\n/group/chunks\n/group/deep/\n/group/deep/one\n/objects\n";
        assert_eq!(text(&["ls", file]), list);
        for key in ["/group/deep", "/group/deep/"] {
            assert_eq!(text(&["ls", file, "--key", key]), "/group/deep/one\n");
        }
        let expected = json!({
            "path": file,
            "kind": "group",
            "keys": ["/group/chunks", "/group/deep/one"],
            "groups": ["/group/deep"],
            "attributes": {"pair": [1, 2.5]},
        });
        assert_eq!(json_of(&["info", file, "--key", "/group", "--json"]), expected);
        let long = json_of(&["ls", file, "--long", "--json"]);
        assert_eq!(long[0]["shape"], json!([100, 7]));
        let of = |at: usize| (&long[at]["key"], &long[at]["kind"], &long[at]["note"]);
        assert_eq!(of(2), (&json!("/group/"), &json!("group"), &json!("pair")));
        assert_eq!(of(5), (&json!("/group/deep/one"), &json!("ndarray"), &Value::Null));
        let info = json_of(&["info", file, "--key", "/array", "--json"]);
        assert_eq!((&info["kind"], &info["dtype"]), (&json!("ndarray"), &json!("<i4")));
    }
    let info = text(&["info", "tree.b2z"]);
    assert!(info.contains("\nkeys           /array, /batches, "), "{info}");
    assert!(info.contains("\nattributes     title: a tree\n"), "{info}");
    assert_eq!(json_of(&["info", "dict.b2z", "--json"])["kind"], "dictstore");
    assert_eq!(text(&["ls", "embedded.b2e"]), "/array\n/group/chunks\n");
}

#[test]
fn nodes_are_read() {
    for file in ["tree.b2d", "tree.b2z", "dict.b2d", "dict.b2z", "embedded.b2e"] {
        assert_eq!(good(&["cat", file, "--key", "/group/chunks"]), b"abc".repeat(100), "{file}");
        let row = good(&["cat", file, "--key", "/array", "--slice", "1"]);
        let numbers = row.chunks(4).map(|item| i32::from_le_bytes(item.try_into().unwrap()));
        assert!(numbers.eq(7..14), "{file}");
    }
    let folder = tempfile::tempdir().unwrap();
    let (copy, npy) = (folder.path().join("copy.b2nd"), folder.path().join("a.npy"));
    let (copy, npy) = (copy.to_str().unwrap(), npy.to_str().unwrap());
    good(&["copy", "tree.b2z", copy, "--key", "/array"]);
    assert_eq!(good(&["cat", copy]), good(&["cat", "tree.b2d", "--key", "/array"]));
    good(&["export", "tree.b2z", npy, "--key", "/array"]);
    assert!(std::fs::read(npy).unwrap().ends_with(&good(&["cat", copy])));
}

#[test]
fn tables_are_told() {
    for file in ["table.b2d", "table.b2z"] {
        let info = json_of(&["info", file, "--json"]);
        assert_eq!((&info["kind"], &info["nrows"]), (&json!("ctable"), &json!(8)));
        let first = json!({"name": "number", "kind": "int64", "nullable": false});
        assert_eq!(info["columns"][0], first);
        let names = "number\nratio\nyes\nname\ntext\nkind\nlong\nitems\nmaybe\n";
        assert_eq!(text(&["ls", file]), names);
        // All physical rows, including the two that were removed.
        let numbers = good(&["cat", file, "--key", "/_cols/number"]);
        assert_eq!(numbers[..16], [0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
        let names = names.trim_end().replace('\n', "\t");
        let first = "0\t0.0\tTrue\t'n0'\t''\t'kind 0'\t'ü0'\t[]\t0";
        let fourth = "4\t2.0\tTrue\t'n4'\t'éééé'\tNone\t'ü4'\t[0, 1, 2, 3]\t4";
        let rows = text(&["cat", file, "--slice", ":4:3"]);
        assert_eq!(rows, format!("{names}\n{first}\n{fourth}\n"));
        assert_eq!(text(&["cat", file]).lines().count(), 9);
        assert_eq!(text(&["cat", file, "--slice", "3:0"]), format!("{names}\n"));
    }
    let info = text(&["info", "table.b2z"]);
    assert!(info.contains("\ncolumns        number (int64), ratio (float32), "), "{info}");
}

#[test]
fn what_holds_values_is_told() {
    for (file, kind, shape) in [
        ("objects.b2frame", "objectarray", json!([12])),
        ("batches.b2b", "batcharray", json!([14])),
        ("lists.b2b", "listarray", json!([20])),
        ("lists_vl.b2frame", "listarray", json!([20])),
        ("tensor.bl2", "tensor", json!([10, 20])),
    ] {
        let info = json_of(&["info", file, "--json"]);
        assert_eq!((&info["kind"], &info["shape"]), (&json!(kind), &shape), "{file}");
    }
}

#[test]
fn what_is_no_data_is_told_and_refused() {
    for (file, kind, told) in [
        ("expression.b2nd", "lazyexpr", "`a + 2 * b`, of a: operand_a.b2nd, b: operand_b.b2nd"),
        ("function.b2nd", "lazyudf", "`twice`, of o0: operand_a.b2nd, o1: operand_b.b2nd"),
        ("proxy.b2nd", "proxy", "the cache of a Python proxy, of operand_a.b2nd"),
        ("pointers.b2nd", "ndarray", "its items `|O` are pointers"),
        ("pointers.bl2", "schunk", "its dtype is |O"),
    ] {
        let info = json_of(&["info", file, "--json"]);
        assert_eq!(info["kind"], kind, "{file}");
        assert!(info["note"].as_str().unwrap().contains(told), "{info}");
        let line = bad(1, &["cat", file]);
        assert!(line.contains(told), "{line}");
    }
}

#[test]
fn expressions_are_computed() {
    let bytes = |range: std::ops::Range<u8>| -> Vec<u8> {
        // `a + 2 * b`, both with the items 0 to 9.
        range.flat_map(|item| (3.0 * f64::from(item)).to_ne_bytes()).collect()
    };
    assert_eq!(good(&["cat", "expression.b2nd", "--evaluate"]), bytes(0..10));
    let part = ["--evaluate", "--slice", "2:4"];
    assert_eq!(good(&[&["cat", "expression.b2nd"][..], &part].concat()), bytes(2..4));
    let npy = good(&[&["export", "expression.b2nd", "-"][..], &part].concat());
    assert!(npy.starts_with(b"\x93NUMPY") && npy.ends_with(&bytes(2..4)), "{npy:?}");
    let csv = text(&[&["export", "expression.b2nd", "-", "--format", "csv"][..], &part].concat());
    assert!(csv.contains("6") && csv.contains("9") && !csv.contains("12"), "{csv}");
    let info = json_of(&["info", "expression.b2nd", "--evaluate", "--json"]);
    let result = ["shape", "dtype", "nbytes"].map(|name| &info[format!("result_{name}")]);
    assert_eq!(result, [&json!([10]), &json!("<f8"), &json!(80)], "{info}");
    assert_eq!(json_of(&["info", "expression.b2nd", "--json"])["result_shape"], json!(null));
    for (status, args, told) in [
        (2, &["info", "operand_a.b2nd", "--evaluate"][..], "requires a Python expression"),
        (1, &["info", "function.b2nd", "--evaluate"], "evaluate an expression"),
        (2, &["info", "expression.b2nd", "--evaluate", "--stats"], "cannot be used with"),
        (2, &["cat", "expression.b2nd", "--evaluate", "--csv"], "cannot be used with"),
        (2, &["cat", "expression.b2nd", "--evaluate", "--json"], "cannot be used with"),
        (2, &["cat", "expression.b2nd", "--evaluate", "--columns", "a"], "cannot be used with"),
        (2, &["cat", "expression.b2nd", "--evaluate", "--where", "a > 1"], "cannot be used with"),
        (2, &["cat", "expression.b2nd", "--evaluate", "--engine", "c"], "cannot be used with"),
        (
            2,
            &["export", "expression.b2nd", "-", "--evaluate", "--where", "a > 1"],
            "require a table",
        ),
        (2, &["cat", "operand_a.b2nd", "--evaluate"], "requires a Python expression"),
        (1, &["cat", "function.b2nd", "--evaluate"], "evaluate an expression"),
    ] {
        let line = bad(status, args);
        assert!(line.contains(told), "{args:?}: {line}");
    }
}

#[test]
fn what_cannot_be_is_told() {
    for (status, args, told) in [
        (1, &["cat", "tree.b2z"][..], "this is a store; `ls` lists its entries"),
        (1, &["copy", "tree.b2d", "x"], "this is a store; `ls` lists its entries"),
        (
            1,
            &["copy", "table.b2z", "x"],
            "this is a table; `ls` lists its columns, --key /_cols/NAME",
        ),
        (1, &["export", "table.b2z", "x"], "it is a table, and the format of a table is `.csv`"),
        (
            2,
            &["cat", "table.b2z", "--engine", "rust"],
            "--engine rust cannot be combined with a table",
        ),
        (1, &["cat", "tree.b2z", "--key", "/group"], "this is a group; `ls --key /group` lists"),
        (1, &["info", "tree.b2z", "--key", "/none"], "no key `/none`"),
        (1, &["cat", "tree.b2z", "--key", "/none"], "no key `/none`"),
        (1, &["cat", "embedded.b2e", "--key", "/none"], "no key `/none`"),
        (1, &["cat", "scalar.b2nd", "--key", "/a"], "not a store"),
        (1, &["ls", "scalar.b2nd"], "it is neither a store nor a table"),
        (1, &["ls", "tree.b2z", "--key", "/array"], "it is neither a store nor a table"),
        (1, &["ls", "tree.b2z", "--key", "/none"], "no key `/none`"),
        (1, &["ls", "none"], "none"),
        (1, &["info", "tree.b2z", "--chunks"], "this is a store"),
        (2, &["cat", "tree.b2z", "--key", "/array", "--engine", "rust"], "--engine rust"),
        (2, &["cat", "tree.b2z", "--key", "/array", "--offset", "3"], "--offset"),
    ] {
        let line = bad(status, args);
        assert!(line.contains(told), "{args:?}: {line}");
    }
}

#[test]
fn entries_of_stores_are_viewed_and_compared() {
    for file in ["tree.b2d", "tree.b2z"] {
        let info = json_of(&["info", file, "--key", "/array", "--json"]);
        let viewed = json_of(&["view", file, "--key", "/array", "--json"]);
        assert_eq!((&viewed["dtype"], &viewed["shape"]), (&info["dtype"], &info["shape"]));
        let stats = json_of(&["info", file, "--key", "/array", "--stats", "--json"]);
        assert_eq!(stats["stats"]["mean"], viewed["mean"]);
        for args in [&["info", file, "--stats"][..], &["info", file, "--stats", "--key", "/group"]]
        {
            let line = bad(1, args);
            let expected = format!("cannot compute statistics ({file}): this is a store, a group");
            assert!(line.contains(&expected), "{line}");
        }
        let args = ["bench", file, "--key", "/array", "--codecs", "lz4", "--levels", "1", "--json"];
        let compared = json_of(&args);
        let current =
            compared["rows"].as_array().unwrap().iter().find(|row| row["current"] == true);
        assert_eq!(current.unwrap()["codec"], info["codec"]);
        for command in ["view", "bench"] {
            assert!(bad(1, &[command, file]).contains("this is a store"));
            assert!(bad(1, &[command, file, "--key", "/group"]).contains("this is a group"));
        }
    }
}

#[test]
fn metalayers_of_entries_are_read() {
    for file in ["tree.b2d", "tree.b2z", "dict.b2z", "embedded.b2e"] {
        let text = text(&["meta", file, "--key", "/array"]);
        assert!(text.contains("b2nd"), "{file}: {text}");
        let raw = good(&["meta", file, "get", "b2nd", "--fixed", "--raw", "--key", "/array"]);
        assert!(!raw.is_empty(), "{file}");
        let line = bad(2, &["meta", file, "--key", "/array", "set", "a", "1"]);
        assert!(line.contains("metalayers in a store cannot be changed"), "{line}");
    }
}

#[test]
fn the_key_of_the_root_lists_all() {
    for file in ["tree.b2d", "tree.b2z", "table.b2z", "embedded.b2e"] {
        assert_eq!(text(&["ls", file, "--key", "/"]), text(&["ls", file]), "{file}");
        assert_eq!(text(&["info", file, "--key", "/"]), text(&["info", file]), "{file}");
    }
}

#[test]
fn keys_of_files_that_are_no_stores_are_refused() {
    let reason = "not a store; leave out --key";
    for command in ["cat", "view", "bench", "info", "ls"] {
        let line = bad(1, &[command, "scalar.b2nd", "--key", "/a"]);
        assert_eq!(
            line,
            format!("blosc2: cannot open (scalar.b2nd): this is an array, {reason}\n")
        );
        let line = bad(1, &[command, "objects.b2frame", "--key", "/a"]);
        assert!(line.contains(&format!(": this is a super-chunk, {reason}\n")), "{line}");
    }
    // Only the second file is a store.
    let line = bad(1, &["diff", "scalar.b2nd", "tree.b2z", "--key", "/array"]);
    let hint = "; --other-key is the key in the second file\n";
    assert!(line.ends_with(&format!("{reason}{hint}")), "{line}");
}

#[test]
fn embedded_stores_without_a_key_are_no_data() {
    for args in
        [&["cat"][..], &["cat", "--text"], &["cat", "--engine", "rust"], &["view"], &["bench"]]
    {
        let line = bad(1, &[args, &["embedded.b2e"]].concat());
        let expected = "cannot open (embedded.b2e): this is a store; `ls` lists its entries, --key selects one";
        assert_eq!(line, format!("blosc2: {expected}\n"), "{args:?}");
    }
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.b2e");
    let copy = copy.to_str().unwrap();
    good(&["copy", "embedded.b2e", copy]);
    assert_eq!(text(&["ls", copy]), text(&["ls", "embedded.b2e"]));
    let args = ["--key", "/array"];
    let [original, copied] =
        ["embedded.b2e", copy].map(|file| good(&[&["cat", file], &args[..]].concat()));
    assert_eq!(original, copied);
}
