//! The items of a file of any kind, and their dtype.

use anyhow::{Result, anyhow, bail};
use blosc2::Dtype;
use blosc2_format::file::Kind;

use crate::chunk::ChunkItems;
use crate::file::{Content, Source};
use crate::meta::shorten;
use crate::npy::NpyItems;
use crate::printable;
use crate::rust::{self, RustItems};
use crate::stream::Items;

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

/// Opens the items of a Blosc2 file or of an npy file. C-Blosc2 reads the items if it opens the file.
pub(crate) fn open<'a>(source: Source<'a>) -> Result<Box<dyn Items + 'a>> {
    if let Some(items) = NpyItems::open(source)? {
        return Ok(Box::new(items));
    }
    Ok(match rust::needed(source) {
        None => Content::open_data(source)?.into_items(),
        Some(Kind::Chunk) => Box::new(ChunkItems::open(source)?),
        Some(_) => Box::new(RustItems::new(source, rust::open_data(source)?)?),
    })
}
