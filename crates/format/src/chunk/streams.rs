//! The streams of a block as stored, before decompression.

use super::rules::{self, Findings, First};
use super::{Chunk, Header};

/// A stored stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream<'a> {
    /// One repeated byte.
    Run(u8),
    /// The uncompressed bytes.
    Stored(&'a [u8]),
    /// The bytes compressed by the codec.
    Compressed(&'a [u8]),
}

impl Chunk<'_> {
    /// Calls the closure for each stream of a block in order. Returns the end of the last stream,
    /// or `None` if a stream violates a rule.
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
        let at = range.start;
        if header.variable_blocks {
            let data = bytes.get(at.checked_add(4)?..)?;
            let stream =
                if data.len() == size { Stream::Stored(data) } else { Stream::Compressed(data) };
            each(plausible(header, at, stream, size, findings)?);
            return Some(range.end);
        }
        let streams = self.streams(block);
        read_all(header, bytes, at, (streams, size / streams), findings, |stream| {
            each(stream);
            true
        })
    }

    /// Returns whether the codec compressed at least one stream. Each other stream is stored
    /// uncompressed, or is a run of one repeated byte.
    ///
    /// A stream that violates a rule counts as compressed. Returns `false` for a lazy chunk, which
    /// does not contain its streams.
    pub fn needs_codec(&self) -> bool {
        let mut needs_codec = false;
        let mut each = |stream: Stream<'_>| needs_codec |= matches!(stream, Stream::Compressed(_));
        let whole = (0..self.nblocks())
            .all(|block| self.walk(block, &mut First::default(), &mut each).is_some());
        needs_codec || !whole
    }
}

/// Calls `each` with each stream of a block of `len` bytes, and with the decoded size of the stream. `block` is the index
/// of the block. The chunk must have passed [`PartialChunk::new`](super::PartialChunk::new).
///
/// Returns `false` if the start of the block or a stream violates a rule, or `each` returns `false`.
/// [`PartialDecoder`](super::PartialDecoder) describes the errors.
pub fn each_stream<'a>(
    header: &Header,
    bytes: &'a [u8],
    (block, len): (usize, usize),
    mut each: impl FnMut(Stream<'a>, usize) -> bool,
) -> bool {
    let entry = header.header_len() + 4 * block;
    let start = bytes.get(entry..).and_then(|start| start.first_chunk::<4>());
    let Some(Ok(at)) = start.map(|start| usize::try_from(i32::from_le_bytes(*start))) else {
        return false;
    };
    let is_split = header.split && len == header.block_len() as usize;
    let streams = if is_split { usize::from(header.typesize) } else { 1 };
    // Divisions take longer than the rest of this function.
    let size =
        if streams.is_power_of_two() { len >> streams.trailing_zeros() } else { len / streams };
    let nblocks = if block == 0 && len == header.nbytes as usize { 1 } else { header.nblocks() };
    let mut findings = First::default();
    let each = |stream| each(stream, size);
    at >= header.header_len() + 4 * nblocks as usize
        && size * streams == len
        && read_all(header, bytes, at, (streams, size), &mut findings, each).is_some()
}

/// Calls `each` with `count` streams, which follow each other from the offset `at` on and decode to `len` bytes each.
/// Returns the end of the last stream, or `None` if a stream violates a rule or `each` returns `false`.
fn read_all<'a>(
    header: &Header,
    bytes: &'a [u8],
    mut at: usize,
    (count, len): (usize, usize),
    findings: &mut impl Findings,
    mut each: impl FnMut(Stream<'a>) -> bool,
) -> Option<usize> {
    for _ in 0..count {
        let stream = read(bytes, &mut at, len, findings)?;
        if !each(plausible(header, at, stream, len, findings)?) {
            return None;
        }
    }
    Some(at)
}

/// Returns the stream if the codec can decode it to `len` bytes. This check prevents the allocation of memory for invalid
/// streams.
#[inline(always)]
fn plausible<'a>(
    header: &Header,
    end: usize,
    stream: Stream<'a>,
    len: usize,
    findings: &mut impl Findings,
) -> Option<Stream<'a>> {
    let Stream::Compressed(data) = stream else {
        return Some(stream);
    };
    let csize = data.len() as u64;
    let most = match header.codec_format {
        // A length grows by at most 255 per byte.
        0 | 1 => 256 * csize + 64,
        // A match of 258 bytes takes at least two bits.
        3 => 1032 * csize + 64,
        // A block of 128 KiB has a header of 3 bytes.
        4 => (csize / 3 + 1) << 17,
        _ => u64::MAX,
    };
    if len as u64 <= most || header.instrumented {
        return Some(stream);
    }
    let start = end.saturating_sub(data.len()) as u64;
    let expected = format_args!("a stream that can hold {len} bytes");
    findings.found(&rules::RATIO, start, csize, expected, format_args!("{csize} bytes"));
    None
}

/// Reads the stream at `at` and advances `at` past it. The stream decodes to `len` bytes.
#[inline(always)]
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
