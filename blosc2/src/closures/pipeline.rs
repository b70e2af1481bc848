//! Prefilters and postfilters: closures before and after the pipeline of a context.

use std::ffi::c_int;

use blosc2_sys as sys;

use crate::{Reason, Result};

use super::block::{ChunkPlace, Facts, Place, with_chunk_block};
use super::call::{Call, ChunkFilter, Title, buffers, run_here};

impl ChunkFilter {
    /// Runs the closure on this thread, on each block of `source`. Writes each result to the same offset of `output`.
    pub(crate) fn run(
        &self,
        source: &[u8],
        output: &mut [u8],
        blocks: Blocks<'_>,
    ) -> Result<(), Reason> {
        let len = if blocks.len == 0 { source.len().max(1) } else { blocks.len };
        let Blocks { typesize, variable, chunk, .. } = blocks;
        let facts = Facts { typesize, meta: 0, blocksize: (!variable).then_some(len), chunk };
        for (at, (input, output)) in source.chunks(len).zip(output.chunks_mut(len)).enumerate() {
            let place = Place { index: blocks.index + at, offset: blocks.offset + at * len };
            output.fill(0);
            run_here(self.title, || {
                with_chunk_block(input, output, facts, place, |block| (self.closure)(block))
            })?;
        }
        Ok(())
    }
}

/// How data is divided into blocks, and the position of the first block in its chunk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Blocks<'a> {
    /// The size of the blocks in bytes; the last block can be shorter. 0 means one block that contains all data.
    pub(crate) len: usize,
    /// Whether the chunk has variable-length blocks.
    pub(crate) variable: bool,
    pub(crate) typesize: usize,
    /// The index of the first block.
    pub(crate) index: usize,
    /// The offset of the first block in the data of the chunk, in bytes.
    pub(crate) offset: usize,
    pub(crate) chunk: ChunkPlace<'a>,
}

/// The function that C calls for a prefilter.
pub(crate) unsafe extern "C" fn prefilter(params: *mut sys::blosc2_prefilter_params) -> c_int {
    // SAFETY: C fills the parameters on its stack for this call (blosc2.c, pipeline_forward).
    let params = unsafe { &*params };
    let work = |call: &Call<'_>| {
        call.run(Title::Prefilter, || {
            let closure = call.prefilter.ok_or("the call has none")?;
            let typesize = usize::try_from(params.output_typesize)?;
            let offset = usize::try_from(params.output_offset)?;
            let index = usize::try_from(params.nblock)?;
            let mut context = sys::blosc2_cparams_defaults();
            // SAFETY: the context is the context that processes this block. The function reads fields of the context that
            // do not change during the call (blosc2.c, blosc2_ctx_get_cparams).
            unsafe { sys::blosc2_ctx_get_cparams(params.ctx, &mut context) };
            // `output_size` does not count the bytes after the last whole item.
            let left =
                call.source_len.checked_sub(offset).ok_or("the block is not in the source")?;
            let len = usize::try_from(context.blocksize)?.min(left);
            let len = i32::try_from(len)?;
            // SAFETY: C passes the bytes of the block in the source. The output has the same length: scratch memory of this
            // thread, or the memory of the block in the chunk (blosc2.c, pipeline_forward).
            let (input, output) = unsafe { buffers(params.input, len, params.output, len)? };
            let blocksize = call.blocksize(context.blocksize);
            let facts = Facts { typesize, meta: 0, blocksize, chunk: call.place };
            let place = Place { index, offset };
            with_chunk_block(input, output, facts, place, |block| (closure.closure)(block))?;
            Ok(0)
        })
    };
    // SAFETY: the user data comes from `Slot::preparams`.
    unsafe { Call::at(params.user_data, sys::BLOSC2_ERROR_FILTER_PIPELINE, work) }
}

/// The function that C calls for a postfilter.
pub(crate) unsafe extern "C" fn postfilter(params: *mut sys::blosc2_postfilter_params) -> c_int {
    // SAFETY: C fills the parameters on its stack for this call (blosc2.c, pipeline_backward, blosc_d).
    let params = unsafe { &*params };
    let work = |call: &Call<'_>| {
        call.run(Title::Postfilter, || {
            let closure = call.postfilter.ok_or("the call has none")?;
            let typesize = usize::try_from(params.typesize)?;
            let offset = usize::try_from(params.offset)?;
            let place = Place { index: usize::try_from(params.nblock)?, offset };
            // SAFETY: C passes the decoded block in scratch memory of this thread, and the memory of the block in the
            // destination (blosc2.c, pipeline_backward, blosc_d).
            let (input, output) =
                unsafe { buffers(params.input, params.size, params.output, params.size)? };
            let facts =
                Facts { typesize, meta: 0, blocksize: call.blocksize(0), chunk: call.place };
            with_chunk_block(input, output, facts, place, |block| (closure.closure)(block))?;
            Ok(0)
        })
    };
    // SAFETY: the user data comes from `Slot::postparams`.
    unsafe { Call::at(params.user_data, sys::BLOSC2_ERROR_POSTFILTER, work) }
}
