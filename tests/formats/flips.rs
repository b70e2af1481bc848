//! One wrong byte in the header, the index or the trailer of a frame leads to a finding at its position.

use std::fs;

use blosc2_format::b2nd::Meta;
use blosc2_format::frame::Header;
use blosc2_format::{Finding, Limits, Severity};

use crate::common::{Kind, data};
use crate::{c, rust};

/// Bits whose change cannot be found: the section, the offset of the first byte in it, the number of bytes, the bits,
/// and the reason.
type Free = (Section, usize, usize, u8, &'static str);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    Header,
    Index,
    Trailer,
}

use Section::{Header as H, Index as I, Trailer as T};

const FREE: [Free; 25] = [
    (H, 0x1b, 1, 0x10, "the level, which the chunks do not tell"),
    (H, 0x1c, 1, 0x01, "split modes 3 and 4, which do the same"),
    (H, 0x38, 1, 0x01, "the block size, which is rounded down to whole items"),
    (H, 0x3f, 2, 0xff, "threads for compression, any positive number"),
    (H, 0x42, 2, 0xff, "threads for decompression, any positive number"),
    (H, 0x4d, 1, 0x01, "the codec again, where early versions had 0"),
    (H, 0x4e, 1, 0x01, "the codec's parameter, where 2.0.0-rc.1 had the codec"),
    (H, 0x5f, 4, 0x11, "the name of the array's metalayer: it is another one then"),
    (H, 0x69, 4, 0x11, "the name of a metalayer"),
    (H, 0x86, 1, 0x01, "a shape that is cut into as many chunks"),
    (H, 0xac, 1, 0x01, "a dtype of items as long"),
    (H, 0xb4, 5, 0xff, "the content of a metalayer"),
    (I, 0x00, 1, 0x01, "chunk versions 4 and 5, which are the same"),
    (I, 0x02, 1, 0x10, "whether blocks are split, in a chunk that is stored"),
    (T, 0x0a, 5, 0x11, "the name of a metalayer"),
    (T, 0x1c, 1, 0x01, "chunk versions 4 and 5, which are the same"),
    (T, 0x1e, 1, 0x90, "the codec and split blocks, in a chunk that is stored"),
    (T, 0x1f, 1, 0xff, "the typesize of a chunk that is stored"),
    (T, 0x24, 1, 0x01, "the block size of a chunk that is stored"),
    (T, 0x2c, 6, 0xff, "the filters of a chunk that is stored"),
    (T, 0x32, 2, 0xff, "the codec of a chunk that is stored"),
    (T, 0x34, 6, 0xff, "the parameters of the filters of a chunk that is stored"),
    (T, 0x3b, 1, 0x91, "a dictionary, which stored data does not need"),
    (T, 0x3c, 5, 0xff, "the content of a metalayer"),
    (T, 0x40, 1, 0xff, "the content of a metalayer"),
];

/// The maximum distance between the changed byte and the bytes that its finding names.
const NEAR: u64 = 16;

fn is_about(finding: &Finding, at: u64) -> bool {
    at + NEAR >= finding.offset && at < finding.offset + finding.len.max(1) + NEAR
}

/// A small array with a metalayer of each kind beside its own.
fn frame() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("array.b2nd");
    let meta = Meta {
        shape: vec![11, 10],
        chunks: vec![4, 10],
        blocks: vec![2, 10],
        dtype: Some("<i4".into()),
        dtype_format: 0,
    };
    let mut params = c::params(1, 4, &[(1, 0)]);
    params.blocksize = 80;
    let layers = [("b2nd", meta.to_bytes().unwrap()), ("user", b"\xa4text".to_vec())];
    let mut writer = c::Writer::create(&path, true, params, &layers);
    for seed in 0..3 {
        writer.append(&data(Kind::Mixed, 160, seed));
    }
    writer.vlmeta("notes", b"\xa4some");
    drop(writer);
    fs::read(path).unwrap()
}

#[test]
fn a_wrong_byte_in_the_structure_is_found_in_its_place() {
    let frame = frame();
    let header = Header::parse(&frame).unwrap();
    let chunks = header.header_len as usize..header.header_len as usize + header.cbytes as usize;
    let trailer_len = frame[frame.len() - 22..].first_chunk().unwrap();
    let trailer = frame.len() - u32::from_be_bytes(*trailer_len) as usize;
    let mut unused: Vec<&Free> = FREE.iter().collect();
    let limits = Limits::default();
    let report = rust::check_bytes(&frame, &limits);
    assert!(report.worst() < Some(Severity::Warning), "the frame is intact: {report:?}");

    let mut missed = Vec::new();
    for at in (0..frame.len()).filter(|at| !chunks.contains(at)) {
        for flip in [0x01, 0x80, 0xff, 0x10] {
            let mut broken = frame.clone();
            broken[at] ^= flip;
            let report = rust::check_bytes(&broken, &limits);
            let is_found = report.findings.iter().any(|finding| is_about(finding, at as u64));
            let (section, start) = match at {
                at if at < chunks.start => (Section::Header, 0),
                at if at < trailer => (Section::Index, chunks.end),
                _ => (Section::Trailer, trailer),
            };
            let is_free = |free: &Free| {
                let (of, first, len, bits, _) = free;
                let bytes = start + first..start + first + len;
                *of == section && bytes.contains(&at) && flip & !bits == 0
            };
            if !is_found {
                unused.retain(|free| !is_free(free));
            }
            if !is_found && !FREE.iter().any(is_free) {
                let findings: Vec<String> =
                    report.findings.iter().map(ToString::to_string).collect();
                missed.push(format!(
                    "{at:#x}, {section:?} {:#x}: {:#04x} to {:#04x}: {findings:?}",
                    at - start,
                    frame[at],
                    broken[at]
                ));
            }
        }
    }
    assert!(unused.is_empty(), "these are found by now: {unused:?}");
    assert!(missed.is_empty(), "{}:\n{}", missed.len(), missed.join("\n"));
}
