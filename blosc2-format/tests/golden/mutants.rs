//! Old files with changed, removed and inserted bytes: nothing panics, and files that pass the check can be read.

use blosc2_format::{Error, Limits, Options, early, packed};
use proptest::prelude::*;

use crate::{Golden, data};

const LIMITS: Limits = Limits {
    memory: 1 << 20,
    metadata: None,
    total_bytes: 4 << 20,
    items: 1 << 20,
    dimensions: 16,
    chunks: 1 << 12,
    metalayers: 100,
    nesting: 16,
};

/// A change of a file: the position, the new bytes, and the number of bytes that they replace.
type Change = (prop::sample::Index, Vec<u8>, usize);

fn change() -> impl Strategy<Value = Change> {
    let interesting = prop::sample::select(vec![0u8, 1, 2, 7, 0x7f, 0x80, 0xff, 0x93, 0xc6, 0xde]);
    let bytes = prop::collection::vec(prop_oneof![interesting, any::<u8>()], 0..9);
    let same = bytes.prop_map(|bytes| (bytes.len(), bytes));
    let any_len = (0..9usize, prop::collection::vec(any::<u8>(), 0..9));
    let what = prop_oneof![8 => same, 1 => any_len];
    (any::<prop::sample::Index>(), what).prop_map(|(at, (len, bytes))| (at, bytes, len))
}

fn changed(golden: &Golden, changes: &[Change]) -> Vec<u8> {
    let mut bytes = golden.bytes();
    for (at, new, len) in changes {
        // Half of the changes go to the header, where most fields are.
        let at = at.index(2 * bytes.len().max(1));
        let at = if at < bytes.len() { at } else { at % bytes.len().clamp(1, 128) };
        let end = (at + len).min(bytes.len());
        bytes.splice(at..end, new.iter().copied());
    }
    bytes
}

fn readable<T: std::fmt::Debug>(result: Result<T, Error>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(Error::Unsupported(_) | Error::Limit { .. }) => None,
        Err(error) => panic!("the check found it good: {error}"),
    }
}

proptest! {
    #[test]
    fn of_frames(which in any::<prop::sample::Index>(), changes in prop::collection::vec(change(), 1..4)) {
        let mut all = Golden::all("early-frame/");
        all.extend(Golden::all("old-frames/beta."));
        let bytes = changed(which.get(&all), &changes);
        let options = Options { content: true, map: true, limits: LIMITS };
        let good = early::check(&bytes, &options).unwrap().is_good();
        match early::Frame::open(&bytes, &LIMITS) {
            Ok(mut frame) => {
                let nchunks = frame.nchunks();
                let decoded = data(nchunks, |number, data| frame.decode_chunk(number, data));
                let usermeta = frame.usermeta();
                if good {
                    readable(usermeta);
                    if let Some(data) = readable(decoded) {
                        prop_assert_eq!(data.len() as u64, frame.nbytes());
                    }
                }
            }
            Err(error) if good => { readable::<()>(Err(error)); }
            Err(_) => {}
        }
    }

    #[test]
    fn of_packed_super_chunks(which in any::<prop::sample::Index>(), changes in prop::collection::vec(change(), 1..4)) {
        let bytes = changed(which.get(&Golden::all("packed/")), &changes);
        packed::recognise(&bytes, bytes.len() as u64);
        let options = Options { content: true, map: true, limits: LIMITS };
        let good = packed::check(&bytes, &options).unwrap().is_good();
        match packed::Packed::open(&bytes, &LIMITS) {
            Ok(mut packed) => {
                let nchunks = packed.nchunks();
                let decoded = data(nchunks, |number, data| packed.decode_chunk(number, data));
                if good
                    && let Some(data) = readable(decoded) {
                        prop_assert_eq!(data.len() as u64, packed.nbytes());
                    }
            }
            Err(error) if good => { readable::<()>(Err(error)); }
            Err(_) => {}
        }
    }
}
