//! The main job on real files: the arrays and frames that come with C-Blosc2, none of which this
//! library wrote. Says what each is, reads parts of it, compresses it anew in several ways, reads
//! that back and compares. `cargo xtask demo` runs it.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use blosc2::{CParams, Codec, Filter, NDArray, SChunk};

fn main() -> Result<()> {
    let sources = PathBuf::from(env::args().nth(1).unwrap_or_else(|| "c-blosc2".to_owned()));
    let mut arrays = Vec::new();
    for (folder, suffix) in
        [("plugins/test_data", "b2nd"), ("compat", "b2frame"), ("tests/fuzz/corpus", "b2frame")]
    {
        let files = files_in(&sources.join(folder), suffix)?;
        ensure!(!files.is_empty(), "there are no .{suffix} files in {folder}");
        for path in files {
            if suffix == "b2nd" {
                arrays.push(show_array(&path)?);
            } else {
                show_frame(&path)?;
            }
        }
    }
    let folder = tempfile::tempdir()?;
    for array in &arrays {
        recompress(array, folder.path())?;
    }
    println!("\nEverything was read back and is equal.");
    Ok(())
}

fn files_in(folder: &Path, suffix: &str) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut files: Vec<PathBuf> =
        entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    files.retain(|path| path.extension().is_some_and(|found| found == suffix));
    files.sort();
    Ok(files)
}

/// Says what an array is, and reads two parts of it.
fn show_array(path: &Path) -> Result<NDArray> {
    let array = NDArray::open(path)?;
    println!(
        "{}: array of shape {:?}, chunks {:?}, blocks {:?}, dtype {}, {} bytes an item, {}",
        name(path),
        array.shape(),
        array.chunks(),
        array.blocks(),
        array.dtype_str().unwrap_or("missing"),
        array.typesize(),
        codec_and_ratio(array.schunk()),
    );
    let first: Vec<_> = array.shape().iter().map(|&size| 0..size.min(1)).collect();
    println!("  first item {:02x?}", array.bytes().read(&first)?);
    let half: Vec<_> = array.shape().iter().map(|&size| size / 4..size - size / 4).collect();
    let start = Instant::now();
    let bytes = array.bytes().read(&half)?;
    println!("  {half:?} is {} bytes, read in {:.1?}", bytes.len(), start.elapsed());
    Ok(array)
}

/// Says what a frame is, and reads all its chunks.
fn show_frame(path: &Path) -> Result<()> {
    let schunk = SChunk::open(path)?;
    let mut len = 0;
    for chunk in schunk.iter_chunks::<u8>() {
        len += chunk?.len() as u64;
    }
    ensure!(len == schunk.nbytes(), "{} holds {len} bytes, not {}", name(path), schunk.nbytes());
    println!(
        "{}: {} chunks, {} bytes an item, {len} bytes, {}",
        name(path),
        schunk.nchunks(),
        schunk.typesize(),
        codec_and_ratio(&schunk),
    );
    Ok(())
}

fn codec_and_ratio(schunk: &SChunk) -> String {
    let params = schunk.cparams();
    let filters: Vec<String> = params.filters.iter().map(ToString::to_string).collect();
    let ratio = schunk.nbytes() as f64 / schunk.cbytes().max(1) as f64;
    format!("{} level {} [{}], ratio {ratio:.2}", params.codec, params.level, filters.join(", "))
}

/// Compresses an array in several ways, saves it, and compares what is read back from memory and file.
fn recompress(array: &NDArray, folder: &Path) -> Result<()> {
    let path = array.schunk().path().context("a file")?.to_owned();
    let original = array.bytes().read(..)?;
    println!("\n{}, {} bytes, one thread", name(&path), original.len());
    println!("  codec    filters                      ratio   write MB/s   read MB/s");
    let ways: [(Codec, &[Filter]); 8] = [
        (Codec::BloscLz, &[Filter::Shuffle]),
        (Codec::Lz4, &[Filter::Shuffle]),
        (Codec::Lz4, &[Filter::Bitshuffle]),
        (Codec::Lz4Hc, &[Filter::Shuffle]),
        (Codec::Zlib, &[Filter::Shuffle]),
        (Codec::Zstd, &[]),
        (Codec::Zstd, &[Filter::Shuffle]),
        (Codec::Zstd, &[Filter::Delta, Filter::Shuffle, Filter::ByteDelta(0)]),
    ];
    for (number, (codec, filters)) in ways.into_iter().enumerate() {
        let params = CParams::new().codec(codec).filters(filters);
        let write = best(|| NDArray::builder().cparams(params.clone()).copy(array))?;
        let copied = NDArray::builder().cparams(params.clone()).copy(array)?;
        let read = best(|| copied.bytes().read(..))?;

        let saved = folder.join(format!("{number}-{}", name(&path)));
        copied.save(&saved)?;
        for copy in [&copied, &NDArray::open(&saved)?] {
            let bytes = copy.bytes().read(..)?;
            ensure!(bytes == original, "{codec} with {filters:?} gives other bytes");
        }
        let names: Vec<String> = filters.iter().map(ToString::to_string).collect();
        println!(
            "  {:8} {:27} {:6.2} {:12.0} {:11.0}",
            codec.to_string(),
            names.join(", "),
            copied.schunk().nbytes() as f64 / copied.schunk().cbytes().max(1) as f64,
            original.len() as f64 / 1e6 / write.as_secs_f64(),
            original.len() as f64 / 1e6 / read.as_secs_f64(),
        );
    }
    Ok(())
}

/// The least time of several runs.
fn best<T>(mut work: impl FnMut() -> blosc2::Result<T>) -> Result<Duration> {
    let mut least = Duration::MAX;
    for _ in 0..20 {
        let start = Instant::now();
        work()?;
        least = least.min(start.elapsed());
    }
    Ok(least)
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}
