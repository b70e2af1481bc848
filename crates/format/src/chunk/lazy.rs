//! Lazy chunks: the header and the block starts of a chunk whose blocks are in a file.
//!
//! The C library uses lazy chunks in memory only. A lazy chunk contains:
//!
//! - the header;
//! - the table of block starts (unused for stored data);
//! - the index of the chunk (4 bytes);
//! - the offset of the chunk in the file (8 bytes);
//! - the stored size of each block (4 bytes each).

use super::Header;
use super::rules::{self, Findings};

/// The location of the blocks of a lazy chunk: an in-memory chunk whose blocks are in a file.
///
/// In a contiguous frame, `offset` is the position of the chunk. In a directory, `number`
/// determines the name of the chunk file.
///
/// ```
/// use blosc2_format::Limits;
/// use blosc2_format::chunk::{Chunk, Encoder, Params};
///
/// let bytes = Encoder::new(Params::default())?.encode(&[7; 4000])?;
/// let chunk = Chunk::new(&bytes, &Limits::default())?;
/// assert!(chunk.lazy().is_none(), "all of its blocks are here");
/// # Ok::<(), blosc2_format::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lazy<'a> {
    /// The index of the chunk in the frame, from 0. In a directory, the file number of the chunk:
    /// the number in the name of its file.
    pub number: u32,
    /// The offset of the header of the chunk from the start of the frame. In a directory, `offset`
    /// equals `number`.
    pub offset: u64,
    sizes: &'a [u8],
}

impl<'a> Lazy<'a> {
    pub(super) fn new(header: &Header, bytes: &'a [u8]) -> Option<Self> {
        let trailer = bytes.get(trailer(header)?..)?;
        let (number, rest) = trailer.split_first_chunk()?;
        let (offset, sizes) = rest.split_first_chunk()?;
        let number = u32::from_le_bytes(*number);
        Some(Self { number, offset: u64::from_le_bytes(*offset), sizes })
    }

    /// Returns the stored size of the block at index `block`, in bytes, or `None` if there is no
    /// block at this index. The stored size includes all bytes from the start of the block to the
    /// next stored block or to the end of the chunk.
    pub fn stored_size(&self, block: usize) -> Option<usize> {
        let size = self.sizes.get(block.checked_mul(4)?..)?.first_chunk()?;
        usize::try_from(i32::from_le_bytes(*size)).ok()
    }
}

fn trailer(header: &Header) -> Option<usize> {
    (header.nblocks() as usize).checked_mul(4)?.checked_add(header.header_len())
}

/// Returns the bytes of the lazy chunk at the start of `bytes`.
pub(super) fn lay_out<'a>(
    header: &Header,
    bytes: &'a [u8],
    findings: &mut impl Findings,
) -> Option<&'a [u8]> {
    let start = trailer(header)?;
    let end = start.checked_add(12)?.checked_add(start - header.header_len())?;
    let Some(chunk) = bytes.get(..end) else {
        let left = bytes.len().saturating_sub(start);
        let expected = format_args!("a trailer of {} bytes", end - start);
        findings.found(&rules::LAZY, start as u64, left as u64, expected, left);
        return None;
    };
    let lazy = Lazy::new(header, chunk)?;
    let at = start as u64;
    if i32::try_from(lazy.number).is_err() {
        findings.found(&rules::LAZY_NUMBER, at, 4, "at least 0", lazy.number as i32);
    }
    if i64::try_from(lazy.offset).is_err() {
        findings.found(&rules::LAZY_OFFSET, at + 4, 8, "at least 0", lazy.offset as i64);
    }
    // The maximum is the size of a block whose streams are stored uncompressed, with the sizes of
    // the streams.
    let most = match header.variable_blocks {
        true => u64::from(header.cbytes),
        false => u64::from(header.block_len()) + 4 * u64::from(header.typesize),
    };
    for (block, size) in lazy.sizes.chunks_exact(4).enumerate() {
        let size = i32::from_le_bytes([size[0], size[1], size[2], size[3]]);
        if size < 1 || size as u64 > most {
            let at = at + 12 + 4 * block as u64;
            findings.found(&rules::LAZY_BSIZE, at, 4, format_args!("1 to {most}"), size);
        }
    }
    Some(chunk)
}
