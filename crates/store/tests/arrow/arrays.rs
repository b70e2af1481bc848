//! Arrays of all dtypes, compared with typed reads, and converted to Arrow and back.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, TimestampMillisecondType, UInt16Type};
use arrow_array::{
    Array, ArrayRef, BinaryArray, Date32Array, DictionaryArray, Int32Array, Int64Array, ListArray,
    RecordBatch, StringArray, TimestampMillisecondArray,
};
use arrow_schema::{DataType, Field};
use blosc2::{Dtype, ErrorKind, NDArray, RawItems};
use blosc2_store::arrow::{field, from_arrow, from_record_batch, to_arrow, to_record_batch};
use blosc2_testing::{Rng, native};

/// Dtypes that Arrow has a type for. The byte order of the second one is not native on most machines.
const DTYPES: [&str; 28] = [
    "|b1",
    ">i2",
    "|i1",
    "<i2",
    "<i4",
    ">i4",
    "<i8",
    ">i8",
    "|u1",
    "<u2",
    "<u4",
    "<u8",
    ">u8",
    "<f2",
    ">f2",
    "<f4",
    ">f4",
    "<f8",
    ">f8",
    "<c8",
    ">c16",
    "<M8[ns]",
    ">M8[s]",
    "<m8[us]",
    "|V5",
    "[('a', '>i4'), ('b', '<f8', (2, 3)), ('c', [('d', '?'), ('e', '<c8')])]",
    "{'names': ['x', 'y'], 'formats': ['u1', '<i8'], 'offsets': [0, 8], 'itemsize': 16}",
    "('<f4', (2, 2))",
];

/// Bytes of items: random, but bytes of booleans are 0 or 1, and gaps between fields are 0.
fn random(dtype: &Dtype, rng: &mut Rng) -> Vec<u8> {
    if let Some((item, shape)) = dtype.subarray() {
        return (0..shape.iter().product()).flat_map(|_| random(item, rng)).collect();
    }
    if let Some(fields) = dtype.fields() {
        let mut bytes = vec![0; dtype.size()];
        for field in fields {
            bytes[field.offset()..][..field.dtype().size()]
                .copy_from_slice(&random(field.dtype(), rng));
        }
        return bytes;
    }
    match dtype.kind() {
        Some(blosc2::dtype::Kind::Bool) => vec![rng.below(2) as u8],
        _ => rng.bytes(dtype.size()),
    }
}

/// The same items in native byte order, and without gaps between fields.
fn packed(dtype: &Dtype, bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    dtype.swap_plan().unwrap().apply(&mut bytes);
    if dtype.is_native() {
        // The plan is the one for the other byte order.
        dtype.swap_plan().unwrap().apply(&mut bytes);
    }
    match dtype.fields() {
        None => bytes,
        Some(fields) => bytes
            .chunks_exact(dtype.size())
            .flat_map(|item| {
                fields.iter().flat_map(|field| &item[field.offset()..][..field.dtype().size()])
            })
            .copied()
            .collect(),
    }
}

#[test]
fn arrays_of_all_dtypes_go_to_arrow_and_back() {
    let mut rng = Rng(0x0a44);
    for text in DTYPES {
        let dtype = Dtype::parse(text).unwrap();
        for shape in [&[0][..], &[1], &[7], &[5, 3], &[0, 4], &[4, 2, 3]] {
            let len = shape.iter().product::<u64>() as usize;
            let bytes: Vec<u8> = (0..len).flat_map(|_| random(&dtype, &mut rng)).collect();
            let builder = NDArray::builder()
                .chunk_shape(vec![3; shape.len()])
                .block_shape(vec![2; shape.len()]);
            let array =
                builder.dtype(text, dtype.size()).from_slice(RawItems(&bytes), shape).unwrap();
            let field = field("name", &array).unwrap();
            let items = to_arrow(&array, ..).unwrap();
            assert_eq!(items.len() as u64, shape[0], "{text} {shape:?}");
            assert_eq!(items.data_type(), field.data_type());
            items.to_data().validate_full().unwrap();
            let back = from_arrow(NDArray::builder(), &field, &items).unwrap();
            let expected_shape: Vec<u64> = match dtype.subarray() {
                Some((_, inner)) => [shape, inner].concat(),
                None => shape.to_vec(),
            };
            assert_eq!(back.shape(), expected_shape, "{text}");
            assert_eq!(
                back.read::<RawItems>(..).unwrap().0,
                packed(&dtype, &bytes),
                "{text} {shape:?}"
            );
            for _ in 0..5 {
                let [a, b] = [rng.below(shape[0] + 1), rng.below(shape[0] + 1)];
                let rows = a.min(b)..a.max(b);
                let part = to_arrow(&array, rows.clone()).unwrap();
                assert_eq!(&part, &items.slice(rows.start as usize, part.len()), "{text} {rows:?}");
                // The items of a slice are those from its start.
                let back = from_arrow(
                    NDArray::builder(),
                    &field,
                    &items.slice(rows.start as usize, part.len()),
                );
                let direct = from_arrow(NDArray::builder(), &field, &part).unwrap();
                let [back, direct] =
                    [back.unwrap(), direct].map(|array| array.read::<RawItems>(..).unwrap().0);
                assert_eq!(back, direct, "{text} {rows:?}");
            }
        }
    }
}

#[test]
fn items_are_those_of_typed_reads() {
    let numbers: Vec<f64> = (0..1000).map(|number| f64::from(number) / 7.0).collect();
    let array = NDArray::builder().chunk_shape([64]).from_slice(&numbers, [1000]).unwrap();
    let rows = 10..990;
    let items = to_arrow(&array, rows.clone()).unwrap();
    assert_eq!(
        items.as_primitive::<Float64Type>().values()[..],
        array.read::<Vec<f64>>([rows]).unwrap()
    );

    let numbers: Vec<u16> = (0..60).collect();
    let array = NDArray::from_slice(&numbers, &[5, 3, 4]).unwrap();
    let items = to_arrow(&array, 1..=2).unwrap();
    let lists = items.as_fixed_size_list();
    assert_eq!(lists.value(1).as_primitive::<UInt16Type>().values()[..], numbers[24..36]);
    assert_eq!(field("f", &array).unwrap().extension_type_metadata(), Some(r#"{"shape":[3,4]}"#));
    let big: Vec<u8> = (1..=3i32).flat_map(i32::to_be_bytes).collect();
    let array = NDArray::builder().dtype(">i4", 4).from_slice(RawItems(&big), &[3]).unwrap();
    assert_eq!(to_arrow(&array, ..).unwrap().as_primitive::<Int32Type>().values()[..], [1, 2, 3]);
}

#[test]
fn strings_dates_and_structures_have_their_types() {
    let codes: Vec<u8> = ["añ", "", "xyz"]
        .iter()
        .flat_map(|text| {
            let mut item: Vec<u8> =
                text.chars().flat_map(|char| (char as u32).to_le_bytes()).collect();
            item.resize(16, 0);
            item
        })
        .collect();
    let array = NDArray::builder().dtype("<U4", 16).from_slice(RawItems(&codes), &[3]).unwrap();
    let texts = to_arrow(&array, ..).unwrap();
    let expected: ArrayRef = Arc::new(StringArray::from(vec!["añ", "", "xyz"]));
    assert_eq!(&texts, &expected);
    let back = from_arrow(NDArray::builder(), &field("t", &array).unwrap(), &texts).unwrap();
    assert_eq!(back.dtype_str(), Some(&*native("<U3")));
    assert_eq!(&to_arrow(&back, ..).unwrap(), &expected);

    let array =
        NDArray::builder().dtype("|S3", 3).from_slice(RawItems(b"ab\0c\0\0"), &[2]).unwrap();
    let parts = to_arrow(&array, ..).unwrap();
    let expected: ArrayRef = Arc::new(BinaryArray::from_vec(vec![b"ab", b"c"]));
    assert_eq!(&parts, &expected);
    let back = from_arrow(NDArray::builder(), &field("t", &array).unwrap(), &parts).unwrap();
    assert_eq!(back.dtype_str(), Some("|S2"));

    // NaT is null.
    let days: Vec<u8> = [1i64, i64::MIN, -3].into_iter().flat_map(i64::to_le_bytes).collect();
    for (dtype, expected) in [
        ("<M8[D]", Arc::new(Date32Array::from(vec![Some(1), None, Some(-3)])) as ArrayRef),
        ("<M8[ms]", Arc::new(TimestampMillisecondArray::from(vec![Some(1), None, Some(-3)]))),
    ] {
        let array = NDArray::builder().dtype(dtype, 8).from_slice(RawItems(&days), &[3]).unwrap();
        let moments = to_arrow(&array, ..).unwrap();
        assert_eq!(&moments, &expected);
        // DataFusion also computes with the items of null rows, and the smallest integer overflows.
        if let Some(times) = moments.as_primitive_opt::<TimestampMillisecondType>() {
            assert_eq!(times.values()[1], 0);
        }
        let field = field("t", &array).unwrap();
        assert!(field.is_nullable());
        let back = from_arrow(NDArray::builder(), &field, &moments).unwrap();
        assert_eq!(back.read::<RawItems>(..).unwrap().0.len(), 24);
        assert_eq!(&to_arrow(&back, ..).unwrap(), &expected);
    }

    let batch = RecordBatch::try_from_iter([
        ("id", Arc::new(Int64Array::from(vec![5, 6])) as ArrayRef),
        ("name", Arc::new(StringArray::from(vec!["é", "two"]))),
    ])
    .unwrap();
    let array = from_record_batch(NDArray::builder(), &batch).unwrap();
    assert_eq!(array.dtype().unwrap().fields().unwrap()[1].dtype().size(), 12);
    let back = to_record_batch(&array, ..).unwrap();
    assert_eq!(back.columns(), batch.columns());
    assert_eq!(to_record_batch(&array, 1..).unwrap(), back.slice(1, 1));
}

#[test]
fn what_has_no_equivalent_is_refused() {
    let kind = |result: blosc2::Result<NDArray>, text: &str| {
        let error = result.unwrap_err();
        assert!(error.to_string().contains(text), "{error}");
        error.kind()
    };
    let made = |array: ArrayRef| {
        let field = Field::new("name", array.data_type().clone(), true);
        from_arrow(NDArray::builder(), &field, &array)
    };
    let nulls = Int32Array::from(vec![Some(1), None]);
    assert_eq!(kind(made(Arc::new(nulls.clone())), "1 nulls"), ErrorKind::InvalidArgument);
    let other = Field::new("name", DataType::Int64, true);
    let unlike = from_arrow(NDArray::builder(), &other, &nulls);
    assert_eq!(kind(unlike, "Int32"), ErrorKind::InvalidArgument);
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>([Some([Some(1)])]);
    let words: DictionaryArray<Int32Type> = ["a"].into_iter().collect();
    let zoned = TimestampMillisecondArray::from(vec![1]).with_timezone("UTC");
    for array in [Arc::new(lists) as ArrayRef, Arc::new(words), Arc::new(zoned)] {
        assert_eq!(kind(made(array), "has no dtype"), ErrorKind::InvalidArgument);
    }
    let zero: ArrayRef = Arc::new(StringArray::from(vec!["a\0"]));
    assert_eq!(kind(made(zero), "ends with NUL"), ErrorKind::InvalidArgument);
    let tensor = |metadata: &str| {
        let item = Arc::new(Field::new("item", DataType::Int32, false));
        let values = Arc::new(Int32Array::from(vec![1, 2, 3, 4, 5, 6]));
        let lists = arrow_array::FixedSizeListArray::new(item, 6, values, None);
        let field = Field::new("name", lists.data_type().clone(), false).with_metadata(
            [
                ("ARROW:extension:name", "arrow.fixed_shape_tensor"),
                ("ARROW:extension:metadata", metadata),
            ]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into(),
        );
        from_arrow(NDArray::builder(), &field, &lists)
    };
    assert_eq!(tensor(r#"{"shape":[2,3],"permutation":[0,1]}"#).unwrap().shape(), [1, 2, 3]);
    for (metadata, text) in [
        (r#"{"shape":[2,4]}"#, "expected one of 6 items"),
        (r#"{"shape":"x"}"#, "invalid shape"),
        ("{", "invalid shape"),
        (r#"{"shape":[2,3],"permutation":[1,0]}"#, "C order"),
        (r#"{"shape":[18446744073709551615,3]}"#, "expected one of 6 items"),
    ] {
        assert_eq!(kind(tensor(metadata), text), ErrorKind::InvalidArgument);
    }

    let array = |dtype: &str, size: usize| {
        NDArray::builder()
            .dtype(dtype, size)
            .from_slice(RawItems(&vec![0; 2 * size]), &[2])
            .unwrap()
    };
    for (dtype, size) in [("<f16", 16), ("<M8[25s]", 8), ("<M8[h]", 8), ("<c32", 32)] {
        let error = to_arrow(&array(dtype, size), ..).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        assert!(error.to_string().contains(dtype), "{error}");
    }
    let scalar =
        NDArray::builder().dtype("<i4", 4).from_slice(RawItems(&[0; 4]), [0u64; 0]).unwrap();
    assert_eq!(to_arrow(&scalar, ..).unwrap_err().kind(), ErrorKind::InvalidArgument);
    let array = array("<i4", 4);
    assert_eq!(to_arrow(&array, 1..4).unwrap_err().kind(), ErrorKind::OutOfBounds);
    assert_eq!(to_record_batch(&array, ..).unwrap_err().kind(), ErrorKind::TypeMismatch);
    let bytes = [0x11, 0, 0, 0xff].repeat(2);
    let array = NDArray::builder().dtype("<U1", 4).from_slice(RawItems(&bytes), &[2]).unwrap();
    assert_eq!(to_arrow(&array, ..).unwrap_err().kind(), ErrorKind::InvalidData);
    assert_eq!(field("t", &array).unwrap().data_type(), &DataType::Utf8);
}
