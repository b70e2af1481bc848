#![doc = include_str!("../README.md")]
#![no_std]

#[cfg(not(feature = "bindgen"))]
#[rustfmt::skip]
#[expect(
    missing_docs,
    non_camel_case_types,
    reason = "generated from the C headers, whose names they keep"
)]
mod bindings;

#[cfg(feature = "bindgen")]
#[expect(
    missing_docs,
    non_camel_case_types,
    reason = "generated from the C headers, whose names they keep"
)]
mod bindings {
    include!(concat!(env!("OUT_DIR"), "/bindings.rs"));
}

pub mod codecs;
mod inline;
mod platform;

pub use bindings::*;
pub use inline::*;
pub use platform::*;

// These crates link the codecs that the C code calls.
#[cfg(feature = "zlib")]
use libdeflate_sys as _;
#[cfg(feature = "zlib-ng")]
use libz_ng_sys as _;
use lz4_sys as _;
#[cfg(feature = "zfp")]
use zfp_sys as _;
#[cfg(feature = "zstd")]
use zstd_sys as _;

/// Loads the plugin of a codec: a shared library with the implementation of the codec. Returns 0 or a negative error
/// code.
///
/// No other function of this crate loads plugins: before this call, compression and decompression with the codec fail.
/// An installed library (feature `system`) loads plugins without this call; with such a library, this function returns
/// an error.
///
/// # Safety
/// - The loaded library follows the plugin interface of C-Blosc2. This is the library `libblosc2_NAME.so`, or, if it is
///   not found, the library that the program `python` in `PATH` locates.
/// - During the call, no other thread loads a codec, and no other thread compresses or decompresses with this codec.
#[cfg(feature = "dynamic-plugins")]
pub unsafe fn load_codec(code: u8) -> core::ffi::c_int {
    #[cfg(not(blosc2_hardened))]
    {
        let _ = code;
        BLOSC2_ERROR_CODEC_SUPPORT
    }
    #[cfg(blosc2_hardened)]
    {
        unsafe extern "C" {
            fn blosc2_sys_load_codec(code: u8) -> core::ffi::c_int;
        }
        // SAFETY: the function (build/c/plugins.c) accepts any code. The caller guarantees the other conditions.
        unsafe { blosc2_sys_load_codec(code) }
    }
}

/// Sets whether a context for compression writes chunks with the 16-byte header of Blosc1, so that Blosc1 can read
/// them, or chunks with the header of Blosc2. Returns 0 or a negative error code.
///
/// With the header of Blosc1:
/// - `blosc2_compress_ctx` accepts codecs from [`BLOSC_BLOSCLZ`] to [`BLOSC_ZSTD`] without a dictionary, and at most
///   one filter: [`BLOSC_SHUFFLE`] without a meta value, or [`BLOSC_BITSHUFFLE`]. For other parameters, it returns
///   `BLOSC2_ERROR_INVALID_PARAM`.
/// - `blosc2_vlcompress_ctx` always returns `BLOSC2_ERROR_INVALID_PARAM`, since Blosc1 has no variable-length blocks.
/// - A destination that is 16 bytes longer than the source is always large enough.
///
/// With an installed library (feature `system`), which does not support this, the function returns an error.
///
/// # Safety
/// - `context` comes from `blosc2_create_cctx`, has not been freed, and is not used by another call at the same time.
pub unsafe fn set_blosc1(context: *mut blosc2_context, blosc1: bool) -> core::ffi::c_int {
    #[cfg(not(blosc2_hardened))]
    {
        let _ = (context, blosc1);
        BLOSC2_ERROR_FAILURE
    }
    #[cfg(blosc2_hardened)]
    {
        unsafe extern "C" {
            fn blosc2_sys_set_blosc1(context: *mut blosc2_context, blosc1: bool);
        }
        // SAFETY: the function (build/c/context.c) sets a field of the context, which the caller may change.
        unsafe { blosc2_sys_set_blosc1(context, blosc1) };
        BLOSC2_ERROR_SUCCESS
    }
}

/// Sets the typesize and the block size, in bytes, that a context for compression uses in its next call. A block size
/// of 0 means an automatic block size. Returns 0 or a negative error code.
///
/// Without this function, a context that has compressed before uses the sizes of its previous call. These sizes can
/// differ from the parameters of the context.
///
/// With an installed library (feature `system`), which does not support this, the function returns an error.
///
/// # Safety
/// - `context` comes from `blosc2_create_cctx`, has not been freed, and is not used by another call at the same time.
/// - The sizes are valid for `blosc2_create_cctx`.
pub unsafe fn set_sizes(
    context: *mut blosc2_context,
    typesize: i32,
    blocksize: i32,
) -> core::ffi::c_int {
    #[cfg(not(blosc2_hardened))]
    {
        let _ = (context, typesize, blocksize);
        BLOSC2_ERROR_FAILURE
    }
    #[cfg(blosc2_hardened)]
    {
        unsafe extern "C" {
            fn blosc2_sys_set_sizes(context: *mut blosc2_context, typesize: i32, blocksize: i32);
        }
        // SAFETY: the function (build/c/context.c) sets fields of the context, which the caller may change.
        unsafe { blosc2_sys_set_sizes(context, typesize, blocksize) };
        BLOSC2_ERROR_SUCCESS
    }
}

/// Returns the instruction set that shuffle and bitshuffle use on this processor: `avx512`, `avx2`, `sse2`, `neon`,
/// `altivec` or `generic`.
///
/// With `avx512`, shuffle uses AVX2; with `neon`, bitshuffle uses generic code. Returns `None` with an installed
/// library (feature `system`), because such a library does not report the instruction set.
///
/// # Safety
/// - No other thread makes the first call to the library at the same time. The first call chooses the instruction set,
///   without synchronization.
pub unsafe fn kernels() -> Option<&'static core::ffi::CStr> {
    #[cfg(not(blosc2_hardened))]
    {
        None
    }
    #[cfg(blosc2_hardened)]
    {
        unsafe extern "C" {
            fn blosc2_sys_kernels() -> *const core::ffi::c_char;
        }
        // SAFETY: the function (build/patches, kernels) returns a string literal.
        Some(unsafe { core::ffi::CStr::from_ptr(blosc2_sys_kernels()) })
    }
}

/// Whether the library was built from source with the patches of this crate (`build/patches`).
///
/// `false` with the feature `system`, or if `BLOSC2_SYS_UNHARDENED` is set at build time. The library then has the
/// faults of upstream's C-Blosc2, and callers have to work around these faults.
pub const HARDENED: bool = cfg!(blosc2_hardened);
