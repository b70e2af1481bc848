//! The options for limits, and messages that name these options.

use std::fmt;
use std::str::FromStr;

use blosc2::{Advice, Limits, OpenOptions};
use blosc2_format::Limit;

use crate::stdin;

/// Limits on the memory and the number of chunks that a file can require.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub(crate) struct LimitOptions {
    /// Memory limit of one read, such as `8G`.
    #[arg(long, value_name = "SIZE", global = true)]
    max_memory: Option<Bytes>,
    /// Limit of the number of chunks [default: 16777216].
    #[arg(long, value_name = "N", global = true)]
    max_chunks: Option<u64>,
}

impl LimitOptions {
    /// The limits of opening and of checks.
    pub(crate) fn limits(self) -> Limits {
        let mut limits = Limits::default();
        if let Some(Bytes(max)) = self.max_memory {
            limits.memory = max;
            limits.metadata = Some(max);
        }
        limits.chunks = self.max_chunks.unwrap_or(limits.chunks);
        limits
    }

    /// Applies the limits to the options for opening a frame.
    pub(crate) fn apply(self, options: OpenOptions) -> OpenOptions {
        let options = options.limits(self.limits());
        match self.max_read() {
            None => options,
            Some(max) => options.max_read(max),
        }
    }

    /// The memory limit of one read; `None` is the default.
    pub(crate) fn max_read(self) -> Option<u64> {
        self.max_memory.map(|Bytes(max)| max)
    }

    /// The maximum memory for a list with an entry for each chunk.
    pub(crate) fn for_list(self) -> u64 {
        self.max_read().unwrap_or(1 << 30)
    }
}

/// A number of bytes, such as `4096`, `512M` or `8GiB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bytes(pub(crate) u64);

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let end = text.find(|each: char| !each.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        let unit = unit.trim_start().to_ascii_uppercase();
        let shift = match unit.strip_suffix("IB").or(unit.strip_suffix('B')).unwrap_or(&unit) {
            "" if unit != "IB" => Some(0),
            "K" => Some(10),
            "M" => Some(20),
            "G" => Some(30),
            "T" => Some(40),
            "P" => Some(50),
            _ => None,
        };
        let number: Option<u64> = number.parse().ok();
        let bytes = number.zip(shift).and_then(|(number, shift)| number.checked_mul(1 << shift));
        bytes.map(Self).ok_or_else(|| {
            format!("expected a number of bytes below 2^64, with K, M, G, T or P for powers of 1024, got `{text}`")
        })
    }
}

/// The advice of this command in place of that of the libraries.
fn advice(advice: Advice) -> &'static str {
    match advice {
        Advice::RaiseMaxRead => "raise it with --max-memory",
        Advice::Recover => {
            "unless a program is still writing it, `blosc2 repair` rolls the change back"
        }
        Advice::Repair => "`blosc2 repair` saves the intact chunks",
        Advice::OpenStoredItems => "Python reads its content",
        Advice::RecoverFailed => "`blosc2 repair` recovers the file",
        Advice::Lock => "another program may be changing it: lock it with --locking",
        // The enum is non-exhaustive. A test calls this function with each advice.
        _ => unreachable!("advice without a text of this command"),
    }
}

/// What the user can do about a limit.
fn raise(limit: Limit) -> &'static str {
    match limit {
        Limit::Memory | Limit::Metadata => "; raise it with --max-memory",
        Limit::Chunks => "; raise it with --max-chunks",
        Limit::TotalBytes => "; raise it with `check --max-decoded`",
        // The defaults are the limits of the formats and of C-Blosc2.
        _ => "",
    }
}

/// Prepares the message of an error for the user: names options of this command instead of functions of the libraries,
/// and the files of the user instead of temporary copies.
pub(crate) fn named(message: impl fmt::Display) -> String {
    let mut message = stdin::named(message.to_string());
    for each in Advice::ALL {
        message = message.replace(&each.to_string(), advice(each));
    }
    message = message.replace(": call BatchArray::recount", "");
    for limit in Limit::ALL {
        message = message.replace(&format!(" {limit}"), raise(limit));
    }
    message
}

/// The message of an error without the advice to raise a limit, for commands that have no options for limits.
pub(crate) fn without_options(message: impl fmt::Display) -> String {
    let mut message = message.to_string().replace(&format!(": {}", Advice::RaiseMaxRead), "");
    for limit in Limit::ALL {
        message = message.replace(&format!(" {limit}"), "");
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        let cases = [
            ("0", 0),
            ("4096", 4096),
            ("3k", 3 << 10),
            ("512M", 512 << 20),
            ("8G", 8 << 30),
            ("8GB", 8 << 30),
            ("8 GiB", 8 << 30),
            ("2T", 2 << 40),
            ("16383P", 16383 << 50),
            ("7B", 7),
        ];
        for (text, bytes) in cases {
            assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
        }
        for text in ["", "G", "-1", "1.5G", "8X", "16384P", "99999999999999999999", "8iB", "8GG"] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
    }

    #[test]
    fn all_advice_names_options() {
        let advice = Advice::ALL.map(|each| each.to_string());
        let limits = Limit::ALL.map(|each| format!("7, over the limit of 5 {each}"));
        for message in advice.iter().chain(&limits) {
            let shown = named(message);
            assert!(!shown.contains("::"), "{shown}");
        }
        assert_eq!(named(&limits[0]), "7, over the limit of 5; raise it with --max-memory");
        assert_eq!(named(&limits[5]), "7, over the limit of 5; raise it with --max-chunks");
        assert_eq!(named(&limits[6]), "7, over the limit of 5");
        for limit in &limits {
            assert_eq!(without_options(limit), "7, over the limit of 5");
        }
        let read = format!("the limit is 5: {}", Advice::RaiseMaxRead);
        assert_eq!(without_options(&read), "the limit is 5");
        assert_eq!(named(&read), "the limit is 5: raise it with --max-memory");
    }
}
