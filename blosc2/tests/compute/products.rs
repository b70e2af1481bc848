//! Products of matrices and tensors, compared with NumPy.

use blosc2::array::Arithmetic;
use blosc2::{CParams, ErrorKind, NDArray, RawItems, Threads};

use crate::cases::{Case, Cases};

const SCRIPT: &str = r#"
numbers = ["|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f4", "<f8", "<f4", "<f8"]
def sizes(axes, number):
    return [int(size) for size in rng.integers(0 if number % 12 == 0 else 1, 10, axes)]
for number in range(count):
    dtype = np.dtype(numbers[number // 2 % len(numbers)])
    case = {"dtype": dtype.str, "threads": 1 + number % 3, "memory": int(2 ** rng.integers(0, 14))}
    if number % 2:
        batch = sizes(rng.integers(0, 3), number)
        m, k, n = [int(size) for size in rng.integers(0 if number % 13 == 0 else 1, 30, 3)]
        stretched = lambda: [1 if rng.random() < 0.3 else size for size in batch][int(rng.integers(0, len(batch) + 1)):]
        kind = rng.integers(0, 6)
        shapes = [[k] if kind == 0 else stretched() + [m, k], [k] if kind in (0, 1) else stretched() + [k, n]]
        if kind == 2:
            shapes[0] = [k]
    else:
        summed, rows, columns = (sizes(rng.integers(0, 3), number) for _ in range(3))
        orders = [rng.permutation(len(summed) + len(free)) for free in (rows, columns)]
        shapes = [[int((summed + free)[axis]) for axis in order] for free, order in zip((rows, columns), orders)]
        axes = [[int(np.flatnonzero(order == axis)[0]) for axis in range(len(summed))] for order in orders]
        case.update({"axes": axes})
    is_exact = dtype.kind != "f" or number % 24 < 20
    if dtype.kind != "f":
        a, b = (random_items(dtype, shape) for shape in shapes)
    elif is_exact:
        # Sums of small integers are exact.
        a, b = (rng.integers(-50, 50, shape).astype(dtype) for shape in shapes)
        for items in (a, b):
            special = rng.random(items.shape) < 0.002
            items[special] = rng.choice([np.nan, np.inf, -np.inf, -0.0])
    else:
        a, b = (np.asarray(rng.standard_normal(shape)).astype(dtype) for shape in shapes)
    product = np.matmul if number % 2 else lambda a, b: np.tensordot(a, b, axes=axes)
    expected = np.asarray(product(a, b))
    assert expected.dtype == dtype
    if dtype.kind == "f":
        expected = expected + dtype.type(0) # not -0.0
    if is_exact:
        case.update({"expected": put(expected)})
    else:
        # Each of the k products and k sums is rounded once, and the expected result to f8.
        k = a.size * b.size and (shapes[0][-1] if number % 2 else int(np.prod([shapes[0][axis] for axis in axes[0]])))
        exact = product(a.astype(np.longdouble), b.astype(np.longdouble))
        bound = product(abs(a).astype("f8"), abs(b).astype("f8")) * ((2 * k + 1) * np.finfo(dtype).eps)
        case.update({"exact": put(np.asarray(exact).astype("<f8")), "bound": put(np.asarray(bound).astype("<f8"))})
    chunks = [random_chunks(shape) for shape in (a.shape, b.shape, expected.shape)]
    case.update({"a": put(a), "b": put(b), "a_shape": a.shape, "b_shape": b.shape, "shape": expected.shape,
        "a_chunks": chunks[0], "b_chunks": chunks[1], "chunks": chunks[2]})
    cases.append(case)
"#;

fn check<T: Arithmetic>(case: &Case<'_>, to_f64: impl Fn(T) -> f64) {
    let made = |name: &str| {
        let typed = NDArray::builder().dtype(T::dtype(), size_of::<T>());
        let typed = typed.chunk_shape(case.list(&format!("{name}_chunks")));
        let shape = case.list(&format!("{name}_shape"));
        typed.from_slice(RawItems(case.bytes(name)), shape).unwrap()
    };
    let (a, b) = (made("a"), made("b"));
    let params = CParams::new().threads(Threads::new(case.number("threads") as usize));
    let builder = NDArray::builder().cparams(params).chunk_shape(case.list("chunks"));
    let builder = builder.max_memory(case.number("memory") as usize);
    let axes = serde_json::from_value::<Option<[Vec<usize>; 2]>>(case.value["axes"].clone());
    let result = match axes.unwrap() {
        Some([one, two]) => builder.tensordot::<T>(&a, &b, (&one, &two)).unwrap(),
        None => builder.matmul::<T>(&a, &b).unwrap(),
    };
    assert_eq!(result.shape(), case.list("shape"), "{}", case.value);
    if !case.value["expected"].is_null() {
        let items = result.read::<RawItems>(..).unwrap().0;
        return case.check(result.dtype_str().unwrap(), &items, "dtype", "expected");
    }
    let numbers = |name: &str| -> Vec<f64> {
        let items = case.bytes(name).chunks_exact(8);
        items.map(|item| f64::from_ne_bytes(item.try_into().unwrap())).collect()
    };
    let (exact, bound) = (numbers("exact"), numbers("bound"));
    let found: Vec<T> = result.read(..).unwrap();
    assert_eq!(found.len(), exact.len());
    for ((found, exact), bound) in found.into_iter().zip(exact).zip(bound) {
        let error = (to_f64(found) - exact).abs();
        assert!(error <= bound, "an error of {error}, expected at most {bound}: {}", case.value);
    }
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn products_are_those_of_numpy() {
    for case in Cases::run(SCRIPT, 20261203, 288).iter() {
        let exact = |_| unreachable!("the products of integers are exact");
        match case.dtype("dtype") {
            "i1" => check::<i8>(&case, |_| exact(0)),
            "i2" => check::<i16>(&case, |_| exact(0)),
            "i4" => check::<i32>(&case, |_| exact(0)),
            "i8" => check::<i64>(&case, |_| exact(0)),
            "u1" => check::<u8>(&case, |_| exact(0)),
            "u2" => check::<u16>(&case, |_| exact(0)),
            "u4" => check::<u32>(&case, |_| exact(0)),
            "u8" => check::<u64>(&case, |_| exact(0)),
            "f4" => check::<f32>(&case, f64::from),
            _ => check::<f64>(&case, |item| item),
        }
    }
}

#[test]
fn shapes_without_a_product_are_errors() {
    let zeros = |shape: &[u64]| NDArray::builder().zeros::<f32>(shape).unwrap();
    let wrong: [(&[u64], &[u64]); 7] = [
        (&[], &[]),
        (&[], &[3]),
        (&[3], &[]),
        (&[3], &[4]),
        (&[2, 3], &[2, 3]),
        (&[2, 3], &[2]),
        (&[2, 3, 4], &[3, 4, 5]),
    ];
    for (a, b) in wrong {
        let error = NDArray::builder().matmul::<f32>(&zeros(a), &zeros(b)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{a:?} {b:?}");
    }
    let (a, b) = (zeros(&[2, 3]), zeros(&[3, 3]));
    let axes: [(&[usize], &[usize]); 5] =
        [(&[2], &[0]), (&[0], &[0]), (&[1], &[0, 1]), (&[1, 1], &[0, 1]), (&[1], &[7])];
    for axes in axes {
        let error = NDArray::builder().tensordot::<f32>(&a, &b, axes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{axes:?}");
    }
    let error = NDArray::builder().matmul::<f64>(&a, &b).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TypeMismatch);
    let other = NDArray::builder().zeros::<f64>((3, 2)).unwrap();
    let error = NDArray::builder().matmul::<f32>(&a, &other).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TypeMismatch);
}

/// The result does not depend on the number of threads, also if the sums of floats are rounded.
#[test]
fn threads_do_not_change_a_product() {
    let made = |seed: u64| {
        let item = |[row, column]: [u64; 2]| ((row * 71 + column * seed) % 97) as f64 / 7.0;
        NDArray::builder().chunk_shape((30, 40)).from_fn([90, 90], item).unwrap()
    };
    let (a, b) = (made(13), made(29));
    let product = |threads: usize| -> Vec<u64> {
        let params = CParams::new().threads(Threads::new(threads));
        let builder = NDArray::builder().cparams(params).chunk_shape((50, 20)).max_memory(60_000);
        let product = builder.matmul::<f64>(&a, &b).unwrap();
        product.read::<Vec<f64>>(..).unwrap().into_iter().map(f64::to_bits).collect()
    };
    let one = product(1);
    for threads in [2, 3, 7] {
        assert!(product(threads) == one, "{threads} threads");
    }
}
