//! Compresses a stream to a file chunk by chunk, and reads a part of it.

use std::io::{self, BufRead, Seek, SeekFrom};

use blosc2::{CParams, Codec, OpenOptions, SChunkReader, SChunkWriter};

fn main() -> blosc2::Result<()> {
    // The source can be any type that implements `Read`: a socket, a pipe, another file.
    let text: String = (1..=200_000).map(|number| format!("line {number}\n")).collect();
    let mut source = text.as_bytes();

    let options = OpenOptions::new().replace(true).cparams(CParams::new().codec(Codec::Lz4));
    let file = options.open("lines.b2frame")?;
    let mut writer = SChunkWriter::new(file, 1 << 20)?;
    io::copy(&mut source, &mut writer)?;
    let file = writer.finish()?; // After each chunk, the file is a complete frame.
    println!("{} bytes of text in a file of {} bytes", text.len(), file.frame_len()?);

    let mut reader = SChunkReader::new(file);
    reader.seek(SeekFrom::End(-24))?;
    for line in reader.lines() {
        println!("{}", line?);
    }
    Ok(())
}
