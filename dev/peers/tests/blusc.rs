//! The crate `blusc`: a port of C-Blosc2's chunks to Rust, for the web.

mod cases;

use blosc2::{Codec, ErrorKind, Filter, SplitMode};
use blosc2_format::chunk::Header;
use blusc::{BLOSC2_CPARAMS_DEFAULTS, Blosc2Cparams};

use cases::{Case, Kind, SPLITS, blosc1_cases, cases, it_reads_ours, its_chunks_are_read};

const PIPELINES: [&[Filter]; 3] = [&[], &[Filter::Shuffle], &[Filter::Bitshuffle]];
const TYPESIZES: [usize; 8] = [1, 2, 3, 4, 8, 16, 33, 255];

fn compress(case: &Case, data: &[u8]) -> Result<Vec<u8>, String> {
    let (filters, filters_meta) = case.pipeline();
    let context = blusc::blosc2_create_cctx(Blosc2Cparams {
        compcode: case.codec.code(),
        clevel: case.level,
        typesize: case.typesize as i32,
        filters,
        filters_meta,
        ..BLOSC2_CPARAMS_DEFAULTS
    });
    let mut chunk = vec![0; data.len() + 32];
    let written = blusc::blosc2_compress_ctx(&context, data, &mut chunk);
    chunk.truncate(
        usize::try_from(written).ok().filter(|&len| len > 0).ok_or(format!("{written}"))?,
    );
    Ok(chunk)
}

fn decompress(chunk: &[u8]) -> Result<Vec<u8>, String> {
    blusc::convenience::blosc2_decompress(chunk).map_err(|error| format!("{error:?}"))
}

/// The cases that it handles correctly. Each of the other ones has a test below.
fn supported(splits: &[SplitMode], count: usize) -> Vec<Case> {
    let mut cases = cases(&PIPELINES, &TYPESIZES, splits, count);
    cases.retain(|case| case.level > 0 && (case.len == 0 || case.len >= case.typesize));
    cases.iter_mut().for_each(|case| case.dictionary = false);
    cases
}

#[test]
fn its_chunks_are_read_here() {
    // It ignores the split mode.
    its_chunks_are_read(&supported(&[SplitMode::Auto], 4), compress);
}

#[test]
fn it_reads_our_chunks_unless_they_are_special() {
    it_reads_ours(&supported(&SPLITS, 2), |header| header.special.is_some(), decompress);
}

#[test]
fn it_reads_our_chunks_of_blosc1_without_bitshuffle() {
    let mut cases = blosc1_cases();
    cases.retain(|case| case.filters != [Filter::Bitshuffle]);
    it_reads_ours(&cases, |_| false, decompress);
}

const CASE: Case = Case {
    codec: Codec::Zstd,
    level: 5,
    typesize: 16,
    split: SplitMode::Auto,
    filters: Vec::new(),
    blocksize: None,
    dictionary: false,
    blosc1: false,
    kind: Kind::Runs,
    len: 70_000,
    seed: 405,
};

/// Known fault: the header does not say that the blocks are not split. No implementation can read these chunks.
#[test]
fn what_it_writes_at_level_0_or_of_less_than_an_item_is_refused() {
    let short = Case { kind: Kind::Ones, typesize: 33, len: 31, ..CASE };
    for case in [Case { level: 0, ..CASE }, short] {
        let theirs = compress(&case, &case.data()).unwrap();
        assert!(decompress(&theirs).is_err(), "{case:?}");
        let error = blosc2::decompress::<u8>(&theirs).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData, "{case:?}");
        assert!(cases::decode(&theirs, case.typesize).is_err(), "{case:?}");
    }
}

/// Known fault: it ignores unknown filters without an error.
#[test]
fn it_misreads_ours_with_other_filters() {
    for filters in [&[Filter::Delta][..], &[Filter::Bytedelta(0)], &[Filter::ShuffleBytes(4)]] {
        let case = Case { filters: filters.to_vec(), kind: Kind::Ramp, len: 64_000, ..CASE };
        let ours = blosc2::compress(&case.data()[..], &case.params()).unwrap();
        let found = decompress(&ours).unwrap();
        assert!(found.len() == case.len && found != case.data(), "{filters:?}");
        // The header names filters that it has not applied.
        let theirs = compress(&case, &case.data()).unwrap();
        assert_ne!(blosc2::decompress::<u8>(&theirs).unwrap(), case.data(), "{filters:?}");
    }
}

/// Known fault: it treats the last items as bitshuffled if they are not a multiple of eight. Blosc 1 does not
/// bitshuffle them.
#[test]
fn it_misreads_bitshuffled_chunks_of_blosc1_with_blocks_of_other_than_eights() {
    let filters = vec![Filter::Bitshuffle];
    let case = Case { filters, kind: Kind::Ramp, typesize: 4, blosc1: true, ..CASE };
    let ours = blosc2::compress(&case.data()[..], &case.params()).unwrap();
    assert_eq!(decompress(&ours).unwrap().len(), case.len);
    assert_ne!(decompress(&ours).unwrap(), case.data());
}

#[test]
fn it_refuses_ours_with_a_dictionary() {
    let case = Case { dictionary: true, ..CASE };
    let ours = blosc2::compress(&case.data()[..], &case.params()).unwrap();
    assert!(Header::parse(&ours).unwrap().dictionary);
    assert!(decompress(&ours).is_err());
}
