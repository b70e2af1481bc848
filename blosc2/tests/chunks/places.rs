//! The context that closures receive: the position of the chunk, and the shapes of its array.

use std::sync::{Arc, Mutex, OnceLock};

use blosc2::super_chunk::VariableBlocks;
use blosc2::user_defined::{BoxError, ChunkBlock, CodecInfo, FilterBlock, UserCodec};
use blosc2::{
    CParams, Chunk, Codec, Compressor, DParams, Decompressor, ErrorKind, Filter, NDArray,
    OpenOptions, SChunk, Selection, Special, SplitMode, Target, Threads,
};

const BLOCK: usize = 64;

fn lz4() -> CParams {
    CParams::new().codec(Codec::Lz4).blocksize(BLOCK)
}

/// Sets each item to its index in the super-chunk.
fn number(block: &mut ChunkBlock<'_>) -> Result<(), BoxError> {
    let start = block.schunk_offset().ok_or("the place is not known")?;
    for (item, number) in block.output_as::<u64>()?.iter_mut().zip(start / 8..) {
        *item = number;
    }
    Ok(())
}

/// The indices of the chunk and of the block, the offsets of the block in the chunk and in the super-chunk, and
/// the block size.
type Place = (Option<usize>, usize, usize, Option<u64>, Option<usize>);

/// A closure that copies the data and records the positions of its calls.
type Noting = Box<dyn Fn(&mut ChunkBlock<'_>) -> Result<(), BoxError> + Send + Sync>;

fn noting() -> (Arc<Mutex<Vec<Place>>>, Noting) {
    let places = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&places);
    let note = move |block: &mut ChunkBlock<'_>| {
        let (index, offset) = (block.index(), block.offset());
        let place = (block.chunk_index(), index, offset, block.schunk_offset(), block.blocksize());
        seen.lock().unwrap().push(place);
        let input = block.input();
        block.output().copy_from_slice(input);
        Ok(())
    };
    (places, Box::new(note))
}

fn taken(places: &Mutex<Vec<Place>>) -> Vec<Place> {
    let mut places = std::mem::take(&mut *places.lock().unwrap());
    places.sort_unstable();
    places.dedup(); // A block that does not compress is passed twice.
    places
}

/// The places of the blocks of a chunk of `nbytes` bytes.
fn blocks_of(chunk: usize, start: usize, nbytes: usize) -> Vec<Place> {
    let at = |at| (Some(chunk), at / BLOCK, at, Some((start + at) as u64), Some(BLOCK));
    (0..nbytes).step_by(BLOCK).map(at).collect()
}

#[test]
fn prefilters_know_where_a_chunk_goes() {
    for threads in [1, 4] {
        for filters in [&[Filter::Shuffle][..], &[Filter::Delta]] {
            let params = lz4().filters(filters).threads(Threads::new(threads));
            let mut schunk = SChunk::in_memory::<u64>(&params).unwrap();
            let (places, note) = noting();
            schunk.set_cparams(schunk.info().cparams.prefilter(note)).unwrap();
            let items: Vec<u64> = (0..20).map(|item| item * 1001).collect();
            for chunk in 0..3 {
                schunk.append(&items).unwrap();
                assert_eq!(taken(&places), blocks_of(chunk, chunk * 160, 160));
            }
            schunk.replace(1, &items).unwrap();
            assert_eq!(taken(&places), blocks_of(1, 160, 160));
            schunk.insert(2, &items).unwrap();
            assert_eq!(taken(&places), blocks_of(2, 320, 160));
            // From here on chunks have different sizes.
            schunk.insert(1, &items[..9]).unwrap();
            assert_eq!(taken(&places), blocks_of(1, 160, 72));
            schunk.replace(3, &items).unwrap();
            assert_eq!(taken(&places), blocks_of(3, 160 + 72 + 160, 160));
            schunk.append(&items).unwrap();
            assert_eq!(taken(&places), blocks_of(5, 4 * 160 + 72, 160));
            let error = schunk.insert(9, &items).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::OutOfBounds);
        }
    }
}

#[test]
fn what_prefilters_make_of_their_places_is_stored() {
    let mut schunk = SChunk::in_memory::<u64>(&lz4()).unwrap();
    schunk.set_cparams(schunk.info().cparams.prefilter(number)).unwrap();
    for len in [20, 20, 20, 7] {
        schunk.append(&vec![0u64; len]).unwrap();
    }
    assert_eq!(schunk.read::<u64>(..).unwrap(), (0..67).collect::<Vec<_>>());
    schunk.set_cparams(schunk.info().cparams).unwrap();
    schunk.write(30, &[9u64; 5]).unwrap();
    assert_eq!(schunk.read::<u64>(28..37).unwrap(), [28, 29, 9, 9, 9, 9, 9, 35, 36]);
}

#[test]
fn prefilters_of_blocks_of_variable_length_know_their_places() {
    let mut schunk = OpenOptions::new().cparams(lz4()).open(Target::memory()).unwrap();
    let (places, note) = noting();
    schunk.set_cparams(schunk.info().cparams.prefilter(note)).unwrap();
    let words: [&[u8]; 3] = [b"one", b"twenty", b"three"];
    let expected = |chunk: usize, start: u64| {
        let place =
            |index, offset: usize| (Some(chunk), index, offset, Some(start + offset as u64), None);
        [place(0, 0), place(1, 3), place(2, 9)]
    };
    schunk.append(VariableBlocks(&words)).unwrap();
    assert_eq!(taken(&places), expected(0, 0));
    schunk.append(VariableBlocks(&words)).unwrap();
    assert_eq!(taken(&places), expected(1, 14));
    schunk.replace(0, VariableBlocks(&words)).unwrap();
    assert_eq!(taken(&places), expected(0, 0));
    schunk.set_cparams(schunk.info().cparams).unwrap();

    let (places, note) = noting();
    schunk.set_dparams(schunk.info().dparams.postfilter(note));
    assert_eq!(schunk.block(1, 2).unwrap(), b"three");
    assert_eq!(taken(&places), expected(1, 14)[2..]);
}

/// Super-chunks with chunks of all kinds: compressed, stored, special; of equal and of different sizes.
fn kinds_of_super_chunks() -> Vec<SChunk> {
    let noise: Vec<u64> =
        (0..40u64).map(|item| (item + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect();
    let mut all = Vec::new();
    for params in [lz4(), lz4().filters(&[Filter::Delta]), lz4().level(0)] {
        let mut schunk = SChunk::in_memory::<u64>(&params).unwrap();
        schunk.append(&[7u64; 40]).unwrap();
        schunk.append(&noise).unwrap();
        schunk.append(&Chunk::zeros::<u64>(40, &params).unwrap()).unwrap();
        schunk.append(&Chunk::repeat(&[5u64], 40, &params).unwrap()).unwrap();
        schunk.append(&(0..40u64).collect::<Vec<_>>()).unwrap();
        let mut variable = schunk.try_clone().unwrap();
        variable.insert(1, &[3u64; 11]).unwrap();
        variable.append(&[4u64; 50]).unwrap();
        all.extend([schunk, variable]);
    }
    let mut zeros = SChunk::in_memory::<u64>(&lz4()).unwrap();
    zeros.fill(Special::Zeros, 190, 40).unwrap();
    all.push(zeros);
    all
}

#[test]
fn postfilters_know_where_a_chunk_is() {
    for mut schunk in kinds_of_super_chunks() {
        for threads in [1, 4] {
            schunk.set_dparams(DParams::new().threads(Threads::new(threads)));
            schunk.set_dparams(schunk.info().dparams.postfilter(number));
            let len = schunk.len();
            let expected: Vec<u64> = (0..len).collect();
            assert_eq!(schunk.read::<u64>(..).unwrap(), expected);
            for range in [3..5, 37..43, 39..40, 60..61, 100..170, len - 1..len] {
                let found: Vec<u64> = schunk.read(range.clone()).unwrap();
                assert_eq!(found, range.collect::<Vec<_>>());
            }
            let numbers = [len - 1, 0, 41, 90, 120];
            assert_eq!(schunk.read::<u64>(&numbers).unwrap(), numbers);
            let chunks = schunk.iter_chunks::<u64>().map(Result::unwrap);
            assert_eq!(chunks.collect::<Vec<_>>().concat(), expected);

            let (places, note) = noting();
            schunk.set_dparams(schunk.info().dparams.postfilter(note));
            schunk.decompress_chunk::<u64>(2).unwrap();
            let start = if schunk.info().has_variable_chunks { 51 * 8 } else { 80 * 8 };
            let nbytes = 40 * 8;
            let mut expected = blocks_of(2, start, nbytes);
            for (found, expected) in taken(&places).iter_mut().zip(&mut expected) {
                // Special chunks that the index describes have no blocks: the library chooses.
                if found.4 == Some(nbytes) {
                    *found = *expected;
                }
                assert_eq!(found, expected);
            }
        }
    }
}

#[test]
fn a_chunk_by_itself_has_no_place() {
    let (places, note) = noting();
    let mut compressor = Compressor::new(lz4().prefilter(note)).unwrap();
    let items: Vec<u64> = (0..20).collect();
    let chunk = compressor.compress(&items).unwrap();
    let expected = [0, 1, 2].map(|index| (None, index, index * BLOCK, None, Some(BLOCK)));
    assert_eq!(taken(&places), expected);
    let (places, note) = noting();
    let mut decompressor = Decompressor::new(DParams::new().postfilter(note)).unwrap();
    assert_eq!(decompressor.decompress::<u64>(&chunk).unwrap(), items);
    assert_eq!(taken(&places), expected);

    let mut compressor = Compressor::new(lz4().prefilter(number)).unwrap();
    assert_eq!(compressor.compress(&items).unwrap_err().kind(), ErrorKind::Callback);
}

/// The context that a codec or a filter received: the index of the chunk, the block size, and the shapes of the array.
type Told = (Option<usize>, Option<usize>, Option<[Vec<u64>; 3]>);

static CODEC_TOLD: Mutex<[Vec<Told>; 2]> = Mutex::new([Vec::new(), Vec::new()]);
static FILTER_TOLD: Mutex<[Vec<Told>; 2]> = Mutex::new([Vec::new(), Vec::new()]);

fn shapes(array: Option<&blosc2::array::Geometry>) -> Option<[Vec<u64>; 3]> {
    array
        .map(|array| [array.shape(), array.chunk_shape(), array.block_shape()].map(<[u64]>::to_vec))
}

/// A codec that keeps half of each byte, for data whose other halves are zero.
struct Halves;

impl UserCodec for Halves {
    fn compress(
        &self,
        input: &[u8],
        output: &mut [u8],
        info: &CodecInfo<'_>,
    ) -> Result<Option<usize>, BoxError> {
        assert_eq!(info.meta, 3);
        let told = (info.chunk_index, info.blocksize, shapes(info.array));
        CODEC_TOLD.lock().unwrap()[0].push(told);
        for (to, pair) in output.iter_mut().zip(input.chunks(2)) {
            *to = pair[0] | pair.get(1).map_or(0, |second| second << 4);
        }
        Ok(Some(input.len().div_ceil(2)).filter(|&len| len <= output.len()))
    }

    fn decompress(
        &self,
        input: &[u8],
        output: &mut [u8],
        info: &CodecInfo<'_>,
    ) -> Result<(), BoxError> {
        assert_eq!(info.meta, 3);
        let told = (info.chunk_index, info.blocksize, shapes(info.array));
        CODEC_TOLD.lock().unwrap()[1].push(told);
        for (pair, from) in output.chunks_mut(2).zip(input) {
            pair[0] = from & 0xF;
            pair.iter_mut().skip(1).for_each(|second| *second = from >> 4);
        }
        Ok(())
    }
}

fn note_filter(block: &mut FilterBlock<'_>, which: usize) -> Result<(), BoxError> {
    let told = (block.chunk_index(), block.blocksize(), shapes(block.array()));
    FILTER_TOLD.lock().unwrap()[which].push(told);
    let input = block.input();
    block.output().copy_from_slice(input);
    Ok(())
}

fn halves() -> CParams {
    static PARAMS: OnceLock<CParams> = OnceLock::new();
    PARAMS
        .get_or_init(|| {
            let codec = Codec::register(230, "halves", Halves).unwrap();
            let forward = |block: &mut FilterBlock<'_>| note_filter(block, 0);
            let backward = |block: &mut FilterBlock<'_>| note_filter(block, 1);
            let filter = Filter::register(230, "notes", (forward, backward)).unwrap();
            CParams::new().codec(codec).codec_meta(3).filters(&[filter])
        })
        .clone()
}

/// The contexts that both received since the last call, when compressing or decompressing.
fn told(which: usize) -> Vec<Told> {
    let take = |all: &Mutex<[Vec<Told>; 2]>| {
        let mut told = std::mem::take(&mut all.lock().unwrap()[which]);
        told.sort_unstable();
        told.dedup();
        told
    };
    let (codec, filter) = (take(&CODEC_TOLD), take(&FILTER_TOLD));
    assert_eq!(codec, filter);
    codec
}

/// One test, since both share the record of their contexts.
#[test]
fn codecs_and_filters_know_the_shapes_of_an_array() {
    let items: Vec<u8> = (0..10 * 14).map(|item| item % 16).collect();
    for threads in [1, 3] {
        let params = halves().threads(Threads::new(threads));
        let of = |chunks: &[usize], shape: [u64; 2]| -> Vec<Told> {
            let shapes = [shape.to_vec(), vec![5, 9], vec![4, 8]].map(|shape| shape.to_vec());
            chunks.iter().map(|&chunk| (Some(chunk), Some(32), Some(shapes.clone()))).collect()
        };
        let builder = NDArray::builder().chunk_shape([5, 9]).block_shape([4, 8]).cparams(&params);
        let mut array = builder.clone().from_slice(&items, [10, 14]).unwrap();
        assert_eq!(told(0), of(&[0, 1, 2, 3], [10, 14]));
        assert!(array.read::<Vec<u8>>(..).unwrap() == items);
        assert_eq!(told(1), of(&[0, 1, 2, 3], [10, 14]));
        array.write(&[0..5, 9..14], &[3u8; 25]).unwrap();
        array.write([9, 9], 4u8).unwrap();
        assert_eq!((told(0), told(1)), (of(&[1, 3], [10, 14]), of(&[3], [10, 14])));

        // Chunks that a change of the shape creates have the new shape.
        array.append(0, &[1u8; 2 * 14]).unwrap();
        assert_eq!(told(0), of(&[4, 5], [12, 14]));
        array.insert(1, 0, &[2u8; 12 * 9]).unwrap();
        assert_eq!(told(0), of(&[0, 3, 6], [12, 23]));
        told(1);
        assert_eq!(array.item::<u8>(&[9, 18]).unwrap(), 4);
        assert_eq!(told(1), of(&[5], [12, 23]));

        // The super-chunk of an array has its shapes, and so does a saved one.
        let bytes = array.schunk().to_cframe().unwrap();
        let mut schunk = SChunk::open(bytes).unwrap();
        let chunk = schunk.decompress_chunk::<u8>(4).unwrap();
        assert_eq!(told(1), of(&[4], [12, 23]));
        let mut again = OpenOptions::new()
            .write(true)
            .cparams(&params)
            .open(schunk.to_cframe().unwrap())
            .unwrap();
        again.replace(4, &chunk).unwrap();
        assert_eq!(told(0), of(&[4], [12, 23]));
        schunk = schunk.recompress(&params).unwrap();
        let all: Vec<usize> = (0..9).collect();
        assert_eq!((told(0), told(1)), (of(&all, [12, 23]), of(&all, [12, 23])));
        assert_eq!(schunk.decompress_chunk::<u8>(4).unwrap(), chunk);
        told(1);
    }

    // Without an array.
    let none = |chunk, blocksize| vec![(chunk, blocksize, None)];
    let params = halves().blocksize(32);
    let chunk = Compressor::new(&params).unwrap().compress(&items).unwrap();
    assert!(chunk.decompress::<u8>().unwrap() == items);
    assert_eq!((told(0), told(1)), (none(None, Some(32)), none(None, Some(32))));
    let words: [&[u8]; 2] = [&items[..100], &items[..50]];
    let chunk = Compressor::new(&params).unwrap().compress_blocks(&words).unwrap();
    assert!(chunk.block(1).unwrap() == words[1]);
    assert_eq!((told(0), told(1)), (none(None, None), none(None, None)));
    let mut schunk = SChunk::in_memory::<u8>(&params).unwrap();
    schunk.append(&items).unwrap();
    schunk.append(&items).unwrap();
    assert!(schunk.decompress_chunk::<u8>(1).unwrap() == items);
    let both = [none(Some(0), Some(32)), none(Some(1), Some(32))].concat();
    assert_eq!((told(0), told(1)), (both, none(Some(1), Some(32))));
    // Automatic blocks.
    let chunk = Compressor::new(&halves()).unwrap().compress(&items).unwrap();
    let blocksize = chunk.blocksize();
    assert!(chunk.decompress::<u8>().unwrap() == items);
    assert_eq!((told(0), told(1)), (none(None, blocksize), none(None, blocksize)));
}

/// A filter that depends on the block shape only, like an image codec.
fn transpose(block: &mut FilterBlock<'_>) -> Result<(), BoxError> {
    let array = block.array().ok_or("it needs an array")?;
    let [rows, columns] = *array.block_shape() else { return Err("it needs 2 dimensions".into()) };
    let (rows, columns) = (rows as usize, columns as usize);
    let input = block.input_as::<u16>()?;
    let output = block.output_as::<u16>()?;
    for row in 0..rows {
        for column in 0..columns {
            output[column * rows + row] = input[row * columns + column];
        }
    }
    Ok(())
}

fn transpose_back(block: &mut FilterBlock<'_>) -> Result<(), BoxError> {
    let array = block.array().ok_or("it needs an array")?;
    let [rows, columns] = *array.block_shape() else { return Err("it needs 2 dimensions".into()) };
    let (rows, columns) = (rows as usize, columns as usize);
    let input = block.input_as::<u16>()?;
    let output = block.output_as::<u16>()?;
    for row in 0..rows {
        for column in 0..columns {
            output[row * columns + column] = input[column * rows + row];
        }
    }
    Ok(())
}

#[test]
fn a_filter_can_work_by_the_block_shape() {
    let filter = Filter::register(231, "transpose", (transpose, transpose_back)).unwrap();
    let items: Vec<u16> = (0..200 * 300).map(|at| (at % 300 * 7) as u16).collect();
    let params = CParams::new().codec(Codec::Lz4).filters(&[filter]).split(SplitMode::Never);
    let builder = NDArray::builder().chunk_shape([100, 100]).block_shape([50, 20]).cparams(&params);
    let array = builder.from_slice(&items, [200, 300]).unwrap();
    assert!(array.read::<Vec<u16>>(..).unwrap() == items);
    assert!(array.read::<Vec<u16>>(&[7..150, 33..34]).unwrap() == vec![33 * 7; 143]);

    let error = blosc2::compress(&items, &params).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Callback);
    assert!(error.to_string().contains("it needs an array"), "{error}");
    let bytes = array.schunk().chunk(0).unwrap().into_bytes();
    assert_eq!(blosc2::decompress::<u16>(&bytes).unwrap_err().kind(), ErrorKind::Callback);
}

/// Sets each item of a two-dimensional array to 1000 times its row plus its column.
fn coordinates(block: &mut ChunkBlock<'_>) -> Result<(), BoxError> {
    let array = block.array().ok_or("it needs an array")?;
    let chunk = block.chunk_index().ok_or("it needs a super-chunk")?;
    assert_eq!(block.schunk_offset(), Some((chunk * array.chunk_len() + block.offset()) as u64));
    let ranges = array.block_items(chunk as u64, block.index() as u64)?;
    let width = array.block_shape()[1] as usize;
    let output = block.output_as::<u32>()?;
    for (row, items) in ranges[0].clone().zip(output.chunks_mut(width)) {
        for (column, item) in ranges[1].clone().zip(items) {
            *item = row as u32 * 1000 + column as u32;
        }
    }
    Ok(())
}

fn expected(rows: u32, columns: u32) -> Vec<u32> {
    (0..rows).flat_map(|row| (0..columns).map(move |column| row * 1000 + column)).collect()
}

#[test]
fn closures_around_arrays_know_the_indices_of_items() {
    let builder = NDArray::builder().chunk_shape([6, 9]).block_shape([4, 4]);
    for threads in [1, 4] {
        let (params, dparams) = (CParams::new().codec(Codec::Lz4), DParams::new());
        let params = params.threads(Threads::new(threads));
        let dparams = dparams.threads(Threads::new(threads));
        let builder = builder.clone().cparams(params).options(OpenOptions::new().dparams(dparams));
        let mut array = builder.clone().zeros::<u32>(&[18, 30]).unwrap();
        array.set_cparams(array.info().cparams.prefilter(coordinates)).unwrap();
        array.write(&[0..18, 0..30], &[1u32; 540]).unwrap();
        array.append(0, &[1u32; 12 * 30]).unwrap();
        array.set_cparams(array.info().cparams).unwrap();
        assert!(array.read::<Vec<u32>>(..).unwrap() == expected(30, 30));

        let mut array = builder.zeros::<u32>(&[20, 30]).unwrap();
        array.set_dparams(array.info().dparams.postfilter(coordinates));
        assert!(array.read::<Vec<u32>>(..).unwrap() == expected(20, 30));
        assert_eq!(array.item::<u32>(&[13, 29]).unwrap(), 13_029);
        assert_eq!(
            array.read::<Vec<u32>>(Selection::points(&[[19u64, 1], [0, 29]])).unwrap(),
            [19_001, 29]
        );
    }
}

/// Another handle changes the array in between.
#[test]
fn closures_know_the_shape_as_it_is_now() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("array.b2nd");
    let builder = NDArray::builder()
        .chunk_shape([4, 4])
        .block_shape([2, 4])
        .options(OpenOptions::new().locking(true));
    drop(builder.target(&path).zeros::<u32>(&[8, 8]).unwrap());
    let options = OpenOptions::new().write(true).locking(true);
    let mut reader = NDArray::open_with(&path, &options).unwrap();
    reader.set_dparams(reader.info().dparams.postfilter(coordinates));
    assert!(reader.read::<Vec<u32>>(..).unwrap() == expected(8, 8));
    let mut writer = NDArray::open_with(&path, &options).unwrap();
    // The item is in the chunk 2 of 4, then in the chunk 3 of 6, then in the chunk 1 of 2.
    for shape in [[8, 12], [8, 3]] {
        writer.resize(shape).unwrap();
        assert_eq!(reader.item::<u32>(&[5, 2]).unwrap(), 5002);
    }
    reader.refresh().unwrap();
    assert!(reader.read::<Vec<u32>>(..).unwrap() == expected(8, 3));
    writer.resize([8, 8]).unwrap();
    reader.refresh().unwrap();
    assert!(reader.read::<Vec<u32>>(..).unwrap() == expected(8, 8));
}

/// Closures are parameters of a handle: what is stored, and what copies and summaries say, does not depend on them.
#[test]
fn closures_run_neither_in_copies_nor_in_metadata() {
    let add = |block: &mut ChunkBlock<'_>| -> Result<(), BoxError> {
        let input = block.input_as::<u64>()?;
        for (to, from) in block.output_as::<u64>()?.iter_mut().zip(input) {
            *to = from + 1;
        }
        Ok(())
    };
    let options =
        OpenOptions::new().cparams(lz4().prefilter(add)).dparams(DParams::new().postfilter(add));
    let options = options.typesize(8).vlmeta("variable", [7; 1000]);
    let mut schunk = options.open(Target::memory()).unwrap();
    schunk.append(&[0u64; 40]).unwrap();
    let params = lz4().level(9).prefilter(add);
    schunk.vlmeta_mut().with_cparams(&params).set("compressed", [7; 1000]).unwrap();
    assert_eq!(schunk.read::<u64>(..).unwrap(), [2; 40]);
    assert_eq!(schunk.vlmeta().get("variable").unwrap().unwrap(), [7; 1000]);
    assert_eq!(schunk.vlmeta().get("compressed").unwrap().unwrap(), [7; 1000]);

    let mut copies =
        vec![schunk.try_clone().unwrap(), SChunk::open_rw(schunk.to_cframe().unwrap()).unwrap()];
    // Recompression reads as the handle does, and stores what it reads.
    let mut read = schunk.recompress(params).unwrap();
    assert_eq!(read.read::<u64>(..).unwrap(), [2; 40]);
    read.append(&[5u64; 40]).unwrap();
    assert_eq!(read.read::<u64>(40..).unwrap(), [5; 40]);
    for copy in &mut copies {
        assert_eq!(copy.read::<u64>(..).unwrap(), [1; 40]);
        copy.append(&[5u64; 40]).unwrap();
        assert_eq!(copy.read::<u64>(40..).unwrap(), [5; 40]);
    }

    // Closures of a builder run for a new array, and for its handle.
    let folder = tempfile::tempdir().unwrap();
    let builder = NDArray::builder().cparams(CParams::new().codec(Codec::Lz4).prefilter(add));
    for target in [Target::memory(), Target::from(&folder.path().join("a.b2nd"))] {
        let builder = builder.clone().chunk_shape(20).target(target);
        let mut array = builder.from_slice(&[0u64; 20], 20).unwrap();
        array.append(0, &[10u64; 20]).unwrap();
        assert_eq!(array.read::<Vec<u64>>(..).unwrap(), [[1; 20], [11; 20]].concat());
        let copy = NDArray::builder().copy(&array).unwrap();
        assert_eq!(copy.read::<Vec<u64>>(..).unwrap(), [[1; 20], [11; 20]].concat());
        // The parameters of a summary have no closures.
        array.set_cparams(array.info().cparams).unwrap();
        array.append(0, &[20u64; 20]).unwrap();
        assert_eq!(array.read::<Vec<u64>>(40..).unwrap(), [20; 20]);
    }
}
