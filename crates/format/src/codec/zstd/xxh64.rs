//! The 64-bit xxHash, whose lower half is the checksum of a frame.

const PRIMES: [u64; 5] = [
    0x9e37_79b1_85eb_ca87,
    0xc2b2_ae3d_27d4_eb4f,
    0x1656_67b1_9e37_79f9,
    0x85eb_ca77_c2b2_ae63,
    0x27d4_eb2f_1656_67c5,
];

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

fn round(sum: u64, word: u64) -> u64 {
    sum.wrapping_add(word.wrapping_mul(PRIMES[1])).rotate_left(31).wrapping_mul(PRIMES[0])
}

/// Returns the hash of `data` with the seed 0.
pub(super) fn hash(data: &[u8]) -> u64 {
    let blocks = data.chunks_exact(32);
    let rest = blocks.remainder();
    let mut hash = PRIMES[4];
    if data.len() >= 32 {
        let mut sums =
            [PRIMES[0].wrapping_add(PRIMES[1]), PRIMES[1], 0, 0_u64.wrapping_sub(PRIMES[0])];
        for block in blocks {
            for (sum, word) in sums.iter_mut().zip(block.chunks_exact(8)) {
                *sum = round(*sum, number(word));
            }
        }
        hash = (sums.iter().zip([1, 7, 12, 18]))
            .fold(0, |hash: u64, (sum, turn)| hash.wrapping_add(sum.rotate_left(turn)));
        for sum in sums {
            hash = (hash ^ round(0, sum)).wrapping_mul(PRIMES[0]).wrapping_add(PRIMES[3]);
        }
    }
    hash = hash.wrapping_add(data.len() as u64);
    let words = rest.chunks_exact(8);
    let rest = words.remainder();
    for word in words {
        hash = (hash ^ round(0, number(word)))
            .rotate_left(27)
            .wrapping_mul(PRIMES[0])
            .wrapping_add(PRIMES[3]);
    }
    let (half, rest) = rest.split_at(rest.len() & 4);
    if !half.is_empty() {
        hash = (hash ^ number(half).wrapping_mul(PRIMES[0]))
            .rotate_left(23)
            .wrapping_mul(PRIMES[1])
            .wrapping_add(PRIMES[2]);
    }
    for &byte in rest {
        hash = (hash ^ u64::from(byte).wrapping_mul(PRIMES[4]))
            .rotate_left(11)
            .wrapping_mul(PRIMES[0]);
    }
    hash = (hash ^ (hash >> 33)).wrapping_mul(PRIMES[1]);
    hash = (hash ^ (hash >> 29)).wrapping_mul(PRIMES[2]);
    hash ^ (hash >> 32)
}

#[cfg(test)]
mod tests {
    use super::hash;

    #[test]
    fn gives_the_published_values() {
        assert_eq!(hash(b""), 0xef46_db37_51d8_e999);
        assert_eq!(hash(b"a"), 0xd24e_c4f1_a98c_6e5b);
        assert_eq!(hash(b"abc"), 0x44bc_2cf5_ad77_0999);
    }
}
