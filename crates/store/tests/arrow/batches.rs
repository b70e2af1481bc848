//! Batches that are serialized with Arrow.

use std::sync::Arc;

use arrow_array::builder::{
    FixedSizeListBuilder, Int32Builder, ListBuilder, MapBuilder, StringBuilder,
};
use arrow_array::types::Int8Type;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Date32Array, Decimal128Array, DictionaryArray, Float32Array,
    Int32Array, Int64Array, LargeBinaryArray, ListArray, NullArray, RecordBatchReader, StringArray,
    StringViewArray, StructArray, TimestampNanosecondArray,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field};
use blosc2::{ErrorKind, OpenOptions, SChunk, Value};
use blosc2_store::BatchArray;

/// Arrays of all kinds of types, each with nulls, and the values of their items; `None` if they have none.
pub(crate) fn arrays() -> Vec<(ArrayRef, Option<Vec<Value>>)> {
    let none = Value::None;
    let list = |items: &[i64]| Value::List(items.iter().map(|&item| item.into()).collect());
    let mut lists = ListBuilder::new(Int32Builder::new());
    lists.append_value([Some(1), Some(2)]);
    lists.append_null();
    lists.append_value::<[Option<i32>; 0], i32>([]);
    let mut pairs = FixedSizeListBuilder::new(Int32Builder::new(), 2);
    pairs.values().append_slice(&[1, 2, 0, 0, 3, 4]);
    pairs.append(true);
    pairs.append(false);
    pairs.append(true);
    let mut maps = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    maps.keys().append_value("k");
    maps.values().append_value(1);
    maps.append(true).unwrap();
    maps.append(false).unwrap();
    maps.append(true).unwrap();
    let words: DictionaryArray<Int8Type> = [Some("a"), None, Some("a")].into_iter().collect();
    let fields: Vec<(Arc<Field>, ArrayRef)> = vec![
        (
            Arc::new(Field::new("x", DataType::Int64, true)),
            Arc::new(Int64Array::from(vec![Some(1), None, Some(3)])),
        ),
        (
            Arc::new(Field::new("name", DataType::Utf8, false)),
            Arc::new(StringArray::from(vec!["a", "", "c"])),
        ),
    ];
    let point = |x: Value, name: &str| Value::from([("x", x), ("name", name.into())]);
    let decimals = Decimal128Array::from(vec![1, 2, 3]).with_precision_and_scale(9, 2).unwrap();
    let pair = Value::Tuple(vec!["k".into(), 1.into()]);
    vec![
        (
            Arc::new(Int32Array::from(vec![Some(-1), None, Some(i32::MAX)])),
            Some(vec![(-1).into(), none.clone(), i32::MAX.into()]),
        ),
        (
            Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)])),
            Some(vec![true.into(), none.clone(), false.into()]),
        ),
        (
            Arc::new(Float32Array::from(vec![Some(1.5), None, Some(-0.0)])),
            Some(vec![1.5.into(), none.clone(), (-0.0).into()]),
        ),
        (
            Arc::new(StringArray::from(vec![Some("é"), None, Some("")])),
            Some(vec!["é".into(), none.clone(), "".into()]),
        ),
        (
            Arc::new(StringViewArray::from(vec![
                Some("a text of more than 12 bytes"),
                None,
                Some("b"),
            ])),
            Some(vec!["a text of more than 12 bytes".into(), none.clone(), "b".into()]),
        ),
        (
            Arc::new(LargeBinaryArray::from(vec![Some(&b"\0\xff"[..]), None, Some(b"")])),
            Some(vec![vec![0, 255].into(), none.clone(), Vec::<u8>::new().into()]),
        ),
        (
            Arc::new(TimestampNanosecondArray::from(vec![Some(5), None, Some(-5)])),
            Some(vec![5.into(), none.clone(), (-5).into()]),
        ),
        (Arc::new(Date32Array::from(vec![1, 2, 3])), Some(vec![1.into(), 2.into(), 3.into()])),
        (Arc::new(lists.finish()), Some(vec![list(&[1, 2]), none.clone(), list(&[])])),
        (Arc::new(pairs.finish()), Some(vec![list(&[1, 2]), none.clone(), list(&[3, 4])])),
        (
            Arc::new(StructArray::from(fields)),
            Some(vec![point(1.into(), "a"), point(none.clone(), ""), point(3.into(), "c")]),
        ),
        (
            Arc::new(maps.finish()),
            Some(vec![Value::List(vec![pair]), none.clone(), Value::List(vec![])]),
        ),
        (Arc::new(words), Some(vec!["a".into(), none.clone(), "a".into()])),
        (Arc::new(NullArray::new(3)), Some(vec![none.clone(), none.clone(), none])),
        (Arc::new(decimals), None),
    ]
}

fn new(items_per_block: Option<u64>) -> BatchArray {
    BatchArray::new_arrow_in(
        OpenOptions::new().create_new(true).open(Vec::new()).unwrap(),
        items_per_block,
    )
    .unwrap()
}

#[test]
fn arrays_of_all_types_are_read_as_they_were_written() {
    for (array, values) in arrays() {
        for items_per_block in [None, Some(1), Some(2), Some(100)] {
            let mut batches = new(items_per_block);
            assert_eq!(batches.arrow_type(), None);
            batches.append_arrow(&array).unwrap();
            batches.append_arrow(&array.slice(1, 2)).unwrap();
            let bytes = batches.into_schunk().into_cframe().unwrap();
            let batches = BatchArray::from_schunk(OpenOptions::new().open(bytes).unwrap()).unwrap();
            assert_eq!(batches.arrow_type(), Some(array.data_type()));
            assert_eq!((batches.len(), batches.nitems().unwrap()), (2, 5));
            assert_eq!(batches.items_per_block(), Some(items_per_block.unwrap_or(3)));
            assert_eq!(&batches.arrow_batch(0).unwrap(), &array);
            assert_eq!(&batches.arrow_batch(1).unwrap(), &array.slice(1, 2));
            let reader = batches.arrow_batches().unwrap();
            assert_eq!(reader.schema().field(0).data_type(), array.data_type());
            assert_eq!(reader.map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 5);
            match &values {
                Some(values) => {
                    assert_eq!(&batches.batch(0).unwrap(), values, "{}", array.data_type());
                    assert_eq!(batches.item(4).unwrap(), values[2]);
                    assert_eq!(batches.items().count(), 5);
                }
                None => assert_eq!(batches.batch(0).unwrap_err().kind(), ErrorKind::Unsupported),
            }
        }
    }
}

#[test]
fn values_are_converted_to_the_type_of_the_first_batch() {
    let first: ArrayRef = Arc::new(Int32Array::from(vec![1]));
    let mut batches = new(Some(2));
    let error = batches.append(&[1]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TypeMismatch);
    assert!(error.to_string().contains("the first batch"), "{error}");
    batches.append_arrow(&first).unwrap();
    batches.append(&[Some(2), None, Some(4)]).unwrap();
    batches.set(0, &[7]).unwrap();
    batches.insert(0, &[5, 6]).unwrap();
    let items: Vec<Value> = batches.items().map(Result::unwrap).collect();
    assert_eq!(items, [5.into(), 6.into(), 7.into(), 2.into(), Value::None, 4.into()]);
    for wrong in [Value::from("text"), (1i64 << 40).into(), 1.5.into()] {
        let error = batches.append(&[wrong]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TypeMismatch, "{error}");
    }
    let other: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
    assert_eq!(batches.append_arrow(&other).unwrap_err().kind(), ErrorKind::TypeMismatch);
    assert_eq!(
        batches.append_arrow(&first.slice(0, 0)).unwrap_err().kind(),
        ErrorKind::InvalidArgument
    );
    assert_eq!(batches.arrow_batch(3).unwrap_err().kind(), ErrorKind::OutOfBounds);
    assert_eq!(batches.nitems().unwrap(), 6);

    let mut batches = BatchArray::in_memory().unwrap();
    assert_eq!(batches.append_arrow(&first).unwrap_err().kind(), ErrorKind::TypeMismatch);
    batches.append(&[1]).unwrap();
    assert_eq!(batches.arrow_batch(0).unwrap_err().kind(), ErrorKind::TypeMismatch);
    assert!(batches.arrow_batches().is_err());
}

#[test]
fn lengths_are_counted_if_they_are_missing() {
    let mut batches = new(Some(2));
    for len in [3, 1, 4] {
        let items: Int32Array = (0..len).collect();
        batches.append_arrow(&items).unwrap();
    }
    batches.vlmeta_mut().remove("_batch_array_metadata").unwrap();
    let bytes = batches.into_schunk().into_cframe().unwrap();
    let batches = BatchArray::from_schunk(OpenOptions::new().open(bytes).unwrap()).unwrap();
    assert_eq!(batches.nitems().unwrap(), 8);
    assert_eq!(batches.item(7).unwrap(), 3.into());
}

/// Readers limit the number of items without bytes in a block, and the nesting of types.
#[test]
fn what_readers_refuse_is_not_written() {
    const NULLS: usize = 3 << 20;
    let nulls: ArrayRef = Arc::new(NullArray::new(NULLS));
    let open = |array: BatchArray| {
        BatchArray::from_schunk(SChunk::open(array.into_schunk().to_cframe().unwrap()).unwrap())
    };
    let mut array = new(None);
    array.append_arrow(&nulls).unwrap();
    let array = open(array).unwrap();
    assert_eq!(array.items_per_block(), Some(1 << 20));
    assert_eq!(array.arrow_batch(0).unwrap().len(), NULLS);
    assert_eq!(array.item(NULLS as u64 - 1).unwrap(), Value::None);
    let error = new(Some(NULLS as u64)).append_arrow(&nulls).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");

    let mut is_refused = false;
    for levels in 1..80 {
        let nested =
            (0..levels).fold(Arc::new(Int32Array::from(vec![5])) as ArrayRef, |items, _| {
                let field = Arc::new(Field::new_list_field(items.data_type().clone(), true));
                Arc::new(ListArray::new(field, OffsetBuffer::from_lengths([1]), items, None))
            });
        let mut array = new(None);
        match array.append_arrow(&nested) {
            Ok(()) => {
                assert!(!is_refused, "{levels}");
                assert_eq!(
                    open(array).unwrap().arrow_batch(0).unwrap().to_data(),
                    nested.to_data()
                );
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
                is_refused = true;
            }
        }
    }
    assert!(is_refused);
}
