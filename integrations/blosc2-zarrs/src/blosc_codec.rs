//! The codec `blosc`.

use std::sync::Arc;

use blosc2::{CParams, Codec, Filter, SplitMode};
use blosc2_format::chunk::MAX_BLOCKSIZE;
use serde::Deserialize;
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

/// The largest typesize with which C-Blosc splits blocks.
const MAX_SPLIT: usize = 16;

/// The name under which zarr-python stores the codec of numcodecs in arrays of Zarr V3.
const NUMCODECS: &str = "numcodecs.blosc";

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
/// In metadata of Zarr V2, the typesize is optional. Python does not write the typesize: see the
/// [limits](crate#limits).
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

    fn from_settings(settings: Settings) -> Result<Self, PluginCreateError> {
        let codec = match settings.cname {
            Cname::Blosclz => Codec::BloscLz,
            Cname::Lz4 => Codec::Lz4,
            Cname::Lz4hc => Codec::Lz4Hc,
            Cname::Zlib => Codec::Zlib,
            Cname::Zstd => Codec::Zstd,
        };
        let filters: &[Filter] = match settings.shuffle {
            0 => &[],
            1 => &[Filter::Shuffle],
            2 => &[Filter::Bitshuffle],
            -1 if settings.typesize.unwrap_or(1) == 1 => &[Filter::Bitshuffle],
            -1 => &[Filter::Shuffle],
            other => {
                let detail = format!("codec blosc: expected a shuffle from -1 to 2, found {other}");
                return Err(detail.into());
            }
        };
        let mut params = CParams::new().codec(codec).level(settings.clevel).filters(filters);
        params.typesize = settings.typesize.filter(|&typesize| typesize > 0);
        params.blocksize = Some(settings.blocksize).filter(|&blocksize| blocksize > 0);
        Self::new(params)
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
            ZarrVersion::V3 => json!(SHUFFLES[shuffle]),
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
        let settings = if metadata.name() == NUMCODECS {
            metadata.to_typed_configuration::<Numcodecs>()?.into()
        } else {
            metadata.to_typed_configuration::<Registered>()?.try_into()?
        };
        Ok(api::Codec::BytesToBytes(Arc::new(Self::from_settings(settings)?)))
    }
}

impl CodecTraitsV2 for BloscCodec {
    fn create(metadata: &MetadataV2) -> Result<api::Codec, PluginCreateError> {
        let settings = metadata.to_typed_configuration::<Numcodecs>()?.into();
        Ok(api::Codec::BytesToBytes(Arc::new(Self::from_settings(settings)?)))
    }
}

/// The names of the shuffles 0, 1 and 2.
const SHUFFLES: [&str; 3] = ["noshuffle", "shuffle", "bitshuffle"];

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Cname {
    Blosclz,
    Lz4,
    Lz4hc,
    Zlib,
    Zstd,
}

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

/// The values of a configuration.
#[derive(Debug)]
struct Settings {
    cname: Cname,
    clevel: u8,
    shuffle: i64,
    typesize: Option<usize>,
    blocksize: usize,
}

/// The configuration in Zarr V3.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Registered {
    cname: Cname,
    clevel: u8,
    shuffle: Option<String>,
    typesize: Option<usize>,
    #[serde(default)]
    blocksize: usize,
}

impl TryFrom<Registered> for Settings {
    type Error = PluginCreateError;

    fn try_from(found: Registered) -> Result<Self, PluginCreateError> {
        let Registered { cname, clevel, shuffle, typesize, blocksize } = found;
        let name = shuffle.as_deref().unwrap_or(SHUFFLES[0]);
        let Some(shuffle) = SHUFFLES.iter().position(|each| *each == name) else {
            let names = SHUFFLES.join(", ");
            return Err(format!("codec blosc: expected a shuffle of {names}, found {name}").into());
        };
        if shuffle > 0 && typesize.unwrap_or(0) == 0 {
            return Err(format!(
                "codec blosc: expected a typesize of at least 1 for the shuffle {name}, found {}",
                typesize.map_or("none".to_owned(), |typesize| typesize.to_string())
            )
            .into());
        }
        Ok(Self { cname, clevel, shuffle: shuffle as i64, typesize, blocksize })
    }
}

/// The configuration of numcodecs, with its defaults.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Numcodecs {
    #[serde(default = "lz4")]
    cname: Cname,
    #[serde(default = "level")]
    clevel: u8,
    #[serde(default = "byte_shuffle")]
    shuffle: i64,
    typesize: Option<usize>,
    #[serde(default)]
    blocksize: usize,
}

fn lz4() -> Cname {
    Cname::Lz4
}

fn level() -> u8 {
    5
}

fn byte_shuffle() -> i64 {
    1
}

impl From<Numcodecs> for Settings {
    fn from(found: Numcodecs) -> Self {
        let Numcodecs { cname, clevel, shuffle, typesize, blocksize } = found;
        Self { cname, clevel, shuffle, typesize, blocksize }
    }
}
