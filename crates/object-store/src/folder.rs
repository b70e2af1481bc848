//! Directories (sparse frames) in object stores.

use std::hash::{DefaultHasher, Hasher};
use std::io;

use blosc2::storage::{Folder, FolderMut, ReadAt};
use futures::StreamExt;
use object_store::path::Path;
use object_store::{ObjectStoreExt, PutPayload};

use crate::fault::failed;
use crate::{Object, Remote, runtime};

/// A directory (sparse frame) in an object store, as a [custom directory](blosc2::storage::FolderMut). The objects with
/// a common prefix are the files of the directory: one object for each chunk, and one for the index.
///
/// A change of a chunk uploads two objects: the chunk and the index. Object stores have no locks: do not change a
/// directory by several writers at the same time.
///
/// A read takes one or two requests for each chunk that contains requested items, and does not use the [cache in
/// memory](Remote::cache). It then requests the ETag of the index once for the chunks that it requests at the same
/// time: a writer stores new chunks under the names of removed chunks. If another writer has changed the directory
/// since it was opened, reads fail with [`ErrorKind::Busy`](blosc2::ErrorKind::Busy) until
/// [`SChunk::refresh`](blosc2::SChunk::refresh). From a server without ETags, the index itself is requested.
///
/// ```
/// # use std::sync::Arc;
/// use blosc2::{NDArray, Target};
/// use blosc2_object_store::Remote;
/// # let remote = Remote::new(Arc::new(object_store::memory::InMemory::new()));
///
/// let builder = NDArray::builder().target(Target::folder(remote.folder("grid.b2nd")?)).chunk_shape([100, 100]);
/// let mut array = builder.zeros::<f32>([1000, 1000])?;
/// array.write([5, 7], 1.5f32)?; // uploads one chunk and the index
/// assert_eq!(remote.array("grid.b2nd")?.item::<f32>(&[5, 7])?, 1.5);
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct RemoteFolder {
    remote: Remote,
    prefix: Path,
}

impl RemoteFolder {
    pub(crate) fn new(remote: Remote, prefix: Path) -> Self {
        Self { remote, prefix }
    }

    fn path(&self, name: &str) -> Path {
        self.prefix.clone().join(name)
    }
}

/// The objects under a prefix at any depth, as the files of a store.
#[derive(Debug)]
pub(crate) struct RemoteTree {
    remote: Remote,
    prefix: Path,
    names: Vec<String>,
}

impl RemoteTree {
    /// Lists the objects. Returns `None` if there are none, or the server has no lists.
    pub(crate) fn new(remote: Remote, prefix: Path) -> io::Result<Option<Self>> {
        let parts = match list(&remote, &prefix) {
            Err(error)
                if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::Unsupported) =>
            {
                return Ok(None);
            }
            listed => listed?,
        };
        let names: Vec<String> = parts.into_iter().map(|parts| parts.join("/")).collect();
        Ok((!names.is_empty()).then_some(Self { remote, prefix, names }))
    }
}

impl Folder for RemoteTree {
    type File = Object;

    fn open(&self, name: &str) -> io::Result<Object> {
        // The name is a part of the key of an object.
        let path = Path::parse(format!("{}/{name}", self.prefix));
        let path = path.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        Object::open(self.remote.clone(), path)
    }

    fn names(&self) -> io::Result<Vec<String>> {
        Ok(self.names.clone())
    }
}

/// Lists the objects under a prefix: the parts of their paths after the prefix.
fn list(remote: &Remote, prefix: &Path) -> io::Result<Vec<Vec<String>>> {
    /// The maximum number of bytes of all paths. A server can send any number of them.
    const MOST: usize = 1 << 30;
    let (remote, prefix) = (remote.clone(), prefix.clone());
    let all = async move {
        let (mut all, mut left) = (Vec::new(), MOST);
        let mut objects = remote.list(&prefix);
        while let Some(meta) = objects.next().await {
            let path = meta?.location;
            left = left.checked_sub(path.as_ref().len() + 100).ok_or_else(|| {
                let source = format!("the paths of the objects have more than {MOST} bytes");
                object_store::Error::Generic { store: "Object", source: source.into() }
            })?;
            if let Some(parts) = path.prefix_match(&prefix) {
                all.push(parts.map(|part| part.as_ref().to_owned()).collect());
            }
        }
        Ok(all)
    };
    runtime::wait(all)?.map_err(failed)
}

impl Folder for RemoteFolder {
    type File = Object;

    fn open(&self, name: &str) -> io::Result<Object> {
        Object::open(self.remote.clone(), self.path(name))
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let all = list(&self.remote, &self.prefix)?;
        // Objects under a longer prefix are not files of this directory.
        let names = all.into_iter().filter_map(|parts| <[String; 1]>::try_from(parts).ok());
        Ok(names.flatten().collect())
    }

    /// Returns the ETag. If the server does not send ETags, returns a hash of the content.
    fn version(&self, name: &str) -> io::Result<Option<String>> {
        let (remote, path) = (self.remote.clone(), self.path(name));
        let meta = runtime::wait(async move { remote.head(&path).await })?;
        if let Ok(meta) = meta
            && let Some(e_tag) = meta.e_tag.filter(|e_tag| !e_tag.starts_with("W/"))
        {
            return Ok(Some(e_tag));
        }
        const PART: u64 = 8 << 20;
        const LIMIT: u64 = 8 << 30;
        let file = self.open(name)?;
        let size = file.size()?;
        if size > LIMIT {
            // A server can state any size.
            let detail = format!(
                "cannot hash the object `{}`: it has {size} bytes, expected at most {LIMIT}",
                self.path(name)
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, detail));
        }
        let (mut hasher, mut at) = (DefaultHasher::new(), 0);
        while at < size {
            let len = PART.min(size - at);
            hasher.write(&file.read_vec_at(at, len)?);
            at += len;
        }
        Ok(Some(format!("{size} {:x}", hasher.finish())))
    }

    /// Returns the [gap](Remote::gap), but at least 4097 bytes, more than the default.
    fn request_cost(&self) -> u64 {
        self.remote.request_cost()
    }
}

impl FolderMut for RemoteFolder {
    fn put(&mut self, name: &str, content: &[u8], _: bool) -> io::Result<()> {
        let (remote, path) = (self.remote.clone(), self.path(name));
        let payload = PutPayload::from(content.to_vec());
        runtime::wait(async move { remote.store.put(&path, payload).await })?
            .map(drop)
            .map_err(failed)
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        let (remote, path) = (self.remote.clone(), self.path(name));
        runtime::wait(async move { remote.store.delete(&path).await })?.map_err(failed)
    }
}
