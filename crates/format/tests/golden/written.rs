//! Files written in the old layouts are read back, and the check has no findings.

use blosc2_format::early::{Frame, Layout, Params, WriteMode, Writer};
use blosc2_format::packed::{Ancillary, IndexPlace, Packed};
use blosc2_format::{Limits, early, packed};
use proptest::prelude::*;

use crate::{CONTENT, data, ids};

/// Data of varying compressibility.
fn chunk() -> impl Strategy<Value = Vec<u8>> {
    let steps = (any::<u8>(), 0..40u8, 1..3000usize);
    let ramp = steps.prop_map(|(start, step, len)| {
        (0..len).map(|i| (i / 4 * usize::from(step)) as u8 ^ start).collect()
    });
    prop_oneof![2 => ramp, 1 => prop::collection::vec(any::<u8>(), 1..300)]
}

fn chunks() -> impl Strategy<Value = Vec<Vec<u8>>> {
    prop_oneof![
        3 => prop::collection::vec(chunk(), 0..6),
        // Equal sizes, up to enough chunks for an index that is compressed and split.
        1 => (prop::collection::vec(any::<u8>(), 1..9), 1..150usize)
            .prop_map(|(chunk, count)| vec![chunk; count]),
    ]
}

fn codec() -> impl Strategy<Value = u8> {
    prop::sample::select(vec![0u8, 1, 4, 5])
}

fn params() -> impl Strategy<Value = Params> {
    let layout = prop::sample::select(vec![Layout::Early, Layout::Version1]);
    let mode = prop::sample::select(vec![WriteMode::Whole, WriteMode::Appended]);
    let filters = prop::sample::select(vec![vec![], vec![1], vec![2], vec![3], vec![3, 1]]);
    let typesize = prop::sample::select(vec![1u32, 2, 4, 8, 17, 255, 300]);
    let rest = (any::<bool>(), any::<bool>(), any::<bool>(), 3..5u8, codec(), 0..10u8);
    (layout, mode, filters, typesize, rest).prop_map(|(layout, mode, filters, typesize, rest)| {
        let (trailer, trailer_marker, empty_metalayers, version, codec, level) = rest;
        let chunk_version = if layout == Layout::Early { version } else { 4 };
        Params {
            layout,
            mode,
            trailer,
            trailer_marker,
            empty_metalayers,
            chunk_version,
            codec,
            level,
            typesize,
            filters,
            ..Params::default()
        }
    })
}

proptest! {
    #[test]
    fn frames(
        params in params(),
        layers in prop::collection::btree_map("[a-z]{1,31}", chunk(), 0..4),
        chunks in chunks(),
        usermeta in prop::option::of(chunk()),
    ) {
        let usermeta = usermeta.filter(|_| params.trailer || params.layout == Layout::Version1);
        let mut writer = Writer::new(params.clone()).unwrap();
        for (name, content) in &layers {
            writer.add_metalayer(name, content).unwrap();
        }
        for chunk in &chunks {
            writer.push(chunk).unwrap();
        }
        if let Some(usermeta) = &usermeta {
            writer.set_usermeta_chunk(&early::stored_chunk(8, usermeta).unwrap()).unwrap();
        }
        let bytes = writer.finish().unwrap();
        prop_assert_eq!(early::recognise(&bytes), Some(params.layout));
        let report = early::check(&bytes, &CONTENT()).unwrap();
        prop_assert_eq!(ids(&report, &bytes), [""; 0], "{:?}", report.findings);

        let mut frame = Frame::open(&bytes, &Limits::default()).unwrap();
        prop_assert_eq!(frame.typesize(), params.typesize);
        prop_assert_eq!((frame.codec(), frame.level()), (params.codec, params.level));
        let found = frame.metalayers().iter().map(|each| (each.name.clone(), each.content.clone()));
        prop_assert_eq!(found.collect::<std::collections::BTreeMap<_, _>>(), layers);
        prop_assert_eq!(frame.usermeta().unwrap(), usermeta);
        for (number, chunk) in (0..).zip(&chunks) {
            prop_assert_eq!(frame.chunk_nbytes(number).unwrap(), chunk.len() as u64);
        }
        let all = data(frame.nchunks(), |number, data| frame.decode_chunk(number, data)).unwrap();
        prop_assert_eq!(all, chunks.concat());
        prop_assert!(frame.chunk(chunks.len() as u64).is_err());
    }

    #[test]
    fn packed_super_chunks(
        codec in codec(),
        level in 0..10u8,
        typesize in prop::sample::select(vec![1u8, 2, 4, 8, 17, 255]),
        filters in prop::sample::select(vec![[0, 0], [1, 0], [2, 0], [3, 0], [3, 1], [3, 2]]),
        first in any::<bool>(),
        metadata in prop::option::of(chunk()),
        chunks in chunks(),
    ) {
        let [a, b] = filters;
        let params = packed::Params {
            codec,
            level,
            typesize,
            filters: [a, b, 0, 0, 0],
            index: if first { IndexPlace::BeforeData } else { IndexPlace::AtEnd },
            reserved: [0x5a; 16],
        };
        let mut writer = packed::Writer::new(params).unwrap();
        if let Some(metadata) = &metadata {
            let chunk = packed::stored_chunk(1, metadata).unwrap();
            writer.set_ancillary_chunk(Ancillary::Metadata, &chunk).unwrap();
        }
        for chunk in &chunks {
            writer.push(chunk).unwrap();
        }
        let bytes = writer.finish();
        prop_assert_eq!(packed::recognise(&bytes, bytes.len() as u64), Some(packed::Kind::Packed));
        let report = packed::check(&bytes, &CONTENT()).unwrap();
        let ids = ids(&report, &bytes);
        prop_assert!(ids.iter().all(|&id| id == "packed.delta_ambiguous"), "{:?}", report.findings);

        let mut packed = Packed::open(&bytes, &Limits::default()).unwrap();
        prop_assert_eq!(packed.ancillary(Ancillary::Metadata).unwrap(), metadata);
        let all = data(packed.nchunks(), |number, data| packed.decode_chunk(number, data)).unwrap();
        prop_assert_eq!(all, chunks.concat());
    }
}

#[test]
fn what_cannot_be_written_is_refused() {
    let with = |change: fn(&mut Params)| {
        let mut params = Params::default();
        change(&mut params);
        Writer::new(params)
    };
    assert!(with(|params| params.codec = 7).is_err());
    assert!(with(|params| params.level = 10).is_err());
    assert!(with(|params| params.typesize = 0).is_err());
    assert!(with(|params| params.filters = vec![0; 7]).is_err());
    assert!(with(|params| params.filters = vec![5]).is_err());
    assert!(with(|params| params.filters_meta = vec![1, 2]).is_err());
    assert!(with(|params| params.chunk_version = 5).is_err());
    let mut writer =
        with(|params| (params.layout, params.trailer) = (Layout::Early, false)).unwrap();
    let chunk = early::stored_chunk(1, b"data").unwrap();
    assert!(writer.set_usermeta_chunk(&chunk).is_err(), "there is no trailer");
    assert!(writer.push_chunk(&chunk[..chunk.len() - 1]).is_err());
    assert!(writer.push_chunk(b"no chunk").is_err());
    writer.add_metalayer("name", b"").unwrap();
    assert!(writer.add_metalayer("name", b"").is_err());
    assert!(writer.add_metalayer("", b"").is_err());
    assert!(early::stored_chunk(0, b"data").is_err());
    assert!(early::stored_chunk(1, b"").is_err());
    assert!(packed::Writer::new(packed::Params { codec: 6, ..Default::default() }).is_err());
    let filters = [4, 0, 0, 0, 0];
    assert!(packed::Writer::new(packed::Params { filters, ..Default::default() }).is_err());
}
