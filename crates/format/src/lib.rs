#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod b2nd;
pub mod chunk;
mod codec;
pub mod directory;
pub mod dtype;
mod error;
pub mod file;
mod filter;
pub mod frame;
mod legacy;
mod limits;
mod lru;
pub mod npy;
pub mod read_at;
mod report;
#[cfg(feature = "msgpack")]
pub mod value;

pub use dtype::Dtype;
pub use error::{Error, FormatError};
pub use legacy::{early, packed};
pub use limits::{Limit, Limits};
pub use read_at::ReadAt;
pub use report::{Finding, Options, Part, Region, Report, Rule, Severity};

/// Returns the rules of all findings that a check can report.
///
/// ```
/// let rule = blosc2_format::rules().find(|rule| rule.id == "b2nd.ndim").unwrap();
/// assert_eq!(rule.severity, blosc2_format::Severity::Error);
/// ```
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    let lists = [
        file::RULES,
        chunk::RULES,
        codec::RULES,
        frame::rules::RULES,
        directory::RULES,
        early::RULES,
        packed::RULES,
        b2nd::RULES,
    ];
    lists.into_iter().flatten().copied()
}

#[cfg(test)]
mod tests {
    #[test]
    fn rules_have_ids_of_their_own() {
        let mut ids: Vec<_> = super::rules().map(|rule| rule.id).collect();
        let count = ids.len();
        assert!(ids.iter().all(|id| id.contains('.') && !id.contains(char::is_whitespace)));
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), count);
    }
}
