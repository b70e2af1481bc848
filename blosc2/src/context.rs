//! Contexts of the C library.

use std::ptr::NonNull;

use blosc2_sys as sys;

use crate::closures::{self, Call, Closures, Slot};
use crate::fork;
use crate::{Error, ErrorKind, Result};

/// An owned `blosc2_context`.
#[derive(Debug)]
pub(crate) struct Context {
    raw: NonNull<sys::blosc2_context>,
    /// The number of threads that C may start for it, if more than one.
    threads: i16,
    /// The closures that may run in it.
    closures: Closures,
    /// The place where they find their call; C keeps the address until the context is freed.
    slot: Slot,
}

// SAFETY: C keeps nothing of a context in thread-local storage, and contexts share only the thread pool and the
// registries, which C guards by mutexes (blosc2.c, check_nthreads) or does not change after `init`. All use
// requires `&mut`, so only one thread uses a context at a time.
unsafe impl Send for Context {}

impl Context {
    /// Creates a context for compression.
    ///
    /// # Safety
    /// The parameters are valid, and the super-chunk that they point to, if any, lives as long as the context.
    pub(crate) unsafe fn for_compression(
        mut params: sys::blosc2_cparams,
        closures: Closures,
        doing: &str,
    ) -> Result<Self> {
        let slot = Slot::default();
        let mut preparams = slot.preparams();
        if closures != Closures::None {
            params.preparams = &mut preparams;
        }
        if closures == Closures::Around {
            params.prefilter = Some(closures::prefilter);
        }
        // SAFETY: the caller's promise; C copies the parameters, also the preparams.
        let raw = unsafe { sys::blosc2_create_cctx(params) };
        Self::new(raw, params.nthreads, closures, slot, doing)
    }

    /// Creates a context for decompression.
    ///
    /// # Safety
    /// The super-chunk that the parameters point to, if any, lives as long as the context.
    pub(crate) unsafe fn for_decompression(
        mut params: sys::blosc2_dparams,
        closures: Closures,
        doing: &str,
    ) -> Result<Self> {
        let slot = Slot::default();
        let mut postparams = slot.postparams();
        if closures != Closures::None {
            params.postparams = &mut postparams;
        }
        if closures == Closures::Around {
            params.postfilter = Some(closures::postfilter);
        }
        // SAFETY: the caller's promise; C copies the parameters, also the postparams.
        let raw = unsafe { sys::blosc2_create_dctx(params) };
        Self::new(raw, params.nthreads, closures, slot, doing)
    }

    fn new(
        raw: *mut sys::blosc2_context,
        threads: i16,
        closures: Closures,
        slot: Slot,
        doing: &str,
    ) -> Result<Self> {
        NonNull::new(raw)
            .map(|raw| Self { raw, threads, closures, slot })
            .ok_or_else(|| Error::new(ErrorKind::Library, doing, "C-Blosc2 returned no context"))
    }

    /// Whether it can be used for this number of threads and these closures.
    pub(crate) fn suits(&self, threads: i16, closures: Closures) -> bool {
        // A context for registered closures also serves calls without closures; it only has separate threads.
        let registered = [Closures::None, Closures::Registered];
        self.threads == threads
            && (self.closures == closures
                || (self.closures == Closures::Registered && registered.contains(&closures)))
    }

    /// Makes a call into C with this context, whose closures find `call`.
    pub(crate) fn during<R>(
        &mut self,
        call: &Call<'_>,
        work: impl FnOnce(*mut sys::blosc2_context) -> R,
    ) -> R {
        let raw = self.raw.as_ptr();
        self.slot.during(call, || work(raw))
    }

    /// Returns the context if C can use it in this process.
    pub(crate) fn checked(self, doing: &str) -> Result<Self> {
        if self.threads > 1 {
            fork::check_threads(doing)?;
        }
        Ok(self)
    }

    pub(crate) fn as_ptr(&mut self) -> *mut sys::blosc2_context {
        self.raw.as_ptr()
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if self.threads > 1 && fork::lost_threads() {
            return; // C would deadlock: its threads are not in this process.
        }
        // SAFETY: the pointer came from blosc2_create_cctx or blosc2_create_dctx and is freed once.
        unsafe { sys::blosc2_free_ctx(self.raw.as_ptr()) }
    }
}
