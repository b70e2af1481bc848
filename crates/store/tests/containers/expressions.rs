//! Expressions that Python stored: their results are those of NumPy, and files cannot lead out of their folder.

use std::fs;
use std::path::Path;

use blosc2::{Dtype, ErrorKind, Limits, NDArray, OpenOptions, RawItems, Value};
use blosc2_store::{Carrier, Expression, Object, TreeStore};
use half::f16;

use crate::common::{Rng, run_python};
use crate::pure;

/// What the script writes to a file.
fn json(folder: &Path, file: &str) -> serde_json::Value {
    serde_json::from_slice(&fs::read(folder.join(file)).unwrap()).unwrap()
}

fn text<'a>(json: &'a serde_json::Value, name: &str) -> &'a str {
    json[name].as_str().unwrap()
}

fn carrier(path: &Path) -> Carrier {
    match Object::open(path).unwrap() {
        Object::Carrier(carrier) => carrier,
        other => panic!("{}: {}", path.display(), other.kind()),
    }
}

fn floats(dtype: &Dtype, bytes: &[u8]) -> Vec<f64> {
    let items = bytes.chunks_exact(dtype.size());
    let float = |item: &[u8]| match item.len() {
        2 => f16::from_ne_bytes(item.try_into().unwrap()).into(),
        4 => f32::from_ne_bytes(item.try_into().unwrap()).into(),
        _ => f64::from_ne_bytes(item.try_into().unwrap()),
    };
    items.map(float).collect()
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn expressions_have_the_results_of_numpy() {
    let seed = 20_261_129;
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    run_python(include_str!("expressions.py"), folder, &[&seed.to_string()]);
    let cases = json(folder, "cases.json");
    let cases = cases.as_array().unwrap();
    assert_eq!(cases.len(), 300 + 42);
    let data = fs::read(folder.join("expected.bin")).unwrap();
    let mut wrong = Vec::new();
    for case in cases {
        let (text, file, stated) = (text(case, "text"), case["file"].as_str(), text(case, "dtype"));
        let shape: Vec<u64> = serde_json::from_value(case["shape"].clone()).unwrap();
        // How far each item may be away. Without a list, all bits are equal.
        let within: Option<Vec<f64>> = serde_json::from_value(case["within"].clone()).unwrap();
        let at = |index: usize| case["expected"][index].as_u64().unwrap() as usize;
        let expected = &data[at(0)..at(1)];
        let open = |name: &serde_json::Value| {
            let name = name.as_str().unwrap().to_owned();
            (name.clone(), NDArray::open(folder.join(name + ".b2nd")).unwrap())
        };
        if let Some(file) = file {
            pure::assert_same(&folder.join(file));
        }
        let opened = match file {
            Some(file) => carrier(&folder.join(file)).open_expression(folder),
            None => Expression::new(text, case["operands"].as_array().unwrap().iter().map(open)),
        };
        let expression = match opened {
            Ok(expression) => expression,
            Err(error) => {
                wrong.push(format!("{text}: {error}"));
                continue;
            }
        };
        let dtype = Dtype::parse(stated).unwrap();
        assert_eq!((expression.dtype(), expression.shape()), (&dtype, &shape[..]), "{text}");
        let array = expression.to_array(NDArray::builder()).unwrap();
        let found = array.read::<RawItems>(..).unwrap().0;
        let all: Vec<_> = shape.iter().map(|size| 0..*size).collect();
        assert_eq!(expression.read(&all).unwrap(), found, "{text}");
        // A part has the items of the whole.
        let part: Vec<_> = shape.iter().map(|size| size / 3..*size).collect();
        assert_eq!(expression.read(&part).unwrap(), array.read::<RawItems>(&part[..]).unwrap().0);
        if found == expected {
            continue;
        }
        if dtype.kind() != Some(blosc2::dtype::Kind::Float) {
            wrong.push(format!("{text}: {found:?}, expected {expected:?}"));
            continue;
        }
        let pairs = floats(&dtype, &found).into_iter().zip(floats(&dtype, expected));
        for (at, (found, expected)) in pairs.enumerate() {
            // The sign of the smaller of two zeros depends on NumPy's SIMD code.
            let same = found == expected || found.is_nan() && expected.is_nan();
            let near = within.as_ref().is_some_and(|within| (found - expected).abs() <= within[at]);
            if !same && !near {
                wrong.push(format!("{text}: item {at}: {found:e}, expected {expected:e}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} differences\n{}", wrong.len(), wrong.join("\n"));

    let others = json(folder, "others.json");
    let others = others.as_array().unwrap();
    assert_eq!(others.len(), 50);
    for other in others {
        let (text, file) = (text(other, "text"), text(other, "file"));
        let carrier = carrier(&folder.join(file));
        assert!(carrier.to_string().contains("a Python lazy "), "{carrier}");
        let error = carrier.open_expression(folder).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{text}: {error}");
    }
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn computed_columns_have_the_values_of_python() {
    let script = r#"
import dataclasses, json
import numpy as np
import blosc2

@dataclasses.dataclass
class Row:
    n: int = blosc2.field(blosc2.int32())
    x: float = blosc2.field(blosc2.float64())

table = blosc2.CTable(Row, urlpath="t.b2d", mode="w")
table.extend([(i, i / 4) for i in range(200_000)])
table.add_computed_column("double", lambda cols: cols["n"] * 2 + cols["x"])
table.add_computed_column("large", "(x > 100) & (n < 900)")
# More than 1 MiB, and more than the bytes of `n`.
table.add_computed_column("half", "n * 0.5")
table.delete([3, 5, 7])
names = ["double", "large", "half"]
expected = {name: table[name][:].tolist() for name in names}
table.close()

@dataclasses.dataclass
class Other:
    n: int = blosc2.field(blosc2.int8())
    k: int = blosc2.field(blosc2.int32())
    x: float = blosc2.field(blosc2.float32())

table = blosc2.CTable(Other, urlpath="others.b2d", mode="w")
table.extend([(i, 7 * i, i / 8) for i in range(6)])
table.add_computed_column("quotient", "k / 2")
table.add_computed_column("sine", "sin(n * 0)")
# The exponent of the first row is negative.
table.add_computed_column("power", "n ** (n - 1)")
table.add_generated_column("wide", values="x * 4", dtype=blosc2.float64())
table.add_generated_column("cut", values="x * 10", dtype=blosc2.int64())
table.n[2] = 2
table.x[2] = 9.5
expected["quotient"] = table["quotient"][:].tolist()
expected["sine"] = table["sine"][:].tolist()
expected["wide"] = (table["x"][:] * np.float32(4)).astype("f8").tolist()
expected["cut"] = (table["x"][:] * np.float32(10)).astype("i8").tolist()
table.close()
json.dump(expected, open("expected.json", "w"))
"#;
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    run_python(script, folder, &[]);
    let expected = json(folder, "expected.json");
    let double: Vec<f64> = serde_json::from_value(expected["double"].clone()).unwrap();
    let large: Vec<bool> = serde_json::from_value(expected["large"].clone()).unwrap();
    let Object::CTable(table) = Object::open(folder.join("t.b2d")).unwrap() else { panic!() };
    let (dtype, bytes) = table.evaluate("double", ..).unwrap();
    assert_eq!(dtype, Dtype::parse("=f8").unwrap());
    assert_eq!(floats(&dtype, &bytes), double);
    let (dtype, bytes) = table.evaluate("half", ..).unwrap();
    let half: Vec<f64> = serde_json::from_value(expected["half"].clone()).unwrap();
    assert_eq!((half.len(), floats(&dtype, &bytes)), (199_997, half));
    let (dtype, bytes) = table.evaluate("large", ..).unwrap();
    assert_eq!(dtype, Dtype::parse("|b1").unwrap());
    assert_eq!(bytes, large.iter().map(|item| u8::from(*item)).collect::<Vec<_>>());
    let (dtype, bytes) = table.evaluate("double", [5, 2]).unwrap();
    assert_eq!(floats(&dtype, &bytes), [double[5], double[2]]);
    assert_eq!(table.evaluate("n", ..).unwrap_err().kind(), ErrorKind::TypeMismatch);
    let values = table.evaluated_values("double", [5, 2]).unwrap();
    assert_eq!(values, [double[5].into(), double[2].into()]);
    assert_eq!(table.evaluated_values("n", [5, 2]).unwrap(), table.values("n", [5, 2]).unwrap());
    pure::assert_same(&folder.join("t.b2d"));
    // Python converts generated columns, and writes the name of a class as the dtype of a quotient.
    let Object::CTable(table) = Object::open(folder.join("others.b2d")).unwrap() else { panic!() };
    for name in ["wide", "cut", "quotient", "sine"] {
        let values = table.evaluated_values(name, ..).unwrap();
        let number = |value: &Value| match value {
            Value::Int(number) => *number as f64,
            Value::Float(number) => *number,
            other => panic!("{other}"),
        };
        let values: Vec<f64> = values.iter().map(number).collect();
        let expected: Vec<f64> = serde_json::from_value(expected[name].clone()).unwrap();
        assert_eq!(values, expected, "{name}");
    }
    assert!(table.column("wide").unwrap().is_stale() && table.column("cut").unwrap().is_stale());
    assert_eq!(table.evaluate("wide", ..).unwrap().0, Dtype::parse("=f8").unwrap());
    assert_eq!(table.evaluate("sine", ..).unwrap().0, Dtype::parse("=f2").unwrap());
    let error = table.evaluated_values("power", ..).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("column `power`"), "{error}");
    assert_eq!(table.evaluated_values("power", 1..3).unwrap(), [1.into(), 2.into()]);
    pure::assert_same(&folder.join("others.b2d"));
    // The items fit into the memory limit, and their values do not.
    let limited = Object::open_with_limits(folder.join("t.b2d"), Limits::default(), Some(3 << 20));
    let Object::CTable(limited) = limited.unwrap() else { panic!() };
    assert_eq!(limited.evaluate("double", ..).unwrap().1.len(), 8 * 199_997);
    let error = limited.evaluated_values("double", ..).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
    assert_eq!(limited.evaluated_values("double", 0..1000).unwrap().len(), 1000);
}

/// The bytes of all items.
fn items(expression: &Expression) -> Vec<u8> {
    let all: Vec<_> = expression.shape().iter().map(|size| 0..*size).collect();
    expression.read(&all).unwrap()
}

/// A file with an expression of three items.
fn save(path: &Path, text: &str, operands: &[(&str, &str)]) {
    let reference = |(name, path): &(&str, &str)| {
        (Value::from(*name), Value::from([("kind", "urlpath".into()), ("urlpath", (*path).into())]))
    };
    save_as(path, "<f8", text, Value::Map(operands.iter().map(reference).collect()));
}

fn save_as(path: &Path, dtype: &str, text: &str, operands: Value) {
    let builder = NDArray::builder().dtype(dtype, 8);
    let array = builder.from_slice(RawItems(&[0; 24]), 3).unwrap();
    let frame = array.schunk().to_cframe().unwrap();
    let mut schunk = OpenOptions::new().write(true).open(frame).unwrap();
    let content =
        [("kind", "lazyexpr".into()), ("expression", text.into()), ("operands", operands)];
    schunk.vlmeta_mut().with_reserved().set_value("b2o", &Value::from(content)).unwrap();
    schunk.save(path).unwrap();
}

#[test]
fn references_do_not_lead_out_of_the_folder() {
    let parent = tempfile::tempdir().unwrap();
    let folder = &parent.path().join("folder");
    fs::create_dir_all(folder.join("below")).unwrap();
    let array = NDArray::from_slice(&[1.0f64, 2.0, 3.0], 3).unwrap();
    for path in ["a.b2nd", "below/a.b2nd", "../a.b2nd"] {
        array.save(folder.join(path)).unwrap();
    }
    let file = folder.join("e.b2nd");
    let open = |path: &str| {
        let _ = fs::remove_file(&file);
        save(&file, "a + 1", &[("a", path)]);
        carrier(&file).open_expression(folder)
    };
    for path in ["a.b2nd", "below/a.b2nd", "./a.b2nd", "below/./a.b2nd"] {
        let items = open(path).unwrap().to_array(NDArray::builder()).unwrap();
        assert_eq!(items.read::<Vec<f64>>(..).unwrap(), [2.0, 3.0, 4.0]);
    }
    let absolute = folder.join("a.b2nd");
    let absolute = absolute.to_str().unwrap();
    let refused = [
        "../a.b2nd",
        "below/../../a.b2nd",
        absolute,
        "https://host.org/a.b2nd",
        "file://a.b2nd",
        "",
        ".",
        "..",
        "./../a.b2nd",
    ];
    for path in refused {
        let error = open(path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{path}: {error}");
        assert!(error.to_string().contains("`a`"), "{error}");
    }
    #[cfg(unix)]
    for (link, target) in [("link.b2nd", "../a.b2nd"), ("link", "..")] {
        std::os::unix::fs::symlink(target, folder.join(link)).unwrap();
        let path = if link == "link" { "link/a.b2nd" } else { link };
        assert!(open(path).is_err(), "{path}");
    }
    assert_eq!(open("missing.b2nd").unwrap_err().kind(), ErrorKind::NotFound);
    // The caller's operands need no file.
    save(&folder.join("f.b2nd"), "a * 2", &[("a", "https://host.org/a.b2nd")]);
    let expression = carrier(&folder.join("f.b2nd")).expression_with([("a", array)]).unwrap();
    assert_eq!(floats(expression.dtype(), &items(&expression)), [2.0, 4.0, 6.0]);

    // An entry of a store in a directory.
    let mut store = TreeStore::create(folder.join("store.b2d")).unwrap();
    let array = NDArray::from_slice(&[5.0f64, 6.0, 7.0], 3).unwrap();
    store.insert("/group/entry", array.schunk()).unwrap();
    store.finish().unwrap();
    drop(store);
    let mut entry = vec![
        (Value::from("kind"), Value::from("dictstore_key")),
        ("urlpath".into(), "./store.b2d".into()),
    ];
    let of = |reference: &[(Value, Value)]| {
        Value::Map(vec![("a".into(), Value::Map(reference.to_vec()))])
    };
    save_as(&folder.join("whole.b2nd"), "<f8", "a - 1", of(&entry));
    let error = carrier(&folder.join("whole.b2nd")).open_expression(folder).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    entry.push(("key".into(), "/group/entry".into()));
    save_as(&folder.join("entry.b2nd"), "<f8", "a - 1", of(&entry));
    let expression = carrier(&folder.join("entry.b2nd")).open_expression(folder).unwrap();
    assert_eq!(floats(expression.dtype(), &items(&expression)), [4.0, 5.0, 6.0]);
    #[cfg(unix)]
    {
        fs::rename(folder.join("store.b2d"), parent.path().join("store.b2d")).unwrap();
        std::os::unix::fs::symlink("../store.b2d", folder.join("store.b2d")).unwrap();
        assert!(carrier(&folder.join("entry.b2nd")).open_expression(folder).is_err());
    }

    // The file states another byte order, and the results are in native order.
    save_as(
        &folder.join("big.b2nd"),
        ">f8",
        "a + 1",
        of(&[("kind".into(), "urlpath".into()), ("urlpath".into(), "a.b2nd".into())]),
    );
    let expression = carrier(&folder.join("big.b2nd")).open_expression(folder).unwrap();
    assert_eq!(floats(expression.dtype(), &items(&expression)), [2.0, 3.0, 4.0]);

    // Expressions of expressions, and of themselves.
    save(&folder.join("g.b2nd"), "a * a", &[("a", "e.b2nd")]);
    let _ = fs::remove_file(&file);
    save(&file, "a + 1", &[("a", "a.b2nd")]);
    let nested = carrier(&folder.join("g.b2nd")).open_expression(folder).unwrap();
    assert_eq!(floats(nested.dtype(), &items(&nested)), [4.0, 9.0, 16.0]);
    let error = open("e.b2nd").unwrap_err();
    assert!(error.to_string().contains("refer to each other"), "{error}");
    let _ = fs::remove_file(&file);
    let twice = [("a", "e.b2nd"), ("b", "e.b2nd")];
    save(&file, "a + b", &twice);
    assert!(carrier(&file).open_expression(folder).is_err());
}

#[test]
fn hostile_expressions_are_errors() {
    let array = || NDArray::from_slice(&[1i8, -128, 0], 3).unwrap();
    let evaluate = |text: &str| {
        let expression = Expression::new(text, [("a", array()), ("b", array())])?;
        expression.to_array(NDArray::builder())
    };
    let deep =
        |open: &str, close: &str| format!("{}a{}", open.repeat(20_000), close.repeat(20_000));
    let refused = [
        deep("(", ")"),
        deep("-", ""),
        deep("abs(", ")"),
        deep("a + (", ")"),
        deep("a ** ", ""),
        deep("", " + a"),
        deep("", ".sum()"),
        deep("(", ""),
        deep("(a,", ")"),
        "a".repeat(100_000),
        "1".repeat(60_000),
        format!("a + {}", "9".repeat(39)),
        "__import__('os').system('true')".to_owned(),
        "a.__class__".to_owned(),
        "lambda: a".to_owned(),
        "open(a)".to_owned(),
        "a if a else b".to_owned(),
        "a < b < a".to_owned(),
        "a and b".to_owned(),
        String::new(),
        "a b".to_owned(),
        "c".to_owned(),
        "a ** b".to_owned(),
        "a + 128".to_owned(),
        "sum(a, axis=1)".to_owned(),
        "sum(a, axis=(0, 0))".to_owned(),
        "1e400j + a".to_owned(),
        "where(a)".to_owned(),
        "sin(a, out=b)".to_owned(),
        "\u{0}".to_owned(),
        "a\u{a0}+\u{2003}é".to_owned(),
    ];
    for text in refused {
        assert!(evaluate(&text).is_err(), "{}", &text[..text.len().min(60)]);
    }
    let extreme = [
        "a // b",
        "a % b",
        "a // -1",
        "a << b",
        "a >> b",
        "-a",
        "abs(a)",
        "a * a",
        "a / 0",
        "a - 1e308 * 10",
    ];
    for text in extreme {
        evaluate(text).unwrap();
    }
    // Random texts of tokens and of bytes: results or errors.
    let mut rng = Rng(55);
    let tokens = [
        "a", "b", "c", "1", "2.5", "1e9", "(", ")", ",", "+", "-", "*", "/", "//", "%", "**", "<",
        "==", "&", "~", "<<", "sum", "where", "sin", "axis", "=", "None", "True", ".", "min",
        "clip", "keepdims", "[", "'", "std",
    ];
    let mut good = 0;
    for _ in 0..4_000 {
        let text: Vec<&str> = (0..=rng.index(12)).map(|_| *rng.pick(&tokens)).collect();
        good += usize::from(evaluate(&text.concat()).is_ok());
        let bytes: Vec<u8> = {
            let len = rng.index(40);
            rng.bytes(len)
        };
        let _ = evaluate(&String::from_utf8_lossy(&bytes));
    }
    assert!(good > 10, "{good}");
}
