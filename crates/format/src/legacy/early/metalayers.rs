//! The metalayers of a legacy frame: a map of their positions, then their contents.

use std::collections::BTreeSet;

use super::header::hex;
use super::rules::Rules;
use crate::frame::Metalayer;
use crate::report::Checker;
use crate::{Error, Limit, Limits};

/// The maximum length of a name, in bytes: that of a msgpack fixstr.
pub(crate) const MAX_NAME_LEN: usize = 31;

/// The rest of the section. A step that fails adds a finding.
struct Cursor<'a, 'c, 'r> {
    section: &'a [u8],
    /// The position of the section in the frame.
    start: u64,
    at: usize,
    rules: &'static Rules,
    checker: &'c mut Checker<'r>,
}

impl<'a> Cursor<'a, '_, '_> {
    fn position(&self) -> u64 {
        self.start + self.at as u64
    }

    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let rest = self.section.get(self.at..).unwrap_or_default();
        let Some(bytes) = rest.get(..len) else {
            let expected = format_args!("{len} bytes more in the header");
            let at = self.position();
            self.checker.found(&self.rules.metalayers, at, rest.len() as u64, expected, rest.len());
            return None;
        };
        self.at += len;
        Some(bytes)
    }

    /// Returns whether a content starts after `len` bytes.
    fn follows(&self, len: u64) -> bool {
        let at = usize::try_from(len).ok().and_then(|len| self.at.checked_add(len));
        at.and_then(|at| self.section.get(at)) == Some(&0xc6)
    }

    fn number<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.first_chunk().copied()
    }

    fn marker(&mut self, marker: u8) -> Option<()> {
        let at = self.position();
        let found = self.take(1)?;
        if found != [marker] {
            self.checker.found(&self.rules.marker, at, 1, hex(&[marker]), hex(found));
        }
        Some(())
    }

    fn count(&mut self, marker: u8) -> Option<usize> {
        self.marker(marker)?;
        self.number().map(|count| usize::from(u16::from_be_bytes(count)))
    }

    /// Reads a name, and the position of its content in the map.
    fn entry(&mut self) -> Option<(String, u64)> {
        let at = self.position();
        let &[marker] = self.take(1)? else { return None };
        let len = usize::from(marker & 0x1f);
        if marker & 0xe0 != 0xa0 {
            self.checker.found(&self.rules.marker, at, 1, "0xa0 to 0xbf", hex(&[marker]));
        }
        let name = self.take(len)?;
        let text = std::str::from_utf8(name).unwrap_or_default();
        if text.is_empty() {
            let found = format!("`{}`", name.escape_ascii());
            let rule = &self.rules.metalayer_name;
            self.checker.found(rule, at + 1, len as u64, "at least one character, in UTF-8", found);
        }
        self.marker(0xd2)?;
        Some((text.to_owned(), u64::from(u32::from_be_bytes(self.number()?))))
    }
}

/// Checks and reads the section at `start` of the frame. Returns the metalayers and the length of
/// the section, or `None` if its end cannot be determined.
pub(crate) fn check(
    section: &[u8],
    start: u64,
    rules: &'static Rules,
    limits: &Limits,
    checker: &mut Checker<'_>,
) -> Result<Option<(Vec<Metalayer>, u64)>, Error> {
    let mut cursor = Cursor { section, start, at: 0, rules, checker };
    let Some((entries, map_len, given_len)) = map(&mut cursor, limits)? else { return Ok(None) };
    if given_len != map_len {
        let rule = &rules.metalayer_map_len;
        cursor.checker.found(rule, start + 2, 2, map_len, given_len);
    }
    let Some(layers) = contents(&mut cursor, entries) else { return Ok(None) };
    Ok(Some((layers, cursor.at as u64)))
}

type Entry = (String, u64, u64);

/// Reads the entries of the map. Returns the entries with their positions, the length of the map,
/// and the length that the section states.
fn map(
    cursor: &mut Cursor<'_, '_, '_>,
    limits: &Limits,
) -> Result<Option<(Vec<Entry>, usize, usize)>, Error> {
    let read = |cursor: &mut Cursor<'_, '_, '_>| {
        cursor.marker(0x93)?;
        let given_len = cursor.count(0xcd)?;
        Some((given_len, cursor.count(0xde)?))
    };
    let Some((given_len, count)) = read(cursor) else { return Ok(None) };
    Limits::allow(Limit::Metalayers, "metalayers", count as u64, limits.metalayers as u64)?;
    let (mut entries, mut names) = (Vec::new(), BTreeSet::new());
    for _ in 0..count {
        let at = cursor.position();
        let Some((name, offset)) = cursor.entry() else { return Ok(None) };
        if !name.is_empty() && !names.insert(name.clone()) {
            let found = format!("`{}` twice", name.escape_default());
            let len = cursor.position() - at;
            cursor.checker.found(&cursor.rules.metalayer_name, at, len, "a unique name", found);
        }
        entries.push((name, offset, cursor.position() - 4));
    }
    Ok(Some((entries, cursor.at, given_len)))
}

fn contents(cursor: &mut Cursor<'_, '_, '_>, entries: Vec<Entry>) -> Option<Vec<Metalayer>> {
    let at = cursor.position() + 1;
    let count = cursor.count(0xdc)?;
    if count != entries.len() {
        let expected = format_args!("{} contents, the number of names", entries.len());
        cursor.checker.found(&cursor.rules.metalayers, at, 2, expected, count);
        return None;
    }
    let mut layers = Vec::new();
    let next: Vec<_> = entries.iter().skip(1).map(|(_, offset, _)| Some(*offset)).collect();
    for ((name, offset, offset_at), next) in entries.into_iter().zip(next.into_iter().chain([None]))
    {
        let at = cursor.position();
        if offset != at {
            cursor.checker.found(&cursor.rules.metalayer_offset, offset_at, 4, at, offset);
        }
        cursor.marker(0xc6)?;
        let mut len = u64::from(u32::from_be_bytes(cursor.number()?));
        // The position of the next content also determines the length.
        let until_next = next.and_then(|next| next.checked_sub(cursor.position()));
        if let Some(found) = until_next.filter(|&found| found != len && cursor.follows(found)) {
            let expected = format_args!("{found}, up to the next content");
            cursor.checker.found(&cursor.rules.metalayers, at + 1, 4, expected, len);
            len = found;
        }
        let content = cursor.take(usize::try_from(len).unwrap_or(usize::MAX))?.to_vec();
        layers.push(Metalayer { name, content });
    }
    Some(layers)
}

/// Returns the section of these metalayers at `start` of a frame.
pub(crate) fn to_bytes(layers: &[Metalayer], start: usize) -> Result<Vec<u8>, Error> {
    let too_many = || Error::Argument("the map of the metalayers has more than 65535 bytes".into());
    let count = u16::try_from(layers.len()).map_err(|_| too_many())?.to_be_bytes();
    let map_len = 7 + layers.iter().map(|layer| 6 + layer.name.len()).sum::<usize>();
    let given_len = u16::try_from(map_len).map_err(|_| too_many())?;

    let mut section = vec![0x93, 0xcd];
    section.extend(given_len.to_be_bytes());
    section.push(0xde);
    section.extend(count);
    let mut offset = start + map_len + 3;
    for Metalayer { name, content } in layers {
        let len = name.len();
        if !(1..=MAX_NAME_LEN).contains(&len) {
            let why = format!("metalayer name of {len} bytes; it can have 1 to {MAX_NAME_LEN}");
            return Err(Error::Argument(why));
        }
        section.push(0xa0 | len as u8);
        section.extend(name.as_bytes());
        section.push(0xd2);
        let too_long = || Error::Argument("the metalayers have more than 2 GiB".into());
        section.extend(i32::try_from(offset).map_err(|_| too_long())?.to_be_bytes());
        offset = offset.saturating_add(5).saturating_add(content.len());
    }
    section.push(0xdc);
    section.extend(count);
    for Metalayer { content, .. } in layers {
        section.push(0xc6);
        section.extend((content.len() as u32).to_be_bytes());
        section.extend(content);
    }
    Ok(section)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::early::Layout;
    use crate::report::Report;

    fn checked(section: &[u8]) -> (Option<(Vec<Metalayer>, u64)>, Report) {
        let mut report = Report::new();
        let rules = Rules::of(Layout::Early);
        let limits = Limits::default();
        let layers = check(section, 64, rules, &limits, &mut Checker::new(&mut report)).unwrap();
        (layers, report)
    }

    fn layer(name: &str, content: &[u8]) -> Metalayer {
        Metalayer { name: name.to_owned(), content: content.to_vec() }
    }

    fn sample() -> (Vec<Metalayer>, Vec<u8>) {
        let layers = vec![layer("one", b"first"), layer("x", b"")];
        let section = to_bytes(&layers, 64).unwrap();
        (layers, section)
    }

    #[test]
    fn layers_survive_writing_and_reading() {
        let (layers, section) = sample();
        let (found, report) = checked(&section);
        assert_eq!(report, Report::new());
        assert_eq!(found, Some((layers, section.len() as u64)));
        let empty = to_bytes(&[], 64).unwrap();
        assert_eq!(empty, [0x93, 0xcd, 0, 7, 0xde, 0, 0, 0xdc, 0, 0]);
        assert_eq!(checked(&empty).0, Some((Vec::new(), 10)));
    }

    #[test]
    fn each_wrong_byte_is_found() {
        let (_, section) = sample();
        // Only the bytes of the names and the contents are not covered by a rule.
        let free = [8..11, 17..18, 31..36];
        for at in 0..section.len() {
            let mut wrong = section.clone();
            wrong[at] ^= 0x10;
            let (_, report) = checked(&wrong);
            let may = free.iter().any(|range| range.contains(&at));
            assert_eq!(report.findings.is_empty(), may, "byte {at}: {:?}", report.findings);
        }
        for len in 0..section.len() {
            assert!(!checked(&section[..len]).1.is_good(), "{len} bytes");
        }
    }

    #[test]
    fn what_cannot_be_written_is_refused() {
        for name in ["", "a name of over thirty-one characters"] {
            assert!(to_bytes(&[layer(name, b"")], 64).is_err());
        }
        let many = (0..3000).map(|i| layer(&format!("a metalayer named {i}"), b""));
        assert!(to_bytes(&many.collect::<Vec<_>>(), 64).is_err());
    }

    #[test]
    fn a_name_twice_is_found() {
        let twice = vec![layer("a", &[1]), layer("a", &[2])];
        let (_, report) = checked(&to_bytes(&twice, 64).unwrap());
        assert_eq!(report.findings[0].rule.id, "early.metalayer_name");
    }
}
