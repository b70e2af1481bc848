//! npy files whose items are read box by box.

use std::ops::Range;

use anyhow::{Result, bail};
use blosc2_format::ReadAt;
use blosc2_format::npy::Header;

use crate::file::Source;
use crate::foreign;
use crate::raw::RawItems;
use crate::stream::{Items, rows_of};

/// The items of an npy file.
pub(crate) struct NpyItems<'a> {
    source: Source<'a>,
    dtype: String,
    items: RawItems,
}

impl<'a> NpyItems<'a> {
    /// Opens a file; returns `None` if it is not an npy file.
    pub(crate) fn open(source: Source<'a>) -> Result<Option<Self>> {
        // An error of reading is reported when the file is opened as another kind.
        let is_npy = source.bytes().is_ok_and(|bytes| foreign::name(&bytes) == Some(foreign::NPY));
        if source.key.is_some() || !is_npy {
            return Ok(None);
        }
        Self::new(source).map(Some).map_err(|error| source.unread(&error))
    }

    fn new(source: Source<'a>) -> Result<Self> {
        let bytes = source.bytes()?;
        let (header, start) = Header::read_at(&bytes)?;
        let (layout, dtype) = (header.layout(), header.dtype);
        if layout.fortran_order && layout.shape.len() > 1 {
            bail!("its items are in Fortran order; `import` converts them");
        }
        if dtype.has_pointers() || dtype.size() == 0 {
            bail!("its dtype `{dtype}` has no data in the file");
        }
        let found = bytes.size()?.saturating_sub(start);
        let expected = layout.nbytes();
        if expected != Some(found) {
            let expected = expected.map_or("more than 2^64 - 1".to_owned(), |it| it.to_string());
            bail!("expected {expected} bytes of items, found {found}");
        }
        let items = RawItems::of_source(bytes, start, layout)?;
        Ok(Self { source, dtype: dtype.to_string(), items })
    }
}

impl Items for NpyItems<'_> {
    fn shape(&self) -> Vec<u64> {
        self.items.layout().shape.clone()
    }

    fn chunks(&self) -> Vec<u64> {
        /// Items that are read at once in a file without chunks.
        const PART: usize = 1 << 16;
        rows_of(&self.shape(), PART)
    }

    fn typesize(&self) -> usize {
        self.items.layout().typesize
    }

    fn dtype(&self) -> Option<String> {
        Some(self.dtype.clone())
    }

    fn read(&self, ranges: &[Range<u64>]) -> Result<Vec<u8>> {
        let lens = ranges.iter().map(|range| range.end - range.start);
        let mut bytes = vec![0; usize::try_from(lens.product::<u64>())? * self.typesize()];
        self.items.read(ranges, &mut bytes).map_err(|error| self.source.unread(&error))?;
        Ok(bytes)
    }
}
