//! Reading boxes: which chunks, which of their blocks, and where their items go.

use std::ops::Range;

use blosc2_format::chunk::Special;

use super::NDArray;
use super::geometry::{Window, copy_box, fill_box, for_each_index, position};
use crate::element::{Element, as_bytes_mut, zeroed};
use crate::memory::Target;
use crate::schunk::Reading;
use crate::{ChunkRef, Error, ErrorKind, Result};

const DOING: &str = "read from an array";

impl NDArray {
    /// Reads a box of items, in C order: one range for each dimension.
    ///
    /// C's `b2nd_get_slice_cbuffer`, Python's `array[...]`.
    ///
    /// # Errors
    /// - [`ErrorKind::OutOfBounds`]: a range that ends behind the array;
    /// - [`ErrorKind::InvalidArgument`]: another number of ranges than dimensions, or one that ends
    ///   before it starts;
    /// - [`ErrorKind::TypeMismatch`]: the dtype is not that of `T`;
    /// - [`ErrorKind::InvalidData`], [`ErrorKind::Unsupported`]: as for
    ///   [`decompress`](crate::decompress);
    /// - [`ErrorKind::TooLarge`]: more memory than [`OpenOptions::max_read`](crate::OpenOptions::max_read);
    /// - [`ErrorKind::Io`]: the file cannot be read.
    pub fn read<T: Element>(&self, ranges: &[Range<u64>]) -> Result<Vec<T>> {
        self.check_dtype::<T>()?;
        let len = self.check_ranges(ranges)?;
        self.schunk.allow(DOING, len as u64)?;
        let mut items = zeroed::<T>(len / size_of::<T>(), DOING)?;
        self.read_checked(ranges, as_bytes_mut(&mut items))?;
        Ok(items)
    }

    /// Reads a box of items into the caller's, of which there have to be just as many.
    ///
    /// # Errors
    /// As for [`read`](Self::read), and [`ErrorKind::InvalidArgument`] where the numbers differ.
    pub fn read_into<T: Element>(&self, ranges: &[Range<u64>], items: &mut [T]) -> Result<()> {
        self.check_dtype::<T>()?;
        self.read_bytes_into(ranges, as_bytes_mut(items))
    }

    /// Reads all items, in C order. C's `b2nd_to_cbuffer`, Python's `array[:]`.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub fn read_all<T: Element>(&self) -> Result<Vec<T>> {
        self.read(&self.whole())
    }

    /// Reads a box of items of any dtype as they are stored, byte order included.
    ///
    /// # Errors
    /// As for [`read`](Self::read), the dtype apart.
    pub fn read_bytes(&self, ranges: &[Range<u64>]) -> Result<Vec<u8>> {
        let len = self.check_ranges(ranges)?;
        self.schunk.allow(DOING, len as u64)?;
        let mut bytes = zeroed(len, DOING)?;
        self.read_checked(ranges, &mut bytes)?;
        Ok(bytes)
    }

    /// Reads a box of items of any dtype into the caller's bytes, which have to be just as many.
    ///
    /// # Errors
    /// As for [`read_into`](Self::read_into), the dtype apart.
    pub fn read_bytes_into(&self, ranges: &[Range<u64>], bytes: &mut [u8]) -> Result<()> {
        let (expected, found) = (self.check_ranges(ranges)?, bytes.len());
        if expected != found {
            let detail = format!("the box has {expected} bytes, the buffer {found}");
            return Err(self.schunk.error(ErrorKind::InvalidArgument, DOING, detail));
        }
        self.read_checked(ranges, bytes)
    }

    /// The ranges of the whole array.
    pub fn whole(&self) -> Vec<Range<u64>> {
        self.geometry.shape.iter().map(|&size| 0..size).collect()
    }

    fn check_dtype<T: Element>(&self) -> Result<()> {
        let (dtype, typesize) = (self.dtype.as_deref(), self.geometry.typesize);
        let same = dtype.is_none_or(|dtype| same_dtype(dtype, T::DTYPE));
        if same && typesize == size_of::<T>() {
            return Ok(());
        }
        let detail = format!(
            "the items are {} of {typesize} bytes, asked for {} of {} bytes",
            dtype.unwrap_or("of no dtype"),
            T::DTYPE,
            size_of::<T>()
        );
        Err(self.schunk.error(ErrorKind::TypeMismatch, DOING, detail))
    }

    /// Checks the ranges, and gives the bytes of the box.
    fn check_ranges(&self, ranges: &[Range<u64>]) -> Result<usize> {
        let error = |kind, detail: String| self.schunk.error(kind, DOING, detail);
        let (ndim, shape) = (self.geometry.ndim(), &self.geometry.shape);
        if ranges.len() != ndim {
            let detail = format!("the array has {ndim} dimensions, got {} ranges", ranges.len());
            return Err(error(ErrorKind::InvalidArgument, detail));
        }
        for (axis, (range, &size)) in ranges.iter().zip(shape).enumerate() {
            if range.start > range.end {
                let detail =
                    format!("the range {range:?} of dimension {axis} ends before it starts");
                return Err(error(ErrorKind::InvalidArgument, detail));
            }
            if range.end > size {
                let detail = format!("dimension {axis} has {size} items, asked for {range:?}");
                return Err(error(ErrorKind::OutOfBounds, detail));
            }
        }
        let extent: Vec<u64> = ranges.iter().map(|range| range.end - range.start).collect();
        self.geometry.box_len(&extent).ok_or_else(|| {
            let detail = format!("a box of {extent:?} items does not fit in memory");
            error(ErrorKind::TooLarge, detail)
        })
    }

    fn read_checked(&self, ranges: &[Range<u64>], bytes: &mut [u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let start: Vec<u64> = ranges.iter().map(|range| range.start).collect();
        let stop: Vec<u64> = ranges.iter().map(|range| range.end).collect();
        let extent: Vec<u64> = ranges.iter().map(|range| range.end - range.start).collect();
        let chunks = &self.geometry.chunks;
        let first: Vec<u64> = start.iter().zip(chunks).map(|(at, size)| at / size).collect();
        let last: Vec<u64> = stop.iter().zip(chunks).map(|(at, size)| at.div_ceil(*size)).collect();

        // All chunks are of the same moment.
        let reading = self.schunk.reading()?;
        let mut scratch = Vec::new();
        for_each_index(&first, &last, |chunk| {
            let window = Window { shape: &extent, origin: &start };
            self.read_chunk(&reading, chunk, (&start, &stop), (bytes, window), &mut scratch)
        })
    }

    /// Copies the part of the box that lies in one chunk.
    fn read_chunk(
        &self,
        reading: &Reading<'_>,
        chunk: &[u64],
        bounds: (&[u64], &[u64]),
        (bytes, window): (&mut [u8], Window<'_>),
        scratch: &mut Vec<u8>,
    ) -> Result<()> {
        let geometry = &self.geometry;
        let number = position(chunk, &geometry.chunk_grid);
        self.schunk.with_chunk_in(reading, number, None, |compressed, decoder| {
            let header = compressed.header();
            if compressed.nbytes() != geometry.chunk_len {
                let (expected, found) = (geometry.chunk_len, header.nbytes);
                let detail = format!("chunk {number} has {found} bytes, expected {expected}");
                return Err(Error::new(ErrorKind::InvalidData, DOING, detail));
            }
            let (start, stop) = geometry.in_chunk(chunk, bounds);

            if let Some(item) = repeated_item(compressed, geometry.typesize) {
                return fill_box((&start, &stop), &item, (bytes, window));
            }
            if let Some(place) = self.place_of_chunk((&start, &stop), window) {
                let target = &mut bytes[place..place + geometry.chunk_len];
                return decoder.decompress(compressed, Target::of(target));
            }

            // The blocks that the box touches, in block indices of the chunk.
            let origin: Vec<u64> =
                chunk.iter().zip(&geometry.chunks).map(|(at, size)| at * size).collect();
            let blocks = &geometry.blocks;
            let axes = 0..geometry.ndim();
            let first: Vec<u64> =
                axes.clone().map(|axis| (start[axis] - origin[axis]) / blocks[axis]).collect();
            let last: Vec<u64> =
                axes.map(|axis| (stop[axis] - origin[axis]).div_ceil(blocks[axis])).collect();

            // Chunks written by others may have blocks of another size; those are decompressed whole.
            let same_blocks =
                !header.variable_blocks && header.block_len() as usize == geometry.block_len;
            let mut wanted = same_blocks.then(|| vec![false; geometry.nblocks()]);
            if let Some(wanted) = &mut wanted {
                for_each_index(&first, &last, |block| {
                    wanted[position(block, &geometry.block_grid)] = true;
                    Ok(())
                })?;
            }
            if scratch.is_empty() {
                *scratch = zeroed(geometry.chunk_len, DOING)?;
            }
            match &wanted {
                Some(wanted) => decoder.decompress_masked(compressed, wanted, scratch)?,
                None => decoder.decompress(compressed, Target::of(scratch))?,
            }

            for_each_index(&first, &last, |block| {
                let at = position(block, &geometry.block_grid) * geometry.block_len;
                let from = &scratch[at..at + geometry.block_len];
                let corner: Vec<u64> = (0..block.len())
                    .map(|axis| origin[axis] + block[axis] * blocks[axis])
                    .collect();
                let low: Vec<u64> =
                    corner.iter().zip(&start).map(|(at, start)| *at.max(start)).collect();
                let high: Vec<u64> = (0..block.len())
                    .map(|axis| (corner[axis] + blocks[axis]).min(stop[axis]))
                    .collect();
                let from_window = Window { shape: blocks, origin: &corner };
                copy_box((&low, &high), (from, from_window), (bytes, window), geometry.typesize)
            })
        })
    }

    /// Where in the box a chunk's bytes can be put as they are: when the box holds the whole chunk
    /// in one run, and the chunk's bytes are its items in C order.
    fn place_of_chunk(&self, (start, stop): (&[u64], &[u64]), window: Window<'_>) -> Option<usize> {
        let geometry = &self.geometry;
        let whole = (0..start.len()).all(|axis| stop[axis] - start[axis] == geometry.chunks[axis]);
        if !whole || !geometry.chunk_is_c_order() {
            return None;
        }
        let first = (0..start.len()).position(|axis| geometry.chunks[axis] != 1).unwrap_or(0);
        let in_one_run =
            (first + 1..start.len()).all(|axis| window.shape[axis] == geometry.chunks[axis]);
        let index: Vec<u64> = start.iter().zip(window.origin).map(|(at, from)| at - from).collect();
        in_one_run.then(|| position(&index, window.shape) * geometry.typesize)
    }
}

/// The item that a chunk without data repeats, where that needs no decompression.
fn repeated_item(chunk: &ChunkRef<'_>, typesize: usize) -> Option<Vec<u8>> {
    match chunk.header().special? {
        Special::Zeros | Special::Uninit => Some(vec![0; typesize]),
        Special::Value => {
            let value = chunk.body();
            (value.len() == typesize).then(|| value.to_vec())
        }
        Special::Nan => None,
    }
}

/// Whether two dtypes are the same to NumPy: for single bytes the byte order does not count.
fn same_dtype(left: &str, right: &str) -> bool {
    let normal = |dtype: &str| -> String {
        let rest = dtype.trim_start_matches(['|', '<', '>', '=']);
        match dtype.chars().next() {
            _ if rest.ends_with('1') && rest.len() == 2 => rest.to_owned(),
            Some('=') if cfg!(target_endian = "little") => format!("<{rest}"),
            Some('=') => format!(">{rest}"),
            _ => dtype.to_owned(),
        }
    };
    normal(left) == normal(right)
}
