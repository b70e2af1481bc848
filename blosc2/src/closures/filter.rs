//! User-defined filters.

use std::ffi::{CString, c_int};

use blosc2_sys as sys;

#[cfg(doc)]
use crate::ErrorKind;
use crate::Result;
use crate::error::Doing;

use super::block::{Facts, with_block};
use super::call::{Call, Title, buffers};
use super::registry::Registry;
use super::{BoxError, FilterBlock};

/// A user-defined filter, which [`Filter::register`](crate::Filter::register) registers with a code.
///
/// The methods are called for each block of a chunk. They can be called more than once for the same block, and on
/// several threads at the same time. The methods can call functions of this crate; these nested calls use one thread.
///
/// A pair of closures or functions is a filter too: the first is `forward`, the second is `backward`.
///
/// C: `blosc2_filter`. Python: the functions passed to `register_filter`.
///
/// ```
/// use blosc2::user_defined::{BoxError, FilterBlock, UserFilter};
/// use blosc2::{CParams, Filter};
///
/// /// Inverts all bits.
/// struct Invert;
///
/// impl UserFilter for Invert {
///     fn forward(&self, block: &mut FilterBlock<'_>) -> Result<(), BoxError> {
///         let input = block.input();
///         for (to, from) in block.output().iter_mut().zip(input) {
///             *to = !from;
///         }
///         Ok(())
///     }
///
///     fn backward(&self, block: &mut FilterBlock<'_>) -> Result<(), BoxError> {
///         self.forward(block) // The filter is its own inverse.
///     }
/// }
///
/// let filter = Filter::register(201, "invert", Invert)?;
/// let data: Vec<u32> = (0..1000).collect();
/// let chunk = blosc2::compress(&data, CParams::new().filters(&[filter, Filter::Shuffle]))?;
/// assert_eq!(blosc2::decompress::<u32>(&chunk)?, data);
/// # Ok::<(), blosc2::Error>(())
/// ```
pub trait UserFilter: Send + Sync + 'static {
    /// Transforms a block before compression.
    ///
    /// # Errors
    /// Any error. The call that compresses then fails with [`ErrorKind::Callback`];
    /// [`Error::get_ref`](crate::Error::get_ref) returns this error.
    fn forward(&self, block: &mut FilterBlock<'_>) -> Result<(), BoxError>;

    /// Undoes [`forward`](Self::forward) after decompression.
    ///
    /// If the chunks are untrusted input, the block can contain any bytes.
    ///
    /// # Errors
    /// Any error. The call that decompresses then fails with [`ErrorKind::Callback`];
    /// [`Error::get_ref`](crate::Error::get_ref) returns this error.
    fn backward(&self, block: &mut FilterBlock<'_>) -> Result<(), BoxError>;
}

/// A pair of closures is a filter: the first is `forward`, the second is `backward`.
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

/// Whether a user-defined filter is registered with this code.
pub(crate) fn is_filter(code: u8) -> bool {
    FILTERS.get(code).is_some() || FILTERS.is_taken(code)
}

/// The name of a user-defined filter.
pub(crate) fn filter_name(code: u8) -> Option<&'static str> {
    FILTERS.name(code)
}

/// The code of the user-defined filter with this name.
pub(crate) fn filter_named(name: &str) -> Option<u8> {
    FILTERS.code(name)
}

/// Registers a user-defined filter with a code. `built_in` means that a filter of C-Blosc2 has the name.
pub(crate) fn register_filter(
    code: u8,
    name: &str,
    filter: impl UserFilter,
    built_in: bool,
) -> Result<()> {
    FILTERS.set(code, name, Box::new(filter), built_in).doing("register a filter")
}

/// Registers the codes of all user-defined filters in C. Called once, before any other call except `blosc2_init`.
pub(super) fn announce() {
    for code in Registry::<dyn UserFilter>::codes() {
        let Ok(name) = CString::new(format!("user filter {code}")) else { continue };
        let mut filter = sys::blosc2_filter {
            id: code,
            name: name.into_raw(), // C uses the name until the process exits.
            version: 1,
            forward: Some(forward),
            backward: Some(backward),
        };
        // SAFETY: C copies the structure, whose name is never freed (blosc2.c, register_filter_private). No other
        // call into C runs at the same time (init.rs).
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
    // SAFETY: C fills the parameters on its stack for this call (blosc2.c, pipeline_forward).
    let params = unsafe { &*params };
    let facts = (code, meta, (params.typesize, params.blocksize));
    // SAFETY: C passes a block, and scratch memory of the same length that belongs to this thread (blosc2.c,
    // pipeline_forward).
    let work = |call: &Call<'_>| unsafe {
        run(call, input, output, len, facts, |filter, block| filter.forward(block))
    };
    // SAFETY: the preparams come from `Slot::preparams`.
    unsafe { Call::of_compression(params, MISSING, work) }
}

unsafe extern "C" fn backward(
    input: *const u8,
    output: *mut u8,
    len: i32,
    meta: u8,
    params: *mut sys::blosc2_dparams,
    code: u8,
) -> c_int {
    // SAFETY: C fills the parameters on its stack for this call (blosc2.c, pipeline_backward).
    let params = unsafe { &*params };
    // The call has the block size.
    let facts = (code, meta, (params.typesize, 0));
    // SAFETY: C passes a block in scratch memory of this thread. The output has the same length: it is other scratch
    // memory of this thread, or the memory of the block in the destination (blosc2.c, pipeline_backward).
    let work = |call: &Call<'_>| unsafe {
        run(call, input, output, len, facts, |filter, block| filter.backward(block))
    };
    // SAFETY: the postparams come from `Slot::postparams`.
    unsafe { Call::of_decompression(params, MISSING, work) }
}

/// The result of a filter that C runs without a call, for internal data.
const MISSING: c_int = sys::BLOSC2_ERROR_FILTER_PIPELINE;

/// Runs a filter.
///
/// # Safety
/// The conditions of [`buffers`] hold; both lengths are `len`.
unsafe fn run(
    call: &Call<'_>,
    input: *const u8,
    output: *mut u8,
    len: i32,
    (code, meta, (typesize, blocksize)): (u8, u8, (i32, i32)),
    work: impl FnOnce(&dyn UserFilter, &mut FilterBlock<'_>) -> Result<(), BoxError>,
) -> c_int {
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
