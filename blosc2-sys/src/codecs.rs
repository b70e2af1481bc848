//! Functions of the libraries of codecs that this crate links for C-Blosc2.

use core::ffi::{c_char, c_int, c_void};

#[cfg(feature = "zstd")]
pub use zstd_sys::{ZSTD_DCtx, ZSTD_createDCtx, ZSTD_decompressDCtx, ZSTD_freeDCtx};

unsafe extern "C" {
    /// Decompresses the start of an LZ4 block (lz4.h). Returns the number of bytes written, or a negative number if the
    /// block is invalid.
    ///
    /// # Safety
    /// - `source` has `source_len` readable bytes;
    /// - `target` has `capacity` writable bytes, which do not overlap `source`;
    /// - `wanted` is at most `capacity`.
    pub fn LZ4_decompress_safe_partial(
        source: *const c_char,
        target: *mut c_char,
        source_len: c_int,
        wanted: c_int,
        capacity: c_int,
    ) -> c_int;

    /// Decompresses an LZ4 block (lz4.h). Returns the number of bytes written, or a negative number if the block is
    /// invalid.
    ///
    /// # Safety
    /// - `source` has `source_len` readable bytes;
    /// - `target` has `capacity` writable bytes, which do not overlap `source`.
    pub fn LZ4_decompress_safe(
        source: *const c_char,
        target: *mut c_char,
        source_len: c_int,
        capacity: c_int,
    ) -> c_int;

    /// Decompresses a BloscLZ stream (blosclz.h). Returns the number of bytes written, or 0 if the stream is invalid.
    ///
    /// # Safety
    /// - `source` has `source_len` readable bytes;
    /// - `target` has `capacity` writable bytes, which do not overlap `source`.
    #[cfg(blosc2_hardened)]
    #[link_name = "cblosc2_blosclz_decompress"]
    pub fn blosclz_decompress(
        source: *const c_void,
        source_len: c_int,
        target: *mut c_void,
        capacity: c_int,
    ) -> c_int;
}

/// Reports that the stream is invalid, because an installed library does not export its function.
///
/// # Safety
/// The function has no conditions.
#[cfg(not(blosc2_hardened))]
pub unsafe fn blosclz_decompress(_: *const c_void, _: c_int, _: *mut c_void, _: c_int) -> c_int {
    0
}
