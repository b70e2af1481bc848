//! The check of a file of any kind.

use std::path::Path;

use super::{Kind, recognise, recognise_path};
use crate::directory::{self, Disk};
use crate::report::{Checker, Options, Part, Report, Rule, UNVERIFIED};
use crate::{Error, Limit, Limits, ReadAt, chunk, early, frame, packed};

pub(super) const KIND: Rule = Rule::error("file.kind", "kind of file", "Kinds of files");
const LIMIT: Rule = Rule::warning("file.limit", "unchecked content", "Kinds of files");

pub(crate) const RULES: &[&Rule] = &[&KIND, &LIMIT, &UNVERIFIED];

/// Detects the kind of the file or directory at `path` and checks it.
///
/// Returns the kind and the report. If no format matches, the kind is `None` and the report
/// contains a finding. To decode every block as well, set [`Options::content`].
///
/// # Errors
/// [`Error::Io`]: the file cannot be read.
pub fn check_path(
    path: impl AsRef<Path>,
    options: &Options,
) -> Result<(Option<Kind>, Report), Error> {
    let path = path.as_ref();
    if !path.is_dir() {
        return check(&std::fs::File::open(path)?, options);
    }
    match recognise_path(path)? {
        Some(kind) => Ok((Some(kind), directory::check(&Disk(path.to_owned()), options)?)),
        None => {
            let mut report = Report::new();
            let found = "a directory without the file `chunks.b2frame`";
            Checker::new(&mut report).found(&KIND, 0, 0, "one of the formats", found);
            Ok((None, report))
        }
    }
}

/// Detects the kind of the file in `source` and checks it.
///
/// Returns the kind and the report. If no format matches, the kind is `None` and the report
/// contains a finding. To decode every block as well, set [`Options::content`].
///
/// # Errors
/// [`Error::Io`]: reading from `source` fails.
pub fn check<R: ReadAt + ?Sized>(
    source: &R,
    options: &Options,
) -> Result<(Option<Kind>, Report), Error> {
    let kind = recognise(source)?;
    let mut report = Report::new();
    let mut checker = Checker::new(&mut report);
    match kind {
        Some(Kind::Chunk) => check_chunk(source, options, &mut checker)?,
        Some(Kind::Frame) => frame::check_into(source, options, &mut checker)?,
        Some(Kind::EarlyFrame | Kind::FrameVersion1) => {
            *checker.report() = early::check(source, options)?
        }
        Some(Kind::Packed) => *checker.report() = packed::check(source, options)?,
        Some(Kind::Directory) | None => {
            let size = source.size()?;
            let start = source.read_vec_at(0, size.min(16))?;
            let found = format_args!("{size} bytes that start with {start:02x?}").to_string();
            checker.found(&KIND, 0, start.len() as u64, "one of the formats", found);
        }
    }
    // Only frames can have checksums.
    if !matches!(kind, Some(Kind::Frame) | None) {
        frame::check::require_checksums(options, "a kind of file that has none", &mut checker);
        checker.unverified();
    }
    Ok((kind, report))
}

/// Checks a chunk, which must fit into memory completely.
fn check_chunk<R: ReadAt + ?Sized>(
    source: &R,
    options: &Options,
    checker: &mut Checker<'_>,
) -> Result<(), Error> {
    let size = source.size()?;
    if let Err(error) =
        Limits::allow(Limit::Memory, "bytes of a chunk", size, options.limits.memory)
    {
        checker.found(&LIMIT, 0, size, "at most what the limits allow", error);
        return Ok(());
    }
    let bytes = source.read_vec_at(0, size)?;
    let mut within = checker.within(Part::Chunk(0), 0);
    chunk::check(&bytes, options, &mut within);
    if options.map {
        within.region(Part::Chunk(0), 0, size);
    }
    Ok(())
}
