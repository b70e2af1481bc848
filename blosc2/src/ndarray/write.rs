//! Writing of items.

use std::ops::Range;

use super::NDArray;
use super::places::{ItemPart, Source};
use super::plan::{Items, Plan};
use super::region::Region;
use super::scatter::WRITE;
use super::selection::Selection;
use super::transfer::{Given, IntoItems, ItemSource};
use super::view::{Field, NDArrayView, Selected, items_of};
use crate::item::element::Element;
use crate::{Doing, Result};

impl NDArray {
    /// Replaces the selected items. C: `b2nd_set_slice_cbuffer`, `b2nd_set_orthogonal_selection`. Python:
    /// `array[...] = items`.
    ///
    /// [`ItemSource`] lists the types of `items`: a slice with one item for each selected item, in C order; a single
    /// item, which replaces each selected item; stored bytes; another array; or a view of the crate `ndarray`.
    ///
    /// The chunks with selected items are recompressed; [`CParams::threads`](crate::CParams::threads) sets the number
    /// of threads. The write is atomic: after an error, no item has changed. If the selection contains the same item
    /// several times, the last value is stored.
    ///
    /// ```
    /// use blosc2::NDArray;
    ///
    /// let mut array = NDArray::builder().zeros::<f32>([2, 3])?;
    /// array.write((0, ..), &[1.0f32, 2.0, 3.0])?; // the first row
    /// array.write([-1, 0], 0.5f32)?; // one item
    /// array.write((1, 1..), 9.0f32)?; // the same value for two items
    /// assert_eq!(array.read::<Vec<f32>>(..)?, [1.0, 2.0, 3.0, 0.5, 9.0, 9.0]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    #[doc(alias(
        "set_slice",
        "b2nd_set_slice_cbuffer",
        "b2nd_set_orthogonal_selection",
        "__setitem__",
        "fill"
    ))]
    pub fn write<'s>(
        &mut self,
        selection: impl Into<Selection>,
        items: impl ItemSource<'s>,
    ) -> Result<()> {
        let selected = self.view().selected(&selection.into()).doing(WRITE)?;
        let items = items.into_items();
        items.check_shape((&selected.view, &selected.shape()), None).doing(WRITE)?;
        let part = selected.view.part();
        let is_one = matches!(items, Given::One { .. })
            || matches!(&items, Given::Raw(bytes) if bytes.len() == part.len);
        #[cfg(feature = "ndarray")]
        if let Given::Strided(strided, item) = &items
            && selected.points.is_none()
            && selected.view.check_type(*item).doing(WRITE)?.is_none()
        {
            let region = selected.view.region;
            let to = Items::Region(&region);
            return self.write_planned(to, part, |plan| strided.source(plan, part));
        }
        let bytes = items.into_stored(&selected.view).doing(WRITE)?;
        if !is_one {
            selected.check_len(bytes.len()).doing(WRITE)?;
        }
        let Selected { view: NDArrayView { region, .. }, points } = selected;
        let to = items_of(&region, points.as_ref());
        if is_one {
            return self.write_planned(to, part, |plan| Source::repeated(plan, part, &bytes));
        }
        self.write_planned(to, part, |plan| Source::new(plan, part, &bytes))
    }

    pub(crate) fn write_box<T: Element>(
        &mut self,
        (region, field): (&Region, &Option<Field>),
        ranges: &[Range<u64>],
        items: &[T],
    ) -> Result<()> {
        let (region, field) = (region.part(ranges), field.clone());
        let selected = Selected { view: NDArrayView { array: self, region, field }, points: None };
        let part = selected.view.part();
        let bytes = items.into_items().into_stored(&selected.view).doing(WRITE)?;
        selected.check_len(bytes.len()).doing(WRITE)?;
        let Selected { view: NDArrayView { region, .. }, .. } = selected;
        self.write_planned(Items::Region(&region), part, |plan| Source::new(plan, part, &bytes))
    }

    /// Writes this part of each item. Nothing is written if the part is empty.
    fn write_planned<'m>(
        &mut self,
        items: Items<'_>,
        part: ItemPart,
        source: impl for<'p> FnOnce(Plan<'p>) -> Source<'m, 'p>,
    ) -> Result<()> {
        match part.len {
            0 => Ok(()),
            _ => self.scatter(items, source),
        }
    }
}
