//! Packed super-chunks.

use blosc2_format::packed::{
    self, Ancillary, IndexPlace, Kind, Packed, Params, StoredDelta, Writer,
};
use blosc2_format::{Error, Limits};

use crate::{CONTENT, Golden, data, ids};

fn all() -> Vec<Golden> {
    let all = Golden::all("packed/");
    assert_eq!(all.len(), 59);
    all
}

fn open(bytes: &[u8]) -> Packed<&[u8]> {
    Packed::open(bytes, &Limits::default()).unwrap()
}

#[test]
fn are_recognised_checked_and_decoded() {
    for golden in all() {
        let path = &golden.path;
        let bytes = golden.bytes();
        let report = packed::check(&bytes, &CONTENT()).unwrap();
        if golden.is("NEGATIVE") {
            assert_eq!(packed::recognise(&bytes, bytes.len() as u64), Some(Kind::Alpha5));
            assert_eq!(ids(&report, &bytes), ["packed.alpha5"]);
            assert!(Packed::open(&bytes, &Limits::default()).is_err());
            continue;
        }
        assert_eq!(packed::recognise(&bytes, bytes.len() as u64), Some(Kind::Packed), "{path}");
        let ambiguous = golden.is("delta_noise");
        let expected: &[&str] = match () {
            () if !ambiguous => &[],
            // All three chunks of the file, or all but the first, which is the reference.
            () => &["packed.delta_ambiguous"; 2],
        };
        assert_eq!(ids(&report, &bytes), expected, "{path}: {:?}", report.findings);

        let mut packed = open(&bytes);
        assert_eq!(packed.nbytes(), golden.raw().len() as u64, "{path}");
        let before = golden.is("d6f07b6d") || golden.is("9ca349b6");
        assert_eq!(packed.index_is_first(), before && packed.nchunks() > 0, "{path}");
        if golden.is("QUIRK") && ambiguous {
            // Appended chunks, which the more likely interpretation decodes wrongly.
            assert_eq!(packed.stored_delta(), StoredDelta::Absent);
            let data = data(3, |number, data| packed.decode_chunk(number, data)).unwrap();
            assert!(data != golden.raw(), "{path}");
            packed = packed.with_stored_delta(StoredDelta::Present);
        }
        let nchunks = packed.nchunks();
        let data = data(nchunks, |number, data| packed.decode_chunk(number, data));
        if golden.is("a3_zstd") {
            // Streams of Zstandard 0.5, which no current decoder reads.
            assert!(matches!(data, Err(Error::Unsupported(_))), "{path}: {data:?}");
            continue;
        }
        let mut data = data.unwrap();
        if golden.is("doubledelta") {
            assert!(data != golden.raw(), "{path}");
            // No rule detects that the reference was subtracted twice.
            let reference = packed.ancillary(Ancillary::Filters).unwrap().unwrap();
            for chunk in data.chunks_mut(reference.len()).skip(1) {
                chunk.iter_mut().zip(&reference).for_each(|(b, r)| *b = b.wrapping_add(*r));
            }
        }
        assert!(data == golden.raw(), "{path}");
        for kind in Ancillary::ALL.into_iter().filter(|&kind| kind != Ancillary::Filters) {
            let content = packed.ancillary(kind).unwrap();
            assert_eq!(content.as_ref(), golden.contents.get(kind.name()), "{path}");
        }
    }
}

#[test]
fn are_written_the_same() {
    for golden in all().into_iter().filter(|golden| !golden.is("NEGATIVE")) {
        let bytes = golden.bytes();
        let packed = open(&bytes);
        let first = golden.is("d6f07b6d") || golden.is("9ca349b6");
        let params = Params {
            codec: packed.codec(),
            level: packed.level(),
            filters: packed.header().filter_codes(),
            index: if first { IndexPlace::BeforeData } else { IndexPlace::AtEnd },
            typesize: 1,
            // Memory that the old library left uninitialized.
            reserved: packed.header().reserved,
        };
        let mut writer = Writer::new(params).unwrap();
        for kind in Ancillary::ALL {
            if let Some(chunk) = packed.ancillary_chunk(kind).unwrap() {
                writer.set_ancillary_chunk(kind, &chunk).unwrap();
            }
        }
        for number in 0..packed.nchunks() {
            let chunk = packed.chunk(number).unwrap();
            if golden.is("a2_blosclz") && chunk[2] == 0b11 {
                // The data determines every byte.
                assert_eq!(packed::stored_chunk(chunk[3], &chunk[16..]).unwrap(), chunk);
            }
            writer.push_chunk(&chunk).unwrap();
        }
        assert!(writer.finish() == bytes, "{}", golden.path);
    }
}
