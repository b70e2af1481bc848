//! Random arrays, compressed and as arrays of the crate `ndarray`.

use blosc2::{AxisSelection, Element, NDArray, NDArrayBuilder, NDArrayView, Selection};
use ndarray::{ArrayD, Axis, IxDyn, SliceInfoElem};

use crate::common::{Rng, random_box};

/// A random shape with at most about `most` items; sometimes without axes, with empty axes or axes of one item.
pub(crate) fn random_shape(rng: &mut Rng, most: u64) -> Vec<u64> {
    let ndim = *rng.pick(&[0, 1, 1, 2, 2, 2, 3, 3, 4, 5, 6]);
    let side = (most as f64).powf(1.0 / ndim.max(1) as f64) as u64;
    (0..ndim)
        .map(|_| match rng.below(30) {
            0 => 0,
            1..6 => 1,
            _ => 1 + rng.below(side),
        })
        .collect()
}

/// A builder with random chunk and block shapes, with a few hundred chunks at most.
pub(crate) fn cut(shape: &[u64], rng: &mut Rng) -> NDArrayBuilder {
    let mut part =
        |size: u64| if rng.below(3) == 0 { size.max(1) } else { 1 + rng.below(size.max(1)) };
    let mut chunks: Vec<u64> = shape.iter().map(|&size| part(size)).collect();
    let blocks: Vec<u64> = chunks.iter().map(|&size| part(size)).collect();
    let count = |chunks: &[u64]| -> u64 {
        shape.iter().zip(chunks).map(|(size, chunk)| size.div_ceil(*chunk)).product()
    };
    for axis in 0..shape.len() {
        while count(&chunks) > 200 && chunks[axis] < shape[axis] {
            chunks[axis] *= 2;
        }
    }
    NDArray::builder().chunk_shape(&chunks).block_shape(&blocks)
}

/// Returns an array of `ndarray`.
pub(crate) fn model<T>(shape: &[u64], items: Vec<T>) -> ArrayD<T> {
    let shape: Vec<usize> = shape.iter().map(|&size| size as usize).collect();
    ArrayD::from_shape_vec(shape, items).unwrap()
}

/// The shape of an array of `ndarray`.
pub(crate) fn shape_of<T>(model: &ArrayD<T>) -> Vec<u64> {
    model.shape().iter().map(|&size| size as u64).collect()
}

/// A random array. In some arrays most chunks repeat one item.
pub(crate) fn made<T: Element>(
    shape: &[u64],
    rng: &mut Rng,
    item: impl Fn(&mut Rng) -> T,
) -> (NDArray, ArrayD<T>) {
    let count = shape.iter().product::<u64>() as usize;
    let mut items: Vec<T> = (0..count).map(|_| item(rng)).collect();
    let builder = cut(shape, rng);
    if rng.below(3) > 0 {
        return (builder.from_slice(&items, shape).unwrap(), model(shape, items));
    }
    items.fill(item(rng));
    let repeated = items.first().copied().unwrap_or_else(|| item(rng));
    let mut array = builder.full(repeated, shape).unwrap();
    let ranges = random_box(shape, rng);
    let selection: Selection = ranges.iter().cloned().collect();
    let count = ranges.iter().map(|range| range.end - range.start).product::<u64>();
    let part: Vec<T> = (0..count).map(|_| item(rng)).collect();
    array.write(&selection, &part).unwrap();
    let mut all = model(shape, items);
    let slices = |axis: ndarray::AxisDescription| {
        let range = &ranges[axis.axis.index()];
        ndarray::Slice::from(range.start as usize..range.end as usize)
    };
    all.slice_each_axis_mut(slices).iter_mut().zip(part).for_each(|(to, item)| *to = item);
    (array, all)
}

/// A random array whose view has this shape, and the items of the view: the whole array, or with a stride, a reversed
/// axis, another order of axes or a new axis.
pub(crate) struct Viewed<T> {
    array: NDArray,
    selection: Selection,
    order: Vec<usize>,
    pub(crate) model: ArrayD<T>,
}

impl<T: Element> Viewed<T> {
    pub(crate) fn random(shape: &[u64], rng: &mut Rng, item: impl Fn(&mut Rng) -> T) -> Self {
        let ndim = shape.len();
        let mut order: Vec<usize> = (0..ndim).collect();
        if rng.below(3) == 0 {
            (0..ndim).for_each(|axis| order.swap(axis, rng.index(ndim)));
        }
        // Axis `order[i]` of the selected items is axis `i` of the view.
        let (mut stored, mut selection, mut slices) = (Vec::new(), Vec::new(), Vec::new());
        let is_whole = rng.below(3) == 0;
        for axis in 0..ndim {
            let size = shape[order.iter().position(|&from| from == axis).unwrap()];
            if size == 1 && rng.below(2) == 0 {
                selection.push(AxisSelection::NewAxis);
                slices.push(SliceInfoElem::NewAxis);
                continue;
            }
            let step = if is_whole { 1 } else { *rng.pick(&[1, 1, -1, 2, -3]) };
            let start = if is_whole { 0 } else { rng.below(4) as i64 };
            // The selected range has `size` items at this distance; `ndarray` counts them from its end, too.
            let span = if size == 0 { 0 } else { (size as i64 - 1) * i64::abs(step) + 1 };
            stored.push((start + span) as u64 + if is_whole { 0 } else { rng.below(3) });
            selection.push(AxisSelection::strided(start..start + span, step));
            slices.push(SliceInfoElem::Slice {
                start: start as isize,
                end: Some((start + span) as isize),
                step: step as isize,
            });
        }
        let (array, all) = made(&stored, rng, item);
        let model = all.slice(&slices[..]).into_owned().permuted_axes(IxDyn(&order));
        // In C order.
        let model = model.as_standard_layout().into_owned();
        Self { array, selection: selection.into_iter().collect(), order, model }
    }

    pub(crate) fn view(&self) -> NDArrayView<'_> {
        self.array.view().slice(&self.selection).unwrap().permute(&self.order).unwrap()
    }
}

/// The items of an array along some axes, which are combined by `combine` in C order.
pub(crate) fn reduced<T: Clone, U: Clone>(
    all: &ArrayD<T>,
    axes: &[usize],
    combine: impl Fn(&[T]) -> U,
) -> ArrayD<U> {
    let kept: Vec<usize> = (0..all.ndim()).filter(|axis| !axes.contains(axis)).collect();
    let mut sorted = axes.to_vec();
    sorted.sort_unstable();
    let order = [&kept[..], &sorted].concat();
    let shape: Vec<usize> = kept.iter().map(|&axis| all.len_of(Axis(axis))).collect();
    let len: usize = sorted.iter().map(|&axis| all.len_of(Axis(axis))).product();
    let rows = all.view().permuted_axes(order);
    let rows: Vec<T> = rows.iter().cloned().collect();
    let count = shape.iter().product::<usize>();
    let results = (0..count).map(|row| combine(&rows[row * len..][..len])).collect();
    ArrayD::from_shape_vec(shape, results).unwrap()
}
