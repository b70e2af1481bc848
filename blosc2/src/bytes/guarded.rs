//! Custom storages and directories, which may panic.

use std::fs::File;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use blosc2_format::ReadAt;
use blosc2_format::directory::{Folder, FolderMut};
use blosc2_format::read_at::DEFAULT_REQUEST_COST;

use super::Storage;
use crate::closures::message_of;
use crate::error::Reason;

/// A storage or directory whose panics become errors of the kind [`Callback`](crate::ErrorKind::Callback).
#[derive(Debug)]
pub(crate) struct Guarded<S>(pub(crate) S);

impl<S: ReadAt> ReadAt for Guarded<S> {
    fn size(&self) -> io::Result<u64> {
        guarded("get the size of a storage", || self.0.size())
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        guarded("read from a storage", || self.0.read_exact_at(offset, buffer))
    }

    /// Checks the length of the result.
    fn read_vec_at(&self, offset: u64, len: u64) -> io::Result<Vec<u8>> {
        let bytes = guarded("read from a storage", || self.0.read_vec_at(offset, len))?;
        if bytes.len() as u64 != len {
            let detail = format!("expected {len} bytes, got {}", bytes.len());
            return Err(Reason::from_closure(detail, None).doing("read from a storage").into());
        }
        Ok(bytes)
    }

    fn read_ranges_at(&self, ranges: &mut [(u64, &mut [u8])]) -> io::Result<()> {
        guarded("read from a storage", || self.0.read_ranges_at(ranges))
    }

    fn request_cost(&self) -> u64 {
        // If the call panics, the next read reports an error.
        guarded("read from a storage", || Ok(self.0.request_cost())).unwrap_or(DEFAULT_REQUEST_COST)
    }
}

impl<S: Storage> Storage for Guarded<S> {
    fn write_all_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        guarded("write to a storage", || self.0.write_all_at(offset, bytes))
    }

    fn set_size(&mut self, len: u64) -> io::Result<()> {
        guarded("set the length of a storage", || self.0.set_size(len))
    }

    fn sync(&mut self) -> io::Result<()> {
        guarded("sync a storage", || self.0.sync())
    }

    fn as_bytes(&self) -> Option<&[u8]> {
        // If the call panics, the next read reports the panic.
        guarded("read from a storage", || Ok(self.0.as_bytes())).ok().flatten()
    }

    fn file(&self) -> Option<&File> {
        guarded("get the file of a storage", || Ok(self.0.file())).ok().flatten()
    }

    fn take_vec(&mut self) -> Option<Vec<u8>> {
        guarded("read from a storage", || Ok(self.0.take_vec())).ok().flatten()
    }
}

impl<F: Folder> Folder for Guarded<F> {
    type File = Guarded<F::File>;

    fn open(&self, name: &str) -> io::Result<Self::File> {
        guarded("open a file in a folder", || self.0.open(name)).map(Guarded)
    }

    fn names(&self) -> io::Result<Vec<String>> {
        guarded("list a folder", || self.0.names())
    }

    fn version(&self, name: &str) -> io::Result<Option<String>> {
        guarded("open a file in a folder", || self.0.version(name))
    }

    fn request_cost(&self) -> u64 {
        guarded("open a file in a folder", || Ok(self.0.request_cost()))
            .unwrap_or(DEFAULT_REQUEST_COST)
    }
}

impl<F: FolderMut> FolderMut for Guarded<F> {
    fn put(&mut self, name: &str, content: &[u8], durable: bool) -> io::Result<()> {
        guarded("write a file to a folder", || self.0.put(name, content, durable))
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        guarded("remove a file from a folder", || self.0.remove(name))
    }

    fn sync(&mut self) -> io::Result<()> {
        guarded("sync a folder", || self.0.sync())
    }
}

fn guarded<T>(doing: &str, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let failed = |detail| Err(Reason::from_closure(detail, None).doing(doing).into());
    // After a panic the storage may be in any state, but each later call is guarded too.
    match catch_unwind(AssertUnwindSafe(work)) {
        // Formatting the error of a custom storage may panic outside of this call. Therefore it is formatted here
        // first.
        Ok(Err(error)) => match catch_unwind(AssertUnwindSafe(|| error.to_string())) {
            Ok(_) => Err(error),
            Err(payload) => {
                failed(format!("the storage's error panicked: {}", message_of(payload)))
            }
        },
        Ok(result) => result,
        Err(payload) => failed(format!("the storage panicked: {}", message_of(payload))),
    }
}
