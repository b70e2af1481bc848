#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod block;
mod number;

use std::fmt::Display;
use std::sync::Mutex;

use blosc2::library::Library;
use blosc2::user_defined::{BoxError, CodecInfo, UserCodec};
use blosc2::{CParams, Codec, Dtype, Error, ErrorKind, Result, SplitMode};

use crate::number::NumberFormat;

/// The code of the codec in chunks: 212, from the range of user-defined codecs.
pub const CODE: u8 = 212;

/// The size of the blocks of chunks and super-chunks that [`cparams`] sets, in bytes. On sets of real data, the ratio
/// with any size from 64 KiB to 1 MiB is at most 2 % greater, and smaller blocks are faster for reads of a few items.
const BLOCK: usize = 128 << 10;

/// Registers the codec with the code [`CODE`] and the name `pco`, so that this program can read and write its chunks.
/// Further calls have no effect. C: `blosc2_register_codec`.
///
/// # Errors
/// - [`ErrorKind::AlreadyExists`]: this program has registered another codec with this code or name.
///
/// ```
/// let codec = blosc2_pco::register()?;
/// assert_eq!((codec.code(), codec.to_string()), (blosc2_pco::CODE, "pco".to_owned()));
/// # Ok::<(), blosc2::Error>(())
/// ```
pub fn register() -> Result<Codec> {
    static REGISTERED: Mutex<Option<Codec>> = Mutex::new(None);
    let mut registered = REGISTERED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    match *registered {
        Some(codec) => Ok(codec),
        None => Ok(*registered.insert(Codec::register(CODE, "pco", Pco)?)),
    }
}

/// Registers the codec, and returns parameters that compress numbers of this dtype with it: no filters, no split
/// blocks, and blocks of 128 KiB. Arrays do not use this block size. Their automatic blocks have 128 to 256 KiB.
///
/// `dtype` is what [`NDArrayBuilder::dtype`](blosc2::NDArrayBuilder::dtype) accepts: a [`Dtype`], or its text in the
/// notation of NumPy, such as `<f4`. Supported are integers and floating-point numbers of 1 to 8 bytes in both byte
/// orders, and times (NumPy: `M8`, `m8`). `level` is pcodec's level, from 1 to 9, or 0 for uncompressed chunks.
/// Pcodec recommends 8.
///
/// # Errors
/// - [`ErrorKind::InvalidArgument`]: the dtype has other items, or cannot be parsed;
/// - [`ErrorKind::AlreadyExists`]: as in [`register`].
///
/// ```
/// use blosc2::Element;
///
/// let samples: Vec<i16> = (0..100_000).map(|i| ((i as f64 / 50.0).sin() * 9000.0) as i16).collect();
/// let chunk = blosc2::compress(&samples, blosc2_pco::cparams(i16::dtype(), 8)?)?;
/// assert!(chunk.len() < blosc2::compress(&samples, blosc2::CParams::new().level(9))?.len());
/// assert_eq!(blosc2::decompress::<i16>(&chunk)?, samples);
/// # Ok::<(), blosc2::Error>(())
/// ```
pub fn cparams(dtype: impl Display, level: u8) -> Result<CParams> {
    let text = dtype.to_string();
    let invalid = |detail: String| {
        Error::new(ErrorKind::InvalidArgument, format!("compress items of {text} with pco"), detail)
    };
    let dtype = Dtype::parse(&text).map_err(|error| invalid(error.to_string()))?;
    let number = NumberFormat::of(&dtype).ok_or_else(|| {
        invalid("expected integers or floating-point numbers of 1 to 8 bytes, or times".to_owned())
    })?;
    let params = CParams::new().codec(register()?).codec_meta(number.meta()).level(level);
    Ok(params.filters(&[]).split(SplitMode::Never).typesize(dtype.size()).blocksize(BLOCK))
}

/// The registered codec.
struct Pco;

impl UserCodec for Pco {
    fn compress(
        &self,
        input: &[u8],
        output: &mut [u8],
        info: &CodecInfo<'_>,
    ) -> Result<Option<usize>, BoxError> {
        let number = NumberFormat::from_meta(info.meta)?;
        if number.size() != info.typesize {
            return Err(format!(
                "the codec parameter {} is for numbers of {} bytes, got items of {} bytes",
                info.meta,
                number.size(),
                info.typesize
            )
            .into());
        }
        block::compress(number, input, output, info.level)
    }

    fn decompress(
        &self,
        input: &[u8],
        output: &mut [u8],
        info: &CodecInfo<'_>,
    ) -> Result<(), BoxError> {
        block::decompress(NumberFormat::from_meta(info.meta)?, input, output)
    }

    fn library(&self) -> Option<Library> {
        Some(Library::new("pcodec", "1.1"))
    }
}
