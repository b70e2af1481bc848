//! The shuffle and bitshuffle filters as functions that write from one buffer to another.
//!
//! The functions are for formats that store shuffled bytes outside Blosc chunks, such as the codec pipelines of Zarr or
//! the filters of HDF5. They use the best instruction set of the processor; see
//! [`library::instruction_set`](crate::library::instruction_set).
//!
//! ```
//! use blosc2::raw;
//!
//! let items = [1, 2, 3, 4, 5, 6]; // Three items of two bytes.
//! let mut shuffled = [0; 6];
//! raw::shuffle(2, &items, &mut shuffled)?;
//! assert_eq!(shuffled, [1, 3, 5, 2, 4, 6]);
//!
//! let mut back = [0; 6];
//! raw::unshuffle(2, &shuffled, &mut back)?;
//! assert_eq!(back, items);
//! # Ok::<(), blosc2::Error>(())
//! ```

use std::ffi::c_void;

use blosc2_sys as sys;

use crate::chunk::init::init;
use crate::limits::MAX_CHUNK_LEN;
use crate::{Doing, ErrorKind, Reason, Result};

/// The largest typesize that the functions of this module accept, in bytes.
pub const MAX_TYPESIZE: usize = 256;

/// Groups the first bytes of all items, then the second bytes, and so on.
///
/// Bytes after the last whole item are copied unchanged. All of `target` is written. C: `blosc2_shuffle`.
///
/// # Errors
/// - [`ErrorKind::InvalidArgument`]: `typesize` is not from 1 to [`MAX_TYPESIZE`], or the target and the source
///   have different lengths;
/// - [`ErrorKind::TooLarge`]: the source has more than [`MAX_CHUNK_LEN`] bytes.
pub fn shuffle(typesize: usize, source: &[u8], target: &mut [u8]) -> Result<()> {
    // SAFETY: the function is one of the four functions that `run` accepts.
    unsafe { run(sys::blosc2_shuffle, 1, typesize, source, target).doing("shuffle bytes") }
}

/// Undoes [`shuffle`] with the same `typesize`.
///
/// The source can contain any bytes. C: `blosc2_unshuffle`.
///
/// # Errors
/// Fails with the errors of [`shuffle`].
pub fn unshuffle(typesize: usize, source: &[u8], target: &mut [u8]) -> Result<()> {
    // SAFETY: the function is one of the four functions that `run` accepts.
    unsafe { run(sys::blosc2_unshuffle, 1, typesize, source, target).doing("unshuffle bytes") }
}

/// Groups the lowest bits of all items, then the second-lowest bits, and so on.
///
/// Items are processed in groups of eight. Bytes after the last whole group are copied unchanged. All of `target` is
/// written. C: `blosc2_bitshuffle`.
///
/// # Errors
/// Fails with the errors of [`shuffle`], and with:
/// - [`ErrorKind::OutOfMemory`]: C cannot allocate its scratch memory, which has the length of the source.
///
/// ```
/// // The lowest bits of eight items, then their second ones.
/// let mut target = [0; 8];
/// blosc2::raw::bitshuffle(1, &[1, 1, 1, 1, 2, 2, 2, 2], &mut target)?;
/// assert_eq!(target, [0x0f, 0xf0, 0, 0, 0, 0, 0, 0]);
/// # Ok::<(), blosc2::Error>(())
/// ```
pub fn bitshuffle(typesize: usize, source: &[u8], target: &mut [u8]) -> Result<()> {
    // SAFETY: the function is one of the four functions that `run` accepts.
    unsafe { run(sys::blosc2_bitshuffle, 8, typesize, source, target).doing("bitshuffle bytes") }
}

/// Undoes [`bitshuffle`] with the same `typesize`.
///
/// The source can contain any bytes. C: `blosc2_bitunshuffle`.
///
/// # Errors
/// Fails with the errors of [`shuffle`], and with:
/// - [`ErrorKind::OutOfMemory`]: C cannot allocate its scratch memory, which has the length of the source.
pub fn bitunshuffle(typesize: usize, source: &[u8], target: &mut [u8]) -> Result<()> {
    // SAFETY: the function is one of the four functions that `run` accepts.
    unsafe {
        run(sys::blosc2_bitunshuffle, 8, typesize, source, target).doing("bitunshuffle bytes")
    }
}

/// One of the four C functions, which have the same signature.
type Function = unsafe extern "C" fn(i32, i32, *const c_void, *mut c_void) -> i32;

/// Runs one of the C functions. For fewer than `least` items, these functions only copy, so Rust copies instead.
///
/// # Safety
/// The function is one of the four C functions above.
unsafe fn run(
    function: Function,
    least: usize,
    typesize: usize,
    source: &[u8],
    target: &mut [u8],
) -> Result<(), Reason> {
    let invalid = |detail: String| Reason::new(ErrorKind::InvalidArgument, detail);
    let (found, expected) = (target.len(), source.len());
    if found != expected {
        return Err(invalid(format!("the target has {found} bytes, expected {expected}")));
    }
    let size = match i32::try_from(typesize) {
        Ok(size) if (1..=MAX_TYPESIZE).contains(&typesize) => size,
        _ => {
            let detail = format!("the typesize has to be from 1 to {MAX_TYPESIZE}, got {typesize}");
            return Err(invalid(detail));
        }
    };
    let len = match i32::try_from(expected) {
        Ok(len) if expected <= MAX_CHUNK_LEN => len,
        _ => {
            let detail = format!("the limit is {MAX_CHUNK_LEN} bytes, got {expected}");
            return Err(Reason::new(ErrorKind::TooLarge, detail));
        }
    };
    if expected < least * typesize {
        // In this case, C's bitshuffle would allocate 0 bytes, and could interpret a null pointer as a failure.
        target.copy_from_slice(source);
        return Ok(());
    }
    init()?;
    // SAFETY: the library is initialized. The function is one of the four functions in shuffle.c. It accepts this
    // typesize, reads `len` bytes of the source, and writes `len` bytes of the target. Both have `len` bytes. They do
    // not overlap, because they are borrowed separately.
    let code = unsafe { function(size, len, source.as_ptr().cast(), target.as_mut_ptr().cast()) };
    if code == len {
        return Ok(());
    }
    // The only possible cause is that there is not enough memory.
    let detail = format!("C-Blosc2 cannot allocate {len} bytes (code {code})");
    Err(Reason::new(ErrorKind::OutOfMemory, detail))
}
