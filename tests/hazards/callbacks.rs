//! Hazards of callbacks: postfilters and filters.

upstream! {
    #[ignore = "guarded in Rust"]
    postfilter_receives_wrong_offsets_of_variable_blocks,
    filter_that_fails_leaves_the_destination,
}

mod safe {
    use std::sync::{Arc, Mutex};

    use blosc2::user_defined::{BoxError, ChunkBlock, FilterBlock};
    use blosc2::{CParams, Codec, Compressor, DParams, Decompressor, ErrorKind, Filter};

    fn lz4(filters: &[Filter]) -> CParams {
        CParams::new().codec(Codec::Lz4).blocksize(4096).filters(filters)
    }

    #[test]
    fn postfilter_receives_wrong_offsets_of_variable_blocks() {
        let parts = [vec![1u8; 100], vec![2; 500], vec![3; 300]];
        let blocks: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        let chunk = Compressor::new(&lz4(&[])).unwrap().compress_blocks(&blocks).unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let places = seen.clone();
        let note = move |block: &mut ChunkBlock<'_>| -> Result<(), BoxError> {
            places.lock().unwrap().push((block.index(), block.offset(), block.input().len()));
            let input = block.input();
            block.output().copy_from_slice(input);
            Ok(())
        };
        let mut decompressor = Decompressor::new(DParams::default().postfilter(note)).unwrap();
        assert!(decompressor.decompress::<u8>(&chunk).unwrap() == parts.concat());
        assert_eq!(*seen.lock().unwrap(), [(0, 0, 100), (1, 100, 500), (2, 600, 300)]);
    }

    #[test]
    fn filter_that_fails_leaves_the_destination() {
        fn copy(block: &mut FilterBlock<'_>) -> Result<(), BoxError> {
            let input = block.input();
            block.output().copy_from_slice(input);
            Ok(())
        }
        fn fail(_: &mut FilterBlock<'_>) -> Result<(), BoxError> {
            Err("it fails".into())
        }
        let filter = Filter::register(160, "fails", (copy, fail)).unwrap();
        let numbers: Vec<i32> = (0..10_000).map(|i| i / 16).collect();
        let chunk = blosc2::compress(&numbers, &lz4(&[filter])).unwrap();
        let error = blosc2::decompress::<i32>(&chunk).map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Callback);
    }
}
