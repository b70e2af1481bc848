//! The evaluation of reductions over some axes of an expression.

use std::ops::Range;
use std::slice;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::axes::{Axes, AxisPlan, Group};
use super::context::{Access, Context, DOING, ITEMS_OF_A_CALL};
use super::source::{Found, Source, Worker, open};
use super::space::Span;
use crate::item::element::{Element, bytes_of};
use crate::ndarray::boxes::{Readings, Sources};
use crate::ndarray::ranges::{copy_part, each_part, len_of_box, runs_of};
use crate::ndarray::{NDArray, NDArrayBuilder, parallel};
use crate::schunk::{Fetched, Window, fetch_ahead};
use crate::support::memory::reserve;
use crate::{Doing, Result, Threads};

/// The minimum number of tiles of results for which each thread computes entire tiles. With fewer tiles, the threads
/// work on parts of the reduced axes.
///
/// This constant does not depend on the number of threads, because it determines the order of some operations.
const TILES: u64 = 64;
/// The maximum size in bytes of the accumulators of a thread. Each accumulator counts as at least 128 bytes.
const ACCUMULATORS: usize = 4 << 20;

/// Combines items to one result.
pub trait Reducer<T>: Sync {
    /// The intermediate state of a result, for which some items are combined.
    type Accumulator: Send;
    type Result: Clone + Send;

    const POSITIONS: bool = false;

    /// The method whose closures combine the items; `None` if no closures are called. A panic in the other functions of
    /// this trait then becomes an error of the evaluation.
    const CALLS: Option<&'static str> = None;

    /// The size of an accumulator in bytes.
    fn size(&self) -> usize {
        size_of::<Self::Accumulator>()
    }

    fn start(&self) -> Self::Accumulator;

    /// Adds items. The first item has the position `at` in C order among the items that are combined to one result.
    fn add(&self, to: &mut Self::Accumulator, items: &[T], at: u64);

    /// Adds the items of rows. Each item is added to the accumulator whose index is the index of the item in the row.
    /// The items of the first row have the position `at`, and the items of the second row the position `at + step`.
    fn add_rows(&self, to: &mut [Self::Accumulator], rows: &[T], at: u64, step: u64) {
        for (row, at) in rows.chunks_exact(to.len()).zip((at..).step_by(step.max(1) as usize)) {
            let items = to.iter_mut().zip(row);
            items.for_each(|(to, item)| self.add(to, slice::from_ref(item), at));
        }
    }

    /// Adds an item `count` times. `count` is at least 1.
    fn add_repeated(&self, to: &mut Self::Accumulator, item: T, count: u64, at: u64);

    /// Adds the items of another accumulator. In C order they follow the items of this accumulator.
    fn merge(&self, to: &mut Self::Accumulator, other: Self::Accumulator);

    fn finish(&self, from: Self::Accumulator, count: u64) -> Result<Self::Result>;

    /// Whether further items do not change the result.
    fn is_done(&self, _: &Self::Accumulator) -> bool {
        false
    }
}

pub(super) struct Reduction<'a, S, R> {
    source: &'a S,
    context: Context<'a>,
    reducer: R,
    axes: AxisPlan,
}

/// Starts the evaluation of a source, and plans its reduction over these axes, or over all axes. This part is
/// independent of the reducer.
fn plan<'a, S: Source>(
    source: &'a S,
    threads: Option<Threads>,
    axes: Option<&Axes>,
    most: u64,
) -> Result<(Context<'a>, AxisPlan)> {
    let shape = source.shape()?;
    let reduced =
        axes.map_or_else(|| Ok((0..shape.len()).collect()), |axes| axes.resolve(shape.len()))?;
    let context = open(source, threads)?;
    let keepdims = axes.is_some_and(|axes| axes.keepdims);
    let space = context.space::<S::Item>(&shape)?;
    Ok((context, AxisPlan::new(space, reduced, keepdims, most)))
}

impl<S, R> Sources for Reduction<'_, S, R> {
    fn readings(&self) -> &Readings<'_> {
        self.context.readings()
    }
}

impl<'a, S: Source, R: Reducer<S::Item>> Reduction<'a, S, R> {
    pub(super) fn new(
        source: &'a S,
        threads: Option<Threads>,
        reducer: R,
        axes: Option<&Axes>,
    ) -> Result<Self> {
        let most = (ACCUMULATORS / reducer.size().max(128)).max(1) as u64;
        let (context, axes) = plan(source, threads, axes, most)?;
        Ok(Self { source, context, reducer, axes })
    }

    pub(super) fn shape(&self) -> Vec<u64> {
        self.axes.result_shape()
    }

    /// Creates an array of the results. Threads compute the results block by block.
    pub(super) fn store(self, builder: NDArrayBuilder) -> Result<NDArray>
    where
        R::Result: Element,
    {
        let (dtype, size) = (R::Result::dtype().to_string(), size_of::<R::Result>());
        builder.create_from(&self.shape(), (&dtype, size), self, |all, new| {
            let workers = Mutex::new(Vec::new());
            let fill = |ranges: &[Range<u64>], bytes: &mut [u8]| {
                let kept = all.axes.kept_ranges(ranges);
                each_part(&kept, &all.axes.sides_of(&kept), &mut |part| {
                    let worker = workers.lock().pop();
                    let mut worker = worker.unwrap_or_else(|| all.worker(&[]));
                    let results = all.results_of(&mut worker, part)?;
                    copy_part(&bytes_of(&results), size, (part, &kept), bytes);
                    workers.lock().push(worker);
                    Ok(())
                })
            };
            new.by_chunks(&|team, scratch, number| team.by_blocks(scratch, number, &fill))
        })
    }

    pub(super) fn results(&self) -> Result<Vec<R::Result>> {
        let (shape, tiles) = (self.axes.kept_shape(), self.axes.tiles());
        // A result can have memory outside of its type, such as a histogram.
        let size = size_of::<R::Result>().max(self.reducer.size());
        let len = self.context.allowed_len(&shape, size)?;
        let mut all = Vec::new();
        reserve(&mut all, len).doing(DOING)?;
        let all = Mutex::new(all);
        let put = |ranges: &[Range<u64>], results: Vec<R::Result>| {
            let Some(first) = results.first() else { return };
            let mut all = all.lock();
            if all.is_empty() {
                all.resize(len, first.clone());
            }
            let places = runs_of(ranges, &shape).flatten();
            places.zip(results).for_each(|(at, result)| all[at as usize] = result);
        };
        if tiles.count() >= TILES {
            let worker = || Ok(self.worker(&[]));
            let count = tiles.count() as usize;
            parallel::each(self.context.threads, count, worker, |worker, number| {
                if let Some(Span { ranges, .. }) = tiles.get(number as u64) {
                    put(&ranges, self.results_of(worker, &ranges)?);
                }
                Ok(())
            })?;
            return Ok(all.into_inner());
        }
        for Span { ranges, .. } in tiles.iter() {
            put(&ranges, self.results_of_threads(&ranges)?);
        }
        Ok(all.into_inner())
    }

    /// Computes the results in a box of the kept axes on several threads. The spans are combined in C order.
    fn results_of_threads(&self, ranges: &[Range<u64>]) -> Result<Vec<R::Result>> {
        let spans = self.axes.spans();
        let mut all = self.start(ranges);
        let done = AtomicBool::new(false);
        let wanted = |number: usize, window: &mut Window<'_>| match spans.get(number as u64) {
            Some(span) => self.context.wanted(&self.axes.ranges(ranges, &span.ranges), window),
            None => Ok(()),
        };
        // From a storage with a high latency, the blocks of the next spans are fetched at the same time.
        let sources = self.context.sources();
        fetch_ahead(&sources, spans.count() as usize, wanted, |numbers, window| {
            parallel::ordered(
                self.context.threads,
                numbers.len(),
                || Ok(self.worker(window)),
                |worker, number| match spans.get((numbers.start + number) as u64) {
                    Some(span) if !done.load(Ordering::Relaxed) => {
                        self.accumulators_of(worker, ranges, &span)
                    }
                    _ => Ok(Vec::new()),
                },
                |accumulators| {
                    self.merge(&mut all, accumulators)?;
                    done.store(self.are_done(&all), Ordering::Relaxed);
                    Ok(())
                },
            )?;
            Ok(!done.load(Ordering::Relaxed))
        })?;
        self.finish(all)
    }

    fn merge(&self, to: &mut [R::Accumulator], other: Vec<R::Accumulator>) -> Result<()> {
        let mut pairs = to.iter_mut().zip(other);
        pairs.try_for_each(|(to, other)| self.call(|| self.reducer.merge(to, other)))
    }

    fn call(&self, work: impl FnOnce()) -> Result<()> {
        match R::CALLS {
            Some(name) => self.context.call(name, || {
                work();
                Ok(())
            }),
            None => {
                work();
                Ok(())
            }
        }
    }

    /// Calls a function of the reducer for `len` items: for parts of them, if it calls closures.
    fn each_part(&self, len: u64, mut work: impl FnMut(Range<u64>)) -> Result<()> {
        let most = if R::CALLS.is_some() { ITEMS_OF_A_CALL as u64 } else { len };
        let mut start = 0;
        while start < len {
            let end = len.min(start.saturating_add(most));
            self.call(|| work(start..end))?;
            start = end;
        }
        Ok(())
    }

    /// Computes the results in a box of the kept axes on this thread.
    fn results_of(
        &self,
        worker: &mut Worker<'_, S>,
        ranges: &[Range<u64>],
    ) -> Result<Vec<R::Result>> {
        let spans = self.axes.spans();
        let mut all = self.start(ranges);
        // The spans are combined in the same order as by several threads.
        for span in spans.iter() {
            self.merge(&mut all, self.accumulators_of(worker, ranges, &span)?)?;
            if self.are_done(&all) {
                break;
            }
        }
        self.finish(all)
    }

    /// Combines the items of a span of the reduced axes, for the results in a box of the kept axes.
    fn accumulators_of(
        &self,
        worker: &mut Worker<'_, S>,
        kept: &[Range<u64>],
        span: &Span<'_>,
    ) -> Result<Vec<R::Accumulator>> {
        let mut to = self.start(kept);
        let whole = |reduced: &[Range<u64>]| self.axes.ranges(kept, reduced);
        worker.each_box(span, whole, |ranges, found| {
            let at = self.axes.position(ranges);
            match found {
                Found::Repeated(item) => {
                    let count = len_of_box(ranges) / to.len() as u64;
                    for to in &mut to {
                        self.each_part(count, |part| {
                            self.reducer.add_repeated(to, item, part.end - part.start, at);
                        })?;
                    }
                }
                Found::Items(items) => {
                    self.walk(&self.axes.groups(ranges, R::POSITIONS), &mut to, items, at)?;
                }
            }
            Ok(!self.are_done(&to))
        })?;
        Ok(to)
    }

    fn worker<'s>(&'s self, window: &'s [Fetched]) -> Worker<'s, S> {
        Worker::new(self.source, Access::new(&self.context, window, &[]))
    }

    fn are_done(&self, all: &[R::Accumulator]) -> bool {
        all.iter().all(|each| self.reducer.is_done(each))
    }

    fn start(&self, ranges: &[Range<u64>]) -> Vec<R::Accumulator> {
        (0..len_of_box(ranges)).map(|_| self.reducer.start()).collect()
    }

    fn finish(&self, accumulators: Vec<R::Accumulator>) -> Result<Vec<R::Result>> {
        let count = self.axes.count();
        accumulators.into_iter().map(|each| self.reducer.finish(each, count)).collect()
    }

    /// Adds the items of rows. If closures are called, each call has some rows, or a part of a row.
    fn add_rows(
        &self,
        to: &mut [R::Accumulator],
        items: &[S::Item],
        at: u64,
        step: u64,
    ) -> Result<()> {
        let width = to.len();
        let rows = match R::CALLS {
            Some(_) => (ITEMS_OF_A_CALL / width).max(1),
            None => items.len() / width,
        };
        for (number, items) in items.chunks(width * rows).enumerate() {
            let at = at + (number * rows) as u64 * step;
            self.each_part(width as u64, |part| {
                let part = part.start as usize..part.end as usize;
                let items = if part.len() == width { items } else { &items[part.clone()] };
                self.reducer.add_rows(&mut to[part], items, at, step);
            })?;
        }
        Ok(())
    }

    fn walk(
        &self,
        groups: &[Group],
        to: &mut [R::Accumulator],
        items: &[S::Item],
        at: u64,
    ) -> Result<()> {
        match *groups {
            [Group { is_kept: true, .. }] => self.add_rows(to, items, at, 0),
            [Group { is_kept: false, step, .. }, Group { is_kept: true, .. }] => {
                self.add_rows(to, items, at, step)
            }
            // The positions of consecutive items may not be consecutive.
            [Group { is_kept: false, step, .. }] if R::POSITIONS && step != 1 => {
                let each = items.iter().zip((at..).step_by(step as usize));
                each.for_each(|(item, at)| {
                    self.reducer.add(&mut to[0], slice::from_ref(item), at);
                });
                Ok(())
            }
            [] | [_] => self.each_part(items.len() as u64, |part| {
                let items = &items[part.start as usize..part.end as usize];
                self.reducer.add(&mut to[0], items, at + part.start);
            }),
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
