//! Tensors: arrays as Python's `save_array` and `pack_tensor` store them, in a super-chunk with a shape.

#[cfg(feature = "c")]
mod change;

use std::io::Read;

use crate::blosc2::dtype::Kind;
use crate::blosc2::{Dtype, Element, ErrorKind, Result, SChunk, SChunkReader, Target, Value};

use crate::tag::{error, shortened};

/// The metalayer with kind, shape and dtype.
const NAME: &str = "__pack_tensor__";
/// Maximum number of dimensions, that of TensorFlow. NumPy and PyTorch have lower ones.
const MAX_NDIM: usize = 254;
const OPEN: &str = "open a tensor";

/// A tensor: a super-chunk with the items of an array, and with the shape and the dtype in a metalayer. Python:
/// `save_array`, `save_tensor`, `pack_array2`, `pack_tensor`.
///
/// [`read`](Self::read) returns all items. Python returns an object of the type that was stored: a NumPy array, or a
/// tensor of PyTorch or TensorFlow.
///
/// ```
/// use blosc2_store::Tensor;
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("a.bl2");
/// let items = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0];
/// Tensor::from_slice(&items, &[2, 3])?.save(&path)?; // Python: blosc2.load_array("a.bl2")
/// let tensor = Tensor::open(&path)?;
/// assert_eq!((tensor.kind(), tensor.shape(), tensor.dtype().to_string()), ("numpy", &[2, 3][..], "<f4".to_owned()));
/// assert_eq!(tensor.read::<f32>()?, items);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Tensor {
    kind: String,
    shape: Vec<u64>,
    dtype: Dtype,
    schunk: SChunk,
}

impl Tensor {
    /// Opens a file or a directory for reading. Python: `load_array`, `load_tensor`.
    ///
    /// # Errors
    /// Fails with the errors of [opening a container](crate#opening-a-container).
    pub fn open(target: impl Into<Target>) -> Result<Self> {
        Self::from_schunk(SChunk::open(target)?)
    }

    /// Opens the tensor in a contiguous frame in memory. Python: `unpack_array2`, `unpack_tensor`.
    ///
    /// # Errors
    /// Fails with the errors of [opening a container](crate#opening-a-container).
    pub fn from_cframe(bytes: Vec<u8>) -> Result<Self> {
        Self::from_schunk(SChunk::open(bytes)?)
    }

    /// Opens the tensor in a super-chunk.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidData`]: the metalayer `__pack_tensor__` is missing, or does not match the chunks;
    /// - [`ErrorKind::Unsupported`]: the items are Python objects, stored as pointers.
    pub fn from_schunk(schunk: SChunk) -> Result<Self> {
        let invalid = |detail| error(&schunk, ErrorKind::InvalidData, OPEN, detail);
        let parsed = schunk.vlmeta().value(NAME)?;
        let parsed = parsed.ok_or_else(|| "it is a super-chunk, not a tensor".to_owned());
        let parsed = parsed.and_then(|value| parse(&value));
        let (kind, shape, dtype) = parsed.map_err(invalid)?;
        if dtype.has_pointers() {
            let dtype = shortened(dtype);
            let detail = format!("its dtype is {dtype}: pointers to Python objects, not data");
            return Err(error(&schunk, ErrorKind::Unsupported, OPEN, detail));
        }
        let nbytes = items_in(&shape).and_then(|items| items.checked_mul(dtype.size() as u64));
        if nbytes != Some(schunk.nbytes()) {
            let (found, dtype) = (schunk.nbytes(), shortened(dtype));
            let detail =
                format!("the dtype {dtype} and the shape {shape:?} do not match its {found} bytes");
            return Err(invalid(detail));
        }
        Ok(Self { kind, shape, dtype, schunk })
    }

    pub(crate) fn is_in(schunk: &SChunk) -> bool {
        schunk.vlmeta().contains(NAME)
    }

    /// Returns the Python library of the stored array or tensor: `numpy`, `torch` or `tensorflow`.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Returns the shape.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Returns the dtype.
    pub fn dtype(&self) -> &Dtype {
        &self.dtype
    }

    /// Reads all items, in C order.
    ///
    /// # Errors
    /// - [`ErrorKind::TypeMismatch`]: the dtype of the items differs from `T::dtype()`, for example in its byte order;
    /// - the errors of [reading values](crate#reading-values).
    pub fn read<T: Element>(&self) -> Result<Vec<T>> {
        let wanted = T::dtype();
        if wanted != self.dtype {
            let detail = format!("the items have the dtype {}, expected {wanted}", self.dtype);
            return Err(error(&self.schunk, ErrorKind::TypeMismatch, "read a tensor", detail));
        }
        self.schunk.read(..)
    }

    /// Reads the bytes of all items, in C order and in the byte order of the dtype.
    ///
    /// The limit [`OpenOptions::max_read`](blosc2::OpenOptions::max_read) does not apply to the result. For untrusted
    /// input, use [`read`](Self::read).
    ///
    /// # Errors
    /// Fails with the errors of [reading values](crate#reading-values).
    pub fn read_bytes(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        SChunkReader::new(&self.schunk).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Returns the super-chunk.
    pub fn schunk(&self) -> &SChunk {
        &self.schunk
    }

    /// Converts the tensor into its super-chunk.
    pub fn into_schunk(self) -> SChunk {
        self.schunk
    }
}

fn items_in(shape: &[u64]) -> Option<u64> {
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().try_fold(1u64, |items, &side| items.checked_mul(side))
}

/// Checks the number of dimensions. The error describes the fault.
fn check_ndim(ndim: usize) -> Result<(), String> {
    match ndim <= MAX_NDIM {
        true => Ok(()),
        false => Err(format!("{ndim} dimensions, the maximum is {MAX_NDIM}")),
    }
}

/// Returns kind, shape and dtype, or a message that describes the fault.
fn parse(value: &Value) -> Result<(String, Vec<u64>, Dtype), String> {
    let unlike = || format!("its metalayer `{NAME}` lacks a valid kind, shape or dtype");
    let Some([kind, shape, dtype]) = value.as_list() else { return Err(unlike()) };
    let (Some(kind), Some(shape)) = (kind.as_str(), shape.as_list()) else { return Err(unlike()) };
    check_ndim(shape.len()).map_err(|what| format!("it has {what}"))?;
    let shape: Option<Vec<u64>> = shape.iter().map(Value::as_u64).collect();
    let shape = shape.ok_or_else(unlike)?;
    let mut dtype = dtype.to_dtype().map_err(|error| error.to_string())?;
    if dtype.fields().is_some_and(<[_]>::is_empty) {
        // Python describes raw bytes as a structure with padding only.
        dtype = Dtype::scalar(Kind::Void, dtype.size()).map_err(|error| error.to_string())?;
    }
    Ok((kind.to_owned(), shape, dtype))
}
