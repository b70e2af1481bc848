//! Options that several commands share.

use std::num::IntErrorKind;
use std::str::FromStr;

use blosc2::{CParams, Codec, Filter, Threads, library};

/// Compression parameters.
#[derive(Debug, clap::Args)]
pub(crate) struct Compression {
    #[arg(long, help = codec_help())]
    codec: Option<Codec>,
    /// Parameter of the codec. For ndlz: the side length of its cells, 4 or 8.
    #[arg(long, value_name = "N")]
    codec_meta: Option<u8>,
    /// Compression level, 0 (no compression) to 9.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=9))]
    level: Option<u8>,
    /// Filters in the order of compression, such as `trunc_prec:10,shuffle`, or `none`.
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    filters: Option<Filters>,
    /// Number of threads, 1 to 256 [default: all].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: Option<u16>,
}

/// The help text of the option for the codec, with the codecs of this build.
fn codec_help() -> String {
    let names: Vec<String> = library::codecs().iter().map(ToString::to_string).collect();
    format!("Codec: {}", names.join(", "))
}

impl Compression {
    /// Whether no option is given that changes the compressed bytes.
    pub(crate) fn is_default(&self) -> bool {
        self.codec.is_none()
            && self.codec_meta.is_none()
            && self.level.is_none()
            && self.filters.is_none()
    }

    pub(crate) fn threads(&self) -> Threads {
        self.threads.map_or_else(Threads::auto, |threads| Threads::new(threads.into()))
    }

    /// `params` with the given options applied.
    pub(crate) fn apply(&self, mut params: CParams) -> CParams {
        if let Some(codec) = self.codec {
            params = with_codec(params, codec);
        }
        if let Some(meta) = self.codec_meta {
            params = params.codec_meta(meta);
        }
        if let Some(level) = self.level {
            params = params.level(level);
        }
        if let Some(filters) = &self.filters {
            params = params.filters(&filters.0);
        }
        params.threads(self.threads())
    }
}

/// `params` with this codec.
pub(crate) fn with_codec(params: CParams, codec: Codec) -> CParams {
    if params.codec == codec {
        return params;
    }
    // The parameter and the dictionary of one codec do not apply to another.
    params.codec(codec).codec_meta(0).dictionary(false)
}

/// Filters, separated by commas.
#[derive(Debug, Clone)]
struct Filters(Vec<Filter>);

impl FromStr for Filters {
    type Err = blosc2::Error;

    fn from_str(text: &str) -> Result<Self, blosc2::Error> {
        if text.is_empty() || text.eq_ignore_ascii_case("none") {
            return Ok(Self(Vec::new()));
        }
        text.split(',').map(|name| name.trim().parse()).collect::<Result<_, _>>().map(Self)
    }
}

/// Chunk and block shape of an array.
#[derive(Debug, clap::Args)]
pub(crate) struct Cut {
    /// Chunk shape, such as `100,200`.
    #[arg(long, value_name = "SHAPE")]
    pub(crate) chunks: Option<Shape>,
    /// Block shape, such as `10,200`.
    #[arg(long, value_name = "SHAPE")]
    pub(crate) blocks: Option<Shape>,
}

impl Cut {
    pub(crate) fn is_default(&self) -> bool {
        self.chunks.is_none() && self.blocks.is_none()
    }

    pub(crate) fn builder(&self) -> blosc2::NDArrayBuilder {
        let mut builder = blosc2::NDArray::builder();
        if let Some(Shape(chunks)) = &self.chunks {
            builder = builder.chunk_shape(chunks);
        }
        if let Some(Shape(blocks)) = &self.blocks {
            builder = builder.block_shape(blocks);
        }
        builder
    }
}

/// A shape: numbers separated by commas.
#[derive(Debug, Clone)]
pub(crate) struct Shape(pub(crate) Vec<u64>);

impl FromStr for Shape {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // Also as Python prints it: `(100, 200)`, `(5,)`.
        let text = text.trim();
        let text = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')).unwrap_or(text);
        let text = text.strip_suffix(',').unwrap_or(text);
        if text.is_empty() {
            return Ok(Self(Vec::new()));
        }
        let number = |part: &str| match part.trim().parse::<u64>() {
            Ok(number) => Ok(number),
            Err(error) if *error.kind() == IntErrorKind::PosOverflow => {
                Err(format!("expected numbers below 2^64, got `{part}`"))
            }
            Err(_) => Err(format!("expected numbers separated by commas, got `{part}`")),
        };
        text.split(',').map(number).collect::<Result<_, _>>().map(Self)
    }
}
