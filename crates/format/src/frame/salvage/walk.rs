//! The search for intact chunks, indexes and trailers in a file.

use super::IntactChunk;
use crate::chunk::{self, Chunk, EXTENDED_HEADER_LEN, MAX_VERSION, MIN_HEADER_LEN, Special};
use crate::frame::header::TRAILER_END_LEN;
use crate::frame::offset::{OFFSET_LEN, Offset};
use crate::frame::span::Span;
use crate::frame::{index, offsets};
use crate::report::{Checker, Options, Report};
use crate::{Error, Limit, Limits, ReadAt};

/// The number of bytes read at once.
const WINDOW: u64 = 64 << 10;
/// The maximum number of recorded positions of metalayer contents.
const MAX_CONTENTS: usize = 1 << 14;
/// The first bytes of a trailer: markers and version. The size of the index follows.
const TRAILER_START: [u8; 4] = [0x94, 1, 0x93, 0xcd];

/// The facts that are known before the search.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Known<'a> {
    /// The position where the search for chunks starts.
    pub(super) start: u64,
    /// The end of the header, from which offsets count.
    pub(super) base: Option<u64>,
    /// The typesize in the headers of the chunks.
    pub(super) typesize: Option<u8>,
    /// The position of the index that the header states.
    pub(super) index_at: Option<u64>,
    /// Whether the header states that there is data.
    pub(super) has_data: bool,
    /// The chunk files of a directory, in order. In a directory, the file with the index contains
    /// no chunks.
    pub(super) files: Option<&'a [IntactChunk]>,
}

/// The intact parts.
#[derive(Debug, Default)]
pub(super) struct Walked {
    /// The chunks with data, in the order of the file.
    pub(super) chunks: Vec<IntactChunk>,
    /// The header of the first chunk, and whether all chunks have its typesize.
    pub(super) first: Option<(chunk::Header, bool)>,
    /// The chunks that contain offsets.
    pub(super) indexes: Vec<IntactChunk>,
    pub(super) trailers: Vec<Span>,
    /// The number of bytes that belong to no intact part.
    pub(super) damaged: u64,
    /// Whether the search for chunks was aborted because it took too long.
    pub(super) is_given_up: bool,
}

/// The part at a position.
enum Found {
    Data(chunk::Header),
    Index(chunk::Header),
}

pub(super) struct Walk<'a, R: ?Sized> {
    source: &'a R,
    size: u64,
    limits: &'a Limits,
    known: Known<'a>,
    window: Vec<u8>,
    window_at: u64,
    /// The work for candidates that were not chunks, and its limit.
    spent: u64,
    most: u64,
    walked: Walked,
    typesizes: [bool; 256],
    /// The positions of the contents of metalayers that cannot be read.
    contents: Vec<u64>,
}

impl<'a, R: ReadAt + ?Sized> Walk<'a, R> {
    /// Creates the search in the first `size` bytes.
    pub(super) fn new(source: &'a R, size: u64, limits: &'a Limits) -> Self {
        Self {
            source,
            size,
            limits,
            known: Known::default(),
            window: Vec::new(),
            window_at: 0,
            spent: 0,
            most: size.saturating_mul(16).saturating_add(64 << 20),
            walked: Walked::default(),
            typesizes: [true; 256],
            contents: Vec::new(),
        }
    }

    /// Searches the file once. Intact bytes are not read twice.
    pub(super) fn run(mut self, known: Known<'a>) -> Result<Walked, Error> {
        self.known = known;
        if let Some(typesize) = known.typesize {
            self.typesizes = [false; 256];
            self.typesizes[usize::from(typesize)] = true;
        }
        let (mut at, mut is_synced) = (known.start, false);
        while at < self.size {
            if self.spent > self.most {
                self.walked.is_given_up = true;
                self.walked.damaged += self.size - at;
                break;
            }
            if let Some(len) = self.trailer_len(at)? {
                self.walked.trailers.push(Span { at, len });
                at += len;
                is_synced = true;
                continue;
            }
            is_synced |= known.base == Some(at);
            let Some(found) = self.look_at(at, is_synced)? else {
                self.walked.damaged += 1;
                at += 1;
                is_synced = false;
                continue;
            };
            let (Found::Data(header) | Found::Index(header)) = &found;
            let whole = IntactChunk { at, len: header.cbytes, nbytes: header.nbytes };
            match found {
                Found::Index(_) => self.walked.indexes.push(whole),
                Found::Data(header) => {
                    let typesize = header.typesize;
                    match &mut self.walked.first {
                        Some((first, is_same)) => *is_same &= first.typesize == typesize,
                        first => *first = Some((header, true)),
                    }
                    self.typesizes[usize::from(typesize)] = true;
                    self.walked.chunks.push(whole);
                }
            }
            at += u64::from(whole.len);
            is_synced = true;
        }
        Ok(self.walked)
    }

    /// Returns the end of the section of metalayers at `at`, if there is a readable section.
    ///
    /// The offsets in the section are relative to `from`. The contents at these offsets are not
    /// chunks of the frame, even if the section is not readable.
    pub(super) fn section_end(&mut self, at: u64, from: u64) -> Result<Option<u64>, Error> {
        let Some(&[0x93, 0xcd, _, _, 0xde, high, low]) = self.get(at, 7)? else { return Ok(None) };
        let count = u16::from_be_bytes([high, low]);
        let mut end = at + 7;
        for _ in 0..count {
            let Some(&[marker]) = self.get(end, 1)? else { return Ok(None) };
            end += 1 + u64::from(marker & 0x1f);
            let offset = self.get(end, 5)?.and_then(|offset| offset.first_chunk());
            let Some(&[0xd2, a, b, c, d]) = offset.filter(|_| marker & 0xe0 == 0xa0) else {
                return Ok(None);
            };
            if self.contents.len() < MAX_CONTENTS {
                self.contents.push(from + 5 + u64::from(u32::from_be_bytes([a, b, c, d])));
            }
            end += 5;
        }
        let [high, low] = count.to_be_bytes();
        if self.get(end, 3)? != Some(&[0xdc, high, low]) {
            return Ok(None);
        }
        end += 3;
        for _ in 0..count {
            let Some(&[0xc6, ref len @ ..]) = self.get(end, 5)? else { return Ok(None) };
            let len = len.first_chunk().map_or(0, |len| u32::from_be_bytes(*len));
            end += 5 + u64::from(len);
        }
        Ok(Some(end).filter(|&end| end <= self.size))
    }

    /// Returns the length of the trailer at `at`, if there is one.
    fn trailer_len(&mut self, at: u64) -> Result<Option<u64>, Error> {
        if self.get(at, 4)? != Some(&TRAILER_START) {
            return Ok(None);
        }
        let Some(end) = self.section_end(at + 2, at)? else {
            self.spent += WINDOW;
            return Ok(None);
        };
        let len = end - at + TRAILER_END_LEN as u64;
        let found = self.get(end, TRAILER_END_LEN)?;
        let found = found.and_then(|tail| tail.first_chunk());
        let Some(&[0xce, a, b, c, d, 0xd8]) = found else { return Ok(None) };
        Ok(Some(len).filter(|&len| len == u32::from_be_bytes([a, b, c, d]).into()))
    }

    /// Returns the chunk at `at` if it is intact. The conditions are stricter for a chunk that does
    /// not directly follow another chunk.
    fn look_at(&mut self, at: u64, is_synced: bool) -> Result<Option<Found>, Error> {
        let room = self.size - at;
        let shortest = if is_synced { MIN_HEADER_LEN } else { EXTENDED_HEADER_LEN };
        let len = EXTENDED_HEADER_LEN.min(usize::try_from(room).unwrap_or(usize::MAX));
        let Some(head) = self.get(at, len)?.filter(|head| head.len() >= shortest) else {
            return Ok(None);
        };
        let is_extended = (3..=MAX_VERSION).contains(&head[0]) && head[2] & 0b101 == 0b101;
        if !is_synced && !is_extended {
            return Ok(None);
        }
        let Ok(header) = chunk::Header::parse(head) else { return Ok(None) };
        let len = u64::from(header.cbytes);
        let may_be_index = may_be_index(&header);
        let may_be_data = self.known.files.is_none()
            && len >= EXTENDED_HEADER_LEN as u64
            && is_data(&header)
            && (is_synced || self.typesizes[usize::from(header.typesize)]);
        if len > room || !(may_be_data || may_be_index) {
            return Ok(None);
        }
        if !is_synced && self.is_metalayer(at, header.cbytes)? {
            return Ok(None);
        }
        let Some((bytes, has_gap)) = self.check(Span { at, len })? else { return Ok(None) };
        if has_gap {
            // The length of the candidate can be wrong, so the next chunk can start before its end.
            self.spent = self.spent.saturating_add(len + u64::from(header.nbytes));
            return Ok(None);
        }
        if may_be_index && self.is_index(at, &bytes)? {
            return Ok(Some(Found::Index(header)));
        }
        Ok(may_be_data.then_some(Found::Data(header)))
    }

    /// Returns the intact chunk at `at`, a position from the index.
    pub(super) fn whole(&mut self, at: u64) -> Result<Option<IntactChunk>, Error> {
        let room = self.size.saturating_sub(at);
        if room < MIN_HEADER_LEN as u64 || self.spent > self.most {
            return Ok(None);
        }
        let head = self.source.read_vec_at(at, room.min(EXTENDED_HEADER_LEN as u64))?;
        let Ok(header) = chunk::Header::parse(&head) else { return Ok(None) };
        let len = u64::from(header.cbytes);
        if len > room || !is_data(&header) {
            return Ok(None);
        }
        // Chunks examined here can overlap.
        self.spent = self.spent.saturating_add(len + u64::from(header.nbytes));
        let whole = IntactChunk { at, len: header.cbytes, nbytes: header.nbytes };
        Ok(self.check(Span { at, len })?.map(|_| whole))
    }

    /// Returns whether the first chunk, or the trailer, can start at `at`.
    pub(super) fn is_start(&mut self, at: u64) -> Result<bool, Error> {
        Ok(self.trailer_len(at)?.is_some() || self.whole(at)?.is_some())
    }

    /// Returns the bytes of the chunk, and whether some of these bytes are unused. Returns `None`
    /// if the chunk is not intact. The content is checked only if the codec is supported.
    fn check(&mut self, span: Span) -> Result<Option<(Vec<u8>, bool)>, Error> {
        if span.len > self.limits.memory {
            return Ok(None);
        }
        let bytes = self.source.read_vec_at(span.at, span.len)?;
        let (report, decoded) = check(&bytes, self.limits);
        if !report.is_good() {
            self.spent = self.spent.saturating_add(span.len + decoded);
            return Ok(None);
        }
        let has_gap = report.findings.iter().any(|finding| finding.rule.id == "chunk.gap");
        Ok(Some((bytes, has_gap)))
    }

    /// Returns whether the chunk at `at` is the content of a metalayer. The offset of the chunk, or
    /// the bytes before it, determine this.
    fn is_metalayer(&mut self, at: u64, len: u32) -> Result<bool, Error> {
        if self.contents.contains(&at) {
            return Ok(true);
        }
        let Some(before) = at.checked_sub(5) else { return Ok(false) };
        let [a, b, c, d] = len.to_be_bytes();
        let mut marker = [0; 5];
        // The window only moves forward.
        self.source.read_exact_at(before, &mut marker)?;
        Ok(marker == [0xc6, a, b, c, d])
    }

    /// Returns whether the intact chunk `bytes` at `at` contains offsets. Data can have the same
    /// form. Therefore the chunk must be where an index has to be, or the entries must lead to the
    /// chunks before it.
    fn is_index(&mut self, at: u64, bytes: &[u8]) -> Result<bool, Error> {
        let Ok(chunk) = Chunk::new(bytes, self.limits) else { return Ok(false) };
        let (nbytes, end) = (u64::from(chunk.header().nbytes), at + bytes.len() as u64);
        let is_stated = self.known.index_at == Some(at);
        let is_placed = is_stated || self.may_be_trailer(end)?;
        // Data can have more items than a frame may have chunks.
        let count = nbytes / OFFSET_LEN;
        if !is_placed && count > self.limits.chunks {
            return Ok(false);
        }
        Limits::allow(Limit::Chunks, "chunks", count, self.limits.chunks)?;
        // A repeated special value can be an index. A repeated position is not an index.
        let may_have_places = chunk.header().special != Some(Special::Value);
        let base = base(&self.known, &self.walked.chunks);
        let starts = self.known.files.unwrap_or(&self.walked.chunks);
        let max = self.limits.metadata_of(self.size);
        let held = |places: &Vec<u64>| OFFSET_LEN * places.len() as u64;
        let (mut places, mut exact, mut is_index) = (Vec::new(), true, true);
        let decoded = index::decode(&chunk, |offset, _| {
            match Offset::of(offset) {
                Some(Offset::Special(_)) => {}
                Some(Offset::At(place)) => {
                    let start = match self.known.files {
                        Some(_) => place,
                        None => base.saturating_add(place),
                    };
                    exact &= starts.binary_search_by_key(&start, |chunk| chunk.at).is_ok();
                    let end = start.saturating_add(EXTENDED_HEADER_LEN as u64);
                    is_index &= may_have_places && (self.known.files.is_some() || end <= at);
                    places.push(place);
                    // More positions than chunks repeat.
                    is_index &= if exact { places.len() <= starts.len() } else { is_placed };
                }
                None => is_index = false,
            }
            is_index && held(&places) <= max
        });
        if decoded.is_err() || !is_index {
            return Ok(false);
        }
        Limits::allow(Limit::Metadata, "bytes of offsets", held(&places), max)?;
        places.sort_unstable();
        let apart = if self.known.files.is_some() { 1 } else { EXTENDED_HEADER_LEN as u64 };
        let are_apart = places.windows(2).all(|two| two[1] - two[0] >= apart);
        // A single zero leads to the first chunk in any case.
        let is_index = are_apart && (is_placed || places.len() != 1 || self.may_end(end)?);
        if is_index && !is_stated && chunk.header().special.is_none() {
            // A few bytes can decode to many entries, and a file can contain many such indexes.
            self.spent = self.spent.saturating_add(nbytes);
        }
        Ok(is_index)
    }

    /// Returns whether a trailer starts at `at`. In a truncated frame, only a part of its first
    /// bytes may be present.
    fn may_be_trailer(&self, at: u64) -> Result<bool, Error> {
        let len = TRAILER_START.len().min(usize::try_from(self.size - at).unwrap_or(usize::MAX));
        let mut next = [0; TRAILER_START.len()];
        // The window only moves forward.
        self.source.read_exact_at(at, &mut next[..len])?;
        Ok(len > 0 && TRAILER_START.starts_with(&next[..len]))
    }

    /// Returns whether the chunks can end at `at`: no chunk follows, and the header does not state
    /// that there are more chunks.
    fn may_end(&mut self, at: u64) -> Result<bool, Error> {
        let next = self.get(at, EXTENDED_HEADER_LEN)?.map(chunk::Header::parse);
        let is_chunk = next.is_some_and(|next| next.is_ok_and(|next| is_data(&next)));
        Ok(!self.known.has_data && !is_chunk)
    }

    /// Returns the `len` bytes at `at`, or `None` if the file ends before the last of these bytes.
    fn get(&mut self, at: u64, len: usize) -> Result<Option<&[u8]>, Error> {
        let end = at.saturating_add(len as u64);
        if end > self.size {
            return Ok(None);
        }
        if at < self.window_at || end > self.window_at + self.window.len() as u64 {
            let len = WINDOW.min(self.size - at).max(len as u64);
            self.window = self.source.read_vec_at(at, len)?;
            self.window_at = at;
        }
        let from = usize::try_from(at - self.window_at).unwrap_or(usize::MAX);
        Ok(self.window.get(from..).and_then(|rest| rest.get(..len)))
    }
}

/// Returns the base of the offsets. If it is not known, the first intact chunk is assumed to be the
/// first chunk.
pub(super) fn base(known: &Known<'_>, chunks: &[IntactChunk]) -> u64 {
    known.base.or(chunks.first().map(|chunk| chunk.at)).unwrap_or(known.start)
}

/// Checks the chunk in `bytes`, and its content if it can be decoded. Returns the report and the
/// number of decoded bytes.
pub(super) fn check(bytes: &[u8], limits: &Limits) -> (Report, u64) {
    let mut report = Report::new();
    let options = Options { content: true, limits: *limits, ..Options::default() };
    // An index can state unused bytes of the frame. Other bytes between its blocks are a gap.
    let known = offsets::marked_len(bytes);
    let decoded = chunk::check_after(known, bytes, &options, &mut Checker::new(&mut report));
    (report, decoded)
}

/// Returns whether a frame can store such a chunk.
pub(super) fn is_data(header: &chunk::Header) -> bool {
    header.nbytes > 0 && !header.lazy && matches!(header.special, None | Some(Special::Value))
}

/// Returns whether the chunk has the form of an index that C-Blosc2 writes.
fn may_be_index(header: &chunk::Header) -> bool {
    let form = header.extended
        && u64::from(header.typesize) == OFFSET_LEN
        && header.nbytes > 0
        && u64::from(header.nbytes).is_multiple_of(OFFSET_LEN)
        && !(header.variable_blocks || header.dictionary || header.lazy || header.instrumented)
        && header.filters.iter().all(|&filter| filter <= 1);
    let codec = header.memcpyed || header.codec_format == 0;
    // A single chunk at position 0 has an index of zeros.
    let special = match header.special {
        None => codec,
        Some(Special::Zeros) => u64::from(header.nbytes) == OFFSET_LEN,
        Some(special) => special == Special::Value && header.cbytes == 40,
    };
    form && special
}
