//! The lock of a frame, which all readers and writers with locking acquire. C-Blosc2 3.2 introduced this lock.
//!
//! The lock is a lock of the operating system on a separate file, `FILE.b2lock` or `DIRECTORY/.b2lock`: shared for
//! reads, exclusive for changes. Bytes 8 to 15 of this file count the exclusive locks, in native byte order. The count
//! shows whether the frame has changed since the last access of a handle. The lock file is not removed with the frame.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use blosc2_format::ReadAt;
use blosc2_format::directory::LOCK as LOCK_IN_DIRECTORY;
use parking_lot::{Condvar, Mutex};

use crate::bytes::Storage;
use crate::{Error, Result};

const LOCK: &str = "lock a frame";
/// The offset of the counter in the file.
const SEQUENCE_AT: u64 = 8;
/// The number of readers that may share a lock with earlier readers. After that, all readers must release the lock
/// once. Otherwise overlapping readers could block a writer of another program forever.
const MOST_JOINED: usize = 64;
/// How long a reader waits until the other readers release the lock. The time is limited, because another reader may
/// wait for this reader: it may have called the closure in which this reader runs.
const PATIENCE: Duration = Duration::from_millis(10);

/// The lock of one handle of a frame. The threads of the handle share it. The [`Gate`](super::Gate) decides which
/// thread may acquire it.
#[derive(Debug)]
pub(super) struct FrameLock {
    state: Mutex<LockState>,
    freed: Condvar,
}

#[derive(Debug)]
struct LockState {
    /// The lock files for the path of the frame as it was passed, and for its canonical path. A handle of C locks only
    /// the file for the path with which it was opened.
    files: Vec<(PathBuf, File)>,
    /// The number of guards of this handle. All guards share one lock of the operating system.
    holders: usize,
    /// The number of readers that share the lock with earlier readers.
    joined: usize,
    /// The counter when the lock was last acquired.
    sequence: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LockKind {
    Shared,
    Exclusive,
}

impl FrameLock {
    /// Opens the lock file of the frame at `frame`, without locking. Creates the file if it does not exist.
    pub(super) fn open(frame: &Path, is_directory: bool) -> Result<Self> {
        let failed = |error| {
            Error::of_io("open the lock of a frame", error).at(&path_of(frame, is_directory))
        };
        let real = fs::canonicalize(frame).map_err(failed)?;
        let mut files: Vec<(PathBuf, File)> = Vec::new();
        // All handles use the same order: first the canonical path.
        for name in [&*real, frame] {
            let path = path_of(name, is_directory);
            let options =
                File::options().read(true).write(true).create(true).truncate(false).open(&path);
            let file = options.map_err(failed)?;
            let path = fs::canonicalize(path).map_err(failed)?;
            if files.iter().all(|(other, _)| *other != path) {
                files.push((path, file));
            }
        }
        let state = LockState { files, holders: 0, joined: 0, sequence: 0 };
        Ok(Self { state: Mutex::new(state), freed: Condvar::new() })
    }

    /// Acquires the lock: waits until no other handle changes the frame, and for an exclusive lock also until no other
    /// handle reads it. Waits at most `limit`. An exclusive lock increments the counter. While this handle has the
    /// lock, it may acquire only shared locks.
    pub(super) fn take(&self, kind: LockKind, limit: Option<Duration>) -> Result<Guard<'_>> {
        let mut state = self.state.lock();
        if state.holders > 0 && state.joined >= MOST_JOINED {
            let end = Instant::now() + PATIENCE;
            while state.holders > 0 && !self.freed.wait_until(&mut state, end).timed_out() {}
            state.joined = 0;
        }
        if state.holders > 0 {
            state.joined += 1;
            state.holders += 1;
            return Ok(Guard { lock: self, found: state.sequence, sequence: state.sequence });
        }
        // The other threads of the handle wait for the mutex during this call. They also need this lock.
        let found = state.take(kind, limit)?;
        (state.holders, state.joined) = (1, 0);
        Ok(Guard { lock: self, found, sequence: state.sequence })
    }
}

impl LockState {
    /// Acquires all locks of the operating system, or none after an error. Returns the counter before this call.
    fn take(&mut self, kind: LockKind, limit: Option<Duration>) -> Result<u64> {
        let mut found = 0u64;
        for taken in 0..self.files.len() {
            let (path, file) = &mut self.files[taken];
            let counted = lock(file, kind, limit).and_then(|()| {
                let counted = count(file, kind);
                counted.inspect_err(|_| {
                    let _ = file.unlock();
                })
            });
            match counted {
                // The sum shows a change of any counter.
                Ok(counted) => found = found.wrapping_add(counted),
                Err(error) => {
                    let error = match error.kind() {
                        ErrorKind::WouldBlock => {
                            Error::new(crate::ErrorKind::Busy, LOCK, NOT_WAITED).at(&*path)
                        }
                        _ => Error::of_io(LOCK, error).at(&*path),
                    };
                    self.unlock(taken);
                    return Err(error);
                }
            }
        }
        let changes = if kind == LockKind::Exclusive { self.files.len() as u64 } else { 0 };
        self.sequence = found.wrapping_add(changes);
        Ok(found)
    }

    /// Releases the first `count` locks of the operating system.
    fn unlock(&mut self, count: usize) {
        for (_, file) in self.files[..count].iter().rev() {
            // After an error, nothing can be done. Closing the file releases the lock too.
            let _ = file.unlock();
        }
    }
}

const NOT_WAITED: &str = "another program has locked it; this program stopped waiting, because it holds a lock itself \
    while one of its closures runs, and the other program may be waiting for that lock";

/// Waits for a lock of the operating system, for at most `limit`.
fn lock(file: &File, kind: LockKind, limit: Option<Duration>) -> io::Result<()> {
    let end = limit.map(|limit| Instant::now() + limit);
    loop {
        let taken = match (kind, end) {
            (LockKind::Shared, None) => file.lock_shared(),
            (LockKind::Exclusive, None) => file.lock(),
            (LockKind::Shared, Some(_)) => file.try_lock_shared().map_err(io::Error::from),
            (LockKind::Exclusive, Some(_)) => file.try_lock().map_err(io::Error::from),
        };
        match taken {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error)
                if error.kind() == ErrorKind::WouldBlock
                    && end.is_some_and(|end| Instant::now() < end) =>
            {
                thread::sleep(Duration::from_millis(1));
            }
            taken => return taken,
        }
    }
}

/// Returns the counter of a locked file. Increments the counter in the file if the lock is exclusive.
fn count(file: &mut File, kind: LockKind) -> io::Result<u64> {
    let mut bytes = [0; 8];
    let found = match file.read_exact_at(SEQUENCE_AT, &mut bytes) {
        Ok(()) => u64::from_ne_bytes(bytes),
        // The frame has not been changed yet.
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => 0,
        Err(error) => return Err(error),
    };
    if kind == LockKind::Exclusive {
        file.write_all_at(SEQUENCE_AT, &found.wrapping_add(1).to_ne_bytes())?;
    }
    Ok(found)
}

/// Returns the path of the lock file of the frame at `frame`.
pub(super) fn path_of(frame: &Path, is_directory: bool) -> PathBuf {
    if is_directory {
        return frame.join(LOCK_IN_DIRECTORY);
    }
    let mut name = OsString::from(frame);
    name.push(".b2lock");
    name.into()
}

/// A lock that is held until this value is dropped.
#[derive(Debug)]
pub(crate) struct Guard<'a> {
    lock: &'a FrameLock,
    /// The counter when the lock was acquired. If it differs from the last [`sequence`](Self::sequence) of the handle,
    /// another handle has changed the frame.
    pub(super) found: u64,
    /// The counter now. Under an exclusive lock, it includes the change of this handle.
    pub(super) sequence: u64,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        let mut state = self.lock.state.lock();
        state.holders -= 1;
        if state.holders == 0 {
            let count = state.files.len();
            state.unlock(count);
            self.lock.freed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use blosc2_sys as sys;

    use super::*;

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let frame = folder.path().join("a.b2frame");
        fs::write(&frame, b"").unwrap();
        (folder, frame)
    }

    /// Returns whether another handle could acquire a shared lock and an exclusive lock now.
    fn is_free(frame: &Path) -> (bool, bool) {
        let file = File::open(path_of(frame, false)).unwrap();
        let shared = file.try_lock_shared().is_ok();
        // The standard library unlocks twice on Windows. Wine reports the second call as an error.
        let _ = file.unlock();
        (shared, file.try_lock().is_ok())
    }

    #[test]
    fn the_file_is_where_c_has_it() {
        let (folder, frame) = folder();
        FrameLock::open(&frame, false).unwrap();
        FrameLock::open(folder.path(), true).unwrap();
        let mut names: Vec<_> =
            folder.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, [".b2lock", "a.b2frame", "a.b2frame.b2lock"]);
        let error = FrameLock::open(&folder.path().join("none/a"), false).unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::NotFound);
    }

    #[test]
    fn changes_are_counted_at_byte_8() {
        let (_folder, frame) = folder();
        let (one, two) = (FrameLock::open(&frame, false), FrameLock::open(&frame, false));
        let (one, two) = (one.unwrap(), two.unwrap());
        let numbers = |guard: Guard<'_>| (guard.found, guard.sequence);
        assert_eq!(numbers(one.take(LockKind::Shared, None).unwrap()), (0, 0));
        assert_eq!(numbers(one.take(LockKind::Exclusive, None).unwrap()), (0, 1));
        assert_eq!(numbers(two.take(LockKind::Exclusive, None).unwrap()), (1, 2));
        assert_eq!(numbers(one.take(LockKind::Shared, None).unwrap()), (2, 2));
        let bytes = fs::read(path_of(&frame, false)).unwrap();
        assert_eq!(bytes, [[0; 8], 2u64.to_ne_bytes()].concat());
    }

    #[test]
    fn readers_share_one_lock_until_the_last_lets_go() {
        let (_folder, frame) = folder();
        let lock = FrameLock::open(&frame, false).unwrap();
        assert_eq!(is_free(&frame), (true, true));
        let (first, second) = (
            lock.take(LockKind::Shared, None).unwrap(),
            lock.take(LockKind::Shared, None).unwrap(),
        );
        assert_eq!(is_free(&frame), (true, false));
        drop(first);
        assert_eq!(is_free(&frame), (true, false));
        drop(second);
        let writer = lock.take(LockKind::Exclusive, None).unwrap();
        assert_eq!(is_free(&frame), (false, false));
        drop(writer);
        assert_eq!(is_free(&frame), (true, true));
    }

    #[cfg(unix)]
    #[test]
    fn a_lock_by_way_of_a_link_is_that_of_the_file_and_of_the_link() {
        let (folder, frame) = folder();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&frame, &link).unwrap();
        let (by_name, by_link) = (FrameLock::open(&frame, false), FrameLock::open(&link, false));
        let (by_name, by_link) = (by_name.unwrap(), by_link.unwrap());
        let guard = by_link.take(LockKind::Exclusive, None).unwrap();
        assert_eq!([is_free(&frame), is_free(&link)], [(false, false); 2]);
        drop(guard);
        let seen = by_link.take(LockKind::Shared, None).unwrap().found;
        drop(by_name.take(LockKind::Exclusive, None).unwrap());
        assert_ne!(by_link.take(LockKind::Shared, None).unwrap().found, seen);
    }

    #[test]
    fn more_readers_than_may_join_are_only_slower() {
        let (_folder, frame) = folder();
        let lock = FrameLock::open(&frame, false).unwrap();
        let guards: Vec<_> =
            (0..3 * MOST_JOINED).map(|_| lock.take(LockKind::Shared, None).unwrap()).collect();
        assert_eq!(is_free(&frame), (true, false));
        drop(guards);
        assert_eq!(is_free(&frame), (true, true));
    }

    /// A handle of C with locking, on a new frame.
    struct C(*mut sys::blosc2_schunk);

    impl C {
        fn create(path: &Path) -> Self {
            crate::chunk::init::init().unwrap();
            let path = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
            let mut cparams = sys::blosc2_cparams_defaults();
            let mut dparams = sys::blosc2_dparams_defaults();
            let mut locking = sys::blosc2_stdio_params { locking: true };
            let mut io = sys::blosc2_io {
                id: sys::BLOSC2_IO_FILESYSTEM as u8,
                name: c"filesystem".as_ptr(),
                params: (&raw mut locking).cast(),
            };
            let mut storage = sys::blosc2_storage {
                contiguous: true,
                urlpath: path.as_ptr().cast_mut(),
                cparams: &mut cparams,
                dparams: &mut dparams,
                io: &mut io,
            };
            // SAFETY: C copies what the storage points to, and keeps of `params` that locking is on.
            let schunk = unsafe { sys::blosc2_schunk_new(&mut storage) };
            assert!(!schunk.is_null());
            Self(schunk)
        }

        fn lock(&self) {
            // SAFETY: the super-chunk is live.
            assert_eq!(unsafe { sys::blosc2_schunk_lock(self.0) }, 0);
        }

        fn unlock(&self) {
            // SAFETY: the super-chunk is live.
            assert_eq!(unsafe { sys::blosc2_schunk_unlock(self.0) }, 0);
        }
    }

    impl Drop for C {
        fn drop(&mut self) {
            // SAFETY: the super-chunk is live, and nothing uses it after this.
            unsafe { sys::blosc2_schunk_free(self.0) };
        }
    }

    #[test]
    fn c_takes_the_same_lock_and_counts_in_the_same_place() {
        let (_folder, frame) = folder();
        fs::remove_file(&frame).unwrap();
        let c = C::create(&frame);
        let lock = FrameLock::open(&frame, false).unwrap();
        let before = lock.take(LockKind::Shared, None).unwrap().sequence;
        c.lock();
        assert_eq!(is_free(&frame), (false, false));
        c.unlock();
        assert_eq!(is_free(&frame), (true, true));
        let guard = lock.take(LockKind::Exclusive, None).unwrap();
        assert_eq!((guard.found, guard.sequence), (before + 1, before + 2));
        drop(guard);
        c.lock();
        c.unlock();
        assert_eq!(lock.take(LockKind::Shared, None).unwrap().found, before + 3);
    }
}
