//! The header and the end of the trailer: the fields at fixed positions.

use super::field::{self, Field, MIN_HEADER_LEN};
use super::{journal, rules};
use crate::FormatError;
use crate::chunk::{MAX_FILTERS, Params, SplitMode};
use crate::error::too_short;
use crate::report::{Checker, Report, Rule};

/// The minimum size of a trailer, in bytes.
pub const MIN_TRAILER_LEN: usize = 35;
/// The lowest version of the frame format that this module reads. C-Blosc2 writes this version
/// since 2.0.0-rc.1. For the frames of earlier versions of C-Blosc2, see [`early`](crate::early).
pub const MIN_VERSION: u8 = 2;
/// The highest known version of the frame format.
pub const MAX_VERSION: u8 = 3;

/// The position of the metalayers in the header.
pub(crate) const METALAYERS_AT: usize = MIN_HEADER_LEN;
/// The position of the metalayers in the trailer.
pub(crate) const VLMETALAYERS_AT: usize = 2;
/// The number of bytes of the trailer after its metalayers: length and fingerprint, with their
/// markers.
pub(crate) const TRAILER_END_LEN: usize = 23;
/// The position of the length of the trailer, from the end of the frame.
pub(crate) const TRAILER_LEN_FROM_END: usize = 22;

/// The code that marks a user-defined codec. Another field of the header contains the code of this
/// codec.
const USER_CODEC: u8 = 6;

/// The storage layout of the chunks of a frame.
///
/// ```
/// use blosc2_format::chunk::Params;
/// use blosc2_format::frame::{Layout, Outline};
///
/// let outline = Outline::new(Params::default(), Layout::Directory);
/// assert_eq!(outline.layout(), Layout::Directory);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Layout {
    /// All chunks are in one contiguous file.
    Contiguous,
    /// Each chunk is in its own file, in a directory (sparse frame).
    Directory,
}

/// The decompressed size of the chunks of a frame.
///
/// ```
/// use blosc2_format::frame::ChunkSize;
///
/// assert_eq!(ChunkSize::new(4000).fixed(), Some(4000));
/// assert_eq!(ChunkSize::new(0), ChunkSize::Variable);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ChunkSize {
    /// The frame has no chunks yet.
    #[default]
    Unknown,
    /// All chunks have this size, in bytes; the last one can be shorter.
    Fixed(u32),
    /// The chunks have different sizes.
    Variable,
}

impl ChunkSize {
    /// Returns `Fixed(size)`, or `Variable` if `size` is 0, as in the header.
    pub fn new(size: u32) -> Self {
        if size == 0 { Self::Variable } else { Self::Fixed(size) }
    }

    /// Returns the size in bytes if it is fixed.
    pub fn fixed(self) -> Option<u32> {
        match self {
            Self::Fixed(size) => Some(size),
            Self::Unknown | Self::Variable => None,
        }
    }

    /// Converts the field of the header.
    fn of(field: i32) -> Self {
        u32::try_from(field).map_or(Self::Unknown, Self::new)
    }

    fn field(self) -> u32 {
        match self {
            Self::Unknown => u32::MAX,
            Self::Fixed(size) => size,
            Self::Variable => 0,
        }
    }
}

/// The header of a frame, without its metalayers.
///
/// ```
/// use blosc2_format::{chunk, frame};
///
/// let out = std::io::Cursor::new(Vec::new());
/// let params = chunk::Params { typesize: 4, ..chunk::Params::default() };
/// let bytes = frame::Writer::new(out, params, &[])?.finish()?.into_inner();
/// let header = frame::Header::parse(&bytes)?;
/// assert_eq!((header.typesize, header.frame_len), (4, bytes.len() as u64));
/// # Ok::<(), blosc2_format::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Header {
    /// The size of the header, in bytes, including the metalayers.
    pub header_len: u32,
    /// The size of the frame, in bytes. In a directory, the size of the index file.
    pub frame_len: u64,
    /// The version of the frame format: 2 or 3.
    pub version: u8,
    /// Whether the flag for variable-length chunks is set. Readers ignore this flag and use
    /// `chunksize`.
    pub variable_chunks: bool,
    /// Whether the flag for variable-length blocks is set. Readers ignore this flag and use the
    /// headers of the chunks.
    pub variable_blocks: bool,
    /// The storage layout of the chunks.
    pub layout: Layout,
    /// The code of the codec: 0 BloscLZ, 1 LZ4, 2 LZ4HC, 4 zlib, 5 Zstandard, 32 and above plugins.
    pub codec: u8,
    /// The parameter of the codec.
    pub codec_meta: u8,
    /// The compression level, from 0 to 9. [`parse`](Self::parse) does not check it.
    pub level: u8,
    /// The split mode, with the values of the C library: 1 always, 2 never, 3 automatic, 4 forward
    /// compatible (see [`SplitMode`]).
    pub split_mode: u8,
    /// The total decompressed size of all chunks, in bytes.
    pub nbytes: u64,
    /// The number of bytes between the header and the index: the compressed chunks, and gaps. In a
    /// directory, the total size of the stored chunks. The value can be above 0 in a frame without
    /// data, because C-Blosc2 does not change the value when chunks are deleted.
    pub cbytes: u64,
    /// The size of an item, in bytes.
    pub typesize: u32,
    /// The size of a block, in bytes; 0 is automatic.
    pub blocksize: u32,
    /// The decompressed size of a chunk.
    pub chunksize: ChunkSize,
    /// Whether the trailer contains variable-length metalayers.
    pub has_vlmeta: bool,
    /// The codes of the filters, in the order in which they are applied (see
    /// [`Params::filters`](crate::chunk::Params::filters)); 0 is an empty slot.
    pub filters: [u8; MAX_FILTERS],
    /// The parameters of the filters.
    pub filters_meta: [u8; MAX_FILTERS],
    /// Whether the chunks are compressed with dictionaries.
    pub dictionary: bool,
}

impl Header {
    /// Creates the header of a frame without chunks, for these parameters.
    pub(crate) fn new(params: &Params, layout: Layout) -> Self {
        Self {
            header_len: MIN_HEADER_LEN as u32,
            frame_len: 0,
            version: MIN_VERSION,
            variable_chunks: false,
            variable_blocks: false,
            layout,
            codec: params.codec,
            codec_meta: params.codec_meta,
            level: params.level,
            split_mode: params.split as u8,
            nbytes: 0,
            cbytes: 0,
            typesize: params.typesize,
            blocksize: params.blocksize.unwrap_or(0),
            chunksize: ChunkSize::Unknown,
            has_vlmeta: false,
            filters: params.filters,
            filters_meta: params.filters_meta,
            dictionary: false,
        }
    }

    /// Parses the header at the start of `frame`. The first 87 bytes are sufficient.
    ///
    /// # Errors
    /// - `frame` has fewer than 87 bytes, or does not start with the magic string of a frame;
    /// - the version is not 2 or 3, or the layout is unknown;
    /// - the header has the mark of an unfinished change (see
    ///   [`is_unfinished`](super::journal::is_unfinished));
    /// - the lengths contradict each other;
    /// - a size is negative, or the typesize is 0;
    /// - there are more than six filters;
    /// - there is data, but no chunk size.
    pub fn parse(frame: &[u8]) -> Result<Self, FormatError> {
        let mut report = Report::new();
        let header = Self::read(frame, &mut Checker::new(&mut report));
        match (report.first_error(), header) {
            (None, Some(header)) => Ok(header),
            (Some(finding), _) => Err(finding.into()),
            (None, None) => Err(too_short(frame, 0, MIN_HEADER_LEN, rules::SHORT.what)),
        }
    }

    /// Returns the compression parameters that the header states.
    pub fn params(&self) -> Params {
        Params {
            codec: self.codec,
            codec_meta: self.codec_meta,
            level: self.level,
            typesize: self.typesize,
            blocksize: Some(self.blocksize).filter(|&size| size > 0),
            filters: self.filters,
            filters_meta: self.filters_meta,
            split: match self.split_mode {
                1 => SplitMode::Always,
                2 => SplitMode::Never,
                3 => SplitMode::Auto,
                _ => SplitMode::ForwardCompat,
            },
        }
    }

    /// Reads the header as far as possible, and reports errors to `checker`.
    pub(crate) fn read(frame: &[u8], checker: &mut Checker<'_>) -> Option<Self> {
        if frame.get(field::NAME.at..field::NAME.at + field::NAME.len)
            != Some(&field::NAME_BYTES[..])
        {
            let start = &frame[..frame.len().min(10)];
            let found = format_args!("{:?}", String::from_utf8_lossy(start)).to_string();
            checker.found(&rules::MAGIC, 1, 9, "the frame's name, \"b2frame\"", found);
            return None;
        }
        let Some(&frame) = frame.first_chunk::<MIN_HEADER_LEN>() else {
            let expected = format_args!("{MIN_HEADER_LEN} bytes");
            checker.found(&rules::SHORT, 0, frame.len() as u64, expected, frame.len());
            return None;
        };
        let flags = field::FLAGS.byte(&frame);
        let version = flags & 0x0f;
        if !(MIN_VERSION..=MAX_VERSION).contains(&version) {
            let expected = "2 or 3 (the betas wrote version 1, with another header)";
            field::FLAGS.found(checker, &rules::VERSION, expected, version);
            return None;
        }
        let mark = frame[journal::MARK_AT as usize];
        if [journal::UNFINISHED, journal::UNFINISHED_WITHOUT_JOURNAL].contains(&mark) {
            let found =
                format_args!("{mark:#04x}: a writer was interrupted while it changed this frame");
            checker.found(&rules::UNFINISHED, journal::MARK_AT, 1, "a complete frame", found);
            return None;
        }
        let min_len = MIN_HEADER_LEN as u32;
        let header_len = size32(&frame, field::HEADER_LEN, &rules::HEADER_LEN, min_len, checker);
        let frame_len = size64(&frame, field::FRAME_LEN, &rules::FRAME_LEN, checker);
        if let (Some(header_len), Some(frame_len)) = (header_len, frame_len) {
            let shortest = u64::from(header_len) + MIN_TRAILER_LEN as u64;
            if frame_len < shortest {
                let expected = format_args!("at least {shortest}, for header and trailer");
                field::FRAME_LEN.found(checker, &rules::FRAME_LEN, expected, frame_len);
                return None;
            }
        }
        let layout = match field::LAYOUT.byte(&frame) {
            0 => Some(Layout::Contiguous),
            1 => Some(Layout::Directory),
            other => {
                field::LAYOUT.found(checker, &rules::LAYOUT, "0 or 1", other);
                None
            }
        };
        let codec = match field::CODEC.byte(&frame) & 0x0f {
            USER_CODEC => field::USER_CODEC.byte(&frame),
            code => code,
        };
        let nbytes = size64(&frame, field::NBYTES, &rules::NBYTES, checker);
        let cbytes = size64(&frame, field::CBYTES, &rules::CBYTES, checker);
        let typesize = size32(&frame, field::TYPESIZE, &rules::TYPESIZE, 1, checker);
        let blocksize = size32(&frame, field::BLOCKSIZE, &rules::BLOCKSIZE, 0, checker);
        let chunksize = i32::from_be_bytes(field::CHUNKSIZE.bytes(&frame));
        let nfilters = usize::from(field::FILTER_SLOTS.byte(&frame));
        if nfilters > MAX_FILTERS {
            field::FILTER_SLOTS.found(checker, &rules::NFILTERS, "at most 6", nfilters);
            return None;
        }
        let header = Self {
            header_len: header_len?,
            frame_len: frame_len?,
            version,
            variable_chunks: flags & 0x40 != 0,
            variable_blocks: flags & 0x80 != 0,
            layout: layout?,
            codec,
            codec_meta: field::CODEC_META.byte(&frame),
            level: field::CODEC.byte(&frame) >> 4,
            split_mode: (field::SPLIT.byte(&frame) & 0b11) + 1,
            nbytes: nbytes?,
            cbytes: cbytes?,
            typesize: typesize?,
            blocksize: blocksize?,
            chunksize: ChunkSize::of(chunksize),
            has_vlmeta: field::HAS_VLMETA.byte(&frame) == field::YES,
            filters: field::FILTERS.bytes(&frame),
            filters_meta: field::FILTERS_META.bytes(&frame),
            dictionary: field::MORE_FLAGS.byte(&frame) & 1 != 0,
        };
        if header.nbytes > 0 && header.chunksize == ChunkSize::Unknown {
            field::CHUNKSIZE.found(checker, &rules::CHUNKSIZE, "at least 0 with data", chunksize);
            return None;
        }
        Some(header)
    }

    /// Returns the header without the metalayers, as C-Blosc2 3.3.2 writes it.
    pub(crate) fn to_bytes(&self) -> [u8; MIN_HEADER_LEN] {
        let mut out = [0; MIN_HEADER_LEN];
        for (at, marker) in field::MARKERS {
            out[at] = marker;
        }
        field::NAME.put(&mut out, field::NAME_BYTES);
        field::HEADER_LEN.put(&mut out, &self.header_len.to_be_bytes());
        field::FRAME_LEN.put(&mut out, &self.frame_len.to_be_bytes());
        // Offsets have 64 bits.
        let mut flags = 0x10 | self.version;
        flags |= u8::from(self.variable_chunks) << 6 | u8::from(self.variable_blocks) << 7;
        field::FLAGS.put(&mut out, &[flags]);
        field::LAYOUT.put(&mut out, &[u8::from(self.layout == Layout::Directory)]);
        field::CODEC.put(&mut out, &[self.codec.min(USER_CODEC) | self.level << 4]);
        field::SPLIT.put(&mut out, &[self.split_mode - 1]);
        field::NBYTES.put(&mut out, &self.nbytes.to_be_bytes());
        field::CBYTES.put(&mut out, &self.cbytes.to_be_bytes());
        field::TYPESIZE.put(&mut out, &self.typesize.to_be_bytes());
        field::BLOCKSIZE.put(&mut out, &self.blocksize.to_be_bytes());
        field::CHUNKSIZE.put(&mut out, &self.chunksize.field().to_be_bytes());
        for threads in field::THREADS {
            threads.put(&mut out, &1u16.to_be_bytes());
        }
        let has_vlmeta = if self.has_vlmeta { field::YES } else { field::NO };
        field::HAS_VLMETA.put(&mut out, &[has_vlmeta]);
        field::FILTERS.put(&mut out, &self.filters);
        field::USER_CODEC.put(&mut out, &[self.codec]);
        field::CODEC_META.put(&mut out, &[self.codec_meta]);
        field::FILTERS_META.put(&mut out, &self.filters_meta);
        field::MORE_FLAGS.put(&mut out, &[u8::from(self.dictionary)]);
        out
    }

    /// Checks that a file with `file_len` bytes from the start of the frame contains the complete
    /// frame.
    ///
    /// # Errors
    /// Fails if the file is truncated: it has fewer bytes than the header states.
    pub fn check_file_len(&self, file_len: u64) -> Result<(), FormatError> {
        if self.frame_len > file_len {
            let found = format_args!("a truncated file of {file_len} bytes").to_string();
            return Err(FormatError::new(
                "frame length",
                field::FRAME_LEN.at,
                self.frame_len,
                found,
            ));
        }
        Ok(())
    }
}

/// Sets the size of the header, including the metalayers, in the header.
pub(crate) fn set_len(header: &mut [u8]) {
    let len = header.len() as u32;
    field::HEADER_LEN.put(header, &len.to_be_bytes());
}

/// Checks the length of the trailer at the end of a frame. `tail` must contain at least the last 35
/// bytes of the frame, and no bytes after the frame.
///
/// # Errors
/// Fails if the marker of the trailer length is missing, or if the length is less than 35 bytes.
/// Also fails if the trailer is longer than the part of the frame after the header.
pub fn check_trailer(header: &Header, tail: &[u8]) -> Result<(), FormatError> {
    let mut report = Report::new();
    trailer_len(header, tail, &mut Checker::new(&mut report));
    report.first_error().map_or(Ok(()), |finding| Err(finding.into()))
}

/// Returns the length of the trailer that `tail` ends with.
pub(crate) fn trailer_len(header: &Header, tail: &[u8], checker: &mut Checker<'_>) -> Option<u32> {
    let from_end = |bytes: usize| header.frame_len.saturating_sub(bytes as u64);
    let marker = tail.len().checked_sub(TRAILER_LEN_FROM_END + 1);
    let Some(marker) = marker.filter(|&at| tail[at] == 0xce) else {
        let found = marker.map_or("nothing".to_owned(), |at| format!("{:#04x}", tail[at]));
        let offset = from_end(TRAILER_LEN_FROM_END + 1);
        checker.found(&rules::TRAILER_MARKER, offset, 1, "0xce", found);
        return None;
    };
    let len = u32::from_be_bytes(*tail.get(marker + 1..)?.first_chunk()?);
    let room = header.frame_len.saturating_sub(u64::from(header.header_len));
    if (len as usize) < MIN_TRAILER_LEN || u64::from(len) > room {
        let expected = format_args!("{MIN_TRAILER_LEN} to {room}").to_string();
        checker.found(&rules::TRAILER_LEN, from_end(TRAILER_LEN_FROM_END), 4, expected, len);
        return None;
    }
    Some(len)
}

fn size32(
    head: &[u8; MIN_HEADER_LEN],
    field: Field,
    rule: &'static Rule,
    min: u32,
    checker: &mut Checker<'_>,
) -> Option<u32> {
    let value = i32::from_be_bytes(field.bytes(head));
    let size = u32::try_from(value).ok().filter(|&size| size >= min);
    if size.is_none() {
        field.found(checker, rule, format_args!("at least {min}"), value);
    }
    size
}

fn size64(
    head: &[u8; MIN_HEADER_LEN],
    field: Field,
    rule: &'static Rule,
    checker: &mut Checker<'_>,
) -> Option<u64> {
    let value = i64::from_be_bytes(field.bytes(head));
    let size = u64::try_from(value).ok();
    if size.is_none() {
        field.found(checker, rule, "a size that is not negative", value);
    }
    size
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The 87 bytes of the header and the trailer that Python writes for `arange(6, dtype="i4")` in
    /// two rows.
    const HEADER: [u8; MIN_HEADER_LEN] = [
        0x9e, 0xa8, 0x62, 0x32, 0x66, 0x72, 0x61, 0x6d, 0x65, 0x00, 0xd2, 0x00, 0x00, 0x00, 0xa5,
        0xcf, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x28, 0xa4, 0x12, 0x00, 0x55, 0x02, 0xd3,
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x18, 0xd3, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x38, 0xd2, 0x00, 0x00, 0x00, 0x04, 0xd2, 0x00, 0x00, 0x00, 0x18, 0xd2, 0x00, 0x00,
        0x00, 0x18, 0xd1, 0x00, 0x00, 0xd1, 0x00, 0x01, 0xc2, 0xd8, 0x06, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x01, 0x05, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    ];
    const TRAILER: [u8; MIN_TRAILER_LEN] = [
        0x94, 0x01, 0x93, 0xcd, 0x00, 0x06, 0xde, 0x00, 0x00, 0xdc, 0x00, 0x00, 0xce, 0x00, 0x00,
        0x00, 0x23, 0xd8, 0x00, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ];

    #[test]
    fn fields_are_where_python_writes_them() {
        let header = Header::parse(&HEADER).unwrap();
        assert_eq!((header.header_len, header.frame_len), (0xa5, 0x128));
        assert_eq!((header.version, header.layout), (2, Layout::Contiguous));
        assert_eq!((header.codec, header.level, header.split_mode), (5, 5, 3));
        assert_eq!((header.nbytes, header.cbytes), (24, 56));
        assert_eq!(
            (header.typesize, header.blocksize, header.chunksize),
            (4, 24, ChunkSize::Fixed(24))
        );
        assert_eq!(header.filters, [0, 0, 0, 0, 0, 1]);
        assert!(!header.has_vlmeta && !header.dictionary && !header.variable_chunks);
        header.check_file_len(0x128).unwrap();
        assert!(header.check_file_len(0x127).is_err());
        check_trailer(&header, &TRAILER).unwrap();
    }

    #[test]
    fn each_rule_names_its_byte() {
        let broken = |at: usize, value: u8| {
            let mut head = HEADER;
            head[at] = value;
            Header::parse(&head).unwrap_err().offset
        };
        assert_eq!(broken(2, b'B'), 1);
        assert_eq!(broken(0x0b, 0x80), 0x0b);
        assert_eq!(broken(0x0e, 86), 0x0b);
        assert_eq!(broken(0x16, 0), 0x10);
        assert_eq!(broken(0x10, 0x80), 0x10);
        assert_eq!(broken(0x19, 4), 0x19);
        assert_eq!(broken(0x1a, 2), 0x1a);
        assert_eq!(broken(0x1e, 0x80), 0x1e);
        assert_eq!(broken(0x27, 0xff), 0x27);
        assert_eq!(broken(0x33, 0), 0x30);
        assert_eq!(broken(0x3a, 0x80), 0x3a);
        assert_eq!(broken(0x46, 7), 0x46);
        assert_eq!(Header::parse(&HEADER[..86]).unwrap_err().found, "86");
        assert_eq!(Header::parse(b"").unwrap_err().offset, 1);
    }

    #[test]
    fn a_trailer_that_does_not_fit_is_told() {
        let header = Header::parse(&HEADER).unwrap();
        let mut tail = TRAILER;
        tail[12] = 0xcd;
        assert_eq!(check_trailer(&header, &tail).unwrap_err().offset, 0x128 - 23);
        tail = TRAILER;
        tail[14] = 1;
        assert_eq!(check_trailer(&header, &tail).unwrap_err().offset, 0x128 - 22);
        assert!(check_trailer(&header, &[]).is_err());
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_it_panic(
            mut head in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..100),
            tail in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..40),
        ) {
            for (to, from) in head.iter_mut().zip(&HEADER[..11]) {
                *to = *from;
            }
            if let Ok(header) = Header::parse(&head) {
                let _ = check_trailer(&header, &tail);
            }
        }
    }
}
