//! Folders as bytes: the input of a target is one string of bytes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The bytes with which a folder starts.
const MARK: &[u8] = b"FOLDER";

/// Returns the files of a folder by their names; `None` if the bytes are not those of a folder.
///
/// Any bytes after the mark are a folder: each file has the length of its name (1 byte), its name, its length (4 bytes,
/// little-endian), and its content.
pub(crate) fn unpack(bytes: &[u8]) -> Option<BTreeMap<String, Vec<u8>>> {
    let mut rest = bytes.strip_prefix(MARK)?;
    let mut files = BTreeMap::new();
    let mut take = |len: usize| rest.split_off(..len.min(rest.len())).unwrap_or_default();
    loop {
        let &[len] = take(1) else { return Some(files) };
        let name = String::from_utf8_lossy(take(len.into())).into_owned();
        let mut len = [0; 4];
        let given = take(4);
        len[..given.len()].copy_from_slice(given);
        files.insert(name, take(u32::from_le_bytes(len) as usize).to_vec());
    }
}

/// Returns a folder of the disk as bytes.
///
/// # Errors
/// Fails if a file cannot be read.
pub(crate) fn pack(folder: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = MARK.to_vec();
    for (name, path) in files(folder)? {
        let content = fs::read(path)?;
        bytes.push(name.len() as u8);
        bytes.extend(name.as_bytes());
        bytes.extend((content.len() as u32).to_le_bytes());
        bytes.extend(content);
    }
    Ok(bytes)
}

/// Returns the files in a folder and its subfolders, by their paths in it.
///
/// # Errors
/// Fails if a folder cannot be read.
pub(crate) fn files(folder: &Path) -> io::Result<BTreeMap<String, PathBuf>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            found.extend(
                files(&path)?.into_iter().map(|(inner, at)| (format!("{name}/{inner}"), at)),
            );
        } else {
            found.insert(name, path);
        }
    }
    Ok(found)
}
