//! Decompression: in contexts of C, and in Rust for chunks that do not need C.

use std::ffi::c_void;
use std::ops::Range;
use std::sync::Arc;

use blosc2_format::chunk::{Header, PartialChunk, Special};
use blosc2_sys as sys;

use crate::chunk::array_shape::ArrayShape;
use crate::chunk::context::Context;
use crate::chunk::decodable::Accepted;
use crate::chunk::init::init;
use crate::chunk::layout;
use crate::chunk::parts::{Parts, SMALL};
use crate::closures::{self, Blocks, Call, ChunkFilter, ChunkPlace, Closures};
use crate::codec::installed;
use crate::error::DECOMPRESS as DOING;
use crate::support::memory::{AlignedBytes, Pieces, Target};
use crate::{ChunkRef, DParams, Doing, Error, ErrorKind, Reason, Result, Threads};

/// Decompresses chunks, one at a time, with the same parameters.
#[derive(Debug)]
pub(crate) struct Decoder {
    threads: Threads,
    /// The context, and the properties of its last chunk that an installed library uses for the next chunk.
    context: Option<(Context, LastChunk)>,
    /// The last chunk that was checked.
    accepted: Option<Accepted>,
    /// The postfilter. C runs it, except if `postfilters_here` returns true.
    postfilter: Option<ChunkFilter>,
    shape: Option<Arc<ArrayShape>>,
    /// For closures: the index of the chunk in its super-chunk, and the offset of the chunk in the data in bytes.
    place: (Option<usize>, Option<u64>),
    parts: Parts,
}

impl Clone for Decoder {
    /// Creates a decoder with a separate context. The context is created on first use.
    fn clone(&self) -> Self {
        let Self { threads, postfilter, shape, place, .. } = self;
        Self {
            threads: *threads,
            context: None,
            accepted: None,
            postfilter: postfilter.clone(),
            shape: shape.clone(),
            place: *place,
            parts: Parts::default(),
        }
    }
}

impl Decoder {
    pub(super) fn new(params: &DParams) -> Result<Self> {
        Self::with_shape(params, None)
    }

    /// Creates a decoder whose codec and filters may read the shape of an array.
    pub(crate) fn with_shape(params: &DParams, shape: Option<Arc<ArrayShape>>) -> Result<Self> {
        init()?;
        Ok(Self {
            threads: params.threads,
            context: None,
            accepted: None,
            postfilter: params.postfilter.clone(),
            shape,
            place: (None, None),
            parts: Parts::default(),
        })
    }

    /// Sets the position of the chunk that the next calls decompress.
    pub(crate) fn set_place(&mut self, index: usize, start: Option<u64>) {
        self.place = (Some(index), start);
    }

    /// Replaces the shape of the array if the shape was created from another metalayer.
    pub(crate) fn update_shape(
        &mut self,
        meta: Option<&[u8]>,
        shape: impl FnOnce() -> Result<Arc<ArrayShape>>,
    ) -> Result<()> {
        if self.shape.as_ref().is_some_and(|shape| shape.is_of(meta)) {
            return Ok(());
        }
        // The context has the address of the old shape.
        self.context = None;
        self.accepted = None;
        self.shape = Some(shape()?);
        Ok(())
    }

    #[cfg(test)]
    pub(super) fn has_context(&self) -> bool {
        self.context.is_some()
    }

    /// Returns the number of parts of blocks that were decompressed alone.
    #[cfg(test)]
    pub(super) fn part_count(&self) -> usize {
        self.parts.count
    }

    pub(crate) fn has_postfilter(&self) -> bool {
        self.postfilter.is_some()
    }

    /// Decompresses a whole chunk to `target`, which has to be as long as the data of the chunk.
    pub(crate) fn decompress<'t>(
        &mut self,
        chunk: &ChunkRef<'_>,
        target: Target<'t>,
    ) -> Result<&'t mut [u8]> {
        if chunk.nbytes() != target.len() {
            return Err(wrong_len(chunk, target.len()));
        }
        self.range(chunk, 0, target)
    }

    /// Decompresses a whole compressed chunk.
    fn whole<'t>(&mut self, chunk: &ChunkRef<'_>, mut target: Target<'t>) -> Result<&'t mut [u8]> {
        if !target.is_empty() && self.is_small(chunk) {
            self.check(chunk)?;
            if let Some(width) = self.accepted.as_ref().and_then(|accepted| accepted.shuffle_width)
                && self.parts.small(chunk, width, &mut target)
            {
                // SAFETY: the target is filled.
                return Ok(unsafe { target.assume_init() });
            }
        }
        // Delta is undone in place on integers, which requires alignment.
        if chunk.uses_delta() && (installed::READS_TARGET || !target.is_aligned()) {
            let mut data = AlignedBytes::zeroed(chunk.nbytes()).doing(DOING)?;
            return Ok(target.write(self.run(chunk, data.as_target())?));
        }
        self.run(chunk, target)
    }

    /// Returns whether preparing a context of C takes longer than decompressing the chunk.
    fn is_small(&self, chunk: &ChunkRef<'_>) -> bool {
        let has_one_block = || chunk.header().block_len() as usize == chunk.nbytes();
        chunk.nbytes() <= SMALL
            && self.postfilter.is_none()
            && (self.threads.count() == 1 || has_one_block())
    }

    /// Decompresses the blocks for which `wanted` is true. `target` has to be as long as the data of the chunk. Each
    /// block is written to its offset in the data; other bytes of `target` are unchanged.
    pub(crate) fn decompress_masked(
        &mut self,
        chunk: &ChunkRef<'_>,
        wanted: &[bool],
        target: &mut [u8],
    ) -> Result<()> {
        if chunk.nbytes() != target.len() {
            return Err(wrong_len(chunk, target.len()));
        }
        if wanted.len() != chunk.nblocks() {
            let (expected, found) = (chunk.nblocks(), wanted.len());
            let detail = format!("the chunk has {expected} blocks, the mask has {found} flags");
            return Err(Error::new(ErrorKind::InvalidArgument, DOING, detail));
        }
        if !wanted.contains(&true) {
            return Ok(());
        }
        if !wanted.contains(&false) {
            return self.decompress(chunk, Target::of(target)).map(|_| ());
        }
        let all = 0..chunk.nbytes();
        if self.postfilters_here(chunk) {
            let keep = |block: Range<usize>, data: &[u8]| target[block].copy_from_slice(data);
            return self.postfilter_here(chunk, &all, |block| wanted[block], keep);
        }
        let each = |work: &mut dyn FnMut(usize, Range<usize>) -> Result<()>| {
            each_block(chunk, &all, |block, range| match wanted[block] {
                true => work(block, range),
                false => Ok(()),
            })
        };
        if !chunk.header().is_compressed() {
            return each(&mut |_, range| {
                uncompressed(chunk, range.start, Target::of(&mut target[range])).map(|_| ())
            });
        }
        if chunk.has_variable_blocks() && !installed::SPOILS_BLOCKS {
            return each(&mut |block, range| {
                self.variable_block(chunk, block, Target::of(&mut target[range])).map(|_| ())
            });
        }
        let mut skipped: Vec<bool> = wanted.iter().map(|wanted| !wanted).collect();
        // With delta, all other blocks need the first block.
        if chunk.uses_delta() || chunk.has_variable_blocks() {
            let mut data = AlignedBytes::zeroed(chunk.nbytes()).doing(DOING)?;
            self.run_in_c(chunk, &mut data.as_target(), Some(&mut skipped))?;
            return each(&mut |_, range| {
                target[range.clone()].copy_from_slice(&data.as_slice()[range]);
                Ok(())
            });
        }
        self.run_in_c(chunk, &mut Target::of(target), Some(&mut skipped))
    }

    /// Decompresses `target.len()` bytes from the offset `start` on. The range has to be inside the data. A small part
    /// of a block is decompressed without the rest of the block: errors in a damaged chunk may not be detected, and the
    /// part may be wrong.
    pub(crate) fn range<'t>(
        &mut self,
        chunk: &ChunkRef<'_>,
        start: usize,
        target: Target<'t>,
    ) -> Result<&'t mut [u8]> {
        let (stop, span) = (start + target.len(), start..start + target.len());
        let is_whole = target.len() == chunk.nbytes();
        if target.is_empty() && !is_whole {
            return Ok(target.write(&[]));
        }
        // Returns the part of a block that is in the range.
        let inside = |block: Range<usize>| {
            start.max(block.start) - block.start..stop.min(block.end) - block.start
        };
        if self.postfilters_here(chunk) {
            let mut pieces = Pieces::of(target);
            let keep = |block: Range<usize>, data: &[u8]| pieces.push(&data[inside(block)]);
            self.postfilter_here(chunk, &span, |_| true, keep)?;
            return Ok(pieces.finish());
        }
        if !chunk.header().is_compressed() {
            return uncompressed(chunk, start, target);
        }
        if is_whole {
            return self.whole(chunk, target);
        }
        let target = match self.partial(chunk, target.len(), 1)? {
            None => target,
            Some(partial) => {
                let target = target.repeat(&[0], 0);
                if self.range_in_parts(chunk, &partial, start, target) {
                    return Ok(target);
                }
                Target::of(target)
            }
        };
        if chunk.has_variable_blocks() && !installed::SPOILS_BLOCKS {
            let mut pieces = Pieces::of(target);
            each_block(chunk, &span, |block, range| {
                let mut data = AlignedBytes::zeroed(range.len()).doing(DOING)?;
                pieces.push(&self.variable_block(chunk, block, data.as_target())?[inside(range)]);
                Ok(())
            })?;
            return Ok(pieces.finish());
        }
        // C decompresses whole items.
        let size = chunk.typesize();
        let items = chunk.nbytes() / size * size;
        let (low, high) = (start / size * size, stop.next_multiple_of(size));
        if chunk.has_variable_blocks() || high > items || installed::SPOILS_ITEMS {
            return self.blocks_of(chunk, start, target);
        }
        // Delta is undone on integers, which requires aligned memory.
        if (low, high) == (start, stop) && !chunk.uses_delta() {
            return self.items(chunk, start, target);
        }
        let mut wider = AlignedBytes::zeroed(high - low).doing(DOING)?;
        let wider = self.items(chunk, low, wider.as_target())?;
        Ok(target.write(&wider[start - low..stop - low]))
    }

    /// Decompresses the pieces of a block that `each` passes to its argument, as ranges of bytes in the block, to the
    /// same places of `block`. Other bytes of `block` can change. `start` is the offset of the block in the data.
    pub(crate) fn pieces(
        &mut self,
        chunk: &ChunkRef<'_>,
        start: usize,
        each: impl Fn(&mut dyn FnMut(Range<usize>)),
        block: &mut [u8],
    ) -> Result<()> {
        let (mut bytes, mut count, mut first, mut end) = (0, 0, usize::MAX, 0);
        each(&mut |piece| {
            (bytes, count) = (bytes + piece.len(), count + 1);
            (first, end) = (first.min(piece.start), end.max(piece.end));
        });
        let len = chunk.header().block_len() as usize;
        if chunk.header().is_compressed()
            && let Some(partial) = self.partial(chunk, bytes, count)?
        {
            if let Some(found) = self.parts.block(&partial, start / len, first..end) {
                each(&mut |piece| found.copy(piece.start, &mut block[piece]));
                self.parts.trim(len);
                return Ok(());
            }
            self.parts.release();
        }
        self.range(chunk, start, Target::of(block)).map(|_| ())
    }

    /// Returns a compressed chunk, if parts of its blocks can be decompressed, and this is worthwhile for parts of
    /// `bytes` bytes in `pieces` pieces.
    fn partial<'c>(
        &mut self,
        chunk: &'c ChunkRef<'_>,
        bytes: usize,
        pieces: usize,
    ) -> Result<Option<PartialChunk<'c>>> {
        // The typesize of a super-chunk, which bytedelta uses, can differ from that of a chunk.
        let typesize = self.shape.as_ref().map(|shape| shape.typesize());
        let other = chunk.needs_typesize() && typesize != Some(chunk.typesize());
        let len = chunk.header().block_len() as usize;
        if self.postfilter.is_some() || other || !Parts::pay(len, bytes, pieces) {
            return Ok(None);
        }
        let Some(partial) = Parts::chunk(chunk) else { return Ok(None) };
        self.check(chunk)?;
        Ok(Some(partial))
    }

    /// Decompresses a range of the data, block by block. Returns whether this was possible.
    fn range_in_parts(
        &mut self,
        chunk: &ChunkRef<'_>,
        partial: &PartialChunk<'_>,
        start: usize,
        mut target: &mut [u8],
    ) -> bool {
        let len = chunk.header().block_len() as usize;
        let mut at = start;
        while !target.is_empty() {
            let (block, from) = (at / len, at % len);
            let (piece, rest) = target.split_at_mut(target.len().min(len - from));
            let Some(found) = self.parts.block(partial, block, from..from + piece.len()) else {
                self.parts.release();
                return false;
            };
            found.copy(from, piece);
            self.parts.trim(len);
            (at, target) = (at + piece.len(), rest);
        }
        true
    }

    /// Returns the range of the data that [`range`](Self::range) has to decompress for `range`: a postfilter needs
    /// whole blocks.
    pub(crate) fn needed(&self, header: &Header, range: Range<usize>) -> Range<usize> {
        let (nbytes, len) = (header.nbytes as usize, header.block_len().max(1) as usize);
        if self.postfilter.is_none() || header.variable_blocks || range.is_empty() {
            return range;
        }
        range.start / len * len..range.end.next_multiple_of(len).min(nbytes)
    }

    /// Decompresses a block to `target`, which has to be as long as the block.
    pub(crate) fn block<'t>(
        &mut self,
        chunk: &ChunkRef<'_>,
        block: usize,
        target: Target<'t>,
    ) -> Result<&'t mut [u8]> {
        // The range of the block is computed only if it is needed.
        if chunk.has_variable_blocks() && !installed::SPOILS_BLOCKS && self.postfilter.is_none() {
            return self.variable_block(chunk, block, target);
        }
        match chunk.block_range(block)? {
            Some(range) if range.len() == target.len() => self.range(chunk, range.start, target),
            _ => Err(wrong_len(chunk, target.len())),
        }
    }

    fn variable_block<'t>(
        &mut self,
        chunk: &ChunkRef<'_>,
        block: usize,
        target: Target<'t>,
    ) -> Result<&'t mut [u8]> {
        let (block, expected) = (to_c(block)?, to_c(target.len())?);
        let (mut memory, mut len) = (std::ptr::null_mut(), 0);
        let result = self.in_c(chunk, expected, |context, source, source_len| {
            // SAFETY: guaranteed by `in_c`. `memory` and `len` are writable. C checks whether the block exists. It
            // returns newly allocated memory with the block, or no memory if there is an error (blosc2.c,
            // decompress_single_vlblock).
            unsafe {
                sys::blosc2_vldecompress_block_ctx(
                    context,
                    source,
                    source_len,
                    block,
                    &mut memory,
                    &mut len,
                )
            }
        });
        let filled = result.and_then(|()| came_out(len, expected)).and_then(|()| {
            if memory.is_null() {
                return Err(Error::new(ErrorKind::Library, DOING, "C-Blosc2 returned no block"));
            }
            // SAFETY: C has returned and written `len` bytes. This is the length of the target.
            let block = unsafe { std::slice::from_raw_parts(memory, target.len()) };
            Ok(target.write(block))
        });
        // SAFETY: the memory comes from C's malloc, or is null. It is freed once.
        unsafe { libc::free(memory.cast()) };
        filled
    }

    /// Returns whether the postfilter runs in Rust. Otherwise, C runs it on all threads.
    ///
    /// C does not run a postfilter on chunks that need no decompression. For variable-length blocks, C passes wrong
    /// offsets.
    fn postfilters_here(&self, chunk: &ChunkRef<'_>) -> bool {
        let in_c = chunk.header().is_compressed() && !chunk.has_variable_blocks();
        self.postfilter.is_some() && (installed::BREAKS_POSTFILTERS || !in_c)
    }

    /// Runs the postfilter in Rust, on the blocks that overlap `span` and for which `wanted` is true. Passes the output
    /// to `keep`, in the order of the blocks.
    fn postfilter_here(
        &mut self,
        chunk: &ChunkRef<'_>,
        span: &Range<usize>,
        wanted: impl Fn(usize) -> bool,
        mut keep: impl FnMut(Range<usize>, &[u8]),
    ) -> Result<()> {
        let Some(postfilter) = self.postfilter.take() else { return Ok(()) };
        // While `self.postfilter` is `None`, C decompresses without a postfilter.
        let data = chunk.header().is_compressed().then(|| self.aligned(chunk)).transpose();
        self.postfilter = Some(postfilter.clone());
        let data = data?;
        each_block(chunk, span, |index, block| {
            if !wanted(index) {
                return Ok(());
            }
            let mut made = AlignedBytes::zeroed(block.len()).doing(DOING)?;
            let place = Blocks {
                len: block.len(),
                variable: chunk.has_variable_blocks(),
                typesize: chunk.typesize(),
                index,
                offset: block.start,
                chunk: chunk_place(self.shape.as_ref(), &self.place),
            };
            let mut values;
            let input = match &data {
                Some(data) => &data.as_slice()[block.clone()],
                None => {
                    values = AlignedBytes::zeroed(block.len()).doing(DOING)?;
                    &*uncompressed(chunk, block.start, values.as_target())?
                }
            };
            postfilter.run(input, made.as_mut_slice(), place).doing(DOING)?;
            keep(block, made.as_slice());
            Ok(())
        })
    }

    /// Decompresses all blocks that overlap the range, and copies the range.
    fn blocks_of<'t>(
        &mut self,
        chunk: &ChunkRef<'_>,
        start: usize,
        target: Target<'t>,
    ) -> Result<&'t mut [u8]> {
        // Ensures that the table of blocks is inside the chunk: there are fewer blocks than bytes of the chunk.
        self.check(chunk)?;
        let stop = start + target.len();
        let len = chunk.header().block_len() as usize;
        let mut skipped: Vec<bool> = (0..chunk.nblocks())
            .map(|block| block * len >= stop || start >= (block + 1) * len)
            .collect();
        let mut data = AlignedBytes::zeroed(chunk.nbytes()).doing(DOING)?;
        self.run_in_c(chunk, &mut data.as_target(), Some(&mut skipped))?;
        Ok(target.write(&data.as_slice()[start..stop]))
    }

    /// Decompresses a range of whole items in C.
    fn items<'t>(
        &mut self,
        chunk: &ChunkRef<'_>,
        start: usize,
        mut target: Target<'t>,
    ) -> Result<&'t mut [u8]> {
        let (from, len) = (to_c(start)?, to_c(target.len())?);
        self.in_c(chunk, len, |context, source, source_len| {
            let to = target.as_mut_ptr().cast();
            // SAFETY: guaranteed by `in_c`. The target is as long as the range. C checks that the range is inside the
            // data, and that block starts and streams are inside the chunk (blosc2.c, blosc2_getitem_bytes_ctx,
            // _blosc_getitem). C uses only the caller's thread.
            unsafe {
                sys::blosc2_getitem_bytes_ctx(context, source, source_len, from, len, to, len)
            }
        })?;
        // SAFETY: C returns the number of bytes that it has written from the start of the target on (blosc2.c,
        // _blosc_getitem). `in_c` has checked that this number is the length of the target.
        Ok(unsafe { target.assume_init() })
    }

    /// Decompresses the whole chunk to aligned memory.
    fn aligned(&mut self, chunk: &ChunkRef<'_>) -> Result<AlignedBytes> {
        let mut data = AlignedBytes::zeroed(chunk.nbytes()).doing(DOING)?;
        self.decompress(chunk, data.as_target())?;
        Ok(data)
    }

    /// Decompresses all blocks in C.
    fn run<'t>(&mut self, chunk: &ChunkRef<'_>, mut target: Target<'t>) -> Result<&'t mut [u8]> {
        self.run_in_c(chunk, &mut target, None)?;
        // SAFETY: without a mask, C writes all blocks or returns an error (blosc2.c, serial_blosc, blosc_d). There is
        // no mask from an earlier call: C drops a mask at the end of the call (blosc2_decompress_ctx), and `run_in_c`
        // drops the context if the call fails earlier.
        Ok(unsafe { target.assume_init() })
    }

    /// Decompresses all blocks, or at least the blocks that are not skipped.
    fn run_in_c(
        &mut self,
        chunk: &ChunkRef<'_>,
        target: &mut Target<'_>,
        skipped: Option<&mut [bool]>,
    ) -> Result<()> {
        if target.is_empty() {
            return self.check(chunk);
        }
        let all = installed::MASKS_TOO_MUCH && (chunk.uses_delta() || chunk.has_variable_blocks());
        let mut skipped = skipped.filter(|_| !all);
        let count = to_c(skipped.as_ref().map_or(0, |skipped| skipped.len()))?;
        let len = to_c(target.len())?;
        self.in_c(chunk, len, |context, source, source_len| {
            if let Some(skipped) = &mut skipped {
                // SAFETY: C copies the `count` flags (blosc2.c, blosc2_set_maskout), and uses the copy for the next
                // decompression, which follows below. If the decompression fails, the context is dropped.
                let code = unsafe { sys::blosc2_set_maskout(context, skipped.as_mut_ptr(), count) };
                if code < 0 {
                    return code;
                }
            }
            let to = target.as_mut_ptr().cast();
            // SAFETY: guaranteed by `in_c`. The target is as long as the data. C checks that block starts and streams
            // are inside the chunk, and that the output is inside the target (blosc2.c,
            // initialize_context_decompression, blosc_d).
            unsafe { sys::blosc2_decompress_ctx(context, source, source_len, to, len) }
        })
    }

    /// Decompresses a chunk in C. `work` receives a context, the bytes of the chunk, and the length of the chunk.
    /// `work` returns the number of bytes that C returned, which has to be `expected`.
    ///
    /// This function guarantees to `work`: the chunk is as long as its header declares, the chunk is not lazy, and its
    /// codec and filters are available. After an error, the context is dropped.
    fn in_c(
        &mut self,
        chunk: &ChunkRef<'_>,
        expected: i32,
        work: impl FnOnce(*mut sys::blosc2_context, *const c_void, i32) -> i32,
    ) -> Result<()> {
        self.check(chunk)?;
        let (source, source_len) = (chunk.as_bytes().as_ptr().cast(), to_c(chunk.cbytes())?);
        self.prepare_context(chunk.header())?;
        let Self { context: kept, postfilter, shape, place, .. } = self;
        let Some((context, last)) = kept else { unreachable!("the context was prepared") };
        let place = chunk_place(shape.as_ref(), place);
        let call = Call::decompressing(chunk.header(), postfilter.as_ref(), place);
        let written = context.during(&call, |context| work(context, source, source_len));
        *last = last_chunk_of(chunk.header());
        let finished = call.check().doing(DOING).and_then(|()| came_out(written, expected));
        if finished.is_err() {
            *kept = None;
        }
        finished
    }

    /// Checks that C can decompress the chunk with this decoder.
    fn check(&mut self, chunk: &ChunkRef<'_>) -> Result<()> {
        let typesize = self.shape.as_ref().map(|shape| shape.typesize());
        chunk.check_decodable(typesize, &mut self.accepted).doing(DOING)?;
        if self.accepted.as_ref().is_some_and(|accepted| !accepted.needs_array) {
            return Ok(());
        }
        let is_array = self.shape.as_ref().is_some_and(|shape| shape.is_array());
        let detail = if chunk.needs_shape() && !is_array {
            "it needs the shape of its array; open it as an array"
        } else if chunk.needs_typesize() && self.shape.is_none() {
            "its bytedelta needs the typesize of its super-chunk"
        } else {
            return Ok(());
        };
        Err(Error::new(ErrorKind::Unsupported, DOING, detail))
    }

    /// Creates a context for a chunk, if the context of the last chunk is not suitable.
    fn prepare_context(&mut self, header: &Header) -> Result<()> {
        let threads = closures::threads(self.threads.for_c());
        let closures = match self.postfilter.is_some() {
            true => Closures::Around,
            false => closures::registered(header.codec(), &header.filters),
        };
        let kept = last_chunk_of(header);
        let suits = |(context, last): &(Context, _)| {
            context.suits(threads, closures) && (!installed::KEEPS_THE_LAST_CHUNK || *last == kept)
        };
        if !self.context.as_ref().is_some_and(suits) {
            self.context = None;
            let shape = self.shape.clone();
            let context = Context::for_decompression(threads, shape, closures).doing(DOING)?;
            self.context = Some((context, kept));
        }
        self.context.as_ref().map_or(Ok(()), |(context, _)| context.check().doing(DOING))
    }
}

/// Returns the position of the chunk that closures receive.
fn chunk_place<'a>(
    shape: Option<&'a Arc<ArrayShape>>,
    &(index, start): &(Option<usize>, Option<u64>),
) -> ChunkPlace<'a> {
    ChunkPlace { index, start, array: shape.and_then(|shape| shape.geometry()) }
}

/// Runs `work` with the index and the range of each block that overlaps `span`.
fn each_block(
    chunk: &ChunkRef<'_>,
    span: &Range<usize>,
    mut work: impl FnMut(usize, Range<usize>) -> Result<()>,
) -> Result<()> {
    let Some(len) = chunk.blocksize() else {
        let layout = layout(chunk.as_bytes())?;
        let mut start = 0;
        for block in 0..chunk.nblocks() {
            let range = start..start + layout.block_size(block);
            start = range.end;
            if range.start < span.end && span.start < range.end {
                work(block, range)?;
            }
        }
        return Ok(());
    };
    let first = span.start / len.max(1);
    for (block, start) in (first..).zip((first * len..span.end).step_by(len.max(1))) {
        work(block, start..chunk.nbytes().min(start + len))?;
    }
    Ok(())
}

/// Returns the bytes of an item of a chunk of NaNs. They are little-endian on all platforms, because the chunk does not
/// store the byte order of its writer.
pub(crate) fn nan(header: &Header) -> Result<&'static [u8]> {
    const SINGLE: [u8; 4] = f32::NAN.to_le_bytes();
    const DOUBLE: [u8; 8] = f64::NAN.to_le_bytes();
    match header.typesize {
        4 => Ok(&SINGLE),
        8 => Ok(&DOUBLE),
        size => {
            let detail = format!("it holds NaN as items of {size} bytes, expected 4 or 8");
            Err(Error::new(ErrorKind::InvalidData, DOING, detail))
        }
    }
}

/// Fills `target` with the data of an uncompressed or special chunk, from the offset `start` on.
fn uncompressed<'t>(
    chunk: &ChunkRef<'_>,
    start: usize,
    target: Target<'t>,
) -> Result<&'t mut [u8]> {
    if target.is_empty() {
        return Ok(target.write(&[]));
    }
    Ok(match chunk.header().special {
        // Parsing has checked that the lengths agree.
        None => {
            let len = target.len();
            target.write(&chunk.body()[start..start + len])
        }
        Some(Special::Zeros | Special::Uninit) => target.repeat(&[0], 0),
        Some(Special::Nan) => target.repeat(nan(chunk.header())?, start),
        Some(Special::Value) => target.repeat(chunk.body(), start),
    })
}

/// Checks the return value of C after decompression.
fn came_out(written: i32, expected: i32) -> Result<()> {
    match written {
        code if code < 0 => Err(Reason::from_code(code).doing(DOING)),
        written if written == expected => Ok(()),
        written => {
            let detail = format!("it decompressed to {written} bytes, expected {expected}");
            Err(Error::new(ErrorKind::InvalidData, DOING, detail))
        }
    }
}

fn wrong_len(chunk: &ChunkRef<'_>, len: usize) -> Error {
    let detail = format!("it holds {} bytes, the target has {len}", chunk.nbytes());
    Error::new(ErrorKind::InvalidArgument, DOING, detail)
}

fn to_c(len: usize) -> Result<i32> {
    i32::try_from(len)
        .map_err(|_| Error::new(ErrorKind::TooLarge, DOING, "it is larger than 2 GiB"))
}

/// The properties that an installed library takes over from the last chunk of a context without a check. The block
/// length and the typesize determine the size of the scratch memory. The last field states whether the header is
/// extended: only such a header contains the parameters of filters.
type LastChunk = (u32, u8, bool);

fn last_chunk_of(header: &Header) -> LastChunk {
    (header.block_len(), header.typesize, header.extended)
}
