//! The files of a store, without their interpretation.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use crate::blosc2::storage::ReadAt;
use crate::blosc2::{Error, ErrorKind, Result};

use crate::archive::Archive;
use crate::folder::{Access, Folder, Found, open_regular};
use crate::key;

const LIST: &str = "list the files of a store";
const OPEN: &str = "open a file of a store";
const VERIFY: &str = "verify a file of a store";

/// A list of the stored files of a [`TreeStore`](crate::TreeStore): the members of a zip file, or the files in a
/// directory and its subdirectories.
///
/// This type does not interpret the files. It therefore also lists the files of a damaged store, and files that are not
/// part of the format. To check the content of a file, use `blosc2_format::file::check`.
///
/// ```
/// use blosc2::NDArray;
/// use blosc2::storage::ReadAt;
/// use blosc2_store::{Members, TreeStore};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("runs.b2z");
/// let mut store = TreeStore::create(&path)?;
/// store.insert("/first/speed", NDArray::from_slice(&[1.5f32, 2.5], &[2])?.schunk())?;
/// store.finish()?;
///
/// let members = Members::open(&path)?;
/// let names: Vec<&str> = members.iter().map(|member| member.name()).collect();
/// assert_eq!(names, ["embed.b2e", "first/speed.b2nd"]);
/// for member in members.iter() {
///     member.verify()?;
///     assert_eq!(member.open()?.read_vec_at(2, 7)?, b"b2frame");
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Only regular files are listed and opened; symbolic links, pipes and devices are ignored. The lock file of the store
/// and the temporary files of this crate are not listed.
#[derive(Debug)]
pub struct Members(Files);

#[derive(Debug)]
enum Files {
    Folder {
        folder: Folder,
        /// The files, by name.
        files: BTreeMap<String, Found>,
    },
    Archive {
        archive: Archive,
        /// The names of members that overlap another member, with the name of the other one.
        overlaps: BTreeMap<String, String>,
    },
}

impl Members {
    /// Lists the files of a directory or a zip file.
    ///
    /// # Errors
    /// - [`ErrorKind::NotFound`], [`ErrorKind::Io`]: the path cannot be read;
    /// - [`ErrorKind::InvalidData`]: the file is not a zip file, or its list of members is damaged.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let io = |error| Error::of_io(LIST, error).at(path);
        if !path.is_dir() {
            let file = open_regular(path).map_err(io)?;
            return Self::open_source(file).map_err(|error| error.at(path));
        }
        let folder = Folder::open(path).map_err(io)?;
        let lossy =
            |file: &Found| file.name.to_string_lossy().replace(std::path::MAIN_SEPARATOR, "/");
        let files = folder.files().map_err(io)?.into_iter().map(|file| (lossy(&file), file));
        let files = files.filter(|(name, _)| !key::is_internal(name)).collect();
        Ok(Self(Files::Folder { folder, files }))
    }

    /// Lists the members of a zip file in a custom storage backend.
    ///
    /// # Errors
    /// - [`ErrorKind::Io`]: reading from the source fails;
    /// - [`ErrorKind::InvalidData`]: the source is not a zip file, or its list of members is damaged.
    pub fn open_source(source: impl ReadAt + Send + Sync + 'static) -> Result<Self> {
        let archive = Archive::open(Arc::new(source))?;
        let overlaps = overlaps(&archive);
        Ok(Self(Files::Archive { archive, overlaps }))
    }

    /// Returns whether the files are members of a zip file.
    pub fn is_archive(&self) -> bool {
        matches!(self.0, Files::Archive { .. })
    }

    /// Returns whether a file has the name of a frame (`.b2nd`, `.b2f`, `.b2b`).
    pub fn contain_frames(&self) -> bool {
        let is_frame =
            |name: &str| [".b2nd", ".b2f", ".b2b"].iter().any(|ending| name.ends_with(ending));
        self.iter().any(|member| is_frame(member.name()))
    }

    /// Returns the files, sorted by name. Directories are not listed.
    pub fn iter(&self) -> impl Iterator<Item = Member<'_>> {
        let names: Box<dyn Iterator<Item = &str>> = match &self.0 {
            Files::Folder { files, .. } => Box::new(files.keys().map(String::as_str)),
            Files::Archive { archive, .. } => {
                Box::new(archive.names().filter(|name| !name.ends_with('/')))
            }
        };
        names.map(|name| Member { members: self, name })
    }

    /// Returns the names that occur more than once in the list of members of a zip file. [`iter`](Self::iter) returns
    /// only the last member with such a name. For a directory, the set is empty.
    ///
    /// # Errors
    /// [`ErrorKind::Io`]: reading fails.
    pub fn duplicates(&self) -> Result<BTreeSet<String>> {
        match &self.0 {
            Files::Folder { .. } => Ok(BTreeSet::new()),
            Files::Archive { archive, .. } => archive.duplicates(),
        }
    }

    /// Returns the file with this [name](Member::name), or `None` if there is no such file.
    pub fn get(&self, name: &str) -> Option<Member<'_>> {
        let name = match &self.0 {
            Files::Folder { files, .. } => files.get_key_value(name).map(|(name, _)| name.as_str()),
            Files::Archive { archive, .. } => archive.name(name),
        };
        name.map(|name| Member { members: self, name })
    }
}

/// A file of a store. Returned by [`Members::iter`].
///
/// ```
/// use blosc2_store::Members;
/// # use blosc2_store::TreeStore;
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("a.b2d");
/// # TreeStore::create(&path)?;
///
/// let members = Members::open(&path)?;
/// assert_eq!(members.get("embed.b2e").unwrap().name(), "embed.b2e");
/// assert!(members.get("missing.b2nd").is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Member<'a> {
    members: &'a Members,
    name: &'a str,
}

impl<'a> Member<'a> {
    /// Returns the path inside the store, with `/` as the separator. Bytes of a file name that are not UTF-8 are
    /// replaced by the character U+FFFD.
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// Returns the key that the file has if it is a frame: `/` and the name without its extension. Returns `None` for
    /// `embed.b2e`, and if the result is not a valid key.
    pub fn key(&self) -> Option<String> {
        key::of_name(self.name).map(|(key, _)| key)
    }

    /// Opens the file for reading. A member of a zip file is read in place.
    ///
    /// # Errors
    /// - [`ErrorKind::Unsupported`]: the member is compressed or encrypted by zip;
    /// - [`ErrorKind::InvalidData`]: the member extends beyond the end of the zip file; the member overlaps another
    ///   member; or the header before the member contains a different name;
    /// - [`ErrorKind::NotFound`], [`ErrorKind::Io`]: the file cannot be read.
    pub fn open(&self) -> Result<Arc<dyn ReadAt + Send + Sync>> {
        match &self.members.0 {
            Files::Folder { folder, files } => {
                let name = files.get(self.name).map_or(Path::new(""), |found| &found.name);
                let io = |error| Error::of_io(OPEN, error).at(folder.path().join(name));
                Ok(Arc::new(folder.file(name, Access::Read).map_err(io)?))
            }
            Files::Archive { archive, overlaps } => {
                let member = archive.member(self.name)?;
                if let Some(other) = overlaps.get(self.name) {
                    let detail = format!("its member `{}` overlaps `{other}`", self.name);
                    return Err(Error::new(ErrorKind::InvalidData, OPEN, detail));
                }
                if let Some(other) = archive.other_name(self.name)? {
                    let detail = format!(
                        "its member `{}` has the name `{other}` in the header before its bytes",
                        self.name
                    );
                    return Err(Error::new(ErrorKind::InvalidData, OPEN, detail));
                }
                Ok(Arc::new(member))
            }
        }
    }

    /// Checks the bytes of a member of a zip file against their stored checksum. Files in a directory have no checksum:
    /// for such a file, this method does nothing.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidData`]: the checksum differs;
    /// - the errors of [`open`](Self::open).
    pub fn verify(&self) -> Result<()> {
        let Files::Archive { archive, .. } = &self.members.0 else { return Ok(()) };
        self.open()?;
        if archive.has_checksum(self.name)? {
            return Ok(());
        }
        let detail = format!("the bytes of its member `{}` differ from its checksum", self.name);
        Err(Error::new(ErrorKind::InvalidData, VERIFY, detail))
    }
}

/// The members whose bytes overlap those of a member before them in the file, with the name of that member.
fn overlaps(archive: &Archive) -> BTreeMap<String, String> {
    // Members that cannot be read in place are reported when they are opened.
    let readable = archive.names().filter_map(|name| Some((archive.member(name).ok()?, name)));
    let mut windows: Vec<_> = readable.map(|(window, name)| (window.range(), name)).collect();
    windows.sort_by_key(|(range, _)| (range.start, range.end));
    let mut overlaps = BTreeMap::new();
    let (mut end, mut last) = (0, "");
    for (range, name) in windows {
        // An empty member occupies no bytes.
        if range.start < end && !range.is_empty() {
            overlaps.insert(name.to_owned(), last.to_owned());
        }
        if range.end > end {
            (end, last) = (range.end, name);
        }
    }
    overlaps
}

#[cfg(all(test, feature = "c"))]
mod tests {
    use std::io::{Cursor, Write};

    use zip::write::SimpleFileOptions;
    use zip::{CompressionMethod, ZipWriter};

    use super::*;

    /// A zip file of uncompressed members.
    fn zipped(members: &[(&str, &[u8])]) -> Vec<u8> {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
        for (name, bytes) in members {
            zip.start_file(*name, options).unwrap();
            zip.write_all(bytes).unwrap();
        }
        zip.finish().unwrap().into_inner()
    }

    /// The position of the entry of each member in the list of members.
    fn entries(zip: &[u8]) -> Vec<usize> {
        (0..zip.len() - 4).filter(|&at| zip[at..at + 4] == *b"PK\x01\x02").collect()
    }

    #[test]
    fn members_are_read_in_place() {
        let zip = zipped(&[("b/two", b"second"), ("a", b"first"), ("empty", b"")]);
        let members = Members::open_source(zip).unwrap();
        assert!(members.is_archive());
        let names: Vec<_> = members.iter().map(|member| member.name()).collect();
        assert_eq!(names, ["a", "b/two", "empty"]);
        for (name, bytes) in [("a", &b"first"[..]), ("b/two", b"second"), ("empty", b"")] {
            let member = members.get(name).unwrap();
            member.verify().unwrap();
            let source = member.open().unwrap();
            assert_eq!(source.read_vec_at(0, source.size().unwrap()).unwrap(), bytes);
            assert!(source.read_vec_at(1, bytes.len() as u64).is_err());
        }
        assert!(members.get("c").is_none());
    }

    #[test]
    fn members_that_cannot_be_trusted_do_not_open() {
        let good = zipped(&[("a", b"first"), ("b", b"second"), ("c", b"third")]);
        let [a, b, _] = entries(&good)[..] else { panic!("three members") };
        let kind = |bytes: Vec<u8>, name: &str| {
            let members = Members::open_source(bytes).unwrap();
            assert!(members.get("c").unwrap().verify().is_ok());
            members.get(name).unwrap().verify().unwrap_err()
        };
        // The data, the compression method, the length, and the position.
        let mut bytes = good.clone();
        let at = bytes.windows(5).position(|each| each == b"first").unwrap();
        bytes[at] ^= 1;
        let error = kind(bytes, "a");
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        assert!(error.to_string().contains("differ from its checksum"), "{error}");
        let mut bytes = good.clone();
        bytes[a + 10] = 8;
        assert_eq!(kind(bytes, "a").kind(), ErrorKind::Unsupported);
        let mut bytes = good.clone();
        bytes[a + 20..a + 24].copy_from_slice(&(1u32 << 20).to_le_bytes());
        assert_eq!(kind(bytes, "a").kind(), ErrorKind::InvalidData);
        let mut bytes = good.clone();
        bytes.copy_within(a + 42..a + 46, b + 42);
        let error = kind(bytes, "b");
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        assert!(error.to_string().contains("`b` overlaps `a`"), "{error}");
    }

    #[test]
    fn names_are_compared() {
        let zip = zipped(&[("a", b"first"), ("x/b.b2nd", b"second"), ("c", b"third")]);
        let members = Members::open_source(zip.clone()).unwrap();
        assert!(members.duplicates().unwrap().is_empty());
        let keys: Vec<_> = members.iter().map(|member| member.key()).collect();
        assert_eq!(keys, ["/a", "/c", "/x/b"].map(|key| Some(key.to_owned())));
        // The name in the header before the bytes.
        let mut bytes = zip.clone();
        bytes[30] = b'z';
        let members = Members::open_source(bytes).unwrap();
        let error = members.get("a").unwrap().open().err().unwrap();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        assert!(error.to_string().contains("`a` has the name `z` in the header"), "{error}");
        members.get("c").unwrap().open().unwrap();
        // The name of the last member, in both places.
        let mut bytes = zip.clone();
        let last = entries(&zip)[2];
        bytes[last + 46] = b'a';
        let header = u32::from_le_bytes(bytes[last + 42..last + 46].try_into().unwrap()) as usize;
        bytes[header + 30] = b'a';
        let members = Members::open_source(bytes).unwrap();
        assert_eq!(members.duplicates().unwrap().into_iter().collect::<Vec<_>>(), ["a"]);
        for name in ["../a.b2nd", "/a.b2nd", "a//b.b2nd", "./c.b2nd"] {
            let members = Members::open_source(zipped(&[(name, b"")])).unwrap();
            assert_eq!(members.iter().next().unwrap().key(), None, "{name}");
        }
    }

    #[test]
    fn files_of_a_directory_are_listed_at_any_depth() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("x/y")).unwrap();
        std::fs::write(folder.path().join("x/y/deep"), b"deep").unwrap();
        std::fs::write(folder.path().join("top"), b"").unwrap();
        let members = Members::open(folder.path()).unwrap();
        assert!(!members.is_archive());
        let names: Vec<_> = members.iter().map(|member| member.name()).collect();
        assert_eq!(names, ["top", "x/y/deep"]);
        let member = members.get("x/y/deep").unwrap();
        assert_eq!(member.open().unwrap().read_vec_at(0, 4).unwrap(), b"deep");
        member.verify().unwrap();
        std::fs::remove_file(folder.path().join("top")).unwrap();
        let error = members.get("top").unwrap().open().err().unwrap();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        let error = Members::open(folder.path().join("none")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        let error = Members::open(folder.path().join("x/y/deep")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
    }
}
