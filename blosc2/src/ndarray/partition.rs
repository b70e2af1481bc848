//! Automatic chunk and block shapes.
//!
//! The algorithm is the one of Python blosc2 (`compute_chunks_blocks`), which uses the cache sizes of the machine. The
//! cache sizes of this module are constants, so that an array creates the same file on every machine. There is one
//! difference for axes without items: Python sets their chunk size to 0, so that the array cannot grow on these axes.

/// The CPU cache sizes from which automatic chunk and block shapes are computed.
/// [`NDArrayBuilder::cache_sizes`](crate::NDArrayBuilder::cache_sizes) sets them.
///
/// The default sizes are constants: 32 KiB, 1 MiB and 32 MiB, as in common x86-64 servers. With these sizes, the blocks
/// of a large array have about 256 KiB, and the chunks have about 8 MiB. Each block is compressed separately, so larger
/// blocks compress better. However, a read of a single item decompresses an entire block.
///
/// ```
/// use blosc2::NDArray;
/// use blosc2::array::CacheSizes;
///
/// let caches = CacheSizes { l1: 48 << 10, l2: 1 << 20, l3: 8 << 20 };
/// let array = NDArray::builder().cache_sizes(caches).zeros::<f64>((1000, 1000))?;
/// assert!(array.chunk_shape().iter().zip(array.shape()).all(|(chunk, size)| chunk <= size));
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheSizes {
    /// The size of the level 1 data cache, in bytes.
    pub l1: u64,
    /// The size of the level 2 cache, in bytes.
    pub l2: u64,
    /// The size of the level 3 cache, in bytes. Without a level 3 cache, the size of the level 2 cache.
    pub l3: u64,
}

impl Default for CacheSizes {
    fn default() -> Self {
        Self { l1: 32 << 10, l2: 1 << 20, l3: 32 << 20 }
    }
}

impl CacheSizes {
    /// Returns the cache sizes of this machine, which Linux reports in `/sys`. Returns `None` on other systems, and if
    /// `/sys` does not contain the size of the level 1 or level 2 cache. Python reads `/sys` first, and then tries
    /// other sources.
    pub fn detect() -> Option<Self> {
        let folder = std::path::Path::new("/sys/devices/system/cpu/cpu0/cache");
        let mut sizes = [None; 3];
        for entry in std::fs::read_dir(folder).ok()?.flatten() {
            let read = |name: &str| std::fs::read_to_string(entry.path().join(name)).ok();
            let (Some(level), Some(kind), Some(size)) = (read("level"), read("type"), read("size"))
            else {
                continue;
            };
            let size = size.trim();
            let (digits, unit) = match size.strip_suffix('K') {
                Some(digits) => (digits, 1 << 10),
                None => size.strip_suffix('M').map_or((size, 1), |digits| (digits, 1 << 20)),
            };
            let level = level.trim().parse::<usize>().ok().and_then(|level| level.checked_sub(1));
            if let (Some(level), Ok(size), true) =
                (level, digits.parse::<u64>(), kind.trim() != "Instruction")
                && let Some(slot) = sizes.get_mut(level)
            {
                *slot = Some(size * unit);
            }
        }
        let [l1, l2, l3] = sizes;
        let (l1, l2) = (l1?, l2?);
        Some(Self { l1, l2, l3: l3.unwrap_or(l2) })
    }

    /// The minimum size of a block in bytes, if items are smaller.
    fn block(&self) -> u64 {
        // The default describes an x86-64 machine on every machine.
        let x86_64 = cfg!(target_arch = "x86_64") || *self == Self::default();
        let floor = match (x86_64, self.l2 >= 2 << 20) {
            (true, false) => self.l2 / 4,
            (true, true) => self.l1.saturating_mul(4),
            (false, _) => self.l1,
        };
        MIN_BLOCK.max(floor)
    }

    /// The size in bytes of a chunk with blocks of `block` bytes.
    fn chunk(&self, block: u64) -> u64 {
        let chunk = if block.saturating_mul(32) < 64 << 20 { 32 * block } else { block };
        let chunk = if self.l3 > self.l2 { self.l3 } else { chunk };
        let mut chunk = chunk / OPERANDS;
        if self.l2 > chunk {
            chunk = chunk.max(self.l2 / OPERANDS);
        }
        let chunk = chunk.clamp(MIN_CHUNK, MAX_CHUNK).max(block);
        chunk / block * block
    }
}

const MIN_BLOCK: u64 = 32 << 10;
const MIN_CHUNK: u64 = 4 << 20;
const MAX_CHUNK: u64 = crate::codec::params::MAX_CHUNK_LEN as u64;
/// The factor by which a chunk is smaller than the cache, so that the operands of expressions fit.
const OPERANDS: u64 = 4;

/// Returns the chunk and block shapes for an array of this shape and item size. The caller can set one or both of them
/// in `given`.
///
/// Given shapes have one size for each axis, are not 0 on an axis with items, and have sizes below 2^31.
pub(super) fn partition(
    shape: &[u64],
    typesize: u64,
    given: (Option<&[u64]>, Option<&[u64]>),
    caches: &CacheSizes,
) -> (Vec<u64>, Vec<u64>) {
    match given {
        (Some(chunks), Some(blocks)) => (chunks.to_vec(), blocks.to_vec()),
        (Some(chunks), None) => {
            let blocks = match chunks.contains(&0) {
                true => chunks.to_vec(),
                false => auto_blocks(chunks, typesize, caches),
            };
            (chunks.to_vec(), blocks)
        }
        (None, blocks) => {
            let blocks: Option<Vec<u64>> =
                blocks.map(|blocks| blocks.iter().map(|&size| size.max(1)).collect());
            let full = grown(shape, blocks.as_deref(), typesize, caches);
            let blocks = blocks.unwrap_or_else(|| auto_blocks(&full, typesize, caches));
            (auto_chunks(&full, &blocks, typesize, caches), blocks)
        }
    }
}

/// Returns the shape with a size for each axis without items. All these axes get the same power of two, so that one
/// chunk fills half of the level 2 cache.
///
/// If a block shape is given, the size is a multiple of the block. An array without items will grow, and each append
/// recompresses the last chunk. A chunk of the normal size would make appends slow.
fn grown(shape: &[u64], blocks: Option<&[u64]>, typesize: u64, caches: &CacheSizes) -> Vec<u64> {
    let items = (caches.l2 / 2).min(MAX_CHUNK).max(typesize) / typesize;
    let others =
        shape.iter().filter(|&&size| size > 0).fold(1u64, |all, &size| all.saturating_mul(size));
    let empty = shape.iter().filter(|&&size| size == 0).count() as u32;
    let bits = (items / others).checked_ilog2().unwrap_or(0) / empty.max(1);
    let block = |axis: usize| blocks.map_or(1, |blocks| blocks[axis]);
    let len =
        |(axis, &size)| if size == 0 { (1u64 << bits).next_multiple_of(block(axis)) } else { size };
    shape.iter().enumerate().map(len).collect()
}

fn auto_blocks(outer: &[u64], typesize: u64, caches: &CacheSizes) -> Vec<u64> {
    let bytes = caches.block().max(typesize);
    fill(bytes / typesize, outer, &vec![1; outer.len()])
}

fn auto_chunks(shape: &[u64], blocks: &[u64], typesize: u64, caches: &CacheSizes) -> Vec<u64> {
    let block = blocks.iter().fold(typesize, |all, &size| all.saturating_mul(size));
    fill(caches.chunk(block) / typesize, shape, blocks)
        .into_iter()
        .zip(shape.iter().zip(blocks))
        .map(|(chunk, (&size, &block))| chunk.next_multiple_of(block).min(size))
        .collect()
}

/// Distributes `budget` items over the axes, the last one first.
fn fill(mut budget: u64, sizes: &[u64], least: &[u64]) -> Vec<u64> {
    let mut parts = vec![1; sizes.len()];
    for axis in (0..sizes.len()).rev() {
        if budget <= 1 {
            break;
        }
        let (size, least) = (sizes[axis], least[axis]);
        let mut part = size.max(least);
        if part <= budget {
            if size % part != 0 {
                part = nearest_divisor(size, part);
            }
        } else {
            part = budget.max(least);
            let divisor = if size % part == 0 { part } else { divisor_below(size, part) };
            if part / 2 < divisor && divisor < part * 2 {
                part = divisor;
            }
        }
        parts[axis] = part;
        budget /= part;
    }
    parts
}

/// Returns the divisor of `size` nearest to `wanted`. For a large size, returns the nearest divisor that is not greater
/// than `wanted`.
fn nearest_divisor(size: u64, wanted: u64) -> u64 {
    if size > 100_000 {
        return divisor_below(size, wanted);
    }
    let divisors = (1..=size).filter(|each| size.is_multiple_of(*each));
    divisors.min_by_key(|each| each.abs_diff(wanted)).unwrap_or(1)
}

fn divisor_below(size: u64, wanted: u64) -> u64 {
    if size == 0 {
        return wanted.max(1);
    }
    (1..=wanted.min(size)).rev().find(|each| size.is_multiple_of(*each)).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_those_that_python_gives_with_the_same_caches() {
        let auto = |shape: &[u64], typesize| {
            partition(shape, typesize, (None, None), &CacheSizes::default())
        };
        assert_eq!(auto(&[8192, 8192], 4), (vec![256, 8192], vec![8, 8192]));
        assert_eq!(auto(&[100_000_000], 8), (vec![1_024_000], vec![32_000]));
        assert_eq!(auto(&[], 8), (vec![], vec![]));
        assert_eq!(auto(&[7, 11, 13], 8), (vec![7, 11, 13], vec![7, 11, 13]));
    }

    #[test]
    fn axes_without_items_get_chunks_to_grow_into() {
        let auto = |shape: &[u64], typesize| {
            partition(shape, typesize, (None, None), &CacheSizes::default())
        };
        // 512 KiB, in blocks of 256 KiB.
        assert_eq!(auto(&[0], 8), (vec![1 << 16], vec![1 << 15]));
        assert_eq!(auto(&[0, 4], 8), (vec![1 << 14, 4], vec![1 << 13, 4]));
        assert_eq!(auto(&[0, 0], 8), (vec![1 << 8, 1 << 8], vec![1 << 7, 1 << 8]));
        assert_eq!(auto(&[0, 1 << 40], 1).0[0], 1);
        assert_eq!(auto(&[0], 1 << 30), (vec![1], vec![1]));
    }

    #[test]
    fn given_shapes_at_the_edges_are_taken() {
        assert_eq!(
            partition(&[0, 5], 1, (None, Some(&[0, 5])), &CacheSizes::default()),
            (vec![1 << 16, 5], vec![1, 5])
        );
        assert_eq!(
            partition(&[0, 5], 1, (Some(&[0, 5]), None), &CacheSizes::default()),
            (vec![0, 5], vec![0, 5])
        );
        let huge = [(1 << 31) - 1; 16];
        assert_eq!(partition(&[1; 16], 8, (None, Some(&huge)), &CacheSizes::default()).1, huge);
    }
}
