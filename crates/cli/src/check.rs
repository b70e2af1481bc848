//! `blosc2 check`: reports all faults of files.

use std::cell::OnceCell;
use std::fmt;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anstyle::Style;
use anyhow::{Result, anyhow, bail};
use blosc2::ErrorKind;
use blosc2_format::directory;
use blosc2_format::file::{self, Kind};
use blosc2_format::{Finding, Options, ReadAt, Region, Report, Severity};
use blosc2_store::check::{self, CheckedMember, CheckedStore, Form, StoreCheck};
use blosc2_store::{EmbedStore, Members};
use serde_json::{Value, json};

use crate::file::{Place, Source};
use crate::limits::{self, Bytes};
use crate::output::Force;
use crate::progress::Watched;
use crate::remote::Listed;
use crate::style::styled;
use crate::{
    UsageError, complain, extension, foreign, info, json, map, printable, progress, style, svg,
};

/// Report all faults of frames, sparse frames (directories), stores, single chunks and legacy files.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Checks every field and decodes every block, without C-Blosc2. Blocks that need \
    a codec or filter that this program does not have (a plugin, Snappy, Lizard) are not decoded; the report states this.\n\nExamples:\n  blosc2 check *.b2nd\n  blosc2 check a.b2nd --map --svg layout.svg"
)]
pub(crate) struct Args {
    /// Files, directories (sparse frames), or stores; in a store, all files are checked.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    place: Place,
    /// Print one JSON array, with an object for each file, instead of lines.
    #[arg(long)]
    json: bool,
    /// Check the structure only; do not decode the data.
    #[arg(long)]
    no_content: bool,
    /// Report an error if a file has no valid checksums. In a zip file, its own checksums are sufficient.
    #[arg(long)]
    require_checksums: bool,
    /// Maximum number of bytes to decode in total [default: 16T].
    #[arg(long, value_name = "SIZE")]
    max_decoded: Option<Bytes>,
    /// Also print the layout of each file: offset and size of each part.
    #[arg(long)]
    map: bool,
    /// Draw the layouts of all files in one SVG file. If it exists, --force is required.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    force: Force,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let svg = args.svg.as_ref().map(|path| args.force.output(path));
    if let Some(output) = svg {
        if args.files.iter().any(|file| file == output.path) {
            let path = output.path.display();
            let message = format!("--svg would overwrite {path}, one of the checked files");
            return Err(UsageError(message).into());
        }
        output.check()?;
        args.files.iter().try_for_each(|file| output.check_apart(file))?;
        extension::check(output.path, "svg")?;
    }
    let map = args.map || svg.is_some();
    let content = !args.no_content;
    let require_checksums = args.require_checksums;
    let mut limits = args.place.limits();
    if let Some(Bytes(most)) = args.max_decoded {
        limits.total_bytes = most;
    }
    let options = Options { content, map, limits, require_checksums };
    let mut out = BufWriter::new(anstream::stdout().lock());
    let (mut objects, mut maps) = (Vec::new(), Vec::new());
    let (mut bad, mut unreadable, mut reason) = (0, 0, None);
    for path in &args.files {
        let name = path.display().to_string();
        let checked = args.place.of_all(path).and_then(|source| check(source, &options));
        let mut checked = checked.map_err(limits::named);
        let mut groups = Vec::new();
        match &mut checked {
            Ok(checked) => {
                checked.report.note_unverified();
                bad += usize::from(!checked.report.is_good());
                groups = map::groups(&name, std::mem::take(&mut checked.report.regions));
                if let What::Foreign(format) = &checked.what {
                    reason = Some(foreign::refused("check", path, format.as_deref()));
                }
            }
            Err(error) => {
                unreadable += 1;
                // With one file, this error is the last line; with several, the summary is.
                if args.files.len() > 1 {
                    complain(error);
                } else if args.json {
                    reason = Some(anyhow!("{error}"));
                } else {
                    bail!("{error}");
                }
            }
        }
        if args.json {
            objects.push(object(&name, &checked, args.map.then_some(&groups)));
        } else if let Ok(checked) = &checked {
            write_lines(&mut out, &name, checked)?;
            if args.map {
                map::write(&mut out, &groups)?;
            }
        }
        maps.extend(groups);
    }
    if args.json {
        writeln!(out, "{}", json::pretty(&objects)?)?;
    }
    out.flush()?;
    if let Some(output) = svg {
        output.write(|out| Ok(svg::write(out, &maps)?))?;
    }
    match (args.files.as_slice(), bad + unreadable) {
        (_, 0) => Ok(()),
        ([file], _) => match reason {
            Some(error) => Err(error),
            None => bail!("found errors ({})", file.display()),
        },
        (files, _) => {
            bail!("checked {} files: {bad} with errors, {unreadable} unreadable", files.len())
        }
    }
}

/// The result of the check of a file.
struct Checked {
    what: What,
    report: Report,
    /// The frames of a store; `None` if the file is not a store.
    members: Option<Vec<CheckedMember>>,
}

/// What a checked file is.
enum What {
    File(Kind),
    Store(Form),
    /// No format of Blosc2, with the format as far as it is known.
    Foreign(Option<String>),
}

impl What {
    /// The name in JSON.
    fn name(&self) -> Option<&'static str> {
        match self {
            Self::File(kind) => Some(info::kind_name(*kind)),
            Self::Store(form) => Some(form.name()),
            Self::Foreign(_) => None,
        }
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(kind) => kind.fmt(f),
            Self::Store(form) => form.fmt(f),
            Self::Foreign(Some(format)) => f.write_str(format),
            Self::Foreign(None) => f.write_str("unknown format"),
        }
    }
}

impl From<CheckedStore> for Checked {
    fn from(checked: CheckedStore) -> Self {
        let CheckedStore { form, report, members } = checked;
        Self { what: What::Store(form), report, members: Some(members) }
    }
}

fn check(source: Source<'_>, options: &Options) -> Result<Checked> {
    let unread = |error: &dyn fmt::Display| source.unread(error);
    let is_folder = source.is_directory();
    // A directory whose name is that of a store may lack the file that every store has.
    let kind = source.kind().map_err(|error| source.unopened(&error))?;
    let is_named_store = is_folder
        && kind.is_none()
        && source.path.extension().is_some_and(|ending| ending == "b2d");
    if source.is_store()? || is_named_store {
        let checked = Checked::from(check_files(&source, options)?);
        let is_frame = |member: &CheckedMember| member.kind.is_some();
        let is_other =
            !checked.members.iter().flatten().any(is_frame) && foreign::is_other_zip(source.path);
        return Ok(match is_other {
            true => Checked { what: What::Foreign(Some(foreign::OTHER_ZIP.to_owned())), ..checked },
            false => checked,
        });
    }
    if let Some(folder) = source.remote_folder() {
        let _spinner = progress::spinner(u64::MAX, "checking");
        let report = directory::check(&Listed::new(folder, source.path), options);
        let report = report.map_err(|error| unread(&error))?;
        return Ok(Checked { what: What::File(Kind::Directory), report, members: None });
    }
    if is_folder {
        let _spinner = progress::spinner(bytes_in(source.path), "checking");
        let checked = file::check_path(source.path, options);
        let (kind, report) = checked.map_err(|error| unread(&error))?;
        let what = kind.map_or(What::Foreign(None), What::File);
        return Ok(Checked { what, report, members: None });
    }
    let file = source.bytes().map_err(|error| source.unopened(&error))?;
    let size = file.size().map_err(|error| unread(&error))?;
    let watched = Watched { source: file, bar: progress::bar(size) };
    let (kind, mut report) = file::check(&watched, options).map_err(|error| unread(&error))?;
    if kind == Some(Kind::Frame) && report.is_good() {
        match source.open() {
            Ok(schunk) if EmbedStore::is_in(&schunk) => {
                let bar = progress::bar(size);
                let moved = |done, _| bar.set_position(done);
                let check = StoreCheck::new(options).max_read(source.limits.max_read());
                return Ok(check.progress(&moved).embedded(schunk, report, size).into());
            }
            // Other frames are arrays and super-chunks.
            Ok(_) => {}
            Err(error) => match error.downcast_ref::<blosc2::Error>() {
                Some(error) if error.kind() != ErrorKind::Io => {
                    report.add(check::failure(error));
                }
                _ => return Err(error),
            },
        }
    }
    let what = match kind {
        Some(kind) => What::File(kind),
        None => What::Foreign(foreign::name(&watched).map(str::to_owned)),
    };
    Ok(Checked { what, report, members: None })
}

/// Checks a store in a directory or a zip file.
fn check_files(source: &Source<'_>, options: &Options) -> Result<CheckedStore> {
    let bar = OnceCell::new();
    let moved = |done, size| bar.get_or_init(|| progress::bar(size)).set_position(done);
    // Only Python's stores in directories have names with this extension.
    let is_python = source.path.is_dir() && source.path.extension().is_some_and(|end| end == "b2d");
    let check = StoreCheck::new(options).max_read(source.limits.max_read());
    let check = check.require_index(is_python).progress(&moved);
    let object = || {
        // The advice about files of other formats has no other error inside.
        let other = |error| blosc2::Error::new(ErrorKind::InvalidData, "open the store", error);
        source.object().map_err(|error| error.downcast().unwrap_or_else(other))
    };
    Ok(check.files(Members::open(source.path), object)?)
}

/// Total bytes of the files in a directory.
fn bytes_in(path: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(path) else { return 0 };
    entries.filter_map(|entry| Some(entry.ok()?.metadata().ok()?.len())).sum()
}

fn write_lines(out: &mut dyn Write, name: &str, checked: &Checked) -> io::Result<()> {
    let name = printable(name);
    let Checked { what, report, members } = checked;
    for finding in &report.findings {
        let section = finding.rule.section;
        let place = match &finding.file {
            Some(file) => format!("{name}: {}", printable(file)),
            None => name.clone(),
        };
        let mut finding = finding.clone();
        finding.file = None;
        let line = printable(&limits::named(format_args!("{finding} (see \"{section}\")")));
        let severity = finding.rule.severity.to_string();
        let line = match line.strip_prefix(&severity) {
            Some(rest) => styled(style_of(finding.rule.severity), severity) + rest,
            None => line,
        };
        writeln!(out, "{place}: {line}")?;
    }
    if report.omitted > 0 {
        writeln!(out, "{name}: ... and {} more findings", report.omitted)?;
    }
    let [errors, warnings, notes] = check::counts(report);
    let members = members.as_ref().map(|members| (members.len(), "member"));
    let counts = [(errors, "error"), (warnings, "warning"), (notes, "note")];
    let parts = members.into_iter().chain(counts);
    let parts =
        parts.map(|(count, of)| format!("{count} {of}{}", if count == 1 { "" } else { "s" }));
    let parts = parts.collect::<Vec<_>>().join(", ");
    let verdict = match (report.is_good(), report.is_complete()) {
        (false, _) => styled(style::BAD, "bad"),
        (true, false) => styled(style::WARNING, "good as far as checked"),
        (true, true) => styled(style::GOOD, "good"),
    };
    writeln!(out, "{name}: {what}, {verdict}: {parts}")
}

fn style_of(severity: Severity) -> Style {
    match severity {
        Severity::Error => style::BAD,
        Severity::Warning => style::WARNING,
        _ => style::NOTE,
    }
}

/// The JSON object of a file. `groups` is its layout, if it was requested.
fn object(name: &str, checked: &Result<Checked, String>, groups: Option<&[map::Group]>) -> Value {
    let nothing = Report::new();
    let (report, error) = match checked {
        Ok(checked) => (&checked.report, None),
        Err(error) => (&nothing, Some(error)),
    };
    let checked = checked.as_ref().ok();
    let [errors, warnings, notes] = check::counts(report);
    let members = checked.and_then(|checked| checked.members.as_ref());
    let map = groups.map(|groups| {
        groups.iter().flat_map(|group| &group.regions).map(region).collect::<Vec<_>>()
    });
    json!({
        "path": name,
        "kind": checked.and_then(|checked| checked.what.name()),
        "good": error.is_none() && report.is_good(),
        "complete": error.is_none() && report.is_complete(),
        "errors": errors,
        "warnings": warnings,
        "notes": notes,
        "omitted": report.omitted,
        "unreadable": error,
        "members": members.map(|members| members.iter().map(member).collect::<Vec<_>>()),
        "findings": report.findings.iter().map(finding).collect::<Vec<_>>(),
        "map": map,
    })
}

fn member(member: &CheckedMember) -> Value {
    let [errors, warnings, notes] = member.counts;
    json!({
        "file": member.file,
        "kind": member.kind.map(info::kind_name),
        "good": errors == 0,
        "errors": errors,
        "warnings": warnings,
        "notes": notes,
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
        "expected": limits::named(&finding.expected),
        "found": limits::named(&finding.found),
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
