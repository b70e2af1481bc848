//! A folder in which the command runs, and its input files.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use blosc2::NDArray;
use blosc2_store::{CTable, Data, ItemKind, ItemType, Schema, TimeUnit, TreeStore};
use serde_json::Value;
use tempfile::TempDir;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_blosc2-sql");

/// The folder of a test, in which the command runs.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.current_dir(self.0.path()).args(args).stdin(Stdio::null());
        command
    }

    /// Runs the command with `input` as stdin.
    pub(crate) fn piped(&self, args: &[&str], input: &str) -> Output {
        let mut command = self.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }

    /// Runs a command that has to succeed without messages, and returns its stdout.
    pub(crate) fn good(&self, args: &[&str]) -> Vec<u8> {
        good(self.command(args))
    }

    pub(crate) fn text(&self, args: &[&str]) -> String {
        String::from_utf8(self.good(args)).unwrap()
    }

    pub(crate) fn json(&self, args: &[&str]) -> Value {
        serde_json::from_slice(&self.good(&[args, &["--format", "json"]].concat())).unwrap()
    }

    /// Runs a command that has to fail with one line and without changing any file, and returns the line.
    pub(crate) fn bad(&self, status: i32, args: &[&str]) -> String {
        let before = self.files();
        let line = bad(status, self.command(args));
        assert!(self.files() == before, "{args:?} changed files");
        line
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.path(name), bytes).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    /// Names and contents of all files.
    pub(crate) fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let entries = fs::read_dir(self.0.path()).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<_> =
            entries.map(|path| (path.clone(), fs::read(&path).unwrap_or_default())).collect();
        files.sort();
        files
    }

    /// Creates the table `trips.b2z`: three rows.
    pub(crate) fn trips(&self) {
        let word = ItemKind::Dictionary { ordered: false };
        let when = ItemKind::Timestamp { unit: TimeUnit::Milliseconds, timezone: None };
        let schema = Schema::new()
            .column("city", ItemType::from(word).nullable())
            .column("km", ItemKind::Float64)
            .column("day", when);
        let mut table = CTable::create(self.path("trips.b2z"), &schema).unwrap();
        let days = [0i64, 86_400_000, 2 * 86_400_000 + 1500];
        let cells = [
            ("city", Data::texts(["Oslo", "Rome", "Oslo"].map(Some))),
            ("km", Data::items(&[1.5, 2.0, 4.0])),
            ("day", Data::items(&days)),
        ];
        table.append(cells).unwrap();
        table.finish().unwrap();
    }

    /// Creates a table `name` with the column `id`.
    pub(crate) fn ids(&self, name: &str, ids: std::ops::Range<i64>) {
        let schema = Schema::new().column("id", ItemKind::Int64);
        let mut table = CTable::create(self.path(name), &schema).unwrap();
        table.append([("id", Data::items(&ids.collect::<Vec<_>>()))]).unwrap();
        table.finish().unwrap();
    }

    /// Creates an array of 2 × 3 items, which are their indices, as the file `array.b2nd` and in the store `climate.b2z`.
    pub(crate) fn arrays(&self) {
        let array = NDArray::from_slice(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0], [2, 3]).unwrap();
        array.save(self.path("array.b2nd")).unwrap();
        let mut store = TreeStore::create(self.path("climate.b2z")).unwrap();
        store.insert("/value", array.schunk()).unwrap();
        store.finish().unwrap();
    }

    /// Creates the store `store.b2z` with the table `/group/table` (the column `n` with 0 to 3) and the array `/value` (2 × 3
    /// items).
    pub(crate) fn store(&self) {
        let array = NDArray::from_slice(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0], [2, 3]).unwrap();
        let mut store = TreeStore::create(self.path("store.b2z")).unwrap();
        store.insert("/value", array.schunk()).unwrap();
        let schema = Schema::new().column("n", ItemKind::Int64);
        let mut table = store.create_table("/group/table", &schema).unwrap();
        table.append([("n", Data::items(&[0i64, 1, 2, 3]))]).unwrap();
        table.finish().unwrap();
        drop(table);
        store.finish().unwrap();
    }
}

/// The stdout of a command that has to succeed without messages.
pub(crate) fn good(mut command: Command) -> Vec<u8> {
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{command:?}: {errors}");
    output.stdout
}

/// The line of a command that has to fail with one line.
pub(crate) fn bad(status: i32, mut command: Command) -> String {
    let output = command.output().unwrap();
    let line = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(status), "{command:?}: {line}");
    assert!(line.starts_with("blosc2-sql: ") && line.ends_with('\n'), "{command:?}: {line}");
    assert_eq!(line.lines().count(), 1, "{command:?}: {line}");
    assert!(output.stdout.is_empty(), "{command:?}");
    line
}
