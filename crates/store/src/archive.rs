//! Zip archives whose uncompressed members are read in place.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Component, Path};
use std::sync::{Arc, Mutex, PoisonError};

use blosc2::storage::{ReadAt, create_file};
use blosc2::{Error, ErrorKind, OpenOptions, Result};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use crate::folder::{Access, Folder, Found};
use crate::key;
use crate::search_indexes;
use crate::work::Work;

/// Bytes at the end of a file that are read at once: enough for the directory of thousands of members.
const TAIL: u64 = 1 << 20;
/// The start of the end record, and the most bytes of the record with its comment, which end the file.
const END: &[u8] = b"PK\x05\x06";
const END_ROOM: usize = 22 + u16::MAX as usize;
/// The maximum number of bytes that opening reads, whatever the size of the file is: enough for about a million members.
const MOST: u64 = 256 << 20;

/// The source of an archive.
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

    /// Whether a file starts like a zip file.
    pub(crate) fn is_in(file: &(impl ReadAt + ?Sized)) -> io::Result<bool> {
        let mut start = [0; 4];
        if file.size()? < 22 {
            return Ok(false);
        }
        file.read_exact_at(0, &mut start)?;
        Ok(start == *b"PK\x03\x04" || start == *b"PK\x05\x06")
    }

    /// The names of all members.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.members.keys().map(String::as_str)
    }

    /// The name of the member with this name, if there is one.
    pub(crate) fn name(&self, name: &str) -> Option<&str> {
        self.members.get_key_value(name).map(|(name, _)| name.as_str())
    }

    /// Whether there is a member with this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.members.contains_key(name)
    }

    /// Whether the bytes of a member have the checksum that the zip file states.
    pub(crate) fn has_checksum(&self, name: &str) -> Result<bool> {
        let mut zip = self.zip();
        let number = self.number(name)?;
        let mut member = zip.by_index(number).map_err(of_zip)?;
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

    /// Writes all members, without the search indexes of arrays, to files in a directory. Arrays are opened with these
    /// options.
    pub(crate) fn unpack(&self, folder: &Path, options: &OpenOptions) -> Result<()> {
        let invalid = |detail| Error::new(ErrorKind::InvalidData, UNPACK, detail);
        // Overlapping members could unpack to any number of bytes.
        let mut left = self.source.size().map_err(failed)?;
        for name in self.names() {
            let inside = Path::new(name);
            let is_inside = inside.components().all(|part| matches!(part, Component::Normal(_)));
            if !is_inside || name.contains('\\') {
                return Err(invalid(format!(
                    "its member `{name}` would be unpacked outside the folder"
                )));
            }
            let path = folder.join(inside);
            let io = |error| Error::of_io(UNPACK, error).at(&path);
            if name.ends_with('/') {
                fs::create_dir_all(&path).map_err(io)?;
                continue;
            }
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent).map_err(io)?;
            }
            let member = self.member(name)?;
            let shared = || invalid("its members overlap".to_owned());
            left = left.checked_sub(member.len).ok_or_else(shared)?;
            let mut creation = File::options();
            let mut target =
                creation.read(true).write(true).create_new(true).open(&path).map_err(io)?;
            io::copy(&mut WindowReader::new(member), &mut target).map_err(io)?;
            search_indexes::remove(name, &target, options).map_err(|error| error.at(&path))?;
        }
        Ok(())
    }

    fn zip(&self) -> std::sync::MutexGuard<'_, ZipArchive<Reader>> {
        // A panic leaves no partial change in it.
        self.zip.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

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
const UNPACK: &str = "unpack a zip file";
const PACK: &str = "pack a zip file";

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

/// Packs all files of a store in a directory, uncompressed, the largest first and [`key::INDEX`] last. Links and the
/// search indexes of arrays are not packed.
///
/// The zip file appears when it is complete and on disk, after `check`. With `replace`, it replaces a file. Arrays are
/// opened with `options`.
pub(crate) fn pack(
    folder: &Folder,
    work: &Work,
    path: &Path,
    replace: bool,
    options: &OpenOptions,
    check: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let io = |error| Error::of_io(PACK, error).at(path);
    let mut members: Vec<(u64, String, Found)> = Vec::new();
    for file in folder.files().map_err(io)? {
        let Some(name) = file.text() else {
            let detail = format!("the name of its file `{}` is not UTF-8", file.name.display());
            return Err(Error::new(ErrorKind::Unsupported, PACK, detail).at(folder.path()));
        };
        if !key::is_internal(&name) {
            members.push((file.len, name, file));
        }
    }
    check_names(members.iter().map(|(_, name, _)| name.as_str()))
        .map_err(|detail| Error::new(ErrorKind::TooLarge, PACK, detail).at(folder.path()))?;
    members.sort_by_key(|(len, name, _)| (name == key::INDEX, u64::MAX - len));
    create_file(path, replace, Some(work.path()), |new| {
        let mut file = File::create_new(new).map_err(io)?;
        let fault = RefCell::new(Ok(()));
        let mut zip = ZipWriter::new(Faultless::new(&mut file, &fault));
        for (mut len, name, member) in members {
            let mut source = folder.file(&member.name, Access::Read).map_err(io)?;
            let copy = search_indexes::copy_without(&name, &source, work.path(), options);
            if let Some(copy) = copy.map_err(|error| error.at(folder.path().join(&member.name)))? {
                len = copy.metadata().map_err(io)?.len();
                source = copy;
            }
            let form = SimpleFileOptions::default()
                .compression_method(CompressionMethod::Stored)
                .large_file(len >= u32::MAX.into());
            zip.start_file(name, form).map_err(|error| io(error.into()))?;
            let copied = io::copy(&mut source.take(len), &mut zip).map_err(io)?;
            if fault.borrow().is_err() {
                break;
            }
            if copied != len {
                let detail = "a file became shorter while it was packed";
                return Err(
                    Error::new(ErrorKind::Busy, PACK, detail).at(folder.path().join(member.name))
                );
            }
        }
        let finished = zip.finish().and_then(|mut written| Ok(written.flush()?));
        finished.map_err(|error| io(error.into()))?;
        fault.into_inner().map_err(io)?;
        file.sync_all().map_err(io)?;
        check()
    })
}

/// Checks that the list of these members can be read. The error describes the fault.
fn check_names<'a>(names: impl Iterator<Item = &'a str>) -> Result<(), String> {
    // An entry has the length and the position of a large member in up to 28 more bytes.
    let len = names.map(|name| ENTRY.len + 28 + name.len() as u64).sum::<u64>();
    match len <= MOST {
        true => Ok(()),
        false => Err(format!(
            "the list of its members would have {len} bytes in the zip file, expected at most {MOST}"
        )),
    }
}

/// A writer for the zip library, whose own writer panics in debug builds and prints a message if a write fails. After
/// the first error it only keeps its position.
struct Faultless<'a> {
    file: BufWriter<&'a mut File>,
    position: u64,
    end: u64,
    fault: &'a RefCell<io::Result<()>>,
}

impl<'a> Faultless<'a> {
    fn new(file: &'a mut File, fault: &'a RefCell<io::Result<()>>) -> Self {
        Self { file: BufWriter::new(file), position: 0, end: 0, fault }
    }

    fn attempt(&mut self, work: impl FnOnce(&mut BufWriter<&'a mut File>) -> io::Result<()>) {
        let mut fault = self.fault.borrow_mut();
        if fault.is_ok() {
            *fault = work(&mut self.file);
        }
    }
}

impl Write for Faultless<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.attempt(|file| file.write_all(bytes));
        self.position += bytes.len() as u64;
        self.end = self.end.max(self.position);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.attempt(BufWriter::flush);
        Ok(())
    }
}

impl Seek for Faultless<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::End(offset) => self.end.checked_add_signed(offset),
            SeekFrom::Current(offset) => self.position.checked_add_signed(offset),
        };
        let position = position.ok_or(io::ErrorKind::InvalidInput)?;
        if position != self.position {
            self.attempt(|file| file.seek(SeekFrom::Start(position)).map(drop));
            self.position = position;
        }
        Ok(position)
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
    /// The position in the archive.
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

/// Reads a window from its start.
struct WindowReader {
    window: Window,
    position: u64,
}

impl WindowReader {
    fn new(window: Window) -> Self {
        Self { window, position: 0 }
    }
}

impl Read for WindowReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.window.len - self.position;
        let len = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        self.window.read_exact_at(self.position, &mut buffer[..len])?;
        self.position += len as u64;
        Ok(len)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_that_readers_refuse_are_not_written() {
        let name = "x".repeat(4000);
        let names = |count| std::iter::repeat_n(name.as_str(), count);
        let entry = ENTRY.len + 28 + 4000;
        let most = (MOST / entry) as usize;
        check_names(names(most)).unwrap();
        check_names(names(most + 1)).unwrap_err();
    }
}
