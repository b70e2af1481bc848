//! A writer and many readers of one file at once, as different programs would have it open.

use std::thread;

use blosc2::{CParams, OpenOptions, SChunk};

const CHUNKS: u64 = 50;
const ITEMS: u64 = 1000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("log.b2frame");
    // All who use the file lock it: each of their reads and changes waits for its turn.
    let shared = OpenOptions::new().locking(true);
    let options = shared.clone().append(true).create_new(true).typesize(8);
    let mut writer = options.cparams(CParams::default()).open(&path)?;

    let reader = || -> blosc2::Result<u64> {
        let mut file = shared.open(&path)?;
        let mut looks = 0;
        while file.len() < CHUNKS * ITEMS {
            file.refresh()?; // What the handle tells of itself is that of now.
            let len = file.len();
            // Always whole chunks from the start on, never a part of a change.
            assert_eq!(len % ITEMS, 0);
            assert!(file.items::<u64>(..len)?.into_iter().eq(0..len));
            looks += 1;
        }
        Ok(looks)
    };
    thread::scope(|scope| -> blosc2::Result<()> {
        let readers: Vec<_> = (0..4).map(|_| scope.spawn(reader)).collect();
        for chunk in 0..CHUNKS {
            writer.append(&(chunk * ITEMS..(chunk + 1) * ITEMS).collect::<Vec<u64>>())?;
        }
        for reader in readers {
            println!("looked {} times", reader.join().expect("a reader panicked")?);
        }
        Ok(())
    })?;
    assert_eq!(SChunk::open(&path)?.nchunks() as u64, CHUNKS);
    Ok(())
}
