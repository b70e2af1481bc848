//! What a check finds: every rule that is broken, where, and what lies where in the file.

use std::fmt;
use std::sync::Arc;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing; nothing is wrong.
    Note,
    /// No data is lost, but a writer or a reader may have gone wrong.
    Warning,
    /// The bytes break the format: some or all of the data cannot be trusted.
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

/// A rule of a format.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rule {
    /// Its name, which stays the same from version to version: `chunk.version`.
    pub id: &'static str,
    /// How bad it is to break it.
    pub severity: Severity,
    /// The field or section that it is about.
    pub what: &'static str,
    /// The heading of `FORMATS.md` under which it is described.
    pub section: &'static str,
}

impl Rule {
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

/// A part of a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Part {
    /// All of it, or none in particular.
    Whole,
    /// The header, its metalayers left out.
    Header,
    /// A metalayer in the header.
    Metalayer(String),
    /// A chunk, by its number; a bare chunk is number 0.
    Chunk(u64),
    /// The chunk that holds the offsets of the other chunks, or the block of offsets.
    Index,
    /// A metalayer of variable length, in the trailer.
    VlMetalayer(String),
    /// The trailer, its metalayers left out.
    Trailer,
    /// One of the other chunks of a packed super-chunk, by the name of its field.
    Ancillary(&'static str),
    /// Bytes that nothing refers to.
    Gap,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole => f.write_str("file"),
            Self::Header => f.write_str("header"),
            // Names come from the file.
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

/// A rule that is broken, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The rule.
    pub rule: &'static Rule,
    /// The file inside a directory of chunks; `None` where there is only one file.
    pub file: Option<Arc<str>>,
    /// The part of the file.
    pub part: Part,
    /// Where the bytes are that break it, from the start of the file.
    pub offset: u64,
    /// How many bytes they are; 0 where something is missing there.
    pub len: u64,
    /// What the format asks for.
    pub expected: String,
    /// What is there.
    pub found: String,
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

/// A run of bytes of a file, and what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    /// The file inside a directory of chunks; `None` where there is only one file.
    pub file: Option<Arc<str>>,
    /// What it is.
    pub part: Part,
    /// Where it starts.
    pub offset: u64,
    /// How many bytes it has.
    pub len: u64,
}

/// The outcome of a check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Every rule that is broken, in the order in which they were found.
    pub findings: Vec<Finding>,
    /// The map of the file, where one was asked for.
    pub regions: Vec<Region>,
    /// How many findings more there were than [`MAX_FINDINGS`](Self::MAX_FINDINGS). If any finding is
    /// an error, one of those in the report is.
    pub omitted: u64,
    errors: usize,
    /// Whether only the first error is kept.
    is_brief: bool,
}

impl Report {
    /// The most findings that a report has room for: what a few bytes can break is not limited.
    pub const MAX_FINDINGS: usize = 1 << 16;

    /// A report without findings.
    pub fn new() -> Self {
        Self::default()
    }

    /// A report that keeps the first error and nothing else, for those who stop there.
    pub(crate) fn brief() -> Self {
        Self { is_brief: true, ..Self::default() }
    }

    /// The worst severity among the findings; `None` without findings.
    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.rule.severity).max()
    }

    /// Whether no finding is an error.
    pub fn is_good(&self) -> bool {
        self.worst() != Some(Severity::Error)
    }

    /// Whether all was looked at that was asked for. It was not where a finding says that something went
    /// over the [limits](crate::Limits) (`*.limit`) or that it needs what is not here
    /// (`*.unsupported`).
    pub fn is_complete(&self) -> bool {
        let is_left_out = |id: &str| id.ends_with(".limit") || id.ends_with(".unsupported");
        self.omitted == 0 && !self.findings.iter().any(|finding| is_left_out(finding.rule.id))
    }

    /// The first error, if there is one.
    pub(crate) fn first_error(self) -> Option<Finding> {
        self.findings.into_iter().find(|finding| finding.rule.severity == Severity::Error)
    }
}

/// Where a check adds what it finds: a report, and the place that offsets count from.
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

    /// For bytes that start at `offset` of these, and are that part.
    pub(crate) fn within(&mut self, part: Part, offset: u64) -> Checker<'_> {
        let base = self.base.saturating_add(offset);
        Checker { report: self.report, file: self.file.clone(), part, base }
    }

    /// For another file of the directory.
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
        let is_error = rule.severity == Severity::Error;
        let is_first = is_error && self.report.errors == 0;
        self.report.errors += usize::from(is_error);
        let is_full = self.report.is_brief || self.report.findings.len() >= Report::MAX_FINDINGS;
        if is_full && !is_first {
            self.report.omitted += 1;
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

    /// Adds a region to the map.
    pub(crate) fn region(&mut self, part: Part, offset: u64, len: u64) {
        let offset = self.base.saturating_add(offset);
        self.report.regions.push(Region { file: self.file.clone(), part, offset, len });
    }

    /// What was found so far.
    pub(crate) fn findings(&self) -> &[Finding] {
        &self.report.findings
    }

    /// How many findings are errors so far.
    pub(crate) fn errors(&self) -> usize {
        self.report.errors
    }
}

/// How thorough a check is, and what it may spend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// Whether every block is decoded. Default: no.
    pub content: bool,
    /// Whether the report gets a map of the file. Default: no.
    pub map: bool,
    /// What it may spend.
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
}
