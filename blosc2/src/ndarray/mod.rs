//! N-dimensional arrays: a super-chunk with shapes.

mod builder;
mod geometry;
mod partition;
mod read;

use std::path::Path;

use blosc2_format::b2nd::{Meta, NAME, OLD_NAME};

use crate::{CParams, DParams, Element, Error, ErrorKind, Result, SChunk};

pub use builder::NDArrayBuilder;
use geometry::Geometry;

/// An n-dimensional array of items, compressed chunk by chunk. C's `b2nd_array_t`, Python's
/// `NDArray`.
///
/// The array is cut into chunks and the chunks into blocks; reading a box decompresses only the
/// blocks that it touches. Reading takes `&self` and may happen on many threads at once.
///
/// ```
/// use blosc2::NDArray;
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("squares.b2nd");
/// let squares: Vec<i64> = (0..100).map(|i| i * i).collect();
/// NDArray::from_slice(&squares, &[10, 10])?.save(&path)?;
///
/// let array = NDArray::open(&path)?;
/// assert_eq!(array.shape(), [10, 10]);
/// assert_eq!(array.read::<i64>(&[9..10, 8..10])?, [9604, 9801]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct NDArray {
    schunk: SChunk,
    geometry: Geometry,
    dtype: Option<String>,
}

impl NDArray {
    /// Opens an array in a file or a directory for reading. C's `b2nd_open`, Python's `blosc2.open`.
    ///
    /// # Errors
    /// - [`ErrorKind::NotFound`], [`ErrorKind::Io`]: it cannot be read;
    /// - [`ErrorKind::InvalidData`]: it is no frame, is a frame but no array, was cut short, or is
    ///   broken.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::from_schunk(SChunk::open(path)?)
    }

    /// Takes a super-chunk that holds an array. C's `b2nd_from_schunk`.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidData`]: it has no metalayer `b2nd`, or one that does not fit its chunks.
    pub fn from_schunk(schunk: SChunk) -> Result<Self> {
        let doing = "open an array";
        let meta = match schunk.meta().get(NAME)? {
            Some(content) => Some(content),
            None => schunk.meta().get(OLD_NAME)?,
        };
        let invalid = |detail: String| schunk.error(ErrorKind::InvalidData, doing, detail);
        let Some(meta) = meta else {
            return Err(invalid("it is a super-chunk without the shapes of an array".to_owned()));
        };
        let meta =
            Meta::parse(&meta).map_err(|error| schunk.at(Error::from_format(doing, error)))?;
        // Parsed sizes are never negative.
        let sizes = |sizes: &[i32]| -> Vec<u64> { sizes.iter().map(|&size| size as u64).collect() };
        let shape: Vec<u64> = meta.shape.iter().map(|&size| size as u64).collect();
        let (chunks, blocks) = (sizes(&meta.chunks), sizes(&meta.blocks));
        let geometry = Geometry::new(&shape, &chunks, &blocks, schunk.typesize(), doing)
            .map_err(|error| invalid(error.to_string()))?;
        let (nchunks, chunksize) = (schunk.nchunks(), schunk.chunksize());
        if nchunks != geometry.nchunks {
            let expected = geometry.nchunks;
            return Err(invalid(format!(
                "its shape has {expected} chunks, the frame has {nchunks}"
            )));
        }
        if nchunks > 0 && chunksize != geometry.chunk_len {
            let expected = geometry.chunk_len;
            return Err(invalid(format!(
                "a chunk of its shape has {expected} bytes, one of the frame {chunksize}"
            )));
        }
        Ok(Self { schunk, geometry, dtype: meta.dtype })
    }

    /// Makes an array in memory of items in C order, with automatic chunks and blocks. Python's
    /// `asarray`.
    ///
    /// # Errors
    /// As for [`NDArrayBuilder::from_slice`].
    pub fn from_slice<T: Element>(items: &[T], shape: &[u64]) -> Result<Self> {
        Self::builder().from_slice(items, shape)
    }

    /// What an array is to be like, to make one.
    pub fn builder() -> NDArrayBuilder {
        NDArrayBuilder::default()
    }

    /// Number of items along each dimension.
    pub fn shape(&self) -> &[u64] {
        &self.geometry.shape
    }

    /// Number of dimensions; 0 for a single item.
    pub fn ndim(&self) -> usize {
        self.geometry.ndim()
    }

    /// Items of a chunk along each dimension.
    pub fn chunks(&self) -> &[u64] {
        &self.geometry.chunks
    }

    /// Items of a block along each dimension.
    pub fn blocks(&self) -> &[u64] {
        &self.geometry.blocks
    }

    /// The dtype as the file has it, in NumPy's notation; old files have none.
    ///
    /// It is not always true: two of C-Blosc2's own files say `|u1` of items of 4 bytes. Sizes come
    /// from [`typesize`](Self::typesize).
    pub fn dtype(&self) -> Option<&str> {
        self.dtype.as_deref()
    }

    /// Bytes of an item.
    pub fn typesize(&self) -> usize {
        self.geometry.typesize
    }

    /// Number of items.
    pub fn len(&self) -> u64 {
        self.geometry.shape.iter().product()
    }

    /// Whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.geometry.shape.contains(&0)
    }

    /// The super-chunk that holds the array.
    pub fn schunk(&self) -> &SChunk {
        &self.schunk
    }

    /// Gives back the super-chunk that holds the array.
    pub fn into_schunk(self) -> SChunk {
        self.schunk
    }

    /// Sets how chunks are decompressed from now on.
    pub fn set_dparams(&mut self, params: DParams) {
        self.schunk.set_dparams(params);
    }

    /// How the chunks are compressed. The block size is that of the block shape.
    pub fn cparams(&self) -> CParams {
        self.schunk.cparams()
    }

    /// Writes the array to a new contiguous file, chunks as they are. C's `b2nd_save`.
    ///
    /// The file appears when it is complete.
    ///
    /// # Errors
    /// - [`ErrorKind::AlreadyExists`]: there is something at `path`; it is left alone;
    /// - [`ErrorKind::NotFound`], [`ErrorKind::Io`]: the file cannot be made.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        self.schunk.save(path)
    }
}
