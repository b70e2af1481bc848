//! Sorted runs of items, compressed in memory or in a temporary file.

use std::array;
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;

use blosc2_format::ReadAt;
use parking_lot::Mutex;

use crate::support::memory::reserve;
use crate::{
    CParams, ChunkRef, Codec, Compressor, DParams, Decompressor, Doing, Element, Error, Result,
};

pub(super) const SORT: &str = "sort an array";

/// A key, and the values that move together with it.
pub(super) type Record<T, const N: usize> = (T, [i64; N]);

/// Consecutive records of a run, which are compressed together.
#[derive(Debug)]
pub(super) struct Part<T> {
    pub(super) first: T,
    count: usize,
    /// The position of the compressed keys, their length, and the length of the compressed values after them.
    at: u64,
    keys: usize,
    values: usize,
}

impl<T> Part<T> {
    pub(super) fn count(&self) -> usize {
        self.count
    }
}

/// The parts of a sequence of sorted records.
pub(super) type Run<T> = Vec<Part<T>>;

pub(super) struct Spill {
    /// `None` for memory.
    file: Option<File>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    end: u64,
    /// The parts in memory. The position of a part is its index.
    parts: Vec<Arc<Vec<u8>>>,
}

impl Spill {
    /// Creates the place of some runs: a file in a directory, which is removed with this value, or memory.
    pub(super) fn new(directory: Option<&Path>) -> Result<Self> {
        let file = directory.map(tempfile::tempfile_in).transpose();
        let file = file.map_err(|error| Error::of_io(SORT, error))?;
        Ok(Self { file, state: Mutex::default() })
    }

    fn put(&self, bytes: Vec<u8>) -> Result<u64> {
        let mut state = self.state.lock();
        let Some(mut file) = self.file.as_ref() else {
            state.parts.push(Arc::new(bytes));
            return Ok(state.parts.len() as u64 - 1);
        };
        // A read at an offset moves the position of the file on some systems.
        file.seek(SeekFrom::Start(state.end)).map_err(|error| Error::of_io(SORT, error))?;
        file.write_all(&bytes).map_err(|error| Error::of_io(SORT, error))?;
        let at = state.end;
        state.end += bytes.len() as u64;
        Ok(at)
    }

    fn with<T, R>(&self, part: &Part<T>, work: impl FnOnce(&[u8]) -> Result<R>) -> Result<R> {
        let Some(file) = &self.file else {
            let bytes = Arc::clone(&self.state.lock().parts[part.at as usize]);
            return work(&bytes);
        };
        let mut bytes = Vec::new();
        reserve(&mut bytes, part.keys + part.values).doing(SORT)?;
        bytes.resize(part.keys + part.values, 0);
        let read = ReadAt::read_exact_at(file, part.at, &mut bytes);
        read.map_err(|error| Error::of_io(SORT, error))?;
        work(&bytes)
    }
}

/// Compresses the parts of runs. Each thread has its own.
pub(super) struct Packer {
    keys: Compressor,
    values: Compressor,
}

impl Packer {
    pub(super) fn new() -> Result<Self> {
        let params = CParams::new().codec(Codec::Lz4).level(1);
        Ok(Self { keys: Compressor::new(&params)?, values: Compressor::new(&params)? })
    }

    pub(super) fn put<T: Element, const N: usize>(
        &mut self,
        records: &[Record<T, N>],
        spill: &Spill,
    ) -> Result<Part<T>> {
        let keys: Vec<T> = records.iter().map(|(key, _)| *key).collect();
        let mut bytes = Vec::new();
        let len = self.keys.compress_append(&keys, &mut bytes)?;
        if N > 0 {
            let values: Vec<i64> = records.iter().flat_map(|(_, values)| *values).collect();
            self.values.compress_append(&values, &mut bytes)?;
        }
        bytes.shrink_to_fit();
        let (count, values) = (records.len(), bytes.len() - len);
        Ok(Part { first: keys[0], count, at: spill.put(bytes)?, keys: len, values })
    }
}

/// Decompresses the parts of runs. Each thread has its own.
pub(super) struct Unpacker(Decompressor);

impl Unpacker {
    pub(super) fn new() -> Result<Self> {
        Ok(Self(Decompressor::new(DParams::new())?))
    }

    pub(super) fn get<T: Element, const N: usize>(
        &mut self,
        part: &Part<T>,
        spill: &Spill,
    ) -> Result<Vec<Record<T, N>>> {
        spill.with(part, |bytes| {
            let (keys, values) = bytes.split_at(part.keys);
            let keys: Vec<T> = self.0.decompress(&ChunkRef::new(keys)?)?;
            let values: Vec<i64> = match N {
                0 => Vec::new(),
                _ => self.0.decompress(&ChunkRef::new(values)?)?,
            };
            let mut values = values.into_iter();
            let mut own = || array::from_fn(|_| values.next().unwrap_or_default());
            Ok(keys.into_iter().map(|key| (key, own())).collect())
        })
    }
}
