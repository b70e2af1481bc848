//! What a file contains: a table, or arrays that are read as a table.

use std::sync::Arc;

use blosc2::{Error, ErrorKind, Result};
use blosc2_store::arrow::ReadOptions;
use blosc2_store::{CTable, Object, TreeStore};
use datafusion::arrow::array::RecordBatchReader;
use datafusion::arrow::datatypes::Schema;

use crate::arrays::{Arrays, is_in};

/// The extension of the files of tables and stores.
pub(crate) const EXTENSION: &str = "b2z";

/// What files are expected to contain, and how it is read.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Reading {
    pub(crate) kind: Kind,
    /// The names of the axes of arrays, if the files do not name them.
    pub(crate) dims: Option<Vec<String>>,
    /// The key of a table, of an array or of a group of arrays in stores.
    pub(crate) key: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    #[default]
    Any,
    Table,
    Arrays,
}

/// The opened content of a file.
#[derive(Debug, Clone)]
pub(crate) enum Content {
    Table(Arc<CTable>),
    Arrays(Arc<Arrays>),
}

impl Content {
    pub(crate) fn new(object: Object, reading: &Reading) -> Result<Self> {
        let mut group = "";
        let object = match (object, &reading.key) {
            (object, None) => object,
            (Object::TreeStore(store), Some(key)) => match store.contains(key) {
                true => store.get(key)?,
                false => {
                    group = key.trim_end_matches('/');
                    let detail = || format!("the store has no `{key}`: it has {}", keys(&store));
                    if !store.keys().any(|key| is_in(key, group)) {
                        return Err(Error::new(ErrorKind::NotFound, "open a table", detail()));
                    }
                    Object::TreeStore(store)
                }
            },
            (other, Some(key)) => {
                let found = other.kind();
                let detail =
                    format!("it contains a {found}, expected a store with the key `{key}`");
                return Err(Error::new(ErrorKind::TypeMismatch, "open a table", detail));
            }
        };
        let expected = match (object, reading.kind) {
            (Object::CTable(table), Kind::Table | Kind::Any) => {
                return Ok(Self::Table(Arc::new(table)));
            }
            (object @ (Object::NDArray(_) | Object::TreeStore(_)), Kind::Arrays | Kind::Any) => {
                let arrays = Arrays::new(object, group, reading.dims.as_deref())?;
                return Ok(Self::Arrays(Arc::new(arrays)));
            }
            (Object::TreeStore(store), Kind::Table) => {
                let found = format!("store with the keys {}", keys(&store));
                (found, "a table (CTable): the option `key` names a table of a store")
            }
            (found, Kind::Table) => (found.kind().to_string(), "a table (CTable)"),
            (found, Kind::Arrays) => (found.kind().to_string(), "an array or a store of arrays"),
            (found, Kind::Any) => (found.kind().to_string(), "a table or arrays"),
        };
        let detail = format!("it contains a {}, expected {}", expected.0, expected.1);
        Err(Error::new(ErrorKind::TypeMismatch, "open a table", detail))
    }

    pub(crate) fn nrows(&self) -> u64 {
        match self {
            Self::Table(table) => table.nrows(),
            Self::Arrays(arrays) => arrays.nrows(),
        }
    }

    /// The schema of the columns that have an Arrow type.
    pub(crate) fn schema(&self) -> Result<Schema> {
        match self {
            Self::Table(table) => schema_of(table),
            Self::Arrays(arrays) => Ok(arrays.schema()),
        }
    }
}

/// The first keys of a store, for messages.
fn keys(store: &TreeStore) -> String {
    const MOST: usize = 8;
    let mut all = store.keys();
    let mut keys: Vec<String> = all.by_ref().take(MOST).map(|key| format!("`{key}`")).collect();
    if all.next().is_some() {
        keys.push("...".to_owned());
    }
    keys.join(", ")
}

/// A container in a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The key, for the option `key`, such as `/group/table`.
    pub key: String,
    /// Whether it is a table.
    pub is_table: bool,
    /// Whether it is an array. SQL reads neither other members, nor arrays without an Arrow type.
    pub is_array: bool,
}

/// The members of a store. Other objects have none.
pub(crate) fn members(object: Object) -> Vec<Member> {
    let Object::TreeStore(store) = object else { return Vec::new() };
    let member = |key: &str| {
        let object = store.get(key);
        let is_table = matches!(object, Ok(Object::CTable(_)));
        // Reading the arrays of a store reports those that are damaged.
        let is_array = matches!(object, Ok(Object::NDArray(_)) | Err(_));
        Member { key: key.to_owned(), is_table, is_array }
    };
    store.keys().map(member).collect()
}

fn schema_of(table: &CTable) -> Result<Schema> {
    let mut fields = Vec::new();
    for column in table.columns() {
        match ReadOptions::new().columns([column.name()]).read(table) {
            Ok(column) => fields.extend(column.schema().fields().iter().cloned()),
            Err(error) if error.kind() == ErrorKind::Unsupported => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Schema::new(fields))
}
