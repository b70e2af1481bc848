//! Damaged blocks: decompression returns numbers or an error, without a panic and with bounded memory.
#![allow(missing_docs)]

use std::panic;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;
use blosc2::{ErrorKind, decompress};
use blosc2_pco::cparams;
use blosc2_testing::{Rng, mutants, repeats};

/// The length of the header of a chunk with one block, up to the bytes of the codec: the header, the position of the
/// block, and the length of the stream.
const HEADER: usize = 32 + 4 + 4;
/// The position of the codec's parameter in the header.
const TYPE: usize = 23;

/// Data that pcodec compresses in different ways: waves, multiples, few different numbers, repeated sequences, decimal
/// numbers, rounded numbers, noise.
fn kinds() -> Vec<(&'static str, Vec<u8>)> {
    let mut rng = Rng(3);
    let wave = |at: usize| (at as f64 / 40.0).sin();
    let distinct: Vec<u64> = (0..40).map(|_| rng.next()).collect();
    let sequence: Vec<u32> = (0..40).map(|_| rng.next() as u32).collect();
    let count = 3000;
    vec![
        ("<i2", (0..count).flat_map(|at| ((wave(at) * 900.0) as i16).to_le_bytes()).collect()),
        (">f8", (0..count).flat_map(|at| (wave(at) * 7.0).to_be_bytes()).collect()),
        ("<i8", (0..count).flat_map(|_| (rng.next() as i64 % 999 * 1000).to_le_bytes()).collect()),
        ("<u8", (0..count).flat_map(|_| rng.pick(&distinct).to_le_bytes()).collect()),
        ("<u4", (0..count).flat_map(|at| sequence[at % 40].to_le_bytes()).collect()),
        ("<f4", (0..count).flat_map(|_| (rng.index(900) as f32 / 10.0).to_le_bytes()).collect()),
        (
            "<f8",
            (0..count).flat_map(|at| f64::from((wave(at) + 1.5) as f32).to_le_bytes()).collect(),
        ),
        ("<f2", (0..count).flat_map(|at| half::f16::from_f64(wave(at)).to_le_bytes()).collect()),
        ("|u1", (0..count).map(|at| (wave(at) * 9.0 + 90.0) as u8).collect()),
        ("|i1", (0..count).map(|_| rng.index(20) as u8).collect()),
    ]
}

/// The largest size of this process so far, in bytes.
#[cfg(target_os = "linux")]
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmPeak:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() << 10
}

/// It is not measured on other systems.
#[cfg(not(target_os = "linux"))]
fn peak_memory() -> u64 {
    0
}

#[test]
fn damaged_blocks_are_errors_or_numbers() -> Result<()> {
    // A panic would become an error of the call, so that it has to be counted here.
    static PANICS: AtomicUsize = AtomicUsize::new(0);
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        PANICS.fetch_add(1, Ordering::Relaxed);
        usual(info);
    }));
    let mut rng = Rng(11);
    let (mut failed, mut read) = (0, 0);
    let mut before = None;
    for (dtype, items) in kinds() {
        let chunk = blosc2::compress(&items, cparams(dtype, 8)?.blocksize(items.len()))?;
        assert!(chunk.len() < items.len(), "{dtype}");
        assert_eq!(decompress::<u8>(&chunk)?, items, "{dtype}");
        before.get_or_insert_with(peak_memory);
        for _ in 0..repeats(100_000) {
            // Only what pcodec reads: other tests damage the headers of chunks, which declare sizes.
            let (header, block) = chunk.split_at(HEADER);
            let (mut header, mut block) = (header.to_vec(), block.to_vec());
            match rng.index(8) {
                0 | 1 => block = mutants::mutant(&block, &mut rng),
                2 | 3 => mutants::mutate(&mut block, &mut rng),
                4 => header[TYPE] = rng.next() as u8,
                _ => {
                    for _ in 0..1 + rng.index(4) {
                        let at = rng.index(40.min(block.len()));
                        block[at] = rng.next() as u8;
                    }
                }
            }
            block.resize(chunk.len() - HEADER, 0);
            let bytes = [header, block].concat();
            match decompress::<u8>(&bytes) {
                Ok(_) => read += 1,
                Err(_) => failed += 1,
            }
        }
    }
    assert_eq!(PANICS.load(Ordering::Relaxed), 0);
    assert!(read > 0 && failed > read, "{read} {failed}");
    // Less than the largest window and the largest dictionary of pcodec's format, 256 MiB each. The allocator of Linux
    // reserves 64 MiB for each thread.
    let more = peak_memory() - before.unwrap_or(0);
    assert!(more < 200 << 20, "{more} bytes");
    Ok(())
}

/// Sets the bytes of pcodec in a chunk with one block, and returns the error.
fn error(chunk: &[u8], change: impl FnOnce(&mut [u8])) -> String {
    let mut bytes = chunk.to_vec();
    change(&mut bytes[HEADER..]);
    let error = decompress::<u8>(&bytes).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Callback);
    error.to_string()
}

#[test]
fn sizes_in_the_metadata_are_bounded() -> Result<()> {
    let mut rng = Rng(3);
    // A repeated sequence: no mode (4 bits), references (4 bits), the logarithm of the window less 1 (5 bits).
    let sequence: Vec<u32> = (0..40).map(|_| rng.next() as u32).collect();
    let items: Vec<u8> = (0..3000).flat_map(|at| sequence[at % 40].to_le_bytes()).collect();
    let chunk = blosc2::compress(&items, cparams("<u4", 8)?.blocksize(items.len()))?;
    assert_eq!(
        (chunk[HEADER + 2], chunk[HEADER + 3] & 0x1f),
        (0x20, 11),
        "a window of 4096 numbers"
    );
    let text = error(&chunk, |bytes| bytes[3] = bytes[3] & 0xe0 | 23);
    assert!(text.contains("a window of 16777216 numbers, expected at most 4096"), "{text}");

    // A dictionary (mode 4) of 2^24 - 1 entries: pcodec does not choose dictionaries by itself.
    let text = error(&chunk, |bytes| bytes[2..6].copy_from_slice(&[0xf4, 0xff, 0xff, 0x0f]));
    assert!(text.contains("a dictionary of 16777215 numbers in "), "{text}");
    let text = error(&chunk, |bytes| bytes[0] = 3);
    assert!(text.contains("version 3 of pcodec's format, expected 4"), "{text}");
    Ok(())
}
