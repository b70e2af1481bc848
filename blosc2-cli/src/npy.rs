//! npy files whose items are read box by box.

use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::ops::Range;

use anyhow::{Result, bail};
use blosc2_format::npy::Header;

use crate::file::Source;
use crate::foreign;
use crate::raw::{Layout, RawItems};
use crate::stream::Items;

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
        let mut file = File::open(source.path)?;
        file.seek(SeekFrom::Start(source.offset))?;
        // Unbuffered, so that the file is at the first item afterwards.
        let Header { dtype, shape, fortran_order } = Header::read(&mut file)?;
        if fortran_order && shape.len() > 1 {
            bail!("its items are in Fortran order; `import` converts them");
        }
        if dtype.has_pointers() || dtype.size() == 0 {
            bail!("its dtype `{dtype}` has no data in the file");
        }
        let layout = Layout { shape, typesize: dtype.size(), fortran: fortran_order };
        let found = file.metadata()?.len().saturating_sub(file.stream_position()?);
        let expected = layout.nbytes().ok();
        if expected != Some(found) {
            let expected = expected.map_or("more than 2^64 - 1".to_owned(), |it| it.to_string());
            bail!("expected {expected} bytes of items, found {found}");
        }
        let items = RawItems::of_file(file, layout)?;
        Ok(Self { source, dtype: dtype.to_string(), items })
    }
}

impl Items for NpyItems<'_> {
    fn shape(&self) -> Vec<u64> {
        self.items.layout().shape.clone()
    }

    fn chunks(&self) -> Vec<u64> {
        self.shape()
    }

    fn typesize(&self) -> usize {
        self.items.layout().typesize
    }

    fn dtype(&self) -> Option<&str> {
        Some(&self.dtype)
    }

    fn read(&self, ranges: &[Range<u64>]) -> Result<Vec<u8>> {
        let lens = ranges.iter().map(|range| range.end - range.start);
        let mut bytes = vec![0; usize::try_from(lens.product::<u64>())? * self.typesize()];
        self.items.read(ranges, &mut bytes).map_err(|error| self.source.unread(&error))?;
        Ok(bytes)
    }
}
