//! A wrong value in each field of the old layouts, and the findings of the check.

use std::ops::Range;

use blosc2_format::{Options, Part, Report, Severity, early, packed};

use crate::{CONTENT, Golden};

/// A layout, and a file that has all of its parts.
struct Subject {
    bytes: Vec<u8>,
    check: fn(&[u8], &Options) -> Report,
}

impl Subject {
    fn frame(path: &str) -> Self {
        Self { bytes: Golden::named(path).bytes(), check: |b, o| early::check(b, o).unwrap() }
    }

    fn packed(path: &str) -> Self {
        Self { bytes: Golden::named(path).bytes(), check: |b, o| packed::check(b, o).unwrap() }
    }

    fn with(&self, at: usize, bytes: &[u8]) -> Vec<u8> {
        let mut wrong = self.bytes.clone();
        wrong[at..at + bytes.len()].copy_from_slice(bytes);
        wrong
    }

    /// Sets each field to a wrong value and expects a finding of the rule, at the field or at the given position.
    fn expect(&self, table: &[(usize, &[u8], &str)]) {
        for &(at, bytes, id) in table {
            let (id, place) = id.split_once('@').unwrap_or((id, ""));
            let place = if place.is_empty() { at } else { place.parse().unwrap() } as u64;
            let report = (self.check)(&self.with(at, bytes), &CONTENT());
            let found = report.findings.iter().any(|finding| {
                let range = finding.offset..finding.offset + finding.len.max(1);
                finding.rule.id == id && range.contains(&place)
            });
            assert!(found, "{at:#x} {bytes:02x?}: {id} at {place} in {:#?}", report.findings);
        }
    }

    /// Changes each byte outside chunks, names and contents of metalayers in six ways. Each change leads to a warning
    /// or an error, except in the ranges `free`.
    fn walk(&self, free: &[Range<usize>]) {
        let whole = (self.check)(&self.bytes, &CONTENT());
        let count = |report: &Report| {
            let findings = report.findings.iter();
            findings.filter(|finding| finding.rule.severity > Severity::Note).count()
        };
        let data = |part: &Part| {
            matches!(part, Part::Chunk(_) | Part::Ancillary(_) | Part::VlMetalayer(_) | Part::Gap)
        };
        for at in 0..self.bytes.len() {
            let here = |region: &&blosc2_format::Region| {
                (region.offset..region.offset + region.len).contains(&(at as u64))
            };
            let region = whole.regions.iter().find(here).unwrap();
            let content =
                matches!(region.part, Part::Metalayer(_)) && at as u64 >= region.offset + 5;
            if data(&region.part) || content || free.iter().any(|free| free.contains(&at)) {
                continue;
            }
            for change in [0x01, 0x04, 0x10, 0x55, 0x80, 0xff] {
                let wrong = self.with(at, &[self.bytes[at] ^ change]);
                let report = (self.check)(&wrong, &CONTENT());
                assert!(count(&report) > count(&whole), "{at:#x} {} ^ {change:#x}", region.part);
            }
        }
    }
}

const EARLY: &str = "early-frame/c39cc991_mem_lz4_shuf_ts4_n3_ml3_um.b2frame";
const VERSION1: &str = "old-frames/beta.2_fileappend_lz4_delta_shuf_ts4_n3_ml2_um.b2frame";
const GAP: &str = "old-frames/beta.4_mem_zstd_bitshuf_ts8_n3_ml2_um.b2frame";
const PACKED: &str = "packed/a2_lz4_delta_shuf_ts4_n3_meta_user.bin";

#[test]
fn each_field_of_an_early_frame() {
    let subject = Subject::frame(EARLY);
    subject.expect(&[
        (0x00, &[0x9a], "early.elements"),
        (0x01, &[0xa9], "early.marker"),
        (0x02, b"B", "early.magic"),
        (0x0a, &[0xd3], "early.marker"),
        (0x0b, &300i32.to_be_bytes(), "early.header_len"),
        (0x0b, &5000i32.to_be_bytes(), "early.header_len"),
        (0x0b, &(-1i32).to_be_bytes(), "early.header_len"),
        (0x0f, &[0xce], "early.marker"),
        (0x10, &2840u64.to_be_bytes(), "early.frame_len"),
        (0x10, &2842u64.to_be_bytes(), "early.frame_len"),
        (0x10, &(2841u64 - 63).to_be_bytes(), "early.stale_frame_len"),
        (0x18, &[0xa5], "early.marker"),
        (0x19, &[0x25], "early.general_flags"),
        (0x19, &[0x64], "early.general_flags"),
        (0x1a, &[0x8b], "early.filter_flags"),
        (0x1b, &[0x57], "early.codec"),
        (0x1b, &[0xa1], "early.level"),
        (0x1b, &[0x54], "early.other_codec"),
        (0x1c, &[1], "early.reserved"),
        (0x1d, &[0xcf], "early.marker"),
        (0x1e, &12001i64.to_be_bytes(), "early.nbytes"),
        (0x1e, &(-1i64).to_be_bytes(), "early.nbytes"),
        (0x26, &[0xcf], "early.marker"),
        (0x27, &2247i64.to_be_bytes(), "early.cbytes"),
        (0x27, &2249i64.to_be_bytes(), "early.cbytes"),
        (0x27, &0i64.to_be_bytes(), "early.cbytes"),
        (0x27, &(-1i64).to_be_bytes(), "early.cbytes"),
        (0x27, &i64::MAX.to_be_bytes(), "early.cbytes"),
        (0x2f, &[0xd3], "early.marker"),
        (0x30, &0i32.to_be_bytes(), "early.typesize"),
        (0x30, &8i32.to_be_bytes(), "early.other_typesize"),
        (0x34, &[0xd3], "early.marker"),
        (0x35, &3999i32.to_be_bytes(), "early.chunksize"),
        (0x35, &0i32.to_be_bytes(), "early.chunksize"),
        (0x35, &(-1i32).to_be_bytes(), "early.chunksize"),
        (0x39, &[0xd2], "early.marker"),
        (0x3a, &(-1i16).to_be_bytes(), "early.threads"),
        (0x3c, &[0xd2], "early.marker"),
        (0x3d, &(-1i16).to_be_bytes(), "early.threads"),
        (0x3f, &[0xc4], "early.flag"),
        (0x3f, &[0xc2], "early.stale_flag"),
        (0x40, &[0x94], "early.marker"),
        (0x42, &[0, 0x34], "early.metalayer_map_len"),
        (0x44, &[0xdf], "early.marker"),
        (0x47, &[0xcd], "early.marker"),
        (0x48, &[0xff], "early.metalayer_name"),
        (0x55, &[0xd3], "early.marker"),
        (0x56, &119i32.to_be_bytes(), "early.metalayer_offset"),
        (0x73, &[0xdd], "early.marker"),
        (0x74, &[0, 2], "early.metalayers"),
        (0x76, &[0xc5], "early.marker"),
        (0x77, &12u32.to_be_bytes(), "early.metalayers"),
        // The index: its chunk at 2692, of 32 bytes of header and three offsets.
        (2692, &[5], "early.index_form"),
        (2694, &[0x07], "early.index_form"),
        (2695, &[4], "early.index"),
        (2704, &2000u32.to_le_bytes(), "early.index@2692"),
        (2724, &1u64.to_le_bytes(), "early.offset"),
        (2732, &u64::MAX.to_le_bytes(), "early.offset"),
        (2732, &0u64.to_le_bytes(), "early.overlap@444"),
        (2740, &746u64.to_le_bytes(), "early.gap@1945"),
        // The trailer at 2748, and its end.
        (2748, &[0x94], "early.trailer"),
        (2751, &62u32.to_be_bytes(), "early.trailer"),
        (2818, &[0xcf], "early.trailer"),
        (2819, &94u32.to_be_bytes(), "early.trailer_len"),
        (2823, &[0xd7], "early.trailer"),
        (2824, &[1], "early.trailer"),
        (2830, &[1], "early.fingerprint"),
    ]);
    // Filter flags, level and threads are those of the writer; 0x3f was not updated.
    let names = [0x48..0x55, 0x5b..0x67, 0x6d..0x6e];
    subject.walk(&[&[0x1a..0x1c, 0x3a..0x3c, 0x3d..0x40], &names[..]].concat());
}

#[test]
fn each_field_of_a_frame_of_version_1() {
    let subject = Subject::frame(VERSION1);
    subject.expect(&[
        (0x00, &[0x9c], "frame1.elements"),
        (0x02, b"B", "frame1.magic"),
        (0x0b, &443i32.to_be_bytes(), "frame1.header_len"),
        (0x10, &2051u64.to_be_bytes(), "frame1.frame_len"),
        (0x10, &2053u64.to_be_bytes(), "frame1.frame_len"),
        (0x19, &[0x22], "frame1.general_flags"),
        (0x1a, &[2], "frame1.filter_flags"),
        (0x1b, &[0x5f], "frame1.codec"),
        (0x1b, &[0xf1], "frame1.level"),
        (0x1b, &[0x55], "frame1.other_codec"),
        (0x1c, &[1], "frame1.reserved"),
        (0x1e, &9199i64.to_be_bytes(), "frame1.nbytes"),
        (0x27, &1289i64.to_be_bytes(), "frame1.cbytes"),
        (0x30, &(-4i32).to_be_bytes(), "frame1.typesize"),
        (0x30, &2i32.to_be_bytes(), "frame1.other_typesize"),
        (0x35, &4001i32.to_be_bytes(), "frame1.chunksize"),
        (0x3a, &[0x80, 0], "frame1.threads"),
        (0x3f, &[0], "frame1.flag"),
        (0x40, &[0xd7], "frame1.marker"),
        (0x41, &[7], "frame1.filters"),
        (0x41, &[1], "frame1.other_filters@67"),
        (0x42, &[9], "frame1.filters"),
        (0x42, &[2], "frame1.other_filters"),
        (0x44, &[1], "frame1.other_filters"),
        (0x4b, &[1], "frame1.other_filters"),
        (0x52, &[0x92], "frame1.marker"),
        (0x54, &[0, 0], "frame1.metalayer_map_len"),
        (0x57, &[0xff, 0xff], "frame1.limit@0"),
        (0x68, &1i32.to_be_bytes(), "frame1.metalayer_offset"),
        (0x7c, &1u32.to_be_bytes(), "frame1.metalayers"),
        (1734 + 32, &16u64.to_le_bytes(), "frame1.offset"),
        // The trailer at 1790.
        (1790, &[0x93], "frame1.trailer"),
        (2029, &[0], "frame1.trailer"),
        (2030, &30u32.to_be_bytes(), "frame1.trailer_len"),
        (2040, &[1], "frame1.fingerprint"),
    ]);
    let names = [0x5a..0x67, 0x6d..0x73];
    subject.walk(&[&[0x1b..0x1c, 0x3a..0x3c, 0x3d..0x40], &names[..]].concat());
}

#[test]
fn the_gap_before_the_trailer_is_known() {
    let subject = Subject::frame(GAP);
    let gap = (subject.check)(&subject.bytes, &CONTENT());
    let gap = gap.regions.iter().find(|region| region.part == Part::Gap).unwrap();
    assert_eq!((gap.offset, gap.len), (1236, 262));
    subject.expect(&[
        (0x10, &1759u64.to_be_bytes(), "frame1.frame_len"),
        (1737, &[0xcd], "frame1.trailer"),
        (1738, &261u32.to_be_bytes(), "frame1.trailer_len"),
        (1498, &[0x0e, 0x01], "frame1.trailer"),
        (1501, &231u32.to_be_bytes(), "frame1.trailer"),
    ]);
    let names = [0x5a..0x67, 0x6d..0x73];
    subject.walk(&[&[0x1b..0x1c, 0x3a..0x3c, 0x3d..0x40], &names[..]].concat());
    // A gap of a different length.
    let mut longer = subject.bytes.clone();
    longer.splice(1300..1300, [0; 7]);
    longer[0x10..0x18].copy_from_slice(&1767u64.to_be_bytes());
    let report = (subject.check)(&longer, &CONTENT());
    let ids: Vec<_> = report.findings.iter().map(|finding| finding.rule.id).collect();
    assert_eq!(ids, ["frame1.trailer_gap"]);
}

#[test]
fn each_field_of_a_packed_super_chunk() {
    let subject = Subject::packed(PACKED);
    subject.expect(&[
        (0, &[1], "packed.version"),
        (2, &[1], "packed.flags"),
        (4, &[6, 0], "packed.codec"),
        (4, &[4, 0], "packed.other_codec"),
        (6, &[10, 0], "packed.level"),
        (8, &[0o43, 0], "packed.filters"),
        (8, &[0x0b, 0x80], "packed.filters"),
        (8, &[0o23, 0], "packed.other_filters"),
        (8, &[0o13, 0o20], "packed.unused_filters"),
        (10, &[1, 0], "packed.filters_meta"),
        (12, &[1, 0, 0, 0], "packed.chunksize"),
        (16, &(-1i64).to_le_bytes(), "packed.nchunks"),
        (16, &2i64.to_le_bytes(), "packed.nchunks"),
        (16, &0i64.to_le_bytes(), "packed.nchunks"),
        (16, &i64::MAX.to_le_bytes(), "packed.nchunks"),
        (24, &16479i64.to_le_bytes(), "packed.nbytes"),
        (24, &(-1i64).to_le_bytes(), "packed.nbytes"),
        (32, &4649i64.to_le_bytes(), "packed.cbytes"),
        (32, &0i64.to_le_bytes(), "packed.cbytes"),
        (32, &4647i64.to_le_bytes(), "packed.cbytes"),
        (40, &0i64.to_le_bytes(), "packed.reference"),
        (40, &95i64.to_le_bytes(), "packed.position"),
        (40, &5000i64.to_le_bytes(), "packed.position"),
        (48, &97i64.to_le_bytes(), "packed.position"),
        (56, &(-4112i64).to_le_bytes(), "packed.position"),
        (56, &4338i64.to_le_bytes(), "packed.order@4262"),
        (56, &0i64.to_le_bytes(), "packed.gap@4112"),
        (64, &4112i64.to_le_bytes(), "packed.overlap@4112"),
        (72, &4625i64.to_le_bytes(), "packed.index"),
        (72, &0i64.to_le_bytes(), "packed.index"),
        (72, &4600i64.to_le_bytes(), "packed.offset@4600"),
        (4624, &95i64.to_le_bytes(), "packed.offset"),
        (4624, &4431i64.to_le_bytes(), "packed.offset"),
        (4632, &4338i64.to_le_bytes(), "packed.overlap@4338"),
    ]);
    // Codec, level and filters apply to appended chunks only. Some of their bits are unused, and so are
    // the parameters of filters and the bytes after the positions.
    subject.walk(&[4..12, 80..96]);
}

#[test]
fn what_is_no_file_at_all() {
    for len in [0, 1, 16, 63] {
        let report = early::check(&vec![0; len], &CONTENT()).unwrap();
        assert_eq!(report.findings[0].rule.id, "early.length");
        let report = packed::check(&vec![0; len], &CONTENT()).unwrap();
        assert_eq!(report.findings[0].rule.id, "packed.length");
    }
    // Every truncated frame has a finding.
    for path in [EARLY, VERSION1] {
        let bytes = Golden::named(path).bytes();
        for len in (0..bytes.len()).step_by(7) {
            assert!(!early::check(&bytes[..len], &CONTENT()).unwrap().is_good(), "{path} {len}");
        }
    }
    let bytes = Golden::named(PACKED).bytes();
    for len in (0..bytes.len()).step_by(7) {
        assert!(!packed::check(&bytes[..len], &CONTENT()).unwrap().is_good(), "{len}");
    }
}
