//! URLs of files on object stores and HTTP servers.

use std::fmt::{self, Debug};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, anyhow, bail};
use blosc2::Limits;
use blosc2::storage::ReadAt;
use blosc2_format::directory;
use blosc2_store::{TreeStore, without_secrets};

/// The bytes of a file or an object.
pub(crate) trait Bytes: ReadAt + Debug + Send + Sync {}

impl<T: ReadAt + Debug + Send + Sync> Bytes for T {}

/// An opened file or object.
pub(crate) type Object = Arc<dyn Bytes>;

/// The files of a directory (sparse frame).
#[cfg(feature = "remote")]
pub(crate) type Folder = blosc2_object_store::RemoteFolder;
/// A type in place of that of this build, which opens no URL.
#[cfg(not(feature = "remote"))]
pub(crate) type Folder = directory::Memory;

/// A store in a directory.
#[cfg(feature = "remote")]
#[derive(Debug)]
pub(crate) struct Store {
    remote: blosc2_object_store::Remote,
    key: String,
}

#[cfg(feature = "remote")]
impl Store {
    pub(crate) fn open(&self, limits: Limits, max_read: Option<u64>) -> blosc2::Result<TreeStore> {
        self.remote.tree_store_with_limits(&self.key, limits, max_read)
    }
}

/// A type in place of that of this build, which opens no URL.
#[cfg(not(feature = "remote"))]
#[derive(Debug)]
pub(crate) enum Store {}

#[cfg(not(feature = "remote"))]
impl Store {
    pub(crate) fn open(&self, _: Limits, _: Option<u64>) -> blosc2::Result<TreeStore> {
        match *self {}
    }
}

/// What is at a URL.
#[derive(Debug)]
#[cfg_attr(not(feature = "remote"), allow(dead_code, reason = "this build opens no URL"))]
pub(crate) enum Opened {
    Object(Object),
    /// A directory (sparse frame).
    Folder(Folder),
    /// A store in a directory.
    Store(Store),
}

/// Whether a path is a URL. A file of such a name is `./name`.
pub(crate) fn is_url(path: &Path) -> bool {
    path.to_str().and_then(|text| text.split_once(':')).is_some_and(|(scheme, rest)| {
        // With these schemes, a URL is valid with any number of slashes.
        let is_web = ["http", "https"].iter().any(|web| scheme.eq_ignore_ascii_case(web));
        let is_scheme = scheme.bytes().all(|byte| byte.is_ascii_alphanumeric());
        is_web || !scheme.is_empty() && is_scheme && rest.starts_with("//")
    })
}

/// Fails if the path of a new file is a URL.
pub(crate) fn check_local(path: &Path) -> Result<()> {
    if is_url(path) {
        bail!(
            "cannot create a file ({}): a URL can only be read; name a local file",
            path.display()
        );
    }
    Ok(())
}

/// The error of a change of the file at a URL.
pub(crate) fn unchangeable(path: &Path) -> anyhow::Error {
    anyhow!(
        "cannot change ({}): a file at a URL can only be read; `blosc2 copy` copies it to a local file first",
        path.display()
    )
}

/// The options of a URL.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct UrlOptions {
    /// Option for a URL, such as `region=eu-west-1`, `endpoint=http://localhost:9000` or `download_limit=1GiB`. Can be
    /// repeated.
    #[arg(long = "storage-option", value_name = "KEY=VALUE", global = true)]
    #[cfg_attr(not(feature = "remote"), arg(hide = true))]
    storage_options: Vec<String>,
    /// Cache of data from URLs [env: BLOSC2_CACHE].
    #[arg(long, value_name = "DIR", global = true)]
    #[cfg_attr(not(feature = "remote"), arg(hide = true))]
    cache: Option<std::ffi::OsString>,
}

/// The URLs that contain secrets, with the paths by which the rest of the program knows them.
static SECRETS: Mutex<Vec<(PathBuf, String)>> = Mutex::new(Vec::new());

/// A path that looks like a URL, but is none.
#[derive(Debug)]
pub(crate) struct NoUrl;

impl fmt::Display for NoUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a URL starts with a scheme such as `https://`, and the path of such a file with `./`",
        )
    }
}

impl std::error::Error for NoUrl {}

/// Returns the path for an argument: for a URL with secrets, a path without them, which can appear in messages. Fails
/// for other paths that contain secrets of a URL, because parts of a path appear in messages too.
pub(crate) fn hide(path: PathBuf) -> Result<PathBuf, NoUrl> {
    let url = path.to_string_lossy();
    let shown = without_secrets(&url);
    if shown == url {
        return Ok(path);
    }
    if !is_url(&path) {
        let is_path = url.starts_with("./") || url.starts_with('/') && !url.starts_with("//");
        return if is_path { Ok(path) } else { Err(NoUrl) };
    }
    let mut secrets = SECRETS.lock().unwrap_or_else(PoisonError::into_inner);
    let names = (1u64..).map(|number| match number {
        1 => PathBuf::from(&shown),
        _ => PathBuf::from(format!("{shown} ({number})")),
    });
    for name in names {
        match secrets.iter().find(|(other, _)| *other == name) {
            Some((_, other)) if *other == url => return Ok(name),
            Some(_) => {}
            None => {
                secrets.push((name.clone(), url.into_owned()));
                return Ok(name);
            }
        }
    }
    Err(NoUrl)
}

/// Replaces the URLs in the arguments of the program in a message.
pub(crate) fn hide_arguments(mut message: String) -> String {
    for argument in std::env::args_os() {
        let argument = argument.to_string_lossy();
        // `--option=VALUE`, `-oVALUE`.
        let value = argument.split_once('=').map(|(_, value)| value);
        let attached = argument.strip_prefix('-').and_then(|rest| rest.get(1..));
        for part in [Some(&*argument), value, attached].into_iter().flatten() {
            let shown = without_secrets(part);
            if shown != part {
                message = message.replace(part, &shown);
            }
        }
    }
    message
}

/// The object stores of this program that use the cache on disk.
#[cfg(feature = "remote")]
static CACHED: Mutex<Vec<blosc2_object_store::Remote>> = Mutex::new(Vec::new());

/// Returns the names and the values of the statistics of the URLs that were opened, if there is a cache on disk.
#[cfg(feature = "remote")]
pub(crate) fn traffic() -> Option<[(&'static str, u64); 4]> {
    let remotes = CACHED.lock().unwrap_or_else(PoisonError::into_inner);
    let all = remotes
        .iter()
        .map(|remote| remote.traffic())
        .map(|it| [it.requests, it.received, it.disk_hits, it.disk_bytes]);
    let sums = all.reduce(|a, b| std::array::from_fn(|at| a[at] + b[at]))?;
    let names = ["requests", "received", "cache_hits", "cache_bytes"];
    Some(std::array::from_fn(|at| (names[at], sums[at])))
}

#[cfg(not(feature = "remote"))]
pub(crate) fn traffic() -> Option<[(&'static str, u64); 4]> {
    None
}

/// Warns if the cache on disk could not be used.
#[cfg(feature = "remote")]
pub(crate) fn warn_of_cache() {
    let remotes = CACHED.lock().unwrap_or_else(PoisonError::into_inner);
    let failures: u64 = remotes.iter().map(|remote| remote.traffic().disk_failures).sum();
    if failures > 0 {
        crate::complain(&format!(
            "warning: {failures} entries of the cache could not be read or written: its directory is not writable, or \
             the disk is full"
        ));
    }
}

#[cfg(not(feature = "remote"))]
pub(crate) fn warn_of_cache() {}

/// Sets the cache on disk, if there is one. A directory that cannot be used is no reason to fail.
#[cfg(feature = "remote")]
fn cached(
    remote: blosc2_object_store::Remote,
    options: &UrlOptions,
) -> blosc2_object_store::Remote {
    let variable = || std::env::var_os("BLOSC2_CACHE");
    let directory = options.cache.clone().or_else(variable).filter(|name| !name.is_empty());
    let Some(directory) = directory else { return remote };
    let cache = blosc2_object_store::DiskCache::new(directory);
    match cache.and_then(|cache| remote.clone().disk_cache(&cache)) {
        Ok(remote) => {
            CACHED.lock().unwrap_or_else(PoisonError::into_inner).push(remote.clone());
            remote
        }
        Err(error) => {
            crate::complain(&format!("warning: the cache is not used: {error}"));
            remote
        }
    }
}

/// Opens the object of a URL, or the directory (sparse frame) if the URL ends with a slash.
#[cfg(feature = "remote")]
pub(crate) fn open(path: &Path, options: &UrlOptions) -> Result<Opened> {
    use blosc2::ErrorKind;
    use blosc2_format::directory::INDEX;

    use crate::foreign;

    let shown = path.to_str().ok_or_else(|| anyhow!("cannot open a URL that is not UTF-8"))?;
    let secrets = SECRETS.lock().unwrap_or_else(PoisonError::into_inner);
    let secret = secrets.iter().find(|(name, _)| name == path).map(|(_, url)| url.clone());
    drop(secrets);
    let storage = options.storage_options.iter().map(|option| {
        option.split_once('=').ok_or_else(|| {
            // It may be a password.
            crate::UsageError("--storage-option expects KEY=VALUE, got no `=`".to_owned()).into()
        })
    });
    let storage = storage.collect::<Result<Vec<_>>>()?;
    let url = secret.as_deref().unwrap_or(shown);
    let (remote, key) = blosc2_object_store::Remote::from_url(url, storage)?;
    let remote = cached(remote, options);
    let is_folder = url.split(['?', '#']).next().is_some_and(|path| path.ends_with('/'));
    let inside = |name: &str| remote.object(format!("{key}/{name}"));
    // Some servers answer with this status to requests for directories, and for missing files.
    let is_refused = |error: &blosc2::Error| {
        let source = error.get_ref().and_then(|source| source.downcast_ref::<io::Error>());
        source.is_some_and(|source| source.kind() == io::ErrorKind::PermissionDenied)
    };
    let is_missing =
        |error: &blosc2::Error| error.kind() == ErrorKind::NotFound || is_refused(error);
    let mut refused = None;
    if is_folder {
        match inside(INDEX) {
            Ok(_) => return Ok(Opened::Folder(remote.folder(&key)?)),
            Err(error) if is_missing(&error) => refused = Some(error).filter(is_refused),
            Err(error) => return Err(error.at(path).into()),
        }
    }
    let mut is_hidden = false;
    match remote.object(&key) {
        // A server can also send a file in response to such a URL, or a page of the files in a directory; and some
        // programs mark a directory by an empty object.
        Ok(object)
            if !is_folder
                || !matches!(foreign::name(&object), Some(foreign::TEXT | foreign::EMPTY)) =>
        {
            return Ok(Opened::Object(Arc::new(object)));
        }
        Err(error) if !is_folder || !is_missing(&error) => return Err(error.at(path).into()),
        Err(error) => is_hidden = is_refused(&error),
        Ok(_) => {}
    }
    if let Some(error) = refused {
        return Err(error.at(path).into());
    }
    let key = key.to_string();
    let error = match remote.tree_store(&key) {
        Ok(_) => return Ok(Opened::Store(Store { remote, key })),
        Err(error) => error,
    };
    let what = match inside(foreign::INDEX) {
        Ok(_) => match directory::Folder::names(&remote.folder(&key)?) {
            Err(failure) if failure.kind() == io::ErrorKind::Unsupported => {
                "this is a store in a directory, and the server does not list its files; at such a URL, its entries \
                 can be read by their own URLs, and stores in zip files (`.b2z`)"
            }
            Err(failure) => {
                let failure = blosc2::Error::of_io("list the files of a store", failure);
                return Err(failure.at(path).into());
            }
            Ok(_) => return Err(error.at(path).into()),
        },
        Err(_)
            if is_hidden
                || matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidData) =>
        {
            "there is neither a sparse frame (`chunks.b2frame`) nor a store (`embed.b2e`) in this directory"
        }
        _ => return Err(error.at(path).into()),
    };
    bail!("cannot open ({}): {what}", path.display())
}

/// Fails: this build has no support for URLs.
#[cfg(not(feature = "remote"))]
pub(crate) fn open(path: &Path, options: &UrlOptions) -> Result<Opened> {
    let _ = (&options.storage_options, &options.cache);
    Err(anyhow!(
        "cannot open ({}): this build does not support URLs: build it with the feature `remote`",
        path.display()
    ))
}

/// The files of a directory, for a check.
#[derive(Debug)]
pub(crate) struct Listed<'a> {
    folder: &'a Folder,
    names: Vec<String>,
}

impl<'a> Listed<'a> {
    /// Lists the files. Most HTTP servers cannot list them: then the check is limited to the files of the index.
    pub(crate) fn new(folder: &'a Folder, path: &Path) -> Self {
        let names = directory::Folder::names(folder).unwrap_or_else(|error| {
            crate::complain(&format!(
                "warning ({}): the files cannot be listed, so that unused files are not found: {error}",
                path.display()
            ));
            Vec::new()
        });
        Self { folder, names }
    }
}

impl directory::Folder for Listed<'_> {
    type File = <Folder as directory::Folder>::File;

    fn open(&self, name: &str) -> io::Result<Self::File> {
        self.folder.open(name)
    }

    fn names(&self) -> io::Result<Vec<String>> {
        Ok(self.names.clone())
    }

    fn version(&self, name: &str) -> io::Result<Option<String>> {
        self.folder.version(name)
    }
}

/// Reads an object from its beginning to its end, in large parts.
pub(crate) fn reader(object: Object) -> Box<dyn Read + Send> {
    const PART: usize = 8 << 20;
    Box::new(BufReader::with_capacity(PART, Sequential { object, position: 0 }))
}

struct Sequential {
    object: Object,
    position: u64,
}

impl Read for Sequential {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.object.size()?.saturating_sub(self.position);
        let len = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        self.object.read_exact_at(self.position, &mut buffer[..len])?;
        self.position += len as u64;
        Ok(len)
    }
}
