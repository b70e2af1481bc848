//! Every form of a selection, against the crate `ndarray`, and the error messages.

// Negative bounds count from the end, and lists of one range are intended.
#![allow(clippy::reversed_empty_ranges, clippy::single_range_in_vec_init)]

use std::ops::Bound;

use blosc2::{AxisSelection, ErrorKind, NDArray, RawItems, Selection};
use ndarray::{Array3, ArrayView3, Axis, s};

const SHAPE: [u64; 3] = [5, 6, 7];

fn model() -> Array3<i32> {
    Array3::from_shape_vec((5, 6, 7), (0..210).collect()).unwrap()
}

fn array() -> NDArray {
    let items: Vec<i32> = (0..210).collect();
    NDArray::builder()
        .chunk_shape([2, 3, 4])
        .block_shape([2, 2, 2])
        .from_slice(&items, SHAPE)
        .unwrap()
}

/// Checks that a selection has the items and the shape that `ndarray` selects.
macro_rules! same {
    ($selection:expr, $expected:expr) => {{
        let (array, model) = (array(), model());
        let pick: fn(ArrayView3<'_, i32>) -> ndarray::ArrayD<i32> = $expected;
        let expected = pick(model.view());
        assert_eq!(array.read::<ndarray::ArrayD<i32>>($selection).unwrap(), expected);
        let items: Vec<i32> = expected.iter().copied().collect();
        assert_eq!(array.read::<Vec<i32>>($selection).unwrap(), items);
        assert_eq!(array.view().slice($selection).unwrap().read::<Vec<i32>>(..).unwrap(), items);
        let mut written = NDArray::builder().zeros::<i32>(&SHAPE).unwrap();
        written.write($selection, &items).unwrap();
        assert_eq!(written.read::<Vec<i32>>($selection).unwrap(), items);
    }};
}

#[test]
fn ranges_of_every_kind_and_type_select_along_the_first_axis() {
    same!(1..3, |all| all.slice(s![1..3, .., ..]).to_owned().into_dyn());
    same!(1.., |all| all.slice(s![1.., .., ..]).to_owned().into_dyn());
    same!(..3, |all| all.slice(s![..3, .., ..]).to_owned().into_dyn());
    same!(1..=3, |all| all.slice(s![1..=3, .., ..]).to_owned().into_dyn());
    same!(..=3, |all| all.slice(s![..=3, .., ..]).to_owned().into_dyn());
    same!(.., |all| all.to_owned().into_dyn());
    same!(2, |all| all.slice(s![2, .., ..]).to_owned().into_dyn());
    same!(-2, |all| all.slice(s![-2, .., ..]).to_owned().into_dyn());
    same!(-2.., |all| all.slice(s![-2.., .., ..]).to_owned().into_dyn());
    same!(..-2, |all| all.slice(s![..-2, .., ..]).to_owned().into_dyn());
    same!(1..-1, |all| all.slice(s![1..-1, .., ..]).to_owned().into_dyn());
    same!(-3..=-2, |all| all.slice(s![-3..-1, .., ..]).to_owned().into_dyn());
    same!(-3..=-1, |all| all.slice(s![-3.., .., ..]).to_owned().into_dyn());
    same!(..=-1, |all| all.to_owned().into_dyn());
    same!(5..5, |all| all.slice(s![5..5, .., ..]).to_owned().into_dyn());

    macro_rules! types {
        ($($type:ty)*) => {$(
            same!(2 as $type, |all| all.slice(s![2, .., ..]).to_owned().into_dyn());
            same!(1 as $type..3, |all| all.slice(s![1..3, .., ..]).to_owned().into_dyn());
            same!(1 as $type.., |all| all.slice(s![1.., .., ..]).to_owned().into_dyn());
            same!(..3 as $type, |all| all.slice(s![..3, .., ..]).to_owned().into_dyn());
            same!(1 as $type..=3, |all| all.slice(s![1..=3, .., ..]).to_owned().into_dyn());
            same!(..=3 as $type, |all| all.slice(s![..=3, .., ..]).to_owned().into_dyn());
            same!((0 as $type..5).step_by(2), |all| all.slice(s![0..5;2, .., ..]).to_owned().into_dyn());
            same!(([3 as $type, 0, 3],), |all| all.select(Axis(0), &[3, 0, 3]).into_dyn());
        )*};
    }
    types!(i8 i16 i32 i64 isize u8 u16 u32 u64 usize);
}

#[test]
fn steps_are_those_of_the_range() {
    same!((1..5).step_by(3), |all| all.slice(s![1..5;3, .., ..]).to_owned().into_dyn());
    same!((1..=4).step_by(3), |all| all.slice(s![1..=4;3, .., ..]).to_owned().into_dyn());
    same!((-4..-1).step_by(2), |all| all.slice(s![-4..-1;2, .., ..]).to_owned().into_dyn());
    same!((-5..=-1).step_by(2), |all| all.slice(s![-5..;2, .., ..]).to_owned().into_dyn());
    same!((2..3).step_by(9), |all| all.slice(s![2..3, .., ..]).to_owned().into_dyn());
    same!((3..3).step_by(2), |all| all.slice(s![3..3, .., ..]).to_owned().into_dyn());
    same!(AxisSelection::strided(.., -2), |all| all.slice(s![..;-2, .., ..]).to_owned().into_dyn());
    same!(AxisSelection::strided(1..=3, -2), |all| {
        all.slice(s![1..4;-2, .., ..]).to_owned().into_dyn()
    });
    same!(AxisSelection::strided(-3.., 2), |all| all
        .slice(s![-3..;2, .., ..])
        .to_owned()
        .into_dyn());
    same!(AxisSelection::strided(..=-2, 1), |all| {
        all.slice(s![..-1, .., ..]).to_owned().into_dyn()
    });
    same!((1..4).rev(), |all| all.slice(s![1..4;-1, .., ..]).to_owned().into_dyn());
    same!((-3..=-1).rev(), |all| all.slice(s![-3..;-1, .., ..]).to_owned().into_dyn());
    same!((3..3).rev(), |all| all.slice(s![3..3, .., ..]).to_owned().into_dyn());
    same!(AxisSelection::strided((Bound::Excluded(-1), Bound::Unbounded), 1), |all| {
        all.slice(s![5.., .., ..]).to_owned().into_dyn()
    });
    same!(AxisSelection::strided((Bound::Excluded(-2), Bound::Unbounded), 1), |all| {
        all.slice(s![4.., .., ..]).to_owned().into_dyn()
    });
    // Steps that are longer than the type holds.
    same!((1i8..5).step_by(300), |all| all.slice(s![1..2, .., ..]).to_owned().into_dyn());
    // The longest possible range: its length is computed without iterating.
    let error = array().read::<Vec<i32>>((0..u64::MAX).step_by(1)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfBounds);
}

#[test]
fn tuples_mix_what_is_selected_along_each_axis() {
    same!((1..3,), |all| all.slice(s![1..3, .., ..]).to_owned().into_dyn());
    same!((1, 2, 3), |all| all.slice(s![1, 2, 3]).to_owned().into_dyn());
    same!((0..3, .., 5), |all| all.slice(s![0..3, .., 5]).to_owned().into_dyn());
    same!((.., [3, 1, 5]), |all| all.select(Axis(1), &[3, 1, 5]).into_dyn());
    same!((.., [-1, 0]), |all| all.select(Axis(1), &[5, 0]).into_dyn());
    same!((-1, (0..6).step_by(2), vec![6u64, 6]), |all| {
        all.slice(s![4, ..;2, ..]).select(Axis(1), &[6, 6]).into_dyn()
    });
    same!((&[4usize, 1], &vec![0, 2], &[6i64, 3][..]), |all| {
        all.select(Axis(0), &[4, 1]).select(Axis(1), &[0, 2]).select(Axis(2), &[6, 3]).into_dyn()
    });
    same!((.., .., [true, false, true, false, false, false, true]), |all| {
        all.select(Axis(2), &[0, 2, 6]).into_dyn()
    });
    same!((vec![false; 5], &[true; 6][..]), |all| all.select(Axis(0), &[]).into_dyn());
    same!((AxisSelection::NewAxis, 1, AxisSelection::NewAxis, 2..), |all| {
        all.slice(s![ndarray::NewAxis, 1, ndarray::NewAxis, 2.., ..]).to_owned().into_dyn()
    });
    same!(s![1..;2, 3, ..], |all| all.slice(s![1..;2, 3, ..]).to_owned().into_dyn());
}

#[test]
fn lists_of_one_form_are_for_one_axis_each() {
    same!([1, 2, 3], |all| all.slice(s![1, 2, 3]).to_owned().into_dyn());
    same!(&[1, 2], |all| all.slice(s![1, 2, ..]).to_owned().into_dyn());
    same!([0..2, 1..6], |all| all.slice(s![0..2, 1..6, ..]).to_owned().into_dyn());
    same!(&[0u64..2, 1..6], |all| all.slice(s![0..2, 1..6, ..]).to_owned().into_dyn());
    same!(vec![..=1, ..=3], |all| all.slice(s![..=1, ..=3, ..]).to_owned().into_dyn());
    same!(&vec![0..2usize], |all| all.slice(s![0..2, .., ..]).to_owned().into_dyn());
    same!([[4, 0], [0, 0]], |all| {
        all.select(Axis(0), &[4, 0]).select(Axis(1), &[0, 0]).into_dyn()
    });
    same!(&Selection::all(), |all| all.to_owned().into_dyn());
}

#[test]
fn sixteen_axes_have_a_tuple() {
    let array = NDArray::from_slice(&[1i32, 2], [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2]);
    let item = array.unwrap().read::<Vec<i32>>((
        0,
        ..,
        0,
        ..,
        0,
        ..,
        0,
        ..,
        0,
        ..,
        0,
        ..,
        0,
        ..,
        0,
        [1, 0],
    ));
    assert_eq!(item.unwrap(), [2, 1]);
}

/// The error message of a selection, without the operation.
fn error(selection: impl Into<Selection>) -> String {
    let text = array().read::<Vec<i32>>(selection).unwrap_err().to_string();
    text.strip_prefix("cannot read from an array: ").unwrap_or(&text).to_owned()
}

#[test]
fn errors_name_the_axis_its_size_and_what_was_asked() {
    assert_eq!(error(5), "axis 0 has 5 items, asked for index 5");
    assert_eq!(error((0, -7)), "axis 1 has 6 items, asked for index -7");
    assert_eq!(error((.., .., 3..8)), "axis 2 has 7 items, asked for 3..8");
    assert_eq!(error((.., .., -8..)), "axis 2 has 7 items, asked for -8..");
    assert_eq!(error((.., [0, 9])), "axis 1 has 6 items, asked for index 9");
    assert_eq!(error(([true; 4],)), "axis 0 has 5 items, asked for a mask of 4 values");
    assert_eq!(
        error(AxisSelection::strided(.., 0)),
        "axis 0 has 5 items, asked for 0.. with step 0: expected a step other than 0"
    );
    assert_eq!(error((2..9).step_by(3)), "axis 0 has 5 items, asked for 3 indices from 2 to 8");
    assert_eq!(
        error((i64::MIN..i64::MAX).rev()),
        "axis 0 has 5 items, asked for 18446744073709551615 indices from 9223372036854775806 to \
         -9223372036854775808"
    );
    let backwards = AxisSelection::Slice { start: 3, end: Some(2), step: 1 };
    assert_eq!(
        error(backwards),
        "axis 0 has 5 items, asked for 3..2: the range ends before it starts"
    );
    let line = NDArray::from_slice(&[1u8, 2, 3], [3]).unwrap();
    let message = line.read::<Vec<u8>>([2, 0]).unwrap_err().to_string();
    assert!(
        message.ends_with("(a list of indices along the first axis is `([2, 0],)`)"),
        "{message}"
    );
    let message = array().item::<i32>(&[1, 6, 9]).unwrap_err().to_string();
    assert!(message.ends_with("axis 1 has 6 items, asked for index 6"), "{message}");
    assert_eq!(error((0, 0, 0, ..)), "the shape has 3 axes, got selections for 4");
}

/// A range with a step selects the indices that it yields. Each negative index counts from the end.
#[test]
fn ranges_with_a_step_select_what_they_yield() {
    fn check(steps: impl Iterator<Item: Into<i64>> + Clone + Into<AxisSelection>) {
        let yielded: Vec<i64> = steps.clone().map(Into::into).collect();
        let array = NDArray::from_slice(&[10u8, 11, 12, 13, 14], [5]).unwrap();
        let listed = array.read::<Vec<u8>>((&yielded,));
        match array.read::<Vec<u8>>((steps,)) {
            Ok(items) => assert_eq!(items, listed.unwrap(), "{yielded:?}"),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::OutOfBounds);
                assert!(listed.is_err(), "{yielded:?}: {error}");
            }
        }
    }
    for start in -6..7 {
        for end in -6..7 {
            check((start..end).rev());
            check((start..=end).rev());
            for step in 1..5 {
                check((start..end).step_by(step));
                check((start..=end).step_by(step));
                check((start..end).rev().step_by(step));
                check((start..=end).rev().step_by(step));
                let (start, end) = (start as i16, end as i16); // `i64` has no such iterators
                check((start..end).step_by(step).rev());
                check((start..=end).step_by(step).rev());
            }
        }
    }
}

#[test]
fn points_select_what_indices_of_arrays_do_in_numpy() {
    let (array, model) = (array(), model());
    let pick = |indices: &[[usize; 3]]| -> Vec<i32> {
        indices.iter().map(|&[z, y, x]| model[[z, y, x]]).collect()
    };
    let same = |found: blosc2::Result<Vec<i32>>, indices: &[[usize; 3]]| {
        assert_eq!(found.unwrap(), pick(indices));
    };
    // Indices of every form and type, from the end too.
    same(array.read(Selection::points(&[[4u64, 5, 6], [0, 0, 0]])), &[[4, 5, 6], [0, 0, 0]]);
    same(array.read(Selection::points(&[[-1, -6, 6], [1, -1, -7]])), &[[4, 0, 6], [1, 5, 0]]);
    same(array.read(Selection::points(&[(1u8, -1, 2usize), (0, 0, 3)])), &[[1, 5, 2], [0, 0, 3]]);
    same(array.read(Selection::points(&[vec![1i16, 2, 3]])), &[[1, 2, 3]]);
    same(
        array.read(Selection::points(&[&[1isize, 2, 3][..], &[4, 4, 4]])),
        &[[1, 2, 3], [4, 4, 4]],
    );
    assert_eq!(array.read::<Vec<i32>>(Selection::points(&[[0u8; 3]; 0])).unwrap(), [0i32; 0]);
    assert_eq!(array.item::<i32>((-1, 0, -2)).unwrap(), model[[4, 0, 5]]);

    // Fewer integers than axes: the remaining axes are selected in full.
    let rows = model.select(Axis(0), &[3, 0, 3]);
    assert_eq!(
        array.read::<Vec<i32>>(Selection::points(&[3, 0, -2])).unwrap(),
        rows.into_iter().collect::<Vec<_>>()
    );
    let lines = [model.slice(s![4, 1, ..]), model.slice(s![0, 5, ..])];
    let lines: Vec<i32> = lines.iter().flatten().copied().collect();
    assert_eq!(array.read::<Vec<i32>>(Selection::points(&[(-1, 1), (0, -1)])).unwrap(), lines);

    // Views: axes that were dropped, added, reversed and sliced.
    let view = array.view().slice((AxisSelection::strided(.., -2), 3, 1..=5)).unwrap();
    let expected = [model[[4, 3, 2]], model[[0, 3, 5]]];
    assert_eq!(view.read::<Vec<i32>>(Selection::points(&[(0, 1), (2, -1)])).unwrap(), expected);
    let view = view.expand_dims(1).unwrap().transpose();
    assert_eq!(view.shape(), [5, 1, 3]);
    let expected: Vec<i32> = [4, 2, 0].iter().map(|&z| model[[z, 3, 5]]).collect();
    assert_eq!(view.read::<Vec<i32>>(Selection::points(&[(4, 0)])).unwrap(), expected);
    assert_eq!(view.read::<RawItems>(Selection::points(&[(4, 0)])).unwrap().0.len(), 12);
    let mut mask = [false; 15];
    (mask[0], mask[14]) = (true, true);
    let expected = [model[[4, 3, 1]], model[[0, 3, 5]]];
    assert_eq!(view.read::<Vec<i32>>(Selection::mask(&mask)).unwrap(), expected);

    // Writes: for an item that is selected twice the last value stays.
    let mut written = NDArray::builder().zeros::<i32>(&SHAPE).unwrap();
    written
        .write(Selection::points(&[(0, 1), (-1, -1), (0, 1)]), &(0..21).collect::<Vec<_>>())
        .unwrap();
    written.write((-2, 0, -1), 77).unwrap();
    let mut expected = Array3::zeros((5, 6, 7));
    expected.slice_mut(s![0, 1, ..]).assign(&ndarray::Array1::from_iter(14..21));
    expected.slice_mut(s![4, 5, ..]).assign(&ndarray::Array1::from_iter(7..14));
    expected[[3, 0, 6]] = 77;
    assert_eq!(written.read::<ndarray::ArrayD<i32>>(..).unwrap(), expected.into_dyn());

    let message = |result: blosc2::Result<Vec<i32>>| result.unwrap_err().to_string();
    let outside = message(array.read(Selection::points(&[(0, 0), (1, -7)])));
    assert!(outside.ends_with("axis 1 has 6 items, asked for index -7 (point 1)"), "{outside}");
    let unequal = message(array.read(Selection::points(&[vec![0, 0], vec![1]])));
    assert!(unequal.ends_with("point 0 has 2 integers, point 1 has 1"), "{unequal}");
    let long = message(array.read(Selection::points(&[(0, 0, 0, 0)])));
    assert!(long.ends_with("the shape has 3 axes, got points of 4 integers"), "{long}");
}

#[test]
fn points_of_arrays_without_items_or_axes() {
    let empty = NDArray::builder().zeros::<i32>(&[0, 3]).unwrap();
    assert_eq!(empty.read::<Vec<i32>>(Selection::points(&[[0u8; 2]; 0])).unwrap(), [0i32; 0]);
    assert_eq!(
        empty.read::<Vec<i32>>(Selection::points(&[0])).unwrap_err().kind(),
        ErrorKind::OutOfBounds
    );
    let empty = NDArray::builder().zeros::<i32>(&[3, 0]).unwrap();
    assert_eq!(empty.read::<Vec<i32>>(Selection::points(&[2, -3])).unwrap(), [0i32; 0]);
    let scalar = NDArray::from_slice(&[5], ()).unwrap();
    assert_eq!(scalar.read::<Vec<i32>>(Selection::points(&[[0u8; 0]; 2])).unwrap(), [5, 5]);
    assert_eq!(scalar.item::<i32>([0u8; 0]).unwrap(), 5);
}

/// `slice(...).indices(size)` of Python, step by step.
#[test]
fn clamped_slices_are_those_of_python() {
    let python = |size: i64, start: Option<i64>, stop: Option<i64>, step: i64| -> Vec<u8> {
        let place = |at: i64| if at < 0 { at + size } else { at };
        let mut found = Vec::new();
        if step > 0 {
            let stop = stop.map_or(size, place).min(size);
            let mut at = start.map_or(0, place).max(0);
            while at < stop {
                found.push(at as u8);
                at += step;
            }
        } else {
            let stop = stop.map_or(-1, |stop| place(stop).max(-1));
            let mut at = start.map_or(size - 1, place).min(size - 1);
            while at > stop {
                found.push(at as u8);
                at += step;
            }
        }
        found
    };
    for size in [0i64, 1, 5] {
        let items: Vec<u8> = (0..size as u8).collect();
        let array = NDArray::builder().chunk_shape([2]).from_slice(&items, [size as u64]).unwrap();
        let bounds = || (-7..8).map(Some).chain([None]);
        for (start, stop) in bounds().flat_map(|start| bounds().map(move |stop| (start, stop))) {
            for step in [1, 2, 3, 9, -1, -2, -3, -9] {
                let found =
                    array.read::<Vec<u8>>(AxisSelection::clamped(start, stop, step)).unwrap();
                let what = format!("{size}: {start:?}:{stop:?}:{step}");
                assert_eq!(found, python(size, start, stop, step), "{what}");
            }
        }
    }
    let still = AxisSelection::Steps { start: 1, step: 0, count: 2 };
    assert_eq!(error(still), "axis 0 has 5 items, expected a step other than 0");
    let extremes = AxisSelection::clamped(i64::MIN, i64::MAX, i64::MAX);
    assert_eq!(array().read::<Vec<i32>>((extremes, 0, 0)).unwrap(), [0]);
    assert_eq!(
        error(AxisSelection::clamped(0, 1, 0)),
        "axis 0 has 5 items, expected a step other than 0"
    );
}

#[test]
fn a_plan_of_points_that_memory_does_not_hold_is_an_error() {
    let wide = NDArray::builder().chunk_shape((1, 1 << 20)).zeros::<u8>((4, 1 << 28)).unwrap();
    let bytes = wide.schunk().to_cframe().unwrap();
    let array = NDArray::open_rw(bytes).unwrap();
    let error = array.read::<Vec<u8>>(Selection::points(&[0, 1, 2, 3])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
}
