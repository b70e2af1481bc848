//! Optional checksums of the chunks, the header and the metalayers. A variable-length metalayer
//! contains the checksums; other programs ignore this metalayer.

use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};

use super::metalayer::Metalayer;
use super::offset::Offset;
use super::offsets::room_for;
use super::rules;
use crate::chunk::{Chunk, Decoder, EXTENDED_HEADER_LEN, Encoder, Params};
use crate::report::Rule;
use crate::{Error, Limit, Limits};

/// The name of the variable-length metalayer with the checksums.
pub(crate) const NAME: &str = "blosc2.crc32c";
/// The bytes before the checksums of the chunks: the mark, a version, two numbers, and a length.
const HEAD_LEN: usize = MARK_LEN + 20;
const VERSION_AT: usize = MARK_LEN;
const FRAME_LEN_AT: usize = MARK_LEN + 2;
const METADATA_AT: usize = MARK_LEN + 11;
const MARK_LEN: usize = 2 + NAME.len();
/// The start of the decoded content: a msgpack array of 5, and the name of the metalayer. The name
/// is stored twice, so that a change of one byte does not hide the checksums.
const MARK: [u8; MARK_LEN] = mark();
const VERSION: u8 = 2;
/// The memory for one checksum, in bytes: its stored form and its decoded form.
const HELD_LEN: u64 = 4 + size_of::<Sum>() as u64;

const fn mark() -> [u8; MARK_LEN] {
    let mut mark = [0; MARK_LEN];
    (mark[0], mark[1]) = (0x95, 0xa0 + NAME.len() as u8);
    mark.split_at_mut(2).1.copy_from_slice(NAME.as_bytes());
    mark
}

/// Returns whether `content`, a chunk, has the form in which writers store checksums: the header of
/// the chunk, and the uncompressed data.
pub(super) fn is_marked(content: &[u8]) -> bool {
    content.get(EXTENDED_HEADER_LEN..).is_some_and(|data| data.starts_with(&MARK))
}

/// Returns the position of the checksums among the variable-length metalayers: the metalayer with
/// their name. If there is none, the name of the metalayer may be damaged; then its content decides.
pub(super) fn position(vlmetalayers: &[Metalayer]) -> Option<usize> {
    let named = vlmetalayers.iter().position(|each| each.name == NAME);
    named.or_else(|| vlmetalayers.iter().position(|each| is_marked(&each.content)))
}

/// The checksums of a frame.
#[derive(Debug, Clone, Default)]
pub(crate) struct Checksums {
    pub(super) chunks: Vec<Sum>,
    /// The fault that was found when they were read.
    pub(super) fault: Option<Fault>,
}

/// The checksum of a chunk.
#[derive(Debug, Default)]
pub(crate) struct Sum {
    pub(super) crc: u32,
    /// Whether the chunk was already compared with its checksum.
    pub(super) is_verified: AtomicBool,
}

impl PartialEq for Sum {
    fn eq(&self, other: &Self) -> bool {
        self.crc == other.crc
    }
}

impl Clone for Sum {
    fn clone(&self) -> Self {
        let is_verified = self.is_verified.load(Ordering::Relaxed);
        Self { crc: self.crc, is_verified: is_verified.into() }
    }
}

impl From<u32> for Sum {
    fn from(crc: u32) -> Self {
        Self { crc, is_verified: false.into() }
    }
}

/// The fault of checksums that were read.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    pub(crate) rule: &'static Rule,
    pub(crate) at: u64,
    pub(crate) expected: String,
    pub(crate) found: String,
}

/// Returns the checksum of a chunk, for [`Outline::set_checksums`](super::Outline::set_checksums).
/// The checksum is the CRC-32C of the stored bytes. For a special chunk that only the index
/// records, it is the CRC-32C of the index entry.
///
/// ```
/// use blosc2_format::frame::{Offset, checksum};
///
/// assert_eq!(checksum(Offset::At(0), b"123456789"), 0xe306_9283);
/// ```
pub fn checksum(offset: Offset, stored: &[u8]) -> u32 {
    match offset {
        Offset::At(_) => crc32c::crc32c(stored),
        Offset::Special(_) => crc32c::crc32c(&offset.number().to_le_bytes()),
    }
}

impl PartialEq for Checksums {
    fn eq(&self, other: &Self) -> bool {
        self.chunks == other.chunks
    }
}

impl Checksums {
    pub(super) fn sum(&self, number: u64) -> Option<&Sum> {
        self.chunks.get(usize::try_from(number).ok()?)
    }

    /// Reads the metalayer, whose content is a chunk at the position `at`. `frame_len` is the length
    /// of the frame in its header. `crc` is the checksum of the metadata. `count` is the number of
    /// chunks.
    pub(crate) fn read(
        Metalayer { name, content }: &Metalayer,
        at: u64,
        (count, frame_len, crc): (u64, u64, u32),
        limits: &Limits,
    ) -> Result<Self, Error> {
        let mut data = Vec::new();
        let decoded = Chunk::new(content, limits).and_then(|chunk| {
            let held = u64::from(chunk.header().nbytes) / 4 * HELD_LEN;
            let max = limits.metadata.unwrap_or(u64::MAX);
            Limits::allow(Limit::Metadata, "bytes in memory for checksums", held, max)?;
            Decoder::default().decode_vec(&chunk, &mut data)
        });
        let fault = |rule, at, expected: &dyn Display, found: &dyn Display| {
            Some(Fault { rule, at, expected: expected.to_string(), found: found.to_string() })
        };
        let invalid = |found: &dyn Display| Self {
            chunks: Vec::new(),
            fault: fault(
                &rules::CHECKSUMS,
                at,
                &format_args!("a chunk with checksums, version {VERSION}"),
                found,
            ),
        };
        match decoded {
            Ok(()) => {}
            Err(Error::Format(error)) => return Ok(invalid(&error)),
            Err(error) => return Err(error),
        }
        let Some((head, sums)) = data.split_first_chunk::<HEAD_LEN>() else {
            return Ok(invalid(&format_args!("{} bytes", data.len())));
        };
        let stored_len = u64::from_be_bytes(array(&head[FRAME_LEN_AT..]));
        let stored_crc = u32::from_be_bytes(array(&head[METADATA_AT..]));
        let mut expected = head_of(sums.len());
        complete(&mut expected, 0, stored_len, stored_crc);
        if *head != expected || sums.len() % 4 != 0 {
            return Ok(invalid(&head.escape_ascii()));
        }
        let found = sums.len() as u64 / 4;
        let fault = if name != NAME {
            let expected = format_args!("the name `{NAME}` of this content").to_string();
            fault(&rules::CHECKSUMS, at, &expected, &format_args!("`{}`", name.escape_debug()))
        } else if stored_len != frame_len {
            let found = format_args!("{stored_len}{CHANGED}").to_string();
            fault(&rules::CHECKSUMS_OUTDATED, at, &frame_len, &found)
        } else if found != count {
            let found = format_args!("{found}{CHANGED}").to_string();
            fault(&rules::CHECKSUMS_OUTDATED, at, &format_args!("{count} checksums"), &found)
        } else if stored_crc != crc {
            let found = format_args!("{crc:#010x}{CAUSES}").to_string();
            fault(&rules::METADATA_CHECKSUM, 0, &format_args!("{stored_crc:#010x}"), &found)
        } else {
            None
        };
        let mut chunks = room_for(sums.len() / 4)?;
        chunks.extend(sums.chunks_exact(4).map(|sum| Sum::from(u32::from_le_bytes(array(sum)))));
        Ok(Self { chunks, fault })
    }

    /// Returns the content of the metalayer for `count` chunks: a chunk that ends with the
    /// uncompressed data. The length of the frame and the checksum of the metadata are 0 in this
    /// data.
    pub(super) fn to_content(&self, count: usize) -> Result<Vec<u8>, Error> {
        let mut data = room_for(HEAD_LEN + 4 * count)?;
        data.extend(head_of(4 * count));
        data.extend(self.chunks.iter().flat_map(|sum| sum.crc.to_le_bytes()));
        // Another program can have changed the number of chunks.
        data.resize(HEAD_LEN + 4 * count, 0);
        Encoder::new(Params { level: 0, ..Params::default() })?.encode(&data)
    }

    /// Returns whether a program that writes no checksums has changed the frame.
    pub(super) fn is_outdated(&self) -> bool {
        self.fault().is_some_and(|fault| *fault.rule == rules::CHECKSUMS_OUTDATED)
    }

    /// Returns the checksum of a chunk.
    pub(super) fn of_chunk(&self, number: u64) -> Option<u32> {
        self.sum(number).map(|sum| sum.crc)
    }

    /// Returns the fault of the checksums or of the metadata, if there is one.
    pub(crate) fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
    }
}

/// The possible causes of a wrong checksum.
pub(super) const CAUSES: &str = ": the bytes are damaged, or a program that writes no checksums has changed them \
    (new checksums accept the change)";
/// The cause of a different length of the frame.
pub(super) const CHANGED: &str = ": a program that writes no checksums has changed the frame since";

/// Returns the bytes before `len` bytes of checksums: a msgpack array of the name, the version, the
/// length of the frame, the checksum of the metadata, and the bytes.
fn head_of(len: usize) -> [u8; HEAD_LEN] {
    let mut head = [0; HEAD_LEN];
    head[..MARK_LEN].copy_from_slice(&MARK);
    head[VERSION_AT] = VERSION;
    (head[FRAME_LEN_AT - 1], head[METADATA_AT - 1], head[METADATA_AT + 4]) = (0xcf, 0xce, 0xc6);
    head[METADATA_AT + 5..].copy_from_slice(&(len as u32).to_be_bytes());
    head
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.first_chunk().copied().unwrap_or([0; N])
}

/// Returns the checksum of the metadata: the header, and the variable-length metalayers other than
/// the checksums.
pub(crate) fn of_metadata<'a>(
    header: &[u8],
    vlmetalayers: impl Iterator<Item = (&'a str, &'a [u8])>,
) -> u32 {
    vlmetalayers.fold(crc32c::crc32c(header), |crc, layer| {
        let crc = crc32c::crc32c_append(crc, layer.0.as_bytes());
        crc32c::crc32c_append(crc32c::crc32c_append(crc, &[0]), layer.1)
    })
}

/// Sets the length of the frame and the checksum of its metadata in the metalayer with `count`
/// checksums at the end of `section`.
pub(super) fn complete(section: &mut [u8], count: usize, frame_len: u64, crc: u32) {
    let at = section.len() - HEAD_LEN - 4 * count;
    section[at + FRAME_LEN_AT..][..8].copy_from_slice(&frame_len.to_be_bytes());
    section[at + METADATA_AT..][..4].copy_from_slice(&crc.to_be_bytes());
}
