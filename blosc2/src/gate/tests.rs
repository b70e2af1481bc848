use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::thread;

use super::*;

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let frame = folder.path().join("a.b2frame");
    fs::write(&frame, b"").unwrap();
    (folder, frame)
}

fn gate(path: &Path, claim: Claim) -> Result<Gate> {
    Gate::new(FileId::of_path(path).unwrap(), claim)
}

#[test]
fn claims_that_do_not_go_together_are_refused() {
    let (_folder, path) = folder();
    let all = [Claim::Read, Claim::Write, Claim::Make, Claim::WriteLocked];
    let beside = |first: Claim| {
        let _first = gate(&path, first).unwrap();
        all.map(|second| gate(&path, second).map_err(|error| error.kind()).is_ok())
    };
    assert_eq!(beside(Claim::Read), [true, true, false, true]);
    assert_eq!(beside(Claim::Write), [true, false, false, false]);
    assert_eq!(beside(Claim::Make), [true, false, false, false]);
    assert_eq!(beside(Claim::WriteLocked), [true, false, false, true]);
    // Rejected claims leave no state.
    assert_eq!(gate(&path, Claim::Make).map_err(|error| error.kind()).err(), None);
    assert!(OPEN.lock().get(&FileId::of_path(&path).unwrap()).is_none());
}

#[test]
fn reads_share_a_file_and_a_change_has_it_alone() {
    let (_folder, path) = folder();
    let (one, two) = (gate(&path, Claim::Read).unwrap(), gate(&path, Claim::Write).unwrap());
    let first = one.read().unwrap();
    let second = two.read().unwrap();
    drop(one.read().unwrap());
    thread::scope(|scope| {
        let changed = scope.spawn(|| two.change().unwrap().changed());
        // A waiting change does not block reads.
        thread::sleep(Duration::from_millis(20));
        let nested = one.read().unwrap();
        assert_eq!(nested.version(), first.version());
        assert!(!changed.is_finished());
        drop((first, second, nested));
        assert_eq!(changed.join().unwrap(), one.read().unwrap().version());
    });
    assert_ne!(one.read().unwrap().version(), Version::default());
}

/// Threads of several handles change two numbers that must be equal, and readers compare them.
#[test]
fn nobody_sees_half_of_a_change() {
    for locking in [false, true] {
        let (_folder, path) = folder();
        let open = |claim| {
            let gate = gate(&path, claim).unwrap();
            if locking { gate.with_lock(&path, false).unwrap() } else { gate }
        };
        let writers = if locking { vec![Claim::WriteLocked; 2] } else { vec![Claim::Write] };
        let writers: Vec<Gate> = writers.into_iter().map(open).collect();
        let reader = open(Claim::Read);
        let numbers = [AtomicUsize::new(0), AtomicUsize::new(0)];
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let readers: Vec<_> = (0..4)
                .map(|_| {
                    let (reader, numbers, done) = (&reader, &numbers, &done);
                    scope.spawn(move || {
                        let mut reads = 0;
                        while !done.load(Ordering::Relaxed) || reads == 0 {
                            let pass = reader.read().unwrap();
                            let first = numbers[0].load(Ordering::Relaxed);
                            thread::yield_now();
                            assert_eq!(numbers[1].load(Ordering::Relaxed), first);
                            assert_eq!(pass.version().here, first as u64);
                            if locking {
                                assert_eq!(pass.version().locked, first as u64);
                            }
                            reads += 1;
                        }
                    })
                })
                .collect();
            let changes: Vec<_> = writers
                .iter()
                .map(|writer| {
                    let numbers = &numbers;
                    scope.spawn(move || {
                        for _ in 0..200 {
                            let mut pass = writer.change().unwrap();
                            for number in numbers {
                                number.store(number.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                                thread::yield_now();
                            }
                            pass.changed();
                        }
                    })
                })
                .collect();
            changes.into_iter().for_each(|writer| writer.join().unwrap());
            done.store(true, Ordering::Relaxed);
            readers.into_iter().for_each(|reader| reader.join().unwrap());
        });
        assert_eq!(reader.read().unwrap().version().here, 200 * writers.len() as u64);
    }
}

#[test]
fn a_request_does_not_wait_for_a_closure_that_does_not_go_on() {
    let (_folder, path) = folder();
    let (reader, writer) = (gate(&path, Claim::Read).unwrap(), gate(&path, Claim::Write).unwrap());
    let reading = reader.read().unwrap();
    let calling = reader.calling();
    let start = Instant::now();
    let error = writer.change().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
    assert!(start.elapsed() >= PATIENCE, "it waits for closures that go on");
    // More reads succeed.
    drop(writer.read().unwrap());
    drop((calling, reading));
    drop(writer.change().unwrap());
}

#[test]
fn a_kept_pass_counts_for_all_that_its_handle_does() {
    let (_folder, path) = folder();
    let open = || gate(&path, Claim::WriteLocked).unwrap().with_lock(&path, false).unwrap();
    let (one, two) = (open(), open());
    let pass = one.change().unwrap();
    let kept = pass.hold();
    for _ in 0..3 {
        let mut part = one.change().unwrap();
        assert!(part.is_part());
        assert_eq!(part.changed(), one.read().unwrap().version());
    }
    let calling = one.calling();
    assert_eq!(two.read().unwrap_err().kind(), ErrorKind::Busy);
    drop((calling, kept));
    assert!(!pass.is_part());
    drop(pass);
    let now = two.read().unwrap().version();
    assert_eq!((now.here, now.locked), (3, 1));
}
