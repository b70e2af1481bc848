//! Values in chunks and blocks, encoded as msgpack as in Python's arrays of objects.

use super::SChunk;
use crate::value::{VALUE_SIZE, read_next};
use crate::{Result, Value};

const READ: &str = "read a value";

/// Values in chunks, encoded as msgpack. These methods need the feature `msgpack`.
impl SChunk {
    /// Decodes the content of the chunk at `index` from msgpack and returns it as a [`Value`]. Python's `ObjectArray`
    /// stores one value in each chunk.
    ///
    /// ```
    /// use blosc2::{CParams, SChunk, Value};
    ///
    /// let mut schunk = SChunk::in_memory::<u8>(&CParams::default())?;
    /// let value = Value::Set(vec!["a".into(), 1.into()]);
    /// schunk.append(&value.to_msgpack()?)?;
    /// assert_eq!(schunk.value(0)?, value);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// Fails with the [errors of reading](Self#errors-of-reading), and with
    /// - [`ErrorKind::OutOfBounds`](crate::ErrorKind::OutOfBounds): `index` is not less than the number of chunks;
    /// - [`ErrorKind::InvalidData`](crate::ErrorKind::InvalidData): the content is not msgpack, or has more than 128
    ///   nested levels;
    /// - [`ErrorKind::TooLarge`](crate::ErrorKind::TooLarge): the decoded values take more memory than
    ///   [`OpenOptions::max_read`](crate::OpenOptions::max_read) allows. Each value counts as 64 bytes.
    pub fn value(&self, index: usize) -> Result<Value> {
        let bytes = self.decompress_chunk::<u8>(index)?;
        self.read_value(&bytes, &mut self.max_values(bytes.len()), || format!("chunk {index}"))
    }

    /// Decodes the content of one block of a chunk from msgpack and returns it as a [`Value`].
    /// [`append_blocks`](Self::append_blocks) writes such blocks.
    ///
    /// # Errors
    /// Fails with the [errors of reading](Self#errors-of-reading), and with
    /// - [`ErrorKind::OutOfBounds`](crate::ErrorKind::OutOfBounds): `index` is not less than the number of chunks, or
    ///   `block` is not less than the number of blocks of the chunk;
    /// - [`ErrorKind::InvalidData`](crate::ErrorKind::InvalidData): the content is not msgpack, or has more than 128
    ///   nested levels;
    /// - [`ErrorKind::TooLarge`](crate::ErrorKind::TooLarge): the decoded values take more memory than
    ///   [`OpenOptions::max_read`](crate::OpenOptions::max_read) allows. Each value counts as 64 bytes.
    pub fn block_value(&self, index: usize, block: usize) -> Result<Value> {
        let bytes = self.block(index, block)?;
        let place = || format!("block {block} of chunk {index}");
        self.read_value(&bytes, &mut self.max_values(bytes.len()), place)
    }

    /// Decodes the contents of all blocks of a chunk from msgpack and returns them as [`Value`]s.
    ///
    /// # Errors
    /// Fails with the [errors of reading](Self#errors-of-reading), and with
    /// - [`ErrorKind::OutOfBounds`](crate::ErrorKind::OutOfBounds): `index` is not less than the number of chunks;
    /// - [`ErrorKind::InvalidData`](crate::ErrorKind::InvalidData): the content is not msgpack, or has more than 128
    ///   nested levels;
    /// - [`ErrorKind::TooLarge`](crate::ErrorKind::TooLarge): the decoded values take more memory than
    ///   [`OpenOptions::max_read`](crate::OpenOptions::max_read) allows. Each value counts as 64 bytes.
    pub fn block_values(&self, index: usize) -> Result<Vec<Value>> {
        let blocks = self.blocks(index)?;
        let mut left = self.max_values(blocks.as_bytes().len());
        let values = blocks.iter().enumerate().map(|(block, bytes)| {
            self.read_value(bytes, &mut left, || format!("block {block} of chunk {index}"))
        });
        values.collect()
    }

    /// Returns the maximum number of values that may be decoded from `nbytes` bytes.
    fn max_values(&self, nbytes: usize) -> u64 {
        self.allowed(VALUE_SIZE.saturating_mul(nbytes as u64)) / VALUE_SIZE
    }

    fn read_value(
        &self,
        bytes: &[u8],
        left: &mut u64,
        place: impl FnOnce() -> String,
    ) -> Result<Value> {
        read_next(bytes, left).map_err(|fault| {
            let (kind, detail) = fault.in_content();
            self.error(kind, READ, format!("{}: {detail}", place()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CParams, ErrorKind, OpenOptions};

    fn schunk() -> SChunk {
        SChunk::in_memory::<u8>(&CParams::default()).unwrap()
    }

    #[test]
    fn chunks_and_blocks_are_values() {
        let mut chunks = schunk();
        chunks.append(b"\x92\x01\xc0").unwrap();
        chunks.append(b"\x01\x02").unwrap();
        assert_eq!(chunks.value(0).unwrap(), Value::List(vec![1.into(), Value::None]));
        let error = chunks.value(1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        assert!(error.to_string().contains("chunk 1: its content is not msgpack"), "{error}");
        assert_eq!(chunks.value(2).unwrap_err().kind(), ErrorKind::OutOfBounds);

        let mut blocks = schunk();
        blocks.append_blocks(&[b"\x01", b"\xa1x"]).unwrap();
        blocks.insert_blocks(0, &[b"\x91\x02", b"\xc1"]).unwrap();
        assert_eq!(blocks.block_values(1).unwrap(), [1.into(), "x".into()]);
        assert_eq!(blocks.block_value(0, 0).unwrap(), Value::List(vec![2.into()]));
        for error in [blocks.block_value(0, 1).unwrap_err(), blocks.block_values(0).unwrap_err()] {
            assert_eq!(error.kind(), ErrorKind::InvalidData);
            assert!(error.to_string().contains("block 1 of chunk 0"), "{error}");
        }
        assert_eq!(blocks.block_value(0, 2).unwrap_err().kind(), ErrorKind::OutOfBounds);
        blocks.update_blocks(0, &[b"\xc0"]).unwrap();
        assert_eq!(blocks.block_values(0).unwrap(), [Value::None]);
        for error in [
            blocks.insert_blocks(3, &[b"x"]).unwrap_err(),
            blocks.update_blocks(2, &[b"x"]).unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::OutOfBounds);
        }
        assert_eq!(blocks.nchunks(), 2);
    }

    #[test]
    fn memory_of_many_values_is_limited() {
        // A million `None`s, in one value and in two.
        let half = [&b"\xdd\x00\x07\xa1\x20"[..], &vec![0xc0; 500_000]].concat();
        let all = [&b"\xdd\x00\x0f\x42\x40"[..], &vec![0xc0; 1_000_000]].concat();
        let (mut chunks, mut blocks) = (schunk(), schunk());
        chunks.append(&all).unwrap();
        blocks.append_blocks(&[&half, &half]).unwrap();
        let limited = |schunk: SChunk| {
            let bytes = schunk.into_cframe().unwrap();
            OpenOptions::new().max_read(40 << 20).from_cframe(bytes).unwrap()
        };
        let (chunks, blocks) = (limited(chunks), limited(blocks));
        assert_eq!(chunks.decompress_chunk::<u8>(0).unwrap(), all);
        let error = chunks.value(0).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge);
        assert!(error.to_string().contains("OpenOptions::max_read"), "{error}");
        assert!(blocks.block_value(0, 1).is_ok());
        assert_eq!(blocks.block_values(0).unwrap_err().kind(), ErrorKind::TooLarge);
    }

    /// The values of a metalayer take more memory than its content.
    #[test]
    #[cfg(feature = "zstd")] // The default codec.
    fn values_that_readers_refuse_are_not_stored() {
        let mut schunk = OpenOptions::new().in_memory_frame().unwrap();
        let mut set = |memory| {
            let content = crate::schunk::Content { bytes: vec![0xc0; 1000], memory };
            schunk.vlmeta_mut().set_content("values", &content).map_err(|error| error.kind())
        };
        assert_eq!(set(1 << 30), Ok(()));
        assert_eq!(set((1 << 30) + (256 << 10)), Err(ErrorKind::TooLarge));
        assert_eq!(schunk.vlmeta().get("values").unwrap().unwrap(), [0xc0; 1000]);
    }
}
