//! Boxes (ranges of indices on each axis) of a view, from which arrays are created.

use std::ops::Range;
use std::sync::Arc;
use std::{iter, mem, ptr};

use blosc2_format::b2nd::Geometry;

use super::gather::{self, READ};
use super::places::{Sink, len_of};
use super::plan::{Items, Plan};
use super::ranges::{Place, Ranges, copy_from_box, extent, runs_of, whole};
use super::region::Region;
use super::view::NDArrayView;
use super::{NDArray, NUMPY_FORMAT, parallel};
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

    /// Reads a box of the view into `bytes`, in C order, on up to this number of threads. With a place, the items are
    /// written to a larger box, whose bytes are 0.
    ///
    /// `fetched` contains the compressed blocks of a box that includes this box. They were fetched in the same read.
    pub(crate) fn read_box(
        &self,
        threads: Threads,
        (reading, fetched): (&Reading<'_>, &Fetched),
        ranges: &[Range<u64>],
        place: Option<&Place>,
        bytes: &mut [u8],
    ) -> Result<()> {
        let (NDArray { schunk, readers, .. }, part) = (self.array, self.part());
        if part.len == 0 {
            return Ok(());
        }
        self.planned(reading, ranges, |plan| {
            let sink = match place {
                Some((at, shape)) => Sink::in_box(plan, part, (shape, at), bytes, true),
                None => Sink::new(plan, part, bytes, false),
            };
            readers
                .gather((schunk, reading, fetched), sink, threads)
                .map_err(|error| schunk.at(error))?;
            Ok(())
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
        self.prepare(ranges, bytes)?;
        self.read_box(threads, (reading, &NOTHING_FETCHED), ranges, None, bytes)
    }

    /// Resizes a buffer to the size of the items of a box. The limit on temporary memory of the array applies.
    fn prepare(&self, ranges: &[Range<u64>], bytes: &mut Vec<u8>) -> Result<()> {
        let len = len_of(&extent(ranges), self.part().len);
        self.array.schunk.allow_scratch(len).doing(READ)?;
        resize(bytes, len as usize).doing(READ)
    }

    fn planned<R>(
        &self,
        reading: &Reading<'_>,
        ranges: &[Range<u64>],
        work: impl FnOnce(Plan<'_>) -> Result<R, Reason>,
    ) -> Result<R, Reason> {
        let region = self.region.part(ranges);
        self.array.planned(reading, Items::Region(&region), work)
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

    pub(crate) fn of(&self, array: &NDArray) -> &Reading<'a> {
        &self.readings[self.index(array)]
    }
}

/// Returns whether two shapes have the same number of axes, and the same size on each axis except `axis`.
pub(super) fn are_equal_except(axis: Option<usize>, one: &[u64], other: &[u64]) -> bool {
    let is_equal = |(number, (one, other))| Some(number) == axis || one == other;
    one.len() == other.len() && one.iter().zip(other).enumerate().all(is_equal)
}

/// Returns the box of a view that a box of the new array needs.
type Needed<'a> = dyn Fn(&[Range<u64>]) -> Ranges + Sync + 'a;

/// Reads boxes of a view for a new array: from the array of the view, or from a larger box in memory.
pub(crate) struct BoxReader<'a> {
    pub(super) view: &'a NDArrayView<'a>,
    pub(super) reading: &'a Reading<'a>,
    /// Another shape of the items, which has the same C order.
    shape: Option<&'a [u64]>,
    needed: Box<Needed<'a>>,
    /// The box in memory, and its items in C order.
    held: Option<(Ranges, Vec<u8>)>,
}

impl<'a> BoxReader<'a> {
    pub(crate) fn new(
        view: &'a NDArrayView<'a>,
        reading: &'a Reading<'a>,
        needed: impl Fn(&[Range<u64>]) -> Ranges + Sync + 'a,
    ) -> Self {
        Self { view, reading, shape: None, needed: Box::new(needed), held: None }
    }

    /// Reads boxes of the items in another shape, which is that of the new array.
    pub(super) fn reshaped(
        view: &'a NDArrayView<'a>,
        reading: &'a Reading<'a>,
        shape: &'a [u64],
    ) -> Self {
        Self { shape: Some(shape), ..Self::new(view, reading, <[_]>::to_vec) }
    }

    pub(crate) fn is_held(&self) -> bool {
        self.held.is_some()
    }

    /// Reads a box in C order. With a place, the items are written to a larger box, whose bytes are 0.
    pub(crate) fn read(
        &self,
        ranges: &[Range<u64>],
        place: Option<&Place>,
        bytes: &mut [u8],
    ) -> Result<()> {
        match &self.held {
            Some((held, items)) => {
                copy_from_box(items, self.view.part().len, (ranges, held), (bytes, place));
                Ok(())
            }
            None => self.read_on(1, ranges, place, bytes),
        }
    }

    /// Reads a box into `bytes`, which is resized. The limit on temporary memory of the array applies.
    pub(super) fn read_to(&self, ranges: &[Range<u64>], bytes: &mut Vec<u8>) -> Result<()> {
        self.view.prepare(ranges, bytes)?;
        self.read(ranges, None, bytes)
    }

    fn read_on(
        &self,
        threads: usize,
        ranges: &[Range<u64>],
        place: Option<&Place>,
        bytes: &mut [u8],
    ) -> Result<()> {
        match self.shape {
            Some(shape) => self.read_reshaped(threads, shape, ranges, bytes),
            None => {
                let from = (self.reading, &NOTHING_FETCHED);
                self.view.read_box(Threads::new(threads), from, ranges, place, bytes)
            }
        }
    }

    /// Reads a box of another shape. It consists of boxes of the view, which are read together in groups: from one larger
    /// box that contains them, unless it has more blocks than the boxes have separately.
    fn read_reshaped(
        &self,
        threads: usize,
        shape: &[u64],
        ranges: &[Range<u64>],
        bytes: &mut [u8],
    ) -> Result<()> {
        let (own, typesize) = (self.view.shape(), self.view.part().len);
        let len_of = |ranges: &[Range<u64>]| len_of(&extent(ranges), typesize);
        let read = |threads: usize, ranges: &[Range<u64>], bytes: &mut [u8]| {
            let from = (self.reading, &NOTHING_FETCHED);
            self.view.read_box(Threads::new(threads), from, ranges, None, bytes)
        };
        let most = (2 * bytes.len() as u64).clamp(LEAST_LARGER_BOX, MOST_LARGER_BOX);
        let (mut boxes, mut rest) = (boxes_of(&own, shape, ranges).peekable(), bytes);
        while let Some(mut larger) = boxes.peek().cloned() {
            let (group, mut count, mut len) = (boxes.clone(), 0, 0);
            while let Some(part) = boxes.peek() {
                let union: Ranges = larger
                    .iter()
                    .zip(part)
                    .map(|(one, other)| one.start.min(other.start)..one.end.max(other.end))
                    .collect();
                let (union_len, union_needs) = (len_of(&union), len + len_of(part));
                if count > 0 && union_len > most.max(union_needs) {
                    break;
                }
                (larger, count, len) = (union, count + 1, union_needs);
                boxes.next();
            }
            let parts = group.take(count);
            let (to, others) = mem::take(&mut rest).split_at_mut(len as usize);
            rest = others;
            if len_of(&larger) == len {
                // The boxes follow each other in it.
                read(threads, &larger, to)?;
                continue;
            }
            let nblocks = parts.clone().map(|part| self.nblocks(&part)).sum::<Result<u64>>()?;
            let mut left = to;
            let mut parts = parts.map(|part| {
                let (to, others) = mem::take(&mut left).split_at_mut(len_of(&part) as usize);
                left = others;
                (part, to)
            });
            if self.nblocks(&larger)? <= nblocks {
                let mut items = Vec::new();
                self.view.read_to(Threads::new(threads), self.reading, &larger, &mut items)?;
                for (part, to) in parts {
                    copy_from_box(&items, typesize, (&part, &larger), (to, None));
                }
                continue;
            }
            loop {
                let some: Vec<_> = parts.by_ref().take(PARTS).collect();
                if some.is_empty() {
                    break;
                }
                // A part is read by one thread, if there are enough of them.
                let (outer, inner) = if some.len() < threads { (1, threads) } else { (threads, 1) };
                parallel::each_item(
                    outer,
                    some,
                    || Ok(()),
                    |(), _, (ranges, to)| read(inner, &ranges, to),
                )?;
            }
        }
        Ok(())
    }

    fn nblocks(&self, ranges: &[Range<u64>]) -> Result<u64> {
        self.view.planned(self.reading, ranges, |plan| Ok(plan.nblocks())).doing(READ)
    }

    pub(super) fn needed_len(&self, ranges: &[Range<u64>]) -> u64 {
        len_of(&extent(&(self.needed)(ranges)), self.view.part().len)
    }

    pub(super) fn needed_blocks(&self, ranges: &[Range<u64>]) -> Result<u64> {
        let (own, needed) = (self.view.shape(), (self.needed)(ranges));
        match self.shape {
            Some(shape) => boxes_of(&own, shape, &needed).map(|part| self.nblocks(&part)).sum(),
            None => self.nblocks(&needed),
        }
    }

    pub(super) fn hold(&mut self, threads: usize, ranges: &[Range<u64>]) -> Result<()> {
        let (_, mut items) = self.held.take().unwrap_or_default();
        resize(&mut items, self.needed_len(ranges) as usize).doing(READ)?;
        let needed = (self.needed)(ranges);
        self.read_on(threads, &needed, None, &mut items)?;
        self.held = Some((needed, items));
        Ok(())
    }
}

/// The number of boxes that are collected before they are read. It limits their memory to some kilobytes.
const PARTS: usize = 256;

/// The bytes of a box with items that are not needed: at most twice the bytes of the request, but 4 MiB are always allowed,
/// and more than 16 MiB never. The limit of the source on temporary memory always allows these sizes.
const MOST_LARGER_BOX: u64 = 16 << 20;
const LEAST_LARGER_BOX: u64 = 4 << 20;

/// Returns boxes of an array of the shape `own`, whose items are those of a box of another shape, in C order.
fn boxes_of<'a>(
    own: &'a [u64],
    shape: &'a [u64],
    ranges: &'a [Range<u64>],
) -> impl Iterator<Item = Ranges> + Clone + 'a {
    runs_of(ranges, shape).flat_map(move |Range { mut start, end }| {
        iter::from_fn(move || {
            let (mut at, mut ranges, mut len) = (start, whole(own), 1);
            if start == end {
                return None;
            }
            // The axes from the last one on which the box has all indices.
            let mut is_inner = true;
            for (range, &size) in ranges.iter_mut().zip(own).rev() {
                let index = at % size;
                at /= size;
                if is_inner && (index > 0 || start + len * size > end) {
                    is_inner = false;
                    *range = index..size.min(index + (end - start) / len);
                    len *= range.end - index;
                } else if is_inner {
                    len *= size;
                } else {
                    *range = index..index + 1;
                }
            }
            start += len;
            Some(ranges)
        })
    })
}
