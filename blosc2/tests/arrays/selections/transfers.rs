//! Every kind of source, result and buffer, with every kind of selection, against a plain vector.

use blosc2::{AxisSelection, ErrorKind, NDArray, RawItems, Selection};
use ndarray::{Array2, ArrayD, IxDyn, ShapeBuilder};

const SHAPE: [u64; 3] = [5, 6, 7];

fn numbers() -> NDArray {
    let items: Vec<i32> = (0..210).collect();
    let builder = NDArray::builder().chunk_shape([2, 4, 3]).block_shape([2, 2, 2]);
    builder.from_slice(&items, SHAPE).unwrap()
}

/// Selections, and the shapes of their items.
fn selections() -> Vec<(Selection, Vec<usize>)> {
    let mask: Vec<bool> = (0..210).map(|number| number % 11 == 3).collect();
    let chosen = mask.iter().filter(|chosen| **chosen).count();
    vec![
        (Selection::all(), vec![5, 6, 7]),
        (Selection::from((1..4, .., 2..=5)), vec![3, 6, 4]),
        (Selection::from((2, AxisSelection::strided(.., -2))), vec![3, 7]),
        (Selection::from(([4, 0, 3], .., [1, 6])), vec![3, 6, 2]),
        (Selection::from([3, -1, 0]), vec![]),
        (Selection::from((AxisSelection::NewAxis, 1..1)), vec![1, 0, 6, 7]),
        (Selection::points(&[[4, 5, 6], [0, 0, 0], [2, -3, 1]]), vec![3]),
        (Selection::points(&[(1, 2), (4, -1)]), vec![2, 7]),
        (Selection::points::<[i32; 3]>(&[]), vec![0]),
        (Selection::mask(mask), vec![chosen]),
    ]
}

#[test]
fn each_result_and_buffer_has_the_selected_items() {
    let array = numbers();
    for (selection, shape) in selections() {
        let found: Vec<i32> = array.read(&selection).unwrap();
        assert_eq!(found.len(), shape.iter().product::<usize>(), "{selection:?}");
        let RawItems(bytes) = array.read(&selection).unwrap();
        assert_eq!(bytes, found.iter().flat_map(|item| item.to_ne_bytes()).collect::<Vec<_>>());
        let nd: ArrayD<i32> = array.read(&selection).unwrap();
        assert_eq!(nd.shape(), shape, "{selection:?}");
        assert!(nd.iter().eq(&found), "{selection:?}");
        let fixed = array.read::<Array2<i32>>(&selection);
        match shape.len() {
            2 => assert!(fixed.unwrap().iter().eq(&found), "{selection:?}"),
            _ => assert_eq!(fixed.unwrap_err().kind(), ErrorKind::InvalidArgument),
        }

        let mut items = vec![-1; found.len()];
        array.read_into(&selection, &mut items).unwrap();
        assert_eq!(items, found, "{selection:?}");
        let mut raw = vec![0xee; bytes.len()];
        array.read_into(&selection, RawItems(&mut raw)).unwrap();
        assert_eq!(raw, bytes, "{selection:?}");
        // In Fortran order.
        let reversed: Vec<usize> = shape.iter().copied().rev().collect();
        let mut turned = ArrayD::from_elem(IxDyn(&reversed), -1);
        array.read_into(&selection, turned.view_mut().reversed_axes()).unwrap();
        assert!(turned.reversed_axes().iter().eq(&found), "{selection:?}");
        let mut owned = nd.clone();
        owned.fill(-1);
        array.read_into(&selection, &mut owned).unwrap();
        assert_eq!(owned, nd, "{selection:?}");
    }
}

#[test]
fn each_source_replaces_the_selected_items() {
    for (selection, shape) in selections() {
        let places: Vec<i32> = numbers().read(&selection).unwrap();
        let new: Vec<i32> = (0..places.len() as i32).map(|number| -number - 1).collect();
        let mut expected: Vec<i32> = (0..210).collect();
        for (&place, &item) in places.iter().zip(&new) {
            expected[place as usize] = item;
        }
        let bytes: Vec<u8> = new.iter().flat_map(|item| item.to_ne_bytes()).collect();
        let turned = ArrayD::from_shape_vec(IxDyn(&shape), new.clone()).unwrap();
        let turned = turned.reversed_axes().as_standard_layout().into_owned().reversed_axes();
        let sizes: Vec<u64> = shape.iter().map(|&size| size as u64).collect();
        let other = NDArray::from_slice(&new, &sizes).unwrap();
        let flipped: Vec<i32> = turned.t().iter().copied().collect();
        let back: Vec<u64> = sizes.iter().copied().rev().collect();
        let back = NDArray::from_slice(&flipped, &back).unwrap();
        let check = |what: &str, write: &dyn Fn(&mut NDArray) -> blosc2::Result<()>| {
            let mut array = numbers();
            write(&mut array).unwrap_or_else(|error| panic!("{what}, {selection:?}: {error}"));
            let found: Vec<i32> = array.read(..).unwrap();
            assert_eq!(found, expected, "{what}, {selection:?}");
        };
        check("a slice", &|array| array.write(&selection, &new));
        check("bytes", &|array| array.write(&selection, RawItems(&bytes)));
        check("a view", &|array| array.write(&selection, turned.view()));
        check("an owned array", &|array| array.write(&selection, &turned));
        check("an array", &|array| array.write(&selection, &other));
        check("a transposed array", &|array| array.write(&selection, back.view().transpose()));

        places.iter().for_each(|&place| expected[place as usize] = 77);
        let check = |what: &str, write: &dyn Fn(&mut NDArray) -> blosc2::Result<()>| {
            let mut array = numbers();
            write(&mut array).unwrap();
            let found: Vec<i32> = array.read(..).unwrap();
            assert_eq!(found, expected, "{what}, {selection:?}");
        };
        check("one item", &|array| array.write(&selection, 77));
        check("the bytes of one item", &|array| {
            array.write(&selection, RawItems(&77i32.to_ne_bytes()))
        });
    }
}

#[test]
fn sources_that_do_not_fit_are_refused() {
    use ErrorKind::{InvalidArgument, TypeMismatch};
    let mut array = numbers();
    let kind = |result: blosc2::Result<()>| result.unwrap_err().kind();
    let floats = NDArray::from_slice(&[0.5f32; 7], 7).unwrap();
    assert_eq!(kind(array.write((0, 0), &floats)), TypeMismatch);
    assert_eq!(kind(array.write((0, 0), 0.5f32)), TypeMismatch);
    assert_eq!(kind(array.write((0, 0), [1i32; 7])), TypeMismatch); // one item, a sub-array
    assert_eq!(kind(array.write((0, 0), ndarray::arr1(&[0.5f32; 7]).view())), TypeMismatch);
    assert_eq!(kind(array.append(1, &floats)), InvalidArgument);
    let row = NDArray::from_slice(&[1i32; 6], 6).unwrap();
    assert_eq!(kind(array.write((0, 0), &row)), InvalidArgument);
    assert_eq!(kind(array.write((0, .., 0), row.view().expand_dims(0).unwrap())), InvalidArgument);
    assert_eq!(kind(array.append(0, ndarray::arr2(&[[1i32; 42]]).view())), InvalidArgument);
    let points = Selection::points(&[[0, 0, 0]]);
    assert_eq!(array.view().slice(&points).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(array.chunks(&points).err().unwrap().kind(), ErrorKind::InvalidArgument);
    assert!(array.read::<Vec<i32>>(..).unwrap().into_iter().eq(0..210));
}

#[test]
fn each_source_is_appended_and_inserted() {
    for axis in 0..3 {
        for count in [1u64, 2, 4, 9] {
            let mut shape = SHAPE;
            shape[axis] = count;
            let len = shape.iter().product::<u64>() as i32;
            let new: Vec<i32> = (1000..1000 + len).collect();
            let sizes = shape.map(|size| size as usize);
            let nd = ArrayD::from_shape_vec(IxDyn(&sizes), new.clone()).unwrap();
            let builder = NDArray::builder().chunk_shape([2, 4, 3]).block_shape([2, 2, 2]);
            let other = builder.from_slice(&new, shape).unwrap();
            let flipped: Vec<i32> = nd.t().iter().copied().collect();
            let mut back = shape;
            back.reverse();
            let back = NDArray::from_slice(&flipped, back).unwrap();
            for at in [0, 1, 2, 4, SHAPE[axis]] {
                let all: ArrayD<i32> = numbers().read(..).unwrap();
                let (before, after) = all.view().split_at(ndarray::Axis(axis), at as usize);
                let parts = [before, nd.view(), after];
                let expected = ndarray::concatenate(ndarray::Axis(axis), &parts).unwrap();
                let check = |what: &str, insert: &dyn Fn(&mut NDArray) -> blosc2::Result<()>| {
                    let mut array = numbers();
                    insert(&mut array).unwrap();
                    let found: ArrayD<i32> = array.read(..).unwrap();
                    assert_eq!(found, expected, "{what}: {count} at {at} of axis {axis}");
                };
                check("a slice", &|array| array.insert(axis, at, &new));
                check("a view", &|array| array.insert(axis, at, nd.view()));
                check("an array", &|array| array.insert(axis, at, &other));
                check("transposed", &|array| array.insert(axis, at, back.view().transpose()));
                if at == SHAPE[axis] {
                    check("a slice", &|array| array.append(axis, &new));
                    check("a view", &|array| array.append(axis, &nd));
                    check("an array", &|array| array.append(axis, &other));
                    check("transposed", &|array| array.append(axis, back.view().transpose()));
                }
            }
        }
    }
    let mut line = NDArray::from_slice(&[1i32, 2], 2).unwrap();
    line.append(0, 3).unwrap(); // one item
    line.insert(0, 0, 0).unwrap();
    assert_eq!(line.read::<Vec<i32>>(..).unwrap(), [0, 1, 2, 3]);
}

/// A broadcast view can have more items than fit in memory.
#[test]
fn broadcast_sources_are_checked_before_they_are_expanded() {
    let mut flags = NDArray::builder().zeros::<bool>(4).unwrap();
    let one = ndarray::arr1(&[true]);
    let huge = one.broadcast(1 << 45).unwrap();
    assert_eq!(flags.write(.., huge).unwrap_err().kind(), ErrorKind::InvalidArgument);
    flags.write(.., one.broadcast(4).unwrap()).unwrap();
    assert_eq!(flags.read::<Vec<bool>>(..).unwrap(), [true; 4]);

    let mut numbers = NDArray::builder().zeros::<f64>([2, 3]).unwrap();
    let row = ndarray::arr1(&[1.0, 2.0, 3.0]);
    numbers.write(.., row.broadcast([2, 3]).unwrap()).unwrap();
    assert_eq!(numbers.read::<Vec<f64>>(..).unwrap(), [1.0, 2.0, 3.0, 1.0, 2.0, 3.0]);
    let points = Selection::points(&[[1, 0], [0, 2]]);
    numbers.write(&points, ndarray::arr1(&[9.0]).broadcast(2).unwrap()).unwrap();
    assert_eq!(numbers.read::<Vec<f64>>(&points).unwrap(), [9.0; 2]);
    let wrong = ndarray::arr1(&[9.0]);
    let wrong = wrong.broadcast(1 << 61).unwrap();
    assert_eq!(numbers.write(&points, wrong).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert!(numbers.append(0, wrong).is_err());

    // An axis with one index may have any stride.
    let data = [1.0, 2.0, 3.0];
    let strides = [isize::MAX as usize, 1];
    let far = ndarray::ArrayView::from_shape(
        ndarray::Ix2(1, 3).strides(ndarray::Ix2(strides[0], strides[1])),
        &data,
    );
    numbers.write(0..1, far.unwrap()).unwrap();
    assert_eq!(numbers.read::<Vec<f64>>(0).unwrap(), data);
}

/// As in NumPy: no points of one integer select items of the shape `[0, 4]`.
#[test]
fn no_points_keep_the_other_axes() {
    let array = NDArray::builder().zeros::<u8>([3, 4]).unwrap();
    let read = |selection: Selection| {
        array.read::<ndarray::ArrayD<u8>>(selection).unwrap().shape().to_vec()
    };
    assert_eq!(read(Selection::points::<[i64; 1]>(&[])), [0, 4]);
    assert_eq!(read(Selection::points::<(i32,)>(&[])), [0, 4]);
    assert_eq!(read(Selection::points::<[i64; 2]>(&[])), [0]);
    assert_eq!(read(Selection::points::<Vec<i64>>(&[])), [0]);
    assert!(array.read::<Vec<u8>>(Selection::points::<[i64; 3]>(&[])).is_err());
}
