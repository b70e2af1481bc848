//! Files that are not Blosc2 files: their formats, and the messages about them.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::Path;

use anyhow::anyhow;
use blosc2_format::ReadAt;
use blosc2_format::file::{self, Kind};
use blosc2_store::{Members, TreeStore};

/// The name of each format, and the bytes at an offset by which it is recognised.
const FORMATS: [(&str, usize, &[u8]); 22] = [
    (NPY, 0, b"\x93NUMPY"),
    (ZIP, 0, b"PK\x03\x04"),
    (ZIP, 0, b"PK\x05\x06"),
    ("a PNG image", 0, b"\x89PNG\r\n\x1a\n"),
    ("a JPEG image", 0, b"\xff\xd8\xff"),
    ("a GIF image", 0, b"GIF8"),
    ("a TIFF image", 0, b"II*\0"),
    ("a TIFF image", 0, b"MM\0*"),
    ("an HDF5 file", 0, b"\x89HDF\r\n\x1a\n"),
    ("a netCDF file", 0, b"CDF\x01"),
    ("a netCDF file", 0, b"CDF\x02"),
    ("a netCDF file", 0, b"CDF\x05"),
    (PARQUET, 0, b"PAR1"),
    (ARROW, 0, b"ARROW1"),
    ("a gzip file", 0, b"\x1f\x8b"),
    ("a Zstandard file", 0, b"\x28\xb5\x2f\xfd"),
    ("an LZ4 file", 0, b"\x04\x22\x4d\x18"),
    ("a bzip2 file", 0, b"BZh"),
    ("an xz file", 0, b"\xfd7zXZ\0"),
    ("a PDF document", 0, b"%PDF-"),
    ("an ELF file", 0, b"\x7fELF"),
    ("a tar file", 257, b"ustar"),
];
pub(crate) const NPY: &str = "an npy file";
pub(crate) const PARQUET: &str = "a Parquet file";
pub(crate) const ARROW: &str = "an Arrow file";
pub(crate) const EMPTY: &str = "an empty file";
pub(crate) const TEXT: &str = "a text file";
const ZIP: &str = "a zip file";
/// The file that every store of Python has.
pub(crate) const INDEX: &str = "embed.b2e";
/// A zip file without `embed.b2e` and frames.
pub(crate) const OTHER_ZIP: &str = "a zip file with neither `embed.b2e` nor frames, not a store";
/// The number of bytes at the start that are read.
pub(crate) const START: u64 = 512;

/// Returns the format of a file that is not a Blosc2 file, with its article; `None` if it is unknown.
pub(crate) fn name<R: ReadAt + ?Sized>(source: &R) -> Option<&'static str> {
    let size = source.size().ok()?;
    let start = source.read_vec_at(0, size.min(START)).ok()?;
    if start.is_empty() {
        return Some(EMPTY);
    }
    let is_at = |offset: usize, magic| start.get(offset..).is_some_and(|at| at.starts_with(magic));
    let known = FORMATS.iter().find(|&&(_, offset, magic)| is_at(offset, magic));
    match known {
        Some(&(name, ..)) => Some(name),
        None => is_text(&start, size > START).then_some(TEXT),
    }
}

/// Whether bytes are UTF-8 without control characters. If they are only the start of a file, the last character may
/// be incomplete.
fn is_text(bytes: &[u8], is_cut: bool) -> bool {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) if is_cut && error.error_len().is_none() => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return false,
    };
    !text.contains(|each: char| each.is_control() && !matches!(each, '\t' | '\n' | '\r'))
}

/// The error of a command on a path that is not a Blosc2 file. `format` is the format of the file, with its article.
pub(crate) fn refused(verb: &str, path: &Path, format: Option<&str>) -> anyhow::Error {
    if path.is_dir() {
        return anyhow!(
            "cannot {verb} ({}): a directory with neither a sparse frame (`chunks.b2frame`) nor a store (`embed.b2e`, \
             or frames)",
            path.display()
        );
    }
    let format = format.map(|format| match format {
        ZIP if is_other_zip(path) => OTHER_ZIP,
        format => format,
    });
    let hint = if format == Some(NPY) { "; `blosc2 import` converts it to an array" } else { "" };
    let format = format.unwrap_or("of an unknown format");
    anyhow!("cannot {verb} ({}): not a Blosc2 file: it is {format}{hint}", path.display())
}

/// Whether the file at a path is a zip file, but not a store.
pub(crate) fn is_other_zip(path: &Path) -> bool {
    !path.is_dir() && Members::open(path).is_ok_and(|members| !is_store(&members))
}

/// Whether files are those of a store: one of Python, or frames that other programs write.
pub(crate) fn is_store(members: &Members) -> bool {
    members.get(INDEX).is_some() || members.contain_frames()
}

/// The error of importing a file: names the format of the file if it has to be an npy file and is another one. `error`
/// is the error of reading it.
pub(crate) fn unimported(path: &Path, is_raw: bool, error: &anyhow::Error) -> anyhow::Error {
    if let Some(error) = error.downcast_ref::<io::Error>().filter(|error| is_missing(error)) {
        return unopened(path, error);
    }
    let found = match error.downcast_ref() {
        Some(NotNpy(found)) => Some(found.clone()),
        None => Some(path).filter(|_| !is_raw).and_then(other_than_npy),
    };
    match found {
        Some(found) => anyhow!("cannot import ({}): not an npy file, but {found}", path.display()),
        None => anyhow!("cannot read ({}): {error}", path.display()),
    }
}

/// The format of stdin, which is not an npy file.
#[derive(Debug)]
pub(crate) struct NotNpy(pub(crate) String);

impl fmt::Display for NotNpy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not an npy file, but {}", self.0)
    }
}

impl std::error::Error for NotNpy {}

/// Returns the format of a file that is not an npy file; `None` if it is an npy file, or unknown.
fn other_than_npy(path: &Path) -> Option<String> {
    if path.is_dir() {
        return Some("a directory".to_owned());
    }
    let file = File::open(path).ok().filter(|_| path.is_file())?;
    let members = Members::open(path).ok().filter(|_| name(&file) == Some(ZIP));
    let Some(members) = members else { return other_bytes(&file) };
    if is_store(&members) {
        return Some("a store; `blosc2 copy --key KEY` copies an entry".to_owned());
    }
    Some(match members.iter().any(|member| member.name().ends_with(".npy")) {
        true => "an npz file; unpack it (`unzip`) and import its npy files".to_owned(),
        false => OTHER_ZIP.to_owned(),
    })
}

/// Returns the format of bytes that are not those of an npy file; `None` if they are, or if the format is unknown.
pub(crate) fn other_bytes<R: ReadAt + ?Sized>(bytes: &R) -> Option<String> {
    let format = name(bytes);
    if let Some(kind) = file::recognise(bytes).ok()?.filter(|_| format != Some(NPY)) {
        let kind = with_article(kind);
        return Some(format!("{kind}; `blosc2 copy` copies and recompresses it"));
    }
    format.filter(|&format| format != NPY).map(str::to_owned)
}

/// Fails if a file has another format, or is a store: it may contain a frame, which a repair would put in its place.
pub(crate) fn check_repairable(path: &Path) -> anyhow::Result<()> {
    let Some(file) = File::open(path).ok().filter(|_| path.is_file()) else { return Ok(()) };
    match name(&file) {
        Some(format) if TreeStore::is_at(path).unwrap_or(false) && !is_other_zip(path) => {
            anyhow::bail!(
                "cannot repair ({}): this is a store ({format}), not a frame",
                path.display()
            )
        }
        Some(format) => Err(refused("repair", path, Some(format))),
        None => Ok(()),
    }
}

/// The error of repairing a file, which does not suggest a repair.
pub(crate) fn unrepaired(path: &Path, error: &blosc2::Error) -> anyhow::Error {
    if let Err(error) = path.metadata() {
        return unopened(path, &error);
    }
    match file::recognise_path(path) {
        Ok(None) if TreeStore::is_at(path).unwrap_or(false) && !is_other_zip(path) => {
            anyhow!("cannot repair ({}): this is a store, not a frame", path.display())
        }
        Ok(None) => refused("repair", path, File::open(path).ok().and_then(|file| name(&file))),
        _ => anyhow!(crate::limits::without_options(error)),
    }
}

/// The error of opening a path.
pub(crate) fn unopened(path: &Path, error: &io::Error) -> anyhow::Error {
    match is_missing(error) {
        true => anyhow!("cannot open ({}): no such file", path.display()),
        false => anyhow!("cannot open ({}): {error}", path.display()),
    }
}

fn is_missing(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

/// The name of a kind with its article, for use in a sentence.
pub(crate) fn with_article(kind: Kind) -> String {
    let name = kind.to_string();
    let article = if name.starts_with('e') { "an" } else { "a" };
    format!("{article} {name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_may_end_within_a_character() {
        assert!(is_text("é".as_bytes(), false) && is_text("aé".as_bytes()[..2].as_ref(), true));
        assert!(!is_text("aé".as_bytes()[..2].as_ref(), false));
        assert!(
            !is_text(b"a\x00b", false)
                && !is_text(b"\xff\xfe", true)
                && is_text(b"a\tb\r\n", false)
        );
    }

    #[test]
    fn formats_are_named() {
        let name = |bytes: &[u8]| name(bytes);
        assert_eq!(name(b""), Some("an empty file"));
        assert_eq!(name(b"\x89PNG\r\n\x1a\nrest"), Some("a PNG image"));
        assert_eq!(name(b"PAR1\0\0PAR1"), Some("a Parquet file"));
        assert_eq!(name(&[[0; 257].as_slice(), b"ustar"].concat()), Some("a tar file"));
        assert_eq!(name(b"some text"), Some("a text file"));
        assert_eq!(name(b"\x01\x02\x03"), None);
    }
}
