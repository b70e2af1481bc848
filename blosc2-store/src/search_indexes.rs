//! Python's search indexes of arrays in a store, which copies of the store do not have; see [`SEARCH_INDEXES`].

use std::fs::File;
use std::io::{self, Seek};
use std::path::Path;

use blosc2::super_chunk::SEARCH_INDEXES;
use blosc2::{OpenOptions, Result, SChunk};

/// Removes the search indexes from a new copy of a member of a store. A member that cannot be opened has none.
pub(crate) fn remove(name: &str, copy: &File) -> Result<()> {
    let copy = copy.try_clone()?;
    let Some(mut schunk) = open(name, OpenOptions::new().write(true), copy) else { return Ok(()) };
    for name in SEARCH_INDEXES {
        if has(&schunk, name) {
            schunk.vlmeta_mut().remove(name)?;
        }
    }
    Ok(())
}

/// Returns a copy without search indexes of a member of a store, in a temporary file in `folder`. Returns `None` if the
/// member has none.
pub(crate) fn copy_without(name: &str, member: &File, folder: &Path) -> Result<Option<File>> {
    let schunk = open(name, OpenOptions::new(), member.try_clone()?);
    if !schunk.is_some_and(|schunk| SEARCH_INDEXES.into_iter().any(|name| has(&schunk, name))) {
        return Ok(None);
    }
    let mut copy = tempfile::tempfile_in(folder)?;
    io::copy(&mut &*member, &mut copy)?;
    remove(name, &copy)?;
    copy.rewind()?;
    Ok(Some(copy))
}

/// Only arrays have search indexes.
fn open(name: &str, options: OpenOptions, file: File) -> Option<SChunk> {
    name.ends_with(".b2nd").then(|| options.open_storage(file).ok())?
}

fn has(schunk: &SChunk, name: &str) -> bool {
    schunk.vlmeta().contains(name)
}
