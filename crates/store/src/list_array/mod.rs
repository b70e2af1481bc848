//! List arrays: a list of items of one type in each row.

#[cfg(feature = "c")]
mod change;

use crate::blosc2::super_chunk::Metalayers;
use crate::blosc2::{ErrorKind, Result, SChunk, Target, Value};

use crate::tag::{error, tag, what};
use crate::{BatchArray, ItemKind, ItemType, ObjectArray};

const NAME: &str = "listarray";
const OPEN: &str = "open a list array";
const MAKE: &str = "create a list array";
const READ: &str = "read from a list array";
const WRITE: &str = "write to a list array";

/// An array with one variable-length list in each row. All items of the lists have one type. Python: `ListArray`.
///
/// By default, a list array is a [`BatchArray`] with the additional metalayer `listarray`. Appended rows are buffered,
/// and written in batches of `batch_rows` rows (2048 by default), or of fewer rows if these take more than 256 MiB of
/// memory. [`flush`](Self::flush) writes the buffered rows.
/// Dropping the array also writes the buffered rows, but ignores errors.
///
/// If the option `storage` of the [list type](Self::list_type) is `vl`, the list array is an [`ObjectArray`] with the
/// metalayer `listarray`. Each row is then written immediately.
///
/// ```
/// use blosc2::Value;
/// use blosc2_store::{ItemKind, ListArray};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("lists.b2b");
/// let mut lists = ListArray::create(&path, ItemKind::Int32, true)?;
/// lists.append(Some(&[1, 2, 3]))?;
/// lists.append::<i32>(None)?;
/// lists.append::<i32>(Some(&[]))?;
/// lists.flush()?;
/// drop(lists);
///
/// let lists = ListArray::open(&path)?;
/// assert_eq!(lists.len(), 3);
/// assert_eq!(lists.get(0)?, Some(vec![1.into(), 2.into(), 3.into()]));
/// assert_eq!(lists.get(1)?, None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ListArray {
    /// The type of the rows, of the kind `List`.
    list: ItemType,
    /// `None` only after `into_schunk` took it.
    rows: Option<Rows>,
    batch_rows: Option<u64>,
    /// Number of stored rows.
    stored: u64,
    /// Buffered rows, not stored yet.
    pending: Vec<Value>,
    /// The bytes of memory of the buffered rows.
    pending_bytes: u64,
}

#[derive(Debug)]
enum Rows {
    Batches(BatchArray),
    Objects(ObjectArray),
}

impl ListArray {
    /// Opens a file or a directory for reading.
    ///
    /// # Errors
    /// Fails with the errors of [opening a container](crate#opening-a-container).
    pub fn open(target: impl Into<Target>) -> Result<Self> {
        Self::from_schunk(SChunk::open(target)?)
    }

    /// Opens the array in a super-chunk.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidData`]: the metalayer `listarray` is missing or invalid, or the metalayer of the
    ///   underlying [`BatchArray`] or [`ObjectArray`] is missing or invalid;
    /// - [`ErrorKind::Unsupported`]: the items are serialized with Arrow, and this build does not have the feature
    ///   `arrow`; or the format version of the array is newer than this crate supports;
    /// - the errors of [`BatchArray::nitems`]. `from_schunk` calls this method, which reads all batches if the stored
    ///   numbers of rows are missing or invalid.
    pub fn from_schunk(schunk: SChunk) -> Result<Self> {
        let invalid = |detail: String| {
            error(
                &schunk,
                ErrorKind::InvalidData,
                OPEN,
                format!("its metalayer `{NAME}` is invalid: {detail}"),
            )
        };
        let list = of_tag(tag(&schunk, NAME, OPEN)?).map_err(invalid)?;
        let rows = match list.get("storage").and_then(Value::as_str) {
            Some("batch") => Rows::Batches(BatchArray::from_schunk(schunk)?),
            Some("vl") => Rows::Objects(ObjectArray::from_schunk(schunk)?),
            _ => {
                let found = list.get("storage").map_or_else(String::new, what);
                return Err(invalid(format!("the backend {found}, expected `batch` or `vl`")));
            }
        };
        Self::new(list, rows)
    }

    fn new(list: ItemType, rows: Rows) -> Result<Self> {
        let mut this = Self {
            list,
            rows: Some(rows),
            batch_rows: None,
            stored: 0,
            pending: Vec::new(),
            pending_bytes: 0,
        };
        let invalid = |detail| error(this.stored(), ErrorKind::InvalidData, OPEN, detail);
        this.batch_rows = match this.list.length("batch_rows").map_err(invalid)? {
            Some(0) => {
                return Err(invalid("its batches have 0 rows, expected at least 1".to_owned()));
            }
            rows => rows,
        };
        this.stored = this.count()?;
        Ok(this)
    }

    /// The super-chunk, without the buffered rows.
    pub(crate) fn stored(&self) -> &SChunk {
        match self.rows() {
            Rows::Batches(batches) => batches.schunk(),
            Rows::Objects(objects) => objects.schunk(),
        }
    }

    /// Returns the variable-length metalayers: the metalayers of the user, and the metalayer `_batch_array_metadata` of
    /// the [`BatchArray`].
    pub fn vlmeta(&self) -> Metalayers<'_> {
        self.stored().vlmeta()
    }

    /// Returns the type of the rows. Its kind is [`List`](ItemKind::List).
    pub fn list_type(&self) -> &ItemType {
        &self.list
    }

    /// Returns the type of the items of the lists.
    pub fn item_type(&self) -> &ItemType {
        match self.list.kind() {
            ItemKind::List(item) => item,
            _ => &self.list,
        }
    }

    /// Returns whether rows can be null (`None`).
    pub fn is_nullable(&self) -> bool {
        self.list.is_nullable()
    }

    /// Returns the number of rows, including buffered rows.
    pub fn len(&self) -> u64 {
        // The stored number of rows is untrusted.
        self.stored.saturating_add(self.pending() as u64)
    }

    /// Returns whether the array has no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of buffered rows, which are not written yet.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Reads a row. Returns `None` for a null row. Python: `array[row]`.
    ///
    /// Each call decompresses the block that contains the row. To read many rows, use [`iter`](Self::iter).
    ///
    /// # Errors
    /// - [`ErrorKind::OutOfBounds`]: `row` is not below the number of rows;
    /// - [`ErrorKind::InvalidData`]: the row is not a list, or the number of rows in its batch differs from the stored
    ///   number;
    /// - the errors of [reading values](crate#reading-values).
    pub fn get(&self, row: u64) -> Result<Option<Vec<Value>>> {
        let value = match self.pending_index(row)? {
            Some(index) => self.pending.get(index).cloned().unwrap_or(Value::None),
            None => match self.rows() {
                Rows::Batches(batches) => batches.item(row)?,
                Rows::Objects(objects) => objects.get(row as usize)?,
            },
        };
        self.row_of(value)
    }

    /// Returns an iterator over all rows. The iterator reads batch by batch. After an error, the iterator continues
    /// with the next batch.
    pub fn iter(&self) -> impl Iterator<Item = Result<Option<Vec<Value>>>> + '_ {
        let stored: Box<dyn Iterator<Item = Result<Value>> + '_> = match self.rows() {
            Rows::Batches(batches) => Box::new(batches.items()),
            Rows::Objects(objects) => Box::new(objects.iter()),
        };
        let pending = self.pending.iter().map(|value| Ok(value.clone()));
        stored.chain(pending).map(|value| self.row_of(value?))
    }

    fn rows(&self) -> &Rows {
        self.rows.as_ref().expect("only `into_schunk` takes it")
    }

    fn count(&self) -> Result<u64> {
        match self.rows() {
            Rows::Batches(batches) => batches.nitems(),
            Rows::Objects(objects) => Ok(objects.len() as u64),
        }
    }

    /// The index of a row among the buffered rows; `None` if it is stored.
    fn pending_index(&self, row: u64) -> Result<Option<usize>> {
        if row >= self.len() {
            let detail = format!("there are {} rows, asked for {row}", self.len());
            return Err(error(self.stored(), ErrorKind::OutOfBounds, READ, detail));
        }
        Ok(row.checked_sub(self.stored).map(|index| index as usize))
    }

    fn row_of(&self, value: Value) -> Result<Option<Vec<Value>>> {
        match value {
            Value::None => Ok(None),
            Value::List(items) | Value::Tuple(items) => Ok(Some(items)),
            _ => {
                let detail = "a row is neither a list nor None";
                Err(error(self.stored(), ErrorKind::InvalidData, READ, detail))
            }
        }
    }
}

/// Parses the row type in the metalayer. The error describes the fault.
fn of_tag(tag: Value) -> Result<ItemType, String> {
    let Value::Map(pairs) = tag else { return Err("it is not a map".to_owned()) };
    let mut says = vec![("kind".into(), "list".into())];
    let mut storage = Value::from("batch");
    for (name, value) in pairs {
        match name.as_str() {
            Some("version" | "kind") => {}
            Some("backend" | "storage") => storage = value,
            Some("item_spec") => says.push(("item".into(), value)),
            _ => says.push((name, value)),
        }
    }
    says.push(("storage".into(), storage));
    ItemType::from_metadata(Value::Map(says))
}
