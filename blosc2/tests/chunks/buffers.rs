//! One buffer to one chunk and back, with every kind of parameter and data.

use blosc2::{CParams, Codec, Compressor, ErrorKind, Filter, Threads};
use blosc2_format::Limits;
use blosc2_format::chunk::{self as format, Header};
use blosc2_testing::mutants::mutant;

use crate::common::measure::with_fresh_memory;
use crate::common::mutants::samples;
use crate::common::round_trip::Case;
use crate::common::{KINDS, Kind, Rng, assert_same, codecs, data, hex};

#[test]
fn every_codec_at_every_level_brings_every_kind_of_data_back() {
    for codec in codecs() {
        for level in 0..=9 {
            for kind in KINDS {
                for (typesize, len) in [(1, 0), (4, 1), (4, 4), (8, 31), (2, 33), (4, 40_000)] {
                    let params = CParams::new().codec(codec).level(level).typesize(typesize);
                    Case::new(params, kind, len, 1).check();
                }
            }
        }
    }
}

#[test]
fn six_filters_leave_the_source_as_it_was() {
    let filters = [
        Filter::Delta,
        Filter::Shuffle,
        Filter::Bitshuffle,
        Filter::Bytedelta(0),
        Filter::ShuffleBytes(3),
        Filter::Bitshuffle,
    ];
    for count in 0..=6 {
        for kind in KINDS {
            for threads in [1, 3] {
                let params = CParams::new()
                    .codec(Codec::Lz4)
                    .filters(&filters[..count])
                    .typesize(4)
                    .blocksize(4096)
                    .threads(Threads::new(threads));
                Case::new(params, kind, 40_000, count as u64).check();
            }
        }
    }
}

#[test]
fn delta_and_filters_in_any_number_go_with_a_misaligned_source() {
    for shift in 0..8 {
        for filters in [
            &[Filter::Delta][..],
            &[Filter::Delta, Filter::Shuffle],
            &[Filter::Delta, Filter::Bitshuffle, Filter::Bytedelta(0)],
            &[Filter::Bitshuffle],
        ] {
            for typesize in [1, 2, 4, 8, 16, 24] {
                let params = CParams::new().filters(filters).typesize(typesize).blocksize(2400);
                Case { shift, ..Case::new(params, Kind::Ramp, 24_000, 3) }.check();
            }
        }
    }
}

#[test]
fn typed_items_come_back_as_items() {
    let shorts: Vec<i16> = (0..3000).map(|item| item * 7 - 9000).collect();
    let doubles: Vec<f64> = shorts.iter().map(|&item| f64::from(item) / 3.0).collect();
    for codec in codecs() {
        let params = CParams::new().codec(codec);
        let chunk = blosc2::compress(&shorts, &params).unwrap();
        assert_eq!(blosc2::decompress::<i16>(&chunk).unwrap(), shorts);
        assert_eq!(chunk[3], 2, "typesize");
        let chunk = blosc2::compress(&doubles, &params).unwrap();
        assert_eq!(blosc2::decompress::<f64>(&chunk).unwrap(), doubles);
        assert_eq!(chunk[3], 8, "typesize");
    }
}

#[test]
fn data_that_is_no_whole_number_of_items_is_a_mismatch() {
    let chunk = blosc2::compress(&[1u8, 2, 3], &CParams::new()).unwrap();
    let error = blosc2::decompress::<u16>(&chunk).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TypeMismatch);
    assert!(error.to_string().contains("3 bytes") && error.to_string().contains("u2"), "{error}");
}

/// What C's documents promise of the filter: the low bits of the mantissa are zero.
fn truncated_f32(value: f32, bits: i32) -> f32 {
    let cleared = if bits >= 0 { 23 - bits } else { -bits };
    f32::from_bits(value.to_bits() & (u32::MAX << cleared))
}

fn truncated_f64(value: f64, bits: i32) -> f64 {
    let cleared = if bits >= 0 { 52 - bits } else { -bits };
    f64::from_bits(value.to_bits() & (u64::MAX << cleared))
}

/// Whether the chunk stores the data uncompressed: at level 0, and where compression gains nothing. No filter is
/// applied then, not even a lossy one.
fn stored(chunk: &[u8]) -> bool {
    Header::parse(chunk).unwrap().memcpyed
}

#[test]
fn trunc_prec_clears_the_low_bits_of_floats_and_nothing_else() {
    let mut rng = Rng(5);
    let singles: Vec<f32> =
        (0..5000).map(|_| (rng.below(1 << 30) as f32).sqrt() - 9000.0).collect();
    let doubles: Vec<f64> = (0..5000).map(|_| (rng.below(1 << 60) as f64).sqrt() - 9e8).collect();
    for codec in [Codec::Lz4, Codec::Zstd, Codec::BloscLz] {
        for level in [0, 5] {
            for others in [&[][..], &[Filter::Shuffle], &[Filter::Bitshuffle, Filter::Bytedelta(0)]]
            {
                let params = |bits: i8| {
                    let mut filters = vec![Filter::TruncPrec(bits)];
                    filters.extend(others);
                    CParams::new().codec(codec).level(level).filters(&filters).blocksize(4096)
                };
                for bits in [1i8, 10, 22, 23, -1, -10, -22] {
                    let expected: Vec<f32> =
                        singles.iter().map(|&each| truncated_f32(each, bits.into())).collect();
                    let before = singles.clone();
                    let chunk = blosc2::compress(&singles, &params(bits)).unwrap();
                    assert!(singles == before, "the source was written to");
                    let found = blosc2::decompress::<f32>(&chunk).unwrap();
                    let expected = if stored(&chunk) { &singles } else { &expected };
                    assert!(found == *expected, "{codec}, level {level}, {others:?}, {bits} bits");
                }
                for bits in [1i8, 20, 51, 52, -1, -30, -51] {
                    let expected: Vec<f64> =
                        doubles.iter().map(|&each| truncated_f64(each, bits.into())).collect();
                    let chunk = blosc2::compress(&doubles, &params(bits)).unwrap();
                    let found = blosc2::decompress::<f64>(&chunk).unwrap();
                    let expected = if stored(&chunk) { &doubles } else { &expected };
                    assert!(found == *expected, "{codec}, level {level}, {others:?}, {bits} bits");
                }
            }
        }
    }
}

macro_rules! int_trunc {
    ($type:ty, $bits:expr) => {
        let mut rng = Rng(9);
        let items: Vec<$type> = (0..5001).map(|_| rng.next() as $type >> rng.below(3)).collect();
        let width = <$type>::BITS as i32;
        for level in [0, 5] {
            for bits in $bits {
                let filters = [Filter::IntTrunc(bits), Filter::Shuffle];
                let params = CParams::new().codec(Codec::Lz4).level(level).filters(&filters);
                let before = items.clone();
                let chunk = blosc2::compress(&items, &params).unwrap();
                assert!(items == before, "the source was written to");
                let found = blosc2::decompress::<$type>(&chunk).unwrap();
                let bits = i32::from(bits);
                let cleared = if bits >= 0 { width - bits } else { -bits };
                let expected: Vec<$type> =
                    items.iter().map(|item| item >> cleared << cleared).collect();
                let expected = if stored(&chunk) { items.clone() } else { expected };
                assert!(
                    found == expected,
                    "{} bits of {width}, level {level}: {:?}, expected {:?}",
                    bits,
                    &found[..3],
                    &expected[..3]
                );
            }
        }
    };
}

#[test]
fn int_trunc_clears_the_low_bits_of_integers() {
    int_trunc!(u8, [1, 4, 8, -1, -7]);
    int_trunc!(i8, [1, 4, 8, -1, -7]);
    int_trunc!(u16, [1, 8, 15, 16, -1, -8, -15]);
    int_trunc!(i16, [1, 8, 15, 16, -1, -8, -15]);
    int_trunc!(u32, [1, 8, 24, 31, 32, -1, -8, -31]);
    int_trunc!(i32, [1, 8, 24, 31, 32, -1, -8, -31]);
    int_trunc!(u64, [1, 8, 33, 63, 64, -1, -31, -32, -33, -63]);
    int_trunc!(i64, [1, 8, 33, 63, 64, -1, -31, -32, -33, -63]);
}

#[test]
fn filters_that_need_whole_items_refuse_a_rest() {
    for filter in [Filter::Delta, Filter::TruncPrec(10), Filter::IntTrunc(10)] {
        let params = CParams::new().typesize(4).filters(&[filter]);
        for len in [1, 3, 41] {
            let error = blosc2::compress(&vec![7u8; len], &params).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{filter}, {len} bytes");
            let message = error.to_string();
            assert!(message.contains(&filter.to_string()) && message.contains(&len.to_string()));
        }
        assert!(blosc2::compress(&[0u8; 40], &params).is_ok());
        assert!(blosc2::compress::<u8>(&[], &params).is_ok());
    }
}

#[test]
fn codes_without_a_name_work_as_their_named_twins() {
    let items: Vec<u32> = (0..20_000).map(|item| item * item / 7).collect();
    for (named, code) in [
        (Filter::Shuffle, Filter::Other { code: 1, meta: 0 }),
        (Filter::Bitshuffle, Filter::Other { code: 2, meta: 0 }),
        (Filter::Delta, Filter::Other { code: 3, meta: 0 }),
        (Filter::TruncPrec(10), Filter::Other { code: 4, meta: 10 }),
        (Filter::Bytedelta(4), Filter::Other { code: 35, meta: 4 }),
        (Filter::IntTrunc(10), Filter::Other { code: 36, meta: 10 }),
    ] {
        let one = blosc2::compress(&items, &CParams::new().filters(&[named])).unwrap();
        let other = blosc2::compress(&items, &CParams::new().filters(&[code])).unwrap();
        assert!(one == other, "{named} and {code:?}");
        let after = [Filter::Shuffle, named];
        let after_code = [Filter::Shuffle, code];
        let one = blosc2::compress(&items, &CParams::new().filters(&after));
        let other = blosc2::compress(&items, &CParams::new().filters(&after_code));
        let kind = |result: &blosc2::Result<Vec<u8>>| result.as_ref().err().map(|e| e.kind());
        assert_eq!(kind(&one), kind(&other), "{named} and {code:?}, after shuffle");
        let alone = |filter| CParams::new().typesize(2).filters(&[filter]);
        let one = blosc2::compress(&items, &alone(named));
        let other = blosc2::compress(&items, &alone(code));
        assert_eq!(kind(&one), kind(&other), "{named} and {code:?}, of 2 bytes");
    }
    let array_codec = CParams::new().codec(Codec::Other(Codec::Ndlz.code())).codec_meta(4);
    let error = blosc2::compress(&[1u8; 4096], &array_codec).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}

/// Decompresses with fresh memory filled with `fill`.
fn decompressed(chunk: &[u8], fill: u8) -> Result<Vec<u8>, String> {
    with_fresh_memory(fill, || blosc2::decompress::<u8>(chunk)).map_err(|error| error.to_string())
}

#[test]
fn chunks_sound_or_broken_give_an_error_or_data_and_never_old_memory() {
    let mut rng = Rng(77);
    let (mut good, mut bad, mut leaks) = (0, 0, Vec::new());
    for (what, chunk) in samples() {
        let rounds = if chunk.len() > 8000 { 30 } else { 150 };
        for round in 0..rounds {
            let broken = if round == 0 { chunk.clone() } else { mutant(&chunk, &mut rng) };
            // Larger chunks take long and are not the subject of this test.
            if Header::parse(&broken).is_ok_and(|header| header.nbytes > 1 << 24) {
                continue;
            }
            match decompressed(&broken, 0xa5) {
                Err(_) => bad += 1,
                Ok(found) => {
                    good += 1;
                    if found != decompressed(&broken, 0x5a).unwrap() {
                        leaks.push(format!("{what}: {}", hex(&broken)));
                    }
                }
            }
        }
    }
    let count = leaks.len();
    assert!(
        leaks.is_empty(),
        "what comes out of {count} depends on what memory held before:\n{}",
        leaks.join("\n")
    );
    assert!(good > 500 && bad > 500, "{good} good ones, {bad} bad ones");
}

#[test]
fn every_cut_of_a_chunk_is_an_error() {
    let source = data(Kind::Runs, 2000, 1);
    for codec in codecs() {
        let chunk = blosc2::compress(&source, &CParams::new().codec(codec).typesize(4)).unwrap();
        for len in 0..chunk.len() {
            let error = blosc2::decompress::<u8>(&chunk[..len]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidData, "{len} of {}", chunk.len());
        }
    }
}

/// A BloscLZ stream with one match that is longer than any block: more than 8 million bytes encode its length, and
/// their sum exceeds 2^31 (c-blosc2 issue 801).
#[test]
fn a_match_longer_than_numbers_go_is_broken_data() {
    let len = 1_000_000u32;
    let mut stream = vec![31];
    stream.extend([7; 32]);
    stream.push(0xe0);
    stream.extend(vec![0xff; 8_500_000]);
    stream.extend([0, 1, 31]);
    stream.extend([8; 32]);
    let mut chunk = vec![0; 32];
    chunk[..4].copy_from_slice(&[5, 1, 0b1_0101, 1]);
    chunk[4..8].copy_from_slice(&len.to_le_bytes());
    chunk[8..12].copy_from_slice(&len.to_le_bytes());
    chunk.extend(36u32.to_le_bytes());
    chunk.extend((stream.len() as u32).to_le_bytes());
    chunk.extend(&stream);
    let total = chunk.len() as u32;
    chunk[12..16].copy_from_slice(&total.to_le_bytes());
    let error = blosc2::decompress::<u8>(&chunk).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidData);
}

#[test]
fn blocks_that_cut_items_are_refused_or_do_no_harm() {
    // Each block repeats one byte, so that only its position distinguishes it from others.
    for (typesize, blocksize) in [(4, 510), (64, 100), (3, 128), (8, 1001), (300, 1000), (16, 17)] {
        let blocks = blocksize / typesize * typesize;
        let source: Vec<u8> =
            (0..60_000 / typesize * typesize).map(|at| (at / blocks % 250 + 1) as u8).collect();
        for codec in codecs() {
            let params =
                CParams::new().codec(codec).typesize(typesize).blocksize(blocksize).filters(&[]);
            match blosc2::compress(&source[..], &params) {
                Err(error) => assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}"),
                Ok(chunk) => {
                    let what = format!("{codec}, items of {typesize}, blocks of {blocksize}");
                    let found = blosc2::decompress::<u8>(&chunk);
                    let found = found.unwrap_or_else(|error| panic!("{what}: {error}"));
                    assert_same(&found, &source, &what);
                }
            }
        }
    }
}

#[test]
fn dictionaries_do_no_harm_to_tiny_data() {
    for codec in [Codec::Zstd, Codec::Lz4, Codec::Lz4Hc] {
        for level in [1, 5, 9] {
            for (typesize, kind, len) in [1, 2, 4]
                .into_iter()
                .flat_map(|size| KINDS.into_iter().map(move |kind| (size, kind)))
                .flat_map(|(size, kind)| (0..80).map(move |len| (size, kind, len)))
            {
                let source = data(kind, len, 1);
                for filters in [&[][..], &[Filter::Bitshuffle]] {
                    let params = CParams::new()
                        .codec(codec)
                        .level(level)
                        .typesize(typesize)
                        .filters(filters)
                        .dictionary(true);
                    let what = format!("{codec}:{level}, {len} bytes {kind:?} of {typesize}");
                    let chunk = blosc2::compress(&source[..], &params);
                    let chunk = chunk.unwrap_or_else(|error| panic!("{what}: {error}"));
                    let found = blosc2::decompress::<u8>(&chunk);
                    let found = found.unwrap_or_else(|error| panic!("{what}: {error}"));
                    assert_same(&found, &source, &what);
                }
            }
        }
    }
}

/// The first bytedelta filter, which upstream documents as broken: it is supported for decompression only, and not if it
/// would leave the end of a block unwritten.
#[test]
fn chunks_with_the_first_bytedelta_are_read_or_refused() {
    // Makes it the filter of a chunk that has the current one.
    let check = |mut chunk: Vec<u8>, streams: u8, lens: &[usize], what: &str| {
        let filters = &mut chunk[16..22];
        *filters.iter_mut().find(|code| **code == 35).unwrap() = 34;
        let is_filled = lens.iter().all(|&len| len.is_multiple_of(streams.into()));
        match blosc2::decompress::<u8>(&chunk) {
            Ok(found) => {
                let layout = format::Chunk::new(&chunk, &Limits::default()).unwrap();
                assert!(is_filled || !layout.header().is_compressed(), "{what}");
                assert_same(&found, &layout.decode().unwrap(), what);
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::InvalidData, "{what}: {error}");
                assert!(!is_filled, "{what}: {error}");
            }
        }
        is_filled
    };
    let (mut read, mut all) = (0, 0);
    for streams in [1, 2, 3, 7, 100, 255] {
        let filters = &[Filter::Bytedelta(streams)];
        let params = CParams::new().codec(Codec::Lz4).typesize(1).filters(filters);
        let mut compressor = Compressor::new(&params).unwrap();
        for len in (0..300).chain([1000, 1033, 4095, 4096, 20_001]) {
            let source = data(Kind::Runs, len, 2);
            for blocksize in [None, Some(64)] {
                let mut params = params.clone();
                params.blocksize = blocksize;
                let chunk = blosc2::compress(&source[..], &params).unwrap();
                let block = Header::parse(&chunk).unwrap().block_len() as usize;
                let lens = [block, if block > 0 { len % block } else { 0 }];
                let what = format!("{streams} streams, {len} bytes, blocks of {blocksize:?}");
                read += usize::from(check(chunk, streams, &lens, &what));
                all += 1;
            }
            let parts = [&source[..], &source[..len / 2]].map(|part| [part, &[1]].concat());
            let chunk =
                compressor.compress_blocks(&parts.each_ref().map(|part| &part[..])).unwrap();
            let lens = parts.each_ref().map(Vec::len);
            read += usize::from(check(
                chunk.into_bytes(),
                streams,
                &lens,
                &format!("{streams}, {lens:?}"),
            ));
            all += 1;
        }
    }
    assert!(read > 1000 && all - read > 1000, "{read} of {all} are read");
}
