//! The hazards of `blosc2/SAFETY.md`, each shown twice under one name.
//!
//! `upstream::NAME` is C code that calls the library as any program might, and says whether that
//! went wrong. Where a patch of blosc2-sys cures the fault it passes here; where Rust stands before
//! the call it cannot, and is ignored. `safe::NAME` does the same through the API of `blosc2`.
//! `cargo xtask hazards` runs every one in a process of its own, the first also on unhardened
//! sources, where each has to fail.

// A box of one dimension is one range.
#![allow(clippy::single_range_in_vec_init)]

use std::ffi::{CStr, c_char};

/// Declares the C functions of a topic, and makes a test of each.
macro_rules! upstream {
    ($($(#[$attribute:meta])* $name:ident,)*) => {
        mod upstream {
            $(
                #[test]
                $(#[$attribute])*
                fn $name() {
                    unsafe extern "C" {
                        fn $name() -> *const std::ffi::c_char;
                    }
                    crate::start();
                    // SAFETY: the function is that of the C file beside this one. It takes nothing
                    // and gives null or a static string.
                    crate::judge(unsafe { $name() });
                }
            )*
        }
    };
}

mod arrays;
mod chunks;
mod frames;

/// Starts the library as the crate does: once.
fn start() {
    assert!(blosc2::Codec::Lz4.is_available());
}

/// Takes what a C function found wrong.
fn judge(wrong: *const c_char) {
    if !wrong.is_null() {
        // SAFETY: the C functions give static strings.
        panic!("{}", unsafe { CStr::from_ptr(wrong) }.to_string_lossy());
    }
}
