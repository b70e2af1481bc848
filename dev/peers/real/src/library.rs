//! What is measured: a library with its settings, which writes a set to a file or a folder, and reads it.

use std::path::Path;

use crate::set::{Part, Set};

/// A library with a codec and its settings.
pub trait Library {
    /// The name of the library, the same for all settings.
    fn name(&self) -> &'static str;

    /// The codec and its settings.
    fn setting(&self) -> String;

    /// Whether these are the settings that a user gets, or that the documentation recommends first.
    fn is_default(&self) -> bool {
        false
    }

    /// Writes the set.
    fn write(&self, set: &Set, path: &Path);

    /// Opens what was written.
    fn open<'a>(&self, set: &'a Set, path: &Path, threads: usize) -> Box<dyn Reader + 'a>;

    /// Whether a second thread can help.
    fn has_threads(&self) -> bool {
        true
    }
}

/// An open set.
pub trait Reader {
    fn all(&mut self) -> Items;

    /// `None` if the library reads only everything.
    fn part(&mut self, part: &Part) -> Option<Vec<u8>>;
}

/// What a library returns for all items.
pub enum Items {
    Bytes(Vec<u8>),
    /// Items in a layout of the library, and the function that makes bytes of them.
    #[cfg_attr(not(feature = "peers"), expect(dead_code, reason = "only other libraries have it"))]
    Other(Box<dyn FnOnce(&Set) -> Vec<u8>>),
}

impl Items {
    /// The bytes in C order.
    pub fn into_bytes(self, set: &Set) -> Vec<u8> {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Other(bytes) => bytes(set),
        }
    }
}
