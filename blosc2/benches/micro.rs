//! Micro-benchmarks of reads and computations: `cargo bench -p cblosc2`. An argument selects benchmarks by a part of
//! their names, for example `cargo bench -p cblosc2 -- "read/one item"`.
//!
//! Each group contains calls on the same data, so that their times can be compared. `cargo xtask bench` compares this
//! crate with other libraries.

use std::cell::LazyCell;
use std::hint::black_box;

use blosc2::{
    CParams, ChunkRef, Codec, DParams, Decompressor, Filter, NDArray, OpenOptions, SChunk,
    Selection, Threads,
};
use blosc2_sys as sys;
use criterion::{Criterion, criterion_group, criterion_main};

const CODECS: [Codec; 2] = [Codec::BloscLz, Codec::Lz4];

/// Chunks of 4 KiB: the cost of a call matters more than the cost of the codec.
fn chunks(criterion: &mut Criterion) {
    let data: Vec<i32> = (0..1024).map(|at| (at / 3) ^ (at % 17)).collect();
    let mut target = vec![0i32; data.len()];
    for codec in CODECS {
        let mut group = criterion.benchmark_group(format!("chunk of 4 KiB, {codec}"));
        let params = CParams::new().codec(codec).level(5);
        let bytes = blosc2::compress(&data, &params).unwrap();

        group.bench_function("compress", |bench| {
            bench.iter(|| blosc2::compress(black_box(&data), &params).unwrap());
        });
        group.bench_function("decompress", |bench| {
            bench.iter(|| blosc2::decompress::<i32>(black_box(&bytes)).unwrap());
        });
        let chunk = ChunkRef::new(&bytes).unwrap();
        let mut decompressor = Decompressor::new(DParams::new()).unwrap();
        group.bench_function("Decompressor::decompress_into", |bench| {
            bench.iter(|| decompressor.decompress_into(black_box(&chunk), &mut target).unwrap());
        });
        let mut schunk = SChunk::in_memory::<i32>(&params).unwrap();
        schunk.append(&data).unwrap();
        group.bench_function("SChunk::decompress_chunk_into", |bench| {
            bench.iter(|| schunk.decompress_chunk_into(0, black_box(&mut target)).unwrap());
        });
        let mut context = C::new();
        group.bench_function("C, with a context", |bench| {
            bench.iter(|| context.decompress(black_box(&bytes), &mut target));
        });
        group.bench_function("C, with a new context", |bench| {
            bench.iter(|| C::new().decompress(black_box(&bytes), &mut target));
        });
        group.finish();
    }
}

/// A context of C for decompression.
struct C(*mut sys::blosc2_context);

impl C {
    fn new() -> Self {
        // SAFETY: the parameters are defaults.
        Self(unsafe { sys::blosc2_create_dctx(sys::blosc2_dparams_defaults()) })
    }

    fn decompress(&mut self, chunk: &[u8], target: &mut [i32]) {
        let (len, room) = (chunk.len() as i32, size_of_val(target) as i32);
        // SAFETY: the lengths are those of the slices.
        let written = unsafe {
            let (from, to) = (chunk.as_ptr().cast(), target.as_mut_ptr().cast());
            sys::blosc2_decompress_ctx(self.0, from, len, to, room)
        };
        assert_eq!(written, room);
    }
}

impl Drop for C {
    fn drop(&mut self) {
        // SAFETY: the context is freed once.
        unsafe { sys::blosc2_free_ctx(self.0) };
    }
}

/// The number of rows and of columns of the arrays.
const SIDE: u64 = 2048;

/// A smooth surface of 2048 x 2048 items, in blocks of 8 x 2048 items (64 KiB).
fn array(params: CParams, threads: usize) -> NDArray {
    let side = SIDE as f32;
    let items: Vec<f32> = (0..SIDE * SIDE)
        .map(|at| {
            let (u, v) = ((at / SIDE) as f32 / side, (at % SIDE) as f32 / side);
            u * u * (3.0 - 2.0 * u) * (1.0 + v * v) + 0.25 * v
        })
        .collect();
    let builder = NDArray::builder().chunk_shape([256, SIDE]).block_shape([8, SIDE]);
    let builder = builder
        .cparams(params)
        .options(OpenOptions::new().dparams(DParams::new().threads(Threads::new(threads))));
    builder.from_slice(&items, [SIDE, SIDE]).unwrap()
}

/// Reads of parts of an array with one thread.
fn reads(criterion: &mut Criterion) {
    let cases = [
        ("blosclz", CParams::new().codec(Codec::BloscLz)),
        ("lz4", CParams::new().codec(Codec::Lz4)),
        ("zstd", CParams::new().codec(Codec::Zstd)),
        ("lz4, bitshuffle", CParams::new().codec(Codec::Lz4).filters(&[Filter::Bitshuffle])),
    ];
    for (name, params) in cases {
        // Created by the first benchmark that runs.
        let array = LazyCell::new(|| array(params, 1));
        // A linear congruential generator, so that each call needs another block.
        let mut state = 1u64;
        let mut next = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % SIDE
        };
        let mut group = criterion.benchmark_group(format!("read, {name}"));
        group.bench_function("one item", |bench| {
            bench.iter(|| array.item::<f32>(&[next() as i64, next() as i64]).unwrap());
        });
        group.bench_function("1 x 64 items", |bench| {
            bench.iter(|| {
                let (row, column) = (next(), next().min(SIDE - 64));
                array.read::<Vec<f32>>([row..row + 1, column..column + 64]).unwrap()
            });
        });
        let points: Vec<[i64; 2]> = (0..100).map(|_| [next() as i64, next() as i64]).collect();
        group.bench_function("100 points", |bench| {
            bench.iter(|| array.read::<Vec<f32>>(Selection::points(&points)).unwrap());
        });
        let rows: Vec<i64> = (0..8).map(|at| at * 251).collect();
        let columns: Vec<i64> = (0..252).map(|at| at * 8).collect();
        group.bench_function("8 rows x 252 columns", |bench| {
            bench.iter(|| array.read::<Vec<f32>>((rows.clone(), columns.clone())).unwrap());
        });
        let mut all = vec![0f32; (SIDE * SIDE) as usize];
        group.sample_size(20).bench_function("all items", |bench| {
            bench.iter(|| array.read_into(.., &mut all).unwrap());
        });
        group.finish();
    }
}

/// Computations with two threads, to be compared with a read of all items.
fn computations(criterion: &mut Criterion) {
    let array = LazyCell::new(|| array(CParams::new().codec(Codec::Lz4), 2));
    let mut group = criterion.benchmark_group("compute, lz4, 2 threads");
    let mut all = vec![0f32; (SIDE * SIDE) as usize];
    group.sample_size(20);
    group.bench_function("read all items", |bench| {
        bench.iter(|| array.read_into(.., &mut all).unwrap());
    });
    group.bench_function("sum", |bench| bench.iter(|| array.lazy::<f32>().sum().unwrap()));
    group.bench_function("min", |bench| bench.iter(|| array.lazy::<f32>().min().unwrap()));
    group.bench_function("argmax", |bench| bench.iter(|| array.lazy::<f32>().argmax().unwrap()));
    group.bench_function("count_nonzero", |bench| {
        bench.iter(|| array.lazy::<f32>().count_nonzero().unwrap())
    });
    for axis in [0, 1] {
        group.bench_function(format!("mean over axis {axis}"), |bench| {
            bench.iter(|| array.lazy::<f32>().axes([axis]).mean().unwrap());
        });
    }
    group.bench_function("var", |bench| bench.iter(|| array.lazy::<f32>().var(0).unwrap()));
    group.bench_function("all", |bench| {
        bench.iter(|| array.lazy::<f32>().map(|item| item >= 0.0).all().unwrap());
    });
    let edges: Vec<f64> = (0..=100).map(|at| f64::from(at) * 0.03).collect();
    group.bench_function("describe, histogram of 100 bins", |bench| {
        bench.iter(|| array.lazy::<f32>().describe(&edges).unwrap());
    });
    group.bench_function("describe", |bench| {
        bench.iter(|| array.lazy::<f32>().describe(&[]).unwrap())
    });
    group.finish();
}

/// Appends of one chunk to files of different numbers of chunks, with and without an open handle.
fn appends(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("append a chunk of 128 bytes");
    let folder = tempfile::tempdir().unwrap();
    let params = CParams::new().codec(Codec::Lz4);
    for count in [100, 10_000, 1_000_000] {
        let items: Vec<u8> =
            (0..128 * count).map(|at: usize| ((at * 40_503) >> 13) as u8).collect();
        let builder = NDArray::builder().chunk_shape([128]).block_shape([128]).cparams(&params);
        let path = folder.path().join(format!("{count}.b2nd"));
        let array = builder.target(&path).from_slice(&items, [items.len() as u64]).unwrap();
        drop(array);
        let chunk = [7u8; 128];
        group.bench_function(format!("array of {count} chunks"), |bench| {
            let mut array = NDArray::open_rw(&path).unwrap();
            bench.iter(|| array.append(0, black_box(&chunk)).unwrap());
        });
        group.bench_function(format!("array of {count} chunks, with opening"), |bench| {
            bench.iter(|| NDArray::open_rw(&path).unwrap().append(0, black_box(&chunk)).unwrap());
        });
        let path = folder.path().join(format!("{count}.b2frame"));
        let mut schunk = SChunk::create::<u8>(&path, &params).unwrap();
        let created = schunk
            .transaction(|schunk| items.chunks(128).try_for_each(|chunk| schunk.append(chunk)));
        created.unwrap();
        drop(schunk);
        group.bench_function(format!("super-chunk of {count} chunks"), |bench| {
            let mut schunk = SChunk::open_rw(&path).unwrap();
            bench.iter(|| schunk.append(black_box(&chunk)).unwrap());
        });
        group.bench_function(format!("super-chunk of {count} chunks, with opening"), |bench| {
            bench.iter(|| SChunk::open_rw(&path).unwrap().append(black_box(&chunk)).unwrap());
        });
    }
}

criterion_group!(benches, chunks, reads, computations, appends);
criterion_main!(benches);
