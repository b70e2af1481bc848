//! Uncompressed items in a file or a stream, read box by box.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, anyhow, bail};

use blosc2_format::ReadAt;
use blosc2_format::npy::Layout;

use crate::remote::Bytes;

/// Bytes of a stream that are held in memory. If the rows of a chunk take more, the stream is copied to a temporary
/// file.
const MOST: u64 = 64 << 20;

/// The number of bytes of all items.
pub(crate) fn nbytes(layout: &Layout) -> Result<u64> {
    layout
        .nbytes()
        .ok_or_else(|| anyhow!("its shape {:?} has more than 2^64 - 1 bytes", layout.shape))
}

/// The number of bytes at one index of the first axis.
fn row(layout: &Layout) -> u64 {
    let sizes = layout.shape.iter().skip(1);
    sizes.fold(layout.typesize as u64, |len, &size| len.saturating_mul(size))
}

/// Uncompressed items.
pub(crate) struct RawItems {
    layout: Layout,
    data: Mutex<Data>,
}

enum Data {
    File(Arc<Region>),
    Stream(Stream),
}

/// A file with items.
struct Region {
    file: Box<dyn Bytes>,
    /// The offset of the first item in the file.
    start: u64,
    /// The first row (index of the first axis) in the file.
    row: u64,
}

impl RawItems {
    /// The items of a file from its current position to its end.
    pub(crate) fn of_file(mut file: File, layout: Layout) -> Result<Self> {
        let start = file.stream_position()?;
        Self::of_source(file, start, layout)
    }

    /// The items from an offset to the end of a file or object.
    pub(crate) fn of_source(
        source: impl Bytes + 'static,
        start: u64,
        layout: Layout,
    ) -> Result<Self> {
        check_len(source.size()?.saturating_sub(start), nbytes(&layout)?)?;
        let region = Region { file: Box::new(source), start, row: 0 };
        Ok(Self { layout, data: Mutex::new(Data::File(Arc::new(region))) })
    }

    /// The items that a stream holds up to its end.
    pub(crate) fn of_stream(reader: Box<dyn Read + Send>, layout: Layout) -> Result<Self> {
        Self::with_memory(reader, layout, MOST)
    }

    fn with_memory(reader: Box<dyn Read + Send>, layout: Layout, most: u64) -> Result<Self> {
        let mut stream =
            Stream { reader, base: 0, rows: Vec::new(), next: 0, read: BTreeMap::new(), most };
        let data = match nbytes(&layout)? {
            0 => {
                stream.expect_end(0)?;
                Data::Stream(stream)
            }
            _ if layout.fortran_order => Data::File(Arc::new(stream.spool(&layout)?)),
            _ => Data::Stream(stream),
        };
        Ok(Self { layout, data: Mutex::new(data) })
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Reads the items in a box to `bytes`, in C order. Each box of a stream is read once.
    pub(crate) fn read(&self, ranges: &[Range<u64>], bytes: &mut [u8]) -> Result<()> {
        let region = {
            let mut data = self.data.lock().unwrap_or_else(PoisonError::into_inner);
            match &mut *data {
                Data::File(region) => Arc::clone(region),
                Data::Stream(stream) => {
                    if stream.read(&self.layout, ranges, bytes)? {
                        return Ok(());
                    }
                    let region = Arc::new(stream.spool(&self.layout)?);
                    *data = Data::File(Arc::clone(&region));
                    region
                }
            }
        };
        region.read(&self.layout, ranges, bytes)
    }
}

impl Region {
    fn read(&self, layout: &Layout, ranges: &[Range<u64>], bytes: &mut [u8]) -> Result<()> {
        let (mut layout, mut ranges) = (layout.clone(), ranges.to_vec());
        if let (Some(size), Some(rows)) = (layout.shape.first_mut(), ranges.first_mut()) {
            *size -= self.row;
            *rows = rows.start - self.row..rows.end - self.row;
        }
        let from = |at: u64, part: &mut [u8]| self.file.read_exact_at(self.start + at, part);
        Ok(layout.read_box(&ranges, bytes, &from)?)
    }
}

/// Reads a box of an array in C order. `read` reads a range of the bytes of the array. Parts of the box that are close
/// together are read at once, with the bytes between them.
pub(crate) fn read_flat(
    shape: &[u64],
    typesize: usize,
    ranges: &[Range<u64>],
    read: &dyn Fn(Range<u64>) -> Result<Vec<u8>>,
) -> Result<Vec<u8>> {
    let lens = ranges.iter().map(|range| range.end - range.start);
    let len = lens.fold(typesize as u64, u64::saturating_mul);
    let mut strides = vec![typesize as u64; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis].saturating_mul(shape[axis]);
    }
    let mut bytes = vec![0; usize::try_from(len)?];
    if len > 0 {
        let layout = Layout { shape: shape.to_vec(), typesize, fortran_order: false };
        let flat = Flat { layout, strides, read };
        flat.read(&mut ranges.to_vec(), &mut bytes)?;
    }
    Ok(bytes)
}

/// An array in C order.
struct Flat<'a> {
    layout: Layout,
    strides: Vec<u64>,
    read: &'a dyn Fn(Range<u64>) -> Result<Vec<u8>>,
}

impl Flat<'_> {
    fn read(&self, ranges: &mut [Range<u64>], bytes: &mut [u8]) -> Result<()> {
        /// Bytes that are read at once, if more is read than needed.
        const WINDOW: u64 = 4 << 20;
        let offset = |at: &dyn Fn(&Range<u64>) -> u64| -> u64 {
            ranges.iter().zip(&self.strides).map(|(range, stride)| at(range) * stride).sum()
        };
        let start = offset(&|range| range.start);
        let end = offset(&|range| range.end - 1) + self.layout.typesize as u64;
        let wide = ranges.iter().position(|range| range.end - range.start > 1);
        let axis = match wide.filter(|_| end - start > WINDOW.max(bytes.len() as u64)) {
            Some(axis) => axis,
            None => {
                let found = (self.read)(start..end)?;
                let from = |at: u64, part: &mut [u8]| found[..].read_exact_at(at - start, part);
                return Ok(self.layout.read_box(ranges, bytes, &from)?);
            }
        };
        // The halves of the box follow one another in C order.
        let Range { start, end } = ranges[axis].clone();
        let middle = start + (end - start) / 2;
        let (low, high) =
            bytes.split_at_mut(bytes.len() / (end - start) as usize * (middle - start) as usize);
        ranges[axis] = start..middle;
        self.read(ranges, low)?;
        ranges[axis] = middle..end;
        self.read(ranges, high)?;
        ranges[axis] = start..end;
        Ok(())
    }
}

/// Items in C order that are read once, row by row. A row is all items at one index of the first axis.
struct Stream {
    reader: Box<dyn Read + Send>,
    /// The first row in memory.
    base: u64,
    /// The rows in memory.
    rows: Vec<u8>,
    /// The first row that is not read yet.
    next: u64,
    /// For the first row of each box: the end of the rows, and the bytes that were read of them.
    read: BTreeMap<u64, (u64, u64)>,
    /// The most bytes of rows in memory.
    most: u64,
}

impl Stream {
    /// Reads a box. Returns `false` if this needs more memory than allowed.
    fn read(&mut self, layout: &Layout, ranges: &[Range<u64>], bytes: &mut [u8]) -> Result<bool> {
        let rows = ranges.first().cloned().unwrap_or(0..1);
        let (row, all) = (row(layout), layout.shape.first().copied().unwrap_or(1));
        if rows.end > self.next {
            let len = (rows.end - self.base).saturating_mul(row);
            if len > self.most {
                return Ok(false);
            }
            let from = self.rows.len();
            self.rows.resize(usize::try_from(len)?, 0);
            self.fill(layout, from)?;
            self.next = rows.end;
            if self.next == all {
                self.expect_end(nbytes(layout)?)?;
            }
        }
        let mut shape = layout.shape.clone();
        let mut ranges = ranges.to_vec();
        if let (Some(size), Some(rows)) = (shape.first_mut(), ranges.first_mut()) {
            *size = self.next - self.base;
            *rows = rows.start - self.base..rows.end - self.base;
        }
        let held = Layout { shape, ..layout.clone() };
        held.read_box(&ranges, bytes, &|at, part| self.rows[..].read_exact_at(at, part))?;
        let done = self.read.entry(rows.start).or_insert((rows.end, 0));
        done.1 += bytes.len() as u64;
        // Rows are dropped when all of their boxes have been read.
        let base = self.base;
        while let Some(first) = self.read.first_entry() {
            let (&start, &(end, done)) = (first.key(), first.get());
            if start != self.base || done < (end - start).saturating_mul(row) {
                break;
            }
            first.remove();
            self.base = end;
        }
        let dropped = usize::try_from((self.base - base) * row)?;
        self.rows.drain(..dropped);
        Ok(true)
    }

    /// Reads the bytes of `rows` from `from` on.
    fn fill(&mut self, layout: &Layout, from: usize) -> Result<()> {
        let before = self.next.saturating_mul(row(layout));
        let mut done = from;
        while done < self.rows.len() {
            match self.reader.read(&mut self.rows[done..]) {
                Ok(0) => return truncated(nbytes(layout)?, before + (done - from) as u64),
                Ok(len) => done += len,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn expect_end(&mut self, len: u64) -> Result<()> {
        let mut one = [0];
        loop {
            return match self.reader.read(&mut one) {
                Ok(0) => Ok(()),
                Ok(_) => too_long(len),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => Err(error.into()),
            };
        }
    }

    /// Copies the rows in memory and the rest of the stream to a temporary file.
    fn spool(&mut self, layout: &Layout) -> Result<Region> {
        let failed = |error: io::Error| anyhow!("cannot create a temporary file: {error}");
        let mut file = tempfile::tempfile().map_err(failed)?;
        file.write_all(&self.rows).map_err(failed)?;
        self.rows = Vec::new();
        let mut found = self.next.saturating_mul(row(layout));
        let expected = nbytes(layout)?;
        let mut piece = vec![0; 1 << 20];
        loop {
            let len = match self.reader.read(&mut piece) {
                Ok(0) => break,
                Ok(len) => len,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            found += len as u64;
            if found > expected {
                too_long(expected)?;
            }
            file.write_all(&piece[..len]).map_err(failed)?;
        }
        check_len(found, expected)?;
        file.seek(SeekFrom::Start(0)).map_err(failed)?;
        Ok(Region { file: Box::new(file), start: 0, row: self.base })
    }
}

fn check_len(found: u64, expected: u64) -> Result<()> {
    match found {
        _ if found < expected => truncated(expected, found),
        _ if found > expected => too_long(expected),
        _ => Ok(()),
    }
}

fn truncated(expected: u64, found: u64) -> Result<()> {
    bail!("the file is truncated: expected {expected} bytes of items, found {found}")
}

fn too_long(expected: u64) -> Result<()> {
    bail!("more bytes follow the {expected} bytes of its items; only one array can be imported")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distant_parts_are_read_without_what_is_between() {
        let largest = std::cell::Cell::new(0);
        let read = |range: Range<u64>| {
            largest.set(largest.get().max(range.end - range.start));
            Ok(range.map(|at| at as u8).collect())
        };
        // Two columns of 64 MiB.
        let found = read_flat(&[64, 1 << 20], 1, &[0..64, 5..7], &read).unwrap();
        assert_eq!(found, [5, 6].repeat(64));
        assert!((1..=4 << 20).contains(&largest.get()), "{} bytes", largest.get());
    }

    /// The boxes of all chunks, in C order.
    fn chunks(shape: &[u64], chunk: &[u64]) -> Vec<Vec<Range<u64>>> {
        let mut boxes = vec![Vec::new()];
        for (&size, &side) in shape.iter().zip(chunk) {
            let starts = (0..size.div_ceil(side)).map(|place| place * side);
            let ranges: Vec<_> = starts.map(|at| at..size.min(at + side)).collect();
            let next = boxes.iter().flat_map(|before: &Vec<_>| {
                ranges.iter().map(move |range| [&before[..], std::slice::from_ref(range)].concat())
            });
            boxes = next.collect();
        }
        boxes
    }

    /// The two-byte items of a box, whose values are their positions in C order.
    fn expected(shape: &[u64], ranges: &[Range<u64>]) -> Vec<u8> {
        let mut numbers = vec![0];
        for (size, range) in shape.iter().zip(ranges) {
            numbers = numbers
                .iter()
                .flat_map(|base| range.clone().map(move |at| base * size + at))
                .collect();
        }
        numbers.iter().flat_map(|&number| (number as u16).to_le_bytes()).collect()
    }

    fn whole(shape: &[u64]) -> Vec<Range<u64>> {
        shape.iter().map(|&size| 0..size).collect()
    }

    #[test]
    fn boxes_are_read_in_any_order_and_with_any_memory() {
        let shape = [11, 7, 6];
        for fortran in [false, true] {
            let bytes = match fortran {
                false => expected(&shape, &whole(&shape)),
                // The transpose of the transpose is the array.
                true => (0..6u16)
                    .flat_map(|k| {
                        (0..7).flat_map(move |j| (0..11).map(move |i| (i * 7 + j) * 6 + k))
                    })
                    .flat_map(u16::to_le_bytes)
                    .collect(),
            };
            for chunk in [[4, 3, 5], [1, 7, 6], [11, 1, 1], [3, 7, 2], [11, 7, 6], [20, 20, 20]] {
                for most in [0, 84, 400, 700, 10_000] {
                    for swapped in [false, true] {
                        let layout =
                            Layout { shape: shape.to_vec(), typesize: 2, fortran_order: fortran };
                        let reader = Box::new(io::Cursor::new(bytes.clone()));
                        let items = RawItems::with_memory(reader, layout, most).unwrap();
                        let mut boxes = chunks(&shape, &chunk);
                        if swapped {
                            // As by several threads.
                            boxes.chunks_mut(2).for_each(<[_]>::reverse);
                        }
                        for ranges in boxes {
                            let expected = expected(&shape, &ranges);
                            let mut found = vec![0; expected.len()];
                            items.read(&ranges, &mut found).unwrap();
                            assert_eq!(found, expected, "{fortran} {chunk:?} {most} {ranges:?}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn wrong_lengths_are_refused() {
        for most in [0, 1000] {
            for len in [0, 1, 83, 85, 1000] {
                let layout = Layout { shape: vec![6, 7], typesize: 2, fortran_order: false };
                let items =
                    RawItems::with_memory(Box::new(io::repeat(1).take(len)), layout, most).unwrap();
                let read = |rows| items.read(&[rows, 0..7], &mut [0; 42]);
                let error = read(0..3).and_then(|()| read(3..6)).unwrap_err().to_string();
                let reason = if len < 84 { "the file is truncated" } else { "more bytes follow" };
                assert!(error.contains(reason), "{most} {len}: {error}");
            }
        }
    }
}
