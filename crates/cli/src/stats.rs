//! Statistics of all items of an array, for `info --stats`.

use std::io::{self, Write};
use std::ops::Range;

use anyhow::{Result, anyhow, bail};
use blosc2::compute::Real;
use blosc2::dtype::Kind;
use blosc2::storage::temporary_prefix;
use blosc2::{CParams, Codec, ErrorKind, NDArray, Threads};
use blosc2_store::Tensor;
use half::f16;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::file::Content;
use crate::float::{self, FloatFormat, Width};
use crate::meta::shorten;
use crate::style::styled;
use crate::table::{self, Align};
use crate::{interrupt, printable, progress, style};

/// Bins of the histogram, unless all finite items are equal.
const BINS: u32 = 16;
/// Width of the longest bar, in characters.
const LONGEST: u64 = 30;

#[derive(Debug)]
pub(crate) struct Statistics {
    /// Number of items that are not NaN. `min`, `max`, `mean` and `std` are those of these items.
    count: u64,
    nan_count: u64,
    min: Option<Number>,
    max: Option<Number>,
    mean: f64,
    std: f64,
    /// Edges of the bins; empty if no item is finite.
    edges: Vec<f64>,
    /// Number of items in each bin.
    counts: Vec<u64>,
}

/// An item. `f64` does not represent all integers.
#[derive(Debug, Clone, Copy)]
enum Number {
    Int(i128),
    Float(f64, Width),
}

impl Number {
    fn to_f64(self) -> f64 {
        match self {
            Self::Int(int) => int as f64,
            Self::Float(float, _) => float,
        }
    }

    fn to_json(self) -> Value {
        match self {
            Self::Int(int) => json!(serde_json::Number::from_i128(int)),
            Self::Float(float, _) => json!(float),
        }
    }

    fn text(self) -> String {
        match self {
            Self::Int(int) => int.to_string(),
            Self::Float(float, width) => float::scalar(width, float),
        }
    }
}

/// Copies the items of a tensor to an array with one axis, in a temporary directory: expressions read arrays only.
fn array_of(tensor: &Tensor, path: &str) -> Result<(NDArray, TempDir)> {
    /// Bytes of a chunk of the array.
    const CHUNK: usize = 4 << 20;
    let folder = std::env::temp_dir();
    interrupt::register(&folder);
    let created = tempfile::Builder::new().prefix(temporary_prefix()).tempdir_in(&folder);
    let folder = created.map_err(|error| {
        anyhow!("cannot compute statistics ({path}): no temporary directory: {error}")
    })?;
    let size = tensor.dtype().size();
    let len = tensor.schunk().nbytes() / size.max(1) as u64;
    let bytes = |at: u64| at.saturating_mul(size as u64);
    let fill = |ranges: &[Range<u64>], to: &mut [u8]| -> blosc2::Result<()> {
        let Some(range) = ranges.first() else { return Ok(()) };
        to.copy_from_slice(&tensor.schunk().read::<u8>(bytes(range.start)..bytes(range.end))?);
        Ok(())
    };
    let builder = NDArray::builder().target(folder.path().join("items"));
    let builder = builder.chunk_shape([(CHUNK / size.max(1)).max(1)]);
    let builder = builder.cparams(CParams::new().codec(Codec::BloscLz).level(1));
    let made = builder.dtype(&tensor.dtype().to_string(), size).from_chunk_fn([len], fill);
    let array = made.map_err(|error| match (error.kind(), error.get_ref()) {
        // The error of reading the tensor.
        (ErrorKind::Callback, Some(source)) => anyhow!("{source}"),
        _ => error.into(),
    })?;
    Ok((array, folder))
}

fn int<T: Into<i128>>(item: T) -> Number {
    Number::Int(item.into())
}

/// Computes the statistics of the items of a file. `path` is its name in messages.
pub(crate) fn of(content: Content, path: &str) -> Result<Statistics> {
    let _folder;
    let mut array = match content {
        Content::Array(array) => array,
        Content::Tensor(tensor) => {
            let (array, folder) = array_of(&tensor, path)?;
            _folder = folder;
            array
        }
        Content::SChunk(_) => bail!(
            "cannot compute statistics ({path}): this is a super-chunk, not an array; \
             `view --dtype` interprets its items"
        ),
    };
    let kind = array.dtype().map(|dtype| (dtype.kind(), dtype.size()));
    array.set_dparams(array.info().dparams.convert_byte_order(true));
    let array = &array;
    let _spinner =
        progress::spinner(array.len().saturating_mul(array.typesize() as u64), "computing");
    let statistics = match kind {
        Some((Some(Kind::Bool), _)) => describe::<bool>(array, int),
        Some((Some(Kind::Int), 1)) => describe::<i8>(array, int),
        Some((Some(Kind::Int), 2)) => describe::<i16>(array, int),
        Some((Some(Kind::Int), 4)) => describe::<i32>(array, int),
        Some((Some(Kind::Int), 8)) => describe::<i64>(array, int),
        Some((Some(Kind::UInt), 1)) => describe::<u8>(array, int),
        Some((Some(Kind::UInt), 2)) => describe::<u16>(array, int),
        Some((Some(Kind::UInt), 4)) => describe::<u32>(array, int),
        Some((Some(Kind::UInt), 8)) => describe::<u64>(array, int),
        Some((Some(Kind::Float), 2)) => {
            describe::<f16>(array, |item| Number::Float(item.into(), Width::Half))
        }
        Some((Some(Kind::Float), 4)) => {
            describe::<f32>(array, |item| Number::Float(item.into(), Width::Single))
        }
        Some((Some(Kind::Float), 8)) => {
            describe::<f64>(array, |item| Number::Float(item, Width::Double))
        }
        _ => match array.dtype_str() {
            Some(dtype) => bail!(
                "cannot compute statistics ({path}): items of dtype `{}` are not real numbers",
                shorten(&printable(dtype))
            ),
            None => bail!("cannot compute statistics ({path}): it has no dtype"),
        },
    };
    Ok(statistics?)
}

fn describe<T: Real>(array: &NDArray, number: fn(T) -> Number) -> blosc2::Result<Statistics> {
    let items = array.lazy::<T>().threads(Threads::auto());
    let all = items.describe(&[])?;
    let (min, max) = (all.min.map(number), all.max.map(number));
    let mut ends = min.zip(max).map(|(min, max)| (min.to_f64(), max.to_f64()));
    if ends.is_some_and(|(low, high)| low.is_infinite() || high.is_infinite()) {
        let finite = array.lazy::<T>().threads(Threads::auto()).map(|item| {
            let item = number(item).to_f64();
            if item.is_finite() { item } else { f64::NAN }
        });
        let finite = finite.describe(&[])?;
        ends = finite.min.zip(finite.max);
    }
    let edges = ends.map_or_else(Vec::new, |(low, high)| edges(low, high));
    let counts = match edges.is_empty() {
        true => Vec::new(),
        false => items.describe(&edges)?.histogram,
    };
    let (mean, std) = (all.mean, all.std);
    Ok(Statistics {
        count: all.count,
        nan_count: all.nan_count,
        min,
        max,
        mean,
        std,
        edges,
        counts,
    })
}

/// The edges of equal bins, as in NumPy's `histogram`; those of one bin if both ends are equal.
fn edges(low: f64, high: f64) -> Vec<f64> {
    if low == high {
        return vec![low, high];
    }
    // The difference of the halves of large numbers does not overflow.
    let unit = if (high - low).is_finite() { 1.0 } else { 2.0 };
    let (start, end) = (low / unit, high / unit);
    let step = (end - start) / f64::from(BINS);
    let lower = (0..BINS).map(|bin| (start + f64::from(bin) * step) * unit);
    lower.chain([high]).collect()
}

impl Statistics {
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "count": self.count,
            "nan_count": self.nan_count,
            "min": self.min.map(Number::to_json),
            "max": self.max.map(Number::to_json),
            "mean": self.mean,
            "std": self.std,
            "histogram": { "edges": self.edges, "counts": self.counts },
        })
    }

    /// Writes lines, and the histogram as a table.
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let end = |end: Option<Number>| end.map_or_else(|| "-".to_owned(), Number::text);
        let float = |value| float::scalar(Width::Double, value);
        for (name, text) in [
            ("count", self.count.to_string()),
            ("nan_count", self.nan_count.to_string()),
            ("min", end(self.min)),
            ("max", end(self.max)),
            ("mean", float(self.mean)),
            ("std", float(self.std)),
        ] {
            writeln!(out, "{} {text}", styled(style::NAME, format_args!("{name:<14}")))?;
        }
        let Some(most) = self.counts.iter().max() else { return Ok(()) };
        let each = |f: &mut dyn FnMut(f64)| self.edges.iter().for_each(|edge| f(*edge));
        let format = FloatFormat::new(Width::Double, false, &each);
        let rows = self.edges.windows(2).zip(&self.counts).map(|(edges, count)| {
            let [low, high] = [edges[0], edges[1]].map(|edge| format.format(edge));
            let len = u128::from(*count) * u128::from(LONGEST) / u128::from(*most);
            let bar = "#".repeat(len as usize);
            [low, high, count.to_string(), bar]
        });
        let titles = ["from", "to", "items", ""].map(str::to_owned);
        let columns = [Align::Right, Align::Right, Align::Right, Align::Left];
        table::write(out, columns, std::iter::once(titles).chain(rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_do_not_overflow() {
        let large = 2f64.powi(1023);
        let expected: Vec<f64> = (-8..=8).map(|edge| large / 8.0 * f64::from(edge)).collect();
        assert_eq!(edges(-large, large), expected);
        for (low, high) in
            [(1.0, 1.0_f64.next_up()), (-0.1, 0.3), (0.0, 5e-324), (f64::MIN, f64::MAX)]
        {
            let found = edges(low, high);
            assert!(found.is_sorted() && (found[0], found[16]) == (low, high), "{found:?}");
        }
        assert_eq!(edges(2.5, 2.5), [2.5, 2.5]);
    }
}
