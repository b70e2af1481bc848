//! Chunks of many kinds; broken chunks and files.

use blosc2::{Compressor, Filter};
use blosc2_format::chunk::Header;

use super::round_trip::Case;
use super::{Rng, data, name, upstream, upstream_files};

/// Chunks of many kinds, to be broken.
pub(crate) fn samples() -> Vec<(String, Vec<u8>)> {
    let mut samples = Vec::new();
    for seed in 0..60 {
        let mut case = Case::random(1000 + seed);
        case.len = case.len.min(6000);
        if case.params.filters.first() == Some(&Filter::Delta) {
            case.len -= case.len % case.typesize;
        }
        let source = data(case.kind, case.len, seed);
        samples.push((format!("{case:?}"), blosc2::compress(&source, &case.params).unwrap()));
        let blocks: Vec<&[u8]> = source.chunks(1 + seed as usize * 20).collect();
        let chunk = Compressor::new(&case.params).unwrap().compress_blocks(&blocks);
        if let Ok(chunk) = chunk {
            samples.push((format!("variable blocks, {case:?}"), chunk.into_bytes()));
        }
    }
    for path in upstream_files("compat", ".cdata") {
        let file = name(&path);
        if file.starts_with("blosc-") {
            samples.push((file, std::fs::read(path).unwrap()));
        }
    }
    // Chunks without data, and with a repeated value.
    for flag in [0x10, 0x20, 0x30, 0x40] {
        let mut chunk = vec![0; 32];
        chunk[..4].copy_from_slice(&[5, 1, 0b101, 4]);
        chunk[4..8].copy_from_slice(&4000u32.to_le_bytes());
        chunk[8..12].copy_from_slice(&1000u32.to_le_bytes());
        chunk[31] = flag;
        if flag == 0x30 {
            chunk.extend([1, 2, 3, 4]);
        }
        let len = chunk.len() as u32;
        chunk[12..16].copy_from_slice(&len.to_le_bytes());
        assert!(blosc2::decompress::<u8>(&chunk).is_ok(), "special {flag:#x}");
        samples.push((format!("special {flag:#x}"), chunk));
    }
    // Variable-length blocks: the chunks of a real file.
    let file = std::fs::read(upstream("compat/vlblocks-lz4-variable-3.0.0.b2frame")).unwrap();
    for start in 0..file.len() - 32 {
        if file[start] == 6
            && file[start + 30] == 1
            && let Ok(header) = Header::parse(&file[start..])
        {
            let chunk = &file[start..start + header.cbytes as usize];
            if blosc2::decompress::<u8>(chunk).is_ok() {
                samples.push((format!("variable blocks at {start}"), chunk.to_vec()));
            }
        }
    }
    samples
}

/// A chunk with a few bytes changed, mostly where headers are.
pub(crate) fn mutant(chunk: &[u8], rng: &mut Rng) -> Vec<u8> {
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
pub(crate) fn mutate(bytes: &mut [u8], rng: &mut Rng) {
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
