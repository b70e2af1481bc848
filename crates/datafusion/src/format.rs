//! The file format.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
#[cfg(feature = "ballista")]
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::Session;
use datafusion::common::stats::Precision;
use datafusion::common::{GetExt, Statistics, exec_err, not_impl_err, plan_err};
#[cfg(feature = "ballista")]
use datafusion::config::ConfigOptions;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::file_format::{FileFormat, FileFormatFactory};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{
    FileGroup, FileScanConfig, FileScanConfigBuilder, FileSinkConfig, FileSource,
};
use datafusion::datasource::sink::DataSinkExec;
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::Result;
use datafusion::physical_expr::LexRequirement;
use datafusion::physical_plan::ExecutionPlan;
use futures::{StreamExt, TryStreamExt, stream};
use object_store::{ObjectMeta, ObjectStore};

use crate::Blosc2Source;
use crate::content::{self, Content, EXTENSION, Kind, Member, Reading};
use crate::object::{in_table, is_index, open, open_with, unblock, version};
use crate::prune;
use crate::sink::CTableSink;

/// The extension of the files of arrays.
const ARRAY_EXTENSION: &str = "b2nd";

/// The format of tables (`.b2z`) and of arrays (`.b2nd`, and stores with the extension `.b2z`), for a
/// [`ListingTable`](datafusion::datasource::listing::ListingTable). [`register`](crate::register) makes it available in
/// SQL; a program needs it only to create such a table without SQL. The default format accepts tables and arrays.
///
/// The schema contains the columns that have an Arrow type. Other columns are left out: computed and stale columns, and
/// columns of Python objects. To infer the schema, each file and the metadata of its columns are read. The statistics
/// contain the exact number of rows, and which columns have no nulls.
///
/// ```
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// use std::sync::Arc;
///
/// use blosc2::NDArray;
/// use blosc2_datafusion::Blosc2Format;
/// use datafusion::datasource::listing::{
///     ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl,
/// };
/// use datafusion::prelude::SessionContext;
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("a.b2nd");
/// NDArray::from_slice(&[3, 1, 4, 1, 5, 9], [2, 3])?.save(&path)?;
///
/// let context = SessionContext::new();
/// let dims = vec!["row".to_owned(), "column".to_owned()];
/// let options = ListingOptions::new(Arc::new(Blosc2Format::arrays(Some(dims))))
///     .with_file_extension(".b2nd");
/// let url = ListingTableUrl::parse(path.to_str().unwrap())?;
/// let config = ListingTableConfig::new(url).with_listing_options(options);
/// let config = config.infer_schema(&context.state()).await?;
/// context.register_table("a", Arc::new(ListingTable::try_new(config)?))?;
/// let found = context.sql("SELECT value FROM a WHERE row = 1 AND column = 2").await?;
/// assert!(found.to_string().await?.contains("| 9 "));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Blosc2Format {
    reading: Reading,
}

impl Blosc2Format {
    /// Creates the format of files that contain tables.
    pub fn tables() -> Self {
        Self::with_reading(Reading { kind: Kind::Table, ..Reading::default() })
    }

    /// Creates the format of files that contain arrays. `dims` are the names of the axes. `None` means those in the
    /// metadata of the arrays; without metadata, the names are `axis_0`, `axis_1` and so on.
    pub fn arrays(dims: Option<Vec<String>>) -> Self {
        Self::with_reading(Reading { kind: Kind::Arrays, dims, key: None })
    }

    /// Reads one member of each store: the table, the array or the group of arrays with this key, such as `/group/table`.
    pub fn with_key(mut self, key: impl Into<String>) -> Self {
        self.reading.key = Some(key.into());
        self
    }

    /// Returns the members of the store in a file. A file with a table or an array has none.
    ///
    /// # Errors
    /// Fails if the file cannot be read, or contains nothing that this crate knows.
    pub async fn members(store: &Arc<dyn ObjectStore>, file: &ObjectMeta) -> Result<Vec<Member>> {
        let file = version(store, file.clone()).await?;
        open_with(Arc::clone(store), file, |object| Ok(content::members(object))).await
    }

    pub(crate) fn with_reading(reading: Reading) -> Self {
        Self { reading }
    }

    #[cfg(feature = "proto")]
    pub(crate) fn reading(&self) -> &Reading {
        &self.reading
    }
}

#[async_trait]
impl FileFormat for Blosc2Format {
    fn get_ext(&self) -> String {
        match self.reading.kind {
            Kind::Arrays => ARRAY_EXTENSION,
            Kind::Any | Kind::Table => EXTENSION,
        }
        .to_owned()
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
            let extension = self.get_ext();
            return plan_err!("open a table: there is no file with the extension `.{extension}`");
        }
        let schemas = objects.iter().map(|object| {
            let (store, object) = (Arc::clone(store), object.clone());
            async move {
                let path = object.location.clone();
                let object = version(&store, object).await?;
                let content = open(store, object, self.reading.clone()).await?;
                let schema = unblock(move || content.schema()).await?;
                schema.map_err(|error| in_table(&path, error))
            }
        });
        let at_once = state.config_options().execution.meta_fetch_concurrency;
        let schemas: Vec<Schema> = stream::iter(schemas.collect::<Vec<_>>())
            .buffered(at_once.into())
            .try_collect()
            .await?;
        let schema = Schema::try_merge(schemas)?;
        #[cfg(feature = "ballista")]
        let schema = without_dictionaries(schema, state.config_options());
        Ok(Arc::new(schema))
    }

    async fn infer_stats(
        &self,
        _state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        table_schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<Statistics> {
        // DataFusion keeps statistics while a file is unchanged. The directory of an index can change.
        if is_index(&object.location) {
            return Ok(Statistics::new_unknown(&table_schema));
        }
        let reading = self.reading.clone();
        let content = open(Arc::clone(store), object.clone(), reading).await?;
        let Ok(rows) = usize::try_from(content.nrows()) else {
            let path = &object.location;
            return exec_err!("the table `{path}` has {} rows, too many", content.nrows());
        };
        let unknown = Statistics::new_unknown(&table_schema);
        let mut statistics = unknown.with_num_rows(Precision::Exact(rows));
        if let Content::Table(table) = content {
            let columns = unblock(move || prune::statistics(&table, &table_schema));
            statistics.column_statistics = columns.await?;
        }
        Ok(statistics)
    }

    async fn create_physical_plan(
        &self,
        state: &dyn Session,
        mut config: FileScanConfig,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let store = state.runtime_env().object_store(&config.object_store_url)?;
        let is_directory = |file: &PartitionedFile| is_index(&file.object_meta.location);
        // A new group has no statistics: other groups keep theirs.
        for group in config.file_groups.iter_mut().filter(|it| it.files().iter().any(is_directory))
        {
            let mut files = Vec::new();
            for mut file in group.files().iter().cloned() {
                file.object_meta = version(&store, file.object_meta).await?;
                files.push(file);
            }
            *group = FileGroup::new(files);
        }
        // An opener is not told the pool of the query.
        let pool = &state.runtime_env().memory_pool;
        let source = config.file_source().downcast_ref::<Blosc2Source>();
        let source = source.map(|source| source.clone().with_pool(pool));
        Ok(DataSourceExec::from_data_source(match source {
            Some(source) => {
                FileScanConfigBuilder::from(config).with_source(Arc::new(source)).build()
            }
            None => config,
        }))
    }

    async fn create_writer_physical_plan(
        &self,
        input: Arc<dyn ExecutionPlan>,
        _state: &dyn Session,
        config: FileSinkConfig,
        order: Option<LexRequirement>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if self.reading.kind == Kind::Arrays {
            return not_impl_err!("write rows to arrays: expected a table (`STORED AS CTABLE`)");
        }
        Ok(Arc::new(DataSinkExec::new(input, Arc::new(CTableSink::new(config)?), order)))
    }

    fn file_source(&self, table_schema: TableSchema) -> Arc<dyn FileSource> {
        Arc::new(Blosc2Source::new(table_schema).with_reading(self.reading.clone()))
    }
}

/// Replaces dictionaries by their values in the schema of files, in a session of Ballista. Arrow Flight, by which Ballista
/// sends batches between machines, sends the values of dictionaries by default, and the schema of the plan has to agree.
#[cfg(feature = "ballista")]
pub(crate) fn without_dictionaries(schema: Schema, session: &ConfigOptions) -> Schema {
    if !is_of_ballista(session) {
        return schema;
    }
    let fields = schema.fields().iter().map(with_values);
    Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone())
}

/// Whether the plans of a session run on a cluster of Ballista.
#[cfg(feature = "ballista")]
pub(crate) fn is_of_ballista(session: &ConfigOptions) -> bool {
    session.extensions.get::<ballista_core::config::BallistaConfig>().is_some()
}

#[cfg(feature = "ballista")]
fn with_values(field: &FieldRef) -> FieldRef {
    let data_type = match field.data_type() {
        DataType::Dictionary(_, values) => values.as_ref().clone(),
        DataType::List(item) => DataType::List(with_values(item)),
        DataType::LargeList(item) => DataType::LargeList(with_values(item)),
        _ => return Arc::clone(field),
    };
    Arc::new(field.as_ref().clone().with_data_type(data_type))
}

/// Creates [`Blosc2Format`] for SQL. [`register`](crate::register) registers it in a session.
///
/// The option `key` is the key of a table, of an array or of a group of arrays in a store. Arrays have the option `dims`, too:
/// the names of the axes, separated by commas. `CREATE EXTERNAL TABLE ... OPTIONS` with another option fails.
#[derive(Debug, Clone)]
pub struct Blosc2FormatFactory {
    name: &'static str,
    kind: Kind,
}

impl Blosc2FormatFactory {
    /// Creates a factory of tables for the name `ctable`, for `STORED AS CTABLE`.
    pub const fn tables() -> Self {
        Self { name: "ctable", kind: Kind::Table }
    }

    /// Creates a factory of arrays for the name `b2nd`, for `STORED AS B2ND` and for `SELECT * FROM 'file.b2nd'`.
    pub const fn arrays() -> Self {
        Self { name: ARRAY_EXTENSION, kind: Kind::Arrays }
    }

    /// Creates a factory for the name `b2z`, for `SELECT * FROM 'file.b2z'`. The file contains a table or arrays.
    pub const fn archives() -> Self {
        Self { name: EXTENSION, kind: Kind::Any }
    }
}

impl GetExt for Blosc2FormatFactory {
    fn get_ext(&self) -> String {
        self.name.to_owned()
    }
}

impl FileFormatFactory for Blosc2FormatFactory {
    fn create(
        &self,
        _state: &dyn Session,
        options: &HashMap<String, String>,
    ) -> Result<Arc<dyn FileFormat>> {
        let (mut dims, mut key) = (None, None);
        for (option, value) in options {
            match option.strip_prefix("format.").unwrap_or(option) {
                "dims" if self.kind != Kind::Table => {
                    let names = value.split(',').map(|name| name.trim().to_owned());
                    dims = Some(names.collect::<Vec<_>>());
                }
                "key" => key = Some(value.clone()),
                option => {
                    let name = self.name.to_uppercase();
                    return plan_err!("create a table: `{option}` is no option of {name}");
                }
            }
        }
        Ok(Arc::new(Blosc2Format::with_reading(Reading { kind: self.kind, dims, key })))
    }

    fn default(&self) -> Arc<dyn FileFormat> {
        Arc::new(Blosc2Format::with_reading(Reading { kind: self.kind, ..Reading::default() }))
    }
}
