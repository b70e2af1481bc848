//! Tables of SQL: their creation, and a form that can be sent to other machines.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
#[cfg(feature = "proto")]
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::catalog::{ScanArgs, ScanResult, Session, TableProvider, TableProviderFactory};
#[cfg(feature = "proto")]
use datafusion::common::plan_err;
use datafusion::common::{Constraints, not_impl_err};
use datafusion::datasource::listing::ListingTable;
#[cfg(feature = "proto")]
use datafusion::datasource::listing::{ListingOptions, ListingTableConfig, ListingTableUrl};
use datafusion::datasource::provider::DefaultTableFactory;
use datafusion::error::Result;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{CreateExternalTable, Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use url::{Position, Url};

#[cfg(feature = "ballista")]
use crate::format::{is_of_ballista, without_dictionaries};
use crate::object::{INDEX, is_index};

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
        #[cfg(feature = "ballista")]
        if is_of_ballista(state.config_options()) {
            return not_impl_err!(
                "write a table on other machines: write the result of the query in this program"
            );
        }
        if let Some(index) = self.0.table_paths().iter().find(|path| is_index(path.prefix())) {
            let index = index.prefix();
            return not_impl_err!(
                "add rows to the directory of `{index}`: expected a directory of tables"
            );
        }
        self.0.insert_into(state, input, operation).await
    }
}

/// Creates tables for `CREATE EXTERNAL TABLE`, as DataFusion does for other formats.
#[derive(Debug)]
pub(crate) struct ExternalTableFactory;

#[async_trait]
impl TableProviderFactory for ExternalTableFactory {
    async fn create(
        &self,
        state: &dyn Session,
        command: &CreateExternalTable,
    ) -> Result<Arc<dyn TableProvider>> {
        command.locations.iter().try_for_each(|location| check_location(location))?;
        let locations = command.locations.iter().map(|location| with_index(location));
        let locations = locations.collect::<Result<_>>()?;
        let command = CreateExternalTable { locations, ..command.clone() };
        let table = DefaultTableFactory::new().create(state, &command).await?;
        let Some(table) = table.downcast_ref::<ListingTable>().cloned() else { return Ok(table) };
        // Names of directories are dictionaries, too.
        #[cfg(feature = "ballista")]
        let table = match is_of_ballista(state.config_options()) {
            true => {
                let schema = table.schema().as_ref().clone();
                let schema = without_dictionaries(schema, state.config_options());
                let columns = &table.options().table_partition_cols;
                let names = columns.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
                let paths = table.table_paths().clone();
                listing(paths, table.options().clone(), &names, &schema)?
                    .with_constraints(table.constraints().cloned().unwrap_or_default())
                    .with_definition(table.get_table_definition().map(str::to_owned))
            }
            false => table,
        };
        Ok(Arc::new(Blosc2Table::from(table)))
    }
}

/// Replaces the location of a store in a directory (`.b2d`) by that of its index, which stands for the directory.
fn with_index(location: &str) -> Result<String> {
    match location.trim_end_matches('/') {
        // DataFusion compares a pattern with the first part of a path only.
        pattern if pattern.ends_with(".b2d") && pattern.contains(['*', '?', '[']) => {
            not_impl_err!("open the tables `{location}`: expected the location of each directory")
        }
        directory if directory.ends_with(".b2d") => Ok(format!("{directory}/{INDEX}")),
        _ => Ok(location.to_owned()),
    }
}

/// Refuses passwords and signatures in URLs: plans and messages contain the locations of tables, and DataFusion does not send
/// the signature.
fn check_location(location: &str) -> Result<()> {
    let Ok(url) = Url::parse(location) else { return Ok(()) };
    let has_user = !url.username().is_empty() || url.password().is_some();
    let is_signed = url.scheme().starts_with("http") && url.query().is_some();
    if has_user || is_signed {
        let host = &url[Position::BeforeHost..Position::AfterPath];
        let (scheme, found) = (url.scheme(), if has_user { "a user" } else { "a query" });
        return not_impl_err!(
            "open the table `{scheme}://{host}`: expected a location without user and query, found {found}; register an \
             object store that has the credentials"
        );
    }
    Ok(())
}

/// Creates a table of files. The last columns of `schema` are those with the names `partition_columns`, whose items are
/// parts of the paths.
#[cfg(feature = "proto")]
pub(crate) fn listing(
    locations: Vec<ListingTableUrl>,
    options: ListingOptions,
    partition_columns: &[String],
    schema: &Schema,
) -> Result<ListingTable> {
    let count = schema.fields().len();
    let (of_files, of_paths) = schema.fields().split_at(count - partition_columns.len().min(count));
    let names = of_paths.iter().map(|field| field.name());
    if !names.clone().eq(partition_columns) {
        let found = names.collect::<Vec<_>>();
        return plan_err!(
            "create a table: expected the last columns {partition_columns:?}, found {found:?}"
        );
    }
    let partitions: Vec<(String, DataType)> =
        of_paths.iter().map(|field| (field.name().clone(), field.data_type().clone())).collect();
    let config = ListingTableConfig::new_with_multi_paths(locations)
        .with_listing_options(options.with_table_partition_cols(partitions))
        .with_schema(Arc::new(Schema::new(of_files.to_vec())));
    ListingTable::try_new(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_contain_no_secrets() {
        for (location, found) in [
            ("https://name:secret@host/t.b2z", "a user"),
            ("s3://secret@bucket/t.b2z", "a user"),
            ("https://host/t.b2z?signature=secret", "a query"),
        ] {
            let error = check_location(location).unwrap_err().to_string();
            assert!(error.contains(found) && !error.contains("secret"), "{error}");
        }
        for location in ["s3://bucket/a?.b2z", "https://host:80/t.b2z", "/a?b@c/t.b2z", "t.b2z"] {
            check_location(location).unwrap();
        }
    }
}
