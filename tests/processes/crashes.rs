//! Storages that cannot set their length, whose writer dies at every write, and damaged files: the results of readers
//! and of `repair`. `tests/crash_safety` covers files.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::fs;
use std::io::{self, ErrorKind as IoKind};
use std::path::Path;
use std::sync::{Arc, Mutex};

use blosc2::repair::{Rebuilt, Repaired, repair, repair_to};
use blosc2::storage::{ReadAt, Storage};
use blosc2::{CParams, Codec, ErrorKind, NDArray, OpenOptions, SChunk, SaveOptions, Target};
use blosc2_format::directory::{self, INDEX};
use blosc2_format::{Options, frame};
use blosc2_sys as sys;

use crate::common::{C_READS_FRAMES, Rng};

/// Bytes that outlive the handle, and a writer that dies at a step.
#[derive(Debug, Clone, Default)]
struct Disk(Arc<Mutex<Steps>>);

#[derive(Debug, Default)]
struct Steps {
    bytes: Vec<u8>,
    can_cut: bool,
    /// How many bytes each step wrote; 0 for lengths.
    sizes: Vec<usize>,
    /// The step at which the writer dies, and how many bytes of it are written.
    death: Option<(usize, usize)>,
}

impl Disk {
    fn new(bytes: &[u8], can_cut: bool) -> Self {
        let steps = Steps { bytes: bytes.to_vec(), can_cut, ..Steps::default() };
        Self(Arc::new(Mutex::new(steps)))
    }

    fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().bytes.clone()
    }

    /// Resets the count of the steps, and lets the writer die at `death`.
    fn die_at(&self, death: Option<(usize, usize)>) {
        let mut steps = self.0.lock().unwrap();
        steps.sizes.clear();
        steps.death = death;
    }

    fn sizes(&self) -> Vec<usize> {
        self.0.lock().unwrap().sizes.clone()
    }
}

impl Steps {
    /// How many bytes of a step are written, and whether it works.
    fn step(&mut self, len: usize) -> (usize, io::Result<()>) {
        let step = self.sizes.len();
        self.sizes.push(len);
        match self.death {
            Some((at, _)) if at < step => (0, Err(io::Error::other("dead"))),
            Some((at, torn)) if at == step => (torn, Err(io::Error::other("dead"))),
            _ => (len, Ok(())),
        }
    }
}

impl ReadAt for Disk {
    fn size(&self) -> io::Result<u64> {
        self.0.lock().unwrap().bytes.size()
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.0.lock().unwrap().bytes.read_exact_at(offset, buffer)
    }
}

impl Storage for Disk {
    fn write_all_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut steps = self.0.lock().unwrap();
        let (len, outcome) = steps.step(bytes.len());
        if len > 0 {
            steps.bytes.write_all_at(offset, &bytes[..len])?;
        }
        outcome
    }

    fn set_size(&mut self, len: u64) -> io::Result<()> {
        let mut steps = self.0.lock().unwrap();
        if !steps.can_cut {
            return Err(IoKind::Unsupported.into());
        }
        let (_, outcome) = steps.step(0);
        outcome.and_then(|()| steps.bytes.set_size(len))
    }
}

/// The content of a super-chunk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Content {
    chunks: Vec<Vec<u32>>,
    note: Option<Vec<u8>>,
}

/// A change of a super-chunk.
#[derive(Debug, Clone)]
enum Change {
    Append(Vec<u32>),
    Update(usize, Vec<u32>),
    Insert(usize, Vec<u32>),
    Delete(usize),
    Note(Vec<u8>),
    Forget,
    /// Several in a transaction.
    Together(Vec<Change>),
}

impl Change {
    fn apply(&self, schunk: &mut SChunk) -> blosc2::Result<()> {
        match self {
            Self::Append(items) => schunk.append(items),
            Self::Update(index, items) => schunk.replace(*index, items),
            Self::Insert(index, items) => schunk.insert(*index, items),
            Self::Delete(index) => schunk.remove(*index),
            Self::Note(note) => schunk.vlmeta_mut().set("note", note),
            Self::Forget => schunk.vlmeta_mut().remove("note").map(drop),
            Self::Together(changes) => schunk
                .transaction(|schunk| changes.iter().try_for_each(|change| change.apply(schunk))),
        }
    }

    fn after(&self, before: &Content) -> Content {
        let mut content = before.clone();
        match self {
            Self::Append(items) => content.chunks.push(items.clone()),
            Self::Update(index, items) => content.chunks[*index] = items.clone(),
            Self::Insert(index, items) => content.chunks.insert(*index, items.clone()),
            Self::Delete(index) => drop(content.chunks.remove(*index)),
            Self::Note(note) => content.note = Some(note.clone()),
            Self::Forget => content.note = None,
            Self::Together(changes) => {
                content = changes.iter().fold(content, |content, change| change.after(&content));
            }
        }
        content
    }

    fn items(self) -> Vec<Vec<u32>> {
        match self {
            Self::Append(items) | Self::Update(_, items) | Self::Insert(_, items) => vec![items],
            Self::Delete(_) | Self::Note(_) | Self::Forget => Vec::new(),
            Self::Together(changes) => changes.into_iter().flat_map(Self::items).collect(),
        }
    }

    /// Whether it writes over data that is there.
    fn is_update(&self) -> bool {
        match self {
            Self::Update(..) => true,
            Self::Together(changes) => changes.iter().any(Self::is_update),
            _ => false,
        }
    }
}

const ITEMS: usize = 300;

/// Items that compress well, or not at all.
fn items(rng: &mut Rng, tight: bool) -> Vec<u32> {
    let max = if tight { 3 } else { u64::from(u32::MAX) };
    // The first item is not zero, so that no chunk is.
    (0..ITEMS).map(|at| rng.below(max) as u32 | u32::from(at == 0)).collect()
}

/// 50 appends with updates, in place and moved, and the other changes between them.
fn changes() -> Vec<Change> {
    let mut rng = Rng(50);
    let (mut changes, mut count) = (Vec::new(), 0);
    for number in 0..50 {
        let tight = rng.below(2) == 0;
        changes.push(Change::Append(items(&mut rng, tight)));
        count += 1;
        let index = rng.below(count) as usize;
        match number % 5 {
            1 | 2 => changes.push(Change::Update(index, items(&mut rng, true))),
            3 => changes.push(Change::Update(index, items(&mut rng, false))),
            _ => {}
        }
        match number % 10 {
            4 => changes.push(Change::Note(vec![number as u8; 10 + number])),
            5 => {
                changes.push(Change::Insert(index, items(&mut rng, true)));
                count += 1;
            }
            6 => {
                changes.push(Change::Together(vec![
                    Change::Append(items(&mut rng, false)),
                    Change::Update(index, items(&mut rng, tight)),
                    Change::Note(vec![number as u8; 300]),
                    Change::Delete(0),
                    Change::Append(items(&mut rng, true)),
                ]));
                count += 1;
            }
            // A chunk that was longer than the new end of the frame.
            7 => changes.push(Change::Together(vec![
                Change::Append(items(&mut rng, false)),
                Change::Note(vec![number as u8; 20]),
                Change::Delete(count as usize),
            ])),
            8 if count > 1 => {
                changes.push(Change::Delete(index));
                count -= 1;
            }
            _ => {}
        }
    }
    changes.push(Change::Forget);
    changes
}

fn params() -> CParams {
    CParams::new().codec(Codec::BloscLz).typesize(4)
}

/// The content as the super-chunk returns it.
fn content(schunk: &SChunk) -> blosc2::Result<Content> {
    let chunks = (0..schunk.nchunks()).map(|index| schunk.decompress_chunk(index));
    Ok(Content { chunks: chunks.collect::<Result<_, _>>()?, note: schunk.vlmeta().get("note")? })
}

/// The chunks by the C library.
fn chunks_by_c(path: &Path) -> Option<Vec<Vec<u32>>> {
    let path = CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: the path is a string that C copies.
    let schunk = unsafe { sys::blosc2_schunk_open(path.as_ptr()) };
    if schunk.is_null() {
        return None;
    }
    // SAFETY: the super-chunk is live.
    let nchunks = unsafe { (*schunk).nchunks };
    let mut chunks = Some(Vec::new());
    for index in 0..nchunks {
        let mut items = vec![0u32; 2 * ITEMS];
        let (to, len) = (items.as_mut_ptr().cast(), size_of_val(&items[..]) as i32);
        // SAFETY: the super-chunk is live, and the length is that of the target.
        let read = unsafe { sys::blosc2_schunk_decompress_chunk(schunk, index, to, len) };
        items.truncate(usize::try_from(read).unwrap_or(0) / 4);
        match &mut chunks {
            Some(chunks) if read >= 0 => chunks.push(items),
            _ => chunks = None,
        }
    }
    // SAFETY: the super-chunk is live, and nobody uses it after this.
    unsafe { sys::blosc2_schunk_free(schunk) };
    chunks
}

/// A change, the frame before it, and the earlier change that its handle has made.
struct Case {
    first: Vec<u8>,
    start: Option<Change>,
    change: Change,
    before: Content,
    after: Content,
}

/// All changes, each with a handle that has made the one before.
fn cases() -> Vec<Case> {
    let disk = Disk::new(&[], true);
    let options = OpenOptions::new().create(true).cparams(params());
    let mut schunk = options.open(Target::storage(disk.clone())).unwrap();
    let (mut before, mut first, mut start) = (Content::default(), disk.bytes(), None);
    let mut cases = Vec::new();
    for change in changes() {
        let bytes = disk.bytes();
        change.apply(&mut schunk).unwrap();
        let after = change.after(&before);
        assert_eq!(content(&schunk).unwrap(), after);
        let case = Case { first, start, change: change.clone(), before, after: after.clone() };
        cases.push(case);
        (before, first, start) = (after, bytes, Some(change));
    }
    cases
}

impl Case {
    /// Returns the bytes after the death of the writer, and without a death the sizes of the steps.
    fn run(&self, can_cut: bool, death: Option<(usize, usize)>) -> (Vec<u8>, Vec<usize>) {
        let disk = Disk::new(&self.first, can_cut);
        let mut schunk =
            OpenOptions::new().write(true).open(Target::storage(disk.clone())).unwrap();
        if let Some(change) = &self.start {
            change.apply(&mut schunk).unwrap();
        }
        disk.die_at(death);
        let outcome = self.change.apply(&mut schunk);
        match death {
            None => outcome.unwrap(),
            Some(_) => assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Io),
        }
        (disk.bytes(), disk.sizes())
    }

    /// Which content it is.
    fn which(&self, found: &Content, what: &str) -> &'static str {
        match found {
            found if *found == self.before => "before",
            found if *found == self.after => "after",
            _ => panic!("{what}: a mixture"),
        }
    }
}

/// How many bytes of a step are written: none, some, all.
fn torn(len: usize) -> BTreeSet<usize> {
    BTreeSet::from([0, 1.min(len), len / 3, len / 2, len.saturating_sub(1), len])
}

fn all() -> Options {
    Options { content: true, ..Options::default() }
}

#[test]
fn where_the_length_cannot_be_set_it_is_an_error_and_whole_chunks_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.b2frame");
    let mut seen = BTreeSet::new();
    let ever: BTreeSet<Vec<u32>> = changes().into_iter().flat_map(Change::items).collect();
    for (number, case) in cases().iter().enumerate().filter(|(number, _)| number % 3 == 0) {
        let (_, sizes) = case.run(false, None);
        for (step, len) in sizes.into_iter().enumerate() {
            for torn in torn(len) {
                let what = format!("change {number}, step {step}, {torn} bytes of {len}");
                let (bytes, _) = case.run(false, Some((step, torn)));
                fs::write(&path, &bytes).unwrap();
                let found = match SChunk::open(&path).and_then(|schunk| content(&schunk)) {
                    Ok(found) => case.which(&found, &what),
                    Err(_) => "error",
                };
                if C_READS_FRAMES {
                    assert_eq!(chunks_by_c(&path).is_none(), found == "error", "{what}");
                }
                let damaged = folder.path().join("a.b2frame.damaged");
                match repair(&path) {
                    Ok(Repaired::Sound) => assert!(found != "error", "{what}"),
                    Ok(Repaired::Rebuilt(rebuilt)) => {
                        assert!(found == "error", "{what}");
                        assert_eq!(rebuilt.damaged.as_ref(), Some(&damaged));
                        assert!(fs::read(&damaged).unwrap() == bytes);
                        fs::remove_file(damaged).unwrap();
                        let good = content(&SChunk::open(&path).unwrap()).unwrap();
                        // Without an index, replaced chunks are found as well; one that was being
                        // written over another may be half of each.
                        let unknown = good.chunks.iter().filter(|chunk| !ever.contains(*chunk));
                        let most = usize::from(case.change.is_update());
                        assert!(unknown.count() <= most, "{what}: chunks of nowhere");
                        seen.insert("rebuilt");
                    }
                    Ok(other) => panic!("{what}: {other:?}"),
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::InvalidData, "{what}: {error}");
                        assert!(found == "error" && fs::read(&path).unwrap() == bytes, "{what}");
                        seen.insert("refused");
                    }
                }
                seen.insert(found);
            }
        }
    }
    assert!(seen.is_superset(&BTreeSet::from(["after", "before", "error", "rebuilt"])), "{seen:?}");
}

/// A file of 50 chunks after all changes, and what is in it.
fn file(path: &Path) -> Content {
    let disk = Disk::new(&[], true);
    let options = OpenOptions::new().create(true).cparams(params()).meta("kind", b"a log");
    let mut schunk = options.open(Target::storage(disk.clone())).unwrap();
    for change in changes() {
        change.apply(&mut schunk).unwrap();
    }
    schunk.vlmeta_mut().set("note", b"a note").unwrap();
    fs::write(path, disk.bytes()).unwrap();
    content(&schunk).unwrap()
}

fn rebuilt(repaired: Repaired) -> Rebuilt {
    match repaired {
        Repaired::Rebuilt(rebuilt) => rebuilt,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_file_that_was_only_appended_to_keeps_all_whole_chunks_wherever_it_is_cut() {
    let folder = tempfile::tempdir().unwrap();
    let (path, cut) = (folder.path().join("a.b2frame"), folder.path().join("cut.b2frame"));
    let mut rng = Rng(7);
    let mut schunk = SChunk::create::<u32>(&path, &params()).unwrap();
    let mut ends = Vec::new();
    let chunks: Vec<Vec<u32>> = (0..50).map(|number| items(&mut rng, number % 2 == 0)).collect();
    for chunk in &chunks {
        schunk.append(chunk).unwrap();
        ends.push(schunk.cbytes());
    }
    let bytes = fs::read(&path).unwrap();
    let header_len = bytes.len() as u64 - schunk.cbytes();
    let header_len = (0..header_len).find(|&at| {
        let at = at as usize;
        blosc2_format::chunk::Header::parse(&bytes[at..]).is_ok_and(|header| header.nbytes == 1200)
    });
    let header_len = header_len.unwrap();
    for len in (header_len..bytes.len() as u64).step_by(997).chain([bytes.len() as u64 - 1]) {
        fs::write(&cut, &bytes[..len as usize]).unwrap();
        let whole = ends.iter().filter(|&end| header_len + end <= len).count();
        let output = folder.path().join(format!("{len}.b2frame"));
        let outcome = repair_to(&cut, &output);
        assert_eq!(fs::read(&cut).unwrap(), bytes[..len as usize], "{len} bytes");
        if whole == 0 {
            assert_eq!(outcome.unwrap_err().kind(), ErrorKind::InvalidData);
            assert!(!output.exists());
            continue;
        }
        let rebuilt = rebuilt(outcome.unwrap());
        assert_eq!((rebuilt.nchunks, &rebuilt.damaged), (whole, &None), "{len} bytes");
        assert!(rebuilt.lost.is_none_or(|lost| lost.is_empty() && whole == 50));
        assert_eq!(rebuilt.meta, Some(vec![]));
        let good = SChunk::open(&output).unwrap();
        assert_eq!(content(&good).unwrap().chunks, chunks[..whole], "{len} bytes");
    }
}

#[test]
fn chunks_that_are_broken_are_left_out_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.b2frame");
    let expected = file(&path);
    let good = fs::read(&path).unwrap();
    let schunk = SChunk::open(&path).unwrap();
    let header_len = frame::Header::parse(&good).unwrap().header_len as usize;
    let offsets: Vec<_> = schunk.offsets().unwrap().into_iter().map(Option::unwrap).collect();
    drop(schunk);
    let mut lost: Vec<usize> = vec![3, 17, 40];
    let mut bytes = good.clone();
    for &number in &lost {
        // Its length.
        bytes[header_len + offsets[number] as usize + 12..][..4].fill(0x7f);
    }
    fs::write(&path, &bytes).unwrap();
    let repaired = repair(&path).unwrap();
    let line = repaired.to_string();
    assert!(line.contains("3 lost (3, 17, 40); metalayers kind; vlmetalayers note"), "{line}");
    let found = rebuilt(repaired);
    assert_eq!(found.lost.as_ref(), Some(&lost));
    assert_eq!((found.meta, found.vlmeta), (Some(vec!["kind".into()]), Some(vec!["note".into()])));
    assert!(!found.was_array);
    assert_eq!(fs::read(found.damaged.unwrap()).unwrap(), bytes);
    let schunk = SChunk::open(&path).unwrap();
    let mut chunks = expected.chunks.clone();
    lost.reverse();
    lost.into_iter().for_each(|number| drop(chunks.remove(number)));
    assert_eq!(content(&schunk).unwrap(), Content { chunks, ..expected.clone() });
    assert_eq!(schunk.meta().get("kind").unwrap().as_deref(), Some(&b"a log"[..]));

    // A damaged file of that name is not written over.
    fs::write(&path, &bytes).unwrap();
    assert_eq!(repair(&path).unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert_eq!(fs::read(&path).unwrap(), bytes);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn without_index_trailer_or_header_all_whole_chunks_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let (path, output) = (folder.path().join("a.b2frame"), folder.path().join("out.b2frame"));
    let expected = file(&path);
    let good = fs::read(&path).unwrap();
    let header = frame::Header::parse(&good).unwrap();
    let index = u64::from(header.header_len) + header.cbytes;
    let trailer = good.windows(3).rposition(|three| three == [0x94, 1, 0x93]).unwrap();
    let parts = [("trailer", trailer), ("index", index as usize), ("header", 0x2f)];
    for (part, at) in parts {
        let mut bytes = good.clone();
        bytes[at..at + 6].fill(0x55);
        fs::write(&path, &bytes).unwrap();
        assert!(SChunk::open(&path).is_err(), "{part}");
        let rebuilt = rebuilt(repair_to(&path, &output).unwrap());
        let schunk = SChunk::open(&output).unwrap();
        let found = content(&schunk).unwrap();
        if part == "index" {
            assert_eq!(rebuilt.lost, None);
            let all = expected.chunks.iter().all(|chunk| found.chunks.contains(chunk));
            assert!(all && found.chunks.len() >= expected.chunks.len());
        } else {
            assert_eq!(rebuilt.lost, Some(vec![]), "{part}");
            assert_eq!(found.chunks, expected.chunks, "{part}");
        }
        assert_eq!(found.note.is_some(), part != "trailer", "{part}");
        assert_eq!(rebuilt.vlmeta.is_some(), part != "trailer", "{part}");
        assert!(frame::check(&fs::read(&output).unwrap(), &all()).unwrap().is_good());
        fs::remove_file(&output).unwrap();
    }
}

#[test]
fn an_array_with_lost_chunks_becomes_a_plain_super_chunk() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.b2nd");
    let items: Vec<u16> = (0..600).map(|item| item * 7).collect();
    let builder = NDArray::builder().chunk_shape([5, 10]).block_shape([5, 5]);
    drop(builder.target(&path).from_slice(&items, [20, 30]).unwrap());
    let good = fs::read(&path).unwrap();
    let schunk = SChunk::open(&path).unwrap();
    let header_len = frame::Header::parse(&good).unwrap().header_len as usize;
    let at = header_len + schunk.offsets().unwrap()[4].unwrap() as usize;
    let second = schunk.decompress_chunk::<u16>(5).unwrap();
    drop(schunk);

    // All chunks are whole: it stays an array.
    let cut = &good[..good.len() - 10];
    fs::write(&path, cut).unwrap();
    let output = folder.path().join("whole.b2nd");
    let found = rebuilt(repair_to(&path, &output).unwrap());
    assert_eq!((found.was_array, found.lost), (false, Some(vec![])));
    assert_eq!(NDArray::open(&output).unwrap().read::<Vec<u16>>(..).unwrap(), items);

    let mut bytes = good.clone();
    bytes[at + 12..][..4].fill(0x7f);
    fs::write(&path, &bytes).unwrap();
    let found = rebuilt(repair(&path).unwrap());
    assert_eq!((found.was_array, found.lost), (true, Some(vec![4])));
    assert_eq!(found.meta, Some(vec!["b2nd-damaged".to_owned()]));
    assert!(NDArray::open(&path).is_err());
    let schunk = SChunk::open(&path).unwrap();
    assert_eq!((schunk.nchunks(), schunk.decompress_chunk::<u16>(4).unwrap()), (11, second));
}

#[test]
fn a_file_that_contains_a_frame_is_not_replaced_by_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.b2frame");
    let mut schunk = SChunk::create::<u8>(&path, CParams::default()).unwrap();
    schunk.append(&[7u8; 1000]).unwrap();
    schunk.append(&(0..200u8).collect::<Vec<_>>()).unwrap();
    drop(schunk);
    let frame = fs::read(&path).unwrap();
    // An archive: neither its start nor its end is that of a frame.
    let archive = [&[0xee; 512], &frame[..], &[0xee; 1024]].concat();
    fs::write(&path, &archive).unwrap();
    let error = repair(&path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidData, "{error}");
    assert!(error.to_string().contains("it is not a frame, but contains chunks of one"), "{error}");
    assert!(fs::read(&path).unwrap() == archive);
    // On request its chunks are written to a new file.
    let output = folder.path().join("out");
    assert_eq!(rebuilt(repair_to(&path, &output).unwrap()).nchunks, 2);
    assert!(SChunk::open(&output).unwrap().nbytes() > 0);
}

#[test]
fn what_is_no_frame_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let early =
        "crates/format/tests/golden/files/early-frame/e87dd0af_mem_lizard_shuf_ts4_n1.b2frame";
    let early = blosc2_testing::root().join(early);
    let chunk = blosc2::compress(&[1u32; 1000], &params()).unwrap();
    let mut noise = vec![0; 5000];
    let mut rng = Rng(1);
    noise.fill_with(|| rng.next() as u8);
    for (name, bytes, kind) in [
        ("empty", Vec::new(), ErrorKind::InvalidData),
        ("noise", noise, ErrorKind::InvalidData),
        ("text", b"some text, which is no frame".to_vec(), ErrorKind::InvalidData),
        ("chunk", chunk, ErrorKind::Unsupported),
        ("early", fs::read(early).unwrap(), ErrorKind::Unsupported),
    ] {
        let path = folder.path().join(name);
        fs::write(&path, &bytes).unwrap();
        for error in
            [repair(&path).unwrap_err(), repair_to(&path, folder.path().join("out")).unwrap_err()]
        {
            assert_eq!(error.kind(), kind, "{name}: {error}");
        }
        assert_eq!(fs::read(&path).unwrap(), bytes);
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 5);
    assert_eq!(repair(folder.path().join("none")).unwrap_err().kind(), ErrorKind::NotFound);
    fs::create_dir(folder.path().join("folder")).unwrap();
    let error = repair(folder.path().join("folder")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidData);
}

/// The files of a folder, by their names.
fn files(path: &Path) -> directory::Memory {
    let file = |entry: io::Result<fs::DirEntry>| {
        let entry = entry.unwrap();
        (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())
    };
    directory::Memory(fs::read_dir(path).unwrap().map(file).collect())
}

fn without_lock(path: &Path) -> directory::Memory {
    let mut files = files(path);
    assert!(files.0.remove(directory::LOCK).is_some());
    files
}

#[test]
fn a_directory_is_rebuilt_of_the_files_that_are_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let options = OpenOptions::new().create_new(true).locking(true).durable(true);
    let target = Target::from(&path).directory(true);
    let mut schunk = options.cparams(params()).open(target).unwrap();
    let mut expected = Content::default();
    for change in changes() {
        change.apply(&mut schunk).unwrap();
        expected = change.after(&expected);
    }
    let places = schunk.offsets().unwrap();
    drop(schunk);
    assert_eq!(repair(&path).unwrap(), Repaired::Sound);
    let name = |number: usize| directory::chunk_name(places[number].unwrap());
    fs::remove_file(path.join(name(9))).unwrap();
    fs::write(path.join(name(30)), b"not a chunk").unwrap();
    let damaged = without_lock(&path);

    let output = folder.path().join("out");
    let found = rebuilt(repair_to(&path, &output).unwrap());
    assert_eq!((found.lost, found.damaged), (Some(vec![9, 30]), None));
    expected.chunks.remove(30);
    expected.chunks.remove(9);
    assert_eq!(content(&SChunk::open(&output).unwrap()).unwrap(), expected);
    assert!(without_lock(&path) == damaged);

    let found = rebuilt(repair(&path).unwrap());
    assert_eq!(found.lost, Some(vec![9, 30]));
    assert_eq!(content(&SChunk::open(&path).unwrap()).unwrap(), expected);
    assert!(without_lock(&found.damaged.unwrap()) == damaged);
    assert!(path.join(".b2lock").exists());

    // Without an index.
    fs::remove_file(output.join(INDEX)).unwrap();
    let found = rebuilt(repair(&output).unwrap());
    assert_eq!((found.lost, found.nchunks), (None, expected.chunks.len()));
    assert_eq!(content(&SChunk::open(&output).unwrap()).unwrap().chunks, expected.chunks);
}

#[test]
fn what_follows_a_frame_in_its_file_is_not_destroyed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("two.b2frame");
    let mut first = SChunk::create::<u32>(&path, &params()).unwrap();
    first.append(&[1u32; ITEMS]).unwrap();
    let mut second = SChunk::in_memory::<u32>(&params()).unwrap();
    second.append(&[2u32; ITEMS]).unwrap();
    assert_eq!(SaveOptions::new().append(&second, &path).unwrap_err().kind(), ErrorKind::Busy);
    // As another program does it.
    let start = fs::metadata(&path).unwrap().len();
    let bytes = [fs::read(&path).unwrap(), second.to_cframe().unwrap()].concat();
    fs::write(&path, &bytes).unwrap();
    let refused = |schunk: &mut SChunk| {
        let note = schunk.vlmeta_mut().set("note", b"x").unwrap_err();
        for error in [schunk.append(&[3u32; ITEMS]).unwrap_err(), note] {
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
            let expected = format!("{} bytes follow the frame", bytes.len() as u64 - start);
            assert!(error.to_string().contains(&expected), "{error}");
        }
        assert_eq!(schunk.decompress_chunk::<u32>(0).unwrap(), [1; ITEMS]);
        assert_eq!(schunk.nchunks(), 1);
    };
    // A handle that was there before.
    refused(&mut first);
    drop(first);
    refused(&mut SChunk::open_rw(&path).unwrap());
    refused(&mut OpenOptions::new().write(true).locking(true).open(&path).unwrap());
    let mut schunk = OpenOptions::new().append(true).open(&path).unwrap();
    let error = schunk.append(&[3u32; ITEMS]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    drop(schunk);
    assert!(fs::read(&path).unwrap() == bytes);
    let there = OpenOptions::new().open(Target::from(&path).offset(start)).unwrap();
    assert_eq!(there.decompress_chunk::<u32>(0).unwrap(), [2; ITEMS]);
    assert_eq!(repair(&path).unwrap(), Repaired::Sound);
    assert!(fs::read(&path).unwrap() == bytes);

    // Zeros at the end are allowed: a program that had the file mapped may leave them.
    let zeros = [&bytes[..start as usize], &[0; 70_000]].concat();
    fs::write(&path, zeros).unwrap();
    let mut schunk = SChunk::open_rw(&path).unwrap();
    schunk.append(&[3u32; ITEMS]).unwrap();
    assert_eq!(schunk.nchunks(), 2);
    assert_eq!(fs::metadata(&path).unwrap().len(), schunk.frame_len().unwrap());
}
