//! Chunks and contexts.

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
    chunk_starts_python,
    #[cfg(unix)]
    #[ignore = "guarded in Rust"]
    child_waits_for_threads_of_its_parent,
    #[ignore = "guarded in Rust"]
    nested_call_waits_for_its_own_thread,
}

mod safe {
    use std::ffi::{CString, c_char, c_int};
    use std::fs;
    use std::path::PathBuf;

    #[cfg(unix)]
    use crate::common::fork;
    use crate::common::{VARIABLES, own_process, run_alone};
    use blosc2::{CParams, Codec, DParams, ErrorKind, Filter, NDArray, SChunk, SplitMode, Threads};

    /// The flags of a chunk's header.
    const EXTENDED: u8 = 5;
    const COPIED: u8 = 2;
    const NOT_SPLIT: u8 = 0x10;

    /// The header of a chunk, the long one when its flags say so.
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

    /// Asserts that bytes come back as they were.
    fn assert_survives(source: &[u8], params: &CParams) {
        let chunk = blosc2::compress(source, params).unwrap();
        assert!(blosc2::decompress::<u8>(&chunk).unwrap() == source);
    }

    /// Bytes that no codec makes smaller.
    fn noise(len: usize) -> Vec<u8> {
        let mut seed = 1u32;
        let next = || {
            seed = seed.wrapping_mul(1_103_515_245).wrapping_add(12_345);
            (seed >> 16) as u8
        };
        std::iter::repeat_with(next).take(len).collect()
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

    /// Reads the frame of chunks of several typesizes that C writes.
    #[cfg(unix)]
    fn read_mixed_typesizes(name: &str, threads: usize) {
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
        let first = schunk.chunk::<u8>(0).unwrap();
        let second = schunk.chunk::<u8>(1).unwrap();
        fs::remove_file(&path).unwrap();
        assert_eq!(first.len(), 8 * 65536);
        assert!(first == second && first.iter().any(|&byte| byte != 0));
    }

    #[cfg(unix)]
    #[test]
    fn lazy_reads_of_mixed_typesizes_overflow() {
        read_mixed_typesizes("mixed", 1);
    }

    #[cfg(unix)]
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
        assert!(schunk.chunk::<u8>(0).unwrap() == source);
        assert!(other.chunk::<u8>(0).unwrap() == source);
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
                .chunks(&[100_000])
                .blocks(&[2048])
                .cparams(params)
                .from_slice(&source, &[100_000])
                .unwrap();
            array.set_dparams(DParams::new().threads(Threads::new(threads)));
            let part = array.read::<i32>(&[50_000..50_010]).unwrap();
            assert_eq!(part, source[50_000..50_010]);
        }
    }

    #[test]
    fn masked_first_block_of_delta_hangs_threads() {
        let source: Vec<i32> = (0..100_000).map(|i| i * 3).collect();
        let params = CParams::new().codec(Codec::Lz4).filters(&[Filter::Delta]);
        let array = NDArray::builder().chunks(&[100_000]).blocks(&[2048]).cparams(params);
        let mut array = array.from_slice(&source, &[100_000]).unwrap();
        array.set_dparams(DParams::new().threads(Threads::new(4)));
        for at in [10_000, 50_000, 99_990] {
            let part = array.read::<i32>(&[at as u64..at as u64 + 10]).unwrap();
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
            assert_eq!(schunk.chunk::<i32>(0).unwrap_err().kind(), ErrorKind::InvalidData);
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
            .chunks(&[100_000])
            .blocks(&[2048])
            .cparams(CParams::new().codec(Codec::Lz4))
            .from_slice(&source, &[100_000])
            .unwrap();
        assert_eq!(array.read::<i32>(&[2_000..2_100]).unwrap(), source[2_000..2_100]);
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

    /// Filters that need whole items say so; the broken bytedelta is for reading only.
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
}
