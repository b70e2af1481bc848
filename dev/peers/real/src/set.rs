//! The sets: arrays of items, and the places in them that are read.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// The number of places that are read at most.
const PLACES: usize = 500;

/// An array, as `convert.py` describes it.
#[derive(Debug)]
#[cfg_attr(
    not(feature = "peers"),
    expect(dead_code, reason = "only other libraries use all of it")
)]
pub struct Set {
    pub name: String,
    /// As NumPy writes it, such as `<f4`, or `|V44` for records.
    pub dtype: String,
    /// Name, dtype and offset of the fields of records.
    pub fields: Vec<(String, String, usize)>,
    pub itemsize: usize,
    pub shape: Vec<u64>,
    pub chunks: Vec<u64>,
    /// Whether axis 0 is the columns of a table.
    pub is_table: bool,
    pub npy: PathBuf,
    /// The items in C order.
    pub items: Vec<u8>,
}

/// A part of an array: the start and the end on each axis.
pub type Part = Vec<Range<u64>>;

impl Set {
    /// Reads the sets of a folder.
    pub fn all(folder: &Path) -> Vec<Self> {
        let list = fs::read_to_string(folder.join("sets.json")).expect("sets.json is readable");
        let list: Value = serde_json::from_str(&list).expect("sets.json is JSON");
        list.as_array().expect("a list of sets").iter().map(|set| Self::read(folder, set)).collect()
    }

    fn read(folder: &Path, set: &Value) -> Self {
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let number = |value: &Value| value.as_u64().expect("a number");
        let list = |value: &Value| value.as_array().expect("a list").iter().map(number).collect();
        let fields = set["fields"].as_array().expect("the fields").iter();
        let name = text(&set["name"]);
        let npy = folder.join(format!("{name}.npy"));
        let items = fs::read(&npy).expect("the set is readable");
        let items = items[number(&set["offset"]) as usize..].to_vec();
        Self {
            dtype: text(&set["dtype"]),
            fields: fields.map(|f| (text(&f[0]), text(&f[1]), number(&f[2]) as usize)).collect(),
            itemsize: number(&set["itemsize"]) as usize,
            shape: list(&set["shape"]),
            chunks: list(&set["chunks"]),
            is_table: set["is_table"].as_bool().expect("true or false"),
            name,
            npy,
            items,
        }
    }

    /// Whether columnar formats have this set.
    pub fn has_columns(&self) -> bool {
        self.is_table || self.shape.len() == 1
    }

    /// Random parts of about 4096 items.
    pub fn tiles(&self) -> Vec<Part> {
        let axes = self.shape.len() - usize::from(self.is_table);
        // A photo has three values for each pixel.
        let side = match (axes, self.shape.last()) {
            (1, _) => 4096,
            (2, _) | (3, Some(3)) => 64,
            _ => 16,
        };
        self.parts(1, |_| side)
    }

    /// Random items, or 20 to 50 of them one after the other if there is only one axis.
    pub fn rows(&self) -> Vec<Part> {
        let last = self.shape.len() - 1;
        self.parts(2, |random| if self.has_columns() { 20 + random % 31 } else { 1 })
            .into_iter()
            .map(|mut part| {
                (0..last).for_each(|axis| part[axis].end = part[axis].start + 1);
                part
            })
            .collect()
    }

    fn parts(&self, seed: u64, len: impl Fn(u64) -> u64) -> Vec<Part> {
        let mut state = seed;
        let mut random = move || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            state >> 33
        };
        let mut part = |_| {
            let one = |(axis, &size): (usize, &u64)| {
                let len = if axis == 0 && self.is_table { 1 } else { len(random()) }.min(size);
                let start = random() % (size - len + 1);
                start..start + len
            };
            self.shape.iter().enumerate().map(one).collect()
        };
        (0..PLACES).map(&mut part).collect()
    }

    /// The bytes of a part, from the uncompressed items.
    pub fn expected(&self, part: &Part) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.collect(part, 0, 0, &mut bytes);
        bytes
    }

    fn collect(&self, part: &Part, axis: usize, at: u64, bytes: &mut Vec<u8>) {
        let range = &part[axis];
        let at = at * self.shape[axis];
        if axis + 1 == part.len() {
            let item = |index: u64| (at + index) as usize * self.itemsize;
            bytes.extend_from_slice(&self.items[item(range.start)..item(range.end)]);
        } else {
            range.clone().for_each(|index| self.collect(part, axis + 1, at + index, bytes));
        }
    }
}
