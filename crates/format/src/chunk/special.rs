//! Special (constant) chunks: a header, and the value if it is a repeated value.

use super::encode::{Form, header};
use super::plan::Plan;
use super::{Chunk, EXTENDED_HEADER_LEN, Header, Params, Special};
use crate::Error;

/// Creates a special chunk that represents `nbytes` bytes of one value. The chunk is identical to
/// the chunk that the C library creates. C: `blosc2_chunk_zeros`, `blosc2_chunk_nans`,
/// `blosc2_chunk_repeatval`, `blosc2_chunk_uninit`.
///
/// For [`Special::Value`], `value` is the item to repeat; otherwise `value` is ignored. The codec,
/// the level, the filters and the split mode affect only the block size in the header.
///
/// # Errors
/// Fails with [`Error::Argument`] if:
///
/// - a chunk cannot have the typesize, the level or the block size in `params`;
/// - `nbytes` is not a multiple of the typesize, or too large for a chunk;
/// - `special` is [`Special::Nan`], `nbytes` is above 0, and the typesize is not 4 or 8;
/// - `special` is [`Special::Value`], and `nbytes` is 0 or the length of `value` differs from the
///   typesize.
pub fn special(
    params: &Params,
    special: Special,
    nbytes: usize,
    value: &[u8],
) -> Result<Vec<u8>, Error> {
    let plan = Plan::new(params, nbytes)?;
    if !nbytes.is_multiple_of(params.typesize as usize) {
        let typesize = params.typesize;
        let what = format!("{nbytes} bytes are not a multiple of the typesize {typesize}");
        return Err(Error::Argument(what));
    }
    let (code, value): (u8, &[u8]) = match special {
        Special::Zeros => (1, &[]),
        Special::Nan if nbytes == 0 || matches!(params.typesize, 4 | 8) => (2, &[]),
        Special::Nan => {
            let typesize = params.typesize;
            return Err(Error::Argument(format!(
                "a chunk of NaN with the typesize {typesize}: expected 4 or 8"
            )));
        }
        Special::Uninit => (4, &[]),
        Special::Value if nbytes == 0 => {
            return Err(Error::Argument("a repeated value in a chunk without items".into()));
        }
        Special::Value if value.len() == params.typesize as usize => (3, value),
        Special::Value => {
            let (len, typesize) = (value.len(), params.typesize);
            return Err(Error::Argument(format!(
                "a value of {len} bytes: expected an item of {typesize} bytes"
            )));
        }
    };
    // Special chunks have no filter and no codec, independent of the parameters.
    let bare = Params { codec: 0, codec_meta: 0, filters: [0; 6], filters_meta: [0; 6], ..*params };
    let mut chunk = vec![0; EXTENDED_HEADER_LEN];
    header(&mut chunk, &bare, &plan, Form::default(), 0b101);
    chunk.extend(value);
    let cbytes = chunk.len() as u32;
    chunk[12..16].copy_from_slice(&cbytes.to_le_bytes());
    chunk[31] = code << 4;
    Ok(chunk)
}

/// Returns the bytes that a special chunk repeats. `chunk` contains the header and the value.
pub(crate) fn repeated<'a>(header: &Header, chunk: &'a [u8]) -> &'a [u8] {
    let value = match header.special {
        Some(Special::Value) => chunk.get(EXTENDED_HEADER_LEN..).unwrap_or(&[]),
        Some(Special::Nan) if header.typesize == 4 => &[0, 0, 0xc0, 0x7f],
        Some(Special::Nan) => &[0, 0, 0, 0, 0, 0, 0xf8, 0x7f],
        Some(Special::Zeros | Special::Uninit) | None => &[],
    };
    if value.is_empty() { &[0] } else { value }
}

/// Fills `out` with the value of the chunk, starting at the first byte of an item.
pub(super) fn fill(chunk: &Chunk<'_>, out: &mut [u8]) {
    match repeated(chunk.header(), chunk.bytes()) {
        [byte] => out.fill(*byte),
        value => {
            for item in out.chunks_mut(value.len()) {
                item.copy_from_slice(&value[..item.len()]);
            }
        }
    }
}
