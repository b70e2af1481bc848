//! The items of a file as an array: axes, planes, slices.

use std::ops::Range;
use std::sync::Arc;

use blosc2_format::b2nd::{Axis, Geometry, Meta};
use blosc2_format::dtype::Kind;
use blosc2_format::file::File;
use blosc2_format::{Dtype, Error, npy};

use crate::blocks::{Blocks, limits};
use crate::item::{self, Number};
use crate::source::Source;

/// The maximum number of bytes of a slice that is read at once.
const MAX_SLICE: u64 = 512 << 20;

/// The items of a file.
#[derive(Debug)]
pub struct Data {
    geometry: Geometry,
    dtype: Dtype,
    /// The parts of an item that are numbers.
    numbers: Vec<Number>,
    blocks: Blocks,
}

impl Data {
    /// Opens the items of `file`, which was opened from `source`. The items of a super-chunk without shape are an array of
    /// one axis, with the dtype `known` if it is set.
    ///
    /// # Errors
    /// - [`Error::Unsupported`]: the chunks do not consist of items of one size, or the dtype is unknown;
    /// - the errors of [`Blocks::open`].
    pub fn open(source: Source, file: File<'static>, known: Option<Dtype>) -> Result<Self, Error> {
        let geometry = match file.geometry() {
            Some(geometry) => geometry.clone(),
            None => flat(&file)?,
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
        let numbers = Number::all(&dtype);
        let blocks = Blocks::open(source, file, geometry.block_len())?;
        Ok(Self { geometry, dtype, numbers, blocks })
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

    /// Returns the blocks.
    pub fn blocks(&mut self) -> &mut Blocks {
        &mut self.blocks
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
    /// Fails with the errors of [`Slice::new`] and [`Blocks::block`].
    pub fn read(&mut self, ranges: &[Range<u64>]) -> Result<Vec<u8>, Error> {
        let mut slice = Slice::new(self, ranges)?;
        while slice.step(self)? {}
        Ok(slice.bytes)
    }

    /// Returns a block of the items, of its full size: the last block of a super-chunk is padded with zeros.
    pub(crate) fn block(&mut self, chunk: u64, block: u64) -> Result<Arc<[u8]>, Error> {
        self.blocks.block(chunk, block)
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
    /// Fails with the errors of [`Blocks::block`], and with [`Error::Argument`] if a block is too short.
    pub fn step(&mut self, data: &mut Data) -> Result<bool, Error> {
        let Some(at) = self.next.clone() else { return Ok(false) };
        let chosen: Vec<Part> =
            at.iter().zip(&self.parts).map(|(&k, parts)| parts[k].clone()).collect();
        let (chunk, block) = numbers(&data.geometry, &chosen);
        let bytes = data.block(chunk, block)?;
        let size = data.geometry.typesize();
        let block_shape = data.geometry.block_shape();
        let from = strides(block_shape, size);
        let sides: Vec<u64> = self.ranges.iter().map(|range| range.end - range.start).collect();
        let to = strides(&sides, size);
        let mut source = 0;
        let mut target = 0;
        for (axis, part) in chosen.iter().enumerate() {
            source += part.from * from[axis];
            target += part.before as usize * to[axis];
        }
        let counts: Vec<usize> = chosen.iter().map(|part| part.count).collect();
        copy(&bytes, source, &from, &mut self.bytes, target, &to, &counts, size).ok_or_else(
            || Error::Argument(format!("block {block} of chunk {chunk} ends before its items")),
        )?;
        self.done += 1;
        self.next = advance(at, &self.parts);
        Ok(self.next.is_some())
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
fn advance(mut at: Vec<usize>, parts: &[Vec<Part>]) -> Option<Vec<usize>> {
    for axis in (0..at.len()).rev() {
        at[axis] += 1;
        if at[axis] < parts[axis].len() {
            return Some(at);
        }
        at[axis] = 0;
    }
    None
}

/// Copies a box of items. Returns `None` if it is not within the bytes.
#[expect(clippy::too_many_arguments, reason = "two places and their distances")]
fn copy(
    source: &[u8],
    from: usize,
    from_steps: &[usize],
    target: &mut [u8],
    to: usize,
    to_steps: &[usize],
    counts: &[usize],
    size: usize,
) -> Option<()> {
    match counts {
        [] => target.get_mut(to..to + size)?.copy_from_slice(source.get(from..from + size)?),
        [count] => {
            let len = count * size;
            target.get_mut(to..to + len)?.copy_from_slice(source.get(from..from + len)?);
        }
        [count, inner @ ..] => {
            for k in 0..*count {
                let (from, to) = (from + k * from_steps[0], to + k * to_steps[0]);
                copy(source, from, &from_steps[1..], target, to, &to_steps[1..], inner, size)?;
            }
        }
    }
    Some(())
}
