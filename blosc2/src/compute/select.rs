//! Selection of items by a predicate.

use std::ops::{Range, RangeBounds};
use std::sync::atomic::{AtomicU64, Ordering};

use super::LazyExpr;
#[cfg(feature = "msgpack")]
use super::bounds::{Excluded, Within};
use super::context::{Access, DOING};
use super::number::Real;
use super::source::{Always, Broadcast, Found, Function, Source, Worker, Zipped, open};
use super::space::Span;
use crate::ndarray::parallel;
use crate::ndarray::ranges::{len_of_box, runs_of};
use crate::support::memory::reserve;
use crate::{Doing, Error, ErrorKind, Result};

const SELECT: &str = "select";

/// Without the feature `msgpack`, indexes cannot be read.
#[cfg(not(feature = "msgpack"))]
enum Excluded {}

#[cfg(not(feature = "msgpack"))]
impl Excluded {
    fn has(&self, _: &[Range<u64>]) -> bool {
        match *self {}
    }
}

/// The number of items in a group. A group without selected items is skipped, and a group of selected items only is
/// added without further checks.
const GROUP: usize = 64;
const NONE: [bool; GROUP] = [false; GROUP];
const ALL: [bool; GROUP] = [true; GROUP];

/// The items of an expression for which a predicate is true, in C order. [`LazyExpr::select`] returns this selection.
///
/// Each call of a method except [`mask`](Self::mask) evaluates the expression, and fails with the [errors of
/// evaluation](LazyExpr#errors-of-evaluation). The results of [`items`](Self::items),
/// [`indices`](Self::indices) and [`coords`](Self::coords) have the same limit of memory as
/// [`LazyExpr::read`]: [`ErrorKind::TooLarge`]. The list of the runs of consecutive results has the same limit.
///
/// ```
/// use blosc2::NDArray;
///
/// let array = NDArray::from_slice(&[3, 50, 7, 80], (2, 2))?;
/// let large = array.lazy::<i32>().select(|item| item > 10);
/// assert_eq!(large.items()?, [50, 80]);
/// assert_eq!(large.coords()?, [[0, 1], [1, 1]]);
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "a selection does nothing until a method evaluates it"]
pub struct Select<S, P> {
    mask: LazyExpr<Zipped<(Broadcast<S>,), Always<P>>>,
    /// The range of the selected items, if the predicate is a range.
    #[cfg(feature = "msgpack")]
    within: Option<Within>,
}

impl<S: Source, P: Fn(S::Item) -> bool + Sync> Select<S, P> {
    pub(super) fn new(expression: LazyExpr<S>, predicate: P) -> Self {
        Self {
            mask: expression.with(SELECT, Always(predicate)),
            #[cfg(feature = "msgpack")]
            within: None,
        }
    }

    /// Computes the selected items.
    pub fn items(&self) -> Result<Vec<S::Item>> {
        self.collect(|_, item| item)
    }

    /// Computes the flat index (in C order) of each selected item. NumPy: `flatnonzero`.
    #[doc(alias = "flatnonzero")]
    pub fn indices(&self) -> Result<Vec<u64>> {
        self.collect(|index, _| index)
    }

    /// Computes the coordinates of the selected items, in C order. `N` is the number of axes.
    /// [`Selection::points`](crate::Selection::points) accepts these coordinates. NumPy: `argwhere`.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: the expression does not have `N` axes.
    #[doc(alias("argwhere", "nonzero"))]
    pub fn coords<const N: usize>(&self) -> Result<Vec<[u64; N]>> {
        let shape = self.mask.shape()?;
        let Ok(shape) = <[u64; N]>::try_from(&shape[..]) else {
            let detail = format!("the items have {} axes, asked for {N} coordinates", shape.len());
            return Err(Error::new(ErrorKind::InvalidArgument, DOING, detail));
        };
        self.collect(|mut index, _| {
            let mut coords = [0; N];
            for axis in (0..N).rev() {
                coords[axis] = index % shape[axis];
                index /= shape[axis];
            }
            coords
        })
    }

    /// Counts the selected items.
    pub fn count(&self) -> Result<u64> {
        let Some(excluded) = self.excluded() else { return self.mask.count_nonzero() };
        let Zipped { operands: (Broadcast { source, .. },), function, .. } = &self.mask.source;
        let shape = source.shape()?;
        let context = open(source, self.mask.threads)?;
        let space = context.space::<S::Item>(&shape)?;
        let axes: Vec<usize> = (0..shape.len()).collect();
        let spans = space.pieces(&axes).spans();
        let make = |worker: &mut Worker<'_, S>, number: usize| {
            let mut count = 0;
            let Some(span) = spans.get(number as u64) else { return Ok(count) };
            each_box(worker, &span, Some(&excluded), |ranges, found| {
                count += match found {
                    Found::Repeated(item) if (function.0)(item) => len_of_box(ranges),
                    Found::Repeated(_) => 0,
                    Found::Items(items) => {
                        items.iter().filter(|&&item| (function.0)(item)).count() as u64
                    }
                };
                Ok(())
            })?;
            Ok(count)
        };
        let (worker, mut all) = (|| Ok(Worker::new(source, Access::new(&context, &[], &[]))), 0);
        let count = spans.count() as usize;
        parallel::ordered(context.threads, count, worker, make, |count| {
            all += count;
            Ok(())
        })?;
        Ok(all)
    }

    /// The boxes that an index excludes; `None` if there is no index that can be used.
    #[cfg(feature = "msgpack")]
    fn excluded(&self) -> Option<Excluded> {
        let Zipped { operands: (Broadcast { source, .. },), .. } = &self.mask.source;
        Excluded::read(source.array()?, self.within.as_ref()?)
    }

    #[cfg(not(feature = "msgpack"))]
    fn excluded(&self) -> Option<Excluded> {
        None
    }

    /// Returns an expression of the boolean mask: for each item, whether the item is selected.
    ///
    /// [`create`](LazyExpr::create) stores the mask as a compressed array. [`read`](LazyExpr::read) returns the mask in
    /// memory, for example for [`Selection::mask`](crate::Selection::mask).
    ///
    /// ```
    /// use blosc2::{NDArray, Selection};
    ///
    /// let array = NDArray::builder().arange(0i32, 6, 1)?;
    /// let mask = array.lazy::<i32>().select(|item| item % 3 == 0).mask();
    /// assert_eq!(mask.read()?, [true, false, false, true, false, false]);
    /// assert_eq!(array.read::<Vec<i32>>(Selection::mask(&mask.read()?))?, [0, 3]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    pub fn mask(self) -> LazyExpr<impl Source<Item = bool>> {
        self.mask
    }

    /// Returns `result` of the index and the value of each selected item, in C order.
    fn collect<R: Copy + Send>(&self, result: impl Fn(u64, S::Item) -> R + Sync) -> Result<Vec<R>> {
        let Zipped { operands: (Broadcast { source, .. },), function, .. } = &self.mask.source;
        let shape = source.shape()?;
        let excluded = self.excluded();
        let context = open(source, self.mask.threads)?;
        let space = context.space::<S::Item>(&shape)?;
        let axes: Vec<usize> = (0..shape.len()).collect();
        let spans = space.pieces(&axes).spans();
        let mut all = Vec::new();
        // The results of the spans with the same range of the first axis. In C order, the items of these spans
        // alternate.
        let mut slab = Slab { first: 0, runs: Vec::new(), results: Vec::new() };
        let total = AtomicU64::new(0);
        // Called before results are added. It bounds the memory of all pieces together.
        let admit = |found: &mut Slab<R>, more: u64| {
            let count = total.fetch_add(more, Ordering::Relaxed).saturating_add(more);
            context.allowed_len(&[count], size_of::<R>())?;
            reserve(&mut found.results, usize::try_from(more).unwrap_or(usize::MAX)).doing(DOING)
        };
        let runs = AtomicU64::new(0);
        // A run can be as short as one result, and takes more memory than some results.
        let admit_runs = |more: usize| {
            let count = runs.fetch_add(more as u64, Ordering::Relaxed).saturating_add(more as u64);
            context.allowed_len(&[count], size_of::<Run>()).map(drop)
        };
        let make = |(worker, chosen): &mut (Worker<'_, S>, Vec<bool>), number: usize| {
            let mut found = Slab { first: 0, runs: Vec::new(), results: Vec::new() };
            let Some(span) = spans.get(number as u64) else { return Ok(found) };
            found.first = span.ranges.first().map_or(0, |range| range.start);
            each_box(worker, &span, excluded.as_ref(), |ranges, items| {
                match items {
                    Found::Repeated(item) => {
                        if !context.call(SELECT, || Ok((function.0)(item)))? {
                            return Ok(());
                        }
                        admit(&mut found, len_of_box(ranges))?;
                        admit_runs(runs_of(ranges, &shape).count())?;
                        found.add_rows((ranges, &shape), |to, indices| {
                            to.extend(indices.map(|index| result(index, item)));
                        })?;
                    }
                    Found::Items(items) => {
                        chosen.clear();
                        context.each_call(SELECT, items.len(), |part| {
                            function.apply(items[part].iter().copied(), chosen)
                        })?;
                        admit(&mut found, chosen.iter().map(|&chosen| u64::from(chosen)).sum())?;
                        let (before, mut done) = (found.runs.len(), 0);
                        found.add_rows((ranges, &shape), |to, indices| {
                            let first = done;
                            done += (indices.end - indices.start) as usize;
                            let at = |at| result(indices.start + at as u64, items[first + at]);
                            add_chosen(&chosen[first..done], to, at);
                        })?;
                        admit_runs(found.runs.len() - before)?;
                    }
                }
                Ok(())
            })?;
            Ok(found)
        };
        let worker = || Ok((Worker::new(source, Access::new(&context, &[], &[])), Vec::new()));
        let count = spans.count() as usize;
        parallel::ordered(context.threads, count, worker, make, |found| {
            if found.runs.is_empty() {
                return Ok(());
            }
            if found.first != slab.first {
                slab.move_to(&mut all)?;
                slab.first = found.first;
            }
            let before = slab.results.len();
            let moved = found.runs.into_iter();
            let moved = moved.map(|(start, at)| (start, at.start + before..at.end + before));
            reserve(&mut slab.runs, moved.len()).doing(DOING)?;
            slab.runs.extend(moved);
            reserve(&mut slab.results, found.results.len()).doing(DOING)?;
            slab.results.extend(found.results);
            Ok(())
        })?;
        slab.move_to(&mut all)?;
        Ok(all)
    }
}

impl<S: Source<Item: Real + PartialOrd>> LazyExpr<S> {
    pub(super) fn within<R: RangeBounds<S::Item> + Sync>(
        self,
        range: R,
    ) -> Select<S, impl Fn(S::Item) -> bool + Sync> {
        #[cfg(feature = "msgpack")]
        let within = Within::new(&range);
        Select {
            mask: self.with(SELECT, Always(move |item| range.contains(&item))),
            #[cfg(feature = "msgpack")]
            within,
        }
    }
}

/// Calls `visit` with the items of a span, box by box in C order, except boxes that an index excludes.
fn each_box<S: Source>(
    worker: &mut Worker<'_, S>,
    span: &Span<'_>,
    excluded: Option<&Excluded>,
    mut visit: impl FnMut(&[Range<u64>], Found<'_, S::Item>) -> Result<()>,
) -> Result<()> {
    let Some(excluded) = excluded else {
        return worker
            .each_box(span, <[_]>::to_vec, |ranges, found| visit(ranges, found).map(|()| true));
    };
    span.each_piece(&mut |piece| {
        if excluded.has(piece) {
            return Ok(());
        }
        if let Some(item) = worker.repeated(piece)? {
            return visit(piece, Found::Repeated(item));
        }
        worker.prepare(piece)?;
        span.pieces.each_tile(piece, &mut |tile| match excluded.has(tile) {
            true => Ok(()),
            false => visit(tile, Found::Items(worker.tile(tile)?)),
        })
    })
}

/// Adds the results of the chosen items of a row. `at` returns the result of an item.
fn add_chosen<R: Copy>(chosen: &[bool], to: &mut Vec<R>, at: impl Fn(usize) -> R) {
    for (number, group) in chosen.chunks(GROUP).enumerate() {
        let first = number * GROUP;
        // Most groups have no selected items, or only selected items.
        if group == &NONE[..group.len()] {
            continue;
        }
        if group == &ALL[..group.len()] {
            to.extend((first..first + group.len()).map(&at));
            continue;
        }
        for (number, word) in group.chunks(8).enumerate() {
            let mut bytes = [0; 8];
            bytes.iter_mut().zip(word).for_each(|(to, chosen)| *to = u8::from(*chosen));
            let mut left = u64::from_le_bytes(bytes);
            while left != 0 {
                to.push(at(first + number * 8 + left.trailing_zeros() as usize / 8));
                left &= left - 1;
            }
        }
    }
}

/// A run of items: the index of its first item in C order, and the range of its results.
type Run = (u64, Range<usize>);

/// Results that are not yet in C order.
struct Slab<R> {
    /// The first index on the first axis.
    first: u64,
    runs: Vec<Run>,
    results: Vec<R>,
}

impl<R: Copy> Slab<R> {
    /// Adds the results of a box. `add` adds the results of the items with these indices, which are consecutive.
    fn add_rows(
        &mut self,
        (ranges, shape): (&[Range<u64>], &[u64]),
        mut add: impl FnMut(&mut Vec<R>, Range<u64>),
    ) -> Result<()> {
        for indices in runs_of(ranges, shape) {
            let (start, before) = (indices.start, self.results.len());
            add(&mut self.results, indices);
            if self.results.len() > before {
                reserve(&mut self.runs, 1).doing(DOING)?;
                self.runs.push((start, before..self.results.len()));
            }
        }
        Ok(())
    }

    /// Moves the results to the end of `all`, in C order.
    fn move_to(&mut self, all: &mut Vec<R>) -> Result<()> {
        reserve(all, self.results.len()).doing(DOING)?;
        self.runs.sort_unstable_by_key(|(start, _)| *start);
        for (_, range) in self.runs.drain(..) {
            all.extend_from_slice(&self.results[range]);
        }
        self.results.clear();
        Ok(())
    }
}
