//! Scans of tables as bytes.

use std::sync::Arc;

use datafusion::common::{internal_datafusion_err, internal_err, not_impl_err};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_expr_common::physical_expr::snapshot_physical_expr;
use datafusion::physical_plan::ExecutionPlan;
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

use crate::Blosc2Source;
use crate::content::{Kind, Reading};

/// Converts scans of tables to bytes and back, so that physical plans can be sent to other machines.
///
/// Combine it with the codecs of other extensions by a
/// [`ComposedPhysicalExtensionCodec`](datafusion_proto::physical_plan::ComposedPhysicalExtensionCodec), in the same order
/// on all machines. The bytes contain the paths, sizes and modification times of the files, but no ETags and no
/// credentials: each machine registers its own object stores.
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
}

const KINDS: [Kind; 3] = [Kind::Any, Kind::Table, Kind::Arrays];

impl PhysicalExtensionCodec for Blosc2Codec {
    fn try_decode(
        &self,
        bytes: &[u8],
        _inputs: &[Arc<dyn ExecutionPlan>],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Scan { scan, predicate, kind, dims } = Scan::decode(bytes)
            .map_err(|error| internal_datafusion_err!("decode the scan of a table: {error}"))?;
        let Some(scan) = scan else {
            return internal_err!("decode the scan of a table: the bytes have no scan");
        };
        let context = PhysicalPlanDecodeContext::new(context, self);
        let schema = parse_table_schema_from_proto(&scan)?;
        let predicate = predicate.map(|predicate| {
            let schema = schema.table_schema();
            parse_physical_expr_with_converter(&predicate, schema, &context, converter)
        });
        let Some(kind) = KINDS.get(kind as usize) else {
            return internal_err!("decode the scan of a table: there is no kind {kind} of files");
        };
        let reading = Reading { kind: *kind, dims: Some(dims).filter(|dims| !dims.is_empty()) };
        let source = Blosc2Source::new(schema.clone())
            .with_predicate(predicate.transpose()?)
            .with_reading(reading);
        let config = parse_protobuf_file_scan_config(&scan, &context, converter, Arc::new(source))?;
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
        let scan = Some(serialize_file_scan_config(config, self, converter)?);
        // The present state of filters that other parts of the plan make stricter.
        let predicate = source.predicate().map(|predicate| {
            let predicate = snapshot_physical_expr(Arc::clone(predicate))?;
            serialize_physical_expr_with_converter(&predicate, self, converter)
        });
        let Reading { kind, dims } = source.reading().clone();
        let kind = KINDS.iter().position(|each| *each == kind).unwrap_or_default() as u32;
        Scan { scan, predicate: predicate.transpose()?, kind, dims: dims.unwrap_or_default() }
            .encode(bytes)
            .map_err(|error| internal_datafusion_err!("encode the scan of a table: {error}"))
    }
}
