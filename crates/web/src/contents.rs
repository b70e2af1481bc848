//! The contents of stores: a list of entries. An entry is opened like a file, or is a table.

use std::collections::BTreeSet;
use std::sync::Arc;

use blosc2_store::blosc2::Error;
use blosc2_store::{EmbedStore, Members, Object, TreeStore};

use crate::data::limits;
use crate::rows::Rows;
use crate::source::Source;

/// The maximum number of entries that are listed.
const MAX_ENTRIES: usize = 100_000;

/// An open store.
pub struct Contents {
    source: Source,
    root: Object,
    /// The members of a zip file.
    members: Option<Members>,
}

impl std::fmt::Debug for Contents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Contents").field("root", &self.root).finish_non_exhaustive()
    }
}

/// An entry of a store.
pub enum Entry {
    /// A file, or a part of the store that is like one.
    File(Source),
    /// A table.
    Rows(Box<Rows>),
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::File(_) => "File",
            Self::Rows(_) => "Rows",
        })
    }
}

impl Contents {
    /// Returns whether the bytes in `source` are a zip file, which only stores are.
    ///
    /// # Errors
    /// Reading fails.
    pub fn is_archive(source: &Source) -> Result<bool, Error> {
        TreeStore::is_in(source)
    }

    /// Opens the store in `source`. Returns `None` if the source contains no store.
    ///
    /// # Errors
    /// Fails with the errors of opening a container of `blosc2-store`.
    pub fn open(source: &Source) -> Result<Option<Self>, Error> {
        let is_archive = Self::is_archive(source)?;
        let root = open(source)?;
        let is_store =
            matches!(root, Object::TreeStore(_) | Object::EmbedStore(_) | Object::CTable(_));
        let members = is_archive.then(|| Members::open_source(Arc::clone(source))).transpose()?;
        let source = Arc::clone(source);
        Ok(is_store.then_some(Self { source, root, members }))
    }

    /// Returns the type of the store: `treestore`, `dictstore`, `embedstore` or `ctable`.
    pub fn kind(&self) -> &'static str {
        self.root.kind()
    }

    /// Returns the keys of the entries. A table that is the whole store has the key `/`.
    pub fn keys(&self) -> Vec<String> {
        match &self.root {
            Object::TreeStore(store) => store.keys().take(MAX_ENTRIES).map(str::to_owned).collect(),
            Object::EmbedStore(store) => {
                store.keys().take(MAX_ENTRIES).map(str::to_owned).collect()
            }
            _ => vec!["/".to_owned()],
        }
    }

    /// Returns the keys of the members of a zip file that are not entries: the parts of tables, indexes and attributes.
    pub fn internal(&self) -> Vec<String> {
        let keys: BTreeSet<String> = self.keys().into_iter().collect();
        let members = self.members.iter().flat_map(Members::iter);
        let members = members.filter_map(|member| member.key());
        members.filter(|key| !keys.contains(key)).take(MAX_ENTRIES).collect()
    }

    /// Opens an entry.
    ///
    /// # Errors
    /// There is no such entry, it is damaged, or it holds no data.
    pub fn entry(&self, key: &str) -> Result<Entry, Error> {
        let member = self
            .members
            .iter()
            .flat_map(Members::iter)
            .find(|member| member.key().as_deref() == Some(key));
        if let Some(member) = member {
            return member.open().map(Entry::File);
        }
        match &self.root {
            Object::EmbedStore(store) => embedded(store, key),
            Object::TreeStore(store) if store.embedded_store().contains(key) => {
                embedded(store.embedded_store(), key)
            }
            Object::TreeStore(store) => match store.get(key)? {
                Object::CTable(table) => Ok(Entry::Rows(Box::new(Rows::Table(Box::new(table))))),
                other => Err(no_data(key, other.kind())),
            },
            // The store is a table.
            _ => match Rows::of(open(&self.source)?) {
                Ok(rows) if key == "/" => Ok(Entry::Rows(Box::new(rows))),
                _ => Err(no_data(key, self.kind())),
            },
        }
    }
}

/// Opens the container in `source`.
///
/// # Errors
/// Fails with the errors of opening a container of `blosc2-store`.
pub fn open(source: &Source) -> Result<Object, Error> {
    let limits = limits();
    Object::open_source_with_limits(Arc::clone(source), limits, Some(limits.memory))
}

/// The frame of an entry of an embedded store.
fn embedded(store: &EmbedStore, key: &str) -> Result<Entry, Error> {
    let found = store.frame_ranges().find(|(name, _)| *name == key);
    let range = found
        .and_then(|(_, range)| range)
        .ok_or_else(|| no_data(key, "reference to data elsewhere"))?;
    let bytes = store.schunk().read::<u8>(range)?;
    Ok(Entry::File(Arc::new(bytes)))
}

fn no_data(key: &str, kind: &str) -> Error {
    let detail = format!("the entry `{key}` is a {kind}, which holds no data here");
    Error::new(blosc2_store::blosc2::ErrorKind::Unsupported, "open an entry", detail)
}
