//! Repair of damaged frames, and of frames whose writer was stopped.

use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use blosc2_format::b2nd::{Geometry, Meta, NAME, OLD_NAME};
use blosc2_format::chunk;
use blosc2_format::directory::{self, Disk, LOCK, chunk_name};
use blosc2_format::file::{self, Kind};
use blosc2_format::frame::{
    self, ChunkSize, IntactChunk, Layout, Metalayer, Order, Outline, Piece, SEARCH_INDEXES,
    Salvaged, salvage, salvage_directory,
};
use blosc2_format::{Limits, Options, ReadAt, Report, Severity};

use super::files;
use super::store::State;
use super::target::new_store;
use super::verdict::{self, Verdict};
use crate::bytes::{Recovery, WithoutMark, recover};
use crate::gate::{Claim, Gate, Version};
use crate::{Doing, Error, ErrorKind, OpenOptions, Result, SChunk};

const REPAIR: &str = "repair a frame";
type CheckResult = std::result::Result<Report, blosc2_format::Error>;
/// The new name of the metalayer of an array if the chunks no longer match the array.
const DAMAGED_ARRAY: &str = "b2nd-damaged";

/// The result of [`repair`] and [`repair_to`]. `Display` writes the result as one line of text.
///
/// ```
/// use blosc2::repair::{Repaired, repair};
/// use blosc2::{CParams, SChunk};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("a.b2frame");
/// SChunk::create::<u8>(&path, &CParams::default())?.append(&[1u8, 2, 3])?;
/// match repair(&path)? {
///     Repaired::Sound => println!("nothing to do"),
///     Repaired::Rebuilt(rebuilt) => println!("{} chunks saved", rebuilt.nchunks),
///     repaired => println!("{repaired}"),
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Repaired {
    /// The frame is valid and needed no repair.
    Sound,
    /// An unfinished change was rolled back: the frame is in the state before the change.
    RolledBack,
    /// An unfinished change was completed, because only its last step was missing: the frame is in the state after the
    /// change.
    Completed,
    /// The frame was damaged, and its intact parts were written to a new frame.
    Rebuilt(Rebuilt),
}

/// A description of a new frame that [`repair`] or [`repair_to`] has written from the intact parts of a damaged frame.
///
/// ```
/// use blosc2::repair::{Repaired, repair};
/// use blosc2::{CParams, SChunk};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("a.b2frame");
/// SChunk::create::<u8>(&path, &CParams::default())?.append(&[7u8; 1000])?;
/// let bytes = std::fs::read(&path)?;
/// std::fs::write(&path, &bytes[..bytes.len() - 30])?; // truncates the trailer
/// let Repaired::Rebuilt(rebuilt) = repair(&path)? else { panic!() };
/// assert_eq!((rebuilt.nchunks, rebuilt.was_array), (1, false));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rebuilt {
    /// The number of chunks of the new frame.
    pub nchunks: usize,
    /// The indices of the lost chunks in the damaged frame. In the new frame, the chunks after a lost chunk have lower
    /// indices.
    ///
    /// `None` if the index of the damaged frame is lost, so that the missing chunks are unknown. In this case:
    /// - The new frame contains the chunks in the order of their offsets in the file. This is the original order if all
    ///   chunks were appended.
    /// - The new frame may contain old versions of replaced chunks, and deleted chunks.
    /// - The new frame lacks special chunks that were recorded only in the index (zeros, NaN, uninitialized).
    pub lost: Option<Vec<usize>>,
    /// The names of the fixed-length metalayers (named byte strings) of the new frame; `None` if the part of the header
    /// that lists them is lost.
    pub meta: Option<Vec<String>>,
    /// The names of the variable-length metalayers of the new frame; `None` if the trailer that lists them is lost.
    pub vlmeta: Option<Vec<String>>,
    /// Whether the header or the metalayers differ from their checksum. The new frame contains these parts, but their
    /// content may be wrong.
    pub is_metadata_changed: bool,
    /// Whether the damaged frame was an array and the new frame is a plain super-chunk, because chunks are missing or
    /// out of order. The metalayer `b2nd` with the shape of the array is renamed to `b2nd-damaged`.
    pub was_array: bool,
    /// The new path of the damaged frame after [`repair`]; `None` after [`repair_to`], which does not rename the
    /// damaged frame.
    pub damaged: Option<PathBuf>,
}

/// Repairs the frame in a file or directory: a frame that is damaged, or whose writer was stopped in the middle of a
/// change.
///
/// The function decompresses all chunks to check the frame. The result depends on the state of the frame:
/// - A valid frame is not changed.
/// - An unfinished change is rolled back, or completed if only its last step is missing; see [crash
///   recovery](crate::OpenOptions#crash-recovery). Opening the file for writing with
///   [`locking`](crate::OpenOptions::locking) also recovers the frame, without a check of all chunks.
/// - For a damaged frame, the intact parts are written to a new frame, with a new index and trailer. The damaged frame
///   is renamed with the suffix `.damaged`, and the new frame gets its path. The new frame does not contain the lost
///   chunks, and no other data replaces them. An array that has lost chunks becomes a plain super-chunk. [`Rebuilt`]
///   describes the new frame.
///
/// Without [checksums](crate::OpenOptions::checksums), a chunk that can be decompressed counts as intact, even if its
/// data is wrong. With checksums, a chunk that differs from its checksum counts as damaged.
///
/// A program that does not support checksums, such as Python, may have changed a frame with checksums. If that change
/// altered the length of the frame or the number of chunks, the checksums are ignored. Otherwise the changed chunks
/// count as damaged. To prevent this, call [`SChunk::set_checksums`](crate::SChunk::set_checksums) first.
///
/// If the frame has a lock file, the function acquires the lock. Without a lock file, the caller must ensure that no
/// other program has the frame open. A handle that has the damaged frame open does not switch to the new frame: open
/// the path again.
///
/// The command `blosc2 repair` calls this function.
///
/// ```
/// use blosc2::repair::{Repaired, repair};
/// use blosc2::{CParams, SChunk};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("a.b2frame");
/// let mut schunk = SChunk::create::<u8>(&path, &CParams::default())?;
/// for number in 0..3u8 {
///     schunk.append(&[number; 1000])?;
/// }
/// drop(schunk);
/// assert_eq!(repair(&path)?, Repaired::Sound);
///
/// // A truncated copy.
/// let bytes = std::fs::read(&path)?;
/// std::fs::write(&path, &bytes[..bytes.len() - 30])?;
/// assert!(SChunk::open(&path).is_err());
/// let Repaired::Rebuilt(rebuilt) = repair(&path)? else { panic!() };
/// assert_eq!((rebuilt.nchunks, rebuilt.lost), (3, Some(vec![])));
/// assert_eq!(SChunk::open(&path)?.decompress_chunk::<u8>(2)?, [2; 1000]);
/// assert!(folder.path().join("a.b2frame.damaged").exists());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// After an error the file or directory is unchanged, or an unfinished change was rolled back or completed.
/// - [`ErrorKind::NotFound`], [`ErrorKind::Io`]: the file cannot be read or written;
/// - [`ErrorKind::InvalidData`], in these cases:
///   - the file is not a frame, for example an archive that contains a frame;
///   - the header, the index and the trailer of the frame are all lost;
///   - no chunk is intact;
///   - the intact parts do not form a valid frame;
/// - [`ErrorKind::Unsupported`]: the file has another format, such as the frame format of a beta version of C-Blosc2;
///   or a chunk needs a codec that this build does not have;
/// - [`ErrorKind::AlreadyExists`]: the path with the suffix `.damaged` already exists;
/// - [`ErrorKind::TooLarge`]: repairing would exceed the default [`limits`](crate::OpenOptions::limits);
/// - [`ErrorKind::Busy`]: this program has the file open for writing.
pub fn repair(path: impl AsRef<Path>) -> Result<Repaired> {
    let path = path.as_ref();
    let io = |error| Error::of_io(REPAIR, error).at(path);
    let absolute = files::absolute(path)?;
    // The target of a link is replaced, not the link.
    let real = fs::canonicalize(path).map_err(io)?;
    let metadata = fs::metadata(path).map_err(io)?;
    let is_directory = metadata.is_dir();
    let at = |error: Error| error.at(path);
    let gate = Gate::of_path(&real, Claim::Write).map_err(at)?;
    let gate = gate.with_lock_if_there(&absolute, is_directory)?;
    let mut pass = gate.change().map_err(at)?;
    let repaired = match mend(&real, is_directory, Some(&gate)).map_err(at)? {
        Some(repaired) => repaired,
        None => {
            let mut rebuilt = None;
            let mut name = OsString::from(path);
            name.push(".damaged");
            let mut kept = real.clone().into_os_string();
            kept.push(".damaged");
            files::replace(&real, Path::new(&kept), &[LOCK], |temporary| {
                rebuilt = Some(rebuild(&real, is_directory, temporary, Evidence::Frame)?);
                Ok(())
            })
            .map_err(|error| error.at(path))?;
            let damaged = Some(PathBuf::from(name));
            rebuilt.map_or(Repaired::Sound, |each| Repaired::Rebuilt(Rebuilt { damaged, ..each }))
        }
    };
    pass.changed();
    Ok(repaired)
}

/// Writes a repaired copy of the frame in a file or directory to a new file or directory, and does not change the
/// original. A valid frame is copied.
///
/// The function acquires no lock. The caller must ensure that no other handle or program changes the original during
/// the call. The copy does not contain Python's [search indexes](crate::super_chunk::SEARCH_INDEXES).
///
/// In contrast to [`repair`], one intact chunk is enough: the function also writes a new frame if the header, the index
/// and the trailer are all lost.
///
/// # Errors
/// Fails with the errors of [`repair`] except [`ErrorKind::Busy`], and with
/// - [`ErrorKind::AlreadyExists`]: a file or directory already exists at `output`; this function does not change it.
pub fn repair_to(path: impl AsRef<Path>, output: impl AsRef<Path>) -> Result<Repaired> {
    let path = path.as_ref();
    let io = |error| Error::of_io(REPAIR, error).at(path);
    let is_directory = fs::metadata(path).map_err(io)?.is_dir();
    let mut repaired = Repaired::Sound;
    files::create_file(output.as_ref(), false, None, |temporary| {
        copy(path, is_directory, temporary).map_err(io)?;
        if let Some(done) = mend(temporary, is_directory, None).map_err(|error| error.at(path))? {
            repaired = done;
            return remove_search_indexes(temporary).map_err(|error| error.at(path));
        }
        let removed = match is_directory {
            true => fs::remove_dir_all(temporary),
            false => fs::remove_file(temporary),
        };
        removed.map_err(io)?;
        let rebuilt = rebuild(path, is_directory, temporary, Evidence::Chunks);
        let rebuilt = rebuilt.map_err(|error| error.at(path))?;
        repaired = Repaired::Rebuilt(rebuilt);
        Ok(())
    })?;
    Ok(repaired)
}

fn copy(path: &Path, is_directory: bool, target: &Path) -> io::Result<()> {
    if !is_directory {
        return copy_file(path, target);
    }
    fs::create_dir(target)?;
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_file() && entry.file_name() != LOCK {
            copy_file(&entry.path(), &target.join(entry.file_name()))?;
        }
    }
    Ok(())
}

/// Copies a file with its permissions. If the original is read-only, the owner can still write to the copy.
fn copy_file(path: &Path, target: &Path) -> io::Result<()> {
    fs::copy(path, target)?;
    let mut permissions = fs::metadata(target)?.permissions();
    if permissions.readonly() {
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            permissions.set_mode(permissions.mode() | 0o200);
        }
        #[cfg(not(unix))]
        permissions.set_readonly(false);
        fs::set_permissions(target, permissions)?;
    }
    Ok(())
}

/// Removes the search indexes from a copy of a valid frame. If there are none, the copy has the bytes of the original.
fn remove_search_indexes(copy: &Path) -> Result<()> {
    let schunk = SChunk::open(copy)?;
    let names = SEARCH_INDEXES.into_iter().filter(|name| schunk.vlmeta().contains(name));
    let names: Vec<&str> = names.collect();
    if names.is_empty() {
        return Ok(());
    }
    drop(schunk);
    let mut schunk = OpenOptions::new().write(true).open(copy)?;
    names.into_iter().try_for_each(|name| schunk.vlmeta_mut().remove(name).map(drop))
}

/// Repairs a frame in place; returns `None` if it must be rebuilt.
fn mend(path: &Path, is_directory: bool, gate: Option<&Gate>) -> Result<Option<Repaired>> {
    let io = |error| Error::of_io(REPAIR, error);
    if is_directory {
        return Ok(is_good(verdict::of_directory(path, gate)?)?.then_some(Repaired::Sound));
    }
    // Opening a pipe would block.
    if !fs::metadata(path).map_err(io)?.is_file() {
        let detail = "it is neither a file nor a directory";
        return Err(Error::new(ErrorKind::InvalidData, REPAIR, detail));
    }
    let file = File::open(path).map_err(io)?;
    match file::recognise(&file).map_err(io)? {
        None | Some(Kind::Frame) => {}
        Some(kind) => {
            let detail = format!("it is a file of another kind: {kind}");
            return Err(Error::new(ErrorKind::Unsupported, REPAIR, detail));
        }
    }
    if is_good(verdict::of_frame(&file, gate)?)? {
        return Ok(Some(Repaired::Sound));
    }
    let mut file = File::options().read(true).write(true).open(path).map_err(io)?;
    let is_sound =
        |source: &dyn ReadAt| Ok(matches!(verdict::of_frame(source, gate)?, Verdict::Good));
    let repaired = match recover(&mut file, is_sound).map_err(io)? {
        Recovery::RolledBack => Repaired::RolledBack,
        Recovery::Completed => Repaired::Completed,
        Recovery::Unmarked | Recovery::Lost => return Ok(None),
    };
    Ok(is_good(verdict::of_frame(&file, gate)?)?.then_some(repaired))
}

/// Options to check everything.
fn all() -> Options {
    Options { content: true, ..Options::default() }
}

/// Returns whether the whole frame is valid.
fn is_good(verdict: Verdict) -> Result<bool> {
    Ok(verdict.fault().doing(REPAIR)?.is_none())
}

/// The parts that must be intact to rebuild a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Evidence {
    /// The header, the index or the trailer of a frame that starts at the first byte.
    Frame,
    /// Any chunk.
    Chunks,
}

/// Writes the intact parts of the frame at `path` to `target`, which does not exist.
fn rebuild(path: &Path, is_directory: bool, target: &Path, needed: Evidence) -> Result<Rebuilt> {
    let limits = Limits::default();
    if is_directory {
        let disk = Disk(path.to_owned());
        let salvaged = salvage_directory(&disk, &limits).doing(REPAIR)?;
        let rebuilt = write(&salvaged, target, true, |chunk| {
            let file = File::open(path.join(chunk_name(chunk.at)))?;
            file.read_vec_at(0, chunk.len.into())
        })?;
        return checked(rebuilt, directory::check(&Disk(target.to_owned()), &all()));
    }
    let file = File::open(path).map_err(|error| Error::of_io(REPAIR, error))?;
    let bytes = WithoutMark(&file);
    let salvaged = salvage(&bytes, &limits).doing(REPAIR)?;
    let is_frame = match salvaged.header {
        Some(_) => true,
        None => {
            let parts = salvaged.vlmetalayers.is_some() || salvaged.order != Order::File;
            parts
                && !starts_later(&bytes, &salvaged).map_err(|error| Error::of_io(REPAIR, error))?
        }
    };
    if needed == Evidence::Frame && !is_frame {
        let detail =
            "it is not a frame, but contains chunks of one; `repair_to` writes them to a new frame";
        return Err(Error::new(ErrorKind::InvalidData, REPAIR, detail));
    }
    let rebuilt =
        write(&salvaged, target, false, |chunk| bytes.read_vec_at(chunk.at, chunk.len.into()))?;
    let file = File::open(target).map_err(|error| Error::of_io(REPAIR, error))?;
    checked(rebuilt, frame::check(&file, &all()))
}

/// Returns whether a frame header is between the start of a file and its first intact chunk. Such a file is not a
/// frame, but contains a frame, for example an archive.
fn starts_later(file: &dyn ReadAt, salvaged: &Salvaged) -> io::Result<bool> {
    /// The name in a header, at its byte 1.
    const NAME: &[u8] = b"\xa8b2frame\0";
    /// Headers with their metalayers are much shorter.
    const LONGEST: u64 = 64 << 10;
    let intact = salvaged.chunks.iter().filter_map(|piece| match piece {
        Piece::Intact(chunk) => Some(chunk.at),
        _ => None,
    });
    let all = intact.chain(salvaged.unnamed.iter().map(|chunk| chunk.at));
    let Some(first) = all.min() else { return Ok(false) };
    let start = first.saturating_sub(LONGEST).max(2).min(first);
    let before = file.read_vec_at(start, first - start)?;
    Ok(before.windows(NAME.len()).any(|bytes| bytes == NAME))
}

/// Checks that the new frame is valid.
fn checked(rebuilt: Rebuilt, report: CheckResult) -> Result<Rebuilt> {
    let report = report.doing(REPAIR)?;
    match report.findings.iter().find(|finding| finding.rule.severity == Severity::Error) {
        None => Ok(rebuilt),
        Some(finding) => {
            let detail = format!("its intact parts do not form a valid frame: {finding}");
            Err(Error::new(ErrorKind::InvalidData, REPAIR, detail))
        }
    }
}

/// Writes a frame of the salvaged parts; `read` returns the bytes of a chunk.
fn write(
    salvaged: &Salvaged,
    target: &Path,
    is_directory: bool,
    read: impl Fn(&IntactChunk) -> io::Result<Vec<u8>>,
) -> Result<Rebuilt> {
    let header = salvaged.header.as_ref();
    let had_chunks = header.is_none_or(|header| header.nbytes > 0);
    if had_chunks && salvaged.chunks.iter().all(|piece| *piece == Piece::Lost) {
        let detail = match header {
            Some(_) => "none of its chunks is intact",
            None => "it is not a frame, or no part of it is intact",
        };
        return Err(Error::new(ErrorKind::InvalidData, REPAIR, detail));
    }
    let layout = if is_directory { Layout::Directory } else { Layout::Contiguous };
    let mut outline = Outline::new(salvaged.params, layout);
    outline.set_dictionary(header.is_some_and(|header| header.dictionary));
    let (meta, was_array) = add_metalayers(&mut outline, salvaged);
    let vlmeta = salvaged.vlmetalayers.as_ref().map(|layers| {
        let fits =
            |layer: &&Metalayer| outline.set_vlmetalayer_chunk(&layer.name, &layer.content).is_ok();
        // Chunks may be lost.
        let layers = layers.iter().filter(|layer| !SEARCH_INDEXES.contains(&&*layer.name));
        layers.filter(fits).map(|layer| layer.name.clone()).collect()
    });
    let size = header.map_or(ChunkSize::Unknown, |header| header.chunksize);
    if salvaged.has_checksums {
        outline.set_checksums(Some(Vec::new())).doing(REPAIR)?;
    }
    outline.set_chunksize(size).doing(REPAIR)?;
    let store = new_store(target, is_directory)?;
    let (version, limits) = (Version::default(), Limits::default());
    let mut state = State::new(outline, store, version, true, limits);
    let mut lost = Vec::new();
    for (number, piece) in salvaged.chunks.iter().enumerate() {
        if !push(&mut state, piece, &read)? {
            lost.push(number);
        }
    }
    state.finish().doing(REPAIR)?;
    Ok(Rebuilt {
        nchunks: state.nchunks(),
        lost: (salvaged.order == Order::Index).then_some(lost),
        meta,
        vlmeta,
        is_metadata_changed: salvaged.is_metadata_changed,
        was_array,
        damaged: None,
    })
}

/// Appends a chunk. Returns `false` if the chunk is lost or does not match the other chunks.
fn push(
    state: &mut State,
    piece: &Piece,
    read: &impl Fn(&IntactChunk) -> io::Result<Vec<u8>>,
) -> Result<bool> {
    let bytes = match *piece {
        Piece::Lost => return Ok(false),
        Piece::Intact(chunk) => read(&chunk).map_err(|error| Error::of_io(REPAIR, error))?,
        Piece::Special { special, nbytes } => {
            let params = state.outline.params();
            let blocksize =
                params.blocksize.filter(|size| size.is_multiple_of(params.typesize.max(1)));
            let params = chunk::Params { blocksize, ..params };
            match chunk::special(&params, special, nbytes as usize, &[]) {
                Ok(bytes) => bytes,
                Err(_) => return Ok(false),
            }
        }
    };
    let number = state.outline.nchunks();
    match state.outline.insert(number, &bytes) {
        Ok(stores) => state.commit(stores, &[]).doing(REPAIR).map(|()| true),
        Err(_) => Ok(false),
    }
}

/// Adds the salvaged metalayers. Returns their names, and whether the metalayer of an array was renamed.
fn add_metalayers(outline: &mut Outline, salvaged: &Salvaged) -> (Option<Vec<String>>, bool) {
    let mut was_array = false;
    let names = salvaged.metalayers.as_ref().map(|layers| {
        let mut names = Vec::new();
        for layer in layers {
            let is_array = layer.name == NAME || layer.name == OLD_NAME;
            let fits = !is_array || is_whole_array(salvaged, &layer.content);
            was_array |= !fits;
            let name = if fits { &layer.name } else { DAMAGED_ARRAY };
            if outline.add_metalayer(name, &layer.content).is_ok() {
                names.push(name.to_owned());
            }
        }
        names
    });
    (names, was_array)
}

/// Returns whether all chunks of the array that the metalayer describes are intact and in order.
fn is_whole_array(salvaged: &Salvaged, content: &[u8]) -> bool {
    let geometry = Meta::parse(content)
        .map_err(blosc2_format::Error::from)
        .and_then(|meta| Geometry::new(&meta, salvaged.params.typesize, &Limits::default()));
    let Ok(geometry) = geometry else { return false };
    let fits = |piece: &Piece| match *piece {
        Piece::Intact(chunk) => chunk.nbytes as usize == geometry.chunk_len(),
        Piece::Special { nbytes, .. } => nbytes as usize == geometry.chunk_len(),
        Piece::Lost => false,
    };
    salvaged.order == Order::Index
        && salvaged.chunks.len() as u64 == geometry.nchunks()
        && salvaged.chunks.iter().all(fits)
}

impl fmt::Display for Repaired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sound => f.write_str("good: nothing was done"),
            Self::RolledBack => f.write_str("an unfinished change was rolled back"),
            Self::Completed => f.write_str("an unfinished change was completed"),
            Self::Rebuilt(rebuilt) => rebuilt.fmt(f),
        }
    }
}

impl fmt::Display for Rebuilt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rebuilt from {} intact chunks", self.nchunks)?;
        match self.lost.as_deref() {
            None => f.write_str(", in the order of the file, because the index is lost")?,
            Some([]) => f.write_str(", none is lost")?,
            Some(lost) => {
                let numbers: Vec<String> = lost.iter().take(10).map(ToString::to_string).collect();
                let more = if lost.len() > 10 { ", ..." } else { "" };
                write!(f, ", {} lost ({}{more})", lost.len(), numbers.join(", "))?;
            }
        }
        for (names, kind) in [(&self.meta, "metalayers"), (&self.vlmeta, "vlmetalayers")] {
            match names {
                None => write!(f, "; its {kind} are lost")?,
                Some(names) if names.is_empty() => {}
                Some(names) => write!(f, "; {kind} {}", names.join(", "))?,
            }
        }
        if self.is_metadata_changed {
            f.write_str("; the header or the metalayers differ from their checksum")?;
        }
        if self.was_array {
            write!(f, "; it is no longer an array, its metalayer is `{DAMAGED_ARRAY}`")?;
        }
        match &self.damaged {
            Some(path) => write!(f, "; the damaged frame is {}", path.display()),
            None => Ok(()),
        }
    }
}
