//! Files whose writer was killed in the middle of a change: opening them, and rolling the change back.

use std::fs;
use std::path::Path;

use blosc2::storage::ReadOnly;
use blosc2::{Appender, CParams, Error, ErrorKind, NDArray, OpenOptions, SChunk, Target};
use blosc2_format::frame::journal;

use super::file_locks::{KINDS, beside, chunk, kill, locked, make, role, version};
use crate::common::{Rng, own_process};

/// Rounds of killing a writer.
const ROUNDS: usize = 16;

/// What a killed writer left: `None` for a whole frame.
fn left(path: &Path) -> Option<Error> {
    SChunk::open(path).err()
}

/// Changes the file until the process is killed. With long chunks, it is mostly killed in the middle of a change.
fn change_until_killed(path: &Path, options: &OpenOptions) {
    let mut schunk = options.open(path).unwrap();
    let mut rng = Rng(u64::from(std::process::id()));
    loop {
        let count = schunk.nchunks();
        let index = rng.below(count.max(1) as u64) as usize;
        match rng.below(4) {
            0 if count > 40 => schunk.remove(count - 1).unwrap(),
            0 | 1 if count > 0 => {
                schunk.replace(index, &chunk(index as u32, rng.below(1000) as u32)).unwrap();
            }
            _ => schunk.append(&chunk(count as u32, 0)).unwrap(),
        }
    }
}

/// The options of a child, by its role.
fn options(role: &str) -> OpenOptions {
    let options = OpenOptions::new().write(true).durable(role.contains("durable"));
    options.locking(role.contains("locking")).recover(role.contains("recover"))
}

/// Starts a process that changes the file, and kills it; returns what it left.
fn killed(test: &str, path: &Path, role: &str, rng: &mut Rng) -> Option<Error> {
    let name = path.file_name().unwrap().to_str().unwrap();
    kill(path, || beside(test, path.parent().unwrap(), &format!("{name} {role}")), rng);
    left(path)
}

/// The child of the tests that call [`killed`].
fn child() -> bool {
    let Some(folder) = own_process() else { return false };
    let role = role();
    let (name, how) = role.split_once(' ').unwrap();
    change_until_killed(&folder.join(name), &options(how));
    true
}

fn check(schunk: &SChunk, what: &str) {
    for number in 0..schunk.nchunks() {
        version(number as u32, &schunk.decompress_chunk::<u32>(number).unwrap(), what);
    }
}

/// The next writer, with locking or by `recover`, opens the file in any case.
#[test]
fn the_next_writer_opens_what_a_killed_one_left() {
    let test = "the_next_writer_opens_what_a_killed_one_left";
    if child() {
        return;
    }
    for (name, directory) in KINDS {
        for how in ["locking", "locking durable", "recover", "recover durable"] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join(name);
            let new = OpenOptions::new().create_new(true).typesize(4);
            drop(new.open(Target::from(&path).directory(directory)).unwrap());
            let (mut rng, mut unfinished) = (Rng(7), 0);
            for round in 0..ROUNDS {
                let what = format!("{name}, {how}, killed {round} times");
                if let Some(error) = killed(test, &path, how, &mut rng) {
                    assert!(!directory, "{what}: {error}");
                    assert_eq!(error.kind(), ErrorKind::Unfinished, "{what}: {error}");
                    let text = error.to_string();
                    for remedy in ["OpenOptions::locking", "OpenOptions::recover", "blosc2 repair"]
                    {
                        assert!(text.contains(remedy), "{what}: {text}");
                    }
                    let hint = "another program may be changing it";
                    assert_eq!(text.contains(hint), how.contains("locking"), "{text}");
                    unfinished += 1;
                }
                if round % 3 == 1 {
                    // The next one is the process that is killed.
                    continue;
                }
                let schunk = options(how).open(&path).unwrap();
                check(&schunk, &what);
                drop(schunk);
                check(&SChunk::open(&path).unwrap(), &what);
            }
            // How many there are depends on the time that the file system takes to sync.
            println!("{name}, {how}: {unfinished} of {ROUNDS} unfinished");
        }
    }
}

/// A reader gets an error and stays usable; a writer that was open all the time goes on.
#[test]
fn handles_that_were_open_go_on_after_a_writer_was_killed() {
    let test = "handles_that_were_open_go_on_after_a_writer_was_killed";
    if child() {
        return;
    }
    for (name, directory) in KINDS {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        make(&path, directory);
        let mut writer = locked().open(&path).unwrap();
        writer.append(&chunk(0, 0)).unwrap();
        let mut reader = OpenOptions::new().locking(true).open(&path).unwrap();
        let (mut rng, mut unfinished) = (Rng(3), 0);
        for round in 0..ROUNDS {
            let what = format!("{name}, killed {round} times");
            let is_unfinished = killed(test, &path, "locking durable", &mut rng).is_some();
            unfinished += usize::from(is_unfinished);
            let refused = |error: Error| {
                assert!(is_unfinished && error.kind() == ErrorKind::Unfinished, "{what}: {error}");
            };
            let read = [
                reader.decompress_chunk::<u32>(0).map(drop),
                reader.refresh().map(drop),
                OpenOptions::new().locking(true).open(&path).map(drop),
            ];
            for read in read {
                assert_eq!(read.is_err(), is_unfinished, "{what}");
                read.err().into_iter().for_each(refused);
            }
            match round % 4 {
                0 => writer.replace(0, &chunk(0, 7)).unwrap(),
                1 => drop(writer.refresh().unwrap()),
                2 => drop(writer.decompress_chunk::<u32>(0).unwrap()),
                _ => writer.locked(|writer| writer.replace(0, &chunk(0, 5))).unwrap(),
            }
            // The same handles.
            reader.refresh().unwrap();
            writer.refresh().unwrap();
            assert_eq!(reader.nchunks(), writer.nchunks(), "{what}");
            check(&reader, &what);
            let next = writer.nchunks();
            writer.append(&chunk(next as u32, 0)).unwrap();
            check(&reader, &what);
            assert_eq!(reader.decompress_chunk::<u32>(next).unwrap(), chunk(next as u32, 0));
        }
        println!("{name}: {unfinished} of {ROUNDS} unfinished");
        assert!(unfinished == 0 || !directory, "{name}: {unfinished} of {ROUNDS}");
    }
}

/// A logger that appends rows to an array and flushes them is killed again and again.
#[test]
fn a_logger_that_is_killed_keeps_its_rows_in_order() {
    const FLUSHED: u64 = 5;
    let test = "a_logger_that_is_killed_keeps_its_rows_in_order";
    let open = |path: &Path| NDArray::open_with(path, &locked().durable(true));
    if let Some(folder) = own_process() {
        let path = folder.join(role());
        let array = open(&path).unwrap();
        let first = array.len();
        let mut log: Appender = Appender::new(array, 0).unwrap();
        for row in first.. {
            log.append(&[row]).unwrap();
            if (row + 1) % FLUSHED == 0 {
                log.flush().unwrap();
            }
        }
    }
    for (name, directory) in [("log.b2nd", false), ("log.directory", true)] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        let builder =
            NDArray::builder().chunk_shape(&[100]).options(OpenOptions::new().locking(true));
        let builder = builder.target(Target::from(&path).directory(directory));
        drop(builder.zeros::<u64>(&[0]).unwrap());
        let (mut rng, mut unfinished, mut rows) = (Rng(11), 0, 0);
        for round in 0..ROUNDS {
            kill(&path, || beside(test, folder.path(), name), &mut rng);
            unfinished += usize::from(left(&path).is_some());
            let array = open(&path).unwrap();
            let found = array.read::<Vec<u64>>(..).unwrap();
            let count = found.len() as u64;
            assert!(count >= rows && count.is_multiple_of(FLUSHED), "{name}, {round}: {count}");
            assert!(
                found.iter().zip(0..).all(|(row, at)| *row == at),
                "{name}, {round}: {found:?}"
            );
            rows = count;
        }
        assert!(rows > 0);
        println!("{name}: {unfinished} of {ROUNDS} unfinished");
        assert!(unfinished == 0 || !directory, "{name}: {unfinished} of {ROUNDS}");
    }
}

/// A frame of two chunks, and the same in the middle of a change: with a journal of its first bytes.
fn unfinished() -> (Vec<u8>, Vec<u8>) {
    let params = CParams::new().level(0).typesize(4);
    let mut schunk = OpenOptions::new().cparams(params).create_new(true).open(Vec::new()).unwrap();
    for number in 0..2 {
        schunk.append(&chunk(number, 0)).unwrap();
    }
    let good = schunk.into_cframe().unwrap();
    let len = good.len() as u64;
    let journal = journal::encode(len, len, &[(0, &good[..200])]);
    let mut bytes = [&good[..], &journal].concat();
    bytes[50..150].fill(0x55);
    bytes[journal::MARK_AT as usize] = journal::UNFINISHED;
    (good, bytes)
}

#[test]
fn a_change_is_rolled_back_for_writers_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.b2frame");
    let (good, bytes) = unfinished();
    fs::write(&path, &bytes).unwrap();
    let new = OpenOptions::new;
    for options in [new(), new().locking(true), new().write(true), new().append(true)] {
        let error = options.open(&path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unfinished, "{options:?}");
        let expected = "a writer was interrupted while it changed this frame";
        assert!(error.to_string().contains(expected), "{error}");
        assert!(fs::read(&path).unwrap() == bytes, "{options:?}");
    }
    for options in [
        new().write(true).recover(true),
        new().append(true).recover(true),
        new().create(true).recover(true),
        new().write(true).locking(true),
        new().append(true).locking(true),
        new().write(true).locking(true).check(blosc2::Check::Content),
    ] {
        fs::write(&path, &bytes).unwrap();
        check(&options.open(&path).unwrap(), "rolled back");
        assert!(fs::read(&path).unwrap() == good, "{options:?}");
    }
    let error = new().recover(true).open(&path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);

    // The change is complete except for its last byte.
    let mut completed = good.clone();
    completed[journal::MARK_AT as usize] = journal::UNFINISHED;
    fs::write(&path, &completed).unwrap();
    check(&new().write(true).recover(true).open(&path).unwrap(), "completed");
    assert!(fs::read(&path).unwrap() == good);

    // A handle of this program may be in the middle of it.
    let writer = SChunk::open_rw(&path).unwrap();
    fs::write(&path, &bytes).unwrap();
    for options in [new().write(true).recover(true), new().write(true).locking(true)] {
        assert_eq!(options.open(&path).unwrap_err().kind(), ErrorKind::Busy);
    }
    assert!(fs::read(&path).unwrap() == bytes);
    drop(writer);
}

/// Whoever uses another name of the file would not see the lock.
#[test]
fn a_file_with_several_names_is_not_recovered_by_the_lock() {
    let folder = tempfile::tempdir().unwrap();
    let (path, other) = (folder.path().join("a.b2frame"), folder.path().join("other"));
    let bytes = unfinished().1;
    fs::write(&path, &bytes).unwrap();
    fs::hard_link(&path, &other).unwrap();
    assert_eq!(locked().open(&path).unwrap_err().kind(), ErrorKind::Unsupported);
    assert!(fs::read(&path).unwrap() == bytes);
    check(&OpenOptions::new().write(true).recover(true).open(&other).unwrap(), "by its other name");
}

/// Its index is replaced as a whole.
#[test]
fn an_index_with_a_mark_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    make(&path, true);
    let mut writer = locked().open(&path).unwrap();
    let index = path.join("chunks.b2frame");
    let mut bytes = fs::read(&index).unwrap();
    bytes[journal::MARK_AT as usize] = journal::UNFINISHED;
    fs::write(&index, &bytes).unwrap();
    let recover = OpenOptions::new().write(true).recover(true);
    assert_eq!(writer.refresh().unwrap_err().kind(), ErrorKind::Unfinished);
    assert_eq!(locked().open(&path).unwrap_err().kind(), ErrorKind::Unfinished);
    drop(writer);
    assert_eq!(recover.open(&path).unwrap_err().kind(), ErrorKind::Unfinished);
    assert!(fs::read(&index).unwrap() == bytes);
}

/// Overwritten data is lost: the error says what the user can do.
#[test]
fn what_cannot_be_rolled_back_is_left_for_repair() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.b2frame");
    let (good, bytes) = unfinished();
    let mut without = good.clone();
    without[journal::MARK_AT as usize] = journal::UNFINISHED_WITHOUT_JOURNAL;
    let torn = bytes[..bytes.len() - 1].to_vec();
    let mut broken = good;
    broken[journal::MARK_AT as usize] = journal::UNFINISHED;
    let header_len = u32::from_be_bytes(broken[0x0b..0x0f].try_into().unwrap()) as usize;
    // The length of a chunk.
    broken[header_len + 12..][..4].fill(0x55);
    for bytes in [without, torn, broken] {
        for options in [locked(), OpenOptions::new().write(true).recover(true)] {
            fs::write(&path, &bytes).unwrap();
            let error = options.open(&path).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unfinished, "{error}");
            assert!(error.to_string().contains("(the command `blosc2 repair`) saves"), "{error}");
            assert!(fs::read(&path).unwrap() == bytes);
        }
    }
}

#[test]
fn storages_and_bytes_are_recovered_where_the_caller_says_so() {
    let (good, bytes) = unfinished();
    let options = OpenOptions::new().write(true);
    let kind = |result: blosc2::Result<SChunk>| result.unwrap_err().kind();
    assert_eq!(kind(options.clone().open(bytes.clone())), ErrorKind::Unfinished);
    assert_eq!(kind(options.clone().open(Target::storage(bytes.clone()))), ErrorKind::Unfinished);
    let options = options.recover(true);
    assert!(options.open(bytes.clone()).unwrap().into_cframe().unwrap() == good);
    assert!(options.open(Target::storage(bytes.clone())).unwrap().into_cframe().unwrap() == good);
    assert_eq!(
        kind(options.open(Target::storage(ReadOnly::new(bytes.clone())))),
        ErrorKind::ReadOnly
    );
    let reading = OpenOptions::new().recover(true);
    assert_eq!(kind(reading.open(bytes.clone())), ErrorKind::InvalidArgument);
    assert_eq!(kind(reading.open(Target::storage(bytes))), ErrorKind::InvalidArgument);
    // What is finished is left alone.
    assert!(options.open(good.clone()).unwrap().into_cframe().unwrap() == good);
}

/// A reader without locking, concurrent to a locking writer, may find inconsistent data.
#[test]
fn without_the_lock_of_others_errors_say_that_it_may_be_that() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.b2frame");
    let hint = "another program may be changing it: open it with `OpenOptions::locking`";
    let good = unfinished().0;
    fs::write(&path, &good).unwrap();
    let (alone, locking) = (OpenOptions::new(), OpenOptions::new().locking(true));
    let open = alone.open(&path).unwrap();
    let texts = |open: &SChunk, options: &OpenOptions| {
        let read = open.decompress_chunk::<u32>(1).unwrap_err();
        [read, options.open(&path).unwrap_err()].map(|error| error.to_string())
    };
    fs::write(&path, &good[..good.len() - 2000]).unwrap();
    assert!(texts(&open, &alone).iter().all(|text| !text.contains(hint)));
    fs::write(folder.path().join("a.b2frame.b2lock"), b"").unwrap();
    for text in texts(&open, &alone) {
        assert!(text.ends_with(hint) && text.matches(hint).count() == 1, "{text}");
    }
    fs::write(&path, &good).unwrap();
    let open = locking.open(&path).unwrap();
    fs::write(&path, &good[..good.len() - 2000]).unwrap();
    assert!(texts(&open, &locking).iter().all(|text| !text.contains(hint)));
}
