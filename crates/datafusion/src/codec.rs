//! Scans of tables as bytes.

use std::sync::Arc;

use datafusion::common::{internal_datafusion_err, not_impl_err};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::physical_plan::from_proto::{
    parse_protobuf_file_scan_config, parse_table_schema_from_proto,
};
use datafusion_proto::physical_plan::to_proto::serialize_file_scan_config;
use datafusion_proto::physical_plan::{
    PhysicalExtensionCodec, PhysicalPlanDecodeContext, PhysicalProtoConverterExtension,
};
use datafusion_proto::protobuf::FileScanExecConf;
use prost::Message;

use crate::CTableSource;

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
pub struct CTableCodec;

impl PhysicalExtensionCodec for CTableCodec {
    fn try_decode(
        &self,
        bytes: &[u8],
        _inputs: &[Arc<dyn ExecutionPlan>],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let scan = FileScanExecConf::decode(bytes)
            .map_err(|error| internal_datafusion_err!("decode the scan of a table: {error}"))?;
        let context = PhysicalPlanDecodeContext::new(context, self);
        let source = Arc::new(CTableSource::new(parse_table_schema_from_proto(&scan)?));
        let config = parse_protobuf_file_scan_config(&scan, &context, converter, source)?;
        Ok(DataSourceExec::from_data_source(config))
    }

    fn try_encode(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        bytes: &mut Vec<u8>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        let scan = plan.downcast_ref::<DataSourceExec>();
        let scan = scan.and_then(|scan| scan.downcast_to_file_source::<CTableSource>());
        let Some((config, _)) = scan else {
            return not_impl_err!("encode the plan `{}`: expected a scan of tables", plan.name());
        };
        serialize_file_scan_config(config, self, converter)?
            .encode(bytes)
            .map_err(|error| internal_datafusion_err!("encode the scan of a table: {error}"))
    }
}
