//! Untrusted stores: zip files, folders, and containers in single frames.

use std::fs;
use std::path::Path;

use crate::folder;
use blosc2::SChunk;
use blosc2_store::{CTable, Members, Object, TreeStore};

use crate::walk::{open, walk, walk_array};

/// The maximum number of members, rows and columns that are read.
const MANY: usize = 12;
/// The largest super-chunk that is read, in bytes.
const LARGEST: u64 = 1 << 20;

/// Opens a zip file, or a frame with a container, and reads what is in it.
pub fn store_zip(input: &[u8]) {
    drop(TreeStore::is_in(input));
    if let Ok(store) = TreeStore::open_source(input.to_vec()) {
        tree(&store, 0);
        members(&Members::open_source(input.to_vec()).expect("the store is opened"));
    } else if let Ok(schunk) = open(input, false) {
        if let Ok(container) = Object::from_schunk(schunk) {
            object(container, 0);
        }
        if let Ok(table) = CTable::from_cframe(input.to_vec()) {
            columns(&table);
        }
    }
}

/// Unpacks a folder to the disk, opens it as a store, and reads what is in it.
pub fn store_folder(input: &[u8]) {
    let Some(files) = folder::unpack(input) else { return };
    let root = tempfile::tempdir().expect("a temporary folder");
    for (name, content) in files.iter().take(100) {
        let plain = !name.contains(['\0', '\\'])
            && name
                .split('/')
                .all(|part| !part.is_empty() && part != ".." && part != "." && part.len() < 64);
        let path = root.path().join("store.b2d").join(name);
        if plain && path.parent().is_some_and(|parent| fs::create_dir_all(parent).is_ok()) {
            // A file can have the name of a folder.
            let _ = fs::write(path, content);
        }
    }
    let path = root.path().join("store.b2d");
    drop(TreeStore::is_at(&path));
    if let Ok(list) = Members::open(&path) {
        members(&list);
    }
    if let Ok(store) = TreeStore::open(&path) {
        tree(&store, 0);
        change(&path);
    } else if let Ok(container) = Object::open(&path) {
        object(container, 0);
    }
}

/// Changes a store in a folder.
fn change(path: &Path) {
    let Ok(mut store) = TreeStore::open_rw(path) else { return };
    let keys: Vec<String> = store.keys().take(2).map(str::to_owned).collect();
    let mut schunk =
        SChunk::in_memory::<u8>(blosc2::CParams::new()).expect("a super-chunk in memory");
    schunk.append(&[1u8, 2, 3]).expect("three bytes in memory");
    drop(store.insert("/added/here", &schunk));
    drop(store.set_attribute("/", "name", "value"));
    for key in keys {
        drop(store.remove(&key));
    }
    drop(store.finish());
}

fn members(members: &Members) {
    drop(members.duplicates());
    for member in members.iter().take(MANY) {
        drop((member.key(), member.verify()));
        if let Ok(source) = member.open() {
            let size = source.size().unwrap_or(0);
            drop(source.read_vec_at(size.saturating_sub(10), 10));
        }
    }
}

fn tree(store: &TreeStore, depth: usize) {
    drop((store.attributes("/"), store.children("/"), store.is_dict(), store.len()));
    let groups: Vec<&str> = store.groups().take(MANY).collect();
    for group in groups {
        drop((store.attributes(group), store.children(group)));
    }
    for key in store.keys().take(MANY) {
        assert!(store.contains(key));
        if let Ok(found) = store.get(key) {
            object(found, depth + 1);
        }
    }
}

/// Reads a container.
pub(crate) fn object(found: Object, depth: usize) {
    // Stores can contain stores.
    if depth > 2 {
        return;
    }
    if let Some(schunk) = found.schunk() {
        if schunk.nbytes() > LARGEST {
            return;
        }
        walk(schunk);
    }
    match found {
        Object::NDArray(array) => walk_array(&array),
        Object::ObjectArray(array) => drop(array.iter().take(MANY).collect::<Vec<_>>()),
        Object::BatchArray(array) => {
            drop((array.nitems(), array.item(0), array.batches().take(MANY).collect::<Vec<_>>()));
        }
        Object::ListArray(array) => {
            drop((array.item_type().metadata(), array.iter().take(MANY).collect::<Vec<_>>()));
        }
        Object::Tensor(tensor) => drop(tensor.read_bytes()),
        Object::EmbedStore(store) => {
            for key in store.keys().take(MANY) {
                if let Ok(found) = store.get(key) {
                    object(found, depth + 1);
                }
            }
            drop(store.frame_ranges().take(MANY).collect::<Vec<_>>());
        }
        Object::TreeStore(store) => tree(&store, depth),
        Object::CTable(table) => columns(&table),
        Object::Carrier(carrier) => {
            drop((carrier.to_string(), carrier.operands(), carrier.source()));
        }
        _ => {}
    }
}

pub(crate) fn columns(table: &CTable) {
    let most = table.nrows().min(MANY as u64);
    drop((table.attributes(), table.valid_rows(..most)));
    for column in table.columns().iter().take(MANY) {
        let name = column.name();
        drop((column.kind().to_string(), column.is_stale(), table.values(name, ..most)));
        drop((
            table.nulls(name, ..most),
            table.texts(name, ..most),
            table.read::<i64>(name, ..most),
        ));
        if let Ok(array) = table.array(name)
            && array.info().nbytes <= LARGEST
        {
            walk_array(&array);
        }
    }
}
