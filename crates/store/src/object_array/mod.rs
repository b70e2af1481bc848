//! Object arrays: one value per chunk.

#[cfg(feature = "c")]
mod change;

use crate::blosc2::super_chunk::Metalayers;
use crate::blosc2::{Result, SChunk, Target, Value};

use crate::limits::{decode, max_values_memory};
use crate::tag::tag;

const NAME: &str = "vlarray";
const OPEN: &str = "open an object array";
const MAKE: &str = "create an object array";
const WRITE: &str = "write a value to an object array";

/// An array of values of any type and size. Each value is one chunk. Python: `ObjectArray`, formerly `VLArray`.
///
/// An object array is a super-chunk with the metalayer `vlarray`, in a contiguous file, a directory or in memory. Each
/// value is read and written separately. For many small values, a [`BatchArray`](crate::BatchArray) compresses better.
///
/// ```
/// use blosc2::Value;
/// use blosc2_store::ObjectArray;
///
/// let mut array = ObjectArray::in_memory()?;
/// array.append("a text")?;
/// array.append(&(1.5, [true, false]))?;
/// array.append(&Value::Set(vec![1.into(), 2.into()]))?; // Python: {1, 2}
/// array.set(0, &None::<u8>)?;
/// assert_eq!(array.get(0)?, Value::None);
/// assert_eq!(array.get(1)?.into_type::<(f64, Vec<bool>)>()?, (1.5, vec![true, false]));
/// assert_eq!(array.len(), 3);
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug)]
pub struct ObjectArray {
    schunk: SChunk,
}

impl ObjectArray {
    /// Opens a file or a directory for reading.
    ///
    /// # Errors
    /// Fails with the errors of [opening a container](crate#opening-a-container).
    pub fn open(target: impl Into<Target>) -> Result<Self> {
        Self::from_schunk(SChunk::open(target)?)
    }

    /// Opens the array in a super-chunk.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidData`](blosc2::ErrorKind::InvalidData): the metalayer `vlarray` is missing or invalid;
    /// - [`ErrorKind::Unsupported`](blosc2::ErrorKind::Unsupported): the values are not serialized with msgpack, or the
    ///   format version of the array is newer than this crate supports.
    pub fn from_schunk(schunk: SChunk) -> Result<Self> {
        tag(&schunk, NAME, OPEN)?;
        Ok(Self { schunk })
    }

    /// Returns the super-chunk.
    pub fn schunk(&self) -> &SChunk {
        &self.schunk
    }

    /// Converts the array into its super-chunk.
    pub fn into_schunk(self) -> SChunk {
        self.schunk
    }

    /// Returns the variable-length metalayers.
    pub fn vlmeta(&self) -> Metalayers<'_> {
        self.schunk.vlmeta()
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.schunk.nchunks()
    }

    /// Returns whether the array has no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads a value. Python: `array[index]`.
    ///
    /// # Errors
    /// - [`ErrorKind::OutOfBounds`](blosc2::ErrorKind::OutOfBounds): `index` is not below the number of values;
    /// - the errors of [reading values](crate#reading-values).
    pub fn get(&self, index: usize) -> Result<Value> {
        let bytes = self.schunk.decompress_chunk::<u8>(index)?;
        let max = max_values_memory(&self.schunk, index, bytes.len())?;
        decode(&self.schunk, &bytes, max, || format!("chunk {index}"))
    }

    /// Returns a double-ended iterator over all values. Each step of the iterator reads one value.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Result<Value>> + ExactSizeIterator + '_ {
        (0..self.len()).map(|index| self.get(index))
    }
}
