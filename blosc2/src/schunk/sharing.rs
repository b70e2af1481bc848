//! Several handles on one super-chunk, in this program and in others.

use std::panic::{self, AssertUnwindSafe};

use parking_lot::RwLockReadGuard;

use super::store::{self, State, Version};
use super::{Place, SChunk, array_meta};
use crate::lock::Guard;
use crate::{ErrorKind, Result};

/// A look at the state while nobody changes it.
pub(crate) struct Reading<'a> {
    pub(super) state: RwLockReadGuard<'a, State>,
    _lock: Option<Guard<'a>>,
    _gate: Option<RwLockReadGuard<'a, ()>>,
}

impl Reading<'_> {
    /// What was last seen of others who change it.
    pub(crate) fn version(&self) -> Version {
        self.state.version
    }

    pub(crate) fn nchunks(&self) -> u64 {
        self.state.outline.nchunks()
    }

    /// Bytes of each chunk; 0 where they differ.
    pub(crate) fn chunksize(&self) -> usize {
        self.state.outline.chunksize().unwrap_or(0) as usize
    }

    /// The metalayer with the shape of an array.
    pub(crate) fn array_meta(&self) -> Option<&[u8]> {
        array_meta(&self.state.outline)
    }
}

impl SChunk {
    /// Reads anew what others have changed, and says whether there was anything.
    ///
    /// Reading a chunk does this by itself where the file is locked, and for changes by other handles of
    /// this program. Then there is no need to call it but for numbers and metalayers. Without locking, a
    /// change by another program is seen after this call, if that program is not just writing; a chunk that
    /// was written over with one of the same length is then read anew, but not told of. C's
    /// `blosc2_schunk_refresh`.
    ///
    /// # Errors
    /// As for [`open`](Self::open); the handle stays as it was.
    pub fn refresh(&mut self) -> Result<bool> {
        let doing = "refresh a frame";
        let handle = self.lock.clone().filter(|lock| lock.held().is_none());
        let lock = handle.as_ref().map(|lock| lock.shared()).transpose();
        let lock = lock.map_err(|error| self.at(error))?;
        let _gate = self.place.as_ref().map(|place| place.claim.reading());
        let now = version(self.place.as_ref(), lock.as_ref(), self.held());
        let state = self.state.get_mut();
        let before = (parts_of(state), state.version);
        let reloaded = state.reload(doing);
        if reloaded.is_ok() {
            state.version = now;
            self.broken = state.unfinished;
        }
        // A chunk in the place of another of its length shows in the version alone.
        let changed = before != (parts_of(state), now);
        drop((lock, _gate));
        reloaded.map_err(|error| self.at(error))?;
        self.forget();
        Ok(changed)
    }

    /// Keeps the lock of the file during several reads and changes, so that nobody comes between them.
    ///
    /// Without [`OpenOptions::locking`](crate::OpenOptions::locking) it is just a call. C's `blosc2_schunk_lock`, Python's
    /// `holding_lock`.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("counter.b2frame");
    /// use blosc2::OpenOptions;
    ///
    /// let options = OpenOptions::new().create(true).locking(true).typesize(8);
    /// let mut counter = options.open(path)?;
    /// counter.append(&[0u64])?;
    /// counter.locked(|counter| {
    ///     let [count] = counter.chunk::<u64>(0)?[..] else { unreachable!() };
    ///     counter.update(0, &[count + 1])
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Another locking handle of the same file must not be used inside: it would wait for ever.
    ///
    /// # Errors
    /// Those of `work`; [`ErrorKind::Io`] where the file cannot be locked.
    pub fn locked<R>(&mut self, work: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        let Some(lock) = self.lock.clone().filter(|lock| lock.held().is_none()) else {
            return work(self);
        };
        let guard = lock.exclusive().map_err(|error| self.at(error))?;
        let state = self.state.get_mut();
        if state.version.locked != guard.found() {
            state.reload("read what others changed").map_err(|error| self.at(error))?;
            self.forget();
        }
        self.state.get_mut().version.locked = guard.sequence();
        // Kept with the lock, as `work` may put another super-chunk in this place.
        lock.hold(Some(guard.sequence()));
        let result = panic::catch_unwind(AssertUnwindSafe(|| work(self)));
        lock.hold(None);
        drop(guard);
        result.unwrap_or_else(|payload| panic::resume_unwind(payload))
    }

    /// How many changes the lock has counted, while [`locked`](Self::locked) has it.
    pub(super) fn held(&self) -> Option<u64> {
        self.lock.as_ref().and_then(|lock| lock.held())
    }

    /// The state as this handle knows it; also within a read.
    pub(super) fn look(&self) -> RwLockReadGuard<'_, State> {
        self.state.read_recursive()
    }

    /// Looks at the state as it is now, and keeps it so. Not within another read.
    pub(crate) fn reading(&self) -> Result<Reading<'_>> {
        if self.broken {
            let detail = "a change failed and could not be taken back";
            return Err(self.error(ErrorKind::InvalidData, "read a frame", detail));
        }
        // First the lock of all programs, then that of this one: `locked` has the first already.
        let lock = self.lock.as_ref().filter(|lock| lock.held().is_none());
        let lock = lock.map(|lock| lock.shared()).transpose();
        let lock = lock.map_err(|error| self.at(error))?;
        let gate = self.place.as_ref().map(|place| place.claim.reading());
        let now = version(self.place.as_ref(), lock.as_ref(), self.held());
        let state = self.state.read();
        if state.version == now {
            return Ok(Reading { state, _lock: lock, _gate: gate });
        }
        drop(state);
        {
            let mut state = self.state.write();
            if state.version != now {
                state.reload("read what others changed").map_err(|error| self.at(error))?;
                state.version = now;
                *self.starts.write() = None;
            }
        }
        Ok(Reading { state: self.state.read(), _lock: lock, _gate: gate })
    }
}

/// What a change of the frame changes.
fn parts_of(state: &State) -> Option<(Vec<u8>, Vec<u8>)> {
    store::around_of(&state.outline, "compare frames").ok()
}

/// The version that is there now.
pub(super) fn version(
    place: Option<&Place>,
    lock: Option<&Guard<'_>>,
    held: Option<u64>,
) -> Version {
    Version {
        here: place.map_or(0, |place| place.claim.generation()),
        locked: lock.map(Guard::found).or(held).unwrap_or(0),
    }
}
