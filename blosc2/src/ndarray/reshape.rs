//! Copies of arrays with another shape.

use std::ops::Range;

use super::boxes::{BoxReader, Readings};
use super::index::{PerAxis, sizes};
use super::places::len_of;
use super::ranges::{broadcast, can_broadcast, extent, own_ranges};
use super::view::NDArrayView;
use super::{NDArray, NDArrayBuilder};
use crate::{Doing, ErrorKind, Result};

const RESHAPE: &str = "reshape an array";
const BROADCAST: &str = "broadcast an array";

impl NDArrayBuilder {
    /// Creates a copy of an array or a view with another shape, which has the same number of items. The items have the
    /// same C order. NumPy and Python: `reshape`.
    ///
    /// One size can be -1: it is computed from the others. The settings of the builder determine all properties of the
    /// copy except the dtype. To change the shape of an existing array, use [`NDArray::resize`].
    ///
    /// The copy is fastest if few new chunks need the same block of the source, for example if both arrays have chunks of
    /// entire rows. If neighboring new chunks need the same blocks, as many of them as [`max_memory`](Self::max_memory)
    /// allows are read together.
    ///
    /// ```
    /// use blosc2::NDArray;
    ///
    /// let array = NDArray::builder().arange(0u8, 12, 1)?;
    /// let table = NDArray::builder().reshape(&array, (3, -1))?;
    /// assert_eq!(table.shape(), [3, 4]);
    /// assert_eq!(table.read::<Vec<u8>>((.., 1))?, [1, 5, 9]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: the shape has another number of items, a size below -1, or several sizes of -1;
    /// - the [errors of reads](NDArray#errors-of-reads) of the source, and of [creation](Self#errors-of-creation).
    pub fn reshape<'a>(
        self,
        source: impl Into<NDArrayView<'a>>,
        shape: impl PerAxis,
    ) -> Result<NDArray> {
        let view = source.into();
        let shape = shape_for(&shape, &view)?;
        let ((dtype, format), typesize) = (view.dtype_text(), view.part().len);
        let (builder, readings) = (self.dtype_format(format), Readings::new([view.array])?);
        builder.create_from(&shape, (&dtype, typesize), readings, |readings, new| {
            let reader = BoxReader::reshaped(&view, readings.of(view.array), &shape);
            new.by_boxes(vec![reader], &|readers, ranges, bytes| {
                readers[0].read(ranges, None, bytes)
            })
        })
    }

    /// Creates a copy of an array or a view that is broadcast to a shape: the shapes are aligned at the last axis, and an
    /// axis of size 1 is repeated. NumPy and Python: `broadcast_to`.
    ///
    /// The settings of the builder determine all properties of the copy except the dtype. Operands of
    /// [`compute::zip`](crate::compute::zip) and [`NDArray::assign`] are broadcast without a copy.
    ///
    /// ```
    /// use blosc2::NDArray;
    ///
    /// let column = NDArray::from_slice(&[1u8, 2], (2, 1))?;
    /// let table = NDArray::builder().broadcast_to(&column, (2, 3))?;
    /// assert_eq!(table.read::<Vec<u8>>(..)?, [1, 1, 1, 2, 2, 2]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: the source cannot be broadcast to the shape;
    /// - the [errors of reads](NDArray#errors-of-reads) of the source, and of [creation](Self#errors-of-creation).
    pub fn broadcast_to<'a>(
        self,
        source: impl Into<NDArrayView<'a>>,
        shape: impl PerAxis,
    ) -> Result<NDArray> {
        let (view, shape) = (source.into(), sizes(&shape, "shape").doing(BROADCAST)?);
        let own = view.shape();
        if !can_broadcast(&own, &shape) {
            let detail = format!("the shape {own:?} cannot be broadcast to {shape:?}");
            return Err(view.error(ErrorKind::InvalidArgument, detail).doing(BROADCAST));
        }
        let ((dtype, format), typesize) = (view.dtype_text(), view.part().len);
        let (builder, readings) = (self.dtype_format(format), Readings::new([view.array])?);
        builder.create_from(&shape, (&dtype, typesize), readings, |readings, new| {
            let needed = |ranges: &[Range<u64>]| own_ranges(&own, ranges);
            let reader = BoxReader::new(&view, readings.of(view.array), needed);
            new.by_boxes(vec![reader], &|readers, ranges, bytes| {
                let (from, mut items) = (needed(ranges), Vec::new());
                readers[0].read_to(&from, &mut items)?;
                broadcast(&items, typesize, &extent(&from), &extent(ranges), bytes);
                Ok(())
            })
        })
    }
}

/// Returns the new shape of a view. A size of -1 is computed.
fn shape_for(shape: &impl PerAxis, view: &NDArrayView<'_>) -> Result<Vec<u64>> {
    let found: Vec<i128> = (0..shape.ndim()).map(|axis| shape.along(axis)).collect();
    let old = view.shape();
    let len = len_of(&old, 1);
    let known = found.iter().filter(|size| **size != -1);
    let known = known.map(|size| u64::try_from(*size).ok()).collect::<Option<Vec<u64>>>();
    let unknown = found.len() - known.as_ref().map_or(0, Vec::len);
    let product = known.as_ref().map(|known| len_of(known, 1));
    let missing = match product {
        Some(product) if unknown == 0 && product == len => Some(0),
        Some(product) if unknown == 1 && product > 0 && len.is_multiple_of(product) => {
            Some(len / product)
        }
        _ => None,
    };
    let Some(missing) = missing else {
        let detail = format!("expected a shape of {len} items, as {old:?}, got {found:?}");
        return Err(view.error(ErrorKind::InvalidArgument, detail).doing(RESHAPE));
    };
    Ok(found.iter().map(|size| u64::try_from(*size).unwrap_or(missing)).collect())
}
