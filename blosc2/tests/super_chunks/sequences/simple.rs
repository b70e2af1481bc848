//! The model: the content of a super-chunk as plain vectors.

/// The content of a super-chunk.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Model {
    pub(crate) typesize: usize,
    pub(crate) chunks: Vec<Piece>,
    /// Bytes of each chunk but a shorter last one: `None` before there was one, 0 where they differ.
    pub(crate) chunksize: Option<usize>,
    pub(crate) meta: Vec<Layer>,
    pub(crate) vlmeta: Vec<Layer>,
}

/// A chunk.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Piece {
    pub(crate) data: Vec<u8>,
    /// The lengths of its blocks, if they are variable-length.
    pub(crate) blocks: Option<Vec<usize>>,
    /// Whether its bytes are uninitialized: this crate reads zeros, other readers any bytes.
    pub(crate) undefined: bool,
}

impl Piece {
    pub(crate) fn of(data: Vec<u8>) -> Self {
        Self { data, ..Self::default() }
    }
}

/// A metalayer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Layer {
    pub(crate) name: String,
    pub(crate) content: Vec<u8>,
}

/// What starts bytes of msgpack, with a length of 32 bits.
const PACKED: u8 = 0xc6;

/// Bytes as Python packs them.
pub(crate) fn pack(bytes: &[u8]) -> Vec<u8> {
    let len = (bytes.len() as u32).to_be_bytes();
    [&[PACKED], &len[..], bytes].concat()
}

impl Layer {
    /// The bytes that were packed, if they were.
    pub(crate) fn packed(&self) -> Option<&[u8]> {
        if self.name.starts_with("raw") { None } else { self.content.get(5..) }
    }
}

impl Model {
    pub(crate) fn content(&self) -> Vec<u8> {
        self.chunks.iter().flat_map(|chunk| chunk.data.iter().copied()).collect()
    }

    pub(crate) fn nbytes(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.data.len()).sum()
    }

    pub(crate) fn variable_blocks(&self) -> bool {
        self.chunks.first().is_some_and(|chunk| chunk.blocks.is_some())
    }

    pub(crate) fn insert(&mut self, index: usize, piece: Piece) {
        if self.chunks.is_empty() && self.chunksize != Some(0) {
            let size = self.chunksize.unwrap_or(0).max(piece.data.len());
            self.chunksize = Some(size);
        }
        self.chunks.insert(index, piece);
        self.measure();
    }

    pub(crate) fn replace(&mut self, index: usize, piece: Piece) {
        self.chunks[index] = piece;
        self.measure();
    }

    /// Updates whether all chunks have one size. Once they differ, this does not change back.
    pub(crate) fn measure(&mut self) {
        let Some(size) = self.chunksize.filter(|&size| size > 0) else { return };
        let Some((last, others)) = self.chunks.split_last() else { return };
        let last = last.data.len();
        if others.iter().any(|chunk| chunk.data.len() != size) || last > size {
            self.chunksize = Some(if others.is_empty() { last } else { 0 });
        }
    }

    /// Writes bytes over those from `start` on.
    pub(crate) fn write(&mut self, mut start: usize, mut bytes: &[u8]) {
        for chunk in &mut self.chunks {
            let len = chunk.data.len();
            if start >= len {
                start -= len;
                continue;
            }
            let count = (len - start).min(bytes.len());
            if count == 0 {
                return;
            }
            chunk.data[start..start + count].copy_from_slice(&bytes[..count]);
            chunk.undefined = false;
            (start, bytes) = (0, &bytes[count..]);
        }
    }
}
