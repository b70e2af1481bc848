//! The content of the metalayer: its fields and their serialization.

use super::MAX_NDIM;
use crate::FormatError;

/// The name of the metalayer of arrays.
pub const NAME: &str = "b2nd";
/// The name of the metalayer of arrays in files of Caterva, the predecessor of b2nd.
pub const OLD_NAME: &str = "caterva";

/// The content of the metalayer: shapes and dtype of an array.
///
/// ```
/// use blosc2_format::b2nd::Meta;
///
/// let (shape, chunks, blocks) = (vec![3, 5], vec![2, 4], vec![2, 2]);
/// let meta = Meta { shape, chunks, blocks, dtype: Some("<f4".into()), dtype_format: 0 };
/// assert_eq!(Meta::parse(&meta.to_bytes()?)?, meta);
/// # Ok::<(), blosc2_format::FormatError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meta {
    /// The shape of the array.
    pub shape: Vec<i64>,
    /// The shape of a chunk.
    pub chunks: Vec<i32>,
    /// The shape of a block.
    pub blocks: Vec<i32>,
    /// The dtype as stored. `None` if there is no dtype, as in files of Caterva.
    pub dtype: Option<String>,
    /// The notation of the dtype. The only value in use is 0, NumPy's notation.
    pub dtype_format: u8,
}

impl Meta {
    /// Returns the content of the metalayer, as the C library writes it. If `dtype` is `None`, the
    /// C library and this method write the dtype `|u1`. C: `b2nd_serialize_meta`.
    ///
    /// # Errors
    /// - there are more than 16 dimensions;
    /// - the shapes have different numbers of dimensions;
    /// - the dtype is longer than 2^31 - 1 bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>, FormatError> {
        let ndim = self.ndim()?;
        let dtype = self.dtype.as_deref().unwrap_or("|u1");
        let dtype_len = i32::try_from(dtype.len())
            .map_err(|_| FormatError::new("dtype length", 0, "at most 2^31 - 1", dtype.len()))?;

        let marker = 0x90 + ndim as u8;
        let mut out = vec![0x97, 0, ndim as u8, marker];
        for items in &self.shape {
            out.push(0xd3);
            out.extend(items.to_be_bytes());
        }
        for sizes in [&self.chunks, &self.blocks] {
            out.push(marker);
            for items in sizes {
                out.push(0xd2);
                out.extend(items.to_be_bytes());
            }
        }
        out.extend([self.dtype_format, 0xdb]);
        out.extend(dtype_len.to_be_bytes());
        out.extend(dtype.as_bytes());
        Ok(out)
    }

    /// Returns the number of dimensions, if all shapes have the same and valid one.
    pub(super) fn ndim(&self) -> Result<usize, FormatError> {
        let ndim = self.shape.len();
        if ndim > MAX_NDIM {
            return Err(FormatError::new("number of dimensions", 2, "at most 16", ndim));
        }
        if self.chunks.len() != ndim || self.blocks.len() != ndim {
            let found = format_args!("{} and {}", self.chunks.len(), self.blocks.len()).to_string();
            return Err(FormatError::new("chunk and block shape", 3, ndim, found));
        }
        Ok(ndim)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The metalayer that Python writes for `arange(6, dtype="i4")` in two rows of three.
    const PYTHON: [u8; 53] = [
        0x97, 0x00, 0x02, 0x92, 0xd3, 0, 0, 0, 0, 0, 0, 0, 2, 0xd3, 0, 0, 0, 0, 0, 0, 0, 3, 0x92,
        0xd2, 0, 0, 0, 2, 0xd2, 0, 0, 0, 3, 0x92, 0xd2, 0, 0, 0, 2, 0xd2, 0, 0, 0, 3, 0x00, 0xdb,
        0, 0, 0, 3, b'<', b'i', b'4',
    ];

    #[test]
    fn reads_and_writes_what_python_does() {
        let meta = Meta::parse(&PYTHON).unwrap();
        assert_eq!(meta.shape, [2, 3]);
        assert_eq!(meta.chunks, [2, 3]);
        assert_eq!(meta.blocks, [2, 3]);
        assert_eq!(meta.dtype.as_deref(), Some("<i4"));
        assert_eq!(meta.to_bytes().unwrap(), PYTHON);
    }

    #[test]
    fn the_dtype_may_be_missing() {
        let meta = Meta::parse(&PYTHON[..44]).unwrap();
        assert_eq!((meta.dtype, meta.dtype_format), (None, 0));
    }

    #[test]
    fn every_cut_is_an_error() {
        for len in (0..PYTHON.len()).filter(|&len| len != 44) {
            assert!(Meta::parse(&PYTHON[..len]).is_err(), "{len} bytes");
        }
    }

    #[test]
    fn each_rule_names_its_byte() {
        let broken = |at: usize, value: u8| {
            let mut content = PYTHON;
            content[at] = value;
            Meta::parse(&content).unwrap_err().offset
        };
        assert_eq!(broken(2, 17), 2);
        assert_eq!(broken(14, 0x80), 14, "negative shape");
        assert_eq!(broken(27, 0), 24, "chunk of size zero");
        assert_eq!(broken(43, 0), 40, "block of size zero");
        assert_eq!(broken(45, 0xda), 45);
        assert_eq!(broken(50, 0xff), 50);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            sizes in prop::collection::vec((0i64.., 1i32.., 1i32..), 0..=MAX_NDIM),
            dtype in ".{0,20}",
        ) {
            let meta = Meta {
                shape: sizes.iter().map(|each| each.0).collect(),
                chunks: sizes.iter().map(|each| each.1).collect(),
                blocks: sizes.iter().map(|each| each.2).collect(),
                dtype: Some(dtype),
                dtype_format: 0,
            };
            prop_assert_eq!(Meta::parse(&meta.to_bytes().unwrap()).unwrap(), meta);
        }

        #[test]
        fn no_bytes_make_it_panic(content in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = Meta::parse(&content);
        }
    }
}
