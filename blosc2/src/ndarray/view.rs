//! Lazy views of arrays: selections and axis transformations that a read evaluates.

use blosc2_format::b2nd::MAX_NDIM;

use super::NDArray;
use super::gather::READ;
use super::places::{ItemPart, Sink, len_in_memory, len_of};
use super::plan::{Items, POINT, Plan, Points};
use super::region::{Positions, Region};
use super::selection::{AxisVec, SelectedItems, Selection};
use crate::dtype::SwapPlan;
use crate::item::element::Element;
use crate::schunk::{NOTHING_FETCHED, Reading};
use crate::{Doing, Dtype, ErrorKind, Reason, Result};

impl NDArray {
    /// Returns a view of the entire array. The methods of a view that slice it or change its axes read no items.
    ///
    /// ```
    /// use blosc2::{AxisSelection, NDArray};
    ///
    /// let array = NDArray::from_slice(&(0..24i32).collect::<Vec<_>>(), &[1, 4, 6])?;
    /// let view = array.view().squeeze().permute(&[1, 0])?;
    /// assert_eq!(view.shape(), [6, 4]);
    /// assert_eq!(view.read::<Vec<i32>>(&[0..1, 0..4])?, [0, 6, 12, 18]); // a column
    /// let odd = view.slice([AxisSelection::Slice { start: 1, end: None, step: 2 }])?;
    /// assert_eq!(odd.read::<Vec<i32>>((0, ..))?, [1, 7, 13, 19]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    pub fn view(&self) -> NDArrayView<'_> {
        NDArrayView { array: self, region: Region::whole(self.shape()), field: None }
    }

    pub(super) fn whole_items(&self) -> ItemPart {
        ItemPart::whole(self.typesize())
    }

    /// Reads the current items. All of them belong to the same version of the array. `sink` returns the sink that owns
    /// their plan.
    pub(super) fn gather<'m>(
        &self,
        items: Items<'_>,
        sink: impl for<'p> FnOnce(Plan<'p>) -> Sink<'m, 'p>,
    ) -> Result<()> {
        let Self { schunk, readers, .. } = self;
        let reading = schunk.reading()?;
        let gathered = self.planned(&reading, items, |plan| {
            let from = (schunk, &reading, &NOTHING_FETCHED);
            Ok(readers.gather(from, sink(plan), schunk.dparams().threads)?)
        });
        gathered.map_err(|error| schunk.at(error)).doing(READ)
    }

    /// Calls `work` with the plan of these items in the current shape.
    pub(super) fn planned<R>(
        &self,
        reading: &Reading<'_>,
        items: Items<'_>,
        work: impl FnOnce(Plan<'_>) -> Result<R, Reason>,
    ) -> Result<R, Reason> {
        let now = self.geometry_now(reading)?;
        work(Plan::new(now.as_ref().unwrap_or(&self.geometry), items)?)
    }
}

/// A lazy view of an array: a selection of its items, or of one field of these items, with axes that can be removed,
/// added or reordered. No items are read until a method such as [`read`](Self::read) is called.
///
/// [`NDArray::view`] and [`NDArray::field`] create a view. The items of a view of a field are the values of the field.
/// A view borrows the array, and does not copy items. In C, a view (`b2nd_squeeze`, `b2nd_expand_dims`) can outlive its
/// array; in Rust, the lifetime of the view prevents this error.
///
/// ```
/// use blosc2::NDArray;
///
/// let array = NDArray::from_slice(&[1i32, 2, 3, 4, 5, 6], [2, 3])?;
/// let columns = array.view().transpose();
/// assert_eq!(columns.shape(), [3, 2]);
/// assert_eq!(columns.read::<Vec<i32>>(..)?, [1, 4, 2, 5, 3, 6]);
/// assert_eq!(columns.slice(1..)?.read::<Vec<i32>>((.., 0))?, [2, 3]);
/// # Ok::<(), blosc2::Error>(())
/// ```
///
/// The methods that read items fail with the [errors of reads](NDArray#errors-of-reads).
#[derive(Debug, Clone)]
pub struct NDArrayView<'a> {
    pub(super) array: &'a NDArray,
    pub(crate) region: Region,
    pub(crate) field: Option<Field>,
}

#[derive(Debug, Clone)]
pub(crate) struct Field {
    pub(super) offset: usize,
    pub(super) dtype: Dtype,
}

impl Field {
    pub(super) fn part(&self, typesize: usize) -> ItemPart {
        ItemPart { offset: self.offset, len: self.dtype.size(), typesize }
    }
}

impl<'a> NDArrayView<'a> {
    /// Returns the array of the view.
    pub fn array(&self) -> &'a NDArray {
        self.array
    }

    /// Returns the dtype of the items or of the field; see [`NDArray::dtype`].
    pub fn dtype(&self) -> Option<&Dtype> {
        self.field.as_ref().map_or(self.array.dtype(), |field| Some(&field.dtype))
    }

    /// Returns the number of items on each axis. If the items are sub-arrays of a field, [`dtype`](Self::dtype)
    /// contains the shape of a sub-array.
    pub fn shape(&self) -> Vec<u64> {
        self.region.shape().into_vec()
    }

    /// Returns the number of dimensions.
    pub fn ndim(&self) -> usize {
        self.region.dims.len()
    }

    /// Returns the number of items.
    pub fn len(&self) -> u64 {
        len_of(&self.shape(), 1)
    }

    /// Returns whether the view has no items.
    pub fn is_empty(&self) -> bool {
        self.shape().contains(&0)
    }

    /// Returns a view of the selected items of this view. No items are read.
    ///
    /// # Errors
    /// Fails with the [errors of selections](NDArray#errors-of-selections).
    pub fn slice(&self, selection: impl Into<Selection>) -> Result<Self> {
        self.select(&selection.into()).doing("select items")
    }

    pub(super) fn select(&self, selection: &Selection) -> Result<Self, Reason> {
        let Selected { view, points } = self.selected(selection)?;
        if points.is_some() {
            let detail = "expected a selection on each axis, got a list of points or a mask";
            return Err(self.error(ErrorKind::InvalidArgument, detail.to_owned()));
        }
        Ok(view)
    }

    pub(super) fn selected(&self, selection: &Selection) -> Result<Selected<'a>, Reason> {
        let at = |error| self.array.schunk.at(error);
        let (region, points) = match &selection.items {
            SelectedItems::Axes(axes) => (self.region.select(axes).map_err(at)?, None),
            SelectedItems::Points(list) => {
                let points = Points::of_list(list, &self.region).map_err(at)?;
                (self.region.clone(), Some(points))
            }
            SelectedItems::Mask(mask) => {
                let points = Points::of_mask(mask, &self.region).map_err(at)?;
                (self.region.clone(), Some(points))
            }
        };
        let mut view = Self { array: self.array, region, field: self.field.clone() };
        for name in &selection.fields {
            view.field = Some(view.find_field(name)?);
        }
        Ok(Selected { view, points })
    }

    /// Removes all axes of size 1. C: `b2nd_squeeze`. NumPy: `squeeze()`.
    #[doc(alias = "b2nd_squeeze")]
    pub fn squeeze(mut self) -> Self {
        let mut sizes = self.shape().into_iter();
        self.region.dims.retain(|_| sizes.next() != Some(1));
        self
    }

    /// Removes one axis, which must have size 1. C: `b2nd_squeeze_index`. NumPy and Python: `squeeze(axis)`.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: the axis does not exist, or its size is not 1.
    #[doc(alias = "b2nd_squeeze_index")]
    pub fn squeeze_axis(mut self, axis: usize) -> Result<Self> {
        let shape = self.shape();
        if shape.get(axis) != Some(&1) {
            let detail =
                format!("expected an axis of one item, got axis {axis} of the shape {shape:?}");
            return Err(self.error(ErrorKind::InvalidArgument, detail).doing("remove an axis"));
        }
        self.region.dims.remove(axis);
        Ok(self)
    }

    /// Inserts an axis of size 1 before axis `axis`. If `axis` is the number of dimensions, the new axis is the last
    /// axis. C: `b2nd_expand_dims`. Python: `expand_dims`.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: `axis` is greater than the number of dimensions, or the view already has 16
    ///   axes.
    #[doc(alias("b2nd_expand_dims", "newaxis"))]
    pub fn expand_dims(mut self, axis: usize) -> Result<Self> {
        let ndim = self.ndim();
        if axis > ndim || ndim >= MAX_NDIM {
            let detail =
                format!("got position {axis} in {ndim} axes; an array has at most {MAX_NDIM}");
            return Err(self.error(ErrorKind::InvalidArgument, detail).doing("add an axis"));
        }
        self.region.dims.insert(axis, None);
        Ok(self)
    }

    /// Reorders the axes: axis `i` of the result is axis `order[i]` of this view. Python: `permute_dims`.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: `order` does not contain each axis exactly once.
    #[doc(alias = "permute_dims")]
    pub fn permute(mut self, order: &[usize]) -> Result<Self> {
        let mut sorted = order.to_vec();
        sorted.sort_unstable();
        if !sorted.into_iter().eq(0..self.ndim()) {
            let detail = format!("expected each of {} axes once, got {order:?}", self.ndim());
            return Err(self.error(ErrorKind::InvalidArgument, detail).doing("reorder axes"));
        }
        let dims = &self.region.dims;
        self.region.dims = order.iter().map(|&dim| dims[dim]).collect();
        Ok(self)
    }

    /// Reverses the order of the axes. NumPy: `transpose()`. Python: `permute_dims` without axes.
    #[doc(alias = "T")]
    pub fn transpose(mut self) -> Self {
        self.region.dims.reverse();
        self
    }

    /// Returns the part of each item of the array that the view contains.
    pub(crate) fn part(&self) -> ItemPart {
        let whole = self.array.whole_items();
        self.field.as_ref().map_or(whole, |field| field.part(whole.typesize))
    }

    /// Checks that the items have the type `item`, and returns the byte order conversion if one is needed.
    pub(crate) fn check_type(&self, item: ItemType) -> Result<Option<SwapPlan>, Reason> {
        let (array, stored, size) = (self.array, self.dtype(), self.part().len);
        if self.field.is_none() && array.dtype.is_none() && size == item.size {
            return Ok(None);
        }
        let asked = (item.dtype)();
        let is_asked = |dtype: &Dtype| dtype.is_equivalent(&asked);
        let dtype = stored.filter(|_| size == item.size);
        if dtype.is_some_and(is_asked) {
            return Ok(None);
        }
        let error = |detail| self.error(ErrorKind::TypeMismatch, detail);
        match dtype.filter(|dtype| !dtype.is_native() && is_asked(&dtype.to_native())) {
            Some(dtype) if array.schunk.dparams().convert_byte_order => {
                dtype.swap_plan().map(Some).map_err(|cause| error(cause.to_string()))
            }
            Some(dtype) => Err(error(format!(
                "the items are {dtype}, whose byte order is not that of {asked}; \
                 DParams::convert_byte_order converts them"
            ))),
            None => {
                let text = match &self.field {
                    Some(field) => field.dtype.to_string(),
                    None => array.dtype_str().unwrap_or("of unknown dtype").to_owned(),
                };
                let expected = item.size;
                // For long dtypes the difference is hard to see in the message.
                let structures =
                    stored.filter(|stored| stored.fields().and(asked.fields()).is_some());
                let difference = structures
                    .and_then(|stored| stored.to_native().difference(&asked))
                    .map_or(String::new(), |difference| format!("; {difference}"));
                Err(error(format!(
                    "the items are {text} of {size} bytes, asked for {asked} of {expected} bytes{difference}"
                )))
            }
        }
    }

    /// Returns the chunks and blocks on an axis of the view.
    pub(crate) fn grid(&self, axis: usize) -> Grid {
        let (array, region) = (self.array, &self.region);
        let Some(axis) = region.dims[axis] else { return Grid { offset: 0, chunk: 1, block: 1 } };
        let (chunk, block) = (array.chunk_shape()[axis].max(1), array.block_shape()[axis].max(1));
        match &region.positions[axis] {
            Positions::Slice { start, step: 1, .. } => Grid { offset: start % chunk, chunk, block },
            Positions::Slice { start, step: -1, .. } => {
                Grid { offset: chunk - 1 - start % chunk, chunk, block }
            }
            Positions::Slice { step, .. } => {
                let part = |size: u64| (size / step.unsigned_abs()).max(1);
                Grid { offset: 0, chunk: part(chunk), block: part(block) }
            }
            Positions::List(_) => Grid { offset: 0, chunk, block },
        }
    }

    pub(crate) fn check_axis(&self, axis: usize) -> Result<(), Reason> {
        if axis < self.ndim() {
            return Ok(());
        }
        let detail = format!("the array has {} axes, got axis {axis}", self.ndim());
        Err(self.error(ErrorKind::InvalidArgument, detail))
    }

    pub(crate) fn error(&self, kind: ErrorKind, detail: String) -> Reason {
        self.array.schunk.error(kind, detail)
    }
}

/// The chunks and blocks of an array on an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Grid {
    /// The number of items in the first chunk before the first item of the view.
    pub(crate) offset: u64,
    pub(crate) chunk: u64,
    pub(crate) block: u64,
}

impl<'a> From<&'a NDArray> for NDArrayView<'a> {
    fn from(array: &'a NDArray) -> Self {
        array.view()
    }
}

/// The Rust type of items.
#[derive(Debug, Clone, Copy)]
pub struct ItemType {
    pub(super) size: usize,
    pub(super) dtype: fn() -> Dtype,
}

impl ItemType {
    pub(crate) fn of<T: Element>() -> Self {
        Self { size: size_of::<T>(), dtype: T::dtype }
    }
}

/// The items of a view that a selection selects.
#[derive(Debug)]
pub struct Selected<'a> {
    pub(super) view: NDArrayView<'a>,
    /// Single items of the view; `None` for all of its items.
    pub(super) points: Option<Points>,
}

impl Selected<'_> {
    pub(super) fn items(&self) -> Items<'_> {
        items_of(&self.view.region, self.points.as_ref())
    }

    pub(super) fn shape(&self) -> AxisVec<u64> {
        let shape = self.view.region.shape();
        let Some(points) = &self.points else { return shape };
        let rest = shape[points.ndim..].iter().copied();
        std::iter::once(points.numbers.len() as u64).chain(rest).collect()
    }

    /// Returns the size of the items in bytes, if it fits in the address space.
    fn len(&self) -> Result<usize, Reason> {
        let shape = self.items().shape();
        len_in_memory(&shape, self.view.part().len).ok_or_else(|| {
            let detail = format!("{shape:?} items do not fit in memory");
            self.view.error(ErrorKind::TooLarge, detail)
        })
    }

    /// Returns the size of the items in bytes, if the memory limit on one read allows them, and the plan of single items.
    pub(super) fn allowed_len(&self) -> Result<usize> {
        let (schunk, len) = (&self.view.array.schunk, self.len().doing(READ)?);
        schunk.allow(len as u64).doing(READ)?;
        if let Some(points) = &self.points {
            schunk.allow_scratch((points.count as u64).saturating_mul(POINT)).doing(READ)?;
        }
        Ok(len)
    }

    pub(super) fn check_len(&self, found: usize) -> Result<(), Reason> {
        let (expected, size, shape) = (self.len()?, self.view.part().len, self.items().shape());
        if expected == found {
            return Ok(());
        }
        let detail =
            format!("{shape:?} items of {size} bytes are {expected} bytes, the buffer has {found}");
        Err(self.view.error(ErrorKind::InvalidArgument, detail))
    }
}

pub(super) fn items_of<'a>(region: &'a Region, points: Option<&'a Points>) -> Items<'a> {
    points.map_or(Items::Region(region), |points| Items::Points(region, points))
}
