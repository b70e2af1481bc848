//! The chunks of an array and their blocks, with the ranges of their items.

use std::ops::Range;

use super::NDArray;
use super::gather::READ;
use super::plan::Plan;
use super::selection::Selection;
use super::transfer::FromItems;
use crate::schunk::ChunkInfo;
use crate::{Doing, Result};

impl NDArray {
    fn nchunks(&self) -> usize {
        // The index, of at most 2 GiB, limits the number of chunks.
        self.geometry.nchunks() as usize
    }

    /// Returns the chunk with this index in C order; `None` if there is no such chunk.
    pub fn chunk(&self, index: usize) -> Option<ArrayChunk<'_>> {
        (index < self.nchunks()).then(|| self.array_chunk(index))
    }

    /// Returns an iterator over the chunks that contain selected items, in C order of their coordinates in the grid of
    /// chunks. `..` selects all chunks. C: `blosc2_get_slice_nchunks`. Python: `get_slice_nchunks`, `iterchunks_info`.
    ///
    /// ```
    /// use blosc2::NDArray;
    ///
    /// let array = NDArray::builder().chunk_shape(&[4, 4]).zeros::<u8>(&[8, 8])?;
    /// let indices = |chunk: blosc2::array::ArrayChunk<'_>| chunk.index();
    /// assert_eq!(array.chunks((5, ..))?.map(indices).collect::<Vec<_>>(), [2, 3]);
    /// assert_eq!(array.chunks(..)?.len(), 4);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// Fails with the [errors of selections](NDArray#errors-of-selections).
    #[doc(alias("get_slice_nchunks", "blosc2_get_slice_nchunks", "iterchunks_info"))]
    pub fn chunks(
        &self,
        selection: impl Into<Selection>,
    ) -> Result<impl ExactSizeIterator<Item = ArrayChunk<'_>> + DoubleEndedIterator> {
        let region = self.view().select(&selection.into()).doing(READ)?.region;
        let indices: Vec<usize> =
            Plan::of_region(&self.geometry, &region).chunk_numbers().collect();
        Ok(indices.into_iter().map(|index| self.array_chunk(index)))
    }

    fn array_chunk(&self, index: usize) -> ArrayChunk<'_> {
        ArrayChunk { array: self, index, ranges: self.geometry.chunk_box(index as u64) }
    }
}

/// A chunk of an array. [`NDArray::chunks`] and [`NDArray::chunk`] return chunks. The methods that read items fail
/// with the [errors of reads](NDArray#errors-of-reads).
///
/// ```
/// use blosc2::NDArray;
///
/// let array = NDArray::builder()
///     .chunk_shape(&[4, 4])
///     .block_shape(&[2, 4])
///     .from_slice(&(0..40i32).collect::<Vec<_>>(), &[8, 5])?;
/// let last = array.chunks(..)?.next_back().unwrap();
/// assert_eq!((last.index(), last.ranges()), (3, &[4..8, 4..5][..]));
/// assert_eq!(last.coords(), [1, 1]);
/// assert_eq!(last.read::<Vec<i32>>()?, [24, 29, 34, 39]);
/// let last_block = last.blocks().last().unwrap();
/// assert_eq!(last_block, [6..8, 4..5]);
/// assert_eq!(array.read::<Vec<i32>>(&last_block)?, [34, 39]);
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct ArrayChunk<'a> {
    array: &'a NDArray,
    index: usize,
    ranges: Vec<Range<u64>>,
}

impl<'a> ArrayChunk<'a> {
    /// Returns the index of the chunk in the super-chunk.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Returns the coordinates of the chunk: its index on each axis of the grid of chunks. Python: `coords` in
    /// `iterchunks_info`.
    pub fn coords(&self) -> Vec<u64> {
        let chunks = self.array.chunk_shape().iter();
        self.ranges.iter().zip(chunks).map(|(range, &size)| range.start / size.max(1)).collect()
    }

    /// Returns the range of array indices of the items on each axis, without padding. The ranges can be a selection, as
    /// in `array.read::<RawItems>(chunk.ranges())`.
    pub fn ranges(&self) -> &[Range<u64>] {
        &self.ranges
    }

    /// Returns the contents of the header of the chunk; see [`SChunk::chunk_info`](crate::SChunk::chunk_info).
    pub fn info(&self) -> Result<ChunkInfo> {
        self.array.schunk.chunk_info(self.index)
    }

    /// Reads the items of the chunk, in C order.
    pub fn read<O: FromItems>(&self) -> Result<O> {
        self.array.read(&self.ranges)
    }

    /// Returns an iterator over the blocks of the chunk, in C order of their coordinates. Blocks that contain only
    /// padding are skipped. A block is the ranges of array indices of its items, without padding: a selection that
    /// decompresses no other block.
    pub fn blocks(&self) -> impl Iterator<Item = Vec<Range<u64>>> + use<'a> {
        let (geometry, chunk) = (&self.array.geometry, self.ranges.clone());
        // A chunk has fewer blocks than bytes.
        let blocks = (0..geometry.nblocks() as usize)
            .map(move |index| geometry.block_box(&chunk, index as u64));
        blocks.filter(|ranges| !ranges.iter().any(Range::is_empty))
    }
}
