//! The hazards of `blosc2/SAFETY.md`, each tested twice under one name.
//!
//! `upstream::NAME` is C code that calls the library as a program could, and reports whether that failed. If a patch of
//! blosc2-sys corrects the fault, the test passes here. If Rust prevents the call instead, the test cannot pass and is
//! ignored. `safe::NAME` does the same through the API of `blosc2`. `cargo xtask hazards` runs each test in its own
//! process. It runs the first kind on unhardened sources too, where each test has to fail.

// The C code uses POSIX functions.
#![cfg(unix)]
// A box with one axis is one range.
#![allow(clippy::single_range_in_vec_init)]

/// Declares the C functions of a topic, and defines a test for each of them.
macro_rules! upstream {
    ($($(#[$attribute:meta])* $name:ident,)*) => {
        // Many of them write or read frames, which C cannot do on big-endian processors: see `C_READS_FRAMES`.
        #[cfg(target_endian = "little")]
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

/// Panics with the fault that a C function reports, if any.
#[cfg(target_endian = "little")]
fn judge(wrong: *const std::ffi::c_char) {
    if !wrong.is_null() {
        // SAFETY: the C functions give static strings.
        panic!("{}", unsafe { std::ffi::CStr::from_ptr(wrong) }.to_string_lossy());
    }
}

/// `blosc2/SAFETY.md` names every tested hazard, whether it is also tested through the safe API, and every patch.
#[cfg(target_endian = "little")]
#[test]
fn safety_md_says_what_there_is() {
    use std::process::Command;
    use std::{env, fs};

    let root = blosc2_testing::root();
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
