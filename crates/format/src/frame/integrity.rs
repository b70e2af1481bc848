//! Verification of the checksums of an outline, and their changes.

use std::sync::atomic::Ordering;

use super::Layout;
use super::checksums::{CAUSES, CHANGED, Checksums, Fault, Sum, checksum};
use super::offset::Offset;
use super::offsets::Offsets;
use super::outline::Outline;
use super::rules;
use super::section::MAX_METALAYERS;
use crate::report::Severity;
use crate::{Error, FormatError};

/// What a frame has if checksums are required.
pub(crate) const REQUIRED: &str = "checksums of the current state, which are required";

impl Outline {
    /// Sets the [checksums](checksum) of all chunks, or removes the checksums if `chunks` is
    /// `None`. Each later change updates the checksums, and [`trailer`](Self::trailer) includes
    /// them.
    ///
    /// # Errors
    /// [`Error::Argument`]: the number of checksums differs from the number of chunks, or the
    /// trailer already has 16 metalayers.
    pub fn set_checksums(&mut self, chunks: Option<Vec<u32>>) -> Result<(), Error> {
        let Some(chunks) = chunks else {
            self.checksums = None;
            return Ok(());
        };
        if chunks.len() as u64 != self.nchunks() {
            let (found, count) = (chunks.len(), self.nchunks());
            return Err(Error::Argument(format!("{found} checksums for {count} chunks")));
        }
        if self.vlmetalayers.len() >= MAX_METALAYERS {
            let what = format!("checksums need one of the {MAX_METALAYERS} metalayers");
            return Err(Error::Argument(what));
        }
        let chunks = chunks.into_iter().map(Sum::from).collect();
        self.checksums = Some(Checksums { chunks, fault: None });
        Ok(())
    }

    /// Checks that the header and the metalayers match their checksum, if the frame has checksums.
    ///
    /// Another program, which writes no checksums, can have changed the length of the frame or the
    /// number of chunks. In this case the method returns `Ok` without a comparison. The checksums
    /// of the chunks then show which chunks have changed.
    ///
    /// # Errors
    /// [`Error::Format`]: the checksum differs, or the checksums cannot be read.
    pub fn verify_metadata(&self) -> Result<(), Error> {
        let fault = self.checksums.as_ref().and_then(Checksums::fault);
        match fault.filter(|fault| fault.rule.severity == Severity::Error) {
            None => Ok(()),
            Some(Fault { rule, at, expected, found }) => {
                Err(FormatError::of(rule, *at, expected, found).into())
            }
        }
    }

    /// Checks that the frame has valid checksums of its current state: the header and the
    /// metalayers match them, and each chunk will be [compared](Self::verify).
    ///
    /// # Errors
    /// [`Error::Format`]: the frame has no checksums, a program that writes no checksums has changed
    /// the frame, or the frame does not match them.
    pub fn require_checksums(&self) -> Result<(), Error> {
        self.verify_metadata()?;
        match self.missing_checksums() {
            None => Ok(()),
            Some(found) => {
                Err(FormatError::of(&rules::CHECKSUMS_MISSING, 0, REQUIRED, found).into())
            }
        }
    }

    /// If the checksums do not cover the frame, returns why.
    pub(super) fn missing_checksums(&self) -> Option<&'static str> {
        match &self.checksums {
            None => Some("no checksums"),
            Some(checksums) => checksums.is_outdated().then_some("checksums of an earlier state"),
        }
    }

    /// Returns `true` if the frame has checksums, and the chunk at index `number` must still be
    /// [compared](Self::verify) with its checksum.
    pub fn is_unverified(&self, number: u64) -> bool {
        let Some(checksums) = &self.checksums else { return false };
        !checksums.sum(number).is_some_and(|sum| sum.is_verified.load(Ordering::Relaxed))
    }

    /// Compares the chunk at index `number` with its checksum. Does nothing if the frame has no
    /// checksums, or if the chunk was already compared. `offset` is the location of the chunk.
    /// `stored` contains the stored bytes of the chunk; it is ignored if `offset` is
    /// [`Offset::Special`].
    ///
    /// # Errors
    /// [`Error::Format`]: the checksums differ, or there is no checksum for this chunk.
    pub fn verify(&self, number: u64, offset: Offset, stored: &[u8]) -> Result<(), Error> {
        if !self.is_unverified(number) {
            return Ok(());
        }
        let Some((expected, found)) = self.mismatch(number, offset, stored) else { return Ok(()) };
        let at = match (offset, self.header.layout) {
            (Offset::At(place), Layout::Contiguous) => self.header_len().saturating_add(place),
            _ => 0,
        };
        Err(FormatError::of(&rules::CHUNK_CHECKSUM, at, expected, found).into())
    }

    /// Compares a chunk with its checksum. If the checksums differ, returns the expected and the
    /// found checksum.
    pub(super) fn mismatch(
        &self,
        number: u64,
        offset: Offset,
        stored: &[u8],
    ) -> Option<(String, String)> {
        let sum = self.checksums.as_ref()?.sum(number);
        let found = checksum(offset, stored);
        Some(match sum {
            Some(sum) if sum.crc == found => {
                sum.is_verified.store(true, Ordering::Relaxed);
                return None;
            }
            Some(sum) => (format!("{:#010x}", sum.crc), format!("{found:#010x}{CAUSES}")),
            None => (format!("a checksum{CHANGED}"), format!("{found:#010x}")),
        })
    }

    /// Returns the checksums before a change, one for each chunk.
    fn sums(&mut self) -> Option<&mut Vec<Sum>> {
        let count = usize::try_from(self.offsets.len()).unwrap_or(usize::MAX);
        let chunks = &mut self.checksums.as_mut()?.chunks;
        // Another program can have changed the number of chunks. A missing checksum differs from
        // the checksum of a chunk with a probability of 1 - 2^-32.
        chunks.resize_with(count, Sum::default);
        Some(chunks)
    }

    /// Returns the checksum of a chunk, if the frame has checksums.
    pub(super) fn sum_of(&self, offset: Offset, stored: &[u8]) -> Sum {
        let checksum = self.checksums.as_ref().map(|_| checksum(offset, stored));
        checksum.map(Sum::from).unwrap_or_default()
    }

    /// Inserts a chunk into the index.
    pub(super) fn insert_entry(&mut self, number: u64, (offset, sum): (Offset, Sum)) {
        if let Some(sums) = self.sums() {
            sums.insert(number as usize, sum);
        }
        self.offsets.insert(number, offset);
    }

    /// Replaces a chunk in the index.
    pub(super) fn set_entry(&mut self, number: u64, (offset, sum): (Offset, Sum)) {
        if let Some(sums) = self.sums() {
            sums[number as usize] = sum;
        }
        self.offsets.set(number, offset);
    }

    /// Removes a chunk from the index.
    pub(super) fn remove_entry(&mut self, number: u64) {
        if let Some(sums) = self.sums() {
            sums.remove(number as usize);
        }
        self.offsets.remove(number);
    }

    /// Removes the chunks from index `count` on from the index.
    pub(super) fn truncate_entries(&mut self, count: u64) {
        if let Some(sums) = self.sums() {
            sums.truncate(count as usize);
        }
        self.offsets.truncate(count);
    }

    /// Reorders the chunks in the index.
    pub(super) fn reorder_entries(&mut self, order: &[usize]) {
        if let Some(sums) = self.sums() {
            *sums = order.iter().map(|&number| sums[number].clone()).collect();
        }
        self.offsets.reorder(order);
    }

    /// Returns the checksum of a chunk before a change.
    pub(super) fn kept_sum(&mut self, number: u64) -> Sum {
        let sum = self.sums().and_then(|sums| sums.get(number as usize)).cloned();
        sum.unwrap_or_default()
    }

    /// Replaces the whole index.
    pub(super) fn set_entries(&mut self, offsets: Offsets, sums: Vec<Sum>) {
        self.offsets = offsets;
        if let Some(checksums) = &mut self.checksums {
            checksums.chunks = sums;
        }
    }
}
