//! Access control: only this module decides which handles may read and change a file.
//!
//! Each handle of a file or directory has a [`Gate`]. Within a program, all gates of one file share a state. The
//! identity of the opened file determines the state.
//!
//! - A file may have one handle that may change it, or any number of such handles if all of them lock the file
//!   ([`Claim`]). This is checked when a handle is opened, and when a file is replaced.
//! - Several reads, or one change, may run at the same time ([`Pass`]). A request for a pass waits first for the
//!   handles of this program, and then, with locking, for other programs. Because of this order, no thread waits for
//!   another handle of this program while it holds the lock of the operating system.
//! - A read never waits for another read. It waits for a waiting change only for a short time ([`COURTESY`]). Therefore
//!   reads may be nested.
//! - User closures run while a pass is held ([`Gate::calling`]). A closure may request another pass, on any thread.
//!   This module cannot distinguish a request that would deadlock from a request that only has to wait. Therefore a
//!   request waits at most [`PATIENCE`] for one call of a closure, and then fails with `Busy`.
//! - A call that needs passes of two files requests them in the order of the identities of the files.

mod identity;
mod lock;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::{Error, ErrorKind, Result};

pub(crate) use identity::{FileId, links};
use lock::{FrameLock, LockKind};

const ACCESS: &str = "access a frame";
/// How long a request waits for one call of a closure.
const PATIENCE: Duration = Duration::from_millis(700);
/// How often a waiting request checks whether closures make progress.
const LOOK: Duration = Duration::from_millis(50);
/// How long a new read waits for a waiting change. Without this wait, a sequence of overlapping reads could block the
/// change forever. The time is short, because the new read may be part of a read for which the change waits.
const COURTESY: Duration = Duration::from_millis(100);
/// This time while closures run. It is shorter, because reads in closures are part of other reads.
const COURTESY_OF_CLOSURES: Duration = Duration::from_millis(1);

/// The access of a handle to a file, and the other handles that it excludes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Claim {
    Read,
    /// Change the file, as the only handle that may change it.
    Write,
    /// Create a frame in the file, as the only handle of the file.
    Make,
    /// Change the file, together with other handles that lock it.
    WriteLocked,
}

/// The access of a handle to a file that is open in this program.
#[derive(Debug)]
pub(super) struct Gate {
    id: FileId,
    file: Arc<OpenFile>,
    claim: Claim,
    /// Whether the file had a name when it was claimed. Some temporary files never have a name.
    has_name: bool,
    lock: Option<FrameLock>,
    /// The version, while a [held](Pass::hold) pass covers several reads and changes.
    held: Mutex<Option<Version>>,
    /// A file that is open while the gate exists, so that no other file gets its identity.
    opened: Option<File>,
}

/// The number of changes of a file: `here` counts the changes by handles of this program, `locked` the changes by all
/// handles that lock the file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Version {
    here: u64,
    locked: u64,
}

/// The state that all handles of a file in this program share.
#[derive(Debug, Default)]
struct OpenFile {
    state: Mutex<OpenFileState>,
    freed: Condvar,
}

#[derive(Debug, Default)]
struct OpenFileState {
    gates: usize,
    has_writer: bool,
    locked_writers: usize,
    readers: usize,
    is_changing: bool,
    /// The number of waiting changes.
    waiting: usize,
    changes: u64,
    /// The numbers of the running calls of closures, and the number of all calls up to now.
    calls: BTreeSet<u64>,
    all_calls: u64,
    /// The number of reads and changes under a [held](Pass::hold) pass.
    steps: u64,
}

/// The files that are open.
static OPEN: Mutex<BTreeMap<FileId, Arc<OpenFile>>> = Mutex::new(BTreeMap::new());
/// The number of closures that are running while a lock of the operating system is held. Another program may be waiting
/// for this lock.
static CALLS_WITH_LOCK: AtomicUsize = AtomicUsize::new(0);

impl Gate {
    /// Claims an opened file.
    ///
    /// # Errors
    /// [`ErrorKind::Busy`]: the claim of another handle excludes this claim.
    pub(crate) fn new(id: FileId, claim: Claim) -> Result<Self> {
        let mut open = OPEN.lock();
        let file = Arc::clone(open.entry(id.clone()).or_default());
        let mut state = file.state.lock();
        let busy = match claim {
            Claim::Make if state.gates > 0 => Some("drop that handle first"),
            // This message also applies to replacing, repairing and appending to a file, which cannot use locking.
            Claim::Write if state.locked_writers > 0 => Some(
                "drop that handle first; only handles that are opened with locking share a file",
            ),
            Claim::Write if state.has_writer => {
                Some("drop that handle first, or open both with locking")
            }
            Claim::WriteLocked if state.has_writer => Some("that handle does not use locking"),
            _ => None,
        };
        if let Some(why) = busy {
            let detail = format!("this program already has it open: {why}");
            return Err(Error::new(ErrorKind::Busy, "open a frame", detail));
        }
        match claim {
            Claim::Read => {}
            Claim::Write | Claim::Make => state.has_writer = true,
            Claim::WriteLocked => state.locked_writers += 1,
        }
        state.gates += 1;
        drop(state);
        Ok(Self {
            id,
            file,
            claim,
            has_name: true,
            lock: None,
            held: Mutex::new(None),
            opened: None,
        })
    }

    /// Claims the file at `path`, or the target of a link at `path`. Then checks that the path still refers to this
    /// file. After that, no handle of this program replaces the file.
    ///
    /// # Errors
    /// - [`ErrorKind::Busy`]: the claim of another handle excludes this claim, or the file is replaced repeatedly;
    /// - [`ErrorKind::NotFound`], [`ErrorKind::Io`]: the file cannot be opened.
    pub(crate) fn of_path(path: &Path, claim: Claim) -> Result<Self> {
        const TRIES: usize = 100;
        let io = |error| Error::of_io("open a frame", error).at(path);
        for _ in 0..TRIES {
            let metadata = path.metadata().map_err(io)?;
            // Opening a pipe would block. Other files are opened: if a file is not open, it may be removed, and another
            // file may then get its identity.
            let is_opened = metadata.is_file() || metadata.is_dir();
            let opened = is_opened.then(|| File::open(path).ok()).flatten();
            let id = match &opened {
                Some(opened) => FileId::of_opened(opened, path),
                None => FileId::of_path(path),
            };
            let gate = Self::new(id.map_err(io)?, claim).map_err(|error| error.at(path))?;
            if FileId::of_path(path).map_err(io)? == gate.id {
                // Not every Windows replaces a file that is open. NTFS does not soon use a file index again.
                return Ok(gate.with_open_file(opened.filter(|_| cfg!(unix))));
            }
        }
        let detail = "other programs replace it repeatedly while it is opened";
        Err(Error::new(ErrorKind::Busy, "open a frame", detail).at(path))
    }

    /// Sets whether the file has a name.
    pub(super) fn named(mut self, has_name: bool) -> Self {
        self.has_name = has_name;
        self
    }

    /// Returns the number of names of the opened file; `None` if the file never had a name.
    pub(super) fn names(&self, opened: &File) -> io::Result<Option<u64>> {
        Ok(Some(links(opened)?).filter(|&count| count > 0 || self.has_name))
    }

    /// Returns whether the handle has a [held](Pass::hold) pass.
    pub(super) fn is_held(&self) -> bool {
        self.held.lock().is_some()
    }

    /// Counts a change that needed no pass, such as the creation of the file.
    pub(super) fn count_creation(&self) -> Version {
        let mut state = self.file.state.lock();
        state.changes += 1;
        Version { here: state.changes, locked: 0 }
    }

    /// Stores an open file or directory. No other file can get its identity while the gate exists.
    pub(super) fn with_open_file(mut self, opened: Option<File>) -> Self {
        self.opened = opened;
        self
    }

    /// Sets that each pass acquires the lock of the frame at `path`. Other programs that use locking respect this lock.
    pub(super) fn with_lock(mut self, path: &Path, is_directory: bool) -> Result<Self> {
        self.lock = Some(FrameLock::open(path, is_directory)?);
        Ok(self)
    }

    /// Sets that each pass acquires the lock of the frame at `path`, if the lock file exists.
    pub(super) fn with_lock_if_there(self, path: &Path, is_directory: bool) -> Result<Self> {
        if has_lock(path, is_directory) { self.with_lock(path, is_directory) } else { Ok(self) }
    }

    pub(super) fn id(&self) -> &FileId {
        &self.id
    }

    pub(super) fn is_locking(&self) -> bool {
        self.lock.is_some()
    }

    /// Waits until no handle changes the file.
    ///
    /// # Errors
    /// - [`ErrorKind::Busy`]: a user closure runs under a pass of the file and makes no progress;
    /// - [`ErrorKind::Io`]: the file cannot be locked.
    pub(crate) fn read(&self) -> Result<Pass<'_>> {
        self.pass(LockKind::Shared)
    }

    /// Waits until no handle reads or changes the file.
    ///
    /// # Errors
    /// The errors of [`read`](Self::read).
    pub(super) fn change(&self) -> Result<Pass<'_>> {
        self.pass(LockKind::Exclusive)
    }

    fn pass(&self, kind: LockKind) -> Result<Pass<'_>> {
        if let Some(version) = *self.held.lock() {
            // Waiting requests see that the closure makes progress.
            self.file.state.lock().steps += 1;
            return Ok(Pass { gate: self, kind: None, lock: None, version, next: version });
        }
        let alone = kind == LockKind::Exclusive;
        let mut state = self.file.state.lock();
        if alone {
            state.waiting += 1;
            let waited = self.wait(&mut state, |state| state.is_changing || state.readers > 0);
            state.waiting -= 1;
            waited?;
            state.is_changing = true;
        } else {
            if state.waiting > 0 {
                let courtesy = if state.calls.is_empty() { COURTESY } else { COURTESY_OF_CLOSURES };
                let end = Instant::now() + courtesy;
                while state.waiting > 0 && !self.file.freed.wait_until(&mut state, end).timed_out()
                {
                }
            }
            self.wait(&mut state, |state| state.is_changing)?;
            state.readers += 1;
        }
        let version = Version { here: state.changes, locked: 0 };
        drop(state);
        let mut pass = Pass { gate: self, kind: Some(kind), lock: None, version, next: version };
        if let Some(lock) = &self.lock {
            let limit = (CALLS_WITH_LOCK.load(Ordering::Relaxed) > 0).then_some(PATIENCE);
            let guard = lock.take(kind, limit)?;
            (pass.version.locked, pass.next.locked) = (guard.found, guard.sequence);
            pass.lock = Some(guard);
        }
        Ok(pass)
    }

    /// Waits while `is_taken` returns `true`.
    fn wait(
        &self,
        state: &mut MutexGuard<'_, OpenFileState>,
        is_taken: impl Fn(&OpenFileState) -> bool,
    ) -> Result<()> {
        if !is_taken(state) {
            return Ok(());
        }
        let oldest = |state: &OpenFileState| (state.calls.first().copied(), state.steps);
        let (mut last, mut since) = (oldest(state), Instant::now());
        while is_taken(state) {
            self.file.freed.wait_for(state, LOOK);
            let now = oldest(state);
            if now.0.is_none() || now != last {
                (last, since) = (now, Instant::now());
            } else if since.elapsed() >= PATIENCE {
                let detail = "a closure that this program runs during another access to it has not returned, and may \
                    be waiting for this access";
                return Err(Error::new(ErrorKind::Busy, ACCESS, detail));
            }
        }
        Ok(())
    }

    /// Waits until no other program uses the frame, before its file is replaced. Handles of this program continue to
    /// use the old file.
    ///
    /// # Errors
    /// The errors of [`read`](Self::read).
    pub(crate) fn replace(&self) -> Result<Option<lock::Guard<'_>>> {
        let Some(lock) = &self.lock else { return Ok(None) };
        // This call may be in a closure of a read that holds the lock.
        let is_read = self.file.state.lock().readers > 0;
        let is_bounded = is_read || CALLS_WITH_LOCK.load(Ordering::Relaxed) > 0;
        lock.take(LockKind::Exclusive, is_bounded.then_some(PATIENCE)).map(Some)
    }

    /// Marks that a user closure runs under a pass of this gate, until the guard is dropped.
    pub(super) fn calling(&self) -> Calling<'_> {
        let mut state = self.file.state.lock();
        state.all_calls += 1;
        let number = state.all_calls;
        state.calls.insert(number);
        if self.lock.is_some() {
            CALLS_WITH_LOCK.fetch_add(1, Ordering::Relaxed);
        }
        Calling { gate: self, number }
    }
}

/// Returns whether there is a lock file for the frame at `path`, or for the target of the link at `path`.
pub(super) fn has_lock(path: &Path, is_directory: bool) -> bool {
    let is_there = |path: &Path| lock::path_of(path, is_directory).is_file();
    is_there(path) || fs::canonicalize(path).is_ok_and(|real| is_there(&real))
}

impl Drop for Gate {
    fn drop(&mut self) {
        let mut open = OPEN.lock();
        let mut state = self.file.state.lock();
        match self.claim {
            Claim::Read => {}
            Claim::Write | Claim::Make => state.has_writer = false,
            Claim::WriteLocked => state.locked_writers -= 1,
        }
        state.gates -= 1;
        if state.gates == 0 {
            open.remove(&self.id);
        }
    }
}

/// The right to read or change a file, until this value is dropped.
#[derive(Debug)]
pub(super) struct Pass<'a> {
    gate: &'a Gate,
    /// `None` while another pass of the same handle is [held](Pass::hold).
    kind: Option<LockKind>,
    lock: Option<lock::Guard<'a>>,
    version: Version,
    next: Version,
}

impl Pass<'_> {
    /// Returns the version of the file when the pass was acquired.
    pub(crate) fn version(&self) -> Version {
        self.version
    }

    /// Returns the version that includes the change that the lock counted when the pass was acquired.
    pub(super) fn next(&self) -> Version {
        self.next
    }

    /// Counts a change, and returns the new version.
    pub(super) fn changed(&mut self) -> Version {
        let mut state = self.gate.file.state.lock();
        state.changes += 1;
        self.next.here = state.changes;
        if self.kind.is_none() {
            *self.gate.held.lock() = Some(self.next);
        }
        self.next
    }

    /// Makes this pass cover all passes that the handle requests until the guard is dropped.
    pub(super) fn hold(&self) -> HeldPass<'_> {
        *self.gate.held.lock() = Some(self.next);
        HeldPass(self.gate)
    }

    /// Returns whether another, kept pass of the handle covers this pass.
    pub(super) fn is_part(&self) -> bool {
        self.kind.is_none()
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        // The lock of the operating system is released first.
        self.lock = None;
        let Some(kind) = self.kind else { return };
        let mut state = self.gate.file.state.lock();
        match kind {
            LockKind::Shared => state.readers -= 1,
            LockKind::Exclusive => state.is_changing = false,
        }
        if state.readers == 0 {
            self.gate.file.freed.notify_all();
        }
    }
}

/// A pass that covers all reads and changes of a handle. Created by [`Pass::hold`].
#[derive(Debug)]
pub(super) struct HeldPass<'a>(&'a Gate);

impl Drop for HeldPass<'_> {
    fn drop(&mut self) {
        *self.0.held.lock() = None;
    }
}

/// A running user closure. Created by [`Gate::calling`].
#[derive(Debug)]
pub(super) struct Calling<'a> {
    gate: &'a Gate,
    number: u64,
}

impl Drop for Calling<'_> {
    fn drop(&mut self) {
        self.gate.file.state.lock().calls.remove(&self.number);
        if self.gate.lock.is_some() {
            CALLS_WITH_LOCK.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests;
