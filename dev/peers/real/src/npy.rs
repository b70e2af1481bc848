//! A file of NumPy, compressed as a whole with Zstandard.

use std::fs;
use std::path::Path;

use crate::library::{Items, Library, Reader};
use crate::set::{Part, Set};

#[derive(Debug)]
pub struct Npy(pub i32);

impl Library for Npy {
    fn name(&self) -> &'static str {
        "npy.zst"
    }

    fn setting(&self) -> String {
        format!("zstd {}", self.0)
    }

    fn is_default(&self) -> bool {
        self.0 == 3
    }

    fn write(&self, set: &Set, path: &Path) {
        let compressed = zstd::bulk::compress(&set.items, self.0).expect("compressed items");
        fs::write(path, compressed).expect("a file");
    }

    fn open<'a>(&self, set: &'a Set, path: &Path, _: usize) -> Box<dyn Reader + 'a> {
        Box::new(Open(fs::read(path).expect("a file"), set))
    }

    fn has_threads(&self) -> bool {
        false
    }
}

struct Open<'a>(Vec<u8>, &'a Set);

impl Reader for Open<'_> {
    fn all(&mut self) -> Items {
        Items::Bytes(zstd::bulk::decompress(&self.0, self.1.items.len()).expect("items"))
    }

    fn part(&mut self, _: &Part) -> Option<Vec<u8>> {
        None
    }
}
