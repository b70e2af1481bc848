//! Encoding and decoding of chunks.

use std::fmt;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use blosc2::limits::default_max_read;
use blosc2::{CParams, Check, Chunk, ChunkRef, Compressor, DParams, Decompressor};
use blosc2_format::chunk::{EXTENDED_HEADER_LEN, MIN_HEADER_LEN};
use zarrs::array::codec::api::{
    ArrayBytesRaw, BytesRepresentation, CodecError, InvalidBytesLengthError,
};
use zarrs::plugin::PluginCreateError;

/// Encodes and decodes chunks with the same parameters, on any number of threads at the same time.
#[derive(Debug)]
pub(crate) struct Coder {
    /// The size of the header of the chunks that this coder writes.
    pub(crate) header_len: usize,
    /// The number of threads for each chunk.
    pub(crate) threads: usize,
    compressors: Pool<Compressor>,
    decompressors: Pool<Decompressor>,
}

impl Coder {
    pub(crate) fn new(params: &CParams) -> Result<Self, PluginCreateError> {
        let refuse = |error: blosc2::Error| PluginCreateError::Other(error.to_string());
        let compressor = Compressor::new(params).map_err(refuse)?;
        let decompressor =
            Decompressor::new(DParams::new().threads(params.threads)).map_err(refuse)?;
        Ok(Self {
            header_len: if params.blosc1 { MIN_HEADER_LEN } else { EXTENDED_HEADER_LEN },
            threads: params.threads.count(),
            compressors: Pool::new(compressor),
            decompressors: Pool::new(decompressor),
        })
    }

    pub(crate) fn encode(&self, data: &[u8]) -> Result<Vec<u8>, CodecError> {
        let chunk = self.compressors.with(|compressor| compressor.compress(data));
        chunk.map(Chunk::into_bytes).map_err(failed)
    }

    pub(crate) fn decode(
        &self,
        bytes: &[u8],
        decoded: &BytesRepresentation,
    ) -> Result<Vec<u8>, CodecError> {
        let chunk = open(bytes, decoded)?;
        self.decompressors.with(|decompressor| decompressor.decompress(&chunk)).map_err(failed)
    }

    /// Decodes these ranges of the data of a chunk. A block is decompressed once, however many ranges it contains.
    pub(crate) fn decode_ranges(
        &self,
        chunk: &ChunkRef<'_>,
        ranges: &[Range<usize>],
    ) -> Result<Vec<ArrayBytesRaw<'static>>, CodecError> {
        let mut sorted: Vec<&Range<usize>> =
            ranges.iter().filter(|range| !range.is_empty()).collect();
        sorted.sort_unstable_by_key(|range| range.start);
        let len = chunk.blocksize().unwrap_or(chunk.nbytes()).max(1);
        let mut runs: Vec<Range<usize>> = Vec::new();
        for range in sorted {
            match runs.last_mut() {
                // In the last block of the run, or in the next one.
                Some(run) if range.start / len <= (run.end - 1) / len + 1 => {
                    run.end = run.end.max(range.end);
                }
                _ => runs.push(range.clone()),
            }
        }
        let decode = |run: &Range<usize>| {
            self.decompressors.with(|each| each.items::<u8>(chunk, run.clone())).map_err(failed)
        };
        if let ([range], [_]) = (ranges, &runs[..]) {
            return Ok(vec![decode(range)?.into()]);
        }
        let decoded: Vec<Vec<u8>> = runs.iter().map(decode).collect::<Result<_, _>>()?;
        let part = |range: &Range<usize>| {
            if range.is_empty() {
                return Vec::new().into();
            }
            // The runs are sorted and contain all ranges that are not empty.
            let run = runs.partition_point(|run| run.start <= range.start) - 1;
            let start = range.start - runs[run].start;
            decoded[run][start..start + range.len()].to_vec().into()
        };
        Ok(ranges.iter().map(part).collect())
    }
}

/// Parses the header of a chunk, and checks the size of its data before memory is allocated for it.
pub(crate) fn open<'a>(
    bytes: &'a [u8],
    decoded: &BytesRepresentation,
) -> Result<ChunkRef<'a>, CodecError> {
    let chunk = ChunkRef::validated(bytes, Check::Header).map_err(failed)?;
    check_len(chunk.nbytes(), chunk.cbytes(), decoded)?;
    Ok(chunk)
}

/// Checks the decoded size that a chunk of `cbytes` bytes declares.
pub(crate) fn check_len(
    nbytes: usize,
    cbytes: usize,
    decoded: &BytesRepresentation,
) -> Result<(), CodecError> {
    let found = nbytes as u64;
    match *decoded {
        BytesRepresentation::FixedSize(len) if found != len => {}
        BytesRepresentation::BoundedSize(len) if found > len => {}
        BytesRepresentation::UnboundedSize if found > default_max_read(cbytes as u64) => {
            let detail = format!(
                "cannot decode a chunk of items of variable length: \
                it declares {nbytes} bytes of data in {cbytes} bytes"
            );
            return Err(CodecError::Other(detail));
        }
        _ => return Ok(()),
    }
    let expected = decoded.size().and_then(|len| usize::try_from(len).ok()).unwrap_or(usize::MAX);
    Err(InvalidBytesLengthError::new(nbytes, expected).into())
}

pub(crate) fn failed(error: blosc2::Error) -> CodecError {
    CodecError::Other(error.to_string())
}

/// Contexts that are not in use. The creation of one can take longer than its use for a small chunk.
struct Pool<T> {
    /// The first one is never used: it is the model of the others.
    free: Mutex<Vec<T>>,
}

impl<T: Clone> Pool<T> {
    fn new(model: T) -> Self {
        Self { free: Mutex::new(vec![model]) }
    }

    fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        let mut free = self.free();
        let mut context = match &free[..] {
            [model] => model.clone(),
            _ => free.pop().unwrap_or_else(|| unreachable!("there are at least two")),
        };
        drop(free);
        let result = work(&mut context);
        self.free().push(context);
        result
    }

    fn free(&self) -> MutexGuard<'_, Vec<T>> {
        // Nothing panics while it is locked.
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> fmt::Debug for Pool<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").finish_non_exhaustive()
    }
}
