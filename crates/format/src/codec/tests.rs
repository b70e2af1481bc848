use blosc2_testing::Rng;
use proptest::prelude::*;

use super::*;

fn decode(codec: u8, stream: &[u8], len: usize) -> Result<Vec<u8>, Error> {
    decode_with(codec, stream, None, len)
}

fn decode_with(
    codec: u8,
    stream: &[u8],
    dictionary: Option<&[u8]>,
    len: usize,
) -> Result<Vec<u8>, Error> {
    let mut out = vec![0xaa; len];
    Decompressor::default().decompress(codec, stream, dictionary, &mut out).map(|()| out)
}

/// The position and the expectation of an error.
#[track_caller]
fn refused(result: Result<Vec<u8>, Error>) -> (u64, String) {
    match result {
        Err(Error::Format(error)) => (error.offset, error.expected),
        other => panic!("{other:?}"),
    }
}

fn encode(codec: u8, level: u8, data: &[u8], room: usize) -> Option<Vec<u8>> {
    let mut out = vec![0x55; room];
    let len = Compressor::default().compress(codec, level, data, &mut out).unwrap()?;
    out.truncate(len);
    Some(out)
}

fn codecs() -> Vec<u8> {
    [BLOSCLZ, LZ4, ZLIB, ZSTD]
        .into_iter()
        .filter(|&codec| cfg!(feature = "zlib") || codec != ZLIB)
        .filter(|&codec| cfg!(feature = "zstd") || codec != ZSTD)
        .collect()
}

/// Runs, noise, and repetitions of earlier data, at short and long distances.
fn some_data(max: usize) -> impl Strategy<Value = Vec<u8>> {
    let piece = (0..4, any::<u8>(), 1..max / 4, any::<u32>());
    prop::collection::vec(piece, 0..16).prop_map(move |pieces| {
        let mut data: Vec<u8> = Vec::new();
        for (kind, byte, len, seed) in pieces {
            let mut rng = Rng(seed.into());
            for i in 0..len.min(max - data.len()) {
                data.push(match kind {
                    0 => byte,
                    1 => rng.next() as u8,
                    2 if !data.is_empty() => {
                        let back = 1 + seed as usize % data.len();
                        data[data.len() - back]
                    }
                    _ => (i / (1 + usize::from(byte % 9))) as u8,
                });
            }
        }
        data
    })
}

proptest! {
    #[test]
    fn what_is_compressed_comes_back(data in some_data(40_000), level in 1_u8..=9) {
        for codec in codecs() {
            if let Some(stream) = encode(codec, level, &data, data.len() + data.len() / 50 + 100) {
                prop_assert_eq!(&decode(codec, &stream, data.len()).unwrap(), &data);
                for wrong in [data.len() + 1, data.len().wrapping_sub(1)] {
                    prop_assert!(wrong == usize::MAX || decode(codec, &stream, wrong).is_err());
                }
                prop_assert!(decode(codec, &stream[..stream.len() - 1], data.len()).is_err());
            }
        }
    }

    #[test]
    fn no_room_is_no_harm(data in some_data(2000), level in 1_u8..=9, less in 0_usize..2100) {
        for codec in codecs() {
            if let Some(stream) = encode(codec, level, &data, less) {
                prop_assert!(stream.len() <= less);
                prop_assert_eq!(&decode(codec, &stream, data.len()).unwrap(), &data);
            }
        }
    }

    #[test]
    fn broken_streams_do_no_harm(
        data in some_data(3000),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
        len in 0_usize..4000,
    ) {
        for codec in codecs() {
            let Some(mut stream) = encode(codec, 5, &data, data.len() + 200) else { continue };
            for (at, byte) in &changes {
                let at = at.index(stream.len());
                stream[at] = *byte;
            }
            let dictionary = Some(&data[..data.len() / 2]);
            for len in [len, data.len()] {
                let _ = decode(codec, &stream, len);
                let _ = decode_with(codec, &stream, dictionary, len);
                let _ = decode(codec, &stream[..cut.index(stream.len())], len);
            }
        }
    }

    #[test]
    fn any_bytes_do_no_harm(
        stream in prop::collection::vec(any::<u8>(), 0..200),
        len in 0_usize..400,
    ) {
        for codec in codecs() {
            let _ = decode(codec, &stream, len);
            let _ = decode_with(codec, &stream, Some(&stream), len);
        }
    }
}

#[test]
fn matches_repeat_what_they_wrote() {
    let start: Vec<u8> = (0..200_u8).map(|i| i.wrapping_mul(37)).collect();
    for distance in (1..40).chain([64, 200]) {
        for len in (1..90).chain([300, 511, 512, 513, 700]) {
            for after in [0, 15, 16, 31, 32, 100] {
                let mut out = start.clone();
                out.resize(start.len() + len + after, 0xee);
                repeat(&mut out, start.len(), distance, len);
                let mut expected = start.clone();
                for i in 0..len {
                    expected.push(expected[start.len() - distance + i]);
                }
                assert_eq!(out[..expected.len()], expected, "{distance} {len} {after}");
            }
        }
    }
}

#[test]
fn other_codecs_are_named() {
    let named = |codec, result: Result<(), Error>| {
        assert!(
            matches!(&result, Err(Error::Unsupported(what)) if what.contains(codec)),
            "{result:?}"
        );
    };
    for (codec, name) in [(SNAPPY, "Snappy"), (32, "NDLZ"), (35, "ZFP"), (160, "codec 160")] {
        named(name, decode(codec, &[0; 8], 8).map(drop));
        let compressed = Compressor::default().compress(codec, 5, &[0; 64], &mut [0; 64]);
        named(name, compressed.map(drop));
    }
    let compressed = Compressor::default().compress(LZ4HC, 5, &[0; 64], &mut [0; 64]);
    named("LZ4HC", compressed.map(drop));
}

/// Seven values, each three times, repeated.
fn steps() -> Vec<u8> {
    (0..200).map(|i| i / 3 % 7).collect()
}

#[test]
fn blosclz_and_lz4_write_what_c_writes() {
    let blosclz = [
        0x34, 0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 5, 6, 6, 6, 0xe0, 0xa7, 0x14, 2,
        2, 3, 3,
    ];
    assert_eq!(encode(BLOSCLZ, 9, &steps(), 200).unwrap(), blosclz);
    let lz4 = [
        0xff, 6, 0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 5, 6, 6, 6, 0x15, 0, 0x9b,
        0x50, 2, 2, 2, 3, 3,
    ];
    assert_eq!(encode(LZ4, 5, &steps(), 200).unwrap(), lz4);
    // It needs the required space, which is more than it uses.
    assert_eq!(encode(BLOSCLZ, 9, &steps(), 66).unwrap(), blosclz);
    assert_eq!(encode(BLOSCLZ, 9, &steps(), 65), None);
    assert_eq!(encode(LZ4, 5, &steps(), 32).unwrap(), lz4);
    assert_eq!(encode(LZ4, 5, &steps(), 31), None);
    assert_eq!(encode(BLOSCLZ, 9, &[7; 15], 100), None);
    assert_eq!(encode(LZ4, 9, &[], 1).unwrap(), [0]);
    assert_eq!(encode(LZ4, 9, &[], 0), None);
}

#[test]
fn blosclz_by_hand() {
    // Three literals, a match of 5 from 3 back, one literal. The upper bits of the first are a mark.
    let stream = [0x22, 1, 2, 3, 3 << 5, 2, 0, 9];
    assert_eq!(decode(BLOSCLZ, &stream, 9).unwrap(), [1, 2, 3, 1, 2, 3, 1, 2, 9]);
    // Lengths of nine and more continue in separate bytes.
    let stream = [0x20, 7, 7 << 5, 255, 1, 0, 0, 8];
    let run = [vec![7; 1 + 9 + 256], vec![8]].concat();
    assert_eq!(decode(BLOSCLZ, &stream, run.len()).unwrap(), run);

    let at = |stream: &[u8], len| refused(decode(BLOSCLZ, stream, len)).0;
    assert_eq!(at(&[], 4), 0);
    assert_eq!(at(&[0x22, 1, 2, 3, 3 << 5, 3, 0, 9], 9), 4, "a distance before the data");
    assert_eq!(at(&[0x22, 1, 2, 3, 3 << 5, 2], 8), 4, "a match at the end");
    assert_eq!(at(&[0x22, 1, 2, 3, 3 << 5], 8), 5, "half a match");
    assert_eq!(at(&[0x22, 1, 2, 3, 3 << 5, 2, 0, 9], 8), 6, "too much data");
    assert_eq!(at(&[0x22, 1, 2, 3, 3 << 5, 2, 0, 9], 10), 8, "too little data");
    assert_eq!(at(&[0x22, 1, 2], 3), 1, "literals that are not there");
    assert_eq!(at(&[&[0x20, 7][..], &[255; 99]].concat(), 500), 2, "no end of a length");
}

#[test]
fn blosclz_far_matches() {
    // One literal, a run of zeros, and a match from 10,000 back, the start.
    let mut stream = vec![0x22, 1, 2, 3, 0, 0, 7 << 5];
    let more = 10_000 - 4 - 9;
    stream.extend(vec![255; more / 255]);
    stream.extend([(more % 255) as u8, 0]);
    let distance: u16 = 10_000 - 8192;
    stream.extend([2 << 5 | 31, 255, (distance >> 8) as u8, distance as u8, 0, 9]);
    let data = decode(BLOSCLZ, &stream, 10_005).unwrap();
    assert_eq!(data[..4], [1, 2, 3, 0]);
    assert!(data[4..10_000].iter().all(|&byte| byte == 0));
    assert_eq!(data[10_000..], [1, 2, 3, 0, 9]);
}

#[test]
fn lz4_by_hand() {
    assert_eq!(decode(LZ4, &[0x50, 1, 2, 3, 4, 5], 5).unwrap(), [1, 2, 3, 4, 5]);
    assert_eq!(decode(LZ4, &[0], 0).unwrap(), []);
    assert!(decode(LZ4, &[1], 0).is_err());
    let stream = [0x13, 7, 1, 0, 0x50, 1, 2, 3, 4, 5];
    assert_eq!(decode(LZ4HC, &stream, 13).unwrap(), [7, 7, 7, 7, 7, 7, 7, 7, 1, 2, 3, 4, 5]);

    let at = |stream: &[u8], len| refused(decode(LZ4, stream, len)).0;
    assert_eq!(at(&[], 4), 0);
    assert_eq!(at(&[0x13, 7, 0, 0, 0x50, 1, 2, 3, 4, 5], 13), 0, "no distance");
    assert_eq!(at(&[0x13, 7, 2, 0, 0x50, 1, 2, 3, 4, 5], 13), 0, "a distance before the data");
    assert_eq!(at(&[0x13, 7, 1, 0, 0x40, 1, 2, 3, 4], 12), 0, "a match near the end");
    assert_eq!(at(&[0x50, 1, 2, 3, 4, 5, 0], 5), 0, "a byte too many");
    assert_eq!(at(&[0x50, 1, 2, 3, 4], 5), 1, "a byte too few");
    assert_eq!(at(&[0x50, 1, 2, 3, 4, 5], 6), 6, "too little data");
    assert_eq!(at(&[&[0xf0][..], &[255; 99]].concat(), 500), 0, "no end of a length");

    // The match starts in the dictionary and continues in the data.
    let stream = [0x14, 7, 3, 0, 0x50, 1, 2, 3, 4, 5];
    let data = decode_with(LZ4, &stream, Some(&[0, 8, 9]), 14).unwrap();
    assert_eq!(data, [7, 8, 9, 7, 8, 9, 7, 8, 9, 1, 2, 3, 4, 5]);
    assert_eq!(refused(decode_with(LZ4, &stream, Some(&[9]), 14)).0, 0);
}

#[cfg(feature = "zlib")]
#[test]
fn zlib_by_hand() {
    let stream = [
        0x78, 0x5e, 0x65, 0xc8, 0x37, 0x01, 0x00, 0x00, 0x08, 0x03, 0xb0, 0x6e, 0xff, 0x92, 0x11,
        0x40, 0xce, 0x00, 0x20, 0x29, 0xc9, 0x76, 0x92, 0xb6, 0xdb, 0xf0, 0xf3, 0x00, 0x07, 0xcf,
        0x00, 0x73,
    ];
    assert_eq!(decode(ZLIB, &stream, 40).unwrap(), steps()[..40]);
    assert_eq!(decode(ZLIB, &[&stream[..], &[1]].concat(), 40).unwrap(), steps()[..40]);
    let changed = |at: usize, byte| {
        let mut stream = stream;
        stream[at] = byte;
        refused(decode(ZLIB, &stream, 40)).1
    };
    assert!(changed(31, 0).contains("checksum"));
    assert!(changed(0, 0x88).contains("32 KiB"));
    // A dictionary, which C-Blosc2 never passes.
    assert!(changed(1, 0x20).contains("zlib"));
}

#[test]
fn zstd_by_hand() {
    const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
    let frame = |bytes: &[u8]| [&MAGIC, bytes].concat();

    let stream = frame(&[
        0x20, 0xc8, 0xe5, 0, 0, 0xa8, 0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 5, 6, 6,
        6, 1, 0, 0x61, 0x48, 0x4d, 0x26,
    ]);
    assert_eq!(decode(ZSTD, &stream, 200).unwrap(), steps());

    // Two literal bytes, then seven equal ones.
    let stream = frame(&[0x20, 9, 2 << 3, 0, 0, 1, 2, 7 << 3 | 3, 0, 0, 5]);
    assert_eq!(decode(ZSTD, &stream, 9).unwrap(), [1, 2, 5, 5, 5, 5, 5, 5, 5]);
    assert_eq!(refused(decode(ZSTD, &stream, 8)), (5, "8 bytes of data".into()));
    let longer = [&stream[..], &[0]].concat();
    assert_eq!(refused(decode(ZSTD, &longer, 9)), (15, "the end of the stream".into()));

    // A window of almost 4 GiB needs no memory; a larger one is rejected.
    let stream = frame(&[0, 21 << 3 | 7, 2 << 3 | 1, 0, 0, 1, 2]);
    assert_eq!(decode(ZSTD, &stream, 2).unwrap(), [1, 2]);
    assert!(decode(ZSTD, &frame(&[0, 22 << 3, 2 << 3 | 1, 0, 0, 1, 2]), 2).is_err());

    // A block of 1,634 bytes, where the window has 1,024.
    let bytes = [0, 0, 9 << 3 | 5, 0, 0, 0x10, 0, 0, 1, 0, 0x5d, 0xfe, 0, 0x0b];
    assert_eq!(refused(decode(ZSTD, &frame(&bytes), 1634)).0, 6);
    let stream = frame(&[&[0, 1 << 3][..], &bytes[2..]].concat());
    assert_eq!(decode(ZSTD, &stream, 1634).unwrap().len(), 1634);

    // The checksum: that of `abc`.
    let stream = frame(&[0x24, 3, 3 << 3 | 1, 0, 0, b'a', b'b', b'c', 0x99, 0x09, 0x77, 0xad]);
    assert_eq!(decode(ZSTD, &stream, 3).unwrap(), b"abc");
    let last = stream.len() - 1;
    assert!(refused(decode(ZSTD, &stream[..last], 3)).1.contains("checksum"));
    let other = [&stream[..last], &[0]].concat();
    assert!(refused(decode(ZSTD, &other, 3)).1.contains("checksum"));

    // A missing dictionary, and blocks of an invalid type or longer than the window.
    assert_eq!(refused(decode(ZSTD, &frame(&[0x21, 5, 3, 0x10, 0, 0]), 3)).0, 4);
    assert_eq!(refused(decode(ZSTD, &frame(&[0x20, 2, 2 << 3 | 7, 0, 0, 1, 2]), 2)).0, 6);
    assert_eq!(refused(decode(ZSTD, &frame(&[0x20, 2, 3 << 3 | 1, 0, 0, 1, 2, 3]), 2)).0, 6);
    assert_eq!(refused(decode(ZSTD, &frame(&[0x28, 2, 2 << 3 | 1, 0, 0, 1, 2]), 2)).0, 4);

    let early = [0x25, 0xb5, 0x2f, 0xfd, 0, 0, 0];
    assert!(
        matches!(decode(ZSTD, &early, 9), Err(Error::Unsupported(what)) if what.contains("0.5"))
    );
}

#[test]
fn ids_are_different() {
    for (i, rule) in RULES.iter().enumerate() {
        assert!(RULES[..i].iter().all(|other| other.id != rule.id));
    }
    assert_eq!(rule(LZ4HC).id, "codec.lz4");
    assert_eq!(rule(77).id, "codec.stream");
}
