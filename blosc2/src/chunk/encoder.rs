//! Compression in contexts of C.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Instant;

use blosc2_format::chunk::Header;
use blosc2_sys as sys;

use crate::chunk::array_shape::ArrayShape;
use crate::chunk::context::Context;
use crate::chunk::init::init;
use crate::closures::{self, Blocks, Call, ChunkPlace, Closures};
use crate::codec::params::{MAX_CHUNK_LEN, Resolved, Tuning};
use crate::codec::{filter, installed};
use crate::support::memory::{AlignedBytes, Target, reserve};
use crate::{CParams, Codec, Doing, Error, ErrorKind, Reason, Result};

pub(super) const COMPRESS: &str = "compress a buffer";
/// The maximum number of bytes of a chunk in addition to its data.
pub(super) const OVERHEAD: usize = sys::BLOSC2_MAX_OVERHEAD as usize;
/// The maximum number of bytes of a chunk of Blosc1 in addition to its data.
const BLOSC1_OVERHEAD: usize = sys::BLOSC_MIN_HEADER_LENGTH as usize;
/// The maximum number of bytes of a variable-length block in addition to its data: the entry in the table of blocks,
/// the length of the block, and the length of its stream.
const BLOCK_OVERHEAD: usize = 12;
/// The maximum number of bytes of a dictionary, including its length field.
const MAX_DICTIONARY: usize = 4 + sys::BLOSC2_MAXDICTSIZE as usize;

/// Compresses buffers, one at a time, with the same parameters.
#[derive(Debug)]
pub(crate) struct Encoder {
    params: Resolved,
    /// The context, and the length of the source that it compressed last.
    context: Option<(Context, usize)>,
    tuning: Option<Tuning>,
    shape: Option<Arc<ArrayShape>>,
}

// The threads of C share the `Call`.
const _: fn() = || {
    fn is_sync<T: Sync>() {}
    is_sync::<Call<'_>>();
};

impl Encoder {
    pub(crate) fn typesize(&self) -> usize {
        self.params.typesize()
    }

    pub(crate) fn new(params: Resolved) -> Result<Self> {
        Self::with_shape(params, None)
    }

    /// Creates an encoder whose codec and filters may read the shape of an array.
    pub(crate) fn with_shape(params: Resolved, shape: Option<Arc<ArrayShape>>) -> Result<Self> {
        init()?;
        let tuning = params.tuning.clone();
        Ok(Self { params, context: None, tuning, shape })
    }

    /// Returns the parameters that the tuner chose last, if there is a tuner.
    pub(super) fn tuned_params(&self) -> Option<&CParams> {
        self.tuning.as_ref().map(Tuning::params)
    }

    /// Replaces the parameters. The new parameters differ from the original parameters only in the typesize.
    pub(super) fn set_params(&mut self, params: Resolved) -> Result<()> {
        let params = match &self.tuning {
            Some(tuning) => tuning.resolve(params.typesize())?,
            None => params,
        };
        // The sizes of a context can be changed. Filters that depend on the sizes, and the parameters of a plugin,
        // cannot be changed: a new context is needed.
        if installed::KEEPS_SIZES
            || self.params.format.filters_meta != params.format.filters_meta
            || self.params.codec_params() != params.codec_params()
        {
            self.context = None;
        }
        self.params = params;
        Ok(())
    }

    /// Returns the typesize that closures receive: the typesize in the header of the chunk.
    fn told_typesize(&self) -> usize {
        if self.typesize() > 255 { 1 } else { self.typesize() }
    }

    /// Whether C runs the prefilter. With delta, C does not: it would use data without the prefilter as the reference
    /// of delta.
    fn prefilters_in_c(&self) -> bool {
        let has_delta = || self.params.filters.iter().any(|filter| filter::is_delta(filter.code()));
        self.params.prefilter.is_some() && !installed::WRITES_TO_SOURCE && !has_delta()
    }

    /// Runs the prefilter in Rust, and returns its output for `source`.
    fn prefiltered(&self, source: &[u8], blocks: Blocks<'_>) -> Result<AlignedBytes> {
        let mut data = AlignedBytes::zeroed(source.len()).doing(COMPRESS)?;
        if let Some(prefilter) = &self.params.prefilter {
            prefilter.run(source, data.as_mut_slice(), blocks).doing(COMPRESS)?;
        }
        Ok(data)
    }

    /// Runs the prefilter in Rust on variable-length blocks. C would pass wrong offsets for these blocks.
    fn prefiltered_blocks(
        &self,
        blocks: &[&[u8]],
        chunk: ChunkPlace<'_>,
    ) -> Result<Vec<AlignedBytes>> {
        let mut offset = 0;
        let mut each = |(index, block): (usize, &&[u8])| {
            let (len, typesize) = (block.len(), self.told_typesize());
            let place = Blocks { len, variable: true, typesize, index, offset, chunk };
            offset += len;
            self.prefiltered(block, place)
        };
        blocks.iter().enumerate().map(&mut each).collect()
    }

    /// Compresses `source`, and replaces the content of `chunk`. Closures receive `place` as the position of the chunk.
    pub(crate) fn compress_to(
        &mut self,
        source: &[u8],
        place: ChunkPlace<'_>,
        chunk: &mut Vec<u8>,
    ) -> Result<()> {
        self.tuned(&[source], |encoder| encoder.compress_vec(source, place, chunk)).map(drop)
    }

    /// Compresses `source` to the start of `target`, and returns the bytes of the chunk. The chunk is not part of a
    /// super-chunk.
    pub(super) fn compress_uninit<'t>(
        &mut self,
        source: &[u8],
        target: Target<'t>,
    ) -> Result<&'t mut [u8]> {
        self.tuned(&[source], |encoder| encoder.compress(source, ChunkPlace::default(), target))
    }

    /// Compresses each of `blocks` to one variable-length block, and replaces the content of `chunk`. Closures receive
    /// `place` as the position of the chunk.
    pub(crate) fn compress_blocks(
        &mut self,
        blocks: &[&[u8]],
        place: ChunkPlace<'_>,
        chunk: &mut Vec<u8>,
    ) -> Result<()> {
        self.tuned(blocks, |encoder| encoder.blocks(blocks, place, chunk)).map(drop)
    }

    /// Calls the tuner, if there is one, before and after the compression in `work`, which returns the chunk.
    fn tuned<'c>(
        &mut self,
        data: &[&[u8]],
        work: impl FnOnce(&mut Self) -> Result<&'c mut [u8]>,
    ) -> Result<&'c mut [u8]> {
        let Some(tuning) = &mut self.tuning else {
            return work(self);
        };
        if let Some(params) = tuning.next(data, &self.params)? {
            self.params = params;
            self.context = None;
        }
        let start = Instant::now();
        let chunk = work(self)?;
        if let Some(tuning) = &mut self.tuning {
            tuning.measured(start, data.iter().map(|data| data.len()).sum(), chunk.len())?;
        }
        Ok(chunk)
    }

    fn compress_vec<'c>(
        &mut self,
        source: &[u8],
        place: ChunkPlace<'_>,
        chunk: &'c mut Vec<u8>,
    ) -> Result<&'c mut [u8]> {
        chunk.clear();
        if source.len() > MAX_CHUNK_LEN {
            return Err(too_large(source.len()));
        }
        reserve(chunk, source.len() + OVERHEAD).doing(COMPRESS)?;
        let target = Target::new(chunk.spare_capacity_mut());
        let len = self.compress(source, place, target)?.len();
        // SAFETY: the vector was empty, and the start of its capacity contains the compressed bytes.
        unsafe { chunk.set_len(len) };
        Ok(chunk)
    }

    /// Compresses to the start of `target`, and returns the bytes of the chunk.
    fn compress<'t>(
        &mut self,
        source: &[u8],
        place: ChunkPlace<'_>,
        mut target: Target<'t>,
    ) -> Result<&'t mut [u8]> {
        let header_len = if self.params.blosc1 { BLOSC1_OVERHEAD } else { OVERHEAD };
        if source.len() > MAX_CHUNK_LEN {
            return Err(too_large(source.len()));
        }
        let bound = source.len() + header_len;
        if target.len() < header_len {
            return Err(does_not_fit(target.len(), bound));
        }
        self.check_whole_items(source.len())?;
        if installed::WRITES_BEHIND_TARGET && target.len() < bound {
            let mut chunk = Vec::new();
            self.compress_vec(source, place, &mut chunk)?;
            if chunk.len() > target.len() {
                return Err(does_not_fit(target.len(), bound));
            }
            return Ok(target.truncated(chunk.len()).write(&chunk));
        }
        let here = self.params.prefilter.is_some() && !self.prefilters_in_c();
        if here && self.params.format.blocksize.is_none() {
            // C would report the block size only after the compression.
            let detail = "a prefilter needs a block size, with delta or with an installed library";
            return Err(Error::new(ErrorKind::InvalidArgument, COMPRESS, detail));
        }
        let blocksize = self.blocksize_for(source.len());
        let blocks = Blocks {
            // 0 means one block: the data is shorter than an item.
            len: usize::try_from(blocksize).unwrap_or(0),
            variable: false,
            typesize: self.told_typesize(),
            index: 0,
            offset: 0,
            chunk: place,
        };
        let filtered = here.then(|| self.prefiltered(source, blocks)).transpose()?;
        let source = filtered.as_ref().map_or(source, AlignedBytes::as_slice);
        // C never needs more room than the bound. The length of the target may exceed an `i32`.
        let room_len = target.len().min(bound);
        let len = i32::try_from(source.len()).map_err(|_| too_large(source.len()))?;
        let room = i32::try_from(room_len).map_err(|_| too_large(source.len()))?;
        let many = blocksize > 0 && len / blocksize > i32::MAX.saturating_sub(room - len) / 4;
        installed::MANY_BLOCKS.refuse(many).doing(COMPRESS)?;
        let copy = self
            .needs_copy(source)
            .then(|| AlignedBytes::of(source).doing(COMPRESS))
            .transpose()?;
        let given = copy.as_ref().map_or(source, AlignedBytes::as_slice);

        let closures = self.closures(self.prefilters_in_c());
        let mut context = self.context_for(source.len(), blocksize, closures)?;
        let call = Call::compressing(source.len(), self.params.prefilter.as_ref(), place);
        let written = context.during(&call, |context| {
            // SAFETY: `given` is as long as `source`, and the target has at least `room` bytes. With the patches of
            // blosc2-sys, C only reads the source. Without the patches, `given` is a copy if C writes to the source
            // (`needs_copy`; blosc2.c, pipeline_forward). On success, C has written as many bytes as it returns.
            unsafe {
                let (from, to) = (given.as_ptr().cast(), target.as_mut_ptr().cast());
                sys::blosc2_compress_ctx(context, from, len, to, room)
            }
        });
        call.check().doing(COMPRESS)?;
        let none = || does_not_fit(target.len(), bound);
        let len = written_len(written, header_len..=room_len, none)?;
        self.context = Some((context, source.len()));
        // SAFETY: C has written `len` bytes from the start of the target on: the number that it has returned (blosc2.c,
        // blosc_compress_context).
        let chunk = unsafe { target.truncated(len).assume_init() };
        self.mend(chunk, source)?;
        Ok(chunk)
    }

    fn blocks<'c>(
        &mut self,
        blocks: &[&[u8]],
        place: ChunkPlace<'_>,
        chunk: &'c mut Vec<u8>,
    ) -> Result<&'c mut [u8]> {
        chunk.clear();
        let invalid = |detail: String| Error::new(ErrorKind::InvalidArgument, COMPRESS, detail);
        if self.params.blosc1 {
            return Err(invalid("Blosc1 has no variable-length blocks".to_owned()));
        }
        if self.params.filters.iter().any(|filter| filter::is_delta(filter.code())) {
            let detail = "delta needs blocks of equal length, but these are variable-length";
            return Err(invalid(detail.to_owned()));
        }
        installed::BLOCKS_AT_LEVEL_0.refuse(self.params.format.level == 0).doing(COMPRESS)?;
        installed::BLOCKS_WITH_DICTIONARY.refuse(self.params.dictionary).doing(COMPRESS)?;
        if blocks.is_empty() {
            return Err(invalid("there are no blocks".to_owned()));
        }
        let mut total = 0usize;
        for (index, block) in blocks.iter().enumerate() {
            if block.is_empty() {
                return Err(invalid(format!("block {index} has no bytes")));
            }
            total = total.saturating_add(block.len());
            self.check_whole_items(block.len())?;
        }
        if total > MAX_CHUNK_LEN {
            return Err(too_large(total));
        }
        let dictionary = if self.params.dictionary { MAX_DICTIONARY } else { 0 };
        let bound = blocks.len().saturating_mul(BLOCK_OVERHEAD).saturating_add(total);
        let bound = bound.saturating_add(OVERHEAD + dictionary).min(i32::MAX as usize);
        let does_not_fit = || {
            let (count, limit) = (blocks.len(), i32::MAX);
            let detail = format!(
                "the chunk of {count} blocks with {total} bytes does not fit in {limit} bytes"
            );
            Error::new(ErrorKind::TooLarge, COMPRESS, detail)
        };
        let room = i32::try_from(bound).map_err(|_| does_not_fit())?;
        let nblocks = i32::try_from(blocks.len()).map_err(|_| does_not_fit())?;

        let copy = match self.params.prefilter.is_some() {
            true => Some(self.prefiltered_blocks(blocks, place)?),
            false => blocks
                .iter()
                .any(|block| self.needs_copy(block))
                .then(|| {
                    blocks.iter().map(|block| AlignedBytes::of(block).doing(COMPRESS)).collect()
                })
                .transpose()?,
        };
        let given: Vec<*const std::ffi::c_void> = match &copy {
            None => blocks.iter().map(|block| block.as_ptr().cast()).collect(),
            Some(copies) => copies.iter().map(|copy| copy.as_slice().as_ptr().cast()).collect(),
        };
        let lens: Vec<i32> =
            blocks.iter().map(|block| i32::try_from(block.len()).unwrap_or(i32::MAX)).collect();
        reserve(chunk, bound).doing(COMPRESS)?;
        let blocksize = self.blocksize_for(total);
        let mut context = self.context_for(total, blocksize, self.closures(false))?;
        let call = Call::compressing_blocks(place);
        let written = context.during(&call, |context| {
            // SAFETY: `given` and `lens` contain `nblocks` pointers and the lengths of the memory there. C only reads
            // this memory, or this memory is a copy. The chunk has a capacity of at least `room` bytes. On success, C
            // has written as many bytes as it returns.
            unsafe {
                sys::blosc2_vlcompress_ctx(
                    context,
                    given.as_ptr(),
                    lens.as_ptr(),
                    nblocks,
                    chunk.as_mut_ptr().cast(),
                    room,
                )
            }
        });
        call.check().doing(COMPRESS)?;
        let len = written_len(written, OVERHEAD..=bound, does_not_fit)?;
        // SAFETY: C has written `len` bytes, and the capacity of the chunk is at least `bound` bytes.
        unsafe { chunk.set_len(len) };
        self.context = (!installed::KEEPS_SIZES).then_some((context, total));
        self.stamp(chunk);
        Ok(chunk)
    }

    fn check_whole_items(&self, len: usize) -> Result<()> {
        let typesize = self.params.typesize();
        let needs_whole = self.params.filters.iter().find(|each| each.needs_whole_items());
        match needs_whole {
            Some(filter) if !len.is_multiple_of(typesize) => {
                let detail =
                    format!("{filter} needs whole items of {typesize} bytes, got {len} bytes");
                Err(Error::new(ErrorKind::InvalidArgument, COMPRESS, detail))
            }
            _ => Ok(()),
        }
    }

    /// Whether C must receive a copy of the source: C writes to its source, or a filter reads the source as numbers and
    /// the source is not aligned.
    fn needs_copy(&self, source: &[u8]) -> bool {
        let filters = &self.params.filters;
        let scribbles = installed::WRITES_TO_SOURCE && filters.len() > 2;
        let reads_numbers = filters.first().is_some_and(|first| first.needs_whole_items());
        scribbles || (reads_numbers && source.as_ptr().align_offset(8) != 0)
    }

    /// Returns the block size to request; 0 means an automatic block size. C writes the requested block size to the
    /// header, even if it uses another one (blosc2.c, initialize_context_compression; stune.c). Therefore this function
    /// returns the block size that C will use.
    fn blocksize_for(&self, len: usize) -> i32 {
        let format = &self.params.format;
        let typesize = format.typesize as i32;
        let len = i32::try_from(len).unwrap_or(i32::MAX);
        let blocksize = (format.blocksize.unwrap_or(0) as i32).min(len);
        if len < typesize { 0 } else { blocksize / typesize * typesize }
    }

    /// Corrects errors of C in a chunk that C has just written.
    fn mend(&self, chunk: &mut [u8], source: &[u8]) -> Result<()> {
        self.stamp(chunk);
        if !self.params.dictionary && !installed::WRITES_TO_SOURCE {
            return Ok(());
        }
        let header = Header::parse(chunk).doing(COMPRESS)?;
        if !header.is_compressed() && header.dictionary {
            // The header has the dictionary flag, but the chunk contains no dictionary (blosc2.c,
            // blosc_compress_context).
            chunk[sys::BLOSC2_CHUNK_BLOSC2_FLAGS as usize] &= !(sys::BLOSC2_USEDICT as u8);
        }
        if header.is_stored() && installed::WRITES_TO_SOURCE {
            // C has stored its source, but the filters had written to the source before.
            chunk[OVERHEAD..].copy_from_slice(source);
        }
        Ok(())
    }

    /// Writes the version of a user-defined codec to a chunk that C has just written. C does not have this version.
    fn stamp(&self, chunk: &mut [u8]) {
        if let Some(version) = closures::codec_version(self.params.format.codec) {
            chunk[sys::BLOSC2_CHUNK_VERSIONLZ as usize] = version;
        }
    }

    /// Whether user-defined closures run during compression.
    pub(crate) fn runs_closures(&self) -> bool {
        self.tuning.is_some()
            || self.params.prefilter.is_some()
            || self.closures(false) != Closures::None
    }

    /// Returns the closures that run in C. The prefilter can run in Rust instead.
    fn closures(&self, prefilter_in_c: bool) -> Closures {
        match prefilter_in_c {
            true => Closures::Around,
            false => closures::registered(self.params.format.codec, &self.params.format.filters),
        }
    }

    /// Checks that the encoder has the shape of an array, if the codec or a filter needs it.
    fn check_shape(&self) -> Result<()> {
        let is_array = self.shape.as_ref().is_some_and(|shape| shape.is_array());
        if is_array {
            return Ok(());
        }
        let codec = Codec::from_code(self.params.format.codec);
        let filter = self.params.filters.iter().find(|each| each.needs_array());
        let detail = match filter {
            _ if codec.needs_array() => format!("the codec {codec} works in arrays only"),
            Some(filter) => format!("the filter {filter} works in arrays only"),
            None => return Ok(()),
        };
        Err(Error::new(ErrorKind::InvalidArgument, COMPRESS, detail))
    }

    /// Returns a context to compress `len` bytes in blocks of `blocksize` bytes.
    fn context_for(&mut self, len: usize, blocksize: i32, closures: Closures) -> Result<Context> {
        let threads = closures::threads(self.params.threads.for_c());
        let suits = |(context, last): &(Context, usize)| {
            context.suits(threads, closures) && (!installed::KEEPS_SIZES || *last == len)
        };
        let Some((mut context, _)) = self.context.take().filter(suits) else {
            return self.new_context(blocksize, len, closures);
        };
        if !installed::KEEPS_SIZES {
            let typesize = self.params.format.typesize as i32;
            // SAFETY: the context is alive and not shared. The sizes would be valid for the creation of a context.
            let code = unsafe { sys::set_sizes(context.as_ptr(), typesize, blocksize) };
            if code < 0 {
                return Err(Reason::from_code(code).doing(COMPRESS));
            }
        }
        context.check().doing(COMPRESS)?;
        Ok(context)
    }

    fn new_context(&self, blocksize: i32, len: usize, closures: Closures) -> Result<Context> {
        self.check_shape()?;
        let small = installed::MISFLAGS_SMALL_DATA && len / 20 < sys::BLOSC2_MINUSEFULDICT as usize;
        let params = self.params.to_c();
        let use_dict = if small { 0 } else { params.use_dict };
        let nthreads = closures::threads(params.nthreads);
        let codec_params = self.params.codec_params();
        let params = sys::blosc2_cparams { blocksize, use_dict, nthreads, codec_params, ..params };
        let shape = self.shape.clone();
        // SAFETY: the parameters are valid (CParams::resolve). The only pointer is `codec_params`. It is null, or the
        // parameters of the plugin of this codec; C only passes the pointer to the plugin during compression.
        // `self.params` owns the parameters of the plugin as long as this context compresses (`set_params`, `tuned`).
        let mut context =
            unsafe { Context::for_compression(params, shape, closures).doing(COMPRESS)? };
        if self.params.blosc1 {
            // SAFETY: the context is alive and not shared.
            let code = unsafe { sys::set_blosc1(context.as_ptr(), true) };
            if code < 0 {
                return Err(Reason::from_code(code).doing(COMPRESS));
            }
        }
        context.check().doing(COMPRESS)?;
        Ok(context)
    }
}

/// Checks the return value of C after compression. C returns 0 if the chunk does not fit.
fn written_len(
    written: i32,
    possible: RangeInclusive<usize>,
    does_not_fit: impl FnOnce() -> Error,
) -> Result<usize> {
    match usize::try_from(written) {
        Ok(0) => Err(does_not_fit()),
        Ok(len) if possible.contains(&len) => Ok(len),
        Ok(_) => Err(Reason::from_code(sys::BLOSC2_ERROR_WRITE_BUFFER).doing(COMPRESS)),
        Err(_) => Err(Reason::from_code(written).doing(COMPRESS)),
    }
}

fn too_large(len: usize) -> Error {
    let detail = format!("a chunk holds at most {MAX_CHUNK_LEN} bytes, got {len}");
    Error::new(ErrorKind::TooLarge, COMPRESS, detail)
}

fn does_not_fit(room: usize, bound: usize) -> Error {
    let detail = format!("the chunk does not fit in {room} bytes; {bound} bytes are always enough");
    Error::new(ErrorKind::BufferTooSmall, COMPRESS, detail)
}
