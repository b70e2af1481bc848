//! Zip archives whose uncompressed members are read in place.

#[cfg(feature = "c")]
mod pack;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::sync::{Arc, Mutex, PoisonError};

use crate::blosc2::storage::ReadAt;
use crate::blosc2::{Error, ErrorKind, Result};
use zip::{CompressionMethod, ZipArchive};

/// Bytes at the end of a file that are read at once: enough for the directory of thousands of members.
const TAIL: u64 = 1 << 20;
/// The start of the end record, its bytes without a comment, and the most bytes of the record with its comment, which
/// end the file.
const END: &[u8] = b"PK\x05\x06";
const END_LEN: u64 = 22;
const END_ROOM: usize = END_LEN as usize + u16::MAX as usize;
/// The maximum number of bytes that opening reads, whatever the size of the file is: enough for about a million members.
const MOST: u64 = 256 << 20;
/// The number of bytes of a member that are copied or compared at once.
const AT_ONCE: u64 = 1 << 20;

#[cfg(feature = "c")]
pub(crate) use pack::{pack, unpack};

pub(crate) type Source = Arc<dyn ReadAt + Send + Sync>;

/// A zip file. Opening it reads only its directory.
pub(crate) struct Archive {
    source: Source,
    zip: Mutex<ZipArchive<Reader>>,
    /// The index of each member, by name.
    members: BTreeMap<String, usize>,
}

impl Archive {
    pub(crate) fn open(source: Source) -> Result<Self> {
        let reader = Reader::new(Arc::clone(&source)).map_err(|error| of_zip(error.into()))?;
        let opening = Arc::clone(&reader.opening);
        let zip = ZipArchive::new(reader).map_err(of_zip)?;
        *opening.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let members = zip.file_names().enumerate();
        let members = members.map(|(number, name)| (name.to_owned(), number)).collect();
        Ok(Self { source, zip: Mutex::new(zip), members })
    }

    /// Whether a file is a zip file: it starts like one, or it ends like one and is no frame. Other bytes can be before
    /// a zip file, such as those of a program that unpacks it.
    pub(crate) fn is_in(file: &(impl ReadAt + ?Sized)) -> io::Result<bool> {
        let size = file.size()?;
        if size < END_LEN {
            return Ok(false);
        }
        let start = file.read_vec_at(0, 10)?;
        if start.starts_with(HEADER.magic) || start.starts_with(END) {
            return Ok(true);
        }
        // The last bytes of a frame are metadata, which can contain anything.
        Ok(start[2..] != *b"b2frame\0" && ends_like_zip(file, size)?)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.members.keys().map(String::as_str)
    }

    pub(crate) fn name(&self, name: &str) -> Option<&str> {
        self.members.get_key_value(name).map(|(name, _)| name.as_str())
    }

    /// Whether the bytes of a member have the checksum that the zip file states.
    pub(crate) fn has_checksum(&self, name: &str) -> Result<bool> {
        let mut zip = self.zip();
        let number = self.number(name)?;
        let member = zip.by_index(number).map_err(of_zip)?;
        let mut member = BufReader::with_capacity(AT_ONCE as usize, member);
        // The library compares the checksum at the end of the member.
        match io::copy(&mut member, &mut io::sink()) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(false),
            Err(error) => Err(of_zip(error.into())),
        }
    }

    fn number(&self, name: &str) -> Result<usize> {
        let missing =
            || Error::new(ErrorKind::NotFound, DOING, format!("there is no member `{name}`"));
        self.members.get(name).copied().ok_or_else(missing)
    }

    /// The bytes of a member, which must be stored uncompressed.
    pub(crate) fn member(&self, name: &str) -> Result<Window> {
        let mut zip = self.zip();
        let number = self.number(name)?;
        let member = zip.by_index_raw(number).map_err(of_zip)?;
        if member.compression() != CompressionMethod::Stored || member.encrypted() {
            let how = if member.encrypted() { "encrypted" } else { "compressed" };
            let detail = format!(
                "its member `{name}` is {how}: a store is read in place, so its members must be stored uncompressed; \
                 unpack it and open the directory"
            );
            return Err(Error::new(ErrorKind::Unsupported, DOING, detail));
        }
        let outside = || {
            let detail = format!("its member `{name}` extends beyond the end of the file");
            Error::new(ErrorKind::InvalidData, DOING, detail)
        };
        let (start, len) = (member.data_start().ok_or_else(outside)?, member.compressed_size());
        let size = self.source.size().map_err(failed)?;
        if start.checked_add(len).is_none_or(|end| end > size) {
            return Err(outside());
        }
        Ok(Window { source: Arc::clone(&self.source), start, len })
    }

    /// The name in the header before the bytes of a member, if it is not the name in the list of members.
    pub(crate) fn other_name(&self, name: &str) -> Result<Option<String>> {
        let mut zip = self.zip();
        let number = self.number(name)?;
        let member = zip.by_index_raw(number).map_err(of_zip)?;
        let start = member.header_start();
        let header = self.source.read_vec_at(start, HEADER.len).map_err(failed)?;
        let found = HEADER.name(&*self.source, start, &header).map_err(failed)?;
        let differs = found != member.name_raw();
        Ok(differs.then(|| String::from_utf8_lossy(&found).into_owned()))
    }

    /// The names that the list of members contains more than once.
    pub(crate) fn duplicates(&self) -> Result<BTreeSet<String>> {
        let mut at = self.zip().central_directory_start();
        let (mut names, mut duplicates) = (BTreeSet::new(), BTreeSet::new());
        let size = self.source.size().map_err(failed)?;
        while at.checked_add(ENTRY.len).is_some_and(|end| end <= size) {
            let entry = self.source.read_vec_at(at, ENTRY.len).map_err(failed)?;
            if !entry.starts_with(ENTRY.magic) {
                break;
            }
            let name = ENTRY.name(&*self.source, at, &entry).map_err(failed)?;
            let lengths = ENTRY.lengths.iter().map(|&length| number_at(&entry, length));
            // Beyond the end, the loop ends.
            at = at.saturating_add(ENTRY.len + lengths.sum::<u64>());
            if let Some(name) = names.replace(name) {
                duplicates.insert(String::from_utf8_lossy(&name).into_owned());
            }
        }
        Ok(duplicates)
    }

    fn zip(&self) -> std::sync::MutexGuard<'_, ZipArchive<Reader>> {
        // A panic leaves no partial change in it.
        self.zip.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the file ends with an end record, at least one member and, except for large files, the list of members that
/// the record locates.
fn ends_like_zip(file: &(impl ReadAt + ?Sized), size: u64) -> io::Result<bool> {
    // Most zip files have no comment, so that a remote file is not read twice.
    for room in [END_LEN, END_ROOM as u64] {
        let len = size.min(room);
        let tail = file.read_vec_at(size - len, len)?;
        let ends = (0..=tail.len() - END_LEN as usize).rev().filter(|&at| {
            let record = &tail[at..];
            let len = END_LEN + number_at(record, 20);
            record.starts_with(END) && number_at(record, 10) > 0 && len == record.len() as u64
        });
        for at in ends {
            let record = &tail[at..];
            let list = number_at(record, 12) | number_at(record, 14) << 16;
            let end = size - len + at as u64;
            // Large files have another record before this one, which has the length of the list.
            let (start, magic) = match list == u64::from(u32::MAX) {
                true => (end.checked_sub(20), LOCATOR),
                false => (end.checked_sub(list), ENTRY.magic),
            };
            if let Some(start) = start.filter(|start| start + 4 <= end)
                && file.read_vec_at(start, 4)? == magic
            {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// The start of the record before the end record of a large file.
const LOCATOR: &[u8] = b"PK\x06\x07";

/// A header with a name, in the zip format.
struct Named<const N: usize> {
    magic: &'static [u8],
    /// The bytes before the name.
    len: u64,
    /// The positions of the lengths of the name and of what follows it.
    lengths: [usize; N],
}

/// The header before the bytes of a member.
const HEADER: Named<2> = Named { magic: b"PK\x03\x04", len: 30, lengths: [26, 28] };
/// The header of an entry of the list of members.
const ENTRY: Named<3> = Named { magic: b"PK\x01\x02", len: 46, lengths: [28, 30, 32] };

impl<const N: usize> Named<N> {
    /// The name after a header that starts at an offset.
    fn name(&self, source: &dyn ReadAt, offset: u64, header: &[u8]) -> io::Result<Vec<u8>> {
        source.read_vec_at(offset.saturating_add(self.len), number_at(header, self.lengths[0]))
    }
}

/// The number of two bytes at a position in a header.
fn number_at(header: &[u8], at: usize) -> u64 {
    header.get(at..at + 2).map_or(0, |it| u64::from(it[0]) | u64::from(it[1]) << 8)
}

impl std::fmt::Debug for Archive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Archive").field("members", &self.zip().len()).finish_non_exhaustive()
    }
}

const DOING: &str = "read a zip file";

fn failed(error: io::Error) -> Error {
    Error::new(ErrorKind::Io, DOING, error)
}

fn of_zip(error: zip::result::ZipError) -> Error {
    match error {
        zip::result::ZipError::Io(error) => match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                Error::new(ErrorKind::InvalidData, DOING, "the file is truncated")
            }
            io::ErrorKind::InvalidData | io::ErrorKind::QuotaExceeded => {
                Error::new(ErrorKind::InvalidData, DOING, error)
            }
            _ => failed(error),
        },
        error => Error::new(ErrorKind::InvalidData, DOING, error),
    }
}

/// A range of the bytes of an archive.
#[derive(Clone)]
pub(crate) struct Window {
    source: Source,
    start: u64,
    len: u64,
}

impl Window {
    pub(crate) fn whole(source: Source) -> io::Result<Self> {
        let len = source.size()?;
        Ok(Self { source, start: 0, len })
    }

    pub(crate) fn range(&self) -> std::ops::Range<u64> {
        self.start..self.start + self.len
    }
}

impl ReadAt for Window {
    fn size(&self) -> io::Result<u64> {
        Ok(self.len)
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let end = offset.checked_add(buffer.len() as u64);
        if end.is_none_or(|end| end > self.len) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.source.read_exact_at(self.start + offset, buffer)
    }

    fn read_ranges_at(&self, ranges: &mut [(u64, &mut [u8])]) -> io::Result<()> {
        let shifted = ranges.iter_mut().map(|(offset, buffer)| {
            let end = offset.checked_add(buffer.len() as u64);
            match end.is_some_and(|end| end <= self.len) {
                true => Ok((self.start + *offset, &mut **buffer)),
                false => Err(io::ErrorKind::UnexpectedEof.into()),
            }
        });
        self.source.read_ranges_at(&mut shifted.collect::<io::Result<Vec<_>>>()?)
    }

    fn request_cost(&self) -> u64 {
        self.source.request_cost()
    }
}

/// The reader for the zip library: the end of the file from memory, other parts as requested.
struct Reader {
    source: Source,
    size: u64,
    position: u64,
    /// Present until the directory is read.
    opening: Arc<Mutex<Option<Opening>>>,
}

struct Opening {
    /// The last bytes of the file.
    tail: Vec<u8>,
    /// Remaining number of bytes to read: the library tries everything that looks like a directory, and a file can
    /// hold many of those.
    left: u64,
}

impl Reader {
    fn new(source: Source) -> io::Result<Self> {
        let size = source.size()?;
        let len = size.min(TAIL);
        let tail = source.read_vec_at(size - len, len)?;
        let last = &tail[tail.len().saturating_sub(END_ROOM)..];
        if !last.windows(END.len()).any(|bytes| bytes == END) {
            // The library would search the whole file, which a server can state to be of any size.
            let detail = "it has no end record: it is truncated, or not a zip file";
            return Err(io::Error::new(io::ErrorKind::InvalidData, detail));
        }
        let left = (16 << 20) + size.saturating_mul(64).min(MOST);
        let opening = Opening { tail, left };
        Ok(Self { source, size, position: 0, opening: Arc::new(Mutex::new(Some(opening))) })
    }
}

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.size.saturating_sub(self.position);
        let len = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let buffer = &mut buffer[..len];
        let mut opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        let held = opening.as_mut().map(|opening| {
            // Short reads take time too.
            opening.left = opening.left.checked_sub(64 + len as u64)?;
            let at = self.position.checked_sub(self.size - opening.tail.len() as u64);
            Some(at.and_then(|at| opening.tail.get(usize::try_from(at).ok()?..)?.get(..len)))
        });
        match held {
            Some(None) => {
                let detail = "it has too many candidates for its central directory";
                return Err(io::Error::new(io::ErrorKind::QuotaExceeded, detail));
            }
            Some(Some(Some(bytes))) => buffer.copy_from_slice(bytes),
            _ => self.source.read_exact_at(self.position, buffer)?,
        }
        self.position += len as u64;
        Ok(len)
    }
}

impl Seek for Reader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::End(offset) => self.size.checked_add_signed(offset),
            SeekFrom::Current(offset) => self.position.checked_add_signed(offset),
        };
        let outside = || io::Error::new(io::ErrorKind::InvalidInput, "a position before the start");
        self.position = position.ok_or_else(outside)?;
        Ok(self.position)
    }
}
