//! Rust against C: what has no fault is read the same by `blosc2-format` and through C.

use crate::check::{Content, good_content};
use crate::{LIMITS, folder, options};
use blosc2::{Check, ErrorKind, NDArray, OpenOptions, RawItems, SChunk, Target};
use blosc2_format::chunk::{Chunk, Header};
use blosc2_format::directory::Memory;
use blosc2_format::file::{self, Kind};

/// Reads a file or a folder in Rust and through C.
pub fn differential(input: &[u8]) {
    let Some(read) = good_content(input) else { return };
    let opened = match folder::unpack(input) {
        Some(files) => OpenOptions::new().check(Check::Content).open(Target::folder(Memory(files))),
        None => match file::recognise(input).expect("memory can be read") {
            Some(Kind::Frame) => OpenOptions::new().check(Check::Content).open(input.to_vec()),
            Some(Kind::Chunk) => return differential_chunk(input),
            // C does not know the others.
            _ => return,
        },
    };
    let expected = opened.and_then(read_through_c);
    let expected = match expected {
        Ok(expected) => expected,
        Err(error) if is_not_here(&error) => return,
        Err(error) => panic!("only C refuses it: {error}"),
    };
    assert_eq!(read.meta, expected.meta, "metalayers");
    assert_eq!(read.vlmeta, expected.vlmeta, "variable-length metalayers");
    assert_eq!(read.chunks.len(), expected.chunks.len(), "chunks");
    for (number, (found, expected)) in read.chunks.iter().zip(&expected.chunks).enumerate() {
        assert!(found == expected, "chunk {number}: Rust {found:x?}, C {expected:x?}");
    }
    if let (Some(found), Some(expected)) = (&read.array, &expected.array) {
        assert!(found == expected, "the items of the array differ");
    }
}

fn read_through_c(schunk: SChunk) -> blosc2::Result<Content> {
    let layers = |layers: blosc2::super_chunk::Metalayers<'_>| layers.iter().collect();
    let (meta, vlmeta): (blosc2::Result<Vec<_>>, blosc2::Result<Vec<_>>) =
        (layers(schunk.meta()), layers(schunk.vlmeta()));
    let (meta, vlmeta) = (meta?, vlmeta?);
    let chunks = schunk.iter_chunks().collect::<blosc2::Result<_>>()?;
    let array = match schunk.info().is_array {
        true => Some(NDArray::from_schunk(schunk)?.read::<RawItems>(..)?.0),
        false => None,
    };
    Ok(Content { chunks, array, meta, vlmeta })
}

/// Decompresses a chunk in Rust and by C. If both do, the data is the same; C decompresses a chunk without faults.
pub fn differential_chunk(input: &[u8]) {
    let Ok(header) = Header::parse(input) else { return };
    if u64::from(header.nbytes) > LIMITS.memory {
        return;
    }
    let report = Chunk::check(input, &options());
    let rust = Chunk::new(input, &LIMITS).and_then(|chunk| chunk.decode());
    let c = blosc2::decompress::<u8>(input);
    let mut filters = header.filters.iter().zip(header.filters_meta);
    // C knows the width of bytedelta in a super-chunk only.
    let needs_typesize = filters.any(|filter| matches!(filter, (34 | 35, 0)));
    // C splits the blocks of chunks of Blosc before 1.11 by the flag alone, without the limits of the old writers.
    let typesize = u32::from(header.typesize.max(1));
    let is_split_by_c_only = header.version <= 2
        && header.split
        && (typesize > 16 || header.block_len() / typesize < 128);
    match (rust, c) {
        (Ok(rust), Ok(c)) => {
            let is_known = needs_typesize || is_split_by_c_only;
            assert!(rust == c || is_known, "Rust {rust:x?}, C {c:x?}");
        }
        (Ok(_), Err(error)) if report.is_good() && report.is_complete() => {
            let is_known = needs_typesize || is_split_by_c_only || is_not_here(&error);
            assert!(is_known, "only C refuses it: {error}");
        }
        _ => {}
    }
}

/// Whether C lacks a codec or a filter.
fn is_not_here(error: &blosc2::Error) -> bool {
    matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::TooLarge)
        || error.to_string().contains("not in this build")
}
