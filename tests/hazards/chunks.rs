//! Hazards of chunks and contexts.

upstream! {
    three_filters_write_into_the_source,
    prefilter_and_two_filters_write_into_the_source,
    prefilter_output_overflows_the_scratch,
    prefilter_leaves_the_end_uninitialised,
    #[cfg(unix)]
    lazy_reads_of_mixed_typesizes_overflow,
    #[cfg(unix)]
    lazy_reads_of_mixed_typesizes_overflow_on_threads,
    #[cfg(unix)]
    lazy_items_of_mixed_typesizes_overflow,
    #[cfg(unix)]
    users_of_one_thread_pool_overflow_its_scratch,
    header_has_another_block_size_than_the_chunk,
    tiny_source_with_dictionary_is_called_a_copy,
    tiny_source_with_dictionary_gets_no_codec,
    stored_chunk_claims_a_dictionary,
    dictionary_samples_overlap,
    dictionary_samples_overflow_the_destination,
    dictionary_overflows_the_destination,
    block_starts_overflow,
    items_use_a_freed_dictionary,
    items_ignore_the_dictionary_of_lz4,
    items_ignore_the_dictionary_of_zstd,
    scattered_items_ignore_the_dictionary,
    items_take_a_pending_mask,
    negative_mask_is_taken,
    items_of_delta_are_wrong,
    scattered_items_of_delta_are_wrong,
    masked_delta_is_wrong,
    masked_first_block_of_delta_hangs_threads,
    broken_first_block_of_delta_hangs_threads,
    delta_of_variable_blocks_is_wrong,
    delta_after_three_filters_is_wrong,
    delta_twice_is_wrong,
    delta_after_a_filter_is_wrong_with_threads,
    delta_before_a_postfilter_is_wrong,
    delta_after_a_prefilter_is_wrong,
    postfilter_sees_uninitialised_values,
    long_value_cannot_be_read,
    items_of_a_long_value_are_wrong,
    variable_blocks_without_room_read_null,
    variable_blocks_without_room_for_their_starts_read_null,
    variable_blocks_without_room_for_samples_read_on,
    variable_blocks_at_level_zero_crash,
    blocks_shorter_than_an_item_are_lost,
    split_with_rest_leaves_bytes_unwritten,
    #[ignore = "guarded in Rust"]
    uninit_chunk_leaves_the_destination,
    #[ignore = "guarded in Rust"]
    masked_blocks_leave_the_destination,
    negative_length_is_decompressed,
    empty_variable_blocks_divide_by_zero,
    empty_variable_blocks_divide_by_zero_on_threads,
    empty_variable_blocks_read_null,
    single_empty_variable_block_reads_null,
    short_header_takes_the_last_special_type,
    short_header_takes_the_last_filter_parameters,
    bitshuffle_of_blosc1_loses_the_end,
    lazy_special_chunk_is_read_past_its_end,
    lazy_trailer_is_read_past_its_end,
    blosclz_match_length_overflows,
    unknown_library_is_null,
    typesize_zero_divides_by_zero,
    typesize_zero_of_zeros_divides_by_zero,
    typesize_zero_of_nans_divides_by_zero,
    typesize_zero_of_uninit_divides_by_zero,
    typesize_zero_of_a_value_divides_by_zero,
    negative_source_is_compressed,
    delta_loses_the_end,
    trunc_prec_loses_the_end,
    int_trunc_loses_the_end,
    first_bytedelta_loses_the_end,
    delta_reads_past_a_short_block,
    global_context_takes_over_a_dictionary,
    #[cfg(unix)]
    environment_overrides_the_parameters,
    #[cfg(unix)]
    chunk_for_blosc1_has_another_version,
    #[cfg(unix)]
    chunk_starts_python,
    #[cfg(unix)]
    #[ignore = "guarded in Rust"]
    child_waits_for_threads_of_its_parent,
    nested_call_waits_for_its_own_thread,
}

mod safe {
    use std::fs;
    use std::path::PathBuf;

    #[cfg(unix)]
    use crate::common::fork;
    use crate::common::{Rng, VARIABLES, own_process, run_alone};
    use blosc2::user_defined::{BoxError, ChunkBlock};
    use blosc2::{
        CParams, Chunk, ChunkRef, Codec, Compressor, DParams, Decompressor, ErrorKind, Filter,
        NDArray, SChunk, SplitMode, Threads,
    };

    /// The flags of a chunk's header.
    const EXTENDED: u8 = 5;
    const COPIED: u8 = 2;
    const NOT_SPLIT: u8 = 0x10;

    /// The header of a chunk. The flags determine whether it is the long one.
    fn header(version: u8, flags: u8, typesize: u8, sizes: [i32; 3]) -> Vec<u8> {
        let mut header = vec![version, 1, flags, typesize];
        header.extend(sizes.iter().flat_map(|size| size.to_le_bytes()));
        header.resize(if flags & EXTENDED == EXTENDED { 32 } else { 16 }, 0);
        header
    }

    /// Asserts that a chunk is refused as broken.
    fn assert_broken(chunk: &[u8]) {
        let error = blosc2::decompress::<u8>(chunk).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData, "{error}");
    }

    /// Asserts that bytes are the same after compression and decompression.
    fn assert_survives(source: &[u8], params: &CParams) {
        let chunk = blosc2::compress(source, params).unwrap();
        assert!(blosc2::decompress::<u8>(&chunk).unwrap() == source);
    }

    /// Bytes that no codec compresses.
    fn noise(len: usize) -> Vec<u8> {
        Rng(1).bytes(len)
    }

    fn lz4(typesize: usize) -> CParams {
        CParams::new().codec(Codec::Lz4).typesize(typesize).blocksize(8192)
    }

    /// A path in the folder for temporary files that no other test uses.
    fn fresh(name: &str) -> PathBuf {
        let name = format!("blosc2-hazards-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = fs::remove_file(&path);
        path
    }

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

    fn copy(block: &mut ChunkBlock<'_>) -> Result<(), BoxError> {
        let input = block.input();
        block.output().copy_from_slice(input);
        Ok(())
    }

    #[test]
    fn prefilter_and_two_filters_write_into_the_source() {
        let source: Vec<i32> = (0..20_000).map(|i| i / 3).collect();
        let before = source.clone();
        let params = CParams::new().filters(&[Filter::Shuffle, Filter::Bitshuffle]).blocksize(8192);
        let mut compressor = Compressor::new(params.clone().prefilter(copy)).unwrap();
        let chunk = compressor.compress(&source).unwrap();
        assert!(source == before);
        assert!(chunk.decompress::<i32>().unwrap() == before);
    }

    /// The output of a prefilter has the size of its input. Bytes that the closure does not write are zeros, also after
    /// the last whole item.
    #[test]
    fn prefilter_output_overflows_the_scratch() {
        let source = vec![5u8; 20_000];
        let nines = |block: &mut ChunkBlock<'_>| -> Result<(), BoxError> {
            assert_eq!(block.output().len(), block.input().len());
            block.output().fill(9);
            Ok(())
        };
        let mut compressor = Compressor::new(lz4(1).filters(&[]).prefilter(nines)).unwrap();
        let chunk = compressor.compress(&source).unwrap();
        assert!(chunk.decompress::<u8>().unwrap() == [9; 20_000]);
    }

    #[test]
    fn prefilter_leaves_the_end_uninitialised() {
        let some = |block: &mut ChunkBlock<'_>| -> Result<(), BoxError> {
            let len = block.output().len() / 4 * 4;
            block.output()[..len].fill(9);
            Ok(())
        };
        let mut compressor = Compressor::new(lz4(4).filters(&[]).prefilter(some)).unwrap();
        let found: Vec<u8> = compressor.compress(&[5u8; 4003]).unwrap().decompress().unwrap();
        assert!(found[..4000] == [9; 4000] && found[4000..] == [0; 3]);
    }

    #[test]
    fn nested_call_waits_for_its_own_thread() {
        let words: Vec<i32> = (0..20_000).collect();
        let params = lz4(4).filters(&[]).threads(Threads::new(4));
        let chunk = blosc2::compress(&words, &params).unwrap();
        let (inner, expected) = (chunk.clone(), words.clone());
        let nested = move |block: &mut ChunkBlock<'_>| -> Result<(), BoxError> {
            let params = DParams::new().threads(Threads::new(4));
            let chunk = blosc2::ChunkRef::new(inner.as_slice())?;
            let mut decompressor = Decompressor::new(&params)?;
            assert!(decompressor.decompress::<i32>(&chunk)? == expected);
            copy(block)
        };
        let params = DParams::new().threads(Threads::new(4));
        let mut decompressor = Decompressor::new(params.clone().postfilter(nested)).unwrap();
        let chunk = blosc2::ChunkRef::new(chunk.as_slice()).unwrap();
        assert!(decompressor.decompress::<i32>(&chunk).unwrap() == words);
    }

    /// Reads the frame of chunks of several typesizes that C writes; see `C_READS_FRAMES`.
    #[cfg(all(unix, target_endian = "little"))]
    fn read_mixed_typesizes(name: &str, threads: usize) {
        use std::ffi::{CString, c_char, c_int};

        unsafe extern "C" {
            fn write_mixed_typesizes(path: *const c_char) -> c_int;
        }
        crate::start();
        let path = fresh(name);
        let c_path = CString::new(path.to_str().unwrap()).unwrap();
        // SAFETY: the function of the C file beside this one takes a string.
        assert_eq!(unsafe { write_mixed_typesizes(c_path.as_ptr()) }, 2);
        let mut schunk = SChunk::open(&path).unwrap();
        schunk.set_dparams(DParams::new().threads(Threads::new(threads)));
        let first = schunk.decompress_chunk::<u8>(0).unwrap();
        let second = schunk.decompress_chunk::<u8>(1).unwrap();
        fs::remove_file(&path).unwrap();
        assert_eq!(first.len(), 8 * 65536);
        assert!(first == second && first.iter().any(|&byte| byte != 0));
    }

    #[cfg(all(unix, target_endian = "little"))]
    #[test]
    fn lazy_reads_of_mixed_typesizes_overflow() {
        read_mixed_typesizes("mixed", 1);
    }

    #[cfg(all(unix, target_endian = "little"))]
    #[test]
    fn lazy_reads_of_mixed_typesizes_overflow_on_threads() {
        read_mixed_typesizes("mixed-threads", 2);
    }

    #[test]
    fn users_of_one_thread_pool_overflow_its_scratch() {
        let mut source = vec![0; 8 * 65536];
        for block in source.chunks_exact_mut(65536).step_by(2) {
            block.copy_from_slice(&noise(65536));
        }
        let threads = Threads::new(2);
        let path = fresh("pool.b2frame");
        let params =
            |typesize| lz4(typesize).blocksize(65536).split(SplitMode::Always).threads(threads);
        let mut other = SChunk::in_memory::<u8>(&params(1)).unwrap();
        other.append(&source).unwrap();
        let mut schunk = SChunk::create::<u8>(&path, &params(128)).unwrap();
        schunk.append(&source).unwrap();
        schunk.set_dparams(DParams::new().threads(threads));
        assert!(schunk.decompress_chunk::<u8>(0).unwrap() == source);
        assert!(other.decompress_chunk::<u8>(0).unwrap() == source);
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn header_has_another_block_size_than_the_chunk() {
        let source: Vec<u8> = (0..10_000).map(|i| (i / 100) as u8).collect();
        assert_survives(&source, &lz4(4).blocksize(1002));
    }

    #[test]
    fn tiny_source_with_dictionary_is_called_a_copy() {
        assert_survives(&[7; 20], &lz4(1).filters(&[]).dictionary(true));
    }

    #[test]
    fn tiny_source_with_dictionary_gets_no_codec() {
        assert_survives(&b"ab".repeat(16)[..31], &lz4(1).filters(&[]).dictionary(true));
    }

    #[test]
    fn stored_chunk_claims_a_dictionary() {
        assert_survives(&noise(20_000), &lz4(4).dictionary(true));
    }

    #[test]
    fn dictionary_samples_overlap() {
        let source: Vec<i32> = (0..100_000).map(|i| i * 7919 % 1000).collect();
        let chunk = blosc2::compress(&source, &lz4(4).dictionary(true)).unwrap();
        assert!(blosc2::decompress::<i32>(&chunk).unwrap() == source);
    }

    #[test]
    fn masked_delta_is_wrong() {
        let source: Vec<i32> = (0..100_000).map(|i| i * 3).collect();
        for threads in [1, 4] {
            let params =
                CParams::new().codec(Codec::Lz4).filters(&[Filter::Delta, Filter::Shuffle]);
            let mut array = NDArray::builder()
                .chunk_shape([100_000])
                .block_shape([2048])
                .cparams(params)
                .from_slice(&source, [100_000])
                .unwrap();
            array.set_dparams(DParams::new().threads(Threads::new(threads)));
            let part = array.read::<Vec<i32>>(&[50_000..50_010]).unwrap();
            assert_eq!(part, source[50_000..50_010]);
        }
    }

    #[test]
    fn masked_first_block_of_delta_hangs_threads() {
        let source: Vec<i32> = (0..100_000).map(|i| i * 3).collect();
        let params = CParams::new().codec(Codec::Lz4).filters(&[Filter::Delta]);
        let array = NDArray::builder().chunk_shape([100_000]).block_shape([2048]).cparams(params);
        let mut array = array.from_slice(&source, [100_000]).unwrap();
        array.set_dparams(DParams::new().threads(Threads::new(4)));
        for at in [10_000, 50_000, 99_990] {
            let part = array.read::<Vec<i32>>(&[at as u64..at as u64 + 10]).unwrap();
            assert_eq!(part, source[at..at + 10]);
        }
    }

    #[test]
    fn broken_first_block_of_delta_hangs_threads() {
        let source: Vec<i32> = (0..100_000).map(|i| i * 3).collect();
        let path = fresh("delta.b2frame");
        let filters = [Filter::Delta, Filter::Shuffle];
        let params = lz4(4).blocksize(100_000).split(SplitMode::Never).filters(&filters);
        SChunk::create::<i32>(&path, &params).unwrap().append(&source).unwrap();
        let mut frame = fs::read(&path).unwrap();
        let chunk = u32::from_be_bytes(frame[11..15].try_into().unwrap()) as usize;
        let get =
            |at: usize, frame: &[u8]| u32::from_le_bytes(frame[at..at + 4].try_into().unwrap());
        let stream = chunk + get(chunk + 32, &frame) as usize;
        let shorter = get(stream, &frame) - 1;
        frame[stream..stream + 4].copy_from_slice(&shorter.to_le_bytes());
        fs::write(&path, &frame).unwrap();
        let mut schunk = SChunk::open(&path).unwrap();
        schunk.set_dparams(DParams::new().threads(Threads::new(4)));
        for _ in 0..50 {
            assert_eq!(
                schunk.decompress_chunk::<i32>(0).unwrap_err().kind(),
                ErrorKind::InvalidData
            );
        }
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn split_with_rest_leaves_bytes_unwritten() {
        let mut chunk = header(5, EXTENDED, 3, [8, 8, 48]);
        chunk.extend(36i32.to_le_bytes());
        chunk.resize(48, 0);
        assert_broken(&chunk);
    }

    #[test]
    fn uninit_chunk_leaves_the_destination() {
        let mut chunk = header(5, EXTENDED, 1, [100, 100, 32]);
        chunk[31] = 4 << 4;
        assert_eq!(blosc2::decompress::<u8>(&chunk).unwrap(), [0; 100]);
    }

    #[test]
    fn masked_blocks_leave_the_destination() {
        let source: Vec<i32> = (0..100_000).map(|i| i * 3).collect();
        let array = NDArray::builder()
            .chunk_shape([100_000])
            .block_shape([2048])
            .cparams(CParams::new().codec(Codec::Lz4))
            .from_slice(&source, [100_000])
            .unwrap();
        assert_eq!(array.read::<Vec<i32>>(&[2_000..2_100]).unwrap(), source[2_000..2_100]);
    }

    #[test]
    fn negative_length_is_decompressed() {
        assert_broken(&header(2, NOT_SPLIT, 1, [-16, 100, 16]));
    }

    #[test]
    fn empty_variable_blocks_divide_by_zero() {
        let mut chunk = header(6, EXTENDED | NOT_SPLIT, 1, [0, 5, 32]);
        chunk[30] = 1;
        assert_broken(&chunk);
    }

    #[test]
    fn bitshuffle_of_blosc1_loses_the_end() {
        // Eight items of zeros, which bitshuffling does not change, and two bytes more.
        let mut chunk = header(2, 4 | NOT_SPLIT | 1 << 5, 4, [34, 34, 58]);
        chunk.extend([20i32, 34].iter().flat_map(|value| value.to_le_bytes()));
        chunk.resize(56, 0);
        chunk.extend([1, 2]);
        let data = blosc2::decompress::<u8>(&chunk).unwrap();
        assert_eq!((data.len(), &data[30..]), (34, [0, 0, 1, 2].as_slice()));
    }

    #[test]
    fn short_header_takes_the_last_special_type() {
        let mut chunk = header(2, COPIED, 1, [20, 20, 36]);
        chunk.extend(noise(20));
        assert_eq!(blosc2::decompress::<u8>(&chunk).unwrap(), noise(20));
    }

    #[test]
    fn lazy_special_chunk_is_read_past_its_end() {
        let mut chunk = header(5, EXTENDED, 1, [200, 200, 232]);
        chunk[31] = 3 << 4 | 8;
        chunk.push(0);
        assert_broken(&chunk);
    }

    #[test]
    fn lazy_trailer_is_read_past_its_end() {
        let mut chunk = header(5, EXTENDED | NOT_SPLIT, 1, [200, 200, 1000]);
        chunk[31] = 8 | 1;
        chunk.extend([0; 4]);
        assert_broken(&chunk);
    }

    #[test]
    fn blosclz_match_length_overflows() {
        let stream = 3 + 8_421_506 + 3;
        let mut chunk = header(5, EXTENDED | NOT_SPLIT, 1, [65_536, 65_536, 40 + stream]);
        chunk.extend([36, stream].iter().flat_map(|value| value.to_le_bytes()));
        chunk.extend([0, 0, 0xE0]);
        chunk.resize(40 + stream as usize - 3, 255);
        chunk.extend([0; 3]);
        assert_broken(&chunk);
    }

    #[test]
    fn typesize_zero_divides_by_zero() {
        let error = blosc2::compress(&[1u8; 100], &CParams::new().typesize(0)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }

    /// Filters that need whole items return an error; the broken bytedelta is for reading only.
    fn assert_needs_whole_items(filter: Filter) {
        let params = lz4(4).filters(&[filter]);
        let error = blosc2::compress(&[1u8; 4003], &params).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    }

    #[test]
    fn delta_loses_the_end() {
        assert_needs_whole_items(Filter::Delta);
    }

    #[test]
    fn trunc_prec_loses_the_end() {
        assert_needs_whole_items(Filter::TruncPrec(10));
    }

    #[test]
    fn int_trunc_loses_the_end() {
        assert_needs_whole_items(Filter::IntTrunc(10));
    }

    #[test]
    fn first_bytedelta_loses_the_end() {
        assert_needs_whole_items(Filter::Other { code: 34, meta: 4 });
    }

    #[cfg(unix)]
    /// Reads scattered items of a super-chunk with one chunk of several blocks.
    fn scattered(params: &CParams) {
        let items: Vec<i32> = (0..50_000).map(|at| at / 3).collect();
        let mut schunk = SChunk::in_memory::<i32>(&params.clone().blocksize(8192)).unwrap();
        schunk.append(&items).unwrap();
        let numbers = [49_999u64, 0, 2047, 2048, 30_000, 30_000];
        let expected = numbers.map(|number| items[number as usize]);
        assert_eq!(schunk.read::<i32>(&numbers).unwrap(), expected);
        assert!(schunk.read::<i32>(2000..30_000).unwrap() == items[2000..30_000]);
    }

    #[test]
    fn scattered_items_ignore_the_dictionary() {
        scattered(&CParams::new().codec(Codec::Zstd).dictionary(true));
    }

    #[test]
    fn scattered_items_of_delta_are_wrong() {
        scattered(&CParams::new().filters(&[Filter::Delta, Filter::Shuffle]));
    }

    #[test]
    fn environment_overrides_the_parameters() {
        if own_process().is_none() {
            let folder = tempfile::tempdir().unwrap();
            let test = "chunks::safe::environment_overrides_the_parameters";
            run_alone(test, folder.path(), &VARIABLES);
            return;
        }
        let items: Vec<i32> = (0..10_000).map(|i| i / 3).collect();
        let chunk = blosc2::compress(&items, &lz4(4)).unwrap();
        // The typesize, that it is compressed, and that it is by LZ4.
        assert_eq!((chunk[3], chunk[2] & COPIED, chunk[2] >> 5), (4, 0, 1));
    }

    #[cfg(unix)]
    #[test]
    fn child_waits_for_threads_of_its_parent() {
        if own_process().is_none() {
            let folder = tempfile::tempdir().unwrap();
            let test = "chunks::safe::child_waits_for_threads_of_its_parent";
            run_alone(test, folder.path(), &[]);
            return;
        }
        let params = lz4(4).threads(Threads::new(4));
        let compress = || blosc2::compress(&[7i32; 100_000], &params);
        compress().unwrap();
        let status = fork(|| match compress() {
            Err(error) if error.kind() == ErrorKind::Unsupported => 0,
            // With an installed library there is one thread only.
            Ok(_) if !blosc2_sys::HARDENED => 0,
            _ => 1,
        });
        assert_eq!(status, Some(0));
    }

    #[test]
    fn chunk_starts_python() {
        let mut chunk = header(5, EXTENDED | NOT_SPLIT | 6 << 5, 1, [100, 100, 60]);
        chunk[16 + 6] = 36;
        chunk.extend([36i32, 20].iter().flat_map(|value| value.to_le_bytes()));
        chunk.resize(60, 0);
        let error = blosc2::decompress::<u8>(&chunk).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    }

    /// 20,000 numbers, and blocks of 8 KiB.
    fn numbers() -> Vec<i32> {
        (0..20_000).map(|i| i * 3).collect()
    }

    fn decompressor(threads: usize) -> Decompressor {
        Decompressor::new(&DParams::new().threads(Threads::new(threads))).unwrap()
    }

    #[test]
    fn lazy_items_of_mixed_typesizes_overflow() {
        let source = noise(8 * 65_536);
        let chunk = |typesize| {
            let params = lz4(typesize).blocksize(65_536).split(SplitMode::Always);
            Chunk::new(blosc2::compress(&source, &params).unwrap()).unwrap()
        };
        let (narrow, wide) = (chunk(1), chunk(128));
        let mut decompressor = decompressor(1);
        for _ in 0..4 {
            assert!(decompressor.items::<u8>(&narrow, 100..228).unwrap() == source[100..228]);
            assert!(decompressor.items::<u8>(&wide, 128..256).unwrap() == source[128..256]);
        }
    }

    fn steps() -> Vec<u8> {
        (0..200_000).map(|i| (i / 500) as u8).collect()
    }

    #[test]
    fn dictionary_samples_overflow_the_destination() {
        let source = steps();
        let mut compressor = Compressor::new(&lz4(4).dictionary(true)).unwrap();
        let mut target = vec![0; 100_000];
        let len = compressor.compress_into(&source, &mut target).unwrap();
        assert!(blosc2::decompress::<u8>(&target[..len]).unwrap() == source);
    }

    #[test]
    fn dictionary_overflows_the_destination() {
        let params = lz4(4).dictionary(true).threads(Threads::new(2));
        let mut compressor = Compressor::new(&params).unwrap();
        let error = compressor.compress_into(&noise(200_000), &mut [0; 100]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BufferTooSmall, "{error}");
    }

    /// A chunk with a dictionary, and its items.
    fn with_dictionary(codec: Codec) -> (Vec<i32>, Vec<u8>) {
        let items: Vec<i32> = (0..20_000).map(|i| i * 7919 % 1000).collect();
        let params = lz4(4).codec(codec).blocksize(64).dictionary(true);
        let chunk = blosc2::compress(&items, &params).unwrap();
        assert!(ChunkRef::new(&chunk).unwrap().has_dictionary());
        (items, chunk)
    }

    #[test]
    fn items_use_a_freed_dictionary() {
        let (items, first) = with_dictionary(Codec::Zstd);
        let second = Chunk::new(first.clone()).unwrap();
        let mut decompressor = decompressor(1);
        decompressor.decompress::<i32>(&ChunkRef::new(&first).unwrap()).unwrap();
        drop(first);
        let found = decompressor.items::<i32>(&second, 5000..5010).unwrap();
        assert_eq!(found, items[5000..5010]);
    }

    fn read_items_with_dictionary(codec: Codec) {
        let (items, chunk) = with_dictionary(codec);
        let chunk = Chunk::new(chunk).unwrap();
        assert_eq!(chunk.items::<i32>(5000..5010).unwrap(), items[5000..5010]);
    }

    #[test]
    fn items_ignore_the_dictionary_of_lz4() {
        read_items_with_dictionary(Codec::Lz4);
    }

    #[test]
    fn items_ignore_the_dictionary_of_zstd() {
        read_items_with_dictionary(Codec::Zstd);
    }

    #[test]
    fn block_starts_overflow() {
        let source = vec![0u8; (1 << 29) + 8];
        let mut compressor = Compressor::new(&lz4(1).filters(&[]).blocksize(1)).unwrap();
        let error = compressor.compress_into(&source, &mut [0; 100]).unwrap_err();
        let expected =
            if blosc2_sys::HARDENED { ErrorKind::BufferTooSmall } else { ErrorKind::Unsupported };
        assert_eq!(error.kind(), expected, "{error}");
    }

    #[test]
    fn items_take_a_pending_mask() {
        let items = numbers();
        let chunk = Chunk::new(blosc2::compress(&items, &lz4(4)).unwrap()).unwrap();
        let mut decompressor = decompressor(1);
        let error = decompressor.decompress_masked(&chunk, &[false; 2], &mut [0; 80_000]);
        assert_eq!(error.unwrap_err().kind(), ErrorKind::InvalidArgument);
        let found = decompressor.items::<i32>(&chunk, 19_000..19_001).unwrap();
        assert_eq!(found, items[19_000..19_001]);
    }

    #[test]
    fn items_of_delta_are_wrong() {
        let items = numbers();
        let params = lz4(4).filters(&[Filter::Delta, Filter::Shuffle]);
        let chunk = Chunk::new(blosc2::compress(&items, &params).unwrap()).unwrap();
        for threads in [1, 4] {
            let found = decompressor(threads).items::<i32>(&chunk, 10_000..15_000).unwrap();
            assert!(found == items[10_000..15_000]);
        }
    }

    /// The chunk that the C function of the same name creates, with these filters.
    fn stored_blocks(filters: [u8; 6], block: impl Fn(usize) -> Vec<u8>) -> Vec<u8> {
        let mut chunk = header(5, EXTENDED | NOT_SPLIT, 4, [2048, 1024, 32 + 8 + 2 * 1028]);
        chunk[16..22].copy_from_slice(&filters);
        chunk.extend([40i32, 40 + 1028].iter().flat_map(|start| start.to_le_bytes()));
        for index in 0..2 {
            chunk.extend(1024i32.to_le_bytes());
            chunk.extend(block(index));
        }
        chunk
    }

    /// Delta, as C applies it to block 0 or 1 of items of 4 bytes.
    fn delta(index: usize, data: &[u8], source: &[u8]) -> Vec<u8> {
        let before = |at: usize| match index {
            0 => at.checked_sub(4).map_or(0, |before| data[before]),
            _ => source[at],
        };
        (0..data.len()).map(|at| data[at] ^ before(at)).collect()
    }

    fn shuffle(data: &[u8]) -> Vec<u8> {
        let count = data.len() / 4;
        (0..data.len()).map(|at| data[at % count * 4 + at / count]).collect()
    }

    /// Both libraries in Rust read the chunk, on any number of threads, also in part.
    fn assert_reads(chunk: &[u8], source: &[u8]) {
        for threads in [1, 4] {
            let chunk = ChunkRef::new(chunk).unwrap();
            let mut decompressor = decompressor(threads);
            assert!(decompressor.decompress::<u8>(&chunk).unwrap() == source);
            assert!(decompressor.items::<u8>(&chunk, 1500..1900).unwrap() == source[1500..1900]);
        }
        let chunk = blosc2_format::chunk::Chunk::new(chunk, &Default::default()).unwrap();
        assert!(chunk.decode().unwrap() == source);
    }

    #[test]
    fn delta_after_three_filters_is_wrong() {
        let source = noise(2048);
        let chunk = stored_blocks([1, 1, 1, 3, 1, 0], |index| {
            let block = &source[index * 1024..][..1024];
            shuffle(&delta(index, &shuffle(&shuffle(&shuffle(block))), &source))
        });
        assert_reads(&chunk, &source);
    }

    #[test]
    fn delta_twice_is_wrong() {
        let source = noise(2048);
        let chunk = stored_blocks([3, 1, 3, 0, 0, 0], |index| {
            let block = &source[index * 1024..][..1024];
            delta(index, &shuffle(&delta(index, block, &source)), &source)
        });
        assert_reads(&chunk, &source);
    }

    #[test]
    fn delta_after_a_filter_is_wrong_with_threads() {
        let source = noise(2048);
        let chunk = stored_blocks([1, 3, 0, 0, 0, 0], |index| {
            delta(index, &shuffle(&source[index * 1024..][..1024]), &source)
        });
        for _ in 0..50 {
            assert_reads(&chunk, &source);
        }
    }

    #[test]
    fn delta_before_a_postfilter_is_wrong() {
        let items = numbers();
        let params = lz4(4).filters(&[Filter::Delta, Filter::Shuffle]);
        let chunk = Chunk::new(blosc2::compress(&items, &params).unwrap()).unwrap();
        let add_one = |block: &mut ChunkBlock<'_>| -> Result<(), BoxError> {
            let input = block.input_as::<i32>()?;
            let pairs = block.output_as::<i32>()?.iter_mut().zip(input);
            pairs.for_each(|(to, from)| *to = from + 1);
            Ok(())
        };
        let expected: Vec<i32> = items.iter().map(|item| item + 1).collect();
        for threads in [1, 4] {
            let mut decompressor =
                Decompressor::new(DParams::new().threads(threads).postfilter(add_one)).unwrap();
            assert!(decompressor.decompress::<i32>(&chunk).unwrap() == expected);
            let found = decompressor.items::<i32>(&chunk, 10_000..15_000).unwrap();
            assert!(found == expected[10_000..15_000]);
        }
    }

    #[test]
    fn delta_after_a_prefilter_is_wrong() {
        let double = |block: &mut ChunkBlock<'_>| -> Result<(), BoxError> {
            let input = block.input_as::<i32>()?;
            let pairs = block.output_as::<i32>()?.iter_mut().zip(input);
            pairs.for_each(|(to, from)| *to = from * 2);
            Ok(())
        };
        let params = lz4(4).filters(&[Filter::Delta, Filter::Shuffle]);
        let mut compressor = Compressor::new(params.clone().prefilter(double)).unwrap();
        let items = numbers();
        let chunk = compressor.compress(&items).unwrap();
        let expected: Vec<i32> = items.iter().map(|item| item * 2).collect();
        assert!(chunk.decompress::<i32>().unwrap() == expected);
    }

    #[test]
    fn postfilter_sees_uninitialised_values() {
        let copy = |block: &mut ChunkBlock<'_>| -> Result<(), BoxError> {
            let input = block.input_as::<u8>()?;
            block.output_as::<u8>()?.copy_from_slice(input);
            Ok(())
        };
        let mut decompressor = Decompressor::new(DParams::new().postfilter(copy)).unwrap();
        let chunk = Chunk::new(blosc2::compress(&noise(8192), &lz4(1)).unwrap()).unwrap();
        decompressor.decompress::<u8>(&chunk).unwrap();
        let uninit = Chunk::uninit::<u8>(8192, &lz4(1)).unwrap();
        assert!(decompressor.decompress::<u8>(&uninit).unwrap() == [0; 8192]);
    }

    /// A chunk of 1000 times 300 bytes, and the bytes.
    fn long_value() -> (Chunk, Vec<u8>) {
        let value = noise(300);
        let chunk = Chunk::repeat(&value, 1000, &CParams::new().blocksize(8192)).unwrap();
        (chunk, value.repeat(1000))
    }

    #[test]
    fn long_value_cannot_be_read() {
        assert_invalid(Chunk::repeat(&noise(300), 1000, &CParams::new().blocksize(200)));
        let (chunk, expected) = long_value();
        assert!(chunk.decompress::<u8>().unwrap() == expected);
        // Blocks that C writes too.
        let mut bytes = chunk.into_bytes();
        bytes[8..12].copy_from_slice(&200i32.to_le_bytes());
        assert!(blosc2::decompress::<u8>(&bytes).unwrap() == expected);
    }

    #[test]
    fn items_of_a_long_value_are_wrong() {
        let (chunk, expected) = long_value();
        assert!(chunk.items::<u8>(100..400).unwrap() == expected[100..400]);
    }

    /// Compresses blocks of equal lengths as variable-length blocks, and reads all and one of them.
    fn pass_variable(source: &[u8], len: usize, params: &CParams) {
        let blocks: Vec<&[u8]> = source.chunks(len).collect();
        let chunk = Compressor::new(params).unwrap().compress_blocks(&blocks).unwrap();
        assert!(chunk.blocks().unwrap().iter().eq(blocks.iter().copied()));
        assert!(chunk.block(blocks.len() - 1).unwrap() == blocks[blocks.len() - 1]);
        assert!(chunk.decompress::<u8>().unwrap() == source);
    }

    #[test]
    fn variable_blocks_without_room_read_null() {
        pass_variable(&noise(4 * 4096), 4096, &lz4(1));
    }

    #[test]
    fn variable_blocks_without_room_for_their_starts_read_null() {
        pass_variable(&noise(10), 1, &lz4(1));
    }

    #[test]
    fn variable_blocks_without_room_for_samples_read_on() {
        pass_variable(&steps()[..40_960], 4096, &lz4(1).codec(Codec::Zstd).dictionary(true));
    }

    #[test]
    fn variable_blocks_at_level_zero_crash() {
        let mut compressor = Compressor::new(&lz4(1).level(0)).unwrap();
        let block = [7u8; 100].as_slice();
        let chunk = compressor.compress_blocks(&[block]);
        if blosc2_sys::HARDENED {
            assert_eq!(chunk.unwrap().block(0).unwrap(), block);
        } else {
            assert_eq!(chunk.unwrap_err().kind(), ErrorKind::Unsupported);
        }
    }

    #[test]
    fn blocks_shorter_than_an_item_are_lost() {
        let params = lz4(8).blocksize(4).split(SplitMode::Always);
        let error = blosc2::compress(&noise(1000), &params).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    }

    /// Asserts that variable-length blocks without data are refused in every way of reading.
    fn assert_empty_variable_is_broken() {
        let mut chunk = header(6, EXTENDED | NOT_SPLIT, 1, [0, 5, 32]);
        chunk[30] = 1;
        let error = Chunk::new(chunk).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData, "{error}");
    }

    #[test]
    fn empty_variable_blocks_divide_by_zero_on_threads() {
        assert_empty_variable_is_broken();
    }

    #[test]
    fn empty_variable_blocks_read_null() {
        assert_empty_variable_is_broken();
    }

    #[test]
    fn single_empty_variable_block_reads_null() {
        assert_empty_variable_is_broken();
    }

    /// Both with other sizes than the chunk before, and with the same, where a context is reused.
    #[test]
    fn short_header_takes_the_last_filter_parameters() {
        let items = numbers();
        for len in [32, 4 * items.len()] {
            let params = lz4(4).filters(&[Filter::ShuffleBytes(2)]).blocksize(4 * items.len());
            let grouped = blosc2::compress(&items, &params).unwrap();
            let source = noise(len);
            let size = len as i32;
            let mut chunk = header(2, 1 | NOT_SPLIT, 4, [size, size, 24 + size]);
            chunk.extend([20, size].iter().flat_map(|value| value.to_le_bytes()));
            chunk.extend(shuffle(&source));
            let mut decompressor = decompressor(1);
            let read = decompressor.decompress::<i32>(&Chunk::new(grouped).unwrap()).unwrap();
            assert!(read == items);
            let read = decompressor.decompress::<u8>(&Chunk::new(chunk).unwrap()).unwrap();
            assert!(read == source, "{len} bytes");
        }
    }

    /// Delta is refused with blocks of variable length.
    fn assert_no_delta(blocks: &[&[u8]]) {
        let mut compressor = Compressor::new(&lz4(1).filters(&[Filter::Delta])).unwrap();
        let error = compressor.compress_blocks(blocks).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    }

    #[test]
    fn delta_of_variable_blocks_is_wrong() {
        assert_no_delta(&[&[1; 10_000], &[2; 10_000], &[3; 10_000]]);
    }

    #[test]
    fn delta_reads_past_a_short_block() {
        assert_no_delta(&[b"9"]);
    }

    fn assert_invalid(chunk: blosc2::Result<Chunk>) {
        let error = chunk.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    }

    #[test]
    fn typesize_zero_of_zeros_divides_by_zero() {
        assert_invalid(Chunk::zeros::<u8>(100, &CParams::new().typesize(0)));
    }

    #[test]
    fn typesize_zero_of_nans_divides_by_zero() {
        assert_invalid(Chunk::nans::<f32>(25, &CParams::new().typesize(0)));
    }

    #[test]
    fn typesize_zero_of_uninit_divides_by_zero() {
        assert_invalid(Chunk::uninit::<u8>(100, &CParams::new().typesize(0)));
    }

    #[test]
    fn typesize_zero_of_a_value_divides_by_zero() {
        assert_invalid(Chunk::repeat::<u8>(&[], 100, &CParams::new()));
    }

    #[test]
    fn unknown_library_is_null() {
        assert!(Codec::from_code(200).library().is_none());
    }

    #[test]
    fn chunk_for_blosc1_has_another_version() {
        // 20 items: Blosc1 does not shuffle numbers of items that are not a multiple of 8.
        let source = noise(80).repeat(5);
        let params = lz4(4).filters(&[Filter::Bitshuffle]).blocksize(80).blosc1(true);
        let chunk = Chunk::new(blosc2::compress(&source, &params).unwrap()).unwrap();
        assert_eq!((chunk.is_blosc1(), chunk.format_version()), (true, 2));
        assert!(chunk.decompress::<u8>().unwrap() == source);
        let chunk =
            blosc2_format::chunk::Chunk::new(chunk.as_bytes(), &Default::default()).unwrap();
        assert!(chunk.decode().unwrap() == source);
    }
}
