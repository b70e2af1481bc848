//! The reductions.

use super::context::{Context, DOING, ITEMS_OF_A_CALL};
use super::number::{Accumulator, Numeric, each_in_rows};
use super::reduce::Reducer;
use crate::{Error, ErrorKind, Result};

/// A reduction by accumulators.
pub(super) struct Combine<'a, A, R, const ORDERED: bool> {
    /// Computes a result from an accumulator and the number of its items. This is not a type parameter, because the
    /// reduction would then be compiled for each closure, and a closure has a separate type for each source and each
    /// form of the results.
    pub(super) finish: &'a (dyn Fn(A, u64) -> Result<R> + Sync),
}

impl<T, A, R, const ORDERED: bool> Reducer<T> for Combine<'_, A, R, ORDERED>
where
    T: Copy,
    A: Accumulator<T>,
    R: Clone + Send,
{
    type Accumulator = A;
    type Result = R;
    const ORDERED: bool = ORDERED;

    fn start(&self) -> A {
        A::default()
    }

    fn add(&self, _: &Context<'_>, to: &mut A, items: &[T], _: u64) -> Result<()> {
        to.add(items);
        Ok(())
    }

    fn add_rows(&self, _: &Context<'_>, to: &mut [A], rows: &[T], _: u64, _: u64) -> Result<()> {
        A::add_rows(to, rows);
        Ok(())
    }

    fn add_repeated(&self, _: &Context<'_>, to: &mut A, item: T, count: u64, _: u64) -> Result<()> {
        to.add_repeated(item, count);
        Ok(())
    }

    fn merge(&self, _: &Context<'_>, to: &mut A, other: A) -> Result<()> {
        to.merge(&other);
        Ok(())
    }

    fn finish(&self, from: A, count: u64) -> Result<R> {
        (self.finish)(from, count)
    }

    fn is_done(&self, from: &A) -> bool {
        from.is_done()
    }
}

/// The number of items that are compared at once.
const LANES: usize = 16;

/// The smallest or the largest key of some items, and the key of a NaN among them.
type Extremes<K> = Option<(K, Option<K>)>;

/// Returns the smallest or the largest key of some items, and the key of a NaN among them.
pub(super) fn extreme<T: Numeric, const LARGEST: bool>(items: &[T]) -> Extremes<T::Key> {
    let first = items.first()?.key();
    let (mut keys, mut nans) = ([first; LANES], [false; LANES]);
    let (lanes, rest) = items.as_chunks::<LANES>();
    for items in lanes {
        for lane in 0..LANES {
            let key = items[lane].key();
            keys[lane] = better::<_, LARGEST>(keys[lane], key);
            nans[lane] |= items[lane].is_nan();
        }
    }
    for item in rest {
        keys[0] = better::<_, LARGEST>(keys[0], item.key());
        nans[0] |= item.is_nan();
    }
    let best = keys.into_iter().fold(first, better::<_, LARGEST>);
    let nan = if nans.contains(&true) { items.iter().filter_map(nan_key).max() } else { None };
    Some((best, nan))
}

fn nan_key<T: Numeric>(item: &T) -> Option<T::Key> {
    item.is_nan().then(|| item.key())
}

fn better<K: Ord, const LARGEST: bool>(one: K, other: K) -> K {
    if LARGEST { one.max(other) } else { one.min(other) }
}

fn no_items(name: &str) -> Error {
    let detail = format!("`{name}` of no items is not defined");
    Error::new(ErrorKind::InvalidArgument, DOING, detail)
}

/// The smallest or the largest item, or NaN if there is one.
#[derive(Clone)]
pub(super) struct Extreme<K, const LARGEST: bool>(Extremes<K>);

impl<K, const LARGEST: bool> Default for Extreme<K, LARGEST> {
    fn default() -> Self {
        Self(None)
    }
}

impl<K: Ord + Copy, const LARGEST: bool> Extreme<K, LARGEST> {
    fn put(&mut self, other: Extremes<K>) {
        self.0 = match (self.0, other) {
            (Some((one, nan)), Some((other, other_nan))) => {
                Some((better::<_, LARGEST>(one, other), nan.max(other_nan)))
            }
            (one, other) => one.or(other),
        };
    }

    pub(super) fn finish<T: Numeric<Key = K>>(self) -> Result<T> {
        match self.0 {
            Some((key, nan)) => Ok(T::from_key(nan.unwrap_or(key))),
            None => Err(no_items(if LARGEST { "max" } else { "min" })),
        }
    }
}

impl<T: Numeric, const LARGEST: bool> Accumulator<T> for Extreme<T::Key, LARGEST> {
    fn add(&mut self, items: &[T]) {
        self.put(extreme::<T, LARGEST>(items));
    }

    fn add_rows(to: &mut [Self], rows: &[T]) {
        each_in_rows(to, rows, |to, item| to.put(Some((item.key(), nan_key(&item)))));
    }

    fn add_repeated(&mut self, item: T, _: u64) {
        self.put(Some((item.key(), nan_key(&item))));
    }

    fn merge(&mut self, other: &Self) {
        self.put(other.0);
    }
}

/// The number of items of the part that is searched for the position of the best item.
const PART: usize = 4096;

/// The position of the first smallest or largest item, or of the first NaN.
pub(super) struct ArgExtreme<const LARGEST: bool>;

/// The best item so far.
#[derive(Debug, Clone, Copy)]
pub(super) struct Best<K> {
    key: K,
    is_nan: bool,
    at: u64,
}

impl<K: Ord + Copy> Best<K> {
    fn put<const LARGEST: bool>(to: &mut Option<Self>, other: Self) {
        if to.as_ref().is_none_or(|before| other.is_better_than::<LARGEST>(before)) {
            *to = Some(other);
        }
    }

    fn is_better_than<const LARGEST: bool>(&self, other: &Self) -> bool {
        let order = if LARGEST { self.key.cmp(&other.key) } else { other.key.cmp(&self.key) };
        match (self.is_nan, other.is_nan) {
            (true, true) => self.at < other.at,
            (false, false) => order.then(other.at.cmp(&self.at)).is_gt(),
            (is_nan, _) => is_nan,
        }
    }
}

impl<T: Numeric, const LARGEST: bool> Reducer<T> for ArgExtreme<LARGEST> {
    type Accumulator = Option<Best<T::Key>>;
    type Result = u64;
    const POSITIONS: bool = true;

    fn start(&self) -> Self::Accumulator {
        None
    }

    fn add(&self, _: &Context<'_>, to: &mut Self::Accumulator, items: &[T], at: u64) -> Result<()> {
        // The part of the items that contains the best item. It is searched at the end.
        let mut found = None;
        for (part, at) in items.chunks(PART).zip((at..).step_by(PART)) {
            let Some((key, nan)) = extreme::<T, LARGEST>(part) else { continue };
            // Zeros of both signs are equal.
            let key = T::from_key(key).equal_key();
            let best = Best { key, is_nan: nan.is_some(), at };
            if to.as_ref().is_none_or(|before| best.is_better_than::<LARGEST>(before)) {
                *to = Some(best);
                found = Some((part, best));
            }
        }
        let Some((part, best)) = found else { return Ok(()) };
        let is_best = |item: &T| match best.is_nan {
            true => item.is_nan(),
            false => item.equal_key() == best.key,
        };
        if let Some(place) = part.iter().position(is_best) {
            *to = Some(Best { at: best.at + place as u64, ..best });
        }
        Ok(())
    }

    fn add_rows(
        &self,
        _: &Context<'_>,
        to: &mut [Self::Accumulator],
        rows: &[T],
        at: u64,
        step: u64,
    ) -> Result<()> {
        let mut at = at;
        for row in rows.chunks_exact(to.len()) {
            for (to, item) in to.iter_mut().zip(row) {
                let best = Best { key: item.equal_key(), is_nan: item.is_nan(), at };
                Best::put::<LARGEST>(to, best);
            }
            at += step;
        }
        Ok(())
    }

    fn add_repeated(
        &self,
        _: &Context<'_>,
        to: &mut Self::Accumulator,
        item: T,
        _: u64,
        at: u64,
    ) -> Result<()> {
        Best::put::<LARGEST>(to, Best { key: item.equal_key(), is_nan: item.is_nan(), at });
        Ok(())
    }

    fn merge(
        &self,
        _: &Context<'_>,
        to: &mut Self::Accumulator,
        other: Self::Accumulator,
    ) -> Result<()> {
        other.into_iter().for_each(|other| Best::put::<LARGEST>(to, other));
        Ok(())
    }

    fn finish(&self, from: Self::Accumulator, _: u64) -> Result<u64> {
        let name = if LARGEST { "argmax" } else { "argmin" };
        from.map(|best| best.at).ok_or_else(|| no_items(name))
    }
}

/// The number of items that are not zero.
#[derive(Clone, Default)]
pub(super) struct CountNonzero(pub(super) u64);

impl<T: Numeric> Accumulator<T> for CountNonzero {
    fn add(&mut self, items: &[T]) {
        // The compiler vectorizes sums of bytes. A byte can count up to 255 items.
        for items in items.chunks(usize::from(u8::MAX)) {
            self.0 += u64::from(items.iter().map(|item| u8::from(item.is_nonzero())).sum::<u8>());
        }
    }

    fn add_rows(to: &mut [Self], rows: &[T]) {
        each_in_rows(to, rows, |to, item| to.0 += u64::from(item.is_nonzero()));
    }

    fn add_repeated(&mut self, item: T, count: u64) {
        self.0 += if item.is_nonzero() { count } else { 0 };
    }

    fn merge(&mut self, other: &Self) {
        self.0 += other.0;
    }
}

/// Whether there is an item that is not zero (`NONZERO` is `true`), or an item that is zero (`NONZERO` is `false`).
#[derive(Clone, Default)]
pub(super) struct Has<const NONZERO: bool>(pub(super) bool);

impl<T: Numeric, const NONZERO: bool> Accumulator<T> for Has<NONZERO> {
    fn add(&mut self, items: &[T]) {
        self.0 = self.0 || items.iter().any(|item| item.is_nonzero() == NONZERO);
    }

    fn add_rows(to: &mut [Self], rows: &[T]) {
        each_in_rows(to, rows, |to, item| to.0 |= item.is_nonzero() == NONZERO);
    }

    fn add_repeated(&mut self, item: T, _: u64) {
        self.0 |= item.is_nonzero() == NONZERO;
    }

    fn merge(&mut self, other: &Self) {
        self.0 |= other.0;
    }

    fn is_done(&self) -> bool {
        self.0
    }
}

/// Closures that combine items.
pub(super) struct Fold<A, F, C> {
    pub(super) start: A,
    pub(super) fold: F,
    pub(super) combine: C,
}

const FOLD: &str = "fold";

impl<T, A, F, C> Reducer<T> for Fold<A, F, C>
where
    T: Copy,
    A: Clone + Send + Sync,
    F: Fn(A, T) -> A + Sync,
    C: Fn(A, A) -> A + Sync,
{
    type Accumulator = Option<A>;
    type Result = A;
    const ORDERED: bool = true;

    fn start(&self) -> Option<A> {
        None
    }

    fn add(&self, context: &Context<'_>, to: &mut Option<A>, items: &[T], _: u64) -> Result<()> {
        context.each_call(FOLD, items.len(), |part| {
            let start = to.take().unwrap_or_else(|| self.start.clone());
            *to = Some(items[part].iter().fold(start, |all, item| (self.fold)(all, *item)));
            Ok(())
        })
    }

    fn add_repeated(
        &self,
        context: &Context<'_>,
        to: &mut Option<A>,
        item: T,
        count: u64,
        _: u64,
    ) -> Result<()> {
        let mut left = count;
        while left > 0 {
            let len = left.min(ITEMS_OF_A_CALL as u64);
            context.call(FOLD, || {
                let start = to.take().unwrap_or_else(|| self.start.clone());
                *to = Some((0..len).fold(start, |all, _| (self.fold)(all, item)));
                Ok(())
            })?;
            left -= len;
        }
        Ok(())
    }

    fn add_rows(
        &self,
        context: &Context<'_>,
        to: &mut [Option<A>],
        rows: &[T],
        _: u64,
        _: u64,
    ) -> Result<()> {
        let width = to.len();
        context.each_call(FOLD, rows.len(), |part| {
            for at in part {
                let to = &mut to[at % width];
                let start = to.take().unwrap_or_else(|| self.start.clone());
                *to = Some((self.fold)(start, rows[at]));
            }
            Ok(())
        })
    }

    fn merge(&self, context: &Context<'_>, to: &mut Option<A>, other: Option<A>) -> Result<()> {
        *to = match (to.take(), other) {
            (Some(one), Some(other)) => {
                Some(context.call(FOLD, || Ok((self.combine)(one, other)))?)
            }
            (one, other) => one.or(other),
        };
        Ok(())
    }

    fn finish(&self, from: Option<A>, _: u64) -> Result<A> {
        Ok(from.unwrap_or_else(|| self.start.clone()))
    }
}
