//! Partial decoding: only the blocks that the requested ranges need are read and decompressed.

use std::ops::Range;
use std::sync::Arc;

use blosc2::Filter;
use blosc2_format::chunk::Header;
use zarrs::array::codec::api::{
    ArrayBytesRaw, BytesPartialDecoderTraits, BytesRepresentation, CodecError, CodecOptions,
};
use zarrs::storage::StorageError;
use zarrs::storage::byte_range::{ByteRange, ByteRangeIterator, InvalidByteRangeError};

use crate::coder::{Coder, check_len, open};

/// Chunks up to this number of bytes are read by one request, which takes no longer than several small ones.
const SMALL: u64 = 64 * 1024;
/// Gaps of up to this number of bytes are read too, instead of adding a range to the request.
const GAP: usize = 4096;

/// The partial decoder of a chunk. `I` is the source of the encoded bytes.
pub(crate) struct PartialDecoder<I: ?Sized> {
    input: Arc<I>,
    coder: Arc<Coder>,
    decoded: BytesRepresentation,
}

impl<I: ?Sized> PartialDecoder<I> {
    pub(crate) fn new(input: Arc<I>, coder: Arc<Coder>, decoded: BytesRepresentation) -> Self {
        Self { input, coder, decoded }
    }
}

impl BytesPartialDecoderTraits for PartialDecoder<dyn BytesPartialDecoderTraits> {
    fn exists(&self) -> Result<bool, StorageError> {
        self.input.exists()
    }

    fn size_held(&self) -> usize {
        self.input.size_held()
    }

    fn partial_decode_many(
        &self,
        regions: ByteRangeIterator,
        options: &CodecOptions,
    ) -> Result<Option<Vec<ArrayBytesRaw<'_>>>, CodecError> {
        let in_parts = self.input.supports_partial_decode();
        let mut reading = Reading::new(regions, &self.coder, self.decoded, in_parts);
        loop {
            let requests = Box::new(reading.requests().into_iter());
            let Some(parts) = self.input.partial_decode_many(requests, options)? else {
                return Ok(None);
            };
            if let Some(found) = reading.take(parts)? {
                return Ok(Some(found));
            }
        }
    }

    fn supports_partial_decode(&self) -> bool {
        self.input.supports_partial_decode()
    }
}

#[cfg(feature = "async")]
mod asynchronous {
    use zarrs::array::codec::api::AsyncBytesPartialDecoderTraits;

    use super::*;

    #[cfg_attr(target_arch = "wasm32", async_trait::async_trait(?Send))]
    #[cfg_attr(not(target_arch = "wasm32"), async_trait::async_trait)]
    impl AsyncBytesPartialDecoderTraits for PartialDecoder<dyn AsyncBytesPartialDecoderTraits> {
        async fn exists(&self) -> Result<bool, StorageError> {
            self.input.exists().await
        }

        fn size_held(&self) -> usize {
            self.input.size_held()
        }

        async fn partial_decode_many<'a>(
            &'a self,
            regions: ByteRangeIterator<'a>,
            options: &CodecOptions,
        ) -> Result<Option<Vec<ArrayBytesRaw<'a>>>, CodecError> {
            let in_parts = self.input.supports_partial_decode();
            let mut reading = Reading::new(regions, &self.coder, self.decoded, in_parts);
            loop {
                let requests = Box::new(reading.requests().into_iter());
                let Some(parts) = self.input.partial_decode_many(requests, options).await? else {
                    return Ok(None);
                };
                if let Some(found) = reading.take(parts)? {
                    return Ok(Some(found));
                }
            }
        }

        fn supports_partial_decode(&self) -> bool {
            self.input.supports_partial_decode()
        }
    }
}

/// One partial decoding: a sequence of requests for parts of the encoded chunk. The synchronous and the asynchronous
/// API perform them.
struct Reading<'a> {
    coder: &'a Coder,
    decoded: BytesRepresentation,
    wanted: Vec<ByteRange>,
    next: Request,
}

/// What is requested next.
enum Request {
    Whole,
    Header,
    /// The data of a chunk that is stored uncompressed.
    Stored {
        head: usize,
        ranges: Vec<Range<usize>>,
    },
    /// The header and the table of blocks.
    Table {
        header: Header,
        ranges: Vec<Range<usize>>,
    },
    Blocks {
        /// The header and the table of blocks, whose entries are offsets in the shortened chunk.
        chunk: Vec<u8>,
        spans: Vec<Range<usize>>,
        ranges: Vec<Range<usize>>,
    },
}

impl<'a> Reading<'a> {
    fn new(
        regions: ByteRangeIterator<'_>,
        coder: &'a Coder,
        decoded: BytesRepresentation,
        in_parts: bool,
    ) -> Self {
        let wanted: Vec<ByteRange> = regions.collect();
        // An end outside the data is an error later.
        let most = match decoded {
            BytesRepresentation::FixedSize(nbytes) => {
                let len = |range: &ByteRange| match *range {
                    ByteRange::FromStart(start, None) => nbytes.saturating_sub(start),
                    ByteRange::FromStart(_, Some(len)) | ByteRange::Suffix(len) => len,
                };
                let total = wanted.iter().map(len).fold(0, u64::saturating_add);
                nbytes <= SMALL || total > nbytes / 4 * 3
            }
            _ => wanted.contains(&ByteRange::FromStart(0, None)),
        };
        let next = if most || !in_parts { Request::Whole } else { Request::Header };
        Self { coder, decoded, wanted, next }
    }

    /// The parts of the encoded chunk to be passed to [`take`](Self::take).
    fn requests(&self) -> Vec<ByteRange> {
        let request = |range: Range<usize>| ByteRange::new(range.start as u64..range.end as u64);
        match &self.next {
            Request::Whole => vec![ByteRange::FromStart(0, None)],
            Request::Header => vec![request(0..self.coder.header_len)],
            Request::Stored { head, ranges } => {
                let filled = ranges.iter().filter(|range| !range.is_empty());
                filled.map(|range| request(head + range.start..head + range.end)).collect()
            }
            Request::Table { header, .. } => vec![request(0..table_end(header))],
            Request::Blocks { spans, .. } => spans.iter().cloned().map(request).collect(),
        }
    }

    /// Takes the requested parts. Returns the decoded ranges, or `None` if there is another request.
    fn take(
        &mut self,
        parts: Vec<ArrayBytesRaw<'_>>,
    ) -> Result<Option<Vec<ArrayBytesRaw<'static>>>, CodecError> {
        let total: usize = parts.iter().map(|part| part.len()).sum();
        let mut parts = parts.into_iter();
        // The source returns one part for each range.
        let mut part = || parts.next().ok_or_else(|| invalid("the source returned too few parts"));
        self.next = match std::mem::replace(&mut self.next, Request::Whole) {
            Request::Whole => {
                let bytes = part()?;
                let chunk = open(&bytes, &self.decoded)?;
                let ranges = self.ranges(chunk.nbytes())?;
                return self.coder.decode_ranges(&chunk, &ranges).map(Some);
            }
            Request::Header => match Header::parse(&part()?) {
                Ok(header) => self.after_header(header)?,
                // The error of the whole chunk is more accurate; or it is a chunk of the other codec.
                Err(_) => Request::Whole,
            },
            Request::Stored { ranges, .. } => {
                let found = ranges.iter().map(|range| match range.is_empty() {
                    true => Ok(Vec::new().into()),
                    false => Ok(part()?.into_owned().into()),
                });
                return found.collect::<Result<_, _>>().map(Some);
            }
            Request::Table { header, ranges } => shorten(part()?.into_owned(), &header, ranges)?,
            Request::Blocks { mut chunk, spans, ranges } => {
                chunk.reserve(total);
                for span in spans {
                    let bytes = part()?;
                    if bytes.len() != span.len() {
                        let (expected, found) = (span.len(), bytes.len());
                        return Err(invalid(format!(
                            "requested {expected} bytes of the chunk, received {found}"
                        )));
                    }
                    chunk.extend_from_slice(&bytes);
                }
                let chunk = open(&chunk, &self.decoded)?;
                return self.coder.decode_ranges(&chunk, &ranges).map(Some);
            }
        };
        Ok(None)
    }

    fn after_header(&self, header: Header) -> Result<Request, CodecError> {
        check_len(header.nbytes as usize, header.cbytes as usize, &self.decoded)?;
        let ranges = self.ranges(header.nbytes as usize)?;
        // A block of any other chunk may need more than its own bytes: a dictionary, or the first block.
        let known = [0, Filter::Shuffle.code(), Filter::Bitshuffle.code()];
        let is_simple = header.special.is_none()
            && !header.variable_blocks
            && !header.dictionary
            && !header.lazy
            && header.filters.iter().all(|filter| known.contains(filter));
        if !is_simple || u64::from(header.cbytes) <= SMALL {
            return Ok(Request::Whole);
        }
        if header.is_stored() {
            return Ok(Request::Stored { head: header.header_len(), ranges });
        }
        if table_end(&header) > header.cbytes as usize {
            let (nblocks, cbytes) = (header.nblocks(), header.cbytes);
            return Err(invalid(format!("the chunk has {nblocks} blocks in {cbytes} bytes")));
        }
        Ok(Request::Table { header, ranges })
    }

    /// The requested ranges of the data.
    fn ranges(&self, nbytes: usize) -> Result<Vec<Range<usize>>, CodecError> {
        let resolve = |range: &ByteRange| {
            let len = nbytes as u64;
            let (start, end) = match *range {
                ByteRange::FromStart(start, None) => (Some(start), Some(len)),
                ByteRange::FromStart(start, Some(count)) => (Some(start), start.checked_add(count)),
                ByteRange::Suffix(count) => (len.checked_sub(count), Some(len)),
            };
            match (start, end) {
                // They are at most `nbytes`.
                (Some(start), Some(end)) if start <= end && end <= len => {
                    Ok(start as usize..end as usize)
                }
                _ => Err(InvalidByteRangeError::new(*range, len).into()),
            }
        };
        self.wanted.iter().map(resolve).collect()
    }
}

/// Plans the request of the blocks that the ranges need, and changes the header and the table of blocks to those of a
/// chunk that has only these blocks. The entries of the other blocks refer to one that it has.
///
/// The end of a block is the start of the block that follows in the chunk. A chunk whose blocks overlap, which no writer
/// produces, does not decompress, or decompresses to other data.
fn shorten(
    mut chunk: Vec<u8>,
    header: &Header,
    ranges: Vec<Range<usize>>,
) -> Result<Request, CodecError> {
    let (head, end) = (header.header_len(), table_end(header));
    let (nbytes, cbytes) = (header.nbytes as usize, header.cbytes as usize);
    if chunk.len() != end {
        let found = chunk.len();
        return Err(invalid(format!("requested {end} bytes of the chunk, received {found}")));
    }
    let mut starts = Vec::with_capacity(header.nblocks() as usize);
    for (block, entry) in chunk[head..].as_chunks::<4>().0.iter().enumerate() {
        let start = i32::from_le_bytes(*entry);
        match usize::try_from(start) {
            Ok(start) if start >= end && start + 4 <= cbytes => starts.push(start),
            _ => {
                let last = cbytes.saturating_sub(4);
                return Err(invalid(format!(
                    "block {block} starts at {start}, expected {end} to {last}"
                )));
            }
        }
    }
    let mut borders = starts.clone();
    borders.push(cbytes);
    borders.sort_unstable();

    // Whole items are decompressed, and a block need not hold a whole number of them.
    let (size, len) = (usize::from(header.typesize), header.block_len() as usize);
    let blocks = ranges.iter().filter(|range| !range.is_empty()).flat_map(|range| {
        let stop = range.end.next_multiple_of(size).min(nbytes);
        range.start / size * size / len..stop.div_ceil(len)
    });
    let mut blocks: Vec<usize> = blocks.collect();
    blocks.sort_unstable();
    blocks.dedup();
    let mut spans: Vec<Range<usize>> = blocks
        .iter()
        .map(|&block| {
            let next = borders.partition_point(|&border| border <= starts[block]);
            starts[block]..borders[next]
        })
        .collect();
    spans.sort_unstable_by_key(|span| span.start);
    spans.dedup_by(|span, last| {
        let near = span.start <= last.end + GAP;
        if near {
            last.end = last.end.max(span.end);
        }
        near
    });

    // The offset of each span in the shortened chunk.
    let mut len = end;
    let places: Vec<usize> = spans
        .iter()
        .map(|span| {
            len += span.len();
            len - span.len()
        })
        .collect();
    // All offsets are at most those in the whole chunk, which are `i32`.
    chunk[12..16].copy_from_slice(&(len as u32).to_le_bytes());
    for entry in chunk[head..].as_chunks_mut::<4>().0 {
        *entry = (end as u32).to_le_bytes();
    }
    for block in blocks {
        let span = spans.partition_point(|span| span.start <= starts[block]) - 1;
        let start = places[span] + starts[block] - spans[span].start;
        let entry = head + 4 * block;
        chunk[entry..entry + 4].copy_from_slice(&(start as u32).to_le_bytes());
    }
    Ok(Request::Blocks { chunk, spans, ranges })
}

/// The end of the table of blocks.
fn table_end(header: &Header) -> usize {
    (header.nblocks() as usize).saturating_mul(4).saturating_add(header.header_len())
}

fn invalid(detail: impl Into<String>) -> CodecError {
    CodecError::Other(format!("cannot read a part of a chunk: {}", detail.into()))
}
