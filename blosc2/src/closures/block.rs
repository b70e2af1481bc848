//! The blocks that filters, prefilters and postfilters read and write.

use std::ops::{Deref, DerefMut};

use blosc2_format::b2nd::Geometry;

use crate::item::element::{Element, are_valid, as_bytes, as_bytes_mut, zeroed};
use crate::{Doing, Error, ErrorKind, Result};

use super::BoxError;

const VIEW: &str = "view a block";

/// A block that a user-defined filter transforms: its input and its output.
///
/// - Length: input and output have the same length. The length is a multiple of the typesize, with three exceptions:
///   - the last block of data whose length is not a multiple of the typesize;
///   - variable-length blocks;
///   - blocks of untrusted input.
/// - Alignment: input and output are aligned for every primitive [`Element`].
/// - Output: the output is zeroed before the filter runs.
///
/// A [`ChunkBlock`], the block of a prefilter or a postfilter, has the same methods.
///
/// C: the arguments of `blosc2_filter_forward_cb`.
///
/// ```
/// use blosc2::user_defined::{BoxError, FilterBlock};
/// use blosc2::{CParams, Filter};
///
/// /// Adds the parameter of the filter to each byte.
/// fn add(block: &mut FilterBlock<'_>) -> Result<(), BoxError> {
///     let (input, meta) = (block.input(), block.meta());
///     for (to, from) in block.output().iter_mut().zip(input) {
///         *to = from.wrapping_add(meta);
///     }
///     Ok(())
/// }
///
/// fn subtract(block: &mut FilterBlock<'_>) -> Result<(), BoxError> {
///     let (input, meta) = (block.input(), block.meta());
///     for (to, from) in block.output().iter_mut().zip(input) {
///         *to = from.wrapping_sub(meta);
///     }
///     Ok(())
/// }
///
/// Filter::register(202, "add", (add, subtract))?;
/// let filter = Filter::Other { code: 202, meta: 5 };
/// let data: Vec<u8> = [1, 2, 3].repeat(1000);
/// let chunk = blosc2::compress(&data, CParams::new().filters(&[filter]))?;
/// assert_eq!(blosc2::decompress::<u8>(&chunk)?, data);
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug)]
pub struct FilterBlock<'a> {
    input: &'a [u8],
    output: &'a mut [u8],
    facts: Facts<'a>,
}

/// The properties of a block, without its data.
#[derive(Debug, Clone, Copy)]
pub(super) struct Facts<'a> {
    pub(super) typesize: usize,
    pub(super) meta: u8,
    /// The size of the blocks of the chunk in bytes; the last block can be shorter. `None` for variable-length blocks.
    pub(super) blocksize: Option<usize>,
    pub(super) chunk: ChunkPlace<'a>,
}

impl<'a> FilterBlock<'a> {
    /// Returns the input: the bytes of the block.
    pub fn input(&self) -> &'a [u8] {
        self.input
    }

    /// Returns the output, to which the filter, prefilter or postfilter writes. The output has the length of the input,
    /// and is zeroed before the filter or closure runs.
    pub fn output(&mut self) -> &mut [u8] {
        self.output
    }

    /// Returns the input as items.
    ///
    /// # Errors
    /// - [`ErrorKind::TypeMismatch`]: the length is not a multiple of the size of `T`; the block is not aligned for
    ///   `T`; or the byte of a `bool` in the items is not 0 or 1.
    pub fn input_as<T: Element>(&self) -> Result<&'a [T]> {
        let len = count::<T>(self.input)?;
        let start = self.input.as_ptr().cast::<T>();
        check_aligned(start)?;
        // SAFETY: the bytes are `len` items, at an address that is aligned for them, and valid as such.
        Ok(unsafe { std::slice::from_raw_parts(start, len) })
    }

    /// Returns the output as items.
    ///
    /// # Errors
    /// - [`ErrorKind::TypeMismatch`], if:
    ///   - the length is not a multiple of the size of `T`;
    ///   - the block is not aligned for `T`;
    ///   - `T` has padding, because writes of such items would leave uninitialized bytes;
    ///   - an earlier write has set the byte of a `bool` in the items to a value other than 0 and 1.
    pub fn output_as<T: Element>(&mut self) -> Result<&mut [T]> {
        let len = count::<T>(self.output)?;
        if T::LAYOUT.has_padding() {
            let detail = format!("items of {} have padding; write to `output` instead", T::dtype());
            return Err(Error::new(ErrorKind::TypeMismatch, VIEW, detail));
        }
        let start = self.output.as_mut_ptr().cast::<T>();
        check_aligned(start)?;
        // SAFETY: the bytes are `len` items, at an address that is aligned for them. They are valid as such, and
        // have no padding, so that the bytes stay initialized.
        Ok(unsafe { std::slice::from_raw_parts_mut(start, len) })
    }

    /// Returns the size of an item in bytes, as stored in the chunk: 1 for items of more than 255 bytes.
    pub fn typesize(&self) -> usize {
        self.facts.typesize
    }

    /// Returns the parameter of the filter; 0 in a prefilter or postfilter.
    pub fn meta(&self) -> u8 {
        self.facts.meta
    }

    /// Returns the size of the blocks of the chunk in bytes; the last block can be shorter. `None` for
    /// variable-length blocks.
    pub fn blocksize(&self) -> Option<usize> {
        self.facts.blocksize
    }

    /// Returns the index of the chunk in its super-chunk. During compression, this is the index that the chunk will
    /// have. C: `nchunk`.
    ///
    /// Returns `None` for a chunk outside a super-chunk, for example in a [`Compressor`](crate::Compressor) or a
    /// [`Decompressor`](crate::Decompressor). C passes -1 for such a chunk.
    ///
    /// The index can change after compression in two cases:
    /// - With [locking](crate::OpenOptions::locking), another handle adds chunks to the same file before this chunk is
    ///   stored. [`SChunk::locked`](crate::SChunk::locked) prevents this.
    /// - Chunks are inserted, deleted or reordered later.
    #[doc(alias = "nchunk")]
    pub fn chunk_index(&self) -> Option<usize> {
        self.facts.chunk.index
    }

    /// Returns the shape, the chunk shape and the block shape of the array that contains the chunk; `None` if the chunk
    /// is not part of an array.
    ///
    /// A block of an array contains its items in C order, padded to the full block shape. [`Geometry::block_items`]
    /// returns the range of indices of these items on each axis of the array. In C, the shapes are in the metalayer
    /// `b2nd` of the super-chunk; the field `schunk` of `blosc2_cparams` and `blosc2_dparams` points to the
    /// super-chunk.
    pub fn array(&self) -> Option<&'a Geometry> {
        self.facts.chunk.array
    }
}

/// The position of the chunk that closures process. All fields are `None` for a chunk outside a super-chunk.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ChunkPlace<'a> {
    /// The index of the chunk in its super-chunk.
    pub(crate) index: Option<usize>,
    /// The offset of the chunk in the data of the super-chunk, in bytes.
    pub(crate) start: Option<u64>,
    /// The array that contains the chunk.
    pub(crate) array: Option<&'a Geometry>,
}

/// Checks that all items are valid and returns their number.
fn count<T: Element>(bytes: &[u8]) -> Result<usize> {
    let (len, size) = (bytes.len(), size_of::<T>());
    if len.is_multiple_of(size) {
        let detail = "a bool in it is neither 0 nor 1";
        let invalid = || Error::new(ErrorKind::TypeMismatch, VIEW, detail);
        return are_valid::<T>(bytes).then_some(len / size).ok_or_else(invalid);
    }
    let detail =
        format!("{len} bytes are not a multiple of the size of {} ({size} bytes)", T::dtype());
    Err(Error::new(ErrorKind::TypeMismatch, VIEW, detail))
}

/// A user-defined type can require a larger alignment than any primitive type.
fn check_aligned<T: Element>(start: *const T) -> Result<()> {
    if start.is_aligned() {
        return Ok(());
    }
    let detail = format!("{} has to be aligned to {} bytes", T::dtype(), align_of::<T>());
    Err(Error::new(ErrorKind::TypeMismatch, VIEW, detail))
}

/// A block that a prefilter or a postfilter transforms, and the position of the block in the chunk and in the
/// super-chunk.
///
/// A `ChunkBlock` dereferences to a [`FilterBlock`], which provides the input and the output. C:
/// `blosc2_prefilter_params`, `blosc2_postfilter_params`.
///
/// ```
/// use blosc2::user_defined::{BoxError, ChunkBlock};
/// use blosc2::{DParams, NDArray};
///
/// /// Sets each item to the sum of its indices.
/// fn sums(block: &mut ChunkBlock<'_>) -> Result<(), BoxError> {
///     let array = block.array().ok_or("not of an array")?;
///     let chunk = block.chunk_index().ok_or("not of a super-chunk")?;
///     let items = array.block_items(chunk as u64, block.index() as u64)?;
///     let (rows, columns) = (items[0].clone(), items[1].clone());
///     let width = array.block_shape()[1] as usize; // Rows of a block include its padding.
///     let output = block.output_as::<u64>()?;
///     for (row, items) in rows.zip(output.chunks_mut(width)) {
///         for (column, item) in columns.clone().zip(items) {
///             *item = row + column;
///         }
///     }
///     Ok(())
/// }
///
/// let mut array = NDArray::builder().chunk_shape(&[6, 6]).block_shape(&[3, 4]).zeros::<u64>(&[10, 10])?;
/// array.set_dparams(DParams::new().postfilter(sums));
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
    /// Returns the index of the block in its chunk. C: `nblock`.
    #[doc(alias = "nblock")]
    pub fn index(&self) -> usize {
        self.index
    }

    /// Returns the offset of the block in the data of its chunk, in bytes. C: `output_offset`, `offset`.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Returns the offset of the block in the data of the super-chunk, in bytes; `None` for a chunk outside a
    /// super-chunk.
    ///
    /// If the [index of the chunk](FilterBlock::chunk_index) changes after compression, the offset changes too. In an
    /// array, the offset includes the padding of chunks and blocks. C has no equivalent; Python's `offset` counts
    /// items.
    pub fn schunk_offset(&self) -> Option<u64> {
        self.block.facts.chunk.start.map(|start| start.saturating_add(self.offset as u64))
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

/// The position of a block in its chunk.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) index: usize,
    pub(super) offset: usize,
}

/// Runs a closure on a block whose output is zeroed.
pub(super) fn with_block<R>(
    input: &[u8],
    output: &mut [u8],
    facts: Facts<'_>,
    work: impl FnOnce(&mut FilterBlock<'_>) -> Result<R, BoxError>,
) -> Result<R, BoxError> {
    let doing = "run a closure on a block";
    let is_aligned = |bytes: &[u8]| bytes.as_ptr().align_offset(align_of::<u64>()) == 0;
    let words = |len: usize| zeroed::<u64>(len.div_ceil(8)).doing(doing);
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

/// Runs a closure on a block whose output is zeroed, and passes the position of the block.
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
