//! Limits for untrusted input.

/// The maximum number of dimensions of an array.
pub const MAX_NDIM: usize = 16;

/// Limits on the memory and the work of reading and checking untrusted input. They apply whatever
/// sizes a file declares.
///
/// The defaults suit common files on common machines. A reader fails with
/// [`Error::Limit`](crate::Error::Limit) when the input exceeds a limit. A check reports it as a
/// finding; its report is then not [complete](crate::Report::is_complete). The fields
/// [`metalayers`](Self::metalayers) and [`nesting`](Self::nesting) are exceptions.
///
/// ```
/// use blosc2_format::Limits;
///
/// let limits = Limits { memory: 16 << 20, ..Limits::default() };
/// assert_eq!(limits.dimensions, 16);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The maximum number of bytes of memory for one part of a file: a chunk or a variable-length
    /// metalayer, stored or decoded; a block; the stored header, index or trailer; or the items that
    /// [`read_box`](crate::file::File::read_box) returns. Default: 2 GiB, which is sufficient for
    /// every chunk.
    pub memory: u64,
    /// The maximum number of bytes of memory for the decoded metadata of a frame: the index of its
    /// chunks and its metalayers.
    ///
    /// Default: `None`, which means 12 times the size of the file plus 40 MiB. Opening a frame and
    /// reading its metadata then allocates at most 16 times the size of the file plus 64 MiB in
    /// total. Valid frames can need more: a few bytes can encode millions of chunks of zeros, or a
    /// long metalayer of one repeated value. Reading such a frame fails with an
    /// [`Error::Limit`](crate::Error::Limit) that names this field; set a higher value to read it.
    pub metadata: Option<u64>,
    /// The maximum number of bytes that one check decodes in total. Default: 16 TiB.
    pub total_bytes: u64,
    /// The maximum number of items of an array. Default: 2^63 - 1, the limit of the C library.
    pub items: u64,
    /// The maximum number of dimensions of an array. Default: 16, the limit of the C library.
    pub dimensions: usize,
    /// The maximum number of chunks of a super-chunk. Default: 2^24.
    pub chunks: u64,
    /// The maximum number of metalayers of a frame, for each of the two kinds. Default: 8192.
    ///
    /// In frames of versions 2 and 3 the limits of the C library apply as well: 16 fixed-length
    /// metalayers and 8192 variable-length metalayers. Such a frame with more metalayers is treated
    /// as invalid: a reader fails with [`Error::Format`](crate::Error::Format). For a legacy frame
    /// with more metalayers it fails with [`Error::Limit`](crate::Error::Limit).
    pub metalayers: usize,
    /// The maximum nesting depth of brackets in the dtype of an array. Default: 64. A check reports
    /// a dtype with more levels as unknown (`b2nd.dtype_unknown`). Opening the file does not fail.
    pub nesting: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory: 2 << 30,
            metadata: None,
            total_bytes: 16 << 40,
            items: i64::MAX as u64,
            dimensions: MAX_NDIM,
            chunks: 1 << 24,
            metalayers: 8192,
            nesting: 64,
        }
    }
}

impl Limits {
    /// Returns the value of [`metadata`](Self::metadata) for a file of `size` bytes.
    pub(crate) fn metadata_of(&self, size: u64) -> u64 {
        self.metadata.unwrap_or_else(|| size.saturating_mul(12).saturating_add(40 << 20))
    }
}
