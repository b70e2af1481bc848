//! Decoding in pure Rust by `blosc2-format`, compared with the C library: the same arrays, one thread, measured
//! alternately in one run. `cargo xtask bench formats` runs it.
//!
//! The table shows for each case the medians over the rounds, and the median of the ratios of the speeds.

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;
use std::{fs, process};

use blosc2::{CParams, Codec, Filter, NDArray, SChunk};
use blosc2_format::Limits;
use blosc2_format::frame::Frame;

/// The size of each of the two axes of the array, in float32 items: 64 MiB.
const SIZE: u64 = 4096;
const ROUNDS: usize = 9;

fn main() {
    let folder = std::env::temp_dir().join(format!("blosc2-bench-{}", process::id()));
    fs::create_dir_all(&folder).unwrap();
    println!("codec    filter      ratio   C, MB/s  Rust, MB/s   Rust / C");
    let mut report = Vec::new();
    for codec in [Codec::Lz4, Codec::Zstd, Codec::BloscLz, Codec::Zlib] {
        for filter in [Some(Filter::Shuffle), Some(Filter::Bitshuffle), None] {
            report.push(compare(&folder, codec, filter));
        }
    }
    fs::remove_dir_all(&folder).unwrap();
    write_report(&report);
}

/// A smooth surface.
fn values() -> Vec<f32> {
    let at = |index: u64| index as f64 / SIZE as f64;
    let row = |u: f64| (0..SIZE).map(at).map(move |v| (u * u * (3.0 - 2.0 * u), v));
    let value = |(u, v): (f64, f64)| (u * (1.0 + v * v) + 0.25 * v) as f32;
    (0..SIZE).map(at).flat_map(row).map(value).collect()
}

fn compare(folder: &Path, codec: Codec, filter: Option<Filter>) -> serde_json::Value {
    let name = filter.map_or("none", |filter| match filter {
        Filter::Shuffle => "shuffle",
        _ => "bitshuffle",
    });
    let path = folder.join(format!("{codec}_{name}.b2nd"));
    let filters: Vec<Filter> = filter.into_iter().collect();
    let params = CParams::new().codec(codec).filters(&filters);
    let builder = NDArray::builder().cparams(params).target(&path);
    builder.from_slice(&values(), [SIZE, SIZE]).unwrap();
    let frame = fs::read(&path).unwrap();
    let in_c = SChunk::open(&path).unwrap();
    let mut in_rust = Frame::open(&frame[..], &Limits::default()).unwrap();

    let nbytes = in_c.nbytes();
    let mut times = Vec::new();
    let (mut from_c, mut from_rust) = (vec![0u8; in_c.chunksize()], Vec::new());
    for round in 0..=ROUNDS {
        // The order alternates, and the first round is a warm-up.
        let mut both = [0.0; 2];
        for which in if round % 2 == 0 { [0, 1] } else { [1, 0] } {
            let start = Instant::now();
            for number in 0..in_c.nchunks() {
                if which == 0 {
                    in_c.decompress_chunk_into(number, black_box(&mut from_c)).unwrap();
                } else {
                    in_rust.decode_chunk(number as u64, black_box(&mut from_rust)).unwrap();
                }
            }
            both[which] = start.elapsed().as_secs_f64();
        }
        assert!(from_c == from_rust, "other data");
        if round > 0 {
            times.push(both);
        }
    }
    let median_of = |value: &dyn Fn(&[f64; 2]) -> f64| median(times.iter().map(value).collect());
    let speed = |which: usize| median_of(&|both| nbytes as f64 / both[which] / 1e6);
    let (c, rust, ratio) = (speed(0), speed(1), median_of(&|both| both[0] / both[1]));
    let codec = codec.to_string();
    let compressed = nbytes as f64 / frame.len() as f64;
    println!("{codec:8} {name:10} {compressed:6.2} {c:9.0} {rust:11.0} {ratio:10.3}");
    serde_json::json!({
        "codec": codec, "filter": name, "bytes": nbytes, "compressed": frame.len(),
        "c_mb_s": c, "rust_mb_s": rust, "ratio": ratio,
    })
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn write_report(cases: &[serde_json::Value]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/bench");
    let report = serde_json::json!({ "formats": cases });
    let written = fs::create_dir_all(&folder)
        .and_then(|()| fs::write(folder.join("formats.json"), format!("{report:#}\n")));
    if let Err(error) = written {
        eprintln!("cannot write the report: {error}");
        process::exit(1);
    }
    println!("written to target/bench/formats.json");
}
