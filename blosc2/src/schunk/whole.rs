//! Super-chunks as a whole: to bytes and files, copied, recompressed.

use std::borrow::Borrow;
use std::fs::File;
use std::io;
use std::path::Path;

use blosc2_format::ReadAt;
use blosc2_format::directory::FolderMut;
use blosc2_format::frame::Outline;

use super::options::new_store;
use super::store::{Contiguous, Memory, State, Store};
use super::{Access, OpenOptions, Reading, SChunk, files};
use crate::bytes::{Safety, Storage};
use crate::gate::{Claim, FileId, Gate, Version, links};
use crate::memory::{Target, resize};
use crate::params::Purpose;
use crate::{CParams, Error, ErrorKind, Result};

const SAVE: &str = "save a super-chunk";
const COPY: &str = "copy a super-chunk";

/// How a super-chunk or an array is saved to a path: [`SChunk::save_with`], [`NDArray::save_with`](crate::NDArray::save_with).
///
/// By default it is a new contiguous file with the chunks as they are.
///
/// ```
/// use blosc2::{CParams, Codec, SChunk, SaveOptions};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("numbers.b2frame");
/// let mut schunk = SChunk::in_memory::<u32>(&CParams::default())?;
/// schunk.append(&[7u32; 1000])?;
/// schunk.save(&path)?;
/// let smaller = CParams::new().codec(Codec::Lz4Hc).level(9);
/// schunk.save_with(&path, &SaveOptions::new().replace(true).cparams(&smaller))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
#[must_use = "options save nothing by themselves"]
pub struct SaveOptions {
    replace: bool,
    directory: bool,
    cparams: Option<CParams>,
}

impl SaveOptions {
    /// A new contiguous file with the chunks as they are.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether a file at the path is replaced; at any moment there is the old file or the new one. Off by default:
    /// what is at the path is an error. It does not go with [`directory`](Self::directory).
    pub fn replace(mut self, replace: bool) -> Self {
        self.replace = replace;
        self
    }

    /// Sets whether a directory with one file for each chunk is written (a sparse frame; Python's `contiguous=False`)
    /// instead of a contiguous file. Off by default.
    pub fn directory(mut self, directory: bool) -> Self {
        self.directory = directory;
        self
    }

    /// Recompresses the chunks with these parameters. By default they are copied as they are.
    ///
    /// The block size of an array is kept. [`NDArrayBuilder::copy`](crate::NDArrayBuilder::copy) makes an array with
    /// other chunk and block shapes.
    pub fn cparams(mut self, params: impl Borrow<CParams>) -> Self {
        self.cparams = Some(params.borrow().clone());
        self
    }
}

impl SChunk {
    /// Saves everything to a new contiguous file, chunks as they are, without the gaps that changes left.
    ///
    /// The file appears when it is complete and on the device. C's `blosc2_schunk_to_file`.
    ///
    /// # Errors
    /// - [`ErrorKind::AlreadyExists`]: there is something at `path`; it is left alone;
    /// - [`ErrorKind::NotFound`], [`ErrorKind::Io`]: the file cannot be made;
    /// - [`ErrorKind::InvalidData`]: a chunk is broken;
    /// - [`ErrorKind::Unsupported`]: a chunk of Blosc1.
    #[doc(alias = "blosc2_schunk_to_file")]
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        self.save_with(path, &SaveOptions::new())
    }

    /// Saves everything to a file or a directory, as the options say.
    ///
    /// # Errors
    /// - [`ErrorKind::AlreadyExists`]: there is something at `path` that is not to be replaced; it is left alone;
    /// - [`ErrorKind::Busy`]: this program has the file to be replaced open for writing, or replaces it in another thread;
    ///   the old file is left alone;
    /// - [`ErrorKind::NotFound`], [`ErrorKind::Io`]: the file cannot be made;
    /// - [`ErrorKind::InvalidData`]: a chunk is broken;
    /// - [`ErrorKind::InvalidArgument`], [`ErrorKind::Unsupported`]: the compression parameters, as for
    ///   [`compress`](crate::compress); without them [`ErrorKind::Unsupported`] also for a chunk of Blosc1.
    pub fn save_with(&self, path: impl AsRef<Path>, options: &SaveOptions) -> Result<()> {
        if options.replace && options.directory {
            let detail = "a directory does not replace anything: remove what is at the path";
            return Err(self.error(ErrorKind::InvalidArgument, SAVE, detail));
        }
        files::create(path.as_ref(), options.replace, |temporary| {
            self.save_as(new_store(temporary, options.directory)?, options)
        })
    }

    fn save_as(&self, store: Box<dyn Store>, options: &SaveOptions) -> Result<()> {
        match &options.cparams {
            Some(params) => self.copy_to(store, params).map(drop),
            None => self.save_to(store).map(drop),
        }
    }

    /// Saves everything to a custom storage backend, as the options say. The storage is empty, unless
    /// [`SaveOptions::replace`] is set; its content is then lost, also where saving fails.
    ///
    /// ```
    /// use blosc2::{CParams, SChunk, SaveOptions};
    ///
    /// let mut schunk = SChunk::in_memory::<u8>(&CParams::default())?;
    /// schunk.append(b"some bytes")?;
    /// let file = tempfile::tempfile()?;
    /// schunk.save_in(file.try_clone()?, &SaveOptions::new())?;
    /// assert_eq!(file.metadata()?.len(), schunk.to_cframe()?.len() as u64);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// - [`ErrorKind::AlreadyExists`]: there are bytes in the storage that are not to be replaced;
    /// - [`ErrorKind::InvalidArgument`]: a directory is no single storage;
    /// - those of [`save_with`](Self::save_with) for the chunks and the parameters, and those of the storage.
    pub fn save_in(&self, storage: impl Storage + 'static, options: &SaveOptions) -> Result<()> {
        if options.directory {
            let detail = "a storage holds a contiguous frame; `save_in_folder` saves to a folder";
            return Err(self.error(ErrorKind::InvalidArgument, SAVE, detail));
        }
        let (store, _gate) = OpenOptions::new_storage(storage, options.replace)?;
        self.save_as(store, options)
    }

    /// Saves everything to a custom folder, which has no index file yet, as a directory is; as the options say.
    ///
    /// # Errors
    /// - [`ErrorKind::AlreadyExists`]: there is a frame in the folder, which is left alone; [`ErrorKind::InvalidArgument`]
    ///   where it is to be replaced;
    /// - those of [`save_with`](Self::save_with) for the chunks and the parameters, and those of the folder.
    pub fn save_in_folder<F>(&self, folder: F, options: &SaveOptions) -> Result<()>
    where
        F: FolderMut<File: Send + Sync + 'static> + 'static,
    {
        self.save_as(OpenOptions::new_folder(folder, options.replace)?, options)
    }

    /// Writes everything behind the end of a file, and gives the byte at which the frame starts, for
    /// [`OpenOptions::offset`](crate::OpenOptions::offset). C's `blosc2_schunk_append_file`.
    ///
    /// # Errors
    /// As for [`save`](Self::save). [`ErrorKind::NotFound`]: there is no such file. [`ErrorKind::Busy`]: this program has
    /// it open for writing. [`ErrorKind::InvalidArgument`]: it is the file of this super-chunk. Nothing is appended then.
    ///
    /// The lock of the file is taken, if it has one.
    #[doc(alias = "blosc2_schunk_append_file")]
    pub fn append_to_file(&self, path: impl AsRef<Path>) -> Result<u64> {
        let path = path.as_ref();
        let io = |error| Error::from_io(SAVE, path, error);
        let file = File::options().read(true).write(true).open(path).map_err(io)?;
        let id = FileId::of_opened(&file, path).map_err(io)?;
        if self.gate.as_ref().is_some_and(|gate| *gate.id() == id) {
            let detail = "the super-chunk is itself in this file";
            return Err(Error::new(ErrorKind::InvalidArgument, SAVE, detail).at(path));
        }
        let at = |error: Error| error.at(path);
        // In the order of the files, so that two of these do not wait for each other.
        let reading = match &self.gate {
            Some(gate) if *gate.id() < id => Some(self.reading()?),
            _ => None,
        };
        let gate = Gate::new(id, Claim::Write).map_err(at)?;
        let gate = gate.with_lock_if_there(&files::absolute(path)?, false)?;
        let mut pass = gate.change().map_err(at)?;
        if links(&file).map_err(io)? == Some(0) {
            let detail = "the file was replaced or removed in the meantime";
            return Err(Error::new(ErrorKind::NotFound, SAVE, detail).at(path));
        }
        let start = file.metadata().map_err(io)?.len();
        let undo = file.try_clone().map_err(io)?;
        let frame = Contiguous::new(Shifted { file, start }, Safety::Errors);
        let saved = self.save_to(Box::new(frame)).and_then(|_| undo.sync_all().map_err(io));
        if let Err(error) = saved {
            let _ = undo.set_len(start);
            return Err(error.at(path));
        }
        pass.changed();
        drop(reading);
        Ok(start)
    }

    /// Bytes of the frame; in a directory, of its index file. C's `blosc2_schunk_frame_len`.
    ///
    /// Of an in-memory super-chunk that is no frame it is the length of what [`to_cframe`](Self::to_cframe) returns. This
    /// reads the header of each chunk, and copies none. C returns an estimate there.
    ///
    /// ```
    /// use blosc2::{CParams, SChunk};
    ///
    /// let mut schunk = SChunk::in_memory::<f64>(&CParams::default())?;
    /// schunk.append(&[0.5; 1000])?;
    /// assert_eq!(schunk.frame_len()?, schunk.to_cframe()?.len() as u64);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Io`]: the file cannot be read.
    #[doc(alias = "blosc2_schunk_frame_len")]
    pub fn frame_len(&self) -> Result<u64> {
        let known = self.look().frame_len().map_err(|error| self.at(error))?;
        known.map_or_else(|| self.saved_len(), Ok)
    }

    /// Bytes that saving would write.
    fn saved_len(&self) -> Result<u64> {
        let counted =
            self.save_to(Box::new(Contiguous::new(Counted::default(), Safety::Errors)))?;
        Ok(counted.look().store.stored_bytes())
    }

    /// Everything as a frame in one buffer, without the gaps that changes left. C's
    /// `blosc2_schunk_to_buffer`, Python's `to_cframe`.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidData`]: a chunk is broken; [`ErrorKind::Io`]: the file cannot be read.
    #[doc(alias("to_bytes", "blosc2_schunk_to_buffer"))]
    pub fn to_cframe(&self) -> Result<Vec<u8>> {
        let frame = Contiguous::new(Vec::new(), Safety::Errors);
        self.save_to(Box::new(frame))?.into_cframe()
    }

    /// The same, without a copy where the super-chunk is a frame in one buffer already: the bytes that
    /// [`from_cframe`](Self::from_cframe) took, with all changes.
    ///
    /// # Errors
    /// As for [`to_cframe`](Self::to_cframe).
    pub fn into_cframe(mut self) -> Result<Vec<u8>> {
        let state = self.state.get_mut();
        if let Some(len) = state.frame_len()?
            && let Some(mut bytes) = state.store.take_vec()
        {
            bytes.truncate(usize::try_from(len).unwrap_or(usize::MAX));
            return Ok(bytes);
        }
        self.to_cframe()
    }

    /// A copy in memory, chunks as they are. C's `blosc2_schunk_copy`, Python's `copy`.
    ///
    /// # Errors
    /// As for [`to_cframe`](Self::to_cframe).
    #[doc(alias("blosc2_schunk_copy", "copy"))]
    pub fn try_clone(&self) -> Result<Self> {
        self.save_to(Box::<Memory>::default())
    }

    /// Puts all chunks as they are, and the metalayers, into a new store.
    fn save_to(&self, store: Box<dyn Store>) -> Result<Self> {
        // Nobody changes it meanwhile.
        let reading = self.reading()?;
        let mut target = self.hollow(&reading, store)?;
        // All are there already where each is the same special value.
        for index in target.nchunks()..reading.state.nchunks() {
            self.with_chunk_in(&reading, index, None, |chunk, _| {
                if !chunk.header().extended {
                    let detail =
                        format!("chunk {index} is one of Blosc1, with a header of 16 bytes");
                    return Err(Error::new(ErrorKind::Unsupported, SAVE, detail));
                }
                target.push(SAVE, None, chunk.as_bytes()).map(drop)
            })?;
        }
        target.finish()?;
        Ok(target)
    }

    /// One without chunks, unless all of them are alike and take no room.
    fn hollow(&self, reading: &Reading<'_>, store: Box<dyn Store>) -> Result<Self> {
        let outline = reading.state.outline.emptied(store.layout());
        let (version, limits) = (Version::default(), reading.state.limits);
        let state = State { outline, store, version, unfinished: true, limits };
        let mut target = Self::new(state, Access::Write, self.dparams.clone())?;
        (target.encoding, target.max_read) = (self.encoding.clone(), self.max_read);
        Ok(target)
    }

    /// A copy in memory, recompressed. Python's `copy(cparams=...)`.
    ///
    /// # Errors
    /// Those of reading the chunks and of [`compress`](crate::compress).
    pub fn recompress(&self, params: impl Borrow<CParams>) -> Result<Self> {
        self.copy_to(Box::<Memory>::default(), params.borrow())
    }

    fn copy_to(&self, store: Box<dyn Store>, params: &CParams) -> Result<Self> {
        // Nobody changes it meanwhile.
        let reading = self.reading()?;
        let is_array = self.is_array();
        if is_array && params.typesize.is_some_and(|asked| asked != self.typesize) {
            let detail = format!("it holds an array, whose items have {} bytes", self.typesize);
            return Err(self.error(ErrorKind::InvalidArgument, COPY, detail));
        }
        let params = self.as_array_wants(params, COPY)?;
        let purpose = if is_array { Purpose::Array } else { Purpose::Frame };
        let resolved = params.resolve(self.typesize, purpose)?;
        let meta = self.meta().iter().collect::<Result<Vec<_>>>()?;
        let chunksize = reading.state.outline.chunksize();
        let mut target = Self::with_params(resolved, store, &meta, chunksize)?;
        target.max_read = self.max_read;
        self.copy_vlmetalayers_to(&mut target)?;
        let closures = target.encoder()?.runs_closures();
        let mut data = Vec::new();
        for index in 0..reading.state.nchunks() {
            self.with_chunk_in(&reading, index, None, |chunk, decoder| {
                // The new chunk is compressed while this one is read.
                let _calling = if closures { self.calling() } else { None };
                self.allow(COPY, chunk.nbytes() as u64)?;
                if chunk.has_variable_blocks() {
                    let blocks = chunk.blocks()?;
                    let blocks: Vec<&[u8]> = blocks.iter().collect();
                    let chunk = target.compressed_blocks(None, &blocks)?;
                    return target.push(COPY, None, &chunk).map(drop);
                }
                resize(&mut data, chunk.nbytes(), COPY)?;
                decoder.decompress(chunk, Target::of(&mut data))?;
                target.append_bytes(&data).map(drop)
            })?;
        }
        target.finish()?;
        Ok(target)
    }

    /// Puts the metalayers of variable length, as they are, into one that is being made.
    pub(crate) fn copy_vlmetalayers_to(&self, target: &mut Self) -> Result<()> {
        let state = self.look();
        let outline: &mut Outline = &mut target.state.get_mut().outline;
        for layer in state.outline.vlmetalayers() {
            let set = outline.set_vlmetalayer_chunk(&layer.name, &layer.content);
            set.map_err(|error| self.at(Error::from_frame(COPY, error)))?;
        }
        Ok(())
    }
}

/// How far what is written reaches. Nothing is kept.
#[derive(Debug, Default)]
struct Counted(u64);

impl ReadAt for Counted {
    fn size(&self) -> io::Result<u64> {
        Ok(self.0)
    }

    fn read_exact_at(&self, _: u64, _: &mut [u8]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl Storage for Counted {
    fn write_all_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0 = self.0.max(offset + bytes.len() as u64);
        Ok(())
    }

    fn set_size(&mut self, len: u64) -> io::Result<()> {
        self.0 = len;
        Ok(())
    }
}

/// A file from some byte on, to be written once.
#[derive(Debug)]
struct Shifted {
    file: File,
    start: u64,
}

impl ReadAt for Shifted {
    fn size(&self) -> io::Result<u64> {
        Ok(ReadAt::size(&self.file)?.saturating_sub(self.start))
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        ReadAt::read_exact_at(&self.file, self.start + offset, buffer)
    }
}

impl Storage for Shifted {
    fn write_all_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        Storage::write_all_at(&mut self.file, self.start + offset, bytes)
    }

    fn set_size(&mut self, size: u64) -> io::Result<()> {
        self.file.set_len(self.start + size)
    }
}
