//! Small files of every kind, each changed in a few places. Each is refused or read within limits of time and
//! memory. C reads the same from all files without findings.

use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use blosc2::ErrorKind;
use blosc2_format::b2nd::Meta;
use blosc2_format::chunk::Header;
use blosc2_format::{Error, Limits};

use crate::common::measure::measure;
use crate::common::mutants::mutate;
use crate::common::{Kind, Rng, data, listing, name, repeats, upstream, upstream_files};
use crate::{c, rust};

/// The number of mutants in a long run; see `repeats`.
const MUTANTS: usize = 20_000;
const MOST_MEMORY: usize = 64 << 20;
const MOST_TIME: Duration = Duration::from_secs(1);

/// The reader in C that a file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reader {
    /// C reads it as a frame.
    Frame,
    /// C decompresses it as a chunk.
    Chunk,
    /// C does not know it.
    RustOnly,
}

/// Writes the files that are mutated into `folder`.
fn write_files(folder: &Path) -> Vec<(PathBuf, Reader)> {
    let mut files = Vec::new();
    let shuffle = &[(1, 0)][..];
    let pipelines: [&[(u8, u8)]; 5] =
        [&[], shuffle, &[(2, 0)], &[(3, 0), (1, 0)], &[(4, 10), (36, 5), (1, 2), (35, 4), (2, 0)]];
    for (at, codec) in [0, 1, 2, 4, 5].into_iter().enumerate() {
        for filters in [shuffle, pipelines[at]] {
            for contiguous in [true, false] {
                let path = folder.join(format!("{}_frame", files.len()));
                let params = c::params(codec, 4, filters);
                let mut writer = c::Writer::create(&path, contiguous, params, &[]);
                writer.append(&data(Kind::Ramp, 1200, 1));
                writer.append(&data(Kind::Zeros, 1200, 1));
                writer.append(&data(Kind::Runs, 1100, 2));
                files.push((path, Reader::Frame));
            }
        }
        // Blocks, one of them short; and variable-length blocks.
        let path = folder.join(format!("{}_blocks", files.len()));
        let mut params = c::params(codec, 8, pipelines[at]);
        params.blocksize = 512;
        let mut writer = c::Writer::create(&path, true, params, &[]);
        writer.append(&data(Kind::Mixed, 2000, 3));
        files.push((path, Reader::Frame));
        let path = folder.join(format!("{}_vl", files.len()));
        let mut params = c::params(codec, 1, shuffle);
        params.blocksize = 0;
        let mut writer = c::Writer::create(&path, at % 2 == 0, params, &[]);
        writer.append_blocks(&[&data(Kind::Runs, 500, 4), b"short", &data(Kind::Ramp, 300, 5)]);
        writer.append_blocks(&[&data(Kind::Random, 60, 6)]);
        files.push((path, Reader::Frame));
    }
    // Special chunks.
    for (special, contiguous) in [(1, true), (2, true), (4, true), (2, false)] {
        let path = folder.join(format!("{}_special", files.len()));
        let mut writer = c::Writer::create(&path, contiguous, c::params(0, 4, shuffle), &[]);
        writer.fill(700, special, 1200);
        files.push((path, Reader::Frame));
    }
    let path = folder.join("empty");
    drop(c::Writer::create(&path, true, c::params(5, 300, shuffle), &[("one", vec![0xc0])]));
    files.push((path, Reader::Frame));
    let path = folder.join("large_items");
    let mut writer = c::Writer::create(&path, true, c::params(5, 300, shuffle), &[]);
    writer.append(&data(Kind::Runs, 3000, 7));
    files.push((path, Reader::Frame));
    // Arrays, with metalayers of both kinds.
    for (ndim, contiguous) in [(0, true), (1, true), (2, true), (2, false), (16, true)] {
        let meta = Meta {
            shape: [vec![1; 14], vec![7, 10]].concat()[16 - ndim..].to_vec(),
            chunks: [vec![1; 14], vec![4, 6]].concat()[16 - ndim..].to_vec(),
            blocks: [vec![1; 14], vec![2, 5]].concat()[16 - ndim..].to_vec(),
            dtype: Some("<i4".into()),
            dtype_format: 0,
        };
        let items =
            meta.chunks.iter().zip(&meta.blocks).map(|(chunk, block)| {
                (*chunk as usize).div_ceil(*block as usize) * *block as usize
            });
        let items: usize = items.product();
        let count: usize = meta
            .shape
            .iter()
            .zip(&meta.chunks)
            .map(|(s, c)| (*s as usize).div_ceil(*c as usize))
            .product();
        let mut params = c::params(1, 4, shuffle);
        params.blocksize = 4 * meta.blocks.iter().product::<i32>();
        let layers = [("user", b"\x92\x01\xc3".to_vec()), ("b2nd", meta.to_bytes().unwrap())];
        let path = folder.join(format!("array_{ndim}_{contiguous}"));
        let mut writer = c::Writer::create(&path, contiguous, params, &layers);
        for chunk in 0..count {
            writer.append(&data(Kind::Ramp, items * 4, chunk as u64));
        }
        writer.vlmeta("first", &data(Kind::Runs, 200, 8));
        writer.vlmeta("second", b"");
        files.push((path, Reader::Frame));
    }
    // Variable-length chunks, written by others; a dictionary.
    for path in upstream_files("compat", ".b2frame") {
        files.push((path, Reader::Frame));
    }
    let path = folder.join("dictionary");
    let mut params = c::params(5, 4, shuffle);
    (params.use_dict, params.blocksize) = (1, 1024);
    let mut writer = c::Writer::create(&path, true, params, &[]);
    writer.append(&data(Kind::Runs, 32 << 10, 9));
    files.push((path, Reader::Frame));
    // Bare chunks.
    for (at, codec) in [0, 1, 2, 4, 5].into_iter().enumerate() {
        let mut params = blosc2::CParams::new()
            .codec(blosc2::Codec::from_code(codec))
            .typesize([1, 4, 8, 3, 2][at]);
        if at % 2 == 0 {
            params = params.blocksize(600);
        }
        let kind = [Kind::Ramp, Kind::Random, Kind::Zeros, Kind::Ones, Kind::Mixed][at];
        let chunk = blosc2::compress(&data(kind, 1500, 10)[..], &params).unwrap();
        let path = folder.join(format!("{codec}.chunk"));
        fs::write(&path, chunk).unwrap();
        files.push((path, Reader::Chunk));
    }
    files.push((upstream("compat").join("blosc-1.3.0-lz4hc.cdata"), Reader::Chunk));
    files
}

/// Files that old versions wrote: in layouts that C does not know, and frames that it still reads.
fn old_files() -> Vec<(PathBuf, Reader)> {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("blosc2-format/tests/golden/files");
    let mut files = Vec::new();
    for folder in ["early-frame", "old-frames", "packed"] {
        for entry in fs::read_dir(golden.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let len: u64 = parts(&path).iter().map(|part| part.metadata().unwrap().len()).sum();
            let is_current = ["2.", "rc1_"].iter().any(|start| name(&path).starts_with(start));
            let reader = if is_current { Reader::Frame } else { Reader::RustOnly };
            if len < 6000 {
                files.push((path, reader));
            }
        }
    }
    files.sort_by(|one, other| one.0.cmp(&other.0));
    assert!(files.len() > 100, "{}", files.len());
    files
}

/// The files of a directory, or the single file.
fn parts(path: &Path) -> Vec<PathBuf> {
    if path.is_dir() {
        listing(path).into_iter().map(|(path, _)| path).collect()
    } else {
        vec![path.to_owned()]
    }
}

/// Whether C lacks a codec or a filter.
fn is_not_here(error: &blosc2::Error) -> bool {
    error.kind() == ErrorKind::Unsupported || error.to_string().contains("not in this build")
}

/// Checks one mutant. Returns whether it has no findings, or the fault of this crate.
fn look_at(path: &Path, reader: Reader, limits: &Limits) -> Result<bool, String> {
    let (checked, time, memory) = measure(|| rust::check(path, limits));
    let checked = checked.map_err(|_| "the check panics")?;
    if time > MOST_TIME || memory > MOST_MEMORY {
        return Err(format!("the check took {time:?} and {memory} bytes"));
    }
    let (read, time, memory) = measure(|| rust::read(path, limits));
    let read = read.map_err(|_| "reading panics")?;
    if time > MOST_TIME || memory > MOST_MEMORY {
        return Err(format!("reading took {time:?} and {memory} bytes"));
    }
    if !checked.is_ok_and(|report| report.is_good()) {
        return Ok(false);
    }
    let read = match read {
        Ok(read) => read,
        // Special values take no space in a file, so there may be any number of them; and filters may be
        // user-defined.
        Err(Error::Limit { .. } | Error::Unsupported(_)) => return Ok(false),
        Err(error) => return Err(format!("no error is found, but reading fails: {error}")),
    };
    match reader {
        Reader::RustOnly => {}
        Reader::Frame => {
            let mut expected = c::read(path).map_err(|error| format!("only C refuses: {error}"))?;
            expected.take_unnameable(&read);
            if read != expected {
                let differ = catch_unwind(|| read.assert_same(&expected, "C reads otherwise"));
                return Err(*differ.unwrap_err().downcast::<String>().unwrap());
            }
        }
        Reader::Chunk => {
            let bytes = fs::read(path).unwrap();
            let header = Header::parse(&bytes).unwrap();
            let mut filters = header.filters.iter().zip(header.filters_meta);
            if filters.any(|filter| matches!(filter, (34 | 35, 0))) {
                // C knows the width of bytedelta in a super-chunk only.
                return Ok(false);
            }
            let expected = match blosc2::decompress::<u8>(&bytes) {
                Ok(expected) => expected,
                Err(error) if is_not_here(&error) => return Ok(false),
                Err(error) => return Err(format!("only C refuses: {error}")),
            };
            if read.chunks != [expected] {
                return Err("C decompresses to something else".into());
            }
        }
    }
    Ok(true)
}

#[test]
fn mutants_are_refused_or_read_as_c_reads_them() {
    let mutants = repeats(MUTANTS);
    let folder = tempfile::tempdir().unwrap();
    let intact = folder.path().join("intact");
    fs::create_dir(&intact).unwrap();
    let files = write_files(&intact);
    let limits = Limits { memory: 16 << 20, total_bytes: 256 << 20, ..Limits::default() };
    let old = old_files();
    let all = files.iter().chain(old.iter().filter(|file| file.1 == Reader::Frame));
    for (path, reader) in all {
        assert_eq!(look_at(path, *reader, &limits), Ok(true), "{}", path.display());
    }

    let work = |first: usize| {
        let mutant = folder.path().join(format!("mutant_{first}"));
        let (mut good, mut wrong) = (0, Vec::new());
        for number in (first..mutants).step_by(2) {
            let mut rng = Rng(number as u64);
            let files = if number % 3 == 0 { &old } else { &files };
            let (path, reader) = &files[number / 2 % files.len()];
            let parts = parts(path);
            let chosen = rng.pick(&parts);
            if path.is_dir() {
                fs::create_dir_all(&mutant).unwrap();
            }
            let mut changes = format!("{number}, {}", chosen.display());
            for part in &parts {
                let mut bytes = fs::read(part).unwrap();
                if part == chosen {
                    let intact = bytes.clone();
                    mutate(&mut bytes, &mut rng);
                    for (at, (from, to)) in intact.iter().zip(&bytes).enumerate() {
                        if from != to {
                            changes += &format!(" {at:#x}:{from:02x}>{to:02x}");
                        }
                    }
                }
                let target = match part.strip_prefix(path) {
                    Ok(name) if path.is_dir() => mutant.join(name),
                    _ => mutant.clone(),
                };
                fs::write(target, bytes).unwrap();
            }
            match look_at(&mutant, *reader, &limits) {
                Ok(is_good) => good += usize::from(is_good),
                Err(what) => wrong.push(format!("{changes}: {what}")),
            }
            if path.is_dir() {
                fs::remove_dir_all(&mutant).unwrap();
            } else {
                fs::remove_file(&mutant).unwrap();
            }
        }
        (good, wrong)
    };
    let (mut good, mut wrong) = (0, Vec::new());
    std::thread::scope(|scope| {
        let other = scope.spawn(|| work(1));
        for (more, bad) in [work(0), other.join().unwrap()] {
            good += more;
            wrong.extend(bad);
        }
    });
    assert!(wrong.is_empty(), "{} of {mutants}:\n{}", wrong.len(), wrong.join("\n"));
    assert!((mutants / 50..mutants / 2).contains(&good), "{good} of {mutants} are without fault");
}
