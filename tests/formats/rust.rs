//! `blosc2-format` as a reader and a checker of files.

use std::path::Path;

use blosc2_format::file::{self, File};
use blosc2_format::{Error, Limits, Options, Report};

use crate::content::Content;

/// Reads a file with `blosc2-format`.
pub(crate) fn read(path: &Path, limits: &Limits) -> Result<Content, Error> {
    read_all(File::open(path, limits)?)
}

fn read_all(mut file: File<'_>) -> Result<Content, Error> {
    let info = file.info().clone();
    let mut chunks = Vec::new();
    for number in 0..info.nchunks {
        let mut data = Vec::new();
        file.decode_chunk(number, &mut data)?;
        chunks.push(data);
    }
    let mut vlmeta = Vec::new();
    for name in info.vlmetalayers {
        let content = file.vlmetalayer(&name)?.expect("a metalayer that is listed");
        vlmeta.push((name, content));
    }
    let whole: Option<Vec<_>> =
        file.geometry().map(|array| array.shape().iter().map(|&size| 0..size).collect());
    let array = whole.map(|whole| file.read_box(&whole)).transpose()?;
    let meta = info.metalayers.into_iter().map(|layer| (layer.name, layer.content)).collect();
    Ok(Content { chunks, array, meta, vlmeta })
}

/// Checks a file, including all blocks.
pub(crate) fn check(path: &Path, limits: &Limits) -> Result<Report, Error> {
    let options = Options { content: true, limits: *limits, ..Options::default() };
    Ok(file::check_path(path, &options)?.1)
}

/// Checks a frame in memory in the same way.
pub(crate) fn check_bytes(bytes: &[u8], limits: &Limits) -> Report {
    let options = Options { content: true, limits: *limits, ..Options::default() };
    file::check(bytes, &options).unwrap().1
}
