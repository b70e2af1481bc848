//! Rust versions of the inline functions and static constants of the C headers. C libraries do not export these
//! functions and constants.

use core::ffi::{CStr, c_char, c_int};
use core::ptr;

use crate::bindings::*;
use crate::platform::blosc2_stdio_mmap;

/// Returns C's `BLOSC2_CPARAMS_DEFAULTS`: BloscLZ level 5 with shuffle, typesize 8, one thread.
pub const fn blosc2_cparams_defaults() -> blosc2_cparams {
    blosc2_cparams {
        compcode: BLOSC_BLOSCLZ as u8,
        compcode_meta: 0,
        clevel: 5,
        use_dict: 0,
        typesize: 8,
        nthreads: 1,
        blocksize: 0,
        splitmode: BLOSC_FORWARD_COMPAT_SPLIT,
        schunk: ptr::null_mut(),
        filters: [0, 0, 0, 0, 0, BLOSC_SHUFFLE as u8],
        filters_meta: [0; BLOSC2_MAX_FILTERS as usize],
        prefilter: None,
        preparams: ptr::null_mut(),
        tuner_params: ptr::null_mut(),
        tuner_id: 0,
        instr_codec: false,
        codec_params: ptr::null_mut(),
        filter_params: [ptr::null_mut(); BLOSC2_MAX_FILTERS as usize],
    }
}

/// Returns C's `BLOSC2_DPARAMS_DEFAULTS`: one thread, typesize 8, no postfilter.
pub const fn blosc2_dparams_defaults() -> blosc2_dparams {
    blosc2_dparams {
        nthreads: 1,
        schunk: ptr::null_mut(),
        postfilter: None,
        postparams: ptr::null_mut(),
        typesize: 8,
    }
}

/// Returns C's `BLOSC2_STORAGE_DEFAULTS`: in memory, with a separate buffer for each chunk.
pub const fn blosc2_storage_defaults() -> blosc2_storage {
    blosc2_storage {
        contiguous: false,
        urlpath: ptr::null_mut(),
        cparams: ptr::null_mut(),
        dparams: ptr::null_mut(),
        io: ptr::null_mut(),
    }
}

/// Returns C's `BLOSC2_IO_DEFAULTS`: the file system, without parameters.
pub const fn blosc2_io_defaults() -> blosc2_io {
    blosc2_io {
        id: BLOSC2_IO_FILESYSTEM as u8,
        name: c"filesystem".as_ptr(),
        params: ptr::null_mut(),
    }
}

/// Returns C's `BLOSC2_STDIO_PARAMS_DEFAULTS`: no locking.
pub const fn blosc2_stdio_params_defaults() -> blosc2_stdio_params {
    blosc2_stdio_params { locking: false }
}

/// Returns C's `BLOSC2_STDIO_MMAP_DEFAULTS`: read-only, with an initial mapping of 1 GiB when writing.
pub const fn blosc2_stdio_mmap_defaults() -> blosc2_stdio_mmap {
    blosc2_stdio_mmap {
        mode: c"r".as_ptr(),
        initial_mapping_size: 1 << 30,
        needs_free: false,
        addr: ptr::null_mut(),
        urlpath: ptr::null_mut(),
        file_size: 0,
        mapping_size: 0,
        is_memory_only: false,
        file: ptr::null_mut(),
        fd: -1,
        access_flags: -1,
        map_flags: -1,
        #[cfg(windows)]
        mmap_handle: usize::MAX as *mut core::ffi::c_void,
    }
}

/// Returns the index of a metalayer, or a negative error code. C's inline function `blosc2_meta_exists`.
///
/// # Safety
/// `schunk` is null or a live super-chunk of this library that no other thread changes during the call, and `name`
/// is a string that ends in a NUL byte.
pub unsafe fn blosc2_meta_exists(schunk: *mut blosc2_schunk, name: *const c_char) -> c_int {
    // SAFETY: the caller vouches for both pointers.
    let (schunk, name) = unsafe { (schunk.as_ref(), CStr::from_ptr(name)) };
    let Some(schunk) = schunk else {
        return BLOSC2_ERROR_INVALID_PARAM;
    };
    if name.to_bytes().len() > BLOSC2_METALAYER_NAME_MAXLEN as usize {
        return BLOSC2_ERROR_INVALID_PARAM;
    }
    let layers = schunk.metalayers.iter().take(usize::from(schunk.nmetalayers));
    for (index, &layer) in layers.enumerate() {
        // SAFETY: the first `nmetalayers` entries of a live super-chunk point to metalayers whose
        // names end in a NUL byte (schunk.c, blosc2_meta_add; frame.c, get_meta_from_header).
        if unsafe { CStr::from_ptr((*layer).name) } == name {
            return index as c_int;
        }
    }
    BLOSC2_ERROR_NOT_FOUND
}

/// Copies the content of a metalayer to memory allocated by C's `malloc`. C's inline function `blosc2_meta_get`.
///
/// Returns the index of the metalayer, or a negative error code. `*content` is null if the content is empty; otherwise
/// the caller has to free `*content` with C's `free`.
///
/// # Safety
/// The conditions of [`blosc2_meta_exists`] hold, and `content` and `content_len` are null or writable.
pub unsafe fn blosc2_meta_get(
    schunk: *mut blosc2_schunk,
    name: *const c_char,
    content: *mut *mut u8,
    content_len: *mut i32,
) -> c_int {
    if schunk.is_null() || name.is_null() || content.is_null() || content_len.is_null() {
        return BLOSC2_ERROR_INVALID_PARAM;
    }
    // SAFETY: the caller vouches for the pointers, and they are not null.
    let index = unsafe { blosc2_meta_exists(schunk, name) };
    let Ok(position) = usize::try_from(index) else {
        return index;
    };
    // SAFETY: blosc2_meta_exists returns the index of an existing metalayer.
    let layer = unsafe { &*(&(*schunk).metalayers)[position] };
    let Ok(len) = usize::try_from(layer.content_len) else {
        return BLOSC2_ERROR_DATA;
    };
    let (copy, code) = if len == 0 {
        (ptr::null_mut(), index)
    } else if layer.content.is_null() {
        (ptr::null_mut(), BLOSC2_ERROR_DATA)
    } else {
        // SAFETY: malloc has no precondition; the result is checked below.
        let copy: *mut u8 = unsafe { libc::malloc(len) }.cast();
        if copy.is_null() {
            (copy, BLOSC2_ERROR_MEMORY_ALLOC)
        } else {
            // SAFETY: both are `len` bytes long, and the copy is new.
            unsafe { ptr::copy_nonoverlapping(layer.content, copy, len) };
            (copy, index)
        }
    };
    // SAFETY: the caller guarantees that both are writable.
    unsafe {
        *content = copy;
        *content_len = if copy.is_null() { 0 } else { layer.content_len };
    }
    code
}

/// Parses the metalayer of an array. C's inline function `b2nd_deserialize_meta_inline`. This function calls the
/// exported function [`b2nd_deserialize_meta`], which does the same.
///
/// # Safety
/// `smeta` has `smeta_len` bytes, `ndim` is writable, each of the three shapes has room for `B2ND_MAX_DIM` items, and
/// `dtype` and `dtype_format` are null or writable. [`b2nd_deserialize_meta`] has the same conditions.
#[expect(clippy::too_many_arguments, reason = "C's signature")]
pub unsafe fn b2nd_deserialize_meta_inline(
    smeta: *const u8,
    smeta_len: i32,
    ndim: *mut i8,
    shape: *mut i64,
    chunkshape: *mut i32,
    blockshape: *mut i32,
    dtype: *mut *mut c_char,
    dtype_format: *mut i8,
) -> c_int {
    // SAFETY: the caller guarantees the same conditions.
    unsafe {
        b2nd_deserialize_meta(
            smeta,
            smeta_len,
            ndim,
            shape,
            chunkshape,
            blockshape,
            dtype,
            dtype_format,
        )
    }
}
