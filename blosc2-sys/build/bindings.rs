//! Makes the Rust declarations from upstream's headers.
//!
//! The same settings serve the feature `bindgen` and the committed `src/bindings.rs`, which
//! `cargo xtask bindings` copies from a build with that feature. Comments and layout tests are left
//! out: the former are upstream's, the latter hold for one target only. `tests/abi.rs` compares the
//! layouts with the C compiler's.

use std::path::Path;

use bindgen::callbacks::{IntKind, ParseCallbacks};

use crate::{fail, symbols};

const HEADERS: &str = "\
#include <b2nd.h>
#include <blosc2/codecs-registry.h>
#include <blosc2/filters-registry.h>
#include <blosc2/tuners-registry.h>
";

/// Declares integer macros as `int`, the type that C gives them.
#[derive(Debug)]
struct IntMacros;

impl ParseCallbacks for IntMacros {
    fn int_macro(&self, _name: &str, _value: i64) -> Option<IntKind> {
        Some(IntKind::Int)
    }
}

/// Writes the declarations for the headers in `include` to `target`.
pub(crate) fn generate(include: &Path, target: &Path) {
    let result = bindgen::Builder::default()
        .header_contents("wrapper.h", HEADERS)
        .clang_arg(format!("-I{}", include.display()))
        // The functions have their original names in Rust.
        .clang_arg("-DCBLOSC2_SYMBOLS_H")
        // The declarations need no vector intrinsics, whose headers belong to one compiler.
        .clang_args(["-U__SSE2__", "-U__AVX2__", "-U__AVX512F__", "-U__AVX512BW__"])
        .use_core()
        .ctypes_prefix("::core::ffi")
        .rust_target(bindgen::RustTarget::stable(85, 0).unwrap_or_else(|_| fail("Rust 1.85")))
        .rust_edition(bindgen::RustEdition::Edition2024)
        .allowlist_function("(blosc[12]?|b2nd)_.*")
        .allowlist_type("(blosc[12]?|b2nd)_.*|(codec|filter|tuner)_info")
        .allowlist_var("(BLOSC[12]?|B2ND|DTYPE)_.*")
        // Written by hand: they differ between platforms (src/platform.rs) ...
        .blocklist_type("blosc_timestamp_t|blosc2_stdio_(file|mmap)|timespec|LARGE_INTEGER|FILE")
        .blocklist_type("_IO_.*|__.*")
        // ... or are inline or static in the headers (src/inline.rs).
        .blocklist_item("BLOSC2_.*_DEFAULTS|blosc2_meta_(exists|get)|b2nd_deserialize_meta_inline")
        .blocklist_item("BLOSC_(EXPORT|NO_EXPORT|GCC_VERSION|ATTRIBUTE_UNUSED|UNUSED_VAR)")
        .raw_line("use crate::platform::*;")
        .generate_comments(false)
        .generate_cstr(true)
        .layout_tests(false)
        .merge_extern_blocks(true)
        .prepend_enum_name(false)
        .parse_callbacks(Box::new(IntMacros))
        .generate();
    let bindings = match result {
        Ok(bindings) => bindings.to_string(),
        Err(error) => fail(&format!("bindgen: {error}")),
    };
    if let Err(error) = std::fs::write(target, symbols::link(&name_enums(&bindings))) {
        fail(&format!("cannot write {}: {error}", target.display()));
    }
}

/// Gives the constants of upstream's anonymous enums the type `c_int`, which is what an enumerator
/// has in C on every platform; bindgen names a type for each, of the host's choice.
fn name_enums(bindings: &str) -> String {
    let mut text = String::new();
    for line in bindings.lines().filter(|line| !line.starts_with("pub type _bindgen_ty_")) {
        match line.split_once(": _bindgen_ty_") {
            Some((name, rest)) => {
                let value = rest.split_once(" = ").map_or("", |(_, value)| value);
                text.push_str(&format!("{name}: ::core::ffi::c_int = {value}"));
            }
            None => text.push_str(line),
        }
        text.push('\n');
    }
    text
}
