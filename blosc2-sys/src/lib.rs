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

/// Whether the library was built from source with this crate's patches (`build/patches`).
///
/// `false` with the feature `system`: an installed library has upstream's faults, and callers have
/// to work around them.
pub const HARDENED: bool = cfg!(blosc2_hardened);
