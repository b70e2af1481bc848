//! Compares the codecs with the codec `blosc` of zarrs, which is C-Blosc: `cargo bench --features zarrs-blosc`.
//!
//! Prints times and ratios; a ratio above 1 means that this crate is faster. Encoding and decoding take a chunk of
//! 8 MB. A part is 1 % of its rows, read from a store in memory.

use std::sync::Arc;
use std::time::{Duration, Instant};

use blosc2::{CParams, Codec, Filter};
use blosc2_zarrs::{Blosc2Codec, BloscCodec};
use zarrs::array::codec::BloscCodec as Theirs;
use zarrs::array::codec::api::{BytesRepresentation, BytesToBytesCodecTraits, CodecOptions};
use zarrs::array::{Array, ArrayBuilder, ArraySubset, data_type};
use zarrs::metadata_ext::codec::blosc::{BloscCompressor, BloscShuffleMode};
use zarrs::storage::store::MemoryStore;

const ROWS: usize = 2000;
const COLUMNS: usize = 1000;

/// Numbers that increase, with noise in the low bits.
fn items() -> Vec<f32> {
    let mut rng = blosc2_testing::Rng(1);
    (0..ROWS * COLUMNS).map(|i| (i / 100) as f32 + rng.below(64) as f32).collect()
}

/// The shortest of several runs of each function, in turns, so that a change of the machine's speed affects all.
fn times<const N: usize>(mut runs: [&mut dyn FnMut(); N]) -> [Duration; N] {
    let mut best = [Duration::MAX; N];
    for _ in 0..25 {
        for (run, best) in runs.iter_mut().zip(&mut best) {
            let start = Instant::now();
            run();
            *best = start.elapsed().min(*best);
        }
    }
    best
}

fn print(what: &str, [theirs, blosc, blosc2]: [Duration; 3]) {
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let ratio = |time: Duration| theirs.as_secs_f64() / time.as_secs_f64();
    println!(
        "{what:<28} zarrs {:>8.3} ms | blosc {:>8.3} ms, {:>5.2} | blosc2 {:>8.3} ms, {:>5.2}",
        ms(theirs),
        ms(blosc),
        ratio(blosc),
        ms(blosc2),
        ratio(blosc2),
    );
}

fn array(codec: &Arc<dyn BytesToBytesCodecTraits>, items: &[f32]) -> Array<MemoryStore> {
    let shape = vec![ROWS as u64, COLUMNS as u64];
    let array = ArrayBuilder::new(shape.clone(), shape, data_type::float32(), 0f32)
        .bytes_to_bytes_codecs(vec![codec.clone()])
        .build(Arc::new(MemoryStore::new()), "/a")
        .unwrap();
    array.store_chunk(&[0, 0], items).unwrap();
    array
}

fn main() {
    let items = items();
    let bytes: Vec<u8> = items.iter().flat_map(|item| item.to_le_bytes()).collect();
    let size = BytesRepresentation::FixedSize(bytes.len() as u64);
    let options = CodecOptions::default();
    let codecs = [
        (Codec::BloscLz, BloscCompressor::BloscLZ),
        (Codec::Lz4, BloscCompressor::LZ4),
        (Codec::Zlib, BloscCompressor::Zlib),
        (Codec::Zstd, BloscCompressor::Zstd),
    ];
    let filters: [(&[Filter], BloscShuffleMode); 2] = [
        (&[Filter::Shuffle], BloscShuffleMode::Shuffle),
        (&[Filter::Bitshuffle], BloscShuffleMode::BitShuffle),
    ];
    for (codec, compressor) in codecs {
        for (filters, shuffle) in filters {
            let params = CParams::new().codec(codec).filters(filters).typesize(4);
            let level = 5.try_into().unwrap();
            let theirs = Theirs::new(compressor, level, None, shuffle, Some(4)).unwrap();
            let three: [Arc<dyn BytesToBytesCodecTraits>; 3] = [
                Arc::new(theirs),
                Arc::new(BloscCodec::new(params.clone()).unwrap()),
                Arc::new(Blosc2Codec::new(params).unwrap()),
            ];
            let name = format!("{codec} {}", filters[0]);
            let encode = |which: usize| three[which].encode((&bytes).into(), &options).unwrap();
            let encoded = [0, 1, 2].map(|which| encode(which).into_owned());
            let sizes = encoded.each_ref().map(|chunk| bytes.len() as f64 / chunk.len() as f64);
            let [theirs, blosc, blosc2] = sizes;
            println!("\n{name}: compression {theirs:.2} | {blosc:.2} | {blosc2:.2}");

            let run = |which: usize| move || drop(std::hint::black_box(encode(which)));
            let found = times([&mut run(0), &mut run(1), &mut run(2)]);
            print("encode", found);

            let decode = |which: usize| {
                let bytes = encoded[which].as_slice().into();
                drop(std::hint::black_box(three[which].decode(bytes, &size, &options).unwrap()));
            };
            let run = |which: usize| move || decode(which);
            print("decode", times([&mut run(0), &mut run(1), &mut run(2)]));

            let arrays = three.each_ref().map(|codec| array(codec, &items));
            for (what, rows, columns) in [
                ("20 rows (1 %)", 1000..1020, 0..COLUMNS as u64),
                ("100 x 200 items (1 %)", 1000..1100, 300..500),
            ] {
                let subset = ArraySubset::new_with_ranges(&[rows, columns]);
                let read = |which: usize| {
                    let found: Vec<f32> = arrays[which].retrieve_array_subset(&subset).unwrap();
                    assert_eq!(found.len(), 20_000);
                };
                let run = |which: usize| move || read(which);
                print(what, times([&mut run(0), &mut run(1), &mut run(2)]));
            }
        }
    }
}
