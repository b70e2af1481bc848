//! The source of a scan.

use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::physical_plan::{FileOpener, FileScanConfig, FileSource};
use datafusion::datasource::projection::{ProjectionOpener, SplitProjection};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::Result;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_plan::PhysicalExpr;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use object_store::ObjectStore;

use crate::opener::{CTableOpener, Tables};

/// Rows of a batch, if the session does not determine them.
const BATCH_ROWS: usize = 8192;

/// The source of the scan of tables, for a [`FileScanConfig`]. Created by
/// [`CTableFormat::file_source`](crate::CTableFormat); a program needs it only to build a plan without SQL.
///
/// The scan reads the columns of its projection, and evaluates the expressions of the projection. Filters are not pushed
/// down: DataFusion evaluates them after the scan.
#[derive(Debug, Clone)]
pub struct CTableSource {
    table_schema: TableSchema,
    projection: SplitProjection,
    batch_rows: usize,
    metrics: ExecutionPlanMetricsSet,
    tables: Tables,
}

impl CTableSource {
    /// Creates a source that reads all columns of files with this schema.
    pub fn new(table_schema: impl Into<TableSchema>) -> Self {
        let table_schema = table_schema.into();
        Self {
            projection: SplitProjection::unprojected(&table_schema),
            table_schema,
            batch_rows: BATCH_ROWS,
            metrics: ExecutionPlanMetricsSet::new(),
            tables: Tables::default(),
        }
    }
}

impl FileSource for CTableSource {
    fn create_file_opener(
        &self,
        store: Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        _partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        let file_schema = self.table_schema.file_schema();
        let opener = CTableOpener {
            store,
            tables: self.tables.clone(),
            schema: Arc::new(file_schema.project(&self.projection.file_indices)?),
            batch_rows: self.batch_rows,
            limit: config.limit,
        };
        ProjectionOpener::try_new(self.projection.clone(), Arc::new(opener), file_schema)
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

    fn metrics(&self) -> &ExecutionPlanMetricsSet {
        &self.metrics
    }

    fn file_type(&self) -> &str {
        "ctable"
    }

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        for projected in self.projection.source.as_ref() {
            if visit(&projected.expr)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }
}
