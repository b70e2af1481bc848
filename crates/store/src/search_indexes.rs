//! Python's search indexes of arrays in a store, which copies of the store do not have; see [`SEARCH_INDEXES`].

use std::fs::File;
use std::io::{self, Seek};
use std::path::Path;

use crate::blosc2::super_chunk::SEARCH_INDEXES;
use crate::blosc2::{ErrorKind, OpenOptions, Result, SChunk, Target};

/// Removes the search indexes from a new copy of a member of a store, which is opened with these options. A member that
/// cannot be opened has none.
pub(crate) fn remove(name: &str, copy: &File, options: &OpenOptions) -> Result<()> {
    let options = options.clone().write(true);
    let Some(mut schunk) = open(name, &options, copy.try_clone()?)? else { return Ok(()) };
    for name in SEARCH_INDEXES {
        if has(&schunk, name) {
            schunk.vlmeta_mut().remove(name)?;
        }
    }
    Ok(())
}

/// Returns a copy without search indexes of a member of a store, in a temporary file in `folder`. Returns `None` if the
/// member has none.
pub(crate) fn copy_without(
    name: &str,
    member: &File,
    folder: &Path,
    options: &OpenOptions,
) -> Result<Option<File>> {
    let schunk = open(name, options, member.try_clone()?)?;
    if !schunk.is_some_and(|schunk| SEARCH_INDEXES.into_iter().any(|name| has(&schunk, name))) {
        return Ok(None);
    }
    let mut copy = tempfile::tempfile_in(folder)?;
    io::copy(&mut &*member, &mut copy)?;
    remove(name, &copy, options)?;
    copy.rewind()?;
    Ok(Some(copy))
}

/// Only arrays have search indexes. An array that exceeds the limits may have some.
fn open(name: &str, options: &OpenOptions, file: File) -> Result<Option<SChunk>> {
    if !name.ends_with(".b2nd") {
        return Ok(None);
    }
    match options.open(Target::storage(file)) {
        Err(error) if error.kind() == ErrorKind::TooLarge => Err(error),
        opened => Ok(opened.ok()),
    }
}

fn has(schunk: &SChunk, name: &str) -> bool {
    schunk.vlmeta().contains(name)
}
