//! Frames and super-chunks.

upstream! {
    copied_frame_overflows_when_it_grows,
    copied_frame_loses_its_chunks_when_reordered,
    copied_frame_with_a_broken_chunk_frees_garbage,
    changing_a_borrowed_frame_reallocates_it,
    huge_compressed_size_reads_behind_the_frame,
    huge_compressed_size_copies_from_behind_the_frame,
    index_of_bytes_gives_unset_positions,
    index_without_values_is_used,
    position_that_the_index_lacks_is_stored,
    order_is_read_beyond_its_end,
    filling_a_filled_frame_is_a_null_pointer,
    short_metalayer_is_read_as_a_chunk,
    stored_lazy_chunk_is_read_beyond_its_end,
    appended_lazy_chunk_is_read_beyond_its_end,
    short_chunk_file_is_read_beyond_its_end,
    short_chunk_overflows_a_slice,
    unknown_filter_hides_a_frame,
    broken_file_leaves_null_metalayers,
    dictionary_in_a_memory_map_is_freed,
    three_filters_write_into_a_read_only_map,
    three_filters_write_into_a_mapped_file,
    index_is_read_where_a_map_was,
    lazy_chunk_behind_a_map_is_a_null_pointer,
    seventeenth_metalayer_overwrites_a_field,
    metalayer_8193_overwrites_a_field,
    long_metalayer_name_is_a_null_pointer,
    long_name_of_a_variable_metalayer_is_cut,
    refused_metalayer_blocks_all_changes,
    metalayer_overwrites_special_chunks,
    longer_metalayer_content_is_ignored,
    special_chunk_divides_by_zero,
    slice_divides_by_zero,
    setting_a_slice_divides_by_zero,
    chunks_of_a_slice_divide_by_zero,
    short_blosc1_chunk_is_read_beyond_its_end,
    blosc1_chunk_is_stored_as_zeros,
    blosc1_chunk_in_a_file_is_stored_as_zeros,
    empty_chunk_makes_a_frame_unreadable,
    setting_items_drops_the_rest_of_their_chunk,
    copy_with_other_parameters_is_longer,
    copy_leaves_a_dangling_pointer,
    change_at_an_offset_cuts_the_file,
    scattered_items_need_a_blocksize,
    scattered_items_come_from_other_blocks,
    chunk_out_of_range_leaves_its_results_unset,
    empty_path_is_read_in_front,
    environment_breaks_the_index,
    change_of_a_frame_starts_four_threads,
    #[ignore = "guarded in Rust"]
    two_handles_lose_chunks,
    #[ignore = "guarded in Rust"]
    threads_read_chunks_of_each_other,
}

mod safe {
    use std::fs;
    use std::path::{Path, PathBuf};

    use blosc2::{CParams, ErrorKind, SChunk};
    use tempfile::TempDir;

    const CHUNK: usize = 1000;

    /// Where the header of a frame has its fields.
    const HEADER_LEN: usize = 11;
    const FRAME_LEN: usize = 16;
    const FLAGS: usize = 25;
    const FRAME_TYPE: usize = 26;
    const NBYTES: usize = 30;
    const CBYTES: usize = 39;
    const CHUNKSIZE: usize = 58;
    const FILTERS: usize = 71;

    /// Bytes that do not compress.
    fn noise(seed: u32) -> Vec<u8> {
        let mut state = seed + 1;
        let mut next = || {
            state = state.wrapping_mul(1_103_515_245).wrapping_add(12_345);
            (state >> 16) as u8
        };
        (0..CHUNK).map(|_| next()).collect()
    }

    fn folder() -> (TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("frame");
        (folder, path)
    }

    fn create(path: &Path, nchunks: u32) -> SChunk {
        let mut schunk = SChunk::create::<u8>(path, &CParams::default()).unwrap();
        for number in 0..nchunks {
            schunk.append(&noise(number)).unwrap();
        }
        schunk
    }

    /// A file of so many chunks, its bytes changed.
    fn changed(nchunks: u32, change: impl FnOnce(&mut Vec<u8>)) -> (TempDir, PathBuf) {
        let (folder, path) = folder();
        drop(create(&path, nchunks));
        let mut bytes = fs::read(&path).unwrap();
        change(&mut bytes);
        fs::write(&path, bytes).unwrap();
        (folder, path)
    }

    fn int(bytes: &[u8], at: usize) -> usize {
        u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
    }

    fn put(bytes: &mut [u8], at: usize, value: u64) {
        bytes[at..at + 8].copy_from_slice(&value.to_be_bytes());
    }

    fn header_len(frame: &[u8]) -> usize {
        int(frame, HEADER_LEN)
    }

    fn trailer(frame: &[u8]) -> usize {
        frame.len() - int(frame, frame.len() - 22)
    }

    fn chunks_end(frame: &[u8]) -> usize {
        header_len(frame) + int(frame, CBYTES + 4)
    }

    /// Puts other bytes in the place of some, and the new length into the header.
    fn replace(frame: &mut Vec<u8>, range: std::ops::Range<usize>, with: &[u8]) {
        frame.splice(range, with.iter().copied());
        let len = frame.len() as u64;
        put(frame, FRAME_LEN, len);
    }

    /// Opening it says that it is broken.
    fn is_refused(path: &Path) {
        assert_eq!(SChunk::open(path).unwrap_err().kind(), ErrorKind::InvalidData);
        assert_eq!(SChunk::open_rw(path).unwrap_err().kind(), ErrorKind::InvalidData);
    }

    #[test]
    fn huge_compressed_size_reads_behind_the_frame() {
        for below in [0, 1, 200] {
            let (_folder, path) = changed(2, |bytes| {
                let head = header_len(bytes) as u64;
                put(bytes, CBYTES, i64::MAX as u64 - if below == 200 { 0 } else { head + below });
            });
            is_refused(&path);
        }
    }

    #[test]
    fn index_of_bytes_gives_unset_positions() {
        let (_folder, path) = changed(2, |bytes| {
            let positions = [0u64, (CHUNK + 32) as u64].map(u64::to_le_bytes).concat();
            let index = blosc2::compress(&positions, &CParams::default()).unwrap();
            let range = chunks_end(bytes)..trailer(bytes);
            replace(bytes, range, &index);
        });
        is_refused(&path);
    }

    #[test]
    fn index_without_values_is_used() {
        let (_folder, path) = changed(2, |bytes| {
            let range = chunks_end(bytes)..trailer(bytes);
            let mut index = bytes[range.clone()][..32].to_vec();
            index[12..16].copy_from_slice(&32u32.to_le_bytes());
            index[31] = 4 << 4;
            replace(bytes, range, &index);
        });
        is_refused(&path);
    }

    #[test]
    fn short_metalayer_is_read_as_a_chunk() {
        let (_folder, path) = changed(1, |bytes| {
            let at = trailer(bytes);
            let mut layers = bytes[at..at + 3].to_vec(); // two lists begin
            layers.extend([0xcd, 0, 12, 0xde, 0, 1]); // an index of one entry
            layers.extend([0xa1, b'x', 0xd2, 0, 0, 0, 19]); // its name and place
            layers.extend([0xdc, 0, 1, 0xc6, 0, 0, 0, 3, 1, 2, 3]); // three bytes
            layers.extend(&bytes[bytes.len() - 23..]);
            let (place, len) = (16 + 3, layers.len());
            assert_eq!(layers[place], 0xc6);
            layers[len - 22..len - 18].copy_from_slice(&(len as u32).to_be_bytes());
            let range = at..bytes.len();
            replace(bytes, range, &layers);
        });
        let schunk = SChunk::open(&path).unwrap();
        assert_eq!(schunk.vlmeta().names(), ["x"]);
        assert_eq!(schunk.vlmeta().get("x").unwrap_err().kind(), ErrorKind::InvalidData);
        assert!(schunk.chunk::<u8>(0).unwrap() == noise(0));
    }

    #[test]
    fn stored_lazy_chunk_is_read_beyond_its_end() {
        let (_folder, path) = changed(1, |bytes| {
            let chunk = header_len(bytes);
            bytes[chunk + 31] |= 0x08;
        });
        let read = SChunk::open(&path).and_then(|schunk| schunk.chunk::<u8>(0));
        assert_eq!(read.unwrap_err().kind(), ErrorKind::InvalidData);
    }

    #[test]
    fn short_chunk_file_is_read_beyond_its_end() {
        let (_folder, path) = folder();
        drop(create(&path, 1));
        let mut bytes = fs::read(&path).unwrap();
        let chunk: Vec<u8> = bytes[header_len(&bytes)..chunks_end(&bytes)].to_vec();
        let range = header_len(&bytes)..chunks_end(&bytes);
        replace(&mut bytes, range, &[]);
        bytes[FRAME_TYPE] = 1;
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        fs::write(path.join("chunks.b2frame"), bytes).unwrap();
        fs::write(path.join("00000000.chunk"), &chunk).unwrap();
        assert!(SChunk::open(&path).unwrap().chunk::<u8>(0).unwrap() == noise(0));
        fs::write(path.join("00000000.chunk"), &chunk[..100]).unwrap();
        let read = SChunk::open(&path).and_then(|schunk| schunk.chunk::<u8>(0));
        assert_eq!(read.unwrap_err().kind(), ErrorKind::InvalidData);
    }

    #[test]
    fn unknown_filter_hides_a_frame() {
        let (_folder, path) = changed(1, |bytes| bytes[FILTERS] = 100);
        assert!(SChunk::open(&path).unwrap().chunk::<u8>(0).unwrap() == noise(0));
        assert_eq!(SChunk::open_rw(&path).unwrap_err().kind(), ErrorKind::Unsupported);
    }

    #[test]
    fn special_chunk_divides_by_zero() {
        let (_folder, path) = folder();
        let mut schunk = SChunk::create::<u8>(&path, &CParams::default()).unwrap();
        schunk.append(&[0u8; CHUNK]).unwrap();
        drop(schunk);
        let mut bytes = fs::read(&path).unwrap();
        bytes[CHUNKSIZE..CHUNKSIZE + 4].fill(0);
        bytes[FLAGS] = 0x10 | 0x40 | 3;
        fs::write(&path, bytes).unwrap();
        let read = SChunk::open(&path).and_then(|schunk| schunk.chunk::<u8>(0));
        let refused = match blosc2_sys::HARDENED {
            true => ErrorKind::InvalidData,
            false => ErrorKind::Unsupported,
        };
        assert_eq!(read.unwrap_err().kind(), refused);
    }

    #[test]
    fn empty_chunk_makes_a_frame_unreadable() {
        let (_folder, path) = folder();
        let mut schunk = create(&path, 2);
        assert_eq!(schunk.append::<u8>(&[]).unwrap_err().kind(), ErrorKind::InvalidArgument);
        assert!(schunk.chunk::<u8>(1).unwrap() == noise(1));
    }

    #[test]
    fn copy_with_other_parameters_is_longer() {
        let (folder, path) = folder();
        let mut schunk = create(&path, 2);
        schunk.append(&noise(2)[..10]).unwrap();
        let copy = folder.path().join("copy");
        schunk.copy(&copy, &CParams::new().level(9)).unwrap();
        let copy = SChunk::open(&copy).unwrap();
        assert_eq!((copy.nchunks(), copy.nbytes()), (3, 2010));
        assert!(copy.chunk::<u8>(2).unwrap() == noise(2)[..10]);
    }

    #[test]
    fn empty_path_is_read_in_front() {
        let made = SChunk::create::<u8>("", &CParams::default());
        assert_eq!(made.unwrap_err().kind(), ErrorKind::InvalidArgument);
        assert_eq!(SChunk::open("").unwrap_err().kind(), ErrorKind::NotFound);
    }

    #[test]
    fn position_that_the_index_lacks_is_stored() {
        let (_folder, path) = changed(2, |bytes| put(bytes, NBYTES, 3 * CHUNK as u64));
        is_refused(&path);
    }

    #[test]
    fn change_of_a_frame_starts_four_threads() {
        unsafe extern "C" {
            fn threads_of_calls() -> std::ffi::c_int;
        }
        crate::start();
        // SAFETY: the function of frames.c takes nothing, and its callback keeps C's contract.
        let before = unsafe { threads_of_calls() };
        let (_folder, path) = folder();
        let mut schunk = SChunk::create::<u8>(&path, &CParams::default()).unwrap();
        for _ in 0..4100 {
            schunk.append(&[1u8]).unwrap(); // the index gets several blocks
        }
        // SAFETY: as above.
        let threads = unsafe { threads_of_calls() } - before;
        // An installed library does start them.
        assert_eq!(threads == 0, blosc2_sys::HARDENED, "{threads} threads");
    }

    #[test]
    fn two_handles_lose_chunks() {
        let (_folder, path) = folder();
        let mut one = create(&path, 1);
        assert_eq!(SChunk::open_rw(&path).unwrap_err().kind(), ErrorKind::Busy);
        one.append(&noise(1)).unwrap();
        drop(one);
        let mut two = SChunk::open_rw(&path).unwrap();
        assert_eq!(two.append(&noise(2)).unwrap(), 3);
    }

    #[test]
    fn threads_read_chunks_of_each_other() {
        let (_folder, path) = folder();
        let mut in_memory = SChunk::in_memory::<u8>(&CParams::default()).unwrap();
        let mut in_file = create(&path, 0);
        for number in 0..20 {
            in_memory.append(&noise(number)).unwrap();
            in_file.append(&noise(number)).unwrap();
        }
        for schunk in [&in_memory, &in_file] {
            std::thread::scope(|scope| {
                for thread in 0..4 {
                    scope.spawn(move || {
                        for step in 0..2000 {
                            let number = (thread * 5 + step) % 20;
                            let chunk = schunk.chunk::<u8>(number as usize).unwrap();
                            assert!(chunk == noise(number));
                        }
                    });
                }
            });
        }
    }
}
