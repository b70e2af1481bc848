//! Real files that other versions of the library wrote, from upstream's sources.

use std::fs;
use std::path::PathBuf;

use blosc2::{Chunk, Codec, DParams, Decompressor, ErrorKind, NDArray, RawItems, SChunk};
use blosc2_format::Limits;

use crate::common::{Rng, assert_same, name, upstream, upstream_files};

/// The arrays in upstream's `plugins/test_data`, with the shapes from its README. Their dtype is `|u1`, but their
/// items are floats of 4 bytes.
fn arrays() -> Vec<(NDArray, &'static str, [&'static [u64]; 3])> {
    let expected = [
        ("example_day_month_temp.b2nd", [&[400, 3][..], &[110, 3], &[57, 3]]),
        ("example_item_prices.b2nd", [&[12, 25, 250], &[8, 10, 50], &[4, 5, 10]]),
    ];
    let files = upstream_files("plugins/test_data", ".b2nd");
    assert_eq!(files.len(), expected.len(), "{files:?}");
    let open = |(file, shapes): (&'static str, [&'static [u64]; 3])| {
        (NDArray::open(upstream("plugins/test_data").join(file)).unwrap(), file, shapes)
    };
    expected.into_iter().map(open).collect()
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|item| f32::from_le_bytes(item.try_into().unwrap())).collect()
}

#[test]
fn upstream_arrays_have_the_shapes_of_their_readme() {
    for (array, file, [shape, chunks, blocks]) in arrays() {
        assert_eq!(array.shape(), shape, "{file}");
        assert_eq!(array.chunk_shape(), chunks, "{file}");
        assert_eq!(array.block_shape(), blocks, "{file}");
        assert_eq!((array.dtype_str(), array.typesize()), (Some("|u1"), 4), "{file}");
        // The codec differs from the README.
        let params = array.info().cparams;
        assert_eq!((params.codec, params.level), (Codec::BloscLz, 5), "{file}");
        assert_eq!(array.len(), shape.iter().product::<u64>(), "{file}");
    }
}

#[test]
fn upstream_arrays_are_not_read_as_the_type_that_their_dtype_claims() {
    for (array, file, _) in arrays() {
        for kind in [
            array.read::<Vec<u8>>(..).unwrap_err().kind(),
            array.read::<Vec<f32>>(..).unwrap_err().kind(),
        ] {
            assert_eq!(kind, ErrorKind::TypeMismatch, "{file}");
        }
    }
}

#[test]
fn upstream_arrays_read_in_boxes_give_what_reading_all_gives() {
    for (array, file, [shape, ..]) in arrays() {
        let whole = array.read::<RawItems>(..).unwrap().0;
        assert_eq!(whole.len() as u64, array.len() * 4, "{file}");
        // In runs of 7 along the first dimension and 2 along the last; the middle one whole.
        let mut assembled = vec![0u8; whole.len()];
        let last = shape.len() - 1;
        let inner: u64 = shape[1..].iter().product();
        for first in (0..shape[0]).step_by(7) {
            for at in (0..shape[last]).step_by(2) {
                let mut ranges: Vec<_> = array.shape().iter().map(|&size| 0..size).collect();
                ranges[0] = first..(first + 7).min(shape[0]);
                ranges[last] = at..(at + 2).min(shape[last]);
                let part = array.read::<RawItems>(&ranges).unwrap().0;
                let width = (ranges[last].end - at) as usize * 4;
                for (row, bytes) in part.chunks_exact(width).enumerate() {
                    let rows_each = inner / shape[last];
                    let row = first * rows_each + row as u64;
                    let to = (row * shape[last] + at) as usize * 4;
                    assembled[to..to + width].copy_from_slice(bytes);
                }
            }
        }
        assert_same(&assembled, &whole, file);
    }
}

/// The program that wrote the file filled 100 rows, in steps of four items, and left the other rows uninitialized.
/// The values show the order of the items, over three blocks and into the second chunk.
#[test]
fn the_temperatures_are_of_days_months_and_degrees() {
    let (array, ..) = arrays().remove(0);
    let values = floats(&array.read::<RawItems>(..).unwrap().0);
    for row in values[..400].chunks_exact(4) {
        assert!((0.0..=31.0).contains(&row[0]) && row[0].fract() == 0.0, "day {row:?}");
        assert!((0.0..=12.0).contains(&row[1]) && row[1].fract() == 0.0, "month {row:?}");
        assert!((-20.0..=40.0).contains(&row[2]), "temperature {row:?}");
    }
}

#[test]
fn the_prices_are_positive_and_vary() {
    let (array, ..) = arrays().remove(1);
    let mut values = floats(&array.read::<RawItems>(..).unwrap().0);
    assert!(values.iter().all(|price| price.is_finite() && *price > 0.0));
    values.sort_by(f32::total_cmp);
    values.dedup();
    assert!(values.len() > 1000, "{} different prices", values.len());
}

/// What upstream's `compat/filegen.c` compressed: a million int32 counting up from 0.
fn counting() -> Vec<u8> {
    (0..1_000_000i32).flat_map(i32::to_le_bytes).collect()
}

/// The chunks in `compat` with their file names. Two files there are the output of a filter instead.
fn old_chunks() -> Vec<(String, Chunk)> {
    let mut files = upstream_files("compat", ".cdata");
    files.retain(|path| {
        !["shuffle-", "bitshuffle-"].iter().any(|each| name(path).starts_with(each))
    });
    assert_eq!(files.len(), 27, "{files:?}");
    let read = |path: PathBuf| (name(&path), Chunk::new(fs::read(&path).unwrap()).unwrap());
    files.into_iter().map(read).collect()
}

#[test]
fn chunks_of_every_version_since_1_3_0_decode_to_what_was_compressed() {
    let expected = counting();
    for (file, chunk) in old_chunks() {
        assert_eq!(chunk.cbytes(), chunk.as_bytes().len(), "{file}");
        let data = chunk.decompress::<u8>().unwrap_or_else(|error| panic!("{file}: {error}"));
        assert_eq!(data.len(), chunk.nbytes(), "{file}");
        // As in upstream's test, the last bytes of unaligned bitshuffled data are ignored.
        let checked = if file.contains("-bitshuffle") { data.len() / 8 * 8 } else { data.len() };
        assert!(checked > 0 && checked <= expected.len(), "{file}: {checked} bytes");
        assert_same(&data[..checked], &expected[..checked], &file);

        let formats = blosc2_format::chunk::Chunk::new(chunk.as_bytes(), &Limits::default());
        assert_same(&formats.unwrap().decode().unwrap(), &data, &file);
    }
}

#[test]
fn parts_of_chunks_of_every_version_are_those_of_the_whole() {
    let mut decompressor = Decompressor::new(&DParams::default()).unwrap();
    for (seed, (file, chunk)) in old_chunks().into_iter().enumerate() {
        let rng = &mut Rng(seed as u64);
        let data = chunk.decompress::<u8>().unwrap();
        let numbers: Vec<i32> =
            data.chunks_exact(4).map(|item| i32::from_ne_bytes(item.try_into().unwrap())).collect();
        let (len, block) = (data.len(), chunk.blocksize().unwrap());
        let mut ranges = vec![0..0, 0..1, 0..len, len - 1..len, len..len, block - 1..block + 1];
        ranges.push(len / block * block - 1..len);
        for _ in 0..40 {
            let (one, other) = (rng.below(len as u64 + 1), rng.below(len as u64 + 1));
            let start = one.min(other) as usize;
            // Most of them short.
            let stop = if rng.below(4) == 0 { one.max(other) as usize } else { start + 100 };
            ranges.push(start..stop.min(len));
        }
        for range in ranges {
            let what = format!("{file}, {range:?}");
            let bytes = decompressor.items::<u8>(&chunk, range.clone()).unwrap();
            assert_same(&bytes, &data[range.clone()], &what);
            let range = range.start / 4..range.end / 4;
            let items = decompressor.items::<i32>(&chunk, range.clone()).unwrap();
            assert!(items == numbers[range], "{what}");
        }
        for range in [len..len + 1, len + 1..len + 1, 0..usize::MAX] {
            let error = decompressor.items::<u8>(&chunk, range).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::OutOfBounds, "{file}");
        }

        // Some blocks, none and all; the other bytes stay as they are.
        for odds in [1, 2, 5, u64::MAX] {
            let wanted: Vec<bool> = (0..chunk.nblocks()).map(|_| rng.below(odds) == 0).collect();
            let before = vec![0x5a; block];
            let mut target = vec![0x5a; len];
            decompressor.decompress_masked(&chunk, &wanted, &mut target).unwrap();
            let blocks = target.chunks(block).zip(data.chunks(block)).zip(&wanted);
            for (at, ((found, expected), wanted)) in blocks.enumerate() {
                let what = format!("{file}, block {at}");
                match wanted {
                    true => assert_same(found, expected, &what),
                    false => assert_same(found, &before[..found.len()], &what),
                }
            }
        }
    }
}

/// `text` and its NUL byte, over and over, in `len` bytes.
fn tiled(text: &str, len: usize) -> Vec<u8> {
    assert_eq!(text.len(), 49);
    text.bytes().chain([0]).cycle().take(len).collect()
}

/// Upstream's `compat/filegen-vl.c` makes a block of each text, ten times over.
fn vl_chunk(blocks: &[&str]) -> Vec<u8> {
    blocks.iter().flat_map(|text| tiled(text, 500)).collect()
}

fn assert_chunks(file: &str, expected: &[Vec<u8>], version: u8) {
    let schunk = SChunk::open(upstream("compat").join(file)).unwrap();
    assert_eq!(schunk.nchunks(), expected.len(), "{file}");
    let info = schunk.info();
    assert_eq!((info.format_version, info.contiguous), (Some(version), Some(true)), "{file}");
    assert_eq!(schunk.nbytes(), expected.iter().map(|each| each.len() as u64).sum::<u64>());
    for (index, expected) in expected.iter().enumerate() {
        let what = format!("{file}, chunk {index}");
        assert_same(&schunk.decompress_chunk::<u8>(index).unwrap(), expected, &what);
        let mut buffer = vec![1u8; expected.len()];
        schunk.decompress_chunk_into(index, &mut buffer).unwrap();
        assert_same(&buffer, expected, &what);
    }
    let all: Vec<Vec<u8>> = schunk.iter_chunks().map(Result::unwrap).collect();
    assert_eq!(all, expected, "{file}");
    assert_eq!(
        schunk.decompress_chunk::<u8>(expected.len()).unwrap_err().kind(),
        ErrorKind::OutOfBounds
    );

    // A copy of the chunks as they are.
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.b2frame");
    schunk.save(&copy).unwrap();
    let copied = SChunk::open(&copy).unwrap();
    let all: Vec<Vec<u8>> = copied.iter_chunks().map(Result::unwrap).collect();
    assert_eq!(all, expected, "{file}, saved");
}

const ALPHABET: &str = "abcdefghijklmnopqrstuvwxyz-abcdefghijklmnopqrstuv";
const CAPITALS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ-ABCDEFGHIJKLMNOPQRSTUV";
const DIGITS: &str = "0123456789-0123456789-0123456789-0123456789-01234";
const FOX: &str = "the-quick-brown-fox-jumps-over-the-lazy-dog-finis";
const PLANETS: &str = "mercury-venus-earth-mars-jupiter-saturn-uranus-ne";
const SUNS: &str = "sun-moon-milky-way-galaxy-star-pulsar-quasar-nova";
const ANDROMEDA: &str = "andromeda-galaxy-pegasus-cygnus-orion-lyra-aquila";
const HOLES: &str = "black-hole-neutron-star-white-dwarf-red-giant-sun";
const AS: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const BS: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
const CS: &str = "ccccccccccccccccccccccccccccccccccccccccccccccccc";
const DS: &str = "ddddddddddddddddddddddddddddddddddddddddddddddddd";
const HEX: &str = "0xdeadbeef-0xcafebabe-0x01234567-0x89abcdef-0xfff";
const PI: &str = "3.14159265-2.71828182-1.41421356-1.73205080-3.141";
const HASHES: &str = "sha256-md5-sha1-sha512-hmac-aes256-rsa4096-ecdsa-";
const CODECS: &str = "blosc2-lz4-zstd-zlib-blosclz-lz4hc-snappy-gzip-bl";
const BOX: &str = "pack-my-box-with-five-dozen-liquor-jugs-and-bread";
const ZEBRAS: &str = "how-vexingly-quick-daft-zebras-jump-high-overhead";
const SPHINX: &str = "sphinx-of-black-quartz-judge-my-vow-and-be-feared";
const QUINCY: &str = "foxy-quincy-jumps-over-a-wilted-zinnia-bed-bright";

#[test]
fn a_frame_of_chunks_of_different_lengths_is_read() {
    let expected = [
        tiled(ALPHABET, 1000),
        tiled(CAPITALS, 500),
        tiled(DIGITS, 2000),
        tiled(FOX, 520),
        tiled(AS, 301),
    ];
    assert_chunks("varchunks-lz4-3.0.0.b2frame", &expected, 3);
}

#[test]
fn frames_of_blocks_of_different_lengths_are_read() {
    let fixed = [
        vl_chunk(&[ALPHABET, CAPITALS, DIGITS, FOX]),
        vl_chunk(&[PLANETS, SUNS, ANDROMEDA, HOLES]),
        vl_chunk(&[AS, BS, CS, DS]),
        vl_chunk(&[HEX, PI, HASHES, CODECS]),
        vl_chunk(&[BOX, ZEBRAS, SPHINX, QUINCY]),
    ];
    assert_chunks("vlblocks-lz4-fixed-3.0.0.b2frame", &fixed, 3);
    let variable = [
        vl_chunk(&[PLANETS, ANDROMEDA]),
        vl_chunk(&[CODECS, PI, HEX]),
        vl_chunk(&[AS, BS, BOX, ZEBRAS]),
        vl_chunk(&[ALPHABET, CAPITALS, DIGITS, FOX, QUINCY]),
        vl_chunk(&[SUNS, HOLES, SPHINX, CS, DS, HASHES]),
    ];
    assert_chunks("vlblocks-lz4-variable-3.0.0.b2frame", &variable, 3);
}

/// Upstream's `tests/fuzz/generate_inputs_corpus.c`: ten chunks of 50 000 int32, `i * chunk`.
#[test]
fn frames_of_every_codec_hold_the_same_numbers_and_a_metalayer() {
    let files = upstream_files("tests/fuzz/corpus", ".b2frame");
    assert_eq!(files.len(), 5);
    for path in files {
        let file = name(&path);
        let schunk = SChunk::open(&path).unwrap();
        assert_eq!((schunk.nchunks(), schunk.typesize(), schunk.chunksize()), (10, 4, 200_000));
        let codec: Codec =
            file.trim_start_matches("frame_simple-").trim_end_matches(".b2frame").parse().unwrap();
        assert_eq!(
            (schunk.info().cparams.codec, schunk.info().cparams.level),
            (codec, 5),
            "{file}"
        );
        for (index, chunk) in schunk.iter_chunks::<i32>().enumerate() {
            // The file contains little-endian items.
            let expected: Vec<i32> =
                (0..50_000).map(|item| (item * index as i32).to_le()).collect();
            assert!(chunk.unwrap() == expected, "{file}, chunk {index}");
        }
        assert_eq!(schunk.vlmeta().names(), ["vlmetalayer"], "{file}");
        let content = schunk.vlmeta().get("vlmetalayer").unwrap().unwrap();
        assert_eq!(content, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], "{file}");
        assert_eq!(schunk.meta().names(), Vec::<String>::new(), "{file}");

        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("copy.b2frame");
        schunk.save(&copy).unwrap();
        let copied = SChunk::open(&copy).unwrap();
        assert_eq!(copied.vlmeta().get("vlmetalayer").unwrap().unwrap(), content);
        for index in 0..10 {
            let (one, other) =
                (schunk.decompress_chunk::<i32>(index), copied.decompress_chunk::<i32>(index));
            assert!(one.unwrap() == other.unwrap(), "{file}, chunk {index}, saved");
        }
        assert_eq!(copied.info().cparams, schunk.info().cparams, "{file}");
    }
}
