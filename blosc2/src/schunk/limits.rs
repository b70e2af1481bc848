//! Memory limits of reads of untrusted input.

use blosc2_format::chunk;
use blosc2_format::frame::Outline;
use blosc2_sys as sys;

use super::frame::Frame;
use crate::{ErrorKind, Reason, Result};

/// The number of bytes that a read may allocate for a file of any size.
const PLAUSIBLE: u64 = 1 << 30;
/// The size of a chunk, in bytes, whose blocks need at most [`PLAUSIBLE`] bytes; see [`block_memory`].
const SMALL: u32 = (PLAUSIBLE / 4) as u32;
/// The number of bytes of working memory that decompression may always allocate, in addition to the result.
pub(super) const SCRATCH: u64 = 64 << 20;
/// The number of bytes that a read may allocate for each stored byte of a large file.
const PLAUSIBLE_RATIO: u64 = 256;

/// Returns the default of [`OpenOptions::max_read`] for one read of chunks, if `stored` bytes are stored: 1 GiB, or 256
/// times the stored bytes if that is more.
///
/// Writers of this project use this limit, too. They refuse data that can only be read as a whole, such as a
/// [value](crate::Value), if readers with the default limit would refuse the data. A handle with a higher `max_read`
/// writes what it can read.
///
/// ```
/// use blosc2::limits::default_max_read;
///
/// assert_eq!(default_max_read(100), 1 << 30);
/// assert_eq!(default_max_read(10 << 20), 2560 << 20);
/// ```
///
/// [`OpenOptions::max_read`]: crate::OpenOptions::max_read
pub fn default_max_read(stored: u64) -> u64 {
    stored.saturating_mul(PLAUSIBLE_RATIO).max(PLAUSIBLE)
}

/// Returns the working memory for decompressing a block of a chunk, between the codec and the filters.
pub(super) fn block_memory(header: &chunk::Header) -> u64 {
    match header.is_compressed() && !header.variable_blocks {
        true => 4 * u64::from(header.block_len()),
        false => 0,
    }
}

/// Checks that readers with default limits, or with this limit, can decompress the blocks of a chunk that is to be
/// stored in a frame. Returns the decompressed size of the chunk in bytes.
pub(super) fn check_readable(
    outline: &Outline,
    chunk: &[u8],
    max_read: Option<u64>,
) -> Result<u32, Reason> {
    let at = sys::BLOSC2_CHUNK_NBYTES as usize;
    // Blocks of a chunk of this size are always small enough.
    if let Some(&[a, b, c, d]) = chunk.get(at..at + 4)
        && let nbytes @ ..=SMALL = u32::from_le_bytes([a, b, c, d])
    {
        return Ok(nbytes);
    }
    // Other faults of the chunk are reported when it is stored.
    let Ok(header) = outline.parse_chunk_header(chunk) else { return Ok(0) };
    let memory = block_memory(&header);
    let max = default_max_read(header.cbytes.into()).max(max_read.unwrap_or(0));
    if memory <= max {
        return Ok(header.nbytes);
    }
    let (block, stored) = (header.block_len(), header.cbytes);
    let detail = format!(
        "its blocks of {block} bytes take {memory} bytes of memory to decompress, but by default a reader allows {max} \
         bytes for {stored} stored bytes: choose a smaller block size"
    );
    Err(Reason::new(ErrorKind::TooLarge, detail))
}

/// The limit of the memory that one read may allocate. The sizes in a super-chunk may come from untrusted input.
#[derive(Debug, Clone, Copy)]
pub(super) enum MaxRead {
    Any,
    /// A limit that valid data rarely exceeds; see [`OpenOptions::max_read`].
    Plausible,
    Bytes(u64),
}

impl MaxRead {
    /// Returns the maximum number of bytes that one read may allocate, if it needs `nbytes` bytes.
    pub(super) fn allowed(self, frame: &Frame, nbytes: u64) -> u64 {
        match self {
            Self::Any => u64::MAX,
            Self::Plausible if nbytes <= PLAUSIBLE => PLAUSIBLE,
            Self::Plausible => default_max_read(frame.last_state().store.stored_bytes()),
            Self::Bytes(max) => max,
        }
    }

    /// Returns the maximum number of bytes for the content of a metalayer and its values, if they need `held` bytes.
    pub(super) fn metadata_allowed(self, frame: &Frame, held: u64) -> u64 {
        match self {
            Self::Any => u64::MAX,
            Self::Bytes(max) => max,
            Self::Plausible => {
                let state = frame.last_state();
                let max = |stored| state.limits.decoded_metadata(stored);
                // Counting the stored bytes of a directory takes time, and is not always necessary.
                if held <= max(0) { max(0) } else { max(state.store.stored_bytes()) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use blosc2_format::chunk::{Encoder, Params};
    use blosc2_format::frame::Layout;

    use super::*;

    /// The working memory for a block is compared with the stored bytes.
    #[test]
    fn blocks_that_readers_refuse_are_not_stored() {
        let params = Params { blocksize: Some(4096), ..Params::default() };
        let bytes = Encoder::new(params).unwrap().encode(&b"abcd".repeat(4096)).unwrap();
        let with = |blocksize: u32, cbytes: u32, max_read| {
            let mut bytes = bytes.clone();
            // The sizes of the data, of a block and of the chunk.
            bytes[4..8].copy_from_slice(&(1u32 << 30).to_le_bytes());
            bytes[8..12].copy_from_slice(&blocksize.to_le_bytes());
            bytes[12..16].copy_from_slice(&cbytes.to_le_bytes());
            let outline = Outline::new(params, Layout::Contiguous);
            let checked = check_readable(&outline, &bytes, max_read);
            checked.map(drop).map_err(|error| error.kind())
        };
        assert_eq!(with(1 << 28, 100, None), Ok(()));
        assert_eq!(with(1 << 28, 100, Some(5)), Ok(()));
        assert_eq!(with((1 << 28) + 1, 100, None), Err(ErrorKind::TooLarge));
        assert_eq!(with((1 << 28) + 1, 100, Some((1 << 30) + 3)), Err(ErrorKind::TooLarge));
        assert_eq!(with((1 << 28) + 1, 100, Some((1 << 30) + 4)), Ok(()));
        assert_eq!(with((1 << 28) + 1, (4 << 20) + 1, None), Ok(()));
    }
}
