//! This build of C-Blosc2, compared with the one in Python's wheel: the same calls on the same data, measured
//! alternately in one run. `cargo xtask bench kernels` runs it.
//!
//! A ratio is the time of the wheel divided by that of this build: 1.05 is 5 % faster. The table shows for each case
//! the median over the rounds.

use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{env, fs, process};

use blosc2_sys as sys;
use libloading::Library;

/// Bytes of the buffer: 4096 rows of 1024 floats.
const LEN: usize = 4096 * 1024 * 4;
const ROUNDS: usize = 21;
/// The number of decompressions that are timed together, since each of them is short.
const REPEATS: u32 = 8;

/// The functions of a library that the bench calls.
struct Functions {
    create_cctx: unsafe extern "C" fn(sys::blosc2_cparams) -> *mut sys::blosc2_context,
    create_dctx: unsafe extern "C" fn(sys::blosc2_dparams) -> *mut sys::blosc2_context,
    free_ctx: unsafe extern "C" fn(*mut sys::blosc2_context),
    compress: Run,
    decompress: Run,
}

type Run = unsafe extern "C" fn(
    *mut sys::blosc2_context,
    *const c_void,
    i32,
    *mut c_void,
    i32,
) -> std::ffi::c_int;

fn main() {
    let Some(folder) = env::var_os("BLOSC2_TEST_SYSTEM_LIB").map(PathBuf::from) else {
        eprintln!("BLOSC2_TEST_SYSTEM_LIB is not set: run `cargo xtask bench kernels`");
        process::exit(1);
    };
    let library = load(&folder);
    let ours = ours();
    let theirs = theirs(&library);
    let data = polynomial();

    // Cargo passes `--bench`; the other arguments are the codecs to compare.
    let wanted: Vec<String> = env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    println!("codec    filter      threads   ratio  compress  decompress  (theirs / ours)");
    let mut report = Vec::new();
    for codec in
        [sys::BLOSC_BLOSCLZ, sys::BLOSC_LZ4, sys::BLOSC_LZ4HC, sys::BLOSC_ZLIB, sys::BLOSC_ZSTD]
    {
        if !wanted.is_empty() && !wanted.iter().any(|name| name == codec_name(codec)) {
            continue;
        }
        for filter in [sys::BLOSC_SHUFFLE, sys::BLOSC_BITSHUFFLE] {
            for threads in [1, 2] {
                report.push(compare(&ours, &theirs, &data, codec, filter, threads));
            }
        }
    }
    write_report(&report);
}

/// Compares one case, prints its line, and returns it for the report.
fn compare(
    ours: &Functions,
    theirs: &Functions,
    data: &[u8],
    codec: i32,
    filter: i32,
    threads: i16,
) -> serde_json::Value {
    let mut cparams = sys::blosc2_cparams_defaults();
    cparams.compcode = codec as u8;
    cparams.typesize = 4;
    cparams.nthreads = threads;
    cparams.filters[5] = filter as u8;
    let dparams = sys::blosc2_dparams { nthreads: threads, ..sys::blosc2_dparams_defaults() };

    let mut cases = [Case::new(ours, cparams, dparams), Case::new(theirs, cparams, dparams)];
    // Both use the same memory, since its address matters as much as the code.
    let mut chunk = vec![0; LEN + sys::BLOSC2_MAX_OVERHEAD as usize];
    let mut out = vec![0; LEN];
    let (mut compress, mut decompress) = (Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        // The order alternates, and the first round is a warm-up.
        let order = if round % 2 == 0 { [0, 1] } else { [1, 0] };
        let mut times = [[Duration::ZERO; 2]; 2];
        for which in order {
            times[which] = cases[which].round(data, &mut chunk, &mut out);
        }
        if round > 0 {
            compress.push(times[1][0].as_secs_f64() / times[0][0].as_secs_f64());
            decompress.push(times[1][1].as_secs_f64() / times[0][1].as_secs_f64());
        }
    }
    let size = |case: &Case<'_>| LEN as f64 / case.chunk_len as f64;
    let (name, filter) = (codec_name(codec), filter_name(filter));
    let (compress, decompress) = (median(compress), median(decompress));
    println!(
        "{name:8} {filter:10} {threads:8}  {:6.2}  {compress:8.3}  {decompress:10.3}",
        size(&cases[0])
    );
    serde_json::json!({
        "codec": name, "filter": filter, "threads": threads,
        "ratio": size(&cases[0]), "ratio_theirs": size(&cases[1]),
        "compress": compress, "decompress": decompress,
    })
}

/// One library with its contexts.
struct Case<'a> {
    functions: &'a Functions,
    cctx: *mut sys::blosc2_context,
    dctx: *mut sys::blosc2_context,
    chunk_len: i32,
}

impl<'a> Case<'a> {
    fn new(
        functions: &'a Functions,
        cparams: sys::blosc2_cparams,
        dparams: sys::blosc2_dparams,
    ) -> Self {
        // SAFETY: the parameters are valid, and C copies them.
        let (cctx, dctx) =
            unsafe { ((functions.create_cctx)(cparams), (functions.create_dctx)(dparams)) };
        assert!(!cctx.is_null() && !dctx.is_null(), "a context");
        Self { functions, cctx, dctx, chunk_len: 0 }
    }

    /// The times of one compression and one decompression.
    fn round(&mut self, data: &[u8], chunk: &mut [u8], out: &mut [u8]) -> [Duration; 2] {
        let start = Instant::now();
        // SAFETY: the lengths are those of the buffers, and the context is for compression.
        self.chunk_len = unsafe {
            (self.functions.compress)(
                self.cctx,
                data.as_ptr().cast(),
                data.len() as i32,
                chunk.as_mut_ptr().cast(),
                chunk.len() as i32,
            )
        };
        let compress = start.elapsed();
        assert!(self.chunk_len > 0, "compression failed: {}", self.chunk_len);
        let mut len = 0;
        let start = Instant::now();
        for _ in 0..REPEATS {
            // SAFETY: as above; the context is for decompression.
            len = unsafe {
                (self.functions.decompress)(
                    self.dctx,
                    chunk.as_ptr().cast(),
                    self.chunk_len,
                    out.as_mut_ptr().cast(),
                    out.len() as i32,
                )
            };
        }
        let decompress = start.elapsed() / REPEATS;
        assert!(len as usize == LEN && out == data, "decompression failed: {len}");
        [compress, decompress]
    }
}

impl Drop for Case<'_> {
    fn drop(&mut self) {
        // SAFETY: both came from this library, and are freed once.
        unsafe {
            (self.functions.free_ctx)(self.cctx);
            (self.functions.free_ctx)(self.dctx);
        }
    }
}

fn ours() -> Functions {
    // SAFETY: nothing else runs yet.
    unsafe { sys::blosc2_init() };
    Functions {
        create_cctx: sys::blosc2_create_cctx,
        create_dctx: sys::blosc2_create_dctx,
        free_ctx: sys::blosc2_free_ctx,
        compress: sys::blosc2_compress_ctx,
        decompress: sys::blosc2_decompress_ctx,
    }
}

fn theirs(library: &Library) -> Functions {
    // SAFETY: the types are those of the headers of 3.3, which have not changed since.
    unsafe {
        let init = library.get::<unsafe extern "C" fn()>(b"blosc2_init\0").expect("blosc2_init");
        init();
        Functions {
            create_cctx: *library.get(b"blosc2_create_cctx\0").expect("blosc2_create_cctx"),
            create_dctx: *library.get(b"blosc2_create_dctx\0").expect("blosc2_create_dctx"),
            free_ctx: *library.get(b"blosc2_free_ctx\0").expect("blosc2_free_ctx"),
            compress: *library.get(b"blosc2_compress_ctx\0").expect("blosc2_compress_ctx"),
            decompress: *library.get(b"blosc2_decompress_ctx\0").expect("blosc2_decompress_ctx"),
        }
    }
}

fn load(folder: &Path) -> Library {
    let name = libloading::library_filename("blosc2");
    let path = folder.join(name);
    // SAFETY: loading C-Blosc2 runs no code of its own.
    match unsafe { Library::new(&path) } {
        Ok(library) => library,
        Err(error) => {
            eprintln!("cannot load {}: {error}", path.display());
            process::exit(1);
        }
    }
}

/// A smooth surface of floats, 4096 rows of 1024.
fn polynomial() -> Vec<u8> {
    let value = |row: usize, column: usize| {
        let (u, v) = (row as f64 / 4096.0, column as f64 / 1024.0);
        ((u * u * (3.0 - 2.0 * u)) * (1.0 + v * v) + 0.25 * v) as f32
    };
    (0..LEN / 4).flat_map(|i| value(i / 1024, i % 1024).to_ne_bytes()).collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn codec_name(codec: i32) -> &'static str {
    match codec {
        sys::BLOSC_BLOSCLZ => "blosclz",
        sys::BLOSC_LZ4 => "lz4",
        sys::BLOSC_LZ4HC => "lz4hc",
        sys::BLOSC_ZLIB => "zlib",
        _ => "zstd",
    }
}

fn filter_name(filter: i32) -> &'static str {
    if filter == sys::BLOSC_SHUFFLE { "shuffle" } else { "bitshuffle" }
}

fn write_report(cases: &[serde_json::Value]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/bench");
    let report = serde_json::json!({ "kernels": cases });
    let written = fs::create_dir_all(&folder)
        .and_then(|()| fs::write(folder.join("report.json"), format!("{report:#}\n")));
    if let Err(error) = written {
        eprintln!("cannot write the report: {error}");
        process::exit(1);
    }
    println!("written to target/bench/report.json");
}
