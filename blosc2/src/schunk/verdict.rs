//! Checks the complete content of a frame and decides whether the frame is valid.

use std::path::Path;

use blosc2_format::directory::{self, Disk};
use blosc2_format::frame::{self, Frame};
use blosc2_format::{
    Error as FormatError, Finding, Limits, Options, Part, ReadAt, Report, Severity,
};

use crate::chunk::array_shape::ArrayShape;
use crate::chunk::decoder::Decoder;
use crate::gate::Gate;
use crate::schunk::array_meta;
use crate::support::memory::{Target, resize};
use crate::{ChunkRef, DParams, Doing, ErrorKind, Reason, Result};

const CHECK: &str = "check a chunk";

/// The result of a check of the content.
#[derive(Debug)]
pub(super) enum Verdict {
    Good,
    Bad(String),
    /// A part was not checked, because it exceeds the limits ([`ErrorKind::TooLarge`]) or this build cannot decompress
    /// it ([`ErrorKind::Unsupported`]).
    NotFullyChecked(ErrorKind, String),
}

impl Verdict {
    /// Returns the fault, or `None` if the content is valid.
    ///
    /// # Errors
    /// The content was not fully checked.
    pub(super) fn fault(self) -> Result<Option<String>, Reason> {
        match self {
            Self::Good => Ok(None),
            Self::Bad(why) => Ok(Some(why)),
            Self::NotFullyChecked(kind, why) => {
                let detail = format!("its content was not fully checked: {why}");
                Err(Reason::new(kind, detail))
            }
        }
    }
}

/// Decides from a report of the Rust implementation. If that implementation could not decompress a chunk, the index of
/// the chunk is passed to `decompress`, which also supports the codecs of C and user-defined codecs.
///
/// # Errors
/// The errors of `decompress` that do not mean that the chunk is invalid, such as [`ErrorKind::Io`] and
/// [`ErrorKind::OutOfMemory`].
pub(super) fn verdict(
    report: &Report,
    mut decompress: impl FnMut(u64) -> Result<()>,
) -> Result<Verdict> {
    let worst = report.findings.iter().max_by_key(|finding| finding.rule.severity);
    if let Some(bad) = worst.filter(|finding| finding.rule.severity == Severity::Error) {
        return Ok(Verdict::Bad(bad.to_string()));
    }
    let mut left = None;
    let of = |why: &Finding, kind| Verdict::NotFullyChecked(kind, why.to_string());
    for finding in &report.findings {
        if finding.rule.id.ends_with(".limit") {
            left = Some(of(finding, ErrorKind::TooLarge));
        }
        if !finding.rule.id.ends_with(".unsupported") {
            continue;
        }
        let Part::Chunk(number) = finding.part else {
            left.get_or_insert_with(|| of(finding, ErrorKind::Unsupported));
            continue;
        };
        if let Err(error) = decompress(number) {
            match error.kind() {
                ErrorKind::Unsupported => {
                    left.get_or_insert_with(|| of(finding, ErrorKind::Unsupported));
                }
                ErrorKind::TooLarge => left = Some(of(finding, ErrorKind::TooLarge)),
                ErrorKind::InvalidData => {
                    return Ok(Verdict::Bad(format!("chunk {number}: {error}")));
                }
                _ => return Err(error),
            }
        }
    }
    if report.omitted > 0 && left.is_none() {
        let why = format!("it has more than {} findings", Report::MAX_FINDINGS);
        left = Some(Verdict::NotFullyChecked(ErrorKind::TooLarge, why));
    }
    Ok(left.unwrap_or(Verdict::Good))
}

/// Checks a contiguous frame without a handle. `gate` registers the calls of user-defined codecs; see
/// [`Gate::calling`].
///
/// # Errors
/// The errors of [`verdict`] and of `source`.
pub(super) fn of_frame(source: &dyn ReadAt, gate: Option<&Gate>) -> Result<Verdict> {
    let limits = Limits::default();
    of(frame::check(source, &all()), || Frame::open(source, &limits), gate)
}

/// Checks a directory without a handle. `gate` registers the calls of user-defined codecs; see [`Gate::calling`].
///
/// # Errors
/// The errors of [`verdict`] and of the directory.
pub(super) fn of_directory(path: &Path, gate: Option<&Gate>) -> Result<Verdict> {
    let (disk, limits) = (Disk(path.to_owned()), Limits::default());
    let report = directory::check(&disk, &all());
    of(report, || Frame::open_directory(disk.clone(), &limits), gate)
}

fn of<R: ReadAt>(
    report: std::result::Result<Report, FormatError>,
    open: impl Fn() -> std::result::Result<Frame<R>, FormatError>,
    gate: Option<&Gate>,
) -> Result<Verdict> {
    let mut frame = None;
    let mut report = report.doing(CHECK)?;
    report.accept_changed_chunks();
    verdict(&report, |number| {
        let frame = match &mut frame {
            Some(frame) => frame,
            none => none.insert(open().doing(CHECK)?),
        };
        let bytes = frame.chunk(number).doing(CHECK)?;
        let chunk = ChunkRef::to_decompress(&bytes)?;
        let typesize = usize::try_from(frame.header().typesize).unwrap_or(0);
        let shape = ArrayShape::new(typesize, array_meta(frame.metalayers()))?;
        let mut decoder = Decoder::with_shape(&DParams::default(), Some(shape))?;
        decoder.set_place(usize::try_from(number).unwrap_or(usize::MAX), None);
        let mut data = Vec::new();
        resize(&mut data, chunk.nbytes()).doing(CHECK)?;
        let _calling = gate.map(Gate::calling);
        decoder.decompress(&chunk, Target::of(&mut data)).map(|_| ())
    })
}

/// Options to check everything.
fn all() -> Options {
    Options { content: true, ..Options::default() }
}
