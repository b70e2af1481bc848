//! Writing a contiguous frame, chunk by chunk.

use std::io::{Seek, SeekFrom, Write};

use super::build::Builder;
use super::header::Layout;
use super::outline::Metalayer;
use crate::Error;
use crate::chunk::{Params, Special};

/// Writes a contiguous frame.
///
/// The header and the index are those of C-Blosc2 3.3.2 for the same chunks. Until
/// [`finish`](Self::finish) there is no frame yet.
///
/// ```
/// use std::io::Cursor;
/// use blosc2_format::chunk::Params;
/// use blosc2_format::frame::{Frame, Writer};
/// use blosc2_format::Limits;
///
/// let params = Params { typesize: 4, ..Params::default() };
/// let mut writer = Writer::new(Cursor::new(Vec::new()), params, &[])?;
/// writer.push(&[7; 4000])?;
/// writer.push(&[8; 4000])?;
/// writer.add_vlmetalayer("author", b"me")?;
/// let bytes = writer.finish()?.into_inner();
///
/// let mut frame = Frame::open(bytes, &Limits::default())?;
/// let mut data = Vec::new();
/// frame.decode_chunk(1, &mut data)?;
/// assert_eq!(data, [8; 4000]);
/// # Ok::<(), blosc2_format::Error>(())
/// ```
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    /// Where the frame starts.
    start: u64,
    builder: Builder,
}

impl<W: Write + Seek> Writer<W> {
    /// Starts a frame at the position where `out` is.
    ///
    /// `params` say how data is compressed, and what the header says of that.
    ///
    /// # Errors
    /// Parameters that no chunk can have; more than 16 metalayers, two of the same name, or a name
    /// that has not 1 to 31 bytes; [`Error::Io`] where `out` fails.
    pub fn new(mut out: W, params: Params, metalayers: &[Metalayer]) -> Result<Self, Error> {
        let builder = Builder::new(params, Layout::Contiguous, metalayers)?;
        let start = out.stream_position()?;
        out.write_all(&builder.outline.header(0))?;
        Ok(Self { out, start, builder })
    }

    /// Compresses `data` and adds it as a chunk.
    ///
    /// Chunks may have different sizes; only the last one should be shorter than the first, so that
    /// readers can tell the chunk of an item without looking. As in the C library, blocks do not get
    /// longer again after a chunk that is shorter than one.
    ///
    /// # Errors
    /// [`Error::Argument`] where `data` is empty or over 2 GiB, or does not fit the filters, and
    /// after [`push_blocks`](Self::push_blocks); [`Error::Unsupported`] for a codec or a filter that
    /// is not here; [`Error::Io`] where the destination fails.
    pub fn push(&mut self, data: &[u8]) -> Result<(), Error> {
        let chunk = self.builder.encode(data)?;
        self.push_chunk(&chunk)
    }

    /// Compresses blocks of any lengths and adds them as one chunk. Either all chunks of a frame are
    /// made so or none.
    ///
    /// # Errors
    /// As [`push`](Self::push), and where there is no block or an empty one.
    pub fn push_blocks(&mut self, blocks: &[&[u8]]) -> Result<(), Error> {
        let chunk = self.builder.encode_blocks(blocks)?;
        self.push_chunk(&chunk)
    }

    /// Adds a chunk that was compressed before.
    ///
    /// # Errors
    /// [`Error::Format`] where it starts with no header of a chunk; [`Error::Argument`] where it is
    /// longer or shorter than that says, where it is empty or lazy, or where it has variable blocks
    /// and the chunks before it have not; [`Error::Io`] where the destination fails.
    pub fn push_chunk(&mut self, chunk: &[u8]) -> Result<(), Error> {
        for (_, bytes) in self.builder.add(chunk)? {
            self.out.write_all(&bytes)?;
        }
        Ok(())
    }

    /// Fills a frame that has no chunks yet with `nbytes` bytes of one value, in chunks of
    /// `chunksize` bytes. That takes no room.
    ///
    /// # Errors
    /// [`Error::Argument`] where there are chunks, where a size is no whole number of items, and for
    /// [`Special::Value`].
    pub fn fill(&mut self, special: Special, nbytes: u64, chunksize: u32) -> Result<(), Error> {
        self.builder.outline.fill(special, nbytes, chunksize)
    }

    /// Adds a metalayer of variable length to the trailer.
    ///
    /// # Errors
    /// [`Error::Argument`] for the 17th, for a name that is there already or has not 1 to 31 bytes,
    /// and for content of 2 GiB.
    pub fn add_vlmetalayer(&mut self, name: &str, content: &[u8]) -> Result<(), Error> {
        self.builder.add_vlmetalayer(name, content)
    }

    /// Adds one whose content is compressed to a chunk already.
    ///
    /// # Errors
    /// As [`add_vlmetalayer`](Self::add_vlmetalayer), and [`Error::Format`] where `chunk` is none.
    pub fn add_vlmetalayer_chunk(&mut self, name: &str, chunk: &[u8]) -> Result<(), Error> {
        self.builder.add_vlmetalayer_chunk(name, chunk)
    }

    /// How many chunks there are so far.
    pub fn nchunks(&self) -> u64 {
        self.builder.outline.nchunks()
    }

    /// The destination.
    pub fn get_ref(&self) -> &W {
        &self.out
    }

    /// Writes index, trailer and header, and gives the destination back, positioned after the frame.
    ///
    /// # Errors
    /// [`Error::Io`] where the destination fails.
    pub fn finish(mut self) -> Result<W, Error> {
        let outline = &mut self.builder.outline;
        let (index, trailer) = (outline.index()?, outline.trailer());
        self.out.write_all(&index)?;
        self.out.write_all(&trailer)?;
        let len = outline.frame_len(index.len() + trailer.len());
        self.out.seek(SeekFrom::Start(self.start))?;
        self.out.write_all(&outline.header(len))?;
        self.out.seek(SeekFrom::Start(self.start + len))?;
        self.out.flush()?;
        Ok(self.out)
    }
}
