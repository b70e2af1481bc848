//! Python's SUMMARY indexes of arrays: the smallest and the largest item of each block.
//!
//! Python stores them in a file beside the array, and describes them in a metalayer of the array. Only one-dimensional
//! arrays have indexes. `blosc2-store` reads those of the columns of tables, which Python stores in another way.

use std::ops::{Bound, Range, RangeBounds};

use blosc2_format::dtype::{Field, Kind, ScalarDecoder};

use crate::item::element::bytes_of;
use crate::ndarray::NDArray;
use crate::{Dtype, Element, OpenOptions, RawItems, Value};

/// The metalayer with the descriptions of the indexes, and the name of the index of entire items.
const INDEXES: &str = "blosc2_indexes";
const ITEMS: &str = "__self__";
const VERSION: u64 = 1;
/// The kinds of indexes. Each kind has bounds, and Python chooses one kind for an array.
const KINDS: [&str; 5] = ["summary", "full", "partial", "bucket", "opsi"];

/// All items of a segment are NaN.
const ALL_NAN: u8 = 1;

/// Numbers of one array have the same variant.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
enum Number {
    Int(i128),
    Float(f64),
}

impl Number {
    fn decode(dtype: &Dtype, item: &[u8]) -> Option<Self> {
        let decoder = ScalarDecoder::new(dtype);
        Some(match dtype.kind()? {
            Kind::Int | Kind::UInt => Self::Int(decoder.int(item)),
            Kind::Float => Self::Float(decoder.float(item)),
            _ => return None,
        })
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Within {
    start: Bound<Number>,
    end: Bound<Number>,
}

impl Within {
    /// Returns `None` for the range of all items, which includes NaN.
    pub(super) fn new<T: Element>(range: &impl RangeBounds<T>) -> Option<Self> {
        let number = |bound: Bound<&T>| match bound
            .map(|item| Number::decode(&T::dtype(), &bytes_of(&[*item])))
        {
            Bound::Unbounded => Some(Bound::Unbounded),
            Bound::Included(number) => number.map(Bound::Included),
            Bound::Excluded(number) => number.map(Bound::Excluded),
        };
        let (start, end) = (number(range.start_bound())?, number(range.end_bound())?);
        let is_all = matches!((&start, &end), (Bound::Unbounded, Bound::Unbounded));
        (!is_all).then_some(Self { start, end })
    }

    /// Whether no number from `least` to `greatest` is in the range.
    fn excludes(&self, least: Number, greatest: Number) -> bool {
        let is_before = match self.start {
            Bound::Included(start) => greatest < start,
            Bound::Excluded(start) => greatest <= start,
            Bound::Unbounded => false,
        };
        let is_after = match self.end {
            Bound::Included(end) => least > end,
            Bound::Excluded(end) => least >= end,
            Bound::Unbounded => false,
        };
        is_before || is_after
    }
}

/// The segments of an array that have no item in a range.
#[derive(Debug)]
pub(super) struct Excluded {
    /// The number of items of a segment.
    step: u64,
    segments: Vec<bool>,
}

impl Excluded {
    /// Finds the segments without items of a range, by the index of an array. Returns `None` if the array has no index
    /// that describes its present items.
    ///
    /// An index only saves time, so that its errors are ignored, such as those of a missing or damaged file.
    pub(super) fn read(array: &NDArray, within: &Within) -> Option<Self> {
        let descriptions = array.schunk().vlmeta().value(INDEXES).ok().flatten()?;
        let level = current(array, descriptions.get("indexes")?.get(ITEMS)?)?;
        Self::of_file(array, within, level)
    }

    /// Reads the index in the file beside the array. A path that a file of another origin has chosen is not followed.
    fn of_file(array: &NDArray, within: &Within, level: Level<'_>) -> Option<Self> {
        let Level { kind, name: level, step, path: described } = level;
        let (path, dtype) = (array.schunk().path()?, array.dtype()?);
        let name = path.file_name()?.to_str()?;
        // Python removes all extensions; the first character of a name does not start one. Names with several
        // extensions can share an index, which then describes only the last one.
        let first = name.chars().next()?.len_utf8();
        let mut dots = name[first..].match_indices('.');
        let end = dots.next().map_or(name.len(), |(dot, _)| first + dot);
        if dots.next().is_some() {
            return None;
        }
        let kind = if kind == "summary" { "summary".to_owned() } else { format!("{kind}.summary") };
        let file = format!("{}.__index__.{kind}.{level}.b2nd", &name[..end]);
        // If the array was renamed or copied, an index with this name can be that of another array.
        if described.rsplit(['/', '\\']).next() != Some(&file) {
            return None;
        }
        let options = OpenOptions::new().limits(array.schunk().limits());
        let options = match array.schunk().max_read() {
            Some(max) => options.max_read(max),
            None => options,
        };
        let index = NDArray::open_with(path.with_file_name(file), options).ok()?;
        let size = dtype.size();
        let fields = [
            Field::new("min", 0, dtype.clone()),
            Field::new("max", size, dtype.clone()),
            Field::new("flags", 2 * size, u8::dtype()),
        ];
        let record = 2 * size + 1;
        let is_index = index.shape() == [array.shape()[0].div_ceil(step)]
            && index.typesize() == record
            && index.dtype() == Dtype::structure(record, fields).ok().as_ref();
        let records = is_index.then(|| index.read::<RawItems>(..).ok()).flatten()?.0;
        let excluded = |record: &[u8]| {
            let (least, rest) = record.split_at(size);
            let (greatest, flags) = rest.split_at(size);
            // Ranges with a bound have no NaN. The bounds of the other items ignore NaN.
            if flags[0] & ALL_NAN != 0 {
                return Some(true);
            }
            let (least, greatest) =
                (Number::decode(dtype, least)?, Number::decode(dtype, greatest)?);
            // A damaged record excludes nothing.
            Some(least <= greatest && within.excludes(least, greatest))
        };
        let segments = records.chunks_exact(record).map(|it| excluded(it).unwrap_or(false));
        Some(Self { step, segments: segments.collect() })
    }

    /// Whether a box of the array has no item of the range.
    pub(super) fn has(&self, ranges: &[Range<u64>]) -> bool {
        let [range] = ranges else { return false };
        let segments = range.start / self.step..range.end.div_ceil(self.step);
        let segments = self.segments.get(segments.start as usize..segments.end as usize);
        segments.is_some_and(|segments| segments.iter().all(|is_excluded| *is_excluded))
    }
}

struct Level<'a> {
    kind: &'static str,
    name: &'static str,
    /// The number of items of a segment.
    step: u64,
    path: &'a str,
}

/// The finest level of an index that describes the present items of an array.
fn current<'a>(array: &NDArray, entry: &'a Value) -> Option<Level<'a>> {
    let text = |name: &str| entry.get(name).and_then(Value::as_str);
    let is_shape = |name: &str, shape: &[u64]| {
        let found = entry.get(name).and_then(Value::as_list).unwrap_or_default();
        found.iter().map(Value::as_u64).eq(shape.iter().map(|size| Some(*size)))
    };
    let kind = KINDS.into_iter().find(|kind| text("kind") == Some(kind))?;
    let dtype = text("dtype").and_then(|dtype| Dtype::parse(dtype).ok());
    let is_current = entry.get("stale") == Some(&Value::Bool(false))
        && entry.get("version").and_then(Value::as_u64) == Some(VERSION)
        && dtype.as_ref() == array.dtype()
        && array.ndim() == 1
        && is_shape("shape", array.shape())
        && is_shape("chunks", array.chunk_shape())
        && is_shape("blocks", array.block_shape());
    let levels = entry.get("levels").filter(|_| is_current)?;
    let steps = [("block", array.block_shape()), ("chunk", array.chunk_shape())];
    steps.into_iter().find_map(|(name, shape)| {
        let (level, step) = (levels.get(name)?, *shape.first().filter(|step| **step > 0)?);
        let has = |field: &str, value| level.get(field).and_then(Value::as_u64) == Some(value);
        let fits = has("segment_len", step) && has("nsegments", array.shape()[0].div_ceil(step));
        let path = level.get("path").and_then(Value::as_str)?;
        fits.then_some(Level { kind, name, step, path })
    })
}
