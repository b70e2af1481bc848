//! The check of a frame, which reports all errors and does not stop at the first one.

use super::checksums::Fault;
use super::field;
use super::header::ChunkSize;
use super::index::Depth;
use super::integrity::REQUIRED;
use super::metalayer::Metalayer;
use super::offset::Offset;
use super::offsets::Offsets;
use super::parts::Parts;
use super::span::Span;
use super::{Header, Layout, rules, suspect};
use crate::b2nd::{self, Geometry};
use crate::chunk::{self, EXTENDED_HEADER_LEN, MIN_HEADER_LEN, Params, Plan, Special, SplitMode};
use crate::error::advice;
use crate::report::{Checker, Options, Part, Report};
use crate::{Error, Limit, Limits, ReadAt};

/// Checks the contiguous frame at the start of `source`.
///
/// The report contains the violations of the format. It also contains warnings about parts that
/// exceed the limits of `options`. Parts that depend on an invalid part are not checked.
///
/// ```
/// use blosc2_format::{Options, frame};
///
/// let report = frame::check(b"no frame".as_slice(), &Options::default())?;
/// assert_eq!(report.findings[0].rule.id, "frame.magic");
/// # Ok::<(), blosc2_format::Error>(())
/// ```
///
/// # Errors
/// [`Error::Io`]: reading from `source` fails.
pub fn check<R: ReadAt + ?Sized>(source: &R, options: &Options) -> Result<Report, Error> {
    let mut report = Report::new();
    check_into(source, options, &mut Checker::new(&mut report))?;
    Ok(report)
}

/// Checks the contiguous frame at the start of `source`.
pub(crate) fn check_into<R: ReadAt + ?Sized>(
    source: &R,
    options: &Options,
    checker: &mut Checker<'_>,
) -> Result<(), Error> {
    let before = checker.findings().len();
    let parts = check_parts(source, options, checker)?;
    if checker.findings().len() > before {
        let frame_len = source.read_vec_at(field::FRAME_LEN.at as u64, 8).unwrap_or_default();
        let frame_len = frame_len.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
        suspect::note(before, frame_len, parts.as_ref(), checker);
    }
    Ok(())
}

fn check_parts<R: ReadAt + ?Sized>(
    source: &R,
    options: &Options,
    checker: &mut Checker<'_>,
) -> Result<Option<Parts>, Error> {
    let found = Parts::find(source, Layout::Contiguous, &options.limits, Depth::Whole, checker);
    let Some(parts) = limited(found, checker)?.flatten() else { return Ok(None) };
    let header_len = u64::from(parts.outline.fields().header_len);
    let mut chunks = ChunkChecker::new(&parts, options, checker);
    let (mut end, mut last, mut overlapping) = (header_len, None, 0u64);
    for (place, number) in parts.outline.offsets.by_place() {
        let room = parts.outline.chunks_end().saturating_sub(place);
        if room == 0 {
            // The check of the index has already reported it.
            chunks.incomplete = true;
            continue;
        }
        let at = header_len + place;
        let mut within = checker.within(Part::Chunk(number), at);
        if last.replace(place) == Some(place) {
            let expected = "a separate position";
            within.found(&rules::CHUNK_OVERLAP, 0, 0, expected, "the position of another chunk");
            chunks.incomplete = true;
            continue;
        }
        if at < end {
            let expected = format_args!("no byte before {end}, where another chunk ends");
            within.found(&rules::CHUNK_OVERLAP, 0, 0, expected.to_string(), at);
            // Limits the time for checking the same bytes repeatedly.
            overlapping = overlapping.saturating_add(end - at);
            if overlapping > parts.outline.chunks_area() {
                chunks.incomplete = true;
                continue;
            }
        }
        let Some(len) = chunks.check(number, source, at, room, &mut within)? else { continue };
        if !chunks.incomplete {
            gap(end, at, options, checker);
        }
        if options.map {
            checker.region(Part::Chunk(number), at, len);
        }
        end = end.max(at + len);
    }
    // An unreadable chunk hides the start of the next one.
    if !chunks.incomplete {
        gap(end, header_len.saturating_add(parts.outline.chunks_area()), options, checker);
    }
    chunks.finish(checker);
    drop(chunks);
    check_vlmetalayers(&parts, options, checker);
    if options.map {
        map(&parts, checker);
    }
    Ok(Some(parts))
}

/// Returns `None`, with a finding, if the limits of the check or of this crate are exceeded.
pub(crate) fn limited<T>(
    result: Result<T, Error>,
    checker: &mut Checker<'_>,
) -> Result<Option<T>, Error> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Error::Limit { limit, what, amount, max }) => {
            let expected = format!("at most {max} {what}{}", advice(limit));
            checker.found(&rules::LIMIT, 0, 0, expected, amount);
            Ok(None)
        }
        Err(Error::Unsupported(what)) => {
            checker.found(&rules::UNSUPPORTED, 0, 0, "a chunk that this crate can decode", what);
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn gap(from: u64, to: u64, options: &Options, checker: &mut Checker<'_>) {
    if from < to {
        let mut checker = checker.within(Part::Gap, 0);
        checker.found(&rules::GAP, from, to - from, "none", to - from);
        if options.map {
            checker.region(Part::Gap, from, to - from);
        }
    }
}

/// Adds all parts except the chunks and the gaps between them to the map.
pub(crate) fn map(parts: &Parts, checker: &mut Checker<'_>) {
    let header = Span { at: 0, len: parts.outline.fields().header_len.into() };
    let contents = parts.outline.metalayers().iter().zip(&parts.metalayers);
    let contents = contents.map(|(each, span)| (Part::Metalayer(each.name.clone()), *span));
    pieces(Part::Header, header, contents, checker);
    if let Some(index) = parts.index {
        checker.region(Part::Index, index.at, index.len);
        if index.end() < parts.trailer.at {
            checker.region(Part::Gap, index.end(), parts.trailer.at - index.end());
        }
    }
    let contents = parts.outline.vlmetalayers().iter().zip(&parts.vlmetalayers);
    let contents = contents.map(|(each, span)| (Part::VlMetalayer(each.name.clone()), *span));
    pieces(Part::Trailer, parts.trailer, contents, checker);
}

/// Adds a part that includes consecutive contents to the map.
fn pieces(
    part: Part,
    whole: Span,
    contents: impl Iterator<Item = (Part, Span)>,
    checker: &mut Checker<'_>,
) {
    let mut from = whole.at;
    let mut piece = |part: Part, to: u64| {
        if from < to {
            checker.region(part, from, to - from);
            from = to;
        }
    };
    for (content, span) in contents {
        piece(part.clone(), span.at);
        piece(content, span.end());
    }
    piece(part, whole.end());
}

/// Checks the chunks that hold the contents of the variable-length metalayers.
pub(crate) fn check_vlmetalayers(parts: &Parts, options: &Options, checker: &mut Checker<'_>) {
    for (Metalayer { name, content }, span) in
        parts.outline.vlmetalayers().iter().zip(&parts.vlmetalayers)
    {
        let mut within = checker.within(Part::VlMetalayer(name.clone()), span.at);
        if let Ok(header) = chunk::Header::parse(content)
            && u64::from(header.cbytes) != span.len
        {
            let expected = format_args!("{}, all of the content", span.len).to_string();
            within.found(&rules::VLMETA_CHUNK, 12, 4, expected, header.cbytes);
            continue;
        }
        chunk::check(content, options, &mut within);
    }
}

/// Checks each chunk, and compares the chunk with the header of the frame.
pub(crate) struct ChunkChecker<'a> {
    parts: &'a Parts,
    options: &'a Options,
    geometry: Option<Geometry>,
    /// The total sizes of the chunks checked so far.
    nbytes: u64,
    cbytes: u64,
    /// The number of chunks stored so far.
    stored: u64,
    decoded: u64,
    /// Whether a chunk could not be checked, so that the sums are not meaningful.
    pub(crate) incomplete: bool,
    dictionary: Option<bool>,
    variable_blocks: Option<bool>,
}

impl<'a> ChunkChecker<'a> {
    pub(crate) fn new(parts: &'a Parts, options: &'a Options, checker: &mut Checker<'_>) -> Self {
        let geometry = check_array(parts, &options.limits, checker);
        let mut new = Self {
            parts,
            options,
            geometry,
            nbytes: 0,
            cbytes: 0,
            stored: 0,
            decoded: 0,
            incomplete: false,
            dictionary: None,
            variable_blocks: None,
        };
        new.check_special_offsets(checker);
        new.check_checksums(checker);
        new
    }

    /// Special offsets do not state the number of bytes they represent.
    fn check_special_offsets(&mut self, checker: &mut Checker<'_>) {
        let typesize = self.parts.outline.fields().typesize;
        let is_special = |offset: Option<Offset>| matches!(offset, Some(Offset::Special(_)));
        let wrong = |&number: &u64| {
            let nbytes = self.parts.outline.nbytes_of(number);
            nbytes.is_none_or(|nbytes| nbytes % typesize != 0)
        };
        let offsets = &self.parts.outline.offsets;
        let Some(last) = offsets.len().checked_sub(1) else { return };
        let is_nan =
            |number| matches!(offsets.decoded(number), Some(Offset::Special(Special::Nan)));
        let nan = match offsets {
            Offsets::Alike(..) => Some(0).filter(|&number| is_nan(number)),
            Offsets::Each(_) => (0..=last).find(|&number| is_nan(number)),
        };
        if let (Some(number), Some(index)) = (nan, self.parts.index) {
            let blocksize = self.parts.outline.fields().blocksize;
            let mut within = checker.within(Part::Index, index.at);
            if !matches!(typesize, 4 | 8) {
                let found = format_args!("{typesize}, with NaN as chunk {number}").to_string();
                within.found(&rules::CHUNK_NAN, 0, index.len, "a typesize of 4 or 8", found);
            } else if (1..typesize).contains(&blocksize) {
                let expected =
                    format_args!("blocks of at least one item ({typesize} bytes)").to_string();
                let found = format_args!("{blocksize}, with NaN as chunk {number}").to_string();
                within.found(&rules::CHUNK_NAN, 0, index.len, expected, found);
            }
        }
        let blocksize = self.parts.outline.fields().blocksize;
        if let (Some(_), true) = (nan, (1..typesize).contains(&blocksize)) {
            let expected = format_args!("at least the {typesize} bytes of a NaN").to_string();
            let mut within = checker.within(Part::Header, 0);
            field::BLOCKSIZE.found(&mut within, &rules::BLOCKSIZE, expected, blocksize);
        }
        let first = match offsets {
            // All chunks except the last have the same size.
            Offsets::Alike(Offset::Special(_), _) => [0, last].into_iter().find(wrong),
            _ => (0..=last).find(|number| is_special(offsets.decoded(*number)) && wrong(number)),
        };
        let (Some(number), Some(index)) = (first, self.parts.index) else { return };
        self.incomplete = true;
        let mut within = checker.within(Part::Index, index.at);
        let found = format_args!("a special offset for chunk {number}").to_string();
        match self.parts.outline.nbytes_of(number) {
            None => {
                let expected = "stored chunks only, as their sizes vary";
                within.found(&rules::CHUNK_UNKNOWN, 0, index.len, expected, found);
            }
            Some(nbytes) => {
                let expected = format_args!("a multiple of the typesize {typesize}").to_string();
                let found = format_args!("{found}, which has {nbytes} bytes").to_string();
                within.found(&rules::CHUNK_NBYTES, 0, index.len, expected, found);
            }
        }
    }

    /// Checks the metalayer with the checksums, the checksum of the metadata, and the checksums of
    /// special offsets.
    fn check_checksums(&self, checker: &mut Checker<'_>) {
        let outline = &self.parts.outline;
        if let Some(found) = outline.missing_checksums() {
            require_checksums(self.options, found, checker);
        }
        let Some(checksums) = &outline.checksums else { return checker.unverified() };
        if let Some(Fault { rule, at, expected, found }) = checksums.fault() {
            let part = if *at == 0 { Part::Header } else { Part::Trailer };
            checker.within(part, *at).found(rule, 0, 0, expected, found);
        }
        let Some(index) = self.parts.index else { return };
        for number in 0..outline.nchunks() {
            let Some(offset @ Offset::Special(_)) = outline.decoded(number) else { continue };
            if let Some((expected, found)) = outline.mismatch(number, offset, &[]) {
                let mut within = checker.within(Part::Chunk(number), index.at);
                within.found(&rules::CHUNK_CHECKSUM, 0, index.len, expected, found);
            }
        }
    }

    /// Checks the chunk at offset `at` of `source`. The chunk can occupy up to `room` bytes.
    /// `checker` starts at the first byte of the chunk. Returns the length of the chunk, or `None`
    /// if the length is unknown.
    pub(crate) fn check<R: ReadAt + ?Sized>(
        &mut self,
        number: u64,
        source: &R,
        at: u64,
        room: u64,
        checker: &mut Checker<'_>,
    ) -> Result<Option<u64>, Error> {
        let head = source.read_vec_at(at, room.min(EXTENDED_HEADER_LEN as u64))?;
        let Ok(header) = chunk::Header::parse(&head) else {
            // The check of the chunk reports the error.
            chunk::check(&head, self.options, checker);
            self.incomplete = true;
            return Ok(None);
        };
        let len = u64::from(header.cbytes);
        if len > room {
            let expected = format_args!("at most {room}, where it has to end").to_string();
            checker.found(&rules::CHUNK_PLACE, 12, 4, expected, len);
            self.incomplete = true;
            return Ok(None);
        }
        self.nbytes = self.nbytes.saturating_add(header.nbytes.into());
        self.cbytes = self.cbytes.saturating_add(len);
        self.stored += 1;
        self.check_header(number, &header, checker);
        let limits = &self.options.limits;
        let allowed = Limits::allow(Limit::Memory, "bytes of a chunk", len, limits.memory);
        if limited(allowed, checker)?.is_none() {
            return Ok(Some(len));
        }
        let mut options = *self.options;
        // Other chunks are not decoded: a few bytes can state gigabytes of one value.
        if header.is_compressed() {
            self.decoded = self.decoded.saturating_add(header.nbytes.into());
            options.content &= self.decoded <= limits.total_bytes;
        }
        let bytes = source.read_vec_at(at, len)?;
        if let Some(found) = self.parts.outline.mismatch(number, Offset::At(at), &bytes) {
            checker.found(&rules::CHUNK_CHECKSUM, 0, len, found.0, found.1);
        }
        chunk::check(&bytes, &options, checker);
        Ok(Some(len))
    }

    fn check_header(&mut self, number: u64, chunk: &chunk::Header, checker: &mut Checker<'_>) {
        let frame = self.parts.outline.fields();
        let shortest = match frame.layout {
            Layout::Contiguous => EXTENDED_HEADER_LEN as u32,
            Layout::Directory => MIN_HEADER_LEN as u32,
        };
        if chunk.cbytes < shortest {
            let expected = format_args!("at least {shortest}").to_string();
            checker.found(&rules::CHUNK_SHORT, 12, 4, expected, chunk.cbytes);
        }
        if chunk.lazy {
            let expected = "no mark of a lazy chunk, which only exists in memory";
            checker.found(&rules::CHUNK_LAZY, 31, 1, expected, "the mark");
        }
        match chunk.special {
            Some(Special::Value) => {
                let (width, typesize) = (chunk.cbytes - EXTENDED_HEADER_LEN as u32, frame.typesize);
                if width < typesize {
                    let expected = format_args!("a repeated value of {typesize} bytes").to_string();
                    checker.found(&rules::CHUNK_VALUE, 12, 4, expected, width);
                }
            }
            Some(special) => {
                let expected = "a special offset in the index instead";
                let found = format_args!("{special:?}").to_string();
                checker.found(&rules::CHUNK_SPECIAL, 31, 1, expected, found);
            }
            None => {}
        }
        if chunk.nbytes == 0 {
            checker.found(&rules::CHUNK_EMPTY, 4, 4, "at least 1", 0);
        }
        if let Some(nbytes) = self.parts.outline.nbytes_of(number)
            && nbytes != chunk.nbytes
        {
            checker.found(&rules::CHUNK_NBYTES, 4, 4, nbytes, chunk.nbytes);
        }
        let typesize = u8::try_from(frame.typesize).unwrap_or(1);
        if chunk.typesize != typesize {
            checker.found(&rules::CHUNK_TYPESIZE, 3, 1, typesize, chunk.typesize);
        }
        if chunk.variable_blocks && !frame.variable_blocks {
            let expected = "blocks of equal length, as the flags of the frame state";
            checker.found(&rules::CHUNK_BLOCKS, 30, 1, expected, "variable-length blocks");
        }
        self.variable_blocks = Some(self.variable_blocks == Some(true) || chunk.variable_blocks);
        if let Some(geometry) = &self.geometry {
            b2nd::check_chunk(geometry, chunk, checker);
        }
        if chunk.extended && chunk.special.is_none() {
            self.dictionary = Some(self.dictionary == Some(true) || chunk.dictionary);
            check_params(frame, chunk, checker);
        }
    }

    /// Checks the fields of the header that depend on all chunks together.
    pub(crate) fn finish(&mut self, checker: &mut Checker<'_>) {
        let frame = self.parts.outline.fields();
        let mut within = checker.within(Part::Header, 0);
        if frame.variable_blocks
            && self.variable_blocks == Some(false)
            && frame.chunksize != ChunkSize::Variable
        {
            let expected = "no bit 7, as no chunk has variable-length blocks";
            field::FLAGS.found(&mut within, &rules::FLAGS, expected, "bit 7");
        }
        if let Some(dictionary) = self.dictionary.filter(|&found| found != frame.dictionary) {
            let used = if dictionary { "some of the chunks use one" } else { "no chunk uses one" };
            field::MORE_FLAGS.found(&mut within, &rules::DICTIONARY, frame.dictionary, used);
        }
        // The C library also compares the field with the number of chunks.
        let least = self.stored.saturating_mul(EXTENDED_HEADER_LEN as u64);
        if frame.layout == Layout::Directory && frame.cbytes < least {
            let expected = format_args!("at least {least}, for the headers of the chunks");
            field::CBYTES.found(&mut within, &rules::CBYTES, expected.to_string(), frame.cbytes);
        }
        if let Some(geometry) = &self.geometry {
            let nbytes =
                self.parts.outline.offsets.len().saturating_mul(geometry.chunk_len() as u64);
            if nbytes != frame.nbytes {
                let expected = format_args!("{nbytes}, as all chunks of an array have full size");
                field::NBYTES.found(
                    &mut within,
                    &rules::NBYTES,
                    expected.to_string(),
                    frame.nbytes,
                );
            }
        }
        let total = self.options.limits.total_bytes;
        if self.options.content && self.decoded > total {
            let expected = format!("at most {total} bytes to decode {}", Limit::TotalBytes);
            field::NBYTES.found(&mut within, &rules::LIMIT, expected, self.decoded);
        }
        if self.incomplete {
            return;
        }
        if frame.chunksize == ChunkSize::Variable && self.nbytes != frame.nbytes {
            let expected = format_args!("{}, the sum of the chunks", self.nbytes).to_string();
            field::NBYTES.found(&mut within, &rules::NBYTES, expected, frame.nbytes);
        }
        if frame.layout == Layout::Directory && self.cbytes != frame.cbytes {
            let expected = format_args!("{}, the sum of the chunks", self.cbytes).to_string();
            field::CBYTES.found(&mut within, &rules::CBYTES_SUM, expected, frame.cbytes);
        }
    }
}

/// Reports missing checksums if they are required.
pub(crate) fn require_checksums(options: &Options, found: &str, checker: &mut Checker<'_>) {
    if options.require_checksums {
        checker.found(&rules::CHECKSUMS_MISSING, 0, 0, REQUIRED, found);
    }
}

/// Compares the compression parameters of a chunk with the parameters of the frame. A difference is
/// only a note, because the frame can contain chunks that another program compressed with other
/// parameters.
fn check_params(frame: &Header, chunk: &chunk::Header, checker: &mut Checker<'_>) {
    let mut differ = |at: u64, len: u64, what: &str, expected: &[u8], found: &[u8]| {
        if expected != found {
            let expected = format_args!("{what} {expected:?}, as the frame states").to_string();
            checker.found(&rules::CHUNK_PARAMS, at, len, expected, format_args!("{found:?}"));
        }
    };
    differ(16, 6, "filters", &frame.filters, &chunk.filters);
    differ(24, 6, "parameters of the filters", &frame.filters_meta, &chunk.filters_meta);
    // A chunk of stored data can state any codec.
    if !chunk.memcpyed {
        // LZ4HC writes streams of LZ4.
        let codec = if frame.codec == 2 { 1 } else { frame.codec };
        differ(2, 1, "codec", &[codec], &[chunk.codec()]);
        // 2.0.0-rc.1 stored the codec in this field.
        if frame.codec_meta != frame.codec {
            differ(23, 1, "parameter of the codec", &[frame.codec_meta], &[chunk.codec_meta]);
        }
        if let Some(split) = splits(frame, chunk).filter(|_| !chunk.variable_blocks) {
            let words = |split| if split { "split" } else { "whole" };
            if split != chunk.split {
                let expected = format_args!("{} blocks, as the frame states", words(split));
                checker.found(&rules::CHUNK_PARAMS, 2, 1, expected, words(chunk.split));
            }
        }
    }
    // If chunk sizes vary, the C library continues with the smallest block size that it has used.
    if frame.blocksize > 0 && frame.chunksize != ChunkSize::Variable && !chunk.variable_blocks {
        // Blocks contain whole items if they are large enough.
        let items = (frame.blocksize.min(chunk.nbytes) / frame.typesize).max(1);
        let blocksize = items.saturating_mul(frame.typesize).min(frame.blocksize).min(chunk.nbytes);
        if blocksize != chunk.block_len() {
            let expected = format_args!("blocks of {blocksize} bytes, as the frame states");
            checker.found(&rules::CHUNK_PARAMS, 8, 4, expected, chunk.block_len());
        }
    }
}

/// Returns whether the blocks of a chunk with the parameters of the frame are split. Returns `None`
/// if the frame does not state the split mode, which versions up to 2.4 did not set.
fn splits(frame: &Header, chunk: &chunk::Header) -> Option<bool> {
    let split = match frame.split_mode {
        2 => SplitMode::Never,
        // Older versions never split blocks for Zstandard.
        _ if frame.codec == 5 => return None,
        3 | 4 => SplitMode::Auto,
        _ => return None,
    };
    let params = Params { blocksize: Some(chunk.blocksize), split, ..frame.params() };
    let plan = Plan::new(&params, usize::try_from(chunk.nbytes).ok()?).ok()?;
    Some(plan.split)
}

/// Checks the metalayer of an array, if there is one.
fn check_array(parts: &Parts, limits: &Limits, checker: &mut Checker<'_>) -> Option<Geometry> {
    let metalayers = parts.outline.metalayers();
    let named = |name: &str| metalayers.iter().position(|each| each.name == name);
    let number = named(b2nd::NAME).or_else(|| named(b2nd::OLD_NAME))?;
    let (metalayer, span) = (metalayers.get(number)?, parts.metalayers.get(number)?);
    let frame = b2nd::Frame {
        typesize: parts.outline.fields().typesize,
        chunksize: parts.outline.fields().chunksize.fixed(),
        blocksize: Some(parts.outline.fields().blocksize).filter(|&size| size > 0),
        nchunks: Some(parts.outline.offsets.len()),
    };
    let mut within = checker.within(Part::Metalayer(metalayer.name.clone()), span.at);
    b2nd::check(&metalayer.content, Some(&frame), limits, &mut within)
}
