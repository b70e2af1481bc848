//! Sorting of one-dimensional arrays that may be larger than memory: sorted runs, which are merged.
//!
//! The runs are divided into parts, whose first keys are in memory. Some of these keys divide all records into
//! consecutive groups of limited size. The groups are merged independently of each other, on several threads.

use std::cmp::Ordering;
use std::ops::Range;
use std::path::PathBuf;

use super::number::Real;
use super::source::Items;
use super::spill::{Packer, Part, Record, Run, SORT, Spill, Unpacker};
use crate::ndarray::boxes::{Readings, Sources};
use crate::ndarray::builder::Put;
use crate::ndarray::view::NDArrayView;
use crate::ndarray::{NDArray, NDArrayBuilder, parallel};
use crate::support::memory::reserve;
use crate::{Doing, Element, Error, ErrorKind, Result, Threads};

/// A part of a run has at least this number of records, unless the run is very short.
const PART: usize = 1024;

impl NDArrayBuilder {
    /// Creates a sorted copy of a one-dimensional array, which may be larger than memory. NumPy and Python: `sort`.
    ///
    /// The order is that of NumPy: ascending, NaN after all other items. Equal items (zeros of both signs, and NaN) keep
    /// their order, as with NumPy's `kind="stable"`.
    ///
    /// The items are sorted in runs that fit in [`max_memory`](Self::max_memory). Then the runs are merged. If there are
    /// several runs, they are stored compressed: in a temporary file in the directory of the [target](Self::target) if
    /// the target is a path, otherwise in memory. [`CParams::threads`](crate::CParams::threads) sets the number of
    /// threads.
    ///
    /// ```
    /// use blosc2::NDArray;
    ///
    /// let array = NDArray::from_slice(&[3.0f32, f32::NAN, -1.0, 2.0], 4)?;
    /// let sorted = NDArray::builder().sort::<f32>(&array)?.read::<Vec<f32>>(..)?;
    /// assert_eq!(sorted[..3], [-1.0, 2.0, 3.0]);
    /// assert!(sorted[3].is_nan());
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: the source does not have one dimension;
    /// - [`ErrorKind::TypeMismatch`]: the dtype of the source is not the dtype of `T`;
    /// - [`ErrorKind::Io`]: the temporary file cannot be written or read;
    /// - the [errors of reads](NDArray#errors-of-reads) of the source, and of [creation](Self#errors-of-creation).
    pub fn sort<'a, T: Real>(self, source: impl Into<NDArrayView<'a>>) -> Result<NDArray> {
        let source = source.into();
        let sorter = Sorter::new(&self, &source, |key: T, _| (key, []), None)?;
        self.in_order(source.len(), sorter, |sorter, put| {
            sorter.sorted(&mut |records| put(&Vec::from_iter(records.iter().map(|(key, _)| *key))))
        })
    }

    /// Creates an array of the positions (`i64`) that sort a one-dimensional array, which may be larger than memory; see
    /// [`sort`](Self::sort). The positions of equal items are ascending. NumPy: `argsort(kind="stable")`. Python:
    /// `argsort`.
    ///
    /// ```
    /// use blosc2::NDArray;
    ///
    /// let array = NDArray::from_slice(&[30u16, 10, 20, 10], 4)?;
    /// let positions = NDArray::builder().argsort::<u16>(&array)?;
    /// assert_eq!(positions.read::<Vec<i64>>(..)?, [1, 3, 2, 0]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// Fails with the errors of [`sort`](Self::sort).
    pub fn argsort<'a, T: Real>(self, source: impl Into<NDArrayView<'a>>) -> Result<NDArray> {
        let source = source.into();
        let sorter = Sorter::new(&self, &source, |key: T, at| (key, [at as i64]), None)?;
        self.in_order(source.len(), sorter, |sorter, put| {
            sorter.sorted(&mut |records| put(&Vec::from_iter(records.iter().map(|(_, [at])| *at))))
        })
    }

    /// Creates a sorted array of the different items of a one-dimensional array, which may be larger than memory; see
    /// [`sort`](Self::sort). Of equal items, the first one is kept. All NaN are equal. NumPy: `unique`.
    ///
    /// ```
    /// use blosc2::NDArray;
    ///
    /// let array = NDArray::from_slice(&[3i8, 1, 3, 3], 4)?;
    /// assert_eq!(NDArray::builder().unique::<i8>(&array)?.read::<Vec<i8>>(..)?, [1, 3]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// Fails with the errors of [`sort`](Self::sort).
    pub fn unique<'a, T: Real>(self, source: impl Into<NDArrayView<'a>>) -> Result<NDArray> {
        let source = source.into();
        let sorter = Sorter::new(&self, &source, |key: T, _| (key, []), Some(|_, _| []))?;
        let builder = self.limited_as(sorter.readings());
        builder.check_order::<T>(source.len())?;
        builder.place_of::<T, _>(sorter, |store, sorter| {
            let merged = sorter.merged()?;
            builder.fill_in_order(store, sorter.readings(), merged.len(), |put| {
                merged.each(&mut |records| put(&Vec::from_iter(records.map(|(key, _)| key))))
            })
        })
    }

    /// Creates two arrays: the different items, as [`unique`](Self::unique), and the number (`i64`) of items of the
    /// source that are equal to each of them. `counts` is the builder of the second array. NumPy:
    /// `unique(return_counts=True)`.
    ///
    /// If the targets are paths, both arrays are complete before the first one appears. After an error there is none of
    /// them, except that of the counts if renaming the other array fails.
    ///
    /// ```
    /// use blosc2::NDArray;
    ///
    /// let array = NDArray::from_slice(&[3i8, 1, 3, 3], 4)?;
    /// let (items, counts) = NDArray::builder().unique_counts::<i8>(&array, NDArray::builder())?;
    /// assert_eq!(items.read::<Vec<i8>>(..)?, [1, 3]);
    /// assert_eq!(counts.read::<Vec<i64>>(..)?, [1, 3]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// Fails with the errors of [`sort`](Self::sort), and with
    /// - [`ErrorKind::InvalidArgument`]: both targets are the same path.
    pub fn unique_counts<'a, T: Real>(
        self,
        source: impl Into<NDArrayView<'a>>,
        counts: NDArrayBuilder,
    ) -> Result<(NDArray, NDArray)> {
        let source = source.into();
        let sorter =
            Sorter::new(&self, &source, |key: T, _| (key, [1]), Some(|[one], [two]| [one + two]))?;
        let (items, counts) =
            (self.limited_as(sorter.readings()), counts.limited_as(sorter.readings()));
        items.check_order::<T>(source.len())?;
        counts.check_order::<i64>(source.len())?;
        if items.path().is_some() && items.path() == counts.path() {
            let detail = "the items and the counts have the same path";
            return Err(Error::new(ErrorKind::InvalidArgument, SORT, detail));
        }
        let mut counted = None;
        let items = items.place_of::<T, _>(Readings::default(), |store, _| {
            let mut written = None;
            // The second target is checked before the sort, and complete after the first array is written.
            counted = Some(counts.place_of::<i64, _>(sorter, |other, sorter| {
                let (merged, readings) = (sorter.merged()?, sorter.readings());
                let len = merged.len();
                written = Some(items.fill_in_order(store, readings, len, |put| {
                    merged.each(&mut |records| put(&Vec::from_iter(records.map(|(key, _)| key))))
                })?);
                counts.fill_in_order(other, readings, len, |put| {
                    merged.each(&mut |records| {
                        put(&Vec::from_iter(records.map(|(_, [count])| count)))
                    })
                })
            })?);
            match written {
                Some(written) => Ok(written),
                None => unreachable!("the array was written before the second one"),
            }
        })?;
        match counted {
            Some(counted) => Ok((items, counted)),
            None => unreachable!("the second array was created before the first one"),
        }
    }
}

fn is_before<T: Real>(one: T, other: T) -> bool {
    one.is_less(other) | (!one.is_nan() & other.is_nan())
}

fn compare<T: Real, const N: usize>(one: &Record<T, N>, other: &Record<T, N>) -> Ordering {
    if is_before(one.0, other.0) {
        Ordering::Less
    } else if is_before(other.0, one.0) {
        Ordering::Greater
    } else {
        Ordering::Equal
    }
}

/// Returns the values of one record for several records with equal keys.
type Join<const N: usize> = fn([i64; N], [i64; N]) -> [i64; N];

/// Joins the values of consecutive records with equal keys. The first record is kept.
fn join<T: Real, const N: usize>(records: &mut Vec<Record<T, N>>, join: Join<N>) {
    records.dedup_by(|next, kept| {
        let is_equal = !is_before(kept.0, next.0);
        if is_equal {
            kept.1 = join(kept.1, next.1);
        }
        is_equal
    });
}

type Runs<T> = (Vec<Run<T>>, Spill);

struct Merged<T, const N: usize> {
    run: Run<T>,
    spill: Spill,
}

impl<T: Real, const N: usize> Merged<T, N> {
    fn len(&self) -> u64 {
        self.run.iter().map(|part| part.count() as u64).sum()
    }

    fn each(
        &self,
        take: &mut dyn FnMut(std::vec::IntoIter<Record<T, N>>) -> Result<()>,
    ) -> Result<()> {
        let mut unpacker = Unpacker::new()?;
        self.run.iter().try_for_each(|part| take(unpacker.get(part, &self.spill)?.into_iter()))
    }
}

impl<T: Element, const N: usize> Sources for Sorter<'_, T, N> {
    fn readings(&self) -> &Readings<'_> {
        &self.readings
    }
}

struct Sorter<'a, T: Element, const N: usize> {
    source: Items<'a, T>,
    readings: Readings<'a>,
    len: u64,
    /// The chunk size of the source.
    chunk: u64,
    directory: Option<PathBuf>,
    threads: usize,
    /// Returns the record of an item with its position.
    record: fn(T, u64) -> Record<T, N>,
    /// For records with unique keys.
    join: Option<Join<N>>,
    /// The number of records of a run and of a part, and the largest number of runs that are merged together.
    run: usize,
    part: usize,
    fan_in: usize,
}

impl<'a, T: Real, const N: usize> Sorter<'a, T, N> {
    fn new(
        builder: &NDArrayBuilder,
        source: &NDArrayView<'a>,
        record: fn(T, u64) -> Record<T, N>,
        join: Option<Join<N>>,
    ) -> Result<Self> {
        if source.ndim() != 1 {
            let detail = format!("expected one dimension, got the shape {:?}", source.shape());
            return Err(source.error(ErrorKind::InvalidArgument, detail).doing(SORT));
        }
        let (items, len) = (Items::of(source.clone()).doing(SORT)?, source.len());
        let threads = builder.threads().max(1);
        // The number of records in the memory of a thread.
        let room = builder.memory() / threads / size_of::<Record<T, N>>();
        // The sort needs as much memory again.
        let run = (room / 2).max(64);
        let chunk = source.grid(0).chunk;
        // A chunk is not read for two runs.
        let whole = usize::try_from(chunk).unwrap_or(usize::MAX);
        let run = if run > whole { run - run % whole } else { run };
        let runs = usize::try_from(len.div_ceil(run as u64)).unwrap_or(usize::MAX);
        // The list of parts needs at most a third of the memory, and twice as much while runs are merged.
        let listed = len.saturating_mul(3 * size_of::<Part<T>>() as u64);
        let listed = listed / builder.memory().max(1) as u64;
        // A group has at most the records of `2 * runs` parts. Each thread works on one group, which needs twice its
        // memory, and two others wait until they are stored.
        let least = PART.min(run.div_ceil(4));
        let least = least.max(usize::try_from(listed).unwrap_or(usize::MAX)).min(run);
        let fan_in = (room / 8 / least).clamp(2, runs.max(2));
        let part = (room / 8 / fan_in).clamp(least, run);
        let (directory, readings) = (builder.directory(), Readings::new([source.array()])?);
        let source = items;
        Ok(Self {
            source,
            readings,
            len,
            chunk,
            directory,
            threads,
            record,
            join,
            run,
            part,
            fan_in,
        })
    }

    /// Passes the sorted records to `take`, in parts.
    fn sorted(&self, take: &mut Put<'_, Record<T, N>>) -> Result<()> {
        if self.len <= self.run as u64 {
            return take(&self.read_run(Threads::new(self.threads), 0..self.len)?);
        }
        let (mut runs, mut spill) = self.runs()?;
        while runs.len() > self.fan_in {
            (runs, spill) = self.merge_some(&runs, &spill)?;
        }
        self.merge(&runs, &spill, take)
    }

    fn merged(&self) -> Result<Merged<T, N>> {
        let (mut runs, mut spill) = self.runs()?;
        while runs.len() > 1 {
            (runs, spill) = self.merge_some(&runs, &spill)?;
        }
        Ok(Merged { run: runs.pop().unwrap_or_default(), spill })
    }

    fn runs(&self) -> Result<Runs<T>> {
        let (len, size) = (self.len, self.run as u64);
        let spill = Spill::new(self.directory.as_deref())?;
        let count = usize::try_from(len.div_ceil(size)).unwrap_or(usize::MAX);
        let mut runs = Vec::new();
        reserve(&mut runs, count).doing(SORT)?;
        let make = |packer: &mut Packer, number: usize| {
            let start = number as u64 * size;
            let records = self.read_run(Threads::ONE, start..len.min(start + size))?;
            records.chunks(self.part).map(|part| packer.put(part, &spill)).collect()
        };
        parallel::ordered(self.threads, count, Packer::new, make, |run| {
            runs.push(run);
            Ok(())
        })?;
        Ok((runs, spill))
    }

    fn read_run(&self, threads: Threads, range: Range<u64>) -> Result<Vec<Record<T, N>>> {
        let mut records = Vec::new();
        reserve(&mut records, (range.end - range.start) as usize).doing(SORT)?;
        let reading = self.readings.of(self.source.view().array());
        let mut start = range.start;
        while start < range.end {
            let end = (start - start % self.chunk).saturating_add(self.chunk).min(range.end);
            let ranges = std::iter::once(start..end).collect::<Vec<_>>();
            let items = self.source.read_box(threads, reading, &ranges)?;
            records.extend(items.into_iter().zip(start..).map(|(key, at)| (self.record)(key, at)));
            start = end;
        }
        records.sort_by(compare);
        if let Some(value) = self.join {
            join(&mut records, value);
        }
        Ok(records)
    }

    /// Merges groups of consecutive runs, so that fewer runs remain.
    fn merge_some(&self, runs: &[Run<T>], spill: &Spill) -> Result<Runs<T>> {
        let (merged, mut packer) = (Spill::new(self.directory.as_deref())?, Packer::new()?);
        let mut result = Vec::new();
        for runs in runs.chunks(self.fan_in) {
            let (mut run, mut rest) = (Run::new(), Vec::new());
            self.merge(runs, spill, &mut |records| {
                for records in records.chunks(self.part) {
                    rest.extend_from_slice(records);
                    if rest.len() >= self.part {
                        run.push(packer.put(&rest[..self.part], &merged)?);
                        rest.drain(..self.part);
                    }
                }
                Ok(())
            })?;
            if !rest.is_empty() {
                run.push(packer.put(&rest, &merged)?);
            }
            result.push(run);
        }
        Ok((result, merged))
    }

    fn merge(
        &self,
        runs: &[Run<T>],
        spill: &Spill,
        take: &mut Put<'_, Record<T, N>>,
    ) -> Result<()> {
        let mut bounds: Vec<Bound<T>> = Vec::new();
        for (run, parts) in runs.iter().enumerate() {
            let bound = |(part, first): (usize, &Part<T>)| Bound { key: first.first, run, part };
            bounds.extend(parts.iter().enumerate().map(bound));
        }
        // The order of the bounds of a run stays the same: the sort is stable.
        bounds.sort_by(|one, other| compare(&(one.key, []), &(other.key, [])));
        let bounds: Vec<Bound<T>> = bounds.into_iter().step_by(runs.len().max(1)).collect();
        // The last record, which may be equal to the first ones of the next group.
        let mut last: Option<Record<T, N>> = None;
        let group = |unpacker: &mut Unpacker, number: usize| {
            let (low, high) = (&bounds[number], bounds.get(number + 1));
            let mut records = Vec::new();
            for (run, parts) in runs.iter().enumerate() {
                let start = low.part_of(run, parts).saturating_sub(1);
                let end = high.map_or(parts.len(), |high| high.part_of(run, parts));
                for (at, part) in parts.iter().enumerate().take(end).skip(start) {
                    let found = unpacker.get::<T, N>(part, spill)?;
                    let from = low.within(run, at, &found);
                    let to = high.map_or(found.len(), |high| high.within(run, at, &found));
                    reserve(&mut records, to.saturating_sub(from)).doing(SORT)?;
                    records.extend_from_slice(found.get(from..to).unwrap_or_default());
                }
            }
            records.sort_by(compare);
            if let Some(value) = self.join {
                join(&mut records, value);
            }
            Ok(records)
        };
        parallel::ordered(self.threads, bounds.len(), Unpacker::new, group, |mut records| {
            let Some(value) = self.join else { return take(&records) };
            if let Some(before) = last.take() {
                match records.first_mut() {
                    Some(first) if !is_before(before.0, first.0) => {
                        *first = (before.0, value(before.1, first.1));
                    }
                    _ => take(&[before])?,
                }
            }
            last = records.pop();
            take(&records)
        })?;
        last.map_or(Ok(()), |last| take(&[last]))
    }
}

/// The position of the first record of a part, among all records of all runs. Records are ordered by the key, then by
/// the run, then by the position in the run, so that a group of equal records can be divided.
struct Bound<T> {
    key: T,
    run: usize,
    part: usize,
}

impl<T: Real> Bound<T> {
    /// Whether a record of another run is before the bound.
    fn is_after(&self, run: usize, key: T) -> bool {
        match run < self.run {
            true => !is_before(self.key, key),
            false => is_before(key, self.key),
        }
    }

    /// The number of parts of a run whose first record is before the bound.
    fn part_of(&self, run: usize, parts: &[Part<T>]) -> usize {
        match run == self.run {
            true => self.part,
            false => parts.partition_point(|part| self.is_after(run, part.first)),
        }
    }

    /// The number of records of a part that are before the bound.
    fn within<const N: usize>(&self, run: usize, part: usize, records: &[Record<T, N>]) -> usize {
        match run == self.run {
            true if part < self.part => records.len(),
            true => 0,
            false => records.partition_point(|(key, _)| self.is_after(run, *key)),
        }
    }
}
