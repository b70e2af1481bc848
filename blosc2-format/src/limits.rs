//! How much may be spent on bytes that nobody has vouched for.

/// The most dimensions that an array can have.
pub const MAX_NDIM: usize = 16;

/// Bounds on what reading and checking may take, whatever the bytes claim.
///
/// The defaults fit what people write on an ordinary machine. What goes over them is refused by a reader
/// and told by a check, whose report is not [complete](crate::Report::is_complete) then.
///
/// ```
/// use blosc2_format::Limits;
///
/// let limits = Limits { memory: 16 << 20, ..Limits::default() };
/// assert_eq!(limits.dimensions, 16);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most bytes that are held at once for one piece: a chunk as it is stored, a block, an index or
    /// a metalayer decoded. Default: 2 GiB, the most that a chunk can have.
    pub memory: u64,
    /// Most bytes that are held at once for what a frame has besides its data: the index of its chunks
    /// and its metalayers, decoded. Default: `None`, which stands for 12 times the size of the file
    /// and 40 MiB. With what reading takes besides, opening a frame and reading its metadata then
    /// allocates at most 16 times the size of the file and 64 MiB, whatever the bytes claim. A few
    /// bytes may rightly stand for more: millions of chunks of zeros, or a long metalayer of one
    /// value. Such a frame is an [`Error::Limit`](crate::Error::Limit) that names this field, and is
    /// read with a higher value.
    pub metadata: Option<u64>,
    /// Most bytes that are decoded in all by one check. Default: 16 TiB.
    pub total_bytes: u64,
    /// Most items that an array may have. Default: 2^63 - 1,
    /// the C library's.
    pub items: u64,
    /// Most dimensions that an array may have. Default: 16, as in the C library.
    pub dimensions: usize,
    /// Most chunks that a super-chunk may have. Default: 2^24.
    pub chunks: u64,
    /// Most metalayers of each kind. Default: 8192, the C library's.
    pub metalayers: usize,
    /// Deepest nesting of msgpack values in a metalayer. Default: 64.
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
    /// What [`metadata`](Self::metadata) is for a file of `size` bytes.
    pub(crate) fn metadata_of(&self, size: u64) -> u64 {
        self.metadata.unwrap_or_else(|| size.saturating_mul(12).saturating_add(40 << 20))
    }
}
