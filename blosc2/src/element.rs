//! Types that an array can hold.

use std::alloc::Layout;

use crate::{Error, ErrorKind, Result};

/// A type whose values are plain bytes, with the NumPy dtype that describes them.
///
/// # Safety
/// The type has a size above zero, every bit pattern of that size is a valid value, no byte of a value
/// is padding, and [`DTYPE`](Element::DTYPE) describes just such items: the same size, kind and byte
/// order.
pub unsafe trait Element: Copy + Send + Sync + 'static {
    /// The dtype as NumPy writes it, such as `<f4`; its byte order is this machine's.
    const DTYPE: &'static str;
}

macro_rules! elements {
    ($($type:ty => $little:literal, $big:literal;)*) => {$(
        // SAFETY: primitive numbers have no padding and no invalid bit pattern, and the dtype is
        // that of the same size and kind in this machine's byte order.
        unsafe impl Element for $type {
            const DTYPE: &'static str = if cfg!(target_endian = "little") { $little } else { $big };
        }
    )*};
}

elements! {
    u8 => "|u1", "|u1";
    i8 => "|i1", "|i1";
    u16 => "<u2", ">u2";
    i16 => "<i2", ">i2";
    u32 => "<u4", ">u4";
    i32 => "<i4", ">i4";
    u64 => "<u8", ">u8";
    i64 => "<i8", ">i8";
    f32 => "<f4", ">f4";
    f64 => "<f8", ">f8";
}

/// The bytes of a slice.
pub(crate) fn as_bytes<T: Element>(items: &[T]) -> &[u8] {
    // SAFETY: an Element has no padding, so all its bytes are initialised; the length is in bytes.
    unsafe { std::slice::from_raw_parts(items.as_ptr().cast(), size_of_val(items)) }
}

/// The bytes of a slice, to be written.
pub(crate) fn as_bytes_mut<T: Element>(items: &mut [T]) -> &mut [u8] {
    let len = size_of_val(items);
    // SAFETY: an Element has no padding, and any bytes are a valid value; the length is in bytes.
    unsafe { std::slice::from_raw_parts_mut(items.as_mut_ptr().cast(), len) }
}

/// A vector of zero items, taken from the system without touching them.
///
/// There may be more than memory holds: what a file says is no reason to abort.
pub(crate) fn zeroed<T: Element>(len: usize, doing: &str) -> Result<Vec<T>> {
    if len == 0 {
        return Ok(Vec::new());
    }
    let size = len.saturating_mul(size_of::<T>());
    let out_of_memory = || Error::new(ErrorKind::OutOfMemory, doing, format_args!("{size} bytes"));
    let layout = Layout::array::<T>(len).map_err(|_| out_of_memory())?;
    // SAFETY: the layout has a size above zero, as an Element has.
    let start = unsafe { std::alloc::alloc_zeroed(layout) };
    if start.is_null() {
        return Err(out_of_memory());
    }
    // SAFETY: the memory comes from the global allocator with the layout of `len` items, and zeros
    // are a valid value of an Element.
    Ok(unsafe { Vec::from_raw_parts(start.cast(), len, len) })
}
