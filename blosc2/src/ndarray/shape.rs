//! Changes of the shape: determines the chunks that stay unchanged, and the chunks that are recompressed.

use std::borrow::Cow;
use std::ops::Range;
use std::slice;

use blosc2_format::b2nd::{Axis, Geometry, Meta};
use blosc2_format::frame::Slot;

use super::boxes::{BoxReader, are_equal_except};
use super::gather::Scratch;
use super::index::{PerAxis, place, sizes};
use super::places::{ItemPart, Sink, Source};
use super::plan::Plan;
use super::ranges::{extent, next_index, whole};
use super::region::{Positions, Region};
use super::selection::{AxisIndex, AxisSelection, AxisVec};
use super::transfer::{Given, ItemSource};
use super::view::NDArrayView;
use super::{Change, NDArray, NUMPY_FORMAT, cut};
use crate::schunk::{NOTHING_FETCHED, Reading};
use crate::support::memory::reserve;
use crate::{Doing, ErrorKind, Reason, Result, SChunk, Threads};

pub(super) const APPEND: &str = "append to an array";
const RESIZE: &str = "resize an array";
pub(super) const INSERT: &str = "insert into an array";

impl NDArray {
    /// Changes the shape of the array. The number of dimensions stays the same, and new items are zeros. C:
    /// `b2nd_resize`. Python: `resize`.
    ///
    /// Items outside the new shape are removed, and chunks without remaining items are deleted. Chunks at the edges are
    /// recompressed if they lose or gain items.
    ///
    /// ```
    /// use blosc2::NDArray;
    ///
    /// let mut array = NDArray::from_slice(&[1u8, 2, 3, 4], &[2, 2])?;
    /// array.resize(&[3, 1])?;
    /// assert_eq!(array.read::<Vec<u8>>(..)?, [1, 3, 0]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    #[doc(alias = "b2nd_resize")]
    pub fn resize(&mut self, shape: impl PerAxis) -> Result<()> {
        let shape = sizes(&shape, "shape").doing(RESIZE)?;
        self.resize_to(shape, None).doing(RESIZE)
    }

    /// Changes the shape of the array by inserting or removing items at a position. New items are zeros. C:
    /// `b2nd_resize` with a `start`. In contrast to C, any position is allowed.
    ///
    /// If an axis grows, items are inserted before index `start[axis]`. If an axis shrinks, items are removed, starting
    /// at index `start[axis]`.
    ///
    /// A chunk is recompressed only if it gains or loses items, or if its items move inside the chunk. On each axis,
    /// the chunk size determines which chunks are recompressed:
    /// - If `start` and the change of the size are multiples of the chunk size, no chunk is recompressed.
    /// - If only the change of the size is a multiple of the chunk size, the chunks that contain index `start` are
    ///   recompressed.
    /// - Otherwise, the chunks that contain index `start` and all chunks after it are recompressed.
    ///
    /// ```
    /// use blosc2::NDArray;
    ///
    /// let mut array = NDArray::from_slice(&[1u8, 2, 3, 4, 5, 6], &[2, 3])?;
    /// array.resize_at(&[3, 2], &[1, 0])?; // inserts a row before row 1, removes column 0
    /// assert_eq!(array.read::<Vec<u8>>(..)?, [2, 3, 0, 0, 5, 6]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// Besides the [errors of changes](NDArray#errors-of-changes):
    /// - [`ErrorKind::OutOfBounds`]: on an axis, `start` is greater than the old size or the new size.
    #[doc(alias = "b2nd_resize")]
    pub fn resize_at(&mut self, shape: impl PerAxis, start: impl PerAxis) -> Result<()> {
        let (shape, start) = (sizes(&shape, "shape"), sizes(&start, "start"));
        self.resize_to(shape.doing(RESIZE)?, Some(start.doing(RESIZE)?)).doing(RESIZE)
    }

    /// Inserts zeros or removes items at `start`, or at the end of each axis.
    fn resize_to(&mut self, shape: Vec<u64>, start: Option<Vec<u64>>) -> Result<(), Reason> {
        self.check_ndim(shape.len(), "shape")?;
        self.check_ndim(start.as_ref().map_or(shape.len(), Vec::len), "start")?;
        self.reshape(|change| {
            let old = change.geometry.shape();
            let end = || old.iter().zip(&shape).map(|(old, new)| *old.min(new)).collect();
            let start = start.unwrap_or_else(end);
            for (axis, (&old, &new)) in old.iter().zip(&shape).enumerate() {
                let at = start[axis];
                if at > old || at > new {
                    let detail =
                        format!("axis {axis} changes from {old} to {new} items, got start {at}");
                    return Err(Reason::new(ErrorKind::OutOfBounds, detail));
                }
            }
            Ok(Reshape { shape, start, new: NewItems::Zeros })
        })
    }

    /// Appends items at the end of an axis. C: `b2nd_append`, `b2nd_concatenate` without `copy`. Python: `append`, for
    /// one-dimensional arrays.
    ///
    /// [`ItemSource`] lists the types of `items`. The length of a slice, in C order, must be a multiple of the number of
    /// items at one index of the axis (for axis 0, the number of items in a row). Another array or view must have the
    /// same dtype, and the same size on each axis except `axis`; metalayers are not copied.
    ///
    /// If the last chunks on the axis are not full, they are recompressed. For many small appends, use an
    /// [`Appender`](crate::Appender), which compresses each chunk once.
    ///
    /// A compressed chunk of another array is copied unchanged if the old size on the axis is a multiple of the chunk
    /// size, and if the conditions of [`NDArrayBuilder::copy`](crate::NDArrayBuilder::copy) are true. The arrays can
    /// have different compression parameters. All other new chunks, and old chunks that gain items, are compressed with
    /// the parameters of this array. The new compressed chunks are held in memory until all of them are written.
    ///
    /// ```
    /// use blosc2::NDArray;
    ///
    /// let mut log = NDArray::builder().chunk_shape(&[100, 2]).zeros::<f64>(&[100, 2])?;
    /// log.append(0, &[20.5, 21.0])?; // one row
    /// let today = NDArray::builder().chunk_shape(&[100, 2]).full(20.5, &[30, 2])?;
    /// log.append(0, &today)?;
    /// assert_eq!(log.shape(), [131, 2]);
    /// log.append(0, today.view().slice(&[0..5, 0..2])?)?;
    /// assert_eq!(log.item::<f64>(&[135, 1])?, 20.5);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// Besides the [errors of changes](NDArray#errors-of-changes), and the [errors of reads](NDArray#errors-of-reads)
    /// of another array:
    /// - [`ErrorKind::InvalidArgument`]: the shapes do not match, or the other array is in the same file.
    #[doc(alias("b2nd_append", "b2nd_concatenate", "concat", "extend"))]
    pub fn append<'s>(&mut self, axis: usize, items: impl ItemSource<'s>) -> Result<()> {
        self.put_in(axis, None, items.into_items()).doing(APPEND)
    }

    /// Inserts items before the index `at` of an axis. C: `b2nd_insert`. In contrast to C, any index is allowed.
    ///
    /// The items are those of [`append`](Self::append). A negative `at` counts from the end of the axis, as in NumPy's
    /// `insert`: -1 inserts before the last index.
    ///
    /// [`resize_at`](Self::resize_at) describes which chunks are recompressed.
    ///
    /// ```
    /// use blosc2::NDArray;
    ///
    /// let mut array = NDArray::from_slice(&[1i32, 2, 3, 4], &[2, 2])?;
    /// array.insert(1, 1, &[8, 9])?; // a column
    /// assert_eq!(array.read::<Vec<i32>>(..)?, [1, 8, 2, 3, 9, 4]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    #[doc(alias = "b2nd_insert")]
    pub fn insert<'s>(
        &mut self,
        axis: usize,
        at: impl AxisIndex,
        items: impl ItemSource<'s>,
    ) -> Result<()> {
        self.put_in(axis, Some(at.to_i128()), items.into_items()).doing(INSERT)
    }

    /// Deletes the items at an index or a range of indices of an axis. C: `b2nd_delete`. In contrast to C, any range is
    /// allowed.
    ///
    /// [`resize_at`](Self::resize_at) describes which chunks are recompressed.
    ///
    /// ```
    /// use blosc2::NDArray;
    ///
    /// let mut array = NDArray::from_slice(&[1u8, 2, 3, 4, 5, 6], [2, 3])?;
    /// array.delete(1, -1)?; // the last column
    /// array.delete(0, ..1)?;
    /// assert_eq!(array.read::<Vec<u8>>(..)?, [4, 5]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// Besides the [errors of changes](NDArray#errors-of-changes):
    /// - [`ErrorKind::InvalidArgument`]: the selection is not an index or a range with step 1.
    #[doc(alias = "b2nd_delete")]
    pub fn delete(&mut self, axis: usize, range: impl Into<AxisSelection>) -> Result<()> {
        let (doing, range) = ("delete from an array", range.into());
        self.check_axis(axis).doing(doing)?;
        self.reshape(|change| {
            let mut shape = change.geometry.shape().to_vec();
            let Positions::Slice { start: first, step: 1, count } =
                range.positions(axis, shape[axis])?
            else {
                let detail = "expected an index or a range with step 1";
                return Err(Reason::new(ErrorKind::InvalidArgument, detail));
            };
            let mut start = shape.clone();
            shape[axis] -= count;
            start[axis] = first;
            Ok(Reshape { shape, start, new: NewItems::Zeros })
        })
        .doing(doing)
    }

    /// Inserts items before the index `at` of an axis, or at its end.
    pub(super) fn put_in(
        &mut self,
        axis: usize,
        at: Option<i128>,
        items: Given<'_>,
    ) -> Result<(), Reason> {
        self.check_axis(axis)?;
        let view = self.view();
        items.check_shape((&view, self.shape()), Some(axis))?;
        let (source, bytes) = match items {
            Given::View(view) => (Some(view), Cow::default()),
            items => (None, items.into_stored(&view)?),
        };
        let reading = source.as_ref().map(|view| self.lock_before(view)).transpose()?;
        let known = self.shape().to_vec();
        self.reshape(|change| {
            let mut shape = change.geometry.shape().to_vec();
            check_others(&known, &shape, axis)?;
            let size = shape[axis];
            let asked = at.unwrap_or(size.into());
            let at = place(asked, size);
            if at > size {
                let detail = format!("axis {axis} has {size} items, asked for index {asked}");
                return Err(Reason::new(ErrorKind::OutOfBounds, detail));
            }
            let count = match &source {
                Some(view) => view.shape()[axis],
                None => count_on(axis, &shape, change.geometry.typesize(), bytes.len())?,
            };
            let mut start = shape.clone();
            shape[axis] = lengthened(size, count)?;
            start[axis] = at;
            let new = match &source {
                Some(view) => NewItems::View(view, reading.as_ref().and_then(Option::as_ref)),
                None => NewItems::Bytes(&bytes),
            };
            Ok(Reshape { shape, start, new })
        })
    }

    /// Starts to read the array of a view, if its file must be locked before the file of this array. Files are always
    /// locked in the same order, so that two concurrent calls do not deadlock.
    fn lock_before<'v>(&self, view: &NDArrayView<'v>) -> Result<Option<Reading<'v>>, Reason> {
        let (own, other) = (self.schunk.gate(), view.array.schunk.gate());
        match own.as_ref().zip(other.as_ref()) {
            Some((own, other)) if own.id() == other.id() => {
                let detail = "the other array is in the same file: copy it to memory first";
                Err(self.schunk.error(ErrorKind::InvalidArgument, detail))
            }
            Some((own, other)) if other.id() < own.id() => Ok(Some(view.array.schunk.reading()?)),
            _ => Ok(None),
        }
    }

    pub(super) fn check_axis(&self, axis: usize) -> Result<(), Reason> {
        self.view().check_axis(axis)
    }

    fn check_ndim(&self, found: usize, what: &str) -> Result<(), Reason> {
        if found == self.ndim() {
            return Ok(());
        }
        let detail = format!("the array has {} axes, the {what} has {found}", self.ndim());
        Err(self.schunk.error(ErrorKind::InvalidArgument, detail))
    }

    fn reshape<'i>(
        &mut self,
        plan: impl FnOnce(&Change<'_>) -> Result<Reshape<'i>, Reason>,
    ) -> Result<(), Reason> {
        self.changing(|change| {
            let Reshape { shape, start, new } = plan(&change)?;
            let old = change.geometry.clone();
            let max_chunks = change.schunk.limits().chunks;
            let geometry = recut(&old, &shape, max_chunks)?;
            if geometry.shape() == old.shape() {
                return Ok(());
            }
            let item = ItemPart::whole(geometry.typesize());
            let arriving = new.ranges(old.shape(), &shape, &start);
            let region = Region::of_box(arriving.iter().cloned());
            let plan = Plan::of_region(&geometry, &region);
            let arrivals: Vec<usize> = plan.chunk_numbers().collect();
            let first = first_changed(&old, &geometry, &start);
            let chunks = changed_chunks((&old, &geometry), &start, first, &arrivals)?;
            let Change { schunk, readers, writers, .. } = change;
            let made = (first..).zip(&chunks);
            let made = made.filter_map(|(index, chunk)| Some((index, chunk.as_new()?)));
            let made: Vec<(usize, &NewChunk)> = made.collect();
            if made.iter().any(|(_, made)| !made.from.is_empty()) {
                schunk.check_unfiltered()?;
            }
            let mut packed = Vec::new();
            if !made.is_empty() {
                let reading = schunk.reading()?;
                // Dropped before the file is changed.
                let mut late = None;
                let source = match &new {
                    NewItems::Bytes(bytes) => Some(Source::new(plan, item, bytes)),
                    _ => None,
                };
                let view = match &new {
                    NewItems::Zeros | NewItems::Bytes(_) => None,
                    NewItems::View(view, Some(early)) => Some((*view, *early)),
                    NewItems::View(view, None) => {
                        Some((*view, &*late.insert(view.array.schunk.reading()?)))
                    }
                };
                let gate = view.and_then(|(view, _)| view.array.schunk.gate());
                let reader =
                    view.map(|(view, reading)| BoxReader::new(view, reading, <[_]>::to_vec));
                let team = writers.team(schunk, &geometry, made.len())?.beside(gate.into_iter());
                let data = |scratch: &mut Scratch, number: usize| {
                    let (chunk, made) = made[number];
                    let gather = |ranges: &[Range<u64>], bytes: &mut [u8]| {
                        let larger = extent(ranges);
                        made.from.iter().try_for_each(|from| {
                            let region = Region::of_box(from.ranges.iter().cloned());
                            let plan = Plan::of_region(&old, &region);
                            let sink = Sink::in_box(plan, item, (&larger, &from.to), bytes, false);
                            let from = (&*schunk, &reading, &NOTHING_FETCHED);
                            readers.gather(from, sink, Threads::ONE)
                        })
                    };
                    match (made.arrivals, &source, &reader) {
                        (Some(index), Some(source), _) => {
                            let base = |scratch: &mut Scratch| match made.extends {
                                Some(number) => {
                                    team.decompress((&*schunk, &reading), number, scratch)
                                }
                                None => team.boxed(scratch, &made.ranges, &gather).map(drop),
                            };
                            team.fill(source, index, scratch, base)
                        }
                        (Some(_), _, Some(reader)) => {
                            let (placed, as_is) =
                                ([(reader, &arriving[..])], !schunk.is_filtered());
                            team.placed(scratch, chunk, &placed, as_is, &gather)
                        }
                        _ => team.boxed(scratch, &made.ranges, &gather),
                    }
                };
                packed = team.pack_all(|number| made[number].0, data)?;
            }
            let mut packed = packed.into_iter();
            let slots = chunks.iter().map(|chunk| match chunk {
                Chunk::Kept(number) => Slot::Kept(*number as u64),
                Chunk::Zeros => Slot::Zeros,
                Chunk::New(_) => {
                    packed.next().map_or(Slot::Zeros, |chunk| Slot::New(Vec::into(chunk)))
                }
            });
            let mut all = room_for(chunks.len())?;
            all.extend(slots);
            let meta = reshaped_meta(schunk, &geometry)?;
            schunk.rearrange(&meta, geometry.chunk_len(), first, all)?;
            *change.geometry = geometry.clone();
            Ok(())
        })
    }
}

/// Returns the number of indices of an axis that `len` bytes of items fill.
pub(super) fn count_on(
    axis: usize,
    shape: &[u64],
    typesize: usize,
    len: usize,
) -> Result<u64, Reason> {
    let others = shape.iter().enumerate().filter(|&(other, _)| other != axis);
    let slab = others.fold(typesize as u64, |all, (_, &size)| all.saturating_mul(size));
    let found = len as u64;
    let count = found.checked_div(slab).unwrap_or(0);
    if count * slab == found {
        return Ok(count);
    }
    let detail =
        format!("one index along axis {axis} of the shape {shape:?} has {slab} bytes, got {found}");
    Err(Reason::new(ErrorKind::InvalidArgument, detail))
}

fn lengthened(size: u64, count: u64) -> Result<u64, Reason> {
    size.checked_add(count).ok_or_else(|| {
        let detail = format!("cannot add {count} items to an axis of {size}");
        Reason::new(ErrorKind::TooLarge, detail)
    })
}

pub(super) fn check_others(known: &[u64], now: &[u64], axis: usize) -> Result<(), Reason> {
    if are_equal_except(Some(axis), known, now) {
        return Ok(());
    }
    let detail =
        format!("another handle or process has changed the shape from {known:?} to {now:?}");
    Err(Reason::new(ErrorKind::InvalidArgument, detail))
}

struct Reshape<'i> {
    shape: Vec<u64>,
    /// The index on each axis at which items are inserted or removed. It is not greater than the old size and the new
    /// size.
    start: Vec<u64>,
    new: NewItems<'i>,
}

enum NewItems<'i> {
    Zeros,
    Bytes(&'i [u8]),
    /// The items of a view. If a `Reading` is given, it is used; otherwise the change starts a read of the view.
    View(&'i NDArrayView<'i>, Option<&'i Reading<'i>>),
}

impl NewItems<'_> {
    /// Returns the box of the new items in the new array; an empty box if they are zeros, which are not written. Other
    /// items are inserted on one axis.
    fn ranges(&self, old: &[u64], new: &[u64], start: &[u64]) -> Vec<Range<u64>> {
        let along = |((&old, &new), &start): ((&u64, &u64), &u64)| match (self, new > old) {
            (Self::Zeros, _) => 0..0,
            (_, true) => start..start + (new - old),
            (_, false) => 0..new,
        };
        old.iter().zip(new).zip(start).map(along).collect()
    }
}

fn recut(old: &Geometry, shape: &[u64], max_chunks: u64) -> Result<Geometry, Reason> {
    for (axis, &size) in shape.iter().enumerate() {
        if size > 0 && old.chunk_shape()[axis] == 0 {
            let detail = format!(
                "along axis {axis} its chunks have size 0, as in empty arrays of Python: \
                 copy it with a chunk shape (NDArrayBuilder::chunk_shape)"
            );
            return Err(Reason::new(ErrorKind::InvalidArgument, detail));
        }
    }
    let meta = Meta { shape: stored_shape(shape)?, ..meta_of(old) };
    let geometry = cut(&meta, old.typesize(), max_chunks);
    geometry.map_err(|error| Reason::new(ErrorKind::TooLarge, error))
}

/// Returns the index of the first chunk that a change can affect. The chunks before it are full, and keep their items and
/// their indices: only axis 0 changes, behind these chunks.
fn first_changed(old: &Geometry, new: &Geometry, start: &[u64]) -> usize {
    let (Some(&start), Some(&side)) = (start.first(), old.chunk_shape().first()) else { return 0 };
    if old.shape()[1..] != new.shape()[1..] || old.is_empty() || new.is_empty() {
        return 0;
    }
    let chunks_in_row: u64 = new.chunk_grid()[1..].iter().product();
    // Less than the number of chunks, which was checked to fit when the geometry was created.
    (start / side * chunks_in_row) as usize
}

/// Returns the metalayer of the array with a new shape. The other fields of the metalayer are unchanged.
fn reshaped_meta(schunk: &SChunk, geometry: &Geometry) -> Result<Vec<u8>, Reason> {
    let reading = schunk.reading()?;
    let old = reading.array_meta().unwrap_or_default();
    let mut meta = Meta::parse(old)?;
    meta.shape = geometry.shape().iter().map(|size| size.cast_signed()).collect();
    let new = meta.to_bytes()?;
    if new.len() != old.len() {
        let detail = "C-Blosc2 older than 2.7 wrote its metalayer `b2nd`: copy the array";
        return Err(Reason::new(ErrorKind::Unsupported, detail));
    }
    Ok(new)
}

pub(super) fn meta_of(geometry: &Geometry) -> Meta {
    Meta {
        // Checked to fit when the geometry was created.
        shape: geometry.shape().iter().map(|size| size.cast_signed()).collect(),
        chunks: stored_sizes(geometry.chunk_shape()),
        blocks: stored_sizes(geometry.block_shape()),
        dtype: None,
        dtype_format: NUMPY_FORMAT,
    }
}

pub(super) fn stored_shape(shape: &[u64]) -> Result<Vec<i64>, Reason> {
    let stored = |&size: &u64| {
        i64::try_from(size).map_err(|_| {
            let detail = format!("an axis of {size} items, expected at most 2^63 - 1");
            Reason::new(ErrorKind::TooLarge, detail)
        })
    };
    shape.iter().map(stored).collect()
}

/// Returns a chunk or block shape as the metalayer stores it. The sizes were checked to fit.
pub(super) fn stored_sizes(shape: &[u64]) -> Vec<i32> {
    shape.iter().map(|&size| size as i32).collect()
}

/// Returns a vector with capacity for `count` values, or an error: a small file may describe millions of chunks.
fn room_for<T>(count: usize) -> Result<Vec<T>, Reason> {
    let mut all = Vec::new();
    reserve(&mut all, count)?;
    Ok(all)
}

enum Chunk {
    Kept(usize),
    Zeros,
    New(Box<NewChunk>),
}

struct NewChunk {
    /// The ranges of the items of the chunk in the new array.
    ranges: Vec<Range<u64>>,
    from: Vec<From>,
    /// The index of the plan of the new items in the chunk.
    arrivals: Option<usize>,
    /// The index of the old chunk that has exactly the same old items at the same positions, if such a chunk exists.
    extends: Option<usize>,
}

struct From {
    ranges: Vec<Range<u64>>,
    /// The position of the first item of the box in the new chunk.
    to: Vec<u64>,
}

impl Chunk {
    fn as_new(&self) -> Option<&NewChunk> {
        match self {
            Self::New(new) => Some(new),
            _ => None,
        }
    }
}

/// Old items of the chunks at one chunk coordinate on an axis.
struct Part {
    /// The range in the old array, and the position of its first item in the new chunks.
    range: Range<u64>,
    to: u64,
    /// The old chunk coordinate, if on this axis the old chunks at that coordinate contain exactly the same old items at
    /// the same positions.
    same: Option<u64>,
    /// Whether the new chunks contain no other items.
    is_all: bool,
}

/// Returns the old items of the chunks at a chunk coordinate on an axis. Items are inserted or removed at `start`, which is
/// not greater than the old size and the new size. The sizes are below 2^63.
fn parts_of((old, new): (Axis, Axis), start: u64, place: u64) -> Vec<Part> {
    let shift = new.size.cast_signed() - old.size.cast_signed();
    // An axis whose size does not change is not split.
    let start = if shift == 0 { new.size } else { start };
    let behind = start.saturating_add_signed(shift.max(0))..new.size;
    let chunk = new.chunk(place);
    let part = |(moved, shift): (Range<u64>, i64)| {
        let cut = chunk.start.max(moved.start)..chunk.end.min(moved.end);
        if cut.is_empty() {
            return None;
        }
        let back = |at: u64| at.wrapping_add_signed(-shift);
        let (range, to) = (back(cut.start)..back(cut.end), cut.start - chunk.start);
        let place = range.start / old.chunk;
        let same = (to == 0 && range == old.chunk(place)).then_some(place);
        Some(Part { range, to, same, is_all: cut == chunk })
    };
    [(0..start, 0), (behind, shift)].into_iter().filter_map(part).collect()
}

/// Returns the content of each chunk from the index `first` on after a change. `first` is the index of the first chunk at a
/// chunk coordinate on axis 0. `arrivals` are the indices of the chunks that get new items.
fn changed_chunks(
    (old, new): (&Geometry, &Geometry),
    start: &[u64],
    first: usize,
    arrivals: &[usize],
) -> Result<Vec<Chunk>, Reason> {
    if new.is_empty() {
        // There are no chunks, even if other axes are large.
        return Ok(Vec::new());
    }
    let mut arrivals = arrivals.iter().enumerate().peekable();
    // Checked to fit when the geometry was created.
    let count = new.nchunks() as usize;
    let mut grid = whole(new.chunk_grid());
    if let Some(rows) = grid.first_mut() {
        rows.start = first as u64 / (new.nchunks() / rows.end);
    }
    let axes = old.axes().zip(new.axes()).zip(start).zip(&grid);
    let table = axes.map(|((axis, start), places)| {
        places.clone().map(|place| parts_of(axis, *start, place)).collect::<Vec<_>>()
    });
    let table: Vec<Vec<Vec<Part>>> = table.collect();
    let mut place: Vec<u64> = grid.iter().map(|places| places.start).collect();
    let each = |number: usize| {
        let arrival = arrivals.next_if(|(_, arrival)| **arrival == number).map(|(index, _)| index);
        let axes = table.iter().zip(&place).zip(&grid);
        let axes = axes.map(|((parts, place), grid)| &parts[(place - grid.start) as usize]);
        let same = axes.clone().map(|parts| match &parts[..] {
            [part] => part.same,
            _ => None,
        });
        let same = same.collect::<Option<AxisVec<u64>>>();
        let extends = same.map(|same| old.chunk_at(same) as usize);
        let is_all = arrival.is_none() && axes.clone().flatten().all(|part| part.is_all);
        let chunk = match extends.filter(|_| is_all) {
            Some(kept) => Chunk::Kept(kept),
            None if arrival.is_none() && axes.clone().any(Vec::is_empty) => Chunk::Zeros,
            None => {
                let (ranges, from) = (new.chunk_box(number as u64), boxes_of(axes));
                Chunk::New(Box::new(NewChunk { ranges, from, arrivals: arrival, extends }))
            }
        };
        next_index(&mut place, &grid);
        chunk
    };
    let mut chunks = room_for(count.saturating_sub(first))?;
    chunks.extend((first..count).map(each));
    Ok(chunks)
}

/// Returns one box for each combination of parts on the axes.
fn boxes_of<'p>(axes: impl Iterator<Item = &'p Vec<Part>>) -> Vec<From> {
    axes.fold(vec![From { ranges: Vec::new(), to: Vec::new() }], |boxes, parts| {
        let longer = |from: &From| {
            let (ranges, to) = (from.ranges.clone(), from.to.clone());
            parts.iter().map(move |part| From {
                ranges: [&ranges[..], slice::from_ref(&part.range)].concat(),
                to: [&to[..], &[part.to]].concat(),
            })
        };
        boxes.iter().flat_map(longer).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn geometry(shape: &[i64]) -> Geometry {
        let chunks = [4, 3, 1];
        let blocks = [2, 3, 1];
        let meta = Meta {
            shape: shape.to_vec(),
            chunks: chunks[..shape.len()].to_vec(),
            blocks: blocks[..shape.len()].to_vec(),
            dtype: None,
            dtype_format: NUMPY_FORMAT,
        };
        cut(&meta, 1, 1000).unwrap()
    }

    /// The chunks before the first one that a change can affect are not visited.
    #[test]
    fn changes_on_axis_0_start_at_the_first_affected_chunk() {
        let first = |old: &[i64], new: &[i64], start: &[u64]| {
            let (old, new) = (geometry(old), geometry(new));
            let first = first_changed(&old, &new, start);
            let all = changed_chunks((&old, &new), start, 0, &[]).unwrap();
            let rest = changed_chunks((&old, &new), start, first, &[]).unwrap();
            assert_eq!(first + rest.len(), all.len());
            for (number, chunk) in all[..first].iter().enumerate() {
                assert!(matches!(chunk, Chunk::Kept(kept) if *kept == number), "{number}");
            }
            for (one, other) in all[first..].iter().zip(&rest) {
                match (one, other) {
                    (Chunk::Kept(one), Chunk::Kept(other)) => assert_eq!(one, other),
                    (Chunk::New(one), Chunk::New(other)) => assert_eq!(one.ranges, other.ranges),
                    (Chunk::Zeros, Chunk::Zeros) => {}
                    _ => panic!("different chunks"),
                }
            }
            first
        };
        assert_eq!(first(&[8], &[9], &[8]), 2);
        assert_eq!(first(&[7], &[9], &[7]), 1);
        assert_eq!(first(&[20], &[10], &[8]), 2);
        assert_eq!(first(&[20], &[24], &[5]), 1);
        assert_eq!(first(&[20], &[24], &[0]), 0);
        assert_eq!(first(&[9, 7], &[12, 7], &[9, 7]), 6);
        assert_eq!(first(&[8, 7, 2], &[9, 7, 2], &[8, 7, 2]), 12);
        // Other axes change, or there are no items.
        assert_eq!(first(&[8, 7], &[9, 8], &[8, 7]), 0);
        assert_eq!(first(&[0, 7], &[9, 7], &[0, 7]), 0);
        assert_eq!(first(&[9, 7], &[0, 7], &[0, 7]), 0);
        assert_eq!(first(&[], &[], &[]), 0);
    }
}
