//! Chunks of the legacy formats, at the positions that their files state.

use crate::chunk::{self, Chunk, Decoder, EXTENDED_HEADER_LEN, MIN_HEADER_LEN};
use crate::error::advice;
use crate::report::{Checker, Options, Rule};
use crate::{Error, FormatError, Limit, Limits, ReadAt};

/// Returns the little-endian 64-bit numbers in `bytes`, the stored form of positions.
pub(crate) fn numbers(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let number = |bytes: &[u8]| bytes.first_chunk().copied().map(u64::from_le_bytes);
    bytes.chunks_exact(8).filter_map(number)
}

/// Returns the length of the chunk that starts at `at` and ends before `end`, or `None` if there is
/// no such chunk.
pub(crate) fn chunk_len<R: ReadAt + ?Sized>(
    source: &R,
    at: u64,
    end: u64,
) -> Result<Option<u64>, Error> {
    let room = end.saturating_sub(at);
    if room < MIN_HEADER_LEN as u64 {
        return Ok(None);
    }
    let mut len = [0; 4];
    source.read_exact_at(at + 12, &mut len)?;
    let len = u64::from(u32::from_le_bytes(len));
    Ok((MIN_HEADER_LEN as u64..=room).contains(&len).then_some(len))
}

/// Returns the header of the chunk that starts at `at` and ends before `end`.
pub(crate) fn chunk_header<R: ReadAt + ?Sized>(
    source: &R,
    at: u64,
    end: u64,
) -> Result<Option<chunk::Header>, Error> {
    if chunk_len(source, at, end)?.is_none() {
        return Ok(None);
    }
    let head = source.read_vec_at(at, (end - at).min(EXTENDED_HEADER_LEN as u64))?;
    Ok(Some(chunk::Header::parse(&head).map_err(|error| error.moved(at))?))
}

/// Returns the chunk that starts at `at` and ends before `end`.
pub(crate) fn read_chunk<R: ReadAt + ?Sized>(
    source: &R,
    at: u64,
    end: u64,
    limits: &Limits,
) -> Result<Option<Vec<u8>>, Error> {
    let Some(len) = chunk_len(source, at, end)? else { return Ok(None) };
    Limits::allow(Limit::Memory, "bytes of a chunk", len, limits.memory)?;
    Ok(Some(source.read_vec_at(at, len)?))
}

/// Reads and decodes chunks that must exist.
#[derive(Debug)]
pub(crate) struct Reader<R> {
    pub(crate) source: R,
    pub(crate) limits: Limits,
    /// The end of the area of the chunks, and its name in errors.
    pub(crate) end: (u64, &'static str),
    pub(crate) decoder: Decoder,
}

impl<R: ReadAt> Reader<R> {
    /// Returns the header of the chunk at `at`.
    pub(crate) fn header(&self, at: u64) -> Result<chunk::Header, Error> {
        chunk_header(&self.source, at, self.end.0)?.ok_or_else(|| self.no_chunk(at))
    }

    /// Returns the chunk at `at`.
    pub(crate) fn read(&self, at: u64) -> Result<Vec<u8>, Error> {
        read_chunk(&self.source, at, self.end.0, &self.limits)?.ok_or_else(|| self.no_chunk(at))
    }

    fn no_chunk(&self, at: u64) -> Error {
        let expected = format_args!("a chunk that ends {}", self.end.1);
        FormatError::new("chunk", 0, expected, "none").moved(at).into()
    }

    /// Decodes a chunk into `data`, and sets the length of `data` to the decoded size of the chunk.
    pub(crate) fn decode(&mut self, bytes: &[u8], data: &mut Vec<u8>) -> Result<(), Error> {
        self.decoder.decode_vec(&Chunk::new(bytes, &self.limits)?, data)
    }

    /// Returns the decoded content of a chunk, if there is one.
    pub(crate) fn decoded(&mut self, bytes: Option<Vec<u8>>) -> Result<Option<Vec<u8>>, Error> {
        let mut data = Vec::new();
        bytes.map(|bytes| self.decode(&bytes, &mut data).map(|()| data)).transpose()
    }
}

/// Returns the entry of a list of positions or offsets for chunk `number`.
pub(crate) fn nth(list: &[u64], number: u64) -> Result<u64, Error> {
    let found = usize::try_from(number).ok().and_then(|number| list.get(number).copied());
    found.ok_or_else(|| {
        Error::Argument(format!("no chunk at index {number}: there are {} chunks", list.len()))
    })
}

/// Checks chunks one after the other, within the limits.
#[derive(Debug)]
pub(crate) struct Chunks {
    options: Options,
    /// The sizes of the data chunks when decompressed, in bytes.
    pub(crate) sizes: Vec<u32>,
}

impl Chunks {
    pub(crate) fn new(options: Options) -> Self {
        Self { options, sizes: Vec::new() }
    }

    /// Checks the chunk at `at` and returns its header, if readable.
    pub(crate) fn check<R: ReadAt + ?Sized>(
        &mut self,
        source: &R,
        at: u64,
        len: u64,
        limit: &'static Rule,
        checker: &mut Checker<'_>,
    ) -> Result<Option<chunk::Header>, Error> {
        let memory = self.options.limits.memory;
        if len > memory {
            let expected = format!("at most {memory} bytes of a chunk {}", Limit::Memory);
            checker.found(limit, 0, len, expected, len);
            let head = source.read_vec_at(at, EXTENDED_HEADER_LEN as u64)?;
            return Ok(chunk::Header::parse(&head).ok());
        }
        let bytes = source.read_vec_at(at, len)?;
        let decoded = chunk::check(&bytes, &self.options, checker);
        let total = &mut self.options.limits.total_bytes;
        *total = total.saturating_sub(decoded);
        Ok(chunk::Header::parse(&bytes).ok())
    }
}

/// Converts an exceeded limit to a finding.
pub(crate) fn limited(
    outcome: Result<(), Error>,
    rule: &'static Rule,
    checker: &mut Checker<'_>,
) -> Result<(), Error> {
    let Err(Error::Limit { limit, what, amount, max }) = outcome else { return outcome };
    checker.found(rule, 0, 0, format!("at most {max} {what}{}", advice(limit)), amount);
    Ok(())
}

/// The maximum size of data that the old library stored in one block.
pub(crate) const MAX_BLOCKSIZE: usize = 32 << 10;

/// Returns the sizes in the header of a chunk that stores `data`.
pub(crate) fn stored_sizes(
    typesize: u8,
    data: &[u8],
    header_len: usize,
) -> Result<[u8; 12], Error> {
    let len = data.len();
    let Some(typesize @ 1..) = Some(usize::from(typesize)).filter(|_| len > 0) else {
        return Err(Error::Argument(format!("a chunk of {len} bytes with typesize {typesize}")));
    };
    let cbytes = i32::try_from(len.saturating_add(header_len));
    let cbytes = cbytes.map_err(|_| Error::Argument(format!("{len} bytes in a chunk")))?;
    let mut blocksize = len.min(MAX_BLOCKSIZE);
    if blocksize > typesize {
        blocksize -= blocksize % typesize;
    }
    let mut sizes = [0; 12];
    for (field, size) in sizes.chunks_exact_mut(4).zip([len as i32, blocksize as i32, cbytes]) {
        field.copy_from_slice(&size.to_le_bytes());
    }
    Ok(sizes)
}

/// Returns the header of the chunk in `bytes`, which contain nothing else.
pub(crate) fn whole_chunk(bytes: &[u8]) -> Result<chunk::Header, Error> {
    let header = chunk::Header::parse(bytes)?;
    if header.cbytes as usize != bytes.len() {
        let expected = format_args!("{}, the number of available bytes", bytes.len());
        return Err(FormatError::new("compressed size", 12, expected, header.cbytes).into());
    }
    Ok(header)
}
