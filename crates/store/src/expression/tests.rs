//! Expressions of several tiles, the memory of results, and the types of numbers. Tiles have 64 items here, and the
//! memory of results has 1 KiB.

use super::*;

fn expression(text: &str, operands: &[(&str, &Arc<NDArray>)]) -> Result<Expression> {
    let operand = |array: &Arc<NDArray>| Operand::Array(Arc::clone(array));
    let operands = operands.iter().map(|(name, array)| ((*name).to_owned(), operand(array)));
    Expression::of(text, operands.collect())
}

fn integers(expression: &Expression) -> Vec<i64> {
    assert_eq!(expression.dtype().to_string(), "<i8");
    let bytes = expression.read_all().unwrap();
    let items: Vec<i64> =
        bytes.chunks_exact(8).map(|item| i64::from_ne_bytes(item.try_into().unwrap())).collect();
    // A box has the items of the whole.
    let region: Vec<_> = expression.shape().iter().map(|size| size / 3..*size).collect();
    let part = cut(&bytes, Type::I64, expression.shape(), &region);
    assert_eq!(expression.read(&region).unwrap(), part);
    items
}

fn kind(result: Result<Expression>) -> ErrorKind {
    result.unwrap_err().kind()
}

/// An array whose blocks do not divide its shape, and its items.
fn array(shape: [u64; 2]) -> (Arc<NDArray>, Vec<i64>) {
    let items: Vec<i64> = (0..(shape[0] * shape[1]) as i64).map(|at| at * 7919 % 601).collect();
    let builder = NDArray::builder().chunk_shape(shape.map(|size| size.min(8)));
    let builder = builder.block_shape(shape.map(|size| size.min(3)));
    (Arc::new(builder.from_slice(&items, shape).unwrap()), items)
}

fn sums(items: &[i64], columns: usize) -> Vec<i64> {
    (0..columns).map(|at| items[at..].iter().step_by(columns).sum()).collect()
}

#[test]
fn results_are_kept_within_their_memory() {
    // 800 bytes of results are kept.
    let (a, items) = array([5, 100]);
    let expected = sums(&items, 100);
    let difference = expression("a - sum(a, axis=0)", &[("a", &a)]).unwrap();
    let differences: Vec<i64> =
        items.iter().enumerate().map(|(at, item)| item - expected[at % 100]).collect();
    assert_eq!(integers(&difference), differences);
    assert_eq!(integers(&difference), differences);
    assert_eq!(difference.kept, 800);
    let text = "a - sum(a, axis=1, keepdims=True) * argmax(a)";
    let rows: Vec<i64> = items.chunks(100).map(|row| row.iter().sum()).collect();
    let max = items.iter().enumerate().rev().max_by_key(|(_, item)| **item).unwrap().0 as i64;
    let expected: Vec<i64> =
        items.iter().enumerate().map(|(at, item)| item - rows[at / 100] * max).collect();
    assert_eq!(integers(&expression(text, &[("a", &a)]).unwrap()), expected);
    let twice = expression("a - sum(a, axis=0) - sum(a, axis=0)", &[("a", &a)]);
    assert_eq!(kind(twice), ErrorKind::Unsupported);

    // 2,400 bytes are not kept. Each of them is computed once, or the expression is refused.
    let (a, items) = array([4, 300]);
    let a = &[("a", &a)][..];
    let expected = sums(&items, 300);
    for text in ["sum(a, axis=0)", "-sum(-a, axis=0)", "sum(a, axis=0) + 0 * sum(a, axis=0)"] {
        assert_eq!(integers(&expression(text, a).unwrap()), expected, "{text}");
    }
    let total = expression("max(sum(a, axis=0)) - min(a)", a).unwrap();
    assert_eq!(integers(&total), [expected.iter().max().unwrap() - items.iter().min().unwrap()]);
    for text in ["a - sum(a, axis=0)", "where(a > sum(a, axis=0), a, 0)", "a == sum(a, axis=0)"] {
        assert_eq!(kind(expression(text, a)), ErrorKind::Unsupported, "{text}");
    }
    let b = Arc::new(NDArray::builder().zeros::<i64>([2, 2, 300]).unwrap());
    let both = expression("sum(sum(b, axis=0), axis=0)", &[("b", &b)]);
    assert_eq!(kind(both), ErrorKind::Unsupported);
}

#[test]
fn expressions_of_expressions_share_memory_and_work() {
    let (a, items) = array([5, 100]);
    let difference = || {
        let difference = expression("a - sum(a, axis=0)", &[("a", &a)]).unwrap();
        Operand::Expression(Box::new(difference))
    };
    let operand = || Operand::Array(Arc::clone(&a));
    let named = |x, y| vec![("x".to_owned(), x), ("y".to_owned(), y)];
    let one = Expression::of("x + y", named(difference(), operand())).unwrap();
    assert_eq!(one.kept, 800);
    let other = Expression::of("x + sum(y, axis=0)", named(difference(), operand()));
    assert_eq!(kind(other), ErrorKind::Unsupported);
    let two = Expression::of("x + y", named(difference(), difference()));
    assert_eq!(kind(two), ErrorKind::Unsupported);
    // Results that are not kept.
    let (wide, _) = array([4, 300]);
    let sums = || {
        let sums = expression("sum(a, axis=0)", &[("a", &wide)]).unwrap();
        Operand::Expression(Box::new(sums))
    };
    let wide = Operand::Array(Arc::clone(&wide));
    Expression::of("x * x + y", named(sums(), sums())).unwrap();
    assert_eq!(kind(Expression::of("x - y", named(sums(), wide))), ErrorKind::Unsupported);

    // Each level would double the work.
    let mut operand = operand();
    for _ in 0..50 {
        let nested = Expression::of("x + x", vec![("x".to_owned(), operand)]).unwrap();
        operand = Operand::Expression(Box::new(nested));
    }
    let Operand::Expression(nested) = operand else { unreachable!() };
    let expected: Vec<i64> = items.iter().map(|item| item << 50).collect();
    assert_eq!(integers(&nested), expected);
}

#[test]
fn rows_are_combined_by_reductions_and_by_axes() {
    let combines = |text: &str| {
        let dtype = || Dtype::parse("|i1").unwrap();
        let row = Operand::Bytes(dtype(), vec![3], vec![1, 2, 3]);
        let rows = Operand::Bytes(dtype(), vec![3, 3], (0..9).collect());
        let operands = vec![("o0".to_owned(), row), ("o1".to_owned(), rows)];
        Expression::of(text, operands).unwrap().combines_rows()
    };
    for text in [
        "o0 + o1",
        "where(o0 > 1, o1, 0)",
        "o1 + sum(o1, axis=1)",
        "o1 > o0",
        "o0 - min(o0)",
        "sum(o1, axis=0)",
        "sum(o0 + o1, axis=1)",
    ] {
        assert!(combines(text), "{text}");
    }
    let rowwise =
        ["o0 * 2", "o0 + sum(o1, axis=1)", "o1 - max(o1, axis=1, keepdims=True)", "1 + 2"];
    for text in rowwise {
        assert!(!combines(text), "{text}");
    }
}

#[test]
fn numbers_have_the_types_of_numpy() {
    let bytes = Arc::new(NDArray::from_slice(&[1i8, -128, 0], 3).unwrap());
    let bools = Arc::new(NDArray::from_slice(&[true, false, true], 3).unwrap());
    let floats = Arc::new(NDArray::from_slice(&[f32::NEG_INFINITY, -0.0, 4.0], 3).unwrap());
    let one = Arc::new(NDArray::from_slice(&[7i64], &[0u64; 0][..]).unwrap());
    let operands = [("a", &bytes), ("b", &bools), ("f", &floats), ("s", &one)];
    let expression = |text: &str| expression(text, &operands);
    let cases: [(&str, &str, &[u8]); 16] = [
        ("a + (True + 1)", "|i1", &[3, 130, 2]),
        ("a + (2 > 1)", "|i1", &[2, 129, 1]),
        ("a + -True", "|i1", &[0, 127, 255]),
        ("a * (True & False)", "|i1", &[0, 0, 0]),
        ("a * (3 - 1 == 2)", "|i1", &[1, 128, 0]),
        ("where(18446744073709551616, a, a + 1)", "|i1", &[1, 128, 0]),
        ("a < 18446744073709551616", "|b1", &[1, 1, 1]),
        ("logical_and(b, 2)", "|b1", &[1, 0, 1]),
        ("conj(b)", "|i1", &[1, 0, 1]),
        ("a + 00", "|i1", &[1, 128, 0]),
        ("isnan(a * absolute(-3))", "|b1", &[0, 0, 0]),
        ("where(b, a, a + sum(s, axis=0) * 0) == a", "|b1", &[1, 1, 1]),
        ("max(s, axis=-1) == 7", "|b1", &[1]),
        ("var(a, ddof=1 - 1) == var(a)", "|b1", &[1]),
        ("std(a, ddof=-1) < std(a, dtype=None)", "|b1", &[1]),
        ("signbit(f ** 0.5)", "|b1", &[1, 1, 0]),
    ];
    for (text, dtype, items) in cases {
        let expression = expression(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let found = (expression.dtype().to_string(), expression.read_all().unwrap());
        let items = match text {
            // The sign of a NaN is not defined.
            _ if text.contains("f **") => vec![found.1[0], items[1], items[2]],
            _ => items.to_vec(),
        };
        assert_eq!(found, (dtype.to_owned(), items), "{text}");
    }
    for (text, dtype) in [
        ("positive(3) * a", "<i8"),
        ("abs(3) * a", "<i8"),
        ("sqrt(2) * f", "<f8"),
        ("a / 2", "<f8"),
        ("f * (1 / 3)", "<f4"),
        ("f ** 0.5", "<f4"),
        ("add(a, 1)", "|i1"),
        ("sum(s, axis=0)", "<i8"),
    ] {
        assert_eq!(expression(text).unwrap().dtype().to_string(), dtype, "{text}");
    }
    let root = expression("isnan(f ** 0.5)").unwrap();
    assert_eq!(root.read_all().unwrap(), [1, 0, 0]);
    for text in [
        "a + add(1, 2)",
        "f * divide(1, 3)",
        "logical_or(0, 1) * a",
        "2 ** 70",
        "2 ** 63 + 0",
        "abs(18446744073709551617) * a",
        "sin(2 ** 64) * f",
        "sum(2 ** 64)",
        "where(b, 2 ** 63, a)",
        "f + (2 ** 126 + 2 ** 126)",
        "f + 9007199254740993 / 2",
        "sum(a, foo=None)",
        "sum(a, keepdims=None)",
        "std(a, ddof=s)",
    ] {
        assert_eq!(kind(expression(text)), ErrorKind::Unsupported, "{text}");
    }
    for text in [
        "012 + a",
        "sum(a, 0, axis=None)",
        "sum(a, axis=0, axis=0)",
        "sum(s, axis=1)",
        "sum(s, axis=(0,))",
        "sum(a, ddof=1)",
    ] {
        assert_eq!(kind(expression(text)), ErrorKind::InvalidData, "{text}");
    }
}

#[test]
fn neighbors_of_half_floats_have_neighboring_bits() {
    use half::f16;

    let pairs =
        [(1.0, 2.0), (1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0), (65504.0, 1e9), (3.0, 3.0)];
    let items = |side: fn(&(f64, f64)) -> f64| {
        Items::F16(pairs.iter().map(|pair| f16::from_f64(side(pair))).collect())
    };
    let (items, to) = (items(|pair| pair.0), items(|pair| pair.1));
    let Items::F16(found) = apply::binary(apply::Binary::NextAfter, &items, &to).unwrap() else {
        panic!()
    };
    let bits: Vec<u16> = found.into_iter().map(f16::to_bits).collect();
    assert_eq!(bits, [0x3c01, 0x3bff, 0xbbff, 0x0001, 0x8001, 0x7c00, 0x4200]);
    let half = NDArray::builder().dtype("<f2", 2).from_slice(RawItems(&[0, 0x3c]), 1).unwrap();
    let half = Arc::new(half);
    let next = expression("nextafter(h, 2)", &[("h", &half)]).unwrap();
    assert_eq!(
        (next.dtype().to_string(), next.read_all().unwrap()),
        ("<f2".to_owned(), vec![1, 0x3c])
    );
}

#[test]
fn parentheses_are_a_level_each() {
    let (a, items) = array([1, 2]);
    let text = |levels: usize| format!("{}a{}", "a + (".repeat(levels), ")".repeat(levels));
    let sum = expression(&text(100), &[("a", &a)]).unwrap();
    assert_eq!(integers(&sum), items.iter().map(|item| item * 101).collect::<Vec<_>>());
    assert_eq!(kind(expression(&text(128), &[("a", &a)])), ErrorKind::Unsupported);
    let nested = |levels: usize| format!("{}a{}", "abs(".repeat(levels), ")".repeat(levels));
    assert!(expression(&nested(127), &[("a", &a)]).is_ok());
    assert_eq!(kind(expression(&nested(128), &[("a", &a)])), ErrorKind::Unsupported);
}

#[test]
fn the_work_counts_the_items_of_all_parts() {
    let (row, column) = (array([1, 100]).0, array([100, 1]).0);
    let sum = expression("sum(r + c) + r", &[("r", &row), ("c", &column)]).unwrap();
    // Both operands, their sum, its sum, the other operand, and the result: items of 8 bytes.
    assert_eq!(
        (sum.shape(), sum.work()),
        (&[1, 100][..], 8 * (100 + 100 + 10_000 + 1 + 100 + 100))
    );
}
