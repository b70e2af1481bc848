//! The parameters of the filter, and their form in a file.

use blosc2::limits::MAX_NDIM;
use blosc2::{CParams, Codec, Compressor, Error, ErrorKind, Filter, Result};

/// The number of the filter, which The HDF Group has assigned to Blosc2.
pub const FILTER_ID: i32 = 32026;

/// The version of the meaning of the integers.
const REVISION: u32 = 1;

/// The parameters of the filter for one dataset: compression parameters, and the sizes of items and chunks.
///
/// HDF5 stores the parameters of a filter as a list of integers, `cd_values`. The methods
/// [`cd_values`](Self::cd_values) and [`from_cd_values`](Self::from_cd_values) convert to and from this list:
///
/// | index | value |
/// |---|---|
/// | 0 | the revision of this list: 1 |
/// | 1 | [`blocksize`](Self::blocksize); 0 for an automatic size |
/// | 2 | [`typesize`](Self::typesize) |
/// | 3 | [`chunksize`](Self::chunksize) |
/// | 4 | [`level`](Self::level) |
/// | 5 | the numeric code of [`filter`](Self::filter) |
/// | 6 | the numeric code of [`codec`](Self::codec) |
/// | 7 | the ndim of a chunk; only for chunks with a shape |
/// | 8 and following | the [`chunk_shape`](Self::chunk_shape); only for chunks with a shape |
///
/// ```
/// use blosc2::Codec;
/// use blosc2_hdf5::FilterParams;
///
/// let params = FilterParams::new(4, &[100, 50])?.codec(Codec::Lz4).level(9);
/// let values = params.cd_values()?;
/// assert_eq!(values, [1, 0, 4, 20_000, 9, 1, 1, 2, 100, 50]);
/// assert_eq!(FilterParams::from_cd_values(&values)?, params);
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FilterParams {
    /// The codec. Default: [`Codec::BloscLz`].
    pub codec: Codec,
    /// The compression level, 0 (no compression) to 9. Default: 5.
    pub level: u8,
    /// The Blosc2 filter that is applied before the codec. Default: [`Filter::Shuffle`]. HDF5 stores the numeric
    /// code of the filter, but no parameter of the filter.
    pub filter: Option<Filter>,
    /// The size of a block in bytes. The default, `None`, means an automatic size. If the value is smaller than an
    /// item, the size of an item is used.
    ///
    /// For chunks with a [shape](Self::chunk_shape), the value is the maximum size of a block. However, a block has at
    /// least 2 items on each axis (1 item on an axis of length 1), even if these items exceed the maximum.
    pub blocksize: Option<u32>,
    /// The size of an item in bytes. For a dataset of fixed-size arrays, this is the size of an item of these arrays,
    /// as in hdf5plugin. For variable-length items, HDF5 does not set the size, and the value is 0.
    pub typesize: u32,
    /// The size of an uncompressed chunk in bytes. The value is 0 if HDF5 has not set the size.
    pub chunksize: u32,
    /// The shape of a chunk in items. It is empty for chunks that are stored without a shape: chunks with one axis or
    /// with more than 16 axes.
    pub chunk_shape: Vec<u32>,
}

impl FilterParams {
    /// Returns the default parameters for items of `typesize` bytes and chunks of this shape.
    ///
    /// The default codec, level and filter are the defaults of hdf5plugin and PyTables.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: the typesize is 0, the shape has no axes, or an axis has size 0;
    /// - [`ErrorKind::TooLarge`]: the chunk has 2<sup>32</sup> bytes or more, which HDF5 does not support.
    pub fn new(typesize: usize, chunk_shape: &[usize]) -> Result<Self> {
        const DOING: &str = "set up the Blosc2 filter of HDF5";
        if typesize == 0 || chunk_shape.is_empty() || chunk_shape.contains(&0) {
            let detail = format!(
                "expected items and a chunk shape with sizes above 0, got items of {typesize} bytes and {chunk_shape:?}"
            );
            return Err(Error::new(ErrorKind::InvalidArgument, DOING, detail));
        }
        let too_large = || {
            let detail = format!(
                "a chunk has less than 2^32 bytes, got {chunk_shape:?} items of {typesize} bytes"
            );
            Error::new(ErrorKind::TooLarge, DOING, detail)
        };
        let to_u32 = |size: usize| u32::try_from(size).map_err(|_| too_large());
        let sides = chunk_shape.iter().map(|&side| to_u32(side)).collect::<Result<Vec<_>>>()?;
        let typesize = to_u32(typesize)?;
        let chunksize = sides.iter().try_fold(typesize, |size, &side| size.checked_mul(side));
        let has_shape = (2..=MAX_NDIM).contains(&sides.len());
        Ok(Self {
            codec: Codec::BloscLz,
            level: 5,
            filter: Some(Filter::Shuffle),
            blocksize: None,
            typesize,
            chunksize: chunksize.ok_or_else(too_large)?,
            chunk_shape: if has_shape { sides } else { Vec::new() },
        })
    }

    /// Sets the codec.
    pub fn codec(mut self, codec: Codec) -> Self {
        self.codec = codec;
        self
    }

    /// Sets the compression level, 0 (no compression) to 9.
    pub fn level(mut self, level: u8) -> Self {
        self.level = level;
        self
    }

    /// Sets the filter of Blosc2 that is applied before the codec; `None` for no filter.
    pub fn filter(mut self, filter: impl Into<Option<Filter>>) -> Self {
        self.filter = filter.into();
        self
    }

    /// Sets the size of a block in bytes.
    pub fn blocksize(mut self, bytes: u32) -> Self {
        self.blocksize = Some(bytes);
        self
    }

    /// Reads the parameters from the integers in a file. Missing compression parameters get their defaults.
    ///
    /// This function accepts compression parameters that this crate does not support, such as an unknown codec, because
    /// [`decode`] does not need these parameters.
    ///
    /// [`decode`]: crate::decode
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidData`]: there are fewer than 4 integers, or fewer integers than the ndim requires; a
    ///   compression parameter is above 255; or the ndim is 0 or above 16.
    pub fn from_cd_values(values: &[u32]) -> Result<Self> {
        let &[_, _, typesize, chunksize, ..] = values else {
            return Err(invalid(format!("expected at least 4 integers, got {values:?}")));
        };
        let mut params = Self {
            codec: Codec::BloscLz,
            level: 5,
            filter: Some(Filter::Shuffle),
            blocksize: None,
            typesize,
            chunksize,
            chunk_shape: Vec::new(),
        };
        params.set_compression(values)?;
        if let Some((&ndim, shape)) = values.get(7..).and_then(|rest| rest.split_first()) {
            let shape = shape.get(..ndim as usize);
            let shape = shape.filter(|shape| (1..=MAX_NDIM).contains(&shape.len()));
            let Some(shape) = shape else {
                return Err(invalid(format!(
                    "expected 1 to {MAX_NDIM} dimensions and the size of each, got {values:?}"
                )));
            };
            params.chunk_shape = shape.to_vec();
        }
        Ok(params)
    }

    /// Sets the compression parameters to those of `cd_values`, if they are there.
    pub(crate) fn set_compression(&mut self, values: &[u32]) -> Result<()> {
        let byte = |index: usize, what: &str| match values.get(index) {
            None => Ok(None),
            Some(&value) => u8::try_from(value)
                .map(Some)
                .map_err(|_| invalid(format!("expected {what} of at most 255, got {value}"))),
        };
        self.blocksize = values.get(1).copied().filter(|&bytes| bytes > 0);
        self.level = byte(4, "a level")?.unwrap_or(self.level);
        if let Some(code) = byte(5, "the code of a filter")? {
            self.filter = Filter::from_code(code, 0);
        }
        if let Some(code) = byte(6, "the code of a codec")? {
            self.codec = Codec::from_code(code);
        }
        Ok(())
    }

    /// Returns the integers that HDF5 stores. Pass them to `add_filter` of a dataset builder, or to `H5Pset_filter`.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`], in one of these cases:
    ///   - the level is above 9;
    ///   - the codec supports arrays only, and the chunks have no shape;
    ///   - the filter has a parameter, needs a parameter, or does not support the typesize;
    ///   - the block size is invalid;
    /// - [`ErrorKind::Unsupported`]: this build does not have the codec or the filter.
    pub fn cd_values(&self) -> Result<Vec<u32>> {
        // Fails if they cannot be used.
        Compressor::new(self.cparams()?)?.compress::<u8>(&[])?;
        let codes = [
            u32::from(self.level),
            self.filter.map_or(0, Filter::code).into(),
            self.codec.code().into(),
        ];
        let mut values = vec![REVISION, self.blocksize.unwrap_or(0), self.typesize, self.chunksize];
        values.extend(codes);
        if !self.chunk_shape.is_empty() {
            values.push(self.chunk_shape.len() as u32);
            values.extend(&self.chunk_shape);
        }
        Ok(values)
    }

    /// Returns the parameters of Blosc2.
    pub(crate) fn cparams(&self) -> Result<CParams> {
        if let Some(filter) = self.filter.filter(|filter| filter.meta() != 0) {
            let detail =
                format!("HDF5 stores the code of a filter without its parameter, got {filter}");
            return Err(Error::new(ErrorKind::InvalidArgument, "compress for HDF5", detail));
        }
        let mut params = CParams::new()
            .codec(self.codec)
            .level(self.level)
            .filters(self.filter.as_slice())
            .typesize(self.typesize.max(1) as usize);
        params.blocksize = self.blocksize.map(|bytes| bytes.max(self.typesize) as usize);
        Ok(params)
    }
}

fn invalid(detail: String) -> Error {
    Error::new(ErrorKind::InvalidData, "read the parameters of the Blosc2 filter of HDF5", detail)
}
