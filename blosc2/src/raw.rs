//! The filters shuffle and bitshuffle alone, from one buffer to another.
//!
//! For formats that store shuffled bytes without Blosc around them, such as a codec pipeline of Zarr or
//! a filter of HDF5. They run the kernels of the instruction set that was chosen for this machine.
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

use crate::init::init;
use crate::limits::MAX_CHUNK_LEN;
use crate::{Error, ErrorKind, Result};

/// The largest item that these functions take, in bytes.
pub const MAX_TYPESIZE: usize = 256;

/// Groups the first bytes of all items, then the second ones, and so on.
///
/// The bytes after the last whole item stay where they are. All of `target` is written. C's
/// `blosc2_shuffle`.
///
/// # Errors
/// - [`ErrorKind::InvalidArgument`]: a `typesize` that is not 1 to [`MAX_TYPESIZE`], or a target of
///   another length than the source;
/// - [`ErrorKind::TooLarge`]: more than [`MAX_CHUNK_LEN`] bytes.
pub fn shuffle(typesize: usize, source: &[u8], target: &mut [u8]) -> Result<()> {
    run(sys::blosc2_shuffle, "shuffle bytes", 1, typesize, source, target)
}

/// Undoes [`shuffle`] for the same `typesize`.
///
/// Any bytes can be given. C's `blosc2_unshuffle`.
///
/// # Errors
/// As [`shuffle`].
pub fn unshuffle(typesize: usize, source: &[u8], target: &mut [u8]) -> Result<()> {
    run(sys::blosc2_unshuffle, "unshuffle bytes", 1, typesize, source, target)
}

/// Groups the lowest bits of all items, then their second bits, and so on.
///
/// Items are taken eight at a time: what follows the last eight stays where it is. All of `target` is
/// written. C's `blosc2_bitshuffle`.
///
/// # Errors
/// As [`shuffle`], and [`ErrorKind::OutOfMemory`]: C takes as much memory again while it works.
///
/// ```
/// // The lowest bits of eight items, then their second ones.
/// let mut target = [0; 8];
/// blosc2::raw::bitshuffle(1, &[1, 1, 1, 1, 2, 2, 2, 2], &mut target)?;
/// assert_eq!(target, [0x0f, 0xf0, 0, 0, 0, 0, 0, 0]);
/// # Ok::<(), blosc2::Error>(())
/// ```
pub fn bitshuffle(typesize: usize, source: &[u8], target: &mut [u8]) -> Result<()> {
    run(sys::blosc2_bitshuffle, "bitshuffle bytes", 8, typesize, source, target)
}

/// Undoes [`bitshuffle`] for the same `typesize`.
///
/// Any bytes can be given. C's `blosc2_bitunshuffle`.
///
/// # Errors
/// As [`bitshuffle`].
pub fn bitunshuffle(typesize: usize, source: &[u8], target: &mut [u8]) -> Result<()> {
    run(sys::blosc2_bitunshuffle, "bitunshuffle bytes", 8, typesize, source, target)
}

/// One of the four functions of C, which have the same shape.
type Function = unsafe extern "C" fn(i32, i32, *const c_void, *mut c_void) -> i32;

/// Runs a function that moves nothing where there are fewer than `least` items.
fn run(
    function: Function,
    doing: &str,
    least: usize,
    typesize: usize,
    source: &[u8],
    target: &mut [u8],
) -> Result<()> {
    let invalid = |detail: String| Error::new(ErrorKind::InvalidArgument, doing, detail);
    let (found, expected) = (target.len(), source.len());
    if found != expected {
        return Err(invalid(format!("the target has {found} bytes, expected {expected}")));
    }
    let size = match i32::try_from(typesize) {
        Ok(size) if (1..=MAX_TYPESIZE).contains(&typesize) => size,
        _ => {
            let detail = format!("the typesize has to be 1 to {MAX_TYPESIZE}, got {typesize}");
            return Err(invalid(detail));
        }
    };
    let len = match i32::try_from(expected) {
        Ok(len) if expected <= MAX_CHUNK_LEN => len,
        _ => {
            let detail = format!("there can be {MAX_CHUNK_LEN} bytes, got {expected}");
            return Err(Error::new(ErrorKind::TooLarge, doing, detail));
        }
    };
    if expected < least * typesize {
        // C's bitshuffle asks for memory of no bytes then, and may take what it gets for a failure.
        target.copy_from_slice(source);
        return Ok(());
    }
    init()?;
    // SAFETY: the library is initialised. The function (shuffle.c) takes this typesize, reads `len`
    // bytes of the source and writes `len` of the target; both are as long, and borrowed apart from
    // each other, so that they do not overlap.
    let code = unsafe { function(size, len, source.as_ptr().cast(), target.as_mut_ptr().cast()) };
    if code == len {
        return Ok(());
    }
    // Nothing but memory can be missing.
    let detail = format!("C-Blosc2 found no memory for {len} bytes (code {code})");
    Err(Error::new(ErrorKind::OutOfMemory, doing, detail))
}
