//! The two zlib functions that C-Blosc2 calls, served by zlib-rs under names of our own, so that
//! they cannot collide with a zlib elsewhere in the program.

use core::ffi::{c_char, c_int, c_uchar, c_ulong};

#[unsafe(no_mangle)]
unsafe extern "C" fn blosc2_sys_zlib_compress2(
    dest: *mut c_uchar,
    dest_len: *mut c_ulong,
    source: *const c_uchar,
    source_len: c_ulong,
    level: c_int,
) -> c_int {
    // SAFETY: same contract as zlib's `compress2`; blosc2.c passes a destination of `*dest_len`
    // bytes and a source of `source_len` bytes (`zlib_wrap_compress`).
    unsafe { libz_rs_sys::compress2(dest, dest_len, source, source_len, level) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn blosc2_sys_zlib_uncompress(
    dest: *mut c_uchar,
    dest_len: *mut c_ulong,
    source: *const c_uchar,
    source_len: c_ulong,
) -> c_int {
    // SAFETY: same contract as zlib's `uncompress`; blosc2.c passes a destination of `*dest_len`
    // bytes and a source of `source_len` bytes (`zlib_wrap_decompress`).
    unsafe { libz_rs_sys::uncompress(dest, dest_len, source, source_len) }
}

#[unsafe(no_mangle)]
extern "C" fn blosc2_sys_zlib_version() -> *const c_char {
    libz_rs_sys::zlibVersion()
}
