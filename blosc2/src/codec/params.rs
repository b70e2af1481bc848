//! Checked parameters in the form that C needs, and the tuner that chooses parameters for each chunk.

use std::ffi::c_void;
use std::time::Instant;
use std::{fmt, ptr};

use blosc2_format::chunk::{self as format, MAX_BLOCKSIZE, MAX_FILTERS};
use blosc2_sys as sys;

use crate::closures::{
    ChunkFilter, Title, TunerInput, TunerOutcome, UserTuner, is_user_code, run_here,
};
use crate::codec::filter;
use crate::codec::installed;
#[cfg(feature = "dynamic-plugins")]
use crate::codec::plugins::PluginParams;
use crate::{CParams, Codec, Doing, Error, ErrorKind, Filter, Reason, Result, Threads, Tuner};

const TUNE: &str = "tune the compression";

/// The maximum decompressed size of a chunk, in bytes: 2^31 - 33. C: `BLOSC2_MAX_BUFFERSIZE`.
pub const MAX_CHUNK_LEN: usize = sys::BLOSC2_MAX_BUFFERSIZE as usize;
/// The maximum typesize (size of an item), in bytes.
pub const MAX_TYPESIZE: usize = MAX_BLOCKSIZE as usize;

impl CParams {
    /// Returns the codec. An `Other` whose code has a variant is replaced by that variant.
    fn named_codec(&self) -> Codec {
        Codec::from_code(self.codec.code())
    }

    /// Returns the filters. An `Other` whose code has a variant is replaced by that variant.
    fn named_filters(&self) -> Vec<Filter> {
        let named = |filter: &Filter| Filter::from_code(filter.code(), filter.meta());
        self.filters.iter().filter_map(named).collect()
    }

    /// Makes the checks that do not depend on the typesize: the codec, filters and tuner are available, and values are
    /// in range.
    pub(crate) fn check_values(&self) -> Result<()> {
        let doing = "compress with these parameters";
        let invalid = |detail: String| Err(Error::new(ErrorKind::InvalidArgument, doing, detail));
        let unsupported = |detail: &str| Err(Error::new(ErrorKind::Unsupported, doing, detail));
        let (codec, filters) = (self.named_codec(), self.named_filters());
        if self.level > 9 {
            return invalid(format!("the level has to be from 0 to 9, got {}", self.level));
        }
        codec.check_available().doing(doing)?;
        if filters.len() > MAX_FILTERS {
            let count = filters.len();
            return invalid(format!("at most {MAX_FILTERS} filters are supported, got {count}"));
        }
        if let Some(filter) = filters.iter().find(|filter| !filter::is_available(filter.code())) {
            return unsupported(&filter.unavailable());
        }
        if self.dictionary && !matches!(codec, Codec::Zstd | Codec::Lz4 | Codec::Lz4Hc) {
            return invalid(format!("the codec {codec} does not support dictionaries"));
        }
        installed::LZ4_DICTIONARY.refuse(self.dictionary && codec != Codec::Zstd).doing(doing)?;
        if let Some(blocksize) = self.blocksize.filter(|&size| size > MAX_BLOCKSIZE as usize) {
            let limit = MAX_BLOCKSIZE;
            return invalid(format!("a block has at most {limit} bytes, got {blocksize}"));
        }
        Tuning::of(self, Purpose::Chunk).map(drop)
    }

    /// Checks all values, and sets the typesize: `default_typesize` if the parameters have none.
    pub(crate) fn resolve(&self, default_typesize: usize, purpose: Purpose) -> Result<Resolved> {
        let doing = "compress with these parameters";
        let invalid = |detail: String| Error::new(ErrorKind::InvalidArgument, doing, detail);
        let in_array = purpose == Purpose::Array;
        self.check_values()?;
        let (codec, filters) = (self.named_codec(), self.named_filters());
        let typesize = self.typesize.unwrap_or(default_typesize);
        if typesize == 0 || typesize > MAX_TYPESIZE {
            return Err(invalid(format!(
                "the typesize has to be from 1 to {MAX_TYPESIZE}, got {typesize}"
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
        #[cfg(feature = "dynamic-plugins")]
        if let Some(other) = self.plugin_params.as_ref().map(PluginParams::code)
            && other != codec.code()
        {
            let other = Codec::from_code(other);
            let detail = format!("the plugin parameters are for {other}, but the codec is {codec}");
            return Err(invalid(detail));
        }
        check_filters(&filters, typesize, in_array, self.dictionary)?;
        check_shape(codec, filters.iter().copied()).doing(doing)?;
        if self.blosc1 {
            self.check_blosc1(codec, &filters, typesize, purpose)?;
        }

        let mut format = format::Params {
            codec: codec.code(),
            codec_meta: self.codec_meta,
            level: self.level,
            // Both are at most MAX_BLOCKSIZE.
            typesize: typesize as u32,
            blocksize: Some(blocksize as u32).filter(|&blocksize| blocksize > 0),
            filters: [0; MAX_FILTERS],
            filters_meta: [0; MAX_FILTERS],
            split: self.split,
        };
        let first = MAX_FILTERS - filters.len();
        for (slot, filter) in filters.iter().enumerate() {
            format.filters[first + slot] = filter.code();
            format.filters_meta[first + slot] = match filter {
                Filter::Bytedelta(0) => typesize as u8,
                filter => filter.meta(),
            };
        }
        let tuning = Tuning::of(self, purpose)?;
        Ok(Resolved {
            format,
            dictionary: self.dictionary,
            threads: self.threads,
            filters,
            blosc1: self.blosc1,
            tuning,
            prefilter: self.prefilter.clone(),
            #[cfg(feature = "dynamic-plugins")]
            plugin_params: self.plugin_params.clone(),
        })
    }

    /// Checks that Blosc1 can read the chunks.
    fn check_blosc1(
        &self,
        codec: Codec,
        filters: &[Filter],
        typesize: usize,
        purpose: Purpose,
    ) -> Result<()> {
        let doing = "compress to chunks of Blosc1";
        let invalid = |detail: String| Err(Error::new(ErrorKind::InvalidArgument, doing, detail));
        installed::BLOSC1.refuse(true).doing(doing)?;
        if purpose != Purpose::Chunk {
            return invalid("they cannot be in super-chunks or arrays".to_owned());
        }
        if typesize > 255 {
            return invalid(format!("the typesize has to be from 1 to 255, got {typesize}"));
        }
        let known =
            matches!(codec, Codec::BloscLz | Codec::Lz4 | Codec::Lz4Hc | Codec::Zlib | Codec::Zstd);
        if !known || self.codec_meta != 0 {
            return invalid(format!(
                "Blosc1 does not support the codec {codec} with the parameter {}",
                self.codec_meta
            ));
        }
        if !matches!(filters, [] | [Filter::Shuffle | Filter::Bitshuffle]) {
            let names: Vec<String> = filters.iter().map(ToString::to_string).collect();
            let names = names.join(", ");
            return invalid(format!("expected one filter, shuffle or bitshuffle, got {names}"));
        }
        if self.dictionary {
            return invalid("Blosc1 has no dictionaries".to_owned());
        }
        Ok(())
    }
}

/// The purpose for which chunks are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Single chunks.
    Chunk,
    /// The chunks of a super-chunk.
    Frame,
    /// The chunks of an array, whose shape codecs and filters may need.
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
        // If delta is at another position, upstream's C-Blosc2 reads wrong data with several threads.
        if filter::is_delta(each.code()) && position > 0 {
            return Err(invalid("delta has to be the first filter".to_owned()));
        }
    }
    let uses_delta = filters.iter().any(|each| filter::is_delta(each.code()));
    if let (true, Some(mean)) =
        (uses_delta, filters.iter().find(|each| matches!(each, Filter::Ndmean(_))))
    {
        return Err(invalid(format!("delta cannot be combined with the lossy filter {mean}")));
    }
    installed::SOURCE_TWICE.refuse(filters.len() > 2 && (dictionary || uses_delta)).doing(doing)
}

/// Checked parameters.
#[derive(Debug, Clone)]
pub(crate) struct Resolved {
    /// The parameters that the header of a frame stores; the typesize and the block size fit in an `i32`.
    pub(crate) format: format::Params,
    pub(crate) dictionary: bool,
    pub(crate) threads: Threads,
    pub(crate) filters: Vec<Filter>,
    pub(crate) blosc1: bool,
    pub(crate) tuning: Option<Tuning>,
    pub(crate) prefilter: Option<ChunkFilter>,
    /// For the codec of `format`.
    #[cfg(feature = "dynamic-plugins")]
    plugin_params: Option<PluginParams>,
}

impl Resolved {
    /// Returns the parameters that the plugin of the codec receives, or null. The parameters live as long as `self`.
    pub(crate) fn codec_params(&self) -> *mut c_void {
        #[cfg(feature = "dynamic-plugins")]
        if let Some(params) = &self.plugin_params {
            return params.as_ptr();
        }
        ptr::null_mut()
    }

    pub(crate) fn typesize(&self) -> usize {
        self.format.typesize as usize
    }

    /// Returns the parameters for C, except the parameters that are pointers.
    pub(crate) fn to_c(&self) -> sys::blosc2_cparams {
        let format = &self.format;
        sys::blosc2_cparams {
            compcode: format.codec,
            compcode_meta: format.codec_meta,
            clevel: format.level,
            use_dict: self.dictionary.into(),
            typesize: format.typesize as i32,
            nthreads: self.threads.for_c(),
            blocksize: format.blocksize.unwrap_or(0) as i32,
            splitmode: format.split as i32,
            filters: format.filters,
            filters_meta: format.filters_meta,
            ..sys::blosc2_cparams_defaults()
        }
    }
}

/// Refuses the combination of user-defined codecs or filters with codecs or filters that read the shape of an array.
pub(crate) fn check_shape(
    codec: Codec,
    filters: impl Iterator<Item = Filter> + Clone,
) -> Result<(), Reason> {
    let codes = || filters.clone().map(|filter| filter.code());
    let shape = codec.needs_array() || filters.clone().any(|filter| filter.needs_array());
    let closures = is_user_code(codec.code()) || codes().any(is_user_code);
    if !(shape && closures) {
        return Ok(());
    }
    let detail =
        "user-defined codecs and filters cannot be combined with codecs and filters for arrays";
    Err(Reason::new(ErrorKind::Unsupported, detail))
}

/// The tuner of an encoder. The instance of the tuner is created on first use.
pub(crate) struct Tuning {
    tuner: Tuner,
    purpose: Purpose,
    params: CParams,
    tune: Option<Box<dyn UserTuner>>,
    index: usize,
}

impl fmt::Debug for Tuning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tuning").field("tuner", &self.tuner).finish_non_exhaustive()
    }
}

impl Clone for Tuning {
    /// Creates a copy with a new instance of the tuner, which has not run.
    fn clone(&self) -> Self {
        Self { params: self.params.clone(), tune: None, index: 0, ..*self }
    }
}

impl Tuning {
    /// Returns the tuner that the parameters name, if any.
    pub(super) fn of(params: &CParams, purpose: Purpose) -> Result<Option<Self>> {
        let Some(tuner) = params.tuner else {
            return Ok(None);
        };
        tuner.make()?;
        Ok(Some(Self { tuner, purpose, params: params.clone(), tune: None, index: 0 }))
    }

    /// Returns the parameters that the tuner chose last.
    pub(crate) fn params(&self) -> &CParams {
        &self.params
    }

    /// Resolves these parameters for items of this size.
    pub(crate) fn resolve(&self, typesize: usize) -> Result<Resolved> {
        self.params.resolve(typesize, self.purpose)
    }

    /// Calls the tuner. Returns the new parameters if the tuner has changed the parameters. `now` contains the current
    /// parameters.
    pub(crate) fn next(&mut self, data: &[&[u8]], now: &Resolved) -> Result<Option<Resolved>> {
        let (typesize, index) = (now.typesize(), self.index);
        let make = self.tuner.make()?;
        let mut params = self.params.clone();
        let resolved = run_here(Title::Tuner(self.tuner.id(), self.tuner.name()), || {
            let tune = self.tune.get_or_insert_with(|| make(&params));
            tune.next(&mut params, &TunerInput { data, typesize, index })?;
            // A tuner may replace all parameters that it sees.
            params.prefilter.clone_from(&self.params.prefilter);
            if params == self.params {
                return Ok(None);
            }
            let fixed = |params: &CParams| (params.typesize, params.blosc1, params.tuner);
            let in_array = self.purpose == Purpose::Array;
            if fixed(&params) != fixed(&self.params)
                || (in_array && params.blocksize != self.params.blocksize)
            {
                return Err("it changed a parameter that has to stay the same".into());
            }
            let resolved = params.resolve(typesize, self.purpose)?;
            let blocksize = if in_array { now.format } else { resolved.format }.blocksize;
            let format = format::Params { blocksize, ..resolved.format };
            Ok(Some(Resolved { format, ..resolved }))
        })
        .doing(TUNE)?;
        self.params = params;
        self.index += 1;
        Ok(resolved)
    }

    /// Passes the outcome to the tuner; compression began at `start`.
    pub(crate) fn measured(&mut self, start: Instant, nbytes: usize, cbytes: usize) -> Result<()> {
        let outcome = TunerOutcome { nbytes, cbytes, elapsed: start.elapsed() };
        match &mut self.tune {
            Some(tune) => run_here(Title::Tuner(self.tuner.id(), self.tuner.name()), || {
                tune.measured(&outcome)
            })
            .doing(TUNE),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(params: CParams, typesize: usize) -> ErrorKind {
        params.resolve(typesize, Purpose::Chunk).unwrap_err().kind()
    }

    #[test]
    fn defaults_are_pythons() {
        assert_eq!(CParams::new().codec.code(), 5);
        let c = CParams::new().codec(Codec::Lz4).resolve(4, Purpose::Chunk).unwrap().to_c();
        assert_eq!((c.compcode, c.clevel, c.typesize, c.nthreads), (1, 5, 4, 1));
        assert_eq!((c.splitmode, c.blocksize, c.use_dict), (3, 0, 0));
        assert_eq!(c.filters, [0, 0, 0, 0, 0, 1]);
    }

    #[test]
    fn values_out_of_range_are_refused() {
        let params = || CParams::new().codec(Codec::Lz4);
        use ErrorKind::{InvalidArgument, Unsupported};
        let for_arrays = if installed::BREAKS_ARRAY_CODECS { Unsupported } else { InvalidArgument };
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
        assert_eq!(kind(params().filters(&[Filter::Ndcell(4)]), 4), InvalidArgument);
        let delta = Filter::Other { code: Filter::Delta.code(), meta: 1 };
        assert_eq!(kind(params().filters(&[Filter::Shuffle, delta]), 4), InvalidArgument);
        let ndlz = Codec::Other(Codec::Ndlz.code());
        assert_eq!(kind(params().codec(ndlz), 1), for_arrays);
        let unknown = Filter::Other { code: 99, meta: 0 };
        assert_eq!(kind(params().filters(&[unknown]), 4), Unsupported);
    }
}
