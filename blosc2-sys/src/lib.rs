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

mod inline;
mod platform;

pub use bindings::*;
pub use inline::*;
pub use platform::*;

// The codecs that the C code calls: these crates link them.
#[cfg(feature = "zlib")]
use libdeflate_sys as _;
#[cfg(feature = "zlib-ng")]
use libz_ng_sys as _;
use lz4_sys as _;
#[cfg(feature = "zfp")]
use zfp_sys as _;
#[cfg(feature = "zstd")]
use zstd_sys as _;

/// Loads the plugin of a codec that C-Blosc2 knows by name only; gives 0 or an error code.
///
/// This is the one place that loads plugins: chunks and parameters that name such a codec find it
/// missing until then. An installed library (feature `system`) loads them as it likes, and this gives
/// an error.
///
/// # Safety
/// - The library `libblosc2_NAME.so`, or else the one that the program `python` in `PATH` names, follows
///   the interface of C-Blosc2's plugins.
/// - No other thread loads a codec, or compresses or decompresses with this one, meanwhile.
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
        // SAFETY: the function (build/c/plugins.c) takes any code; what it does besides is what
        // the caller promises.
        unsafe { blosc2_sys_load_codec(code) }
    }
}

/// Lets a context for compression write chunks with the header of Blosc1, of 16 bytes, which that
/// library reads, or with that of Blosc2 again; gives 0 or an error code.
///
/// `blosc2_compress_ctx` gives `BLOSC2_ERROR_INVALID_PARAM` then when the header has no place for the
/// parameters: there may be one filter, [`BLOSC_SHUFFLE`] without a meta value or [`BLOSC_BITSHUFFLE`], a
/// codec from [`BLOSC_BLOSCLZ`] to [`BLOSC_ZSTD`], and no dictionary. So does `blosc2_vlcompress_ctx`,
/// since Blosc1 has no blocks of variable lengths. 16 bytes more than the source are room enough.
///
/// An installed library (feature `system`) cannot do it, and this gives an error.
///
/// # Safety
/// - `context` comes from `blosc2_create_cctx`, has not been freed, and is not in use meanwhile.
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
        // SAFETY: the function (build/c/context.c) sets a field of the context, which is the
        // caller's to change.
        unsafe { blosc2_sys_set_blosc1(context, blosc1) };
        BLOSC2_ERROR_SUCCESS
    }
}

/// Sets the sizes of items and blocks that a context for compression uses at its next call, 0 for automatic
/// blocks; gives 0 or an error code.
///
/// Without this call they are those that the call before has used, whatever was asked for when the
/// context was made.
///
/// An installed library (feature `system`) cannot do it, and this gives an error.
///
/// # Safety
/// - `context` comes from `blosc2_create_cctx`, has not been freed, and is not in use meanwhile.
/// - The sizes are such as `blosc2_create_cctx` takes.
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
        // SAFETY: the function (build/c/context.c) sets fields of the context, which is the
        // caller's to change.
        unsafe { blosc2_sys_set_sizes(context, typesize, blocksize) };
        BLOSC2_ERROR_SUCCESS
    }
}

/// The instruction set whose shuffle and bitshuffle run on this processor: `avx512`, `avx2`, `sse2`,
/// `neon`, `altivec` or `generic`.
///
/// `None` with an installed library (feature `system`), which does not tell.
///
/// # Safety
/// - No other thread calls the library for the first time meanwhile: its choice is not synchronised.
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
        // SAFETY: the function (build/patches, kernels) gives a string literal.
        Some(unsafe { core::ffi::CStr::from_ptr(blosc2_sys_kernels()) })
    }
}

/// Whether the library was built from source with this crate's patches (`build/patches`).
///
/// `false` with the feature `system`: an installed library has upstream's faults, and callers have
/// to work around them.
pub const HARDENED: bool = cfg!(blosc2_hardened);
