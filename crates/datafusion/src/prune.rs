//! Skipping the rows that cannot match a filter, by the summaries of columns.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use blosc2::Value;
use blosc2_store::arrow::ReadOptions;
use blosc2_store::{CTable, Summary, SummarySegment};
use datafusion::arrow::array::{ArrayRef, BooleanArray, RecordBatchReader, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::common::pruning::PruningStatistics;
use datafusion::common::{Column, ScalarValue};
use datafusion::error::Result;
use datafusion::physical_expr::expressions;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_optimizer::pruning::PruningPredicate;

/// The maximum number of segments of a summary that is used. Each takes about 200 bytes of memory; a few stored bytes can
/// represent very many.
const MAX_SEGMENTS: usize = 1 << 18;

/// Consecutive rows that lie in one segment of each column of a filter.
struct Segments {
    rows: Vec<Range<u64>>,
    columns: HashMap<String, Bounds>,
}

/// What is known of the items of a column in each segment.
struct Bounds {
    least: ArrayRef,
    greatest: ArrayRef,
    null_counts: ArrayRef,
}

/// The rows that can match a filter.
pub(crate) struct Pruned {
    /// Not empty, ascending, and not adjacent.
    pub(crate) rows: Vec<Range<u64>>,
    /// The numbers of segments that can match, and that cannot.
    pub(crate) matched: usize,
    pub(crate) pruned: usize,
}

/// Whether a column of a filter is a column of the files, and not one of the names of directories, and the file stores
/// items of its type. Conditions on converted items are left to the filter.
pub(crate) fn is_stored(column: &expressions::Column, schema: &Schema, stored: &Field) -> bool {
    let field = schema.fields().get(column.index());
    field.is_some_and(|field| {
        field.name() == column.name() && field.data_type() == stored.data_type()
    })
}

/// Finds the rows, among `rows`, that can match a filter. `schema` has the columns of the files, as the table declares
/// them. Returns `None` if the summaries do not tell.
pub(crate) fn prune(
    table: &CTable,
    schema: &SchemaRef,
    predicate: &PruningPredicate,
    rows: &Range<u64>,
) -> blosc2::Result<Option<Pruned>> {
    let mut summaries = Vec::new();
    for column in collect_columns(predicate.orig_expr()) {
        let name = column.name();
        // A column can be missing, or have no Arrow type.
        let Ok(stored) = ReadOptions::new().columns([name]).read(table) else { continue };
        let stored = stored.schema();
        let stored = stored.field(0);
        if is_stored(&column, schema, stored)
            && let Some(summary) = table.summary(name)?
            && summary.segments().len() <= MAX_SEGMENTS
        {
            summaries.push((name.to_owned(), stored.data_type().clone(), summary));
        }
    }
    if summaries.is_empty() || rows.is_empty() {
        return Ok(None);
    }
    // A filter can fail for bounds that are not items, such as those of deleted rows.
    let found = Segments::new(summaries, rows).and_then(|segments| {
        let kept = predicate.prune(&segments)?;
        Ok((segments, kept))
    });
    let Ok((segments, kept)) = found else { return Ok(None) };
    let matched = kept.iter().filter(|kept| **kept).count();
    let mut found: Vec<Range<u64>> = Vec::new();
    for (rows, _) in segments.rows.iter().zip(&kept).filter(|(_, kept)| **kept) {
        match found.last_mut().filter(|last| last.end == rows.start) {
            Some(last) => last.end = rows.end,
            None => found.push(rows.clone()),
        }
    }
    Ok(Some(Pruned { rows: found, matched, pruned: kept.len() - matched }))
}

impl Segments {
    fn new(summaries: Vec<(String, DataType, Summary)>, rows: &Range<u64>) -> Result<Self> {
        let starts = summaries.iter().flat_map(|(.., summary)| summary.segments());
        let mut starts: Vec<u64> = starts
            .map(|segment| segment.rows().start)
            .filter(|start| rows.start < *start && *start < rows.end)
            .chain([rows.start])
            .collect();
        starts.sort_unstable();
        starts.dedup();
        let ends = starts.iter().skip(1).copied().chain([rows.end]);
        let rows: Vec<Range<u64>> =
            starts.iter().zip(ends).map(|(start, end)| *start..end).collect();
        let mut columns = HashMap::new();
        for (name, data_type, summary) in summaries {
            columns.insert(name, Bounds::new(&data_type, &summary, &rows)?);
        }
        Ok(Self { rows, columns })
    }
}

impl Bounds {
    fn new(data_type: &DataType, summary: &Summary, rows: &[Range<u64>]) -> Result<Self> {
        let unknown = ScalarValue::try_from(data_type)?;
        let mut segments = summary.segments();
        let mut segment = segments.next();
        let (mut least, mut greatest, mut null_counts) = (Vec::new(), Vec::new(), Vec::new());
        for rows in rows {
            // The segment that contains the rows; a segment of deleted rows contains none.
            while segment.as_ref().is_some_and(|segment| segment.rows().end <= rows.start) {
                segment = segments.next();
            }
            let bounds = segment.as_ref().and_then(|segment| bounds(data_type, segment));
            let (low, high) = bounds.unwrap_or_else(|| (unknown.clone(), unknown.clone()));
            least.push(low);
            greatest.push(high);
            let is_null = segment.as_ref().is_some_and(SummarySegment::is_null);
            null_counts.push(is_null.then(|| rows.end - rows.start));
        }
        Ok(Self {
            least: ScalarValue::iter_to_array(least)?,
            greatest: ScalarValue::iter_to_array(greatest)?,
            null_counts: Arc::new(UInt64Array::from(null_counts)),
        })
    }
}

/// The bounds of a segment in the order of Arrow, which places NaN below or above all numbers, depending on its sign, and
/// -0.0 below 0.0.
fn bounds(data_type: &DataType, segment: &SummarySegment) -> Option<(ScalarValue, ScalarValue)> {
    if segment.has_nan() {
        return None;
    }
    let (least, greatest) = segment.bounds()?;
    let zero = |value: &Value, zero: f64| match value {
        Value::Float(0.0) => Value::Float(zero),
        other => other.clone(),
    };
    let least = scalar(data_type, &zero(least, -0.0))?;
    Some((least, scalar(data_type, &zero(greatest, 0.0))?))
}

/// A bound as an item of a column of this type. Returns `None` if the file stores another type.
fn scalar(data_type: &DataType, value: &Value) -> Option<ScalarValue> {
    macro_rules! integer {
        ($variant:ident, $value:expr) => {
            ScalarValue::$variant(Some((*$value).try_into().ok()?))
        };
    }
    Some(match (data_type, value) {
        (DataType::Boolean, Value::Bool(value)) => ScalarValue::Boolean(Some(*value)),
        (DataType::Int8, Value::Int(value)) => integer!(Int8, value),
        (DataType::Int16, Value::Int(value)) => integer!(Int16, value),
        (DataType::Int32, Value::Int(value)) => integer!(Int32, value),
        (DataType::Int64, Value::Int(value)) => integer!(Int64, value),
        (DataType::UInt8, Value::Int(value)) => integer!(UInt8, value),
        (DataType::UInt16, Value::Int(value)) => integer!(UInt16, value),
        (DataType::UInt32, Value::Int(value)) => integer!(UInt32, value),
        (DataType::UInt64, Value::Int(value)) => integer!(UInt64, value),
        (DataType::Float32, Value::Float(value)) => ScalarValue::Float32(Some(*value as f32)),
        (DataType::Float64, Value::Float(value)) => ScalarValue::Float64(Some(*value)),
        (DataType::Timestamp(unit, zone), Value::Int(value)) => {
            let (value, zone) = (Some((*value).try_into().ok()?), zone.clone());
            match unit {
                TimeUnit::Second => ScalarValue::TimestampSecond(value, zone),
                TimeUnit::Millisecond => ScalarValue::TimestampMillisecond(value, zone),
                TimeUnit::Microsecond => ScalarValue::TimestampMicrosecond(value, zone),
                TimeUnit::Nanosecond => ScalarValue::TimestampNanosecond(value, zone),
            }
        }
        _ => return None,
    })
}

impl PruningStatistics for Segments {
    fn min_values(&self, column: &Column) -> Option<ArrayRef> {
        self.columns.get(&column.name).map(|bounds| Arc::clone(&bounds.least))
    }

    fn max_values(&self, column: &Column) -> Option<ArrayRef> {
        self.columns.get(&column.name).map(|bounds| Arc::clone(&bounds.greatest))
    }

    fn num_containers(&self) -> usize {
        self.rows.len()
    }

    fn null_counts(&self, column: &Column) -> Option<ArrayRef> {
        self.columns.get(&column.name).map(|bounds| Arc::clone(&bounds.null_counts))
    }

    fn row_counts(&self) -> Option<ArrayRef> {
        Some(Arc::new(self.rows.iter().map(|rows| rows.end - rows.start).collect::<UInt64Array>()))
    }

    fn contained(&self, _: &Column, _: &HashSet<ScalarValue>) -> Option<BooleanArray> {
        None
    }
}
