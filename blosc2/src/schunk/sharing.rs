//! Coordination of several handles on one super-chunk, in this program and in others.

use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;

use parking_lot::RwLockReadGuard;

use super::store::{Opened, State};
use super::{Access, SChunk, array_meta};
use crate::gate::{Calling, FileId, Gate, Pass, Version};
use crate::{Error, ErrorKind, Result};

const RELOAD: &str = "read the changes of another handle";
const REFRESH: &str = "refresh a frame";

/// Read access to the state, which does not change until this value is dropped.
pub(crate) struct Reading<'a> {
    pub(super) state: RwLockReadGuard<'a, State>,
    _pass: Option<Pass<'a>>,
}

impl Reading<'_> {
    /// Returns the version of the file that this handle has read.
    pub(crate) fn version(&self) -> Version {
        self.state.version
    }

    pub(crate) fn nchunks(&self) -> u64 {
        self.state.outline.nchunks()
    }

    /// Returns the chunk size in bytes; 0 if chunks have different sizes.
    pub(crate) fn chunksize(&self) -> usize {
        self.state.outline.chunksize().fixed().unwrap_or(0) as usize
    }

    /// Returns the content of the metalayer with the shape of an array.
    pub(crate) fn array_meta(&self) -> Option<&[u8]> {
        array_meta(self.state.outline.metalayers())
    }
}

/// A state of a frame. Returned by [`SChunk::revision`].
///
/// ```
/// use blosc2::SChunk;
///
/// let mut schunk = SChunk::in_memory::<u8>(blosc2::CParams::default())?;
/// let before = schunk.revision()?;
/// assert_eq!(schunk.revision()?, before);
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Revision(Version);

impl SChunk {
    /// Returns the revision of a frame in a file, which every change by a handle of this program alters, and with
    /// [locking](crate::OpenOptions::locking) also every change by another program that locks the file. A program that
    /// derives data from a frame compares revisions to detect that these data are outdated.
    ///
    /// If the frame has changed, this method re-reads the metadata, as each read of a chunk does. The revision of a frame
    /// in memory, which only its own handle can change, is always the same.
    ///
    /// # Errors
    /// - [`ErrorKind::Busy`]: another program has changed the file without locking since this handle read it; call
    ///   [`refresh`](Self::refresh). The length, the modification time and the header of the file are compared;
    /// - the errors of [`refresh`](Self::refresh).
    pub fn revision(&self) -> Result<Revision> {
        let reading = self.reading()?;
        // Only files: the same comparison is a request to a server for other storages.
        if matches!(reading.state.store.opened(), Opened::File(_)) {
            let compared = reading.state.store.source().read_ranges_at(&mut []);
            compared.map_err(|error| self.at(Error::of_io("read a frame", error)))?;
        }
        Ok(Revision(reading.version()))
    }

    /// Re-reads the metadata, so that the changes of other handles and programs are visible. Returns whether the frame
    /// has changed. C: `blosc2_schunk_refresh`. Python: `SChunk.refresh`.
    ///
    /// Each read of a chunk refreshes the handle automatically after a change by another handle of this program. With
    /// [locking](crate::OpenOptions::locking), each read also refreshes the handle after a change by another program
    /// that locks the file. In both cases, `refresh` is needed only to update sizes, counts and metalayers.
    ///
    /// Without locking, `refresh` is needed to read the changes of another program. In a directory (sparse frame), reads
    /// of stored chunks fail with [`ErrorKind::Busy`] after such a change, because the other program may have stored
    /// other chunks under the names of removed chunks. The caller must ensure that the
    /// other program is not writing at the same time. In two cases `refresh` returns `false` although the frame has
    /// changed and reads return the new data:
    /// - a chunk was overwritten at its old offset, and the length of the frame has not changed;
    /// - the frame has more than about 100,000 chunks, the chunks were reordered, and the part of the index that this
    ///   handle has read is unchanged.
    ///
    /// # Errors
    /// Fails with the errors of [`open`](Self::open). After an error the handle is unchanged.
    pub fn refresh(&mut self) -> Result<bool> {
        if self.look().transaction.is_some() {
            // No other handle has changed it.
            return Ok(false);
        }
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
        // If the unread part of an index cannot be compared, it counts as changed.
        let is_same = before.0.is_same(&state.outline, state.store.source()).unwrap_or(false);
        drop(pass);
        reloaded.map_err(|error| self.at(error))?;
        self.forget();
        // If a chunk was replaced by a chunk of the same length, only the version shows the change.
        Ok(!is_same || before.1 != now)
    }

    /// Calls `work` and holds the lock of the file during the call. No other handle can read or change the file until
    /// `work` returns. C: `blosc2_schunk_lock`. Python: `holding_lock`.
    ///
    /// The handle must be open with [`OpenOptions::locking`](crate::OpenOptions::locking). Without this option, the
    /// method only calls `work` and holds no lock.
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
    /// If `work` fails or panics, the changes that it has completed are not rolled back.
    /// [`transaction`](Self::transaction) also holds the lock, and rolls these changes back.
    ///
    /// Within `work`, calls on another handle of the same file fail with [`ErrorKind::Busy`]. On other threads, reads
    /// and changes with other handles wait until `work` returns. They fail with `Busy` if `work` does not use its
    /// handle for about 0.7 seconds.
    ///
    /// # Errors
    /// Fails with the errors of `work`, and with
    /// - [`ErrorKind::Io`]: the file cannot be locked;
    /// - [`ErrorKind::Busy`]: another access to the file is running a [user closure](crate::OpenOptions#user-closures),
    ///   so that this call could deadlock;
    /// - [`ErrorKind::NotFound`]: the file was replaced or removed;
    /// - [`ErrorKind::Unfinished`]: a writer was stopped in the middle of a change.
    #[doc(alias("blosc2_schunk_lock", "holding_lock"))]
    pub fn locked<R>(&mut self, work: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        self.kept(|schunk| {
            let gate = schunk.gate.clone().filter(|gate| gate.is_locking());
            let _calling = gate.as_ref().map(|gate| gate.calling());
            work(schunk)
        })
    }

    /// Like [`locked`](Self::locked), for work of this crate that does not wait for other threads.
    pub(crate) fn kept<R>(&mut self, work: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        Self::kept_for(self, |schunk| schunk, work)
    }

    /// Like [`kept`](Self::kept), for the owner of a super-chunk.
    pub(crate) fn kept_for<O, R>(
        owner: &mut O,
        schunk: impl Fn(&mut O) -> &mut Self,
        work: impl FnOnce(&mut O) -> Result<R>,
    ) -> Result<R> {
        let own = schunk(owner);
        // A clone, because `work` may replace the super-chunk.
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

    /// Marks that a user closure runs during a read or a change of the file, until the guard is dropped.
    pub(crate) fn calling(&self) -> Option<Calling<'_>> {
        self.gate.as_ref().map(|gate| gate.calling())
    }

    /// Stores the claim of the file in which the super-chunk was created.
    pub(crate) fn enter(&mut self, gate: Option<Gate>) {
        if let Some(gate) = gate {
            self.state.get_mut().version = gate.made();
            self.gate = Some(Arc::new(gate));
        }
    }

    /// Returns the claim of the file.
    pub(crate) fn gate(&self) -> Option<Arc<Gate>> {
        self.gate.clone()
    }

    /// Checks that the opened file was not replaced or removed, so that no change is lost.
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
                    "the file has {count} names (hard links), and a writer that uses another name acquires another lock"
                );
                Err(self.error(ErrorKind::Unsupported, CHECK, detail))
            }
            _ => Ok(()),
        }
    }

    /// Returns the state that this handle has read last. May be called within a read.
    pub(super) fn look(&self) -> RwLockReadGuard<'_, State> {
        self.state.read_recursive()
    }

    /// Returns the current state, which does not change until the result is dropped. Must not be called within another
    /// read.
    pub(crate) fn reading(&self) -> Result<Reading<'_>> {
        if self.broken {
            let detail = "an earlier change failed and could not be rolled back";
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

    /// Re-reads the state, if another handle has written the version `now`.
    fn reload(&self, now: Version) -> Result<()> {
        let mut state = self.state.write();
        if state.version != now {
            state.reload(RELOAD).map_err(|error| self.at(error))?;
            state.version = now;
            *self.starts.write() = None;
        }
        Ok(())
    }

    /// Returns whether a stopped writer is the cause of the error, and this handle may [recover](Self::recover) the
    /// frame.
    fn may_recover(&self, error: &Error) -> bool {
        let is_locking = self.gate.as_ref().is_some_and(|gate| gate.is_locking());
        error.kind() == ErrorKind::Unfinished && self.access != Access::Read && is_locking
    }

    /// Rolls back the change of a stopped writer. Must not be called within a read.
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

/// Returns the current version.
pub(super) fn version(pass: Option<&Pass<'_>>) -> Version {
    pass.map(Pass::version).unwrap_or_default()
}
