//! The requirements of a chunk for decompression, and the check whether C may decompress a chunk.

use blosc2_format::chunk::Header;

use crate::chunk::parts::Parts;
use crate::chunk::{ChunkBytes, layout};
use crate::codec::{filter, installed, params};
use crate::{Chunk, ChunkRef, Codec, ErrorKind, Filter, Reason, Result};

/// Properties of a chunk that C can decompress. They hold for all chunks with the same header, except for the compressed
/// size.
#[derive(Debug)]
pub(super) struct Accepted {
    head: ([u8; 12], [u8; 16]),
    /// The number of bytes of the header and of the table of blocks.
    table_end: u64,
    /// Whether decompression needs the shape of an array, or the typesize of a super-chunk.
    pub(super) needs_array: bool,
    /// The number of bytes of an item if shuffle is the only filter, and 1 without filters. `None` if the chunk can only
    /// be decompressed in a context of C.
    pub(super) shuffle_width: Option<usize>,
}

impl ChunkRef<'_> {
    /// Checks that C can decompress the chunk: the codec and filters are available, and C decompresses their output
    /// correctly. `typesize` is the typesize of the super-chunk that C reads, if there is one.
    ///
    /// `accepted` is the last chunk that was accepted with the same typesize. The chunks of a super-chunk usually differ
    /// only in their compressed sizes, so that most checks are needed once.
    pub(super) fn check_decodable(
        &self,
        typesize: Option<usize>,
        accepted: &mut Option<Accepted>,
    ) -> Result<(), Reason> {
        let header = self.header();
        if !header.is_compressed() {
            return Ok(());
        }
        let head = head_without_cbytes(header, self.as_bytes());
        let known = accepted.as_ref().filter(|accepted| accepted.head == head);
        let table_end = match known {
            Some(known) => known.table_end,
            None => {
                let holds_for_others = self.check_pipeline(typesize)?;
                // A `usize` of 32 bits could overflow.
                let table_end = header.header_len() as u64 + 4 * self.nblocks() as u64;
                *accepted = holds_for_others.then(|| Accepted {
                    head,
                    table_end,
                    needs_array: self.needs_shape() || self.needs_typesize(),
                    shuffle_width: Parts::chunk(self).and_then(|chunk| chunk.shuffle_width()),
                });
                table_end
            }
        };
        // Ensures that there are no more blocks than bytes of the chunk.
        if table_end > self.cbytes() as u64 {
            let (nblocks, cbytes) = (self.nblocks(), self.cbytes());
            let detail = format!("{nblocks} blocks in a chunk of {cbytes} bytes");
            return Err(Reason::new(ErrorKind::InvalidData, detail));
        }
        installed::check_chunk(header, self.as_bytes())
    }

    /// Checks the codec, the filters and the division of blocks into streams. Returns whether the result holds for all
    /// chunks with this header, except for the compressed size.
    fn check_pipeline(&self, typesize: Option<usize>) -> Result<bool, Reason> {
        let invalid = |detail: &str| Reason::new(ErrorKind::InvalidData, detail);
        let unsupported = |detail: String| Reason::new(ErrorKind::Unsupported, detail);
        let header = self.header();
        if header.instrumented {
            return Err(unsupported(
                "it contains measurements of a codec instead of data".to_owned(),
            ));
        }
        let available = self.codec().check_available();
        let has_codec = available.is_ok();
        if !has_codec && (installed::LOADS_PLUGINS || !self.needs_no_codec()) {
            available?;
        }
        params::check_shape(self.codec(), self.each_filter())?;
        for (&code, &meta) in header.filters.iter().zip(&header.filters_meta) {
            if let Some(each) = Filter::from_code(code, meta)
                && !filter::is_available(code)
            {
                return Err(unsupported(each.unavailable()));
            }
        }
        for (&code, &meta) in header.filters.iter().zip(&header.filters_meta) {
            let streams = if meta == 0 { typesize } else { Some(meta.into()) };
            if filter::is_first_bytedelta(code)
                && let Some(streams) = streams
                && self.has_block_with_rest(streams)?
            {
                let detail = format!(
                    "the first version of bytedelta stores {streams} streams of equal length, and the rest of the \
                     block is lost"
                );
                return Err(invalid(&detail));
            }
        }
        // The streams of a block have equal lengths. If the block cannot be divided equally, its end would stay
        // unwritten.
        let streams = u32::from(header.typesize);
        if header.split && !header.variable_blocks && !header.block_len().is_multiple_of(streams) {
            let block = header.block_len();
            let detail =
                format!("a block of {block} bytes cannot be split into {streams} equal streams");
            return Err(invalid(&detail));
        }
        Ok(has_codec && !header.filters.iter().any(|&code| filter::is_first_bytedelta(code)))
    }
}

/// Returns the bytes of a header, except for the compressed size.
#[inline]
fn head_without_cbytes(header: &Header, chunk: &[u8]) -> ([u8; 12], [u8; 16]) {
    let (mut start, mut extension) = ([0; 12], [0; 16]);
    start.copy_from_slice(&chunk[..12]);
    if header.extended {
        extension.copy_from_slice(&chunk[16..32]);
    }
    (start, extension)
}

impl<B: ChunkBytes> Chunk<B> {
    /// Whether the length of a block is not a multiple of `streams`. The first version of bytedelta (bytedelta.c) would
    /// leave the end of such a block unwritten.
    fn has_block_with_rest(&self, streams: usize) -> Result<bool> {
        for block in 0..self.nblocks() {
            if self.block_len(block)?.is_some_and(|len| !len.is_multiple_of(streams)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether no stream of the chunk is compressed by the codec.
    fn needs_no_codec(&self) -> bool {
        layout(self.as_bytes()).is_ok_and(|layout| !layout.needs_codec())
    }

    /// Whether delta is among the filters of the chunk.
    pub(crate) fn uses_delta(&self) -> bool {
        let header = self.header();
        header.is_compressed() && header.filters.iter().any(|&code| filter::is_delta(code))
    }

    /// Whether decompression needs the shape of an array. The streams of ndlz contain the shape, so ndlz does not need
    /// it.
    pub(crate) fn needs_shape(&self) -> bool {
        self.header().is_compressed()
            && ((self.codec().needs_array() && self.codec() != Codec::Ndlz)
                || self.each_filter().any(Filter::needs_array))
    }

    /// Whether decompression needs the typesize of a super-chunk, since the chunk does not store it.
    pub(super) fn needs_typesize(&self) -> bool {
        let header = self.header();
        let mut filters = header.filters.iter().zip(&header.filters_meta);
        header.is_compressed()
            && filters.any(|(&code, &meta)| filter::is_bytedelta(code) && meta == 0)
    }
}
