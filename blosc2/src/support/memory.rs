//! Memory for calls of C: aligned, or uninitialized.

use std::mem::MaybeUninit;
use std::ptr;

use crate::item::element::{as_bytes, as_bytes_mut, zeroed};
use crate::{ErrorKind, Reason, Result};

/// A copy of bytes, aligned for every number type.
pub(crate) struct AlignedBytes {
    words: Vec<u64>,
    len: usize,
}

impl AlignedBytes {
    pub(crate) fn zeroed(len: usize) -> Result<Self, Reason> {
        Ok(Self { words: zeroed(len.div_ceil(8))?, len })
    }

    pub(crate) fn of(bytes: &[u8]) -> Result<Self, Reason> {
        let mut copy = Self::zeroed(bytes.len())?;
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

/// Reserves capacity for `more` items; returns an error instead of aborting if there is not enough memory.
pub(crate) fn reserve<T>(items: &mut Vec<T>, more: usize) -> Result<(), Reason> {
    items.try_reserve(more).map_err(|error| {
        let len = more.saturating_mul(size_of::<T>());
        Reason::new(ErrorKind::OutOfMemory, format_args!("{len} bytes: {error}"))
    })
}

/// Resizes a buffer; returns an error instead of aborting if there is not enough memory. New bytes are zeros.
pub(crate) fn resize(bytes: &mut Vec<u8>, len: usize) -> Result<(), Reason> {
    reserve(bytes, len.saturating_sub(bytes.len()))?;
    bytes.resize(len, 0);
    Ok(())
}

/// Memory to fill, which may be uninitialized. Only initialized bytes are ever written to it.
///
/// A function that fills a target completely returns its bytes: the returned slice is the proof that the bytes are
/// initialized.
#[derive(Debug)]
pub(crate) struct Target<'a>(&'a mut [MaybeUninit<u8>]);

impl<'a> Target<'a> {
    pub(crate) fn new(memory: &'a mut [MaybeUninit<u8>]) -> Self {
        Self(memory)
    }

    /// Creates a target of initialized bytes, which stay initialized.
    pub(crate) fn of(bytes: &'a mut [u8]) -> Self {
        let (start, len) = (bytes.as_mut_ptr().cast(), bytes.len());
        // SAFETY: the same memory, for the same lifetime. No method writes uninitialized bytes. Only C writes through
        // `as_mut_ptr`, and C writes initialized bytes.
        Self(unsafe { std::slice::from_raw_parts_mut(start, len) })
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether the start of the target is aligned for every number type.
    pub(crate) fn is_aligned(&self) -> bool {
        self.0.as_ptr().align_offset(align_of::<u64>()) == 0
    }

    /// Returns the pointer to which C writes initialized bytes.
    pub(crate) fn as_mut_ptr(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }

    /// Returns the first `len` bytes as a target.
    pub(crate) fn truncated(self, len: usize) -> Self {
        Self(&mut self.0[..len])
    }

    /// Returns the bytes.
    ///
    /// # Safety
    /// All bytes are initialized.
    pub(crate) unsafe fn assume_init(self) -> &'a mut [u8] {
        let (start, len) = (self.0.as_mut_ptr().cast(), self.0.len());
        // SAFETY: the same memory, for the same lifetime. The caller guarantees that it is initialized.
        unsafe { std::slice::from_raw_parts_mut(start, len) }
    }

    /// Fills the target with `work`. `work` returns the bytes of the target that it receives.
    pub(crate) fn fill(
        self,
        work: impl for<'t> FnOnce(Target<'t>) -> Result<&'t mut [u8]>,
    ) -> Result<&'a mut [u8]> {
        let filled = work(Target(&mut *self.0))?;
        let (start, len) = (filled.as_ptr(), filled.len());
        assert!(ptr::eq(start, self.0.as_ptr().cast()) && len == self.0.len());
        // SAFETY: `work` has returned exactly these bytes, as initialized bytes.
        Ok(unsafe { self.assume_init() })
    }

    /// Copies bytes of the same length.
    pub(crate) fn write(self, bytes: &[u8]) -> &'a mut [u8] {
        assert_eq!(self.0.len(), bytes.len());
        // SAFETY: initialized bytes may be treated as bytes that may be uninitialized.
        let bytes = unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len()) };
        self.0.copy_from_slice(bytes);
        // SAFETY: all of the target is a copy of initialized bytes now.
        unsafe { self.assume_init() }
    }

    /// Fills the target with repetitions of a value. The first repetition begins `start` bytes before the target.
    pub(crate) fn repeat(self, value: &[u8], start: usize) -> &'a mut [u8] {
        assert!(!value.is_empty());
        let first = self.0.len().min(value.len());
        for (at, byte) in self.0[..first].iter_mut().enumerate() {
            byte.write(value[(start + at) % value.len()]);
        }
        // The length of the filled part is a multiple of the length of the value, except at the end.
        let mut done = first;
        while done < self.0.len() {
            let more = done.min(self.0.len() - done);
            self.0.copy_within(..more, done);
            done += more;
        }
        // SAFETY: the loops have written all bytes: the first one up to `first`, the second one from there on.
        unsafe { self.assume_init() }
    }
}

/// A target that is filled piece by piece, from its start.
pub(crate) struct Pieces<'a> {
    target: Target<'a>,
    /// The total length of the filled pieces.
    done: usize,
}

impl<'a> Pieces<'a> {
    pub(crate) fn of(target: Target<'a>) -> Self {
        Self { target, done: 0 }
    }

    /// Fills the next `len` bytes with `work`.
    pub(crate) fn fill(
        &mut self,
        len: usize,
        work: impl for<'t> FnOnce(Target<'t>) -> Result<&'t mut [u8]>,
    ) -> Result<()> {
        Target(&mut self.target.0[self.done..][..len]).fill(work)?;
        self.done += len;
        Ok(())
    }

    /// Copies bytes to the next piece.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        Target(&mut self.target.0[self.done..][..bytes.len()]).write(bytes);
        self.done += bytes.len();
    }

    /// Returns the bytes. Panics if the pieces do not fill the entire target.
    pub(crate) fn finish(self) -> &'a mut [u8] {
        assert_eq!(self.done, self.target.len(), "some bytes are not filled");
        // SAFETY: the pieces are consecutive, and each piece was initialized.
        unsafe { self.target.assume_init() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_filled_in_order() {
        let mut memory = Vec::with_capacity(7);
        let mut pieces = Pieces::of(Target::new(&mut memory.spare_capacity_mut()[..7]));
        pieces.push(&[1, 2]);
        pieces.fill(3, |target| Ok(target.repeat(&[5, 6], 1))).unwrap();
        pieces.fill(0, |target| Ok(target.write(&[]))).unwrap();
        pieces.push(&[8, 9]);
        assert_eq!(pieces.finish(), [1, 2, 6, 5, 6, 8, 9]);
    }

    #[test]
    #[should_panic(expected = "some bytes are not filled")]
    fn missing_pieces_are_not_taken_as_filled() {
        let mut memory = Vec::with_capacity(7);
        let mut pieces = Pieces::of(Target::new(&mut memory.spare_capacity_mut()[..7]));
        pieces.push(&[1, 2]);
        pieces.finish();
    }

    #[test]
    #[should_panic(expected = "assertion failed")]
    fn other_bytes_are_not_taken_as_filled() {
        let mut memory = Vec::with_capacity(7);
        let target = Target::new(&mut memory.spare_capacity_mut()[..7]);
        target.fill(|_| Ok(Vec::leak(vec![1; 7]))).unwrap();
    }

    #[test]
    #[should_panic(expected = "assertion failed")]
    fn fewer_bytes_are_not_taken_as_filled() {
        let mut memory = Vec::with_capacity(7);
        let target = Target::new(&mut memory.spare_capacity_mut()[..7]);
        target.fill(|target| Ok(target.truncated(6).write(&[1; 6]))).unwrap();
    }
}
