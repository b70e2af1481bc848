//! Reading any kind of file: what it says of itself, its chunks, the items of its array.

use std::fmt;
use std::ops::Range;
use std::path::Path;

use super::sources::{self, Info, Source};
use super::{Kind, recognise, recognise_path};
use crate::b2nd::{self, Geometry, Meta};
use crate::{Error, Limits, ReadAt};

/// A file that is being read, of any kind.
///
/// Opening reads and checks its structure, and no data; a chunk is checked when it is decoded.
pub struct File<'a> {
    info: Info,
    array: Option<(Meta, Geometry)>,
    source: Box<dyn Source + Send + 'a>,
}

impl File<'static> {
    /// Opens what is at `path`: a file, or a directory of chunks.
    ///
    /// # Errors
    /// It cannot be read, or is none of the formats; the first rule that it breaks; what goes over
    /// `limits`.
    pub fn open(path: impl AsRef<Path>, limits: &Limits) -> Result<Self, Error> {
        let path = path.as_ref();
        if !path.is_dir() {
            return Self::from_reader(std::fs::File::open(path)?, limits);
        }
        match recognise_path(path)? {
            Some(_) => Self::new(sources::directory(path, limits)?, limits),
            None => Err(no_format()),
        }
    }
}

impl<'a> File<'a> {
    /// Opens what `source` holds from its start on. For a frame inside a larger file see
    /// [`read_at::AtOffset`](crate::read_at::AtOffset).
    ///
    /// # Errors
    /// As for [`open`](File::open).
    pub fn from_reader(source: impl ReadAt + Send + 'a, limits: &Limits) -> Result<Self, Error> {
        let opened = match recognise(&source)? {
            Some(Kind::Chunk) => sources::chunk(source, limits),
            Some(Kind::Frame) => sources::frame(source, limits),
            Some(Kind::EarlyFrame | Kind::FrameVersion1) => sources::early(source, limits),
            Some(Kind::Packed) => sources::packed(source, limits),
            Some(Kind::Directory) | None => Err(no_format()),
        };
        Self::new(opened?, limits)
    }

    fn new(
        (info, source): (Info, Box<dyn Source + Send + 'a>),
        limits: &Limits,
    ) -> Result<Self, Error> {
        let named = |name: &str| info.metalayers.iter().find(|each| each.name == name);
        let array = match named(b2nd::NAME).or_else(|| named(b2nd::OLD_NAME)) {
            Some(metalayer) => Some(array(&metalayer.content, &info, limits)?),
            None => None,
        };
        Ok(Self { info, array, source })
    }

    /// What it says of itself.
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// Shapes and dtype, where it holds an array.
    pub fn meta(&self) -> Option<&Meta> {
        self.array.as_ref().map(|(meta, _)| meta)
    }

    /// Where the items are, where it holds an array.
    pub fn geometry(&self) -> Option<&Geometry> {
        self.array.as_ref().map(|(_, geometry)| geometry)
    }

    /// The content of a metalayer of variable length; `None` where there is none of this name.
    ///
    /// # Errors
    /// It cannot be read or decoded.
    pub fn vlmetalayer(&mut self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        self.source.vlmetalayer(name)
    }

    /// The bytes that a chunk has when decompressed.
    ///
    /// # Errors
    /// There is no such chunk, or its header cannot be read.
    pub fn chunk_nbytes(&mut self, number: u64) -> Result<u64, Error> {
        self.source.chunk_nbytes(number)
    }

    /// Decodes a chunk into `data`, whose length becomes that of the chunk.
    ///
    /// # Errors
    /// There is no such chunk, or it cannot be read or decoded.
    pub fn decode_chunk(&mut self, number: u64, data: &mut Vec<u8>) -> Result<(), Error> {
        self.source.decode_chunk(number, data)
    }

    /// The items of a box of its array, in C order.
    ///
    /// # Errors
    /// - [`Error::Argument`]: it holds no array, or the box reaches outside;
    /// - [`Error::Limit`]: the box has more bytes than the limits allow to hold;
    /// - a chunk cannot be read or decoded.
    pub fn read_box(&mut self, ranges: &[Range<u64>]) -> Result<Vec<u8>, Error> {
        let Some((_, geometry)) = &self.array else {
            return Err(Error::Argument("it holds no array".to_owned()));
        };
        let chunks = geometry.chunks_of(ranges)?;
        let sides = ranges.iter().map(|range| range.end - range.start);
        let bytes = sides.fold(geometry.typesize() as u64, u64::saturating_mul);
        Limits::allow("bytes of a box", bytes, self.source.limits().memory)?;
        let mut items = vec![0; usize::try_from(bytes).unwrap_or(usize::MAX)];
        let mut data = Vec::new();
        for number in chunks {
            self.source.decode_chunk(number, &mut data)?;
            geometry.assemble(number, &data, ranges, &mut items)?;
        }
        Ok(items)
    }
}

impl fmt::Debug for File<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("File").field("info", &self.info).finish_non_exhaustive()
    }
}

fn no_format() -> Error {
    let expected = "a chunk, a frame or a packed super-chunk";
    crate::FormatError::of(&super::check::KIND, 0, expected, "something else").into()
}

/// The array that a metalayer says.
fn array(content: &[u8], info: &Info, limits: &Limits) -> Result<(Meta, Geometry), Error> {
    let frame = b2nd::Frame {
        typesize: info.typesize,
        chunksize: info.chunksize,
        blocksize: None,
        nchunks: Some(info.nchunks),
    };
    b2nd::read(content, &frame, limits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_goes_to_other_threads() {
        fn goes<T: Send>() {}
        goes::<File<'static>>();
        goes::<crate::Error>();
        goes::<crate::frame::Frame<std::fs::File>>();
        goes::<crate::chunk::Chunk<'static>>();
        goes::<crate::Report>();
    }
}
