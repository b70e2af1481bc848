//! Chunks in memory, each in its own allocation, without a frame.

use std::io;

use blosc2_format::frame::{Layout, Outline, Stores};
use blosc2_format::{Limits, ReadAt};

use super::{Located, NOTHING, Store, Verify, missing};
use crate::{Reason, Result};

/// The chunks by their places, empty where there is no chunk. A place is a number, as in the names of the chunk files of a
/// directory. New chunks have the lowest free numbers.
#[derive(Debug, Default)]
pub(crate) struct Memory(Vec<Vec<u8>>);

impl Memory {
    fn get(&self, place: u64) -> Option<&[u8]> {
        let chunk = self.0.get(usize::try_from(place).ok()?)?;
        Some(chunk.as_slice()).filter(|chunk| !chunk.is_empty())
    }
}

impl Store for Memory {
    fn layout(&self) -> Layout {
        Layout::Directory
    }

    fn is_contiguous(&self) -> Option<bool> {
        None
    }

    fn read(&mut self, _: &Limits, _: Option<u32>, _: Verify) -> Result<Option<Outline>, Reason> {
        Ok(None)
    }

    fn source(&self) -> &dyn ReadAt {
        &NOTHING
    }

    fn chunk_in_memory(&self, place: u64) -> Option<&[u8]> {
        self.get(place)
    }

    fn chunk(&self, _: &Outline, place: u64) -> Result<Located<'_>, Reason> {
        let chunk = self.get(place).ok_or_else(|| missing("it does not exist"))?;
        Ok(Located::Memory(chunk.into()))
    }

    fn commit(
        &mut self,
        outline: &mut Outline,
        stores: Stores<'_>,
        freed: &[u64],
    ) -> Result<(), Reason> {
        for &place in freed {
            if let Some(chunk) = self.0.get_mut(place as usize) {
                *chunk = Vec::new();
            }
        }
        self.add(outline, stores)
    }

    fn add(&mut self, _: &Outline, stores: Stores<'_>) -> Result<(), Reason> {
        for (place, bytes) in stores {
            let place = place as usize;
            if place >= self.0.len() {
                self.0.resize_with(place + 1, Vec::new);
            }
            self.0[place] = bytes.into_owned();
            // It may have been allocated for the maximum compressed size.
            self.0[place].shrink_to_fit();
        }
        Ok(())
    }

    fn finish(&mut self, _: &mut Outline) -> Result<(), Reason> {
        Ok(())
    }

    fn frame_len(&self) -> io::Result<Option<u64>> {
        Ok(None)
    }

    fn stored_bytes(&self) -> u64 {
        self.0.iter().map(|chunk| chunk.len() as u64).sum()
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}
