//! How data is compressed and decompressed.
//!
//! ```
//! use blosc2::{CParams, Codec, Filter};
//!
//! let params = CParams::new().codec(Codec::Lz4).level(9).filters(&[Filter::Bitshuffle]);
//! let chunk = blosc2::compress(&[1.5f32; 1000], &params)?;
//! assert_eq!(blosc2::decompress::<f32>(&chunk)?, [1.5; 1000]);
//! # Ok::<(), blosc2::Error>(())
//! ```

use std::thread;

use blosc2_format::chunk::{self as format, MAX_BLOCKSIZE, MAX_FILTERS};
use blosc2_sys as sys;

use crate::closures::{self, Tuning};
use crate::{Codec, Error, ErrorKind, Filter, Result, Tuner, filter};

/// The most bytes that one chunk holds when decompressed: 2 GiB less 33.
pub const MAX_CHUNK_LEN: usize = sys::BLOSC2_MAX_BUFFERSIZE as usize;
/// The largest item, in bytes.
pub const MAX_TYPESIZE: usize = MAX_BLOCKSIZE as usize;

/// Whether the bytes of an item go to streams of their own when a block is compressed.
///
/// C's `BLOSC_*_SPLIT`, Python's `SplitMode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SplitMode {
    /// Always. For experiments.
    Always,
    /// Never. For experiments.
    Never,
    /// As fits the codec and the filters. Python's default, and ours.
    Auto,
    /// As old versions of the library did. C's default.
    ForwardCompat,
}

impl SplitMode {
    pub(crate) fn from_code(code: u8) -> Self {
        match i32::from(code) {
            sys::BLOSC_ALWAYS_SPLIT => Self::Always,
            sys::BLOSC_NEVER_SPLIT => Self::Never,
            sys::BLOSC_AUTO_SPLIT => Self::Auto,
            _ => Self::ForwardCompat,
        }
    }

    pub(crate) fn from_format(split: format::SplitMode) -> Self {
        match split {
            format::SplitMode::Always => Self::Always,
            format::SplitMode::Never => Self::Never,
            format::SplitMode::Auto => Self::Auto,
            format::SplitMode::ForwardCompat => Self::ForwardCompat,
        }
    }

    fn to_format(self) -> format::SplitMode {
        match self {
            Self::Always => format::SplitMode::Always,
            Self::Never => format::SplitMode::Never,
            Self::Auto => format::SplitMode::Auto,
            Self::ForwardCompat => format::SplitMode::ForwardCompat,
        }
    }

    fn code(self) -> i32 {
        match self {
            Self::Always => sys::BLOSC_ALWAYS_SPLIT,
            Self::Never => sys::BLOSC_NEVER_SPLIT,
            Self::Auto => sys::BLOSC_AUTO_SPLIT,
            Self::ForwardCompat => sys::BLOSC_FORWARD_COMPAT_SPLIT,
        }
    }
}

/// How many threads work on one chunk, or on the chunks of an array.
///
/// One by default, which composes with threads of the program's own. Where several work on one chunk, its blocks
/// are put in the order in which they are done, so that the bytes of the chunk may differ from run to run; its data
/// does not. More are refused for single chunks in a process that was forked after C-Blosc2 had started threads, since
/// those stay behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Threads(i16);

impl Threads {
    /// One thread: the caller's.
    pub const ONE: Self = Self(1);

    /// So many threads; 0 counts as 1, and more than 256 as 256.
    pub fn new(count: usize) -> Self {
        Self(count.clamp(1, 256) as i16)
    }

    /// As many as the machine offers this process.
    pub fn auto() -> Self {
        Self::new(thread::available_parallelism().map_or(1, usize::from))
    }

    /// The number.
    pub fn count(self) -> usize {
        usize::from(self.0.unsigned_abs())
    }

    /// For threads of our own.
    pub(crate) fn for_any(self) -> i16 {
        self.0
    }

    /// What C is told: its pool of threads is safe only when hardened.
    pub(crate) fn for_c(self) -> i16 {
        if sys::HARDENED { self.0 } else { 1 }
    }
}

impl Default for Threads {
    fn default() -> Self {
        Self::ONE
    }
}

/// How data is compressed. C's `blosc2_cparams`, Python's `CParams`.
///
/// The default is what Python writes: Zstandard at level 5, shuffle, automatic split and block size,
/// the typesize of the data; but one thread. The values are checked when they are used: without the
/// feature `zstd`, a codec has to be chosen.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct CParams {
    /// The codec.
    pub codec: Codec,
    /// Parameter of the codec; 0 unless the codec asks for one.
    pub codec_meta: u8,
    /// Compression level, 0 (store) to 9.
    pub level: u8,
    /// Bytes of an item, 1 to [`MAX_TYPESIZE`]; `None` for the size of the data's type.
    pub typesize: Option<usize>,
    /// Bytes of a block; `None` for automatic. Arrays have their own block shape instead.
    pub blocksize: Option<usize>,
    /// Whether items are split into streams.
    pub split: SplitMode,
    /// The filters, at most 6, in the order in which they are applied.
    pub filters: Vec<Filter>,
    /// Whether to train a dictionary for each chunk (Zstandard, LZ4 and LZ4HC).
    pub dictionary: bool,
    /// Threads for one chunk.
    pub threads: Threads,
    /// Whether chunks get the header of Blosc1, of 16 bytes, so that Blosc1 can read them.
    pub blosc1: bool,
    /// What chooses these parameters anew for each chunk.
    pub tuner: Option<Tuner>,
}

impl Default for CParams {
    fn default() -> Self {
        Self {
            codec: Codec::Zstd,
            codec_meta: 0,
            level: 5,
            typesize: None,
            blocksize: None,
            split: SplitMode::Auto,
            filters: vec![Filter::Shuffle],
            dictionary: false,
            threads: Threads::ONE,
            blosc1: false,
            tuner: None,
        }
    }
}

impl CParams {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the codec.
    pub fn codec(mut self, codec: Codec) -> Self {
        self.codec = codec;
        self
    }

    /// Sets the parameter of the codec.
    pub fn codec_meta(mut self, meta: u8) -> Self {
        self.codec_meta = meta;
        self
    }

    /// Sets the compression level, 0 to 9.
    pub fn level(mut self, level: u8) -> Self {
        self.level = level;
        self
    }

    /// Sets the bytes of an item.
    pub fn typesize(mut self, typesize: usize) -> Self {
        self.typesize = Some(typesize);
        self
    }

    /// Sets the bytes of a block.
    pub fn blocksize(mut self, blocksize: usize) -> Self {
        self.blocksize = Some(blocksize);
        self
    }

    /// Sets the split mode.
    pub fn split(mut self, split: SplitMode) -> Self {
        self.split = split;
        self
    }

    /// Sets the filters, in the order in which they are applied.
    pub fn filters(mut self, filters: &[Filter]) -> Self {
        self.filters = filters.to_vec();
        self
    }

    /// Sets whether a dictionary is trained for each chunk.
    pub fn dictionary(mut self, dictionary: bool) -> Self {
        self.dictionary = dictionary;
        self
    }

    /// Sets the threads for one chunk.
    pub fn threads(mut self, threads: Threads) -> Self {
        self.threads = threads;
        self
    }

    /// Sets whether chunks get the header of Blosc1, so that Blosc1 can read them: bare chunks, as Zarr
    /// and HDF5 keep them.
    ///
    /// It knows typesizes to 255, one filter, which is shuffle or bitshuffle, and no dictionaries. With the
    /// feature `system` this is [`ErrorKind::Unsupported`].
    ///
    /// ```
    /// # if blosc2::instruction_set().is_none() {
    /// #     return Ok::<(), blosc2::Error>(()); // An installed library cannot do it.
    /// # }
    /// use blosc2::{CParams, ChunkRef, Codec, Filter};
    ///
    /// let params = CParams::new().codec(Codec::Lz4).filters(&[Filter::Bitshuffle]).blosc1(true);
    /// let bytes = blosc2::compress(&[1.0f32; 1000], &params)?;
    /// let chunk = ChunkRef::new(&bytes)?;
    /// assert!(chunk.is_blosc1() && chunk.format_version() == 2);
    /// assert_eq!(chunk.decompress::<f32>()?, [1.0; 1000]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    pub fn blosc1(mut self, blosc1: bool) -> Self {
        self.blosc1 = blosc1;
        self
    }

    /// Sets the tuner, which chooses these parameters anew for each chunk.
    pub fn tuner(mut self, tuner: Tuner) -> Self {
        self.tuner = Some(tuner);
        self
    }

    /// The codec; `Other` may hold a code that has a name.
    fn named_codec(&self) -> Codec {
        Codec::from_code(self.codec.code())
    }

    /// The filters, in the same way.
    fn named_filters(&self) -> Vec<Filter> {
        let named = |filter: &Filter| Filter::from_code(filter.code(), filter.meta());
        self.filters.iter().filter_map(named).collect()
    }

    /// Checks what does not depend on the typesize: all is there, and within its range.
    pub(crate) fn check_values(&self) -> Result<()> {
        let doing = "compress with these parameters";
        let invalid = |detail: String| Err(Error::new(ErrorKind::InvalidArgument, doing, detail));
        let unsupported = |detail: &str| Err(Error::new(ErrorKind::Unsupported, doing, detail));
        let (codec, filters) = (self.named_codec(), self.named_filters());
        if self.level > 9 {
            return invalid(format!("the level has to be 0 to 9, got {}", self.level));
        }
        codec.check_available(doing)?;
        if filters.len() > MAX_FILTERS {
            let count = filters.len();
            return invalid(format!("there can be {MAX_FILTERS} filters, got {count}"));
        }
        if let Some(filter) = filters.iter().find(|filter| !filter::is_available(filter.code())) {
            return unsupported(&format!("{filter} is not in this build"));
        }
        if self.dictionary && !matches!(codec, Codec::Zstd | Codec::Lz4 | Codec::Lz4Hc) {
            return invalid(format!("the codec {codec} has no dictionaries"));
        }
        if !sys::HARDENED && self.dictionary && codec != Codec::Zstd {
            return unsupported(
                "an installed C-Blosc2 makes dictionaries of LZ4 by overlapping copies",
            );
        }
        if let Some(blocksize) = self.blocksize.filter(|&size| size > MAX_BLOCKSIZE as usize) {
            let limit = MAX_BLOCKSIZE;
            return invalid(format!("a block has at most {limit} bytes, got {blocksize}"));
        }
        Tuning::of(self, Purpose::Chunk).map(drop)
    }

    /// Checks the values and fills in the typesize.
    pub(crate) fn resolve(&self, default_typesize: usize, purpose: Purpose) -> Result<Resolved> {
        let doing = "compress with these parameters";
        let invalid = |detail: String| Error::new(ErrorKind::InvalidArgument, doing, detail);
        let in_array = purpose == Purpose::Array;
        self.check_values()?;
        let (codec, filters) = (self.named_codec(), self.named_filters());
        let typesize = self.typesize.unwrap_or(default_typesize);
        if typesize == 0 || typesize > MAX_TYPESIZE {
            return Err(invalid(format!(
                "the typesize has to be 1 to {MAX_TYPESIZE}, got {typesize}"
            )));
        }
        if codec.needs_array() && !in_array {
            return Err(invalid(format!("the codec {codec} works in arrays only")));
        }
        if codec == Codec::Ndlz && (typesize != 1 || !matches!(self.codec_meta, 4 | 8)) {
            let meta = self.codec_meta;
            return Err(invalid(format!(
                "ndlz needs items of 1 byte and the parameter 4 or 8, got {typesize} and {meta}"
            )));
        }
        let blocksize = self.blocksize.unwrap_or(0);
        if self.blocksize.is_some_and(|size| size < typesize) {
            return Err(invalid(format!(
                "a block has to hold an item of {typesize} bytes, got a block of {blocksize}"
            )));
        }
        check_filters(&filters, typesize, in_array, self.dictionary)?;
        closures::check_shape(codec, &filters, doing)?;
        if self.blosc1 {
            self.check_blosc1(codec, &filters, typesize, purpose)?;
        }

        let mut c = sys::blosc2_cparams_defaults();
        c.compcode = codec.code();
        c.compcode_meta = self.codec_meta;
        c.clevel = self.level;
        c.use_dict = self.dictionary.into();
        let to_c = |size| i32::try_from(size).map_err(|_| invalid(format!("{size} is too large")));
        c.typesize = to_c(typesize)?;
        c.blocksize = to_c(blocksize)?;
        c.splitmode = self.split.code();
        c.nthreads = self.threads.for_c();
        c.filters = [0; MAX_FILTERS];
        let first = MAX_FILTERS - filters.len();
        for (slot, filter) in filters.iter().enumerate() {
            c.filters[first + slot] = filter.code();
            c.filters_meta[first + slot] = match filter {
                Filter::ByteDelta(0) => typesize as u8,
                filter => filter.meta(),
            };
        }
        let tuning = Tuning::of(self, purpose)?;
        Ok(Resolved { c, filters, blosc1: self.blosc1, tuning })
    }

    /// Sees that Blosc1 can read what comes out.
    fn check_blosc1(
        &self,
        codec: Codec,
        filters: &[Filter],
        typesize: usize,
        purpose: Purpose,
    ) -> Result<()> {
        let doing = "compress to chunks of Blosc1";
        let invalid = |detail: String| Err(Error::new(ErrorKind::InvalidArgument, doing, detail));
        if !sys::HARDENED {
            let detail = "an installed C-Blosc2 does so where an environment variable says it only";
            return Err(Error::new(ErrorKind::Unsupported, doing, detail));
        }
        if purpose != Purpose::Chunk {
            return invalid("they stand alone, not in super-chunks or arrays".to_owned());
        }
        if typesize > 255 {
            return invalid(format!("the typesize has to be 1 to 255, got {typesize}"));
        }
        let known =
            matches!(codec, Codec::BloscLz | Codec::Lz4 | Codec::Lz4Hc | Codec::Zlib | Codec::Zstd);
        if !known || self.codec_meta != 0 {
            return invalid(format!("it does not know the codec {codec} with {}", self.codec_meta));
        }
        if !matches!(filters, [] | [Filter::Shuffle | Filter::Bitshuffle]) {
            let names: Vec<String> = filters.iter().map(ToString::to_string).collect();
            let names = names.join(", ");
            return invalid(format!("there can be one filter, shuffle or bitshuffle, got {names}"));
        }
        if self.dictionary {
            return invalid("they have no dictionaries".to_owned());
        }
        Ok(())
    }
}

/// What chunks are made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To stand alone.
    Chunk,
    /// To be in a super-chunk.
    Frame,
    /// To be in an array, whose shape codecs and filters may need.
    Array,
}

fn check_filters(
    filters: &[Filter],
    typesize: usize,
    in_array: bool,
    dictionary: bool,
) -> Result<()> {
    let doing = "compress with these filters";
    let invalid = |detail: String| Error::new(ErrorKind::InvalidArgument, doing, detail);
    for (position, each) in filters.iter().enumerate() {
        if let Some(objection) = each.objection(typesize) {
            let kind = match filter::is_available(each.code()) {
                true => ErrorKind::InvalidArgument,
                false => ErrorKind::Unsupported,
            };
            return Err(Error::new(kind, doing, objection));
        }
        if each.needs_array() && !in_array {
            return Err(invalid(format!("the filter {each} works in arrays only")));
        }
        // Elsewhere C-Blosc2 as released reads other data with several threads.
        if filter::is_delta(each.code()) && position > 0 {
            return Err(invalid("delta has to be the first filter".to_owned()));
        }
    }
    let uses_delta = filters.iter().any(|each| filter::is_delta(each.code()));
    if let (true, Some(mean)) =
        (uses_delta, filters.iter().find(|each| matches!(each, Filter::NdMean(_))))
    {
        return Err(invalid(format!("delta needs the data as it was, which {mean} loses")));
    }
    // Without the patches of blosc2-sys, C takes the source as scratch space from the third filter
    // on. A copy of the source serves, but not where C looks at it again.
    let twice = dictionary || uses_delta;
    if !sys::HARDENED && filters.len() > 2 && twice {
        let detail =
            "an installed C-Blosc2 corrupts data with three filters and delta or a dictionary";
        return Err(Error::new(ErrorKind::Unsupported, doing, detail));
    }
    Ok(())
}

/// Checked parameters, in C's form.
#[derive(Debug, Clone)]
pub(crate) struct Resolved {
    pub(crate) c: sys::blosc2_cparams,
    pub(crate) filters: Vec<Filter>,
    pub(crate) blosc1: bool,
    pub(crate) tuning: Option<Tuning>,
}

impl Resolved {
    pub(crate) fn typesize(&self) -> usize {
        self.c.typesize as usize
    }

    /// What the header of a frame says of them.
    pub(crate) fn to_format(&self) -> format::Params {
        let c = &self.c;
        // Sizes were checked when they were resolved.
        let size = |size: i32| u32::try_from(size).unwrap_or(0);
        let code = u8::try_from(c.splitmode).unwrap_or(u8::MAX);
        format::Params {
            codec: c.compcode,
            codec_meta: c.compcode_meta,
            level: c.clevel,
            typesize: size(c.typesize),
            blocksize: Some(size(c.blocksize)).filter(|&blocksize| blocksize > 0),
            filters: c.filters,
            filters_meta: c.filters_meta,
            split: SplitMode::from_code(code).to_format(),
        }
    }
}

/// How data is decompressed. C's `blosc2_dparams`, Python's `DParams`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct DParams {
    /// Threads for one chunk; one by default.
    pub threads: Threads,
}

impl DParams {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the threads for one chunk.
    pub fn threads(mut self, threads: Threads) -> Self {
        self.threads = threads;
        self
    }

    pub(crate) fn to_c(&self) -> sys::blosc2_dparams {
        sys::blosc2_dparams { nthreads: self.threads.for_c(), ..sys::blosc2_dparams_defaults() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(params: CParams, typesize: usize) -> ErrorKind {
        params.resolve(typesize, Purpose::Chunk).unwrap_err().kind()
    }

    #[cfg(any(feature = "zstd", feature = "system"))]
    #[test]
    fn defaults_are_pythons() {
        let c = CParams::new().resolve(4, Purpose::Chunk).unwrap().c;
        assert_eq!((c.compcode, c.clevel, c.typesize, c.nthreads), (5, 5, 4, 1));
        assert_eq!((c.splitmode, c.blocksize, c.use_dict), (3, 0, 0));
        assert_eq!(c.filters, [0, 0, 0, 0, 0, 1]);
    }

    #[test]
    fn values_out_of_range_are_refused() {
        let params = || CParams::new().codec(Codec::Lz4);
        use ErrorKind::{InvalidArgument, Unsupported};
        // The codecs for arrays of an installed library are not used at all.
        let for_arrays = if sys::HARDENED { InvalidArgument } else { Unsupported };
        assert_eq!(kind(params().level(10), 4), InvalidArgument);
        assert_eq!(kind(params(), 0), InvalidArgument);
        assert_eq!(kind(params().typesize(0), 4), InvalidArgument);
        assert_eq!(kind(params().typesize(MAX_TYPESIZE + 1), 4), InvalidArgument);
        assert_eq!(kind(params().blocksize(3), 4), InvalidArgument);
        assert_eq!(kind(params().blocksize(0), 4), InvalidArgument);
        assert_eq!(kind(params().blocksize(1 << 30), 4), InvalidArgument);
        assert_eq!(kind(params().codec(Codec::Other(99)), 4), Unsupported);
        assert_eq!(kind(params().codec(Codec::Other(38)), 4), Unsupported);
        assert_eq!(kind(params().codec(Codec::Ndlz), 1), for_arrays);
        assert_eq!(kind(params().codec(Codec::BloscLz).dictionary(true), 1), InvalidArgument);
        assert_eq!(kind(params().filters(&[Filter::Shuffle; 7]), 4), InvalidArgument);
        assert_eq!(kind(params().filters(&[Filter::Shuffle, Filter::Delta]), 4), InvalidArgument);
        assert_eq!(kind(params().filters(&[Filter::TruncPrec(10)]), 2), InvalidArgument);
        assert_eq!(kind(params().filters(&[Filter::TruncPrec(24)]), 4), InvalidArgument);
        assert_eq!(kind(params().filters(&[Filter::TruncPrec(-23)]), 4), InvalidArgument);
        assert_eq!(kind(params().filters(&[Filter::NdCell(4)]), 4), InvalidArgument);
        let delta = Filter::Other { code: Filter::Delta.code(), meta: 1 };
        assert_eq!(kind(params().filters(&[Filter::Shuffle, delta]), 4), InvalidArgument);
        let ndlz = Codec::Other(Codec::Ndlz.code());
        assert_eq!(kind(params().codec(ndlz), 1), for_arrays);
        let unknown = Filter::Other { code: 99, meta: 0 };
        assert_eq!(kind(params().filters(&[unknown]), 4), Unsupported);
    }

    #[test]
    fn threads_are_counted_from_one() {
        assert_eq!(Threads::new(0), Threads::ONE);
        assert_eq!(Threads::new(100_000).count(), 256);
        assert!(Threads::auto().count() >= 1);
    }
}
