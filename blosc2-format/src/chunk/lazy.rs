//! Lazy chunks: header and block starts of a chunk whose blocks are still in their file.
//!
//! The C library keeps them in memory only. After the header and the table of block starts, which is
//! there for stored data too though nothing is in it then, follow the chunk's number (4 bytes), its
//! offset in the file (8) and the stored size of each block (4 each).

use super::Header;
use super::rules::{self, Findings};

/// Where the blocks of a lazy chunk are.
///
/// The number counts from 0; in a directory of chunks it is the number in the name of the chunk's
/// file. The offset counts from the start of the frame, this header's first byte being there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lazy<'a> {
    /// The chunk's number.
    pub number: u32,
    /// Where the whole chunk starts; its number again where the chunks have files of their own.
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

    /// How many bytes are stored for a block: up to the one that is stored after it.
    pub fn stored_size(&self, block: usize) -> Option<usize> {
        let size = self.sizes.get(block.checked_mul(4)?..)?.first_chunk()?;
        usize::try_from(i32::from_le_bytes(*size)).ok()
    }
}

fn trailer(header: &Header) -> Option<usize> {
    (header.nblocks() as usize).checked_mul(4)?.checked_add(header.header_len())
}

/// The bytes of the lazy chunk at the start of `bytes`.
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
    // A block cannot take more than stored streams with their sizes do.
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
