//! The index of a legacy frame: the chunk with the offsets of the other chunks.

use super::header::hex;
use super::parts::{Finder, Parts};
use super::rules::Rules;
use crate::chunk::{self, Chunk, Decoder, EXTENDED_HEADER_LEN, MIN_HEADER_LEN};
use crate::legacy::chunks::{chunk_header, numbers, read_chunk};
use crate::report::{Checker, Options, Part};
use crate::{Error, Limit, Limits, ReadAt};

impl<R: ReadAt + ?Sized> Finder<'_, R> {
    /// Checks and reads the index. Returns `false` if it cannot be found.
    pub(super) fn index(
        &self,
        parts: &mut Parts,
        checker: &mut Checker<'_>,
    ) -> Result<bool, Error> {
        let Self { source, size, limits, rules } = *self;
        let (start, cbytes) = (parts.header_len, parts.header.cbytes);
        let given = u64::try_from(cbytes).ok().and_then(|cbytes| start.checked_add(cbytes));
        let given = given.filter(|&at| at <= size);
        let at = match given {
            Some(at) if self.is_index(at, start)? => at,
            _ => match self.last_chunk(start)? {
                Some(at) if self.is_index(at, start)? => {
                    let expected =
                        format_args!("{}, the bytes before the last chunk, the index", at - start);
                    checker.within(Part::Header, 0).found(&rules.cbytes, 0x27, 8, expected, cbytes);
                    at
                }
                _ => {
                    if given.is_none() {
                        let mut checker = checker.within(Part::Header, 0);
                        let expected =
                            format_args!("0 to {}, the bytes after the header", size - start);
                        checker.found(&rules.cbytes, 0x27, 8, expected, cbytes);
                    }
                    given.unwrap_or(size)
                }
            },
        };
        parts.index.0 = at;
        let data_len = parts.data_len();
        let mut checker = checker.within(Part::Index, at);
        let Some(bytes) = read_chunk(source, at, size, limits)? else {
            checker.found(&rules.index, 0, size - at, "a chunk of offsets after the data", "none");
            return Ok(false);
        };
        parts.index.1 = bytes.len() as u64;
        let errors = checker.errors();
        let options = Options { limits: *limits, ..Options::default() };
        chunk::check(&bytes, &options, &mut checker);
        if checker.errors() > errors {
            return Ok(true);
        }
        let chunk = Chunk::new(&bytes, limits)?;
        let header = chunk.header();
        parts.index_is_stored = header.is_stored() && header.extended;
        // Each chunk has a header, so the length of the data limits the number of chunks and the
        // memory.
        let nchunks = u64::from(header.nbytes) / 8;
        if header.nbytes % 8 != 0 || nchunks == 0 || nchunks > data_len / MIN_HEADER_LEN as u64 {
            let most = data_len / MIN_HEADER_LEN as u64;
            let expected = format_args!("8 bytes for each of 1 to {most} chunks");
            checker.found(&rules.index, 4, 4, expected, header.nbytes);
            return Ok(true);
        }
        if header.typesize != 8 {
            checker.found(&rules.index, 3, 1, "typesize 8", header.typesize);
        }
        Limits::allow(Limit::Chunks, "chunks", nchunks, limits.chunks)?;
        let mut offsets = vec![0; header.nbytes as usize];
        check_form(&bytes, header, rules, &mut checker);
        if let Err(error) = Decoder::default().decode(&chunk, &mut offsets) {
            checker.found(&rules.index, 0, parts.index.1, "offsets that decode", error);
            return Ok(true);
        }
        parts.offsets = numbers(&offsets).collect();
        let last = data_len - MIN_HEADER_LEN as u64;
        for (number, &offset) in parts.offsets.iter().enumerate() {
            if offset > last {
                let (at, len) = parts.offset_at(number);
                let at = at - parts.index.0;
                checker.found(&rules.offset, at, len, format_args!("0 to {last}"), offset as i64);
            }
        }
        Ok(true)
    }

    /// Returns whether the header of the chunk at `at` is a possible header of an index, for data
    /// that starts at `start`.
    fn is_index(&self, at: u64, start: u64) -> Result<bool, Error> {
        let Some(header) = chunk_header(self.source, at, self.size).ok().flatten() else {
            return Ok(false);
        };
        let nchunks = u64::from(header.nbytes) / 8;
        let most = (at - start) / MIN_HEADER_LEN as u64;
        Ok(header.typesize == 8 && header.nbytes % 8 == 0 && (1..=most).contains(&nchunks))
    }

    /// Follows the consecutive chunks from `at` on, and returns the position of the last chunk.
    fn last_chunk(&self, mut at: u64) -> Result<Option<u64>, Error> {
        let mut last = None;
        while let Some(header) = chunk_header(self.source, at, self.size).ok().flatten() {
            last = Some(at);
            at += u64::from(header.cbytes);
        }
        Ok(last)
    }
}

/// Checks the fields that all writers set in the header of the index.
fn check_form(
    bytes: &[u8],
    header: &chunk::Header,
    rules: &'static Rules,
    checker: &mut Checker<'_>,
) {
    let Some(found) = bytes.first_chunk::<EXTENDED_HEADER_LEN>() else { return };
    let mut expected = *found;
    expected[0] = if header.version == 3 { 3 } else { 4 };
    // BloscLZ, shuffle.
    expected[2] = found[2] & 0b1_0010 | 0b101;
    if header.is_stored() && header.nbytes <= 128 {
        expected[8..12].copy_from_slice(&header.nbytes.to_le_bytes());
        expected[2] |= 0b1_0000;
    }
    expected[16..].fill(0);
    expected[17 + usize::from(expected[0])] = 1; // shuffle in the last slot
    let differ = |at: &usize| found[*at] != expected[*at];
    for at in (0..EXTENDED_HEADER_LEN).filter(differ) {
        let rule = &rules.index_form;
        checker.found(rule, at as u64, 1, hex(&[expected[at]]), hex(&[found[at]]));
    }
}
