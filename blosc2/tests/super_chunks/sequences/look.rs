//! Comparison of a super-chunk with the model.

use std::io::{Read, Seek, SeekFrom};

use blosc2::{ErrorKind, SChunk, SChunkReader};

use super::simple::{Layer, Model};
use crate::common::{Rng, assert_same};

/// Compares all that costs little, and a few pieces of the content; all of it with `whole`.
pub(crate) fn compare(schunk: &SChunk, model: &Model, whole: bool, rng: &mut Rng) {
    let (count, nbytes) = (model.chunks.len(), model.nbytes());
    assert_eq!(schunk.typesize(), model.typesize, "typesize");
    assert_eq!(schunk.nchunks(), count, "number of chunks");
    assert_eq!(schunk.nbytes(), nbytes as u64, "bytes");
    assert_eq!(schunk.len(), (nbytes / model.typesize) as u64, "items");
    assert_eq!(schunk.is_empty(), nbytes == 0);
    assert_eq!(schunk.chunksize(), model.chunksize.unwrap_or(0), "chunk size");
    assert_eq!(schunk.info().has_variable_chunks, model.chunksize == Some(0), "variable chunks");
    assert_eq!(schunk.info().has_variable_blocks, model.variable_blocks(), "variable blocks");
    for (layers, expected) in [(schunk.meta(), &model.meta), (schunk.vlmeta(), &model.vlmeta)] {
        assert_eq!((layers.len(), layers.is_empty()), (expected.len(), expected.is_empty()));
        let layer = |layer: blosc2::Result<(String, Vec<u8>)>| {
            let (name, content) = layer.unwrap_or_else(|error| panic!("a metalayer: {error}"));
            Layer { name, content }
        };
        assert_eq!(&layers.iter().map(layer).collect::<Vec<_>>(), expected, "metalayers");
    }
    assert_eq!(schunk.decompress_chunk::<u8>(count).unwrap_err().kind(), ErrorKind::OutOfBounds);

    let lens = (0..schunk.nchunks()).map(|index| schunk.chunk_info(index).unwrap().nbytes);
    let lens: Vec<usize> = lens.collect();
    assert!(lens.iter().copied().eq(model.chunks.iter().map(|chunk| chunk.data.len())), "{lens:?}");
    let content = model.content();
    pieces(schunk, model, &content, rng);
    if whole {
        all(schunk, model, &content);
    }
}

/// A chunk, a range, single items, and a stream from somewhere on.
fn pieces(schunk: &SChunk, model: &Model, content: &[u8], rng: &mut Rng) {
    let read = |what: &str, found: blosc2::Result<Vec<u8>>, expected: &[u8]| match found {
        Ok(found) => assert_same(&found, expected, what),
        Err(error) => panic!("{what}: {error}"),
    };
    let range = |len: usize, rng: &mut Rng| {
        let (one, other) = (rng.below(len as u64 + 1), rng.below(len as u64 + 1));
        one.min(other) as usize..one.max(other) as usize
    };
    let bytes = range(content.len(), rng);
    let (start, stop) = (bytes.start as u64, bytes.end as u64);
    read(&format!("bytes {bytes:?}"), schunk.read(start..stop), &content[bytes]);
    let outside = content.len() as u64 + 1;
    assert_eq!(schunk.read::<u8>(..outside).unwrap_err().kind(), ErrorKind::OutOfBounds);
    match model.typesize {
        4 => typed(schunk, content, u32::from_ne_bytes, rng),
        8 => typed(schunk, content, i64::from_ne_bytes, rng),
        _ => typed(schunk, content, |[byte]: [u8; 1]| byte, rng),
    }
    let Some(index) = rng.next().checked_rem(model.chunks.len() as u64) else { return };
    let chunk = &model.chunks[index as usize];
    let index = index as usize;
    read(&format!("chunk {index}"), schunk.decompress_chunk(index), &chunk.data);
    if let Some(lens) = &chunk.blocks {
        assert_eq!(schunk.chunk_info(index).unwrap().blocksize, None);
        let number = rng.below(lens.len() as u64) as usize;
        let start: usize = lens[..number].iter().sum();
        let what = format!("block {number} of chunk {index}");
        read(&what, schunk.block(index, number), &chunk.data[start..start + lens[number]]);
        assert_eq!(schunk.block(index, lens.len()).unwrap_err().kind(), ErrorKind::OutOfBounds);
    }
    let start = rng.below(content.len() as u64 + 1);
    let mut stream = SChunkReader::new(schunk);
    assert_eq!(stream.seek(SeekFrom::Start(start)).unwrap(), start);
    let mut some = vec![0; (content.len() - start as usize).min(200)];
    stream.read_exact(&mut some).unwrap();
    assert_same(&some, &content[start as usize..][..some.len()], "a stream");
}

/// Ranges and single items of a type of the typesize.
fn typed<T, const N: usize>(schunk: &SChunk, content: &[u8], make: fn([u8; N]) -> T, rng: &mut Rng)
where
    T: blosc2::Element + PartialEq + std::fmt::Debug,
{
    let items = super::data::to_items(content, make);
    let len = items.len() as u64;
    let numbers: Vec<u64> = (0..rng.below(6).min(len)).map(|_| rng.below(len)).collect();
    let found = schunk.read::<T>(&numbers).unwrap_or_else(|error| panic!("gather: {error}"));
    let expected: Vec<T> = numbers.iter().map(|&number| items[number as usize]).collect();
    assert_eq!(found, expected, "items {numbers:?}");
    let start = rng.below(len + 1);
    let stop = start + rng.below(len - start + 1);
    let found = schunk.read::<T>(start..stop).unwrap_or_else(|error| panic!("items: {error}"));
    assert_eq!(found, items[start as usize..stop as usize], "items {start}..{stop}");
    let mut into = items[..found.len()].to_vec();
    schunk.read_into(start..stop, &mut into).unwrap();
    assert_eq!(into, found, "items {start}..{stop} in memory that was there");
    let step = 1 + rng.below(5) as usize;
    let found = schunk.read::<T>((start..stop).step_by(step)).unwrap();
    let expected = items[start as usize..stop as usize].iter().copied().step_by(step);
    assert_eq!(found, expected.collect::<Vec<T>>(), "items {start}..{stop} with step {step}");
}

/// All of the content, by every way to it.
fn all(schunk: &SChunk, model: &Model, content: &[u8]) {
    assert_same(&schunk.read::<u8>(..).unwrap(), content, "all bytes");
    let mut stream = Vec::new();
    SChunkReader::new(schunk).read_to_end(&mut stream).unwrap();
    assert_same(&stream, content, "the stream");
    let forward = schunk.iter_chunks::<u8>();
    assert_eq!(forward.len(), model.chunks.len());
    for (index, (found, expected)) in forward.zip(&model.chunks).enumerate() {
        assert_same(&found.unwrap(), &expected.data, &format!("chunk {index} of all"));
    }
    for (found, expected) in schunk.iter_chunks::<u8>().rev().zip(model.chunks.iter().rev()) {
        assert_same(&found.unwrap(), &expected.data, "a chunk from the back");
    }
    for (index, expected) in model.chunks.iter().enumerate() {
        let chunk = schunk.chunk(index).unwrap();
        assert_same(&chunk.decompress::<u8>().unwrap(), &expected.data, "a chunk as it is stored");
    }
}

/// The properties that a failed change must not modify.
pub(crate) fn facts(schunk: &SChunk) -> impl PartialEq + std::fmt::Debug + use<> {
    let infos: Vec<_> =
        (0..schunk.nchunks()).map(|index| schunk.chunk_info(index).unwrap()).collect();
    let sizes = (schunk.nbytes(), schunk.cbytes(), schunk.frame_len().unwrap());
    (
        sizes,
        schunk.chunksize(),
        schunk.offsets().unwrap(),
        infos,
        schunk.info().format_version,
        schunk.info().cparams,
    )
}
