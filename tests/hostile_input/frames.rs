//! Untrusted frames: any bytes are refused or read without a panic, within a time limit, and with memory in proportion
//! to the file.

use std::fmt::Debug;
use std::fs::{self, File};
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::time::Duration;

use blosc2::{Check, ErrorKind, OpenOptions, SChunk};
use blosc2_format::chunk::{Params, Special, special};
use blosc2_format::frame::{self, Frame, Writer};
use blosc2_format::{Error, Limits, Options, ReadAt};

use crate::common::measure::measure;
use crate::common::{listing, name};

const MOST_TIME: Duration = Duration::from_secs(2);
/// Most bytes of a chunk or a block that is read.
const MAX_READ: usize = 16 << 20;
/// Most chunks that are listed, and most bytes of content that are read, of one file.
const MOST_CHUNKS: u64 = 10_000;
const MOST_CONTENT: usize = 64 << 20;

/// The most memory that opening, listing and metadata may allocate.
fn most_memory(len: usize) -> usize {
    16 * len + (64 << 20)
}

/// The outcome of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// It is not opened, or its metadata cannot be read.
    Refused,
    /// Some chunk cannot be read.
    Broken,
    /// All of it is read.
    Read,
}

/// A way to read frames.
trait Reader {
    type Opened;
    type Error: Debug;
    /// Opens it, lists the chunks and reads all metadata.
    fn open_bytes(bytes: &[u8]) -> Result<Self::Opened, Self::Error>;
    fn open_file(path: &Path) -> Result<Self::Opened, Self::Error>;
    fn read(opened: &mut Self::Opened) -> Result<(), Self::Error>;
}

struct Format;

fn limits() -> Limits {
    Limits { memory: MAX_READ as u64, total_bytes: MOST_CONTENT as u64, ..Limits::default() }
}

fn open<R: ReadAt + 'static>(source: R) -> Result<Frame<Box<dyn ReadAt>>, Error> {
    let source: Box<dyn ReadAt> = Box::new(source);
    frame::check(&source, &Options { limits: limits(), ..Options::default() })?;
    let frame = Frame::open(source, &limits())?;
    for number in 0..frame.nchunks().min(MOST_CHUNKS) {
        frame.offset(number)?;
        // A chunk that is not there does not keep the others from being read.
        let _ = frame.chunk_nbytes(number);
    }
    let names: Vec<String> = frame.vlmetalayers().map(str::to_owned).collect();
    for name in names {
        frame.vlmetalayer(&name)?.unwrap();
    }
    Ok(frame)
}

impl Reader for Format {
    type Opened = Frame<Box<dyn ReadAt>>;
    type Error = Error;

    fn open_bytes(bytes: &[u8]) -> Result<Self::Opened, Error> {
        open(bytes.to_vec())
    }

    fn open_file(path: &Path) -> Result<Self::Opened, Error> {
        open(File::open(path)?)
    }

    fn read(frame: &mut Self::Opened) -> Result<(), Error> {
        let (mut data, mut total, mut outcome) = (Vec::new(), 0, Ok(()));
        for number in 0..frame.nchunks().min(MOST_CHUNKS) {
            match frame.decode_chunk(number, &mut data) {
                Ok(()) => total += data.len(),
                Err(error) => outcome = Err(error),
            }
            if total > MOST_CONTENT {
                break;
            }
        }
        outcome
    }
}

/// The reader of `blosc2`, through C's pipeline.
struct Bound;

fn open_bound(opened: blosc2::Result<SChunk>) -> blosc2::Result<SChunk> {
    let schunk = opened?;
    for number in 0..schunk.nchunks().min(MOST_CHUNKS as usize) {
        let _ = schunk.chunk_info(number);
    }
    for layers in [schunk.meta(), schunk.vlmeta()] {
        for layer in layers.iter() {
            layer?;
        }
    }
    Ok(schunk)
}

impl Bound {
    fn options() -> OpenOptions {
        // The weakest check at opening, so that more frames are read.
        OpenOptions::new().check(Check::Header).max_read(MAX_READ as u64)
    }
}

impl Reader for Bound {
    type Opened = SChunk;
    type Error = blosc2::Error;

    fn open_bytes(bytes: &[u8]) -> blosc2::Result<SChunk> {
        open_bound(Self::options().open(bytes.to_vec()))
    }

    fn open_file(path: &Path) -> blosc2::Result<SChunk> {
        open_bound(Self::options().open(path))
    }

    fn read(schunk: &mut SChunk) -> blosc2::Result<()> {
        let (mut total, mut outcome) = (0, Ok(()));
        for number in 0..schunk.nchunks().min(MOST_CHUNKS as usize) {
            match schunk.decompress_chunk::<u8>(number) {
                Ok(data) => total += data.len(),
                Err(error) => outcome = Err(error),
            }
            if total > MOST_CONTENT {
                break;
            }
        }
        outcome
    }
}

/// Reads a frame from memory and from a file.
fn look_at<R: Reader>(bytes: &[u8], path: &Path) -> Result<Outcome, String> {
    fs::write(path, bytes).unwrap();
    let from_bytes = look_at_one::<R>(bytes.len(), || R::open_bytes(bytes))?;
    let from_file = look_at_one::<R>(bytes.len(), || R::open_file(path))?;
    if from_bytes != from_file {
        return Err(format!("{from_bytes:?} from memory, {from_file:?} from a file"));
    }
    Ok(from_bytes)
}

fn look_at_one<R: Reader>(
    len: usize,
    open: impl FnOnce() -> Result<R::Opened, R::Error>,
) -> Result<Outcome, String> {
    let (opened, time, memory) = measure(open);
    let opened = opened.map_err(|_| "opening panics")?;
    if time > MOST_TIME || memory > most_memory(len) {
        return Err(format!("opening took {time:?} and {memory} bytes: {:?}", opened.err()));
    }
    let Ok(mut opened) = opened else { return Ok(Outcome::Refused) };
    let (read, time, memory) = measure(|| R::read(&mut opened));
    let read = read.map_err(|_| "reading panics")?;
    // The data, and a block on its way through codec and filters.
    if time > MOST_TIME || memory > 4 * MAX_READ + most_memory(len) {
        return Err(format!("reading took {time:?} and {memory} bytes: {read:?}"));
    }
    Ok(if read.is_ok() { Outcome::Read } else { Outcome::Broken })
}

/// The files of a part of `tests/hostile`; chunks are in frames of their own.
fn files(part: &str) -> Vec<(String, Vec<u8>)> {
    let folder = blosc2_testing::root().join("tests/hostile").join(part);
    let paths: Vec<PathBuf> = listing(&folder).into_iter().map(|(path, _)| path).collect();
    let mut files: Vec<(String, Vec<u8>)> = Vec::new();
    for path in paths {
        let bytes = fs::read(&path).unwrap();
        let bytes = if path.extension().is_some_and(|end| end == "chunk") {
            let typesize = bytes[3].into();
            let params = Params { typesize, ..Params::default() };
            let mut writer = Writer::new(Cursor::new(Vec::new()), params, &[]).unwrap();
            writer.push_chunk(&bytes).unwrap();
            writer.finish().unwrap().into_inner()
        } else {
            bytes
        };
        files.push((name(&path), bytes));
    }
    files.sort();
    files
}

fn every_intact_frame_is_read<R: Reader>() {
    let folder = tempfile::tempdir().unwrap();
    let intact = files("intact");
    assert_eq!(intact.len(), 14);
    for (name, bytes) in &intact {
        let outcome = look_at::<R>(bytes, &folder.path().join("intact"));
        assert_eq!(outcome, Ok(Outcome::Read), "{name}");
    }
}

/// Returns the number of the frames that crash C and are opened here.
fn every_crash_is_refused_or_read<R: Reader>() -> usize {
    let folder = tempfile::tempdir().unwrap();
    let frames = files("crashing");
    assert_eq!(frames.len(), 98);
    let mut opened = 0;
    for (name, bytes) in &frames {
        match look_at::<R>(bytes, &folder.path().join("frame")) {
            Ok(outcome) => opened += usize::from(outcome > Outcome::Refused),
            Err(what) => panic!("{name}: {what}"),
        }
    }
    opened
}

#[test]
fn frames_that_crash_c_are_refused_or_read() {
    for opened in
        [every_crash_is_refused_or_read::<Format>(), every_crash_is_refused_or_read::<Bound>()]
    {
        assert!((1..60).contains(&opened), "{opened} are opened");
    }
}

#[test]
fn intact_frames_are_read() {
    every_intact_frame_is_read::<Format>();
    every_intact_frame_is_read::<Bound>();
}

/// By default, one read of content or of a metalayer of a small file may take 1 GiB.
#[test]
fn a_super_chunk_keeps_the_limits_and_states_how_to_raise_them() {
    let mut writer = Writer::new(Cursor::new(Vec::new()), FLOATS, &[]).unwrap();
    writer.push_chunk(&special(&FLOATS, Special::Zeros, 100 << 20, &[]).unwrap()).unwrap();
    let bytes = Params { typesize: 1, ..FLOATS };
    let large = special(&bytes, Special::Zeros, 200 << 20, &[]).unwrap();
    writer.add_vlmetalayer_chunk("large", &large).unwrap();
    let mut frame = writer.finish().unwrap().into_inner();
    // Other writers do not refuse larger contents.
    let len = (200u32 << 20).to_le_bytes();
    let at = frame.windows(4).position(|bytes| bytes == len).unwrap();
    frame[at..at + 4].copy_from_slice(&(1_200u32 << 20).to_le_bytes());
    let (opened, _, memory) = measure(|| OpenOptions::new().open(frame.clone()));
    let schunk = opened.unwrap().unwrap();
    assert!(memory < 1 << 20, "{memory}");
    let (content, _, memory) = measure(|| schunk.vlmeta().get("large"));
    let error = content.unwrap().map(|_| "it is read").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    assert!(error.to_string().contains("max_read"), "{error}");
    assert!(memory < 1 << 16, "{memory}");
    assert_eq!(schunk.decompress_chunk::<u8>(0).unwrap().len(), 100 << 20);
    let schunk = OpenOptions::new().max_read(99 << 20).open(frame).unwrap();
    let (data, _, memory) = measure(|| schunk.decompress_chunk::<u8>(0));
    let error = data.unwrap().map(|_| "it is read").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    assert!(error.to_string().contains("max_read"), "{error}");
    assert!(memory < 1 << 20, "{memory}");

    let bytes = many_chunks(3_000_000);
    let limits = Limits { metadata: Some(50 << 20), ..Limits::default() };
    let limited = OpenOptions::new().limits(limits);
    let (opened, _, memory) = measure(|| limited.open(bytes.clone()));
    assert_eq!(opened.unwrap().unwrap_err().kind(), ErrorKind::TooLarge);
    assert!(memory < most_memory(bytes.len()), "{memory}");
    let (opened, _, memory) = measure(|| OpenOptions::new().open(bytes.clone()));
    assert_eq!(opened.unwrap().unwrap().nchunks(), 3_000_000);
    assert!(memory < most_memory(bytes.len()) + 24 * 3_000_000, "{memory}");
}

const FLOATS: Params = Params {
    codec: 1,
    codec_meta: 0,
    level: 5,
    typesize: 4,
    blocksize: None,
    filters: [0, 0, 0, 0, 0, 1],
    filters_meta: [0; 6],
    split: blosc2_format::chunk::SplitMode::Auto,
};

/// A frame of `count` special chunks, which take no room except in the index.
fn many_chunks(count: u64) -> Vec<u8> {
    let mut writer = Writer::new(Cursor::new(Vec::new()), FLOATS, &[]).unwrap();
    let kinds = [Special::Zeros, Special::Nan].map(|kind| special(&FLOATS, kind, 400, &[]));
    let kinds = kinds.map(Result::unwrap);
    for number in 0..count {
        writer.push_chunk(&kinds[(number % 2) as usize]).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// Asserts that the error is that of a limit and says how to raise it.
#[track_caller]
fn assert_limited<T>(result: Result<T, Error>) {
    let error = result.err().expect("an error");
    assert!(matches!(error, Error::Limit { .. }), "{error}");
    assert!(error.to_string().contains("`Limits::metadata`"), "{error}");
}

#[test]
fn an_index_of_few_bytes_is_held_within_the_limit() {
    let count = 3_000_000;
    let bytes = many_chunks(count);
    assert!(bytes.len() < 1 << 20, "{count} in {}", bytes.len());
    // The default reads what this crate has written, and decodes the index in parts.
    for (limits, fits) in [
        (Limits::default(), true),
        (Limits { metadata: Some(100 << 20), ..Limits::default() }, true),
        (Limits { metadata: Some(50 << 20), ..Limits::default() }, false),
    ] {
        let (frame, time, memory) = measure(|| Frame::open(&bytes[..], &limits));
        let frame = frame.unwrap();
        assert!(memory < most_memory(bytes.len()), "{memory}");
        assert!(time < MOST_TIME, "{time:?}");
        if fits {
            let frame = frame.unwrap();
            assert_eq!(frame.nchunks(), count);
            assert_eq!(frame.chunk_nbytes(count - 1).unwrap(), 400);
        } else {
            assert_limited(frame);
        }
        let options = Options { limits, ..Options::default() };
        let (report, _, memory) = measure(|| frame::check(&bytes[..], &options));
        assert_eq!(report.unwrap().unwrap().is_complete(), fits);
        assert!(memory < most_memory(bytes.len()) + 24 * count as usize, "{memory}");
    }
}

#[test]
fn chunks_that_are_all_alike_need_no_memory() {
    let mut writer = Writer::new(Cursor::new(Vec::new()), FLOATS, &[]).unwrap();
    writer.fill(Special::Nan, 400 << 24, 400).unwrap();
    let bytes = writer.finish().unwrap().into_inner();
    let (frame, _, memory) = measure(|| Frame::open(&bytes[..], &Limits::default()));
    assert_eq!(frame.unwrap().unwrap().nchunks(), 1 << 24);
    assert!(memory < 1 << 16, "{memory}");
}

/// Adding a chunk to a few bytes that claim millions of chunks takes no more than the index when decoded, once.
#[test]
fn a_chunk_is_added_to_many_that_take_no_room() {
    const COUNT: u64 = 1 << 22;
    let mut writer = Writer::new(Cursor::new(Vec::new()), FLOATS, &[]).unwrap();
    writer.fill(Special::Zeros, 16 * COUNT, 16).unwrap();
    let bytes = writer.finish().unwrap().into_inner();
    assert!(bytes.len() < 300, "{} bytes", bytes.len());
    let mut schunk = OpenOptions::new().write(true).open(bytes).unwrap();
    let (appended, _, memory) = measure(|| schunk.append(&[1.0f32; 4]));
    appended.unwrap().unwrap();
    assert_eq!(schunk.nchunks() as u64, COUNT + 1);
    // An earlier version took 64 bytes for each chunk.
    assert!(memory as u64 <= 9 * COUNT, "{memory}");
    let bytes = schunk.into_cframe().unwrap();
    let schunk = OpenOptions::new().open(bytes).unwrap();
    assert_eq!(schunk.read::<f32>(4 * (COUNT - 1)..).unwrap(), [0., 0., 0., 0., 1., 1., 1., 1.]);
}

#[test]
fn a_metalayer_of_few_bytes_is_held_within_the_limit() {
    let bytes = Params { typesize: 1, ..FLOATS };
    let mut writer = Writer::new(Cursor::new(Vec::new()), FLOATS, &[]).unwrap();
    for (name, len) in [("fits", 30 << 20), ("large", 100 << 20)] {
        let chunk = special(&bytes, Special::Zeros, len, &[]).unwrap();
        writer.add_vlmetalayer_chunk(name, &chunk).unwrap();
    }
    let large = special(&bytes, Special::Zeros, 1_200 << 20, &[]).unwrap();
    let error = writer.add_vlmetalayer_chunk("too large", &large).unwrap_err();
    assert!(matches!(error, Error::Limit { .. }), "{error}");
    let bytes = writer.finish().unwrap().into_inner();
    let limits = Limits { metadata: Some(80 << 20), ..Limits::default() };
    let frame = Frame::open(&bytes[..], &limits).unwrap();
    let (content, _, memory) = measure(|| frame.vlmetalayer("fits"));
    assert_eq!(content.unwrap().unwrap().unwrap().len(), 30 << 20);
    assert!(memory < most_memory(bytes.len()), "{memory}");
    let (content, _, memory) = measure(|| frame.vlmetalayer("large"));
    assert_limited(content.unwrap());
    assert!(memory < 1 << 16, "{memory}");
    let frame = Frame::open(&bytes[..], &Limits::default()).unwrap();
    assert_eq!(frame.vlmetalayer("large").unwrap().unwrap().len(), 100 << 20);
}
