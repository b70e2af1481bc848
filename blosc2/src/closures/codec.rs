//! User-defined codecs.

use std::ffi::{CString, c_int, c_void};

use blosc2_format::b2nd::Geometry;
use blosc2_sys as sys;

#[cfg(doc)]
use crate::ErrorKind;
use crate::Result;
use crate::error::Doing;

use super::BoxError;
use super::call::{Call, Title, buffers};
use super::registry::Registry;

/// A user-defined codec, which [`Codec::register`](crate::Codec::register) registers with a code.
///
/// The methods `compress` and `decompress` are called for each block of a chunk; if blocks are
/// [split](crate::SplitMode), for each stream of a block. They can be called more than once for the same data, and on
/// several threads at the same time. The methods can call functions of this crate; these nested calls use one thread.
///
/// A pair of closures or functions is a codec too: the first compresses, the second decompresses.
///
/// C: `blosc2_codec`. Python: the functions passed to `register_codec`.
///
/// ```
/// use blosc2::user_defined::{BoxError, CodecInfo, UserCodec};
/// use blosc2::{CParams, Codec};
///
/// /// Drops the zeros at the end of each block.
/// struct TrimZeros;
///
/// impl UserCodec for TrimZeros {
///     fn compress(
///         &self,
///         input: &[u8],
///         output: &mut [u8],
///         _: &CodecInfo<'_>,
///     ) -> Result<Option<usize>, BoxError> {
///         let len = input.iter().rposition(|&byte| byte != 0).map_or(1, |last| last + 1);
///         let Some(target) = output.get_mut(..len) else { return Ok(None) };
///         target.copy_from_slice(&input[..len]);
///         Ok(Some(len))
///     }
///
///     fn decompress(
///         &self,
///         input: &[u8],
///         output: &mut [u8],
///         _: &CodecInfo<'_>,
///     ) -> Result<(), BoxError> {
///         output.get_mut(..input.len()).ok_or("the input is too long")?.copy_from_slice(input);
///         Ok(())
///     }
/// }
///
/// let codec = Codec::register(201, "trim_zeros", TrimZeros)?;
/// let mut data = vec![0u8; 1000];
/// data[..3].copy_from_slice(b"abc");
/// let chunk = blosc2::compress(&data, CParams::new().codec(codec).filters(&[]))?;
/// assert!(chunk.len() < 100);
/// assert_eq!(blosc2::decompress::<u8>(&chunk)?, data);
/// # Ok::<(), blosc2::Error>(())
/// ```
pub trait UserCodec: Send + Sync + 'static {
    /// Compresses `input` to the start of `output`, and returns the number of bytes written, at least 1. If the result
    /// does not fit, returns `None`; the input is then stored uncompressed.
    ///
    /// `output` is zeroed before the call, and at most as long as `input`. If the result is as long as the input, the
    /// input is stored uncompressed. An input that consists of one repeated byte is stored without a call of this
    /// method, except in variable-length blocks.
    ///
    /// # Errors
    /// Any error. The call that compresses then fails with [`ErrorKind::Callback`];
    /// [`Error::get_ref`](crate::Error::get_ref) returns this error.
    fn compress(
        &self,
        input: &[u8],
        output: &mut [u8],
        info: &CodecInfo<'_>,
    ) -> Result<Option<usize>, BoxError>;

    /// Decompresses `input`, and fills `output` completely. `output` is zeroed before the call.
    ///
    /// If the chunks are untrusted input, `input` can contain any bytes.
    ///
    /// # Errors
    /// Any error, for example for damaged input. The call that decompresses then fails with
    /// [`ErrorKind::Callback`]; [`Error::get_ref`](crate::Error::get_ref) returns this error.
    fn decompress(
        &self,
        input: &[u8],
        output: &mut [u8],
        info: &CodecInfo<'_>,
    ) -> Result<(), BoxError>;

    /// Returns the version of the format that [`compress`](Self::compress) writes; 1 by default. Called once, at
    /// registration.
    ///
    /// Each chunk stores the version. During decompression, [`CodecInfo::version`] contains the stored version, so that
    /// a codec can also decompress the formats of its earlier versions.
    /// [`Chunk::codec_version`](crate::Chunk::codec_version) returns the stored version too. C: `blosc2_codec.version`.
    /// Python: `version` of `register_codec`.
    fn version(&self) -> u8 {
        1
    }

    /// Returns the library that the codec uses, for [`Codec::library`](crate::Codec::library); `None` by default.
    /// Called once, at registration. C: `blosc2_codec.complib`, which is a number.
    fn library(&self) -> Option<Library> {
        None
    }
}

/// The library that implements a codec; see [`Codec::library`](crate::Codec::library) and [`UserCodec::library`].
///
/// ```
/// use blosc2::library::Library;
///
/// let library = Library::new("LZ4", "1.10.0");
/// assert_eq!((&*library.name, &*library.version), ("LZ4", "1.10.0"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Library {
    /// The name, such as `LZ4`.
    pub name: String,
    /// The version, such as `1.10.0`. If a library with another name implements the format, the version starts with
    /// that name: `libdeflate 1.25` for zlib.
    pub version: String,
}

impl Library {
    /// Creates a library with this name and version.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self { name: name.into(), version: version.into() }
    }
}

/// A pair of closures is a codec: the first compresses, the second decompresses.
impl<C, D> UserCodec for (C, D)
where
    C: Fn(&[u8], &mut [u8], &CodecInfo<'_>) -> Result<Option<usize>, BoxError>
        + Send
        + Sync
        + 'static,
    D: Fn(&[u8], &mut [u8], &CodecInfo<'_>) -> Result<(), BoxError> + Send + Sync + 'static,
{
    fn compress(
        &self,
        input: &[u8],
        output: &mut [u8],
        info: &CodecInfo<'_>,
    ) -> Result<Option<usize>, BoxError> {
        self.0(input, output, info)
    }

    fn decompress(
        &self,
        input: &[u8],
        output: &mut [u8],
        info: &CodecInfo<'_>,
    ) -> Result<(), BoxError> {
        self.1(input, output, info)
    }
}

/// The properties of the data that a user-defined codec compresses or decompresses.
///
/// ```
/// use blosc2::user_defined::{BoxError, CodecInfo};
/// use blosc2::{CParams, Codec};
///
/// fn compress(_: &[u8], _: &mut [u8], info: &CodecInfo<'_>) -> Result<Option<usize>, BoxError> {
///     assert_eq!((info.typesize, info.level, info.meta), (4, 7, 3));
///     assert!(info.chunk_index.is_none() && info.array.is_none());
///     Ok(None) // The input is stored uncompressed.
/// }
///
/// fn decompress(_: &[u8], _: &mut [u8], _: &CodecInfo<'_>) -> Result<(), BoxError> {
///     Err("nothing is ever compressed".into())
/// }
///
/// let codec = Codec::register(202, "store", (compress, decompress))?;
/// let params = CParams::new().codec(codec).codec_meta(3).level(7).filters(&[]);
/// let data: Vec<u32> = (0..1000).collect();
/// let chunk = blosc2::compress(&data, &params)?;
/// assert_eq!(blosc2::decompress::<u32>(&chunk)?, data);
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CodecInfo<'a> {
    /// The parameter of the codec, as stored in the chunk.
    pub meta: u8,
    /// The size of an item in bytes, as stored in the chunk: 1 for items of more than 255 bytes.
    pub typesize: usize,
    /// The version of the codec's format. During compression: [`UserCodec::version`]. During decompression: the version
    /// that the chunk stores, which can be any value.
    pub version: u8,
    /// The compression level, 1 to 9. During decompression: 0, since chunks do not store the level.
    pub level: u8,
    /// The size of the blocks of the chunk in bytes; the last block can be shorter. `None` for variable-length
    /// blocks.
    pub blocksize: Option<usize>,
    /// The index of the chunk in its super-chunk; see
    /// [`FilterBlock::chunk_index`](crate::user_defined::FilterBlock::chunk_index).
    pub chunk_index: Option<usize>,
    /// The shape, the chunk shape and the block shape of the array that contains the chunk; `None` if the chunk is not
    /// part of an array.
    ///
    /// In each call, the codec receives a complete block after the filters: the items of the block shape in C order.
    /// With [`SplitMode::Always`](crate::SplitMode::Always), each block is split into one stream for each byte of an
    /// item, and the codec receives one stream in each call.
    pub array: Option<&'a Geometry>,
}

/// A registered codec, with its version and library at registration.
struct Registered {
    codec: Box<dyn UserCodec>,
    version: u8,
    library: Option<Library>,
}

static CODECS: Registry<Registered> = Registry::new();

/// Whether a user-defined codec is registered with this code.
pub(crate) fn is_codec(code: u8) -> bool {
    CODECS.get(code).is_some() || CODECS.is_taken(code)
}

/// The name of a user-defined codec.
pub(crate) fn codec_name(code: u8) -> Option<&'static str> {
    CODECS.name(code)
}

/// The code of the user-defined codec with this name.
pub(crate) fn codec_named(name: &str) -> Option<u8> {
    CODECS.code(name)
}

/// The version of the format that a user-defined codec writes.
pub(crate) fn codec_version(code: u8) -> Option<u8> {
    CODECS.get(code).map(|registered| registered.version)
}

/// The library of a user-defined codec.
pub(crate) fn codec_library(code: u8) -> Option<Library> {
    CODECS.get(code)?.library.clone()
}

/// Registers a user-defined codec with a code. `built_in` means that a codec of C-Blosc2 has the name.
pub(crate) fn register_codec(
    code: u8,
    name: &str,
    codec: impl UserCodec,
    built_in: bool,
) -> Result<()> {
    let (version, library) = (codec.version(), codec.library());
    let registered = Registered { codec: Box::new(codec), version, library };
    CODECS.set(code, name, Box::new(registered), built_in).doing("register a codec")
}

/// Registers the codes of all user-defined codecs in C. Called once, before any other call except `blosc2_init`.
pub(super) fn announce() {
    for code in Registry::<Registered>::codes() {
        let Ok(name) = CString::new(format!("user codec {code}")) else { continue };
        let mut codec = sys::blosc2_codec {
            compcode: code,
            compname: name.into_raw(), // C uses the name until the process exits.
            complib: 0,
            version: 1, // The encoder writes the codec's own, which is not known yet.
            encoder: Some(encode),
            decoder: Some(decode),
        };
        // SAFETY: C copies the structure, whose name is never freed (blosc2.c, register_codec_private). No other
        // call into C runs at the same time (init.rs).
        if unsafe { sys::blosc2_register_codec(&mut codec) } < 0 {
            CODECS.take(code);
        }
    }
}

/// Returns the codec with this code.
fn find(code: u8) -> Result<&'static Registered, BoxError> {
    CODECS.get(code).ok_or_else(|| format!("no codec is registered with the code {code}").into())
}

unsafe extern "C" fn encode(
    input: *const u8,
    input_len: i32,
    output: *mut u8,
    output_len: i32,
    meta: u8,
    params: *mut sys::blosc2_cparams,
    _source: *const c_void,
) -> c_int {
    // SAFETY: C fills the parameters on its stack for this call (blosc2.c, blosc_c).
    let params = unsafe { &*params };
    let code = params.compcode;
    let work = |call: &Call<'_>| {
        call.run(Title::Codec(code, codec_name(code)), || {
            // SAFETY: C passes a stream of the block, and separate memory for the result, which no other thread accesses
            // (blosc2.c, blosc_c).
            let (input, output) = unsafe { buffers(input, input_len, output, output_len)? };
            let Registered { codec, version, .. } = find(code)?;
            let info = CodecInfo {
                meta,
                typesize: usize::try_from(params.typesize)?,
                version: *version,
                level: params.clevel,
                blocksize: call.blocksize(params.blocksize),
                chunk_index: call.place.index,
                array: call.place.array,
            };
            let room = output.len();
            match codec.compress(input, output, &info)? {
                None => Ok(0), // C stores the stream.
                Some(0) => {
                    Err("it returned a length of 0; return `None` if the result does not fit"
                        .into())
                }
                Some(len) if len <= room => Ok(i32::try_from(len)?),
                Some(len) => {
                    Err(format!("it returned a length of {len}, the output has {room} bytes")
                        .into())
                }
            }
        })
    };
    // SAFETY: the preparams of the context come from `Slot::preparams`. If there are none, C compresses internal data.
    unsafe { Call::of_compression(params, sys::BLOSC2_ERROR_CODEC_SUPPORT, work) }
}

unsafe extern "C" fn decode(
    input: *const u8,
    input_len: i32,
    output: *mut u8,
    output_len: i32,
    meta: u8,
    params: *mut sys::blosc2_dparams,
    _chunk: *const c_void,
) -> c_int {
    // SAFETY: C fills the parameters on its stack for this call (blosc2.c, blosc_d).
    let params = unsafe { &*params };
    let work = |call: &Call<'_>| {
        call.run(Title::Codec(call.codec, codec_name(call.codec)), || {
            // SAFETY: C passes a stream of the chunk, and separate memory for the decompressed stream, which no other
            // thread accesses (blosc2.c, blosc_d).
            let (input, output) = unsafe { buffers(input, input_len, output, output_len)? };
            let info = CodecInfo {
                meta,
                typesize: usize::try_from(params.typesize)?,
                version: call.codec_version,
                level: 0,
                blocksize: call.blocksize(0),
                chunk_index: call.place.index,
                array: call.place.array,
            };
            find(call.codec)?.codec.decompress(input, output, &info)?;
            Ok(output_len)
        })
    };
    // SAFETY: the postparams of the context come from `Slot::postparams`. If there are none, C decompresses internal data.
    unsafe { Call::of_decompression(params, sys::BLOSC2_ERROR_CODEC_SUPPORT, work) }
}
