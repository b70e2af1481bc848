//! `blosc2 check`: reports all faults of files.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anstyle::Style;
use anyhow::{Result, bail};
use blosc2_format::file::{self, Kind};
use blosc2_format::read_at::AtOffset;
use blosc2_format::{Error, Finding, Options, ReadAt, Region, Report, Severity};
use clap::builder::NonEmptyStringValueParser;
use indicatif::ProgressBar;
use serde_json::{Value, json};

use crate::file::{Place, Source};
use crate::output::Force;
use crate::style::styled;
use crate::{UsageError, complain, info, map, printable, progress, style, svg};

/// Report all faults of frames, sparse frames (directories), single chunks and legacy files.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Checks every field and decodes every block, without C-Blosc2. Blocks that need a \
    codec or filter plugin are not decoded, which the report states.\n\nExamples:\n  blosc2 check *.b2nd\n  blosc2 check a.b2nd --map --svg layout.svg"
)]
pub(crate) struct Args {
    /// Files, or directories with sparse frames.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    place: Place,
    /// Print one JSON array, with an object for each file, instead of lines.
    #[arg(long)]
    json: bool,
    /// Check the structure only; do not decode the data.
    #[arg(long)]
    no_content: bool,
    /// Also print the layout of each file: offset and size of each part.
    #[arg(long)]
    map: bool,
    /// Draw the layouts of all files in one new SVG file, which must not exist yet.
    #[arg(long, value_name = "FILE", value_parser = NonEmptyStringValueParser::new())]
    svg: Option<String>,
    #[command(flatten)]
    force: Force,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    if let Some(svg) = &args.svg {
        if args.files.iter().any(|file| file == Path::new(svg)) {
            return Err(UsageError(format!(
                "--svg would overwrite {svg}, one of the checked files"
            ))
            .into());
        }
        args.force.output(Path::new(svg)).check()?;
    }
    let map = args.map || args.svg.is_some();
    let options = Options { content: !args.no_content, map, ..Options::default() };
    let mut out = BufWriter::new(anstream::stdout().lock());
    let (mut objects, mut maps) = (Vec::new(), Vec::new());
    let (mut bad, mut unreadable) = (0, 0);
    for path in &args.files {
        let name = path.display().to_string();
        let (kind, mut report) =
            match args.place.of(path).and_then(|source| Ok(check(source, &options)?)) {
                Ok(checked) => checked,
                Err(error) => {
                    unreadable += 1;
                    let error = format!("cannot read ({name}): {error}");
                    // With one file, this error is the last line; with several, the summary is.
                    if args.files.len() > 1 {
                        complain(&error);
                    }
                    objects.push(object(&name, None, &Report::new(), Some(&error), None));
                    if args.files.len() == 1 && !args.json {
                        bail!("{error}");
                    }
                    continue;
                }
            };
        bad += usize::from(!report.is_good());
        let regions = std::mem::take(&mut report.regions);
        let groups = map::groups(&name, regions);
        if args.json {
            objects.push(object(&name, kind, &report, None, args.map.then_some(&groups)));
        } else {
            write_lines(&mut out, &name, kind, &report)?;
            if args.map {
                map::write(&mut out, &groups)?;
            }
        }
        maps.extend(groups);
    }
    if args.json {
        writeln!(out, "{:#}", Value::Array(objects))?;
    }
    out.flush()?;
    if let Some(svg) = &args.svg {
        args.force.output(Path::new(svg)).write(|out| Ok(svg::write(out, &maps)?))?;
    }
    match (args.files.as_slice(), bad + unreadable) {
        (_, 0) => Ok(()),
        ([file], _) => bail!("found errors ({})", file.display()),
        (files, _) => {
            bail!("checked {} files: {bad} with errors, {unreadable} unreadable", files.len())
        }
    }
}

fn check(source: Source<'_>, options: &Options) -> Result<(Option<Kind>, Report), Error> {
    if source.path.is_dir() {
        source.kind()?;
        let _spinner = progress::spinner(bytes_in(source.path), "checking");
        return file::check_path(source.path, options);
    }
    let file = source.bytes()?;
    let bar = progress::bar(file.size()?);
    file::check(&Watched { file, bar }, options)
}

/// Total bytes of the files in a directory.
fn bytes_in(path: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(path) else { return 0 };
    entries.filter_map(|entry| Some(entry.ok()?.metadata().ok()?.len())).sum()
}

/// A file that advances a progress bar as bytes are read.
struct Watched {
    file: AtOffset<fs::File>,
    bar: ProgressBar,
}

impl ReadAt for Watched {
    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.bar.inc(buffer.len() as u64);
        self.file.read_exact_at(offset, buffer)
    }
}

const SEVERITIES: [Severity; 3] = [Severity::Error, Severity::Warning, Severity::Note];

fn counts(report: &Report) -> [usize; 3] {
    SEVERITIES.map(|severity| {
        report.findings.iter().filter(|finding| finding.rule.severity == severity).count()
    })
}

fn write_lines(
    out: &mut dyn Write,
    name: &str,
    kind: Option<Kind>,
    report: &Report,
) -> io::Result<()> {
    let name = printable(name);
    for finding in &report.findings {
        let section = finding.rule.section;
        let line = printable(&format!("{finding} (see \"{section}\")"));
        let severity = finding.rule.severity.to_string();
        let line = match line.strip_prefix(&severity) {
            Some(rest) => styled(style_of(finding.rule.severity), severity) + rest,
            None => line,
        };
        writeln!(out, "{name}: {line}")?;
    }
    if report.omitted > 0 {
        writeln!(out, "{name}: ... and {} more findings", report.omitted)?;
    }
    let kind = kind.map_or("unknown format".to_owned(), |kind| kind.to_string());
    let parts = counts(report).into_iter().zip(SEVERITIES).map(|(count, severity)| {
        format!("{count} {severity}{}", if count == 1 { "" } else { "s" })
    });
    let parts = parts.collect::<Vec<_>>().join(", ");
    let verdict = match (report.is_good(), report.is_complete()) {
        (false, _) => styled(style::BAD, "bad"),
        (true, false) => styled(style::WARNING, "good as far as checked"),
        (true, true) => styled(style::GOOD, "good"),
    };
    writeln!(out, "{name}: {kind}, {verdict}: {parts}")
}

fn style_of(severity: Severity) -> Style {
    match severity {
        Severity::Error => style::BAD,
        Severity::Warning => style::WARNING,
        _ => style::NOTE,
    }
}

fn object(
    name: &str,
    kind: Option<Kind>,
    report: &Report,
    error: Option<&str>,
    groups: Option<&Vec<map::Group>>,
) -> Value {
    let [errors, warnings, notes] = counts(report);
    let map = groups.map(|groups| {
        groups.iter().flat_map(|group| &group.regions).map(region).collect::<Vec<_>>()
    });
    json!({
        "path": name,
        "kind": kind.map(info::kind_name),
        "good": error.is_none() && report.is_good(),
        "complete": error.is_none() && report.is_complete(),
        "errors": errors,
        "warnings": warnings,
        "notes": notes,
        "omitted": report.omitted,
        "unreadable": error,
        "findings": report.findings.iter().map(finding).collect::<Vec<_>>(),
        "map": map,
    })
}

fn finding(finding: &Finding) -> Value {
    let rule = finding.rule;
    json!({
        "severity": rule.severity.to_string(),
        "rule": rule.id,
        "section": rule.section,
        "file": finding.file.as_deref(),
        "part": finding.part.to_string(),
        "offset": finding.offset,
        "length": finding.len,
        "what": rule.what,
        "expected": finding.expected,
        "found": finding.found,
    })
}

fn region(region: &Region) -> Value {
    json!({
        "file": region.file.as_deref(),
        "part": region.part.to_string(),
        "offset": region.offset,
        "length": region.len,
    })
}
