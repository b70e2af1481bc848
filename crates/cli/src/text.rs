//! `blosc2 cat --text`: prints the selected items as NumPy's `print` does.

use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;

use anyhow::{Result, anyhow};
use blosc2::Dtype;
use blosc2::dtype::Kind;
use indicatif::ProgressBar;

use crate::UsageError;
use crate::data::stored_dtype;
use crate::slice::{Pick, Slices};
use crate::stream::{self, Items};
use crate::typed::{ItemType, Part, SmallFloat, Widened};
use crate::values::{self, Column, EDGE, Format, THRESHOLD};

/// Maximum number of values that are printed. The numbers in each field of a structure count.
const MAX_VALUES: u64 = 10_000_000;
/// Maximum bytes of the items that are printed, which are in memory together.
const MAX_BYTES: u64 = 256 << 20;
/// Maximum characters of a line, as in NumPy. Only a single longer value makes a longer line.
const LINE: usize = 75;

/// Options of `--text`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Options {
    /// Print the values as NumPy does, instead of their bytes. If there are more than 1000 items, print only the items
    /// at the edges.
    #[arg(long)]
    pub(crate) text: bool,
    /// With --text: print all items, up to 10 million.
    #[arg(long, requires = "text")]
    all: bool,
    /// With --text: use this dtype, such as `<f4` or `bfloat16`, instead of the stored dtype.
    #[arg(long, requires = "text")]
    dtype: Option<ItemType>,
    /// With --text: print this field of a structured dtype. The axes of a sub-array are the last axes.
    #[arg(long, value_name = "NAME", requires = "text")]
    field: Option<String>,
}

/// Prints the selected items.
pub(crate) fn print(
    options: &Options,
    slices: &Slices,
    items: &dyn Items,
    path: &Path,
    out: &mut dyn Write,
) -> Result<()> {
    let failed = |error: anyhow::Error| anyhow!("cannot print ({}): {error}", path.display());
    let dtype = match &options.dtype {
        Some(dtype) => dtype.clone(),
        None => ItemType::Numpy(match items.dtype() {
            Some(text) => stored_dtype(&text, items.typesize()).map_err(failed)?,
            None => unknown_dtype(items.typesize())?,
        }),
    };
    let resized;
    let items: &dyn Items = match dtype.size() {
        size if size == items.typesize() => items,
        size if size > 0 && items.shape().len() == 1 => {
            resized = Resized { items, size };
            &resized
        }
        size => {
            let typesize = items.typesize();
            return Err(UsageError(format!(
                "--dtype {dtype} has {size} bytes, and the items of {} have {typesize}",
                path.display()
            ))
            .into());
        }
    };
    let widened;
    let (items, dtype): (&dyn Items, _) = match dtype {
        ItemType::Numpy(dtype) => (items, dtype),
        ItemType::Small(float) => {
            widened = Widened::new(items, float, options.field.as_deref()).map_err(failed)?;
            (&widened, SmallFloat::dtype()?)
        }
    };
    let part;
    let (items, dtype): (&dyn Items, _) = match &options.field {
        None => (items, dtype),
        Some(name) => {
            part = Part::new(items, &dtype, Some(name)).map_err(failed)?;
            (&part.0, part.1)
        }
    };
    let picks = slices.resolve_in(path, &items.shape())?;
    let kept = slices.kept(items.shape().len())?;
    let refused = |error: String| anyhow!("cannot print ({}): {error}", path.display());
    let shown = Shown::read(options.all, items, &dtype, &picks, &kept, &refused)?;
    Ok(shown.print(options.all, out)?)
}

/// The type as which items without a dtype are printed: unsigned numbers or bytes.
pub(crate) fn unknown_dtype(typesize: usize) -> Result<Dtype> {
    let kind = if matches!(typesize, 1 | 2 | 4 | 8) { Kind::UInt } else { Kind::Void };
    Ok(Dtype::scalar(kind, typesize)?)
}

/// The items of one axis as items of another size. Bytes at the end that are not a whole item are left out.
struct Resized<'a> {
    items: &'a dyn Items,
    size: usize,
}

impl Resized<'_> {
    /// Converts a number of items to one of items of the other size.
    fn resize(&self, count: u64) -> u64 {
        count.saturating_mul(self.items.typesize() as u64) / self.size as u64
    }
}

impl Items for Resized<'_> {
    fn shape(&self) -> Vec<u64> {
        vec![self.resize(self.items.shape().iter().sum())]
    }

    fn chunks(&self) -> Vec<u64> {
        vec![self.resize(self.items.chunks().iter().sum()).max(1)]
    }

    fn typesize(&self) -> usize {
        self.size
    }

    fn read(&self, ranges: &[Range<u64>]) -> Result<Vec<u8>> {
        let Range { start, end } = stream::bytes_of(ranges, self.size)?;
        let size = self.items.typesize().max(1) as u64;
        let first = start / size;
        let items = first..end.div_ceil(size);
        let bytes = self.items.read(std::slice::from_ref(&items))?;
        let skipped = usize::try_from(start - first * size)?;
        let len = usize::try_from(end - start)?;
        let bytes = bytes.get(skipped..skipped + len);
        Ok(bytes.ok_or_else(|| anyhow!("cannot read items: the data ends early"))?.to_vec())
    }
}

/// The items that are printed.
struct Shown {
    axes: Vec<Axis>,
    dtype: Dtype,
    /// The items in C order.
    bytes: Vec<u8>,
}

/// An axis of the printed array.
#[derive(Debug, Clone, Copy)]
struct Axis {
    count: u64,
    /// Whether only the items at the ends are printed.
    shortened: bool,
}

impl Axis {
    /// The index and the number of the items of each printed part.
    fn parts(self) -> Vec<(u64, u64)> {
        match self.shortened {
            true => vec![(0, EDGE), (self.count - EDGE, EDGE)],
            false => vec![(0, self.count)],
        }
    }

    /// Number of printed items.
    fn shown(self) -> u64 {
        if self.shortened { 2 * EDGE } else { self.count }
    }
}

/// The number of printed items of some axes.
fn shown(axes: &[Axis]) -> u64 {
    axes.iter().map(|axis| axis.shown()).fold(1, u64::saturating_mul)
}

impl Shown {
    /// Reads the items. `kept` states which axes of the items are axes of the printed array.
    fn read(
        all: bool,
        items: &dyn Items,
        dtype: &Dtype,
        picks: &[Pick],
        kept: &[bool],
        refused: &dyn Fn(String) -> anyhow::Error,
    ) -> Result<Self> {
        // The axes of a sub-array are the last axes of the array.
        let (scalar, inner) = values::without_subarray(dtype);
        let counts = picks.iter().map(Pick::count);
        let all_counts = counts.clone().chain(inner.iter().copied());
        let is_empty = all_counts.clone().any(|count| count == 0);
        let len = all_counts.fold(1, u64::saturating_mul);
        let shortened = !all && !is_empty && len > THRESHOLD;
        let axis = |count: u64| Axis { count, shortened: shortened && count > 2 * EDGE };
        let outer: Vec<Axis> = counts.map(axis).collect();
        let inner: Vec<Axis> = inner.into_iter().map(axis).collect();
        let printed = outer.iter().zip(kept).filter(|(_, kept)| **kept).map(|(axis, _)| *axis);
        let axes: Vec<Axis> = printed.chain(inner.iter().copied()).collect();
        let bytes = match is_empty {
            true => Vec::new(),
            false => {
                let hint = "--slice selects fewer";
                let count = shown(&axes).saturating_mul(values_of(scalar));
                if count > MAX_VALUES {
                    return Err(refused(format!(
                        "the selection has {count} values to print, and the maximum is \
                         {MAX_VALUES}; {hint}"
                    )));
                }
                let bytes = shown(&outer).saturating_mul(dtype.size() as u64);
                let printed = shown(&axes).saturating_mul(bytes_of(scalar));
                if bytes.max(printed) > MAX_BYTES {
                    let bytes = bytes.max(printed);
                    return Err(refused(format!(
                        "the selection has {bytes} bytes to print, and the maximum is \
                         {MAX_BYTES}; {hint}"
                    )));
                }
                edges_of_items(&read_edges(items, picks, &outer)?, &inner, dtype, scalar.size())
            }
        };
        Ok(Self { axes, dtype: scalar.clone(), bytes })
    }

    fn print(&self, all: bool, out: &mut dyn Write) -> io::Result<()> {
        if self.axes.iter().any(|axis| axis.count == 0) {
            return writeln!(out, "[]");
        }
        if self.axes.is_empty() {
            return writeln!(out, "{}", values::item(&self.dtype, &self.bytes, all));
        }
        let size = self.dtype.size();
        // At most `MAX_VALUES`.
        let items = Column::new(&self.bytes, shown(&self.axes) as usize, size);
        let format = Format::new(&self.dtype, &items, all);
        let mut layout = Layout { format, bytes: &self.bytes, size, out };
        layout.print(&self.axes, 1, LINE)?;
        writeln!(layout.out)
    }
}

/// The text of one item; of a large item only its size.
pub(crate) fn item(dtype: &Dtype, bytes: &[u8]) -> String {
    if values_of(dtype) > THRESHOLD || bytes_of(dtype) > 4 * THRESHOLD {
        return format!("({} bytes)", bytes.len());
    }
    values::item(dtype, bytes, false)
}

/// Number of values in an item.
fn values_of(dtype: &Dtype) -> u64 {
    let (item, axes) = values::without_subarray(dtype);
    let fields = item.fields().unwrap_or_default().iter();
    let fields = fields.map(|field| values_of(field.dtype())).fold(0, u64::saturating_add);
    axes.into_iter().fold(fields.max(1), u64::saturating_mul)
}

/// Bytes of the values in an item; those of fields that overlap count several times.
fn bytes_of(dtype: &Dtype) -> u64 {
    let (item, axes) = values::without_subarray(dtype);
    let bytes = match item.fields() {
        Some(fields) => {
            fields.iter().map(|field| bytes_of(field.dtype())).fold(0, u64::saturating_add)
        }
        None => item.size() as u64,
    };
    axes.into_iter().fold(bytes, u64::saturating_mul)
}

/// Reads the printed parts of all axes.
fn read_edges(items: &dyn Items, picks: &[Pick], axes: &[Axis]) -> Result<Vec<u8>> {
    let typesize = items.typesize();
    let len = usize::try_from(shown(axes).saturating_mul(typesize as u64))?;
    let mut bytes = Vec::new();
    if !axes.iter().any(|axis| axis.shortened) {
        stream::write(items, picks, &mut bytes, &ProgressBar::hidden())?;
        return Ok(bytes);
    }
    bytes.resize(len, 0);
    // Boxes: each has one part of each axis.
    let mut boxes = vec![Vec::new()];
    for axis in axes {
        let parts = axis.parts();
        boxes = boxes
            .iter()
            .flat_map(|chosen: &Vec<usize>| {
                (0..parts.len()).map(move |k| [&chosen[..], &[k]].concat())
            })
            .collect();
    }
    for chosen in boxes {
        let (mut part_picks, mut target) = (Vec::new(), Vec::new());
        for ((pick, axis), k) in picks.iter().zip(axes).zip(chosen) {
            let (at, count) = axis.parts()[k];
            part_picks.push(pick.part(at, count));
            let start = k as u64 * EDGE;
            target.push(start..start + count);
        }
        let mut part = Vec::new();
        stream::write(items, &part_picks, &mut part, &ProgressBar::hidden())?;
        let mut source = part.as_slice();
        place(&mut source, &target, axes, 0, typesize, &mut bytes);
    }
    Ok(bytes)
}

/// Copies a box to its place among all printed items; `base` is the number of the first item of its row.
fn place(
    source: &mut &[u8],
    target: &[Range<u64>],
    axes: &[Axis],
    base: u64,
    size: usize,
    out: &mut [u8],
) {
    let ([range, inner @ ..], [axis, inner_axes @ ..]) = (target, axes) else { return };
    let base = base * axis.shown();
    if !inner.is_empty() {
        range.clone().for_each(|k| place(source, inner, inner_axes, base + k, size, out));
        return;
    }
    // The items are in memory, so their positions fit.
    let (start, end) = ((base + range.start) as usize * size, (base + range.end) as usize * size);
    if let (Some(to), Some((from, rest))) =
        (out.get_mut(start..end), source.split_at_checked(end - start))
    {
        to.copy_from_slice(from);
        *source = rest;
    }
}

/// The printed values of items that are sub-arrays; the bytes of other items.
fn edges_of_items(bytes: &[u8], axes: &[Axis], dtype: &Dtype, size: usize) -> Vec<u8> {
    if axes.is_empty() {
        return bytes.to_vec();
    }
    let mut positions = vec![0];
    for axis in axes {
        let along: Vec<u64> = axis.parts().iter().flat_map(|&(at, count)| at..at + count).collect();
        let next =
            positions.iter().flat_map(|base| along.iter().map(move |k| base * axis.count + k));
        positions = next.collect();
    }
    let mut out = Vec::new();
    for item in bytes.chunks_exact(dtype.size().max(1)) {
        for &at in &positions {
            let at = at as usize * size;
            out.extend_from_slice(item.get(at..at + size).unwrap_or_default());
        }
    }
    out
}

/// Prints the items in their order, in brackets and lines.
struct Layout<'a> {
    format: Format,
    /// The items that are not printed yet.
    bytes: &'a [u8],
    size: usize,
    out: &'a mut dyn Write,
}

impl Layout<'_> {
    /// Prints an array whose rows are indented by `indent` characters. Its lines end before `width`.
    fn print(&mut self, axes: &[Axis], indent: usize, width: usize) -> io::Result<()> {
        write!(self.out, "[")?;
        match axes {
            [] => {}
            [axis] => self.print_row(*axis, indent, width.saturating_sub(1))?,
            [axis, inner @ ..] => {
                let mut first = true;
                for k in rows(*axis) {
                    if !first {
                        // An empty line between matrices, two between arrays of matrices, ...
                        write!(self.out, "{}{}", "\n".repeat(inner.len()), " ".repeat(indent))?;
                    }
                    first = false;
                    match k {
                        Some(()) => self.print(inner, indent + 1, width.saturating_sub(1))?,
                        None => write!(self.out, "...")?,
                    }
                }
            }
        }
        write!(self.out, "]")
    }

    /// Prints the items of the last axis.
    fn print_row(&mut self, axis: Axis, indent: usize, width: usize) -> io::Result<()> {
        let mut line = " ".repeat(indent);
        let mut len = indent;
        // The bracket is printed in place of the last character of the first indent.
        let mut skipped = indent;
        let mut first = true;
        for k in rows(axis) {
            let mut word = "...".to_owned();
            if k.is_some() {
                let (item, rest) = self.bytes.split_at_checked(self.size).unwrap_or_default();
                self.bytes = rest;
                word.clear();
                self.format.write(item, &mut word);
            }
            if !first {
                line.push(' ');
                len += 1;
            }
            first = false;
            let word_len = word.chars().count();
            if len + word_len > width && len > indent {
                writeln!(self.out, "{}", &line.trim_end()[skipped..])?;
                skipped = 0;
                line = " ".repeat(indent);
                len = indent;
            }
            line += &word;
            len += word_len;
        }
        write!(self.out, "{}", &line[skipped..])
    }
}

/// What is printed on an axis: items, and `None` for those that are left out.
fn rows(axis: Axis) -> impl Iterator<Item = Option<()>> {
    let before = if axis.shortened { EDGE } else { axis.count };
    let after = if axis.shortened { EDGE } else { 0 };
    let items = |count: u64| (0..count).map(|_| Some(()));
    items(before).chain(axis.shortened.then_some(None)).chain(items(after))
}
