//! The codecs: compression and decompression of streams.
//!
//! This module implements BloscLZ, LZ4 and the decompression of Zstandard. They accept and write
//! the same streams as C-Blosc2. Compression with Zstandard, and zlib, are optional and use other
//! crates.

mod blosclz;
mod lz4;
#[cfg(feature = "zlib")]
mod zlib;
mod zstd;

#[cfg(test)]
mod tests;

use std::fmt;

use crate::report::Rule;
use crate::{Error, FormatError};

/// The codes of the codecs, as in headers of frames and in parameters.
pub(crate) const BLOSCLZ: u8 = 0;
pub(crate) const LZ4: u8 = 1;
pub(crate) const LZ4HC: u8 = 2;
pub(crate) const SNAPPY: u8 = 3;
pub(crate) const ZLIB: u8 = 4;
pub(crate) const ZSTD: u8 = 5;

const SECTION: &str = "Codecs";
const BLOSCLZ_STREAM: Rule = Rule::error("codec.blosclz", "BloscLZ stream", SECTION);
const LZ4_STREAM: Rule = Rule::error("codec.lz4", "LZ4 stream", SECTION);
const ZLIB_STREAM: Rule = Rule::error("codec.zlib", "zlib stream", SECTION);
const ZSTD_STREAM: Rule = Rule::error("codec.zstd", "Zstandard stream", SECTION);
const OTHER_STREAM: Rule = Rule::error("codec.stream", "compressed stream", SECTION);

/// The rules of streams.
pub(crate) const RULES: &[&Rule] =
    &[&BLOSCLZ_STREAM, &LZ4_STREAM, &ZLIB_STREAM, &ZSTD_STREAM, &OTHER_STREAM];

/// Returns the rule that streams of this codec follow.
pub(crate) fn rule(codec: u8) -> &'static Rule {
    match codec {
        BLOSCLZ => &BLOSCLZ_STREAM,
        LZ4 | LZ4HC => &LZ4_STREAM,
        ZLIB => &ZLIB_STREAM,
        ZSTD => &ZSTD_STREAM,
        _ => &OTHER_STREAM,
    }
}

/// Returns the name of the codec with this code in the registry of Blosc2, which includes the codecs of plugins. Returns
/// `None` for other codes, such as those of user-defined codecs (160 to 255).
pub fn codec_name(code: u8) -> Option<&'static str> {
    Some(match code {
        BLOSCLZ => "BloscLZ",
        LZ4 => "LZ4",
        LZ4HC => "LZ4HC",
        SNAPPY => "Snappy",
        ZLIB => "zlib",
        ZSTD => "Zstandard",
        32 => "NDLZ",
        33 => "ZFP with fixed accuracy",
        34 => "ZFP with fixed precision",
        35 => "ZFP with fixed rate",
        36 => "OpenHTJ2K",
        37 => "Grok",
        38 => "OpenZL",
        39 => "J2K",
        40 => "HTJ2K",
        _ => return None,
    })
}

/// Returns the name of the codec; for a plugin, with its code.
pub(crate) fn name(code: u8) -> String {
    match codec_name(code) {
        Some(name) if code < 32 => name.to_owned(),
        Some(name) => format!("{name}, codec {code}"),
        None => format!("codec {code}"),
    }
}

/// The error of a stream or a dictionary, with its position in it.
#[derive(Debug)]
pub(crate) struct Fault {
    offset: usize,
    pub(crate) expected: String,
    pub(crate) found: String,
}

impl Fault {
    #[cold]
    fn new(offset: usize, expected: impl ToString, found: impl ToString) -> Self {
        Self { offset, expected: expected.to_string(), found: found.to_string() }
    }
}

/// The buffers of decompression, reused for the next stream.
#[derive(Default)]
pub(crate) struct Decompressor {
    #[cfg(feature = "zlib")]
    zlib: zlib::Decompressor,
    zstd: zstd::Decompressor,
}

impl fmt::Debug for Decompressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decompressor").finish_non_exhaustive()
    }
}

impl Decompressor {
    /// Decompresses `stream`, which must fill `out` exactly.
    ///
    /// `dictionary` is the dictionary of the chunk. Only LZ4 and Zstandard use it. For each stream
    /// that this method accepts, C-Blosc2 returns the same bytes.
    ///
    /// # Errors
    /// On an error the content of `out` is unspecified.
    /// - [`Error::Format`]: the stream is invalid; the offset is relative to its start;
    /// - [`Error::Unsupported`]: the codec is not in this crate, or not enabled.
    pub(crate) fn decompress(
        &mut self,
        codec: u8,
        stream: &[u8],
        dictionary: Option<&[u8]>,
        out: &mut [u8],
    ) -> Result<(), Error> {
        self.decompress_prefix(codec, stream, dictionary, out.len(), out)
    }

    /// Decompresses at least the first `needed` bytes of `stream` to the start of `out`. The whole
    /// stream must fill `out` exactly, but this method does not check the stream after these bytes.
    ///
    /// # Errors
    /// The errors of [`decompress`](Self::decompress).
    pub(crate) fn decompress_prefix(
        &mut self,
        codec: u8,
        stream: &[u8],
        dictionary: Option<&[u8]>,
        needed: usize,
        out: &mut [u8],
    ) -> Result<(), Error> {
        let result = match codec {
            BLOSCLZ => blosclz::decompress(stream, needed, out),
            LZ4 | LZ4HC => lz4::decompress(stream, dictionary.unwrap_or_default(), needed, out),
            #[cfg(feature = "zlib")]
            ZLIB => self.zlib.decompress(stream, out),
            ZSTD => {
                if let Some(version) = zstd::early_version(stream) {
                    return Err(Error::Unsupported(format!("the format of Zstandard {version}")));
                }
                self.zstd.decompress(stream, dictionary, needed, out)
            }
            _ => return Err(Error::Unsupported(name(codec))),
        };
        result.map_err(|fault| {
            FormatError::of(rule(codec), fault.offset as u64, fault.expected, fault.found).into()
        })
    }
}

/// Checks whether streams of this codec can be decompressed with this dictionary. Only Zstandard has a format of
/// dictionaries.
pub(crate) fn check_dictionary(codec: u8, dictionary: &[u8]) -> Result<(), Fault> {
    match codec {
        ZSTD => zstd::Dictionary::read(dictionary).map(drop),
        _ => Ok(()),
    }
}

/// Returns the length of the output at which a decoder stops early: never, if all of `out` is needed.
fn early(needed: usize, out: &[u8]) -> usize {
    if needed < out.len() { needed } else { usize::MAX }
}

/// Returns the length of the common prefix of `a` and `b`; `a` is the longer one.
fn common(a: &[u8], b: &[u8]) -> usize {
    let mut len = 0;
    for (x, y) in a.chunks_exact(8).zip(b.chunks_exact(8)) {
        if x != y {
            break;
        }
        len += 8;
    }
    len + a[len..].iter().zip(&b[len..]).take_while(|(x, y)| x == y).count()
}

/// Executes a match: copies the `len` bytes at `at - distance` to `at`. The copied bytes can
/// include bytes that this copy has written.
///
/// The caller has checked that `0 < distance <= at` and `at + len <= out.len()`. Bytes after
/// `at + len` can change.
#[inline(always)]
fn repeat(out: &mut [u8], at: usize, distance: usize, len: usize) {
    // Copying words of 16 bytes is much faster than copying the exact number of bytes.
    if distance >= 16 && len <= 32 && out.len() - at >= 32 {
        out.copy_within(at - distance..at - distance + 16, at);
        if len > 16 {
            out.copy_within(at - distance + 16..at - distance + 32, at + 16);
        }
    } else {
        repeat_any(out, at, distance, len);
    }
}

fn repeat_any(out: &mut [u8], at: usize, distance: usize, len: usize) {
    let from = at - distance;
    if distance >= len {
        out.copy_within(from..from + len, at);
    } else if distance < 16 && len <= 512 && out.len() - at >= len + 16 {
        // Repeats the whole periods that fit into a word.
        let mut word = [out[from]; 16];
        if distance > 1 {
            for i in 1..16 {
                word[i] = if i < distance { out[from + i] } else { word[i - distance] };
            }
        }
        let step = 16 - 16 % distance;
        let mut done = 0;
        while done < len {
            out[at + done..at + done + 16].copy_from_slice(&word);
            done += step;
        }
    } else if distance == 1 {
        let byte = out[from];
        out[at..at + len].fill(byte);
    } else {
        // The copied part doubles with each copy.
        let mut done = 0;
        while done < len {
            let part = (distance + done).min(len - done);
            out.copy_within(from..from + part, at + done);
            done += part;
        }
    }
}

/// The buffers of compression, reused for the next stream.
#[derive(Default)]
pub(crate) struct Compressor {
    lz4: Vec<u32>,
    blosclz: blosclz::Table,
    #[cfg(feature = "zlib")]
    zlib: zlib::Compressor,
    #[cfg(feature = "zstd")]
    zstd: zstd::Compressor,
}

impl fmt::Debug for Compressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compressor").finish_non_exhaustive()
    }
}

impl Compressor {
    /// Compresses `data` into `out` at a level from 1 to 9, and returns the length of the stream.
    /// Returns `None` if the stream does not fit into `out`, or if the codec does not compress the
    /// data enough. The caller then stores the data uncompressed.
    ///
    /// BloscLZ and LZ4 write the same bytes as C-Blosc2 3.3.2 if `out` has the size of C's output
    /// buffer. This is the size of `data`, or less near the end of the chunk. The size matters for
    /// two reasons: both codecs require free space before they write, and BloscLZ writes nothing to
    /// a buffer of less than 66 bytes.
    ///
    /// # Errors
    /// [`Error::Unsupported`]: this crate has no encoder for the codec, for example LZ4HC.
    pub(crate) fn compress(
        &mut self,
        codec: u8,
        level: u8,
        data: &[u8],
        out: &mut [u8],
    ) -> Result<Option<usize>, Error> {
        Ok(match codec {
            BLOSCLZ => blosclz::compress(level, data, out, &mut self.blosclz),
            LZ4 => lz4::compress(10 - level.clamp(1, 9), data, out, &mut self.lz4),
            #[cfg(feature = "zlib")]
            ZLIB => self.zlib.compress(level, data, out),
            #[cfg(feature = "zstd")]
            ZSTD => self.zstd.compress(data, out),
            _ => return Err(Error::Unsupported(format!("compressing with {}", name(codec)))),
        })
    }
}
