//! Admission of chunks: a frame stores a chunk, or records a special chunk in the index only.

use std::borrow::Cow;

use super::header::ChunkSize;
use super::outline::Outline;
use crate::chunk::{self, Chunk, EXTENDED_HEADER_LEN, Params, Special};
use crate::{Error, Limits};

/// The bytes to store for a chunk, or the special value that its index entry states.
pub(super) type Admitted<'a> = (Option<Cow<'a, [u8]>>, Option<Special>);

impl Outline {
    /// Reads the header of the chunk in `bytes`, which must contain nothing else. `alone` states
    /// that the frame has no other chunk.
    pub(super) fn check_chunk(&self, bytes: &[u8], alone: bool) -> Result<chunk::Header, Error> {
        let wrong = |what: String| Err(Error::Argument(what));
        // Checks what a reader would reject before it decodes the blocks.
        let header = self.parse_chunk_header(bytes)?;
        let header = Chunk::with_header(bytes, header, &Limits::default())?.into_header();
        if header.cbytes as usize != bytes.len() {
            let (found, len) = (bytes.len(), header.cbytes);
            return wrong(format!("the chunk has {found} bytes, but its header states {len}"));
        }
        if header.lazy || header.nbytes == 0 {
            let what = if header.lazy { "lazy" } else { "empty" };
            return wrong(format!("a frame has no {what} chunks"));
        }
        if header.special.is_none() && bytes.len() <= EXTENDED_HEADER_LEN {
            let len = bytes.len();
            return wrong(format!(
                "a chunk of {len} bytes: a frame needs more than {EXTENDED_HEADER_LEN}"
            ));
        }
        if !alone && self.header.variable_blocks != header.variable_blocks {
            return wrong(
                "a frame cannot mix chunks with and without variable-length blocks".into(),
            );
        }
        let typesize = self.header.typesize;
        let width = header.cbytes.saturating_sub(header.header_len() as u32);
        if header.special == Some(Special::Value) && width < typesize {
            let what = format!(
                "a repeated value of {width} bytes is shorter than an item of {typesize} bytes"
            );
            return wrong(what);
        }
        Ok(header)
    }

    /// Returns the bytes to store for a chunk, or the special value for the index, in a frame with
    /// this chunk size.
    pub(super) fn admit<'a>(
        &self,
        header: &chunk::Header,
        bytes: impl Into<Cow<'a, [u8]>>,
        chunksize: ChunkSize,
    ) -> Result<Admitted<'a>, Error> {
        let typesize = self.header.typesize;
        let special = header.special.filter(|&special| special != Special::Value);
        let whole_items = header.nbytes.is_multiple_of(typesize);
        Ok(match special {
            // The index cannot express the length of such a chunk, nor its item type.
            Some(Special::Nan) if u32::from(header.typesize) != typesize || self.cuts_items() => {
                (Some(self.spell_out_nan(header.typesize, header.nbytes)?.into()), None)
            }
            Some(special) if chunksize == ChunkSize::Variable || !whole_items => {
                (Some(self.spell_out(special, header.nbytes)?.into()), None)
            }
            Some(special) => (None, Some(special)),
            None => (Some(bytes.into()), None),
        })
    }

    /// Returns whether an item is larger than a block. The C library cannot read NaN in such
    /// frames.
    pub(super) fn cuts_items(&self) -> bool {
        (1..self.header.typesize).contains(&self.header.blocksize)
    }

    /// Returns a stored chunk of one value, for positions where no special offset is possible. The
    /// C library can read the chunk.
    pub(super) fn spell_out(&self, special: Special, nbytes: u32) -> Result<Vec<u8>, Error> {
        let typesize = self.header.typesize as usize;
        if special == Special::Nan {
            return self.spell_out_nan(u8::try_from(typesize).unwrap_or(1), nbytes);
        }
        if (nbytes as usize).is_multiple_of(typesize) {
            return self.repeat(nbytes, &vec![0; typesize]);
        }
        // One block with a single stream of length 0: it is all zeros.
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

    /// Returns a chunk of NaN of `width` bytes for a frame whose items can have another size.
    fn spell_out_nan(&self, width: u8, nbytes: u32) -> Result<Vec<u8>, Error> {
        let typesize = self.header.typesize as usize;
        let nan = match width {
            4 => f32::NAN.to_le_bytes().to_vec(),
            8 => f64::NAN.to_le_bytes().to_vec(),
            _ => return Err(Error::Argument(format!("NaN of {width} bytes: expected 4 or 8"))),
        };
        // Readers require a value of at least one item. The item size is checked before memory is
        // allocated: in a damaged frame it can be greater than the chunk.
        let count = typesize.div_ceil(nan.len());
        let len = count.saturating_mul(nan.len());
        if !len.is_multiple_of(typesize) || !(nbytes as usize).is_multiple_of(len) {
            let what =
                format!("{nbytes} bytes of NaN of {width} bytes do not fit items of {typesize}");
            return Err(Error::Argument(what));
        }
        self.repeat(nbytes, &nan.repeat(count))
    }

    /// Returns a chunk of a repeated value, in blocks of whole values.
    fn repeat(&self, nbytes: u32, value: &[u8]) -> Result<Vec<u8>, Error> {
        let width = value.len() as u32;
        let params = Params { typesize: width, ..self.params() };
        let mut chunk = chunk::special(&params, Special::Value, nbytes as usize, value)?;
        if Chunk::new(&chunk, &Limits::default()).is_err() {
            let params = Params { blocksize: Some(width), ..params };
            chunk = chunk::special(&params, Special::Value, nbytes as usize, value)?;
        }
        chunk[3] = u8::try_from(self.header.typesize).unwrap_or(1);
        Ok(chunk)
    }
}
