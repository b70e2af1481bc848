//! Frames that are damaged, or whose writer was stopped.

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
    self, ChunkSize, IntactChunk, Layout, Metalayer, Order, Outline, Piece, Salvaged, salvage,
    salvage_directory,
};
use blosc2_format::{Limits, Options, ReadAt, Report, Severity};

use super::files;
use super::options::new_store;
use super::store::State;
use super::verdict::{self, Verdict};
use crate::bytes::{Recovery, WithoutMark, recover};
use crate::gate::{Claim, Gate, Version};
use crate::{Error, ErrorKind, Result};

const REPAIR: &str = "repair a frame";
type CheckResult = std::result::Result<Report, blosc2_format::Error>;
/// The name that the metalayer of an array gets where the chunks are not those of the array any more.
const DAMAGED_ARRAY: &str = "b2nd-damaged";

/// What [`repair`] did. Shown, it is one line.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Repaired {
    /// Nothing: the frame is good.
    Sound,
    /// A change that was stopped was rolled back: the frame is as it was before.
    RolledBack,
    /// A change that was stopped at its end is there: the frame is as it was meant to be.
    Completed,
    /// What was whole was written to a new frame.
    Rebuilt(Rebuilt),
}

/// A frame that was written anew of what was whole in a damaged one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rebuilt {
    /// How many chunks it has.
    pub nchunks: usize,
    /// The chunks that are lost, by the numbers that they had: those behind them have moved up. `None` where
    /// the index is lost, so that nobody can tell. Then chunks are in the order of the file, which is that
    /// of the frame if all were appended one after the other; chunks that had been replaced or deleted
    /// may be among them, and such as were all zeros or another special value are not.
    pub lost: Option<Vec<usize>>,
    /// The metalayers that it has; `None` where it could not be told which there were.
    pub meta: Option<Vec<String>>,
    /// The metalayers of variable length that it has; `None` where it could not be told which there were.
    pub vlmeta: Option<Vec<String>>,
    /// Whether it was an array and is one no more, as its chunks are not all there, each in its place. Its
    /// metalayer is kept under the name `b2nd-damaged`.
    pub was_array: bool,
    /// What the damaged frame is named now; `None` where it was left where it is.
    pub damaged: Option<PathBuf>,
}

/// Puts in order a file or directory whose writer was stopped, or that is damaged.
///
/// - A good frame is left alone, byte for byte. All of its chunks are decompressed to see that.
/// - A change that was stopped in the middle, as this crate makes them, is rolled back, or is found to be complete. Opening
///   the file for writing with [`locking`](crate::OpenOptions::locking) does this, too, and takes no time on a good
///   frame; see [`OpenOptions`](crate::OpenOptions#after-the-death-of-a-writer).
/// - Otherwise what is whole is written to a new frame, with a new index and trailer. It replaces the damaged
///   one, which is kept beside it, with `.damaged` at the end of its name. Nothing is made up: lost chunks are
///   left out, and an array of which any is lost becomes a plain super-chunk. [`Rebuilt`] says what is there.
///
/// Chunks have no checksums: one that has wrong bytes and can be decompressed all the same is taken as whole.
///
/// The lock is taken if the frame has one. Otherwise nobody else may have it open. Handles that other
/// programs have of a frame that is rebuilt have to be opened anew.
///
/// The command `blosc2 repair` does this.
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
/// // A copy that was cut short.
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
/// The file or directory is as it was, unless a change was rolled back:
/// - [`ErrorKind::NotFound`], [`ErrorKind::Io`]: it cannot be read or written;
/// - [`ErrorKind::InvalidData`]: it is no frame, or nothing in it is whole;
/// - [`ErrorKind::Unsupported`]: it is a file of another kind, such as a frame of the betas of C-Blosc2, or a chunk needs
///   a codec that is not here;
/// - [`ErrorKind::AlreadyExists`]: there is something under the name that the damaged frame would get;
/// - [`ErrorKind::TooLarge`]: it takes too much memory, by the default limits of [`OpenOptions`](crate::OpenOptions);
/// - [`ErrorKind::Busy`]: this program has it open for writing.
pub fn repair(path: impl AsRef<Path>) -> Result<Repaired> {
    let path = path.as_ref();
    let io = |error| Error::from_io(REPAIR, path, error);
    let absolute = files::absolute(path)?;
    // What a link leads to is replaced, not the link.
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
                rebuilt = Some(rebuild(&real, is_directory, temporary)?);
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

/// The same, into a new file or directory: what is at `path` is left alone, whatever it is.
///
/// A good frame is copied.
///
/// # Errors
/// As for [`repair`]; [`ErrorKind::AlreadyExists`] where there is something at `output`.
pub fn repair_to(path: impl AsRef<Path>, output: impl AsRef<Path>) -> Result<Repaired> {
    let path = path.as_ref();
    let io = |error| Error::from_io(REPAIR, path, error);
    let is_directory = fs::metadata(path).map_err(io)?.is_dir();
    let mut repaired = Repaired::Sound;
    files::create(output.as_ref(), false, |temporary| {
        copy(path, is_directory, temporary).map_err(io)?;
        if let Some(done) = mend(temporary, is_directory, None).map_err(|error| error.at(path))? {
            repaired = done;
            return Ok(());
        }
        let removed = match is_directory {
            true => fs::remove_dir_all(temporary),
            false => fs::remove_file(temporary),
        };
        removed.map_err(io)?;
        let rebuilt = rebuild(path, is_directory, temporary).map_err(|error| error.at(path))?;
        repaired = Repaired::Rebuilt(rebuilt);
        Ok(())
    })?;
    Ok(repaired)
}

fn copy(path: &Path, is_directory: bool, target: &Path) -> io::Result<()> {
    if !is_directory {
        return fs::copy(path, target).map(drop);
    }
    fs::create_dir(target)?;
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_file() && entry.file_name() != LOCK {
            fs::copy(entry.path(), target.join(entry.file_name()))?;
        }
    }
    Ok(())
}

/// Does what is done in place; `None` where what is there has to be written anew.
fn mend(path: &Path, is_directory: bool, gate: Option<&Gate>) -> Result<Option<Repaired>> {
    let io = |error| Error::of_io(REPAIR, error);
    if is_directory {
        return Ok(is_good(verdict::of_directory(path, gate)?)?.then_some(Repaired::Sound));
    }
    // A pipe would be waited for.
    if !fs::metadata(path).map_err(io)?.is_file() {
        let detail = "it is neither a file nor a directory";
        return Err(Error::new(ErrorKind::InvalidData, REPAIR, detail));
    }
    let file = File::open(path).map_err(io)?;
    match file::recognise(&file).map_err(io)? {
        None | Some(Kind::Frame) => {}
        Some(kind) => {
            let detail = format!("it is of another kind: {kind}");
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

/// To look at everything.
fn all() -> Options {
    Options { content: true, ..Options::default() }
}

/// Whether all of a frame is good.
fn is_good(verdict: Verdict) -> Result<bool> {
    Ok(verdict.fault(REPAIR)?.is_none())
}

/// Writes what is whole at `path` to `target`, where there is nothing.
fn rebuild(path: &Path, is_directory: bool, target: &Path) -> Result<Rebuilt> {
    let limits = Limits::default();
    let failed = |error| Error::from_frame(REPAIR, error);
    if is_directory {
        let disk = Disk(path.to_owned());
        let salvaged = salvage_directory(&disk, &limits).map_err(failed)?;
        let rebuilt = write(&salvaged, target, true, |chunk| {
            let file = File::open(path.join(chunk_name(chunk.at)))?;
            file.read_vec_at(0, chunk.len.into())
        })?;
        return checked(rebuilt, directory::check(&Disk(target.to_owned()), &all()));
    }
    let file = File::open(path).map_err(|error| Error::of_io(REPAIR, error))?;
    let bytes = WithoutMark(&file);
    let salvaged = salvage(&bytes, &limits).map_err(failed)?;
    let rebuilt =
        write(&salvaged, target, false, |chunk| bytes.read_vec_at(chunk.at, chunk.len.into()))?;
    let file = File::open(target).map_err(|error| Error::of_io(REPAIR, error))?;
    checked(rebuilt, frame::check(&file, &all()))
}

/// What was written has to be good.
fn checked(rebuilt: Rebuilt, report: CheckResult) -> Result<Rebuilt> {
    let report = report.map_err(|error| Error::from_frame(REPAIR, error))?;
    match report.findings.iter().find(|finding| finding.rule.severity == Severity::Error) {
        None => Ok(rebuilt),
        Some(finding) => {
            let detail = format!("what is whole in it makes no good frame: {finding}");
            Err(Error::new(ErrorKind::InvalidData, REPAIR, detail))
        }
    }
}

/// Writes a frame of what was salvaged; `read` gives the bytes of a chunk.
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
            Some(_) => "none of its chunks is whole",
            None => "it is no frame, or nothing in it is whole",
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
        layers.iter().filter(fits).map(|layer| layer.name.clone()).collect()
    });
    let size = header.map_or(ChunkSize::Unknown, |header| header.chunksize);
    outline.set_chunksize(size).map_err(|error| Error::from_frame(REPAIR, error))?;
    let store = new_store(target, is_directory)?;
    let (version, limits) = (Version::default(), Limits::default());
    let mut state = State { outline, store, version, unfinished: true, limits };
    let mut lost = Vec::new();
    for (number, piece) in salvaged.chunks.iter().enumerate() {
        if !push(&mut state, piece, &read)? {
            lost.push(number);
        }
    }
    state.finish(REPAIR)?;
    Ok(Rebuilt {
        nchunks: state.nchunks(),
        lost: (salvaged.order == Order::Index).then_some(lost),
        meta,
        vlmeta,
        was_array,
        damaged: None,
    })
}

/// Appends a chunk, if there is one and it fits to the others.
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
        Ok(stores) => state.commit(REPAIR, stores, &[]).map(|()| true),
        Err(_) => Ok(false),
    }
}

/// Gives it the metalayers that are known: their names, and whether the one of an array had to be renamed.
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

/// Whether the chunks are all those of the array that the metalayer describes, in their places.
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
            Self::RolledBack => f.write_str("a change that was stopped was rolled back"),
            Self::Completed => f.write_str("a change that was stopped at its end was completed"),
            Self::Rebuilt(rebuilt) => rebuilt.fmt(f),
        }
    }
}

impl fmt::Display for Rebuilt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rebuilt of {} whole chunks", self.nchunks)?;
        match self.lost.as_deref() {
            None => f.write_str(", in the order of the file as the index is lost")?,
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
        if self.was_array {
            write!(f, "; no array any more, its metalayer is `{DAMAGED_ARRAY}`")?;
        }
        match &self.damaged {
            Some(path) => write!(f, "; the damaged one is {}", path.display()),
            None => Ok(()),
        }
    }
}
