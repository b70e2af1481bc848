//! The part of writing a frame that does not depend on the destination of the chunks.

use super::change::Stores;
use super::header::Layout;
use super::metalayer::Metalayer;
use super::outline::Outline;
use crate::Error;
use crate::chunk::{self, Encoder, Params};

/// An outline, and the encoder of its chunks.
#[derive(Debug)]
pub(crate) struct Builder {
    pub(crate) outline: Outline,
    /// The parameters of the next chunk.
    encoding: Params,
    encoder: Option<Encoder>,
}

impl Builder {
    pub(crate) fn new(
        params: Params,
        layout: Layout,
        metalayers: &[Metalayer],
    ) -> Result<Self, Error> {
        // Only compression needs a supported codec; chunks can come from elsewhere.
        let encoder = match Encoder::new(params) {
            Err(Error::Unsupported(_)) => None,
            encoder => Some(encoder?),
        };
        let mut outline = Outline::new(params, layout);
        for metalayer in metalayers {
            outline.add_metalayer(&metalayer.name, &metalayer.content)?;
        }
        Ok(Self { outline, encoding: params, encoder })
    }

    /// Compresses data with the parameters of the frame.
    pub(crate) fn encode(&mut self, data: &[u8]) -> Result<Vec<u8>, Error> {
        let chunk = self.encoder()?.encode(data)?;
        // Like the C library, it keeps the last block size for the following chunks.
        let blocksize = Some(chunk::Header::parse(&chunk)?.blocksize);
        if self.encoding.blocksize != blocksize {
            self.encoding.blocksize = blocksize;
            self.encoder = Some(Encoder::new(self.encoding)?);
        }
        Ok(chunk)
    }

    /// Compresses variable-length blocks with the parameters of the frame.
    pub(crate) fn encode_blocks(&mut self, blocks: &[&[u8]]) -> Result<Vec<u8>, Error> {
        self.encoder()?.encode_blocks(blocks)
    }

    fn encoder(&mut self) -> Result<&mut Encoder, Error> {
        let codec = self.encoding.codec;
        let what = || Error::Unsupported(format!("compressing with codec {codec}"));
        self.encoder.as_mut().ok_or_else(what)
    }

    /// Appends a chunk to the outline, and returns the bytes that the caller must store.
    pub(crate) fn add<'a>(&mut self, chunk: &'a [u8]) -> Result<Stores<'a>, Error> {
        self.outline.insert(self.outline.nchunks(), chunk)
    }

    /// Adds a metalayer to the trailer. Its content is compressed with the default parameters of
    /// the C library.
    pub(crate) fn add_vlmetalayer(&mut self, name: &str, content: &[u8]) -> Result<(), Error> {
        let chunk = Encoder::new(Params::default())?.encode(content)?;
        self.add_vlmetalayer_chunk(name, &chunk)
    }

    pub(crate) fn add_vlmetalayer_chunk(&mut self, name: &str, chunk: &[u8]) -> Result<(), Error> {
        if self.outline.vlmetalayers().iter().any(|each| each.name == name) {
            let name = name.escape_debug();
            return Err(Error::Argument(format!("there is already a metalayer `{name}`")));
        }
        self.outline.set_vlmetalayer_chunk(name, chunk)
    }
}
