//! Arrays against a plain model: all that is written is read, whole and in boxes.

use std::ops::Range;

use blosc2::{
    CParams, Codec, DParams, ErrorKind, Filter, NDArray, RawItems, SaveOptions, SplitMode, Threads,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};

use crate::common::{
    KINDS, Kind, Model, Rng, assert_same, codecs, lossless, native, random_box, repeats,
};

/// A valid combination of shape, chunk shape and block shape.
#[derive(Debug, Clone)]
struct Shapes {
    shape: Vec<u64>,
    chunks: Vec<u64>,
    blocks: Vec<u64>,
}

fn shapes() -> impl Strategy<Value = Shapes> {
    // For each axis: its size, chunk size and block size, from three free numbers.
    let axis = (0u64..=20, 1u64..=24, 1u64..=24).prop_map(|(size, chunk, block)| {
        let chunk = chunk.min(size + 3).max(1);
        (size, chunk, block.min(chunk))
    });
    let small = prop::collection::vec(axis.clone(), 0..=2);
    let flat = (0u64..=6, 1u64..=7, 1u64..=7)
        .prop_map(|(size, chunk, block)| (size, chunk, block.min(chunk)));
    let deep = prop::collection::vec(flat, 3..=5);
    let one = (1u64..=2, 1u64..=2).prop_map(|(size, chunk)| (size, chunk, 1));
    let deepest = prop::collection::vec(one, 16).prop_map(|mut axes| {
        // At most 2^9 items.
        for axis in axes.iter_mut().skip(9) {
            *axis = (1, 1, 1);
        }
        axes
    });
    prop_oneof![4 => small, 4 => deep, 1 => deepest].prop_map(|axes| Shapes {
        shape: axes.iter().map(|axis| axis.0).collect(),
        chunks: axes.iter().map(|axis| axis.1).collect(),
        blocks: axes.iter().map(|axis| axis.2).collect(),
    })
}

#[derive(Debug, Clone)]
struct Case {
    shapes: Shapes,
    /// Other chunk and block shapes, to copy to.
    chunks: Vec<u64>,
    blocks: Vec<u64>,
    typesize: usize,
    kind: Kind,
    seed: u64,
}

fn cases() -> impl Strategy<Value = Case> {
    let other = prop::collection::vec((1u64..=9, 1u64..=9), 16);
    let typesize = prop_oneof![
        6 => prop::sample::select(vec![1usize, 2, 4, 8, 16]),
        2 => 1usize..=40,
        1 => prop::sample::select(vec![255usize, 256, 300]),
    ];
    let kind = prop::sample::select(KINDS.to_vec());
    (shapes(), other, typesize, kind, any::<u64>()).prop_map(
        |(shapes, other, typesize, kind, seed)| {
            let ndim = shapes.shape.len();
            let chunks: Vec<u64> = other[..ndim]
                .iter()
                .map(|each| if ndim > 5 { each.0.min(2) } else { each.0 })
                .collect();
            let blocks =
                other[..ndim].iter().zip(&chunks).map(|(each, &c)| each.1.min(c)).collect();
            Case { shapes, chunks, blocks, typesize, kind, seed }
        },
    )
}

fn params(typesize: usize, rng: &mut Rng) -> CParams {
    let mut filters = Vec::new();
    for position in 0..rng.below(5) {
        filters.push(lossless(typesize, position == 0, rng));
    }
    CParams::new()
        .codec(*rng.pick(&codecs()))
        .level(rng.below(10) as u8)
        .filters(&filters)
        .split(*rng.pick(&[SplitMode::Always, SplitMode::Never, SplitMode::Auto]))
        .threads(Threads::new(*rng.pick(&[1, 1, 2])))
}

fn check_reads(array: &NDArray, model: &Model, rng: &mut Rng, what: &str) {
    assert_eq!(array.shape(), model.shape, "{what}");
    assert_eq!(array.typesize(), model.typesize, "{what}");
    assert_eq!(array.ndim(), model.shape.len(), "{what}");
    assert_eq!(array.len(), model.shape.iter().product::<u64>(), "{what}");
    assert_eq!(array.is_empty(), model.bytes.is_empty(), "{what}");
    let whole =
        array.read::<RawItems>(..).map(|items| items.0).unwrap_or_else(|e| panic!("{what}: {e}"));
    assert_same(&whole, &model.bytes, what);
    for _ in 0..6 {
        let ranges = random_box(&model.shape, rng);
        let expected = model.read(&ranges);
        let found = array
            .read::<RawItems>(&ranges)
            .map(|items| items.0)
            .unwrap_or_else(|e| panic!("{what} {ranges:?}: {e}"));
        assert_same(&found, &expected, &format!("{what}: {ranges:?}"));
        let mut buffer = vec![0xee; expected.len()];
        array.read_into(&ranges, RawItems(&mut buffer)).unwrap();
        assert_same(&buffer, &expected, &format!("{what}: {ranges:?}, into"));
    }
}

fn check(case: &Case) {
    let Case { shapes, typesize, .. } = case;
    let mut rng = Rng(case.seed);
    let model = Model::new(&shapes.shape, *typesize, case.kind, case.seed);
    let before = model.bytes.clone();
    let given = params(*typesize, &mut rng);
    let builder = || {
        NDArray::builder()
            .chunk_shape(&shapes.chunks)
            .block_shape(&shapes.blocks)
            .cparams(given.clone())
    };
    let dtype = format!("|V{typesize}");
    let what = format!("{case:?} {given:?}");
    let fail = |error: blosc2::Error| -> NDArray { panic!("{what}: {error}") };

    let array = builder()
        .dtype(&dtype, *typesize)
        .from_slice(RawItems(&model.bytes), &shapes.shape)
        .unwrap_or_else(fail);
    assert!(model.bytes == before, "{what}: the source was written to");
    assert_eq!(array.chunk_shape(), shapes.chunks, "{what}");
    assert_eq!(array.block_shape(), shapes.blocks, "{what}");
    assert_eq!(array.dtype_str(), Some(&*dtype), "{what}");
    check_reads(&array, &model, &mut rng, &what);

    let folder = tempfile::tempdir().unwrap();
    let (built, saved) = (folder.path().join("built.b2nd"), folder.path().join("saved.b2nd"));
    let file = builder()
        .target(&built)
        .dtype(&dtype, *typesize)
        .from_slice(RawItems(&model.bytes), &shapes.shape)
        .unwrap_or_else(fail);
    check_reads(&file, &model, &mut rng, &format!("{what} in a file"));
    array.save(&saved).unwrap();
    let mut reopened = NDArray::open(&saved).unwrap_or_else(fail);
    check_reads(&reopened, &model, &mut rng, &format!("{what} saved"));
    assert_eq!(reopened.info().cparams.filters.len(), given.filters.len(), "{what}");
    if given.threads == Threads::ONE {
        let (one, other) = (std::fs::read(&built).unwrap(), std::fs::read(&saved).unwrap());
        assert_same(&one, &other, &format!("{what}: built in a file and saved to one"));
    }
    reopened.set_dparams(DParams::new().threads(Threads::new(2)));
    check_reads(&reopened, &model, &mut rng, &format!("{what} with two threads"));

    let other = params(*typesize, &mut rng);
    let to = NDArray::builder().cparams(other.clone());
    let to = match rng.below(4) {
        0 => to,
        1 => to.chunk_shape(&case.chunks),
        2 => to
            .chunk_shape(&case.chunks)
            .block_shape(&case.blocks)
            .target(folder.path().join("copy.b2nd")),
        _ => to.chunk_shape(&case.chunks).block_shape(&case.blocks),
    };
    let what = format!("{what} copied with {other:?} {to:?}");
    let copy = to.copy(&reopened).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(copy.dtype_str(), Some(&*dtype), "{what}");
    check_reads(&copy, &model, &mut rng, &what);
}

proptest! {
    #![proptest_config(Config {
        cases: repeats(500) as u32,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(7),
        ..Config::default()
    })]

    #[test]
    fn arrays_behave_like_a_plain_model(case in cases()) {
        check(&case);
    }
}

#[test]
fn typed_arrays_give_their_items_in_every_way_of_reading() {
    macro_rules! check {
        ($($type:ty => $dtype:literal),*) => {$({
            let items: Vec<$type> = (0..60 * 7).map(|item| (item % 100) as $type).collect();
            let array = NDArray::builder()
                .chunk_shape(&[25, 7])
                .block_shape(&[4, 3])
                .from_slice(&items, &[60, 7])
                .unwrap();
            let dtype = native($dtype);
            assert_eq!((array.dtype_str(), array.typesize()), (Some(&*dtype), size_of::<$type>()));
            assert_eq!(array.read::<Vec<$type>>(..).unwrap(), items);
            let expected: Vec<$type> =
                (20..30).flat_map(|row| items[row * 7 + 1..row * 7 + 5].to_vec()).collect();
            assert_eq!(array.read::<Vec<$type>>(&[20..30, 1..5]).unwrap(), expected);
            let mut buffer = vec![99 as $type; expected.len()];
            array.read_into(&[20..30, 1..5], &mut buffer).unwrap();
            assert_eq!(buffer, expected);
            assert!(array.read::<Vec<$type>>(&[3..3, 0..7]).unwrap().is_empty());
            // The same array with automatic chunk and block shapes.
            let array = NDArray::from_slice(&items, &[60, 7]).unwrap();
            assert_eq!(array.read::<Vec<$type>>(..).unwrap(), items);
        })*};
    }
    check!(u8 => "|u1", i8 => "|i1", u16 => "<u2", i16 => "<i2", u32 => "<u4", i32 => "<i4");
    check!(u64 => "<u8", i64 => "<i8", f32 => "<f4", f64 => "<f8");
}

#[test]
fn no_dimensions_is_one_item() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("one.b2nd");
    let array = NDArray::builder().target(&path).from_slice(&[42.5f64], ()).unwrap();
    assert_eq!((array.ndim(), array.len(), array.schunk().nchunks()), (0, 1, 1));
    assert_eq!(array.read::<Vec<f64>>(..).unwrap(), [42.5]);
    assert_eq!(array.read::<Vec<f64>>(..).unwrap(), [42.5]);
    assert_eq!(NDArray::builder().copy(&array).unwrap().read::<Vec<f64>>(..).unwrap(), [42.5]);
}

#[test]
fn a_dimension_without_items_makes_an_empty_array() {
    let folder = tempfile::tempdir().unwrap();
    for (at, shape) in [&[0u64][..], &[3, 0, 5], &[0, 0], &[0, 1 << 40]].into_iter().enumerate() {
        let path = folder.path().join(format!("{at}.b2nd"));
        let array = NDArray::builder().target(&path).from_slice(&[0f32; 0], shape).unwrap();
        assert!(array.is_empty() && array.schunk().nchunks() == 0, "{shape:?}");
        assert!(array.read::<Vec<f32>>(..).unwrap().is_empty());
        assert_eq!(array.shape(), shape);
    }
}

#[test]
fn automatic_shapes_are_found_when_one_is_given_and_the_array_is_empty() {
    for shape in [[0, 5], [5, 0], [0, 0]] {
        for given in [[0, 0], [0, 5], [5, 0], [5, 5], [1, 1]] {
            let fits = (0..2).all(|axis| shape[axis] == 0 || given[axis] > 0);
            for name in ["chunks", "blocks"] {
                let builder = match name {
                    "chunks" => NDArray::builder().chunk_shape(given),
                    _ => NDArray::builder().block_shape(given),
                };
                match builder.from_slice(&[0u8; 0], &shape) {
                    Ok(array) => {
                        assert!(fits, "{name} {given:?} of {shape:?}");
                        assert!(array.read::<Vec<u8>>(..).unwrap().is_empty());
                    }
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
                    }
                }
            }
        }
    }
}

#[test]
fn zeros_take_no_room() {
    let zeros = vec![0u8; 4 << 20];
    let array = NDArray::builder().chunk_shape([1 << 16]).from_slice(&zeros, [4 << 20]).unwrap();
    assert_eq!(array.schunk().nchunks(), 64);
    assert!(array.schunk().cbytes() <= 64 * 32, "{} bytes", array.schunk().cbytes());
    assert!(array.read::<Vec<u8>>(..).unwrap() == zeros);
    let range = 70_000..70_003;
    assert_eq!(array.read::<Vec<u8>>(&[range]).unwrap(), [0; 3]);
}

#[test]
fn boxes_are_right_where_blocks_depend_on_each_other() {
    // Delta needs the first block and all blocks share a dictionary, while a partial read leaves the other
    // blocks compressed.
    for (filters, dictionary) in [
        (&[Filter::Delta][..], false),
        (&[Filter::Delta, Filter::Shuffle], false),
        (&[Filter::Delta, Filter::Bitshuffle, Filter::Bytedelta(0)], false),
        (&[Filter::Shuffle], true),
        (&[], true),
    ] {
        for codec in [Codec::Zstd, Codec::Lz4, Codec::Lz4Hc] {
            for kind in [Kind::Ramp, Kind::Runs, Kind::Mixed] {
                let model = Model::new(&[300, 128], 4, kind, 9);
                let params =
                    CParams::new().codec(codec).filters(filters).dictionary(dictionary).level(5);
                let what = format!("{codec}, {filters:?}, {kind:?}, dictionary {dictionary}");
                let mut array = NDArray::builder()
                    .chunk_shape([100, 128])
                    .block_shape([10, 32])
                    .cparams(params)
                    .dtype("<u4", 4)
                    .from_slice(RawItems(&model.bytes), &model.shape)
                    .unwrap();
                for threads in [1, 3] {
                    array.set_dparams(DParams::new().threads(Threads::new(threads)));
                    check_reads(&array, &model, &mut Rng(3), &what);
                }
            }
        }
    }
}

#[test]
fn filters_and_codecs_that_look_at_the_shape_are_undone() {
    let model = Model::new(&[60, 44], 4, Kind::Ramp, 1);
    for side in [1, 2, 3, 4, 7] {
        let array = NDArray::builder()
            .chunk_shape([30, 22])
            .block_shape([10, 11])
            .cparams(CParams::new().filters(&[Filter::Ndcell(side), Filter::Shuffle]))
            .dtype("<u4", 4)
            .from_slice(RawItems(&model.bytes), &model.shape)
            .unwrap();
        check_reads(&array, &model, &mut Rng(4), &format!("ndcell:{side}"));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cells.b2nd");
        array.save(&path).unwrap();
        let array = NDArray::open(&path).unwrap();
        check_reads(&array, &model, &mut Rng(4), &format!("ndcell:{side} in a file"));
    }
    for side in [4, 8] {
        for kind in KINDS {
            let model = Model::new(&[60, 44], 1, kind, 1);
            let array = NDArray::builder()
                .chunk_shape([30, 32])
                .block_shape([16, 16])
                .cparams(CParams::new().codec(Codec::Ndlz).codec_meta(side).filters(&[]))
                .dtype("|u1", 1)
                .from_slice(RawItems(&model.bytes), &model.shape)
                .unwrap();
            check_reads(&array, &model, &mut Rng(4), &format!("ndlz:{side} of {kind:?}"));
        }
    }
}

#[test]
fn filters_that_look_at_the_shape_refuse_what_they_cannot_do() {
    let make = |params: CParams, shape: &[u64], blocks: &[u64]| {
        let model = Model::new(shape, 4, Kind::Random, 1);
        let array = NDArray::builder().chunk_shape(shape).block_shape(blocks).cparams(params);
        let array = array.dtype("<f4", 4).from_slice(RawItems(&model.bytes), shape)?;
        array.read::<RawItems>(..).map(|items| items.0)
    };
    for params in [
        CParams::new().filters(&[Filter::Ndcell(0)]),
        CParams::new().filters(&[Filter::Ndmean(0)]),
        CParams::new().filters(&[Filter::Ndmean(200)]),
        CParams::new().filters(&[Filter::Ndcell(255)]),
        CParams::new().codec(Codec::Ndlz).filters(&[]),
        CParams::new().codec(Codec::Ndlz).codec_meta(5).filters(&[]),
        CParams::new().codec(Codec::Ndlz).codec_meta(4).filters(&[]),
    ] {
        for shape in [&[20u64, 20][..], &[20], &[], &[3, 3, 3, 3, 3, 3, 3, 3, 3]] {
            // An error is allowed, but no crash, and no data that cannot be read again.
            if let Err(error) = make(params.clone(), shape, shape) {
                assert_ne!(error.kind(), ErrorKind::InvalidData, "{params:?} {shape:?}: {error}");
            }
        }
    }
}

#[test]
fn a_sixteenth_of_the_chunks_can_be_read_without_the_others() {
    // Many chunks, also with an index of several blocks.
    let items: Vec<u16> = (0..5000).map(|item| item as u16).collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("many.b2nd");
    let builder = NDArray::builder().chunk_shape([3]).block_shape([2]);
    let file = builder.clone().target(&path).from_slice(&items, [5000]).unwrap();
    let memory = builder.from_slice(&items, [5000]).unwrap();
    assert_eq!(file.schunk().nchunks(), 1667);
    for array in [&file, &memory] {
        assert_eq!(array.read::<Vec<u16>>(..).unwrap(), items);
        for start in (0..4990).step_by(97) {
            let range: Range<u64> = start..start + 10;
            let expected = &items[start as usize..start as usize + 10];
            assert_eq!(array.read::<Vec<u16>>(&[range]).unwrap(), expected);
        }
    }
}

#[test]
fn copies_keep_the_metalayers_of_files() {
    // Only upstream's frames here have some, and they are not arrays.
    let path = crate::common::upstream("tests/fuzz/corpus/frame_simple-lz4.b2frame");
    let folder = tempfile::tempdir().unwrap();
    let schunk = blosc2::SChunk::open(path).unwrap();
    let copy = folder.path().join("copy.b2frame");
    SaveOptions::new().cparams(CParams::new()).save(&schunk, &copy).unwrap();
    let copied = blosc2::SChunk::open(&copy).unwrap();
    assert_eq!(copied.vlmeta().names(), schunk.vlmeta().names());
    assert_eq!(copied.vlmeta().get("vlmetalayer").unwrap().unwrap().len(), 10);
    assert_eq!(copied.info().cparams.codec, Codec::Zstd);
}

#[test]
fn the_recompressed_super_chunk_of_an_array_is_still_an_array() {
    let items: Vec<i32> = (0..400 * 300).map(|item| item / 7).collect();
    let array = NDArray::builder()
        .chunk_shape([100, 300])
        .block_shape([10, 20])
        .from_slice(&items, [400, 300]);
    let array = array.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("copy.b2nd");
    SaveOptions::new()
        .cparams(CParams::new().codec(Codec::Lz4))
        .save(&array.schunk(), &path)
        .unwrap();
    let copy = NDArray::open(&path).unwrap();
    assert_eq!(copy.read::<Vec<i32>>(..).unwrap(), items);
    assert_eq!(copy.read::<Vec<i32>>(&[150..151, 7..9]).unwrap(), items[150 * 300 + 7..][..2]);
    // C and Python read boxes by the block shape: it has to be that of the chunks.
    assert_eq!(copy.info().cparams.blocksize, Some(10 * 20 * 4));
}
