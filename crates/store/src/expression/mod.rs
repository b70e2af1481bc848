//! Expressions that Python stored, evaluated without running code.

mod apply;
mod items;
mod parse;
mod plan;
mod reduce;

use std::cell::Cell;
use std::ops::Range;
use std::sync::{Arc, PoisonError};

#[cfg(feature = "c")]
use crate::blosc2::NDArrayBuilder;
use crate::blosc2::{Dtype, Error, ErrorKind, NDArray, RawItems, Result};
use crate::limits::max_read_of;
use crate::tag::Fault;

use items::{Items, Type};
use parse::Literal;
use plan::{KEPT, Known, MAX_ITEMS, Node, Planner, Reduce, Step, count};
use reduce::Accumulators;

const EVALUATE: &str = "evaluate an expression";

/// The number of items that are computed at once. Small in unit tests.
const TILE: u64 = if cfg!(test) { 1 << 6 } else { 1 << 17 };

pub(crate) const MAX_OPERANDS: usize = 64;

/// An expression of arrays that Python stored as text, such as `sin(a) + 2 * b`. Python: `LazyExpr`.
///
/// The text is parsed, and not executed: there is no way from an expression to a function of the program or to a file.
/// [`Carrier`](crate::Carrier) returns the expression in a file.
///
/// ```
/// use blosc2::NDArray;
/// use blosc2_store::Expression;
///
/// let a = NDArray::from_slice(&[1.5f32, -2.0, 0.25], 3)?;
/// let b = NDArray::from_slice(&[1i16, 2, 3], 3)?;
/// let expression = Expression::new("where(a > 0, a * b, 0)", [("a", a), ("b", b)])?;
/// assert_eq!((expression.dtype().to_string(), expression.shape()), ("<f4".to_owned(), &[3][..]));
/// let items = expression.to_array(NDArray::builder())?;
/// assert_eq!(items.read::<Vec<f32>>(..)?, [1.5, 0.0, 0.75]);
/// # Ok::<(), blosc2::Error>(())
/// ```
///
/// # What is supported
/// Operands are arrays of bools, of integers of 1 to 8 bytes, and of floats of 2, 4 and 8 bytes. They are broadcast.
/// The dtypes of results are those of NumPy 2, also for numbers in the text: `a + 1` has the dtype of `a` if that is
/// an integer type. Integers wrap around. A division of integers by zero is 0.
///
/// - the operators `+ - * / // % **`, `< <= > >= == !=`, `& | ^ ~ << >>`;
/// - `where`, `clip`, `minimum`, `maximum`, `abs`, `sign`, `floor`, `ceil`, `trunc`, `round`, `square`, `sqrt`,
///   `reciprocal`, `isnan`, `isinf`, `isfinite`, `signbit`, `logical_and`, `logical_or`, `logical_xor`, `logical_not`,
///   and the functions that have the names of operators, such as `add`;
/// - `exp`, `expm1`, `log`, `log1p`, `log2`, `log10`, `logaddexp`, `hypot`, `copysign`, `nextafter`, and trigonometric
///   and hyperbolic functions with their inverses;
/// - the reductions `sum`, `prod`, `mean`, `var`, `std`, `min`, `max`, `any`, `all`, `count_nonzero`, `argmin` and
///   `argmax`, as functions and as methods, with `axis`, `keepdims` and `ddof`.
///
/// Integers, bools and the operators of floats have the results of NumPy bit by bit, except `**`. Functions such as
/// `sin` are those of the Rust standard library, which can differ from NumPy in the last bits. Sums are compensated
/// sums in `f64`.
///
/// An expression is computed in tiles of up to 131,072 items, so it needs little memory. The results of reductions are
/// computed once, and kept: up to 64 MiB for all reductions. An expression that needs more results repeatedly, such as
/// `a - mean(a, axis=0)` with 10 million columns, is not supported.
#[derive(Debug)]
pub struct Expression {
    root: Node,
    operands: Vec<Operand>,
    dtype: Dtype,
    /// The memory of the results that are kept, with those of the operands.
    kept: u64,
}

/// What a name in an expression refers to.
#[derive(Debug)]
pub(crate) enum Operand {
    Array(Arc<NDArray>),
    Expression(Box<Expression>),
    /// Items in memory: the dtype, the shape, and the bytes.
    Bytes(Dtype, Vec<u64>, Vec<u8>),
}

impl Operand {
    fn dtype(&self) -> Option<&Dtype> {
        match self {
            Self::Array(array) => array.dtype(),
            Self::Expression(expression) => Some(&expression.dtype),
            Self::Bytes(dtype, ..) => Some(dtype),
        }
    }

    fn shape(&self) -> &[u64] {
        match self {
            Self::Array(array) => array.shape(),
            Self::Expression(expression) => expression.shape(),
            Self::Bytes(_, shape, _) => shape,
        }
    }

    /// The block shape of the first array.
    fn block_shape(&self) -> Option<&[u64]> {
        match self {
            Self::Array(array) => Some(array.block_shape()),
            Self::Expression(expression) => {
                expression.operands.iter().find_map(|operand| operand.block_shape())
            }
            Self::Bytes(..) => None,
        }
    }

    fn max_read(&self) -> u64 {
        match self {
            Self::Array(array) => max_read_of(array.schunk(), array.schunk().cbytes()),
            Self::Expression(expression) => expression.max_read(),
            Self::Bytes(.., bytes) => bytes.len() as u64,
        }
    }

    fn read(&self, of: Type, region: &[Range<u64>]) -> Result<Items> {
        let (dtype, mut bytes) = match self {
            Self::Expression(expression) => return expression.tile_of(&expression.root, region),
            Self::Array(array) => (array.dtype(), array.read::<RawItems>(region)?.0),
            Self::Bytes(dtype, shape, bytes) => (Some(dtype), cut(bytes, of, shape, region)),
        };
        if dtype.is_some_and(|dtype| !dtype.is_native()) {
            bytes.chunks_exact_mut(of.size()).for_each(<[u8]>::reverse);
        }
        Ok(Items::from_bytes(of, &bytes))
    }
}

fn error((kind, detail): Fault) -> Error {
    Error::new(kind, EVALUATE, detail)
}

/// The distances of neighbors on each axis of an array of this shape in C order.
fn strides_of(shape: &[u64]) -> Vec<usize> {
    let mut strides = vec![1usize; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis].saturating_mul(shape[axis] as usize);
    }
    strides
}

/// The positions of the items of a box, in C order, with these distances of neighbors on each axis.
fn places(region: impl Iterator<Item = Range<u64>>, strides: &[usize]) -> Vec<usize> {
    region.zip(strides).fold(vec![0], |places, (range, stride)| {
        let next = |at: &usize| {
            let at = *at;
            range.clone().map(move |index| at + index as usize * stride)
        };
        places.iter().flat_map(next).collect()
    })
}

/// The ranges of a box relative to the start of another one.
fn within<'a>(
    region: &'a [Range<u64>],
    all: &'a [Range<u64>],
) -> impl Iterator<Item = Range<u64>> + 'a {
    let ranges = region.iter().zip(all);
    ranges.map(|(range, all)| range.start - all.start..range.end - all.start)
}

/// The bytes of the items of a region, in C order, of an array of this shape that is in memory.
fn cut(bytes: &[u8], of: Type, shape: &[u64], region: &[Range<u64>]) -> Vec<u8> {
    let size = of.size();
    let places = places(region.iter().cloned(), &strides_of(shape));
    places.iter().flat_map(|at| &bytes[at * size..(at + 1) * size]).copied().collect()
}

fn lens(region: &[Range<u64>]) -> Vec<u64> {
    region.iter().map(|range| range.end.saturating_sub(range.start)).collect()
}

/// The part of an operand that is needed for a region, by the rules of broadcasting.
fn part_of(shape: &[u64], region: &[Range<u64>]) -> Vec<Range<u64>> {
    let ranges = &region[region.len() - shape.len()..];
    shape
        .iter()
        .zip(ranges)
        .map(
            |(size, range)| {
                if *size == 1 { 0..u64::from(!range.is_empty()) } else { range.clone() }
            },
        )
        .collect()
}

/// Repeats items so that they have the shape of a region. A single item stays single.
fn repeat(items: Items, shape: &[u64], region: &[Range<u64>]) -> Items {
    let wanted = lens(region);
    if items.len() == 1 || items.len() as u64 == count(&wanted) {
        return items;
    }
    let found = lens(&part_of(shape, region));
    let own = found.iter().zip(strides_of(&found));
    let own = own.map(|(size, stride)| if *size == 1 { 0 } else { stride });
    let added = std::iter::repeat_n(0, wanted.len() - shape.len());
    let strides: Vec<usize> = added.chain(own).collect();
    items.pick(&places(wanted.iter().map(|len| 0..*len), &strides))
}

fn item_of(literal: Literal, of: Type) -> Items {
    let item = match literal {
        Literal::Bool(item) => Items::Bool(vec![item]),
        Literal::Float(item) => Items::F64(vec![item]),
        Literal::Int(item) if of.is_float() => Items::F64(vec![item as f64]),
        Literal::Int(item) if item < 0 => Items::I64(vec![item as i64]),
        Literal::Int(item) => Items::U64(vec![item as u64]),
    };
    item.cast(of)
}

/// Items as integers; a literal can be larger than the items of any type.
fn integers_of(node: &Node, items: &Items) -> Vec<i128> {
    match node.step {
        Step::Literal(Literal::Int(integer)) => vec![integer],
        _ => items.integers(),
    }
}

/// The boxes of a grid that cover a region, in C order.
fn tiles(region: &[Range<u64>], tile: &[u64]) -> impl Iterator<Item = Vec<Range<u64>>> + use<> {
    let (region, tile) = (region.to_vec(), tile.to_vec());
    let mut at: Option<Vec<u64>> = region
        .iter()
        .all(|range| range.start < range.end)
        .then(|| region.iter().map(|range| range.start).collect());
    std::iter::from_fn(move || {
        let starts = at.clone()?;
        let ranges = starts.iter().zip(&region).zip(&tile);
        let found =
            ranges.map(|((start, range), size)| *start..start.saturating_add(*size).min(range.end));
        let found: Vec<_> = found.collect();
        let mut next = starts;
        let mut axis = next.len();
        at = loop {
            let Some(before) = axis.checked_sub(1) else { break None };
            axis = before;
            next[axis] = found[axis].end;
            if next[axis] < region[axis].end {
                break Some(next);
            }
            next[axis] = region[axis].start;
        };
        Some(found)
    })
}

impl Expression {
    /// Parses an expression, and determines its dtype and its shape. `operands` are the arrays with their names in the
    /// text. No items are read.
    ///
    /// # Errors
    /// - [`ErrorKind::Unsupported`]: the expression needs something else than [supported](Self#what-is-supported) parts,
    ///   such as a user-defined function; an operand is missing or has another dtype; an integer has more than 64 bits
    ///   where it is not compared; the text has more than 64 KiB, 128 levels or 64 operands; a shape has more than
    ///   [`isize::MAX`] items. The message names what is missing;
    /// - [`ErrorKind::InvalidData`]: the text is not an expression; the shapes of operands cannot be broadcast; or an
    ///   operator does not accept the dtypes of its operands.
    pub fn new<N: Into<String>>(
        text: &str,
        operands: impl IntoIterator<Item = (N, NDArray)>,
    ) -> Result<Self> {
        let operands = operands
            .into_iter()
            .map(|(name, array)| (name.into(), Operand::Array(Arc::new(array))));
        Self::of(text, operands.collect())
    }

    pub(crate) fn of(text: &str, operands: Vec<(String, Operand)>) -> Result<Self> {
        let found = operands.len();
        if found > MAX_OPERANDS {
            let detail = format!("it has {found} operands, expected up to {MAX_OPERANDS}");
            return Err(Error::new(ErrorKind::Unsupported, EVALUATE, detail));
        }
        let tree = parse::parse(text).map_err(error)?;
        let mut known = Vec::with_capacity(found);
        let mut kept = 0u64;
        for (name, operand) in &operands {
            let Some(of) = operand.dtype().and_then(Type::of) else {
                let dtype = operand.dtype().map_or("none".to_owned(), Dtype::to_string);
                let detail = format!(
                    "the operand `{name}` has the dtype {dtype}, expected bools, integers, or floats of up to 8 bytes"
                );
                return Err(Error::new(ErrorKind::Unsupported, EVALUATE, detail));
            };
            let items = count(operand.shape());
            if items > MAX_ITEMS {
                let detail = format!(
                    "the operand `{name}` has {items} items, expected up to {MAX_ITEMS} on this platform"
                );
                return Err(Error::new(ErrorKind::Unsupported, EVALUATE, detail));
            }
            let mut recomputes = false;
            if let Operand::Expression(expression) = operand {
                recomputes = expression.root.recomputes;
                kept = kept.saturating_add(expression.kept);
            }
            let (name, shape) = (name.clone(), operand.shape().to_vec());
            known.push(Known { name, of, shape, recomputes });
        }
        let Some(left) = KEPT.checked_sub(kept) else {
            let detail = format!(
                "the reductions in its operands have results of {kept} bytes, expected up to {KEPT}"
            );
            return Err(Error::new(ErrorKind::Unsupported, EVALUATE, detail));
        };
        let planner = Planner { operands: &known, left: Cell::new(left) };
        let root = planner.plan(&tree).and_then(Node::typed).map_err(error)?;
        let kept = KEPT - planner.left.get();
        let operands = operands.into_iter().map(|(_, operand)| operand).collect();
        Ok(Self { dtype: root.of.dtype(), root, operands, kept })
    }

    /// Returns the dtype of the results. The byte order is native.
    pub fn dtype(&self) -> &Dtype {
        &self.dtype
    }

    /// Returns the shape of the results.
    pub fn shape(&self) -> &[u64] {
        &self.root.shape
    }

    /// Whether items of different rows, positions on the first axis, are combined.
    pub(crate) fn combines_rows(&self) -> bool {
        self.root.combines_rows()
    }

    /// The bytes of the items of all parts, as a measure of the work.
    pub(crate) fn work(&self) -> u64 {
        self.root.work()
    }

    /// The same expression, whose results are converted to a dtype as NumPy's `astype` does.
    pub(crate) fn cast(self, dtype: &Dtype) -> Result<Self> {
        let Some(of) = Type::of(dtype) else {
            let detail = format!("its results cannot be converted to {dtype}");
            return Err(Error::new(ErrorKind::Unsupported, EVALUATE, detail));
        };
        let root = self.root.cast(of).map_err(error)?;
        Ok(Self { dtype: root.of.dtype(), root, ..self })
    }

    fn max_read(&self) -> u64 {
        self.operands.iter().map(Operand::max_read).max().unwrap_or(0).max(1 << 20)
    }

    /// Computes the items in a box, which has one range for each axis. Returns their bytes in C order, in native byte
    /// order.
    ///
    /// # Errors
    /// - [`ErrorKind::OutOfBounds`]: the box is not inside of the shape;
    /// - [`ErrorKind::InvalidArgument`]: an integer is raised to a negative power;
    /// - [`ErrorKind::TooLarge`]: the items take more memory than the largest
    ///   [`OpenOptions::max_read`](blosc2::OpenOptions::max_read) of the operands;
    /// - the [errors of reads](NDArray#errors-of-reads) of the operands.
    pub fn read(&self, ranges: &[Range<u64>]) -> Result<Vec<u8>> {
        let (shape, size) = (self.shape(), self.root.of.size() as u64);
        let inside = ranges.len() == shape.len()
            && ranges
                .iter()
                .zip(shape)
                .all(|(range, size)| range.start <= range.end && range.end <= *size);
        if !inside {
            let detail = format!("the shape is {shape:?}, asked for the box {ranges:?}");
            return Err(Error::new(ErrorKind::OutOfBounds, EVALUATE, detail));
        }
        let nbytes = count(&lens(ranges)).saturating_mul(size);
        let limit = self.max_read();
        if nbytes > limit {
            let detail = format!("the items have {nbytes} bytes, expected up to {limit}");
            return Err(Error::new(ErrorKind::TooLarge, EVALUATE, detail));
        }
        self.all_of(&self.root, ranges, |tile| self.tile_of(&self.root, tile))
    }

    pub(crate) fn nbytes(&self) -> u64 {
        count(self.shape()).saturating_mul(self.root.of.size() as u64)
    }

    /// Computes all items. The caller checks their size.
    pub(crate) fn read_all(&self) -> Result<Vec<u8>> {
        let all: Vec<_> = self.shape().iter().map(|size| 0..*size).collect();
        self.all_of(&self.root, &all, |tile| self.tile_of(&self.root, tile))
    }

    /// Computes all items, and stores them in a new array. The dtype of the builder is replaced by that of the results.
    /// [`CParams::threads`](blosc2::CParams::threads) of the builder sets the number of threads.
    ///
    /// # Errors
    /// Fails with the errors of [creation](NDArrayBuilder#errors-of-creation), and with
    /// [`ErrorKind::Callback`] for an error of [`read`](Self::read).
    #[cfg(feature = "c")]
    pub fn to_array(&self, builder: NDArrayBuilder) -> Result<NDArray> {
        builder.dtype(&self.dtype, self.dtype.size()).from_chunk_fn(
            self.shape(),
            |ranges, bytes| {
                self.fill(&self.root, ranges, bytes, |tile| self.tile_of(&self.root, tile))
            },
        )
    }

    /// The bytes of the items of a part in a box.
    fn all_of(
        &self,
        node: &Node,
        region: &[Range<u64>],
        compute: impl Fn(&[Range<u64>]) -> Result<Items>,
    ) -> Result<Vec<u8>> {
        let nbytes = count(&lens(region)).saturating_mul(node.of.size() as u64);
        let memory = |error: String| {
            Error::new(ErrorKind::OutOfMemory, EVALUATE, format!("{nbytes} bytes: {error}"))
        };
        let len = usize::try_from(nbytes).map_err(|error| memory(error.to_string()))?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(len).map_err(|error| memory(error.to_string()))?;
        bytes.resize(len, 0);
        self.fill(node, region, &mut bytes, compute)?;
        Ok(bytes)
    }

    /// Writes the items of a part in a box into memory. `compute` returns those of a tile.
    fn fill(
        &self,
        node: &Node,
        region: &[Range<u64>],
        bytes: &mut [u8],
        compute: impl Fn(&[Range<u64>]) -> Result<Items>,
    ) -> Result<()> {
        let size = node.of.size();
        let region_lens = lens(region);
        for tile in tiles(region, &self.tile(&node.shape)) {
            let items = compute(&tile)?;
            let run = tile.last().map_or(1, |range| (range.end - range.start) as usize);
            let rows = &tile[..tile.len().saturating_sub(1)];
            // The position of each row of the tile in the box.
            let strides = strides_of(&region_lens);
            let starts = places(within(rows, region), &strides[..rows.len()]);
            let first = match (tile.last(), region.last()) {
                (Some(range), Some(all)) => (range.start - all.start) as usize,
                _ => 0,
            };
            for (number, row) in starts.into_iter().enumerate() {
                let start = (row + first) * size;
                items
                    .write(number * run..(number + 1) * run, &mut bytes[start..start + run * size]);
            }
        }
        Ok(())
    }

    /// The shape of the tiles of a part with this shape: a multiple of the blocks of the first array, if they are small.
    fn tile(&self, shape: &[u64]) -> Vec<u64> {
        let blocks = self.operands.iter().find_map(|operand| operand.block_shape()).unwrap_or(&[]);
        let mut tile: Vec<u64> = vec![1; shape.len()];
        for (size, block) in tile.iter_mut().rev().zip(blocks.iter().rev()) {
            *size = (*block).max(1);
        }
        for (size, all) in tile.iter_mut().zip(shape) {
            *size = (*size).min(*all).max(1);
        }
        for axis in 0..tile.len() {
            let others = count(&tile) / tile[axis];
            if others.saturating_mul(tile[axis]) > TILE {
                tile[axis] = (TILE / others.max(1)).max(1);
            }
        }
        for axis in (0..tile.len()).rev() {
            while tile[axis] < shape[axis] && count(&tile).saturating_mul(2) <= TILE {
                tile[axis] *= 2;
            }
        }
        tile
    }

    /// Computes the items of a part in a tile, in C order.
    fn tile_of(&self, node: &Node, tile: &[Range<u64>]) -> Result<Items> {
        self.evaluate(node, tile, &mut vec![None; self.operands.len()])
    }

    /// Computes the items of a part in the region of a tile, in C order. `seen` has the items of the operands that were
    /// read for this tile. So each operand is read once, whose work could multiply in expressions of expressions. Its
    /// region is the same at each place of the tree: that of the tile, except on axes with one item.
    fn evaluate(
        &self,
        node: &Node,
        region: &[Range<u64>],
        seen: &mut [Option<Items>],
    ) -> Result<Items> {
        let mut part = |part: &Node| {
            let items = self.evaluate(part, &part_of(&part.shape, region), seen)?;
            Ok::<_, Error>(repeat(items, &part.shape, region))
        };
        Ok(match &node.step {
            Step::Operand(at) => match &mut seen[*at] {
                Some(items) => items.clone(),
                none => none.insert(self.operands[*at].read(node.of, region)?).clone(),
            },
            Step::Literal(literal) => item_of(*literal, node.of),
            Step::Cast(of) => self.evaluate(of, region, seen)?.cast(node.of),
            Step::Unary(operation, of) => {
                apply::unary(*operation, &self.evaluate(of, region, seen)?)
            }
            Step::Binary(operation, parts) => {
                let [left, right] = &**parts;
                apply::binary(*operation, &part(left)?, &part(right)?)
                    .map_err(|detail| Error::new(ErrorKind::InvalidArgument, EVALUATE, detail))?
            }
            Step::CompareIntegers(comparison, parts) => {
                let [left, right] = &**parts;
                let (one, other) = (part(left)?, part(right)?);
                let (one, other) = (integers_of(left, &one), integers_of(right, &other));
                Items::Bool(apply::compare(*comparison, &one, &other))
            }
            Step::Select(parts) => {
                let [condition, one, other] = &**parts;
                let (condition, one, other) = (part(condition)?, part(one)?, part(other)?);
                let Items::Bool(condition) = condition else {
                    unreachable!("the plan converts the condition to bools")
                };
                Items::select(&condition, &one, &other, count(&lens(region)) as usize)
            }
            Step::Reduce(reduce) => match &reduce.kept {
                None => self.reduce(reduce, region)?,
                Some(kept) => {
                    // Other threads wait for the results.
                    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                    let bytes = match &*kept {
                        Some(bytes) => Arc::clone(bytes),
                        None => {
                            let all: Vec<_> = node.shape.iter().map(|size| 0..*size).collect();
                            let bytes =
                                self.all_of(node, &all, |tile| self.reduce(reduce, tile))?;
                            Arc::clone(kept.insert(Arc::new(bytes)))
                        }
                    };
                    drop(kept);
                    Items::from_bytes(node.of, &cut(&bytes, node.of, &node.shape, region))
                }
            },
        })
    }

    fn reduce(&self, reduce: &Reduce, region: &[Range<u64>]) -> Result<Items> {
        let Reduce { reduction, of, axes, keepdims, .. } = reduce;
        let mut results = region.iter();
        let mut sources = Vec::with_capacity(axes.len());
        for (size, reduced) in of.shape.iter().zip(axes) {
            if *reduced && *keepdims {
                results.next();
            }
            sources.push(match *reduced {
                true => 0..*size,
                false => results.next().cloned().unwrap_or(0..*size),
            });
        }
        // For each axis, the distance of neighbors in the results, and in the positions of `argmin`.
        let (mut strides, mut steps) = (vec![0; axes.len()], vec![0; axes.len()]);
        let (mut stride, mut step) = (1usize, 1usize);
        for axis in (0..axes.len()).rev() {
            let size = (sources[axis].end - sources[axis].start) as usize;
            let (of, next) = match axes[axis] {
                true => (&mut steps, &mut step),
                false => (&mut strides, &mut stride),
            };
            of[axis] = *next;
            *next = next.saturating_mul(size);
        }
        let reduced = sources.iter().zip(axes).filter(|(_, reduced)| **reduced);
        let each: Vec<u64> = reduced.map(|(range, _)| range.end - range.start).collect();
        let results = count(&lens(region)) as usize;
        let mut found = Accumulators::new(*reduction, of.of, results, count(&each) as f64);
        for tile in tiles(&sources, &self.tile(&of.shape)) {
            let items = self.tile_of(of, &tile)?;
            let results = places(within(&tile, &sources), &strides).into_iter();
            let positions = places(within(&tile, &sources), &steps).into_iter();
            found.add(&items, results.zip(positions.map(|at| at as i64)));
        }
        Ok(found.finish())
    }
}

#[cfg(all(test, feature = "c"))]
mod tests;
