//! Making arrays: the items of each chunk are put in block order, compressed and appended.

use std::ops::Range;
use std::path::{Path, PathBuf};

use blosc2_format::b2nd::{NAME, OLD_NAME};

use super::NDArray;
use super::geometry::{Geometry, Window, copy_box, for_each_index, position};
use super::partition::partition;
use crate::element::{Element, as_bytes, zeroed};
use crate::params::{Purpose, Resolved};
use crate::schunk::{Store, files, new_store};
use crate::{CParams, Codec, Error, ErrorKind, Filter, Result, SChunk};

const DOING: &str = "make an array";

/// What an array is to be like. Made by [`NDArray::builder`].
///
/// ```
/// use blosc2::{CParams, Codec, NDArray};
///
/// let array = NDArray::builder()
///     .chunks(&[5, 10])
///     .blocks(&[5, 5])
///     .cparams(CParams::new().codec(Codec::Lz4))
///     .from_slice(&[1.0f64; 100], &[10, 10])?;
/// assert_eq!(array.schunk().nchunks(), 2);
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
#[must_use = "a builder makes nothing by itself"]
pub struct NDArrayBuilder {
    chunks: Option<Vec<u64>>,
    blocks: Option<Vec<u64>>,
    cparams: CParams,
    path: Option<PathBuf>,
}

impl NDArrayBuilder {
    /// Sets the chunk shape, in items; automatic otherwise.
    pub fn chunks(mut self, chunks: &[u64]) -> Self {
        self.chunks = Some(chunks.to_vec());
        self
    }

    /// Sets the block shape, in items; automatic otherwise.
    pub fn blocks(mut self, blocks: &[u64]) -> Self {
        self.blocks = Some(blocks.to_vec());
        self
    }

    /// Sets how chunks are compressed. Typesize and block size come from items and block shape.
    pub fn cparams(mut self, params: CParams) -> Self {
        self.cparams = params;
        self
    }

    /// Makes the array in a new contiguous file instead of memory. It appears when it is complete.
    pub fn file(mut self, path: impl AsRef<Path>) -> Self {
        self.path = Some(path.as_ref().to_owned());
        self
    }

    /// Makes an array of items in C order.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: as many items as the shape does not say; more than 16
    ///   dimensions; chunk and block shapes that do not fit; parameters out of range;
    /// - [`ErrorKind::Unsupported`]: a codec or filter that this build does not have;
    /// - [`ErrorKind::TooLarge`]: a chunk over [`MAX_CHUNK_LEN`](crate::MAX_CHUNK_LEN) bytes;
    /// - [`ErrorKind::AlreadyExists`]: there is something at the path; it is left alone;
    /// - [`ErrorKind::NotFound`], [`ErrorKind::Io`]: the file cannot be made.
    pub fn from_slice<T: Element>(self, items: &[T], shape: &[u64]) -> Result<NDArray> {
        self.from_bytes(as_bytes(items), shape, T::DTYPE, size_of::<T>())
    }

    /// Makes an array of items of any dtype, given as bytes in C order.
    ///
    /// `dtype` is NumPy's notation of the items, which have `typesize` bytes; it is not checked.
    ///
    /// # Errors
    /// As for [`from_slice`](Self::from_slice).
    pub fn from_bytes(
        self,
        bytes: &[u8],
        shape: &[u64],
        dtype: &str,
        typesize: usize,
    ) -> Result<NDArray> {
        let plan = self.plan(shape, dtype, typesize)?;
        let expected = plan.geometry.box_len(shape);
        if expected != Some(bytes.len()) {
            let found = bytes.len();
            let detail = format!(
                "an array of shape {shape:?} with items of {typesize} bytes has {} bytes, got {found}",
                expected.map_or("too many".to_owned(), |len| len.to_string())
            );
            return Err(Error::new(ErrorKind::InvalidArgument, DOING, detail));
        }
        plan.build(Items::Bytes(bytes))
    }

    /// Copies an array, its metalayers too.
    ///
    /// Chunk and block shapes that are not set are those of `source`, where both are not set; an
    /// automatic one is found where only the other is. Python's `copy`.
    ///
    /// # Errors
    /// As for [`from_slice`](Self::from_slice) and for reading `source`.
    pub fn copy(mut self, source: &NDArray) -> Result<NDArray> {
        if self.chunks.is_none() && self.blocks.is_none() {
            self.chunks = Some(source.chunks().to_vec());
            self.blocks = Some(source.blocks().to_vec());
        }
        // Where there is none, bytes of the right number, as C does.
        let dtype =
            source.dtype().map_or_else(|| format!("|S{}", source.typesize()), str::to_owned);
        let plan = self.plan(source.shape(), &dtype, source.typesize())?;
        plan.build(Items::Array(source))
    }

    fn plan(self, shape: &[u64], dtype: &str, typesize: usize) -> Result<Plan> {
        let params = CParams { typesize: Some(typesize), blocksize: None, ..self.cparams };
        let mut params = params.resolve(typesize, Purpose::Array)?;
        for (name, given) in [("chunk", &self.chunks), ("block", &self.blocks)] {
            let found = given.as_ref().map_or(shape.len(), Vec::len);
            let zero =
                given.iter().flatten().zip(shape).any(|(&part, &size)| part == 0 && size > 0);
            if given.iter().flatten().any(|&part| i32::try_from(part).is_err()) {
                let given = given.as_deref().unwrap_or_default();
                let detail = format!("a {name} of {given:?} items: a side has fewer than 2^31");
                return Err(Error::new(ErrorKind::TooLarge, DOING, detail));
            }
            if found != shape.len() || zero {
                let detail = format!(
                    "a {name} shape of {:?} does not fit the shape {shape:?}",
                    given.as_deref().unwrap_or_default()
                );
                return Err(Error::new(ErrorKind::InvalidArgument, DOING, detail));
            }
        }
        let (chunks, blocks) =
            partition(shape, typesize as u64, self.chunks.as_deref(), self.blocks.as_deref());
        if let Some(axis) = (0..shape.len()).find(|&axis| blocks[axis] > chunks[axis]) {
            let (block, chunk) = (blocks[axis], chunks[axis]);
            let detail =
                format!("along dimension {axis} a block has {block} items, a chunk {chunk}");
            return Err(Error::new(ErrorKind::InvalidArgument, DOING, detail));
        }
        check_plugins(&params, shape.len(), typesize)?;
        let geometry = Geometry::new(shape, &chunks, &blocks, typesize, DOING)?;
        params.c.blocksize = i32::try_from(geometry.block_len)
            .ok()
            .filter(|&len| len.unsigned_abs() <= blosc2_format::chunk::MAX_BLOCKSIZE)
            .ok_or_else(|| {
                let detail = format!("a block of shape {blocks:?} is too large");
                Error::new(ErrorKind::TooLarge, DOING, detail)
            })?;
        Ok(Plan { geometry, params, dtype: dtype.to_owned(), path: self.path })
    }
}

/// Checks what codecs and filters for arrays ask of them, since C says no more than that they failed.
fn check_plugins(params: &Resolved, ndim: usize, typesize: usize) -> Result<()> {
    let floats = matches!(typesize, 4 | 8);
    let codec = Codec::from_code(params.c.compcode);
    let needs = |what: &str, asks: &str| {
        let detail = format!("{what} needs {asks}, got {ndim} dimensions of {typesize} bytes");
        Err(Error::new(ErrorKind::InvalidArgument, DOING, detail))
    };
    match codec {
        Codec::Ndlz if ndim != 2 => return needs("ndlz", "2 dimensions"),
        Codec::ZfpAccuracy | Codec::ZfpPrecision | Codec::ZfpRate
            if !(1..=4).contains(&ndim) || !floats =>
        {
            return needs(&codec.to_string(), "1 to 4 dimensions of floats of 4 or 8 bytes");
        }
        _ => {}
    }
    for filter in &params.filters {
        match filter {
            Filter::NdCell(side) | Filter::NdMean(side)
                if *side == 0 || !(1..=8).contains(&ndim) =>
            {
                return needs(&filter.to_string(), "a side above 0 and 1 to 8 dimensions");
            }
            Filter::NdMean(_) if !floats => {
                return needs(&filter.to_string(), "floats of 4 or 8 bytes");
            }
            _ => {}
        }
    }
    Ok(())
}

/// A checked order for an array.
struct Plan {
    geometry: Geometry,
    params: Resolved,
    dtype: String,
    path: Option<PathBuf>,
}

/// Where the items come from.
#[derive(Clone, Copy)]
enum Items<'a> {
    /// All of them in C order.
    Bytes(&'a [u8]),
    /// An array of the same shape, whose metalayers are copied too.
    Array(&'a NDArray),
}

impl Plan {
    fn build(self, items: Items<'_>) -> Result<NDArray> {
        match &self.path {
            None => NDArray::from_schunk(self.write(None, items)?),
            Some(path) => {
                files::create(path, false, |temporary| {
                    self.write(Some(temporary), items).map(drop)
                })?;
                NDArray::open(path)
            }
        }
    }

    fn write(&self, path: Option<&Path>, items: Items<'_>) -> Result<SChunk> {
        let geometry = &self.geometry;
        let meta = geometry.to_meta(&self.dtype).to_bytes();
        let meta = meta.map_err(|error| Error::from_format(DOING, error))?;
        let mut metalayers = vec![(NAME.to_owned(), meta)];
        if let Items::Array(source) = items {
            for layer in source.schunk.meta().iter() {
                let layer = layer?;
                if ![NAME, OLD_NAME].contains(&layer.0.as_str()) {
                    metalayers.push(layer);
                }
            }
        }
        let store = match path {
            Some(path) => new_store(path, false)?,
            None => Store::Memory(Default::default()),
        };
        let (params, chunk_len) = (self.params.clone(), Some(geometry.chunk_len));
        let mut schunk = SChunk::with_params(params, store, &metalayers, chunk_len)?;

        let origin = vec![0; geometry.ndim()];
        let padded_len = if geometry.nchunks > 0 { geometry.chunk_len } else { 0 };
        let mut padded: Vec<u8> = zeroed(padded_len, DOING)?;
        let mut part = Vec::new();
        for_each_index(&origin, &geometry.chunk_grid, |chunk| {
            let (start, stop) = geometry.in_chunk(chunk, (&origin, &geometry.shape));
            let extent: Vec<u64> =
                start.iter().zip(&stop).map(|(start, stop)| stop - start).collect();
            if extent != geometry.chunks {
                // Chunks at the edges are padded with zeros.
                padded.fill(0);
            }
            match items {
                Items::Bytes(bytes) => {
                    let window = Window { shape: &geometry.shape, origin: &origin };
                    self.cut_chunk((&start, &stop), (bytes, window), &mut padded)?;
                }
                Items::Array(source) => {
                    let ranges: Vec<Range<u64>> =
                        start.iter().zip(&stop).map(|(&start, &stop)| start..stop).collect();
                    part.resize(extent.iter().product::<u64>() as usize * geometry.typesize, 0);
                    source.read_bytes_into(&ranges, &mut part)?;
                    let window = Window { shape: &extent, origin: &start };
                    self.cut_chunk((&start, &stop), (&part, window), &mut padded)?;
                }
            }
            schunk.append_bytes(&padded).map(drop)
        })?;

        if let Items::Array(source) = items {
            source.schunk.copy_vlmetalayers_to(&mut schunk)?;
        }
        schunk.finish()?;
        Ok(schunk)
    }

    /// Puts the items of a chunk, which reach from `start` to `stop`, in block order.
    fn cut_chunk(
        &self,
        (start, stop): (&[u64], &[u64]),
        (bytes, window): (&[u8], Window<'_>),
        padded: &mut [u8],
    ) -> Result<()> {
        let Geometry { blocks, block_grid, block_len, typesize, .. } = &self.geometry;
        for_each_index(&vec![0; start.len()], block_grid, |block| {
            let low: Vec<u64> =
                (0..start.len()).map(|axis| start[axis] + block[axis] * blocks[axis]).collect();
            let high: Vec<u64> =
                (0..start.len()).map(|axis| (low[axis] + blocks[axis]).min(stop[axis])).collect();
            if (0..start.len()).any(|axis| low[axis] >= high[axis]) {
                return Ok(());
            }
            let at = position(block, block_grid) * block_len;
            let target = &mut padded[at..at + block_len];
            let to_window = Window { shape: blocks, origin: &low };
            copy_box((&low, &high), (bytes, window), (target, to_window), *typesize)
        })
    }
}
