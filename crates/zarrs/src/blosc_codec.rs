//! The codec `blosc`.

use std::sync::Arc;

use blosc2::{CParams, Codec, Filter, SplitMode};
use blosc2_format::chunk::MAX_BLOCKSIZE;
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

/// The largest typesize with which C-Blosc splits blocks.
const MAX_SPLIT: usize = 16;

/// The name under which zarr-python stores the codec of numcodecs in arrays of Zarr V3.
pub(crate) const NUMCODECS: &str = "numcodecs.blosc";

/// The codec `blosc` of Zarr V2 and V3. Each encoded chunk is a Blosc1 chunk. numcodecs and zarr-python write the same
/// format.
///
/// | | name | other names that are read |
/// |---|---|---|
/// | Zarr V3 | `blosc` | `numcodecs.blosc` |
/// | Zarr V2 | `blosc` | |
///
/// The compressors are `blosclz`, `lz4`, `lz4hc`, `zlib` and `zstd`. Arrays with the compressor `snappy` cannot be
/// opened.
///
/// Reading metadata needs no field, and accepts the forms of other writers: see [other
/// writers](crate#metadata-of-other-writers). The defaults of missing fields are those of numcodecs (`lz4`, level 5,
/// `shuffle`) for `numcodecs.blosc` and in Zarr V2, and those of zarr-python (`zstd`, level 5), with `noshuffle`, in
/// Zarr V3. The default typesize is 1. Python does not write the typesize in Zarr V2: see the [limits](crate#limits).
///
/// ```
/// use std::sync::Arc;
///
/// use blosc2::{CParams, Codec};
/// use blosc2_zarrs::BloscCodec;
/// use zarrs::array::{ArrayBuilder, data_type};
/// use zarrs::storage::store::MemoryStore;
///
/// let codec = BloscCodec::new(CParams::new().codec(Codec::Lz4).typesize(2))?;
/// let array = ArrayBuilder::new(vec![100], vec![50], data_type::uint16(), 0u16)
///     .bytes_to_bytes_codecs(vec![Arc::new(codec)])
///     .build(Arc::new(MemoryStore::new()), "/a")?;
/// array.store_chunk(&[0], vec![7u16; 50])?;
/// assert_eq!(array.retrieve_array_subset::<Vec<u16>>(&[48..52])?, [7, 7, 0, 0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct BloscCodec {
    params: CParams,
    coder: Arc<Coder>,
}

impl BloscCodec {
    /// Creates a codec from compression parameters.
    ///
    /// - The metadata contain the codec, the level, the filter, the typesize (default: 1) and the block size.
    /// - The number of [threads](CParams::threads) for each chunk and the [split mode](SplitMode) are used, but not
    ///   stored.
    /// - The automatic block size and the automatic split mode are computed like in C-Blosc. C-Blosc2 computes them
    ///   differently.
    /// - If the typesize is above 255, the metadata contain this typesize, but the chunks have a typesize of 1, as in
    ///   C-Blosc.
    ///
    /// # Errors
    /// - [`PluginCreateError::Other`]: a parameter is invalid, or Blosc1 does not support it (see [`CParams::blosc1`]).
    pub fn new(params: CParams) -> Result<Self, PluginCreateError> {
        let typesize = match params.typesize {
            Some(typesize) if typesize > 255 => 1,
            typesize => typesize.unwrap_or(1),
        };
        let mut chunks = params.clone().typesize(typesize).blosc1(true);
        let splits = params.codec != Codec::Zstd && typesize <= MAX_SPLIT;
        if matches!(params.split, SplitMode::Auto | SplitMode::ForwardCompat) {
            chunks.split = if splits { SplitMode::Always } else { SplitMode::Never };
        }
        let blocksize = params.blocksize.unwrap_or_else(|| automatic(&params, typesize, splits));
        // C-Blosc accepts any block size.
        chunks.blocksize = Some(blocksize.clamp(typesize.max(1), MAX_BLOCKSIZE as usize));
        Ok(Self { params, coder: Arc::new(Coder::new(&chunks)?) })
    }

    /// Returns the parameters.
    pub fn params(&self) -> &CParams {
        &self.params
    }

    /// Creates a codec from the fields of its configuration. `cname` and `filter` are the defaults.
    fn from_fields(
        fields: &Configuration,
        cname: Codec,
        filter: Shuffle,
    ) -> Result<Self, PluginCreateError> {
        let fields = Fields { codec: "blosc", fields };
        let typesize = fields.size("typesize")?;
        let filters: &[Filter] = match fields.choice(&["shuffle"], &SHUFFLES)?.unwrap_or(filter) {
            Shuffle::None => &[],
            Shuffle::Bits => &[Filter::Bitshuffle],
            Shuffle::Auto if typesize.unwrap_or(1) == 1 => &[Filter::Bitshuffle],
            Shuffle::Bytes | Shuffle::Auto => &[Filter::Shuffle],
        };
        let mut params = CParams::new()
            .codec(fields.choice(&["cname"], &CODECS)?.unwrap_or(cname))
            .level(fields.level(&["clevel"])?.unwrap_or(5))
            .filters(filters);
        params.typesize = typesize;
        params.blocksize = fields.size("blocksize")?;
        Self::new(params)
    }

    /// Returns whether the size of an item decides on the shuffle.
    pub(crate) fn is_auto(fields: &Configuration) -> Result<bool, PluginCreateError> {
        let shuffle = Fields { codec: "blosc", fields }.choice(&["shuffle"], &SHUFFLES)?;
        Ok(matches!(shuffle, Some(Shuffle::Auto)))
    }

    fn to_configuration(&self, version: ZarrVersion) -> Configuration {
        let params = &self.params;
        let shuffle = match params.filters[..] {
            [] => 0,
            [Filter::Shuffle] => 1,
            // `Coder::new` refuses other filters.
            _ => 2,
        };
        let shuffle = match version {
            ZarrVersion::V2 => json!(shuffle),
            ZarrVersion::V3 => json!(SHUFFLES[shuffle].0),
        };
        let mut fields = serde_json::Map::new();
        fields.insert("cname".into(), json!(params.codec.to_string()));
        fields.insert("clevel".into(), json!(params.level));
        fields.insert("shuffle".into(), shuffle);
        fields.insert("typesize".into(), json!(params.typesize.unwrap_or(1)));
        fields.insert("blocksize".into(), json!(params.blocksize.unwrap_or(0)));
        fields.into()
    }
}

impl_codec!(BloscCodec);

zarrs::plugin::impl_extension_aliases!(
    BloscCodec,
    v3: "blosc", [NUMCODECS],
    v2: "blosc", []
);

inventory::submit! {
    CodecPluginV3::new::<BloscCodec>()
}

inventory::submit! {
    CodecPluginV2::new::<BloscCodec>()
}

impl CodecTraitsV3 for BloscCodec {
    fn create(metadata: &MetadataV3) -> Result<api::Codec, PluginCreateError> {
        let none = Configuration::default();
        let fields = metadata.configuration().unwrap_or(&none);
        let codec = match metadata.name() {
            NUMCODECS => Self::from_fields(fields, Codec::Lz4, Shuffle::Bytes)?,
            _ => Self::from_fields(fields, Codec::Zstd, Shuffle::None)?,
        };
        Ok(api::Codec::BytesToBytes(Arc::new(codec)))
    }
}

impl CodecTraitsV2 for BloscCodec {
    fn create(metadata: &MetadataV2) -> Result<api::Codec, PluginCreateError> {
        let codec = Self::from_fields(metadata.configuration(), Codec::Lz4, Shuffle::Bytes)?;
        Ok(api::Codec::BytesToBytes(Arc::new(codec)))
    }
}

/// The value of the field `shuffle`.
#[derive(Debug, Clone, Copy)]
enum Shuffle {
    None,
    Bytes,
    Bits,
    /// The typesize decides.
    Auto,
}

/// The code of [`Shuffle::Auto`].
pub(crate) const AUTO: i64 = -1;

/// The names of the shuffles in Zarr V3, and their codes in Zarr V2. The other names are those of drafts of Zarr V3 and
/// of numcodecs.
const SHUFFLES: [(&str, i64, Shuffle); 7] = [
    ("noshuffle", 0, Shuffle::None),
    ("shuffle", 1, Shuffle::Bytes),
    ("bitshuffle", 2, Shuffle::Bits),
    ("autoshuffle", AUTO, Shuffle::Auto),
    ("none", 0, Shuffle::None),
    ("byte", 1, Shuffle::Bytes),
    ("bit", 2, Shuffle::Bits),
];

/// The block size that C-Blosc chooses.
fn automatic(params: &CParams, typesize: usize, splits: bool) -> usize {
    let is_slow = matches!(params.codec, Codec::Lz4Hc | Codec::Zlib | Codec::Zstd);
    let base = if is_slow { 64 << 10 } else { 32 << 10 };
    let size = match params.level {
        0 => base / 4,
        1 => base / 2,
        2 => base,
        3 => base * 2,
        4 | 5 => base * 4,
        9 if is_slow => base * 16,
        _ => base * 8,
    };
    if splits { (size.min(256 << 10) * typesize).clamp(64 << 10, 1 << 20) } else { size }
}
