//! Computations on arrays: reductions, elementwise operations, and selection of the items that satisfy a condition.
//!
//! A computation reads its arrays block by block, and can use several threads. It starts with [`NDArray::lazy`] or
//! [`zip`]. [`LazyExpr`] describes the rules.

mod assign;
mod axes;
#[cfg(feature = "msgpack")]
mod bounds;
mod context;
mod cumulative;
mod describe;
mod diff;
mod evaluate;
mod histogram;
mod lanes;
mod matmul;
mod number;
mod output;
mod product;
mod reduce;
mod reducers;
mod select;
mod sort;
mod source;
mod space;
mod spill;
mod sum;

use std::ops::RangeBounds;

use crate::closures::BoxError;
use crate::ndarray::index::PerAxis;
use crate::ndarray::view::NDArrayView;
use crate::ndarray::{NDArray, NDArrayBuilder};
use crate::{Element, Result, Threads};

pub use axes::Axes;
pub use describe::Description;
pub use number::{Numeric, Real};
pub use output::{Output, Reduced, StoredAxes};
pub use select::Select;
pub use source::{InMemory, Operand, Source};

use context::MAP;
use lanes::Accumulator;
use number::Reducible;
use reducers::{ArgExtreme, Combine, Count, Extreme, Fold};
use source::{Always, Broadcast, Fallible, Zipped};

/// A lazily evaluated expression: items that are computed from the items of arrays. They are computed block by block,
/// when a method reads, stores or reduces them. Python: `LazyExpr`.
///
/// [`NDArray::lazy`] returns the expression of the items of an array. [`zip`] combines several operands, and
/// [`map`](Self::map) applies a closure to each item. Only methods that return a [`Result`] read items.
///
/// During an evaluation, each thread needs memory for a few blocks, and never for an entire operand. A chunk that
/// stores only a repeated value (zeros, NaN or another value) is not decompressed. A closure may be called only once
/// for many equal items. Therefore it must return the same result for the same item.
///
/// ```
/// use blosc2::NDArray;
/// use blosc2::compute::zip;
///
/// let a = NDArray::builder().linspace(0.0f64, 1.0, 1_000_001)?;
/// let b = NDArray::builder().full(2.0f64, 1_000_001)?;
/// // No intermediate array is created.
/// let sum = zip((&a, &b)).map(|(x, y): (f64, f64)| x * y + 1.0).sum()?;
/// assert_eq!(sum, 2_000_002.0);
/// # Ok::<(), blosc2::Error>(())
/// ```
///
/// # Reductions
/// A reduction, such as [`sum`](Self::sum), combines items. The type parameter `O` of the expression determines the
/// result:
///
/// | call | `O` | result |
/// |---|---|---|
/// | none (default) | `()` | one value, which combines all items |
/// | [`axes`](Self::axes) | [`Axes`] | a [`Reduced`] (values with a shape); the items are combined over these axes |
/// | [`axes`](Self::axes), then [`builder`](Self::builder) | [`StoredAxes`] | these values in a new array |
///
/// The types of the results are the same as in NumPy; [`Numeric`] lists them. NaN has the same effect as in NumPy.
///
/// # Accuracy
/// **The result does not depend on the number of threads.** The errors of sums, means and variances are limited:
///
/// | result | error, before the result is rounded to its type |
/// |---|---|
/// | sum of integers | none; the sum wraps around in its type, as in NumPy |
/// | mean of integers | none, for up to 2^63 items; the mean is rounded once to `f64` |
/// | sum of `f64` | at most one rounding (2^-53 of the sum), plus 2^-64 of the sum of the magnitudes of the items |
/// | sum of `f16` or `f32` | at most 2^-46 of the sum of the magnitudes of the items; the sum is computed in `f64` |
/// | mean of floats | the error of the sum divided by the number of items, and one rounding of the division in `f64` |
/// | variance | for up to 2^32 items at most 2^-36 of the variance, and typically 2^-50, also if all items are far from zero |
///
/// The real and the imaginary parts of complex items are summed separately. As in NumPy, a sum of `f64` items can be
/// infinite or NaN if the sum of some of the items is too large for `f64`, even if the sum of all items is not. The same
/// is true for a variance of `f64` items if squares of their distances are too large, and tiny squares can be lost.
///
/// [`sum`](Self::sum), [`mean`](Self::mean), [`var`](Self::var), [`std`](Self::std), [`prod`](Self::prod) and
/// [`fold`](Self::fold) combine the items in a fixed order, which is not C order:
/// 1. The items are divided into groups. A group contains the items of some blocks of a chunk, or of one or more
///    complete chunks.
/// 2. Within a group, a few neighboring blocks are combined at a time. These blocks form one box. `fold` combines the
///    items of the box in C order.
/// 3. The results of the groups are combined, in C order of the positions of the groups in the array.
///
/// This order and the result depend on the shapes, chunk shapes and block shapes of the arrays, including an array in
/// which the results are stored, and on which chunks store only a repeated item. They do not depend on the number of
/// threads. With other shapes, a result of floating-point items can differ in its last bits.
///
/// # Threads
/// [`threads`](Self::threads) sets the number of threads that evaluate an expression. The default is
/// [`DParams::threads`](crate::DParams::threads) of the first array. If an expression is an operand of another
/// expression, the setting of the operand has no effect. If the result is a new array,
/// [`CParams::threads`](crate::CParams::threads) of the builder sets the number of threads.
///
/// # Errors of evaluation
/// The methods that return a [`Result`] fail with the [errors of reads](NDArray#errors-of-reads) of the arrays, and
/// with the following errors. The section `# Errors` of a method contains only additional errors.
/// - [`ErrorKind::TypeMismatch`](crate::ErrorKind::TypeMismatch): the dtype of an array is not the dtype of the item
///   type;
/// - [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument): the shapes of operands cannot be broadcast, or
///   an axis does not exist;
/// - [`ErrorKind::TooLarge`](crate::ErrorKind::TooLarge): the results in memory do not fit in the address space, or
///   exceed the largest [`OpenOptions::max_read`](crate::OpenOptions::max_read) of the arrays of the expression;
/// - [`ErrorKind::Callback`](crate::ErrorKind::Callback): a closure failed or panicked; the evaluation stops;
/// - [`ErrorKind::Busy`](crate::ErrorKind::Busy): a closure uses an array of the expression, and this use would
///   deadlock.
#[derive(Debug, Clone)]
#[must_use = "an expression does nothing until a method evaluates it"]
#[doc(alias("LazyArray", "lazyexpr"))]
pub struct LazyExpr<S, O = ()> {
    source: S,
    output: O,
    threads: Option<Threads>,
}

impl NDArray {
    /// Returns a lazily evaluated expression of the items of the array; see [`LazyExpr`]. No items are read.
    ///
    /// ```
    /// use blosc2::NDArray;
    ///
    /// let array = NDArray::from_slice(&[1i16, -5, 3, 8, 0, 2], (2, 3))?;
    /// assert_eq!(array.lazy::<i16>().sum()?, 9i64);
    /// assert_eq!(array.lazy::<i16>().axes(1).max()?.items(), [3, 8]);
    /// assert_eq!(array.lazy::<i16>().map(|item| item.abs()).max()?, 8);
    /// assert_eq!(array.lazy::<i16>().select(|item| item > 1).indices()?, [2, 3, 5]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    #[doc(alias("sum", "mean", "min", "max", "lazyexpr"))]
    pub fn lazy<T: Element>(&self) -> LazyExpr<impl Source<Item = T> + Clone> {
        LazyExpr::of(self)
    }
}

impl<'a> NDArrayView<'a> {
    /// Returns a lazily evaluated expression of the items of the view; see [`NDArray::lazy`].
    pub fn lazy<T: Element>(&self) -> LazyExpr<impl Source<Item = T> + Clone + use<'a, T>> {
        LazyExpr::of(self.clone())
    }
}

impl<S: Source> LazyExpr<S> {
    fn new(source: S) -> Self {
        Self { source, output: (), threads: None }
    }

    /// Returns an expression of the items of an [operand](Operand), such as an array or [`InMemory`].
    pub fn of<T>(operand: impl Operand<T, Source = S>) -> Self {
        Self::new(operand.into_source())
    }

    /// Returns an expression that applies a closure to each item. Python: an expression such as `a * 2 + 1`.
    ///
    /// The closure may run on several threads. It must return the same result for the same item, because it may be
    /// called only once for many equal items.
    pub fn map<U: Copy + Send + Sync, F: Fn(S::Item) -> U + Sync>(
        self,
        item: F,
    ) -> LazyExpr<impl Source<Item = U>> {
        self.with(MAP, Always(item))
    }

    /// Returns an expression that applies a closure, which can fail, to all items. If the closure fails, the evaluation
    /// stops and fails with [`ErrorKind::Callback`](crate::ErrorKind::Callback).
    ///
    /// ```
    /// use blosc2::{ErrorKind, NDArray};
    ///
    /// let array = NDArray::from_slice(&[4u32, 0, 2], 3)?;
    /// let inverse = |item: u32| 8u32.checked_div(item).ok_or("division by zero");
    /// let error = array.lazy::<u32>().try_map(inverse).sum().unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Callback);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    pub fn try_map<U, E, F>(self, item: F) -> LazyExpr<impl Source<Item = U>>
    where
        U: Copy + Send + Sync,
        E: Into<BoxError>,
        F: Fn(S::Item) -> std::result::Result<U, E> + Sync,
    {
        self.with(MAP, Fallible(item))
    }

    /// Applies a closure of the method `name` to each item.
    fn with<F>(self, name: &'static str, function: F) -> LazyExpr<Zipped<(Broadcast<S>,), F>> {
        let Self { source, output, threads } = self;
        let source = Zipped { operands: (Broadcast::new(source),), function, name };
        LazyExpr { source, output, threads }
    }

    /// Selects the items for which a predicate is true. The methods of the returned [`Select`] read, count or locate
    /// these items. Python: `a[a > 5]`.
    ///
    /// ```
    /// use blosc2::{NDArray, Selection};
    ///
    /// let array = NDArray::from_slice(&[1.5f32, 7.5, f32::NAN, 9.0], (2, 2))?;
    /// let large = array.lazy::<f32>().select(|item| item > 5.0);
    /// assert_eq!((large.count()?, large.items()?), (2, vec![7.5, 9.0]));
    /// let coords = large.coords::<2>()?;
    /// assert_eq!(coords, [[0, 1], [1, 1]]);
    /// assert_eq!(array.read::<Vec<f32>>(Selection::points(&coords))?, [7.5, 9.0]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    pub fn select<P: Fn(S::Item) -> bool + Sync>(self, predicate: P) -> Select<S, P> {
        Select::new(self, predicate)
    }

    /// Selects the items in a range, such as `2.5..9.0`, `10..` or `7..=7`. NaN is in no range except `..`. The methods of
    /// the returned [`Select`] read, count or locate these items. Python: `a[(a >= 2.5) & (a < 9.0)]`.
    ///
    /// If Python has created an index of the items of a one-dimensional array in a file (`NDArray.create_index`), and
    /// the array has not changed since then, the index determines the blocks that can contain such items; other blocks
    /// are not read. Only expressions of [`NDArray::lazy`] use an index, and only with the feature `msgpack`. The
    /// bounds in the index are not verified. Without an index, all items are read, as by [`select`](Self::select).
    ///
    /// ```
    /// use blosc2::NDArray;
    ///
    /// let array = NDArray::from_slice(&[1.5f32, 7.5, f32::NAN, 9.0], 4)?;
    /// let items = array.lazy::<f32>().select_in(5.0..9.0);
    /// assert_eq!((items.count()?, items.indices()?), (1, vec![1]));
    /// assert_eq!(array.lazy::<f32>().select_in(7.5..).items()?, [7.5, 9.0]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    pub fn select_in<R>(self, range: R) -> Select<S, impl Fn(S::Item) -> bool + Sync>
    where
        R: RangeBounds<S::Item> + Sync,
        S::Item: Real + PartialOrd,
    {
        self.within(range)
    }

    /// Sets the axes over which reductions combine the items. `axes` is an integer, a tuple or an array of integers.
    /// Negative integers count from the last axis: -1 is the last axis. NumPy: `axis=`.
    ///
    /// ```
    /// use blosc2::NDArray;
    ///
    /// let array = NDArray::builder().from_fn(&[2, 3, 4], |[i, j, k]| (i * 100 + j * 10 + k) as i32)?;
    /// let sums = array.lazy::<i32>().axes((0, -1)).sum()?;
    /// assert_eq!((sums.shape(), sums.items()), (&[3][..], &[412, 492, 572][..]));
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    pub fn axes(self, axes: impl PerAxis) -> LazyExpr<S, Axes> {
        let Self { source, threads, .. } = self;
        LazyExpr { source, output: Axes::new(&axes), threads }
    }
}

impl<S: Source> LazyExpr<S, Axes> {
    /// Sets whether the shape of the result contains the reduced axes, with size 1. Off by default.
    ///
    /// With these axes, the result can be broadcast to the shape of the original items:
    ///
    /// ```
    /// use blosc2::NDArray;
    /// use blosc2::compute::zip;
    ///
    /// let array = NDArray::from_slice(&[1.0f64, 3.0, 10.0, 30.0], (2, 2))?;
    /// let means = array.lazy::<f64>().axes(1).keepdims(true).mean()?;
    /// assert_eq!(means.shape(), [2, 1]);
    /// let centered = zip((&array, &means)).map(|(item, mean): (f64, f64)| item - mean).read()?;
    /// assert_eq!(centered, [-1.0, 1.0, -10.0, 10.0]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    pub fn keepdims(mut self, keepdims: bool) -> Self {
        self.output.keepdims = keepdims;
        self
    }

    /// Writes the results of reductions to a new array, which the builder creates. The results may be larger than the
    /// memory.
    ///
    /// ```
    /// use blosc2::NDArray;
    ///
    /// let array = NDArray::from_slice(&[1i32, 2, 3, 4], (2, 2))?;
    /// let sums = array.lazy::<i32>().axes(0).builder(NDArray::builder()).sum()?;
    /// assert_eq!(sums.read::<Vec<i64>>(..)?, [4, 6]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// With a builder, a reduction also fails with the errors of [creation](NDArrayBuilder#errors-of-creation).
    pub fn builder(self, builder: NDArrayBuilder) -> LazyExpr<S, StoredAxes> {
        let Self { source, output: axes, threads } = self;
        LazyExpr { source, output: StoredAxes { axes, builder }, threads }
    }
}

impl<S: Source, O> LazyExpr<S, O> {
    /// Sets the number of threads that evaluate the expression. The default is
    /// [`DParams::threads`](crate::DParams::threads) of the first array.
    pub fn threads(mut self, threads: impl Into<Threads>) -> Self {
        self.threads = Some(threads.into());
        self
    }

    /// Returns the shape of the expression. It is the shape of the operands after broadcasting.
    ///
    /// # Errors
    /// - [`ErrorKind::TypeMismatch`](crate::ErrorKind::TypeMismatch): the dtype of an array is not the dtype of the
    ///   item type;
    /// - [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument): the shapes of operands cannot be broadcast,
    ///   or an [`InMemory`] operand does not have the number of items of its shape.
    pub fn shape(&self) -> Result<Vec<u64>> {
        self.source.shape()
    }

    /// Combines the items by closures. The items are divided into groups. For each group, the closure `fold` adds the
    /// items one by one to a value, which is initially `start`. Then the closure `combine` joins the values of
    /// consecutive groups. The section [reductions](Self#reductions) describes the order of the items.
    ///
    /// `combine` must be associative. If one argument of `combine` is `start`, it must return the other argument. If
    /// there are no items, the result is `start`.
    ///
    /// ```
    /// use blosc2::NDArray;
    ///
    /// let array = NDArray::from_slice(&[3i32, 14, -15, 92], 4)?;
    /// let range = array.lazy::<i32>().fold(
    ///     (i32::MAX, i32::MIN),
    ///     |(low, high), item| (low.min(item), high.max(item)),
    ///     |one, other| (one.0.min(other.0), one.1.max(other.1)),
    /// )?;
    /// assert_eq!(range, (-15, 92));
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    #[doc(alias = "reduce")]
    pub fn fold<A: Clone + Send + Sync>(
        &self,
        start: A,
        fold: impl Fn(A, S::Item) -> A + Sync,
        combine: impl Fn(A, A) -> A + Sync,
    ) -> Result<O::Of>
    where
        O: Output<A>,
    {
        self.output.clone().evaluate(&self.source, self.threads, Fold { start, fold, combine })
    }

    fn combine<A: Accumulator<S::Item>, R: Clone + Send>(
        &self,
        finish: &(dyn Fn(A, u64) -> Result<R> + Sync),
    ) -> Result<O::Of>
    where
        O: Output<R>,
    {
        let reducer = Combine { finish };
        self.output.clone().evaluate(&self.source, self.threads, reducer)
    }
}

impl<S: Source<Item: Numeric>, O> LazyExpr<S, O> {
    /// Computes the sum: 0 if there are no items. NumPy: `sum`.
    ///
    /// A sum of integers wraps around in `i64` or `u64`. The section [accuracy](Self#accuracy) describes the error of a
    /// sum of floating-point items.
    pub fn sum(&self) -> Result<O::Of>
    where
        O: Output<<S::Item as Numeric>::Sum>,
    {
        self.combine::<<S::Item as Reducible>::Total, _>(&|total, _| Ok(S::Item::sum(&total)))
    }

    /// Computes the product: 1 if there are no items. NumPy: `prod`.
    ///
    /// The precision depends on the item type:
    /// - A product of `f16`, `f32` or `f64` items is computed with 106 bits and an unbounded exponent. No intermediate
    ///   result overflows or underflows, and rounding can change only the last bit of the result.
    /// - A product of complex items is computed in `f64`.
    /// - A product of integers wraps around in `i64` or `u64`.
    pub fn prod(&self) -> Result<O::Of>
    where
        O: Output<<S::Item as Numeric>::Sum>,
    {
        self.combine::<<S::Item as Reducible>::Factors, _>(&|all, _| Ok(S::Item::product(&all)))
    }

    /// Computes the arithmetic mean: NaN if there are no items. NumPy: `mean`.
    pub fn mean(&self) -> Result<O::Of>
    where
        O: Output<<S::Item as Numeric>::Mean>,
    {
        self.combine::<<S::Item as Reducible>::Total, _>(&|total, count| {
            Ok(S::Item::mean(&total, count))
        })
    }

    /// Computes the variance in one pass: the sum of the squared distances from the mean, divided by the number of
    /// items minus `ddof`. NumPy: `var`.
    ///
    /// `ddof` (delta degrees of freedom) is 0 for the variance of the items, and 1 if the items are a sample from which
    /// the variance is estimated.
    ///
    /// If the number of items is `ddof` or less, the result is NaN if all items are equal, and otherwise infinite.
    pub fn var(&self, ddof: u64) -> Result<O::Of>
    where
        O: Output<<S::Item as Numeric>::Variance>,
    {
        self.combine::<<S::Item as Reducible>::Moments, _>(&|moments, _| {
            Ok(S::Item::to_variance(S::Item::variance(&moments, ddof)))
        })
    }

    /// Computes the standard deviation: the square root of the [variance](Self::var) with the same `ddof`. NumPy:
    /// `std`.
    pub fn std(&self, ddof: u64) -> Result<O::Of>
    where
        O: Output<<S::Item as Numeric>::Variance>,
    {
        self.combine::<<S::Item as Reducible>::Moments, _>(&|moments, _| {
            Ok(S::Item::to_variance(S::Item::variance(&moments, ddof).sqrt()))
        })
    }

    /// Computes the smallest item, or NaN if an item is NaN. Negative zero is smaller than zero. Complex items are
    /// compared by the real part, then by the imaginary part. NumPy: `min`.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument): there are no items.
    pub fn min(&self) -> Result<O::Of>
    where
        O: Output<S::Item>,
    {
        self.combine::<Extreme<_, false>, _>(&|least, count| least.finish(count))
    }

    /// Computes the largest item, or NaN if an item is NaN. Negative zero is smaller than zero. Complex items are
    /// compared by the real part, then by the imaginary part. NumPy: `max`.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument): there are no items.
    pub fn max(&self) -> Result<O::Of>
    where
        O: Output<S::Item>,
    {
        self.combine::<Extreme<_, true>, _>(&|largest, count| largest.finish(count))
    }

    /// Computes the position of the first smallest item, or of the first NaN. The position is a flat index in C order:
    /// among all items, or, with [`axes`](Self::axes), among the items on the reduced axes. NumPy: `argmin`, which
    /// supports only one axis or all axes.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument): there are no items.
    pub fn argmin(&self) -> Result<O::Of>
    where
        O: Output<u64>,
    {
        self.output.clone().evaluate(&self.source, self.threads, ArgExtreme::<false>)
    }

    /// Computes the position of the first largest item, or of the first NaN. The position is a flat index in C order:
    /// among all items, or, with [`axes`](Self::axes), among the items on the reduced axes. NumPy: `argmax`, which
    /// supports only one axis or all axes.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument): there are no items.
    pub fn argmax(&self) -> Result<O::Of>
    where
        O: Output<u64>,
    {
        self.output.clone().evaluate(&self.source, self.threads, ArgExtreme::<true>)
    }

    /// Computes whether at least one item is not zero. NaN is not zero. The evaluation stops at the first item that is
    /// not zero. NumPy: `any`.
    pub fn any(&self) -> Result<O::Of>
    where
        O: Output<bool>,
    {
        self.combine::<Count<true, true>, _>(&|nonzero, _| Ok(nonzero.0 > 0))
    }

    /// Computes whether all items are not zero. NaN is not zero. The evaluation stops at the first zero. NumPy: `all`.
    pub fn all(&self) -> Result<O::Of>
    where
        O: Output<bool>,
    {
        self.combine::<Count<false, true>, _>(&|zeros, _| Ok(zeros.0 == 0))
    }

    /// Counts the items that are not zero. NaN is not zero. NumPy: `count_nonzero`.
    pub fn count_nonzero(&self) -> Result<O::Of>
    where
        O: Output<u64>,
    {
        self.combine::<Count<true, false>, _>(&|nonzero, _| Ok(nonzero.0))
    }
}

impl<S: Source> Operand<S::Item> for LazyExpr<S> {
    type Source = S;

    fn into_source(self) -> S {
        self.source
    }
}

/// Two to four operands, whose items a closure combines. [`zip`] returns this type.
///
/// ```
/// use blosc2::NDArray;
/// use blosc2::compute::zip;
///
/// let array = NDArray::from_slice(&[1, 2, 3], 3)?;
/// let products = zip((&array, 10)).map(|(item, factor): (i32, i32)| item * factor);
/// assert_eq!(products.read()?, [10, 20, 30]);
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "operands do nothing until `map` combines them"]
pub struct Zip<O>(O);

/// Combines two to four operands. [`map`](Zip::map) applies a closure to their items. Operands are arrays, views,
/// fields, expressions, items in memory and numbers; see [`Operand`]. The type of an array does not contain the item
/// type. Therefore the closure states the types of its parameters, as in the example.
///
/// The operands are broadcast to one shape by NumPy's rules: shapes are aligned at the last axis, and an axis of size 1
/// is repeated. The operands may have different chunk and block shapes; evaluation is fastest if these shapes are
/// equal.
///
/// ```
/// use blosc2::NDArray;
/// use blosc2::compute::zip;
///
/// let celsius = NDArray::from_slice(&[10.0f32, 20.0, 30.0, 40.0], (2, 2))?;
/// let offsets = NDArray::from_slice(&[0.5f32, -0.5], 2)?;
/// let corrected = zip((&celsius, &offsets, 2.0f32))
///     .map(|(degrees, offset, factor): (f32, f32, f32)| (degrees + offset) * factor + 32.0)
///     .create(NDArray::builder())?;
/// assert_eq!(corrected.read::<Vec<f32>>(..)?, [53.0, 71.0, 93.0, 111.0]);
/// # Ok::<(), blosc2::Error>(())
/// ```
pub fn zip<O>(operands: O) -> Zip<O> {
    Zip(operands)
}

macro_rules! zip {
    ($($operand:ident $item:ident)+) => {
        #[allow(non_snake_case)]
        impl<$($operand),+> Zip<($($operand,)+)> {
            /// Returns an expression that applies a closure to the items of the operands.
            ///
            /// The parameter of the closure is a tuple, and its type states the types of the items.
            pub fn map<$($item,)+ U, F>(
                self,
                item: F,
            ) -> LazyExpr<impl Source<Item = U>>
            where
                $($operand: Operand<$item>,)+
                U: Copy + Send + Sync,
                F: Fn(($($item,)+)) -> U + Sync,
            {
                let ($($operand,)+) = self.0;
                let operands = ($(Broadcast::new($operand.into_source()),)+);
                LazyExpr::new(Zipped { operands, function: Always(item), name: MAP })
            }

            /// Returns an expression that applies a closure, which can fail, to all items. If the closure fails, the
            /// evaluation stops and fails with [`ErrorKind::Callback`](crate::ErrorKind::Callback).
            pub fn try_map<$($item,)+ U, E, F>(
                self,
                item: F,
            ) -> LazyExpr<impl Source<Item = U>>
            where
                $($operand: Operand<$item>,)+
                U: Copy + Send + Sync,
                E: Into<BoxError>,
                F: Fn(($($item,)+)) -> std::result::Result<U, E> + Sync,
            {
                let ($($operand,)+) = self.0;
                let operands = ($(Broadcast::new($operand.into_source()),)+);
                LazyExpr::new(Zipped { operands, function: Fallible(item), name: MAP })
            }
        }
    };
}

zip! { A T1 B T2 }
zip! { A T1 B T2 C T3 }
zip! { A T1 B T2 C T3 D T4 }

/// Returns an expression with the items of `one` where `condition` is true, and the items of `other` where `condition`
/// is false. The operands are broadcast to one shape. NumPy: `where`.
///
/// ```
/// use blosc2::NDArray;
/// use blosc2::compute::choose;
///
/// let array = NDArray::from_slice(&[-1.0f64, 2.0, -3.0], 3)?;
/// let is_negative = array.lazy::<f64>().map(|item| item < 0.0);
/// assert_eq!(choose(is_negative, 0.0f64, &array).read()?, [0.0, 2.0, 0.0]);
/// # Ok::<(), blosc2::Error>(())
/// ```
#[doc(alias = "where")]
pub fn choose<T: Copy + Send + Sync>(
    condition: impl Operand<bool>,
    one: impl Operand<T>,
    other: impl Operand<T>,
) -> LazyExpr<impl Source<Item = T>> {
    zip((condition, one, other)).map(
        |(condition, one, other): (bool, T, T)| {
            if condition { one } else { other }
        },
    )
}
