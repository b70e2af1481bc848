//! Rust closures inside C's pipeline: filters around it, and filters, codecs and tuners of one's own.
//!
//! C calls a function of this module from any of its threads. Such a function finds the [`Call`] that
//! it works for, runs the closure so that no panic gets out, and leaves what went wrong in the call,
//! which gives it back as its error.

mod block;
mod call;
mod codec;
mod filter;
mod pipeline;
mod registry;
mod tuner;

pub(crate) use block::ChunkPlace;
pub use block::{ChunkBlock, FilterBlock};
pub(crate) use call::{Call, ChunkFilter, Slot, Title, message_of, run_here, threads};
pub use codec::{CodecInfo, Library, UserCodec};
pub(crate) use codec::{
    codec_library, codec_name, codec_named, codec_version, is_codec, register_codec,
};
pub use filter::UserFilter;
pub(crate) use filter::{filter_name, filter_named, is_filter, register_filter};
pub(crate) use pipeline::{Blocks, postfilter, prefilter};
pub use registry::USER_CODES;
pub use tuner::{TunerInput, TunerOutcome, UserTuner};

/// What a closure may fail with: any error, or a message (by `into`).
///
/// A panic in one is caught and becomes an error, too, unless the program aborts at panics.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Which closures may run in a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Closures {
    None,
    /// Codecs and filters of users.
    Registered,
    /// Those, and a prefilter or postfilter.
    Around,
}

/// Whether a code of a codec or filter is one of the users'.
pub(crate) fn is_user_code(code: u8) -> bool {
    registry::place(code).is_some()
}

/// Which closures run for a codec and filters.
pub(crate) fn registered(codec: u8, filters: &[u8]) -> Closures {
    match is_user_code(codec) || filters.iter().any(|&code| is_user_code(code)) {
        true => Closures::Registered,
        false => Closures::None,
    }
}

/// Makes C know the codes of all users' codecs and filters, once.
///
/// C's lists are read without a lock by all its threads, so they must not change later.
pub(crate) fn announce() {
    codec::announce();
    filter::announce();
}
