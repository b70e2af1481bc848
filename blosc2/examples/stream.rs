//! Compresses a stream to a file chunk by chunk, and reads a part of it.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};

use blosc2::{CParams, Codec, FrameReader, FrameWriter};

fn main() -> blosc2::Result<()> {
    // The source can be any type that implements `Read`: a socket, a pipe, another file.
    let text: String = (1..=200_000).map(|number| format!("line {number}\n")).collect();
    let mut source = text.as_bytes();

    let file = File::create("lines.b2frame")?;
    let mut writer = FrameWriter::new(file, 1 << 20, &CParams::new().codec(Codec::Lz4))?;
    io::copy(&mut source, &mut writer)?;
    let file = writer.finish()?; // Without `finish`, there is no valid frame.
    println!("{} bytes of text in a file of {} bytes", text.len(), file.metadata()?.len());

    let mut reader = FrameReader::new(BufReader::new(File::open("lines.b2frame")?))?;
    reader.seek(SeekFrom::End(-24))?;
    for line in reader.lines() {
        println!("{}", line?);
    }
    Ok(())
}
