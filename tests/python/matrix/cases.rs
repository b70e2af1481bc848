//! The cases: every dtype with every codec and filter, every way of creation, and random ones.

use std::collections::BTreeSet;
use std::fmt::Debug;

use blosc2::{CParams, Codec, Filter, SplitMode};

use super::case::{Case, Made, PLACES, Place, Shape};
use super::metadata::layers;
use crate::common::{KINDS, Kind, Rng, codecs, data};

/// The number of random cases of each kind.
const RANDOM: usize = 500;

/// The dtypes, as they are stored, with the bytes of an item.
pub(crate) const DTYPES: [(&str, usize); 45] = [
    ("|b1", 1),
    ("|i1", 1),
    ("|u1", 1),
    ("<i2", 2),
    (">i2", 2),
    ("<u2", 2),
    ("<i4", 4),
    (">i4", 4),
    ("<u4", 4),
    ("<i8", 8),
    ("<u8", 8),
    (">u8", 8),
    ("<f2", 2),
    (">f2", 2),
    ("<f4", 4),
    (">f4", 4),
    ("<f8", 8),
    (">f8", 8),
    ("<f16", 16),
    ("<c8", 8),
    (">c8", 8),
    ("<c16", 16),
    ("<c32", 32),
    ("|S1", 1),
    ("|S10", 10),
    ("|S300", 300),
    ("<U1", 4),
    ("<U10", 40),
    (">U3", 12),
    ("<U70", 280),
    ("<M8[ns]", 8),
    (">M8[us]", 8),
    ("<M8[D]", 8),
    ("<M8[25s]", 8),
    ("<M8", 8),
    ("<m8[ms]", 8),
    ("<m8", 8),
    ("|V1", 1),
    ("|V5", 5),
    ("[('a', '<i4'), ('b', '<f8')]", 12),
    ("[('a', '>i4'), ('c', 'S3'), ('d', '<U2')]", 15),
    ("[('p', [('x', '<f4'), ('y', '<f4', (3,))]), ('ok', '?')]", 17),
    ("[(('Title A', 'a'), '<i4'), ('größe', 'u1')]", 5),
    ("[('when', '<M8[ns]'), ('z', '<c16'), ('raw', 'V7')]", 31),
    ("[('name', 'S290'), ('n', '<i2')]", 292),
];

/// Filters for items of a dtype, at most two: of more, Python stores something else.
fn pipelines(dtype: &str, typesize: usize) -> Vec<Vec<Filter>> {
    let mut all = vec![
        vec![],
        vec![Filter::Shuffle],
        vec![Filter::ShuffleBytes(3)],
        vec![Filter::Bitshuffle],
        vec![Filter::Delta],
        vec![Filter::Delta, Filter::Shuffle],
        vec![Filter::Delta, Filter::Bitshuffle],
    ];
    // Of single bytes, Python replaces it.
    if let Ok(bytes @ 2..) = u8::try_from(typesize) {
        all.push(vec![Filter::ByteDelta(bytes)]);
        all.push(vec![Filter::Shuffle, Filter::ByteDelta(bytes)]);
    }
    match dtype.get(1..).unwrap_or_default() {
        "f4" | "f8" => all.push(vec![Filter::TruncPrec(10), Filter::Shuffle]),
        // Python does not open a file that says how many bits are cleared, which is a negative number.
        "i1" | "u1" | "i2" | "u2" | "i4" | "u4" | "i8" | "u8" => {
            all.push(vec![Filter::IntTrunc(5), Filter::Bitshuffle]);
        }
        _ => {}
    }
    all
}

const SPLITS: [SplitMode; 4] =
    [SplitMode::Always, SplitMode::Never, SplitMode::Auto, SplitMode::ForwardCompat];

/// Random parameters without dictionaries: Python cannot read small chunks with a dictionary, or parts of larger ones.
fn params(rng: &mut Rng, codec: Codec, filters: &[Filter]) -> CParams {
    CParams::new()
        .codec(codec)
        .filters(filters)
        .level(rng.below(10) as u8)
        .split(*rng.pick(&SPLITS))
}

/// Bytes that are items of this dtype.
pub(crate) fn items(dtype: &str, typesize: usize, count: usize, rng: &mut Rng) -> Vec<u8> {
    let mut bytes = data(*rng.pick(&KINDS), count * typesize, rng.next());
    match dtype.as_bytes() {
        [b'|', b'b', ..] => bytes.iter_mut().for_each(|byte| *byte &= 1),
        [order, b'U', ..] => {
            // Characters that there are.
            for character in bytes.chunks_exact_mut(4) {
                let code = 32 + u32::from(character[0]) * 40;
                character.copy_from_slice(&match order {
                    b'<' => code.to_le_bytes(),
                    _ => code.to_be_bytes(),
                });
            }
        }
        _ => {}
    }
    bytes
}

/// A random shape of at most `most` items. Some axes have no items or one item.
pub(crate) fn random_shape(rng: &mut Rng, most: u64) -> Vec<u64> {
    let ndim = if rng.below(40) == 0 { 16 } else { *rng.pick(&[0, 1, 1, 2, 2, 3, 3, 4, 5]) };
    let mut room = most.max(1);
    let mut shape: Vec<u64> = (0..ndim)
        .map(|_| {
            let size = match rng.below(16) {
                0 => 0,
                1..4 => 1,
                _ if ndim == 16 => 1 + rng.below(2),
                4..7 => 1 + rng.below(4),
                7..12 => 1 + rng.below(30),
                _ => 1 + rng.below(room),
            };
            let size = size.min(room);
            room /= size.max(1);
            size
        })
        .collect();
    // The large ones come first above.
    for at in (1..shape.len()).rev() {
        shape.swap(at, rng.below(at as u64 + 1) as usize);
    }
    shape
}

/// A random part of each size, so that at most `most` parts make up the whole.
fn parts(rng: &mut Rng, sizes: &[u64], over: u64, most: u64) -> Vec<u64> {
    let mut count = 1;
    sizes
        .iter()
        .map(|&size| {
            let part = 1 + rng.below((size + over).max(1));
            if size.div_ceil(part) * count > most {
                return size;
            }
            count *= size.div_ceil(part).max(1);
            part
        })
        .collect()
}

/// Chunk and block shapes that need not divide the shape, or some of them, or none.
fn random_cut(rng: &mut Rng, shape: &[u64]) -> (Option<Vec<u64>>, Option<Vec<u64>>) {
    if rng.below(4) == 0 {
        // The automatic chunks of an array without items differ: those of Python are its shape, ours can grow.
        let is_empty = shape.contains(&0);
        return if is_empty { (Some(shape.to_vec()), Some(shape.to_vec())) } else { (None, None) };
    }
    // Chunks may reach over the end; in 16 dimensions they would be large.
    let over = if shape.len() > 5 { 0 } else { 2 };
    let chunks = parts(rng, shape, over, 12);
    if rng.below(4) == 0 {
        return (Some(chunks), None);
    }
    let blocks = parts(rng, &chunks, 0, 100);
    (Some(chunks), Some(blocks))
}

/// An array of random shapes with these parameters.
fn array(
    rng: &mut Rng,
    (dtype, typesize): (&'static str, usize),
    params: Option<CParams>,
    made: Made,
    most: u64,
) -> Case {
    let mut shape = random_shape(rng, most / typesize as u64);
    while made == Made::Full && shape.contains(&0) {
        // Where there are no items, none is repeated.
        shape = random_shape(rng, most / typesize as u64);
    }
    let (chunks, blocks) = random_cut(rng, &shape);
    let count = shape.iter().product::<u64>() as usize;
    let bytes = match made {
        Made::Items => items(dtype, typesize, count, rng),
        Made::Zeros | Made::Uninit | Made::Empty => vec![0; count * typesize],
        Made::Full => items(dtype, typesize, 1, rng).repeat(count),
        Made::Nans => nans(typesize, count),
    };
    let shape = Shape::Array { dtype, shape, chunks, blocks };
    let place = *rng.pick(&PLACES);
    plain(typesize, shape, params, place, made, bytes)
}

/// A case without a name and metalayers.
fn plain(
    typesize: usize,
    shape: Shape,
    params: Option<CParams>,
    place: Place,
    made: Made,
    bytes: Vec<u8>,
) -> Case {
    let (name, meta, vlmeta) = Default::default();
    Case { name, typesize, shape, params, place, made, bytes, meta, vlmeta }
}

fn nans(typesize: usize, count: usize) -> Vec<u8> {
    match typesize {
        4 => f32::NAN.to_le_bytes().repeat(count),
        _ => f64::NAN.to_le_bytes().repeat(count),
    }
}

/// A super-chunk of a few chunks. The last one may be shorter.
fn schunk(rng: &mut Rng, typesize: usize, params: Option<CParams>, made: Made) -> Case {
    let size = typesize * (1 + rng.below(1 + 4000 / typesize as u64) as usize);
    let last =
        if rng.below(2) == 0 { typesize * rng.below((size / typesize) as u64) as usize } else { 0 };
    let len = size * rng.below(5) as usize + last;
    let bytes = match made {
        Made::Items => data(*rng.pick(&KINDS), len, rng.next()),
        Made::Nans => nans(typesize, len / typesize),
        _ => vec![0; len],
    };
    let (shape, params, place) = (Shape::Chunks { size }, params, *rng.pick(&PLACES));
    plain(typesize, shape, params, place, made, bytes)
}

/// All cases, always the same ones.
pub(crate) fn all() -> Vec<Case> {
    let mut rng = Rng(9);
    let rng = &mut rng;
    let mut cases = Vec::new();
    for (row, dtype) in DTYPES.into_iter().enumerate() {
        for (column, filters) in pipelines(dtype.0, dtype.1).iter().enumerate() {
            for (step, codec) in codecs().into_iter().enumerate() {
                // Each level meets each codec and each filter.
                let level = (5 * row + column + step) % 10;
                let params = params(rng, codec, filters).level(level as u8);
                cases.push(array(rng, dtype, Some(params), Made::Items, 2000));
            }
        }
        for made in [Made::Zeros, Made::Full, Made::Nans, Made::Uninit, Made::Empty] {
            if made == Made::Nans && !["<f4", "<f8"].contains(&dtype.0) {
                continue;
            }
            for place in PLACES {
                let mut case = array(rng, dtype, None, made, 5000);
                case.place = place;
                cases.push(case);
            }
        }
    }
    for codec in codecs() {
        for typesize in [1, 2, 4, 7, 8, 300] {
            for filters in pipelines("", typesize) {
                let params = params(rng, codec, &filters);
                let mut case = schunk(rng, typesize, Some(params), Made::Items);
                case.meta = layers(rng, 2, false);
                case.vlmeta = layers(rng, 2, true);
                cases.push(case);
            }
        }
        for made in [Made::Zeros, Made::Nans, Made::Uninit] {
            let (typesize, params) = (*rng.pick(&[4, 8]), params(rng, codec, &[Filter::Shuffle]));
            cases.push(schunk(rng, typesize, Some(params), made));
        }
    }
    for typesize in [1, 2, 4, 8, 16, 255, 300] {
        cases.push(schunk(rng, typesize, None, Made::Items));
    }
    for number in 0..RANDOM {
        let dtype = *rng.pick(&DTYPES);
        let codec = *rng.pick(&codecs());
        let filters = rng.pick(&pipelines(dtype.0, dtype.1)).clone();
        let params = (rng.below(6) > 0).then(|| params(rng, codec, &filters));
        let most = if number % 10 == 0 { 300_000 } else { 20_000 };
        let mut case = array(rng, dtype, params, Made::Items, most);
        case.meta = layers(rng, 15, false);
        case.vlmeta = layers(rng, 16, true);
        cases.push(case);
    }
    for (number, case) in cases.iter_mut().enumerate() {
        // Lossy filters lose nothing where the codec gains nothing, as one zlib may do and another not.
        let lossy = |filter: &Filter| matches!(filter, Filter::TruncPrec(_) | Filter::IntTrunc(_));
        if case.params.iter().any(|params| params.filters.iter().any(lossy)) {
            case.bytes = data(Kind::Runs, case.bytes.len(), number as u64);
        }
        let ending = if matches!(case.shape, Shape::Array { .. }) { "b2nd" } else { "b2frame" };
        case.name = format!("{number}.{ending}");
    }
    cases
}

/// Asserts that the cases have each combination of the values of two properties.
pub(crate) fn check_pairs(cases: &[Case]) {
    let arrays = cases.iter().filter_map(|case| match (&case.shape, &case.params) {
        (Shape::Array { dtype, shape, .. }, Some(params)) => Some((case, *dtype, shape, params)),
        _ => None,
    });
    let arrays: Vec<_> = arrays.collect();
    fn all_meet<A: Ord, B: Ord>(what: &str, pairs: impl Iterator<Item = (A, B)> + Clone) {
        let one: BTreeSet<A> = pairs.clone().map(|(one, _)| one).collect();
        let other: BTreeSet<B> = pairs.clone().map(|(_, other)| other).collect();
        assert!(one.len() > 1 && other.len() > 1, "{what}");
        assert_eq!(pairs.collect::<BTreeSet<_>>().len(), one.len() * other.len(), "{what}");
    }
    let codec = |params: &CParams| params.codec.code();
    let text = |what: &dyn Debug| format!("{what:?}");
    let kinds = |filters: &[Filter]| filters.iter().map(|each| each.code()).collect::<Vec<_>>();
    let each = arrays.iter().copied();
    all_meet("codecs, levels", each.clone().map(|(.., p)| (codec(p), p.level)));
    all_meet("codecs, splits", each.clone().map(|(.., p)| (codec(p), text(&p.split))));
    all_meet("codecs, filters", each.clone().map(|(.., p)| (codec(p), kinds(&p.filters))));
    all_meet("levels, filters", each.clone().map(|(.., p)| (p.level, kinds(&p.filters))));
    all_meet("codecs, dtypes", each.clone().map(|(_, dtype, _, p)| (codec(p), dtype)));
    all_meet("places, dtypes", each.clone().map(|(case, dtype, ..)| (case.place, dtype)));
    all_meet("places, filters", each.clone().map(|(case, .., p)| (case.place, kinds(&p.filters))));
    all_meet("dimensions, codecs", each.clone().map(|(.., shape, p)| (shape.len(), codec(p))));
    let made = cases.iter().filter(|case| !matches!(case.made, Made::Items | Made::Nans));
    let arrays = made.filter_map(|case| match case.shape {
        Shape::Array { dtype, .. } => Some(((case.made, case.place), dtype)),
        Shape::Chunks { .. } => None,
    });
    all_meet("functions and places, dtypes", arrays);
    let places: BTreeSet<Place> =
        cases.iter().filter(|case| case.made == Made::Nans).map(|case| case.place).collect();
    assert_eq!(places.len(), PLACES.len());
}
