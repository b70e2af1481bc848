//! What a filter sees: a block that it reads, and one that it writes.

use std::ops::{Deref, DerefMut};

use blosc2_format::b2nd::Geometry;

use crate::element::{Element, are_valid, as_bytes, as_bytes_mut, zeroed};
use crate::{Error, ErrorKind, Result};

use super::BoxError;

const VIEW: &str = "view a block";

/// A block on its way through a filter: what it reads, and what it writes.
///
/// Both have the same length, a multiple of the typesize but for the last block of data that is
/// none. They start at an address that fits every [`Element`]. The output is zeros at first.
#[derive(Debug)]
pub struct FilterBlock<'a> {
    input: &'a [u8],
    output: &'a mut [u8],
    facts: Facts<'a>,
}

/// What is known of a block besides its data.
#[derive(Debug, Clone, Copy)]
pub(super) struct Facts<'a> {
    pub(super) typesize: usize,
    pub(super) meta: u8,
    /// Bytes of each block of the chunk but a shorter last one; `None` where their lengths vary.
    pub(super) blocksize: Option<usize>,
    pub(super) chunk: ChunkPlace<'a>,
}

impl<'a> FilterBlock<'a> {
    /// The bytes to read.
    pub fn input(&self) -> &'a [u8] {
        self.input
    }

    /// The bytes to write, as many as there are to read; zeros at first.
    pub fn output(&mut self) -> &mut [u8] {
        self.output
    }

    /// The items to read.
    ///
    /// # Errors
    /// [`ErrorKind::TypeMismatch`]: the block is no whole number of them, or has bools that are neither 0 nor
    /// 1.
    pub fn input_as<T: Element>(&self) -> Result<&'a [T]> {
        let len = count::<T>(self.input)?;
        let start = self.input.as_ptr().cast::<T>();
        check_aligned(start)?;
        // SAFETY: the bytes are `len` items, at an address that fits them, and valid as such.
        Ok(unsafe { std::slice::from_raw_parts(start, len) })
    }

    /// The items to write.
    ///
    /// # Errors
    /// [`ErrorKind::TypeMismatch`]: as for [`input_as`](Self::input_as); or they have padding, in which bytes
    /// would be left that are not initialised.
    pub fn output_as<T: Element>(&mut self) -> Result<&mut [T]> {
        let len = count::<T>(self.output)?;
        if T::LAYOUT.has_padding() {
            let detail = format!("items of {} have padding; write the bytes", T::dtype());
            return Err(Error::new(ErrorKind::TypeMismatch, VIEW, detail));
        }
        let start = self.output.as_mut_ptr().cast::<T>();
        check_aligned(start)?;
        // SAFETY: the bytes are `len` items, at an address that fits them; they are
        // valid as such, and have no padding, so that the bytes stay initialised.
        Ok(unsafe { std::slice::from_raw_parts_mut(start, len) })
    }

    /// Bytes of an item, as the chunk says: 1 for those of more than 255 bytes.
    pub fn typesize(&self) -> usize {
        self.facts.typesize
    }

    /// The parameter of a filter; 0 for a prefilter or postfilter.
    pub fn meta(&self) -> u8 {
        self.facts.meta
    }

    /// Bytes of each block of the chunk, but for a shorter last one; `None` for blocks of variable length.
    pub fn blocksize(&self) -> Option<usize> {
        self.facts.blocksize
    }

    /// The number of the chunk in its super-chunk: where it is, or where it will be put. C's `nchunk`.
    ///
    /// `None` for a chunk by itself, as of a [`Compressor`](crate::Compressor) or a
    /// [`Decompressor`](crate::Decompressor); C has -1 there. Chunks are compressed before they are put: where another
    /// handle on the same file, with locking, adds chunks in between, the number is another one. Within
    /// [`SChunk::locked`](crate::SChunk::locked) none does. Inserting, deleting and reordering chunks changes their
    /// numbers.
    #[doc(alias = "nchunk")]
    pub fn chunk_index(&self) -> Option<usize> {
        self.facts.chunk.index
    }

    /// The shapes of the array that the chunk is of, of its chunks and of its blocks; `None` where it is of none.
    ///
    /// A block of an array holds the items of a box in C order, padded to the full block shape.
    /// [`Geometry::block_items`] says where they are in the array. C has these in the metalayer `b2nd` of the
    /// super-chunk of its parameters.
    pub fn array(&self) -> Option<&'a Geometry> {
        self.facts.chunk.array
    }
}

/// Which chunk closures work on, as far as that is known: nothing is of a chunk by itself.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ChunkPlace<'a> {
    /// Its number in its super-chunk.
    pub(crate) index: Option<usize>,
    /// Bytes of the super-chunk's data in front of it.
    pub(crate) start: Option<u64>,
    /// The array that it is of.
    pub(crate) array: Option<&'a Geometry>,
}

/// How many valid items there are.
fn count<T: Element>(bytes: &[u8]) -> Result<usize> {
    let (len, size) = (bytes.len(), size_of::<T>());
    if len.is_multiple_of(size) {
        let detail = "it has bools that are neither 0 nor 1";
        let invalid = || Error::new(ErrorKind::TypeMismatch, VIEW, detail);
        return are_valid::<T>(bytes).then_some(len / size).ok_or_else(invalid);
    }
    let detail = format!("{len} bytes are no whole number of {} ({size} bytes)", T::dtype());
    Err(Error::new(ErrorKind::TypeMismatch, VIEW, detail))
}

/// A type of the user's may ask for more than any number does.
fn check_aligned<T: Element>(start: *const T) -> Result<()> {
    if start.is_aligned() {
        return Ok(());
    }
    let detail = format!("{} wants to be aligned to {} bytes", T::dtype(), align_of::<T>());
    Err(Error::new(ErrorKind::TypeMismatch, VIEW, detail))
}

/// A block of a chunk on its way through a prefilter or a postfilter.
///
/// It has all that a [`FilterBlock`] has, and its place: in the chunk, and in the super-chunk where it is of one. C's
/// `blosc2_prefilter_params` and `blosc2_postfilter_params`.
///
/// ```
/// use blosc2::NDArray;
/// use blosc2::user_defined::{BoxError, ChunkBlock};
///
/// /// Sets each item to the sum of its indices.
/// fn sums(block: &mut ChunkBlock<'_>) -> Result<(), BoxError> {
///     let array = block.array().ok_or("not of an array")?;
///     let chunk = block.chunk_index().ok_or("not of a super-chunk")?;
///     let items = array.block_items(chunk as u64, block.index() as u64)?;
///     let (rows, columns) = (items[0].clone(), items[1].clone());
///     let width = array.blocks()[1] as usize; // The padding counts.
///     let output = block.output_as::<u64>()?;
///     for (row, items) in rows.zip(output.chunks_mut(width)) {
///         for (column, item) in columns.clone().zip(items) {
///             *item = row + column;
///         }
///     }
///     Ok(())
/// }
///
/// let mut array = NDArray::builder().chunks(&[6, 6]).blocks(&[3, 4]).zeros::<u64>(&[10, 10])?;
/// array.set_postfilter(sums);
/// assert_eq!(array.item::<u64>(&[9, 7])?, 16);
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug)]
pub struct ChunkBlock<'a> {
    block: FilterBlock<'a>,
    index: usize,
    offset: usize,
}

impl ChunkBlock<'_> {
    /// The number of the block in its chunk. C's `nblock`.
    #[doc(alias = "nblock")]
    pub fn index(&self) -> usize {
        self.index
    }

    /// Bytes of the chunk's data in front of the block. C's `offset` and `output_offset`.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Bytes of the super-chunk's data in front of the block; `None` for a chunk by itself.
    ///
    /// It is known where [`chunk_index`](FilterBlock::chunk_index) is, under the same conditions. In an array the padding
    /// of chunks and blocks counts. C has no such number; Python's `offset` counts items instead of bytes.
    pub fn schunk_offset(&self) -> Option<u64> {
        self.block.facts.chunk.start.map(|start| start + self.offset as u64)
    }
}

impl<'a> Deref for ChunkBlock<'a> {
    type Target = FilterBlock<'a>;

    fn deref(&self) -> &Self::Target {
        &self.block
    }
}

impl DerefMut for ChunkBlock<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.block
    }
}

/// Where a block is in its chunk.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) index: usize,
    pub(super) offset: usize,
}

/// Runs a closure on a block, whose output holds zeros.
pub(super) fn with_block<R>(
    input: &[u8],
    output: &mut [u8],
    facts: Facts<'_>,
    work: impl FnOnce(&mut FilterBlock<'_>) -> Result<R, BoxError>,
) -> Result<R, BoxError> {
    let doing = "run a closure on a block";
    let is_aligned = |bytes: &[u8]| bytes.as_ptr().align_offset(align_of::<u64>()) == 0;
    let words = |len: usize| zeroed::<u64>(len.div_ceil(8), doing);
    let mut copy: Vec<u64>;
    let mut input = input;
    if !is_aligned(input) {
        copy = words(input.len())?;
        as_bytes_mut(&mut copy)[..input.len()].copy_from_slice(input);
        input = &as_bytes(&copy)[..input.len()];
    }
    if is_aligned(output) {
        return work(&mut FilterBlock { input, output, facts });
    }
    let mut output_words = words(output.len())?;
    let aligned = &mut as_bytes_mut(&mut output_words)[..output.len()];
    let result = work(&mut FilterBlock { input, output: aligned, facts })?;
    output.copy_from_slice(aligned);
    Ok(result)
}

/// The same for a block with a place.
pub(super) fn with_chunk_block<R>(
    input: &[u8],
    output: &mut [u8],
    facts: Facts<'_>,
    place: Place,
    work: impl FnOnce(&mut ChunkBlock<'_>) -> Result<R, BoxError>,
) -> Result<R, BoxError> {
    with_block(input, output, facts, |block| {
        let FilterBlock { input, ref mut output, facts } = *block;
        let block = FilterBlock { input, output, facts };
        work(&mut ChunkBlock { block, index: place.index, offset: place.offset })
    })
}
