//! Invalid input is refused with an error that names the fault and its position. Nothing is written or lost, and
//! nothing crashes.

use std::fs;
use std::path::{Path, PathBuf};

use blosc2::{
    CParams, Codec, DParams, Error, ErrorKind, Filter, NDArray, OpenOptions, RawItems, SChunk,
    SaveOptions, SplitMode, Threads,
};
use blosc2_format::Limits;
use blosc2_format::frame::Header;

use crate::common::{Kind, OTHER_ORDER, Rng, data, kind, listing, native};

/// The errors of all ways of opening; all of them have to fail in the same way.
fn open_errors(path: &Path) -> [Error; 3] {
    [
        SChunk::open(path).unwrap_err(),
        SChunk::open_rw(path).unwrap_err(),
        NDArray::open(path).unwrap_err(),
    ]
}

#[test]
fn what_is_no_frame_is_not_opened_and_the_error_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        path
    };
    let directory = folder.path().join("a directory");
    fs::create_dir(&directory).unwrap();
    let deeper = folder.path().join("deeper");
    fs::create_dir_all(deeper.join("chunks.b2frame")).unwrap();
    let cases = [
        (folder.path().join("missing"), ErrorKind::NotFound, "missing"),
        (directory, ErrorKind::InvalidData, "chunks.b2frame"),
        (deeper, ErrorKind::InvalidData, "deeper"),
        (write("empty", b""), ErrorKind::InvalidData, "empty"),
        (
            write(
                "text",
                b"some text, quite a bit longer than any frame's header would be, and then \
          some more of it, so that nothing but the content can be wrong",
            ),
            ErrorKind::InvalidData,
            "b2frame",
        ),
        (write("short", b"\x9e\xa8b2frame\0"), ErrorKind::InvalidData, "87"),
        (write("zeros", &[0; 4096]), ErrorKind::InvalidData, "zeros"),
    ];
    let before = listing(folder.path());
    for (path, kind, says) in cases {
        for error in open_errors(&path) {
            assert_eq!(error.kind(), kind, "{error}");
            assert_eq!(error.path(), Some(&*path), "{error}");
            let message = error.to_string();
            assert!(message.contains(path.to_str().unwrap()), "{message}");
            assert!(message.contains(says), "{message}");
            assert_eq!(error.code(), None, "{error}");
        }
    }
    assert_eq!(listing(folder.path()), before);
}

#[test]
fn errors_keep_the_reason_of_the_system() {
    let error = SChunk::open("no such file").unwrap_err();
    let source = error.get_ref().unwrap().downcast_ref::<std::io::Error>().unwrap();
    assert_eq!(source.kind(), std::io::ErrorKind::NotFound);
    let error = blosc2::decompress::<u8>(b"no chunk").unwrap_err();
    assert!(error.get_ref().unwrap().is::<blosc2_format::FormatError>());
    let any: anyhow::Error = error.into();
    assert!(any.to_string().starts_with("cannot decompress a chunk"), "{any}");
}

/// A small array with several chunks and blocks, in a file.
fn small(folder: &Path) -> (PathBuf, Vec<i32>) {
    let path = folder.join("small.b2nd");
    let items: Vec<i32> = (0..240).map(|item| item * item).collect();
    NDArray::builder()
        .chunk_shape([7, 10])
        .block_shape([3, 10])
        .cparams(CParams::new().codec(Codec::Lz4))
        .target(&path)
        .from_slice(&items, [24, 10])
        .unwrap();
    (path, items)
}

#[test]
fn a_file_cut_anywhere_is_not_opened() {
    let folder = tempfile::tempdir().unwrap();
    let (path, _) = small(folder.path());
    let whole = fs::read(&path).unwrap();
    let cut = folder.path().join("cut.b2nd");
    for len in 0..whole.len() {
        fs::write(&cut, &whole[..len]).unwrap();
        for error in open_errors(&cut) {
            assert_eq!(error.kind(), ErrorKind::InvalidData, "{len} bytes: {error}");
            assert!(error.to_string().contains("cut.b2nd"), "{len} bytes: {error}");
        }
        assert_eq!(fs::read(&cut).unwrap(), &whole[..len]);
    }
}

#[test]
fn bytes_after_a_frame_do_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let (path, items) = small(folder.path());
    let mut bytes = fs::read(&path).unwrap();
    bytes.extend([0xff; 100]);
    fs::write(&path, bytes).unwrap();
    assert_eq!(NDArray::open(&path).unwrap().read::<Vec<i32>>(..).unwrap(), items);
}

/// Opens a file and reads all of it. Returns whether everything succeeded.
fn read_everything(path: &Path) -> bool {
    let mut good = true;
    if let Ok(schunk) = SChunk::open(path) {
        for chunk in schunk.iter_chunks::<u8>() {
            good &= chunk.is_ok();
        }
        for layers in [schunk.meta(), schunk.vlmeta()] {
            for name in layers.names() {
                good &= layers.get(&name).is_ok();
            }
        }
        drop(schunk.info());
    } else {
        good = false;
    }
    match NDArray::open(path) {
        Ok(array) => {
            let half: Vec<_> = array.shape().iter().map(|&size| size / 2..size).collect();
            good &= array.read::<RawItems>(..).is_ok();
            good &= array.read::<RawItems>(&half).is_ok();
        }
        Err(_) => good = false,
    }
    good
}

#[test]
fn any_byte_may_be_wrong_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let (path, _) = small(folder.path());
    let whole = fs::read(&path).unwrap();
    let header = Header::parse(&whole).unwrap();
    let broken = folder.path().join("broken.b2nd");
    let (mut good, mut bad) = (0, 0);
    // The values of three bits, and the extremes.
    for at in 0..whole.len() {
        let in_chunks = at >= header.header_len as usize + 64 && at + 120 < whole.len();
        let values = if in_chunks { &[0x01][..] } else { &[0x01, 0x80, 0xff] };
        for flip in values {
            let mut bytes = whole.clone();
            bytes[at] ^= flip;
            fs::write(&broken, bytes).unwrap();
            if read_everything(&broken) {
                good += 1;
            } else {
                bad += 1;
            }
        }
    }
    assert!(good > 50 && bad > 500, "{good} good ones, {bad} bad ones");
}

#[test]
fn a_file_that_changes_while_it_is_open_returns_errors_at_worst() {
    let folder = tempfile::tempdir().unwrap();
    let (path, items) = small(folder.path());
    let whole = fs::read(&path).unwrap();
    for len in [0, 50, 170, 300, whole.len() - 1] {
        fs::write(&path, &whole).unwrap();
        let array = NDArray::open(&path).unwrap();
        assert_eq!(array.read::<Vec<i32>>(&[0..1, 0..10]).unwrap(), items[..10]);
        fs::File::options().write(true).open(&path).unwrap().set_len(len as u64).unwrap();
        if let Ok(found) = array.read::<Vec<i32>>(..) {
            assert_eq!(found, items, "{len} bytes left");
        }
        for index in 0..array.schunk().nchunks() {
            let _ = array.schunk().decompress_chunk::<u8>(index);
        }
    }
}

/// The same array as a directory: an index file, and a file for each chunk.
fn directory(folder: &Path) -> (PathBuf, Vec<i32>) {
    let (path, items) = small(folder);
    let frame = fs::read(&path).unwrap();
    let header = Header::parse(&frame).unwrap();
    let array = NDArray::open(&path).unwrap();
    let target = folder.join("directory.b2nd");
    fs::create_dir(&target).unwrap();
    let params = array.info().cparams.typesize(4);
    let count = array.schunk().nchunks();
    for index in 0..count {
        let items = array.schunk().decompress_chunk::<i32>(index).unwrap();
        let chunk = blosc2::compress(&items, &params).unwrap();
        fs::write(target.join(format!("{index:08X}.chunk")), chunk).unwrap();
    }
    let ids: Vec<i64> = (0..count as i64).map(i64::to_le).collect();
    let index =
        blosc2::compress(&ids, &CParams::new().codec(Codec::BloscLz).split(SplitMode::Auto))
            .unwrap();
    let trailer_len_at = frame.len() - 22;
    let trailer_len = u32::from_be_bytes(frame[trailer_len_at..][..4].try_into().unwrap()) as usize;
    let mut file = frame[..header.header_len as usize].to_vec();
    file.extend(index);
    file.extend(&frame[frame.len() - trailer_len..]);
    let len = file.len() as u64;
    file[0x10..0x18].copy_from_slice(&len.to_be_bytes());
    file[0x1a] = 1;
    fs::write(target.join("chunks.b2frame"), file).unwrap();
    (target, items)
}

#[test]
fn a_directory_with_missing_or_broken_files_gives_errors() {
    let folder = tempfile::tempdir().unwrap();
    let (path, items) = directory(folder.path());
    let array = NDArray::open(&path).unwrap();
    assert_eq!(array.schunk().info().contiguous, Some(false));
    assert_eq!(array.read::<Vec<i32>>(..).unwrap(), items);
    assert_eq!(array.schunk().nchunks(), 4);
    drop(array);

    let chunk = path.join("00000002.chunk");
    let good = fs::read(&chunk).unwrap();
    let broken = |content: &[u8]| {
        fs::write(&chunk, content).unwrap();
        let array = NDArray::open(&path).unwrap();
        assert_eq!(array.read::<Vec<i32>>(&[0..7, 0..10]).unwrap(), items[..70]);
        let found = array.read::<Vec<i32>>(..);
        assert_eq!(array.read::<Vec<i32>>(&[21..24, 0..10]).unwrap(), items[210..]);
        found
    };
    for len in 0..good.len() {
        let error = broken(&good[..len]).unwrap_err();
        assert!(error.to_string().contains("directory.b2nd"), "{len} bytes: {error}");
    }
    for at in 0..32 {
        for flip in [0x01, 0x80, 0xff] {
            let mut content = good.clone();
            content[at] ^= flip;
            let _ = broken(&content);
        }
    }
    assert_eq!(broken(&good).unwrap(), items);
    fs::remove_file(&chunk).unwrap();
    let array = NDArray::open(&path).unwrap();
    let error = array.read::<Vec<i32>>(..).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidData, "{error}");
    assert!(error.to_string().contains("00000002.chunk"), "{error}");
    fs::create_dir(&chunk).unwrap();
    assert!(array.read::<Vec<i32>>(..).is_err());
}

#[test]
fn a_frame_in_the_wrong_kind_of_place_is_not_opened() {
    let folder = tempfile::tempdir().unwrap();
    let (path, _) = directory(folder.path());
    // The index file alone is not a frame, and a contiguous frame is not an index.
    for error in open_errors(&path.join("chunks.b2frame")) {
        assert_eq!(error.kind(), ErrorKind::InvalidData, "{error}");
        assert!(error.to_string().contains("directory"), "{error}");
    }
    fs::copy(folder.path().join("small.b2nd"), path.join("chunks.b2frame")).unwrap();
    for error in open_errors(&path) {
        assert_eq!(error.kind(), ErrorKind::InvalidData, "{error}");
    }
}

#[test]
fn shapes_and_buffers_that_do_not_fit_are_refused() {
    let refused = |found: blosc2::Result<NDArray>, kind: ErrorKind, says: &str| {
        let error = found.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(says), "{says}: {error}");
    };
    use ErrorKind::{InvalidArgument, TooLarge};
    let items = [1i32; 12];
    let make = NDArray::builder;
    refused(make().from_slice(&items, [3, 5]), InvalidArgument, "[3, 5]");
    refused(make().from_slice(&items, ()), InvalidArgument, "48");
    refused(make().from_slice(&items, [0]), InvalidArgument, "48");
    refused(make().from_slice(&items, [1u64 << 40, 1u64 << 40]), TooLarge, "chunks");
    refused(make().from_slice(&items, [u64::MAX]), TooLarge, "2^63");
    refused(make().from_slice(&items, [1; 17]), InvalidArgument, "17");
    refused(make().chunk_shape([12]).from_slice(&items, [3, 4]), InvalidArgument, "[12]");
    refused(make().chunk_shape(()).from_slice(&items, [3, 4]), InvalidArgument, "chunk shape");
    refused(make().chunk_shape([0, 4]).from_slice(&items, [3, 4]), InvalidArgument, "[0, 4]");
    refused(make().block_shape([3, 0]).from_slice(&items, [3, 4]), InvalidArgument, "[3, 0]");
    refused(
        make().block_shape([2, 2, 2]).from_slice(&items, [3, 4]),
        InvalidArgument,
        "block shape",
    );
    let builder = make().chunk_shape([2, 4]).block_shape([3, 4]);
    refused(builder.from_slice(&items, [3, 4]), InvalidArgument, "axis 0");
    refused(make().chunk_shape([u64::MAX, 4]).from_slice(&items, [3, 4]), TooLarge, "2^31");
    refused(make().chunk_shape([1 << 20, 1 << 20]).from_slice(&items, [3, 4]), TooLarge, "bytes");
    refused(
        make().dtype("|V0", 0).from_slice(RawItems(&[0; 12]), [4]),
        InvalidArgument,
        "typesize",
    );
    refused(make().dtype("|V4", 4).from_slice(RawItems(&[0; 12]), [4]), InvalidArgument, "12");
    refused(
        make().dtype("|V4", usize::MAX).from_slice(RawItems(&[0; 12]), [4]),
        InvalidArgument,
        "typesize",
    );
    let too_wide =
        make().dtype("|V9", blosc2::limits::MAX_TYPESIZE + 1).from_slice(RawItems(&[]), [0]);
    refused(too_wide, InvalidArgument, "typesize");
}

#[test]
fn given_shapes_of_any_size_are_refused_or_taken_but_never_too_much() {
    let sizes = [0, 1, 3, 1 << 20, 1 << 31, 1 << 32, 1 << 62, 1 << 63, u64::MAX];
    let mut panics = Vec::new();
    let mut run = |what: String, work: &(dyn Fn() + std::panic::RefUnwindSafe)| {
        if std::panic::catch_unwind(work).is_err() {
            panics.push(what);
        }
    };
    for one in sizes {
        for other in sizes {
            let given = [one, other];
            run(format!("the shape {given:?}"), &|| {
                assert!(
                    NDArray::from_slice(&[1u8, 2, 3], given).is_err()
                        || given == [1, 3]
                        || given == [3, 1]
                );
            });
            // A chunk of this size is allowed.
            if (1 << 20..=1 << 31).contains(&one.saturating_mul(other)) {
                continue;
            }
            for shape in [[1, 1], [0, 1], [1, 0], [0, 0]] {
                let items = vec![7u8; (shape[0] * shape[1]) as usize];
                let builder = NDArray::builder;
                run(format!("chunks {given:?} of {shape:?}"), &|| {
                    let _ = builder().chunk_shape(given).from_slice(&items, shape);
                });
                run(format!("blocks {given:?} of {shape:?}"), &|| {
                    let _ = builder().block_shape(given).from_slice(&items, shape);
                });
                run(format!("chunks and blocks {given:?} of {shape:?}"), &|| {
                    let _ =
                        builder().chunk_shape(given).block_shape(given).from_slice(&items, shape);
                });
            }
        }
    }
    assert!(panics.is_empty(), "{} panics:\n{}", panics.len(), panics.join("\n"));
}

#[test]
fn boxes_that_do_not_fit_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (path, _) = small(folder.path());
    let array = NDArray::open(&path).unwrap();
    let refused = |ranges: &[std::ops::Range<u64>], kind: ErrorKind, says: &str| {
        let mut buffer = [5i32; 3];
        for error in [
            array.read::<Vec<i32>>(ranges).unwrap_err(),
            array.read::<RawItems>(ranges).unwrap_err(),
            array.read_into(ranges, &mut buffer).unwrap_err(),
        ] {
            assert_eq!(error.kind(), kind, "{error}");
            let message = error.to_string();
            assert!(message.contains(says) && message.contains("small.b2nd"), "{says}: {message}");
        }
        assert_eq!(buffer, [5; 3]);
    };
    refused(&[0..25, 0..10], ErrorKind::OutOfBounds, "axis 0");
    refused(&[0..24, 0..11], ErrorKind::OutOfBounds, "axis 1");
    refused(&[25..26, 0..10], ErrorKind::OutOfBounds, "24");
    refused(&[25..25, 0..10], ErrorKind::OutOfBounds, "25..25");
    refused(&[0..u64::MAX, 0..10], ErrorKind::OutOfBounds, "axis 0");
    #[expect(clippy::reversed_empty_ranges, reason = "that is what is tested")]
    refused(&[5..4, 0..10], ErrorKind::InvalidArgument, "5..4");
    refused(&[0..1, 0..1, 0..1], ErrorKind::InvalidArgument, "3");
    let mut buffer = [5i32; 3];
    for len in 0..3 {
        let error = array.read_into(&[0..1, 0..4], &mut buffer[..len]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        let (wanted, given) = ("16".to_owned(), (len * 4).to_string());
        let message = error.to_string();
        assert!(message.contains(&wanted) && message.contains(&given), "{message}");
    }
    assert_eq!(buffer, [5; 3]);
    let mut long = [5u8; 20];
    assert_eq!(
        kind(array.read_into(&[0..1, 0..4], RawItems(&mut long))),
        ErrorKind::InvalidArgument
    );
    assert!(array.read::<Vec<i32>>(&[24..24, 10..10]).unwrap().is_empty());
}

#[test]
fn items_of_another_type_are_refused_and_both_types_named() {
    let folder = tempfile::tempdir().unwrap();
    let (path, items) = small(folder.path());
    let array = NDArray::open(&path).unwrap();
    let messages = [
        ("<u4", array.read::<Vec<u32>>(..).unwrap_err()),
        ("<f4", array.read::<Vec<f32>>(..).unwrap_err()),
        ("<i8", array.read::<Vec<i64>>(..).unwrap_err()),
        ("|u1", array.read::<Vec<u8>>(..).unwrap_err()),
        ("<i2", array.read_into(&[0..1, 0..1], &mut [0i16; 2]).unwrap_err()),
    ];
    for (asked, error) in messages {
        assert_eq!(error.kind(), ErrorKind::TypeMismatch, "{error}");
        let message = error.to_string();
        assert!(message.contains(&native("<i4")) && message.contains(&native(asked)), "{message}");
    }
    // Different byte orders are distinguished, for dtypes that have one.
    let make = |dtype: &str, bytes: &[u8], size| {
        NDArray::builder().dtype(dtype, size).from_slice(RawItems(bytes), [2]).unwrap()
    };
    let other = format!("{OTHER_ORDER}i4");
    assert_eq!(kind(make(&other, &[0; 8], 4).read::<Vec<i32>>(..)), ErrorKind::TypeMismatch);
    let two = [1i32.to_ne_bytes(), 2i32.to_ne_bytes()].concat();
    assert_eq!(make(&native("<i4"), &two, 4).read::<Vec<i32>>(..).unwrap(), [1, 2]);
    for dtype in ["|u1", "<u1", ">u1", "u1"] {
        assert_eq!(make(dtype, &[1, 2], 1).read::<Vec<u8>>(..).unwrap(), [1, 2], "{dtype}");
    }
    for dtype in ["|b1", "|S1", "|i1", "", "1", "<", "é1", "nonsense"] {
        assert_eq!(kind(make(dtype, &[1, 2], 1).read::<Vec<u8>>(..)), ErrorKind::TypeMismatch);
    }
    assert_eq!(array.read::<Vec<i32>>(..).unwrap(), items);
}

#[test]
fn parameters_out_of_range_are_refused_and_named() {
    let folder = tempfile::tempdir().unwrap();
    use ErrorKind::{InvalidArgument, Unsupported};
    let seven = [Filter::Shuffle; 7];
    let cases = [
        (CParams::new().level(10), InvalidArgument, "10"),
        (CParams::new().level(255), InvalidArgument, "255"),
        (CParams::new().typesize(0), InvalidArgument, "typesize"),
        (CParams::new().typesize(usize::MAX), InvalidArgument, "typesize"),
        (CParams::new().blocksize(0), InvalidArgument, "block"),
        (CParams::new().blocksize(3), InvalidArgument, "block"),
        (CParams::new().blocksize(usize::MAX), InvalidArgument, "block"),
        (CParams::new().codec(Codec::Other(99)), Unsupported, "codec 99"),
        (CParams::new().codec(Codec::Other(38)), Unsupported, "codec 38"),
        (CParams::new().codec(Codec::ZfpRate), Unsupported, "zfp"),
        (CParams::new().codec(Codec::Ndlz), InvalidArgument, "ndlz"),
        (CParams::new().codec(Codec::BloscLz).dictionary(true), InvalidArgument, "dictionar"),
        (CParams::new().filters(&seven), InvalidArgument, "7"),
        (CParams::new().filters(&[Filter::Shuffle, Filter::Delta]), InvalidArgument, "delta"),
        (CParams::new().filters(&[Filter::Ndcell(4)]), InvalidArgument, "ndcell"),
        (CParams::new().filters(&[Filter::TruncPrec(0)]), InvalidArgument, "trunc_prec:0"),
        (CParams::new().filters(&[Filter::TruncPrec(-128)]), InvalidArgument, "trunc_prec"),
        (CParams::new().filters(&[Filter::IntTrunc(33)]), InvalidArgument, "int_trunc:33"),
        (CParams::new().filters(&[Filter::IntTrunc(-32)]), InvalidArgument, "int_trunc"),
        (CParams::new().filters(&[Filter::Other { code: 77, meta: 1 }]), Unsupported, "filter 77"),
    ];
    for (params, kind, says) in cases {
        for error in [
            blosc2::compress(&[1i32; 100], &params).unwrap_err(),
            SChunk::in_memory::<i32>(&params).unwrap_err(),
            SChunk::create::<i32>(folder.path().join("file"), &params).unwrap_err(),
        ] {
            assert_eq!(error.kind(), kind, "{params:?}: {error}");
            assert!(error.to_string().contains(says), "{says}: {error}");
        }
    }
    assert_eq!(listing(folder.path()), []);
}

/// A 32-bit process cannot have so large a buffer.
#[test]
#[cfg(target_pointer_width = "64")]
fn more_than_a_chunk_holds_is_refused_at_once() {
    // Untouched memory.
    let zeros = vec![0u8; 1 << 31];
    let folder = tempfile::tempdir().unwrap();
    let params = CParams::new();
    let refused = |error: Error| {
        assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
        assert!(error.to_string().contains("bytes"), "{error}");
    };
    refused(blosc2::compress(&zeros, &params).unwrap_err());
    refused(blosc2::compress(&zeros[..blosc2::limits::MAX_CHUNK_LEN + 1], &params).unwrap_err());
    refused(SChunk::in_memory::<u8>(&params).unwrap().append(&zeros).unwrap_err());
    let mut file = SChunk::create::<u8>(folder.path().join("file"), &params).unwrap();
    refused(file.append(&zeros).unwrap_err());
    assert_eq!(file.nchunks(), 0);
    let one_chunk =
        NDArray::builder().chunk_shape([(1u64 << 31) - 1]).target(folder.path().join("array"));
    refused(one_chunk.from_slice(&zeros, [1u64 << 31]).unwrap_err());
    assert_eq!(listing(folder.path()).len(), 1);
}

#[test]
fn an_array_larger_than_memory_is_an_error_to_read() {
    // What `zeros((10**13,), "f8")` writes in Python is a file of 221 bytes like this one: the
    // header says the sizes, the index is one repeated value.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.b2nd");
    let (items, chunk) = (10_000_000_000_000u64, 1u32 << 27);
    let count = items.div_ceil(chunk.into());
    NDArray::builder()
        .chunk_shape([16])
        .block_shape([16])
        .target(&path)
        .from_slice(&[0f64; 16], [16])
        .unwrap();
    let mut frame = fs::read(&path).unwrap();
    let header_len = Header::parse(&frame).unwrap().header_len as usize;
    // Sizes in the header: of the data, of the blocks, of the chunks.
    frame[0x1e..0x26].copy_from_slice(&(count * u64::from(chunk) * 8).to_be_bytes());
    frame[0x35..0x39].copy_from_slice(&(1u32 << 18).to_be_bytes());
    frame[0x3a..0x3e].copy_from_slice(&(chunk * 8).to_be_bytes());
    let meta = blosc2_format::b2nd::Meta {
        shape: vec![16],
        chunks: vec![16],
        blocks: vec![16],
        dtype: Some(native("<f8")),
        dtype_format: 0,
    };
    let old = meta.to_bytes().unwrap();
    let meta = blosc2_format::b2nd::Meta {
        shape: vec![items as i64],
        chunks: vec![chunk as i32],
        blocks: vec![1 << 15],
        ..meta
    };
    let at = frame.windows(old.len()).position(|each| each == old).unwrap();
    frame[at..at + old.len()].copy_from_slice(&meta.to_bytes().unwrap());
    // The index: a chunk of `count` times the number that stands for a chunk of zeros.
    let mut index = vec![0u8; 40];
    index[..4].copy_from_slice(&[5, 1, 0b101, 8]);
    index[4..8].copy_from_slice(&(count as u32 * 8).to_le_bytes());
    index[8..12].copy_from_slice(&(count as u32 * 8).to_le_bytes());
    index[12..16].copy_from_slice(&40u32.to_le_bytes());
    index[31] = 3 << 4;
    index[39] = 0x81;
    let trailer_len_at = frame.len() - 22;
    let trailer_len = u32::from_be_bytes(frame[trailer_len_at..][..4].try_into().unwrap()) as usize;
    let trailer = frame[frame.len() - trailer_len..].to_vec();
    frame.truncate(header_len);
    frame.extend(index);
    frame.extend(trailer);
    // No chunk takes space.
    frame[0x27..0x2f].copy_from_slice(&0u64.to_be_bytes());
    let len = frame.len() as u64;
    frame[0x10..0x18].copy_from_slice(&len.to_be_bytes());
    fs::write(&path, frame).unwrap();

    let array = NDArray::open(&path).unwrap();
    assert_eq!((array.len(), array.schunk().nchunks() as u64), (items, count));
    let last = items - 3..items;
    assert_eq!(array.read::<Vec<f64>>(&[last]).unwrap(), [0.0; 3]);
    assert_eq!(kind(array.read::<Vec<f64>>(..)), ErrorKind::TooLarge);
    assert_eq!(kind(array.read::<RawItems>(..).map(|items| items.0)), ErrorKind::TooLarge);
    // Left out on Windows: Wine would grant the 80 TB, and allocate 20 GB to record the protection of their pages.
    if cfg!(windows) {
        return;
    }
    let unlimited = OpenOptions::new().max_read(u64::MAX).open(&path).unwrap();
    let array = NDArray::from_schunk(unlimited).unwrap();
    // The size does not fit into a `usize` of 32 bits.
    let expected = match cfg!(target_pointer_width = "64") {
        true => ErrorKind::OutOfMemory,
        false => ErrorKind::TooLarge,
    };
    assert_eq!(kind(array.read::<Vec<f64>>(..)), expected);
}

#[test]
fn a_dtype_of_any_text_survives_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let long = "[('field', '<i4')]".repeat(3000);
    for (at, dtype) in ["", "<i4", "a\0b", "日本", "'\"", &*long].into_iter().enumerate() {
        let path = folder.path().join(at.to_string());
        let made = NDArray::builder()
            .target(&path)
            .dtype(dtype, 4)
            .from_slice(RawItems(&[1, 2, 3, 4]), [1]);
        made.unwrap_or_else(|error| panic!("{dtype:.40}: {error}"));
        let array = NDArray::open(&path).unwrap_or_else(|error| panic!("{dtype:.40}: {error}"));
        assert_eq!(array.dtype_str(), Some(dtype));
        assert_eq!(array.read::<RawItems>(..).unwrap().0, [1, 2, 3, 4]);
    }
}

#[test]
fn random_damage_to_a_frame_with_metalayers_is_survived() {
    let folder = tempfile::tempdir().unwrap();
    let whole =
        fs::read(crate::common::upstream("compat/vlblocks-lz4-variable-3.0.0.b2frame")).unwrap();
    let fuzz =
        fs::read(crate::common::upstream("tests/fuzz/corpus/frame_simple-zstd.b2frame")).unwrap();
    let broken = folder.path().join("broken");
    let mut rng = Rng(11);
    for round in 0..400 {
        let mut bytes = if round % 2 == 0 { whole.clone() } else { fuzz.clone() };
        // Inside chunks: the structure stays, the data is wrong.
        let start = 200;
        for _ in 0..1 + rng.below(4) {
            let at = start + rng.below((bytes.len() - 400) as u64) as usize;
            bytes[at] = rng.next() as u8;
        }
        fs::write(&broken, bytes).unwrap();
        read_everything(&broken);
    }
}

#[test]
fn random_bytes_in_a_chunk_sized_buffer_are_refused_by_arrays_of_them() {
    // A super-chunk may have any bytes; those of an array have to be valid.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("noise");
    let noise = data(Kind::Random, 5000, 3);
    let mut schunk = SChunk::create::<u8>(&path, &CParams::new()).unwrap();
    schunk.append(&noise[..]).unwrap();
    let error = NDArray::open(&path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidData);
    assert!(error.to_string().contains("noise"), "{error}");
}

#[test]
fn a_file_that_cannot_be_appended_to_says_so_and_which_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("odd.b2frame");
    SChunk::create::<i32>(&path, &CParams::new()).unwrap();
    let good = fs::read(&path).unwrap();
    // A block smaller than an item; an unknown codec and an unknown filter.
    let odd: [(&[(usize, u8)], ErrorKind); 3] = [
        (&[(0x32, 1), (0x38, 64)], ErrorKind::InvalidData),
        (&[(0x1b, 0x56), (0x4d, 99)], ErrorKind::Unsupported),
        (&[(0x47, 99)], ErrorKind::Unsupported),
    ];
    for (changes, kind) in odd {
        let mut bytes = good.clone();
        for &(at, value) in changes {
            bytes[at] = value;
        }
        fs::write(&path, bytes).unwrap();
        assert_eq!(SChunk::open(&path).unwrap().nchunks(), 0, "{changes:?}");
        let mut schunk = SChunk::open_rw(&path).unwrap();
        let error = schunk.append(&[1u8; 260]).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert_eq!(error.path(), Some(&*path), "{error}");
        // What needs no compression can be done.
        schunk.vlmeta_mut().set("who", b"me").unwrap();
        assert_eq!(schunk.vlmeta().get("who").unwrap().unwrap(), b"me");
    }
}

/// Creates a frame with two stored chunks of 4000 bytes. Returns its bytes and the start of the chunks.
fn stored(path: &Path) -> (Vec<u8>, usize) {
    let mut schunk = SChunk::create::<u8>(path, &CParams::new()).unwrap();
    for seed in 0..2 {
        schunk.append(&data(Kind::Random, 4_000, seed)[..]).unwrap();
    }
    let bytes = fs::read(path).unwrap();
    let start = Header::parse(&bytes).unwrap().header_len as usize;
    (bytes, start)
}

#[test]
fn what_could_not_be_read_back_is_not_saved() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("short");
    let (mut bytes, start) = stored(&path);
    // The first chunk is valid but shorter than the chunk size of the frame.
    bytes[start + 4..start + 8].copy_from_slice(&2_800i32.to_le_bytes());
    bytes[start + 12..start + 16].copy_from_slice(&2_832i32.to_le_bytes());
    fs::write(&path, &bytes).unwrap();
    let schunk = SChunk::open(&path).unwrap();
    assert_eq!(kind(schunk.decompress_chunk::<u8>(0)), ErrorKind::InvalidData);
    assert!(schunk.decompress_chunk::<u8>(1).is_ok());
    let target = folder.path().join("saved");
    assert_eq!(schunk.save(&target).unwrap_err().kind(), ErrorKind::InvalidData);
    assert!(!target.exists());
}

#[test]
fn an_array_keeps_the_size_of_its_items_in_a_copy() {
    let folder = tempfile::tempdir().unwrap();
    let array = NDArray::from_slice(&[1i32; 100], [10, 10]).unwrap();
    let target = folder.path().join("copy");
    let params = CParams::new().codec(Codec::Lz4);
    let other = params.clone().typesize(2);
    assert_eq!(
        kind(SaveOptions::new().cparams(&other).save(&array.schunk(), &target)),
        ErrorKind::InvalidArgument
    );
    SaveOptions::new().cparams(&params).save(&array.schunk(), &target).unwrap();
    assert_eq!(NDArray::open(&target).unwrap().read::<Vec<i32>>(..).unwrap(), [1; 100]);
}

#[test]
fn parts_larger_than_any_chunk_are_refused_at_once() {
    for size in [1 << 31, 1 << 33, u64::MAX] {
        let refused = NDArray::builder().block_shape([size]).from_slice(&[0u8; 10], [10]);
        assert_eq!(kind(refused), ErrorKind::TooLarge);
        let refused = NDArray::builder().chunk_shape([size]).from_slice(&[0u8; 10], [10]);
        assert_eq!(kind(refused), ErrorKind::TooLarge);
    }
}

#[cfg(unix)]
#[test]
fn a_pipe_among_the_chunks_of_a_directory_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (path, _) = directory(folder.path());
    let chunk = path.join("00000001.chunk");
    fs::remove_file(&chunk).unwrap();
    let name = std::ffi::CString::new(chunk.to_str().unwrap()).unwrap();
    // SAFETY: the path ends in a NUL byte.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    let schunk = SChunk::open(&path).unwrap();
    assert!(schunk.decompress_chunk::<u8>(0).is_ok());
    assert_eq!(kind(schunk.decompress_chunk::<u8>(1)), ErrorKind::InvalidData);
}

#[test]
fn delta_after_another_filter_is_read_alike_with_threads() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("delta");
    let items: Vec<i32> = (0..100_000).map(|i| i * 3).collect();
    let filters = [Filter::Bitshuffle, Filter::Shuffle, Filter::Shuffle];
    let params = CParams::new().codec(Codec::Lz4).blocksize(4_000).filters(&filters);
    SChunk::create::<i32>(&path, &params).unwrap().append(&items).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let start = Header::parse(&bytes).unwrap().header_len as usize;
    // The codes of the filters: delta in the place of the second.
    assert_eq!(bytes[start + 16..start + 22], [0, 0, 0, 2, 1, 1]);
    bytes[start + 20] = 3;
    fs::write(&path, &bytes).unwrap();
    let mut schunk = SChunk::open(&path).unwrap();
    let expected = schunk.decompress_chunk::<i32>(0).unwrap();
    schunk.set_dparams(DParams::new().threads(Threads::new(4)));
    for _ in 0..300 {
        assert!(schunk.decompress_chunk::<i32>(0).unwrap() == expected);
    }

    // Also where C-Blosc2 as released mixes its buffers up: twice, and between many others.
    for codes in [[0, 0, 0, 3, 3, 1], [1, 2, 2, 3, 1, 0], [3, 1, 2, 2, 3, 1]] {
        bytes[start + 16..start + 22].copy_from_slice(&codes);
        fs::write(&path, &bytes).unwrap();
        let chunk = blosc2_format::chunk::Chunk::new(&bytes[start..], &Limits::default()).unwrap();
        let expected = chunk.decode().unwrap();
        let mut schunk = SChunk::open(&path).unwrap();
        for threads in [1, 4] {
            schunk.set_dparams(DParams::new().threads(Threads::new(threads)));
            assert!(
                schunk.decompress_chunk::<u8>(0).unwrap() == expected,
                "{codes:?}, {threads} threads"
            );
        }
    }
}
