//! Writing the rows of a query to a table.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use blosc2_store::{CTable, Schema, TableAppender};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::not_impl_err;
use datafusion::datasource::physical_plan::FileSinkConfig;
use datafusion::datasource::sink::DataSink;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::dml::InsertOp;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType};
use futures::StreamExt;
use object_store::{MultipartUpload, ObjectStoreExt};
use tempfile::TempDir;

use crate::content::EXTENSION;
use crate::object::{in_table, unblock};

/// The number of bytes of a part of an upload.
const PART: usize = 8 << 20;

/// Writes rows to one new file, which appears when it is complete.
#[derive(Debug)]
pub(crate) struct CTableSink {
    config: FileSinkConfig,
}

impl CTableSink {
    /// Fails if the command asks for more than one new file.
    pub(crate) fn new(config: FileSinkConfig) -> Result<Self> {
        if !config.table_partition_cols.is_empty() {
            return not_impl_err!("write tables to a directory for each value of a column");
        }
        match config.insert_op {
            InsertOp::Append => Ok(Self { config }),
            other => not_impl_err!("write tables with `{other}`: expected `Insert Into`"),
        }
    }
}

/// A table that is being written in a temporary directory.
struct Writer {
    rows: TableAppender<CTable>,
    folder: TempDir,
}

impl Writer {
    fn path(folder: &TempDir) -> std::path::PathBuf {
        folder.path().join("table.b2z")
    }

    fn create(schema: &SchemaRef) -> blosc2::Result<Self> {
        let folder = tempfile::Builder::new().prefix("blosc2-").tempdir()?;
        let table = CTable::create(Self::path(&folder), &Schema::try_from(&**schema)?)?;
        Ok(Self { rows: table.into_appender()?, folder })
    }

    /// Completes the file.
    fn finish(self) -> blosc2::Result<(TempDir, File)> {
        self.rows.finish()?.finish()?;
        let file = File::open(Self::path(&self.folder))?;
        Ok((self.folder, file))
    }
}

#[async_trait]
impl DataSink for CTableSink {
    fn schema(&self) -> &SchemaRef {
        self.config.output_schema()
    }

    async fn write_all(
        &self,
        mut data: SendableRecordBatchStream,
        context: &Arc<TaskContext>,
    ) -> Result<u64> {
        let url = &self.config.table_paths[0];
        let is_file = self.config.file_output_mode.single_file_output(url);
        let path =
            if is_file { url.prefix().clone() } else { url.prefix().clone().join(new_name()) };
        let failed = |error: blosc2::Error| in_table(&path, error);
        let schema = Arc::clone(self.schema());
        let mut writer = unblock(move || Writer::create(&schema)).await?.map_err(failed)?;
        let mut count = 0;
        while let Some(batch) = data.next().await {
            let batch = batch?;
            count += batch.num_rows() as u64;
            let written = unblock(move || {
                writer.rows.append_record_batch(&batch)?;
                Ok(writer)
            });
            writer = written.await?.map_err(failed)?;
        }
        if count == 0 && !is_file {
            return Ok(0);
        }
        let (_folder, file) = unblock(move || writer.finish()).await?.map_err(failed)?;
        let store = context.runtime_env().object_store(&self.config.object_store_url)?;
        let mut upload = store.put_multipart(&path).await?;
        if let Err(error) = copy(file, upload.as_mut()).await {
            // The first error tells more.
            let _ = upload.abort().await;
            return Err(error);
        }
        Ok(count)
    }
}

/// Copies a file to an object.
async fn copy(mut file: File, upload: &mut dyn MultipartUpload) -> Result<()> {
    loop {
        let part;
        (file, part) = unblock(move || {
            let mut part = Vec::new();
            let read = (&mut file).take(PART as u64).read_to_end(&mut part);
            read.map(|_| (file, part))
        })
        .await??;
        if part.is_empty() {
            upload.complete().await?;
            return Ok(());
        }
        upload.put_part(part.into()).await?;
    }
}

/// The name of a new file. The files of a directory are in the order in which they were written.
fn new_name() -> String {
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    format!("{time:020}-{:08x}.{EXTENSION}", rand::random::<u32>())
}

impl DisplayAs for CTableSink {
    fn fmt_as(&self, _kind: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "CTableSink(location={})", self.config.table_paths[0])
    }
}
