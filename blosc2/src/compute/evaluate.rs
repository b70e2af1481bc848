//! The evaluation of the items of an expression, into memory or a new array.

use std::ops::Range;

use parking_lot::Mutex;

use super::LazyExpr;
use super::context::{Access, Context, DOING};
use super::source::{Found, Source, Worker, open};
use crate::item::element::{Element, bytes_of, make_items};
use crate::ndarray::boxes::BoxReader;
use crate::ndarray::gather::READ;
use crate::ndarray::places::len_of;
use crate::ndarray::ranges::{box_at, copy_part, extent, len_of_box, place_in, runs_of};
use crate::ndarray::{NDArray, NDArrayBuilder, NDArrayView, parallel};
use crate::{Doing, Error, ErrorKind, Result};

impl NDArrayBuilder {
    /// Creates a copy of an array or a view, with a function applied to each item; see [`copy`](Self::copy). The
    /// compression parameters of the source are not used.
    ///
    /// The function must return the same result for the same item, because it may be called only once for many equal
    /// items. If the function tries to change the file of the source, the change fails with [`ErrorKind::Busy`].
    /// [`CParams::threads`](crate::CParams::threads) sets the number of threads that call the function.
    ///
    /// To compute items from several arrays, or without creating an array, use [`LazyExpr`](crate::compute::LazyExpr).
    ///
    /// # Errors
    /// - [`ErrorKind::TypeMismatch`]: the items are not of type `A`;
    /// - [`ErrorKind::Callback`]: the function panicked.
    pub fn map<'a, A: Element, B: Element>(
        self,
        source: impl Into<NDArrayView<'a>>,
        item: impl Fn(A) -> B + Sync,
    ) -> Result<NDArray> {
        let view = source.into();
        let builder = self.cut_like(&view)?;
        LazyExpr::of(&view).map(item).store(builder, Some(&view))
    }
}

impl<S: Source<Item: Element>> LazyExpr<S> {
    /// Computes all items into memory, in C order.
    ///
    /// # Errors
    /// - [`ErrorKind::TooLarge`]: the items do not fit in the address space, or their size exceeds
    ///   the largest [`OpenOptions::max_read`](crate::OpenOptions::max_read) of the arrays of the expression;
    /// - [`ErrorKind::OutOfMemory`]: the memory for the items cannot be allocated.
    #[doc(alias = "compute")]
    pub fn read(&self) -> Result<Vec<S::Item>> {
        let shape = self.source.shape()?;
        let context = open(&self.source, self.threads)?;
        let count = context.allowed_len(&shape, size_of::<S::Item>())?;
        let mut items = make_items(count, |_| Ok(())).doing(READ)?;
        self.fill(&context, &shape, &mut items)?;
        Ok(items)
    }

    /// Computes all items into a buffer of the caller, in C order. The length of the buffer must be the number of
    /// items. After an error, the buffer may be partly written.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: the buffer has another length.
    pub fn read_into(&self, items: &mut [S::Item]) -> Result<()> {
        let shape = self.source.shape()?;
        let expected = len_of(&shape, 1);
        if expected != items.len() as u64 {
            let found = items.len();
            let detail = format!("the expression has {shape:?} items, the buffer has {found}");
            return Err(Error::new(ErrorKind::InvalidArgument, DOING, detail));
        }
        self.fill(&open(&self.source, self.threads)?, &shape, items)
    }

    fn fill(&self, context: &Context<'_>, shape: &[u64], items: &mut [S::Item]) -> Result<()> {
        if items.is_empty() {
            return Ok(());
        }
        let space = context.space::<S::Item>(shape)?;
        // The items are divided into slabs on the first axis with several items. Each thread fills entire slabs.
        let axis = shape.iter().position(|&size| size > 1).unwrap_or(0);
        let spans = space.slabs(axis);
        let (mut slabs, mut rest) = (Vec::new(), items);
        for span in spans.iter() {
            let (slab, others) = rest.split_at_mut(len_of_box(&span.ranges) as usize);
            slabs.push((span, slab));
            rest = others;
        }
        let worker = || Ok(Worker::new(&self.source, Access::new(context, &[], &[])));
        parallel::each_item(context.threads, slabs, worker, |worker, _, (span, to)| {
            worker.each_box(&span, <[_]>::to_vec, |ranges, found| {
                match found {
                    Found::Repeated(item) => {
                        let (at, shape) = place_in(ranges, &span.ranges);
                        for run in runs_of(&box_at(&at, &extent(ranges)), &shape) {
                            to[run.start as usize..run.end as usize].fill(item);
                        }
                    }
                    Found::Items(items) => copy_part(items, 1, (ranges, &span.ranges), to),
                }
                Ok(true)
            })
        })
    }

    /// Computes all items and stores them in a new array. Python: `compute`.
    ///
    /// If the builder sets no chunk shape and no block shape, the new array has the chunk and block shapes of the first
    /// operand that is an entire array with the shape of the expression. If no operand is such an array, the chunk and
    /// block shapes are automatic.
    ///
    /// Metalayers are not copied. [`CParams::threads`](crate::CParams::threads) of the builder sets the number of
    /// threads that compute and compress the items. If neighboring chunks of the new array need the same blocks of an
    /// operand, items of the operands are held in memory, of up to [`NDArrayBuilder::max_memory`].
    ///
    /// ```
    /// use blosc2::NDArray;
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("squares.b2nd");
    /// let array = NDArray::builder().arange(0i32, 1000, 1)?;
    /// let squares = array.lazy::<i32>().map(|item| item * item);
    /// let squares = squares.create(NDArray::builder().target(&path))?;
    /// assert_eq!(squares.item::<i32>(&[30])?, 900);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Fails with the [errors of evaluation](Self#errors-of-evaluation), and with the errors of
    /// [creation](NDArrayBuilder#errors-of-creation).
    #[doc(alias = "compute")]
    pub fn create(&self, builder: NDArrayBuilder) -> Result<NDArray> {
        let shape = self.source.shape()?;
        let builder = match self.source.inputs().iter().find_map(|input| input.model(&shape)) {
            Some(array) => builder.cut_as(array),
            None => builder,
        };
        self.store(builder, None)
    }

    /// Creates an array of the items. If `copied` is an entire array, copies its variable-length metalayers.
    fn store(&self, builder: NDArrayBuilder, copied: Option<&NDArrayView<'_>>) -> Result<NDArray> {
        let shape = self.source.shape()?;
        let context = open(&self.source, self.threads)?;
        let layouts = context.layouts(&shape);
        let all: Vec<usize> = (0..shape.len()).collect();
        let space = context.space::<S::Item>(&shape)?;
        let tiles = space.tiles(&all);
        let (dtype, size) = (S::Item::dtype().to_string(), size_of::<S::Item>());
        builder.create_from(&shape, (&dtype, size), context, |context, new| {
            if let Some(view) = copied {
                new.copy_vlmeta(view)?;
            }
            new.by_slabs(context.readers(), |new, readers| {
                let held = if readers.iter().any(BoxReader::is_held) { readers } else { &[] };
                // The workers of threads, each with the number of the new chunk for which the worker was prepared.
                let workers = Mutex::new(Vec::<(usize, Worker<'_, S>)>::new());
                new.by_chunks(&|team, scratch, number| {
                    let geometry = team.geometry;
                    let chunk = geometry.chunk_box(number as u64);
                    let take = || {
                        let mut workers = workers.lock();
                        let found = workers.iter().position(|(prepared, _)| *prepared == number);
                        let found = found.map(|at| workers.swap_remove(at));
                        // Reuses a worker that was prepared for another chunk, and that no thread uses now.
                        let found = found.or_else(|| workers.pop());
                        let access = || Access::new(context, &[], held);
                        found.unwrap_or_else(|| (usize::MAX, Worker::new(&self.source, access())))
                    };
                    let first = take();
                    let repeated = first.1.repeated(&chunk)?;
                    workers.lock().push(first);
                    let fill = |ranges: &[Range<u64>], bytes: &mut [u8]| {
                        if let Some(item) = repeated {
                            let item = [item];
                            let item = bytes_of(&item);
                            bytes.chunks_exact_mut(size).for_each(|to| to.copy_from_slice(&item));
                            return Ok(());
                        }
                        let (prepared, mut worker) = take();
                        if prepared != number {
                            worker.prepare(&chunk)?;
                        }
                        tiles.each_tile(ranges, &mut |tile| {
                            let items = bytes_of(worker.tile(tile)?);
                            copy_part(&items, size, (tile, ranges), bytes);
                            Ok(())
                        })?;
                        workers.lock().push((number, worker));
                        Ok(())
                    };
                    // If a block of an operand overlaps several new blocks, the chunk is computed as one box, so that
                    // the block is decompressed once.
                    let fits = !held.is_empty()
                        || layouts.iter().all(|layout| {
                            let grids = layout.axes.iter().zip(geometry.block_shape());
                            grids.into_iter().all(|(grid, block)| block.is_multiple_of(grid.block))
                        });
                    team.by_boxes(scratch, number, fits, &fill)
                })
            })
        })
    }
}
