//! Several handles on one super-chunk, in this program and in others.

use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;

use parking_lot::RwLockReadGuard;

use super::store::{Opened, State};
use super::{Access, SChunk, array_meta};
use crate::gate::{Calling, FileId, Gate, Pass, Version};
use crate::{Error, ErrorKind, Result};

const RELOAD: &str = "read what others changed";
const REFRESH: &str = "refresh a frame";

/// A look at the state while nobody changes it.
pub(crate) struct Reading<'a> {
    pub(super) state: RwLockReadGuard<'a, State>,
    _pass: Option<Pass<'a>>,
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
        self.state.outline.chunksize().fixed().unwrap_or(0) as usize
    }

    /// The metalayer with the shape of an array.
    pub(crate) fn array_meta(&self) -> Option<&[u8]> {
        array_meta(self.state.outline.metalayers())
    }
}

impl SChunk {
    /// Reads again what others have changed, and returns whether there was anything.
    ///
    /// Reading a chunk does this by itself where the file is locked, and for changes by other handles of
    /// this program. Then there is no need to call it but for numbers and metalayers. Without locking, a
    /// change by another program is seen after this call, if that program is not just writing; a chunk that
    /// was written over with one of the same length is then read again, but not reported. Nor is another order of more
    /// than about 100,000 chunks, where the index that was read so far is the same. C's `blosc2_schunk_refresh`.
    ///
    /// # Errors
    /// As for [`open`](Self::open); the handle stays as it was.
    pub fn refresh(&mut self) -> Result<bool> {
        match self.refresh_once() {
            Err(error) if self.may_recover(&error) => {
                self.recover(REFRESH)?;
                self.refresh_once()
            }
            refreshed => refreshed,
        }
    }

    fn refresh_once(&mut self) -> Result<bool> {
        let gate = self.gate.clone();
        let pass = gate.as_ref().map(|gate| gate.read()).transpose();
        let pass = pass.map_err(|error| self.at(error))?;
        let now = version(pass.as_ref());
        let state = self.state.get_mut();
        let before = (state.outline.clone(), state.version);
        let reloaded = state.reload(REFRESH);
        if reloaded.is_ok() {
            state.version = now;
            self.broken = state.unfinished;
        }
        // What was not read of an index that cannot be compared is another one.
        let is_same = before.0.is_same(&state.outline, state.store.source()).unwrap_or(false);
        drop(pass);
        reloaded.map_err(|error| self.at(error))?;
        self.forget();
        // A chunk in the place of another of its length shows in the version alone.
        Ok(!is_same || before.1 != now)
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
    ///     let [count] = counter.decompress_chunk::<u64>(0)?[..] else { unreachable!() };
    ///     counter.update(0, &[count + 1])
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// What `work` does with another handle of the same file fails with [`ErrorKind::Busy`]. So do other threads' reads
    /// and changes of it, where `work` makes none for most of a second.
    ///
    /// # Errors
    /// Those of `work`; [`ErrorKind::Io`] where the file cannot be locked; [`ErrorKind::Busy`] where a closure has the
    /// file, and may wait for this call.
    #[doc(alias("blosc2_schunk_lock", "holding_lock"))]
    pub fn locked<R>(&mut self, work: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        self.kept(|schunk| {
            let gate = schunk.gate.clone().filter(|gate| gate.is_locking());
            let _calling = gate.as_ref().map(|gate| gate.calling());
            work(schunk)
        })
    }

    /// The same for work of this crate, which waits for nobody.
    pub(crate) fn kept<R>(&mut self, work: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        Self::kept_for(self, |schunk| schunk, work)
    }

    /// The same for the owner of a super-chunk.
    pub(crate) fn kept_for<O, R>(
        owner: &mut O,
        schunk: impl Fn(&mut O) -> &mut Self,
        work: impl FnOnce(&mut O) -> Result<R>,
    ) -> Result<R> {
        let own = schunk(owner);
        // Kept apart, as `work` may put another super-chunk in this place.
        let Some(gate) = own.gate.clone().filter(|gate| gate.is_locking()) else {
            return work(owner);
        };
        let pass = gate.change().map_err(|error| own.at(error))?;
        if pass.is_part() {
            return work(owner);
        }
        own.check_file()?;
        let state = own.state.get_mut();
        if state.version != pass.version() {
            let is_alone = own.access != Access::Read;
            state.reload_or_recover(is_alone, RELOAD).map_err(|error| own.at(error))?;
            own.forget();
        }
        let kept = pass.keep();
        own.state.get_mut().version = pass.next();
        let result = panic::catch_unwind(AssertUnwindSafe(|| work(owner)));
        drop(kept);
        drop(pass);
        result.unwrap_or_else(|payload| panic::resume_unwind(payload))
    }

    /// Says that a closure of the user is called while the file is read or changed.
    pub(crate) fn calling(&self) -> Option<Calling<'_>> {
        self.gate.as_ref().map(|gate| gate.calling())
    }

    /// Takes the access to the file that it was made in.
    pub(crate) fn enter(&mut self, gate: Option<Gate>) {
        if let Some(gate) = gate {
            self.state.get_mut().version = gate.made();
            self.gate = Some(Arc::new(gate));
        }
    }

    /// Its access to the file that it is in.
    pub(crate) fn gate(&self) -> Option<Arc<Gate>> {
        self.gate.clone()
    }

    /// Checks that what this handle changes is still the file of its name, so that no change is lost.
    pub(super) fn check_file(&self) -> Result<()> {
        const CHECK: &str = "change a frame";
        let Some(gate) = &self.gate else { return Ok(()) };
        let failed = |error| self.at(Error::of_io(CHECK, error));
        let links = match self.look().store.opened() {
            Opened::Nothing => None,
            Opened::File(file) => gate.names(file).map_err(failed)?,
            Opened::Directory(path) => match FileId::of_path(path) {
                Ok(id) if id == *gate.id() => None,
                Ok(_) => Some(0),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Some(0),
                Err(error) => return Err(failed(error)),
            },
        };
        match links {
            Some(0) => {
                let detail = "it was replaced or removed since it was opened: open it again";
                Err(self.error(ErrorKind::NotFound, CHECK, detail))
            }
            Some(count) if count > 1 && gate.is_locking() => {
                let detail = format!(
                    "the file has {count} names (hard links), and whoever uses another one would not see its lock"
                );
                Err(self.error(ErrorKind::Unsupported, CHECK, detail))
            }
            _ => Ok(()),
        }
    }

    /// The state as this handle knows it; also within a read.
    pub(super) fn look(&self) -> RwLockReadGuard<'_, State> {
        self.state.read_recursive()
    }

    /// Looks at the state as it is now, and keeps it so. Not within another read.
    pub(crate) fn reading(&self) -> Result<Reading<'_>> {
        if self.broken {
            let detail = "a change failed and could not be rolled back";
            return Err(self.error(ErrorKind::InvalidData, "read a frame", detail));
        }
        let pass = self.gate.as_ref().map(|gate| gate.read()).transpose();
        let pass = pass.map_err(|error| self.at(error))?;
        let now = version(pass.as_ref());
        let state = self.state.read_recursive();
        if state.version == now {
            return Ok(Reading { state, _pass: pass });
        }
        drop(state);
        if self.gate.as_ref().is_some_and(|gate| gate.is_locking()) {
            self.check_file()?;
        }
        let reloaded = self.reload(now);
        if let Err(error) = reloaded {
            if !self.may_recover(&error) {
                return Err(error);
            }
            drop(pass);
            self.recover(RELOAD)?;
            return self.reading();
        }
        Ok(Reading { state: self.state.read_recursive(), _pass: pass })
    }

    /// Reads what others have changed, who have made it this version.
    fn reload(&self, now: Version) -> Result<()> {
        let mut state = self.state.write();
        if state.version != now {
            state.reload(RELOAD).map_err(|error| self.at(error))?;
            state.version = now;
            *self.starts.write() = None;
        }
        Ok(())
    }

    /// Whether an error is that of a writer that was stopped, and this handle may [recover](Self::recover) the frame.
    fn may_recover(&self, error: &Error) -> bool {
        let is_locking = self.gate.as_ref().is_some_and(|gate| gate.is_locking());
        error.kind() == ErrorKind::Unfinished && self.access != Access::Read && is_locking
    }

    /// Rolls back what a writer left that had locked the file. Not within a read.
    fn recover(&self, doing: &str) -> Result<()> {
        let Some(gate) = &self.gate else { return Ok(()) };
        let mut pass = gate.change().map_err(|error| self.at(error))?;
        self.check_file()?;
        let recovered = self.state.write().store.recover(doing);
        recovered.map_err(|error| self.at(error))?;
        pass.changed();
        Ok(())
    }
}

/// The version that is there now.
pub(super) fn version(pass: Option<&Pass<'_>>) -> Version {
    pass.map(Pass::version).unwrap_or_default()
}
