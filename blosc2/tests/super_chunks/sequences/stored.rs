//! The result of a sequence: bytes, a file or a directory, read by other implementations.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use blosc2_format::frame::{self, Frame};
use blosc2_format::{Limits, Options, ReadAt, Report, Severity, directory};

use super::c::CSchunk;
use super::simple::{Layer, Model};
use crate::common::{C_READS_FRAMES, assert_same, name};

#[derive(Debug)]
pub(crate) enum Stored {
    Bytes(Vec<u8>),
    /// A file or a directory.
    Path(PathBuf),
}

impl Stored {
    /// Asserts that there are no findings, and that `blosc2-format` and C read the content of the model.
    pub(crate) fn compare(&self, model: &Model) {
        let options = Options { content: true, ..Options::default() };
        let limits = Limits::default();
        let report = match self {
            Self::Bytes(bytes) => {
                read(&mut Frame::open(&bytes[..], &limits).unwrap(), model);
                if C_READS_FRAMES {
                    CSchunk::of(bytes).compare(model);
                }
                frame::check(&bytes[..], &options)
            }
            Self::Path(path) if path.is_dir() => {
                let disk = directory::Disk(path.clone());
                let mut frame = Frame::open_directory(disk.clone(), &limits).unwrap();
                read(&mut frame, model);
                // C takes the number of a chunk's file for a place among the bytes of all chunks, and opens no
                // directory of a few bytes and higher numbers.
                let last = frame.header().cbytes.checked_sub(32);
                let place = |number| frame.offset(number).unwrap().place();
                if C_READS_FRAMES && (0..frame.nchunks()).filter_map(place).max() <= last {
                    CSchunk::open(path).compare(model);
                }
                directory::check(&disk, &options)
            }
            Self::Path(path) => {
                let file = File::open(path).unwrap();
                read(&mut Frame::open(&file, &limits).unwrap(), model);
                if C_READS_FRAMES {
                    CSchunk::open(path).compare(model);
                }
                frame::check(&file, &options)
            }
        };
        nothing_wrong(&report.unwrap());
    }

    /// Copies it to a place where there is nothing.
    pub(crate) fn copy_to(&self, target: &Path) {
        match self {
            Self::Bytes(bytes) => fs::write(target, bytes).unwrap(),
            Self::Path(path) if path.is_dir() => {
                fs::create_dir(target).unwrap();
                for entry in fs::read_dir(path).unwrap() {
                    let path = entry.unwrap().path();
                    fs::copy(&path, target.join(name(&path))).unwrap();
                }
            }
            Self::Path(path) => drop(fs::copy(path, target).unwrap()),
        }
    }
}

fn nothing_wrong(report: &Report) {
    // Notes on gaps that changes leave, and on chunks whose parameters differ from the header.
    let allowed =
        ["frame.gap", "frame.deleted", "frame.chunk.params", "frame.dictionary", "frame.params"];
    let wrong = report.findings.iter().filter(|finding| {
        finding.rule.severity > Severity::Note || !allowed.contains(&finding.rule.id)
    });
    let wrong: Vec<String> =
        wrong.map(|finding| format!("{}: {finding}", finding.rule.id)).collect();
    assert!(wrong.is_empty() && report.is_complete(), "{wrong:#?}");
}

/// Compares what `blosc2-format` reads.
fn read<R: ReadAt>(frame: &mut Frame<R>, model: &Model) {
    let header = frame.header();
    assert_eq!(header.typesize as usize, model.typesize, "format: typesize");
    assert_eq!(header.nbytes, model.nbytes() as u64, "format: bytes");
    assert_eq!(frame.nchunks(), model.chunks.len() as u64, "format: chunks");
    for (index, chunk) in model.chunks.iter().enumerate() {
        let mut found = Vec::new();
        frame.decode_chunk(index as u64, &mut found).unwrap();
        assert_same(&found, &chunk.data, &format!("format: chunk {index}"));
    }
    let meta = frame.metalayers().iter();
    let meta = meta.map(|each| Layer { name: each.name.clone(), content: each.content.clone() });
    assert_eq!(meta.collect::<Vec<_>>(), model.meta, "format: metalayers");
    let names: Vec<String> = frame.vlmetalayers().map(str::to_owned).collect();
    let layer = |name: String| {
        let content = frame.vlmetalayer(&name).unwrap().unwrap();
        Layer { name, content }
    };
    let vlmeta: Vec<Layer> = names.into_iter().map(layer).collect();
    assert_eq!(vlmeta, model.vlmeta, "format: metalayers of variable length");
}
