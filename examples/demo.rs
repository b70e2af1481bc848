//! Reads files that C-Blosc2 and Python wrote, and compares codecs and filters on 67 MB of data.
//! `cargo xtask demo` runs it.
//!
//! Arguments: the directory of the C-Blosc2 sources, which contains the test files, and the path of the file to write.

use std::error::Error;
use std::f32::consts::{PI, TAU};
use std::path::{Path, PathBuf};
use std::time::Instant;
use std::{env, fs};

use blosc2::{CParams, Codec, DParams, Filter, NDArray, OpenOptions, SChunk, Threads};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let argument = |at, default: &str| env::args().nth(at).unwrap_or_else(|| default.to_owned());
    let sources = PathBuf::from(argument(1, "c-blosc2"));
    let target = PathBuf::from(argument(2, "temperatures.b2nd"));
    read_files(&sources)?;
    let array = compare_codecs()?;
    write_and_read(&array, &target)
}

/// Reads every chunk of the test files of C-Blosc2.
fn read_files(sources: &Path) -> Result<()> {
    println!("Files that other programs wrote, from {}:\n", sources.display());
    println!(
        "  {:38} {:>20} {:>8} {:>10} {:>6}",
        "file", "shape or chunks", "typesize", "bytes", "ratio"
    );
    for folder in ["plugins/test_data", "compat", "tests/fuzz/corpus"] {
        let mut files: Vec<PathBuf> = fs::read_dir(sources.join(folder))?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<std::result::Result<_, _>>()?;
        files.retain(|path| path.extension().is_some_and(|end| end == "b2nd" || end == "b2frame"));
        files.sort();
        for path in files {
            let schunk = SChunk::open(&path)?;
            let mut read = 0;
            for chunk in schunk.iter_chunks::<u8>() {
                read += chunk?.len() as u64;
            }
            assert_eq!(read, schunk.nbytes(), "{}", path.display());
            let (typesize, cbytes) = (schunk.typesize(), schunk.cbytes().max(1));
            let shape = match NDArray::from_schunk(schunk) {
                Ok(array) => format!("{:?}", array.shape()),
                Err(_) => format!("{} chunks", SChunk::open(&path)?.nchunks()),
            };
            println!(
                "  {:38} {shape:>20} {typesize:8} {read:10} {:6.1}",
                path.file_name().unwrap_or_default().to_string_lossy(),
                read as f64 / cbytes as f64,
            );
        }
    }
    Ok(())
}

/// Returns the temperature of a day at a grid point, rounded to a hundredth of a degree.
fn temperatures([day, latitude, longitude]: [u64; 3]) -> f32 {
    let season = (day as f32 / 365.0 * TAU).cos();
    let zone = (latitude as f32 / 180.0 * PI).sin();
    // The weather looks random, but depends only on the day and the grid point.
    let weather = (day * 7919 + latitude * 104_729 + longitude * 1_299_709) % 1009;
    let celsius = -20.0 + 45.0 * zone - 10.0 * season * (1.0 - zone) + weather as f32 / 500.0;
    (celsius * 100.0).round() / 100.0
}

/// Compresses an array with several codecs and filters, and checks that each copy contains the same items.
fn compare_codecs() -> Result<NDArray> {
    let shape = [365, 180, 256];
    let threads = Threads::auto();
    let original = NDArray::builder()
        .cparams(CParams::new().threads(threads))
        .options(OpenOptions::new().dparams(DParams::new().threads(threads)))
        .from_fn(shape, temperatures)?;
    let items: Vec<f32> = original.read(..)?;
    println!(
        "\nTemperatures, shape {shape:?}, {} MB, chunk shape {:?}, {} threads:\n",
        original.info().nbytes / 1_000_000,
        original.chunk_shape(),
        threads.count(),
    );
    println!(
        "  {:8} {:>5} {:28} {:>6} {:>12} {:>12}",
        "codec", "level", "filters", "ratio", "write MB/s", "read MB/s"
    );
    let ways: [(Codec, u8, &[Filter]); 7] = [
        (Codec::BloscLz, 5, &[Filter::Shuffle]),
        (Codec::Lz4, 5, &[]),
        (Codec::Lz4, 5, &[Filter::Shuffle]),
        (Codec::Lz4, 5, &[Filter::Bitshuffle]),
        (Codec::Zstd, 1, &[Filter::Shuffle]),
        (Codec::Zstd, 5, &[Filter::Shuffle]),
        (Codec::Zstd, 5, &[Filter::Shuffle, Filter::Bytedelta(0)]),
    ];
    for (codec, level, filters) in ways {
        let params = CParams::new().codec(codec).level(level).filters(filters).threads(threads);
        let builder = NDArray::builder()
            .cparams(params)
            .options(OpenOptions::new().dparams(original.info().dparams));
        let start = Instant::now();
        let array = builder.from_slice(&items, shape)?;
        let write = start.elapsed().as_secs_f64();
        let start = Instant::now();
        let read: Vec<f32> = array.read(..)?;
        let seconds = start.elapsed().as_secs_f64();
        assert!(read == items, "{codec} with {filters:?} returns other items");
        let names: Vec<String> = filters.iter().map(ToString::to_string).collect();
        let megabytes = original.info().nbytes as f64 / 1e6;
        println!(
            "  {:8} {level:5} {:28} {:6.1} {:12.0} {:12.0}",
            codec.to_string(),
            names.join(", "),
            original.info().nbytes as f64 / array.schunk().cbytes() as f64,
            megabytes / write,
            megabytes / seconds,
        );
    }
    Ok(original)
}

/// Saves the array, reads a part of the file, and prints the next steps.
fn write_and_read(array: &NDArray, target: &Path) -> Result<()> {
    array.save(target)?;
    let opened = NDArray::open(target)?;
    let start = Instant::now();
    let january: Vec<f32> = opened.read((..31, 90, ..))?;
    println!(
        "\n{} has {} bytes. {} items of it were read in {:.1?}.",
        target.display(),
        fs::metadata(target)?.len(),
        january.len(),
        start.elapsed(),
    );
    println!("\nWhat next:");
    for (command, purpose) in [
        ("cargo run -p blosc2-cli -- info FILE", "describe that file, or yours"),
        ("cargo doc -p cblosc2 --open", "the guide and the reference"),
        ("cargo run -p cblosc2 --example quickstart", "the first program of the README"),
        (
            "python3 -c 'import blosc2; print(blosc2.open(\"FILE\").info)'",
            "the same file in Python",
        ),
    ] {
        println!("  {command:62} {purpose}");
    }
    Ok(())
}
