//! Expressions of several operands, against the crate `ndarray`.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use blosc2::compute::{InMemory, LazyExpr, Reduced, Source, choose, zip};
use blosc2::{
    AxisSelection, Element, ErrorKind, NDArray, NDArrayView, OpenOptions, RawItems, Selection,
    Special, Target,
};
use half::f16;
use ndarray::ArrayD;
use num_complex::Complex;

use crate::common::{OTHER_ORDER, Rng, repeats, swapped};
use crate::samples::{Viewed, cut, made, model, random_shape, shape_of};

#[derive(Debug, Clone, Copy, PartialEq, Element)]
#[repr(C)]
struct Row {
    flag: bool,
    value: i64,
    small: i16,
}

/// A shape that can be broadcast to another one: without the first axes, and with axes of one item.
fn narrowed(shape: &[u64], rng: &mut Rng) -> Vec<u64> {
    let skipped = if rng.below(3) == 0 { rng.index(shape.len() + 1) } else { 0 };
    let narrow = |size: &u64| if rng.below(5) == 0 { 1 } else { *size };
    shape[skipped..].iter().map(narrow).collect()
}

/// The shape to which the shapes of these arrays are broadcast.
fn broadcast(models: &[&ArrayD<i64>]) -> Vec<usize> {
    let ndim = models.iter().map(|model| model.ndim()).max().unwrap();
    let mut shape = vec![1; ndim];
    for model in models {
        let skipped = ndim - model.ndim();
        for (size, &own) in shape[skipped..].iter_mut().zip(model.shape()) {
            *size = if *size == 1 { own } else { *size };
        }
    }
    shape
}

/// The result of a closure for the items of arrays.
fn expected<U>(models: &[&ArrayD<i64>], result: impl Fn(&[i64]) -> U) -> ArrayD<U> {
    let shape = broadcast(models);
    let all: Vec<Vec<i64>> = models
        .iter()
        .map(|model| model.broadcast(&shape[..]).unwrap().iter().copied().collect())
        .collect();
    let count: usize = shape.iter().product();
    let items = (0..count).map(|at| {
        let items: Vec<i64> = all.iter().map(|items| items[at]).collect();
        result(&items)
    });
    ArrayD::from_shape_vec(shape.clone(), items.collect()).unwrap()
}

/// Checks all ways to evaluate an expression.
fn check<U, S>(expression: LazyExpr<S>, expected: &ArrayD<U>, rng: &mut Rng, what: &str)
where
    U: Element + PartialEq + std::fmt::Debug,
    S: Source<Item = U>,
{
    let mut expression = expression;
    let shape = shape_of(expected);
    assert_eq!(expression.shape().unwrap(), shape, "{what}");
    let items: Vec<U> = expected.iter().copied().collect();
    for threads in [1, 4] {
        expression = expression.threads(threads);
        assert_eq!(expression.read().unwrap(), items, "{what}: {threads} threads");
    }
    let mut buffer = items.clone();
    buffer.reverse();
    expression.read_into(&mut buffer).unwrap();
    assert_eq!(buffer, items, "{what}: into a buffer");
    buffer.extend(items.first());
    if buffer.len() > items.len() {
        let error = expression.read_into(&mut buffer).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{what}: {error}");
    }

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("array");
    let builder = if rng.below(2) == 0 { cut(&shape, rng) } else { NDArray::builder() };
    let builder = match rng.below(4) {
        0 => builder.target(&path),
        1 => builder.target(Target::from(&path).directory(true)),
        _ => builder,
    };
    let array = expression.threads(1 + rng.below(4) as usize).create(builder).unwrap();
    assert_eq!(array.shape(), shape, "{what}: created");
    assert_eq!(array.read::<Vec<U>>(..).unwrap(), items, "{what}: created");
    drop(array);
    if path.exists() {
        let again = NDArray::open(&path).unwrap();
        assert_eq!(again.read::<Vec<U>>(..).unwrap(), items, "{what}: opened");
    }
}

fn mix(items: &[i64]) -> i64 {
    items.iter().zip([1, -7, 1000, 31]).map(|(item, factor)| item * factor).sum()
}

#[test]
fn operands_of_all_kinds_are_combined_by_broadcasting() {
    for seed in 0..repeats(1500) as u64 {
        let rng = &mut Rng(seed);
        let shape = random_shape(rng, 600);
        let item = |rng: &mut Rng| rng.below(2000) as i64 - 1000;
        let what = format!("seed {seed}, {shape:?}");

        let (array, whole) = made(&narrowed(&shape, rng), rng, item);
        let viewed = Viewed::random(&narrowed(&shape, rng), rng, item);
        let rows = Viewed::random(&narrowed(&shape, rng), rng, |rng| {
            let value = item(rng);
            Row { flag: value > 0, value, small: value as i16 }
        });
        let (row_view, row_model) = (rows.view(), &rows.model);
        let (field, field_model) =
            (row_view.field("value").unwrap(), row_model.map(|row| row.value));
        let (small, small_model) =
            (row_view.field("small").unwrap(), row_model.map(|row| i64::from(row.small)));
        let memory_shape = narrowed(&shape, rng);
        let count: u64 = memory_shape.iter().product();
        let memory: Vec<i64> = (0..count).map(|_| item(rng)).collect();
        let memory_model = model(&memory_shape, memory.clone());
        let in_memory = InMemory::new(&memory, &memory_shape);
        // One item more for each result.
        let (summed, summed_model) = made(&[&narrowed(&shape, rng)[..], &[3]].concat(), rng, item);
        let sums: Reduced<i64> = summed.lazy::<i64>().axes(-1).sum().unwrap();
        let sums_model = summed_model.sum_axis(ndarray::Axis(summed_model.ndim() - 1));
        let view: &NDArrayView<'_> = &viewed.view();
        let view_model = &viewed.model;
        let number = item(rng);
        let number_model = &ndarray::arr0(number).into_dyn();

        check(
            view.lazy::<i64>().map(|item| item * 3 + 1),
            &view_model.map(|item| item * 3 + 1),
            rng,
            &what,
        );
        check(
            zip((&array, view)).map(|(a, b): (i64, i64)| mix(&[a, b])),
            &expected(&[&whole, view_model], mix),
            rng,
            &what,
        );
        check(
            zip((&small, &array)).map(|(a, b): (i16, i64)| mix(&[a.into(), b])),
            &expected(&[&small_model, &whole], mix),
            rng,
            &what,
        );
        check(
            zip((view.clone(), in_memory.clone(), number))
                .map(|(a, b, c): (i64, i64, i64)| mix(&[a, b, c])),
            &expected(&[view_model, &memory_model, number_model], mix),
            rng,
            &what,
        );
        check(
            zip((&sums, field.clone(), view, in_memory.clone()))
                .map(|(a, b, c, d): (i64, i64, i64, i64)| mix(&[a, b, c, d])),
            &expected(&[&sums_model, &field_model, view_model, &memory_model], mix),
            rng,
            &what,
        );
        let inner = zip((&array, &sums)).map(|(a, b): (i64, i64)| a - b);
        check(
            zip((inner, &array, field.clone())).map(|(a, b, c): (i64, i64, i64)| mix(&[a, b, c])),
            &expected(&[&whole, &sums_model, &field_model], |items| {
                mix(&[items[0] - items[1], items[0], items[2]])
            }),
            rng,
            &what,
        );
        let condition = row_view.field("flag").unwrap();
        let flags = row_model.map(|row| i64::from(row.flag));
        check(
            choose(condition, view, number),
            &expected(&[&flags, view_model, number_model], |items| items[2 - items[0] as usize]),
            rng,
            &what,
        );
    }
}

#[test]
fn items_of_both_byte_orders_and_of_all_types_are_computed() {
    fn check_type<T, U>(kind: &str, rng: &mut Rng, item: impl Fn(&mut Rng) -> T, bytes: fn(T) -> U)
    where
        T: Element + PartialEq + std::fmt::Debug,
        U: AsRef<[u8]>,
    {
        let dtype = &format!("{OTHER_ORDER}{kind}");
        let shape = random_shape(rng, 300);
        let count = shape.iter().product::<u64>() as usize;
        let items: Vec<T> = (0..count).map(|_| item(rng)).collect();
        let stored: Vec<u8> =
            items.iter().flat_map(|item| bytes(*item).as_ref().to_vec()).collect();
        let builder = cut(&shape, rng);
        let mut array =
            builder.dtype(dtype, size_of::<T>()).from_slice(RawItems(&stored), &shape).unwrap();
        let error = array.lazy::<T>().read().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TypeMismatch, "{dtype}: {error}");
        array.set_dparams(array.info().dparams.convert_byte_order(true));
        assert_eq!(array.lazy::<T>().read().unwrap(), items, "{dtype}");
        let native = cut(&shape, rng).from_slice(&items, &shape).unwrap();
        let is_same = zip((&array, &native)).map(|(one, other): (T, T)| one == other);
        assert!(is_same.all().unwrap(), "{dtype}");
        // The created array has the byte order of this machine.
        let created = array.lazy::<T>().map(|item| item).create(NDArray::builder()).unwrap();
        assert_eq!(created.read::<Vec<T>>(..).unwrap(), items, "{dtype}");
    }

    for seed in 0..repeats(200) as u64 {
        let rng = &mut Rng(seed);
        check_type("i2", rng, |rng| rng.next() as i16, |item| swapped(item.to_ne_bytes()));
        check_type("u4", rng, |rng| rng.next() as u32, |item| swapped(item.to_ne_bytes()));
        check_type("i8", rng, |rng| rng.next() as i64, |item| swapped(item.to_ne_bytes()));
        let real = |rng: &mut Rng| rng.below(1000) as f32 / 8.0 - 50.0;
        check_type("f4", rng, real, |item| swapped(item.to_ne_bytes()));
        check_type("f8", rng, |rng| f64::from(real(rng)), |item| swapped(item.to_ne_bytes()));
        let half = |rng: &mut Rng| f16::from_f32(real(rng));
        check_type("f2", rng, half, |item| swapped(item.to_ne_bytes()));
        check_type(
            "c16",
            rng,
            |rng| Complex::new(f64::from(real(rng)), 1.0),
            |item| [item.re, item.im].map(|part| swapped(part.to_ne_bytes())).concat(),
        );
        check_type(
            "c8",
            rng,
            |rng| Complex::new(2.0, real(rng)),
            |item| [item.re, item.im].map(|part| swapped(part.to_ne_bytes())).concat(),
        );
    }
}

/// Checks a selection of the items of a view with `N` axes.
fn check_selection<const N: usize>(rng: &mut Rng, what: &str) {
    let shape: Vec<u64> = loop {
        let shape = random_shape(rng, 2000);
        if shape.len() == N {
            break shape;
        }
    };
    let most = *rng.pick(&[0, 1, 10, 90, 100]);
    let viewed = Viewed::random(&shape, rng, |rng| rng.below(100) as u32);
    let view = viewed.view();
    let chosen: Vec<(u64, [u64; N], u32)> = viewed
        .model
        .indexed_iter()
        .zip(0..)
        .filter(|((_, item), _)| **item < most)
        .map(|((at, item), index)| (index, std::array::from_fn(|axis| at[axis] as u64), *item))
        .collect();
    let items: Vec<u32> = chosen.iter().map(|(_, _, item)| *item).collect();
    let coords: Vec<[u64; N]> = chosen.iter().map(|(_, coords, _)| *coords).collect();
    for threads in [1, 4] {
        let what = format!("{what}, {shape:?}, {threads} threads");
        let select = || view.lazy::<u32>().threads(threads).select(|item| item < most);
        assert_eq!(select().items().unwrap(), items, "{what}");
        let indices: Vec<u64> = chosen.iter().map(|(index, _, _)| *index).collect();
        assert_eq!(select().indices().unwrap(), indices, "{what}");
        assert_eq!(select().coords::<N>().unwrap(), coords, "{what}");
        assert_eq!(select().count().unwrap(), items.len() as u64, "{what}");
        let mask = select().mask().read().unwrap();
        let expected: Vec<bool> = viewed.model.iter().map(|item| *item < most).collect();
        assert_eq!(mask, expected, "{what}");
        assert_eq!(view.read::<Vec<u32>>(Selection::points(&coords)).unwrap(), items, "{what}");
        assert_eq!(view.read::<Vec<u32>>(Selection::mask(&mask)).unwrap(), items, "{what}");
        let error = select().coords::<7>().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{what}: {error}");
    }
}

#[test]
fn selected_items_are_those_of_the_predicate() {
    for seed in 0..repeats(1500) as u64 {
        let rng = &mut Rng(seed);
        let what = format!("seed {seed}");
        match 1 + rng.below(4) {
            1 => check_selection::<1>(rng, &what),
            2 => check_selection::<2>(rng, &what),
            3 => check_selection::<3>(rng, &what),
            _ => check_selection::<4>(rng, &what),
        }
    }
}

#[test]
fn selected_items_keep_the_limit_of_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("zeros.b2nd");
    let builder = NDArray::builder().chunk_shape([1 << 30]).block_shape([1 << 20]).target(&path);
    builder.zeros::<u8>([1u64 << 36]).unwrap();
    // The default limit, 1 GiB, would take a long time without optimization.
    let zeros = NDArray::open_with(&path, &OpenOptions::new().max_read(1 << 22)).unwrap();
    for threads in [1, 2] {
        let select = || zeros.lazy::<u8>().threads(threads).select(|_| true);
        let errors = [
            select().items().unwrap_err(),
            select().indices().unwrap_err(),
            select().coords::<1>().unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.kind(), ErrorKind::TooLarge, "{threads} threads: {error}");
        }
        assert_eq!(select().count().unwrap(), 1 << 36);
    }

    // Each item is a run, because the chunks are columns. The runs take more memory than the results.
    let path = folder.path().join("columns.b2nd");
    let builder =
        NDArray::builder().chunk_shape([1 << 12, 1]).block_shape([1 << 12, 1]).target(&path);
    builder.zeros::<u8>([1 << 12, 64]).unwrap();
    let columns = NDArray::open_with(&path, &OpenOptions::new().max_read(1 << 20)).unwrap();
    let error = columns.lazy::<u8>().select(|_| true).items().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
    let columns = NDArray::open(&path).unwrap();
    assert_eq!(columns.lazy::<u8>().select(|_| true).items().unwrap(), [0; 64 << 12]);

    // The limit applies to the results of all pieces together, and not to the items that are read.
    let path = folder.path().join("a.b2nd");
    let items: Vec<u16> = (0..100 * 70).collect();
    let builder = NDArray::builder().chunk_shape([9, 30]).block_shape([3, 10]).target(&path);
    builder.from_slice(&items, [100, 70]).unwrap();
    let array = NDArray::open_with(&path, &OpenOptions::new().max_read(2000)).unwrap();
    for threads in [1, 3] {
        let select = |most| array.lazy::<u16>().threads(threads).select(move |item| item < most);
        assert_eq!(select(1000).items().unwrap(), items[..1000], "{threads} threads");
        assert_eq!(select(1001).items().unwrap_err().kind(), ErrorKind::TooLarge);
        assert_eq!(select(250).indices().unwrap().len(), 250, "{threads} threads");
        assert_eq!(select(251).indices().unwrap_err().kind(), ErrorKind::TooLarge);
        assert_eq!(select(125).coords::<2>().unwrap().len(), 125, "{threads} threads");
        assert_eq!(select(126).coords::<2>().unwrap_err().kind(), ErrorKind::TooLarge);
    }
}

/// Arrays of many small chunks: long runs of special chunks, between chunks with items.
#[test]
fn runs_of_special_chunks_have_the_results_of_their_items() {
    for seed in 0..repeats(300) as u64 {
        let rng = &mut Rng(seed);
        // From 2,048 chunks on, several chunks are processed at once.
        let (shape, chunks): (Vec<u64>, Vec<u64>) = match rng.below(4) {
            0 => (vec![5000 + rng.below(2000)], vec![1 + rng.below(2)]),
            1 => (vec![80, 110 + rng.below(40)], vec![1 + rng.below(2), 2]),
            2 => (vec![2, 3000 + rng.below(100)], vec![2, 1]),
            _ => (vec![15, 16, 17 + rng.below(9)], vec![1, 1 + rng.below(2), 1]),
        };
        let builder = NDArray::builder().chunk_shape(&*chunks).block_shape(&*chunks);
        let mut array = match rng.below(3) {
            0 => builder.zeros::<i32>(&*shape),
            1 => builder.dtype(i32::dtype(), 4).special(Special::Uninit, &*shape),
            _ => builder.full(7i32, &*shape),
        }
        .unwrap();
        for _ in 0..rng.below(4) {
            let ranges: Vec<Range<u64>> = shape
                .iter()
                .map(|&size| {
                    let start = rng.below(size);
                    start..start + 1 + rng.below(size - start)
                })
                .collect();
            match rng.below(3) {
                0 => array.write(ranges, 0i32),
                1 => array.write(ranges, -(1 + rng.below(3) as i32)),
                _ => {
                    let first = ranges.iter().map(|range| range.start..range.start + 1);
                    array.write(first.collect::<Vec<_>>(), rng.next() as i32 % 1000)
                }
            }
            .unwrap();
        }
        let view = match rng.below(3) {
            0 => array.view().slice((1..,)).unwrap(),
            1 => {
                array.view().slice(AxisSelection::Slice { start: -1, end: None, step: -1 }).unwrap()
            }
            _ => array.view(),
        };
        // Reads process chunk by chunk.
        let items: Vec<i32> = view.read(..).unwrap();
        let sum: i64 = items.iter().map(|&item| i64::from(item)).sum();
        let least = *items.iter().min().unwrap();
        let first = items.iter().position(|&item| item == least).unwrap() as u64;
        let negative: Vec<(u64, i32)> =
            (0..).zip(items.iter().copied()).filter(|(_, item)| *item < 0).collect();
        let row = *view.shape().last().unwrap() as usize;
        let of_rows: Vec<i64> =
            items.chunks(row).map(|row| row.iter().map(|&item| i64::from(item)).sum()).collect();
        let mut of_columns = vec![0i64; row];
        for row in items.chunks(row) {
            of_columns.iter_mut().zip(row).for_each(|(sum, &item)| *sum += i64::from(item));
        }
        let others: Vec<isize> = (0..shape.len() as isize - 1).collect();
        let products: Vec<f64> = [1, 3]
            .map(|threads| {
                let close_to_one = |item| 1.0 + f64::from(item) / 1e6;
                view.lazy::<i32>().threads(threads).map(close_to_one).prod().unwrap()
            })
            .to_vec();
        assert_eq!(products[0].to_bits(), products[1].to_bits(), "seed {seed}");
        for threads in [1, 3] {
            let what = format!("seed {seed}, {shape:?}, {threads} threads");
            let lazy = || view.lazy::<i32>().threads(threads);
            assert_eq!(lazy().sum().unwrap(), sum, "{what}");
            assert_eq!(lazy().min().unwrap(), least, "{what}");
            assert_eq!(lazy().argmin().unwrap(), first, "{what}");
            assert_eq!(lazy().axes(-1).sum().unwrap().items(), of_rows, "{what}");
            assert_eq!(lazy().axes(&*others).sum().unwrap().items(), of_columns, "{what}");
            let selected = || lazy().select(|item| item < 0);
            let values: Vec<i32> = negative.iter().map(|(_, item)| *item).collect();
            assert_eq!(selected().items().unwrap(), values, "{what}");
            let indices: Vec<u64> = negative.iter().map(|(index, _)| *index).collect();
            assert_eq!(selected().indices().unwrap(), indices, "{what}");
            assert_eq!(lazy().read().unwrap(), items, "{what}");
            let flags = lazy().map(|item| item > 0).read().unwrap();
            assert!(flags.iter().zip(&items).all(|(flag, item)| *flag == (*item > 0)), "{what}");
        }
    }
}

/// The closures are called for runs of chunks, and not for each chunk.
#[test]
fn runs_of_special_chunks_are_computed_at_once() {
    const CHUNKS: u64 = 1 << 16;
    let array = |chunks: &[u64], shape: &[u64]| {
        let builder = NDArray::builder().chunk_shape(chunks).block_shape(chunks);
        let array = builder.zeros::<i32>(shape).unwrap();
        assert_eq!(array.schunk().nchunks() as u64, CHUNKS);
        array
    };
    let (row, plane) = (array(&[2], &[CHUNKS * 2]), array(&[2, 1], &[512, 256]));
    let calls = AtomicU64::new(0);
    let one_more = |item: i32| {
        calls.fetch_add(1, Ordering::Relaxed);
        item + 1
    };
    for threads in [1, 3] {
        let is_few = |what: &str| {
            let calls = calls.swap(0, Ordering::Relaxed);
            assert!((1..=CHUNKS / 32).contains(&calls), "{what}, {threads} threads: {calls} calls");
        };
        for array in [&row, &plane] {
            let lazy = || array.lazy::<i32>().threads(threads);
            assert_eq!(lazy().map(one_more).sum().unwrap(), 2 * CHUNKS as i64);
            is_few("sum");
            assert_eq!(lazy().map(one_more).argmin().unwrap(), 0);
            is_few("argmin");
            let selected = lazy().select(|item| one_more(item) > 1);
            assert_eq!(selected.items().unwrap(), [0; 0]);
            is_few("select");
        }
        let items = row.lazy::<i32>().threads(threads).map(one_more).read().unwrap();
        assert!(items == vec![1; 2 * CHUNKS as usize]);
        is_few("read");
    }
}
