//! A filter that counts the blocks that are decompressed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use blosc2::Filter;
use blosc2::user_defined::{BoxError, FilterBlock, UserFilter};

/// The blocks that a [`counting_filter`] has decompressed.
#[derive(Clone, Default)]
pub(crate) struct Blocks(Arc<AtomicU64>);

impl Blocks {
    /// Returns the number of blocks, and counts from 0.
    pub(crate) fn take(&self) -> u64 {
        self.0.swap(0, Ordering::Relaxed)
    }
}

impl UserFilter for Blocks {
    fn forward(&self, block: &mut FilterBlock<'_>) -> Result<(), BoxError> {
        let input = block.input();
        block.output().copy_from_slice(input);
        Ok(())
    }

    fn backward(&self, block: &mut FilterBlock<'_>) -> Result<(), BoxError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        self.forward(block)
    }
}

/// Registers a filter that copies blocks and counts those that are decompressed.
pub(crate) fn counting_filter(id: u8) -> (Filter, Blocks) {
    let blocks = Blocks::default();
    let name = format!("count-{id}");
    (Filter::register(id, &name, blocks.clone()).expect("a free id"), blocks)
}
