//! The journal of an unfinished change of a contiguous frame: a mark, and a copy of the overwritten
//! bytes.
//!
//! Before a change, the writer stores a [`Journal`] after the frame: a copy of the bytes that the
//! change will overwrite. Then it writes the mark [`UNFINISHED`] to the first byte of the length of
//! the frame. Every reader rejects a frame with this mark. When the change is complete, the writer
//! removes the journal and the mark. If the writer is interrupted, both remain in the file. A
//! writer that stores no journal writes the mark [`UNFINISHED_WITHOUT_JOURNAL`] instead.
//!
//! ```
//! use blosc2_format::frame::journal::{self, Journal};
//!
//! // A frame of 100 bytes, whose first two bytes were `ab` before the change.
//! let mut file = vec![0xff; 100];
//! file.extend(journal::encode(100, 100, &[(0, &b"ab"[..])]));
//! let journal = Journal::find(&file)?.unwrap();
//! assert_eq!((journal.start, journal.frame_len), (100, 100));
//! let record = journal.records(&file).next().unwrap()?;
//! assert_eq!((record.offset, record.len), (0, 2));
//! assert_eq!(&file[record.at as usize..][..2], b"ab");
//! # Ok::<(), std::io::Error>(())
//! ```

use std::io;

use super::rules;
use crate::{FormatError, ReadAt};

/// The position of the mark: the first byte of the field that contains the length of the frame.
/// This byte is 0 in every complete frame.
///
/// Writing one byte is atomic. With the mark, the length is larger than any file, for all values of
/// the other bytes of the field.
pub const MARK_AT: u64 = super::field::FRAME_LEN.at as u64;
/// The mark of a frame with a change in progress and a journal.
///
/// The content of the file determines the recovery after an interruption:
///
/// - If there is a complete journal, its records are written back to the frame.
/// - If there is no complete journal, and the frame is valid and ends at the end of the file, the
///   change was complete. Only the mark must be removed.
/// - Otherwise the overwritten bytes are lost.
pub const UNFINISHED: u8 = 0x7f;
/// The mark of a frame with a change in progress and no journal. If the writer is interrupted, the
/// overwritten bytes are lost.
pub const UNFINISHED_WITHOUT_JOURNAL: u8 = 0x7e;

/// The first and the last bytes of a journal.
const MAGIC: &[u8; 12] = b"b2frame undo";
/// The size of the footer: start of the journal, length of the frame, checksum, magic.
const FOOTER_LEN: u64 = 8 + 8 + 4 + MAGIC.len() as u64;
/// The size of the position and the length before the bytes of a record.
const RECORD_LEN: u64 = 16;
/// The number of bytes read at once.
const PIECE: u64 = 64 << 10;

/// The journal at the end of a file.
///
/// ```
/// use blosc2_format::frame::journal::{self, Journal};
///
/// // A frame of 100 bytes, whose first two bytes were `ab`.
/// let mut file = vec![0xff; 100];
/// assert!(Journal::find(&file)?.is_none());
/// file.extend(journal::encode(100, 100, &[(0, &b"ab"[..])]));
/// assert_eq!(Journal::find(&file)?.unwrap().start, 100);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Journal {
    /// The position of the journal, from the start of the file.
    pub start: u64,
    /// The size of the frame before the change, in bytes.
    pub frame_len: u64,
    /// The end of the records.
    end: u64,
}

/// A record of a journal: a copy of a range of bytes of the frame, from before the change.
///
/// ```
/// use blosc2_format::frame::journal::{self, Journal};
///
/// let mut file = vec![0xff; 100];
/// file.extend(journal::encode(100, 100, &[(0, &b"ab"[..])]));
/// let journal = Journal::find(&file)?.unwrap();
/// for record in journal.records(&file) {
///     let record = record?;
///     assert_eq!((record.offset, record.len), (0, 2));
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Record {
    /// The position of the range in the frame.
    pub offset: u64,
    /// The length of the range in bytes.
    pub len: u64,
    /// The position of the copy, from the start of the file that contains the frame and the
    /// journal.
    pub at: u64,
}

/// Returns whether the frame of `frame_len` bytes at the start of `source` is the last data in
/// `source`. If other data follows, a change of the frame would overwrite this data.
///
/// An interrupted writer can leave zeros after the frame, and a complete or incomplete journal
/// after the zeros. These bytes do not count as other data.
///
/// # Errors
/// The errors of `source`.
pub fn is_last<R: ReadAt + ?Sized>(source: &R, frame_len: u64) -> io::Result<bool> {
    let size = source.size()?;
    let mut at = frame_len;
    while at < size {
        let piece = source.read_vec_at(at, PIECE.min(size - at))?;
        if let Some(zeros) = piece.iter().position(|&byte| byte != 0) {
            let at = at + zeros as u64;
            let start = source.read_vec_at(at, (MAGIC.len() as u64).min(size - at))?;
            return Ok(MAGIC.starts_with(&start));
        }
        at += piece.len() as u64;
    }
    Ok(true)
}

/// Returns whether `error` means that the frame has a mark. In this case a writer was interrupted
/// during a change, or is changing the frame now.
pub fn is_unfinished(error: &FormatError) -> bool {
    error.what == rules::UNFINISHED.what
}

/// Returns the bytes of a journal that starts at byte `start` of the file and belongs to a frame of
/// `frame_len` bytes.
///
/// Each record contains a position in the frame and the original bytes at this position. The
/// records are in ascending order and do not overlap.
pub fn encode<B: AsRef<[u8]>>(start: u64, frame_len: u64, records: &[(u64, B)]) -> Vec<u8> {
    let mut journal = MAGIC.to_vec();
    for (offset, bytes) in records {
        let bytes = bytes.as_ref();
        journal.extend(offset.to_be_bytes());
        journal.extend((bytes.len() as u64).to_be_bytes());
        journal.extend(bytes);
    }
    journal.extend(start.to_be_bytes());
    journal.extend(frame_len.to_be_bytes());
    journal.extend(crc32fast::hash(&journal).to_be_bytes());
    journal.extend(MAGIC);
    journal
}

impl Journal {
    /// Returns the journal at the end of `source`, or `None` if there is no complete journal.
    ///
    /// Reads the whole journal in pieces to verify its checksum.
    ///
    /// # Errors
    /// The errors of `source`.
    pub fn find<R: ReadAt + ?Sized>(source: &R) -> io::Result<Option<Self>> {
        let size = source.size()?;
        let Some(end) = size.checked_sub(FOOTER_LEN) else { return Ok(None) };
        let mut footer = [0; FOOTER_LEN as usize];
        source.read_exact_at(end, &mut footer)?;
        let (numbers, magic) = footer.split_at(footer.len() - MAGIC.len());
        let (start, frame_len) = (u64_of(&numbers[..8]), u64_of(&numbers[8..16]));
        let room = end.checked_sub(start).filter(|&room| room >= MAGIC.len() as u64);
        if magic != MAGIC || room.is_none() || frame_len > start {
            return Ok(None);
        }
        let mut magic = [0; MAGIC.len()];
        source.read_exact_at(start, &mut magic)?;
        if magic != *MAGIC {
            return Ok(None);
        }
        let mut checksum = crc32fast::Hasher::new();
        let mut at = start;
        while at < end + 16 {
            let piece = source.read_vec_at(at, PIECE.min(end + 16 - at))?;
            checksum.update(&piece);
            at += piece.len() as u64;
        }
        if checksum.finalize().to_be_bytes() != numbers[16..] {
            return Ok(None);
        }
        let journal = Self { start, frame_len, end };
        for record in journal.records(source) {
            match record {
                Err(error) if error.kind() == io::ErrorKind::InvalidData => return Ok(None),
                record => record?,
            };
        }
        Ok(Some(journal))
    }

    /// Returns the records of the journal, in the order of their positions. `source` must be the
    /// source in which [`find`](Self::find) found the journal. The iteration ends after an error.
    ///
    /// # Errors
    /// - [`io::ErrorKind::InvalidData`]: the source has changed and contains an invalid record;
    /// - the errors of `source`.
    pub fn records<'a, R: ReadAt + ?Sized>(
        &self,
        source: &'a R,
    ) -> impl Iterator<Item = io::Result<Record>> + use<'a, R> {
        let Self { start, frame_len, end } = *self;
        let mut next = start + MAGIC.len() as u64;
        let mut free = 0;
        std::iter::from_fn(move || {
            if next == end {
                return None;
            }
            let mut read = || {
                let invalid = || io::Error::from(io::ErrorKind::InvalidData);
                let at = next.checked_add(RECORD_LEN).filter(|&at| at < end);
                let at = at.ok_or_else(invalid)?;
                let mut head = [0; RECORD_LEN as usize];
                source.read_exact_at(next, &mut head)?;
                let (offset, len) = (u64_of(&head[..8]), u64_of(&head[8..]));
                let fits = offset >= free
                    && len > 0
                    && offset.checked_add(len).is_some_and(|end| end <= frame_len)
                    && len <= end - at;
                if !fits {
                    return Err(invalid());
                }
                (next, free) = (at + len, offset + len);
                Ok(Record { offset, len, at })
            };
            let record = read();
            if record.is_err() {
                next = end;
            }
            Some(record)
        })
    }
}

/// Returns the number in eight bytes.
fn u64_of(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> Vec<u8> {
        let mut file = vec![9; 50];
        file.extend(encode(50, 40, &[(0, &b"head"[..]), (30, &[7; 10])]));
        file
    }

    fn records(file: &Vec<u8>) -> Vec<(u64, Vec<u8>)> {
        let journal = Journal::find(file).unwrap().unwrap();
        let bytes = |record: Record| file.read_vec_at(record.at, record.len).unwrap();
        let records = journal.records(file).map(Result::unwrap);
        records.map(|record| (record.offset, bytes(record))).collect()
    }

    #[test]
    fn what_is_written_is_found() {
        assert_eq!(records(&file()), [(0, b"head".to_vec()), (30, vec![7; 10])]);
        let long = vec![3; 200_000];
        let mut file = long.clone();
        file.extend(encode(200_000, 200_000, &[(0, &long)]));
        assert_eq!(records(&file), [(0, long)]);
        assert_eq!(records(&encode::<&[u8]>(0, 0, &[])), []);
    }

    #[test]
    fn what_is_not_whole_is_none() {
        let whole = file();
        for len in 0..whole.len() {
            assert_eq!(Journal::find(&whole[..len]).unwrap(), None, "{len} bytes");
        }
        for at in 50..whole.len() {
            let mut broken = whole.clone();
            broken[at] ^= 1;
            assert_eq!(Journal::find(&broken).unwrap(), None, "byte {at}");
        }
        assert_eq!(Journal::find(&[whole.as_slice(), b"x"].concat()).unwrap(), None);
        assert_eq!(Journal::find(&whole[1..]).unwrap(), None);
    }

    #[test]
    fn what_follows_a_frame_is_a_journal_or_not_its_own() {
        let frame = vec![9; 50];
        let journal = encode(60, 50, &[(0, &b"head"[..]), (30, &[7; 10])]);
        let is_last = |rest: &[&[u8]]| is_last(&[&frame, &rest.concat()[..]].concat(), 50).unwrap();
        for len in 0..=journal.len() {
            assert!(is_last(&[&[0; 10], &journal[..len]]), "{len} bytes of a journal");
            assert!(is_last(&[&journal[..len]]), "{len} bytes at once");
        }
        let many = vec![0; 200_000];
        assert!(is_last(&[&many]) && is_last(&[&many, &journal]));
        for other in [&b"x"[..], b"b2framx", b"\x9e\xa8b2frame", b"undo"] {
            assert!(!is_last(&[other]), "{other:?}");
            assert!(!is_last(&[&many, other]), "zeros and {other:?}");
        }
        assert!(!is_last(&[&journal[1..]]));
    }

    /// An attacker can compute valid checksums.
    #[test]
    fn records_that_cannot_be_are_none() {
        let found = |start: u64, len, records: &[(u64, &[u8])]| {
            let mut file = vec![0; 50];
            file.extend(encode(start, len, records));
            Journal::find(&file).unwrap().is_some()
        };
        assert!(found(50, 40, &[(0, b"abc"), (3, b"d"), (39, b"e")]));
        assert!(!found(50, 51, &[(0, b"abc")]), "longer than what is before the journal");
        assert!(!found(50, 40, &[(0, b"abc"), (2, b"d")]), "over each other");
        assert!(!found(50, 40, &[(3, b"abc"), (0, b"d")]), "not in order");
        assert!(!found(50, 40, &[(39, b"ab")]), "behind the end");
        assert!(!found(50, 40, &[(u64::MAX, b"ab")]), "far behind the end");
        assert!(!found(50, 40, &[(0, b"")]), "of nothing");
        assert!(!found(49, 40, &[(0, b"abc")]), "another start");
        assert!(!found(u64::MAX, 40, &[]), "a start behind the end");
        let mut file = vec![0; 50];
        file.extend([u64::MAX.to_be_bytes(), u64::MAX.to_be_bytes(), [0; 8]].concat());
        let records = file.split_off(50);
        let mut bytes =
            [MAGIC.to_vec(), records, 50u64.to_be_bytes().into(), 40u64.to_be_bytes().into()]
                .concat();
        bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
        bytes.extend(MAGIC);
        file.extend(bytes);
        assert_eq!(Journal::find(&file).unwrap(), None, "a length that overflows");
    }
}
