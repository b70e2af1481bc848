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

/// Whether the library was built from source with this crate's safety edits (`build/harden.rs`).
///
/// `false` with the feature `system`: an installed library has upstream's faults, and callers have
/// to work around them.
pub const HARDENED: bool = cfg!(blosc2_hardened);
