//! The content of new chunks.

use std::borrow::Cow;

use super::SChunk;
use crate::chunk::ChunkBytes;
use crate::item::element::{Element, bytes_of};
use crate::{Chunk, ChunkRef, Reason, Result};

/// The content of a new chunk of a super-chunk, for [`SChunk::append`], [`SChunk::insert`] and [`SChunk::replace`].
///
/// | type | the new chunk |
/// |---|---|
/// | `&[T]`, `&[T; N]`, `&Vec<T>` | the items, compressed with the parameters of the super-chunk |
/// | [`&Chunk`](Chunk), [`&ChunkRef`](ChunkRef) | this compressed chunk, unchanged |
/// | [`VariableBlocks`] | each of these byte strings, compressed to one block |
///
/// The items are of the size of the typesize, or `u8`: bytes, which need not be whole items.
///
/// A compressed chunk must have the typesize of the super-chunk. If that typesize is greater than 255, the chunk must
/// have the typesize 1. The codec and the filters of the chunk may differ. A [special chunk](crate::Special) of zeros,
/// NaN or uninitialized items usually takes no space: only the index records it. It is stored as a small chunk in these
/// cases:
/// - the super-chunk has variable-length chunks;
/// - the decompressed size of the chunk is not a multiple of the typesize of the super-chunk;
/// - the items are NaN, and the block size of the super-chunk is less than the typesize.
///
/// This trait is sealed.
///
/// ```
/// use blosc2::super_chunk::VariableBlocks;
/// use blosc2::{CParams, Chunk, SChunk};
///
/// let mut schunk = SChunk::in_memory::<u32>(CParams::default())?;
/// schunk.append(&[1u32, 2, 3])?;
/// schunk.insert(0, &Chunk::zeros::<u32>(3, CParams::default())?)?;
/// assert_eq!(schunk.read::<u32>(..)?, [0, 0, 0, 1, 2, 3]);
///
/// let mut texts = SChunk::in_memory::<u8>(CParams::default())?;
/// texts.append(VariableBlocks(&[b"one", b"three"]))?;
/// assert_eq!(texts.block(0, 1)?, b"three");
/// # Ok::<(), blosc2::Error>(())
/// ```
///
/// # Errors
/// The methods that store the chunk fail with
/// - [`ErrorKind::TypeMismatch`](crate::ErrorKind::TypeMismatch): the size of `T` is not the typesize, and `T` is not
///   `u8`; or the compressed chunk has a different typesize;
/// - [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument): there are no items, no blocks, or a block is
///   empty; or either the new chunk or the super-chunk has variable-length blocks, but not both;
/// - [`ErrorKind::TooLarge`](crate::ErrorKind::TooLarge): the items or blocks have more than
///   [`MAX_CHUNK_LEN`](crate::limits::MAX_CHUNK_LEN) bytes;
/// - [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported): the compressed chunk is a Blosc1 chunk.
pub trait ChunkSource: ToSource {}

/// Byte strings that are compressed to one variable-length block each, as the content of a new chunk. C:
/// `blosc2_vlcompress_ctx`.
///
/// A super-chunk cannot mix chunks with variable-length blocks and other chunks. Variable-length blocks suit strings and
/// documents, because [`SChunk::block`] decompresses only one block. From a file, `block` reads the complete compressed
/// chunk.
///
/// ```
/// use blosc2::super_chunk::VariableBlocks;
/// use blosc2::{CParams, SChunk};
///
/// let mut schunk = SChunk::in_memory::<u8>(CParams::default())?;
/// let documents = ["a text", "a longer text"].map(str::as_bytes);
/// schunk.append(VariableBlocks(&documents))?;
/// assert_eq!(schunk.block(0, 0)?, b"a text");
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct VariableBlocks<'a>(pub &'a [&'a [u8]]);

/// The conversion of a [`ChunkSource`]. Other crates cannot name this trait, so that they cannot implement
/// [`ChunkSource`].
pub trait ToSource {
    /// Returns the content. Checks that the type of items fits.
    fn source(&self, schunk: &SChunk) -> Result<Source<'_>, Reason>;
}

/// The content of a [`ChunkSource`].
#[derive(Debug)]
pub enum Source<'a> {
    Items(Cow<'a, [u8]>),
    Chunk(ChunkRef<'a>),
    Blocks(&'a [&'a [u8]]),
}

macro_rules! items {
    ($([$($generics:tt)*] $type:ty;)*) => {$(
        impl<T: Element, $($generics)*> ChunkSource for $type {}
        impl<T: Element, $($generics)*> ToSource for $type {
            fn source(&self, schunk: &SChunk) -> Result<Source<'_>, Reason> {
                schunk.check_item::<T>()?;
                Ok(Source::Items(bytes_of(&self[..])))
            }
        }
    )*};
}
items! { [] &[T]; [const N: usize] &[T; N]; [] &Vec<T>; }

impl<B: ChunkBytes> ChunkSource for &Chunk<B> {}
impl<B: ChunkBytes> ToSource for &Chunk<B> {
    fn source(&self, _: &SChunk) -> Result<Source<'_>, Reason> {
        Ok(Source::Chunk(self.borrowed()))
    }
}

impl ChunkSource for VariableBlocks<'_> {}
impl ToSource for VariableBlocks<'_> {
    fn source(&self, _: &SChunk) -> Result<Source<'_>, Reason> {
        Ok(Source::Blocks(self.0))
    }
}
