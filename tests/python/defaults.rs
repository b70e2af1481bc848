//! Without parameters, arrays are created with Python's defaults.

use std::collections::BTreeMap;

use blosc2::array::CacheSizes;
use blosc2::{CParams, Filter, NDArray, NDArrayBuilder, RawItems, Special};
use serde_json::{Value, json};

use crate::common::{Rng, run_python};

/// The dtypes, as they are stored, with the bytes of an item.
const DTYPES: [(&str, usize); 45] = [
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

/// Chunks and blocks of many shapes with other caches than there are, and parameters of new arrays.
const DEFAULTS: &str = r#"
import ast, json, platform
import blosc2
import numpy as np

with open("given.json") as given:
    given = json.load(given)
real = [blosc2.cpu_info[f"{level}_cache_size"] for level in ("l1_data", "l2", "l3")]
platform.machine = lambda: given["machine"]
platform.system = lambda: "Linux"
blosc2.set_nthreads(1)
cut = []
for (l1, l2, l3), shape, dtype, chunks in given["cases"]:
    caches = dict(l1_data_cache_size=l1, l2_cache_size=l2, l3_cache_size=l3)
    blosc2.cpu_info.update(caches)
    dtype = np.dtype(ast.literal_eval(dtype) if dtype[0] in "[({" else dtype)
    cut.append(blosc2.compute_chunks_blocks(shape, chunks, None, dtype))
blosc2.cpu_info.update(l1_data_cache_size=real[0], l2_cache_size=real[1], l3_cache_size=real[2])

def params_of(array):
    found = array.schunk.cparams
    filters = [(int(f.value), meta) for f, meta in zip(found.filters, found.filters_meta) if f.value]
    return [int(found.codec.value), found.codec_meta, found.clevel, int(found.splitmode.value), found.use_dict,
            found.typesize, filters]

def of_text(array):
    return [params_of(each) for each in [
        array, blosc2.concat([array, array]), blosc2.stack([array, array]), array.copy(cparams={})]]

params = {dtype: params_of(blosc2.zeros([9], dtype=ast.literal_eval(dtype) if dtype[0] == "[" else dtype))
          for dtype in given["dtypes"]}
text = of_text(blosc2.asarray(np.array(["a", "bc"])))
file = blosc2.asarray(np.arange(3 << 20, dtype="<i8").reshape(1024, 3072), urlpath="large.b2nd",
                      dparams=dict(nthreads=1))
print(json.dumps(dict(cut=cut, params=params, text=text, real=real), default=int))
"#;

/// Sizes that each of Python's rules takes another way with.
const CACHES: [CacheSizes; 7] = [
    CacheSizes { l1: 32 << 10, l2: 1 << 20, l3: 32 << 20 },
    CacheSizes { l1: 32 << 10, l2: 512 << 10, l3: 32 << 20 },
    CacheSizes { l1: 48 << 10, l2: 2 << 20, l3: 36 << 20 },
    CacheSizes { l1: 32 << 10, l2: 1 << 20, l3: 512 << 10 },
    CacheSizes { l1: 64 << 10, l2: 256 << 10, l3: 1 << 20 },
    CacheSizes { l1: 16 << 10, l2: 64 << 10, l3: 3 << 20 },
    CacheSizes { l1: 128 << 10, l2: 32 << 20, l3: 384 << 20 },
];

/// A random shape of at most `most` items. Some axes have no items or one item.
fn random_shape(rng: &mut Rng, most: u64) -> Vec<u64> {
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

fn for_python(params: &CParams, typesize: usize) -> Value {
    let described = crate::turns::for_python(params, typesize);
    let filters = described["filters"].as_array().unwrap().iter();
    let filters = filters.zip(described["filters_meta"].as_array().unwrap());
    let filters: Vec<Value> = filters.map(|(code, meta)| json!([code, meta])).collect();
    json!([
        described["codec"],
        params.codec_meta,
        described["clevel"],
        described["splitmode"],
        described["use_dict"],
        typesize,
        filters
    ])
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn defaults_are_those_of_python() {
    let mut rng = Rng(3);
    let mut cases = Vec::new();
    for number in 0..900 {
        let ((dtype, typesize), caches) = (*rng.pick(&DTYPES), *rng.pick(&CACHES));
        // Python divides all of a side when it looks for a divisor.
        let items = if number % 3 == 0 { 1 << 31 } else { 1 << 20 };
        let shape = random_shape(&mut rng, items / typesize as u64);
        let chunks = rng.below(3) == 0 && !shape.contains(&0);
        let chunks: Option<Vec<u64>> =
            chunks.then(|| shape.iter().map(|&size| 1 + rng.below(size.min(1 << 20))).collect());
        let len = |sides: &[u64]| sides.iter().product::<u64>() * typesize as u64;
        let counts = chunks.iter().flatten().zip(&shape).map(|(part, size)| size.div_ceil(*part));
        if chunks.as_deref().is_some_and(|chunks| len(chunks) > 1 << 30)
            || counts.product::<u64>() > 10_000
        {
            continue;
        }
        cases.push((caches, shape, dtype, typesize, chunks));
    }
    assert!(cases.len() > 600, "{}", cases.len());

    let folder = tempfile::tempdir().unwrap();
    let machine = if cfg!(target_arch = "x86_64") { "x86_64" } else { "aarch64" };
    let described = cases.iter().map(|(caches, shape, dtype, _, chunks)| {
        json!([[caches.l1, caches.l2, caches.l3], shape, dtype, chunks])
    });
    let described = json!({
        "machine": machine,
        "cases": described.collect::<Vec<_>>(),
        "dtypes": DTYPES.iter().map(|(dtype, _)| *dtype).collect::<Vec<_>>(),
    });
    std::fs::write(folder.path().join("given.json"), described.to_string()).unwrap();
    let found: Value = serde_json::from_str(&run_python(DEFAULTS, folder.path(), &[])).unwrap();

    let cut = found["cut"].as_array().unwrap();
    assert_eq!(cut.len(), cases.len());
    for ((caches, shape, dtype, typesize, chunks), cut) in cases.iter().zip(cut) {
        let mut builder = NDArray::builder().cache_sizes(*caches);
        if let Some(chunks) = chunks {
            builder = builder.chunk_shape(chunks);
        }
        let array = builder.dtype(dtype, *typesize).special(Special::Zeros, shape).unwrap();
        let what = format!("{dtype} {shape:?} {chunks:?} {caches:?}");
        if shape.contains(&0) && chunks.is_none() {
            // Python's have no items; ours have, so that the array can grow.
            assert_eq!(json!([shape, shape]), *cut, "{what}");
            assert!(
                !array.chunk_shape().contains(&0) && !array.block_shape().contains(&0),
                "{what}"
            );
        } else {
            assert_eq!(json!([array.chunk_shape(), array.block_shape()]), *cut, "{what}");
        }
    }

    let params: BTreeMap<String, Value> = serde_json::from_value(found["params"].clone()).unwrap();
    assert_eq!(params.len(), DTYPES.len());
    for (dtype, typesize) in DTYPES {
        let array = NDArray::builder().dtype(dtype, typesize).special(Special::Zeros, [9]).unwrap();
        assert_eq!(for_python(&array.info().cparams, typesize), params[dtype], "{dtype}");
    }

    let builder = NDArray::builder;
    let bytes: Vec<u8> = "a\0bc".chars().flat_map(|c| u32::from(c).to_le_bytes()).collect();
    let text = builder().dtype("<U2", 8).from_slice(RawItems(&bytes), [2]).unwrap();
    let arrays = [
        builder().concatenate([&text, &text], 0).unwrap(),
        builder().concatenate([(); 2].map(|()| text.view().expand_dims(0).unwrap()), 0).unwrap(),
        builder().cparams(CParams::new()).copy(&text).unwrap(),
    ];
    let all = [&text].into_iter().chain(&arrays);
    let all: Vec<Value> = all.map(|array| for_python(&array.info().cparams, 8)).collect();
    assert_eq!(Value::from(all), found["text"]);

    // Python writes large arrays chunk by chunk.
    let size = |level: usize| found["real"][level].as_u64().unwrap();
    let caches = CacheSizes { l1: size(0), l2: size(1), l3: size(2) };
    let items: Vec<i64> = (0..3 << 20).collect();
    let builder = builder().cache_sizes(caches).target(Vec::new());
    let array = builder.from_slice(&items, [1024, 3072]).unwrap();
    let python = std::fs::read(folder.path().join("large.b2nd")).unwrap();
    crate::common::assert_same(
        &array.into_schunk().into_cframe().unwrap(),
        &python,
        "a large array",
    );
    #[cfg(target_os = "linux")]
    if let Some(detected) = CacheSizes::detect() {
        assert_eq!(detected, caches);
    }
}

#[test]
fn text_is_shuffled_by_characters_unless_parameters_are_given() {
    let filters = |builder: NDArrayBuilder, dtype: &str| {
        builder.dtype(dtype, 12).special(Special::Zeros, [2]).unwrap().info().cparams.filters
    };
    for dtype in ["<U3", ">U3"] {
        assert_eq!(filters(NDArray::builder(), dtype), [Filter::ShuffleBytes(4)]);
        let given = NDArray::builder().cparams(CParams::new());
        assert_eq!(filters(given, dtype), [Filter::Shuffle]);
    }
    for dtype in ["|S12", "[('a', '<U3')]", "('<U1', (3,))", "no dtype"] {
        assert_eq!(filters(NDArray::builder(), dtype), [Filter::Shuffle], "{dtype}");
    }
    // What is written later is compressed like that too.
    let mut array = NDArray::builder().dtype("<U1", 4).special(Special::Zeros, [2]).unwrap();
    array.write(.., RawItems(b"a\0\0\0b\0\0\0")).unwrap();
    assert_eq!(array.info().cparams.filters, [Filter::ShuffleBytes(4)]);
    let full =
        NDArray::builder().dtype("<U1", b"a\0\0\0".len()).full(RawItems(b"a\0\0\0"), [3]).unwrap();
    assert_eq!(full.info().cparams.filters, [Filter::ShuffleBytes(4)]);
}

/// As in C, the function decides and not the item.
#[test]
fn a_repeated_zero_is_stored_as_other_items_are() {
    for item in [0u32, 7] {
        let array = NDArray::builder().full(item, [100]).unwrap();
        let special = array.schunk().chunk_info(0).unwrap().special;
        assert_eq!((special, array.item::<u32>(&[99]).unwrap()), (Some(Special::Value), item));
    }
}
