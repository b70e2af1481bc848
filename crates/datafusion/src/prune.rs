//! Skipping the rows that cannot match a filter, by the summaries of columns.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use blosc2::Value;
use blosc2_store::arrow::ReadOptions;
use blosc2_store::{CTable, Summary, SummarySegment};
use datafusion::arrow::array::{ArrayRef, BooleanArray, RecordBatchReader, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit};
use datafusion::common::pruning::PruningStatistics;
use datafusion::common::stats::Precision;
use datafusion::common::{Column, ColumnStatistics, ScalarValue};
use datafusion::error::Result;
use datafusion::physical_expr::expressions::{self, DynamicFilterTracking};
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_optimizer::pruning::PruningPredicateBuilder;
use datafusion::physical_plan::PhysicalExpr;
use datafusion::physical_plan::metrics::PruningMetrics;

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

/// Whether a column of a filter is a column of the files, and not one of the names of directories, and the file stores
/// items of its type. Conditions on converted items are left to the filter.
pub(crate) fn is_stored(column: &expressions::Column, schema: &Schema, stored: &Field) -> bool {
    let field = schema.fields().get(column.index());
    field.is_some_and(|field| {
        field.name() == column.name() && field.data_type() == stored.data_type()
    })
}

/// Skips the rows of a table that cannot match a filter. The filters of a join or of the first rows of an order become
/// stricter while a query runs.
pub(crate) struct Pruner {
    predicate: Arc<dyn PhysicalExpr>,
    table_schema: SchemaRef,
    tracking: DynamicFilterTracking,
    segments: Segments,
    /// For each segment, whether its rows can match.
    kept: Vec<bool>,
    metrics: PruningMetrics,
}

impl Pruner {
    /// Reads the summaries of the columns of a filter. `table_schema` is the schema of the filter, and `file_schema` has the
    /// columns of the files, as the table declares them. Returns `None` if there are no summaries.
    pub(crate) fn new(
        table: &CTable,
        predicate: &Arc<dyn PhysicalExpr>,
        table_schema: &SchemaRef,
        file_schema: &Schema,
        rows: &Range<u64>,
        metrics: &PruningMetrics,
    ) -> blosc2::Result<Option<Self>> {
        let mut summaries = Vec::new();
        for column in collect_columns(predicate) {
            let name = column.name();
            let Some(stored) = stored_field(table, name) else { continue };
            if is_stored(&column, file_schema, &stored)
                && let Some(summary) = table.summary(name)?
                && summary.segments().len() <= MAX_SEGMENTS
            {
                summaries.push((name.to_owned(), stored.data_type().clone(), summary));
            }
        }
        if summaries.is_empty() || rows.is_empty() {
            return Ok(None);
        }
        // Bounds can have no Arrow value, such as those of deleted rows.
        let Ok(segments) = Segments::new(summaries, rows) else { return Ok(None) };
        let kept = vec![true; segments.rows.len()];
        metrics.add_matched(kept.len());
        let mut pruner = Self {
            predicate: Arc::clone(predicate),
            table_schema: Arc::clone(table_schema),
            tracking: DynamicFilterTracking::classify(predicate),
            segments,
            kept,
            metrics: metrics.clone(),
        };
        pruner.prune(rows.start);
        Ok(Some(pruner))
    }

    /// The rows that can match: not empty, ascending, and not adjacent.
    pub(crate) fn rows(&self) -> Vec<Range<u64>> {
        let mut found: Vec<Range<u64>> = Vec::new();
        for (rows, _) in self.segments.rows.iter().zip(&self.kept).filter(|(_, kept)| **kept) {
            match found.last_mut().filter(|last| last.end == rows.start) {
                Some(last) => last.end = rows.end,
                None => found.push(rows.clone()),
            }
        }
        found
    }

    /// Evaluates the filter again if it has become stricter. Returns the rows that can match, if segments at or after the
    /// row `next` no longer can.
    pub(crate) fn update(&mut self, next: u64) -> Option<Vec<Range<u64>>> {
        let is_stricter = self.tracking.watcher().is_some_and(|watcher| watcher.changed());
        (is_stricter && self.prune(next)).then(|| self.rows())
    }

    /// Drops the segments at or after the row `next` that cannot match. Returns whether there are any.
    fn prune(&mut self, next: u64) -> bool {
        let predicate = PruningPredicateBuilder::new()
            .with_file_schema(Arc::clone(&self.table_schema))
            .build(Arc::clone(&self.predicate));
        // A filter can fail for bounds that are not items, such as those of deleted rows.
        let Some(Ok(can_match)) = predicate.map(|of| of.prune(&self.segments)) else {
            return false;
        };
        let mut dropped = 0;
        let segments = self.segments.rows.iter().zip(&mut self.kept).zip(can_match);
        for ((rows, kept), can_match) in segments {
            if *kept && !can_match && rows.start >= next {
                *kept = false;
                dropped += 1;
            }
        }
        self.metrics.subtract_matched(dropped);
        self.metrics.add_pruned(dropped);
        dropped > 0
    }
}

/// The field of a column of a table. Returns `None` if there is no such column, or if it has no Arrow type.
fn stored_field(table: &CTable, name: &str) -> Option<FieldRef> {
    let batches = ReadOptions::new().columns([name]).read(table).ok()?;
    Some(Arc::clone(&batches.schema().fields()[0]))
}

/// What is known of the columns of a table, in the order of `schema`: which have no nulls. The bounds of summaries are no
/// statistics: DataFusion also uses them for casts to types with another order.
pub(crate) fn statistics(table: &CTable, schema: &Schema) -> Vec<ColumnStatistics> {
    let columns = schema.fields().iter().map(|field| {
        let mut found = ColumnStatistics::new_unknown();
        if stored_field(table, field.name()).is_some_and(|stored| !stored.is_nullable()) {
            found.null_count = Precision::Exact(0);
        }
        found
    });
    columns.collect()
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

#[cfg(test)]
mod tests {
    use blosc2_store::{Data, ItemKind, Schema as TableSchema};
    use datafusion::logical_expr::Operator;
    use datafusion::physical_expr::expressions::{DynamicFilterPhysicalExpr, binary, col, lit};

    use super::*;

    #[test]
    fn a_filter_that_becomes_stricter_skips_more_rows()
    -> std::result::Result<(), Box<dyn std::error::Error>> {
        const ROWS: u64 = 400_000;
        let folder = tempfile::tempdir()?;
        let schema = TableSchema::new().column("id", ItemKind::Int64);
        let mut table = CTable::create(folder.path().join("t.b2z"), &schema)?;
        let ids: Vec<i64> = (0..ROWS as i64).collect();
        table.append([("id", Data::items(&ids))])?;
        table.finish()?;
        let schema = ReadOptions::new().read(&table)?.schema();
        let column = col("id", &schema)?;
        let filter = DynamicFilterPhysicalExpr::new(vec![Arc::clone(&column)], lit(true));
        let filter = Arc::new(filter);
        let predicate: Arc<dyn PhysicalExpr> = Arc::clone(&filter) as _;
        let metrics = PruningMetrics::new();
        let pruner = Pruner::new(&table, &predicate, &schema, &schema, &(0..ROWS), &metrics)?;
        let mut pruner = pruner.unwrap();
        let total = metrics.matched();
        assert_eq!(pruner.rows(), std::iter::once(0..ROWS).collect::<Vec<_>>());
        assert_eq!(metrics.pruned(), 0);
        assert!(total > 3, "{total} segments");
        assert_eq!(pruner.update(0), None);

        let less = |than: i64| binary(Arc::clone(&column), Operator::Lt, lit(than), &schema);
        filter.update(less(5)?)?;
        // The rows before row 100,000 have been read.
        let rows = pruner.update(100_000).unwrap();
        let segment = pruner.segments.rows[0].end;
        assert_eq!(
            rows,
            std::iter::once(0..100_000_u64.div_ceil(segment) * segment).collect::<Vec<_>>()
        );
        assert_eq!(metrics.matched() + metrics.pruned(), total);
        assert_eq!(pruner.update(100_000), None);
        filter.update(less(3)?)?;
        assert_eq!(pruner.update(200_000), None);
        filter.update(less(0)?)?;
        assert_eq!(pruner.update(0), Some(vec![]));
        assert_eq!((metrics.matched(), metrics.pruned()), (0, total));
        Ok(())
    }
}
