//! The index of a frame: a chunk that contains the offsets of the other chunks.

use super::field;
use super::header::{ChunkSize, Header, Layout};
use super::offset::{NOWHERE, OFFSET_LEN, Offset, special};
use super::offsets::{self, BLOCKSIZE, Blocks, HELD_LEN, Offsets, Place, SPARE_LEN};
use super::rules;
use super::span::Span;
use crate::chunk::{self, Chunk, Decoder, EXTENDED_HEADER_LEN, Special};
use crate::report::{Checker, Options, Part, Rule};
use crate::{Error, Limit, Limits, ReadAt};

/// The maximum size of an index chunk that is read completely (about 100,000 chunks). A larger
/// index chunk is read block by block.
const SHORT: u64 = 64 << 10;

/// The part of an index that is decoded when the index is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// Only the part that cannot be decoded later.
    Lazy,
    /// The complete index, to report all errors.
    Whole,
}

/// Finds the index of a frame.
pub(crate) fn find<R: ReadAt + ?Sized>(
    source: &R,
    header: &Header,
    trailer: Span,
    limits: &Limits,
    depth: Depth,
    checker: &mut Checker<'_>,
) -> Result<Option<(Option<Span>, Offsets)>, Error> {
    let header_len = u64::from(header.header_len);
    if header.nbytes == 0 {
        if trailer.at != header_len {
            let expected = format_args!("{header_len}, as there is no data").to_string();
            let (at, len) = (header_len, trailer.at.saturating_sub(header_len));
            checker.found(&rules::TRAILER_PLACE, at, len, expected, trailer.at);
            return Ok(None);
        }
        if header.cbytes != 0 {
            let expected = "0, as there is no data (C-Blosc2 keeps it when chunks are deleted)";
            field::CBYTES.found(checker, &rules::DELETED, expected, header.cbytes);
        }
        return Ok(Some((None, Offsets::default())));
    }
    let stored = if header.layout == Layout::Contiguous { header.cbytes } else { 0 };
    let last = trailer.at.saturating_sub(header_len + EXTENDED_HEADER_LEN as u64);
    if stored > last || trailer.at < header_len + EXTENDED_HEADER_LEN as u64 {
        let expected = format_args!("at most {last}, with an index before the trailer").to_string();
        field::CBYTES.found(checker, &rules::CBYTES, expected, stored);
        return Ok(None);
    }
    let at = header_len + stored;
    let room = trailer.at - at;
    let mut within = checker.within(Part::Index, at);
    let checker = &mut within;

    let head = source.read_vec_at(at, EXTENDED_HEADER_LEN as u64)?;
    let chunk_header = match chunk::Header::parse(&head) {
        Ok(chunk_header) => chunk_header,
        Err(error) => {
            let found = error.to_string();
            checker.found(&rules::INDEX_CHUNK, error.offset, 1, "a chunk", found);
            return Ok(None);
        }
    };
    let len = u64::from(chunk_header.cbytes);
    if len > room {
        let expected = format_args!("at most {room}, up to the trailer").to_string();
        checker.found(&rules::INDEX_PLACE, 12, 4, expected, len);
        return Ok(None);
    }
    if len < room {
        checker.found(&rules::INDEX_GAP, len, room - len, "none", room - len);
    }
    if !check_index(&chunk_header, header, checker) {
        return Ok(None);
    }
    Limits::allow(Limit::Memory, "bytes of the index", len, limits.memory)?;
    let nbytes = u64::from(chunk_header.nbytes);
    Limits::allow(Limit::Chunks, "chunks", nbytes / OFFSET_LEN, limits.chunks)?;
    let alike = matches!(chunk_header.special, Some(Special::Zeros | Special::Value));
    let each = HELD_LEN * (nbytes / OFFSET_LEN);
    // A block passes through the codec and the filters.
    let held = each.saturating_add(3 * u64::from(chunk_header.block_len()));
    let allow = |metadata| {
        let what = "bytes in memory for the index";
        if alike { Ok(0) } else { Limits::allow(Limit::Metadata, what, held, metadata) }
    };
    allow(limits.decoded_metadata(source.size()?))?;
    let mut whole = None;
    if depth == Depth::Lazy {
        // The header, the block starts, and a short rest. A truncated table of block starts is
        // reported below.
        let table = EXTENDED_HEADER_LEN as u64 + 4 * u64::from(chunk_header.nblocks());
        let is_short = len <= SHORT;
        let read = if is_short { len } else { len.min(table + SPARE_LEN as u64) };
        let bytes = source.read_vec_at(at, read)?;
        let table = bytes.get(EXTENDED_HEADER_LEN..).unwrap_or_default();
        let ranges = offsets::ranges(&chunk_header, table);
        if let (Some(ranges), Some(&header_bytes)) = (ranges, head.first_chunk()) {
            let spare = offsets::spare_of(&chunk_header, table, stored);
            let max = max_place(spare, header);
            let place = Place { at, header: header_bytes, max };
            let count = usize::try_from(nbytes / OFFSET_LEN).unwrap_or(usize::MAX);
            let chunk = is_short.then(|| bytes.into());
            let offsets = Offsets::Each(Blocks::stored(count, place, chunk, ranges, spare));
            return Ok(Some((Some(Span { at, len }), offsets)));
        }
        whole = is_short.then_some(bytes);
        // Opening the frame decodes all of it. The header and its metalayers are already in memory.
        allow(limits.metadata_of(source.size()?).saturating_sub(2 * header_len))?;
    }
    let bytes = match whole {
        Some(bytes) => bytes,
        None => source.read_vec_at(at, len)?,
    };
    let errors = checker.errors();
    let spare =
        offsets::spare_of(&chunk_header, &bytes[EXTENDED_HEADER_LEN.min(bytes.len())..], stored);
    let options = Options { limits: *limits, ..Options::default() };
    chunk::check_after(spare.map_or(0, |_| SPARE_LEN), &bytes, &options, checker);
    if checker.errors() > errors {
        return Ok(None);
    }
    let offsets = match decode_all(&bytes, header, spare, limits, checker) {
        Ok(offsets) => offsets,
        Err(Error::Format(error)) => {
            let found = error.to_string();
            checker.found(
                &rules::INDEX_CHUNK,
                error.offset,
                1,
                "a chunk that can be decoded",
                found,
            );
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    Ok(Some((Some(Span { at, len }), offsets)))
}

/// Returns whether the index chunk can contain the offsets of the chunks.
fn check_index(chunk: &chunk::Header, header: &Header, checker: &mut Checker<'_>) -> bool {
    let errors = checker.errors();
    let mut wrong = |at: u64, len: u64, expected: &str, found: String| {
        checker.found(&rules::INDEX_CHUNK, at, len, expected, found);
    };
    if !chunk.extended {
        wrong(2, 1, "a header of 32 bytes", "16".into());
    }
    if u64::from(chunk.typesize) != OFFSET_LEN {
        wrong(3, 1, "a typesize of 8", chunk.typesize.to_string());
    }
    if chunk.variable_blocks {
        wrong(0x1e, 1, "blocks of equal length", "variable-length blocks".into());
    }
    if chunk.lazy || chunk.instrumented {
        wrong(0x1f, 1, "offsets", "a lazy or instrumented chunk".into());
    }
    if chunk.filters.iter().any(|&filter| filter > 1) {
        wrong(0x10, 6, "no filter other than shuffle", format!("{:?}", chunk.filters));
    }
    match chunk.special {
        Some(Special::Value) if chunk.cbytes as usize != EXTENDED_HEADER_LEN + 8 => {
            wrong(12, 4, "40, with a value of 8 bytes", chunk.cbytes.to_string());
        }
        Some(special @ (Special::Nan | Special::Uninit)) => {
            wrong(0x1f, 1, "offsets", format!("{special:?}"));
        }
        _ => {}
    }
    let blocksize = chunk.nbytes.min(BLOCKSIZE);
    let usual = [
        (8, 4, chunk.block_len() == blocksize || chunk.special.is_some(), "another block size"),
        (2, 1, chunk.codec_format == 0, "another codec"),
        (16, 6, chunk.filters == [0, 0, 0, 0, 0, 1] || chunk.special.is_some(), "other filters"),
        (22, 2, [chunk.user_codec, chunk.codec_meta] == [0; 2], "a codec with parameters"),
        (24, 6, chunk.filters_meta == [0; 6], "filters with parameters"),
        (31, 1, !chunk.dictionary && !chunk.big_endian, "a dictionary, or big-endian items"),
    ];
    for (at, len, usual, found) in usual {
        if !usual {
            let expected = "BloscLZ and shuffle in blocks of 16 KiB, as C-Blosc2 writes it";
            checker.found(&rules::INDEX_PARAMS, at, len, expected, found);
        }
    }
    let nbytes = u64::from(chunk.nbytes);
    let count = match header.chunksize {
        ChunkSize::Unknown | ChunkSize::Variable => nbytes.div_ceil(OFFSET_LEN),
        ChunkSize::Fixed(chunksize) => header.nbytes.div_ceil(u64::from(chunksize)),
    };
    if count == 0 || count.checked_mul(OFFSET_LEN) != Some(nbytes) {
        let expected = format_args!("8 for each of {count} chunks").to_string();
        checker.found(&rules::INDEX_COUNT, 4, 4, expected, nbytes);
    }
    checker.errors() == errors
}

fn decode_all(
    bytes: &[u8],
    header: &Header,
    spare: Option<u64>,
    limits: &Limits,
    checker: &mut Checker<'_>,
) -> Result<Offsets, Error> {
    let chunk = Chunk::new(bytes, limits)?;
    let nbytes = u64::from(chunk.header().nbytes);
    let count = nbytes / OFFSET_LEN;
    let len = bytes.len() as u64;
    if let Some(offset) = repeated(&chunk) {
        if count > 1 && offset >= 0 {
            let found = format_args!("{offset} for all of {count} chunks").to_string();
            checker.found(&rules::OFFSET, 0, len, "a separate position for each chunk", found);
        }
        let max = max_place(None, header);
        return Ok(Offsets::Alike(read(0, offset, max, len, checker), count));
    }
    let max = max_place(spare, header);
    let mut numbers = Vec::with_capacity(usize::try_from(count).unwrap_or(0));
    decode(&chunk, |number, _| {
        numbers.push(read(numbers.len(), number, max, len, checker).number());
        true
    })?;
    Ok(Offsets::of_entries(&numbers, spare))
}

/// Returns the common offset of all chunks, if the index is a repeated value.
fn repeated(chunk: &Chunk<'_>) -> Option<i64> {
    match chunk.header().special? {
        Special::Value => {
            let value = chunk.bytes().get(EXTENDED_HEADER_LEN..)?.first_chunk()?;
            Some(i64::from_le_bytes(*value))
        }
        Special::Zeros => Some(0),
        Special::Nan | Special::Uninit => None,
    }
}

/// Decodes the entries of an index with at most one block in memory. Calls `each` with an entry and the number of its
/// repetitions, which is 1 unless the index is a repeated value. Stops when `each` returns `false`.
pub(super) fn decode(
    chunk: &Chunk<'_>,
    mut each: impl FnMut(i64, u64) -> bool,
) -> Result<(), Error> {
    if let Some(offset) = repeated(chunk) {
        // A few bytes state up to 2^28 entries.
        each(offset, u64::from(chunk.header().nbytes) / OFFSET_LEN);
        return Ok(());
    }
    let mut decoder = Decoder::default();
    let (mut data, mut rest) = (Vec::new(), 0);
    for block in 0..chunk.nblocks() {
        data.resize(rest + chunk.block_size(block), 0);
        decoder.decode_block(chunk, block, &mut data[rest..])?;
        let (numbers, partial) = data.as_chunks();
        if !numbers.iter().all(|number| each(i64::from_le_bytes(*number), 1)) {
            return Ok(());
        }
        // The last entry of a block can be incomplete.
        rest = partial.len();
        let end = data.len() - rest;
        data.copy_within(end.., 0);
    }
    Ok(())
}

/// Returns the meaning of an index entry. Reports an invalid entry, which has no position.
fn read(
    number: usize,
    value: i64,
    max: Option<u64>,
    len: u64,
    checker: &mut Checker<'_>,
) -> Offset {
    let mut wrong = |rule: &'static Rule, expected: String| {
        checker.found(rule, 0, len, expected, format_args!("{value:#x} for chunk {number}"));
    };
    let Ok(place) = u64::try_from(value) else {
        if value << 8 != 0 {
            wrong(&rules::OFFSET_RESERVED, "0 below the highest byte".into());
        }
        return special(value).map_or_else(
            || {
                wrong(&rules::OFFSET_KIND, "0x81, 0x82 or 0x84 as the highest byte".into());
                Offset::At(NOWHERE)
            },
            Offset::Special,
        );
    };
    if max.is_none_or(|max| place > max) {
        let max = max.map_or("none, as no chunk is stored".into(), |max| format!("at most {max}"));
        wrong(&rules::OFFSET, max);
        return Offset::At(NOWHERE);
    }
    Offset::At(place)
}

/// Returns the highest position that a chunk can have, or `None` if no chunk is stored. `spare` is the
/// end of the chunks that the index states.
fn max_place(spare: Option<u64>, header: &Header) -> Option<u64> {
    match header.layout {
        Layout::Contiguous => {
            spare.unwrap_or(header.cbytes).checked_sub(EXTENDED_HEADER_LEN as u64)
        }
        Layout::Directory => Some(u32::MAX.into()),
    }
}
