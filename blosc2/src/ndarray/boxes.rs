//! Boxes (ranges of indices on each axis) of a view, from which arrays are created.

use std::ops::Range;
use std::ptr;
use std::sync::Arc;

use blosc2_format::b2nd::Geometry;

use super::gather::{self, READ};
use super::places::{ItemPart, Sink, len_of};
use super::plan::{Items, Plan};
use super::region::Region;
use super::view::NDArrayView;
use super::{NDArray, NUMPY_FORMAT};
use crate::closures::{Closures, registered};
use crate::gate::Gate;
use crate::schunk::{Fetched, NOTHING_FETCHED, Reading, Wanted};
use crate::support::memory::resize;
use crate::{Doing, ErrorKind, Reason, Result, Threads};

impl NDArrayView<'_> {
    /// Whether the view contains all items of the array, or a field of them, with unchanged axes.
    pub(crate) fn is_whole(&self) -> bool {
        self.region == Region::whole(self.array.shape())
    }

    /// Whether the view is the entire array with unchanged axes.
    pub(crate) fn is_array(&self) -> bool {
        self.field.is_none() && self.is_whole()
    }

    /// Returns the stored text of the dtype, and the number of its notation. Without a dtype, returns the dtype of raw
    /// bytes with the typesize, as in C.
    pub(super) fn dtype_text(&self) -> (String, u8) {
        match (&self.field, self.array.dtype_str()) {
            (Some(field), _) => (field.dtype.to_string(), NUMPY_FORMAT),
            (None, Some(text)) => (text.to_owned(), self.array.dtype_format()),
            (None, None) => (format!("|S{}", self.array.typesize()), NUMPY_FORMAT),
        }
    }

    /// Checks that this view has the dtype of another view, and this shape, except on one axis.
    pub(super) fn check_joins(
        &self,
        (other, shape): (&NDArrayView<'_>, &[u64]),
        axis: Option<usize>,
    ) -> Result<(), Reason> {
        let found = self.shape();
        if !are_equal_except(axis, &found, shape) {
            let except =
                axis.map_or(String::new(), |axis| format!(" on an axis other than {axis}"));
            let detail = format!("the shapes {shape:?} and {found:?} differ{except}");
            return Err(Reason::new(ErrorKind::InvalidArgument, detail));
        }
        let (texts, dtypes) =
            ((other.dtype_text(), self.dtype_text()), other.dtype().zip(self.dtype()));
        let are_same =
            texts.0 == texts.1 || dtypes.is_some_and(|(one, two)| one.is_equivalent(two));
        if other.part().len != self.part().len || !are_same {
            let detail = format!("the dtypes {} and {} differ", texts.0.0, texts.1.0);
            return Err(Reason::new(ErrorKind::TypeMismatch, detail));
        }
        Ok(())
    }

    /// Reads a box of the view into a larger box with the shape `extent`, whose items are in `bytes` in C order. The
    /// first item is written to the index `to` of the larger box. The overwritten bytes must be 0.
    pub(super) fn read_box(
        &self,
        reading: &Reading<'_>,
        ranges: &[Range<u64>],
        (to, extent): (Vec<u64>, Vec<u64>),
        bytes: &mut [u8],
    ) -> Result<(), Reason> {
        self.planned(reading, ranges, |plan| match self.part() {
            ItemPart { len: 0, .. } => Ok(()),
            part => {
                let sink = Sink::in_box(plan, part, (&extent, &to), bytes, true);
                Ok(self.gather_on(Threads::ONE, (reading, &NOTHING_FETCHED), sink)?)
            }
        })
    }

    /// Returns the blocks of a box of the view that are fetched together, one value for each chunk. Returns nothing if
    /// the box is in several chunks and the storage has a low latency, or if the index states that all chunks repeat one
    /// item.
    pub(crate) fn wanted(
        &self,
        reading: &Reading<'_>,
        ranges: &[Range<u64>],
    ) -> Result<Vec<Wanted>> {
        let NDArray { schunk, readers, .. } = self.array;
        self.planned(reading, ranges, |plan| {
            let is_fetched = plan.nchunks() == 1 || schunk.is_remote(reading);
            if !is_fetched || self.are_equal_special(reading, &plan)? {
                return Ok(Vec::new());
            }
            Ok(plan.chunks().filter_map(|chunk| readers.wanted(reading, &chunk)).collect())
        })
        .doing(READ)
    }

    /// Returns whether the index has the same special value for all chunks of a plan.
    fn are_equal_special(&self, reading: &Reading<'_>, plan: &Plan<'_>) -> Result<bool> {
        let mut numbers = plan.chunk_numbers();
        let Some(first) = numbers.next() else { return Ok(false) };
        let schunk = &self.array.schunk;
        // The first comparison is with the chunk itself: its value may not be in the index.
        for other in std::iter::once(first).chain(numbers) {
            if !schunk.are_equal_special(reading, first, other)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads a box of the view on this thread. Writes the items to `bytes` in C order.
    ///
    /// `fetched` contains the compressed blocks of a box that includes this box. They were fetched in the same read.
    pub(crate) fn read_tile(
        &self,
        from: (&Reading<'_>, &Fetched),
        ranges: &[Range<u64>],
        bytes: &mut [u8],
    ) -> Result<()> {
        self.read_tile_on(Threads::ONE, from, ranges, bytes)
    }

    /// [`read_tile`](Self::read_tile) on up to this number of threads.
    pub(crate) fn read_tile_on(
        &self,
        threads: Threads,
        from: (&Reading<'_>, &Fetched),
        ranges: &[Range<u64>],
        bytes: &mut [u8],
    ) -> Result<()> {
        self.planned(from.0, ranges, |plan| {
            Ok(self.gather_on(threads, from, Sink::new(plan, self.part(), bytes, false))?)
        })
        .doing(READ)
    }

    /// Reads the stored bytes of the items of a box into `bytes`, which is resized. The limit on temporary memory of the
    /// array applies.
    pub(crate) fn read_to(
        &self,
        threads: Threads,
        reading: &Reading<'_>,
        ranges: &[Range<u64>],
        bytes: &mut Vec<u8>,
    ) -> Result<()> {
        let len = len_of(&extent(ranges), self.part().len);
        self.array.schunk.allow_scratch(len).doing(READ)?;
        // All bytes are overwritten.
        resize(bytes, len as usize).doing(READ)?;
        self.read_tile_on(threads, (reading, &NOTHING_FETCHED), ranges, bytes)
    }

    /// Calls `work` with the plan of a box of the view.
    fn planned<R>(
        &self,
        reading: &Reading<'_>,
        ranges: &[Range<u64>],
        work: impl FnOnce(Plan<'_>) -> Result<R, Reason>,
    ) -> Result<R, Reason> {
        let region = self.region.part(ranges);
        let now = self.array.geometry_now(reading)?;
        let geometry = now.as_ref().unwrap_or(&self.array.geometry);
        work(Plan::new(geometry, Items::Region(&region))?)
    }

    /// Reads items of the array on up to this number of threads.
    fn gather_on(
        &self,
        threads: Threads,
        (reading, fetched): (&Reading<'_>, &Fetched),
        sink: Sink<'_, '_>,
    ) -> Result<()> {
        let NDArray { schunk, readers, .. } = self.array;
        let read = readers.gather((schunk, reading, fetched), sink, threads);
        read.map_err(|error| schunk.at(error))
    }

    /// Returns whether the chunks of a copy with this geometry need the same blocks, so that reading boxes of the shape
    /// `slab` decompresses less than half of what reading the chunks one by one decompresses.
    pub(super) fn shares_blocks(
        &self,
        reading: &Reading<'_>,
        copy: &Geometry,
        slab: &[u64],
    ) -> Result<bool, Reason> {
        if copy.nchunks() < 2 {
            return Ok(false);
        }
        let blocks = |sides: &[u64]| {
            let first = copy.shape().iter().zip(sides).map(|(&size, &side)| 0..size.min(side));
            let first: Vec<_> = first.collect();
            self.planned(reading, &first, |plan| {
                Ok(plan.chunks().map(|chunk| chunk.nblocks() as u64).sum::<u64>())
            })
        };
        let count = |sides: &[u64]| -> u64 {
            copy.shape().iter().zip(sides).map(|(size, side)| size.div_ceil(*side)).product()
        };
        let one_by_one = blocks(copy.chunk_shape())?.saturating_mul(count(copy.chunk_shape()));
        Ok(one_by_one > 2 * blocks(slab)?.saturating_mul(count(slab)))
    }

    /// Returns the item that a box of the view repeats, if the chunks that contain the box store only this item. If there
    /// are several chunks, the index states this for each of them.
    pub(crate) fn repeated_item(
        &self,
        (reading, window): (&Reading<'_>, Option<&Fetched>),
        ranges: &[Range<u64>],
    ) -> Result<Option<Vec<u8>>> {
        let schunk = &self.array.schunk;
        self.planned(reading, ranges, |plan| {
            let Some(first) = plan.chunk_numbers().next() else { return Ok(None) };
            let is_special = match window.map(|window| window.get(first)) {
                _ if plan.nchunks() > 1 => self.are_equal_special(reading, &plan)?,
                Some(Some((header, _))) => header.special.is_some(),
                // The other chunks of the window are not special: without a request for the header.
                Some(None) => schunk.are_equal_special(reading, first, first)?,
                None => schunk.is_special(reading, first)?,
            };
            if !is_special {
                return Ok(None);
            }
            let fetched = window.unwrap_or(&NOTHING_FETCHED);
            schunk
                .with_chunk_or_fetched(reading, first, Some(&[]), fetched, |chunk, decoder| {
                    Ok(gather::repeated_item(chunk, plan.geometry().typesize(), decoder))
                })
                .map_err(Reason::from)
        })
        .doing(READ)
    }

    /// Returns the compressed chunk that contains exactly the items of this box. The box is the one of a chunk of
    /// another array. Returns `None` if there is no such chunk, or if the other array cannot store the chunk unchanged.
    pub(super) fn whole_chunk(
        &self,
        reading: &Reading<'_>,
        ranges: &[Range<u64>],
        other: &Geometry,
    ) -> Result<Option<Vec<u8>>> {
        let array = self.array;
        let (chunks, blocks) = (array.chunk_shape(), array.block_shape());
        if array.schunk.is_filtered()
            || (chunks, blocks) != (other.chunk_shape(), other.block_shape())
        {
            return Ok(None);
        }
        if self.field.is_some() || !self.region.is_box() {
            return Ok(None);
        }
        self.planned(reading, ranges, |plan| {
            let Some(number) = plan.whole_chunk() else { return Ok(None) };
            let chunk = array.schunk.with_chunk_in(reading, number, None, |chunk, _| {
                // User-defined codecs and filters may depend on the index of the chunk.
                let header = chunk.header();
                let is_free = registered(header.codec(), &header.filters) == Closures::None;
                let is_regular = is_free && array.schunk.is_regular(chunk, plan.geometry());
                Ok(is_regular.then(|| chunk.as_bytes().to_vec()))
            })?;
            Ok(chunk)
        })
        .doing(READ)
    }
}

/// The sources of a new array. They are read until this value is dropped.
pub(crate) trait Sources {
    fn readings(&self) -> &Readings<'_>;
}

impl Sources for Readings<'_> {
    fn readings(&self) -> &Self {
        self
    }
}

/// The reads of some arrays. Until this value is dropped, the arrays do not change.
#[derive(Default)]
pub(crate) struct Readings<'a> {
    arrays: Vec<&'a NDArray>,
    readings: Vec<Reading<'a>>,
}

impl<'a> Readings<'a> {
    /// Starts to read these arrays. An array that occurs several times is read once.
    pub(crate) fn new(arrays: impl IntoIterator<Item = &'a NDArray>) -> Result<Self> {
        let mut all = Self { arrays: Vec::new(), readings: Vec::new() };
        for array in arrays {
            if !all.arrays.iter().any(|other| ptr::eq(*other, array)) {
                all.readings.push(array.schunk.reading()?);
                all.arrays.push(array);
            }
        }
        Ok(all)
    }

    /// Returns the different arrays, in the order of their first occurrence.
    pub(crate) fn arrays(&self) -> &[&'a NDArray] {
        &self.arrays
    }

    /// Returns the claims of the files of the arrays.
    pub(super) fn gates(&self) -> impl Iterator<Item = Arc<Gate>> {
        self.arrays.iter().filter_map(|array| array.schunk.gate())
    }

    /// Returns the index of an array among the different arrays.
    pub(crate) fn index(&self, array: &NDArray) -> usize {
        match self.arrays.iter().position(|other| ptr::eq(*other, array)) {
            Some(index) => index,
            None => unreachable!("`new` starts to read all arrays"),
        }
    }

    /// Returns the read of an array.
    pub(crate) fn of(&self, array: &NDArray) -> &Reading<'a> {
        &self.readings[self.index(array)]
    }
}

/// Returns whether two shapes have the same number of axes, and the same size on each axis except `axis`.
pub(super) fn are_equal_except(axis: Option<usize>, one: &[u64], other: &[u64]) -> bool {
    let is_equal = |(number, (one, other))| Some(number) == axis || one == other;
    one.len() == other.len() && one.iter().zip(other).enumerate().all(is_equal)
}

pub(crate) fn extent(ranges: &[Range<u64>]) -> Vec<u64> {
    ranges.iter().map(|range| range.end - range.start).collect()
}

/// Moves an index to the next one of a box, in C order. Returns `false` after the last index.
pub(crate) fn next_index(index: &mut [u64], ranges: &[Range<u64>]) -> bool {
    for (at, range) in index.iter_mut().zip(ranges).rev() {
        *at += 1;
        if *at < range.end {
            return true;
        }
        *at = range.start;
    }
    false
}

/// Calls `visit` for each part of an array, in C order. The parts have these sides, except the last ones on an axis.
pub(crate) fn each_part(
    shape: &[u64],
    sides: &[u64],
    visit: &mut dyn FnMut(&[Range<u64>]) -> Result<()>,
) -> Result<()> {
    if shape.contains(&0) {
        return Ok(());
    }
    let counts = shape.iter().zip(sides).map(|(size, side)| 0..size.div_ceil(*side));
    let counts: Vec<Range<u64>> = counts.collect();
    let mut number = vec![0; shape.len()];
    loop {
        let axes = number.iter().zip(shape.iter().zip(sides));
        let part = axes.map(|(at, (size, side))| at * side..((at + 1) * side).min(*size));
        visit(&part.collect::<Vec<_>>())?;
        if !next_index(&mut number, &counts) {
            return Ok(());
        }
    }
}

/// Returns whether items of the shape `own` can be broadcast to `shape` without more axes.
pub(crate) fn can_broadcast(own: &[u64], shape: &[u64]) -> bool {
    let mut aligned = own.iter().rev().zip(shape.iter().rev());
    own.len() <= shape.len() && aligned.all(|(own, size)| *own == 1 || own == size)
}

/// Returns the ranges of items with the shape `own`, for a box of the shape to which they are broadcast.
pub(crate) fn own_ranges(own: &[u64], ranges: &[Range<u64>]) -> Vec<Range<u64>> {
    let aligned = own.iter().zip(&ranges[ranges.len() - own.len()..]);
    aligned.map(|(&size, range)| if size == 1 { 0..1 } else { range.clone() }).collect()
}
