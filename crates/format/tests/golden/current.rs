//! Frames and directories of 2.0.0-rc.1 and later, written again from their chunks.

use std::io::Cursor;

use blosc2_format::Limits;
use blosc2_format::chunk::{Params, SplitMode};
use blosc2_format::directory::{self, Disk, Folder, Memory};
use blosc2_format::frame::{Frame, Header, Writer};

use crate::{Golden, folder};

fn params(header: &Header) -> Params {
    let split = match header.split_mode {
        1 => SplitMode::Always,
        2 => SplitMode::Never,
        3 => SplitMode::Auto,
        _ => SplitMode::ForwardCompat,
    };
    Params {
        codec: header.codec,
        codec_meta: header.codec_meta,
        level: header.level,
        typesize: header.typesize,
        blocksize: Some(header.blocksize).filter(|&size| size > 0),
        filters: header.filters,
        filters_meta: header.filters_meta,
        split,
    }
}

/// Copies chunks and metalayers of variable length.
macro_rules! copy {
    ($frame:ident, $writer:ident) => {
        for number in 0..$frame.nchunks() {
            $writer.push_chunk(&$frame.chunk(number).unwrap()).unwrap();
        }
        for name in $frame.vlmetalayers() {
            let chunk = $frame.vlmetalayer_chunk(name).unwrap();
            $writer.add_vlmetalayer_chunk(name, &chunk).unwrap();
        }
    };
}

/// Converts a frame as 3.3.2 writes it to one of the version that wrote the golden file.
fn as_then(golden: &Golden, mut frame: Vec<u8>, header_len: usize, cbytes: usize) -> Vec<u8> {
    let rc1 = golden.is("/rc1_");
    let index = if golden.is("_sparse_") { header_len } else { header_len + cbytes };
    if (rc1 || golden.is("/2.0.0_")) && !golden.is("_n0") {
        // Chunks had version 4, and the flag against splitting was set less often.
        frame[index] = 4;
        if golden.is("special") {
            frame[index + 2] &= !0b1_0000;
        }
    }
    if rc1 {
        // The code of a codec was written for plugins only.
        frame[0x4d] = 0;
    }
    frame
}

#[test]
fn contiguous_frames_are_written_the_same() {
    let all = Golden::all("old-frames/");
    let mut same = 0;
    for golden in all.iter().filter(|golden| !golden.is("/beta.") && !golden.is("_sparse_")) {
        let bytes = golden.bytes();
        let frame = Frame::open(&bytes, &Limits::default()).unwrap();
        let header = frame.header();
        let out = Cursor::new(Vec::new());
        let mut writer = Writer::new(out, params(header), frame.metalayers()).unwrap();
        copy!(frame, writer);
        let written = writer.finish().unwrap().into_inner();
        let (header_len, cbytes) = (header.header_len as usize, header.cbytes as usize);
        let written = as_then(golden, written, header_len, cbytes);
        if golden.is("b2nd_contig_lz4_2d") {
            // The older BloscLZ compressed the index to one byte less.
            assert_eq!(written.len(), bytes.len() + 1);
            let index = header_len + cbytes;
            assert!(written[0x18..index] == bytes[0x18..index], "{}", golden.path);
            continue;
        }
        assert!(written == bytes, "{}", golden.path);
        same += 1;
    }
    assert_eq!(same, 24);
}

#[test]
fn directories_are_written_the_same() {
    let all = Golden::all("old-frames/");
    for golden in all.iter().filter(|golden| golden.is("_sparse_")) {
        let disk = Disk(folder().join(&golden.path));
        let frame = Frame::open_directory(disk.clone(), &Limits::default()).unwrap();
        let header = frame.header();
        let memory = Memory::default();
        let layers = frame.metalayers();
        let mut writer = Writer::new_directory(memory, params(header), layers).unwrap();
        copy!(frame, writer);
        let mut written = writer.finish().unwrap().0;
        let index = written.remove(directory::INDEX).unwrap();
        let index = as_then(golden, index, header.header_len as usize, 0);
        written.insert(directory::INDEX.to_owned(), index);
        let names = disk.names().unwrap();
        assert_eq!(written.len(), names.len(), "{}", golden.path);
        for name in names {
            let bytes = std::fs::read(disk.0.join(&name)).unwrap();
            if golden.is("b2nd") && name == directory::INDEX {
                assert_eq!(written[&name].len(), bytes.len() + 1, "as in a contiguous frame");
            } else {
                assert!(written[&name] == bytes, "{} {name}", golden.path);
            }
        }
    }
}
