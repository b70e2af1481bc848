//! Helpers of the tests of the command: a folder to run it in, and input files.

// Each test file uses a part of this.
#![allow(dead_code)]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;

use blosc2::{CParams, NDArray, SChunk};
pub(crate) use blosc2_testing::{OTHER_ORDER, native};
use serde_json::Value;
use tempfile::TempDir;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_blosc2");

/// The folder of a test, in which the command runs.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn run(&self, args: &[&str]) -> Output {
        Command::new(PROGRAM).current_dir(self.0.path()).args(args).output().unwrap()
    }

    /// Runs the command with `input` as stdin.
    pub(crate) fn piped(&self, args: &[&str], input: &[u8]) -> Output {
        let mut child = self.start(args, Stdio::piped());
        let mut stdin = child.stdin.take().unwrap();
        thread::scope(|scope| {
            scope.spawn(move || {
                // The command may end before it has read everything.
                let _ = stdin.write_all(input);
            });
            child.wait_with_output().unwrap()
        })
    }

    /// Starts the command, with pipes as stdin and stderr.
    pub(crate) fn start(&self, args: &[&str], stdout: Stdio) -> Child {
        self.spawn(Command::new(PROGRAM).args(args), stdout)
    }

    /// Starts a program in the folder, with pipes as stdin and stderr.
    pub(crate) fn spawn(&self, command: &mut Command, stdout: Stdio) -> Child {
        command.current_dir(self.0.path()).stdin(Stdio::piped());
        command.stdout(stdout).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Runs a command that has to succeed without messages, and returns its stdout.
    pub(crate) fn good(&self, args: &[&str]) -> Vec<u8> {
        let output = self.run(args);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && errors.is_empty(), "{args:?}: {errors}");
        output.stdout
    }

    /// Runs a command that has to fail with one line and without changing any file, and returns the line.
    pub(crate) fn bad(&self, status: i32, args: &[&str]) -> String {
        let before = self.files();
        let output = self.run(args);
        let line = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(status), "{args:?}: {line}");
        assert!(line.starts_with("blosc2: ") && line.ends_with('\n'), "{args:?}: {line}");
        assert_eq!(line.lines().count(), 1, "{args:?}: {line}");
        assert!(self.files() == before, "{args:?} changed files");
        line
    }

    pub(crate) fn info(&self, name: &str) -> Value {
        serde_json::from_slice(&self.good(&["info", name, "--json"])).unwrap()
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) {
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

    /// Creates an array of this shape, whose items are their own indices, and returns its bytes.
    pub(crate) fn array(
        &self,
        name: &str,
        shape: &[u64],
        chunks: &[u64],
        blocks: &[u64],
    ) -> Vec<u8> {
        let items: Vec<u32> = (0..shape.iter().product::<u64>() as u32).collect();
        let builder = NDArray::builder().chunk_shape(chunks).block_shape(blocks);
        builder.target(self.path(name)).from_slice(&items, shape).unwrap();
        items.iter().flat_map(|item| item.to_ne_bytes()).collect()
    }

    /// Creates a super-chunk of three chunks of 100 items and one of 50, and returns its bytes.
    pub(crate) fn schunk(&self, name: &str, params: &CParams) -> Vec<u8> {
        let items: Vec<u16> = (0..350).collect();
        let mut schunk = SChunk::create::<u16>(self.path(name), params).unwrap();
        for chunk in items.chunks(100) {
            schunk.append(chunk).unwrap();
        }
        items.iter().flat_map(|item| item.to_ne_bytes()).collect()
    }
}

/// Files that come with C-Blosc2.
pub(crate) fn upstream_files(extension: &str, folders: &[&str]) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for folder in folders {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../c-blosc2").join(folder);
        let entries = fs::read_dir(&folder).unwrap_or_else(|error| {
            panic!("the sources of C-Blosc2 are needed ({}): {error}", folder.display())
        });
        files.extend(entries.map(|entry| entry.unwrap().path()));
    }
    files.retain(|file| file.extension().is_some_and(|found| found == extension));
    files.sort();
    files
}

/// Files that old versions wrote.
pub(crate) fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../format/tests/golden/files")
}

/// The golden files in the folders whose names begin with `start`, and their decoded data.
pub(crate) fn golden_files(start: &str) -> Vec<(String, Vec<u8>)> {
    let list = fs::read_to_string(golden().join("LIST")).unwrap();
    let file = |line: &str| {
        let mut words = line.split_whitespace();
        let path = golden().join(words.next()?);
        let raw = words.next()?.strip_prefix("raw=")?;
        Some((path.to_str()?.to_owned(), fs::read(golden().join("raw").join(raw)).ok()?))
    };
    let files: Vec<_> = list.lines().filter(|line| line.starts_with(start)).map(file).collect();
    files.into_iter().collect::<Option<_>>().unwrap()
}

/// Files that C-Blosc2 does not open.
pub(crate) fn old_files() -> Vec<(String, Vec<u8>)> {
    let all = ["early-frame/", "old-frames/beta", "packed/"].map(golden_files).concat();
    // Codecs that no longer exist, and files that were never readable.
    let lost = ["lizard", "a3_zstd", "NEGATIVE", "QUIRK_blosclz_delta"];
    all.into_iter().filter(|(path, _)| !lost.iter().any(|each| path.contains(each))).collect()
}
