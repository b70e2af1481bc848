//! Memory, threads and progress.

pub(crate) mod helpers;
pub(crate) mod memory;
pub(crate) mod progress;
pub(crate) mod reuse;
