//! Tests of cutting and assembling against a model that computes the position of each item.

use proptest::prelude::*;

use super::*;

fn geometry(shape: &[i64], chunks: &[i32], blocks: &[i32], typesize: u32) -> Geometry {
    let meta = meta(shape, chunks, blocks);
    Geometry::new(&meta, typesize, &Limits::default()).unwrap()
}

fn meta(shape: &[i64], chunks: &[i32], blocks: &[i32]) -> Meta {
    let (shape, chunks, blocks) = (shape.to_vec(), chunks.to_vec(), blocks.to_vec());
    Meta { shape, chunks, blocks, dtype: None, dtype_format: 0 }
}

fn all(geometry: &Geometry) -> Vec<Range<u64>> {
    geometry.shape().iter().map(|&size| 0..size).collect()
}

/// Bytes that encode their positions.
fn numbered(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at % 251) as u8 + 1).collect()
}

/// The index of the chunk of an item, and its position in the chunk, in items.
fn place(geometry: &Geometry, index: &[u64]) -> (u64, u64) {
    let (mut chunk, mut block, mut nblocks, mut item, mut nitems) = (0, 0, 1, 0, 1);
    for (axis, &at) in index.iter().enumerate() {
        let [size, along_chunk, along_block] =
            [&geometry.shape, &geometry.chunks, &geometry.blocks].map(|shape| shape[axis]);
        chunk = chunk * size.div_ceil(along_chunk) + at / along_chunk;
        let blocks = along_chunk.div_ceil(along_block);
        block = block * blocks + at % along_chunk / along_block;
        nblocks *= blocks;
        item = item * along_block + at % along_chunk % along_block;
        nitems *= along_block;
    }
    assert!(block < nblocks);
    (chunk, block * nitems + item)
}

/// All chunks of an array, computed by the model.
fn model(geometry: &Geometry, array: &[u8]) -> Vec<Vec<u8>> {
    let mut chunks = vec![vec![0; geometry.chunk_len()]; geometry.nchunks() as usize];
    let size = geometry.typesize();
    for (number, item) in array.chunks_exact(size).enumerate() {
        let index = unravel(number as u64, geometry.shape());
        let (chunk, at) = place(geometry, &index[..geometry.shape().len()]);
        chunks[chunk as usize][at as usize * size..][..size].copy_from_slice(item);
    }
    chunks
}

fn cut_and_assemble(geometry: &Geometry, box_of: &[Range<u64>]) {
    let array = numbered(geometry.len() as usize * geometry.typesize());
    let expected = model(geometry, &array);
    assert_eq!(expected.len() as u64, geometry.nchunks());
    let mut whole = vec![0; array.len()];
    let mut seen = 0;
    for (number, expected) in expected.iter().enumerate() {
        let number = number as u64;
        let mut chunk = vec![0xee; geometry.chunk_len()];
        geometry.cut(number, &array, &mut chunk).unwrap();
        assert!(&chunk == expected, "chunk {number} of {geometry:?}");
        geometry.assemble(number, &chunk, &all(geometry), &mut whole).unwrap();
        for block in 0..geometry.nblocks() {
            let items = geometry.block_items(number, block).unwrap();
            seen += items.iter().map(|range| range.end - range.start).product::<u64>();
        }
    }
    assert!(whole == array, "{geometry:?}");
    assert_eq!(seen, geometry.len(), "blocks of {geometry:?}");

    // A box, assembled from the chunks that contain parts of it.
    let sides: Vec<u64> = box_of.iter().map(|range| range.end - range.start).collect();
    let items = sides.iter().product::<u64>();
    let mut found = vec![0; items as usize * geometry.typesize()];
    for number in geometry.chunks_of(box_of).unwrap() {
        let before = found.clone();
        geometry.assemble(number, &expected[number as usize], box_of, &mut found).unwrap();
        assert!(before != found, "chunk {number} has none of {box_of:?} of {geometry:?}");
    }
    let mut wanted = Vec::new();
    for number in 0..items {
        let index = unravel(number, &sides);
        let at = box_of
            .iter()
            .zip(geometry.shape())
            .enumerate()
            .fold(0, |all, (axis, (range, size))| all * size + range.start + index[axis]);
        wanted.extend(&array[at as usize * geometry.typesize()..][..geometry.typesize()]);
    }
    assert!(found == wanted, "{box_of:?} of {geometry:?}");
}

#[test]
fn edges() {
    for (shape, chunks, blocks, [nchunks, nblocks]) in [
        (&[][..], &[][..], &[][..], [1, 1]),
        (&[1], &[1], &[1], [1, 1]),
        (&[0], &[0], &[0], [0, 0]),
        (&[5, 0], &[2, 1], &[1, 1], [0, 2]),
        (&[3, 0, 2], &[3, 0, 2], &[3, 0, 2], [0, 0]),
        (&[7, 9], &[4, 4], &[3, 2], [6, 4]),
        (&[3], &[10], &[4], [1, 3]),
        (&[3], &[2], &[4], [2, 1]),
        (&[2; 16], &[2; 16], &[1; 16], [1, 1 << 16]),
        (&[1; 16], &[1; 16], &[1; 16], [1, 1]),
    ] {
        for typesize in [1, 3, 300] {
            // Too slow under Miri; 65,536 blocks of large items are too slow in general.
            if shape.len() == 16 && (typesize > 3 || cfg!(miri)) {
                continue;
            }
            let geometry = geometry(shape, chunks, blocks, typesize);
            assert_eq!([geometry.nchunks(), geometry.nblocks()], [nchunks, nblocks], "{shape:?}");
            cut_and_assemble(&geometry, &all(&geometry));
        }
    }
}

#[test]
fn what_is_asked_for_has_to_be_there() {
    let geometry = geometry(&[7, 9], &[4, 4], &[3, 2], 2);
    assert_eq!((geometry.chunk_len(), geometry.block_len()), (6 * 4 * 2, 12));
    assert_eq!(geometry.chunk_items(5).unwrap(), [4..7, 8..9]);
    assert_eq!(geometry.block_items(5, 3).unwrap(), [7..7, 9..9]);
    assert_eq!(geometry.block_items(0, 2).unwrap(), [3..4, 0..2]);
    assert!(geometry.chunk_items(6).is_err());
    assert!(geometry.block_items(0, 4).is_err());
    let (mut array, mut chunk) = (vec![0; 126], vec![0; 48]);
    assert!(geometry.cut(6, &array, &mut chunk).is_err());
    assert!(geometry.cut(0, &array[1..], &mut chunk).is_err());
    assert!(geometry.cut(0, &array, &mut chunk[1..]).is_err());
    for bounds in [&[(0, 7)][..], &[(0, 8), (0, 9)], &[(0, 7), (5, 4)], &[(0, 1); 3]] {
        let ranges: Vec<_> = bounds.iter().map(|&(start, end)| start..end).collect();
        assert!(geometry.assemble(0, &chunk, &ranges, &mut array).is_err(), "{ranges:?}");
        assert!(geometry.chunks_of(&ranges).is_err(), "{ranges:?}");
    }
    assert_eq!(geometry.chunks_of(&[3..5, 8..9]).unwrap().collect::<Vec<_>>(), [2, 5]);
    assert_eq!(geometry.chunks_of(&[3..3, 0..9]).unwrap().count(), 0);
}

#[test]
fn what_does_not_fit_is_refused() {
    let limits = Limits { items: 1 << 48, ..Limits::default() };
    let error = |shape: &[i64], chunks: &[i32], blocks: &[i32]| {
        let meta = meta(shape, chunks, blocks);
        match Geometry::new(&meta, 8, &limits).unwrap_err() {
            Error::Format(error) => error.offset,
            Error::Limit { max, .. } => max,
            other => panic!("{other}"),
        }
    };
    let max = i32::MAX;
    assert_eq!(error(&[i64::MAX, 2], &[1, 1], &[1, 1]), 3, "items");
    assert_eq!(error(&[i64::MAX], &[2], &[1]), 3, "items with whole chunks");
    assert_eq!(error(&[1 << 62, 1 << 62, 0], &[1, 1, 0], &[1, 1, 0]), 3);
    assert_eq!(error(&[1], &[max], &[1]), 4 + 9, "chunk");
    assert_eq!(error(&[1; 16], &[max; 16], &[1; 16]), 3, "items with whole chunks");
    assert_eq!(error(&[1; 3], &[1; 3], &[max; 3]), 5 + 14 * 3, "block");
    assert_eq!(error(&[-1], &[1], &[1]), 5);
    assert_eq!(error(&[4], &[0], &[0]), 15);
    assert_eq!(error(&[1 << 50], &[1 << 20], &[1]), limits.items);
    assert_eq!(error(&[1 << 30], &[1], &[1]), limits.chunks);
    let limits = Limits { dimensions: 1, ..limits };
    assert!(Geometry::new(&meta(&[1, 1], &[1, 1], &[1, 1]), 8, &limits).is_err());
}

/// A geometry and a box in it.
fn cases() -> impl Strategy<Value = (Geometry, Vec<Range<u64>>)> {
    let axis = |most: i64| {
        (0..=most, 1..=most as i32 + 2, 1..=most as i32 + 2, 0..=most as u64, 0..=most as u64)
    };
    let axes = prop_oneof![
        prop::collection::vec(axis(40), 0..=2),
        prop::collection::vec(axis(6), 3..=4),
        prop::collection::vec(axis(2), 5..=7),
    ];
    (axes, prop_oneof![Just(1u32), Just(2), Just(4), Just(8), 1u32..=300]).prop_map(
        |(axes, typesize)| {
            let shape: Vec<i64> = axes.iter().map(|axis| axis.0).collect();
            let chunks: Vec<i32> = axes.iter().map(|axis| axis.1).collect();
            let blocks: Vec<i32> = axes.iter().map(|axis| axis.2).collect();
            let ranges = axes.iter().map(|axis| {
                let (size, one, other) = (axis.0 as u64, axis.3, axis.4);
                one.min(other).min(size)..one.max(other).min(size)
            });
            (geometry(&shape, &chunks, &blocks, typesize), ranges.collect())
        },
    )
}

proptest! {
    #[test]
    fn cutting_and_assembling_agree_with_the_model((geometry, ranges) in cases()) {
        cut_and_assemble(&geometry, &ranges);
    }

    #[test]
    fn no_shapes_make_it_panic(
        sizes in prop::collection::vec((any::<i64>(), any::<i32>(), any::<i32>()), 0..=17),
        typesize in any::<u32>(),
    ) {
        let meta = meta(
            &sizes.iter().map(|each| each.0).collect::<Vec<_>>(),
            &sizes.iter().map(|each| each.1).collect::<Vec<_>>(),
            &sizes.iter().map(|each| each.2).collect::<Vec<_>>(),
        );
        let _ = Geometry::new(&meta, typesize, &Limits::default());
    }
}
