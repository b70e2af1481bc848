//! Reductions of arrays from Python, compared with exact results and with those of NumPy.

use std::fs;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::thread;

use blosc2::compute::{LazyExpr, Numeric, Source};
use blosc2::{AxisSelection, Element, ErrorKind, NDArray, NDArrayView, Result, Selection};
use half::f16;
use num_complex::Complex;
use serde::Deserialize;

use crate::common::{repeats, run_python};

/// The number of reductions in a long run; see `repeats`.
const CASES: usize = 50_000;

/// An array, and reductions of it. Offsets and lengths refer to the file `data`.
#[derive(Debug, Deserialize)]
struct Line {
    dtype: String,
    shape: Vec<u64>,
    chunks: Vec<u64>,
    blocks: Vec<u64>,
    other_chunks: Vec<u64>,
    other_blocks: Vec<u64>,
    frame: (usize, usize),
    cases: Vec<Case>,
}

/// A reduction and its result.
#[derive(Debug, Deserialize)]
struct Case {
    operation: String,
    axes: Option<Vec<i64>>,
    keepdims: bool,
    ddof: u64,
    /// Start, stop and step along each axis. A negative step reverses the range.
    slices: Option<Vec<(i64, i64, i64)>>,
    order: Option<Vec<usize>>,
    /// Whether the error `InvalidArgument` is expected.
    fails: bool,
    #[serde(default)]
    shape: Vec<u64>,
    #[serde(default)]
    expected: (usize, usize),
    /// How far each part of a result may be away, or `None` if it can be any number; without a list results are equal.
    #[serde(default)]
    within: Option<Vec<Option<f64>>>,
    /// The size of a part of a result in bytes, if there is a list.
    #[serde(default)]
    part: usize,
}

/// The bytes of a number, with one NaN for all.
trait Bits: Element {
    fn bits(self) -> Vec<u8>;

    /// Whether a complex number is NaN as a whole; for other numbers `bits` returns one NaN.
    fn whole(self) -> Self {
        self
    }
}

macro_rules! bits {
    ($($type:ty, $item:ident => $bits:expr;)*) => {$(
        impl Bits for $type {
            fn bits(self) -> Vec<u8> {
                let $item = self;
                $bits
            }
        }
    )*};
}

bits! {
    bool, item => vec![u8::from(item)];
    i8, item => item.to_le_bytes().to_vec();
    u8, item => item.to_le_bytes().to_vec();
    i16, item => item.to_le_bytes().to_vec();
    u16, item => item.to_le_bytes().to_vec();
    i32, item => item.to_le_bytes().to_vec();
    u32, item => item.to_le_bytes().to_vec();
    i64, item => item.to_le_bytes().to_vec();
    u64, item => item.to_le_bytes().to_vec();
    // The NaN of NumPy.
    f16, item => if item.is_nan() { 0x7e00 } else { item.to_bits() }.to_le_bytes().to_vec();
    f32, item => if item.is_nan() { 0x7fc0_0000 } else { item.to_bits() }.to_le_bytes().to_vec();
    f64, item => if item.is_nan() { 0x7ff8 << 48 } else { item.to_bits() }.to_le_bytes().to_vec();
}

macro_rules! complex {
    ($($part:ty)*) => {$(
        impl Bits for Complex<$part> {
            fn bits(self) -> Vec<u8> {
                [self.re.bits(), self.im.bits()].concat()
            }

            fn whole(self) -> Self {
                let nan = <$part>::NAN;
                if self.is_nan() { Complex::new(nan, nan) } else { self }
            }
        }
    )*};
}

complex! { f32 f64 }

/// The shape and the items of a result.
#[derive(Debug, PartialEq)]
struct Found(Vec<u64>, Vec<Vec<u8>>);

impl Found {
    fn of<T: Bits>(shape: &[u64], items: impl IntoIterator<Item = T>) -> Self {
        Self(shape.to_vec(), items.into_iter().map(Bits::bits).collect())
    }
}

/// Computes a reduction. With `is_stored` the result is written to an array.
fn reduce<T, S>(expression: LazyExpr<S>, case: &Case, is_stored: bool) -> Result<Found>
where
    T: Numeric<Sum: Bits, Mean: Bits, Variance: Bits> + Bits,
    S: Source<Item = T>,
{
    macro_rules! all_forms {
        ($type:ty, $method:ident($($argument:expr)?), $item:ident => $bits:expr) => {{
            let bits = |$item: $type| $bits;
            let Some(axes) = &case.axes else {
                return Ok(Found::of(&[], [bits(expression.$method($($argument)?)?)]));
            };
            let expression = expression.axes(axes).keepdims(case.keepdims);
            if is_stored {
                let array = expression.builder(NDArray::builder()).$method($($argument)?)?;
                let items = array.read::<Vec<$type>>(..)?;
                return Ok(Found::of(array.shape(), items.into_iter().map(bits)));
            }
            let reduced = expression.$method($($argument)?)?;
            let shape = reduced.shape().to_vec();
            Ok(Found::of(&shape, reduced.into_items().into_iter().map(bits)))
        }};
    }
    match &*case.operation {
        "sum" => all_forms!(T::Sum, sum(), item => item),
        "prod" => all_forms!(T::Sum, prod(), item => item),
        "mean" => all_forms!(T::Mean, mean(), item => item),
        "var" => all_forms!(T::Variance, var(case.ddof), item => item),
        "std" => all_forms!(T::Variance, std(case.ddof), item => item),
        "min" => all_forms!(T, min(), item => item.whole()),
        "max" => all_forms!(T, max(), item => item.whole()),
        "argmin" => all_forms!(u64, argmin(), item => item),
        "argmax" => all_forms!(u64, argmax(), item => item),
        "any" => all_forms!(bool, any(), item => item),
        "all" => all_forms!(bool, all(), item => item),
        "count_nonzero" => all_forms!(u64, count_nonzero(), item => item),
        other => unreachable!("{other}"),
    }
}

fn view<'a>(array: &'a NDArray, case: &Case) -> NDArrayView<'a> {
    let mut view = array.view();
    if let Some(slices) = &case.slices {
        let along = |&(start, stop, step): &(i64, i64, i64)| {
            AxisSelection::strided(start..stop, NonZero::new(step).unwrap().get())
        };
        view = view.slice(slices.iter().map(along).collect::<Selection>()).unwrap();
    }
    match &case.order {
        Some(order) => view.permute(order).unwrap(),
        None => view,
    }
}

fn check<T>(array: &NDArray, copy: &NDArray, case: &Case, data: &[u8])
where
    T: Numeric<Sum: Bits, Mean: Bits, Variance: Bits> + Bits,
{
    let found = |array, threads, is_stored| {
        reduce::<T, _>(view(array, case).lazy().threads(threads), case, is_stored)
    };
    if case.fails {
        for threads in [1, 4] {
            let error = found(array, threads, false).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        }
        return;
    }
    let bytes = &data[case.expected.0..][..case.expected.1];
    let count = case.shape.iter().product::<u64>() as usize;
    let size = bytes.len().checked_div(count).unwrap_or(1);
    let expected = Found(case.shape.clone(), bytes.chunks(size).map(<[u8]>::to_vec).collect());
    let first = found(array, 1, false).unwrap();
    match &case.within {
        None => same(&first, &expected, "one thread"),
        Some(within) => check_within(&first, &expected, within, case.part),
    }
    same(&found(array, 4, false).unwrap(), &first, "four threads");
    same(&found(array, 4, true).unwrap(), &first, "stored");
    match (found(copy, 4, false).unwrap(), &case.within) {
        (found, None) => same(&found, &first, "other chunk and block shapes"),
        (found, Some(within)) => check_within(&found, &expected, within, case.part),
    }
}

/// Asserts that two results are equal. The message has the first difference only.
fn same(found: &Found, expected: &Found, what: &str) {
    assert_eq!(found.0, expected.0, "{what}: the shape");
    assert_eq!(found.1.len(), expected.1.len(), "{what}: the number of items");
    for (at, (found, expected)) in found.1.iter().zip(&expected.1).enumerate() {
        assert_eq!(found, expected, "{what}: item {at}");
    }
}

/// Returns a part of a result: an `f16`, an `f32` or an `f64`.
fn part(bytes: &[u8]) -> f64 {
    match bytes.len() {
        2 => f16::from_le_bytes(bytes.try_into().unwrap()).to_f64(),
        4 => f32::from_le_bytes(bytes.try_into().unwrap()).into(),
        _ => f64::from_le_bytes(bytes.try_into().unwrap()),
    }
}

fn check_within(found: &Found, expected: &Found, within: &[Option<f64>], size: usize) {
    assert_eq!(found.0, expected.0);
    assert_eq!((found.1.len(), within.len()), (expected.1.len(), expected.1.len()));
    for ((found, expected), within) in found.1.iter().zip(&expected.1).zip(within) {
        let Some(within) = within else { continue };
        for (found, expected) in found.chunks(size).zip(expected.chunks(size)) {
            let (found, wanted) = (part(found), part(expected));
            // Infinities and NaN are equal only.
            let is_near = found == wanted || (found - wanted).abs() <= *within;
            let is_near = is_near || found.is_nan() && wanted.is_nan();
            assert!(is_near, "{found:e} {wanted:e} {within:e}");
        }
    }
}

/// Checks all reductions of an array, and returns the text of the first failed one.
fn check_line(line: &Line, data: &[u8]) -> Option<String> {
    let check = match &*line.dtype {
        "b1" => check::<bool>,
        "i1" => check::<i8>,
        "i2" => check::<i16>,
        "i4" => check::<i32>,
        "i8" => check::<i64>,
        "u1" => check::<u8>,
        "u2" => check::<u16>,
        "u4" => check::<u32>,
        "u8" => check::<u64>,
        "f2" => check::<f16>,
        "f4" => check::<f32>,
        "f8" => check::<f64>,
        "c8" => check::<Complex<f32>>,
        "c16" => check::<Complex<f64>>,
        other => unreachable!("{other}"),
    };
    let mut array = NDArray::open_rw(data[line.frame.0..][..line.frame.1].to_vec()).unwrap();
    array.set_dparams(array.info().dparams.convert_byte_order(true));
    assert_eq!(array.shape(), line.shape);
    let builder =
        NDArray::builder().chunk_shape(&line.other_chunks).block_shape(&line.other_blocks);
    let mut copy = builder.copy(&array).unwrap();
    copy.set_dparams(copy.info().dparams.convert_byte_order(true));
    line.cases.iter().find_map(|case| {
        let run = || check(&array, &copy, case, data);
        let panic = catch_unwind(AssertUnwindSafe(run)).err()?;
        let text = panic.downcast_ref::<String>().map_or("a panic", String::as_str);
        let Line { dtype, shape, chunks, blocks, .. } = line;
        let array = format!("{dtype} {shape:?} in {chunks:?} in {blocks:?}");
        Some(format!("{array}: {case:?}\n  {text}"))
    })
}

/// Checks reductions that Python makes of a seed.
fn check_seed(folder: &Path, cases: usize, seed: u64) {
    run_python(include_str!("numpy.py"), folder, &[&cases.to_string(), &seed.to_string()]);
    let data = fs::read(folder.join("data")).unwrap();
    let lines = fs::read_to_string(folder.join("cases.json")).unwrap();
    let lines: Vec<Line> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.iter().map(|line| line.cases.len()).sum::<usize>(), cases);
    let failed = thread::scope(|scope| {
        let parts = lines.chunks(lines.len().div_ceil(4).max(1));
        let data = &data;
        let check = |lines: &[Line]| -> Vec<String> {
            lines.iter().filter_map(|line| check_line(line, data)).collect()
        };
        let parts: Vec<_> = parts.map(|part| scope.spawn(move || check(part))).collect();
        parts.into_iter().flat_map(|part| part.join().unwrap()).collect::<Vec<_>>()
    });
    let first = &failed[..failed.len().min(5)];
    assert!(failed.is_empty(), "seed {seed}: {} failed\n{}", failed.len(), first.join("\n"));
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn reductions_are_those_of_numpy() {
    let folder = tempfile::tempdir().unwrap();
    check_seed(folder.path(), repeats(CASES), 1);
}
