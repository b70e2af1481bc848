//! The check of a packed super-chunk.

use super::header::{Ancillary, HEADER_LEN, Header};
use super::{StoredDelta, rules};
use crate::chunk::{self, MIN_HEADER_LEN};
use crate::legacy::chunks::{Chunks, chunk_len, limited, numbers};
use crate::legacy::spans::{self, Span};
use crate::report::{Checker, Options, Part, Report};
use crate::{Error, Limit, Limits, ReadAt};

/// Checks the packed super-chunk at the start of `source`.
///
/// # Errors
/// [`Error::Io`]: reading from `source` fails.
pub fn check<R: ReadAt + ?Sized>(source: &R, options: &Options) -> Result<Report, Error> {
    let mut report = Report::new();
    let checker = &mut Checker::new(&mut report);
    let outcome = structure(source, &options.limits, checker)
        .and_then(|parts| parts.map_or(Ok(()), |parts| contents(source, &parts, options, checker)));
    limited(outcome, &rules::LIMIT, checker)?;
    Ok(report)
}

/// The positions of the parts.
#[derive(Debug, Clone)]
pub(crate) struct Parts {
    pub(crate) header: Header,
    /// The positions of the data chunks.
    pub(crate) chunks: Vec<u64>,
    /// The end of the super-chunk.
    pub(crate) end: u64,
}

impl Parts {
    pub(crate) fn index(&self) -> u64 {
        u64::try_from(self.header.index).unwrap_or_default()
    }

    fn index_len(&self) -> u64 {
        8 * self.chunks.len() as u64
    }

    /// Returns whether the table of positions precedes the data, as the first versions wrote it.
    pub(crate) fn index_is_first(&self) -> bool {
        self.chunks.iter().any(|&at| at > self.index())
    }

    /// Returns the likely meaning of stored chunks with delta.
    pub(crate) fn stored_delta(&self) -> StoredDelta {
        if self.index_is_first() { StoredDelta::Present } else { StoredDelta::Absent }
    }
}

/// Checks all parts except the chunks. Returns `None` if the chunks cannot be found.
pub(crate) fn structure<R: ReadAt + ?Sized>(
    source: &R,
    limits: &Limits,
    checker: &mut Checker<'_>,
) -> Result<Option<Parts>, Error> {
    let size = source.size()?;
    let head = source.read_vec_at(0, size.min(HEADER_LEN as u64))?;
    let mut header_checker = checker.within(Part::Header, 0);
    let Ok(header) = Header::parse(&head) else {
        header_checker.found(&rules::LENGTH, 0, size, "at least 96 bytes", size);
        return Ok(None);
    };
    if header.is_alpha5() {
        let expected = "a packed super-chunk, with a header of 96 bytes";
        let found = "the header of 120 bytes of 2.0.0-a5, which no version could read";
        header_checker.found(&rules::ALPHA5, 0, 120, expected, found);
        return Ok(None);
    }
    header.check(&mut header_checker);
    let index_end = header.nchunks.saturating_mul(8).saturating_add(header.index);
    let least = u64::try_from(index_end).unwrap_or_default().max(HEADER_LEN as u64);
    let end = match u64::try_from(header.cbytes) {
        // If the table of positions ends after this length, the length is wrong.
        Ok(cbytes) if cbytes <= size && (cbytes >= least || least > size) => cbytes,
        _ => {
            let expected = format_args!("{least} to the {size} available bytes");
            header_checker.found(&rules::CBYTES, 32, 8, expected, header.cbytes);
            size
        }
    };
    for kind in Ancillary::ALL {
        let position = header.ancillary[kind as usize];
        let last = end.saturating_sub(MIN_HEADER_LEN as u64);
        let inside =
            u64::try_from(position).is_ok_and(|at| (HEADER_LEN as u64..=last).contains(&at));
        if position != 0 && !inside {
            let expected =
                format_args!("0, or {HEADER_LEN} to {last} for the {} chunk", kind.name());
            header_checker.found(&rules::POSITION, kind.field_at(), 8, expected, position);
        }
    }
    let end = end.max(HEADER_LEN as u64);
    let mut parts = Parts { header, chunks: Vec::new(), end };
    let nchunks = u64::try_from(parts.header.nchunks).ok();
    // A chunk has at least a header and a position.
    let most = (end - HEADER_LEN as u64) / (MIN_HEADER_LEN as u64 + 8);
    let Some(nchunks) = nchunks.filter(|nchunks| *nchunks <= most) else {
        let expected = format_args!("0 to {most}, the most that fit in {end} bytes");
        header_checker.found(&rules::NCHUNKS, 16, 8, expected, parts.header.nchunks);
        return Ok(None);
    };
    let last = end.saturating_sub(8 * nchunks);
    let index = u64::try_from(parts.header.index).ok();
    let Some(index) = index.filter(|at| (HEADER_LEN as u64..=last).contains(at)) else {
        let expected = format_args!("{HEADER_LEN} to {last}");
        header_checker.found(&rules::INDEX, 72, 8, expected, parts.header.index);
        return Ok(None);
    };
    Limits::allow(Limit::Chunks, "chunks", nchunks, limits.chunks)?;
    let bytes = source.read_vec_at(index, 8 * nchunks)?;
    let last = end.saturating_sub(MIN_HEADER_LEN as u64);
    let mut checker = checker.within(Part::Index, index);
    for (number, position) in numbers(&bytes).enumerate() {
        if !(HEADER_LEN as u64..=last).contains(&position) {
            let expected = format_args!("{HEADER_LEN} to {last}");
            checker.found(&rules::OFFSET, 8 * number as u64, 8, expected, position as i64);
        }
        parts.chunks.push(position);
    }
    Ok(Some(parts))
}

/// Checks the chunks, their layout, and the fields of the header that depend on all chunks.
fn contents<R: ReadAt + ?Sized>(
    source: &R,
    parts: &Parts,
    options: &Options,
    checker: &mut Checker<'_>,
) -> Result<(), Error> {
    let header = &parts.header;
    let (mut spans, mut count) = (Vec::new(), 0);
    spans.push(Span::new(Part::Index, parts.index(), parts.index_len()));
    for kind in Ancillary::ALL {
        let Ok(at @ 1..) = u64::try_from(header.ancillary[kind as usize]) else { continue };
        count += 1;
        if let Some(len) = chunk_len(source, at, parts.end)? {
            spans.push(Span::new(kind.part(), at, len));
        } else if at < parts.end {
            let expected = format_args!("0, or the start of the {} chunk", kind.name());
            let mut checker = checker.within(Part::Header, 0);
            checker.found(&rules::POSITION, kind.field_at(), 8, expected, at);
        }
    }
    for (number, &at) in parts.chunks.iter().enumerate() {
        count += 1;
        if let Some(len) = chunk_len(source, at, parts.end)? {
            spans.push(Span::new(Part::Chunk(number as u64), at, len));
        } else if at < parts.end {
            let expected = format_args!("the start of chunk {number}");
            let mut checker = checker.within(Part::Index, parts.index());
            checker.found(&rules::OFFSET, 8 * number as u64, 8, expected, at);
        }
    }
    order(&spans, parts, checker);
    spans::check(&mut spans, HEADER_LEN as u64, parts.end, &rules::OVERLAP, &rules::GAP, checker);
    let size = source.size()?;
    if options.map {
        let header = Span::new(Part::Header, 0, HEADER_LEN as u64);
        spans::map([&[header], &spans[..]].concat(), size, checker);
    }
    spans.retain(|span| span.part != Part::Index);

    let mut chunks = Chunks::new(*options);
    let mut cbytes = HEADER_LEN as u64 + parts.index_len();
    let (mut nbytes, mut first) = (cbytes, None);
    for Span { at, len, part } in spans {
        let is_data = matches!(part, Part::Chunk(_));
        let mut checker = checker.within(part.clone(), at);
        let chunk = chunks.check(source, at, len, &rules::LIMIT, &mut checker)?;
        let Some(chunk) = chunk else { continue };
        count -= 1;
        cbytes += len;
        nbytes += u64::from(chunk.nbytes);
        if part == Part::Chunk(0) {
            first = Some(chunk.clone());
        }
        if is_data && header.has_delta() && chunk.is_stored() {
            let (found, other) = match parts.stored_delta() {
                StoredDelta::Absent => ("data", "differences if the chunk was appended later"),
                StoredDelta::Present => ("differences, as written before 2015-12-20", "data"),
            };
            let found =
                format_args!("bytes that can be either: read as {found}, but can be {other}");
            let expected = "data or differences to the reference";
            checker.found(&rules::DELTA_AMBIGUOUS, 2, 1, expected, found);
        }
    }
    let mut header_checker = checker.within(Part::Header, 0);
    if let Some(first) = first {
        agree(header, &first, &mut header_checker);
    }
    if header.has_delta() && header.ancillary[0] == 0 && !parts.chunks.is_empty() {
        let expected = "a filters chunk, which delta refers to";
        header_checker.found(&rules::REFERENCE, 40, 8, expected, "none");
    }
    if count == 0 {
        let expected = |sum| format!("{sum}, the sum of the header, the positions and the chunks");
        if u64::try_from(header.nbytes) != Ok(nbytes) {
            header_checker.found(&rules::NBYTES, 24, 8, expected(nbytes), header.nbytes);
        }
        if u64::try_from(header.cbytes).is_ok_and(|given| given == parts.end && given != cbytes) {
            header_checker.found(&rules::CBYTES, 32, 8, expected(cbytes), header.cbytes);
        }
    }
    let after = parts.end - parts.index();
    if !parts.index_is_first() && after != parts.index_len() {
        let expected = format_args!("{}, the number of positions up to the end", after / 8);
        header_checker.found(&rules::NCHUNKS, 16, 8, expected, header.nchunks);
    }
    if size > parts.end {
        let rest = size - parts.end;
        let found = format_args!("{rest} bytes");
        checker.within(Part::Gap, parts.end).found(&rules::REST, 0, rest, "none", found);
    }
    Ok(())
}

/// Compares the header with the chunks. `chunk` is the header of the first chunk.
fn agree(header: &Header, chunk: &chunk::Header, checker: &mut Checker<'_>) {
    if !chunk.is_compressed() {
        return;
    }
    let format = match header.codec {
        2 => 1,
        code @ 3..=5 => code - 1,
        code => code,
    };
    if u16::from(chunk.codec_format) != format {
        let expected = format_args!("a codec of format {}, the first chunk's", chunk.codec_format);
        checker.found(&rules::OTHER_CODEC, 4, 2, expected, header.codec);
    }
    let [first, second, ..] = header.filter_codes();
    let filter = if header.has_delta() { second } else { first };
    if filter != chunk.filters[5] {
        let expected = format_args!("{}, the first chunk's filter", chunk.filters[5]);
        checker.found(&rules::OTHER_FILTERS, 8, 2, expected, filter);
    }
}

/// Checks the order of the parts: ancillary chunks, data chunks, and the table of positions before
/// or after the data.
fn order(spans: &[Span], parts: &Parts, checker: &mut Checker<'_>) {
    let mut sorted = true;
    let (index, chunks) =
        spans.split_first().map_or((None, spans), |(index, rest)| (Some(index), rest));
    let mut before = HEADER_LEN as u64;
    for span in chunks {
        if span.at < before {
            sorted = false;
            let expected = format_args!("at least {before}, where an earlier chunk starts");
            let mut checker = checker.within(span.part.clone(), span.at);
            checker.found(&rules::ORDER, 0, span.len, expected, span.at);
        }
        before = before.max(span.at);
    }
    let Some(index) = index.filter(|index| sorted && index.len > 0) else { return };
    let first = parts.chunks.iter().min().copied().unwrap_or_default();
    let last = parts.chunks.iter().max().copied().unwrap_or_default();
    if (first..last).contains(&index.at) {
        let mut checker = checker.within(Part::Index, index.at);
        let expected = format_args!("before {first} or after {last}, outside the data");
        checker.found(&rules::ORDER, 0, index.len, expected, index.at);
    }
}
