//! The rows of a result.

use anyhow::Result;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::execution::SendableRecordBatchStream;
use futures::TryStreamExt;

use crate::interrupt::Runtime;
use crate::message::failed;
use crate::progress::Progress;

/// The rows of a result, in batches.
pub(crate) struct Batches<'a> {
    stream: SendableRecordBatchStream,
    runtime: &'a Runtime,
    progress: Progress,
}

impl<'a> Batches<'a> {
    pub(crate) fn new(
        stream: SendableRecordBatchStream,
        runtime: &'a Runtime,
        progress: Progress,
    ) -> Self {
        Self { stream, runtime, progress }
    }

    pub(crate) fn schema(&self) -> SchemaRef {
        self.stream.schema()
    }

    /// Waits for the next batch.
    pub(crate) fn next(&mut self) -> Result<Option<RecordBatch>> {
        let next = self.stream.try_next();
        let batch = self.runtime.wait(async { next.await.map_err(failed) })?;
        match &batch {
            Some(batch) => self.progress.add(batch.num_rows()),
            None => self.progress.end(),
        }
        Ok(batch)
    }

    /// Removes the sign of progress.
    pub(crate) fn end(&self) {
        self.progress.end();
    }
}
