//! Damaged and hostile chunks: errors or other data, but no crash and no large allocation.

mod common;

use std::sync::Arc;

use blosc2::{CParams, Chunk};
use blosc2_testing::{Rng, repeats};
use common::{CODECS, FILTERS, KINDS, Kind, data, options, params};
use zarrs::array::codec::api::{BytesRepresentation, CodecError};
use zarrs::storage::byte_range::ByteRange;

const LEN: usize = 200_000;

/// The address space of this process at its peak, in bytes.
#[cfg(target_os = "linux")]
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmPeak:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

/// All reads of one chunk: the whole, and a part through a partial decoder.
fn read(kind: Kind, chunk: &[u8]) -> [Result<Vec<u8>, CodecError>; 2] {
    let coder = kind.codec(CParams::new());
    let size = BytesRepresentation::FixedSize(LEN as u64);
    let whole = coder.decode(chunk.into(), &size, &options());
    let whole = whole.map(|found| found.into_owned());
    let source: Arc<Vec<u8>> = Arc::new(chunk.to_vec());
    let decoder = coder.partial_decoder(source, &size, &options()).unwrap();
    let regions = [ByteRange::FromStart(100, Some(50)), ByteRange::FromStart(150_001, Some(30))];
    let part = decoder
        .partial_decode_many(Box::new(regions.into_iter()), &options())
        .map(|found| found.unwrap().concat());
    if let Ok(whole) = &whole {
        assert_eq!(whole.len(), LEN);
    }
    if let Ok(part) = &part {
        assert_eq!(part.len(), 80);
    }
    [whole, part]
}

fn chunks(kind: Kind) -> Vec<Vec<u8>> {
    let data = data(LEN);
    let mut chunks = Vec::new();
    for codec in CODECS {
        for filters in FILTERS {
            for level in [0, 5] {
                let params = params(codec, filters, 4).level(level).blocksize(8192);
                let encoded = kind.codec(params).encode((&data).into(), &options()).unwrap();
                chunks.push(encoded.into_owned());
            }
        }
    }
    chunks
}

// One test, because it measures the memory of the process.
#[test]
fn hostile_chunks_are_errors() {
    #[cfg(target_os = "linux")]
    let before = peak();
    let mut rng = Rng(7);
    let (mut errors, mut others) = (0, 0);
    for kind in KINDS {
        for chunk in chunks(kind) {
            assert!(read(kind, &chunk).iter().all(Result::is_ok));
            for _ in 0..repeats(400) {
                let mut chunk = chunk.clone();
                for _ in 0..1 + rng.index(4) {
                    // The header and the table of blocks are changed more often than the blocks.
                    let end = *rng.pick(&[16, 32, 140, chunk.len()]);
                    let (at, byte) = (rng.index(end), rng.next() as u8);
                    chunk[at] = *rng.pick(&[0, 1, 0x7f, 0x80, 0xff, byte]);
                }
                if rng.below(4) == 0 {
                    chunk.truncate(rng.index(chunk.len()));
                }
                for found in read(kind, &chunk) {
                    *if found.is_err() { &mut errors } else { &mut others } += 1;
                }
            }
        }
    }
    assert!(errors > 1000 && others > 100, "{errors} errors, {others} others");

    for kind in KINDS {
        // Truncated chunks.
        let chunk = &chunks(kind)[3];
        for len in [0, 1, 15, 16, 17, 31, 32, 33, 40, 1000, chunk.len() - 1] {
            let [whole, _] = read(kind, &chunk[..len]);
            assert!(whole.is_err(), "{kind:?} {len}");
        }
        // Valid chunks of other sizes.
        for len in [0, 1, LEN - 1, LEN + 1, 3 * LEN] {
            let data = data(len);
            let other = kind.codec(params(CODECS[1], &[], 1)).encode((&data).into(), &options());
            for found in read(kind, &other.unwrap()) {
                let error = found.unwrap_err();
                let expected = format!("the size of a decoded chunk is {len}, expected {LEN}");
                assert_eq!(error.to_string(), expected);
            }
        }
    }
    // Chunks of 32 bytes that declare almost 2 GiB.
    let zeros = Chunk::zeros::<u8>((1 << 31) - 33, CParams::new()).unwrap();
    for kind in KINDS {
        for found in read(kind, zeros.as_bytes()) {
            let error = found.unwrap_err().to_string();
            assert!(error.contains("the size of a decoded chunk is 2147483615"), "{error}");
        }
        // The size of items of variable length is unknown.
        let unsized_items = BytesRepresentation::UnboundedSize;
        let coder = kind.codec(CParams::new());
        let found = coder.decode(zeros.as_bytes().into(), &unsized_items, &options());
        let expected = "cannot decode a chunk of items of variable length: it declares 2147483615 \
            bytes of data in 32 bytes";
        assert_eq!(found.unwrap_err().to_string(), expected);
        let fine = coder.encode(vec![0; 70 << 20].into(), &options()).unwrap();
        assert_eq!(coder.decode(fine, &unsized_items, &options()).unwrap().len(), 70 << 20);
    }
    #[cfg(target_os = "linux")]
    {
        let grown = peak() - before;
        assert!(grown < 256 << 20, "the address space has grown by {grown} bytes");
    }
}
