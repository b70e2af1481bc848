//! Whether a frame is good, by a check of all of its content.

use std::path::Path;
use std::{fs, io};

use blosc2_format::chunk::{EXTENDED_HEADER_LEN, Header};
use blosc2_format::directory::chunk_name;
use blosc2_format::frame::{Layout, Offset, Outline};
use blosc2_format::{Finding, Limits, Part, ReadAt, Report, Severity};

use super::array_meta;
use super::store::read_directory;
use crate::array_shape::ArrayShape;
use crate::decoder::Decoder;
use crate::memory::{Target, resize};
use crate::{ChunkRef, DParams, Error, ErrorKind, Result};

const CHECK: &str = "check a chunk";

/// What a check of the content has shown.
#[derive(Debug)]
pub(crate) enum Verdict {
    Good,
    Bad(String),
    /// A part was not checked: it takes more than the limits allow, or nobody here can decode it.
    NotFullyChecked {
        why: String,
        is_limit: bool,
    },
}

/// Decides by a report of the Rust implementation. Chunks that it could not decode are tried by `decompress`, which
/// has C's codecs and those of the user; it is given their numbers.
///
/// # Errors
/// Those of `decompress` that say nothing of the chunk, such as [`ErrorKind::Io`] and [`ErrorKind::OutOfMemory`].
pub(crate) fn verdict(
    report: &Report,
    mut decompress: impl FnMut(u64) -> Result<()>,
) -> Result<Verdict> {
    let worst = report.findings.iter().max_by_key(|finding| finding.rule.severity);
    if let Some(bad) = worst.filter(|finding| finding.rule.severity == Severity::Error) {
        return Ok(Verdict::Bad(bad.to_string()));
    }
    let mut left = None;
    let of = |why: &Finding, is_limit| Verdict::NotFullyChecked { why: why.to_string(), is_limit };
    for finding in &report.findings {
        if finding.rule.id.ends_with(".limit") {
            left = Some(of(finding, true));
        }
        if !finding.rule.id.ends_with(".unsupported") {
            continue;
        }
        let Part::Chunk(number) = finding.part else {
            left.get_or_insert_with(|| of(finding, false));
            continue;
        };
        if let Err(error) = decompress(number) {
            match error.kind() {
                ErrorKind::Unsupported => drop(left.get_or_insert_with(|| of(finding, false))),
                ErrorKind::TooLarge => left = Some(of(finding, true)),
                ErrorKind::InvalidData => {
                    return Ok(Verdict::Bad(format!("chunk {number}: {error}")));
                }
                _ => return Err(error),
            }
        }
    }
    if report.omitted > 0 && left.is_none() {
        let why = format!("it has more than {} peculiarities", Report::MAX_FINDINGS);
        left = Some(Verdict::NotFullyChecked { why, is_limit: true });
    }
    Ok(left.unwrap_or(Verdict::Good))
}

/// Decompresses chunks of a frame that is not open, through C.
pub(crate) struct Chunks<'a> {
    source: Source<'a>,
    outline: Option<Outline>,
}

/// Where the chunks are.
#[derive(Clone, Copy)]
pub(crate) enum Source<'a> {
    Frame(&'a dyn ReadAt),
    Directory(&'a Path),
}

impl<'a> Chunks<'a> {
    pub(crate) fn new(source: Source<'a>) -> Self {
        Self { source, outline: None }
    }

    /// Decompresses a chunk.
    pub(crate) fn decompress(&mut self, number: u64) -> Result<()> {
        let outline = match &mut self.outline {
            Some(outline) => outline,
            none => none.insert(self.source.outline()?),
        };
        let place = outline.offset(number).and_then(Offset::place);
        // Of special values nothing is stored.
        let Some(place) = place else { return Ok(()) };
        let bytes = self.source.read(outline.header_len(), place);
        let bytes = bytes.map_err(|error| Error::of_io(CHECK, error))?;
        let chunk = ChunkRef::to_decompress(&bytes)?;
        let typesize = usize::try_from(outline.params().typesize).unwrap_or(0);
        let shape = ArrayShape::new(typesize, array_meta(outline))?;
        let mut decoder = Decoder::with_shape(&DParams::default(), Some(shape))?;
        let mut data = Vec::new();
        resize(&mut data, chunk.nbytes(), CHECK)?;
        decoder.decompress(&chunk, Target::of(&mut data))
    }
}

impl Source<'_> {
    fn outline(self) -> Result<Outline> {
        let limits = Limits::default();
        let outline = match self {
            Self::Frame(source) => Outline::read(source, Layout::Contiguous, &limits),
            Self::Directory(path) => read_directory(path, &limits),
        };
        outline.map_err(|error| Error::from_frame(CHECK, error))
    }

    /// The bytes of the chunk at a place.
    fn read(self, header_len: u64, place: u64) -> io::Result<Vec<u8>> {
        match self {
            Self::Frame(source) => {
                let at = header_len.saturating_add(place);
                let head = source.read_vec_at(at, EXTENDED_HEADER_LEN as u64)?;
                let header = Header::parse(&head).map_err(io::Error::other)?;
                source.read_vec_at(at, header.cbytes.into())
            }
            Self::Directory(path) => fs::read(path.join(chunk_name(place))),
        }
    }
}
