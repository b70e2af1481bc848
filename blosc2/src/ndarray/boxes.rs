//! Boxes (ranges of indices on each axis) of a view, from which arrays are created.

use std::ops::Range;

use blosc2_format::b2nd::Geometry;

use super::NDArray;
use super::gather::{self, READ, Sink};
use super::places::{ItemPart, Places};
use super::plan::{Items, position};
use super::region::Region;
use super::view::NDArrayView;
use crate::closures::{Closures, registered};
use crate::schunk::{Fetched, Reading};
use crate::{Error, ErrorKind, Result, Threads};

impl NDArray {
    /// Returns the text of the dtype. Without a dtype, returns the dtype of raw bytes with the typesize, as in C.
    pub(super) fn dtype_text(&self) -> String {
        self.dtype_str().map_or_else(|| format!("|S{}", self.typesize()), str::to_owned)
    }

    /// Whether the items of another array have the same dtype.
    fn has_items_of(&self, other: &Self) -> bool {
        let formats = self.dtype_format() == other.dtype_format();
        let is_same = || {
            let dtypes = self.dtype().zip(other.dtype());
            dtypes.is_some_and(|(dtype, other)| dtype.is_equivalent(other))
        };
        self.typesize() == other.typesize()
            && (formats && self.dtype_text() == other.dtype_text() || is_same())
    }
}

impl NDArrayView<'_> {
    /// Whether the view is the entire array with unchanged axes.
    pub(super) fn is_whole(&self) -> bool {
        self.region == Region::whole(self.array.shape())
    }

    /// Checks that the view can be joined on an axis to an array, or to a part of an array, with this shape.
    pub(super) fn check_joins(
        &self,
        (array, shape): (&NDArray, &[u64]),
        axis: usize,
        doing: &str,
    ) -> Result<()> {
        let found = self.shape();
        let differs = |other: usize| other != axis && found[other] != shape[other];
        if found.len() != shape.len() || (0..shape.len()).any(differs) {
            let detail =
                format!("the shapes {shape:?} and {found:?} do not match along axis {axis}");
            return Err(Error::new(ErrorKind::InvalidArgument, doing, detail));
        }
        if !array.has_items_of(self.array) {
            let (dtype, other) = (array.dtype_text(), self.array.dtype_text());
            let detail = format!("the dtypes {dtype} and {other} differ");
            return Err(Error::new(ErrorKind::TypeMismatch, doing, detail));
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
        doing: &str,
    ) -> Result<()> {
        let region = self.region.select(&ranges.to_vec().into(), doing)?;
        let (shape, typesize) = (region.shape(), self.array.typesize());
        let places = Places::in_box(&extent, &shape, &to, ItemPart::whole(typesize));
        let sink = Sink::new(bytes, &places, true);
        self.gather_alone((reading, &Fetched::default()), &region, sink, doing)
    }

    /// Reads the compressed blocks of a box of the view from the file, if the box is in one chunk or the storage has a
    /// high latency.
    pub(super) fn fetch(
        &self,
        reading: &Reading<'_>,
        ranges: &[Range<u64>],
        fetched: &mut Fetched,
    ) -> Result<()> {
        fetched.clear();
        let array = self.array;
        let region = self.region.select(&ranges.to_vec().into(), READ)?;
        // The plan is not used to copy items.
        let places = Places::repeated(&region.shape(), array.whole_items());
        let now = array.geometry_now(reading)?;
        let items = Items::Region(&region);
        let plan = items.plan(now.as_ref().unwrap_or(&array.geometry), &places, READ)?;
        if plan.nchunks() != 1 && !array.schunk.is_remote(reading) {
            return Ok(());
        }
        let wanted = plan.all_chunks().filter_map(|chunk| array.readers.wanted(reading, &chunk));
        array.schunk.fetch(reading, wanted.collect(), fetched)
    }

    /// Reads a box of the view on this thread. Writes the items, or this part of each item, to `bytes` in C order.
    ///
    /// `fetched` contains the compressed blocks of a box that includes this box. They were fetched in the same read.
    pub(super) fn read_tile(
        &self,
        (reading, fetched): (&Reading<'_>, &Fetched),
        ranges: &[Range<u64>],
        part: Option<ItemPart>,
        bytes: &mut [u8],
    ) -> Result<()> {
        let region = self.region.select(&ranges.to_vec().into(), READ)?;
        let part = part.unwrap_or_else(|| self.array.whole_items());
        let places = Places::in_c_order(&region.shape(), part);
        let sink = Sink::new(bytes, &places, false);
        self.gather_alone((reading, fetched), &region, sink, READ)
    }

    /// Reads the items of a region of the array on this thread.
    fn gather_alone(
        &self,
        (reading, fetched): (&Reading<'_>, &Fetched),
        region: &Region,
        sink: Sink<'_>,
        doing: &str,
    ) -> Result<()> {
        let array = self.array;
        let now = array.geometry_now(reading)?;
        let items = Items::Region(region);
        let plan = items.plan(now.as_ref().unwrap_or(&array.geometry), sink.places, doing)?;
        let from = (&array.schunk, reading, fetched);
        let read = array.readers.gather(from, &plan, sink, Threads::ONE);
        read.map_err(|error| array.schunk.at(error))
    }

    /// Returns the item that a box of the view repeats, if the chunks that contain the box store only this item. If there
    /// are several chunks, the index states this for each of them.
    pub(super) fn repeated_item(
        &self,
        reading: &Reading<'_>,
        ranges: &[Range<u64>],
    ) -> Result<Option<Vec<u8>>> {
        let array = self.array;
        let region = self.region.select(&ranges.to_vec().into(), READ)?;
        let now = array.geometry_now(reading)?;
        let geometry = now.as_ref().unwrap_or(&array.geometry);
        region.check_inside(geometry.shape(), READ)?;
        let mut chunks = Vec::with_capacity(region.positions.len());
        for (positions, &side) in region.positions.iter().zip(geometry.chunks()) {
            let Some((low, high)) = positions.bounds() else { return Ok(None) };
            chunks.push(low / side..high / side + 1);
        }
        // A list of indices can be in a few of many chunks.
        let count = |ranges: &[Range<u64>]| {
            ranges.iter().fold(1u64, |all, range| all.saturating_mul(range.end - range.start))
        };
        if count(&chunks) > count(ranges) {
            return Ok(None);
        }
        let mut place: Vec<u64> = chunks.iter().map(|range| range.start).collect();
        let number = position(&place, geometry.chunk_grid());
        while let Some(axis) = (0..place.len()).rev().find(|&at| place[at] + 1 < chunks[at].end) {
            place[axis] += 1;
            (axis + 1..place.len()).for_each(|later| place[later] = chunks[later].start);
            let other = position(&place, geometry.chunk_grid());
            if !array.schunk.are_equal_special(reading, number, other)? {
                return Ok(None);
            }
        }
        if !array.schunk.is_special(reading, number)? {
            return Ok(None);
        }
        array.schunk.with_chunk_in(reading, number, Some(&[]), |chunk, decoder| {
            Ok(gather::repeated_item(chunk, geometry.typesize(), decoder))
        })
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
        let (chunks, blocks) = (array.chunks(), array.blocks());
        if array.schunk.is_filtered() || (chunks, blocks) != (other.chunks(), other.blocks()) {
            return Ok(None);
        }
        let Some(start) = self.region.box_start() else { return Ok(None) };
        let now = array.geometry_now(reading)?;
        let geometry = now.as_ref().unwrap_or(&array.geometry);
        let mut place = Vec::with_capacity(start.len());
        for (axis, (range, start)) in ranges.iter().zip(start).enumerate() {
            let (side, low) = (chunks[axis], start + range.start);
            let end = geometry.shape()[axis].min(low.saturating_add(side));
            if !low.is_multiple_of(side) || start + range.end != end {
                return Ok(None);
            }
            place.push(low / side);
        }
        let number = position(&place, geometry.chunk_grid());
        array.schunk.with_chunk_in(reading, number, None, |chunk, _| {
            // User-defined codecs and filters may depend on the index of the chunk.
            let header = chunk.header();
            let is_free = registered(header.codec(), &header.filters) == Closures::None;
            let is_regular = is_free && array.schunk.is_regular(chunk, geometry);
            Ok(is_regular.then(|| chunk.as_bytes().to_vec()))
        })
    }
}

pub(super) fn extent(ranges: &[Range<u64>]) -> Vec<u64> {
    ranges.iter().map(|range| range.end - range.start).collect()
}
