//! Dtypes against NumPy's: each side reads the dtypes of the other, and both compare dtypes, lay out items and swap
//! bytes in the same way.

use crate::common::run_python;
use blosc2::elements::{
    Attoseconds, DateTime64, Days, Femtoseconds, FixedBytes, FixedStr, Hours, Microseconds,
    Milliseconds, Minutes, Months, Nanoseconds, Picoseconds, Seconds, TimeDelta64, TimeUnit, Void,
    Weeks, Years,
};
use blosc2::{Dtype, Element, NDArray, RawItems};
use blosc2_format::npy::Header;
use serde_json::Value;
use tempfile::TempDir;

/// Creates dtypes of all kinds, nested at random with a fixed seed.
const DTYPES: &str = r#"
import ast, itertools, json, random, re, sys
import numpy as np

SCALARS = "|b1 |i1 |u1 |S10 |S1 |S0 |V5 |V1 |V0".split()
for kind in "i2 i4 i8 u2 u4 u8 f2 f4 f8 f16 c8 c16 c32 U3 U10 U0 M8 m8".split():
    SCALARS += ["<" + kind, ">" + kind]
for unit in "Y M W D h m s ms us ns ps fs as".split():
    SCALARS += [f"<M8[{unit}]", f">m8[{unit}]", f"<m8[25{unit}]"]
NAMES = ["a", "b", "x y", "it's", 'say "x"', "'\"", "é", "日本", "back\\slash", "tab\t", "f0", "f1", "0", "\x01"]

rng = random.Random(7)

def shape():
    return tuple(rng.choice([1, 2, 3]) for _ in range(rng.randrange(4)))

def dtype(depth):
    kind = rng.random()
    if depth == 0 or kind < 0.3:
        return np.dtype(rng.choice(SCALARS))
    if kind < 0.45:
        item = dtype(depth - 1)
        # NumPy has no arrays of items without bytes.
        return np.dtype((item, shape())) if item.itemsize else item
    names = rng.sample(NAMES, rng.randrange(1, 5))
    formats = [dtype(depth - 1) for _ in names]
    titles = [None if rng.random() < 0.8 else "T " + name for name in names]
    if kind < 0.75:
        keys = [name if title is None else (title, name) for name, title in zip(names, titles)]
        return np.dtype(list(zip(keys, formats)), align=rng.random() < 0.3)
    offsets, end = [], 0
    for each in formats:
        end += rng.randrange(4)
        offsets.append(end)
        end += 0 if rng.random() < 0.1 else each.itemsize
    if rng.random() < 0.2:
        offsets.reverse()
    end = max(offset + each.itemsize for offset, each in zip(offsets, formats)) + rng.randrange(3)
    fields = dict(names=names, formats=formats, offsets=offsets, itemsize=end)
    if any(titles):
        fields["titles"] = titles
    return np.dtype(fields)

dtypes = [np.dtype(each) for each in SCALARS]
dtypes += [np.dtype([]), np.dtype("O"), np.dtype([("o", "O"), ("n", "<i4")])]
dtypes += [np.dtype((np.record, [("a", "<i4"), ("b", "i1")]))]
while len(dtypes) < 600:
    dtypes.append(dtype(rng.randrange(1, 4)))

def text(dtype):
    return str(dtype) if dtype.kind == "V" else dtype.str

def read(text):
    """As Python's blosc2 does it, but that it does not expect the last of these errors."""
    try:
        return np.dtype(text)
    except (TypeError, ValueError, SyntaxError):
        return np.dtype(ast.literal_eval(text))

def is_lossless(dtype):
    try:
        return read(text(dtype)) == dtype
    except ValueError:
        # The class of records is no literal; and fields are not where they would be if they were aligned.
        return False
"#;

fn python(script: &str, arguments: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let printed = run_python(&format!("{DTYPES}\n{script}"), folder.path(), arguments);
    serde_json::from_str(&printed).unwrap()
}

fn parse(text: &str) -> Dtype {
    Dtype::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn what_numpy_writes_is_read() {
    let script = r#"
def descr(dtype):
    try:
        return repr(np.lib.format.dtype_to_descr(dtype)) if dtype.subdtype is None else None
    except ValueError:
        return None

def fields(dtype):
    if dtype.fields is None:
        return None
    return [[name, *dtype.fields[name][1:2], *dtype.fields[name][2:]] for name in dtype.names]

print(json.dumps([dict(
    text=text(dtype), size=dtype.itemsize, descr=descr(dtype), fields=fields(dtype), lossless=is_lossless(dtype),
    native=str(dtype.newbyteorder("=").str), is_native=dtype.newbyteorder("=") == dtype, object=dtype.hasobject,
    shape=dtype.shape,
) for dtype in dtypes]))
"#;
    let found = python(script, &[]);
    let found = found.as_array().unwrap();
    assert!(found.len() == 600);
    let (mut lossy, mut with_descr) = (0, 0);
    for each in found {
        let text = each["text"].as_str().unwrap();
        if !each["lossless"].as_bool().unwrap() && !text.contains("numpy.record") {
            // Where one of two nested structures is aligned and the other is not, the text does not tell.
            lossy += 1;
            continue;
        }
        let dtype = parse(text);
        assert_eq!(dtype.has_pointers(), each["object"].as_bool().unwrap(), "{text}");
        let shape: Vec<u64> = serde_json::from_value(each["shape"].clone()).unwrap();
        assert_eq!(dtype.subarray().map_or(&[][..], |(_, shape)| shape), shape, "{text}");
        assert_eq!(dtype.size() as u64, each["size"].as_u64().unwrap(), "{text}");
        if !text.contains("numpy.record") {
            assert_eq!(dtype.to_string(), text);
        }
        assert_eq!(dtype.is_native(), each["is_native"].as_bool().unwrap(), "{text}");
        if dtype.kind().is_some() {
            assert_eq!(dtype.to_native().to_string(), each["native"].as_str().unwrap(), "{text}");
        }
        let fields = dtype.fields().map(|fields| {
            fields.iter().map(|field| match field.title() {
                None => serde_json::json!([field.name(), field.offset()]),
                Some(title) => serde_json::json!([field.name(), field.offset(), title]),
            })
        });
        let fields: Option<Vec<Value>> = fields.map(Iterator::collect);
        // An empty structure has no fields to NumPy.
        if fields.as_ref().is_none_or(|fields| !fields.is_empty()) {
            assert_eq!(serde_json::json!(fields), each["fields"], "{text}");
        }
        match each["descr"].as_str() {
            Some(descr) => {
                assert_eq!(dtype.to_descr().unwrap(), descr, "{text}");
                assert_eq!(Dtype::from_descr(descr).unwrap(), dtype, "{text}");
                with_descr += 1;
            }
            None => assert!(dtype.subarray().is_some() || dtype.to_descr().is_err(), "{text}"),
        }
    }
    assert!(lossy < 100 && with_descr > 300, "{lossy} {with_descr}");
}

/// The texts that NumPy accepts of those in the script below, and the standard form of each.
const NUMPY_TEXTS: &str = include_str!("../../crates/format/src/dtype/numpy_texts.txt");

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn names_and_codes_are_those_of_numpy() {
    let script = r#"
import string, warnings

warnings.simplefilter("ignore")
names = {name for name in np.sctypeDict if isinstance(name, str)} | set(string.ascii_letters) | {"?"}
names |= {"datetime64", "timedelta64", "double", "int0", "bool8", "float96"}
ends = ["", "0", "1", "2", "3", "4", "8", "08", "10", "16", "32", "[s]", "[25ns]", "[μs]", "[generic]"]
texts = {}
for begin, name, end in itertools.product(["", "<", ">", "=", "|", "!"], sorted(names), ends):
    text = begin + name + end
    try:
        dtype = np.dtype(text)
    except TypeError:
        texts[text] = None
    else:
        # The characters of `StringDType` are not in the items.
        texts[text] = None if dtype.kind == "T" else dtype.str
print(json.dumps(texts))
"#;
    let found = python(script, &[]);
    let found: std::collections::BTreeMap<String, Option<String>> =
        serde_json::from_value(found).unwrap();
    assert!(found.len() > 5000, "{}", found.len());
    let mut accepted = String::new();
    for (text, standard) in &found {
        let parsed = Dtype::parse(text).ok().map(|dtype| dtype.to_string());
        assert_eq!(&parsed, standard, "{text}");
        if let Some(standard) = standard {
            accepted += &format!("{text} {standard}\n");
        }
    }
    assert_eq!(accepted, NUMPY_TEXTS, "crates/format/src/dtype/numpy_texts.txt is the first text");
}

/// The names in the dtypes of files that Python opens.
const FILES: &str = r#"
import blosc2, sys
import numpy as np

for path in sys.argv[1:]:
    array = blosc2.open(path, mode="r")
    print(array.dtype.str, array[:].astype("f8").sum())
"#;

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn python_opens_files_whose_dtype_is_a_name() {
    let folder = TempDir::new().unwrap();
    let texts = ["float64", "double", "int64", "uint64", "d", "l", "Q", "<q", ">f8"];
    for (number, text) in texts.iter().enumerate() {
        let builder = NDArray::builder().target(folder.path().join(number.to_string()));
        let array = builder.dtype(text, 8).from_slice(RawItems(&[0; 24]), [3]).unwrap();
        assert_eq!(array.dtype_str(), Some(*text));
    }
    let names: Vec<String> = (0..texts.len()).map(|number| number.to_string()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let printed = run_python(FILES, folder.path(), &names);
    let expected = texts.map(|text| format!("{} 0.0\n", parse(text))).concat();
    assert_eq!(printed, expected);
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn what_is_written_is_read_by_numpy() {
    // From `descr`, which says padding everywhere, unlike NumPy's text.
    let script = r#"
texts, wrong = {}, []
for dtype in dtypes:
    if dtype.subdtype is None:
        try:
            texts[repr(np.lib.format.dtype_to_descr(dtype))] = dtype
        except ValueError:
            pass
if len(sys.argv) < 2:
    print(json.dumps(list(texts)))
else:
    written = json.loads(open(sys.argv[1]).read())
    for descr, text in written.items():
        if read(text) != texts[descr]:
            wrong.append([descr, text])
    print(json.dumps(wrong if len(written) == len(texts) else None))
"#;
    let descrs = python(script, &[]);
    let written: serde_json::Map<String, Value> =
        descrs.as_array().unwrap().iter().fold(serde_json::Map::new(), |mut written, descr| {
            let descr = descr.as_str().unwrap();
            let dtype = Dtype::from_descr(descr).unwrap();
            assert_eq!(parse(&dtype.to_string()), dtype);
            written.insert(descr.to_owned(), dtype.to_string().into());
            written
        });
    assert!(written.len() > 200, "{}", written.len());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("written.json");
    std::fs::write(&path, serde_json::to_string(&written).unwrap()).unwrap();
    let wrong = python(script, &[path.to_str().unwrap()]);
    assert_eq!(wrong, serde_json::json!([]));
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn they_are_equal_where_numpy_says_so() {
    let script = r#"
some = dtypes[:80] + rng.sample([dtype for dtype in dtypes[120:] if is_lossless(dtype)], 60)
some += [dtype.newbyteorder() for dtype in some[80:]]
for fields in itertools.permutations([("a", "<i4"), ("b", ">i2")]):
    for names in itertools.permutations("ab"):
        some.append(np.dtype([(name, kind) for name, (_, kind) in zip(names, fields)]))
        some.append(np.dtype([((name * 2, name), kind) for name, (_, kind) in zip(names, fields)]))
        for offsets in [[0, 4], [4, 0], [0, 5], [0, 0]]:
            for size in [9, 10]:
                formats = [kind for _, kind in fields]
                some.append(np.dtype(dict(names=names, formats=formats, offsets=offsets, itemsize=size)))
some += [np.dtype(("<i4", shape)) for shape in [(1,), (2,), (2, 1), (1, 2)]]
some.append(np.dtype((np.dtype(("<i4", (2,))), (1,))))
print(json.dumps([[text(dtype) for dtype in some], [[one == other for other in some] for one in some]]))
"#;
    let found = python(script, &[]);
    let dtypes: Vec<Dtype> =
        found[0].as_array().unwrap().iter().map(|text| parse(text.as_str().unwrap())).collect();
    assert!(dtypes.len() > 200);
    let mut equal = 0;
    for (row, one) in dtypes.iter().enumerate() {
        for (column, other) in dtypes.iter().enumerate() {
            let expected = found[1][row][column].as_bool().unwrap();
            assert_eq!(one == other, expected, "{one} {other}");
            equal += usize::from(expected && row != column);
        }
    }
    assert!(equal > 50, "{equal}");
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn items_are_turned_as_numpy_does_it() {
    let script = r#"
def packed(dtype):
    if dtype.subdtype:
        return packed(dtype.base)
    if dtype.fields is None:
        return dtype.kind != "V" or dtype.itemsize > 0
    end = 0
    for name in dtype.names:
        if dtype.fields[name][1] != end or not packed(dtype.fields[name][0]):
            return False
        end += dtype.fields[name][0].itemsize
    return end == dtype.itemsize

out = []
for dtype in dtypes:
    if dtype.hasobject or dtype.itemsize == 0 or dtype.subdtype or not packed(dtype):
        continue
    if re.search(r">[Mm]8'|>[Mm]8$", text(dtype)):
        # Where dates have no unit, NumPy 2.4 leaves their bytes as they are.
        continue
    items = rng.randbytes(3 * dtype.itemsize)
    native = np.frombuffer(items, dtype).astype(dtype.newbyteorder("="))
    out.append([text(dtype), list(items), list(native.tobytes())])
print(json.dumps(out))
"#;
    let found = python(script, &[]);
    let found = found.as_array().unwrap();
    assert!(found.len() > 150, "{}", found.len());
    for each in found {
        let dtype = parse(each[0].as_str().unwrap());
        let bytes = |value: &Value| serde_json::from_value::<Vec<u8>>(value.clone()).unwrap();
        let (mut items, native) = (bytes(&each[1]), bytes(&each[2]));
        let plan = dtype.swap_plan().unwrap();
        plan.apply(&mut items);
        assert_eq!(items, native, "{dtype}");
        plan.apply(&mut items);
        assert_eq!(items, bytes(&each[1]), "{dtype}");
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Element)]
#[repr(C)]
struct Padded {
    ok: bool,
    value: f64,
    pairs: [Pair; 2],
    #[element(name = "größe")]
    size: [[u16; 2]; 3],
}

#[derive(Debug, Clone, Copy, PartialEq, Element)]
#[repr(C)]
struct Pair(u8, i32);

#[derive(Debug, Clone, Copy, PartialEq, Element)]
#[repr(C, packed)]
struct Packed {
    ok: bool,
    value: f64,
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn structures_are_read_by_python() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let padded: Vec<Padded> = (0..100u8)
        .map(|i| {
            let pairs = [Pair(i, -i32::from(i)), Pair(1, 2)];
            let size = [[i.into(), 1], [2, 3], [4, 5]];
            Padded { ok: i % 3 == 0, value: f64::from(i) / 2.0, pairs, size }
        })
        .collect();
    let packed: Vec<Packed> =
        padded.iter().map(|&Padded { ok, value, .. }| Packed { ok, value }).collect();
    NDArray::builder().target(at("padded.b2nd")).from_slice(&padded, [10, 10]).unwrap();
    NDArray::builder().target(at("packed.b2nd")).from_slice(&packed, [100]).unwrap();
    let script = r#"
import blosc2
import numpy as np

pair = np.dtype([("f0", "u1"), ("f1", "<i4")], align=True)
padded = np.dtype([("ok", "?"), ("value", "<f8"), ("pairs", pair, (2,)), ("größe", "<u2", (3, 2))], align=True)
packed = np.dtype([("ok", "?"), ("value", "<f8")])
found = blosc2.open("padded.b2nd", mode="r")
assert found.dtype == padded, found.dtype
items = found[:].reshape(-1)
assert items["ok"].tolist() == [i % 3 == 0 for i in range(100)]
assert items["value"].tolist() == [i / 2 for i in range(100)]
assert items["pairs"]["f1"].tolist() == [[-i, 2] for i in range(100)]
assert items["größe"][7].tolist() == [[7, 1], [2, 3], [4, 5]]
found = blosc2.open("packed.b2nd", mode="r")
assert found.dtype == packed, found.dtype
assert found[:]["value"].tolist() == [i / 2 for i in range(100)]

# And back: what Python makes of the same dtype, with bytes of its own in the padding.
copy = blosc2.empty((10, 10), dtype=padded, urlpath="copy.b2nd")
copy[:] = items.reshape(10, 10)
"#;
    run_python(script, folder.path(), &[]);
    let copy = NDArray::open(at("copy.b2nd")).unwrap();
    assert_eq!(parse(copy.dtype_str().unwrap()), Padded::dtype());
    assert_eq!(copy.read::<Vec<Padded>>(..).unwrap(), padded);
}

/// With padding too. (Names such as `f1` are taken in Python, by the padding.)
#[derive(Debug, Clone, Copy, PartialEq, Element)]
#[repr(C)]
struct Inner {
    id: u8,
    delta: i32,
}

/// A row with padding, text and a time.
#[derive(Debug, Clone, Copy, PartialEq, Element)]
#[repr(C)]
struct Row {
    flag: u8,
    value: f64,
    inner: Inner,
    name: FixedStr<3>,
    #[element(dtype = "|S3")]
    code: [u8; 3],
    time: DateTime64<Milliseconds>,
}

impl Row {
    fn of(number: u8) -> Self {
        Self {
            flag: number,
            value: f64::from(number) / 4.0,
            inner: Inner { id: number, delta: -i32::from(number) },
            name: FixedStr::new(["", "é", "日本語"][usize::from(number) % 3]).unwrap(),
            code: [b'a' + number % 26, 0, 0],
            time: DateTime64::new(i64::from(number) * 1000),
        }
    }
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn structures_come_back_from_python_however_it_writes_their_padding() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let rows: Vec<Row> = (0..40).map(Row::of).collect();
    NDArray::builder().target(at("rows.b2nd")).chunk_shape([16]).from_slice(&rows, [40]).unwrap();
    let script = r#"
import blosc2
import numpy as np

rows = blosc2.open("rows.b2nd", mode="r")
items = rows[:]
assert items["name"].tolist() == [["", "é", "日本語"][i % 3] for i in range(40)]
assert items["code"].tolist() == [bytes([97 + i % 26]) for i in range(40)]
assert items["time"].tolist() == [np.datetime64(i, "s").item() for i in range(40)]
assert items["inner"]["delta"].tolist() == [-i for i in range(40)]
texts = set()
for name, array in {
    "asarray": blosc2.asarray(items, urlpath="asarray"),
    "sliced": blosc2.asarray(items[:10], urlpath="sliced"),
    "copy": rows.copy(urlpath="copy"),
    "slice": rows.slice(slice(0, 10), urlpath="slice"),
    "again": blosc2.asarray(items).copy(urlpath="again"),
}.items():
    texts.add(str(array.dtype))
empty = blosc2.empty((40,), dtype=items.dtype, urlpath="empty")
empty[:] = items
texts.add(str(empty.dtype))
# There are several notations: otherwise this tests nothing.
assert len(texts) > 1, texts
"#;
    run_python(script, folder.path(), &[]);
    for (name, len) in
        [("asarray", 40), ("sliced", 10), ("copy", 40), ("slice", 10), ("again", 40), ("empty", 40)]
    {
        let array = NDArray::open(at(name)).unwrap();
        assert_eq!(array.read::<Vec<Row>>(..).unwrap(), rows[..len], "{name}: {:?}", array.dtype());
    }
    // Joined with one of another notation.
    let arrays = [NDArray::open(at("sliced")).unwrap(), NDArray::open(at("rows.b2nd")).unwrap()];
    let joined = NDArray::builder().concatenate(&arrays, 0).unwrap();
    assert_eq!(joined.read::<Vec<Row>>(10..).unwrap(), rows);
}

/// Compares each file with the items of its expression, and writes these in both byte orders.
const EXCHANGE: &str = r#"
import blosc2
for number, expected in enumerate(arrays):
    found = blosc2.open(str(number), mode="r")[:]
    assert found.dtype == expected.dtype, (found.dtype, expected.dtype)
    assert found.tobytes() == expected.tobytes(), (found, expected)
    blosc2.asarray(expected, urlpath=f"{number} native")
    blosc2.asarray(expected.astype(expected.dtype.newbyteorder()), urlpath=f"{number} swapped")
"#;

/// The NumPy expression of the items of an array, and the comparison with an array that Python writes.
type Expected = (String, Box<dyn Fn(&NDArray)>);

/// Arrays that are compared in one Python process, because its start takes most of the time.
struct Exchange {
    folder: TempDir,
    /// The file of an array has its index as name.
    arrays: Vec<Expected>,
}

impl Exchange {
    fn add<T: Element + PartialEq + std::fmt::Debug>(&mut self, items: &[T], python: String) {
        let path = self.folder.path().join(self.arrays.len().to_string());
        NDArray::builder().target(path).from_slice(items, items.len()).unwrap();
        let (items, what) = (items.to_vec(), python.clone());
        let check = move |array: &NDArray| {
            assert_eq!(array.read::<Vec<T>>(..).unwrap(), items, "{what}");
        };
        self.arrays.push((python, Box::new(check)));
    }

    /// Compares the items in Python, and reads what Python makes of them.
    fn run(self) {
        let expected: Vec<&str> = self.arrays.iter().map(|(python, _)| &**python).collect();
        let arrays = format!("import numpy as np\narrays = [{}]\n", expected.join(", "));
        run_python(&[&arrays, EXCHANGE].concat(), self.folder.path(), &[]);
        for (number, (_, check)) in self.arrays.iter().enumerate() {
            for order in ["native", "swapped"] {
                let path = self.folder.path().join(format!("{number} {order}"));
                let mut array = NDArray::open(path).unwrap();
                array.set_dparams(array.info().dparams.convert_byte_order(true));
                check(&array);
            }
        }
    }
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn texts_bytes_and_times_are_numpys() {
    let folder = tempfile::tempdir().unwrap();
    let mut exchange = Exchange { folder, arrays: Vec::new() };
    let texts = ["", "a", "日本語", "é\u{10ffff}"].map(|text| FixedStr::<3>::new(text).unwrap());
    exchange.add(&texts, r#"np.array(["", "a", "日本語", "é\U0010ffff"], "U3")"#.to_owned());
    let bytes = ["", "a", "a\0b", "xyz"].map(|text| FixedBytes::<4>::new(text).unwrap());
    exchange.add(&bytes, r#"np.array([b"", b"a", b"a\0b", b"xyz"], "S4")"#.to_owned());
    let voids = [Void([0, 1, 2, 3, 255]), Void([9; 5])];
    exchange.add(&voids, r#"np.array([b"\0\1\2\3\xff", b"\t" * 5], "V5")"#.to_owned());
    macro_rules! times {
        ($($unit:ident)*) => {$(
            let symbol = <$unit as TimeUnit>::SYMBOL;
            let moments = [0, 1, -1, 12345].map(DateTime64::<$unit>::new);
            let moments = [&moments[..], &[DateTime64::NAT]].concat();
            let python = format!(r#"np.array([0, 1, -1, 12345, "NaT"], "M8[{symbol}]")"#);
            exchange.add(&moments, python);
            let lengths = [0, 1, -1, i64::MAX].map(TimeDelta64::<$unit>::new);
            let python = format!(r#"np.array([0, 1, -1, 2**63 - 1], "m8[{symbol}]")"#);
            exchange.add(&lengths, python);
        )*};
    }
    times!(Years Months Weeks Days Hours Minutes Seconds Milliseconds Microseconds Nanoseconds);
    times!(Picoseconds Femtoseconds Attoseconds);
    exchange.run();
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn headers_of_npy_files_are_numpys() {
    let script = r#"
import io
out = []
for dtype in dtypes[:60] + dtypes[60::7]:
    if dtype.hasobject or dtype.itemsize == 0 or dtype.subdtype:
        continue
    for order in "CF":
        file = io.BytesIO()
        try:
            np.save(file, np.zeros((2, 3), dtype, order))
        except ValueError:
            continue
        out.append(list(file.getvalue()[: -6 * dtype.itemsize]))
print(json.dumps(out))
"#;
    let found = python(script, &[]);
    let found: Vec<Vec<u8>> = serde_json::from_value(found).unwrap();
    assert!(found.len() > 100, "{}", found.len());
    for bytes in found {
        let header = Header::read(&mut &bytes[..]).unwrap();
        assert_eq!(header.shape, [2, 3]);
        assert_eq!(header.to_bytes().unwrap(), bytes, "{}", header.dtype);
    }
}
