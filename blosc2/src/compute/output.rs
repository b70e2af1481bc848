//! The forms of the results of reductions: one value, several values with a shape, or an array.

use super::axes::Axes;
use super::reduce::{Reducer, Reduction};
use super::source::{InMemory, Operand, Source};
use crate::item::element::Element;
use crate::ndarray::places::len_of;
use crate::ndarray::{NDArray, NDArrayBuilder};
use crate::{Result, Threads};

/// The maximum size in bytes of results that are in memory before an array is created from them.
const SMALL: u64 = 4 << 20;

/// The type parameter `O` of [`LazyExpr`](super::LazyExpr), which determines the results of
/// [reductions](super::LazyExpr#reductions). This trait is sealed.
///
/// | `O` | result |
/// |---|---|
/// | `()` | one value, which combines all items |
/// | [`Axes`] | [`Reduced`]: values with a shape |
/// | [`StoredAxes`] | an [`NDArray`] |
///
/// ```
/// use blosc2::NDArray;
/// use blosc2::compute::{LazyExpr, Output, Source};
///
/// // Computes the smallest and the largest item, with any form of the results.
/// fn extremes<S: Source<Item = i32>, O: Output<i32>>(
///     items: &LazyExpr<S, O>,
/// ) -> blosc2::Result<(O::Of, O::Of)> {
///     Ok((items.min()?, items.max()?))
/// }
/// let array = NDArray::from_slice(&[1, 5, 2, 8], (2, 2))?;
/// assert_eq!(extremes(&array.lazy::<i32>())?, (1, 8));
/// # Ok::<(), blosc2::Error>(())
/// ```
pub trait Output<T>: Clone + Evaluate<T, <Self as Output<T>>::Of> {
    /// The type of the result, for values of type `T`.
    type Of;
}

/// The evaluation of a reduction whose results are values of type `T`. Other crates cannot name this trait, so that they
/// cannot implement [`Output`].
pub trait Evaluate<T, Of> {
    fn evaluate<S: Source, R: Reducer<S::Item, Result = T>>(
        self,
        source: &S,
        threads: Option<Threads>,
        reducer: R,
    ) -> Result<Of>;
}

/// Type parameter of [`LazyExpr`](super::LazyExpr): reductions combine the items over some axes, and create an array.
/// See [`LazyExpr::builder`](super::LazyExpr::builder).
///
/// ```
/// use blosc2::NDArray;
///
/// let array = NDArray::from_slice(&[1, 2, 3, 4], (2, 2))?;
/// let builder = NDArray::builder();
/// let sums = array.lazy::<i32>().axes(0).builder(builder).sum()?; // of a `LazyExpr<_, StoredAxes>`
/// assert_eq!(sums.read::<Vec<i64>>(..)?, [4, 6]);
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct StoredAxes {
    pub(super) axes: Axes,
    pub(super) builder: NDArrayBuilder,
}

impl<T> Output<T> for () {
    type Of = T;
}

impl<T> Evaluate<T, T> for () {
    fn evaluate<S: Source, R: Reducer<S::Item, Result = T>>(
        self,
        source: &S,
        threads: Option<Threads>,
        reducer: R,
    ) -> Result<T> {
        let results = Reduction::new(source, threads, reducer, None)?.results()?;
        match results.into_iter().next() {
            Some(result) => Ok(result),
            None => unreachable!("without kept axes there is one result"),
        }
    }
}

impl<T> Output<T> for Axes {
    type Of = Reduced<T>;
}

impl<T> Evaluate<T, Reduced<T>> for Axes {
    fn evaluate<S: Source, R: Reducer<S::Item, Result = T>>(
        self,
        source: &S,
        threads: Option<Threads>,
        reducer: R,
    ) -> Result<Reduced<T>> {
        let reduction = Reduction::new(source, threads, reducer, Some(&self))?;
        Ok(Reduced { shape: reduction.shape(), items: reduction.results()? })
    }
}

impl<T: Element> Output<T> for StoredAxes {
    type Of = NDArray;
}

impl<T: Element> Evaluate<T, NDArray> for StoredAxes {
    fn evaluate<S: Source, R: Reducer<S::Item, Result = T>>(
        self,
        source: &S,
        threads: Option<Threads>,
        reducer: R,
    ) -> Result<NDArray> {
        let Self { axes, builder } = self;
        let reduction = Reduction::new(source, threads, reducer, Some(&axes))?;
        let shape = reduction.shape();
        if len_of(&shape, size_of::<T>()) > SMALL {
            return reduction.store(builder);
        }
        let results = reduction.results()?;
        // The arrays are no longer read.
        drop(reduction);
        builder.from_slice(&results, shape)
    }
}

/// The results of a reduction over some axes: values with a shape. A reference to this type can be an [`Operand`].
///
/// ```
/// use blosc2::NDArray;
///
/// let array = NDArray::from_slice(&[1i32, 2, 3, 4, 5, 6], (2, 3))?;
/// let sums = array.lazy::<i32>().axes(0).sum()?;
/// assert_eq!((sums.shape(), sums.items()), (&[3][..], &[5, 7, 9][..]));
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Reduced<T> {
    shape: Vec<u64>,
    items: Vec<T>,
}

impl<T> Reduced<T> {
    /// Returns the shape.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Returns the values in C order.
    pub fn items(&self) -> &[T] {
        &self.items
    }

    /// Returns the values in C order, without a copy.
    pub fn into_items(self) -> Vec<T> {
        self.items
    }

    /// Returns the values as an array of the crate `ndarray`. Needs the feature `ndarray`.
    #[cfg(feature = "ndarray")]
    pub fn into_array(self) -> ::ndarray::ArrayD<T> {
        // The values are in memory, so each size fits in a `usize`.
        let shape: Vec<usize> = self.shape.iter().map(|&size| size as usize).collect();
        match ::ndarray::ArrayD::from_shape_vec(shape, self.items) {
            Ok(array) => array,
            Err(_) => unreachable!("there is one value for each index"),
        }
    }
}

impl<'a, T: Copy + Send + Sync> Operand<T> for &'a Reduced<T> {
    type Source = InMemory<'a, T>;

    fn into_source(self) -> InMemory<'a, T> {
        InMemory::new(&self.items, &self.shape)
    }
}
