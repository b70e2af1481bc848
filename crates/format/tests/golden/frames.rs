//! The frames and directories that C-Blosc2 2.0.0-rc.1 to 2.15 wrote, which have the current layout.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use blosc2_format::frame::{self, Frame};
use blosc2_format::{Limits, Options, Severity, directory};

/// The files of `golden/LIST` from 2.0.0-rc.1 on, with the data of each.
fn golden() -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/files");
    let list = fs::read_to_string(folder.join("LIST")).unwrap();
    let later = |line: &&str| line.starts_with("old-frames/") && !line.contains("/beta.");
    let pair = |line: &str| {
        let (path, raw) = line.split_once(" raw=").unwrap();
        (folder.join(path), fs::read(folder.join("raw").join(raw)).unwrap())
    };
    list.lines().filter(later).map(pair).collect()
}

/// The data of all chunks, and the frame.
fn read(path: &Path) -> (Vec<u8>, Frame<File>) {
    let limits = Limits::default();
    let mut frame = if path.is_dir() {
        Frame::open_directory(directory::Disk(path.into()), &limits)
    } else {
        Frame::open(File::open(path).unwrap(), &limits)
    }
    .unwrap_or_else(|error| panic!("{path:?}: {error}"));
    let (mut all, mut chunk) = (Vec::new(), Vec::new());
    for number in 0..frame.nchunks() {
        frame.decode_chunk(number, &mut chunk).unwrap();
        all.extend(&chunk);
    }
    (all, frame)
}

#[test]
fn of_older_versions_are_right_and_read() {
    let golden = golden();
    assert_eq!(golden.len(), 36);
    for (path, raw) in golden {
        let options = Options { content: true, ..Options::default() };
        let report = if path.is_dir() {
            directory::check(&directory::Disk(path.clone()), &options).unwrap()
        } else {
            frame::check(&File::open(&path).unwrap(), &options).unwrap()
        };
        assert!(report.worst() <= Some(Severity::Note), "{path:?}: {:#?}", report.findings);

        let (data, frame) = read(&path);
        // The items of an array are in another order.
        if path.extension().is_some_and(|extension| extension == "b2frame") {
            assert!(data == raw, "{path:?}");
        } else {
            assert!(frame.metalayer("b2nd").is_some(), "{path:?}");
        }
        let name = path.to_str().unwrap();
        if name.contains("_meta") {
            assert_eq!(frame.metalayer("my_metalayer1"), Some(&b"my_content1"[..]));
        }
        if name.contains("_meta_vl") {
            let repeated: Vec<u8> = (0..300).map(|item| (item * 7) as u8).collect();
            assert_eq!(frame.metalayer("second"), Some(&*repeated));
            let updated = b"updated and somewhat longer content".to_vec();
            assert_eq!(frame.vlmetalayer("vl1").unwrap(), Some(updated));
            assert_eq!(frame.vlmetalayer("vlmeta_two").unwrap(), Some(repeated));
        }
    }
}
