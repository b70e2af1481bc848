//! The streams of a block: what is stored for each, before it is decompressed.

use super::Chunk;
use super::rules::{self, Findings, First};

/// What is stored for a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream<'a> {
    /// One byte over and over.
    Run(u8),
    /// The bytes as they are.
    Stored(&'a [u8]),
    /// The bytes as the codec left them.
    Compressed(&'a [u8]),
}

impl Chunk<'_> {
    /// Gives the streams of a block in their order; gives where the last one ends, or `None` where
    /// they break a rule. Chunks without streams give none.
    pub(crate) fn walk<'a>(
        &'a self,
        block: usize,
        findings: &mut impl Findings,
        mut each: impl FnMut(Stream<'a>),
    ) -> Option<usize> {
        let header = self.header();
        if !header.is_compressed() || self.is_lazy() {
            return Some(0);
        }
        let range = self.block_range(block);
        let bytes = self.bytes().get(..range.end)?;
        let size = self.block_size(block);
        let mut at = range.start;
        if header.variable_blocks {
            let data = bytes.get(at.checked_add(4)?..)?;
            let stream =
                if data.len() == size { Stream::Stored(data) } else { Stream::Compressed(data) };
            each(self.plausible(at, stream, size, findings)?);
            return Some(range.end);
        }
        let streams = self.streams(block);
        let len = size / streams;
        for _ in 0..streams {
            let stream = read(bytes, &mut at, len, findings)?;
            each(self.plausible(at, stream, len, findings)?);
        }
        Some(at)
    }

    /// Whether any stream was compressed by the codec: otherwise each is one repeated byte, or stored as it is.
    ///
    /// Streams that break a rule count as compressed.
    pub fn needs_codec(&self) -> bool {
        let mut needs_codec = false;
        let mut each = |stream: Stream<'_>| needs_codec |= matches!(stream, Stream::Compressed(_));
        let whole = (0..self.nblocks())
            .all(|block| self.walk(block, &mut First::default(), &mut each).is_some());
        needs_codec || !whole
    }

    /// The stream, where the codec can make `len` bytes of it: nobody need find memory for others.
    fn plausible<'a>(
        &self,
        end: usize,
        stream: Stream<'a>,
        len: usize,
        findings: &mut impl Findings,
    ) -> Option<Stream<'a>> {
        let Stream::Compressed(data) = stream else {
            return Some(stream);
        };
        let csize = data.len() as u64;
        let most = match self.header().codec_format {
            // A length grows by at most 255 for each byte.
            0 | 1 => 256 * csize + 64,
            // Two bits for a match of 258.
            3 => 1032 * csize + 64,
            // A block of 128 KiB has a header of 3 bytes.
            4 => (csize / 3 + 1) << 17,
            _ => u64::MAX,
        };
        if len as u64 <= most || self.header().instrumented {
            return Some(stream);
        }
        let start = end.saturating_sub(data.len()) as u64;
        let expected = format_args!("a stream that can hold {len} bytes");
        findings.found(&rules::RATIO, start, csize, expected, format_args!("{csize} bytes"));
        None
    }
}

/// Reads the stream at `at`, and moves past it. It stands for `len` bytes.
fn read<'a>(
    bytes: &'a [u8],
    at: &mut usize,
    len: usize,
    findings: &mut impl Findings,
) -> Option<Stream<'a>> {
    let start = *at;
    let Some((head, rest)) = bytes.get(start..).and_then(|rest| rest.split_first_chunk::<4>())
    else {
        let left = bytes.len().saturating_sub(start);
        findings.found(&rules::CSIZE, start as u64, left as u64, "4 bytes", left);
        return None;
    };
    let csize = i32::from_le_bytes(*head);
    *at = start + 4;
    if csize > 0 {
        let Some(data) = rest.get(..csize as usize) else {
            let expected = format_args!("at most {}", rest.len());
            findings.found(&rules::CSIZE, start as u64, 4, expected, csize);
            return None;
        };
        *at += data.len();
        return Some(if data.len() == len {
            Stream::Stored(data)
        } else {
            Stream::Compressed(data)
        });
    }
    if csize == 0 {
        return Some(Stream::Run(0));
    }
    let token = rest.first().copied();
    *at += 1;
    match token {
        Some(token) if token & 1 != 0 => {
            if token != 1 {
                findings.found(&rules::TOKEN_BITS, start as u64 + 4, 1, 1, token);
            }
        }
        Some(token) => {
            findings.found(&rules::TOKEN, start as u64 + 4, 1, "1, a repeated byte", token);
            return None;
        }
        None => {
            findings.found(&rules::TOKEN, start as u64 + 4, 0, "a byte", "the end");
            return None;
        }
    }
    let Ok(byte) = u8::try_from(csize.unsigned_abs()) else {
        findings.found(&rules::RUN, start as u64, 4, "-255 to -1", csize);
        return None;
    };
    Some(Stream::Run(byte))
}
