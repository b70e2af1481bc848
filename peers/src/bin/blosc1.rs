//! The C library of Blosc 1 (1.21), as a separate program.
//!
//! C-Blosc and C-Blosc2 have functions of the same names, so in one program one library would call the functions of the
//! other. The program answers requests from its standard input until that ends. A request is six numbers (64 bits,
//! little-endian) followed by bytes: operation, level, shuffle, typesize, codec, number of bytes. An answer is a number
//! followed by bytes: the number of these bytes, or the error code of C.

use std::ffi::c_void;
use std::io::{self, Read, Write};
use std::ptr::NonNull;

use blosc_src as c;

/// The names of the codecs, by their codes.
const CODECS: [&std::ffi::CStr; 6] = [c"blosclz", c"lz4", c"lz4hc", c"snappy", c"zlib", c"zstd"];

fn main() -> io::Result<()> {
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    let mut words = [0; 48];
    while input.read_exact(&mut words).is_ok() {
        let mut request = [0u64; 6];
        for (number, bytes) in request.iter_mut().zip(words.chunks_exact(8)) {
            *number = u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
        }
        let [what, level, shuffle, typesize, codec, len] = request.map(|each| each as usize);
        let mut source = vec![0; len];
        input.read_exact(&mut source)?;
        let answer = match what {
            0 => compress(&source, level as i32, shuffle as i32, typesize, CODECS[codec]),
            _ => decompress(&source),
        };
        let number = answer.as_ref().map_or_else(|code| *code, |bytes| bytes.len() as i64);
        output.write_all(&number.to_le_bytes())?;
        output.write_all(&answer.unwrap_or_default())?;
        output.flush()?;
    }
    Ok(())
}

fn compress(
    source: &[u8],
    level: i32,
    shuffle: i32,
    typesize: usize,
    codec: &std::ffi::CStr,
) -> Result<Vec<u8>, i64> {
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

fn decompress(chunk: &[u8]) -> Result<Vec<u8>, i64> {
    let mut len = 0;
    // SAFETY: the length is that of the chunk, and `len` can be written.
    let code = unsafe { c::blosc_cbuffer_validate(chunk.as_ptr().cast(), chunk.len(), &mut len) };
    if code < 0 {
        return Err(code.into());
    }
    let mut data = vec![0; len];
    let start = data.first_mut().map_or(NonNull::dangling(), NonNull::from);
    // SAFETY: C has seen that the chunk is as long as it says, and there is room for its data.
    let read =
        unsafe { c::blosc_decompress_ctx(chunk.as_ptr().cast(), start.as_ptr().cast(), len, 1) };
    finish(data, read)
}

fn finish(mut bytes: Vec<u8>, returned: i32) -> Result<Vec<u8>, i64> {
    bytes.truncate(usize::try_from(returned).map_err(|_| returned)?);
    Ok(bytes)
}
