//! The crate `zarrs`: Zarr V3 in a folder.

use std::path::Path;
use std::sync::Arc;

use rayon::{ThreadPool, ThreadPoolBuilder};
use serde_json::{Value, json};
use zarrs::array::{Array, ArrayBytes, ArraySubset, CodecOptions};
use zarrs::filesystem::FilesystemStore;
use zarrs::metadata::ArrayMetadata;

use crate::library::{Items, Library, Reader};
use crate::set::{Part, Set};

#[derive(Debug)]
pub struct Zarrs {
    name: String,
    codecs: Value,
    is_default: bool,
}

impl Zarrs {
    /// The settings for a set.
    pub fn all(set: &Set) -> Vec<Self> {
        let bytes = || {
            let endian = json!({"name": "bytes", "configuration": {"endian": "little"}});
            if set.itemsize > 1 && set.fields.is_empty() {
                endian
            } else {
                json!({"name": "bytes"})
            }
        };
        let mut all = Vec::new();
        let mut add = |name: String, codecs: Value| {
            let is_default = name == "zstd 3";
            all.push(Self { name, codecs, is_default });
        };
        for (codec, level) in [("lz4", 5), ("zstd", 1), ("zstd", 5), ("zstd", 9)] {
            for shuffle in ["shuffle", "bitshuffle"] {
                let blosc = json!({"name": "blosc", "configuration": {
                    "cname": codec, "clevel": level, "shuffle": shuffle, "typesize": set.itemsize, "blocksize": 0,
                }});
                add(format!("Blosc {codec} {level} {shuffle}"), json!([bytes(), blosc]));
            }
        }
        for level in [1, 3, 9] {
            let configuration = json!({"level": level, "checksum": false});
            let zstd = json!({"name": "zstd", "configuration": configuration});
            add(format!("zstd {level}"), json!([bytes(), zstd]));
        }
        // Pcodec compresses numbers of two or more bytes.
        if set.itemsize > 1 && set.fields.is_empty() {
            for level in [4, 8] {
                let pcodec = json!({"name": "numcodecs.pcodec", "configuration": {
                    "level": level, "mode_spec": "auto", "delta_spec": "auto", "paging_spec": "equal_pages_up_to",
                    "delta_encoding_order": null, "equal_pages_up_to": 262_144,
                }});
                add(format!("pcodec {level}"), json!([pcodec]));
            }
        }
        all
    }

    /// The metadata of the array.
    pub fn metadata(&self, set: &Set) -> ArrayMetadata {
        let (kind, fill) = match &set.dtype[1..] {
            "f2" => ("float16".to_owned(), json!(0.0)),
            "f4" => ("float32".to_owned(), json!(0.0)),
            "f8" => ("float64".to_owned(), json!(0.0)),
            "u1" => ("uint8".to_owned(), json!(0)),
            "i2" => ("int16".to_owned(), json!(0)),
            "u2" => ("uint16".to_owned(), json!(0)),
            "i4" => ("int32".to_owned(), json!(0)),
            _ => (format!("r{}", 8 * set.itemsize), json!(vec![0; set.itemsize])),
        };
        let metadata = json!({
            "zarr_format": 3, "node_type": "array", "shape": set.shape, "data_type": kind, "fill_value": fill,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": set.chunks}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "codecs": self.codecs, "attributes": {},
        });
        serde_json::from_value(metadata).expect("metadata of an array")
    }
}

pub fn subset(part: &Part) -> ArraySubset {
    ArraySubset::new_with_ranges(part)
}

/// The bytes of items of one size.
pub fn fixed(bytes: ArrayBytes<'static>) -> Vec<u8> {
    bytes.into_fixed().expect("items of one size").into_owned()
}

fn pool(threads: usize) -> ThreadPool {
    ThreadPoolBuilder::new().num_threads(threads).build().expect("threads")
}

impl Library for Zarrs {
    fn name(&self) -> &'static str {
        "zarrs"
    }

    fn setting(&self) -> String {
        self.name.clone()
    }

    fn is_default(&self) -> bool {
        self.is_default
    }

    fn write(&self, set: &Set, path: &Path) {
        let store = Arc::new(FilesystemStore::new(path).expect("a folder"));
        let array = Array::new_with_metadata(store, "/a", self.metadata(set)).expect("an array");
        array.store_metadata().expect("metadata");
        let options = CodecOptions::default().with_concurrent_target(1);
        let items = ArrayBytes::new_flen(&set.items[..]);
        pool(1).install(|| {
            array.store_array_subset_opt(&array.subset_all(), items, &options).expect("items");
        });
    }

    fn open<'a>(&self, _: &'a Set, path: &Path, threads: usize) -> Box<dyn Reader + 'a> {
        let store = Arc::new(FilesystemStore::new(path).expect("a folder"));
        let array = Array::open(store, "/a").expect("an array");
        let options = CodecOptions::default().with_concurrent_target(threads);
        Box::new(Open { array, options, pool: pool(threads) })
    }
}

struct Open {
    array: Array<FilesystemStore>,
    options: CodecOptions,
    pool: ThreadPool,
}

impl Open {
    fn read(&self, subset: &ArraySubset) -> Vec<u8> {
        let read = || self.array.retrieve_array_subset_opt(subset, &self.options);
        fixed(self.pool.install(read).expect("items"))
    }
}

impl Reader for Open {
    fn all(&mut self) -> Items {
        Items::Bytes(self.read(&self.array.subset_all()))
    }

    fn part(&mut self, part: &Part) -> Option<Vec<u8>> {
        Some(self.read(&subset(part)))
    }
}
