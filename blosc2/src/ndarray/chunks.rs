//! The chunks of an array and their blocks, with the places of their items.

use std::ops::Range;

use super::NDArray;
use super::gather::READ;
use super::plan::{Plan, block_ranges, c_order, chunk_ranges};
use super::selection::Selection;
use crate::Result;
use crate::element::Element;
use crate::schunk::ChunkInfo;

impl NDArray {
    /// All chunks, in their order, which is the C order of their places. Python's `iterchunks_info`.
    ///
    /// With the feature `rayon`, `par_chunks` goes through them in parallel.
    #[doc(alias = "iterchunks_info")]
    pub fn iter_chunks(
        &self,
    ) -> impl ExactSizeIterator<Item = ArrayChunk<'_>> + DoubleEndedIterator + '_ {
        (0..self.chunk_count()).map(|index| self.array_chunk(index))
    }

    /// All chunks, by rayon's threads.
    #[cfg(feature = "rayon")]
    pub fn par_chunks(
        &self,
    ) -> impl rayon::iter::IndexedParallelIterator<Item = ArrayChunk<'_>> + '_ {
        use rayon::iter::{IntoParallelIterator, ParallelIterator};

        (0..self.chunk_count()).into_par_iter().map(|index| self.array_chunk(index))
    }

    /// The number of chunks.
    pub fn chunk_count(&self) -> usize {
        // There are no more than an index of 2 GiB has places for.
        self.geometry.nchunks() as usize
    }

    /// One chunk, by its index; `None` where there are fewer chunks.
    pub fn chunk(&self, index: usize) -> Option<ArrayChunk<'_>> {
        (index < self.chunk_count()).then(|| self.array_chunk(index))
    }

    /// The indices of the chunks that hold the selected items, in increasing order. Python's `get_slice_nchunks`, C's
    /// `b2nd_get_slice_nchunks`.
    ///
    /// ```
    /// use blosc2::NDArray;
    ///
    /// let array = NDArray::builder().chunks(&[4, 4]).zeros::<u8>(&[8, 8])?;
    /// assert_eq!(array.selected_chunks((5, ..))?, [2, 3]);
    /// assert_eq!(array.selected_chunks((.., [7, 0]))?, [0, 1, 2, 3]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::OutOfBounds`](crate::ErrorKind::OutOfBounds), [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument):
    /// those of [`read`](Self::read) for the selection.
    #[doc(alias("get_slice_nchunks", "b2nd_get_slice_nchunks"))]
    pub fn selected_chunks(&self, selection: impl Into<Selection>) -> Result<Vec<usize>> {
        let region = self.select(&selection.into(), READ)?;
        let strides = c_order(&region.shape(), self.typesize());
        let plan = Plan::new(&self.geometry, &region, &strides);
        let mut chunks: Vec<usize> = (0..plan.nchunks()).map(|at| plan.chunk(at).number).collect();
        chunks.sort_unstable();
        Ok(chunks)
    }

    fn array_chunk(&self, index: usize) -> ArrayChunk<'_> {
        ArrayChunk { array: self, index, ranges: chunk_ranges(&self.geometry, index) }
    }
}

/// A chunk of an array. Made by [`NDArray::iter_chunks`].
///
/// ```
/// use blosc2::NDArray;
///
/// let array = NDArray::builder()
///     .chunks(&[4, 4])
///     .blocks(&[2, 4])
///     .from_slice(&(0..40i32).collect::<Vec<_>>(), &[8, 5])?;
/// let last = array.iter_chunks().next_back().unwrap();
/// assert_eq!((last.index(), last.ranges()), (3, &[4..8, 4..5][..]));
/// assert_eq!(last.coords(), [1, 1]);
/// assert_eq!(last.read::<i32>()?, [24, 29, 34, 39]);
/// assert_eq!(last.blocks().map(|block| block.ranges()[0].clone()).collect::<Vec<_>>(), [4..6, 6..8]);
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct ArrayChunk<'a> {
    array: &'a NDArray,
    index: usize,
    ranges: Vec<Range<u64>>,
}

impl<'a> ArrayChunk<'a> {
    /// Its index in the super-chunk.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Its index along each axis of the grid of chunks. Python's `coords` in `iterchunks_info`.
    pub fn coords(&self) -> Vec<u64> {
        let chunks = self.array.chunks().iter();
        self.ranges.iter().zip(chunks).map(|(range, &size)| range.start / size.max(1)).collect()
    }

    /// Its items along each dimension of the array, padding left out.
    pub fn ranges(&self) -> &[Range<u64>] {
        &self.ranges
    }

    /// What its header says.
    ///
    /// # Errors
    /// As for [`SChunk::chunk_info`](crate::SChunk::chunk_info).
    pub fn info(&self) -> Result<ChunkInfo> {
        self.array.schunk.chunk_info(self.index)
    }

    /// Reads its items, in C order.
    ///
    /// # Errors
    /// As for [`NDArray::read`].
    pub fn read<T: Element>(&self) -> Result<Vec<T>> {
        self.array.read(&self.ranges)
    }

    /// Reads its items of any dtype as they are stored.
    ///
    /// # Errors
    /// As for [`NDArrayBytes::read`](super::NDArrayBytes::read).
    pub fn read_bytes(&self) -> Result<Vec<u8>> {
        self.array.bytes().read(&self.ranges)
    }

    /// Its blocks that have items, in their order, which is the C order of their places.
    pub fn blocks(&self) -> impl Iterator<Item = ArrayBlock<'a>> + use<'a> {
        let (array, chunk) = (self.array, self.clone());
        let geometry = &array.geometry;
        // No more than the bytes of a chunk.
        let blocks = (0..geometry.nblocks() as usize).map(move |index| {
            let ranges = block_ranges(geometry, &chunk.ranges, index);
            ArrayBlock { array, chunk: chunk.index, index, ranges }
        });
        blocks.filter(|block| !block.ranges.iter().any(Range::is_empty))
    }
}

/// A block of a chunk. Made by [`ArrayChunk::blocks`].
#[derive(Debug, Clone)]
pub struct ArrayBlock<'a> {
    array: &'a NDArray,
    chunk: usize,
    index: usize,
    ranges: Vec<Range<u64>>,
}

impl ArrayBlock<'_> {
    /// The index of its chunk in the super-chunk.
    pub fn chunk_index(&self) -> usize {
        self.chunk
    }

    /// Its index in the chunk.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Its items along each dimension of the array, padding left out.
    pub fn ranges(&self) -> &[Range<u64>] {
        &self.ranges
    }

    /// Reads its items, in C order; nothing else of the chunk is decompressed.
    ///
    /// # Errors
    /// As for [`NDArray::read`].
    pub fn read<T: Element>(&self) -> Result<Vec<T>> {
        self.array.read(&self.ranges)
    }

    /// Reads its items of any dtype as they are stored.
    ///
    /// # Errors
    /// As for [`NDArrayBytes::read`](super::NDArrayBytes::read).
    pub fn read_bytes(&self) -> Result<Vec<u8>> {
        self.array.bytes().read(&self.ranges)
    }
}
