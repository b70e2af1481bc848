//! Damaged chunks in a file: reading them through libhdf5 returns data or an error, and takes a bounded amount of
//! memory.
#![allow(missing_docs)]

#[path = "common/hdf5.rs"]
mod hdf5;

use anyhow::Result;
use blosc2::{Codec, NDArray, OpenOptions, Special};
use blosc2_hdf5::{FILTER_ID, FilterParams, encode};
use blosc2_testing::{Kind, Rng, data};
use hdf5_metno::File;

use hdf5::{alone, read_bytes};

/// The largest size of this process so far, in bytes. Linux counts pages on each processor, so that it can decrease a
/// little.
#[cfg(target_os = "linux")]
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() << 10
}

/// It is not measured on other systems.
#[cfg(not(target_os = "linux"))]
fn peak_memory() -> u64 {
    0
}

#[test]
fn damaged_chunks_are_errors_or_data() -> Result<()> {
    let _alone = alone();
    blosc2_hdf5::register()?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("mutant.h5");
    let mut rng = Rng(7);
    let items = data(Kind::Mixed, 100_000, 3);
    let (mut read, mut failed, mut unchanged) = (0, 0, 0);
    let before = peak_memory();
    let shapes: [(&[usize], &[usize]); 4] = [
        (&[12_500], &[5000]),
        (&[125, 100], &[60, 50]),
        (&[10, 50, 25], &[5, 20, 25]),
        (&[5, 10, 10, 25], &[5, 4, 10, 6]),
    ];
    for (number, (shape, chunk)) in shapes.into_iter().enumerate() {
        let codec = [Codec::Lz4, Codec::BloscLz, Codec::Zstd, Codec::Zlib][number];
        let params = FilterParams::new(8, chunk)?.codec(codec);
        let file = File::create(&path)?;
        let builder = file.new_dataset::<u64>().shape(shape).chunk(chunk);
        let dataset = builder.add_filter(FILTER_ID, &params.cd_values()?).create("x")?;
        hdf5::write_bytes(&dataset, &items)?;
        file.flush()?;
        let chunks: Vec<_> = (0..dataset.num_chunks().unwrap())
            .map(|index| dataset.chunk_info(index).unwrap())
            .map(|info| info.addr as usize..(info.addr + info.size) as usize)
            .collect();
        drop(dataset);
        file.close()?;
        let original = std::fs::read(&path)?;
        for _ in 0..300 {
            let mut bytes = original.clone();
            for _ in 0..1 + rng.index(3) {
                let part = &mut bytes[rng.pick(&chunks).clone()];
                // Half of the changes are in the header of the frame or of its chunk.
                let end = if rng.index(2) == 0 { part.len().min(250) } else { part.len() };
                let at = rng.index(end);
                match rng.index(3) {
                    0 => part[at] ^= 1 << rng.index(8),
                    1 => part[at] = rng.next() as u8,
                    _ => {
                        let end = (at + 1 + rng.index(8)).min(part.len());
                        part[at..end].fill(*rng.pick(&[0, 0x7f, 0xff]));
                    }
                }
            }
            std::fs::write(&path, &bytes)?;
            let file = File::open(&path)?;
            match read_bytes(&file.dataset("x")?) {
                Ok(found) if found == items => unchanged += 1,
                Ok(_) => read += 1,
                Err(_) => failed += 1,
            }
            file.close()?;
        }
    }
    assert_eq!(read + failed + unchanged, 1200);
    assert!(failed > 300 && read > 100, "{failed} errors, {read} with other data");
    let grown = peak_memory().saturating_sub(before);
    assert!(grown < 32 << 20, "{grown} bytes for chunks of 40,000 bytes");
    Ok(())
}

/// Creates a file with a chunk of 10,000 bytes, replaces the chunk by a payload, and reads it.
fn read_replaced(payload: &[u8], chunk: &[usize]) -> Result<Result<Vec<u8>, hdf5_metno::Error>> {
    blosc2_hdf5::register()?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("replaced.h5");
    let file = File::create(&path)?;
    let builder = file.new_dataset::<u8>().shape(chunk).chunk(chunk);
    let values = FilterParams::new(1, chunk)?.cd_values()?;
    let dataset = builder.add_filter(FILTER_ID, &values).create("x")?;
    hdf5::write_bytes(&dataset, &data(Kind::Random, 10_000, 1))?;
    file.flush()?;
    let start = dataset.chunk_info(0).unwrap().addr as usize;
    drop(dataset);
    file.close()?;
    let mut bytes = std::fs::read(&path)?;
    bytes[start..start + payload.len()].copy_from_slice(payload);
    std::fs::write(&path, &bytes)?;
    let before = peak_memory();
    let found = File::open(&path)?.dataset("x")?.read_raw::<u8>();
    let grown = peak_memory().saturating_sub(before);
    assert!(grown < 32 << 20, "{grown} bytes");
    Ok(found)
}

/// Chunks that stand for much more data than HDF5 expects are errors, without memory for the data.
#[test]
fn larger_chunks() -> Result<()> {
    let _alone = alone();
    let side = 1 << 15;
    let array = NDArray::builder()
        .chunk_shape([side, side])
        .zeros::<u8>([side, side])?
        .schunk()
        .to_cframe()?;
    let mut schunk = OpenOptions::new().create_new(true).open(Vec::new())?;
    schunk.fill(Special::Zeros, 1 << 30, 1 << 30)?;
    let expected = "expected an array of shape [100, 100] with 10000 bytes, got [32768, 32768]";
    let error = read_replaced(&array, &[100, 100])?.unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
    for (payload, chunk) in [(array, &[10_000][..]), (schunk.into_cframe()?, &[100, 100])] {
        assert!(payload.len() < 1000);
        let error = read_replaced(&payload, chunk)?.unwrap_err().to_string();
        let expected = "the chunk has 1073741824 bytes, expected at most 11180";
        assert!(error.contains(expected), "{error}");
    }
    Ok(())
}

/// HDF5 would read missing items as zeros.
#[test]
fn shorter_and_longer_chunks() -> Result<()> {
    let _alone = alone();
    let half = encode(&[5; 5000], &FilterParams::new(1, &[5000])?)?;
    let error = read_replaced(&half, &[10_000])?.unwrap_err().to_string();
    let expected = "expected at least the 10000 bytes of a chunk, got a frame with 5000 bytes; HDF5 stores complete \
        chunks, also at the edge of a dataset";
    assert!(error.contains(expected), "{error}");
    // Without a shape, also for a chunk with several axes.
    let error = read_replaced(&half, &[100, 100])?.unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
    let half = encode(&[5; 5000], &FilterParams::new(1, &[50, 100])?)?;
    let error = read_replaced(&half, &[100, 100])?.unwrap_err().to_string();
    let expected = "expected an array of shape [100, 100] with 10000 bytes, got [50, 100] with 5000 bytes; HDF5 stores";
    assert!(error.contains(expected), "{error}");

    // HDF5 would ignore additional bytes, which only a filter before Blosc2 adds.
    for len in [10_001, 10_004, 11_000] {
        let longer = encode(&vec![5; len], &FilterParams::new(1, &[len])?)?;
        for chunk in [&[10_000][..], &[100, 100]] {
            let error = read_replaced(&longer, chunk)?.unwrap_err().to_string();
            let expected = format!("the chunk has {len} bytes, expected at most 10000");
            assert!(error.contains(&expected), "{error}");
        }
    }

    let folder = tempfile::tempdir()?;
    let file = File::create(folder.path().join("other.h5"))?;
    let values = FilterParams::new(1, &[10_000])?.cd_values()?;
    let builder = || file.new_dataset::<u8>().shape([10_000]).chunk([10_000]);
    let half = encode(&[5; 5000], &FilterParams::new(1, &[5000])?)?;
    // Checksums and a shuffle make no chunk shorter, also in another open dataset with the same parameters.
    let filters = builder().fletcher32().shuffle();
    let sums = filters.add_filter(FILTER_ID, &values).create("sums")?;
    assert!(read_replaced(&half, &[10_000])?.is_err());
    drop(sums);
    // A shuffle makes no chunk longer.
    let shuffled = builder().shuffle().add_filter(FILTER_ID, &values).create("shuffled")?;
    let longer = encode(&[5; 10_004], &FilterParams::new(1, &[10_004])?)?;
    assert!(read_replaced(&longer, &[10_000])?.is_err());
    drop(shuffled);

    // Another open dataset with other filters does not matter, if it has other parameters.
    let create = |name: &str, values: &[u32]| {
        builder().fletcher32().shuffle().deflate(6).add_filter(FILTER_ID, values).create(name)
    };
    let other = create("other", &FilterParams::new(1, &[10_000])?.level(9).cd_values()?)?;
    assert!(read_replaced(&half, &[10_000])?.is_err());
    // With a filter that makes chunks shorter, the chunk is one.
    other.write_raw(&[7u8; 10_000])?;
    assert!(other.chunk_info(0).unwrap().size < 1000);
    let same = create("same", &values)?;
    same.write_raw(&[8u8; 10_000])?;
    file.flush()?;
    drop((other, same));
    file.close()?;
    let file = File::open(folder.path().join("other.h5"))?;
    for (name, value) in [("other", 7), ("same", 8)] {
        assert_eq!(file.dataset(name)?.read_raw::<u8>()?, [value; 10_000]);
    }
    Ok(())
}
