//! Differences, and items at positions on an axis, compared with NumPy.

use blosc2::compute::Real;
use blosc2::{CParams, DParams, ErrorKind, NDArray, RawItems, Threads};

use crate::cases::{Case, Cases, of_dtype};

const SCRIPT: &str = r#"
for number in range(count):
    dtype = np.dtype(dtypes[number // 2 % len(dtypes)])
    shape = tuple(int(size) for size in rng.integers(0 if number % 10 == 0 else 1, 12, rng.integers(1, 5)))
    axis = int(rng.integers(len(shape)))
    case = {"dtype": dtype.str, "axis": axis, "threads": 1 + number % 3, "memory": int(2 ** rng.integers(0, 12))}
    if number % 2:
        items = random_items(dtype, shape)
        n = int(rng.integers(0, shape[axis] + 3)) if number % 8 == 1 else int(rng.integers(0, 3))
        expected = np.diff(items, n=n, axis=axis)
        case.update({"n": n})
    else:
        # A size of 1 on another axis is broadcast.
        own = [1 if rng.random() < 0.2 else size for size in shape]
        asked = [1 if rng.random() < 0.2 else size for size in shape]
        own[axis], asked[axis] = max(shape[axis], 1), int(rng.integers(0, 15))
        items = random_items(dtype, own)
        integer = np.dtype(["<i8", "|i1", "<u4", "<u8", ">i8", ">u2"][number // 2 % 6])
        indices = rng.integers(-own[axis] if integer.kind == "i" else 0, own[axis], asked).astype(integer)
        whole = [max(one, two) if one and two else 0 for one, two in zip(own, asked)]
        whole[axis] = own[axis]
        expected = np.take_along_axis(np.broadcast_to(items, whole), indices.astype("i8"), axis)
        case.update({"integer": integer.str, "asked": asked, "indices": put(indices), "index_chunks": random_chunks(asked)})
    case.update({"shape": items.shape, "chunks": random_chunks(items.shape), "new": expected.shape,
        "new_chunks": random_chunks(expected.shape), "items": put(items), "expected": put(expected)})
    cases.append(case)
"#;

fn check<T: Real>(case: &Case<'_>) {
    let typed = NDArray::builder().dtype(T::dtype(), size_of::<T>());
    let typed = typed.chunk_shape(case.list("chunks"));
    let source = typed.from_slice(RawItems(case.bytes("items")), case.list("shape")).unwrap();
    let params = CParams::new().threads(Threads::new(case.number("threads") as usize));
    let builder = NDArray::builder().cparams(params).chunk_shape(case.list("new_chunks"));
    let axis = case.number("axis") as usize;
    let result = match case.value["n"].as_u64() {
        Some(n) => builder.diff::<T>(&source, n as usize, axis).unwrap(),
        None => {
            let integer = case.text("integer");
            let typed = NDArray::builder().dtype(integer, integer[2..].parse().unwrap());
            let typed = typed.chunk_shape(case.list("index_chunks"));
            let items = RawItems(case.bytes("indices"));
            let indices = typed.from_slice(items, case.list("asked")).unwrap();
            let builder = builder.max_memory(case.number("memory") as usize);
            builder.take_along_axis(&source, &indices, axis).unwrap()
        }
    };
    assert_eq!(result.shape(), case.list("new"), "{}", case.value);
    let items = result.read::<RawItems>(..).unwrap().0;
    case.check(result.dtype_str().unwrap(), &items, "dtype", "expected");
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn items_along_axes_are_those_of_numpy() {
    for case in Cases::run(SCRIPT, 20261202, 300).iter() {
        of_dtype!(case.dtype("dtype"), check(&case));
    }
}

#[test]
fn wrong_axes_and_indices_are_errors() {
    let array = NDArray::builder().reshape(&NDArray::builder().arange(0i32, 6, 1).unwrap(), (2, 3));
    let array = array.unwrap();
    let diff = |axis| NDArray::builder().diff::<i32>(&array, 1, axis).unwrap_err().kind();
    assert_eq!(diff(2), ErrorKind::InvalidArgument);
    let error = NDArray::builder().diff::<i64>(&array, 1, 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TypeMismatch);
    let taken = |indices: &NDArray, axis| {
        NDArray::builder().take_along_axis(&array, indices, axis).unwrap_err().kind()
    };
    let indices = |items: &[i64], shape: &[u64]| NDArray::from_slice(items, shape).unwrap();
    assert_eq!(taken(&indices(&[0, 1], &[2, 1]), 2), ErrorKind::InvalidArgument);
    assert_eq!(taken(&indices(&[0, 1, 2], &[3, 1]), 1), ErrorKind::InvalidArgument);
    assert_eq!(taken(&indices(&[0, 1], &[2]), 1), ErrorKind::InvalidArgument);
    for wrong in [3, -4, i64::MAX, i64::MIN] {
        assert_eq!(taken(&indices(&[0, wrong], &[2, 1]), 1), ErrorKind::OutOfBounds, "{wrong}");
    }
    let large = NDArray::from_slice(&[0, u64::MAX], (2, 1)).unwrap();
    assert_eq!(taken(&large, 1), ErrorKind::OutOfBounds);
    let floats = NDArray::from_slice(&[0.0f32, 1.0], (2, 1)).unwrap();
    assert_eq!(taken(&floats, 1), ErrorKind::TypeMismatch);
}

/// The positions of an `argsort` take the sorted items, also from a view of items that are no numbers.
#[test]
fn positions_of_argsort_take_sorted_items() {
    let keys: Vec<u32> = (0..1000).map(|at| at * 7919 % 1009 / 3).collect();
    let array = NDArray::builder().chunk_shape(77).from_slice(&keys, 1000).unwrap();
    let order = NDArray::builder().chunk_shape(90).argsort::<u32>(&array).unwrap();
    let items: Vec<[u32; 2]> = keys.iter().zip(0..).map(|(key, at)| [*key, at]).collect();
    let items = NDArray::builder().chunk_shape(50).from_slice(&items, 1000).unwrap();
    let taken = NDArray::builder().max_memory(100).take_along_axis(&items, &order, 0).unwrap();
    let taken: Vec<[u32; 2]> = taken.read(..).unwrap();
    assert!(taken.is_sorted() && taken.len() == 1000);
}

#[test]
fn another_byte_order_is_converted() {
    let builder = NDArray::builder().dtype(">i4", 4);
    let bytes: Vec<u8> = [5i32, 9, -3].iter().flat_map(|item| item.to_be_bytes()).collect();
    let mut array = builder.from_slice(RawItems(&bytes), 3).unwrap();
    let error = NDArray::builder().diff::<i32>(&array, 1, 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TypeMismatch);
    array.set_dparams(DParams::new().convert_byte_order(true));
    let result = NDArray::builder().diff::<i32>(&array, 1, 0).unwrap();
    assert_eq!(result.read::<Vec<i32>>(..).unwrap(), [4, -12]);
}

#[test]
fn differences_of_complex_numbers_are_computed() {
    use num_complex::Complex;
    let items = [(1.0f32, 2.0f32), (4.0, -1.0), (0.5, 0.0)].map(|(re, im)| Complex::new(re, im));
    let array = NDArray::from_slice(&items, 3).unwrap();
    let result = NDArray::builder().diff::<Complex<f32>>(&array, 1, 0).unwrap();
    let expected = [Complex::new(3.0, -3.0), Complex::new(-3.5, 1.0)];
    assert_eq!(result.read::<Vec<Complex<f32>>>(..).unwrap(), expected);
    let other = NDArray::builder().dtype("<f8", 8);
    let error = other.diff::<Complex<f32>>(&array, 1, 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TypeMismatch);
}
