//! Hazards of frames and super-chunks.

upstream! {
    copied_frame_overflows_when_it_grows,
    copied_frame_loses_its_chunks_when_reordered,
    copied_frame_with_a_broken_chunk_frees_garbage,
    changing_a_borrowed_frame_reallocates_it,
    huge_compressed_size_reads_behind_the_frame,
    huge_compressed_size_copies_from_behind_the_frame,
    index_of_bytes_returns_unset_positions,
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

    use blosc2::storage::MappedFile;
    use blosc2::{
        CParams, Chunk, Codec, Compressor, ErrorKind, Filter, OpenOptions, SChunk, SaveOptions,
        Special, Target,
    };
    use tempfile::TempDir;

    const CHUNK: usize = 1000;

    /// The offsets of the fields in the header of a frame.
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
        crate::common::Rng(seed.into()).bytes(CHUNK)
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

    /// A file of `nchunks` chunks, with its bytes changed.
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

    /// Replaces a range of bytes, and writes the new length to the header.
    fn replace(frame: &mut Vec<u8>, range: std::ops::Range<usize>, with: &[u8]) {
        frame.splice(range, with.iter().copied());
        let len = frame.len() as u64;
        put(frame, FRAME_LEN, len);
    }

    /// Asserts that the file is refused as damaged.
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
    fn index_of_bytes_returns_unset_positions() {
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
            layers.extend([0xcd, 0, 13, 0xde, 0, 1]); // an index of one entry
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
        assert!(schunk.decompress_chunk::<u8>(0).unwrap() == noise(0));
    }

    #[test]
    fn stored_lazy_chunk_is_read_beyond_its_end() {
        let (_folder, path) = changed(1, |bytes| {
            let chunk = header_len(bytes);
            bytes[chunk + 31] |= 0x08;
        });
        let read = SChunk::open(&path).and_then(|schunk| schunk.decompress_chunk::<u8>(0));
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
        assert!(SChunk::open(&path).unwrap().decompress_chunk::<u8>(0).unwrap() == noise(0));
        fs::write(path.join("00000000.chunk"), &chunk[..100]).unwrap();
        let read = SChunk::open(&path).and_then(|schunk| schunk.decompress_chunk::<u8>(0));
        assert_eq!(read.unwrap_err().kind(), ErrorKind::InvalidData);
    }

    #[test]
    fn unknown_filter_hides_a_frame() {
        let (_folder, path) = changed(1, |bytes| bytes[FILTERS] = 100);
        assert!(SChunk::open(&path).unwrap().decompress_chunk::<u8>(0).unwrap() == noise(0));
        let mut schunk = SChunk::open_rw(&path).unwrap();
        assert_eq!(schunk.append(&noise(1)).unwrap_err().kind(), ErrorKind::Unsupported);
        schunk.set_cparams(CParams::new()).unwrap();
        schunk.append(&noise(1)).unwrap();
        assert_eq!(schunk.nchunks(), 2);
    }

    /// Chunks of 1000, 100 and 333 bytes.
    fn varying_sizes() -> SChunk {
        let mut schunk = OpenOptions::new().create_new(true).open(Vec::new()).unwrap();
        for (number, len) in [(0, CHUNK), (1, CHUNK / 10), (1, CHUNK / 3)] {
            schunk.append(&noise(number)[..len]).unwrap();
        }
        schunk
    }

    #[test]
    fn special_chunk_divides_by_zero() {
        let mut schunk = varying_sizes();
        schunk.append(&[0u8; CHUNK]).unwrap();
        assert_eq!(schunk.nchunks(), 4);
        let schunk = SChunk::open(schunk.into_cframe().unwrap()).unwrap();
        assert!(schunk.decompress_chunk::<u8>(3).unwrap() == [0; CHUNK]);
        // A compressed index, without the length of the chunk.
        let (_folder, path) = folder();
        let mut schunk = SChunk::create::<u8>(&path, &CParams::default()).unwrap();
        schunk.append(&[0u8; CHUNK]).unwrap();
        drop(schunk);
        let mut bytes = fs::read(&path).unwrap();
        bytes[CHUNKSIZE..CHUNKSIZE + 4].fill(0);
        bytes[FLAGS] = 0x10 | 0x40 | 3;
        fs::write(&path, bytes).unwrap();
        let read = SChunk::open(&path).and_then(|schunk| schunk.decompress_chunk::<u8>(0));
        assert_eq!(read.unwrap_err().kind(), ErrorKind::InvalidData);
    }

    #[test]
    fn slice_divides_by_zero() {
        let schunk = varying_sizes();
        assert!(schunk.read::<u8>(..1000).unwrap() == noise(0));
        let all = [&noise(0)[..], &noise(1)[..100], &noise(1)[..333]].concat();
        assert!(schunk.read::<u8>(990..1200).unwrap() == all[990..1200]);
    }

    #[test]
    fn setting_a_slice_divides_by_zero() {
        let mut schunk = varying_sizes();
        schunk.write(0, &noise(9)).unwrap();
        schunk.write(1050, &[7u8; 100]).unwrap();
        let mut all = [&noise(9)[..], &noise(1)[..100], &noise(1)[..333]].concat();
        all[1050..1150].fill(7);
        assert!(schunk.read::<u8>(..).unwrap() == all);
    }

    #[test]
    fn empty_chunk_makes_a_frame_unreadable() {
        let (_folder, path) = folder();
        let mut schunk = create(&path, 2);
        assert_eq!(schunk.append(&[0u8; 0]).unwrap_err().kind(), ErrorKind::InvalidArgument);
        assert!(schunk.decompress_chunk::<u8>(1).unwrap() == noise(1));
    }

    #[test]
    fn copy_with_other_parameters_is_longer() {
        let (folder, path) = folder();
        let mut schunk = create(&path, 2);
        schunk.append(&noise(2)[..10]).unwrap();
        let copy = folder.path().join("copy");
        SaveOptions::new().cparams(CParams::new().level(9)).save(&schunk, &copy).unwrap();
        let copy = SChunk::open(&copy).unwrap();
        assert_eq!((copy.nchunks(), copy.nbytes()), (3, 2010));
        assert!(copy.decompress_chunk::<u8>(2).unwrap() == noise(2)[..10]);
    }

    #[test]
    fn empty_path_is_read_in_front() {
        let made = SChunk::create::<u8>("", &CParams::default());
        assert_eq!(made.unwrap_err().kind(), ErrorKind::InvalidArgument);
        assert_eq!(SChunk::open("").unwrap_err().kind(), ErrorKind::InvalidArgument);
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
        // The index gets several blocks.
        schunk.fill(Special::Zeros, 4100, 1).unwrap();
        for _ in 0..10 {
            schunk.append(&[1u8]).unwrap();
        }
        // SAFETY: as above.
        let threads = unsafe { threads_of_calls() } - before;
        assert_eq!(threads, 0);
    }

    #[test]
    fn two_handles_lose_chunks() {
        let (_folder, path) = folder();
        let mut one = create(&path, 1);
        assert_eq!(SChunk::open_rw(&path).unwrap_err().kind(), ErrorKind::Busy);
        one.append(&noise(1)).unwrap();
        drop(one);
        let mut two = SChunk::open_rw(&path).unwrap();
        two.append(&noise(2)).unwrap();
        assert_eq!(two.nchunks(), 3);
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
                            let chunk = schunk.decompress_chunk::<u8>(number as usize).unwrap();
                            assert!(chunk == noise(number));
                        }
                    });
                }
            });
        }
    }

    /// The bytes of a frame of `nchunks` chunks, changed.
    fn changed_bytes(nchunks: u32, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let (_folder, path) = changed(nchunks, change);
        fs::read(path).unwrap()
    }

    fn to_change(bytes: Vec<u8>) -> blosc2::Result<SChunk> {
        OpenOptions::new().write(true).open(bytes)
    }

    fn holds(schunk: &SChunk, numbers: impl IntoIterator<Item = u32>) {
        for (index, number) in numbers.into_iter().enumerate() {
            assert!(
                schunk.decompress_chunk::<u8>(index).unwrap() == noise(number),
                "chunk {index}"
            );
        }
    }

    #[test]
    fn copied_frame_overflows_when_it_grows() {
        let mut schunk = to_change(changed_bytes(600, |_| {})).unwrap();
        schunk.append(&noise(600)).unwrap();
        assert_eq!(schunk.nchunks(), 601);
        holds(&schunk, 0..601);
    }

    #[test]
    fn copied_frame_loses_its_chunks_when_reordered() {
        let mut schunk = to_change(changed_bytes(10, |_| {})).unwrap();
        let order: Vec<usize> = (0..10).rev().collect();
        schunk.reorder(&order).unwrap();
        holds(&schunk, (0..10).rev());
    }

    #[test]
    fn copied_frame_with_a_broken_chunk_frees_garbage() {
        let bytes = changed_bytes(100, |bytes| {
            let second = header_len(bytes) + CHUNK + 32;
            bytes[second + 8..second + 12].fill(0); // its block size
        });
        assert_eq!(to_change(bytes).unwrap_err().kind(), ErrorKind::InvalidData);
    }

    #[test]
    fn changing_a_borrowed_frame_reallocates_it() {
        let bytes = changed_bytes(3, |_| {});
        // Borrowed memory is read-only.
        let shared: std::sync::Arc<[u8]> = bytes.clone().into();
        let opened = OpenOptions::new().write(true).open(Target::bytes(shared.clone()));
        let refused = opened.and_then(|mut schunk| schunk.append(&noise(3)));
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::ReadOnly);
        assert!(*shared == *bytes);
        holds(&OpenOptions::new().open(Target::bytes(shared)).unwrap(), 0..3);
    }

    #[test]
    fn huge_compressed_size_copies_from_behind_the_frame() {
        let bytes = changed_bytes(2, |bytes| put(bytes, CBYTES, i64::MAX as u64));
        assert_eq!(to_change(bytes).unwrap_err().kind(), ErrorKind::InvalidData);
    }

    #[test]
    fn order_is_read_beyond_its_end() {
        let (_folder, path) = folder();
        drop(create(&path, 3));
        let options = OpenOptions::new().write(true).locking(true);
        let (mut one, mut other) = (options.open(&path).unwrap(), options.open(&path).unwrap());
        other.append(&noise(3)).unwrap();
        assert_eq!(other.nchunks(), 4);
        assert_eq!(one.reorder(&[2, 1, 0]).unwrap_err().kind(), ErrorKind::InvalidArgument);
        one.reorder(&[3, 2, 1, 0]).unwrap();
        holds(&other, [3, 2, 1, 0]);
    }

    #[test]
    fn filling_a_filled_frame_is_a_null_pointer() {
        let (_folder, path) = folder();
        drop(create(&path, 0));
        let options = OpenOptions::new().write(true).locking(true);
        let (mut one, mut other) = (options.open(&path).unwrap(), options.open(&path).unwrap());
        other.append(&noise(0)).unwrap();
        let filled = one.fill(Special::Zeros, CHUNK as u64, CHUNK);
        assert_eq!(filled.unwrap_err().kind(), ErrorKind::InvalidArgument);
        holds(&one, [0]);
    }

    #[test]
    fn appended_lazy_chunk_is_read_beyond_its_end() {
        // Lazy chunks of this crate have no bytes; those of C are not valid chunks.
        let schunk = to_change(changed_bytes(1, |_| {})).unwrap();
        let mut target = SChunk::in_memory::<u8>(&CParams::default()).unwrap();
        target.append(&schunk.chunk(0).unwrap()).unwrap();
        holds(&target, [0]);
        let mut bytes = schunk.chunk(0).unwrap().into_bytes();
        bytes[31] |= 0x08;
        assert_eq!(Chunk::new(bytes).unwrap_err().kind(), ErrorKind::InvalidData);
    }

    #[test]
    fn short_chunk_overflows_a_slice() {
        let bytes = changed_bytes(4, |bytes| {
            let chunk = header_len(bytes);
            for (field, value) in [(4, CHUNK - 100), (8, CHUNK - 100), (12, CHUNK - 100 + 32)] {
                let value = (value as u32).to_le_bytes();
                bytes[chunk + field..chunk + field + 4].copy_from_slice(&value);
            }
        });
        assert_eq!(SChunk::open(bytes.clone()).unwrap_err().kind(), ErrorKind::InvalidData);
        let options = OpenOptions::new().check(blosc2::Check::Header);
        let schunk = options.open(bytes).unwrap();
        let items = schunk.read::<u8>(..2 * CHUNK as u64 + 500);
        assert_eq!(items.unwrap_err().kind(), ErrorKind::InvalidData);
    }

    #[test]
    fn broken_file_leaves_null_metalayers() {
        let (_folder, path) = folder();
        let options =
            OpenOptions::new().create(true).meta("one", b"content").meta("two", b"content");
        let mut writer = options.open(&path).unwrap();
        writer.append(&noise(0)).unwrap();
        let mut reader = SChunk::open(&path).unwrap();
        drop(writer);
        let mut bytes = fs::read(&path).unwrap();
        let name = bytes.windows(3).position(|part| part == b"two").unwrap();
        bytes[name - 1] = 0;
        fs::write(&path, bytes).unwrap();
        assert_eq!(reader.refresh().unwrap_err().kind(), ErrorKind::InvalidData);
        assert!(!reader.meta().contains("three"));
        assert_eq!(reader.meta().names(), ["one", "two"]);
    }

    /// Reads a file of one chunk through a memory map.
    fn read_through_a_map(params: &CParams, changes: bool) {
        let (_folder, path) = folder();
        let items: Vec<i32> = (0..100_000i64).map(|at| (at * 7919 % 1000) as i32).collect();
        SChunk::create::<i32>(&path, params).unwrap().append(&items).unwrap();
        let before = fs::read(&path).unwrap();
        let map = match changes {
            // SAFETY: here and below, nobody else knows the file, and nothing else changes it.
            true => unsafe { MappedFile::open_rw(&path) },
            // SAFETY: as above.
            false => unsafe { MappedFile::open(&path) },
        };
        let schunk = OpenOptions::new().write(changes).open(Target::storage(map.unwrap())).unwrap();
        assert!(schunk.read::<i32>(..).unwrap() == items);
        assert!(schunk.read::<i32>(50_000..50_001).unwrap() == items[50_000..50_001]);
        drop(schunk);
        assert!(fs::read(&path).unwrap() == before);
    }

    fn three_filters() -> CParams {
        CParams::new().blocksize(8192).codec(Codec::Lz4).filters(&[
            Filter::Shuffle,
            Filter::Bitshuffle,
            Filter::Shuffle,
        ])
    }

    #[test]
    fn dictionary_in_a_memory_map_is_freed() {
        let params = CParams::new().blocksize(8192).codec(Codec::Zstd).dictionary(true);
        read_through_a_map(&params, false);
    }

    #[test]
    fn three_filters_write_into_a_read_only_map() {
        read_through_a_map(&three_filters(), false);
    }

    #[test]
    fn three_filters_write_into_a_mapped_file() {
        read_through_a_map(&three_filters(), true);
    }

    #[test]
    fn index_is_read_where_a_map_was() {
        let (_folder, path) = folder();
        drop(create(&path, 3));
        // SAFETY: as above.
        let map = unsafe { MappedFile::open_rw(&path) }.unwrap();
        let mut schunk = OpenOptions::new().write(true).open(Target::storage(map)).unwrap();
        holds(&schunk, 0..3);
        let content: Vec<u8> = (0..4200).flat_map(noise).collect();
        schunk.vlmeta_mut().set("name", &content).unwrap();
        holds(&schunk, 0..3);
        assert!(schunk.vlmeta().get("name").unwrap().unwrap() == content);
    }

    #[test]
    fn lazy_chunk_behind_a_map_is_a_null_pointer() {
        let (_folder, path) = changed(1, |bytes| {
            let chunk = header_len(bytes);
            bytes[chunk + 2] &= !2;
            for (field, value) in [(4, 1u32 << 20), (8, 16), (12, 1 << 20)] {
                bytes[chunk + field..chunk + field + 4].copy_from_slice(&value.to_le_bytes());
            }
        });
        // SAFETY: as above.
        let map = unsafe { MappedFile::open(&path) }.unwrap();
        let schunk = OpenOptions::new().open(Target::storage(map)).unwrap();
        assert_eq!(schunk.chunk_info(0).unwrap_err().kind(), ErrorKind::InvalidData);
    }

    #[test]
    fn seventeenth_metalayer_overwrites_a_field() {
        let mut schunk = SChunk::in_memory::<u8>(&CParams::default()).unwrap();
        for number in 0..16 {
            schunk.meta_mut().set(&format!("{number}"), b"content").unwrap();
        }
        let more = schunk.meta_mut().set("one more", b"content");
        assert_eq!(more.unwrap_err().kind(), ErrorKind::InvalidArgument);
        schunk.append(&noise(0)).unwrap();
        holds(&schunk, [0]);
        assert_eq!(schunk.meta().len(), 16);
    }

    #[test]
    fn metalayer_8193_overwrites_a_field() {
        let mut schunk = SChunk::in_memory::<u8>(&CParams::default()).unwrap();
        // C has space for 8192 in memory, but its frames for 16.
        for number in 0..16 {
            schunk.vlmeta_mut().set(&format!("{number}"), b"content").unwrap();
        }
        let more = schunk.vlmeta_mut().set("one more", b"content");
        assert_eq!(more.unwrap_err().kind(), ErrorKind::InvalidArgument);
        schunk.append(&noise(0)).unwrap();
        holds(&schunk, [0]);
        assert_eq!(schunk.vlmeta().len(), 16);
    }

    #[test]
    fn long_metalayer_name_is_a_null_pointer() {
        let mut schunk = OpenOptions::new().create_new(true).open(Vec::new()).unwrap();
        let long = schunk.meta_mut().set("a name that is longer than 31 bytes", b"content");
        assert_eq!(long.unwrap_err().kind(), ErrorKind::InvalidArgument);
        schunk.append(&noise(0)).unwrap();
        holds(&schunk, [0]);
    }

    #[test]
    fn long_name_of_a_variable_metalayer_is_cut() {
        let mut schunk = to_change(changed_bytes(1, |_| {})).unwrap();
        let long = schunk.vlmeta_mut().set(&"n".repeat(261), b"content");
        assert_eq!(long.unwrap_err().kind(), ErrorKind::InvalidArgument);
        assert!(schunk.vlmeta().is_empty());
    }

    #[test]
    fn refused_metalayer_blocks_all_changes() {
        let mut schunk = to_change(changed_bytes(1, |_| {})).unwrap();
        let late = schunk.meta_mut().set("late", b"content");
        assert_eq!(late.unwrap_err().kind(), ErrorKind::InvalidArgument);
        schunk.append(&noise(1)).unwrap();
        assert_eq!(schunk.nchunks(), 2);
        holds(&schunk, 0..2);
        assert!(schunk.meta().is_empty());
    }

    #[test]
    fn metalayer_overwrites_special_chunks() {
        let mut schunk = OpenOptions::new().create_new(true).open(Vec::new()).unwrap();
        schunk.append(&[0u8; CHUNK]).unwrap();
        let late = schunk.meta_mut().set("late", b"content");
        assert_eq!(late.unwrap_err().kind(), ErrorKind::InvalidArgument);
        let schunk = SChunk::open(schunk.into_cframe().unwrap()).unwrap();
        assert!(schunk.decompress_chunk::<u8>(0).unwrap() == [0; CHUNK]);
    }

    #[test]
    fn longer_metalayer_content_is_ignored() {
        let mut schunk =
            OpenOptions::new().meta("name", b"content").create_new(true).open(Vec::new()).unwrap();
        let longer = schunk.meta_mut().set("name", b"longer content");
        assert_eq!(longer.unwrap_err().kind(), ErrorKind::InvalidArgument);
        assert_eq!(schunk.meta().get("name").unwrap().unwrap(), b"content");
    }

    /// Chunks of Blosc1 are not stored.
    fn blosc1_is_refused(mut schunk: SChunk, bytes: &[u8]) {
        let mut chunk = vec![2, 1, 2, 1];
        for field in [bytes.len(), bytes.len(), bytes.len() + 16] {
            chunk.extend((field as u32).to_le_bytes());
        }
        chunk.extend(bytes);
        let chunk = Chunk::new(chunk).unwrap();
        assert!(chunk.decompress::<u8>().unwrap() == bytes);
        schunk.append(&noise(0)).unwrap();
        for refused in [schunk.append(&chunk), schunk.insert(0, &chunk), schunk.replace(0, &chunk)]
        {
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::Unsupported);
        }
        holds(&schunk, [0]);
    }

    #[test]
    fn short_blosc1_chunk_is_read_beyond_its_end() {
        blosc1_is_refused(
            OpenOptions::new().create_new(true).open(Vec::new()).unwrap(),
            b"content\0",
        );
    }

    #[test]
    fn blosc1_chunk_is_stored_as_zeros() {
        let mut bytes = noise(0);
        (bytes[14], bytes[15]) = (0, 1 << 4);
        blosc1_is_refused(OpenOptions::new().create_new(true).open(Vec::new()).unwrap(), &bytes);
    }

    #[test]
    fn blosc1_chunk_in_a_file_is_stored_as_zeros() {
        let mut bytes = noise(0);
        (bytes[14], bytes[15]) = (0, 1 << 4);
        let (_folder, path) = folder();
        blosc1_is_refused(create(&path, 0), &bytes);
    }

    #[test]
    fn setting_items_drops_the_rest_of_their_chunk() {
        let mut schunk = SChunk::in_memory::<u8>(&CParams::default()).unwrap();
        for items in [&[0u8, 1, 2, 3][..], &[4, 5, 6, 7], &[8, 9]] {
            schunk.append(items).unwrap();
        }
        schunk.write(0, &[90u8, 91]).unwrap();
        assert_eq!(schunk.read::<u8>(..).unwrap(), [90, 91, 2, 3, 4, 5, 6, 7, 8, 9]);
        schunk.write(8, &[90u8, 91]).unwrap();
        assert_eq!(schunk.read::<u8>(..).unwrap(), [90, 91, 2, 3, 4, 5, 6, 7, 90, 91]);
    }

    #[test]
    fn change_at_an_offset_cuts_the_file() {
        let (folder, path) = folder();
        let schunk = create(&path, 2);
        let larger = folder.path().join("larger");
        schunk.save(&larger).unwrap();
        let offset = SaveOptions::new().append(&schunk, &larger).unwrap();
        let before = fs::read(&larger).unwrap();
        let target = || Target::from(&larger).offset(offset);
        for changing in [OpenOptions::new().write(true), OpenOptions::new().append(true)] {
            assert_eq!(changing.open(target()).unwrap_err().kind(), ErrorKind::InvalidArgument);
        }
        let mut schunk = SChunk::open(target()).unwrap();
        holds(&schunk, 0..2);
        assert_eq!(schunk.append(&noise(2)).unwrap_err().kind(), ErrorKind::ReadOnly);
        let late = schunk.vlmeta_mut().set("late", b"content");
        assert_eq!(late.unwrap_err().kind(), ErrorKind::ReadOnly);
        assert!(fs::read(&larger).unwrap() == before);
    }

    #[test]
    fn scattered_items_need_a_blocksize() {
        let schunk = to_change(changed_bytes(3, |_| {})).unwrap();
        let found = schunk.read::<u8>(&[1900, 5, 2000]).unwrap();
        assert_eq!(found, [noise(1)[900], noise(0)[5], noise(2)[0]]);
    }

    #[test]
    fn scattered_items_come_from_other_blocks() {
        let params = CParams::new().blocksize(4096);
        let mut schunk = SChunk::in_memory::<i32>(&params).unwrap();
        let items: Vec<i32> = (0..4096).collect();
        let mut compressor = Compressor::new(&params.blocksize(1024)).unwrap();
        schunk.append(&compressor.compress(&items).unwrap()).unwrap();
        assert_eq!(schunk.read::<i32>(&[10, 1100, 2100]).unwrap(), [10, 1100, 2100]);
    }

    #[test]
    fn environment_breaks_the_index() {
        const TEST: &str = "frames::safe::environment_breaks_the_index";
        if crate::common::own_process().is_some() {
            let mut schunk = to_change(changed_bytes(5, |_| {})).unwrap();
            let first = schunk.chunk(0).unwrap();
            schunk.insert(2, &first).unwrap();
            assert_eq!(schunk.nchunks(), 6);
            holds(&schunk, [0, 1, 0, 2, 3, 4]);
            let schunk = SChunk::open(schunk.into_cframe().unwrap()).unwrap();
            holds(&schunk, [0, 1, 0, 2, 3, 4]);
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        crate::common::run_alone(TEST, folder.path(), &[("BLOSC_TYPESIZE", "4")]);
    }
}
