//! Memory for calls of C: aligned, or uninitialized.

use std::mem::MaybeUninit;
use std::ops::Range;

use crate::element::{as_bytes, as_bytes_mut, zeroed};
use crate::{Error, ErrorKind, Result};

/// A copy of bytes, aligned for every number type.
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

    /// Returns the copy as a target to fill.
    pub(crate) fn as_target(&mut self) -> Target<'_> {
        Target::of(self.as_mut_slice())
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut as_bytes_mut(&mut self.words)[..self.len]
    }
}

/// Resizes a buffer; returns an error instead of aborting if there is not enough memory. New bytes are zeros.
pub(crate) fn resize(bytes: &mut Vec<u8>, len: usize, doing: &str) -> Result<()> {
    bytes.try_reserve(len.saturating_sub(bytes.len())).map_err(|error| {
        Error::new(ErrorKind::OutOfMemory, doing, format_args!("{len} bytes: {error}"))
    })?;
    bytes.resize(len, 0);
    Ok(())
}

/// Memory to fill, which may be uninitialized; only initialized bytes are ever written to it.
#[derive(Debug)]
pub(crate) struct Target<'a>(&'a mut [MaybeUninit<u8>]);

impl<'a> Target<'a> {
    pub(crate) fn new(memory: &'a mut [MaybeUninit<u8>]) -> Self {
        Self(memory)
    }

    /// Creates a target of initialized bytes, which stay initialized.
    pub(crate) fn of(bytes: &'a mut [u8]) -> Self {
        let (start, len) = (bytes.as_mut_ptr().cast(), bytes.len());
        // SAFETY: the same memory, for the same lifetime. No method writes uninitialized bytes, and the writes through
        // `as_mut_ptr` are those of C, which knows no such bytes.
        Self(unsafe { std::slice::from_raw_parts_mut(start, len) })
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether a number of any type may be stored at its start.
    pub(crate) fn is_aligned(&self) -> bool {
        self.0.as_ptr().align_offset(align_of::<u64>()) == 0
    }

    /// Returns the pointer to which C writes initialized bytes.
    pub(crate) fn as_mut_ptr(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }

    pub(crate) fn part(&mut self, range: Range<usize>) -> Target<'_> {
        Target(&mut self.0[range])
    }

    /// Copies bytes of the same length.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        assert_eq!(self.0.len(), bytes.len());
        // SAFETY: initialized bytes may be treated as bytes that may be uninitialized.
        let bytes = unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len()) };
        self.0.copy_from_slice(bytes);
    }

    /// Writes a value repeatedly, as if the repetition had begun `start` bytes earlier.
    pub(crate) fn repeat(&mut self, value: &[u8], start: usize) {
        let first = self.0.len().min(value.len());
        for (at, byte) in self.0[..first].iter_mut().enumerate() {
            byte.write(value[(start + at) % value.len()]);
        }
        // The filled part is a whole number of values, except at the end.
        let mut done = first;
        while done < self.0.len() {
            let more = done.min(self.0.len() - done);
            self.0.copy_within(..more, done);
            done += more;
        }
    }
}
