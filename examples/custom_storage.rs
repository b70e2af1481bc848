//! A custom storage backend: a file that counts the bytes read and written.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use blosc2::storage::{ReadAt, Storage};
use blosc2::{CParams, OpenOptions, Target};

/// A backend for a database or a network service implements the same methods.
struct Counted {
    file: File,
    read: Arc<AtomicU64>,
    written: Arc<AtomicU64>,
}

impl ReadAt for Counted {
    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.read.fetch_add(buffer.len() as u64, Relaxed);
        self.file.read_exact_at(offset, buffer)
    }
}

impl Storage for Counted {
    fn write_all_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.written.fetch_add(bytes.len() as u64, Relaxed);
        self.file.write_all_at(offset, bytes)
    }

    fn set_size(&mut self, len: u64) -> io::Result<()> {
        self.file.set_size(len)
    }
}

fn main() -> blosc2::Result<()> {
    let (read, written) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
    let file = tempfile::tempfile()?;
    let storage = Counted { file, read: read.clone(), written: written.clone() };
    let params = CParams::new().blocksize(64 * 1024);
    let options = OpenOptions::new().create(true).cparams(&params).typesize(8);
    let mut schunk = options.open(Target::storage(storage))?;
    for start in (0..1_000_000).step_by(100_000) {
        schunk.append(&(start..start + 100_000).map(|i| i * i % 10_007).collect::<Vec<u64>>())?;
    }
    println!("{} bytes of data, {} bytes written", schunk.nbytes(), written.load(Relaxed));
    assert!(written.load(Relaxed) >= schunk.frame_len()?);

    // Reads the header of one chunk, the table of its block positions, and one block.
    read.store(0, Relaxed);
    assert_eq!(schunk.read::<u64>(765_432..765_433)?, [765_432 * 765_432 % 10_007]);
    println!("{} bytes read for one item", read.load(Relaxed));
    assert!(read.load(Relaxed) < schunk.frame_len()? / 10);
    Ok(())
}
