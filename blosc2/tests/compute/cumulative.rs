//! Cumulative sums and products, compared with NumPy.

use blosc2::compute::Numeric;
use blosc2::{ErrorKind, NDArray, RawItems};

use crate::cases::{Case, Cases, of_dtype};

/// Writes arrays, and the results of NumPy. [`Cases`] adds the first lines.
const SCRIPT: &str = r#"
for number in range(count):
    dtype = np.dtype(dtypes[number % len(dtypes)])
    shape = tuple(int(size) for size in rng.integers(0 if number % 10 == 0 else 1, 12, rng.integers(1, 5)))
    items = random_items(dtype, shape)
    axis = int(rng.integers(len(shape)))
    function = [np.cumsum, np.cumprod][number % 2 if number % 24 < 12 else 1 - number % 2]
    expected = function(items, axis=axis)
    cases.append({"dtype": dtype.str, "shape": shape, "axis": axis, "sum": function is np.cumsum,
        "chunks": random_chunks(shape),
        "result": expected.dtype.str, "items": put(items), "expected": put(expected)})
"#;

/// The bytes of the results, with one NaN for all.
fn computed<T: Numeric>(case: &Case<'_>) -> (String, Vec<u8>) {
    let builder = || NDArray::builder().chunk_shape(case.list("chunks"));
    let typed = builder().dtype(T::dtype(), size_of::<T>());
    let source = typed.from_slice(RawItems(case.bytes("items")), case.list("shape")).unwrap();
    let axis = case.number("axis") as usize;
    let result = match case.value["sum"].as_bool().unwrap() {
        true => builder().cumulative_sum::<T>(&source, axis),
        false => builder().cumulative_prod::<T>(&source, axis),
    };
    let result = result.unwrap();
    (result.dtype_str().unwrap().to_owned(), result.read::<RawItems>(..).unwrap().0)
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn cumulative_results_are_those_of_numpy() {
    let cases = Cases::run(SCRIPT, 20261129, 480);
    for case in cases.iter() {
        let (dtype, found) = of_dtype!(case.dtype("dtype"), computed(&case));
        case.check(&dtype, &found, "result", "expected");
    }
}

#[test]
fn a_missing_axis_and_another_dtype_are_errors() {
    let array = NDArray::from_slice(&[1i32, 2], 2).unwrap();
    let error = NDArray::builder().cumulative_sum::<i32>(&array, 1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    let error = NDArray::builder().cumulative_prod::<f32>(&array, 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TypeMismatch);
}
