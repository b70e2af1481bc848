//! The items of a file of any kind, and their dtype.

use anyhow::Result;
use blosc2_format::file::Kind;

use crate::chunk::ChunkItems;
use crate::file::{Content, Source};
use crate::rust::{self, RustItems};
use crate::stream::{ArrayItems, Items, SChunkItems};

/// A file whose items can be read, by C-Blosc2 if it opens the file.
#[expect(clippy::large_enum_variant, reason = "there is one at a time")]
pub(crate) enum Data<'a> {
    Content(Content),
    Chunk(ChunkItems),
    /// The items, and the dtype of an array.
    Rust(RustItems<'a>, Option<String>),
}

impl<'a> Data<'a> {
    pub(crate) fn open(source: Source<'a>) -> Result<Self> {
        match rust::needed(source) {
            None => Ok(Self::Content(Content::open_data(source)?)),
            Some(Kind::Chunk) => Ok(Self::Chunk(ChunkItems::open(source)?)),
            Some(_) => {
                let file = rust::open_data(source)?;
                let dtype = file.meta().and_then(|meta| meta.dtype.clone());
                Ok(Self::Rust(RustItems::new(source, file)?, dtype))
            }
        }
    }

    /// The dtype as text; `None` if the file does not store one.
    pub(crate) fn dtype(&self) -> Option<&str> {
        match self {
            Self::Content(Content::Array(array)) => array.dtype_str(),
            Self::Rust(_, dtype) => dtype.as_deref(),
            _ => None,
        }
    }

    /// Calls `work` with the items.
    pub(crate) fn with<R>(&self, work: impl FnOnce(&dyn Items) -> R) -> R {
        match self {
            Self::Content(Content::Array(array)) => work(&ArrayItems(array)),
            Self::Content(Content::SChunk(schunk)) => work(&SChunkItems::new(schunk)),
            Self::Chunk(items) => work(items),
            Self::Rust(items, _) => work(items),
        }
    }
}
