//! Hazards of arrays, and of the plugins that use their shapes.

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

    use blosc2::{
        CParams, Chunk, ChunkRef, Codec, ErrorKind, Filter, NDArray, OpenOptions, RawItems, SChunk,
        SaveOptions, Special,
    };
    use blosc2_format::b2nd::Meta;

    /// 10 x 10 items of 4 bytes in four chunks: item i is i.
    fn hundred() -> NDArray {
        let items: Vec<i32> = (0..100).collect();
        let builder = NDArray::builder().chunk_shape([5, 5]).block_shape([5, 5]);
        builder.from_slice(&items, [10, 10]).unwrap()
    }

    /// An array without items along its first axis.
    fn empty() -> NDArray {
        NDArray::builder().chunk_shape([2, 2]).block_shape([2, 2]).zeros::<i32>(&[0, 4]).unwrap()
    }

    /// A frame of these chunks with the metalayer of a one-dimensional array of bytes.
    fn claimed(size: i64, chunk: i32, block: i32, chunks: &[&[u8]]) -> blosc2::Result<NDArray> {
        let meta = Meta {
            shape: vec![size],
            chunks: vec![chunk],
            blocks: vec![block],
            dtype: Some("|u1".to_owned()),
            dtype_format: 0,
        };
        // Chunks cannot be appended to an array.
        let options = OpenOptions::new().typesize(1).meta("x2nd", &meta.to_bytes().unwrap());
        let params = CParams::new().blocksize(usize::try_from(block).unwrap());
        let mut schunk = options.cparams(&params).create_new(true).open(Vec::new())?;
        for chunk in chunks {
            schunk.append(&ChunkRef::new(chunk)?)?;
        }
        let mut frame = schunk.into_cframe()?;
        let name = frame.windows(4).position(|bytes| bytes == b"x2nd").unwrap();
        frame[name] = b'b';
        NDArray::open_rw(frame)
    }

    /// An array of one chunk of 4096 items, stored as another chunk. It is refused, or reads return stored bytes only.
    fn array_of_chunk(chunk: &[u8], set: bool) {
        let found = claimed(4096, 4096, 512, &[chunk]).and_then(|mut array| {
            if set {
                array.write([0], 0u8)?;
            }
            array.read::<Vec<u8>>(&[0..4095])
        });
        match found {
            Ok(found) => assert!(found.iter().all(|&byte| byte == 0)),
            Err(error) => assert_eq!(error.kind(), ErrorKind::InvalidData, "{error}"),
        }
    }

    /// Zeros, in as many blocks as the array has, but smaller ones.
    fn small_chunk() -> Vec<u8> {
        let params = CParams::new().codec(Codec::Lz4).filters(&[]).blocksize(128);
        blosc2::compress(&[0u8; 1024], &params).unwrap()
    }

    #[test]
    fn getitem_takes_the_second_block_for_all() {
        let items: Vec<i32> = (0..1024).map(|i| i / 3).collect();
        let chunk = blosc2::compress(&items, &CParams::new().blocksize(1024)).unwrap();
        let found = ChunkRef::new(&chunk).unwrap().items::<i32>(1..257).unwrap();
        assert_eq!(found, items[1..257]);
    }

    /// A file with 256 x 256 bytes in one block. According to its metalayer, the block has 65537 x 65536.
    #[test]
    fn ndlz_reads_behind_the_source() {
        let folder = tempfile::tempdir().unwrap();
        let (path, copy) = (folder.path().join("array.b2nd"), folder.path().join("copy"));
        let items: Vec<u8> =
            (0..65536u32).map(|i| (i.wrapping_mul(0x9e37_79b1) >> 24) as u8).collect();
        NDArray::builder()
            .chunk_shape([256, 256])
            .block_shape([256, 256])
            .cparams(CParams::new().codec(Codec::Lz4))
            .target(&path)
            .from_slice(&items, [256, 256])
            .unwrap();
        let side = [0xd2, 0, 0, 1, 0];
        let mut bytes = fs::read(&path).unwrap();
        let sides = bytes.windows(10).rposition(|at| at == [side, side].concat()).unwrap();
        bytes[sides..sides + 10].copy_from_slice(&[0xd2, 0, 1, 0, 1, 0xd2, 0, 1, 0, 0]);
        fs::write(&path, &bytes).unwrap();

        assert_eq!(NDArray::open(&path).unwrap_err().kind(), ErrorKind::InvalidData);
        for cell in [4, 8] {
            let params = CParams::new().codec(Codec::Ndlz).codec_meta(cell).filters(&[]);
            let error = SaveOptions::new()
                .cparams(&params)
                .save(&SChunk::open(&path).unwrap(), &copy)
                .unwrap_err();
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
            .chunk_shape(sides)
            .block_shape(sides)
            .cparams(CParams::new().codec(Codec::Ndlz).codec_meta(4).filters(&[]))
            .from_slice(&items, sides)
            .unwrap();
        assert!(array.read::<Vec<u8>>(..).unwrap() == items);
    }

    #[test]
    fn ndmean_misplaces_cells() {
        let items: Vec<f32> = (0..200).map(|i| (i % 100 / 4) as f32).collect();
        let array = NDArray::builder()
            .chunk_shape([2, 100])
            .block_shape([2, 100])
            .cparams(CParams::new().codec(Codec::Lz4).filters(&[Filter::Ndmean(4)]))
            .from_slice(&items, [2, 100])
            .unwrap();
        assert_eq!(array.read::<Vec<f32>>(..).unwrap(), items);
    }

    #[test]
    fn slice_of_a_chunk_forgets_the_buffers_shape() {
        let items: Vec<i32> = (0..100).collect();
        let array =
            NDArray::builder().chunk_shape([5, 5]).block_shape([5, 5]).from_slice(&items, [10, 10]);
        let found = array.unwrap().read::<Vec<i32>>(&[5..10, 0..10]).unwrap();
        assert_eq!(found, items[50..]);
    }

    #[test]
    #[expect(clippy::reversed_empty_ranges, reason = "that is the fault")]
    fn slice_ends_before_it_starts() {
        let array = NDArray::from_slice(&[0i32; 100], [10, 10]).unwrap();
        let error = array.read::<Vec<i32>>(&[0..10, 7..6]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }

    #[test]
    fn slice_of_delta_is_wrong() {
        let items: Vec<i32> = (0..20_000).map(|i| i * 3).collect();
        let array = NDArray::builder()
            .chunk_shape([20_000])
            .block_shape([500])
            .cparams(CParams::new().codec(Codec::Lz4).filters(&[Filter::Delta, Filter::Shuffle]))
            .from_slice(&items, [20_000])
            .unwrap();
        assert_eq!(array.read::<Vec<i32>>(&[9000..9010]).unwrap(), items[9000..9010]);
    }

    #[test]
    fn slice_with_a_dictionary_fails() {
        let items: Vec<i32> = (0..200_000).map(|i| i * 7919 % 1000).collect();
        for codec in [Codec::Lz4, Codec::Zstd] {
            let array = NDArray::builder()
                .chunk_shape([200_000])
                .block_shape([2000])
                .cparams(CParams::new().codec(codec).dictionary(true))
                .from_slice(&items, [200_000]);
            match array {
                Ok(array) => {
                    assert_eq!(array.read::<Vec<i32>>(&[9000..9010]).unwrap(), items[9000..9010])
                }
                Err(error) => assert_eq!(error.kind(), ErrorKind::Unsupported),
            }
        }
    }

    #[test]
    fn slices_of_one_array_at_once() {
        let items: Vec<i32> = (0..65536).map(|i| i / 5).collect();
        let array = NDArray::builder()
            .chunk_shape([8192])
            .block_shape([1024])
            .cparams(CParams::new().codec(Codec::Lz4))
            .from_slice(&items, [65536])
            .unwrap();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for i in 0..500 {
                        let start = i * 997 % 60_000;
                        let found =
                            array.read::<Vec<i32>>(&[start as u64..start as u64 + 4096]).unwrap();
                        assert!(found == items[start..start + 4096]);
                    }
                });
            }
        });
    }

    #[test]
    fn slice_reaches_behind_the_buffer() {
        let mut buffer = [0i32; 9];
        for len in [0, 8, 9] {
            let found = hundred().read_into(&[0..3, 0..3], &mut buffer[..len]);
            match len {
                9 => found.unwrap(),
                _ => assert_eq!(found.unwrap_err().kind(), ErrorKind::InvalidArgument),
            }
        }
        assert_eq!(buffer, [0, 1, 2, 10, 11, 12, 20, 21, 22]);
    }

    #[test]
    fn set_slice_reads_behind_the_buffer() {
        let mut array = hundred();
        for len in [0, 8, 10] {
            let error = array.write(&[0..3, 0..3], &[7i32; 10][..len]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        }
        assert_eq!(array.read::<Vec<i32>>(..).unwrap(), (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn slice_of_one_item_reaches_behind_the_buffer() {
        let array = NDArray::from_slice(&[[7u8; 64]], ()).unwrap();
        let error = array.read_into(.., RawItems(&mut [0])).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert_eq!(array.read::<RawItems>(..).unwrap().0, [7; 64]);
    }

    #[test]
    fn set_slice_of_one_item_reads_behind_the_buffer() {
        let mut array = NDArray::from_slice(&[[7u8; 64]], ()).unwrap();
        let error = array.write(.., RawItems(&[0])).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert_eq!(array.read::<RawItems>(..).unwrap().0, [7; 64]);
    }

    /// A shape with more chunks than a frame can have.
    #[test]
    fn slice_counts_all_chunks_before_it() {
        let error = claimed(1 << 62, 1, 1, &[]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        let size = 1u64 << 33;
        let array = NDArray::builder()
            .chunk_shape([1 << 10])
            .dtype("|u1", 1)
            .special(Special::Uninit, &[size])
            .unwrap();
        assert_eq!(array.read::<Vec<u8>>(&[size - 1..size]).unwrap(), [0]);
    }

    /// The metalayer claims more chunks than the frame has.
    #[test]
    fn slice_numbers_chunks_that_are_not_there() {
        let chunk = Chunk::zeros::<u8>(4, &CParams::new().blocksize(2)).unwrap();
        assert!(claimed(4, 4, 2, &[chunk.as_bytes()]).is_ok());
        let error = claimed(1 << 20, 4, 2, &[chunk.as_bytes()]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
    }

    #[test]
    fn slice_of_a_small_chunk_discloses_memory() {
        array_of_chunk(&small_chunk(), false);
    }

    #[test]
    fn set_slice_of_a_small_chunk_stores_memory() {
        array_of_chunk(&small_chunk(), true);
    }

    #[test]
    fn slice_without_values_discloses_memory() {
        let params = CParams::new().blocksize(512);
        array_of_chunk(Chunk::uninit::<u8>(4096, &params).unwrap().as_bytes(), false);
        let array = NDArray::builder()
            .chunk_shape([4096])
            .dtype("|u1", 1)
            .special(Special::Uninit, &[4096])
            .unwrap();
        assert_eq!(array.read::<Vec<u8>>(&[1..4095]).unwrap(), [0; 4094]);
    }

    #[test]
    fn selection_overflows_a_small_buffer() {
        let list = || [vec![0, 1, 2, 3, 4], vec![0, 1, 2, 3, 4]];
        let mut buffer = [0i32; 2];
        let error = hundred().read_into(list(), &mut buffer).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert_eq!(buffer, [0; 2]);
        let error = hundred().write(list(), &buffer).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }

    /// Lists of indices cannot hold negative numbers.
    #[test]
    fn selection_takes_a_negative_index() {
        let list = [vec![0], vec![3u64.wrapping_neg()]];
        let error = hundred().read::<Vec<i32>>(list).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfBounds);
    }

    #[test]
    fn selection_takes_the_index_after_the_last() {
        let error = hundred().read::<Vec<i32>>([vec![0], vec![10]]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfBounds);
    }

    #[test]
    fn selection_refuses_a_large_buffer() {
        let mut buffer = [0i32; 8];
        let list = || [vec![3], vec![4]];
        // The part of it that is for the items.
        hundred().read_into(list(), &mut buffer[..1]).unwrap();
        assert_eq!(buffer, [34, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn selection_needs_a_dimension() {
        let array = NDArray::from_slice(&[7i32], ()).unwrap();
        let error = array.read::<Vec<i32>>([vec![0]]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert_eq!(array.read::<Vec<i32>>(Vec::<Vec<u64>>::new()).unwrap(), [7]);
    }

    #[test]
    fn insert_takes_a_negative_axis() {
        let error = hundred().insert(100usize.wrapping_neg(), 0, &[0i32; 100]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }

    #[test]
    fn append_takes_a_negative_axis() {
        let error = hundred().append(100usize.wrapping_neg(), &[0i32; 25]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }

    #[test]
    fn delete_takes_a_negative_axis() {
        let error = hundred().delete(100usize.wrapping_neg(), 0..0).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }

    #[test]
    fn insert_divides_by_no_items() {
        let error = empty().insert(1, 0, &[0i32; 4]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }

    /// An array without items along its first axis, and with chunks without items.
    fn no_chunks() -> NDArray {
        let builder = NDArray::builder().chunk_shape([0, 2]).block_shape([0, 2]);
        builder.zeros::<i32>(&[0, 4]).unwrap()
    }

    #[test]
    fn append_divides_by_no_items() {
        let error = no_chunks().append(0, &[0i32; 4]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }

    #[test]
    fn resize_divides_by_no_items() {
        let error = no_chunks().resize([5, 4]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }

    #[test]
    fn new_array_divides_by_no_items() {
        for (chunks, blocks) in [([0], [0]), ([5], [0]), ([0], [5])] {
            let builder = NDArray::builder().chunk_shape(chunks).block_shape(blocks);
            let error = builder.dtype("<i4", 4).special(Special::Zeros, [5]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        }
    }

    #[test]
    fn append_misplaces_items() {
        let builder = NDArray::builder().chunk_shape([4]).block_shape([2]);
        let mut array = builder.from_slice(&[0i32, 1, 2, 3, 4], [5]).unwrap();
        array.append(0, &[5i32, 6, 7, 8]).unwrap();
        assert_eq!(array.read::<Vec<i32>>(..).unwrap(), (0..9).collect::<Vec<_>>());
    }

    #[test]
    fn append_misplaces_narrow_chunks() {
        let items: Vec<i32> = (0..48).collect();
        let builder = NDArray::builder().chunk_shape([4, 4]).block_shape([4, 4]);
        let mut array = builder.from_slice(&items[..32], [4, 8]).unwrap();
        array.append(0, &items[32..]).unwrap();
        assert_eq!(array.shape(), [6, 8]);
        assert_eq!(array.read::<Vec<i32>>(..).unwrap(), items);
    }

    #[test]
    fn concatenate_divides_by_no_items() {
        let builder = || NDArray::builder().chunk_shape([3, 0]).block_shape([3, 0]);
        let (left, right) = (builder().zeros::<i32>(&[3, 0]), builder().zeros::<i32>(&[3, 0]));
        let (left, right) = (left.unwrap(), right.unwrap());
        let both = builder().concatenate([&left, &right], 1).unwrap();
        assert_eq!(both.shape(), [3, 0]);
        assert!(both.read::<Vec<i32>>(..).unwrap().is_empty());
    }

    /// The chunks of the second array are larger than in its metalayer.
    #[test]
    fn concatenate_overflows_its_buffer() {
        let chunk = Chunk::zeros::<u8>(4096, &CParams::new()).unwrap();
        let error = claimed(3, 1, 1, &[chunk.as_bytes(); 3]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
    }

    #[test]
    fn view_frees_metalayers_twice() {
        let builder = NDArray::builder().chunk_shape([1, 4]).block_shape([1, 4]);
        let mut array = builder.zeros::<i32>(&[1, 4]).unwrap();
        array.vlmeta_mut().set("name", b"content").unwrap();
        let view = array.view().squeeze();
        assert_eq!(view.read::<Vec<i32>>(..).unwrap(), [0; 4]);
        drop(view);
        assert_eq!(array.vlmeta().get("name").unwrap().unwrap(), b"content");
        array.append(0, &[1i32; 4]).unwrap();
    }

    #[test]
    fn expand_dims_overflows_its_shapes() {
        let array = hundred();
        let mut view = array.view();
        while view.ndim() < 16 {
            view = view.expand_dims(2).unwrap();
        }
        assert_eq!(view.expand_dims(2).unwrap_err().kind(), ErrorKind::InvalidArgument);
    }

    #[test]
    fn context_overflows_with_metalayers() {
        let names: Vec<String> = (0..4096).map(|number| number.to_string()).collect();
        for (count, fits) in [(15, true), (16, false), (4096, false)] {
            let builder = NDArray::builder().chunk_shape([1]).block_shape([1]);
            let add = |all: OpenOptions, name: &String| all.meta(name, b"text");
            let options = names[..count].iter().fold(OpenOptions::new(), add);
            match builder.options(options).zeros::<i32>(&[1]) {
                Ok(array) => assert!(fits && array.meta().len() == 16, "{count}"),
                Err(error) => {
                    assert!(!fits && error.kind() == ErrorKind::InvalidArgument, "{error}")
                }
            }
        }
    }

    /// The error drops a super-chunk that is not an array, which closes its file.
    #[test]
    #[cfg(unix)]
    fn opening_no_array_keeps_the_file_open() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("frame.b2frame");
        let mut schunk = OpenOptions::new().create_new(true).typesize(4).open(&path).unwrap();
        schunk.append(&[1i32, 2, 3]).unwrap();
        drop(schunk);
        for _ in 0..4 {
            assert_eq!(NDArray::open_rw(&path).unwrap_err().kind(), ErrorKind::InvalidData);
        }
        // A handle for changes that stayed open would prevent this.
        SChunk::open_rw(&path).unwrap();
    }
}
