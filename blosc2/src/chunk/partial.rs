//! Partial reads: only the bytes of a stored chunk that are needed for a range of its data are read.

use std::iter::once;
use std::mem;
use std::ops::Range;

use blosc2_format::chunk::Header;
use blosc2_format::read_at::DEFAULT_REQUEST_COST;
use blosc2_sys as sys;

use crate::codec::{filter, installed};
use crate::item::element::zeroed;
use crate::support::memory::resize;
use crate::{ChunkRef, Doing, Error, ErrorKind, Result};

const DOING: &str = "read a part of a chunk";
/// Chunks of up to this number of bytes are read completely. A partial read would not be faster.
pub(crate) const SMALL: usize = 64 * 1024;
/// The number of bytes of a stored chunk that are read with its header. They contain a small chunk, or the table of
/// about 1,000 blocks, which would be another request.
pub(crate) const FRONT: usize = 4096;
/// The position of the compressed size in the header of a chunk.
const CBYTES: Range<usize> = 12..16;

/// Reads the bytes of a stored chunk that are needed for the ranges `ranges` of its data.
/// [`Decoder::range`](crate::decoder::Decoder::range) then decompresses these ranges.
///
/// Afterwards, `buffer` contains a chunk from which these ranges can be decompressed. If the ranges need only a few
/// blocks, this chunk contains only the needed blocks, and its table of blocks has valid entries only for the needed
/// blocks.
/// - `header` is the header of the stored chunk, whose first `known` bytes are in `buffer`.
/// - `read` receives pairs of an offset and a slice, and fills each slice with the bytes of the stored chunk from the
///   offset on.
/// - The caller checks that the chunk may be as long as the header declares. With a postfilter, the caller calls
///   [`Decoder::needed`](crate::decoder::Decoder::needed) for each range.
///
/// # Errors
/// - [`ErrorKind::InvalidArgument`]: a range is not inside the data;
/// - [`ErrorKind::InvalidData`]: the table of blocks, the start of a block or the dictionary is not inside the
///   chunk;
/// - [`ErrorKind::OutOfMemory`]: the buffer cannot be allocated;
/// - the errors of `read`.
pub(crate) fn fetch(
    header: &Header,
    ranges: &[Range<usize>],
    known: usize,
    buffer: &mut Vec<u8>,
    mut read: impl FnMut(&mut [(u64, &mut [u8])]) -> Result<()>,
) -> Result<()> {
    let cost = DEFAULT_REQUEST_COST as usize;
    let mut steps = Steps::new(header.clone(), ranges, (mem::take(buffer), known), cost)?;
    while !steps.is_complete() {
        read(&mut steps.parts())?;
        steps.advance()?;
    }
    *buffer = steps.buffer;
    Ok(())
}

/// Reads only the parts of a compressed chunk that are needed for some ranges of its data. Use `PartialRead` for chunks
/// in files of other formats, on servers or in databases.
///
/// A `PartialRead` performs no I/O: the caller reads the [missing parts](Self::missing), in synchronous or asynchronous
/// code, until the chunk is complete. The result is a chunk that contains only the needed blocks. In C, lazy chunks
/// have the same purpose. A partial read takes at most three rounds:
/// 1. Read the table of blocks, which contains the offset of each block in the chunk.
/// 2. Read the needed blocks.
/// 3. If blocks overlap, read the entire chunk. No known writer creates such chunks.
///
/// ```
/// use blosc2::storage::PartialRead;
/// use blosc2::{CParams, Codec, Compressor, DParams, Decompressor};
///
/// let data: Vec<u32> = (0..1_000_000u32).map(|at| at.wrapping_mul(2_654_435_761) >> 8).collect();
/// let params = CParams::new().typesize(4).codec(Codec::Lz4).blocksize(64 << 10);
/// let stored = Compressor::new(&params)?.compress(&data)?.into_bytes();
///
/// let item = 500_000;
/// let head = stored[..32].to_vec();
/// let mut reading = PartialRead::new(head, vec![4 * item..4 * item + 4], 4096)?;
/// let mut transferred = 32;
/// while !reading.is_complete() {
///     for (offset, part) in reading.parts() {
///         part.copy_from_slice(&stored[offset as usize..][..part.len()]);
///         transferred += part.len();
///     }
///     reading.advance()?;
/// }
/// let mut decompressor = Decompressor::new(DParams::new())?;
/// let found = decompressor.items::<u32>(&reading.chunk()?, item..item + 1)?;
/// assert_eq!(found, data[item..item + 1]);
/// // One block and the table of blocks; with some installed libraries (feature `system`) the whole chunk.
/// assert!(transferred <= stored.len());
/// # Ok::<(), blosc2::Error>(())
/// ```
///
/// The entire chunk is read in these cases:
/// - the compressed size of the chunk is up to 64 KiB, or up to `gap` bytes (see [`new`](Self::new));
/// - the chunk has variable-length blocks;
/// - more than three quarters of its data are needed.
#[derive(Debug)]
#[doc(alias = "blosc2_schunk_get_lazychunk")]
pub struct PartialRead(Steps<Vec<Range<usize>>>);

impl PartialRead {
    /// Starts a partial read. `head` contains the first bytes of the chunk: at least its header, which has 32 bytes (in
    /// a chunk of Blosc1: 16 bytes).
    ///
    /// `ranges` are ranges of bytes of the decompressed data, in any order. Gaps of up to `gap` bytes between the
    /// needed parts of the chunk are read too.
    ///
    /// The header is untrusted input: the caller has to compare the sizes in the header with the expected sizes, for
    /// example the compressed size with [`compress_bound`](crate::compress_bound). A partial read allocates up to the
    /// compressed size plus 80 bytes for each block.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidData`]: `head` is not the start of a chunk, or the sizes in its header contradict each
    ///   other;
    /// - [`ErrorKind::InvalidArgument`]: a range is not inside the data;
    /// - [`ErrorKind::OutOfMemory`]: there is not enough memory.
    pub fn new(head: Vec<u8>, ranges: Vec<Range<usize>>, gap: usize) -> Result<Self> {
        let header = Header::parse(&head).doing(DOING)?;
        let known = head.len();
        Steps::new(header, ranges, (head, known), gap).map(Self)
    }

    /// Returns whether all needed parts of the chunk have been read.
    pub fn is_complete(&self) -> bool {
        self.0.is_complete()
    }

    /// Returns the ranges of the chunk to read next, in bytes and in ascending order.
    pub fn missing(&self) -> impl Iterator<Item = Range<u64>> {
        self.0.missing.iter().map(|(_, part)| part.start as u64..part.end as u64)
    }

    /// Returns the parts to read next: the offset of each part in the chunk, and the buffer for its bytes.
    pub fn parts(&mut self) -> Vec<(u64, &mut [u8])> {
        self.0.parts()
    }

    /// Continues after the caller has read the [parts](Self::parts). If the chunk is not [complete](Self::is_complete)
    /// afterwards, the caller has to read further parts.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidData`]: the table of blocks is invalid;
    /// - [`ErrorKind::OutOfMemory`]: there is not enough memory.
    ///
    /// After an error, [`chunk`](Self::chunk) fails too.
    pub fn advance(&mut self) -> Result<()> {
        let advanced = self.0.advance();
        if advanced.is_err() {
            self.0.buffer = Vec::new();
        }
        advanced
    }

    /// Returns the complete chunk. Decompress only the requested ranges, with [`Decompressor::items`]. Other parts of
    /// the data may be missing: their decompression fails or returns wrong data.
    ///
    /// [`Decompressor::items`]: crate::Decompressor::items
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidData`]: the chunk is not complete, or its header is invalid.
    pub fn chunk(&self) -> Result<ChunkRef<'_>> {
        if !self.is_complete() {
            let detail = "parts of it are missing";
            return Err(Error::new(ErrorKind::InvalidData, DOING, detail));
        }
        ChunkRef::to_decompress(&self.0.buffer)
    }
}

/// The steps in which [`fetch`] reads a stored chunk. Before each step, the bytes that the step needs are known, so
/// that the reads of several chunks can be combined.
#[derive(Debug)]
pub(crate) struct Steps<R> {
    header: Header,
    ranges: R,
    buffer: Vec<u8>,
    /// Gaps of up to this number of bytes are read too, instead of starting another read.
    gap: usize,
    /// The parts to read now: the offset in the buffer, and the range of bytes in the chunk. Both are in ascending
    /// order.
    missing: Vec<(usize, Range<usize>)>,
    next: Next,
}

/// The step after the missing parts have been read.
#[derive(Debug)]
enum Next {
    /// The table of blocks determines the blocks to read.
    Table,
    /// The blocks are moved to the end of the table.
    Blocks(Vec<Block>, Vec<(usize, Range<usize>)>),
    Done,
}

impl<R: AsRef<[Range<usize>]>> Steps<R> {
    /// Starts with a buffer that holds the first `known` bytes of the chunk.
    ///
    /// # Errors
    /// The errors of [`fetch`].
    pub(crate) fn new(
        header: Header,
        ranges: R,
        (buffer, known): (Vec<u8>, usize),
        request_cost: usize,
    ) -> Result<Self> {
        let (nbytes, cbytes) = (header.nbytes as usize, header.cbytes as usize);
        let asked = ranges.as_ref();
        if let Some(range) =
            asked.iter().find(|range| range.start > range.end || range.end > nbytes)
        {
            let detail = format!("it holds {nbytes} bytes, asked for {range:?}");
            return Err(Error::new(ErrorKind::InvalidArgument, DOING, detail));
        }
        let needed = asked.iter().fold(0usize, |all, range| all.saturating_add(range.len()));
        let simple = cbytes <= SMALL.max(request_cost)
            || known >= cbytes
            || needed > nbytes / 4 * 3
            || header.special.is_some()
            || header.variable_blocks
            || header.lazy
            || installed::SPOILS_ITEMS;
        let spans = if simple {
            Vec::from_iter(once(0..cbytes))
        } else if header.is_stored() {
            // The data is stored uncompressed, so its position follows from the range. The data is read to the same
            // position in the buffer.
            let head = header.header_len();
            let data = asked.iter().map(|range| head + range.start..head + range.end);
            merge(once(0..head).chain(data).collect(), request_cost)
        } else {
            Vec::from_iter(once(0..table_len(&header)?))
        };
        let has_table = !simple && !header.is_stored();
        let (missing, next) = (Vec::new(), if has_table { Next::Table } else { Next::Done });
        let mut steps = Self { header, ranges, buffer, gap: request_cost, missing, next };
        if !has_table {
            make_room(&mut steps.buffer, cbytes, known)?;
        } else if steps.buffer.len() < spans[0].end {
            // Longer buffers are not shortened, because a later extension would zero bytes.
            resize(&mut steps.buffer, spans[0].end).doing(DOING)?;
        }
        steps.need(spans, known);
        if steps.is_complete() {
            steps.advance()?;
        }
        Ok(steps)
    }

    /// Whether all parts have been read.
    pub(crate) fn is_complete(&self) -> bool {
        self.missing.is_empty()
    }

    /// Returns the parts to read now: the offset in the chunk, and the buffer for the bytes.
    pub(crate) fn parts(&mut self) -> Vec<(u64, &mut [u8])> {
        let (mut parts, mut at, mut rest) = (Vec::new(), 0, &mut self.buffer[..]);
        for (place, span) in &self.missing {
            let (part, after) = rest[place - at..].split_at_mut(span.len());
            parts.push((span.start as u64, part));
            (at, rest) = (place + span.len(), after);
        }
        parts
    }

    /// Continues after the [parts](Self::parts) were read.
    ///
    /// # Errors
    /// The errors of [`fetch`].
    pub(crate) fn advance(&mut self) -> Result<()> {
        self.missing.clear();
        match mem::replace(&mut self.next, Next::Done) {
            Next::Done => Ok(()),
            Next::Table => self.need_blocks(),
            Next::Blocks(blocks, moved) => self.place_blocks(blocks, &moved),
        }
    }

    /// Returns the number of bytes of the buffer.
    pub(crate) fn len(&self) -> usize {
        self.buffer.len()
    }

    /// Returns the buffer with the chunk.
    pub(crate) fn into_buffer(self) -> Vec<u8> {
        self.buffer
    }

    /// Requests parts of the chunk, except for its first `known` bytes. The parts are read to the same offsets in the
    /// buffer.
    fn need(&mut self, spans: impl IntoIterator<Item = Range<usize>>, known: usize) {
        let unknown = spans.into_iter().map(|span| span.start.max(known)..span.end);
        let unknown = unknown.filter(|span| !span.is_empty());
        self.missing.extend(unknown.map(|span| (span.start, span)));
    }

    /// Determines the blocks to read.
    fn need_blocks(&mut self) -> Result<()> {
        let (dictionary, blocks) = needed_blocks(&self.header, &self.buffer, self.ranges.as_ref())?;
        let mut len = dictionary.start;
        let spans = blocks.iter().map(|block| block.span.clone());
        let spans = merge(spans.chain([dictionary]).collect(), self.gap);
        // In the buffer, the spans follow the table, without gaps.
        let moved = spans.into_iter().map(|span| {
            let place = len;
            len += span.len();
            (place, span)
        });
        let moved: Vec<(usize, Range<usize>)> = moved.collect();
        resize(&mut self.buffer, len).doing(DOING)?;
        if moved.is_empty() {
            return self.place_blocks(blocks, &moved);
        }
        self.missing.clone_from(&moved);
        self.next = Next::Blocks(blocks, moved);
        Ok(())
    }

    /// Makes the buffer a chunk of its blocks.
    fn place_blocks(
        &mut self,
        mut blocks: Vec<Block>,
        moved: &[(usize, Range<usize>)],
    ) -> Result<()> {
        let (head, buffer) = (self.header.header_len(), &mut self.buffer);
        let len = buffer.len() as u32;
        buffer[CBYTES].copy_from_slice(&len.to_le_bytes());
        for Block { number, span, .. } in &mut blocks {
            let count = moved.partition_point(|(_, other)| other.start <= span.start);
            let Some((place, from)) = count.checked_sub(1).map(|last| &moved[last]) else {
                continue;
            };
            *span = place + span.start - from.start..place + span.end - from.start;
            let entry = head + 4 * *number;
            // At most the offset in the stored chunk, which is an `i32`.
            buffer[entry..entry + 4].copy_from_slice(&(span.start as i32).to_le_bytes());
        }
        // If a block overlaps the start of another block, the entire chunk is needed: no writer produces such chunks,
        // but readers accept them.
        match blocks.iter().all(|block| block.is_whole(buffer)) {
            true => Ok(()),
            false => {
                let cbytes = self.header.cbytes as usize;
                make_room(&mut self.buffer, cbytes, 0)?;
                self.need(once(0..cbytes), 0);
                Ok(())
            }
        }
    }
}

/// Sets the length of a buffer to `len`, the length of a stored chunk. The first `known` bytes stay unchanged. The
/// other bytes are zeros, or bytes from an earlier call.
fn make_room(buffer: &mut Vec<u8>, len: usize, known: usize) -> Result<()> {
    if buffer.capacity() < len {
        let old = mem::take(buffer);
        // The allocator provides zeroed memory; parts to which nothing is read are not accessed.
        *buffer = zeroed(len).doing(DOING)?;
        buffer[..known].copy_from_slice(&old[..known]);
    }
    buffer.resize(len, 0);
    Ok(())
}

/// Sorts the parts of a chunk, and merges neighboring parts with a gap of up to `gap` bytes.
fn merge(mut spans: Vec<Range<usize>>, gap: usize) -> Vec<Range<usize>> {
    spans.retain(|span| !span.is_empty());
    spans.sort_unstable_by_key(|span| span.start);
    let mut merged: Vec<Range<usize>> = Vec::with_capacity(spans.len());
    for span in spans {
        match merged.last_mut() {
            Some(last) if span.start <= last.end.saturating_add(gap) => {
                last.end = last.end.max(span.end);
            }
            _ => merged.push(span),
        }
    }
    merged
}

/// A block that is needed.
#[derive(Debug)]
struct Block {
    number: usize,
    /// The bytes from the start of the block to the next border.
    span: Range<usize>,
    streams: usize,
}

fn invalid<T>(detail: String) -> Result<T> {
    Err(Error::new(ErrorKind::InvalidData, DOING, detail))
}

/// Returns the number of bytes up to the end of the table of blocks, and of the length field of the dictionary.
fn table_len(header: &Header) -> Result<usize> {
    let (nblocks, cbytes) = (header.nblocks() as usize, header.cbytes as usize);
    let table = header.header_len().saturating_add(nblocks.saturating_mul(4));
    let len = if header.dictionary { table.saturating_add(4) } else { table };
    match len > cbytes {
        true => invalid(format!("it has {nblocks} blocks in {cbytes} bytes")),
        false => Ok(len),
    }
}

/// Parses the table of blocks of a compressed chunk. The buffer contains the first [`table_len`] bytes of the chunk.
///
/// Returns the dictionary without its length field, which follows the table, and the blocks that these ranges of the
/// data need, without duplicates.
fn needed_blocks(
    header: &Header,
    buffer: &[u8],
    ranges: &[Range<usize>],
) -> Result<(Range<usize>, Vec<Block>)> {
    let (head, cbytes, nbytes) =
        (header.header_len(), header.cbytes as usize, header.nbytes as usize);
    let first = table_len(header)?;
    let mut dictionary = first..first;
    if header.dictionary {
        let len = usize::try_from(number(buffer, first - 4)).unwrap_or(0);
        let most = (sys::BLOSC2_MAXDICTSIZE as usize).min(cbytes - first);
        if !(1..=most).contains(&len) {
            return invalid(format!("its dictionary has {len} bytes, expected 1 to {most}"));
        }
        dictionary.end += len;
    }
    let data = dictionary.end;
    let nblocks = header.nblocks() as usize;
    let mut starts = Vec::with_capacity(nblocks);
    for block in 0..nblocks {
        let start = number(buffer, head + 4 * block);
        match usize::try_from(start) {
            Ok(start) if start >= data && start + 4 <= cbytes => starts.push(start),
            _ => {
                let expected = format!("{data} to {}", cbytes.saturating_sub(4));
                return invalid(format!("block {block} starts at {start}, expected {expected}"));
            }
        }
    }
    // The sorted starts, and the end of the chunk.
    let mut borders = starts.clone();
    borders.push(cbytes);
    borders.sort_unstable();
    // C decompresses whole items, but a block may end inside an item.
    let (len, size) = (header.block_len() as usize, usize::from(header.typesize));
    let wanted = ranges.iter().filter(|range| !range.is_empty()).flat_map(|range| {
        let stop = range.end.next_multiple_of(size).min(nbytes);
        range.start / size * size / len..stop.div_ceil(len)
    });
    let mut wanted: Vec<usize> = wanted.collect();
    if header.filters.iter().any(|&code| filter::is_delta(code)) && !wanted.is_empty() {
        wanted.push(0); // The others refer to the first block.
    }
    wanted.sort_unstable();
    wanted.dedup();
    let block = |number: usize| {
        let start = starts[number];
        let next = borders.partition_point(|&border| border <= start);
        let full = (number + 1) * len <= nbytes;
        let streams = if header.split && full { size } else { 1 };
        Block { number, span: start..borders[next], streams }
    };
    Ok((dictionary, wanted.into_iter().map(block).collect()))
}

impl Block {
    /// Whether its streams end at or before the start of the next block.
    fn is_whole(&self, chunk: &[u8]) -> bool {
        let mut at = self.span.start;
        (0..self.streams).all(|_| {
            if at + 4 > self.span.end {
                return false;
            }
            let len = number(chunk, at);
            // A negative length means one repeated byte, which follows the length.
            at = at.saturating_add(4 + usize::try_from(len).unwrap_or(1));
            at <= self.span.end
        })
    }
}

/// The integer at an offset of a chunk.
fn number(chunk: &[u8], at: usize) -> i32 {
    chunk
        .get(at..)
        .and_then(|rest| rest.first_chunk())
        .map_or(0, |bytes| i32::from_le_bytes(*bytes))
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "a chunk is read in a list of ranges")]
mod tests {

    use crate::chunk::decoder::Decoder;
    use crate::chunk::encoder::Encoder;
    use crate::closures::{ChunkFilter, ChunkPlace};
    use crate::codec::params::Purpose;
    use crate::support::memory::Target;
    use blosc2_testing::Rng;

    use crate::{CParams, ChunkRef, Codec, DParams, Filter, SplitMode, Threads};

    use super::*;

    const LEN: usize = 600_000;

    /// Bytes of several kinds in turns: random, half of them random, equal, zeros.
    fn data(seed: u64, kinds: &[u8]) -> Vec<u8> {
        let mut rng = Rng(seed);
        let mut random = || rng.next() as u8;
        let kind_at = |at: usize| kinds[at / 7001 % kinds.len()];
        let mut byte = |at: usize| match kind_at(at) {
            0 => random(),
            1 if (at / 500).is_multiple_of(2) => random(),
            2 => 42,
            _ => 0,
        };
        (0..LEN).map(&mut byte).collect()
    }

    fn compress(data: &[u8], params: &CParams) -> Vec<u8> {
        let mut chunk = Vec::new();
        let params = params.resolve(1, Purpose::Frame).unwrap();
        Encoder::new(params).unwrap().compress_to(data, ChunkPlace::default(), &mut chunk).unwrap();
        chunk
    }

    fn header(chunk: &[u8]) -> Header {
        Header::parse(chunk).unwrap()
    }

    /// Decompresses ranges of a chunk from the bytes that `fetch` reads. Also returns the number of bytes and the number
    /// of reads. If the start of the chunk is known, the data are the same.
    fn parts(
        chunk: &[u8],
        ranges: &[Range<usize>],
        decoder: &mut Decoder,
    ) -> Result<(Vec<Vec<u8>>, usize, usize)> {
        let (found, bytes, reads) = parts_after(0, chunk, ranges, decoder)?;
        for known in [40, 4096].map(|known| chunk.len().min(known)) {
            let (other, fewer, _) = parts_after(known, chunk, ranges, decoder)?;
            assert!(found == other && fewer <= bytes, "{known} known bytes");
        }
        Ok((found, bytes, reads))
    }

    fn parts_after(
        known: usize,
        chunk: &[u8],
        ranges: &[Range<usize>],
        decoder: &mut Decoder,
    ) -> Result<(Vec<Vec<u8>>, usize, usize)> {
        let header = header(chunk);
        let (mut bytes, mut reads) = (0, 0);
        // Sometimes, the buffer contains bytes from an earlier call.
        let mut buffer = match chunk.len() % 2 {
            0 => vec![0xa5; chunk.len()],
            _ => vec![0; known],
        };
        buffer[..known].copy_from_slice(&chunk[..known]);
        let needed: Vec<_> =
            ranges.iter().map(|range| decoder.needed(&header, range.clone())).collect();
        fetch(&header, &needed, known, &mut buffer, |parts| {
            for (start, target) in parts {
                (bytes, reads) = (bytes + target.len(), reads + 1);
                target.copy_from_slice(&chunk[*start as usize..][..target.len()]);
            }
            Ok(())
        })?;
        assert!(buffer.len() <= chunk.len());
        let found = ranges.iter().map(|range| decode(&buffer, range.clone(), decoder));
        Ok((found.collect::<Result<_>>()?, bytes, reads))
    }

    /// Checks that the ranges are those of the data, and returns the number of bytes that were read. They are at most
    /// `most`, in at most `most_reads` reads.
    fn check(
        (chunk, data): (&[u8], &[u8]),
        ranges: &[Range<usize>],
        decoder: &mut Decoder,
        (most, most_reads): (usize, usize),
    ) -> usize {
        let (found, bytes, reads) = parts(chunk, ranges, decoder).unwrap();
        let expected: Vec<_> = ranges.iter().map(|range| &data[range.clone()]).collect();
        assert!(found == expected, "{ranges:?} of {:?}", header(chunk));
        assert!(bytes <= most || installed::SPOILS_ITEMS, "{bytes} bytes, {reads} reads");
        assert!(reads <= most_reads, "{reads} reads");
        bytes
    }

    fn decode(chunk: &[u8], range: Range<usize>, decoder: &mut Decoder) -> Result<Vec<u8>> {
        let mut found = vec![0; range.len()];
        decoder.range(&ChunkRef::to_decompress(chunk)?, range.start, Target::of(&mut found))?;
        Ok(found)
    }

    fn decoder() -> Decoder {
        Decoder::new(&DParams::new()).unwrap()
    }

    fn codecs() -> Vec<Codec> {
        let all = [Codec::BloscLz, Codec::Lz4, Codec::Lz4Hc, Codec::Zlib, Codec::Zstd];
        all.into_iter().filter(|codec| codec.is_available()).collect()
    }

    fn params(rng: &mut Rng) -> CParams {
        let filters: [&[Filter]; 5] = [
            &[],
            &[Filter::Shuffle],
            &[Filter::Bitshuffle],
            &[Filter::Delta, Filter::Shuffle],
            &[Filter::Shuffle, Filter::Bytedelta(0)],
        ];
        let (codec, filters) = (*rng.pick(&codecs()), *rng.pick(&filters));
        let is_delta = filters.contains(&Filter::Delta);
        let dictionary = matches!(codec, Codec::Lz4 | Codec::Lz4Hc | Codec::Zstd)
            && (!installed::IN_USE || codec == Codec::Zstd && !is_delta);
        CParams::new()
            .codec(codec)
            .filters(filters)
            .split(*rng.pick(&[SplitMode::Always, SplitMode::Never, SplitMode::Auto]))
            // Delta takes whole items.
            .typesize(if is_delta { 4 } else { *rng.pick(&[1, 2, 3, 4, 8, 12]) })
            .blocksize(*rng.pick(&[4096, 30_000, 200_000]))
            .level(*rng.pick(&[0, 1, 5]))
            .dictionary(dictionary && rng.below(2) == 0)
            .threads(Threads::new(1 + rng.index(3)))
    }

    const CASES: u64 = 64;

    #[test]
    fn a_part_is_that_of_the_whole() {
        for seed in 0..CASES {
            let mut rng = Rng(seed);
            let params = params(&mut rng);
            let kinds: Vec<u8> = (0..1 + rng.index(4)).map(|_| rng.below(4) as u8).collect();
            let ranges: Vec<_> = (0..8)
                .map(|_| {
                    let start = rng.index(LEN);
                    start..LEN.min(start + rng.pick(&[0, 1, 100, 5000, 200_000, LEN]))
                })
                .collect();
            let data = data(rng.next(), &kinds);
            let chunk = compress(&data, &params);
            let (mut decoder, both) = (decoder(), (&chunk[..], &data[..]));
            for ranges in ranges.chunks(1).chain([&ranges[..2], &ranges[2..5], &ranges[..]]) {
                let bytes = check(both, ranges, &mut decoder, (usize::MAX, usize::MAX));
                assert!(bytes <= chunk.len(), "seed {seed}: {params:?}");
            }
        }
    }

    /// A part of a broken chunk is that of the whole, or an error.
    #[test]
    fn broken_chunks_are_errors_or_the_same() {
        for seed in 0..CASES {
            let mut rng = Rng(seed);
            let params = params(&mut rng);
            let mut chunk = compress(&data(rng.next(), &[0, 1, 2]), &params);
            let cbytes = chunk.len();
            for _ in 0..1 + rng.index(3) {
                chunk[rng.index(400)] = rng.next() as u8;
            }
            chunk[12..16].copy_from_slice(&u32::try_from(cbytes).unwrap().to_le_bytes());
            let Ok(header) = Header::parse(&chunk) else { continue };
            let mut decoder = decoder();
            for _ in 0..4 {
                let start = rng.index(LEN - 100);
                let ranges = [start..(start + 100).min(header.nbytes as usize)];
                if ranges[0].is_empty() || header.nbytes > 1 << 24 {
                    continue;
                }
                if let Ok((found, ..)) = parts(&chunk, &ranges, &mut decoder) {
                    let whole = ranges.map(|range| decode(&chunk, range, &mut decoder).unwrap());
                    assert_eq!(found, whole, "seed {seed}");
                }
            }
        }
    }

    /// A chunk of 147 blocks that does not compress well.
    fn large(params: CParams) -> (Vec<u8>, Vec<u8>) {
        let data = data(5, &[1]);
        let chunk = compress(&data, &params.typesize(4).blocksize(4096));
        assert!(chunk.len() > LEN / 4 && header(&chunk).is_compressed());
        (data, chunk)
    }

    fn lz4() -> CParams {
        CParams::new().codec(Codec::Lz4).filters(&[Filter::Shuffle])
    }

    #[test]
    fn little_is_read_for_a_small_range() {
        let all = [
            (lz4(), 0),
            (lz4().filters(&[Filter::Delta]), 4200),
            (lz4().dictionary(!installed::IN_USE), 33_000),
        ];
        for (params, more) in all {
            let (data, chunk) = large(params);
            // A range within a block, and one over two blocks.
            for (start, blocks) in [(300_000, 1), (4096 * 70 - 3, 2), (0, 1), (LEN - 7, 1)] {
                let most = (700 + 4200 * blocks + more, 4);
                check((&chunk, &data), &[start..start + 7], &mut decoder(), most);
            }
        }
    }

    #[test]
    fn of_what_is_between_the_ranges_nothing_is_read() {
        let data = data(5, &[1]);
        let ranges = [9..10, 200_000..200_004, 200_100..200_200, LEN - 1..LEN];
        for level in [0, 5] {
            let chunk = compress(&data, &lz4().level(level).typesize(4).blocksize(30_000));
            check((&chunk, &data), &ranges, &mut decoder(), (3 * 30_100 + 200, 4));
        }
    }

    #[test]
    fn of_stored_chunks_the_range_is_read() {
        let data = data(7, &[0]);
        let chunk = compress(&data, &lz4().level(0).blocksize(4096));
        assert!(header(&chunk).is_stored());
        check((&chunk, &data), &[100_000..100_100], &mut decoder(), (132, 2));
    }

    #[test]
    fn a_postfilter_has_whole_blocks() {
        let inverted: Vec<u8> = data(5, &[1]).iter().map(|byte| !byte).collect();
        let filter = ChunkFilter::postfilter(|block| {
            for at in 0..block.input().len() {
                block.output()[at] = !block.input()[at];
            }
            Ok::<(), crate::closures::BoxError>(())
        });
        for level in [0, 5] {
            let chunk = compress(&data(5, &[1]), &lz4().level(level).typesize(4).blocksize(4096));
            let params = DParams { postfilter: Some(filter.clone()), ..DParams::default() };
            let mut decoder = Decoder::new(&params).unwrap();
            for start in [0, 4095, 300_001, LEN - 9] {
                let range = start..start + 9;
                check((&chunk, &inverted), &[range], &mut decoder, (10_000, usize::MAX));
            }
        }
    }

    #[test]
    fn special_chunks_and_blocks_of_variable_length_are_whole() {
        let mut zeros = compress(&vec![0; LEN], &lz4());
        assert!(header(&zeros).special.is_some());
        let ranges = [5..500];
        check((&zeros, &[0; LEN]), &ranges, &mut decoder(), (32, 1));

        let data = data(5, &[1]);
        let blocks: Vec<&[u8]> = data.chunks(50_001).collect();
        let params = lz4().resolve(1, Purpose::Chunk).unwrap();
        Encoder::new(params)
            .unwrap()
            .compress_blocks(&blocks, ChunkPlace::default(), &mut zeros)
            .unwrap();
        let bytes = check((&zeros, &data), &ranges, &mut decoder(), (zeros.len(), 1));
        assert_eq!(bytes, zeros.len());
    }

    /// The range of a block's entry in the table of blocks.
    fn entry(block: usize) -> Range<usize> {
        32 + 4 * block..36 + 4 * block
    }

    #[test]
    fn blocks_lie_in_any_order() {
        let (data, chunk) = large(lz4());
        let nblocks = header(&chunk).nblocks() as usize;
        let start = |block| usize::try_from(number(&chunk, entry(block).start)).unwrap();
        let mut other = chunk[..entry(nblocks).start].to_vec();
        for block in (0..nblocks).rev() {
            let end = if block + 1 < nblocks { start(block + 1) } else { chunk.len() };
            let at = i32::try_from(other.len()).unwrap().to_le_bytes();
            other[entry(block)].copy_from_slice(&at);
            other.extend(&chunk[start(block)..end]);
        }
        for range in [0..9, 100_000..140_000, LEN - 5000..LEN] {
            let most = (range.len() + 14_000, 2);
            check((&other, &data), &[range], &mut decoder(), most);
        }
    }

    #[test]
    fn a_block_may_go_on_in_the_next_one() {
        let (data, mut chunk) = large(lz4());
        let inside = number(&chunk, entry(50).start) + 8;
        chunk[entry(51)].copy_from_slice(&inside.to_le_bytes());
        let range = 4096 * 50..4096 * 51;
        let bytes = check((&chunk, &data), &[range], &mut decoder(), (usize::MAX, usize::MAX));
        assert!(bytes >= chunk.len());
    }

    #[test]
    fn parts_outside_the_chunk_are_errors() {
        if installed::SPOILS_ITEMS {
            return; // The whole chunk is read; other tests check this.
        }
        let (_, chunk) = large(lz4().dictionary(true));
        let cbytes = i32::try_from(chunk.len()).unwrap();
        let dictionary = entry(header(&chunk).nblocks() as usize);
        let kind = |at: Range<usize>, number: i32| {
            let mut chunk = chunk.clone();
            chunk[at].copy_from_slice(&number.to_le_bytes());
            parts(&chunk, &[4..9], &mut decoder()).map(drop).map_err(|e| e.kind())
        };
        for start in [-1, 0, 600, cbytes - 3, cbytes, i32::MAX, i32::MIN] {
            assert_eq!(kind(entry(0), start), Err(ErrorKind::InvalidData), "{start}");
            assert_eq!(kind(entry(99), start), Err(ErrorKind::InvalidData), "{start}");
        }
        for len in [-1, 0, 33_000, i32::MAX, i32::MIN] {
            assert_eq!(kind(dictionary.clone(), len), Err(ErrorKind::InvalidData), "{len}");
        }
        // More blocks than the chunk has room for.
        assert_eq!(kind(8..12, 1), Err(ErrorKind::InvalidData));
        assert_eq!(kind(8..12, 4096), Ok(()));
        for range in [LEN..LEN + 1, 0..LEN + 1, Range { start: 2, end: 1 }] {
            let error =
                fetch(&header(&chunk), &[range], 0, &mut Vec::new(), |_| Ok(())).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        }
    }

    #[test]
    fn errors_of_the_reader_are_given_back() {
        let (_, chunk) = large(lz4());
        for fine in 0..2 {
            let mut left = fine;
            let range = 9..10;
            let failed =
                fetch(&header(&chunk), std::slice::from_ref(&range), 0, &mut Vec::new(), |parts| {
                    for (start, target) in parts {
                        if left == 0 {
                            return Err(Error::new(ErrorKind::Io, "read", "the disk is gone"));
                        }
                        left -= 1;
                        target.copy_from_slice(&chunk[*start as usize..][..target.len()]);
                    }
                    Ok(())
                });
            let failed = failed.map_err(|error| error.kind());
            let whole = fine == 1 && installed::SPOILS_ITEMS;
            assert_eq!(failed, if whole { Ok(()) } else { Err(ErrorKind::Io) });
        }
    }
}
