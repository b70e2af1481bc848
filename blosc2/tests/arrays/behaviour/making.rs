//! Created arrays: from values, uninitialized, of items of any size; and invalid parameters.

use std::collections::BTreeMap;

use blosc2::{
    CParams, Check, Codec, ErrorKind, Filter, NDArray, NDArrayBuilder, OpenOptions, RawItems,
    SChunk, Special, Target, Threads,
};
use blosc2_format::b2nd::Meta;

use super::c::CArray;
use super::{
    Cut, Place, assert_holds, assert_keeps, constant, cut, everywhere, filled, folder, kind,
    numbers,
};
use crate::common::{Kind, assert_same, data, native};

const SHAPES: [Cut; 9] = [
    cut(&[], &[], &[]),
    cut(&[5], &[3], &[2]),
    // Chunks larger than the array.
    cut(&[1], &[3], &[2]),
    cut(&[1, 2], &[3, 3], &[2, 3]),
    cut(&[20, 0], &[7, 0], &[3, 0]),
    cut(&[20, 10], &[7, 5], &[3, 5]),
    cut(&[14, 10], &[8, 5], &[2, 2]),
    cut(&[12, 10, 14], &[3, 5, 9], &[3, 4, 4]),
    cut(&[10, 21, 30, 5], &[8, 7, 15, 3], &[5, 5, 10, 1]),
];

/// Bytes that an array stores for its chunks.
fn stored(array: &NDArray) -> usize {
    (0..array.schunk().nchunks()).map(|at| array.schunk().chunk_info(at).unwrap().cbytes).sum()
}

#[test]
fn zeros_and_nothing_yet_take_no_room() {
    for cut in SHAPES {
        for special in [Special::Zeros, Special::Uninit] {
            everywhere(&[1, 2, 4, 7], |place, typesize, path| {
                let what = format!("{special:?}, {cut:?}, {typesize} bytes");
                let dtype = format!("|V{typesize}");
                let builder = place.of(cut.builder(), path);
                let array = builder.dtype(&dtype, typesize).special(special, cut.shape).unwrap();
                assert_eq!(array.ndim(), cut.shape.len(), "{what}");
                assert_eq!(
                    (array.chunk_shape(), array.block_shape()),
                    (cut.chunks, cut.blocks),
                    "{what}"
                );
                assert_eq!(stored(&array), 0, "{what}");
                let zeros = constant(cut.shape, typesize, 0);
                // C leaves memory as it is where the array is uninitialized.
                if special == Special::Zeros {
                    assert_keeps(place, array, path, &zeros, &what);
                } else {
                    let array = place.reopened(array, path);
                    assert_holds(&array, &zeros, &what);
                }
            });
        }
    }
}

#[test]
fn arrays_of_no_number_take_no_room() {
    // In big-endian byte order, each chunk stores NaN once.
    let is_special = |array: &NDArray| match cfg!(target_endian = "big") {
        true => stored(array) <= 40 * array.schunk().nchunks(),
        false => stored(array) == 0,
    };
    for cut in SHAPES {
        everywhere(&[4, 8], |place, typesize, path| {
            let what = format!("{place:?}, {cut:?}, {typesize} bytes");
            let builder = place.of(cut.builder(), path);
            let count = cut.shape.iter().product::<u64>() as usize;
            let dtype = native(&format!("<f{typesize}"));
            let array = builder.dtype(dtype, typesize).special(Special::Nan, cut.shape).unwrap();
            assert!(is_special(&array), "{what}");
            let array = place.reopened(array, path);
            let items = match typesize {
                4 => array.read::<Vec<f32>>(..).unwrap().into_iter().map(f64::from).collect(),
                _ => array.read::<Vec<f64>>(..).unwrap(),
            };
            assert!(items.len() == count && items.iter().all(|item| item.is_nan()), "{what}");
        });
    }
    assert_eq!(
        kind(NDArray::builder().dtype("<i4", 4).special(Special::Nan, &[3])),
        ErrorKind::InvalidArgument
    );
}

#[test]
fn arrays_of_one_value_hold_it_everywhere() {
    for cut in SHAPES {
        everywhere(&[1, 2, 4, 8, 16, 255, 256, 257], |place, typesize, path| {
            // The lowest byte, or all of them.
            let value = match typesize {
                ..=16 => numbers(&[1], typesize, 113).bytes,
                _ => vec![113; typesize],
            };
            let what = format!("{cut:?}, {typesize} bytes");
            let dtype = format!("|V{typesize}");
            let builder = place.of(cut.builder(), path);
            let array =
                builder.dtype(&dtype, value.len()).full(RawItems(&value), cut.shape).unwrap();
            let mut model = constant(cut.shape, typesize, 0);
            model.bytes.chunks_exact_mut(typesize).for_each(|to| to.copy_from_slice(&value));
            let most = (32 + typesize) * array.schunk().nchunks();
            assert!(stored(&array) <= most, "{what}: {} bytes", stored(&array));
            assert_keeps(place, array, path, &model, &what);
        });
    }
    let array = NDArray::builder().full(-5i64, [3, 3]).unwrap();
    assert_eq!(array.read::<Vec<i64>>(..).unwrap(), [-5; 9]);
}

#[test]
fn nan_is_nan_in_every_byte_order_and_of_floats_alone() {
    for (dtype, size) in [("<f4", 4), (">f4", 4), ("<f8", 8), (">f8", 8)] {
        let array = NDArray::builder().dtype(dtype, size).special(Special::Nan, [3, 5]).unwrap();
        let bytes = array.read::<RawItems>(..).unwrap().0;
        assert_eq!(bytes.len(), 15 * size, "{dtype}");
        for item in bytes.chunks_exact(size) {
            let mut item = item.to_vec();
            if dtype.starts_with('>') {
                item.reverse();
            }
            let is_nan = match size {
                4 => f32::from_le_bytes(item.try_into().unwrap()).is_nan(),
                _ => f64::from_le_bytes(item.try_into().unwrap()).is_nan(),
            };
            assert!(is_nan, "{dtype}");
        }
    }
    for (dtype, size) in [("<i4", 4), ("|S8", 8), ("<c8", 8), ("<f2", 2), ("<f8", 4), ("text", 8)] {
        let array = NDArray::builder().dtype(dtype, size).special(Special::Nan, [3, 5]);
        assert_eq!(kind(array), ErrorKind::InvalidArgument, "{dtype}");
    }
}

#[test]
fn padded_shapes_are_those_of_c() {
    for cut in SHAPES {
        let (_folder, path) = folder();
        let array = cut.holding(&numbers(cut.shape, 3, 1), Place::File, &path);
        let info = array.info();
        if let Some(c) = CArray::open(&path) {
            let padded = c.padded_shapes();
            assert_eq!([&info.ext_shape, &info.ext_chunks], padded.each_ref());
        }
        let nbytes = cut.shape.iter().product::<u64>() * 3;
        assert_eq!((array.info().nbytes, info.nbytes), (nbytes, nbytes), "{cut:?}");
        let padded = info.ext_shape.iter().product::<u64>() > array.len();
        assert!(!padded || array.schunk().nbytes() > nbytes, "{cut:?}");
    }
}

const ROUND_TRIPS: [Cut; 7] = [
    cut(&[40, 40], &[20, 20], &[10, 10]),
    cut(&[40, 55, 23], &[31, 5, 22], &[4, 4, 4]),
    cut(&[40, 0, 12], &[31, 0, 12], &[10, 0, 12]),
    cut(&[25, 30, 31, 12], &[12, 10, 20, 10], &[5, 5, 5, 10]),
    cut(&[1, 1, 1024, 1, 1], &[1, 1, 500, 1, 1], &[1, 1, 200, 1, 1]),
    cut(&[5, 1, 50, 3, 1, 2], &[5, 1, 50, 2, 1, 2], &[2, 1, 20, 2, 1, 2]),
    // The maximum number of dimensions.
    cut(
        &[2, 3, 1, 1, 1, 1, 8, 1, 2, 2, 1, 1, 1, 1, 1, 2],
        &[1, 2, 1, 1, 1, 2, 1, 2, 1, 1, 1, 1, 1, 1, 1, 1],
        &[1; 16],
    ),
];

#[test]
fn what_goes_in_comes_out() {
    for cut in ROUND_TRIPS {
        everywhere(&[1, 2, 4, 8], |place, typesize, path| {
            let model = numbers(cut.shape, typesize, 1);
            let array = cut.holding(&model, place, path);
            assert_keeps(place, array, path, &model, &format!("{cut:?}, {typesize} bytes"));
        });
    }
    let ndim = 17;
    let shape = vec![1; ndim];
    assert_eq!(kind(NDArray::from_slice(&[0u8], &shape)), ErrorKind::InvalidArgument);
}

#[test]
fn items_of_more_than_255_bytes() {
    let cut = cut(&[512], &[128], &[2]);
    for typesize in [256, 261, 256 * 256] {
        let mut model = numbers(cut.shape, typesize, 0);
        for (at, byte) in model.bytes.iter_mut().enumerate() {
            *byte = (at % 251) as u8;
        }
        for place in [Place::Memory, Place::File] {
            let (_folder, path) = folder();
            let array = place.reopened(cut.holding(&model, place, &path), &path);
            let c = cut.in_c(&model, place, &path.with_extension("c"));
            for range in [0..1, 5..133, 0..512] {
                let ranges = std::slice::from_ref(&range);
                let expected = model.read(ranges);
                let what = format!("{place:?}, {typesize} bytes, {range:?}");
                assert_same(&array.read::<RawItems>(ranges).unwrap().0, &expected, &what);
                if let Some(c) = &c {
                    assert_same(&c.read(ranges), &expected, &what);
                }
            }
        }
    }
}

#[test]
fn strings_are_shuffled_by_their_characters() {
    const CHARACTERS: usize = 10;
    const BYTES: usize = 4;
    for cut in ROUND_TRIPS {
        let count = cut.shape.iter().product::<u64>() as usize * CHARACTERS;
        let items: Vec<[u32; CHARACTERS]> = (1..=count as u32)
            .collect::<Vec<_>>()
            .chunks_exact(CHARACTERS)
            .map(|item| item.try_into().unwrap())
            .collect();
        let bytes: Vec<u8> = items.iter().flatten().flat_map(|one| one.to_le_bytes()).collect();
        let make = |filter| {
            let params = CParams::new().codec(Codec::BloscLz).filters(&[filter]);
            let builder = cut.builder().cparams(params.threads(Threads::new(2)));
            builder
                .dtype("<U10", CHARACTERS * BYTES)
                .from_slice(RawItems(&bytes), cut.shape)
                .unwrap()
        };
        let (charwise, itemwise) = (make(Filter::ShuffleBytes(BYTES as u8)), make(Filter::Shuffle));
        for array in [&charwise, &itemwise] {
            assert_same(&array.read::<RawItems>(..).unwrap().0, &bytes, &format!("{cut:?}"));
        }
        let (_folder, path) = folder();
        charwise.save(&path).unwrap();
        if let Some(c) = CArray::open(&path) {
            assert_same(&c.read_all(), &bytes, &format!("{cut:?}, in C"));
        }
        assert_eq!(NDArray::open(&path).unwrap().info().cparams.filters, [Filter::ShuffleBytes(4)]);
        // In a single chunk it is not larger than with whole items.
        let len = |filter| {
            let params = CParams::new().codec(Codec::BloscLz).filters(&[filter]);
            let params = params.typesize(CHARACTERS * BYTES);
            blosc2::compress(&bytes, &params).unwrap().len()
        };
        assert!(len(Filter::ShuffleBytes(4)) <= len(Filter::Shuffle), "{cut:?}");
    }
}

#[test]
fn metalayers_stay_with_an_array() {
    for cut in [cut(&[], &[], &[]), cut(&[10], &[7], &[2]), cut(&[100, 100], &[20, 20], &[10, 10])]
    {
        everywhere(&[1, 2, 4, 8], |place, typesize, path| {
            let model = numbers(cut.shape, typesize, 1);
            let what = format!("{place:?}, {cut:?}, {typesize} bytes");
            let fixed = 5.789f64.to_le_bytes();
            let builder =
                place.of(cut.builder(), path).options(OpenOptions::new().meta("fixed", &fixed));
            let mut array = filled(builder, &model);
            array.vlmeta_mut().set("one", &56u64.to_le_bytes()).unwrap();
            assert!(!array.vlmeta().contains("other"), "{what}");
            assert_eq!(array.vlmeta().get("one").unwrap().unwrap(), 56u64.to_le_bytes());
            // Of another length.
            array.vlmeta_mut().set("one", &4.5f32.to_le_bytes()).unwrap();
            assert_eq!(array.vlmeta().get("one").unwrap().unwrap(), 4.5f32.to_le_bytes());
            array.vlmeta_mut().set("other", &56u64.to_le_bytes()).unwrap();

            let mut array = place.reopened(array, path);
            assert_eq!(array.vlmeta().names(), ["one", "other"], "{what}");
            assert_eq!(array.vlmeta().get("other").unwrap().unwrap(), 56u64.to_le_bytes());
            assert_eq!(array.meta().names(), ["b2nd", "fixed"], "{what}");
            assert_eq!(array.meta().get("fixed").unwrap().unwrap(), fixed, "{what}");
            let fixed = 1e-10f64.to_le_bytes();
            array.meta_mut().set("fixed", &fixed).unwrap();
            assert_eq!(array.meta().get("fixed").unwrap().unwrap(), fixed, "{what}");
            // Its length is fixed, and the metalayer with the shape cannot be changed.
            let longer = array.meta_mut().set("fixed", &[0; 9]);
            assert_eq!(kind(longer), ErrorKind::InvalidArgument, "{what}");
            let shape = array.meta_mut().set("b2nd", &[0; 9]);
            assert_eq!(kind(shape), ErrorKind::InvalidArgument, "{what}");
            let array = assert_keeps(place, array, path, &model, &what);
            assert_eq!(array.meta().get("fixed").unwrap().unwrap(), fixed, "{what}");
            assert_eq!(array.vlmeta().get("one").unwrap().unwrap(), 4.5f32.to_le_bytes());
        });
    }
}

#[test]
fn metalayers_are_given_at_creation() {
    let cut = cut(&[10], &[7], &[2]);
    everywhere(&[4], |place, typesize, path| {
        let model = numbers(cut.shape, typesize, 1);
        let what = format!("{place:?}");
        let builder = place.of(cut.builder(), path);
        let options =
            OpenOptions::new().meta_value("units", "kelvin").unwrap().meta("raw", "bytes");
        let options = options.vlmeta_value("tags", &(1, "two")).unwrap().vlmeta("text", "old");
        let array = filled(builder.options(options.vlmeta("text", "newer")), &model);
        let mut array = place.reopened(array, path);
        assert_eq!(array.meta().names(), ["b2nd", "units", "raw"], "{what}");
        assert_eq!(array.meta().get("units").unwrap().unwrap(), b"\xa6kelvin", "{what}");
        assert_eq!(array.meta().get("raw").unwrap().unwrap(), b"bytes", "{what}");
        assert_eq!(array.vlmeta().names(), ["tags", "text"], "{what}");
        let tags = array.vlmeta().get_value::<(u8, String)>("tags").unwrap();
        assert_eq!(tags, Some((1, "two".to_owned())), "{what}");
        assert_eq!(array.vlmeta().get("text").unwrap().unwrap(), b"newer", "{what}");
        // The error says what to do instead.
        if !matches!(place, Place::Directory) {
            let error = array.meta_mut().set("late", "x").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{what}");
            let text = error.to_string();
            assert!(text.contains("when it is created") && text.contains("vlmeta"), "{text}");
        } else {
            array.meta_mut().set("late", "x").unwrap();
        }
        assert_keeps(place, array, path, &model, &what);
    });
    // A value that Python would read as another one.
    let keys = BTreeMap::from([(1, 2)]);
    assert_eq!(kind(OpenOptions::new().meta_value("map", &keys)), ErrorKind::InvalidArgument);
    let reserved =
        NDArray::builder().options(OpenOptions::new().vlmeta("b2o", "x")).from_slice(&[1u8], &[1]);
    assert_eq!(kind(reserved), ErrorKind::InvalidArgument);
}

#[test]
fn chunks_and_blocks_that_are_too_large_are_refused() {
    let most = i32::MAX as u64;
    let cases: [(Cut, ErrorKind); 4] = [
        (cut(&[i32::MAX as u64], &[i32::MAX as u64], &[1]), ErrorKind::TooLarge),
        (cut(&[65536, 65536], &[65536, 65536], &[65536, 65536]), ErrorKind::TooLarge),
        (cut(&[65536, 65536], &[65536, 65536], &[1, 1]), ErrorKind::TooLarge),
        // A block cannot be larger than a chunk.
        (cut(&[65536, 65536], &[65536, 1], &[65536, 65536]), ErrorKind::InvalidArgument),
    ];
    for (cut, expected) in cases {
        let (folder, path) = folder();
        let made = Place::File
            .of(cut.builder(), &path)
            .dtype("|u1", 1)
            .special(Special::Uninit, cut.shape);
        assert_eq!(kind(made), expected, "{cut:?}");
        assert_eq!(folder.path().read_dir().unwrap().count(), 0, "{cut:?}: something is left");
    }
    let builder = || NDArray::builder().chunk_shape([1]).block_shape([1]);
    assert_eq!(
        kind(builder().dtype("|u1", 1).special(Special::Uninit, &[most << 31])),
        ErrorKind::TooLarge
    );
    assert_eq!(
        kind(builder().dtype("|u1", 1).special(Special::Uninit, &[u64::MAX])),
        ErrorKind::TooLarge
    );
    // Valid shapes are accepted, also without items.
    let array = cut(&[20, 10], &[7, 5], &[3, 5]).builder().zeros::<u8>(&[20, 10]).unwrap();
    assert_eq!(array.read::<Vec<u8>>(&[1..3, 1..4]).unwrap(), [0; 6]);
    let array = cut(&[0, 0], &[0, 0], &[0, 0])
        .builder()
        .dtype("|u1", 1)
        .special(Special::Uninit, &[0, 0])
        .unwrap();
    assert!(array.read::<Vec<u8>>(..).unwrap().is_empty());
}

#[test]
fn the_format_of_a_dtype_is_kept() {
    let (_folder, path) = folder();
    let builder = || NDArray::builder().chunk_shape([2]).dtype_format(127);
    let array =
        builder().target(&path).dtype("rgb24", 3).from_slice(RawItems(&[7; 12]), [4]).unwrap();
    drop(array);
    assert!(CArray::open(&path).is_none_or(|c| c.dtype_format() == 127));
    let mut array = NDArray::open_rw(&path).unwrap();
    let has_it = |array: &NDArray| {
        assert_eq!((array.dtype_str(), array.info().dtype_format), (Some("rgb24"), 127));
        assert!(array.dtype().is_none());
    };
    has_it(&array);
    array.resize([6]).unwrap();
    array.append(0, RawItems(&[9; 3])).unwrap();
    array.refresh().unwrap();
    has_it(&array);
    has_it(&NDArray::builder().copy(&array).unwrap());
    has_it(&NDArray::builder().copy(array.view().slice(1..3).unwrap()).unwrap());
    has_it(&NDArray::builder().concatenate([&array, &array], 0).unwrap());
    let rows = [(); 2].map(|()| array.view().expand_dims(0).unwrap());
    has_it(&NDArray::builder().concatenate(rows, 0).unwrap());
    has_it(&NDArray::builder().from_slice(&array, array.shape()).unwrap());
    has_it(&NDArray::builder().full(array.view().slice([0]).unwrap(), [3]).unwrap());
    // This text only looks like a NumPy dtype.
    let numbers = builder().dtype("<f4", 4).from_slice(RawItems(&[0; 8]), [2]).unwrap();
    assert_eq!(kind(numbers.read::<Vec<f32>>(..)), ErrorKind::TypeMismatch);
    assert_eq!(numbers.read::<RawItems>(..).unwrap().0, [0; 8]);
    let numpy = NDArray::builder().dtype("<f4", 4).from_slice(RawItems(&[0; 8]), [2]).unwrap();
    assert_eq!(numpy.info().dtype_format, 0);
    for pair in [[&numbers, &numpy], [&numpy, &numbers]] {
        assert_eq!(kind(NDArray::builder().concatenate(pair, 0)), ErrorKind::TypeMismatch);
    }
    assert!(builder().dtype("|O", 8).from_slice(RawItems(&[0; 16]), [2]).is_ok());
    for format in [128, 255] {
        let made = NDArray::builder().dtype_format(format).zeros::<u8>(&[2]);
        assert_eq!(kind(made), ErrorKind::InvalidArgument);
    }
}

/// A frame with the metalayer of an array.
fn claimed(meta: &[u8], typesize: usize) -> SChunk {
    OpenOptions::new()
        .typesize(typesize)
        .meta("b2nd", meta)
        .create_new(true)
        .open(Vec::new())
        .unwrap()
}

fn meta(shape: &[i64], chunks: &[i32], blocks: &[i32]) -> Meta {
    Meta {
        shape: shape.to_vec(),
        chunks: chunks.to_vec(),
        blocks: blocks.to_vec(),
        dtype: Some("|u1".to_owned()),
        dtype_format: 0,
    }
}

#[test]
fn shapes_that_cannot_be_make_no_array() {
    let array = |meta: &Meta, typesize| {
        let array = NDArray::from_schunk(claimed(&meta.to_bytes().unwrap(), typesize));
        let read_back = claimed(&meta.to_bytes().unwrap(), typesize).into_cframe().unwrap();
        assert_eq!(array.is_ok(), NDArray::open_rw(read_back).is_ok());
        array
    };
    assert!(array(&meta(&[0, 0], &[2, 5], &[1, 5]), 1).unwrap().is_empty());
    let side = 1 << 16;
    let wide = i64::from(side);
    for (meta, typesize, detail) in [
        // Products that overflow: of blocks, of chunks, of all.
        (meta(&[wide, wide], &[side, 1], &[side, side]), 1, "with padding"),
        (meta(&[wide, wide], &[side, side], &[1, 1]), 1, "chunk"),
        (meta(&[1 << 62, 4], &[1, 1], &[1, 1]), 1, ""),
        (meta(&[1_073_741_952], &[1_073_741_952], &[128]), 4, "chunk"),
        // An axis with items, whose chunks have none.
        (meta(&[20, 10], &[7, 0], &[3, 0]), 1, "chunk"),
        (meta(&[20, 10], &[7, 5], &[3, 0]), 1, "block"),
        (meta(&[20, -10], &[7, 5], &[3, 5]), 1, ""),
        (meta(&[20, 10], &[7, -5], &[3, 5]), 1, ""),
    ] {
        let error = array(&meta, typesize).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData, "{meta:?}: {error}");
        let text = error.to_string();
        assert!(text.contains(detail) && !text.contains("the frame has"), "{meta:?}: {text}");
    }
}

#[test]
fn shapes_that_cannot_be_read_make_no_array() {
    let good = meta(&[0, 5], &[2, 5], &[1, 5]).to_bytes().unwrap();
    assert!(NDArray::from_schunk(claimed(&good, 1)).is_ok());
    let refused = |content: &[u8], what: &str| {
        let error = NDArray::from_schunk(claimed(content, 1)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData, "{what}: {error}");
    };
    // The metalayer of old arrays ends before the dtype.
    let old = good.len() - [0, 0xdb, 0, 0, 0, 3, b'|', b'u', b'1'].len();
    for len in (0..good.len()).filter(|&len| len != old) {
        refused(&good[..len], &format!("cut after {len} bytes"));
    }
    assert_eq!(NDArray::from_schunk(claimed(&good[..old], 1)).unwrap().dtype_str(), None);
    // The length of the dtype, negative and too large.
    let dtype = good.len() - 3 - 4;
    assert_eq!(good[dtype..], [0, 0, 0, 3, b'|', b'u', b'1']);
    for len in [-1i32, i32::MIN, 4, i32::MAX] {
        let mut bad = good.clone();
        bad[dtype..dtype + 4].copy_from_slice(&len.to_be_bytes());
        refused(&bad, &format!("a dtype of {len} bytes"));
    }
    // In an array of several chunks, the first axis of the block shape.
    let mut array = cut(&[20, 10], &[7, 5], &[3, 5]).builder().target(Vec::new());
    array = array.cparams(CParams::new().codec(Codec::Lz4));
    let frame = array.from_slice(&data(Kind::Random, 200, 1), [20, 10]).unwrap();
    let frame = frame.into_schunk().into_cframe().unwrap();
    let sides = [[0xd2, 0, 0, 0, 3], [0xd2, 0, 0, 0, 5]].concat();
    let at = frame.windows(10).position(|bytes| bytes == sides).unwrap();
    for side in [0i32, -3, 8] {
        let mut bad = frame.clone();
        bad[at + 1..at + 5].copy_from_slice(&side.to_be_bytes());
        let found = NDArray::open_rw(bad.clone());
        // As in C, an array whose blocks are larger than its chunks can be opened; reading it then fails.
        match found {
            Ok(array) => assert!(side == 8 && array.read::<RawItems>(..).is_err(), "{side}"),
            Err(error) => assert_eq!(error.kind(), ErrorKind::InvalidData, "{side}: {error}"),
        }
        let checked = OpenOptions::new().check(Check::Content).open(bad);
        assert!(checked.is_err(), "{side}");
    }
}

#[test]
fn arrays_without_items_grow_in_automatic_chunks() {
    for (shape, axis, row) in [(vec![0], 0, 1), (vec![0, 3], 0, 3), (vec![4, 0], 1, 4)] {
        let mut array = NDArray::builder().zeros::<i32>(&shape).unwrap();
        assert!(
            array.chunk_shape().iter().all(|&side| side > 0),
            "{shape:?}: {:?}",
            array.chunk_shape()
        );
        for run in 0..5 {
            array.append(axis, &vec![run; row]).unwrap();
        }
        assert_eq!(array.shape()[axis], 5, "{shape:?}");
        let sum: i32 = array.read::<Vec<i32>>(..).unwrap().iter().sum();
        assert_eq!(sum, 10 * row as i32, "{shape:?}");
        let item_at = vec![-1; shape.len()];
        assert_eq!(array.item::<i32>(&item_at).unwrap(), 4, "{shape:?}");
    }
    // Both axes grow from 0.
    let mut array = NDArray::builder().zeros::<u8>([0, 0]).unwrap();
    array.resize([2, 3]).unwrap();
    array.write((.., ..), &[1u8, 2, 3, 4, 5, 6]).unwrap();
    assert_eq!(array.read::<Vec<u8>>(..).unwrap(), [1, 2, 3, 4, 5, 6]);
}

#[test]
fn an_array_is_opened_or_created() {
    let folder = tempfile::tempdir().unwrap();
    let made = |builder: NDArrayBuilder| builder.zeros::<u16>([0]);
    for directory in [false, true] {
        let path = folder.path().join(if directory { "directory" } else { "file" });
        let builder = || match directory {
            true => NDArray::builder().target(Target::from(&path).directory(true)),
            false => NDArray::builder().target(&path),
        };
        let mut array = builder().open_or_create(made).unwrap();
        array.append(0, &[7u16]).unwrap();
        // This program has it open already.
        let error = builder().open_or_create(|_| panic!("made again")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy);
        drop(array);
        let params = CParams::new().codec(Codec::Lz4);
        let again = builder().cparams(&params).options(OpenOptions::new().max_read(1));
        let array = again.open_or_create(|_| panic!("made again")).unwrap();
        assert_eq!((array.shape(), array.info().cparams.codec), (&[1][..], Codec::Lz4));
        assert_eq!(array.read::<Vec<u16>>(..).unwrap_err().kind(), ErrorKind::TooLarge);
        drop(array);
        // Another program creates it in between.
        let race = builder().open_or_create(|_| {
            Err(NDArray::builder().target(&path).zeros::<u16>([1]).unwrap_err())
        });
        assert_eq!(race.unwrap().shape(), [1]);
    }
    let late = folder.path().join("late");
    let race = NDArray::builder().target(&late).open_or_create(|builder| {
        NDArray::builder().target(&late).zeros::<u16>([5])?;
        builder.zeros::<u16>([6])
    });
    assert_eq!(race.unwrap().shape(), [5]);
    // The parameters of another array, whose items and blocks have other sizes.
    let other = NDArray::builder().zeros::<f64>([10]).unwrap().info().cparams;
    for _ in 0..2 {
        let builder = NDArray::builder().target(folder.path().join("twice")).cparams(&other);
        builder.open_or_create(made).unwrap();
    }
    // The reason is the name, and not what it does not lead to.
    #[cfg(unix)]
    {
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(folder.path().join("nowhere"), &link).unwrap();
        let error = NDArray::builder().target(&link).open_or_create(made).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    }
    std::fs::write(folder.path().join("text"), "no array").unwrap();
    let text = NDArray::builder().target(folder.path().join("text"));
    assert_eq!(text.open_or_create(made).unwrap_err().kind(), ErrorKind::InvalidData);
    let replacing = NDArray::builder().target(&late).options(OpenOptions::new().replace(true));
    assert_eq!(replacing.open_or_create(made).unwrap_err().kind(), ErrorKind::InvalidArgument);
    let elsewhere = NDArray::builder().target(folder.path().join("none/array"));
    assert_eq!(elsewhere.open_or_create(made).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(NDArray::builder().open_or_create(made).unwrap().shape(), [0]);
}

/// A directory appears with its frame, and never empty: another thread that finds it can open it.
#[test]
fn a_directory_appears_whole() {
    for round in 0..40 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("directory");
        let append = || {
            let builder = NDArray::builder()
                .target(Target::from(&path).directory(true))
                .options(OpenOptions::new().locking(true))
                .chunk_shape([10]);
            let mut array = builder.open_or_create(|new| new.zeros::<u8>([0])).unwrap();
            array.append(0, &[1u8]).unwrap();
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(append);
            }
        });
        assert_eq!(NDArray::open(&path).unwrap().shape(), [4], "round {round}");
    }
}

#[test]
fn blocks_of_an_axis_without_items_divide_its_chunks() {
    for block in [1000, 300_000] {
        let array = NDArray::builder().block_shape([block]).zeros::<u8>([0]).unwrap();
        assert_eq!(array.chunk_shape()[0] % block, 0, "{:?}", array.chunk_shape());
    }
    let wide = NDArray::builder().block_shape([20]).zeros::<u8>([10]);
    assert_eq!(wide.unwrap_err().kind(), ErrorKind::InvalidArgument);
    let caches = blosc2::array::CacheSizes { l1: 1 << 40, l2: u64::MAX, l3: 0 };
    let array = NDArray::builder().cache_sizes(caches).zeros::<u8>([0, 3]);
    assert_eq!(array.unwrap_err().kind(), ErrorKind::TooLarge); // at once, whatever the sizes are
}
