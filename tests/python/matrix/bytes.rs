//! The same data and parameters give the same bytes as Python's, with one thread.
//!
//! Left out are:
//! - the streams of zlib, which come from another implementation here: everything else is the same, and so are the
//!   decoded blocks;
//! - frames that Python creates from separate chunks in memory: C-Blosc2 copies them to a new frame, whose header has
//!   no threads and no dictionary, and stores chunks of zeros as ordinary chunks;
//! - super-chunks without chunks or with a short first chunk: in Python the chunk size is set at creation, here by the
//!   first chunk.

use std::fs;
use std::path::Path;

use blosc2::Codec;
use blosc2_format::chunk::{Chunk, Decoder};
use blosc2_format::directory::Disk;
use blosc2_format::frame::Frame;
use blosc2_format::{Limits, ReadAt};

use super::case::{Case, Place, Shape};
use crate::common::{assert_same, listing};

/// Asserts that both have written the same bytes.
pub(crate) fn compare(case: &Case, python: &Path, rust: &Path) {
    let (python, rust) = (python.join(&case.name), rust.join(&case.name));
    let is_short = matches!(case.shape, Shape::Chunks { size } if case.bytes.len() < size);
    if case.place == Place::Cframe || is_short {
        return;
    }
    let limits = Limits::default();
    let is_zlib = case.params.iter().any(|params| params.codec == Codec::Zlib);
    match (case.place == Place::Directory, is_zlib) {
        (true, true) => {
            let open = |path| Frame::open_directory(Disk(path), &limits).unwrap();
            compare_around_streams(open(python), open(rust));
        }
        (true, false) => {
            let (its, ours) = (listing(&python), listing(&rust));
            assert_eq!(ours.len(), its.len());
            for ((its, _), (ours, _)) in its.iter().zip(&ours) {
                assert_eq!(ours.file_name(), its.file_name());
                assert_same(&fs::read(ours).unwrap(), &fs::read(its).unwrap(), "a file of it");
            }
        }
        (false, true) => {
            let open = |path| Frame::open(fs::read(path).unwrap(), &limits).unwrap();
            compare_around_streams(open(&python), open(&rust));
        }
        (false, false) => {
            assert_same(&fs::read(rust).unwrap(), &fs::read(python).unwrap(), "the frame");
        }
    }
}

/// Asserts that only the streams of the codec differ, and values that depend on their lengths.
fn compare_around_streams<R: ReadAt>(python: Frame<R>, rust: Frame<R>) {
    let mut header = python.header().clone();
    (header.frame_len, header.cbytes) = (rust.header().frame_len, rust.header().cbytes);
    assert_eq!(*rust.header(), header);
    assert_eq!(rust.metalayers(), python.metalayers());
    let names: Vec<String> = python.vlmetalayers().map(str::to_owned).collect();
    assert_eq!(rust.vlmetalayers().collect::<Vec<_>>(), names);
    for name in names {
        assert_eq!(rust.vlmetalayer(&name).unwrap(), python.vlmetalayer(&name).unwrap(), "{name}");
    }
    assert_eq!(rust.nchunks(), python.nchunks());
    for number in 0..python.nchunks() {
        let stored = [python.chunk(number).unwrap(), rust.chunk(number).unwrap()];
        let typesize = header.typesize as usize;
        let open = |bytes| Chunk::new(bytes, &Limits::default()).unwrap().with_typesize(typesize);
        let [its, ours] = stored.each_ref().map(|bytes| open(bytes));
        let mut header = its.header().clone();
        header.cbytes = ours.header().cbytes;
        // If compression gains something in only one of them, the other stores the data.
        header.memcpyed = ours.header().memcpyed;
        assert_eq!(*ours.header(), header, "chunk {number}");
        for block in 0..its.nblocks() {
            let [its, ours] = [&its, &ours].map(|chunk| {
                let mut data = vec![0; chunk.block_size(block)];
                Decoder::default().decode_block(chunk, block, &mut data).unwrap();
                data
            });
            assert_same(&ours, &its, &format!("block {block} of chunk {number}"));
        }
        // C reads both alike.
        if typesize <= 255 {
            let [its, ours] = stored.map(|bytes| blosc2::decompress::<u8>(&bytes).unwrap());
            assert_same(&ours, &its, &format!("chunk {number}, by C"));
        }
    }
}
