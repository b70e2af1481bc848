//! Reads of parts of arrays: boxes, points, lists, and views with fewer or more dimensions.

use std::ops::Range;

use blosc2::{AxisSelection, ErrorKind, NDArray, NDArrayView, RawItems, Selection};

use super::c::CArray;
use super::{
    Cut, PLACES, Place, assert_c_holds, assert_holds, assert_keeps, cut, everywhere, filled,
    folder, kind, numbers, ranges,
};
use crate::common::{Model, assert_same};

/// An array, a box of it, and other chunks and blocks for the box.
struct Part {
    of: Cut,
    start: &'static [u64],
    end: &'static [u64],
    chunks: &'static [u64],
    blocks: &'static [u64],
}

const fn from(of: Cut, start: &'static [u64], end: &'static [u64]) -> Part {
    Part { of, start, end, chunks: of.chunks, blocks: of.blocks }
}

const fn to(part: Part, chunks: &'static [u64], blocks: &'static [u64]) -> Part {
    Part { chunks, blocks, ..part }
}

const PARTS: [Part; 7] = [
    from(cut(&[], &[], &[]), &[], &[]),
    to(from(cut(&[10], &[7], &[2]), &[2], &[9]), &[6], &[2]),
    to(from(cut(&[14, 10], &[8, 5], &[2, 2]), &[5, 3], &[9, 10]), &[4, 4], &[2, 3]),
    to(
        from(cut(&[10, 10, 10], &[3, 5, 9], &[3, 4, 4]), &[3, 0, 3], &[6, 7, 10]),
        &[3, 7, 7],
        &[2, 5, 5],
    ),
    to(from(cut(&[20, 0], &[7, 0], &[3, 0]), &[2, 0], &[8, 0]), &[5, 0], &[2, 0]),
    to(from(cut(&[20, 10], &[7, 5], &[3, 5]), &[2, 0], &[18, 0]), &[5, 5], &[2, 2]),
    // The box is not as wide as the chunk.
    to(
        from(cut(&[4, 4, 2], &[4, 4, 2], &[2, 2, 2]), &[0, 0, 0], &[2, 2, 2]),
        &[2, 2, 2],
        &[2, 2, 2],
    ),
];

impl Part {
    fn ranges(&self) -> Vec<Range<u64>> {
        ranges(self.start, self.end)
    }

    /// The box of a model.
    fn of_model(&self, model: &Model) -> Model {
        let shape = self.ranges().iter().map(|range| range.end - range.start).collect();
        Model { shape, bytes: model.read(&self.ranges()), ..*model }
    }

    /// A copy of the box with its own chunks.
    fn copied(&self, array: &NDArray, place: Place, path: &std::path::Path) -> NDArray {
        let builder = NDArray::builder().chunk_shape(self.chunks).block_shape(self.blocks);
        place.of(builder, path).copy(array.view().slice(self.ranges()).unwrap()).unwrap()
    }
}

#[test]
fn boxes_are_read() {
    for part in PARTS {
        everywhere(&[8], |place, typesize, path| {
            let model = numbers(part.of.shape, typesize, 1);
            let expected = part.of_model(&model);
            let what = format!("{place:?}, {:?}, {:?}", part.of, part.ranges());
            let array = part.of.holding(&model, place, path);
            assert_same(&array.read::<RawItems>(part.ranges()).unwrap().0, &expected.bytes, &what);
            let mut bytes = vec![0xee; expected.bytes.len()];
            array.read_into(part.ranges(), RawItems(&mut bytes)).unwrap();
            assert_same(&bytes, &expected.bytes, &what);
            if let Some(c) = part.of.in_c(&model, place, &path.with_extension("c")) {
                assert_same(&c.read(&part.ranges()), &expected.bytes, &what);
            }
        });
    }
    let array = NDArray::from_slice(&(0..1000u64).collect::<Vec<_>>(), [10, 10, 10]).unwrap();
    let found = array.read::<Vec<u64>>(&[3..5, 0..1, 3..7]).unwrap();
    assert_eq!(found, [303, 304, 305, 306, 403, 404, 405, 406]);
}

#[test]
fn parts_are_copied_with_other_chunks() {
    for part in PARTS {
        for to in PLACES {
            everywhere(&[8], |place, typesize, path| {
                let model = numbers(part.of.shape, typesize, 1);
                let expected = part.of_model(&model);
                let mut array = part.of.holding(&model, place, path);
                array.vlmeta_mut().set("of the whole", b"2.3").unwrap();
                let path = path.with_extension("part");
                let copy = part.copied(&array, to, &path);
                let what = format!("{place:?} to {to:?}, {:?}, {:?}", part.of, part.ranges());
                assert_eq!(
                    (copy.chunk_shape(), copy.block_shape()),
                    (part.chunks, part.blocks),
                    "{what}"
                );
                let copy = assert_keeps(to, copy, &path, &expected, &what);
                assert_eq!(copy.meta().names(), ["b2nd"], "{what}");
                // A part that is the whole array is a copy of the array.
                assert_eq!(copy.vlmeta().is_empty(), !part.of.shape.is_empty(), "{what}");
            });
        }
    }
}

/// Converts an index in C order to an index for each axis.
fn index(number: u64, shape: &[u64]) -> Vec<u64> {
    let mut left = number;
    let mut index: Vec<u64> = shape
        .iter()
        .rev()
        .map(|&size| {
            let at = left % size;
            left /= size;
            at
        })
        .collect();
    index.reverse();
    index
}

#[test]
fn points_are_read_in_any_order() {
    let cases: [(Cut, Vec<Vec<u64>>); 3] = [
        (
            cut(&[100], &[44], &[33]),
            vec![(2..100).collect(), (2..100).rev().collect(), vec![5, 1, 5, 99, 0, 44, 43]],
        ),
        (cut(&[6, 7], &[4, 5], &[3, 4]), vec![vec![0, 6, 7, 13, 20, 41, 20, 5]]),
        // The first and the last item, other chunks and blocks, their edges, duplicates.
        (
            cut(&[3, 4, 5, 6], &[2, 3, 4, 5], &[2, 2, 3, 4]),
            vec![vec![0, 359, 202, 120, 35, 210, 202], vec![]],
        ),
    ];
    for (cut, lists) in cases {
        // Pairs of numbers: the first ones rise and the second ones fall.
        let count: u64 = cut.shape.iter().product();
        let pairs: Vec<[i32; 2]> =
            (0..count as i32).map(|number| [number + 1, 200 - number]).collect();
        everywhere(&[8], |place, _, path| {
            let array = place.of(cut.builder(), path).from_slice(&pairs, cut.shape).unwrap();
            let aside = path.with_extension("saved");
            array.save(&aside).unwrap();
            let c = CArray::open(&aside);
            for list in &lists {
                let what = format!("{place:?}, {cut:?}, {list:?}");
                let points: Vec<Vec<u64>> =
                    list.iter().map(|&number| index(number, cut.shape)).collect();
                let expected: Vec<[i32; 2]> =
                    list.iter().map(|&number| pairs[number as usize]).collect();
                assert_eq!(
                    array.read::<Vec<[i32; 2]>>(Selection::points(&points)).unwrap(),
                    expected,
                    "{what}"
                );
                let list: Vec<i64> = list.iter().map(|&number| number as i64).collect();
                let bytes: Vec<u8> =
                    expected.iter().flatten().flat_map(|number| number.to_ne_bytes()).collect();
                if let Some(c) = &c {
                    assert_same(&c.read_points(&list), &bytes, &what);
                }
            }
            let outside: Vec<u64> = cut.shape.to_vec();
            assert_eq!(
                kind(array.read::<Vec<[i32; 2]>>(Selection::points(&[outside]))),
                ErrorKind::OutOfBounds
            );
        });
    }
}

#[test]
fn lists_select_their_product() {
    let cut = cut(&[10, 10, 10], &[10, 10, 10], &[10, 10, 10]);
    let items: Vec<i32> = (0..1000).collect();
    let lists = [vec![3, 1, 2], vec![2, 5], vec![3, 3, 3, 9, 3, 1, 0]];
    let others = [vec![3, 1, 2], vec![2, 5], vec![3, 9, 1, 0]];
    let product = |lists: &[Vec<u64>; 3]| -> Vec<i32> {
        let [one, two, three] = lists;
        one.iter()
            .flat_map(|i| two.iter().map(move |j| i * 100 + j * 10))
            .flat_map(|row| three.iter().map(move |k| (row + k) as i32))
            .collect()
    };
    let bytes = |items: &[i32]| -> Vec<u8> { items.iter().flat_map(|i| i.to_ne_bytes()).collect() };
    for cut in [cut, Cut { chunks: &[4, 3, 7], blocks: &[2, 3, 4], ..cut }] {
        everywhere(&[4], |place, _, path| {
            let mut array = place.of(cut.builder(), path).from_slice(&items, cut.shape).unwrap();
            let aside = path.with_extension("saved");
            array.save(&aside).unwrap();
            let mut c = CArray::open(&aside);
            let expected = product(&lists);
            assert_eq!(array.read::<Vec<i32>>(lists.clone()).unwrap(), expected, "{place:?}");
            if let Some(c) = &c {
                assert_eq!(c.read_orthogonal(&lists), bytes(&expected));
            }

            let new: Vec<i32> = (1000..1024).collect();
            array.write(others.clone(), &new).unwrap();
            if let Some(c) = &mut c {
                c.write_orthogonal(&others, &bytes(&new));
            }
            assert_eq!(array.read::<Vec<i32>>(others.clone()).unwrap(), new, "{place:?}");
            let mut all = items.clone();
            for (at, item) in product(&others).into_iter().zip(new) {
                all[at as usize] = item;
            }
            let expected = Model { shape: cut.shape.to_vec(), typesize: 4, bytes: bytes(&all) };
            assert_c_holds(c.as_ref(), &expected, "lists that C wrote");
            assert_keeps(place, array, path, &expected, "lists that were written");
        });
    }
}

/// Asserts that a view and a copy of it return `bytes`, in every way of reading.
fn assert_view(view: &NDArrayView<'_>, shape: &[u64], bytes: &[u8], what: &str) {
    assert_eq!(view.shape(), shape, "{what}");
    assert_eq!(view.ndim(), shape.len(), "{what}");
    assert_same(&view.read::<RawItems>(..).unwrap().0, bytes, what);
    for place in PLACES {
        let (_folder, path) = folder();
        let copy = place.of(NDArray::builder(), &path).copy(view.clone()).unwrap();
        let typesize = view.array().typesize();
        let expected = Model { shape: shape.to_vec(), typesize, bytes: bytes.to_vec() };
        assert_keeps(place, copy, &path, &expected, what);
    }
}

/// Boxes with axes of one item, and the axes to squeeze.
const NARROW: [(Part, &[usize]); 7] = [
    (from(cut(&[], &[], &[]), &[], &[]), &[]),
    (to(from(cut(&[10], &[7], &[2]), &[2], &[3]), &[1], &[1]), &[]),
    (to(from(cut(&[14, 10], &[8, 5], &[2, 2]), &[5, 3], &[9, 4]), &[4, 1], &[2, 1]), &[1]),
    (
        to(
            from(cut(&[10, 10, 10], &[3, 5, 9], &[3, 4, 4]), &[3, 0, 9], &[4, 7, 10]),
            &[1, 7, 1],
            &[1, 5, 1],
        ),
        &[0],
    ),
    (to(from(cut(&[20, 0], &[7, 0], &[3, 0]), &[1, 0], &[2, 0]), &[1, 0], &[1, 0]), &[0]),
    (to(from(cut(&[20, 10], &[7, 5], &[3, 5]), &[17, 0], &[18, 0]), &[1, 1], &[1, 1]), &[0]),
    (
        to(
            from(cut(&[10, 7, 6, 4], &[7, 5, 1, 4], &[2, 2, 1, 2]), &[4, 4, 0, 3], &[5, 5, 6, 4]),
            &[1, 1, 5, 1],
            &[1, 1, 2, 1],
        ),
        &[0, 3],
    ),
];

#[test]
fn dimensions_of_one_item_go() {
    for (part, _) in NARROW {
        everywhere(&[1, 8], |place, typesize, path| {
            let model = numbers(part.of.shape, typesize, 1);
            let expected = part.of_model(&model);
            let array = part.of.holding(&model, place, path);
            let copy = part.copied(&array, place, &path.with_extension("part"));
            let mut shape = expected.shape.clone();
            shape.retain(|&size| size != 1);
            let what = format!("{place:?}, {:?}", part.of);
            assert_view(&copy.view().squeeze(), &shape, &expected.bytes, &what);
            // A squeezed view of the box, which leaves the array unchanged.
            let view = array.view().slice(part.ranges()).unwrap().squeeze();
            assert_view(&view, &shape, &expected.bytes, &what);
            assert_holds(&array, &model, &what);
        });
    }
}

#[test]
fn chosen_dimensions_go() {
    for (part, gone) in NARROW {
        everywhere(&[1, 8], |place, typesize, path| {
            let model = numbers(part.of.shape, typesize, 1);
            let expected = part.of_model(&model);
            let array = part.of.holding(&model, place, path);
            let copy = part.copied(&array, place, &path.with_extension("part"));
            let along = (0..copy.ndim()).map(|axis| match gone.contains(&axis) {
                true => AxisSelection::Index(0),
                false => AxisSelection::ALL,
            });
            let shape: Vec<u64> = (0..copy.ndim())
                .filter(|axis| !gone.contains(axis))
                .map(|axis| expected.shape[axis])
                .collect();
            let view = copy.view().slice(along.collect::<Selection>()).unwrap();
            assert_view(&view, &shape, &expected.bytes, &format!("{place:?}, {:?}", part.of));
        });
    }
    // An axis with more than one item cannot be squeezed.
    let array = NDArray::from_slice(&[1u8, 2, 3, 4], [2, 2]).unwrap();
    assert_eq!(array.view().squeeze().shape(), [2, 2]);
}

#[test]
fn dimensions_of_one_item_come() {
    /// An array, the positions of the new axes, and a box of the result.
    type Wider = (Cut, &'static [u8], &'static [u64], &'static [u64]);
    let cases: [Wider; 8] = [
        (cut(&[], &[], &[]), &[1], &[0], &[1]),
        (cut(&[10], &[7], &[2]), &[1, 0, 1], &[0, 2, 0], &[1, 9, 1]),
        (cut(&[10], &[7], &[2]), &[1, 0, 1, 1], &[0, 2, 0, 0], &[1, 9, 1, 1]),
        (cut(&[14, 10], &[8, 5], &[2, 2]), &[1, 0, 0], &[0, 5, 3], &[1, 9, 10]),
        (cut(&[14, 10], &[8, 5], &[2, 2]), &[0, 1, 0, 1], &[2, 0, 3, 0], &[8, 1, 5, 1]),
        (cut(&[14, 10], &[8, 5], &[2, 2]), &[0, 1, 1, 0], &[2, 0, 0, 2], &[8, 1, 1, 7]),
        (
            cut(&[10, 10, 10], &[3, 5, 9], &[3, 4, 4]),
            &[0, 1, 0, 1, 0],
            &[3, 0, 3, 0, 3],
            &[6, 1, 7, 1, 5],
        ),
        (cut(&[10, 10, 10], &[3, 5, 9], &[3, 4, 4]), &[1, 0, 0, 0], &[0, 3, 0, 3], &[1, 6, 7, 10]),
    ];
    for (cut, new, start, end) in cases {
        everywhere(&[1, 8], |place, typesize, path| {
            let model = numbers(cut.shape, typesize, 1);
            let array = cut.holding(&model, place, path);
            let mut sizes = cut.shape.iter();
            let shape: Vec<u64> =
                new.iter().map(|&new| if new == 1 { 1 } else { *sizes.next().unwrap() }).collect();
            let mut view = array.view();
            for (axis, _) in new.iter().enumerate().filter(|(_, new)| **new == 1) {
                view = view.expand_dims(axis).unwrap();
            }
            let what = format!("{place:?}, {cut:?}, {new:?}");
            assert_view(&view, &shape, &model.bytes, &what);
            // The same items, with more dimensions.
            let wider = Model { shape, ..model.clone() };
            let (ranges, (_folder, path)) = (ranges(start, end), folder());
            let copy = place.of(NDArray::builder(), &path).copy(view.clone()).unwrap();
            let expected = wider.read(&ranges);
            assert_same(&view.read::<RawItems>(&ranges).unwrap().0, &expected, &what);
            assert_same(&copy.read::<RawItems>(&ranges).unwrap().0, &expected, &what);
            assert_holds(&array, &model, &what);
        });
    }
    let array = filled(NDArray::builder(), &numbers(&[1; 16], 1, 1));
    assert_eq!(kind(array.view().expand_dims(3)), ErrorKind::InvalidArgument);
    let array = filled(NDArray::builder(), &numbers(&[3, 3], 1, 1));
    assert_eq!(kind(array.view().expand_dims(3)), ErrorKind::InvalidArgument);
}
