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
use std::path::Path;
use std::process::Command;
use std::{env, fs};

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
mod callbacks;
mod chunks;
#[path = "../common/mod.rs"]
mod common;
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

/// `blosc2/SAFETY.md` names every hazard that is shown, whether it is shown through the safe API too,
/// and every patch.
#[test]
fn safety_md_says_what_there_is() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("blosc2/SAFETY.md")).unwrap();
    let patches = fs::read_dir(root.join("blosc2-sys/build/patches")).unwrap();
    for patch in patches {
        let name = patch.unwrap().file_name().into_string().unwrap();
        let name = name[3..].strip_suffix(".patch").unwrap();
        assert!(text.contains(name), "the patch {name} is not there");
    }
    let program = env::current_exe().unwrap();
    let list = Command::new(program).arg("--list").output().unwrap();
    let list = String::from_utf8(list.stdout).unwrap();
    let tests: Vec<&str> = list.lines().filter_map(|line| line.strip_suffix(": test")).collect();
    let mut shown = 0;
    for test in &tests {
        let Some((topic, name)) = test.split_once("::upstream::") else {
            continue;
        };
        let answered = tests.contains(&format!("{topic}::safe::{name}").as_str());
        let mark = format!("`{name}` ✓");
        assert!(text.contains(&format!("`{name}`")), "{name} is not there");
        assert_eq!(text.contains(&mark), answered, "the mark of {name}");
        shown += 1;
    }
    let named = text.matches('`').count() / 2;
    assert!(shown > 100 && named > shown, "{shown} shown");
}
