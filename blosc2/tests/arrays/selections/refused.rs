//! Refused selections leave the array and the caller's memory unchanged.

use blosc2::{AxisSelection, ErrorKind, NDArray, RawItems, Result, Selection, Target};
use ndarray::{Array, Array2, ArrayViewMut};

const SHAPE: [u64; 2] = [5, 7];
const ITEMS: [i32; 35] = {
    let mut items = [0; 35];
    let mut at = 0;
    while at < 35 {
        items[at] = at as i32;
        at += 1;
    }
    items
};

fn array() -> NDArray {
    NDArray::builder().chunk_shape([2, 3]).block_shape([2, 2]).from_slice(&ITEMS, SHAPE).unwrap()
}

#[track_caller]
fn refused<R: std::fmt::Debug>(result: Result<R>, kind: ErrorKind) {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
}

/// Asserts that all ways to read and write `count` items fail with `kind`.
#[track_caller]
fn refused_everywhere(selection: &Selection, count: usize, kind: ErrorKind) {
    let mut array = array();
    array.set_dparams(array.info().dparams.cache(1 << 20));
    refused(array.read::<Vec<i32>>(selection), kind);
    refused(array.read::<RawItems>(selection), kind);
    refused(array.read::<ndarray::ArrayD<i32>>(selection), kind);
    refused(array.view().read::<Vec<i32>>(selection), kind);
    refused(array.view().slice(selection), kind);
    let mut items = vec![-1i32; count];
    refused(array.read_into(selection, &mut items), kind);
    refused(array.view().read_into(selection, &mut items), kind);
    refused(array.read_into(selection, ArrayViewMut::from(&mut items[..])), kind);
    assert!(items.iter().all(|&item| item == -1));
    let mut bytes = vec![0xee; 4 * count];
    refused(array.read_into(selection, RawItems(&mut bytes)), kind);
    assert!(bytes.iter().all(|&byte| byte == 0xee));
    refused(array.write(selection, &items), kind);
    refused(array.write(selection, RawItems(&bytes)), kind);
    refused(array.write(selection, -1i32), kind);
    refused(array.write(selection, Array::from(items).view()), kind);
    assert_eq!(array.read::<Vec<i32>>(..).unwrap(), ITEMS);
}

fn slice(start: i64, end: i64, step: i64) -> AxisSelection {
    AxisSelection::Slice { start, end: Some(end), step }
}

#[test]
fn what_is_outside_of_the_array() {
    let selections: [Vec<AxisSelection>; 18] = [
        vec![AxisSelection::Index(5)],
        vec![AxisSelection::Index(-6)],
        vec![AxisSelection::Index(i64::MAX)],
        vec![AxisSelection::Index(i64::MIN)],
        vec![AxisSelection::ALL, AxisSelection::Index(7)],
        vec![slice(0, 6, 1)],
        vec![slice(6, 6, 1)],
        vec![slice(-6, 5, 1)],
        vec![slice(0, -6, 1)],
        vec![AxisSelection::Slice { start: 6, end: None, step: -1 }],
        vec![AxisSelection::NewAxis, AxisSelection::ALL, slice(0, 8, 3)],
        vec![(0..u64::MAX).into()],
        vec![(u64::MAX..u64::MAX).into()],
        vec![AxisSelection::Indices(vec![0, 5])],
        vec![AxisSelection::Indices(vec![-5, -6])],
        vec![(0..=5).into()],
        vec![AxisSelection::ALL, vec![0, 1, 2, u64::MAX].into()],
        // Nothing is selected, but one of the two is outside.
        vec![slice(2, 2, 1), AxisSelection::Indices(vec![7])],
    ];
    for selection in selections {
        refused_everywhere(&selection.into(), 1, ErrorKind::OutOfBounds);
    }
}

#[test]
fn what_is_no_selection() {
    let selections: [Vec<AxisSelection>; 7] = [
        vec![slice(0, 5, 0)],
        vec![slice(3, 2, 1)],
        vec![AxisSelection::Mask(vec![true; 4])],
        vec![AxisSelection::ALL, AxisSelection::Mask(vec![false; 8])],
        vec![slice(-1, -2, -1)],
        vec![AxisSelection::ALL, AxisSelection::ALL, AxisSelection::ALL],
        vec![
            AxisSelection::Index(0),
            AxisSelection::NewAxis,
            AxisSelection::Index(0),
            AxisSelection::Indices(vec![]),
        ],
    ];
    for selection in selections {
        refused_everywhere(&selection.into(), 1, ErrorKind::InvalidArgument);
    }
}

#[test]
fn other_numbers_of_items_than_are_selected() {
    use ErrorKind::InvalidArgument;
    let mut array = array();
    let selections = [
        (Selection::all(), 35_usize),
        (Selection::from([AxisSelection::Index(0), AxisSelection::Index(0)]), 1),
        (Selection::from([slice(1, 4, 2), AxisSelection::Indices(vec![6, 6, 0])]), 6),
        (Selection::from([slice(1, 1, 1)]), 0),
    ];
    for (selection, count) in selections {
        for wrong in [count + 1, count.wrapping_sub(1), 0, 2 * count] {
            if wrong == count || wrong > 100 {
                continue;
            }
            let mut items = vec![-1i32; wrong];
            refused(array.read_into(&selection, &mut items), InvalidArgument);
            refused(array.view().read_into(&selection, &mut items), InvalidArgument);
            assert!(items.iter().all(|&item| item == -1));
            refused(array.write(&selection, &items), InvalidArgument);
        }
        for wrong in [4 * count + 1, (4 * count).wrapping_sub(1), 4 * count + 4] {
            if wrong > 1000 {
                continue;
            }
            let mut bytes = vec![0xee; wrong];
            refused(array.read_into(&selection, RawItems(&mut bytes)), InvalidArgument);
            refused(array.view().read_into(&selection, RawItems(&mut bytes)), InvalidArgument);
            assert!(bytes.iter().all(|&byte| byte == 0xee));
            match wrong {
                // The bytes of one item are written to each selected item.
                4 => array.write(&selection, RawItems(&bytes)).unwrap(),
                _ => refused(array.write(&selection, RawItems(&bytes)), InvalidArgument),
            }
        }
    }
    // The same number of items, but in another shape.
    let mut turned = Array2::from_elem((7, 5), -1);
    refused(array.read_into(.., turned.view_mut()), InvalidArgument);
    refused(array.view().read_into(.., turned.view_mut()), InvalidArgument);
    assert!(turned.iter().all(|&item| item == -1));
    refused(array.write(.., turned.view()), InvalidArgument);
    let flat = Array::from_elem(35, -1);
    refused(array.write(.., flat.view()), InvalidArgument);
    assert_eq!(array.read::<Vec<i32>>(..).unwrap(), ITEMS);
}

#[test]
fn items_of_another_type() {
    fn all<T: blosc2::Element + PartialEq + std::fmt::Debug>(item: T) {
        use ErrorKind::TypeMismatch;
        let mut array = array();
        refused(array.read::<Vec<T>>(..), TypeMismatch);
        refused(array.read::<Vec<T>>(..), TypeMismatch);
        refused(array.item::<T>(&[0, 0]), TypeMismatch);
        refused(array.read::<ndarray::ArrayD<T>>(..), TypeMismatch);
        refused(array.read::<Vec<T>>(Selection::points(&[[0, 0]])), TypeMismatch);
        refused(array.read::<Vec<T>>(Selection::mask(&[true; 35])), TypeMismatch);
        refused(array.view().read::<Vec<T>>(..), TypeMismatch);
        let mut items = vec![item; 35];
        refused(array.read_into(.., &mut items), TypeMismatch);
        refused(array.read_into(Selection::points(&[[0, 0]]), &mut items[..1]), TypeMismatch);
        let mut memory = Array2::from_elem((5, 7), item);
        refused(array.read_into(.., memory.view_mut()), TypeMismatch);
        assert!(items.iter().chain(&memory).all(|found| *found == item));
        refused(array.write(.., &items), TypeMismatch);
        refused(array.write(.., memory.view()), TypeMismatch);
        refused(array.write(.., item), TypeMismatch);
        refused(array.write([0, 0], item), TypeMismatch);
        refused(array.write(Selection::points(&[[0, 0]]), &[item]), TypeMismatch);
        refused(array.write(Selection::mask(&[true; 35]), &items), TypeMismatch);
        assert_eq!(array.read::<Vec<i32>>(..).unwrap(), ITEMS);
    }
    all(1u32);
    all(1f32);
    all(1i16);
    all(1i64);
    all([1u8; 4]);
    all(true);
}

#[test]
fn points_and_masks_that_do_not_fit() {
    use ErrorKind::{InvalidArgument, OutOfBounds};
    let mut array = array();
    for (point, kind) in [
        (vec![5, 0], OutOfBounds),
        (vec![0, 7], OutOfBounds),
        (vec![0, u64::MAX], OutOfBounds),
        (vec![0], InvalidArgument),
        (vec![0, 0, 0], InvalidArgument),
        (vec![], InvalidArgument),
    ] {
        refused(array.item::<i32>(&point), kind);
        if point.len() < 2 {
            continue; // Fewer integers select rows.
        }
        let points = [vec![1, 1], point];
        let mut items = [-1i32; 2];
        refused(array.read::<Vec<i32>>(Selection::points(&points)), kind);
        refused(array.read_into(Selection::points(&points), &mut items), kind);
        assert_eq!(items, [-1; 2]);
        refused(array.write(Selection::points(&points), &items), kind);
    }
    for wrong in [0, 1, 3] {
        let mut items = vec![-1i32; wrong];
        let points = [[0, 0], [1, 1]];
        refused(array.read_into(Selection::points(&points), &mut items), InvalidArgument);
        assert!(items.iter().all(|&item| item == -1));
        refused(array.write(Selection::points(&points), &items), InvalidArgument);
        let mut mask = [false; 35];
        mask[3..5].fill(true);
        refused(array.write(Selection::mask(&mask), &items), InvalidArgument);
    }
    for len in [0, 34, 36, 70] {
        let mask = vec![true; len];
        refused(array.read::<Vec<i32>>(Selection::mask(&mask)), InvalidArgument);
        refused(array.write(Selection::mask(&mask), &vec![-1i32; len]), InvalidArgument);
    }
    assert_eq!(array.read::<Vec<i32>>(..).unwrap(), ITEMS);
}

#[test]
fn views_that_there_are_not() {
    use ErrorKind::{InvalidArgument, OutOfBounds, Unsupported};
    let array = array();
    for order in [&[0][..], &[0, 0], &[0, 2], &[0, 1, 2], &[]] {
        refused(array.view().permute(order), InvalidArgument);
    }
    refused(array.view().expand_dims(3), InvalidArgument);
    let mut deep = array.view();
    while deep.ndim() < 16 {
        deep = deep.expand_dims(0).unwrap();
    }
    refused(deep.expand_dims(0), InvalidArgument);
    // Bounds are those of the view.
    let part = array.view().slice(&[1..3, 2..6]).unwrap();
    refused(part.read::<Vec<i32>>(&[0..3, 0..1]), OutOfBounds);
    refused(part.read::<Vec<i32>>([AxisSelection::Index(0), AxisSelection::Index(4)]), OutOfBounds);
    refused(part.read::<Vec<i32>>([AxisSelection::Index(-3)]), OutOfBounds);
    let wide = array.view().expand_dims(0).unwrap();
    refused(wide.slice([AxisSelection::Indices(vec![0, 0])]), Unsupported);
    refused(wide.slice([slice(0, 0, 1)]), Unsupported);
    refused(wide.slice([AxisSelection::Index(1)]), OutOfBounds);
}

#[test]
fn changes_of_what_may_only_be_read() {
    use ErrorKind::ReadOnly;
    let folder = tempfile::tempdir().unwrap();
    for directory in [false, true] {
        let path = folder.path().join(format!("{directory}"));
        let builder = NDArray::builder().chunk_shape([2, 3]).block_shape([2, 2]);
        let builder = builder.target(Target::from(&path).directory(directory));
        drop(builder.from_slice(&ITEMS, SHAPE).unwrap());
        let mut array = NDArray::open(&path).unwrap();
        refused(array.write(.., &[-1i32; 35]), ReadOnly);
        refused(array.write(.., RawItems(&[0xff; 140])), ReadOnly);
        refused(array.write(&[1..2, 1..2], &[-1i32]), ReadOnly);
        refused(array.write(.., -1i32), ReadOnly);
        refused(array.write([0, 0], -1i32), ReadOnly);
        refused(array.write(Selection::points(&[[0, 0]]), &[-1i32]), ReadOnly);
        refused(array.write(Selection::mask(&[true; 35]), &[-1i32; 35]), ReadOnly);
        refused(array.write(.., Array2::from_elem((5, 7), -1i32).view()), ReadOnly);
        assert_eq!(array.read::<Vec<i32>>(..).unwrap(), ITEMS);
        assert_eq!(NDArray::open(&path).unwrap().read::<Vec<i32>>(..).unwrap(), ITEMS);
    }
}
