//! A summary of an array: shapes, dtype, sizes and compression parameters.

use std::fmt;

use super::{NDArray, NUMPY_FORMAT};
use crate::schunk::write_storage;
use crate::{CParams, DParams};

/// A summary of an array: its shapes, dtype, sizes and compression parameters. [`NDArray::info`] returns a summary.
/// `Display` formats the summary as a table. Python: `array.info`.
///
/// ```
/// use blosc2::NDArray;
///
/// let info = NDArray::builder().chunk_shape((4, 4)).block_shape((2, 4)).zeros::<f32>((6, 4))?.info();
/// assert_eq!((info.nchunks, info.nbytes), (2, 96));
/// assert_eq!(info.ext_shape, [8, 4]);
/// assert!(info.to_string().starts_with("shape   [6, 4]\n"));
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ArrayInfo {
    /// The number of items on each axis.
    pub shape: Vec<u64>,
    /// The number of items of a chunk on each axis.
    pub chunk_shape: Vec<u64>,
    /// The number of items of a block on each axis.
    pub block_shape: Vec<u64>,
    /// The shape after padding to complete chunks. C: `extshape`. Python: `ext_shape`.
    pub ext_shape: Vec<u64>,
    /// The chunk shape after padding to complete blocks. C: `extchunkshape`. Python: `ext_chunks`.
    pub ext_chunks: Vec<u64>,
    /// The stored text of the dtype; `None` if the file stores no dtype.
    pub dtype: Option<String>,
    /// The number of the notation of this text. 0 is NumPy's notation, the only notation that Python reads.
    /// [`NDArrayBuilder::dtype_format`](crate::NDArrayBuilder::dtype_format) sets the number of a new array.
    pub dtype_format: u8,
    /// The size of an item in bytes.
    pub typesize: usize,
    /// The uncompressed size of all items in bytes, without padding.
    pub nbytes: u64,
    /// The compressed size of all chunks in bytes. Special chunks of zeros, NaN or uninitialized items have size 0. In a
    /// contiguous frame, the size includes gaps: unused bytes that earlier changes created between the chunks.
    pub cbytes: u64,
    /// The compression ratio: the uncompressed size of the chunks, including padding, divided by `cbytes`; 0 if
    /// `cbytes` is 0.
    pub cratio: f64,
    /// The number of chunks.
    pub nchunks: usize,
    /// The compression parameters of new chunks, without a prefilter; see
    /// [`SChunkInfo::cparams`](crate::super_chunk::SChunkInfo::cparams). The block shape determines the block size.
    pub cparams: CParams,
    /// The decompression parameters, without a postfilter.
    pub dparams: DParams,
}

impl NDArray {
    pub(super) fn dtype_format(&self) -> u8 {
        self.dtype.as_ref().map_or(NUMPY_FORMAT, |dtype| dtype.format)
    }

    /// Returns a summary of the array; for an example, see [`ArrayInfo`].
    #[doc(alias("nbytes", "cbytes", "cratio", "cparams", "dparams", "b2nd_print_meta"))]
    pub fn info(&self) -> ArrayInfo {
        let (schunk, geometry) = (self.schunk.info(), &self.geometry);
        let padded = |grid: &[u64], inner: &[u64]| {
            grid.iter().zip(inner).map(|(n, side)| n * side).collect()
        };
        ArrayInfo {
            shape: self.shape().to_vec(),
            chunk_shape: self.chunk_shape().to_vec(),
            block_shape: self.block_shape().to_vec(),
            ext_shape: padded(geometry.chunk_grid(), self.chunk_shape()),
            ext_chunks: padded(geometry.block_grid(), self.block_shape()),
            dtype: self.dtype_str().map(str::to_owned),
            dtype_format: self.dtype_format(),
            typesize: self.typesize(),
            // There are fewer than 2^28 chunks of fewer than 2^31 bytes.
            nbytes: self.len() * self.typesize() as u64,
            cbytes: schunk.cbytes,
            cratio: schunk.cratio,
            nchunks: schunk.nchunks,
            cparams: schunk.cparams,
            dparams: schunk.dparams,
        }
    }
}

impl fmt::Display for ArrayInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "shape   {:?}", self.shape)?;
        writeln!(f, "chunks  {:?}", self.chunk_shape)?;
        writeln!(f, "blocks  {:?}", self.block_shape)?;
        writeln!(f, "dtype   {}", self.dtype.as_deref().unwrap_or("none"))?;
        write_storage(f, (self.nbytes, self.cbytes, self.cratio), self.nchunks, &self.cparams)
    }
}
