//! The fields of the metalayer as stored.

use super::MAX_NDIM;

/// The msgpack marker and the value of one axis of a shape.
#[derive(Debug)]
pub(super) struct Number {
    pub(super) marker: u8,
    pub(super) value: i64,
}

/// The shape of the array, of its chunks or of its blocks.
#[derive(Debug)]
pub(super) struct Sizes {
    pub(super) at: usize,
    pub(super) marker: u8,
    /// The number of bytes of a value without its marker.
    pub(super) width: usize,
    pub(super) numbers: Vec<Number>,
}

impl Sizes {
    /// Returns the position of the marker of a value.
    pub(super) fn marker_at(&self, axis: usize) -> u64 {
        (self.at + 1 + axis * (1 + self.width)) as u64
    }
}

#[derive(Debug)]
pub(super) struct Dtype<'a> {
    pub(super) at: usize,
    pub(super) format: u8,
    pub(super) marker: u8,
    /// Empty if the marker is not that of a string.
    pub(super) text: &'a [u8],
}

/// The fields up to the end of the content or the first unreadable field.
#[derive(Debug, Default)]
pub(super) struct Raw<'a> {
    /// The marker of the array, the version, the number of dimensions.
    pub(super) head: Option<[u8; 3]>,
    /// Shape, chunk shape, block shape.
    pub(super) shapes: Vec<Sizes>,
    pub(super) dtype: Option<Dtype<'a>>,
    /// The position after the last field.
    pub(super) end: usize,
    /// The number of bytes needed at `end`, if there are fewer.
    pub(super) wanted: Option<usize>,
}

impl<'a> Raw<'a> {
    pub(super) fn read(content: &'a [u8]) -> Self {
        let mut raw = Self::default();
        // Reading stops early only at the end of the content, which `wanted` records.
        let _ = raw.fill(content);
        raw
    }

    fn fill(&mut self, content: &'a [u8]) -> Option<()> {
        let &[array, version, ndim] = self.take(content, 3)?.first_chunk()?;
        self.head = Some([array, version, ndim]);
        let ndim = usize::from(ndim);
        if ndim > MAX_NDIM {
            return None;
        }
        for width in [8, 4, 4] {
            let at = self.end;
            let bytes = self.take(content, 1 + ndim * (1 + width))?;
            let (&marker, numbers) = bytes.split_first()?;
            let number = |number: &[u8]| {
                let (&marker, digits) = number.split_first()?;
                let value = match digits.try_into() {
                    Ok(digits) => i64::from_be_bytes(digits),
                    Err(_) => i32::from_be_bytes(digits.try_into().ok()?).into(),
                };
                Some(Number { marker, value })
            };
            let numbers = numbers.chunks_exact(1 + width).map(number).collect::<Option<_>>()?;
            self.shapes.push(Sizes { at, marker, width, numbers });
        }
        if self.end == content.len() {
            return None;
        }
        let at = self.end;
        let &[format, marker] = self.take(content, 2)?.first_chunk()?;
        let mut text: &[u8] = &[];
        if marker == 0xdb {
            let len = u32::from_be_bytes(*self.take(content, 4)?.first_chunk()?);
            text = self.take(content, usize::try_from(len).unwrap_or(usize::MAX))?;
        }
        self.dtype = Some(Dtype { at, format, marker, text });
        Some(())
    }

    fn take(&mut self, content: &'a [u8], len: usize) -> Option<&'a [u8]> {
        let taken = content.get(self.end..).and_then(|rest| rest.get(..len));
        match taken {
            Some(_) => self.end += len,
            None => self.wanted = Some(len),
        }
        taken
    }
}
