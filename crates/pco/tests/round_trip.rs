//! Numbers of all types and shapes, and what is not compressed.
#![allow(missing_docs)]

use anyhow::Result;
use blosc2::{CParams, Codec, ErrorKind, Filter, NDArray, RawItems, SChunk, SplitMode, Threads};
use blosc2_pco::{CODE, cparams};
use blosc2_testing::Rng;

/// The dtypes, and pcodec's codes of their types.
const DTYPES: [(&str, u8); 13] = [
    ("u1", 10),
    ("u2", 7),
    ("u4", 1),
    ("u8", 2),
    ("i1", 11),
    ("i2", 8),
    ("i4", 3),
    ("i8", 4),
    ("f2", 9),
    ("f4", 5),
    ("f8", 6),
    ("M8[ns]", 4),
    ("m8[s]", 4),
];

fn size(name: &str) -> usize {
    usize::from(name.as_bytes()[1] - b'0')
}

/// A slow wave with noise, as bytes of a dtype.
fn wave(name: &str, is_big_endian: bool, count: usize) -> Vec<u8> {
    let mut rng = Rng(5);
    let one = |at: usize| {
        let value = (at as f64 / 300.0).sin() * 50.0 + rng.index(4) as f64;
        let mut bytes = match name {
            "f2" => half::f16::from_f64(value.round()).to_le_bytes().to_vec(),
            "f4" => (value as f32).to_le_bytes().to_vec(),
            "f8" => value.to_le_bytes().to_vec(),
            _ => ((value + 60.0) as i64).to_le_bytes()[..size(name)].to_vec(),
        };
        if is_big_endian {
            bytes.reverse();
        }
        bytes
    };
    (0..count).flat_map(one).collect()
}

/// Compresses the bytes, checks that decompression returns them, and returns the compressed size.
fn check(bytes: &[u8], params: &CParams) -> Result<usize> {
    let chunk = blosc2::compress(bytes, params)?;
    assert!(blosc2::decompress::<u8>(&chunk)? == bytes, "{params:?}");
    Ok(chunk.len())
}

#[test]
fn all_types_in_both_byte_orders() -> Result<()> {
    for (name, code) in DTYPES {
        let mut sizes = Vec::new();
        for (order, bit) in [("<", 0), (">", 0x80)] {
            let dtype = if size(name) == 1 { format!("|{name}") } else { format!("{order}{name}") };
            let is_big_endian = order == ">";
            for level in 0..=9 {
                let params = cparams(&dtype, level)?;
                let meta = if size(name) == 1 { code } else { code | bit };
                assert_eq!((params.codec.code(), params.codec_meta), (CODE, meta), "{dtype}");
                let items = wave(name, is_big_endian, 20_000);
                let found = check(&items, &params)?;
                let most = if level < 8 { items.len() + 100 } else { items.len() * 3 / 4 };
                assert!(found < most, "{dtype} {level}: {found}");
                sizes.push(found);
            }
        }
        // The byte order costs nothing.
        let (little, big) = sizes.split_at(10);
        assert_eq!(little, big, "{name}");
    }
    Ok(())
}

#[test]
fn special_numbers_keep_their_bits() -> Result<()> {
    let numbers: Vec<u64> = [
        f64::NAN,
        -f64::NAN,
        -0.0,
        0.0,
        f64::INFINITY,
        f64::NEG_INFINITY,
        5e-324,
        -5e-324,
        f64::MAX,
        f64::MIN,
        f64::MIN_POSITIVE,
        1.5,
    ]
    .map(f64::to_bits)
    .into_iter()
    // NaNs with a payload, quiet and signalling.
    .chain([0x7ff8_0000_0000_1234, 0xfff0_0000_0000_0001, 0x7ff4_0000_0000_0000])
    .collect();
    for dtype in ["<f8", ">f8", "<u8", "<i8", "<f4", "<f2", "<i2", "|i1"] {
        for count in [15, 5000] {
            let bytes: Vec<u8> =
                numbers.iter().cycle().take(count).flat_map(|n| n.to_le_bytes()).collect();
            check(&bytes, &cparams(dtype, 8)?)?;
        }
    }
    Ok(())
}

#[test]
fn any_number_of_items() -> Result<()> {
    for (name, _) in DTYPES {
        let dtype = if size(name) == 1 { format!("|{name}") } else { format!("<{name}") };
        let items = wave(name, false, 3000);
        for count in [0, 1, 2, 3, 255, 256, 257, 1023, 1024, 1025, 2048, 3000] {
            for blocksize in [8, 16, 4096, 256 << 10] {
                let params = cparams(&dtype, 8)?.blocksize(blocksize);
                check(&items[..count * size(name)], &params)?;
            }
        }
    }
    // Noise does not get smaller.
    let noise = Rng(1).bytes(100_000);
    assert!(check(&noise, &cparams("<u4", 9)?)? < 101_000);
    Ok(())
}

#[test]
fn blocks_that_are_no_whole_numbers_are_stored() -> Result<()> {
    let items = wave("f4", false, 5000);
    let params = cparams("<f4", 8)?;
    // The last block has 3 bytes too many. The blocks before are compressed.
    let with_rest = [&items[..], &[1, 2, 3]].concat();
    let found = check(&with_rest, &params.clone().blocksize(4000))?;
    assert!(found < items.len() * 3 / 4, "{found}");
    // One stream for each byte of an item: pcodec gets streams of another type, and the result is right.
    check(&items, &params.split(SplitMode::Always))?;
    Ok(())
}

#[test]
fn other_items_are_refused() -> Result<()> {
    for dtype in ["|b1", "<c8", "|S4", "<U2", "|V8", "<f16", "[('a', '<f4'), ('b', '<f4')]"] {
        let error = cparams(dtype, 8).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        let text = format!(
            "cannot compress items of {dtype} with pco: expected integers or floating-point numbers of 1 to 8 bytes, or \
             times"
        );
        assert_eq!(error.to_string(), text);
    }
    assert!(cparams("nonsense", 8).is_err());
    let error = blosc2::compress(&[0u8; 64][..], cparams("<f4", 10)?).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    // Items of another size, and no type.
    let items = wave("f8", false, 1000);
    let error = blosc2::compress(&items, cparams("<f4", 8)?.typesize(8)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Callback);
    let text = "the codec parameter 5 is for numbers of 4 bytes, got items of 8 bytes";
    assert!(error.to_string().contains(text), "{error}");
    let error = blosc2::compress(&items, cparams("<f8", 8)?.codec_meta(0)).unwrap_err();
    assert!(error.to_string().contains("no number type with the code 0"), "{error}");
    Ok(())
}

#[test]
fn arrays_and_super_chunks() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("waves.b2nd");
    let items = wave("f4", true, 300 * 400);
    for threads in [1, 2] {
        let builder = NDArray::builder().chunk_shape([150, 170]).dtype(">f4", 4);
        let params = cparams(">f4", 8)?.threads(Threads::new(threads));
        let builder = builder.cparams(params).target(&path);
        let array = builder.from_slice(RawItems(&items[..]), [300, 400])?;
        assert!(array.schunk().cbytes() < items.len() as u64 * 3 / 4);
        drop(array);
        let array = NDArray::open(&path)?;
        assert_eq!(array.read::<RawItems>(..)?.0, items);
        let row = array.read::<RawItems>(&[7..8, 100..250])?.0;
        assert_eq!(row, items[4 * (7 * 400 + 100)..4 * (7 * 400 + 250)]);
        std::fs::remove_file(&path)?;
    }
    // A filter before the codec is lossless too.
    let params = cparams("<f4", 8)?.filters(&[Filter::Shuffle]);
    let mut chunks = SChunk::in_memory::<u8>(params)?;
    chunks.append(&items[..])?;
    assert_eq!(chunks.read::<u8>(..)?, items);
    Ok(())
}

#[test]
fn registering_again_has_no_effect() -> Result<()> {
    let codec = blosc2_pco::register()?;
    assert_eq!(blosc2_pco::register()?, codec);
    assert_eq!((codec, codec.to_string()), (Codec::from_code(CODE), "pco".to_owned()));
    assert_eq!(codec.library().map(|library| library.name), Some("pcodec".to_owned()));
    Ok(())
}

/// Rewrites the file that `missing.rs` reads. The format of the blocks must not change: run it only for a new test.
#[test]
#[ignore = "it writes a file of the repository"]
fn write_the_stored_file() -> Result<()> {
    let items: Vec<i16> = (0..20_000).map(|at| (at % 300 * 7) as i16).collect();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/ramps.b2nd");
    let builder = NDArray::builder().dtype("<i2", 2).cparams(cparams("<i2", 8)?).target(path);
    let bytes: Vec<u8> = items.iter().flat_map(|item| item.to_le_bytes()).collect();
    builder.from_slice(RawItems(&bytes[..]), 20_000)?;
    Ok(())
}

#[test]
fn the_stored_file_is_read() -> Result<()> {
    blosc2_pco::register()?;
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/ramps.b2nd");
    let items = NDArray::open(path)?.read::<RawItems>(..)?.0;
    let expected: Vec<u8> =
        (0..20_000).flat_map(|at| ((at % 300 * 7) as i16).to_le_bytes()).collect();
    assert!(items == expected);
    Ok(())
}
