//! Scans and tables as bytes.

use std::sync::Arc;

use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::common::{TableReference, internal_datafusion_err, internal_err, not_impl_err};
use datafusion::datasource::file_format::FileFormatFactory;
use datafusion::datasource::listing::{ListingOptions, ListingTable, ListingTableUrl};
use datafusion::datasource::physical_plan::FileGroup;
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{
    AggregateUDF, Extension, HigherOrderUDF, LogicalPlan, ScalarUDF, WindowUDF,
};
use datafusion::physical_expr_common::physical_expr::snapshot_physical_expr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::logical_plan::LogicalExtensionCodec;
use datafusion_proto::physical_plan::from_proto::{
    parse_physical_expr_with_converter, parse_protobuf_file_scan_config,
    parse_table_schema_from_proto,
};
use datafusion_proto::physical_plan::to_proto::{
    serialize_file_scan_config, serialize_physical_expr_with_converter,
};
use datafusion_proto::physical_plan::{
    PhysicalExtensionCodec, PhysicalPlanDecodeContext, PhysicalProtoConverterExtension,
};
use datafusion_proto::protobuf::{FileScanExecConf, PhysicalExprNode};
use prost::Message;

use crate::content::{Kind, Reading};
use crate::table::listing;
use crate::{Blosc2Format, Blosc2FormatFactory, Blosc2Source, Blosc2Table};

/// Converts scans of tables to bytes and back, so that physical plans can be sent to other machines.
///
/// Combine it with the codecs of other extensions by a
/// [`ComposedPhysicalExtensionCodec`](datafusion_proto::physical_plan::ComposedPhysicalExtensionCodec), in the same order
/// on all machines. The bytes contain the paths, sizes, modification times and ETags of the files, but no credentials: each
/// machine registers its own object stores. User-defined functions in expressions are known by their names.
///
/// If each partition of a plan is executed with a separate copy of the plan, disable
/// `datafusion.execution.enable_file_stream_work_stealing`. Otherwise each copy reads the files of all partitions.
///
/// # Errors
/// Encoding a plan other than a scan of tables fails, and so does decoding other bytes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Blosc2Codec;

/// The bytes of a scan.
#[derive(Clone, PartialEq, Message)]
struct Scan {
    #[prost(message, optional, tag = "1")]
    scan: Option<FileScanExecConf>,
    #[prost(message, optional, tag = "2")]
    predicate: Option<PhysicalExprNode>,
    #[prost(uint32, tag = "3")]
    kind: u32,
    /// Empty if the files name their axes.
    #[prost(string, repeated, tag = "4")]
    dims: Vec<String>,
    /// The ETags of the files in the order of the groups, which the message of DataFusion does not have. Empty means that a
    /// file has none.
    #[prost(string, repeated, tag = "5")]
    e_tags: Vec<String>,
    #[prost(string, optional, tag = "6")]
    key: Option<String>,
}

const KINDS: [Kind; 3] = [Kind::Any, Kind::Table, Kind::Arrays];

fn parts(reading: &Reading) -> (u32, Vec<String>, Option<String>) {
    let Reading { kind, dims, key } = reading.clone();
    let kind = KINDS.iter().position(|each| *each == kind).unwrap_or_default();
    (kind as u32, dims.unwrap_or_default(), key)
}

fn reading(kind: u32, dims: Vec<String>, key: Option<String>) -> Result<Reading> {
    let Some(kind) = KINDS.get(kind as usize) else {
        return internal_err!("decode a plan: there is no kind {kind} of files");
    };
    Ok(Reading { kind: *kind, dims: Some(dims).filter(|dims| !dims.is_empty()), key })
}

impl PhysicalExtensionCodec for Blosc2Codec {
    fn try_decode(
        &self,
        bytes: &[u8],
        _inputs: &[Arc<dyn ExecutionPlan>],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Scan { scan, predicate, kind, dims, e_tags, key } = Scan::decode(bytes)
            .map_err(|error| internal_datafusion_err!("decode the scan of a table: {error}"))?;
        let Some(scan) = scan else {
            return internal_err!("decode the scan of a table: the bytes have no scan");
        };
        let pool = context.memory_pool();
        let context = PhysicalPlanDecodeContext::new(context, self);
        let schema = parse_table_schema_from_proto(&scan)?;
        let predicate = predicate.map(|predicate| {
            let schema = schema.table_schema();
            parse_physical_expr_with_converter(&predicate, schema, &context, converter)
        });
        let reading = reading(kind, dims, key)?;
        let source = Blosc2Source::new(schema.clone())
            .with_predicate(predicate.transpose()?)
            .with_pool(pool)
            .with_reading(reading);
        let mut config =
            parse_protobuf_file_scan_config(&scan, &context, converter, Arc::new(source))?;
        let mut e_tags = e_tags.into_iter();
        for group in &mut config.file_groups {
            let files = group.iter().cloned().map(|mut file| {
                file.object_meta.e_tag = e_tags.next().filter(|e_tag| !e_tag.is_empty());
                file
            });
            *group = FileGroup::new(files.collect());
        }
        Ok(DataSourceExec::from_data_source(config))
    }

    fn try_encode(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        bytes: &mut Vec<u8>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        let scan = plan.downcast_ref::<DataSourceExec>();
        let scan = scan.and_then(|scan| scan.downcast_to_file_source::<Blosc2Source>());
        let Some((config, source)) = scan else {
            return not_impl_err!("encode the plan `{}`: expected a scan of tables", plan.name());
        };
        // The ETag of a local file contains its inode, which other machines may see differently.
        let e_tags = match config.object_store_url.as_str().starts_with("file:") {
            true => Vec::new(),
            false => {
                let files = config.file_groups.iter().flat_map(FileGroup::iter);
                files.map(|file| file.object_meta.e_tag.clone().unwrap_or_default()).collect()
            }
        };
        let scan = Some(serialize_file_scan_config(config, self, converter)?);
        // The present state of filters that other parts of the plan make stricter.
        let predicate = source.predicate().map(|predicate| {
            let predicate = snapshot_physical_expr(Arc::clone(predicate))?;
            serialize_physical_expr_with_converter(&predicate, self, converter)
        });
        let (kind, dims, key) = parts(source.reading());
        Scan { scan, predicate: predicate.transpose()?, kind, dims, e_tags, key }
            .encode(bytes)
            .map_err(|error| internal_datafusion_err!("encode the scan of a table: {error}"))
    }
}

/// Converts tables in logical plans to bytes and back, so that logical plans can be sent to other machines. It wraps the
/// codec of another extension, which converts everything else.
///
/// The bytes contain the locations, the schema and the format of a [`Blosc2Table`], as
/// [`CREATE EXTERNAL TABLE`](crate::register) creates it. The machine that decodes them lists the files; it registers its
/// own object stores. A declared order (`WITH ORDER`) and default values of columns are left out.
///
/// # Errors
/// Encoding a table in one file that a query names by its path (`SELECT * FROM 'trips.b2z'`) fails.
#[derive(Debug, Clone)]
pub struct Blosc2LogicalCodec {
    inner: Arc<dyn LogicalExtensionCodec>,
}

impl Blosc2LogicalCodec {
    /// Creates a codec that converts everything except tables of Blosc2 with `inner`.
    pub fn new(inner: Arc<dyn LogicalExtensionCodec>) -> Self {
        Self { inner }
    }
}

/// What the bytes of a table start with. The bytes of other tables belong to the other codec.
const TABLE: &[u8] = b"blosc2 table\0";

/// The bytes of a table. Its schema is part of the plan.
#[derive(Clone, PartialEq, Message)]
struct Table {
    #[prost(message, repeated, tag = "1")]
    locations: Vec<Location>,
    #[prost(string, tag = "2")]
    extension: String,
    #[prost(uint32, tag = "3")]
    kind: u32,
    #[prost(string, repeated, tag = "4")]
    dims: Vec<String>,
    /// The columns whose items are parts of the paths, the last columns of the schema.
    #[prost(string, repeated, tag = "5")]
    partition_columns: Vec<String>,
    #[prost(string, optional, tag = "6")]
    key: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct Location {
    #[prost(string, tag = "1")]
    url: String,
    /// The pattern of the files, below the URL.
    #[prost(string, optional, tag = "2")]
    pattern: Option<String>,
}

impl Table {
    fn new(table: &ListingTable) -> Result<Self> {
        let options = table.options();
        let Some(format) = options.format.downcast_ref::<Blosc2Format>() else {
            return not_impl_err!(
                "encode a table: expected files of Blosc2, found {:?}",
                options.format
            );
        };
        let (kind, dims, key) = parts(format.reading());
        let locations = table.table_paths().iter().map(|location| Location {
            url: location.get_url().to_string(),
            pattern: location.get_glob().as_ref().map(|pattern| pattern.to_string()),
        });
        let columns = options.table_partition_cols.iter().map(|(name, _)| name.clone());
        Ok(Self {
            locations: locations.collect(),
            extension: options.file_extension.clone(),
            kind,
            dims,
            partition_columns: columns.collect(),
            key,
        })
    }

    fn into_table(self, schema: &Schema) -> Result<ListingTable> {
        let locations = self.locations.into_iter().map(|location| {
            let url = ListingTableUrl::parse(&location.url)?;
            match location.pattern {
                Some(pattern) => url.with_glob(&pattern),
                None => Ok(url),
            }
        });
        let locations = locations.collect::<Result<Vec<_>>>()?;
        let format = Blosc2Format::with_reading(reading(self.kind, self.dims, self.key)?);
        let options = ListingOptions::new(Arc::new(format)).with_file_extension(self.extension);
        listing(locations, options, &self.partition_columns, schema)
    }
}

impl LogicalExtensionCodec for Blosc2LogicalCodec {
    fn try_decode_table_provider(
        &self,
        bytes: &[u8],
        name: &TableReference,
        schema: SchemaRef,
        context: &TaskContext,
    ) -> Result<Arc<dyn TableProvider>> {
        let Some(bytes) = bytes.strip_prefix(TABLE) else {
            return self.inner.try_decode_table_provider(bytes, name, schema, context);
        };
        let table = Table::decode(bytes)
            .map_err(|error| internal_datafusion_err!("decode the table `{name}`: {error}"))?;
        Ok(Arc::new(Blosc2Table::from(table.into_table(&schema)?)))
    }

    fn try_encode_table_provider(
        &self,
        name: &TableReference,
        table: Arc<dyn TableProvider>,
        bytes: &mut Vec<u8>,
    ) -> Result<()> {
        let Some(table) = table.downcast_ref::<Blosc2Table>() else {
            return self.inner.try_encode_table_provider(name, table, bytes);
        };
        bytes.extend_from_slice(TABLE);
        let table = Table::new(table.listing())?;
        table
            .encode(bytes)
            .map_err(|error| internal_datafusion_err!("encode the table `{name}`: {error}"))
    }

    fn try_decode(
        &self,
        bytes: &[u8],
        inputs: &[LogicalPlan],
        context: &TaskContext,
    ) -> Result<Extension> {
        self.inner.try_decode(bytes, inputs, context)
    }

    fn try_encode(&self, node: &Extension, bytes: &mut Vec<u8>) -> Result<()> {
        self.inner.try_encode(node, bytes)
    }

    fn try_decode_file_format(
        &self,
        bytes: &[u8],
        context: &TaskContext,
    ) -> Result<Arc<dyn FileFormatFactory>> {
        self.inner.try_decode_file_format(bytes, context)
    }

    fn try_encode_file_format(
        &self,
        bytes: &mut Vec<u8>,
        format: Arc<dyn FileFormatFactory>,
    ) -> Result<()> {
        if format.is::<Blosc2FormatFactory>() {
            return not_impl_err!(
                "write a table on other machines: write the result of the query in this program"
            );
        }
        self.inner.try_encode_file_format(bytes, format)
    }

    fn try_decode_udf(&self, name: &str, bytes: &[u8]) -> Result<Arc<ScalarUDF>> {
        self.inner.try_decode_udf(name, bytes)
    }

    fn try_encode_udf(&self, function: &ScalarUDF, bytes: &mut Vec<u8>) -> Result<()> {
        self.inner.try_encode_udf(function, bytes)
    }

    fn try_decode_higher_order_function(
        &self,
        name: &str,
        bytes: &[u8],
    ) -> Result<Arc<HigherOrderUDF>> {
        self.inner.try_decode_higher_order_function(name, bytes)
    }

    fn try_encode_higher_order_function(
        &self,
        function: &HigherOrderUDF,
        bytes: &mut Vec<u8>,
    ) -> Result<()> {
        self.inner.try_encode_higher_order_function(function, bytes)
    }

    fn try_decode_udaf(&self, name: &str, bytes: &[u8]) -> Result<Arc<AggregateUDF>> {
        self.inner.try_decode_udaf(name, bytes)
    }

    fn try_encode_udaf(&self, function: &AggregateUDF, bytes: &mut Vec<u8>) -> Result<()> {
        self.inner.try_encode_udaf(function, bytes)
    }

    fn try_decode_udwf(&self, name: &str, bytes: &[u8]) -> Result<Arc<WindowUDF>> {
        self.inner.try_decode_udwf(name, bytes)
    }

    fn try_encode_udwf(&self, function: &WindowUDF, bytes: &mut Vec<u8>) -> Result<()> {
        self.inner.try_encode_udwf(function, bytes)
    }
}
