//! Which files this program has open, so that one writer has a file, and readers wait for it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::{Error, ErrorKind, Result};

/// A handle's share in a file that is open in this program: there may be one writer, and readers wait
/// while it writes. C guards a handle's file against nobody.
#[derive(Debug)]
pub(crate) struct Claim {
    id: FileId,
    shared: Arc<Shared>,
    writes: bool,
}

/// What all handles of a file share.
#[derive(Debug, Default)]
struct Shared {
    gate: RwLock<()>,
    has_writer: AtomicBool,
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
    /// A share in the file at `path`, the writer's or a reader's.
    pub(crate) fn new(path: &Path, metadata: &fs::Metadata, writes: bool) -> Result<Self> {
        let id = FileId::new(path, metadata)?;
        let mut open = OPEN.lock();
        let shared = Arc::clone(open.entry(id.clone()).or_default());
        if writes && shared.has_writer.swap(true, Ordering::Relaxed) {
            let detail = "this program has it open for writing already: drop that handle first";
            return Err(Error::new(ErrorKind::Busy, "open a frame", detail).at(path));
        }
        Ok(Self { id, shared, writes })
    }

    /// Whether the file of this path is the one that was claimed.
    pub(crate) fn is_for(&self, path: &Path) -> bool {
        let id = fs::metadata(path).ok().and_then(|metadata| FileId::new(path, &metadata).ok());
        id.is_some_and(|id| id == self.id)
    }

    /// Keeps the writer out, while C reads the file.
    pub(crate) fn reading(&self) -> RwLockReadGuard<'_, ()> {
        self.shared.gate.read()
    }

    /// Keeps readers out, while C writes to the file.
    pub(crate) fn writing(&self) -> RwLockWriteGuard<'_, ()> {
        self.shared.gate.write()
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut open = OPEN.lock();
        if self.writes {
            self.shared.has_writer.store(false, Ordering::Relaxed);
        }
        // The table's own share and this one are the last.
        if Arc::strong_count(&self.shared) == 2 {
            open.remove(&self.id);
        }
    }
}
