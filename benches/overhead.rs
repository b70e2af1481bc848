//! The overhead of the safe API: its functions, compared with the equivalent C calls on the same library and data,
//! measured alternately in one run. `cargo xtask bench overhead` runs it.
//!
//! The table shows for each case the medians over the rounds, and the median of the differences.

use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, process, ptr};

use blosc2::{CParams, Codec, SChunk};
use blosc2_sys as sys;

const SIZES: [usize; 2] = [4 << 10, 1 << 20];
const ROUNDS: usize = 101;
/// Calls are repeated until a measurement takes about this long.
const LONG_ENOUGH: Duration = Duration::from_millis(2);

fn main() {
    // Starts the library, as the crate does.
    assert!(Codec::Lz4.is_available());
    println!("call           codec     bytes    C, µs  ours, µs  difference, µs   ours / C");
    let mut report = Vec::new();
    for len in SIZES {
        let data: Vec<i32> = (0..len as i32 / 4).map(|at| (at / 3) ^ (at % 17)).collect();
        for codec in [Codec::BloscLz, Codec::Lz4, Codec::Zstd] {
            let params = CParams::new().codec(codec);
            report.extend(buffers(&data, &params));
            report.extend(super_chunks(&data, &params));
        }
    }
    write_report(&report);
}

/// One buffer, with a new context and a new target for each call.
fn buffers(data: &[i32], params: &CParams) -> [serde_json::Value; 2] {
    let chunk = blosc2::compress(data, params).unwrap();
    assert!(chunk == c_compress(data, c_params(params)), "other chunks");
    let decompressed = c_decompress(&chunk);
    assert!(decompressed == data, "other data");
    let size = (params.codec, size_of_val(data));
    let compress = compare(
        "compress",
        &size,
        || drop(black_box(c_compress(black_box(data), c_params(params)))),
        || drop(black_box(blosc2::compress(black_box(data), params).unwrap())),
    );
    let decompress = compare(
        "decompress",
        &size,
        || drop(black_box(c_decompress(black_box(&chunk)))),
        || drop(black_box(blosc2::decompress::<i32>(black_box(&chunk)).unwrap())),
    );
    [compress, decompress]
}

/// Chunks of super-chunks in memory, which keep their contexts.
fn super_chunks(data: &[i32], params: &CParams) -> [serde_json::Value; 2] {
    let size = (params.codec, size_of_val(data));
    let new = || SChunk::in_memory::<i32>(params).unwrap();
    let c_new = || CSuperChunk::new(c_params(params));
    let (mut schunk, mut c_schunk) = (new(), c_new());
    // So that the chunks do not fill the memory.
    const MANY: usize = 256;
    let append = compare(
        "append",
        &size,
        || {
            if c_schunk.append(data) == MANY {
                c_schunk = c_new();
            }
        },
        || {
            if schunk.append(data).unwrap() == MANY {
                schunk = new();
            }
        },
    );
    schunk.append(data).unwrap();
    c_schunk.append(data);
    let (mut target, mut c_target) = (data.to_vec(), data.to_vec());
    let read = compare(
        "decompress_chunk_into",
        &size,
        || c_schunk.read(0, black_box(&mut c_target)),
        || schunk.decompress_chunk_into(0, black_box(&mut target)).unwrap(),
    );
    assert!(target == data && c_target == data, "other data");
    [append, read]
}

/// Times both, prints the line, and returns it for the report.
fn compare(
    name: &str,
    (codec, len): &(Codec, usize),
    mut c: impl FnMut(),
    mut ours: impl FnMut(),
) -> serde_json::Value {
    let start = Instant::now();
    c();
    let once = start.elapsed().max(Duration::from_nanos(100));
    let count = (LONG_ENOUGH.as_nanos() / once.as_nanos()).clamp(1, 10_000) as u32;
    let mut time = |which: usize| {
        let start = Instant::now();
        for _ in 0..count {
            if which == 0 { c() } else { ours() }
        }
        start.elapsed().as_secs_f64() * 1e6 / f64::from(count)
    };
    let mut times = Vec::new();
    for round in 0..=ROUNDS {
        // The order alternates, and the first round is a warm-up.
        let mut both = [0.0; 2];
        for which in if round % 2 == 0 { [0, 1] } else { [1, 0] } {
            both[which] = time(which);
        }
        if round > 0 {
            times.push(both);
        }
    }
    let median_of = |value: fn(&[f64; 2]) -> f64| median(times.iter().map(value).collect());
    let (c, ours) = (median_of(|both| both[0]), median_of(|both| both[1]));
    let difference = median_of(|both| both[1] - both[0]);
    let ratio = median_of(|both| both[1] / both[0]);
    let codec = codec.to_string();
    println!(
        "{name:12}  {codec:>8}  {len:8}  {c:7.2}  {ours:8.2}  {difference:14.3}   {ratio:8.3}"
    );
    serde_json::json!({
        "call": name, "codec": codec, "bytes": len,
        "c_us": c, "ours_us": ours, "difference_us": difference, "ratio": ratio,
    })
}

/// The C parameters that the crate passes for these parameters.
fn c_params(params: &CParams) -> sys::blosc2_cparams {
    let mut c = sys::blosc2_cparams_defaults();
    c.compcode = params.codec.code();
    c.typesize = 4;
    c.splitmode = sys::BLOSC_AUTO_SPLIT;
    c
}

fn c_compress(data: &[i32], params: sys::blosc2_cparams) -> Vec<u8> {
    let len = size_of_val(data);
    let room = len + sys::BLOSC2_MAX_OVERHEAD as usize;
    let mut chunk: Vec<u8> = Vec::with_capacity(room);
    // SAFETY: the lengths are those of the buffers, the parameters valid, and the context is freed
    // after its use. C has written as many bytes as it returns.
    unsafe {
        let context = sys::blosc2_create_cctx(params);
        let (from, to) = (data.as_ptr().cast(), chunk.as_mut_ptr().cast());
        let written = sys::blosc2_compress_ctx(context, from, len as i32, to, room as i32);
        sys::blosc2_free_ctx(context);
        assert!(written > 0, "compression failed: {written}");
        chunk.set_len(written as usize);
    }
    chunk
}

fn c_decompress(chunk: &[u8]) -> Vec<i32> {
    let (mut nbytes, mut cbytes, mut blocksize) = (0, 0, 0);
    // SAFETY: the chunk is one of ours; the context is freed after its use. C has written as many
    // bytes as it returns.
    unsafe {
        let at = chunk.as_ptr().cast();
        sys::blosc2_cbuffer_sizes(at, &mut nbytes, &mut cbytes, &mut blocksize);
        let mut items: Vec<i32> = Vec::with_capacity(nbytes as usize / size_of::<i32>());
        let context = sys::blosc2_create_dctx(sys::blosc2_dparams_defaults());
        let to = items.as_mut_ptr().cast();
        let written = sys::blosc2_decompress_ctx(context, at, cbytes, to, nbytes);
        sys::blosc2_free_ctx(context);
        assert!(written == nbytes, "decompression failed: {written}");
        items.set_len(nbytes as usize / size_of::<i32>());
        items
    }
}

/// A C super-chunk in memory.
struct CSuperChunk(*mut sys::blosc2_schunk);

impl CSuperChunk {
    fn new(mut cparams: sys::blosc2_cparams) -> Self {
        let mut dparams = sys::blosc2_dparams_defaults();
        let mut storage = sys::blosc2_storage {
            contiguous: false,
            urlpath: ptr::null_mut(),
            cparams: &mut cparams,
            dparams: &mut dparams,
            io: ptr::null_mut(),
        };
        // SAFETY: C copies what the storage points to.
        let schunk = unsafe { sys::blosc2_schunk_new(&mut storage) };
        assert!(!schunk.is_null(), "a super-chunk");
        Self(schunk)
    }

    fn append(&mut self, data: &[i32]) -> usize {
        // SAFETY: the length is that of the data, which C only reads.
        let nchunks = unsafe {
            let len = size_of_val(data) as i32;
            sys::blosc2_schunk_append_buffer(self.0, data.as_ptr().cast(), len)
        };
        assert!(nchunks > 0, "no chunk was appended: {nchunks}");
        nchunks as usize
    }

    fn read(&mut self, index: i64, target: &mut [i32]) {
        let len = size_of_val(target) as i32;
        // SAFETY: the length is that of the target.
        let read = unsafe {
            sys::blosc2_schunk_decompress_chunk(self.0, index, target.as_mut_ptr().cast(), len)
        };
        assert!(read == len, "no chunk was read: {read}");
    }
}

impl Drop for CSuperChunk {
    fn drop(&mut self) {
        // SAFETY: it is freed once.
        unsafe { sys::blosc2_schunk_free(self.0) };
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn write_report(cases: &[serde_json::Value]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/bench");
    let report = serde_json::json!({ "overhead": cases });
    let written = fs::create_dir_all(&folder)
        .and_then(|()| fs::write(folder.join("overhead.json"), format!("{report:#}\n")));
    if let Err(error) = written {
        eprintln!("cannot write the report: {error}");
        process::exit(1);
    }
    println!("written to target/bench/overhead.json");
}
