//! Fields of arrays of structures, compared with reads of whole items.

use blosc2::elements::FixedBytes;
use blosc2::user_defined::{BoxError, ChunkBlock};
use blosc2::{
    AxisSelection, CParams, DParams, Element, ErrorKind, NDArray, RawItems, Selection, Special,
    Threads,
};

use crate::common::{OTHER_ORDER, native, swapped};

#[derive(Debug, Clone, Copy, PartialEq, Element)]
#[repr(C)]
struct Inner {
    low: u8,
    high: i32,
}

#[derive(Debug, Clone, Copy, PartialEq, Element)]
#[repr(C)]
struct Row {
    flag: bool,
    value: f64,
    inner: Inner,
    grid: [[u16; 3]; 2],
    code: FixedBytes<3>,
}

fn row(number: u64) -> Row {
    let small = number as u16;
    Row {
        flag: number.is_multiple_of(3),
        value: number as f64 / 8.0,
        inner: Inner { low: number as u8, high: -(number as i32) },
        grid: [[small, 1, 2], [3, 4, small + 5]],
        code: FixedBytes::new(&format!("{number:03}")[..3]).unwrap(),
    }
}

/// Selections of two axes of 11 and 13 items, of all kinds.
fn selections() -> Vec<Selection> {
    vec![
        Selection::all(),
        (3..7, 2..9).into(),
        (5, 6).into(),
        (.., 12).into(),
        (AxisSelection::strided(.., -2), 1..=11).into(),
        ([10, 0, 0, 4], (0..13).step_by(5)).into(),
        (4..4, ..).into(),
        (AxisSelection::NewAxis, -1).into(),
    ]
}

/// Checks that each field is what it is in whole items.
fn check(array: &NDArray, what: &str) {
    for selection in selections() {
        let what = format!("{what}, {selection:?}");
        let rows = array.read::<Vec<Row>>(&selection).unwrap();
        macro_rules! same {
            ($field:expr, $type:ty, $get:expr) => {{
                let get: fn(&Row) -> $type = $get;
                let expected: Vec<$type> = rows.iter().map(get).collect();
                let field = $field;
                assert_eq!(field.read::<Vec<$type>>(&selection).unwrap(), expected, "{what}");
                let mut into = expected.clone();
                into.reverse();
                field.read_into(&selection, &mut into).unwrap();
                assert_eq!(into, expected, "{what}");
                let view = array.view().slice(&selection).unwrap();
                let selected = field.slice(&selection).unwrap();
                assert_eq!(selected.shape(), view.shape(), "{what}");
                let copy = NDArray::builder().copy(selected.clone()).unwrap();
                assert_eq!(copy.read::<Vec<$type>>(..).unwrap(), expected, "{what}, copied");
                let mask: Vec<bool> = (0..expected.len()).map(|at| at % 3 == 0).collect();
                let third: Vec<$type> = expected.iter().copied().step_by(3).collect();
                assert_eq!(
                    selected.read::<Vec<$type>>(Selection::mask(&mask)).unwrap(),
                    third,
                    "{what}, masked"
                );
                let mut turned = selected.clone().transpose();
                if turned.ndim() > 0 {
                    let twice = [turned.clone(), turned.clone()];
                    let mut joined = NDArray::builder().concatenate(twice, 0).unwrap();
                    joined.append(0, turned.clone()).unwrap();
                    turned = turned.expand_dims(0).unwrap();
                    let once = turned.read::<Vec<$type>>(..).unwrap();
                    assert_eq!(
                        joined.read::<Vec<$type>>(..).unwrap(),
                        once.repeat(3),
                        "{what}, joined"
                    );
                }
            }};
        }
        same!(array.field("flag").unwrap(), bool, |row| row.flag);
        same!(array.field("value").unwrap(), f64, |row| row.value);
        same!(array.field("inner").unwrap(), Inner, |row| row.inner);
        same!(array.field("inner").unwrap().field("high").unwrap(), i32, |row| row.inner.high);
        same!(array.field("grid").unwrap(), [[u16; 3]; 2], |row| row.grid);
        same!(array.field("code").unwrap(), FixedBytes<3>, |row| row.code);
        let bytes = array.field("code").unwrap().read::<RawItems>(&selection).unwrap().0;
        assert_eq!(bytes, rows.iter().flat_map(|row| row.code.0).collect::<Vec<u8>>(), "{what}");
    }
}

/// Checks that writing each field changes it, and nothing else.
fn check_writing(array: &mut NDArray, what: &str) {
    let numbers = NDArray::from_slice(&(0..143u64).collect::<Vec<_>>(), [11, 13]).unwrap();
    for selection in selections() {
        let what = format!("{what}, {selection:?}");
        let selected = numbers.read::<Vec<u64>>(&selection).unwrap();
        let mut rows = array.read::<Vec<Row>>(..).unwrap();
        macro_rules! written {
            ($fields:expr, $type:ty, $set:expr, $value:expr) => {{
                let (set, value): (fn(&mut Row, $type), fn(u64) -> $type) = ($set, $value);
                let items: Vec<$type> = (900u64..).take(selected.len()).map(value).collect();
                for (&at, &item) in selected.iter().zip(&items) {
                    set(&mut rows[at as usize], item);
                }
                let field = |selection: &Selection| {
                    $fields.iter().fold(selection.clone(), |all, name| all.field(name))
                };
                array.write(field(&selection), &items).unwrap();
                assert_eq!(array.read::<Vec<Row>>(..).unwrap(), rows, "{what}");
                selected.iter().for_each(|&at| set(&mut rows[at as usize], value(5)));
                array.write(field(&selection), value(5)).unwrap();
                assert_eq!(array.read::<Vec<Row>>(..).unwrap(), rows, "{what}, filled");
            }};
        }
        written!(["flag"], bool, |row, it| row.flag = it, |n| n % 2 == 0);
        written!(["value"], f64, |row, it| row.value = it, |n| n as f64);
        written!(["inner", "high"], i32, |row, it| row.inner.high = it, |n| n as i32);
        written!(["grid"], [[u16; 3]; 2], |row, it| row.grid = it, |n| [
            [n as u16; 3],
            [1, 2, n as u16]
        ]);
    }
}

#[test]
fn writing_a_field_leaves_the_others() {
    let rows: Vec<Row> = (0..143).map(row).collect();
    for (chunks, blocks) in
        [([4, 5], [2, 3]), ([11, 13], [11, 13]), ([3, 1], [3, 1]), ([1, 13], [1, 4])]
    {
        let builder = NDArray::builder().chunk_shape(chunks).block_shape(blocks);
        let mut array = builder.from_slice(&rows, [11, 13]).unwrap();
        check_writing(&mut array, &format!("{chunks:?}, {blocks:?}"));
        array.set_dparams(array.info().dparams.cache(1 << 20));
        check_writing(&mut array, "cached");
        array.set_cparams(CParams::new().threads(Threads::new(3))).unwrap();
        check_writing(&mut array, "on threads");
    }
}

#[test]
fn fields_in_another_byte_order_are_written_in_it() {
    let dtype = format!("[('a', '{OTHER_ORDER}u2'), ('b', '{OTHER_ORDER}f8')]");
    let seven = swapped(7u16.to_ne_bytes());
    let item: Vec<u8> = [&seven[..], &swapped(0.5f64.to_ne_bytes())].concat();
    let mut array =
        NDArray::builder().dtype(&dtype, 10).from_slice(RawItems(&item.repeat(6)), [6]).unwrap();
    let refused = array.write(Selection::from(1..3).field("b"), &[1.5f64, 2.5]);
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::TypeMismatch);
    array.set_dparams(array.info().dparams.convert_byte_order(true));
    array.write(Selection::from(1..3).field("b"), &[1.5f64, 2.5]).unwrap();
    array.write(Selection::from(-1).field("a"), 9u16).unwrap();
    assert_eq!(
        array.field("b").unwrap().read::<Vec<f64>>(..).unwrap(),
        [0.5, 1.5, 2.5, 0.5, 0.5, 0.5]
    );
    assert_eq!(array.field("a").unwrap().read::<Vec<u16>>(..).unwrap(), [7, 7, 7, 7, 7, 9]);
    let second = [&seven[..], &swapped(1.5f64.to_ne_bytes())].concat();
    assert_eq!(array.read::<RawItems>(1..2).unwrap().0, second);
}

#[test]
fn fields_that_cannot_be_written() {
    let rows: Vec<Row> = (0..6).map(row).collect();
    let mut array = NDArray::builder().chunk_shape([2]).from_slice(&rows, [6]).unwrap();
    let kind = |result: blosc2::Result<()>| result.unwrap_err().kind();
    let field = Selection::all().field("value");
    assert_eq!(array.field("value").unwrap().dtype().unwrap().to_string(), native("<f8"));
    assert_eq!(kind(array.write(&field, &[1.0f64; 5])), ErrorKind::InvalidArgument);
    assert_eq!(kind(array.write(&field, &[1.0f32; 6])), ErrorKind::TypeMismatch);
    let outside = Selection::from(3..7).field("value");
    assert_eq!(kind(array.write(outside, &[1.0f64; 4])), ErrorKind::OutOfBounds);
    assert_eq!(kind(array.write(&field, 1i64)), ErrorKind::TypeMismatch);
    let missing = Selection::all().field("missing");
    assert_eq!(kind(array.write(missing, 1.0f64)), ErrorKind::InvalidArgument);
    // The output of a postfilter cannot be compressed again.
    array.set_dparams(array.info().dparams.postfilter(
        |block: &mut ChunkBlock<'_>| -> Result<(), BoxError> {
            let input = block.input();
            block.output().copy_from_slice(input);
            Ok(())
        },
    ));
    let whole = array.write(Selection::all().field("value"), &[1.0f64; 6]);
    assert_eq!(kind(whole), ErrorKind::Unsupported);
    array.set_dparams(array.info().dparams);
    assert_eq!(array.read::<Vec<Row>>(..).unwrap(), rows);
}

#[test]
fn fields_are_those_of_whole_items() {
    let rows: Vec<Row> = (0..143).map(row).collect();
    // Also blocks of one column: then a step along the first axis may be as long as an item.
    for (chunks, blocks) in
        [([4, 5], [2, 3]), ([11, 13], [11, 13]), ([3, 1], [3, 1]), ([1, 13], [1, 4])]
    {
        let builder = NDArray::builder().chunk_shape(chunks).block_shape(blocks);
        let mut array = builder.from_slice(&rows, [11, 13]).unwrap();
        check(&array, &format!("{chunks:?}, {blocks:?}"));
        array.set_dparams(array.info().dparams.cache(1 << 20));
        check(&array, "cached");
        check(&array, "from the cache");
        array.set_dparams(array.info().dparams.cache(0));
        array.set_dparams(DParams::new().threads(Threads::new(3)));
        check(&array, "on threads");
        array.set_dparams(array.info().dparams.postfilter(
            |block: &mut ChunkBlock<'_>| -> Result<(), BoxError> {
                let input = block.input();
                block.output().copy_from_slice(input);
                Ok(())
            },
        ));
        check(&array, "through a postfilter");
    }
    for array in [
        NDArray::builder().full(row(77), [11, 13]),
        NDArray::builder().zeros::<Row>(&[11, 13]),
        NDArray::builder()
            .dtype(&Row::dtype().to_string(), size_of::<Row>())
            .special(Special::Uninit, [11, 13]),
    ] {
        check(&array.unwrap(), "special chunks");
    }
}

/// A column whose items in memory are as far apart as the items of the array, and look contiguous.
#[test]
fn rows_as_long_as_an_item_are_not_taken_for_one_piece() {
    // Items of 8 bytes, two fields of 4; two columns.
    let items: Vec<[u32; 2]> = (0..200).map(|number| [number, !number]).collect();
    let bytes: Vec<u8> = items.iter().flatten().flat_map(|word| word.to_ne_bytes()).collect();
    let dtype = native("[('a', '<u4'), ('b', '<u4')]");
    let builder = NDArray::builder().chunk_shape([100, 1]).block_shape([10, 1]);
    let array = builder.dtype(&dtype, 8).from_slice(RawItems(&bytes), [100, 2]).unwrap();
    let expected: Vec<u32> = items.iter().map(|item| item[1]).collect();
    assert_eq!(array.field("b").unwrap().read::<Vec<u32>>(..).unwrap(), expected);
}

#[test]
fn fields_in_another_byte_order_are_converted() {
    let dtype = format!("[('a', 'u1'), ('b', '{OTHER_ORDER}i4')]");
    let bytes: Vec<u8> =
        (0..50i32).flat_map(|number| [&[7][..], &swapped(number.to_ne_bytes())].concat()).collect();
    let mut array = NDArray::builder().dtype(&dtype, 5).from_slice(RawItems(&bytes), [50]).unwrap();
    assert_eq!(array.field("a").unwrap().read::<Vec<u8>>(..3).unwrap(), [7, 7, 7]);
    let error = array.field("b").unwrap().read::<Vec<i32>>(..).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TypeMismatch);
    assert!(error.to_string().contains("DParams::convert_byte_order"), "{error}");
    array.set_dparams(array.info().dparams.convert_byte_order(true));
    assert_eq!(
        array.field("b").unwrap().read::<Vec<i32>>(..).unwrap(),
        (0..50).collect::<Vec<_>>()
    );
}

#[test]
fn what_is_no_field_is_refused() {
    let array = NDArray::from_slice(&[row(1)], [1]).unwrap();
    let error = array.field("speed").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    let message = error.to_string();
    assert!(
        message.contains("`speed`; the fields are flag, value, inner, grid, code"),
        "{message}"
    );
    let value = array.field("value").unwrap();
    assert_eq!(value.field("x").unwrap_err().kind(), ErrorKind::TypeMismatch);
    assert_eq!(value.read::<Vec<f32>>(..).unwrap_err().kind(), ErrorKind::TypeMismatch);
    assert!(value.read::<Vec<f64>>(1..).unwrap().is_empty());
    assert_eq!(value.read::<Vec<f64>>(2..).unwrap_err().kind(), ErrorKind::OutOfBounds);
    assert_eq!(value.read_into(.., &mut [0f64; 2]).unwrap_err().kind(), ErrorKind::InvalidArgument);
    let numbers = NDArray::from_slice(&[1u8, 2], [2]).unwrap();
    assert_eq!(numbers.field("a").unwrap_err().kind(), ErrorKind::TypeMismatch);
}
