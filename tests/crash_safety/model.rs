//! Files in memory, the changes of them, and what a crash can leave of these changes.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use crate::common::Rng;

/// The number of the folder that contains all others.
pub(crate) const ROOT: usize = 0;

/// The unit in which a disk writes.
const SECTOR: u64 = 512;

#[derive(Debug, Clone, Hash)]
pub(crate) enum Node {
    File(Vec<u8>),
    Folder(BTreeMap<OsString, usize>),
}

impl Node {
    pub(crate) fn folder() -> Self {
        Self::Folder(BTreeMap::new())
    }
}

/// Files and folders. A file is identified by its number; it may have no name, or several.
#[derive(Debug, Clone)]
pub(crate) struct Tree {
    pub(crate) nodes: Vec<Node>,
}

impl Default for Tree {
    fn default() -> Self {
        Self { nodes: vec![Node::folder()] }
    }
}

/// A change of files.
#[derive(Debug, Clone)]
pub(crate) enum Op {
    Write {
        node: usize,
        at: u64,
        bytes: Vec<u8>,
    },
    SetLen {
        node: usize,
        len: u64,
    },
    /// A new name, of a new file or of an existing one.
    Link {
        folder: usize,
        name: OsString,
        node: usize,
    },
    Unlink {
        folder: usize,
        name: OsString,
    },
    Rename {
        old_folder: usize,
        old: OsString,
        folder: usize,
        name: OsString,
        node: usize,
    },
    /// What was written to a file, or the names in a folder, are on disk.
    Sync {
        node: usize,
    },
}

impl Op {
    /// Whether the sync of a node makes this change durable. The sync of a file does not include its name.
    fn is_synced_by(&self, synced: usize) -> bool {
        match *self {
            Self::Write { node, .. } | Self::SetLen { node, .. } => node == synced,
            Self::Link { folder, .. } | Self::Unlink { folder, .. } => folder == synced,
            // A rename is atomic.
            Self::Rename { old_folder, folder, .. } => folder == synced || old_folder == synced,
            Self::Sync { .. } => true,
        }
    }

    /// The parts of this write that may be on disk without the rest.
    fn torn(&self) -> Vec<Op> {
        let Self::Write { node, at, bytes } = self else { return Vec::new() };
        let part = |from: u64, to: u64| Self::Write {
            node: *node,
            at: from,
            bytes: bytes[(from - at) as usize..(to - at) as usize].to_vec(),
        };
        let end = at + bytes.len() as u64;
        let first = (at / SECTOR + 1) * SECTOR;
        let last = (end - 1) / SECTOR * SECTOR;
        if first > last {
            return Vec::new();
        }
        vec![part(*at, first), part(first, end), part(*at, last.max(at + 1)), part(last, end)]
    }
}

impl Tree {
    /// Adds the nodes of a later state, which are empty and have no names yet.
    pub(crate) fn add_later(&mut self, later: &Self) {
        for node in &later.nodes[self.nodes.len()..] {
            self.add(match node {
                Node::File(_) => Node::File(Vec::new()),
                Node::Folder(_) => Node::folder(),
            });
        }
    }

    pub(crate) fn add(&mut self, node: Node) -> usize {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    pub(crate) fn entry(&self, folder: usize, name: &OsStr) -> Option<usize> {
        match &self.nodes[folder] {
            Node::Folder(entries) => entries.get(name).copied(),
            Node::File(_) => None,
        }
    }

    fn entries(&mut self, folder: usize) -> &mut BTreeMap<OsString, usize> {
        match &mut self.nodes[folder] {
            Node::Folder(entries) => entries,
            Node::File(_) => panic!("{folder} is a file"),
        }
    }

    fn bytes(&mut self, file: usize) -> &mut Vec<u8> {
        match &mut self.nodes[file] {
            Node::File(bytes) => bytes,
            Node::Folder(_) => panic!("{file} is a folder"),
        }
    }

    pub(crate) fn apply(&mut self, op: &Op) {
        match op {
            Op::Write { node, at, bytes } => {
                let (file, at) = (self.bytes(*node), *at as usize);
                file.resize(file.len().max(at + bytes.len()), 0);
                file[at..at + bytes.len()].copy_from_slice(bytes);
            }
            Op::SetLen { node, len } => self.bytes(*node).resize(*len as usize, 0),
            Op::Link { folder, name, node } => {
                self.entries(*folder).insert(name.clone(), *node);
            }
            Op::Unlink { folder, name } => drop(self.entries(*folder).remove(name)),
            Op::Rename { old_folder, old, folder, name, node } => {
                self.entries(*old_folder).remove(old);
                self.entries(*folder).insert(name.clone(), *node);
            }
            Op::Sync { .. } => {}
        }
    }

    /// Writes all files that have a name into an empty folder.
    pub(crate) fn write(&self, folder: &Path) {
        self.write_in(ROOT, folder);
    }

    fn write_in(&self, at: usize, folder: &Path) {
        let Node::Folder(entries) = &self.nodes[at] else { unreachable!() };
        for (name, &node) in entries {
            let path = folder.join(name);
            match &self.nodes[node] {
                Node::File(bytes) => fs::write(path, bytes).unwrap(),
                Node::Folder(_) => {
                    fs::create_dir(&path).unwrap();
                    self.write_in(node, &path);
                }
            }
        }
    }

    /// A hash of all files that have a name.
    pub(crate) fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash_in(ROOT, &mut hasher);
        hasher.finish()
    }

    fn hash_in(&self, at: usize, hasher: &mut DefaultHasher) {
        match &self.nodes[at] {
            Node::File(bytes) => bytes.hash(hasher),
            Node::Folder(entries) => {
                for (name, &node) in entries {
                    name.hash(hasher);
                    self.hash_in(node, hasher);
                }
                0xffu8.hash(hasher);
            }
        }
    }
}

/// A state that a crash can leave.
#[derive(Debug)]
pub(crate) struct Left {
    pub(crate) tree: Tree,
    /// The number of calls before the crash.
    pub(crate) after: usize,
    pub(crate) what: String,
}

/// What the death of the program leaves at each call, also in the middle of a write.
pub(crate) fn deaths(before: &Tree, ops: &[Op], each: &mut dyn FnMut(Left)) {
    let mut tree = before.clone();
    for (after, op) in ops.iter().enumerate() {
        each(Left { tree: tree.clone(), after, what: format!("death before call {after}") });
        if let Op::Write { node, at, bytes } = op {
            for len in [1, bytes.len() / 2, bytes.len() - 1] {
                if (1..bytes.len()).contains(&len) {
                    let mut tree = tree.clone();
                    let bytes = bytes[..len].to_vec();
                    tree.apply(&Op::Write { node: *node, at: *at, bytes });
                    let what = format!("death in call {after}, after {len} bytes");
                    each(Left { tree, after, what });
                }
            }
        }
        tree.apply(op);
    }
    each(Left { tree, after: ops.len(), what: "death at the end".to_owned() });
}

/// What a power failure leaves, from call `first` on: of the changes that are not synced, any subset. All subsets up to
/// `most` changes, and beyond that `sample` random ones besides the regular ones. A write may also be torn.
pub(crate) fn power_losses(
    before: &Tree,
    ops: &[Op],
    first: usize,
    (most, sample): (usize, usize),
    rng: &mut Rng,
    each: &mut dyn FnMut(Left),
) {
    for after in first..=ops.len() {
        // A failure right after a sync, or at the end; those before are failures with a write that is lost.
        let is_seen = after == ops.len() || after == first || after % 2 == 0 || {
            let is_sync = |at: usize| matches!(ops.get(at), Some(Op::Sync { .. }));
            is_sync(after) || is_sync(after - 1)
        };
        if !is_seen {
            continue;
        }
        let done = &ops[..after];
        let is_synced = |at: usize| {
            done[at + 1..].iter().any(|later| match later {
                Op::Sync { node } => done[at].is_synced_by(*node),
                _ => false,
            })
        };
        let is_change = |at: &usize| !matches!(done[*at], Op::Sync { .. });
        let pending: Vec<usize> =
            (0..after).filter(is_change).filter(|&at| !is_synced(at)).collect();
        let mut left = |lost: &dyn Fn(usize) -> bool, torn: Option<(usize, &Op)>, how: &str| {
            let mut tree = before.clone();
            for (at, op) in done.iter().enumerate() {
                let place = pending.binary_search(&at).ok();
                match torn {
                    Some((whole, part)) if whole == at => tree.apply(part),
                    _ if place.is_some_and(lost) => {}
                    _ => tree.apply(op),
                }
            }
            let what = format!("power loss before call {after}: {how}, of pending {pending:?}");
            each(Left { tree, after, what });
        };
        let count = pending.len();
        if count <= most {
            for lost in 0..1u64 << count {
                left(&|at| lost >> at & 1 == 1, None, &format!("the set {lost:#b} is lost"));
            }
        } else {
            left(&|_| true, None, "all lost");
            left(&|_| false, None, "none lost");
            for one in 0..count {
                left(&|at| at == one, None, &format!("{one} lost"));
                left(&|at| at != one, None, &format!("all but {one} lost"));
                left(&|at| at >= one, None, &format!("from {one} on lost"));
                left(&|at| at < one, None, &format!("before {one} lost"));
            }
            for _ in 0..sample {
                let lost = rng.next();
                left(&|at| lost >> (at % 64) & 1 == 1, None, &format!("the set {lost:#b} is lost"));
            }
        }
        for &at in &pending {
            for part in &done[at].torn() {
                left(&|_| false, Some((at, part)), &format!("call {at} is torn"));
                left(&|_| true, Some((at, part)), &format!("all but a part of call {at} lost"));
            }
        }
    }
}
