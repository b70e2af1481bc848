//! Frames that a writer of this crate left in the middle of a change, read by the C library and Python.

use std::ffi::CString;
use std::fs;
use std::io::Cursor;
use std::path::Path;

use blosc2_format::frame::{Writer, journal};
use blosc2_format::{Limits, chunk, frame};
use blosc2_sys as sys;

use crate::common::C_READS_FRAMES;

fn sound() -> Vec<u8> {
    let params = chunk::Params { typesize: 4, ..chunk::Params::default() };
    let mut writer = Writer::new(Cursor::new(Vec::new()), params, &[]).unwrap();
    for chunk in [[1; 4000], [2; 4000]] {
        writer.push(&chunk).unwrap();
    }
    writer.add_vlmetalayer("author", &[7; 100]).unwrap();
    writer.finish().unwrap().into_inner()
}

/// What may be in a file while it is changed, and whether there is a frame to read.
fn states() -> Vec<(&'static str, Vec<u8>, bool)> {
    assert!(blosc2::Codec::BloscLz.is_available(), "this makes the C library ready");
    let sound = sound();
    let len = sound.len() as u64;
    let journal = journal::encode(len, len, &[(0, &sound[..200])]);
    let mut marked = sound.clone();
    marked[journal::MARK_AT as usize] = journal::UNFINISHED;
    let mut without = sound.clone();
    without[journal::MARK_AT as usize] = journal::UNFINISHED_WITHOUT_JOURNAL;
    vec![
        ("half-a-journal", [&sound, &journal[..100]].concat(), true),
        ("journal", [&sound, &journal[..]].concat(), true),
        ("marked", [&marked, &journal[..]].concat(), false),
        ("cut", marked, false),
        ("marked-without", without, false),
        ("sound", sound, true),
    ]
}

/// How many chunks C finds, if it opens the file.
fn nchunks_of_c(path: &Path) -> Option<i64> {
    let path = CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: the path is a string that C copies.
    let schunk = unsafe { sys::blosc2_schunk_open(path.as_ptr()) };
    if schunk.is_null() {
        return None;
    }
    // SAFETY: the super-chunk is live until it is freed, once.
    unsafe {
        let nchunks = (*schunk).nchunks;
        sys::blosc2_schunk_free(schunk);
        Some(nchunks)
    }
}

#[test]
fn c_and_rust_refuse_what_is_marked_and_read_the_others() {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes, readable) in states() {
        let path = folder.path().join(name);
        fs::write(&path, &bytes).unwrap();
        if C_READS_FRAMES {
            assert_eq!(nchunks_of_c(&path), readable.then_some(2), "{name}");
        }
        let frame = frame::Frame::open(&bytes, &Limits::default());
        assert_eq!(frame.is_ok(), readable, "{name}");
        if let Err(error) = frame {
            let text = error.to_string();
            assert!(
                text.contains("a writer was interrupted while it changed this frame"),
                "{text}"
            );
        }
    }
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn python_refuses_what_is_marked_and_reads_the_others() {
    const READ: &str = r#"
import sys
import blosc2
for name in sys.argv[1:]:
    for options in [{"mode": "r"}, {"mode": "a"}, {"mode": "r", "mmap_mode": "r"}]:
        try:
            print(name, len(blosc2.open(name, **options)[:]))
        except RuntimeError:
            print(name, "refused")
"#;
    let folder = tempfile::tempdir().unwrap();
    let (mut names, mut expected) = (Vec::new(), String::new());
    for (name, bytes, readable) in states() {
        let name = format!("{name}.b2frame");
        fs::write(folder.path().join(&name), &bytes).unwrap();
        let line = format!("{name} {}\n", if readable { "8000" } else { "refused" });
        expected.push_str(&line.repeat(3));
        names.push(name);
    }
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    assert_eq!(crate::common::run_python(READ, folder.path(), &names).replace('\r', ""), expected);
}

/// C requires that a frame in memory has the length in its header.
#[test]
fn c_refuses_what_is_marked_in_memory() {
    for (name, mut bytes, _) in states() {
        let len = i64::try_from(bytes.len()).unwrap();
        // SAFETY: C copies the bytes, and there are `len` of them.
        let schunk = unsafe { sys::blosc2_schunk_from_buffer(bytes.as_mut_ptr(), len, true) };
        assert_eq!(schunk.is_null(), name != "sound" || !C_READS_FRAMES, "{name}");
        if !schunk.is_null() {
            // SAFETY: the super-chunk is live, and nobody uses it after this.
            unsafe { sys::blosc2_schunk_free(schunk) };
        }
    }
}
