//! One writer and four readers use a file at the same time, here as threads. Several programs work in the same way.

use std::thread;

use blosc2::{CParams, OpenOptions, SChunk};

const CHUNKS: u64 = 50;
const ITEMS: u64 = 1000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("log.b2frame");
    // All handles lock the file: a change waits for reads and other changes, and a read waits for changes.
    let shared = OpenOptions::new().locking(true);
    let options = shared.clone().append(true).create_new(true).typesize(8);
    let mut writer = options.cparams(CParams::default()).open(&path)?;

    let reader = || -> blosc2::Result<u64> {
        let mut file = shared.open(&path)?;
        let mut reads = 0;
        while file.len() < CHUNKS * ITEMS {
            file.refresh()?; // Re-reads the length of the file.
            let len = file.len();
            // A read returns complete changes only, here complete chunks.
            assert_eq!(len % ITEMS, 0);
            assert!(file.read::<u64>(..len)?.into_iter().eq(0..len));
            reads += 1;
        }
        Ok(reads)
    };
    thread::scope(|scope| -> blosc2::Result<()> {
        let readers: Vec<_> = (0..4).map(|_| scope.spawn(reader)).collect();
        for chunk in 0..CHUNKS {
            writer.append(&(chunk * ITEMS..(chunk + 1) * ITEMS).collect::<Vec<u64>>())?;
        }
        for reader in readers {
            println!("{} reads", reader.join().expect("a reader panicked")?);
        }
        Ok(())
    })?;
    assert_eq!(SChunk::open(&path)?.nchunks() as u64, CHUNKS);
    Ok(())
}
