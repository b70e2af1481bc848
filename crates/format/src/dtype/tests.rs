use blosc2_testing::{NATIVE_ORDER, OTHER_ORDER};

use super::*;

/// Texts of Python's `str(dtype)` (`dtype.str` of types without parts), the bytes of an item, and what
/// `dtype.descr` gives.
const TEXTS: [(&str, usize, &str); 24] = [
    ("|b1", 1, "'|b1'"),
    ("|i1", 1, "'|i1'"),
    ("<f2", 2, "'<f2'"),
    ("<f4", 4, "'<f4'"),
    (">i8", 8, "'>i8'"),
    ("<f16", 16, "'<f16'"),
    (">c32", 32, "'>c32'"),
    ("|S10", 10, "'|S10'"),
    ("|S0", 0, "'|S0'"),
    ("<U10", 40, "'<U10'"),
    (">U0", 0, "'>U0'"),
    ("<M8[25s]", 8, "'<M8[25s]'"),
    ("<M8[ns]", 8, "'<M8[ns]'"),
    ("<m8", 8, "'<m8'"),
    ("|V5", 5, "'|V5'"),
    ("|O", 8, "'|O'"),
    ("[]", 0, "[]"),
    ("[('a', '<i4'), ('b', '<f8')]", 12, "[('a', '<i4'), ('b', '<f8')]"),
    (
        "[('p', [('x', '<f4'), ('y', '<f4', (3,))]), ('ok', '?')]",
        17,
        "[('p', [('x', '<f4'), ('y', '<f4', (3,))]), ('ok', '|b1')]",
    ),
    ("[(('A title', 'a'), 'i1')]", 1, "[(('A title', 'a'), '|i1')]"),
    (
        "[('s', 'S'), ('v', 'V'), ('u', '<U'), ('o', 'O')]",
        8,
        "[('s', '|S0'), ('v', '|V0'), ('u', '<U0'), ('o', '|O')]",
    ),
    (
        "{'names': ['a', 'b'], 'formats': ['i1', '<f8'], 'offsets': [0, 8], 'itemsize': 24}",
        24,
        "[('a', '|i1'), ('', '|V7'), ('b', '<f8'), ('', '|V8')]",
    ),
    (
        "{'names': ['a', 'b'], 'formats': ['i1', '<f8'], 'offsets': [0, 8], 'itemsize': 16, 'aligned': True}",
        16,
        "[('a', '|i1'), ('', '|V7'), ('b', '<f8')]",
    ),
    (
        "{'names': ['é'], 'formats': [('<f4', (2, 3))], 'offsets': [1], 'titles': ['T'], 'itemsize': 25}",
        25,
        "[('', '|V1'), (('T', 'é'), '<f4', (2, 3))]",
    ),
];

fn parse(text: &str) -> Dtype {
    Dtype::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn notations_are_pythons() {
    for (text, size, descr) in TEXTS {
        let dtype = parse(text);
        assert_eq!((dtype.size(), dtype.to_string().as_str()), (size, text));
        assert_eq!(dtype.to_descr().unwrap(), descr, "{text}");
        assert_eq!(Dtype::from_descr(descr).unwrap(), dtype, "{text}");
    }
}

#[test]
fn other_ways_to_say_the_same() {
    let little = cfg!(target_endian = "little");
    for (text, same) in [
        ("=u1", "|u1"),
        (">u1", "|u1"),
        ("?", "|b1"),
        ("<b1", "|b1"),
        ("a5", "|S5"),
        (">S3", "|S3"),
        ("V", "|V0"),
        ("O8", "|O"),
        ("=i4", if little { "<i4" } else { ">i4" }),
        ("|U3", if little { "<U3" } else { ">U3" }),
        ("<M8[1s]", "<M8[s]"),
        ("<M8[generic]", "<M8"),
        ("('<i4', 3)", "('<i4', (3,))"),
        ("('<i4', ())", "<i4"),
        (" [ ( 'a' , '<i4' , ) , ] ", "[('a', '<i4')]"),
        ("[('', '<i4'), ('', '<f4')]", "[('f0', '<i4'), ('f1', '<f4')]"),
        ("[((None, 'a'), '<i4')]", "[('a', '<i4')]"),
        ("(numpy.record, [('a', (numpy.record, [('b', '<i4')]))])", "[('a', [('b', '<i4')])]"),
        (
            "{'names':['a','b'], 'formats':['<i4','i1'], 'offsets':[0,4], 'itemsize':5}",
            "[('a', '<i4'), ('b', 'i1')]",
        ),
    ] {
        assert_eq!(parse(text), parse(same), "{text}");
        assert_eq!(parse(text).to_string(), same);
    }
}

/// The texts that NumPy accepts, and the standard form of each on 64-bit Linux. `tests/python`
/// compares the list with NumPy.
const NUMPY_TEXTS: &str = include_str!("numpy_texts.txt");

#[test]
fn numpys_names_and_codes_are_read() {
    let mut count = 0;
    for line in NUMPY_TEXTS.lines() {
        let (text, standard) = line.split_once(' ').unwrap();
        // In the list, the native byte order is little-endian, and it is the default.
        let standard = match text.starts_with('<') {
            true => standard.to_owned(),
            false => standard.replace('<', NATIVE_ORDER),
        };
        assert_eq!(parse(text).to_string(), standard, "{text}");
        assert_eq!(parse(&format!("[('a', '{text}')]")).fields().unwrap()[0].dtype(), &parse(text));
        count += 1;
    }
    assert!(count > 500, "{count}");
}

#[test]
fn what_differs_is_not_equal() {
    let texts = [
        "<i4",
        ">i4",
        "<u4",
        "<M8[7D]",
        "<M8[W]",
        "<M8",
        "<m8",
        "('<i4', (1,))",
        "('<i4', (2, 3))",
        "(('<i4', (3,)), (2,))",
        "|V4",
        "[('a', '<i4')]",
        "[('b', '<i4')]",
        "[(('t', 'a'), '<i4')]",
        "[('f0', 'V4')]",
        "{'names': ['a'], 'formats': ['<i4'], 'offsets': [0], 'itemsize': 8}",
        "{'names': ['a'], 'formats': ['<i4'], 'offsets': [4], 'itemsize': 8}",
        "{'names': ['a', 'b'], 'formats': ['<i4', '<i4'], 'offsets': [0, 4], 'itemsize': 8}",
        "{'names': ['b', 'a'], 'formats': ['<i4', '<i4'], 'offsets': [4, 0], 'itemsize': 8}",
        "{'names': [], 'formats': [], 'offsets': [], 'itemsize': 8}",
        "[]",
        "|V0",
    ];
    for (first, one) in texts.iter().enumerate() {
        for (second, other) in texts.iter().enumerate() {
            assert_eq!(parse(one) == parse(other), first == second, "{one} {other}");
        }
    }
}

#[test]
fn what_is_no_dtype_is_refused() {
    let (deep, long) =
        (format!("{}'<i4'{}", "[('a', ".repeat(33), ")]".repeat(33)), "[ ".repeat(1 << 20));
    for text in [
        "",
        "<",
        "u",
        "<x",
        "i3",
        "<i3",
        "<i4x",
        "<x4",
        "<q8",
        "<f10",
        "b2",
        "Int32",
        "int32 ",
        "<int32",
        "<a",
        "int0",
        "T",
        "M[s]",
        "M08[s]",
        "<i[s]",
        "f4, i2",
        "é",
        "<>i4",
        "<f+4",
        " <i4",
        "<i4[s]",
        "<M8[q]",
        "<M8[",
        "<M8[]",
        "<M8[s/3]",
        "<M8[2147483648s]",
        "<M8[+1s]",
        "|S-1",
        "|S2147483648",
        "|S99999999999999999999",
        "<U536870912",
        "<U9999999999999999999",
        "[",
        "[(",
        "[1]",
        "[('a', '<i4'",
        "('<i4',)",
        "('<i4', -1)",
        "[('a',)]",
        "[(1, '<i4')]",
        "[('a', '<i4') ('b', '<i4')]",
        "[('a', '<i4')] x",
        "[('a', '<i4'), ('a', '<i4')]",
        "[(('b', 'a'), '<i4'), ('b', '<i4')]",
        "[(('a', 'a'), '<i4')]",
        "[((1, 'a'), '<i4')]",
        "{}",
        "{'itemsize': }",
        "[é]",
        "'",
        "(3, 4)",
        "numpy.record",
        "{'names': ['a'], 'formats': [], 'offsets': [0], 'itemsize': 1}",
        "{'names': ['a'], 'formats': ['<i4'], 'offsets': [1], 'itemsize': 4}",
        "{'names': ['a'], 'formats': ['<i4'], 'offsets': [18446744073709551615], 'itemsize': 4}",
        "{'names': [], 'formats': [], 'offsets': [], 'itemsize': 2147483648}",
        "('<i8', (4294967296, 4294967296))",
        "('<i4', (65536, 65536))",
        "('S', (65536, 65536))",
        "('S', (0, 4294967296))",
        "[('a', '|V2147483647'), ('b', 'i1')]",
        &deep,
        &long,
    ] {
        let error = Dtype::parse(text).unwrap_err();
        assert!(matches!(error, Error::Format(_)), "{text:.40}: {error}");
        assert!(error.to_string().len() < 200, "{error}");
    }
    let many = vec!["1"; 65].join(", ");
    assert!(Dtype::parse(&format!("('<i4', ({many}))")).is_err());
    assert_eq!(parse(&deep[7..deep.len() - 2]).size(), 4);
    assert_eq!(parse("('<i4', (0, 65536, 65536))").size(), 0);
    let error = Dtype::parse("[('a', '<i4'), ('b' '<i4')]").unwrap_err();
    assert_eq!(error.to_string(), "dtype at byte 20: expected a comma, found `\\'<i4\\')]`");
}

#[test]
fn texts_that_npy_files_cannot_say() {
    for text in [
        "{'names': ['a', 'b'], 'formats': ['<i4', '<f4'], 'offsets': [0, 0], 'itemsize': 4}",
        "{'names': ['a', 'b'], 'formats': ['<i4', '<f4'], 'offsets': [4, 0], 'itemsize': 8}",
    ] {
        assert_eq!(parse(text).to_string(), text);
        assert!(matches!(parse(text).to_descr(), Err(Error::Unsupported(_))));
    }
    // Without a name but with a meaning, it is not padding.
    assert_eq!(Dtype::from_descr("[('', '<i4')]").unwrap().fields().unwrap()[0].name(), "");
    assert_eq!(
        Dtype::from_descr("[('', '|V2', (3,)), ('a', '|u1')]").unwrap().fields().unwrap()[0]
            .offset(),
        6
    );
}

#[test]
fn padding_inside_of_a_structure_is_kept() {
    // NumPy writes the inner one without its padding if that is the padding of C.
    let inner = "{'names': ['a', 'b'], 'formats': ['i1', '<f8'], 'offsets': [0, 8], 'itemsize': 16, 'aligned': True}";
    let text = format!("[('x', {inner}), ('y', 'i1')]");
    let dtype = parse(&text);
    assert_eq!(dtype.size(), 17);
    assert_eq!(dtype.to_string(), text.replace(", 'aligned': True", ""));
    assert_eq!(parse(&dtype.to_string()), dtype);

    // If the outer one is aligned, the inner ones are aligned as well.
    let text = "{'names': ['x', 'y'], 'formats': [[('a', 'i1'), ('b', '<c16'), ('c', 'i1')], [('d', 'i1'), ('e', '<U3', (2,))]], \
                'offsets': [0, 32], 'itemsize': 64, 'aligned': True}";
    let dtype = parse(text);
    let [x, y] = dtype.fields().unwrap() else { panic!("{dtype}") };
    let offsets = |field: &Field| {
        field.dtype().fields().unwrap().iter().map(Field::offset).collect::<Vec<_>>()
    };
    assert_eq!((x.dtype().size(), offsets(x)), (32, vec![0, 8, 24]));
    assert_eq!((y.dtype().size(), offsets(y)), (28, vec![0, 4]));
    assert_eq!(dtype.to_string(), text);
    let inner = "{'names': ['q'], 'formats': ['<i4'], 'offsets': [4], 'itemsize': 12}";
    let text = format!(
        "{{'names': ['x'], 'formats': [{inner}], 'offsets': [0], 'itemsize': 12, 'aligned': True}}"
    );
    assert_eq!(parse(&text).to_string(), text);
    assert_eq!(
        x.dtype().to_string(),
        "{'names': ['a', 'b', 'c'], 'formats': ['i1', '<c16', 'i1'], 'offsets': [0, 8, 24], 'itemsize': 32}"
    );
}

#[test]
fn parts_can_be_asked_for() {
    let dtype = parse("[(('T', 'when'), '>M8[25s]', (2, 3)), ('who', 'O')]");
    let [when, who] = dtype.fields().unwrap() else { panic!("{dtype}") };
    assert_eq!((when.name(), when.title(), when.offset()), ("when", Some("T"), 0));
    assert_eq!((who.name(), who.title(), who.offset()), ("who", None, 48));
    let (item, shape) = when.dtype().subarray().unwrap();
    assert_eq!(
        (item.kind(), item.unit(), shape),
        (Some(Kind::DateTime), Some((25, "s")), &[2, 3][..])
    );
    assert_eq!(item.byte_order(), Some(ByteOrder::Big));
    assert_eq!((dtype.kind(), dtype.byte_order(), dtype.subarray()), (None, None, None));
    assert_eq!((who.dtype().kind(), who.dtype().byte_order()), (Some(Kind::Object), None));
    assert!(dtype.has_pointers() && !when.dtype().has_pointers());
    assert_eq!(parse("|i1").byte_order(), None);
    assert_eq!(format!("{:?} {:>5}", parse("<f4"), parse("<f4")), "Dtype(<f4)   <f4");
}

#[test]
fn types_are_built() {
    let number = parse("<i4");
    let field = |name: &str, offset| Field::new(name, offset, number.clone());
    let built = Dtype::structure(12, [field("a", 0).with_title("T"), field("b", 8)]).unwrap();
    let text = "{'names': ['a', 'b'], 'formats': ['<i4', '<i4'], 'offsets': [0, 8], 'titles': ['T', None], 'itemsize': 12}";
    assert_eq!(built.to_string(), text);
    assert_eq!(parse(text), built);
    assert_eq!(Dtype::array(number.clone(), &[2, 3]).unwrap().to_string(), "('<i4', (2, 3))");
    assert_eq!(Dtype::array(number.clone(), &[]).unwrap(), number);
    assert_eq!(Dtype::scalar(Kind::Unicode, 8).unwrap().to_native().size(), 8);

    for refused in [
        Dtype::structure(7, [field("a", 4)]),
        Dtype::structure(8, [field("a", usize::MAX)]),
        Dtype::structure(8, [field("a", 0), field("a", 4)]),
        Dtype::structure(MAX_SIZE + 1, []),
        Dtype::array(number.clone(), &[u64::MAX, u64::MAX]),
        Dtype::array(number.clone(), &[1; MAX_SUBARRAY_NDIM + 1]),
        Dtype::scalar(Kind::Unicode, 7),
        Dtype::scalar(Kind::Float, 3),
        Dtype::scalar(Kind::Bytes, MAX_SIZE + 1),
    ] {
        assert!(matches!(refused, Err(Error::Argument(_))), "{refused:?}");
    }
    let mut deep = number;
    for _ in 0..MAX_NESTING {
        let padded = Dtype::structure(deep.size() + 1, [Field::new("a", 1, deep)]).unwrap();
        deep = padded;
    }
    // Every type that can be built can be written and parsed again.
    assert_eq!(parse(&deep.to_string()), deep);
    assert!(Dtype::structure(deep.size(), [Field::new("a", 0, deep.clone())]).is_err());
    assert!(Dtype::array(deep, &[2]).is_err());
}

#[test]
fn hidden_ones_take_no_time() {
    // Items of zero bytes; there can be many, and one is a field in the other byte order.
    let dtype = parse(&format!("[('a', '{OTHER_ORDER}U', (65536, 32767)), ('b', 'i1')]"));
    assert!(!dtype.is_native());
    assert!(dtype.swap_plan().unwrap().is_empty());
}

#[test]
fn byte_orders_are_turned() {
    for (dtype, before, after) in [
        ("@i2", "abcd", "badc"),
        ("@f8", "abcdefgh", "hgfedcba"),
        ("@c8", "abcdefgh", "dcbahgfe"),
        ("@c32", "abcdefghijklmnopABCDEFGHIJKLMNOP", "ponmlkjihgfedcbaPONMLKJIHGFEDCBA"),
        ("@f12", "abcdefghijkl", "lkjihgfedcba"),
        ("@U2", "abcdefgh", "dcbahgfe"),
        ("@M8[s]", "abcdefgh", "hgfedcba"),
        ("|S4", "abcd", "abcd"),
        ("('@i2', (2,))", "abcdefgh", "badcfehg"),
        ("(('@i2', (2,)), (2,))", "abcdefgh", "badcfehg"),
        ("[('a', '@i2'), ('b', '~i2'), ('c', 'S2')]", "abcdefABCDEF", "bacdefBACDEF"),
        ("[('a', [('b', '@i2'), ('c', 'i1')], (2,))]", "abcdefABCDEF", "bacedfBACEDF"),
        (
            "{'names': ['a'], 'formats': ['@i2'], 'offsets': [1], 'itemsize': 4}",
            "abcdABCD",
            "acbdACBD",
        ),
        (
            "{'names': ['b', 'a'], 'formats': ['@i2', ('@i2', (1,))], 'offsets': [2, 0], 'itemsize': 4}",
            "abcd",
            "badc",
        ),
        // The same bytes under two names are swapped once.
        (
            "{'names': ['a', 'b'], 'formats': ['@i4', '@f4'], 'offsets': [0, 0], 'itemsize': 4}",
            "abcd",
            "dcba",
        ),
        // An incomplete item is not changed.
        ("@i4", "abcdefg", "dcbaefg"),
        ("[('a', '@i2'), ('b', 'i1')]", "abcde", "bacde"),
    ] {
        let dtype = parse(&dtype.replace('@', OTHER_ORDER).replace('~', NATIVE_ORDER));
        let plan = dtype.swap_plan().unwrap();
        let mut items = before.as_bytes().to_vec();
        plan.apply(&mut items);
        assert_eq!(String::from_utf8_lossy(&items), after, "{dtype}");
        plan.apply(&mut items);
        assert_eq!(items, before.as_bytes(), "{dtype}");
        assert_eq!(plan.is_empty(), dtype.is_native());
        let turned = dtype.to_native();
        assert!(turned.is_native() && turned.swap_plan().unwrap().is_empty(), "{dtype}");
        assert_eq!(turned.with_byte_order(ByteOrder::NATIVE), dtype.to_native());
    }
    for (first, second) in [("@i4", "~i4"), ("@i4", "S4"), ("@i4", "@i2")] {
        let text = format!(
            "{{'names': ['a', 'b'], 'formats': ['{first}', '{second}'], 'offsets': [0, 0], 'itemsize': 4}}"
        );
        let dtype = parse(&text.replace('@', OTHER_ORDER).replace('~', NATIVE_ORDER));
        assert!(matches!(dtype.swap_plan(), Err(Error::Unsupported(_))), "{dtype}");
    }
}

proptest::proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "[\\[\\](){}'\",: \\\\a-z0-9<|é]{0,40}") {
        let _ = Dtype::parse(&text);
        let _ = Dtype::from_descr(&text);
    }

    #[test]
    fn what_is_read_is_written_and_read_again(
        texts in proptest::collection::vec("[<>=|]?[?biufcmMSUVO][0-9]{0,2}(\\[(2|10)?[DsY]\\])?", 1..6),
        gap in 0usize..3,
    ) {
        let dtypes: Vec<_> = texts.iter().filter_map(|text| Dtype::parse(text).ok()).collect();
        let mut fields = Vec::new();
        let mut end = 0;
        for (number, dtype) in dtypes.into_iter().enumerate() {
            let (offset, size) = (end + gap * number, dtype.size());
            let dtype = Dtype::array(dtype, &[2, 3][..number % 3]).unwrap();
            end = offset + dtype.size().max(size);
            fields.push(Field::new(format!("'{number}\""), offset, dtype));
        }
        let dtype = Dtype::structure(end + gap, fields).unwrap();
        proptest::prop_assert_eq!(&Dtype::parse(&dtype.to_string()).unwrap(), &dtype);
        proptest::prop_assert_eq!(&Dtype::from_descr(&dtype.to_descr().unwrap()).unwrap(), &dtype);
    }
}
