//! Columns that Python computes from other columns.

use crate::ItemKind;
use crate::blosc2::{ArrayValue, Dtype, Error, ErrorKind, Result, Value};
use crate::expression::{Expression, Operand};
use crate::tag::{Doing, weight};

use super::rows::Rows;
use super::scalar::scalar;
use super::{CTable, READ};

/// The entries of the schema that describe the columns that Python computes: those that are also stored, and the others.
pub(super) const MATERIALIZED: &str = "materialized_columns";
const COMPUTED: &str = "computed_columns";

/// The maximum bytes of the items of all parts of an expression, as a multiple of the memory limit of its result.
const WORK: u64 = 8;

impl CTable {
    /// Computes rows of a column that Python computes from other columns by an expression: a computed column
    /// ([`ItemKind::Computed`](crate::ItemKind::Computed)), or a generated one, which is also stored, and can be
    /// [stale](crate::Column::is_stale). Returns the dtype of the items, and their bytes in C order and in native byte
    /// order. [`Expression`] describes the supported expressions. No code is run.
    ///
    /// The rows of the other columns are in memory during the call. For rows in which another column is null, the items
    /// are unspecified.
    ///
    /// # Errors
    /// - [`ErrorKind::NotFound`]: the table has no column with this name;
    /// - [`ErrorKind::TypeMismatch`]: the column is not computed from an expression; or another column has no items of
    ///   a fixed size;
    /// - [`ErrorKind::Unsupported`]: the expression combines different rows, or uses no column; or the column is computed
    ///   by a user-defined function;
    /// - [`ErrorKind::InvalidArgument`]: an integer is raised to a negative power, also in a row that is null;
    /// - [`ErrorKind::TooLarge`]: the items exceed the memory limit, or all parts of the expression together 8 times this
    ///   limit;
    /// - the errors of [`Expression::new`] and of [`values`](Self::values).
    pub fn evaluate(&self, name: &str, rows: impl Into<Rows>) -> Result<(Dtype, Vec<u8>)> {
        let rows = rows.into();
        let len = rows.clone().resolve(self.nrows()).doing(READ)?.len();
        let expression = self.expression(name, rows, len)?;
        let bytes = expression.read_all().map_err(|error| uncomputed(name, &error))?;
        Ok((expression.dtype().clone(), bytes))
    }

    /// Returns the values of rows of a column, as [`values`](Self::values) does, also if Python computes the column by an
    /// expression: a computed column, and a generated one that is [stale](crate::Column::is_stale), is
    /// [evaluated](Self::evaluate). These values are [`Value::None`] where another column is null.
    ///
    /// # Errors
    /// Fails with the errors of [`values`](Self::values) and [`evaluate`](Self::evaluate).
    pub fn evaluated_values(&self, name: &str, rows: impl Into<Rows>) -> Result<Vec<Value>> {
        let (column, rows) = (self.find_column(name)?, rows.into());
        if !matches!(column.kind(), ItemKind::Computed(_)) && !column.is_stale() {
            return self.values(name, rows);
        }
        let len = rows.clone().resolve(self.nrows()).doing(READ)?.len();
        let expression = self.expression(name, rows.clone(), len)?;
        let bytes = expression.read_all().map_err(|error| uncomputed(name, &error))?;
        let dtype = expression.dtype();
        let shape = &expression.shape()[1..];
        let size = bytes.len().checked_div(len as usize).unwrap_or(0);
        let (mut values, mut budget) = (Vec::new(), self.live.budget());
        for row in 0..len as usize {
            let bytes = &bytes[row * size..(row + 1) * size];
            let value = match shape {
                [] => scalar(dtype, bytes)
                    .map_err(|detail| Error::new(ErrorKind::InvalidData, READ, detail))?,
                _ => ArrayValue::new(dtype.clone(), shape.to_vec(), bytes.to_vec())?.into(),
            };
            budget.take(weight(&value))?;
            values.push(value);
        }
        for source in sources(self.expression_entry(name)?) {
            let nulls = self.nulls(source, rows.clone())?;
            let null = values.iter_mut().zip(nulls).filter(|(_, null)| *null);
            null.for_each(|(value, _)| *value = Value::None);
        }
        Ok(values)
    }

    /// The entries of columns that Python computes from others.
    pub(super) fn computations(&self) -> impl Iterator<Item = &Value> {
        let lists = [MATERIALIZED, COMPUTED].into_iter().filter_map(|name| self.others.get(name));
        lists.filter_map(Value::as_list).flatten()
    }

    /// The entry of the schema that describes how a column is computed.
    fn expression_entry(&self, name: &str) -> Result<&Value> {
        self.find_column(name)?;
        self.computations().find(|entry| name_of(entry) == Some(name)).ok_or_else(|| {
            let detail = format!("the column `{name}` is not computed from other columns");
            Error::new(ErrorKind::TypeMismatch, READ, detail)
        })
    }

    /// The expression of a column for `len` rows, whose items fit into the memory allowance.
    fn expression(&self, name: &str, rows: Rows, len: u64) -> Result<Expression> {
        let entry = self.expression_entry(name)?;
        let refused = |detail: String| {
            let detail = format!("the column `{name}` cannot be computed: {detail}");
            Err(Error::new(ErrorKind::Unsupported, READ, detail))
        };
        let kind = ["kind", "transformer_kind"].iter().find_map(|kind| entry.get(kind)?.as_str());
        let text = entry.get("expression").and_then(Value::as_str);
        let (Some(text), None | Some("expression")) = (text, kind) else {
            let kind = kind.unwrap_or("unknown");
            return refused(format!("it is of the kind `{kind}`, and code in a file is not run"));
        };
        let mut operands = Vec::new();
        for (number, source) in sources(entry).enumerate() {
            let (dtype, bytes) = self.read_bytes(source, rows.clone())?;
            let mut shape = vec![len];
            if let ItemKind::NDArray { shape: row, .. } = self.find_column(source)?.kind() {
                shape.extend(row);
            }
            operands.push((format!("o{number}"), Operand::Bytes(dtype, shape, bytes)));
        }
        let expression = Expression::of(text, operands);
        let mut expression = expression.map_err(|error| uncomputed(name, &error))?;
        let stated = entry.get("dtype").and_then(Value::as_str);
        if !matches!(self.find_column(name)?.kind(), ItemKind::Computed(_))
            && let Some(stated) = stated.and_then(dtype_of)
        {
            // Python converts the values of columns that it stores.
            expression = expression.cast(&stated).map_err(|error| uncomputed(name, &error))?;
        }
        let (shape, dtype) = (expression.shape(), expression.dtype());
        if expression.combines_rows() {
            return refused(format!("`{text}` combines different rows"));
        }
        if shape.first() != Some(&len) {
            return refused(format!("`{text}` uses no column"));
        }
        if let Some(stated) = stated
            && dtype_of(stated).is_none_or(|stated| stated.to_native() != *dtype)
        {
            return refused(format!(
                "`{text}` has the dtype {dtype}, and the schema states `{stated}`"
            ));
        }
        self.live.budget().check(expression.nbytes())?;
        // A short text can combine a few columns of arrays to very many items.
        self.live.budget().check(expression.work() / WORK)?;
        Ok(expression)
    }
}

/// The error of an expression of a column.
fn uncomputed(name: &str, error: &Error) -> Error {
    Error::new(error.kind(), READ, format!("the column `{name}` cannot be computed: {error}"))
}

pub(super) fn name_of(entry: &Value) -> Option<&str> {
    entry.get("name").and_then(Value::as_str)
}

/// The names of the columns that a column is computed from.
pub(super) fn sources(entry: &Value) -> impl Iterator<Item = &str> {
    let sources = entry.get("col_deps").and_then(Value::as_list).unwrap_or_default();
    sources.iter().map(|source| source.as_str().unwrap_or("?"))
}

/// The dtype with a name of NumPy, such as `float64`. Python writes the name of a class for some divisions.
fn dtype_of(name: &str) -> Option<Dtype> {
    let class =
        name.strip_prefix("<class 'blosc2.schema.").and_then(|name| name.strip_suffix("'>"));
    let name = class.unwrap_or(name);
    let digits = name.find(|c: char| c.is_ascii_digit()).unwrap_or(name.len());
    let bits = name[digits..].parse::<usize>().ok();
    let kind = match (&name[..digits], bits) {
        ("bool", None) => return Dtype::parse("|b1").ok(),
        ("int", _) => 'i',
        ("uint", _) => 'u',
        ("float", _) => 'f',
        _ => return Dtype::parse(name).ok(),
    };
    Some(Dtype::parse(&format!("={kind}{}", bits? / 8)).ok()?.to_native())
}
