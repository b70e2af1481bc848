//! Reports of the progress of long operations to a closure of the program.

use std::fmt;
use std::sync::Arc;

use crate::closures::BoxError;
use crate::{Reason, Result};

type Report = dyn Fn(u64, u64) -> std::result::Result<(), BoxError> + Send + Sync;

/// The closure that receives the progress after each chunk of a new array or file, if there is a closure.
#[derive(Clone, Default)]
pub(crate) struct Progress(Option<Arc<Report>>);

impl Progress {
    pub(crate) fn new<E: Into<BoxError>>(
        report: impl Fn(u64, u64) -> std::result::Result<(), E> + Send + Sync + 'static,
    ) -> Self {
        Self(Some(Arc::new(move |done, total| report(done, total).map_err(Into::into))))
    }

    /// Whether there is a closure.
    pub(crate) fn is_set(&self) -> bool {
        self.0.is_some()
    }

    /// Reports that `done` of `total` chunks are complete.
    pub(crate) fn report(&self, done: u64, total: u64) -> Result<(), Reason> {
        let Some(report) = &self.0 else { return Ok(()) };
        report(done, total).map_err(|error| {
            let detail = format!("the closure that reports progress failed: {error}");
            Reason::from_closure(detail, Some(error))
        })
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Progress").field(&self.is_set()).finish()
    }
}
