//! Changes of arrays: appended, inserted and deleted items, new shapes, written boxes.

use std::path::Path;

use blosc2::{Appender, CParams, Codec, ErrorKind, NDArray, RawItems};

use super::c::CArray;
use super::{
    Cut, Place, assert_c_holds, assert_holds, assert_keeps, constant, cut, everywhere, filled,
    folder, joined, kind, numbers, part, ranges,
};
use crate::common::Model;

/// Upstream also tests 2 and 4; plans do not depend on the size.
const TYPESIZES: [usize; 2] = [1, 8];

/// Arrays, an axis, and the number of items to append along it.
const APPENDED: [(Cut, usize, u64); 11] = [
    (cut(&[5], &[3], &[2]), 0, 10),
    (cut(&[18, 6], &[6, 6], &[3, 3]), 1, 12),
    (cut(&[12, 10, 14], &[3, 5, 9], &[3, 4, 4]), 2, 18),
    (cut(&[10, 10, 5, 5], &[5, 7, 3, 3], &[2, 2, 1, 1]), 3, 30),
    (cut(&[0], &[3], &[3]), 0, 10),
    (cut(&[0, 6], &[6, 6], &[3, 3]), 0, 6),
    (cut(&[0, 6], &[6, 6], &[6, 6]), 0, 6),
    (cut(&[0, 6], &[6, 6], &[3, 6]), 0, 6),
    (cut(&[0, 6], &[6, 6], &[4, 6]), 0, 6),
    (cut(&[0, 6], &[6, 6], &[3, 6]), 0, 13),
    // Upstream documents that this case does not work there.
    (cut(&[0, 6], &[6, 6], &[4, 6]), 0, 13),
];

#[test]
fn items_are_appended_along_each_dimension() {
    for (cut, axis, count) in APPENDED {
        let mut shape = cut.shape.to_vec();
        shape[axis] = count;
        everywhere(&TYPESIZES, |place, typesize, path| {
            let (old, new) = (numbers(cut.shape, typesize, 1), numbers(&shape, typesize, 1000));
            let expected = joined(axis, &[&old, &new]);
            let what = format!("{cut:?} and {count} along {axis}, {typesize} bytes");
            let mut array = cut.holding(&old, place, path);
            array.append(axis, RawItems(&new.bytes)).unwrap();
            assert_keeps(place, array, path, &expected, &what);

            if place.is_file()
                && let Some(mut c) = cut.in_c(&old, place, &path.with_extension("c"))
            {
                c.append(axis, &new.bytes);
                assert_c_holds(Some(&c), &expected, &what);
            }
            if typesize != 8 {
                return;
            }

            // The same, a few at a time.
            let aside = path.with_extension("appender");
            let mut array = cut.holding(&old, place, &aside);
            let mut appender = Appender::new(&mut array, axis).unwrap();
            for at in 0..count {
                appender.append(RawItems(&part(&new, axis, at..at + 1).bytes)).unwrap();
            }
            appender.flush().unwrap();
            drop(appender);
            assert_keeps(place, array, &aside, &expected, &format!("{what}, one by one"));
        });
    }
}

#[test]
fn items_are_inserted_along_each_dimension() {
    let cases = [
        // At the end with padding, at the start, and between chunks.
        (cut(&[5], &[3], &[2]), 0, 5, 10),
        (cut(&[18, 6], &[6, 6], &[3, 3]), 1, 0, 12),
        (cut(&[12, 10, 14], &[3, 5, 9], &[3, 4, 4]), 2, 9, 18),
        (cut(&[10, 10, 5, 5], &[5, 7, 3, 3], &[2, 2, 1, 1]), 3, 3, 30),
        // At other positions, which C does not support.
        (cut(&[5], &[3], &[2]), 0, 2, 7),
        (cut(&[12, 10, 14], &[3, 5, 9], &[3, 4, 4]), 1, 7, 4),
    ];
    for (number, (cut, axis, at, count)) in cases.into_iter().enumerate() {
        let mut shape = cut.shape.to_vec();
        let size = shape[axis];
        shape[axis] = count;
        everywhere(&TYPESIZES, |place, typesize, path| {
            let (old, new) = (numbers(cut.shape, typesize, 1), numbers(&shape, typesize, 1000));
            let (before, after) = (part(&old, axis, 0..at), part(&old, axis, at..size));
            let expected = joined(axis, &[&before, &new, &after]);
            let what = format!("{cut:?} and {count} at {at} along {axis}, {typesize} bytes");
            let mut array = cut.holding(&old, place, path);
            array.insert(axis, at, RawItems(&new.bytes)).unwrap();
            assert_keeps(place, array, path, &expected, &what);
            if number < 4
                && place.is_file()
                && let Some(mut c) = cut.in_c(&old, place, &path.with_extension("c"))
            {
                c.insert(axis, at, &new.bytes);
                assert_c_holds(Some(&c), &expected, &what);
            }
        });
    }
}

#[test]
fn items_are_deleted_along_each_dimension() {
    let cases = [
        // The end, the start, whole chunks between others.
        (cut(&[10], &[3], &[2]), 0, 5..10),
        (cut(&[18, 12], &[6, 6], &[3, 3]), 1, 0..6),
        (cut(&[12, 10, 27], &[3, 5, 9], &[3, 4, 4]), 2, 9..18),
        (cut(&[10, 10, 5, 30], &[5, 7, 3, 3], &[2, 2, 1, 1]), 3, 12..21),
        // Other ranges, which C does not support.
        (cut(&[10], &[3], &[2]), 0, 4..8),
        (cut(&[12, 10, 27], &[3, 5, 9], &[3, 4, 4]), 1, 2..3),
    ];
    for (number, (cut, axis, range)) in cases.into_iter().enumerate() {
        let size = cut.shape[axis];
        everywhere(&TYPESIZES, |place, typesize, path| {
            let old = numbers(cut.shape, typesize, 1);
            let (before, after) =
                (part(&old, axis, 0..range.start), part(&old, axis, range.end..size));
            let expected = joined(axis, &[&before, &after]);
            let what = format!("{cut:?} without {range:?} along {axis}, {typesize} bytes");
            let mut array = cut.holding(&old, place, path);
            array.delete(axis, range.clone()).unwrap();
            assert_keeps(place, array, path, &expected, &what);
            if number < 4
                && place.is_file()
                && let Some(mut c) = cut.in_c(&old, place, &path.with_extension("c"))
            {
                c.delete(axis, range.clone());
                assert_c_holds(Some(&c), &expected, &what);
            }
        });
    }
}

/// Arrays, a new shape, and the position of the change along each axis (`None`: at the end).
type Resized = (Cut, &'static [u64], Option<&'static [u64]>);

const RESIZED: [Resized; 19] = [
    (cut(&[], &[], &[]), &[], None),
    (cut(&[5], &[3], &[2]), &[10], None),
    (cut(&[0], &[2], &[1]), &[1], None),
    (cut(&[0], &[100], &[7]), &[2], None),
    (cut(&[0, 0], &[100, 10], &[7, 3]), &[2, 2], None),
    (cut(&[0, 0], &[100, 10], &[7, 3]), &[150, 160], None),
    (cut(&[20, 5], &[7, 5], &[3, 3]), &[27, 10], Some(&[14, 5])),
    (cut(&[20, 10], &[7, 5], &[3, 5]), &[10, 10], None),
    (cut(&[30, 20], &[8, 5], &[2, 2]), &[22, 10], Some(&[8, 5])),
    (cut(&[12, 10, 14], &[3, 5, 9], &[3, 4, 4]), &[10, 15, 14], None),
    (cut(&[10, 21, 30], &[8, 7, 15], &[5, 5, 10]), &[10, 13, 10], None),
    (cut(&[10, 23, 30], &[8, 7, 15], &[5, 5, 10]), &[10, 16, 45], Some(&[0, 0, 0])),
    (cut(&[75, 50], &[25, 13], &[8, 8]), &[50, 76], Some(&[50, 13])),
    (cut(&[50, 50], &[25, 13], &[8, 8]), &[49, 51], None),
    (cut(&[143, 41], &[18, 13], &[7, 7]), &[50, 50], None),
    (cut(&[10, 10, 5, 5], &[5, 7, 3, 3], &[2, 2, 1, 1]), &[11, 20, 2, 2], None),
    // Inside of the array along several axes; as a whole from the start.
    (cut(&[16, 12], &[4, 3], &[2, 2]), &[24, 6], Some(&[8, 3])),
    (cut(&[16, 12], &[4, 3], &[2, 2]), &[0, 18], Some(&[0, 0])),
    (cut(&[8, 6, 9], &[4, 3, 2], &[3, 2, 2]), &[12, 9, 9], Some(&[4, 3, 0])),
];

/// Positions and sizes that C refuses, as they cut chunks.
const RESIZED_ANYWHERE: [(Cut, &[u64], &[u64]); 5] = [
    (cut(&[10], &[3], &[2]), &[14], &[4]),
    (cut(&[10], &[3], &[2]), &[8], &[1]),
    (cut(&[10, 7], &[4, 3], &[2, 2]), &[13, 5], &[5, 1]),
    (cut(&[10, 7], &[4, 3], &[2, 2]), &[11, 8], &[0, 0]),
    (cut(&[6, 5, 4], &[4, 3, 2], &[2, 3, 2]), &[7, 6, 5], &[3, 2, 1]),
];

#[test]
fn arrays_are_resized_at_any_position() {
    for (cut, shape, start) in RESIZED_ANYWHERE {
        everywhere(&TYPESIZES, |place, typesize, path| {
            let old = numbers(cut.shape, typesize, 1);
            let expected = resized(&old, shape, Some(start));
            let what = format!("{cut:?} to {shape:?} at {start:?}, {typesize} bytes");
            let mut array = cut.holding(&old, place, path);
            for (shape, start, expected) in [
                (&shape[1..], start, ErrorKind::InvalidArgument),
                (shape, &start[1..], ErrorKind::InvalidArgument),
                (shape, cut.shape, ErrorKind::OutOfBounds),
                (shape, &vec![u64::MAX; shape.len()][..], ErrorKind::OutOfBounds),
            ] {
                // The end of an array is a valid position if no axis shrinks.
                if start != cut.shape || shape.iter().zip(cut.shape).any(|(new, old)| new < old) {
                    assert_eq!(kind(array.resize_at(shape, start)), expected, "{what}");
                }
            }
            assert_holds(&array, &old, &what);
            array.resize_at(shape, start).unwrap();
            assert_keeps(place, array, path, &expected, &what);
        });
    }
}

/// Inserting and deleting whole chunks does not recompress the other chunks.
#[test]
fn chunks_that_keep_their_items_stay_as_they_are() {
    let cut = cut(&[16, 12], &[4, 3], &[2, 2]);
    let lz4 = cut.holding(&numbers(cut.shape, 2, 1), Place::Memory, Path::new(""));
    let codecs = |array: &NDArray| -> Vec<Codec> {
        let chunk = |index| array.schunk().chunk(index).unwrap();
        (0..array.schunk().nchunks())
            .map(chunk)
            .filter(|c| c.special().is_none())
            .map(|c| c.codec())
            .collect()
    };
    for (shape, start, kept) in [
        ([24, 6], [8, 3], 8),
        ([12, 12], [4, 0], 12),
        ([16, 14], [0, 12], 16),
        ([17, 12], [1, 0], 0),
        // A position along an axis that keeps its size cuts nothing.
        ([24, 12], [8, 1], 16),
    ] {
        let mut array = NDArray::builder().copy(&lz4).unwrap();
        array.set_cparams(CParams::new().codec(Codec::BloscLz)).unwrap();
        array.resize_at(shape, start).unwrap();
        let found = codecs(&array).into_iter().filter(|&codec| codec == Codec::Lz4).count();
        assert_eq!(found, kept, "{shape:?} at {start:?}");
    }
}

/// Resizes a model; new items are zeros.
fn resized(old: &Model, shape: &[u64], start: Option<&[u64]>) -> Model {
    let mut model = old.clone();
    for (axis, &size) in shape.iter().enumerate() {
        let there = model.shape[axis];
        let at = start.map_or(there.min(size), |start| start[axis]);
        let (kept, more) = (there.saturating_sub(size), size.saturating_sub(there));
        let mut new = model.shape.clone();
        new[axis] = more;
        let (before, after) = (part(&model, axis, 0..at), part(&model, axis, at + kept..there));
        model = joined(axis, &[&before, &constant(&new, old.typesize, 0), &after]);
    }
    model
}

/// Resizes an array.
fn resize(array: &mut NDArray, shape: &[u64], start: Option<&[u64]>) {
    match start {
        Some(start) => array.resize_at(shape, start).unwrap(),
        None => array.resize(shape).unwrap(),
    }
}

#[test]
fn arrays_get_other_shapes() {
    for (cut, shape, start) in RESIZED {
        everywhere(&TYPESIZES, |place, typesize, path| {
            let old = numbers(cut.shape, typesize, 1);
            let expected = resized(&old, shape, start);
            let what = format!("{cut:?} to {shape:?} at {start:?}, {typesize} bytes");
            let mut array = cut.holding(&old, place, path);
            resize(&mut array, shape, start);
            assert_keeps(place, array, path, &expected, &what);

            if place.is_file()
                && let Some(mut c) = cut.in_c(&old, place, &path.with_extension("c"))
            {
                c.resize(shape, start);
                assert_c_holds(Some(&c), &expected, &what);
            }

            // The value fills the padding as well: C returns the padding where the array grows.
            let one = constant(cut.shape, typesize, 1);
            let aside = path.with_extension("full");
            let dtype = format!("|V{typesize}");
            let builder = place.of(cut.builder(), &aside);
            let mut array = builder
                .dtype(&dtype, vec![1; typesize].len())
                .full(RawItems(&vec![1; typesize]), cut.shape)
                .unwrap();
            resize(&mut array, shape, start);
            let expected = resized(&one, shape, start);
            assert_keeps(place, array, &aside, &expected, &format!("{what}, of ones"));
        });
    }
}

#[test]
fn a_file_that_grows_step_by_step_has_no_gaps() {
    const ITEMS: i64 = 100_000;
    const STEP: i64 = 1000;
    let builder = || NDArray::builder().chunk_shape([16384]).block_shape([256]);
    let items: Vec<i64> = (0..ITEMS).collect();
    let (folder, path) = folder();
    let mut array = builder().target(&path).zeros::<i64>(&[0]).unwrap();
    let appended = folder.path().join("appended.b2nd");
    let mut other = builder().target(&appended).zeros::<i64>(&[0]).unwrap();
    for start in (0..ITEMS).step_by(STEP as usize) {
        let range = start as u64..(start + STEP) as u64;
        let step = &items[start as usize..(start + STEP) as usize];
        array.resize([range.end]).unwrap();
        array.write(&[range], step).unwrap();
        other.append(0, step).unwrap();
    }
    let at_once = folder.path().join("at_once.b2nd");
    drop(builder().target(&at_once).from_slice(&items, [ITEMS as u64]).unwrap());
    let len = |path| std::fs::metadata(path).unwrap().len();
    for path in [&path, &appended] {
        assert!(NDArray::open(path).unwrap().read::<Vec<i64>>(..).unwrap() == items);
        if let Some(c) = CArray::open(path) {
            let c = c.read_all();
            assert!(c.chunks_exact(8).zip(&items).all(|(c, item)| c == item.to_le_bytes()));
        }
        let (found, least) = (len(path), len(&at_once));
        assert!(found <= least + 4096, "{found} bytes, where {least} are needed");
    }
}

/// Two arrays, and the axis along which they are joined.
const JOINED: [(Cut, Cut, usize); 13] = [
    (cut(&[10], &[5], &[1]), cut(&[5], &[5], &[1]), 0),
    (cut(&[2], &[25], &[5]), cut(&[49], &[25], &[5]), 0),
    (cut(&[10, 10], &[2, 2], &[1, 1]), cut(&[4, 10], &[2, 2], &[1, 1]), 0),
    (cut(&[10, 8], &[2, 2], &[1, 1]), cut(&[10, 8], &[2, 2], &[1, 1]), 1),
    (cut(&[4, 4], &[4, 4], &[2, 2]), cut(&[4, 4], &[4, 4], &[2, 2]), 0),
    (cut(&[25, 50], &[25, 25], &[5, 5]), cut(&[25, 5], &[25, 25], &[5, 5]), 1),
    (cut(&[20, 5, 20], &[9, 13, 10], &[5, 8, 5]), cut(&[20, 5, 20], &[9, 13, 10], &[5, 8, 5]), 0),
    (cut(&[20, 5, 20], &[9, 13, 10], &[5, 8, 5]), cut(&[20, 5, 20], &[9, 13, 10], &[5, 8, 5]), 1),
    (cut(&[20, 5, 20], &[9, 13, 10], &[5, 8, 5]), cut(&[20, 5, 20], &[9, 13, 10], &[5, 8, 5]), 2),
    // With other chunks.
    (cut(&[5, 4, 6], &[2, 4, 5], &[1, 2, 2]), cut(&[7, 4, 6], &[3, 1, 6], &[3, 1, 4]), 0),
    (
        cut(&[3, 5, 5, 2], &[2, 5, 3, 2], &[2, 2, 2, 1]),
        cut(&[3, 6, 5, 2], &[3, 2, 5, 1], &[1, 2, 2, 1]),
        1,
    ),
    // One of the two is empty.
    (cut(&[0, 4], &[3, 3], &[2, 2]), cut(&[5, 4], &[2, 4], &[2, 2]), 0),
    (cut(&[5, 4], &[2, 4], &[2, 2]), cut(&[5, 0], &[3, 3], &[2, 2]), 1),
];

#[test]
fn arrays_are_joined_along_each_dimension() {
    for (one, other, axis) in JOINED {
        everywhere(&[1, 13], |place, typesize, _| {
            let what = format!("{one:?} and {other:?} along {axis}, {typesize} bytes");
            for first in [constant(one.shape, typesize, 0), numbers(one.shape, typesize, 7)] {
                let (_folder, path) = folder();
                let second = numbers(other.shape, typesize, 1000);
                let expected = joined(axis, &[&first, &second]);
                let mut left = one.holding(&first, place, &path.with_extension("left"));
                let right = other.holding(&second, place, &path.with_extension("right"));
                let builder = place.of(one.builder(), &path);
                let both = builder.concatenate([&left, &right], axis).unwrap();
                assert_eq!(both.chunk_shape(), one.chunks, "{what}");
                assert_keeps(place, both, &path, &expected, &what);
                // Without a copy of the first one.
                left.append(axis, &right).unwrap();
                let path = path.with_extension("left");
                assert_keeps(place, left, &path, &expected, &format!("{what}, added"));
                // By C, except for arrays without items.
                if place.is_file()
                    && !other.shape.contains(&0)
                    && let Some(mut c) = one.in_c(&first, place, &path.with_extension("c"))
                    && let Some(end) = other.in_c(&second, place, &path.with_extension("end"))
                {
                    c.concatenate(axis, &end);
                    assert_c_holds(Some(&c), &expected, &what);
                }
            }
        });
    }
}

/// Arrays, and the start and the exclusive end of a box that is written.
const WRITTEN: [(Cut, &[u64], &[u64]); 13] = [
    (cut(&[], &[], &[]), &[], &[]),
    (cut(&[5], &[3], &[2]), &[2], &[5]),
    (cut(&[20, 0], &[7, 0], &[3, 0]), &[2, 0], &[8, 0]),
    (cut(&[20, 10], &[7, 5], &[3, 5]), &[2, 0], &[18, 0]),
    (cut(&[14, 10], &[8, 5], &[2, 2]), &[5, 3], &[9, 10]),
    (cut(&[12, 10, 14], &[3, 5, 9], &[3, 4, 4]), &[3, 0, 3], &[6, 7, 10]),
    (cut(&[10, 21, 30, 5], &[8, 7, 15, 3], &[5, 5, 10, 1]), &[5, 4, 3, 3], &[10, 8, 8, 4]),
    (cut(&[50, 50], &[25, 13], &[8, 8]), &[0, 0], &[10, 10]),
    (cut(&[150, 45], &[15, 15], &[7, 7]), &[4, 2], &[6, 5]),
    (cut(&[10, 10], &[5, 7], &[2, 2]), &[0, 0], &[5, 5]),
    (cut(&[20, 20], &[10, 10], &[5, 10]), &[10, 10], &[20, 20]),
    (cut(&[3, 4, 5], &[1, 4, 5], &[1, 2, 5]), &[1, 0, 0], &[2, 4, 5]),
    (cut(&[3, 8, 5], &[1, 4, 5], &[1, 2, 5]), &[1, 4, 0], &[2, 8, 5]),
];

#[test]
fn boxes_are_written() {
    for (cut, start, end) in WRITTEN {
        let ranges = ranges(start, end);
        let shape: Vec<u64> = ranges.iter().map(|range| range.end - range.start).collect();
        everywhere(&TYPESIZES, |place, typesize, path| {
            let new = numbers(&shape, typesize, 1);
            let what = format!("{cut:?}, {ranges:?}, {typesize} bytes");
            let zeros = constant(cut.shape, typesize, 0);
            let mut array = cut.holding(&zeros, place, path);
            array.write(&ranges, RawItems(&new.bytes)).unwrap();
            assert_eq!(array.read::<RawItems>(&ranges).unwrap().0, new.bytes, "{what}");

            let bytes = match cut.in_c(&zeros, place, &path.with_extension("c")) {
                Some(mut c) => {
                    c.write(&ranges, &new.bytes);
                    assert_eq!(c.read(&ranges), new.bytes, "{what}, in C");
                    c.read_all()
                }
                None => array.read::<RawItems>(..).unwrap().0,
            };
            let expected = Model { bytes, ..zeros };
            assert_keeps(place, array, path, &expected, &what);
        });
    }
}

/// C copies the boxes of the chunks with `b2nd_copy_buffer2`.
#[test]
fn boxes_of_chunks_make_up_an_array() {
    let array = |items: [u8; 9]| NDArray::from_slice(&items, [3, 3, 1]).unwrap();
    let first = array([0, 0, 0, 0, 0, 2, 0, 4, 6]);
    let second = array([1, 3, 0, 5, 7, 0, 0, 0, 0]);
    let mut both = NDArray::builder().chunk_shape([2, 2, 1]).zeros::<u8>(&[2, 2, 2]).unwrap();
    let part = first.read::<Vec<u8>>(&[1..3, 1..3, 0..1]).unwrap();
    both.write(&[0..2, 0..2, 0..1], &part).unwrap();
    let part = second.read::<Vec<u8>>(&[0..2, 0..2, 0..1]).unwrap();
    both.write(&[0..2, 0..2, 1..2], &part).unwrap();
    assert_eq!(both.read::<Vec<u8>>(..).unwrap(), [0, 1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn what_does_not_fit_changes_nothing() {
    use blosc2::ErrorKind::{InvalidArgument, OutOfBounds};
    let cut = cut(&[6, 4], &[4, 3], &[2, 2]);
    everywhere(&[2], |place, typesize, path| {
        let model = numbers(cut.shape, typesize, 1);
        let mut array = cut.holding(&model, place, path);
        let bytes = [0; 100];
        assert_eq!(kind(array.append(2, RawItems(&bytes[..8]))), InvalidArgument);
        assert_eq!(kind(array.append(0, RawItems(&bytes[..9]))), InvalidArgument);
        assert_eq!(kind(array.append(1, RawItems(&bytes[..8]))), InvalidArgument);
        assert_eq!(kind(array.insert(0, 7, RawItems(&bytes[..8]))), OutOfBounds);
        assert_eq!(kind(array.delete(1, 3..5)), OutOfBounds);
        assert_eq!(kind(array.resize([6])), InvalidArgument);
        assert_eq!(kind(array.write(&[0..2, 0..2], RawItems(&bytes[..10]))), InvalidArgument);
        assert_eq!(kind(array.write(&[5..7, 0..1], RawItems(&bytes[..4]))), OutOfBounds);
        assert_keeps(place, array, path, &model, "after errors");
    });
    let (_folder, path) = folder();
    let model = numbers(&[2, 0], 1, 1);
    let builder = NDArray::builder().chunk_shape([2, 0]).block_shape([2, 0]);
    let mut array = filled(Place::File.of(builder, &path), &model);
    // Chunks without items, as Python creates them for an empty array, cannot hold any item.
    assert_eq!(kind(array.resize([2, 1])), InvalidArgument);
    assert_keeps(Place::File, array, &path, &model, "without items");
}

#[test]
fn places_of_insertions_and_deletions_are_given_as_in_selections() {
    use blosc2::AxisSelection;
    use blosc2::ErrorKind::{InvalidArgument, OutOfBounds};
    let array = || NDArray::from_slice(&[0i32, 1, 2, 3, 4, 5], [6]).unwrap();
    let after = |change: &dyn Fn(&mut NDArray)| {
        let mut array = array();
        change(&mut array);
        array.read::<Vec<i32>>(..).unwrap()
    };
    for (at, expected) in [(-6, [9, 0, 1, 2, 3, 4, 5]), (-1, [0, 1, 2, 3, 4, 9, 5])] {
        assert_eq!(after(&|array| array.insert(0, at, &[9]).unwrap()), expected);
    }
    assert_eq!(after(&|array| array.insert(0, 6usize, &[9]).unwrap()), [0, 1, 2, 3, 4, 5, 9]);
    assert_eq!(after(&|array| array.delete(0, 2).unwrap()), [0, 1, 3, 4, 5]);
    assert_eq!(after(&|array| array.delete(0, -1i8).unwrap()), [0, 1, 2, 3, 4]);
    assert_eq!(after(&|array| array.delete(0, -2..).unwrap()), [0, 1, 2, 3]);
    assert_eq!(after(&|array| array.delete(0, ..=1u64).unwrap()), [2, 3, 4, 5]);
    assert_eq!(after(&|array| array.delete(0, ..).unwrap()), [0; 0]);
    assert_eq!(after(&|array| array.delete(0, 6..6).unwrap()), [0, 1, 2, 3, 4, 5]);
    let refused = |kind: ErrorKind, result: blosc2::Result<()>, what: &str| {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(what), "{error}");
    };
    refused(OutOfBounds, array().insert(0, -7, &[9]), "axis 0 has 6 items, asked for index -7");
    refused(OutOfBounds, array().delete(0, 4..7), "axis 0 has 6 items, asked for 4..7");
    refused(OutOfBounds, array().delete(0, 6), "axis 0 has 6 items, asked for index 6");
    refused(InvalidArgument, array().delete(0, [1, 2]), "an index or a range");
    refused(InvalidArgument, array().delete(0, (0..6).step_by(2)), "an index or a range");
    refused(InvalidArgument, array().delete(0, AxisSelection::NewAxis), "asked for a new axis");
    let mut empty = NDArray::builder().zeros::<i32>([0]).unwrap();
    refused(InvalidArgument, empty.delete(0, AxisSelection::NewAxis), "asked for a new axis");
    refused(OutOfBounds, empty.delete(0, 0), "axis 0 has 0 items");
    refused(InvalidArgument, array().delete(1, 0), "the array has 1 axes");
}
