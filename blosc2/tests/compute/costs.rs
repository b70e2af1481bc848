//! The number of blocks of the sources that operations decompress.

use std::collections::BTreeSet;

use blosc2::compute::zip;
use blosc2::{
    AxisSelection, CParams, Filter, NDArray, NDArrayBuilder, NDArrayView, Selection, Threads, npy,
};

use crate::common::counting::counting_filter;
use crate::creation::METHODS;

/// Creates an array from a row, and from a table with as many items.
type Create = fn(NDArrayBuilder, NDArrayView<'_>, NDArrayView<'_>) -> blosc2::Result<NDArray>;

/// The items of a row for each unit of the scale.
const UNIT: u64 = 1 << 14;
/// The columns of the table.
const COLUMNS: u64 = 1 << 8;
/// The blocks of an array for each unit of the scale.
const BLOCKS: u64 = 64;
/// An eighth of an array at scale 1.
const MEMORY: usize = 1 << 14;

fn row_builder() -> NDArrayBuilder {
    NDArray::builder().chunk_shape(UNIT / 16).block_shape(UNIT / BLOCKS)
}

/// The name of each operation, the number of its operands, the most times that a block is decompressed on average, and the
/// operation. Without a comment, that is once: the memory suffices, or the chunks of the result are those of the source.
const OPERATIONS: [(&str, u64, f64, Create); 41] = [
    ("argsort", 1, 1.0, |to, row, _| to.argsort::<i64>(row)),
    ("sort", 1, 1.0, |to, row, _| to.sort::<i64>(row)),
    ("unique", 1, 1.0, |to, row, _| to.unique::<i64>(row)),
    ("unique_counts", 1, 1.0, |to, row, _| {
        let (items, _) = to.unique_counts::<i64>(row, NDArray::builder())?;
        Ok(items)
    }),
    ("broadcast_to", 1, 1.0, |to, row, _| {
        let len = row.shape()[0];
        to.broadcast_to(row, (3, len))
    }),
    ("cast", 1, 1.0, |to, _, table| to.cast::<f64>(table)),
    ("map", 1, 1.0, |to, _, table| to.map(table, |item: i64| item ^ 1)),
    ("concatenate, axis 0", 2, 1.0, |to, _, table| to.concatenate([table.clone(), table], 0)),
    ("concatenate, axis 1", 2, 1.0, |to, _, table| to.concatenate([table.clone(), table], 1)),
    ("copy", 1, 1.0, |to, _, table| to.copy(table)),
    ("copy, transposed", 1, 1.0, |to, _, table| to.copy(table.transpose())),
    ("copy, reversed", 1, 1.0, |to, _, table| {
        let back = AxisSelection::strided(.., -1);
        to.copy(table.slice((back.clone(), back))?)
    }),
    ("copy, every second column", 1, 1.0, |to, _, table| {
        to.copy(table.slice((.., AxisSelection::strided(.., 2)))?)
    }),
    ("cumulative_sum, axis 0", 1, 1.0, |to, _, table| to.cumulative_sum::<i64>(table, 0)),
    ("cumulative_sum, axis 1", 1, 1.0, |to, _, table| to.cumulative_sum::<i64>(table, 1)),
    ("cumulative_prod, axis 0", 1, 1.0, |to, _, table| to.cumulative_prod::<i64>(table, 0)),
    ("diff, axis 0", 1, 1.0, |to, _, table| to.diff::<i64>(table, 1, 0)),
    ("diff, axis 1", 1, 1.0, |to, _, table| to.diff::<i64>(table, 1, 1)),
    ("reshape, row", 1, 1.0, |to, row, _| {
        let len = row.shape()[0];
        to.reshape(row, (len / COLUMNS, COLUMNS))
    }),
    ("reshape, table", 1, 1.0, |to, _, table| {
        let [rows, columns] = table.shape()[..] else { unreachable!() };
        to.reshape(table, rows * columns)
    }),
    ("take_along_axis, axis 1", 1, 1.0, |to, _, table| {
        let [rows, columns] = table.shape()[..] else { unreachable!() };
        let indices = NDArray::builder()
            .from_fn([rows, columns], |[row, at]| ((row * 31 + at * 7919) % columns) as i64)?;
        to.take_along_axis(table, &indices, 1)
    }),
    ("take_along_axis, axis 0", 1, 1.0, |to, _, table| {
        let [rows, columns] = table.shape()[..] else { unreachable!() };
        let indices = NDArray::builder()
            .from_fn([rows, columns], |[row, at]| ((row * 31 + at * 7919) % rows) as i64)?;
        to.take_along_axis(table, &indices, 0)
    }),
    ("take_along_axis, row", 1, 1.0, |to, row, _| {
        let len = row.shape()[0];
        let indices = NDArray::builder().from_fn([len], |[at]| (at * 7919 % len) as i64)?;
        to.take_along_axis(row, &indices, 0)
    }),
    ("take_along_axis, few columns", 1, 1.0, |to, _, table| {
        let [rows, columns] = table.shape()[..] else { unreachable!() };
        let indices = NDArray::builder()
            .from_fn([rows, 3], |[row, at]| ((row * 31 + at * 7919) % columns) as i64)?;
        to.take_along_axis(table, &indices, 1)
    }),
    // The memory is for 8 columns of the source, which has blocks of 32 columns.
    ("copy, transposed, chunks of rows", 1, 4.0, |to, _, table| {
        let rows = table.shape()[0];
        to.chunk_shape((1, rows)).copy(table.transpose())
    }),
    ("copy, chunks of rows", 1, 1.0, |to, _, table| to.chunk_shape((1, COLUMNS)).copy(table)),
    ("copy, chunks of columns", 1, 4.0, |to, _, table| {
        let rows = table.shape()[0];
        to.chunk_shape((rows, 1)).copy(table)
    }),
    // Chunks that are not aligned with blocks: read separately up to about twice.
    ("copy, other chunks", 1, 2.5, |to, _, table| to.chunk_shape((10, 100)).copy(table)),
    ("cast, other chunks", 1, 2.5, |to, _, table| to.chunk_shape((10, 100)).cast::<f32>(table)),
    ("diff, axis 0, other chunks", 1, 2.5, |to, _, table| {
        to.chunk_shape((10, 100)).diff::<i64>(table, 1, 0)
    }),
    ("cumulative_sum, axis 0, other chunks", 1, 2.5, |to, _, table| {
        to.chunk_shape((10, 100)).cumulative_sum::<i64>(table, 0)
    }),
    ("cumulative_sum, axis 1, other chunks", 1, 2.5, |to, _, table| {
        to.chunk_shape((10, 100)).cumulative_sum::<i64>(table, 1)
    }),
    ("concatenate, parts of chunks", 2, 2.5, |to, _, table| {
        let part = table.slice((3.., 5..))?;
        to.chunk_shape((10, 100)).concatenate([part.clone(), part], 1)
    }),
    // Each of 16 chunks needs most blocks.
    ("reshape, columns", 1, 16.0, |to, _, table| {
        let len = table.len();
        to.chunk_shape((len / 64, 4)).reshape(table, (len / 64, 64))
    }),
    ("reshape, small chunks", 1, 2.5, |to, _, table| {
        let len = table.len();
        to.chunk_shape((5, 7)).reshape(table, (len / 32, 32))
    }),
    ("take_along_axis, sorted positions, small chunks", 1, 2.5, |to, row, _| {
        let len = row.shape()[0];
        let indices = NDArray::builder().from_fn([len], |[at]| (len - 1 - at) as i64)?;
        to.chunk_shape(100).take_along_axis(row, &indices, 0)
    }),
    // The memory is for the positions of a few rows of a chunk. Each row needs the blocks of all columns.
    ("take_along_axis, other chunks", 1, 5.0, |to, _, table| {
        let [rows, columns] = table.shape()[..] else { unreachable!() };
        let indices = NDArray::builder()
            .from_fn([rows, columns], |[row, at]| ((row * 31 + at * 7919) % columns) as i64)?;
        to.chunk_shape((10, 100)).take_along_axis(table, &indices, 1)
    }),
    // The memory is for parts of one or two chunks of the result. Chunks are not aligned with blocks.
    ("matmul, small chunks", 2, 31.0, |to, _, table| {
        to.chunk_shape((20, 20)).matmul::<i64>(table.clone().transpose(), table)
    }),
    ("LazyExpr::create", 2, 1.0, |to, row, table| {
        let table = to.clone().reshape(row, table.shape())?;
        zip((&table, &table)).map(|(one, two): (i64, i64)| one ^ two).create(to)
    }),
    ("matmul", 2, 1.0, |to, _, table| to.matmul::<i64>(table.clone().transpose(), table)),
    ("tensordot", 2, 1.0, |to, _, table| {
        to.tensordot::<i64>(table.clone(), table, (&[0, 1], &[0, 1]))
    }),
];

#[test]
fn the_list_of_operations_is_complete() {
    let names: BTreeSet<&str> =
        OPERATIONS.iter().map(|(name, ..)| name.split(',').next().unwrap()).collect();
    let expected = METHODS.iter().map(|(name, _)| *name).chain(["LazyExpr::create"]);
    assert_eq!(names, expected.collect());
}

/// Reads the table, or changes it.
type Use = fn(&mut NDArray) -> blosc2::Result<()>;

/// The name of each use of a table, and the most times that a block is decompressed on average.
const USES: [(&str, f64, Use); 32] = [
    ("all", 1.0, |it| it.lazy().map(|item: i64| item >= 0).all().map(drop)),
    ("any", 1.0, |it| it.lazy().map(|item: i64| item < 0).any().map(drop)),
    ("argmax", 1.0, |it| it.lazy::<i64>().argmax().map(drop)),
    ("argmin, axis 0", 1.0, |it| it.lazy::<i64>().axes(0).argmin().map(drop)),
    ("argmin, axis 1", 1.0, |it| it.lazy::<i64>().axes(1).argmin().map(drop)),
    ("chunks", 1.0, |it| it.chunks(..)?.try_for_each(|chunk| chunk.read::<Vec<i64>>().map(drop))),
    ("count_nonzero", 1.0, |it| it.lazy::<i64>().count_nonzero().map(drop)),
    ("describe", 1.0, |it| it.lazy::<i64>().describe(&[0.0, 1e6, 1e7]).map(drop)),
    ("describe, axis 0", 1.0, |it| it.lazy::<i64>().axes(0).describe(&[]).map(drop)),
    ("describe, axis 1", 1.0, |it| it.lazy::<i64>().axes(1).describe(&[]).map(drop)),
    ("max", 1.0, |it| it.lazy::<i64>().max().map(drop)),
    ("mean, axis 0", 1.0, |it| it.lazy::<i64>().axes(0).mean().map(drop)),
    ("mean, axis 1", 1.0, |it| it.lazy::<i64>().axes(1).mean().map(drop)),
    ("min, axes 0 and 1", 1.0, |it| it.lazy::<i64>().axes((0, 1)).min().map(drop)),
    ("sum, axis 0, in small chunks", 1.0, |it| {
        let to = NDArray::builder().chunk_shape(3);
        it.lazy::<i64>().axes(0).builder(to).sum().map(drop)
    }),
    ("var", 1.0, |it| it.lazy::<i64>().var(0).map(drop)),
    ("var, axis 0", 1.0, |it| it.lazy::<i64>().axes(0).var(0).map(drop)),
    ("npy::write", 1.0, |it| npy::write(&*it, Vec::new())),
    ("read", 1.0, |it| it.read::<Vec<i64>>(..).map(drop)),
    ("read, points", 1.0, |it| {
        let [rows, columns] = it.shape()[..] else { unreachable!() };
        let points =
            (0..rows * 100).map(|at| vec![(at * 31 % rows) as i64, (at * 7919 % columns) as i64]);
        it.read::<Vec<i64>>(Selection::points(&points.collect::<Vec<_>>())).map(drop)
    }),
    ("read, rows and columns", 1.0, |it| {
        let rows = it.shape()[0] as i64;
        let rows: Vec<i64> = (0..rows).map(|at| at * 31 % rows).collect();
        it.read::<Vec<i64>>((rows, (0..COLUMNS as i64).step_by(3))).map(drop)
    }),
    ("rows", 1.0, |it| it.rows::<i64>().try_for_each(|row| row.map(drop))),
    ("select", 1.0, |it| it.lazy::<i64>().select(|item| item % 7 == 0).items().map(drop)),
    ("select, indices", 1.0, |it| {
        it.lazy::<i64>().select(|item| item % 7 == 0).indices().map(drop)
    }),
    // 16 rows: an append decompresses the chunks that it extends.
    ("append", 4.0, |it| {
        for _ in 0..16 {
            it.append(0, &[1i64; COLUMNS as usize][..])?;
        }
        Ok(())
    }),
    ("append, axis 1", 1.0, |it| {
        let items = vec![1i64; it.shape()[0] as usize * 64];
        it.append(1, &items[..])
    }),
    ("assign", 1.0, |it| {
        let other = NDArray::from_slice(&[1i64; COLUMNS as usize], COLUMNS)?;
        it.assign::<i64>((3.., ..), &other)
    }),
    // Rows of chunks that are moved by less than a chunk come from two chunks.
    ("delete, axis 0", 2.0, |it| it.delete(0, 3..5)),
    ("delete, axis 1", 2.0, |it| it.delete(1, 3..5)),
    ("insert, axis 0", 2.0, |it| it.insert(0, 3, &[1i64; COLUMNS as usize][..])),
    ("resize", 1.0, |it| {
        let rows = it.shape()[0];
        it.resize((rows - 3, COLUMNS + 3))
    }),
    ("write", 1.0, |it| {
        let end = it.shape()[0] - 3;
        it.write((3..end, 5..205), &vec![1i64; (end - 3) as usize * 200][..])
    }),
];

#[test]
fn uses_decompress_blocks_few_times() {
    let (filter, blocks) = counting_filter(231);
    let mut failed = Vec::new();
    for scale in [1, 4] {
        for (name, most, work) in USES {
            let mut table = table(UNIT * scale, filter);
            blocks.take();
            work(&mut table).unwrap();
            let found = blocks.take() as f64 / (BLOCKS * scale) as f64;
            if found > most {
                failed.push(format!("{name}, scale {scale}: {found} > {most}"));
            }
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

/// Rows of [`COLUMNS`] items.
fn table(len: u64, filter: Filter) -> NDArray {
    NDArray::builder()
        .chunk_shape((16, 64))
        .block_shape((8, 32))
        .cparams(CParams::new().filters(&[filter]))
        .from_fn([len / COLUMNS, COLUMNS], |[at, column]| item(at * COLUMNS + column))
        .unwrap()
}

fn item(at: u64) -> i64 {
    (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as i64
}

#[test]
fn operations_decompress_blocks_few_times() {
    let (filter, blocks) = counting_filter(230);
    let mut failed = Vec::new();
    for scale in [1, 4] {
        let len = UNIT * scale;
        let cparams = CParams::new().filters(&[filter]);
        let row = row_builder().cparams(cparams).from_fn([len], |[at]| item(at)).unwrap();
        let table = table(len, filter);
        for (name, operands, most, create) in OPERATIONS {
            for threads in [1, 2] {
                let to = NDArray::builder()
                    .cparams(CParams::new().threads(Threads::new(threads)))
                    .max_memory(MEMORY);
                blocks.take();
                create(to, row.view(), table.view()).unwrap();
                let found = blocks.take() as f64 / (BLOCKS * scale * operands) as f64;
                if found > most {
                    failed.push(format!(
                        "{name}, scale {scale}, {threads} threads: {found} > {most}"
                    ));
                }
            }
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}
