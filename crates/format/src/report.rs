//! The report of a check: violated rules with their positions, and a map of the file.

use std::fmt;
use std::sync::Arc;

/// The severity of a finding, from the lowest to the highest.
///
/// ```
/// use blosc2_format::Severity;
///
/// assert!(Severity::Note < Severity::Warning && Severity::Warning < Severity::Error);
/// assert_eq!(Severity::Error.to_string(), "error");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Information about valid but unusual bytes, a possible cause of another finding, or a block
    /// that needs an unsupported codec or filter.
    Note,
    /// No data is lost. The writer had a fault, or some readers can fail on these bytes or read
    /// wrong data. This severity also marks a part that was not checked, for example because it
    /// exceeds the [limits](crate::Limits).
    Warning,
    /// The bytes violate the format: some or all of the data can be lost or wrong.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// A rule of a format. Each finding of a check refers to one rule.
///
/// ```
/// let rule = blosc2_format::rules().find(|rule| rule.id == "chunk.version").unwrap();
/// println!("{}: see the section {} of FORMATS.md", rule.id, rule.section);
/// ```
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rule {
    /// The identifier, for example `chunk.version`. It is stable across versions of this crate.
    pub id: &'static str,
    /// The severity of a violation.
    pub severity: Severity,
    /// The field or section that the rule is about.
    pub what: &'static str,
    /// The heading in `FORMATS.md` that describes the rule.
    pub section: &'static str,
}

impl Rule {
    /// Creates a rule. Other crates use this function for formats that contain the formats of this
    /// crate.
    ///
    /// ```
    /// use blosc2_format::{Finding, Part, Report, Rule, Severity};
    ///
    /// static MISSING: Rule = Rule::new("store.missing", Severity::Error, "required file", "Stores");
    ///
    /// let mut report = Report::new();
    /// report.add(Finding::new(&MISSING, Part::Whole, 0, 0, "a file `embed.b2e`", "none"));
    /// assert!(!report.is_good());
    /// ```
    pub const fn new(
        id: &'static str,
        severity: Severity,
        what: &'static str,
        section: &'static str,
    ) -> Self {
        Self { id, severity, what, section }
    }

    pub(crate) const fn error(id: &'static str, what: &'static str, section: &'static str) -> Self {
        Self { id, severity: Severity::Error, what, section }
    }

    pub(crate) const fn warning(
        id: &'static str,
        what: &'static str,
        section: &'static str,
    ) -> Self {
        Self { id, severity: Severity::Warning, what, section }
    }

    pub(crate) const fn note(id: &'static str, what: &'static str, section: &'static str) -> Self {
        Self { id, severity: Severity::Note, what, section }
    }
}

pub(crate) static UNVERIFIED: Rule = Rule::note("file.unverified", "checksums", "Frame: checksums");

/// A part of a file.
///
/// ```
/// use blosc2_format::Part;
///
/// assert_eq!(Part::Chunk(3).to_string(), "chunk 3");
/// assert_eq!(Part::Metalayer("b2nd".into()).to_string(), "metalayer `b2nd`");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Part {
    /// The complete file, or no specific part.
    Whole,
    /// The header without its metalayers.
    Header,
    /// A metalayer in the header.
    Metalayer(String),
    /// A chunk, by its index. The chunk of a file with a [single chunk](crate::file::Kind::Chunk)
    /// has the index 0.
    Chunk(u64),
    /// The index: a chunk that contains the offsets of the other chunks. In a [packed
    /// super-chunk](crate::packed) (a legacy format), a table with the positions of the chunks.
    Index,
    /// A variable-length metalayer, in the trailer.
    VlMetalayer(String),
    /// The trailer without its metalayers.
    Trailer,
    /// An ancillary chunk of a [packed super-chunk](crate::packed) (a legacy format), identified by
    /// its [name](crate::packed::Ancillary::name). Ancillary chunks contain metadata.
    Ancillary(&'static str),
    /// Bytes that belong to no other part.
    Gap,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole => f.write_str("file"),
            Self::Header => f.write_str("header"),
            // The names come from the file.
            Self::Metalayer(name) => write!(f, "metalayer `{}`", name.escape_default()),
            Self::Chunk(number) => write!(f, "chunk {number}"),
            Self::Index => f.write_str("index"),
            Self::VlMetalayer(name) => {
                write!(f, "variable-length metalayer `{}`", name.escape_default())
            }
            Self::Trailer => f.write_str("trailer"),
            Self::Ancillary(name) => write!(f, "{name} chunk"),
            Self::Gap => f.write_str("gap"),
        }
    }
}

/// An entry of a report: a range of bytes that violates a rule, is unusual, or was not checked.
///
/// The [severity](Rule::severity) of the [`rule`](Self::rule) states whether the finding affects
/// the data.
///
/// ```
/// use blosc2_format::{Options, frame};
///
/// let report = frame::check(b"no frame".as_slice(), &Options::default())?;
/// let finding = &report.findings[0];
/// assert_eq!(finding.rule.id, "frame.magic");
/// println!("byte {}: expected {}, found {}", finding.offset, finding.expected, finding.found);
/// # Ok::<(), blosc2_format::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The rule that the finding is about.
    pub rule: &'static Rule,
    /// The name of the file within a directory; `None` if there is only one file.
    pub file: Option<Arc<str>>,
    /// The part of the file.
    pub part: Part,
    /// The position of the bytes, from the start of the file.
    pub offset: u64,
    /// The number of bytes that the finding is about; 0 if required bytes are missing at this
    /// position.
    pub len: u64,
    /// The content that the format requires, or the usual content.
    pub expected: String,
    /// The content that the check found.
    pub found: String,
}

impl Finding {
    /// Creates a finding about `len` bytes at `offset`, without the name of a file.
    pub fn new(
        rule: &'static Rule,
        part: Part,
        offset: u64,
        len: u64,
        expected: impl ToString,
        found: impl ToString,
    ) -> Self {
        let (expected, found) = (expected.to_string(), found.to_string());
        Self { rule, file: None, part, offset, len, expected, found }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rule { id, severity, what, .. } = self.rule;
        write!(f, "{severity} [{id}] ")?;
        if let Some(file) = &self.file {
            write!(f, "{}: ", file.escape_default())?;
        }
        write!(
            f,
            "byte {} (+{}), {}: {what}: expected {}, found {}",
            self.offset, self.len, self.part, self.expected, self.found
        )
    }
}

/// An entry of the [map of a file](Report::regions): a range of bytes, and the part that the range
/// belongs to.
///
/// ```
/// use blosc2_format::{Options, Part, chunk, frame};
///
/// let out = std::io::Cursor::new(Vec::new());
/// let bytes = frame::Writer::new(out, chunk::Params::default(), &[])?.finish()?.into_inner();
/// let report = frame::check(&bytes, &Options { map: true, ..Options::default() })?;
/// assert!(report.regions.iter().any(|region| region.part == Part::Header && region.offset == 0));
/// # Ok::<(), blosc2_format::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    /// The name of the file within a directory; `None` if there is only one file.
    pub file: Option<Arc<str>>,
    /// The part that the bytes belong to.
    pub part: Part,
    /// The position of the first byte, from the start of the file.
    pub offset: u64,
    /// The number of bytes.
    pub len: u64,
}

/// The result of a check.
///
/// ```
/// use blosc2_format::{Options, Severity, frame};
///
/// let report = frame::check(b"no frame".as_slice(), &Options::default())?;
/// assert!(!report.is_good());
/// assert_eq!(report.worst(), Some(Severity::Error));
/// # Ok::<(), blosc2_format::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// The findings, in the order in which the check found them.
    pub findings: Vec<Finding>,
    /// The map of the file: for each range of bytes, the part that the range belongs to. Empty if
    /// [`Options::map`] is not set.
    pub regions: Vec<Region>,
    /// The number of findings that the report does not contain, because it already contained
    /// [`MAX_FINDINGS`](Self::MAX_FINDINGS) findings. If the check found an error, the report
    /// contains at least one error.
    pub omitted: u64,
    /// The number of checked files without checksums: frames, single chunks, or legacy files. If a
    /// byte of such a file is changed, the file can follow the format and decode to other data. The
    /// check does not detect this. [`note_unverified`](Self::note_unverified) adds a note.
    pub unverified: u64,
    errors: usize,
    /// Whether only the first error is stored.
    is_brief: bool,
}

impl Report {
    /// If the checksums are outdated, removes the findings about chunks that differ from their
    /// checksums.
    ///
    /// Checksums are outdated if a program that does not write checksums has changed the frame. A
    /// chunk that differs from an outdated checksum is not necessarily damaged.
    pub fn accept_changed_chunks(&mut self) {
        let has = |id| self.findings.iter().any(|finding| finding.rule.id == id);
        if has("frame.checksums.outdated") {
            self.findings.retain(|finding| finding.rule.id != "frame.checksums.chunk");
        }
    }

    /// The maximum number of findings in a report: 65,536. [`omitted`](Self::omitted) counts
    /// further findings. Exception: the first error is added even to a full report.
    pub const MAX_FINDINGS: usize = 1 << 16;

    /// Returns a report without findings.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a report that stores only the first error.
    pub(crate) fn brief() -> Self {
        Self { is_brief: true, ..Self::default() }
    }

    /// Returns the highest severity among the findings, or `None` without findings.
    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.rule.severity).max()
    }

    /// Returns `true` if the report contains no error. It can contain warnings and notes.
    pub fn is_good(&self) -> bool {
        self.worst() != Some(Severity::Error)
    }

    /// Returns whether the check examined everything that was requested.
    ///
    /// Returns `false` in three cases:
    ///
    /// - the report [omits](Self::omitted) findings;
    /// - a part exceeds the [limits](crate::Limits) (a finding with a rule `*.limit`);
    /// - a part needs an unsupported feature (a finding with a rule `*.unsupported`).
    pub fn is_complete(&self) -> bool {
        let is_left_out = |id: &str| id.ends_with(".limit") || id.ends_with(".unsupported");
        self.omitted == 0 && !self.findings.iter().any(|finding| is_left_out(finding.rule.id))
    }

    /// Adds a finding. A full report does not store the finding and only counts it in
    /// [`omitted`](Self::omitted). Exception: the first error is always stored.
    pub fn add(&mut self, finding: Finding) {
        let is_error = finding.rule.severity == Severity::Error;
        if self.has_room(is_error) {
            self.findings.push(finding);
        }
    }

    /// Adds a note (`file.unverified`) if there are [files without checksums](Self::unverified). A check
    /// does not add this note, because one note is sufficient for a report on many files.
    pub fn note_unverified(&mut self) {
        let files = match self.unverified {
            0 => return,
            1 => "1 file".to_owned(),
            count => format!("{count} files"),
        };
        let found = format!(
            "{files} without checksums, in which a changed byte can decode to other data without a finding"
        );
        self.add(Finding::new(&UNVERIFIED, Part::Whole, 0, 0, "checksums of all data", found));
    }

    /// Adds the findings and the regions of `other`, a report on another file, such as a member of
    /// a store.
    ///
    /// `file` is the name of the other file. If the other file is a directory, the names of the
    /// files in it get the prefix `file/`.
    pub fn append(&mut self, file: &str, other: Self) {
        let name: Arc<str> = file.into();
        let named = |inner: &Option<Arc<str>>| match inner {
            Some(inner) => format!("{file}/{inner}").into(),
            None => name.clone(),
        };
        for finding in other.findings {
            let file = Some(named(&finding.file));
            self.add(Finding { file, ..finding });
        }
        self.omitted = self.omitted.saturating_add(other.omitted);
        self.unverified = self.unverified.saturating_add(other.unverified);
        let regions = other.regions.into_iter();
        self.regions.extend(regions.map(|it| Region { file: Some(named(&it.file)), ..it }));
    }

    /// Counts a finding, and returns whether the report stores it.
    fn has_room(&mut self, is_error: bool) -> bool {
        let is_first = is_error && self.errors == 0;
        self.errors += usize::from(is_error);
        let is_full = self.is_brief || self.findings.len() >= Self::MAX_FINDINGS;
        if is_full && !is_first {
            self.omitted += 1;
            return false;
        }
        true
    }

    /// Returns the first error, if any.
    pub(crate) fn first_error(self) -> Option<Finding> {
        self.findings.into_iter().find(|finding| finding.rule.severity == Severity::Error)
    }
}

/// The destination of the findings of a check: a report, and the position that the offsets of
/// findings are relative to.
#[derive(Debug)]
pub(crate) struct Checker<'a> {
    report: &'a mut Report,
    file: Option<Arc<str>>,
    part: Part,
    base: u64,
}

impl<'a> Checker<'a> {
    pub(crate) fn new(report: &'a mut Report) -> Self {
        Self { report, file: None, part: Part::Whole, base: 0 }
    }

    /// Returns a checker for the part `part`, which starts at `offset` of the bytes of this
    /// checker.
    pub(crate) fn within(&mut self, part: Part, offset: u64) -> Checker<'_> {
        let base = self.base.saturating_add(offset);
        Checker { report: self.report, file: self.file.clone(), part, base }
    }

    /// Returns a checker for another file of the directory.
    pub(crate) fn in_file(&mut self, file: &str, part: Part) -> Checker<'_> {
        Checker { report: self.report, file: Some(file.into()), part, base: 0 }
    }

    /// Adds a finding about `len` bytes at `offset`.
    pub(crate) fn found(
        &mut self,
        rule: &'static Rule,
        offset: u64,
        len: u64,
        expected: impl ToString,
        found: impl ToString,
    ) {
        if !self.report.has_room(rule.severity == Severity::Error) {
            return;
        }
        self.report.findings.push(Finding {
            rule,
            file: self.file.clone(),
            part: self.part.clone(),
            offset: self.base.saturating_add(offset),
            len,
            expected: expected.to_string(),
            found: found.to_string(),
        });
    }

    /// Counts a file without checksums.
    pub(crate) fn unverified(&mut self) {
        self.report.unverified += 1;
    }

    /// Adds a region to the map.
    pub(crate) fn region(&mut self, part: Part, offset: u64, len: u64) {
        let offset = self.base.saturating_add(offset);
        self.report.regions.push(Region { file: self.file.clone(), part, offset, len });
    }

    /// Returns the report.
    pub(crate) fn report(&mut self) -> &mut Report {
        self.report
    }

    /// Returns the findings.
    pub(crate) fn findings(&self) -> &[Finding] {
        &self.report.findings
    }

    /// Returns the number of findings that are errors.
    pub(crate) fn errors(&self) -> usize {
        self.report.errors
    }
}

/// The options of a check: whether to decode the data, whether to add a map of the file, and the
/// limits on memory and work.
///
/// ```
/// use blosc2_format::{Limits, Options};
///
/// let limits = Limits { memory: 64 << 20, ..Limits::default() };
/// let options = Options { content: true, limits, ..Options::default() };
/// assert!(!options.map);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// Whether to decode every block. Default: `false`.
    pub content: bool,
    /// Whether to add a [map of the file](Report::regions) to the report. Default: `false`.
    pub map: bool,
    /// Whether a frame without valid checksums is an error (`frame.checksums.missing`). Files that
    /// cannot have checksums (single chunks, legacy files) are errors as well. Default: `false`.
    pub require_checksums: bool,
    /// The limits on memory and work. Default: [`Limits::default`](crate::Limits::default).
    pub limits: crate::Limits,
}

#[cfg(test)]
mod tests {
    use super::*;

    static BAD: Rule = Rule::error("test.bad", "test", "Test");
    static ODD: Rule = Rule::note("test.odd", "test", "Test");

    #[test]
    fn a_report_has_room_for_so_many_findings_and_an_error() {
        let mut report = Report::new();
        let mut checker = Checker::new(&mut report);
        for offset in 0..Report::MAX_FINDINGS as u64 + 10 {
            checker.found(&ODD, offset, 1, "less", "more");
        }
        assert_eq!(checker.errors(), 0);
        for offset in 0..3 {
            checker.found(&BAD, offset, 1, "less", "more");
        }
        assert_eq!(checker.errors(), 3);
        assert_eq!((report.findings.len(), report.omitted), (Report::MAX_FINDINGS + 1, 12));
        assert!(!report.is_good());
    }

    #[test]
    fn reports_of_members_are_appended_with_their_names() {
        let mut inner = Report::new();
        let mut checker = Checker::new(&mut inner);
        checker.found(&BAD, 5, 1, "less", "more");
        checker.in_file("0.chunk", Part::Chunk(0)).found(&ODD, 0, 1, "less", "more");
        checker.region(Part::Header, 0, 5);
        (inner.omitted, inner.unverified) = (3, 1);
        let mut report = Report::new();
        report.append("group/a.b2nd", inner);
        let files = report.findings.iter().map(|finding| finding.file.as_deref().unwrap());
        assert!(files.eq(["group/a.b2nd", "group/a.b2nd/0.chunk"]));
        assert_eq!(report.regions[0].file.as_deref(), Some("group/a.b2nd"));
        assert_eq!((report.omitted, report.unverified, report.errors), (3, 1, 1));
    }
}
