//! The parts of a stored frame other than its chunks: header, metalayers, index and trailer.
//!
//! [`Parts::find`] examines these parts and reports errors to a [`Checker`]. Readers and checks
//! call this function first. A reader stops at the first error, and decodes most of a long index
//! later.

use super::checksums::{self, Checksums, of_metadata};
use super::field::{self, MIN_HEADER_LEN};
use super::files::Files;
use super::header::{
    self, ChunkSize, Header, Layout, METALAYERS_AT, MIN_TRAILER_LEN, TRAILER_END_LEN,
    VLMETALAYERS_AT,
};
use super::index::{self, Depth};
use super::metalayer::Metalayer;
use super::outline::{self, Outline};
use super::rules;
use super::section::{self, Entry, Hex, Place};
use super::space::Space;
use super::span::Span;
use crate::chunk::{MAX_BLOCKSIZE, TypicalHeader};
use crate::read_at::Ends;
use crate::report::{Checker, Part, Report};
use crate::{Error, FormatError, Limit, Limits, ReadAt};

/// The maximum total size of the chunks: half of the range of `i64`, so that sums do not overflow.
const MAX_CBYTES: u64 = i64::MAX as u64 / 2;

/// An outline, and the positions of its parts in the source.
#[derive(Debug, Clone)]
pub(crate) struct Parts {
    pub(crate) outline: Outline,
    /// The positions of the contents of the metalayers.
    pub(crate) metalayers: Vec<Span>,
    pub(crate) index: Option<Span>,
    pub(crate) trailer: Span,
    /// The positions of the chunks with the contents of the variable-length metalayers.
    pub(crate) vlmetalayers: Vec<Span>,
}

impl Outline {
    /// Reads the outline of the frame at the start of `source`: all parts except the chunks. Parts
    /// of a long index are read or decoded later, as described at
    /// [`Frame::open`](super::Frame::open).
    ///
    /// # Errors
    /// Fails with the errors of [`Frame::open`](super::Frame::open).
    pub fn read<R: ReadAt + ?Sized>(
        source: &R,
        layout: Layout,
        limits: &Limits,
    ) -> Result<Self, Error> {
        Parts::read(source, layout, limits).map(|parts| parts.outline)
    }
}

impl Parts {
    /// Reads all parts except the chunks of the frame at the start of `source`. Of a long index,
    /// reads only the bytes that are needed to find its blocks. Fails with the first error.
    pub(super) fn read<R: ReadAt + ?Sized>(
        source: &R,
        layout: Layout,
        limits: &Limits,
    ) -> Result<Self, Error> {
        let mut report = Report::brief();
        let mut checker = Checker::new(&mut report);
        let parts = Self::find(&Ends::of(source)?, layout, limits, Depth::Lazy, &mut checker)?;
        match (report.first_error(), parts) {
            (None, Some(parts)) => Ok(parts),
            (Some(finding), _) => Err(FormatError::from(finding).into()),
            (None, None) => Err(FormatError::of(&rules::SHORT, 0, "a frame", "none").into()),
        }
    }

    /// Examines `source`, which must start with a frame in this layout.
    ///
    /// Returns `None` if an error prevents finding the other parts.
    ///
    /// # Errors
    /// The errors of the source, and [`Error::Limit`].
    pub(crate) fn find<R: ReadAt + ?Sized>(
        source: &R,
        layout: Layout,
        limits: &Limits,
        depth: Depth,
        checker: &mut Checker<'_>,
    ) -> Result<Option<Self>, Error> {
        let size = source.size()?;
        let mut within = checker.within(Part::Header, 0);
        let checker = &mut within;
        let head = source.read_vec_at(0, size.min(MIN_HEADER_LEN as u64))?;
        let Some(header) = Header::read(&head, checker) else { return Ok(None) };
        if let Some(head) = head.first_chunk() {
            check_fields(head, &header, checker);
        }
        if header.layout != layout {
            let kinds = ["0, a contiguous frame", "1, the index file of a directory"];
            let (expected, found) = match layout {
                Layout::Contiguous => (kinds[0], kinds[1]),
                Layout::Directory => (kinds[1], kinds[0]),
            };
            field::LAYOUT.found(checker, &rules::LAYOUT, expected, found);
            return Ok(None);
        }
        if header.frame_len > size {
            let found = format_args!("{}: the frame is truncated", header.frame_len).to_string();
            let expected = format_args!("at most the {size} available bytes").to_string();
            field::FRAME_LEN.found(checker, &rules::FRAME_LEN, expected, found);
            return Ok(None);
        }
        if header.frame_len < size {
            let more = size - header.frame_len;
            checker.found(&rules::TRAILING, header.frame_len, more, "none", more);
        }

        let header_len = u64::from(header.header_len);
        Limits::allow(Limit::Memory, "bytes of the header", header_len, limits.memory)?;
        let metadata = limits.metadata_of(size);
        Limits::allow(Limit::Metadata, "bytes of the header", 2 * header_len, metadata)?;
        let bytes = source.read_vec_at(0, header_len)?;
        let max = limits.metalayers.min(section::MAX_METALAYERS);
        let place = Place { at: METALAYERS_AT, index_from: METALAYERS_AT, max };
        let metalayers = section::read(&bytes, place, checker);
        if let Some((_, end)) = &metalayers {
            check_end(*end as u64, header_len, checker);
        }
        let entries = metalayers.map(|(entries, _)| entries).unwrap_or_default();

        let Some(mut trailer) = Trailer::find(source, &header, limits, checker)? else {
            return Ok(None);
        };
        if header.has_vlmeta == trailer.entries.is_empty() {
            let found = format_args!("{} of them", trailer.entries.len()).to_string();
            let expected = if header.has_vlmeta {
                "some, as the header states"
            } else {
                "none, as the header states"
            };
            field::HAS_VLMETA.found(checker, &rules::HAS_VLMETA, expected, found);
        }
        let found = index::find(source, &header, trailer.span, limits, depth, checker)?;
        let Some((index, offsets)) = found else { return Ok(None) };
        let mut header = header;
        let mut spare = 0;
        if let (Layout::Contiguous, Some(end)) = (header.layout, offsets.spare()) {
            (header.cbytes, spare) = (end, header.cbytes.saturating_sub(end));
        }
        let mut sums = None;
        if let Some(number) = checksums::position(&trailer.metalayers) {
            let (layer, entry) =
                (trailer.metalayers.remove(number), trailer.entries.remove(number));
            let crc = of_metadata(&bytes, trailer.metalayers.iter().map(outline::pair));
            let at = trailer.span.at + entry.at as u64;
            // Checksums can use the memory that the header and the index do not need.
            let left = (metadata - 2 * header_len).saturating_sub(offsets.held());
            let rest = Limits { metadata: Some(left), ..*limits };
            let known = (offsets.len(), header.frame_len, crc);
            sums = Some(Checksums::read(&layer, at, known, &rest)?);
        }
        let spans =
            |entries: &[Entry], base| entries.iter().map(|entry| span(entry, base)).collect();
        Ok(Some(Self {
            metalayers: spans(&entries, 0),
            index,
            trailer: trailer.span,
            vlmetalayers: spans(&trailer.entries, trailer.span.at),
            outline: Outline {
                metalayers: entries.iter().map(|entry| metalayer(&bytes, entry)).collect(),
                vlmetalayers: trailer.metalayers,
                offsets,
                files: Files::unknown(),
                spare,
                space: Space::unknown(if header.nbytes == 0 { 0 } else { header.cbytes }),
                checksums: sums,
                is_header_stored: true,
                max_chunks: limits.chunks,
                chunk_header: TypicalHeader::default(),
                header,
            },
        }))
    }
}

fn metalayer(bytes: &[u8], entry: &Entry) -> Metalayer {
    let content = bytes.get(entry.at..entry.at + entry.len).unwrap_or_default();
    Metalayer { name: entry.name.clone(), content: content.to_vec() }
}

fn span(entry: &Entry, base: u64) -> Span {
    Span { at: base + entry.at as u64, len: entry.len as u64 }
}

fn check_end(end: u64, expected: u64, checker: &mut Checker<'_>) {
    if end != expected {
        let (from, to) = (end.min(expected), end.max(expected));
        checker.found(&rules::META_END, from, to - from, expected, end);
    }
}

/// Checks the fields that readers ignore, because no other part depends on these fields.
fn check_fields(head: &[u8; MIN_HEADER_LEN], header: &Header, checker: &mut Checker<'_>) {
    for (at, marker) in field::MARKERS {
        if head[at] != marker {
            let rule =
                if at == field::FILTER_SLOTS.at { &rules::FILTER_SLOTS } else { &rules::MARKER };
            checker.found(rule, at as u64, 1, Hex(marker), Hex(head[at]));
        }
    }
    let flags = field::FLAGS.byte(head);
    if flags >> 4 & 0b11 != 1 {
        let found = flags >> 4 & 0b11;
        field::FLAGS.found(checker, &rules::OFFSET_SIZE, "1, which means 64 bits", found);
    }
    let mut flag = |right: bool, expected: &str| {
        if !right {
            field::FLAGS.found(checker, &rules::FLAGS, expected, Hex(flags));
        }
    };
    let variable = header.chunksize == ChunkSize::Variable;
    flag(header.variable_chunks == variable, "bit 6 set exactly if the chunk size is 0");
    let newer = variable || header.variable_blocks;
    flag(
        (header.version == 3) == newer,
        "version 3 for variable-length chunks or blocks, otherwise 2",
    );

    if header.blocksize > MAX_BLOCKSIZE {
        let expected = format_args!("at most {MAX_BLOCKSIZE}");
        field::BLOCKSIZE.found(checker, &rules::BLOCKSIZE, expected, header.blocksize);
    }
    let chunksize = i32::from_be_bytes(field::CHUNKSIZE.bytes(head));
    if chunksize < -1 {
        field::CHUNKSIZE.found(checker, &rules::CHUNKSIZE, "at least -1", chunksize);
    }
    let (code, user_code) = (field::CODEC.byte(head) & 0x0f, field::USER_CODEC.byte(head));
    match code {
        // 2.0.0-rc.1 wrote the code one byte later, and before 2.0.0 some versions did not write
        // it.
        0..6 if [0, code].contains(&user_code) => {}
        6 if user_code >= 6 => {}
        0..6 => {
            field::USER_CODEC.found(checker, &rules::CODEC, format_args!("{code}, or 0"), user_code)
        }
        6 => field::USER_CODEC.found(checker, &rules::CODEC, "a code of 6 and more", user_code),
        _ => field::CODEC.found(checker, &rules::CODEC, "0 to 6", code),
    }
    if header.cbytes > MAX_CBYTES {
        let expected = format_args!("at most {MAX_CBYTES}");
        field::CBYTES.found(checker, &rules::CBYTES, expected, header.cbytes);
    }
    if header.level > 9 {
        field::CODEC.found(checker, &rules::LEVEL, "0 to 9", header.level);
    }
    for (field, bits) in [(field::SPLIT, 0xfc), (field::MORE_FLAGS, 0xfe), (field::RESERVED, 0xff)]
    {
        let found = field.byte(head) & bits;
        if found != 0 {
            field.found(checker, &rules::RESERVED, "0", Hex(found));
        }
    }
    for field in field::THREADS {
        let threads = i16::from_be_bytes(field.bytes(head));
        // C writes 0 for super-chunks that were created without a number of threads.
        if threads < 0 {
            field.found(checker, &rules::THREADS, "at least 0", threads);
        }
    }
    if ![field::NO, field::YES].contains(&field::HAS_VLMETA.byte(head)) {
        field::HAS_VLMETA.found(
            checker,
            &rules::HAS_VLMETA,
            "0xc2 or 0xc3",
            Hex(field::HAS_VLMETA.byte(head)),
        );
    }
}

struct Trailer {
    span: Span,
    entries: Vec<Entry>,
    metalayers: Vec<Metalayer>,
}

impl Trailer {
    fn find<R: ReadAt + ?Sized>(
        source: &R,
        header: &Header,
        limits: &Limits,
        checker: &mut Checker<'_>,
    ) -> Result<Option<Self>, Error> {
        // The check of the header has ensured that there is space for a trailer.
        let tail_at = header.frame_len.saturating_sub(MIN_TRAILER_LEN as u64);
        let tail = source.read_vec_at(tail_at, MIN_TRAILER_LEN as u64)?;
        let mut whole = checker.within(Part::Trailer, 0);
        let Some(len) = header::trailer_len(header, &tail, &mut whole) else { return Ok(None) };
        let at = header.frame_len.saturating_sub(u64::from(len));
        Limits::allow(Limit::Memory, "bytes of the trailer", u64::from(len), limits.memory)?;
        let metadata = limits.metadata_of(source.size()?);
        Limits::allow(Limit::Metadata, "bytes of the trailer", u64::from(len), metadata)?;
        let bytes = source.read_vec_at(at, u64::from(len))?;

        let mut within = checker.within(Part::Trailer, at);
        let checker = &mut within;
        let Some((content, end)) = bytes.split_at_checked(bytes.len() - TRAILER_END_LEN) else {
            return Ok(None);
        };
        let [array, version] = [bytes[0], bytes[1]];
        if array != 0x94 {
            checker.found(&rules::MARKER, 0, 1, Hex(0x94), Hex(array));
        }
        if version != 1 {
            checker.found(&rules::TRAILER_VERSION, 1, 1, 1, version);
        }
        let place = Place {
            at: VLMETALAYERS_AT,
            index_from: VLMETALAYERS_AT + 1,
            max: limits.metalayers.min(section::MAX_VLMETALAYERS),
        };
        let section = section::read(content, place, checker);
        if let Some((_, end)) = &section {
            check_end(*end as u64, content.len() as u64, checker);
        }
        // The marker of the length and the length itself are already checked.
        let fingerprint_at = content.len() as u64 + 5;
        if end[5] != 0xd8 {
            checker.found(&rules::MARKER, fingerprint_at, 1, Hex(0xd8), Hex(end[5]));
        }
        if end[6] != 0 {
            let expected = "type 0, none: no other has been written yet";
            checker.found(&rules::FINGERPRINT, fingerprint_at + 1, 1, expected, end[6]);
        } else if end[7..].iter().any(|&byte| byte != 0) {
            let found = "other bytes";
            checker.found(
                &rules::FINGERPRINT,
                fingerprint_at + 2,
                16,
                "zeros, as there is none",
                found,
            );
        }

        let Some((entries, _)) = section else { return Ok(None) };
        if entries.len() > section::MAX_METALAYERS {
            let expected = format_args!("at most {}, which C writes", section::MAX_METALAYERS);
            checker.found(&rules::VLMETA_MANY, 8, 2, expected, entries.len());
        }
        let metalayers = entries.iter().map(|entry| metalayer(&bytes, entry)).collect();
        Ok(Some(Self { span: Span { at, len: u64::from(len) }, entries, metalayers }))
    }
}
