//! Where items are: the array is cut into chunks, the chunks into blocks.

use blosc2_format::b2nd::{MAX_NDIM, Meta};

use crate::params::MAX_CHUNK_LEN;
use crate::{Error, ErrorKind, Result};

/// The shapes of an array, checked to fit each other and this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Geometry {
    pub(crate) shape: Vec<u64>,
    pub(crate) chunks: Vec<u64>,
    pub(crate) blocks: Vec<u64>,
    /// Number of chunks along each dimension.
    pub(crate) chunk_grid: Vec<u64>,
    /// Number of blocks of a chunk along each dimension.
    pub(crate) block_grid: Vec<u64>,
    pub(crate) typesize: usize,
    /// Bytes of a block.
    pub(crate) block_len: usize,
    /// Bytes of a chunk, its blocks all being whole.
    pub(crate) chunk_len: usize,
    /// Number of chunks.
    pub(crate) nchunks: usize,
}

/// A box: the first index along each dimension, and the one after the last.
pub(crate) type Bounds = (Vec<u64>, Vec<u64>);

impl Geometry {
    pub(crate) fn new(
        shape: &[u64],
        chunks: &[u64],
        blocks: &[u64],
        typesize: usize,
        doing: &str,
    ) -> Result<Self> {
        let error = |kind, detail: String| Error::new(kind, doing, detail);
        let invalid = |detail| error(ErrorKind::InvalidArgument, detail);
        let too_large = |what: &str| error(ErrorKind::TooLarge, what.to_owned());
        let ndim = shape.len();
        if ndim > MAX_NDIM {
            let detail = format!("an array has at most {MAX_NDIM} dimensions, got {ndim}");
            return Err(invalid(detail));
        }
        for (name, given) in [("chunk", chunks), ("block", blocks)] {
            if given.len() != ndim {
                let found = given.len();
                let detail =
                    format!("the {name} shape has {found} dimensions, the array has {ndim}");
                return Err(invalid(detail));
            }
        }
        for axis in 0..ndim {
            let (size, chunk, block) = (shape[axis], chunks[axis], blocks[axis]);
            if i64::try_from(size).is_err() || i32::try_from(chunk.max(block)).is_err() {
                return Err(too_large("a shape is over 2^63 - 1, or a chunk shape over 2^31 - 1"));
            }
            if chunk == 0 && size > 0 || block == 0 && chunk > 0 {
                let detail = format!(
                    "along dimension {axis} a chunk has {chunk} and a block {block} of {size} items"
                );
                return Err(invalid(detail));
            }
        }
        let grid = |outer: &[u64], inner: &[u64]| -> Vec<u64> {
            outer.iter().zip(inner).map(|(outer, inner)| outer.div_ceil((*inner).max(1))).collect()
        };
        let chunk_grid = grid(shape, chunks);
        let block_grid = grid(chunks, blocks);
        let padded: Vec<u64> = block_grid
            .iter()
            .zip(blocks)
            .map(|(count, block)| count.saturating_mul(*block))
            .collect();

        let chunk_len = byte_len(&padded, typesize).filter(|&len| len <= MAX_CHUNK_LEN);
        let Some(chunk_len) = chunk_len else {
            let detail = format!("a chunk of {padded:?} items has more than {MAX_CHUNK_LEN} bytes");
            return Err(too_large(&detail));
        };
        let block_len = byte_len(blocks, typesize).unwrap_or(0);
        let nchunks = byte_len(&chunk_grid, 1).filter(|&count| count <= (i32::MAX / 8) as usize);
        let Some(nchunks) = nchunks else {
            return Err(too_large("the array would have more than 2^28 chunks"));
        };
        let items = |all: i64, &size: &u64| all.checked_mul(i64::try_from(size).ok()?);
        if shape.iter().try_fold(1, items).is_none() {
            return Err(too_large("the array has more than 2^63 - 1 items"));
        }
        Ok(Self {
            shape: shape.to_vec(),
            chunks: chunks.to_vec(),
            blocks: blocks.to_vec(),
            chunk_grid,
            block_grid,
            typesize,
            block_len,
            chunk_len,
            nchunks,
        })
    }

    /// The metalayer that says these shapes.
    pub(crate) fn to_meta(&self, dtype: &str) -> Meta {
        // Checked to fit in `new`.
        let sizes = |shape: &[u64]| shape.iter().map(|&size| size as i32).collect();
        Meta {
            shape: self.shape.iter().map(|&size| size as i64).collect(),
            chunks: sizes(&self.chunks),
            blocks: sizes(&self.blocks),
            dtype: Some(dtype.to_owned()),
            dtype_format: 0,
        }
    }

    pub(crate) fn ndim(&self) -> usize {
        self.shape.len()
    }

    /// Number of blocks in a chunk.
    pub(crate) fn nblocks(&self) -> usize {
        self.block_grid.iter().product::<u64>() as usize
    }

    /// Bytes of a box of this shape, if they fit this machine.
    pub(crate) fn box_len(&self, shape: &[u64]) -> Option<usize> {
        byte_len(shape, self.typesize).filter(|&len| isize::try_from(len).is_ok())
    }

    /// The part of a box that lies in a chunk, in the array's indices.
    pub(crate) fn in_chunk(&self, chunk: &[u64], (start, stop): (&[u64], &[u64])) -> Bounds {
        let origin = |axis: usize| chunk[axis] * self.chunks[axis];
        let axes = 0..self.ndim();
        (
            axes.clone().map(|axis| start[axis].max(origin(axis))).collect(),
            axes.map(|axis| stop[axis].min(origin(axis) + self.chunks[axis])).collect(),
        )
    }

    /// Whether a chunk's bytes are its items in C order: there is no padding, and blocks are cut
    /// along one dimension only, with single items before it and whole rows after it.
    pub(crate) fn chunk_is_c_order(&self) -> bool {
        let unpadded = (0..self.ndim())
            .all(|axis| self.block_grid[axis] * self.blocks[axis] == self.chunks[axis]);
        let first_cut = self.blocks.iter().position(|&block| block != 1).unwrap_or(0);
        unpadded && self.block_grid.iter().skip(first_cut + 1).all(|&count| count == 1)
    }
}

fn byte_len(shape: &[u64], typesize: usize) -> Option<usize> {
    let items = shape.iter().try_fold(1u64, |all, &size| all.checked_mul(size))?;
    usize::try_from(items).ok()?.checked_mul(typesize)
}

/// Calls `visit` with every index from `start` up to `stop`, the last dimension fastest: once with
/// an empty index when there are no dimensions.
pub(crate) fn for_each_index(
    start: &[u64],
    stop: &[u64],
    mut visit: impl FnMut(&[u64]) -> Result<()>,
) -> Result<()> {
    if start.iter().zip(stop).any(|(start, stop)| start >= stop) {
        return Ok(());
    }
    let mut index = start.to_vec();
    loop {
        visit(&index)?;
        let mut axis = index.len();
        loop {
            let Some(next) = axis.checked_sub(1) else {
                return Ok(());
            };
            axis = next;
            index[axis] += 1;
            if index[axis] < stop[axis] {
                break;
            }
            index[axis] = start[axis];
        }
    }
}

/// The position of an index in C order.
pub(crate) fn position(index: &[u64], shape: &[u64]) -> usize {
    index.iter().zip(shape).fold(0, |all, (&index, &size)| all * size as usize + index as usize)
}

/// A box of items in an array of `shape` in C order, which starts at `origin`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window<'a> {
    pub(crate) shape: &'a [u64],
    pub(crate) origin: &'a [u64],
}

impl Window<'_> {
    /// Where an item is, in bytes.
    fn offset(&self, index: &[u64], typesize: usize) -> usize {
        let axes = index.iter().zip(self.origin).zip(self.shape);
        let items = axes.fold(0, |all, ((&index, &origin), &size)| {
            all * size as usize + (index - origin) as usize
        });
        items * typesize
    }
}

/// Calls `visit` for each run of a box that lies in one piece in all windows, with the index of its
/// first item; gives it the bytes of a run too, which are the same for all.
fn for_each_run(
    (start, stop): (&[u64], &[u64]),
    windows: &[Window<'_>],
    typesize: usize,
    mut visit: impl FnMut(&[u64], usize),
) -> Result<()> {
    // Dimensions that all windows hold whole, from the last one on, go in one run.
    let mut outer = start.len();
    let mut run = typesize;
    while outer > 0 {
        outer -= 1;
        let count = stop[outer].saturating_sub(start[outer]);
        run *= count as usize;
        if windows.iter().any(|window| window.shape[outer] != count) {
            break;
        }
    }
    if run == 0 {
        return Ok(());
    }
    let mut ends = stop.to_vec();
    for axis in outer..ends.len() {
        ends[axis] = start[axis] + 1;
    }
    for_each_index(start, &ends, |index| {
        visit(index, run);
        Ok(())
    })
}

/// Copies the items of the box from `start` to `stop` between two arrays in C order; the box is in
/// indices of which each array's first item has those of its window's origin.
pub(crate) fn copy_box(
    bounds: (&[u64], &[u64]),
    (from, from_window): (&[u8], Window<'_>),
    (to, to_window): (&mut [u8], Window<'_>),
    typesize: usize,
) -> Result<()> {
    for_each_run(bounds, &[from_window, to_window], typesize, |index, run| {
        let (at_from, at_to) =
            (from_window.offset(index, typesize), to_window.offset(index, typesize));
        to[at_to..at_to + run].copy_from_slice(&from[at_from..at_from + run]);
    })
}

/// Puts the same item everywhere in a box.
pub(crate) fn fill_box(
    bounds: (&[u64], &[u64]),
    item: &[u8],
    (to, window): (&mut [u8], Window<'_>),
) -> Result<()> {
    for_each_run(bounds, &[window], item.len(), |index, run| {
        let at = window.offset(index, item.len());
        let run = &mut to[at..at + run];
        match item.iter().all(|&byte| byte == item[0]) {
            true => run.fill(item[0]),
            false => run.chunks_exact_mut(item.len()).for_each(|each| each.copy_from_slice(item)),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_come_in_c_order() {
        let mut seen = Vec::new();
        for_each_index(&[0, 1], &[2, 3], |index| {
            seen.push(index.to_vec());
            Ok(())
        })
        .unwrap();
        assert_eq!(seen, [[0, 1], [0, 2], [1, 1], [1, 2]]);
        let mut count = 0;
        for_each_index(&[], &[], |_| {
            count += 1;
            Ok(())
        })
        .unwrap();
        assert_eq!(count, 1);
        for_each_index(&[0, 3], &[2, 3], |_| panic!("the box is empty")).unwrap();
    }

    #[test]
    fn boxes_are_copied_between_windows() {
        let from: Vec<u8> = (0..12).collect(); // 3 x 4, its first item at (10, 20)
        let mut to = [99; 6]; // 2 x 3, its first item at (11, 21)
        copy_box(
            (&[11, 21], &[13, 23]),
            (&from, Window { shape: &[3, 4], origin: &[10, 20] }),
            (&mut to, Window { shape: &[2, 3], origin: &[11, 21] }),
            1,
        )
        .unwrap();
        assert_eq!(to, [5, 6, 99, 9, 10, 99]);
    }

    #[test]
    fn boxes_are_filled() {
        let window = Window { shape: &[3, 3], origin: &[5, 5] };
        let mut to = [0u8; 18];
        fill_box((&[6, 5], &[8, 7]), &[1, 2], (&mut to, window)).unwrap();
        assert_eq!(to, [0, 0, 0, 0, 0, 0, 1, 2, 1, 2, 0, 0, 1, 2, 1, 2, 0, 0]);
        fill_box((&[5, 5], &[8, 8]), &[7, 7], (&mut to, window)).unwrap();
        assert_eq!(to, [7; 18]);
    }

    #[test]
    fn c_order_is_recognised() {
        let is = |chunks: &[u64], blocks: &[u64]| {
            Geometry::new(chunks, chunks, blocks, 4, "test").unwrap().chunk_is_c_order()
        };
        assert!(is(&[8, 8], &[2, 8]));
        assert!(is(&[8, 8], &[1, 2]));
        assert!(is(&[8], &[2]));
        assert!(is(&[], &[]));
        assert!(is(&[8, 8], &[8, 8]));
        assert!(!is(&[8, 8], &[2, 2]));
        assert!(!is(&[8, 8], &[3, 8]), "padded");
        assert!(!is(&[8, 8], &[8, 2]));
    }

    #[test]
    fn shapes_that_do_not_fit_are_refused() {
        let kind = |shape: &[u64], chunks: &[u64], blocks: &[u64]| {
            Geometry::new(shape, chunks, blocks, 8, "test").unwrap_err().kind()
        };
        assert_eq!(kind(&[1; 17], &[1; 17], &[1; 17]), ErrorKind::InvalidArgument);
        assert_eq!(kind(&[4, 4], &[4], &[4, 4]), ErrorKind::InvalidArgument);
        assert_eq!(kind(&[4], &[0], &[1]), ErrorKind::InvalidArgument);
        assert_eq!(kind(&[4], &[2], &[0]), ErrorKind::InvalidArgument);
        assert_eq!(kind(&[1 << 28], &[1 << 28], &[1]), ErrorKind::TooLarge);
        assert_eq!(kind(&[u64::MAX], &[1], &[1]), ErrorKind::TooLarge);
        assert_eq!(kind(&[1 << 40], &[1], &[1]), ErrorKind::TooLarge);
        assert_eq!(kind(&[1 << 62, 1 << 62], &[1 << 30, 1], &[1, 1]), ErrorKind::TooLarge);
    }
}
