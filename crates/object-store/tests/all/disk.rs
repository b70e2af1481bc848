//! The cache on disk, also with several processes.

use std::fs::{self, File};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime};

use blosc2::storage::ReadAt;
use blosc2::{ErrorKind, NDArray, OpenOptions, Target};
use blosc2_object_store::{DiskCache, Remote, Traffic};
use object_store::memory::InMemory;

use crate::data;
use crate::server::{Faults, Server};

const PIECE: u64 = 64 << 10;

fn remote(server: &Server, directory: &Path) -> Remote {
    let (remote, _) = Remote::from_url(&server.url(""), [("timeout", "20s")]).unwrap();
    remote.disk_cache(&DiskCache::new(directory).unwrap()).unwrap()
}

/// The bytes of an object, which differ in each place.
fn content(seed: u64, len: usize) -> Vec<u8> {
    part(seed, 0..len as u64)
}

/// A range of the bytes of an object.
fn part(seed: u64, range: Range<u64>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for at in range.start / 8..range.end.div_ceil(8) {
        let word = (at + (seed << 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        bytes.extend_from_slice(&(word ^ word >> 29).to_le_bytes());
    }
    bytes.drain(..(range.start % 8) as usize);
    bytes.truncate((range.end - range.start) as usize);
    bytes
}

/// Returns a source of random numbers, which are less than its argument.
fn random(mut state: u64) -> impl FnMut(u64) -> u64 {
    move |end| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % end
    }
}

/// The names and the sizes of the objects for several processes: none, part of a piece, and some pieces.
const OBJECTS: [(&str, usize); 8] = [
    ("a", 1),
    ("b", 1000),
    ("c", 65_536),
    ("d", 65_537),
    ("e", 131_072),
    ("f", 200_001),
    ("g", 700_000),
    ("h", 1 << 20),
];

fn put_objects(server: &Server) {
    for (seed, (name, len)) in OBJECTS.into_iter().enumerate() {
        server.put(name, content(seed as u64, len));
    }
}

/// Reads ranges of all objects in an order that depends on the seed, and the whole objects.
fn read_objects(remote: &Remote, seed: u64) {
    let mut random = random(seed);
    for turn in 0..OBJECTS.len() {
        let number = (turn + seed as usize) % OBJECTS.len();
        let (name, len) = OBJECTS[number];
        let expected = content(number as u64, len);
        let object = remote.object(name).unwrap();
        for _ in 0..20 {
            let start = random(len as u64);
            let len = random((len as u64 - start).min(100_000) + 1);
            let found = object.read_vec_at(start, len).unwrap();
            assert!(found == expected[start as usize..][..len as usize], "{name} at {start}");
        }
        assert!(object.read_vec_at(0, len as u64).unwrap() == expected, "{name}");
    }
}

/// The number and the size of the objects that are together larger than the cache.
const LARGE: (u64, u64) = (5, 8 << 20);

fn read_large_objects(remote: &Remote, seed: u64) {
    let mut random = random(seed);
    let objects: Vec<_> =
        (0..LARGE.0).map(|number| remote.object(format!("large{number}")).unwrap()).collect();
    for _ in 0..60 {
        let (number, start) = (random(LARGE.0), random(LARGE.1));
        let len = random((LARGE.1 - start).min(400_000) + 1);
        let found = objects[number as usize].read_vec_at(start, len).unwrap();
        assert!(found == part(number, start..start + len), "{number} at {start}");
    }
}

/// All files below a directory.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(self::files(&path)),
            false => files.push(path),
        }
    }
    files
}

/// The total size of the files on disk. Other processes can remove them.
fn size(directory: &Path) -> u64 {
    let metadata = files(directory).into_iter().filter_map(|path| path.metadata().ok());
    metadata.map(|metadata| metadata.len().next_multiple_of(4096)).sum()
}

/// A child with this seed or a larger one reads large objects.
const LARGE_SEED: u64 = 1000;
/// The environment variables of a child: the URL of the server, the directory and the seed.
const CHILD: [&str; 3] = ["BLOSC2_TEST_URL", "BLOSC2_TEST_CACHE", "BLOSC2_TEST_SEED"];

/// Runs [`child`] in another process, after a command of the shell.
fn spawn(server: &Server, directory: &Path, seed: u64, before: &str) -> Child {
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("{before} exec \"$0\" \"$@\""));
    command.arg(std::env::current_exe().unwrap()).args(["--exact", "disk::child", "--nocapture"]);
    let values = [server.url(""), directory.to_str().unwrap().to_owned(), seed.to_string()];
    command.envs(CHILD.into_iter().zip(values));
    command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

fn wait(child: Child) -> bool {
    let output = child.wait_with_output().unwrap();
    print!("{}", String::from_utf8_lossy(&output.stderr));
    output.status.success()
}

/// Not a test of its own: the work of another process.
#[test]
fn child() {
    let [Ok(url), Ok(directory), Ok(seed)] = CHILD.map(std::env::var) else { return };
    let (remote, _) = Remote::from_url(&url, [("timeout", "20s")]).unwrap();
    // Without a cache in memory, each read uses the disk.
    let cache = DiskCache::new(directory).unwrap().limit(16 << 20);
    let remote = remote.cache(0).disk_cache(&cache).unwrap();
    let seed: u64 = seed.parse().unwrap();
    match seed >= LARGE_SEED {
        true => read_large_objects(&remote, seed),
        false => read_objects(&remote, seed),
    }
    let Traffic { requests, disk_hits, disk_writes, disk_damaged, disk_failures, .. } =
        remote.traffic();
    eprintln!(
        "{requests} requests, {disk_hits} hits, {disk_writes} writes, {disk_damaged} damaged, {disk_failures} failures"
    );
    assert_eq!(disk_damaged, 0);
    assert!(seed < LARGE_SEED || disk_failures == 0 && disk_hits > 0);
}

#[test]
fn a_second_run_transfers_nothing() {
    let (server, folder) = (Server::start(), tempfile::tempdir().unwrap());
    let (frame, items) = data::array([2048, 2048], [128, 2048], [8, 2048]);
    assert!(frame.len() > 1 << 20, "it has many pieces: {}", frame.len());
    server.put("a.b2nd", frame.clone());
    for turn in 0..2 {
        let remote = remote(&server, folder.path());
        let array = remote.array("a.b2nd").unwrap();
        assert_eq!(array.read::<Vec<f32>>((1000, 0..64)).unwrap(), items[1000 * 2048..][..64]);
        assert!(array.read::<Vec<f32>>(..).unwrap() == items);
        let ((log, _), traffic) = (server.taken(), remote.traffic());
        assert_eq!(log.len() as u64, traffic.requests, "{log:?}");
        match turn {
            0 => {
                // The pieces at both ends of a range can be transferred twice.
                assert!(traffic.received < frame.len() as u64 * 3 / 2, "{traffic:?}");
                let pieces = frame.len().div_ceil(PIECE as usize);
                assert_eq!(files(folder.path()).len(), pieces);
                // A piece in a gap between two others is written again.
                assert!(traffic.disk_writes >= pieces as u64, "{traffic:?}");
            }
            // The request for the start, which the server answers with the status 304.
            _ => {
                assert_eq!(log, [("/a.b2nd".to_owned(), Some(0..PIECE))]);
                assert_eq!((traffic.received, traffic.disk_writes), (0, 0), "{traffic:?}");
                assert!(traffic.disk_hits > 10, "{traffic:?}");
            }
        }
        assert_eq!((traffic.disk_damaged, traffic.disk_failures), (0, 0));
    }
}

/// One request for each file that the read needs, and for the version of the index.
#[test]
fn a_second_run_transfers_nothing_of_a_directory() {
    let (server, folder) = (Server::start(), tempfile::tempdir().unwrap());
    let path = folder.path().join("dir.b2nd");
    let builder = NDArray::builder().target(Target::from(&path).directory(true));
    builder
        .chunk_shape([10, 100])
        .from_fn([40, 100], |[row, column]| (row * column) as u16)
        .unwrap();
    for file in files(&path) {
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        server.put(&format!("dir.b2nd/{name}"), fs::read(file).unwrap());
    }
    let mut counts = Vec::new();
    for _ in 0..2 {
        let remote = remote(&server, &folder.path().join("cache"));
        let target = Target::folder(remote.folder("dir.b2nd").unwrap());
        let array = NDArray::open_with(target, &OpenOptions::new()).unwrap();
        assert_eq!(array.read::<Vec<u16>>((.., 3)).unwrap()[39], 117);
        let traffic = remote.traffic();
        assert_eq!(server.taken().0.len() as u64, traffic.requests);
        counts.push(traffic);
    }
    println!("{counts:?}");
    assert_eq!((counts[1].received, counts[1].disk_failures), (0, 0), "{counts:?}");
    // After chunks that arrive together, the version of the index is requested once.
    assert!(counts[1].requests <= 2 * 5, "{counts:?}");
}

#[test]
fn twenty_processes_share_a_directory() {
    let (server, folder) = (Server::start(), tempfile::tempdir().unwrap());
    put_objects(&server);
    let directory = folder.path().join("cache");
    let children: Vec<Child> = (0..20).map(|seed| spawn(&server, &directory, seed, "")).collect();
    let good = children.into_iter().map(wait).filter(|good| *good).count();
    assert_eq!(good, 20);
    let (log, _) = server.taken();
    println!("{} requests of 20 processes", log.len());
    // All objects are in the cache, and nothing else.
    let remote = remote(&server, &directory);
    read_objects(&remote, 7);
    let traffic = remote.traffic();
    assert_eq!((traffic.requests, traffic.received), (OBJECTS.len() as u64, 0), "{traffic:?}");
    let pieces: usize = OBJECTS.iter().map(|(_, len)| len.div_ceil(PIECE as usize)).sum();
    assert_eq!(files(&directory).len(), pieces);
}

#[test]
fn processes_are_killed_while_they_fill_it() {
    let (server, folder) = (Server::start(), tempfile::tempdir().unwrap());
    put_objects(&server);
    let directory = folder.path().join("cache");
    DiskCache::new(&directory).unwrap();
    let (mut killed, mut state) = (0, 1u64);
    for round in 0..12 {
        let children: Vec<Child> =
            (0..4).map(|child| spawn(&server, &directory, round * 4 + child, "")).collect();
        for mut child in children {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            thread::sleep(Duration::from_millis((state >> 33) % 40));
            child.kill().unwrap();
            killed += usize::from(!wait(child));
        }
        // Some entries are missing again.
        for file in files(&directory).into_iter().step_by(3) {
            fs::remove_file(file).unwrap();
        }
    }
    println!("{killed} of 48 processes were killed");
    assert!(killed > 10);
    assert!(wait(spawn(&server, &directory, 99, "")));
    assert!(size(&directory) <= 16 << 20);
}

/// Each process removes entries that others read. One process is killed.
#[test]
fn processes_share_the_limit() {
    const LIMIT: u64 = 16 << 20;
    let (server, folder) = (Server::start(), tempfile::tempdir().unwrap());
    for number in 0..LARGE.0 {
        server.put(&format!("large{number}"), content(number, LARGE.1 as usize));
    }
    let directory = folder.path().join("cache");
    DiskCache::new(&directory).unwrap();
    let mut children: Vec<Child> =
        (0..6).map(|child| spawn(&server, &directory, LARGE_SEED + child, "")).collect();
    let (mut most, mut is_killed) = (0, false);
    while children.iter_mut().any(|child| child.try_wait().unwrap().is_none()) {
        most = most.max(size(&directory));
        if most > LIMIT / 2 && !is_killed {
            children[0].kill().unwrap();
            is_killed = true;
        }
        thread::sleep(Duration::from_millis(2));
    }
    let good: Vec<bool> = children.into_iter().map(wait).collect();
    assert_eq!(good[1..], [true; 5]);
    println!("at most {most} of {LIMIT} bytes");
    assert!(is_killed && most <= LIMIT, "{most}");
    // More than that was written.
    assert!(most > LIMIT * 3 / 4, "{most}");
}

/// Files of more than 4 KiB cannot be written, as on a full disk.
#[cfg(unix)]
#[test]
fn a_full_disk_is_no_error() {
    let (server, folder) = (Server::start(), tempfile::tempdir().unwrap());
    put_objects(&server);
    let directory = folder.path().join("cache");
    // The signal would end the process.
    assert!(wait(spawn(&server, &directory, 1, "trap '' XFSZ; ulimit -f 8;")));
    let last = OBJECTS.iter().map(|(_, len)| len % PIECE as usize);
    let small = last.filter(|last| (1..4000).contains(last)).count();
    assert_eq!(files(&directory).len(), small, "nothing is left of the others");
}

/// Files have the names of the directories of entries.
#[test]
fn a_directory_that_cannot_be_written_is_no_error() {
    let (server, folder) = (Server::start(), tempfile::tempdir().unwrap());
    put_objects(&server);
    let remote = remote(&server, folder.path());
    for number in 0..16 {
        File::create(folder.path().join(format!("{number:02x}"))).unwrap();
    }
    read_objects(&remote, 1);
    let traffic = remote.traffic();
    assert!(traffic.disk_failures > 20 && traffic.received > 2 << 20, "{traffic:?}");
    assert_eq!((traffic.disk_writes, traffic.disk_hits), (0, 0), "{traffic:?}");
}

#[test]
fn a_replaced_object_is_not_mixed_with_the_old_one() {
    let (server, folder) = (Server::start(), tempfile::tempdir().unwrap());
    let (old, new) = (content(1, 1 << 20), content(2, 1 << 20));
    server.put("a", old.clone());
    let remote = remote(&server, folder.path()).cache(0);
    let opened = remote.object("a").unwrap();
    assert!(opened.read_vec_at(200_000, 1000).unwrap() == old[200_000..201_000]);
    server.put("a", new.clone());
    // What is on disk is that of the version that was opened.
    assert!(opened.read_vec_at(200_000, 1000).unwrap() == old[200_000..201_000]);
    let error = opened.read_vec_at(200_000, 500_000).unwrap_err();
    let error = error.downcast::<blosc2::Error>().unwrap();
    assert_eq!(error.kind(), ErrorKind::Busy, "{error}");

    let reopened = remote.object("a").unwrap();
    assert_ne!(reopened.e_tag(), opened.e_tag());
    for range in [0..10, 100_000..300_000, 0..1 << 20] {
        let expected = &new[range.start as usize..range.end as usize];
        assert!(reopened.read_vec_at(range.start, range.end - range.start).unwrap() == expected);
    }
    // The start of the new version has replaced that of the old one, which this handle has in memory.
    assert!(opened.read_vec_at(100, 70).unwrap() == old[100..170]);
    assert!(opened.read_vec_at(60_000, 10_000).is_err());

    // With another size.
    server.put("a", new[..300_000].to_vec());
    let shorter = remote.object("a").unwrap();
    assert!(shorter.read_vec_at(0, 300_000).unwrap() == new[..300_000]);
}

#[test]
fn damaged_entries_are_requested_again() {
    let (server, folder) = (Server::start(), tempfile::tempdir().unwrap());
    put_objects(&server);
    read_objects(&remote(&server, folder.path()), 1);
    let all = files(folder.path());
    let undamaged = fs::read(&all[0]).unwrap();
    type Damage = fn(&[PathBuf]);
    let damages: [(Damage, usize); 6] = [
        // Each file at another place: the magic number, the checksum, the key and the bytes.
        (
            |files| {
                for (number, file) in files.iter().enumerate() {
                    let mut bytes = fs::read(file).unwrap();
                    let at = number * 1009 % bytes.len().min(3000);
                    bytes[at] ^= 1 << (number % 8);
                    fs::write(file, bytes).unwrap();
                }
            },
            all.len(),
        ),
        (
            |files| {
                for (number, path) in files.iter().enumerate() {
                    let file = File::options().write(true).open(path).unwrap();
                    file.set_len(
                        file.metadata().unwrap().len() * number as u64 / files.len() as u64,
                    )
                    .unwrap();
                }
            },
            all.len(),
        ),
        (
            |files| {
                for file in files {
                    File::options()
                        .append(true)
                        .open(file)
                        .and_then(|mut file| std::io::Write::write_all(&mut file, b"x"))
                        .unwrap();
                }
            },
            all.len(),
        ),
        (
            |files| {
                let contents: Vec<Vec<u8>> =
                    files.iter().map(|file| fs::read(file).unwrap()).collect();
                for (file, content) in files.iter().zip(contents.iter().cycle().skip(1)) {
                    fs::write(file, content).unwrap();
                }
            },
            all.len(),
        ),
        (
            |files| files.iter().for_each(|file| fs::write(file, vec![0; 1 << 20]).unwrap()),
            all.len(),
        ),
        (|files| files.iter().step_by(2).for_each(|file| fs::remove_file(file).unwrap()), 0),
    ];
    for (turn, (damage, expected)) in damages.into_iter().enumerate() {
        damage(&all);
        let remote = remote(&server, folder.path()).cache(0);
        read_objects(&remote, turn as u64);
        let traffic = remote.traffic();
        // Some are replaced before they are read, because bytes near to them are requested.
        let damaged = expected as u64 / 2..=expected as u64;
        assert!(damaged.contains(&traffic.disk_damaged), "{turn}: {traffic:?}");
        assert_eq!(traffic.disk_failures, 0, "{turn}: {traffic:?}");
        // All entries are there again.
        let remote = self::remote(&server, folder.path()).cache(0);
        read_objects(&remote, turn as u64);
        assert_eq!((remote.traffic().received, remote.traffic().disk_damaged), (0, 0), "{turn}");
    }
    assert!(fs::read(&all[0]).unwrap() == undamaged);
}

#[test]
fn the_size_is_limited_and_used_entries_stay() {
    const LIMIT: u64 = 16 << 20;
    let (server, folder) = (Server::start(), tempfile::tempdir().unwrap());
    let large = content(1, 48 << 20);
    server.put("large", large.clone());
    server.put("used", content(2, 200_000));
    let old = SystemTime::now() - Duration::from_secs(3600);
    let remote = remote(&server, folder.path()).cache(0);
    let remote = remote.disk_cache(&DiskCache::new(folder.path()).unwrap().limit(LIMIT)).unwrap();
    let used = || remote.object("used").unwrap().read_vec_at(0, 200_000).unwrap();
    used();
    // What a killed process leaves.
    let shard = files(folder.path())[0].parent().unwrap().to_owned();
    fs::write(shard.join(".tmpABC"), vec![0; 60_000]).unwrap();
    let object = remote.object("large").unwrap();
    let mut most = 0;
    for start in (0..large.len()).step_by(1 << 20) {
        let found = object.read_vec_at(start as u64, 1 << 20).unwrap();
        assert!(found == large[start..][..1 << 20]);
        most = most.max(size(folder.path()));
        for file in files(folder.path()) {
            File::options().write(true).open(file).unwrap().set_modified(old).unwrap();
        }
        assert!(used() == content(2, 200_000));
    }
    println!("at most {most} of {LIMIT} bytes");
    assert!(most > LIMIT / 2 && most <= LIMIT);
    assert!(!shard.join(".tmpABC").exists());
    // Each entry of `used` was written once: they are the most recently used ones.
    let before = remote.traffic();
    used();
    assert_eq!(remote.traffic().received, before.received);

    // A read of more than half of the limit is not stored.
    let before = remote.traffic().disk_writes;
    assert!(object.read_vec_at(0, 9 << 20).unwrap() == large[..9 << 20]);
    assert_eq!(remote.traffic().disk_writes, before);
}

/// Each file occupies a block, also one of a few bytes. A time in the future is that of a wrong clock.
#[test]
fn small_files_and_files_of_the_future_are_removed() {
    const SHARE: u64 = 1 << 20;
    let (server, folder) = (Server::start(), tempfile::tempdir().unwrap());
    server.put("a", content(1, 2 << 20));
    let cache = DiskCache::new(folder.path()).unwrap().limit(16 * SHARE);
    let remote = || self::remote(&server, folder.path()).cache(0).disk_cache(&cache).unwrap();
    let read = |remote: &Remote| {
        let found = remote.object("a").unwrap().read_vec_at(0, 2 << 20).unwrap();
        assert!(found == content(1, 2 << 20));
    };
    read(&remote());
    let future = SystemTime::now() + Duration::from_secs(1_000_000);
    let shards: Vec<PathBuf> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    for shard in &shards {
        files(shard).into_iter().for_each(|file| fs::remove_file(file).unwrap());
        for number in 0..SHARE / 4096 {
            let mut file = File::create(shard.join(number.to_string())).unwrap();
            std::io::Write::write_all(&mut file, b"x").unwrap();
            file.set_modified(future).unwrap();
        }
    }
    read(&remote());
    for shard in &shards {
        assert!(size(shard) <= SHARE - SHARE / 8, "{}: {}", shard.display(), size(shard));
    }
    // Only files of the future were removed.
    let last = remote();
    read(&last);
    assert_eq!(last.traffic().received, 0, "{:?}", last.traffic());
}

/// Each range is in a piece of its own.
#[test]
fn many_short_ranges_do_not_displace_the_other_entries() {
    let (server, folder) = (Server::start(), tempfile::tempdir().unwrap());
    server.put("large", vec![0; 48 << 20]);
    let cache = DiskCache::new(folder.path()).unwrap().limit(16 << 20);
    let remote = remote(&server, folder.path()).cache(0).gap(0).disk_cache(&cache).unwrap();
    let object = remote.object("large").unwrap();
    // 250 pieces are more than half of the limit.
    for (count, is_stored) in [(250, false), (100, true)] {
        let before = remote.traffic();
        let mut buffers = vec![[1; 100]; count];
        let mut ranges: Vec<(u64, &mut [u8])> = (0..)
            .map(|number| number * 3 * PIECE + 100)
            .zip(buffers.iter_mut().map(|buffer| &mut buffer[..]))
            .collect();
        object.read_ranges_at(&mut ranges).unwrap();
        assert!(buffers.iter().all(|buffer| *buffer == [0; 100]));
        let after = remote.traffic();
        // The first range is in the start of the object, which is in memory.
        let expected = if is_stored { count as u64 - 1 } else { 0 };
        assert_eq!(after.disk_writes - before.disk_writes, expected, "{after:?}");
        let received = after.received - before.received;
        assert!(is_stored || received == 100 * (count as u64 - 1), "{after:?}");
    }
}

/// A server that derives the ETag from the size and the modification time in seconds could send the same ETag after
/// another change.
#[test]
fn recently_changed_objects_are_not_stored() {
    let modified = "last-modified: Mon, 02 Jan 2023 00:00:00 GMT\r\n";
    let sent = |second| format!("date: Mon, 02 Jan 2023 00:00:0{second} GMT\r\n");
    for (times, is_stored) in [
        (modified.to_owned() + &sent(1), false),
        (modified.to_owned() + &sent(2), true),
        // By the clock of this computer.
        (modified.to_owned(), true),
        ("last-modified: Thu, 01 Jan 2099 00:00:00 GMT\r\n".to_owned(), false),
        // Without a modification time, the ETag has another source.
        (sent(1), true),
    ] {
        let (server, folder) = (Server::start(), tempfile::tempdir().unwrap());
        server.put("a", content(1, 200_000));
        server.set(Faults { times: Some(times.clone()), ..Faults::default() });
        let remote = remote(&server, folder.path());
        let found = remote.object("a").unwrap().read_vec_at(0, 200_000).unwrap();
        assert!(found == content(1, 200_000));
        let traffic = remote.traffic();
        assert_eq!(files(folder.path()).len(), if is_stored { 4 } else { 0 }, "{times}");
        assert_eq!(traffic.not_cacheable, u64::from(!is_stored), "{times}: {traffic:?}");
    }
}

#[test]
fn objects_without_strong_etags_are_not_stored() {
    for faults in [
        Faults { no_etags: true, ..Faults::default() },
        Faults { weak_etags: true, ignores_conditions: true, ..Faults::default() },
    ] {
        let (server, folder) = (Server::start(), tempfile::tempdir().unwrap());
        put_objects(&server);
        server.set(faults);
        let remote = remote(&server, folder.path());
        read_objects(&remote, 1);
        let traffic = remote.traffic();
        assert_eq!(traffic.not_cacheable, OBJECTS.len() as u64, "{traffic:?}");
        assert_eq!(files(folder.path()).len(), 0);
    }
}

/// Servers that ignore ranges, or conditions.
#[test]
fn servers_with_faults_are_cached() {
    for faults in [
        Faults { ignores_ranges: true, ..Faults::default() },
        Faults { ignores_conditions: true, ..Faults::default() },
    ] {
        let (server, folder) = (Server::start(), tempfile::tempdir().unwrap());
        put_objects(&server);
        server.set(faults.clone());
        for turn in 0..2 {
            let remote = remote(&server, folder.path());
            read_objects(&remote, turn);
            let traffic = remote.traffic();
            assert!(turn == 0 || traffic.requests == OBJECTS.len() as u64, "{traffic:?}");
            assert!(turn == 0 || faults.ignores_conditions || traffic.received == 0, "{traffic:?}");
        }
    }
}

#[test]
fn secrets_of_urls_are_not_stored() {
    let (server, folder) = (Server::start(), tempfile::tempdir().unwrap());
    server.put("a", content(1, 200_000));
    let cache = DiskCache::new(folder.path()).unwrap();
    let traffic = |url: &str| {
        let (remote, path) = Remote::from_url(url, [("", ""); 0]).unwrap();
        let remote = remote.disk_cache(&cache).unwrap();
        assert!(
            remote.object(path).unwrap().read_vec_at(0, 200_000).unwrap() == content(1, 200_000)
        );
        remote.traffic()
    };
    let signed = |id: &str, secret: &str| {
        let url = server.url("a").replace("http://", "http://user:PASSWORD@");
        format!("{url}?id={id}&X-Amz-Signature={secret}&X-Amz-Date={secret}&X-Amz-Credential=KEY")
    };
    assert!(traffic(&signed("1", "SECRET1")).received >= 200_000);
    assert_eq!(traffic(&signed("1", "SECRET2")).received, 0, "another signature");
    // Another object can be at the same path.
    assert!(traffic(&signed("2", "SECRET1")).received >= 200_000);
    assert!(traffic(&server.url("a?sig=1")).received >= 200_000);
    assert_eq!(traffic(&server.url("a?se=5&sig=2")).received, 0);
    assert!(traffic(&server.url("a?se=5")).received >= 200_000, "it is no signature");
    for file in files(folder.path()) {
        let mut all = file.to_str().unwrap().as_bytes().to_vec();
        all.extend(fs::read(&file).unwrap());
        for secret in ["PASSWORD", "SECRET", "KEY", "user", "127.0.0.1"] {
            let is_there = all.windows(secret.len()).any(|part| part == secret.as_bytes());
            assert!(!is_there, "{secret} in {}", file.display());
        }
    }
}

#[test]
fn object_stores_of_the_caller_need_a_name() {
    let folder = tempfile::tempdir().unwrap();
    let cache = DiskCache::new(folder.path()).unwrap();
    let remote = Remote::new(Arc::new(InMemory::new()));
    let array = NDArray::builder().arange(0i64, 100_000, 1).unwrap();
    remote.save("a", array.schunk(), false).unwrap();
    // An object that was changed less than two seconds before is not stored.
    thread::sleep(Duration::from_millis(2100));
    let error = remote.clone().disk_cache(&cache).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    let named = |name| remote.clone().named(name).disk_cache(&cache).unwrap();
    let before = remote.traffic().received;
    for (name, is_known) in [("one", false), ("one", true), ("two", false)] {
        let before = remote.traffic().received;
        named(name).array("a").unwrap().read::<Vec<i64>>(..).unwrap();
        assert_eq!(remote.traffic().received == before, is_known, "{name}");
    }
    assert!(remote.traffic().received > before);
}

#[cfg(unix)]
#[test]
fn the_files_are_private() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};

    let (server, folder) = (Server::start(), tempfile::tempdir().unwrap());
    put_objects(&server);
    let directory = folder.path().join("new/cache");
    read_objects(&remote(&server, &directory), 1);
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!(mode(&directory), 0o700);
    for file in files(&directory) {
        assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
    }
    for (bits, is_allowed) in [(0o755, true), (0o500, true), (0o775, false), (0o702, false)] {
        fs::set_permissions(&directory, fs::Permissions::from_mode(bits)).unwrap();
        let opened = DiskCache::new(&directory);
        assert_eq!(opened.is_ok(), is_allowed, "{bits:o}: {opened:?}");
    }
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)).unwrap();
    let link = folder.path().join("link");
    symlink(&directory, &link).unwrap();
    DiskCache::new(&link).unwrap();
    // The same for a directory of entries, which is no link.
    let shard = files(&directory)[0].parent().unwrap().to_owned();
    fs::set_permissions(&shard, fs::Permissions::from_mode(0o720)).unwrap();
    let error = DiskCache::new(&directory).unwrap_err().to_string();
    assert!(error.contains("other users") && error.contains(shard.to_str().unwrap()), "{error}");
    fs::set_permissions(&shard, fs::Permissions::from_mode(0o700)).unwrap();
    let moved = folder.path().join("moved");
    fs::rename(&shard, &moved).unwrap();
    symlink(&moved, &shard).unwrap();
    let error = DiskCache::new(&directory).unwrap_err().to_string();
    assert!(error.contains("it is not a directory"), "{error}");
    fs::remove_file(&shard).unwrap();
    fs::rename(&moved, &shard).unwrap();
    DiskCache::new(&directory).unwrap();
    // Only root can give a directory to another user; for any other user, that of root belongs to another one.
    let other = match chown(&directory, Some(12_345), None) {
        Ok(()) => &directory,
        Err(_) => Path::new("/"),
    };
    let error = DiskCache::new(other).unwrap_err();
    assert!(error.to_string().contains("belongs to user"), "{error}");
    let file = folder.path().join("file");
    File::create(&file).unwrap();
    assert!(DiskCache::new(&file).is_err());
}
