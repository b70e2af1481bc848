//! Chunks: the compressed form of one buffer.
//!
//! ```
//! use blosc2::{CParams, Chunk, ChunkRef};
//!
//! let bytes: Vec<u8> = blosc2::compress(&[7i32; 1000], &CParams::default())?;
//!
//! // From outside: looked at once, then any of these.
//! let chunk = ChunkRef::new(&bytes)?;
//! assert_eq!((chunk.nbytes(), chunk.typesize()), (4000, 4));
//! assert_eq!(chunk.decompress::<i32>()?, [7; 1000]);
//! assert_eq!(chunk.items::<i32>(10..12)?, [7, 7]);
//!
//! let zeros = Chunk::zeros::<f64>(1_000_000, &CParams::default())?;
//! assert_eq!(zeros.cbytes(), 32);
//! # Ok::<(), blosc2::Error>(())
//! ```

use std::fmt;
use std::ops::Range;

use blosc2_format::chunk::{self as format, Header};
use blosc2_format::{Limits, Options};

use crate::{Check, Codec, Error, ErrorKind, Filter, Result};

/// One buffer, compressed: bytes that have been looked at, and what their header says.
///
/// `Chunk` owns its bytes, [`ChunkRef`] borrows them; both do the same. C calls this a chunk as well, or a
/// `cbuffer`.
///
/// The methods that decompress make a [`Decompressor`](crate::Decompressor) with default parameters. Use one of
/// your own to decompress many chunks, or on several threads.
#[derive(Clone, PartialEq, Eq)]
pub struct Chunk<B = Vec<u8>> {
    bytes: B,
    header: Header,
}

/// A chunk in borrowed bytes; see [`Chunk`].
pub type ChunkRef<'a> = Chunk<&'a [u8]>;

/// Where a chunk can have its bytes: `Vec<u8>` or `&[u8]`.
///
/// They must be the same at each look, so that this is not for types of others.
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

/// What a chunk without data is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Special {
    /// Zeros.
    Zeros,
    /// NaN, as `f32` or `f64` by the typesize.
    Nan,
    /// One value, repeated.
    Value,
    /// Uninitialized: nothing was written. It is read as zeros.
    Uninit,
}

impl Special {
    pub(crate) fn from_format(special: format::Special) -> Self {
        match special {
            format::Special::Zeros => Self::Zeros,
            format::Special::Nan => Self::Nan,
            format::Special::Value => Self::Value,
            format::Special::Uninit => Self::Uninit,
        }
    }
}

impl<B: ChunkBytes> Chunk<B> {
    /// Looks at the chunk at the start of `bytes`; what follows its end is left out.
    ///
    /// Codecs and filters need not be known; only decompressing needs them. The same as
    /// [`validated`](Self::validated) with [`Check::Structure`].
    ///
    /// # Errors
    /// [`ErrorKind::InvalidData`]: not a chunk, cut short, broken, or one whose blocks are elsewhere (a
    /// lazy chunk, which only C's own memory should hold).
    pub fn new(bytes: B) -> Result<Self> {
        Self::validated(bytes, Check::Structure)
    }

    /// The same, with a choice of how closely to look.
    ///
    /// # Errors
    /// - As [`new`](Self::new);
    /// - [`ErrorKind::Unsupported`]: the content is to be looked at, but there is no Rust implementation of
    ///   its codec or its filters.
    ///
    /// ```
    /// use blosc2::{CParams, ChunkRef, ErrorKind, Check};
    ///
    /// let items: Vec<u32> = (0..10_000).map(|i| i * i).collect();
    /// let mut bytes = blosc2::compress(&items, &CParams::default())?;
    /// let last = bytes.len() - 1;
    /// bytes.truncate(last);
    /// assert_eq!(ChunkRef::new(&bytes).unwrap_err().kind(), ErrorKind::InvalidData);
    /// bytes.push(0);
    /// assert!(ChunkRef::validated(&bytes, Check::Header).is_ok());
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    pub fn validated(bytes: B, depth: Check) -> Result<Self> {
        Self::look(bytes, depth, "read a chunk")
    }

    fn look(mut bytes: B, depth: Check, doing: &str) -> Result<Self> {
        let invalid = |detail: &str| Error::new(ErrorKind::InvalidData, doing, detail);
        let given = bytes.bytes();
        let header = Header::parse(given).map_err(|error| Error::from_format(doing, error))?;
        let cbytes = header.cbytes as usize;
        if cbytes > given.len() {
            let found = given.len();
            return Err(invalid(&format!("it announces {cbytes} bytes, but {found} are there")));
        }
        if header.lazy {
            return Err(invalid("its blocks are not with it (a lazy chunk)"));
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

    /// A chunk that C has just made.
    pub(crate) fn trusted(bytes: B, header: Header) -> Self {
        Self { bytes, header }
    }

    /// The same chunk, borrowed.
    pub fn borrowed(&self) -> ChunkRef<'_> {
        Chunk { bytes: self.bytes.bytes(), header: self.header.clone() }
    }

    /// The chunk as it is stored, from the header to the last stream.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.bytes()
    }

    /// Gives the bytes back.
    pub fn into_bytes(self) -> B {
        self.bytes
    }

    pub(crate) fn header(&self) -> &Header {
        &self.header
    }

    /// What follows the header.
    pub(crate) fn body(&self) -> &[u8] {
        &self.as_bytes()[self.header.header_len()..]
    }

    /// Bytes of the data.
    pub fn nbytes(&self) -> usize {
        self.header.nbytes as usize
    }

    /// Bytes of the chunk.
    pub fn cbytes(&self) -> usize {
        self.header.cbytes as usize
    }

    /// Bytes of an item, as the header says: 1 where items have over 255.
    pub fn typesize(&self) -> usize {
        self.header.typesize.into()
    }

    /// Bytes of a block, of which the last one may have fewer; `None` where each has its own length.
    pub fn blocksize(&self) -> Option<usize> {
        (!self.has_variable_blocks()).then(|| self.header.block_len() as usize)
    }

    /// Number of blocks. C's `blosc2_vlchunk_get_nblocks` for blocks of variable length.
    pub fn nblocks(&self) -> usize {
        self.header.nblocks() as usize
    }

    /// The codec. LZ4HC writes what LZ4 reads, so that it is given as LZ4. It means nothing where nothing is
    /// compressed: in stored and special chunks.
    pub fn codec(&self) -> Codec {
        Codec::from_code(self.header.codec())
    }

    /// Version of the codec's format: 1 for the codecs of C-Blosc2,
    /// [`UserCodec::version`](crate::user_defined::UserCodec::version) for a user-defined one. C's `blosc2_cbuffer_versions`.
    #[doc(alias("versionlz", "blosc2_cbuffer_versions"))]
    pub fn codec_version(&self) -> u8 {
        self.header.codec_version
    }

    /// Parameter of the codec.
    pub fn codec_meta(&self) -> u8 {
        self.header.codec_meta
    }

    /// The filters, in the order in which they were applied.
    pub fn filters(&self) -> Vec<Filter> {
        self.each_filter().collect()
    }

    /// The same without a vector, for what is done with each chunk.
    pub(crate) fn each_filter(&self) -> impl Iterator<Item = Filter> + Clone + '_ {
        Filter::of_slots(&self.header.filters, &self.header.filters_meta)
    }

    /// What the data is made of, where there is none in the chunk.
    pub fn special(&self) -> Option<Special> {
        self.header.special.map(Special::from_format)
    }

    /// Whether the data is in the chunk as it was given, neither filtered nor compressed.
    pub fn is_stored(&self) -> bool {
        self.header.is_stored()
    }

    /// Whether the bytes of the items of its blocks are in streams of their own: what [`SplitMode`] came to.
    ///
    /// [`SplitMode`]: crate::SplitMode
    pub fn is_split(&self) -> bool {
        self.header.split && self.header.is_compressed()
    }

    /// Whether there is a dictionary in it.
    pub fn has_dictionary(&self) -> bool {
        self.header.dictionary && self.header.is_compressed()
    }

    /// Whether its blocks have lengths of their own; see [`Compressor::compress_blocks`].
    ///
    /// [`Compressor::compress_blocks`]: crate::Compressor::compress_blocks
    pub fn has_variable_blocks(&self) -> bool {
        self.header.variable_blocks
    }

    /// Whether it has the header of Blosc1, of 16 bytes rather than 32.
    pub fn is_blosc1(&self) -> bool {
        !self.header.extended
    }

    /// Version of the chunk format: 2 for Blosc1, 3 to 6 for Blosc2.
    pub fn format_version(&self) -> u8 {
        self.header.version
    }

    /// Whether it was written on a big-endian machine; items come out as they were given.
    pub fn is_big_endian(&self) -> bool {
        self.header.big_endian
    }

    /// Bytes of a block when decompressed, as far as the header and the block itself say.
    pub(crate) fn block_len(&self, block: usize) -> Result<Option<usize>> {
        if block >= self.nblocks() {
            return Ok(None);
        }
        if !self.has_variable_blocks() {
            return Ok(self.block_range(block)?.map(|range| range.len()));
        }
        // Each starts with its length; C sees that they fit together.
        let number = |at: usize| {
            let bytes = self.as_bytes().get(at..)?.first_chunk::<4>()?;
            usize::try_from(i32::from_le_bytes(*bytes)).ok()
        };
        let len = number(self.header.header_len() + 4 * block).and_then(number);
        match len.filter(|len| (1..=self.nbytes()).contains(len)) {
            Some(len) => Ok(Some(len)),
            None => {
                let detail = format!("the length of block {block} is not in the chunk");
                Err(Error::new(ErrorKind::InvalidData, "read a chunk", detail))
            }
        }
    }

    /// Where in the data a block is, in bytes; `None` where there is no such block.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidData`]: blocks of variable length whose lengths are broken.
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
    /// Looks at the header of a chunk that is about to be decompressed.
    pub(crate) fn to_decompress(bytes: &'a [u8]) -> Result<Self> {
        Self::look(bytes, Check::Header, "decompress a chunk")
    }
}

impl<B> fmt::Debug for Chunk<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chunk").field("header", &self.header).finish_non_exhaustive()
    }
}

impl TryFrom<Vec<u8>> for Chunk {
    type Error = Error;

    /// The same as [`Chunk::new`].
    fn try_from(bytes: Vec<u8>) -> Result<Self> {
        Self::new(bytes)
    }
}

impl<'a> TryFrom<&'a [u8]> for ChunkRef<'a> {
    type Error = Error;

    /// The same as [`Chunk::new`].
    fn try_from(bytes: &'a [u8]) -> Result<Self> {
        Self::new(bytes)
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

/// The parts of a chunk, as the Rust implementation of the format finds them.
pub(crate) fn layout(bytes: &[u8]) -> Result<format::Chunk<'_>> {
    let doing = "read a chunk";
    format::Chunk::new(bytes, &Limits::default()).map_err(|error| match error {
        blosc2_format::Error::Format(error) => Error::from_format(doing, error),
        other => Error::new(ErrorKind::InvalidData, doing, other),
    })
}

/// Decompresses every block by the Rust implementation.
fn check_content(bytes: &[u8]) -> Result<()> {
    let doing = "check a chunk";
    let report = format::Chunk::check(bytes, &Options { content: true, ..Options::default() });
    let worst = report.findings.iter().max_by_key(|finding| finding.rule.severity);
    match worst {
        Some(error) if !report.is_good() => Err(Error::from_format(doing, error.clone().into())),
        Some(_) if !report.is_complete() => {
            let unread = report.findings.iter().find(|each| each.rule.id.ends_with(".unsupported"));
            let detail = unread.or(worst).map(ToString::to_string).unwrap_or_default();
            Err(Error::new(ErrorKind::Unsupported, doing, detail))
        }
        _ => Ok(()),
    }
}
