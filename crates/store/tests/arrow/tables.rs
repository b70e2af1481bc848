//! Tables from record batches, and back.

use std::sync::Arc;

use arrow_array::types::{Int32Type, UInt8Type};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, DictionaryArray, FixedSizeBinaryArray,
    Int32Array, Int64Array, LargeStringArray, NullArray, RecordBatch, RecordBatchReader,
    StringArray, StringViewArray, TimestampSecondArray,
};
use arrow_schema::{ArrowError, DataType, Field, Schema as ArrowSchema, TimeUnit as ArrowUnit};
use arrow_select::concat::concat_batches;
use blosc2::{Dtype, ErrorKind, NDArray, Value};
use blosc2_store::arrow::ReadOptions;
use blosc2_store::{CTable, Data, ItemKind, ItemType, Schema, TimeUnit};
use blosc2_testing::{Rng, repeats};

use crate::common::assert_same;

/// Kinds of columns that have an Arrow type.
fn kinds() -> Vec<ItemKind> {
    let field = |name: &str, item: ItemType| (name.to_owned(), item);
    let point = vec![
        field("x", ItemType::from(ItemKind::Float32)),
        field("names", ItemType::from(ItemKind::List(ItemKind::VlString.into())).nullable()),
    ];
    let array = |shape: &[u64], dtype: &str| ItemKind::NDArray {
        shape: shape.to_vec(),
        dtype: Dtype::parse(dtype).unwrap(),
    };
    vec![
        ItemKind::Int8,
        ItemKind::Int16,
        ItemKind::Int32,
        ItemKind::Int64,
        ItemKind::UInt8,
        ItemKind::UInt16,
        ItemKind::UInt32,
        ItemKind::UInt64,
        ItemKind::Float32,
        ItemKind::Float64,
        ItemKind::Complex64,
        ItemKind::Complex128,
        ItemKind::Bool,
        ItemKind::Timestamp { unit: TimeUnit::Milliseconds, timezone: Some("UTC".to_owned()) },
        ItemKind::Timestamp { unit: TimeUnit::Nanoseconds, timezone: None },
        ItemKind::String { max_length: 5 },
        ItemKind::Bytes { max_length: 5 },
        ItemKind::Utf8,
        ItemKind::VlString,
        ItemKind::VlBytes,
        ItemKind::Dictionary { ordered: false },
        ItemKind::Dictionary { ordered: true },
        ItemKind::List(ItemType::from(ItemKind::Int16).nullable().into()),
        ItemKind::List(ItemKind::Complex64.into()),
        ItemKind::List(ItemKind::List(ItemKind::Utf8.into()).into()),
        ItemKind::Struct(point),
        array(&[2, 3], "<i4"),
        array(&[3], "<f2"),
        array(&[2], "|b1"),
        array(&[1, 2], "<c8"),
    ]
}

/// A random cell of a column of this kind, or null.
fn cell(kind: &ItemKind, nullable: bool, rng: &mut Rng) -> Value {
    if nullable && rng.below(4) == 0 {
        return Value::None;
    }
    let text = |rng: &mut Rng| -> String {
        (0..rng.below(6)).map(|_| *rng.pick(&['a', 'é', '漢', '𝄞', ' '])).collect()
    };
    let signed = |bits: u32, rng: &mut Rng| Value::Int(((rng.next() as i64) >> (64 - bits)).into());
    let unsigned = |bits: u32, rng: &mut Rng| Value::Int((rng.next() >> (64 - bits)).into());
    let float = |rng: &mut Rng| f64::from(rng.next() as i32 as f32 / 8.0);
    let some = |rng: &mut Rng| 0..rng.below(4);
    match kind {
        ItemKind::Int8 => signed(8, rng),
        ItemKind::Int16 => signed(16, rng),
        ItemKind::Int32 => signed(32, rng),
        ItemKind::Int64 | ItemKind::Timestamp { .. } => signed(63, rng),
        ItemKind::UInt8 => unsigned(8, rng),
        ItemKind::UInt16 => unsigned(16, rng),
        ItemKind::UInt32 => unsigned(32, rng),
        ItemKind::UInt64 => unsigned(64, rng),
        ItemKind::Float32 | ItemKind::Float64 => float(rng).into(),
        ItemKind::Complex64 | ItemKind::Complex128 => {
            Value::Complex { re: float(rng), im: float(rng) }
        }
        ItemKind::Bool => (rng.below(2) == 0).into(),
        ItemKind::Bytes { .. } | ItemKind::VlBytes => {
            let len = rng.below(6) as usize;
            let bytes: Vec<u8> = rng.bytes(len).into_iter().map(|byte| byte | 1).collect();
            bytes.into()
        }
        ItemKind::Dictionary { .. } => rng.pick(&["one", "two", "", "drei"]).to_owned().into(),
        ItemKind::List(item) => Value::List(match item.kind() {
            ItemKind::Int16 => some(rng).map(|_| cell(&ItemKind::Int16, true, rng)).collect(),
            ItemKind::Complex64 => {
                some(rng).map(|_| cell(&ItemKind::Complex64, false, rng)).collect()
            }
            _ => some(rng)
                .map(|_| Value::List(some(rng).map(|_| text(rng).into()).collect()))
                .collect(),
        }),
        ItemKind::Struct(_) => {
            let names = some(rng).map(|_| text(rng).into()).collect();
            let names = if rng.below(4) == 0 { Value::None } else { Value::List(names) };
            Value::from([("x", float(rng).into()), ("names", names)])
        }
        ItemKind::NDArray { shape, dtype } => {
            let len = shape.iter().product::<u64>() as usize * dtype.size();
            let bytes = match dtype.size() {
                1 => rng.bytes(len).into_iter().map(|byte| byte & 1).collect(),
                // No NaN, which is not equal to itself.
                _ => rng.bytes(len).into_iter().map(|byte| byte & 0x3f).collect(),
            };
            blosc2::ArrayValue::new(dtype.clone(), shape.clone(), bytes).unwrap().into()
        }
        _ => text(rng).into(),
    }
}

type Batches = Vec<RecordBatch>;

fn read(table: &CTable, batch_rows: usize) -> (Arc<ArrowSchema>, Batches) {
    let batches = ReadOptions::new().batch_rows(batch_rows).read(table).unwrap();
    (batches.schema(), batches.map(Result::unwrap).collect())
}

#[test]
fn tables_with_random_columns_go_to_arrow_and_back() {
    let mut rng = Rng(0x7ab1e);
    for round in 0..repeats(300) {
        let kinds = kinds();
        // At first each kind once, then some of them.
        let columns: Vec<(String, ItemKind, bool)> = match round {
            0 => kinds
                .into_iter()
                .enumerate()
                .map(|(at, kind)| (format!("c{at}"), kind, at % 2 == 0))
                .collect(),
            1 => kinds
                .into_iter()
                .enumerate()
                .map(|(at, kind)| (format!("c{at}"), kind, at % 2 == 1))
                .collect(),
            _ => (0..1 + rng.below(6))
                .map(|at| (format!("c{at}"), rng.pick(&kinds).clone(), rng.below(2) == 0))
                .collect(),
        };
        let schema = columns.iter().fold(
            Schema::new().expected_rows(1000),
            |schema, (name, kind, nullable)| {
                let spec = ItemType::from(kind.clone());
                schema.column(name, if *nullable { spec.nullable() } else { spec })
            },
        );
        let mut table = CTable::in_memory(&schema).unwrap();
        let mut model: Vec<Vec<Value>> = vec![Vec::new(); columns.len()];
        for _ in 0..rng.below(4) {
            let rows = rng.below(40);
            let cells: Vec<Vec<Value>> = columns
                .iter()
                .map(|(_, kind, nullable)| {
                    (0..rows).map(|_| cell(kind, *nullable, &mut rng)).collect()
                })
                .collect();
            let data = columns
                .iter()
                .zip(&cells)
                .map(|((name, ..), cells)| (name, Data::values(&cells[..])));
            table.append(data).unwrap();
            for (column, cells) in model.iter_mut().zip(cells) {
                column.extend(cells);
            }
        }
        let rows = model[0].len();
        let deleted: Vec<bool> = (0..rows).map(|_| round % 3 == 0 && rng.below(3) == 0).collect();
        table.delete_rows(&deleted[..]).unwrap();
        for column in &mut model {
            let mut deleted = deleted.iter();
            column.retain(|_| !*deleted.next().unwrap());
        }
        let rows = model[0].len();

        let batch_rows = 1 + rng.below(50) as usize;
        let (arrow, batches) = read(&table, batch_rows);
        assert_eq!(batches.len(), rows.div_ceil(batch_rows));
        let all = concat_batches(&arrow, &batches).unwrap();
        let (_, at_once) = read(&table, 1 << 16);
        assert_eq!(at_once.first().cloned().unwrap_or(all.clone()), all);
        for (at, (name, kind, nullable)) in columns.iter().enumerate() {
            let nulls = model[at].iter().filter(|value| **value == Value::None).count();
            assert_eq!(all.column(at).logical_null_count(), nulls, "{name}: {kind}");
            assert!(nulls == 0 || *nullable);
            assert_eq!(table.values(name, ..).unwrap(), model[at], "{name}: {kind}");
        }

        // With the batches of this table, and some of them sliced.
        let back = Schema::try_from(&*arrow).unwrap();
        let kinds: Vec<&ItemKind> = back.columns().map(|(_, spec)| spec.kind()).collect();
        let mut copy = CTable::in_memory(&back.clone().expected_rows(100)).unwrap();
        for batch in &batches {
            let cut = rng.below(batch.num_rows() as u64 + 1) as usize;
            copy.append_record_batch(&batch.slice(0, cut)).unwrap();
            copy.append_record_batch(&batch.slice(cut, batch.num_rows() - cut)).unwrap();
        }
        for (at, (name, kind, _)) in columns.iter().enumerate() {
            match kind {
                // Their items are nullable in Arrow.
                ItemKind::List(_) | ItemKind::Struct(_) => {}
                kind => assert_eq!(kinds[at], kind),
            }
            assert_eq!(copy.values(name, ..).unwrap(), model[at], "the copy of {name}: {kind}");
        }
        let (arrow, batches) = read(&copy, 1 << 16);
        let copied = concat_batches(&arrow, &batches).unwrap();
        assert_same(&copied, &all, "the copy");
    }
}

#[test]
fn columns_and_rows_are_selected() {
    let schema = Schema::new()
        .column("a", ItemKind::Int64)
        .column("thing", ItemKind::Object)
        .column("b", ItemKind::Utf8);
    let mut table = CTable::in_memory(&schema).unwrap();
    let numbers: Vec<i64> = (0..10).collect();
    let texts: Vec<String> = numbers.iter().map(i64::to_string).collect();
    let things: Vec<Value> = numbers.iter().map(|&number| number.into()).collect();
    let rows = [
        ("a", Data::items(&numbers)),
        ("thing", Data::values(&things[..])),
        ("b", Data::texts(texts.iter().map(Some))),
    ];
    table.append(rows).unwrap();

    let error = table.record_batches().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("`thing`"), "{error}");
    let options = ReadOptions::new().columns(["b", "a"]).rows(3..8).batch_rows(2);
    let batches: Vec<RecordBatch> = options.read(&table).unwrap().map(Result::unwrap).collect();
    assert_eq!(batches.iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), [2, 2, 1]);
    let expected: ArrayRef = Arc::new(LargeStringArray::from(vec!["5", "6"]));
    assert_eq!(batches[1].column(0), &expected);
    let expected: ArrayRef = Arc::new(Int64Array::from(vec![7]));
    assert_eq!(batches[2].column(1), &expected);
    // Without columns there are still rows.
    let none: [&str; 0] = [];
    let empty: Vec<RecordBatch> =
        ReadOptions::new().columns(none).read(&table).unwrap().map(Result::unwrap).collect();
    assert_eq!((empty[0].num_columns(), empty[0].num_rows()), (0, 10));

    let kind = |options: ReadOptions| options.read(&table).unwrap_err().kind();
    assert_eq!(kind(ReadOptions::new().columns(["no"])), ErrorKind::NotFound);
    assert_eq!(kind(ReadOptions::new().columns(["a"]).rows(3..11)), ErrorKind::OutOfBounds);
    // A reader can own its table.
    let reader = ReadOptions::new().columns(["a"]).read(Arc::new(table)).unwrap();
    let reader: Box<dyn RecordBatchReader + Send> = Box::new(reader);
    assert_eq!(reader.map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 10);
}

#[test]
fn arrow_types_that_are_stored_in_another_way_are_converted() {
    let words: DictionaryArray<UInt8Type> = [Some("x"), None, Some("yy")].into_iter().collect();
    let arrays: [(&str, ArrayRef, ItemKind); 5] = [
        ("text", Arc::new(StringArray::from(vec![Some("a"), None, Some("")])), ItemKind::Utf8),
        (
            "view",
            Arc::new(StringViewArray::from(vec![Some("longer than twelve bytes"), None, Some("")])),
            ItemKind::Utf8,
        ),
        ("words", Arc::new(words), ItemKind::Dictionary { ordered: false }),
        (
            "bytes",
            Arc::new(BinaryViewArray::from(vec![Some(&b"\0\xff"[..]), None, Some(b"")])),
            ItemKind::VlBytes,
        ),
        (
            "fixed",
            Arc::new(
                FixedSizeBinaryArray::try_from_iter([b"ab", b"\0\0", b"c\0"].into_iter()).unwrap(),
            ),
            ItemKind::VlBytes,
        ),
    ];
    let batch =
        RecordBatch::try_from_iter(arrays.iter().map(|(name, array, _)| (*name, array.clone())));
    let batch = batch.unwrap();
    let schema = Schema::try_from(&*batch.schema()).unwrap();
    for ((name, spec), (expected, _, kind)) in schema.columns().zip(&arrays) {
        assert_eq!((name, spec.kind()), (*expected, kind));
    }
    let mut table = CTable::in_memory(&schema).unwrap();
    table.append_record_batch(&batch).unwrap();
    table.append_record_batch(&batch.slice(1, 2)).unwrap();
    let texts = |name: &str| table.texts(name, ..).unwrap();
    let owned = |texts: [Option<&str>; 5]| texts.map(|text| text.map(str::to_owned));
    assert_eq!(texts("text"), owned([Some("a"), None, Some(""), None, Some("")]));
    let long = Some("longer than twelve bytes");
    assert_eq!(texts("view"), owned([long, None, Some(""), None, Some("")]));
    assert_eq!(texts("words"), owned([Some("x"), None, Some("yy"), None, Some("yy")]));
    let bytes = |bytes: &[u8]| Value::Bytes(bytes.to_vec());
    assert_eq!(table.values("bytes", ..3).unwrap(), [bytes(b"\0\xff"), Value::None, bytes(b"")]);
    assert_eq!(table.values("fixed", ..3).unwrap(), [bytes(b"ab"), bytes(b"\0\0"), bytes(b"c\0")]);
}

#[test]
fn batches_that_do_not_fit_are_refused_as_a_whole() {
    let schema = Schema::new()
        .column("number", ItemKind::Int64)
        .column(
            "when",
            ItemType::from(ItemKind::Timestamp { unit: TimeUnit::Milliseconds, timezone: None })
                .nullable(),
        )
        .column("text", ItemType::from(ItemKind::String { max_length: 3 }).nullable());
    let mut table = CTable::in_memory(&schema).unwrap();
    let mut refused = |columns: Vec<(&str, ArrayRef)>, kind, text: &str| {
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let error = table.append_record_batch(&batch).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(text), "{error}");
        assert_eq!(table.nrows(), 0);
    };
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    let other: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
    let nulls: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
    let seconds: ArrayRef = Arc::new(TimestampSecondArray::from(vec![1, 2]));
    let long: ArrayRef = Arc::new(StringArray::from(vec!["abc", "abcd"]));
    refused(vec![("no", numbers.clone())], ErrorKind::NotFound, "`no`");
    refused(vec![("number", other)], ErrorKind::TypeMismatch, "number");
    refused(vec![("number", nulls)], ErrorKind::InvalidArgument, "number");
    refused(vec![("number", numbers.clone()), ("when", seconds)], ErrorKind::TypeMismatch, "when");
    refused(
        vec![("number", numbers.clone()), ("when", numbers.clone())],
        ErrorKind::TypeMismatch,
        "when",
    );
    refused(
        vec![("number", numbers.clone()), ("text", numbers.clone())],
        ErrorKind::TypeMismatch,
        "text",
    );
    refused(vec![("number", numbers), ("text", long)], ErrorKind::InvalidArgument, "text");

    for data_type in [
        DataType::Date32,
        DataType::Decimal128(9, 2),
        DataType::Null,
        DataType::Float16,
        DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Int32)),
        DataType::List(Arc::new(Field::new("item", DataType::Date32, true))),
        DataType::Duration(ArrowUnit::Second),
    ] {
        let schema = ArrowSchema::new(vec![Field::new("name", data_type.clone(), true)]);
        let error = Schema::try_from(&schema).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        assert!(error.to_string().contains("`name`"), "{error}");
    }
}

/// Each fixed-length string takes as much memory as the longest one.
#[test]
fn arrays_that_take_much_more_memory_as_items_are_refused() {
    let texts: Vec<String> =
        (0..3000).map(|at| "x".repeat(if at == 0 { 1 << 20 } else { 1 })).collect();
    let parts: Vec<&[u8]> = texts.iter().map(|text| text.as_bytes()).collect();
    let arrays: [ArrayRef; 2] =
        [Arc::new(StringArray::from_iter_values(&texts)), Arc::new(BinaryArray::from_vec(parts))];
    let mut table = CTable::in_memory(&Schema::new().column("a", ItemKind::Int64)).unwrap();
    for array in arrays {
        let field = Field::new("a", array.data_type().clone(), false);
        let error =
            blosc2_store::arrow::from_arrow(NDArray::builder(), &field, &array).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
        let batch = RecordBatch::try_from_iter([("a", array)]).unwrap();
        let error = table.append_record_batch(&batch).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::TooLarge | ErrorKind::TypeMismatch), "{error}");
    }

    // An array of nulls takes no memory for them.
    let mut table = CTable::in_memory(&Schema::new().column("a", ItemKind::Object)).unwrap();
    let nulls = Arc::new(NullArray::new(1 << 40)) as ArrayRef;
    let batch = RecordBatch::try_from_iter([("a", nulls)]).unwrap();
    let error = table.append_record_batch(&batch).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
    assert_eq!(table.nrows(), 0);
}

/// A reader of batches: all rows, or those before the first batch that fails.
#[test]
fn batches_of_a_reader_are_appended() {
    let batch = |ids: &[i64]| {
        let words = ids.iter().map(|id| (id % 3 > 0).then(|| format!("word {}", id % 7)));
        let words: DictionaryArray<Int32Type> =
            words.collect::<Vec<_>>().iter().map(|word| word.as_deref()).collect();
        let ids = Arc::new(Int64Array::from(ids.to_vec())) as ArrayRef;
        RecordBatch::try_from_iter_with_nullable([
            ("id", ids, false),
            ("word", Arc::new(words) as ArrayRef, true),
        ])
    };
    let ids: Vec<i64> = (0..100_000).collect();
    let schema = Schema::try_from(&*batch(&[]).unwrap().schema()).unwrap();
    for size in [1000, 7777, 100_000] {
        let mut table = CTable::in_memory(&schema.clone().expected_rows(50_000)).unwrap();
        table.append_record_batches(ids.chunks(size).map(batch)).unwrap();
        assert_eq!(table.read::<i64>("id", ..).unwrap(), ids);
        let word = |id: &i64| (id % 3 > 0).then(|| format!("word {}", id % 7));
        assert_eq!(table.texts("word", ..).unwrap(), ids.iter().map(word).collect::<Vec<_>>());
    }

    let other =
        || RecordBatch::try_from_iter([("id", Arc::new(StringArray::from(vec!["a"])) as ArrayRef)]);
    let of_crate = blosc2::Error::new(ErrorKind::Busy, "read", "it is in use");
    let faults = [
        (ErrorKind::TypeMismatch, other()),
        (ErrorKind::InvalidData, Err(ArrowError::ParseError("a fault".to_owned()))),
        (ErrorKind::Busy, Err(ArrowError::ExternalError(Box::new(of_crate)))),
        (
            ErrorKind::Io,
            Err(ArrowError::IoError("a fault".to_owned(), std::io::Error::other("a fault"))),
        ),
    ];
    for (kind, fault) in faults {
        let mut table = CTable::in_memory(&schema).unwrap();
        let batches = [batch(&[1, 2]), batch(&[3]), fault, batch(&[4])];
        let error = table.append_record_batches(batches).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert_eq!(table.read::<i64>("id", ..).unwrap(), [1, 2, 3]);
    }
}

/// Rows that are skipped while a table is read, against a list of the rows.
#[test]
fn remaining_rows_are_retained() {
    let mut table = CTable::in_memory(&Schema::new().column("id", ItemKind::Int64)).unwrap();
    let ids: Vec<i64> = (0..100).collect();
    table.append([("id", Data::items(&ids))]).unwrap();
    let mut rng = Rng(0x22);
    for _ in 0..repeats(300) {
        let mut below = |n: u64| rng.below(n);
        // In any order, and with overlap.
        let ranges: Vec<_> = (0..below(4) + 1)
            .map(|_| {
                let start = below(100);
                start..start + below(100 - start + 1)
            })
            .collect();
        let mut left: Vec<u64> = ranges.iter().cloned().flatten().collect();
        let options = ReadOptions::new().row_ranges(ranges).batch_rows(below(30) as usize + 1);
        let mut batches = options.read(&table).unwrap();
        loop {
            assert_eq!(batches.next_row(), left.first().copied());
            if below(3) == 0 {
                let (start, gap) = (below(100), below(10) + 1);
                let kept = [start..start + gap, start + 2 * gap..start + 3 * gap, 100..200];
                left.retain(|row| kept.iter().any(|kept| kept.contains(row)));
                batches.retain_rows(kept);
            }
            let Some(batch) = batches.next() else { break };
            let batch = batch.unwrap();
            let found = batch.column(0).as_any().downcast_ref::<Int64Array>().unwrap();
            let expected: Vec<i64> = left.drain(..found.len()).map(|row| row as i64).collect();
            assert_eq!(found.values().to_vec(), expected);
        }
        assert!(left.is_empty());
    }
}
