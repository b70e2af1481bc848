//! What an array is like, in one place.

use std::fmt;

use super::NDArray;
use crate::CParams;
use crate::schunk::write_storage;

/// What an array is like: as data, and by `Display` as text. Made by [`NDArray::info`]. Python's `array.info`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ArrayInfo {
    /// Number of items along each dimension.
    pub shape: Vec<u64>,
    /// Items of a chunk along each dimension.
    pub chunks: Vec<u64>,
    /// Items of a block along each dimension.
    pub blocks: Vec<u64>,
    /// The shape padded to whole chunks. C's `extshape`, Python's `ext_shape`.
    pub ext_shape: Vec<u64>,
    /// The chunk shape padded to whole blocks. C's `extchunkshape`, Python's `ext_chunks`.
    pub ext_chunks: Vec<u64>,
    /// The dtype as the file has it.
    pub dtype: Option<String>,
    /// Bytes of an item.
    pub typesize: usize,
    /// Bytes of all items, without padding.
    pub nbytes: u64,
    /// Bytes of all chunks when compressed.
    pub cbytes: u64,
    /// The bytes of the chunks, padding included, for each compressed byte; 0 if there are none.
    pub cratio: f64,
    /// Number of chunks.
    pub nchunks: usize,
    /// How the chunks are compressed.
    pub cparams: CParams,
}

impl NDArray {
    /// What the array is like.
    ///
    /// ```
    /// use blosc2::NDArray;
    ///
    /// let info = NDArray::from_slice(&[0.5f64; 600], &[20, 30])?.info();
    /// assert_eq!((info.nchunks, info.typesize), (1, 8));
    /// assert!(info.to_string().starts_with("shape   [20, 30]\n"));
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    pub fn info(&self) -> ArrayInfo {
        let (schunk, geometry) = (&self.schunk, &self.geometry);
        let padded = |grid: &[u64], inner: &[u64]| {
            grid.iter().zip(inner).map(|(n, side)| n * side).collect()
        };
        ArrayInfo {
            shape: self.shape().to_vec(),
            chunks: self.chunks().to_vec(),
            blocks: self.blocks().to_vec(),
            ext_shape: padded(geometry.chunk_grid(), self.chunks()),
            ext_chunks: padded(geometry.block_grid(), self.blocks()),
            dtype: self.dtype_str().map(str::to_owned),
            typesize: self.typesize(),
            nbytes: self.nbytes(),
            cbytes: schunk.cbytes(),
            cratio: schunk.cratio(),
            nchunks: schunk.nchunks(),
            cparams: self.cparams(),
        }
    }
}

impl fmt::Display for ArrayInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "shape   {:?}", self.shape)?;
        writeln!(f, "chunks  {:?}", self.chunks)?;
        writeln!(f, "blocks  {:?}", self.blocks)?;
        writeln!(f, "dtype   {}", self.dtype.as_deref().unwrap_or("none"))?;
        write_storage(f, (self.nbytes, self.cbytes, self.cratio), self.nchunks, &self.cparams)
    }
}
