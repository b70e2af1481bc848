//! Object stores with settings.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Arc;

use blosc2::storage::ReadOnly;
use blosc2::{Error, ErrorKind, Limits, NDArray, OpenOptions, Result, SChunk, SaveOptions, Target};
use blosc2_format::directory::INDEX;
use blosc2_format::read_at::DEFAULT_REQUEST_COST;
use blosc2_store::{Object as Container, TreeStore};
use bytes::Bytes;
use futures::stream::BoxStream;
use object_store::path::Path;
use object_store::{
    GetOptions, GetResult, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutPayload,
    WriteMultipart,
};
use tokio::sync::Semaphore;

use crate::cache::Cache;
use crate::disk::Entries;
use crate::fault::failed;
use crate::folder::RemoteTree;
use crate::object::Whole;
use crate::traffic::{Counters, Traffic};
use crate::{DiskCache, Object, RemoteFolder, runtime, unblock, url};

const OPEN: &str = "open an object";
const SAVE: &str = "save to an object store";
/// Larger frames are uploaded in parts, in bytes.
const MULTIPART: u64 = 64 << 20;
/// The size of a part in bytes. S3 allows 10,000 parts.
const PART: u64 = 16 << 20;
const PARTS: u64 = 9000;
/// The number of parts that are uploaded at the same time.
const UPLOADS: usize = 4;

/// An object store, with settings for reading and a cache. All objects opened by one `Remote` share the cache.
///
/// Clones share the cache and the connections. A setting has no effect on objects that are already open.
///
/// ```
/// use std::sync::Arc;
///
/// use blosc2::NDArray;
/// use blosc2_object_store::Remote;
///
/// let folder = tempfile::tempdir()?;
/// let url = format!("file://{}/numbers.b2nd", folder.path().display());
/// let (remote, path) = Remote::from_url(&url, [("", ""); 0])?;
/// let remote = remote.cache(64 << 20);
/// remote.save(&path, NDArray::builder().arange(0u16, 500, 1)?.schunk(), false)?;
/// assert_eq!(remote.array(&path)?.read::<Vec<u16>>(100..103)?, [100, 101, 102]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Remote {
    pub(crate) store: Arc<dyn ObjectStore>,
    pub(crate) gap: u64,
    pub(crate) request_size: u64,
    pub(crate) concurrency: usize,
    pub(crate) permits: Arc<Semaphore>,
    pub(crate) cache: Arc<Cache>,
    /// The object of the URL, and the URL without its secrets.
    given: Option<Arc<(Path, String)>>,
    /// What distinguishes the object store from all others.
    identity: Option<Arc<str>>,
    disk: Option<DiskCache>,
    counters: Arc<Counters>,
}

impl Remote {
    /// Creates a `Remote` for an object store. The object store may be a wrapper such as
    /// `object_store::prefix::PrefixStore`.
    pub fn new(store: Arc<dyn ObjectStore>) -> Self {
        const CONCURRENCY: usize = 16;
        Self {
            store,
            gap: 256 << 10,
            request_size: 8 << 20,
            concurrency: CONCURRENCY,
            permits: Arc::new(Semaphore::new(CONCURRENCY)),
            cache: Arc::new(Cache::new(32 << 20)),
            given: None,
            identity: None,
            disk: None,
            counters: Arc::default(),
        }
    }

    /// Creates a `Remote` for the object store of a URL. Returns the `Remote` and the path of the object in the store.
    ///
    /// A URL consists of a scheme, the bucket or host, and the path. The schemes are `s3://`, `gs://`, `az://`,
    /// `abfs://`, `http://`, `https://` and `file://`. For `https://` URLs of Amazon S3, Cloudflare R2 and Azure without
    /// a query, the protocol of that service is used.
    ///
    /// An `http://` or `https://` URL can have a query, such as the signature of a presigned URL, and a user name with a
    /// password. They are sent with each request, and do not appear in messages. If the server redirects a request, the
    /// next server gets neither of them.
    ///
    /// `options` are the options of the crate `object_store`, such as `region`, `endpoint`, `access_key_id`,
    /// `skip_signature`, `timeout` and `allow_http`. Environment variables that start with `AWS_`, `AZURE_` or
    /// `GOOGLE_` are options, too. If the URL or the option `endpoint` starts with `http://`, `allow_http` is set. This
    /// crate adds three options:
    /// - `max_retries` (default: `6`) and `retry_timeout` (default: `60s`) limit the repetition of failed requests.
    /// - `download_limit` (default: `64MiB`): some HTTP servers send complete objects instead of the requested ranges,
    ///   or encoded objects (`Content-Encoding: gzip`), which have no ranges. The `Remote` then downloads an object of
    ///   up to this number of bytes once, and holds it in memory as long as it is open. A larger object cannot be
    ///   opened. The units `KiB`, `MiB` and `GiB` are allowed.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`], in one of these cases:
    /// - the URL is invalid, or has a query or a fragment that is not supported;
    /// - an option is unknown or has an invalid value;
    /// - a required option is missing.
    pub fn from_url<K: AsRef<str>, V: AsRef<str>>(
        url: &str,
        options: impl IntoIterator<Item = (K, V)>,
    ) -> Result<(Self, Path)> {
        let options = options.into_iter();
        let options =
            options.map(|(key, value)| (key.as_ref().to_owned(), value.as_ref().to_owned()));
        let url::Parsed { store, path, identity } = url::parse(url, options.collect())?;
        let given = Some(Arc::new((path.clone(), url::shown(url))));
        Ok((Self { given, identity: Some(identity.into()), ..Self::new(store) }, path))
    }

    /// Sets the maximum gap between two byte ranges that share a request, in bytes. Default: 256 KiB.
    ///
    /// A suitable value is the latency of a request multiplied by the transfer rate. This setting also determines which
    /// chunks are small: compressed chunks of up to `bytes` or 64 KiB, whichever is larger, are requested completely.
    pub fn gap(mut self, bytes: u64) -> Self {
        self.gap = bytes;
        self
    }

    /// Sets the maximum size of a request, in bytes. Default: 8 MiB. Larger byte ranges are divided into several
    /// requests, which run concurrently. 0 means 1.
    pub fn request_size(mut self, bytes: u64) -> Self {
        self.request_size = bytes.max(1);
        self
    }

    /// Sets the maximum number of requests that run at the same time, for all objects together. Default: 16. 0 means 1.
    pub fn concurrency(mut self, requests: usize) -> Self {
        self.concurrency = requests.clamp(1, Semaphore::MAX_PERMITS);
        self.permits = Arc::new(Semaphore::new(self.concurrency));
        self
    }

    /// Sets the maximum size of the cache of compressed bytes, in bytes. Default: 32 MiB. 0 disables the cache.
    ///
    /// The cache contains the bytes of small reads, such as block starts and single blocks. Reads of more than a
    /// quarter of the size of the cache bypass the cache.
    pub fn cache(mut self, bytes: usize) -> Self {
        self.cache = Arc::new(Cache::new(bytes));
        self
    }

    /// Stores the bytes that reads transfer in a cache on disk, and reads them from there. Default: no such cache.
    ///
    /// The cache is used in addition to that [in memory](Self::cache). Reads of a directory (sparse frame) use it, too.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`]: the object store was passed to [`new`](Self::new), and has no
    /// [name](Self::named).
    pub fn disk_cache(mut self, cache: &DiskCache) -> Result<Self> {
        if self.identity.is_none() {
            let detail = "the object store has neither a URL nor a name, by which entries of the cache are found";
            return Err(Error::new(ErrorKind::InvalidArgument, "set a disk cache", detail));
        }
        self.disk = Some(cache.clone());
        Ok(self)
    }

    /// Names the object store for a [disk cache](Self::disk_cache). Two object stores must have the same name only if
    /// the objects at the same paths are the same.
    ///
    /// [`from_url`](Self::from_url) sets a name that consists of the URL, without secrets and the path of the object,
    /// and of the endpoint. An object store that is passed to [`new`](Self::new) has no name.
    pub fn named(mut self, name: &str) -> Self {
        self.identity = Some(name.into());
        self
    }

    /// Returns statistics of the requests and of the disk cache, since the `Remote` was created. Clones count together.
    pub fn traffic(&self) -> Traffic {
        self.counters.traffic()
    }

    /// Requests an object.
    pub(crate) async fn get(
        &self,
        path: &Path,
        options: GetOptions,
    ) -> object_store::Result<GetResult> {
        self.counters.requests.add(1);
        let response = self.store.get_opts(path, options).await?;
        let whole = response.extensions.get().map(|Whole(bytes)| bytes.len() as u64);
        let range = &response.range;
        self.counters.received.add(whole.unwrap_or(range.end.saturating_sub(range.start)));
        Ok(response)
    }

    /// Requests the metadata of an object.
    pub(crate) async fn head(&self, path: &Path) -> object_store::Result<ObjectMeta> {
        self.counters.requests.add(1);
        self.store.head(path).await
    }

    /// Lists the objects under a prefix.
    pub(crate) fn list(
        &self,
        prefix: &Path,
    ) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        self.counters.requests.add(1);
        self.store.list(Some(prefix))
    }

    /// The entries of an object in the cache on disk.
    pub(crate) fn entries(&self, path: &Path) -> Option<Entries> {
        let (disk, identity) = (self.disk.as_ref()?, self.identity.as_ref()?);
        Some(Entries::new(disk, &self.counters, identity, path.as_ref()))
    }

    /// Returns the gap, but more than the default cost of a request.
    pub(crate) fn request_cost(&self) -> u64 {
        self.gap.max(DEFAULT_REQUEST_COST + 1)
    }

    /// Returns the name of an object for messages: its URL if it is known.
    fn name<'a>(&'a self, path: &'a str) -> &'a str {
        match self.given.as_deref() {
            Some((given, url)) if given.as_ref() == path => url,
            _ => path,
        }
    }

    /// Returns the object store.
    pub fn store(&self) -> &Arc<dyn ObjectStore> {
        &self.store
    }

    /// Opens an object for reading its bytes.
    ///
    /// In all methods, `path` is the exact key of the object: no characters are encoded or decoded. The parts of a path
    /// are separated by `/`. Empty parts, `.` and `..` are not allowed.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: the path is not allowed;
    /// - [`ErrorKind::NotFound`]: there is no object at this path;
    /// - [`ErrorKind::Io`]: a request fails.
    pub fn object(&self, path: impl AsRef<str>) -> Result<Object> {
        let path = key(path.as_ref(), OPEN)?;
        let opened = Object::open(self.clone(), path.clone());
        opened.map_err(|error| Error::of_io(OPEN, error).at(self.name(path.as_ref())))
    }

    /// Returns the directory (sparse frame) whose files are the objects under a prefix. This method sends no request.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`]: the prefix is not allowed; see [`object`](Self::object) for the rules.
    pub fn folder(&self, prefix: impl AsRef<str>) -> Result<RemoteFolder> {
        Ok(RemoteFolder::new(self.clone(), key(prefix.as_ref(), OPEN)?))
    }

    /// Opens a super-chunk for reading: a contiguous frame in an object, or a directory (sparse frame) under a prefix.
    ///
    /// To open a contiguous frame with other options, pass the result of [`object`](Self::object) to
    /// [`OpenOptions::open`].
    ///
    /// # Errors
    /// Fails with the errors of [`OpenOptions::open`], and with
    /// - [`ErrorKind::NotFound`]: there is no object and no directory at this path;
    /// - [`ErrorKind::Io`]: a request fails.
    pub fn schunk(&self, path: impl AsRef<str>) -> Result<SChunk> {
        let path = path.as_ref();
        let options = OpenOptions::new();
        let opened = self
            .object(path)
            .and_then(|object| options.open(Target::storage(ReadOnly::new(object))));
        let opened = match opened {
            Err(error) if can_be_folder(&error) => {
                // The error of a missing object is clearer than that of a missing index.
                match self.object(format!("{}/{INDEX}", path.trim_end_matches('/'))) {
                    Ok(_) => options.open(Target::folder(self.folder(path)?)),
                    Err(_) => Err(error),
                }
            }
            opened => opened,
        };
        opened.map_err(|error| error.at(self.name(path)))
    }

    /// Opens an array for reading: a contiguous frame in an object, or a directory (sparse frame) under a prefix.
    ///
    /// # Errors
    /// Fails with the errors of [`schunk`](Self::schunk) and of [`NDArray::from_schunk`].
    pub fn array(&self, path: impl AsRef<str>) -> Result<NDArray> {
        let path = path.as_ref();
        NDArray::from_schunk(self.schunk(path)?).map_err(|error| error.at(self.name(path)))
    }

    /// Opens an array like [`array`](Self::array), without blocking the calling thread.
    ///
    /// # Errors
    /// Fails with the errors of [`array`](Self::array).
    pub async fn array_async(&self, path: impl AsRef<str>) -> Result<NDArray> {
        let (remote, path) = (self.clone(), path.as_ref().to_owned());
        unblock(move || remote.array(path)).await?
    }

    /// Opens a `TreeStore` or `DictStore` for reading: a zip file (`.b2z`), whose entries are read in place without
    /// downloading the zip file; or a directory (`.b2d`), which consists of the objects under a prefix.
    ///
    /// A directory is listed, so that the object store must support lists: plain HTTP servers do not. Each entry is an
    /// object. If a writer changes the directory while it is open, entries can be those of different times. Python:
    /// `blosc2.open(url)`.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use blosc2::NDArray;
    /// use blosc2_object_store::Remote;
    /// # let remote = Remote::new(Arc::new(object_store::memory::InMemory::new()));
    ///
    /// let array = NDArray::builder().arange(0u16, 500, 1)?;
    /// remote.save("runs.b2d/first/speed.b2nd", array.schunk(), false)?;
    /// let store = remote.tree_store("runs.b2d")?;
    /// assert_eq!(store.array("/first/speed")?.read::<Vec<u16>>(100..103)?, [100, 101, 102]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// Fails with the errors of [`object`](Self::object), [`TreeStore::open_source`] and [`TreeStore::open_folder`],
    /// and with [`ErrorKind::Io`] if there is no object at this path and the objects below it cannot be listed.
    pub fn tree_store(&self, path: impl AsRef<str>) -> Result<TreeStore> {
        self.tree_store_with_limits(path, Limits::default(), None)
    }

    /// Opens a `TreeStore` or `DictStore` for reading, with the limits of [`TreeStore::open_with_limits`].
    ///
    /// # Errors
    /// Fails with the errors of [`tree_store`](Self::tree_store).
    pub fn tree_store_with_limits(
        &self,
        path: impl AsRef<str>,
        limits: Limits,
        max_read: Option<u64>,
    ) -> Result<TreeStore> {
        let path = path.as_ref();
        let opened = self
            .object(path)
            .and_then(|object| TreeStore::open_source_with_limits(object, limits, max_read));
        let opened = match opened {
            Err(error) if can_be_folder(&error) => {
                match RemoteTree::new(self.clone(), key(path, OPEN)?) {
                    Ok(Some(tree)) => TreeStore::open_folder_with_limits(tree, limits, max_read),
                    Ok(None) => Err(error),
                    // It may be there.
                    Err(failure) if error.kind() == ErrorKind::NotFound => {
                        Err(Error::of_io("list the files of a store", failure))
                    }
                    Err(_) => Err(error),
                }
            }
            opened => opened,
        };
        opened.map_err(|error| error.at(self.name(path)))
    }

    /// Opens the container in an object: an array, a super-chunk, a store, or another container of Python.
    ///
    /// # Errors
    /// Fails with the errors of [`schunk`](Self::schunk) and of [`blosc2_store::Object::open_source`].
    pub fn container(&self, path: impl AsRef<str>) -> Result<Container> {
        let path = path.as_ref();
        let opened = match self.object(path).and_then(Container::open_source) {
            Err(error) if can_be_folder(&error) => match self.schunk(path) {
                Ok(schunk) => Container::from_schunk(schunk),
                Err(_) => {
                    let opened = self.tree_store(path).map_err(|failure| match error.kind() {
                        ErrorKind::NotFound => failure,
                        _ => error,
                    });
                    opened.and_then(TreeStore::into_object)
                }
            },
            opened => opened,
        };
        opened.map_err(|error| error.at(self.name(path)))
    }

    /// Saves a super-chunk as an object with a contiguous frame. For an array, pass its [super-chunk](NDArray::schunk).
    /// If an object exists at this path, `replace` determines whether the object is replaced or the call fails.
    ///
    /// The object appears when the upload is complete. A frame of up to 64 MiB is uploaded by one request. A larger
    /// frame is first written to a temporary file, and then uploaded in parts of 16 MiB or more.
    ///
    /// If `replace` is `false`, a frame of up to 64 MiB never replaces an object, because the server checks this during
    /// the upload. For a larger frame, this method checks before the upload that there is no object at this path. If
    /// another writer creates an object during the upload, the upload replaces that object.
    ///
    /// The option `timeout` of [`from_url`](Self::from_url) limits the time of each request. Increase it for slow
    /// connections.
    ///
    /// # Errors
    /// Fails with the errors of [`SChunk::save`], and with
    /// - [`ErrorKind::AlreadyExists`]: there is an object at this path, and `replace` is `false`;
    /// - [`ErrorKind::Io`]: a request fails, or the object store does not support conditional writes.
    pub fn save(&self, path: impl AsRef<str>, schunk: &SChunk, replace: bool) -> Result<()> {
        let path = key(path.as_ref(), SAVE)?;
        let saved = match schunk.cbytes() < MULTIPART {
            true => self.put(&path, schunk.to_cframe()?.into(), replace),
            false => {
                let file = tempfile::tempfile().map_err(|error| Error::of_io(SAVE, error))?;
                let clone = file.try_clone().map_err(|error| Error::of_io(SAVE, error))?;
                SaveOptions::new().save(&schunk, Target::storage(clone))?;
                self.put_file(&path, file, replace)
            }
        };
        saved.map_err(|error| Error::of_io(SAVE, error).at(self.name(path.as_ref())))
    }

    fn put(&self, path: &Path, bytes: Bytes, replace: bool) -> io::Result<()> {
        let (store, path) = (Arc::clone(&self.store), path.clone());
        let mode = if replace { PutMode::Overwrite } else { PutMode::Create };
        let put = async move { store.put_opts(&path, PutPayload::from(bytes), mode.into()).await };
        runtime::wait(put)?.map(drop).map_err(failed)
    }

    /// Uploads a file in parts.
    fn put_file(&self, path: &Path, mut file: File, replace: bool) -> io::Result<()> {
        let (store, to) = (Arc::clone(&self.store), path.clone());
        let start = async move {
            let is_free = replace
                || match store.head(&to).await {
                    Ok(_) => false,
                    Err(object_store::Error::NotFound { .. }) => true,
                    Err(error) => return Err(error),
                };
            let upload = if is_free { Some(store.put_multipart(&to).await?) } else { None };
            Ok(upload)
        };
        let Some(upload) = runtime::wait(start)?.map_err(failed)? else {
            return Err(io::ErrorKind::AlreadyExists.into());
        };
        let len = file.seek(SeekFrom::End(0))?;
        file.rewind()?;
        let part = PART.max(len.div_ceil(PARTS));
        let mut writer = WriteMultipart::new_with_chunk_size(upload, part as usize);
        let mut read = move || {
            let mut bytes = Vec::new();
            (&mut file).take(part).read_to_end(&mut bytes).map(|_| Bytes::from(bytes))
        };
        loop {
            let bytes = match read() {
                Ok(bytes) => bytes,
                Err(error) => {
                    // The parts are removed; the error of the file is the one to report.
                    let _ = runtime::wait(writer.abort());
                    return Err(error);
                }
            };
            if bytes.is_empty() {
                return runtime::wait(writer.finish())?.map(drop).map_err(failed);
            }
            writer = runtime::wait(async move {
                match writer.wait_for_capacity(UPLOADS).await {
                    Ok(()) => {
                        writer.put(bytes);
                        Ok(writer)
                    }
                    Err(error) => {
                        let _ = writer.abort().await;
                        Err(error)
                    }
                }
            })?
            .map_err(failed)?;
        }
    }
}

/// Whether the path of an object that cannot be opened can be that of a directory.
fn can_be_folder(error: &Error) -> bool {
    // Windows does not open directories.
    let is_denied = || {
        let source = error.get_ref().and_then(|source| source.downcast_ref::<io::Error>());
        source.is_some_and(|source| source.kind() == io::ErrorKind::PermissionDenied)
    };
    match error.kind() {
        // An HTTP server can respond with a page of the files of a directory, and some programs mark directories by
        // empty objects.
        ErrorKind::NotFound | ErrorKind::InvalidData => true,
        _ => cfg!(windows) && is_denied(),
    }
}

/// Checks a key.
fn key(path: &str, doing: &str) -> Result<Path> {
    let parsed = Path::parse(path);
    parsed.map_err(|error| Error::new(ErrorKind::InvalidArgument, doing, error).at(path))
}

impl std::fmt::Debug for Remote {
    /// Omits the settings of the store, which can contain secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = f.debug_struct("Remote");
        debug.field("store", &format_args!("{}", self.store)).field("gap", &self.gap);
        debug.field("request_size", &self.request_size).field("concurrency", &self.concurrency);
        debug.field("cache", &self.cache).field("disk", &self.disk).finish()
    }
}
