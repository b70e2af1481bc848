//! Golden files: written by the versions 2.0.0-a2 to 2.15 of C-Blosc2.
//!
//! `files/LIST` has a line for each file, with the name of its decoded data in `files/raw`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use blosc2_format::{Error, Options, Report, Severity};

mod current;
mod early;
mod every_file;
mod findings;
mod formats_md;
mod frames;
mod packed;
mod written;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/files")
}

/// A golden file and its contents.
struct Golden {
    path: String,
    /// The data under `raw`, and the content of ancillary chunks by their name.
    contents: BTreeMap<String, Vec<u8>>,
}

impl Golden {
    fn all(kind: &str) -> Vec<Self> {
        let list = fs::read_to_string(folder().join("LIST")).unwrap();
        let lines = list.lines().filter(|line| line.starts_with(kind));
        let golden = lines.map(|line| {
            let mut fields = line.split(' ');
            let path = fields.next().unwrap().to_owned();
            let contents = fields.map(|field| {
                let (name, raw) = field.split_once('=').unwrap();
                (name.to_owned(), fs::read(folder().join("raw").join(raw)).unwrap())
            });
            Self { contents: contents.collect(), path }
        });
        golden.collect()
    }

    fn named(path: &str) -> Self {
        Self::all(path).pop().unwrap()
    }

    fn bytes(&self) -> Vec<u8> {
        fs::read(folder().join(&self.path)).unwrap()
    }

    fn raw(&self) -> &[u8] {
        &self.contents["raw"]
    }

    fn is(&self, name: &str) -> bool {
        self.path.contains(name)
    }
}

const CONTENT: fn() -> Options = || Options { content: true, map: true, ..Options::default() };

/// Returns the findings of a report without notes, and asserts that its map covers all bytes.
fn ids(report: &Report, bytes: &[u8]) -> Vec<&'static str> {
    let mut free = 0;
    for region in report.regions.iter().filter(|_| !bytes.is_empty()) {
        assert_eq!(region.offset, free, "{region:?}");
        free += region.len;
    }
    assert!(report.regions.is_empty() || free == bytes.len() as u64, "{:?}", report.regions);
    let findings = report.findings.iter().filter(|finding| finding.rule.severity > Severity::Note);
    findings.map(|finding| finding.rule.id).collect()
}

/// All data of a super-chunk, given its number of chunks.
fn data(
    nchunks: u64,
    mut decode: impl FnMut(u64, &mut Vec<u8>) -> Result<(), Error>,
) -> Result<Vec<u8>, Error> {
    let (mut all, mut chunk) = (Vec::new(), Vec::new());
    for number in 0..nchunks {
        decode(number, &mut chunk)?;
        all.extend(&chunk);
    }
    Ok(all)
}
