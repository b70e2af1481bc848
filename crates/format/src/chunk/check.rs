//! The check of a chunk.

use super::header::RawHeader;
use super::rules::{self, First};
use super::streams::Stream;
use super::{Chunk, Decoder, Header};
use crate::codec;
use crate::report::{Checker, Options, Part, Report};
use crate::{Error, Limit, Limits};

impl Chunk<'_> {
    /// Checks the chunk at the start of `bytes`. The report contains the violations of the format,
    /// and a warning if other bytes follow the chunk. Parts that depend on an invalid part are not
    /// checked.
    ///
    /// ```
    /// use blosc2_format::Options;
    /// use blosc2_format::chunk::Chunk;
    ///
    /// // Stored data of six bytes in a chunk that ends after five.
    /// let mut bytes = vec![2, 1, 0b10, 1, 6, 0, 0, 0, 6, 0, 0, 0, 22, 0, 0, 0];
    /// bytes.extend(b"blosc");
    /// let report = Chunk::check(&bytes, &Options::default());
    /// assert_eq!(report.findings[0].rule.id, "chunk.truncated");
    /// assert_eq!(report.findings[0].offset, 12);
    /// ```
    pub fn check(bytes: &[u8], options: &Options) -> Report {
        let mut report = Report::new();
        check(bytes, options, &mut Checker::new(&mut report).within(Part::Chunk(0), 0));
        report
    }
}

/// Checks the chunk at the start of `bytes`, and reports other bytes after it. Returns the number
/// of decoded bytes.
pub(crate) fn check(bytes: &[u8], options: &Options, checker: &mut Checker<'_>) -> u64 {
    check_after(0, bytes, options, checker)
}

/// Like [`check`]. Does not report a gap of `known` bytes before the first block.
pub(crate) fn check_after(
    known: usize,
    bytes: &[u8],
    options: &Options,
    checker: &mut Checker<'_>,
) -> u64 {
    let errors = checker.errors();
    let raw = match RawHeader::read(bytes) {
        Ok(raw) => raw,
        Err(error) => {
            let rule = match error.what == rules::HEADER.what {
                true => &rules::HEADER,
                false => &rules::EXTENDED_HEADER,
            };
            checker.found(rule, error.offset, bytes.len() as u64, error.expected, error.found);
            return 0;
        }
    };
    let header = raw.header();
    raw.check(&header, checker);
    if checker.errors() > errors {
        return 0;
    }
    remarks(&raw, &header, checker);
    let Some(chunk) = Chunk::lay_out(bytes, header, &options.limits, checker) else {
        return 0;
    };
    if checker.errors() > errors {
        return 0;
    }
    let rest = bytes.len() - chunk.bytes().len();
    if rest > 0 {
        let end = chunk.bytes().len() as u64;
        checker.found(&rules::TRAILING, end, rest as u64, "none", rest);
    }
    blocks(known, &chunk, checker);
    if checker.errors() > errors || !options.content {
        return 0;
    }
    content(&chunk, options, checker)
}

/// Reports faults that do not prevent reading, and features that are not supported.
fn remarks(raw: &RawHeader, header: &Header, checker: &mut Checker<'_>) {
    let version = header.version;
    if version > super::MAX_VERSION {
        checker.found(&rules::OTHER_VERSION, 0, 1, "1 to 6", version);
    } else if header.variable_blocks != (version == 6) {
        let expected =
            if header.variable_blocks { "6 with variable-length blocks" } else { "5 or less" };
        checker.found(&rules::OTHER_VERSION, 0, 1, expected, version);
    } else if header.extended && version < 3 {
        checker.found(&rules::OTHER_VERSION, 0, 1, "3 or more with a header of 32 bytes", version);
    }
    if header.codec_format < 6 && header.codec_version != 1 {
        checker.found(&rules::CODEC_VERSION, 1, 1, 1, header.codec_version);
    }
    if !header.variable_blocks && header.blocksize > header.nbytes.max(1) {
        let expected = format_args!("at most the {} bytes of the data", header.nbytes);
        checker.found(&rules::LARGE_BLOCKSIZE, 8, 4, expected, header.blocksize);
    }
    if let Some(extension) = raw.extension {
        if extension.flags2 & !1 != 0 {
            let found = format_args!("{:#04x}", extension.flags2);
            checker.found(&rules::RESERVED, 30, 1, "0 in bits 1 to 7", found);
        }
        if extension.flags & 0b100 != 0 {
            let found = format_args!("{:#04x}", extension.flags);
            checker.found(&rules::RESERVED, 31, 1, "0 in bit 2", found);
        }
    }
    if header.special.is_some() && !matches!(header.special, Some(super::Special::Value)) {
        let expected = super::EXTENDED_HEADER_LEN as u32;
        if header.cbytes != expected && !header.memcpyed {
            checker.found(&rules::SPECIAL_CBYTES, 12, 4, expected, header.cbytes);
        }
    }
    if !header.is_compressed() {
        return;
    }
    if header.instrumented {
        checker.found(&rules::INSTRUMENTED, 31, 1, "data", "measurements of the codec");
    }
    codec(header, checker);
    if header.dictionary && !matches!(header.codec_format, 1 | 4) {
        let expected = "none with this codec";
        checker.found(&rules::UNUSED_DICTIONARY, 31, 1, expected, "a dictionary");
    }
    for (slot, &filter) in header.filters.iter().enumerate() {
        let at = 16 + slot as u64;
        match filter {
            0..=4 | 34..=36 => {}
            5..=31 => checker.found(&rules::FILTER, at, 1, "0 to 4, or 32 and more", filter),
            other => checker.found(&rules::PLUGIN_FILTER, at, 1, "a supported filter", other),
        }
    }
    if !header.is_delta_undone() {
        let found = "delta several times, or between other filters";
        checker.found(&rules::DELTA_PLACE, 16, 6, "delta once, before all other filters", found);
    }
    let delta = header.filters.contains(&3);
    if header.extended && delta != (raw.flags & 0b1000 != 0) {
        let expected = if delta { "set" } else { "not set" };
        checker.found(&rules::DELTA_FLAG, 2, 1, expected, format_args!("{:#04x}", raw.flags));
    }
}

fn codec(header: &Header, checker: &mut Checker<'_>) {
    let user = header.user_codec;
    let known: &[u8] = match header.codec_format {
        0 => &[0],
        1 => &[0, 1, 2],
        3 => &[0, 4],
        4 => &[0, 5],
        2 => {
            checker.found(&rules::PLUGIN_CODEC, 2, 1, "a supported codec", "Snappy");
            return;
        }
        5 if header.version < 5 => {
            checker.found(&rules::PLUGIN_CODEC, 2, 1, "a supported codec", "Lizard");
            return;
        }
        6 if user >= 32 => {
            let found = codec::name(user);
            checker.found(&rules::PLUGIN_CODEC, 22, 1, "a supported codec", found);
            return;
        }
        6 => {
            checker.found(&rules::CODEC, 22, 1, "32 or more with format 6", user);
            return;
        }
        other => {
            checker.found(&rules::CODEC, 2, 1, "format 0, 1, 2, 3, 4 or 6", other);
            return;
        }
    };
    // Versions before 2.0 did not set the field.
    if header.extended && !known.contains(&user) {
        let format = header.codec_format;
        let expected = format_args!("the code of a codec with format {format}");
        checker.found(&rules::USER_CODEC, 22, 1, expected, user);
    }
}

/// Walks the streams of every block, and checks the bytes between the blocks. `known` bytes may precede
/// the first block.
fn blocks(known: usize, chunk: &Chunk<'_>, checker: &mut Checker<'_>) {
    if !chunk.header().is_compressed() || chunk.is_lazy() {
        return;
    }
    let mut ranges = Vec::with_capacity(chunk.nblocks());
    for block in 0..chunk.nblocks() {
        let start = chunk.block_range(block).start;
        if let Some(end) = chunk.walk(block, checker, |_| ()) {
            // A chunk is smaller than 4 GiB; there can be many blocks.
            ranges.push((start as u32, end as u32, block as u32));
        }
    }
    if ranges.len() < chunk.nblocks() {
        return;
    }
    ranges.sort_unstable();
    let mut last = (chunk.data() + known) as u32;
    // In an old chunk that was split against the rule, the bytes after the first stream of each
    // block are unused.
    let gap = if chunk.is_split_unknown() { &rules::OLD_SPLIT } else { &rules::GAP };
    for (start, end, block) in ranges {
        if start < last {
            let expected = format_args!("block {block} to start at {last} or after");
            checker.found(
                &rules::OVERLAP,
                start.into(),
                (last.min(end) - start).into(),
                expected,
                start,
            );
        } else if start > last {
            checker.found(gap, last.into(), (start - last).into(), "none", start - last);
        }
        last = last.max(end);
    }
    let end = chunk.header().cbytes;
    if end > last {
        checker.found(gap, last.into(), (end - last).into(), "none", end - last);
    }
}

fn content(chunk: &Chunk<'_>, options: &Options, checker: &mut Checker<'_>) -> u64 {
    let header = chunk.header();
    if chunk.is_lazy() {
        let expected = format_args!("{} bytes of data", header.nbytes);
        checker.found(&rules::UNSUPPORTED, 31, 1, expected, super::decode::LAZY);
        return 0;
    }
    if !header.is_compressed() {
        return header.nbytes.into();
    }
    // C-Blosc2 reads the dictionary first, and fails even if no stream uses it.
    if let (Some(dictionary), Ok(codec)) = (chunk.dictionary(), super::decode::codec_of(chunk))
        && let Err(fault) = codec::check_dictionary(codec, dictionary)
    {
        let start = chunk.data() - dictionary.len();
        let len = dictionary.len() as u64;
        checker.found(&rules::DICTIONARY_CONTENT, start as u64, len, fault.expected, fault.found);
        return 0;
    }
    let skips = super::decode::pipeline(chunk).is_ok();
    let mut decoder = Decoder::default();
    let mut decoded = 0;
    let mut out = Vec::new();
    for block in 0..chunk.nblocks() {
        let len = chunk.block_size(block);
        let start = chunk.block_range(block).start as u64;
        let allowed =
            Limits::allow(Limit::Memory, "bytes of a block", len as u64, options.limits.memory)
                .and_then(|_| {
                    let all = decoded + len as u64;
                    Limits::allow(
                        Limit::TotalBytes,
                        "bytes decoded in total",
                        all,
                        options.limits.total_bytes,
                    )
                });
        // Decoding runs of one byte cannot fail. It is skipped, because a short chunk of runs can
        // represent much data.
        if allowed.is_ok() && skips && !has_compressed(chunk, block) {
            continue;
        }
        let outcome = allowed.and_then(|_| {
            out.resize(len, 0);
            decoder.decode_block(chunk, block, &mut out)
        });
        match outcome {
            Ok(()) => decoded += len as u64,
            Err(error) => {
                let end = chunk.walk(block, &mut First::default(), |_| ());
                let size = end.map_or(0, |end| (end as u64).saturating_sub(start));
                let expected = format_args!("{len} bytes of block {block}");
                match error {
                    Error::Unsupported(_) => {
                        checker.found(&rules::UNSUPPORTED, start, size, expected, error);
                        return decoded;
                    }
                    Error::Limit { .. } => {
                        checker.found(&rules::LIMIT, start, size, expected, error);
                        return decoded;
                    }
                    error => checker.found(&rules::CONTENT, start, size, expected, error),
                }
            }
        }
    }
    decoded
}

/// Returns whether a block has a stream that was compressed by the codec.
fn has_compressed(chunk: &Chunk<'_>, block: usize) -> bool {
    let mut found = false;
    let each = |stream| found |= matches!(stream, Stream::Compressed(_));
    chunk.walk(block, &mut First::default(), each).is_none() || found
}
