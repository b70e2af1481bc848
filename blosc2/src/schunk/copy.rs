//! Operations on whole super-chunks: saving, copying, recompressing.

use std::borrow::Borrow;
use std::fs::File;
use std::io;
use std::path::Path;

use blosc2_format::ReadAt;
use blosc2_format::frame::{Metalayer, Outline, SEARCH_INDEXES};

use super::coder::as_array_wants;
use super::store::{Contiguous, Memory, State, Store};
use super::target::Target;
use super::{Access, Fetched, OpenOptions, Reading, SChunk, Wanted, files};
use crate::bytes::{Safety, Storage};
use crate::closures::BoxError;
use crate::codec::params::Purpose;
use crate::gate::{Claim, FileId, Gate, Version, links};
use crate::support::memory::{self, resize};
use crate::support::progress::Progress;
use crate::{CParams, DParams, Doing, Error, ErrorKind, Reason, Result};

const SAVE: &str = "save a super-chunk";
const COPY: &str = "copy a super-chunk";

/// Options for saving a super-chunk or an array.
///
/// By default, saving creates a new frame and copies the compressed chunks unchanged.
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
/// SaveOptions::new().replace(true).cparams(&smaller).save(&schunk, &path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
#[must_use = "options save nothing by themselves"]
pub struct SaveOptions {
    replace: bool,
    cparams: Option<CParams>,
    progress: Progress,
}

impl SaveOptions {
    /// Returns the default options: create a new frame, and copy the compressed chunks unchanged.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether an existing file is replaced. Off by default: saving then fails if the file exists. Directories are
    /// never replaced.
    ///
    /// A file at a path is replaced atomically, and the new file gets the permissions of the old file. If the path is a
    /// symbolic link, the target of the link is replaced. The content of a [custom storage backend](Target::storage) is
    /// discarded before the frame is saved, even if saving then fails.
    #[doc(alias = "overwrite")]
    pub fn replace(mut self, replace: bool) -> Self {
        self.replace = replace;
        self
    }

    /// Recompresses the chunks with these parameters. By default the compressed chunks are copied unchanged.
    ///
    /// If the parameters change the typesize or the block size of an array, saving fails.
    /// [`NDArrayBuilder::copy`](crate::NDArrayBuilder::copy) creates an array with other chunk and block shapes.
    pub fn cparams(mut self, params: impl Borrow<CParams>) -> Self {
        self.cparams = Some(params.borrow().clone());
        self
    }

    /// Sets a closure that is called after each chunk, with the number of saved chunks and the total number of chunks.
    /// If the closure returns an error, saving fails with [`ErrorKind::Callback`], and no file is created or replaced.
    ///
    /// The closure is not called if all chunks are equal [special chunks](crate::Special) and are not recompressed.
    /// They are saved in one step.
    pub fn progress<E: Into<BoxError>>(
        mut self,
        report: impl Fn(u64, u64) -> std::result::Result<(), E> + Send + Sync + 'static,
    ) -> Self {
        self.progress = Progress::new(report);
        self
    }

    /// Saves a super-chunk or an array to a target. The result has no gaps (unused bytes of replaced or deleted chunks).
    /// C: `blosc2_schunk_to_file`, `b2nd_save`.
    ///
    /// A file or directory is written under a temporary name. It is renamed to its path when it is complete and synced
    /// to disk. [`SChunk::to_cframe`] saves to memory.
    ///
    /// # Errors
    /// Fails with the [errors of reading](SChunk#errors-of-reading), with the errors of a custom storage backend or
    /// directory, and with
    /// - [`ErrorKind::AlreadyExists`]: the target exists or contains data, and [`replace`](Self::replace) is not set;
    ///   this method does not change it;
    /// - [`ErrorKind::Busy`]: this program has the existing file open for writing, or another thread is replacing the
    ///   file; this method does not change it. Or the target is an opened [`File`], and this program has it open in
    ///   another handle;
    /// - [`ErrorKind::NotFound`], [`ErrorKind::Io`]: the file cannot be created;
    /// - [`ErrorKind::InvalidArgument`], in these cases:
    ///   - the target is [memory](Target::memory) or bytes, or has an offset;
    ///   - `replace` is set, and the target is an existing directory or custom directory, or no regular file;
    ///   - a compression parameter is invalid;
    ///   - the parameters change the typesize or block size of an array;
    /// - [`ErrorKind::Unsupported`]: this build does not have the codec or a filter; or a chunk is a Blosc1 chunk, and
    ///   the chunks are not recompressed.
    pub fn save(&self, source: &impl AsRef<SChunk>, target: impl Into<Target>) -> Result<()> {
        self.save_to(source.as_ref(), target.into())
    }

    fn save_to(&self, schunk: &SChunk, target: Target) -> Result<()> {
        if target.is_memory() {
            let detail = "the target is memory that would be freed: `to_cframe` saves to memory";
            return Err(schunk.error(ErrorKind::InvalidArgument, detail).doing(SAVE));
        }
        let write = |store| self.write(schunk, store);
        target.create(self.replace, Safety::Death, write).doing(SAVE).map(drop)
    }

    fn write(&self, schunk: &SChunk, store: Box<dyn Store>) -> Result<SChunk> {
        match &self.cparams {
            Some(params) => schunk.copy_to(store, params, &self.progress),
            None => schunk.save_to(store, &self.progress),
        }
    }

    /// Appends a super-chunk or an array to an existing file as a contiguous frame. Returns the byte offset of the frame
    /// in the file; a [`Target`] with this [`offset`](Target::offset) opens the frame. C: `blosc2_schunk_append_file`,
    /// `b2nd_save_append`.
    ///
    /// If the file has a lock file, this method acquires the lock.
    ///
    /// ```
    /// use blosc2::{NDArray, SaveOptions, Target};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("arrays.bin");
    /// std::fs::write(&path, "header")?;
    /// let array = NDArray::from_slice(&[1u8, 2, 3], 3)?;
    /// let offset = SaveOptions::new().append(&array, &path)?;
    /// assert_eq!(NDArray::open(Target::from(&path).offset(offset))?.read::<Vec<u8>>(..)?, [1, 2, 3]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// After an error the file is unchanged. Fails with the [errors of reading](SChunk#errors-of-reading), and with
    /// - [`ErrorKind::NotFound`], [`ErrorKind::Io`]: the file cannot be opened or written;
    /// - [`ErrorKind::Busy`]: this program has the file open for writing;
    /// - [`ErrorKind::InvalidArgument`]: `path` is the file of the super-chunk; or a compression parameter is invalid;
    /// - [`ErrorKind::Unsupported`]: this build does not have the codec or a filter; or a chunk is a Blosc1 chunk, and
    ///   the chunks are not recompressed.
    #[doc(alias = "blosc2_schunk_append_file")]
    pub fn append(&self, source: &impl AsRef<SChunk>, path: impl AsRef<Path>) -> Result<u64> {
        let (schunk, path) = (source.as_ref(), path.as_ref());
        let io = |error| Error::of_io(SAVE, error).at(path);
        let file = File::options().read(true).write(true).open(path).map_err(io)?;
        let id = FileId::of_opened(&file, path).map_err(io)?;
        if schunk.frame.gate().is_some_and(|gate| *gate.id() == id) {
            let detail = "the super-chunk is in this file itself";
            return Err(Error::new(ErrorKind::InvalidArgument, SAVE, detail).at(path));
        }
        let at = |error: Error| error.at(path);
        // The two files are claimed in the order of their identities, so that two calls of this method do not deadlock.
        let reading = match schunk.frame.gate() {
            Some(gate) if *gate.id() < id => Some(schunk.reading()?),
            _ => None,
        };
        let gate = Gate::new(id, Claim::Write).map_err(at)?;
        let gate = gate.with_lock_if_there(&files::absolute(path)?, false)?;
        let mut pass = gate.change().map_err(at)?;
        if links(&file).map_err(io)? == 0 {
            let detail = "the file was replaced or removed while it was opened";
            return Err(Error::new(ErrorKind::NotFound, SAVE, detail).at(path));
        }
        let start = file.metadata().map_err(io)?.len();
        let undo = file.try_clone().map_err(io)?;
        let frame = Contiguous::new(Shifted { file, start }, Safety::Errors);
        // The progress closure may use the file, which this call changes.
        let calling = self.progress.is_set().then(|| gate.calling());
        let saved = self.write(schunk, Box::new(frame)).and_then(|_| undo.sync_all().map_err(io));
        if let Err(error) = saved {
            let _ = undo.set_len(start).and_then(|()| undo.sync_all());
            return Err(error.at(path));
        }
        drop(calling);
        pass.changed();
        drop(reading);
        Ok(start)
    }
}

impl AsRef<SChunk> for SChunk {
    fn as_ref(&self) -> &SChunk {
        self
    }
}

impl SChunk {
    /// Saves the super-chunk to a new file, or to another target that does not exist. The compressed chunks are copied
    /// unchanged. C: `blosc2_schunk_to_file`.
    ///
    /// [`SaveOptions`] has options for saving, and describes the errors of this method under
    /// [`save`](SaveOptions::save).
    #[doc(alias = "blosc2_schunk_to_file")]
    pub fn save(&self, target: impl Into<Target>) -> Result<()> {
        SaveOptions::new().save(self, target)
    }

    /// Returns the size of the frame in bytes. For a directory, returns the size of its index file. C:
    /// `blosc2_schunk_frame_len`.
    ///
    /// For an in-memory super-chunk that is not a frame, and within a [transaction](Self::transaction), this method
    /// returns the length of the buffer that [`to_cframe`](Self::to_cframe) would return. It reads the header of each
    /// chunk and copies no chunk. C returns an estimate in this case.
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
    /// Fails with the [errors of reading](Self#errors-of-reading).
    #[doc(alias = "blosc2_schunk_frame_len")]
    pub fn frame_len(&self) -> Result<u64> {
        let known = self.last_state().frame_len().map_err(|error| self.at(error))?;
        known.map_or_else(|| self.saved_len(), Ok)
    }

    /// Returns the number of bytes that saving would write.
    fn saved_len(&self) -> Result<u64> {
        let counted = self.save_to(
            Box::new(Contiguous::new(Counted::default(), Safety::Errors)),
            &Progress::default(),
        )?;
        Ok(counted.last_state().store.stored_bytes())
    }

    /// Copies the super-chunk to a contiguous frame in one buffer, without gaps (unused bytes of replaced or deleted
    /// chunks). C: `blosc2_schunk_to_buffer`. Python: `SChunk.to_cframe`.
    ///
    /// # Errors
    /// Fails with the [errors of reading](Self#errors-of-reading), and with
    /// - [`ErrorKind::Unsupported`]: a chunk is a Blosc1 chunk.
    #[doc(alias("to_bytes", "blosc2_schunk_to_buffer"))]
    pub fn to_cframe(&self) -> Result<Vec<u8>> {
        let frame = Contiguous::new(Vec::new(), Safety::Errors);
        self.save_to(Box::new(frame), &Progress::default())?.into_cframe()
    }

    /// Converts the super-chunk into a contiguous frame in one buffer.
    ///
    /// If the super-chunk was opened or created in a `Vec<u8>`, or is in a storage with
    /// [`take_vec`](crate::storage::Storage::take_vec), this method returns the buffer of the super-chunk without a copy. The buffer may contain gaps (unused bytes of replaced
    /// or deleted chunks). Any other super-chunk is copied; see [`to_cframe`](Self::to_cframe).
    ///
    /// # Errors
    /// Fails with the [errors of reading](Self#errors-of-reading), and with
    /// - [`ErrorKind::Unsupported`]: a chunk is a Blosc1 chunk.
    pub fn into_cframe(mut self) -> Result<Vec<u8>> {
        let state = self.frame.state_mut();
        let is_indexed = |layer: &Metalayer| SEARCH_INDEXES.contains(&&*layer.name);
        if !state.outline.vlmetalayers().iter().any(is_indexed)
            && let Some(len) = state.frame_len()?
            && let Some(mut bytes) = state.store.take_vec()
        {
            bytes.truncate(usize::try_from(len).unwrap_or(usize::MAX));
            return Ok(bytes);
        }
        self.to_cframe()
    }

    /// Copies the super-chunk to a new in-memory super-chunk, with the compressed chunks unchanged. C:
    /// `blosc2_schunk_copy`.
    ///
    /// # Errors
    /// Fails with the [errors of reading](Self#errors-of-reading), and with
    /// - [`ErrorKind::Unsupported`]: a chunk is a Blosc1 chunk.
    #[doc(alias("blosc2_schunk_copy", "copy"))]
    pub fn try_clone(&self) -> Result<Self> {
        self.save_to(Box::<Memory>::default(), &Progress::default())
    }

    /// Copies all chunks unchanged, and the metalayers, to a new store.
    fn save_to(&self, store: Box<dyn Store>, progress: &Progress) -> Result<Self> {
        // No other handle changes the chunks during the copy.
        let reading = self.reading()?;
        let mut target = self.hollow(&reading, store)?;
        // The outline already contains all chunks if all of them are equal special chunks.
        self.each_chunk(&reading, target.nchunks(), |index, fetched| {
            self.with_chunk_or_fetched(&reading, index, None, fetched, |chunk, _| {
                if !chunk.header().extended {
                    let detail =
                        format!("chunk {index} is a Blosc1 chunk, with a header of 16 bytes");
                    return Err(Error::new(ErrorKind::Unsupported, SAVE, detail));
                }
                target.push(None, chunk.as_bytes()).doing(SAVE).map(drop)
            })?;
            self.report(progress, index, &reading).doing(SAVE)
        })?;
        target.finish()?;
        Ok(target)
    }

    /// Calls `work` with the index of each chunk from `first` on, and with the fetched chunks.
    fn each_chunk(
        &self,
        reading: &Reading<'_>,
        first: usize,
        mut work: impl FnMut(usize, &Fetched) -> Result<()>,
    ) -> Result<()> {
        let wanted = |number| Some(Wanted { index: first + number, ranges: None });
        let count = reading.state.nchunks().saturating_sub(first);
        self.fetch_ahead(reading, count, wanted, |mut numbers, fetched| {
            numbers.try_for_each(|number| work(first + number, fetched))
        })
    }

    /// Reports that the chunks up to `index` are copied.
    fn report(
        &self,
        progress: &Progress,
        index: usize,
        reading: &Reading<'_>,
    ) -> Result<(), Reason> {
        if !progress.is_set() {
            return Ok(());
        }
        let _calling = self.calling();
        progress.report(index as u64 + 1, reading.state.nchunks() as u64)
    }

    /// Creates a copy without chunks. If all chunks are equal special chunks, the copy contains them, because they take
    /// no space.
    fn hollow(&self, reading: &Reading<'_>, store: Box<dyn Store>) -> Result<Self> {
        let outline = reading.state.outline.emptied(store.layout());
        let (version, limits) = (Version::default(), reading.state.limits);
        let state = State::new(outline, store, version, true, limits);
        let mut target = Self::new(state, Access::Write, DParams::default())?;
        (target.coder, target.max_read) = (self.coder.copied(), self.max_read);
        Ok(target)
    }

    /// Copies the super-chunk to a new in-memory super-chunk, and recompresses the chunks. C: `blosc2_schunk_copy` with
    /// other compression parameters.
    ///
    /// # Errors
    /// Fails with the [errors of reading](Self#errors-of-reading), and with
    /// - [`ErrorKind::InvalidArgument`]: a compression parameter is invalid, or the parameters change the typesize
    ///   or block size of an array;
    /// - [`ErrorKind::Unsupported`]: this build does not have the codec or a filter.
    pub fn recompress(&self, params: impl Borrow<CParams>) -> Result<Self> {
        self.copy_to(Box::<Memory>::default(), params.borrow(), &Progress::default())
    }

    fn copy_to(
        &self,
        store: Box<dyn Store>,
        params: &CParams,
        progress: &Progress,
    ) -> Result<Self> {
        // No other handle changes the chunks during the copy.
        let reading = self.reading()?;
        let is_array = self.is_array();
        if is_array && params.typesize.is_some_and(|asked| asked != self.typesize) {
            let detail = format!("it holds an array, whose items have {} bytes", self.typesize);
            return Err(self.error(ErrorKind::InvalidArgument, detail).doing(COPY));
        }
        // A copy has the same data: closures do not run.
        let params = as_array_wants(&self.frame, &params.without_closure()).doing(COPY)?;
        let purpose = if is_array { Purpose::Array } else { Purpose::Frame };
        let resolved = params.resolve(self.typesize, purpose)?;
        let meta = self.meta().iter().collect::<Result<Vec<_>>>()?;
        let chunksize = reading.state.outline.chunksize();
        let limits = reading.state.limits;
        let mut target = Self::with_params(resolved, store, &meta, chunksize, limits)?;
        target.max_read = self.max_read;
        if reading.state.outline.has_checksums() {
            OpenOptions::new().checksums(true).start_checksums(&mut target)?;
        }
        self.copy_vlmetalayers_to(&mut target)?;
        let closures = target.coder.encoder(&target.frame)?.runs_closures();
        let mut data = Vec::new();
        self.each_chunk(&reading, 0, |index, fetched| {
            self.with_chunk_or_fetched(&reading, index, None, fetched, |chunk, decoder| {
                // The new chunk is compressed while this one is read.
                let _calling = if closures { self.calling() } else { None };
                self.allow(chunk.nbytes() as u64).doing(COPY)?;
                if chunk.has_variable_blocks() {
                    let blocks = chunk.blocks()?;
                    let blocks: Vec<&[u8]> = blocks.iter().collect();
                    let chunk = target.compressed_blocks(None, &blocks)?;
                    return target.push(None, &chunk).doing(COPY).map(drop);
                }
                resize(&mut data, chunk.nbytes()).doing(COPY)?;
                decoder.decompress(chunk, memory::Target::of(&mut data))?;
                target.append_bytes(&data).map(drop)
            })?;
            self.report(progress, index, &reading).doing(COPY)
        })?;
        target.finish()?;
        Ok(target)
    }

    /// Copies the variable-length metalayers, except search indexes, unchanged to a super-chunk that is being created.
    pub(crate) fn copy_vlmetalayers_to(&self, target: &mut Self) -> Result<()> {
        let state = self.last_state();
        let outline: &mut Outline = &mut target.frame.state_mut().outline;
        let layers = state.outline.vlmetalayers().iter();
        for layer in layers.filter(|layer| !SEARCH_INDEXES.contains(&&*layer.name)) {
            let set = outline.set_vlmetalayer_chunk(&layer.name, &layer.content);
            set.map_err(|error| self.at(Reason::from(error).doing(COPY)))?;
        }
        Ok(())
    }
}

/// A storage that stores nothing and counts the written bytes.
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

/// The part of a file from an offset on, for one write of a frame.
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
