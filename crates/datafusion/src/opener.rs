//! Reading the rows of a table as a stream of record batches.

use std::collections::{HashMap, HashSet};
use std::future::{Future, poll_fn};
use std::ops::Range;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use blosc2_store::CTable;
use blosc2_store::arrow::{ReadOptions, RecordBatches};
use datafusion::arrow::array::{RecordBatch, RecordBatchReader};
use datafusion::arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};
use datafusion::common::runtime::SpawnedTask;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileOpenFuture, FileOpener};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{
    MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};
use datafusion::physical_expr_adapter::BatchAdapterFactory;
use datafusion::physical_plan::PhysicalExpr;
use datafusion::physical_plan::metrics::PruningMetrics;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore};
use tokio::sync::{OnceCell, mpsc};

use crate::arrays::{Arrays, Batches};
use crate::computed::{Computed, Outputs};
use crate::content::{self, Content};
use crate::object::{in_table, open, unblock};
use crate::prune::Pruner;

/// The rows that are read at once, unless they are wide.
const BATCH_ROWS: u64 = 1 << 16;
/// The approximate number of bytes that are read at once.
const BATCH_BYTES: u64 = 32 << 20;

/// The files that the partitions of a scan share, so that each is opened once.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tables(Arc<Mutex<HashMap<Path, Opened>>>);

/// A file that is opened when it is first needed.
type Opened = Arc<OnceCell<Content>>;

impl Tables {
    async fn open(
        &self,
        store: Arc<dyn ObjectStore>,
        meta: &ObjectMeta,
        reading: &content::Reading,
    ) -> Result<Content> {
        let cell = {
            let mut cells = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(cells.entry(meta.location.clone()).or_default())
        };
        let table = async || open(store, meta.clone(), reading.clone()).await;
        cell.get_or_try_init(table).await.cloned()
    }
}

/// Opens parts of tables.
#[derive(Debug, Clone)]
pub(crate) struct Blosc2Opener {
    pub(crate) store: Arc<dyn ObjectStore>,
    pub(crate) tables: Tables,
    pub(crate) reading: content::Reading,
    pub(crate) pool: Option<Arc<dyn MemoryPool>>,
    /// The columns to read, and those to compute.
    pub(crate) schema: SchemaRef,
    /// For each of these columns, how it is computed.
    pub(crate) computed: Vec<Option<Arc<Computed>>>,
    /// The number of rows of the session's batches. DataFusion divides larger batches.
    pub(crate) batch_rows: usize,
    /// The number of rows that are needed.
    pub(crate) limit: Option<usize>,
    /// The condition of the rows that are needed, and the schema of its columns.
    pub(crate) predicate: Option<Arc<dyn PhysicalExpr>>,
    pub(crate) table_schema: SchemaRef,
    /// The columns of the files, as the table declares them.
    pub(crate) file_schema: SchemaRef,
    pub(crate) segments: PruningMetrics,
}

impl FileOpener for Blosc2Opener {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        let this = self.clone();
        Ok(Box::pin(async move { this.stream(file).await }))
    }
}

impl Blosc2Opener {
    async fn stream(
        self,
        file: PartitionedFile,
    ) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let path = file.object_meta.location.clone();
        let store = Arc::clone(&self.store);
        let content = self.tables.open(store, &file.object_meta, &self.reading).await?;
        let (reader, schema) = match content {
            Content::Table(table) => self.read_table(&file, table).await?,
            Content::Arrays(arrays) => self.read_arrays(&file, arrays).await?,
        };
        let adapter = match schema == self.schema {
            true => None,
            false => {
                let schema_of_table = Arc::clone(&self.schema);
                Some(BatchAdapterFactory::new(schema_of_table).make_adapter(&schema)?)
            }
        };
        let batches =
            batches(reader, self.limit, self.pool.as_ref().map(Reserved::new)).map(move |batch| {
                let batch =
                    batch.map_err(|error| error.context(format!("read the table `{path}`")))?;
                match &adapter {
                    Some(adapter) => adapter.adapt_batch(&batch),
                    None => Ok(batch),
                }
            });
        Ok(batches.boxed())
    }

    /// The rows of a part of a table, with the columns that the file has.
    async fn read_table(
        &self,
        file: &PartitionedFile,
        table: Arc<CTable>,
    ) -> Result<(Reader, SchemaRef)> {
        let path = &file.object_meta.location;
        let chunks: Vec<Range<u64>> = table.row_chunks().collect();
        let mut rows = match part_of(chunks.len() as u64, file) {
            range if range.is_empty() => 0..0,
            range => chunks[range.start as usize].start..chunks[range.end as usize - 1].end,
        };
        if let Some(limit) = self.limit {
            rows.end = rows.end.min(rows.start.saturating_add(limit as u64));
        }
        let pruner = self.pruner(&table, &rows, path).await?;
        let ranges = match &pruner {
            Some(pruner) => pruner.rows(),
            None => std::iter::once(rows).collect(),
        };
        let mut names = HashSet::new();
        let columns = self.columns().map(|(field, computed)| name_of(field, computed));
        let columns = columns.filter(|name| table.column(name).is_some() && names.insert(*name));
        let columns: Vec<String> = columns.map(str::to_owned).collect();
        let batch_rows = batch_rows(&chunks, &self.read_schema(), self.batch_rows);
        let options = ReadOptions::new().columns(columns).row_ranges(ranges).batch_rows(batch_rows);
        let batches = unblock(move || options.read(table)).await?;
        let batches = batches.map_err(|error| in_table(path, error))?;
        let mut outputs = Outputs::new(self.columns(), &batches.schema());
        let schema = Arc::clone(&outputs.schema);
        let batches = PrunedBatches { batches, pruner };
        Ok((Box::new(batches.map(move |batch| outputs.of(&batch?))), schema))
    }

    /// The items of a part of arrays, with the columns that the file has.
    async fn read_arrays(
        &self,
        file: &PartitionedFile,
        arrays: Arc<Arrays>,
    ) -> Result<(Reader, SchemaRef)> {
        let path = &file.object_meta.location;
        let (stored, mut fields, mut columns) = (arrays.schema(), Vec::new(), Vec::new());
        for (field, computed) in self.columns() {
            let from = arrays.column(name_of(field, computed));
            fields.push(match (computed, from) {
                (Some(_), _) => Arc::clone(field),
                (None, Some(from)) => Arc::clone(&stored.fields()[from]),
                (None, None) => continue,
            });
            columns.push((from, computed.clone()));
        }
        let schema = Arc::new(Schema::new(fields));
        let chunks = part_of(arrays.nchunks(), file);
        let (of, predicate) = (Arc::clone(&arrays), self.predicate.clone());
        let file_schema = Arc::clone(&self.file_schema);
        let selected = unblock(move || of.select(predicate.as_ref(), &file_schema));
        let selected = selected.await?.map_err(|error| in_table(path, error))?;
        let counts = self.predicate.is_some().then(|| self.segments.clone());
        let most = wanted_rows(&self.read_schema(), self.batch_rows);
        let schema_of_batches = Arc::clone(&schema);
        let batches =
            Batches::new(arrays, schema_of_batches, columns, selected, chunks, counts, most);
        Ok((Box::new(batches), schema))
    }

    /// The wanted columns, and those from which they are computed: the memory of a row.
    fn read_schema(&self) -> Schema {
        let mut fields: Vec<FieldRef> = self.schema.fields().iter().cloned().collect();
        for input in self.computed.iter().flatten().map(|computed| computed.input()) {
            if !fields.contains(input) {
                fields.push(Arc::clone(input));
            }
        }
        Schema::new(fields)
    }

    /// The wanted columns.
    fn columns(&self) -> impl Iterator<Item = (&FieldRef, &Option<Arc<Computed>>)> {
        self.schema.fields().iter().zip(&self.computed)
    }

    /// Skips the parts of `rows` that cannot match the filter, if there is one.
    async fn pruner(
        &self,
        table: &Arc<CTable>,
        rows: &Range<u64>,
        path: &Path,
    ) -> Result<Option<Pruner>> {
        let Some(predicate) = self.predicate.clone() else { return Ok(None) };
        let (table, this, rows) = (Arc::clone(table), self.clone(), rows.clone());
        let pruner = unblock(move || {
            let (table_schema, file_schema) = (&this.table_schema, &this.file_schema);
            Pruner::new(&table, &predicate, table_schema, file_schema, &rows, &this.segments)
        });
        pruner.await?.map_err(|error| in_table(path, error))
    }
}

/// The batches of the rows that can match a filter.
struct PrunedBatches {
    batches: RecordBatches<Arc<CTable>>,
    pruner: Option<Pruner>,
}

impl Iterator for PrunedBatches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(pruner) = &mut self.pruner
            && let Some(next) = self.batches.next_row()
            && let Some(ranges) = pruner.update(next)
        {
            self.batches.retain_rows(ranges);
        }
        self.batches.next().map(|batch| batch.map_err(Into::into))
    }
}

/// The name of the stored column that a wanted column is, or from which it is computed.
fn name_of<'a>(field: &'a FieldRef, computed: &'a Option<Arc<Computed>>) -> &'a str {
    computed.as_ref().map_or(field.name(), |computed| computed.column())
}

/// The chunks of a part of a file.
fn part_of(count: u64, file: &PartitionedFile) -> Range<u64> {
    let (start, end) = file.range();
    chunks_of(count, start..end, file.object_meta.size)
}

/// The chunks of the part of a file. Of `n` chunks, chunk `i` belongs to the range that contains the byte `i * size / n`:
/// each chunk belongs to one of several ranges that together cover the file.
fn chunks_of(count: u64, bytes: Range<u64>, size: u64) -> Range<u64> {
    // The first chunk whose byte is not before `byte`.
    let first = |byte: u64| match byte >= size {
        true => count,
        false => (u128::from(byte) * u128::from(count)).div_ceil(u128::from(size)) as u64,
    };
    first(bytes.start)..first(bytes.end)
}

/// The number of rows to read at once: several chunks, or an equal part of a chunk, so that blocks are decompressed once.
fn batch_rows(chunks: &[Range<u64>], schema: &Schema, least: usize) -> usize {
    let wanted = wanted_rows(schema, least);
    let chunk = chunks.iter().map(|rows| rows.end - rows.start).max().unwrap_or(1);
    let rows = match chunk <= wanted {
        true => wanted / chunk * chunk,
        // A chunk often has a power of two of blocks.
        false => chunk.div_ceil(chunk.div_ceil(wanted).next_power_of_two()),
    };
    usize::try_from(rows).unwrap_or(usize::MAX)
}

/// The number of rows of a batch of about [`BATCH_BYTES`] bytes at most.
fn wanted_rows(schema: &Schema, least: usize) -> u64 {
    let row =
        schema.fields().iter().map(|field| width(field.data_type())).fold(0, u64::saturating_add);
    (least as u64).max(BATCH_ROWS).min(BATCH_BYTES / row.max(1)).max(1)
}

/// The approximate size of an item in bytes.
fn width(data_type: &DataType) -> u64 {
    const VARIABLE: u64 = 32;
    match data_type {
        DataType::FixedSizeList(item, len) => {
            u64::try_from(*len).unwrap_or(0).saturating_mul(width(item.data_type()))
        }
        DataType::Struct(fields) => {
            fields.iter().map(|field| width(field.data_type())).fold(0, u64::saturating_add)
        }
        other => other.primitive_width().map_or(VARIABLE, |width| width as u64),
    }
}

type Reader = Box<dyn Iterator<Item = Result<RecordBatch>> + Send>;

/// The number of batches that wait for the query, including the batch that is being read.
const AHEAD: usize = 2;

/// Batches, and the queue in which they wait for the query.
struct Reading {
    reader: Reader,
    queue: mpsc::Sender<Result<RecordBatch>>,
}

impl Reading {
    /// Reads until the queue is full. A thread never waits for the query: other partitions may need the thread first.
    /// Returns `None` at the end of the batches, or if the stream was dropped.
    fn fill(mut self) -> Option<Self> {
        while !self.queue.is_closed() {
            let Ok(place) = self.queue.try_reserve() else { return Some(self) };
            let batch = self.reader.next()?;
            let has_failed = batch.is_err();
            place.send(batch);
            if has_failed {
                break;
            }
        }
        None
    }

    fn start(self) -> Step {
        SpawnedTask::spawn(unblock(move || self.fill()))
    }
}

type Step = SpawnedTask<Result<Option<Reading>>>;

/// Batches that are read on another thread, up to [`AHEAD`] of them in advance.
struct Ahead {
    queue: mpsc::Receiver<Result<RecordBatch>>,
    /// `None` at the end.
    step: Option<Step>,
}

impl Ahead {
    fn new(reader: Reader) -> Self {
        let (sender, queue) = mpsc::channel(AHEAD);
        Self { queue, step: Some(Reading { reader, queue: sender }.start()) }
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<RecordBatch>>> {
        let batch = self.queue.poll_recv(context);
        let joined = match &mut self.step {
            Some(step) => pin!(step.join_unwind_mut()).poll(context),
            None => Poll::Pending,
        };
        if let Poll::Ready(joined) = joined {
            self.step = None;
            let joined = joined.map_err(|error| DataFusionError::External(error.into()));
            // The queue has room now.
            match joined.and_then(|reading| reading) {
                Ok(reading) => self.step = reading.map(Reading::start),
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
        match batch {
            // A panic closes the queue before it ends the step.
            Poll::Ready(None) if self.step.is_some() => Poll::Pending,
            batch => batch,
        }
    }
}

/// The reserved memory of the batches of a stream.
struct Reserved {
    reservation: MemoryReservation,
    limit: MemoryLimit,
}

impl Reserved {
    fn new(pool: &Arc<dyn MemoryPool>) -> Self {
        let reservation = MemoryConsumer::new("Blosc2Source").register(pool);
        Self { reservation, limit: pool.memory_limit() }
    }

    /// Reserves memory that is in use. A sort may have filled the pool: it then writes rows to disk when it needs more.
    /// Therefore this fails only if the limit of the pool is less than `bytes`.
    fn set(&self, bytes: usize) -> Result<()> {
        // A short batch can be followed by longer ones.
        let bytes = bytes.max(self.reservation.size());
        match self.limit {
            MemoryLimit::Finite(limit) if bytes > limit => self.reservation.try_resize(bytes),
            _ => {
                self.reservation.resize(bytes);
                Ok(())
            }
        }
    }
}

/// Reads batches until there are `limit` rows. If the stream is dropped, no further batch is read. The memory of the
/// present batch and of those in advance is reserved.
fn batches(
    reader: Reader,
    limit: Option<usize>,
    reserved: Option<Reserved>,
) -> impl futures::Stream<Item = Result<RecordBatch>> {
    let left = limit.unwrap_or(usize::MAX);
    let ahead = (left > 0).then(|| Ahead::new(reader));
    stream::unfold((ahead, left, reserved), |(ahead, left, reserved)| async move {
        let mut ahead = ahead?;
        let batch = match poll_fn(|context| ahead.poll_next(context)).await? {
            Ok(batch) => batch,
            Err(error) => return Some((Err(error), (None, 0, None))),
        };
        let bytes = batch.get_array_memory_size().saturating_mul(1 + AHEAD);
        if let Some(Err(error)) = reserved.as_ref().map(|memory| memory.set(bytes)) {
            return Some((Err(error), (None, 0, None)));
        }
        let batch = batch.slice(0, batch.num_rows().min(left));
        let left = left - batch.num_rows();
        Some((Ok(batch), ((left > 0).then_some(ahead), left, reserved)))
    })
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::Field;

    use super::*;

    #[test]
    fn each_chunk_belongs_to_one_range() {
        for (count, size, parts) in
            [(0u64, 10u64, 3u64), (1, 10, 3), (7, 100, 7), (10, 3, 3), (1000, 12_345, 7), (3, 1, 1)]
        {
            let mut found = Vec::new();
            for part in 0..parts {
                let bytes = part * size / parts..(part + 1) * size / parts;
                for chunk in chunks_of(count, bytes.clone(), size) {
                    assert!(bytes.contains(&(chunk * size / count)));
                    found.push(chunk);
                }
            }
            assert!(found.into_iter().eq(0..count), "{count} chunks, {parts} parts");
        }
        assert_eq!(chunks_of(3, 0..u64::MAX / 3, u64::MAX), 0..1);
        assert_eq!(chunks_of(3, 0..0, 0), 3..3);
    }

    #[test]
    fn batches_are_chunks_or_parts_of_them() {
        let of = |chunk: u64, data_type: DataType, least| {
            let schema = Schema::new(vec![Field::new("a", data_type, true)]);
            batch_rows(&[0..chunk, chunk..2 * chunk, 2 * chunk..2 * chunk + 1], &schema, least)
        };
        assert_eq!(of(1_000_000, DataType::Int64, 8192), 62_500);
        assert_eq!(of(1000, DataType::Utf8, 8192), 65_000);
        assert_eq!(of(1000, DataType::Utf8, 100_000), 100_000);
        let item = Arc::new(Field::new("item", DataType::Float64, true));
        assert_eq!(of(1 << 20, DataType::FixedSizeList(item.clone(), 1 << 20), 8192), 4);
        assert_eq!(of(1 << 20, DataType::FixedSizeList(item, i32::MAX), 8192), 1);
        assert_eq!(batch_rows(&[], &Schema::empty(), 1), 1 << 16);
    }
}
