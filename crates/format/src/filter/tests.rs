use super::*;
use proptest::prelude::*;

/// The output of the C library 3.3.2 for the bytes of `noise` in two blocks, the second one byte
/// shorter: for each pipeline, the number of accepted sizes below, and a hash of the output.
type Known = (&'static str, [u8; 6], [u8; 6], usize, u64);
const KNOWN: &[Known] = &[
    ("none", [0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0], 36, 0x3a69_c330_cdaa_86ff),
    ("shuffle", [0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 0, 0], 36, 0x46b7_09c9_2556_526f),
    ("shuffle of 5", [1, 0, 0, 0, 0, 0], [5, 0, 0, 0, 0, 0], 36, 0x98da_6cfc_269a_e7b5),
    ("bitshuffle", [0, 2, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0], 36, 0x799f_f47e_0659_370b),
    ("delta", [3, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0], 36, 0xd11e_c3b6_f5c1_f013),
    ("trunc_prec 10", [4, 0, 0, 0, 0, 0], [10, 0, 0, 0, 0, 0], 6, 0xdebf_3504_8395_67a3),
    ("trunc_prec -12", [4, 0, 0, 0, 0, 0], [244, 0, 0, 0, 0, 0], 6, 0x9db8_0576_7cac_eec2),
    ("bytedelta_buggy 3", [34, 0, 0, 0, 0, 0], [3, 0, 0, 0, 0, 0], 36, 0xe244_dce6_68da_9d5c),
    ("bytedelta 3", [35, 0, 0, 0, 0, 0], [3, 0, 0, 0, 0, 0], 36, 0xcd7e_b136_ff0c_879d),
    ("bytedelta 200", [35, 0, 0, 0, 0, 0], [200, 0, 0, 0, 0, 0], 36, 0x470d_8a42_c1d7_23b1),
    ("int_trunc 5", [36, 0, 0, 0, 0, 0], [5, 0, 0, 0, 0, 0], 12, 0x10a5_ea3c_1f30_a5a5),
    ("int_trunc -3", [36, 0, 0, 0, 0, 0], [253, 0, 0, 0, 0, 0], 12, 0x4572_729a_6b2b_1ba2),
    ("usual delta", [0, 0, 0, 0, 3, 1], [0, 0, 0, 0, 0, 0], 36, 0xee10_c6a4_c1c3_57cd),
    ("delta last", [36, 2, 1, 3, 0, 0], [4, 0, 7, 0, 0, 0], 12, 0x9b8c_538e_f1e6_5137),
    ("six", [3, 1, 35, 2, 34, 3], [0, 0, 9, 0, 31, 0], 36, 0x91c5_c8cc_ef98_894b),
];
const TYPESIZES: [usize; 12] = [1, 2, 3, 4, 7, 8, 12, 16, 17, 24, 100, 255];
/// Items of a block.
const ITEMS: [usize; 3] = [37, 40, 300];

/// The hashes above depend on these bytes, so they have a separate generator.
fn noise(len: usize) -> Vec<u8> {
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_103_515_245).wrapping_add(12_345);
        (state >> 24) as u8
    };
    (0..len).map(|_| next()).collect()
}

/// FNV-1a.
fn hash(state: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(state, |state, byte| (state ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

fn pipeline(filters: [u8; 6], metas: [u8; 6], typesize: usize) -> Pipeline {
    Pipeline::new(&filters, &metas, typesize, typesize, 5).unwrap()
}

/// The blocks of `data`, filtered.
fn forward(pipeline: &Pipeline, data: &[u8], blocksize: usize) -> Result<Vec<Vec<u8>>, Error> {
    let (mut block, mut scratch) = (Vec::new(), Vec::new());
    let filtered = |(index, src)| {
        let reference = (index > 0).then(|| &data[..blocksize]);
        let filtered = pipeline.forward(src, &mut block, &mut scratch, reference)?;
        Ok(filtered.to_vec())
    };
    data.chunks(blocksize).enumerate().map(filtered).collect()
}

/// The filtered blocks.
fn backward(pipeline: &Pipeline, blocks: &[Vec<u8>]) -> Vec<u8> {
    let (mut data, mut scratch) = (Vec::new(), Vec::new());
    for block in blocks {
        let reference = (!data.is_empty()).then(|| &data[..blocks[0].len()]);
        let mut block = block.clone();
        let mut out = if pipeline.moves() { vec![0xa5; block.len()] } else { block.clone() };
        pipeline.backward(&mut block, &mut scratch, &mut out, reference).unwrap();
        data.extend(out);
    }
    data
}

#[test]
fn filtered_blocks_are_those_of_the_c_library() {
    for (name, filters, metas, taken, expected) in KNOWN {
        let (mut count, mut state) = (0, 0xcbf2_9ce4_8422_2325);
        for typesize in TYPESIZES {
            for items in ITEMS {
                let pipeline = pipeline(*filters, *metas, typesize);
                let data = noise(2 * typesize * items - 1);
                let Ok(blocks) = forward(&pipeline, &data, typesize * items) else { continue };
                count += 1;
                state = blocks.iter().fold(state, |state, block| hash(state, block));
                if !filters.iter().any(|code| matches!(code, 4 | 36)) {
                    assert!(backward(&pipeline, &blocks) == data, "{name}, typesize {typesize}");
                }
            }
        }
        assert_eq!((count, state), (*taken, *expected), "{name}");
    }
}

#[test]
fn each_filter_does_what_it_says() {
    let one =
        |code, meta, typesize| pipeline([0, 0, code, 0, 0, 0], [0, 0, meta, 0, 0, 0], typesize);
    let first = |pipeline: Pipeline, data: &[u8]| forward(&pipeline, data, 100).unwrap().remove(0);

    assert_eq!(first(one(1, 0, 3), &[1, 2, 3, 4, 5, 6, 7]), [1, 4, 2, 5, 3, 6, 7]);
    assert_eq!(first(one(1, 2, 1), &[1, 2, 3, 4, 5]), [1, 3, 2, 4, 5]);
    // The bits of eight bytes and a ninth one, which is not changed.
    let bytes = [0x01, 0x03, 0, 0, 0, 0, 0, 0x80, 9];
    assert_eq!(first(one(2, 0, 1), &bytes), [0b11, 0b10, 0, 0, 0, 0, 0, 0x80, 9]);
    assert_eq!(first(one(3, 0, 2), &[1, 2, 3, 4, 3, 4, 9]), [1, 2, 2, 6, 0, 0, 9]);
    assert_eq!(first(one(3, 0, 3), &[1, 3, 2]), [1, 2, 1]);
    let half = 1.999_f32.to_le_bytes();
    assert_eq!(first(one(4, 1, 4), &half), 1.5_f32.to_le_bytes());
    assert_eq!(first(one(35, 2, 1), &[5, 7, 6, 200, 1, 0, 9]), [5, 2, 255, 200, 57, 255, 9]);
    let counted: Vec<u8> = (1..=18).collect();
    let mut ones = vec![1; 18];
    assert_eq!(first(one(35, 1, 1), &counted), ones);
    ones[16] = 17;
    assert_eq!(first(one(34, 1, 1), &counted), ones);
    assert_eq!(first(one(36, 12, 2), &[0xff, 0x1f, 0xff]), [0xf0, 0x1f, 0xff]);
    assert_eq!(first(one(36, 254, 1), &[0xff, 5]), [0xfc, 4]);
}

#[test]
fn delta_takes_the_first_block_before_its_filters() {
    // Shuffle comes first, but the reference is the unfiltered block.
    let pipeline = pipeline([1, 3, 0, 0, 0, 0], [0; 6], 2);
    let blocks = forward(&pipeline, &[1, 2, 3, 4, 5, 6, 7, 8], 4).unwrap();
    assert_eq!(blocks, [[1, 3, 2 ^ 1, 4 ^ 3], [5 ^ 1, 7 ^ 2, 6 ^ 3, 8 ^ 4]]);
    assert_eq!(backward(&pipeline, &blocks), [1, 2, 3, 4, 5, 6, 7, 8]);
}

#[test]
fn bitshuffle_of_blosc1_leaves_odd_lengths_alone() {
    let undone = |version, data: &[u8]| {
        let pipeline = Pipeline::new(&[0, 0, 0, 0, 0, 2], &[0; 6], 2, 2, version).unwrap();
        let mut out = vec![0; data.len()];
        pipeline.backward(&mut data.to_vec(), &mut Vec::new(), &mut out, None).unwrap();
        out
    };
    let nine: Vec<u8> = noise(19);
    assert_eq!(undone(2, &nine), nine);
    assert_ne!(undone(3, &nine), nine);
    assert_eq!(undone(2, &nine[..17]), undone(5, &nine[..17]));
    assert_eq!(undone(2, &nine[..17])[16], nine[16]);
}

#[test]
fn nothing_to_do_takes_no_memory() {
    for (filters, metas, typesize) in
        [([0; 6], [7; 6], 4), ([0, 0, 0, 0, 0, 1], [0; 6], 1), ([1, 0, 0, 0, 0, 0], [1; 6], 8)]
    {
        let pipeline = pipeline(filters, metas, typesize);
        let (mut block, mut scratch) = (Vec::new(), Vec::new());
        let data = noise(100);
        let filtered = pipeline.forward(&data, &mut block, &mut scratch, None).unwrap();
        assert!(std::ptr::eq(filtered, &*data));
        assert!(!pipeline.moves() && block.is_empty() && scratch.is_empty());
    }
}

#[test]
fn the_size_that_bytedelta_takes() {
    let data = noise(1000);
    let with = |filters: [u8; 6], metas: [u8; 6], schunk_typesize| {
        let pipeline = Pipeline::new(&filters, &metas, 1, schunk_typesize, 5).unwrap();
        forward(&pipeline, &data, 1000).unwrap()
    };
    assert_eq!(with([35, 0, 0, 0, 0, 0], [0; 6], 4), with([35, 0, 0, 0, 0, 0], [4; 6], 300));
    assert_ne!(with([35, 0, 0, 0, 0, 0], [0; 6], 300), with([35, 0, 0, 0, 0, 0], [0; 6], 1));
    // More streams than bytes: nothing changes.
    assert_eq!(with([35, 0, 0, 0, 0, 0], [0; 6], 1001)[0], data);
}

#[test]
fn filters_that_are_not_here_are_named() {
    for (code, name) in
        [(5, "filter 5"), (31, "filter 31"), (32, "filter 32 (ndcell)"), (33, "filter 33 (ndmean)")]
    {
        let error = Pipeline::new(&[0, 0, 0, code, 0, 0], &[0; 6], 4, 4, 5).unwrap_err();
        assert_eq!(error.to_string(), format!("not supported: {name}"));
    }
    assert!(Pipeline::new(&[255; 6], &[0; 6], 4, 4, 5).is_err());
}

#[test]
fn precisions_that_cannot_be() {
    let takes = |code, typesize| -> Vec<i8> {
        let works = |meta: &i8| {
            let pipeline = pipeline([code, 0, 0, 0, 0, 0], [*meta as u8; 6], typesize);
            forward(&pipeline, &noise(20), 20).is_ok()
        };
        (i8::MIN..=i8::MAX).filter(works).collect()
    };
    let range = |kept: i8, cleared: i8| -> Vec<i8> { (-cleared..=-1).chain(1..=kept).collect() };
    assert_eq!(takes(4, 4), range(23, 22));
    assert_eq!(takes(4, 8), range(52, 51));
    assert_eq!(takes(4, 2), []);
    assert_eq!(takes(36, 1), range(8, 7));
    assert_eq!(takes(36, 2), range(16, 15));
    assert_eq!(takes(36, 4), range(32, 31));
    assert_eq!(takes(36, 8), range(64, 63));
    assert_eq!(takes(36, 16), []);
}

#[test]
fn a_block_shorter_than_its_output_is_refused() {
    let pipeline = pipeline([1, 0, 0, 0, 0, 0], [0; 6], 4);
    let result = pipeline.backward(&mut [0; 7], &mut Vec::new(), &mut [0; 8], None);
    assert!(matches!(result, Err(Error::Argument(_))));
}

/// Lossless filters, with any parameter.
fn lossless() -> impl Strategy<Value = ([u8; 6], [u8; 6])> {
    let code = prop_oneof![Just(0), Just(1), Just(2), Just(3), Just(34), Just(35)];
    (proptest::array::uniform6(code), any::<[u8; 6]>(), any::<[bool; 6]>()).prop_map(
        |(filters, mut metas, zero)| {
            metas.iter_mut().zip(zero).filter(|(_, zero)| *zero).for_each(|(meta, _)| *meta = 0);
            (filters, metas)
        },
    )
}

proptest! {
    #[test]
    fn what_is_applied_can_be_undone(
        (filters, metas) in lossless(),
        typesize in prop_oneof![1_usize..=17, 1_usize..=300],
        blocksize in prop_oneof![1_usize..100, 1_usize..3000],
        data in proptest::collection::vec(any::<u8>(), 1..7000),
    ) {
        let chunk_typesize = if typesize > 255 { 1 } else { typesize };
        let pipeline = Pipeline::new(&filters, &metas, chunk_typesize, typesize, 5).unwrap();
        let blocks = forward(&pipeline, &data, blocksize).unwrap();
        prop_assert!(backward(&pipeline, &blocks) == data);
    }

    #[test]
    fn shuffle_puts_every_byte_where_it_belongs(
        width in prop_oneof![1_usize..=33, 1_usize..=255],
        data in proptest::collection::vec(any::<u8>(), 0..5000),
    ) {
        let pipeline = pipeline([1, 0, 0, 0, 0, 0], [width as u8; 6], 1);
        let shuffled = forward(&pipeline, &data, 5000).unwrap().concat();
        let items = data.len() / width;
        for (index, byte) in data.iter().enumerate() {
            let whole = index < items * width;
            let place = if whole { index % width * items + index / width } else { index };
            prop_assert_eq!(shuffled[place], *byte);
        }
    }

    #[test]
    fn bitshuffle_puts_every_bit_where_it_belongs(
        typesize in prop_oneof![1_usize..=17, 1_usize..=255],
        data in proptest::collection::vec(any::<u8>(), 0..5000),
    ) {
        let pipeline = pipeline([2, 0, 0, 0, 0, 0], [0; 6], typesize);
        let shuffled = forward(&pipeline, &data, 5000).unwrap().concat();
        let eights = data.len() / typesize / 8;
        for (index, byte) in data.iter().enumerate() {
            let (item, at) = (index / typesize, index % typesize);
            if item >= 8 * eights {
                prop_assert_eq!(shuffled[index], *byte);
                continue;
            }
            for bit in 0..8 {
                let row = shuffled[(8 * at + bit) * eights + item / 8];
                prop_assert_eq!(row >> (item % 8) & 1, byte >> bit & 1);
            }
        }
    }
}
