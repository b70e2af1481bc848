//! The evaluation of an expression: the arrays that are read, and calls of closures.

use std::ops::Range;
use std::{fmt, mem, ptr};

use parking_lot::RwLock;

use super::super::NDArray;
use super::super::places::len_in_memory;
use crate::closures::{self, BoxError, Title, run_here};
use crate::schunk::{Fetched, Reading, Window, fetch_ahead};
use crate::{Error, ErrorKind, Result, Threads};

pub(super) const DOING: &str = "compute items";

/// The name of the methods whose closures compute items.
pub(super) const MAP: &str = "map";

/// The number of items that one call processes. Other threads see the progress of a closure only after such a call.
pub(super) const ITEMS_OF_A_CALL: usize = 4096;

/// An evaluation of an expression. Until it is dropped, the arrays of the expression do not change.
pub struct Context<'a> {
    readings: Vec<(&'a NDArray, Reading<'a>)>,
    /// The chunks of each array that were fetched ahead.
    windows: Vec<RwLock<Fetched>>,
    pub(super) threads: usize,
}

impl<'a> Context<'a> {
    /// Starts to read the arrays of an expression. The default number of threads is the setting of the first array.
    pub(super) fn new(arrays: Vec<&'a NDArray>, threads: Option<Threads>) -> Result<Self> {
        let default = || arrays.first().map(|array| array.readers.threads).unwrap_or_default();
        let threads = threads.unwrap_or_else(default).for_any();
        let threads = closures::threads(threads).unsigned_abs().into();
        let mut readings: Vec<(&NDArray, Reading<'_>)> = Vec::new();
        for array in arrays {
            // An array that occurs several times is read once.
            if !readings.iter().any(|(other, _)| ptr::eq(*other, array)) {
                readings.push((array, array.schunk.reading()?));
            }
        }
        let windows = readings.iter().map(|_| RwLock::default()).collect();
        Ok(Self { readings, windows, threads })
    }

    pub(super) fn arrays(&self) -> Vec<&'a NDArray> {
        self.readings.iter().map(|(array, _)| *array).collect()
    }

    /// Returns the number of items of this shape, if the read limit of at least one array allows their size in bytes.
    pub(super) fn allowed_len<T>(&self, shape: &[u64]) -> Result<usize> {
        self.allowed_items(shape, size_of::<T>())
    }

    /// Returns the number of items of `size` bytes, as [`allowed_len`](Self::allowed_len) does.
    pub(super) fn allowed_items(&self, shape: &[u64], size: usize) -> Result<usize> {
        let bytes = len_in_memory(shape, size).ok_or_else(|| {
            let detail = format!("{shape:?} items do not fit in memory");
            Error::new(ErrorKind::TooLarge, DOING, detail)
        })?;
        let mut limits =
            self.readings.iter().map(|(array, _)| array.schunk.allow(DOING, bytes as u64));
        let first = limits.next().unwrap_or(Ok(()));
        if first.is_err() && !limits.any(|limit| limit.is_ok()) {
            first?;
        }
        Ok(bytes / size.max(1))
    }

    /// Returns the index of an array among the arrays of the expression.
    pub(super) fn index(&self, array: &NDArray) -> usize {
        let found = self.readings.iter().position(|(other, _)| ptr::eq(*other, array));
        match found {
            Some(index) => index,
            None => unreachable!("`new` starts to read all arrays"),
        }
    }

    /// Returns the read of an array, and the chunks that were fetched ahead.
    pub(super) fn reading(&self, array: &NDArray) -> (&Reading<'a>, &RwLock<Fetched>) {
        let index = self.index(array);
        (&self.readings[index].1, &self.windows[index])
    }

    /// Calls `work` with the numbers below `count`, in ascending ranges. From a storage with a high latency, the chunks
    /// that `wanted` adds for these numbers are fetched before, while `work` processes the numbers before them. `work`
    /// returns whether to continue.
    pub(super) fn ahead(
        &self,
        count: usize,
        wanted: impl Fn(usize, &mut Window<'_>) -> Result<()> + Sync,
        mut work: impl FnMut(Range<usize>) -> Result<bool>,
    ) -> Result<()> {
        let sources = self.readings.iter().map(|(array, reading)| (&array.schunk, reading));
        fetch_ahead(&sources.collect::<Vec<_>>(), count, wanted, |numbers, fetched| {
            let swap = |fetched: &mut [Fetched]| {
                let pairs = self.windows.iter().zip(fetched);
                pairs.for_each(|(window, fetched)| mem::swap(&mut *window.write(), fetched));
            };
            swap(fetched);
            let result = work(numbers);
            // The buffers are used again.
            swap(fetched);
            result
        })
    }

    /// Calls a closure of the method `name`. A panic becomes an error.
    pub(super) fn call<R>(
        &self,
        name: &'static str,
        work: impl FnOnce() -> Result<R, BoxError>,
    ) -> Result<R> {
        // The closure may use the arrays.
        let _calling: Vec<_> =
            self.readings.iter().filter_map(|(array, _)| array.schunk.calling()).collect();
        run_here(Title::Method(name), DOING, work)
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

impl fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("threads", &self.threads).finish_non_exhaustive()
    }
}
