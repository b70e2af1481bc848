//! The number of blocks of the columns that uses of a table decompress.

use std::ops::Range;

use blosc2::{CParams, Filter, Value};
use blosc2_store::{CTable, Comparison, Condition, Data, ItemKind, ItemType, Schema, SortOrder};

use crate::common::counting::counting_filter;

const ROWS: u64 = 1 << 16;
/// The rows of an append, and of a part that is read: those of a block of numbers.
const PART: u64 = 1 << 15;

fn number(row: u64) -> i64 {
    (row * 7919 % 100_003) as i64
}

fn parts(rows: u64) -> impl Iterator<Item = Range<u64>> {
    (0..rows).step_by(PART as usize).map(move |start| start..rows.min(start + PART))
}

fn table(rows: u64, filter: Filter) -> CTable {
    let cparams = CParams::new().filters(&[filter]);
    let column = |kind: ItemKind| ItemType::from(kind).cparams(&cparams);
    let word = ItemKind::Dictionary { ordered: false };
    let list = ItemKind::List(Box::new(ItemKind::Int64.into()));
    let schema = Schema::new()
        .column("number", column(ItemKind::Int64))
        .column("text", column(ItemKind::Utf8))
        .column("word", column(word))
        .column("long", column(ItemKind::VlString))
        .column("list", column(list));
    let mut table = CTable::in_memory(&schema).unwrap();
    let mut appender = table.appender().unwrap();
    for rows in parts(rows) {
        let numbers: Vec<i64> = rows.map(number).collect();
        let texts: Vec<String> = numbers.iter().map(|number| format!("text {number}")).collect();
        let words: Vec<String> = numbers.iter().map(|number| format!("w{}", number % 50)).collect();
        let texts = || Data::texts(texts.iter().map(|text| Some(text.as_str())));
        let words = Data::texts(words.iter().map(|text| Some(text.as_str())));
        let list = |number: &i64| Value::List(vec![Value::from(*number); 3]);
        let lists = Data::values(numbers.iter().map(list).collect::<Vec<_>>());
        let columns = [
            ("number", Data::items(&numbers)),
            ("text", texts()),
            ("word", words),
            ("long", texts()),
            ("list", lists),
        ];
        appender.append(columns).unwrap();
    }
    appender.finish().unwrap();
    table
}

type Use = fn(&mut CTable) -> blosc2::Result<()>;

const ALL: &str = "all columns";

/// The name of each use, the column, and the most blocks that it decompresses, as a multiple of those that a read of the
/// column decompresses.
const USES: [(&str, &str, f64, Use); 25] = [
    ("read", "number", 1.0, |it| it.read::<i64>("number", ..).map(drop)),
    ("read by parts", "number", 2.0, |it| {
        parts(it.nrows()).try_for_each(|rows| it.read::<i64>("number", rows).map(drop))
    }),
    ("read of few rows", "number", 1.0, |it| {
        it.read::<i64>("number", [it.nrows() - 1, 0, it.nrows() / 2]).map(drop)
    }),
    ("read of rows in another order", "number", 1.0, |it| {
        let rows = it.nrows();
        let rows: Vec<u64> = (0..rows).map(|row| row * 7919 % rows).collect();
        it.read::<i64>("number", rows).map(drop)
    }),
    ("argsort", "number", 1.0, |it| it.argsort("number", SortOrder::Ascending, ..).map(drop)),
    ("describe", "number", 1.0, |it| it.describe("number").map(drop)),
    ("find", "number", 1.0, |it| it.find("number", |item: &i64| *item < 10).map(drop)),
    ("find_in", "number", 1.0, |it| it.find_in("number", 0i64..10).map(drop)),
    ("find_where", "number", 1.0, |it| {
        it.find_where(&Condition::new("number", Comparison::Less, 10)).map(drop)
    }),
    ("head", ALL, 0.1, |it| it.head(10).map(drop)),
    ("delete_rows", ALL, 0.0, |it| it.delete_rows([1, 3, 5]).map(drop)),
    ("update", ALL, 0.1, |it| it.update("number", [1, 3, 5], Data::items(&[1i64, 2, 3]))),
    ("append", ALL, 1.0, |it| {
        (0..5).try_for_each(|_| {
            let texts = || Data::texts([Some("a")]);
            let list = Value::List(vec![1.into()]);
            it.append([
                ("number", Data::items(&[1i64])),
                ("text", texts()),
                ("word", texts()),
                ("long", texts()),
                ("list", Data::values(vec![list])),
            ])
        })
    }),
    ("compact", ALL, 2.5, |it| {
        it.delete_rows(0..3)?;
        it.compact()
    }),
    ("texts by parts", "text", 2.0, |it| texts_by_parts(it, "text")),
    ("texts by parts", "word", 2.0, |it| texts_by_parts(it, "word")),
    ("texts by parts", "long", 2.0, |it| texts_by_parts(it, "long")),
    ("values by parts", "list", 2.0, |it| {
        parts(it.nrows()).try_for_each(|rows| it.values("list", rows).map(drop))
    }),
    ("texts in another order", "text", 2.0, |it| texts_in_another_order(it, "text")),
    ("texts in another order", "word", 2.0, |it| texts_in_another_order(it, "word")),
    ("texts in another order", "long", 2.0, |it| texts_in_another_order(it, "long")),
    ("argsort", "text", 2.0, |it| it.argsort("text", SortOrder::Descending, ..).map(drop)),
    ("describe", "text", 2.0, |it| it.describe("text").map(drop)),
    ("describe", "word", 1.0, |it| it.describe("word").map(drop)),
    ("find_where", "word", 1.0, |it| {
        it.find_where(&Condition::new("word", Comparison::Equal, "w7")).map(drop)
    }),
];

fn texts_by_parts(table: &mut CTable, name: &str) -> blosc2::Result<()> {
    parts(table.nrows()).try_for_each(|rows| table.texts(name, rows).map(drop))
}

fn texts_in_another_order(table: &mut CTable, name: &str) -> blosc2::Result<()> {
    let rows = table.nrows();
    let rows: Vec<u64> = (0..rows).map(|row| row * 7919 % rows).collect();
    table.texts(name, rows).map(drop)
}

#[test]
fn uses_decompress_blocks_few_times() {
    let (filter, blocks) = counting_filter(230);
    let counted = |table: &mut CTable, work: &dyn Fn(&mut CTable) -> blosc2::Result<()>| {
        blocks.take();
        work(table).unwrap();
        blocks.take() as f64
    };
    let (mut failed, mut before) = (Vec::new(), Vec::new());
    for scale in [1, 3] {
        let bytes = table(ROWS * scale, filter).to_cframe().unwrap();
        let mut columns = Vec::new();
        for name in ["number", "text", "word", "long", "list"] {
            let mut table = CTable::from_cframe(bytes.clone()).unwrap();
            columns.push((name, counted(&mut table, &|it| it.values(name, ..).map(drop))));
        }
        columns.push((ALL, columns.iter().map(|(_, blocks)| blocks).sum()));
        for (name, column, most, work) in USES {
            let mut table = CTable::from_cframe(bytes.clone()).unwrap();
            let all = columns.iter().find(|(name, _)| *name == column).unwrap().1;
            let found = counted(&mut table, &work) / all;
            if found > most {
                failed.push(format!("{name}, `{column}`, scale {scale}: {found} > {most}"));
            }
        }
        before.push(columns);
    }
    for (one, other) in before[0].iter().zip(&before[1]) {
        assert!(other.1 <= 3.5 * one.1, "{one:?} {other:?}");
    }
    assert!(failed.is_empty(), "{failed:#?}");
}
