//! The stored state of a super-chunk, and the coordination of the handles that read and change it, in this program and
//! in others.

use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use blosc2_format::frame::Stores;
use parking_lot::{RwLock, RwLockReadGuard};

use super::array_meta;
use super::store::{Opened, State, Transaction};
use crate::error::AnyError;
use crate::gate::{Calling, Claim, FileId, Gate, HeldPass, Pass, Version, has_lock};
use crate::{Doing, Error, ErrorKind, Reason, Result};

const RELOAD: &str = "read the changes of another handle";
const REFRESH: &str = "refresh a frame";

/// The stored state of a super-chunk: what is stored, who may change it, and how a change is committed.
pub(super) struct Frame {
    /// The claim of the file of the super-chunk. Dropped before the other fields: no other file can get the identity of
    /// the file while the file is open.
    gate: Option<Arc<Gate>>,
    state: SharedState,
    access: Access,
    /// The path of the file or directory, as it was passed when it was opened.
    path: Option<PathBuf>,
    /// The byte offsets of the chunks in the decompressed data, for variable-length chunks.
    starts: RwLock<Option<Arc<Vec<u64>>>>,
    /// Set after a failed change that could not be rolled back: the state of the stored data is unknown.
    broken: bool,
}

/// The state of a frame. A lock takes 10 ns, as long as decompressing 300 bytes.
enum SharedState {
    /// The state of a frame without a gate: it changes only through `&mut Frame`.
    Unlocked(State),
    /// The state of a frame with a gate: a read reads it again after a change of another handle.
    Locked(RwLock<State>),
}

impl SharedState {
    fn get_mut(&mut self) -> &mut State {
        match self {
            Self::Unlocked(state) => state,
            Self::Locked(state) => state.get_mut(),
        }
    }

    /// Returns the state, which does not change until the result is dropped.
    fn read(&self) -> StateRef<'_> {
        match self {
            Self::Unlocked(state) => StateRef::Unlocked(state),
            Self::Locked(state) => StateRef::Locked(state.read_recursive()),
        }
    }

    fn into_locked(self) -> Self {
        match self {
            Self::Unlocked(state) => Self::Locked(RwLock::new(state)),
            locked => locked,
        }
    }
}

/// A state that does not change until this value is dropped.
pub(super) enum StateRef<'a> {
    Unlocked(&'a State),
    Locked(RwLockReadGuard<'a, State>),
}

impl Deref for StateRef<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        match self {
            Self::Unlocked(state) => state,
            Self::Locked(state) => state,
        }
    }
}

/// The changes that a handle allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Append,
    Write,
}

impl Access {
    /// The claim of a file that this access needs.
    pub(super) fn claim(self, locking: bool) -> Claim {
        match (self, locking) {
            (Self::Read, _) => Claim::Read,
            (_, false) => Claim::Write,
            (_, true) => Claim::WriteLocked,
        }
    }
}

/// Read access to the state, which does not change until this value is dropped.
pub(crate) struct Reading<'a> {
    pub(super) state: StateRef<'a>,
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

/// A state of a frame. Returned by [`SChunk::revision`](crate::SChunk::revision).
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

impl Frame {
    pub(super) fn new(state: State, access: Access) -> Self {
        let (state, starts) = (SharedState::Unlocked(state), RwLock::new(None));
        Self { gate: None, state, access, path: None, starts, broken: false }
    }

    /// Stores the claim of the file in which the frame was created.
    pub(super) fn claim_created(self, gate: Option<Gate>) -> Self {
        let version = gate.as_ref().map(Gate::count_creation).unwrap_or_default();
        self.claim_opened(gate, version)
    }

    /// Stores the claim of the file from which the state with this version was read.
    pub(super) fn claim_opened(mut self, gate: Option<Gate>, version: Version) -> Self {
        let Some(gate) = gate else { return self };
        self.state.get_mut().version = version;
        Self { gate: Some(Arc::new(gate)), state: self.state.into_locked(), ..self }
    }

    pub(super) fn set_path(&mut self, path: &Path) {
        self.path = Some(path.to_owned());
    }

    pub(super) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    pub(super) fn set_access(&mut self, access: Access) {
        self.access = access;
    }

    pub(super) fn is_writable(&self) -> bool {
        self.access == Access::Write
    }

    /// Returns the claim of the file.
    pub(super) fn gate(&self) -> Option<&Arc<Gate>> {
        self.gate.as_ref()
    }

    /// Returns the state of a frame that no other handle reads.
    pub(super) fn state_mut(&mut self) -> &mut State {
        self.state.get_mut()
    }

    pub(super) fn error(&self, kind: ErrorKind, detail: impl ToString) -> Reason {
        self.at(Reason::new(kind, detail))
    }

    pub(super) fn at<E: AnyError>(&self, error: E) -> E {
        let Some(path) = self.path() else { return error };
        error.map(|error| match &self.gate {
            Some(gate) if gate.is_locking() => error.at(path),
            _ => error.not_locked(|| has_lock(path, path.is_dir())).at(path),
        })
    }

    pub(super) fn check_change(&self, needed: Access) -> Result<(), Reason> {
        match (self.access, needed) {
            (Access::Read, _) => Err(self.error(ErrorKind::ReadOnly, "it was opened for reading")),
            (Access::Append, Access::Write) => {
                Err(self.error(ErrorKind::ReadOnly, "it was opened for appending"))
            }
            _ => Ok(()),
        }
    }

    /// Returns the revision of a frame in a file; see [`SChunk::revision`](super::SChunk::revision).
    pub(super) fn revision(&self) -> Result<Revision> {
        let reading = self.reading()?;
        // Only files: the same comparison is a request to a server for other storages.
        if matches!(reading.state.store.opened(), Opened::File(_)) {
            let compared = reading.state.store.source().read_ranges_at(&mut []);
            compared.map_err(|error| self.at(Error::of_io("read a frame", error)))?;
        }
        Ok(Revision(reading.version()))
    }

    /// Re-reads the metadata. Returns whether the frame has changed.
    pub(super) fn refresh(&mut self) -> Result<bool> {
        if self.last_state().transaction.is_some() {
            // No other handle has changed it.
            return Ok(false);
        }
        match self.refresh_once() {
            Err(error) if self.may_recover(&error) => {
                self.recover().doing(REFRESH)?;
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
        let reloaded = state.reload().doing(REFRESH);
        if reloaded.is_ok() {
            state.version = now;
            self.broken = state.unfinished;
        }
        // If the unread part of an index cannot be compared, it counts as changed.
        let is_same = before.0.is_same(&state.outline, state.store.source()).unwrap_or(false);
        drop(pass);
        reloaded.map_err(|error| self.at(error))?;
        *self.starts.get_mut() = None;
        // If a chunk was replaced by a chunk of the same length, only the version shows the change.
        Ok(!is_same || before.1 != now)
    }

    /// Makes the pass cover all reads and changes until the result is dropped. Returns whether the state was read again.
    pub(super) fn hold<'a>(&mut self, pass: &'a Pass<'_>) -> Result<(HeldPass<'a>, bool)> {
        self.check_file()?;
        let is_old = self.last_state().version != pass.version();
        if is_old {
            let is_alone = self.access != Access::Read;
            let reloaded = self.state.get_mut().reload_or_recover(is_alone).doing(RELOAD);
            reloaded.map_err(|error| self.at(error))?;
            *self.starts.get_mut() = None;
        }
        let kept = pass.hold();
        self.state.get_mut().version = pass.next();
        Ok((kept, is_old))
    }

    /// Discards the changes of the transaction, if the transaction is in progress and `call` started it.
    pub(super) fn roll_back(&mut self, call: &Arc<()>) {
        let state = self.state.get_mut();
        if state.transaction.as_ref().is_some_and(|transaction| transaction.is_of(call)) {
            state.roll_back();
        }
        *self.starts.get_mut() = None;
    }

    /// Drops all fields that were derived from the outline.
    pub(super) fn forget(&mut self) {
        *self.starts.get_mut() = None;
    }

    /// Returns the byte offsets of variable-length chunks, if they are known.
    pub(super) fn starts(&self) -> Option<Arc<Vec<u64>>> {
        self.starts.read().clone()
    }

    /// Stores the byte offsets of the chunks during a read. Each change discards them.
    pub(super) fn set_starts(&self, _: &Reading<'_>, starts: &Arc<Vec<u64>>) {
        *self.starts.write() = Some(Arc::clone(starts));
    }

    /// Marks that a user closure runs during a read or a change of the file, until the guard is dropped.
    pub(super) fn calling(&self) -> Option<Calling<'_>> {
        self.gate.as_ref().map(|gate| gate.calling())
    }

    /// Changes the outline with `work`, and stores the result. `work` returns `None` if there is nothing to change. After
    /// an error nothing has changed.
    pub(super) fn change_and_store<'a>(
        &mut self,
        work: impl FnOnce(&mut State, &mut Vec<u64>) -> Result<Option<Stores<'a>>, Reason>,
    ) -> Result<(), Reason> {
        self.changing(|state, broken| {
            let mut freed = Vec::new();
            // If this fails, nothing has changed.
            let Some(stores) = work(state, &mut freed)? else { return Ok(()) };
            state.commit(stores, &freed).inspect_err(|_| {
                *broken = state.unfinished || state.reload().is_err();
            })?;
            *broken = !state.reclaim();
            Ok(())
        })
    }

    /// Calls `work` with the current state and with the field `broken`. No other handle reads or changes the state
    /// during the call.
    pub(super) fn changing<R>(
        &mut self,
        work: impl FnOnce(&mut State, &mut bool) -> Result<R, Reason>,
    ) -> Result<R, Reason> {
        if self.broken {
            let detail = "an earlier change failed and could not be rolled back";
            return Err(self.error(ErrorKind::InvalidData, detail));
        }
        let gate = self.gate.clone();
        let pass = gate.as_ref().map(|gate| gate.change()).transpose();
        let mut pass = pass.map_err(|error| self.at(error))?;
        self.check_file()?;
        let Self { state, path, broken, starts, .. } = self;
        let path = path.as_deref();
        let at = |reason: Reason| match path {
            Some(path) => reason.at(path),
            None => reason,
        };
        let state = state.get_mut();
        if state.transaction.as_ref().is_some_and(Transaction::is_over) {
            let detail = "it was moved out of its transaction, which has ended: open it again";
            return Err(at(Reason::new(ErrorKind::InvalidArgument, detail)));
        }
        let now = version(pass.as_ref());
        if state.version != now {
            let is_alone = gate.as_ref().is_some_and(|gate| gate.is_locking());
            state.reload_or_recover(is_alone).map_err(at)?;
            state.version = now;
        }
        *starts.get_mut() = None;
        let result = work(state, broken);
        // The version does not change during a transaction, only at its commit. After an error it does change, because
        // the change may have been stored.
        if state.transaction.is_none() {
            state.version = pass.as_mut().map(Pass::changed).unwrap_or_default();
        }
        result.map_err(at)
    }

    /// Checks that the opened file was not replaced or removed, so that no change is lost.
    pub(super) fn check_file(&self) -> Result<()> {
        const CHECK: &str = "change a frame";
        let Some(gate) = &self.gate else { return Ok(()) };
        let failed = |error| self.at(Error::of_io(CHECK, error));
        let links = match self.last_state().store.opened() {
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
                Err(self.error(ErrorKind::NotFound, detail).doing(CHECK))
            }
            Some(count) if count > 1 && gate.is_locking() => {
                let detail = format!(
                    "the file has {count} names (hard links), and a writer that uses another name acquires another lock"
                );
                Err(self.error(ErrorKind::Unsupported, detail).doing(CHECK))
            }
            _ => Ok(()),
        }
    }

    /// Returns the state that this handle has read last. May be called within a read.
    pub(super) fn last_state(&self) -> StateRef<'_> {
        self.state.read()
    }

    /// Returns the current state, which does not change until the result is dropped. Must not be called within another
    /// read.
    #[inline]
    pub(super) fn reading(&self) -> Result<Reading<'_>> {
        match &self.state {
            SharedState::Unlocked(state) if !self.broken => {
                Ok(Reading { state: StateRef::Unlocked(state), _pass: None })
            }
            _ => self.reading_of_file(),
        }
    }

    fn reading_of_file(&self) -> Result<Reading<'_>> {
        if self.broken {
            let detail = "an earlier change failed and could not be rolled back";
            return Err(self.error(ErrorKind::InvalidData, detail).doing("read a frame"));
        }
        let (Some(gate), SharedState::Locked(locked)) = (&self.gate, &self.state) else {
            return Ok(Reading { state: self.state.read(), _pass: None });
        };
        let pass = gate.read().map_err(|error| self.at(error))?;
        let now = pass.version();
        let state = locked.read_recursive();
        if state.version == now {
            return Ok(Reading { state: StateRef::Locked(state), _pass: Some(pass) });
        }
        drop(state);
        if gate.is_locking() {
            self.check_file()?;
        }
        let reloaded = self.reload(locked, now);
        if let Err(error) = reloaded {
            if !self.may_recover(&error) {
                return Err(error);
            }
            drop(pass);
            self.recover().doing(RELOAD)?;
            return self.reading();
        }
        Ok(Reading { state: self.state.read(), _pass: Some(pass) })
    }

    /// Re-reads the state, if another handle has written the version `now`.
    fn reload(&self, state: &RwLock<State>, now: Version) -> Result<()> {
        let mut state = state.write();
        if state.version != now {
            state.reload().doing(RELOAD).map_err(|error| self.at(error))?;
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
    fn recover(&self) -> Result<(), Reason> {
        let (Some(gate), SharedState::Locked(state)) = (&self.gate, &self.state) else {
            return Ok(());
        };
        let mut pass = gate.change().map_err(|error| self.at(error))?;
        self.check_file()?;
        let recovered = state.write().store.recover();
        recovered.map_err(|error| self.at(error))?;
        pass.changed();
        Ok(())
    }
}

fn version(pass: Option<&Pass<'_>>) -> Version {
    pass.map(Pass::version).unwrap_or_default()
}
