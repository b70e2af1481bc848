//! Broken chunks and files.

use crate::Rng;

/// A chunk with a few bytes changed, mostly where headers are.
pub fn mutant(chunk: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut bytes = chunk.to_vec();
    for _ in 0..1 + rng.below(3) {
        let near = if rng.below(3) == 0 { bytes.len() } else { bytes.len().min(64) };
        if near == 0 {
            return bytes;
        }
        let at = rng.below(near as u64) as usize;
        match rng.below(6) {
            0 => bytes[at] ^= 1 << rng.below(8),
            1 => bytes[at] = rng.next() as u8,
            2 => bytes[at] = *rng.pick(&[0, 1, 0x7f, 0x80, 0xff]),
            3 => {
                let number = *rng.pick(&[0, 1, 2, 16, 31, 32, 33, 255, 65_536, i32::MAX, -1, -2]);
                let at = at / 4 * 4;
                if let Some(place) = bytes.get_mut(at..at + 4) {
                    place.copy_from_slice(&number.to_le_bytes());
                }
            }
            4 => bytes.truncate(rng.below(bytes.len() as u64 + 1) as usize),
            _ => {
                let len = (rng.below(9) as usize).min(bytes.len() - at);
                bytes.drain(at..at + len);
            }
        }
    }
    bytes
}

/// Changes bytes of a file in one to four places, most of them near the ends.
pub fn mutate(bytes: &mut [u8], rng: &mut Rng) {
    const NUMBERS: [u32; 12] =
        [0, 1, u32::MAX, 2, 16, 31, 32, 255, 0x7fff_ffff, 0x8000_0000, 65536, 8];
    for _ in 0..=rng.below(4) {
        let len = bytes.len() as u64;
        let at = match rng.below(5) {
            0 | 1 => rng.below(len.min(160)),
            2 | 3 => len - 1 - rng.below(len.min(120)),
            _ => rng.below(len),
        } as usize;
        let mut write = |new: &[u8]| {
            let end = (at + new.len()).min(bytes.len());
            bytes[at..end].copy_from_slice(&new[..end - at]);
        };
        match rng.below(6) {
            0 | 1 => write(&[rng.next() as u8]),
            2 => bytes[at] ^= 1 << rng.below(8),
            3 => write(&rng.pick(&NUMBERS).to_le_bytes()),
            4 => write(&rng.pick(&NUMBERS).to_be_bytes()),
            _ => write(&i64::MAX.to_be_bytes()),
        }
    }
}
