//! The codec `imagecodecs_blosc2`.

use std::sync::Arc;

use blosc2::{CParams, Codec, Filter, SplitMode};
use serde_json::json;
use zarrs::array::codec::api::{
    self as api, CodecPluginV2, CodecPluginV3, CodecTraitsV2, CodecTraitsV3,
};
use zarrs::metadata::Configuration;
use zarrs::metadata::v2::MetadataV2;
use zarrs::metadata::v3::MetadataV3;
use zarrs::plugin::{PluginCreateError, ZarrVersion};

use crate::codec::impl_codec;
use crate::coder::Coder;
use crate::fields::{CODECS, Fields};

/// The names and codes of imagecodecs; the first name of each value is written.
const FILTERS: [(&str, i64, &[Filter]); 5] = [
    ("nofilter", 0, &[]),
    ("noshuffle", 0, &[]),
    ("shuffle", 1, &[Filter::Shuffle]),
    ("bitshuffle", 2, &[Filter::Bitshuffle]),
    ("delta", 3, &[Filter::Delta]),
];
const SPLITS: [(&str, i64, SplitMode); 4] = [
    ("always", 1, SplitMode::Always),
    ("never", 2, SplitMode::Never),
    ("auto", 3, SplitMode::Auto),
    ("forward_compat", 4, SplitMode::ForwardCompat),
];

/// The codec `imagecodecs_blosc2`. The Python package imagecodecs has the same codec. Each encoded chunk is a Blosc2
/// chunk.
///
/// | | name | other names that are read |
/// |---|---|---|
/// | Zarr V3 | `imagecodecs_blosc2` | `blosc2` |
/// | Zarr V2 | `imagecodecs_blosc2` | `blosc2` |
///
/// The compressors are `blosclz`, `lz4`, `lz4hc`, `zlib` and `zstd`. The filters are `shuffle`, `bitshuffle`, `delta`,
/// or none. Reading also supports all other codecs and filters of this build, because the header of each chunk states
/// the codec and the filters.
///
/// The configuration is the same in both versions of Zarr. All fields are optional:
///
/// | field | default |
/// |---|---|
/// | `level` | 1 |
/// | `compressor` | `zstd` |
/// | `shuffle` | `shuffle` |
/// | `splitmode` | `auto` |
/// | `typesize` | 1; see the [limits](crate#limits) |
/// | `blocksize` | an automatic size |
/// | `numthreads` and other fields | are ignored |
///
/// Reading a configuration accepts names in upper or lower case, the numeric codes of imagecodecs, and the names
/// `cname` and `clevel` for `compressor` and `level`.
///
/// ```
/// use std::sync::Arc;
///
/// use blosc2::{CParams, Codec, Filter};
/// use blosc2_zarrs::Blosc2Codec;
/// use zarrs::array::codec::api::CodecTraits;
///
/// let params = CParams::new().codec(Codec::Lz4).filters(&[Filter::Bitshuffle]).typesize(8);
/// let codec = Blosc2Codec::new(params)?;
/// let configuration = codec.configuration_v3(&Default::default()).unwrap();
/// assert_eq!(configuration["compressor"], "lz4");
/// assert_eq!(configuration["shuffle"], "bitshuffle");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Blosc2Codec {
    params: CParams,
    coder: Arc<Coder>,
}

impl Blosc2Codec {
    /// Creates a codec from compression parameters.
    ///
    /// The number of [threads](CParams::threads) for each chunk is not stored in the metadata. The default typesize
    /// is 1.
    ///
    /// # Errors
    /// [`PluginCreateError::Other`]: a parameter is invalid, or the metadata of this codec cannot contain it. The
    /// metadata cannot contain:
    /// - more than one filter;
    /// - codecs and filters that are not in the list of [`Blosc2Codec`];
    /// - a parameter of the codec;
    /// - a dictionary or a tuner;
    /// - the option [`CParams::blosc1`].
    pub fn new(params: CParams) -> Result<Self, PluginCreateError> {
        let supported = CODECS.iter().any(|entry| entry.2 == params.codec)
            && FILTERS.iter().any(|entry| entry.2 == params.filters)
            && params.codec_meta == 0
            && !params.dictionary
            && !params.blosc1
            && params.tuner.is_none();
        if !supported {
            let detail = "codec imagecodecs_blosc2: its metadata cannot express the parameters";
            return Err(format!("{detail} {params:?}").into());
        }
        let chunks = params.clone().typesize(params.typesize.unwrap_or(1));
        Ok(Self { params, coder: Arc::new(Coder::new(&chunks)?) })
    }

    /// Returns the parameters.
    pub fn params(&self) -> &CParams {
        &self.params
    }

    fn from_fields(fields: &Configuration) -> Result<Self, PluginCreateError> {
        let fields = Fields { codec: "imagecodecs_blosc2", fields };
        let codec = fields.choice(&["compressor", "cname"], &CODECS)?;
        let filters = fields.choice(&["shuffle"], &FILTERS)?;
        let split = fields.choice(&["splitmode"], &SPLITS)?;
        let mut params = CParams::new()
            .codec(codec.unwrap_or(Codec::Zstd))
            .level(fields.level(&["level", "clevel"])?.unwrap_or(1))
            .filters(filters.unwrap_or(&[Filter::Shuffle]))
            .split(split.unwrap_or(SplitMode::Auto));
        params.typesize = fields.size("typesize")?;
        let least = params.typesize.unwrap_or(1);
        params.blocksize = fields.size("blocksize")?.map(|size| size.max(least));
        Self::new(params)
    }

    fn to_configuration(&self, _version: ZarrVersion) -> Configuration {
        let params = &self.params;
        let mut fields = serde_json::Map::new();
        fields.insert("level".into(), json!(params.level));
        fields.insert("compressor".into(), json!(params.codec.to_string()));
        let shuffle = FILTERS.iter().find(|entry| entry.2 == params.filters);
        fields.insert("shuffle".into(), json!(shuffle.map(|entry| entry.0)));
        let split = SPLITS.iter().find(|entry| entry.2 == params.split);
        fields.insert("splitmode".into(), json!(split.map(|entry| entry.0)));
        fields.insert("typesize".into(), json!(params.typesize.unwrap_or(1)));
        if let Some(blocksize) = params.blocksize {
            fields.insert("blocksize".into(), json!(blocksize));
        }
        fields.into()
    }
}

impl_codec!(Blosc2Codec);

zarrs::plugin::impl_extension_aliases!(
    Blosc2Codec,
    v3: "imagecodecs_blosc2", ["blosc2"],
    v2: "imagecodecs_blosc2", ["blosc2"]
);

inventory::submit! {
    CodecPluginV3::new::<Blosc2Codec>()
}

inventory::submit! {
    CodecPluginV2::new::<Blosc2Codec>()
}

impl CodecTraitsV3 for Blosc2Codec {
    fn create(metadata: &MetadataV3) -> Result<api::Codec, PluginCreateError> {
        let none = Configuration::default();
        let codec = Self::from_fields(metadata.configuration().unwrap_or(&none))?;
        Ok(api::Codec::BytesToBytes(Arc::new(codec)))
    }
}

impl CodecTraitsV2 for Blosc2Codec {
    fn create(metadata: &MetadataV2) -> Result<api::Codec, PluginCreateError> {
        let codec = Self::from_fields(metadata.configuration())?;
        Ok(api::Codec::BytesToBytes(Arc::new(codec)))
    }
}
