//! The filters: what is done to a block before the codec sees it, and undone afterwards.
//!
//! A pipeline has six slots. They are applied from the first to the last and undone from the last to
//! the first; code 0 is an empty slot. Every filter keeps the length of the block.

mod bitshuffle;
mod bytedelta;
mod delta;
mod int_trunc;
mod shuffle;
#[cfg(test)]
mod tests;
mod trunc_prec;

use crate::Error;
use crate::chunk::MAX_FILTERS;

/// The name of a filter, also of those that are known but cannot be undone here.
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

/// One filter with its parameters.
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
    /// Whether undoing it takes another buffer.
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
    /// With these filters and their metas.
    ///
    /// `typesize` is the chunk's, from 1 to 255. `schunk_typesize` is the super-chunk's, which
    /// differs where it is over 255; for a chunk alone it is the chunk's. Only bytedelta asks for
    /// it, where its meta is 0. `version` is that of the chunk format.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a filter that is not known here, with its name.
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

    /// Whether [`backward`](Self::backward) takes the decoded block from another buffer. Otherwise
    /// it works in place, if it has anything to do: the codec should decode to `out` at once.
    pub(crate) fn moves(&self) -> bool {
        self.steps.iter().flatten().any(|step| step.moves())
    }

    /// Applies the filters to the block `src` and returns what to compress: `src` itself where there
    /// is nothing to do, otherwise the start of `block` or of `scratch`, which grow as needed.
    ///
    /// `reference` is the chunk's first block as it is before any filter. It is `None` when `src` is
    /// that block, and for every block of a chunk with variable-length blocks.
    ///
    /// # Errors
    /// [`Error::Argument`] for a filter that cannot take items of this size, or this meta.
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
            let output = room(free, src.len());
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

    /// Undoes the filters of a block. The result is in `out`, which has the block's length.
    ///
    /// What the codec gave is at the start of `block`, unless [`moves`](Self::moves) says otherwise:
    /// then it is in `out`, and `block` may be empty. `block` and `scratch` are overwritten.
    ///
    /// `reference` is the chunk's first block, wholly decoded. It is `None` when this is that block,
    /// and for every block of a chunk with variable-length blocks.
    ///
    /// # Errors
    /// [`Error::Argument`] when `block` is shorter than `out`.
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
        let mut free = room(scratch, if moves > 1 { len } else { 0 });
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
                _ => {} // what was cut off cannot come back
            }
        }
        Ok(())
    }
}

/// The first `len` bytes of `buffer`, which grows to have them.
fn room(buffer: &mut Vec<u8>, len: usize) -> &mut [u8] {
    if buffer.len() < len {
        buffer.resize(len, 0);
    }
    &mut buffer[..len]
}
