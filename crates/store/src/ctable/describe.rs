//! Statistics of columns, their first rows, and the strings of dictionaries.

use std::cmp::Ordering;
use std::collections::HashSet;

use crate::blosc2::{Error, ErrorKind, Result, Value};

use super::{CTable, READ, summary};
use crate::ItemKind;

/// The memory of the distinct strings of a column that are counted.
const MAX_DISTINCT: usize = 64 << 20;

/// Statistics of a column of a table. [`CTable::describe`] returns them.
///
/// ```
/// use blosc2_store::{CTable, Data, ItemKind, ItemType, Schema};
///
/// let price = ItemType::from(ItemKind::Float32).nullable();
/// let schema = Schema::new().column("price", price).column("name", ItemKind::Utf8);
/// let mut table = CTable::in_memory(&schema)?;
/// let prices = Data::items(&[1.5f32, 0.0, 2.5]).nulls(&[false, true, false][..]);
/// table.append([("price", prices), ("name", Data::texts(["b", "a", "b"].map(Some)))])?;
///
/// let price = table.describe("price")?;
/// assert_eq!((price.count, price.nulls), (3, 1));
/// assert_eq!((price.min, price.max), (Some(1.5.into()), Some(2.5.into())));
/// assert_eq!((price.mean, price.std), (Some(2.0), Some(0.5)));
/// let name = table.describe("name")?;
/// assert_eq!((name.min, name.distinct), (Some("a".into()), Some(2)));
/// # Ok::<(), blosc2_store::blosc2::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct ColumnDescription {
    /// The number of valid rows of the table, including null rows.
    pub count: u64,
    /// The number of null rows.
    pub nulls: u64,
    /// The number of rows with NaN. All following statistics ignore them, as well as null rows. Python does not ignore
    /// NaN: its statistics are NaN.
    pub nan_count: u64,
    /// The smallest value of numbers, booleans, timestamps, strings and bytes. Strings are compared by Unicode code
    /// points. `None` if there is no value, or if the column has other values.
    pub min: Option<Value>,
    /// The largest value, as `min`.
    pub max: Option<Value>,
    /// The arithmetic mean of numbers, booleans (the share of `true`) and timestamps (in the unit of the column); `None`
    /// if there is no value, or if the column has other values.
    pub mean: Option<f64>,
    /// The standard deviation (`ddof` is 0), as `mean`.
    pub std: Option<f64>,
    /// The number of distinct values of strings and bytes; `None` if the column has other values, or if the distinct
    /// values take more than 64 MiB of memory. Python: `unique`.
    pub distinct: Option<u64>,
}

impl CTable {
    /// Returns the strings of a dictionary column, each once, in the order of their codes. Rows need not contain all of
    /// them. Python: `table[name].dictionary`.
    ///
    /// ```
    /// use blosc2_store::{CTable, Data, ItemKind, Schema};
    ///
    /// let schema = Schema::new().column("word", ItemKind::Dictionary { ordered: false });
    /// let mut table = CTable::in_memory(&schema)?;
    /// table.append([("word", Data::texts(["b", "a", "b"].map(Some)))])?;
    /// assert_eq!(table.categories("word")?, ["b", "a"]);
    /// assert_eq!(table.read::<i32>("word", ..)?, [0, 1, 0]);
    /// # Ok::<(), blosc2_store::blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`ErrorKind::TypeMismatch`]: the column is not a dictionary;
    /// - the errors of [`values`](Self::values).
    pub fn categories(&self, name: &str) -> Result<Vec<String>> {
        let (column, stored) = self.stored(name)?;
        match stored.words()? {
            Some(words) => Ok(words.to_vec()),
            None => {
                let kind = column.kind();
                let detail = format!("the column `{name}` is of type {kind}, not a dictionary");
                Err(Error::new(ErrorKind::TypeMismatch, READ, detail))
            }
        }
    }

    /// Returns the names of all columns, with the values of the first `rows` rows, or of all rows if there are fewer. The
    /// value of a null row is [`Value::None`]. Columns that Python computes by an expression are
    /// [evaluated](Self::evaluate); their values are `None` where another column is null. Python: `head`.
    ///
    /// ```
    /// use blosc2_store::{CTable, Data, ItemKind, Schema};
    ///
    /// let mut table = CTable::in_memory(&Schema::new().column("id", ItemKind::Int64))?;
    /// table.append([("id", Data::items(&[7i64, 8, 9]))])?;
    /// assert_eq!(table.head(2)?, [("id", vec![7.into(), 8.into()])]);
    /// # Ok::<(), blosc2_store::blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// Fails with the errors of [`values`](Self::values) and [`evaluate`](Self::evaluate).
    pub fn head(&self, rows: u64) -> Result<Vec<(&str, Vec<Value>)>> {
        let rows = rows.min(self.nrows());
        let columns = self.columns.iter();
        columns
            .map(|column| Ok((column.name(), self.evaluated_values(column.name(), 0..rows)?)))
            .collect()
    }

    /// Computes statistics of a column in one pass. Python: `describe`.
    ///
    /// The values of at most 2<sup>16</sup> rows are in memory at the same time. They take at most 16 MiB of memory,
    /// unless those of one row, or of one batch of a column in batches, take more; the stored form of these rows is in
    /// memory, too. In addition, distinct strings take up to 64 MiB, and all strings of a dictionary are in memory. An
    /// empty column is not read.
    ///
    /// A column that Python computes by an expression is [evaluated](Self::evaluate); its rows are null where another
    /// column is null. Its rows are read in parts of 2<sup>16</sup> rows of any size.
    ///
    /// # Errors
    /// Fails with the errors of [`values`](Self::values) and [`evaluate`](Self::evaluate).
    pub fn describe(&self, name: &str) -> Result<ColumnDescription> {
        use ItemKind::*;
        let column = self.find_column(name)?;
        let kind = column.kind();
        let has_statistics =
            !matches!(kind, Complex64 | Complex128 | List(_) | Struct(_) | Object | NDArray { .. });
        let mut described = ColumnDescription { count: self.nrows(), ..Default::default() };
        let (mut moments, mut distinct) = (Moments::default(), Distinct::default());
        if !has_statistics && !column.is_stale() {
            let read = |rows| self.nulls(name, rows);
            self.in_parts(name, read, |_, nulls| {
                described.nulls += nulls.into_iter().filter(|null| *null).count() as u64;
                Ok(())
            })?;
            return Ok(described);
        }
        let read = |rows| self.evaluated_values(name, rows);
        self.in_parts(name, read, |_, values| {
            for value in values {
                match &value {
                    Value::None => {
                        described.nulls += 1;
                        continue;
                    }
                    Value::Float(number) if number.is_nan() => {
                        described.nan_count += 1;
                        continue;
                    }
                    Value::Bool(value) => moments.add(f64::from(u8::from(*value))),
                    Value::Int(number) => moments.add(*number as f64),
                    Value::Float(number) => moments.add(*number),
                    Value::Str(text) => distinct.add(text.as_bytes()),
                    Value::Bytes(bytes) => distinct.add(bytes),
                    _ => continue,
                }
                // The clone of a string is made for a new extreme only.
                if is_beyond(&value, described.min.as_ref(), Ordering::Less) {
                    described.min = Some(value.clone());
                }
                if is_beyond(&value, described.max.as_ref(), Ordering::Greater) {
                    described.max = Some(value);
                }
            }
            Ok(())
        })?;
        if moments.count > 0 {
            described.mean = Some(moments.mean());
            described.std = Some((moments.squares / moments.count as f64).sqrt());
        }
        let is_text = kind.is_text() || matches!(kind, Bytes { .. } | VlBytes);
        described.distinct = distinct.count().filter(|_| is_text);
        Ok(described)
    }
}

/// Whether a value is in this order to the last extreme.
fn is_beyond(value: &Value, last: Option<&Value>, order: Ordering) -> bool {
    let Some(last) = last else { return true };
    let found = match (value, last) {
        (Value::Str(value), Value::Str(last)) => Some(value.cmp(last)),
        (Value::Bytes(value), Value::Bytes(last)) => Some(value.cmp(last)),
        _ => summary::order(value, last),
    };
    found == Some(order)
}

/// The mean and the sum of the squared distances from it, updated item by item without cancellation.
#[derive(Default)]
struct Moments {
    count: u64,
    mean: f64,
    squares: f64,
    /// Used if there are infinities: `mean` becomes NaN.
    sum: f64,
}

impl Moments {
    fn add(&mut self, item: f64) {
        self.count += 1;
        let distance = item - self.mean;
        self.mean += distance / self.count as f64;
        self.squares += distance * (item - self.mean);
        self.sum += item;
    }

    fn mean(&self) -> f64 {
        if self.mean.is_finite() { self.mean } else { self.sum / self.count as f64 }
    }
}

/// Distinct values, until they take too much memory.
#[derive(Default)]
struct Distinct {
    values: HashSet<Vec<u8>>,
    taken: usize,
}

impl Distinct {
    fn add(&mut self, value: &[u8]) {
        if self.taken <= MAX_DISTINCT && !self.values.contains(value) {
            self.taken += value.len() + size_of::<Vec<u8>>();
            self.values.insert(value.to_vec());
        }
    }

    fn count(&self) -> Option<u64> {
        (self.taken <= MAX_DISTINCT).then_some(self.values.len() as u64)
    }
}
