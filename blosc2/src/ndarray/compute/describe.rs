//! Statistics of items in one pass.

use super::LazyExpr;
use super::context::{Context, DOING};
use super::number::{Accumulator, Real};
use super::output::{Output, Whole};
use super::reduce::Reducer;
use super::reducers::extreme;
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
/// assert_eq!(statistics.histogram, [2, 1]);
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Description<T> {
    /// The number of items that are not NaN. All other statistics except `nan_count` ignore NaN.
    pub count: u64,
    /// The number of items that are NaN.
    pub nan_count: u64,
    /// The smallest item; `None` if `count` is 0.
    pub min: Option<T>,
    /// The largest item; `None` if `count` is 0.
    pub max: Option<T>,
    /// The arithmetic mean; NaN if `count` is 0.
    pub mean: f64,
    /// The standard deviation (`ddof` is 0); NaN if `count` is 0.
    pub std: f64,
    /// The number of items in each bin of the histogram; empty if no edges were passed.
    pub histogram: Vec<u64>,
}

impl<S: Source<Item: Real>> LazyExpr<S> {
    /// Computes statistics of the items in one pass; [`Description`] lists them.
    ///
    /// `edges` are the edges of the bins of the histogram, in ascending order. If `edges` is empty, no histogram is
    /// computed. Each bin includes its lower edge, and the last bin also includes its upper edge, as in NumPy's
    /// `histogram`. Items outside all bins are not counted.
    ///
    /// Items are converted to `f64` before they are compared with the edges. This conversion rounds large 64-bit
    /// integers.
    ///
    /// ```
    /// use blosc2::NDArray;
    ///
    /// let array = NDArray::from_slice(&[1.0f32, 2.0, f32::NAN, 6.0], 4)?;
    /// let stats = array.lazy::<f32>().describe(&[0.0, 2.0, 4.0, 6.0])?;
    /// assert_eq!((stats.count, stats.nan_count), (3, 1));
    /// assert_eq!((stats.min, stats.max, stats.mean), (Some(1.0), Some(6.0), 3.0));
    /// assert_eq!(stats.histogram, [1, 1, 1]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// Fails with the [errors of evaluation](Self#errors-of-evaluation), and with:
    /// - [`ErrorKind::InvalidArgument`]: there is one edge, or the edges are not in ascending order.
    pub fn describe(&self, edges: &[f64]) -> Result<Description<S::Item>> {
        if edges.len() == 1 || !edges.is_sorted_by(|one, other| one <= other) {
            let detail =
                format!("expected no edges, or at least two in ascending order, got {edges:?}");
            return Err(Error::new(ErrorKind::InvalidArgument, DOING, detail));
        }
        Whole.evaluate(&self.source, self.threads, Describe { edges })
    }
}

struct Describe<'e> {
    edges: &'e [f64],
}

/// Statistics of some items that are not NaN, and the number of NaN.
struct Part<T: Real> {
    nans: u64,
    keys: Option<(T::Key, T::Key)>,
    total: T::Total,
    moments: T::Moments,
    count: u64,
    histogram: Vec<u64>,
}

impl Describe<'_> {
    /// Returns the bin of an item.
    fn bin(&self, item: f64) -> Option<usize> {
        let (first, last) = (self.edges.first()?, self.edges.last()?);
        if !(*first..=*last).contains(&item) {
            return None;
        }
        let last_bin = self.edges.len() - 2;
        // The bin of the item, if all bins have the same width.
        let guess = ((item - first) / (last - first) * (last_bin + 1) as f64) as usize;
        let guess = guess.min(last_bin);
        if self.edges[guess] <= item && item < self.edges[guess + 1] {
            return Some(guess);
        }
        let above = self.edges.partition_point(|edge| *edge <= item);
        Some((above - 1).min(last_bin))
    }

    fn add_numbers<T: Real>(&self, to: &mut Part<T>, items: &[T]) {
        let (low, high) = (extreme::<T, false>(items), extreme::<T, true>(items));
        if let (Some((low, _)), Some((high, _))) = (low, high) {
            to.put((low, high));
        }
        to.total.add(items);
        to.moments.add(items);
        to.count += items.len() as u64;
        if !self.edges.is_empty() {
            for bin in items.iter().filter_map(|item| self.bin(item.to_f64())) {
                to.histogram[bin] += 1;
            }
        }
    }
}

impl<T: Real> Part<T> {
    fn put(&mut self, (low, high): (T::Key, T::Key)) {
        let (low, high) = match self.keys {
            Some((lowest, highest)) => (lowest.min(low), highest.max(high)),
            None => (low, high),
        };
        self.keys = Some((low, high));
    }
}

impl<T: Real> Reducer<T> for Describe<'_> {
    type Accumulator = Part<T>;
    type Result = Description<T>;

    fn start(&self) -> Part<T> {
        let (total, moments) = (T::Total::default(), T::Moments::default());
        let histogram = vec![0; self.edges.len().saturating_sub(1)];
        Part { nans: 0, keys: None, total, moments, count: 0, histogram }
    }

    fn add(&self, _: &Context<'_>, to: &mut Part<T>, items: &[T], _: u64) -> Result<()> {
        // The items are processed in pieces that fit in the cache.
        for items in items.chunks(4096) {
            if !items.iter().any(|item| item.is_nan()) {
                self.add_numbers(to, items);
                continue;
            }
            let numbers: Vec<T> = items.iter().copied().filter(|item| !item.is_nan()).collect();
            to.nans += (items.len() - numbers.len()) as u64;
            self.add_numbers(to, &numbers);
        }
        Ok(())
    }

    fn add_repeated(
        &self,
        _: &Context<'_>,
        to: &mut Part<T>,
        item: T,
        count: u64,
        _: u64,
    ) -> Result<()> {
        if item.is_nan() {
            to.nans += count;
            return Ok(());
        }
        to.put((item.key(), item.key()));
        to.total.add_repeated(item, count);
        to.moments.add_repeated(item, count);
        to.count += count;
        if let Some(bin) = self.bin(item.to_f64()) {
            to.histogram[bin] += count;
        }
        Ok(())
    }

    fn merge(&self, _: &Context<'_>, to: &mut Part<T>, other: Part<T>) -> Result<()> {
        to.nans += other.nans;
        other.keys.into_iter().for_each(|keys| to.put(keys));
        to.total.merge(&other.total);
        to.moments.merge(&other.moments);
        to.count += other.count;
        to.histogram.iter_mut().zip(other.histogram).for_each(|(to, other)| *to += other);
        Ok(())
    }

    fn finish(&self, from: Part<T>, _: u64) -> Result<Description<T>> {
        Ok(Description {
            count: from.count,
            nan_count: from.nans,
            min: from.keys.map(|(low, _)| T::from_key(low)),
            max: from.keys.map(|(_, high)| T::from_key(high)),
            mean: T::mean_f64(&from.total, from.count),
            std: T::variance(&from.moments, from.count, 0).sqrt(),
            histogram: from.histogram,
        })
    }
}
