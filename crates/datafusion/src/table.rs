//! Tables of SQL that can be sent to other machines.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{ScanArgs, ScanResult, Session, TableProvider};
use datafusion::common::Constraints;
use datafusion::datasource::listing::ListingTable;
use datafusion::error::Result;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;

/// A [`ListingTable`] of files of Blosc2 that logical plans can contain when they are sent to other machines:
/// DataFusion refuses to encode a `ListingTable` of a format that it does not know.
///
/// `CREATE EXTERNAL TABLE` creates such a table. A program needs the type only to create one without SQL, from a
/// `ListingTable` with a [`Blosc2Format`](crate::Blosc2Format). All methods are those of the `ListingTable`.
#[derive(Debug, Clone)]
pub struct Blosc2Table(ListingTable);

impl From<ListingTable> for Blosc2Table {
    fn from(table: ListingTable) -> Self {
        Self(table)
    }
}

impl Blosc2Table {
    /// Returns the table of DataFusion: the locations, the format and other options.
    pub fn listing(&self) -> &ListingTable {
        &self.0
    }
}

#[async_trait]
impl TableProvider for Blosc2Table {
    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }

    fn constraints(&self) -> Option<&Constraints> {
        self.0.constraints()
    }

    fn table_type(&self) -> TableType {
        self.0.table_type()
    }

    fn get_table_definition(&self) -> Option<&str> {
        self.0.get_table_definition()
    }

    fn get_column_default(&self, column: &str) -> Option<&Expr> {
        self.0.get_column_default(column)
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.0.scan(state, projection, filters, limit).await
    }

    async fn scan_with_args<'a>(
        &self,
        state: &dyn Session,
        args: ScanArgs<'a>,
    ) -> Result<ScanResult> {
        self.0.scan_with_args(state, args).await
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        self.0.supports_filters_pushdown(filters)
    }

    async fn insert_into(
        &self,
        state: &dyn Session,
        input: Arc<dyn ExecutionPlan>,
        operation: InsertOp,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.0.insert_into(state, input, operation).await
    }
}
