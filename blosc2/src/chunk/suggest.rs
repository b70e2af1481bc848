//! Compression parameters that suit given data.

use std::time::{Duration, Instant};

use crate::item::element::{Element, bytes_of};
use crate::{CParams, Codec, Compressor, DParams, Decompressor, Error, ErrorKind, Filter, Result};

const DOING: &str = "suggest compression parameters";

/// The number of bytes of the sample that are measured, and the size of the parts of the sample from which they are taken.
/// A part is a block, so that it has the length of the blocks of an array.
const MEASURED: usize = 1 << 20;
const PART: usize = 128 << 10;
/// After this time, no more parameters are measured.
const TIME: Duration = Duration::from_millis(1500);
/// The times that parameters are measured: up to this number of times, until this time has passed. The shortest time of
/// each operation counts.
const RUNS: usize = 9;
const ENOUGH: Duration = Duration::from_millis(12);
/// The codecs to compare, fast ones first, and the levels. For the smallest size, the last codec is measured first.
const CODECS: [Codec; 4] = [Codec::Lz4, Codec::BloscLz, Codec::Lz4Hc, Codec::Zstd];
const LEVELS: [u8; 3] = [1, 5, 9];
/// The number of filters with the highest ratios, and of those that serve the aim best, that are measured at the next
/// level.
const GOOD: usize = 2;
/// The number of reads of a few items, and the number of bytes that each of them reads at most.
const READS: usize = 64;
const READ: usize = 128;

/// The purpose for which compression parameters are chosen; see [`CParams::suggest`].
///
/// ```
/// use blosc2::{Aim, Measured};
///
/// let setting = |ratio, compress, decompress, random_access| {
///     Measured { ratio, compress, decompress, random_access }
/// };
/// let settings = [
///     setting(1.1, 900.0, 5000.0, 90.0),
///     setting(4.0, 200.0, 2000.0, 20.0),
///     setting(5.0, 10.0, 800.0, 10.0),
/// ];
/// assert_eq!(Aim::Smallest.choose(&settings), Some(2));
/// assert_eq!(Aim::Balanced.choose(&settings), Some(1));
/// assert_eq!(Aim::FastestToRead.choose(&settings), Some(1));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Aim {
    /// The highest compression ratio.
    Smallest,
    /// The highest product of both speeds, of the settings that save at least 80 % of the bytes that
    /// [`Smallest`](Self::Smallest) saves.
    Balanced,
    /// The fastest decompression, of the settings that save at least half of the bytes that
    /// [`Smallest`](Self::Smallest) saves.
    FastestToRead,
    /// The fastest reads of a few items at random places, of the settings that save at least half of the bytes that
    /// [`Smallest`](Self::Smallest) saves.
    RandomAccess,
}

/// What was measured for a setting, in any units; see [`Aim::choose`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// The compression ratio: uncompressed bytes divided by compressed bytes.
    pub ratio: f64,
    /// The compression speed.
    pub compress: f64,
    /// The decompression speed.
    pub decompress: f64,
    /// The number of reads of a few items at random places in a second.
    pub random_access: f64,
}

impl Measured {
    /// The share of the bytes that compression saves; negative if the data becomes longer.
    fn saved(&self) -> f64 {
        1.0 - 1.0 / self.ratio
    }
}

impl Aim {
    /// Returns the index of the setting that serves this aim best; `None` if there are no settings. Of equal settings,
    /// the first one is chosen.
    pub fn choose(self, settings: &[Measured]) -> Option<usize> {
        let most = settings.iter().map(Measured::saved).fold(f64::NEG_INFINITY, f64::max);
        let share = match self {
            Self::Smallest => 1.0,
            Self::Balanced => 0.8,
            Self::FastestToRead | Self::RandomAccess => 0.5,
        };
        let value = |it: &Measured| match self {
            Self::Balanced => it.compress * it.decompress,
            Self::Smallest | Self::FastestToRead => it.decompress,
            Self::RandomAccess => it.random_access,
        };
        let enough = |it: &Measured| it.saved() >= most.min(most * share);
        // Reversed, because the last one of several maxima is returned.
        let chosen = settings.iter().enumerate().rev().filter(|(_, setting)| enough(setting));
        chosen.max_by(|a, b| value(a.1).total_cmp(&value(b.1))).map(|(index, _)| index)
    }
}

impl CParams {
    /// Returns lossless compression parameters for data like `sample`, chosen for an [`Aim`]. The command `blosc2 bench`
    /// compares more parameters for a file.
    ///
    /// This function compresses and decompresses 1 MiB of the sample, taken from 8 parts of it, with each codec of this
    /// build except zlib and each lossless filter at level 1, and with the best of these filters at levels 5 and 9. It takes
    /// about 2 seconds at most, and less for a smaller sample. Slow parameters are measured last, and are omitted if the
    /// time is over. The choice depends on the speed of the machine. The result sets the codec, the level and the filters;
    /// chunk and block sizes and threads are not chosen.
    ///
    /// ```
    /// use blosc2::{Aim, CParams, NDArray};
    ///
    /// let days: Vec<f32> = (0..365 * 100).map(|i| (i % 365) as f32 / 10.0).collect();
    /// let params = CParams::suggest(&days, Aim::Smallest)?;
    /// let array = NDArray::builder().cparams(params).from_slice(&days, [100, 365])?;
    /// assert!(array.schunk().cbytes() < 20_000);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: the sample is empty;
    /// - [`ErrorKind::TooLarge`]: an item exceeds [`MAX_TYPESIZE`](crate::limits::MAX_TYPESIZE) bytes;
    /// - [`ErrorKind::OutOfMemory`]: there is not enough memory.
    #[doc(alias("autotune", "btune"))]
    pub fn suggest<T: Element>(sample: &[T], aim: Aim) -> Result<Self> {
        if size_of_val(sample) == 0 {
            return Err(Error::new(ErrorKind::InvalidArgument, DOING, "the sample is empty"));
        }
        let chosen = search(&parts_of(sample), size_of::<T>(), aim, TIME)?;
        Ok(Self { typesize: None, blocksize: None, ..chosen.unwrap_or_default() })
    }
}

/// Measures parameters and returns those that serve the aim best. With each codec, the lowest level is measured with all
/// filters, and the next ones with those that were good at the level before, for the smallest size only the last one.
/// No measurement starts after `limit`.
fn search(sample: &[u8], typesize: usize, aim: Aim, limit: Duration) -> Result<Option<CParams>> {
    let (start, mut found) = (Instant::now(), Vec::<(Measured, CParams)>::new());
    let block = (PART / typesize.max(1)).max(1) * typesize.max(1);
    let first: Vec<Vec<Filter>> = filters(typesize).iter().map(|it| it.to_vec()).collect();
    let mut codecs = Vec::from(CODECS.map(|codec| (codec, first.clone())));
    codecs.retain(|(codec, _)| codec.is_available());
    // The smallest size does not depend on the speed, so that one run is enough, and a busy machine measures as much.
    let mut enough = ENOUGH;
    if aim == Aim::Smallest {
        codecs.reverse();
        enough = Duration::ZERO;
    }
    for level in LEVELS {
        for (codec, filters) in &mut codecs {
            let mut level_found = Vec::new();
            for filters in &*filters {
                if !found.is_empty() && start.elapsed() > limit {
                    break;
                }
                let params = CParams::new().codec(*codec).level(level).filters(filters);
                let params = params.typesize(typesize).blocksize(block);
                // An installed library may refuse some parameters.
                match measure(sample, &params, enough) {
                    Ok(setting) => level_found.push((setting, params)),
                    Err(error) if error.kind() == ErrorKind::Unsupported => {}
                    Err(error) => return Err(error),
                }
            }
            // The fast level does not show which filter the slow levels need.
            if aim != Aim::Smallest || level != LEVELS[0] {
                *filters = good(&level_found, aim);
            }
            found.append(&mut level_found);
        }
    }
    let settings: Vec<_> = found.iter().map(|(setting, _)| *setting).collect();
    Ok(aim.choose(&settings).map(|index| found.swap_remove(index).1))
}

/// Returns the filters of the settings with the highest ratios, and of those that serve the aim best, which may be others.
fn good(found: &[(Measured, CParams)], aim: Aim) -> Vec<Vec<Filter>> {
    let mut all = Vec::<Vec<Filter>>::new();
    for aim in [Aim::Smallest, aim] {
        let mut left: Vec<_> = found.iter().collect();
        for _ in 0..GOOD {
            let settings: Vec<_> = left.iter().map(|(setting, _)| *setting).collect();
            let Some(index) = aim.choose(&settings) else { break };
            let filters = &left.remove(index).1.filters;
            if !all.contains(filters) {
                all.push(filters.clone());
            }
        }
    }
    all
}

/// Returns the bytes of a sample that are measured.
fn parts_of<T: Element>(sample: &[T]) -> Vec<u8> {
    let size = size_of::<T>().max(1);
    if sample.len() <= MEASURED / size {
        return bytes_of(sample).into_owned();
    }
    let part = (PART / size).max(1);
    let parts = (MEASURED / (part * size)).max(1);
    // Evenly spread, from the first item to the last one.
    let gaps = (parts - 1).max(1);
    let starts = (0..parts).map(|number| number * (sample.len() - part) / gaps);
    starts.flat_map(|start| bytes_of(&sample[start..start + part]).into_owned()).collect()
}

/// The filters to compare.
fn filters(typesize: usize) -> &'static [&'static [Filter]] {
    match typesize {
        // Shuffle does nothing with items of one byte, or of more than 255 bytes.
        2..=255 => &[
            &[Filter::Shuffle],
            &[],
            &[Filter::Bitshuffle],
            &[Filter::Delta, Filter::Shuffle],
            &[Filter::Shuffle, Filter::Bytedelta(0)],
        ],
        _ => &[&[], &[Filter::Bitshuffle], &[Filter::Delta]],
    }
}

fn measure(sample: &[u8], params: &CParams, enough: Duration) -> Result<Measured> {
    let mut compressor = Compressor::new(params)?;
    let mut decompressor = Decompressor::new(DParams::new())?;
    let (mut best, mut cbytes, mut items) = ([Duration::MAX; 3], 1, vec![0u8; sample.len()]);
    let typesize = params.typesize.unwrap_or(1);
    // Whole items, spread by a step that has no factor in common with usual sizes.
    let len = (READ / typesize).max(1) * typesize;
    let places = sample.len().saturating_sub(len) / typesize + 1;
    let places: Vec<_> = (0..READS).map(|read| read * 7919 * 4099 % places * typesize).collect();
    let (start, mut runs) = (Instant::now(), 0);
    while runs == 0 || (runs < RUNS && start.elapsed() < enough) {
        let mut time = [Instant::now(); 4];
        let chunk = compressor.compress(sample)?;
        time[1] = Instant::now();
        cbytes = chunk.cbytes();
        decompressor.decompress_into(&chunk, &mut items)?;
        time[2] = Instant::now();
        for &place in &places {
            let end = (place + len).min(sample.len());
            decompressor.items_into(&chunk, place, &mut items[place..end])?;
        }
        time[3] = Instant::now();
        for (best, times) in best.iter_mut().zip(time.windows(2)) {
            *best = (*best).min(times[1] - times[0]);
        }
        runs += 1;
    }
    let speed = |count: usize, time: Duration| count as f64 / time.as_secs_f64().max(1e-9);
    Ok(Measured {
        ratio: sample.len() as f64 / cbytes as f64,
        compress: speed(sample.len(), best[0]),
        decompress: speed(sample.len(), best[1]),
        random_access: speed(READS, best[2]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const AIMS: [Aim; 4] = [Aim::Smallest, Aim::Balanced, Aim::FastestToRead, Aim::RandomAccess];

    #[test]
    fn the_aim_determines_the_choice() {
        // The highest ratio saves 90 % of the bytes: half of it is a ratio of 1.82, and 80 % a ratio of 3.57.
        let settings = [
            (1.0, 900.0, 9000.0, 90.0),
            (10.0, 10.0, 1000.0, 10.0),
            (10.0, 5.0, 1200.0, 10.0),
            (3.6, 200.0, 1500.0, 50.0),
            (3.5, 900.0, 1600.0, 20.0),
            (1.9, 500.0, 3000.0, 20.0),
            (1.8, 500.0, 4000.0, 70.0),
        ];
        let chosen = |settings: &[_]| {
            let all = settings.iter().map(|&(ratio, compress, decompress, random_access)| {
                Measured { ratio, compress, decompress, random_access }
            });
            let all: Vec<Measured> = all.collect();
            AIMS.map(|aim| aim.choose(&all))
        };
        assert_eq!(chosen(&settings), [Some(2), Some(3), Some(5), Some(3)]);
        assert_eq!(chosen(&[(2.0, 1.0, 1.0, 1.0); 2]), [Some(0); 4]);
        assert_eq!(chosen(&[(0.8, 9.0, 9.0, 9.0), (0.9, 1.0, 1.0, 1.0)]), [Some(1); 4]);
        assert_eq!(chosen(&[]), [None; 4]);
    }

    #[test]
    fn parameters_are_lossless_and_suit_the_data() {
        let size = |params: &CParams, items: &[u32]| {
            crate::compress(items, params.clone().typesize(4)).unwrap().len()
        };
        // Numbers whose high bytes repeat: without a filter, they compress badly.
        let numbers: Vec<u32> =
            (0..200_000u32).map(|number| number.wrapping_mul(7) % 50_000).collect();
        let found = CParams::suggest(&numbers, Aim::Smallest).unwrap();
        assert!(
            !found.filters.is_empty()
                && found.filters.iter().all(|filter| !matches!(filter, Filter::TruncPrec(_))),
            "{found:?}"
        );
        assert!(
            size(&found, &numbers)
                < size(&CParams::new().codec(found.codec).filters(&[]), &numbers)
        );
        // Any number of bytes.
        assert!(CParams::suggest(&[1u8; 1001], Aim::Balanced).is_ok());
        assert!(CParams::suggest(&[1i16; 3], Aim::Balanced).is_ok());
        assert!(CParams::suggest(&[true; 3], Aim::Balanced).is_ok());
        for aim in AIMS {
            let found = CParams::suggest(&[0.5f64; 3], aim).unwrap();
            assert_eq!((found.typesize, found.blocksize), (None, None));
            let large: Vec<[u8; 300]> = vec![[7; 300]; 10_000];
            let large: Vec<crate::item::elements::Void<300>> =
                large.into_iter().map(crate::item::elements::Void).collect();
            assert!(CParams::suggest(&large, aim).is_ok());
        }
        assert_eq!(
            CParams::suggest::<u8>(&[], Aim::Balanced).unwrap_err().kind(),
            ErrorKind::InvalidArgument
        );
    }

    /// Data of several kinds: noise in the low bits, repeated numbers, a slow signal, records, text.
    fn kinds() -> Vec<(&'static str, usize, Vec<u8>)> {
        let mut state = 1u64;
        let mut random = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state >> 40
        };
        let count = 200_000;
        let wave = |k: u64| ((k as f64 / 5000.0).sin() * 1000.0) as f32;
        let noisy = (0..count).flat_map(|k| (wave(k) + random() as f32 / 2e8).to_le_bytes());
        let noisy: Vec<u8> = noisy.collect();
        let repeats: Vec<u8> =
            (0..count).flat_map(|_| (random() % 40 * 1000).to_le_bytes()).collect();
        let slow = (0..2 * count).flat_map(|k| ((wave(k) * 20.0) as i16).to_le_bytes()).collect();
        let records = (0..count / 4).flat_map(|k| {
            [k.to_le_bytes(), (random() % 1000).to_le_bytes(), [1, 2, 3, 4, 5, 6, 7, 8]].concat()
        });
        let records = records.collect();
        let text: Vec<u8> =
            (0..2 * count).map(|_| b"ACGT"[(random() * random()) as usize % 4]).collect();
        vec![
            ("noisy floats", 4, noisy),
            ("repeated numbers", 8, repeats),
            ("slow signal", 2, slow),
            ("records", 24, records),
            ("text", 1, text),
        ]
    }

    #[test]
    fn the_smallest_setting_of_a_sample_is_nearly_the_smallest_of_all_data() {
        for (name, typesize, data) in kinds() {
            let size = |params: &CParams| {
                // As in an array, whose blocks have the same size with all codecs and levels.
                let block = 2 * PART / typesize * typesize;
                let params = params.clone().typesize(typesize).blocksize(block);
                Compressor::new(params).unwrap().compress(&data[..]).unwrap().cbytes()
            };
            // The highest level, with all codecs, all filters and all data.
            let codecs = CODECS.iter().filter(|codec| codec.is_available());
            let all = codecs.flat_map(|codec| {
                filters(typesize)
                    .iter()
                    .map(|filters| size(&CParams::new().codec(*codec).level(9).filters(filters)))
            });
            let least = all.min().unwrap();
            // Four parts of 128 KiB.
            let step = (data.len() - PART) / 3 / typesize * typesize;
            let part = PART / typesize * typesize;
            let sample: Vec<u8> =
                (0..4).flat_map(|k| data[k * step..k * step + part].to_vec()).collect();
            let chosen = search(&sample, typesize, Aim::Smallest, Duration::MAX).unwrap().unwrap();
            let found = size(&chosen);
            // The promise of the guide: within 5 % of the best.
            assert!(found as f64 <= 1.05 * least as f64, "{name}: {found}, {least}: {chosen:?}");
        }
    }

    #[test]
    fn filters_that_serve_the_aim_are_kept() {
        let setting = |ratio, decompress, filters: &[Filter]| {
            let measured = Measured { ratio, compress: 1.0, decompress, random_access: 1.0 };
            (measured, CParams::new().filters(filters))
        };
        let found = [
            setting(4.0, 10.0, &[Filter::Shuffle]),
            setting(2.5, 40.0, &[]),
            setting(5.0, 20.0, &[Filter::Bitshuffle]),
            setting(1.1, 90.0, &[Filter::Delta]),
        ];
        let kept = good(&found, Aim::FastestToRead);
        let expected: [&[Filter]; 3] = [&[Filter::Bitshuffle], &[Filter::Shuffle], &[]];
        assert_eq!(kept, expected);
        assert!(good(&[], Aim::Smallest).is_empty());
    }

    #[test]
    fn parts_cover_a_long_sample() {
        let sample: Vec<u32> = (0..4_000_000).collect();
        let bytes = parts_of(&sample);
        assert_eq!(bytes.len(), MEASURED);
        let last = u32::from_ne_bytes(bytes[bytes.len() - 4..].try_into().unwrap());
        assert!(last > 3_000_000, "{last}");
        assert_eq!(parts_of(&sample[..10]).len(), 40);
    }
}
