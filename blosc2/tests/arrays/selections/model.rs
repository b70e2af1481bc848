//! The model: items in C order, and an array of the crate `ndarray` that selects among them.

use std::fmt::Debug;

use blosc2::{AxisSelection, Element};
use ndarray::{ArrayD, ArrayViewD, ArrayViewMutD, Axis, SliceInfoElem};

use crate::common::Rng;

/// The items of the arrays here. They have no padding.
pub(crate) trait Item: Element + Debug {
    const ZERO: Self;
    /// The item that `NDArrayBuilder::nans` writes, if it supports the type.
    const NAN: Option<Self> = None;

    /// Converts a random word to an item.
    fn of(word: u64) -> Self;
}

macro_rules! numbers {
    ($($type:ty),*) => {$(
        impl Item for $type {
            const ZERO: Self = 0;

            fn of(word: u64) -> Self {
                word as Self
            }
        }
    )*};
}

numbers!(u8, u16, i64);

impl Item for f32 {
    const ZERO: Self = 0.0;
    const NAN: Option<Self> = Some(Self::NAN);

    fn of(word: u64) -> Self {
        (word % 100_000) as Self / 8.0
    }
}

impl Item for f64 {
    const ZERO: Self = 0.0;
    const NAN: Option<Self> = Some(Self::NAN);

    fn of(word: u64) -> Self {
        (word % 100_000_000) as Self / 8.0
    }
}

impl Item for bool {
    const ZERO: Self = false;

    fn of(word: u64) -> Self {
        word % 2 == 1
    }
}

impl<const N: usize> Item for [u8; N] {
    const ZERO: Self = [0; N];

    fn of(word: u64) -> Self {
        let mut bytes = [word as u8; N];
        for (to, from) in bytes.iter_mut().zip(word.to_le_bytes()) {
            *to = from;
        }
        bytes[N - 1] ^= (word >> 8) as u8;
        bytes
    }
}

/// Items for a case: sometimes random, sometimes compressible.
pub(crate) fn items<T: Item>(len: usize, rng: &mut Rng) -> Vec<T> {
    let mut word = rng.next();
    let kind = rng.below(4);
    let mut next = |number: usize| {
        match kind {
            0 => word = rng.next(),
            1 => word = word.wrapping_add(3),
            2 if number.is_multiple_of(50) => word = rng.next(),
            2 => {}
            _ => word = rng.below(3),
        }
        T::of(word)
    };
    (0..len).map(&mut next).collect()
}

/// The bytes of items.
pub(crate) fn raw<T: Item>(items: &[T]) -> &[u8] {
    // SAFETY: no byte of an `Item` is padding; the length is in bytes.
    unsafe { std::slice::from_raw_parts(items.as_ptr().cast(), size_of_val(items)) }
}

/// The expected content of an array.
#[derive(Debug)]
pub(crate) struct Model<T> {
    /// The number of each item in C order, from which `ndarray` selects.
    pub(crate) numbers: ArrayD<usize>,
    pub(crate) items: Vec<T>,
}

impl<T: Item> Model<T> {
    pub(crate) fn new(shape: &[usize], items: Vec<T>) -> Self {
        let numbers = (0..items.len()).collect();
        Self { numbers: ArrayD::from_shape_vec(shape, numbers).unwrap(), items }
    }

    pub(crate) fn shape(&self) -> &[usize] {
        self.numbers.shape()
    }

    /// The items with these numbers.
    pub(crate) fn get(&self, numbers: impl IntoIterator<Item = usize>) -> Vec<T> {
        numbers.into_iter().map(|number| self.items[number]).collect()
    }

    /// Changes the items with these numbers, one after the other.
    pub(crate) fn put(&mut self, numbers: impl IntoIterator<Item = usize>, items: &[T]) {
        numbers.into_iter().zip(items).for_each(|(number, item)| self.items[number] = *item);
    }
}

/// Returns a position or a step as `ndarray` takes it. On a 32-bit processor, a larger one has the same effect.
pub(crate) fn clamped(number: i64) -> isize {
    number.clamp(isize::MIN as i64, isize::MAX as i64) as isize
}

/// What `ndarray` selects.
pub(crate) fn select(from: &ArrayViewD<'_, usize>, selection: &[AxisSelection]) -> ArrayD<usize> {
    let (mut elems, mut lists, mut dim) = (Vec::new(), Vec::new(), 0);
    let all = SliceInfoElem::Slice { start: 0, end: None, step: 1 };
    for along in selection {
        elems.push(match along {
            AxisSelection::Index(at) => SliceInfoElem::Index(clamped(*at)),
            AxisSelection::Slice { start, end, step } => SliceInfoElem::Slice {
                start: clamped(*start),
                end: end.map(clamped),
                step: clamped(*step),
            },
            AxisSelection::Indices(list) => {
                lists.push((dim, list.clone()));
                all
            }
            AxisSelection::Mask(mask) => {
                lists.push((
                    dim,
                    (0..).zip(mask).filter(|(_, on)| **on).map(|(at, _)| at).collect(),
                ));
                all
            }
            AxisSelection::NewAxis => SliceInfoElem::NewAxis,
            other => panic!("{other:?}"),
        });
        dim += usize::from(!matches!(along, AxisSelection::Index(_)));
    }
    let given = selection.iter().filter(|along| **along != AxisSelection::NewAxis).count();
    elems.extend(vec![all; from.ndim() - given]);
    let mut found = from.slice(&elems[..]).to_owned();
    for (dim, list) in lists {
        let size = found.shape()[dim] as i64;
        let list: Vec<usize> =
            list.iter().map(|&at| (if at < 0 { at + size } else { at }) as usize).collect();
        found = found.select(Axis(dim), &list);
    }
    found
}

/// A memory layout of items of some shape among other items.
#[derive(Debug)]
pub(crate) struct Layout {
    /// The shape of all memory.
    memory: Vec<usize>,
    elems: Vec<SliceInfoElem>,
    axes: Vec<usize>,
}

impl Layout {
    /// A random layout: transposed, reversed, with gaps, or contiguous.
    pub(crate) fn random(shape: &[usize], rng: &mut Rng) -> Self {
        let ndim = shape.len();
        let mut axes: Vec<usize> = (0..ndim).collect();
        if rng.below(2) == 0 {
            (1..ndim).for_each(|at| axes.swap(at, rng.below(at as u64 + 1) as usize));
        }
        let (mut memory, mut elems) = (vec![0; ndim], vec![SliceInfoElem::NewAxis; ndim]);
        let plain = rng.below(4) == 0;
        for (&axis, &size) in axes.iter().zip(shape) {
            let gaps = !plain && rng.below(ndim as u64 + 1) < 2;
            let [start, rest] = [(); 2].map(|()| if gaps { rng.below(3) as usize } else { 0 });
            let by = if gaps { 1 + rng.below(3) as usize } else { 1 };
            let end = start + size.saturating_sub(1) * by + size.min(1);
            let back = !plain && rng.below(3) == 0;
            let step = if back { -by.cast_signed() } else { by.cast_signed() };
            memory[axis] = end + rest;
            let (start, end) = (start.cast_signed(), Some(end.cast_signed()));
            elems[axis] = SliceInfoElem::Slice { start, end, step };
        }
        Self { memory, elems, axes }
    }

    /// Memory full of the same item.
    pub(crate) fn memory<T: Item>(&self, item: T) -> ArrayD<T> {
        ArrayD::from_elem(&self.memory[..], item)
    }

    pub(crate) fn view<'a, T>(&self, memory: &'a ArrayD<T>) -> ArrayViewD<'a, T> {
        memory.slice(&self.elems[..]).permuted_axes(&self.axes[..])
    }

    pub(crate) fn view_mut<'a, T>(&self, memory: &'a mut ArrayD<T>) -> ArrayViewMutD<'a, T> {
        memory.slice_mut(&self.elems[..]).permuted_axes(&self.axes[..])
    }

    /// Memory with these items at their places, and others around them.
    pub(crate) fn with<T: Item>(&self, items: &[T]) -> ArrayD<T> {
        let mut memory = self.memory(T::of(0xdead_beef_dead_beef));
        self.view_mut(&mut memory).iter_mut().zip(items).for_each(|(to, from)| *to = *from);
        memory
    }
}
