//! The items of a file as an array: axes, planes, slices.

use std::borrow::Cow;
use std::iter;
use std::ops::Range;

use blosc2_format::b2nd::{Axis, Geometry, Meta};
use blosc2_format::dtype::Kind;
use blosc2_format::file::File;
use blosc2_format::{Dtype, Error, Limits, npy};

use crate::item::{self, Number};

/// The maximum number of bytes of memory for one part of a file.
const MEMORY: u64 = 512 << 20;
/// The maximum number of bytes of decoded blocks in memory.
const CACHE: u64 = 128 << 20;
/// The maximum number of bytes of a slice that is read at once.
const MAX_SLICE: u64 = 512 << 20;

/// Returns the limits for all files, which keep the memory of the page bounded.
pub fn limits() -> Limits {
    Limits { memory: MEMORY, metadata: Some(MEMORY), ..Limits::default() }
}

/// The items of a file.
#[derive(Debug)]
pub struct Data {
    geometry: Geometry,
    dtype: Dtype,
    /// The parts of an item that are numbers.
    numbers: Vec<Number>,
    file: File<'static>,
}

impl Data {
    /// Takes the items of `file`. The items of a super-chunk without shape are an array of one axis, with the dtype `known`
    /// if it is set.
    ///
    /// # Errors
    /// Returns the file, and [`Error::Unsupported`] if the chunks do not consist of items of one size, or the dtype is
    /// unknown.
    pub fn new(
        mut file: File<'static>,
        known: Option<Dtype>,
    ) -> Result<Self, Box<(File<'static>, Error)>> {
        match Self::layout(&file, known) {
            Ok((geometry, dtype)) => {
                file.set_cache(CACHE);
                Ok(Self { numbers: Number::all(&dtype), geometry, dtype, file })
            }
            Err(error) => Err(Box::new((file, error))),
        }
    }

    fn layout(file: &File<'_>, known: Option<Dtype>) -> Result<(Geometry, Dtype), Error> {
        let geometry = match file.geometry() {
            Some(geometry) => geometry.clone(),
            None => flat(file)?,
        };
        let dtype = match (file.meta().and_then(|meta| meta.dtype.as_deref()), known) {
            (Some(text), _) => Dtype::parse(text)?,
            (None, Some(known)) => known,
            (None, None) => {
                let size = geometry.typesize();
                let kind = if matches!(size, 1 | 2 | 4 | 8) { Kind::UInt } else { Kind::Void };
                Dtype::scalar(kind, size)?
            }
        };
        if dtype.size() != geometry.typesize() {
            let detail = format!(
                "a dtype of {} bytes for items of {} bytes",
                dtype.size(),
                geometry.typesize()
            );
            return Err(Error::Unsupported(detail));
        }
        Ok((geometry, dtype))
    }

    /// Returns the layout of the items.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Returns the type of the items.
    pub fn dtype(&self) -> &Dtype {
        &self.dtype
    }

    /// Returns the parts of an item that are numbers.
    pub fn numbers(&self) -> &[Number] {
        &self.numbers
    }

    /// Returns the file.
    pub fn file(&self) -> &File<'static> {
        &self.file
    }

    /// Returns the file.
    pub fn file_mut(&mut self) -> &mut File<'static> {
        &mut self.file
    }

    /// Returns the number at index `field` of [`numbers`](Self::numbers).
    ///
    /// # Errors
    /// [`Error::Argument`]: there is no such number.
    pub fn number(&self, field: usize) -> Result<Number, Error> {
        let found = self.numbers.get(field).cloned();
        found.ok_or_else(|| {
            Error::Argument(format!("items of the dtype {} have no number {field}", self.dtype))
        })
    }

    /// Returns the text of the item at these indices.
    ///
    /// # Errors
    /// Fails with the errors of [`read`](Self::read).
    pub fn text(&mut self, at: &[u64]) -> Result<String, Error> {
        let ranges: Vec<_> = at.iter().map(|&index| index..index.saturating_add(1)).collect();
        let bytes = self.read(&ranges)?;
        Ok(item::text(&self.dtype, &bytes))
    }

    /// Returns the bytes of the items of a slice, in C order.
    ///
    /// # Errors
    /// Fails with the errors of [`Slice::new`] and [`Slice::step`].
    pub fn read(&mut self, ranges: &[Range<u64>]) -> Result<Vec<u8>, Error> {
        let mut slice = Slice::new(self, ranges)?;
        while slice.step(self)? {}
        Ok(slice.bytes)
    }

    /// Calls `each` with the bytes of a block. The last block of a super-chunk can be shorter.
    pub(crate) fn block<T>(
        &mut self,
        chunk: u64,
        block: u64,
        mut each: impl FnMut(&[u8]) -> T,
    ) -> Result<T, Error> {
        let range = self.block_range(chunk, block);
        let mut result = None;
        self.file.read_ranges(chunk, &[range], |_, data| result = Some(each(data)))?;
        Ok(result.expect("each range was read"))
    }

    /// Returns whether a block is in memory.
    pub(crate) fn is_cached(&mut self, chunk: u64, block: u64) -> bool {
        let range = self.block_range(chunk, block);
        self.file.is_cached(chunk, &range)
    }

    /// The last chunk of a super-chunk can be shorter; the chunks of an array have one size.
    fn block_range(&self, chunk: u64, block: u64) -> Range<usize> {
        let range = self.geometry.block_range(block);
        if self.file.geometry().is_some() {
            return range;
        }
        let len = self.geometry.chunk_len();
        let left = self.file.info().nbytes.saturating_sub(chunk.saturating_mul(len as u64));
        let end = usize::try_from(left).map_or(len, |left| left.min(len));
        range.start.min(end)..range.end.min(end)
    }
}

/// Returns the layout of the items of a file that is not an array.
fn flat(file: &File<'_>) -> Result<Geometry, Error> {
    let info = file.info();
    let size = info.typesize.max(1);
    let unsupported =
        |what: &str| Error::Unsupported(format!("{what}: the chunks are not shown as items"));
    let chunk = match info.chunksize {
        Some(chunk) if chunk > 0 && chunk % size == 0 => chunk,
        _ if info.nchunks == 0 => size,
        Some(_) => return Err(unsupported("chunks that do not consist of whole items")),
        None => return Err(unsupported("chunks of different sizes")),
    };
    let block = info
        .blocksize
        .filter(|&block| block > 0 && block <= chunk && block % size == 0)
        .unwrap_or(chunk);
    let items = |bytes: u32| vec![i32::try_from(bytes / size).unwrap_or(i32::MAX)];
    let shape = vec![i64::try_from(info.nbytes / u64::from(size)).unwrap_or(i64::MAX)];
    let meta =
        Meta { shape, chunks: items(chunk), blocks: items(block), dtype: None, dtype_format: 0 };
    Geometry::new(&meta, size, &limits())
}

/// A slice that is read block by block.
#[derive(Debug)]
pub struct Slice {
    ranges: Vec<Range<u64>>,
    bytes: Vec<u8>,
    /// For each axis, its parts that are within one block.
    parts: Vec<Vec<Part>>,
    /// The next block: the index of its part on each axis; `None` at the end.
    next: Option<Vec<usize>>,
    done: u64,
}

/// A part of an axis that is within one block.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    /// The index of the chunk on this axis.
    pub(crate) chunk: u64,
    /// The index of the block in the chunk on this axis.
    pub(crate) block: u64,
    /// The first position in the block.
    pub(crate) from: usize,
    /// The number of indices.
    pub(crate) count: usize,
    /// The number of indices before this part.
    pub(crate) before: u64,
}

/// Returns the parts of a range of indices that are within one block of an axis.
pub(crate) fn parts(axis: Axis, range: &Range<u64>) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut at = range.start;
    while at < range.end {
        let [chunk, block, from] = axis.locate(at);
        let end = axis.block(&axis.chunk(chunk), block).end.min(range.end);
        let before = at - range.start;
        parts.push(Part { chunk, block, from: from as usize, count: (end - at) as usize, before });
        at = end;
    }
    parts
}

impl Slice {
    /// Starts to read a slice of `data`.
    ///
    /// # Errors
    /// [`Error::Argument`]: the slice is out of bounds, or too large for the memory of the page.
    pub fn new(data: &Data, ranges: &[Range<u64>]) -> Result<Self, Error> {
        let geometry = &data.geometry;
        // Checks the ranges.
        drop(geometry.chunks_of(ranges)?);
        let sides = ranges.iter().map(|range| range.end - range.start);
        let len = sides.fold(geometry.typesize() as u64, u64::saturating_mul);
        if len > MAX_SLICE {
            let detail = format!(
                "a slice of {len} bytes: the page reads at most {MAX_SLICE} at once; show fewer items"
            );
            return Err(Error::Argument(detail));
        }
        let parts: Vec<_> =
            geometry.axes().zip(ranges).map(|(axis, range)| parts(axis, range)).collect();
        let next = (len > 0).then(|| vec![0; parts.len()]);
        Ok(Self { ranges: ranges.to_vec(), bytes: vec![0; len as usize], parts, next, done: 0 })
    }

    /// Reads the next block. Returns whether there are more blocks.
    ///
    /// # Errors
    /// Fails with the errors of [`File::read_ranges`], and with [`Error::Argument`] if a block is too short.
    pub fn step(&mut self, data: &mut Data) -> Result<bool, Error> {
        let Some(at) = self.next.clone() else { return Ok(false) };
        let (chunk, block) = numbers(&data.geometry, &self.chosen(&at));
        let geometry = data.geometry.clone();
        data.block(chunk, block, |bytes| {
            let mut full = Cow::from(bytes);
            // The last block of a super-chunk; the slice is within its items.
            if bytes.len() < geometry.block_len() {
                full.to_mut().resize(geometry.block_len(), 0);
            }
            geometry.assemble_block(chunk, block, &full, &self.ranges, &mut self.bytes)
        })??;
        self.done += 1;
        self.next = advance(at, &self.parts);
        Ok(self.next.is_some())
    }

    /// Returns the next `count` blocks that [`step`](Self::step) reads: their chunks, and their indices.
    pub fn next_blocks(&self, data: &Data, count: usize) -> Vec<(u64, u64)> {
        let places = iter::successors(self.next.clone(), |at| advance(at.clone(), &self.parts));
        places.take(count).map(|at| numbers(&data.geometry, &self.chosen(&at))).collect()
    }

    /// The parts of all axes at a position of the grid of blocks.
    fn chosen(&self, at: &[usize]) -> Vec<Part> {
        at.iter().zip(&self.parts).map(|(&k, parts)| parts[k].clone()).collect()
    }

    /// Returns the part that is read, from 0 to 1.
    pub fn progress(&self) -> f64 {
        let count: f64 = self.parts.iter().map(|parts| parts.len() as f64).product();
        if count == 0.0 { 1.0 } else { self.done as f64 / count }
    }

    /// Returns the slice as a `.npy` file. Axes of one index are removed if `kept` is `false` for them.
    ///
    /// # Errors
    /// [`Error::Unsupported`]: NumPy's format has no notation for the dtype.
    pub fn to_npy(&self, dtype: &Dtype, kept: &[bool]) -> Result<Vec<u8>, Error> {
        let sides = self.ranges.iter().zip(kept).filter(|(_, kept)| **kept);
        let shape = sides.map(|(range, _)| range.end - range.start).collect();
        let mut file = npy::Header::new(dtype.clone(), shape).to_bytes()?;
        file.extend(&self.bytes);
        Ok(file)
    }

    /// Returns the slice as text with comma-separated values: a line for each index of the first kept axis, and a value
    /// for each item of the other axes, or for each field if there are no other axes.
    pub fn to_csv(&self, dtype: &Dtype, kept: &[bool]) -> String {
        let sides: Vec<_> = self.ranges.iter().zip(kept).filter(|(_, kept)| **kept).collect();
        let inner: u64 = sides.iter().skip(1).map(|(range, _)| range.end - range.start).product();
        let size = dtype.size().max(1);
        let mut out = String::new();
        let fields = dtype.fields().filter(|_| sides.len() < 2);
        if let Some(fields) = fields {
            let names: Vec<String> = fields.iter().map(|field| quoted(field.name())).collect();
            out += &(names.join(",") + "\n");
        }
        for line in self.bytes.chunks((inner as usize).saturating_mul(size).max(1)) {
            let mut cells = Vec::new();
            for bytes in line.chunks(size) {
                match fields {
                    Some(fields) => cells.extend(fields.iter().map(|field| {
                        let part = bytes.get(field.offset()..field.offset() + field.dtype().size());
                        quoted(&item::text(field.dtype(), part.unwrap_or_default()))
                    })),
                    None => cells.push(quoted(&item::text(dtype, bytes))),
                }
            }
            out += &(cells.join(",") + "\n");
        }
        out
    }

    /// Returns the bytes of the items, in C order.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// A value of a CSV file, in quotes where it needs them.
pub(crate) fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

/// Returns the numbers of the chunk and of the block that contain a part of each axis.
pub(crate) fn numbers(geometry: &Geometry, parts: &[Part]) -> (u64, u64) {
    let chunk = geometry.chunk_at(parts.iter().map(|part| part.chunk));
    let grid = geometry.block_grid().iter();
    let block = grid.zip(parts).fold(0, |number, (side, part)| number * side + part.block);
    (chunk, block)
}

/// Returns the distances of the items of an array in C order on each axis, in bytes.
pub(crate) fn strides(shape: &[u64], size: usize) -> Vec<usize> {
    let mut strides = vec![size; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis] as usize;
    }
    strides
}

/// Returns the next position in a grid with these sides, in C order.
pub(crate) fn advance(mut at: Vec<usize>, parts: &[Vec<Part>]) -> Option<Vec<usize>> {
    for axis in (0..at.len()).rev() {
        at[axis] += 1;
        if at[axis] < parts[axis].len() {
            return Some(at);
        }
        at[axis] = 0;
    }
    None
}
