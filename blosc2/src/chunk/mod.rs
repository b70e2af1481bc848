//! Compressed chunks: their bytes, their header, and validation.

pub(crate) mod array_shape;
pub(crate) mod blocks;
pub(crate) mod check;
pub(crate) mod compressor;
mod context;
mod decodable;
pub(crate) mod decoder;
pub(crate) mod decompressor;
pub(crate) mod encoder;
mod fork;
pub(crate) mod info;
pub(crate) mod init;
pub(crate) mod partial;
mod parts;
pub mod raw;
mod special;
pub(crate) mod suggest;

use std::fmt;
use std::ops::Range;

use blosc2_format::chunk::{self as format, Header, Special};
use blosc2_format::{FormatError, Limits, Options};

use crate::error::DECOMPRESS;
use crate::{Check, Codec, Doing, Error, ErrorKind, Filter, Reason, Result};

/// A compressed chunk, whose bytes have been validated.
///
/// A chunk consists of a header and data. The data is divided into blocks, which are compressed separately. A
/// [special](Special) chunk, such as a chunk of zeros, has no data after its header. The exception is a special chunk
/// that repeats one value: it stores this value once.
///
/// `Chunk` owns its bytes and [`ChunkRef`] borrows them; both have the same methods. Some C functions call a chunk a
/// `cbuffer`.
///
/// Each call of a method that decompresses creates a [`Decompressor`](crate::Decompressor) with default parameters. To
/// decompress many chunks, or to use several threads, create one `Decompressor` and use it for all chunks.
///
/// ```
/// use blosc2::{CParams, Chunk, ChunkRef};
///
/// let bytes: Vec<u8> = blosc2::compress(&[7i32; 1000], &CParams::default())?;
///
/// // `new` validates the structure; then the methods can be called in any order.
/// let chunk = ChunkRef::new(&bytes)?;
/// assert_eq!((chunk.nbytes(), chunk.typesize()), (4000, 4));
/// assert_eq!(chunk.decompress::<i32>()?, [7; 1000]);
/// assert_eq!(chunk.items::<i32>(10..12)?, [7, 7]);
///
/// let zeros = Chunk::zeros::<f64>(1_000_000, &CParams::default())?;
/// assert_eq!(zeros.cbytes(), 32);
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Chunk<B = Vec<u8>> {
    bytes: B,
    header: Header,
}

/// A chunk whose bytes are borrowed; see [`Chunk`].
///
/// ```
/// use blosc2::{CParams, ChunkRef};
///
/// let bytes = blosc2::compress(b"some bytes", CParams::default())?;
/// let chunk: ChunkRef<'_> = ChunkRef::new(&bytes)?;
/// assert_eq!(chunk.nbytes(), 10);
/// # Ok::<(), blosc2::Error>(())
/// ```
pub type ChunkRef<'a> = Chunk<&'a [u8]>;

/// The containers that can hold the bytes of a [`Chunk`]: `Vec<u8>` and `&[u8]`.
///
/// The trait is sealed, because a chunk stays valid only if its container always returns the same bytes.
///
/// ```
/// use blosc2::{CParams, Chunk, ChunkBytes};
///
/// fn ratio<B: ChunkBytes>(chunk: &Chunk<B>) -> f64 {
///     chunk.nbytes() as f64 / chunk.cbytes() as f64
/// }
///
/// let chunk = Chunk::zeros::<u8>(3200, CParams::default())?;
/// assert_eq!(ratio(&chunk), 100.0);
/// # Ok::<(), blosc2::Error>(())
/// ```
pub trait ChunkBytes: sealed::Sealed {}

impl ChunkBytes for Vec<u8> {}
impl ChunkBytes for &[u8] {}

mod sealed {
    pub trait Sealed {
        fn bytes(&self) -> &[u8];
        fn cut(&mut self, len: usize);
    }

    impl Sealed for Vec<u8> {
        fn bytes(&self) -> &[u8] {
            self
        }

        fn cut(&mut self, len: usize) {
            self.truncate(len);
        }
    }

    impl Sealed for &[u8] {
        fn bytes(&self) -> &[u8] {
            self
        }

        fn cut(&mut self, len: usize) {
            *self = &self[..len.min(self.len())];
        }
    }
}

impl<B: ChunkBytes> Chunk<B> {
    /// Validates the structure of the chunk at the start of `bytes`, and removes the bytes after the end of the chunk.
    ///
    /// Equivalent to [`validated`](Self::validated) with [`Check::Structure`]. The codec and the filters of the chunk
    /// may be unavailable: only decompression needs the codec and the filters.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidData`]: the bytes are not a chunk, are truncated or damaged, or are a lazy chunk of
    ///   C-Blosc2 (a header without the compressed blocks).
    pub fn new(bytes: B) -> Result<Self> {
        Self::validated(bytes, Check::Structure)
    }

    /// Validates the chunk at the start of `bytes` to the depth `depth`, and removes the bytes after the end of the
    /// chunk.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidData`]: the bytes are not a chunk, are truncated or damaged, or are a lazy chunk of
    ///   C-Blosc2 (a header without the compressed blocks);
    /// - [`ErrorKind::Unsupported`]: `depth` is [`Check::Content`], and the Rust implementation of the format (the
    ///   crate `blosc2-format`) lacks the codec or a filter.
    ///
    /// ```
    /// use blosc2::{CParams, ChunkRef, ErrorKind, Check};
    ///
    /// let items: Vec<u32> = (0..10_000).map(|i| i * i).collect();
    /// let mut bytes = blosc2::compress(&items, &CParams::default())?;
    /// let last = bytes.len() - 1;
    /// bytes.truncate(last); // The header declares one byte more.
    /// assert_eq!(ChunkRef::new(&bytes).unwrap_err().kind(), ErrorKind::InvalidData);
    /// bytes.push(0); // The last byte is wrong, but the header is intact.
    /// assert!(ChunkRef::validated(&bytes, Check::Header).is_ok());
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    pub fn validated(bytes: B, depth: Check) -> Result<Self> {
        Self::validate(bytes, depth).doing("read a chunk")
    }

    fn validate(mut bytes: B, depth: Check) -> Result<Self, Reason> {
        let invalid = |detail: &str| Reason::new(ErrorKind::InvalidData, detail);
        let given = bytes.bytes();
        let header = Header::parse(given)?;
        let cbytes = header.cbytes as usize;
        if cbytes > given.len() {
            let found = given.len();
            return Err(invalid(&format!("its header declares {cbytes} bytes, found {found}")));
        }
        if header.lazy {
            return Err(invalid("its blocks are not in the buffer (a lazy chunk)"));
        }
        bytes.cut(cbytes);
        match depth {
            Check::Header => {}
            Check::Structure => {
                layout(bytes.bytes())?;
            }
            Check::Content => check_content(bytes.bytes())?,
        }
        Ok(Self { bytes, header })
    }

    /// A chunk whose header was parsed from these bytes, which are as long as the header declares. The chunk is not
    /// lazy.
    pub(crate) fn trusted(bytes: B, header: Header) -> Self {
        Self { bytes, header }
    }

    /// Returns a chunk that borrows the bytes of this chunk.
    pub fn borrowed(&self) -> ChunkRef<'_> {
        Chunk { bytes: self.bytes.bytes(), header: self.header.clone() }
    }

    /// Returns the bytes of the chunk, header included.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.bytes()
    }

    /// Returns the bytes of the chunk, as the `Vec<u8>` or `&[u8]` that contains them.
    pub fn into_bytes(self) -> B {
        self.bytes
    }

    pub(crate) fn header(&self) -> &Header {
        &self.header
    }

    /// The bytes after the header.
    pub(crate) fn body(&self) -> &[u8] {
        &self.as_bytes()[self.header.header_len()..]
    }

    /// Returns the size of the uncompressed data in bytes. C: `nbytes` of `blosc2_cbuffer_sizes`.
    pub fn nbytes(&self) -> usize {
        self.header.nbytes as usize
    }

    /// Returns the size of the chunk in bytes, header included. C: `cbytes` of `blosc2_cbuffer_sizes`.
    pub fn cbytes(&self) -> usize {
        self.header.cbytes as usize
    }

    /// Returns the size of an item in bytes, as stored in the header: 1 for items of more than 255 bytes.
    pub fn typesize(&self) -> usize {
        self.header.typesize.into()
    }

    /// Returns the size of a block in bytes; the last block can be shorter. `None` for variable-length blocks.
    pub fn blocksize(&self) -> Option<usize> {
        (!self.has_variable_blocks()).then(|| self.header.block_len() as usize)
    }

    /// Returns the number of blocks. C: `blosc2_vlchunk_get_nblocks`, for variable-length blocks only.
    pub fn nblocks(&self) -> usize {
        self.header.nblocks() as usize
    }

    /// Returns the codec. For a chunk compressed with LZ4HC, returns [`Codec::Lz4`], since both codecs write the same
    /// format. The codec has no meaning for special chunks and for chunks [stored uncompressed](Self::is_stored).
    pub fn codec(&self) -> Codec {
        Codec::from_code(self.header.codec())
    }

    /// Returns the version of the codec's format: 1 for the codecs of C-Blosc2,
    /// [`UserCodec::version`](crate::user_defined::UserCodec::version) for a user-defined codec. C:
    /// `blosc2_cbuffer_versions`.
    #[doc(alias("versionlz", "blosc2_cbuffer_versions"))]
    pub fn codec_version(&self) -> u8 {
        self.header.codec_version
    }

    /// Returns the parameter of the codec; see [`Codec`]. C: `compcode_meta`. Python: `codec_meta`.
    pub fn codec_meta(&self) -> u8 {
        self.header.codec_meta
    }

    /// Returns the filters, in the order in which they were applied during compression. The filters have no meaning for
    /// special chunks and for chunks [stored uncompressed](Self::is_stored): these chunks are not filtered.
    pub fn filters(&self) -> Vec<Filter> {
        self.each_filter().collect()
    }

    /// The filters as an iterator, without an allocation for each chunk.
    fn each_filter(&self) -> impl Iterator<Item = Filter> + Clone + '_ {
        Filter::of_slots(&self.header.filters, &self.header.filters_meta)
    }

    /// Returns the kind of a special chunk; `None` for any other chunk.
    pub fn special(&self) -> Option<Special> {
        self.header.special
    }

    /// Returns whether the data is stored uncompressed and without filters.
    pub fn is_stored(&self) -> bool {
        self.header.is_stored()
    }

    /// Returns whether each block is split into one stream for each byte of an item. A shorter last block is not split.
    /// [`SplitMode`] controls the splitting.
    ///
    /// [`SplitMode`]: crate::SplitMode
    pub fn is_split(&self) -> bool {
        self.header.split && self.header.is_compressed()
    }

    /// Returns whether the chunk contains a compression dictionary; see
    /// [`CParams::dictionary`](crate::CParams::dictionary).
    pub fn has_dictionary(&self) -> bool {
        self.header.dictionary && self.header.is_compressed()
    }

    /// Returns whether the blocks are variable-length; see [`Compressor::compress_blocks`].
    ///
    /// [`Compressor::compress_blocks`]: crate::Compressor::compress_blocks
    pub fn has_variable_blocks(&self) -> bool {
        self.header.variable_blocks
    }

    /// Returns whether the chunk has the header of Blosc1, which has 16 bytes instead of 32.
    pub fn is_blosc1(&self) -> bool {
        !self.header.extended
    }

    /// Returns the version of the chunk format: 1 or 2 for Blosc1 and the first alpha versions of Blosc2, 3 or higher
    /// for later versions of Blosc2.
    pub fn format_version(&self) -> u8 {
        self.header.version
    }

    /// Returns whether the chunk was written on a big-endian machine. Decompression does not change the byte order.
    pub fn is_big_endian(&self) -> bool {
        self.header.big_endian
    }

    /// The decompressed size of a block, according to the header. For a variable-length block, according to the length
    /// field of the block.
    pub(crate) fn block_len(&self, block: usize) -> Result<Option<usize>> {
        if block >= self.nblocks() {
            return Ok(None);
        }
        if !self.has_variable_blocks() {
            return Ok(self.block_range(block)?.map(|range| range.len()));
        }
        // Each block starts with its length; C checks that the lengths fit together.
        let number = |at: usize| {
            let bytes = self.as_bytes().get(at..)?.first_chunk::<4>()?;
            usize::try_from(i32::from_le_bytes(*bytes)).ok()
        };
        // A `usize` of 32 bits could overflow.
        let start = usize::try_from(self.header.header_len() as u64 + 4 * block as u64).ok();
        let len = start.and_then(number).and_then(number);
        match len.filter(|len| (1..=self.nbytes()).contains(len)) {
            Some(len) => Ok(Some(len)),
            None => {
                let detail = format!("the length of block {block} is not in the chunk");
                Err(Error::new(ErrorKind::InvalidData, "read a chunk", detail))
            }
        }
    }

    /// Returns the range of a block in the uncompressed data, in bytes; `None` if there is no block with this index.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidData`]: the lengths of variable-length blocks are damaged.
    pub fn block_range(&self, block: usize) -> Result<Option<Range<usize>>> {
        if block >= self.nblocks() {
            return Ok(None);
        }
        let Some(len) = self.blocksize() else {
            let layout = layout(self.as_bytes())?;
            let start = (0..block).map(|before| layout.block_size(before)).sum();
            return Ok(Some(start..start + layout.block_size(block)));
        };
        let start = block * len;
        Ok(Some(start..self.nbytes().min(start + len)))
    }
}

impl<'a> ChunkRef<'a> {
    /// Parses the header of a chunk that is about to be decompressed.
    pub(crate) fn to_decompress(bytes: &'a [u8]) -> Result<Self> {
        Self::validate(bytes, Check::Header).doing(DECOMPRESS)
    }
}

impl<B> fmt::Debug for Chunk<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chunk").field("header", &self.header).finish_non_exhaustive()
    }
}

impl TryFrom<Vec<u8>> for Chunk {
    type Error = Error;

    /// Calls [`Chunk::new`].
    fn try_from(bytes: Vec<u8>) -> Result<Self> {
        Self::new(bytes)
    }
}

impl<'a> TryFrom<&'a [u8]> for ChunkRef<'a> {
    type Error = Error;

    /// Calls [`Chunk::new`].
    fn try_from(bytes: &'a [u8]) -> Result<Self> {
        Self::new(bytes)
    }
}

impl<'a> TryFrom<&'a Vec<u8>> for ChunkRef<'a> {
    type Error = Error;

    /// Calls [`Chunk::new`].
    fn try_from(bytes: &'a Vec<u8>) -> Result<Self> {
        Self::new(bytes)
    }
}

impl Chunk {
    /// Returns the chunk that C has just written to `bytes`.
    pub(crate) fn written(mut bytes: Vec<u8>, doing: &'static str) -> Result<Self> {
        bytes.shrink_to_fit();
        let header = Header::parse(&bytes).doing(doing)?;
        Ok(Self { bytes, header })
    }
}

impl<'a, B: ChunkBytes> From<&'a Chunk<B>> for ChunkRef<'a> {
    fn from(chunk: &'a Chunk<B>) -> Self {
        chunk.borrowed()
    }
}

impl<B: ChunkBytes> AsRef<[u8]> for Chunk<B> {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl From<Chunk> for Vec<u8> {
    fn from(chunk: Chunk) -> Self {
        chunk.bytes
    }
}

impl From<ChunkRef<'_>> for Chunk {
    fn from(chunk: ChunkRef<'_>) -> Self {
        Self { bytes: chunk.bytes.to_vec(), header: chunk.header }
    }
}

/// The parts of a chunk, parsed by the Rust implementation of the format.
pub(crate) fn layout(bytes: &[u8]) -> Result<format::Chunk<'_>> {
    let doing = "read a chunk";
    format::Chunk::new(bytes, &Limits::default()).map_err(|error| match error {
        blosc2_format::Error::Format(error) => Reason::from(error).doing(doing),
        other => Error::new(ErrorKind::InvalidData, doing, other),
    })
}

/// Decompresses every block with the Rust implementation.
fn check_content(bytes: &[u8]) -> Result<()> {
    let doing = "check a chunk";
    let report = format::Chunk::check(bytes, &Options { content: true, ..Options::default() });
    let worst = report.findings.iter().max_by_key(|finding| finding.rule.severity);
    match worst {
        Some(error) if !report.is_good() => Err(FormatError::from(error.clone())).doing(doing),
        Some(_) if !report.is_complete() => {
            let unread = report.findings.iter().find(|each| each.rule.id.ends_with(".unsupported"));
            let detail = unread.or(worst).map(ToString::to_string).unwrap_or_default();
            Err(Error::new(ErrorKind::Unsupported, doing, detail))
        }
        _ => Ok(()),
    }
}
