//! Writing of items.

use std::borrow::Cow;

use super::NDArray;
use super::index::PerAxis;
use super::places::{ItemPart, Source};
use super::plan::Items;
use super::region::Region;
use super::scatter::WRITE;
use super::selection::Selection;
use crate::dtype::SwapPlan;
use crate::element::{Element, bytes_of};
use crate::{ErrorKind, Result};

impl NDArray {
    /// Replaces the selected items by `items`, in C order. `items` has one item for each selected item. C:
    /// `b2nd_set_slice_cbuffer`, `b2nd_set_orthogonal_selection`. Python: `array[...] = items`.
    ///
    /// The chunks with selected items are recompressed; [`CParams::threads`](crate::CParams::threads) sets the number
    /// of threads. The write is atomic: after an error, no item has changed. If a list selects the same item several
    /// times, the last value is stored.
    #[doc(alias(
        "set_slice",
        "b2nd_set_slice_cbuffer",
        "b2nd_set_orthogonal_selection",
        "__setitem__"
    ))]
    pub fn write<T: Element>(
        &mut self,
        selection: impl Into<Selection>,
        items: &[T],
    ) -> Result<()> {
        let bytes = self.stored_bytes(items, WRITE)?;
        self.bytes_mut().write(selection, &bytes)
    }

    /// Replaces each selected item by `item`. Python: `array[...] = item`.
    pub fn fill<T: Element>(&mut self, selection: impl Into<Selection>, item: T) -> Result<()> {
        let items = [item];
        let bytes = self.stored_bytes(&items, WRITE)?;
        self.bytes_mut().fill(selection, &bytes)
    }

    /// Writes `item` to this part of each item of a region.
    pub(super) fn fill_region(
        &mut self,
        region: &Region,
        part: ItemPart,
        item: &[u8],
    ) -> Result<()> {
        if item.len() != part.len {
            let (expected, found) = (part.len, item.len());
            let detail = format!("an item has {expected} bytes, got {found}");
            return Err(self.schunk.error(ErrorKind::InvalidArgument, WRITE, detail));
        }
        match part.len {
            0 => Ok(()),
            _ => self.scatter(Items::Region(region), |plan| Source::repeated(plan, part, item)),
        }
    }

    /// Replaces the item at an index, which has one integer for each axis: `array.set([3, -1], 0.5f32)`. Negative
    /// integers count from the end of the axis.
    pub fn set<T: Element>(&mut self, index: impl PerAxis, item: T) -> Result<()> {
        let region = self.region_of_item(&index, WRITE)?;
        let items = [item];
        let bytes = self.stored_bytes(&items, WRITE)?;
        self.write_items(Items::Region(&region), self.whole_items(), &bytes)
    }

    /// Returns the bytes of items as the array stores them.
    pub(super) fn stored_bytes<'i, T: Element>(
        &self,
        items: &'i [T],
        doing: &str,
    ) -> Result<Cow<'i, [u8]>> {
        Ok(swapped(items, self.check_dtype::<T>(doing)?))
    }

    /// Writes a part of each item from a buffer in C order.
    pub(super) fn write_items(
        &mut self,
        items: Items<'_>,
        part: ItemPart,
        bytes: &[u8],
    ) -> Result<()> {
        self.check_len(items, part.len, bytes.len(), WRITE)?;
        match part.len {
            0 => Ok(()),
            _ => self.scatter(items, |plan| Source::new(plan, part, bytes)),
        }
    }
}

/// Returns the bytes of items after a conversion of the byte order.
pub(super) fn swapped<T: Element>(items: &[T], plan: Option<SwapPlan>) -> Cow<'_, [u8]> {
    let mut bytes = bytes_of(items);
    if let Some(plan) = plan {
        plan.apply(bytes.to_mut());
    }
    bytes
}
