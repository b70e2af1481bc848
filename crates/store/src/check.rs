//! The check of stores: all files of a store, and all frames in an embedded store.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::sync::Arc;

use blosc2_format::directory::{self, Folder};
use blosc2_format::file::{self, Kind};
use blosc2_format::{Finding, Options, Part, Report, Rule, Severity};

use crate::blosc2::storage::{ReadAt, ReadOnly};
use crate::blosc2::{Error, ErrorKind, Result, SChunk, Target};
use crate::limits::options as options_within;
use crate::{CTable, EmbedStore, Member, Members, Object, TreeStore};

/// The section of `FORMATS.md` that describes the rules.
const SECTION: &str = "Stores";

static ZIP: Rule = Rule::new("store.zip", Severity::Error, "list of members", SECTION);
static NO_INDEX: Rule = Rule::new("store.no_index", Severity::Error, "required file", SECTION);
static PLAIN: Rule = Rule::new("store.plain", Severity::Note, "index", SECTION);
static MEMBER: Rule = Rule::new("store.member", Severity::Error, "member", SECTION);
static CHECKSUM: Rule = Rule::new("store.checksum", Severity::Error, "checksum", SECTION);
static OVERLAP: Rule = Rule::new("store.overlap", Severity::Error, "embedded frame", SECTION);
static CONTENT: Rule = Rule::new("store.content", Severity::Error, "content", SECTION);
static LIMIT: Rule = Rule::new("store.limit", Severity::Warning, "unchecked content", SECTION);
static DUPLICATE: Rule = Rule::new("store.duplicate", Severity::Error, "name of a member", SECTION);
static KEY: Rule = Rule::new("store.key", Severity::Warning, "key of a member", SECTION);
static NO_KEY: Rule = Rule::new("store.no_key", Severity::Note, "key of a member", SECTION);
static UNREADABLE: Rule = Rule::new("store.unreadable", Severity::Note, "content", SECTION);
static STRANGER: Rule = Rule::new("store.stranger", Severity::Note, "file", SECTION);

/// The file that every store has.
const INDEX: &str = "embed.b2e";
/// Extensions of files that have to be frames.
const FRAMES: [&str; 5] = ["b2nd", "b2f", "b2b", "b2e", "b2frame"];
/// Levels of embedded stores: the frames in an embedded store can be embedded stores themselves. The stack limits them.
const MAX_DEPTH: usize = 32;

/// The form of a checked store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A zip file.
    Zip,
    /// A directory.
    Folder,
    /// One frame that contains the frames of its entries.
    Embedded,
}

impl Form {
    /// Returns the name for programs: `zip-store`, `folder-store` or `embedded-store`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Zip => "zip-store",
            Self::Folder => "folder-store",
            Self::Embedded => "embedded-store",
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Zip => "zip store",
            Self::Folder => "folder store",
            Self::Embedded => "embedded store",
        })
    }
}

/// The result of the check of a store. Returned by [`StoreCheck`].
#[derive(Debug)]
pub struct CheckedStore {
    /// The form of the store.
    pub form: Form,
    /// The findings of all members; their `file` is the name of the member.
    pub report: Report,
    /// The frames of the store, sorted by name.
    pub members: Vec<CheckedMember>,
}

/// A frame of a [`CheckedStore`].
#[derive(Debug)]
pub struct CheckedMember {
    /// The path inside the store. For an embedded frame: the path of its embedded store and its key.
    pub file: String,
    /// The format of the file; `None` if it was not recognised.
    pub kind: Option<Kind>,
    /// The number of errors, warnings and notes.
    pub counts: [usize; 3],
}

/// Returns the number of errors, warnings and notes of a report.
pub fn counts(report: &Report) -> [usize; 3] {
    let mut counts = [0; 3];
    for finding in &report.findings {
        counts[place(finding.rule.severity)] += 1;
    }
    counts
}

/// The place of a severity among the counts.
fn place(severity: Severity) -> usize {
    match severity {
        Severity::Error => 0,
        Severity::Warning => 1,
        _ => 2,
    }
}

/// A check of all frames in a store, and of what they contain.
///
/// ```
/// use blosc2::NDArray;
/// use blosc2_format::Options;
/// use blosc2_store::check::StoreCheck;
/// use blosc2_store::{Members, Object, TreeStore};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("runs.b2z");
/// let mut store = TreeStore::create(&path)?;
/// store.insert("/speed", NDArray::from_slice(&[1.5f32, 2.5], &[2])?.schunk())?;
/// store.finish()?;
///
/// let options = Options { content: true, ..Options::default() };
/// let checked = StoreCheck::new(&options).files(Members::open(&path), || Object::open(&path))?;
/// assert!(checked.report.is_good());
/// let names: Vec<_> = checked.members.iter().map(|member| &member.file).collect();
/// assert_eq!(names, ["embed.b2e", "speed.b2nd"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct StoreCheck<'a> {
    options: &'a Options,
    max_read: Option<u64>,
    requires_index: bool,
    progress: &'a dyn Fn(u64, u64),
}

impl<'a> StoreCheck<'a> {
    /// Creates a check with these options. Their limits also apply to opening the frames.
    pub fn new(options: &'a Options) -> Self {
        Self { options, max_read: None, requires_index: false, progress: &|_, _| () }
    }

    /// Sets the memory limit of one read; see [`OpenOptions::max_read`](blosc2::OpenOptions::max_read).
    pub fn max_read(mut self, max_read: Option<u64>) -> Self {
        self.max_read = max_read;
        self
    }

    /// Sets whether a store without the file `embed.b2e` is damaged. By default it is not, if it contains frames: other
    /// programs write such stores. Python writes the file.
    pub fn require_index(mut self, required: bool) -> Self {
        self.requires_index = required;
        self
    }

    /// Sets a function that receives the number of bytes that were read, and the size of all members. Some bytes are read
    /// more than once.
    pub fn progress(mut self, progress: &'a dyn Fn(u64, u64)) -> Self {
        self.progress = progress;
        self
    }

    /// Checks the members of a directory or a zip file. `object` opens the store; it is called if no member is damaged.
    ///
    /// # Errors
    /// Fails with the errors of [`Members::open`], except [`ErrorKind::InvalidData`], which is a finding.
    pub fn files(
        self,
        members: Result<Members>,
        object: impl FnOnce() -> Result<Object>,
    ) -> Result<CheckedStore> {
        let members = match members {
            Ok(members) => members,
            Err(error) if error.kind() == ErrorKind::InvalidData => {
                let mut walk = Walk::new(self, 0);
                walk.found(None, &ZIP, "a readable zip file", error);
                return Ok(walk.finish(Form::Zip));
            }
            Err(error) => return Err(error),
        };
        let opened = members.iter().filter_map(|member| member.open().ok()?.size().ok());
        let mut walk = Walk::new(self, opened.fold(0, u64::saturating_add));
        walk.is_verified = members.is_archive() && walk.check.options.content;
        if members.get(INDEX).is_none() {
            let is_plain = !walk.check.requires_index && members.contain_frames();
            let rule = if is_plain { &PLAIN } else { &NO_INDEX };
            walk.found(None, rule, format_args!("a file `{INDEX}`"), "none");
        }
        walk.all(&members);
        walk.names(&members);
        // The faults of damaged files would be reported twice.
        if walk.report.is_good() {
            walk.store(object());
        }
        Ok(walk.finish(if members.is_archive() { Form::Zip } else { Form::Folder }))
    }

    /// Checks the frames in an embedded store of `size` bytes, after a check of its own frame with the result `report`.
    pub fn embedded(self, schunk: SChunk, report: Report, size: u64) -> CheckedStore {
        let mut walk = Walk::new(self, size);
        walk.report = report;
        match EmbedStore::from_schunk(schunk) {
            Ok(store) => walk.embedded("", &store, 0),
            Err(error) => walk.failed(None, &error),
        }
        walk.finish(Form::Embedded)
    }
}

impl fmt::Debug for StoreCheck<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { options, max_read, .. } = self;
        let mut debug = f.debug_struct("StoreCheck");
        debug.field("options", options).field("max_read", max_read).finish_non_exhaustive()
    }
}

/// Returns the finding about a file without faults whose content cannot be opened or read.
pub fn failure(error: &Error) -> Finding {
    let rule = match error.kind() {
        ErrorKind::Unsupported => &UNREADABLE,
        ErrorKind::TooLarge => &LIMIT,
        _ => &CONTENT,
    };
    finding(rule, "a readable object", format_args!("an error: {error}"))
}

/// A finding about a whole file, or about the store.
fn finding(rule: &'static Rule, expected: impl ToString, found: impl ToString) -> Finding {
    Finding::new(rule, Part::Whole, 0, 0, expected, found)
}

/// A source that counts the bytes that are read.
struct Watched<'a> {
    source: Arc<dyn ReadAt + Send + Sync>,
    done: &'a Cell<u64>,
    size: u64,
    progress: &'a dyn Fn(u64, u64),
}

impl ReadAt for Watched<'_> {
    fn size(&self) -> io::Result<u64> {
        self.source.size()
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.done.set(self.done.get() + buffer.len() as u64);
        (self.progress)(self.done.get(), self.size);
        self.source.read_exact_at(offset, buffer)
    }
}

struct Walk<'a> {
    check: StoreCheck<'a>,
    /// The bytes that were read, and those of all members.
    done: Cell<u64>,
    size: u64,
    report: Report,
    /// The members, by their paths.
    members: BTreeMap<String, CheckedMember>,
    /// The keys of the entries of `embed.b2e`, and the keys that the index files of sparse frames have. These objects
    /// are not opened again.
    done_keys: BTreeSet<String>,
    /// Whether the members have checksums in a zip file, which are compared.
    is_verified: bool,
    /// Remaining bytes of embedded frames: a few bytes can contain very many of them.
    left: u64,
}

impl<'a> Walk<'a> {
    fn new(check: StoreCheck<'a>, size: u64) -> Self {
        Self {
            check,
            done: Cell::new(0),
            size,
            report: Report::new(),
            members: BTreeMap::new(),
            done_keys: BTreeSet::new(),
            is_verified: false,
            left: size.saturating_mul(256).max(1 << 30),
        }
    }

    fn finish(self, form: Form) -> CheckedStore {
        CheckedStore { form, report: self.report, members: self.members.into_values().collect() }
    }

    /// Adds a finding about a whole file, or about the store.
    fn found(
        &mut self,
        file: Option<&str>,
        rule: &'static Rule,
        expected: impl ToString,
        found: impl ToString,
    ) {
        self.add_finding(file, finding(rule, expected, found));
    }

    /// Adds the finding of an error of opening or reading.
    fn failed(&mut self, file: Option<&str>, error: &Error) {
        self.add_finding(file, failure(error));
    }

    fn add_finding(&mut self, file: Option<&str>, mut finding: Finding) {
        if let Some(file) = file.filter(|_| finding.rule.id != STRANGER.id) {
            let mut counts = [0; 3];
            counts[place(finding.rule.severity)] = 1;
            self.add_member(file, None, counts);
        }
        finding.file = file.map(Into::into);
        self.report.add(finding);
    }

    /// Adds the finding about a key, which can be that of a group or a table.
    fn failed_key(&mut self, key: Option<&str>, error: &Error) {
        let mut finding = failure(error);
        finding.file = key.map(Into::into);
        self.report.add(finding);
    }

    /// Adds the counts of findings to those of a member.
    fn add_member(&mut self, name: &str, kind: Option<Kind>, counts: [usize; 3]) {
        let member = self.members.entry(name.to_owned()).or_insert_with(|| CheckedMember {
            file: name.to_owned(),
            kind: None,
            counts: [0; 3],
        });
        member.kind = member.kind.or(kind);
        for (sum, count) in member.counts.iter_mut().zip(counts) {
            *sum += count;
        }
    }

    fn all(&mut self, members: &Members) {
        // The directories of sparse frames.
        let is_index = |name: &str| name.ends_with(&format!("/{}", directory::INDEX));
        let names = members.iter().map(|member| member.name()).filter(|name| is_index(name));
        let folders: BTreeSet<&str> =
            names.filter_map(|name| Some(name.rsplit_once('/')?.0)).collect();
        for &folder in &folders {
            self.sparse(members, folder);
        }
        for member in members.iter() {
            let folder = member.name().rsplit_once('/').map_or("", |(folder, _)| folder);
            if !folders.contains(folder) {
                self.member(member);
            }
        }
    }

    fn sparse(&mut self, members: &Members, folder: &str) {
        let files = SparseFrame { members, folder };
        match directory::check(&files, self.check.options) {
            Ok(report) => {
                let key = directory::INDEX.rsplit_once('.').map_or("", |(stem, _)| stem);
                self.done_keys.insert(format!("/{folder}/{key}"));
                self.add(folder, Some(Kind::Directory), report);
            }
            Err(error) => self.found(Some(folder), &MEMBER, "a readable frame", error),
        }
    }

    /// Checks the names of the members, and the keys of those that are frames.
    fn names(&mut self, members: &Members) {
        match members.duplicates() {
            Ok(names) => {
                for name in names {
                    self.found(Some(&name), &DUPLICATE, "one member of this name", "several");
                }
            }
            Err(error) => self.failed(None, &error),
        }
        let frames = members.iter().filter(|member| member.name() != INDEX);
        let frames: Vec<_> =
            frames.filter(|member| self.members.contains_key(member.name())).collect();
        let mut files: BTreeMap<String, &str> = BTreeMap::new();
        for member in frames {
            let name = member.name();
            match member.key() {
                None => self.found(Some(name), &NO_KEY, "a name with a key", "a name without one"),
                // Of these files, a store reads the last one.
                Some(key) => {
                    if let Some(other) = files.insert(key, name) {
                        let found = format_args!("the key of `{other}`");
                        self.found(Some(name), &KEY, "a unique key", found);
                    }
                }
            }
        }
    }

    fn member(&mut self, member: Member<'_>) {
        let name = member.name();
        let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
        let is_frame = FRAMES.contains(&ending);
        let source = match member.open() {
            Ok(source) => source,
            Err(error) if is_frame => {
                return self.found(
                    Some(name),
                    &MEMBER,
                    "an uncompressed member inside the file, with this name in its header",
                    error,
                );
            }
            Err(_) => return self.found(Some(name), &STRANGER, "a frame", "another file"),
        };
        // Other formats have no magic number: a file of another program could be taken for one.
        let has_magic = |kind| matches!(kind, Kind::Frame | Kind::EarlyFrame | Kind::FrameVersion1);
        if !is_frame && !file::recognise(&source).is_ok_and(|kind| kind.is_some_and(has_magic)) {
            return self.found(Some(name), &STRANGER, "a frame", "another file");
        }
        self.frame(name, source, 0);
        // A fault that the format itself shows is described better by its finding.
        if self.check.options.content
            && let Err(error) = member.verify()
        {
            let expected = "the checksum in the zip file";
            self.found(Some(name), &CHECKSUM, expected, error);
        }
    }

    /// Checks a frame at a depth of embedded stores.
    fn frame(&mut self, name: &str, source: Arc<dyn ReadAt + Send + Sync>, depth: usize) {
        let watched = Watched {
            source: Arc::clone(&source),
            done: &self.done,
            size: self.size,
            progress: self.check.progress,
        };
        // The checksums of the outer file cover an embedded frame.
        let is_covered = depth > 0 || self.is_verified;
        let require_checksums = self.check.options.require_checksums && !is_covered;
        let options = Options { require_checksums, ..*self.check.options };
        let (kind, mut report) = match file::check(&watched, &options) {
            Ok(checked) => checked,
            Err(error) => return self.found(Some(name), &MEMBER, "a readable file", error),
        };
        if is_covered {
            report.unverified = 0;
        }
        let is_good = report.is_good();
        self.add(name, kind, report);
        if is_good && kind == Some(Kind::Frame) {
            let options = options_within(options.limits, self.check.max_read);
            self.content(name, options.open(Target::storage(ReadOnly::new(source))), depth);
        }
    }

    /// Checks what a frame without faults contains.
    fn content(&mut self, name: &str, schunk: Result<SChunk>, depth: usize) {
        let schunk = match schunk {
            Ok(schunk) => schunk,
            Err(error) => return self.failed(Some(name), &error),
        };
        if EmbedStore::is_in(&schunk) {
            match EmbedStore::from_schunk(schunk) {
                Ok(store) => self.embedded(name, &store, depth),
                Err(error) => self.failed(Some(name), &error),
            }
        } else if name == INDEX {
            self.found(Some(name), &CONTENT, "an embedded store", "another super-chunk");
        } else if let Err(error) = Object::from_schunk(schunk) {
            self.failed(Some(name), &error);
        }
    }

    fn embedded(&mut self, name: &str, store: &EmbedStore, depth: usize) {
        if name == INDEX {
            self.done_keys.extend(store.keys().map(str::to_owned));
        }
        let ranges = store.frame_ranges().filter_map(|(key, range)| Some((range?, key)));
        let mut ranges: Vec<_> = ranges.collect();
        ranges.sort_by_key(|(range, _)| (range.start, range.end));
        let mut end = 0;
        for (range, key) in ranges {
            let name = format!("{name}{key}");
            if range.start < end {
                let expected = format_args!("a start at byte {end} or later");
                self.found(Some(&name), &OVERLAP, expected, format_args!("byte {}", range.start));
                continue;
            }
            end = range.end;
            let left = self.left.checked_sub(range.end - range.start).filter(|_| depth < MAX_DEPTH);
            let Some(left) = left else {
                let found = "an embedded frame that exceeds the limits";
                self.found(Some(&name), &LIMIT, "at most what the limits allow", found);
                continue;
            };
            self.left = left;
            match store.schunk().read::<u8>(range) {
                Ok(bytes) => self.frame(&name, Arc::new(bytes), depth + 1),
                Err(error) => self.failed(Some(&name), &error),
            }
        }
    }

    /// Checks that the store opens, and the objects that consist of several files.
    fn store(&mut self, object: Result<Object>) {
        match object {
            Ok(Object::TreeStore(store)) => self.tree(&store),
            Ok(Object::CTable(table)) => self.table(None, &table),
            Ok(_) => {}
            Err(error) => self.failed(None, &error),
        }
    }

    fn tree(&mut self, store: &TreeStore) {
        for group in std::iter::once("/").chain(store.groups()) {
            if let Err(error) = store.attributes(group) {
                self.failed_key(Some(group), &error);
            }
        }
        let keys: Vec<&str> = store.keys().filter(|key| !self.done_keys.contains(*key)).collect();
        for key in keys {
            match store.get(key) {
                Ok(Object::CTable(table)) => self.table(Some(key), &table),
                Ok(_) => {}
                Err(error) => self.failed_key(Some(key), &error),
            }
        }
    }

    /// Checks that the columns of a table are there, and as long as the table.
    fn table(&mut self, key: Option<&str>, table: &CTable) {
        let last = table.nrows().saturating_sub(1)..table.nrows();
        for column in table.columns() {
            match table.values(column.name(), last.clone()) {
                // Computed columns are never read.
                Err(error) if error.kind() != ErrorKind::Unsupported => {
                    self.failed_key(key, &error)
                }
                _ => {}
            }
        }
    }

    fn add(&mut self, name: &str, kind: Option<Kind>, report: Report) {
        self.add_member(name, kind, counts(&report));
        self.report.append(name, report);
    }
}

/// The files of a sparse frame in a store.
#[derive(Debug)]
struct SparseFrame<'a> {
    members: &'a Members,
    folder: &'a str,
}

impl Folder for SparseFrame<'_> {
    type File = Arc<dyn ReadAt + Send + Sync>;

    fn open(&self, name: &str) -> io::Result<Self::File> {
        let member = self.members.get(&format!("{}/{name}", self.folder));
        Ok(member.ok_or(io::ErrorKind::NotFound)?.open()?)
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let below = format!("{}/", self.folder);
        let names = self.members.iter().filter_map(|member| member.name().strip_prefix(&below));
        Ok(names.filter(|name| !name.contains('/')).map(str::to_owned).collect())
    }
}
