//! Arrays as tables: one row for each item, with the coordinates of the item.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use blosc2::{Error, ErrorKind, NDArray, Result, Value};
use blosc2_store::arrow::{item_field, items_to_arrow};
use blosc2_store::{Object, TreeStore};
use datafusion::arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, Int64Array, PrimitiveArray,
    RecordBatch, RecordBatchOptions, UInt32Array, downcast_primitive_array,
};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::error::DataFusionError;
use datafusion::physical_expr::split_conjunction;
use datafusion::physical_expr::utils::{collect_columns, reassign_expr_columns};
use datafusion::physical_expr_common::physical_expr::{is_volatile, snapshot_physical_expr};
use datafusion::physical_plan::PhysicalExpr;
use datafusion::physical_plan::metrics::PruningMetrics;

use crate::computed::Computed;
use crate::prune::is_stored;

const OPEN: &str = "open arrays as a table";
/// The number of coordinates of an axis for which a filter is evaluated at once.
const AT_ONCE: u64 = 1 << 20;
/// The maximum length of an axis for whose coordinates a filter is evaluated before reading. A few bytes can represent
/// longer ones.
const MAX_AXIS: u64 = 1 << 28;
/// The maximum number of chunks that are skipped at once, so that a query that is cancelled ends.
const MAX_SKIPPED: usize = 1 << 16;
/// The name of the column of an array that has no name.
const VALUE: &str = "value";

/// Arrays of one shape, as a table with one row for each item. The rows are in the order of the chunks.
#[derive(Debug)]
pub(crate) struct Arrays {
    shape: Vec<u64>,
    /// The lengths of the chunks and blocks of the first array.
    chunk: Vec<u64>,
    block: Vec<u64>,
    columns: Vec<Column>,
}

#[derive(Debug)]
struct Column {
    field: FieldRef,
    items: Items,
}

/// Where the items of a column come from.
#[derive(Debug)]
enum Items {
    Array(Arc<NDArray>),
    /// A field of the structures of an array.
    Field(Arc<NDArray>, usize),
    /// The coordinates along an axis: the items of a one-dimensional array.
    Coordinate(usize, Box<NDArray>),
    /// The indices along an axis.
    Index(usize),
}

/// The items that a filter can match.
pub(crate) struct Selection {
    /// The ranges of indices of each axis.
    axes: Vec<Vec<Range<u64>>>,
    /// Conditions on the items of arrays, whose chunks are those of the table.
    of_items: Vec<(usize, Arc<dyn PhysicalExpr>)>,
}

/// The part of an array that is read at once: a range of indices for each axis.
type Region = Vec<Range<u64>>;

impl Arrays {
    /// `group` is the group of a store. `dims` are the names of the axes, if the arrays do not have the metadata `dims`.
    pub(crate) fn new(object: Object, group: &str, dims: Option<&[String]>) -> Result<Self> {
        match object {
            Object::TreeStore(store) => Self::of_store(&store, group, dims),
            Object::NDArray(array) => Self::of_array(array, dims),
            other => Err(failed(format!("it contains a {}", other.kind()))),
        }
    }

    fn of_array(array: NDArray, dims: Option<&[String]>) -> Result<Self> {
        let (stored, name) = (dims_of(&array)?, text_of(&array, "var")?);
        // Rows of structures have no coordinates, unless the axis has a name.
        let is_table = array.ndim() == 1 && stored.is_none() && dims.is_none();
        let dims = dims_for(&array, dims, stored)?;
        let (array, mut columns) = (Arc::new(array), Vec::new());
        let field = item_field(name.as_deref().unwrap_or(VALUE), &array)?;
        match field.data_type() {
            DataType::Struct(fields) => {
                if !is_table {
                    columns.extend(indices(&dims));
                }
                columns.extend(fields.iter().enumerate().map(|(at, field)| Column {
                    field: Arc::clone(field),
                    items: Items::Field(Arc::clone(&array), at),
                }));
            }
            _ => {
                columns.extend(indices(&dims));
                let items = Items::Array(Arc::clone(&array));
                columns.push(Column { field: Arc::new(field), items });
            }
        }
        Self::of_columns(&array, columns)
    }

    /// All arrays with the shape and the axes of the first one with the most axes, and the one-dimensional arrays of their
    /// axes.
    fn of_store(store: &TreeStore, group: &str, dims: Option<&[String]>) -> Result<Self> {
        let mut arrays = Vec::new();
        for key in store.keys().filter(|key| is_in(key, group)) {
            if let Object::NDArray(array) = store.get(key)? {
                let dims = dims_of(&array)?;
                arrays.push((key[group.len() + 1..].to_owned(), array, dims));
            }
        }
        // Keys are in order; `max_by_key` would return the last one.
        let Some(most) = arrays.iter().map(|(_, array, _)| array.ndim()).max() else {
            return Err(failed("the store has no arrays".to_owned()));
        };
        let (_, first, named) =
            arrays.iter().find(|(_, array, _)| array.ndim() == most).expect("it has the most axes");
        let (shape, named) = (first.shape().to_vec(), named.clone());
        let axes = dims_for(first, dims, named.clone())?;
        let mut columns = indices(&axes);
        let mut values = Vec::new();
        for (name, array, dims) in arrays {
            if array.shape() == shape && dims == named && (most > 1 || !axes.contains(&name)) {
                match item_field(&name, &array) {
                    Ok(field) => values.push((field, Arc::new(array))),
                    Err(error) if error.kind() == ErrorKind::Unsupported => {}
                    Err(error) => return Err(error),
                }
                continue;
            }
            // Coordinates: of the axis with their name, or further ones of the axis in their metadata.
            let own = text_of(&array, "coord_name")?;
            let name = own.as_deref().unwrap_or(&name);
            let axis = match &dims {
                Some(dims) => dims.first().filter(|_| dims.len() == 1).map(String::as_str),
                None => Some(name),
            };
            let axis = axis.and_then(|axis| axes.iter().position(|name| name == axis));
            let Some(axis) = axis.filter(|axis| array.shape() == [shape[*axis]]) else { continue };
            let Ok(field) = item_field(name, &array) else { continue };
            let field = Arc::new(field);
            let column = Column { field, items: Items::Coordinate(axis, Box::new(array)) };
            match columns.iter_mut().find(|column| column.field.name() == name) {
                Some(index) => *index = column,
                None => columns.push(column),
            }
        }
        let Some((_, first)) = values.first() else {
            return Err(failed(format!("no array of shape {shape:?} has an Arrow type")));
        };
        let first = Arc::clone(first);
        let values = values
            .into_iter()
            .map(|(field, array)| Column { field: Arc::new(field), items: Items::Array(array) });
        columns.extend(values);
        Self::of_columns(&first, columns)
    }

    fn of_columns(first: &NDArray, columns: Vec<Column>) -> Result<Self> {
        let mut names = HashSet::new();
        if let Some(column) = columns.iter().find(|column| !names.insert(column.field.name())) {
            let detail = format!("two columns have the name `{}`", column.field.name());
            return Err(failed(detail));
        }
        let (chunk, block) = (first.chunk_shape().to_vec(), first.block_shape().to_vec());
        let this = Self { shape: first.shape().to_vec(), chunk, block, columns };
        let nrows = this.shape.iter().try_fold(1u64, |rows, len| rows.checked_mul(*len));
        if nrows.is_none_or(|rows| usize::try_from(rows).is_err()) {
            return Err(failed(format!("the shape {:?} has too many items", this.shape)));
        }
        Ok(this)
    }

    pub(crate) fn nrows(&self) -> u64 {
        self.shape.iter().product()
    }

    pub(crate) fn schema(&self) -> Schema {
        Schema::new(self.columns.iter().map(|column| Arc::clone(&column.field)).collect::<Vec<_>>())
    }

    pub(crate) fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.field.name() == name)
    }

    /// The number of chunks along each axis.
    fn grid(&self) -> Vec<u64> {
        self.shape
            .iter()
            .zip(&self.chunk)
            .map(|(len, chunk)| len.div_ceil((*chunk).max(1)))
            .collect()
    }

    /// The number of chunks.
    pub(crate) fn nchunks(&self) -> u64 {
        self.grid().iter().product()
    }

    /// The indices of a chunk.
    fn chunk(&self, mut index: u64) -> Region {
        let mut region = Vec::with_capacity(self.shape.len());
        for (axis, count) in self.grid().into_iter().enumerate().rev() {
            let start = index % count * self.chunk[axis];
            region.push(start..(start + self.chunk[axis]).min(self.shape[axis]));
            index /= count;
        }
        region.reverse();
        region
    }

    /// The items that a filter can match: those for which each condition on one coordinate is true. Ranges with less than a
    /// block between them are one. `schema` has the columns of the files, as the table
    /// declares them.
    pub(crate) fn select(
        &self,
        predicate: Option<&Arc<dyn PhysicalExpr>>,
        schema: &Schema,
    ) -> Result<Selection> {
        let mut of_axes: Vec<Vec<(&Column, &Arc<dyn PhysicalExpr>)>> =
            self.shape.iter().map(|_| Vec::new()).collect();
        let mut of_items = Vec::new();
        let conditions = self.conditions(predicate, schema);
        for (at, condition) in &conditions {
            let column = &self.columns[*at];
            match &column.items {
                Items::Coordinate(axis, _) | Items::Index(axis) => {
                    of_axes[*axis].push((column, condition));
                }
                Items::Array(array) if array.chunk_shape() == self.chunk => {
                    of_items.push((*at, Arc::clone(condition)));
                }
                Items::Array(_) | Items::Field(..) => {}
            }
        }
        let axes = of_axes.into_iter().enumerate();
        let axes = axes.map(|(axis, conditions)| self.select_axis(axis, &conditions));
        Ok(Selection { axes: axes.collect::<Result<_>>()?, of_items })
    }

    /// The conditions of a filter on one column, with the indices of the columns.
    fn conditions(
        &self,
        predicate: Option<&Arc<dyn PhysicalExpr>>,
        schema: &Schema,
    ) -> Vec<(usize, Arc<dyn PhysicalExpr>)> {
        let snapshot = predicate.and_then(|all| snapshot_physical_expr(Arc::clone(all)).ok());
        let all = snapshot.iter().flat_map(split_conjunction);
        let of_columns = all.filter(|condition| !is_volatile(condition)).filter_map(|condition| {
            let columns = collect_columns(condition);
            let mut columns = columns.iter();
            let (Some(of), None) = (columns.next(), columns.next()) else { return None };
            let at = self.column(of.name())?;
            let is_same = is_stored(of, schema, &self.columns[at].field);
            is_same.then(|| (at, Arc::clone(condition)))
        });
        of_columns.collect()
    }

    /// Whether a chunk is special, and its one item is not in the selection.
    fn is_excluded(&self, chunk: u64, of_items: &[(usize, Arc<dyn PhysicalExpr>)]) -> bool {
        of_items.iter().any(|(at, condition)| {
            let column = &self.columns[*at];
            let Items::Array(array) = &column.items else { return false };
            let Ok(index) = usize::try_from(chunk) else { return false };
            // Reading a chunk that is damaged reports it.
            let is_special =
                array.schunk().chunk_info(index).is_ok_and(|info| info.special.is_some());
            let first = || self.chunk(chunk).into_iter().map(|range| range.start..range.start + 1);
            is_special
                && items_to_arrow(array, first().collect::<Region>())
                    .ok()
                    .and_then(|item| column.matches(condition, item))
                    .is_some_and(|matches| matches.iter().all(|matches| matches != Some(true)))
        })
    }

    fn select_axis(
        &self,
        axis: usize,
        conditions: &[(&Column, &Arc<dyn PhysicalExpr>)],
    ) -> Result<Vec<Range<u64>>> {
        let len = self.shape[axis];
        let all = 0..len;
        if conditions.is_empty() || len == 0 || len > MAX_AXIS {
            return Ok(vec![all]);
        }
        let mut found: Vec<Range<u64>> = Vec::new();
        for start in (0..len).step_by(AT_ONCE as usize) {
            let range = start..len.min(start + AT_ONCE);
            let mut keep = vec![true; (range.end - range.start) as usize];
            for (column, condition) in conditions {
                let items = column.coordinates(range.clone())?;
                let Some(matches) = column.matches(condition, items) else { continue };
                for (keep, matches) in keep.iter_mut().zip(&matches) {
                    *keep &= matches == Some(true);
                }
            }
            let indices = (range.start..).zip(keep).filter(|(_, keep)| *keep);
            for (index, _) in indices {
                match found.last_mut() {
                    Some(last) if index - last.end < self.block[axis].max(1) => {
                        last.end = index + 1
                    }
                    _ => found.push(index..index + 1),
                }
            }
        }
        Ok(found)
    }

    /// The parts of a chunk that lie in the ranges of all axes.
    fn regions(&self, chunk: u64, selected: &[Vec<Range<u64>>]) -> Vec<Region> {
        let mut regions = vec![Vec::new()];
        for (part, ranges) in self.chunk(chunk).into_iter().zip(selected) {
            let ranges =
                ranges.iter().map(|range| range.start.max(part.start)..range.end.min(part.end));
            let ranges: Vec<_> = ranges.filter(|range| !range.is_empty()).collect();
            regions = regions
                .iter()
                .flat_map(|region: &Region| {
                    ranges.iter().map(|range| [&region[..], std::slice::from_ref(range)].concat())
                })
                .collect();
        }
        regions
    }

    /// Whether a chunk has items in the ranges of all axes.
    fn is_selected(&self, chunk: u64, selected: &[Vec<Range<u64>>]) -> bool {
        self.chunk(chunk).iter().zip(selected).all(|(part, ranges)| {
            let next = ranges.partition_point(|range| range.end <= part.start);
            ranges.get(next).is_some_and(|range| range.start < part.end)
        })
    }

    /// Divides a region into parts of at most `most` items, or a block if that is more, at the boundaries of blocks.
    fn divide(&self, region: Region, most: u64, parts: &mut Vec<Region>) {
        let items: u64 = region.iter().map(|range| range.end - range.start).product();
        let block_of =
            |axis: usize, at: u64| at % self.chunk[axis].max(1) / self.block[axis].max(1);
        let axis = (0..region.len()).find(|axis| {
            block_of(*axis, region[*axis].start) < block_of(*axis, region[*axis].end - 1)
        });
        let Some(axis) = axis.filter(|_| items > most) else {
            parts.push(region);
            return;
        };
        let range = region[axis].clone();
        let (first, last) = (block_of(axis, range.start), block_of(axis, range.end - 1));
        let start = range.start - range.start % self.chunk[axis].max(1);
        let middle = start + (first + (last - first).div_ceil(2)) * self.block[axis];
        let mut low = region.clone();
        low[axis] = range.start..middle;
        let mut high = region;
        high[axis] = middle..range.end;
        self.divide(low, most, parts);
        self.divide(high, most, parts);
    }

    /// The columns of the items of a region.
    fn read(
        &self,
        region: &Region,
        columns: &[ArrayColumn],
        schema: &SchemaRef,
        last: &mut [Option<Repeated>],
    ) -> datafusion::error::Result<RecordBatch> {
        let external = |error: Error| DataFusionError::External(Box::new(error));
        let rows = region.iter().map(|range| range.end - range.start).product::<u64>() as usize;
        let mut structures: HashMap<*const NDArray, ArrayRef> = HashMap::new();
        let mut arrays = Vec::with_capacity(columns.len());
        for ((at, computed), last) in columns.iter().zip(last) {
            let Some(column) = at.map(|at| &self.columns[at]) else {
                if let Some(computed) = computed {
                    arrays.push(computed.evaluate(None, rows)?);
                }
                continue;
            };
            let (items, axis) = match &column.items {
                Items::Array(array) => (items_to_arrow(array, region).map_err(external)?, None),
                Items::Field(array, field) => {
                    let items = match structures.get(&Arc::as_ptr(array)) {
                        Some(items) => Arc::clone(items),
                        None => {
                            let items = items_to_arrow(array, region).map_err(external)?;
                            structures.insert(Arc::as_ptr(array), Arc::clone(&items));
                            items
                        }
                    };
                    (Arc::clone(items.as_struct().column(*field)), None)
                }
                Items::Coordinate(axis, _) | Items::Index(axis) => {
                    let items = column.coordinates(region[*axis].clone());
                    (items.map_err(external)?, Some(*axis))
                }
            };
            let items = match computed {
                Some(computed) => {
                    let len = items.len();
                    computed.evaluate(Some((&column.field, items)), len)?
                }
                None => items,
            };
            arrays.push(match axis {
                Some(axis) => repeat(items, region, axis, last)?,
                None => items,
            });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options)?)
    }
}

impl Column {
    /// The items for which a condition on this column is true. `None` means that the condition fails or has another type:
    /// the filter reports it.
    fn matches(&self, condition: &Arc<dyn PhysicalExpr>, items: ArrayRef) -> Option<BooleanArray> {
        let schema = Arc::new(Schema::new(vec![Arc::clone(&self.field)]));
        let evaluate = || -> datafusion::error::Result<ArrayRef> {
            let condition = reassign_expr_columns(Arc::clone(condition), &schema)?;
            let batch = RecordBatch::try_new(Arc::clone(&schema), vec![items])?;
            condition.evaluate(&batch)?.into_array(batch.num_rows())
        };
        evaluate().ok()?.as_boolean_opt().cloned()
    }

    /// The coordinates of a range of indices.
    fn coordinates(&self, range: Range<u64>) -> Result<ArrayRef> {
        match &self.items {
            Items::Coordinate(_, array) => items_to_arrow(array, [range]),
            _ => Ok(Arc::new(range.map(|index| index as i64).collect::<Int64Array>())),
        }
    }
}

/// The coordinates of an axis, how often each is repeated, and the repeated ones.
type Repeated = (ArrayRef, [usize; 2], ArrayRef);

/// The coordinate of each item of a region. `last` are those of the last region, which are often the same.
fn repeat(
    coordinates: ArrayRef,
    region: &Region,
    axis: usize,
    last: &mut Option<Repeated>,
) -> datafusion::error::Result<ArrayRef> {
    let count = |ranges: &[Range<u64>]| {
        ranges.iter().map(|range| range.end - range.start).product::<u64>() as usize
    };
    let (outer, inner) = (count(&region[..axis]), count(&region[axis + 1..]));
    if (outer, inner) == (1, 1) {
        return Ok(coordinates);
    }
    if let Some((of, counts, all)) = last
        && *counts == [outer, inner]
        && of == &coordinates
    {
        return Ok(Arc::clone(all));
    }
    let numbers = (coordinates.null_count() == 0).then_some(&*coordinates);
    let numbers = numbers.and_then(|numbers| {
        downcast_primitive_array!(
            numbers => Some(repeat_numbers(numbers, outer, inner)),
            _ => None
        )
    });
    let all = match numbers {
        Some(numbers) => numbers,
        None => {
            let indices = repeated(0..coordinates.len() as u32, outer, inner);
            take(&coordinates, &UInt32Array::from(indices), None)?
        }
    };
    *last = Some((coordinates, [outer, inner], Arc::clone(&all)));
    Ok(all)
}

fn repeat_numbers<T: ArrowPrimitiveType>(
    numbers: &PrimitiveArray<T>,
    outer: usize,
    inner: usize,
) -> ArrayRef {
    let items = repeated(numbers.values().iter().copied(), outer, inner);
    let array = PrimitiveArray::<T>::new(items.into(), None);
    Arc::new(array.with_data_type(numbers.data_type().clone()))
}

/// Each item `inner` times, and all that `outer` times.
fn repeated<T: Copy>(
    items: impl ExactSizeIterator<Item = T>,
    outer: usize,
    inner: usize,
) -> Vec<T> {
    let once = items.len() * inner;
    let mut all = Vec::with_capacity(once * outer);
    items.for_each(|item| all.extend(std::iter::repeat_n(item, inner)));
    (1..outer).for_each(|_| all.extend_from_within(..once));
    all
}

/// The index of a column, if the arrays have it, and what is computed from it.
pub(crate) type ArrayColumn = (Option<usize>, Option<Arc<Computed>>);

/// Reads record batches of some chunks.
pub(crate) struct Batches {
    arrays: Arc<Arrays>,
    schema: SchemaRef,
    columns: Vec<ArrayColumn>,
    /// For each column, if it contains coordinates, those of the last batch.
    last: Vec<Option<Repeated>>,
    selected: Selection,
    chunks: Range<u64>,
    /// Counts the chunks that a filter selects, and the others.
    counts: Option<PruningMetrics>,
    /// The parts of the present chunk, the next one last.
    regions: Vec<Region>,
    /// The maximum number of items of a batch.
    most: u64,
}

impl Batches {
    /// `columns` are indices of the columns of `arrays`.
    pub(crate) fn new(
        arrays: Arc<Arrays>,
        schema: SchemaRef,
        columns: Vec<ArrayColumn>,
        selected: Selection,
        chunks: Range<u64>,
        counts: Option<PruningMetrics>,
        most: u64,
    ) -> Self {
        let last = vec![None; columns.len()];
        Self { arrays, schema, columns, last, selected, chunks, counts, regions: Vec::new(), most }
    }
}

impl Iterator for Batches {
    type Item = datafusion::error::Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let arrays = &*self.arrays;
        let mut skipped = 0;
        while self.regions.is_empty() {
            let chunk = self.chunks.next()?;
            let Selection { axes, of_items } = &self.selected;
            if !arrays.is_selected(chunk, axes) || arrays.is_excluded(chunk, of_items) {
                self.counts.iter().for_each(|counts| counts.add_pruned(1));
                skipped += 1;
                match skipped == MAX_SKIPPED {
                    true => return Some(Ok(RecordBatch::new_empty(Arc::clone(&self.schema)))),
                    false => continue,
                }
            }
            self.counts.iter().for_each(|counts| counts.add_matched(1));
            for region in arrays.regions(chunk, axes) {
                arrays.divide(region, self.most, &mut self.regions);
            }
            self.regions.reverse();
        }
        let region = self.regions.pop()?;
        let batch = arrays.read(&region, &self.columns, &self.schema, &mut self.last);
        if batch.is_err() {
            self.regions.clear();
            self.chunks = 0..0;
        }
        Some(batch)
    }
}

fn indices(dims: &[String]) -> Vec<Column> {
    let column = |(axis, name): (usize, &String)| Column {
        field: Arc::new(Field::new(name, DataType::Int64, false)),
        items: Items::Index(axis),
    };
    dims.iter().enumerate().map(column).collect()
}

/// The names of the axes in the metadata of an array, as xarray-blosc2 writes them.
fn dims_of(array: &NDArray) -> Result<Option<Vec<String>>> {
    let Some(dims) = array.schunk().vlmeta().value("dims")? else { return Ok(None) };
    let names = dims.as_list().unwrap_or(&[]).iter().map(|name| name.as_str().map(str::to_owned));
    Ok(names.collect::<Option<Vec<_>>>().filter(|names| names.len() == array.ndim()))
}

fn text_of(array: &NDArray, name: &str) -> Result<Option<String>> {
    let text = array.schunk().vlmeta().value(name)?;
    Ok(text.as_ref().and_then(Value::as_str).map(str::to_owned))
}

/// The names of the axes: the given ones, those in the metadata, or `axis_0`, `axis_1` and so on.
fn dims_for(
    array: &NDArray,
    given: Option<&[String]>,
    stored: Option<Vec<String>>,
) -> Result<Vec<String>> {
    match given {
        Some(given) if given.len() != array.ndim() => {
            let (given, shape) = (given.join(","), array.shape());
            Err(failed(format!(
                "the option `dims` is `{given}`, but the arrays have the shape {shape:?}"
            )))
        }
        Some(given) => Ok(given.to_vec()),
        None => {
            let numbers = || (0..array.ndim()).map(|axis| format!("axis_{axis}")).collect();
            Ok(stored.unwrap_or_else(numbers))
        }
    }
}

/// Whether a key is below a group. The group of all keys is empty.
pub(crate) fn is_in(key: &str, group: &str) -> bool {
    key.strip_prefix(group).is_some_and(|rest| rest.starts_with('/'))
}

fn failed(detail: String) -> Error {
    Error::new(ErrorKind::InvalidData, OPEN, detail)
}
