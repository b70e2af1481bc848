//! The places of items in memory, to which a read writes items, or from which a write copies items.

use std::ops::Range;

use smallvec::smallvec;

use super::selection::Few;

/// The distance in bytes between neighbors in memory on each axis of a region.
pub(super) type Strides = Few<isize>;

/// Returns the size in bytes of items of this shape, if each item has `unit` bytes. With a `unit` of 1, this is the
/// number of items. The result is at most `u64::MAX`.
pub(super) fn len_of(shape: &[u64], unit: usize) -> u64 {
    shape.iter().fold(unit as u64, |all, &size| all.saturating_mul(size))
}

/// Returns the size in bytes of items of this shape, if it fits in the address space.
pub(super) fn len_in_memory(shape: &[u64], unit: usize) -> Option<usize> {
    isize::try_from(len_of(shape, unit)).ok().map(isize::unsigned_abs)
}

/// The part of each item that is in memory, such as the bytes of a field.
#[derive(Debug, Clone, Copy)]
pub(super) struct ItemPart {
    pub(super) offset: usize,
    pub(super) len: usize,
    /// The size of an item in bytes.
    pub(super) typesize: usize,
}

impl ItemPart {
    /// Creates the part that covers the entire item.
    pub(super) fn whole(typesize: usize) -> Self {
        Self { offset: 0, len: typesize, typesize }
    }

    pub(super) fn is_whole(&self) -> bool {
        self.len == self.typesize
    }
}

/// The places of the items of a region, or of a part of each item. The distance of an item from the first item is the
/// sum of its indices in the region, multiplied by the strides.
#[derive(Debug)]
pub(super) struct Places {
    pub(super) shape: Few<u64>,
    pub(super) strides: Strides,
    pub(super) part: ItemPart,
    /// The offset of the first item in the memory, in bytes.
    first: usize,
    /// The range of the bytes of all items, relative to the first item.
    extent: Range<isize>,
    /// Whether no two places overlap.
    pub(super) distinct: bool,
}

impl Places {
    /// Creates the places of items in C order.
    pub(super) fn in_c_order(shape: &[u64], part: ItemPart) -> Self {
        Self::in_box(shape, shape, &[], part)
    }

    /// Creates the places of the items of a box inside a larger box. The first item is at the index `to` of the larger
    /// box, whose items are in C order.
    pub(super) fn in_box(larger: &[u64], shape: &[u64], to: &[u64], part: ItemPart) -> Self {
        let is_inside = |(axis, &size): (usize, &u64)| {
            let start = to.get(axis).copied().unwrap_or(0);
            start.saturating_add(size) <= larger[axis]
        };
        assert!(larger.len() == shape.len() && shape.iter().enumerate().all(is_inside));
        let mut strides: Strides = smallvec![0; larger.len()];
        // All items are in memory, so the product does not overflow.
        let mut stride = part.len as isize;
        for (each, &size) in strides.iter_mut().zip(larger).rev() {
            *each = stride;
            stride = stride.saturating_mul(size.max(1) as isize);
        }
        let first = if shape.contains(&0) { &[] } else { to };
        let first = first.iter().zip(&strides).map(|(&at, &stride)| at as usize * stride as usize);
        Self { first: first.sum(), distinct: true, ..Self::strided(shape, strides, part) }
    }

    /// Creates places for items that all have the same place.
    pub(super) fn repeated(shape: &[u64], part: ItemPart) -> Self {
        Self::strided(shape, smallvec![0; shape.len()], part)
    }

    /// Creates places with any strides.
    pub(super) fn strided(shape: &[u64], strides: Strides, part: ItemPart) -> Self {
        let mut extent = 0..part.len as isize;
        for (&size, stride) in shape.iter().zip(&strides) {
            let far = stride.saturating_mul(size.saturating_sub(1) as isize);
            match far < 0 {
                true => extent.start = extent.start.saturating_add(far),
                false => extent.end = extent.end.saturating_add(far),
            }
        }
        if shape.contains(&0) {
            extent = 0..0;
        }
        Self { shape: shape.into(), strides, part, first: 0, extent, distinct: false }
    }

    /// Returns the offset of the first item in memory of `len` bytes. Panics if the memory does not contain all places.
    pub(super) fn first_in(&self, len: usize) -> usize {
        let (first, extent) = (self.first as isize, &self.extent);
        let (low, high) = (first.saturating_add(extent.start), first.saturating_add(extent.end));
        assert!(low >= 0 && high <= len as isize, "{self:?} are not inside {len} bytes");
        self.first
    }

    /// Asserts in debug builds that `len` bytes at an offset from the first item are inside the extent of the places.
    #[inline]
    pub(super) fn debug_check(&self, at: isize, len: usize) {
        debug_assert!(
            self.extent.start <= at && at + len as isize <= self.extent.end,
            "{len} bytes at {at} are outside {self:?}"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_are_too_large_saturate() {
        assert_eq!(len_of(&[3, 5], 4), 60);
        assert_eq!(len_of(&[], 4), 4);
        assert_eq!(len_of(&[1 << 40, 1 << 40], 1), u64::MAX);
        assert_eq!(len_of(&[1 << 40, 1 << 40, 0], 1), 0);
        assert_eq!(len_in_memory(&[1 << 40, 1 << 40, 0], 4), Some(0));
        assert_eq!(len_in_memory(&[1 << 40, 1 << 40], 4), None);
    }

    #[test]
    fn the_extent_contains_all_places() {
        let item = ItemPart::whole(4);
        let extent =
            |shape: &[u64], strides: &[isize]| Places::strided(shape, strides.into(), item).extent;
        assert_eq!(extent(&[3, 5], &[20, 4]), 0..60);
        assert_eq!(extent(&[3, 5], &[-20, 4]), -40..20);
        assert_eq!(extent(&[3, 5], &[-20, -4]), -56..4);
        assert_eq!(extent(&[3, 0, 5], &[100, 20, 4]), 0..0);
        assert_eq!(extent(&[], &[]), 0..4);
        assert_eq!(Places::in_c_order(&[3, 5], item).extent, 0..60);
        assert_eq!(Places::repeated(&[3, 5], item).extent, 0..4);
        let inner = Places::in_box(&[6, 5], &[2, 3], &[4, 2], item);
        assert_eq!((inner.first, inner.extent.clone()), (88, 0..32));
        assert_eq!(inner.first_in(120), 88);
        let none = Places::in_box(&[6, 5], &[0, 3], &[6, 2], item);
        assert_eq!(none.first_in(0), 0);
    }

    #[test]
    #[should_panic(expected = "are not inside 119 bytes")]
    fn memory_has_to_contain_the_extent() {
        Places::in_box(&[6, 5], &[2, 3], &[4, 2], ItemPart::whole(4)).first_in(119);
    }

    #[test]
    #[should_panic(expected = "are not inside 40 bytes")]
    fn memory_before_the_first_item_counts() {
        Places::strided(&[10], smallvec![-4], ItemPart::whole(4)).first_in(40);
    }

    #[test]
    #[should_panic(expected = "assertion failed")]
    fn a_box_has_to_be_inside_the_larger_one() {
        Places::in_box(&[6, 5], &[2, 3], &[5, 2], ItemPart::whole(4));
    }

    #[cfg(debug_assertions)]
    #[test]
    fn places_outside_the_extent_are_caught() {
        let places = Places::strided(&[10], smallvec![-4], ItemPart::whole(4));
        let is_inside = |at, len| std::panic::catch_unwind(|| places.debug_check(at, len)).is_ok();
        assert!(is_inside(-36, 4) && is_inside(0, 4) && is_inside(-36, 40));
        assert!(!is_inside(-37, 4) && !is_inside(1, 4) && !is_inside(-36, 41));
    }
}
