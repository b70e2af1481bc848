//! Access to the items of a super-chunk: reading selected items, writing.

use std::ops::Range;
use std::slice;
use std::sync::Arc;

use blosc2_format::frame::ChunkSize;

use super::read::check_range;
use super::{Access, Fetched, NOTHING_FETCHED, Reading, SChunk, Wanted};
use crate::chunk::decompressor::to_items;
use crate::item::element::{Element, bytes_of, make_items, with_bytes_mut};
use crate::ndarray::Positions;
use crate::support::memory::{Pieces, Target, resize};
use crate::{AxisSelection, Doing, ErrorKind, Reason, Result};

const READ: &str = "read items";
const WRITE: &str = "write items";
/// The maximum number of bytes that are decompressed ahead.
const PIECE: u64 = 1 << 20;

impl SChunk {
    /// Reads the selected items, across chunk boundaries: a range, a list of indices, or another [`AxisSelection`]. With
    /// `T = u8`, the method selects and returns bytes. C: `blosc2_schunk_get_slice_buffer`,
    /// `blosc2_schunk_get_sparse_buffer`. Python: `SChunk.get_slice`.
    ///
    /// The method reads and decompresses only the blocks that contain the items, each at most once, with these
    /// exceptions:
    /// - With the filter delta, it also reads and decompresses the first block of each chunk.
    /// - From a file, it reads the complete compressed chunk if the compressed size is up to 64 KiB, or if more than
    ///   three quarters of the data of the chunk are requested.
    /// - It reads and decompresses a chunk with variable-length blocks completely.
    ///
    /// ```
    /// use blosc2::{CParams, SChunk};
    ///
    /// let mut schunk = SChunk::in_memory::<u32>(&CParams::default())?;
    /// schunk.append(&(0..1000u32).collect::<Vec<_>>())?;
    /// assert_eq!(schunk.read::<u32>(2..4)?, [2, 3]);
    /// assert_eq!(schunk.read::<u32>(-2..)?, [998, 999]);
    /// assert_eq!(schunk.read::<u32>([999, 0, 500, 0])?, [999, 0, 500, 0]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// Fails with the [errors of reading](Self#errors-of-reading), and with
    /// - [`ErrorKind::OutOfBounds`]: an index or a bound is outside the data;
    /// - [`ErrorKind::InvalidArgument`]: the selection is invalid, for example a range that ends before it starts;
    /// - [`ErrorKind::TypeMismatch`]: the size of `T` is not the typesize, and `T` is not `u8`; or a range has no end,
    ///   and the data ends with an incomplete item.
    #[doc(alias("items", "gather", "get_slice", "blosc2_schunk_get_slice_buffer", "__getitem__"))]
    #[doc(alias = "blosc2_schunk_get_sparse_buffer")]
    pub fn read<T: Element>(&self, selection: impl Into<AxisSelection>) -> Result<Vec<T>> {
        let reading = self.reading()?;
        let places = self.places::<T>(&reading, &selection.into())?;
        let nbytes = places.len().saturating_mul(size_of::<T>() as u64);
        self.allow(nbytes).doing(READ)?;
        let len = usize::try_from(nbytes)
            .map_err(|_| self.error(ErrorKind::TooLarge, format!("{nbytes} bytes")).doing(READ))?;
        match places.as_range() {
            Some(range) => {
                let start = range.start * size_of::<T>() as u64;
                to_items(len, |target| self.read_in(&reading, start, target))
            }
            None => make_items(len / size_of::<T>(), |bytes| {
                self.read_places(&reading, places, size_of::<T>(), bytes)
            })
            .doing(READ),
        }
    }

    /// Reads the selected items into `items`, which must have the length of the selection. Otherwise like
    /// [`read`](Self::read).
    ///
    /// # Errors
    /// Fails with the errors of [`read`](Self::read), and with
    /// - [`ErrorKind::InvalidArgument`]: `items` does not have the length of the selection.
    #[doc(alias("items_into", "gather_into"))]
    pub fn read_into<T: Element>(
        &self,
        selection: impl Into<AxisSelection>,
        items: &mut [T],
    ) -> Result<()> {
        let reading = self.reading()?;
        let places = self.places::<T>(&reading, &selection.into())?;
        if places.len() != items.len() as u64 {
            let detail =
                format!("{} items are selected, got room for {}", places.len(), items.len());
            return Err(self.error(ErrorKind::InvalidArgument, detail).doing(READ));
        }
        with_bytes_mut(items, |bytes| match places.as_range() {
            Some(range) => {
                let start = range.start * size_of::<T>() as u64;
                self.read_in(&reading, start, Target::of(bytes)).map(|_| ())
            }
            None => self.read_places(&reading, places, size_of::<T>(), bytes),
        })
    }

    /// Returns the positions of the selected items.
    fn places<T: Element>(
        &self,
        reading: &Reading<'_>,
        selection: &AxisSelection,
    ) -> Result<Positions> {
        self.check_item::<T>().doing(READ)?;
        let (nbytes, size) = (reading.nbytes(), size_of::<T>() as u64);
        if !nbytes.is_multiple_of(size)
            && matches!(selection, AxisSelection::Slice { end: None, .. })
        {
            let detail = format!(
                "{nbytes} bytes are not a multiple of the size of {} ({size} bytes)",
                T::dtype()
            );
            return Err(self.error(ErrorKind::TypeMismatch, detail).doing(READ));
        }
        let items = nbytes / size;
        selection.resolve(items).map_err(|(kind, what)| {
            self.error(kind, format!("it holds {items} items of {size} bytes, {what}")).doing(READ)
        })
    }

    /// Reads the bytes from `start` on to fill `target`.
    pub(super) fn read_to<'t>(&self, start: u64, target: Target<'t>) -> Result<&'t mut [u8]> {
        self.read_in(&self.reading()?, start, target)
    }

    fn read_in<'t>(
        &self,
        reading: &Reading<'_>,
        start: u64,
        target: Target<'t>,
    ) -> Result<&'t mut [u8]> {
        let stop = start.saturating_add(target.len() as u64);
        let mut pieces = Pieces::of(target);
        let mut read = |index: usize, part: Range<usize>, fetched: &Fetched| {
            pieces.fill(part.len(), |target| {
                let ranges = Some(slice::from_ref(&part));
                self.with_chunk_or_fetched(reading, index, ranges, fetched, |chunk, decoder| {
                    check_range(chunk, &part, index)?;
                    decoder.range(chunk, part.start, target)
                })
            })
        };
        if !self.is_remote(reading) {
            self.each_part(reading, start..stop, |index, part, _| {
                read(index, part, &NOTHING_FETCHED)
            })?;
            return Ok(pieces.finish());
        }
        let mut parts = Vec::new();
        self.each_part(reading, start..stop, |index, part, _| {
            parts.push((index, part));
            Ok(())
        })?;
        let wanted = |number: usize| {
            let (index, part) = &parts[number];
            Some(Wanted { index: *index, ranges: Some(vec![part.clone()]) })
        };
        self.fetch_ahead(reading, parts.len(), wanted, |numbers, fetched| {
            let mut parts = parts[numbers].iter();
            parts.try_for_each(|(index, part)| read(*index, part.clone(), fetched))
        })?;
        Ok(pieces.finish())
    }

    /// Overwrites items, starting at the index `start`. Items past the end of the data are appended. C:
    /// `blosc2_schunk_set_slice_buffer`. Python: `schunk[start:stop] = items`.
    ///
    /// Each affected chunk is recompressed, which can create gaps in a contiguous frame; see [`replace`](Self::replace).
    /// Items past the end first fill the last chunk up to the chunk size, and then new chunks. After an error, no item
    /// is written.
    ///
    /// ```
    /// use blosc2::{CParams, SChunk};
    ///
    /// let mut schunk = SChunk::in_memory::<i32>(&CParams::default())?;
    /// schunk.append(&[1, 2, 3])?;
    /// schunk.write(2, &[30, 40, 50])?;
    /// assert_eq!(schunk.read::<i32>(..)?, [1, 2, 30, 40, 50]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// Fails with the errors of [reading](Self#errors-of-reading) and of [changes](Self#errors-of-changes), and with
    /// - [`ErrorKind::OutOfBounds`]: `start` is after the end of the data;
    /// - [`ErrorKind::TypeMismatch`]: the size of `T` is not the typesize, and `T` is not `u8`;
    /// - [`ErrorKind::InvalidArgument`]: items past the end cannot be appended, because the chunks belong to an array,
    ///   the super-chunk has variable-length chunks, or it is empty and has no [chunk size](Self::chunksize);
    /// - [`ErrorKind::Unsupported`]: a prefilter or postfilter is set (it would run a second time on the other items of
    ///   the chunks); or the chunks have variable-length blocks.
    #[doc(alias("write_items", "set_slice", "blosc2_schunk_set_slice_buffer", "__setitem__"))]
    pub fn write<T: Element>(&mut self, start: u64, items: &[T]) -> Result<()> {
        self.check_item::<T>().doing(WRITE)?;
        self.check_change(Access::Write).doing(WRITE)?;
        if self.has_variable_blocks() {
            let detail = "its chunks have variable-length blocks";
            return Err(self.error(ErrorKind::Unsupported, detail).doing(WRITE));
        }
        self.check_unfiltered().doing(WRITE)?;
        // The lock is held, so that no other handle changes the chunks between reading and writing them.
        self.with_lock(|schunk| schunk.overwrite(start, items)).doing(WRITE)
    }

    fn overwrite<T: Element>(&mut self, start: u64, items: &[T]) -> Result<(), Reason> {
        let bytes = bytes_of(items);
        let mut parts = Vec::new();
        {
            let reading = self.reading()?;
            let nbytes = reading.nbytes();
            let from = start.checked_mul(size_of::<T>() as u64).filter(|&from| from <= nbytes);
            let Some(from) = from else {
                let detail = format!(
                    "it has {nbytes} bytes, got items of {} bytes from index {start} on",
                    size_of::<T>()
                );
                return Err(self.error(ErrorKind::OutOfBounds, detail));
            };
            let range = from..from + bytes.len() as u64;
            let part = |index, part, done| {
                parts.push((index, part, done));
                Ok(())
            };
            if range.end <= nbytes {
                self.each_part(&reading, range, part)?;
            } else {
                self.each_part_of_fixed(range, part)?;
            }
        }
        let mut chunks = Vec::with_capacity(parts.len());
        let mut data = Vec::new();
        let end = self.nchunks();
        for (index, part, done) in parts {
            let new = &bytes[done..done + part.len()];
            let old = if index < end { self.chunk_info(index)?.nbytes } else { 0 };
            let len = old.max(part.end);
            let chunk = if part.len() == len {
                self.compressed_bytes(Some(index), new)?
            } else {
                resize(&mut data, len)?;
                self.decompress_chunk_into(index, &mut data[..old])?;
                data[part].copy_from_slice(new);
                self.compressed_bytes(Some(index), &data)?
            };
            chunks.push((index, chunk.into()));
        }
        if chunks.is_empty() { Ok(()) } else { self.put_or_append(chunks, Some(end)) }
    }

    /// Like [`each_part`](Self::each_part), for a range that may extend past the end of the data into new chunks.
    fn each_part_of_fixed(
        &self,
        bytes: Range<u64>,
        mut work: impl FnMut(usize, Range<usize>, usize) -> Result<()>,
    ) -> Result<(), Reason> {
        self.check_no_array()?;
        let size = self.chunksize() as u64;
        if size == 0 {
            let detail = "items past the end require chunks of a fixed size: append chunks instead";
            return Err(self.error(ErrorKind::InvalidArgument, detail));
        }
        let mut at = bytes.start;
        while at < bytes.end {
            let (index, from) = (at / size, at % size);
            let to = size.min(from + (bytes.end - at));
            // The part is smaller than a chunk; the number of chunks is checked when they are stored.
            work(index as usize, from as usize..to as usize, (at - bytes.start) as usize)?;
            at += to - from;
        }
        Ok(())
    }

    /// Reads items of `size` bytes at any positions.
    fn read_places(
        &self,
        reading: &Reading<'_>,
        places: Positions,
        size: usize,
        target: &mut [u8],
    ) -> Result<()> {
        // The positions of the items, twice.
        let scratch = places.len().saturating_mul(2 * size_of::<(u64, usize)>() as u64);
        self.allow_scratch(scratch).doing(READ)?;
        let order: Vec<(u64, usize)> = places
            .into_sorted()
            .into_iter()
            .map(|(at, slot)| (at * size as u64, slot as usize))
            .collect();
        let starts = self.starts(reading)?;
        let starts = starts.as_deref().map(Vec::as_slice);
        let mut rest = &order[..];
        let mut block = Vec::new();
        while let Some(&(first, _)) = rest.first() {
            let (index, chunk) = reading.chunk_of(first, starts);
            // This item lies in two chunks.
            if first + size as u64 > chunk.end {
                let slot = rest[0].1 * size;
                self.read_in(reading, first, Target::of(&mut target[slot..slot + size]))?;
                rest = &rest[1..];
                continue;
            }
            let count = rest.partition_point(|&(at, _)| at + size as u64 <= chunk.end);
            let (these, others) = rest.split_at(count);
            rest = others;
            let span = (these[0].0 - chunk.start) as usize
                ..(these[count - 1].0 - chunk.start) as usize + size;
            self.with_chunk_in(
                reading,
                index,
                Some(slice::from_ref(&span)),
                |compressed, decoder| {
                    check_range(compressed, &span, index)?;
                    let len = match compressed.has_variable_blocks() {
                        true => compressed.nbytes(),
                        false => compressed.header().block_len() as usize,
                    };
                    if !compressed.header().is_compressed() {
                        // A chunk that is not compressed has no blocks that are worth storing between two items.
                        for &(at, slot) in these {
                            let at = (at - chunk.start) as usize;
                            let target = &mut target[slot * size..(slot + 1) * size];
                            decoder.range(compressed, at, Target::of(target))?;
                        }
                        return Ok(());
                    }
                    self.allow_scratch(len as u64).doing(READ)?;
                    // Decompressing a block that ends inside an item needs the neighbouring blocks, which may not have
                    // been read.
                    let has_whole_items =
                        len == compressed.nbytes() || len.is_multiple_of(compressed.typesize());
                    let mut rest = these;
                    while let Some(&(first, slot)) = rest.first() {
                        let at = (first - chunk.start) as usize;
                        let start = at / len * len;
                        let end = compressed.nbytes().min(start + len);
                        let in_block =
                            |at: u64| has_whole_items && (at - chunk.start) as usize + size <= end;
                        let group;
                        (group, rest) =
                            rest.split_at(rest.partition_point(|&(at, _)| in_block(at)).max(1));
                        if !in_block(first) {
                            // An item in several blocks.
                            let target = &mut target[slot * size..(slot + 1) * size];
                            decoder.range(compressed, at, Target::of(target))?;
                            continue;
                        }
                        let part = |at: u64| {
                            let at = (at - chunk.start) as usize - start;
                            at..at + size
                        };
                        resize(&mut block, end - start).doing(READ)?;
                        let each = |piece: &mut dyn FnMut(_)| {
                            group.iter().for_each(|&(at, _)| piece(part(at)));
                        };
                        decoder.pieces(compressed, start, each, &mut block)?;
                        for &(at, slot) in group {
                            target[slot * size..(slot + 1) * size]
                                .copy_from_slice(&block[part(at)]);
                        }
                    }
                    Ok(())
                },
            )?;
        }
        Ok(())
    }

    /// Calls `work` for each chunk that contains bytes of a range. Its arguments are the index of the chunk, the part
    /// of the chunk, and the number of bytes of the range before this part.
    fn each_part(
        &self,
        reading: &Reading<'_>,
        bytes: Range<u64>,
        mut work: impl FnMut(usize, Range<usize>, usize) -> Result<()>,
    ) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let starts = self.starts(reading)?;
        let mut at = bytes.start;
        while at < bytes.end {
            let (index, chunk) = reading.chunk_of(at, starts.as_deref().map(Vec::as_slice));
            let stop = bytes.end.min(chunk.end);
            if stop <= at {
                let detail = format!("byte {at} is in no chunk");
                return Err(self.error(ErrorKind::OutOfBounds, detail).doing(READ));
            }
            // The part lies in a chunk, so that it fits in memory.
            let part = (at - chunk.start) as usize..(stop - chunk.start) as usize;
            work(index, part, (at - bytes.start) as usize)?;
            at = stop;
        }
        Ok(())
    }

    /// Returns the byte offset of a chunk in the decompressed data, or the size of the data if there is no such chunk.
    pub(super) fn start_of(&self, reading: &Reading<'_>, index: usize) -> Result<u64> {
        let nbytes = reading.nbytes();
        if index >= reading.state.nchunks() {
            return Ok(nbytes);
        }
        Ok(match self.starts(reading)? {
            Some(starts) => starts.get(index).copied().unwrap_or(nbytes),
            None => (index as u64).saturating_mul(reading.chunksize() as u64),
        })
    }

    /// Returns the byte offsets of the chunks and the end of the last chunk, for variable-length chunks only.
    fn starts(&self, reading: &Reading<'_>) -> Result<Option<Arc<Vec<u64>>>> {
        let state = &reading.state;
        if state.outline.chunksize() != ChunkSize::Variable {
            return Ok(None);
        }
        if let Some(starts) = self.frame.starts() {
            return Ok(Some(starts));
        }
        let all: Vec<usize> = (0..state.nchunks()).collect();
        let read = || {
            let (mut starts, mut end) = (vec![0], 0);
            for &index in &all {
                let (_, header) = state.locate(index)?;
                end += u64::from(header.nbytes);
                starts.push(end);
            }
            Ok((starts, end))
        };
        let (starts, end) = state.confirmed(&all, read).map_err(|error| self.at(error))?;
        let nbytes = reading.nbytes();
        if end != nbytes {
            let detail = format!("its chunks have {end} bytes, expected {nbytes} as in its header");
            return Err(self.error(ErrorKind::InvalidData, detail).doing(READ));
        }
        let starts = Arc::new(starts);
        self.frame.set_starts(reading, &starts);
        Ok(Some(starts))
    }

    /// Returns a range that starts at `byte` and is efficient to decompress in one call. The range is empty at the end
    /// of the data.
    pub(super) fn piece(&self, byte: u64) -> Result<Range<u64>> {
        let reading = self.reading()?;
        if byte >= reading.nbytes() {
            return Ok(byte..byte);
        }
        let starts = self.starts(&reading)?;
        let (_, chunk) = reading.chunk_of(byte, starts.as_deref().map(Vec::as_slice));
        let block = self.blocksize().map_or(PIECE, |size| size as u64).clamp(1, PIECE);
        let step = PIECE / block * block;
        // The range ends at a block boundary, so that no block is decompressed twice.
        let stop = chunk.start + ((byte - chunk.start) / step + 1) * step;
        Ok(byte..stop.min(chunk.end))
    }
}

impl Reading<'_> {
    fn nbytes(&self) -> u64 {
        self.state.outline.nbytes()
    }

    /// Returns the chunk that contains a byte: its index, and its range of bytes.
    fn chunk_of(&self, byte: u64, starts: Option<&[u64]>) -> (usize, Range<u64>) {
        match starts {
            None => {
                let size = u64::from(self.state.outline.chunksize().fixed().unwrap_or(1));
                let index = byte / size;
                (index as usize, index * size..((index + 1) * size).min(self.nbytes()))
            }
            Some(starts) => {
                let index = starts.partition_point(|&start| start <= byte).saturating_sub(1);
                let end = starts.get(index + 1).copied().unwrap_or(0);
                (index, starts.get(index).copied().unwrap_or(0)..end)
            }
        }
    }
}
