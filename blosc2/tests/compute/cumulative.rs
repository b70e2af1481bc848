//! Cumulative sums and products, compared with NumPy.

use std::fs;

use blosc2::compute::Numeric;
use blosc2::{ErrorKind, NDArray, RawItems};
use half::f16;

use crate::common::run_python;

/// Writes arrays, and the results of NumPy. The arguments are the seed and the number of cases.
const SCRIPT: &str = r#"
import json, sys, warnings
import numpy as np
import blosc2
warnings.filterwarnings("ignore")
rng = np.random.default_rng(int(sys.argv[1]))
dtypes = ["|b1", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8"]
cases, data = [], open("data", "wb")
def put(array):
    start = data.tell()
    data.write(np.ascontiguousarray(array).tobytes())
    return start, data.tell()
for number in range(int(sys.argv[2])):
    dtype = np.dtype(dtypes[number % len(dtypes)])
    shape = tuple(int(size) for size in rng.integers(0 if number % 10 == 0 else 1, 12, rng.integers(1, 5)))
    if dtype.kind == "f":
        items = (rng.standard_normal(shape) * 2).astype(dtype)
        items[rng.random(shape) < 0.02] = rng.choice([np.nan, np.inf, -np.inf, -0.0, 0])
    else:
        items = np.frombuffer(rng.bytes(int(np.prod(shape)) * dtype.itemsize), dtype).reshape(shape)
        items = items.view("u1").astype(bool) if dtype == bool else items
        items = items & 1 != 0 if dtype == bool else items
    axis = int(rng.integers(len(shape)))
    function = [np.cumsum, np.cumprod][number % 2 if number % 24 < 12 else 1 - number % 2]
    expected = function(items, axis=axis)
    cases.append({"dtype": dtype.str, "shape": shape, "axis": axis, "sum": function is np.cumsum,
        "chunks": [int(rng.integers(1, max(size, 1) + 1)) for size in shape],
        "result": expected.dtype.str, "items": put(items), "expected": put(expected)})
data.close()
json.dump(cases, open("cases.json", "w"))
"#;

/// The bytes of the results, with one NaN for all.
fn computed<T: Numeric>(bytes: &[u8], case: &serde_json::Value) -> (String, Vec<u8>) {
    let list = |name: &str| -> Vec<u64> { serde_json::from_value(case[name].clone()).unwrap() };
    let builder = || NDArray::builder().chunk_shape(&list("chunks")[..]);
    let typed = builder().dtype(T::dtype(), size_of::<T>());
    let source = typed.from_slice(RawItems(bytes), &list("shape")[..]).unwrap();
    let axis = case["axis"].as_u64().unwrap() as usize;
    let result = match case["sum"].as_bool().unwrap() {
        true => builder().cumulative_sum::<T>(&source, axis),
        false => builder().cumulative_prod::<T>(&source, axis),
    };
    let result = result.unwrap();
    (result.dtype_str().unwrap().to_owned(), result.read::<RawItems>(..).unwrap().0)
}

/// Whether the bytes are equal, or NaN of any sign.
fn same(dtype: &str, found: &[u8], expected: &[u8]) -> bool {
    let size = dtype[2..].parse().unwrap();
    let is_nan = |item: &[u8]| match (dtype.as_bytes()[1], size) {
        (b'f', 2) => f16::from_ne_bytes(item.try_into().unwrap()).is_nan(),
        (b'f', 4) => f32::from_ne_bytes(item.try_into().unwrap()).is_nan(),
        (b'f', 8) => f64::from_ne_bytes(item.try_into().unwrap()).is_nan(),
        _ => false,
    };
    let mut pairs = found.chunks_exact(size).zip(expected.chunks_exact(size));
    found.len() == expected.len()
        && pairs.all(|(one, two)| one == two || is_nan(one) && is_nan(two))
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn cumulative_results_are_those_of_numpy() {
    let folder = tempfile::tempdir().unwrap();
    run_python(SCRIPT, folder.path(), &["20261129", "480"]);
    let data = fs::read(folder.path().join("data")).unwrap();
    let cases = fs::read(folder.path().join("cases.json")).unwrap();
    let cases: Vec<serde_json::Value> = serde_json::from_slice(&cases).unwrap();
    assert_eq!(cases.len(), 480);
    for case in &cases {
        let bytes = |name: &str| {
            let [start, end] = [0, 1].map(|at| case[name][at].as_u64().unwrap() as usize);
            &data[start..end]
        };
        let items = bytes("items");
        let (dtype, found) = match &case["dtype"].as_str().unwrap()[1..] {
            "b1" => computed::<bool>(items, case),
            "i1" => computed::<i8>(items, case),
            "i2" => computed::<i16>(items, case),
            "i4" => computed::<i32>(items, case),
            "i8" => computed::<i64>(items, case),
            "u1" => computed::<u8>(items, case),
            "u2" => computed::<u16>(items, case),
            "u4" => computed::<u32>(items, case),
            "u8" => computed::<u64>(items, case),
            "f2" => computed::<f16>(items, case),
            "f4" => computed::<f32>(items, case),
            _ => computed::<f64>(items, case),
        };
        assert_eq!(dtype, case["result"].as_str().unwrap(), "{case}");
        assert!(same(&dtype, &found, bytes("expected")), "{case}");
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
