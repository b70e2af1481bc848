//! What a file is, told from its first bytes.

use std::fmt;
use std::path::Path;

use crate::chunk;
use crate::early::{self, Layout};
use crate::{ReadAt, directory, packed};

/// What a file or a directory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// One compressed chunk and nothing else.
    Chunk,
    /// A contiguous frame, of the layout that C-Blosc2 writes since 2.0.0-rc.1.
    Frame,
    /// A directory with an index and a file for each chunk.
    Directory,
    /// A frame with a header of 64 bytes, of 2.0.0-beta.1 and the weeks around it.
    EarlyFrame,
    /// A frame with a header of 82 bytes, of 2.0.0-beta.2 to beta.5.
    FrameVersion1,
    /// A packed super-chunk, of the alphas before 2.0.0.
    Packed,
}

impl Kind {
    /// Whether it is of a time before 2.0.0-rc.1: C-Blosc2 does not open it any more.
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

/// How many of the first bytes are looked at.
const START_LEN: u64 = 96;
/// The name of all frames at byte 1, its marker and its end counted in.
const MAGIC: &[u8] = b"\xa8b2frame\0";
/// With fewer equal bytes it is something else.
const ENOUGH_MAGIC: usize = 6;

/// Tells what `source` holds; `None` where it is none of the formats.
///
/// Some wrong bytes do not mislead it, so that a check can say which ones they are.
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
/// The source's own.
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

/// A chunk has no name. It is one where its header is right, or its length is.
fn is_chunk(start: &[u8], size: u64) -> bool {
    let Some(head) = start.first_chunk::<{ chunk::MIN_HEADER_LEN }>() else {
        return false;
    };
    let [version, .., a, b, c, d] = *head;
    let is_header = version <= chunk::MAX_VERSION && chunk::Header::parse(start).is_ok();
    is_header || u64::from(u32::from_le_bytes([a, b, c, d])) == size
}

/// Tells what is at `path`; `None` where it is none of the formats.
///
/// # Errors
/// It cannot be read.
pub fn recognise_path(path: impl AsRef<Path>) -> std::io::Result<Option<Kind>> {
    let path = path.as_ref();
    if path.is_dir() {
        return Ok(path.join(directory::INDEX).exists().then_some(Kind::Directory));
    }
    recognise(&std::fs::File::open(path)?)
}
