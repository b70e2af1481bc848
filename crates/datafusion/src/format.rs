//! The file format.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use blosc2::ErrorKind;
use blosc2_store::CTable;
use blosc2_store::arrow::ReadOptions;
use datafusion::arrow::array::RecordBatchReader;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider, TableProviderFactory};
use datafusion::common::stats::Precision;
use datafusion::common::{GetExt, Statistics, exec_err, not_impl_err, plan_err};
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::file_format::{FileFormat, FileFormatFactory};
use datafusion::datasource::physical_plan::{FileScanConfig, FileSinkConfig, FileSource};
use datafusion::datasource::provider::DefaultTableFactory;
use datafusion::datasource::sink::DataSinkExec;
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::Result;
use datafusion::logical_expr::CreateExternalTable;
use datafusion::physical_expr::LexRequirement;
use datafusion::physical_plan::ExecutionPlan;
use futures::{StreamExt, TryStreamExt, stream};
use object_store::{ObjectMeta, ObjectStore};

use crate::CTableSource;
use crate::object::{in_table, open, unblock};
use crate::sink::CTableSink;

/// The extension of the files of tables.
pub(crate) const EXTENSION: &str = "b2z";

/// The format of tables in zip files (`.b2z`), for a
/// [`ListingTable`](datafusion::datasource::listing::ListingTable). [`register`](crate::register) makes it available in
/// SQL; a program needs it only to create such a table without SQL.
///
/// The schema contains the columns that have an Arrow type. Other columns are left out: computed and stale columns, and
/// columns of Python objects. To infer the schema, each file and the metadata of its columns are read. The statistics
/// contain the exact number of rows.
#[derive(Debug, Clone, Copy, Default)]
pub struct CTableFormat;

#[async_trait]
impl FileFormat for CTableFormat {
    fn get_ext(&self) -> String {
        EXTENSION.to_owned()
    }

    fn get_ext_with_compression(&self, compression: &FileCompressionType) -> Result<String> {
        match compression.is_compressed() {
            false => Ok(self.get_ext()),
            true => not_impl_err!("a table in a compressed file: the chunks are compressed"),
        }
    }

    /// Returns "uncompressed", so that DataFusion finds the files of a directory by their extension.
    fn compression_type(&self) -> Option<FileCompressionType> {
        Some(FileCompressionType::UNCOMPRESSED)
    }

    async fn infer_schema(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        objects: &[ObjectMeta],
    ) -> Result<SchemaRef> {
        if objects.is_empty() {
            return plan_err!("open a table: there is no file with the extension `.{EXTENSION}`");
        }
        let schemas = objects.iter().map(|object| {
            let (store, object) = (Arc::clone(store), object.clone());
            async move {
                let path = object.location.clone();
                let table = open(store, object).await?;
                let schema = unblock(move || schema_of(&table)).await?;
                schema.map_err(|error| in_table(&path, error))
            }
        });
        let at_once = state.config_options().execution.meta_fetch_concurrency;
        let schemas: Vec<Schema> = stream::iter(schemas.collect::<Vec<_>>())
            .buffered(at_once.into())
            .try_collect()
            .await?;
        Ok(Arc::new(Schema::try_merge(schemas)?))
    }

    async fn infer_stats(
        &self,
        _state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        table_schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<Statistics> {
        let rows = open(Arc::clone(store), object.clone()).await?.nrows();
        let Ok(rows) = usize::try_from(rows) else {
            return exec_err!("the table `{}` has {rows} rows, too many", object.location);
        };
        Ok(Statistics::new_unknown(&table_schema).with_num_rows(Precision::Exact(rows)))
    }

    async fn create_physical_plan(
        &self,
        _state: &dyn Session,
        config: FileScanConfig,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(DataSourceExec::from_data_source(config))
    }

    async fn create_writer_physical_plan(
        &self,
        input: Arc<dyn ExecutionPlan>,
        _state: &dyn Session,
        config: FileSinkConfig,
        order: Option<LexRequirement>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(DataSinkExec::new(input, Arc::new(CTableSink::new(config)?), order)))
    }

    fn file_source(&self, table_schema: TableSchema) -> Arc<dyn FileSource> {
        Arc::new(CTableSource::new(table_schema))
    }
}

/// Creates tables for `CREATE EXTERNAL TABLE`, as DataFusion does for other formats.
#[derive(Debug)]
pub(crate) struct CTableFactory;

#[async_trait]
impl TableProviderFactory for CTableFactory {
    async fn create(
        &self,
        state: &dyn Session,
        command: &CreateExternalTable,
    ) -> Result<Arc<dyn TableProvider>> {
        let is_directory = |location: &&String| location.trim_end_matches('/').ends_with(".b2d");
        if let Some(location) = command.locations.iter().find(is_directory) {
            return not_impl_err!(
                "the table `{location}` in a directory (`.b2d`): expected files (`.{EXTENSION}`); `TreeStore::pack` of \
                 blosc2-store converts it"
            );
        }
        DefaultTableFactory::new().create(state, command).await
    }
}

/// The schema of the columns that have an Arrow type.
fn schema_of(table: &CTable) -> blosc2::Result<Schema> {
    let mut fields = Vec::new();
    for column in table.columns() {
        match ReadOptions::new().columns([column.name()]).read(table) {
            Ok(column) => fields.extend(column.schema().fields().iter().cloned()),
            Err(error) if error.kind() == ErrorKind::Unsupported => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Schema::new(fields))
}

/// Creates [`CTableFormat`] for SQL. [`register`](crate::register) registers it in a session.
///
/// There are no options; `CREATE EXTERNAL TABLE ... OPTIONS` with any option fails.
#[derive(Debug, Clone)]
pub struct CTableFormatFactory {
    name: &'static str,
}

impl CTableFormatFactory {
    /// Creates a factory for the name `ctable`, for `STORED AS CTABLE`.
    pub const fn new() -> Self {
        Self { name: "ctable" }
    }

    /// A factory for the extension of files, with which `SELECT * FROM 'file.b2z'` finds the format.
    pub(crate) const fn of_extension() -> Self {
        Self { name: EXTENSION }
    }
}

impl Default for CTableFormatFactory {
    fn default() -> Self {
        Self::new()
    }
}

impl GetExt for CTableFormatFactory {
    fn get_ext(&self) -> String {
        self.name.to_owned()
    }
}

impl FileFormatFactory for CTableFormatFactory {
    fn create(
        &self,
        _state: &dyn Session,
        options: &HashMap<String, String>,
    ) -> Result<Arc<dyn FileFormat>> {
        match options.keys().next() {
            None => Ok(Arc::new(CTableFormat)),
            Some(option) => plan_err!("create a table: `{option}` is no option of CTABLE"),
        }
    }

    fn default(&self) -> Arc<dyn FileFormat> {
        Arc::new(CTableFormat)
    }
}
