//! The bytes of a file.

use std::sync::Arc;

use blosc2_format::ReadAt;

/// The bytes of a file or of a part of it.
pub type Source = Arc<dyn ReadAt + Send + Sync>;
