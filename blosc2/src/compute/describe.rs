//! Statistics of items in one pass.

use super::LazyExpr;
use super::context::DOING;
use super::histogram::Bins;
use super::lanes::{Accumulator, BLOCK, Both, LANES, Strip, each_strip};
use super::number::{Numeric, Real, Reducible};
use super::output::Output;
use super::reduce::Reducer;
use super::reducers::Extreme;
use super::source::Source;
use crate::{Error, ErrorKind, Result};

/// Statistics of items, computed in one pass. [`LazyExpr::describe`] returns them.
///
/// ```
/// use blosc2::NDArray;
///
/// let array = NDArray::from_slice(&[1.0, 2.0, f64::NAN, 6.0], 4)?;
/// let statistics = array.lazy::<f64>().describe(&[0.0, 5.0, 10.0])?;
/// assert_eq!((statistics.count, statistics.nan_count), (3, 1));
/// assert_eq!((statistics.min, statistics.max, statistics.mean), (Some(1.0), Some(6.0), 3.0));
/// assert_eq!((statistics.sum, statistics.var), (9.0, 14.0 / 3.0));
/// assert_eq!(statistics.histogram, [2, 1]);
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Description<T: Numeric> {
    /// The number of items that are not NaN. All other statistics except `nan_count` ignore NaN.
    pub count: u64,
    /// The number of items that are NaN.
    pub nan_count: u64,
    /// The smallest item; `None` if `count` is 0.
    pub min: Option<T>,
    /// The largest item; `None` if `count` is 0.
    pub max: Option<T>,
    /// The sum; see [`LazyExpr::sum`]. It is 0 if `count` is 0.
    pub sum: T::Sum,
    /// The arithmetic mean; NaN if `count` is 0.
    pub mean: f64,
    /// The variance (`ddof` is 0); NaN if `count` is 0. That of a sample (`ddof` is 1) is `var * count / (count - 1)`.
    pub var: f64,
    /// The standard deviation: the square root of `var`.
    pub std: f64,
    /// The number of items in each bin of the histogram; empty if no edges were passed.
    pub histogram: Vec<u64>,
}

impl<S: Source<Item: Real>, O> LazyExpr<S, O> {
    /// Computes statistics of the items in one pass; [`Description`] lists them. With [`axes`](LazyExpr::axes), there
    /// are statistics for each index of the other axes. They cannot be written to an array.
    ///
    /// `edges` are the edges of the bins of the histogram, in ascending order. If `edges` is empty, no histogram is
    /// computed. Each bin includes its lower edge, and the last bin also includes its upper edge, as in NumPy's
    /// `histogram`. Items outside all bins are not counted. A histogram of equal bins is computed in less time.
    ///
    /// Items are converted to `f64` before they are compared with the edges. This conversion rounds large 64-bit
    /// integers.
    ///
    /// ```
    /// use blosc2::NDArray;
    ///
    /// let array = NDArray::from_slice(&[1.0f32, 2.0, f32::NAN, 6.0], (2, 2))?;
    /// let stats = array.lazy::<f32>().describe(&[0.0, 2.0, 4.0, 6.0])?;
    /// assert_eq!((stats.count, stats.nan_count), (3, 1));
    /// assert_eq!((stats.min, stats.max, stats.mean), (Some(1.0), Some(6.0), 3.0));
    /// assert_eq!(stats.histogram, [1, 1, 1]);
    /// // Statistics of each column.
    /// let columns = array.lazy::<f32>().axes(0).describe(&[])?;
    /// assert_eq!(columns.shape(), [2]);
    /// assert_eq!((columns.items()[0].count, columns.items()[1].max), (1, Some(6.0)));
    /// let sums: Vec<f32> = columns.items().iter().map(|stats| stats.sum).collect();
    /// assert_eq!(sums, [1.0, 8.0]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: there is one edge, or the edges are not in ascending order.
    pub fn describe(&self, edges: &[f64]) -> Result<O::Of>
    where
        O: Output<Description<S::Item>>,
    {
        if edges.len() == 1 || !edges.is_sorted_by(|one, other| one <= other) {
            let detail =
                format!("expected no edges, or at least two in ascending order, got {edges:?}");
            return Err(Error::new(ErrorKind::InvalidArgument, DOING, detail));
        }
        let reducer = Describe { bins: Bins::new(edges) };
        self.output.clone().evaluate(&self.source, self.threads, reducer)
    }
}

struct Describe<'e> {
    bins: Bins<'e>,
}

type Range<T> = Both<Extreme<T, false>, Extreme<T, true>>;

/// The sum, and the sum of the squared distances from the mean.
type Sums<T> = Both<<T as Reducible>::Total, <T as Reducible>::Moments>;

/// Statistics of some items that are not NaN, and the number of NaN.
struct Part<T: Real> {
    nans: u64,
    count: u64,
    range: Range<T>,
    sums: Sums<T>,
    histogram: Vec<u64>,
}

impl<T: Real> Part<T> {
    /// Adds at most [`BLOCK`] items to all statistics except the histogram.
    fn add(&mut self, items: &[T]) {
        let mut range = Range::<T>::default();
        range.add(items);
        if range.0.has_nan {
            return self.add_with_nan(items);
        }
        self.range.merge(&range);
        self.sums.add(items);
        self.count += items.len() as u64;
    }

    #[cold]
    fn add_with_nan(&mut self, items: &[T]) {
        let (mut numbers, mut count) = ([T::LEAST; BLOCK], 0);
        for item in items.iter().filter(|item| !item.is_nan()) {
            numbers[count] = *item;
            count += 1;
        }
        self.range.add(&numbers[..count]);
        self.sums.add(&numbers[..count]);
        self.count += count as u64;
        self.nans += (items.len() - count) as u64;
    }
}

impl<T: Real> Reducer<T> for Describe<'_> {
    type Accumulator = Part<T>;
    type Result = Description<T>;

    fn size(&self) -> usize {
        size_of::<Part<T>>() + self.bins.count() * size_of::<u64>()
    }

    fn start(&self) -> Part<T> {
        let histogram = vec![0; self.bins.count()];
        Part { nans: 0, count: 0, range: Range::default(), sums: Sums::<T>::default(), histogram }
    }

    fn add(&self, to: &mut Part<T>, items: &[T], _: u64) {
        items.chunks(BLOCK).for_each(|items| to.add(items));
        self.bins.add(&mut to.histogram, items);
    }

    fn add_rows(&self, to: &mut [Part<T>], rows: &[T], _: u64, _: u64) {
        each_strip(rows, to.len(), &mut |strip| match strip {
            Strip::Column(at, items) => {
                to[at].add(items);
                self.bins.add(&mut to[at].histogram, items);
            }
            Strip::Groups(at, groups) => {
                let to = &mut to[at..at + LANES];
                let range = Range::<T>::lanes(groups);
                let sums = Sums::<T>::lanes(groups);
                for (lane, to) in to.iter_mut().enumerate() {
                    if range[lane].0.has_nan {
                        to.add_with_nan(&groups.lane(lane).copied().collect::<Vec<_>>());
                    } else {
                        to.range.merge(&range[lane]);
                        to.sums.merge(&sums[lane]);
                        to.count += groups.count as u64;
                    }
                    if self.bins.count() > 0 {
                        for item in groups.lane(lane) {
                            self.bins.add_repeated(&mut to.histogram, *item, 1);
                        }
                    }
                }
            }
        });
    }

    fn add_repeated(&self, to: &mut Part<T>, item: T, count: u64, _: u64) {
        if item.is_nan() {
            to.nans += count;
            return;
        }
        to.range.add_repeated(item, count);
        to.sums.add_repeated(item, count);
        to.count += count;
        self.bins.add_repeated(&mut to.histogram, item, count);
    }

    fn merge(&self, to: &mut Part<T>, other: Part<T>) {
        to.nans += other.nans;
        to.count += other.count;
        to.range.merge(&other.range);
        to.sums.merge(&other.sums);
        to.histogram.iter_mut().zip(other.histogram).for_each(|(to, other)| *to += other);
    }

    fn finish(&self, from: Part<T>, _: u64) -> Result<Description<T>> {
        let Part { nans, count, range: Both(min, max), sums: Both(total, moments), histogram } =
            from;
        let variance = T::variance(&moments, 0);
        Ok(Description {
            count,
            nan_count: nans,
            min: (count > 0).then(|| min.number()),
            max: (count > 0).then(|| max.number()),
            sum: T::sum(&total),
            mean: T::mean_f64(&total, count),
            var: variance,
            std: variance.sqrt(),
            histogram,
        })
    }
}
