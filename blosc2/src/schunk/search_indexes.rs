//! Python's search indexes of an array, which every change of items outdates.
//!
//! Python stores the index data in files beside the array. The metalayer of the array, a msgpack map, describes them:
//! `{"indexes": {name: {"stale": bool, ...}, ...}, ...}`, for every kind of index. Queries do not use an index if its
//! field `stale` is true; `NDArray.rebuild_index` builds it again, with the parameters of the description.

use blosc2_format::chunk::Header;
use blosc2_format::frame::{Outline, SEARCH_INDEXES};

use super::metalayers::encode;

/// The maximum length of descriptions. The description of one index has about 2 KB.
const MAX_LEN: u32 = 16 << 20;

const FALSE: u8 = 0xc2;
const TRUE: u8 = 0xc3;

/// Marks all search indexes as stale, and removes the results of earlier queries. If the descriptions have another
/// form, they are removed: Python then reads all items, which is always right.
///
/// `outdated` is the stored content that the last call has left, so that it need not be decompressed again.
pub(super) fn outdate(outline: &mut Outline, outdated: &mut Vec<u8>) {
    let [indexes, queries] = SEARCH_INDEXES;
    let layers = outline.vlmetalayers();
    let stored = layers.iter().find(|layer| layer.name == indexes).map(|layer| &layer.content);
    let has_queries = layers.iter().any(|layer| layer.name == queries);
    if let Some(stored) = stored.filter(|stored| *stored != outdated) {
        let marked = marked(stored);
        let is_set = |chunk: &Vec<u8>| outline.set_vlmetalayer_chunk(indexes, chunk).is_ok();
        match marked.filter(is_set) {
            Some(chunk) => *outdated = chunk,
            // It exists.
            None => drop(outline.remove_vlmetalayer(indexes)),
        }
    }
    if has_queries {
        let _ = outline.remove_vlmetalayer(queries);
    }
}

/// Sets all fields `stale` of compressed descriptions. Returns `None` if they have another form.
fn marked(stored: &[u8]) -> Option<Vec<u8>> {
    let header = Header::parse(stored).ok()?;
    // Others can be closures of this program, which must not run during a change. Python uses Zstandard.
    let is_builtin = header.codec_format <= 4 && header.filters.iter().all(|&code| code < 32);
    (is_builtin && header.nbytes <= MAX_LEN).then_some(())?;
    let mut content = crate::decompress::<u8>(stored).ok()?;
    let flags = unset_flags(&content)?;
    if flags.is_empty() {
        return Some(stored.to_vec());
    }
    flags.into_iter().for_each(|at| content[at] = TRUE);
    encode(&content, None).ok()
}

/// Returns the positions of the fields `stale` that are false. Returns `None` if the descriptions have another form.
fn unset_flags(content: &[u8]) -> Option<Vec<usize>> {
    let mut unset = Vec::new();
    let mut cursor = Cursor { bytes: content, at: 0 };
    let mut is_described = false;
    for _ in 0..cursor.map()? {
        if cursor.text()? != b"indexes" {
            cursor.skip()?;
            continue;
        }
        is_described = true;
        for _ in 0..cursor.map()? {
            cursor.skip()?;
            let mut has_flag = false;
            for _ in 0..cursor.map()? {
                let is_flag = cursor.text()? == b"stale";
                let at = cursor.at;
                cursor.skip()?;
                if is_flag {
                    has_flag = true;
                    match content[at] {
                        FALSE => unset.push(at),
                        TRUE => {}
                        _ => return None,
                    }
                }
            }
            has_flag.then_some(())?;
        }
    }
    (is_described && cursor.at == content.len()).then_some(unset)
}

/// A position in msgpack values. All methods return `None` if the values are truncated or of another type.
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// Reads the start of a map. Returns the number of its entries.
    fn map(&mut self) -> Option<u64> {
        let is_map = matches!(self.bytes.get(self.at)?, 0x80..=0x8f | 0xde | 0xdf);
        is_map.then_some(())?;
        self.step().map(|(_, values)| values / 2)
    }

    /// Reads a value. Returns its content if it is a text, and otherwise no bytes.
    fn text(&mut self) -> Option<&'a [u8]> {
        let is_text = matches!(self.bytes.get(self.at)?, 0xa0..=0xbf | 0xd9..=0xdb);
        let (content, values) = self.step()?;
        self.skip_all(values)?;
        Some(if is_text { content } else { &[] })
    }

    fn skip(&mut self) -> Option<()> {
        self.skip_all(1)
    }

    /// Without recursion, so that deep nesting does not need a deep stack.
    fn skip_all(&mut self, mut values: u64) -> Option<()> {
        while values > 0 {
            // Each value takes at least one byte, and a length has up to 32 bits.
            values = values - 1 + self.step()?.1;
        }
        Some(())
    }

    /// Reads a value except the values in it. Returns its content and the number of the values in it.
    fn step(&mut self) -> Option<(&'a [u8], u64)> {
        let [head] = *self.take(1)? else { return None };
        let (len, values) = match head {
            0x80..=0x8f => (0, 2 * u64::from(head & 0x0f)),
            0x90..=0x9f => (0, u64::from(head & 0x0f)),
            0xa0..=0xbf => (u64::from(head & 0x1f), 0),
            // Bytes, extensions and texts with their lengths. An extension has one more byte, its type.
            0xc4..=0xc6 => (self.number(1 << (head - 0xc4))?, 0),
            0xc7..=0xc9 => (self.number(1 << (head - 0xc7))? + 1, 0),
            0xd9..=0xdb => (self.number(1 << (head - 0xd9))?, 0),
            0xca | 0xce | 0xd2 => (4, 0),
            0xcb | 0xcf | 0xd3 => (8, 0),
            0xcc | 0xd0 => (1, 0),
            0xcd | 0xd1 => (2, 0),
            0xd4..=0xd8 => ((1 << (head - 0xd4)) + 1, 0),
            0xdc | 0xdd => (0, self.number(2 << (head - 0xdc))?),
            0xde | 0xdf => (0, 2 * self.number(2 << (head - 0xde))?),
            0xc1 => return None,
            _ => (0, 0),
        };
        Some((self.take(usize::try_from(len).ok()?)?, values))
    }

    /// Reads a big-endian number of `len` bytes.
    fn number(&mut self, len: usize) -> Option<u64> {
        Some(self.take(len)?.iter().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }

    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let taken = self.bytes.get(self.at..)?.get(..len)?;
        self.at += len;
        Some(taken)
    }
}
