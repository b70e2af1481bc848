//! C's contexts: what compresses and decompresses one chunk at a time.

use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};

use blosc2_format::chunk::{Header, Special};
use blosc2_sys as sys;

use crate::checked::CheckedChunk;
use crate::element::zeroed;
use crate::fork;
use crate::init::init;
use crate::params::{MAX_CHUNK_LEN, Resolved};
use crate::{DParams, Error, ErrorKind, Result};

/// Bytes that a chunk may take beyond its data.
const OVERHEAD: usize = sys::BLOSC2_MAX_OVERHEAD as usize;

/// An owned `blosc2_context`.
#[derive(Debug)]
struct Context {
    raw: NonNull<sys::blosc2_context>,
    /// Whether C may start threads for it.
    threads: bool,
}

// SAFETY: C keeps nothing of a context in thread-local storage, and contexts share only the thread
// pool and the registries, which C guards by mutexes (blosc2.c, check_nthreads) or does not change
// after `init`. All use goes through `&mut`, so only one thread uses a context at a time.
unsafe impl Send for Context {}

impl Context {
    fn new(raw: *mut sys::blosc2_context, threads: i16, doing: &str) -> Result<Self> {
        NonNull::new(raw)
            .map(|raw| Self { raw, threads: threads > 1 })
            .ok_or_else(|| Error::new(ErrorKind::Library, doing, "C-Blosc2 gave no context"))
    }

    /// Gives the context back if C can use it in this process.
    fn checked(self, doing: &str) -> Result<Self> {
        if self.threads {
            fork::check_threads(doing)?;
        }
        Ok(self)
    }

    fn as_ptr(&mut self) -> *mut sys::blosc2_context {
        self.raw.as_ptr()
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if self.threads && fork::lost_threads() {
            return; // C would wait for threads that are not in this process.
        }
        // SAFETY: the pointer came from blosc2_create_cctx or blosc2_create_dctx and is freed once.
        unsafe { sys::blosc2_free_ctx(self.raw.as_ptr()) }
    }
}

/// Compresses buffers, one after the other, with the same parameters.
#[derive(Debug)]
pub(crate) struct Compressor {
    params: Resolved,
    /// The context, with the length of the source that it was last used for: C takes over the block
    /// size of one call as that of the next.
    context: Option<(Context, usize)>,
}

// SAFETY: the parameters hold pointers of C's, of which only `schunk` may be set; whoever sets it
// keeps the super-chunk alive and unchanged during calls (see `for_schunk`). For `Context` see above.
unsafe impl Send for Compressor {}

impl Compressor {
    /// The parameters, to make another one.
    pub(crate) fn into_params(self) -> Resolved {
        self.params
    }

    pub(crate) fn new(params: Resolved) -> Result<Self> {
        init()?;
        Ok(Self { params, context: None })
    }

    /// A compressor whose codec and filters may look at a super-chunk's metalayers.
    ///
    /// # Safety
    /// `schunk` outlives the compressor, and its metalayers do not change during `compress`.
    pub(crate) unsafe fn for_schunk(
        mut params: Resolved,
        schunk: *mut sys::blosc2_schunk,
    ) -> Result<Self> {
        params.c.schunk = schunk.cast();
        Self::new(params)
    }

    /// Compresses `source` to a new chunk.
    pub(crate) fn compress(&mut self, source: &[u8]) -> Result<Vec<u8>> {
        let mut chunk = Vec::new();
        self.compress_to(source, &mut chunk)?;
        Ok(chunk)
    }

    /// Compresses `source`, replacing the content of `chunk`.
    pub(crate) fn compress_to(&mut self, source: &[u8], chunk: &mut Vec<u8>) -> Result<()> {
        let doing = "compress a buffer";
        let too_large = |_| {
            let detail =
                format!("a chunk holds at most {MAX_CHUNK_LEN} bytes, got {}", source.len());
            Error::new(ErrorKind::TooLarge, doing, detail)
        };
        if source.len() > MAX_CHUNK_LEN {
            return Err(too_large(()));
        }
        let len = i32::try_from(source.len()).map_err(|_| too_large(()))?;
        let room = i32::try_from(source.len() + OVERHEAD).map_err(|_| too_large(()))?;
        let typesize = self.params.typesize();
        let needs_whole = self.params.filters.iter().find(|each| each.needs_whole_items());
        if let (Some(filter), true) = (needs_whole, !source.len().is_multiple_of(typesize)) {
            let detail = format!("{filter} needs whole items of {typesize} bytes, got {len} bytes");
            return Err(Error::new(ErrorKind::InvalidArgument, doing, detail));
        }
        let blocksize = self.blocksize_for(source.len());
        if !sys::HARDENED && blocksize > 0 && len / blocksize > (i32::MAX - (room - len)) / 4 {
            let detail = "an installed C-Blosc2 writes so many blocks outside the chunk";
            return Err(Error::new(ErrorKind::Unsupported, doing, detail));
        }
        let copy = self.needs_copy(source).then(|| AlignedBytes::new(source)).transpose()?;
        let given = copy.as_ref().map_or(source, AlignedBytes::as_slice);

        chunk.clear();
        chunk.try_reserve(source.len() + OVERHEAD).map_err(|error| {
            Error::new(ErrorKind::OutOfMemory, doing, format_args!("{room} bytes: {error}"))
        })?;
        let mut context = self.context_for(source.len())?;
        // SAFETY: `given` is as long as `source`, and the chunk has room for `room` bytes. With the
        // patches of blosc2-sys the source is only read; without them `needs_copy` has copied it where
        // C writes to it (blosc2.c, pipeline_forward). On success C has written as many bytes as it
        // returns.
        let written = unsafe {
            sys::blosc2_compress_ctx(
                context.as_ptr(),
                given.as_ptr().cast(),
                len,
                chunk.as_mut_ptr().cast(),
                room,
            )
        };
        let len = match usize::try_from(written) {
            Ok(len) if len >= OVERHEAD && len <= chunk.capacity() => len,
            // 0 says that the chunk does not fit, which cannot be with this much room.
            Ok(_) => return Err(Error::from_code(doing, sys::BLOSC2_ERROR_WRITE_BUFFER)),
            Err(_) => return Err(Error::from_code(doing, written)),
        };
        // SAFETY: see above; the chunk's capacity is at least `len`.
        unsafe { chunk.set_len(len) };
        self.context = Some((context, source.len()));
        mend(chunk, source)
    }

    /// Whether C must be given a copy: where it writes to its source, and where a filter that reads
    /// the source as numbers would find it misaligned.
    fn needs_copy(&self, source: &[u8]) -> bool {
        let filters = &self.params.filters;
        let scribbles = !sys::HARDENED && filters.len() > 2;
        let reads_numbers = filters.first().is_some_and(|first| first.needs_whole_items());
        scribbles || (reads_numbers && source.as_ptr().align_offset(8) != 0)
    }

    /// The block size to ask for: just what C will make of it, since it writes to the header what it
    /// is asked for (blosc2.c, initialize_context_compression; stune.c). 0 is automatic.
    fn blocksize_for(&self, len: usize) -> i32 {
        let typesize = self.params.c.typesize;
        let len = i32::try_from(len).unwrap_or(i32::MAX);
        let blocksize = self.params.c.blocksize.min(len);
        if len < typesize { 0 } else { blocksize / typesize * typesize }
    }

    fn context_for(&mut self, len: usize) -> Result<Context> {
        let doing = "compress a buffer";
        match self.context.take() {
            Some((context, last)) if last == len => context.checked(doing),
            _ => {
                let blocksize = self.blocksize_for(len);
                // Less data gets no dictionary anyway, but would leave wrong flags behind
                // (blosc2.c, blosc2_compress_ctx).
                let small = len / 20 < sys::BLOSC2_MINUSEFULDICT as usize;
                let use_dict = if small { 0 } else { self.params.c.use_dict };
                let params = sys::blosc2_cparams { blocksize, use_dict, ..self.params.c };
                // SAFETY: the parameters are valid (CParams::resolve); C copies them. `schunk` is
                // null or alive (see `for_schunk`).
                let context = unsafe { sys::blosc2_create_cctx(params) };
                Context::new(context, params.nthreads, doing)?.checked(doing)
            }
        }
    }
}

/// Puts right what C leaves wrong in a chunk that it has just made.
fn mend(chunk: &mut [u8], source: &[u8]) -> Result<()> {
    let header =
        Header::parse(chunk).map_err(|error| Error::from_format("compress a buffer", error))?;
    if !header.is_compressed() {
        // The flag that says that a dictionary follows; none does (blosc2.c, blosc_compress_context).
        chunk[sys::BLOSC2_CHUNK_BLOSC2_FLAGS as usize] &= !(sys::BLOSC2_USEDICT as u8);
    }
    if header.is_stored() && !sys::HARDENED {
        // What C found in its source after the filters had written to it.
        chunk[OVERHEAD..].copy_from_slice(source);
    }
    Ok(())
}

/// A copy of bytes, aligned for every number.
struct AlignedBytes {
    words: Vec<u64>,
    len: usize,
}

impl AlignedBytes {
    fn new(bytes: &[u8]) -> Result<Self> {
        let mut words: Vec<u64> = zeroed(bytes.len().div_ceil(8), "compress a buffer")?;
        crate::element::as_bytes_mut(&mut words)[..bytes.len()].copy_from_slice(bytes);
        Ok(Self { words, len: bytes.len() })
    }

    fn as_slice(&self) -> &[u8] {
        &crate::element::as_bytes(&self.words)[..self.len]
    }
}

/// Decompresses chunks, one after the other.
#[derive(Debug)]
pub(crate) struct Decompressor {
    params: sys::blosc2_dparams,
    /// The context, with the block and item sizes that its scratch memory was made for.
    context: Option<(Context, [u32; 2])>,
}

// SAFETY: as for `Compressor`.
unsafe impl Send for Decompressor {}

impl Decompressor {
    pub(crate) fn new(params: &DParams) -> Result<Self> {
        init()?;
        Ok(Self { params: params.to_c(), context: None })
    }

    /// A decompressor whose codec and filters may look at a super-chunk's metalayers.
    ///
    /// # Safety
    /// `schunk` outlives the decompressor, and its metalayers do not change during its calls.
    pub(crate) unsafe fn for_schunk(
        params: &DParams,
        schunk: *mut sys::blosc2_schunk,
    ) -> Result<Self> {
        let mut decompressor = Self::new(params)?;
        decompressor.params.schunk = schunk.cast();
        Ok(decompressor)
    }

    /// Decompresses a whole chunk to `target`, which has to be as long as its data. On success all
    /// of it is initialised.
    pub(crate) fn decompress(
        &mut self,
        chunk: &CheckedChunk<'_>,
        target: &mut [MaybeUninit<u8>],
    ) -> Result<()> {
        self.run(chunk, target, None)
    }

    /// Decompresses the blocks for which `wanted` is true, or all, to their places in `target`, which
    /// has to be as long as the whole data; other places keep what they hold, or get theirs anyway.
    pub(crate) fn decompress_blocks(
        &mut self,
        chunk: &CheckedChunk<'_>,
        wanted: Option<&[bool]>,
        target: &mut [u8],
    ) -> Result<()> {
        debug_assert!(wanted.is_none_or(|each| each.len() == chunk.header().nblocks() as usize));
        // Delta needs the first block for all others, and data without blocks has none to leave out.
        let all = chunk.uses_delta() || !chunk.header().is_compressed();
        let wanted = wanted.filter(|wanted| !all && wanted.contains(&false));
        let mut skipped: Option<Vec<bool>> =
            wanted.map(|wanted| wanted.iter().map(|wanted| !wanted).collect());
        let mask = skipped.as_deref_mut();
        let len = target.len();
        // SAFETY: the same bytes; `run` only ever writes initialised ones.
        let target = unsafe { std::slice::from_raw_parts_mut(target.as_mut_ptr().cast(), len) };
        self.run(chunk, target, mask)
    }

    fn run(
        &mut self,
        chunk: &CheckedChunk<'_>,
        target: &mut [MaybeUninit<u8>],
        skipped: Option<&mut [bool]>,
    ) -> Result<()> {
        let doing = "decompress a chunk";
        let header = chunk.header();
        if chunk.nbytes() != target.len() {
            let detail = format!("it holds {} bytes, expected {}", header.nbytes, target.len());
            return Err(Error::new(ErrorKind::InvalidData, doing, detail));
        }
        if target.is_empty() {
            return Ok(());
        }
        if matches!(header.special, Some(Special::Zeros | Special::Uninit)) {
            target.fill(MaybeUninit::new(0));
            return Ok(());
        }
        if header.is_stored() {
            // Parsing has seen that the lengths agree.
            write_all(target, chunk.body());
            return Ok(());
        }
        if chunk.uses_delta() {
            return self.run_delta(chunk, target);
        }
        let mut context = self.context_for(header, self.params.nthreads)?;
        if let Some(skipped) = skipped {
            let count = i32::try_from(skipped.len())
                .map_err(|_| Error::new(ErrorKind::InvalidData, doing, "too many blocks"))?;
            // SAFETY: C copies the `count` flags (blosc2.c, blosc2_set_maskout) and uses them for the
            // next decompression, which follows; on its failure the context is dropped.
            let code =
                unsafe { sys::blosc2_set_maskout(context.as_ptr(), skipped.as_mut_ptr(), count) };
            if code < 0 {
                return Err(Error::from_code(doing, code));
            }
        }
        decompress_with(&mut context, chunk, target)?;
        self.context = Some((context, scratch_of(header)));
        Ok(())
    }

    /// Delta is undone as numbers, with the first block as reference: in aligned memory, which is
    /// initialised, whatever the order of the filters. It is done on one thread where delta is not the
    /// first filter, since the others would read a reference that is not undone yet; and in an
    /// installed library, where they may wait for ever for a first block that is broken.
    fn run_delta(
        &mut self,
        chunk: &CheckedChunk<'_>,
        target: &mut [MaybeUninit<u8>],
    ) -> Result<()> {
        let in_place = sys::HARDENED && chunk.starts_with_delta();
        let threads = if in_place { self.params.nthreads } else { 1 };
        let mut context = self.context_for(chunk.header(), threads)?;
        let mut words: Vec<u64> = zeroed(target.len().div_ceil(8), "decompress a chunk")?;
        let scratch = &mut crate::element::as_bytes_mut(&mut words)[..target.len()];
        // SAFETY: the same bytes; `decompress_with` only ever writes initialised ones.
        let uninit = unsafe { &mut *(ptr::from_mut(scratch) as *mut [MaybeUninit<u8>]) };
        decompress_with(&mut context, chunk, uninit)?;
        write_all(target, scratch);
        if threads == self.params.nthreads {
            self.context = Some((context, scratch_of(chunk.header())));
        }
        Ok(())
    }

    fn context_for(&mut self, header: &Header, threads: i16) -> Result<Context> {
        let doing = "decompress a chunk";
        match self.context.take() {
            // Without the patches of blosc2-sys, scratch memory that was made for items of one size is
            // too small for larger ones.
            Some((context, scratch))
                if threads == self.params.nthreads
                    && (sys::HARDENED || scratch == scratch_of(header)) =>
            {
                context.checked(doing)
            }
            _ => {
                let params = sys::blosc2_dparams { nthreads: threads, ..self.params };
                // SAFETY: C copies the parameters. `schunk` is null or alive (see `for_schunk`).
                let context = unsafe { sys::blosc2_create_dctx(params) };
                Context::new(context, threads, doing)?.checked(doing)
            }
        }
    }
}

/// Copies bytes to memory of the same length.
fn write_all(target: &mut [MaybeUninit<u8>], bytes: &[u8]) {
    for (to, from) in target.iter_mut().zip(bytes) {
        to.write(*from);
    }
}

fn decompress_with(
    context: &mut Context,
    chunk: &CheckedChunk<'_>,
    target: &mut [MaybeUninit<u8>],
) -> Result<()> {
    let doing = "decompress a chunk";
    let too_large = |_| Error::new(ErrorKind::TooLarge, doing, "it is over 2 GiB");
    let source_len = i32::try_from(chunk.bytes().len()).map_err(too_large)?;
    let target_len = i32::try_from(target.len()).map_err(too_large)?;
    // SAFETY: the chunk was checked: it is as long as its header says, is not lazy, and uses
    // nothing that is not compiled in; the target has room for the data. C checks the block starts
    // and stream lengths against both lengths as it goes (blosc2.c, initialize_context_decompression,
    // blosc_d).
    let written = unsafe {
        sys::blosc2_decompress_ctx(
            context.as_ptr(),
            chunk.bytes().as_ptr().cast(),
            source_len,
            target.as_mut_ptr().cast(),
            target_len,
        )
    };
    match written {
        code if code < 0 => Err(Error::from_code(doing, code)),
        written if written == target_len => Ok(()),
        written => {
            let detail = format!("{written} bytes came out, expected {target_len}");
            Err(Error::new(ErrorKind::InvalidData, doing, detail))
        }
    }
}

fn scratch_of(header: &Header) -> [u32; 2] {
    [header.block_len(), u32::from(header.typesize)]
}
