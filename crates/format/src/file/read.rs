//! The reader of files of any kind: metadata, chunks, items of arrays.

use std::fmt;
use std::ops::Range;
use std::path::Path;

use super::sources::{self, Info, Place, Source};
use super::{Kind, recognise, recognise_path};
use crate::b2nd::{self, Geometry, Meta};
use crate::directory::{Disk, Folder};
use crate::{Error, Limit, Limits, ReadAt, chunk};

/// A file of any kind, open for reading.
///
/// Opening a file checks its structure and decodes no data. Each chunk is checked when it is
/// decoded. If the file contains a [single chunk](super::Kind::Chunk), opening reads the complete
/// file into memory.
///
/// ```
/// use blosc2_format::Limits;
/// use blosc2_format::chunk::{Encoder, Params};
/// use blosc2_format::file::File;
///
/// let bytes = Encoder::new(Params::default())?.encode(&[7; 4000])?;
/// let mut file = File::from_reader(&bytes, &Limits::default())?;
/// let mut data = Vec::new();
/// file.decode_chunk(0, &mut data)?;
/// assert_eq!(data, [7; 4000]);
/// # Ok::<(), blosc2_format::Error>(())
/// ```
pub struct File<'a> {
    info: Info,
    array: Option<(Meta, Geometry)>,
    source: Box<dyn Source + Send + 'a>,
    /// The chunk that was decoded last, if parts of chunks cannot be read.
    decoded: Option<(u64, Vec<u8>)>,
}

impl File<'static> {
    /// Opens the file or the directory at `path`.
    ///
    /// # Errors
    /// - [`Error::Io`]: the file cannot be read;
    /// - [`Error::Format`]: no format matches, or the file violates a rule; the first violation is
    ///   returned;
    /// - [`Error::Limit`]: the file exceeds `limits`;
    /// - [`Error::Unsupported`]: the file needs a feature that this crate does not support.
    pub fn open(path: impl AsRef<Path>, limits: &Limits) -> Result<Self, Error> {
        let path = path.as_ref();
        if !path.is_dir() {
            return Self::from_reader(std::fs::File::open(path)?, limits);
        }
        match recognise_path(path)? {
            Some(_) => Self::from_folder(Disk(path.to_owned()), limits),
            None => Err(no_format()),
        }
    }

    /// Opens the directory (sparse frame) with the files of `folder`, such as objects in an object store.
    ///
    /// ```
    /// use blosc2_format::chunk::Params;
    /// use blosc2_format::directory::Memory;
    /// use blosc2_format::file::{File, Kind};
    /// use blosc2_format::frame::Writer;
    /// use blosc2_format::Limits;
    ///
    /// let writer = Writer::new_directory(Memory::default(), Params::default(), &[])?;
    /// let files = writer.finish()?;
    /// let file = File::from_folder(files, &Limits::default())?;
    /// assert_eq!(file.info().kind, Kind::Directory);
    /// # Ok::<(), blosc2_format::Error>(())
    /// ```
    ///
    /// # Errors
    /// Fails with the errors of [`open`](File::open).
    pub fn from_folder<F>(folder: F, limits: &Limits) -> Result<Self, Error>
    where
        F: Folder<File: Send> + 'static,
    {
        Self::new(sources::directory(folder, limits)?, limits)
    }
}

impl<'a> File<'a> {
    /// Opens the file that starts at offset 0 of `source`. To open a frame inside a larger file,
    /// use [`read_at::AtOffset`](crate::read_at::AtOffset).
    ///
    /// # Errors
    /// Fails with the errors of [`open`](File::open).
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
        Ok(Self { info, array, source, decoded: None })
    }

    /// Checks that the file is a frame with [checksums](crate::frame::checksum) of its current state.
    ///
    /// # Errors
    /// [`Error::Format`]: the file cannot have checksums (a single chunk, a legacy file), has none,
    /// or a program that writes no checksums has changed the file.
    pub fn require_checksums(&self) -> Result<(), Error> {
        self.source.require_checksums()
    }

    /// Returns whether the file is a frame with [checksums](crate::frame::checksum); `None` for other files.
    pub fn has_checksums(&self) -> Option<bool> {
        self.source.has_checksums()
    }

    /// Returns the metadata: sizes, compression parameters and metalayers.
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// Returns the shapes and the dtype, if the file contains an array.
    pub fn meta(&self) -> Option<&Meta> {
        self.array.as_ref().map(|(meta, _)| meta)
    }

    /// Returns the layout of the items, if the file contains an array.
    pub fn geometry(&self) -> Option<&Geometry> {
        self.array.as_ref().map(|(_, geometry)| geometry)
    }

    /// Returns the content of a variable-length metalayer, or `None` if there is none with this
    /// name.
    ///
    /// # Errors
    /// - [`Error::Io`]: reading fails;
    /// - [`Error::Format`]: the stored content violates a rule;
    /// - [`Error::Limit`]: the content exceeds the limits;
    /// - [`Error::Unsupported`]: a codec or a filter is not supported.
    pub fn vlmetalayer(&mut self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        self.source.vlmetalayer(name)
    }

    /// Returns the decompressed size of the chunk at index `number`, in bytes.
    ///
    /// # Errors
    /// - [`Error::Argument`]: there is no chunk at this index;
    /// - [`Error::Io`]: reading the index or the header of the chunk fails;
    /// - [`Error::Format`]: the index or the header of the chunk violates a rule.
    pub fn chunk_nbytes(&mut self, number: u64) -> Result<u64, Error> {
        self.source.chunk_nbytes(number)
    }

    /// Decodes the chunk at index `number` into `data`, and sets the length of `data` to the
    /// decoded size of the chunk.
    ///
    /// # Errors
    /// - [`Error::Argument`]: there is no chunk at this index;
    /// - [`Error::Io`]: reading fails;
    /// - [`Error::Format`]: the chunk violates a rule;
    /// - [`Error::Limit`]: the chunk exceeds the limits;
    /// - [`Error::Unsupported`]: a codec or a filter is not supported.
    pub fn decode_chunk(&mut self, number: u64, data: &mut Vec<u8>) -> Result<(), Error> {
        self.source.decode_chunk(number, data)
    }

    /// Calls `each` with the index and the bytes of each of `ranges`, which are ranges of the bytes of the decoded chunk
    /// at index `number`, in this order.
    ///
    /// Of a frame, only the needed blocks are read and decoded, as far as the chunk allows that (see
    /// [`frame::BlockReader`](crate::frame::BlockReader)), and the blocks that were decoded last stay in memory. Of other
    /// files, the chunk is decoded, and stays in memory until another one is read.
    ///
    /// # Errors
    /// - [`Error::Argument`]: a range is not inside the chunk;
    /// - the errors of [`decode_chunk`](Self::decode_chunk).
    pub fn read_ranges(
        &mut self,
        number: u64,
        ranges: &[Range<usize>],
        mut each: impl FnMut(usize, &[u8]),
    ) -> Result<(), Error> {
        if self.source.read_ranges(number, ranges, &mut each)? {
            return Ok(());
        }
        if self.decoded.as_ref().is_none_or(|(decoded, _)| *decoded != number) {
            let (_, mut data) = self.decoded.take().unwrap_or_default();
            self.source.decode_chunk(number, &mut data)?;
            self.decoded = Some((number, data));
        }
        let Some((_, data)) = &self.decoded else { unreachable!("it was decoded above") };
        for (at, range) in ranges.iter().enumerate() {
            let part = data.get(range.clone()).ok_or_else(|| {
                let nbytes = data.len();
                let what = format!("bytes {range:?} of chunk {number}, which has {nbytes} bytes");
                Error::Argument(what)
            })?;
            each(at, part);
        }
        Ok(())
    }

    /// Returns whether [`read_ranges`](Self::read_ranges) returns this range of a chunk without reading and decoding.
    pub fn is_cached(&mut self, number: u64, range: &Range<usize>) -> bool {
        let is_inside = |data: &Vec<u8>| range.end <= data.len();
        self.decoded.as_ref().is_some_and(|(decoded, data)| *decoded == number && is_inside(data))
            || self.source.is_cached(number, range)
    }

    /// Sets the maximum number of bytes of decoded blocks of a frame in memory; 4 MiB by default.
    pub fn set_cache(&mut self, nbytes: u64) {
        self.source.set_cache(nbytes);
    }

    /// Returns the place of the chunk at index `number`: its position, or the value that the index states. `None` for
    /// directories, single chunks and legacy files.
    ///
    /// # Errors
    /// - [`Error::Argument`]: there is no chunk at this index;
    /// - [`Error::Format`]: the index violates a rule;
    /// - [`Error::Io`]: reading fails.
    pub fn chunk_place(&self, number: u64) -> Result<Option<Place>, Error> {
        self.source.chunk_place(number)
    }

    /// Returns the position where the chunks end; `None` for files whose chunks have no [place](Self::chunk_place).
    pub fn chunks_end(&self) -> Option<u64> {
        self.source.chunks_end()
    }

    /// Returns the header of the chunk at index `number` of a frame; `None` for other files.
    ///
    /// # Errors
    /// Fails with the errors of [`chunk_nbytes`](Self::chunk_nbytes).
    pub fn chunk_header(&self, number: u64) -> Result<Option<chunk::Header>, Error> {
        self.source.chunk_header(number)
    }

    /// Returns the bytes of the items of a slice of the array, in C order. `ranges` contains one
    /// range of indices for each axis. The byte order of the items is that of the dtype.
    ///
    /// # Errors
    /// - [`Error::Argument`]: the file contains no array, or the slice is out of bounds;
    /// - [`Error::Limit`]: the slice or a chunk exceeds the limits;
    /// - [`Error::Io`]: reading a chunk fails;
    /// - [`Error::Format`]: a chunk violates a rule;
    /// - [`Error::Unsupported`]: a codec or a filter is not supported.
    pub fn read_box(&mut self, ranges: &[Range<u64>]) -> Result<Vec<u8>, Error> {
        let Some((_, geometry)) = &self.array else {
            return Err(Error::Argument("the file contains no array".to_owned()));
        };
        let geometry = geometry.clone();
        geometry.check_box(ranges)?;
        let sides = ranges.iter().map(|range| range.end - range.start);
        let bytes = sides.fold(geometry.typesize() as u64, u64::saturating_mul);
        Limits::allow(Limit::Memory, "bytes of a slice", bytes, self.source.limits().memory)?;
        let mut items = vec![0; usize::try_from(bytes).unwrap_or(usize::MAX)];
        geometry.gather(ranges, &mut items, |number, places, each| {
            self.read_ranges(number, places, each)
        })?;
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

/// Returns the array that the content of a metalayer describes.
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
