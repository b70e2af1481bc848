//! The raw filters against those of `blosc2-format`, against a plain model, and on upstream's files.

use std::fs;
use std::thread;

use blosc2::raw::{self, MAX_TYPESIZE};
use blosc2::{ErrorKind, Result};
use blosc2_format::Limits;
use blosc2_format::chunk::{Chunk, Encoder, Header, Params, SplitMode};
use blosc2_testing::{model_bitshuffle, model_shuffle};

use crate::common::{KINDS, Kind, Rng, assert_same, data, upstream};

const LENGTHS: [usize; 16] = [0, 1, 2, 7, 8, 9, 15, 16, 31, 33, 64, 127, 128, 255, 1000, 5003];

type Raw = fn(usize, &[u8], &mut [u8]) -> Result<()>;

/// Filters `source` into memory with other content.
fn filtered(filter: Raw, typesize: usize, source: &[u8]) -> Vec<u8> {
    let written = |before: u8| {
        let mut target = vec![before; source.len()];
        filter(typesize, source, &mut target).unwrap();
        target
    };
    let (one, other) = (written(0xaa), written(0x55));
    assert_same(&one, &other, "a part of the target is not written");
    one
}

#[test]
fn every_typesize_and_odd_lengths() {
    let rng = &mut Rng(1);
    for typesize in 1..=MAX_TYPESIZE {
        for items in [0, 1, 7, 8, 9, 16, 31, 33, 72] {
            let source = data(*rng.pick(&KINDS), items * typesize, rng.next());
            check(typesize, &source);
            let rest = rng.below(typesize as u64) as usize;
            let source = data(*rng.pick(&KINDS), items * typesize + rest, rng.next());
            check(typesize, &source);
        }
        for len in LENGTHS {
            check(typesize, &data(*rng.pick(&KINDS), len, rng.next()));
        }
    }
}

fn check(typesize: usize, source: &[u8]) {
    let what = format!("{} bytes, typesize {typesize}", source.len());
    let shuffled = filtered(raw::shuffle, typesize, source);
    assert_same(&shuffled, &model_shuffle(typesize, source), &format!("shuffle: {what}"));
    let back = filtered(raw::unshuffle, typesize, &shuffled);
    assert_same(&back, source, &format!("unshuffle: {what}"));
    let shuffled = filtered(raw::bitshuffle, typesize, source);
    assert_same(&shuffled, &model_bitshuffle(typesize, source), &format!("bitshuffle: {what}"));
    let back = filtered(raw::bitunshuffle, typesize, &shuffled);
    assert_same(&back, source, &format!("bitunshuffle: {what}"));
}

/// The sizes of upstream's `test_shuffle_roundtrip.csv` and `test_bitshuffle_roundtrip.csv`, from
/// buffers at any address.
#[test]
fn sizes_of_upstreams_tests() {
    let rng = &mut Rng(2);
    for name in ["shuffle", "bitshuffle"] {
        let path = upstream(&format!("tests/test_{name}_roundtrip.csv"));
        let text = fs::read_to_string(path).unwrap();
        let cases: Vec<Vec<usize>> = text
            .lines()
            .skip(1)
            .map(|line| line.split(',').map(|word| word.trim().parse().unwrap()).collect())
            .collect();
        assert!(cases.len() > 50, "{}", cases.len());
        let bytes = data(Kind::Random, 1_000_003, 2).repeat(57);
        for case in cases {
            let (typesize, items) = (case[0], case[1]);
            let source = &bytes[rng.below(32) as usize..][..typesize * items];
            let filters: [Raw; 2] = match name {
                "shuffle" => [raw::shuffle, raw::unshuffle],
                _ => [raw::bitshuffle, raw::bitunshuffle],
            };
            let mut target = vec![0; source.len() + 7];
            let target = &mut target[7..][..source.len()];
            filters[0](typesize, source, target).unwrap();
            let mut back = vec![0; source.len()];
            filters[1](typesize, target, &mut back).unwrap();
            assert_same(&back, source, &format!("{name} {typesize} {items}"));
        }
    }
}

/// To see the filtered bytes of `blosc2-format`, its chunk is decoded as if it had no filter.
#[test]
fn the_filters_of_blosc2_format_give_the_same() {
    let rng = &mut Rng(3);
    for typesize in 1..=255 {
        for (code, filter) in [(1, raw::shuffle as Raw), (2, raw::bitshuffle)] {
            let size = typesize as usize;
            let block = size * (100 + rng.below(200) as usize);
            let len = 2 * block + 1 + rng.below(block as u64) as usize;
            // Data that compresses with any typesize, and whose ends differ.
            let mut source: Vec<u8> =
                (0..len).map(|at| ((at % size) ^ (at / size % 4)) as u8).collect();
            (0..len).step_by(97).for_each(|at| source[at] = rng.next() as u8);
            let params = Params {
                codec: 1,
                typesize,
                blocksize: Some(block as u32),
                filters: [0, 0, 0, 0, 0, code],
                split: SplitMode::Never,
                ..Params::default()
            };
            let mut chunk = Encoder::new(params).unwrap().encode(&source).unwrap();
            let header = Header::parse(&chunk).unwrap();
            let what = format!("filter {code}, typesize {size}, {} bytes", source.len());
            assert!(header.is_compressed() && header.block_len() as usize == block, "{what}");
            chunk[16..22].fill(0);
            let expected = Chunk::new(&chunk, &Limits::default()).unwrap().decode().unwrap();
            let found: Vec<u8> =
                source.chunks(block).flat_map(|block| filtered(filter, size, block)).collect();
            assert_same(&found, &expected, &what);
        }
    }
}

/// Upstream's `compat/filegen.c` made them of the integers from 0 to 999,999.
#[test]
fn upstreams_files_are_undone() {
    let expected: Vec<u8> = (0..1_000_000i32).flat_map(i32::to_le_bytes).collect();
    let cases: [(&str, Raw, Raw); 2] = [
        ("shuffle-2.20.0.cdata", raw::unshuffle, raw::shuffle),
        ("bitshuffle-2.20.0.cdata", raw::bitunshuffle, raw::bitshuffle),
    ];
    for (name, undo, again) in cases {
        let stored = fs::read(upstream("compat").join(name)).unwrap();
        let undone = filtered(undo, 4, &stored);
        assert_same(&undone, &expected, name);
        assert_same(&filtered(again, 4, &undone), &stored, name);
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let filters: [Raw; 4] = [raw::shuffle, raw::unshuffle, raw::bitshuffle, raw::bitunshuffle];
    for filter in filters {
        let refused = |typesize, source: &[u8], target: &mut [u8]| {
            let before = target.to_vec();
            let error = filter(typesize, source, target).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
            assert_eq!(target, before);
            error.to_string()
        };
        for typesize in [0, 257, 300, 1 << 31, usize::MAX] {
            for len in [0, 16] {
                let text = refused(typesize, &vec![1; len], &mut vec![2; len]);
                assert!(text.contains("1 to 256, got"), "{text}");
            }
        }
        let text = refused(4, &[1; 16], &mut [2; 15]);
        assert!(text.contains("the target has 15 bytes, expected 16"), "{text}");
        refused(4, &[1; 16], &mut [2; 17]);
        refused(4, &[], &mut [2]);
        refused(4, &[1], &mut []);
    }
}

/// Untouched memory takes no space.
#[test]
#[cfg(all(target_pointer_width = "64", target_os = "linux"))]
fn too_much_is_refused() {
    use blosc2::limits::MAX_CHUNK_LEN;

    let source = vec![0; MAX_CHUNK_LEN + 1];
    let mut target = vec![0; MAX_CHUNK_LEN + 1];
    let error = raw::shuffle(4, &source, &mut target).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
    let error = raw::bitunshuffle(4, &source, &mut target).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
}

#[test]
fn many_threads_at_once() {
    thread::scope(|scope| {
        for seed in 0..8 {
            scope.spawn(move || {
                let source = data(Kind::Random, 10_007, seed);
                (1..=40).for_each(|typesize| check(typesize, &source));
            });
        }
    });
}
