//! Chunk and block shapes for those who give none.
//!
//! The algorithm is Python blosc2's (`compute_chunks_blocks`), which looks at the caches of the
//! machine; with the cache sizes fixed here, a file is the same wherever it is written.

/// Cache sizes in bytes, of a common x86-64 machine.
const L2: u64 = 512 << 10;
const L3: u64 = 32 << 20;

const MIN_BLOCK: u64 = 32 << 10;
const MIN_CHUNK: u64 = 4 << 20;
const MAX_CHUNK: u64 = crate::params::MAX_CHUNK_LEN as u64;
/// A chunk is this many times smaller than the cache, to leave room for the operands of expressions.
const OPERANDS: u64 = 4;

/// The shapes of chunks and blocks for an array of this shape and item size; either may be given.
///
/// Given shapes have as many dimensions as `shape`, are not zero along a dimension with items, and have
/// sizes below 2^31.
pub(crate) fn partition(
    shape: &[u64],
    typesize: u64,
    chunks: Option<&[u64]>,
    blocks: Option<&[u64]>,
) -> (Vec<u64>, Vec<u64>) {
    match (chunks, blocks) {
        (Some(chunks), Some(blocks)) => (chunks.to_vec(), blocks.to_vec()),
        (None, None) if shape.contains(&0) => (shape.to_vec(), shape.to_vec()),
        (Some(chunks), None) => {
            let blocks = match chunks.contains(&0) {
                true => chunks.to_vec(),
                false => auto_blocks(chunks, typesize),
            };
            (chunks.to_vec(), blocks)
        }
        (None, blocks) => {
            // A dimension without items yet gets the partition of one item.
            let full: Vec<u64> = shape.iter().map(|&size| size.max(1)).collect();
            let blocks = match blocks {
                Some(blocks) => blocks.iter().map(|&size| size.max(1)).collect(),
                None => auto_blocks(&full, typesize),
            };
            (auto_chunks(&full, &blocks, typesize), blocks)
        }
    }
}

fn auto_blocks(outer: &[u64], typesize: u64) -> Vec<u64> {
    let bytes = MIN_BLOCK.max(L2 / 4).max(typesize);
    fill(bytes / typesize, outer, &vec![1; outer.len()])
}

fn auto_chunks(shape: &[u64], blocks: &[u64], typesize: u64) -> Vec<u64> {
    let block = blocks.iter().fold(typesize, |all, &size| all.saturating_mul(size));
    let bytes = (L3 / OPERANDS).clamp(MIN_CHUNK, MAX_CHUNK).max(block);
    let bytes = bytes / block * block;
    fill(bytes / typesize, shape, blocks)
        .into_iter()
        .zip(shape.iter().zip(blocks))
        .map(|(chunk, (&size, &block))| chunk.next_multiple_of(block).min(size))
        .collect()
}

/// Spends `budget` items on the dimensions, the last one first.
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

/// The divisor of `size` that is nearest to `wanted`; of a large size, the nearest below.
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
        let auto = |shape: &[u64], typesize| partition(shape, typesize, None, None);
        assert_eq!(auto(&[8192, 8192], 4), (vec![256, 8192], vec![4, 8192]));
        assert_eq!(auto(&[100_000_000], 8), (vec![1_008_000], vec![16_000]));
        assert_eq!(auto(&[], 8), (vec![], vec![]));
        assert_eq!(auto(&[0, 5], 8), (vec![0, 5], vec![0, 5]));
        assert_eq!(auto(&[7, 11, 13], 8), (vec![7, 11, 13], vec![7, 11, 13]));
    }

    #[test]
    fn given_shapes_at_the_edges_are_taken() {
        assert_eq!(partition(&[0, 5], 1, None, Some(&[0, 5])), (vec![1, 5], vec![1, 5]));
        assert_eq!(partition(&[0, 5], 1, Some(&[0, 5]), None), (vec![0, 5], vec![0, 5]));
        let huge = [(1 << 31) - 1; 16];
        assert_eq!(partition(&[1; 16], 8, None, Some(&huge)).1, huge);
    }
}
