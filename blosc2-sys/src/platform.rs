//! Handwritten types whose layout differs between platforms. `tests/abi.rs` of the workspace compares these layouts
//! with the layouts of the C compiler.

#[cfg(windows)]
use core::ffi::c_void;
use core::ffi::{c_char, c_int};

/// C's `FILE`.
pub type FILE = libc::FILE;

/// The type of a timestamp: `struct timespec`, or `LARGE_INTEGER` on Windows.
#[cfg(not(windows))]
#[expect(non_camel_case_types, reason = "C's name")]
pub type blosc_timestamp_t = libc::timespec;

/// The type of a timestamp: `struct timespec`, or `LARGE_INTEGER` on Windows.
#[cfg(windows)]
#[repr(C)]
#[derive(Debug, Copy, Clone)]
#[expect(non_snake_case, reason = "C's name")]
pub struct blosc_timestamp_t {
    /// The counter.
    pub QuadPart: i64,
}

/// A file opened through standard I/O.
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct blosc2_stdio_file {
    /// The C stream.
    pub file: *mut FILE,
}

/// A memory-mapped file: its options, and the state of the mapping that C stores.
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct blosc2_stdio_mmap {
    /// The mode: `r`, `r+`, `w+` or `c`.
    pub mode: *const c_char,
    /// Initial size of the mapping in bytes; only used in the modes that write.
    pub initial_mapping_size: usize,
    /// Whether C frees this structure.
    pub needs_free: bool,
    /// Start of the mapping.
    pub addr: *mut c_char,
    /// Path of the file.
    pub urlpath: *mut c_char,
    /// Size of the file in bytes.
    pub file_size: usize,
    /// Size of the mapping in bytes.
    pub mapping_size: usize,
    /// Whether changes stay in memory (mode `c`).
    pub is_memory_only: bool,
    /// The C stream.
    pub file: *mut FILE,
    /// The file descriptor.
    pub fd: c_int,
    /// Access rights of the pages.
    pub access_flags: i64,
    /// Flags of the mapping.
    pub map_flags: i64,
    /// Handle of the mapping.
    #[cfg(windows)]
    pub mmap_handle: *mut c_void,
}
