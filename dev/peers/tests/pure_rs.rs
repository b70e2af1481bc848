//! The crate `blosc2-pure-rs`: a port of C-Blosc2 to Rust.

mod cases;

use blosc2::{Codec, ErrorKind, Filter, SplitMode};
use blosc2_pure_rs::compress as pure_rs;

use cases::{Case, Kind, SPLITS, blosc1_cases, cases, it_reads_ours, its_chunks_are_read};

const PIPELINES: [&[Filter]; 12] = [
    &[],
    &[Filter::Shuffle],
    &[Filter::ShuffleBytes(3)],
    &[Filter::Bitshuffle],
    &[Filter::Delta],
    &[Filter::Bytedelta(0)],
    &[Filter::Shuffle, Filter::Bytedelta(0)],
    &[Filter::Delta, Filter::Shuffle],
    &[Filter::Delta, Filter::Bitshuffle],
    &[Filter::TruncPrec(10), Filter::Shuffle],
    &[Filter::IntTrunc(-3), Filter::Bitshuffle],
    &[Filter::Shuffle, Filter::Bitshuffle, Filter::Shuffle, Filter::Bitshuffle, Filter::Shuffle],
];
const TYPESIZES: [usize; 9] = [1, 2, 3, 4, 8, 16, 33, 255, 300];

/// The cases that it handles correctly. Each of the other ones has a test below.
fn supported() -> Vec<Case> {
    let mut cases = cases(&PIPELINES, &TYPESIZES, &SPLITS, 1);
    cases.retain(|case| !loses_rest(case) && !splits_too_far(case));
    cases
}

/// Whether a block has bytes after its last whole item, which its bytedelta does not undo.
fn loses_rest(case: &Case) -> bool {
    let rest = !case.len.is_multiple_of(case.typesize)
        || case.blocksize.is_some_and(|size| !size.is_multiple_of(case.typesize));
    rest && case.filters.contains(&Filter::Bytedelta(0))
}

/// Whether the data is shorter than an item and always split.
fn splits_too_far(case: &Case) -> bool {
    case.split == SplitMode::Always && case.len < case.typesize
}

fn compress(case: &Case, data: &[u8]) -> Result<Vec<u8>, String> {
    let (filters, filters_meta) = case.pipeline();
    let params = pure_rs::CParams {
        compcode: case.codec.code(),
        clevel: case.level,
        typesize: case.typesize as i32,
        blocksize: case.blocksize.unwrap_or(0) as i32,
        splitmode: match case.split {
            SplitMode::Always => 1,
            SplitMode::Never => 2,
            SplitMode::Auto => 3,
            _ => 4,
        },
        filters,
        filters_meta,
        use_dict: case.dictionary,
        ..Default::default()
    };
    pure_rs::compress(data, &params).map_err(str::to_owned)
}

fn decompress(chunk: &[u8]) -> Result<Vec<u8>, String> {
    pure_rs::decompress(chunk).map_err(str::to_owned)
}

#[test]
fn its_chunks_are_read_here() {
    its_chunks_are_read(&supported(), compress);
}

#[test]
fn it_reads_our_chunks() {
    it_reads_ours(&supported(), |_| false, decompress);
}

#[test]
fn it_reads_our_chunks_of_blosc1() {
    it_reads_ours(&blosc1_cases(), |_| false, decompress);
}

const CASE: Case = Case {
    codec: Codec::Lz4,
    level: 9,
    typesize: 33,
    split: SplitMode::Auto,
    filters: Vec::new(),
    blocksize: None,
    dictionary: false,
    blosc1: false,
    kind: Kind::Runs,
    len: 999,
    seed: 614,
};

/// Known fault: no implementation can read its chunks of such data, and it misreads the chunks of `blosc2`.
#[test]
fn its_bytedelta_loses_bytes_after_the_last_whole_item() {
    let case = Case { filters: vec![Filter::Shuffle, Filter::Bytedelta(0)], ..CASE };
    let data = case.data();
    let theirs = compress(&case, &data).unwrap();
    assert_ne!(decompress(&theirs).unwrap(), data);
    assert_ne!(blosc2::decompress::<u8>(&theirs).unwrap(), data);
    let ours = blosc2::compress(&data[..], &case.params()).unwrap();
    assert_eq!(blosc2::decompress::<u8>(&ours).unwrap(), data);
    assert_ne!(decompress(&ours).unwrap(), data);
}

/// Known fault: according to the header, blocks of one byte are split into 255 streams.
#[test]
fn it_splits_blocks_that_are_too_small_and_we_refuse_them() {
    let case = Case { typesize: 255, split: SplitMode::Always, kind: Kind::Ones, len: 32, ..CASE };
    let theirs = compress(&case, &case.data()).unwrap();
    assert_eq!(decompress(&theirs).unwrap(), case.data());
    let error = blosc2::decompress::<u8>(&theirs).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidData);
    assert!(error.to_string().contains("255 equal streams"), "{error}");
    assert!(cases::decode(&theirs, 255).is_err());
}
