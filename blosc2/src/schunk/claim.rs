//! Which files this program has open, so that one writer has a file, and readers wait for it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::{Error, ErrorKind, Result};

/// A handle's share in a file that is open in this program: there may be one writer, and readers wait
/// while it writes.
#[derive(Debug)]
pub(crate) struct Claim {
    id: FileId,
    shared: Arc<Shared>,
    access: Access,
}

/// What a handle does with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Reads,
    /// As the only one.
    Writes,
    /// Like others, with the lock of the file.
    WritesLocked,
}

/// What all handles of a file share.
#[derive(Debug, Default)]
struct Shared {
    gate: RwLock<()>,
    has_writer: AtomicBool,
    locked_writers: AtomicUsize,
    /// How many changes there were.
    changes: AtomicU64,
}

/// Which file it is, whatever its path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct FileId {
    #[cfg(unix)]
    device_and_inode: (u64, u64),
    #[cfg(not(unix))]
    path: std::path::PathBuf,
}

impl FileId {
    #[cfg(unix)]
    fn new(_path: &Path, metadata: &fs::Metadata) -> Result<Self> {
        use std::os::unix::fs::MetadataExt;
        Ok(Self { device_and_inode: (metadata.dev(), metadata.ino()) })
    }

    #[cfg(not(unix))]
    fn new(path: &Path, _metadata: &fs::Metadata) -> Result<Self> {
        let path =
            path.canonicalize().map_err(|error| Error::from_io("open a frame", path, error))?;
        Ok(Self { path })
    }
}

/// The files that are open.
static OPEN: Mutex<BTreeMap<FileId, Arc<Shared>>> = Mutex::new(BTreeMap::new());

impl Claim {
    /// A share in the file at `path`.
    pub(crate) fn new(path: &Path, metadata: &fs::Metadata, access: Access) -> Result<Self> {
        let id = FileId::new(path, metadata)?;
        let mut open = OPEN.lock();
        let shared = Arc::clone(open.entry(id.clone()).or_default());
        // The table is locked meanwhile.
        let alone = shared.has_writer.load(Ordering::Relaxed);
        let locked = shared.locked_writers.load(Ordering::Relaxed) > 0;
        match access {
            Access::Writes if alone || locked => Err("drop that handle first, or lock it"),
            Access::WritesLocked if alone => Err("without locking it"),
            Access::Writes => {
                shared.has_writer.store(true, Ordering::Relaxed);
                Ok(())
            }
            Access::WritesLocked => {
                shared.locked_writers.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
            Access::Reads => Ok(()),
        }
        .map_err(|why| {
            let detail = format!("this program has it open for writing already: {why}");
            Error::new(ErrorKind::Busy, "open a frame", detail).at(path)
        })?;
        Ok(Self { id, shared, access })
    }

    /// How many changes of the file there were since a handle of this program has it open.
    pub(crate) fn generation(&self) -> u64 {
        // The gate orders it with the changes.
        self.shared.changes.load(Ordering::Relaxed)
    }

    /// Counts a change, which was made under [`writing`](Self::writing); gives their number.
    pub(crate) fn changed(&self) -> u64 {
        self.shared.changes.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Keeps writers out, while the file is read.
    pub(crate) fn reading(&self) -> RwLockReadGuard<'_, ()> {
        // A thread may read several arrays of one file at once, while others wait to write.
        self.shared.gate.read_recursive()
    }

    /// Keeps readers out, while the file is written.
    pub(crate) fn writing(&self) -> RwLockWriteGuard<'_, ()> {
        self.shared.gate.write()
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut open = OPEN.lock();
        match self.access {
            Access::Reads => {}
            Access::Writes => self.shared.has_writer.store(false, Ordering::Relaxed),
            Access::WritesLocked => {
                self.shared.locked_writers.fetch_sub(1, Ordering::Relaxed);
            }
        }
        // The table's own share and this one are the last.
        if Arc::strong_count(&self.shared) == 2 {
            open.remove(&self.id);
        }
    }
}
