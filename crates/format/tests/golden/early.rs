//! Early frames, and frames of version 1.

use blosc2_format::early::{self, Frame, Layout, Params, WriteMode, Writer};
use blosc2_format::{Error, Limits};

use crate::{CONTENT, Golden, data, ids};

fn all() -> Vec<Golden> {
    let mut all = Golden::all("early-frame/");
    all.extend(Golden::all("old-frames/beta."));
    assert_eq!(all.len(), 55);
    all
}

fn layout_of(golden: &Golden) -> Layout {
    if golden.is("beta.") { Layout::Version1 } else { Layout::Early }
}

#[test]
fn are_recognised_checked_and_decoded() {
    for golden in all() {
        let path = &golden.path;
        let bytes = golden.bytes();
        let layout = layout_of(&golden);
        assert_eq!(early::recognise(&bytes), Some(layout), "{path}");
        assert!(blosc2_format::frame::Frame::open(&bytes, &Limits::default()).is_err());
        let report = early::check(&bytes, &CONTENT()).unwrap();
        assert_eq!(ids(&report, &bytes), [""; 0], "{path}: {:?}", report.findings);

        let mut frame = Frame::open(&bytes, &Limits::default()).unwrap();
        assert_eq!(frame.layout(), layout, "{path}");
        assert_eq!(frame.nbytes(), golden.raw().len() as u64, "{path}");
        let data = data(frame.nchunks(), |number, data| frame.decode_chunk(number, data));
        if golden.is("lizard") {
            // A discontinued codec, without a crate.
            assert!(matches!(data, Err(Error::Unsupported(_))), "{path}: {data:?}");
            assert_eq!(frame.codec(), 6);
        } else {
            assert!(data.unwrap() == golden.raw(), "{path}");
        }
    }
}

#[test]
fn tell_their_parameters() {
    for golden in all() {
        let path = &golden.path;
        let mut frame = Frame::open(golden.bytes(), &Limits::default()).unwrap();
        let name = |pairs: &[(&str, usize)], otherwise| {
            let found = pairs.iter().find(|(name, _)| golden.is(name));
            found.map_or(otherwise, |(_, value)| *value)
        };
        let typesize = name(&[("_ts1_", 1), ("_ts4_", 4), ("_ts8_", 8)], 0);
        let codecs = [("lz4hc", 2), ("lz4", 1), ("zlib", 4), ("zstd", 5), ("lizard", 6)];
        assert_eq!(frame.typesize() as usize, typesize, "{path}");
        assert_eq!(usize::from(frame.codec()), name(&codecs, 0), "{path}");
        let nchunks = name(&[("_n0", 0), ("_n1", 1), ("_n30", 30)], 3);
        assert_eq!(frame.nchunks() as usize, nchunks, "{path}");
        let filters: &[u8] = match () {
            () if golden.is("delta_shuf") => &[3, 1],
            () if golden.is("delta") => &[0, 3],
            () if golden.is("bitshuf") => &[0, 2],
            () if golden.is("truncprec") => &[0, 4],
            () if golden.is("none") => &[0, 0],
            () => &[0, 1],
        };
        if nchunks > 0 && !golden.is("pre3bd") {
            assert_eq!(frame.filters()[4..], *filters, "{path}");
        }
        let levels = [("clevel0", 0), ("blosclz_none_ts1_n3", 9)];
        assert_eq!(usize::from(frame.level()), name(&levels, 5), "{path}");

        let layers =
            frame.metalayers().iter().map(|layer| (layer.name.as_str(), layer.content.len()));
        let early = [("my_metalayer1", 11), ("caterva-like", 300), ("x", 0)];
        let version1 = [("my_metalayer1", 11), ("second", 300)];
        let expected: &[_] = match () {
            () if golden.is("61b2fef1") && golden.is("delta_shuf") => &[("_filter_pipeline", 7)],
            () if golden.is("c39cc991") && golden.is("delta_shuf") => &[("_filter_pipeline", 7)],
            () if golden.is("_ml3") => &early,
            () if golden.is("_ml2") => &version1,
            () if golden.is("_ml1") || layout_of(&golden) == Layout::Version1 && nchunks == 0 => {
                &early[..1]
            }
            () if golden.is("QUIRK") => &early[..1],
            () => &[],
        };
        assert_eq!(layers.collect::<Vec<_>>(), expected, "{path}");
        let usermeta = match () {
            () if golden.is("_n3_ml3_um") => Some(vec![b'u'; 300]),
            () if golden.is("_ml2_um") => Some((0..200u32).map(|i| (i * 7) as u8).collect()),
            () if golden.is("_um") => Some(vec![b'u'; 100]),
            () => None,
        };
        assert_eq!(frame.usermeta().unwrap(), usermeta, "{path}");
    }
}

/// The parameters of the writer of a golden file, from its name.
fn params(golden: &Golden, frame: &Frame<Vec<u8>>) -> Params {
    let header = frame.header();
    let mode = if golden.is("append") { WriteMode::Appended } else { WriteMode::Whole };
    Params {
        layout: frame.layout(),
        mode,
        trailer: golden.is("c39cc991"),
        trailer_marker: !golden.is("beta.2"),
        empty_metalayers: golden.is("pre3bd"),
        chunk_version: if golden.is("pre3bd") { 3 } else { 4 },
        filter_flags: header.filter_flags,
        codec: header.codec(),
        level: header.level(),
        typesize: frame.typesize(),
        threads: if golden.is("nth2") { [2, 2] } else { [1, 1] },
        filters: header.filters[..usize::from(header.nfilters)].to_vec(),
        filters_meta: Vec::new(),
    }
}

#[test]
fn are_written_the_same() {
    for golden in all() {
        let bytes = golden.bytes();
        let frame = Frame::open(bytes.clone(), &Limits::default()).unwrap();
        let mut writer = Writer::new(params(&golden, &frame)).unwrap();
        for layer in frame.metalayers() {
            writer.add_metalayer(&layer.name, &layer.content).unwrap();
        }
        for number in 0..frame.nchunks() {
            let chunk = frame.chunk(number).unwrap();
            let stored = chunk[2] & 0b10 != 0 && !golden.is("pre3bd");
            if stored && (golden.is("noise") || golden.is("clevel0")) {
                // The data determines every byte.
                let data = &chunk[32..];
                assert_eq!(early::stored_chunk(chunk[3], data).unwrap(), chunk);
            }
            writer.push_chunk(&chunk).unwrap();
        }
        if let Some(usermeta) = frame.usermeta_chunk().unwrap() {
            writer.set_usermeta_chunk(&usermeta).unwrap();
        }
        assert!(writer.finish().unwrap() == bytes, "{}", golden.path);
    }
}
