//! Chunks that C may be given.

use blosc2_format::chunk::Header;
use blosc2_sys as sys;

use crate::{Codec, Error, ErrorKind, Filter, Result, filter, plugins};

/// The bytes of a chunk that has been looked at: it is whole, its fields agree, and what it needs is
/// compiled in.
#[derive(Debug)]
pub(crate) struct CheckedChunk<'a> {
    bytes: &'a [u8],
    header: Header,
}

impl<'a> CheckedChunk<'a> {
    /// Looks at a chunk; what follows its end is left out.
    pub(crate) fn new(bytes: &'a [u8]) -> Result<Self> {
        let doing = "decompress a chunk";
        let invalid = |detail: &str| Error::new(ErrorKind::InvalidData, doing, detail);
        let unsupported = |detail: String| Error::new(ErrorKind::Unsupported, doing, detail);
        let header = Header::parse(bytes).map_err(|error| Error::from_format(doing, error))?;
        if header.cbytes as usize > bytes.len() {
            let (announced, found) = (header.cbytes, bytes.len());
            return Err(invalid(&format!("it announces {announced} bytes, but {found} are there")));
        }
        if header.lazy {
            return Err(invalid("its blocks are not with it (a lazy chunk)"));
        }
        let bytes = &bytes[..header.cbytes as usize];
        if !header.is_compressed() {
            return Ok(Self { bytes, header });
        }
        if header.instrumented {
            return Err(unsupported("it holds measurements of a codec, no data".to_owned()));
        }
        Codec::from_code(header.codec()).check_available(doing)?;
        for (&code, &meta) in header.filters.iter().zip(&header.filters_meta) {
            if let Some(each) = Filter::from_code(code, meta) {
                if !filter::is_available(code) {
                    return Err(unsupported(format!("{each} is not in this build")));
                }
                let (typesize, block) = (u32::from(header.typesize), header.block_len().max(1));
                let lost = |len| filter::leaves_rest_unwritten(code, meta, typesize, len);
                if lost(block) || lost(header.nbytes % block) {
                    return Err(invalid(&format!("{each} has lost the end of its blocks")));
                }
            }
        }
        if !header.is_delta_undone() {
            let detail =
                "delta was applied twice or among other filters, which C-Blosc2 does not undo";
            return Err(unsupported(detail.to_owned()));
        }
        // The streams of a block are equally long, so that the rest would stay unwritten.
        let typesize = u32::from(header.typesize);
        if header.split && !header.variable_blocks && header.block_len() % typesize != 0 {
            let block = header.block_len();
            let detail =
                format!("a block of {block} bytes cannot be split into {typesize} equal streams");
            return Err(invalid(&detail));
        }
        if !sys::HARDENED {
            if loses_end_of_blosc1(&header) {
                let detail =
                    "an installed C-Blosc2 loses the end of this chunk of Blosc1 (bitshuffle)";
                return Err(unsupported(detail.to_owned()));
            }
            if header.codec() == Codec::BloscLz.code() && has_endless_match(bytes) {
                return Err(invalid("it holds a match whose length overflows"));
            }
        }
        Ok(Self { bytes, header })
    }

    /// The chunk, as long as its header says.
    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    pub(crate) fn header(&self) -> &Header {
        &self.header
    }

    /// Bytes of the data.
    pub(crate) fn nbytes(&self) -> usize {
        self.header.nbytes as usize
    }

    /// What follows the header.
    pub(crate) fn body(&self) -> &'a [u8] {
        &self.bytes[self.header.header_len()..]
    }

    /// Whether delta was among its filters.
    pub(crate) fn uses_delta(&self) -> bool {
        self.header.is_compressed()
            && self.header.filters.iter().any(|&code| filter::is_delta(code))
    }

    /// Whether delta was the first filter, so that it is undone at last.
    pub(crate) fn starts_with_delta(&self) -> bool {
        let first = self.header.filters.iter().find(|&&code| code != 0);
        first.is_some_and(|&code| filter::is_delta(code))
    }

    /// Whether decompression looks at the metalayers of a super-chunk, for the shape of an array.
    pub(crate) fn needs_shape(&self) -> bool {
        let header = &self.header;

        let filters = header.filters.iter().zip(&header.filters_meta);
        header.is_compressed()
            && (Codec::from_code(header.codec()).needs_array()
                || plugins::may_be_loaded(header.codec())
                || filters
                    .filter_map(|(&code, &meta)| Filter::from_code(code, meta))
                    .any(Filter::needs_array))
    }
}

/// Whether there is a run of 255 long enough to overflow the length of a match of BloscLZ
/// (blosclz.c, blosclz_decompress; c-blosc2 #801).
fn has_endless_match(chunk: &[u8]) -> bool {
    const RUN: usize = i32::MAX as usize / 255;
    chunk.chunks_exact(RUN / 2).any(|part| part.iter().all(|&byte| byte == 255))
}

/// Whether upstream's bitshuffle for chunks of Blosc1 does not write what follows the last whole
/// item of a block (shuffle.c, bitunshuffle).
fn loses_end_of_blosc1(header: &Header) -> bool {
    let (block, typesize) = (header.block_len().max(1), u32::from(header.typesize));
    let rest = |len: u32| !len.is_multiple_of(typesize) && (len / typesize).is_multiple_of(8);
    header.version == 2
        && header.filters.contains(&Filter::Bitshuffle.code())
        && (rest(block) || rest(header.nbytes % block))
}
