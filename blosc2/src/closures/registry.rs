//! The registry of user-defined codecs, filters and tuners. Entries live until the process exits.

use std::ops::RangeInclusive;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use blosc2_sys as sys;
use parking_lot::Mutex;

use crate::{ErrorKind, Reason, Result};

/// The codes of user-defined codecs, filters and tuners: 160 to 255. C: `BLOSC2_USER_REGISTERED_CODECS_START` to
/// `BLOSC2_USER_REGISTERED_CODECS_STOP`; the constants for filters and tuners have the same values.
pub const USER_CODES: RangeInclusive<u8> =
    sys::BLOSC2_USER_REGISTERED_CODECS_START as u8..=sys::BLOSC2_USER_REGISTERED_CODECS_STOP as u8;

const COUNT: usize = (*USER_CODES.end() - *USER_CODES.start()) as usize + 1;

/// A table of codes. Lookups take no lock.
pub(super) struct Registry<T: ?Sized + 'static> {
    entries: [OnceLock<Entry<T>>; COUNT],
    /// The codes that were registered in C before this crate initialized the library.
    taken: [AtomicBool; COUNT],
    /// Locked during a registration, so that no name is registered twice.
    registering: Mutex<()>,
}

struct Entry<T: ?Sized> {
    name: String,
    value: Box<T>,
}

impl<T: ?Sized> Registry<T> {
    pub(super) const fn new() -> Self {
        Self {
            entries: [const { OnceLock::new() }; COUNT],
            taken: [const { AtomicBool::new(false) }; COUNT],
            registering: Mutex::new(()),
        }
    }

    /// All codes of user-defined entries.
    pub(super) fn codes() -> impl Iterator<Item = u8> {
        USER_CODES
    }

    fn entry(&self, code: u8) -> Option<&Entry<T>> {
        self.entries[place(code)?].get()
    }

    pub(super) fn get(&self, code: u8) -> Option<&T> {
        self.entry(code).map(|entry| entry.value.as_ref())
    }

    pub(super) fn name(&self, code: u8) -> Option<&str> {
        self.entry(code).map(|entry| entry.name.as_str())
    }

    /// Returns the code that is registered with a name.
    pub(super) fn code(&self, name: &str) -> Option<u8> {
        let is_named = |&code: &u8| self.name(code).is_some_and(|n| n.eq_ignore_ascii_case(name));
        Self::codes().find(is_named)
    }

    /// Records that the code was registered in C before this crate initialized the library.
    pub(super) fn take(&self, code: u8) {
        if let Some(place) = place(code) {
            self.taken[place].store(true, Ordering::Relaxed);
        }
    }

    pub(super) fn is_taken(&self, code: u8) -> bool {
        place(code).is_some_and(|place| self.taken[place].load(Ordering::Relaxed))
    }

    /// Registers a value. `built_in` means that a built-in codec or filter has the name.
    pub(super) fn set(
        &self,
        code: u8,
        name: &str,
        value: Box<T>,
        built_in: bool,
    ) -> Result<(), Reason> {
        let invalid = |detail: String| Err(Reason::new(ErrorKind::InvalidArgument, detail));
        let exists = |detail: String| Err(Reason::new(ErrorKind::AlreadyExists, detail));
        let Some(place) = place(code) else {
            let (first, last) = (USER_CODES.start(), USER_CODES.end());
            return invalid(format!("the code has to be from {first} to {last}, got {code}"));
        };
        // A name must not look like a code, or like a name with a parameter.
        if name.is_empty() || name.contains(':') || name.parse::<u8>().is_ok() {
            return invalid(format!(
                "a name must not be empty, a number, or contain a colon, got `{name}`"
            ));
        }
        let registering = self.registering.lock();
        if built_in || self.code(name).is_some() {
            return exists(format!("the name {name} is registered already"));
        }
        if self.taken[place].load(Ordering::Relaxed) {
            return exists(format!(
                "the code {code} was registered in C-Blosc2 before this crate started"
            ));
        }
        let refused = self.entries[place].set(Entry { name: name.to_owned(), value }).err();
        // The lock is released first: the refused value is dropped, and its destructor may register another value.
        drop(registering);
        if refused.is_none() {
            return Ok(());
        }
        let other = self.name(code).unwrap_or_default();
        exists(format!("the code {code} is registered as {other}"))
    }
}

/// The position of a user-defined code in the table.
pub(super) fn place(code: u8) -> Option<usize> {
    USER_CODES.contains(&code).then(|| usize::from(code - USER_CODES.start()))
}
