//! The chunks of an array and their blocks, with the places of their items.

use std::ops::Range;

use super::NDArray;
use super::plan::{block_ranges, chunk_ranges};
use crate::element::Element;
use crate::{ChunkInfo, Result};

impl NDArray {
    /// All chunks, in their order, which is the C order of their places. Python's `iterchunks_info`.
    ///
    /// With the feature `rayon`, `par_chunks` goes through them in parallel.
    pub fn iter_chunks(
        &self,
    ) -> impl ExactSizeIterator<Item = ArrayChunk<'_>> + DoubleEndedIterator + '_ {
        (0..self.chunk_count()).map(|number| self.array_chunk(number))
    }

    /// All chunks, by rayon's threads.
    #[cfg(feature = "rayon")]
    pub fn par_chunks(
        &self,
    ) -> impl rayon::iter::IndexedParallelIterator<Item = ArrayChunk<'_>> + '_ {
        use rayon::iter::{IntoParallelIterator, ParallelIterator};

        (0..self.chunk_count()).into_par_iter().map(|number| self.array_chunk(number))
    }

    /// The number of chunks.
    pub fn chunk_count(&self) -> usize {
        // There are no more than an index of 2 GiB has places for.
        self.geometry.nchunks() as usize
    }

    /// One chunk; `None` where there is none of this number.
    pub fn chunk(&self, number: usize) -> Option<ArrayChunk<'_>> {
        (number < self.chunk_count()).then(|| self.array_chunk(number))
    }

    fn array_chunk(&self, number: usize) -> ArrayChunk<'_> {
        ArrayChunk { array: self, number, ranges: chunk_ranges(&self.geometry, number) }
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
/// assert_eq!((last.number(), last.ranges()), (3, &[4..8, 4..5][..]));
/// assert_eq!(last.read::<i32>()?, [24, 29, 34, 39]);
/// assert_eq!(last.blocks().map(|block| block.ranges()[0].clone()).collect::<Vec<_>>(), [4..6, 6..8]);
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct ArrayChunk<'a> {
    array: &'a NDArray,
    number: usize,
    ranges: Vec<Range<u64>>,
}

impl<'a> ArrayChunk<'a> {
    /// Its number in the super-chunk.
    pub fn number(&self) -> usize {
        self.number
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
        self.array.schunk.chunk_info(self.number)
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
    /// As for [`NDArray::read_bytes`].
    pub fn read_bytes(&self) -> Result<Vec<u8>> {
        self.array.read_bytes(&self.ranges)
    }

    /// Its blocks that have items, in their order, which is the C order of their places.
    pub fn blocks(&self) -> impl Iterator<Item = ArrayBlock<'a>> + use<'a> {
        let (array, chunk) = (self.array, self.clone());
        let geometry = &array.geometry;
        // No more than the bytes of a chunk.
        let blocks = (0..geometry.nblocks() as usize).map(move |number| {
            let ranges = block_ranges(geometry, &chunk.ranges, number);
            ArrayBlock { array, chunk: chunk.number, number, ranges }
        });
        blocks.filter(|block| !block.ranges.iter().any(Range::is_empty))
    }
}

/// A block of a chunk. Made by [`ArrayChunk::blocks`].
#[derive(Debug, Clone)]
pub struct ArrayBlock<'a> {
    array: &'a NDArray,
    chunk: usize,
    number: usize,
    ranges: Vec<Range<u64>>,
}

impl ArrayBlock<'_> {
    /// The number of its chunk.
    pub fn chunk(&self) -> usize {
        self.chunk
    }

    /// Its number in the chunk.
    pub fn number(&self) -> usize {
        self.number
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
    /// As for [`NDArray::read_bytes`].
    pub fn read_bytes(&self) -> Result<Vec<u8>> {
        self.array.read_bytes(&self.ranges)
    }
}
