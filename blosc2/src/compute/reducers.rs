//! The reductions.

use std::array;

use super::context::DOING;
use super::lanes::{Accumulator, GROUPS, Groups, HALF, LANES, Strip, each_strip};
use super::number::Numeric;
use super::reduce::Reducer;
use crate::{Error, ErrorKind, Result};

pub(super) struct Combine<'a, A, R> {
    /// Computes a result from an accumulator and the number of its items. This is not a type parameter, because the
    /// reduction would then be compiled for each closure, and a closure has a separate type for each source and each
    /// form of the results.
    pub(super) finish: &'a (dyn Fn(A, u64) -> Result<R> + Sync),
}

impl<T, A, R> Reducer<T> for Combine<'_, A, R>
where
    T: Copy,
    A: Accumulator<T>,
    R: Clone + Send,
{
    type Accumulator = A;
    type Result = R;

    fn start(&self) -> A {
        A::default()
    }

    fn add(&self, to: &mut A, items: &[T], _: u64) {
        to.add(items);
    }

    fn add_rows(&self, to: &mut [A], rows: &[T], _: u64, _: u64) {
        A::add_rows(to, rows);
    }

    fn add_repeated(&self, to: &mut A, item: T, count: u64, _: u64) {
        to.add_repeated(item, count);
    }

    fn merge(&self, to: &mut A, other: A) {
        to.merge(&other);
    }

    fn finish(&self, from: A, count: u64) -> Result<R> {
        (self.finish)(from, count)
    }

    fn is_done(&self, from: &A) -> bool {
        from.is_done()
    }
}

fn no_items(name: &str) -> Error {
    let detail = format!("`{name}` of no items is not defined");
    Error::new(ErrorKind::InvalidArgument, DOING, detail)
}

/// The smallest or the largest item, or NaN if there is one.
#[derive(Clone, Copy)]
pub(super) struct Extreme<T: Numeric, const LARGEST: bool> {
    best: T,
    pub(super) has_nan: bool,
    /// If `best` is zero: whether an item has the sign of the zero that is wanted. Of zeros of both signs, the smallest
    /// item is the negative one, and the largest item is the positive one.
    has_sign: bool,
}

impl<T: Numeric, const LARGEST: bool> Default for Extreme<T, LARGEST> {
    fn default() -> Self {
        let best = if LARGEST { T::LEAST } else { T::GREATEST };
        Self { best, has_nan: false, has_sign: false }
    }
}

impl<T: Numeric, const LARGEST: bool> Extreme<T, LARGEST> {
    /// Returns the result of at least one item. Items that are NaN are ignored.
    pub(super) fn number(self) -> T {
        self.best.with_sign_of_zero(self.has_sign != LARGEST)
    }

    pub(super) fn finish(self, count: u64) -> Result<T> {
        match count {
            0 => Err(no_items(if LARGEST { "max" } else { "min" })),
            _ if self.has_nan => Ok(T::NAN),
            _ => Ok(self.number()),
        }
    }
}

/// Returns the first item that is not NaN, or the second item if it is better.
#[inline(always)]
fn better<T: Numeric, const LARGEST: bool>(best: T, item: T) -> T {
    let is_better = if LARGEST { best.precedes(item) } else { item.precedes(best) };
    if is_better { item } else { best }
}

/// Returns the best items of the lanes, and which lanes have NaN. The loops process `PART` lanes at a time.
#[inline(never)]
fn extremes<T: Numeric, const LARGEST: bool, const PART: usize>(
    groups: Groups<'_, T>,
) -> ([T; LANES], [T::Mask; LANES]) {
    let start = Extreme::<T, LARGEST>::default().best;
    let mut all = ([start; LANES], [T::Mask::default(); LANES]);
    for from in (0..LANES).step_by(PART) {
        let (mut best, mut nans) = ([start; PART], [T::Mask::default(); PART]);
        for group in groups.part::<PART>(from) {
            for lane in 0..PART {
                best[lane] = better::<T, LARGEST>(best[lane], group[lane]);
                nans[lane] = nans[lane] | group[lane].is_nan().into();
            }
        }
        all.0[from..from + PART].copy_from_slice(&best);
        all.1[from..from + PART].copy_from_slice(&nans);
    }
    all
}

impl<T: Numeric, const LARGEST: bool> Accumulator<T> for Extreme<T, LARGEST> {
    fn lanes(groups: Groups<'_, T>) -> [Self; LANES] {
        let (best, nans) = match size_of::<T>() {
            8 => extremes::<T, LARGEST, HALF>(groups),
            _ => extremes::<T, LARGEST, LANES>(groups),
        };
        let mut lanes = array::from_fn(|lane| Self {
            best: best[lane],
            has_nan: nans[lane].into() != 0,
            has_sign: false,
        });
        // The signs are needed only if the result is zero.
        if best.iter().any(|best| !best.is_nonzero()) {
            let signs = count(groups, |item| item.has_sign() != LARGEST);
            lanes.iter_mut().zip(signs).for_each(|(lane, count)| lane.has_sign = count > 0);
        }
        lanes
    }

    fn add_repeated(&mut self, item: T, _: u64) {
        let has_sign = item.has_sign() != LARGEST;
        self.merge(&Self { best: item, has_nan: item.is_nan(), has_sign });
    }

    fn merge(&mut self, other: &Self) {
        self.best = better::<T, LARGEST>(self.best, other.best);
        self.has_nan |= other.has_nan;
        self.has_sign |= other.has_sign;
    }
}

/// The number of items of the part that is searched for the position of the best item.
const PART: usize = 4096;

/// The position of the first smallest or largest item, or of the first NaN.
pub(super) struct ArgExtreme<const LARGEST: bool>;

#[derive(Debug, Clone, Copy)]
pub(super) struct Best<T> {
    /// Not used if the best item is NaN.
    item: T,
    is_nan: bool,
    at: u64,
}

impl<T: Numeric> Best<T> {
    /// The best of some items. The position is that of the first item.
    fn of<const LARGEST: bool>(
        Extreme { best, has_nan, .. }: Extreme<T, LARGEST>,
        at: u64,
    ) -> Self {
        Self { item: best, is_nan: has_nan, at }
    }

    fn put<const LARGEST: bool>(to: &mut Option<Self>, other: Self) {
        if to.as_ref().is_none_or(|before| other.is_better_than::<LARGEST>(before)) {
            *to = Some(other);
        }
    }

    fn is_better_than<const LARGEST: bool>(&self, before: &Self) -> bool {
        let is_before = self.at < before.at;
        match (self.is_nan, before.is_nan) {
            (true, true) => is_before,
            (false, false) if self.item == before.item => is_before,
            (false, false) if LARGEST => before.item.is_less(self.item),
            (false, false) => self.item.is_less(before.item),
            (is_nan, _) => is_nan,
        }
    }

    /// Finds the best item, which is one of these. The first of them is at the position of the best item, and the others
    /// follow at the distance `step`.
    fn find<'a>(&mut self, mut items: impl Iterator<Item = &'a T>, step: u64)
    where
        T: 'a,
    {
        let (best, is_nan) = (self.item, self.is_nan);
        let found = items.position(|item| if is_nan { item.is_nan() } else { *item == best });
        self.at += found.unwrap_or_default() as u64 * step;
    }
}

impl<T: Numeric, const LARGEST: bool> Reducer<T> for ArgExtreme<LARGEST> {
    type Accumulator = Option<Best<T>>;
    type Result = u64;
    const POSITIONS: bool = true;

    fn start(&self) -> Self::Accumulator {
        None
    }

    fn add(&self, to: &mut Self::Accumulator, items: &[T], at: u64) {
        // The part of the items that contains the best item. It is searched at the end.
        let mut found = None;
        for (part, at) in items.chunks(PART).zip((at..).step_by(PART)) {
            let mut extreme = Extreme::<T, LARGEST>::default();
            extreme.add(part);
            let best = Best::of(extreme, at);
            if to.as_ref().is_none_or(|before| best.is_better_than::<LARGEST>(before)) {
                *to = Some(best);
                found = Some(part);
            }
        }
        if let (Some(part), Some(best)) = (found, to) {
            best.find(part.iter(), 1);
        }
    }

    fn add_rows(&self, to: &mut [Self::Accumulator], rows: &[T], at: u64, step: u64) {
        // The positions of the rows of a strip are not known, so each call has the rows of one strip.
        let width = to.len();
        for (number, rows) in rows.chunks(width * GROUPS).enumerate() {
            let at = at + (number * GROUPS) as u64 * step;
            // The position of the best item is not less than `at`, so few columns are searched.
            let is_candidate = |to: &Self::Accumulator, best: &Best<T>| {
                to.as_ref().is_none_or(|before| best.is_better_than::<LARGEST>(before))
            };
            each_strip(rows, width, &mut |strip| match strip {
                Strip::Groups(column, groups) => {
                    let best = Extreme::<T, LARGEST>::lanes(groups).map(|all| Best::of(all, at));
                    let to = &mut to[column..column + LANES];
                    if !to.iter().zip(&best).any(|(to, best)| is_candidate(to, best)) {
                        return;
                    }
                    let rows = first_equal(groups, &best.map(|best| best.item));
                    for (lane, (to, mut best)) in to.iter_mut().zip(best).enumerate() {
                        match best.is_nan {
                            true => best.find(groups.lane(lane), step),
                            false => best.at += rows[lane] * step,
                        }
                        Best::put::<LARGEST>(to, best);
                    }
                }
                Strip::Column(column, items) => {
                    let mut extreme = Extreme::<T, LARGEST>::default();
                    extreme.add(items);
                    let mut best = Best::of(extreme, at);
                    if is_candidate(&to[column], &best) {
                        best.find(items.iter(), step);
                        Best::put::<LARGEST>(&mut to[column], best);
                    }
                }
            });
        }
    }

    fn add_repeated(&self, to: &mut Self::Accumulator, item: T, _: u64, at: u64) {
        Best::put::<LARGEST>(to, Best { item, is_nan: item.is_nan(), at });
    }

    fn merge(&self, to: &mut Self::Accumulator, other: Self::Accumulator) {
        other.into_iter().for_each(|other| Best::put::<LARGEST>(to, other));
    }

    fn finish(&self, from: Self::Accumulator, _: u64) -> Result<u64> {
        let name = if LARGEST { "argmax" } else { "argmin" };
        from.map(|best| best.at).ok_or_else(|| no_items(name))
    }
}

/// Returns the number of the first group with an item that is equal to `item`, for each lane.
#[inline(never)]
fn first_equal<T: Numeric>(groups: Groups<'_, T>, item: &[T; LANES]) -> [u64; LANES] {
    let mut before = [T::Mask::default(); LANES];
    let mut is_before = [T::Mask::from(true); LANES];
    for group in groups.iter() {
        for lane in 0..LANES {
            is_before[lane] = is_before[lane] & (group[lane] != item[lane]).into();
            before[lane] = before[lane] + is_before[lane];
        }
    }
    before.map(Into::into)
}

#[inline(never)]
pub(super) fn count<T: Numeric>(
    groups: Groups<'_, T>,
    is_counted: impl Fn(T) -> bool,
) -> [u64; LANES] {
    let mut counts = [T::Mask::default(); LANES];
    for group in groups.iter() {
        for lane in 0..LANES {
            counts[lane] = counts[lane] + is_counted(group[lane]).into();
        }
    }
    counts.map(Into::into)
}

/// The number of items that are not zero (`NONZERO` is `true`), or that are zero (`NONZERO` is `false`). With `FIRST`,
/// items may be left out after the first of them.
#[derive(Clone, Default)]
pub(super) struct Count<const NONZERO: bool, const FIRST: bool>(pub(super) u64);

impl<T: Numeric, const NONZERO: bool, const FIRST: bool> Accumulator<T> for Count<NONZERO, FIRST> {
    fn lanes(groups: Groups<'_, T>) -> [Self; LANES] {
        count(groups, |item| item.is_nonzero() == NONZERO).map(Self)
    }

    fn add_repeated(&mut self, item: T, count: u64) {
        self.0 += if item.is_nonzero() == NONZERO { count } else { 0 };
    }

    fn merge(&mut self, other: &Self) {
        self.0 += other.0;
    }

    fn is_done(&self) -> bool {
        FIRST && self.0 > 0
    }
}

pub(super) struct Fold<A, F, C> {
    pub(super) start: A,
    pub(super) fold: F,
    pub(super) combine: C,
}

impl<T, A, F, C> Reducer<T> for Fold<A, F, C>
where
    T: Copy,
    A: Clone + Send + Sync,
    F: Fn(A, T) -> A + Sync,
    C: Fn(A, A) -> A + Sync,
{
    type Accumulator = Option<A>;
    type Result = A;
    const CALLS: Option<&'static str> = Some("fold");

    fn start(&self) -> Option<A> {
        None
    }

    fn add(&self, to: &mut Option<A>, items: &[T], _: u64) {
        let start = to.take().unwrap_or_else(|| self.start.clone());
        *to = Some(items.iter().fold(start, |all, item| (self.fold)(all, *item)));
    }

    fn add_repeated(&self, to: &mut Option<A>, item: T, count: u64, _: u64) {
        let start = to.take().unwrap_or_else(|| self.start.clone());
        *to = Some((0..count).fold(start, |all, _| (self.fold)(all, item)));
    }

    fn merge(&self, to: &mut Option<A>, other: Option<A>) {
        *to = match (to.take(), other) {
            (Some(one), Some(other)) => Some((self.combine)(one, other)),
            (one, other) => one.or(other),
        };
    }

    fn finish(&self, from: Option<A>, _: u64) -> Result<A> {
        Ok(from.unwrap_or_else(|| self.start.clone()))
    }
}
