//! Rows of tables: which rows and columns are selected, and their values as lines of text, CSV or JSON.

use std::io::Write;
use std::ops::Range;
use std::path::Path;

use anyhow::{Result, anyhow, bail};
use blosc2::Value;
use blosc2_store::{CTable, Column, Condition, EmbedStore, ItemKind, Object};
use indicatif::ProgressBar;

use crate::date;
use crate::file::{Content, Source};
use crate::float::{self, Width};
use crate::slice::{Pick, Slices};
use crate::{UsageError, csv, limits};

/// Rows that are read at once.
const ROWS: u64 = 4096;

/// Opens a table; `None` if the file or the entry is not a table.
pub(crate) fn table(source: Source<'_>) -> Option<CTable> {
    let is_store = source.is_store().ok()?;
    if !is_store && source.key.is_none() {
        // A table in memory that was saved.
        let Some(None) = source.kind().ok() else { return None };
        match Content::open(source).ok()? {
            Content::SChunk(schunk) if EmbedStore::is_in(&schunk) => {}
            _ => return None,
        }
    }
    match source.object() {
        Ok(Object::CTable(table)) => Some(table),
        _ => None,
    }
}

/// The first name that is also an earlier one.
pub(crate) fn repeated(names: &[String]) -> Option<&String> {
    names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)).map(|(_, name)| name)
}

/// The options that select columns and rows of a table.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Selection {
    /// Columns of a table, such as `id,price`.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    columns: Vec<String>,
    /// Rows of a table, such as `price < 9.5 and id != 3`.
    #[arg(long = "where", value_name = "CONDITION")]
    condition: Option<Condition>,
}

impl Selection {
    /// Whether columns are named.
    pub(crate) fn has_columns(&self) -> bool {
        !self.columns.is_empty()
    }

    pub(crate) fn is_default(&self) -> bool {
        self.columns.is_empty() && self.condition.is_none()
    }

    /// The selected columns. Without a selection, columns that Python computes are left out.
    pub(crate) fn columns<'a>(&'a self, table: &'a CTable, path: &Path) -> Result<Vec<&'a Column>> {
        let (path, columns) = (path.display(), table.columns());
        if let Some(name) = repeated(&self.columns) {
            return Err(UsageError(format!("--columns names the column `{name}` twice")).into());
        }
        if !self.columns.is_empty() {
            let found = self.columns.iter().map(|name| {
                table.column(name).ok_or_else(|| {
                    let names: Vec<&str> = columns.iter().map(Column::name).collect();
                    let names = names.join("`, `");
                    anyhow!(
                        "cannot read ({path}): there is no column `{name}`; there are `{names}`"
                    )
                })
            });
            return found.collect();
        }
        let is_stored = |column: &&Column| !matches!(column.kind(), ItemKind::Computed(_));
        Ok(columns.iter().filter(is_stored).collect())
    }

    /// The selected rows.
    pub(crate) fn rows(&self, table: &CTable, slices: &Slices, path: &Path) -> Result<Picked> {
        let found = match &self.condition {
            Some(condition) => Some(table.find_where(condition).map_err(|error| error.at(path))?),
            None => None,
        };
        let len = found.as_ref().map_or(table.nrows(), |rows| rows.len() as u64);
        let picks = slices.resolve_in(path, &[len])?;
        let pick = picks.first().copied().unwrap_or(Pick { start: 0, step: 1, count: len });
        Ok(Picked { found, pick })
    }
}

/// The selected rows of a table.
#[derive(Debug)]
pub(crate) struct Picked {
    /// The rows that satisfy the condition.
    found: Option<Vec<u64>>,
    /// The rows among them.
    pick: Pick,
}

impl Picked {
    pub(crate) fn len(&self) -> u64 {
        self.pick.count
    }

    /// The indices of some of the rows.
    fn part(&self, range: Range<u64>) -> Vec<u64> {
        let rows = range.map(|at| self.pick.position(at));
        match &self.found {
            Some(found) => rows.map(|at| found[at as usize]).collect(),
            None => rows.collect(),
        }
    }

    /// The rows as ranges, in ascending order. Fails if the order is another one.
    #[cfg(feature = "arrow")]
    pub(crate) fn ranges(&self) -> Result<Vec<Range<u64>>> {
        if self.found.is_none() && self.pick.step == 1 && self.pick.count > 0 {
            return Ok(vec![self.pick.span()]);
        }
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for row in self.part(0..self.len()) {
            match ranges.last_mut() {
                Some(last) if last.end == row => last.end += 1,
                Some(last) if last.end > row => {
                    bail!(
                        "its rows are not selected in ascending order, as this format needs them"
                    );
                }
                _ => ranges.push(row..row + 1),
            }
        }
        Ok(ranges)
    }
}

/// The notation of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Notation {
    /// A line with the names of the columns and one for each row, separated by tabs, with values in Python's notation.
    Text,
    /// The same, separated by commas.
    Csv,
    /// An array with one object for each row.
    Json,
}

/// Writes rows of a table.
pub(crate) fn write(
    table: &CTable,
    columns: &[&Column],
    rows: &Picked,
    notation: Notation,
    bar: &ProgressBar,
    out: &mut dyn Write,
) -> Result<()> {
    let kinds = columns.iter().map(|column| kind_of(table, column));
    let kinds = kinds.collect::<blosc2::Result<Vec<_>>>()?;
    if notation == Notation::Csv
        && let Some((column, kind)) = columns.iter().zip(&kinds).find(|(_, kind)| !is_plain(kind))
    {
        let name = column.name();
        bail!(
            "the column `{name}` of {kind} has no notation in a CSV file; select other columns with --columns, or \
             another format"
        );
    }
    let names = columns.iter().map(|column| column.name());
    match notation {
        Notation::Text => {
            let names = names.map(|name| name.escape_debug().to_string());
            writeln!(out, "{}", names.collect::<Vec<_>>().join("\t"))?;
        }
        Notation::Csv => {
            let names = names.map(|name| csv::quoted(name.to_owned()));
            writeln!(out, "{}", names.collect::<Vec<_>>().join(","))?;
        }
        Notation::Json => out.write_all(b"[")?,
    }
    let (mut start, mut most) = (0, ROWS);
    while start < rows.len() {
        let part = rows.part(start..rows.len().min(start + most));
        let cells = columns.iter().map(|column| table.evaluated_values(column.name(), &part[..]));
        let cells = match cells.collect::<blosc2::Result<Vec<_>>>() {
            // Rows with long values.
            Err(error) if error.kind() == blosc2::ErrorKind::TooLarge && most > 1 => {
                most /= 2;
                continue;
            }
            cells => cells?,
        };
        let mut cells: Vec<_> = cells.into_iter().map(Vec::into_iter).collect();
        for row in 0..part.len() {
            let values = cells.iter_mut().zip(&kinds);
            let values = values.filter_map(|(cells, kind)| Some((cells.next()?, kind)));
            match notation {
                Notation::Text => {
                    let cells = values.map(|(value, _)| value.to_string());
                    writeln!(out, "{}", cells.collect::<Vec<_>>().join("\t"))?;
                }
                Notation::Csv => {
                    let cells = values.map(|(value, kind)| csv_cell(kind, value));
                    let line = cells.collect::<Result<Vec<_>>>()?.join(",");
                    writeln!(out, "{line}")?;
                }
                Notation::Json => {
                    let is_first = start == 0 && row == 0;
                    out.write_all(if is_first { b"\n{" } else { b",\n{" })?;
                    for (index, ((value, kind), column)) in values.zip(columns).enumerate() {
                        let comma = if index > 0 { "," } else { "" };
                        let name = serde_json::Value::from(column.name());
                        write!(out, "{comma}{name}:{}", json_cell(kind, value)?)?;
                    }
                    out.write_all(b"}")?;
                }
            }
        }
        bar.inc(part.len() as u64);
        start += part.len() as u64;
    }
    if notation == Notation::Json {
        out.write_all(if rows.len() == 0 { b"]\n" } else { b"\n]\n" })?;
    }
    Ok(())
}

/// The kind of the values of a column. Those of a computed column have the kind of its dtype; half floats have none.
fn kind_of(table: &CTable, column: &Column) -> blosc2::Result<ItemKind> {
    let kind = column.kind().clone();
    if !matches!(kind, ItemKind::Computed(_)) {
        return Ok(kind);
    }
    let (dtype, _) = table.evaluate(column.name(), 0..0)?;
    Ok(ItemKind::of_dtype(&dtype).unwrap_or(kind))
}

/// Whether a value of this kind is a number, a boolean, a timestamp or a string.
fn is_plain(kind: &ItemKind) -> bool {
    use ItemKind::*;
    matches!(
        kind,
        Bool | Int8
            | Int16
            | Int32
            | Int64
            | UInt8
            | UInt16
            | UInt32
            | UInt64
            | Float32
            | Float64
            | Timestamp { .. }
            | String { .. }
            | Utf8
            | VlString
            | Dictionary { .. }
            | Computed(_)
    )
}

/// The text of a plain value that is not a string; `None` for other values.
fn plain_text(kind: &ItemKind, value: &Value) -> Option<String> {
    Some(match (kind, value) {
        (_, Value::Bool(value)) => value.to_string(),
        (ItemKind::Timestamp { unit, timezone }, Value::Int(value)) => {
            let text = date::date(i64::try_from(*value).ok()?, Some((1, &unit.to_string())));
            // The values of columns with a time zone are in UTC.
            text + if timezone.is_some() { "Z" } else { "" }
        }
        (_, Value::Int(value)) => value.to_string(),
        (ItemKind::Float32, Value::Float(value)) => float::scalar(Width::Single, *value),
        (ItemKind::Computed(_), Value::Float(value)) => float::scalar(Width::Half, *value),
        (_, Value::Float(value)) => float::scalar(Width::Double, *value),
        _ => return None,
    })
}

/// A value in a line of a CSV file. A null value is empty, and an empty string has quotes.
fn csv_cell(kind: &ItemKind, value: Value) -> Result<String> {
    Ok(match value {
        Value::None => String::new(),
        Value::Str(text) if text.is_empty() => "\"\"".to_owned(),
        Value::Str(text) => csv::quoted(text),
        value => plain_text(kind, &value)
            .ok_or_else(|| anyhow!("the value {value} has no notation in a CSV file"))?,
    })
}

/// A value in JSON. NaN and infinities are null, also in lists and structures.
fn json_cell(kind: &ItemKind, value: Value) -> Result<String> {
    match plain_text(kind, &value) {
        // With the digits of the column.
        Some(text) if matches!(&value, Value::Float(number) if number.is_finite()) => Ok(text),
        _ => Ok(json_value(kind, &value)?.to_string()),
    }
}

fn json_value(kind: &ItemKind, value: &Value) -> Result<serde_json::Value> {
    Ok(match (kind, value) {
        (_, Value::Float(number)) if !number.is_finite() => serde_json::Value::Null,
        (ItemKind::List(item), Value::List(values)) => {
            values.iter().map(|value| json_value(item.kind(), value)).collect::<Result<_>>()?
        }
        (ItemKind::Struct(fields), Value::Map(entries)) => {
            let mut object = serde_json::Map::new();
            for (name, value) in entries {
                let Value::Str(name) = name else { bail!("a field has a name that is no text") };
                let field = fields.iter().find(|(field, _)| field == name);
                let value = match field {
                    Some((_, item)) => json_value(item.kind(), value)?,
                    None => bail!("a value has the field `{name}`, which its column does not have"),
                };
                object.insert(name.clone(), value);
            }
            object.into()
        }
        _ => match plain_text(kind, value) {
            Some(text) if matches!(kind, ItemKind::Timestamp { .. }) => text.into(),
            Some(text) => serde_json::from_str(&text)?,
            None => serde_json::to_value(value).map_err(|error| anyhow!(limits::named(error)))?,
        },
    })
}

#[cfg(test)]
mod tests {
    use blosc2_store::TimeUnit;

    use super::*;

    #[test]
    fn values_in_lists_are_those_of_columns() {
        let list = |kind: ItemKind| ItemKind::List(Box::new(kind.into()));
        let time = ItemKind::Timestamp { unit: TimeUnit::Seconds, timezone: None };
        let fields = vec![("t".to_owned(), list(time).into())];
        let times: Value = [Value::Int(0), Value::None].into_iter().collect();
        let row: Value = [("t", times)].into_iter().collect();
        let found = json_cell(&ItemKind::Struct(fields), row).unwrap();
        assert_eq!(found, r#"{"t":["1970-01-01T00:00:00",null]}"#);
        let floats: Value = [Value::from(f64::NAN), f64::from(0.1f32).into()].into_iter().collect();
        assert_eq!(json_cell(&list(ItemKind::Float32), floats).unwrap(), "[null,0.1]");
    }

    #[test]
    fn cells() {
        let time =
            ItemKind::Timestamp { unit: TimeUnit::Milliseconds, timezone: Some("UTC".into()) };
        for (kind, value, csv, json) in [
            (ItemKind::Utf8, Value::None, "", "null"),
            (ItemKind::Utf8, "".into(), "\"\"", "\"\""),
            (ItemKind::Utf8, "a,\"b\n".into(), "\"a,\"\"b\n\"", "\"a,\\\"b\\n\""),
            (ItemKind::Bool, true.into(), "true", "true"),
            (ItemKind::Float32, f64::from(0.1f32).into(), "0.1", "0.1"),
            (ItemKind::Float64, 1e300.into(), "1e+300", "1e+300"),
            (ItemKind::Float64, f64::NAN.into(), "nan", "null"),
            (ItemKind::UInt64, u64::MAX.into(), "18446744073709551615", "18446744073709551615"),
            (time, 1.into(), "1970-01-01T00:00:00.001Z", "\"1970-01-01T00:00:00.001Z\""),
        ] {
            assert_eq!(csv_cell(&kind, value.clone()).unwrap(), csv, "{value}");
            assert_eq!(json_cell(&kind, value.clone()).unwrap(), json, "{value}");
        }
    }
}
