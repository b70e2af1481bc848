//! How the chunks of a super-chunk are compressed and decompressed: contexts, parameters and closures.

use std::sync::Arc;

use blosc2_format::chunk::Params;
use blosc2_format::frame::Outline;
use parking_lot::Mutex;

use super::array_meta;
use super::frame::Frame;
use crate::chunk::array_shape::ArrayShape;
use crate::chunk::decoder::Decoder;
use crate::chunk::encoder::Encoder;
use crate::codec::params::{Purpose, Resolved};
use crate::{CParams, Codec, DParams, Doing, Error, ErrorKind, Filter, Reason, Result, Threads};

/// The encoder and the decoders of a super-chunk. They are created when they are first needed.
pub(super) struct Coder {
    encoder: Option<Mutex<Encoder>>,
    /// The compression parameters of new chunks, if they differ from the parameters in the header.
    encoding: Option<CParams>,
    /// The worker of the read that has this lock. Other reads at the same time use one of `workers`.
    worker: Mutex<Option<Box<Worker>>>,
    /// In boxes, because a worker is taken and returned for each read.
    #[allow(clippy::vec_box)]
    workers: Mutex<Vec<Box<Worker>>>,
    dparams: DParams,
    /// Whether an array spreads its work over the threads, so that a chunk has one.
    is_of_array: bool,
    shape: Mutex<Option<Arc<ArrayShape>>>,
}

/// The decoder and the buffer with which one thread reads chunks.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) decoder: Decoder,
    /// The compressed chunk.
    pub(super) buffer: Vec<u8>,
}

impl Coder {
    pub(super) fn new(dparams: DParams) -> Self {
        Self {
            encoder: None,
            encoding: None,
            worker: Mutex::default(),
            workers: Mutex::default(),
            dparams,
            is_of_array: false,
            shape: Mutex::default(),
        }
    }

    /// Returns the coder of a copy, which has the same parameters without the closures.
    pub(super) fn copied(&self) -> Self {
        let encoding = self.encoding.as_ref().map(CParams::without_closure);
        Self { encoding, ..Self::new(self.dparams.without_closure()) }
    }

    /// Creates the encoder of a new frame from checked parameters.
    pub(super) fn start(&mut self, frame: &Frame, params: Resolved) -> Result<()> {
        let encoder = Encoder::with_shape(params, Some(self.shape(frame)?))?;
        self.encoder = Some(Mutex::new(encoder));
        Ok(())
    }

    pub(super) fn dparams(&self) -> &DParams {
        &self.dparams
    }

    pub(super) fn set_dparams(&mut self, params: DParams) {
        self.dparams = params;
        self.drop_workers();
    }

    /// Sets whether an array spreads its work over the threads, so that each chunk is decompressed by one.
    pub(super) fn set_of_array(&mut self, is_of_array: bool) {
        self.is_of_array = is_of_array;
        self.drop_workers();
    }

    /// Sets checked compression parameters, which differ from the parameters in the header.
    pub(super) fn set_encoding(&mut self, params: CParams) {
        self.encoding = Some(params);
    }

    /// Sets the compression parameters of new chunks. After an error they are unchanged.
    pub(super) fn set_cparams(&mut self, frame: &Frame, params: &CParams) -> Result<()> {
        let before = self.encoding.replace(params.clone());
        self.encoder = None;
        let made = self.encoder(frame).map(drop);
        if made.is_err() {
            self.encoding = before;
        }
        made
    }

    /// Returns the compression parameters of new chunks.
    pub(super) fn cparams(&self, frame: &Frame) -> CParams {
        let state = frame.last_state();
        let stored = cparams(&state.outline);
        match &self.encoding {
            Some(params) => CParams {
                typesize: stored.typesize,
                blocksize: params.blocksize.or(array_blocksize(&state.outline)),
                ..params.clone()
            },
            None => stored,
        }
    }

    pub(super) fn has_prefilter(&self) -> bool {
        self.encoding.as_ref().is_some_and(|params| params.prefilter.is_some())
    }

    pub(super) fn has_postfilter(&self) -> bool {
        self.dparams.postfilter.is_some()
    }

    pub(super) fn encoder(&mut self, frame: &Frame) -> Result<&mut Encoder> {
        if self.encoder.is_none() {
            self.encoder = Some(Mutex::new(self.new_encoder(frame, None)?));
        }
        match &mut self.encoder {
            Some(encoder) => Ok(encoder.get_mut()),
            None => unreachable!("it was created above"),
        }
    }

    /// Returns the number of threads that compress.
    pub(super) fn encoding_threads(&self) -> Threads {
        match &self.encoding {
            // A tuner needs the chunks in sequence.
            Some(params) if params.tuner.is_none() => params.threads,
            _ => Threads::ONE,
        }
    }

    /// Creates an encoder. For an array, the block size in bytes and the number of threads are given.
    pub(super) fn new_encoder(
        &self,
        frame: &Frame,
        array: Option<(usize, Threads)>,
    ) -> Result<Encoder> {
        let (is_array, stored) = {
            let state = frame.last_state();
            (array_meta(state.outline.metalayers()).is_some(), cparams(&state.outline))
        };
        let purpose = if is_array { Purpose::Array } else { Purpose::Frame };
        let typesize = stored.typesize.unwrap_or(1);
        let resolved = match &self.encoding {
            Some(params) => as_array_wants(frame, params)
                .doing("set the compression parameters")?
                .resolve(typesize, purpose),
            None => stored.resolve(typesize, purpose).map_err(|error| {
                let kind = match error.kind() {
                    ErrorKind::InvalidArgument => ErrorKind::InvalidData,
                    kind => kind,
                };
                Error::new(kind, "compress with the parameters in the header", error)
            }),
        };
        let mut params = resolved.map_err(|error| frame.at(error))?;
        if let Some((blocksize, threads)) = array {
            // Checked together with the shapes.
            params.format.blocksize = Some(blocksize as u32).filter(|&len| len > 0);
            params.threads = threads;
        }
        Encoder::with_shape(params, Some(self.shape(frame)?))
    }

    /// Calls `work` with a worker that no other thread uses. After a panic the worker is dropped.
    pub(super) fn with_worker<R>(
        &self,
        frame: &Frame,
        work: impl FnOnce(&mut Worker) -> Result<R>,
    ) -> Result<R> {
        // One lock for the whole call costs less than one lock to take the worker and one to return it.
        let mut kept = self.worker.try_lock();
        let worker = kept.as_mut().and_then(|kept| kept.take());
        let mut worker = match worker.or_else(|| self.workers.lock().pop()) {
            Some(worker) => worker,
            None => self.new_worker(frame)?,
        };
        let result = work(&mut worker);
        match &mut kept {
            Some(kept) => **kept = Some(worker),
            None => self.workers.lock().push(worker),
        }
        result
    }

    fn new_worker(&self, frame: &Frame) -> Result<Box<Worker>> {
        let threads = if self.is_of_array { Threads::ONE } else { self.dparams.threads };
        let params = self.dparams.clone().threads(threads);
        let decoder = Decoder::with_shape(&params, Some(self.shape(frame)?))?;
        Ok(Box::new(Worker { decoder, buffer: Vec::new() }))
    }

    fn drop_workers(&mut self) {
        *self.worker.get_mut() = None;
        self.workers.get_mut().clear();
    }

    /// Returns the shape of the array, or of the plain super-chunk, for codecs that use it.
    pub(super) fn shape(&self, frame: &Frame) -> Result<Arc<ArrayShape>> {
        let mut shape = self.shape.lock();
        let state = frame.last_state();
        let meta = array_meta(state.outline.metalayers());
        // Other handles may have changed the array.
        if let Some(shape) = shape.as_ref().filter(|shape| shape.is_of(meta)) {
            return Ok(Arc::clone(shape));
        }
        let typesize = state.outline.params().typesize as usize;
        let made = ArrayShape::new(typesize, meta)?;
        Ok(Arc::clone(shape.insert(made)))
    }

    /// Drops all fields that were derived from the outline.
    pub(super) fn forget(&mut self) {
        *self.shape.get_mut() = None;
        self.drop_workers();
        self.encoder = None;
    }
}

/// Returns the parameters with the block size of the array, or unchanged if the super-chunk is no array.
pub(super) fn as_array_wants(frame: &Frame, params: &CParams) -> Result<CParams, Reason> {
    let mut params = params.clone();
    let blocksize = array_blocksize(&frame.last_state().outline);
    if let Some(blocksize) = blocksize {
        if params.blocksize.is_some_and(|asked| asked != blocksize) {
            let detail = format!("it holds an array, whose blocks have {blocksize} bytes");
            return Err(frame.error(ErrorKind::InvalidArgument, detail));
        }
        params.blocksize = Some(blocksize);
    }
    Ok(params)
}

/// Returns the block size of an array; `None` if the chunks belong to no array.
fn array_blocksize(outline: &Outline) -> Option<usize> {
    let blocksize =
        outline.params().blocksize.filter(|_| array_meta(outline.metalayers()).is_some());
    blocksize.map(|size| size as usize)
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
