//! The calls of the operating system that change files, recorded and failed.
//!
//! This program defines the functions of the C library through which Rust reads and changes files; the linker takes
//! these definitions instead of those of the C library. Each performs the system call. While a [session](record) of the
//! thread is active, calls on files below its folder are recorded, and fail as configured.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{CStr, OsStr};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::{fs, slice};

use libc::{c_char, c_int, c_long, c_uint, c_void, mode_t, off64_t, size_t, ssize_t};

use crate::model::{Node, Op, ROOT, Tree};

/// How calls of a session fail. Calls that change files are counted from 0; reads are counted separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// This change fails.
    Once(usize, c_int),
    /// This change and all later ones fail.
    Dead(usize, c_int),
    /// From this change on, the disk has no space: nothing is created, and no file grows.
    Full(usize),
    /// This write stores half of its bytes, and the next change fails.
    Torn(usize),
    /// All writes store at most half of their bytes.
    Short,
    /// This read fails.
    Read(usize),
}

/// What a call does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    /// It needs space.
    Growth,
    /// It removes a file or a folder.
    Removal,
    /// It syncs the names in a folder.
    Names,
    Other,
}

/// What was recorded.
#[derive(Debug)]
pub(crate) struct Recorded {
    /// The files before the session, and without names those that were created later.
    pub(crate) before: Tree,
    pub(crate) ops: Vec<Op>,
    /// The number of calls that change files, including failed ones.
    pub(crate) changes: usize,
    /// The number of reads.
    pub(crate) reads: usize,
    /// The last call that failed.
    pub(crate) failed: Option<Call>,
}

struct Session {
    folder: PathBuf,
    before: Tree,
    now: Tree,
    ops: Vec<Op>,
    /// The nodes of the model by inode.
    nodes: HashMap<u64, usize>,
    changes: usize,
    reads: usize,
    failed: Option<Call>,
    fault: Fault,
}

thread_local! {
    static SESSION: RefCell<Option<Session>> = const { RefCell::new(None) };
}

/// Runs `work`, and records what this thread does with the files below `folder`.
pub(crate) fn record<R>(folder: &Path, fault: Fault, work: impl FnOnce() -> R) -> (R, Recorded) {
    let (mut before, mut nodes) = (Tree::default(), HashMap::new());
    nodes.insert(fs::metadata(folder).unwrap().ino(), ROOT);
    look(folder, ROOT, &mut before, &mut nodes);
    let (now, folder) = (before.clone(), folder.to_owned());
    let (ops, changes, reads, failed) = (Vec::new(), 0, 0, None);
    let session = Session { folder, before, now, ops, nodes, changes, reads, failed, fault };
    SESSION.with(|cell| assert!(cell.borrow_mut().replace(session).is_none(), "two sessions"));
    let result = panic::catch_unwind(AssertUnwindSafe(work));
    let Session { mut before, now, ops, changes, reads, failed, .. } =
        SESSION.with(|cell| cell.borrow_mut().take()).unwrap();
    before.add_later(&now);
    let result = result.unwrap_or_else(|payload| panic::resume_unwind(payload));
    (result, Recorded { before, ops, changes, reads, failed })
}

fn look(folder: &Path, at: usize, tree: &mut Tree, nodes: &mut HashMap<u64, usize>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let is_folder = entry.file_type().unwrap().is_dir();
        let node = tree.add(match is_folder {
            true => Node::folder(),
            false => Node::File(fs::read(entry.path()).unwrap()),
        });
        nodes.insert(entry.metadata().unwrap().ino(), node);
        tree.apply(&Op::Link { folder: at, name: entry.file_name(), node });
        if is_folder {
            look(&entry.path(), node, tree, nodes);
        }
    }
}

impl Session {
    /// The folder of a path and the name in it; `None` outside the folder of the session.
    fn place<'a>(&self, base: Option<usize>, path: &'a Path) -> Option<(usize, &'a OsStr)> {
        let (mut at, inside) = match base {
            Some(folder) if !path.is_absolute() => (folder, path),
            _ => (ROOT, path.strip_prefix(&self.folder).ok()?),
        };
        let name = inside.file_name()?;
        for part in inside.parent()? {
            at = self.now.entry(at, part)?;
        }
        Some((at, name))
    }

    fn push(&mut self, op: Op) -> Option<()> {
        self.now.apply(&op);
        self.ops.push(op);
        Some(())
    }

    /// Counts a change, and returns the error with which it fails.
    fn change(&mut self, call: Call) -> Option<c_int> {
        let number = self.changes;
        self.changes += 1;
        let error = match self.fault {
            Fault::Once(at, error) if number == at => Some(error),
            Fault::Dead(at, error) if number >= at => Some(error),
            Fault::Full(at) if number >= at && call == Call::Growth => Some(libc::ENOSPC),
            Fault::Torn(at) if number == at + 1 => Some(libc::ENOSPC),
            _ => None,
        };
        if error.is_some() {
            self.failed = Some(call);
        }
        error
    }

    /// How many bytes of a write are written.
    fn len(&self, len: usize) -> usize {
        match self.fault {
            Fault::Torn(at) if self.changes == at + 1 && len > 1 => len / 2,
            Fault::Short if len > 1 => len / 2,
            _ => len,
        }
    }

    fn size(&self, node: usize) -> u64 {
        match &self.now.nodes[node] {
            Node::File(bytes) => bytes.len() as u64,
            Node::Folder(_) => 0,
        }
    }
}

/// Calls `work` with the session of this thread, if there is one. A nested call, and one while the thread ends, gets
/// none.
fn with<R>(work: impl FnOnce(&mut Session) -> Option<R>) -> Option<R> {
    SESSION.try_with(|cell| cell.try_borrow_mut().ok()?.as_mut().and_then(work)).ok()?
}

/// What a call returns that fails with this error.
fn failed<T: From<i8>>(error: c_int) -> T {
    // SAFETY: the pointer is that of the variable `errno` of this thread.
    unsafe { *libc::__errno_location() = error };
    T::from(-1)
}

/// # Safety
/// `path` is a C string.
unsafe fn path_of<'a>(path: *const c_char) -> &'a Path {
    // SAFETY: it is a C string, which lives as long as the call.
    Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(path) }.to_bytes()))
}

fn inode(fd: c_int) -> Option<u64> {
    let mut stat = MaybeUninit::<libc::stat64>::uninit();
    // SAFETY: the call fills the struct if it returns 0.
    (unsafe { libc::fstat64(fd, stat.as_mut_ptr()) } == 0)
        .then(|| unsafe { stat.assume_init() }.st_ino)
}

fn node_of(session: &Session, fd: c_int) -> Option<usize> {
    session.nodes.get(&inode(fd)?).copied()
}

/// The folder of `dirfd`; `None` for the current folder.
fn base(session: &Session, dirfd: c_int) -> Option<usize> {
    if dirfd == libc::AT_FDCWD { None } else { node_of(session, dirfd) }
}

/// # Safety
/// `path` is a C string.
unsafe fn open_at(dirfd: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    // SAFETY: the caller promises it.
    let name = unsafe { path_of(path) };
    let changes = with(|session| {
        let (folder, name) = session.place(base(session, dirfd), name)?;
        let there = session.now.entry(folder, name);
        let creates = flags & libc::O_CREAT != 0 && there.is_none();
        let cuts = flags & libc::O_TRUNC != 0 && there.is_some_and(|node| session.size(node) > 0);
        if !creates && !cuts {
            return None;
        }
        let call = if creates { Call::Growth } else { Call::Other };
        Some((folder, name.to_owned(), there.filter(|_| cuts), session.change(call)))
    });
    if let Some((_, _, _, Some(error))) = changes {
        return failed(error);
    }
    // SAFETY: the arguments are those of the caller.
    let fd = unsafe { libc::syscall(libc::SYS_openat, dirfd, path, flags, mode) } as c_int;
    if let Some((folder, name, cut, None)) = changes.filter(|_| fd >= 0) {
        with(|session| match cut {
            Some(node) => session.push(Op::SetLen { node, len: 0 }),
            None => {
                let node = session.now.add(Node::File(Vec::new()));
                session.nodes.insert(inode(fd)?, node);
                session.push(Op::Link { folder, name, node })
            }
        });
    }
    fd
}

/// Writes bytes at an offset, or at the position of the file.
///
/// # Safety
/// `bytes` are `len` readable bytes.
unsafe fn write_at(fd: c_int, bytes: *const c_void, len: size_t, at: Option<off64_t>) -> ssize_t {
    let planned = with(|session| {
        let node = node_of(session, fd)?;
        // SAFETY: it changes nothing.
        let position = || unsafe { libc::syscall(libc::SYS_lseek, fd, 0, libc::SEEK_CUR) };
        let at = at.unwrap_or_else(position) as u64;
        let grows = at + len as u64 > session.size(node);
        let error = session.change(if grows { Call::Growth } else { Call::Other });
        Some((node, at, session.len(len), error))
    });
    if let Some((_, _, _, Some(error))) = planned {
        return failed::<c_long>(error) as ssize_t;
    }
    let len = planned.map_or(len, |(_, _, len, _)| len);
    // SAFETY: the arguments are those of the caller, with a length that is not longer.
    let written = unsafe {
        match at {
            Some(at) => libc::syscall(libc::SYS_pwrite64, fd, bytes, len, at),
            None => libc::syscall(libc::SYS_write, fd, bytes, len),
        }
    };
    if let Some((node, at, ..)) = planned.filter(|_| written > 0) {
        // SAFETY: the caller promises that there are as many bytes.
        let bytes = unsafe { slice::from_raw_parts(bytes.cast::<u8>(), written as usize) };
        with(|session| session.push(Op::Write { node, at, bytes: bytes.to_vec() }));
    }
    written as ssize_t
}

/// Whether a read fails.
fn read_fails(fd: c_int) -> bool {
    let failed = with(|session| {
        node_of(session, fd)?;
        session.reads += 1;
        Some(session.fault == Fault::Read(session.reads - 1))
    });
    failed.unwrap_or(false)
}

fn sync(fd: c_int, number: c_long) -> c_int {
    let known = with(|session| {
        let node = node_of(session, fd)?;
        let is_folder = matches!(session.now.nodes[node], Node::Folder(_));
        let error = session.change(if is_folder { Call::Names } else { Call::Other });
        Some((node, error))
    });
    match known {
        Some((_, Some(error))) => failed(error),
        // The model does not need the disk.
        Some((node, None)) => {
            with(|session| session.push(Op::Sync { node }));
            0
        }
        // SAFETY: the arguments are those of the caller.
        None => unsafe { libc::syscall(number, fd) as c_int },
    }
}

/// Makes a change of the names of files: `plan` returns what it changes.
fn change(
    kind: Call,
    plan: impl FnOnce(&Session) -> Option<Op>,
    call: impl FnOnce() -> c_long,
) -> c_int {
    let planned = with(|session| Some((plan(session)?, session.change(kind))));
    if let Some((_, Some(error))) = planned {
        return failed(error);
    }
    let result = call() as c_int;
    if let Some((op, None)) = planned.filter(|_| result == 0) {
        with(|session| session.push(op));
    }
    result
}

/// # Safety
/// Both paths are C strings.
unsafe fn rename_at(
    from: (c_int, *const c_char),
    to: (c_int, *const c_char),
    flags: c_uint,
) -> c_int {
    // SAFETY: the caller promises it.
    let (old, new) = unsafe { (path_of(from.1), path_of(to.1)) };
    let plan = |session: &Session| {
        let (old_folder, old) = session.place(base(session, from.0), old)?;
        let (folder, name) = session.place(base(session, to.0), new)?;
        let node = session.now.entry(old_folder, old)?;
        let (old, name) = (old.to_owned(), name.to_owned());
        Some(Op::Rename { old_folder, old, folder, name, node })
    };
    // SAFETY: the arguments are those of the caller.
    let call = || unsafe { libc::syscall(libc::SYS_renameat2, from.0, from.1, to.0, to.1, flags) };
    change(Call::Other, plan, call)
}

/// # Safety
/// `path` is a C string.
unsafe fn unlink_at(dirfd: c_int, path: *const c_char, flags: c_int) -> c_int {
    // SAFETY: the caller promises it.
    let name = unsafe { path_of(path) };
    let plan = |session: &Session| {
        let (folder, name) = session.place(base(session, dirfd), name)?;
        session.now.entry(folder, name)?;
        Some(Op::Unlink { folder, name: name.to_owned() })
    };
    // SAFETY: the arguments are those of the caller.
    let call = || unsafe { libc::syscall(libc::SYS_unlinkat, dirfd, path, flags) };
    change(Call::Removal, plan, call)
}

/// # Safety
/// `path` is a C string.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    // SAFETY: the caller promises it.
    unsafe { open_at(libc::AT_FDCWD, path, flags, mode) }
}

/// # Safety
/// `path` is a C string.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn openat64(
    dirfd: c_int,
    path: *const c_char,
    flags: c_int,
    mode: mode_t,
) -> c_int {
    // SAFETY: the caller promises it.
    unsafe { open_at(dirfd, path, flags, mode) }
}

/// # Safety
/// `bytes` are `len` readable bytes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn write(fd: c_int, bytes: *const c_void, len: size_t) -> ssize_t {
    // SAFETY: the caller promises it.
    unsafe { write_at(fd, bytes, len, None) }
}

/// # Safety
/// `bytes` are `len` readable bytes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pwrite64(
    fd: c_int,
    bytes: *const c_void,
    len: size_t,
    at: off64_t,
) -> ssize_t {
    // SAFETY: the caller promises it.
    unsafe { write_at(fd, bytes, len, Some(at)) }
}

/// Writes the first part only, which is allowed.
///
/// # Safety
/// `parts` are `count` parts of readable bytes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn writev(
    fd: c_int,
    parts: *const libc::iovec,
    count: c_int,
) -> ssize_t {
    if with(|session| node_of(session, fd)).is_none() {
        // SAFETY: the arguments are those of the caller.
        return unsafe { libc::syscall(libc::SYS_writev, fd, parts, count) as ssize_t };
    }
    // SAFETY: the caller promises that there are as many parts.
    let parts = unsafe { slice::from_raw_parts(parts, count as usize) };
    let first = parts.iter().find(|part| part.iov_len > 0);
    // SAFETY: the caller promises that its bytes are readable.
    first.map_or(0, |part| unsafe { write_at(fd, part.iov_base, part.iov_len, None) })
}

/// # Safety
/// `bytes` are `len` writable bytes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn read(fd: c_int, bytes: *mut c_void, len: size_t) -> ssize_t {
    if read_fails(fd) {
        return failed::<c_long>(libc::EIO) as ssize_t;
    }
    // SAFETY: the arguments are those of the caller.
    unsafe { libc::syscall(libc::SYS_read, fd, bytes, len) as ssize_t }
}

/// # Safety
/// `bytes` are `len` writable bytes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pread64(
    fd: c_int,
    bytes: *mut c_void,
    len: size_t,
    at: off64_t,
) -> ssize_t {
    if read_fails(fd) {
        return failed::<c_long>(libc::EIO) as ssize_t;
    }
    // SAFETY: the arguments are those of the caller.
    unsafe { libc::syscall(libc::SYS_pread64, fd, bytes, len, at) as ssize_t }
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn ftruncate64(fd: c_int, len: off64_t) -> c_int {
    let plan =
        |session: &Session| Some(Op::SetLen { node: node_of(session, fd)?, len: len as u64 });
    // SAFETY: the arguments are those of the caller.
    change(Call::Other, plan, || unsafe { libc::syscall(libc::SYS_ftruncate, fd, len) })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn fsync(fd: c_int) -> c_int {
    sync(fd, libc::SYS_fsync)
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn fdatasync(fd: c_int) -> c_int {
    sync(fd, libc::SYS_fdatasync)
}

/// # Safety
/// Both paths are C strings.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rename(from: *const c_char, to: *const c_char) -> c_int {
    // SAFETY: the caller promises it.
    unsafe { rename_at((libc::AT_FDCWD, from), (libc::AT_FDCWD, to), 0) }
}

/// # Safety
/// Both paths are C strings.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn renameat(
    from_dir: c_int,
    from: *const c_char,
    to_dir: c_int,
    to: *const c_char,
) -> c_int {
    // SAFETY: the caller promises it.
    unsafe { rename_at((from_dir, from), (to_dir, to), 0) }
}

/// # Safety
/// Both paths are C strings.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn renameat2(
    from_dir: c_int,
    from: *const c_char,
    to_dir: c_int,
    to: *const c_char,
    flags: c_uint,
) -> c_int {
    // SAFETY: the caller promises it.
    unsafe { rename_at((from_dir, from), (to_dir, to), flags) }
}

/// # Safety
/// Both paths are C strings.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn linkat(
    from_dir: c_int,
    from: *const c_char,
    to_dir: c_int,
    to: *const c_char,
    flags: c_int,
) -> c_int {
    // SAFETY: the caller promises it.
    let (old, new) = unsafe { (path_of(from), path_of(to)) };
    let plan = |session: &Session| {
        let (old_folder, old) = session.place(base(session, from_dir), old)?;
        let (folder, name) = session.place(base(session, to_dir), new)?;
        let node = session.now.entry(old_folder, old)?;
        Some(Op::Link { folder, name: name.to_owned(), node })
    };
    // SAFETY: the arguments are those of the caller.
    let call = || unsafe { libc::syscall(libc::SYS_linkat, from_dir, from, to_dir, to, flags) };
    change(Call::Growth, plan, call)
}

/// # Safety
/// `path` is a C string.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn unlink(path: *const c_char) -> c_int {
    // SAFETY: the caller promises it.
    unsafe { unlink_at(libc::AT_FDCWD, path, 0) }
}

/// # Safety
/// `path` is a C string.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmdir(path: *const c_char) -> c_int {
    // SAFETY: the caller promises it.
    unsafe { unlink_at(libc::AT_FDCWD, path, libc::AT_REMOVEDIR) }
}

/// # Safety
/// `path` is a C string.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn unlinkat(dirfd: c_int, path: *const c_char, flags: c_int) -> c_int {
    // SAFETY: the caller promises it.
    unsafe { unlink_at(dirfd, path, flags) }
}

/// # Safety
/// `path` is a C string.
unsafe fn mkdir_at(dirfd: c_int, path: *const c_char, mode: mode_t) -> c_int {
    // SAFETY: the caller promises it.
    let name = unsafe { path_of(path) };
    let planned = with(|session| {
        let (folder, name) = session.place(base(session, dirfd), name)?;
        if session.now.entry(folder, name).is_some() {
            return None;
        }
        Some((folder, name.to_owned(), session.change(Call::Growth)))
    });
    if let Some((_, _, Some(error))) = planned {
        return failed(error);
    }
    // SAFETY: the arguments are those of the caller.
    let made = unsafe { libc::syscall(libc::SYS_mkdirat, dirfd, path, mode) } as c_int;
    if let Some((folder, name, None)) = planned.filter(|_| made == 0) {
        let mut stat = MaybeUninit::<libc::stat64>::uninit();
        // SAFETY: the path is the caller's, and the call fills the struct: the folder was just created.
        let inode = unsafe {
            libc::fstatat64(dirfd, path, stat.as_mut_ptr(), libc::AT_SYMLINK_NOFOLLOW);
            stat.assume_init().st_ino
        };
        with(|session| {
            let node = session.now.add(Node::folder());
            session.nodes.insert(inode, node);
            session.push(Op::Link { folder, name, node })
        });
    }
    made
}

/// # Safety
/// `path` is a C string.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mkdir(path: *const c_char, mode: mode_t) -> c_int {
    // SAFETY: the caller promises it.
    unsafe { mkdir_at(libc::AT_FDCWD, path, mode) }
}

/// # Safety
/// `path` is a C string.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mkdirat(dirfd: c_int, path: *const c_char, mode: mode_t) -> c_int {
    // SAFETY: the caller promises it.
    unsafe { mkdir_at(dirfd, path, mode) }
}

/// Copies inside the kernel cannot be recorded: Rust then reads and writes.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn copy_file_range(
    _: c_int,
    _: *mut off64_t,
    _: c_int,
    _: *mut off64_t,
    _: size_t,
    _: c_uint,
) -> ssize_t {
    failed::<c_long>(libc::ENOSYS) as ssize_t
}

/// See [`copy_file_range`].
#[unsafe(no_mangle)]
pub(crate) extern "C" fn sendfile64(_: c_int, _: c_int, _: *mut off64_t, _: size_t) -> ssize_t {
    failed::<c_long>(libc::ENOSYS) as ssize_t
}

/// See [`copy_file_range`].
#[unsafe(no_mangle)]
pub(crate) extern "C" fn splice(
    _: c_int,
    _: *mut off64_t,
    _: c_int,
    _: *mut off64_t,
    _: size_t,
    _: c_uint,
) -> ssize_t {
    failed::<c_long>(libc::ENOSYS) as ssize_t
}
