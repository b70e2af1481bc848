//! The promises, asserted for each operation.

use std::collections::HashSet;
use std::ffi::CString;
use std::fs;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use blosc2::repair::{Repaired, repair};
use blosc2::{ErrorKind, OpenOptions, Result};
use blosc2_format::{Options, file};
use blosc2_sys as sys;

use crate::calls::{Call, Fault, Recorded, record};
use crate::common::{C_READS_FRAMES, Rng, repeats};
use crate::model::{self, Left};
use crate::operations::{Content, Handle, Kind, Level, Operation, Setting, content, read};

/// How many sets of changes that are not synced are tried exhaustively, and how many random sets of more changes.
fn extent() -> (usize, usize) {
    match repeats(10) {
        10 => (8, 200),
        _ => (4, 6),
    }
}

/// An operation, the files before it, and what they contain before and after it.
struct Case {
    operation: &'static Operation,
    setting: Setting,
    prepared: tempfile::TempDir,
    scratch: tempfile::TempDir,
    count: usize,
    before: Content,
    after: Content,
}

impl Case {
    fn new(operation: &'static Operation, setting: Setting) -> Self {
        let (prepared, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        (operation.prepare)(prepared.path(), setting);
        let none = Content::new();
        let mut case = Self {
            operation,
            setting,
            prepared,
            scratch,
            count: 0,
            before: none.clone(),
            after: none,
        };
        case.before = case.recovered(&case.prepared.path().join(operation.path)).unwrap();
        let folder = case.folder();
        let mut handle = case.open(&folder);
        case.run(&mut handle, &folder).unwrap_or_else(|error| panic!("{}: {error}", case.name()));
        case.after = read(operation.kind, &folder.join(operation.path)).unwrap();
        assert!(
            (case.before != case.after) == operation.changes,
            "{}: {:?}",
            case.name(),
            case.after.keys()
        );
        case
    }

    fn name(&self) -> String {
        format!("{} ({:?})", self.operation.name, self.setting)
    }

    /// An empty folder.
    fn empty(&mut self) -> PathBuf {
        self.count += 1;
        let folder = self.scratch.path().join(self.count.to_string());
        fs::create_dir(&folder).unwrap();
        folder
    }

    /// A copy of the files before the operation.
    fn folder(&mut self) -> PathBuf {
        let folder = self.empty();
        copy(self.prepared.path(), &folder);
        folder
    }

    fn open(&self, folder: &Path) -> Handle {
        (self.operation.open)(&folder.join(self.operation.path), self.setting).unwrap()
    }

    fn run(&self, handle: &mut Handle, folder: &Path) -> Result<()> {
        (self.operation.run)(handle, folder, self.setting)
    }

    /// Runs the operation on a copy of the files.
    fn record(&mut self, fault: Fault) -> (Result<()>, Recorded, Handle, PathBuf) {
        let folder = self.folder();
        let mut handle = self.open(&folder);
        let (result, recorded) = record(&folder, fault, || self.run(&mut handle, &folder));
        (result, recorded, handle, folder)
    }

    /// Reads the content. An unfinished change is rolled back or completed first.
    fn recovered(&self, place: &Path) -> Result<Content> {
        match read(self.operation.kind, place) {
            Err(error) if error.kind() == ErrorKind::Unfinished => {
                let path = match self.operation.kind {
                    Kind::Tree => &place.join("embed.b2e"),
                    _ => place,
                };
                let options = OpenOptions::new().write(true);
                // All ways to recover a file.
                match self.count % 3 {
                    0 => drop(options.recover(true).open(path)?),
                    1 => drop(options.locking(true).open(path)?),
                    _ => {
                        let repaired = repair(path)?;
                        let is_known = [Repaired::RolledBack, Repaired::Completed];
                        assert!(is_known.contains(&repaired), "{repaired:?}");
                    }
                }
                read(self.operation.kind, place)
            }
            content => content,
        }
    }

    /// Opens the files that a crash left, and checks that they are in one of the `expected` states.
    fn verify(&mut self, left: &Left, expected: &[&Content]) {
        let what = format!("{}, {}", self.name(), left.what);
        let folder = self.empty();
        left.tree.write(&folder);
        let path = folder.join(self.operation.path);
        self.check(&path, expected, &what);
        fs::remove_dir_all(folder).unwrap();
    }

    fn check(&self, path: &Path, expected: &[&Content], what: &str) {
        let mut found = self.recovered(path).unwrap_or_else(|error| panic!("{what}: {error}"));
        if self.operation.kind == Kind::Appended && !expected.contains(&&found) {
            // An unfinished frame after the first one does not matter.
            found.retain(|name, _| !name.starts_with("second "));
        }
        assert!(
            expected.contains(&&found),
            "{what}: a mixture\nfound {}\nexpected {}",
            brief(&found),
            expected.iter().map(|each| brief(each)).collect::<Vec<_>>().join("\n      or ")
        );
        if matches!(self.operation.kind, Kind::SChunk | Kind::Array) && path.exists() {
            // The Rust implementation of the format, and C.
            let options = Options { content: true, ..Options::default() };
            let (_, report) = file::check_path(path, &options).unwrap();
            assert!(report.is_good(), "{what}: {:?}", report.findings);
            if C_READS_FRAMES {
                let chunks = found.iter().filter(|(name, _)| name.starts_with("chunk ")).count();
                assert_eq!(chunks_by_c(path), Some(chunks), "{what}: C");
            }
        }
    }
}

fn brief(content: &Content) -> String {
    let entry = |(name, bytes): (&String, &Vec<u8>)| {
        let sum = bytes.iter().fold(0u32, |sum, &byte| sum.wrapping_mul(31) + u32::from(byte));
        format!("{name}: {} bytes {:08x}", bytes.len(), sum)
    };
    content.iter().map(entry).collect::<Vec<_>>().join("; ")
}

/// The files that operations write before they rename them. A folder for them exists as long as a store is open for
/// changing; then it contains only its lock.
fn temporary(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let is_used = name.ends_with(".b2work") && is_locked(&entry.path().join("lock"));
        let is_temporary = name.starts_with(".blosc2-") || name.ends_with(".new") || name == "new";
        if is_temporary || name.ends_with(".b2work") && !is_used {
            found.push(entry.path());
        } else if entry.file_type().unwrap().is_dir() {
            found.extend(temporary(&entry.path()));
        }
    }
    found
}

fn is_locked(path: &Path) -> bool {
    fs::File::open(path).is_ok_and(|lock| lock.try_lock().is_err())
}

pub(crate) fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            fs::create_dir(&target).unwrap();
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// How many chunks C finds; `None` if it does not open the file, or cannot decompress a chunk.
fn chunks_by_c(path: &Path) -> Option<usize> {
    let path = CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: the path is a string that C copies.
    let schunk = unsafe { sys::blosc2_schunk_open(path.as_ptr()) };
    if schunk.is_null() {
        return None;
    }
    // SAFETY: the super-chunk is live.
    let nchunks = unsafe { (*schunk).nchunks };
    let mut buffer = vec![0u8; 16 << 10];
    let (to, len) = (buffer.as_mut_ptr().cast(), buffer.len() as i32);
    // SAFETY: the super-chunk is live, and the length is that of the target.
    let reads = |at| unsafe { sys::blosc2_schunk_decompress_chunk(schunk, at, to, len) } >= 0;
    let all = (0..nchunks).all(reads);
    // SAFETY: the super-chunk is live, and nobody uses it after this.
    unsafe { sys::blosc2_schunk_free(schunk) };
    all.then_some(nchunks as usize)
}

/// Calls `each` for every operation in every setting of these levels.
fn for_each(levels: &[Level], each: impl Fn(&mut Case)) {
    let mut failed = Vec::new();
    for operation in crate::operations::all() {
        for &directory in operation.layouts {
            for &level in levels.iter().filter(|level| operation.levels.contains(level)) {
                let setting = Setting { directory, level };
                let run = || each(&mut Case::new(operation, setting));
                if panic::catch_unwind(AssertUnwindSafe(run)).is_err() {
                    failed.push(format!("{} ({setting:?})", operation.name));
                }
            }
        }
    }
    assert!(failed.is_empty(), "{} failed: {failed:#?}", failed.len());
}

#[test]
fn a_dead_program_leaves_the_state_before_or_after() {
    for_each(&[Level::Plain, Level::Durable], |case| {
        let (result, recorded, handle, _) = case.record(Fault::None);
        result.unwrap();
        drop(handle);
        let (before, after) = (case.before.clone(), case.after.clone());
        let mut seen = HashSet::new();
        model::deaths(&recorded.before, &recorded.ops, &mut |left| {
            if left.after == recorded.ops.len() {
                case.verify(&left, &[&after]);
            } else if seen.insert(left.tree.hash()) {
                case.verify(&left, &[&before, &after]);
            }
        });
    });
}

#[test]
fn a_power_failure_leaves_the_state_before_or_after_a_durable_change() {
    for_each(&[Level::Durable], |case| {
        let (result, recorded, handle, _) = case.record(Fault::None);
        result.unwrap();
        drop(handle);
        let (before, after) = (case.before.clone(), case.after.clone());
        let mut seen = HashSet::new();
        let Recorded { before: tree, ops, .. } = &recorded;
        model::power_losses(tree, ops, 0, extent(), &mut Rng(1), &mut |left| {
            if left.after == ops.len() {
                case.verify(&left, &[&after]);
            } else if seen.insert(left.tree.hash()) {
                case.verify(&left, &[&before, &after]);
            }
        });
    });
}

#[test]
fn after_a_sync_a_power_failure_loses_nothing() {
    for_each(&[Level::Synced], |case| {
        let (result, recorded, handle, _) = case.record(Fault::None);
        result.unwrap();
        drop(handle);
        let (after, Recorded { before: tree, ops, .. }) = (case.after.clone(), &recorded);
        model::power_losses(tree, ops, ops.len(), extent(), &mut Rng(1), &mut |left| {
            case.verify(&left, &[&after]);
        });
    });
}

/// Without a sync there is no promise but that opening gives data or an error. This also shows what the model of the
/// disk can do: it destroys files whose changes are not synced in the right order.
#[test]
fn without_a_sync_a_power_failure_can_destroy_the_content() {
    let (mixed, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
    for_each(&[Level::Plain], |case| {
        let (result, recorded, handle, _) = case.record(Fault::None);
        result.unwrap();
        drop(handle);
        let Recorded { before: tree, ops, .. } = &recorded;
        let end = ops.len();
        model::power_losses(tree, ops, end, (3, 2), &mut Rng(1), &mut |left| {
            let folder = case.empty();
            left.tree.write(&folder);
            match read(case.operation.kind, &folder.join(case.operation.path)) {
                Ok(found) if found == case.before || found == case.after => {}
                Ok(_) => drop(mixed.fetch_add(1, Ordering::Relaxed)),
                Err(_) => drop(refused.fetch_add(1, Ordering::Relaxed)),
            }
            fs::remove_dir_all(folder).unwrap();
        });
    });
    let (mixed, refused) = (mixed.into_inner(), refused.into_inner());
    assert!(mixed > 100 && refused > 100, "{mixed} mixed, {refused} refused");
}

/// The operation fails with an error that names the fault and changes nothing, and the handle can repeat it.
#[test]
fn an_operation_that_fails_changes_nothing() {
    fail_each(Level::Plain);
}

/// Not even if the power fails after it.
#[test]
fn a_durable_operation_that_fails_changes_nothing() {
    fail_each(Level::Durable);
}

fn fail_each(level: Level) {
    // The long run tries each fault, the others a part of them.
    let step = 100_usize.div_ceil(2 * repeats(100).min(50));
    for_each(&[level], |case| {
        let (result, Recorded { changes, reads, .. }, handle, _) = case.record(Fault::None);
        result.unwrap();
        drop(handle);
        let once = (0..changes).map(|at| Fault::Once(at, libc::EIO));
        let faults = once
            .chain((0..changes).map(Fault::Torn))
            .chain((0..changes).map(Fault::Full))
            .chain((0..changes).map(|at| Fault::Dead(at, libc::EIO)))
            .chain((0..reads).map(Fault::Read))
            .chain([Fault::Short]);
        let first = case.name().len() % step;
        faults.skip(first).step_by(step).for_each(|fault| fails(case, fault));
    });
}

fn fails(case: &mut Case, fault: Fault) {
    let what = format!("{}, {fault:?}", case.name());
    let (result, recorded, mut handle, folder) = case.record(fault);
    let path = folder.join(case.operation.path);
    let (before, after) = (case.before.clone(), case.after.clone());
    let Err(error) = result else {
        // A fault that does not matter, or did not occur.
        drop(handle);
        case.check(&path, &[&after], &what);
        return fs::remove_dir_all(folder).unwrap();
    };
    let text = error.to_string();
    let named = match fault {
        Fault::Torn(_) | Fault::Full(_) => "No space left on device",
        _ => "Input/output error",
    };
    assert!(text.contains(named), "{what}: {text}");
    // If names cannot be synced to disk, or the rollback fails, the change may be stored.
    let is_dead = matches!(fault, Fault::Dead(..));
    let is_reopened = case.operation.opens && matches!(fault, Fault::Read(_));
    let is_kept = matches!(handle, Handle::Lists(_));
    let is_open = is_dead || is_reopened || is_kept || recorded.failed == Some(Call::Names);
    let expected = match is_open {
        true => vec![&before, &after],
        false => vec![&before],
    };
    if !is_dead {
        case.check(&path, &expected, &what);
        if recorded.failed != Some(Call::Removal) {
            assert_eq!(temporary(&folder), Vec::<PathBuf>::new(), "{what}");
        }
    }
    if !matches!(handle, Handle::Path | Handle::Lists(_)) {
        match content(&handle) {
            Ok(found) => assert!(
                expected.contains(&&found),
                "{what}: the handle returns {}\nexpected {}",
                brief(&found),
                brief(&before)
            ),
            Err(error) => assert!(is_dead, "{what}: the handle fails with {error}"),
        }
    }
    // An array of lists keeps rows that could not be written, and writes them again when it is dropped.
    if !is_open {
        let repeated = case.run(&mut handle, &folder);
        repeated.unwrap_or_else(|error| panic!("{what}: the handle cannot repeat it: {error}"));
        drop(handle);
        case.check(&path, &[&after], &format!("{what}, repeated"));
    } else {
        drop(handle);
        case.check(&path, &expected, &what);
    }
    fs::remove_dir_all(folder).unwrap();
    if case.setting.level == Level::Durable {
        let Recorded { before: tree, ops, .. } = &recorded;
        let end = ops.len();
        model::power_losses(tree, ops, end, extent(), &mut Rng(1), &mut |left| {
            let left = Left { what: format!("{fault:?}, then {}", left.what), ..left };
            case.verify(&left, &expected);
        });
    }
}
