//! Limits for untrusted input.

use std::fmt;

/// The maximum number of dimensions of an array.
pub const MAX_NDIM: usize = 16;

/// The maximum nesting depth of structures and sub-arrays in a dtype.
pub const MAX_NESTING: usize = 32;
/// The maximum nesting depth of brackets in the text of a dtype: at most three per structure, and two
/// in the innermost one.
pub(crate) const MAX_BRACKETS: usize = 3 * MAX_NESTING + 2;

/// The number of bytes of metadata that a read may decode for a file of any size.
pub(crate) const DECODED: u64 = 1 << 30;
/// The number of bytes of metadata that a read may decode for each stored byte.
pub(crate) const DECODED_RATIO: u64 = 256;

/// Limits on the memory and the work for reading and checking untrusted input. The limits do not
/// depend on the sizes that a file states.
///
/// The defaults suit common files on common machines. If the input exceeds a limit, a reader fails
/// with [`Error::Limit`](crate::Error::Limit). A check reports the exceeded limit as a finding, and
/// its report is not [complete](crate::Report::is_complete). The fields
/// [`metalayers`](Self::metalayers) and [`nesting`](Self::nesting) describe exceptions.
///
/// ```
/// use blosc2_format::Limits;
///
/// let limits = Limits { memory: 16 << 20, ..Limits::default() };
/// assert_eq!(limits.dimensions, 16);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The maximum number of bytes of memory for one part of a file. Default: 2 GiB, which is
    /// sufficient for every chunk.
    ///
    /// The limit applies separately to each of these parts:
    ///
    /// - a chunk or a variable-length metalayer, stored or decoded;
    /// - a block;
    /// - the header, the index or the trailer of a frame, as stored;
    /// - the items that [`read_box`](crate::file::File::read_box) returns.
    pub memory: u64,
    /// The maximum number of bytes of memory for the metadata of a frame: the index of its chunks and
    /// its metalayers.
    ///
    /// Default: `None`. With this default, there are two limits for a file of `n` bytes:
    ///
    /// - Opening a frame uses at most 12 `n` + 40 MiB, and allocates at most 16 `n` + 64 MiB in
    ///   total.
    /// - Decoding more metadata than opening does uses at most 256 `n` + 1 GiB: the content of a
    ///   variable-length metalayer, the complete index of a check, and the list of chunks that
    ///   [`salvage`](crate::frame::salvage) returns.
    ///
    /// These limits allow all metadata that the writers of this project accept. A writer refuses the
    /// content of a variable-length metalayer that would exceed the second limit. Metadata of other
    /// writers can exceed the limits. Reading it fails with an [`Error::Limit`](crate::Error::Limit)
    /// that names this field. To read it, set a higher value, which replaces both limits.
    pub metadata: Option<u64>,
    /// The maximum number of bytes that one check decodes in total. Default: 16 TiB. Chunks that are
    /// not compressed, such as chunks of one repeated value, do not count.
    pub total_bytes: u64,
    /// The maximum number of items of an array. Default: 2^63 - 1, the limit of the C library.
    pub items: u64,
    /// The maximum number of dimensions of an array. Default: 16, the limit of the C library.
    pub dimensions: usize,
    /// The maximum number of chunks of a super-chunk. Default: 2^24. The formats can store the index
    /// of 268,435,451 chunks.
    ///
    /// Some hundred bytes can encode that number of chunks of zeros. A program that processes all
    /// chunks can then take minutes.
    ///
    /// A writer refuses more chunks than this default; see
    /// [`Outline::set_max_chunks`](crate::frame::Outline::set_max_chunks).
    pub chunks: u64,
    /// The maximum number of fixed-length metalayers of a frame, and also the maximum number of
    /// variable-length metalayers. Default: 8192.
    ///
    /// In frames of versions 2 and 3, the limits of the C library apply as well: 16 fixed-length
    /// metalayers and 8192 variable-length metalayers. If a frame of these versions has more
    /// metalayers, it counts as invalid, and a reader fails with
    /// [`Error::Format`](crate::Error::Format). If a legacy frame has more metalayers, a reader
    /// fails with [`Error::Limit`](crate::Error::Limit).
    pub metalayers: usize,
    /// The maximum nesting depth of brackets in the dtype of an array. Default: 98, the depth of a
    /// dtype with the [maximum nesting](crate::dtype::MAX_NESTING). A check reports
    /// a dtype with more levels as unknown (rule `b2nd.dtype_unknown`). Opening a file with such a
    /// dtype does not fail.
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
            nesting: MAX_BRACKETS,
        }
    }
}

/// The limit that [`Error::Limit`](crate::Error::Limit) is about: one field of [`Limits`].
///
/// ```
/// use blosc2_format::{Limit, Limits, Error, chunk};
///
/// let zeros = chunk::special(&chunk::Params::default(), chunk::Special::Zeros, 1 << 20, &[])?;
/// let limits = Limits { memory: 1 << 10, ..Limits::default() };
/// let error = chunk::Chunk::new(&zeros, &limits).and_then(|chunk| chunk.decode()).unwrap_err();
/// assert!(matches!(error, Error::Limit { limit: Some(Limit::Memory), max: 1024, .. }));
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Limit {
    /// [`Limits::memory`].
    Memory,
    /// [`Limits::metadata`].
    Metadata,
    /// [`Limits::total_bytes`].
    TotalBytes,
    /// [`Limits::items`].
    Items,
    /// [`Limits::dimensions`].
    Dimensions,
    /// [`Limits::chunks`].
    Chunks,
    /// [`Limits::metalayers`].
    Metalayers,
}

impl Limit {
    /// All limits.
    pub const ALL: [Self; 7] = [
        Self::Memory,
        Self::Metadata,
        Self::TotalBytes,
        Self::Items,
        Self::Dimensions,
        Self::Chunks,
        Self::Metalayers,
    ];
}

/// Writes the field of [`Limits`], in the form in which messages name it: `` (see `Limits::memory`)``.
impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Memory => "(see `Limits::memory`)",
            Self::Metadata => "(see `Limits::metadata`)",
            Self::TotalBytes => "(see `Limits::total_bytes`)",
            Self::Items => "(see `Limits::items`)",
            Self::Dimensions => "(see `Limits::dimensions`)",
            Self::Chunks => "(see `Limits::chunks`)",
            Self::Metalayers => "(see `Limits::metalayers`)",
        })
    }
}

impl Limits {
    /// Returns the value of [`metadata`](Self::metadata) for a file of `size` bytes.
    pub(crate) fn metadata_of(&self, size: u64) -> u64 {
        self.metadata.unwrap_or_else(|| size.saturating_mul(12).saturating_add(40 << 20))
    }

    /// Returns the maximum number of bytes of memory for metadata that is decoded after a frame is
    /// opened; see [`metadata`](Self::metadata). `size` is the size of the frame, in bytes.
    pub fn decoded_metadata(&self, size: u64) -> u64 {
        let default = || size.saturating_mul(DECODED_RATIO).saturating_add(DECODED);
        self.metadata.unwrap_or_else(default)
    }
}
