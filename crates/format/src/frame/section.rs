//! Sections of metalayers: uncompressed in the header, compressed in the trailer.
//!
//! A section is a msgpack array with three elements: the size of the index; the index, which is a
//! map from names to the offsets of the contents; and the array of the contents.

use std::collections::BTreeSet;

use super::rules;
use crate::Error;
use crate::report::Checker;

/// The maximum number of fixed-length metalayers of a frame, a limit of C-Blosc2.
///
/// This is also the maximum number of variable-length metalayers that a writer can add. For the
/// maximum number in a frame that is read, see [`MAX_VLMETALAYERS`].
pub const MAX_METALAYERS: usize = 16;
/// The maximum number of variable-length metalayers when a frame is read, a limit of C-Blosc2.
///
/// C-Blosc2 and this crate write at most [`MAX_METALAYERS`] variable-length metalayers.
pub const MAX_VLMETALAYERS: usize = 8192;
/// The maximum length of the name of a metalayer, in bytes.
pub const MAX_NAME_LEN: usize = 31;

/// A metalayer, and the position of its content from the start of the parsed bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) at: usize,
    pub(crate) len: usize,
}

/// The position of a section, and the bases of its offsets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// The position of its first byte.
    pub(crate) at: usize,
    /// The position that the size of the index is relative to.
    pub(crate) index_from: usize,
    /// The maximum number of metalayers.
    pub(crate) max: usize,
}

/// Reads the section at `place` of `bytes`; its offsets are relative to the start of `bytes`.
///
/// Returns the metalayers with readable contents and the end of the section, or `None` if the end
/// cannot be determined.
pub(crate) fn read(
    bytes: &[u8],
    place: Place,
    checker: &mut Checker<'_>,
) -> Option<(Vec<Entry>, usize)> {
    let mut cursor = Cursor { bytes, at: place.at };
    cursor.marker(0x93, checker)?;
    cursor.marker(0xcd, checker)?;
    let size_at = cursor.at;
    let index_size = u16::from_be_bytes(cursor.take(checker)?);
    cursor.marker(0xde, checker)?;
    let count_at = cursor.at as u64;
    let count = u16::from_be_bytes(cursor.take(checker)?);
    if usize::from(count) > place.max {
        let expected = format_args!("at most {}", place.max);
        checker.found(&rules::META_COUNT, count_at, 2, expected, count);
        return None;
    }
    let mut names = Vec::new();
    for _ in 0..count {
        names.push(cursor.name(checker)?);
    }
    let found = cursor.at - place.index_from;
    if found != usize::from(index_size) {
        checker.found(&rules::META_INDEX, size_at as u64, 2, found, index_size);
    }
    let mut seen = BTreeSet::new();
    for (name, at, _) in &names {
        if !seen.insert(name) {
            let found = format_args!("`{}` twice", name.escape_default()).to_string();
            checker.found(&rules::META_TWICE, *at as u64, 4, "unique names", found);
        }
    }
    cursor.marker(0xdc, checker)?;
    let count_at = cursor.at as u64;
    let contents = u16::from_be_bytes(cursor.take(checker)?);
    if contents != count {
        checker.found(&rules::META_COUNT, count_at, 2, count, contents);
        return None;
    }
    let mut entries = Vec::new();
    for (name, at, offset) in names {
        let start = cursor.at;
        if i64::from(offset) != start as i64 {
            checker.found(&rules::META_OFFSET, at as u64, 4, start, offset);
        }
        cursor.marker(0xc6, checker)?;
        let len = u32::from_be_bytes(cursor.take(checker)?) as usize;
        let at = cursor.at;
        if cursor.bytes.len() - at < len {
            let left = cursor.bytes.len() - at;
            let expected = format_args!("at most {left} bytes of content");
            checker.found(&rules::META, start as u64 + 1, 4, expected, len);
            return None;
        }
        cursor.at += len;
        entries.push(Entry { name, at, len });
    }
    Some((entries, cursor.at))
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    fn take<const N: usize>(&mut self, checker: &mut Checker<'_>) -> Option<[u8; N]> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let Some(taken) = rest.first_chunk::<N>() else {
            let left = rest.len() as u64;
            checker.found(&rules::META, self.at as u64, left, format_args!("{N} bytes"), left);
            return None;
        };
        self.at += N;
        Some(*taken)
    }

    /// Skips a marker. Reports a wrong marker, which has no further effect.
    fn marker(&mut self, marker: u8, checker: &mut Checker<'_>) -> Option<()> {
        let at = self.at as u64;
        let [found] = self.take(checker)?;
        if found != marker {
            checker.found(&rules::MARKER, at, 1, Hex(marker), Hex(found));
        }
        Some(())
    }

    /// Reads a name. Returns the name, and the position and the value of the offset of its content.
    fn name(&mut self, checker: &mut Checker<'_>) -> Option<(String, usize, i32)> {
        let at = self.at;
        let [marker] = self.take(checker)?;
        if marker & 0xe0 != 0xa0 {
            let expected = "0xa0 to 0xbf, a name of up to 31 bytes";
            checker.found(&rules::MARKER, at as u64, 1, expected, Hex(marker));
            return None;
        }
        let len = usize::from(marker & 0x1f);
        let Some(name) = self.bytes.get(self.at..).and_then(|rest| rest.get(..len)) else {
            let left = self.bytes.len() - self.at;
            checker.found(&rules::META, at as u64, 1, format_args!("{len} bytes"), left);
            return None;
        };
        self.at += len;
        if name.is_empty() || name.contains(&0) || std::str::from_utf8(name).is_err() {
            let found = name.escape_ascii();
            checker.found(&rules::META_NAME, at as u64 + 1, len as u64, "text", found);
        }
        let mut name = String::from_utf8_lossy(name).into_owned();
        // A replacement character is longer than the byte that it replaces, and the name is written
        // again when the frame changes.
        while name.len() > MAX_NAME_LEN {
            name.pop();
        }
        self.marker(0xd2, checker)?;
        let offset_at = self.at;
        let offset = i32::from_be_bytes(self.take(checker)?);
        Some((name, offset_at, offset))
    }
}

/// A byte in the usual notation of markers.
pub(crate) struct Hex(pub(crate) u8);

impl std::fmt::Display for Hex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#04x}", self.0)
    }
}

/// Appends a section with these metalayers to `out`. Offsets are relative to the start of `out`.
/// The size of the index is relative to the byte at `lead`.
pub(crate) fn write(out: &mut Vec<u8>, lead: usize, metalayers: &[(&str, &[u8])]) {
    // Names and numbers of metalayers were checked when they were added.
    let count = (metalayers.len() as u16).to_be_bytes();
    let index_from = out.len() + lead;
    out.extend([0x93, 0xcd, 0, 0, 0xde]);
    let size_at = out.len() - 3;
    out.extend(count);
    let index: usize = metalayers.iter().map(|(name, _)| 1 + name.len() + 5).sum();
    let mut content_at = out.len() + index + 3;
    for (name, content) in metalayers {
        out.push(0xa0 + name.len() as u8);
        out.extend(name.as_bytes());
        out.push(0xd2);
        out.extend((content_at as u32).to_be_bytes());
        content_at += 5 + content.len();
    }
    let size = (out.len() - index_from) as u16;
    out[size_at..size_at + 2].copy_from_slice(&size.to_be_bytes());
    out.push(0xdc);
    out.extend(count);
    for (_, content) in metalayers {
        out.push(0xc6);
        out.extend((content.len() as u32).to_be_bytes());
        out.extend(*content);
    }
}

/// Checks that a metalayer can be added to the existing metalayers.
pub(crate) fn check_new<'a>(
    name: &str,
    content: &[u8],
    others: impl ExactSizeIterator<Item = (&'a str, &'a [u8])>,
) -> Result<(), Error> {
    let wrong = |what: String| Err(Error::Argument(what));
    if name.is_empty() || name.len() > MAX_NAME_LEN || name.contains('\0') {
        let name = name.escape_debug();
        return wrong(format!(
            "the name of a metalayer has 1 to {MAX_NAME_LEN} bytes: found `{name}`"
        ));
    }
    if others.len() >= MAX_METALAYERS {
        return wrong(format!("a frame has at most {MAX_METALAYERS} metalayers of each kind"));
    }
    let mut len = content.len() as u64;
    for (other, content) in others {
        if name == other {
            return wrong(format!("there is already a metalayer `{}`", name.escape_debug()));
        }
        len += content.len() as u64;
    }
    check_total(len)
}

/// Checks the total length of the contents of a section.
pub(crate) fn check_total(len: u64) -> Result<(), Error> {
    // Offsets of contents, and the length of header or trailer, are signed 32-bit numbers.
    if len > i32::MAX as u64 - 4096 {
        let what = format!("{len} bytes of metalayers: expected less than 2 GiB in total");
        return Err(Error::Argument(what));
    }
    Ok(())
}
