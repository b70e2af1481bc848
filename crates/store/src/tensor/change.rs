//! Creating and saving tensors.

use std::borrow::Borrow;

use crate::blosc2::{CParams, Element, Error, ErrorKind, Result, SChunk, Target, Value};

use super::{NAME, Tensor, check_ndim, items_in};

/// Maximum bytes of a chunk, as in Python.
const MAX_CHUNK: usize = 256 << 20;

impl Tensor {
    /// Creates a tensor in memory from items in C order, with the default compression parameters of Python.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: the number of items does not match the shape; the shape has more than 254
    ///   dimensions; or the metalayer cannot describe the dtype, for example a sub-array, see [`Value::from_dtype`];
    /// - [`ErrorKind::Unsupported`]: this build does not have the codec.
    pub fn from_slice<T: Element>(items: &[T], shape: &[u64]) -> Result<Self> {
        Self::from_slice_with(items, shape, CParams::default())
    }

    /// Creates a tensor in memory from items in C order, with the given compression parameters.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: a parameter is out of range;
    /// - [`ErrorKind::Unsupported`]: this build does not have the codec or a filter;
    /// - the errors of [`from_slice`](Self::from_slice).
    pub fn from_slice_with<T: Element>(
        items: &[T],
        shape: &[u64],
        params: impl Borrow<CParams>,
    ) -> Result<Self> {
        let invalid = |detail| Error::new(ErrorKind::InvalidArgument, "create a tensor", detail);
        check_ndim(shape.len()).map_err(invalid)?;
        if items_in(shape) != Some(items.len() as u64) {
            return Err(invalid(format!(
                "the shape {shape:?} does not match {} items",
                items.len()
            )));
        }
        let dtype = T::dtype();
        let kind = "numpy".to_owned();
        let sides = shape.iter().map(|&side| side.into()).collect();
        let described = [kind.as_str().into(), Value::Tuple(sides), Value::from_dtype(&dtype)?];
        let mut schunk = SChunk::in_memory::<T>(params)?;
        for chunk in items.chunks((MAX_CHUNK / size_of::<T>().max(1)).max(1)) {
            schunk.append(chunk)?;
        }
        schunk.vlmeta_mut().set_value(NAME, &Value::Tuple(described.into()))?;
        Ok(Self { kind, shape: shape.to_vec(), dtype, schunk })
    }

    /// Saves the tensor to a new contiguous file. Python: `save_array`, `save_tensor`.
    ///
    /// # Errors
    /// - [`ErrorKind::AlreadyExists`]: the path exists; it is not changed;
    /// - [`ErrorKind::NotFound`], [`ErrorKind::Io`]: the file cannot be created;
    /// - [`ErrorKind::InvalidData`]: a chunk is damaged;
    /// - [`ErrorKind::Unsupported`]: a chunk is in the Blosc1 format.
    pub fn save(&self, target: impl Into<Target>) -> Result<()> {
        self.schunk.save(target)
    }

    /// Serializes the tensor to a contiguous frame in memory. Python: `pack_tensor`, `pack_array2`.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidData`]: a chunk is damaged;
    /// - [`ErrorKind::Unsupported`]: a chunk is in the Blosc1 format;
    /// - [`ErrorKind::Io`]: the file cannot be read.
    pub fn to_cframe(&self) -> Result<Vec<u8>> {
        self.schunk.to_cframe()
    }
}
