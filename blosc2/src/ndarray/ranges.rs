//! Boxes of arrays: a range of indices on each axis.

use std::iter;
use std::ops::Range;

use crate::Result;

/// The range of a box on each axis.
pub(crate) type Ranges = Vec<Range<u64>>;

/// A box in a larger array: the index of its first item, and the shape of the larger array.
pub(crate) type Place = (Vec<u64>, Vec<u64>);

pub(crate) fn extent(ranges: &[Range<u64>]) -> Vec<u64> {
    ranges.iter().map(|range| range.end - range.start).collect()
}

/// Returns the number of items of a box that is in memory, or whose number of items was checked.
pub(crate) fn len_of_box(ranges: &[Range<u64>]) -> u64 {
    ranges.iter().map(|range| range.end - range.start).product()
}

/// Returns the box of all items of an array.
pub(crate) fn whole(shape: &[u64]) -> Ranges {
    shape.iter().map(|&size| 0..size).collect()
}

/// Returns the box of these sizes that starts at an index.
pub(crate) fn box_at(at: &[u64], extent: &[u64]) -> Ranges {
    at.iter().zip(extent).map(|(start, size)| *start..start + size).collect()
}

/// Returns the place of a box in a box that contains it.
pub(crate) fn place_in(part: &[Range<u64>], whole: &[Range<u64>]) -> Place {
    let at = part.iter().zip(whole).map(|(part, whole)| part.start - whole.start);
    (at.collect(), extent(whole))
}

/// Returns the items of a box that are in another box: their ranges relative to the first box, and their place in the
/// other box. The result may be empty.
pub(super) fn part_of(whole: &[Range<u64>], other: &[Range<u64>]) -> (Ranges, Place) {
    let along = whole.iter().zip(other).map(|(whole, other)| {
        let low = whole.start.max(other.start).min(whole.end);
        let high = whole.end.min(other.end).max(low);
        (low - whole.start..high - whole.start, low.saturating_sub(other.start))
    });
    let (part, at) = along.unzip();
    (part, (at, extent(other)))
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

/// Calls `visit` for each part of a box, in C order. The parts have these sides, except the last ones on an axis.
pub(crate) fn each_part(
    whole: &[Range<u64>],
    sides: &[u64],
    visit: &mut dyn FnMut(&[Range<u64>]) -> Result<()>,
) -> Result<()> {
    if whole.iter().any(Range::is_empty) {
        return Ok(());
    }
    let along =
        |axis: usize, start: u64| start..whole[axis].end.min(start.saturating_add(sides[axis]));
    let mut part: Vec<_> = (0..whole.len()).map(|axis| along(axis, whole[axis].start)).collect();
    loop {
        visit(&part)?;
        let next = (0..whole.len()).rev().find(|&axis| part[axis].end < whole[axis].end);
        let Some(next) = next else { return Ok(()) };
        part[next] = along(next, part[next].end);
        (next + 1..whole.len()).for_each(|axis| part[axis] = along(axis, whole[axis].start));
    }
}

/// Returns the sides of parts of several chunks. The sides are doubled on the axis that `next` returns, as long as the
/// parts fit.
pub(crate) fn grown(
    chunk: &[u64],
    next: impl Fn(&[u64]) -> Option<usize>,
    fits: impl Fn(&[u64]) -> bool,
) -> Vec<u64> {
    let mut sides = chunk.to_vec();
    while let Some(axis) = next(&sides) {
        let mut larger = sides.clone();
        larger[axis] *= 2;
        if !fits(&larger) {
            break;
        }
        sides = larger;
    }
    sides
}

/// Returns the sides of parts of up to `most` items, or of one item. In C order, the parts follow each other.
pub(crate) fn sides_of(shape: &[u64], most: u64) -> Vec<u64> {
    let mut left = most.max(1);
    let sides = shape.iter().rev().map(|&size| {
        let side = left.min(size.max(1));
        left = if side < size { 1 } else { left / side };
        side
    });
    let mut sides: Vec<u64> = sides.collect();
    sides.reverse();
    sides
}

/// Returns whether items of the shape `own` can be broadcast to `shape` without more axes.
pub(crate) fn can_broadcast(own: &[u64], shape: &[u64]) -> bool {
    let mut aligned = own.iter().rev().zip(shape.iter().rev());
    own.len() <= shape.len() && aligned.all(|(own, size)| *own == 1 || own == size)
}

/// Returns the ranges of items with the shape `own`, for a box of the shape to which they are broadcast.
pub(crate) fn own_ranges(own: &[u64], ranges: &[Range<u64>]) -> Ranges {
    let aligned = own.iter().zip(&ranges[ranges.len() - own.len()..]);
    aligned.map(|(&size, range)| if size == 1 { 0..1 } else { range.clone() }).collect()
}

/// Returns the positions of the runs of consecutive items of a box of an array with this shape, in C order.
pub(crate) fn runs_of<'a>(
    ranges: &'a [Range<u64>],
    shape: &'a [u64],
) -> impl Iterator<Item = Range<u64>> + Clone + 'a {
    // The last axes on which the box has all indices, and the axis before them.
    let is_whole = |(range, size): &(&Range<u64>, &u64)| **range == (0..**size);
    let inner = ranges.iter().zip(shape).rev().take_while(is_whole).count() + 1;
    rows(ranges, shape, inner)
}

/// Returns the positions of the items of a box with the same index on all axes except the last `inner` axes.
fn rows<'a>(
    ranges: &'a [Range<u64>],
    shape: &'a [u64],
    inner: usize,
) -> impl Iterator<Item = Range<u64>> + Clone + 'a {
    let outer = shape.len().saturating_sub(inner);
    let len = len_of_box(&ranges[outer..]);
    let mut index: Vec<u64> = ranges.iter().map(|range| range.start).collect();
    let mut is_left = !ranges.iter().any(Range::is_empty);
    iter::from_fn(move || {
        let start = index.iter().zip(shape).fold(0, |all, (at, size)| all * size + at);
        let row = is_left.then_some(start..start + len);
        is_left = is_left && next_index(&mut index[..outer], &ranges[..outer]);
        row
    })
}

/// Copies the items of a box of the sizes `extent` from its place in one array to its place in another array. An item
/// has `unit` values.
fn copy_box<T: Copy>(
    extent: &[u64],
    unit: usize,
    (from, (from_at, from_shape)): (&[T], &Place),
    (to, (to_at, to_shape)): (&mut [T], &Place),
) {
    let is_whole = |axis: &usize| [from_shape[*axis], to_shape[*axis]] == [extent[*axis]; 2];
    let inner = (0..extent.len()).rev().take_while(is_whole).count() + 1;
    let (from_ranges, to_ranges) = (box_at(from_at, extent), box_at(to_at, extent));
    for (one, other) in rows(&from_ranges, from_shape, inner).zip(rows(&to_ranges, to_shape, inner))
    {
        let values = |row: Range<u64>| row.start as usize * unit..row.end as usize * unit;
        to[values(other)].copy_from_slice(&from[values(one)]);
    }
}

/// Copies the items of a part of a box to their places among the items of the box. An item has `unit` values.
pub(crate) fn copy_part<T: Copy>(
    items: &[T],
    unit: usize,
    (part, whole): (&[Range<u64>], &[Range<u64>]),
    to: &mut [T],
) {
    let extent = extent(part);
    let own = (vec![0; extent.len()], extent.clone());
    copy_box(&extent, unit, (items, &own), (to, &place_in(part, whole)));
}

/// Copies the items of a part of a box from their places among the items of the box. With a place, the items are copied
/// to a larger box. An item has `unit` values.
pub(super) fn copy_from_box<T: Copy>(
    items: &[T],
    unit: usize,
    (part, whole): (&[Range<u64>], &[Range<u64>]),
    (to, place): (&mut [T], Option<&Place>),
) {
    let extent = extent(part);
    let own = (vec![0; extent.len()], extent.clone());
    copy_box(&extent, unit, (items, &place_in(part, whole)), (to, place.unwrap_or(&own)));
}

/// Copies items of the shape `own` to memory for items of the shape to which they are broadcast. An item has `unit`
/// values.
pub(crate) fn broadcast<T: Copy>(
    from: &[T],
    unit: usize,
    own: &[u64],
    shape: &[u64],
    to: &mut [T],
) {
    let mut strides = vec![0; shape.len() - own.len()];
    strides.extend(strides_of(own).iter().map(|stride| stride * unit));
    expand(from, shape, &strides, unit, to);
}

/// Returns the strides of items in C order. An axis of one index is repeated.
pub(super) fn strides_of(shape: &[u64]) -> Vec<usize> {
    let inner = |axis: usize| shape[axis + 1..].iter().product::<u64>() as usize;
    let along = |(axis, &size): (usize, &u64)| if size == 1 { 0 } else { inner(axis) };
    shape.iter().enumerate().map(along).collect()
}

fn expand<T: Copy>(from: &[T], sizes: &[u64], strides: &[usize], unit: usize, to: &mut [T]) {
    let ([size, sizes @ ..], [stride, strides @ ..]) = (sizes, strides) else {
        return to.copy_from_slice(&from[..unit]);
    };
    if sizes.is_empty() && *stride == unit {
        return to.copy_from_slice(&from[..to.len()]);
    }
    let part = to.len() / *size as usize;
    let count = if *stride == 0 { 1 } else { *size as usize };
    for (at, to) in to.chunks_exact_mut(part).take(count).enumerate() {
        expand(&from[at * stride..], sizes, strides, unit, to);
    }
    // Repeated items are copied from the items before them.
    let mut done = count * part;
    while done < to.len() {
        let len = done.min(to.len() - done);
        to.copy_within(..len, done);
        done += len;
    }
}
