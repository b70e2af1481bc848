//! What a file contains: a table, or arrays that are read as a table.

use std::sync::Arc;

use blosc2::{Error, ErrorKind, Result};
use blosc2_store::arrow::ReadOptions;
use blosc2_store::{CTable, Object};
use datafusion::arrow::array::RecordBatchReader;
use datafusion::arrow::datatypes::Schema;

use crate::arrays::Arrays;

/// The extension of the files of tables and stores.
pub(crate) const EXTENSION: &str = "b2z";

/// What files are expected to contain, and how it is read.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Reading {
    pub(crate) kind: Kind,
    /// The names of the axes of arrays, if the files do not name them.
    pub(crate) dims: Option<Vec<String>>,
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
        let expected = match (object, reading.kind) {
            (Object::CTable(table), Kind::Table | Kind::Any) => {
                return Ok(Self::Table(Arc::new(table)));
            }
            (object @ (Object::NDArray(_) | Object::TreeStore(_)), Kind::Arrays | Kind::Any) => {
                let arrays = Arrays::new(object, reading.dims.as_deref())?;
                return Ok(Self::Arrays(Arc::new(arrays)));
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
