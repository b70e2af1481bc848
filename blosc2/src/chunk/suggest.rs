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
    /// This function compresses and decompresses 1 MiB of the sample, taken from 8 parts of it, with each codec and
    /// lossless filter of this build except zlib, and levels 1, 5 and 9. It takes about 2 seconds at most, and less for a
    /// smaller sample. Slow parameters are measured last, and are omitted if the time is over. The choice depends on the
    /// speed of the machine. The result sets the codec, the level and the filters; chunk and block sizes and threads are
    /// not chosen.
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
        let sample = parts_of(sample);
        let (start, mut found) = (Instant::now(), Vec::new());
        for params in candidates(size_of::<T>()) {
            if !found.is_empty() && start.elapsed() > TIME {
                break;
            }
            // An installed library may refuse some parameters.
            match measure(&sample, &params) {
                Ok(setting) => found.push((setting, params)),
                Err(error) if error.kind() == ErrorKind::Unsupported => {}
                Err(error) => return Err(error),
            }
        }
        let settings: Vec<_> = found.iter().map(|(setting, _)| *setting).collect();
        let chosen = aim.choose(&settings).map(|index| found.swap_remove(index).1);
        Ok(Self { typesize: None, blocksize: None, ..chosen.unwrap_or_default() })
    }
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

/// The parameters to compare, fast ones first.
fn candidates(typesize: usize) -> Vec<CParams> {
    let filters: &[&[Filter]] = match typesize {
        // Shuffle does nothing with items of one byte, or of more than 255 bytes.
        2..=255 => &[
            &[Filter::Shuffle],
            &[],
            &[Filter::Bitshuffle],
            &[Filter::Delta, Filter::Shuffle],
            &[Filter::Shuffle, Filter::Bytedelta(0)],
        ],
        _ => &[&[], &[Filter::Bitshuffle], &[Filter::Delta]],
    };
    let codecs = [Codec::Lz4, Codec::BloscLz, Codec::Zstd, Codec::Lz4Hc];
    let codecs = codecs.into_iter().filter(|codec| codec.is_available());
    let pairs =
        [1, 5, 9].into_iter().flat_map(|level| codecs.clone().map(move |codec| (codec, level)));
    let block = (PART / typesize.max(1)).max(1) * typesize.max(1);
    let all = pairs.flat_map(|(codec, level)| {
        let params = CParams::new().codec(codec).level(level).typesize(typesize).blocksize(block);
        filters.iter().map(move |filters| params.clone().filters(filters))
    });
    all.collect()
}

fn measure(sample: &[u8], params: &CParams) -> Result<Measured> {
    let mut compressor = Compressor::new(params)?;
    let mut decompressor = Decompressor::new(DParams::new())?;
    let (mut best, mut cbytes, mut items) = ([Duration::MAX; 3], 1, vec![0u8; sample.len()]);
    let typesize = params.typesize.unwrap_or(1);
    // Whole items, spread by a step that has no factor in common with usual sizes.
    let len = (READ / typesize).max(1) * typesize;
    let places = sample.len().saturating_sub(len) / typesize + 1;
    let places: Vec<_> = (0..READS).map(|read| read * 7919 * 4099 % places * typesize).collect();
    let (start, mut runs) = (Instant::now(), 0);
    while runs == 0 || (runs < RUNS && start.elapsed() < ENOUGH) {
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
