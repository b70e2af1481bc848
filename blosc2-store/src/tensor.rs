//! Arrays and tensors as Python's `save_array` and `pack_tensor` keep them: a super-chunk and a shape.

use std::borrow::Borrow;
use std::io::Read;
use std::path::Path;

use blosc2::{CParams, Dtype, Element, Error, ErrorKind, Result, SChunk, Value};

use crate::tag::error;

/// The metalayer that says so.
const NAME: &str = "__pack_tensor__";
/// Bytes of a chunk at most, Python's.
const MAX_CHUNK: usize = 256 << 20;
const OPEN: &str = "open a tensor";

/// An array or tensor in a plain super-chunk: Python's `save_array`, `save_tensor`, `pack_array2`, `pack_tensor`.
///
/// All of it is meant to be read at once. Python gives what it was made of: an array of NumPy's, or a tensor of
/// PyTorch or TensorFlow.
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
    /// Opens a file or a directory for reading. Python's `load_array` and `load_tensor`.
    ///
    /// # Errors
    /// As for [`SChunk::open`] and [`from_schunk`](Self::from_schunk).
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::from_schunk(SChunk::open(path)?)
    }

    /// Takes a frame in memory. Python's `unpack_array2` and `unpack_tensor`.
    ///
    /// # Errors
    /// As for [`SChunk::from_cframe`] and [`from_schunk`](Self::from_schunk).
    pub fn from_cframe(bytes: Vec<u8>) -> Result<Self> {
        Self::from_schunk(SChunk::from_cframe(bytes)?)
    }

    /// Takes a super-chunk that holds a tensor.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidData`]: it has no metalayer `__pack_tensor__`, or one that does not fit its chunks;
    /// - [`ErrorKind::Unsupported`]: objects of Python's, of which a file holds no more than pointers.
    pub fn from_schunk(schunk: SChunk) -> Result<Self> {
        let invalid = |detail| error(&schunk, ErrorKind::InvalidData, OPEN, detail);
        let parsed = schunk.vlmeta().value(NAME)?;
        let parsed = parsed.ok_or_else(|| "it is a super-chunk, no tensor".to_owned());
        let parsed = parsed.and_then(|value| parse(&value));
        let (kind, shape, dtype) = parsed.map_err(invalid)?;
        if dtype.has_pointers() {
            let detail = format!("its dtype is {dtype}: objects of Python's, which no other reads");
            return Err(error(&schunk, ErrorKind::Unsupported, OPEN, detail));
        }
        let nbytes = items_in(&shape).and_then(|items| items.checked_mul(dtype.size() as u64));
        if nbytes != Some(schunk.nbytes()) {
            let found = schunk.nbytes();
            let detail =
                format!("items of {dtype} in the shape {shape:?} are not its {found} bytes");
            return Err(invalid(detail));
        }
        Ok(Self { kind, shape, dtype, schunk })
    }

    /// Whether a super-chunk holds a tensor.
    pub(crate) fn is_in(schunk: &SChunk) -> bool {
        schunk.vlmeta().contains(NAME)
    }

    /// Compresses items in C order into memory, as Python does by default.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`]: not as many items as the shape says.
    pub fn from_slice<T: Element>(items: &[T], shape: &[u64]) -> Result<Self> {
        Self::from_slice_with(items, shape, CParams::default())
    }

    /// The same with other parameters.
    ///
    /// # Errors
    /// As for [`from_slice`](Self::from_slice) and [`SChunk::in_memory`].
    pub fn from_slice_with<T: Element>(
        items: &[T],
        shape: &[u64],
        params: impl Borrow<CParams>,
    ) -> Result<Self> {
        let invalid = |detail| Error::new(ErrorKind::InvalidArgument, "make a tensor", detail);
        if items_in(shape) != Some(items.len() as u64) {
            return Err(invalid(format!("{} items for the shape {shape:?}", items.len())));
        }
        let dtype = T::dtype();
        let kind = "numpy".to_owned();
        let sides = shape.iter().map(|&side| side.into()).collect();
        let described = [kind.as_str().into(), Value::Tuple(sides), Value::from_dtype(&dtype)?];
        let mut schunk = SChunk::in_memory::<T>(params)?;
        for chunk in items.chunks(MAX_CHUNK / size_of::<T>().max(1)) {
            schunk.append(chunk)?;
        }
        schunk.vlmeta_mut().set_value(NAME, &Value::Tuple(described.into()))?;
        Ok(Self { kind, shape: shape.to_vec(), dtype, schunk })
    }

    /// What Python makes of it: `numpy`, `torch` or `tensorflow`.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Items along each dimension.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The type of the items.
    pub fn dtype(&self) -> &Dtype {
        &self.dtype
    }

    /// All items, in C order.
    ///
    /// # Errors
    /// - [`ErrorKind::TypeMismatch`]: `T` is not the type of the items, in this machine's byte order;
    /// - as for [`SChunk::items`].
    pub fn read<T: Element>(&self) -> Result<Vec<T>> {
        let wanted = T::dtype();
        if wanted != self.dtype {
            let detail = format!("items are {}, not {wanted}", self.dtype);
            return Err(error(&self.schunk, ErrorKind::TypeMismatch, "read a tensor", detail));
        }
        self.schunk.items(..)
    }

    /// The bytes of all items, in C order and as the dtype says.
    ///
    /// # Errors
    /// As for [`SChunk::items`].
    pub fn read_bytes(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.schunk.reader().read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Writes it to a new file. Python's `save_array`.
    ///
    /// # Errors
    /// As for [`SChunk::save`].
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        self.schunk.save(path)
    }

    /// All of it in one buffer. Python's `pack_tensor` and `pack_array2`.
    ///
    /// # Errors
    /// As for [`SChunk::to_cframe`].
    pub fn to_cframe(&self) -> Result<Vec<u8>> {
        self.schunk.to_cframe()
    }

    /// The super-chunk.
    pub fn schunk(&self) -> &SChunk {
        &self.schunk
    }

    /// The super-chunk.
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

/// Kind, shape and dtype. The error is what it is instead.
fn parse(value: &Value) -> Result<(String, Vec<u64>, Dtype), String> {
    let unlike = || format!("its metalayer `{NAME}` has no kind, shape and dtype");
    let Some([kind, shape, dtype]) = value.as_list() else { return Err(unlike()) };
    let shape = shape.as_list().and_then(|shape| shape.iter().map(Value::as_u64).collect());
    let (Some(kind), Some(shape)) = (kind.as_str(), shape) else { return Err(unlike()) };
    let dtype = dtype.to_dtype().map_err(|error| error.to_string())?;
    Ok((kind.to_owned(), shape, dtype))
}
