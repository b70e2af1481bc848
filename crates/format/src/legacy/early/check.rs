//! The check of a legacy frame.

use super::Layout;
use super::header::Header;
use super::parts::{Parts, start, structure};
use super::rules::Rules;
use crate::chunk;
use crate::legacy::chunks::{Chunks, chunk_len, limited};
use crate::legacy::spans::{self, Span};
use crate::report::{Checker, Options, Part, Report};
use crate::{Error, ReadAt};

/// Checks the legacy frame at the start of `source`.
///
/// # Errors
/// [`Error::Io`]: reading from `source` fails.
pub fn check<R: ReadAt + ?Sized>(source: &R, options: &Options) -> Result<Report, Error> {
    let mut report = Report::new();
    let checker = &mut Checker::new(&mut report);
    let outcome = structure(source, &options.limits, checker)
        .and_then(|parts| parts.map_or(Ok(()), |parts| contents(source, &parts, options, checker)));
    let (layout, _) = start(source)?;
    limited(outcome, &Rules::of(layout).limit, checker)?;
    Ok(report)
}

/// Checks the content of the parts: the chunks and the user metadata.
fn contents<R: ReadAt + ?Sized>(
    source: &R,
    parts: &Parts,
    options: &Options,
    checker: &mut Checker<'_>,
) -> Result<(), Error> {
    let mut spans = chunk_spans(source, parts, checker)?;
    if options.map {
        let mut all = parts.spans();
        all.extend(spans.iter().cloned());
        spans::map(all, source.size()?, checker);
    }
    if let Some(usermeta) = parts.usermeta_span() {
        spans.push(usermeta);
    }
    let mut chunks = Chunks::new(*options);
    let rules = Rules::of(parts.header.layout);
    let mut first = None;
    for span in spans {
        let is_data = matches!(span.part, Part::Chunk(_));
        let (at, len) = (span.at, span.len);
        let mut within = checker.within(span.part, at);
        let header = chunks.check(source, at, len, &rules.limit, &mut within)?;
        let Some(header) = header.filter(|_| is_data) else { continue };
        chunks.sizes.push(header.nbytes);
        match &first {
            Some(first) => agree_with_first(first, &header, rules, &mut within),
            None => {
                agree(&parts.header, &header, rules, &mut checker.within(Part::Header, 0));
                first = Some(header);
            }
        }
    }
    sums(parts, &chunks.sizes, rules, &mut checker.within(Part::Header, 0));
    Ok(())
}

/// Returns the spans of the chunks that do not overlap, and reports the others.
fn chunk_spans<R: ReadAt + ?Sized>(
    source: &R,
    parts: &Parts,
    checker: &mut Checker<'_>,
) -> Result<Vec<Span>, Error> {
    let rules = Rules::of(parts.header.layout);
    let (header_len, index_at) = (parts.header_len, parts.index.0);
    let mut spans = Vec::new();
    for (number, &offset) in parts.offsets.iter().enumerate() {
        let at = header_len.saturating_add(offset);
        let part = Part::Chunk(number as u64);
        if let Some(len) = chunk_len(source, at, index_at)? {
            spans.push(Span::new(part, at, len));
        } else if at < index_at {
            let (place, len) = parts.offset_at(number);
            let mut checker = checker.within(Part::Index, place);
            let expected = format_args!("the start of chunk {number}");
            checker.found(&rules.offset, 0, len, expected, offset);
        }
    }
    spans::check(&mut spans, header_len, index_at, &rules.overlap, &rules.gap, checker);
    Ok(spans)
}

/// Checks the fields of the header that depend on all chunks together.
fn sums(parts: &Parts, sizes: &[u32], rules: &'static Rules, checker: &mut Checker<'_>) {
    let header = &parts.header;
    if sizes.len() != parts.offsets.len() || sizes.is_empty() != (header.cbytes == 0) {
        return; // What cannot be read hides what the sums should be.
    }
    let nbytes = sizes.iter().map(|&size| u64::from(size)).sum::<u64>();
    if u64::try_from(header.nbytes).is_ok_and(|given| given != nbytes) {
        let expected = format_args!("{nbytes}, the sum of the chunks");
        checker.found(&rules.nbytes, 0x1e, 8, expected, header.nbytes);
    }
    if header.chunksize >= 0 {
        chunksize(header, sizes, rules, checker);
    }
}

/// Compares the header of the frame with the chunks. `chunk` is the header of the first chunk.
fn agree(header: &Header, chunk: &chunk::Header, rules: &'static Rules, checker: &mut Checker<'_>) {
    let typesize = if (1..256).contains(&header.typesize) { header.typesize as u8 } else { 1 };
    if chunk.typesize != typesize && header.typesize > 0 {
        let expected = format_args!("{}, as the first chunk has it", chunk.typesize);
        checker.found(&rules.other_typesize, 0x30, 4, expected, header.typesize);
    }
    // LZ4HC writes the format of LZ4. The format of Lizard is unused today.
    let format = match header.codec() {
        2 => 1,
        code @ 3..=6 => code - 1,
        code => code,
    };
    if chunk.is_compressed() && chunk.codec_format != format {
        let expected = format_args!("a codec of format {}, the first chunk's", chunk.codec_format);
        checker.found(&rules.other_codec, 0x1b, 1, expected, header.codec());
    }
    if header.layout == Layout::Version1 && chunk.extended {
        let (filters, metas) = super::frame::pipeline(header);
        if filters != chunk.filters {
            let expected = format_args!("{:?}, the first chunk's", chunk.filters);
            checker.found(&rules.other_filters, 0x41, 9, expected, format_args!("{filters:?}"));
        }
        if metas != chunk.filters_meta {
            let expected = format_args!("{:?}, the first chunk's", chunk.filters_meta);
            checker.found(&rules.other_filters, 0x4a, 8, expected, format_args!("{metas:?}"));
        }
    }
}

/// Checks the properties that all chunks must have in common.
fn agree_with_first(
    first: &chunk::Header,
    chunk: &chunk::Header,
    rules: &'static Rules,
    checker: &mut Checker<'_>,
) {
    if chunk.typesize != first.typesize {
        let expected = format_args!("{}, as the first chunk has it", first.typesize);
        checker.found(&rules.other_typesize, 3, 1, expected, chunk.typesize);
    }
    if chunk.extended && first.extended && chunk.filters != first.filters {
        let expected = format_args!("{:?}, the first chunk's", first.filters);
        checker.found(&rules.other_filters, 16, 6, expected, format_args!("{:?}", chunk.filters));
    }
}

fn chunksize(header: &Header, sizes: &[u32], rules: &'static Rules, checker: &mut Checker<'_>) {
    let given = header.chunksize as u32;
    let first = sizes.first().copied().unwrap_or_default();
    let equal = sizes.iter().all(|&size| size == first);
    let (last, others) = sizes.split_last().unwrap_or((&0, &[]));
    let short_last = *last <= first && others.iter().all(|&size| size == first);
    if given == 0 && (sizes.is_empty() || !equal) || given == first && (equal || short_last) {
        return;
    }
    let expected = match (equal, short_last) {
        (true, _) => format!("{first}"),
        (false, true) => format!("{first}, or 0 for a last chunk that is shorter"),
        (false, false) => "0 for chunks that differ".to_owned(),
    };
    checker.found(&rules.chunksize, 0x35, 4, expected, given);
}
