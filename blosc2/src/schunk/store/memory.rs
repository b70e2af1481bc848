//! Chunks in memory, each in its own allocation, without a frame.

use std::collections::BTreeMap;
use std::io;

use blosc2_format::frame::{Layout, Outline, Stores};
use blosc2_format::{Limits, ReadAt};

use super::{Located, NOTHING, Store, Verify, missing};
use crate::Result;

/// The chunks by their places. A place is a number, as in the names of the chunk files of a directory.
#[derive(Debug, Default)]
pub(crate) struct Memory(BTreeMap<u64, Vec<u8>>);

impl Store for Memory {
    fn layout(&self) -> Layout {
        Layout::Directory
    }

    fn is_contiguous(&self) -> Option<bool> {
        None
    }

    fn read(&mut self, _: &Limits, _: Option<u32>, _: Verify, _: &str) -> Result<Option<Outline>> {
        Ok(None)
    }

    fn source(&self) -> &dyn ReadAt {
        &NOTHING
    }

    fn chunk(&self, _: &Outline, place: u64) -> Result<Located<'_>> {
        let chunk = self.0.get(&place).ok_or_else(|| missing("it does not exist"))?;
        Ok(Located::Memory(chunk.as_slice().into()))
    }

    fn commit(
        &mut self,
        outline: &mut Outline,
        stores: Stores<'_>,
        freed: &[u64],
        doing: &str,
    ) -> Result<()> {
        for place in freed {
            self.0.remove(place);
        }
        self.add(outline, stores, doing)
    }

    fn add(&mut self, _: &Outline, stores: Stores<'_>, _: &str) -> Result<()> {
        self.0.extend(stores.into_iter().map(|(place, bytes)| {
            let mut bytes = bytes.into_owned();
            // It may have been allocated for the maximum compressed size.
            bytes.shrink_to_fit();
            (place, bytes)
        }));
        Ok(())
    }

    fn finish(&mut self, _: &mut Outline, _: &str) -> Result<()> {
        Ok(())
    }

    fn frame_len(&self) -> io::Result<Option<u64>> {
        Ok(None)
    }

    fn stored_bytes(&self) -> u64 {
        self.0.values().map(|chunk| chunk.len() as u64).sum()
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}
