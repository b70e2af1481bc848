//! The fixed part of the header of a legacy frame.

use super::Layout;
use super::rules::Rules;
use crate::FormatError;
use crate::error::too_short;
use crate::legacy::field;
use crate::report::Checker;

/// The size of the fixed header of [`Layout::Early`], in bytes.
pub const EARLY_HEADER_LEN: usize = 64;
/// The size of the fixed header of [`Layout::Version1`], in bytes.
pub const VERSION1_HEADER_LEN: usize = 82;

pub(crate) const MAGIC: &[u8] = b"b2frame\0";
/// The msgpack markers before the fields, in both layouts.
const MARKERS: [(usize, u8); 10] = [
    (0x01, 0xa8),
    (0x0a, 0xd2),
    (0x0f, 0xcf),
    (0x18, 0xa4),
    (0x1d, 0xd3),
    (0x26, 0xd3),
    (0x2f, 0xd2),
    (0x34, 0xd2),
    (0x39, 0xd1),
    (0x3c, 0xd1),
];
const FILTERS_MARKER: (usize, u8) = (0x40, 0xd8);
const FALSE: u8 = 0xc2;
const TRUE: u8 = 0xc3;
/// The maximum number of filters of a chunk of these versions.
const MAX_FILTERS: u8 = 6;
const LAST_FILTER: u8 = 4;
const TRUNC_PREC: u8 = 4;
const LAST_CODEC: u8 = 6;

/// The fields of the fixed header as stored, without any check.
///
/// ```
/// use blosc2_format::early::{EARLY_HEADER_LEN, Header, Layout, Params, Writer};
///
/// let bytes = Writer::new(Params { layout: Layout::Early, ..Params::default() })?.finish()?;
/// let header = Header::parse(Layout::Early, &bytes)?;
/// assert_eq!(header.to_bytes(), bytes[..EARLY_HEADER_LEN]);
/// # Ok::<(), blosc2_format::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The layout that the bytes were parsed with.
    pub layout: Layout,
    /// Byte 0: the msgpack marker of an array of 11 to 13 elements.
    pub elements: u8,
    /// The size of the header, in bytes, including the metalayers.
    pub header_len: i32,
    /// The size of the frame, in bytes.
    pub frame_len: u64,
    /// The version and the size of the offsets: 0x24 in [`Layout::Early`], 0x21 in
    /// [`Layout::Version1`].
    pub general_flags: u8,
    /// In [`Layout::Early`], the filters, in a form that depends on the version of the writer.
    /// Always 0 in [`Layout::Version1`]. Use the headers of the chunks to determine the filters
    /// reliably.
    pub filter_flags: u8,
    /// The code of the codec in the low four bits, the level in the high four bits.
    pub codec_flags: u8,
    /// Always 0.
    pub reserved: u8,
    /// The total decompressed size of all chunks, in bytes.
    pub nbytes: i64,
    /// The total stored size of all chunks, in bytes.
    pub cbytes: i64,
    /// The size of an item, in bytes.
    pub typesize: i32,
    /// The decompressed size of a chunk, in bytes. 0 if there are no chunks or the sizes differ. If
    /// only the last chunk is shorter, the value depends on the [`WriteMode`](super::WriteMode).
    pub chunksize: i32,
    /// The numbers of threads of the writer for compression and decompression.
    pub threads: [i16; 2],
    /// Byte 0x3f, the msgpack value false or true. In a frame without a trailer, it states whether
    /// there are metalayers. In a frame with a trailer, it states whether there is [user
    /// metadata](super::Frame::usermeta).
    pub flag: u8,
    /// The number of filters; 0 in [`Layout::Early`].
    pub nfilters: u8,
    /// The codes of the filters in order; zeros in [`Layout::Early`].
    pub filters: [u8; 8],
    /// The parameters of the filters; zeros in [`Layout::Early`].
    pub filters_meta: [u8; 8],
}

impl Header {
    /// Returns the header of a frame without chunks and metalayers, with typesize 1, BloscLZ and
    /// level 5.
    pub(crate) fn new(layout: Layout) -> Self {
        let (elements, general_flags) = match layout {
            Layout::Early => (0x9b, 0x24),
            Layout::Version1 => (0x9d, 0x21),
        };
        let header_len = layout.fixed_len();
        Self {
            layout,
            elements,
            header_len: header_len as i32,
            frame_len: header_len as u64,
            general_flags,
            filter_flags: 0,
            codec_flags: 0x50,
            reserved: 0,
            nbytes: 0,
            cbytes: 0,
            typesize: 1,
            chunksize: 0,
            threads: [1, 1],
            flag: FALSE,
            nfilters: 0,
            filters: [0; 8],
            filters_meta: [0; 8],
        }
    }

    /// Parses the fields of the layout at the start of `frame`.
    ///
    /// # Errors
    /// Fails if there are fewer than 64 bytes, or fewer than 82 bytes for [`Layout::Version1`].
    pub fn parse(layout: Layout, frame: &[u8]) -> Result<Self, FormatError> {
        let fixed = layout.fixed_len();
        let Some(head) = frame.get(..fixed) else {
            return Err(too_short(frame, 0, fixed, "frame header"));
        };
        let mut header = Self {
            elements: head[0],
            header_len: i32::from_be_bytes(field(head, 0x0b)),
            frame_len: u64::from_be_bytes(field(head, 0x10)),
            general_flags: head[0x19],
            filter_flags: head[0x1a],
            codec_flags: head[0x1b],
            reserved: head[0x1c],
            nbytes: i64::from_be_bytes(field(head, 0x1e)),
            cbytes: i64::from_be_bytes(field(head, 0x27)),
            typesize: i32::from_be_bytes(field(head, 0x30)),
            chunksize: i32::from_be_bytes(field(head, 0x35)),
            threads: [0x3a, 0x3d].map(|at| i16::from_be_bytes(field(head, at))),
            flag: head[0x3f],
            ..Self::new(layout)
        };
        if layout == Layout::Version1 {
            header.nfilters = head[0x41];
            header.filters = field(head, 0x42);
            header.filters_meta = field(head, 0x4a);
        }
        Ok(header)
    }

    /// Returns the bytes of the fixed header.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut head = vec![0; self.layout.fixed_len()];
        let mut put = |at: usize, bytes: &[u8]| head[at..at + bytes.len()].copy_from_slice(bytes);
        for (at, marker) in MARKERS {
            put(at, &[marker]);
        }
        put(0, &[self.elements]);
        put(0x02, MAGIC);
        put(0x0b, &self.header_len.to_be_bytes());
        put(0x10, &self.frame_len.to_be_bytes());
        put(0x19, &[self.general_flags, self.filter_flags, self.codec_flags, self.reserved]);
        put(0x1e, &self.nbytes.to_be_bytes());
        put(0x27, &self.cbytes.to_be_bytes());
        put(0x30, &self.typesize.to_be_bytes());
        put(0x35, &self.chunksize.to_be_bytes());
        put(0x3a, &self.threads[0].to_be_bytes());
        put(0x3d, &self.threads[1].to_be_bytes());
        put(0x3f, &[self.flag]);
        if self.layout == Layout::Version1 {
            put(FILTERS_MARKER.0, &[FILTERS_MARKER.1, self.nfilters]);
            put(0x42, &self.filters);
            put(0x4a, &self.filters_meta);
        }
        head
    }

    /// Returns the code of the codec.
    pub fn codec(&self) -> u8 {
        self.codec_flags & 0x0f
    }

    /// Returns the compression level.
    pub fn level(&self) -> u8 {
        self.codec_flags >> 4
    }

    /// Returns whether a section of metalayers follows, according to the number of elements. The
    /// section can be empty.
    pub fn has_metalayers(&self) -> bool {
        self.elements != 0x9b
    }

    pub(crate) fn set_flag(&mut self, flag: bool) {
        self.flag = if flag { TRUE } else { FALSE };
    }

    /// Returns whether byte 0x3f is the msgpack value true.
    pub fn is_flagged(&self) -> bool {
        self.flag == TRUE
    }

    /// Checks the rules that involve only the fixed header. `head` contains the bytes of the fixed
    /// header.
    pub(crate) fn check(&self, head: &[u8], size: u64, checker: &mut Checker<'_>) {
        let rules = Rules::of(self.layout);
        if head.get(2..10) != Some(MAGIC) {
            let found = head.get(2..10).unwrap_or_default().escape_ascii();
            checker.found(&rules.magic, 2, 8, "`b2frame\\x00`", found);
        }
        let elements: &[u8] = match self.layout {
            Layout::Early => &[0x9b, 0x9c],
            Layout::Version1 => &[0x9d],
        };
        if !elements.contains(&self.elements) {
            checker.found(&rules.elements, 0, 1, hex(elements), hex(&[self.elements]));
        }
        let filters_marker = (self.layout == Layout::Version1).then_some(FILTERS_MARKER);
        for (at, marker) in MARKERS.into_iter().chain(filters_marker) {
            let found = head.get(at).copied().unwrap_or_default();
            if found != marker {
                checker.found(&rules.marker, at as u64, 1, hex(&[marker]), hex(&[found]));
            }
        }
        let fixed = self.layout.fixed_len() as u64;
        if u64::try_from(self.header_len).is_ok_and(|len| len > size) {
            let expected = format_args!("at most the {size} available bytes");
            checker.found(&rules.header_len, 0x0b, 4, expected, self.header_len);
        } else if self.elements == 0x9b && self.header_len != fixed as i32 {
            checker.found(&rules.header_len, 0x0b, 4, fixed, self.header_len);
        } else if i64::from(self.header_len) < fixed as i64 {
            checker.found(
                &rules.header_len,
                0x0b,
                4,
                format_args!("at least {fixed}"),
                self.header_len,
            );
        }
        if self.frame_len > size {
            let expected = format_args!("at most the {size} available bytes");
            checker.found(&rules.frame_len, 0x10, 8, expected, self.frame_len);
        }
        self.check_flags(rules, checker);
        self.check_sizes(rules, checker);
        if self.layout == Layout::Version1 {
            self.check_filters(rules, checker);
        }
    }

    fn check_flags(&self, rules: &'static Rules, checker: &mut Checker<'_>) {
        let flags = Self::new(self.layout).general_flags;
        if self.general_flags != flags {
            checker.found(&rules.general_flags, 0x19, 1, hex(&[flags]), hex(&[self.general_flags]));
        }
        // Early frames have four variants of these bits; none of them sets the outermost bits.
        let (mask, expected) = match self.layout {
            Layout::Early => (0x81, "bits 0 and 7 clear"),
            Layout::Version1 => (0xff, "0"),
        };
        if self.filter_flags & mask != 0 {
            checker.found(&rules.filter_flags, 0x1a, 1, expected, hex(&[self.filter_flags]));
        }
        if self.codec() > LAST_CODEC {
            checker.found(&rules.codec, 0x1b, 1, "0 to 6", self.codec());
        }
        if self.level() > 9 {
            checker.found(&rules.level, 0x1b, 1, "0 to 9", self.level());
        }
        if self.reserved != 0 {
            checker.found(&rules.reserved, 0x1c, 1, 0, self.reserved);
        }
        if ![FALSE, TRUE].contains(&self.flag) {
            checker.found(&rules.flag, 0x3f, 1, hex(&[FALSE, TRUE]), hex(&[self.flag]));
        }
    }

    fn check_sizes(&self, rules: &'static Rules, checker: &mut Checker<'_>) {
        if self.nbytes < 0 {
            checker.found(&rules.nbytes, 0x1e, 8, "at least 0", self.nbytes);
        }
        if self.cbytes < 0 {
            checker.found(&rules.cbytes, 0x27, 8, "at least 0", self.cbytes);
        }
        if self.typesize < 1 {
            checker.found(&rules.typesize, 0x30, 4, "at least 1", self.typesize);
        }
        if self.chunksize < 0 {
            checker.found(&rules.chunksize, 0x35, 4, "at least 0", self.chunksize);
        }
        for (at, threads) in [0x3a, 0x3d].into_iter().zip(self.threads) {
            if threads < 0 {
                checker.found(&rules.threads, at, 2, "at least 0", threads);
            }
        }
    }

    fn check_filters(&self, rules: &'static Rules, checker: &mut Checker<'_>) {
        if self.nfilters > MAX_FILTERS {
            checker.found(&rules.filters, 0x41, 1, "at most 6", self.nfilters);
            return;
        }
        for (slot, (&code, &meta)) in self.filters.iter().zip(&self.filters_meta).enumerate() {
            let (code_at, meta_at) = (0x42 + slot as u64, 0x4a + slot as u64);
            let used = slot < usize::from(self.nfilters);
            if used && code > LAST_FILTER {
                checker.found(&rules.filters, code_at, 1, "0 to 4", code);
            } else if !used && code != 0 {
                let expected = format_args!("0 after {} filters", self.nfilters);
                checker.found(&rules.other_filters, code_at, 1, expected, code);
            }
            if meta != 0 && code != TRUNC_PREC {
                checker.found(&rules.other_filters, meta_at, 1, "0 for this filter", meta);
            }
        }
    }
}

impl Layout {
    pub(crate) fn fixed_len(self) -> usize {
        match self {
            Self::Early => EARLY_HEADER_LEN,
            Self::Version1 => VERSION1_HEADER_LEN,
        }
    }
}

/// Formats bytes for a message: `0x9b or 0x9c`.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let bytes: Vec<_> = bytes.iter().map(|byte| format!("{byte:#04x}")).collect();
    bytes.join(" or ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Report;

    #[test]
    fn fields_survive_writing_and_reading() {
        let mut header = Header {
            header_len: 100,
            frame_len: 1 << 40,
            nbytes: 1 << 41,
            cbytes: 1 << 39,
            typesize: 300,
            chunksize: 1 << 20,
            threads: [2, 3],
            codec_flags: 0x94,
            ..Header::new(Layout::Early)
        };
        assert_eq!(Header::parse(Layout::Early, &header.to_bytes()).unwrap(), header);
        assert_eq!((header.codec(), header.level()), (4, 9));
        header.layout = Layout::Version1;
        header.nfilters = 2;
        header.filters[..2].copy_from_slice(&[3, 4]);
        header.filters_meta[1] = 9;
        assert_eq!(Header::parse(Layout::Version1, &header.to_bytes()).unwrap(), header);
        let error = Header::parse(Layout::Version1, &header.to_bytes()[..81]).unwrap_err();
        assert_eq!(error.found, "81");
    }

    #[test]
    fn the_header_of_an_empty_frame_is_right() {
        for layout in [Layout::Early, Layout::Version1] {
            let header = Header::new(layout);
            let mut report = Report::new();
            header.check(&header.to_bytes(), 64 + 82, &mut Checker::new(&mut report));
            assert_eq!(report.findings, []);
        }
    }
}
