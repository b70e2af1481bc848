//! Objects of DataFusion's object stores as sources of bytes, and the tables in them.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::future::Future;
use std::io;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use blosc2::storage::{Folder, ReadAt};
use blosc2::{Error, ErrorKind};
use datafusion::common::exec_err;
use datafusion::common::runtime::SpawnedTask;
use datafusion::error::{DataFusionError, Result};
use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{
    GetOptions, GetRange, GetResultPayload, ObjectMeta, ObjectStore, coalesce_ranges,
};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::content::{Content, Reading};

const READ: &str = "read an object";

/// The maximum gap between two byte ranges that share a request, in bytes.
const GAP: u64 = 64 << 10;
/// The number of bytes at the end of an object that are read first, as many as opening a zip file reads. They include the
/// list of members of most tables, and all of a small table.
const TAIL: u64 = 1 << 20;

/// The maximum number of threads that read tables at the same time. Tokio has 512 threads for work that blocks. The
/// others read local files for the object stores: reads of tables wait for them.
const MOST_THREADS: usize = 64;
static THREADS: Semaphore = Semaphore::const_new(MOST_THREADS);
/// The maximum number of local files that are kept open, until their plan ends. Others are opened for each request. Some
/// systems allow a program 256 files.
static FILES: Semaphore = Semaphore::const_new(64);

/// An object in an object store, in the version that a plan was made for.
struct Object {
    store: Arc<dyn ObjectStore>,
    meta: ObjectMeta,
    /// The ETag of the first response, if the plan has none: plans lose it on their way to other machines.
    e_tag: OnceLock<Option<String>>,
    /// The last bytes.
    tail: OnceLock<Vec<u8>>,
    /// The file, if the store is a local file system. It is opened once, and read without the store.
    file: OnceLock<Option<LocalFile>>,
    /// The runtime of the store, for threads that belong to no runtime.
    runtime: Handle,
}

impl Object {
    fn new(store: Arc<dyn ObjectStore>, meta: ObjectMeta, runtime: Handle) -> Self {
        let (e_tag, tail, file) = Default::default();
        Self { store, meta, e_tag, tail, file, runtime }
    }

    async fn get(&self, range: Range<u64>) -> Result<bytes::Bytes, object_store::Error> {
        let e_tag = self.meta.e_tag.as_ref().or_else(|| self.e_tag.get()?.as_ref());
        let options = GetOptions {
            range: Some(GetRange::Bounded(range.clone())),
            // A weak ETag never matches.
            if_match: e_tag.filter(|e_tag| !e_tag.starts_with("W/")).cloned(),
            ..Default::default()
        };
        let response = self.store.get_opts(&self.meta.location, options).await?;
        let found = &response.meta;
        let expected = e_tag.or_else(|| self.e_tag.get_or_init(|| found.e_tag.clone()).as_ref());
        let is_same_version =
            expected.is_none() || found.e_tag.is_none() || expected == found.e_tag.as_ref();
        if !is_same_version || !is_same(found, &self.meta) {
            let path = self.meta.location.to_string();
            let source = "the store returned another version".into();
            return Err(object_store::Error::Precondition { path, source });
        }
        match response.payload {
            GetResultPayload::File(file, _) => {
                let bytes = file.read_vec_at(range.start, len(&range)).map_err(|source| {
                    object_store::Error::Generic { store: "local", source: Box::new(source) }
                })?;
                self.file.get_or_init(|| LocalFile::new(file, &self.meta));
                Ok(bytes.into())
            }
            GetResultPayload::Stream(_) => response.bytes().await,
        }
    }

    fn local_file(&self) -> Option<&LocalFile> {
        self.file.get()?.as_ref()
    }

    fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        Handle::try_current().unwrap_or_else(|_| self.runtime.clone()).block_on(future)
    }

    /// Reads ranges of bytes that are within the object.
    fn fetch(&self, ranges: &[Range<u64>]) -> io::Result<Vec<bytes::Bytes>> {
        let parts = self.wait(coalesce_ranges(ranges, |range| self.get(range), GAP));
        let parts = parts.map_err(|error| failed(&self.meta.location, error))?;
        match ranges.iter().zip(&parts).all(|(range, part)| part.len() as u64 == len(range)) {
            true => Ok(parts),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// The last bytes, and their offset. They are empty for a local file.
    fn tail(&self) -> io::Result<(u64, &[u8])> {
        if self.tail.get().is_none() && self.meta.size > 0 {
            let start = self.meta.size.saturating_sub(TAIL);
            let tail = self.fetch(std::slice::from_ref(&(start..self.meta.size)))?.concat();
            self.tail.get_or_init(|| if self.local_file().is_some() { Vec::new() } else { tail });
        }
        let tail = self.tail.get().map(Vec::as_slice).unwrap_or_default();
        Ok((self.meta.size - tail.len() as u64, tail))
    }
}

/// An open file of a local file system.
struct LocalFile {
    file: File,
    version: (u64, SystemTime),
    _permit: SemaphorePermit<'static>,
}

impl LocalFile {
    /// Returns `None` if the file is not the one that a plan was made for, or if too many files are open.
    fn new(file: File, planned: &ObjectMeta) -> Option<Self> {
        let version = (planned.size, planned.last_modified.into());
        let file = Self { file, version, _permit: FILES.try_acquire().ok()? };
        file.is_unchanged().ok()?.then_some(file)
    }

    fn is_unchanged(&self) -> io::Result<bool> {
        let found = self.file.metadata()?;
        Ok((found.len(), found.modified()?) == self.version)
    }
}

fn len(range: &Range<u64>) -> u64 {
    range.end - range.start
}

/// Whether a response is about the version that a plan was made for. Some stores state times with a precision of one
/// second in responses, and with a higher precision in lists.
fn is_same(found: &ObjectMeta, planned: &ObjectMeta) -> bool {
    let (one, other) = (found.last_modified, planned.last_modified);
    let is_whole = one.timestamp_subsec_nanos() == 0 || other.timestamp_subsec_nanos() == 0;
    let is_same_time = one == other || is_whole && one.timestamp() == other.timestamp();
    found.size == planned.size && is_same_time
}

fn changed(path: &Path, what: &str) -> io::Error {
    let detail = format!("`{path}` {what} since the query was planned: plan the query again");
    Error::new(ErrorKind::Busy, READ, detail).into()
}

/// Converts the error of a request.
fn failed(path: &Path, error: object_store::Error) -> io::Error {
    use object_store::Error as E;
    match &error {
        E::Precondition { .. } => changed(path, "has changed"),
        E::NotFound { .. } => changed(path, "was removed"),
        E::PermissionDenied { .. } | E::Unauthenticated { .. } => {
            io::Error::new(io::ErrorKind::PermissionDenied, error)
        }
        _ => io::Error::other(error),
    }
}

impl ReadAt for Object {
    fn size(&self) -> io::Result<u64> {
        Ok(self.meta.size)
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.read_ranges_at(&mut [(offset, buffer)])
    }

    fn read_ranges_at(&self, ranges: &mut [(u64, &mut [u8])]) -> io::Result<()> {
        let (start, tail) = self.tail()?;
        if let Some(local) = self.local_file() {
            let read = local.file.read_ranges_at(ranges);
            return match local.is_unchanged()? {
                true => read,
                false => Err(changed(&self.meta.location, "has changed")),
            };
        }
        let (mut missing, mut buffers) = (Vec::new(), Vec::new());
        for (offset, buffer) in ranges.iter_mut().filter(|(_, buffer)| !buffer.is_empty()) {
            let end = offset.checked_add(buffer.len() as u64);
            let end = end.filter(|end| *end <= self.meta.size);
            let end = end.ok_or(io::ErrorKind::UnexpectedEof)?;
            match offset.checked_sub(start) {
                Some(at) => buffer.copy_from_slice(&tail[at as usize..(end - start) as usize]),
                None => {
                    missing.push(*offset..end);
                    buffers.push(buffer);
                }
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        for (buffer, part) in buffers.into_iter().zip(self.fetch(&missing)?) {
            buffer.copy_from_slice(&part);
        }
        Ok(())
    }

    fn request_cost(&self) -> u64 {
        match self.local_file() {
            Some(_) => 0,
            None => GAP,
        }
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Object").field("meta", &self.meta).finish_non_exhaustive()
    }
}

/// The index of a store in a directory (`.b2d`): the location of this file is that of the directory.
pub const INDEX: &str = "embed.b2e";
/// The files that stand for the directory that contains them. The second one describes a data set of xarray-blosc2.
const INDEXES: [&str; 2] = [INDEX, "dataset.json"];

/// The maximum number of files in a directory.
const MOST_FILES: usize = 1 << 20;

/// Whether a file stands for the directory that contains it.
pub(crate) fn is_index(path: &Path) -> bool {
    path.filename().is_some_and(|name| INDEXES.contains(&name))
}

/// The files of a directory, in the versions of a list.
struct Directory {
    store: Arc<dyn ObjectStore>,
    /// The files, by their paths in the directory.
    files: BTreeMap<String, ObjectMeta>,
    runtime: Handle,
}

impl Directory {
    /// Lists the directory that contains an index.
    async fn of(store: Arc<dyn ObjectStore>, index: &Path) -> Result<Self> {
        let count = index.parts().count().saturating_sub(1);
        let prefix: Path = index.parts().take(count).collect();
        let mut files = BTreeMap::new();
        let mut found = store.list(Some(&prefix));
        while let Some(meta) = found.try_next().await? {
            if files.len() == MOST_FILES {
                return exec_err!("the directory `{prefix}` has more than {MOST_FILES} files");
            }
            let parts = meta.location.parts().skip(count);
            let name = parts.map(|part| part.as_ref().to_owned()).collect::<Vec<_>>().join("/");
            files.insert(name, meta);
        }
        drop(found);
        Ok(Self { store, files, runtime: Handle::current() })
    }

    /// The index with the size and the time of the whole directory: of all files together, and of the last change.
    fn version(&self, mut index: ObjectMeta) -> ObjectMeta {
        index.size = self.files.values().fold(0, |size, file| size.saturating_add(file.size));
        let last = self.files.values().map(|file| file.last_modified).max();
        index.last_modified = last.unwrap_or(index.last_modified);
        index.e_tag = None;
        index
    }
}

/// The metadata of a file that a plan contains. The size and the time of an index are those of its directory: a change of the
/// directory may leave the index as it was.
pub(crate) async fn version(store: &Arc<dyn ObjectStore>, file: ObjectMeta) -> Result<ObjectMeta> {
    match is_index(&file.location) {
        true => Ok(Directory::of(Arc::clone(store), &file.location).await?.version(file)),
        false => Ok(file),
    }
}

impl Folder for Directory {
    type File = Object;

    fn open(&self, name: &str) -> io::Result<Object> {
        let meta = self.files.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(Object::new(Arc::clone(&self.store), meta.clone(), self.runtime.clone()))
    }

    fn names(&self) -> io::Result<Vec<String>> {
        Ok(self.files.keys().cloned().collect())
    }
}

impl fmt::Debug for Directory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Directory").field("files", &self.files).finish_non_exhaustive()
    }
}

/// Opens the content of an object in the planned [`version`].
pub(crate) async fn open(
    store: Arc<dyn ObjectStore>,
    meta: ObjectMeta,
    reading: Reading,
) -> Result<Content> {
    open_with(store, meta, move |object| Content::new(object, &reading)).await
}

/// Opens an object, or the directory of an index, in the planned [`version`], and returns what a function makes of it.
pub(crate) async fn open_with<T: Send + 'static>(
    store: Arc<dyn ObjectStore>,
    meta: ObjectMeta,
    work: impl FnOnce(blosc2_store::Object) -> blosc2::Result<T> + Send + 'static,
) -> Result<T> {
    let path = meta.location.clone();
    let content = match is_index(&path) {
        true => {
            let directory = Directory::of(store, &path).await?;
            if !is_same(&directory.version(meta.clone()), &meta) {
                return Err(DataFusionError::External(changed(&path, "has changed").into()));
            }
            unblock(move || work(blosc2_store::Object::open_folder(directory)?)).await?
        }
        false => {
            let object = Object::new(store, meta, Handle::current());
            unblock(move || work(blosc2_store::Object::open_source(object)?)).await?
        }
    };
    content.map_err(|error| in_table(&path, error))
}

/// Runs a closure that blocks or computes on a thread for such work. A closure that waits does not run if the future is
/// dropped.
pub(crate) async fn unblock<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    // It is never closed.
    let permit = THREADS.acquire().await.ok();
    let task = SpawnedTask::spawn_blocking(move || {
        let _permit = permit;
        work()
    });
    task.join_unwind().await.map_err(|error| DataFusionError::External(error.into()))
}

/// The error of a table in an object.
pub(crate) fn in_table(path: &Path, error: impl Into<ReadError>) -> DataFusionError {
    error.into().0.context(format!("read the table `{path}`"))
}

/// An error of reading a table.
pub(crate) struct ReadError(DataFusionError);

impl From<Error> for ReadError {
    fn from(error: Error) -> Self {
        Self(DataFusionError::External(Box::new(error)))
    }
}

impl From<datafusion::arrow::error::ArrowError> for ReadError {
    fn from(error: datafusion::arrow::error::ArrowError) -> Self {
        Self(DataFusionError::ArrowError(Box::new(error), None))
    }
}
