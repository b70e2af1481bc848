//! The items of a file of any kind, and their dtype.

use anyhow::{Result, anyhow, bail};
use blosc2::Dtype;
use blosc2_format::file::Kind;

use crate::chunk::ChunkItems;
use crate::file::{Content, Source};
use crate::meta::shorten;
use crate::printable;
use crate::rust::{self, RustItems};
use crate::stream::{ArrayItems, Items, SChunkItems};

/// The dtype that a file stores as text. Fails if the text is no dtype, or one of another size than its items.
pub(crate) fn stored_dtype(text: &str, typesize: usize) -> Result<Dtype> {
    let named = shorten(&printable(text));
    let dtype = Dtype::parse(text).map_err(|error| {
        anyhow!("its dtype `{named}` is not supported: {error}; --dtype sets another one")
    })?;
    match dtype.size() {
        size if size == typesize => Ok(dtype),
        size => bail!(
            "its dtype `{named}` has {size} bytes, and its items have {typesize}; --dtype sets \
             another one"
        ),
    }
}

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
