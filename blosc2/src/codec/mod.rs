//! Codecs: the compression algorithms.

mod environment;
pub(crate) mod filter;
pub(crate) mod installed;
pub(crate) mod params;
pub(crate) mod plugins;
pub(crate) mod settings;

use std::ffi::CStr;
use std::fmt;
use std::ptr;
use std::str::FromStr;

use blosc2_sys as sys;

use crate::chunk::init::init;
use crate::closures::UserCodec;
#[cfg(feature = "dynamic-plugins")]
use crate::codec::plugins::PluginParams;
use crate::{Error, ErrorKind, Reason, Result, closures};

/// A compression algorithm.
///
/// In C-Blosc2, each codec has a code, a number from 0 to 255. The variant [`Codec::Other`] is for the codes that have
/// no other variant, including the codes of [user-defined codecs](Self::register). [`Display`](fmt::Display) writes the
/// name of a codec. For a code without a name, it writes text such as `codec 99`. [`FromStr`] parses a name or a code.
///
/// C: `compcode`. Python: `Codec`.
///
/// ```
/// use blosc2::Codec;
///
/// let codec: Codec = "lz4".parse()?;
/// assert_eq!(codec, Codec::Lz4);
/// assert_eq!(codec.code(), 1);
/// assert!(codec.is_available());
/// assert_eq!(Codec::Zstd.to_string(), "zstd");
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[doc(alias("compcode", "compname"))]
pub enum Codec {
    /// BloscLZ, the codec of the Blosc project: fast, for data that is easy to compress.
    BloscLz,
    /// LZ4, the fastest codec.
    Lz4,
    /// LZ4HC, which writes the LZ4 format: slower compression than LZ4, better ratio.
    Lz4Hc,
    /// zlib (feature `zlib`).
    Zlib,
    /// Zstandard (feature `zstd`), the codec with the best ratio. The default.
    Zstd,
    /// NDLZ, for two-dimensional arrays of bytes. NDLZ divides each block into square cells. The parameter
    /// ([`CParams::codec_meta`](crate::CParams::codec_meta)) is the side length of a cell in items: 4 or 8. C-Blosc2 can
    /// decompress a chunk only on platforms with the byte order of its writer.
    Ndlz,
    /// ZFP with a fixed accuracy (feature `zfp`). Lossy, for arrays of floats. The parameter is an exponent: the
    /// largest absolute error is 10 to the power of the parameter. The exponent is an `i8`, stored as a `u8`: `-3i8 as
    /// u8` for an error of 0.001.
    ZfpAccuracy,
    /// ZFP with a fixed precision (feature `zfp`). Lossy, for arrays of floats. The precision in bits is the parameter
    /// plus a constant: 5, 7, 9 or 11 for arrays of 1, 2, 3 or 4 dimensions.
    ZfpPrecision,
    /// ZFP with a fixed rate (feature `zfp`). Lossy, for arrays of floats. The parameter is the compressed size in
    /// percent of the uncompressed size.
    ZfpRate,
    /// A codec whose code has no variant.
    Other(u8),
}

const NAMED: &[(Codec, u8, &str)] = &[
    (Codec::BloscLz, sys::BLOSC_BLOSCLZ as u8, "blosclz"),
    (Codec::Lz4, sys::BLOSC_LZ4 as u8, "lz4"),
    (Codec::Lz4Hc, sys::BLOSC_LZ4HC as u8, "lz4hc"),
    (Codec::Zlib, sys::BLOSC_ZLIB as u8, "zlib"),
    (Codec::Zstd, sys::BLOSC_ZSTD as u8, "zstd"),
    (Codec::Ndlz, sys::BLOSC_CODEC_NDLZ as u8, "ndlz"),
    (Codec::ZfpAccuracy, sys::BLOSC_CODEC_ZFP_FIXED_ACCURACY as u8, "zfp_acc"),
    (Codec::ZfpPrecision, sys::BLOSC_CODEC_ZFP_FIXED_PRECISION as u8, "zfp_prec"),
    (Codec::ZfpRate, sys::BLOSC_CODEC_ZFP_FIXED_RATE as u8, "zfp_rate"),
];

impl Codec {
    /// Returns the codec with this code.
    pub fn from_code(code: u8) -> Self {
        NAMED.iter().find(|entry| entry.1 == code).map_or(Self::Other(code), |entry| entry.0)
    }

    /// Registers a user-defined codec with a code from 160 to 255 and a name, until the process exits.
    ///
    /// Chunks store the code, not the name. To read the chunks, a program has to register the same codec with the same
    /// code.
    ///
    /// C: `blosc2_register_codec`. Python: `register_codec`.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: the code is not from 160 to 255; or the name is empty, is a number from 0 to
    ///   255, or contains a colon;
    /// - [`ErrorKind::AlreadyExists`]: the code or the name is registered already, or a codec of C-Blosc2 has the
    ///   name.
    ///
    /// ```
    /// use blosc2::user_defined::{BoxError, CodecInfo, UserCodec};
    /// use blosc2::{CParams, Codec};
    ///
    /// /// Run-length encoding: pairs of a length and a byte.
    /// struct RunLengths;
    ///
    /// impl UserCodec for RunLengths {
    ///     fn compress(
    ///         &self,
    ///         input: &[u8],
    ///         output: &mut [u8],
    ///         _: &CodecInfo,
    ///     ) -> Result<Option<usize>, BoxError> {
    ///         let mut len = 0;
    ///         for run in input.chunk_by(|a, b| a == b).flat_map(|run| run.chunks(255)) {
    ///             let Some(pair) = output.get_mut(len..len + 2) else { return Ok(None) };
    ///             pair.copy_from_slice(&[run.len() as u8, run[0]]);
    ///             len += 2;
    ///         }
    ///         Ok(Some(len))
    ///     }
    ///
    ///     fn decompress(
    ///         &self,
    ///         input: &[u8],
    ///         mut output: &mut [u8],
    ///         _: &CodecInfo,
    ///     ) -> Result<(), BoxError> {
    ///         for pair in input.chunks_exact(2) {
    ///             let (run, rest) =
    ///                 output.split_at_mut_checked(pair[0].into()).ok_or("too many bytes")?;
    ///             run.fill(pair[1]);
    ///             output = rest;
    ///         }
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let codec = Codec::register(200, "run_lengths", RunLengths)?;
    /// let data: Vec<u8> = (0..10_000).map(|i| (i / 100) as u8).collect();
    /// let chunk = blosc2::compress(&data, &CParams::new().codec(codec).filters(&[]))?;
    /// assert!(chunk.len() < 500);
    /// assert_eq!(blosc2::decompress::<u8>(&chunk)?, data);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    pub fn register(code: u8, name: &str, codec: impl UserCodec) -> Result<Self> {
        init()?;
        let built_in =
            name.parse::<Self>().is_ok_and(|codec| closures::codec_name(codec.code()).is_none());
        closures::register_codec(code, name, codec, built_in)?;
        Ok(Self::from_code(code))
    }

    /// Returns the code of the codec.
    pub fn code(self) -> u8 {
        match self {
            Self::Other(code) => code,
            named => NAMED.iter().find(|entry| entry.0 == named).map_or(0, |entry| entry.1),
        }
    }

    /// Returns whether this program can compress and decompress with the codec: the codec was compiled in, registered,
    /// or loaded as a plugin (feature `dynamic-plugins`).
    pub fn is_available(self) -> bool {
        let code = self.code();
        if init().is_err() || (plugins::may_be_loaded(code) && !plugins::is_loaded(code)) {
            return false;
        }
        if closures::is_user_code(code) {
            return closures::is_codec(code); // C knows all codes of users.
        }
        let named = Self::from_code(code);
        let unknown = installed::LOADS_PLUGINS && matches!(named, Self::Other(_));
        if unknown || installed::BREAKS_ARRAY_CODECS && named.needs_array() {
            return false;
        }
        let mut name = ptr::null();
        // SAFETY: the library is initialized and `name` is writable. The function accepts any code, and fails for an
        // unknown code (blosc2.c, blosc2_compcode_to_compname).
        unsafe { sys::blosc2_compcode_to_compname(code.into(), &mut name) >= 0 }
    }

    /// Loads the plugin of a codec: a shared library with the implementation of the codec. Afterwards, the codec is
    /// available.
    ///
    /// There are plugins for the codecs OpenHTJ2K (code 36), Grok (37), OpenZL (38), J2K (39) and HTJ2K (40). C-Blosc2
    /// searches for the library `libblosc2_NAME.so`. If there is no such library, C-Blosc2 runs `python`, which locates
    /// the library in the Python package `blosc2_NAME`. Only this function loads plugins. Opening or reading a file
    /// loads no plugin, even if its chunks need one.
    ///
    /// # Errors
    /// - [`ErrorKind::Unsupported`]: there are no plugins for the codec, its library was not found, or an installed C
    ///   library is used (feature `system`).
    ///
    /// # Safety
    /// The library that C-Blosc2 finds has to follow the plugin interface of C-Blosc2, and has to be sound. The library
    /// receives the bytes of any chunk that names this codec.
    #[cfg(feature = "dynamic-plugins")]
    pub unsafe fn load_plugin(self) -> Result<()> {
        init()?;
        // SAFETY: the caller vouches for the library.
        unsafe { plugins::load(self.code(), &self.to_string()) }
    }

    /// Creates parameters for the plugin of this codec. `T` is the structure that the plugin expects: a `#[repr(C)]`
    /// type that matches the C header of the plugin.
    ///
    /// Pass the result to [`CParams::plugin_params`](crate::CParams::plugin_params). Only compression uses the
    /// parameters: C-Blosc2 passes no parameters to a plugin that decompresses. A plugin that receives no parameters
    /// uses its defaults. C: `blosc2_cparams.codec_params`.
    ///
    /// # Safety
    /// The plugin that is loaded for this codec, now or later, has to accept a pointer to a `T` as its parameters. The
    /// plugin can receive the same pointer on several threads at once. If the plugin modifies the `T`, it must not
    /// cause data races.
    ///
    /// ```no_run
    /// # #[cfg(feature = "dynamic-plugins")] {
    /// use blosc2::{CParams, Codec};
    ///
    /// /// The parameters, as the C header of the plugin declares them.
    /// #[repr(C)]
    /// struct Quality {
    ///     layers: i32,
    /// }
    ///
    /// let codec = Codec::from_code(38);
    /// // SAFETY: the installed plugin is sound, and takes this structure.
    /// let params = unsafe {
    ///     codec.load_plugin()?;
    ///     codec.plugin_params(Quality { layers: 3 })
    /// };
    /// let params = CParams::new().codec(codec).filters(&[]).plugin_params(params);
    /// # }
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    #[cfg(feature = "dynamic-plugins")]
    #[doc(alias = "codec_params")]
    pub unsafe fn plugin_params<T: Send + Sync + 'static>(self, params: T) -> PluginParams {
        // SAFETY: the caller's promise.
        unsafe { PluginParams::new(self.code(), params) }
    }

    /// Whether the codec needs the shape of an array. Such a codec works in arrays only.
    pub(crate) fn needs_array(self) -> bool {
        matches!(self, Self::Ndlz | Self::ZfpAccuracy | Self::ZfpPrecision | Self::ZfpRate)
    }

    pub(crate) fn check_available(self) -> Result<(), Reason> {
        init()?;
        if self.is_available() {
            return Ok(());
        }
        if closures::is_user_code(self.code()) {
            let detail = format_args!("{self} is not registered in this program");
            return Err(Reason::new(ErrorKind::Unsupported, detail));
        }
        let hint = match self {
            Self::Zlib => " (feature `zlib`)",
            Self::Zstd => " (feature `zstd`)",
            Self::ZfpAccuracy | Self::ZfpPrecision | Self::ZfpRate => " (feature `zfp`)",
            _ => "",
        };
        Err(Reason::new(
            ErrorKind::Unsupported,
            format_args!(
                "{} is not in this build{hint}, which has {}",
                self.full_name(),
                available()
            ),
        ))
    }

    /// The name for messages: for a plugin, the name in the registry and the code.
    fn full_name(self) -> String {
        match blosc2_format::chunk::codec_name(self.code())
            .filter(|_| matches!(self, Self::Other(_)))
        {
            Some(name) => format!("{name}, {self}"),
            None => self.to_string(),
        }
    }
}

/// The names of the compiled-in codecs, separated by commas.
fn available() -> String {
    // SAFETY: the library is initialized; the function returns a static string that ends in a NUL byte (blosc2.c,
    // blosc2_list_compressors), which `init` has made it fill.
    unsafe { CStr::from_ptr(sys::blosc2_list_compressors()) }.to_string_lossy().into_owned()
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = NAMED.iter().find(|entry| entry.1 == self.code()).map(|entry| entry.2);
        match named.or_else(|| closures::codec_name(self.code())) {
            Some(name) => f.write_str(name),
            None => write!(f, "codec {}", self.code()),
        }
    }
}

impl FromStr for Codec {
    type Err = Error;

    /// Parses a name such as `zstd`, or a code such as `5`.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: the text is not the name of a codec, and not a number from 0 to 255.
    fn from_str(text: &str) -> Result<Self> {
        let named = NAMED.iter().find(|entry| entry.2.eq_ignore_ascii_case(text));
        let named =
            named.map(|entry| entry.0).or_else(|| closures::codec_named(text).map(Self::from_code));
        match (named, text.parse()) {
            (Some(codec), _) => Ok(codec),
            (None, Ok(code)) => Ok(Self::from_code(code)),
            (None, Err(_)) => {
                let available = NAMED.iter().filter(|entry| entry.0.is_available());
                let names: Vec<&str> = available.map(|entry| entry.2).collect();
                let detail =
                    format_args!("expected one of {}, got `{text}`", names.join(", ")).to_string();
                Err(Error::new(ErrorKind::InvalidArgument, "choose a codec", detail))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_survives() {
        for code in 0..=255 {
            assert_eq!(Codec::from_code(code).code(), code);
        }
        for entry in NAMED {
            assert_eq!(entry.0.to_string().parse::<Codec>().unwrap(), entry.0);
        }
        assert_eq!(Codec::Other(5).to_string(), "zstd");
        assert_eq!("42".parse::<Codec>().unwrap(), Codec::Other(42));
        assert!("zstandard".parse::<Codec>().is_err());
    }

    #[test]
    fn what_python_would_be_run_for_is_not_available() {
        for code in 36..=40 {
            assert!(!Codec::from_code(code).is_available(), "{code}");
        }
        assert!(Codec::BloscLz.is_available() && Codec::Lz4.is_available());
        assert!(!Codec::Other(3).is_available() && !Codec::Other(200).is_available());
    }
}
