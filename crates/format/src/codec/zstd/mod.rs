//! Zstandard frames: a stream is one frame.
//!
//! This module implements the decoder. The decoder decodes directly to the destination, so that no
//! header can cause an allocation. It rejects each stream that the C decoder rejects. Every build
//! includes the decoder, because Zstandard is the default codec. The encoder is in another crate
//! and needs the feature `zstd`.

mod bits;
mod block;
#[cfg(feature = "zstd")]
mod encoder;
mod fse;
mod huffman;
mod xxh64;

use block::{History, MAX_BLOCK};
#[cfg(feature = "zstd")]
pub(super) use encoder::Compressor;

use super::Fault;

const MAGIC: u32 = 0xfd2f_b528;
const DICTIONARY_MAGIC: [u8; 4] = [0x37, 0xa4, 0x30, 0xec];

/// The error of a block or a dictionary. The caller knows its position.
#[cold]
fn broken(expected: impl ToString, found: impl ToString) -> Fault {
    Fault::new(0, expected, found)
}

/// Returns the version of the format, if the stream has one of the early formats, which changed
/// between releases.
pub(super) fn early_version(stream: &[u8]) -> Option<&'static str> {
    match u32::from_le_bytes(*stream.first_chunk()?) {
        0x1eb5_2ffd => Some("0.1"),
        0xfd2f_b522 => Some("0.2"),
        0xfd2f_b523 => Some("0.3"),
        0xfd2f_b524 => Some("0.4"),
        0xfd2f_b525 => Some("0.5"),
        0xfd2f_b526 => Some("0.6"),
        0xfd2f_b527 => Some("0.7"),
        _ => None,
    }
}

/// The decompressor, with memory and a dictionary that are reused for the next stream.
#[derive(Default)]
pub(super) struct Decompressor {
    history: Box<History>,
    literals: Vec<u8>,
    dictionary: Option<Dictionary>,
}

/// A parsed dictionary.
pub(super) struct Dictionary {
    bytes: Vec<u8>,
    /// The identifier that frames refer to; 0 for a dictionary of raw content.
    id: u32,
    history: Box<History>,
    /// The position of the content in `bytes`.
    content: usize,
}

impl Dictionary {
    pub(super) fn read(bytes: &[u8]) -> Result<Self, Fault> {
        let mut dictionary =
            Self { bytes: bytes.to_vec(), id: 0, history: Box::default(), content: 0 };
        // Bytes that are not in the format of dictionaries are raw content.
        if bytes.len() >= 8 && bytes.starts_with(&DICTIONARY_MAGIC) {
            let (id, rest) = bytes[4..].split_at(4);
            let content = dictionary.history.read(rest)?;
            dictionary.id = id.iter().rev().fold(0, |id, &byte| id << 8 | u32::from(byte));
            dictionary.content = bytes.len() - content.len();
        }
        Ok(dictionary)
    }
}

impl Decompressor {
    /// Decompresses a frame, which must fill `out` exactly. `stream` must contain nothing else. Stops
    /// when `needed` bytes are decompressed.
    pub(super) fn decompress(
        &mut self,
        stream: &[u8],
        dictionary: Option<&[u8]>,
        needed: usize,
        out: &mut [u8],
    ) -> Result<(), Fault> {
        let needed = super::early(needed, out);
        let frame = Frame::parse(stream)?;
        if let Some(content) = frame.content.filter(|&content| content != out.len() as u64) {
            return Err(Fault::new(5, format_args!("{} bytes of data", out.len()), content));
        }
        let known = match dictionary {
            None => None,
            Some(bytes) => {
                let known = self.dictionary.take().filter(|known| known.bytes == bytes);
                Some(&*self.dictionary.insert(match known {
                    Some(known) => known,
                    None => Dictionary::read(bytes)?,
                }))
            }
        };
        let (id, dictionary) = known.map_or((0, &[][..]), |d| (d.id, &d.bytes[d.content..]));
        match known {
            Some(known) => self.history.clone_from(&known.history),
            None => self.history.clear(),
        }
        if frame.dictionary_id != 0 && frame.dictionary_id != id {
            return Err(Fault::new(4, format_args!("dictionary {id}"), frame.dictionary_id));
        }

        let max = frame.window.min(MAX_BLOCK as u64) as usize;
        let (mut read, mut at) = (frame.header_len, 0);
        loop {
            let Some(&[a, b, c]) = stream.get(read..read + 3) else {
                return Err(Fault::new(read, "a block", "the end of the stream"));
            };
            let header = u32::from_le_bytes([a, b, c, 0]);
            let (last, kind, size) = (header & 1 != 0, header >> 1 & 3, (header >> 3) as usize);
            if kind == 3 {
                return Err(Fault::new(read, "a block of type 0, 1 or 2", 3));
            }
            if size > max {
                return Err(Fault::new(read, format_args!("a block of {max} bytes or less"), size));
            }
            let start = read;
            read += 3;
            let stored = if kind == 1 { 1 } else { size };
            let block = stream.get(read..read + stored).ok_or_else(|| {
                Fault::new(read, format_args!("{stored} bytes"), stream.len() - read)
            })?;
            read += stored;
            if kind == 2 {
                at = self
                    .history
                    .decode(block, dictionary, out, (at, needed), max, &mut self.literals)
                    .map_err(|fault| Fault { offset: start, ..fault })?;
            } else {
                let data = out.len();
                let room = out.get_mut(at..at + size).ok_or_else(|| {
                    Fault::new(start, format_args!("{data} bytes of data"), "more")
                })?;
                if kind == 1 {
                    room.fill(block[0]);
                } else {
                    room.copy_from_slice(block);
                }
                at += size;
            }
            if at >= needed {
                return Ok(());
            }
            if last {
                break;
            }
        }
        if at != out.len() {
            return Err(Fault::new(read, format_args!("{} bytes of data", out.len()), at));
        }
        if frame.checksum {
            let Some(&sum) = stream[read..].first_chunk() else {
                return Err(Fault::new(read, "a checksum", "the end of the stream"));
            };
            let found = xxh64::hash(out) as u32;
            if u32::from_le_bytes(sum) != found {
                return Err(Fault::new(read, format_args!("the checksum {found:#x}"), "another"));
            }
            read += 4;
        }
        if read != stream.len() {
            return Err(Fault::new(read, "the end of the stream", "more bytes"));
        }
        Ok(())
    }
}

/// The header of a frame.
struct Frame {
    header_len: usize,
    checksum: bool,
    dictionary_id: u32,
    /// `None` if the header does not state it.
    content: Option<u64>,
    window: u64,
}

impl Frame {
    fn parse(stream: &[u8]) -> Result<Self, Fault> {
        let mut read = 0;
        let mut field = |len: usize| -> Result<u64, Fault> {
            let bytes = stream.get(read..read + len).ok_or_else(|| {
                Fault::new(read, format_args!("{len} bytes"), stream.len() - read)
            })?;
            read += len;
            Ok(bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)))
        };
        let magic = field(4)?;
        if magic != u64::from(MAGIC) {
            return Err(Fault::new(
                0,
                format_args!("the magic {MAGIC:#x}"),
                format_args!("{magic:#x}"),
            ));
        }
        let descriptor = field(1)?;
        if descriptor & 8 != 0 {
            return Err(Fault::new(4, "0 in the reserved bit", 1));
        }
        let single_segment = descriptor & 0x20 != 0;
        let window = if single_segment { None } else { Some(field(1)? as u8) };
        let dictionary_id = field([0, 1, 2, 4][(descriptor & 3) as usize])? as u32;
        let content = match (descriptor >> 6, single_segment) {
            (0, false) => None,
            (0, true) => Some(field(1)?),
            (1, _) => Some(field(2)? + 256),
            (2, _) => Some(field(4)?),
            _ => Some(field(8)?),
        };
        let window = match window {
            Some(byte) if byte >> 3 > 21 => {
                return Err(Fault::new(5, "a window under 4 GiB", format_args!("{byte:#x}")));
            }
            Some(byte) => u64::from(8 + (byte & 7)) << (7 + (byte >> 3)),
            None => content.unwrap_or_default(),
        };
        let checksum = descriptor & 4 != 0;
        Ok(Self { header_len: read, checksum, dictionary_id, content, window })
    }
}
