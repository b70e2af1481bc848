//! Real files, from upstream's sources.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use crate::common::{assert_same, name, upstream_files};
use crate::content::Content;
use crate::{c, rust};
use blosc2_format::{Error, Limits, Severity};

/// Asserts that a file has no findings and is read as the C library reads it. Returns the content that C reads, and
/// whether the file can be read without C.
fn check_file(path: &Path) -> (Content, bool) {
    let what = name(path);
    let limits = Limits::default();
    let expected = c::read(path).unwrap_or_else(|error| panic!("{what}: {error}"));
    let report = rust::check(path, &limits).unwrap_or_else(|error| panic!("{what}: {error}"));
    let findings: Vec<String> = report
        .findings
        .iter()
        .filter(|finding| finding.rule.severity == Severity::Error)
        .map(ToString::to_string)
        .collect();
    assert!(findings.is_empty(), "{what}: {findings:#?}");
    match rust::read(path, &limits) {
        Ok(found) => found.assert_same(&expected, &what),
        Err(Error::Unsupported(_)) => return (expected, false),
        Err(error) => panic!("{what}: {error}"),
    }
    (expected, true)
}

/// Runs a check for each, and fails with all failures.
fn check_all<T>(cases: &[T], mut check: impl FnMut(&T) -> bool) -> usize {
    let mut wrong = Vec::new();
    let mut read = 0;
    for case in cases {
        match catch_unwind(AssertUnwindSafe(|| check(case))) {
            Ok(is_read) => read += usize::from(is_read),
            Err(panic) => wrong.push(match panic.downcast::<String>() {
                Ok(message) => *message,
                Err(_) => "it panicked".into(),
            }),
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {} are wrong:\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n")
    );
    read
}

#[test]
fn frames_in_upstreams_sources_are_read_as_c_reads_them() {
    let files: Vec<PathBuf> =
        [("compat", ".b2frame"), ("tests/fuzz/corpus", ".b2frame"), ("plugins/test_data", ".b2nd")]
            .iter()
            .flat_map(|(folder, end)| upstream_files(folder, end))
            .collect();
    assert_eq!(files.len(), 3 + 5 + 2);
    assert_eq!(check_all(&files, |path| check_file(path).1), files.len());
}

#[test]
fn chunks_in_upstreams_sources_are_read_as_c_reads_them() {
    let limits = Limits::default();
    let mut files = upstream_files("compat", ".cdata");
    // Two of them are the output of a filter instead of chunks.
    files.retain(|path| !name(path).contains("shuffle-2"));
    assert_eq!(files.len(), 27);
    let read = check_all(&files, |path| {
        let report = rust::check(path, &limits).unwrap();
        assert!(report.is_good(), "{}: {:?}", name(path), report.findings);
        let found = rust::read(path, &limits).unwrap();
        let expected = blosc2::decompress::<u8>(&fs::read(path).unwrap()).unwrap();
        assert_same(&found.chunks[0], &expected, &name(path));
        true
    });
    assert_eq!(read, files.len());
}
