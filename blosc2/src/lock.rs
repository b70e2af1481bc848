//! The lock beside a frame, which all of its readers and writers take that ask for one, as C-Blosc2 3.2
//! introduced it.
//!
//! A file of its own, `FILE.b2lock` or `DIRECTORY/.b2lock`, is locked: shared to read, exclusive to change.
//! Eight of its bytes, from byte 8 on and in the machine's order, count how often it was locked exclusively,
//! which tells a handle that the frame has been changed since it looked. The file stays when the frame goes.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use blosc2_format::ReadAt;
use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::bytes::Storage;
use crate::{Error, Result};

/// Where the counter is in the file.
const SEQUENCE_AT: u64 = 8;
/// So many readers may join others that have the lock before all have to let go of it once: a writer
/// elsewhere would wait for ever for readers that follow each other closely.
const MOST_JOINED: usize = 64;

/// The lock of one handle of a frame; its threads share it.
#[derive(Debug)]
pub(crate) struct FrameLock {
    path: PathBuf,
    state: Mutex<State>,
    freed: Condvar,
    /// While one call keeps the lock for several others: what it has counted.
    held: Mutex<Option<u64>>,
}

#[derive(Debug)]
struct State {
    file: File,
    /// Guards of this handle that read now. The system knows of one lock for the whole handle.
    readers: usize,
    /// How many have come to those that were there.
    joined: usize,
    writing: bool,
    waiting_writers: usize,
    /// The counter when the lock was taken last.
    sequence: u64,
}

impl FrameLock {
    /// The lock of the frame at `frame`, not taken yet; its file is made where there is none.
    pub(crate) fn open(frame: &Path, is_directory: bool) -> Result<Self> {
        let path = Self::path_of(frame, is_directory);
        let file = File::options().read(true).write(true).create(true).truncate(false).open(&path);
        let file =
            file.map_err(|error| Error::from_io("open the lock of a frame", &path, error))?;
        let state =
            State { file, readers: 0, joined: 0, writing: false, waiting_writers: 0, sequence: 0 };
        let (freed, held) = (Condvar::new(), Mutex::new(None));
        Ok(Self { path, state: Mutex::new(state), freed, held })
    }

    /// Where the lock of the frame at `frame` is, if there is one.
    pub(crate) fn path_of(frame: &Path, is_directory: bool) -> PathBuf {
        if is_directory {
            return frame.join(".b2lock");
        }
        let mut name = OsString::from(frame);
        name.push(".b2lock");
        name.into()
    }

    /// What [`hold`](Self::hold) has set.
    pub(crate) fn held(&self) -> Option<u64> {
        *self.held.lock()
    }

    /// Says that the handle has the lock for a while, or no more.
    pub(crate) fn hold(&self, sequence: Option<u64>) {
        *self.held.lock() = sequence;
    }

    /// Waits until nobody changes the frame. A thread that has a guard of this handle must not ask for
    /// another one.
    pub(crate) fn shared(&self) -> Result<Guard<'_>> {
        let mut state = self.state.lock();
        while state.writing
            || state.waiting_writers > 0
            || (state.readers > 0 && state.joined >= MOST_JOINED)
        {
            self.freed.wait(&mut state);
        }
        if state.readers == 0 {
            self.take(&mut state, File::lock_shared)?;
            state.joined = 0;
        } else {
            state.joined += 1;
        }
        state.readers += 1;
        Ok(Guard { lock: self, found: state.sequence, sequence: state.sequence })
    }

    /// Waits until nobody reads or changes the frame, and counts one more change. A thread that has a
    /// guard of this handle must not ask for another one.
    pub(crate) fn exclusive(&self) -> Result<Guard<'_>> {
        let mut state = self.state.lock();
        state.waiting_writers += 1;
        while state.writing || state.readers > 0 {
            self.freed.wait(&mut state);
        }
        state.waiting_writers -= 1;
        let taken = self.take(&mut state, File::lock).and_then(|()| {
            let (found, sequence) = (state.sequence, state.sequence.wrapping_add(1));
            let counted = state.file.write_all_at(SEQUENCE_AT, &sequence.to_ne_bytes());
            counted.map_err(|error| {
                let _ = state.file.unlock();
                self.error("count a change of a frame in its lock", error)
            })?;
            state.sequence = sequence;
            Ok(found)
        });
        match taken {
            Ok(found) => {
                state.writing = true;
                Ok(Guard { lock: self, found, sequence: state.sequence })
            }
            Err(error) => {
                self.freed.notify_all();
                Err(error)
            }
        }
    }

    /// Takes the lock of the system, while no thread has it, and reads the counter.
    ///
    /// The other threads wait for the mutex meanwhile: they could not go on either.
    fn take(
        &self,
        state: &mut MutexGuard<'_, State>,
        lock: fn(&File) -> io::Result<()>,
    ) -> Result<()> {
        loop {
            match lock(&state.file) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                taken => break taken,
            }
        }
        .map_err(|error| self.error("lock a frame", error))?;
        let mut bytes = [0; 8];
        let sequence = match state.file.read_exact_at(SEQUENCE_AT, &mut bytes) {
            Ok(()) => u64::from_ne_bytes(bytes),
            // Nobody has changed the frame yet.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => 0,
            Err(error) => {
                let _ = state.file.unlock();
                return Err(self.error("read the lock of a frame", error));
            }
        };
        state.sequence = sequence;
        Ok(())
    }

    fn error(&self, doing: &str, error: io::Error) -> Error {
        Error::from_io(doing, &self.path, error)
    }
}

/// The lock as long as this lives.
#[derive(Debug)]
pub(crate) struct Guard<'a> {
    lock: &'a FrameLock,
    found: u64,
    sequence: u64,
}

impl Guard<'_> {
    /// How many changes had been counted when the lock was taken: others than the handle's last
    /// [`sequence`](Self::sequence) mean that somebody else has changed the frame.
    pub(crate) fn found(&self) -> u64 {
        self.found
    }

    /// How many there are now: one more under an exclusive lock, which is the handle's own change.
    pub(crate) fn sequence(&self) -> u64 {
        self.sequence
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        let mut state = self.lock.state.lock();
        if state.writing {
            state.writing = false;
        } else {
            state.readers -= 1;
        }
        if state.readers == 0 {
            // Closing the file is the other way to let go of it; nothing can be done here.
            let _ = state.file.unlock();
            self.lock.freed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::thread;

    use blosc2_sys as sys;

    use super::*;

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let frame = folder.path().join("a.b2frame");
        (folder, frame)
    }

    /// Whether another handle could get the lock now.
    fn is_free(frame: &Path) -> (bool, bool) {
        let other = FrameLock::open(frame, false).unwrap();
        let state = other.state.lock();
        let shared = state.file.try_lock_shared().is_ok();
        state.file.unlock().unwrap();
        let exclusive = state.file.try_lock().is_ok();
        (shared, exclusive)
    }

    #[test]
    fn the_file_is_where_c_has_it() {
        let (folder, frame) = folder();
        FrameLock::open(&frame, false).unwrap();
        FrameLock::open(folder.path(), true).unwrap();
        let mut names: Vec<_> =
            folder.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, [".b2lock", "a.b2frame.b2lock"]);
        let error = FrameLock::open(&folder.path().join("none/a"), false).unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::NotFound);
    }

    #[test]
    fn changes_are_counted_at_byte_8() {
        let (_folder, frame) = folder();
        let (one, two) = (FrameLock::open(&frame, false), FrameLock::open(&frame, false));
        let (one, two) = (one.unwrap(), two.unwrap());
        let numbers = |guard: Guard<'_>| (guard.found(), guard.sequence());
        assert_eq!(numbers(one.shared().unwrap()), (0, 0));
        assert_eq!(numbers(one.exclusive().unwrap()), (0, 1));
        assert_eq!(numbers(two.exclusive().unwrap()), (1, 2));
        assert_eq!(numbers(one.shared().unwrap()), (2, 2));
        let bytes = std::fs::read(one.path.clone()).unwrap();
        assert_eq!(bytes, [[0; 8], 2u64.to_ne_bytes()].concat());
    }

    #[test]
    fn readers_share_one_lock_until_the_last_lets_go() {
        let (_folder, frame) = folder();
        let lock = FrameLock::open(&frame, false).unwrap();
        assert_eq!(is_free(&frame), (true, true));
        let (first, second) = (lock.shared().unwrap(), lock.shared().unwrap());
        assert_eq!(is_free(&frame), (true, false));
        drop(first);
        assert_eq!(is_free(&frame), (true, false));
        drop(second);
        let writer = lock.exclusive().unwrap();
        assert_eq!(is_free(&frame), (false, false));
        drop(writer);
        assert_eq!(is_free(&frame), (true, true));
    }

    /// Threads of two handles change two numbers that have to be alike, and readers look at them.
    #[test]
    fn nobody_sees_half_of_a_change() {
        let (_folder, frame) = folder();
        let locks = [(); 2].map(|()| FrameLock::open(&frame, false).unwrap());
        let numbers = [AtomicUsize::new(0), AtomicUsize::new(0)];
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let readers: Vec<_> = (0..4)
                .map(|each| {
                    let (lock, numbers, done) = (&locks[each % 2], &numbers, &done);
                    scope.spawn(move || {
                        let mut reads = 0;
                        while !done.load(Ordering::Relaxed) || reads == 0 {
                            let guard = lock.shared().unwrap();
                            let first = numbers[0].load(Ordering::Relaxed);
                            thread::yield_now();
                            assert_eq!(numbers[1].load(Ordering::Relaxed), first);
                            assert_eq!(guard.sequence(), first as u64);
                            reads += 1;
                        }
                    })
                })
                .collect();
            let writers = locks.each_ref().map(|lock| {
                let numbers = &numbers;
                scope.spawn(move || {
                    for _ in 0..200 {
                        let _guard = lock.exclusive().unwrap();
                        for number in numbers {
                            number.store(number.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                            thread::yield_now();
                        }
                    }
                })
            });
            writers.into_iter().for_each(|writer| writer.join().unwrap());
            done.store(true, Ordering::Relaxed);
            readers.into_iter().for_each(|reader| reader.join().unwrap());
        });
        assert_eq!(locks[0].shared().unwrap().sequence(), 400);
    }
    /// A handle of C's with locking, on a frame that it makes.
    struct C(*mut sys::blosc2_schunk);

    impl C {
        fn create(path: &Path) -> Self {
            crate::init::init().unwrap();
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
            // SAFETY: the super-chunk is live, and nobody uses it after this.
            unsafe { sys::blosc2_schunk_free(self.0) };
        }
    }

    #[test]
    fn c_takes_the_same_lock_and_counts_in_the_same_place() {
        let (_folder, frame) = folder();
        let c = C::create(&frame);
        let lock = FrameLock::open(&frame, false).unwrap();
        let before = lock.shared().unwrap().sequence();
        c.lock();
        assert_eq!(is_free(&frame), (false, false));
        c.unlock();
        assert_eq!(is_free(&frame), (true, true));
        let guard = lock.exclusive().unwrap();
        assert_eq!((guard.found(), guard.sequence()), (before + 1, before + 2));
        drop(guard);
        c.lock();
        c.unlock();
        assert_eq!(lock.shared().unwrap().found(), before + 3);
    }
}
