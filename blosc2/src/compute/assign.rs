//! Assignment of items that are broadcast to a selection.

use std::ops::Range;

use super::LazyExpr;
use super::context::Access;
use super::source::{Operand, Worker, open};
use crate::ndarray::NDArray;
use crate::ndarray::ranges::{can_broadcast, extent, next_index, own_ranges};
use crate::ndarray::region::{Positions, Region};
use crate::ndarray::view::ItemType;
use crate::support::memory::reserve;
use crate::{Doing, Element, ErrorKind, Result, Selection};

const ASSIGN: &str = "assign to an array";

impl NDArray {
    /// Replaces the selected items by the items of an operand, which are broadcast to the shape of the selection. NumPy
    /// and Python: `array[selection] = items`.
    ///
    /// An [`Operand`] is another array, a view, an expression, a number, a slice (one axis) or
    /// [`InMemory`](super::InMemory) items. Broadcasting follows NumPy's rules: shapes are aligned at the last axis, and
    /// an axis of size 1 is repeated. The operand may have more axes than the selection, if the first ones have size 1.
    ///
    /// The broadcast items are not created in memory: the items of one chunk of this array are computed and written at a
    /// time. Items that are repeated in neighboring chunks are computed once for them. The assignment is atomic, and holds
    /// the new compressed chunks in memory until it ends; see [`transaction`](Self::transaction). To write items that have
    /// the shape of the selection, use [`write`](Self::write).
    ///
    /// With a list of indices, a chunk is written again whenever the next index is in another chunk: sort the indices.
    ///
    /// Inside a transaction, the assignment is a part of the transaction: after an error, some chunks can be changed, and
    /// the closure of the transaction must return the error, so that nothing is stored.
    ///
    /// ```
    /// use blosc2::NDArray;
    /// use blosc2::compute::InMemory;
    ///
    /// let mut array = NDArray::builder().zeros::<i32>((3, 3))?;
    /// array.assign((1.., ..), &[1, 2, 3][..])?; // a row, in each row
    /// array.assign((.., 0), InMemory::new(&[7], [1, 1]))?;
    /// let doubled = NDArray::from_slice(&[10, 20, 30], (3, 1))?;
    /// array.assign((.., 2..), doubled.lazy::<i32>().map(|item| 2 * item))?;
    /// assert_eq!(array.read::<Vec<i32>>(..)?, [7, 0, 20, 7, 2, 40, 7, 2, 60]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// Fails with the [errors of changes](Self#errors-of-changes), with the [errors of
    /// evaluation](LazyExpr#errors-of-evaluation), and with:
    /// - [`ErrorKind::InvalidArgument`]: the operand cannot be broadcast to the shape of the selection; or the selection
    ///   is a list of points or a mask.
    #[doc(alias = "__setitem__")]
    pub fn assign<T: Element>(
        &mut self,
        selection: impl Into<Selection>,
        items: impl Operand<T>,
    ) -> Result<()> {
        let view = self.view().slice(selection)?;
        view.check_type(ItemType::of::<T>()).doing(ASSIGN)?;
        let items = LazyExpr::of(items).map(|item| item);
        let (shape, own) = (view.shape(), items.shape()?);
        let added = own.len().saturating_sub(shape.len());
        if own[..added].iter().any(|size| *size != 1) || !can_broadcast(&own[added..], &shape) {
            let detail = format!("items of the shape {own:?} cannot be broadcast to {shape:?}");
            return Err(view.error(ErrorKind::InvalidArgument, detail).doing(ASSIGN));
        }
        let (region, field) = (view.region.clone(), view.field.clone());
        let tiles = tiles(&region, self.chunk_shape());
        if tiles.iter().any(Vec::is_empty) {
            return Ok(());
        }
        let assign = |array: &mut Self| {
            // Tiles with the same items of the operand follow each other.
            let is_repeated = |axis: &usize| {
                (axis + own.len()).checked_sub(shape.len()).is_none_or(|axis| own[axis] == 1)
            };
            let mut order: Vec<usize> = (0..shape.len()).collect();
            order.sort_by_key(is_repeated);
            let grid = order.iter().map(|axis| 0..tiles[*axis].len() as u64);
            let grid: Vec<Range<u64>> = grid.collect();
            let mut number = vec![0; order.len()];
            let (mut found, mut computed) = (Vec::new(), None);
            loop {
                let mut ranges = vec![0..1; added + order.len()];
                for (axis, at) in order.iter().zip(&number) {
                    ranges[added + axis] = tiles[*axis][*at as usize].clone();
                }
                let needed = Some((own_ranges(&own, &ranges), extent(&ranges)));
                if computed != needed {
                    // The arrays of the operand are not locked during the write: two assignments in opposite directions
                    // would deadlock.
                    let context = open(&items.source, None)?;
                    let mut worker = Worker::new(&items.source, Access::new(&context, &[], &[]));
                    worker.prepare(&ranges)?;
                    let tile = worker.tile(&ranges)?;
                    found.clear();
                    reserve(&mut found, tile.len()).doing(ASSIGN)?;
                    found.extend_from_slice(tile);
                    computed = needed;
                }
                array.write_box((&region, &field), &ranges[added..], &found)?;
                if !next_index(&mut number, &grid) {
                    return Ok(());
                }
            }
        };
        // One write is atomic.
        let is_one = tiles.iter().all(|tiles| tiles.len() == 1);
        match is_one || self.schunk().is_in_transaction() {
            true => assign(self),
            false => self.transaction(assign),
        }
    }
}

/// Returns ranges of indices on each axis of a region, which divide the region into boxes that are in one chunk. For a list of
/// indices, the boxes have as many of them as a chunk.
fn tiles(region: &Region, chunks: &[u64]) -> Vec<Vec<Range<u64>>> {
    let along = |dim: &Option<usize>| {
        let mut tiles = Vec::new();
        let Some(axis) = *dim else {
            tiles.push(0..1);
            return tiles;
        };
        let (positions, chunk) = (&region.positions[axis], chunks[axis].max(1));
        let (count, mut start) = (positions.len(), 0);
        while start < count {
            let at = positions.get(start);
            let inside = match positions {
                Positions::Slice { step, .. } if *step > 0 => {
                    (chunk - at % chunk).div_ceil(step.unsigned_abs())
                }
                Positions::Slice { step, .. } => at % chunk / step.unsigned_abs() + 1,
                // Their chunks can alternate. A tile for each change of the chunk could be one for each index.
                Positions::List(_) => chunk,
            };
            let end = count.min(start + inside);
            tiles.push(start..end);
            start = end;
        }
        tiles
    };
    region.dims.iter().map(along).collect()
}
