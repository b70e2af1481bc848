//! Settings that lose precision: `trunc_prec`, apart from the lossless ones.

use std::fs;
use std::path::Path;

use blosc2::{Codec, Filter};
use serde_json::{Value, json};

use crate::library::Library;
use crate::measure::{self, remove, shortest, size};
use crate::ours::Ours;
use crate::set::Set;

/// The bits of the mantissa that are kept, of 23 and of 52.
const BITS: [(&str, &[i8]); 2] = [("<f4", &[14, 10, 7]), ("<f8", &[40, 30, 20])];

/// Measures a set of floating-point numbers; other sets have no such settings.
pub fn measure(set: &Set, work: &Path) -> Vec<Value> {
    let bits = BITS.iter().find(|(dtype, _)| *dtype == set.dtype).map_or(&[][..], |it| it.1);
    bits.iter().map(|&bits| one(set, bits, work)).collect()
}

fn one(set: &Set, bits: i8, work: &Path) -> Value {
    let filters = vec![Filter::TruncPrec(bits), Filter::Shuffle];
    let setting = Ours::new(Codec::Zstd, 5, filters);
    // Each write creates the file, and the last one is read later.
    let (path, kept) = (work.join("a"), work.join("kept"));
    let keep = |()| {
        remove(&kept);
        fs::rename(&path, &kept).expect("the file can be renamed");
    };
    let write_s = shortest(|| setting.write(set, &path), keep);
    let path = &kept;
    let items = setting.open(set, path, 1).all().into_bytes(set);
    let (absolute, relative) = errors(set, &items);
    // The bits that are cut off are less than one of the last bit that is kept.
    let most = 2f64.powi(-i32::from(bits));
    assert!(relative < most, "the error {relative} of {} with {bits} bits", set.name);
    let record = json!({
        "set": set.name, "setting": setting.setting(), "bits": bits, "nbytes": set.items.len(),
        "bytes": size(path), "write_s": write_s, "read_1_s": measure::read(&setting, set, path, 1),
        "most_relative": most, "relative": relative, "absolute": absolute,
    });
    remove(path);
    record
}

/// The greatest absolute error, and the greatest relative error of numbers that are not subnormal.
fn errors(set: &Set, found: &[u8]) -> (f64, f64) {
    let numbers = |bytes: &[u8]| -> Vec<f64> {
        let chunks = bytes.chunks_exact(set.itemsize);
        match set.itemsize {
            4 => chunks
                .map(|it| f32::from_le_bytes(it.try_into().expect("4 bytes")).into())
                .collect(),
            _ => chunks.map(|it| f64::from_le_bytes(it.try_into().expect("8 bytes"))).collect(),
        }
    };
    let least = if set.itemsize == 4 { f32::MIN_POSITIVE.into() } else { f64::MIN_POSITIVE };
    let (mut absolute, mut relative) = (0f64, 0f64);
    for (before, after) in numbers(&set.items).into_iter().zip(numbers(found)) {
        if !before.is_finite() {
            assert!(before.is_nan() == after.is_nan(), "{before} became {after}");
            continue;
        }
        let error = (before - after).abs();
        absolute = absolute.max(error);
        if before.abs() >= least {
            relative = relative.max(error / before.abs());
        }
    }
    (absolute, relative)
}
