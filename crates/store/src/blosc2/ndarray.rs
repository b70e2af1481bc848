//! Arrays: items in chunks and blocks.

use std::ops::{Range, RangeFrom, RangeFull, RangeTo};

use blosc2_format::b2nd::Geometry;
use blosc2_format::dtype::SwapPlan;

use super::element::items_of;
use super::super_chunk::{ChunkInfo, Metalayers};
use super::{Dtype, Element, Error, ErrorKind, Result, SChunk};

const OPEN: &str = "open an array";
const READ: &str = "read from an array";

/// An array that is open for reading.
#[derive(Debug)]
pub struct NDArray {
    schunk: SChunk,
    geometry: Geometry,
    text: Option<String>,
    dtype: Option<Dtype>,
    dparams: DParams,
}

/// The parameters of reads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DParams {
    convert: bool,
}

impl DParams {
    /// Sets whether reads convert items to the native byte order.
    pub fn convert_byte_order(self, convert: bool) -> Self {
        Self { convert }
    }
}

/// A summary of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ArrayInfo {
    /// The parameters of reads.
    pub dparams: DParams,
}

/// The bytes of items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawItems<B = Vec<u8>>(pub B);

/// What a read returns: a vector of items, or [`RawItems`].
pub trait FromItems: Sized {
    /// Checks the dtype of the array. The error is the expected dtype.
    fn check(dtype: Option<&Dtype>) -> Result<(), Dtype>;

    /// Creates the result from the bytes of the items.
    fn of(bytes: Vec<u8>) -> Self;
}

impl FromItems for RawItems {
    fn check(_: Option<&Dtype>) -> Result<(), Dtype> {
        Ok(())
    }

    fn of(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl<T: Element> FromItems for Vec<T> {
    fn check(dtype: Option<&Dtype>) -> Result<(), Dtype> {
        if dtype == Some(&T::dtype()) { Ok(()) } else { Err(T::dtype()) }
    }

    fn of(bytes: Vec<u8>) -> Self {
        items_of(&bytes)
    }
}

/// The items of a read: one range for each axis. Axes without a range are read completely.
#[derive(Debug, Clone)]
pub struct Selection(Vec<(u64, Option<u64>)>);

macro_rules! from_ranges {
    ($($type:ty, $range:ident => $ranges:expr;)*) => {
        $(impl From<$type> for Selection {
            fn from($range: $type) -> Self {
                Self($ranges)
            }
        })*
    };
}

from_ranges! {
    RangeFull, _range => Vec::new();
    Range<u64>, range => vec![(range.start, Some(range.end))];
    RangeFrom<u64>, range => vec![(range.start, None)];
    RangeTo<u64>, range => vec![(0, Some(range.end))];
    &[Range<u64>], ranges => ranges.iter().map(|range| (range.start, Some(range.end))).collect();
}

impl<const N: usize> From<[Range<u64>; N]> for Selection {
    fn from(ranges: [Range<u64>; N]) -> Self {
        ranges[..].into()
    }
}

impl From<Vec<Range<u64>>> for Selection {
    fn from(ranges: Vec<Range<u64>>) -> Self {
        ranges[..].into()
    }
}

/// A chunk of an array.
#[derive(Debug, Clone, Copy)]
pub struct ArrayChunk<'a> {
    schunk: &'a SChunk,
    index: usize,
}

impl ArrayChunk<'_> {
    /// Returns the header of the chunk.
    ///
    /// # Errors
    /// Fails with the errors of [reading values](crate#reading-values).
    pub fn info(&self) -> Result<ChunkInfo> {
        self.schunk.chunk_info(self.index)
    }
}

impl NDArray {
    /// Converts a super-chunk to the array that it contains.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidData`]: the super-chunk has no metalayer `b2nd`, or the metalayer does not match the
    ///   chunks;
    /// - [`ErrorKind::Unsupported`]: the super-chunk is a Python object without data, or the items are pointers to
    ///   Python objects.
    pub fn from_schunk(schunk: SChunk) -> Result<Self> {
        if let Some(name) = schunk.info().python_object {
            let detail = format!("its metalayer `{name}` marks a Python object without data");
            return Err(schunk.error(ErrorKind::Unsupported, OPEN, detail));
        }
        let array = schunk.reader().frame().array();
        let array = array.map_err(|error| schunk.failed(OPEN, error))?;
        let Some((meta, geometry)) = array else {
            let detail = "it is a super-chunk, not an array";
            return Err(schunk.error(ErrorKind::InvalidData, OPEN, detail));
        };
        let dtype = meta.dtype.as_deref().filter(|_| meta.dtype_format == 0);
        let dtype = dtype.and_then(|text| Dtype::parse(text).ok());
        if let Some(dtype) = dtype.as_ref().filter(|dtype| dtype.has_pointers()) {
            let detail = format!("its items `{dtype}` are pointers to Python objects, not data");
            return Err(schunk.error(ErrorKind::Unsupported, OPEN, detail));
        }
        Ok(Self { schunk, geometry, text: meta.dtype, dtype, dparams: DParams::default() })
    }

    /// Opens an array.
    ///
    /// # Errors
    /// Fails with the errors of [`from_schunk`](Self::from_schunk), and of
    /// [opening a container](crate#opening-a-container).
    pub fn open(target: impl Into<super::Target>) -> Result<Self> {
        Self::from_schunk(SChunk::open(target)?)
    }

    /// Returns the number of items on each axis.
    pub fn shape(&self) -> &[u64] {
        self.geometry.shape()
    }

    /// Returns the number of dimensions.
    pub fn ndim(&self) -> usize {
        self.shape().len()
    }

    /// Returns the number of items.
    pub fn len(&self) -> u64 {
        self.geometry.len()
    }

    /// Returns whether the array has no items.
    pub fn is_empty(&self) -> bool {
        self.geometry.is_empty()
    }

    /// Returns the number of items of a chunk on each axis.
    pub fn chunk_shape(&self) -> &[u64] {
        self.geometry.chunk_shape()
    }

    /// Returns the number of items of a block on each axis.
    pub fn block_shape(&self) -> &[u64] {
        self.geometry.block_shape()
    }

    /// Returns the layout of the items in chunks and blocks.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Returns the dtype of the items that reads return; `None` if the file stores none, or one that is not known.
    pub fn dtype(&self) -> Option<&Dtype> {
        self.dtype.as_ref()
    }

    /// Returns the stored text of the dtype.
    pub fn dtype_str(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// Returns the size of an item in bytes.
    pub fn typesize(&self) -> usize {
        self.geometry.typesize()
    }

    /// Returns the super-chunk.
    pub fn schunk(&self) -> &SChunk {
        &self.schunk
    }

    /// Converts the array to its super-chunk.
    pub fn into_schunk(self) -> SChunk {
        self.schunk
    }

    /// Returns the fixed-length metalayers.
    pub fn meta(&self) -> Metalayers<'_> {
        self.schunk.meta()
    }

    /// Returns the variable-length metalayers.
    pub fn vlmeta(&self) -> Metalayers<'_> {
        self.schunk.vlmeta()
    }

    /// Returns a summary.
    pub fn info(&self) -> ArrayInfo {
        ArrayInfo { dparams: self.dparams }
    }

    /// Sets the parameters of reads.
    pub fn set_dparams(&mut self, dparams: DParams) {
        self.dparams = dparams;
        let text = self.text.as_deref().and_then(|text| Dtype::parse(text).ok());
        self.dtype = text.map(|dtype| if dparams.convert { dtype.to_native() } else { dtype });
    }

    /// Returns the chunk at an index, or `None` if there is none.
    pub fn chunk(&self, index: usize) -> Option<ArrayChunk<'_>> {
        (index < self.schunk.nchunks()).then_some(ArrayChunk { schunk: &self.schunk, index })
    }

    /// Reads one item.
    ///
    /// # Errors
    /// Fails with the errors of [`read`](Self::read).
    pub fn item<T: Element>(&self, index: impl IntoIterator<Item = u64>) -> Result<T> {
        let ranges = index.into_iter().map(|index| index..index.saturating_add(1));
        let items = self.read::<Vec<T>>(ranges.collect::<Vec<_>>())?;
        items.first().copied().ok_or_else(|| {
            self.schunk.error(ErrorKind::OutOfBounds, READ, "an index for each axis is required")
        })
    }

    /// Reads a box of items, in C order. Only the blocks that contain these items are decoded.
    ///
    /// # Errors
    /// - [`ErrorKind::OutOfBounds`]: the selection is outside the array;
    /// - [`ErrorKind::TypeMismatch`]: the dtype of the items differs from the requested one;
    /// - the errors of [reading values](crate#reading-values).
    pub fn read<R: FromItems>(&self, selection: impl Into<Selection>) -> Result<R> {
        let known = self.dtype().filter(|dtype| dtype.size() == self.typesize());
        R::check(known).map_err(|expected| {
            let found = self.dtype_str().unwrap_or("unknown");
            let detail = format!("the items have the dtype {found}, expected {expected}");
            self.schunk.error(ErrorKind::TypeMismatch, READ, detail)
        })?;
        let ranges = self.ranges(selection.into())?;
        let mut bytes = self.read_box(&ranges)?;
        if let Some(plan) = self.swap_plan()? {
            plan.apply(&mut bytes);
        }
        Ok(R::of(bytes))
    }

    /// How items are converted to the native byte order; `None` if they are not.
    fn swap_plan(&self) -> Result<Option<SwapPlan>> {
        let stored = self.text.as_deref().filter(|_| self.dparams.convert);
        let Some(stored) = stored.and_then(|text| Dtype::parse(text).ok()) else { return Ok(None) };
        if stored.is_native() || stored.size() != self.typesize() {
            return Ok(None);
        }
        stored.swap_plan().map(Some).map_err(|error| self.schunk.failed(READ, error))
    }

    fn ranges(&self, Selection(wanted): Selection) -> Result<Vec<Range<u64>>> {
        let outside = |ranges: &dyn std::fmt::Debug| {
            let detail = format!("the shape is {:?}, asked for {ranges:?}", self.shape());
            self.schunk.error(ErrorKind::OutOfBounds, READ, detail)
        };
        if wanted.len() > self.ndim() {
            return Err(outside(&wanted));
        }
        let rest = std::iter::repeat((0, None));
        let wanted = wanted.into_iter().chain(rest).zip(self.shape());
        let ranges: Vec<_> = wanted.map(|((start, end), &len)| start..end.unwrap_or(len)).collect();
        let fits =
            |(range, &len): (&Range<u64>, &u64)| range.start <= range.end && range.end <= len;
        match ranges.iter().zip(self.shape()).all(fits) {
            true => Ok(ranges),
            false => Err(outside(&ranges)),
        }
    }

    /// The bytes of a box inside the array, in the stored byte order.
    fn read_box(&self, ranges: &[Range<u64>]) -> Result<Vec<u8>> {
        let geometry = &self.geometry;
        let size = geometry.typesize() as u64;
        let nbytes =
            ranges.iter().fold(size, |all, range| all.saturating_mul(range.end - range.start));
        self.schunk.allow(READ, nbytes)?;
        if nbytes == 0 {
            return Ok(Vec::new());
        }
        // A block is decoded as a whole.
        self.schunk.allow(READ, geometry.block_len() as u64)?;
        let memory = |error| Error::new(ErrorKind::OutOfMemory, READ, error);
        let nbytes = usize::try_from(nbytes).map_err(|error| memory(error.to_string()))?;
        let mut out = Vec::new();
        out.try_reserve_exact(nbytes).map_err(|error| memory(error.to_string()))?;
        out.resize(nbytes, 0);
        let mut reader = self.schunk.reader();
        let mut last = None;
        let read = geometry.gather(ranges, &mut out, |number, places, each| {
            last = Some(number);
            reader.read_ranges(number, places, each)
        });
        match (read, last) {
            (Ok(()), _) => Ok(out),
            (Err(error), Some(number)) => Err(self.schunk.in_chunk(number as usize, error)),
            (Err(error), None) => Err(self.schunk.failed(READ, error)),
        }
    }
}
