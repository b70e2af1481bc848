//! Chunks at a position that something in a file gives.

use crate::chunk::{self, EXTENDED_HEADER_LEN, MIN_HEADER_LEN};
use crate::report::{Checker, Options, Rule};
use crate::{Error, FormatError, Limits, ReadAt};

/// The numbers of 64 bits in `bytes`, little endian, as positions are stored.
pub(crate) fn numbers(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let number = |bytes: &[u8]| bytes.first_chunk().copied().map(u64::from_le_bytes);
    bytes.chunks_exact(8).filter_map(number)
}

/// The length of the chunk that starts at `at` and ends before `end`; `None` where none does.
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

/// The header of that chunk.
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

/// That chunk.
pub(crate) fn read_chunk<R: ReadAt + ?Sized>(
    source: &R,
    at: u64,
    end: u64,
    limits: &Limits,
) -> Result<Option<Vec<u8>>, Error> {
    let Some(len) = chunk_len(source, at, end)? else { return Ok(None) };
    Limits::allow("bytes of a chunk", len, limits.memory)?;
    Ok(Some(source.read_vec_at(at, len)?))
}

/// The error for what is no chunk though a position leads to it.
pub(crate) fn no_chunk(at: u64, end: &str) -> Error {
    let expected = format_args!("a chunk that ends {end}");
    FormatError::new("chunk", 0, expected, "none").moved(at).into()
}

/// Checks one chunk after another, and what that costs.
#[derive(Debug)]
pub(crate) struct Chunks {
    options: Options,
    /// Bytes that the data chunks have when decompressed.
    pub(crate) sizes: Vec<u32>,
}

impl Chunks {
    pub(crate) fn new(options: Options) -> Self {
        Self { options, sizes: Vec::new() }
    }

    /// Checks the chunk at `at`; its header, where it can be told.
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
            checker.found(limit, 0, len, format_args!("at most {memory} bytes of a chunk"), len);
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

/// Makes a finding of what goes over a limit.
pub(crate) fn limited(
    outcome: Result<(), Error>,
    rule: &'static Rule,
    checker: &mut Checker<'_>,
) -> Result<(), Error> {
    let Err(Error::Limit { what, amount, max }) = outcome else { return outcome };
    checker.found(rule, 0, 0, format_args!("at most {max} {what}"), amount);
    Ok(())
}
