//! Limits of memory: of objects inside other objects, and of data that is written, because its readers have limits.

use crate::blosc2::limits::default_max_read;
#[cfg(feature = "c")]
use crate::blosc2::{DParams, ErrorKind};
use crate::blosc2::{Limits, OpenOptions, Result, SChunk, Value};

use crate::tag::error;

/// The options for opening a frame with limits. With `None`, `max_read` has its default.
pub(crate) fn options(limits: Limits, max_read: Option<u64>) -> OpenOptions {
    let options = OpenOptions::new().limits(limits);
    match max_read {
        None => options,
        Some(max) => options.max_read(max),
    }
}

/// The options for opening a frame inside a super-chunk or beside it, which has the same limits, and is read by as many
/// threads.
pub(crate) fn options_of(schunk: &SChunk) -> OpenOptions {
    let info = schunk.info();
    let options = options(info.limits, schunk.max_read());
    #[cfg(feature = "c")]
    let options = options.dparams(DParams::new().threads(info.dparams.threads));
    options
}

/// A copy of a super-chunk in memory, for changing its metalayers; a new one without data if there is none, with the chunk
/// size of Python.
#[cfg(feature = "c")]
pub(crate) fn copy_or_new(schunk: Option<&SChunk>) -> Result<SChunk> {
    match schunk {
        Some(schunk) => options_of(schunk).write(true).open(schunk.to_cframe()?),
        None => OpenOptions::new().chunksize(16 << 20).create_new(true).open(Vec::new()),
    }
}

/// The maximum memory of data that is read at once from a super-chunk, if `stored` bytes are stored.
pub(crate) fn max_read_of(schunk: &SChunk, stored: u64) -> u64 {
    schunk.max_read().unwrap_or_else(|| default_max_read(stored))
}

/// The maximum bytes of memory of the rows of a batch, unless a single row takes more. Far below the limit of readers;
/// small in unit tests, which write more.
#[cfg(feature = "c")]
pub(crate) const MAX_BATCH: u64 = if cfg!(test) { 1 << 20 } else { 256 << 20 };

/// The maximum memory that a reader counts for values that are stored in `nbytes` bytes. `count` returns their number.
#[cfg(feature = "c")]
pub(crate) fn memory_of(nbytes: u64, count: impl FnOnce() -> u64) -> u64 {
    // Each value takes at least one byte, so that the values in a few bytes need not be counted.
    let most = nbytes.saturating_mul(Value::MEMORY);
    if most <= default_max_read(0) {
        return most;
    }
    count().saturating_mul(Value::MEMORY).max(nbytes)
}

/// The maximum memory of values that are decoded from `nbytes` bytes of the chunk `index`.
pub(crate) fn max_values_memory(schunk: &SChunk, index: usize, nbytes: usize) -> Result<u64> {
    // The values in a few bytes are allowed for any chunk.
    let is_small = nbytes as u64 <= default_max_read(0) / Value::MEMORY;
    let stored = if is_small { 0 } else { schunk.chunk_info(index)?.cbytes as u64 };
    Ok(max_read_of(schunk, stored))
}

/// Decodes a value of at most `max_memory` bytes from the content of `place`.
pub(crate) fn decode(
    schunk: &SChunk,
    bytes: &[u8],
    max_memory: u64,
    place: impl FnOnce() -> String,
) -> Result<Value> {
    Value::from_msgpack_within(bytes, max_memory).map_err(|fault| {
        let fault = crate::blosc2::Error::from(fault);
        error(schunk, fault.kind(), "read a value", format!("{}: {fault}", place()))
    })
}

/// Checks data that readers can only read as a whole: whether readers with default limits, or with the limit of this
/// handle, allow its `memory` bytes of memory for its `stored` bytes.
#[cfg(feature = "c")]
pub(crate) fn check_readable(schunk: &SChunk, doing: &str, memory: u64, stored: u64) -> Result<()> {
    let max = default_max_read(stored).max(schunk.max_read().unwrap_or(0));
    if memory <= max {
        return Ok(());
    }
    let detail = format!(
        "it takes {memory} bytes of memory to read, but by default a reader allows {max} bytes for {stored} stored bytes"
    );
    Err(error(schunk, ErrorKind::TooLarge, doing, detail))
}

#[cfg(all(test, feature = "c"))]
mod tests {
    use crate::blosc2::Target;

    use super::*;

    #[test]
    fn data_is_refused_as_readers_refuse_it() {
        let schunk = OpenOptions::new().open(Target::memory()).unwrap();
        let check = |memory, stored| {
            check_readable(&schunk, "write", memory, stored).map_err(|error| error.kind())
        };
        assert_eq!(check(1 << 30, 0), Ok(()));
        assert_eq!(check((1 << 30) + 1, 100), Err(ErrorKind::TooLarge));
        assert_eq!(check((1 << 30) + 256, (4 << 20) + 1), Ok(()));
        assert_eq!(check((1 << 30) + 257, (4 << 20) + 1), Err(ErrorKind::TooLarge));
        let schunk = OpenOptions::new().max_read(2 << 30).open(Target::memory()).unwrap();
        check_readable(&schunk, "write", 2 << 30, 0).unwrap();
        check_readable(&schunk, "write", (2 << 30) + 1, 0).unwrap_err();
        // The values in a few bytes are not counted.
        assert_eq!(memory_of(1 << 24, || unreachable!()), 1 << 30);
        assert_eq!(memory_of((1 << 24) + 1, || 5), (1 << 24) + 1);
        assert_eq!(memory_of((1 << 24) + 1, || 1 << 20), 64 << 20);
    }
    #[test]
    fn values_take_no_more_memory_than_reads_allow() {
        let mut schunk = OpenOptions::new().open(Target::memory()).unwrap();
        schunk.append(&vec![0xc0u8; (1 << 24) + 1]).unwrap();
        let stored = schunk.chunk_info(0).unwrap().cbytes as u64;
        assert_eq!(max_values_memory(&schunk, 0, 1 << 24).unwrap(), 1 << 30);
        assert_eq!(max_values_memory(&schunk, 0, (1 << 24) + 1).unwrap(), default_max_read(stored));
        assert_eq!(
            max_values_memory(&schunk, 1, 1 << 25).unwrap_err().kind(),
            ErrorKind::OutOfBounds
        );
        let limited = OpenOptions::new().max_read(130).open(Target::memory()).unwrap();
        let max = max_values_memory(&limited, 0, 9).unwrap();
        assert_eq!(max, 130);
        let read = |bytes: &[u8]| decode(&limited, bytes, max, || "chunk 0".into());
        assert_eq!(read(b"\x91\x01").unwrap(), Value::List(vec![1.into()]));
        for (bytes, kind, text) in [
            (&b"\x92\x01\x02"[..], ErrorKind::TooLarge, "OpenOptions::max_read"),
            (b"\xc1", ErrorKind::InvalidData, "chunk 0: "),
        ] {
            let error = read(bytes).unwrap_err();
            assert_eq!(error.kind(), kind);
            assert!(error.to_string().contains(text), "{error}");
        }
    }
}
