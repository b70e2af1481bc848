//! User-defined codecs, filters, prefilters, postfilters and tuners.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

use blosc2::library::Library;
use blosc2::user_defined::{
    BoxError, ChunkBlock, CodecInfo, FilterBlock, TunerInput, TunerOutcome, UserCodec, UserTuner,
};
use blosc2::{
    CParams, Check, Chunk, ChunkRef, Codec, Compressor, DParams, Decompressor, ErrorKind, Filter,
    NDArray, OpenOptions, SChunk, SplitMode, Threads, Tuner,
};

const THREADS: [usize; 3] = [1, 2, 8];

/// Numbers that compress, but not to runs.
fn numbers(len: usize) -> Vec<u32> {
    (0..len as u32).map(|i| i.wrapping_mul(7) % 50_000).collect()
}

/// A codec that omits zero bytes: a bitmap byte for each 8 bytes, followed by the bytes that are not zero.
struct WithoutZeros;

impl UserCodec for WithoutZeros {
    fn compress(
        &self,
        input: &[u8],
        output: &mut [u8],
        info: &CodecInfo,
    ) -> Result<Option<usize>, BoxError> {
        assert!(output.len() <= input.len() && output.iter().all(|&byte| byte == 0));
        assert!((1..=9).contains(&info.level));
        let mut len = 0;
        for part in input.chunks(8) {
            let bits = part.iter().enumerate().map(|(at, &b)| u8::from(b != 0) << at).sum::<u8>();
            for byte in [bits].into_iter().chain(part.iter().copied().filter(|&b| b != 0)) {
                let Some(to) = output.get_mut(len) else { return Ok(None) };
                *to = byte;
                len += 1;
            }
        }
        Ok(Some(len))
    }

    fn decompress(
        &self,
        input: &[u8],
        output: &mut [u8],
        info: &CodecInfo,
    ) -> Result<(), BoxError> {
        assert!(output.iter().all(|&byte| byte == 0));
        assert_eq!(info.meta, 7);
        let mut input = input.iter();
        for part in output.chunks_mut(8) {
            let bits = input.next().ok_or("cut short")?;
            for (at, to) in part.iter_mut().enumerate() {
                if bits >> at & 1 == 1 {
                    *to = *input.next().ok_or("cut short")?;
                }
            }
        }
        Ok(())
    }
}

fn without_zeros() -> Codec {
    static CODEC: OnceLock<Codec> = OnceLock::new();
    *CODEC.get_or_init(|| Codec::register(160, "without_zeros", WithoutZeros).unwrap())
}

/// A filter: exclusive or with the parameter and with the position.
fn scramble(block: &mut FilterBlock<'_>) -> Result<(), BoxError> {
    let (input, meta) = (block.input(), block.meta());
    assert!(block.output().iter().all(|&byte| byte == 0));
    for (at, (to, from)) in block.output().iter_mut().zip(input).enumerate() {
        *to = from ^ meta ^ (at / 64) as u8;
    }
    Ok(())
}

fn scrambled(meta: u8) -> Filter {
    static CODE: OnceLock<u8> = OnceLock::new();
    let register = || Filter::register(160, "scramble", (scramble, scramble)).unwrap().code();
    Filter::Other { code: *CODE.get_or_init(register), meta }
}

fn lz4() -> CParams {
    CParams::new().codec(Codec::Lz4).blocksize(4096)
}

/// Compresses and decompresses with `threads` threads.
fn round_trip(source: &[u32], params: &CParams, threads: usize) {
    let params = params.clone().threads(Threads::new(threads));
    let mut schunk = SChunk::in_memory::<u32>(&params).unwrap();
    schunk.set_dparams(DParams::new().threads(Threads::new(threads)));
    schunk.append(source).unwrap();
    assert!(schunk.decompress_chunk::<u32>(0).unwrap() == source, "{params:?}");
    let chunk = blosc2::compress(source, &params).unwrap();
    assert!(blosc2::decompress::<u32>(&chunk).unwrap() == source, "{params:?}");
}

#[test]
fn user_defined_codecs_compress() {
    let codec = without_zeros();
    assert!(codec.is_available());
    assert_eq!(codec.to_string(), "without_zeros");
    assert_eq!("Without_Zeros".parse::<Codec>().unwrap(), codec);
    for len in [0, 1, 7, 8, 1000, 100_000, 100_001] {
        for filters in [&[][..], &[Filter::Shuffle], &[Filter::Delta, Filter::Shuffle]] {
            for threads in THREADS {
                let params = lz4().codec(codec).codec_meta(7).filters(filters);
                if len > 0 {
                    round_trip(&numbers(len), &params, threads);
                }
            }
        }
    }
    let params = CParams::new().codec(codec).codec_meta(7);
    let chunk = blosc2::compress(&numbers(100_000), &params).unwrap();
    assert!(chunk.len() < 300_000, "{}", chunk.len());
}

/// The second version of a codec. It still reads the output of the first one, which has no mark in front.
struct Marked;

const MARK: u8 = 0xA5;

impl UserCodec for Marked {
    fn compress(
        &self,
        input: &[u8],
        output: &mut [u8],
        info: &CodecInfo,
    ) -> Result<Option<usize>, BoxError> {
        assert_eq!(info.version, 2);
        let Some((mark, output)) = output.split_first_mut() else { return Ok(None) };
        *mark = MARK;
        Ok(WithoutZeros.compress(input, output, info)?.map(|len| len + 1))
    }

    fn decompress(
        &self,
        input: &[u8],
        output: &mut [u8],
        info: &CodecInfo,
    ) -> Result<(), BoxError> {
        let input = match (info.version, input.split_first()) {
            (1, _) => input,
            (2, Some((&MARK, input))) => input,
            (version, _) => return Err(format!("version {version}").into()),
        };
        WithoutZeros.decompress(input, output, info)
    }

    fn version(&self) -> u8 {
        2
    }

    fn library(&self) -> Option<Library> {
        Some(Library::new("marks", "2.1"))
    }
}

#[test]
fn codecs_have_a_version_that_chunks_keep() {
    let codec = Codec::register(164, "marked", Marked).unwrap();
    assert_eq!(codec.library(), Some(Library::new("marks", "2.1")));
    assert_eq!((without_zeros().library(), Codec::Other(249).library()), (None, None));
    let items = numbers(10_000);
    let params = lz4().codec(codec).codec_meta(7);
    for threads in THREADS {
        round_trip(&items, &params, threads);
    }
    let chunk = Compressor::new(&params).unwrap().compress(&items).unwrap();
    assert_eq!((chunk.codec_version(), chunk.as_bytes()[1]), (2, 2));
    assert!(chunk.items::<u32>(4000..4003).unwrap() == items[4000..4003]);
    let mut compressor = Compressor::new(&params).unwrap();
    let blocks = compressor.compress_blocks(&[&items[..300], &items[..900]]).unwrap();
    assert_eq!((blocks.codec_version(), blocks.as_bytes()[1]), (2, 2));
    assert_eq!(blocks.block(1).unwrap().len(), 3600);
    // Also where nothing is compressed, as in C.
    let stored = compressor.compress(&[7u32; 3]).unwrap();
    assert_eq!((stored.is_stored(), stored.codec_version()), (true, 2));
    let mut schunk = SChunk::in_memory::<u32>(&params).unwrap();
    schunk.append(&items).unwrap();
    assert_eq!(schunk.chunk(0).unwrap().codec_version(), 2);

    // A chunk of the first version, and one of a future version.
    let other = |version| {
        let mut old = blosc2::compress(&items, &params.clone().codec(without_zeros())).unwrap();
        assert_eq!(old[1], 1);
        (old[1], old[22]) = (version, 164);
        blosc2::decompress::<u32>(&old)
    };
    assert!(other(1).unwrap() == items);
    let error = other(3).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Callback);
    assert!(error.to_string().ends_with("the codec marked failed: version 3"), "{error}");
    let plain = blosc2::compress(&items, &lz4()).unwrap();
    assert_eq!(ChunkRef::new(&plain).unwrap().codec_version(), 1);
}

#[test]
fn user_defined_filters_are_applied() {
    assert_eq!(scrambled(0).to_string(), "scramble");
    assert_eq!(scrambled(9).to_string(), "scramble:9");
    assert_eq!("scramble:9".parse::<Filter>().unwrap(), scrambled(9));
    for len in [1, 7, 8, 1000, 100_000, 100_001] {
        for filters in [
            &[scrambled(1)][..],
            &[scrambled(1), Filter::Shuffle],
            &[Filter::Shuffle, scrambled(3)],
            &[Filter::Delta, scrambled(3)],
            &[scrambled(1), Filter::Bitshuffle, scrambled(2), scrambled(200)],
        ] {
            for threads in THREADS {
                match blosc2::compress(&numbers(len), &lz4().filters(filters)) {
                    Err(error) if !blosc2_sys::HARDENED => {
                        assert_eq!(error.kind(), ErrorKind::Unsupported);
                    }
                    _ => round_trip(&numbers(len), &lz4().filters(filters), threads),
                }
            }
        }
    }
}

/// A prefilter and postfilter for any pipeline, which depends on the position in the chunk.
fn mask(block: &mut ChunkBlock<'_>) -> Result<(), BoxError> {
    let (input, offset) = (block.input(), block.offset());
    assert!(block.output().iter().all(|&byte| byte == 0));
    for (at, (to, from)) in block.output().iter_mut().zip(input).enumerate() {
        *to = from ^ mask_at(offset + at);
    }
    Ok(())
}

fn mask_at(at: usize) -> u8 {
    (at / 100) as u8
}

fn masked(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().enumerate().map(|(at, byte)| byte ^ mask_at(at)).collect()
}

/// Data of all kinds, with the parameters that lead to all kinds of chunks.
fn kinds_of_chunks() -> Vec<(Vec<u8>, CParams)> {
    let bytes: Vec<u8> = numbers(10_000).iter().flat_map(|number| number.to_le_bytes()).collect();
    let noise: Vec<u8> = (0..50_000u64)
        .map(|i| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(17) >> 40) as u8)
        .collect();
    let four = || lz4().typesize(4);
    let mut kinds = vec![
        (bytes.clone(), four()),
        (bytes[..39_999].to_vec(), four()),
        (bytes[..20].to_vec(), four()),
        (bytes[..31].to_vec(), four()),
        (bytes[..4097].to_vec(), four()),
        (Vec::new(), four()),
        (bytes.clone(), four().level(0)),
        (noise, four()),
        (vec![0; 40_000], four()),
        (bytes.clone(), four().filters(&[])),
        (bytes.clone(), four().filters(&[Filter::Delta, Filter::Shuffle])),
        (bytes.clone(), four().codec(Codec::BloscLz).filters(&[Filter::Delta])),
        (bytes.clone(), four().filters(&[scrambled(5), Filter::Shuffle])),
        (bytes.clone(), four().codec(without_zeros()).codec_meta(7)),
        (masked(&[0; 40_000]), four()),
    ];
    if blosc2_sys::HARDENED {
        let three = [Filter::Shuffle, Filter::Bitshuffle, Filter::Shuffle];
        kinds.extend([
            (bytes.clone(), CParams::new().codec(Codec::Lz4).typesize(4)),
            (bytes.clone(), four().filters(&three)),
            (bytes.clone(), four().dictionary(true)),
            (bytes.clone(), four().codec(Codec::Lz4Hc).dictionary(true).blocksize(2048)),
            (bytes, four().blosc1(true)),
        ]);
    }
    kinds
}

#[test]
fn prefilters_make_what_is_compressed() {
    for (bytes, params) in kinds_of_chunks() {
        for threads in THREADS {
            let params = params.clone().threads(Threads::new(threads));
            let mut compressor = Compressor::new(params.clone().prefilter(mask)).unwrap();
            for _ in 0..2 {
                let chunk = compressor.compress(&bytes).unwrap();
                let found: Vec<u8> = chunk.decompress().unwrap();
                assert!(found == masked(&bytes), "{params:?}, {} bytes", bytes.len());
            }
            if bytes.is_empty() {
                continue;
            }
            let room = blosc2::compress_bound(bytes.len());
            let mut target = vec![0xAA; room];
            let len = compressor.compress_into(&bytes, &mut target).unwrap();
            assert!(blosc2::decompress::<u8>(&target[..len]).unwrap() == masked(&bytes));
            // The same chunk as from data that was masked beforehand.
            if params.blocksize.is_some() && threads == 1 {
                let chunk = blosc2::compress(&masked(&bytes), &params).unwrap();
                assert!(chunk == target[..len], "{params:?}, {} bytes", bytes.len());
            }
        }
    }
}

/// Without it the ends of the blocks are unknown to the closure.
#[test]
fn a_prefilter_with_delta_needs_a_block_size() {
    let params = CParams::new().codec(Codec::Lz4).filters(&[Filter::Delta]);
    let mut compressor = Compressor::new(params.clone().prefilter(mask)).unwrap();
    let error = compressor.compress(&numbers(1000)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
}

#[test]
fn postfilters_make_what_is_read() {
    for (bytes, params) in kinds_of_chunks() {
        for threads in THREADS {
            let chunk = Chunk::new(blosc2::compress(&bytes, &params).unwrap()).unwrap();
            check_postfilter(&chunk, &bytes, threads);
        }
    }
}

#[test]
fn postfilters_know_chunks_without_data_and_blocks_of_any_length() {
    let chunks = [
        (Chunk::zeros::<u32>(10_000, &lz4()).unwrap(), vec![0; 40_000]),
        (Chunk::uninit::<u32>(10_000, &lz4()).unwrap(), vec![0; 40_000]),
        (Chunk::nans::<f32>(10_000, &lz4()).unwrap(), f32::NAN.to_ne_bytes().repeat(10_000)),
        (
            Chunk::repeat(&[7u16, 9], 10_000, &lz4()).unwrap(),
            [7u16, 9].map(u16::to_ne_bytes).concat().repeat(10_000),
        ),
    ];
    for (chunk, bytes) in &chunks {
        check_postfilter(chunk, bytes, 8);
    }
    let parts: Vec<Vec<u8>> =
        (1..40).map(|len| numbers(len * 7).iter().map(|&n| n as u8).collect()).collect();
    let blocks: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
    for threads in THREADS {
        let params = CParams::new().codec(Codec::Lz4).threads(Threads::new(threads));
        let mut compressor = Compressor::new(&params).unwrap();
        let chunk = compressor.compress_blocks(&blocks).unwrap();
        check_postfilter(&chunk, &parts.concat(), threads);
        let mut compressor = Compressor::new(params.clone().prefilter(mask)).unwrap();
        let chunk = compressor.compress_blocks(&blocks).unwrap();
        assert!(chunk.decompress::<u8>().unwrap() == masked(&parts.concat()));
    }
}

fn check_postfilter(chunk: &Chunk, bytes: &[u8], threads: usize) {
    let expected = masked(bytes);
    let params = DParams::new().threads(Threads::new(threads));
    let mut decompressor = Decompressor::new(params.clone().postfilter(mask)).unwrap();
    assert!(decompressor.decompress::<u8>(chunk).unwrap() == expected, "{chunk:?}");
    for start in [0, 1, 4, 4095, 4096, 8192, 30_001] {
        for len in [0, 1, 4, 4096, 9000] {
            let range = start..start + len;
            if range.end <= bytes.len() {
                let found: Vec<u8> = decompressor.items(chunk, range.clone()).unwrap();
                assert!(found == expected[range.clone()], "{chunk:?}: {range:?}");
            }
        }
    }
    if bytes.is_empty() {
        return;
    }
    let blocks = decompressor.blocks(chunk).unwrap();
    assert!(blocks.as_bytes() == expected, "{chunk:?}");
    let mut start = 0;
    for (index, expected) in blocks.iter().enumerate() {
        assert!(decompressor.block(chunk, index).unwrap() == *expected, "{chunk:?}: {index}");
        let wanted: Vec<bool> = (0..blocks.len()).map(|block| block == index).collect();
        let mut target = vec![0x55; bytes.len()];
        decompressor.decompress_masked(chunk, &wanted, &mut target).unwrap();
        for (at, (found, given)) in target.iter().zip(&masked(bytes)).enumerate() {
            let inside = (start..start + expected.len()).contains(&at);
            assert_eq!(found, if inside { given } else { &0x55 }, "{chunk:?}: {index}");
        }
        start += expected.len();
        if index > 3 {
            break;
        }
    }
}

#[test]
fn closures_see_items_and_their_place() {
    static SEEN: [AtomicUsize; 10] = [const { AtomicUsize::new(0) }; 10];
    let note = |block: &mut ChunkBlock<'_>| -> Result<(), BoxError> {
        assert_eq!(block.typesize(), 4);
        let input = block.input_as::<u32>()?;
        block.output_as::<u32>()?.copy_from_slice(input);
        assert_eq!(block.offset(), block.index() * 4096);
        SEEN[block.index()].fetch_add(block.output().len(), Ordering::Relaxed);
        Ok(())
    };
    let params = lz4().threads(Threads::new(8));
    let mut compressor = Compressor::new(params.clone().prefilter(note)).unwrap();
    let items = numbers(10_000);
    assert!(compressor.compress(&items).unwrap().decompress::<u32>().unwrap() == items);
    let seen: Vec<usize> = SEEN.iter().map(|len| len.load(Ordering::Relaxed)).collect();
    assert_eq!(seen, [[4096; 9].as_slice(), &[40_000 - 9 * 4096]].concat());

    // Seven bytes are not whole items of four bytes.
    let fails = |block: &mut ChunkBlock<'_>| block.input_as::<u32>().map(drop);
    let mut compressor = Compressor::new(lz4().typesize(1).prefilter(fails)).unwrap();
    let error = compressor.compress(&[1u8; 7]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Callback);
    let source = error.get_ref().unwrap().downcast_ref::<blosc2::Error>().unwrap();
    assert_eq!(source.kind(), ErrorKind::TypeMismatch);
}

/// An intended error of a closure.
#[derive(Debug)]
struct OnPurpose(usize);

impl std::fmt::Display for OnPurpose {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "on purpose {}", self.0)
    }
}

impl std::error::Error for OnPurpose {}

/// How the closures of the next tests behave: 0 is without faults.
static MOOD: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

fn misbehave(which: usize) -> Result<(), BoxError> {
    match MOOD[which].load(Ordering::Relaxed) {
        1 => Err(Box::new(OnPurpose(which))),
        2 => panic!("in a mood"),
        3 => std::panic::panic_any(OnPurpose(which)),
        _ => Ok(()),
    }
}

struct Moody;

impl UserCodec for Moody {
    fn compress(
        &self,
        input: &[u8],
        output: &mut [u8],
        info: &CodecInfo,
    ) -> Result<Option<usize>, BoxError> {
        misbehave(0)?;
        match MOOD[0].load(Ordering::Relaxed) {
            4 => Ok(Some(output.len() + 1)),
            5 => Ok(Some(0)),
            _ => WithoutZeros.compress(input, output, info),
        }
    }

    fn decompress(
        &self,
        input: &[u8],
        output: &mut [u8],
        info: &CodecInfo,
    ) -> Result<(), BoxError> {
        misbehave(1)?;
        WithoutZeros.decompress(input, output, info)
    }
}

/// Asserts that `work` fails because of a closure in each mood except the first, and succeeds afterwards.
fn check_moods(which: usize, moods: usize, mut work: impl FnMut() -> blosc2::Result<()>) {
    for mood in (1..=moods).chain([1]) {
        MOOD[which].store(mood, Ordering::Relaxed);
        let error = work().expect_err(&format!("mood {mood}"));
        MOOD[which].store(0, Ordering::Relaxed);
        assert_eq!(error.kind(), ErrorKind::Callback, "{error}");
        let (expected, source) = match mood {
            1 => ("failed: on purpose", true),
            2 => ("panicked: in a mood", false),
            3 => ("panicked: without a message", false),
            _ => ("returned a length of", true),
        };
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(error.get_ref().is_some(), source, "{error}");
        if mood == 1 {
            assert!(error.get_ref().unwrap().is::<OnPurpose>());
        }
        work().unwrap();
    }
}

/// One test, since the closures share their moods.
#[test]
fn errors_and_panics_in_closures_are_errors_of_the_call() {
    let codec = Codec::register(161, "moody", Moody).unwrap();
    let forward = |block: &mut FilterBlock<'_>| misbehave(0).and_then(|()| scramble(block));
    let backward = |block: &mut FilterBlock<'_>| misbehave(1).and_then(|()| scramble(block));
    let filter = Filter::register(161, "moody", (forward, backward)).unwrap();
    let items = numbers(10_000);
    for threads in THREADS {
        let dparams = DParams::new().threads(Threads::new(threads));
        let params = lz4().threads(Threads::new(threads)).split(SplitMode::Never);
        for (params, moods) in [
            (params.clone().codec(codec).codec_meta(7).filters(&[]), 5),
            (params.clone().filters(&[filter, Filter::Shuffle]), 3),
            (params.clone().filters(&[Filter::Delta, filter]), 3),
        ] {
            let mut compressor = Compressor::new(&params).unwrap();
            check_moods(0, moods, || compressor.compress(&items).map(drop));
            let chunk = compressor.compress(&items).unwrap();
            let mut decompressor = Decompressor::new(&dparams).unwrap();
            let mut read = || {
                let found: Vec<u32> = decompressor.decompress(&chunk)?;
                assert!(found == items, "{params:?}");
                decompressor.items::<u32>(&chunk, 1000..2000).map(drop)
            };
            check_moods(1, 3, &mut read);

            let mut schunk = SChunk::in_memory::<u32>(&params).unwrap();
            check_moods(0, moods, || schunk.append(&items));
            schunk.set_dparams(dparams.clone());
            check_moods(1, 3, || schunk.decompress_chunk::<u32>(0).map(drop));
            let array =
                NDArray::builder().chunk_shape([50, 40]).block_shape([20, 20]).cparams(params);
            let build = || array.clone().from_slice(&items, [100, 100]);
            check_moods(0, moods, || build().map(drop));
            let array = build().unwrap();
            check_moods(1, 3, || array.read::<Vec<u32>>(&[10..90, 3..77]).map(drop));
        }
        let moody = |which| {
            move |block: &mut ChunkBlock<'_>| -> Result<(), BoxError> {
                misbehave(which)?;
                mask(block)
            }
        };
        for params in [params.clone(), params.filters(&[Filter::Delta])] {
            let mut compressor = Compressor::new(params.clone().prefilter(moody(0))).unwrap();
            check_moods(0, 3, || compressor.compress(&items).map(drop));
            let chunk = Chunk::new(blosc2::compress(&items, &params).unwrap()).unwrap();
            let mut decompressor = Decompressor::new(dparams.clone().postfilter(moody(1))).unwrap();
            check_moods(1, 3, || decompressor.decompress::<u32>(&chunk).map(drop));
            check_moods(1, 3, || decompressor.items::<u32>(&chunk, 5..9).map(drop));
        }
    }
}

/// A super-chunk with multi-threaded contexts that all closures read.
fn shared() -> &'static SChunk {
    static SHARED: OnceLock<SChunk> = OnceLock::new();
    SHARED.get_or_init(|| {
        let params = lz4().filters(&[scrambled(1), Filter::Shuffle]);
        let mut schunk = SChunk::in_memory::<u32>(&params).unwrap();
        schunk.set_dparams(DParams::new().threads(Threads::new(4)));
        schunk.append(&numbers(5000)).unwrap();
        schunk.decompress_chunk::<u32>(0).unwrap();
        schunk
    })
}

/// Uses all operations of this crate, with threads.
fn use_blosc() -> Result<(), BoxError> {
    let items = numbers(5000);
    let params = lz4().threads(Threads::new(4)).filters(&[scrambled(1), Filter::Shuffle]);
    let chunk = blosc2::compress(&items, &params)?;
    assert!(blosc2::decompress::<u32>(&chunk)? == items);
    assert!(shared().decompress_chunk::<u32>(0)? == items);
    let dparams = DParams::new().threads(Threads::new(4));
    let mut decompressor = Decompressor::new(dparams.clone().postfilter(mask))?;
    decompressor.decompress::<u32>(&Chunk::new(chunk)?)?;
    let mut compressor = Compressor::new(params.clone().prefilter(mask))?;
    compressor.compress(&items)?;
    Ok(())
}

/// Uses Blosc on this thread, and on another one that this one waits for.
fn use_blosc_everywhere() -> Result<(), BoxError> {
    use_blosc()?;
    std::thread::scope(|scope| scope.spawn(use_blosc).join()).unwrap()
}

#[test]
fn nested_calls_work() {
    shared();
    let nested = (
        |block: &mut FilterBlock<'_>| use_blosc_everywhere().and_then(|()| scramble(block)),
        |block: &mut FilterBlock<'_>| use_blosc_everywhere().and_then(|()| scramble(block)),
    );
    let filter = Filter::register(162, "nested", nested).unwrap();
    let compress = |i: &[u8], o: &mut [u8], info: &CodecInfo| {
        use_blosc_everywhere()?;
        WithoutZeros.compress(i, o, info)
    };
    let decompress = |i: &[u8], o: &mut [u8], info: &CodecInfo| {
        use_blosc_everywhere()?;
        WithoutZeros.decompress(i, o, info)
    };
    let codec = Codec::register(162, "nested", (compress, decompress)).unwrap();
    let around = |block: &mut ChunkBlock<'_>| use_blosc_everywhere().and_then(|()| mask(block));
    let items = numbers(10_000);
    let expected = masked(&items.iter().flat_map(|item| item.to_ne_bytes()).collect::<Vec<u8>>());
    for threads in [1, 2, 4, 8] {
        let params = lz4().threads(Threads::new(threads));
        round_trip(&items, &params.clone().filters(&[filter]), threads);
        round_trip(&items, &params.clone().codec(codec).codec_meta(7), threads);
        let mut compressor = Compressor::new(params.clone().prefilter(around)).unwrap();
        let chunk = compressor.compress(&items).unwrap();
        assert!(chunk.decompress::<u8>().unwrap() == expected);
        let dparams = DParams::new().threads(Threads::new(threads));
        let mut decompressor = Decompressor::new(dparams.clone().postfilter(around)).unwrap();
        assert!(decompressor.decompress::<u32>(&chunk).unwrap() == items);
        assert!(decompressor.items::<u32>(&chunk, 3000..3005).unwrap() == items[3000..3005]);
    }
}

#[test]
fn codes_are_registered_once() {
    fn nothing(_: &mut FilterBlock<'_>) -> Result<(), BoxError> {
        Ok(())
    }
    let kind = |result: blosc2::Result<()>| result.unwrap_err().kind();
    let codec = |code: u8, name: &str| Codec::register(code, name, WithoutZeros).map(drop);
    let filter = |code: u8, name: &str| Filter::register(code, name, (nothing, nothing)).map(drop);
    codec(250, "first").unwrap();
    filter(250, "first").unwrap();
    for register in [&codec as &dyn Fn(u8, &str) -> blosc2::Result<()>, &filter] {
        assert_eq!(kind(register(250, "first")), ErrorKind::AlreadyExists);
        assert_eq!(kind(register(250, "second")), ErrorKind::AlreadyExists);
        assert_eq!(kind(register(251, "first")), ErrorKind::AlreadyExists);
        assert_eq!(kind(register(251, "First")), ErrorKind::AlreadyExists);
        for code in [0, 1, 5, 32, 35, 159] {
            assert_eq!(kind(register(code, "low")), ErrorKind::InvalidArgument);
        }
        for name in ["", "7", "a:b"] {
            assert_eq!(kind(register(252, name)), ErrorKind::InvalidArgument);
        }
    }
    assert_eq!(kind(codec(252, "LZ4")), ErrorKind::AlreadyExists);
    assert_eq!(kind(filter(252, "trunc_prec")), ErrorKind::AlreadyExists);
    let tuner = |id, name| Tuner::register(id, name, |_| Levels::default()).map(drop);
    tuner(250, "first").unwrap();
    assert_eq!(kind(tuner(250, "other")), ErrorKind::AlreadyExists);
    assert_eq!(kind(tuner(251, "first")), ErrorKind::AlreadyExists);
    assert_eq!(kind(tuner(159, "low")), ErrorKind::InvalidArgument);

    // Unregistered codecs and filters are reported as missing before any data is used.
    assert!(!Codec::Other(253).is_available());
    assert!(codec_of(&lz4().codec(Codec::Other(253))).is_err());
    let unknown = Filter::Other { code: 253, meta: 0 };
    assert_eq!(codec_of(&lz4().filters(&[unknown])), Err(ErrorKind::Unsupported));
    assert_eq!(codec_of(&lz4().tuner(Tuner::from_id(253))), Err(ErrorKind::Unsupported));
    let mut chunk =
        blosc2::compress(&numbers(1000), &lz4().codec(without_zeros()).codec_meta(7)).unwrap();
    chunk[22] = 253;
    assert_eq!(blosc2::decompress::<u32>(&chunk).unwrap_err().kind(), ErrorKind::Unsupported);
}

/// The shape is read under a lock that a closure might wait for.
#[test]
fn closures_do_not_go_with_what_looks_at_the_shape() {
    let params = CParams::new().codec(Codec::Lz4).filters(&[Filter::Ndcell(4), scrambled(1)]);
    let array = NDArray::builder().cparams(params);
    let error = array.from_slice(&numbers(10_000), [100, 100]).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}

fn codec_of(params: &CParams) -> Result<(), ErrorKind> {
    Compressor::new(params).map(drop).map_err(|error| error.kind())
}

/// Nine levels, one after the other.
#[derive(Default)]
struct Levels {
    measured: Option<TunerOutcome>,
    break_rules: bool,
}

static LEVELS: Mutex<Vec<(usize, usize, usize)>> = Mutex::new(Vec::new());

impl UserTuner for Levels {
    fn next(&mut self, params: &mut CParams, input: &TunerInput<'_>) -> Result<(), BoxError> {
        assert_eq!(self.measured.is_some(), input.index > 0);
        let len = input.data.iter().map(|part| part.len()).sum();
        LEVELS.lock().unwrap().push((input.index, input.typesize, len));
        params.level = input.index as u8 % 10;
        params.filters = match input.index % 2 {
            0 => vec![Filter::Shuffle],
            _ => vec![Filter::Bitshuffle],
        };
        params.codec = if input.index == 3 { Codec::BloscLz } else { Codec::Lz4 };
        match input.index {
            5 => Err("five".into()),
            6 => panic!("six"),
            _ if self.break_rules => {
                params.typesize = Some(8);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn measured(&mut self, outcome: &TunerOutcome) -> Result<(), BoxError> {
        assert!(outcome.cbytes > 0 && outcome.cbytes <= outcome.nbytes + 32);
        self.measured = Some(*outcome);
        Ok(())
    }
}

#[test]
fn tuners_choose_the_parameters_of_each_chunk() {
    let tuner = Tuner::register(160, "levels", |_| Levels::default()).unwrap();
    assert_eq!(tuner.to_string(), "levels");
    let items = numbers(10_000);
    let mut compressor = Compressor::new(&lz4().tuner(tuner)).unwrap();
    for index in 0..5 {
        let chunk = compressor.compress(&items).unwrap();
        assert!(chunk.decompress::<u32>().unwrap() == items);
        assert_eq!(chunk.is_stored(), index == 0);
        let chosen = compressor.params();
        assert_eq!((chosen.level, chosen.codec == Codec::BloscLz), (index as u8, index == 3));
        if index > 0 {
            assert_eq!(chunk.filters(), chosen.filters);
            let filter = [Filter::Shuffle, Filter::Bitshuffle][index % 2];
            assert_eq!(chunk.filters(), [filter]);
            assert_eq!(chunk.codec() == Codec::BloscLz, index == 3);
        }
    }
    let error = compressor.compress(&items).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Callback);
    assert!(error.to_string().ends_with("the tuner levels failed: five"), "{error}");
    assert!(LEVELS.lock().unwrap().contains(&(4, 4, 40_000)));

    // The same tuner handles items of another size.
    let any = CParams::new().codec(Codec::Lz4).tuner(tuner);
    let mut compressor = Compressor::new(&any).unwrap();
    for index in 0..5 {
        let chunk = match index % 2 {
            0 => compressor.compress(&[7u16; 1000]).unwrap(),
            _ => compressor.compress(&[7u64; 1000]).unwrap(),
        };
        assert_eq!(chunk.typesize(), [2, 8][index % 2]);
        // At level 0 nothing is compressed.
        assert_eq!(chunk.is_stored(), index == 0);
        assert_eq!(chunk.codec() == Codec::BloscLz, index == 3 || index == 0);
    }

    let mut schunk = SChunk::in_memory::<u32>(&lz4().tuner(tuner)).unwrap();
    for _ in 0..5 {
        schunk.append(&items).unwrap();
    }
    for index in 0..5 {
        assert!(schunk.decompress_chunk::<u32>(index).unwrap() == items);
        let info = schunk.chunk_info(index).unwrap();
        assert_eq!(info.is_stored, index == 0);
        if index > 0 {
            assert_eq!(info.filters(), [[Filter::Shuffle, Filter::Bitshuffle][index % 2]]);
            assert_eq!(info.codec, if index == 3 { Codec::BloscLz } else { Codec::Lz4 });
        }
    }
    assert_eq!(schunk.info().cparams, lz4().typesize(4).tuner(tuner));
    let array =
        NDArray::builder().chunk_shape([25, 100]).block_shape([10, 30]).cparams(lz4().tuner(tuner));
    let array = array.from_slice(&items, [100, 100]).unwrap();
    assert!(array.read::<Vec<u32>>(&[0..100, 0..100]).unwrap() == items);

    let rules = |_: &CParams| Levels { break_rules: true, ..Levels::default() };
    let tuner = Tuner::register(161, "rules", rules).unwrap();
    let error = Compressor::new(&lz4().tuner(tuner)).unwrap().compress(&items).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Callback);
}

/// A tuner that fails at some of its calls; the next call succeeds again.
struct Temper(usize);

impl UserTuner for Temper {
    fn next(&mut self, params: &mut CParams, _: &TunerInput<'_>) -> Result<(), BoxError> {
        self.0 += 1;
        match self.0 {
            3 => panic!("three"),
            5 => params.blosc1 = true,
            _ => {}
        }
        Ok(())
    }

    fn measured(&mut self, _: &TunerOutcome) -> Result<(), BoxError> {
        if self.0 == 7 { Err("seven".into()) } else { Ok(()) }
    }
}

#[test]
fn tuners_that_fail_leave_the_compressor_usable() {
    let tuner = Tuner::register(162, "temper", |_| Temper(0)).unwrap();
    let mut compressor = Compressor::new(&lz4().tuner(tuner)).unwrap();
    for (call, says) in (1..10).map(|call| match call {
        3 => (call, Some("panicked: three")),
        5 => (call, Some("it changed a parameter that has to stay the same")),
        7 => (call, Some("failed: seven")),
        _ => (call, None),
    }) {
        match (compressor.compress(&[7u32; 1000]), says) {
            (Ok(chunk), None) => assert_eq!(chunk.decompress::<u32>().unwrap(), [7; 1000]),
            (Err(error), Some(says)) => {
                assert_eq!(error.kind(), ErrorKind::Callback, "{call}: {error}");
                assert!(error.to_string().ends_with(says), "{call}: {error}");
            }
            (found, _) => panic!("{call}: {found:?}"),
        }
    }
}

/// Inside a closure there is one thread, and an infinite recursion of closures is stopped.
#[test]
fn closures_inside_closures_run_on_the_same_thread() {
    let bytes = blosc2::compress(&numbers(50_000), &lz4()).unwrap();
    let copy = |block: &mut ChunkBlock<'_>| -> Result<(), BoxError> {
        let input = block.input();
        block.output().copy_from_slice(input);
        Ok(())
    };
    let outer = move |block: &mut ChunkBlock<'_>| -> Result<(), BoxError> {
        let here = std::thread::current().id();
        let inner = move |block: &mut ChunkBlock<'_>| -> Result<(), BoxError> {
            assert_eq!(std::thread::current().id(), here);
            copy(block)
        };
        let mut decompressor = Decompressor::new(DParams::new().threads(4).postfilter(inner))?;
        assert_eq!(decompressor.decompress::<u8>(&ChunkRef::new(&bytes)?)?.len(), 200_000);
        copy(block)
    };
    let bytes = blosc2::compress(&numbers(50_000), &lz4()).unwrap();
    let chunk = ChunkRef::new(&bytes).unwrap();
    let found = Decompressor::new(DParams::new().threads(4).postfilter(outer))
        .unwrap()
        .decompress::<u32>(&chunk)
        .unwrap();
    assert!(found == numbers(50_000));

    fn endless(block: &mut ChunkBlock<'_>) -> Result<(), BoxError> {
        let mut compressor = Compressor::new(lz4().prefilter(endless))?;
        compressor.compress(block.input())?;
        Ok(())
    }
    let mut compressor = Compressor::new(lz4().prefilter(endless)).unwrap();
    let error = compressor.compress(&[1u8, 2, 3]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Callback);
}

/// Some threads register codecs and filters while others use registered ones.
#[test]
fn registering_does_not_disturb_others() {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4)
            .map(|_| {
                let done = &done;
                scope.spawn(move || {
                    while !done.load(Ordering::Relaxed) {
                        let params = lz4().codec(without_zeros()).codec_meta(7);
                        round_trip(&numbers(5000), &params.filters(&[scrambled(3)]), 2);
                    }
                })
            })
            .collect();
        for code in 180..220 {
            let name = format!("another {code}");
            Codec::register(code, &name, WithoutZeros).unwrap();
            Filter::register(code, &name, (scramble, scramble)).unwrap();
            let params = lz4().codec(Codec::Other(code)).codec_meta(7);
            let filter = Filter::Other { code, meta: 1 };
            round_trip(&numbers(2000), &params.filters(&[filter]), 2);
        }
        done.store(true, Ordering::Relaxed);
        for worker in workers {
            worker.join().unwrap();
        }
    });
}

/// A chunk of an unknown codec, whose blocks are runs of one byte each.
fn runs_of_an_unknown_codec() -> (Vec<u8>, Vec<u8>) {
    let data: Vec<u8> = (0..10u8).flat_map(|block| [block; 4096]).collect();
    let params = CParams::new().codec(Codec::BloscLz).filters(&[]).blocksize(4096);
    let mut chunk = blosc2::compress(&data, &params.split(SplitMode::Never)).unwrap();
    // The codec's format in the flags, and its code.
    chunk[2] |= 6 << 5;
    chunk[22] = 249;
    (chunk, data)
}

#[test]
fn runs_need_no_codec() {
    let (bytes, data) = runs_of_an_unknown_codec();
    let chunk = Chunk::new(bytes).unwrap();
    assert_eq!(chunk.codec().code(), 249);
    assert!(blosc2::decompress::<u8>(chunk.as_bytes()).unwrap() == data);
}

#[test]
fn content_is_checked_with_the_codecs_of_the_user_and_not_without() {
    /// Whether the codec cannot read what it has written.
    static IS_BROKEN: AtomicBool = AtomicBool::new(false);
    let decompress = |input: &[u8], output: &mut [u8], info: &CodecInfo| {
        if IS_BROKEN.load(Ordering::Relaxed) {
            return Err("broken".into());
        }
        WithoutZeros.decompress(input, output, info)
    };
    let compress = |input: &[u8], output: &mut [u8], info: &CodecInfo| {
        WithoutZeros.compress(input, output, info)
    };
    let codec = Codec::register(163, "breaks", (compress, decompress)).unwrap();
    let mut schunk = SChunk::in_memory::<u32>(&lz4().codec(codec).codec_meta(7)).unwrap();
    schunk.append(&numbers(5000)).unwrap();
    let mut bytes = schunk.to_cframe().unwrap();
    let check = |bytes: &[u8]| {
        let options = OpenOptions::new().check(Check::Content);
        options.open(bytes.to_vec()).map(drop).map_err(|error| error.kind())
    };
    assert_eq!(check(&bytes), Ok(()));
    IS_BROKEN.store(true, Ordering::Relaxed);
    assert_eq!(check(&bytes), Err(ErrorKind::Callback));
    // An unregistered codec.
    let chunk = schunk.chunk(0).unwrap();
    let at = bytes.windows(32).position(|head| head == &chunk.as_bytes()[..32]).unwrap();
    assert_eq!(bytes[at + 22], 163);
    bytes[at + 22] = 248;
    assert_eq!(check(&bytes), Err(ErrorKind::Unsupported));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.b2frame");
    std::fs::write(&path, &bytes).unwrap();
    assert_eq!(blosc2::repair::repair(&path).unwrap_err().kind(), ErrorKind::Unsupported);
    assert!(std::fs::read(&path).unwrap() == bytes);
}
