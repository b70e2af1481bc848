//! What a writer of frames does, wherever the chunks go.

use super::change::Stores;
use super::header::Layout;
use super::outline::{Metalayer, Outline};
use crate::Error;
use crate::chunk::{self, Encoder, Params};

/// An outline, and what compresses its chunks.
#[derive(Debug)]
pub(crate) struct Builder {
    pub(crate) outline: Outline,
    /// How the next chunk is compressed.
    encoding: Params,
    encoder: Option<Encoder>,
}

impl Builder {
    pub(crate) fn new(
        params: Params,
        layout: Layout,
        metalayers: &[Metalayer],
    ) -> Result<Self, Error> {
        // Only compressing needs a codec that is here; chunks may come from elsewhere.
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

    /// Compresses data with the frame's parameters.
    pub(crate) fn encode(&mut self, data: &[u8]) -> Result<Vec<u8>, Error> {
        let chunk = self.encoder()?.encode(data)?;
        // The library keeps the block size that it used last, whatever the next chunk is like.
        let blocksize = Some(chunk::Header::parse(&chunk)?.blocksize);
        if self.encoding.blocksize != blocksize {
            self.encoding.blocksize = blocksize;
            self.encoder = Some(Encoder::new(self.encoding)?);
        }
        Ok(chunk)
    }

    /// The same for blocks of any lengths.
    pub(crate) fn encode_blocks(&mut self, blocks: &[&[u8]]) -> Result<Vec<u8>, Error> {
        self.encoder()?.encode_blocks(blocks)
    }

    fn encoder(&mut self) -> Result<&mut Encoder, Error> {
        let codec = self.encoding.codec;
        let what = || Error::Unsupported(format!("compressing with codec {codec}"));
        self.encoder.as_mut().ok_or_else(what)
    }

    /// Takes account of a chunk behind the others; gives what has to be stored.
    pub(crate) fn add<'a>(&mut self, chunk: &'a [u8]) -> Result<Stores<'a>, Error> {
        self.outline.insert(self.outline.nchunks(), chunk)
    }

    /// Adds a metalayer to the trailer; its content is compressed as the library does by default.
    pub(crate) fn add_vlmetalayer(&mut self, name: &str, content: &[u8]) -> Result<(), Error> {
        let chunk = Encoder::new(Params::default())?.encode(content)?;
        self.add_vlmetalayer_chunk(name, &chunk)
    }

    pub(crate) fn add_vlmetalayer_chunk(&mut self, name: &str, chunk: &[u8]) -> Result<(), Error> {
        if self.outline.vlmetalayers().iter().any(|each| each.name == name) {
            let name = name.escape_debug();
            return Err(Error::Argument(format!("there is a metalayer `{name}` already")));
        }
        self.outline.set_vlmetalayer_chunk(name, chunk)
    }
}
