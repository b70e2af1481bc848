//! This crate.

use std::path::Path;

use blosc2::{CParams, Codec, DParams, Filter, NDArray, RawItems, Threads};

use crate::library::{Items, Library, Reader};
use crate::set::{Part, Set};

#[derive(Debug, Clone)]
pub struct Ours {
    pub codec: Codec,
    pub level: u8,
    pub filters: Vec<Filter>,
    /// Whether each chunk is one block. Otherwise, blocks are automatic.
    pub is_one_block: bool,
}

impl Ours {
    /// All lossless settings for items of this size, with automatic blocks and the codecs of `blosc2`.
    pub fn all(itemsize: usize) -> Vec<Self> {
        let filters: &[&[Filter]] = match itemsize {
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
        for codec in [Codec::BloscLz, Codec::Lz4, Codec::Lz4Hc, Codec::Zlib, Codec::Zstd] {
            for level in [1, 5, 9] {
                let filters = filters.iter().map(|filters| filters.to_vec());
                all.extend(filters.map(|filters| Self::new(codec, level, filters)));
            }
        }
        all
    }

    /// What `CParams::suggest` does not choose: pcodec, if it can compress the set, and one block for each chunk.
    #[cfg(feature = "peers")]
    pub fn more(set: &Set) -> Vec<Self> {
        let mut all = Vec::new();
        if let Ok(params) = blosc2_pco::cparams(&set.dtype, 8) {
            all.extend([4, 8].map(|level| Self::new(params.codec, level, Vec::new())));
        }
        for level in [5, 9] {
            for filters in [&[][..], &[Filter::Shuffle], &[Filter::Bitshuffle]] {
                // Shuffle does nothing with items of one byte.
                if set.itemsize > 1 || filters != [Filter::Shuffle] {
                    let setting = Self::new(Codec::Zstd, level, filters.to_vec());
                    all.push(Self { is_one_block: true, ..setting });
                }
            }
        }
        all
    }

    pub fn new(codec: Codec, level: u8, filters: Vec<Filter>) -> Self {
        Self { codec, level, filters, is_one_block: false }
    }

    pub fn default_settings() -> Self {
        let CParams { codec, level, filters, .. } = CParams::new();
        Self::new(codec, level, filters)
    }

    fn params(&self, set: &Set) -> CParams {
        #[cfg(feature = "peers")]
        if self.is_pco() {
            return blosc2_pco::cparams(&set.dtype, self.level).expect("numbers");
        }
        // Only pcodec has to know the type.
        let _ = set;
        CParams::new().codec(self.codec).level(self.level).filters(&self.filters)
    }

    #[cfg(feature = "peers")]
    fn is_pco(&self) -> bool {
        self.codec.code() == blosc2_pco::CODE
    }

    pub fn array(&self, set: &Set, target: impl Into<blosc2::Target>) -> NDArray {
        let mut builder = NDArray::builder().chunk_shape(&set.chunks[..]).target(target);
        if self.is_one_block {
            builder = builder.block_shape(&set.chunks[..]);
        }
        let builder = builder.cparams(self.params(set).threads(Threads::new(1)));
        let builder = builder.dtype(&set.dtype, set.itemsize);
        builder.from_slice(RawItems(&set.items[..]), &set.shape[..]).expect("an array")
    }
}

impl Library for Ours {
    fn name(&self) -> &'static str {
        "blosc2"
    }

    fn setting(&self) -> String {
        #[cfg(feature = "peers")]
        if self.is_pco() {
            return format!("{} {}", self.codec, self.level);
        }
        let filters: Vec<String> = self.filters.iter().map(Filter::to_string).collect();
        let filters = if filters.is_empty() { "none".to_owned() } else { filters.join("+") };
        let blocks = if self.is_one_block { " one block" } else { "" };
        format!("{} {} {filters}{blocks}", self.codec, self.level)
    }

    fn is_default(&self) -> bool {
        self.setting() == Self::default_settings().setting()
    }

    fn write(&self, set: &Set, path: &Path) {
        drop(self.array(set, path));
    }

    fn open<'a>(&self, _: &'a Set, path: &Path, threads: usize) -> Box<dyn Reader + 'a> {
        let mut array = NDArray::open(path).expect("an array");
        array.set_dparams(DParams::new().threads(Threads::new(threads)));
        Box::new(Open(array))
    }
}

struct Open(NDArray);

impl Reader for Open {
    fn all(&mut self) -> Items {
        Items::Bytes(self.0.read::<RawItems>(..).expect("items").0)
    }

    fn part(&mut self, part: &Part) -> Option<Vec<u8>> {
        Some(self.0.read::<RawItems>(&part[..]).expect("items").0)
    }
}
