//! The decompressed blocks of a chunk.

use std::iter::FusedIterator;

/// The decompressed blocks of a chunk, in one buffer; see [`Chunk::blocks`](crate::Chunk::blocks).
///
/// ```
/// use blosc2::{CParams, Compressor};
///
/// let words = [b"one".as_slice(), b"twenty", b"three"];
/// let chunk = Compressor::new(&CParams::default())?.compress_blocks(&words)?;
/// let blocks = chunk.blocks()?;
/// assert_eq!((blocks.len(), blocks.get(1)), (3, Some(words[1])));
/// assert!(blocks.iter().eq(words));
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Blocks {
    data: Vec<u8>,
    cut: Cut,
}

/// Where blocks end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Cut {
    /// After each multiple of this many bytes.
    Every(usize),
    /// At these offsets.
    At(Vec<usize>),
}

impl Blocks {
    pub(super) fn new(data: Vec<u8>, cut: Cut) -> Self {
        Self { data, cut }
    }

    /// Returns the number of blocks.
    pub fn len(&self) -> usize {
        match &self.cut {
            Cut::Every(len) => self.data.len().div_ceil((*len).max(1)),
            Cut::At(ends) => ends.len(),
        }
    }

    /// Returns whether there are no blocks, as in a chunk without data.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes of a block; `None` if there is no block with this index.
    pub fn get(&self, block: usize) -> Option<&[u8]> {
        let (start, end) = match &self.cut {
            Cut::Every(len) => {
                let start = block.checked_mul(*len).filter(|&start| start < self.data.len())?;
                (start, self.data.len().min(start + len))
            }
            Cut::At(ends) => {
                let start = block.checked_sub(1).map_or(Some(&0), |before| ends.get(before))?;
                (*start, *ends.get(block)?)
            }
        };
        self.data.get(start..end)
    }

    /// Iterates over the blocks, in order.
    pub fn iter(&self) -> impl FusedIterator<Item = &[u8]> + DoubleEndedIterator + '_ {
        (0..self.len()).map(|block| self.get(block).unwrap_or_default())
    }

    /// Returns the bytes of all blocks, one block after the other.
    pub fn as_bytes(&self) -> &[u8] {
        &self.data
    }

    /// Returns the bytes of all blocks as a vector, without a copy.
    pub fn into_bytes(self) -> Vec<u8> {
        self.data
    }
}

impl std::fmt::Debug for Blocks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (len, nbytes) = (self.len(), self.data.len());
        f.debug_struct("Blocks").field("len", &len).field("nbytes", &nbytes).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_where_they_were_cut() {
        let bytes = || (0..7).collect::<Vec<u8>>();
        let even = Blocks::new(bytes(), Cut::Every(3));
        assert!(even.iter().eq([&[0, 1, 2][..], &[3, 4, 5], &[6]]));
        assert_eq!((even.get(3), even.get(usize::MAX)), (None, None));
        let uneven = Blocks::new(bytes(), Cut::At(vec![1, 5, 7]));
        assert!(uneven.iter().rev().eq([&[5, 6][..], &[1, 2, 3, 4], &[0]]));
        assert_eq!((uneven.get(3), uneven.get(usize::MAX)), (None, None));
        for cut in [Cut::Every(0), Cut::Every(4), Cut::At(Vec::new())] {
            let none = Blocks::new(Vec::new(), cut);
            assert!(none.is_empty() && none.get(0).is_none());
        }
    }
}
