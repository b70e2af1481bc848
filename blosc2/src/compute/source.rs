//! The sources of the items of expressions: arrays, views, fields, slices, single values, and closures that compute
//! items from other sources.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::ops::Range;

use super::context::{Access, Context, DOING, Input};
use super::space::Span;
use crate::closures::BoxError;
use crate::dtype::SwapPlan;
use crate::item::element::{Element, make_items, with_bytes_mut};
use crate::ndarray::NDArray;
use crate::ndarray::gather::READ;
use crate::ndarray::places::len_of;
use crate::ndarray::ranges::{broadcast, extent, len_of_box, own_ranges, runs_of};
use crate::ndarray::view::{ItemType, NDArrayView};
use crate::schunk::{NOTHING_FETCHED, Reading};
use crate::{Doing, Error, ErrorKind, Reason, Result, Threads};

/// The items of an expression. This trait is sealed. It is a bound of functions that accept any
/// [`LazyExpr`](super::LazyExpr).
///
/// ```
/// use blosc2::NDArray;
/// use blosc2::compute::{LazyExpr, Source};
///
/// fn spread<S: Source<Item = f64>>(items: &LazyExpr<S>) -> blosc2::Result<f64> {
///     Ok(items.max()? - items.min()?)
/// }
/// let array = NDArray::from_slice(&[1.0, 2.0, 6.0], 3)?;
/// assert_eq!(spread(&array.lazy::<f64>())?, 5.0);
/// assert_eq!(spread(&array.lazy::<f64>().map(|item| item * 10.0))?, 50.0);
/// # Ok::<(), blosc2::Error>(())
/// ```
pub trait Source: Sync + Evaluated<<Self as Source>::Item> {
    /// The type of the items.
    type Item: Copy + Send + Sync;
}

/// The computation of the items of a [`Source`], which are of type `T`. Other crates cannot name this trait, so that they
/// cannot implement [`Source`].
pub trait Evaluated<T> {
    /// The memory of a thread for the evaluation.
    type State: Default + Send;

    /// Checks dtypes and shapes, and returns the shape.
    fn shape(&self) -> Result<Vec<u64>>;

    fn inputs(&self) -> Vec<Input<'_>>;

    /// Returns the array whose items are those of the source, at the same positions.
    #[cfg(feature = "msgpack")]
    fn array(&self) -> Option<&NDArray> {
        None
    }

    /// Returns the repeated item of a box, if all its items are equal and this is known without reading items.
    fn repeated(&self, from: &Access<'_>, ranges: &[Range<u64>]) -> Result<Option<T>>;

    /// Computes the items of a box, in C order. The box is inside the box that was prepared last.
    fn tile<'s>(
        &'s self,
        from: &Access<'_>,
        state: &'s mut Self::State,
        ranges: &[Range<u64>],
    ) -> Result<&'s [T]>;
}

pub(super) struct Worker<'c, S: Source> {
    source: &'c S,
    from: Access<'c>,
    state: S::State,
}

pub(super) enum Found<'a, T> {
    /// All items are equal to this item.
    Repeated(T),
    Items(&'a [T]),
}

impl<'c, S: Source> Worker<'c, S> {
    pub(super) fn new(source: &'c S, from: Access<'c>) -> Self {
        Self { source, from, state: S::State::default() }
    }

    pub(super) fn repeated(&self, ranges: &[Range<u64>]) -> Result<Option<S::Item>> {
        self.source.repeated(&self.from, ranges)
    }

    pub(super) fn prepare(&mut self, ranges: &[Range<u64>]) -> Result<()> {
        self.from.prepare(ranges)
    }

    pub(super) fn tile(&mut self, ranges: &[Range<u64>]) -> Result<&[S::Item]> {
        self.source.tile(&self.from, &mut self.state, ranges)
    }

    /// Calls `visit` with the items of a span, box by box in C order, until it returns `false`. `whole` adds the ranges
    /// of the other axes to those of the span.
    pub(super) fn each_box(
        &mut self,
        span: &Span<'_>,
        whole: impl Fn(&[Range<u64>]) -> Vec<Range<u64>>,
        mut visit: impl FnMut(&[Range<u64>], Found<'_, S::Item>) -> Result<bool>,
    ) -> Result<()> {
        if span.has_several() {
            let ranges = whole(&span.ranges);
            if let Some(item) = self.repeated(&ranges)? {
                return visit(&ranges, Found::Repeated(item)).map(drop);
            }
        }
        let mut goes_on = true;
        span.each_piece(&mut |piece| {
            if !goes_on {
                return Ok(());
            }
            let ranges = whole(piece);
            if let Some(item) = self.repeated(&ranges)? {
                goes_on = visit(&ranges, Found::Repeated(item))?;
                return Ok(());
            }
            self.prepare(&ranges)?;
            span.pieces.each_tile(piece, &mut |tile| {
                if goes_on {
                    let ranges = whole(tile);
                    goes_on = visit(&ranges, Found::Items(self.tile(&ranges)?))?;
                }
                Ok(())
            })
        })
    }
}

/// Starts the evaluation of a source. The default number of threads is the setting of the first array.
pub(super) fn open(source: &impl Source, threads: Option<Threads>) -> Result<Context<'_>> {
    Context::new(source.inputs(), threads)
}

/// A type that can be an operand of an expression, for example of [`zip`](super::zip). The operand has items of type
/// `T`.
///
/// | operand | `T` |
/// |---|---|
/// | `&NDArray`, [`NDArrayView`] | the type that the closure declares for this operand |
/// | [`LazyExpr`](super::LazyExpr) | the item type of the expression |
/// | a slice of items (one-dimensional), [`InMemory`], [`&Reduced`](super::Reduced) | the type of the items |
/// | a number or a `bool` | the type of this number or `bool` |
///
/// ```
/// use blosc2::NDArray;
/// use blosc2::compute::{Operand, zip};
///
/// // Adds up the products of two operands of any kind.
/// fn dot(a: impl Operand<f64>, b: impl Operand<f64>) -> blosc2::Result<f64> {
///     zip((a, b)).map(|(a, b): (f64, f64)| a * b).sum()
/// }
/// let array = NDArray::from_slice(&[1.0, 2.0, 3.0], 3)?;
/// assert_eq!(dot(&array, &[1.0, 0.5, 2.0][..])?, 8.0);
/// assert_eq!(dot(&array, 2.0)?, 12.0);
/// # Ok::<(), blosc2::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an operand with items of type `{T}`",
    note = "operands are `&NDArray`, views, fields, expressions, numbers, `&Reduced` and slices; for items in memory \
            with several axes use `compute::InMemory`"
)]
pub trait Operand<T> {
    /// The source of the items.
    type Source: Source<Item = T>;

    /// Converts the operand to its source. Another type becomes an operand if this method returns the source of one of
    /// its parts, such as an array.
    fn into_source(self) -> Self::Source;
}

/// The items of an array or a view, or a field of these items.
#[derive(Debug, Clone)]
pub struct Items<'a, T> {
    view: NDArrayView<'a>,
    swapped: Option<SwapPlan>,
    item: PhantomData<fn() -> T>,
}

impl<'a, T: Element> Items<'a, T> {
    /// Fails if the dtype of the view is not the dtype of `T`.
    pub(super) fn of(view: NDArrayView<'a>) -> Result<Self, Reason> {
        let swapped = view.check_type(ItemType::of::<T>())?;
        Ok(Self { view, swapped, item: PhantomData })
    }

    pub(super) fn view(&self) -> &NDArrayView<'a> {
        &self.view
    }

    /// Reads the items of a box, in C order, on up to this number of threads.
    pub(super) fn read_box(
        &self,
        threads: Threads,
        reading: &Reading<'_>,
        ranges: &[Range<u64>],
    ) -> Result<Vec<T>> {
        let from = (reading, &NOTHING_FETCHED);
        self.read(ranges, |bytes| self.view.read_box(threads, from, ranges, None, bytes))
    }

    /// Returns the items of a box, whose stored bytes `fill` writes.
    pub(super) fn read(
        &self,
        ranges: &[Range<u64>],
        fill: impl FnOnce(&mut [u8]) -> Result<()>,
    ) -> Result<Vec<T>> {
        let mut items = self.room_for(len_of(&extent(ranges), 1))?;
        self.decode(&mut items, fill)?;
        Ok(items)
    }

    /// Allocates memory for items. The limit on temporary memory of the array applies.
    fn room_for(&self, count: u64) -> Result<Vec<T>> {
        let len = count.saturating_mul(size_of::<T>() as u64);
        self.view.array().schunk().allow_scratch(len).doing(READ)?;
        make_items(count as usize, |_| Ok(())).doing(READ)
    }

    fn new(view: NDArrayView<'a>) -> Self {
        // `shape` returns the error.
        let swapped = view.check_type(ItemType::of::<T>()).doing(READ).ok().flatten();
        Self { view, swapped, item: PhantomData }
    }

    fn decode(&self, items: &mut [T], fill: impl FnOnce(&mut [u8]) -> Result<()>) -> Result<()> {
        with_bytes_mut(items, |bytes| {
            fill(bytes)?;
            if let Some(swapped) = &self.swapped {
                swapped.apply(bytes);
            }
            Ok(())
        })
    }
}

impl<T: Element> Source for Items<'_, T> {
    type Item = T;
}

impl<T: Element> Evaluated<T> for Items<'_, T> {
    type State = Vec<T>;

    fn shape(&self) -> Result<Vec<u64>> {
        self.view.check_type(ItemType::of::<T>()).doing(READ)?;
        Ok(self.view.shape())
    }

    fn inputs(&self) -> Vec<Input<'_>> {
        vec![Input { view: &self.view, itemsize: size_of::<T>() }]
    }

    #[cfg(feature = "msgpack")]
    fn array(&self) -> Option<&NDArray> {
        self.view.is_array().then(|| self.view.array())
    }

    fn repeated(&self, from: &Access<'_>, ranges: &[Range<u64>]) -> Result<Option<T>> {
        let (reading, window) = from.reading(self.view.array());
        let found = self.view.repeated_item((reading, window), ranges)?;
        let Some(bytes) = found else { return Ok(None) };
        let part = self.view.part();
        let bytes = &bytes[part.offset..part.offset + part.len];
        let items = self.read(&[], |to| {
            to.copy_from_slice(bytes);
            Ok(())
        })?;
        Ok(Some(items[0]))
    }

    fn tile<'s>(
        &'s self,
        from: &Access<'_>,
        state: &'s mut Vec<T>,
        ranges: &[Range<u64>],
    ) -> Result<&'s [T]> {
        let count = len_of_box(ranges) as usize;
        if state.len() < count {
            // The old items are not needed.
            *state = Vec::new();
            *state = self.room_for(count as u64)?;
        }
        let items = &mut state[..count];
        self.decode(items, |bytes| from.read(&self.view, ranges, bytes))?;
        Ok(items)
    }
}

macro_rules! views {
    ($($type:ty, $operand:ident => $view:expr;)*) => {$(
        impl<'a, T: Element> Operand<T> for $type {
            type Source = Items<'a, T>;

            fn into_source(self) -> Items<'a, T> {
                let $operand = self;
                Items::new($view)
            }
        }
    )*};
}

views! {
    &'a NDArray, array => array.view();
    NDArrayView<'a>, view => view;
    &NDArrayView<'a>, view => view.clone();
}

/// An operand of items in memory: a slice of items in C order, and their shape.
///
/// ```
/// use blosc2::compute::{InMemory, zip};
/// use blosc2::NDArray;
///
/// let array = NDArray::from_slice(&[1i32, 2, 3, 4, 5, 6], (2, 3))?;
/// let weights = InMemory::new(&[1i32, 10, 100], [3]);
/// let sum = zip((&array, weights)).map(|(item, weight): (i32, i32)| item * weight).sum()?;
/// assert_eq!(sum, 321 + 654);
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct InMemory<'a, T: Copy> {
    items: Cow<'a, [T]>,
    shape: Vec<u64>,
}

impl<'a, T: Copy + Send + Sync> InMemory<'a, T> {
    /// Creates an operand from items in C order. If the number of items does not match the shape, the evaluation of the
    /// expression fails with [`ErrorKind::InvalidArgument`].
    pub fn new(items: &'a [T], shape: impl AsRef<[u64]>) -> Self {
        Self { items: items.into(), shape: shape.as_ref().to_vec() }
    }
}

impl<T: Copy + Send + Sync> Source for InMemory<'_, T> {
    type Item = T;
}

impl<T: Copy + Send + Sync> Evaluated<T> for InMemory<'_, T> {
    type State = Vec<T>;

    fn shape(&self) -> Result<Vec<u64>> {
        if len_of(&self.shape, 1) != self.items.len() as u64 {
            let (shape, found) = (&self.shape, self.items.len());
            let detail = format!("an operand of shape {shape:?} has {found} items");
            return Err(Error::new(ErrorKind::InvalidArgument, DOING, detail));
        }
        Ok(self.shape.clone())
    }

    fn inputs(&self) -> Vec<Input<'_>> {
        Vec::new()
    }

    fn repeated(&self, _: &Access<'_>, _: &[Range<u64>]) -> Result<Option<T>> {
        Ok(match *self.items {
            [item] => Some(item),
            _ => None,
        })
    }

    fn tile<'s>(
        &'s self,
        _: &Access<'_>,
        state: &'s mut Vec<T>,
        ranges: &[Range<u64>],
    ) -> Result<&'s [T]> {
        state.clear();
        for run in runs_of(ranges, &self.shape) {
            let row = &self.items[run.start as usize..run.end as usize];
            if row.len() as u64 == len_of_box(ranges) {
                return Ok(row);
            }
            state.extend_from_slice(row);
        }
        Ok(state)
    }
}

/// A slice is an operand with one axis.
impl<'a, T: Copy + Send + Sync> Operand<T> for &'a [T] {
    type Source = InMemory<'a, T>;

    fn into_source(self) -> InMemory<'a, T> {
        InMemory::new(self, [self.len() as u64])
    }
}

impl<T: Copy + Send + Sync> Operand<T> for InMemory<'_, T> {
    type Source = Self;

    fn into_source(self) -> Self {
        self
    }
}

// A number is an operand without axes.
macro_rules! numbers {
    ($($type:ty)*) => {$(
        impl Operand<$type> for $type {
            type Source = InMemory<'static, $type>;

            fn into_source(self) -> InMemory<'static, $type> {
                InMemory { items: vec![self].into(), shape: Vec::new() }
            }
        }
    )*};
}

numbers! { bool u8 i8 u16 i16 u32 i32 u64 i64 f32 f64 }

#[cfg(feature = "half")]
numbers! { half::f16 }

#[cfg(feature = "num-complex")]
numbers! { num_complex::Complex<f32> num_complex::Complex<f64> }

/// A closure that computes items from other items.
pub(super) trait Function<T>: Sync {
    type Output: Copy + Send + Sync;

    fn apply(
        &self,
        items: impl ExactSizeIterator<Item = T>,
        results: &mut Vec<Self::Output>,
    ) -> Result<(), BoxError>;
}

#[derive(Debug, Clone)]
pub(super) struct Always<F>(pub(super) F);

impl<T, U: Copy + Send + Sync, F: Fn(T) -> U + Sync> Function<T> for Always<F> {
    type Output = U;

    fn apply(
        &self,
        items: impl ExactSizeIterator<Item = T>,
        results: &mut Vec<U>,
    ) -> Result<(), BoxError> {
        results.extend(items.map(&self.0));
        Ok(())
    }
}

#[derive(Debug, Clone)]
pub(super) struct Fallible<F>(pub(super) F);

impl<T, U, E, F> Function<T> for Fallible<F>
where
    U: Copy + Send + Sync,
    E: Into<BoxError>,
    F: Fn(T) -> Result<U, E> + Sync,
{
    type Output = U;

    fn apply(
        &self,
        items: impl ExactSizeIterator<Item = T>,
        results: &mut Vec<U>,
    ) -> Result<(), BoxError> {
        for item in items {
            results.push((self.0)(item).map_err(Into::into)?);
        }
        Ok(())
    }
}

/// An operand that is broadcast to the shape of an expression.
#[derive(Debug, Clone)]
pub(super) struct Broadcast<S> {
    pub(super) source: S,
    /// The shape of the operand; empty if its dtype or shape is not valid.
    own: Vec<u64>,
}

#[derive(Debug)]
pub(super) struct BroadcastState<S: Source> {
    state: S::State,
    items: Vec<S::Item>,
}

impl<S: Source> Default for BroadcastState<S> {
    fn default() -> Self {
        Self { state: S::State::default(), items: Vec::new() }
    }
}

impl<S: Source> Broadcast<S> {
    pub(super) fn new(source: S) -> Self {
        let own = source.shape().unwrap_or_default();
        Self { source, own }
    }

    /// Extends the shape of the other operands, so that this operand can be broadcast to it.
    fn extend(&self, shape: &mut Vec<u64>) -> Result<()> {
        let own = self.source.shape()?;
        let before = shape.clone();
        let added = own.len().saturating_sub(shape.len());
        shape.splice(0..0, std::iter::repeat_n(1, added));
        let skipped = shape.len() - own.len();
        for (size, &own_size) in shape[skipped..].iter_mut().zip(&own) {
            match (*size, own_size) {
                (_, 1) => {}
                (1, own) => *size = own,
                (size, own) if size == own => {}
                _ => {
                    let detail = format!(
                        "operands of the shapes {before:?} and {own:?} cannot be broadcast"
                    );
                    return Err(Error::new(ErrorKind::InvalidArgument, DOING, detail));
                }
            }
        }
        Ok(())
    }

    fn repeated(&self, from: &Access<'_>, ranges: &[Range<u64>]) -> Result<Option<S::Item>> {
        self.source.repeated(from, &own_ranges(&self.own, ranges))
    }

    fn tile<'s>(
        &'s self,
        from: &Access<'_>,
        state: &'s mut BroadcastState<S>,
        ranges: &[Range<u64>],
    ) -> Result<&'s [S::Item]> {
        let own = own_ranges(&self.own, ranges);
        let BroadcastState { state, items } = state;
        let stored = self.source.tile(from, state, &own)?;
        let count = len_of_box(ranges) as usize;
        if stored.len() == count {
            return Ok(stored);
        }
        items.resize(count, stored[0]);
        broadcast(stored, 1, &extent(&own), &extent(ranges), items);
        Ok(items)
    }
}

/// One to four operands, and the closure that computes items from their items.
#[derive(Debug, Clone)]
pub(super) struct Zipped<O, F> {
    pub(super) operands: O,
    pub(super) function: F,
    /// The method whose closure this is.
    pub(super) name: &'static str,
}

/// Arguments of `zipped`: the operands with the names of their items, and how the argument of the closure is made from
/// zipped iterators.
macro_rules! zipped {
    ($first:ident $first_item:ident $($operand:ident $item:ident)*: $argument:ty, |$items:pat_param| $made:expr) => {
        impl<$first, $($operand,)* F> Source for Zipped<(Broadcast<$first>, $(Broadcast<$operand>,)*), F>
        where
            $first: Source,
            $($operand: Source,)*
            F: Function<$argument>,
        {
            type Item = F::Output;
        }

        #[allow(non_snake_case)]
        impl<$first, $($operand,)* F> Evaluated<F::Output>
            for Zipped<(Broadcast<$first>, $(Broadcast<$operand>,)*), F>
        where
            $first: Source,
            $($operand: Source,)*
            F: Function<$argument>,
        {
            type State = (BroadcastState<$first>, $(BroadcastState<$operand>,)* Vec<F::Output>);

            fn shape(&self) -> Result<Vec<u64>> {
                let ($first, $($operand,)*) = &self.operands;
                let mut shape = Vec::new();
                $first.extend(&mut shape)?;
                $($operand.extend(&mut shape)?;)*
                Ok(shape)
            }

            fn inputs(&self) -> Vec<Input<'_>> {
                let ($first, $($operand,)*) = &self.operands;
                [$first.source.inputs(), $($operand.source.inputs(),)*].concat()
            }

            fn repeated(
                &self,
                from: &Access<'_>,
                ranges: &[Range<u64>],
            ) -> Result<Option<F::Output>> {
                let ($first, $($operand,)*) = &self.operands;
                let Some($first_item) = &$first.repeated(from, ranges)? else { return Ok(None) };
                $(let Some($item) = &$operand.repeated(from, ranges)? else { return Ok(None) };)*
                let mut results = Vec::new();
                from.context.call(self.name, || self.function.apply([$made].into_iter(), &mut results))?;
                Ok(results.pop())
            }

            fn tile<'s>(
                &'s self,
                from: &Access<'_>,
                ($first_item, $($item,)* results): &'s mut Self::State,
                ranges: &[Range<u64>],
            ) -> Result<&'s [F::Output]> {
                let ($first, $($operand,)*) = &self.operands;
                let $first = $first.tile(from, $first_item, ranges)?;
                $(let $operand = $operand.tile(from, $item, ranges)?;)*
                results.clear();
                from.context.each_call(self.name, $first.len(), |part| {
                    let items = $first[part.clone()].iter()$(.zip(&$operand[part.clone()]))*;
                    self.function.apply(items.map(|$items| $made), results)
                })?;
                Ok(results)
            }
        }
    };
}

zipped! { A a: A::Item, |a| *a }
zipped! { A a B b: (A::Item, B::Item), |(a, b)| (*a, *b) }
zipped! { A a B b C c: (A::Item, B::Item, C::Item), |((a, b), c)| (*a, *b, *c) }
zipped! { A a B b C c D d: (A::Item, B::Item, C::Item, D::Item), |(((a, b), c), d)| (*a, *b, *c, *d) }
