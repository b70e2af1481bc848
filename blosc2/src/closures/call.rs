//! One call into C, and the closures that it runs.

use std::any::Any;
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind};
use std::ptr;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

use blosc2_format::chunk::Header;
use blosc2_sys as sys;
use parking_lot::Mutex;

use super::{BoxError, ChunkBlock, ChunkPlace};
use crate::codec::installed;
use crate::error::Reason;

thread_local! {
    /// The number of closures that run on this thread, one inside the other.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    /// The call that this thread has made. Only for an installed library, which does not pass the call to closures, and
    /// uses only one thread.
    static CURRENT: Cell<*const Call<'static>> = const { Cell::new(ptr::null()) };
}

/// The maximum number of closures that run one inside the other. It ends endless recursion.
const DEEPEST: usize = 32;

/// Returns the number of threads that a context may use. Inside a closure, it is one: the other threads may be waiting
/// for the closure.
pub(crate) fn threads(wanted: i16) -> i16 {
    if DEPTH.get() > 0 { 1 } else { wanted }
}

type Closure = dyn Fn(&mut ChunkBlock<'_>) -> Result<(), BoxError> + Send + Sync;

/// A closure that runs on each block of a chunk: before the filters run, or after the filters are undone. Clones share
/// the closure, and are equal.
#[derive(Clone)]
pub(crate) struct ChunkFilter {
    pub(super) title: Title,
    pub(super) closure: Arc<Closure>,
}

// A closure runs where its panics are caught; see `guarded`.
impl UnwindSafe for ChunkFilter {}
impl RefUnwindSafe for ChunkFilter {}

impl PartialEq for ChunkFilter {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.closure, &other.closure)
    }
}

impl Eq for ChunkFilter {}

impl Hash for ChunkFilter {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.closure).cast::<()>().hash(state);
    }
}

impl fmt::Debug for ChunkFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ChunkFilter").field(&self.title).finish()
    }
}

impl ChunkFilter {
    pub(crate) fn prefilter<E: Into<BoxError>>(
        closure: impl Fn(&mut ChunkBlock<'_>) -> Result<(), E> + Send + Sync + 'static,
    ) -> Self {
        Self::new(Title::Prefilter, closure)
    }

    pub(crate) fn postfilter<E: Into<BoxError>>(
        closure: impl Fn(&mut ChunkBlock<'_>) -> Result<(), E> + Send + Sync + 'static,
    ) -> Self {
        Self::new(Title::Postfilter, closure)
    }

    fn new<E: Into<BoxError>>(
        title: Title,
        closure: impl Fn(&mut ChunkBlock<'_>) -> Result<(), E> + Send + Sync + 'static,
    ) -> Self {
        Self { title, closure: Arc::new(move |block| closure(block).map_err(Into::into)) }
    }
}

/// The lengths of the blocks of a chunk.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum BlockLens {
    /// The block size of the context that compresses.
    #[default]
    OfContext,
    /// This length, except for a shorter last block.
    Fixed(usize),
    /// Variable-length blocks.
    Variable,
}

/// The state of one call of a context, for the closures that the call runs.
#[derive(Default)]
pub(crate) struct Call<'a> {
    pub(super) prefilter: Option<&'a ChunkFilter>,
    pub(super) postfilter: Option<&'a ChunkFilter>,
    /// The size of the source that is compressed, in bytes.
    pub(super) source_len: usize,
    /// The codec of the chunk that is decompressed, and the version of its format.
    pub(super) codec: u8,
    pub(super) codec_version: u8,
    pub(super) place: ChunkPlace<'a>,
    pub(super) blocks: BlockLens,
    failure: Mutex<Option<Failure>>,
}

#[derive(Debug)]
struct Failure {
    what: String,
    source: Option<BoxError>,
}

impl<'a> Call<'a> {
    /// Creates a call that compresses `source_len` bytes. C runs the prefilter, if there is one.
    pub(crate) fn compressing(
        source_len: usize,
        prefilter: Option<&'a ChunkFilter>,
        place: ChunkPlace<'a>,
    ) -> Self {
        Self { prefilter, source_len, place, ..Self::default() }
    }

    /// Creates a call that compresses to variable-length blocks.
    pub(crate) fn compressing_blocks(place: ChunkPlace<'a>) -> Self {
        Self { place, blocks: BlockLens::Variable, ..Self::default() }
    }

    /// Creates a call that decompresses a chunk. C runs the postfilter, if there is one.
    pub(crate) fn decompressing(
        header: &Header,
        postfilter: Option<&'a ChunkFilter>,
        place: ChunkPlace<'a>,
    ) -> Self {
        let blocks = match header.variable_blocks {
            true => BlockLens::Variable,
            false => BlockLens::Fixed(header.block_len() as usize),
        };
        let (codec, codec_version) = (header.codec(), header.codec_version);
        Self { postfilter, codec, codec_version, place, blocks, ..Self::default() }
    }

    /// Returns the size of the blocks in bytes; the last block can be shorter. `of_context` is the block size of the
    /// context.
    pub(super) fn blocksize(&self, of_context: i32) -> Option<usize> {
        match self.blocks {
            BlockLens::OfContext => usize::try_from(of_context).ok(),
            BlockLens::Fixed(len) => Some(len),
            BlockLens::Variable => None,
        }
    }

    /// Returns an error if a closure has failed, even if C returned no error.
    pub(crate) fn check(self) -> crate::Result<(), Reason> {
        self.failure.into_inner().map_or(Ok(()), |failure| Err(failure.into()))
    }

    /// Runs a closure for C. Returns the value for C: the result of the closure, or a negative error code.
    pub(super) fn run(&self, title: Title, work: impl FnOnce() -> Result<i32, BoxError>) -> c_int {
        match guarded(title, work) {
            Ok(value) => value,
            Err(failure) => {
                let later = {
                    let mut first = self.failure.lock();
                    match &*first {
                        None => first.replace(failure),
                        Some(_) => Some(failure),
                    }
                };
                discard(later);
                sys::BLOSC2_ERROR_FAILURE
            }
        }
    }
}

impl Failure {
    fn of_error(title: Title, error: BoxError) -> Self {
        // The `Display` implementation of the error may panic.
        let text = catch_unwind(AssertUnwindSafe(|| error.to_string()));
        let text = text.unwrap_or_else(message_of);
        Self { what: format!("{title} failed: {text}"), source: Some(error) }
    }

    fn of_panic(title: Title, payload: Box<dyn Any + Send>) -> Self {
        Self { what: format!("{title} panicked: {}", message_of(payload)), source: None }
    }
}

impl From<Failure> for Reason {
    fn from(failure: Failure) -> Self {
        Self::from_closure(failure.what, failure.source)
    }
}

/// The title of a closure in errors: the kind of the closure, and its name or, if it has no name, its code.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Title {
    Codec(u8, Option<&'static str>),
    Filter(u8, Option<&'static str>),
    Prefilter,
    Postfilter,
    Tuner(u8, Option<&'static str>),
    /// A closure that this method has received.
    Method(&'static str),
}

impl fmt::Display for Title {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, code, name) = match *self {
            Self::Codec(code, name) => ("codec", code, name),
            Self::Filter(code, name) => ("filter", code, name),
            Self::Tuner(id, name) => ("tuner", id, name),
            Self::Prefilter => return f.write_str("the prefilter"),
            Self::Postfilter => return f.write_str("the postfilter"),
            Self::Method(name) => return write!(f, "the closure of `{name}`"),
        };
        match name {
            Some(name) => write!(f, "the {what} {name}"),
            None => write!(f, "the {what} {code}"),
        }
    }
}

/// Runs a closure on this thread, outside C.
pub(crate) fn run_here<R>(
    title: Title,
    work: impl FnOnce() -> Result<R, BoxError>,
) -> crate::Result<R, Reason> {
    Ok(guarded(title, work)?)
}

/// Runs a closure. A panic in the closure becomes a failure.
fn guarded<R>(title: Title, work: impl FnOnce() -> Result<R, BoxError>) -> Result<R, Failure> {
    let _inside = Inside::new(title)?;
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(Failure::of_error(title, error)),
        Err(payload) => Err(Failure::of_panic(title, payload)),
    }
}

pub(crate) fn message_of(payload: Box<dyn Any + Send>) -> String {
    let text = match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (None, Some(text)) => text.clone(),
        (None, None) => "without a message".to_owned(),
    };
    discard(payload);
    text
}

/// Drops a value that comes from a closure. If the drop panics, the payload of the panic is leaked, since dropping the
/// payload could panic too.
fn discard<T>(value: T) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
        std::mem::forget(payload);
    }
}

/// Marks that this thread is inside a closure.
struct Inside;

impl Inside {
    fn new(title: Title) -> Result<Self, Failure> {
        if DEPTH.get() >= DEEPEST {
            let what =
                format!("{title} is nested in other closures more than {DEEPEST} levels deep");
            return Err(Failure { what, source: None });
        }
        DEPTH.set(DEPTH.get() + 1);
        Ok(Self)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}

/// The address at which the functions that C calls find the current call of a context.
///
/// C stores the address as long as the context lives, so the slot has to live longer.
#[derive(Debug, Default)]
pub(crate) struct Slot(Arc<AtomicPtr<Call<'static>>>);

impl Slot {
    /// Returns the parameters that C passes to the codecs, filters and prefilters of a context with this slot.
    pub(crate) fn preparams(&self) -> sys::blosc2_prefilter_params {
        sys::blosc2_prefilter_params {
            user_data: self.address(),
            input: ptr::null(),
            output: ptr::null_mut(),
            output_size: 0,
            output_typesize: 0,
            output_offset: 0,
            nchunk: -1,
            nblock: 0,
            tid: 0,
            ttmp: ptr::null_mut(),
            ttmp_nbytes: 0,
            ctx: ptr::null_mut(),
            output_is_disposable: false,
        }
    }

    /// Returns the parameters that C passes to the codecs, filters and postfilters of a context with this slot.
    pub(crate) fn postparams(&self) -> sys::blosc2_postfilter_params {
        sys::blosc2_postfilter_params {
            user_data: self.address(),
            input: ptr::null(),
            output: ptr::null_mut(),
            size: 0,
            typesize: 0,
            offset: 0,
            nchunk: -1,
            nblock: 0,
            tid: 0,
            ttmp: ptr::null_mut(),
            ttmp_nbytes: 0,
            ctx: ptr::null_mut(),
        }
    }

    fn address(&self) -> *mut c_void {
        Arc::as_ptr(&self.0).cast_mut().cast()
    }

    /// Makes a call into C. During this call, closures find `call`. A slot has one call at a time.
    pub(crate) fn during<R>(&mut self, call: &Call<'_>, work: impl FnOnce() -> R) -> R {
        let call = ptr::from_ref(call).cast::<Call<'static>>();
        let _ending = Ending { slot: self, before: CURRENT.replace(call) };
        self.0.store(call.cast_mut(), Ordering::Release);
        work()
    }
}

/// Removes a call from the slot on drop.
struct Ending<'a> {
    slot: &'a Slot,
    before: *const Call<'static>,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.slot.0.store(ptr::null_mut(), Ordering::Release);
        CURRENT.set(self.before);
    }
}

impl Call<'_> {
    /// Calls `work` with the call for which C runs a codec or filter. Returns `missing` if C compresses internal data.
    ///
    /// # Safety
    /// C has filled the parameters for the function that it calls and that this method is called in. The context has no
    /// preparams, or the preparams of a [`Slot`].
    pub(super) unsafe fn of_compression(
        params: &sys::blosc2_cparams,
        missing: c_int,
        work: impl FnOnce(&Call<'_>) -> c_int,
    ) -> c_int {
        // SAFETY: the preparams are the copy that the context owns (blosc2.c, blosc2_ctx_get_cparams).
        let given = unsafe { params.preparams.as_ref() };
        // SAFETY: the caller's promise.
        unsafe { Self::at(given.map_or(ptr::null_mut(), |given| given.user_data), missing, work) }
    }

    /// Calls `work` with the call for which C runs a codec or filter. Returns `missing` if C decompresses internal data.
    ///
    /// # Safety
    /// The conditions of [`of_compression`](Self::of_compression) hold for the postparams.
    pub(super) unsafe fn of_decompression(
        params: &sys::blosc2_dparams,
        missing: c_int,
        work: impl FnOnce(&Call<'_>) -> c_int,
    ) -> c_int {
        // SAFETY: the postparams are the copy that the context owns (blosc2.c, blosc2_ctx_get_dparams).
        let given = unsafe { params.postparams.as_ref() };
        // SAFETY: the caller's promise.
        unsafe { Self::at(given.map_or(ptr::null_mut(), |given| given.user_data), missing, work) }
    }

    /// Calls `work` with the current call of a slot. Returns `missing` if there is no call.
    ///
    /// # Safety
    /// `user_data` is null, or the address of a [`Slot`] that is alive. C calls the function that this method is called
    /// in, from [`Slot::during`].
    pub(super) unsafe fn at(
        user_data: *mut c_void,
        missing: c_int,
        work: impl FnOnce(&Call<'_>) -> c_int,
    ) -> c_int {
        let slot = user_data.cast::<AtomicPtr<Call<'static>>>();
        // SAFETY: the caller guarantees that the address is null or that of a slot.
        let call = match unsafe { slot.as_ref() } {
            Some(slot) => slot.load(Ordering::Acquire).cast_const(),
            None if installed::HIDES_CALLERS => CURRENT.get(),
            None => ptr::null(),
        };
        // SAFETY: the pointer is null, or points to a call that lives until C returns to `Slot::during`. When C
        // returns, no thread of C uses the call any longer (blosc2.c, parallel_blosc). `work` cannot keep the reference.
        unsafe { call.as_ref() }.map_or(missing, work)
    }
}

/// Returns the input and the output of a closure, from the pointers that C passes. The output is zeroed.
///
/// # Safety
/// There are `input_len` initialized bytes at `input`, and `output_len` writable bytes at `output`. The two do not
/// overlap. Until the function returns to C, no other code accesses the output or writes to the input.
pub(super) unsafe fn buffers<'a>(
    input: *const u8,
    input_len: i32,
    output: *mut u8,
    output_len: i32,
) -> Result<(&'a [u8], &'a mut [u8]), BoxError> {
    let (input_len, output_len) = (usize::try_from(input_len)?, usize::try_from(output_len)?);
    let apart = match output.addr().checked_sub(input.addr()) {
        Some(distance) => input_len <= distance,
        None => output_len <= input.addr() - output.addr(),
    };
    if input.is_null() || output.is_null() || !apart {
        return Err("C-Blosc2 passed memory that is null or overlaps".into());
    }
    // SAFETY: the caller's promise. `write_bytes` initializes the output.
    unsafe {
        ptr::write_bytes(output, 0, output_len);
        let input = slice::from_raw_parts(input, input_len);
        Ok((input, slice::from_raw_parts_mut(output, output_len)))
    }
}
