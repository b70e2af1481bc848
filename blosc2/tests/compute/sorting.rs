//! Sorted arrays, compared with NumPy.

use std::fs;

use blosc2::compute::Real;
use blosc2::{AxisSelection, CParams, ErrorKind, NDArray, NDArrayBuilder, RawItems};

use crate::cases::{Case, Cases, of_dtype};

const SCRIPT: &str = r#"
lengths = [0, 1, 2, 63, 64, 65, 1000, 3000]
for number in range(count):
    dtype = np.dtype(dtypes[number % len(dtypes)])
    length = lengths[number % 8] if number < 300 else int(rng.integers(0, 1500))
    items = random_items(dtype, (length,)).copy()
    kind = number % 5
    if kind == 1: # few different items
        items = items[rng.integers(0, max(length // 100, 1), length)] if length else items
    elif kind == 2: # sorted, with some errors
        items = np.sort(items)
        items[rng.integers(0, length, length // 50)] = items[:length // 50]
    elif kind == 3: # one item
        items[:] = items[:1]
    if dtype.kind == "f": # equal items of different bytes
        zeros = rng.random(length) < 0.1
        items[zeros] = np.where(rng.random(length) < 0.5, 0.0, -0.0)[zeros]
    values, counts = np.unique(items, return_counts=True)
    # The first one of equal items, not any of them.
    order = np.argsort(items, kind="stable")
    firsts = items[order][np.cumsum(counts) - counts]
    assert np.array_equal(firsts, values, equal_nan=dtype.kind == "f")
    cases.append({"dtype": dtype.str, "shape": items.shape, "chunks": random_chunks(items.shape),
        "threads": 1 + number % 3, "memory": int(2 ** rng.integers(6, 18)), "file": number % 7 == 0,
        "positions": "<i8", "items": put(items), "sort": put(items[order]), "argsort": put(order.astype("i8")),
        "unique": put(firsts), "counts": put(counts.astype("i8"))})
"#;

fn check<T: Real>(case: &Case<'_>) {
    let typed =
        NDArray::builder().chunk_shape(case.list("chunks")).dtype(T::dtype(), size_of::<T>());
    let source = typed.from_slice(RawItems(case.bytes("items")), case.list("shape")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let builder = |name: &str| {
        let params = CParams::new().threads(case.number("threads") as usize);
        let memory = case.number("memory") as usize;
        let builder = NDArray::builder().cparams(params).max_memory(memory);
        match case.value["file"].as_bool().unwrap() {
            true => builder.target(folder.path().join(name)),
            false => builder,
        }
    };
    let check = |result: NDArray, dtype: &str, name: &str| {
        let items = result.read::<RawItems>(..).unwrap().0;
        case.check(result.dtype_str().unwrap(), &items, dtype, name);
    };
    check(builder("sort").sort::<T>(&source).unwrap(), "dtype", "sort");
    check(builder("argsort").argsort::<T>(&source).unwrap(), "positions", "argsort");
    check(builder("unique").unique::<T>(&source).unwrap(), "dtype", "unique");
    let counts = NDArray::builder();
    let (items, counts) = builder("counted").unique_counts::<T>(&source, counts).unwrap();
    check(items, "dtype", "unique");
    check(counts, "positions", "counts");
    // Temporary files are removed.
    let files = if case.value["file"].as_bool().unwrap() { 4 } else { 0 };
    assert_eq!(fs::read_dir(&folder).unwrap().count(), files);
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn sorted_items_are_those_of_numpy() {
    for case in Cases::run(SCRIPT, 20261130, 600).iter() {
        of_dtype!(case.dtype("dtype"), check(&case));
    }
}

/// A view of every second item from the end, of items in another byte order.
#[test]
fn views_are_sorted() {
    let bytes: Vec<u8> = (0..1000u16).flat_map(|at| (at * 19 % 1000).to_be_bytes()).collect();
    let builder = NDArray::builder().dtype(">u2", 2).chunk_shape(90);
    let mut array = builder.from_slice(RawItems(&bytes), 1000).unwrap();
    let sort = |array: &NDArray| {
        let view = array.view().slice(AxisSelection::strided(.., -2));
        NDArray::builder().max_memory(1 << 10).sort::<u16>(view.unwrap())
    };
    assert_eq!(sort(&array).unwrap_err().kind(), ErrorKind::TypeMismatch);
    array.set_dparams(blosc2::DParams::new().convert_byte_order(true));
    let mut expected: Vec<u16> = (0..1000u16).rev().step_by(2).map(|at| at * 19 % 1000).collect();
    expected.sort_unstable();
    assert_eq!(sort(&array).unwrap().read::<Vec<u16>>(..).unwrap(), expected);
}

#[test]
fn arrays_that_cannot_be_sorted_are_errors() {
    let fails = |array: &NDArray, kind: ErrorKind| {
        let builder = NDArray::builder;
        assert_eq!(builder().sort::<i32>(array).unwrap_err().kind(), kind);
        assert_eq!(builder().argsort::<i32>(array).unwrap_err().kind(), kind);
        assert_eq!(builder().unique::<i32>(array).unwrap_err().kind(), kind);
        let counted = builder().unique_counts::<i32>(array, builder());
        assert_eq!(counted.unwrap_err().kind(), kind);
    };
    fails(&NDArray::from_slice(&[1i32, 2], (1, 2)).unwrap(), ErrorKind::InvalidArgument);
    fails(&NDArray::from_slice(&[1i32], ()).unwrap(), ErrorKind::InvalidArgument);
    fails(&NDArray::from_slice(&[1.0f32, 2.0], 2).unwrap(), ErrorKind::TypeMismatch);
}

/// A view of one row: the chunks of the array have another size on the other axis.
#[test]
fn a_row_is_sorted() {
    let items: Vec<u32> = (0..3000).map(|at| at * 7919 % 3001).collect();
    let array = NDArray::builder().chunk_shape((1, 200)).from_slice(&items, (3, 1000)).unwrap();
    let row = array.view().slice((1, ..)).unwrap();
    let sorted = NDArray::builder().max_memory(1 << 12).sort::<u32>(row).unwrap();
    let mut expected = items[1000..2000].to_vec();
    expected.sort_unstable();
    assert_eq!(sorted.read::<Vec<u32>>(..).unwrap(), expected);
}

/// An existing file is not replaced.
#[test]
fn a_target_that_exists_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let builder = || -> NDArrayBuilder { NDArray::builder().target(folder.path().join("array")) };
    let array = builder().arange(0i32, 10, 1).unwrap();
    assert_eq!(builder().sort::<i32>(&array).unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert_eq!(array.read::<Vec<i32>>(..).unwrap(), Vec::from_iter(0..10));
}
