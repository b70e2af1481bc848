//! Tests: each step of random changes fails, or is the last step; it is interrupted at each byte.

use std::collections::BTreeSet;
use std::io::Cursor;

use blosc2_format::frame::{self, Metalayer, Writer};
use blosc2_format::{Options, ReadAt, chunk};
use blosc2_testing::Rng;

use super::super::{Recovery, recover};
use super::*;

fn is_sound(source: &dyn ReadAt) -> io::Result<bool> {
    let options = Options { content: true, ..Options::default() };
    Ok(frame::check(source, &options).unwrap().is_good())
}

/// A storage whose steps, counted from 0, fail as configured.
#[derive(Debug, Clone, Default)]
struct Faulty {
    bytes: Vec<u8>,
    can_cut: bool,
    steps: usize,
    /// A step that fails, and the number of bytes that it writes before it fails.
    stop: Option<(usize, usize)>,
    /// The first of the failing steps, and the number of bytes that it writes before it fails. All later steps fail
    /// too.
    dead: Option<(usize, usize)>,
    /// The number of bytes that each step wrote; 0 for lengths.
    sizes: Vec<usize>,
}

impl Faulty {
    fn new(bytes: &[u8], can_cut: bool) -> Self {
        Self { bytes: bytes.to_vec(), can_cut, ..Self::default() }
    }

    /// Returns how many bytes of this step are written; 0 for steps that are not reached.
    fn step(&mut self, len: usize) -> (usize, io::Result<()>) {
        let step = self.steps;
        self.steps += 1;
        self.sizes.push(len);
        let failed = Err(io::Error::other("stopped"));
        match (self.stop, self.dead) {
            (Some((at, torn)), _) if at == step => (torn, failed),
            (_, Some((at, torn))) if at == step => (torn, failed),
            (_, Some((at, _))) if at < step => (0, failed),
            _ => (len, Ok(())),
        }
    }
}

impl ReadAt for Faulty {
    fn size(&self) -> io::Result<u64> {
        self.bytes.size()
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.bytes.read_exact_at(offset, buffer)
    }
}

impl Storage for Faulty {
    fn write_all_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let (len, result) = self.step(bytes.len());
        if len > 0 {
            self.bytes.write_all_at(offset, &bytes[..len.min(bytes.len())])?;
        }
        result
    }

    fn set_size(&mut self, len: u64) -> io::Result<()> {
        if !self.can_cut {
            return Err(ErrorKind::Unsupported.into());
        }
        let (_, result) = self.step(0);
        result.and_then(|()| self.bytes.set_size(len))
    }
}

/// A frame of the first `chunks` of some chunks, and its metalayers.
fn frame(chunks: usize, meta: usize, vlmeta: usize, seed: u64) -> Vec<u8> {
    let params = chunk::Params { typesize: 4, ..chunk::Params::default() };
    let meta: Vec<_> = (0..meta)
        .map(|each| Metalayer { name: format!("m{each}"), content: vec![each as u8; 9] })
        .collect();
    let mut writer = Writer::new(Cursor::new(Vec::new()), params, &meta).unwrap();
    let mut rng = Rng(seed);
    for _ in 0..chunks {
        let chunk: Vec<u8> = (0..40).map(|_| rng.index(5) as u8).collect();
        writer.push(&chunk).unwrap();
    }
    for each in 0..vlmeta {
        writer.add_vlmetalayer(&format!("v{each}"), &vec![3; each * 30]).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// A frame that becomes another one.
struct Case {
    old: Vec<u8>,
    new: Vec<u8>,
    writes: Vec<(u64, Vec<u8>)>,
}

impl Case {
    fn random(seed: u64) -> Self {
        let mut rng = Rng(seed);
        let chunks = rng.index(4);
        let meta = rng.index(3);
        let mut one = frame(chunks, meta, rng.index(3), 1);
        // Most changes append a chunk or change the trailer.
        let other = match rng.index(4) {
            0 => frame(rng.index(4), rng.index(3), rng.index(3), 2),
            1 => frame(chunks, meta, rng.index(3), 1),
            _ => frame(chunks + 1, meta, rng.index(3), 1),
        };
        let mut new = other;
        match rng.index(8) {
            0 => one.clear(),
            1 | 2 => std::mem::swap(&mut one, &mut new),
            _ => {}
        }
        let old = one;
        let header_len = frame::Header::parse(&new).unwrap().header_len as usize;
        let same = old.iter().zip(&new).skip(header_len).take_while(|(a, b)| a == b).count();
        let mut at = header_len + if rng.index(3) > 0 { same } else { 0 };
        let mut writes = Vec::new();
        while at < new.len() {
            let end = new.len().min(at + 1 + rng.index(300));
            writes.push((at as u64, new[at..end].to_vec()));
            at = end;
        }
        if rng.index(2) > 0 {
            writes.reverse();
        }
        Self { old, new, writes }
    }

    fn commit(&self, storage: &mut Faulty, safety: Safety) -> Result<(), Failed> {
        let header_len = frame::Header::parse(&self.new).unwrap().header_len as usize;
        let writes: Vec<_> =
            self.writes.iter().map(|(offset, bytes)| (*offset, &bytes[..])).collect();
        let half = self.old.len() / 2;
        let change = Change {
            old_len: self.old.len() as u64,
            new_len: self.new.len() as u64,
            header: &self.new[..header_len],
            writes: &writes,
            known: &[(0, &self.old[..half]), (half as u64, &self.old[half..])],
            unused: &[],
            can_cut: None,
            safety,
        };
        commit(storage, &change).map(drop)
    }

    /// Returns the number of bytes that each step of a successful change writes.
    fn steps(&self, can_cut: bool) -> Vec<usize> {
        let mut storage = Faulty::new(&self.old, can_cut);
        self.commit(&mut storage, Safety::Death).unwrap();
        assert!(storage.bytes.starts_with(&self.new));
        assert!(!can_cut || storage.bytes.len() == self.new.len());
        storage.sizes
    }

    /// Readers find the old frame, the new one, or none.
    fn promise(&self, bytes: &Vec<u8>, what: &str) -> &'static str {
        let report = frame::check(bytes, &Options { content: true, ..Options::default() }).unwrap();
        if !report.is_good() {
            return if report.findings[0].rule.id == "frame.unfinished" {
                "marked"
            } else {
                "none"
            };
        }
        let len = frame::Header::parse(bytes).unwrap().frame_len as usize;
        match &bytes[..len] {
            found if found == self.old => "old",
            found if found == self.new => "new",
            _ => panic!("{what}: a mixture"),
        }
    }

    /// Recovers the frame, also if the recovery is interrupted and repeated.
    fn recovered(&self, bytes: &[u8], what: &str) -> (Recovery, Vec<u8>) {
        let mut once = Faulty::new(bytes, true);
        let recovery = recover(&mut once, is_sound).unwrap();
        for (step, len) in once.sizes.iter().enumerate() {
            for torn in BTreeSet::from([0, 1, len / 2, *len]) {
                let mut stopped = Faulty::new(bytes, true);
                stopped.dead = Some((step, torn.min(*len)));
                recover(&mut stopped, is_sound).unwrap_err();
                self.promise(&stopped.bytes, what);
                stopped.dead = None;
                recover(&mut stopped, is_sound).unwrap();
                assert_eq!(stopped.bytes, once.bytes, "{what}, recovering stopped at {step}");
            }
        }
        (recovery, once.bytes)
    }
}

#[test]
fn death_at_every_byte_leaves_the_old_or_the_new_frame() {
    let mut seen = BTreeSet::new();
    for seed in 0..40 {
        let case = Case::random(seed);
        for (step, len) in case.steps(true).into_iter().enumerate() {
            for torn in 0..=len {
                let what = format!("change {seed}, step {step}, byte {torn} of {len}");
                let mut storage = Faulty::new(&case.old, true);
                storage.dead = Some((step, torn));
                case.commit(&mut storage, Safety::Death).unwrap_err();
                let found = case.promise(&storage.bytes, &what);
                seen.insert(found);
                let (recovery, bytes) = case.recovered(&storage.bytes, &what);
                if case.old.is_empty() {
                    assert!(found != "old", "{what}");
                    continue;
                }
                match (found, recovery) {
                    ("old" | "new", Recovery::Unmarked) => assert_eq!(bytes, storage.bytes),
                    ("marked", Recovery::RolledBack) => assert!(bytes == case.old, "{what}"),
                    ("marked", Recovery::Completed) => assert!(bytes == case.new, "{what}"),
                    other => panic!("{what}: {other:?}"),
                }
            }
        }
    }
    assert_eq!(seen, BTreeSet::from(["marked", "new", "none", "old"]));
}

#[test]
fn a_storage_without_set_size_is_marked_and_lost() {
    for seed in 0..40 {
        let case = Case::random(seed);
        for rest in [0, 300] {
            for (step, len) in case.steps(false).into_iter().enumerate() {
                for torn in 0..=len {
                    let what = format!("change {seed}, step {step}, byte {torn} of {len}");
                    let mut storage = Faulty::new(&case.old, false);
                    storage.bytes.resize(case.old.len() + rest, 0xce);
                    storage.dead = Some((step, torn));
                    case.commit(&mut storage, Safety::Death).unwrap_err();
                    let found = case.promise(&storage.bytes, &what);
                    let expected =
                        if found == "marked" { Recovery::Lost } else { Recovery::Unmarked };
                    if !case.old.is_empty() {
                        assert_eq!(case.recovered(&storage.bytes, &what).0, expected, "{what}");
                    }
                }
            }
        }
    }
}

#[test]
fn an_error_puts_the_old_frame_back() {
    for seed in 0..40 {
        let case = Case::random(seed);
        for (can_cut, safety) in [
            (true, Safety::Death),
            (true, Safety::Errors),
            (true, Safety::PowerLoss),
            (false, Safety::Death),
        ] {
            for (step, len) in case.steps(can_cut).into_iter().enumerate() {
                for torn in BTreeSet::from([0, len / 2, len]) {
                    let what = format!("change {seed}, {safety:?}, step {step}, byte {torn}");
                    let mut storage = Faulty::new(&case.old, can_cut);
                    storage.stop = Some((step, torn));
                    let Err(failed) = case.commit(&mut storage, safety) else {
                        // Without a journal there are fewer steps. And if all but the mark is done,
                        // the mark is removed again.
                        let fewer = safety == Safety::Errors && storage.steps <= step;
                        assert!(fewer || can_cut && storage.bytes == case.new, "{what}");
                        continue;
                    };
                    assert_eq!(failed.error.to_string(), "stopped");
                    let found = case.promise(&storage.bytes, &what);
                    if failed.restored && !case.old.is_empty() {
                        assert_eq!(found, "old", "{what}");
                        assert!(!can_cut || storage.bytes == case.old, "{what}");
                    }
                    assert!(failed.restored || case.old.is_empty(), "{what}");
                    // The program may die while the old frame is restored.
                    for dead in step + 1..storage.steps {
                        let mut storage = Faulty::new(&case.old, can_cut);
                        (storage.stop, storage.dead) = (Some((step, torn)), Some((dead, 3)));
                        let failed = case.commit(&mut storage, safety).unwrap_err();
                        assert!(!failed.restored || case.promise(&storage.bytes, &what) == "old");
                        case.promise(&storage.bytes, &what);
                        let (recovery, bytes) = case.recovered(&storage.bytes, &what);
                        if recovery == Recovery::RolledBack {
                            assert!(bytes == case.old, "{what}, dead at {dead}");
                        } else if recovery == Recovery::Completed {
                            assert!(
                                bytes == case.old || bytes == case.new,
                                "{what}, dead at {dead}"
                            );
                        }
                    }
                }
            }
        }
    }
}

/// The remains of an earlier writer after the frame are not a journal of this change.
#[test]
fn a_journal_that_was_left_is_not_used() {
    let (old, new) = (frame(1, 0, 0, 1), frame(2, 0, 0, 1));
    let stale = frame(1, 0, 0, 9);
    let mut left = old.clone();
    left.extend(journal::encode(old.len() as u64, old.len() as u64, &[(0, &stale)]));
    let writes = vec![(97, new[97..].to_vec())];
    let case = Case { old, new, writes };
    for can_cut in [true, false] {
        for step in 0..case.steps(can_cut).len() {
            let mut storage = Faulty::new(&left, can_cut);
            storage.dead = Some((step, 1));
            case.commit(&mut storage, Safety::Death).unwrap_err();
            case.promise(&storage.bytes, "stopped");
            let (recovery, bytes) = case.recovered(&storage.bytes, "stopped");
            let whole = [&case.old, &case.new].iter().any(|frame| bytes.starts_with(frame));
            assert!(whole || recovery == Recovery::Lost, "{recovery:?} at {step}");
        }
    }
}

#[test]
fn what_belongs_to_others_is_not_cut_off() {
    let case = Case::random(3);
    assert!(!case.old.is_empty());
    for rest in [&b"x"[..], &case.old, b"\0\0\0b2frame?"] {
        for safety in [Safety::Errors, Safety::Death, Safety::PowerLoss] {
            let mut storage = Faulty::new(&[&case.old, rest].concat(), true);
            let failed = case.commit(&mut storage, safety).unwrap_err();
            let expected = format!("{} bytes follow the frame", rest.len());
            assert!(failed.restored && failed.to_string().contains(&expected), "{failed}");
            let error = failed.into_error().doing("test it");
            assert_eq!(error.kind(), crate::ErrorKind::InvalidArgument);
            assert_eq!(storage.bytes, [&case.old, rest].concat());
        }
    }
    for rest in [&[0; 100_000][..], b"b2frame un", b"\0\0b2frame undo, and more"] {
        let mut storage = Faulty::new(&[&case.old, rest].concat(), true);
        case.commit(&mut storage, Safety::Death).unwrap();
        assert!(storage.bytes == case.new);
    }
}

#[test]
fn what_is_overwritten_is_taken_down_once() {
    let runs = |writes: &[(u64, &[u8])]| {
        let (old_len, header) = (100, &[0; 10][..]);
        let safety = Safety::Death;
        overwritten(&Change {
            old_len,
            new_len: 0,
            header,
            writes,
            known: &[],
            unused: &[],
            can_cut: None,
            safety,
        })
    };
    assert_eq!(runs(&[]), [(0, 10)]);
    assert_eq!(runs(&[(10, &[1; 5]), (20, &[])]), [(0, 15)]);
    assert_eq!(
        runs(&[(50, &[1; 20]), (55, &[2; 5]), (98, &[3; 9])]),
        [(0, 10), (50, 70), (98, 100)]
    );
    assert_eq!(runs(&[(70, &[1; 5]), (60, &[2; 10]), (100, &[3])]), [(0, 10), (60, 75)]);
}

#[test]
fn a_storage_that_became_shorter_is_refused() {
    let case = Case::random(3);
    assert!(!case.old.is_empty());
    let mut storage = Faulty::new(&case.old[..case.old.len() - 1], true);
    let failed = case.commit(&mut storage, Safety::Death).unwrap_err();
    assert!(failed.restored && failed.error.kind() == ErrorKind::UnexpectedEof);
    assert_eq!(storage.steps, 0);
}

#[test]
fn what_is_no_marked_frame_is_left_alone() {
    let sound = frame(2, 1, 1, 1);
    let mut marked = sound.clone();
    marked[0x10] = UNFINISHED;
    let mut broken = marked.clone();
    broken[100] ^= 0x55;
    let longer = [marked.as_slice(), b"x"].concat();
    let mut other = marked.clone();
    other[3] = b'x';
    for (bytes, expected) in [
        (&sound, Recovery::Unmarked),
        (&marked, Recovery::Completed),
        (&broken, Recovery::Lost),
        (&longer, Recovery::Lost),
        (&other, Recovery::Unmarked),
        (&vec![0x7f; 20], Recovery::Unmarked),
        (&Vec::new(), Recovery::Unmarked),
    ] {
        let mut found = bytes.clone();
        assert_eq!(recover(&mut found, is_sound).unwrap(), expected);
        assert_eq!(&found, if expected == Recovery::Completed { &sound } else { bytes });
    }
}
