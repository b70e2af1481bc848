//! Columns of a table, as its schema describes them.

use std::sync::OnceLock;

use crate::blosc2::super_chunk::Revision;
use crate::blosc2::{Dtype, Element, NDArray, Result, SChunk, Value};

use crate::{BatchArray, ItemKind, ItemType, ObjectArray};

/// A column of a [`CTable`](super::CTable).
///
/// ```
/// use blosc2_store::{CTable, ItemKind, ItemType, Schema};
///
/// let price = ItemType::from(ItemKind::Float32).nullable();
/// let table = CTable::in_memory(&Schema::new().column("price", price))?;
/// let column = table.column("price").expect("a column of the schema");
/// assert_eq!(column.kind(), &ItemKind::Float32);
/// assert!(column.is_nullable() && !column.is_stale());
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug)]
pub struct Column {
    pub(super) name: String,
    pub(super) spec: ItemType,
    /// Its entry in the schema. It is stored as it was read, also what the type does not describe.
    pub(super) entry: Value,
    pub(super) nullable: bool,
    pub(super) nulls: Nulls,
    /// The key of its data, below the table.
    pub(super) key: String,
    /// Whether the columns that it was computed from have changed since.
    pub(super) stale: bool,
    /// Its storage, once it is opened.
    pub(super) stored: OnceLock<Box<Stored>>,
    /// The compression parameters of its schema. Files do not store all of them.
    #[cfg(feature = "c")]
    pub(super) cparams: Option<Box<crate::blosc2::CParams>>,
}

/// How a column represents null rows.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Nulls {
    Never,
    /// By a separate mask.
    Mask,
    /// By a null value.
    Sentinel(Value),
    /// By a null code, which is not an index into the list of strings.
    Code(i64),
    /// By `None`.
    Native,
}

impl Column {
    /// Returns the name. The name of a nested column consists of the names of all levels, separated by dots:
    /// `outer.inner`. A dot, slash or backslash inside the name of a level is escaped with a backslash.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the type.
    pub fn kind(&self) -> &ItemKind {
        self.spec.kind()
    }

    /// Returns whether rows can be null.
    pub fn is_nullable(&self) -> bool {
        self.nullable
    }

    /// Returns whether the column is stale. A stale column was computed by Python from other columns, which have
    /// changed since then. Reading a stale column fails, but [`CTable::array`](super::CTable::array) opens its stored
    /// values.
    pub fn is_stale(&self) -> bool {
        self.stale
    }

    /// Returns the type of the values: the kind and the options, such as bounds, the default value, the representation
    /// of nulls, and the size of batches. A column of another table can have the same type:
    ///
    /// ```
    /// use blosc2_store::{CTable, ItemKind, ItemType, Schema};
    ///
    /// let price = ItemType::from(ItemKind::Float32).nullable().with("ge", 0);
    /// let table = CTable::in_memory(&Schema::new().column("price", price))?;
    /// let columns = table.columns().iter();
    /// let schema = columns.fold(Schema::new(), |schema, column| schema.column(column.name(), column.spec().clone()));
    /// let other = CTable::in_memory(&schema)?;
    /// assert_eq!(other.columns()[0].spec(), table.columns()[0].spec());
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    pub fn spec(&self) -> &ItemType {
        &self.spec
    }

    /// Sets the compression parameters of the schema for new chunks of a part: files do not store the number of threads,
    /// for example.
    #[cfg(feature = "c")]
    pub(super) fn prepare(&self, mut schunk: SChunk) -> Result<SChunk> {
        if let Some(params) = &self.cparams {
            let stored = schunk.info().cparams;
            let mut params = params.clone();
            (params.typesize, params.blocksize) = (stored.typesize, stored.blocksize);
            schunk.set_cparams(params)?;
            // Without the prefilter: a change of a part of a chunk fails with it.
            schunk.set_cparams(schunk.info().cparams)?;
        }
        Ok(schunk)
    }

    #[cfg(not(feature = "c"))]
    pub(super) fn prepare(&self, schunk: SChunk) -> Result<SChunk> {
        Ok(schunk)
    }

    /// The value of an option that is a length.
    pub(super) fn length(&self, option: &str) -> Option<u64> {
        self.spec.get(option).and_then(Value::as_u64)
    }

    /// The rows of a batch; `None` if each append makes one batch.
    #[cfg(feature = "c")]
    pub(super) fn batch_rows(&self) -> Option<u64> {
        let rows = self.length("batch_rows");
        match self.kind() {
            // Python writes the pending rows of such a list as one batch.
            ItemKind::List(_) => rows,
            _ => rows.or(Some(crate::item_type::BATCH_ROWS)),
        }
    }

    /// The dtype and the shape of the fixed-size items of a row; `None` if it has none.
    pub(super) fn items(&self) -> Option<(Dtype, &[u64])> {
        Some(match self.kind() {
            ItemKind::Bool if matches!(self.nulls, Nulls::Sentinel(_)) => (u8::dtype(), &[]),
            ItemKind::NDArray { shape, dtype } => (dtype.clone(), shape),
            kind => (kind.dtype()?, &[]),
        })
    }
}

#[derive(Debug)]
pub(super) struct Stored {
    pub(super) content: Content,
    /// The mask of the rows that are not null; without it the content itself represents nulls.
    pub(super) marks: Option<NDArray>,
    /// The revision of the part whose lengths or strings are kept in memory, when it was opened.
    pub(super) seen: Option<Revision>,
}

#[derive(Debug)]
#[cfg_attr(
    feature = "c",
    expect(clippy::large_enum_variant, reason = "there is one for each column")
)]
pub(super) enum Content {
    /// Fixed-size items of one shape.
    Items(NDArray),
    /// Codes, and the list of strings, which is read when it is needed.
    Codes { codes: NDArray, texts: BatchArray, decoded: OnceLock<Vec<String>> },
    /// Offsets, and the bytes of the strings, one after the other.
    Texts { offsets: NDArray, bytes: NDArray },
    /// Values in batches.
    Batches(BatchArray),
    /// Values, one per chunk.
    Cells(ObjectArray),
}
