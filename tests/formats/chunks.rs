//! Chunks of the C library, read by `blosc2-format`, and the reverse.

use std::path::{Path, PathBuf};

use blosc2::{CParams, Codec, Filter, SplitMode, Threads};
use blosc2_format::chunk::{self, Chunk, Decoder, Encoder, Header, Params, Special};
use blosc2_format::{Error, Limits, Options, Report, Severity};

use crate::common::{
    KINDS, Kind, Rng, assert_same, codecs, data, hex, lossless, name, repeats, upstream,
};
use crate::{IDENTICAL, assert_chunk};

/// Checks a chunk, including its data, with a small memory limit.
fn check(bytes: &[u8]) -> Report {
    let limits = Limits { memory: 1 << 24, ..Limits::default() };
    Chunk::check(bytes, &Options { content: true, limits, ..Options::default() })
}

fn decode(bytes: &[u8]) -> Result<Vec<u8>, Error> {
    Chunk::new(bytes, &Limits::default())?.decode()
}

/// Decodes the data block by block, out of order.
fn decode_by_blocks(bytes: &[u8]) -> Vec<u8> {
    let chunk = Chunk::new(bytes, &Limits::default()).unwrap();
    let mut decoder = Decoder::default();
    let mut blocks = vec![Vec::new(); chunk.nblocks()];
    for (number, block) in blocks.iter_mut().enumerate().rev() {
        block.resize(chunk.block_size(number), 0);
        decoder.decode_block(&chunk, number, block).unwrap();
    }
    blocks.concat()
}

/// Decompresses with the C function, which accepts more chunks than `blosc2::decompress`.
fn c_decode(chunk: &[u8]) -> Option<Vec<u8>> {
    start_library();
    let mut data = vec![0; Header::parse(chunk).ok()?.nbytes as usize];
    // SAFETY: C reads no more of the chunk than there is, and writes no more than there is room for.
    unsafe {
        let context = blosc2_sys::blosc2_create_dctx(blosc2_sys::blosc2_dparams_defaults());
        assert!(!context.is_null());
        let (from, to) = (chunk.as_ptr().cast(), data.as_mut_ptr().cast());
        let (size, room) = (chunk.len() as i32, data.len() as i32);
        let len = blosc2_sys::blosc2_decompress_ctx(context, from, size, to, room);
        blosc2_sys::blosc2_free_ctx(context);
        (len == room).then_some(data)
    }
}

fn start_library() {
    blosc2::compress(&[1u8], &CParams::new()).unwrap();
}

#[derive(Debug, Clone)]
struct Case {
    params: CParams,
    typesize: usize,
    codec: Codec,
    level: u8,
    split: SplitMode,
    blocksize: Option<usize>,
    dictionary: bool,
    len: usize,
    kind: Kind,
    seed: u64,
}

fn case(seed: u64) -> Case {
    let rng = &mut Rng(seed);
    let typesize = match rng.below(10) {
        0..=4 => *rng.pick(&[1, 2, 4, 8, 16]),
        5..=7 => 1 + rng.below(300) as usize,
        8 => *rng.pick(&[254, 255, 256, 257]),
        _ => *rng.pick(&[3, 7, 24, 1000]),
    };
    let mut filters = Vec::new();
    for position in 0..rng.below(7) {
        filters.push(lossless(typesize, position == 0, rng));
    }
    let len = match rng.below(20) {
        0 => rng.below(40) as usize,
        1 => typesize * rng.below(3) as usize,
        2 => typesize * rng.below(20) as usize + rng.below(typesize as u64) as usize,
        3..=12 => rng.below(3000) as usize,
        13..=18 => rng.below(30_000) as usize,
        _ => rng.below(200_000) as usize,
    };
    let mut len = len.min(200_000);
    if filters.first() == Some(&Filter::Delta) {
        len -= len % typesize;
    }
    let floats = typesize == 4 || typesize == 8;
    if floats && filters.len() < 6 && rng.below(5) == 0 {
        len -= len % typesize;
        filters.insert(0, *rng.pick(&[Filter::TruncPrec(7), Filter::IntTrunc(-5)]));
        filters.retain(|filter| *filter != Filter::Delta);
    }
    let codec = *rng.pick(&codecs());
    let level = rng.below(10) as u8;
    let split = *rng.pick(&[
        SplitMode::Always,
        SplitMode::Never,
        SplitMode::Auto,
        SplitMode::ForwardCompat,
    ]);
    let mut params = CParams::new()
        .codec(codec)
        .level(level)
        .typesize(typesize)
        .filters(&filters)
        .split(split)
        .threads(Threads::ONE);
    let mut blocksize = None;
    if rng.below(2) == 0 {
        let size: usize = *rng.pick(&[1, 16, 128, 1000, 4096, 5000, 65_536, 1 << 20]);
        blocksize = Some(size.max(typesize));
        params = params.blocksize(size.max(typesize));
    }
    let has_dictionaries = matches!(codec, Codec::Zstd | Codec::Lz4 | Codec::Lz4Hc);
    let dictionary = has_dictionaries && rng.below(5) == 0;
    let params = params.dictionary(dictionary);
    let kind = *rng.pick(&KINDS);
    Case { params, typesize, codec, level, split, blocksize, dictionary, len, kind, seed }
}

impl Case {
    /// The same parameters for this crate; the slots of the filters are those of a chunk of C's.
    fn rust(&self, chunk: &[u8]) -> Params {
        let header = Header::parse(chunk).unwrap();
        Params {
            codec: code(self.codec),
            level: self.level,
            typesize: self.typesize as u32,
            blocksize: self.blocksize.map(|size| size as u32),
            filters: header.filters,
            filters_meta: header.filters_meta,
            split: match self.split {
                SplitMode::Always => chunk::SplitMode::Always,
                SplitMode::Never => chunk::SplitMode::Never,
                SplitMode::Auto => chunk::SplitMode::Auto,
                _ => chunk::SplitMode::ForwardCompat,
            },
            ..Params::default()
        }
    }
}

fn code(codec: Codec) -> u8 {
    match codec {
        Codec::BloscLz => 0,
        Codec::Lz4 => 1,
        Codec::Lz4Hc => 2,
        Codec::Zlib => 4,
        Codec::Zstd => 5,
        other => panic!("{other}"),
    }
}

fn check_case(case: &Case) {
    let what = format!("{case:?}");
    let source = data(case.kind, case.len, case.seed);
    let chunk = good(blosc2::compress(&source, &case.params), &what);
    let expected = good(blosc2::decompress::<u8>(&chunk), &what);

    assert_same(&good(decode(&chunk), &what), &expected, &what);
    assert_same(&decode_by_blocks(&chunk), &expected, &what);
    let report = check(&chunk);
    assert!(report.worst() <= Some(Severity::Note), "{what}: {:?}", report.findings);

    let mut encoder = Encoder::new(case.rust(&chunk)).unwrap();
    let found = match encoder.encode(&source) {
        Err(Error::Unsupported(_)) if case.codec == Codec::Lz4Hc => return,
        found => good(found, &what),
    };
    let determined = IDENTICAL.contains(&code(case.codec));
    let stored = Header::parse(&chunk).unwrap().is_stored() && case.level == 0;
    if (determined && !case.dictionary) || stored {
        assert_chunk(&found, &chunk, &format!("{what}: the chunk"));
    }
    let report = check(&found);
    assert!(report.worst() <= Some(Severity::Note), "{what}: {:?}", report.findings);
    let back = good(blosc2::decompress::<u8>(&found), &what);
    let stored = |chunk| Header::parse(chunk).unwrap().is_stored();
    // Lossy filters are not applied to stored chunks.
    if stored(&found) == stored(&chunk) {
        assert_same(&back, &expected, &what);
    }
    assert_same(&good(decode(&found), &what), &back, &what);
}

#[track_caller]
fn good<T, E: std::fmt::Display>(outcome: Result<T, E>, what: &str) -> T {
    outcome.unwrap_or_else(|error| panic!("{what}: {error}"))
}

#[test]
fn both_libraries_write_and_read_the_same_chunks() {
    let broken: Vec<String> = (0..repeats(1500) as u64)
        .filter_map(|seed| {
            let case = case(seed);
            let outcome = std::panic::catch_unwind(|| check_case(&case));
            outcome.err().map(|_| format!("{case:?}"))
        })
        .collect();
    assert!(broken.is_empty(), "{} cases fail:\n{}", broken.len(), broken.join("\n"));
}

fn files(folder: &Path, suffix: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<_> = entries.filter(|path| name(path).ends_with(suffix)).collect();
    found.sort();
    found
}

#[test]
fn chunks_of_old_writers_are_read_as_c_does() {
    let files = files(&upstream("compat"), ".cdata");
    assert_eq!(files.len(), 29);
    for path in files {
        let what = name(&path);
        let bytes = std::fs::read(&path).unwrap();
        let report = check(&bytes);
        if what.ends_with("shuffle-2.20.0.cdata") {
            // The output of a filter for 4 MB, without a chunk header.
            assert!(!report.is_good(), "{what}");
            continue;
        }
        let expected = good(blosc2::decompress::<u8>(&bytes), &what);
        assert_same(&good(decode(&bytes), &what), &expected, &what);
        assert_same(&decode_by_blocks(&bytes), &expected, &what);
        assert!(report.findings.is_empty(), "{what}: {:#?}", report.findings);
    }
}

/// The chunks inside a file, found by their first bytes.
fn embedded(path: &Path) -> Vec<Vec<u8>> {
    let file = std::fs::read(path).unwrap();
    let mut found = Vec::new();
    let mut at = 0;
    while at + 16 <= file.len() {
        let header = Header::parse(&file[at..]).ok().filter(|header| {
            let end = at + header.cbytes as usize;
            header.version >= 4 && header.codec_version == 1 && header.extended && end <= file.len()
        });
        match header {
            Some(header) => {
                let end = at + header.cbytes as usize;
                found.push(file[at..end].to_vec());
                at = end;
            }
            None => at += 1,
        }
    }
    found
}

#[test]
fn chunks_in_frames_are_good() {
    let mut frames = files(&upstream("tests/fuzz/corpus"), ".b2frame");
    frames.extend(files(&upstream("compat"), ".b2frame"));
    frames.extend(files(&upstream("plugins/test_data"), ".b2nd"));
    assert_eq!(frames.len(), 10);
    for path in frames {
        let what = name(&path);
        let chunks = embedded(&path);
        assert!(!chunks.is_empty(), "{what}");
        for bytes in chunks {
            let report = check(&bytes);
            assert!(report.worst() <= Some(Severity::Note), "{what}: {:#?}", report.findings);
            let chunk = Chunk::new(&bytes, &Limits::default()).unwrap();
            let mut whole = vec![0; chunk.header().nbytes as usize];
            let outcome = Decoder::default().decode(&chunk, &mut whole);
            // Variable-length blocks and chunks of plugins need C's other functions.
            if let (Ok(()), Ok(expected)) = (outcome, blosc2::decompress::<u8>(&bytes)) {
                assert_same(&whole, &expected, &what);
                assert_same(&decode_by_blocks(&bytes), &expected, &what);
            }
        }
    }
}

/// C's parameters for the compression of a buffer.
fn raw_params(params: &Params) -> blosc2_sys::blosc2_cparams {
    start_library();
    let mut raw = blosc2_sys::blosc2_cparams_defaults();
    raw.compcode = params.codec;
    raw.clevel = params.level;
    raw.typesize = params.typesize as i32;
    raw.blocksize = params.blocksize.unwrap_or(0) as i32;
    raw.filters = params.filters;
    raw.filters_meta = params.filters_meta;
    raw.splitmode = match params.split {
        chunk::SplitMode::Always => blosc2_sys::BLOSC_ALWAYS_SPLIT,
        chunk::SplitMode::Never => blosc2_sys::BLOSC_NEVER_SPLIT,
        chunk::SplitMode::Auto => blosc2_sys::BLOSC_AUTO_SPLIT,
        chunk::SplitMode::ForwardCompat => blosc2_sys::BLOSC_FORWARD_COMPAT_SPLIT,
    };
    raw
}

fn random_params(rng: &mut Rng) -> Params {
    Params {
        codec: *rng.pick(&[0, 1, 2, 4, 5]),
        level: rng.below(10) as u8,
        typesize: *rng.pick(&[1, 2, 3, 4, 8, 17, 255, 256, 300]),
        blocksize: *rng.pick(&[None, None, Some(1), Some(8), Some(1000), Some(65_536)]),
        filters: [0, 0, 0, 0, rng.below(3) as u8, rng.below(3) as u8],
        split: *rng.pick(&[
            chunk::SplitMode::Always,
            chunk::SplitMode::Never,
            chunk::SplitMode::ForwardCompat,
        ]),
        ..Params::default()
    }
}

// C stores other lengths on big-endian processors; see `main.rs`.
#[cfg(target_endian = "little")]
#[test]
fn special_chunks_are_those_of_c() {
    let rng = &mut Rng(3);
    for round in 0..repeats(400) as u64 {
        let params = random_params(rng);
        let typesize = params.typesize as usize;
        let nbytes = typesize * *rng.pick(&[0, 1, 2, 7, 100, 1000, 33_000]);
        let value = data(Kind::Random, typesize, round);
        for special in [Special::Zeros, Special::Nan, Special::Value, Special::Uninit] {
            let what = format!("{special:?}, {nbytes} bytes, {params:?}");
            let raw = raw_params(&params);
            let mut expected = vec![0; 32 + typesize];
            let (size, to, room) =
                (nbytes as i32, expected.as_mut_ptr().cast(), expected.len() as i32);
            // SAFETY: C writes at most `room` bytes, and reads one item of the value.
            let len = unsafe {
                match special {
                    Special::Zeros => blosc2_sys::blosc2_chunk_zeros(raw, size, to, room),
                    Special::Nan => blosc2_sys::blosc2_chunk_nans(raw, size, to, room),
                    Special::Uninit => blosc2_sys::blosc2_chunk_uninit(raw, size, to, room),
                    Special::Value => {
                        let value = value.as_ptr().cast();
                        blosc2_sys::blosc2_chunk_repeatval(raw, size, to, room, value)
                    }
                }
            };
            assert!(len > 0, "{what}: {len}");
            expected.truncate(len as usize);
            let found = chunk::special(&params, special, nbytes, &value);
            // C creates these chunks, but nobody reads them.
            let refused = match special {
                Special::Nan => nbytes > 0 && !matches!(typesize, 4 | 8),
                Special::Value => nbytes == 0,
                Special::Zeros | Special::Uninit => false,
            };
            if refused {
                assert!(matches!(found, Err(Error::Argument(_))), "{what}");
                assert!(c_decode(&expected).is_none() && decode(&expected).is_err(), "{what}");
                continue;
            }
            let found = good(found, &what);
            assert_same(&found, &expected, &what);
            let report = check(&found);
            match c_decode(&found) {
                // The released C-Blosc2 also refuses blocks that are not whole values; the patched one reads them.
                Some(data) if !report.is_good() => {
                    assert_eq!(report.findings[0].rule.id, "chunk.special_blocks", "{what}");
                    assert!(special == Special::Value && data == value.repeat(nbytes / typesize));
                }
                Some(data) => assert_same(&good(decode(&found), &what), &data, &what),
                None => assert!(!report.is_good() && decode(&found).is_err(), "{what}"),
            }
        }
    }
}

/// C's chunk of blocks of these lengths.
fn c_blocks(blocks: &[&[u8]], params: &Params, dictionary: bool) -> Vec<u8> {
    let mut raw = raw_params(params);
    raw.use_dict = dictionary.into();
    let nbytes: usize = blocks.iter().map(|block| block.len()).sum();
    let mut chunk = vec![0; nbytes + 8 * blocks.len() + 40_000];
    let sources: Vec<_> = blocks.iter().map(|block| block.as_ptr().cast()).collect();
    let sizes: Vec<i32> = blocks.iter().map(|block| block.len() as i32).collect();
    // SAFETY: C reads as many bytes as the sizes say, and writes no more than there is room for.
    let len = unsafe {
        let context = blosc2_sys::blosc2_create_cctx(raw);
        assert!(!context.is_null());
        let room = chunk.len() as i32;
        let to = chunk.as_mut_ptr().cast();
        let (count, sources) = (blocks.len() as i32, sources.as_ptr());
        let len =
            blosc2_sys::blosc2_vlcompress_ctx(context, sources, sizes.as_ptr(), count, to, room);
        blosc2_sys::blosc2_free_ctx(context);
        len
    };
    assert!(len > 0, "{len}: {params:?}");
    chunk.truncate(len as usize);
    chunk
}

/// Decompresses one block of such a chunk with C.
fn c_block(chunk: &[u8], block: usize) -> Option<Vec<u8>> {
    let (mut data, mut len) = (std::ptr::null_mut(), 0);
    // SAFETY: C reads no more of the chunk than there is, and allocates the block that it returns.
    unsafe {
        let context = blosc2_sys::blosc2_create_dctx(blosc2_sys::blosc2_dparams_defaults());
        assert!(!context.is_null());
        let (from, size) = (chunk.as_ptr().cast(), chunk.len() as i32);
        let result = blosc2_sys::blosc2_vldecompress_block_ctx(
            context,
            from,
            size,
            block as i32,
            &mut data,
            &mut len,
        );
        blosc2_sys::blosc2_free_ctx(context);
        if result < 0 {
            return None;
        }
        let copy = std::slice::from_raw_parts(data, len as usize).to_vec();
        libc::free(data.cast());
        Some(copy)
    }
}

#[test]
fn blocks_of_any_lengths_are_those_of_c() {
    let rng = &mut Rng(4);
    for round in 0..repeats(300) as u64 {
        let mut params = random_params(rng);
        if params.level == 0 {
            params.level = rng.below(2) as u8;
        }
        let count = *rng.pick(&[1, 2, 3, 10, 40]);
        let blocks: Vec<Vec<u8>> = (0..count)
            .map(|block| {
                let most = *rng.pick(&[1, 10, 100, 5000]);
                data(*rng.pick(&KINDS), 1 + rng.below(most) as usize, round * 100 + block)
            })
            .collect();
        let blocks: Vec<&[u8]> = blocks.iter().map(|block| &block[..]).collect();
        let dictionary = [1, 2, 5].contains(&params.codec) && rng.below(3) == 0;
        let what = format!("{count} blocks, dictionary {dictionary}, {params:?}");
        let expected = c_blocks(&blocks, &params, dictionary);
        let mut chunks = vec![expected.clone()];
        match Encoder::new(params).unwrap().encode_blocks(&blocks) {
            Err(Error::Unsupported(_)) if params.codec == 2 => {}
            found => {
                let found = good(found, &what);
                // In blocks of less than 64 KiB, LZ4 finds the same matches on 32-bit processors.
                let identical =
                    params.codec == 0 || (params.codec == 1 && cfg!(target_endian = "little"));
                if (identical && !dictionary) || params.level == 0 {
                    assert_chunk(&found, &expected, &what);
                }
                chunks.push(found);
            }
        }
        for bytes in chunks {
            let report = check(&bytes);
            assert!(report.worst() <= Some(Severity::Note), "{what}: {:?}", report.findings);
            let chunk = Chunk::new(&bytes, &Limits::default()).unwrap();
            assert_eq!(chunk.nblocks(), blocks.len());
            assert_same(&good(chunk.decode(), &what), &blocks.concat(), &what);
            assert_same(&decode_by_blocks(&bytes), &blocks.concat(), &what);
            for (number, block) in blocks.iter().enumerate() {
                assert_same(&c_block(&bytes, number).unwrap(), block, &what);
            }
        }
    }
}

#[test]
fn what_c_refuses_is_refused() {
    for (typesize, blocks) in [(4, &[&b""[..]][..]), (4, &[]), (1, &[&b"a"[..], b""])] {
        let params = Params { typesize, ..Params::default() };
        let error = Encoder::new(params).unwrap().encode_blocks(blocks).unwrap_err();
        assert!(matches!(error, Error::Argument(_)), "{error}");
    }
    let params = Params { typesize: 4, ..Params::default() };
    for (special, nbytes, value) in
        [(Special::Zeros, 3, 4), (Special::Value, 8, 3), (Special::Nan, 9, 4)]
    {
        let error = chunk::special(&params, special, nbytes, &vec![1; value]).unwrap_err();
        assert!(matches!(error, Error::Argument(_)), "{error}");
    }
}

/// Small chunks of every form.
fn samples() -> Vec<Vec<u8>> {
    let mut samples = Vec::new();
    for seed in 0..400 {
        let case = case(seed);
        let len = case.len.min(3000) / case.typesize * case.typesize;
        let source = data(case.kind, len, seed);
        samples.extend(blosc2::compress(&source, &case.params));
    }
    for name in ["vlblocks-lz4-fixed-3.0.0.b2frame", "vlblocks-lz4-variable-3.0.0.b2frame"] {
        samples.extend(embedded(&upstream(&format!("compat/{name}"))).into_iter().take(4));
    }
    let rng = &mut Rng(8);
    for special in [Special::Zeros, Special::Nan, Special::Value, Special::Uninit] {
        let params = Params { typesize: *rng.pick(&[4, 8]), ..Params::default() };
        samples.push(
            chunk::special(&params, special, 8000, &[7; 8][..params.typesize as usize]).unwrap(),
        );
    }
    samples.retain(|sample| sample.len() < 6000);
    samples
}

fn mutate(bytes: &mut [u8], rng: &mut Rng) {
    for _ in 0..1 + rng.below(3) {
        let len = bytes.len() as u64;
        let at = if rng.below(4) > 0 { rng.below(len.min(80)) } else { rng.below(len) } as usize;
        match rng.below(4) {
            0 => bytes[at] = rng.next() as u8,
            1 => bytes[at] ^= 1 << rng.below(8),
            2 => bytes[at] = *rng.pick(&[0, 1, 2, 4, 31, 32, 127, 128, 255]),
            _ => {
                let value: i32 =
                    *rng.pick(&[0, 1, -1, 2, 16, 31, 32, 255, i32::MAX, i32::MIN, 65_536]);
                let end = bytes.len().min(at + 4);
                bytes[at..end].copy_from_slice(&value.to_le_bytes()[..end - at]);
            }
        }
    }
}

#[test]
fn what_is_found_good_is_what_c_reads() {
    let samples = samples();
    assert!(samples.len() > 200);
    let rng = &mut Rng(11);
    let mut outcomes = [0; 4];
    let mutants = repeats(8_000);
    for _ in 0..mutants {
        let mut bytes = rng.pick(&samples).clone();
        mutate(&mut bytes, rng);
        let report = check(&bytes);
        let Ok(header) = Header::parse(&bytes) else {
            assert!(!report.is_good());
            continue;
        };
        // Bytedelta needs a typesize, which is taken from the chunk here; C takes it from a super-chunk only.
        let filters = header.filters.iter().zip(&header.filters_meta);
        if header.nbytes > 1 << 22 || filters.into_iter().any(|each| matches!(each, (34 | 35, 0))) {
            continue;
        }
        let found = decode(&bytes);
        let what = || format!("{}: {:?}", hex(&bytes), report.findings);
        // Variable-length blocks need other functions.
        let expected = if header.variable_blocks {
            let blocks =
                (0..header.nblocks().min(1000)).map(|block| c_block(&bytes, block as usize));
            blocks.collect::<Option<Vec<_>>>().map(|blocks| blocks.concat())
        } else {
            c_decode(&bytes)
        };
        match (&found, &expected) {
            // The Zstandard decoders tolerate different faults of Huffman streams.
            (Ok(found), Some(expected)) if found != expected && header.codec_format == 4 => {
                outcomes[3] += 1;
            }
            (Ok(found), Some(expected)) => {
                assert_same(found, expected, &what());
                outcomes[0] += 1;
            }
            (Ok(_), None) => {
                // C does not know how chunks of old versions are split.
                let old = header.version <= 2 && header.split;
                assert!(old || header.codec_format == 4, "C reads none of it: {}", what());
                outcomes[3] += 1;
            }
            (Err(error), Some(_)) => {
                outcomes[1] += 1;
                assert!(!report.is_good() || matches!(error, Error::Unsupported(_)), "{}", what());
            }
            (Err(Error::Unsupported(_)), None) => {}
            (Err(error), None) => {
                outcomes[2] += 1;
                assert!(!report.is_good(), "{error}: {}", what());
            }
        }
    }
    // Rust may be stricter, but not often.
    assert!(
        outcomes[0] > mutants / 8
            && outcomes[1] < outcomes[0] / 5
            && outcomes[2] > mutants / 8
            && outcomes[3] < 10,
        "{outcomes:?}"
    );
}
