//! NumPy's `.npy` files: headers, and boxes of items.
//!
//! ```
//! use blosc2_format::Dtype;
//! use blosc2_format::npy::Header;
//!
//! let header = Header { dtype: Dtype::parse("<i4")?, shape: vec![3, 4], fortran_order: false };
//! let bytes = header.to_bytes()?;
//! assert_eq!((bytes.len(), &bytes[..6]), (128, &b"\x93NUMPY"[..]));
//! assert_eq!(Header::read(&mut &bytes[..])?, header);
//! # Ok::<(), blosc2_format::Error>(())
//! ```

use std::io::{self, Read};
use std::ops::Range;

use crate::dtype::{LiteralResult, MAX_TEXT_LEN, Unlike, Value, tuple};
use crate::{Dtype, Error, FormatError, ReadAt};

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// NumPy pads the header, including the magic string, to a multiple of this number of bytes.
const ALIGNMENT: usize = 64;
/// The number of digits that NumPy reserves so that the first axis can grow.
const GROWTH_DIGITS: usize = 21;

/// The header of a `.npy` file.
///
/// ```
/// use blosc2_format::Dtype;
/// use blosc2_format::npy::Header;
///
/// let header = Header { dtype: Dtype::parse("<f8")?, shape: vec![10], fortran_order: false };
/// assert_eq!(Header::read(&mut &header.to_bytes()?[..])?.shape, [10]);
/// # Ok::<(), blosc2_format::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The type of the items. A sub-array is not allowed: append the axes of the sub-array to
    /// `shape` instead.
    pub dtype: Dtype,
    /// The shape of the array.
    pub shape: Vec<u64>,
    /// Whether the items are in Fortran order: the first axis varies fastest. Otherwise they are in
    /// C order: the last axis varies fastest.
    pub fortran_order: bool,
}

impl Header {
    /// Returns the header of items in C order. As in NumPy, the axes of a sub-array become the last axes of the array.
    pub fn new(mut dtype: Dtype, mut shape: Vec<u64>) -> Self {
        while let Some((item, axes)) = dtype.subarray() {
            shape.extend(axes);
            dtype = item.clone();
        }
        Self { dtype, shape, fortran_order: false }
    }

    /// Reads the header of a file with random access. Returns the header and the offset of the first item.
    ///
    /// # Errors
    /// Fails with the errors of [`read`](Self::read).
    pub fn read_at(source: &(impl ReadAt + ?Sized)) -> Result<(Self, u64), Error> {
        let mut start = Start { source, at: 0 };
        let header = Self::read(&mut start)?;
        Ok((header, start.at))
    }

    /// Returns the layout of the items.
    pub fn layout(&self) -> Layout {
        let (shape, typesize) = (self.shape.clone(), self.dtype.size());
        Layout { shape, typesize, fortran_order: self.fortran_order }
    }

    /// Reads the header. The next byte of `file` is then the first byte of the first item.
    ///
    /// # Errors
    /// - [`Error::Format`]: the bytes are not a `.npy` file, are truncated, or have an invalid
    ///   header;
    /// - [`Error::Unsupported`]: the version of the format is unknown;
    /// - [`Error::Limit`]: the header has more than 1 MiB (NumPy's default limit is 10,000 bytes);
    /// - [`Error::Io`]: reading fails.
    pub fn read(file: &mut impl Read) -> Result<Self, Error> {
        let start: [u8; 8] = read(file, 0)?;
        if !start.starts_with(MAGIC) {
            let found = start.escape_ascii();
            return Err(FormatError::new("start of an npy file", 0, "\\x93NUMPY", found).into());
        }
        let (len, at) = match start[6] {
            1 => (u32::from(u16::from_le_bytes(read(file, 8)?)), 10),
            2 | 3 => (u32::from_le_bytes(read(file, 8)?), 12),
            version => return Err(Error::Unsupported(format!("version {version} of npy files"))),
        };
        let (amount, max) = (u64::from(len), MAX_TEXT_LEN as u64);
        if amount > max {
            return Err(Error::Limit { limit: None, what: "bytes of an npy header", amount, max });
        }
        let mut bytes = Vec::new();
        file.take(amount).read_to_end(&mut bytes)?;
        if (bytes.len() as u64) < amount {
            return Err(cut_short(at, amount, bytes.len()));
        }
        // Versions 1 and 2 use Latin-1, whose codes are those of Unicode.
        let text = match start[6] {
            3 => String::from_utf8(bytes)
                .map_err(|error| FormatError::new(WHAT, at, "UTF-8", error))?,
            _ => bytes.into_iter().map(char::from).collect(),
        };
        Self::parse(&text).map_err(|unlike| unlike.in_text(WHAT, &text))
    }

    fn parse(text: &str) -> LiteralResult<Self> {
        let header = Value::parse(text, Dtype::MAX_BRACKETS + 1)?;
        let get = |key: &str, value: &str| {
            header.get(key).ok_or_else(|| Unlike::new(format!("{value} `{key}`")))
        };
        let dtype = Dtype::from_descr_value(get("descr", "a dtype")?)?;
        let wrong = |value: &str| Unlike::new(value.to_owned());
        let shape = match get("shape", "a tuple")? {
            Value::Tuple(sizes) => sizes.iter().map(Value::as_int).collect::<Option<Vec<_>>>(),
            _ => None,
        };
        let shape = shape.ok_or_else(|| wrong("a shape that is a tuple of numbers"))?;
        let fortran_order = get("fortran_order", "True or False")?.as_bool();
        let fortran_order =
            fortran_order.ok_or_else(|| wrong("True or False for `fortran_order`"))?;
        if dtype.subarray().is_some() {
            return Err(wrong("a dtype that is not a sub-array, whose axes belong to the shape"));
        }
        Ok(Self { dtype, shape, fortran_order })
    }

    /// Returns the bytes before the items, as NumPy writes them.
    ///
    /// # Errors
    /// - [`Error::Argument`]: the dtype is a sub-array;
    /// - [`Error::Unsupported`]: the `.npy` format cannot express the dtype, see
    ///   [`Dtype::to_descr`]; or the header would have more than 1 MiB, so that
    ///   [`read`](Self::read) would fail.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        if self.dtype.subarray().is_some() {
            return Err(Error::Argument(format!(
                "a header with the sub-array {}: expected the dtype of its items, and its axes in the shape",
                self.dtype
            )));
        }
        let order = if self.fortran_order { "True" } else { "False" };
        let (descr, shape) = (self.dtype.to_descr()?, tuple(&self.shape));
        let mut text =
            format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}");
        let first = if self.fortran_order { self.shape.last() } else { self.shape.first() };
        if let Some(first) = first {
            let digits = first.to_string().len();
            text.push_str(&" ".repeat(GROWTH_DIGITS.saturating_sub(digits)));
        }
        // Version 1 uses Latin-1 and a length of two bytes; version 3 uses UTF-8 and four bytes.
        let latin1: Option<Vec<u8>> = text.chars().map(|each| u8::try_from(each).ok()).collect();
        let (version, body) = match latin1 {
            Some(latin1) if latin1.len() + 2 * ALIGNMENT <= usize::from(u16::MAX) => (1, latin1),
            Some(latin1) => (2, latin1),
            None => (3, text.into_bytes()),
        };
        let start = if version == 1 { 10 } else { 12 };
        // NumPy also extends a header whose length already is a multiple of the alignment.
        let len = (start + body.len() + 2).next_multiple_of(ALIGNMENT) - start;
        let too_long = || Error::Unsupported(format!("an npy header of {len} bytes"));
        // Readers refuse it.
        if len > MAX_TEXT_LEN {
            return Err(too_long());
        }
        let mut bytes = MAGIC.to_vec();
        bytes.extend([version, 0]);
        match version {
            1 => bytes.extend(u16::try_from(len).map_err(|_| too_long())?.to_le_bytes()),
            _ => bytes.extend(u32::try_from(len).map_err(|_| too_long())?.to_le_bytes()),
        }
        bytes.extend(body);
        bytes.resize(start + len - 1, b' ');
        bytes.push(b'\n');
        Ok(bytes)
    }
}

/// The bytes of a source, from its start.
struct Start<'a, R: ?Sized> {
    source: &'a R,
    at: u64,
}

impl<R: ReadAt + ?Sized> Read for Start<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.source.size()?.saturating_sub(self.at);
        let len = left.min(buffer.len() as u64) as usize;
        self.source.read_exact_at(self.at, &mut buffer[..len])?;
        self.at += len as u64;
        Ok(len)
    }
}

/// The shape and the order of uncompressed items that follow one another.
///
/// ```
/// use blosc2_format::ReadAt;
/// use blosc2_format::npy::Layout;
///
/// // The array [[0, 1, 2], [3, 4, 5]] in Fortran order.
/// let (bytes, mut columns) = ([0u8, 3, 1, 4, 2, 5], [0; 4]);
/// let layout = Layout { shape: vec![2, 3], typesize: 1, fortran_order: true };
/// layout.read_box(&[0..2, 1..3], &mut columns, &|at, part| bytes[..].read_exact_at(at, part))?;
/// assert_eq!(columns, [1, 2, 4, 5]);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// The shape.
    pub shape: Vec<u64>,
    /// The size of an item in bytes.
    pub typesize: usize,
    /// Whether the items are in Fortran order: the first axis varies fastest. Otherwise they are in C order.
    pub fortran_order: bool,
}

/// A part is read at once, with the bytes between its items, if these are at most this many times its bytes, and at most
/// this many bytes.
const DENSE: u64 = 8;
const LARGEST: u64 = 16 << 20;

impl Layout {
    /// Returns the number of bytes of all items; `None` if it does not fit in a `u64`.
    pub fn nbytes(&self) -> Option<u64> {
        if self.shape.contains(&0) {
            return Some(0);
        }
        self.shape.iter().try_fold(self.typesize as u64, |len, &size| len.checked_mul(size))
    }

    /// Reads the items in a box to `bytes`, in C order. `read` fills a buffer with the bytes at an offset from the first
    /// item. Parts of the box that are close together are read by one call. `bytes` must have the length of the items
    /// in the box, and the box must be inside the shape.
    ///
    /// # Errors
    /// Fails with the errors of `read`, and with [`InvalidInput`](io::ErrorKind::InvalidInput) if the box is not inside
    /// the shape, or does not have the length of `bytes`.
    pub fn read_box(
        &self,
        ranges: &[Range<u64>],
        bytes: &mut [u8],
        read: &dyn Fn(u64, &mut [u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let is_inside =
            |(range, size): (&Range<u64>, &u64)| range.start <= range.end && range.end <= *size;
        let lens = ranges.iter().map(|range| range.end.saturating_sub(range.start));
        let len = lens.fold(self.typesize as u64, u64::saturating_mul);
        let fits =
            ranges.len() == self.shape.len() && ranges.iter().zip(&self.shape).all(is_inside);
        if !fits || len != bytes.len() as u64 || self.nbytes().is_none() {
            let (shape, size) = (&self.shape, bytes.len());
            let detail = format!("{size} bytes for the box {ranges:?} of the shape {shape:?}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, detail));
        }
        if bytes.is_empty() {
            return Ok(());
        }
        if !self.fortran_order {
            let strides = strides(&self.shape, self.typesize);
            return Boxes { strides, typesize: self.typesize as u64, read }
                .read(&mut ranges.to_vec(), bytes);
        }
        // In C order, the file contains the transposed array.
        let shape: Vec<u64> = self.shape.iter().rev().copied().collect();
        let boxes =
            Boxes { strides: strides(&shape, self.typesize), typesize: self.typesize as u64, read };
        let mut transposed: Vec<Range<u64>> = ranges.iter().rev().cloned().collect();
        let mut turned = vec![0; bytes.len()];
        boxes.read(&mut transposed, &mut turned)?;
        transpose(&turned, ranges, self.typesize, bytes);
        Ok(())
    }
}

/// Returns the distances between neighbors on each axis in bytes, in C order. The size of the array fits in a `u64`.
fn strides(shape: &[u64], typesize: usize) -> Vec<u64> {
    let mut strides = vec![typesize as u64; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis];
    }
    strides
}

/// Reads boxes of an array in C order.
struct Boxes<'a> {
    strides: Vec<u64>,
    typesize: u64,
    read: &'a dyn Fn(u64, &mut [u8]) -> io::Result<()>,
}

impl Boxes<'_> {
    /// The offset of the first item of a box, and of the end of its last item.
    fn span(&self, ranges: &[Range<u64>]) -> Range<u64> {
        let at = |index: fn(&Range<u64>) -> u64| -> u64 {
            ranges.iter().zip(&self.strides).map(|(range, stride)| index(range) * stride).sum()
        };
        at(|range| range.start)..at(|range| range.end - 1) + self.typesize
    }

    fn read(&self, ranges: &mut [Range<u64>], bytes: &mut [u8]) -> io::Result<()> {
        let span = self.span(ranges);
        let (dense, len) = (span.end - span.start, bytes.len() as u64);
        if dense == len {
            return (self.read)(span.start, bytes);
        }
        if dense / DENSE <= len && dense <= LARGEST {
            let mut all = vec![0; dense as usize];
            (self.read)(span.start, &mut all)?;
            self.copy(ranges, &all, span.start, bytes);
            return Ok(());
        }
        self.split(ranges, bytes, |boxes, ranges, part| boxes.read(ranges, part))
    }

    /// Copies a box from the bytes of the array from the offset `start` on.
    fn copy(&self, ranges: &mut [Range<u64>], all: &[u8], start: u64, bytes: &mut [u8]) {
        let span = self.span(ranges);
        if span.end - span.start == bytes.len() as u64 {
            bytes.copy_from_slice(&all[(span.start - start) as usize..][..bytes.len()]);
            return;
        }
        let _ = self.split(ranges, bytes, |boxes, ranges, part| {
            boxes.copy(ranges, all, start, part);
            Ok(())
        });
    }

    /// Calls `work` for each index of the first axis on which the box has several.
    fn split(
        &self,
        ranges: &mut [Range<u64>],
        bytes: &mut [u8],
        mut work: impl FnMut(&Self, &mut [Range<u64>], &mut [u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let wide = ranges.iter().position(|range| range.end - range.start > 1);
        // A box of one item is contiguous.
        let Some(axis) = wide else { return Ok(()) };
        let all = ranges[axis].clone();
        let part = bytes.len() / (all.end - all.start) as usize;
        for (index, part) in all.clone().zip(bytes.chunks_exact_mut(part)) {
            ranges[axis] = index..index + 1;
            work(self, ranges, part)?;
        }
        ranges[axis] = all;
        Ok(())
    }
}

/// Reorders the items of a box from Fortran order to C order.
fn transpose(turned: &[u8], ranges: &[Range<u64>], typesize: usize, bytes: &mut [u8]) {
    let sizes: Vec<usize> = ranges.iter().map(|range| (range.end - range.start) as usize).collect();
    let mut strides = Vec::with_capacity(sizes.len());
    // All items are in memory, so the products fit.
    let mut stride = typesize;
    for &size in &sizes {
        strides.push(stride);
        stride *= size;
    }
    let (mut index, mut at) = (vec![0; sizes.len()], 0);
    for item in bytes.chunks_exact_mut(typesize) {
        item.copy_from_slice(&turned[at..at + typesize]);
        for axis in (0..sizes.len()).rev() {
            index[axis] += 1;
            at += strides[axis];
            if index[axis] < sizes[axis] {
                break;
            }
            at -= strides[axis] * sizes[axis];
            index[axis] = 0;
        }
    }
}

const WHAT: &str = "npy header";

fn read<const N: usize>(file: &mut impl Read, at: usize) -> Result<[u8; N], Error> {
    let mut bytes = Vec::with_capacity(N);
    file.take(N as u64).read_to_end(&mut bytes)?;
    let len = bytes.len();
    bytes.try_into().map_err(|_| cut_short(at, N as u64, len))
}

fn cut_short(at: usize, wanted: u64, found: usize) -> Error {
    FormatError::new(WHAT, at, format_args!("{wanted} bytes"), found).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_numpys() {
        // As numpy.save writes np.zeros((3, 4), '<i4').
        let header =
            Header { dtype: Dtype::parse("<i4").unwrap(), shape: vec![3, 4], fortran_order: false };
        let bytes = header.to_bytes().unwrap();
        let text = "{'descr': '<i4', 'fortran_order': False, 'shape': (3, 4), }";
        assert_eq!(&bytes[..10], b"\x93NUMPY\x01\x00\x76\x00");
        assert_eq!(bytes.len(), 128);
        assert_eq!(&bytes[10..10 + text.len()], text.as_bytes());
        assert_eq!(bytes[127], b'\n');
        assert_eq!(Header::read(&mut bytes.as_slice()).unwrap(), header);
        for cut in 0..bytes.len() {
            assert!(Header::read(&mut &bytes[..cut]).is_err(), "{cut}");
        }
        let pairs = Header { dtype: Dtype::parse("('<i4', (2,))").unwrap(), ..header };
        assert!(matches!(pairs.to_bytes(), Err(Error::Argument(_))));
    }

    #[test]
    fn names_and_lengths_choose_the_version() {
        let long: Vec<String> = (0..5000).map(|i| format!("('field{i}', '<i4')")).collect();
        let long = format!("[{}]", long.join(", "));
        for (dtype, version) in [("[('é', '<i4')]", 1), (&*long, 2), ("[('日', '<i4')]", 3)] {
            let dtype = Dtype::parse(dtype).unwrap();
            let header = Header { dtype, shape: vec![], fortran_order: true };
            let bytes = header.to_bytes().unwrap();
            assert_eq!((bytes[6], bytes.len() % ALIGNMENT), (version, 0));
            assert_eq!(Header::read(&mut bytes.as_slice()).unwrap(), header);
        }
    }

    /// Readers refuse longer headers.
    #[test]
    fn long_headers_are_read_or_not_written() {
        let header = |name: usize| {
            let dtype = Dtype::parse(&format!("[('{}', '<i4')]", "x".repeat(name))).unwrap();
            Header { dtype, shape: vec![3, 4], fortran_order: false }
        };
        for name in [70_000, MAX_TEXT_LEN - 200, MAX_TEXT_LEN - 100, MAX_TEXT_LEN - 20] {
            let header = header(name);
            match header.to_bytes() {
                Ok(bytes) => assert_eq!(Header::read(&mut bytes.as_slice()).unwrap(), header),
                Err(error) => {
                    assert!(name > MAX_TEXT_LEN - 200, "{name}");
                    assert!(matches!(error, Error::Unsupported(_)), "{error}");
                }
            }
        }
        assert!(header(MAX_TEXT_LEN - 20).to_bytes().is_err());
    }

    /// The two-byte items of a box, whose values are their positions in C order.
    fn expected(shape: &[u64], ranges: &[Range<u64>]) -> Vec<u8> {
        let mut numbers = vec![0];
        for (size, range) in shape.iter().zip(ranges) {
            let along = |base: &u64| range.clone().map(|at| base * size + at).collect::<Vec<_>>();
            numbers = numbers.iter().flat_map(along).collect();
        }
        numbers.iter().flat_map(|&number| (number as u16).to_le_bytes()).collect()
    }

    #[test]
    fn boxes_are_read_in_both_orders() {
        let shape = [7u64, 5, 6];
        let whole: Vec<_> = shape.iter().map(|&size| 0..size).collect();
        let c_order = expected(&shape, &whole);
        let fortran: Vec<u8> = (0..6u16)
            .flat_map(|k| (0..5).flat_map(move |j| (0..7).map(move |i| (i * 5 + j) * 6 + k)))
            .flat_map(u16::to_le_bytes)
            .collect();
        for (fortran_order, stored) in [(false, &c_order), (true, &fortran)] {
            let layout = Layout { shape: shape.to_vec(), typesize: 2, fortran_order };
            assert_eq!(layout.nbytes(), Some(420));
            for box_ in [
                [0..7, 0..5, 0..6],
                [1..3, 2..3, 0..6],
                [6..7, 4..5, 5..6],
                [0..7, 1..2, 3..4],
                [2..2, 0..5, 0..6],
                [0..7, 0..5, 2..4],
            ] {
                let expected = expected(&shape, &box_);
                let mut found = vec![0; expected.len()];
                layout
                    .read_box(&box_, &mut found, &|at, part| stored[..].read_exact_at(at, part))
                    .unwrap();
                assert_eq!(found, expected, "{fortran_order} {box_:?}");
            }
            let outside = layout.read_box(&[0..8, 0..1, 0..1], &mut [0; 16], &|_, _| Ok(()));
            assert_eq!(outside.unwrap_err().kind(), io::ErrorKind::InvalidInput);
        }
        // No axes: one item.
        let scalar = Layout { shape: vec![], typesize: 2, fortran_order: true };
        let mut found = [0; 2];
        scalar
            .read_box(&[], &mut found, &|at, part| c_order[..].read_exact_at(at + 2, part))
            .unwrap();
        assert_eq!(found, [1, 0]);
        let huge = Layout { shape: vec![u64::MAX, 2], typesize: 1, fortran_order: false };
        assert_eq!(huge.nbytes(), None);
    }

    #[test]
    fn distant_parts_are_read_without_what_is_between() {
        let largest = std::cell::Cell::new(0);
        let layout = Layout { shape: vec![64, 1 << 20], typesize: 1, fortran_order: false };
        let mut found = [0; 128];
        let read = |at: u64, part: &mut [u8]| {
            largest.set(largest.get().max(part.len()));
            part.iter_mut().zip(at..).for_each(|(byte, at)| *byte = at as u8);
            Ok(())
        };
        layout.read_box(&[0..64, 5..7], &mut found, &read).unwrap();
        assert_eq!((&found[..], largest.get()), (&[5, 6].repeat(64)[..], 2));
    }

    #[test]
    fn sub_arrays_become_axes() {
        let header = Header::new(Dtype::parse("('<i4', (2, 3))").unwrap(), vec![5]);
        assert_eq!((header.dtype.to_string(), header.shape), ("<i4".to_owned(), vec![5, 2, 3]));
    }
}
