//! One buffer to one chunk, and back.

use crate::checked::CheckedChunk;
use crate::context::{Compressor, Decompressor};
use crate::element::{Element, as_bytes};
use crate::{CParams, DParams, Error, ErrorKind, Result};

/// Compresses items to one chunk.
///
/// The chunk's typesize is that of `T` unless `params` has one. C's `blosc2_compress_ctx`, Python's
/// `compress2`.
///
/// # Errors
/// - [`ErrorKind::InvalidArgument`]: a parameter out of range;
/// - [`ErrorKind::Unsupported`]: a codec or filter that this build does not have;
/// - [`ErrorKind::TooLarge`]: more than [`MAX_CHUNK_LEN`](crate::MAX_CHUNK_LEN) bytes.
///
/// ```
/// use blosc2::CParams;
///
/// let data: Vec<i32> = (0..10_000).collect();
/// let chunk = blosc2::compress(&data, &CParams::default())?;
/// assert!(chunk.len() < 4_000);
/// assert_eq!(blosc2::decompress::<i32>(&chunk)?, data);
/// # Ok::<(), blosc2::Error>(())
/// ```
pub fn compress<T: Element>(items: &[T], params: &CParams) -> Result<Vec<u8>> {
    Compressor::new(params.resolve(size_of::<T>(), false)?)?.compress(as_bytes(items))
}

/// Decompresses a chunk to items.
///
/// A chunk does not say what its items are, so any type goes whose size divides the data. Chunks of
/// Blosc1 are read too. C's `blosc2_decompress_ctx`, Python's `decompress2`.
///
/// # Errors
/// - [`ErrorKind::InvalidData`]: not a chunk, cut short, or broken;
/// - [`ErrorKind::Unsupported`]: made with a codec or filter that this build does not have;
/// - [`ErrorKind::TypeMismatch`]: the data is no whole number of items.
///
/// ```
/// use blosc2::ErrorKind;
///
/// let error = blosc2::decompress::<u8>(b"no chunk at all, just some text").unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::InvalidData);
/// ```
pub fn decompress<T: Element>(chunk: &[u8]) -> Result<Vec<T>> {
    let chunk = CheckedChunk::new(chunk)?;
    to_items(chunk.nbytes(), |target| {
        Decompressor::new(&DParams::default())?.decompress(&chunk, target)
    })
}

/// A vector of items filled with `len` bytes by `fill`, which initialises all of them on success.
pub(crate) fn to_items<T: Element>(
    len: usize,
    fill: impl FnOnce(&mut [std::mem::MaybeUninit<u8>]) -> Result<()>,
) -> Result<Vec<T>> {
    let doing = "decompress a chunk";
    let size = size_of::<T>();
    if !len.is_multiple_of(size) {
        let detail = format!("{len} bytes are no whole number of {} ({size} bytes)", T::DTYPE);
        return Err(Error::new(ErrorKind::TypeMismatch, doing, detail));
    }
    let mut items: Vec<T> = Vec::new();
    items.try_reserve_exact(len / size).map_err(|error| {
        Error::new(ErrorKind::OutOfMemory, doing, format_args!("{len} bytes: {error}"))
    })?;
    let spare = items.spare_capacity_mut();
    // SAFETY: the spare capacity holds at least `len` bytes, which may be uninitialised here too.
    let target = unsafe { std::slice::from_raw_parts_mut(spare.as_mut_ptr().cast(), len) };
    fill(target)?;
    // SAFETY: `fill` has initialised all bytes, and any bytes are valid items.
    unsafe { items.set_len(len / size) };
    Ok(items)
}
