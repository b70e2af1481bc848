//! Reductions of arrays of many blocks, folds and statistics, against loops over arrays of the crate `ndarray`.

use blosc2::compute::{Description, LazyExpr, Source, zip};
use blosc2::{ErrorKind, NDArray, OpenOptions, Result};
use half::f16;
use ndarray::ArrayD;

use crate::common::{Rng, repeats};
use crate::samples::{Viewed, cut, made, random_shape, reduced, shape_of};

/// Some axes of an array, as indices and as a caller names them.
fn random_axes(ndim: usize, rng: &mut Rng) -> (Vec<usize>, Vec<i64>) {
    let axes: Vec<usize> = (0..ndim).filter(|_| rng.below(2) == 0).collect();
    let named =
        axes.iter().map(|&axis| axis as i64 - if rng.below(2) == 0 { ndim as i64 } else { 0 });
    let mut named: Vec<i64> = named.collect();
    if rng.below(2) == 0 {
        named.reverse();
    }
    (axes, named)
}

fn first_position(items: &[i32], is_better: fn(i32, i32) -> bool) -> u64 {
    let best = (1..items.len())
        .fold(0, |best, at| if is_better(items[at], items[best]) { at } else { best });
    best as u64
}

/// Checks reductions of integers along some axes.
fn check_integers<S: Source<Item = i32>>(
    expression: impl Fn() -> LazyExpr<S>,
    all: &ArrayD<i32>,
    rng: &mut Rng,
    what: &str,
) {
    let (axes, named) = random_axes(all.ndim(), rng);
    let keepdims = rng.below(2) == 0;
    let what = format!("{what}, axes {named:?}, keepdims {keepdims}");
    let mut shape = shape_of(all);
    match keepdims {
        true => axes.iter().for_each(|&axis| shape[axis] = 1),
        false => {
            let mut at = 0..;
            shape.retain(|_| !axes.contains(&at.next().unwrap()));
        }
    }
    macro_rules! same {
        ($method:ident, $type:ty, $combine:expr) => {{
            let combine: fn(&[i32]) -> $type = $combine;
            let expected: Vec<$type> = reduced(all, &axes, combine).into_iter().collect();
            let what = format!("{what}: {}", stringify!($method));
            for threads in [1, 4] {
                let along = || expression().threads(threads).axes(&named).keepdims(keepdims);
                let found = along().$method().unwrap();
                assert_eq!((found.shape(), found.items()), (&shape[..], &expected[..]), "{what}");
                let stored = along().builder(cut(&shape, rng)).$method().unwrap();
                assert_eq!(stored.shape(), shape, "{what}");
                assert_eq!(stored.read::<Vec<$type>>(..).unwrap(), expected, "{what}");
            }
        }};
    }
    same!(sum, i64, |items| items.iter().map(|item| i64::from(*item)).sum());
    same!(any, bool, |items| items.iter().any(|item| *item != 0));
    same!(all, bool, |items| items.iter().all(|item| *item != 0));
    same!(count_nonzero, u64, |items| items.iter().filter(|item| **item != 0).count() as u64);
    // Multiples of 1/4, whose sums are exact in `f64`.
    let quarters = || {
        let quarters = expression().map(|item| f64::from(item) / 4.0);
        quarters.threads(4).axes(&named).keepdims(keepdims)
    };
    let sums = reduced(all, &axes, |items| items.iter().map(|item| f64::from(*item)).sum::<f64>());
    let sums: Vec<f64> = sums.into_iter().map(|sum| sum / 4.0).collect();
    assert_eq!(quarters().sum().unwrap().items(), sums, "{what}: quarters");
    let count: usize = axes.iter().map(|&axis| all.len_of(ndarray::Axis(axis))).product();
    if count > 0 {
        let means: Vec<f64> = sums.iter().map(|sum| sum / count as f64).collect();
        assert_eq!(quarters().mean().unwrap().items(), means, "{what}: quarters");
    }
    if axes.iter().all(|&axis| all.len_of(ndarray::Axis(axis)) > 0) {
        same!(min, i32, |items| *items.iter().min().unwrap());
        same!(max, i32, |items| *items.iter().max().unwrap());
        same!(argmin, u64, |items| first_position(items, |one, other| one < other));
        same!(argmax, u64, |items| first_position(items, |one, other| one > other));
    }
}

#[test]
fn reductions_of_integers_are_exact() {
    for seed in 0..repeats(500) as u64 {
        let rng = &mut Rng(seed);
        let shape = random_shape(rng, 2000);
        let range = *rng.pick(&[3, 100, 1 << 32]);
        let item = |rng: &mut Rng| (rng.below(range) as i64 - (range / 2) as i64) as i32;
        let viewed = Viewed::random(&shape, rng, item);
        let what = format!("seed {seed}, {shape:?}");
        let view = viewed.view();
        check_integers(|| view.lazy::<i32>(), &viewed.model, rng, &what);
        let (other, other_model) = made(&shape, rng, item);
        let sum = || zip((&view, &other)).map(|(one, other): (i32, i32)| one ^ other);
        let mut model = viewed.model.clone();
        model.zip_mut_with(&other_model, |one, other| *one ^= other);
        check_integers(sum, &model, rng, &what);
    }
}

/// Shapes of large arrays.
const SHAPES: [&[u64]; 6] =
    [&[150_000], &[400, 390], &[20_000, 9], &[7, 21_000], &[60, 50, 55], &[9, 30, 8, 77]];

/// Arrays of several tiles for each piece of work, and of several pieces for each chunk.
#[test]
fn reductions_of_many_blocks_are_exact() {
    for seed in 0..repeats(20) as u64 {
        let rng = &mut Rng(seed);
        let shape = *rng.pick(&SHAPES);
        let side = |size: u64, rng: &mut Rng| (size / (1 + rng.below(4))).max(1);
        let chunks: Vec<u64> = shape.iter().map(|&size| side(size, rng)).collect();
        let blocks: Vec<u64> = chunks.iter().map(|&size| side(size, rng).div_ceil(4)).collect();
        let range = *rng.pick(&[50, 1 << 32]);
        let count = shape.iter().product::<u64>() as usize;
        let items: Vec<i32> = (0..count).map(|_| rng.below(range) as i32).collect();
        let builder = NDArray::builder().chunk_shape(&chunks).block_shape(&blocks);
        let array = builder.from_slice(&items, shape).unwrap();
        let model = crate::samples::model(shape, items);
        let what = format!("seed {seed}, {shape:?} in {chunks:?} in {blocks:?}");
        check_integers(|| array.lazy::<i32>(), &model, rng, &what);
        let start: Vec<u64> = shape.iter().map(|size| rng.below(size / 2)).collect();
        let ranges: Vec<_> = start.iter().zip(shape).map(|(&start, &end)| start..end).collect();
        let view = array.view().slice(&ranges).unwrap();
        let part = model.slice_each_axis(|axis| {
            let range = &ranges[axis.axis.index()];
            (range.start as usize..range.end as usize).into()
        });
        check_integers(|| view.lazy::<i32>(), &part.to_owned(), rng, &what);
    }
}

/// The results do not fit in the memory for results, so they are computed chunk by chunk.
#[test]
fn large_results_are_stored() {
    let shape = [700_000, 2];
    let items: Vec<u8> = Rng(1).bytes(1_400_000);
    let array = NDArray::builder().chunk_shape([90_000, 1]).from_slice(&items, shape).unwrap();
    let expected: Vec<u64> =
        items.as_chunks::<2>().0.iter().map(|[a, b]| u64::from(*a) + u64::from(*b)).collect();
    for keepdims in [false, true] {
        let along = array.lazy::<u8>().threads(3).axes(1).keepdims(keepdims);
        let sums = along
            .builder(NDArray::builder().chunk_shape(&[110_000, 1][..1 + usize::from(keepdims)]))
            .sum()
            .unwrap();
        assert_eq!(sums.read::<Vec<u64>>(..).unwrap(), expected);
    }
}

/// The product of two factors, and the sum of two numbers, are those of the processor.
#[test]
fn two_items_are_combined_with_one_rounding() {
    let mut rng = Rng(1);
    // All bits are random, or most numbers have a product near the smallest numbers.
    let mut random = |low: i32, span: i32, bits: u32| {
        let exponent = low + rng.below(span as u64) as i32;
        let digits = (1 << bits) | rng.below(1 << bits);
        let sign = if rng.below(2) == 0 { -1.0 } else { 1.0 };
        sign * digits as f64 * 2f64.powi(exponent - bits as i32)
    };
    for round in 0..repeats(5000) {
        let bits = [52, 26, 5][round % 3];
        let a = random(-60, 120, bits);
        let b = if round % 2 == 0 { random(-1000, 2000, bits) } else { random(-1100, 160, bits) };
        let pair = NDArray::from_slice(&[a, b], 2).unwrap();
        assert_eq!(pair.lazy::<f64>().prod().unwrap(), a * b, "{a:e} * {b:e}");
        assert_eq!(pair.lazy::<f64>().sum().unwrap(), a + b, "{a:e} + {b:e}");
        let bits = [23, 11, 3][round % 3];
        let (a, b) = (random(-60, 120, bits) as f32, random(-149, 270, bits) as f32);
        let pair = NDArray::from_slice(&[a, b], 2).unwrap();
        assert_eq!(pair.lazy::<f32>().prod().unwrap(), a * b, "{a:e} * {b:e}");
        assert_eq!(pair.lazy::<f32>().sum().unwrap(), a + b, "{a:e} + {b:e}");
        // Products of two such numbers are exact in `f64`; so are sums.
        let half = |number: f64| f16::from_f64(number);
        let (a, b) = (half(random(-24, 40, 10)), half(random(-24, 40, 10)));
        let pair = NDArray::from_slice(&[a, b], 2).unwrap();
        let (wide, other) = (f64::from(a), f64::from(b));
        assert_eq!(pair.lazy::<f16>().prod().unwrap(), half(wide * other), "{a} * {b}");
        assert_eq!(pair.lazy::<f16>().sum().unwrap(), half(wide + other), "{a} + {b}");
    }
}

fn fold<S: Source<Item = u32>>(expression: LazyExpr<S>, threads: usize) -> Result<Vec<u32>> {
    expression.threads(threads).fold(Vec::new(), push, join)
}

fn push(mut all: Vec<u32>, item: u32) -> Vec<u32> {
    all.push(item);
    all
}

fn join(mut one: Vec<u32>, other: Vec<u32>) -> Vec<u32> {
    one.extend(other);
    one
}

#[test]
fn folds_combine_items_in_a_fixed_order() {
    for seed in 0..repeats(500) as u64 {
        let rng = &mut Rng(seed);
        let shape = random_shape(rng, 3000);
        let viewed = Viewed::random(&shape, rng, |rng| rng.below(1000) as u32);
        let (view, model) = (viewed.view(), &viewed.model);
        let what = format!("seed {seed}, {shape:?}");
        let in_c_order: Vec<u32> = model.iter().copied().collect();
        let mut one = fold(view.lazy(), 1).unwrap();
        assert_eq!(fold(view.lazy(), 4).unwrap(), one, "{what}");
        if shape.len() < 2 {
            assert_eq!(one, in_c_order, "{what}");
        }
        let mut sorted = in_c_order;
        one.sort_unstable();
        sorted.sort_unstable();
        assert_eq!(one, sorted, "{what}");
        for axis in 0..shape.len() {
            let along = view.lazy::<u32>().axes(axis).threads(4);
            let found = along.fold(Vec::new(), push, join).unwrap().into_items();
            let expected: Vec<_> = reduced(model, &[axis], <[u32]>::to_vec).into_iter().collect();
            assert_eq!(found, expected, "{what}, axis {axis}");
        }
    }
}

#[test]
fn the_order_of_a_fold_does_not_depend_on_threads() {
    // Each chunk has several tiles, and is divided among threads.
    let (shape, chunks) = ([512, 512], [256, 256]);
    let builder = NDArray::builder().chunk_shape(chunks).block_shape([64, 64]);
    let array = builder.from_fn(&shape, |[row, column]| (row * 512 + column) as u32).unwrap();
    let one = fold(array.lazy(), 1).unwrap();
    assert_eq!(fold(array.lazy(), 4).unwrap(), one);
    // Each tile has whole rows of blocks, in C order.
    for row in one.chunks(64) {
        assert!(row.iter().copied().eq(row[0]..row[0] + 64), "{row:?}");
    }
}

/// The sum, the mean and the variance of multiples of 1/4, whose sums are exact in `f64`.
fn sum_mean_and_variance(items: &[f64]) -> (f64, f64, f64) {
    let count = items.len() as f64;
    let sum: f64 = items.iter().sum();
    let squares: f64 = items.iter().map(|item| item * item).sum();
    (sum, sum / count, (count * squares - sum * sum) / (count * count))
}

fn near_or_nan(found: f64, expected: f64, what: &str) {
    let is_near = (found - expected).abs() <= expected.abs() * 1e-14;
    assert!(is_near || found.is_nan() && expected.is_nan(), "{what}: {found} {expected}");
}

/// Checks the statistics of some items. `sum_mean_and_variance` is exact for these items.
fn check_statistics(found: &Description<f32>, items: &[f32], edges: &[f64], what: &str) {
    let numbers: Vec<f64> =
        items.iter().filter(|item| !item.is_nan()).map(|item| f64::from(*item)).collect();
    let bin = |index: usize| {
        let is_last = index + 2 == edges.len();
        let is_in = |item: f64| {
            edges[index] <= item && (item < edges[index + 1] || is_last && item == edges[index + 1])
        };
        numbers.iter().filter(|item| is_in(**item)).count() as u64
    };
    let histogram: Vec<u64> = (0..edges.len().saturating_sub(1)).map(bin).collect();
    let (sum, mean, variance) = sum_mean_and_variance(&numbers);
    assert_eq!(found.count, numbers.len() as u64, "{what}");
    assert_eq!(found.nan_count, (items.len() - numbers.len()) as u64, "{what}");
    assert_eq!(found.min.map(f64::from), numbers.iter().copied().reduce(f64::min), "{what}");
    assert_eq!(found.max.map(f64::from), numbers.iter().copied().reduce(f64::max), "{what}");
    assert_eq!(found.histogram, histogram, "{what}");
    assert_eq!(found.sum, sum as f32, "{what}");
    near_or_nan(found.mean, mean, what);
    near_or_nan(found.var, variance, what);
    near_or_nan(found.std, variance.sqrt(), what);
}

/// Edges of random bins, or of equal bins. Some items are equal to an edge.
fn random_edges(rng: &mut Rng, item: impl Fn(&mut Rng) -> f32) -> Vec<f64> {
    let count = *rng.pick(&[0, 2, 3, 10, 100]);
    if rng.below(2) == 0 {
        let (start, step) =
            (rng.below(2000) as f64 / 4.0 - 250.0, rng.below(40) as f64 / 7.0 + 0.25);
        return (0..count).map(|edge| start + f64::from(edge) * step).collect();
    }
    let mut edges: Vec<f64> = (0..count).map(|_| f64::from(item(rng))).collect();
    edges.iter_mut().filter(|edge| edge.is_nan()).for_each(|edge| *edge = f64::INFINITY);
    edges.sort_by(f64::total_cmp);
    edges
}

#[test]
fn statistics_are_those_of_a_loop() {
    for seed in 0..repeats(1000) as u64 {
        let rng = &mut Rng(seed);
        let shape = random_shape(rng, 1500);
        let nans = *rng.pick(&[0, 1, 20, 100]);
        let item = |rng: &mut Rng| match rng.below(100) < nans {
            true => f32::NAN,
            false => rng.below(2000) as f32 / 4.0 - 250.0,
        };
        let viewed = Viewed::random(&shape, rng, item);
        let edges = random_edges(&mut Rng(rng.next()), item);
        let what = format!("seed {seed}, {shape:?}, {edges:?}");
        let all: Vec<f32> = viewed.model.iter().copied().collect();
        let (axes, named) = random_axes(shape.len(), rng);
        let rows: Vec<Vec<f32>> =
            reduced(&viewed.model, &axes, <[f32]>::to_vec).into_iter().collect();
        for threads in [1, 4] {
            let expression = || viewed.view().lazy::<f32>().threads(threads);
            let found = expression().describe(&edges).unwrap();
            check_statistics(&found, &all, &edges, &what);
            let found = expression().axes(&named).describe(&edges).unwrap();
            assert_eq!(found.items().len(), rows.len(), "{what}");
            for (found, row) in found.items().iter().zip(&rows) {
                check_statistics(found, row, &edges, &format!("{what}, axes {named:?}"));
            }
        }
    }
    let array = NDArray::from_slice(&[1u8, 2], 2).unwrap();
    for edges in [&[1.0][..], &[2.0, 1.0], &[1.0, f64::NAN]] {
        let error = array.lazy::<u8>().describe(edges).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    }
}

/// Chunks that store only a repeated item, of infinities and of numbers near the limits of their type.
#[test]
fn repeated_items_are_summed_like_others() {
    let count = 1000;
    for item in [f64::INFINITY, f64::NEG_INFINITY, -0.0, 1e-310, 1.3e303 + 1.7e287, -1e305] {
        let stored = NDArray::builder().full(item, count).unwrap();
        let listed = NDArray::from_slice(&vec![item; count], count).unwrap();
        let results = [stored, listed].map(|array| {
            let lazy = array.lazy::<f64>();
            let description = lazy.describe(&[]).unwrap();
            [lazy.sum().unwrap(), lazy.mean().unwrap(), description.mean]
        });
        assert_eq!(results[0], results[1], "{item:e}");
        assert_eq!(results[0][0], if item == -0.0 { 0.0 } else { item * count as f64 }, "{item:e}");
    }
    // The product of an item and its count is exact, also near the largest number.
    let item = 1.3e303 + 1.7e287;
    let repeated = NDArray::builder().chunk_shape(1001).full(item, 1001).unwrap();
    let mut others = vec![-item; 1001];
    (others[0], others[1]) = (0.0, -2.0 * item);
    let others = NDArray::builder().chunk_shape(1001).from_slice(&others, 1001).unwrap();
    let all = NDArray::builder().concatenate([&repeated, &others], 0).unwrap();
    assert_eq!(all.lazy::<f64>().sum().unwrap(), 0.0);
    assert_eq!(
        NDArray::builder().full(0f32, 10).unwrap().lazy().map(f32::ln).sum().unwrap(),
        f32::NEG_INFINITY
    );
}

#[test]
fn sums_of_more_items_than_an_integer_counts_wrap() {
    let rows = NDArray::builder().zeros::<u8>([1u64 << 32, 1]).unwrap();
    let columns = NDArray::builder().zeros::<u8>([1, (1u64 << 32) - 1]).unwrap();
    let sum = zip((&rows, &columns)).map(|_: (u8, u8)| u64::MAX).sum().unwrap();
    assert_eq!(sum, 0u64.wrapping_sub((1u64 << 32).wrapping_mul((1 << 32) - 1)));
}

#[test]
fn complex_variances_of_too_few_items_are_infinite() {
    let items = [num_complex::Complex::new(1.0, 1.0), num_complex::Complex::new(1.0, 2.0)];
    let array = NDArray::from_slice(&items, 2).unwrap();
    assert_eq!(array.lazy::<num_complex::Complex<f64>>().var(2).unwrap(), f64::INFINITY);
    assert_eq!(array.lazy::<num_complex::Complex<f64>>().var(0).unwrap(), 0.25);
}

#[test]
fn the_limit_of_reads_includes_histograms() {
    let array = NDArray::builder()
        .options(OpenOptions::new().max_read(1 << 20))
        .zeros::<f64>([1000, 2])
        .unwrap();
    let edges: Vec<f64> = (0..10_001).map(f64::from).collect();
    let error = array.lazy::<f64>().axes(1).describe(&edges).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
}
