//! A viewer of Blosc2 files in the browser.
//!
//! The modules here do not depend on the browser: [`viewer::Viewer`] opens any source of bytes, and answers requests. For
//! WebAssembly, the module `glue` exports it to the worker of the page. `page/` has the page.

#![forbid(unsafe_code)]

// The modules of the command that print values name it like this.
extern crate blosc2_format as blosc2;

pub mod chunks;
pub mod colour;
pub mod contents;
pub mod data;
pub mod facts;
#[cfg(target_arch = "wasm32")]
pub mod glue;
pub mod item;
pub mod picture;
pub mod plane;
pub mod plot;
pub mod rows;
pub mod scan;
pub mod source;
pub mod stats;
pub mod viewer;

#[path = "../../cli/src/date.rs"]
mod date;
#[path = "../../cli/src/float.rs"]
mod float;
#[expect(dead_code, reason = "the command also prints arrays")]
#[path = "../../cli/src/values.rs"]
mod values;

/// Replaces control characters, which names and messages can have from the file.
fn printable(text: &str) -> String {
    text.chars().map(|each| if each.is_control() { '\u{fffd}' } else { each }).collect()
}
