//! Recovery of intact chunks from a damaged directory.

use std::io::ErrorKind;

use super::walk;
use super::{File, IntactChunk, Salvaged};
use crate::chunk::{self, EXTENDED_HEADER_LEN};
use crate::directory::{self, Folder};
use crate::frame::Layout;
use crate::{Error, Limits, ReadAt};

/// Finds the intact parts of a damaged directory. Files of the directory can be missing, truncated,
/// or contain wrong bytes.
///
/// Works like [`salvage`](super::salvage), with these differences:
///
/// - Chunk files of any size are read, at most one file at a time.
/// - Without an index, the chunks are in the order of their file numbers.
///
/// ```
/// use blosc2_format::chunk::Params;
/// use blosc2_format::directory::{INDEX, Memory};
/// use blosc2_format::frame::{Order, Writer, salvage_directory};
/// use blosc2_format::Limits;
///
/// let mut writer = Writer::new_directory(Memory::default(), Params::default(), &[])?;
/// writer.push(&[1; 800])?;
/// let mut files = writer.finish()?;
/// files.0.remove(INDEX);
/// let salvaged = salvage_directory(&files, &Limits::default())?;
/// assert_eq!(salvaged.order, Order::File);
/// assert_eq!(salvaged.chunks.len(), 1);
/// # Ok::<(), blosc2_format::Error>(())
/// ```
///
/// # Errors
/// - [`Error::Io`]: an operation of `folder` or reading a file fails (a missing index file is not
///   an error);
/// - [`Error::Limit`]: the index or the metalayers need more memory than [`Limits::metadata`], or the
///   index has more entries than [`Limits::chunks`].
pub fn salvage_directory<F: Folder>(folder: &F, limits: &Limits) -> Result<Salvaged, Error> {
    let mut numbers: Vec<u64> =
        folder.names()?.iter().filter_map(|name| directory::chunk_number(name)).collect();
    numbers.sort_unstable();
    let (mut chunks, mut first, mut damaged) = (Vec::new(), None, 0u64);
    for number in numbers {
        let file = folder.open(&directory::chunk_name(number))?;
        let size = file.size()?;
        let Some((header, whole)) = read(&file, number, limits)? else {
            damaged = damaged.saturating_add(size);
            continue;
        };
        damaged = damaged.saturating_add(size - u64::from(whole.len));
        match &mut first {
            None => first = Some((header, true)),
            Some((first, is_same)) => *is_same &= first.typesize == header.typesize,
        }
        chunks.push(whole);
    }
    let no_file: &[u8] = &[];
    let index: Box<dyn ReadAt + '_> = match folder.open(directory::INDEX) {
        Ok(index) => Box::new(index),
        Err(error) if error.kind() == ErrorKind::NotFound => Box::new(no_file),
        Err(error) => return Err(error.into()),
    };
    let mut file = File::read(&*index, index.size()?, Layout::Directory, Some(&chunks), limits)?;
    file.walked.first = first;
    let pieces = file.pieces(&chunks, |place| {
        let found = chunks.binary_search_by_key(&place, |chunk| chunk.at);
        Ok(found.ok().map(|number| chunks[number]))
    })?;
    let mut salvaged = file.finish(&chunks, pieces, damaged)?;
    salvaged.verify(&*index, limits, |chunk| {
        Ok(folder.open(&directory::chunk_name(chunk.at))?.read_vec_at(0, chunk.len.into())?)
    })?;
    Ok(salvaged)
}

/// Returns the chunk of a file if it is intact.
fn read<R: ReadAt>(
    file: &R,
    number: u64,
    limits: &Limits,
) -> Result<Option<(chunk::Header, IntactChunk)>, Error> {
    let size = file.size()?;
    let head = file.read_vec_at(0, size.min(EXTENDED_HEADER_LEN as u64))?;
    let Ok(header) = chunk::Header::parse(&head) else { return Ok(None) };
    let len = u64::from(header.cbytes);
    if len > size || !walk::is_data(&header) {
        return Ok(None);
    }
    let (report, _) = walk::check(&file.read_vec_at(0, len)?, limits);
    let whole = IntactChunk { at: number, len: header.cbytes, nbytes: header.nbytes };
    Ok(report.is_good().then_some((header, whole)))
}
