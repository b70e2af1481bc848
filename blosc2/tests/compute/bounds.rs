//! Selections of ranges by Python's indexes of arrays: equal to those without an index, and never by a stale one.

use std::fs;
use std::path::Path;

use blosc2::compute::Real;
use blosc2::{NDArray, OpenOptions, RawItems, Selection};

use crate::common::{Rng, repeats, run_python};

const SCRIPT: &str = r#"
import os
import blosc2 as b2, numpy as np
rng = np.random.default_rng(55)
COUNT = 300_007
# Sorted with noise: an index excludes many blocks.
items = np.arange(COUNT) // 3000 + rng.integers(-3, 3, COUNT)
for kind in ["SUMMARY", "FULL", "PARTIAL", "BUCKET", "OPSI"]:
    for dtype in ["i1", "u2", "i4", "i8", "u8", "f4", "f8"]:
        if kind != "SUMMARY" and dtype not in ["i8", "f8"]:
            continue
        values = items.astype(dtype)
        if dtype in ["i8", "u8"]:
            # Numbers that differ by less than the precision of a float.
            values += np.array(2, dtype) ** np.array(62, dtype)
        if dtype[0] == "f":
            values[::7] = np.nan
            values[50_000:130_000] = np.nan
        path = f"{kind}_{dtype}.b2nd"
        array = b2.asarray(values, urlpath=path, mode="w", chunks=(70_000,), blocks=(9_000,))
        array.create_index(kind=getattr(b2.IndexKind, kind))

values = items.astype("i8")[:100_000]
b2.asarray(values, urlpath="small.b2nd", mode="w", chunks=(1000,), blocks=(4,)).create_index(kind=b2.IndexKind.SUMMARY)

# Indexes of other arrays under the names of those of these arrays.
for name, first in [("old", 0), ("new", 10**6), ("run.a", 0), ("run.b", 10**6)]:
    values = np.arange(first, first + COUNT)
    b2.asarray(values, urlpath=f"{name}.b2nd", mode="w").create_index(kind=b2.IndexKind.SUMMARY)
os.replace("new.b2nd", "old.b2nd")
"#;

const KINDS: [&str; 5] = ["summary", "full", "partial", "bucket", "opsi"];

/// The file of the index of an array: that of the bounds of blocks.
fn index_of(path: &Path, kind: &str) -> std::path::PathBuf {
    let name = path.file_name().unwrap().to_str().unwrap().split('.').next().unwrap();
    let levels = if kind == "summary" { "summary".to_owned() } else { format!("{kind}.summary") };
    path.with_file_name(format!("{name}.__index__.{levels}.block.b2nd"))
}

/// Makes an index false: no block has items in the usual ranges.
fn poison(path: &Path, kind: &str) {
    let index = index_of(path, kind);
    let mut index =
        NDArray::from_schunk(OpenOptions::new().write(true).open(&index).unwrap()).unwrap();
    let mut bytes = index.read::<RawItems>(..).unwrap().0;
    let size = index.typesize();
    for record in bytes.chunks_mut(size) {
        let (least, rest) = record.split_at_mut((size - 1) / 2);
        // The largest item becomes the smallest, which is below most items.
        least.fill(0);
        rest.fill(0);
    }
    index.write(.., RawItems(&bytes)).unwrap();
}

/// Checks random ranges against a plain model.
fn check<T: Real + PartialOrd + std::fmt::Debug>(array: &NDArray, rng: &mut Rng, what: &str) {
    let items = array.read::<Vec<T>>(..).unwrap();
    let lazy = || array.lazy::<T>();
    for _ in 0..repeats(100) {
        let mut item = || items[rng.below(items.len() as u64) as usize];
        let (one, other) = (item(), item());
        let (one, other) = if other < one { (other, one) } else { (one, other) };
        macro_rules! check {
            ($range:expr) => {{
                let range = $range;
                let expected: Vec<u64> = (0..)
                    .zip(&items)
                    .filter(|(_, item)| range.contains(*item))
                    .map(|(at, _)| at)
                    .collect();
                let found = lazy().select_in(range.clone());
                let what = format!("{what}, {range:?}");
                assert!(found.indices().unwrap() == expected, "{what}");
                assert_eq!(found.count().unwrap(), expected.len() as u64, "{what}");
                assert_eq!(found.items().unwrap().len(), expected.len(), "{what}");
                let mask = found.mask().read().unwrap();
                assert_eq!(mask.iter().filter(|is| **is).count(), expected.len(), "{what}");
            }};
        }
        check!(one..other);
        check!(one..=other);
        check!(one..);
        check!(..one);
        check!(..=one);
        check!(one..=one);
    }
    assert_eq!(lazy().select_in(..).count().unwrap(), items.len() as u64, "{what}");
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn ranges_are_found_with_indexes_as_without() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    run_python(SCRIPT, folder, &[]);
    let mut rng = Rng(55);
    for kind in KINDS {
        for dtype in ["i1", "u2", "i4", "i8", "u8", "f4", "f8"] {
            let path = folder.join(format!("{}_{dtype}.b2nd", kind.to_uppercase()));
            if kind != "summary" && !["i8", "f8"].contains(&dtype) {
                continue;
            }
            assert!(index_of(&path, kind).exists(), "{kind}, {dtype}");
            let array = NDArray::open(&path).unwrap();
            let what = format!("{kind}, {dtype}");
            match dtype {
                "i1" => check::<i8>(&array, &mut rng, &what),
                "u2" => check::<u16>(&array, &mut rng, &what),
                "i4" => check::<i32>(&array, &mut rng, &what),
                "i8" => check::<i64>(&array, &mut rng, &what),
                "u8" => check::<u64>(&array, &mut rng, &what),
                "f4" => check::<f32>(&array, &mut rng, &what),
                _ => check::<f64>(&array, &mut rng, &what),
            }
        }
    }

    // The limits of an array are those of its index. This one is larger than the chunks.
    let path = folder.join("small.b2nd");
    let count = |options: &OpenOptions| {
        let array = NDArray::open_with(&path, options).unwrap();
        array.lazy::<i64>().select_in(20..).count().unwrap()
    };
    let (any, limited) = (OpenOptions::new(), OpenOptions::new().max_read(100_000));
    let right = count(&any);
    assert!(right > 0 && count(&limited) == right);
    poison(&path, "summary");
    assert_eq!((count(&any), count(&limited)), (0, right));

    for kind in KINDS {
        let path = folder.join(format!("{}_f8.b2nd", kind.to_uppercase()));
        let array = NDArray::open(&path).unwrap();
        let count = |array: &NDArray| array.lazy::<f64>().select_in(40.0..).count().unwrap();
        let right = count(&array);
        assert!(right > 0);
        // The index is used: a false one hides items, but not from views and other expressions.
        poison(&path, kind);
        let array = NDArray::open(&path).unwrap();
        assert_eq!(count(&array), 0, "{kind}");
        assert!(array.lazy::<f64>().select_in(40.0..).items().unwrap().is_empty(), "{kind}");
        assert_eq!(
            array.lazy::<f64>().select(|item| item >= 40.0).count().unwrap(),
            right,
            "{kind}"
        );
        let part = array.view().slice(1..).unwrap();
        assert_eq!(part.lazy::<f64>().select_in(40.0..).count().unwrap(), right, "{kind}");
        assert_eq!(
            array.lazy::<f64>().map(|item| item).select_in(40.0..).count().unwrap(),
            right,
            "{kind}"
        );

        // A change makes the index stale. It stays false.
        let mut array = NDArray::open_rw(&path).unwrap();
        array.write([3], 1000.0).unwrap();
        assert_eq!(count(&array), right + 1, "{kind}");
        drop(array);
        assert_eq!(count(&NDArray::open(&path).unwrap()), right + 1, "{kind}");
    }

    // The same for a change by Python.
    let path = folder.join("SUMMARY_i4.b2nd");
    poison(&path, "summary");
    let count = || NDArray::open(&path).unwrap().lazy::<i32>().select_in(50..).count().unwrap();
    assert_eq!(count(), 0);
    run_python(
        "import blosc2 as b2\na = b2.open('SUMMARY_i4.b2nd', mode='a')\na[5] = 1000",
        folder,
        &[],
    );
    let items = NDArray::open(&path).unwrap().read::<Vec<i32>>(Selection::all()).unwrap();
    assert_eq!(count(), items.iter().filter(|item| **item >= 50).count() as u64);

    for (name, first) in [("old", 1_000_000), ("run.a", 0), ("run.b", 1_000_000)] {
        let array = NDArray::open(folder.join(format!("{name}.b2nd"))).unwrap();
        let range = first + 5..first + 9;
        assert_eq!(array.lazy::<i64>().select_in(range).count().unwrap(), 4, "{name}");
    }

    // Missing and damaged indexes are ignored.
    let path = folder.join("SUMMARY_i8.b2nd");
    let count =
        || NDArray::open(&path).unwrap().lazy::<i64>().select_in((1 << 62) + 50..).count().unwrap();
    let right = count();
    let index = index_of(&path, "summary");
    let bytes = fs::read(&index).unwrap();
    for damaged in [&bytes[..bytes.len() / 2], &[], b"no frame"] {
        fs::write(&index, damaged).unwrap();
        assert_eq!(count(), right);
    }
    fs::copy(index_of(&folder.join("SUMMARY_i1.b2nd"), "summary"), &index).unwrap();
    assert_eq!(count(), right, "the index of another array");
    fs::remove_file(&index).unwrap();
    assert_eq!(count(), right);
}
