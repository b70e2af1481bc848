//! Packing stores to zip files, and unpacking them.

use std::cell::RefCell;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Component, Path};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::*;
use crate::blosc2::storage::{ReadAt, create_file};
use crate::blosc2::{Error, ErrorKind, OpenOptions, Result};
use crate::folder::{Access, Folder, Found};
use crate::key;
use crate::search_indexes;
use crate::work::Work;

const UNPACK: &str = "unpack a store";

/// Writes members, without the search indexes of arrays, to files in a directory. `zip_size` is the size of their zip
/// file. Arrays are opened with these options.
pub(crate) fn unpack<'a>(
    names: impl Iterator<Item = &'a str>,
    open: impl Fn(&str) -> Result<Window>,
    zip_size: Option<u64>,
    folder: &Path,
    options: &OpenOptions,
) -> Result<()> {
    // Overlapping members could unpack to any number of bytes.
    let mut left = zip_size.unwrap_or(u64::MAX);
    for name in names {
        let inside = Path::new(name);
        let is_inside = inside.components().all(|part| matches!(part, Component::Normal(_)));
        if !is_inside || name.contains('\\') {
            let detail = format!("its member `{name}` would be unpacked outside the folder");
            return Err(Error::new(ErrorKind::InvalidData, UNPACK, detail));
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
        let member = open(name)?;
        left = left
            .checked_sub(member.len)
            .ok_or_else(|| Error::new(ErrorKind::InvalidData, UNPACK, "its members overlap"))?;
        let mut creation = File::options();
        let mut target =
            creation.read(true).write(true).create_new(true).open(&path).map_err(io)?;
        for start in (0..member.len).step_by(AT_ONCE as usize) {
            let bytes = member.read_vec_at(start, AT_ONCE.min(member.len - start));
            bytes.and_then(|bytes| target.write_all(&bytes)).map_err(io)?;
        }
        search_indexes::remove(name, &target, options).map_err(|error| error.at(&path))?;
    }
    Ok(())
}

const PACK: &str = "pack a zip file";

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
            let mut source = BufReader::with_capacity(AT_ONCE as usize, source.take(len));
            let copied = io::copy(&mut source, &mut zip).map_err(io)?;
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
