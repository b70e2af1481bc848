//! Reading of chunks and blocks, and the limits of reads.

use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::ops::Range;
use std::slice;

use blosc2_format::Limits;
use blosc2_format::chunk::{Header, MAX_FILTERS};
use blosc2_format::frame::Offset;
use blosc2_format::read_at::DEFAULT_REQUEST_COST;

use super::coder::Worker;
use super::fetch::{MOST, NOTHING_FETCHED, Wanted, Window, fetch_ahead};
use super::limits::{MaxRead, SCRATCH, block_memory};
use super::store::Located;
use super::{Fetched, Reading, SChunk};
use crate::chunk::decoder::Decoder;
use crate::chunk::decompressor::to_items;
use crate::chunk::partial::FRONT;
use crate::closures::{Closures, registered};
use crate::item::element::{Element, with_bytes_mut};
use crate::support::memory::{Target, resize};
use crate::{
    Blocks, Chunk, ChunkRef, Codec, Doing, Error, ErrorKind, Filter, Reason, Result, Special,
};

const READ: &str = "read a chunk";

impl SChunk {
    /// Decompresses the chunk at `index`. C: `blosc2_schunk_decompress_chunk`. Python: `SChunk.decompress_chunk`.
    ///
    /// # Errors
    /// Fails with the [errors of reading](Self#errors-of-reading), and with
    /// - [`ErrorKind::OutOfBounds`]: `index` is not less than the number of chunks;
    /// - [`ErrorKind::TypeMismatch`]: the size of `T` is not the typesize, and `T` is not `u8`.
    #[doc(alias = "blosc2_schunk_decompress_chunk")]
    pub fn decompress_chunk<T: Element>(&self, index: usize) -> Result<Vec<T>> {
        self.check_item::<T>().doing(READ)?;
        self.with_chunk(index, None, |chunk, decoder| {
            self.allow(chunk.nbytes() as u64).doing(READ)?;
            to_items(chunk.nbytes(), |target| decoder.decompress(chunk, target))
        })
    }

    /// Decompresses the chunk at `index` into `items`. `items` must have the decompressed size of the chunk.
    ///
    /// # Errors
    /// Fails with the [errors of reading](Self#errors-of-reading), and with
    /// - [`ErrorKind::OutOfBounds`]: `index` is not less than the number of chunks;
    /// - [`ErrorKind::TypeMismatch`]: the size of `T` is not the typesize, and `T` is not `u8`;
    /// - [`ErrorKind::InvalidArgument`]: `items` does not have the decompressed size of the chunk.
    pub fn decompress_chunk_into<T: Element>(&self, index: usize, items: &mut [T]) -> Result<()> {
        self.check_item::<T>().doing(READ)?;
        self.with_chunk(index, None, |chunk, decoder| {
            let len = size_of_val(items);
            if chunk.nbytes() != len {
                let detail = format!("chunk {index} has {} bytes, got {len}", chunk.nbytes());
                return Err(Error::new(ErrorKind::InvalidArgument, READ, detail));
            }
            with_bytes_mut(items, |bytes| decoder.decompress(chunk, Target::of(bytes)).map(|_| ()))
        })
    }

    /// Returns a double-ended iterator that decompresses the chunks. Python: `SChunk.iterchunks`.
    ///
    /// Each chunk is a `Result`. Its error is one of the [errors of reading](Self#errors-of-reading), or
    /// [`ErrorKind::TypeMismatch`] if the size of `T` is not the typesize and `T` is not `u8`.
    ///
    /// ```
    /// use blosc2::{CParams, SChunk};
    ///
    /// let mut schunk = SChunk::in_memory::<u8>(&CParams::default())?;
    /// schunk.append(&[1u8, 2, 3])?;
    /// schunk.append(&[4u8])?;
    /// let last = schunk.iter_chunks::<u8>().next_back().unwrap()?;
    /// assert_eq!(last, [4]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    #[doc(alias = "iterchunks")]
    pub fn iter_chunks<T: Element>(
        &self,
    ) -> impl DoubleEndedIterator<Item = Result<Vec<T>>> + ExactSizeIterator + FusedIterator {
        Chunks { schunk: self, range: 0..self.nchunks(), item: PhantomData }
    }

    /// Returns the compressed chunk at `index`. C: `blosc2_schunk_get_chunk`. Python: `SChunk.get_chunk`.
    ///
    /// Some [special chunks](Special) have no stored bytes: only the index records them. For such a chunk, this method
    /// creates a chunk with the same content.
    ///
    /// # Errors
    /// Fails with the [errors of reading](Self#errors-of-reading), and with
    /// - [`ErrorKind::OutOfBounds`]: `index` is not less than the number of chunks.
    #[doc(alias("get_chunk", "blosc2_schunk_get_chunk"))]
    pub fn chunk(&self, index: usize) -> Result<Chunk> {
        self.with_chunk(index, None, |chunk, _| Ok(Chunk::from(chunk.borrowed())))
    }

    /// Returns the parameters in the header of the chunk at `index`. This method does not decompress the chunk, and
    /// does not compare it with its [checksum](crate::OpenOptions::checksums). Python: `SChunk.iterchunks_info`.
    ///
    /// # Errors
    /// Fails with the [errors of reading](Self#errors-of-reading), and with
    /// - [`ErrorKind::OutOfBounds`]: `index` is not less than the number of chunks.
    #[doc(alias("iterchunks_info", "lazy_chunk", "get_lazychunk", "blosc2_schunk_get_lazychunk"))]
    pub fn chunk_info(&self, index: usize) -> Result<ChunkInfo> {
        let reading = self.reading()?;
        let state = &reading.state;
        let header = state.confirmed(&[index], || state.locate(index).map(|(_, header)| header));
        let info = header.and_then(|header| {
            let is_stored = matches!(state.offset(index).doing(READ)?, Offset::At(_));
            Ok(ChunkInfo::new(&header, is_stored))
        });
        info.map_err(|error| self.at(error))
    }

    /// Decompresses the block with the index `block` in the chunk at `index`. C: `blosc2_schunk_get_vlblock`. Python:
    /// `SChunk.get_vlblock`.
    ///
    /// The chunk may have variable-length blocks (see [`VariableBlocks`](super::VariableBlocks)) or blocks of one size.
    /// From a file, this method reads the complete compressed chunk. It decompresses only this block.
    ///
    /// # Errors
    /// Fails with the [errors of reading](Self#errors-of-reading), and with
    /// - [`ErrorKind::OutOfBounds`]: `index` is not less than the number of chunks, or `block` is not less than the
    ///   number of blocks of the chunk.
    #[doc(alias = "blosc2_schunk_get_vlblock")]
    pub fn block(&self, index: usize, block: usize) -> Result<Vec<u8>> {
        self.with_chunk(index, None, |chunk, decoder| {
            let Some(len) = chunk.block_len(block)? else {
                let detail =
                    format!("chunk {index} has {} blocks, got the index {block}", chunk.nblocks());
                return Err(Error::new(ErrorKind::OutOfBounds, "read a block", detail));
            };
            self.allow(len as u64).doing("read a block")?;
            to_items(len, |target| decoder.block(chunk, block, target))
        })
    }

    /// Decompresses all blocks of the chunk at `index`.
    ///
    /// ```
    /// use blosc2::super_chunk::VariableBlocks;
    /// use blosc2::{CParams, SChunk};
    ///
    /// let mut schunk = SChunk::in_memory::<u8>(&CParams::default())?;
    /// schunk.append(VariableBlocks(&[b"one", b"three"]))?;
    /// let blocks = schunk.blocks(0)?;
    /// assert!(blocks.iter().eq([&b"one"[..], b"three"]));
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// Fails with the [errors of reading](Self#errors-of-reading), and with
    /// - [`ErrorKind::OutOfBounds`]: `index` is not less than the number of chunks.
    pub fn blocks(&self, index: usize) -> Result<Blocks> {
        self.with_chunk(index, None, |chunk, _| {
            self.allow(chunk.nbytes() as u64).doing("read the blocks of a chunk")?;
            chunk.blocks()
        })
    }

    /// Calls `work` with a chunk and a decoder.
    pub(super) fn with_chunk<R>(
        &self,
        index: usize,
        range: Option<Range<usize>>,
        work: impl FnOnce(&ChunkRef<'_>, &mut Decoder) -> Result<R>,
    ) -> Result<R> {
        let ranges = range.as_ref().map(slice::from_ref);
        self.with_chunk_in(&self.reading()?, index, ranges, work)
    }

    /// Calls `work` within a read. If `ranges` is set, the chunk that `work` gets may contain only the bytes for these
    /// ranges of the data.
    pub(crate) fn with_chunk_in<R>(
        &self,
        reading: &Reading<'_>,
        index: usize,
        ranges: Option<&[Range<usize>]>,
        work: impl FnOnce(&ChunkRef<'_>, &mut Decoder) -> Result<R>,
    ) -> Result<R> {
        self.with_chunk_or_fetched(reading, index, ranges, &NOTHING_FETCHED, work)
    }

    /// Like [`with_chunk_in`](Self::with_chunk_in). Reads nothing if `fetched` contains the ranges, which were then
    /// fetched in the same read.
    pub(crate) fn with_chunk_or_fetched<R>(
        &self,
        reading: &Reading<'_>,
        index: usize,
        ranges: Option<&[Range<usize>]>,
        fetched: &Fetched,
        work: impl FnOnce(&ChunkRef<'_>, &mut Decoder) -> Result<R>,
    ) -> Result<R> {
        // To compare the checksum, the whole chunk is read.
        let fetched_ranges = ranges.filter(|_| !reading.state.is_unverified(index));
        let result = self.coder.with_worker(&self.frame, |Worker { decoder, buffer }| {
            let start =
                self.coder.has_postfilter().then(|| self.start_of(reading, index)).transpose()?;
            decoder.set_place(index, start);
            let admit = |header: &Header, decoder: &mut Decoder| -> Result<_> {
                if header.is_compressed() {
                    // For some chunks, a part of the data takes memory for all data.
                    let whole = ranges
                        .is_some_and(|ranges| ranges.iter().any(|range| takes_all(header, range)));
                    let nbytes = if whole { u64::from(header.nbytes) } else { 0 };
                    self.allow_scratch(nbytes.max(block_memory(header))).doing(READ)?;
                }
                let runs_closures = self.coder.has_postfilter()
                    || registered(header.codec(), &header.filters) != Closures::None;
                if runs_closures {
                    decoder.update_shape(reading.array_meta(), || self.coder.shape(&self.frame))?;
                }
                Ok(if runs_closures { self.calling() } else { None })
            };
            if let Some((header, bytes)) = fetched.get(index) {
                let _calling = admit(header, decoder)?;
                reading.state.verify(index, header, bytes)?;
                return work(&ChunkRef::to_decompress(bytes)?, decoder);
            }
            if let Some(chunk) = reading.state.known_chunk(index) {
                let _calling = admit(chunk.header(), decoder)?;
                reading.state.verify(index, chunk.header(), chunk.as_bytes())?;
                return work(&chunk, decoder);
            }
            let located = locate(reading, index, buffer);
            if let Ok((located, header, _)) = &located
                && let Some(bytes) = located.in_memory(header)
            {
                let _calling = admit(header, decoder)?;
                reading.state.verify(index, header, bytes)?;
                return work(&ChunkRef::trusted(bytes, header.clone()), decoder);
            }
            let mut located = Some(located);
            let (header, _calling) = reading.state.confirmed(&[index], || {
                let again = || locate(reading, index, buffer);
                let (located, header, known) = located.take().unwrap_or_else(again)?;
                let calling = admit(&header, decoder)?;
                read_located(&located, &header, fetched_ranges, known, decoder, buffer)
                    .map_err(|error| error.with_doing(format!("read chunk {index}")))?;
                Ok((header, calling))
            })?;
            reading.state.verify(index, &header, buffer)?;
            work(&ChunkRef::to_decompress(buffer)?, decoder)
        });
        result.map_err(|error| self.at(error.in_chunk(index)))
    }

    /// Returns whether a chunk has `nbytes` bytes in blocks of `len` bytes, and decompressing one block takes time in
    /// proportion to the block only.
    pub(crate) fn has_separate_blocks(
        &self,
        reading: &Reading<'_>,
        index: usize,
        (nbytes, len): (usize, usize),
    ) -> Result<bool> {
        let header = self.header_of(reading, index)?;
        let mut filters = Filter::of_slots(&header.filters, &header.filters_meta);
        Ok(header.is_compressed()
            && !header.variable_blocks
            && !header.dictionary
            && (header.nbytes as usize, header.block_len() as usize) == (nbytes, len)
            && !Codec::from_code(header.codec()).needs_array()
            && !filters.any(|filter| filter == Filter::Delta || filter.needs_array())
            && !self.coder.has_postfilter()
            && registered(header.codec(), &header.filters) == Closures::None)
    }

    /// Returns whether a chunk stores only a repeated value.
    pub(crate) fn is_special(&self, reading: &Reading<'_>, index: usize) -> Result<bool> {
        self.header_of(reading, index).map(|header| header.special.is_some())
    }

    fn header_of(&self, reading: &Reading<'_>, index: usize) -> Result<Header> {
        let state = &reading.state;
        let header = state.confirmed(&[index], || state.locate(index).map(|(_, header)| header));
        header.map_err(|error| self.at(error.in_chunk(index)))
    }

    /// Returns whether the index of the frame has the same special value for two chunks.
    pub(crate) fn are_equal_special(
        &self,
        reading: &Reading<'_>,
        one: usize,
        other: usize,
    ) -> Result<bool> {
        let offset = |index| {
            let offset = reading.state.offset(index).doing(READ);
            offset.map_err(|error| self.at(error.in_chunk(index)))
        };
        let one = offset(one)?;
        Ok(matches!(one, Offset::Special(_)) && one == offset(other)?)
    }

    /// Returns whether the parts of many chunks are requested at once: the storage has a high latency.
    pub(crate) fn is_remote(&self, reading: &Reading<'_>) -> bool {
        reading.state.store.request_cost() > DEFAULT_REQUEST_COST && !self.coder.has_postfilter()
    }

    /// Reads the needed parts of chunks that are not in memory. Does nothing if there is a postfilter, because it may
    /// need other parts.
    pub(crate) fn fetch(
        &self,
        reading: &Reading<'_>,
        mut wanted: Vec<Wanted>,
        fetched: &mut Fetched,
    ) -> Result<()> {
        fetched.clear();
        if self.coder.has_postfilter() {
            return Ok(());
        }
        wanted.iter_mut().for_each(|each| reading.state.widen(each));
        if reading.state.outline.has_checksums() {
            // Whole chunks can take more memory than planned. Therefore some chunks are omitted here, and are read when
            // they are needed.
            let chunk = reading.state.outline.chunksize().fixed().unwrap_or(0) as usize;
            wanted.truncate((MOST / chunk.max(1)).max(1));
        }
        reading.state.fetch(&wanted, fetched).map_err(|error| self.at(error))
    }

    /// Calls `work` with the numbers below `count`, in ascending ranges, and with the fetched chunks of these numbers.
    ///
    /// `wanted` returns the chunk that a number needs, or `None`. For a storage with a low latency, nothing is fetched,
    /// and `work` is called once.
    pub(crate) fn fetch_ahead(
        &self,
        reading: &Reading<'_>,
        count: usize,
        wanted: impl Fn(usize) -> Option<Wanted> + Sync,
        mut work: impl FnMut(Range<usize>, &Fetched) -> Result<()>,
    ) -> Result<()> {
        // Without an allocation.
        if !self.is_remote(reading) {
            return work(0..count, &NOTHING_FETCHED);
        }
        let add = |number, window: &mut Window<'_>| {
            wanted(number).map_or(Ok(()), |wanted| window.add(0, wanted))
        };
        fetch_ahead(&[(self, reading)], count, add, |range, fetched| {
            work(range, &fetched[0]).map(|()| true)
        })
    }

    pub(crate) fn limits(&self) -> Limits {
        self.last_state().limits
    }

    /// Returns the limit that [`OpenOptions::max_read`](crate::OpenOptions::max_read) has set; `None` if reads of the
    /// handle have the default limits, or no limit.
    pub fn max_read(&self) -> Option<u64> {
        if let MaxRead::Bytes(max) = self.max_read { Some(max) } else { None }
    }

    /// Sets the maximum memory in bytes for the result of one read.
    pub(crate) fn set_max_read(&mut self, bytes: u64) {
        self.max_read = MaxRead::Bytes(bytes);
    }

    /// Checks that one read may allocate `nbytes` bytes.
    pub(crate) fn allow(&self, nbytes: u64) -> Result<(), Reason> {
        let max = self.allowed(nbytes);
        if nbytes <= max {
            return Ok(());
        }
        Err(self.at(Reason::over_max_read(nbytes, max)))
    }

    /// Returns the maximum number of bytes that one read may allocate, if it needs `nbytes` bytes.
    pub(super) fn allowed(&self, nbytes: u64) -> u64 {
        self.max_read.allowed(&self.frame, nbytes)
    }

    /// Checks that decompression may allocate `nbytes` bytes of working memory, in addition to the result.
    pub(crate) fn allow_scratch(&self, nbytes: u64) -> Result<(), Reason> {
        if nbytes <= SCRATCH { Ok(()) } else { self.allow(nbytes) }
    }

    /// Checks the memory for the content of a metalayer. If the caller has set a limit for reads, that limit applies.
    /// Otherwise the limit is [`Limits::metadata`](blosc2_format::Limits::metadata), also for the sum with the `before`
    /// bytes that an iterator has returned, because a program may read all metalayers without knowing them.
    pub(super) fn allow_metadata(&self, header: &Header, before: u64) -> Result<(), Reason> {
        if !matches!(self.max_read, MaxRead::Plausible) {
            return self.allow(header.nbytes.into());
        }
        let held = header.decoding_memory().saturating_add(before);
        let max = self.metadata_allowed(held);
        if held <= max {
            return Ok(());
        }
        Err(self.at(Reason::over_max_read(held, max)))
    }

    /// Returns the maximum number of bytes for the content of a metalayer and its values, if they need `held` bytes.
    pub(super) fn metadata_allowed(&self, held: u64) -> u64 {
        self.max_read.metadata_allowed(&self.frame, held)
    }
}

/// Finds a chunk and reads its header. If the chunk is not in memory, its first bytes are in `buffer`; their number is
/// returned.
// Inlined here and below, reads of small chunks in memory would take 8 % longer.
#[inline(never)]
fn locate<'r>(
    reading: &'r Reading<'_>,
    index: usize,
    buffer: &mut Vec<u8>,
) -> Result<(Located<'r>, Header, usize)> {
    if buffer.len() < FRONT {
        resize(buffer, FRONT).doing(READ)?;
    }
    reading.state.locate_with(index, &mut buffer[..FRONT])
}

/// Reads the parts of a stored chunk that the ranges need, or the whole chunk, into `buffer`, which contains the first
/// `known` bytes of the chunk.
#[inline(never)]
fn read_located(
    located: &Located<'_>,
    header: &Header,
    ranges: Option<&[Range<usize>]>,
    known: usize,
    decoder: &Decoder,
    buffer: &mut Vec<u8>,
) -> Result<()> {
    let needed: Option<Vec<_>> = ranges
        .map(|ranges| ranges.iter().map(|range| decoder.needed(header, range.clone())).collect());
    located.fetch(header, needed.as_deref(), known, buffer)
}

/// Returns whether reading a part of a chunk decompresses all of its data.
fn takes_all(header: &Header, range: &Range<usize>) -> bool {
    let typesize = u32::from(header.typesize.max(1));
    let items = (header.nbytes / typesize * typesize) as usize;
    header.variable_blocks || range.end > items || crate::codec::installed::SPOILS_ITEMS
}

/// The compression parameters in the header of a chunk. Returned by [`SChunk::chunk_info`].
///
/// The header does not contain the compression level.
///
/// ```
/// use blosc2::{CParams, Codec, Filter, SChunk};
///
/// let mut schunk = SChunk::in_memory::<u32>(CParams::new().codec(Codec::Lz4))?;
/// schunk.append(&(0..1000u32).collect::<Vec<_>>())?;
/// let info = schunk.chunk_info(0)?;
/// assert_eq!((info.nbytes, info.codec), (4000, Codec::Lz4));
/// assert_eq!(info.filters(), [Filter::Shuffle]);
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct ChunkInfo {
    /// The decompressed size in bytes.
    pub nbytes: usize,
    /// The compressed size in bytes; 0 for a [special chunk](Special) that is recorded only in the index of the frame.
    pub cbytes: usize,
    /// The block size in bytes; `None` for variable-length blocks.
    pub blocksize: Option<usize>,
    /// The kind of special chunk, which stores no data; `None` for a chunk that stores data.
    pub special: Option<Special>,
    /// Whether the data is stored uncompressed.
    pub is_stored: bool,
    /// The codec. It has no meaning for stored chunks ([`is_stored`](Self::is_stored)) and special chunks.
    pub codec: Codec,
    /// The parameter of the codec (`compcode_meta` in C); its meaning depends on the codec.
    pub codec_meta: u8,
    /// Whether each block is split into `typesize` streams that are compressed separately. After the filter shuffle,
    /// stream 0 contains byte 0 of each item, stream 1 contains byte 1 of each item, and so on. A shorter last block is
    /// not split.
    pub is_split: bool,
    /// Whether the chunk contains a compression dictionary; see
    /// [`CParams::dictionary`](crate::CParams::dictionary).
    pub has_dictionary: bool,
    /// The codes and parameters of the filters.
    slots: [[u8; MAX_FILTERS]; 2],
}

impl ChunkInfo {
    fn new(header: &Header, stored: bool) -> Self {
        Self {
            nbytes: header.nbytes as usize,
            cbytes: if stored { header.cbytes as usize } else { 0 },
            blocksize: (!header.variable_blocks).then(|| header.block_len() as usize),
            special: header.special,
            is_stored: header.is_stored(),
            codec: Codec::from_code(header.codec()),
            codec_meta: header.codec_meta,
            is_split: header.split && header.is_compressed(),
            has_dictionary: header.dictionary && header.is_compressed(),
            slots: [header.filters, header.filters_meta],
        }
    }

    /// Returns the filters, in the order in which they were applied at compression.
    pub fn filters(&self) -> Vec<Filter> {
        let [codes, metas] = &self.slots;
        Filter::of_slots(codes, metas).collect()
    }

    /// Returns the compression ratio: decompressed bytes divided by compressed bytes; 0 if there are no compressed
    /// bytes.
    pub fn cratio(&self) -> f64 {
        if self.cbytes == 0 { 0.0 } else { self.nbytes as f64 / self.cbytes as f64 }
    }
}

/// Checks that a range is inside a chunk: another handle may have changed the chunk since the range was computed.
pub(super) fn check_range(chunk: &ChunkRef<'_>, bytes: &Range<usize>, index: usize) -> Result<()> {
    if bytes.end <= chunk.nbytes() {
        return Ok(());
    }
    let detail = format!("chunk {index} has {} bytes, got the range {bytes:?}", chunk.nbytes());
    Err(Error::new(ErrorKind::OutOfBounds, READ, detail))
}

/// An iterator that decompresses the chunks of a super-chunk. Skipped chunks are not decompressed.
struct Chunks<'a, T> {
    schunk: &'a SChunk,
    range: Range<usize>,
    item: PhantomData<T>,
}

impl<T: Element> Iterator for Chunks<'_, T> {
    type Item = Result<Vec<T>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.range.next().map(|index| self.schunk.decompress_chunk(index))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.range.size_hint()
    }

    fn nth(&mut self, count: usize) -> Option<Self::Item> {
        self.range.nth(count).map(|index| self.schunk.decompress_chunk(index))
    }
}

impl<T: Element> DoubleEndedIterator for Chunks<'_, T> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.range.next_back().map(|index| self.schunk.decompress_chunk(index))
    }
}

impl<T: Element> ExactSizeIterator for Chunks<'_, T> {}

impl<T: Element> FusedIterator for Chunks<'_, T> {}
