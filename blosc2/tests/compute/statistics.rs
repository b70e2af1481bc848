//! Several statistics in one pass, compared with NumPy.

use blosc2::compute::Real;
use blosc2::elements::bytes_of;
use blosc2::{Element, NDArray, RawItems};

use crate::cases::{Case, Cases, of_dtype};

const SCRIPT: &str = r#"
for number in range(count):
    dtype = np.dtype(dtypes[number % len(dtypes)])
    shape = tuple(int(size) for size in rng.integers(1, 12, rng.integers(1, 5)))
    # Multiples of 1/4: their sums are exact.
    items = rng.integers(0, 2 if dtype == bool else 100, shape).astype(dtype)
    if dtype.kind == "i":
        items -= dtype.type(50)
    if dtype.kind == "f":
        items = ((items - 50) / 4).astype(dtype)
        items[rng.random(shape) < rng.choice([0, 0.1, 0.9])] = np.nan
    axes = tuple(int(axis) for axis in rng.permutation(len(shape))[:rng.integers(1, len(shape) + 1)])
    wide = items.astype("f8")
    total = np.nansum(wide, axis=axes)
    numbers = np.sum(~np.isnan(wide), axis=axes)
    exact = (numbers * np.nansum(wide * wide, axis=axes) - total * total) / (numbers * numbers)
    near = np.nanvar(wide, axis=axes)
    assert np.allclose(exact, near, equal_nan=True)
    sums = np.dtype({"b": "i8", "i": "i8", "u": "u8"}.get(dtype.kind, dtype))
    cases.append({"dtype": dtype.str, "shape": shape, "chunks": random_chunks(shape), "axes": axes, "threads": 1 + number % 3,
        "new": total.shape, "sums": sums.str, "means": "<f8", "count": put(numbers.astype("u8")), "sum": put(total.astype(sums)),
        "min": put(np.nanmin(wide, axis=axes).astype(dtype)), "max": put(np.nanmax(wide, axis=axes).astype(dtype)),
        "mean": put(np.nanmean(wide, axis=axes)), "var": put(exact), "items": put(items)})
"#;

fn check<T: Real>(case: &Case<'_>) {
    let typed = NDArray::builder().dtype(T::dtype(), size_of::<T>());
    let typed = typed.chunk_shape(case.list("chunks"));
    let array = typed.from_slice(RawItems(case.bytes("items")), case.list("shape")).unwrap();
    let axes: Vec<i64> = serde_json::from_value(case.value["axes"].clone()).unwrap();
    let lazy = array.lazy::<T>().axes(&axes).threads(case.number("threads") as usize);
    let found = lazy.describe(&[]).unwrap();
    assert_eq!(found.shape(), case.list("new"), "{}", case.value);
    let found = found.items();
    let counts: Vec<u64> = found.iter().map(|stats| stats.count).collect();
    assert_eq!(*bytes_of(&counts), *case.bytes("count"), "{}", case.value);
    let sums: Vec<T::Sum> = found.iter().map(|stats| stats.sum).collect();
    case.check(&T::Sum::dtype().to_string(), &bytes_of(&sums), "sums", "sum");
    let means: Vec<f64> = found.iter().map(|stats| stats.mean).collect();
    case.check("<f8", &bytes_of(&means), "means", "mean");
    // NumPy returns NaN if there are no numbers.
    for (name, items) in [
        ("min", found.iter().map(|stats| stats.min).collect::<Vec<_>>()),
        ("max", found.iter().map(|stats| stats.max).collect()),
    ] {
        for (item, expected) in items.iter().zip(case.bytes(name).chunks(size_of::<T>())) {
            let Some(item) = item else { continue };
            assert_eq!(*bytes_of(&[*item]), *expected, "{name} of {}", case.value);
        }
    }
    for (stats, exact) in found.iter().zip(case.bytes("var").chunks(8)) {
        let exact = f64::from_ne_bytes(exact.try_into().unwrap());
        assert_eq!((stats.min.is_none(), stats.count == 0), (exact.is_nan(), exact.is_nan()));
        // The limit that `LazyExpr` documents.
        let is_near = (stats.var - exact).abs() <= exact * 2f64.powi(-36);
        assert!(is_near || exact.is_nan() && stats.var.is_nan(), "var of {}", case.value);
        assert!(stats.std == stats.var.sqrt() || stats.std.is_nan() && stats.var.is_nan());
    }
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn statistics_are_those_of_numpy() {
    for case in Cases::run(SCRIPT, 20261204, 600).iter() {
        of_dtype!(case.dtype("dtype"), check(&case));
    }
}
