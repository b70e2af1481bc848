//! Rust closures inside C's pipeline: prefilters, postfilters, and user-defined codecs, filters and tuners.
//!
//! C calls a function of this module from any of its threads. The function finds the current [`Call`], and runs the
//! closure. The function catches panics, so that no panic unwinds into C. It stores the first failure in the [`Call`];
//! after C has returned, this failure becomes the error of the operation.

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
pub(super) use codec::{
    codec_library, codec_name, codec_named, codec_version, is_codec, register_codec,
};
pub use filter::UserFilter;
pub(crate) use filter::{filter_name, filter_named, is_filter, register_filter};
pub(crate) use pipeline::{Blocks, postfilter, prefilter};
pub use registry::USER_CODES;
pub use tuner::{TunerInput, TunerOutcome, UserTuner};

/// The error of a closure, or of a user-defined codec, filter or tuner. With `?` or `into`, a message (`&str` or
/// `String`) and any error type that is `Send`, `Sync` and `'static` can be converted to a `BoxError`.
///
/// A panic in a closure is caught, and becomes an error too. With `panic = "abort"`, a panic ends the program.
///
/// ```
/// use blosc2::user_defined::BoxError;
///
/// fn check(input: &[u8]) -> Result<(), BoxError> {
///     if input.is_empty() { Err("the input is empty".into()) } else { Ok(()) }
/// }
///
/// assert_eq!(check(&[]).unwrap_err().to_string(), "the input is empty");
/// ```
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The closures that can run in a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Closures {
    None,
    /// User-defined codecs and filters.
    Registered,
    /// User-defined codecs and filters, and a prefilter or postfilter.
    Around,
}

/// Whether the code of a codec or filter is in the range of user-defined codes.
pub(super) fn is_user_code(code: u8) -> bool {
    registry::place(code).is_some()
}

/// Returns the closures that run for a codec and filters.
pub(super) fn registered(codec: u8, filters: &[u8]) -> Closures {
    match is_user_code(codec) || filters.iter().any(|&code| is_user_code(code)) {
        true => Closures::Registered,
        false => Closures::None,
    }
}

/// Registers the codes of all user-defined codecs and filters in C, once.
///
/// All threads of C read the lists of codecs and filters without a lock, so the lists must not change later.
pub(super) fn announce() {
    codec::announce();
    filter::announce();
}
