//! Functions of the libraries of codecs that this crate links for C-Blosc2.

use core::ffi::{c_char, c_int};

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
}
