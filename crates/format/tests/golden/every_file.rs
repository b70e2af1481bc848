//! Every golden file, read and checked by the functions for all kinds of files.

use std::path::{Path, PathBuf};

use blosc2_format::file::{self, File, Kind};
use blosc2_format::{Error, Limits, Options, Severity};
use blosc2_testing::Rng;

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/files")
}

/// A golden file, and the names of its decoded contents: `raw`, `metadata`, ...
struct Golden {
    name: String,
    contents: Vec<(String, Vec<u8>)>,
}

fn all() -> Vec<Golden> {
    let list = std::fs::read_to_string(golden().join("LIST")).unwrap();
    let content = |text: &str| {
        let (name, file) = text.split_once('=').unwrap();
        (name.to_owned(), std::fs::read(golden().join("raw").join(file)).unwrap())
    };
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap().to_owned();
        Golden { name, contents: words.map(content).collect() }
    };
    list.lines().map(line).collect()
}

fn kind(name: &str) -> Kind {
    match name {
        name if name.starts_with("packed/") => Kind::Packed,
        name if name.starts_with("early-frame/") => Kind::EarlyFrame,
        name if name.contains("/beta.") => Kind::FrameVersion1,
        name if name.contains("_sparse_") => Kind::Directory,
        _ => Kind::Frame,
    }
}

fn raw(golden: &Golden) -> &[u8] {
    &golden.contents.iter().find(|(name, _)| name == "raw").unwrap().1
}

/// All data of a file: its chunks, or the items of its array.
fn data(file: &mut File<'_>) -> Result<Vec<u8>, Error> {
    if let Some(geometry) = file.geometry() {
        let whole: Vec<_> = geometry.shape().iter().map(|&size| 0..size).collect();
        return file.read_box(&whole);
    }
    let (mut all, mut chunk) = (Vec::new(), Vec::new());
    for number in 0..file.info().nchunks {
        file.decode_chunk(number, &mut chunk)?;
        assert_eq!(file.chunk_nbytes(number)?, chunk.len() as u64);
        all.append(&mut chunk);
    }
    Ok(all)
}

#[test]
fn every_golden_file_is_recognised_and_read() {
    let (mut read, mut arrays) = (0, 0);
    for golden in all() {
        let name = &golden.name;
        let path = self::golden().join(name);
        assert_eq!(file::recognise_path(&path).unwrap(), Some(kind(name)), "{name}");
        let mut file = match File::open(&path, &Limits::default()) {
            Ok(file) => file,
            Err(error) => {
                assert!(name.contains("NEGATIVE"), "{name}: {error}");
                continue;
            }
        };
        let info = file.info().clone();
        assert_eq!(info.kind, kind(name), "{name}");
        match data(&mut file) {
            // The file does not record how to read its appended chunks.
            Ok(found) if name.contains("packed/") && name.contains("QUIRK") => {
                assert!(found != raw(&golden), "{name}");
            }
            Ok(found) => {
                assert!(found == raw(&golden), "{name}");
                if file.meta().is_none() {
                    assert_eq!(info.nbytes, found.len() as u64, "{name}");
                }
                read += 1;
            }
            Err(error) => {
                // Codecs that no longer exist.
                let undecodable = name.contains("lizard") || name.contains("a3_zstd");
                assert!(undecodable, "{name}: {error}");
            }
        }
        arrays += usize::from(file.meta().is_some());
        for (what, content) in golden.contents.iter().filter(|(what, _)| what != "raw") {
            assert!(info.vlmetalayers.contains(what), "{name}: {:?}", info.vlmetalayers);
            assert_eq!(file.vlmetalayer(what).unwrap().as_ref(), Some(content), "{name}");
        }
    }
    assert!(read > 100 && arrays > 5, "{read} {arrays}");
}

#[test]
fn every_golden_file_is_checked() {
    let options = Options { content: true, map: true, ..Options::default() };
    for golden in all() {
        let name = &golden.name;
        let (kind, report) = file::check_path(self::golden().join(name), &options).unwrap();
        assert_eq!(kind, Some(self::kind(name)), "{name}");
        let good = !name.contains("NEGATIVE");
        assert_eq!(report.is_good(), good, "{name}: {:#?}", report.findings);
        assert!(!report.regions.is_empty() || !good, "{name}");
    }
}

#[test]
fn a_frame_inside_a_larger_file_is_read() {
    let golden =
        all().into_iter().find(|each| each.name.ends_with("2.10.0_b2nd_contig_lz4_2d.b2nd"));
    let golden = golden.unwrap();
    let frame = std::fs::read(self::golden().join(&golden.name)).unwrap();
    let bytes = [b"something before".as_slice(), &frame, b"and after"].concat();
    let source = blosc2_format::read_at::AtOffset::new(&bytes, 16);
    let mut file = File::from_reader(source, &Limits::default()).unwrap();
    assert_eq!(data(&mut file).unwrap(), raw(&golden));
}

#[test]
fn what_is_none_of_the_formats_is_told() {
    for bytes in [&b""[..], b"\x00", b"some text that is longer than sixteen bytes", &[0; 200]] {
        assert_eq!(file::recognise(bytes).unwrap(), None, "{bytes:?}");
        assert!(File::from_reader(bytes, &Limits::default()).is_err());
        let (kind, report) = file::check(bytes, &Options::default()).unwrap();
        assert_eq!(kind, None);
        let [finding] = report.findings.as_slice() else { panic!("{report:?}") };
        assert_eq!((finding.rule.id, finding.rule.severity), ("file.kind", Severity::Error));
    }
    assert!(File::open(golden(), &Limits::default()).is_err(), "a directory of something else");
    let (kind, report) = file::check_path(golden(), &Options::default()).unwrap();
    assert!(kind.is_none() && !report.is_good());
}

#[test]
fn a_wrong_byte_at_the_start_does_not_hide_the_kind() {
    for golden in all() {
        let path = self::golden().join(&golden.name);
        if path.is_dir() {
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        for at in 1..10 {
            let mut bytes = bytes.clone();
            bytes[at] ^= 0x20;
            let (found, report) = file::check(&bytes, &Options::default()).unwrap();
            if kind(&golden.name) != Kind::Packed {
                assert!(found.is_some(), "{} byte {at}", golden.name);
                assert!(!report.findings.is_empty(), "{} byte {at}", golden.name);
            }
        }
    }
}

#[test]
fn what_is_good_by_the_check_is_read() {
    let limits = Limits { memory: 64 << 20, ..Limits::default() };
    let options = Options { content: true, map: true, limits, ..Options::default() };
    let mut rng = Rng(1);
    let mut below = |end: usize| rng.index(end);
    for golden in all() {
        let path = self::golden().join(&golden.name);
        if path.is_dir() {
            continue;
        }
        let good = std::fs::read(&path).unwrap();
        for round in 0..40 {
            let mut bytes = good.clone();
            for _ in 0..=below(3) {
                // Most of the structure is at the start.
                let end = if below(2) == 0 { bytes.len().min(200) } else { bytes.len() };
                bytes[below(end)] = [0, 1, 0x7f, 0x80, 0xff, below(256) as u8][below(6)];
            }
            if round % 8 == 0 {
                bytes.truncate(below(bytes.len()));
            }
            let (_, report) = file::check(&bytes, &options).unwrap();
            let read = File::from_reader(&bytes, &limits).and_then(|mut file| data(&mut file));
            if report.is_good() {
                let refused = matches!(read, Err(Error::Unsupported(_) | Error::Limit { .. }));
                assert!(read.is_ok() || refused, "{} {round}: {read:?}", golden.name);
            }
        }
    }
}
