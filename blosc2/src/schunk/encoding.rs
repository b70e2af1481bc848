//! Compression and decompression parameters of a super-chunk, prefilters and postfilters.

use std::borrow::Borrow;
use std::sync::Arc;

use blosc2_format::chunk::Params;
use blosc2_format::frame::Outline;
use parking_lot::Mutex;

use super::{SChunk, array_meta};
use crate::array_shape::ArrayShape;
use crate::closures::ChunkFilter;
use crate::encoder::Encoder;
use crate::params::Purpose;
use crate::{CParams, Codec, DParams, Error, ErrorKind, Filter, Result, Threads};

impl SChunk {
    /// Returns the decompression parameters. Python: `SChunk.dparams`.
    pub fn dparams(&self) -> &DParams {
        &self.dparams
    }

    /// Sets the decompression parameters for all subsequent reads.
    pub fn set_dparams(&mut self, params: impl Borrow<DParams>) {
        self.dparams = params.borrow().clone();
        self.workers.get_mut().clear();
    }

    /// Sets the compression parameters of new chunks. The header of the frame does not change. Python: `SChunk.cparams
    /// = ...`.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: a parameter is invalid, changes the typesize, or changes the block size of an
    ///   array;
    /// - [`ErrorKind::Unsupported`]: this build does not have the codec or a filter.
    pub fn set_cparams(&mut self, params: impl Borrow<CParams>) -> Result<()> {
        let params = params.borrow();
        let doing = "set the compression parameters";
        if params.typesize.is_some_and(|asked| asked != self.typesize) {
            let detail = format!("items have {} bytes", self.typesize);
            return Err(self.error(ErrorKind::InvalidArgument, doing, detail));
        }
        let before = self.encoding.replace(params.clone());
        self.encoder = None;
        let made = self.encoder().map(drop);
        if made.is_err() {
            self.encoding = before;
        }
        made
    }

    /// Returns the compression parameters of new chunks. C: `blosc2_schunk_get_cparams`. Python: `SChunk.cparams`.
    ///
    /// These are the parameters of [`set_cparams`](Self::set_cparams) or
    /// [`OpenOptions::cparams`](crate::OpenOptions::cparams), including the threads and the tuner. If none were set,
    /// they are the parameters in the header of the frame. The typesize is always the typesize of the super-chunk.
    ///
    /// A tuner starts from the returned parameters and chooses the parameters of each new chunk. Existing chunks may
    /// have been compressed with other parameters; [`chunk_info`](Self::chunk_info) returns them.
    pub fn cparams(&self) -> CParams {
        let stored = cparams(&self.look().outline);
        match &self.encoding {
            Some(params) => CParams {
                typesize: stored.typesize,
                blocksize: params.blocksize.or(stored.blocksize.filter(|_| self.is_array())),
                ..params.clone()
            },
            None => stored,
        }
    }

    /// Sets a prefilter: a closure that changes the data of new chunks before compression; see
    /// [`Compressor::with_prefilter`](crate::Compressor::with_prefilter). The argument of the closure contains the
    /// index of the chunk, and the byte offset of the block in the data of the super-chunk. Python: the decorators
    /// `SChunk.prefilter` and `SChunk.filler`.
    ///
    /// ```
    /// use blosc2::user_defined::{BoxError, ChunkBlock};
    /// use blosc2::{CParams, SChunk};
    ///
    /// /// Fills the super-chunk with the square roots of the indices of its items.
    /// fn roots(block: &mut ChunkBlock<'_>) -> Result<(), BoxError> {
    ///     let start = block.schunk_offset().ok_or("not of a super-chunk")? / 8;
    ///     for (item, number) in block.output_as::<f64>()?.iter_mut().zip(start..) {
    ///         *item = (number as f64).sqrt();
    ///     }
    ///     Ok(())
    /// }
    ///
    /// let mut schunk = SChunk::in_memory::<f64>(CParams::new().blocksize(4000))?;
    /// schunk.set_prefilter(roots)?;
    /// for _ in 0..3 {
    ///     schunk.append(&[0.0f64; 1000])?;
    /// }
    /// assert_eq!(schunk.items::<f64>(2500..2501)?, [50.0]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidData`]: the compression parameters in the header of the frame are invalid;
    /// - [`ErrorKind::Unsupported`]: this build does not have the codec or a filter.
    pub fn set_prefilter<E: Into<crate::closures::BoxError>>(
        &mut self,
        prefilter: impl for<'b> Fn(&mut crate::closures::ChunkBlock<'b>) -> std::result::Result<(), E>
        + Send
        + Sync
        + 'static,
    ) -> Result<()> {
        let prefilter = Some(Arc::new(ChunkFilter::prefilter(prefilter)));
        let before = std::mem::replace(&mut self.prefilter, prefilter);
        self.encoder = None;
        let made = self.encoder().map(drop);
        if made.is_err() {
            self.prefilter = before;
            self.encoder = None;
        }
        made
    }

    /// Removes the prefilter, if there is one.
    pub fn clear_prefilter(&mut self) {
        self.prefilter = None;
        self.encoder = None;
    }

    /// Sets a postfilter: a closure that changes the data of chunks after decompression; see
    /// [`Decompressor::with_postfilter`](crate::Decompressor::with_postfilter). The argument of the closure contains
    /// the index of the chunk, and the byte offset of the block in the data of the super-chunk. With variable-length
    /// chunks, the first read after this call reads the headers of all chunks. Python: the decorator
    /// `SChunk.postfilter`.
    pub fn set_postfilter<E: Into<crate::closures::BoxError>>(
        &mut self,
        postfilter: impl for<'b> Fn(&mut crate::closures::ChunkBlock<'b>) -> std::result::Result<(), E>
        + Send
        + Sync
        + 'static,
    ) {
        self.postfilter = Some(Arc::new(ChunkFilter::postfilter(postfilter)));
        self.workers.get_mut().clear();
    }

    /// Removes the postfilter, if there is one.
    pub fn clear_postfilter(&mut self) {
        self.postfilter = None;
        self.workers.get_mut().clear();
    }

    /// Returns whether a prefilter or a postfilter is set. The data of a chunk then differs from the compressed data.
    pub(crate) fn is_filtered(&self) -> bool {
        self.prefilter.is_some() || self.postfilter.is_some()
    }

    /// Returns the encoder of new chunks. The first call creates the encoder.
    pub(super) fn encoder(&mut self) -> Result<&mut Encoder> {
        if self.encoder.is_none() {
            self.encoder = Some(Mutex::new(self.new_encoder(None)?));
        }
        match &mut self.encoder {
            Some(encoder) => Ok(encoder.get_mut()),
            None => unreachable!("it was created above"),
        }
    }

    /// Creates an encoder for an array with blocks of `blocksize` bytes and this number of threads.
    pub(crate) fn array_encoder(&self, blocksize: usize, threads: Threads) -> Result<Encoder> {
        self.new_encoder(Some((blocksize, threads)))
    }

    /// Returns the number of threads that compress.
    pub(crate) fn encoding_threads(&self) -> Threads {
        match &self.encoding {
            // A tuner needs the chunks in sequence.
            Some(params) if params.tuner.is_none() => params.threads,
            _ => Threads::ONE,
        }
    }

    fn new_encoder(&self, array: Option<(usize, Threads)>) -> Result<Encoder> {
        let purpose = if self.is_array() { Purpose::Array } else { Purpose::Frame };
        let resolved = match &self.encoding {
            Some(params) => self
                .as_array_wants(params, "set the compression parameters")?
                .resolve(self.typesize, purpose),
            None => self.cparams().resolve(self.typesize, purpose).map_err(|error| {
                let kind = match error.kind() {
                    ErrorKind::InvalidArgument => ErrorKind::InvalidData,
                    kind => kind,
                };
                Error::new(kind, "compress with the parameters in the header", error)
            }),
        };
        let mut params = resolved.map_err(|error| self.at(error))?;
        if let Some((blocksize, threads)) = array {
            // Checked together with the shapes.
            params.format.blocksize = Some(blocksize as u32).filter(|&len| len > 0);
            params.threads = threads;
        }
        let mut encoder = Encoder::with_shape(params, Some(self.shape()?))?;
        if let Some(prefilter) = &self.prefilter {
            encoder.set_prefilter(Arc::clone(prefilter));
        }
        Ok(encoder)
    }

    /// Returns the parameters with the block size of the array, or unchanged if the super-chunk is no array.
    pub(super) fn as_array_wants(&self, params: &CParams, doing: &str) -> Result<CParams> {
        let mut params = params.clone();
        if let Some(blocksize) = self.blocksize().filter(|_| self.is_array()) {
            if params.blocksize.is_some_and(|asked| asked != blocksize) {
                let detail = format!("it holds an array, whose blocks have {blocksize} bytes");
                return Err(self.error(ErrorKind::InvalidArgument, doing, detail));
            }
            params.blocksize = Some(blocksize);
        }
        Ok(params)
    }

    /// Returns the shape of the array, or of the plain super-chunk, for codecs that use it.
    pub(super) fn shape(&self) -> Result<Arc<ArrayShape>> {
        let mut shape = self.shape.lock();
        let state = self.look();
        let meta = array_meta(state.outline.metalayers());
        // Other handles may have changed the array.
        if let Some(shape) = shape.as_ref().filter(|shape| shape.is_of(meta)) {
            return Ok(Arc::clone(shape));
        }
        let made = ArrayShape::new(self.typesize, meta)?;
        Ok(Arc::clone(shape.insert(made)))
    }

    /// Drops all fields that were derived from the outline.
    pub(super) fn forget(&mut self) {
        *self.starts.get_mut() = None;
        *self.shape.get_mut() = None;
        self.workers.get_mut().clear();
        self.encoder = None;
    }
}

/// Returns the compression parameters in the header of a frame.
fn cparams(outline: &Outline) -> CParams {
    let Params { codec, codec_meta, level, typesize, blocksize, filters, filters_meta, split } =
        outline.params();
    CParams {
        codec: Codec::from_code(codec),
        codec_meta,
        level,
        typesize: usize::try_from(typesize).ok(),
        blocksize: blocksize.and_then(|size| usize::try_from(size).ok()),
        split,
        filters: Filter::of_slots(&filters, &filters_meta).collect(),
        dictionary: outline.dictionary(),
        ..CParams::default()
    }
}
