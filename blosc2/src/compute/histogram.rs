//! The bins of histograms.

use super::number::Real;

/// The number of histograms that are counted together. Neighboring items are often in the same bin, and a processor waits
/// until a counter is stored before it counts again.
const TABLES: usize = 4;

/// The number of items whose bins are computed together.
const PART: usize = 256;

#[derive(Debug)]
pub(super) struct Bins<'e> {
    edges: &'e [f64],
    equal: Option<Equal>,
}

/// Bins of almost equal sizes: the place of edge number `n` is near `n`.
#[derive(Debug, Clone, Copy)]
struct Equal {
    first: f64,
    /// The number of bins for each unit.
    scale: f64,
    /// How far the place of an edge can be from its number.
    error: f64,
}

impl Equal {
    /// Returns the place of an item on a scale on which all bins have the size 1. A larger item has the same place or a
    /// larger one.
    #[inline(always)]
    fn place(self, item: f64) -> f64 {
        (item - self.first) * self.scale
    }
}

impl<'e> Bins<'e> {
    /// Creates bins with these edges: none, or at least two in ascending order.
    pub(super) fn new(edges: &'e [f64]) -> Self {
        let equal = edges.first().zip(edges.last()).and_then(|(&first, last)| {
            let equal =
                Equal { first, scale: (edges.len() - 1) as f64 / (last - first), error: 0.0 };
            let mut error = 0.0;
            for (number, edge) in edges.iter().enumerate() {
                let distance = (equal.place(*edge) - number as f64).abs();
                // If the scale is not finite, the distance is NaN.
                if distance.is_nan() || distance >= 0.25 {
                    return None;
                }
                error = distance.max(error);
            }
            Some(Equal { error, ..equal })
        });
        Self { edges, equal }
    }

    pub(super) fn count(&self) -> usize {
        self.edges.len().saturating_sub(1)
    }

    /// Returns the bin of an item; `None` if it is outside all bins, or NaN.
    #[inline]
    fn find(&self, item: f64) -> Option<usize> {
        let (first, last) = (*self.edges.first()?, *self.edges.last()?);
        if !(first <= item && item <= last) {
            return None;
        }
        let last_bin = self.count() - 1;
        let bin = match self.equal {
            Some(equal) => {
                // The place of the nearest edge is at most 1/4 from its number.
                let near = ((equal.place(item) + 0.5) as usize).min(last_bin);
                if self.edges[near] <= item { near } else { near - 1 }
            }
            None => self.edges.partition_point(|edge| *edge <= item) - 1,
        };
        Some(bin.min(last_bin))
    }

    pub(super) fn add<T: Real>(&self, histogram: &mut [u64], items: &[T]) {
        if histogram.is_empty() {
            return;
        }
        let Some(equal) = self.equal.filter(|_| items.len() >= TABLES * self.count()) else {
            items.iter().for_each(|item| self.add_repeated(histogram, *item, 1));
            return;
        };
        let mut tables = vec![[0; TABLES]; self.count()];
        let mut bins = [0; PART];
        for items in items.chunks(PART) {
            for (bin, item) in bins.iter_mut().zip(items) {
                *bin = Self::probable_bin(equal, item.to_f64());
            }
            for (at, (bin, item)) in bins.iter().zip(items).enumerate() {
                let counts = usize::try_from(*bin).ok().and_then(|bin| tables.get_mut(bin));
                match counts {
                    Some(counts) => counts[at % TABLES] += 1,
                    None => self.add_repeated(histogram, *item, 1),
                }
            }
        }
        for (to, counts) in histogram.iter_mut().zip(tables) {
            *to += counts.into_iter().sum::<u64>();
        }
    }

    /// Returns the bin of an item. If the item is near an edge, outside all bins, or NaN, the result may be a number that
    /// is not one of a bin. The compiler vectorizes these operations.
    #[inline(always)]
    fn probable_bin(equal: Equal, item: f64) -> u64 {
        // The sum with 2^52 is rounded to an integer, which is in the low bits. The sum with a number that is not below
        // 2^51 has other high bits.
        const INTEGERS: f64 = (1u64 << 52) as f64;
        let place = equal.place(item);
        let rounded = place + INTEGERS;
        let rest = place - (rounded - INTEGERS);
        let bin = rounded.to_bits().wrapping_sub(INTEGERS.to_bits());
        let below = if rest < 0.0 { 1 } else { 0 };
        let unsure = if rest.abs() > equal.error { 0 } else { u64::MAX };
        bin.wrapping_sub(below) | unsure
    }

    pub(super) fn add_repeated<T: Real>(&self, histogram: &mut [u64], item: T, count: u64) {
        if let Some(bin) = self.find(item.to_f64()) {
            histogram[bin] += count;
        }
    }
}
