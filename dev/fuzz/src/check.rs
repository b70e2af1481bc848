//! The check of a file and its readers.

use blosc2_format::directory::{self, Memory};
use blosc2_format::file::{self, File};
use blosc2_format::frame::{self, Frame};
use blosc2_format::{Error, ReadAt, Report};

use crate::{LIMITS, folder, options, readable};

/// The content of a file or folder.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Content {
    /// The data of each chunk.
    pub(crate) chunks: Vec<Vec<u8>>,
    /// The items of an array.
    pub(crate) array: Option<Vec<u8>>,
    /// The names and contents of the fixed-length metalayers.
    pub(crate) meta: Vec<(String, Vec<u8>)>,
    /// The names and contents of the variable-length metalayers.
    pub(crate) vlmeta: Vec<(String, Vec<u8>)>,
}

/// Checks a file or a folder, and reads it. What has no fault can be read, and the map of a report is inside the file.
pub fn check(input: &[u8]) {
    good_content(input);
    match folder::unpack(input) {
        Some(files) => drop(frame::salvage_directory(&Memory(files), &LIMITS)),
        None => drop(frame::salvage(input, &LIMITS)),
    }
}

/// Returns the content of a file or folder without faults; `None` if it has faults, or exceeds the limits.
pub(crate) fn good_content(input: &[u8]) -> Option<Content> {
    let (report, content, nbytes) = match folder::unpack(input) {
        Some(files) => {
            let folder = Memory(files);
            let report = directory::check(&folder, &options()).expect("memory can be read");
            let opened = Frame::open_directory(folder, &LIMITS);
            let nbytes = opened.as_ref().ok().map(|frame| frame.header().nbytes);
            (report, opened.and_then(read_frame), nbytes)
        }
        None => {
            let (kind, report) = file::check(input, &options()).expect("memory can be read");
            assert!(kind.is_some() || !report.is_good(), "a file of no kind has no fault");
            assert_inside(&report, input.len());
            let opened = File::from_reader(input, &LIMITS);
            let nbytes = opened.as_ref().ok().map(|file| file.info().nbytes);
            (report, opened.and_then(read_file), nbytes)
        }
    };
    if !report.is_good() || !report.is_complete() {
        return None;
    }
    let content = readable(content)?;
    let total: usize = content.chunks.iter().map(Vec::len).sum();
    assert_eq!(Some(total as u64), nbytes, "the size of all chunks");
    Some(content)
}

/// Asserts that the regions of a report are in the file.
fn assert_inside(report: &Report, len: usize) {
    for region in &report.regions {
        let end = region.offset.checked_add(region.len);
        assert!(end.is_some_and(|end| end <= len as u64), "{region:?} of {len} bytes");
    }
}

/// Adds the bytes of a part to the total, which is limited as that of a check is.
fn within(total: &mut u64, more: usize) -> Result<(), Error> {
    *total += more as u64;
    match *total <= LIMITS.total_bytes {
        true => Ok(()),
        false => Err(Error::Unsupported("more bytes than are read here".into())),
    }
}

fn read_file(mut file: File<'_>) -> Result<Content, Error> {
    let info = file.info().clone();
    let (mut chunks, mut outcome, mut total) = (Vec::new(), Ok(()), 0);
    for number in 0..info.nchunks {
        let mut data = Vec::new();
        match file.decode_chunk(number, &mut data) {
            Ok(()) => within(&mut total, data.len())?,
            // The chunks after it may be intact.
            Err(error) => outcome = Err(error),
        }
        chunks.push(data);
    }
    let mut vlmeta = Vec::new();
    for name in info.vlmetalayers {
        match file.vlmetalayer(&name) {
            Ok(content) => vlmeta.push((name, content.expect("a metalayer that is listed"))),
            Err(error) => outcome = Err(error),
        }
    }
    let whole: Option<Vec<_>> =
        file.geometry().map(|array| array.shape().iter().map(|&size| 0..size).collect());
    let array = whole.map(|whole| file.read_box(&whole)).transpose()?;
    let meta = info.metalayers.into_iter().map(|layer| (layer.name, layer.content)).collect();
    outcome.map(|()| Content { chunks, array, meta, vlmeta })
}

fn read_frame<R: ReadAt>(mut frame: Frame<R>) -> Result<Content, Error> {
    let (mut chunks, mut total) = (Vec::new(), 0);
    for number in 0..frame.nchunks() {
        let mut data = Vec::new();
        frame.decode_chunk(number, &mut data)?;
        within(&mut total, data.len())?;
        chunks.push(data);
    }
    let names: Vec<String> = frame.vlmetalayers().map(str::to_owned).collect();
    let layer = |name: String| {
        let content = frame.vlmetalayer(&name)?.expect("a metalayer that is listed");
        Ok((name, content))
    };
    let vlmeta = names.into_iter().map(layer).collect::<Result<_, Error>>()?;
    let layers = frame.metalayers().iter();
    let meta = layers.map(|layer| (layer.name.clone(), layer.content.clone())).collect();
    Ok(Content { chunks, array: None, meta, vlmeta })
}
