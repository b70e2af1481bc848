//! The filters: transformations of a block before compression, undone after decompression.
//!
//! A pipeline has six slots. The filters are applied from the first slot to the last, and undone
//! from the last slot to the first. The code 0 is an empty slot. No filter changes the length of
//! the block.

mod bitshuffle;
mod bytedelta;
mod delta;
mod int_trunc;
mod part;
mod shuffle;
#[cfg(test)]
mod tests;
mod trunc_prec;

use crate::Error;
use crate::chunk::MAX_FILTERS;
pub(crate) use part::Order;

/// Returns the name of a filter, also for known filters that this crate does not support.
fn name(code: u8) -> Option<&'static str> {
    Some(match code {
        0 => "none",
        1 => "shuffle",
        2 => "bitshuffle",
        3 => "delta",
        4 => "trunc_prec",
        32 => "ndcell",
        33 => "ndmean",
        34 => "bytedelta_buggy",
        35 => "bytedelta",
        36 => "int_trunc",
        _ => return None,
    })
}

/// A filter with its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Shuffle { width: usize },
    Bitshuffle,
    Delta,
    TruncPrec { bits: i8 },
    Bytedelta { streams: usize, restart: bool },
    IntTrunc { bits: i8 },
}

impl Step {
    /// Returns whether undoing the filter needs another buffer.
    fn moves(self) -> bool {
        matches!(self, Self::Shuffle { .. } | Self::Bitshuffle)
    }
}

/// The filters of a chunk.
#[derive(Debug, Clone)]
pub(crate) struct Pipeline {
    steps: [Option<Step>; MAX_FILTERS],
    typesize: usize,
    version: u8,
}

impl Pipeline {
    /// Creates the pipeline of these filters and their parameters.
    ///
    /// `typesize` is the typesize of the chunk, from 1 to 255. `schunk_typesize` is the typesize of
    /// the super-chunk. The two values differ if the typesize of the super-chunk is above 255, and
    /// are equal for a chunk without a super-chunk. Only bytedelta uses `schunk_typesize`, if its
    /// parameter is 0. `version` is the version of the chunk format.
    ///
    /// # Errors
    /// [`Error::Unsupported`]: a filter is not supported; the error states its name.
    pub(crate) fn new(
        filters: &[u8; MAX_FILTERS],
        metas: &[u8; MAX_FILTERS],
        typesize: usize,
        schunk_typesize: usize,
        version: u8,
    ) -> Result<Self, Error> {
        let mut steps = [None; MAX_FILTERS];
        for ((step, &code), &meta) in steps.iter_mut().zip(filters).zip(metas) {
            let or = |default| if meta == 0 { default } else { usize::from(meta) };
            *step = match code {
                0 => None,
                1 => Some(Step::Shuffle { width: or(typesize) }).filter(|_| or(typesize) > 1),
                2 => Some(Step::Bitshuffle),
                3 => Some(Step::Delta),
                4 => Some(Step::TruncPrec { bits: meta as i8 }),
                34 => Some(Step::Bytedelta { streams: or(schunk_typesize), restart: true }),
                35 => Some(Step::Bytedelta { streams: or(schunk_typesize), restart: false }),
                36 => Some(Step::IntTrunc { bits: meta as i8 }),
                _ => {
                    let name = name(code).map(|name| format!(" ({name})")).unwrap_or_default();
                    return Err(Error::Unsupported(format!("filter {code}{name}")));
                }
            };
        }
        Ok(Self { steps, typesize: typesize.max(1), version })
    }

    /// Returns whether [`backward`](Self::backward) reads the decoded block from a separate buffer.
    /// Otherwise `backward` works in place, and the codec should decode to `out` directly.
    pub(crate) fn moves(&self) -> bool {
        self.steps.iter().flatten().any(|step| step.moves())
    }

    /// Applies the filters to the block `src` and returns the bytes to compress. The result is
    /// `src` itself if there is nothing to do, otherwise the start of `block` or `scratch`. Both
    /// buffers grow if necessary.
    ///
    /// `reference` is the first block of the chunk before any filter. It is `None` if `src` is that
    /// block, and for every block of a chunk with variable-length blocks.
    ///
    /// # Errors
    /// [`Error::Argument`]: a filter does not support items of this size, or this parameter.
    pub(crate) fn forward<'a>(
        &self,
        src: &'a [u8],
        block: &'a mut Vec<u8>,
        scratch: &'a mut Vec<u8>,
        reference: Option<&[u8]>,
    ) -> Result<&'a [u8], Error> {
        let (mut done, mut free) = (block, scratch);
        let mut untouched = true;
        for &step in self.steps.iter().flatten() {
            let input = if untouched { src } else { &done[..src.len()] };
            let output = resized(free, src.len());
            match step {
                Step::Shuffle { width } => {
                    shuffle::forward(input, output, width, &mut shuffle::buffers());
                }
                Step::Bitshuffle => bitshuffle::forward(input, output, self.typesize),
                Step::Delta => delta::forward(input, output, self.typesize, reference),
                Step::TruncPrec { bits } => {
                    trunc_prec::forward(input, output, self.typesize, bits)?;
                }
                Step::Bytedelta { streams, restart } => {
                    bytedelta::forward(input, output, streams, restart);
                }
                Step::IntTrunc { bits } => int_trunc::forward(input, output, self.typesize, bits)?,
            }
            std::mem::swap(&mut done, &mut free);
            untouched = false;
        }
        Ok(if untouched { src } else { &done[..src.len()] })
    }

    /// Undoes the filters of a block. The result is in `out`, which has the length of the block.
    ///
    /// The output of the codec is at the start of `block` if [`moves`](Self::moves) returns `true`.
    /// Otherwise it is in `out`, and `block` can be empty. `block` and `scratch` are overwritten.
    ///
    /// `reference` is the completely decoded first block of the chunk. It is `None` if this is that
    /// block, and for every block of a chunk with variable-length blocks.
    ///
    /// # Errors
    /// [`Error::Argument`]: `block` is shorter than `out`.
    pub(crate) fn backward(
        &self,
        block: &mut [u8],
        scratch: &mut Vec<u8>,
        out: &mut [u8],
        reference: Option<&[u8]>,
    ) -> Result<(), Error> {
        let len = out.len();
        let mut moves = self.steps.iter().flatten().filter(|step| step.moves()).count();
        let needed = if moves > 0 { len } else { 0 };
        let available = block.len();
        let mut current = block.get_mut(..needed).ok_or_else(|| {
            Error::Argument(format!("a block of {len} bytes was decoded to {available}"))
        })?;
        let mut free = resized(scratch, if moves > 1 { len } else { 0 });
        for &step in self.steps.iter().rev().flatten() {
            if step.moves() {
                moves -= 1;
                let target = if moves == 0 { &mut *out } else { &mut *free };
                match step {
                    Step::Shuffle { width } => {
                        shuffle::backward(current, target, width, &mut shuffle::buffers());
                    }
                    _ => bitshuffle::backward(current, target, self.typesize, self.version),
                }
                std::mem::swap(&mut current, &mut free);
                continue;
            }
            let data = if moves == 0 { &mut *out } else { &mut *current };
            match step {
                Step::Delta => delta::backward(data, self.typesize, reference),
                Step::Bytedelta { streams, restart } => {
                    bytedelta::backward(data, streams, restart);
                }
                _ => {} // lossy filters cannot be undone
            }
        }
        Ok(())
    }
}

/// Returns the first `len` bytes of `buffer`, which grows if necessary.
fn resized(buffer: &mut Vec<u8>, len: usize) -> &mut [u8] {
    if buffer.len() < len {
        buffer.resize(len, 0);
    }
    &mut buffer[..len]
}
