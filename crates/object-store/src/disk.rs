//! The cache on disk.
//!
//! Each entry is a file with bytes of one object. Its name is a hash of what the bytes are, and its content starts with
//! a checksum. So there is no list of the entries that has to agree with them: whatever is missing or damaged is
//! requested again. A new file replaces an old one by renaming, so that a reader finds one or the other.
//!
//! The entries are distributed over directories. Before a file is written, the oldest files of its directory are
//! removed, such that the directory does not exceed its share of the limit. The modification time of a file is the time
//! of its last use.

use std::fs::{self, DirBuilder, File, Metadata};
use std::io::{self, Read, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use blosc2::{Error, Result};
use bytes::Bytes;
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;

use crate::traffic::Counters;

/// The number of bytes of an object in an entry; the last entry can be shorter.
///
/// A range is extended to entries, by this number of bytes on average. It is a quarter of the default gap, which is
/// the number of bytes that a request costs. It is also the length of the start that opening an object requests.
pub(crate) const PIECE: u64 = 64 << 10;
const DEFAULT_LIMIT: u64 = 256 << 20;
/// So that each directory can contain some entries.
const LEAST_LIMIT: u64 = 16 << 20;
/// The number of directories of entries.
const SHARDS: usize = 16;
/// The part of the share of a directory that stays free for processes that write at the same time.
const RESERVE: u64 = 8;
/// The part of the share of a directory that a process writes without listing the directory again.
const UNLISTED: u64 = 128;
/// The use of an entry is recorded if the last one was this long ago.
const RESOLUTION: Duration = Duration::from_secs(60);
/// The unit in which most file systems allocate space, in bytes.
const BLOCK: u64 = 4096;

/// The start of an entry: this magic number, the checksum of the rest, and the key.
const MAGIC: &[u8; 8] = b"b2cache\x01";
const HEADER: usize = MAGIC.len() + 4 + size_of::<Key>();
/// The maximum length of an ETag.
const MOST_TAG: usize = 1024;
/// The maximum length of an entry: that of the start of an object, which contains the metadata of the object.
const MOST: usize = HEADER + 4 + MOST_TAG + 16 + PIECE as usize;

const OPEN: &str = "open a disk cache";

/// A hash of what an entry contains.
type Key = [u8; 32];

/// A cache of the compressed bytes of remote objects, in a directory on disk. It remains after the end of the program,
/// and any number of programs can use it at the same time. Python: `cache_dir` and `shared_cache`.
///
/// Pass it to [`Remote::disk_cache`](crate::Remote::disk_cache). Clones share the directory and the limit, so that one
/// cache can serve several object stores.
///
/// ```
/// # use std::sync::Arc;
/// use blosc2::NDArray;
/// use blosc2_object_store::{DiskCache, Remote};
///
/// # let folder = tempfile::tempdir()?;
/// # let directory = folder.path().join("cache");
/// # let file = folder.path().join("numbers.b2nd");
/// # NDArray::builder().arange(0u16, 500, 1)?.save(&file)?;
/// # std::fs::File::options().write(true).open(&file)?.set_modified(std::time::UNIX_EPOCH)?;
/// # let url = format!("file://{}", file.display());
/// let cache = DiskCache::new(directory)?.limit(1 << 30);
/// let (remote, path) = Remote::from_url(&url, [("", ""); 0])?;
/// let remote = remote.disk_cache(&cache)?;
/// assert_eq!(remote.array(&path)?.read::<Vec<u16>>(100..103)?, [100, 101, 102]);
/// assert_eq!(remote.traffic().disk_writes, 1);
/// # let remote = Remote::from_url(&url, [("", ""); 0])?.0.disk_cache(&cache)?;
///
/// // In another program. One request asks the server whether the object has changed.
/// assert_eq!(remote.array(&path)?.read::<Vec<u16>>(100..103)?, [100, 101, 102]);
/// assert_eq!((remote.traffic().requests, remote.traffic().received), (1, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # What is stored
/// Entries of up to 64 KiB of an object. Their key consists of the object store, the path, the size and the ETag of the
/// object. Objects without a strong ETag are not stored, because their changes cannot be detected reliably:
/// [`Traffic::not_cacheable`](crate::Traffic::not_cacheable) counts them. An object that was changed less than two
/// seconds before it is opened is such an object, too: some servers derive ETags from modification times in seconds. A
/// read whose entries have more than half of the limit is not stored either.
///
/// An object in the cache is opened by one request, which transfers no bytes of the object if the ETag is the same. The
/// server thereby also checks the credentials. Reads whose bytes are in the cache send no requests. If the object is
/// replaced while it is open, these reads return the opened version; the other reads fail with
/// [`ErrorKind::Busy`](blosc2::ErrorKind::Busy).
///
/// The names of the files are hashes. User names, passwords, and the signatures of presigned URLs are not stored.
///
/// # Failures
/// A failure of the disk is never an error of a read. If an entry cannot be read or written, for example because the
/// disk is full, the read uses the network; [`Traffic::disk_failures`](crate::Traffic::disk_failures) counts it.
/// Each entry has a checksum. A damaged entry is removed, and its bytes are requested again. A process can be killed at
/// any time.
///
/// # Permissions
/// On Unix, only the user can read the files, and a directory that other users can write to is refused. On other
/// systems, the files have the permissions of the directory.
#[derive(Debug, Clone)]
pub struct DiskCache {
    directory: Arc<Path>,
    limit: u64,
    /// For each directory of entries, the number of bytes that were written since its files were listed.
    unlisted: Arc<[AtomicU64; SHARDS]>,
}

impl DiskCache {
    /// Opens the cache in a directory. The directory is created if it does not exist.
    ///
    /// A directory that cannot be written is allowed: the entries in it are used.
    ///
    /// # Errors
    /// - [`ErrorKind::Io`](blosc2::ErrorKind::Io): the directory cannot be created; or it or a directory of entries in
    ///   it belongs to another user, or is writable by other users.
    pub fn new(directory: impl AsRef<Path>) -> Result<Self> {
        let directory = directory.as_ref();
        let opened = std::path::absolute(directory).and_then(|absolute| {
            create(&absolute)?;
            check_private(&absolute).map(|()| absolute)
        });
        let directory = opened.map_err(|error| Error::of_io(OPEN, error).at(directory))?;
        let cache =
            Self { directory: directory.into(), limit: DEFAULT_LIMIT, unlisted: unlisted() };
        for number in 0..SHARDS {
            let shard = cache.shard(number);
            check_shard(&shard).map_err(|error| Error::of_io(OPEN, error).at(&shard))?;
        }
        Ok(cache)
    }

    /// Sets the maximum size of all entries together, in bytes. Default: 256 MiB. Less than 16 MiB means 16 MiB.
    ///
    /// The size of an entry is the space on disk: a multiple of 4 KiB.
    ///
    /// Programs that share the directory should have the same limit. Each of them removes the least recently used
    /// entries if all entries together have more than about 7/8 of its own limit. The rest is for entries that
    /// programs write at the same time. The times of use have a resolution of one minute.
    pub fn limit(mut self, bytes: u64) -> Self {
        self.limit = bytes.max(LEAST_LIMIT);
        self.unlisted = unlisted();
        self
    }

    /// Returns the directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns a directory of entries.
    fn shard(&self, number: usize) -> PathBuf {
        self.directory.join(format!("{number:02x}"))
    }

    fn file(&self, key: &Key) -> PathBuf {
        let name: String = key[..16].iter().map(|byte| format!("{byte:02x}")).collect();
        self.shard(shard_of(key)).join(name)
    }

    /// Returns the content of an entry. Removes it if it is damaged.
    fn get(&self, key: &Key, counters: &Counters) -> Option<Bytes> {
        let path = self.file(key);
        let content = File::open(&path).and_then(|file| {
            let modified = file.metadata()?.modified()?;
            let mut content = Vec::with_capacity(MOST);
            file.take(MOST as u64 + 1).read_to_end(&mut content)?;
            Ok((content, modified))
        });
        let (content, modified) = match content {
            Ok(found) => found,
            Err(error) => {
                counters.disk_failures.add(u64::from(error.kind() != io::ErrorKind::NotFound));
                return None;
            }
        };
        if !is_intact(&content, key) {
            self.remove(key, counters);
            return None;
        }
        let now = SystemTime::now();
        // A time in the future would keep the entry forever.
        if now.duration_since(modified).map_or(true, |age| age >= RESOLUTION) {
            // In a directory that cannot be written, nothing is removed either.
            let _ = File::options().write(true).open(&path).and_then(|file| file.set_modified(now));
        }
        Some(Bytes::from(content).slice(HEADER..))
    }

    /// Removes a damaged entry.
    fn remove(&self, key: &Key, counters: &Counters) {
        counters.disk_damaged.add(1);
        // If it cannot be removed, it is found to be damaged again.
        let _ = fs::remove_file(self.file(key));
    }

    /// Writes an entry.
    fn put(&self, key: &Key, content: &[&[u8]], counters: &Counters) {
        let mut bytes = [&MAGIC[..], &[0; 4], key, &content.concat()].concat();
        let checksum = crc32c::crc32c(&bytes[MAGIC.len() + 4..]);
        bytes[MAGIC.len()..][..4].copy_from_slice(&checksum.to_le_bytes());
        match self.write(key, &bytes) {
            Ok(()) => counters.disk_writes.add(1),
            Err(_) => counters.disk_failures.add(1),
        }
    }

    fn write(&self, key: &Key, bytes: &[u8]) -> io::Result<()> {
        let number = shard_of(key);
        let shard = self.shard(number);
        create(&shard)?;
        self.make_room(number, &shard, bytes.len() as u64)?;
        // Only the user can read it. Without a sync: after a power failure, the checksum decides.
        let mut file = NamedTempFile::new_in(&shard)?;
        file.write_all(bytes)?;
        file.persist(self.file(key)).map(drop).map_err(io::Error::from)
    }

    /// Removes the least recently used files of a directory, also those that killed processes have left.
    fn make_room(&self, number: usize, shard: &Path, len: u64) -> io::Result<()> {
        let len = len.next_multiple_of(BLOCK);
        let share = self.limit / SHARDS as u64;
        let unlisted = self.unlisted[number].fetch_add(len, Ordering::Relaxed).saturating_add(len);
        if unlisted < share / UNLISTED {
            return Ok(());
        }
        let mut files = Vec::new();
        for entry in fs::read_dir(shard)? {
            let entry = entry?;
            // Another process can have removed it.
            if let Ok(metadata) = entry.metadata()
                && metadata.is_file()
            {
                let len = metadata.len().next_multiple_of(BLOCK);
                files.push((last_use(metadata.modified()?), len, entry.path()));
            }
        }
        let mut total = len + files.iter().map(|(_, len, _)| len).sum::<u64>();
        let most = share - share / RESERVE;
        let mut removed = Ok(());
        if total > most {
            files.sort_unstable();
            for (_, len, path) in files {
                match fs::remove_file(path) {
                    // Others can be removed instead.
                    Err(error) if error.kind() != io::ErrorKind::NotFound => removed = Err(error),
                    _ => total -= len,
                }
                if total <= most {
                    break;
                }
            }
        }
        if total > most {
            return removed;
        }
        self.unlisted[number].store(0, Ordering::Relaxed);
        Ok(())
    }
}

/// Returns the number of the directory of an entry.
fn shard_of(key: &Key) -> usize {
    usize::from(key[0]) % SHARDS
}

/// The time of the last use of a file that was modified at this time. Those of file servers differ a little from that
/// of this computer. If the clock was wrong, the use is unknown, and the file must not stay longer than all others.
fn last_use(modified: SystemTime) -> SystemTime {
    match modified.duration_since(SystemTime::now()) {
        Ok(ahead) if ahead > RESOLUTION => UNIX_EPOCH,
        _ => modified,
    }
}

/// The counts of a process that has not listed any directory.
fn unlisted() -> Arc<[AtomicU64; SHARDS]> {
    Arc::new(std::array::from_fn(|_| AtomicU64::new(u64::MAX / 2)))
}

/// Creates a directory that only the user can enter, if it does not exist.
fn create(directory: &Path) -> io::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    if let Some(parent) = directory.parent() {
        fs::create_dir_all(parent)?;
    }
    #[cfg_attr(not(unix), allow(unused_mut, reason = "only Unix has a mode"))]
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(directory) {
        // Another process was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && directory.is_dir() => Ok(()),
        created => created,
    }
}

/// Checks that no other user can write to a directory.
fn check_private(directory: &Path) -> io::Result<()> {
    // A link of another user can lead to any directory of this user.
    check_metadata(&fs::symlink_metadata(directory)?)?;
    check_metadata(&fs::metadata(directory)?)
}

/// Checks that no other user can write to a directory of entries, if it exists. Links lead to other directories.
fn check_shard(directory: &Path) -> io::Result<()> {
    match fs::symlink_metadata(directory) {
        Ok(metadata) if metadata.is_dir() => check_metadata(&metadata),
        Ok(_) => {
            let detail = "it is not a directory; links are not followed";
            Err(io::Error::new(io::ErrorKind::NotADirectory, detail))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Checks that a directory, or a link to one, belongs to the user, and that no other user can write to it.
#[cfg(unix)]
fn check_metadata(metadata: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;

    let refused = |detail| Err(io::Error::new(io::ErrorKind::PermissionDenied, detail));
    let (owner, user) = (metadata.uid(), rustix::process::geteuid().as_raw());
    let mode = metadata.mode() & 0o777;
    if owner != user {
        return refused(format!(
            "the directory belongs to user {owner}, expected the user {user} of this program"
        ));
    }
    // All users have all permissions of links, which have no effect.
    if mode & 0o022 != 0 && !metadata.is_symlink() {
        return refused(format!(
            "other users can write to the directory: its mode is {mode:o}, expected one without 022, such as 700"
        ));
    }
    Ok(())
}

/// Permissions of other systems are inherited, and those of the directories of users are private.
#[cfg(not(unix))]
fn check_metadata(_: &Metadata) -> io::Result<()> {
    Ok(())
}

/// Whether the content of a file is that of an entry.
fn is_intact(content: &[u8], key: &Key) -> bool {
    content.len() >= HEADER
        && content.len() <= MOST
        && content.starts_with(MAGIC)
        && content[HEADER - key.len()..HEADER] == *key
        && content[MAGIC.len()..][..4] == crc32c::crc32c(&content[MAGIC.len() + 4..]).to_le_bytes()
}

/// Returns the hash of a sequence of fields.
fn key(fields: &[&[u8]]) -> Key {
    let mut hash = Sha256::new();
    for field in fields {
        hash.update((field.len() as u64).to_le_bytes());
        hash.update(field);
    }
    hash.finalize().into()
}

/// What the cache knows of an object. The server decides whether it is still valid.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) e_tag: String,
    pub(crate) size: u64,
    /// The modification time in milliseconds.
    pub(crate) modified: i64,
    /// The first bytes.
    pub(crate) head: Bytes,
}

/// The entries of one object.
#[derive(Debug, Clone)]
pub(crate) struct Entries {
    cache: DiskCache,
    counters: Arc<Counters>,
    /// The key of the first entry, which contains the metadata of the object.
    first: Key,
}

impl Entries {
    /// The entries of an object. `store` identifies the object store.
    pub(crate) fn new(
        cache: &DiskCache,
        counters: &Arc<Counters>,
        store: &str,
        path: &str,
    ) -> Self {
        let first = key(&[b"object", store.as_bytes(), path.as_bytes()]);
        Self { cache: cache.clone(), counters: Arc::clone(counters), first }
    }

    /// Returns the metadata and the first bytes of the version that was opened last.
    pub(crate) fn known(&self) -> Option<Known> {
        let content = self.cache.get(&self.first, &self.counters)?;
        let known = parse(&content);
        match &known {
            Some(known) => self.count(known.head.len()),
            None => self.cache.remove(&self.first, &self.counters),
        }
        known
    }

    fn count(&self, bytes: usize) {
        self.counters.disk_hits.add(1);
        self.counters.disk_bytes.add(bytes as u64);
    }

    fn put_first(&self, known: &Known) {
        let content: [&[u8]; 5] = [
            &(known.e_tag.len() as u32).to_le_bytes(),
            known.e_tag.as_bytes(),
            &known.size.to_le_bytes(),
            &known.modified.to_le_bytes(),
            &known.head,
        ];
        self.cache.put(&self.first, &content, &self.counters);
    }

    /// The entries of a version. Returns `None` for an ETag that is not a strong validator.
    pub(crate) fn version(&self, e_tag: Option<&str>, size: u64) -> Option<VersionEntries> {
        // `*` matches any version.
        let is_strong = |e_tag: &&str| !e_tag.starts_with("W/") && !["", "*"].contains(e_tag);
        let Some(e_tag) = e_tag.filter(is_strong).filter(|e_tag| e_tag.len() <= MOST_TAG) else {
            self.counters.not_cacheable.add(1);
            return None;
        };
        let version = key(&[&self.first, e_tag.as_bytes(), &size.to_le_bytes()]);
        Some(VersionEntries { entries: self.clone(), version, size })
    }
}

/// Parses the content of a first entry.
fn parse(content: &Bytes) -> Option<Known> {
    let (len, rest) = content.split_first_chunk()?;
    let (e_tag, rest) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
    let (size, rest) = rest.split_first_chunk()?;
    let (modified, head) = rest.split_first_chunk()?;
    let size = u64::from_le_bytes(*size);
    let known = Known {
        e_tag: String::from_utf8(e_tag.to_vec()).ok()?,
        size,
        modified: i64::from_le_bytes(*modified),
        head: content.slice_ref(head),
    };
    (head.len() as u64 == size.min(PIECE)).then_some(known)
}

/// The entries of one version of an object.
#[derive(Debug)]
pub(crate) struct VersionEntries {
    entries: Entries,
    version: Key,
    size: u64,
}

impl VersionEntries {
    /// Whether a read of this number of bytes goes through the cache. A larger one would displace most of its content.
    pub(crate) fn takes(&self, bytes: u64) -> bool {
        bytes <= self.entries.cache.limit / 2
    }

    /// Returns the bytes of a piece of the object.
    pub(crate) fn piece(&self, number: u64) -> Range<u64> {
        let start = number * PIECE;
        start..self.size.min(start.saturating_add(PIECE))
    }

    fn key(&self, number: u64) -> Key {
        key(&[&self.version, &number.to_le_bytes()])
    }

    pub(crate) fn get(&self, number: u64) -> Option<Bytes> {
        let Entries { cache, counters, .. } = &self.entries;
        let (key, piece) = (self.key(number), self.piece(number));
        let content = cache.get(&key, counters)?;
        if content.len() as u64 != piece.end - piece.start {
            cache.remove(&key, counters);
            return None;
        }
        self.entries.count(content.len());
        Some(content)
    }

    /// Stores the metadata of the object and its first bytes.
    pub(crate) fn put_first(&self, known: &Known) {
        self.entries.put_first(known);
    }

    pub(crate) fn put(&self, number: u64, bytes: &[u8]) {
        self.entries.cache.put(&self.key(number), &[bytes], &self.entries.counters);
    }
}
