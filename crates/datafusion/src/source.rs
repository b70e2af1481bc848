//! The source of a scan.

use std::fmt;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::physical_plan::{FileOpener, FileScanConfig, FileSource};
use datafusion::datasource::projection::{ProjectionOpener, SplitProjection};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::physical_expr::conjunction_opt;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_plan::filter_pushdown::{FilterPushdownPropagation, PushedDown};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder};
use datafusion::physical_plan::{DisplayFormatType, PhysicalExpr};
use object_store::ObjectStore;

use crate::computed::Computing;
use crate::content::Reading;
use crate::opener::{Blosc2Opener, Tables};

/// Rows of a batch, if the session does not determine them.
const BATCH_ROWS: usize = 8192;
/// The metric with the numbers of segments, of the summaries of the filter's columns, that can match and that cannot.
const SEGMENTS: &str = "segments_pruned";

/// The source of the scan of tables, for a [`FileScanConfig`]. Created by
/// [`Blosc2Format::file_source`](crate::Blosc2Format); a program needs it only to build a plan without SQL.
///
/// The scan reads the columns of its projection, and evaluates the expressions of the projection. Filters determine the
/// blocks that are read, by the [summaries](blosc2_store::CTable::summary) of columns. DataFusion evaluates the filters
/// after the scan.
#[derive(Debug, Clone)]
pub struct Blosc2Source {
    table_schema: TableSchema,
    projection: SplitProjection,
    /// The condition of the rows that are needed, on the columns of the table.
    predicate: Option<Arc<dyn PhysicalExpr>>,
    batch_rows: usize,
    metrics: ExecutionPlanMetricsSet,
    tables: Tables,
    reading: Reading,
    /// Where the memory of batches is reserved.
    pool: Option<Arc<dyn MemoryPool>>,
}

impl Blosc2Source {
    /// Creates a source that reads all columns of files with this schema.
    pub fn new(table_schema: impl Into<TableSchema>) -> Self {
        let table_schema = table_schema.into();
        Self {
            projection: SplitProjection::unprojected(&table_schema),
            table_schema,
            predicate: None,
            batch_rows: BATCH_ROWS,
            metrics: ExecutionPlanMetricsSet::new(),
            tables: Tables::default(),
            reading: Reading::default(),
            pool: None,
        }
    }

    pub(crate) fn with_reading(self, reading: Reading) -> Self {
        Self { reading, ..self }
    }

    pub(crate) fn with_pool(self, pool: &Arc<dyn MemoryPool>) -> Self {
        Self { pool: Some(Arc::clone(pool)), ..self }
    }

    #[cfg(feature = "proto")]
    pub(crate) fn reading(&self) -> &Reading {
        &self.reading
    }

    /// The condition of the rows that are needed.
    #[cfg(feature = "proto")]
    pub(crate) fn predicate(&self) -> Option<&Arc<dyn PhysicalExpr>> {
        self.predicate.as_ref()
    }

    #[cfg(feature = "proto")]
    pub(crate) fn with_predicate(self, predicate: Option<Arc<dyn PhysicalExpr>>) -> Self {
        Self { predicate, ..self }
    }
}

impl FileSource for Blosc2Source {
    fn create_file_opener(
        &self,
        store: Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        let file_schema = self.table_schema.file_schema();
        // Rows that do not match the filter do not count.
        let limit = config.limit.filter(|_| self.predicate.is_none());
        // An expression is not computed for rows that are not needed: it can fail for them.
        let Computing { schema, computed, projection } = match limit {
            Some(_) => Computing::nothing(&self.projection.source, file_schema),
            None => Computing::new(&self.projection.source, file_schema)?,
        };
        let projection = SplitProjection::new(&schema, &projection);
        let stored = file_schema.fields().len();
        let computed = projection
            .file_indices
            .iter()
            .map(|at| at.checked_sub(stored))
            .map(|at| at.map(|at| Arc::clone(&computed[at])));
        let opener = Blosc2Opener {
            store,
            tables: self.tables.clone(),
            reading: self.reading.clone(),
            pool: self.pool.clone(),
            computed: computed.collect(),
            schema: Arc::new(schema.project(&projection.file_indices)?),
            batch_rows: self.batch_rows,
            limit,
            predicate: self.predicate.clone(),
            table_schema: Arc::clone(self.table_schema.table_schema()),
            file_schema: Arc::clone(file_schema),
            segments: MetricBuilder::new(&self.metrics).pruning_metrics(SEGMENTS, partition),
        };
        ProjectionOpener::try_new(projection, Arc::new(opener), &schema)
    }

    fn table_schema(&self) -> &TableSchema {
        &self.table_schema
    }

    fn with_batch_size(&self, batch_size: usize) -> Arc<dyn FileSource> {
        Arc::new(Self { batch_rows: batch_size, ..self.clone() })
    }

    fn projection(&self) -> Option<&ProjectionExprs> {
        Some(&self.projection.source)
    }

    fn try_pushdown_projection(
        &self,
        projection: &ProjectionExprs,
    ) -> Result<Option<Arc<dyn FileSource>>> {
        let projection = self.projection.source.try_merge(projection)?;
        let projection = SplitProjection::new(self.table_schema.file_schema(), &projection);
        Ok(Some(Arc::new(Self { projection, ..self.clone() })))
    }

    /// Keeps the filters for skipping blocks. DataFusion evaluates them for the rows that the scan returns: `filter` returns
    /// `None`, because not all of these rows match. Therefore the statistics of a scan are those of all rows.
    fn try_pushdown_filters(
        &self,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        _config: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn FileSource>>> {
        let results = vec![PushedDown::No; filters.len()];
        let all = self.predicate.iter().cloned().chain(filters);
        let source = Self { predicate: conjunction_opt(all), ..self.clone() };
        Ok(FilterPushdownPropagation::with_parent_pushdown_result(results)
            .with_updated_node(Arc::new(source)))
    }

    fn fmt_extra(&self, kind: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        match (&self.predicate, kind) {
            (Some(predicate), DisplayFormatType::Default | DisplayFormatType::Verbose) => {
                write!(f, ", predicate={predicate}")
            }
            _ => Ok(()),
        }
    }

    fn metrics(&self) -> &ExecutionPlanMetricsSet {
        &self.metrics
    }

    fn file_type(&self) -> &str {
        "blosc2"
    }

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let projected = self.projection.source.as_ref().iter().map(|projected| &projected.expr);
        for expression in self.predicate.iter().chain(projected) {
            if visit(expression)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }
}
