//! The functions for single chunks, without libhdf5.
#![allow(missing_docs)]

mod common;

use anyhow::{Context, Result};
use blosc2::{Codec, ErrorKind, Filter, NDArray, OpenOptions, Special};
use blosc2_hdf5::{FilterParams, decode, decode_shorter, encode};
use blosc2_testing::{Kind, Rng, data};

use common::run_python;

/// A chunk in the form of `payloads.py`.
struct Chunk {
    values: Vec<u32>,
    payload: Vec<u8>,
    items: Vec<u8>,
}

fn read_chunks(mut bytes: &[u8]) -> Vec<Chunk> {
    let mut take = || {
        let (len, rest) = bytes.split_first_chunk::<4>()?;
        let (part, rest) = rest.split_at(u32::from_le_bytes(*len) as usize);
        bytes = rest;
        Some(part.to_vec())
    };
    std::iter::from_fn(|| {
        let values = take()?;
        let values = values.chunks(4).map(|bytes| u32::from_le_bytes(bytes.try_into().unwrap()));
        Some(Chunk { values: values.collect(), payload: take()?, items: take()? })
    })
    .collect()
}

fn write_chunks(chunks: &[Chunk]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut put = |part: &[u8]| {
        bytes.extend((part.len() as u32).to_le_bytes());
        bytes.extend(part);
    };
    for chunk in chunks {
        put(&chunk.values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>());
        put(&chunk.payload);
        put(&chunk.items);
    }
    put(&[]);
    bytes
}

/// Decodes the chunks of a file that a script has written. Returns their number.
fn decode_file(script: &str, name: &str) -> Result<usize> {
    let folder = tempfile::tempdir()?;
    run_python(script, folder.path(), &[]);
    run_python("payloads.py", folder.path(), &["read", name, "payloads"]);
    let chunks = read_chunks(&std::fs::read(folder.path().join("payloads"))?);
    for Chunk { values, payload, items } in &chunks {
        let context = || format!("{values:?}");
        let params = FilterParams::from_cd_values(values).with_context(context)?;
        assert!(&decode(payload, &params, items.len()).with_context(context)? == items);
        let error = decode(payload, &params, items.len() - 1).map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
        if params.filter == Some(Filter::TruncPrec(0)) {
            continue; // hdf5plugin uses it only at level 0, which applies no filter.
        }
        // PyTables omits the codec if it is the default.
        assert_eq!(&params.cd_values().with_context(context)?[..values.len()], values);
        let payload = encode(items, &params).with_context(context)?;
        assert!(&decode(&payload, &params, items.len()).with_context(context)? == items);
    }
    Ok(chunks.len())
}

#[test]
fn chunks_of_hdf5plugin() -> Result<()> {
    assert_eq!(decode_file("write_hdf5plugin.py", "hdf5plugin.h5")?, 194);
    Ok(())
}

#[test]
fn chunks_of_pytables() -> Result<()> {
    assert_eq!(decode_file("write_pytables.py", "pytables.h5")?, 270);
    Ok(())
}

#[test]
fn hdf5plugin_reads_chunks() -> Result<()> {
    let mut chunks = Vec::new();
    let codecs = [Codec::BloscLz, Codec::Lz4, Codec::Lz4Hc, Codec::Zlib, Codec::Zstd];
    let filters = [Filter::Shuffle, Filter::Bitshuffle, Filter::Delta];
    let shapes: [&[usize]; 5] = [&[300], &[16, 12], &[5, 1, 40], &[3, 7, 4, 5], &[700, 800]];
    let kinds = [Kind::Zeros, Kind::Random, Kind::Ramp, Kind::Mixed];
    for codec in codecs {
        for filter in filters.map(Some).into_iter().chain([None]) {
            for (number, shape) in shapes.into_iter().enumerate() {
                for typesize in [1, 2, 8, 12, 255, 256, 300] {
                    let len = typesize * shape.iter().product::<usize>();
                    if len > 1 << 21 {
                        continue;
                    }
                    let params = FilterParams::new(typesize, shape)?.codec(codec).filter(filter);
                    let params = match chunks.len() % 3 {
                        0 => params,
                        1 => params.blocksize(4096),
                        _ => params.blocksize(300).level(9),
                    };
                    let items = data(kinds[(number + typesize) % 4], len, chunks.len() as u64);
                    let payload = encode(&items, &params)?;
                    chunks.push(Chunk { values: params.cd_values()?, payload, items });
                }
            }
        }
    }
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("payloads"), write_chunks(&chunks))?;
    let printed = run_python("payloads.py", folder.path(), &["write", "payloads"]);
    assert_eq!((printed.trim(), chunks.len()), ("600", 600));
    Ok(())
}

#[test]
fn chunks_with_a_shape_are_arrays() -> Result<()> {
    let params = FilterParams::new(4, &[60, 50])?.codec(Codec::Lz4);
    let items = data(Kind::Ramp, 12_000, 1);
    let array = NDArray::open_rw(encode(&items, &params)?)?;
    assert_eq!((array.shape(), array.chunk_shape()), (&[60, 50][..], &[60, 50][..]));
    assert_eq!((array.dtype_str(), array.info().cparams.codec), (Some("|V4"), Codec::Lz4));
    let array = NDArray::open_rw(encode(&items, &params.clone().blocksize(1000))?)?;
    assert_eq!(array.block_shape(), [8, 16]);
    // Other lengths, as those of chunks with a checksum, have no shape.
    for len in [12_004, 11_000, 7] {
        let items = data(Kind::Ramp, len, 1);
        let payload = encode(&items, &params)?;
        assert_eq!(decode_shorter(&payload, &params, len)?, items);
        assert_eq!(decode(&payload, &params, len).is_ok(), len > 12_000);
        assert_eq!(NDArray::open_rw(payload).unwrap_err().kind(), ErrorKind::InvalidData);
    }
    Ok(())
}

#[test]
fn parameters() -> Result<()> {
    let params = FilterParams::new(8, &[10, 20, 30])?;
    let values = params.cd_values()?;
    assert_eq!(values, [1, 0, 8, 48_000, 5, 1, 0, 3, 10, 20, 30]);
    // The shape is stored for 2 to 16 axes, and read for 1 axis, too.
    assert_eq!(FilterParams::new(8, &[10])?.cd_values()?, [1, 0, 8, 80, 5, 1, 0]);
    assert_eq!(FilterParams::new(8, &[1; 17])?.cd_values()?, [1, 0, 8, 8, 5, 1, 0]);
    assert_eq!(FilterParams::new(8, &[1; 16])?.cd_values()?.len(), 24);
    let one = FilterParams::from_cd_values(&[1, 0, 8, 80, 5, 1, 0, 1, 10])?;
    assert_eq!(one.chunk_shape, [10]);
    let default = FilterParams::from_cd_values(&[1, 0, 8, 48_000])?;
    assert_eq!((default.codec, default.level), (params.codec, params.level));
    assert_eq!((default.filter, default.blocksize), (params.filter, None));
    assert_eq!(default.chunk_shape, [0u32; 0]);
    let full = params.clone().filter(None).blocksize(512).level(9).codec(Codec::Zstd);
    assert_eq!(full.cd_values()?[..7], [1, 512, 8, 48_000, 9, 0, 5]);
    assert_eq!(FilterParams::from_cd_values(&full.cd_values()?)?, full);

    for (values, message) in [
        (&[1, 0, 8][..], "expected at least 4 integers, got [1, 0, 8]"),
        (&[1, 0, 8, 80, 256], "expected a level of at most 255, got 256"),
        (&[1, 0, 8, 80, 5, 256], "the code of a filter of at most 255, got 256"),
        (&[1, 0, 8, 80, 5, 1, 1000], "the code of a codec of at most 255, got 1000"),
        (&[1, 0, 8, 80, 5, 1, 0, 0], "expected 1 to 16 dimensions and the size of each, got"),
        (&[1, 0, 8, 80, 5, 1, 0, 2, 10], "expected 1 to 16 dimensions and the size of each, got"),
        (&[1; 25 + 4], "ok"),
    ] {
        match FilterParams::from_cd_values(values) {
            Ok(params) => assert_eq!((message, &params.chunk_shape[..]), ("ok", &[1][..])),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::InvalidData);
                assert!(error.to_string().contains(message), "{error}");
            }
        }
    }
    let mut long = vec![1; 8 + 17];
    long[7] = 17;
    assert_eq!(FilterParams::from_cd_values(&long).unwrap_err().kind(), ErrorKind::InvalidData);

    let new = |typesize, shape: &[usize]| FilterParams::new(typesize, shape).unwrap_err().kind();
    assert_eq!(new(0, &[1]), ErrorKind::InvalidArgument);
    assert_eq!(new(1, &[]), ErrorKind::InvalidArgument);
    assert_eq!(new(1, &[5, 0]), ErrorKind::InvalidArgument);
    assert_eq!(new(4, &[1 << 15, 1 << 15]), ErrorKind::TooLarge);
    assert_eq!(new(1, &[1 << 32]), ErrorKind::TooLarge);

    for (params, kind) in [
        (params.clone().level(10), ErrorKind::InvalidArgument),
        (params.clone().filter(Filter::TruncPrec(10)), ErrorKind::InvalidArgument),
        (params.clone().filter(Filter::ShuffleBytes(4)), ErrorKind::InvalidArgument),
        (params.clone().codec(Codec::Ndlz), ErrorKind::InvalidArgument),
        (params.clone().codec(Codec::Other(99)), ErrorKind::Unsupported),
    ] {
        assert_eq!(params.cd_values().unwrap_err().kind(), kind, "{params:?}");
        assert_eq!(encode(&[0; 48_000], &params).unwrap_err().kind(), kind, "{params:?}");
    }
    assert_eq!(encode(&[], &params).unwrap_err().kind(), ErrorKind::InvalidArgument);
    // Blocks have at least one item.
    let small = params.clone().blocksize(4);
    small.cd_values()?;
    assert_eq!(decode(&encode(&[7; 48_000], &small)?, &small, 48_000)?, [7; 48_000]);
    Ok(())
}

#[test]
fn wrong_payloads() -> Result<()> {
    let params = FilterParams::new(4, &[60, 50])?;
    let items = data(Kind::Ramp, 12_000, 1);
    let check = |payload: &[u8], limit: usize, kind: ErrorKind, message: &str| {
        let error = decode(payload, &params, limit).map(drop).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(message), "{error}");
    };
    let payload = encode(&items, &params)?;
    check(&[], 12_000, ErrorKind::InvalidData, "");
    check(&items, 12_000, ErrorKind::InvalidData, "");
    check(&payload[..payload.len() - 1], 12_000, ErrorKind::InvalidData, "");
    check(&payload, 11_999, ErrorKind::TooLarge, "12000 bytes, expected at most 11999");
    let other = encode(&items, &FilterParams::new(4, &[50, 60])?)?;
    let message =
        "expected an array of shape [60, 50] with 12000 bytes, got [50, 60] with 12000 bytes";
    check(&other, 12_000, ErrorKind::InvalidData, message);
    let other = encode(&items[..6000], &FilterParams::new(2, &[60, 50])?)?;
    check(&other, 12_000, ErrorKind::InvalidData, "with 12000 bytes, got [60, 50] with 6000 bytes");

    let message =
        "got [60, 49] with 11760 bytes; HDF5 stores complete chunks, also at the edge of a dataset";
    let edge = encode(&items[..11_760], &FilterParams::new(4, &[60, 49])?)?;
    check(&edge, 12_000, ErrorKind::InvalidData, message);
    // A chunk that the writer has stored without the filter.
    let message =
        "got 12000 bytes without its header; if the filter mask of the chunk excludes Blosc2";
    check(&items, 12_000, ErrorKind::InvalidData, message);

    let schunk = OpenOptions::new().typesize(4).create_new(true).open(Vec::new())?;
    check(&schunk.into_cframe()?, 12_000, ErrorKind::InvalidData, "the chunk is empty");

    // An array of 10,000 bytes in a block of 128 MiB, which reading would have to decompress.
    let block = [1 << 13, 1 << 14];
    let array = NDArray::builder().chunk_shape(block).block_shape(block);
    let array =
        array.from_slice(&data(Kind::Random, 10_000, 1), [100, 100])?.schunk().to_cframe()?;
    let bytes = FilterParams::new(1, &[100, 100])?;
    let error = decode(&array, &bytes, 10_000).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
    assert_eq!(decode(&array, &bytes, 1 << 30)?.len(), 10_000);

    // A few bytes that stand for 1 GiB of zeros.
    let huge =
        NDArray::builder().chunk_shape([1 << 15, 1 << 15]).zeros::<u8>([1 << 15, 1 << 15])?;
    let huge = huge.schunk().to_cframe()?;
    let same = FilterParams::new(1, &[1 << 15, 1 << 15])?;
    let error = decode(&huge, &same, 1 << 20).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
    Ok(())
}

/// Other writers store frames with several chunks. The last chunk can be shorter than the others.
#[test]
fn frames_with_several_chunks() -> Result<()> {
    let items = data(Kind::Mixed, 12_000, 1);
    let params = FilterParams::new(4, &[3000])?;
    for chunksize in [12_000, 6000, 5000, 4000, 100, 4] {
        let mut schunk = OpenOptions::new().typesize(4).create_new(true).open(Vec::new())?;
        for chunk in items.chunks(chunksize) {
            schunk.append(chunk)?;
        }
        assert_eq!(schunk.nchunks(), items.len().div_ceil(chunksize));
        let payload = schunk.into_cframe()?;
        assert!(decode(&payload, &params, 12_000)? == items, "{chunksize}");
        // Also if a chunk has a shape.
        let shape = FilterParams::new(4, &[60, 50])?;
        assert!(decode(&payload, &shape, 12_000)? == items, "{chunksize}");
        let error = decode(&payload, &params, 11_999).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
    }
    // All chunks together are too short, or too long.
    let mut schunk = OpenOptions::new().typesize(4).create_new(true).open(Vec::new())?;
    schunk.append(&items[..6000])?;
    schunk.append(&items[..5996])?;
    let payload = schunk.into_cframe()?;
    let error = decode(&payload, &params, 12_000).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidData);
    let message = "expected at least the 12000 bytes of a chunk, got a frame with 11996 bytes";
    assert!(error.to_string().contains(message), "{error}");
    assert_eq!(decode_shorter(&payload, &params, 12_000)?.len(), 11_996);
    assert_eq!(decode_shorter(&payload, &params, 11_995).unwrap_err().kind(), ErrorKind::TooLarge);
    // Runs of zeros.
    let mut schunk = OpenOptions::new().typesize(4).create_new(true).open(Vec::new())?;
    schunk.fill(Special::Zeros, 3000, 1000)?;
    assert_eq!(decode(&schunk.into_cframe()?, &params, 12_000)?, [0; 12_000]);
    Ok(())
}

#[test]
fn damaged_payloads_are_errors_or_data() -> Result<()> {
    let mut rng = Rng(1);
    let mut data_count = 0;
    for shape in [&[3000][..], &[60, 50], &[10, 30, 10]] {
        let params = FilterParams::new(4, shape)?.codec(Codec::Lz4);
        for blocksize in [None, Some(1000)] {
            let mut params = params.clone();
            params.blocksize = blocksize;
            let payload = encode(&data(Kind::Mixed, 12_000, 1), &params)?;
            for _ in 0..2000 {
                let mut payload = payload.clone();
                for _ in 0..1 + rng.index(3) {
                    let at = match rng.index(2) {
                        0 => rng.index(payload.len().min(250)),
                        _ => rng.index(payload.len()),
                    };
                    payload[at] = rng.next() as u8;
                }
                if rng.index(10) == 0 {
                    payload.truncate(rng.index(payload.len()));
                }
                if let Ok(found) = decode(&payload, &params, 12_000) {
                    assert!(found.len() <= 12_000);
                    data_count += 1;
                }
            }
        }
    }
    // Both happen; the exact number depends on the sizes of the payloads.
    assert!((1000..11_000).contains(&data_count), "{data_count}");
    Ok(())
}
