//! npy files: the order of their items, and reading boxes of items.

use std::ops::Range;

use anyhow::{Result, bail};
use blosc2::storage::ReadAt;
use blosc2_format::npy::Header;

use crate::file::Source;
use crate::stream::Items;

const MAGIC: &[u8] = b"\x93NUMPY";
/// More than the bytes of any header that is read.
const MAX_HEADER: u64 = 2 << 20;

/// The items of an npy file.
pub(crate) struct NpyItems<'a> {
    source: Source<'a>,
    bytes: Box<dyn ReadAt + 'a>,
    /// Offset of the first item.
    start: u64,
    header: Header,
}

impl<'a> NpyItems<'a> {
    /// Opens a file; returns `None` if it is not an npy file.
    pub(crate) fn open(source: Source<'a>) -> Result<Option<Self>> {
        let is_npy = |bytes: &dyn ReadAt| {
            bytes.read_vec_at(0, MAGIC.len() as u64).is_ok_and(|start| start == MAGIC)
        };
        // An error of reading is reported when the file is opened as another kind.
        let bytes = match source.bytes() {
            Ok(bytes) if source.key.is_none() && is_npy(&bytes) => bytes,
            _ => return Ok(None),
        };
        let items = Self::new(source, Box::new(bytes)).map_err(|error| source.unread(&error))?;
        Ok(Some(items))
    }

    fn new(source: Source<'a>, bytes: Box<dyn ReadAt + 'a>) -> Result<Self> {
        let size = bytes.size()?;
        let start = bytes.read_vec_at(0, size.min(MAX_HEADER))?;
        let mut rest = start.as_slice();
        let header = Header::read(&mut rest)?;
        let start = (start.len() - rest.len()) as u64;
        if header.fortran_order && header.shape.len() > 1 {
            bail!("its items are in Fortran order; `import` converts them");
        }
        if header.dtype.has_pointers() || header.dtype.size() == 0 {
            bail!("its dtype `{}` has no data in the file", header.dtype);
        }
        let items = Self { source, bytes, start, header };
        match items.nbytes().and_then(|nbytes| nbytes.checked_add(start)) {
            Some(end) if end == size => Ok(items),
            _ => bail!(
                "expected {} bytes of items, found {}",
                items.nbytes().map_or("more than 2^64 - 1".to_owned(), |nbytes| nbytes.to_string()),
                size - start
            ),
        }
    }

    pub(crate) fn header(&self) -> &Header {
        &self.header
    }

    /// Bytes of all items; `None` if the number does not fit.
    fn nbytes(&self) -> Option<u64> {
        let (shape, size) = (&self.header.shape, self.header.dtype.size() as u64);
        match shape.contains(&0) {
            true => Some(0),
            false => shape.iter().try_fold(size, |nbytes, &side| nbytes.checked_mul(side)),
        }
    }

    /// Reads a box, whose axes before `axis` are at the item `number`.
    fn read_along(
        &self,
        axis: usize,
        number: u64,
        ranges: &[Range<u64>],
        out: &mut Vec<u8>,
    ) -> std::io::Result<()> {
        let (shape, size) = (&self.header.shape, self.header.dtype.size() as u64);
        let row = shape.iter().skip(axis + 1).product::<u64>();
        let is_whole = |axis: usize| ranges[axis] == (0..shape[axis]);
        match ranges.get(axis) {
            None => out.extend(self.bytes.read_vec_at(self.start + number * size, size)?),
            Some(range) if (axis + 1..ranges.len()).all(is_whole) => {
                let at = number * shape[axis] + range.start;
                let len = (range.end - range.start) * row * size;
                out.extend(self.bytes.read_vec_at(self.start + at * row * size, len)?);
            }
            Some(range) => {
                for k in range.clone() {
                    self.read_along(axis + 1, number * shape[axis] + k, ranges, out)?;
                }
            }
        }
        Ok(())
    }
}

impl Items for NpyItems<'_> {
    fn shape(&self) -> &[u64] {
        &self.header.shape
    }

    fn chunks(&self) -> &[u64] {
        &self.header.shape
    }

    fn typesize(&self) -> usize {
        self.header.dtype.size()
    }

    fn read(&self, ranges: &[Range<u64>]) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let read = self.read_along(0, 0, ranges, &mut bytes);
        read.map_err(|error| self.source.unread(&error))?;
        Ok(bytes)
    }
}

/// Reorders items from Fortran order to C order.
pub(crate) fn fortran_to_c(bytes: &[u8], shape: &[u64], typesize: usize) -> Vec<u8> {
    let mut strides = Vec::new();
    let mut stride = typesize;
    for &size in shape {
        strides.push(stride);
        // All items are in memory, so the product fits.
        stride *= size as usize;
    }
    let mut out = Vec::with_capacity(bytes.len());
    let mut index = vec![0; shape.len()];
    let mut at = 0;
    while out.len() < bytes.len() {
        out.extend_from_slice(&bytes[at..at + typesize]);
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            at += strides[axis];
            if index[axis] < shape[axis] {
                break;
            }
            at -= strides[axis] * shape[axis] as usize;
            index[axis] = 0;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_turned() {
        assert_eq!(fortran_to_c(b"adbecf", &[2, 3], 1), b"abcdef");
        assert_eq!(fortran_to_c(b"aabb", &[2], 2), b"aabb");
        assert_eq!(fortran_to_c(b"ab", &[], 2), b"ab");
        assert_eq!(fortran_to_c(b"", &[0, 3], 2), b"");
        // c[i][j][k] is at i + 2 j + 6 k.
        let bytes: Vec<u8> = (0..24).collect();
        let out = fortran_to_c(&bytes, &[2, 3, 4], 1);
        for (place, &found) in out.iter().enumerate() {
            let (i, j, k) = (place / 12, place / 4 % 3, place % 4);
            assert_eq!(usize::from(found), i + 2 * j + 6 * k);
        }
    }
}
