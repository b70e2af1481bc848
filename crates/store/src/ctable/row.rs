//! Structs as rows of a table.

use crate::blosc2::{Error, ErrorKind, Result, Value};

use super::data::Data;
use super::rows::Rows;
use super::spec::Schema;
use super::{CTable, READ};
use crate::tag::what;
use crate::{ItemKind, ItemType};

/// A struct that represents a row of a table. Each field is the cell of the column with the same name.
///
/// The feature `derive` adds `#[derive(Row)]`, which implements this trait for structs with named fields. The type of
/// each field must implement [`Cell`]. A field can have these attributes:
/// - `#[row(name = "...")]` sets the name of the column, if it differs from the name of the field;
/// - `#[row(spec = EXPR)]` sets the type of the column in the [`schema`](Self::schema). `EXPR` is an expression whose
///   type implements `Into<ItemType>`; see [`ItemType`].
///
/// The attribute `#[row(crate = "...")]` of the struct sets the path of this library in the generated code. It is
/// necessary if the library has another name than `blosc2_store`, or if another crate exports it.
///
#[cfg_attr(feature = "derive", doc = "```")]
#[cfg_attr(not(feature = "derive"), doc = "```ignore")]
/// use blosc2_store::{CTable, ItemKind, ItemType, Row};
///
/// #[derive(Debug, Clone, PartialEq, Row)]
/// struct Reading {
///     time: i64,
///     #[row(name = "°C", spec = ItemType::from(ItemKind::Float32).with("ge", -273.15))]
///     celsius: f32,
///     station: Option<String>,
///     codes: Vec<u16>,
/// }
///
/// let reading = |time, station: Option<&str>| Reading {
///     time,
///     celsius: 20.5,
///     station: station.map(str::to_owned),
///     codes: vec![1, 2],
/// };
/// let mut table = CTable::in_memory(&Reading::schema())?;
/// let rows = [reading(1, Some("north")), reading(2, None)];
/// table.append_rows(&rows)?;
/// assert_eq!(table.rows::<Reading>(..)?, rows);
/// assert_eq!(table.texts("station", 1..)?, [None]);
/// # Ok::<(), blosc2::Error>(())
/// ```
pub trait Row: Sized {
    /// Returns a schema with a column for each field.
    fn schema() -> Schema;

    /// Returns the name of each column, and the cells of `rows` in this column.
    fn columns(rows: &[Self]) -> Vec<(&'static str, Data<'static>)>;

    /// Reads rows of a table. The table may have additional columns, without a field.
    ///
    /// # Errors
    /// Fails with the errors of [`CTable::rows`].
    fn read(table: &CTable, rows: Rows) -> Result<Vec<Self>>;
}

/// The trait of types that can be a field of a [`Row`]. The [`schema`](Row::schema) of the `Row` has a column of the
/// default kind for each field without `#[row(spec = ...)]`. The type can also read and write the other kinds of
/// columns.
///
/// | type | default kind of column | other kinds of columns |
/// |---|---|---|
/// | `i8` to `i64`, `u8` to `u64`, `f32`, `f64`, `bool` | the kind of the type, such as `Int8` | |
/// | `String` | `Utf8` | all kinds of strings |
/// | `Vec<u8>` | `VlBytes` | `Bytes` |
/// | `Vec<T>`, where `T` is `String`, `bool` or a number type except `u8` | `List` | |
/// | [`Value`] | `Object` | all kinds |
/// | `Option<T>` | the kind of `T`, nullable | the kinds of `T` |
///
/// ```
/// use blosc2_store::{Cell, ItemKind};
///
/// assert_eq!(<Option<f32>>::spec().kind(), &ItemKind::Float32);
/// assert_eq!(<Vec<String>>::spec().kind().to_string(), "list[vlstring]");
/// ```
pub trait Cell: Sized {
    /// Returns the type of a column that stores cells of this type.
    fn spec() -> ItemType;

    /// Converts the cell to a value.
    fn to_value(&self) -> Value;

    /// Converts a value to a cell. Returns `None` if the value has another type, or is out of range.
    fn from_value(value: Value) -> Option<Self>;
}

fn int<T: TryFrom<i128>>(value: Value) -> Option<T> {
    if let Value::Int(number) = value { number.try_into().ok() } else { None }
}

fn float(value: Value) -> Option<f64> {
    if let Value::Float(number) = value { Some(number) } else { None }
}

/// A number that is too large for an `f32` is not converted to infinity.
fn single(value: Value) -> Option<f32> {
    float(value)
        .filter(|number| !number.is_finite() || (*number as f32).is_finite())
        .map(|number| number as f32)
}

macro_rules! cells {
    ($($type:ty, $kind:ident, $to:expr, $from:expr;)*) => {
        $(impl Cell for $type {
            fn spec() -> ItemType {
                ItemKind::$kind.into()
            }

            fn to_value(&self) -> Value {
                let to: fn(&Self) -> Value = $to;
                to(self)
            }

            fn from_value(value: Value) -> Option<Self> {
                let from: fn(Value) -> Option<Self> = $from;
                from(value)
            }
        })*
    };
}

cells! {
    i8, Int8, |it| Value::Int((*it).into()), int;
    i16, Int16, |it| Value::Int((*it).into()), int;
    i32, Int32, |it| Value::Int((*it).into()), int;
    i64, Int64, |it| Value::Int((*it).into()), int;
    u8, UInt8, |it| Value::Int((*it).into()), int;
    u16, UInt16, |it| Value::Int((*it).into()), int;
    u32, UInt32, |it| Value::Int((*it).into()), int;
    u64, UInt64, |it| Value::Int((*it).into()), int;
    f32, Float32, |it| Value::Float((*it).into()), single;
    f64, Float64, |it| Value::Float(*it), float;
    bool, Bool, |it| Value::Bool(*it), |it| if let Value::Bool(it) = it { Some(it) } else { None };
    String, Utf8, |it| Value::Str(it.clone()), |it| if let Value::Str(it) = it { Some(it) } else { None };
    Vec<u8>, VlBytes, |it| Value::Bytes(it.clone()),
        |it| if let Value::Bytes(it) = it { Some(it) } else { None };
    Value, Object, Value::clone, Some;
}

impl<T: Cell> Cell for Option<T> {
    fn spec() -> ItemType {
        T::spec().nullable()
    }

    fn to_value(&self) -> Value {
        self.as_ref().map_or(Value::None, Cell::to_value)
    }

    fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::None => Some(None),
            value => T::from_value(value).map(Some),
        }
    }
}

macro_rules! lists {
    ($($type:ty),*) => {
        $(impl Cell for Vec<$type> {
            fn spec() -> ItemType {
                let item = match <$type>::spec() {
                    // Lists store both kinds of strings in the same way.
                    text if *text.kind() == ItemKind::Utf8 => ItemKind::VlString.into(),
                    item => item,
                };
                ItemKind::List(item.into()).into()
            }

            fn to_value(&self) -> Value {
                Value::List(self.iter().map(Cell::to_value).collect())
            }

            fn from_value(value: Value) -> Option<Self> {
                match value {
                    Value::List(items) => items.into_iter().map(Cell::from_value).collect(),
                    _ => None,
                }
            }
        })*
    };
}

lists!(i8, i16, i32, i64, u16, u32, u64, f32, f64, bool, String);

impl CTable {
    /// Appends rows. A column without a field in `R` gets its default value, or null; see [`append`](Self::append).
    ///
    /// # Errors
    /// Fails with the errors of [`append`](Self::append).
    pub fn append_rows<R: Row>(&mut self, rows: &[R]) -> Result<()> {
        self.append(R::columns(rows))
    }

    /// Reads rows as structs.
    ///
    /// # Errors
    /// - [`ErrorKind::NotFound`]: there is no column for a field;
    /// - [`ErrorKind::TypeMismatch`]: a value does not match the type of its field; or a value is null, but the type of
    ///   its field is not an `Option` or [`Value`];
    /// - the errors of [`values`](Self::values).
    pub fn rows<R: Row>(&self, rows: impl Into<Rows>) -> Result<Vec<R>> {
        R::read(self, rows.into())
    }

    /// Reads rows of a column as cells. The code that the derive macro `Row` generates calls this method for each
    /// field.
    ///
    /// # Errors
    /// - [`ErrorKind::TypeMismatch`]: a value does not match the type `T`; or a value is null, but `T` is not an
    ///   `Option` or [`Value`];
    /// - the errors of [`values`](Self::values).
    pub fn cells<T: Cell>(&self, name: &str, rows: impl Into<Rows>) -> Result<Vec<T>> {
        let cells = self.values(name, rows)?.into_iter().map(|value| {
            let found = what(&value);
            T::from_value(value).ok_or_else(|| {
                let expected = std::any::type_name::<T>();
                let detail = format!("the column `{name}` contains {found}, expected {expected}");
                Error::new(ErrorKind::TypeMismatch, READ, detail)
            })
        });
        cells.collect()
    }
}

impl Data<'static> {
    /// Creates cells from values of a type that implements [`Cell`].
    pub fn cells<'a, T: Cell + 'a>(cells: impl IntoIterator<Item = &'a T>) -> Self {
        Self::values(cells.into_iter().map(Cell::to_value).collect::<Vec<_>>())
    }
}
