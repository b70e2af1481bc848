//! Columns that Python computes from other columns.

use crate::blosc2::{Dtype, Error, ErrorKind, Result, Value};
use crate::expression::{Expression, Operand};

use super::rows::Rows;
use super::{CTable, READ};

/// The entries of a schema that describe expressions.
const LISTS: [&str; 2] = ["computed_columns", "materialized_columns"];

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
    /// - the errors of [`Expression::new`] and of [`values`](Self::values).
    pub fn evaluate(&self, name: &str, rows: impl Into<Rows>) -> Result<(Dtype, Vec<u8>)> {
        self.find_column(name)?;
        let lists = LISTS.iter().filter_map(|list| {
            let found = self.others.iter().rfind(|(key, _)| key.as_str() == Some(list));
            found.and_then(|(_, value)| value.as_list())
        });
        let named = |entry: &&Value| entry.get("name").and_then(Value::as_str) == Some(name);
        let Some(entry) = lists.flatten().find(named) else {
            let detail = format!("the column `{name}` is not computed from other columns");
            return Err(Error::new(ErrorKind::TypeMismatch, READ, detail));
        };
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
        let sources = entry.get("col_deps").and_then(Value::as_list).unwrap_or_default();
        let rows = rows.into();
        let len = rows.clone().resolve(self.nrows(), READ)?.len();
        let mut operands = Vec::with_capacity(sources.len());
        for (number, source) in sources.iter().enumerate() {
            let source = source.as_str().unwrap_or("?");
            let (dtype, bytes) = self.read_bytes(source, rows.clone())?;
            let mut shape = vec![len];
            if let crate::ItemKind::NDArray { shape: row, .. } = self.find_column(source)?.kind() {
                shape.extend(row);
            }
            operands.push((format!("o{number}"), Operand::Bytes(dtype, shape, bytes)));
        }
        let expression = Expression::of(text, operands)?;
        let (shape, dtype) = (expression.shape(), expression.dtype());
        if expression.combines_rows() {
            return refused(format!("`{text}` combines different rows"));
        }
        if shape.first() != Some(&len) {
            return refused(format!("`{text}` uses no column"));
        }
        if let Some(stated) = entry.get("dtype").and_then(Value::as_str)
            && dtype_of(stated).is_none_or(|stated| stated.to_native() != *dtype)
        {
            return refused(format!(
                "`{text}` has the dtype {dtype}, and the schema states `{stated}`"
            ));
        }
        self.live.budget().take(expression.nbytes())?;
        Ok((dtype.clone(), expression.read_all()?))
    }
}

/// The dtype with a name of NumPy, such as `float64`.
fn dtype_of(name: &str) -> Option<Dtype> {
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
