//! The parts of a chunk: block starts, dictionary, streams.

use std::ops::Range;
use std::sync::OnceLock;

use super::rules::{self, Findings, First};
use super::{Header, Lazy, Special, lazy};
use crate::{Error, Limit, Limits};

/// The maximum size of a dictionary, in bytes.
const MAX_DICTIONARY: i32 = 32 * 1024;
const BYTEDELTA_BUGGY: u8 = 34;
/// The maximum number of streams of a block, and the minimum size of a stream, for chunks without a
/// split flag.
const OLD_MAX_STREAMS: u32 = 16;
const OLD_MIN_STREAM: u32 = 128;

/// A chunk whose header, block starts and lengths have been checked.
///
/// The *block starts* are a table with the offset of each block. A block is stored as one or
/// several *streams*, which are compressed separately. A block that is not split has one stream. A
/// split block has `typesize` streams of equal length: after shuffle, each stream contains one byte
/// of each item.
///
/// ```
/// use blosc2_format::Limits;
/// use blosc2_format::chunk::Chunk;
///
/// // A Blosc1 header, followed by six uncompressed bytes.
/// let mut bytes = vec![2, 1, 0b10, 1, 6, 0, 0, 0, 6, 0, 0, 0, 22, 0, 0, 0];
/// bytes.extend(b"blosc2");
/// let chunk = Chunk::new(&bytes, &Limits::default())?;
/// assert_eq!(chunk.decode()?, b"blosc2");
/// # Ok::<(), blosc2_format::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Chunk<'a> {
    bytes: &'a [u8],
    header: Header,
    /// The table of block starts; empty if the chunk has none.
    starts: &'a [u8],
    dictionary: Option<&'a [u8]>,
    /// The position of the first stream.
    data: usize,
    memory: u64,
    typesize: usize,
    /// The decoded first block, which delta uses as reference.
    reference: OnceLock<Vec<u8>>,
}

impl<'a> Chunk<'a> {
    /// Parses the chunk at the start of `bytes`. Checks the header, the block starts and the
    /// lengths. The content of a block is checked when the block is decoded. Bytes after the end of
    /// the chunk are ignored.
    ///
    /// # Errors
    /// - [`Error::Format`]: the header, the block starts or the lengths violate a rule;
    /// - [`Error::Limit`]: a block has more than [`Limits::memory`] bytes.
    pub fn new(bytes: &'a [u8], limits: &Limits) -> Result<Self, Error> {
        Self::with_header(bytes, Header::parse(bytes)?, limits)
    }

    /// Like [`new`](Self::new), for a header that was parsed from `bytes`.
    pub(crate) fn with_header(
        bytes: &'a [u8],
        header: Header,
        limits: &Limits,
    ) -> Result<Self, Error> {
        let mut first = First::default();
        let chunk = Self::lay_out(bytes, header, limits, &mut first);
        let Some(chunk) = chunk.filter(|_| first.is_none()) else {
            return Err(first.error().into());
        };
        let largest = chunk.largest_block() as u64;
        Limits::allow(Limit::Memory, "bytes of a block", largest, limits.memory)?;
        Ok(chunk)
    }

    /// Determines the parts. Returns `None` if this is impossible. The caller has checked the rules
    /// of the header.
    pub(crate) fn lay_out(
        bytes: &'a [u8],
        header: Header,
        limits: &Limits,
        findings: &mut impl Findings,
    ) -> Option<Self> {
        let memory = limits.memory;
        let head = header.header_len();
        let typesize = header.typesize.into();
        let mut chunk = Self {
            bytes,
            header,
            starts: &[],
            dictionary: None,
            data: head,
            memory,
            typesize,
            reference: OnceLock::new(),
        };
        if chunk.is_lazy() {
            chunk.bytes = lazy::lay_out(&chunk.header, bytes, findings)?;
            let nblocks = if chunk.header.memcpyed { 0 } else { chunk.header.nblocks() };
            // A `usize` of 32 bits could overflow.
            let end = usize::try_from(head as u64 + 4 * u64::from(nblocks)).ok()?;
            chunk.starts = chunk.bytes.get(head..end)?;
            chunk.data = end;
            chunk.check_starts(findings);
            return Some(chunk);
        }
        let cbytes = chunk.header.cbytes;
        let Some(whole) = bytes.get(..cbytes as usize) else {
            let expected = format_args!("at most the {} available bytes", bytes.len());
            findings.found(&rules::TRUNCATED, 12, 4, expected, cbytes);
            return None;
        };
        chunk.bytes = whole;
        if chunk.header.special.is_some() {
            chunk.check_special(findings);
        } else if !chunk.header.memcpyed {
            let table = 4 * u64::from(chunk.header.nblocks());
            let end = usize::try_from(head as u64 + table).ok();
            let Some(starts) = end.and_then(|end| whole.get(head..end)) else {
                let left = whole.len() - head;
                findings.found(&rules::BSTARTS, head as u64, left as u64, table, left);
                return None;
            };
            chunk.starts = starts;
            chunk.data += starts.len();
            if chunk.header.dictionary && whole.len() > head {
                chunk.take_dictionary(findings)?;
            }
            chunk.check_starts(findings);
            chunk.check_split(findings);
            chunk.check_end(findings);
            if chunk.header.variable_blocks {
                chunk.check_lengths(findings);
            }
        }
        Some(chunk)
    }

    /// Determines the parts of a chunk with streams, without a check of the block starts. Returns
    /// `None` if the chunk ends in the table of block starts.
    pub(super) fn without_checks(header: &Header, bytes: &'a [u8]) -> Option<Self> {
        let head = header.header_len();
        let data = usize::try_from(head as u64 + 4 * u64::from(header.nblocks())).ok()?;
        let bytes = bytes.get(..header.cbytes as usize)?;
        Some(Self {
            bytes,
            header: header.clone(),
            starts: bytes.get(head..data)?,
            dictionary: None,
            data,
            memory: 0,
            typesize: header.typesize.into(),
            reference: OnceLock::new(),
        })
    }

    fn check_special(&self, findings: &mut impl Findings) {
        let header = &self.header;
        let width = match header.special {
            Some(Special::Value) => header.cbytes - self.data as u32,
            Some(Special::Nan) => u32::from(header.typesize),
            _ => 1,
        };
        if header.lazy {
            findings.found(&rules::LAZY, 31, 1, "blocks to be read later", "a special value");
        }
        if header.special == Some(Special::Value) && header.nbytes == 0 {
            findings.found(&rules::VALUE_WIDTH, 4, 4, "at least one value", 0);
        }
        if header.special == Some(Special::Nan) && header.nbytes > 0 && ![4, 8].contains(&width) {
            findings.found(&rules::NAN_TYPESIZE, 3, 1, "4 or 8", width);
        }
        if width > 0 && header.nblocks() > 1 && !header.block_len().is_multiple_of(width) {
            let expected = format_args!("a multiple of the {width} bytes of a value");
            findings.found(&rules::SPECIAL_BLOCKS, 8, 4, expected, header.blocksize);
        }
        let stored = u64::from(header.nbytes) + self.data as u64;
        if header.memcpyed && u64::from(header.cbytes) != stored {
            let expected =
                format_args!("{stored}, because the flag for stored data is set as well");
            findings.found(&rules::SPECIAL_STORED, 12, 4, expected, header.cbytes);
        }
    }

    fn take_dictionary(&mut self, findings: &mut impl Findings) -> Option<()> {
        let rest = &self.bytes[self.data..];
        let len = rest.first_chunk::<4>().map_or(0, |len| i32::from_le_bytes(*len));
        let fits = (1..=MAX_DICTIONARY).contains(&len);
        let Some(dictionary) = rest.get(4..4 + len.max(0) as usize).filter(|_| fits) else {
            let most = rest.len().saturating_sub(4).min(MAX_DICTIONARY as usize);
            let expected = format_args!("1 to {most}");
            findings.found(&rules::DICTIONARY, self.data as u64, 4, expected, len);
            return None;
        };
        self.data += 4 + dictionary.len();
        self.dictionary = Some(dictionary);
        Some(())
    }

    fn check_starts(&self, findings: &mut impl Findings) {
        let end = self.header.cbytes as usize;
        for block in 0..self.starts.len() / 4 {
            let start = self.start(block);
            if start < self.data as i64 || start + 4 > end as i64 {
                let at = (self.header.header_len() + 4 * block) as u64;
                let expected = format_args!("{} to {}", self.data, end.saturating_sub(4));
                findings.found(&rules::BSTART, at, 4, expected, start);
            }
        }
    }

    fn check_split(&self, findings: &mut impl Findings) {
        let typesize = u32::from(self.header.typesize);
        let full = self.header.nbytes >= self.header.block_len() && self.header.nbytes > 0;
        if full && self.splits() && !self.header.block_len().is_multiple_of(typesize) {
            let expected = format_args!("a multiple of the {typesize} streams of a block");
            findings.found(&rules::SPLIT, 8, 4, expected, self.header.block_len());
        }
    }

    /// Reports data that the first version of bytedelta lost: the bytes at the end of a block that
    /// do not fill its streams.
    fn check_end(&self, findings: &mut impl Findings) {
        let header = &self.header;
        let slots = header.filters.iter().zip(header.filters_meta).zip(16..);
        for ((_, meta), at) in slots.filter(|((filter, _), _)| **filter == BYTEDELTA_BUGGY) {
            let streams = if meta == 0 { self.typesize.max(1) } else { meta.into() };
            if (0..self.nblocks()).any(|block| !self.block_size(block).is_multiple_of(streams)) {
                let expected = format_args!("blocks of a multiple of {streams} bytes");
                let found = format_args!("{} bytes", header.block_len());
                findings.found(&rules::LOST_END, at, 1, expected, found);
            }
        }
    }

    /// Checks that variable-length blocks follow each other, and that the sum of their lengths is
    /// correct.
    fn check_lengths(&self, findings: &mut impl Findings) {
        let mut sum = 0;
        for block in 0..self.nblocks() {
            let range = self.block_range(block);
            let Some(stream) = self.bytes.get(range.clone()).filter(|stream| stream.len() > 4)
            else {
                let at = (self.header.header_len() + 4 * block) as u64;
                let expected = "more than 4 bytes up to the next block or the end";
                let found = format_args!("{} to {}", range.start, range.end);
                findings.found(&rules::VL_BSTART, at, 4, expected, found);
                return;
            };
            let len = i32::from_le_bytes([stream[0], stream[1], stream[2], stream[3]]);
            if len < 1 {
                findings.found(&rules::VL_SIZE, range.start as u64, 4, "at least 1", len);
            }
            sum += i64::from(len.max(0));
        }
        if sum != i64::from(self.header.nbytes) {
            let expected = format_args!("{sum}, the sum of the blocks");
            findings.found(&rules::VL_SUM, 4, 4, expected, self.header.nbytes);
        }
    }

    /// Sets the typesize of the super-chunk, in bytes. This is necessary for the filter bytedelta
    /// if the typesize is above 255: the filter uses the typesize, and the header of a chunk cannot
    /// store it.
    pub fn with_typesize(self, typesize: usize) -> Self {
        Self { typesize, reference: OnceLock::new(), ..self }
    }

    /// Returns [`Limits::memory`].
    pub(crate) fn memory(&self) -> u64 {
        self.memory
    }

    /// Returns the size of an item of the super-chunk, in bytes.
    pub(crate) fn typesize(&self) -> usize {
        self.typesize
    }

    pub(crate) fn into_header(self) -> Header {
        self.header
    }

    /// Returns the header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the chunk as stored.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the dictionary that the streams were compressed with, or `None` if there is none.
    pub fn dictionary(&self) -> Option<&'a [u8]> {
        self.dictionary
    }

    /// Returns whether the chunk is lazy: its blocks are in a file. Returns `false` for special
    /// chunks, which have no blocks.
    pub(crate) fn is_lazy(&self) -> bool {
        self.header.lazy && self.header.special.is_none()
    }

    /// Returns the location of the blocks of a lazy chunk, or `None` for other chunks.
    pub fn lazy(&self) -> Option<Lazy<'a>> {
        self.is_lazy().then(|| Lazy::new(&self.header, self.bytes)).flatten()
    }

    /// Returns the number of blocks.
    pub fn nblocks(&self) -> usize {
        self.header.nblocks() as usize
    }

    /// Returns the decoded size of the block at index `block`, in bytes.
    ///
    /// Returns 0 if there is no block at this index. Also returns 0 for each variable-length block
    /// of a lazy chunk: the size is stored in the block, and a lazy chunk does not contain its
    /// blocks.
    pub fn block_size(&self, block: usize) -> usize {
        if block >= self.nblocks() {
            return 0;
        }
        if self.header.variable_blocks {
            let start = self.bytes.get(self.block_range(block)).filter(|_| !self.is_lazy());
            let len = start.and_then(|start| start.first_chunk::<4>());
            return len.map_or(0, |len| i32::from_le_bytes(*len).max(0) as usize);
        }
        let len = self.header.block_len() as usize;
        len.min((self.header.nbytes as usize).saturating_sub(block * len))
    }

    fn largest_block(&self) -> usize {
        if !self.header.variable_blocks {
            return self.header.block_len() as usize;
        }
        (0..self.nblocks()).map(|block| self.block_size(block)).max().unwrap_or(0)
    }

    /// Returns whether full blocks are split into a stream for each byte of the items.
    fn splits(&self) -> bool {
        let header = &self.header;
        let typesize = u32::from(header.typesize).max(1);
        // Chunks of Blosc before 1.11 have no flag for splitting. Readers apply this rule to them.
        let old = header.version <= 2;
        let fits = typesize <= OLD_MAX_STREAMS && header.block_len() / typesize >= OLD_MIN_STREAM;
        header.split && !header.variable_blocks && (fits || !old)
    }

    /// Returns the number of streams of a block. A shorter last block is never split.
    pub(crate) fn streams(&self, block: usize) -> usize {
        let full = self.block_size(block) == self.header.block_len() as usize;
        if full && self.splits() { usize::from(self.header.typesize) } else { 1 }
    }

    /// Returns whether the blocks have one stream by the rule for old chunks, but several streams
    /// by the flag.
    pub(crate) fn is_split_unknown(&self) -> bool {
        let header = &self.header;
        header.split && header.typesize > 1 && !header.variable_blocks && !self.splits()
    }

    /// Returns the entry of a block in the table of starts, or -1 if there is none.
    pub(crate) fn start(&self, block: usize) -> i64 {
        let start = self.starts.get(4 * block..).and_then(|start| start.first_chunk::<4>());
        start.map_or(-1, |start| i32::from_le_bytes(*start).into())
    }

    /// Returns the bytes that can belong to a block. If the order of the blocks is fixed, the range
    /// ends at the next block.
    pub(crate) fn block_range(&self, block: usize) -> Range<usize> {
        let at = |start| usize::try_from(start).unwrap_or(0);
        let end = match self.header.variable_blocks && block + 1 < self.nblocks() {
            true => at(self.start(block + 1)),
            false => self.header.cbytes as usize,
        };
        at(self.start(block))..end
    }

    /// Returns the position of the first stream: after the header, the block starts and the
    /// dictionary.
    pub(crate) fn data(&self) -> usize {
        self.data
    }

    /// Returns the cell for the decoded first block.
    pub(crate) fn reference(&self) -> &OnceLock<Vec<u8>> {
        &self.reference
    }
}
