//! The filters of `blosc2-format` against those of the C library, through chunks.

use blosc2_format::chunk::{Chunk, Encoder, Header, Params, SplitMode};
use blosc2_format::{Error, Limits};

use crate::common::{KINDS, Kind, Rng, assert_same, data, repeats};
use crate::{IDENTICAL, assert_chunk};

const SHUFFLE: u8 = 1;
const BITSHUFFLE: u8 = 2;
const DELTA: u8 = 3;
const TRUNC_PREC: u8 = 4;
const FIRST_BYTEDELTA: u8 = 34;
const BYTEDELTA: u8 = 35;
const INT_TRUNC: u8 = 36;

/// Compresses `source` with C; `None` if C refuses it.
fn c_encode(source: &[u8], params: &Params) -> Option<Vec<u8>> {
    start_library();
    let mut raw = blosc2_sys::blosc2_cparams_defaults();
    raw.compcode = params.codec;
    raw.clevel = params.level;
    raw.typesize = params.typesize as i32;
    raw.blocksize = params.blocksize.unwrap_or(0) as i32;
    raw.filters = params.filters;
    raw.filters_meta = params.filters_meta;
    raw.splitmode = match params.split {
        SplitMode::Always => blosc2_sys::BLOSC_ALWAYS_SPLIT,
        _ => blosc2_sys::BLOSC_NEVER_SPLIT,
    };
    let mut chunk = vec![0; source.len() + 32];
    // SAFETY: C reads no more than the data, and writes no more than there is room for.
    let len = unsafe {
        let context = blosc2_sys::blosc2_create_cctx(raw);
        assert!(!context.is_null());
        let (from, to) = (source.as_ptr().cast(), chunk.as_mut_ptr().cast());
        let (size, room) = (source.len() as i32, chunk.len() as i32);
        let len = blosc2_sys::blosc2_compress_ctx(context, from, size, to, room);
        blosc2_sys::blosc2_free_ctx(context);
        len
    };
    chunk.truncate(usize::try_from(len).ok().filter(|len| *len > 0)?);
    Some(chunk)
}

fn c_decode(chunk: &[u8]) -> Vec<u8> {
    start_library();
    let mut data = vec![0; Header::parse(chunk).unwrap().nbytes as usize];
    // SAFETY: C reads no more of the chunk than there is, and writes no more than there is room for.
    unsafe {
        let mut params = blosc2_sys::blosc2_dparams_defaults();
        params.nthreads = 1;
        let context = blosc2_sys::blosc2_create_dctx(params);
        assert!(!context.is_null());
        let (from, to) = (chunk.as_ptr().cast(), data.as_mut_ptr().cast());
        let (size, room) = (chunk.len() as i32, data.len() as i32);
        let len = blosc2_sys::blosc2_decompress_ctx(context, from, size, to, room);
        blosc2_sys::blosc2_free_ctx(context);
        assert_eq!(len, room);
    }
    data
}

fn start_library() {
    blosc2::compress(&[1u8], &blosc2::CParams::new()).unwrap();
}

/// Asserts that both libraries have the same outcome, and returns whether it is a chunk.
fn compare(params: &Params, source: &[u8]) -> bool {
    let what = format!("{} bytes, {params:?}", source.len());
    let found = Encoder::new(*params).unwrap().encode(source);
    let Some(expected) = c_encode(source, params) else {
        assert!(matches!(found, Err(Error::Argument(_))), "{what}: {found:?}");
        return false;
    };
    let chunk = found.unwrap_or_else(|error| panic!("{what}: {error}"));
    if IDENTICAL.contains(&params.codec) {
        assert_chunk(&chunk, &expected, &what);
    }
    let decoded = match Chunk::new(&chunk, &Limits::default()).and_then(|chunk| chunk.decode()) {
        // Other builds of C lose the end of such blocks.
        Err(Error::Format(_)) if params.filters.contains(&FIRST_BYTEDELTA) => return true,
        decoded => decoded.unwrap_or_else(|error| panic!("{what}: {error}")),
    };
    assert_same(&decoded, &c_decode(&chunk), &what);
    if chunk != expected {
        let of_c = Chunk::new(&expected, &Limits::default()).unwrap().decode().unwrap();
        assert_same(&of_c, &decoded, &what);
    }
    let lossy = params.filters.iter().any(|code| [TRUNC_PREC, INT_TRUNC].contains(code));
    assert!(lossy || decoded == source, "{what}: other data");
    true
}

#[test]
fn each_filter_for_each_typesize_and_length() {
    let metas = |code: u8, typesize: u32| match code {
        SHUFFLE => vec![0, 1, 3, 8, 16, 255],
        // C takes 0 only for chunks of a super-chunk.
        FIRST_BYTEDELTA | BYTEDELTA => vec![1, 4, typesize.min(255) as u8, 255],
        TRUNC_PREC | INT_TRUNC => (0..=65).chain(190..=255).step_by(3).chain([23, 52]).collect(),
        _ => vec![0, 9],
    };
    let rng = &mut Rng(1);
    let mut outcomes = [0; 2];
    for code in [SHUFFLE, BITSHUFFLE, DELTA, TRUNC_PREC, FIRST_BYTEDELTA, BYTEDELTA, INT_TRUNC] {
        for typesize in [1, 2, 3, 4, 5, 7, 8, 12, 15, 16, 17, 24, 32, 48, 100, 254, 255, 256, 300] {
            for meta in metas(code, typesize) {
                for items in [0, 1, 7, 8, 9, 16, 33, 64, 127, 1000] {
                    let len = (typesize * items) as u64;
                    let len = len + [0, 1, rng.below(typesize.into())][rng.below(3) as usize];
                    let kind = *rng.pick(&[Kind::Ramp, Kind::Mixed, Kind::Runs]);
                    let source = data(kind, len as usize, rng.next());
                    let slot = rng.below(6) as usize;
                    let mut params = Params { typesize, codec: 1, level: 5, ..Params::default() };
                    params.filters = [0; 6];
                    params.filters_meta = [0; 6];
                    params.filters[slot] = code;
                    params.filters_meta[slot] = meta;
                    params.split = *rng.pick(&[SplitMode::Always, SplitMode::Never]);
                    if rng.below(2) == 0 {
                        params.blocksize = Some(1 + rng.below(len + 1) as u32);
                    }
                    outcomes[usize::from(compare(&params, &source))] += 1;
                }
            }
        }
    }
    assert!(outcomes[0] > 1000 && outcomes[1] > 6000, "{outcomes:?}");
}

#[test]
fn pipelines_of_six() {
    let rng = &mut Rng(2);
    let mut outcomes = [0; 2];
    let rounds = repeats(3000);
    for _ in 0..rounds {
        let typesize = match rng.below(3) {
            0 => 1 + rng.below(300) as u32,
            _ => *rng.pick(&[1, 2, 4, 8, 16]),
        };
        let codes = [0, SHUFFLE, BITSHUFFLE, DELTA, FIRST_BYTEDELTA, BYTEDELTA, INT_TRUNC];
        let mut params = Params { typesize, codec: 1, level: 5, ..Params::default() };
        for slot in 0..6 {
            params.filters[slot] = *rng.pick(&codes);
            params.filters_meta[slot] = match params.filters[slot] {
                FIRST_BYTEDELTA | BYTEDELTA => 1 + rng.below(255) as u8,
                INT_TRUNC => *rng.pick(&[4, 252]),
                _ => *rng.pick(&[0, 0, 2, 9]),
            };
        }
        if rng.below(4) == 0 {
            let slot = rng.below(6) as usize;
            (params.filters[slot], params.filters_meta[slot]) = (TRUNC_PREC, 17);
        }
        params.split = *rng.pick(&[SplitMode::Always, SplitMode::Never]);
        if rng.below(3) > 0 {
            params.blocksize = Some(1 + rng.below(5000) as u32);
        }
        let source = data(*rng.pick(&KINDS), rng.below(20_000) as usize, rng.next());
        outcomes[usize::from(compare(&params, &source))] += 1;
    }
    assert!(outcomes[0] > rounds / 10 && outcomes[1] > rounds / 3, "{outcomes:?}");
}
