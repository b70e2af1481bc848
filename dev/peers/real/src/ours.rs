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
}

impl Ours {
    /// All lossless settings for items of this size.
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
                all.extend(filters.map(|filters| Self { codec, level, filters }));
            }
        }
        all
    }

    pub fn default_settings() -> Self {
        let CParams { codec, level, filters, .. } = CParams::new();
        Self { codec, level, filters }
    }

    pub fn array(&self, set: &Set, target: impl Into<blosc2::Target>) -> NDArray {
        let params = CParams::new().codec(self.codec).level(self.level).filters(&self.filters);
        let builder = NDArray::builder().chunk_shape(&set.chunks[..]).target(target);
        let builder = builder.cparams(params.threads(Threads::new(1)));
        let builder = builder.dtype(&set.dtype, set.itemsize);
        builder.from_slice(RawItems(&set.items[..]), &set.shape[..]).expect("an array")
    }
}

impl Library for Ours {
    fn name(&self) -> &'static str {
        "blosc2"
    }

    fn setting(&self) -> String {
        let filters: Vec<String> = self.filters.iter().map(Filter::to_string).collect();
        let filters = if filters.is_empty() { "none".to_owned() } else { filters.join("+") };
        format!("{} {} {filters}", self.codec, self.level)
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
