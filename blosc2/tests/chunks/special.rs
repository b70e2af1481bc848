//! Special chunks: zeros, NaN, a repeated item, and uninitialized.

use blosc2::limits::MAX_CHUNK_LEN;
use blosc2::user_defined::{BoxError, ChunkBlock};
use blosc2::{
    CParams, Check, Chunk, ChunkRef, Codec, Compressor, DParams, Decompressor, ErrorKind, Filter,
    Special, SplitMode, Threads,
};
use blosc2_format::chunk::{self as format, Params};

use crate::common::{Kind, Rng, assert_same, codecs, data, dictionary_codecs};

fn decompressor(threads: usize) -> Decompressor {
    Decompressor::new(&DParams::new().threads(Threads::new(threads))).unwrap()
}

/// The same parameters for the Rust implementation.
fn rust(params: &CParams, typesize: usize) -> Params {
    let codec = match params.codec {
        Codec::BloscLz => 0,
        Codec::Lz4 => 1,
        Codec::Lz4Hc => 2,
        Codec::Zlib => 4,
        _ => 5,
    };
    Params {
        codec,
        level: params.level,
        typesize: typesize as u32,
        blocksize: params.blocksize.map(|size| size as u32),
        split: match params.split {
            SplitMode::Always => format::SplitMode::Always,
            SplitMode::Never => format::SplitMode::Never,
            SplitMode::Auto => format::SplitMode::Auto,
            _ => format::SplitMode::ForwardCompat,
        },
        ..Params::default()
    }
}

/// Reads a chunk in all ways and compares the data with `source`.
fn check(chunk: &Chunk, special: Special, source: &[u8], what: &str) {
    assert_eq!(chunk.special(), Some(special), "{what}");
    assert_eq!(chunk.nbytes(), source.len(), "{what}");
    assert!(!chunk.is_stored() && !chunk.has_dictionary() && !chunk.is_blosc1(), "{what}");
    let seen = ChunkRef::validated(chunk.as_bytes(), Check::Content);
    assert!(seen.is_ok(), "{what}: {seen:?}");
    let len = source.len();
    for threads in [1, 3] {
        let mut decompressor = decompressor(threads);
        assert_same(&decompressor.decompress::<u8>(chunk).unwrap(), source, what);
        // Nothing is written behind the data.
        let mut target = vec![0xbb; len + 1];
        decompressor.decompress_into(chunk, &mut target[..len]).unwrap();
        assert_same(&target[..len], source, what);
        assert_eq!(target[len], 0xbb, "{what}");
        let mut rng = Rng(len as u64);
        for _ in 0..5 {
            let (one, other) = (rng.below(len as u64 + 1), rng.below(len as u64 + 1));
            let range = one.min(other) as usize..one.max(other) as usize;
            let found: Vec<u8> = decompressor.items(chunk, range.clone()).unwrap();
            assert_same(&found, &source[range.clone()], &format!("{range:?} of {what}"));
        }
        let wanted: Vec<bool> = (0..chunk.nblocks()).map(|block| block % 2 == 1).collect();
        decompressor.decompress_masked(chunk, &wanted, &mut target[..len]).unwrap();
        assert_same(&target[..len], source, what);
        if chunk.nblocks() < 100 {
            assert_same(&decompressor.blocks(chunk).unwrap().into_bytes(), source, what);
        }
    }
}

#[test]
fn special_chunks_are_those_of_the_format_and_hold_their_value() {
    for typesize in [1, 2, 4, 8, 16, 255, 256, 300] {
        for count in [0, 1, 2, 3000] {
            for (params, threads) in [
                (CParams::new().codec(Codec::BloscLz), 1),
                (CParams::new().codec(Codec::Lz4).level(0), 4),
                (CParams::new().codec(Codec::Lz4).level(9).split(SplitMode::Never), 1),
                (CParams::new().codec(Codec::BloscLz).blocksize(3000), 2),
            ] {
                let params = params.typesize(typesize).threads(Threads::new(threads));
                let what = format!("{count} items, {params:?}");
                let len = count * typesize;
                let value = data(Kind::Random, typesize, 1);
                // The items of special chunks of NaN are little-endian on all platforms.
                let nan = match typesize {
                    4 => f32::NAN.to_le_bytes().to_vec(),
                    _ => f64::NAN.to_le_bytes().to_vec(),
                };
                let nans = match typesize {
                    // Here `Chunk::nans` repeats a big-endian value.
                    4 | 8 if cfg!(target_endian = "big") => {
                        let params = rust(&params, typesize);
                        let bytes = format::special(&params, format::Special::Nan, len, &[]);
                        Chunk::new(bytes.unwrap())
                    }
                    4 => Chunk::nans::<f32>(count, &params),
                    _ => Chunk::nans::<f64>(count, &params),
                };
                let cases = [
                    (Special::Zeros, Chunk::zeros::<u8>(len, &params), vec![0; len]),
                    (Special::Uninit, Chunk::uninit::<u8>(len, &params), vec![0; len]),
                    (Special::Value, Chunk::repeat(&value, count, &params), value.repeat(count)),
                    (Special::Nan, nans, nan.repeat(count)),
                ];
                for (made_of, chunk, source) in cases {
                    // C does not read a value that is repeated zero times.
                    let special = match made_of {
                        Special::Value if count == 0 => Special::Zeros,
                        other => other,
                    };
                    let rust_special = match special {
                        Special::Zeros => format::Special::Zeros,
                        Special::Nan => format::Special::Nan,
                        Special::Value => format::Special::Value,
                        _ => format::Special::Uninit,
                    };
                    if special == Special::Nan && ![4, 8].contains(&typesize) {
                        let error = chunk.unwrap_err();
                        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{what}: {error}");
                        continue;
                    }
                    let chunk =
                        chunk.unwrap_or_else(|error| panic!("{special:?}, {what}: {error}"));
                    let what = format!("{special:?}, {what}");
                    let expected =
                        format::special(&rust(&params, typesize), rust_special, len, &value);
                    assert_same(chunk.as_bytes(), &expected.unwrap(), &what);
                    let extra = if special == Special::Value { typesize } else { 0 };
                    assert_eq!(chunk.cbytes(), 32 + extra, "{what}");
                    assert_eq!(chunk.typesize(), if typesize > 255 { 1 } else { typesize });
                    check(&chunk, special, &source, &what);
                }
            }
        }
    }
}

#[test]
fn items_are_of_the_type_that_is_given() {
    let params = CParams::new().codec(Codec::Lz4);
    let chunk = Chunk::zeros::<u16>(500, &params).unwrap();
    assert_eq!((chunk.nbytes(), chunk.typesize()), (1000, 2));
    assert_eq!(chunk.decompress::<u16>().unwrap(), [0; 500]);
    let chunk = Chunk::repeat(&[-7i64], 500, &params).unwrap();
    assert_eq!((chunk.nbytes(), chunk.typesize(), chunk.cbytes()), (4000, 8, 40));
    assert_eq!(chunk.items::<i64>(499..).unwrap(), [-7]);
    // An item of three numbers.
    let chunk = Chunk::repeat(&[1u16, 2, 3], 100, &params).unwrap();
    assert_eq!((chunk.nbytes(), chunk.typesize()), (600, 6));
    assert_eq!(chunk.items::<u16>(4..9).unwrap(), [2, 3, 1, 2, 3]);
    let chunk = Chunk::nans::<f32>(9, &params).unwrap();
    assert!(chunk.decompress::<f32>().unwrap().iter().all(|item| item.is_nan()));
    assert_eq!(chunk.items::<f32>(3..5).unwrap().len(), 2);
}

#[test]
fn dictionaries_and_filters_leave_no_trace_in_them() {
    for codec in codecs() {
        let plain = CParams::new().codec(codec);
        let mut all = vec![plain.clone().filters(&[Filter::Delta, Filter::Bitshuffle])];
        if dictionary_codecs().contains(&codec) {
            all.push(plain.clone().dictionary(true));
        }
        for params in all {
            let what = format!("{params:?}");
            let zeros = Chunk::zeros::<f32>(1000, &params).unwrap();
            check(&zeros, Special::Zeros, &[0; 4000], &what);
            let uninit = Chunk::uninit::<f32>(1000, &params).unwrap();
            check(&uninit, Special::Uninit, &[0; 4000], &what);
            let nans = Chunk::nans::<f32>(1000, &params).unwrap();
            let special = if cfg!(target_endian = "big") { Special::Value } else { Special::Nan };
            check(&nans, special, &f32::NAN.to_ne_bytes().repeat(1000), &what);
            let value = Chunk::repeat(&[1.5f32], 1000, &params).unwrap();
            check(&value, Special::Value, &1.5f32.to_ne_bytes().repeat(1000), &what);
        }
    }
}

#[test]
fn zeros_are_noticed_when_they_are_compressed() {
    for codec in codecs() {
        for (level, threads) in [(1, 1), (5, 1), (9, 4)] {
            for filters in [&[][..], &[Filter::Shuffle], &[Filter::Delta, Filter::Bitshuffle]] {
                for len in [1, 31, 32, 33, 20_000] {
                    let params = CParams::new()
                        .codec(codec)
                        .level(level)
                        .filters(filters)
                        .threads(Threads::new(threads));
                    let what = format!("{len} zeros, {params:?}");
                    let chunk =
                        Compressor::new(&params).unwrap().compress(&vec![0u32; len]).unwrap();
                    if len >= 32 {
                        assert_eq!(chunk.cbytes(), 32, "{what}");
                        check(&chunk, Special::Zeros, &vec![0; 4 * len], &what);
                    }
                    assert_eq!(chunk.decompress::<u32>().unwrap(), vec![0; len], "{what}");
                }
            }
        }
    }
}

#[test]
fn what_cannot_be_made_is_refused() {
    let params = CParams::new().codec(Codec::Lz4);
    let refused = |made: blosc2::Result<Chunk>, kind: ErrorKind, says: &str| {
        let error = made.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(says), "{says}: {error}");
    };
    use ErrorKind::{InvalidArgument, TooLarge};
    let of_three = params.clone().typesize(3);
    refused(Chunk::zeros::<u8>(1000, &of_three), InvalidArgument, "1000 bytes");
    refused(Chunk::uninit::<u8>(1000, &of_three), InvalidArgument, "3 bytes");
    assert!(Chunk::zeros::<u8>(999, &of_three).is_ok());
    refused(Chunk::nans::<u32>(5, &params), InvalidArgument, "u4");
    refused(Chunk::nans::<f32>(5, &params.clone().typesize(8)), InvalidArgument, "8");
    refused(Chunk::repeat(&[1u16], 5, &of_three), InvalidArgument, "3");
    refused(Chunk::repeat::<u16>(&[], 5, &params), InvalidArgument, "typesize");
    refused(Chunk::zeros::<u8>(5, &params.clone().level(10)), InvalidArgument, "level");
    for len in [MAX_CHUNK_LEN / 8 + 1, 1 << 31, usize::MAX / 8, usize::MAX / 2, usize::MAX] {
        refused(Chunk::zeros::<u64>(len, &params), TooLarge, &MAX_CHUNK_LEN.to_string());
        refused(Chunk::uninit::<f64>(len, &params), TooLarge, "bytes");
        refused(Chunk::nans::<f64>(len, &params), TooLarge, "bytes");
        refused(Chunk::repeat(&[1u64], len, &params), TooLarge, "bytes");
    }
    // The largest one takes 32 bytes too, and reading a part takes memory for that part only.
    let largest = Chunk::repeat(&[9u64], MAX_CHUNK_LEN / 8, &params).unwrap();
    assert_eq!(largest.items::<u64>(MAX_CHUNK_LEN / 8 - 2..).unwrap(), [9, 9]);
    let largest = Chunk::zeros::<u8>(MAX_CHUNK_LEN, &params).unwrap();
    assert_eq!(largest.items::<u8>(MAX_CHUNK_LEN - 1..).unwrap(), [0]);
}

/// A hand-written header of a special chunk.
fn header(flag: u8, typesize: u8, nbytes: u32, value: &[u8]) -> Vec<u8> {
    let mut chunk = vec![5, 1, 0b101, typesize];
    for number in [nbytes, nbytes.max(1), 32 + value.len() as u32] {
        chunk.extend(number.to_le_bytes());
    }
    chunk.resize(31, 0);
    chunk.push(flag);
    chunk.extend(value);
    chunk
}

/// Zeros need not be whole items; upstream's sizes.
#[test]
fn zeros_may_end_inside_an_item() {
    for (len, typesize) in [
        (707_658u32, 8u8),
        (80_001, 8),
        (80_007, 8),
        (101, 4),
        (103, 4),
        (51, 2),
        (707_656, 8),
        (100, 4),
        (50, 2),
        (1, 255),
    ] {
        let chunk = Chunk::new(header(0x10, typesize, len, &[])).unwrap();
        let what = format!("{len} bytes of {typesize}");
        assert_eq!((chunk.nbytes(), chunk.cbytes()), (len as usize, 32), "{what}");
        check(&chunk, Special::Zeros, &vec![0; len as usize], &what);
        // Uninitialized chunks need whole items.
        let uninit = header(0x40, typesize, len, &[]);
        match ChunkRef::new(&uninit) {
            Ok(_) => assert!(len.is_multiple_of(typesize.into()), "{what}"),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::InvalidData, "{what}: {error}");
                assert!(!len.is_multiple_of(typesize.into()), "{what}: {error}");
            }
        }
    }
}

/// The value is as wide as the bytes after the header, whatever the typesize in the header is.
#[test]
fn a_value_is_as_wide_as_it_is_and_not_as_the_header_says() {
    for width in [1usize, 2, 3, 7, 8, 16, 100, 255, 256, 300, 1000] {
        for typesize in [1, 2, 8, 255] {
            let value = data(Kind::Random, width, 3);
            let bytes = header(0x30, typesize, 64 * width as u32, &value);
            // Exactly as long as needed: reading further would leave the buffer.
            let chunk = Chunk::new(bytes).unwrap();
            let what = format!("a value of {width} bytes, typesize {typesize}");
            check(&chunk, Special::Value, &value.repeat(64), &what);
        }
    }
    let chunk = Chunk::new(header(0x30, 8, 64, &[0xab])).unwrap();
    assert_eq!(chunk.items::<u64>(0..1).unwrap(), [0xabab_abab_abab_abab]);
    assert_eq!(chunk.items::<u8>(61..64).unwrap(), [0xab; 3]);
}

#[test]
fn broken_special_chunks_are_refused() {
    let refused = |bytes: &[u8], what: &str| {
        let error = ChunkRef::new(bytes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData, "{what}: {error}");
        let error = blosc2::decompress::<u8>(bytes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData, "{what}: {error}");
    };
    refused(&header(0x30, 1, 64, &[]), "no value");
    refused(&header(0x30, 1, 64, &[1, 2, 3]), "a value that does not divide the data");
    for flag in [0x50, 0x60, 0x70] {
        refused(&header(flag, 1, 64, &[]), "an unknown kind");
    }
    let mut cut = header(0x30, 1, 64, &[1, 2]);
    cut.pop();
    refused(&cut, "half a value");
    refused(&header(0x10, 1, 1 << 31, &[]), "a negative length");
    refused(&header(0x10, 0, 64, &[]), "no typesize");
    for flag in [0x10, 0x20, 0x30, 0x40] {
        refused(&header(flag | 0x08, 4, 64, &[1, 2, 3, 4]), "a lazy one");
        let mut variable = header(flag, 4, 64, &[1, 2, 3, 4]);
        (variable[0], variable[30]) = (6, 1);
        refused(&variable, "blocks of variable length");
    }
    // A NaN chunk with another item size cannot be decompressed.
    for typesize in [1, 2, 16] {
        let bytes = header(0x20, typesize, 64, &[]);
        if let Ok(chunk) = ChunkRef::new(&bytes) {
            let error = chunk.decompress::<u8>().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidData, "{error}");
            let error = chunk.items::<u8>(3..9).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidData, "{error}");
        }
    }
    // A huge length is not an error before the data is requested.
    let huge = header(0x10, 1, i32::MAX as u32, &[]);
    if let Ok(chunk) = ChunkRef::new(&huge) {
        assert_eq!(chunk.items::<u8>(7..9).unwrap(), [0, 0]);
    }
}

/// 32 bytes can claim 2 GiB in blocks of one byte. The cost of a read depends on the requested part only.
#[test]
fn parts_of_a_huge_chunk_cost_what_they_are() {
    let params = CParams::new().codec(Codec::Lz4).blocksize(1);
    let chunk = Chunk::zeros::<u8>(MAX_CHUNK_LEN, &params).unwrap();
    assert_eq!((chunk.nblocks(), chunk.blocksize()), (MAX_CHUNK_LEN, Some(1)));
    let fill = |block: &mut ChunkBlock<'_>| -> Result<(), BoxError> {
        block.output().fill(7);
        Ok(())
    };
    let mut filtered = Decompressor::new(DParams::new().postfilter(fill)).unwrap();
    for start in [0, 1 << 30, MAX_CHUNK_LEN - 3] {
        let range = start..start + 3;
        assert_eq!(chunk.items::<u8>(range.clone()).unwrap(), [0; 3]);
        assert_eq!(filtered.items::<u8>(&chunk, range).unwrap(), [7; 3]);
        assert_eq!(chunk.block(start).unwrap(), [0]);
        assert_eq!(filtered.block(&chunk, start).unwrap(), [7]);
    }
    // Compressed data has to have a place for each block.
    let mut bytes = chunk.into_bytes();
    bytes[31] = 0;
    let chunk = ChunkRef::validated(&bytes[..], Check::Header).unwrap();
    for start in [0, 1 << 30] {
        let error = chunk.items::<u8>(start..start + 3).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData, "{error}");
    }
}
