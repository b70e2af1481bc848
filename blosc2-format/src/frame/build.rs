//! What a frame is made of while it grows, wherever its chunks go.

use super::header::{Layout, MIN_HEADER_LEN};
use super::index::{INDEX_BLOCKSIZE, OFFSET_LEN};
use super::parts::Metalayer;
use super::section;
use crate::chunk::{self, Chunk, EXTENDED_HEADER_LEN, Encoder, Params, Special, SplitMode};
use crate::{Error, Limits};

/// How the C library compresses the offsets.
const INDEX: Params = Params {
    codec: 0,
    codec_meta: 0,
    level: 5,
    typesize: OFFSET_LEN as u32,
    blocksize: Some(INDEX_BLOCKSIZE),
    filters: [0, 0, 0, 0, 0, 1],
    filters_meta: [0; chunk::MAX_FILTERS],
    split: SplitMode::Never,
};
/// The most chunks whose offsets fit into one chunk.
const MAX_CHUNKS: usize = (i32::MAX as usize - EXTENDED_HEADER_LEN) / OFFSET_LEN as usize;

/// What is known of a chunk that was added.
#[derive(Debug, Clone, Copy)]
struct Added {
    offset: i64,
    nbytes: u32,
    special: Option<Special>,
}

/// A frame without the bytes of its chunks.
#[derive(Debug)]
pub(crate) struct Builder {
    params: Params,
    layout: Layout,
    /// How the next chunk is compressed.
    encoding: Params,
    encoder: Option<Encoder>,
    metalayers: Vec<Metalayer>,
    vlmetalayers: Vec<Metalayer>,
    chunks: Vec<Added>,
    /// Chunks that no longer need [`settle`](Self::settle).
    settled: usize,
    /// All chunks are alike: the library writes their index in its own way.
    filled: bool,
    nbytes: u64,
    cbytes: u64,
    /// Chunks in the directory so far.
    files: u64,
    chunksize: Option<u32>,
    blocksize: u32,
    variable_blocks: bool,
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
        let mut added: Vec<Metalayer> = Vec::new();
        for metalayer in metalayers {
            section::check_new(&metalayer.name, &metalayer.content, pairs(&added))?;
            added.push(metalayer.clone());
        }
        Ok(Self {
            blocksize: params.blocksize.unwrap_or(0),
            params,
            layout,
            encoding: params,
            encoder,
            metalayers: added,
            vlmetalayers: Vec::new(),
            chunks: Vec::new(),
            settled: 0,
            filled: false,
            nbytes: 0,
            cbytes: 0,
            files: 0,
            chunksize: None,
            variable_blocks: false,
        })
    }

    pub(crate) fn nchunks(&self) -> u64 {
        self.chunks.len() as u64
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
        let codec = self.params.codec;
        let what = || Error::Unsupported(format!("compressing with codec {codec}"));
        self.encoder.as_mut().ok_or_else(what)
    }

    /// Takes account of a chunk, which has to be all of `bytes`. Gives what has to be stored, and
    /// where: a number of bytes after the header, or of a file.
    pub(crate) fn add(&mut self, bytes: Vec<u8>) -> Result<Option<(u64, Vec<u8>)>, Error> {
        let wrong = |what: String| Err(Error::Argument(what));
        let header = chunk::Header::parse(&bytes)?;
        // What a reader refuses before it looks at the blocks.
        Chunk::new(&bytes, &Limits::default())?;
        if header.cbytes as usize != bytes.len() {
            return wrong(format!(
                "{} bytes, of which the chunk has {}",
                bytes.len(),
                header.cbytes
            ));
        }
        if header.lazy || header.nbytes == 0 {
            let what = if header.lazy { "lazy" } else { "empty" };
            return wrong(format!("a frame has no {what} chunks"));
        }
        if header.special.is_none() && bytes.len() <= EXTENDED_HEADER_LEN {
            let len = bytes.len();
            return wrong(format!("a chunk of {len} bytes: over {EXTENDED_HEADER_LEN} in a frame"));
        }
        if !self.chunks.is_empty() && self.variable_blocks != header.variable_blocks {
            return wrong("chunks with and without variable blocks in one frame".into());
        }
        if self.chunks.len() >= MAX_CHUNKS {
            return wrong(format!("a frame has at most {MAX_CHUNKS} chunks"));
        }
        let typesize = self.params.typesize;
        let width = header.cbytes - header.header_len() as u32;
        if header.special == Some(Special::Value) && width < typesize {
            let what = format!("a repeated value of {width} bytes where items have {typesize}");
            return wrong(what);
        }
        let chunksize = self.chunksize_with(header.nbytes);
        let special = header.special.filter(|&special| special != Special::Value);
        let whole_items = header.nbytes.is_multiple_of(typesize);
        let (stored, special) = match special {
            // The index cannot say how long such a chunk is, nor of what type.
            Some(Special::Nan) if u32::from(header.typesize) != typesize || self.cuts_items() => {
                (Some(self.spell_out_nan(header.typesize, header.nbytes)?), None)
            }
            Some(special) if chunksize == 0 || !whole_items => {
                (Some(self.spell_out(special, header.nbytes)?), None)
            }
            Some(special) => (None, Some(special)),
            None => (Some(bytes), None),
        };
        let offset = match special {
            Some(special) => special_offset(special),
            None => self.place() as i64,
        };
        self.variable_blocks = header.variable_blocks;
        self.chunksize = Some(chunksize);
        self.nbytes += u64::from(header.nbytes);
        self.filled = false;
        self.chunks.push(Added { offset, nbytes: header.nbytes, special });
        Ok(stored.map(|bytes| self.store(bytes)))
    }

    /// The chunk size of the frame with one more chunk: 0 once they differ.
    fn chunksize_with(&self, nbytes: u32) -> u32 {
        match (self.chunksize, self.chunks.last()) {
            (Some(size), Some(last)) if last.nbytes < size || nbytes > size => 0,
            (Some(size), _) => size,
            (None, _) => nbytes,
        }
    }

    /// Whether an item has more than a block: the library cannot read NaN then.
    fn cuts_items(&self) -> bool {
        (1..self.params.typesize).contains(&self.blocksize)
    }

    /// Where the next chunk goes.
    fn place(&self) -> u64 {
        match self.layout {
            Layout::Contiguous => self.cbytes,
            Layout::Directory => self.files,
        }
    }

    fn store(&mut self, bytes: Vec<u8>) -> (u64, Vec<u8>) {
        let place = self.place();
        self.cbytes += bytes.len() as u64;
        self.files += 1;
        (place, bytes)
    }

    /// A chunk of one value that the library also reads where no special offset can stand for it.
    fn spell_out(&self, special: Special, nbytes: u32) -> Result<Vec<u8>, Error> {
        let typesize = self.params.typesize as usize;
        if special == Special::Nan {
            return self.spell_out_nan(u8::try_from(typesize).unwrap_or(1), nbytes);
        }
        if (nbytes as usize).is_multiple_of(typesize) {
            return self.repeat(nbytes, &vec![0; typesize]);
        }
        // One block, whose only stream has length 0: it is all zeros.
        let mut bytes = vec![0; EXTENDED_HEADER_LEN];
        let typesize = u8::try_from(typesize).unwrap_or(1);
        bytes[..4].copy_from_slice(&[5, 1, 0b1_0101, typesize]);
        let len = EXTENDED_HEADER_LEN as u32;
        for (at, size) in [(4, nbytes), (8, nbytes), (12, len + 8)] {
            bytes[at..at + 4].copy_from_slice(&size.to_le_bytes());
        }
        bytes.extend((len + 4).to_le_bytes());
        bytes.extend([0; 4]);
        chunk::Header::parse(&bytes)?;
        Ok(bytes)
    }

    /// NaN of `width` bytes in a frame whose items may have another size.
    fn spell_out_nan(&self, width: u8, nbytes: u32) -> Result<Vec<u8>, Error> {
        let typesize = self.params.typesize as usize;
        let nan = match width {
            4 => f32::NAN.to_le_bytes().to_vec(),
            8 => f64::NAN.to_le_bytes().to_vec(),
            _ => return Err(Error::Argument(format!("NaN of {width} bytes: it has 4 or 8"))),
        };
        // Readers want a value of at least an item.
        let value = nan.repeat(typesize.div_ceil(nan.len()));
        if !value.len().is_multiple_of(typesize) || !(nbytes as usize).is_multiple_of(value.len()) {
            let what = format!("{nbytes} bytes of NaN of {width} bytes for items of {typesize}");
            return Err(Error::Argument(what));
        }
        self.repeat(nbytes, &value)
    }

    /// A chunk of a value over and over, in blocks of whole values.
    fn repeat(&self, nbytes: u32, value: &[u8]) -> Result<Vec<u8>, Error> {
        let width = value.len() as u32;
        let params = Params { typesize: width, ..self.params };
        let mut chunk = chunk::special(&params, Special::Value, nbytes as usize, value)?;
        if Chunk::new(&chunk, &Limits::default()).is_err() {
            let params = Params { blocksize: Some(width), ..params };
            chunk = chunk::special(&params, Special::Value, nbytes as usize, value)?;
        }
        chunk[3] = u8::try_from(self.params.typesize).unwrap_or(1);
        Ok(chunk)
    }

    /// Makes all of an empty frame one value.
    pub(crate) fn fill(
        &mut self,
        special: Special,
        nbytes: u64,
        chunksize: u32,
    ) -> Result<(), Error> {
        let wrong = |what: String| Err(Error::Argument(what));
        let typesize = self.params.typesize;
        if !self.chunks.is_empty() || special == Special::Value {
            return wrong("zeros, NaN or nothing can fill a frame without chunks".into());
        }
        let whole = chunksize.is_multiple_of(typesize) && nbytes.is_multiple_of(typesize.into());
        if chunksize < typesize || !whole {
            let what =
                format!("{nbytes} bytes in chunks of {chunksize}: no whole items of {typesize}");
            return wrong(what);
        }
        if special == Special::Nan && ![4, 8].contains(&typesize) {
            return wrong(format!("NaN of {typesize} bytes: it has 4 or 8"));
        }
        if special == Special::Nan && self.cuts_items() {
            return wrong(format!("NaN of {typesize} bytes in blocks of {}", self.blocksize));
        }
        let count = nbytes.div_ceil(chunksize.into());
        if count > MAX_CHUNKS as u64 {
            return wrong(format!("{count} chunks: a frame has at most {MAX_CHUNKS}"));
        }
        // The parameters have to fit a chunk of that size, and give the size of its blocks.
        let sample = chunk::special(&self.params, special, chunksize as usize, &[])?;
        let sample = chunk::Header::parse(&sample)?;
        let added = |number: u64| {
            let left = nbytes - number * u64::from(chunksize);
            // At most the chunk size.
            let nbytes = left.min(chunksize.into()) as u32;
            Added { offset: special_offset(special), nbytes, special: Some(special) }
        };
        self.chunks = (0..count).map(added).collect();
        if count > 0 {
            (self.nbytes, self.chunksize) = (nbytes, Some(chunksize));
            (self.blocksize, self.filled) = (sample.blocksize, true);
        }
        Ok(())
    }

    /// Once all chunks are there: what else has to be stored, and where. Call until there is none.
    pub(crate) fn settle(&mut self) -> Result<Option<(u64, Vec<u8>)>, Error> {
        if self.chunksize != Some(0) {
            return Ok(None);
        }
        let rest = self.chunks.get(self.settled..).unwrap_or_default();
        let Some(next) = rest.iter().position(|chunk| chunk.special.is_some()) else {
            return Ok(None);
        };
        let number = self.settled + next;
        self.settled = number + 1;
        let Added { nbytes, special, .. } = self.chunks[number];
        let bytes = self.spell_out(special.unwrap_or(Special::Zeros), nbytes)?;
        let (place, bytes) = self.store(bytes);
        self.chunks[number] = Added { offset: place as i64, nbytes, special: None };
        Ok(Some((place, bytes)))
    }

    /// Adds a metalayer to the trailer; its content is compressed as the library does by default.
    pub(crate) fn add_vlmetalayer(&mut self, name: &str, content: &[u8]) -> Result<(), Error> {
        let chunk = Encoder::new(Params::default())?.encode(content)?;
        self.add_vlmetalayer_chunk(name, &chunk)
    }

    pub(crate) fn add_vlmetalayer_chunk(&mut self, name: &str, chunk: &[u8]) -> Result<(), Error> {
        let header = chunk::Header::parse(chunk)?;
        if header.cbytes as usize != chunk.len() || header.lazy {
            let (found, len) = (chunk.len(), header.cbytes);
            return Err(Error::Argument(format!("{found} bytes for a chunk of {len}")));
        }
        section::check_new(name, chunk, pairs(&self.vlmetalayers))?;
        self.vlmetalayers.push(Metalayer { name: name.into(), content: chunk.into() });
        Ok(())
    }

    /// The header, with its metalayers, of a frame of this length.
    pub(crate) fn header(&self, frame_len: u64) -> Vec<u8> {
        let params = &self.params;
        let variable = self.chunksize == Some(0);
        let mut flags = if variable || self.variable_blocks { 0x13 } else { 0x12 };
        flags |= u8::from(variable) << 6 | u8::from(self.variable_blocks) << 7;
        let split = match params.split {
            SplitMode::Always => 0,
            SplitMode::Never => 1,
            SplitMode::Auto => 2,
            SplitMode::ForwardCompat => 3,
        };
        let mut out = Vec::with_capacity(MIN_HEADER_LEN);
        out.extend(b"\x9e\xa8b2frame\0\xd2\0\0\0\0\xcf");
        out.extend(frame_len.to_be_bytes());
        out.extend([0xa4, flags, u8::from(self.layout == Layout::Directory)]);
        out.extend([params.codec.min(6) | params.level << 4, split]);
        for size in [self.nbytes, self.cbytes] {
            out.push(0xd3);
            out.extend(size.to_be_bytes());
        }
        let chunksize = self.chunksize.unwrap_or(u32::MAX);
        for size in [params.typesize, self.blocksize, chunksize] {
            out.push(0xd2);
            out.extend(size.to_be_bytes());
        }
        let has_vlmetalayers = if self.vlmetalayers.is_empty() { 0xc2 } else { 0xc3 };
        out.extend([0xd1, 0, 1, 0xd1, 0, 1, has_vlmetalayers, 0xd8, 6]);
        out.extend(params.filters);
        out.extend([params.codec, params.codec_meta]);
        out.extend(params.filters_meta);
        // No dictionary, and a byte that is not used.
        out.extend([0, 0]);
        let metalayers: Vec<_> = pairs(&self.metalayers).collect();
        section::write(&mut out, 0, &metalayers);
        let len = out.len() as u32;
        out[0x0b..0x0f].copy_from_slice(&len.to_be_bytes());
        out
    }

    /// The index chunk; nothing without chunks.
    pub(crate) fn index(&self) -> Result<Vec<u8>, Error> {
        let Some(first) = self.chunks.first() else { return Ok(Vec::new()) };
        let len = self.chunks.len() * OFFSET_LEN as usize;
        if self.filled {
            return chunk::special(&INDEX, Special::Value, len, &first.offset.to_le_bytes());
        }
        let offsets: Vec<u8> =
            self.chunks.iter().flat_map(|chunk| chunk.offset.to_le_bytes()).collect();
        Encoder::new(INDEX)?.encode(&offsets)
    }

    pub(crate) fn trailer(&self) -> Vec<u8> {
        let mut out = vec![0x94, 1];
        let metalayers: Vec<_> = pairs(&self.vlmetalayers).collect();
        section::write(&mut out, 1, &metalayers);
        let len = (out.len() + super::parts::TRAILER_END_LEN) as u32;
        out.push(0xce);
        out.extend(len.to_be_bytes());
        // No fingerprint.
        out.extend([0xd8, 0]);
        out.extend([0; 16]);
        out
    }

    /// The length of the frame around its chunks, given those of header, index and trailer.
    pub(crate) fn frame_len(&self, others: usize) -> u64 {
        let chunks = if self.layout == Layout::Contiguous { self.cbytes } else { 0 };
        others as u64 + chunks
    }
}

fn pairs(metalayers: &[Metalayer]) -> impl ExactSizeIterator<Item = (&str, &[u8])> {
    metalayers.iter().map(|metalayer| (metalayer.name.as_str(), metalayer.content.as_slice()))
}

fn special_offset(special: Special) -> i64 {
    let kind: u8 = match special {
        Special::Zeros => 0x81,
        Special::Nan => 0x82,
        Special::Value | Special::Uninit => 0x84,
    };
    i64::from_be_bytes([kind, 0, 0, 0, 0, 0, 0, 0])
}
