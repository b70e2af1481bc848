//! Codecs of one's own.

use std::ffi::{CString, c_int, c_void};

use blosc2_format::b2nd::Geometry;
use blosc2_sys as sys;

#[cfg(doc)]
use crate::ErrorKind;
use crate::Result;

use super::BoxError;
use super::call::{Call, Title, buffers};
use super::registry::Registry;

/// A codec of one's own, to be used by its code like any other; see [`Codec::register`](crate::Codec::register).
///
/// Its functions are called from many threads at once, and once or more for each block of a chunk.
/// They may use this crate themselves; inside them it works on one thread.
pub trait UserCodec: Send + Sync + 'static {
    /// Compresses `input` to the start of `output`, and gives the number of bytes that it took; `None`
    /// where they do not fit, after which the input is stored as it is.
    ///
    /// `output` holds zeros, and is never longer than `input`. What is as long as the input is stored
    /// too. Runs of one byte are not given to a codec at all.
    ///
    /// # Errors
    /// Anything; it becomes the source of the error of the call, of [`ErrorKind::Callback`].
    fn compress(
        &self,
        input: &[u8],
        output: &mut [u8],
        info: &CodecInfo<'_>,
    ) -> Result<Option<usize>, BoxError>;

    /// Decompresses `input` to all of `output`, which holds zeros.
    ///
    /// The input may be any bytes, if chunks come from elsewhere.
    ///
    /// # Errors
    /// Anything, such as an input that is broken; it becomes the source of the error of the call, of
    /// [`ErrorKind::Callback`].
    fn decompress(
        &self,
        input: &[u8],
        output: &mut [u8],
        info: &CodecInfo<'_>,
    ) -> Result<(), BoxError>;

    /// The version of what [`compress`](Self::compress) writes; 1 by default. It is asked for once, when the codec is
    /// registered.
    ///
    /// Each chunk keeps it, and gives it back by [`Chunk::codec_version`](crate::Chunk::codec_version) and
    /// [`CodecInfo::version`], so that a codec can go on reading what it wrote in an earlier version. C's
    /// `blosc2_codec.version`, Python's `version` of `register_codec`.
    fn version(&self) -> u8 {
        1
    }

    /// The library that does the work, for [`Codec::library`](crate::Codec::library); `None` by default. It is asked for
    /// once, when the codec is registered. C's `blosc2_codec.complib`, which is a number.
    fn library(&self) -> Option<Library> {
        None
    }
}

/// The library behind a codec; see [`Codec::library`](crate::Codec::library) and [`UserCodec::library`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Library {
    /// Its name, such as `LZ4`.
    pub name: String,
    /// Its version, such as `1.10.0`, or with a name before it where it stands in for the original,
    /// such as `libdeflate 1.25`.
    pub version: String,
}

impl Library {
    /// The library of this name in this version.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self { name: name.into(), version: version.into() }
    }
}

/// A pair of closures is a codec.
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

/// What a codec is told besides the data.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CodecInfo<'a> {
    /// The codec's parameter, as the chunk keeps it.
    pub meta: u8,
    /// Bytes of an item, as the chunk says: 1 for those of more than 255 bytes.
    pub typesize: usize,
    /// The version of the codec's format: [`UserCodec::version`] when compressing; when decompressing what the chunk
    /// says, which may be any number.
    pub version: u8,
    /// The level, 1 to 9; 0 when decompressing, since chunks do not keep it.
    pub level: u8,
    /// Bytes of each block of the chunk, but for a shorter last one; `None` for blocks of variable length.
    pub blocksize: Option<usize>,
    /// The number of the chunk in its super-chunk; see [`FilterBlock::chunk_index`](crate::user_defined::FilterBlock::chunk_index).
    pub chunk_index: Option<usize>,
    /// The shapes of the array that the chunk is of, of its chunks and of its blocks; `None` where it is of none.
    ///
    /// The data is that of a whole block: the items of the block shape in C order, as the filters left them. With
    /// [`SplitMode::Always`](crate::SplitMode::Always) it is one of as many equal parts of the block as an item has bytes.
    pub array: Option<&'a Geometry>,
}

/// A codec, and what it has said of itself.
struct Registered {
    codec: Box<dyn UserCodec>,
    version: u8,
    library: Option<Library>,
}

static CODECS: Registry<Registered> = Registry::new();

/// Whether there is a codec of the user's with this code.
pub(crate) fn is_codec(code: u8) -> bool {
    CODECS.get(code).is_some() || CODECS.is_taken(code)
}

/// The name of a codec of the user's.
pub(crate) fn codec_name(code: u8) -> Option<&'static str> {
    CODECS.name(code)
}

/// The code of the user's codec of this name.
pub(crate) fn codec_named(name: &str) -> Option<u8> {
    CODECS.code(name)
}

/// The version of what a codec of the user's writes.
pub(crate) fn codec_version(code: u8) -> Option<u8> {
    CODECS.get(code).map(|registered| registered.version)
}

/// The library of a codec of the user's.
pub(crate) fn codec_library(code: u8) -> Option<Library> {
    CODECS.get(code)?.library.clone()
}

/// Keeps a codec of the user's under a code; `built_in` says that its name is taken.
pub(crate) fn register_codec(
    code: u8,
    name: &str,
    codec: impl UserCodec,
    built_in: bool,
) -> Result<()> {
    let (version, library) = (codec.version(), codec.library());
    let registered = Registered { codec: Box::new(codec), version, library };
    CODECS.set("register a codec", code, name, Box::new(registered), built_in)
}

/// Makes C know the codes of all users' codecs. Once, before any other call but `blosc2_init`.
pub(super) fn announce() {
    for code in Registry::<Registered>::codes() {
        let Ok(name) = CString::new(format!("user codec {code}")) else { continue };
        let mut codec = sys::blosc2_codec {
            compcode: code,
            compname: name.into_raw(), // C keeps it for ever.
            complib: 0,
            version: 1, // The encoder writes the codec's own, which is not known yet.
            encoder: Some(encode),
            decoder: Some(decode),
        };
        // SAFETY: C copies the structure, whose name is never freed (blosc2.c, register_codec_private).
        // No other call is made into C meanwhile (init.rs).
        if unsafe { sys::blosc2_register_codec(&mut codec) } < 0 {
            CODECS.take(code);
        }
    }
}

/// A codec, as C asks for it.
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
    // SAFETY: the context has this from `Slot::preparams`; the call is not used after this function.
    let Some(call) = (unsafe { Call::of_compression(params) }) else {
        return sys::BLOSC2_ERROR_CODEC_SUPPORT; // C compresses for itself.
    };
    let code = params.compcode;
    call.run(Title::Codec(code, codec_name(code)), || {
        // SAFETY: C gives a stream of the block, and the room for it in other memory, of which no other
        // thread knows (blosc2.c, blosc_c).
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
            Some(0) => Err("it gave a length of 0; what does not fit is `None`".into()),
            Some(len) if len <= room => Ok(i32::try_from(len)?),
            Some(len) => Err(format!("it gave a length of {len}, with room for {room}").into()),
        }
    })
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
    // SAFETY: the context has this from `Slot::postparams`; the call is not used after this function.
    let Some(call) = (unsafe { Call::of_decompression(params) }) else {
        return sys::BLOSC2_ERROR_CODEC_SUPPORT; // C decompresses for itself.
    };
    let code = call.codec;
    call.run(Title::Codec(code, codec_name(code)), || {
        // SAFETY: C gives a stream of the chunk, and its place in the block in other memory, of which no
        // other thread knows (blosc2.c, blosc_d).
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
        find(code)?.codec.decompress(input, output, &info)?;
        Ok(output_len)
    })
}
