//! Compression ratio and speeds of compression parameters, and which of them to recommend.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use blosc2::{
    Aim, CParams, ChunkRef, Codec, Compressor, DParams, Decompressor, Filter, Measured, Threads,
    compress_bound,
};

use crate::params;

/// Runs of a measurement: at least, and at most until [`ENOUGH`] time has passed.
const MIN_RUNS: u32 = 2;
const MAX_RUNS: u32 = 50;
const ENOUGH: Duration = Duration::from_millis(20);
/// The number of reads of a few items of each chunk, and the number of bytes that each of them reads at most.
const READS: usize = 8;
const READ: usize = 128;

/// Compression parameters that are compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) codec: Codec,
    pub(crate) level: u8,
    pub(crate) filters: Vec<Filter>,
}

impl Setting {
    /// The settings of a file. The number of streams of bytedelta is omitted if it is the typesize, its default.
    pub(crate) fn of(params: &CParams) -> Self {
        let typesize = params.typesize.unwrap_or(1);
        let filters = params.filters.iter().map(|filter| match *filter {
            Filter::Bytedelta(streams) if usize::from(streams) == typesize => Filter::Bytedelta(0),
            filter => filter,
        });
        Self { codec: params.codec, level: params.level, filters: filters.collect() }
    }

    /// All combinations that make sense for items of this size.
    pub(crate) fn all(codecs: &[Codec], levels: &[u8], typesize: usize) -> Vec<Self> {
        let filters: &[&[Filter]] = match typesize {
            // Shuffle does nothing with items of one byte, or of more than 255 bytes.
            2..=255 => &[
                &[],
                &[Filter::Shuffle],
                &[Filter::Bitshuffle],
                &[Filter::Shuffle, Filter::Bytedelta(0)],
                &[Filter::Delta, Filter::Shuffle],
            ],
            _ => &[&[], &[Filter::Bitshuffle], &[Filter::Delta]],
        };
        let mut all = Vec::new();
        for &codec in codecs {
            for &level in levels {
                for filters in filters {
                    let setting = Self { codec, level, filters: filters.to_vec() };
                    // An option may name a codec or a level twice.
                    if !all.contains(&setting) {
                        all.push(setting);
                    }
                }
            }
        }
        all
    }

    /// The parameters as `copy` applies them to those of a file.
    pub(crate) fn params(&self, file: &CParams, threads: Threads) -> CParams {
        let params = params::with_codec(file.clone(), self.codec);
        params.level(self.level).filters(&self.filters).threads(threads)
    }

    /// The filters as the option `--filters` takes them.
    pub(crate) fn filters(&self) -> String {
        match self.filters.is_empty() {
            true => "none".to_owned(),
            false => self.filters.iter().map(Filter::to_string).collect::<Vec<_>>().join(","),
        }
    }

    /// The options of `copy` for these parameters.
    pub(crate) fn options(&self) -> String {
        format!("--codec {} --level {} --filters {}", self.codec, self.level, self.filters())
    }
}

/// What was measured for a setting.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) setting: Setting,
    /// Uncompressed bytes divided by compressed bytes.
    pub(crate) ratio: f64,
    pub(crate) cbytes: u64,
    /// Uncompressed bytes per second.
    pub(crate) compress: f64,
    pub(crate) decompress: f64,
    /// Reads of a few items per second.
    pub(crate) random_access: f64,
}

impl Row {
    fn measured(&self) -> Measured {
        Measured {
            ratio: self.ratio,
            compress: self.compress,
            decompress: self.decompress,
            random_access: self.random_access,
        }
    }
}

/// Measures settings on the chunks of a sample.
#[derive(Debug)]
pub(crate) struct Bench<'a> {
    chunks: &'a [Vec<u8>],
    /// One buffer for each compressed chunk, and one for a decompressed chunk.
    compressed: Vec<Vec<u8>>,
    decompressed: Vec<u8>,
    /// A buffer for a few items.
    items: Vec<u8>,
}

impl<'a> Bench<'a> {
    pub(crate) fn new(chunks: &'a [Vec<u8>]) -> Self {
        let compressed = chunks.iter().map(|chunk| vec![0; compress_bound(chunk.len())]).collect();
        let longest = chunks.iter().map(Vec::len).max().unwrap_or(0);
        Self { chunks, compressed, decompressed: vec![0; longest], items: vec![0; longest] }
    }

    /// Compresses and decompresses all chunks, and reads a few items of each, at least twice, and more often until
    /// `enough` time has passed. Returns the compressed bytes and the shortest time of each. Fails if the decompressed
    /// data differs.
    pub(crate) fn measure(
        &mut self,
        params: &CParams,
        enough: Duration,
    ) -> Result<(u64, [Duration; 3])> {
        let mut compressor = Compressor::new(params)?;
        let mut decompressor = Decompressor::new(DParams::new().threads(params.threads))?;
        let mut best = [Duration::MAX; 3];
        let typesize = params.typesize.unwrap_or(1).max(1);
        let (start, mut runs, mut cbytes) = (Instant::now(), 0, 0);
        while runs < MIN_RUNS || (start.elapsed() < enough && runs < MAX_RUNS) {
            cbytes = 0;
            let mut times = [Duration::ZERO; 3];
            for (chunk, compressed) in self.chunks.iter().zip(&mut self.compressed) {
                let now = Instant::now();
                let len = compressor.compress_into(chunk, compressed)?;
                times[0] += now.elapsed();
                cbytes += len as u64;
                let compressed = ChunkRef::new(&compressed[..len])?;
                let now = Instant::now();
                let len = decompressor.decompress_into(&compressed, &mut self.decompressed)?;
                times[1] += now.elapsed();
                let now = Instant::now();
                for read in 0..READS {
                    let place = read * (len / typesize) / READS * typesize;
                    let end = (place + (READ / typesize).max(1) * typesize).min(len);
                    let items = &mut self.items[..end - place];
                    decompressor.items_into(&compressed, place, items)?;
                }
                times[2] += now.elapsed();
                if runs == 0 && self.decompressed[..len] != chunk[..] {
                    bail!("the decompressed data differs: the codec or a filter is lossy");
                }
            }
            for (best, time) in best.iter_mut().zip(times) {
                *best = (*best).min(time);
            }
            runs += 1;
        }
        Ok((cbytes, best))
    }

    /// Measures a setting.
    pub(crate) fn row(&mut self, setting: &Setting, params: &CParams) -> Result<Row> {
        let (cbytes, times) = self.measure(params, ENOUGH)?;
        let nbytes: usize = self.chunks.iter().map(Vec::len).sum();
        let speed = |time: Duration| nbytes as f64 / time.as_secs_f64().max(1e-9);
        Ok(Row {
            setting: setting.clone(),
            ratio: nbytes as f64 / cbytes.max(1) as f64,
            cbytes,
            compress: speed(times[0]),
            decompress: speed(times[1]),
            random_access: (READS * self.chunks.len()) as f64 / times[2].as_secs_f64().max(1e-9),
        })
    }
}

/// The rows to recommend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Recommended {
    /// The highest ratio.
    pub(crate) smallest: usize,
    /// The fastest decompression of the rows that save at least half of the bytes that `smallest` saves.
    pub(crate) fastest: usize,
    /// The highest product of both speeds of the rows that save at least 80 % of the bytes that `smallest` saves.
    pub(crate) compromise: usize,
    /// The fastest reads of a few items of the rows that save at least half of the bytes that `smallest` saves.
    pub(crate) random_access: usize,
}

/// Selects the rows to recommend; `None` without rows. Of equal rows the first one is selected.
pub(crate) fn recommend(rows: &[Row]) -> Option<Recommended> {
    let settings: Vec<_> = rows.iter().map(Row::measured).collect();
    Some(Recommended {
        smallest: Aim::Smallest.choose(&settings)?,
        fastest: Aim::FastestToRead.choose(&settings)?,
        compromise: Aim::Balanced.choose(&settings)?,
        random_access: Aim::RandomAccess.choose(&settings)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_depend_on_the_typesize() {
        let filters = |typesize| {
            let all = Setting::all(&[Codec::Lz4], &[5], typesize);
            all.iter().map(Setting::filters).collect::<Vec<_>>()
        };
        let all = ["none", "shuffle", "bitshuffle", "shuffle,bytedelta", "delta,shuffle"];
        assert_eq!(filters(4), all);
        assert_eq!(filters(255), all);
        for typesize in [1, 256] {
            assert_eq!(filters(typesize), ["none", "bitshuffle", "delta"]);
        }
        let setting = &Setting::all(&[Codec::Lz4, Codec::BloscLz], &[1, 9], 4)[16];
        assert_eq!(setting.options(), "--codec blosclz --level 9 --filters shuffle");
        assert_eq!(Setting::all(&[Codec::Lz4, Codec::Lz4], &[5, 5], 4).len(), 5);
        let params = CParams::new().typesize(4).filters(&[Filter::Shuffle, Filter::Bytedelta(4)]);
        assert_eq!(Setting::of(&params).filters(), "shuffle,bytedelta");
    }

    #[test]
    fn lossy_settings_are_refused() {
        let chunks: Vec<Vec<u8>> =
            vec![(0..4000u32).flat_map(|k| (k as f32).sqrt().to_le_bytes()).collect()];
        let mut bench = Bench::new(&chunks);
        let params = CParams::new().typesize(4);
        let (cbytes, times) = bench.measure(&params, Duration::ZERO).unwrap();
        assert!(cbytes > 0 && cbytes < 16_000 && times.iter().all(|time| *time < Duration::MAX));
        let lossy = params.filters(&[Filter::TruncPrec(5)]);
        let error = bench.measure(&lossy, ENOUGH).unwrap_err().to_string();
        assert!(error.contains("lossy"), "{error}");
    }
}
