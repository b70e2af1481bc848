//! Chunks and contexts.

upstream! {
    three_filters_write_into_the_source,
}

mod safe {
    use blosc2::{CParams, Filter};

    #[test]
    fn three_filters_write_into_the_source() {
        let source: Vec<i32> = (0..100_000).map(|i| i / 3).collect();
        let before = source.clone();
        let filters = [Filter::Shuffle, Filter::Bitshuffle, Filter::Shuffle];
        let params = CParams::new().filters(&filters).blocksize(8192);
        let chunk = blosc2::compress(&source, &params).unwrap();
        assert!(source == before);
        assert!(blosc2::decompress::<i32>(&chunk).unwrap() == before);
    }
}
