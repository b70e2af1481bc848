//! The evaluation of an expression: the arrays that are read, and calls of closures.

use std::ops::Range;
use std::{fmt, ptr};

use super::space::{Layout, Space};
use crate::closures::{BoxError, Title, run_here};
use crate::ndarray::NDArray;
use crate::ndarray::boxes::{BoxReader, Readings, Sources};
use crate::ndarray::places::len_in_memory;
use crate::ndarray::ranges::own_ranges;
use crate::ndarray::view::{Grid, NDArrayView};
use crate::schunk::{Fetched, Reading, Window};
use crate::{Doing, Error, ErrorKind, Result, SChunk, Threads};

pub(super) const DOING: &str = "compute items";

/// The name of the methods whose closures compute items.
pub(super) const MAP: &str = "map";

/// The number of items that one call processes. Other threads see the progress of a closure only after such a call.
pub(super) const ITEMS_OF_A_CALL: usize = 4096;

/// A view from which items are computed. It is broadcast to the shape of the expression.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    pub(super) view: &'a NDArrayView<'a>,
    pub(super) itemsize: usize,
}

impl<'a> Input<'a> {
    /// Returns the array, if the input is an entire array with the shape of the expression.
    pub(super) fn model(&self, shape: &[u64]) -> Option<&'a NDArray> {
        (self.view.is_whole() && self.view.shape() == shape).then_some(self.view.array())
    }

    /// Returns the chunks and blocks on the axes of the expression, which has this shape.
    fn layout(&self, shape: &[u64]) -> Layout {
        let (array, own) = (self.view.array(), self.view.shape());
        let skipped = shape.len() - own.len();
        let along = |(axis, &size): (usize, &u64)| match axis.checked_sub(skipped) {
            Some(axis) if own[axis] == size => self.view.grid(axis),
            _ => Grid { offset: 0, chunk: size, block: 1 },
        };
        Layout {
            size: self.view.len().saturating_mul(array.typesize() as u64),
            itemsize: self.itemsize,
            axes: shape.iter().enumerate().map(along).collect(),
        }
    }
}

/// An evaluation of an expression. Until it is dropped, the arrays of the expression do not change.
pub(super) struct Context<'a> {
    inputs: Vec<Input<'a>>,
    readings: Readings<'a>,
    pub(super) threads: usize,
}

impl<'a> Context<'a> {
    /// Starts to read the arrays of an expression. The default number of threads is the setting of the first array.
    pub(super) fn new(inputs: Vec<Input<'a>>, threads: Option<Threads>) -> Result<Self> {
        let default = || {
            inputs
                .first()
                .map(|input| input.view.array().schunk().dparams().threads)
                .unwrap_or_default()
        };
        let threads = threads.unwrap_or_else(default).available();
        let readings = Readings::new(inputs.iter().map(|input| input.view.array()))?;
        Ok(Self { inputs, readings, threads })
    }

    fn arrays(&self) -> &[&'a NDArray] {
        self.readings.arrays()
    }

    /// Returns the number of items of `size` bytes with this shape, if the read limit of at least one array allows their
    /// size in bytes.
    pub(super) fn allowed_len(&self, shape: &[u64], size: usize) -> Result<usize> {
        let bytes = len_in_memory(shape, size).ok_or_else(|| {
            let detail = format!("{shape:?} items do not fit in memory");
            Error::new(ErrorKind::TooLarge, DOING, detail)
        })?;
        let mut limits =
            self.arrays().iter().map(|array| array.schunk().allow(bytes as u64).doing(DOING));
        let first = limits.next().unwrap_or(Ok(()));
        if first.is_err() && !limits.any(|limit| limit.is_ok()) {
            first?;
        }
        Ok(bytes / size.max(1))
    }

    pub(super) fn readers(&self) -> Vec<BoxReader<'_>> {
        let reader = |Input { view, .. }: &Input<'a>| {
            let (view, own) = (*view, view.shape());
            BoxReader::new(view, self.readings.of(view.array()), move |ranges| {
                own_ranges(&own, ranges)
            })
        };
        self.inputs.iter().map(reader).collect()
    }

    pub(super) fn layouts(&self, shape: &[u64]) -> Vec<Layout> {
        self.inputs.iter().map(|input| input.layout(shape)).collect()
    }

    pub(super) fn space<T>(&self, shape: &[u64]) -> Result<Space> {
        let len = shape.iter().try_fold(1u64, |all, &size| all.checked_mul(size));
        if len.is_none() && !shape.contains(&0) {
            let detail = format!("{shape:?} items, expected fewer than 2^64");
            return Err(Error::new(ErrorKind::TooLarge, DOING, detail));
        }
        Ok(Space::new(shape, size_of::<T>(), &self.layouts(shape)))
    }

    /// Adds the compressed blocks that the items of a box need to a window.
    pub(super) fn wanted(&self, ranges: &[Range<u64>], window: &mut Window<'_>) -> Result<()> {
        self.inputs.iter().try_for_each(|Input { view, .. }| {
            let index = self.readings.index(view.array());
            let own = own_ranges(&view.shape(), ranges);
            let mut wanted = view.wanted(self.readings.of(view.array()), &own)?.into_iter();
            wanted.try_for_each(|wanted| window.add(index, wanted))
        })
    }

    pub(super) fn sources(&self) -> Vec<(&SChunk, &Reading<'a>)> {
        self.arrays().iter().map(|array| (array.schunk(), self.readings.of(array))).collect()
    }

    /// Calls a closure of the method `name`. A panic becomes an error.
    pub(super) fn call<R>(
        &self,
        name: &'static str,
        work: impl FnOnce() -> Result<R, BoxError>,
    ) -> Result<R> {
        // The closure may use the arrays.
        let _calling: Vec<_> =
            self.arrays().iter().filter_map(|array| array.schunk().calling()).collect();
        run_here(Title::Method(name), work).doing(DOING)
    }

    /// Calls a closure of the method `name` for the parts of `len` items.
    pub(super) fn each_call(
        &self,
        name: &'static str,
        len: usize,
        mut work: impl FnMut(Range<usize>) -> Result<(), BoxError>,
    ) -> Result<()> {
        (0..len)
            .step_by(ITEMS_OF_A_CALL)
            .try_for_each(|start| self.call(name, || work(start..len.min(start + ITEMS_OF_A_CALL))))
    }
}

/// The reads of one thread.
pub struct Access<'c> {
    pub(super) context: &'c Context<'c>,
    /// The chunks of each array that were fetched ahead; may be empty.
    window: &'c [Fetched],
    /// The readers of the inputs, if items are in memory; otherwise empty.
    held: &'c [BoxReader<'c>],
    /// The chunks of each input that were fetched for the box that was prepared last.
    pub prepared: Vec<Fetched>,
}

impl<'c> Access<'c> {
    /// `window` contains the chunks of each array that were fetched ahead, and `held` the readers of the inputs if they
    /// hold items in memory; both may be empty.
    pub(super) fn new(
        context: &'c Context<'c>,
        window: &'c [Fetched],
        held: &'c [BoxReader<'c>],
    ) -> Self {
        let prepared = context.inputs.iter().map(|_| Fetched::default()).collect();
        Self { context, window, held, prepared }
    }

    /// Returns the read of an array, and its chunks that were fetched ahead, if there are any.
    pub(super) fn reading(&self, array: &NDArray) -> (&'c Reading<'c>, Option<&'c Fetched>) {
        let readings = &self.context.readings;
        let window = self.window.get(readings.index(array)).filter(|window| !window.is_empty());
        (readings.of(array), window)
    }

    /// Reads a box of the view of an input. The box is inside the box that was prepared last.
    pub(super) fn read(
        &self,
        view: &NDArrayView<'_>,
        ranges: &[Range<u64>],
        bytes: &mut [u8],
    ) -> Result<()> {
        let input = self.context.inputs.iter().position(|input| ptr::eq(input.view, view));
        let Some(input) = input else { unreachable!("the inputs are those of the expression") };
        if let Some(held) = self.held.get(input) {
            return held.read(ranges, None, bytes);
        }
        let (reading, window) = self.reading(view.array());
        let fetched = window.unwrap_or(&self.prepared[input]);
        view.read_box(Threads::ONE, (reading, fetched), ranges, None, bytes)
    }

    /// Reads the compressed blocks that a box needs, unless they were fetched ahead.
    pub(super) fn prepare(&mut self, ranges: &[Range<u64>]) -> Result<()> {
        if !self.held.is_empty() {
            return Ok(());
        }
        for (at, Input { view, .. }) in self.context.inputs.iter().enumerate() {
            let (reading, window) = self.reading(view.array());
            let wanted = match window {
                Some(_) => Vec::new(),
                None => view.wanted(reading, &own_ranges(&view.shape(), ranges))?,
            };
            view.array().schunk().fetch(reading, wanted, &mut self.prepared[at])?;
        }
        Ok(())
    }
}

impl Sources for Context<'_> {
    fn readings(&self) -> &Readings<'_> {
        &self.readings
    }
}

impl fmt::Debug for Access<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").field("context", self.context).finish_non_exhaustive()
    }
}

impl fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("threads", &self.threads).finish_non_exhaustive()
    }
}
