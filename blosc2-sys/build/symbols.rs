//! The prefix of the C library's global symbols, so that a program can also link another Blosc.
//!
//! Other builds of C-Blosc2, and C-Blosc, define functions with the same names, also internal ones such as `fastcopy`.
//! A linker would refuse the program, or silently take one function for both libraries. Therefore a header renames
//! all symbols of `symbols.txt` (`cargo xtask package` checks that no symbol is missing there). The names that start
//! with `blosc2_sys_` are ours and keep them.

use std::fs;
use std::path::PathBuf;

use crate::{fail, sources_copy};

/// The start of each symbol.
pub(crate) const PREFIX: &str = "cblosc2_";

/// The definition with which the header also renames the internal functions.
pub(crate) const INTERNAL: &str = "CBLOSC2_INTERNAL_SYMBOLS";

/// The path of the header.
pub(crate) fn header() -> PathBuf {
    sources_copy().join("include/blosc2/cblosc2-symbols.h")
}

/// Writes the header, and includes it in the header that all public headers include. So C code of dependent crates
/// also uses the new names.
pub(crate) fn rename() {
    let (public, internal): (Vec<_>, Vec<_>) = include_str!("symbols.txt")
        .lines()
        .partition(|name| ["blosc", "b2nd", "BLOSC"].iter().any(|start| name.starts_with(start)));
    let define = |names: Vec<&str>| -> String {
        names.iter().map(|name| format!("#define {name} {PREFIX}{name}\n")).collect()
    };
    let (public, internal) = (define(public), define(internal));
    let header = format!(
        "#ifndef CBLOSC2_SYMBOLS_H\n#define CBLOSC2_SYMBOLS_H\n{public}\
         #ifdef {INTERNAL}\n#define XXH_NAMESPACE {PREFIX}\n{internal}#endif\n#endif\n"
    );
    let export = sources_copy().join("include/blosc2/blosc2-export.h");
    fs::write(self::header(), header)
        .and_then(|()| fs::read_to_string(&export))
        .and_then(|text| fs::write(&export, format!("#include \"cblosc2-symbols.h\"\n{text}")))
        .unwrap_or_else(|error| fail(&format!("cannot write {}: {error}", export.display())));
}

/// Adds the names of the symbols to the functions of the generated bindings.
#[cfg(feature = "bindgen")]
pub(crate) fn link(bindings: &str) -> String {
    let mut text = String::new();
    for line in bindings.lines() {
        if let Some((name, _)) =
            line.strip_prefix("    pub fn ").and_then(|rest| rest.split_once('('))
        {
            text +=
                &format!("    #[cfg_attr(not(blosc2_system), link_name = \"{PREFIX}{name}\")]\n");
        }
        text += line;
        text.push('\n');
    }
    text
}
