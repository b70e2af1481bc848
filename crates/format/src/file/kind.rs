//! Detection of the kind of a file from its content.

use std::fmt;
use std::path::Path;

use crate::chunk;
use crate::early::{self, Layout};
use crate::{ReadAt, directory, packed};

/// The kind of a file or a directory.
///
/// ```
/// use blosc2_format::file::Kind;
///
/// assert!(Kind::Packed.is_old());
/// assert!(!Kind::Frame.is_old());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// A single chunk without a frame.
    Chunk,
    /// A contiguous frame in the layout that C-Blosc2 writes since 2.0.0-rc.1.
    Frame,
    /// A directory (sparse frame): an index file and one file per chunk.
    Directory,
    /// A legacy frame with a header of 64 bytes, written by C-Blosc2 2.0.0-beta.1 and by
    /// development versions shortly before and after 2.0.0-beta.1.
    EarlyFrame,
    /// A legacy frame with a header of 82 bytes, written by C-Blosc2 2.0.0-beta.2 to 2.0.0-beta.5.
    FrameVersion1,
    /// A legacy [packed super-chunk](crate::packed), written by C-Blosc2 2.0.0-a2 to 2.0.0-a4.
    /// Output of 2.0.0-a5 has this kind too, but cannot be read.
    Packed,
}

impl Kind {
    /// Returns whether the format is older than C-Blosc2 2.0.0-rc.1. Current versions of C-Blosc2
    /// do not open such files.
    pub fn is_old(self) -> bool {
        matches!(self, Self::EarlyFrame | Self::FrameVersion1 | Self::Packed)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Chunk => "chunk",
            Self::Frame => "contiguous frame",
            Self::Directory => "directory of chunks",
            Self::EarlyFrame => "early frame",
            Self::FrameVersion1 => "frame of version 1",
            Self::Packed => "packed super-chunk",
        })
    }
}

/// The number of bytes at the start that the detection examines.
const START_LEN: u64 = 96;
/// The magic name of all frames at byte 1, with its msgpack marker and its terminator.
const MAGIC: &[u8] = b"\xa8b2frame\0";
/// The minimum number of matching bytes of the magic name.
const ENOUGH_MAGIC: usize = 6;

/// Returns the kind of the file in `source`, or `None` if no format matches.
///
/// The detection tolerates a few wrong bytes, so that a check can report those bytes.
///
/// ```
/// use blosc2_format::file::{Kind, recognise};
///
/// assert_eq!(recognise(b"\x9e\xa8b2frame\0".as_slice())?, Some(Kind::Frame));
/// assert_eq!(recognise(b"\x89PNG".as_slice())?, None);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// The errors of the source.
pub fn recognise<R: ReadAt + ?Sized>(source: &R) -> std::io::Result<Option<Kind>> {
    let size = source.size()?;
    let start = source.read_vec_at(0, size.min(START_LEN))?;
    if start.len() > MAGIC.len() {
        let equal = start[1..].iter().zip(MAGIC).filter(|(found, wanted)| found == wanted);
        if equal.count() >= ENOUGH_MAGIC {
            return Ok(Some(match early::recognise(&start) {
                Some(Layout::Early) => Kind::EarlyFrame,
                Some(Layout::Version1) => Kind::FrameVersion1,
                None => Kind::Frame,
            }));
        }
    }
    if packed::recognise(&start, size).is_some() {
        return Ok(Some(Kind::Packed));
    }
    Ok(is_chunk(&start, size).then_some(Kind::Chunk))
}

/// Returns whether the bytes are a chunk. A chunk has no magic name, so its header or its length
/// must be valid.
fn is_chunk(start: &[u8], size: u64) -> bool {
    let Some(head) = start.first_chunk::<{ chunk::MIN_HEADER_LEN }>() else {
        return false;
    };
    let [version, .., a, b, c, d] = *head;
    let is_header = version <= chunk::MAX_VERSION && chunk::Header::parse(start).is_ok();
    is_header || u64::from(u32::from_le_bytes([a, b, c, d])) == size
}

/// Returns the kind of the file or directory at `path`, or `None` if no format matches.
///
/// # Errors
/// The file cannot be read.
pub fn recognise_path(path: impl AsRef<Path>) -> std::io::Result<Option<Kind>> {
    let path = path.as_ref();
    if path.is_dir() {
        return Ok(path.join(directory::INDEX).exists().then_some(Kind::Directory));
    }
    recognise(&std::fs::File::open(path)?)
}
