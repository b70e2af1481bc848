//! Contexts of the C library.

use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use blosc2_sys as sys;

use crate::chunk::array_shape::ArrayShape;
use crate::chunk::fork;
use crate::closures::{self, Call, Closures, Slot};
use crate::{ErrorKind, Reason, Result};

/// An owned `blosc2_context`.
#[derive(Debug)]
pub(super) struct Context {
    raw: NonNull<sys::blosc2_context>,
    /// The number of threads that the context uses. C starts threads if the number is greater than one.
    threads: i16,
    /// The closures that may run in the context.
    closures: Closures,
    /// Where the closures find their call. C stores the address until the context is freed.
    slot: Slot,
    /// The super-chunk whose address C stores until the context is freed.
    _shape: Option<Arc<ArrayShape>>,
}

// SAFETY: C stores nothing of a context in thread-local storage. Contexts share only the thread pool, which C guards by
// mutexes (blosc2.c, check_nthreads), and the registries, which do not change after `init` with one exception: loading a
// plugin fills the entry of a codec. No context uses this codec before, see `plugins::load`. All use requires `&mut`, so
// only one thread uses a context at a time.
unsafe impl Send for Context {}

impl Context {
    /// Creates a context for compression, whose codec and filters may read the shape of an array.
    ///
    /// # Safety
    /// The parameters are valid (`CParams::resolve`). Each pointer in the parameters is null, or valid as long as the
    /// context compresses.
    pub(super) unsafe fn for_compression(
        mut params: sys::blosc2_cparams,
        shape: Option<Arc<ArrayShape>>,
        closures: Closures,
    ) -> Result<Self, Reason> {
        let slot = Slot::default();
        params.schunk = address(shape.as_ref());
        let mut preparams = slot.preparams();
        if closures != Closures::None {
            params.preparams = &mut preparams;
        }
        if closures == Closures::Around {
            params.prefilter = Some(closures::prefilter);
        }
        // SAFETY: the caller's promise. C copies the parameters, including the preparams. C stores the addresses of the
        // slot and the shape (blosc2.c, blosc2_create_cctx), which this value owns.
        let raw = unsafe { sys::blosc2_create_cctx(params) };
        Self::new((raw, params.nthreads), closures, slot, shape)
    }

    /// Creates a context for decompression, whose codec and filters may read the shape of an array.
    pub(super) fn for_decompression(
        threads: i16,
        shape: Option<Arc<ArrayShape>>,
        closures: Closures,
    ) -> Result<Self, Reason> {
        let slot = Slot::default();
        let mut postparams = slot.postparams();
        let (nthreads, schunk) = (threads, address(shape.as_ref()));
        let defaults = sys::blosc2_dparams_defaults();
        let mut params = sys::blosc2_dparams { nthreads, schunk, ..defaults };
        if closures != Closures::None {
            params.postparams = &mut postparams;
        }
        if closures == Closures::Around {
            params.postfilter = Some(closures::postfilter);
        }
        // SAFETY: C copies the parameters, including the postparams. C stores the addresses of the slot and the shape
        // (blosc2.c, blosc2_create_dctx), which this value owns. The other parameters are defaults.
        let raw = unsafe { sys::blosc2_create_dctx(params) };
        Self::new((raw, threads), closures, slot, shape)
    }

    fn new(
        (raw, threads): (*mut sys::blosc2_context, i16),
        closures: Closures,
        slot: Slot,
        shape: Option<Arc<ArrayShape>>,
    ) -> Result<Self, Reason> {
        NonNull::new(raw)
            .map(|raw| Self { raw, threads, closures, slot, _shape: shape })
            .ok_or_else(|| Reason::new(ErrorKind::Library, "C-Blosc2 returned no context"))
    }

    /// Whether the context can be used for this number of threads and these closures.
    pub(crate) fn suits(&self, threads: i16, closures: Closures) -> bool {
        // A context for registered closures can also be used for calls without closures: the only difference is that it
        // has separate threads.
        let registered = [Closures::None, Closures::Registered];
        self.threads == threads
            && (self.closures == closures
                || (self.closures == Closures::Registered && registered.contains(&closures)))
    }

    /// Makes a call into C with this context. The closures that the context runs find `call`.
    pub(super) fn during<R>(
        &mut self,
        call: &Call<'_>,
        work: impl FnOnce(*mut sys::blosc2_context) -> R,
    ) -> R {
        let raw = self.raw.as_ptr();
        self.slot.during(call, || work(raw))
    }

    /// Checks that C can use the context in this process.
    pub(super) fn check(&self) -> Result<(), Reason> {
        if self.threads > 1 { fork::check_threads() } else { Ok(()) }
    }

    pub(super) fn as_ptr(&mut self) -> *mut sys::blosc2_context {
        self.raw.as_ptr()
    }
}

/// Returns the super-chunk of a shape, for the parameters of a context; null without a shape.
fn address(shape: Option<&Arc<ArrayShape>>) -> *mut c_void {
    shape.map_or(ptr::null_mut(), |shape| shape.as_ptr().cast())
}

impl Drop for Context {
    fn drop(&mut self) {
        if self.threads > 1 && fork::lost_threads() {
            return; // C would deadlock: its threads are not in this process.
        }
        // SAFETY: the pointer comes from blosc2_create_cctx or blosc2_create_dctx, and is freed once. The slot and the
        // shape are dropped after this call.
        unsafe { sys::blosc2_free_ctx(self.raw.as_ptr()) }
    }
}
