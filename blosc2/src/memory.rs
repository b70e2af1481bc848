//! Memory that goes into C and comes out: aligned, or not initialised yet.

use std::mem::MaybeUninit;
use std::ops::Range;

use crate::element::{as_bytes, as_bytes_mut, zeroed};
use crate::{Error, ErrorKind, Result};

/// A copy of bytes, aligned for every number.
pub(crate) struct AlignedBytes {
    words: Vec<u64>,
    len: usize,
}

impl AlignedBytes {
    pub(crate) fn zeroed(len: usize, doing: &str) -> Result<Self> {
        Ok(Self { words: zeroed(len.div_ceil(8), doing)?, len })
    }

    pub(crate) fn of(bytes: &[u8], doing: &str) -> Result<Self> {
        let mut copy = Self::zeroed(bytes.len(), doing)?;
        copy.as_mut_slice().copy_from_slice(bytes);
        Ok(copy)
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        &as_bytes(&self.words)[..self.len]
    }

    /// The copy, to be filled.
    pub(crate) fn as_target(&mut self) -> Target<'_> {
        Target::of(self.as_mut_slice())
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut as_bytes_mut(&mut self.words)[..self.len]
    }
}

/// Makes a buffer this long, without an abort where there is not so much memory; new bytes are zeros.
pub(crate) fn resize(bytes: &mut Vec<u8>, len: usize, doing: &str) -> Result<()> {
    bytes.try_reserve(len.saturating_sub(bytes.len())).map_err(|error| {
        Error::new(ErrorKind::OutOfMemory, doing, format_args!("{len} bytes: {error}"))
    })?;
    bytes.resize(len, 0);
    Ok(())
}

/// Memory to be filled, which need not be initialised; nothing but initialised bytes is ever written to it.
#[derive(Debug)]
pub(crate) struct Target<'a>(&'a mut [MaybeUninit<u8>]);

impl<'a> Target<'a> {
    pub(crate) fn new(memory: &'a mut [MaybeUninit<u8>]) -> Self {
        Self(memory)
    }

    /// The same for bytes that are initialised, and stay so.
    pub(crate) fn of(bytes: &'a mut [u8]) -> Self {
        let (start, len) = (bytes.as_mut_ptr().cast(), bytes.len());
        // SAFETY: the same memory, for as long. No method writes uninitialised bytes, and what others
        // write through `as_mut_ptr` is C's, which knows no such bytes.
        Self(unsafe { std::slice::from_raw_parts_mut(start, len) })
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a number of any type may lie at its start.
    pub(crate) fn is_aligned(&self) -> bool {
        self.0.as_ptr().align_offset(align_of::<u64>()) == 0
    }

    /// Where C writes initialised bytes.
    pub(crate) fn as_mut_ptr(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }

    pub(crate) fn part(&mut self, range: Range<usize>) -> Target<'_> {
        Target(&mut self.0[range])
    }

    /// Copies bytes, as many as there is room for.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        assert_eq!(self.0.len(), bytes.len());
        // SAFETY: bytes that are initialised may be taken for bytes that need not be.
        let bytes = unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len()) };
        self.0.copy_from_slice(bytes);
    }

    /// Writes a value again and again, as if that had begun `start` bytes before.
    pub(crate) fn repeat(&mut self, value: &[u8], start: usize) {
        let first = self.0.len().min(value.len());
        for (at, byte) in self.0[..first].iter_mut().enumerate() {
            byte.write(value[(start + at) % value.len()]);
        }
        // What is there is a whole number of values, but for the last time.
        let mut done = first;
        while done < self.0.len() {
            let more = done.min(self.0.len() - done);
            self.0.copy_within(..more, done);
            done += more;
        }
    }
}
