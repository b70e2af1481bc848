//! The functions that fuzzing calls with any bytes: they return, or panic at a fault.
//!
//! `crates/format/fuzz` and `blosc2/fuzz` have a program of libFuzzer for each; `tests/fuzz` and the tests of
//! `blosc2-object-store` call them in ordinary tests.

#[cfg(feature = "c")]
mod change;
mod check;
mod decode;
#[cfg(feature = "c")]
mod differential;
mod dtype;
mod folder;
mod inputs;
#[cfg(feature = "c")]
mod metadata;
#[cfg(feature = "c")]
mod msgpack;
#[cfg(feature = "c")]
mod partial;
#[cfg(feature = "remote")]
mod remote;
#[cfg(feature = "c")]
mod round_trip;
pub mod seeds;
#[cfg(feature = "c")]
mod slices;
#[cfg(feature = "c")]
mod store;
#[cfg(feature = "c")]
mod walk;

use blosc2_format::{Error, Limits, Options};

#[cfg(feature = "c")]
pub use change::change;
pub use check::check;
pub use decode::decode;
#[cfg(feature = "c")]
pub use differential::{differential, differential_chunk};
pub use dtype::dtype;
pub use inputs::inputs;
#[cfg(feature = "c")]
pub use metadata::store_metadata;
#[cfg(feature = "c")]
pub use msgpack::msgpack;
#[cfg(feature = "c")]
pub use partial::partial;
#[cfg(feature = "remote")]
pub use remote::remote;
#[cfg(feature = "c")]
pub use round_trip::round_trip;
#[cfg(feature = "c")]
pub use slices::slices;
#[cfg(feature = "c")]
pub use store::{store_folder, store_zip};
#[cfg(feature = "c")]
pub use walk::open_and_walk;

/// Limits under which any input takes little time and memory.
pub(crate) const LIMITS: Limits = Limits {
    memory: 1 << 20,
    metadata: None,
    total_bytes: 4 << 20,
    items: 1 << 18,
    dimensions: 16,
    chunks: 1 << 12,
    metalayers: 100,
    nesting: 16,
};

/// The options of a check of all blocks.
pub(crate) fn options() -> Options {
    Options { content: true, map: true, limits: LIMITS, ..Options::default() }
}

/// Returns what is read from something that has no fault. Only limits and user-defined codecs and filters prevent that.
pub(crate) fn readable<T>(result: Result<T, Error>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(Error::Unsupported(_) | Error::Limit { .. }) => None,
        Err(error) => panic!("the check finds no fault, but reading fails: {error}"),
    }
}
