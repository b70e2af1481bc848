//! Tests: every storage behaves like bytes in memory.

use std::fs::{self, File};
use std::io::{self, Cursor};
use std::sync::Arc;

use blosc2_format::ReadAt;
use blosc2_testing::Rng;

use super::*;
use crate::ErrorKind;

/// Random writes and lengths, each compared with a `Vec`; `set_size` is left out if the storage does not support it.
fn same_as_memory(name: &str, storage: &mut dyn Storage, sized: bool) -> Vec<u8> {
    let mut model = Vec::new();
    storage.read_vec_at(0, storage.size().unwrap()).unwrap().clone_into(&mut model);
    let mut rng = Rng(7);
    let mut below = |end: u64| rng.below(end);
    for step in 0..300 {
        let len = model.len() as u64;
        if sized && below(4) == 0 {
            let len = below(len + 50);
            storage.set_size(len).unwrap();
            model.resize(len as usize, 0);
        } else {
            let (offset, bytes) =
                (below(len + 20), vec![(step % 255) as u8 + 1; 1 + below(40) as usize]);
            storage.write_all_at(offset, &bytes).unwrap();
            let (start, end) = (offset as usize, offset as usize + bytes.len());
            model.resize(model.len().max(end), 0);
            model[start..end].copy_from_slice(&bytes);
        }
        assert_eq!(storage.size().unwrap(), model.len() as u64, "{name}, step {step}");
        let start = below(model.len() as u64 + 1);
        let end = start + below(model.len() as u64 - start + 1);
        let read = storage.read_vec_at(start, end - start).unwrap();
        assert_eq!(read, model[start as usize..end as usize], "{name}, step {step}");
        let mut over = vec![0; (model.len() as u64 - start) as usize + 1];
        let error = storage.read_exact_at(start, &mut over).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{name}, step {step}");
        if let Some(bytes) = storage.as_bytes() {
            assert_eq!(bytes, model, "{name}, step {step}");
        }
    }
    storage.sync().unwrap();
    model
}

fn is_stable(storage: &dyn Storage) -> bool {
    storage.as_bytes().is_some()
}

#[test]
fn every_storage_does_what_memory_does() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| {
        let path = folder.path().join(name);
        fs::write(&path, b"from before").unwrap();
        path
    };
    let open = |name: &str| File::options().read(true).write(true).open(path(name)).unwrap();
    let found = |name: &str| fs::read(folder.path().join(name)).unwrap();

    let model = same_as_memory("a file", &mut open("file"), true);
    assert_eq!(found("file"), model);
    same_as_memory("memory", &mut Vec::new(), true);
    let mut boxed: Box<dyn Storage> = Box::new(vec![1, 2]);
    same_as_memory("boxed memory", &mut boxed, true);
    same_as_memory("guarded memory", &mut Guarded(Vec::new()), true);

    let mut cursor = Seekable::new(Cursor::new(b"from before".to_vec()));
    let model = same_as_memory("a cursor", &mut cursor, false);
    assert!(!is_stable(&cursor));
    assert_eq!(cursor.into_inner().into_inner(), model);
    let model = same_as_memory("a seekable file", &mut Seekable::new(open("seek")), false);
    assert_eq!(found("seek"), model);

    let (rw, private) = (path("rw"), path("private"));
    // SAFETY: no other program or handle uses these files.
    let mut mapped = unsafe { MappedFile::open_rw(&rw).unwrap() };
    let model = same_as_memory("a map", &mut mapped, true);
    assert!(is_stable(&mapped));
    drop(mapped);
    assert_eq!(found("rw"), model);
    // SAFETY: as above.
    let mut mapped = unsafe { MappedFile::copy_on_write(&private).unwrap() };
    same_as_memory("a private map", &mut mapped, true);
    assert_eq!(found("private"), b"from before");
}

#[test]
fn a_private_map_keeps_its_changes_to_itself() {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(&file, b"content").unwrap();
    // SAFETY: no other program or handle uses this file.
    let mut mapped = unsafe { MappedFile::copy_on_write(file.path()).unwrap() };
    mapped.write_all_at(0, b"C").unwrap();
    assert!(is_stable(&mapped));
    assert_eq!(mapped.read_vec_at(0, 7).unwrap(), b"Content");
    mapped.write_all_at(7, b"s").unwrap();
    assert_eq!(mapped.read_vec_at(0, 8).unwrap(), b"Contents");
    assert_eq!(fs::read(&file).unwrap(), b"content");
}

#[test]
fn what_can_only_be_read_says_so() {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(&file, b"bytes").unwrap();
    // SAFETY: no other program or handle uses this file.
    let mapped = unsafe { MappedFile::open(file.path()).unwrap() };
    let storages: [(Box<dyn Storage>, bool); 4] = [
        (Box::new(mapped), true),
        (Box::new(Shared(Arc::<[u8]>::from(*b"bytes"))), true),
        (Box::new(Shared(b"bytes".as_slice())), true),
        (Box::new(ReadOnly::new(File::open(&file).unwrap())), false),
    ];
    for (mut storage, stable) in storages {
        assert_eq!(storage.read_vec_at(0, storage.size().unwrap()).unwrap(), b"bytes");
        assert_eq!(is_stable(&storage), stable);
        for error in
            [storage.write_all_at(0, b"B"), storage.write_all_at(9, b""), storage.set_size(2)]
        {
            assert_eq!(crate::Error::from(error.unwrap_err()).kind(), ErrorKind::ReadOnly);
        }
        storage.sync().unwrap();
    }
    assert_eq!(fs::read(&file).unwrap(), b"bytes");
}

#[test]
fn missing_and_empty_files_are_mapped_or_told() {
    let folder = tempfile::tempdir().unwrap();
    // SAFETY: there is no such file.
    let error = unsafe { MappedFile::open(folder.path().join("none")).unwrap_err() };
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.path().is_some());
    let empty = folder.path().join("empty");
    fs::write(&empty, b"").unwrap();
    // SAFETY: no other program or handle uses this file.
    let mapped = unsafe { MappedFile::open(&empty).unwrap() };
    assert_eq!(mapped.size().unwrap(), 0);
    assert!(mapped.read_exact_at(0, &mut [0]).is_err());
    assert_eq!(format!("{mapped:?}"), "MappedFile { mode: \"r\", size: Some(0) }");
}

#[test]
fn writes_far_behind_memory_are_errors() {
    let mut memory = b"abc".to_vec();
    for offset in [u64::MAX, u64::MAX - 1, i64::MAX as u64] {
        let error = memory.write_all_at(offset, b"xy").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::OutOfMemory, "{offset}");
    }
    assert_eq!(memory, b"abc");
}

/// A storage whose methods all panic.
struct Panics(&'static str);

impl ReadAt for Panics {
    fn size(&self) -> io::Result<u64> {
        panic!("{}", self.0)
    }

    fn read_exact_at(&self, _: u64, _: &mut [u8]) -> io::Result<()> {
        panic!("{}", self.0)
    }
}

impl Storage for Panics {
    fn write_all_at(&mut self, _: u64, _: &[u8]) -> io::Result<()> {
        panic!("{}", self.0)
    }

    fn set_size(&mut self, _: u64) -> io::Result<()> {
        panic!("{}", self.0)
    }

    fn sync(&mut self) -> io::Result<()> {
        panic!("{}", self.0)
    }

    fn as_bytes(&self) -> Option<&[u8]> {
        panic!("{}", self.0)
    }

    fn file(&self) -> Option<&File> {
        panic!("{}", self.0)
    }

    fn take_vec(&mut self) -> Option<Vec<u8>> {
        panic!("{}", self.0)
    }
}

#[test]
fn panics_of_a_storage_are_errors_of_the_call() {
    let mut storage = Guarded(Panics("of 4 kinds"));
    assert!(storage.as_bytes().is_none() && storage.file().is_none());
    assert!(storage.take_vec().is_none());
    let errors = [
        storage.size().map(drop),
        storage.read_exact_at(0, &mut [0]),
        storage.read_vec_at(0, 1).map(drop),
        storage.write_all_at(0, b"x"),
        storage.set_size(1),
        storage.sync(),
    ];
    let doing = [
        "get the size of a storage",
        "read from a storage",
        "read from a storage",
        "write to a storage",
        "set the length of a storage",
        "sync a storage",
    ];
    for (error, doing) in errors.into_iter().zip(doing) {
        let error = crate::Error::from(error.unwrap_err());
        assert_eq!(error.kind(), ErrorKind::Callback);
        assert_eq!(error.to_string(), format!("cannot {doing}: the storage panicked: of 4 kinds"));
    }
}

/// A storage that returns a wrong length, and whose error panics when it is formatted.
struct Wrong;

#[derive(Debug)]
struct Unspeakable;

impl std::fmt::Display for Unspeakable {
    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        panic!("no words")
    }
}

impl std::error::Error for Unspeakable {}

impl ReadAt for Wrong {
    fn size(&self) -> io::Result<u64> {
        Err(io::Error::other(Unspeakable))
    }

    fn read_exact_at(&self, _: u64, _: &mut [u8]) -> io::Result<()> {
        Ok(())
    }

    fn read_vec_at(&self, _: u64, _: u64) -> io::Result<Vec<u8>> {
        Ok(vec![1, 2, 3])
    }
}

impl Storage for Wrong {
    fn write_all_at(&mut self, _: u64, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn set_size(&mut self, _: u64) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_storage_that_breaks_its_rules_is_told() {
    let storage = Guarded(Wrong);
    assert_eq!(storage.read_vec_at(0, 3).unwrap(), [1, 2, 3]);
    let error = crate::Error::from(storage.read_vec_at(0, 4).unwrap_err());
    assert_eq!(error.kind(), ErrorKind::Callback);
    assert_eq!(error.to_string(), "cannot read from a storage: expected 4 bytes, got 3");
    let error = crate::Error::from(storage.size().unwrap_err());
    assert!(error.to_string().ends_with("the storage's error panicked: no words"), "{error}");
}
