//! Chunks that are copied between arrays as they are, and chunks that are recompressed.

use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use std::{fs, thread};

use blosc2::user_defined::{BoxError, ChunkBlock, CodecInfo, FilterBlock, UserCodec, UserFilter};
use blosc2::{
    CParams, Check, Codec, Error, ErrorKind, Filter, NDArray, OpenOptions, RawItems, Special,
    SplitMode, Target, Threads,
};

use blosc2_format::b2nd::Meta;
use blosc2_format::chunk::Params;
use blosc2_format::frame::{self, Metalayer};

use crate::common::{Rng, dictionary_codecs, kind, repeats};

/// The filter tells the source of a chunk: the first array, the added one, or recompression.
const FIRST: Filter = Filter::Shuffle;
const SECOND: Filter = Filter::Bitshuffle;
const MADE: Filter = Filter::Delta;

/// Items that make any chunk compressible.
type Item = [u64; 24];

fn filtered(filter: Filter) -> CParams {
    CParams::new().codec(Codec::Lz4).filters(&[filter])
}

fn filter_of(array: &NDArray, index: usize) -> Filter {
    array.schunk().chunk(index).unwrap().filters()[0]
}

fn bytes_of(array: &NDArray, index: usize) -> Vec<u8> {
    array.schunk().chunk(index).unwrap().into_bytes()
}

fn all_chunks(array: &NDArray) -> Vec<Vec<u8>> {
    (0..array.schunk().nchunks()).map(|index| bytes_of(array, index)).collect()
}

/// An array whose chunks are not special.
fn made(filter: Filter, shape: &[u64], chunks: &[u64], blocks: &[u64], first: u64) -> NDArray {
    let builder =
        NDArray::builder().chunk_shape(chunks).block_shape(blocks).cparams(filtered(filter));
    let side = shape.iter().max().copied().unwrap_or(1);
    let item = |index: &[u64]| first + index.iter().fold(1, |all, at| all * side + at);
    builder.from_fn(shape, |index| -> Item { [item(index); 24] }).unwrap()
}

/// The source of a chunk of a joined array: 0 or 1 for a copied chunk of that source, 2 for a recompressed one.
fn expected_source(
    [left, right]: [&NDArray; 2],
    joined: &NDArray,
    axis: usize,
    index: usize,
) -> usize {
    let ranges = joined.chunk(index).unwrap().ranges().to_vec();
    let joint = left.shape()[axis];
    [(left, 0), (right, joint)]
        .iter()
        .position(|&(source, start)| {
            let is_cut = source.chunk_shape() == joined.chunk_shape()
                && source.block_shape() == joined.block_shape();
            is_cut
                && source.chunks(..).unwrap().any(|chunk| {
                    let mut there = chunk.ranges().to_vec();
                    there[axis] = there[axis].start + start..there[axis].end + start;
                    there == ranges
                })
        })
        .unwrap_or(2)
}

#[test]
fn joined_arrays_have_the_chunks_of_their_sources_where_those_fit() {
    let mut counts = [0; 3];
    for seed in 0..repeats(300) as u64 {
        let mut rng = Rng(seed);
        let ndim = 1 + rng.below(3) as usize;
        let axis = rng.below(ndim as u64) as usize;
        let chunks: Vec<u64> = (0..ndim).map(|_| 1 + rng.below(4)).collect();
        let blocks: Vec<u64> = chunks.iter().map(|&side| 1 + rng.below(side)).collect();
        let shape: Vec<u64> = chunks.iter().map(|&side| 1 + rng.below(3 * side)).collect();
        let mut other = shape.clone();
        other[axis] = rng.below(9);
        let mut first = shape.clone();
        if rng.below(3) > 0 {
            // The joint is at the end of a chunk.
            first[axis] = chunks[axis] * rng.below(3);
        }
        let mut other_chunks = chunks.clone();
        if rng.below(5) == 0 {
            other_chunks[axis] += 1;
        }
        let mut left = made(FIRST, &first, &chunks, &blocks, 100);
        let right = made(SECOND, &other, &other_chunks, &blocks, 5000);
        let what =
            format!("seed {seed}: {first:?} and {other:?} along {axis}, {chunks:?} {blocks:?}");

        let threads = Threads::new([1, 3][rng.below(2) as usize]);
        let explicit = filtered(MADE).threads(threads);
        left.set_cparams(&explicit).unwrap();
        let joined = NDArray::builder().concatenate([&left, &right], axis).unwrap();
        assert_eq!(
            (joined.chunk_shape(), joined.block_shape()),
            (&chunks[..], &blocks[..]),
            "{what}"
        );
        assert_eq!(joined.info().cparams.filters, [MADE], "{what}");
        let again =
            NDArray::builder().cparams(&explicit).concatenate([&left, &right], axis).unwrap();
        let mut grown = NDArray::builder().copy(&left).unwrap();
        assert_eq!(all_chunks(&grown), all_chunks(&left), "{what}");
        grown.append(axis, &right).unwrap();
        assert_eq!(grown.shape(), joined.shape(), "{what}");
        let mut plain = NDArray::builder().copy(&left).unwrap();
        plain.append(axis, &right.read::<Vec<Item>>(..).unwrap()).unwrap();
        let items = plain.read::<Vec<Item>>(..).unwrap();
        for array in [&joined, &again, &grown] {
            assert_eq!(array.read::<Vec<Item>>(..).unwrap(), items, "{what}");
        }
        for index in 0..joined.schunk().nchunks() {
            let source = expected_source([&left, &right], &joined, axis, index);
            counts[source] += 1;
            // Recompressed chunks have the filter of the array.
            for array in [&joined, &grown] {
                let expected = [FIRST, SECOND, MADE][source];
                assert_eq!(filter_of(array, index), expected, "{what}, {index}");
            }
            assert_eq!(filter_of(&again, index), MADE, "{what}, {index}");
        }
    }
    assert!(counts.iter().all(|&count| count >= repeats(300) / 15), "{counts:?}");
}

#[test]
fn parts_of_arrays_keep_the_chunks_that_they_have_whole() {
    let array = made(SECOND, &[10, 9], &[4, 3], &[2, 2], 0);
    let builder = || NDArray::builder().chunk_shape([4, 3]).block_shape([2, 2]);
    let view = |rows, columns| array.view().slice([rows, columns]).unwrap();
    // Parts do not inherit the parameters of the array; unset ones are the defaults.
    let kept = |copy: &NDArray| {
        (0..copy.schunk().nchunks()).filter(|&index| filter_of(copy, index) == SECOND).count()
    };
    for (rows, columns, expected) in [
        (0..10, 0..9, 9),
        (4..10, 3..9, 4),
        (0..8, 0..9, 6),
        // The last row of chunks is cut, or has other padding.
        (4..9, 0..9, 3),
        (0..7, 0..3, 1),
        (1..9, 0..9, 0),
        (0..8, 1..7, 0),
    ] {
        let view = view(rows, columns);
        let copy = builder().copy(view.clone()).unwrap();
        assert_eq!(kept(&copy), expected, "{view:?}");
        assert_eq!(copy.read::<Vec<Item>>(..).unwrap(), view.read::<Vec<Item>>(..).unwrap());
        let blocks =
            NDArray::builder().chunk_shape([4, 3]).block_shape([2, 3]).copy(view.clone()).unwrap();
        assert_eq!(blocks.read::<Vec<Item>>(..).unwrap(), view.read::<Vec<Item>>(..).unwrap());
        assert!(
            (0..blocks.schunk().nchunks()).all(|at| bytes_of(&blocks, at) != bytes_of(&array, at))
        );
    }
    let turned = made(SECOND, &[4, 4], &[2, 2], &[2, 2], 0);
    let transposed = turned.view().transpose();
    let builder = || NDArray::builder().chunk_shape([2, 2]).block_shape([2, 2]);
    let copy = builder().copy(transposed.clone()).unwrap();
    assert_eq!(kept(&copy), 0);
    assert_eq!(copy.read::<Vec<Item>>(..).unwrap(), transposed.read::<Vec<Item>>(..).unwrap());
    let rows = turned.view().slice(([1, 0], ..)).unwrap();
    let copy = builder().copy(rows.clone()).unwrap();
    assert_eq!(copy.read::<Vec<Item>>(..).unwrap(), rows.read::<Vec<Item>>(..).unwrap());
}

#[test]
fn nothing_is_lost_twice() {
    let items: Vec<f32> = (0..40).map(|at| 1.0 + at as f32 / 7.0).collect();
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let lossy = CParams::new().codec(Codec::Lz4).filters(&[Filter::TruncPrec(6), Filter::Shuffle]);
    let builder = NDArray::builder().chunk_shape([10]).block_shape([5]).cparams(&lossy);
    let array = builder.from_slice(&items, [40]).unwrap();
    let mut copy = NDArray::builder().copy(&array).unwrap();
    assert_eq!(copy.info().cparams.filters, lossy.filters);
    assert_eq!(all_chunks(&copy), all_chunks(&array));
    copy.set_cparams(copy.info().cparams.prefilter(
        move |block: &mut ChunkBlock<'_>| -> Result<(), BoxError> {
            counted.fetch_add(1, Ordering::Relaxed);
            let input = block.input();
            block.output().copy_from_slice(input);
            Ok(())
        },
    ))
    .unwrap();
    // A prefilter applies to all added data.
    copy.append(0, &array).unwrap();
    assert!(calls.swap(0, Ordering::Relaxed) > 0);
    copy.set_cparams(copy.info().cparams).unwrap();
    copy.append(0, &array).unwrap();
    assert_eq!(calls.load(Ordering::Relaxed), 0);
    assert_eq!(all_chunks(&copy)[8..], all_chunks(&array));
}

#[test]
fn what_a_postfilter_returns_is_copied() {
    let mut array =
        NDArray::builder().chunk_shape([4]).from_slice(&[1u8, 2, 3, 4, 5], [5]).unwrap();
    array.set_dparams(array.info().dparams.postfilter(
        |block: &mut ChunkBlock<'_>| -> Result<(), BoxError> {
            let input: Vec<u8> = block.input().iter().map(|byte| byte + 10).collect();
            block.output().copy_from_slice(&input);
            Ok(())
        },
    ));
    let items = [11u8, 12, 13, 14, 15];
    assert_eq!(array.read::<Vec<u8>>(..).unwrap(), items);
    let copy = NDArray::builder().copy(&array).unwrap();
    assert_eq!(copy.read::<Vec<u8>>(..).unwrap(), items);
    let mut other = NDArray::builder().chunk_shape([4]).zeros::<u8>(&[4]).unwrap();
    other.append(0, &array).unwrap();
    assert_eq!(other.read::<Vec<u8>>(4..9).unwrap(), items);
}

/// Special chunks, dictionaries, filters that use other blocks or the shape, and large items.
#[test]
fn chunks_of_every_kind_are_copied_as_they_are() {
    let (shape, chunks, blocks) = ([13u64, 10], [5u64, 4], [3u64, 2]);
    let builder = || NDArray::builder().chunk_shape(chunks).block_shape(blocks);
    let items: Vec<u32> = (0..130).map(|at| at * at).collect();
    let mut arrays = vec![
        builder().zeros::<f32>(&shape).unwrap(),
        builder().dtype("<f4", 4).special(Special::Nan, &shape).unwrap(),
        builder().dtype("<f4", 4).special(Special::Uninit, &shape).unwrap(),
        builder().full(7.5f32, shape).unwrap(),
        builder().dtype("|V300", 300).full(RawItems(&[3; 300]), shape).unwrap(),
        builder().dtype("|V300", 300).from_slice(RawItems(&[5; 300 * 130]), shape).unwrap(),
        builder().dtype(">f8", 8).special(Special::Nan, shape).unwrap(),
    ];
    let mut params = vec![
        CParams::new().codec(Codec::Lz4).filters(&[Filter::Delta, Filter::Shuffle]),
        CParams::new().codec(Codec::Lz4).filters(&[Filter::Ndcell(2), Filter::Shuffle]),
        CParams::new().codec(Codec::Lz4).filters(&[Filter::Shuffle, Filter::Bytedelta(0)]),
        CParams::new().level(0),
    ];
    params.extend(
        dictionary_codecs().into_iter().map(|codec| CParams::new().codec(codec).dictionary(true)),
    );
    for params in params {
        arrays.push(builder().cparams(params).from_slice(&items, shape).unwrap());
    }
    for array in arrays {
        let what = format!("{}", array.info());
        let bytes = array.read::<RawItems>(..).unwrap().0;
        let folder = tempfile::tempdir().unwrap();
        let paths = [folder.path().join("file"), folder.path().join("directory")];
        drop(NDArray::builder().target(&paths[0]).copy(&array).unwrap());
        drop(
            NDArray::builder()
                .target(Target::from(&paths[1]).directory(true))
                .copy(&array)
                .unwrap(),
        );
        for path in paths {
            let copy = NDArray::open(&path).unwrap();
            assert_eq!(all_chunks(&copy), all_chunks(&array), "{what}");
            assert_eq!(copy.read::<RawItems>(..).unwrap().0, bytes, "{what}");
            let cbytes = array.schunk().cbytes();
            assert_eq!(copy.schunk().cbytes(), cbytes, "{what}");
        }
        let twice = NDArray::builder().concatenate([&array, &array], 1).unwrap();
        let mut grown = NDArray::builder().copy(&array).unwrap();
        grown.append(1, &array).unwrap();
        let (one, two) =
            (twice.read::<RawItems>(..).unwrap().0, grown.read::<RawItems>(..).unwrap().0);
        assert!(one == two && one.len() == 2 * bytes.len(), "{what}");
    }
}

/// Chunks of a file may differ from the array in block size or typesize.
#[test]
fn chunks_of_other_sizes_are_compressed_again() {
    let items: Vec<u8> = (0..1024u32).flat_map(|at| (at / 3).to_le_bytes()).collect();
    let meta = Meta {
        shape: vec![1024],
        chunks: vec![512],
        blocks: vec![128],
        dtype: Some("<u4".to_owned()),
        dtype_format: 0,
    };
    let meta = Metalayer { name: "b2nd".to_owned(), content: meta.to_bytes().unwrap() };
    let params = Params { codec: 1, typesize: 4, blocksize: Some(512), ..Params::default() };
    for (typesize, blocksize, is_kept) in [(4, 512, true), (4, 1024, false), (2, 512, false)] {
        let file = Cursor::new(Vec::new());
        let mut writer = frame::Writer::new(file, params, std::slice::from_ref(&meta)).unwrap();
        let chunk = CParams::new().codec(Codec::Lz4).typesize(typesize).blocksize(blocksize);
        let chunk = chunk.filters(&[SECOND]);
        for data in items.chunks(2048) {
            writer.push_chunk(&blosc2::compress(data, &chunk).unwrap()).unwrap();
        }
        let bytes = writer.finish().unwrap().into_inner();
        let schunk = OpenOptions::new().check(Check::Header).open(bytes).unwrap();
        let array = NDArray::from_schunk(schunk).unwrap();
        assert_eq!(array.read::<RawItems>(..).unwrap().0, items, "{typesize}, {blocksize}");
        let mut copy = NDArray::builder().copy(&array).unwrap();
        copy.append(0, &array).unwrap();
        assert_eq!(
            copy.read::<RawItems>(..).unwrap().0,
            items.repeat(2),
            "{typesize}, {blocksize}"
        );
        for index in 0..4 {
            let chunk = copy.schunk().chunk(index).unwrap();
            assert_eq!((chunk.typesize(), chunk.blocksize()), (4, Some(512)));
            assert_eq!(chunk.filters() == [SECOND], is_kept, "{typesize}, {blocksize}");
        }
    }
}

/// The position of the lowest byte of an item.
const LOW: usize = if cfg!(target_endian = "little") { 0 } else { 3 };

/// Keeps the lowest byte of each item.
struct LowBytes(Arc<AtomicUsize>);

impl UserCodec for LowBytes {
    fn compress(
        &self,
        input: &[u8],
        output: &mut [u8],
        _: &CodecInfo,
    ) -> Result<Option<usize>, BoxError> {
        let len = input.len() / 4;
        let Some(output) = output.get_mut(..len) else { return Ok(None) };
        input.iter().skip(LOW).step_by(4).zip(output).for_each(|(from, to)| *to = *from);
        Ok(Some(len))
    }

    fn decompress(&self, input: &[u8], output: &mut [u8], _: &CodecInfo) -> Result<(), BoxError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        let lows = output.iter_mut().skip(LOW).step_by(4);
        input.iter().zip(lows).for_each(|(from, to)| *to = *from);
        Ok(())
    }
}

/// Their codec may depend on the index of the chunk.
#[test]
fn chunks_of_user_defined_codecs_are_recompressed() {
    let calls = Arc::new(AtomicUsize::new(0));
    let codec = Codec::register(211, "low_bytes", LowBytes(Arc::clone(&calls))).unwrap();
    let cparams = CParams::new().codec(codec).filters(&[]).split(SplitMode::Never);
    let items: Vec<u32> = (0..100).collect();
    let builder = NDArray::builder().chunk_shape([25]).block_shape([25]).cparams(cparams);
    let array = builder.from_slice(&items, [100]).unwrap();
    let mut copy = NDArray::builder().concatenate([&array, &array], 0).unwrap();
    copy.append(0, &array).unwrap();
    assert_eq!(calls.load(Ordering::Relaxed), 12);
    assert_eq!(copy.read::<Vec<u32>>(..).unwrap(), items.repeat(3));
}

#[test]
fn the_metalayers_of_the_first_array_are_copied() {
    let builder =
        || NDArray::builder().chunk_shape([4]).options(OpenOptions::new().meta("fixed", b"first"));
    let mut first = builder().from_slice(&[1u8, 2, 3, 4], [4]).unwrap();
    first.vlmeta_mut().set("variable", b"of the first").unwrap();
    let mut second = NDArray::builder()
        .options(OpenOptions::new().meta("other", b"x"))
        .from_slice(&[5u8], [1])
        .unwrap();
    second.vlmeta_mut().set("variable", b"of the second").unwrap();
    let joined = NDArray::builder().concatenate([&first, &second], 0).unwrap();
    assert_eq!(joined.read::<Vec<u8>>(..).unwrap(), [1, 2, 3, 4, 5]);
    assert_eq!(joined.meta().names(), ["b2nd", "fixed"]);
    assert_eq!(joined.meta().get("fixed").unwrap().unwrap(), b"first");
    assert_eq!(joined.vlmeta().get("variable").unwrap().unwrap(), b"of the first");
    let own = NDArray::builder()
        .options(OpenOptions::new().meta("fixed", b"own"))
        .concatenate([&first, &second], 0)
        .unwrap();
    assert_eq!(own.meta().get("fixed").unwrap().unwrap(), b"own");
    // A part has none.
    let part = first.view().slice(0..2).unwrap();
    let joined = NDArray::builder().concatenate([part, second.view()], 0).unwrap();
    assert_eq!((joined.meta().names(), joined.vlmeta().len()), (vec!["b2nd".to_owned()], 0));
    first.append(0, &second).unwrap();
    assert_eq!(first.meta().names(), ["b2nd", "fixed"]);
    assert_eq!(first.vlmeta().get("variable").unwrap().unwrap(), b"of the first");
}

#[test]
fn what_does_not_fit_is_not_appended() {
    let mut array = made(FIRST, &[4, 6], &[2, 3], &[2, 3], 0);
    let before = array.schunk().to_cframe().unwrap();
    let other = |shape: &[u64]| NDArray::builder().zeros::<Item>(shape).unwrap();
    let of = |kind, result: blosc2::Result<()>| assert_eq!(self::kind(result), kind);
    of(ErrorKind::InvalidArgument, array.append(2, &other(&[4, 6])));
    of(ErrorKind::InvalidArgument, array.append(0, &other(&[4, 5])));
    of(ErrorKind::InvalidArgument, array.append(0, &other(&[6])));
    of(ErrorKind::InvalidArgument, array.append(0, &other(&[])));
    let signed = NDArray::builder().zeros::<[i64; 24]>(&[4, 6]).unwrap();
    of(ErrorKind::TypeMismatch, array.append(0, &signed));
    let wide = NDArray::builder().chunk_shape([2, 2]).zeros::<Item>(&[100, 6]).unwrap();
    array.append(0, wide.view().slice([0..0, 0..6]).unwrap()).unwrap();
    assert!(array.schunk().to_cframe().unwrap() == before);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("read.b2nd");
    drop(NDArray::builder().target(&path).copy(&array).unwrap());
    let mut read = NDArray::open(&path).unwrap();
    of(ErrorKind::ReadOnly, read.append(0, &array));
}

fn locked(path: &Path) -> NDArray {
    NDArray::open_with(path, &OpenOptions::new().write(true).locking(true)).unwrap()
}

/// Creates a file of `count` rows.
fn rows(path: &Path, count: u64) {
    let array = made(FIRST, &[count, 3], &[2, 3], &[2, 3], 0);
    drop(NDArray::builder().target(path).copy(&array).unwrap());
}

#[test]
fn an_array_is_not_appended_to_its_own_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("own.b2nd");
    rows(&path, 4);
    for is_locking in [false, true] {
        let options = OpenOptions::new().write(true).locking(is_locking);
        let mut array = NDArray::open_with(&path, &options).unwrap();
        let other = NDArray::open_with(&path, &OpenOptions::new().locking(is_locking)).unwrap();
        assert_eq!(kind(array.append(0, &other)), ErrorKind::InvalidArgument);
        assert_eq!(array.shape(), [4, 3]);
        // A copy in memory is accepted.
        array.append(0, &NDArray::builder().copy(&other).unwrap()).unwrap();
        assert!(array.shape()[0] > 4);
        array.resize([4, 3]).unwrap();
    }
}

/// Two writers that read each other's files do not deadlock.
#[test]
fn writers_append_the_arrays_of_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for name in ["one", "two"] {
        rows(&path(name), 2);
    }
    let (sender, receiver) = std::sync::mpsc::channel();
    for (own, other) in [("one", "two"), ("two", "one")] {
        let (own, other, sender) = (path(own), path(other), sender.clone());
        thread::spawn(move || {
            let (mut array, other) = (locked(&own), locked(&other));
            for _ in 0..40 {
                // The first two rows only.
                array.append(0, other.view().slice((0..2, ..)).unwrap()).unwrap();
            }
            sender.send(array.shape().to_vec()).unwrap();
        });
    }
    for _ in 0..2 {
        let shape =
            receiver.recv_timeout(Duration::from_secs(120)).expect("they wait for each other");
        assert_eq!(shape, [82, 3]);
    }
    for name in ["one", "two"] {
        let items = NDArray::open(path(name)).unwrap().read::<Vec<Item>>(..).unwrap();
        assert!(items.chunks(6).all(|rows| *rows == items[..6]));
    }
}

#[test]
fn a_file_stays_as_it_was_when_an_array_cannot_be_appended() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("array.b2nd");
    rows(&path, 5);
    let before = fs::read(&path).unwrap();
    let mut array = NDArray::open_rw(&path).unwrap();
    let mut broken = made(SECOND, &[6, 3], &[2, 3], &[2, 3], 0);
    broken.set_dparams(broken.info().dparams.postfilter(
        |block: &mut ChunkBlock<'_>| -> Result<(), BoxError> {
            if block.index() > 0 || block.input().len() > 4 {
                Err("on purpose".into())
            } else {
                Ok(())
            }
        },
    ));
    assert_eq!(kind(array.append(0, &broken)), ErrorKind::Callback);
    assert_eq!(array.shape(), [5, 3]);
    assert!(fs::read(&path).unwrap() == before);
    broken.set_dparams(broken.info().dparams);
    array.append(0, &broken).unwrap();
    assert_eq!(array.shape(), [11, 3]);
}

/// Flips the bits of each byte by the index of its chunk.
#[derive(Debug)]
struct ByIndex;

impl UserFilter for ByIndex {
    fn forward(&self, block: &mut FilterBlock<'_>) -> Result<(), BoxError> {
        let index = block.chunk_index().ok_or("of no super-chunk")? as u8;
        let flipped: Vec<u8> = block.input().iter().map(|byte| byte ^ index).collect();
        block.output().copy_from_slice(&flipped);
        Ok(())
    }

    fn backward(&self, block: &mut FilterBlock<'_>) -> Result<(), BoxError> {
        self.forward(block)
    }
}

#[test]
fn chunks_whose_filter_goes_by_their_index_are_not_copied_as_they_are() {
    let filter = Filter::register(238, "by_index", ByIndex).unwrap();
    let items: Vec<u8> = (0..3000u32).map(|item| (item / 7) as u8).collect();
    let builder = || NDArray::builder().chunk_shape(1000).block_shape(500);
    let params = CParams::new().filters(&[filter]);
    let array = builder().cparams(&params).from_slice(&items, items.len()).unwrap();
    let end = array.view().slice(1000..).unwrap();
    let mut copy = builder().copy(end.clone()).unwrap();
    assert_eq!(copy.read::<Vec<u8>>(..).unwrap(), items[1000..]);
    copy.append(0, end).unwrap();
    assert_eq!(copy.read::<Vec<u8>>(..).unwrap(), [&items[1000..], &items[1000..]].concat());
}

/// Copies whose chunks need the same blocks of the source are read in boxes of several chunks, as far as the memory allows.
#[test]
fn copies_in_other_chunks_are_equal_with_any_memory() {
    let (shape, chunks, blocks) = ([11u64, 13, 17], [4u64, 5, 6], [2u64, 3, 4]);
    let items = |[a, b, c]: [u64; 3]| (a * 10_000 + b * 100 + c) as u32;
    let array = NDArray::builder().chunk_shape(chunks).block_shape(blocks).from_fn(shape, items);
    let array = array.unwrap();
    let part = array.view().slice((1..10, .., (2..16).step_by(3))).unwrap();
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        for view in [array.view(), part.clone()] {
            let view = view.permute(&order).unwrap();
            let expected: Vec<u32> = view.read(..).unwrap();
            for chunks in [[3u64, 2, 5], [1, 17, 17], [17, 1, 1]] {
                let cut = [0, 1, 2].map(|axis: usize| chunks[axis].min(view.shape()[axis]));
                for memory in [0, 5_000, 1 << 20] {
                    let reported = Arc::new(AtomicU64::new(0));
                    let count = Arc::clone(&reported);
                    let builder = NDArray::builder().chunk_shape(cut).max_memory(memory);
                    let builder = builder.progress(move |done, _| {
                        assert_eq!(count.fetch_add(1, Ordering::Relaxed) + 1, done);
                        Ok::<(), Error>(())
                    });
                    let copy = builder.copy(view.clone()).unwrap();
                    let what = format!("{order:?}, {cut:?}, {memory}");
                    assert_eq!(copy.shape(), view.shape(), "{what}");
                    assert_eq!(copy.read::<Vec<u32>>(..).unwrap(), expected, "{what}");
                    let nchunks = copy.schunk().nchunks() as u64;
                    assert_eq!(reported.load(Ordering::Relaxed), nchunks, "{what}");
                }
            }
        }
    }
}
