//! Cases that a script of Python writes, with the results of NumPy.

use std::fs;

use half::f16;
use serde_json::Value;

use crate::common::run_python;

/// The start of each script. `put` writes the items of an array; a case contains their positions. The arguments are the
/// seed and the number of cases.
const START: &str = r#"
import json, sys, warnings
import numpy as np
warnings.filterwarnings("ignore")
rng = np.random.default_rng(int(sys.argv[1]))
count = int(sys.argv[2])
dtypes = ["|b1", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8"]
cases, data = [], open("data", "wb")
def put(array):
    start = data.tell()
    data.write(np.ascontiguousarray(array).tobytes())
    return start, data.tell()
def random_items(dtype, shape):
    if dtype.kind == "f":
        items = np.asarray(rng.standard_normal(shape) * 2).astype(dtype)
        items[rng.random(shape) < 0.02] = rng.choice([np.nan, np.inf, -np.inf, -0.0, 0])
        return items
    items = np.frombuffer(rng.bytes(int(np.prod(shape)) * dtype.itemsize), dtype).reshape(shape)
    return np.asarray(items.view("u1") & 1 != 0) if dtype == bool else items
def random_chunks(shape):
    return [int(rng.integers(1, max(size, 1) + 1)) for size in shape]
"#;

const END: &str = r#"
data.close()
assert len(cases) == count, len(cases)
json.dump(cases, open("cases.json", "w"))
"#;

/// The cases of a script.
pub(crate) struct Cases {
    cases: Vec<Value>,
    data: Vec<u8>,
}

impl Cases {
    /// Runs a script, which appends `count` cases to the list `cases`.
    pub(crate) fn run(script: &str, seed: u32, count: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let script = [START, script, END].concat();
        run_python(&script, folder.path(), &[&seed.to_string(), &count.to_string()]);
        let cases = fs::read(folder.path().join("cases.json")).unwrap();
        let data = fs::read(folder.path().join("data")).unwrap();
        Self { cases: serde_json::from_slice(&cases).unwrap(), data }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Case<'_>> {
        self.cases.iter().map(|value| Case { value, data: &self.data })
    }
}

/// One case.
pub(crate) struct Case<'a> {
    pub(crate) value: &'a Value,
    data: &'a [u8],
}

impl Case<'_> {
    /// The items that `put` wrote.
    pub(crate) fn bytes(&self, name: &str) -> &[u8] {
        let place = self.list(name);
        &self.data[place[0] as usize..place[1] as usize]
    }

    pub(crate) fn list(&self, name: &str) -> Vec<u64> {
        let list = serde_json::from_value(self.value[name].clone());
        list.unwrap_or_else(|error| panic!("{name}: {error}: {}", self.value))
    }

    pub(crate) fn number(&self, name: &str) -> u64 {
        self.value[name].as_u64().unwrap()
    }

    pub(crate) fn text(&self, name: &str) -> &str {
        self.value[name].as_str().unwrap()
    }

    /// The kind and the size of a dtype.
    pub(crate) fn dtype(&self, name: &str) -> &str {
        &self.text(name)[1..]
    }

    /// Checks the dtype and the bytes of a result. NaN of any sign are equal.
    pub(crate) fn check(&self, dtype: &str, found: &[u8], result: &str, expected: &str) {
        assert_eq!(dtype, self.text(result), "{}", self.value);
        assert!(same(dtype, found, self.bytes(expected)), "{expected} of {}", self.value);
    }
}

/// Whether the bytes are equal, or NaN of any sign.
fn same(dtype: &str, found: &[u8], expected: &[u8]) -> bool {
    let size = dtype[2..].parse().unwrap();
    let is_nan = |item: &[u8]| match (dtype.as_bytes()[1], size) {
        (b'f', 2) => f16::from_ne_bytes(item.try_into().unwrap()).is_nan(),
        (b'f', 4) => f32::from_ne_bytes(item.try_into().unwrap()).is_nan(),
        (b'f', 8) => f64::from_ne_bytes(item.try_into().unwrap()).is_nan(),
        _ => false,
    };
    let mut pairs = found.chunks_exact(size).zip(expected.chunks_exact(size));
    found.len() == expected.len()
        && pairs.all(|(one, two)| one == two || is_nan(one) && is_nan(two))
}

/// Calls a generic function with the item type of a dtype.
macro_rules! of_dtype {
    ($dtype:expr, $function:ident($($argument:expr),*)) => {
        match $dtype {
            "b1" => $function::<bool>($($argument),*),
            "i1" => $function::<i8>($($argument),*),
            "i2" => $function::<i16>($($argument),*),
            "i4" => $function::<i32>($($argument),*),
            "i8" => $function::<i64>($($argument),*),
            "u1" => $function::<u8>($($argument),*),
            "u2" => $function::<u16>($($argument),*),
            "u4" => $function::<u32>($($argument),*),
            "u8" => $function::<u64>($($argument),*),
            "f2" => $function::<half::f16>($($argument),*),
            "f4" => $function::<f32>($($argument),*),
            _ => $function::<f64>($($argument),*),
        }
    };
}
pub(crate) use of_dtype;
