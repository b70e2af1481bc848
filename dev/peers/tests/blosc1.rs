//! The C library of Blosc 1 (1.21), in the same program. HDF5 and Zarr use its chunks.

mod cases;

use std::ffi::c_void;
use std::ptr::NonNull;

use blosc_src as c;
use cases::{blosc1_cases, it_reads_ours, its_chunks_are_read};

/// The names of the codecs, by their codes.
const CODECS: [&std::ffi::CStr; 6] = [c"blosclz", c"lz4", c"lz4hc", c"snappy", c"zlib", c"zstd"];

fn compress(
    source: &[u8],
    level: i32,
    shuffle: i32,
    typesize: usize,
    codec: &std::ffi::CStr,
) -> Result<Vec<u8>, String> {
    let mut chunk = vec![0; source.len() + c::BLOSC_MAX_OVERHEAD as usize];
    // SAFETY: the lengths are those of the two buffers, and the name ends in a NUL byte.
    let written = unsafe {
        c::blosc_compress_ctx(
            level,
            shuffle,
            typesize,
            source.len(),
            source.as_ptr().cast(),
            chunk.as_mut_ptr().cast::<c_void>(),
            chunk.len(),
            codec.as_ptr(),
            0,
            1,
        )
    };
    finish(chunk, written)
}

fn decompress(chunk: &[u8]) -> Result<Vec<u8>, String> {
    let mut len = 0;
    // SAFETY: the length is that of the chunk, and `len` can be written.
    let code = unsafe { c::blosc_cbuffer_validate(chunk.as_ptr().cast(), chunk.len(), &mut len) };
    if code < 0 {
        return Err(format!("code {code}"));
    }
    let mut data = vec![0; len];
    let start = data.first_mut().map_or(NonNull::dangling(), NonNull::from);
    // SAFETY: C has seen that the chunk is as long as it says, and there is room for its data.
    let read =
        unsafe { c::blosc_decompress_ctx(chunk.as_ptr().cast(), start.as_ptr().cast(), len, 1) };
    finish(data, read)
}

fn finish(mut bytes: Vec<u8>, returned: i32) -> Result<Vec<u8>, String> {
    bytes.truncate(usize::try_from(returned).map_err(|_| format!("code {returned}"))?);
    Ok(bytes)
}

#[test]
fn its_chunks_are_read_here() {
    its_chunks_are_read(&blosc1_cases(), |case, data| {
        let shuffle = case.filters.first().map_or(0, |filter| filter.code().into());
        let name = CODECS[usize::from(case.codec.code())];
        let chunk = compress(data, case.level.into(), shuffle, case.typesize, name)?;
        match decompress(&chunk) {
            Ok(read) if read == data => Ok(chunk),
            _ => Err("it does not read its own".to_owned()),
        }
    });
}

#[test]
fn it_reads_our_chunks() {
    it_reads_ours(&blosc1_cases(), |_| false, decompress);
}
