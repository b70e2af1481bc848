//! Chunks of many kinds, to be broken.

use blosc2::{Compressor, Filter};
use blosc2_format::chunk::Header;

use super::round_trip::Case;
use super::{data, name, upstream, upstream_files};

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
