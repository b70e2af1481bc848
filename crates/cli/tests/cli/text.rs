//! `cat --text`: values as NumPy prints them. The expected texts are those of NumPy 2.4.

use std::fs;

use blosc2::{CParams, NDArray, RawItems, SChunk, Target};

use crate::common::{Folder, OTHER_ORDER, native, old_files};

/// Creates an array of this dtype from the bytes of its items.
fn array(folder: &Folder, dtype: &str, shape: &[u64], bytes: &[u8]) {
    let len = shape.iter().product::<u64>() as usize;
    let typesize = blosc2::Dtype::parse(dtype).unwrap().size();
    assert_eq!(bytes.len(), len * typesize, "{dtype} {shape:?}");
    let path = folder.path("a.b2nd");
    let _ = fs::remove_file(&path);
    NDArray::builder()
        .target(path)
        .dtype(dtype, typesize)
        .from_slice(RawItems(bytes), shape)
        .unwrap();
}

fn text(folder: &Folder, args: &[&str]) -> String {
    String::from_utf8(folder.good(&[&["cat"], args, &["--text"]].concat())).unwrap()
}

/// The text of an array, which has to end in a line break.
fn print(dtype: &str, shape: &[u64], bytes: &[u8], args: &[&str]) -> String {
    let folder = Folder::new();
    array(&folder, dtype, shape, bytes);
    let text = text(&folder, &[&["a.b2nd"], args].concat());
    text.strip_suffix('\n').unwrap().to_owned()
}

/// The bytes of numbers in little-endian byte order.
macro_rules! little {
    ($type:ty; $($number:expr),*) => { [$(<$type>::to_le_bytes($number)),*].concat() };
}

fn ints(count: i64) -> Vec<u8> {
    (0..count).flat_map(i64::to_le_bytes).collect()
}

#[test]
fn floating_point_numbers() {
    for (numbers, expected) in [
        (&[0.1, -2.5, 3.0, 1e3][..], "[ 1.0e-01 -2.5e+00  3.0e+00  1.0e+03]"),
        (&[1e-5, 1.0, f64::NAN, f64::NEG_INFINITY], "[1.e-05 1.e+00    nan   -inf]"),
        (&[1e8, 1.0], "[1.e+08 1.e+00]"),
        (&[99_999_999.5, 999_999.5], "[99999999.5   999999.5]"),
        (&[-0.0, f64::INFINITY], "[-0. inf]"),
        (&[f64::NAN, f64::INFINITY], "[nan inf]"),
        (&[5e-324, 1e300], "[5.e-324 1.e+300]"),
        (&[1.0 / 3.0, 2.0 / 3.0], "[0.33333333 0.66666667]"),
        (&[0.25, 100.0], "[  0.25 100.  ]"),
        // Half of the last digit is rounded to the even one.
        (&[0.001953125], "[0.00195312]"),
    ] {
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        assert_eq!(print("<f8", &[numbers.len() as u64], &bytes, &[]), expected);
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_be_bytes()).collect();
        assert_eq!(print(">f8", &[numbers.len() as u64], &bytes, &[]), expected);
    }
    assert_eq!(print("<f4", &[2], &little!(f32; 1.1, 1000.0), &[]), "[   1.1 1000. ]");
    assert_eq!(print("<f4", &[2], &little!(f32; 1e6, 1.0), &[]), "[1.e+06 1.e+00]");
    assert_eq!(print("<f4", &[2], &little!(f32; 1e6, 999_999.0), &[]), "[1.00000e+06 9.99999e+05]");
    assert_eq!(print("<f4", &[1], &little!(f32; 999_999.0), &[]), "[999999.]");
    assert_eq!(print("<f4", &[1], &little!(f32; 1_048_576.2), &["--slice=0"]), "1.0485762e+06");
    // 0.1 and 999, 2.0625, and the least number, as half floats.
    assert_eq!(print("<f2", &[2], &little!(u16; 0x2e66, 0x63ce), &[]), "[1.00e-01 9.99e+02]");
    assert_eq!(print(">f2", &[2], &[0x40, 0x20, 0, 1], &[]), "[2.062e+00 5.960e-08]");
    assert_eq!(print(">f2", &[2], &[0x40, 0x20, 0, 1], &["--slice=1"]), "6e-08");
    // 0.01562 is as close, but denotes another number.
    assert_eq!(print(">f2", &[], &[0x24, 0], &[]), "0.01563");
}

#[test]
fn complex_numbers() {
    let numbers = little!(f64; 1.0, 2.0, -0.5, -1e-3, f64::NAN, f64::NAN);
    let expected = "[ 1. +2.e+00j -0.5-1.e-03j  nan   +nanj]";
    assert_eq!(print("<c16", &[3], &numbers, &[]), expected);
    for (number, expected) in [
        ([1.0, 2.0], "(1+2j)"),
        ([0.0, -2.5], "-2.5j"),
        ([-0.0, 1.0], "(-0+1j)"),
        ([1e20, f32::INFINITY], "(1e+20+infj)"),
    ] {
        let bytes = number.map(f32::to_be_bytes).concat();
        assert_eq!(print(">c8", &[], &bytes, &[]), expected);
    }
}

#[test]
fn integers_and_booleans() {
    assert_eq!(print("|i1", &[3], &[128, 127, 0], &[]), "[-128  127    0]");
    let numbers = [u64::MAX, 0].map(u64::to_be_bytes).concat();
    assert_eq!(print(">u8", &[2], &numbers, &[]), "[18446744073709551615                    0]");
    assert_eq!(print("|b1", &[3], &[1, 0, 2], &[]), "[ True False  True]");
    assert_eq!(print("|b1", &[3], &[1, 0, 2], &["--slice=2"]), "True");
}

#[test]
fn texts_and_bytes() {
    let chars: Vec<u8> =
        "it'é\n\0\u{1b}日".chars().flat_map(|each| u32::from(each).to_be_bytes()).collect();
    assert_eq!(print(">U4", &[2], &chars, &[]), r#"["it'é" '\n\x00\x1b日']"#);
    // Control characters do not reach the terminal, and invalid ones are no error.
    assert_eq!(print(">U4", &[2], &chars, &["--slice=1"]), "\u{fffd}\u{fffd}\u{fffd}日");
    let codes = little!(u32; 0xd800, 0x11_0000, 0x200b);
    assert_eq!(print("<U3", &[1], &codes, &[]), r"['\ud800\U00110000\u200b']");
    assert_eq!(print("<U3", &[1], &codes, &["--slice=0"]), "\u{fffd}\u{fffd}\u{200b}");

    assert_eq!(
        print("|S4", &[3], b"ab\0\0a'\"\\\xff\x1b\t\0", &[]),
        r#"[b'ab' b'a\'"\\' b'\xff\x1b\t']"#
    );
    assert_eq!(print("|S2", &[1], b"a\n", &["--slice=0"]), r"b'a\n'");
    assert_eq!(print("|V2", &[2], b"ab\0\xff", &[]), r"[b'\x61\x62' b'\x00\xFF']");
}

#[test]
fn dates_and_durations() {
    let numbers = little!(i64; 0, -1, 1 << 40, i64::MIN);
    let expected = "\
[ '1970-01-01T00:00:00'  '1969-12-31T23:59:59' '36812-02-20T00:36:16'
                  'NaT']";
    assert_eq!(print("<M8[s]", &[4], &numbers, &[]), expected);
    assert_eq!(print("<m8[D]", &[2], &little!(i64; 0, i64::MIN), &[]), "[    0 'NaT']");
    for (dtype, number, expected) in [
        (">M8[Y]", -1971, "-001"),
        (">M8[M]", -1, "1969-12"),
        (">M8[W]", 3, "1970-01-22"),
        (">M8[D]", 19_782, "2024-02-29"),
        (">M8[D]", 11_017, "2000-03-01"),
        (">M8[D]", -25_508, "1900-03-01"),
        (">M8[D]", -719_469, "0000-02-29"),
        (">M8[D]", -800_000, "-221-09-04"),
        (">M8[h]", 25, "1970-01-02T01"),
        (">M8[m]", -1, "1969-12-31T23:59"),
        (">M8[25s]", 1, "1970-01-01T00:00:25"),
        (">M8[us]", -1, "1969-12-31T23:59:59.999999"),
        (">M8[as]", 1, "1970-01-01T00:00:00.000000000000000001"),
        (">M8[Y]", i64::MAX, "9223372036854777777"),
        (">M8[D]", i64::MIN, "NaT"),
        // NumPy has no other dates without a unit than NaT.
        (">M8", 5, "5"),
        (">m8[3W]", -5, "-15 weeks"),
        (">m8", 7, "7 generic time units"),
    ] {
        assert_eq!(print(dtype, &[], &number.to_be_bytes(), &[]), expected, "{dtype} {number}");
    }
}

#[test]
fn structures() {
    let dtype = "[('a', '>i2'), ('b', '<f4', (2, 2)), ('c', '?'), ('d', [('e', 'S2')])]";
    let item = |first: u8, last: &[u8]| {
        let numbers = [0.5_f32, 10.0, -1.0, 0.0].map(f32::to_le_bytes).concat();
        [&[0, first][..], &numbers, &[1], last].concat()
    };
    let items = [item(7, b"xy"), item(100, b"z\0")].concat();
    let expected = "\
[(  7, [[ 0.5, 10. ], [-1. ,  0. ]],  True, (b'xy',))
 (100, [[ 0.5, 10. ], [-1. ,  0. ]],  True, (b'z',))]";
    assert_eq!(print(dtype, &[2], &items, &[]), expected);
    let expected = "(100, [[0.5, 10.0], [-1.0, 0.0]], True, (b'z',))";
    assert_eq!(print(dtype, &[2], &items, &["--slice=1"]), expected);

    let long = ints(1001);
    let dtype = "[('a', '<i8', (1001,))]";
    let expected = "[([   0,    1,    2, ...,  998,  999, 1000],)]";
    assert_eq!(print(dtype, &[1], &long, &[]), expected);
    let all = print(dtype, &[1], &long, &["--all"]);
    assert!(all.contains("  499,  500,") && all.ends_with(" 1000],)]"), "{all}");
    // The axes of a sub-array are axes of the array.
    let expected = "[[   0    1    2 ...  998  999 1000]]";
    assert_eq!(print("('<i8', (1001,))", &[1], &long, &[]), expected);
    assert_eq!(print("('<i8', (2, 2))", &[2], &ints(8), &["--slice=1"]), "[[4 5]\n [6 7]]");
}

#[test]
fn lines_and_brackets() {
    let expected = "[[[[ 0  1  2]\n   [ 3  4  5]]]\n\n\n [[[ 6  7  8]\n   [ 9 10 11]]]]";
    assert_eq!(print("<i8", &[2, 1, 2, 3], &ints(12), &[]), expected);
    let expected = "[[[[[[[[[[[[[[[[0]]]]]]]]]]]]]]]]";
    assert_eq!(print("<i8", &[1; 16], &ints(1), &[]), expected);
    let numbers: Vec<u8> = (0..9).flat_map(|k: i64| (k * 1_000_000).to_le_bytes()).collect();
    let expected = "[      0 1000000 2000000 3000000 4000000 5000000 6000000 7000000 8000000]";
    assert_eq!(print("<i8", &[9], &numbers, &[]), expected);
    let expected = format!("[{}\n {}]", ["1000000"; 9].join(" "), "1000000");
    assert_eq!(print("<i8", &[10], &1_000_000_i64.to_le_bytes().repeat(10), &[]), expected);
    // A line has at most 74 characters before the bracket.
    let [word, longer] = [33, 34].map(|len| "x".repeat(len));
    let items = format!("{word}\0{word}\0{longer}{word}\0");
    let expected = format!("[b'{word}' b'{word}'\n b'{longer}'\n b'{word}']");
    assert_eq!(print("|S34", &[4], items.as_bytes(), &[]), expected);
    // A value that is longer than a line has its own line.
    let expected = format!("[b'{0}'\n b'{0}']", "x".repeat(80));
    assert_eq!(print("|S80", &[2], &[b'x'; 160], &[]), expected);
}

#[test]
fn large_arrays_are_shortened() {
    let expected = "[   0    1    2 ...  998  999 1000]";
    assert_eq!(print("<i8", &[1001], &ints(1001), &[]), expected);
    let whole = print("<i8", &[1000], &ints(1000), &[]);
    assert!(whole.contains("\n 500 ") || whole.contains(" 500 "), "{whole}");
    assert_eq!(print("<i8", &[1001], &ints(1001), &["--slice=:1000"]).len(), whole.len());

    let table = ints(2000);
    let expected = "\
[[   0    1    2 ...   47   48   49]
 [  50   51   52 ...   97   98   99]
 [ 100  101  102 ...  147  148  149]
 ...
 [1850 1851 1852 ... 1897 1898 1899]
 [1900 1901 1902 ... 1947 1948 1949]
 [1950 1951 1952 ... 1997 1998 1999]]";
    assert_eq!(print("<i8", &[40, 50], &table, &[]), expected);
    let flipped = print("<i8", &[40, 50], &table, &["--slice=::-1,::-1"]);
    assert!(flipped.starts_with("[[1999 1998 1997 ... 1952 1951 1950]\n"), "{flipped}");
    assert!(flipped.ends_with("\n [  49   48   47 ...    2    1    0]]"), "{flipped}");
    // Only axes of more than 6 items are shortened.
    let expected = "\
[[[   0    1    2 ...  197  198  199]
  [ 200  201  202 ...  397  398  399]
  [ 400  401  402 ...  597  598  599]]

 [[ 600  601  602 ...  797  798  799]
  [ 800  801  802 ...  997  998  999]
  [1000 1001 1002 ... 1197 1198 1199]]]";
    assert_eq!(print("<i8", &[2, 3, 200], &ints(1200), &[]), expected);
    let all = print("<i8", &[40, 50], &table, &["--all"]);
    let numbers = all.split(['[', ']', ' ', '\n']).filter(|part| !part.is_empty());
    assert!(!all.contains("...") && numbers.count() == 2000, "{all}");
}

#[test]
fn empty_arrays_and_single_items() {
    for shape in [&[0][..], &[0, 3], &[3, 0, 2]] {
        assert_eq!(print("<f4", shape, &[], &[]), "[]");
        assert_eq!(print("|S3", shape, &[], &["--all"]), "[]");
    }
    assert_eq!(print("<i8", &[5], &ints(5), &["--slice=3:3"]), "[]");
    // An index removes its axis, a range keeps it.
    let table = ints(6);
    for (slice, expected) in [
        ("1", "[3 4 5]"),
        ("1:2", "[[3 4 5]]"),
        (":,1", "[1 4]"),
        ("1,-1", "5"),
        ("...,::2", "[[0 2]\n [3 5]]"),
    ] {
        assert_eq!(print("<i8", &[2, 3], &table, &["--slice", slice]), expected, "{slice}");
    }
    assert_eq!(print("<f8", &[], &1e16_f64.to_le_bytes(), &[]), "1e+16");
    assert_eq!(print("<f8", &[], &0.1_f64.to_le_bytes(), &["--slice=..."]), "0.1");
    assert_eq!(print("|S300", &[], &[b'x'; 300], &[]), format!("b'{}'", "x".repeat(300)));
}

#[test]
fn only_the_printed_items_are_read() {
    let folder = Folder::new();
    let builder = NDArray::builder().chunk_shape(100).block_shape(100);
    let items: Vec<i64> = (0..1100).collect();
    builder
        .target(Target::from(folder.path("a.b2nd")).directory(true))
        .from_slice(&items, 1100)
        .unwrap();
    let chunks: Vec<_> = fs::read_dir(folder.path("a.b2nd")).unwrap().collect();
    assert_eq!(chunks.len(), 12);
    folder.write("a.b2nd/00000005.chunk", b"damaged");
    assert_eq!(text(&folder, &["a.b2nd"]), "[   0    1    2 ... 1097 1098 1099]\n");
    folder.bad(1, &["cat", "a.b2nd", "--text", "--all"]);
    folder.bad(1, &["cat", "a.b2nd", "--text", "--slice=500:600"]);
}

#[test]
fn items_without_a_dtype() {
    let folder = Folder::new();
    folder.schunk("a.b2frame", &CParams::new());
    assert_eq!(text(&folder, &["a.b2frame", "--slice=98:102"]), "[ 98  99 100 101]\n");
    let little = cfg!(target_endian = "little");
    let dtype = format!("--dtype={OTHER_ORDER}u2");
    assert_eq!(text(&folder, &["a.b2frame", "--slice=3", &dtype]), "768\n");
    // Items of another size: two items of two bytes are one of four bytes.
    let line = text(&folder, &["a.b2frame", "--slice=-2:", &native("--dtype=<u4")]);
    let both = |one: u32, other| if little { one | other << 16 } else { one << 16 | other };
    assert_eq!(line, format!("[{} {}]\n", both(346, 347), both(348, 349)));
    let line = text(&folder, &["a.b2frame", "--slice=1", "--dtype=V3"]);
    assert_eq!(line, if little { "b'\\x00\\x02\\x00'\n" } else { "b'\\x01\\x00\\x02'\n" });
    assert_eq!(text(&folder, &["a.b2frame", "--slice=:1", "--dtype=S701"]), "[]\n");

    let mut schunk = SChunk::create::<[u8; 3]>(folder.path("b.b2frame"), CParams::new()).unwrap();
    schunk.append(&[[1u8, 2, 255], [3, 4, 5]]).unwrap();
    drop(schunk);
    assert_eq!(text(&folder, &["b.b2frame"]), "[b'\\x01\\x02\\xFF' b'\\x03\\x04\\x05']\n");

    folder.write("a.chunk", &blosc2::compress(&[1u8, 20, 255], &CParams::new()).unwrap());
    for engine in ["c", "rust"] {
        assert_eq!(text(&folder, &["a.chunk", "--engine", engine]), "[  1  20 255]\n");
    }
    // The stored dtype has another size.
    NDArray::builder()
        .target(folder.path("c.b2nd"))
        .dtype("|u1", 2)
        .from_slice(RawItems(&[0, 1]), 1)
        .unwrap();
    let line = folder.bad(1, &["cat", "c.b2nd", "--text"]);
    let reason = "its dtype `|u1` has 1 bytes, and its items have 2; --dtype sets another one";
    assert_eq!(line, format!("blosc2: cannot print (c.b2nd): {reason}\n"));
    let item = u16::from_ne_bytes([0, 1]);
    assert_eq!(text(&folder, &["c.b2nd", "--dtype=u2"]), format!("[{item}]\n"));
    // The stored dtype is not supported.
    NDArray::builder()
        .target(folder.path("d.b2nd"))
        .dtype("bfloat16", 2)
        .from_slice(RawItems(&[0, 1]), 1)
        .unwrap();
    for engine in ["c", "rust"] {
        let line = folder.bad(1, &["cat", "d.b2nd", "--text", "--engine", engine]);
        let start = "blosc2: cannot print (d.b2nd): its dtype `bfloat16` is not supported: ";
        assert!(
            line.starts_with(start) && line.ends_with("; --dtype sets another one\n"),
            "{line}"
        );
    }
    assert_eq!(text(&folder, &["d.b2nd", "--dtype=<u2"]), "[256]\n");
    assert_eq!(folder.good(&["cat", "d.b2nd"]), [0, 1]);
    assert_eq!(text(&folder, &["c.b2nd", "--dtype=>i2"]), "[1]\n");
    let line = folder.bad(2, &["cat", "c.b2nd", "--text", "--dtype=V0"]);
    assert!(line.contains("--dtype |V0 has 0 bytes, and the items of c.b2nd have 2"), "{line}");
    // The representation of `long double` depends on the platform.
    let bytes: Vec<u8> = (0..16).collect();
    let expected =
        format!("[b'{}']", bytes.iter().map(|byte| format!("\\x{byte:02X}")).collect::<String>());
    assert_eq!(print("<f16", &[1], &bytes, &[]), expected);
    assert_eq!(print("<f16", &[1], &bytes, &["--slice=0"]), expected[1..expected.len() - 1]);
}

#[test]
fn legacy_files_and_both_engines() {
    let folder = Folder::new();
    let mut count = 0;
    for (path, raw) in old_files() {
        let [first, second, ..] = raw[..] else { continue };
        // Some files cause a warning on stderr.
        let output = folder.run(&["cat", &path, "--text", "--dtype=u1", "--slice=:2"]);
        let line = String::from_utf8(output.stdout).unwrap();
        let numbers: Vec<u8> = line
            .trim_matches(['[', ']', '\n'])
            .split_whitespace()
            .map(|each| each.parse().unwrap())
            .collect();
        assert_eq!(numbers, [first, second], "{path}");
        count += 1;
    }
    assert!(count > 50, "{count}");
    array(&folder, "<M8[D]", &[3], &ints(3));
    let line = "['1970-01-01' '1970-01-02' '1970-01-03']\n";
    for engine in ["c", "rust"] {
        assert_eq!(text(&folder, &["a.b2nd", "--engine", engine]), line);
    }
}

#[test]
fn refused_amounts_and_arguments() {
    let folder = Folder::new();
    NDArray::builder().target(folder.path("a.b2nd")).zeros::<u8>([4000, 3000]).unwrap();
    let line = folder.bad(1, &["cat", "a.b2nd", "--text", "--all"]);
    assert!(
        line.contains(
            "cannot print (a.b2nd): the selection has 12000000 values to print, and the maximum is \
             10000000; --slice"
        ),
        "{line}"
    );
    assert!(text(&folder, &["a.b2nd"]).starts_with("[[0 0 0 ... 0 0 0]\n"));
    // 6 of 7 items on each of 16 axes.
    let chunks = [[1; 5].as_slice(), &[7; 11]].concat();
    let blocks = [[1; 10].as_slice(), &[7; 6]].concat();
    let builder =
        NDArray::builder().target(folder.path("b.b2nd")).chunk_shape(chunks).block_shape(blocks);
    builder.zeros::<u8>([7; 16]).unwrap();
    let line = folder.bad(1, &["cat", "b.b2nd", "--text"]);
    assert!(line.contains("has 2821109907456 values"), "{line}");
    // Fields that overlap, and items of no bytes.
    let builder = || NDArray::builder();
    let fields: Vec<String> = (0..1000).map(|k| format!("'f{k}'")).collect();
    let dtype = format!(
        "{{'names': [{}], 'formats': [{}], 'offsets': [{}], 'itemsize': 1000000}}",
        fields.join(", "),
        ["'S1000000'"; 1000].join(", "),
        ["0"; 1000].join(", ")
    );
    builder()
        .target(folder.path("c.b2nd"))
        .dtype(&dtype, 1_000_000)
        .from_slice(RawItems(&[1; 1_000_000]), 1)
        .unwrap();
    let line = folder.bad(1, &["cat", "c.b2nd", "--text"]);
    assert!(line.contains("has 1000000000 bytes to print"), "{line}");
    let dtype = "[('a', 'u1'), ('b', 'S', (2000000000,))]";
    builder().target(folder.path("d.b2nd")).dtype(dtype, 1).from_slice(RawItems(&[1]), 1).unwrap();
    let line = folder.bad(1, &["cat", "d.b2nd", "--text"]);
    assert!(line.contains("has 2000000001 values"), "{line}");

    for args in [
        &["cat", "a.b2nd", "--all"][..],
        &["cat", "a.b2nd", "--dtype", "f4"],
        &["cat", "a.b2nd", "--text", "--dtype", "f5"],
        &["cat", "a.b2nd", "--text", "--dtype", "f4"],
    ] {
        folder.bad(2, args);
    }
    let line = folder.bad(1, &["cat", "a.b2nd", "--text", "--slice=4000"]);
    assert!(line.contains("--slice of a.b2nd"), "{line}");
}
