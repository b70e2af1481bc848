//! Opening files of any kind.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, anyhow, bail};
use blosc2::storage::ReadOnly;
use blosc2::{ErrorKind, Limits, NDArray, OpenOptions, SChunk, Target};
use blosc2_format::file::{self, Kind};
use blosc2_format::read_at::AtOffset;
use blosc2_store::{EmbedStore, Object, Tensor, TreeStore};

use crate::foreign::{self, with_article};
use crate::limits::LimitOptions;
use crate::remote;
use crate::stdin;
use crate::stream::Items;

/// A position in a file.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Place {
    /// Offset at which the frame or chunk starts in the file.
    #[arg(
        long,
        value_name = "BYTE",
        default_value_t = 0,
        global = true,
        hide_default_value = true
    )]
    offset: u64,
    #[command(flatten)]
    limits: LimitOptions,
    /// Lock the file, as with `locking=True` in Python.
    #[arg(long, global = true)]
    locking: bool,
    #[command(flatten)]
    url: remote::UrlOptions,
}

impl Place {
    /// The limits of a check.
    pub(crate) fn limits(&self) -> Limits {
        self.limits.limits()
    }

    /// The source at this position of a file or URL; of stdin if the path is `-`.
    pub(crate) fn of<'a>(&self, path: &'a Path) -> Result<Source<'a>> {
        let (locking, limits) = (self.locking, self.limits);
        let mut source =
            Source { path, offset: self.offset, key: None, locking, limits, opened: None };
        // The program reads few files, and needs them until it ends.
        if remote::is_url(path) {
            source.opened = Some(Box::leak(Box::new(remote::open(path, &self.url)?)));
        } else if stdin::is_pipe(path) {
            source.path = Box::leak(stdin::file(path)?.into_boxed_path());
        }
        Ok(source)
    }

    /// Like [`of`](Self::of). The object of a URL is copied to a temporary file, because all of it is read.
    pub(crate) fn of_all<'a>(&self, path: &'a Path) -> Result<Source<'a>> {
        let source = self.of(path)?;
        if source.remote_store().is_some() {
            bail!(
                "cannot read all files ({}): this is a store in a directory at a URL; copy its files to a local \
                 directory first",
                path.display()
            );
        }
        let Some(object) = source.remote_object() else { return Ok(source) };
        let copy = Box::leak(stdin::copy_of(path, object)?.into_boxed_path());
        Ok(Source { path: copy, opened: None, ..source })
    }
}

/// A position in a file, or a key in a store.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Node {
    #[command(flatten)]
    place: Place,
    /// Key of an entry in a store, as printed by `ls`, such as `/group/array`.
    #[arg(long, conflicts_with = "offset", global = true)]
    key: Option<String>,
}

impl Node {
    pub(crate) fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// The source at this position or key of a file; of stdin if the path is `-`.
    pub(crate) fn of<'a>(&'a self, path: &'a Path) -> Result<Source<'a>> {
        Ok(Source { key: self.key.as_deref(), ..self.place.of(path)? })
    }

    /// The source of a second file. Without `key`, it has the key of this node if the file is a store.
    pub(crate) fn of_other<'a>(
        &'a self,
        path: &'a Path,
        key: Option<&'a str>,
    ) -> Result<Source<'a>> {
        let other = Source { key, offset: 0, ..self.place.of(path)? };
        Ok(match (key, &self.key) {
            (None, Some(key)) if other.has_keys() => Source { key: Some(key), ..other },
            _ => other,
        })
    }
}

/// A file or a directory, with an offset in the file or a key in the store.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) path: &'a Path,
    pub(crate) offset: u64,
    /// Key of an entry, if the file is a store.
    pub(crate) key: Option<&'a str>,
    /// Whether the lock of the file is taken.
    locking: bool,
    pub(crate) limits: LimitOptions,
    /// What is at the URL, if the path is a URL.
    opened: Option<&'a remote::Opened>,
}

impl<'a> Source<'a> {
    /// The object at a URL.
    fn remote_object(&self) -> Option<&'a remote::Object> {
        match self.opened? {
            remote::Opened::Object(object) => Some(object),
            remote::Opened::Folder(_) | remote::Opened::Store(_) => None,
        }
    }

    /// The directory (sparse frame) at a URL.
    pub(crate) fn remote_folder(&self) -> Option<&'a remote::Folder> {
        match self.opened? {
            remote::Opened::Object(_) | remote::Opened::Store(_) => None,
            remote::Opened::Folder(folder) => Some(folder),
        }
    }

    /// The store in a directory at a URL.
    fn remote_store(&self) -> Option<&'a remote::Store> {
        match self.opened? {
            remote::Opened::Store(store) => Some(store),
            _ => None,
        }
    }

    /// Whether the path is a URL.
    pub(crate) fn is_url(&self) -> bool {
        self.opened.is_some()
    }

    /// Whether it is a directory.
    pub(crate) fn is_directory(&self) -> bool {
        match self.opened {
            Some(opened) => !matches!(opened, remote::Opened::Object(_)),
            None => self.path.is_dir(),
        }
    }

    /// The same without a key that is that of the root group.
    pub(crate) fn without_root(self) -> Self {
        Self { key: self.key.filter(|key| *key != "/"), ..self }
    }

    /// The bytes of the file.
    pub(crate) fn bytes(&self) -> io::Result<AtOffset<remote::Object>> {
        let file = match self.opened {
            Some(remote::Opened::Object(object)) => Arc::clone(object),
            Some(_) => return Err(io::ErrorKind::IsADirectory.into()),
            None => Arc::new(File::open(self.path)?),
        };
        Ok(AtOffset::new(file, self.offset))
    }

    /// The kind of the file; `None` if the format is unknown.
    pub(crate) fn kind(&self) -> io::Result<Option<Kind>> {
        if self.key.is_some() {
            // All entries of a store have the current format.
            return Ok(None);
        }
        if self.is_directory() {
            if self.offset > 0 {
                return Err(io::Error::other("--offset requires a file, and this is a directory"));
            }
            return match self.opened {
                Some(remote::Opened::Folder(_)) => Ok(Some(Kind::Directory)),
                Some(_) => Ok(None),
                None => file::recognise_path(self.path),
            };
        }
        file::recognise(&self.bytes()?)
    }

    /// Opens it as a super-chunk.
    pub(crate) fn open(&self) -> Result<SChunk> {
        self.open_with(self.limits.apply(OpenOptions::new()))
    }

    /// Opens it as a super-chunk for reading and changing.
    pub(crate) fn open_rw(&self) -> Result<SChunk> {
        self.open_rw_with(self.limits.apply(OpenOptions::new()))
    }

    /// Opens it as a super-chunk for reading and changing, with options.
    pub(crate) fn open_rw_with(&self, options: OpenOptions) -> Result<SChunk> {
        if self.opened.is_some() {
            return Err(remote::unchangeable(self.path));
        }
        self.open_with(options.write(true))
    }

    /// Opens it as the container that its metadata names.
    pub(crate) fn object(&self) -> Result<Object> {
        let Some(key) = self.key else {
            return match self.is_store()? {
                true => self.tree()?.into_object().map_err(|error| self.no_store(error)),
                false => Ok(Object::from_schunk(self.open()?)?),
            };
        };
        if !self.is_store()? {
            return Ok(self.embedded()?.get(key)?);
        }
        let store = self.tree()?;
        match store.get(key) {
            // The parts of a table have keys that are not listed.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Ok(Object::from_schunk(store.schunk(key)?)?)
            }
            object => Ok(object?),
        }
    }

    /// Whether it is a store of any kind, or a table.
    fn has_keys(&self) -> bool {
        // An error of reading is reported when the file is opened.
        matches!(
            self.object(),
            Ok(Object::EmbedStore(_) | Object::TreeStore(_) | Object::CTable(_))
        )
    }

    /// Whether it is a `TreeStore` or `DictStore`.
    pub(crate) fn is_store(&self) -> Result<bool> {
        if let Some(object) = self.remote_object() {
            return Ok(self.offset == 0 && TreeStore::is_in(object)?);
        }
        if let Some(opened) = self.opened {
            return Ok(matches!(opened, remote::Opened::Store(_)));
        }
        // The error of a missing file does not call it a store.
        self.path.metadata().map_err(|error| self.unopened(&error))?;
        if self.offset > 0 {
            return Ok(false);
        }
        Ok(TreeStore::is_at(self.path)?)
    }

    /// Opens the store in the file without its interpretation as a table or a remote store; `None` if it does not open
    /// or a key is given.
    pub(crate) fn plain_store(&self) -> Option<Object> {
        if self.key.is_some() {
            return None;
        }
        match self.is_store().ok()? {
            true => self.tree().ok().map(Object::TreeStore),
            false => EmbedStore::from_schunk(self.open().ok()?).ok().map(Object::EmbedStore),
        }
    }

    /// Opens it as a `TreeStore` or `DictStore`.
    pub(crate) fn tree(&self) -> Result<TreeStore> {
        let (limits, max_read) = (self.limits.limits(), self.limits.max_read());
        let opened = match (self.remote_object(), self.remote_store()) {
            (Some(object), _) => {
                TreeStore::open_source_with_limits(Arc::clone(object), limits, max_read)
            }
            (None, Some(store)) => store.open(limits, max_read),
            (None, None) => TreeStore::open_with_limits(self.path, limits, max_read),
        };
        opened.map_err(|error| self.no_store(error))
    }

    /// The error of opening a store: states if the zip file is not a store.
    fn no_store(&self, error: blosc2::Error) -> anyhow::Error {
        let error = error.at(self.path);
        match error.kind() == ErrorKind::InvalidData && foreign::is_other_zip(self.path) {
            true => foreign::refused("open", self.path, Some(foreign::OTHER_ZIP)),
            false => error.into(),
        }
    }

    /// Opens it as a super-chunk with other options.
    pub(crate) fn open_with(&self, options: OpenOptions) -> Result<SChunk> {
        if self.is_store()? {
            return self.open_in_store();
        }
        if let Some(key) = self.key {
            return Ok(self.embedded()?.frame(key)?);
        }
        let kind = self.kind().map_err(|error| self.unread(&error))?;
        if let Some(kind) = kind.filter(|&kind| needs_rust(kind)) {
            bail!(
                "cannot open ({}): this is {}, which C-Blosc2 does not open; `copy` converts \
                 it to a frame",
                self.path.display(),
                with_article(kind)
            );
        }
        if kind.is_none() {
            let format = self.bytes().ok().and_then(|bytes| foreign::name(&bytes));
            let error = foreign::refused("open", self.path, format);
            // Many servers redirect to a list of the files in a directory.
            return Err(match (self.opened, format) {
                (Some(_), Some(foreign::TEXT)) => {
                    anyhow!("{error}; the URL of a directory ends with a slash")
                }
                _ => error,
            });
        }
        let (options, target) = match self.opened {
            None => (options.locking(self.locking), Target::from(self.path)),
            Some(remote::Opened::Object(object)) => {
                (options, Target::storage(ReadOnly::new(Arc::clone(object))))
            }
            Some(remote::Opened::Folder(folder)) => (options, Target::folder(folder.clone())),
            // It was opened above.
            Some(remote::Opened::Store(_)) => return self.open_in_store(),
        };
        let opened = options.open(target.offset(self.offset));
        Ok(opened.map_err(|error| error.at(self.path))?)
    }

    /// Opens the file as an embedded store, because a key is given.
    fn embedded(&self) -> Result<EmbedStore> {
        let file = Self { key: None, ..*self };
        let what = match file.kind().map_err(|error| self.unread(&error))? {
            Some(kind) if needs_rust(kind) => with_article(kind),
            _ => {
                let content = Content::open(file)?;
                match content {
                    Content::SChunk(schunk) if EmbedStore::is_in(&schunk) => {
                        return Ok(EmbedStore::from_schunk(schunk)?);
                    }
                    Content::SChunk(_) | Content::Tensor(_) => "a super-chunk".to_owned(),
                    Content::Array(_) => "an array".to_owned(),
                }
            }
        };
        Err(NoStore { path: self.path.display().to_string(), what }.into())
    }

    fn open_in_store(&self) -> Result<SChunk> {
        let Some(key) = self.key else {
            let what = match self.object()? {
                Object::CTable(_) => table_with(""),
                _ => STORE.to_owned(),
            };
            bail!("cannot open ({}): this is {what}", self.path.display());
        };
        // One handle, because another program may change the store meanwhile.
        let store = self.tree()?;
        let missing = match store.schunk(key) {
            Err(error) if error.kind() == ErrorKind::NotFound => error,
            found => return Ok(found?),
        };
        let what = match (is_group(&store, key), store.get(key)) {
            (true, _) => format!("a group; `ls --key {key}` lists its entries"),
            (false, Ok(Object::CTable(_))) => table_with(key),
            _ => return Err(missing.into()),
        };
        bail!("cannot open ({}): this is {what}", self.path.display())
    }

    /// The store and the group, if the key is that of a group.
    pub(crate) fn group(&self) -> Result<Option<(TreeStore, &str)>> {
        let Some(key) = self.key else { return Ok(None) };
        if !self.is_store()? {
            return Ok(None);
        }
        let store = self.tree()?;
        Ok(is_group(&store, key).then_some((store, key.strip_suffix('/').unwrap_or(key))))
    }

    /// The error of opening the path.
    pub(crate) fn unopened(&self, error: &io::Error) -> anyhow::Error {
        foreign::unopened(self.path, error)
    }

    pub(crate) fn unread(&self, error: &dyn std::fmt::Display) -> anyhow::Error {
        anyhow!("cannot read ({}): {error}", self.path.display())
    }
}

/// The variable-length metalayer of a tensor.
pub(crate) const TENSOR: &str = "__pack_tensor__";

/// Whether a key is that of a group. `ls` prints groups with a trailing slash.
fn is_group(store: &TreeStore, key: &str) -> bool {
    let key = key.strip_suffix('/').unwrap_or(key);
    store.groups().any(|group| group == key)
}

/// The description of a table where data was expected.
fn table_with(key: &str) -> String {
    format!(
        "a table; `ls` lists its columns, --key {key}/_cols/NAME selects one as stored, including \
         deleted rows"
    )
}

/// The description of a store where data was expected.
const STORE: &str = "a store; `ls` lists its entries, --key selects one";

/// A key was given for a file that is not a store.
#[derive(Debug)]
pub(crate) struct NoStore {
    path: String,
    /// What the file is, with its article.
    what: String,
}

impl fmt::Display for NoStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, what } = self;
        write!(f, "cannot open ({path}): this is {what}, not a store; leave out --key")
    }
}

impl std::error::Error for NoStore {}

/// Whether only `blosc2-format` reads files of this kind.
pub(crate) fn needs_rust(kind: Kind) -> bool {
    kind == Kind::Chunk || kind.is_old()
}

/// The content of a file.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one at a time")]
pub(crate) enum Content {
    /// An n-dimensional array.
    Array(NDArray),
    /// A plain super-chunk.
    SChunk(SChunk),
    /// A super-chunk with the shape and the dtype of its items.
    Tensor(Tensor),
}

impl Content {
    /// Opens a file or a directory. A tensor is opened as its super-chunk.
    pub(crate) fn open(source: Source<'_>) -> Result<Self> {
        let schunk = source.open()?;
        if schunk.info().is_array {
            return Ok(Self::Array(blosc2::array::from_python_object(schunk)?));
        }
        Ok(Self::SChunk(schunk))
    }

    /// Opens a file whose items are data.
    pub(crate) fn open_data(source: Source<'_>) -> Result<Self> {
        let content = Self::open(source)?;
        if EmbedStore::is_in(content.schunk()) {
            let path = source.path.display();
            match source.key {
                None => bail!("cannot open ({path}): this is {STORE}"),
                Some(key) => bail!(
                    "cannot open ({path}): `{key}` is a store; `copy` writes it to a separate file"
                ),
            }
        }
        let pointers = match &content {
            Self::Array(array) => array.dtype().is_some_and(|dtype| dtype.has_pointers()),
            Self::SChunk(schunk) => schunk.vlmeta().contains(TENSOR),
            Self::Tensor(_) => false,
        };
        if content.schunk().info().python_object.is_none() && !pointers {
            return Ok(content);
        }
        let path = source.path.display();
        // Fails with a description if the items are not data.
        match source.object()? {
            Object::Carrier(carrier) => bail!("cannot read items ({path}): this is {carrier}"),
            Object::Tensor(tensor) if tensor.dtype().size() == 0 => {
                bail!("cannot read items ({path}): its dtype `{}` has no bytes", tensor.dtype())
            }
            Object::Tensor(tensor) => Ok(Self::Tensor(tensor)),
            _ => Ok(content),
        }
    }

    pub(crate) fn schunk(&self) -> &SChunk {
        match self {
            Self::Array(array) => array.schunk(),
            Self::SChunk(schunk) => schunk,
            Self::Tensor(tensor) => tensor.schunk(),
        }
    }

    pub(crate) fn items(&self) -> &dyn Items {
        match self {
            Self::Array(array) => array,
            Self::SChunk(schunk) => schunk,
            Self::Tensor(tensor) => tensor,
        }
    }

    /// The items, on their own.
    pub(crate) fn into_items(self) -> Box<dyn Items> {
        match self {
            Self::Array(array) => Box::new(array),
            Self::SChunk(schunk) => Box::new(schunk),
            Self::Tensor(tensor) => Box::new(tensor),
        }
    }

    /// Bytes of all items, without the padding of the chunks of an array.
    pub(crate) fn nbytes(&self) -> u64 {
        match self {
            Self::Array(array) => array.len().saturating_mul(array.typesize() as u64),
            Self::SChunk(_) | Self::Tensor(_) => self.schunk().nbytes(),
        }
    }
}
