//! Partial decoding: only the blocks that the requested ranges need are read and decompressed.

use std::ops::Range;
use std::sync::Arc;

use blosc2::compress_bound;
use blosc2::storage::PartialRead;
use blosc2_format::chunk::Header;
use zarrs::array::codec::api::{
    ArrayBytesRaw, BytesPartialDecoderTraits, BytesRepresentation, CodecError, CodecOptions,
};
use zarrs::storage::StorageError;
use zarrs::storage::byte_range::{ByteRange, ByteRangeIterator, InvalidByteRangeError};

use crate::coder::{Coder, check_len, failed, open};

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
    /// The missing parts of the chunk, for these ranges of the data.
    Parts(PartialRead, Vec<Range<usize>>),
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
            BytesRepresentation::BoundedSize(_) => wanted.contains(&ByteRange::FromStart(0, None)),
            // The size that a header states cannot be compared with anything before the chunk is read.
            BytesRepresentation::UnboundedSize => true,
        };
        let next = if most || !in_parts { Request::Whole } else { Request::Header };
        Self { coder, decoded, wanted, next }
    }

    /// The parts of the encoded chunk to be passed to [`take`](Self::take).
    fn requests(&self) -> Vec<ByteRange> {
        match &self.next {
            Request::Whole => vec![ByteRange::FromStart(0, None)],
            Request::Header => vec![ByteRange::new(0..self.coder.header_len as u64)],
            Request::Parts(reading, _) => reading.missing().map(ByteRange::new).collect(),
        }
    }

    /// Takes the requested parts. Returns the decoded ranges, or `None` if there is another request.
    fn take(
        &mut self,
        parts: Vec<ArrayBytesRaw<'_>>,
    ) -> Result<Option<Vec<ArrayBytesRaw<'static>>>, CodecError> {
        let mut parts = parts.into_iter();
        // The source returns one part for each range.
        let mut part = || parts.next().ok_or_else(|| invalid("the source returned too few parts"));
        let (reading, ranges) = match std::mem::replace(&mut self.next, Request::Whole) {
            Request::Whole => {
                let bytes = part()?;
                let chunk = open(&bytes, &self.decoded)?;
                let ranges = self.ranges(chunk.nbytes())?;
                return self.coder.decode_ranges(&chunk, &ranges).map(Some);
            }
            Request::Header => {
                let head = part()?.into_owned();
                // The error of the whole chunk is more accurate; or it is a chunk of the other codec.
                let Ok(header) = Header::parse(&head) else { return Ok(None) };
                check_len(header.nbytes as usize, header.cbytes as usize, &self.decoded)?;
                // No writer produces it. The memory for the stated size is not allocated.
                if header.cbytes as usize > compress_bound(header.nbytes as usize) {
                    return Ok(None);
                }
                let ranges = self.ranges(header.nbytes as usize)?;
                (PartialRead::new(head, ranges.clone(), GAP).map_err(failed)?, ranges)
            }
            Request::Parts(mut reading, ranges) => {
                for (_, target) in reading.parts() {
                    let bytes = part()?;
                    if bytes.len() != target.len() {
                        let (expected, found) = (target.len(), bytes.len());
                        return Err(invalid(format!(
                            "requested {expected} bytes of the chunk, received {found}"
                        )));
                    }
                    target.copy_from_slice(&bytes);
                }
                reading.advance().map_err(failed)?;
                (reading, ranges)
            }
        };
        if reading.is_complete() {
            let chunk = reading.chunk().map_err(failed)?;
            return self.coder.decode_ranges(&chunk, &ranges).map(Some);
        }
        self.next = Request::Parts(reading, ranges);
        Ok(None)
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

fn invalid(detail: impl Into<String>) -> CodecError {
    CodecError::Other(format!("cannot read a part of a chunk: {}", detail.into()))
}
