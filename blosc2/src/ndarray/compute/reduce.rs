//! The evaluation of reductions over some axes of an expression.

use std::ops::Range;
use std::slice;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::super::parallel;
use super::context::{Context, DOING};
use super::source::{Source, count, each_row, space};
use super::space::{Pieces, Space};
use crate::Result;
use crate::memory::reserve;

/// The minimum number of tiles of results for which each thread computes entire tiles. With fewer tiles, the threads
/// work on parts of the reduced axes.
///
/// This constant does not depend on the number of threads, because it determines the order of some operations.
const TILES: u64 = 64;
/// The maximum size in bytes of the accumulators of a thread.
const ACCUMULATORS: usize = 4 << 20;
/// The size in bytes that tiles grow to, so that each accumulator is used for several items of a tile.
const TILE: u64 = 1 << 20;

/// Returns the maximum number of results that a thread computes at the same time. Each accumulator counts as at least
/// 128 bytes, because it can allocate memory.
fn most_results<A>() -> u64 {
    (ACCUMULATORS / size_of::<A>().max(128)).max(1) as u64
}

/// Combines items to one result.
pub trait Reducer<T>: Sync {
    /// The intermediate state of a result, for which some items are combined.
    type Accumulator: Send;
    type Result: Clone + Send;

    /// Whether the reduction uses the positions of items.
    const POSITIONS: bool = false;
    /// Whether the result depends on the order in which items are combined and accumulators are merged.
    const ORDERED: bool = false;

    fn start(&self) -> Self::Accumulator;

    /// Adds items. The first item has the position `at` in C order among the items that are combined to one result.
    fn add(
        &self,
        context: &Context<'_>,
        to: &mut Self::Accumulator,
        items: &[T],
        at: u64,
    ) -> Result<()>;

    /// Adds the items of rows. Each item is added to the accumulator whose index is the index of the item in the row.
    /// The items of the first row have the position `at`, and the items of the second row the position `at + step`.
    fn add_rows(
        &self,
        context: &Context<'_>,
        to: &mut [Self::Accumulator],
        rows: &[T],
        at: u64,
        step: u64,
    ) -> Result<()> {
        for (row, at) in rows.chunks_exact(to.len()).zip((at..).step_by(step.max(1) as usize)) {
            for (to, item) in to.iter_mut().zip(row) {
                self.add(context, to, slice::from_ref(item), at)?;
            }
        }
        Ok(())
    }

    /// Adds an item `count` times. `count` is at least 1.
    fn add_repeated(
        &self,
        context: &Context<'_>,
        to: &mut Self::Accumulator,
        item: T,
        count: u64,
        at: u64,
    ) -> Result<()>;

    /// Adds the items of another accumulator. In C order they follow the items of this accumulator.
    fn merge(
        &self,
        context: &Context<'_>,
        to: &mut Self::Accumulator,
        other: Self::Accumulator,
    ) -> Result<()>;

    /// Returns the result of `count` items.
    fn finish(&self, from: Self::Accumulator, count: u64) -> Result<Self::Result>;

    /// Whether further items do not change the result.
    fn is_done(&self, _: &Self::Accumulator) -> bool {
        false
    }
}

/// The axes of a reduction. This part is independent of the types of the items and the results, so that it is compiled
/// only once.
struct AxisPlan {
    space: Space,
    /// The axes that are reduced, and all other axes.
    reduced: Vec<usize>,
    kept: Vec<usize>,
    /// For each axis, the distance between the positions of neighboring items on this axis.
    steps: Vec<u64>,
    /// The maximum number of results that a thread computes at the same time.
    most: u64,
}

impl AxisPlan {
    fn new(mut space: Space, reduced: Vec<usize>, most: u64) -> Self {
        let shape = space.shape().to_vec();
        let kept: Vec<usize> = (0..shape.len()).filter(|axis| !reduced.contains(axis)).collect();
        space.limit(&kept, most);
        if !kept.is_empty() {
            // The accumulators and the items of a tile may not fit in the cache together. With larger tiles, each
            // accumulator is used for several items.
            space.grow(&reduced, TILE);
        }
        let (mut steps, mut step) = (vec![0; shape.len()], 1u64);
        for &axis in reduced.iter().rev() {
            steps[axis] = step;
            step = step.saturating_mul(shape[axis]);
        }
        Self { space, reduced, kept, steps, most }
    }

    /// Returns the size of the kept axes.
    fn shape(&self) -> Vec<u64> {
        self.kept.iter().map(|&axis| self.space.shape()[axis]).collect()
    }

    /// Returns the number of items that are combined to one result.
    fn count(&self) -> u64 {
        let sizes = self.reduced.iter().map(|&axis| self.space.shape()[axis]);
        sizes.fold(1, |all, size| all.saturating_mul(size))
    }

    /// Returns the boxes of results that threads compute.
    fn tiles(&self) -> Pieces<'_> {
        self.space.tiles(&self.kept)
    }

    /// Returns the pieces of the reduced axes.
    fn pieces(&self) -> Pieces<'_> {
        self.space.pieces(&self.reduced)
    }

    /// Divides a box of results into smaller boxes, so that the accumulators of each box need little memory.
    fn parts_of(&self, ranges: &[Range<u64>]) -> Vec<Vec<Range<u64>>> {
        let mut parts = vec![ranges.to_vec()];
        for axis in 0..ranges.len() {
            let Some(first) = parts.first().filter(|part| count(part) as u64 > self.most) else {
                break;
            };
            let inner = count(&first[axis + 1..]) as u64;
            let step = (self.most / inner.max(1)).max(1);
            let cut = |part: &Vec<Range<u64>>| {
                let Range { start, end } = part[axis];
                let starts = (start..end).step_by(step as usize);
                let part = part.clone();
                starts.map(move |start| {
                    let mut part = part.clone();
                    part[axis] = start..end.min(start + step);
                    part
                })
            };
            parts = parts.iter().flat_map(cut).collect();
        }
        parts
    }

    fn ranges(&self, kept: &[Range<u64>], reduced: &[Range<u64>]) -> Vec<Range<u64>> {
        let mut ranges = vec![0..0; self.space.shape().len()];
        for (axes, from) in [(&self.kept, kept), (&self.reduced, reduced)] {
            axes.iter().zip(from).for_each(|(&axis, range)| ranges[axis] = range.clone());
        }
        ranges
    }

    /// Returns the position of the first item of a box among the items that are combined to its result.
    fn position(&self, ranges: &[Range<u64>]) -> u64 {
        ranges.iter().zip(&self.steps).map(|(range, step)| range.start * step).sum()
    }

    /// Returns the axes of a tile. Neighboring axes that can be processed as one axis are joined. With `positions`, the
    /// positions of the items on this axis are evenly spaced.
    fn groups(&self, ranges: &[Range<u64>], positions: bool) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        for (axis, range) in ranges.iter().enumerate() {
            let len = (range.end - range.start) as usize;
            if len == 1 {
                continue;
            }
            let (is_kept, step) = (self.kept.contains(&axis), self.steps[axis]);
            match groups.last_mut() {
                Some(last)
                    if last.is_kept == is_kept
                        && (is_kept || !positions || last.step == step * len as u64) =>
                {
                    *last = Group { len: last.len * len, step, ..*last };
                }
                _ => groups.push(Group { len, is_kept, step }),
            }
        }
        groups
    }
}

/// A reduction of the items of a source over some axes.
pub(super) struct Reduction<'a, S, R> {
    source: &'a S,
    context: Context<'a>,
    reducer: R,
    axes: AxisPlan,
}

impl<'a, S: Source, R: Reducer<S::Item>> Reduction<'a, S, R> {
    pub(super) fn new(
        source: &'a S,
        context: Context<'a>,
        reducer: R,
        shape: &[u64],
        reduced: Vec<usize>,
    ) -> Result<Self> {
        let most = most_results::<R::Accumulator>();
        let axes = AxisPlan::new(space(source, shape)?, reduced, most);
        Ok(Self { source, context, reducer, axes })
    }

    pub(super) fn context(&self) -> &Context<'a> {
        &self.context
    }

    /// Divides a box of results into smaller boxes, so that the accumulators of each box need little memory.
    pub(super) fn parts_of(&self, ranges: &[Range<u64>]) -> Vec<Vec<Range<u64>>> {
        self.axes.parts_of(ranges)
    }

    /// Returns all results, in C order.
    pub(super) fn results(&self) -> Result<Vec<R::Result>> {
        let (shape, tiles) = (self.axes.shape(), self.axes.tiles());
        let len = self.context.allowed_len::<R::Result>(&shape)?;
        let mut all = Vec::new();
        reserve(&mut all, len, DOING)?;
        let all = Mutex::new(all);
        let put = |ranges: &[Range<u64>], results: Vec<R::Result>| {
            let Some(first) = results.first() else { return };
            let mut all = all.lock();
            if all.is_empty() {
                all.resize(len, first.clone());
            }
            let mut results = results.into_iter();
            each_row(ranges, &shape, &mut |at, len| {
                all[at..at + len].iter_mut().zip(&mut results).for_each(|(to, from)| *to = from);
            });
        };
        if tiles.count() >= TILES {
            let scratch = || Ok(S::State::default());
            let count = tiles.count() as usize;
            parallel::each(self.context.threads, count, scratch, |state, number| {
                if let Some(ranges) = tiles.get(number as u64) {
                    put(&ranges, self.results_of(state, &ranges)?);
                }
                Ok(())
            })?;
            return Ok(all.into_inner());
        }
        for ranges in (0..tiles.count()).filter_map(|number| tiles.get(number)) {
            let accumulators =
                if R::ORDERED { self.in_order(&ranges)? } else { self.in_any_order(&ranges)? };
            put(&ranges, self.finish(accumulators)?);
        }
        Ok(all.into_inner())
    }

    /// Combines the items of a box of the kept axes. The pieces are combined in C order.
    fn in_order(&self, ranges: &[Range<u64>]) -> Result<Vec<R::Accumulator>> {
        let pieces = self.axes.pieces();
        let mut all = self.start(ranges);
        parallel::ordered(
            self.context.threads,
            pieces.count() as usize,
            || Ok(S::State::default()),
            |state, number| {
                let mut accumulators = self.start(ranges);
                if let Some(piece) = pieces.get(number as u64) {
                    self.add_piece(state, &mut accumulators, ranges, &piece)?;
                }
                Ok(accumulators)
            },
            |accumulators| self.merge(&mut all, accumulators),
        )?;
        Ok(all)
    }

    fn in_any_order(&self, ranges: &[Range<u64>]) -> Result<Vec<R::Accumulator>> {
        let pieces = self.axes.pieces();
        let parts = Mutex::new(vec![self.start(ranges)]);
        let done = AtomicBool::new(false);
        parallel::each(
            self.context.threads,
            pieces.count() as usize,
            || Ok(S::State::default()),
            |state, number| {
                let Some(piece) = pieces.get(number as u64) else { return Ok(()) };
                if done.load(Ordering::Relaxed) {
                    return Ok(());
                }
                let part = parts.lock().pop();
                let mut part = part.unwrap_or_else(|| self.start(ranges));
                self.add_piece(state, &mut part, ranges, &piece)?;
                if part.iter().all(|each| self.reducer.is_done(each)) {
                    done.store(true, Ordering::Relaxed);
                }
                parts.lock().push(part);
                Ok(())
            },
        )?;
        let mut parts = parts.into_inner().into_iter();
        let mut all = parts.next().unwrap_or_else(|| self.start(ranges));
        parts.try_for_each(|part| self.merge(&mut all, part))?;
        Ok(all)
    }

    fn merge(&self, to: &mut [R::Accumulator], other: Vec<R::Accumulator>) -> Result<()> {
        let mut pairs = to.iter_mut().zip(other);
        pairs.try_for_each(|(to, other)| self.reducer.merge(&self.context, to, other))
    }

    /// Computes the results in a box of the kept axes on this thread.
    pub(super) fn results_of(
        &self,
        state: &mut S::State,
        ranges: &[Range<u64>],
    ) -> Result<Vec<R::Result>> {
        let pieces = self.axes.pieces();
        let mut all = self.start(ranges);
        for piece in (0..pieces.count()).filter_map(|number| pieces.get(number)) {
            if R::ORDERED {
                // The pieces are combined in the same order as by several threads.
                let mut accumulators = self.start(ranges);
                self.add_piece(state, &mut accumulators, ranges, &piece)?;
                self.merge(&mut all, accumulators)?;
            } else {
                self.add_piece(state, &mut all, ranges, &piece)?;
            }
        }
        self.finish(all)
    }

    fn start(&self, ranges: &[Range<u64>]) -> Vec<R::Accumulator> {
        (0..count(ranges)).map(|_| self.reducer.start()).collect()
    }

    fn finish(&self, accumulators: Vec<R::Accumulator>) -> Result<Vec<R::Result>> {
        let count = self.axes.count();
        accumulators.into_iter().map(|each| self.reducer.finish(each, count)).collect()
    }

    /// Adds the items of a box, which consists of ranges of the kept axes and of the reduced axes.
    fn add_piece(
        &self,
        state: &mut S::State,
        to: &mut [R::Accumulator],
        kept: &[Range<u64>],
        piece: &[Range<u64>],
    ) -> Result<()> {
        let ranges = self.axes.ranges(kept, piece);
        if let Some(item) = self.source.repeated(&self.context, &ranges)? {
            let count = piece.iter().map(|range| range.end - range.start).product();
            let at = self.axes.position(&ranges);
            return to
                .iter_mut()
                .try_for_each(|to| self.reducer.add_repeated(&self.context, to, item, count, at));
        }
        self.source.prepare(&self.context, state, &ranges)?;
        self.axes.pieces().each_tile(piece, &mut |tile| {
            let ranges = self.axes.ranges(kept, tile);
            let items = self.source.tile(&self.context, state, &ranges)?;
            let groups = self.axes.groups(&ranges, R::POSITIONS);
            self.walk(&groups, to, items, self.axes.position(&ranges))
        })
    }

    fn walk(
        &self,
        groups: &[Group],
        to: &mut [R::Accumulator],
        items: &[S::Item],
        at: u64,
    ) -> Result<()> {
        let (reducer, context) = (&self.reducer, &self.context);
        match *groups {
            [Group { is_kept: true, .. }] => reducer.add_rows(context, to, items, at, 0),
            [Group { is_kept: false, step, .. }, Group { is_kept: true, .. }] => {
                reducer.add_rows(context, to, items, at, step)
            }
            // The positions of consecutive items may not be consecutive.
            [Group { is_kept: false, step, .. }] if R::POSITIONS && step != 1 => {
                let mut each = items.iter().zip((at..).step_by(step as usize));
                each.try_for_each(|(item, at)| {
                    reducer.add(context, &mut to[0], slice::from_ref(item), at)
                })
            }
            [] | [_] => reducer.add(context, &mut to[0], items, at),
            [Group { len, is_kept, step }, ref inner @ ..] => {
                let (results, len) = (to.len() / if is_kept { len } else { 1 }, items.len() / len);
                for (number, items) in items.chunks_exact(len).enumerate() {
                    match is_kept {
                        true => {
                            self.walk(inner, &mut to[number * results..][..results], items, at)?
                        }
                        false => self.walk(inner, to, items, at + number as u64 * step)?,
                    }
                }
                Ok(())
            }
        }
    }
}

/// Some neighboring axes of a tile, which are all kept or all reduced.
#[derive(Debug, Clone, Copy)]
struct Group {
    len: usize,
    is_kept: bool,
    /// The distance between the positions of neighboring items.
    step: u64,
}
