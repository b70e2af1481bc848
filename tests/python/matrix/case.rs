//! One array or super-chunk, written by Rust or Python, and its expected content.

use std::fs;
use std::path::Path;

use blosc2::array::CacheSizes;
use blosc2::super_chunk::Metalayers;
use blosc2::{CParams, Filter, NDArray, OpenOptions, SChunk, Special, SplitMode};
use serde_json::{Value, json};

use super::metadata::Layer;
use crate::common::assert_same;

/// Its storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Place {
    File,
    Directory,
    /// Memory, passed on as a contiguous frame.
    Cframe,
    /// A frame in memory.
    Buffer,
}

pub(crate) const PLACES: [Place; 4] = [Place::File, Place::Directory, Place::Cframe, Place::Buffer];

impl Place {
    fn in_memory(self) -> bool {
        matches!(self, Self::Cframe | Self::Buffer)
    }
}

/// How it is created: from items, or by one of the functions for an array of one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Made {
    Items,
    Zeros,
    Full,
    Nans,
    Uninit,
    Empty,
}

impl Made {
    /// The name of Python's function.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Items => "items",
            Self::Zeros => "zeros",
            Self::Full => "full",
            Self::Nans => "nans",
            Self::Uninit => "uninit",
            Self::Empty => "empty",
        }
    }

    /// What chunks are made of.
    fn special(self) -> Option<Special> {
        match self {
            Self::Items => None,
            // C's "empty" are zeros.
            Self::Zeros | Self::Empty => Some(Special::Zeros),
            Self::Full => Some(Special::Value),
            Self::Nans => Some(Special::Nan),
            Self::Uninit => Some(Special::Uninit),
        }
    }
}

/// What is particular to arrays and to super-chunks.
#[derive(Debug, Clone)]
pub(crate) enum Shape {
    Array {
        dtype: &'static str,
        shape: Vec<u64>,
        /// Automatic, until it is written.
        chunks: Option<Vec<u64>>,
        blocks: Option<Vec<u64>>,
    },
    Chunks {
        size: usize,
    },
}

#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) typesize: usize,
    pub(crate) shape: Shape,
    /// Python's defaults where there are none.
    pub(crate) params: Option<CParams>,
    pub(crate) place: Place,
    pub(crate) made: Made,
    /// All items.
    pub(crate) bytes: Vec<u8>,
    pub(crate) meta: Vec<Layer>,
    pub(crate) vlmeta: Vec<Layer>,
}

impl Case {
    /// For Python, which finds the items behind those that are there.
    pub(crate) fn to_json(&self, items: &mut Vec<u8>) -> Value {
        let start = items.len();
        items.extend(&self.bytes);
        let texts = |layers: &[Layer]| -> Vec<Value> {
            layers.iter().map(|(name, value)| json!([name, value.text])).collect()
        };
        let mut described = json!({
            "name": self.name,
            "typesize": self.typesize,
            "cparams": self.params.as_ref().map(|params| for_python(params, self.typesize)),
            "place": format!("{:?}", self.place).to_lowercase(),
            "made": self.made.name(),
            "items": [start, items.len()],
            "meta": texts(&self.meta),
            "vlmeta": texts(&self.vlmeta),
        });
        match &self.shape {
            Shape::Array { dtype, shape, chunks, blocks } => {
                described["kind"] = "array".into();
                described["dtype"] = (*dtype).into();
                described["shape"] = json!(shape);
                described["chunks"] = json!(chunks);
                described["blocks"] = json!(blocks);
            }
            Shape::Chunks { size } => {
                described["kind"] = "schunk".into();
                described["chunksize"] = (*size).into();
                described["nitems"] = (self.bytes.len() / self.typesize).into();
            }
        }
        described
    }

    fn is_lossy(&self) -> bool {
        let lossy = |filter: &Filter| matches!(filter, Filter::TruncPrec(_) | Filter::IntTrunc(_));
        self.params.iter().any(|params| params.filters.iter().any(lossy))
    }

    /// Writes it, and records the automatic parameters and the output of lossy filters.
    pub(crate) fn write(&mut self, folder: &Path, caches: CacheSizes) {
        let path = folder.join(&self.name);
        match self.shape {
            Shape::Array { .. } => {
                let array = self.make_array(&path, caches);
                self.bytes = array.bytes().read(..).unwrap();
                if let Shape::Array { chunks, blocks, .. } = &mut self.shape {
                    *chunks = Some(array.chunks().to_vec());
                    *blocks = Some(array.blocks().to_vec());
                }
                self.finish(array.into_schunk(), &path);
            }
            Shape::Chunks { size } => {
                let schunk = self.make_schunk(&path, size);
                self.bytes = all(&schunk);
                self.finish(schunk, &path);
            }
        }
    }

    fn make_array(&self, path: &Path, caches: CacheSizes) -> NDArray {
        let Shape::Array { dtype, shape, chunks, blocks } = &self.shape else { unreachable!() };
        let mut builder = NDArray::builder().cache_sizes(caches);
        if let Some(chunks) = chunks {
            builder = builder.chunks(chunks);
        }
        if let Some(blocks) = blocks {
            builder = builder.blocks(blocks);
        }
        if let Some(params) = &self.params {
            builder = builder.cparams(params.clone());
        }
        for (name, value) in &self.meta {
            builder = builder.meta(name, &value.bytes());
        }
        builder = match self.place {
            Place::File => builder.file(path),
            Place::Directory => builder.directory(path),
            Place::Cframe => builder,
            Place::Buffer => builder.in_memory_frame(),
        };
        let made = match self.made.special() {
            None => builder.from_bytes(&self.bytes, shape, dtype, self.typesize),
            Some(Special::Value) => builder.full_bytes(&self.bytes[..self.typesize], shape, dtype),
            Some(special) => builder.special(special, shape, dtype, self.typesize),
        };
        made.unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    fn make_schunk(&self, path: &Path, size: usize) -> SChunk {
        let mut options = OpenOptions::new().create_new(true).typesize(self.typesize);
        options = options.directory(self.place == Place::Directory);
        options = options.cparams(self.params.clone().unwrap_or_default());
        for (name, value) in &self.meta {
            options = options.meta(name, &value.bytes());
        }
        let made = match self.place {
            Place::Cframe => options.create_new(false).in_memory(),
            Place::Buffer => options.create_new(false).in_memory_frame(),
            _ => options.open(path),
        };
        let mut schunk = made.unwrap_or_else(|error| panic!("{}: {error}", self.name));
        match self.made.special() {
            None => {
                for chunk in self.bytes.chunks(size) {
                    schunk.append(chunk).unwrap();
                }
            }
            Some(special) => {
                let items = self.bytes.len() / self.typesize;
                schunk.fill(special, items as u64, size / self.typesize).unwrap();
            }
        }
        schunk
    }

    fn finish(&self, mut schunk: SChunk, path: &Path) {
        for (name, value) in &self.vlmeta {
            schunk.vlmeta_mut().set_value(name, &value.value()).unwrap();
        }
        if self.place.in_memory() {
            fs::write(path, schunk.into_cframe().unwrap()).unwrap();
        }
    }

    /// Asserts that the file that Python wrote, and its report, are as expected.
    pub(crate) fn check(&self, folder: &Path, found: &Value) {
        let path = folder.join(&self.name);
        let schunk = match self.place.in_memory() {
            true => SChunk::from_cframe(fs::read(path).unwrap()),
            false => SChunk::open(path),
        };
        let mut schunk = schunk.unwrap();
        let is_contiguous = schunk.file_format().map(|format| format.contiguous);
        assert_eq!(is_contiguous, Some(self.place != Place::Directory));
        if let Shape::Array { dtype, shape, .. } = &self.shape {
            let array = NDArray::from_schunk(schunk).unwrap();
            assert_eq!(array.shape(), shape);
            assert_eq!(json!(array.chunks()), found["chunks"]);
            assert_eq!(json!(array.blocks()), found["blocks"]);
            assert_eq!((array.dtype_str(), found["dtype"].as_str()), (Some(*dtype), Some(*dtype)));
            let expected = match self.is_lossy() {
                true => self.what_is_left(&array),
                false => self.bytes.clone(),
            };
            assert_same(&array.bytes().read(..).unwrap(), &expected, &self.name);
            schunk = array.into_schunk();
        } else if let Shape::Chunks { size } = self.shape {
            assert!(schunk.chunksize() == size || schunk.nchunks() == 0);
            assert_eq!(schunk.nchunks(), self.bytes.len().div_ceil(size));
            assert_same(&all(&schunk), &self.bytes, &self.name);
        }
        self.check_header(&schunk);
        check_layers(schunk.meta(), &self.meta, matches!(self.shape, Shape::Array { .. }));
        check_layers(schunk.vlmeta(), &self.vlmeta, false);
    }

    /// What lossy filters leave of the items in chunks as these.
    fn what_is_left(&self, array: &NDArray) -> Vec<u8> {
        let builder = NDArray::builder().chunks(array.chunks()).blocks(array.blocks());
        let builder = builder.cparams(self.params.clone().unwrap());
        let dtype = array.dtype_str().unwrap();
        let twin = builder.from_bytes(&self.bytes, array.shape(), dtype, self.typesize).unwrap();
        twin.bytes().read(..).unwrap()
    }

    /// How the chunks were made.
    fn check_header(&self, schunk: &SChunk) {
        assert_eq!(schunk.typesize(), self.typesize);
        if schunk.nchunks() > 0 {
            let found = schunk.chunk_info(0).unwrap().special;
            // Items may all be the same too.
            assert!(found == self.made.special() || self.made == Made::Items, "{found:?}");
        }
        if let Some(params) = &self.params {
            let found = schunk.cparams();
            let expected = (params.codec, params.level, params.split);
            assert_eq!((found.codec, found.level, found.split), expected);
            assert_eq!(found.filters, params.filters);
        }
    }
}

/// The bytes of all chunks.
fn all(schunk: &SChunk) -> Vec<u8> {
    schunk.iter_chunks::<u8>().flat_map(|chunk| chunk.unwrap()).collect()
}

fn check_layers(found: Metalayers<'_>, layers: &[Layer], is_array: bool) {
    let own = if is_array { &["b2nd"][..] } else { &[] };
    let names = own.iter().copied().chain(layers.iter().map(|(name, _)| &**name));
    assert_eq!(found.names(), names.collect::<Vec<_>>());
    for (name, value) in layers {
        assert_eq!(found.get(name).unwrap().unwrap(), value.bytes(), "{name}: {}", value.text);
        assert_eq!(found.get_value(name).unwrap(), Some(value.plain()), "{name}");
    }
}

/// Parameters as Python takes them.
pub(crate) fn for_python(params: &CParams, typesize: usize) -> Value {
    let split = match params.split {
        SplitMode::Always => 1,
        SplitMode::Never => 2,
        SplitMode::Auto => 3,
        _ => 4,
    };
    let meta = |filter: &Filter| match filter {
        Filter::ByteDelta(0) => typesize as u8,
        filter => filter.meta(),
    };
    json!({
        "codec": params.codec.code(), "clevel": params.level, "splitmode": split,
        "use_dict": params.dictionary, "nthreads": params.threads.count(),
        "filters": params.filters.iter().map(|filter| filter.code()).collect::<Vec<_>>(),
        "filters_meta": params.filters.iter().map(meta).collect::<Vec<_>>(),
    })
}
