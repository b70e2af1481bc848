//! Arrays, and the plugins that look at their shapes.

upstream! {
    ndlz_reads_behind_the_source,
    ndlz_of_8_reads_behind_the_source,
    ndlz_repeats_the_wrong_rows,
    ndmean_misplaces_cells,
    #[cfg(feature = "zfp")]
    zfp_reads_behind_a_block,
    #[cfg(feature = "zfp")]
    zfp_writes_behind_its_output,
    #[cfg(feature = "zfp")]
    zfp_leaves_a_block_unwritten,
    #[cfg(feature = "zfp")]
    zfp_takes_the_wrong_items,
    #[cfg(feature = "zfp")]
    zfp_takes_a_cell_of_any_shape,
    getitem_takes_the_second_block_for_all,
    slice_ends_before_it_starts,
    slice_reaches_behind_the_buffer,
    set_slice_reads_behind_the_buffer,
    slice_of_one_item_reaches_behind_the_buffer,
    set_slice_of_one_item_reads_behind_the_buffer,
    slice_of_a_chunk_forgets_the_buffers_shape,
    slice_counts_all_chunks_before_it,
    slice_numbers_chunks_that_are_not_there,
    slice_of_a_small_chunk_discloses_memory,
    set_slice_of_a_small_chunk_stores_memory,
    slice_without_values_discloses_memory,
    slice_of_delta_is_wrong,
    slice_with_a_dictionary_fails,
    selection_overflows_a_small_buffer,
    selection_takes_a_negative_index,
    selection_takes_the_index_after_the_last,
    selection_refuses_a_large_buffer,
    selection_needs_a_dimension,
    insert_takes_a_negative_axis,
    append_takes_a_negative_axis,
    delete_takes_a_negative_axis,
    insert_divides_by_no_items,
    append_divides_by_no_items,
    resize_divides_by_no_items,
    new_array_divides_by_no_items,
    append_misplaces_items,
    append_misplaces_narrow_chunks,
    concatenate_divides_by_no_items,
    concatenate_overflows_its_buffer,
    view_frees_metalayers_twice,
    expand_dims_overflows_its_shapes,
    context_overflows_with_metalayers,
    #[cfg(unix)]
    opening_no_array_keeps_the_file_open,
    #[cfg(unix)]
    #[ignore = "guarded in Rust"]
    slices_of_one_array_at_once,
}

mod safe {
    use std::fs;
    use std::thread;

    use blosc2::{CParams, ChunkRef, Codec, ErrorKind, Filter, NDArray, SChunk};

    #[test]
    fn getitem_takes_the_second_block_for_all() {
        let items: Vec<i32> = (0..1024).map(|i| i / 3).collect();
        let chunk = blosc2::compress(&items, &CParams::new().blocksize(1024)).unwrap();
        let found = ChunkRef::new(&chunk).unwrap().items::<i32>(1..257).unwrap();
        assert_eq!(found, items[1..257]);
    }

    /// A file with 256 x 256 bytes in one block, whose metalayer says that the block has 65537 x
    /// 65536.
    #[test]
    fn ndlz_reads_behind_the_source() {
        let folder = tempfile::tempdir().unwrap();
        let (path, copy) = (folder.path().join("array.b2nd"), folder.path().join("copy"));
        let items: Vec<u8> =
            (0..65536u32).map(|i| (i.wrapping_mul(0x9e37_79b1) >> 24) as u8).collect();
        NDArray::builder()
            .chunks(&[256, 256])
            .blocks(&[256, 256])
            .cparams(CParams::new().codec(Codec::Lz4))
            .file(&path)
            .from_slice(&items, &[256, 256])
            .unwrap();
        let side = [0xd2, 0, 0, 1, 0];
        let mut bytes = fs::read(&path).unwrap();
        let sides = bytes.windows(10).rposition(|at| at == [side, side].concat()).unwrap();
        bytes[sides..sides + 10].copy_from_slice(&[0xd2, 0, 1, 0, 1, 0xd2, 0, 1, 0, 0]);
        fs::write(&path, &bytes).unwrap();

        assert_eq!(NDArray::open(&path).unwrap_err().kind(), ErrorKind::InvalidData);
        for cell in [4, 8] {
            let params = CParams::new().codec(Codec::Ndlz).codec_meta(cell).filters(&[]);
            let error = SChunk::open(&path).unwrap().copy(&copy, &params).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidData, "{error}");
            assert!(!copy.exists());
        }
    }

    #[test]
    fn ndlz_repeats_the_wrong_rows() {
        const WIDTH: usize = 32768;
        const BACK: usize = 4 * 3855;
        let mut items = vec![0u8; 4 * WIDTH];
        for row in 0..4 {
            for column in 0..BACK + 960 {
                let noise = ((row * WIDTH + column) as u32).wrapping_mul(0x9e37_79b1);
                items[row * WIDTH + column] =
                    (noise ^ noise >> 15).wrapping_mul(0x85eb_ca6b).to_be_bytes()[0];
            }
            if row < 2 {
                items.copy_within(row * WIDTH..row * WIDTH + 960, row * WIDTH + BACK);
            }
        }
        let sides = [4, WIDTH as u64];
        let array = NDArray::builder()
            .chunks(&sides)
            .blocks(&sides)
            .cparams(CParams::new().codec(Codec::Ndlz).codec_meta(4).filters(&[]))
            .from_slice(&items, &sides)
            .unwrap();
        assert!(array.read_all::<u8>().unwrap() == items);
    }

    #[test]
    fn ndmean_misplaces_cells() {
        let items: Vec<f32> = (0..200).map(|i| (i % 100 / 4) as f32).collect();
        let array = NDArray::builder()
            .chunks(&[2, 100])
            .blocks(&[2, 100])
            .cparams(CParams::new().codec(Codec::Lz4).filters(&[Filter::NdMean(4)]))
            .from_slice(&items, &[2, 100])
            .unwrap();
        assert_eq!(array.read_all::<f32>().unwrap(), items);
    }

    #[test]
    fn slice_of_a_chunk_forgets_the_buffers_shape() {
        let items: Vec<i32> = (0..100).collect();
        let array =
            NDArray::builder().chunks(&[5, 5]).blocks(&[5, 5]).from_slice(&items, &[10, 10]);
        let found = array.unwrap().read::<i32>(&[5..10, 0..10]).unwrap();
        assert_eq!(found, items[50..]);
    }

    #[test]
    #[expect(clippy::reversed_empty_ranges, reason = "that is the fault")]
    fn slice_ends_before_it_starts() {
        let array = NDArray::from_slice(&[0i32; 100], &[10, 10]).unwrap();
        let error = array.read::<i32>(&[0..10, 7..6]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }

    #[test]
    fn slice_of_delta_is_wrong() {
        let items: Vec<i32> = (0..20_000).map(|i| i * 3).collect();
        let array = NDArray::builder()
            .chunks(&[20_000])
            .blocks(&[500])
            .cparams(CParams::new().codec(Codec::Lz4).filters(&[Filter::Delta, Filter::Shuffle]))
            .from_slice(&items, &[20_000])
            .unwrap();
        assert_eq!(array.read::<i32>(&[9000..9010]).unwrap(), items[9000..9010]);
    }

    #[test]
    fn slice_with_a_dictionary_fails() {
        let items: Vec<i32> = (0..200_000).map(|i| i * 7919 % 1000).collect();
        for codec in [Codec::Lz4, Codec::Zstd] {
            let array = NDArray::builder()
                .chunks(&[200_000])
                .blocks(&[2000])
                .cparams(CParams::new().codec(codec).dictionary(true))
                .from_slice(&items, &[200_000]);
            match array {
                Ok(array) => {
                    assert_eq!(array.read::<i32>(&[9000..9010]).unwrap(), items[9000..9010])
                }
                Err(error) => assert_eq!(error.kind(), ErrorKind::Unsupported),
            }
        }
    }

    #[test]
    fn slices_of_one_array_at_once() {
        let items: Vec<i32> = (0..65536).map(|i| i / 5).collect();
        let array = NDArray::builder()
            .chunks(&[8192])
            .blocks(&[1024])
            .cparams(CParams::new().codec(Codec::Lz4))
            .from_slice(&items, &[65536])
            .unwrap();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for i in 0..500 {
                        let start = i * 997 % 60_000;
                        let found =
                            array.read::<i32>(&[start as u64..start as u64 + 4096]).unwrap();
                        assert!(found == items[start..start + 4096]);
                    }
                });
            }
        });
    }
}
