//! A sequence of operations on one super-chunk and on its copies.

use std::panic::{AssertUnwindSafe, catch_unwind, panic_any, resume_unwind};
use std::path::{Path, PathBuf};

use blosc2::{Check, ErrorKind, OpenOptions, SChunk};

use super::change::{Access, Change, Setting};
use super::data::params;
use super::look::{compare, facts};
use super::place::{Copied, Place};
use super::simple::{Layer, Model, pack};
use super::stored::Stored;
use crate::common::{Rng, assert_same};

/// A super-chunk, and all that is known of it.
pub(crate) struct Sequence<'a> {
    rng: Rng,
    model: Model,
    setting: Setting,
    place: Place,
    /// Only in between there is none.
    schunk: Option<SChunk>,
    /// Another handle, which reads the same file.
    reader: Option<SChunk>,
    options: OpenOptions,
    locking: bool,
    folder: PathBuf,
    stored: Option<Stored>,
    log: &'a mut Vec<String>,
}

/// One operation.
#[derive(Debug)]
enum Step {
    Change(Change),
    /// While a write of the storage fails.
    Failing(Change, usize),
    /// Several, with the lock of the file kept.
    Locked(Vec<Change>),
    /// Several in one commit.
    Transaction(Vec<Change>, End),
    /// By another handle of the same locked file.
    Elsewhere(Change),
    Refresh,
    Sync,
    Reopen(Access),
    /// Opens a handle that reads the same file.
    Watch,
    /// And goes on with the copy, or does not.
    Copy(Copied, bool),
}

/// How the closure of a transaction ends.
#[derive(Debug, Clone, Copy)]
enum End {
    Success,
    Error,
    Panic,
    /// With success, but a write of the storage fails.
    Failing(usize),
}

impl<'a> Sequence<'a> {
    /// Makes a super-chunk of any kind.
    pub(crate) fn start(seed: u64, folder: &Path, log: &'a mut Vec<String>) -> Self {
        let mut rng = Rng(seed);
        let typesize = *rng.pick(&[1, 4, 4, 8, 300]);
        let params = params(typesize, &mut rng);
        let locking = rng.below(4) == 0;
        let mut options = OpenOptions::new().typesize(typesize).cparams(&params).locking(locking);
        let mut model = Model { typesize, ..Model::default() };
        for number in 0..rng.below(4).saturating_sub(1) {
            let layer =
                Layer { name: format!("first {number}"), content: pack(&[number as u8; 9]) };
            options = options.meta(&layer.name, &layer.content);
            model.meta.push(layer);
        }
        let (place, schunk) = Place::make(&options, folder, &mut rng);
        let setting = Setting {
            access: Access::Write,
            contiguous: place.is_contiguous(),
            regular: rng.below(3) > 0,
            variable_blocks: rng.below(8) == 0,
        };
        log.push(format!("{place:?}, locking {locking}, {typesize}, {params:?}, {setting:?}"));
        Self {
            rng,
            model,
            setting,
            place,
            schunk: Some(schunk),
            reader: None,
            options: OpenOptions::new().locking(locking),
            locking,
            folder: folder.to_owned(),
            stored: None,
            log,
        }
    }

    pub(crate) fn model(&self) -> &Model {
        &self.model
    }

    /// What it left.
    pub(crate) fn stored(&self) -> &Stored {
        self.stored.as_ref().expect("the sequence is finished")
    }

    fn schunk(&mut self) -> &mut SChunk {
        self.schunk.as_mut().expect("there is a super-chunk between the steps")
    }

    pub(crate) fn run(&mut self) {
        for number in 0..6 + self.rng.below(14) {
            let step = self.step();
            self.log.push(format!("{step:?}"));
            if let Some(kind) = self.take(step, number) {
                self.log.push(format!("  fails: {kind:?}"));
            }
            let whole = self.rng.below(8) == 0;
            let Self { schunk: Some(schunk), reader, model, rng, .. } = self else { return };
            compare(schunk, model, whole, rng);
            if let Some(reader) = reader {
                reader.refresh().unwrap();
                compare(reader, model, whole, rng);
                assert_eq!(reader.append(&[1u8]).unwrap_err().kind(), ErrorKind::ReadOnly);
            }
        }
    }

    /// Looks at what is left.
    pub(crate) fn finish(&mut self) {
        self.log.push("the end".into());
        self.reader = None;
        let schunk = self.schunk.take().unwrap();
        compare(&schunk, &self.model, true, &mut self.rng);
        let stored = self.place.stored(schunk, &self.folder, &mut self.rng);
        stored.compare(&self.model);
        self.stored = Some(stored);
    }

    /// What comes next.
    fn step(&mut self) -> Step {
        let Self { model, setting, place, rng, locking, .. } = self;
        let in_file = matches!(place, Place::File(_) | Place::Directory(_));
        if setting.access != Access::Write && rng.below(4) == 0 {
            return Step::Reopen(Access::Write);
        }
        match rng.below(40) {
            0 => Step::Refresh,
            1 => Step::Sync,
            2..4 => Step::Reopen(*rng.pick(&[
                Access::Read,
                Access::Append,
                Access::Write,
                Access::Write,
            ])),
            4..6 if in_file => Step::Watch,
            39 if *locking || rng.below(3) == 0 => {
                let change = |_| Change::random(model, setting, rng);
                Step::Locked((0..3).map(change).collect())
            }
            34..39 => {
                let change = |_| Change::random(model, setting, rng);
                let changes = (0..6).map(change).collect();
                let end = match rng.below(8) {
                    0 => End::Error,
                    1 => End::Panic,
                    2..4 if matches!(place, Place::User(_)) => End::Failing(rng.below(4) as usize),
                    _ => End::Success,
                };
                Step::Transaction(changes, end)
            }
            6..9 => {
                let new = Box::new(params(model.typesize, rng));
                let copied = match rng.below(8) {
                    0 => Copied::Save,
                    1 => Copied::SaveReplacing,
                    2 => Copied::SaveDirectory,
                    3 => Copied::AppendToFile,
                    4 => Copied::Copy(new),
                    5 => Copied::Recompress(new),
                    6 => Copied::TryClone,
                    _ => Copied::ToBytes,
                };
                Step::Copy(copied, rng.below(2) == 0)
            }
            number => {
                let change = Change::random(model, setting, rng);
                match number {
                    9..19 if in_file && *locking => Step::Elsewhere(change),
                    // A stream may have made some chunks before it fails.
                    9..14
                        if matches!(place, Place::User(_))
                            && !matches!(change, Change::Stream { .. }) =>
                    {
                        Step::Failing(change, rng.below(4) as usize)
                    }
                    _ => Step::Change(change),
                }
            }
        }
    }

    /// Runs a step and returns the expected error that it failed with, if any.
    fn take(&mut self, step: Step, number: u64) -> Option<ErrorKind> {
        match step {
            Step::Change(change) => return self.change(&change),
            Step::Failing(change, writes) => {
                return self.change_on_a_failing_storage(&change, writes);
            }
            Step::Elsewhere(change) => return self.change_elsewhere(&change),
            Step::Locked(changes) => self.change_locked(&changes),
            Step::Transaction(changes, end) => return self.change_together(&changes, end),
            Step::Refresh => assert!(!self.schunk().refresh().unwrap(), "nothing is new"),
            Step::Sync => self.schunk().sync().unwrap(),
            Step::Reopen(access) => self.reopen(access),
            Step::Watch => {
                if let Place::File(path) | Place::Directory(path) = &self.place {
                    self.reader = Some(self.options.open(path).unwrap());
                }
            }
            Step::Copy(copied, goes_on) => self.copy(&copied, goes_on, number),
        }
        None
    }

    fn change(&mut self, change: &Change) -> Option<ErrorKind> {
        let Self { schunk: Some(schunk), model, setting, .. } = self else { return None };
        attempt(change, schunk, model, setting, true, || false)
    }

    fn change_on_a_failing_storage(&mut self, change: &Change, writes: usize) -> Option<ErrorKind> {
        let Self { schunk: Some(schunk), model, setting, place: Place::User(storage), .. } = self
        else {
            return None;
        };
        storage.fail_after(Some(writes));
        attempt(change, schunk, model, setting, true, || !storage.fail_after(None))
    }

    fn change_locked(&mut self, changes: &[Change]) {
        let Self { schunk: Some(schunk), model, setting, rng, log, .. } = self else { return };
        let done = schunk.locked(|schunk| {
            for change in changes {
                let failed = attempt(change, schunk, model, setting, true, || false);
                log.extend(failed.map(|kind| format!("  fails: {kind:?}")));
                compare(schunk, model, false, rng);
            }
            Ok(())
        });
        done.unwrap();
    }

    fn change_together(&mut self, changes: &[Change], end: End) -> Option<ErrorKind> {
        let Self { schunk: Some(schunk), model, setting, place, rng, log, .. } = self else {
            return None;
        };
        let before = (model.clone(), facts(schunk));
        let params = schunk.info().cparams;
        let done = catch_unwind(AssertUnwindSafe(|| {
            schunk.transaction(|schunk| {
                for change in changes {
                    let failed = attempt(change, schunk, model, setting, true, || false);
                    log.extend(failed.map(|kind| format!("  fails: {kind:?}")));
                    compare(schunk, model, false, rng);
                }
                match (end, &*place) {
                    (End::Error, _) => {
                        schunk.decompress_chunk::<u8>(schunk.nchunks())?;
                    }
                    (End::Panic, _) => panic_any(End::Panic),
                    (End::Failing(writes), Place::User(storage)) => {
                        storage.fail_after(Some(writes));
                    }
                    _ => {}
                }
                Ok(())
            })
        }));
        let kind = match done {
            Ok(done) => done.err().map(|error| error.kind()),
            Err(payload) if payload.is::<End>() => None,
            Err(payload) => resume_unwind(payload),
        };
        let expected = match (end, &*place) {
            _ if setting.access == Access::Read => Some(ErrorKind::ReadOnly),
            (End::Error, _) => Some(ErrorKind::OutOfBounds),
            (End::Failing(_), Place::User(storage)) if !storage.fail_after(None) => {
                Some(ErrorKind::Io)
            }
            _ => None,
        };
        assert_eq!(kind, expected, "the result of a transaction");
        if kind.is_some() || matches!(end, End::Panic) {
            // These are parameters of the handle.
            schunk.set_cparams(params).unwrap();
            *model = before.0;
            assert_eq!(facts(schunk), before.1, "a transaction that failed has changed something");
        }
        kind
    }

    fn change_elsewhere(&mut self, change: &Change) -> Option<ErrorKind> {
        let Self { schunk: Some(schunk), model, place, options, rng, .. } = self else {
            return None;
        };
        let (Place::File(path) | Place::Directory(path)) = place else { return None };
        let mut other = options.clone().write(true).open(&*path).unwrap();
        let setting = Setting { access: Access::Write, ..self.setting };
        let before = model.clone();
        let failed = attempt(change, &mut other, model, &setting, true, || false);
        let changed = *model != before;
        drop(other);
        // A read and a change see it at once; the numbers are those of the last of them.
        match rng.below(5) {
            0 => {
                let found = schunk.read::<u8>(..).unwrap();
                assert_same(&found, &model.content(), "bytes that another handle has written");
            }
            1 if !model.chunks.is_empty() => {
                let last = model.chunks.len() - 1;
                let found = schunk.decompress_chunk::<u8>(last).unwrap();
                assert_same(&found, &model.chunks[last].data, "another's chunk");
            }
            2..4 => {
                let next = Change::random(model, &self.setting, rng);
                self.log.push(format!("  and then {next:?}"));
                let failed = attempt(&next, schunk, model, &self.setting, false, || false);
                self.log.extend(failed.map(|kind| format!("  fails: {kind:?}")));
                schunk.refresh().unwrap();
            }
            _ => assert!(schunk.refresh().unwrap() || !changed, "a change is seen"),
        }
        failed
    }

    fn reopen(&mut self, access: Access) {
        let Some(schunk) = self.schunk.take() else { return };
        let depths = [Check::Header, Check::Structure, Check::Content];
        let options = self.options.clone().check(*self.rng.pick(&depths));
        let options = match access {
            Access::Read => options,
            Access::Append => options.append(true),
            Access::Write => options.write(true),
        };
        self.schunk = Some(self.place.reopen(schunk, &options, access != Access::Read));
        // Memory of its own has nothing to be opened from.
        let in_memory = matches!(self.place, Place::Memory);
        self.setting.access = if in_memory { Access::Write } else { access };
    }

    fn copy(&mut self, copied: &Copied, goes_on: bool, number: u64) {
        let path = self.folder.join(format!("copy {number}"));
        let options = self.options.clone();
        let made = copied.make(self.schunk(), &path, &options);
        let (place, copy) = made.unwrap_or_else(|error| panic!("{copied:?}: {error}"));
        if let Copied::Copy(_) | Copied::Recompress(_) = copied {
            // There is nothing left of what was never written.
            self.model.chunks.iter_mut().for_each(|chunk| chunk.undefined &= !goes_on);
        }
        if goes_on {
            self.reader = None;
            self.schunk = Some(copy);
            self.setting.access = Access::Write;
            self.setting.contiguous = place.is_contiguous();
            self.place = place;
        } else {
            compare(&copy, &self.model, true, &mut self.rng);
            place.stored(copy, &self.folder.join("."), &mut self.rng).compare(&self.model);
            let _ = std::fs::remove_dir_all(self.folder.join("left"));
        }
    }
}

/// Changes the super-chunk and the model, and returns the expected error that the change failed with, if any. With
/// `looks` the super-chunk is compared before; `storage_failed` is called afterwards.
fn attempt(
    change: &Change,
    schunk: &mut SChunk,
    model: &mut Model,
    setting: &Setting,
    looks: bool,
    storage_failed: impl FnOnce() -> bool,
) -> Option<ErrorKind> {
    let mut then = model.clone();
    let wrong = change.foretell(&mut then, setting);
    let before = looks.then(|| facts(schunk));
    let done = change.apply(schunk);
    let expected = if storage_failed() { &[ErrorKind::Io] } else { &wrong[..] };
    match done {
        Ok(found) => {
            assert!(expected.is_empty(), "it has to fail: {expected:?}");
            let removed =
                then.meta.len() + then.vlmeta.len() < model.meta.len() + model.vlmeta.len();
            assert_eq!(found.unwrap_or(removed), removed);
            *model = then;
            None
        }
        Err(error) => {
            let kind = error.kind();
            assert!(expected.contains(&kind), "{expected:?} expected: {kind:?}: {error}");
            if let Some(before) = before {
                assert_eq!(facts(schunk), before, "what has failed has changed something");
            }
            Some(kind)
        }
    }
}
