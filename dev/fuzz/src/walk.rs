//! Opening untrusted frames, and reading them through the safe API in every way.

use crate::folder;
use blosc2::{
    AxisSelection, Check, Element, NDArray, OpenOptions, RawItems, Result, SChunk, Selection,
    Target, Value,
};
use blosc2_format::directory::Memory;

/// The maximum size of one read in bytes.
const MAX_READ: u64 = 1 << 20;
/// The maximum number of bytes that are read of one input, for each way of reading.
const MOST: u64 = 256 << 10;
/// The maximum number of chunks, blocks and axes that are read one by one.
const MANY: usize = 8;

/// Opens a frame or a folder with the weakest check, and reads it.
pub fn open_and_walk(input: &[u8]) {
    if let Ok(schunk) = open(input, false) {
        walk(&schunk);
        if schunk.info().is_array
            && let Ok(array) = NDArray::from_schunk(schunk)
        {
            walk_array(&array);
        }
    }
}

/// Opens a frame or a folder with the weakest check.
pub(crate) fn open(input: &[u8], write: bool) -> Result<SChunk> {
    // More is read after the weakest check.
    let options = OpenOptions::new().check(Check::Header).max_read(MAX_READ).write(write);
    match folder::unpack(input) {
        Some(files) => options.open(Target::folder(Memory(files))),
        None => options.open(input.to_vec()),
    }
}

/// Reads a super-chunk. What is read in two ways is the same.
pub(crate) fn walk(schunk: &SChunk) {
    drop(schunk.info());
    let (mut total, mut position) = (0, Some(0));
    for number in 0..schunk.nchunks().min(MANY) {
        let Ok(info) = schunk.chunk_info(number) else {
            position = None;
            continue;
        };
        let chunk = schunk.chunk(number);
        let data = schunk.decompress_chunk::<u8>(number);
        if let (Ok(chunk), Ok(data)) = (&chunk, &data) {
            assert_eq!((chunk.nbytes(), data.len() as u64), (data.len(), info.nbytes as u64));
            total += data.len() as u64;
        }
        let mut start = 0;
        for block in 0..MANY {
            let Ok(block) = schunk.block(number, block) else { break };
            if let (Ok(data), false) = (&data, schunk.info().has_variable_blocks) {
                assert!(data[start..].starts_with(&block), "chunk {number}");
            }
            start += block.len();
        }
        if schunk.info().has_variable_blocks {
            let blocks = schunk.blocks(number);
            blocks.iter().flat_map(|blocks| blocks.iter()).for_each(|block| {
                drop(Value::from_msgpack_within(block, MAX_READ));
            });
        } else if let (Ok(data), true) = (&data, info.nbytes < 100_000) {
            drop(Value::from_msgpack_within(data, MAX_READ));
        }
        // The middle of the chunk, as bytes.
        if let (Ok(data), Some(first)) = (&data, position) {
            let (from, len) = (data.len() / 3, (data.len() / 2).min(500));
            let start = first + from as u64;
            if let Ok(found) = schunk.read::<u8>(start..start + len as u64) {
                assert!(found == data[from..from + len], "{len} bytes at {start}");
            }
            position = Some(first + data.len() as u64);
        } else {
            position = None;
        }
        if total > MOST {
            break;
        }
    }
    for layers in [schunk.meta(), schunk.vlmeta()] {
        for name in layers.names().into_iter().take(MANY) {
            drop((layers.get(&name), layers.value(&name)));
        }
    }
    let len = schunk.len();
    drop(schunk.read::<u8>(&[0, len / 2, len.saturating_sub(1), len]));
    if schunk.nchunks() <= 1000 {
        drop(schunk.offsets());
    }
    if schunk.nbytes() <= MOST {
        let all = schunk.read::<u8>(..);
        if let Ok(frame) = schunk.to_cframe() {
            let again = open(&frame, false).expect("this frame was written here");
            assert_eq!(again.nchunks(), schunk.nchunks());
            // The header of a damaged frame can give a size that its chunks do not have.
            if let Ok(all) = all {
                let again = again.read::<u8>(..).expect("all items could be read");
                assert!(all == again, "the saved frame has other items");
            }
        }
    }
}

/// Reads an array: whole, by selections, as items, and by expressions.
pub(crate) fn walk_array(array: &NDArray) {
    drop((array.info(), array.dtype(), array.info().cparams));
    let shape = array.shape().to_vec();
    // Every third item, backwards; and the middle.
    let clamped = |start, stop, step| AxisSelection::Clamped { start, stop, step };
    let selected: u64 = shape.iter().map(|size| size.div_ceil(3)).product();
    let size = array.typesize() as u64;
    if selected.saturating_mul(size) <= MOST {
        drop(
            array.read::<RawItems>(
                shape.iter().map(|_| clamped(None, None, -3)).collect::<Vec<_>>(),
            ),
        );
        let middle = shape.iter().map(|&size| {
            let at = (size / 2) as i64;
            clamped(Some(at), Some(at + 3), 1)
        });
        drop(array.read::<RawItems>(middle.collect::<Vec<_>>()));
    }
    let last: Vec<i64> = shape.iter().map(|_| -1).collect();
    let indices = shape.iter().map(|&size| AxisSelection::Indices(vec![0, (size / 2) as i64, -1]));
    if shape.len() <= 6 {
        drop(array.read::<RawItems>(indices.collect::<Vec<_>>()));
    }
    drop(array.read::<RawItems>(Selection::points(&[&last[..]])));
    for chunk in array.chunks(..).into_iter().flatten().take(4) {
        drop(chunk);
    }
    if let Some(dtype) = array.dtype() {
        for field in dtype.fields().into_iter().flatten().take(MANY) {
            if let Ok(field) = array.field(field.name()) {
                drop(field.read::<RawItems>(..));
            }
        }
    }
    if array.info().nbytes > MOST {
        return;
    }
    let whole = array.read::<RawItems>(..);
    let view = array.view().transpose();
    let turned = view.read::<RawItems>(..);
    if let (Ok(whole), Ok(turned)) = (&whole, &turned) {
        assert_eq!(whole.0.len(), turned.0.len());
        assert_eq!(whole.0.len() as u64, array.info().nbytes);
    }
    as_type::<f64>(array);
    as_type::<i32>(array);
    as_type::<u8>(array);
}

fn as_type<T: Element>(array: &NDArray) {
    if let Ok(items) = array.read::<Vec<T>>(..) {
        assert_eq!(items.len() as u64, array.len());
    }
}
