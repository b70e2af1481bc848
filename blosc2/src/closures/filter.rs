//! Filters of one's own.

use std::ffi::{CString, c_int};

use blosc2_sys as sys;

#[cfg(doc)]
use crate::ErrorKind;
use crate::Result;

use super::block::{Facts, with_block};
use super::call::{Call, Title, buffers};
use super::registry::Registry;
use super::{BoxError, FilterBlock};

/// A filter of one's own, to be used by its code like any other; see [`Filter::register`](crate::Filter::register).
///
/// Its functions are called from many threads at once, once or more for each block of a chunk. They
/// may use this crate themselves; inside them it works on one thread.
pub trait UserFilter: Send + Sync + 'static {
    /// Transforms a block before it is compressed.
    ///
    /// # Errors
    /// Anything; it becomes the source of the error of the call, of [`ErrorKind::Callback`].
    fn forward(&self, block: &mut FilterBlock<'_>) -> Result<(), BoxError>;

    /// Undoes that.
    ///
    /// The block may hold any bytes, if chunks come from elsewhere.
    ///
    /// # Errors
    /// As for [`forward`](Self::forward).
    fn backward(&self, block: &mut FilterBlock<'_>) -> Result<(), BoxError>;
}

/// A pair of closures is a filter.
impl<F, B> UserFilter for (F, B)
where
    F: Fn(&mut FilterBlock<'_>) -> Result<(), BoxError> + Send + Sync + 'static,
    B: Fn(&mut FilterBlock<'_>) -> Result<(), BoxError> + Send + Sync + 'static,
{
    fn forward(&self, block: &mut FilterBlock<'_>) -> Result<(), BoxError> {
        self.0(block)
    }

    fn backward(&self, block: &mut FilterBlock<'_>) -> Result<(), BoxError> {
        self.1(block)
    }
}

static FILTERS: Registry<dyn UserFilter> = Registry::new();

/// Whether there is a filter of the user's with this code.
pub(crate) fn is_filter(code: u8) -> bool {
    FILTERS.get(code).is_some() || FILTERS.is_taken(code)
}

/// The name of a filter of the user's.
pub(crate) fn filter_name(code: u8) -> Option<&'static str> {
    FILTERS.name(code)
}

/// The code of the user's filter of this name.
pub(crate) fn filter_named(name: &str) -> Option<u8> {
    FILTERS.code(name)
}

/// Keeps a filter of the user's under a code; `built_in` says that its name is taken.
pub(crate) fn register_filter(
    code: u8,
    name: &str,
    filter: impl UserFilter,
    built_in: bool,
) -> Result<()> {
    FILTERS.set("register a filter", code, name, Box::new(filter), built_in)
}

/// Makes C know the codes of all users' filters. Once, before any other call but `blosc2_init`.
pub(super) fn announce() {
    for code in Registry::<dyn UserFilter>::codes() {
        let Ok(name) = CString::new(format!("user filter {code}")) else { continue };
        let mut filter = sys::blosc2_filter {
            id: code,
            name: name.into_raw(), // C keeps it for ever.
            version: 1,
            forward: Some(forward),
            backward: Some(backward),
        };
        // SAFETY: C copies the structure, whose name is never freed (blosc2.c,
        // register_filter_private). No other call is made into C meanwhile (init.rs).
        if unsafe { sys::blosc2_register_filter(&mut filter) } < 0 {
            FILTERS.take(code);
        }
    }
}

unsafe extern "C" fn forward(
    input: *const u8,
    output: *mut u8,
    len: i32,
    meta: u8,
    params: *mut sys::blosc2_cparams,
    code: u8,
) -> c_int {
    // SAFETY: C fills the parameters on its stack for this call (blosc2.c, pipeline_forward). The context
    // has what they lead to from `Slot::preparams`; the call is not used after this function.
    let (call, sizes) = unsafe {
        let params = &*params;
        (Call::of_compression(params), (params.typesize, params.blocksize))
    };
    // SAFETY: C gives a block, and scratch memory for as many bytes, of which no other thread knows.
    unsafe {
        run(call, input, output, len, (code, meta, sizes), |filter, block| filter.forward(block))
    }
}

unsafe extern "C" fn backward(
    input: *const u8,
    output: *mut u8,
    len: i32,
    meta: u8,
    params: *mut sys::blosc2_dparams,
    code: u8,
) -> c_int {
    // SAFETY: as in `forward`, with `Slot::postparams` (blosc2.c, pipeline_backward).
    let (call, typesize) = unsafe { (Call::of_decompression(&*params), (*params).typesize) };
    let sizes = (typesize, 0); // The call has the other.
    // SAFETY: C gives a block in scratch memory, and for as many bytes other such memory or its place in
    // the destination, of which no other thread knows.
    unsafe {
        run(call, input, output, len, (code, meta, sizes), |filter, block| filter.backward(block))
    }
}

/// Runs a filter.
///
/// # Safety
/// As for [`buffers`], both of `len` bytes.
unsafe fn run(
    call: Option<&Call<'_>>,
    input: *const u8,
    output: *mut u8,
    len: i32,
    (code, meta, (typesize, blocksize)): (u8, u8, (i32, i32)),
    work: impl FnOnce(&dyn UserFilter, &mut FilterBlock<'_>) -> Result<(), BoxError>,
) -> c_int {
    let Some(call) = call else {
        return sys::BLOSC2_ERROR_FILTER_PIPELINE; // C works for itself.
    };
    call.run(Title::Filter(code, filter_name(code)), || {
        // SAFETY: the caller's promise.
        let (input, output) = unsafe { buffers(input, len, output, len)? };
        let unknown = || format!("no filter is registered with the code {code}");
        let filter = FILTERS.get(code).ok_or_else(unknown)?;
        let (typesize, blocksize) = (usize::try_from(typesize)?, call.blocksize(blocksize));
        let facts = Facts { typesize, meta, blocksize, chunk: call.place };
        with_block(input, output, facts, |block| work(filter, block))?;
        Ok(sys::BLOSC2_ERROR_SUCCESS)
    })
}
