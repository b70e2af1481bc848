//! zlib streams.

use miniz_oxide::DataFormat;
use miniz_oxide::deflate::core::{CompressorOxide, TDEFLFlush, TDEFLStatus, compress};
use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::{DecompressorOxide, decompress, inflate_flags};

use super::Fault;

/// The decompressor, with tables that are reused for the next stream.
#[derive(Default)]
pub(super) struct Decompressor {
    state: Box<DecompressorOxide>,
}

impl Decompressor {
    /// Decompresses a stream, which must fill `out` exactly. Like zlib's `uncompress`, ignores
    /// bytes after the end of the stream.
    pub(super) fn decompress(&mut self, stream: &[u8], out: &mut [u8]) -> Result<(), Fault> {
        // The window is at most 32 KiB.
        if stream.first().is_some_and(|method| method >> 4 > 7) {
            return Err(Fault::new(0, "a window of 32 KiB or less", "a larger one"));
        }
        self.state.init();
        let flags = inflate_flags::TINFL_FLAG_PARSE_ZLIB_HEADER
            | inflate_flags::TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
        let (status, read, written) = decompress(&mut self.state, stream, out, 0, flags);
        match status {
            TINFLStatus::Done if written == out.len() => Ok(()),
            TINFLStatus::Done => {
                Err(Fault::new(read, format_args!("{} bytes of data", out.len()), written))
            }
            TINFLStatus::HasMoreOutput => {
                Err(Fault::new(read, format_args!("{} bytes of data", out.len()), "more"))
            }
            TINFLStatus::Adler32Mismatch => {
                Err(Fault::new(read, "the checksum of the data", "another"))
            }
            TINFLStatus::FailedCannotMakeProgress | TINFLStatus::NeedsMoreInput => {
                Err(Fault::new(read, "another byte", "the end of the stream"))
            }
            _ => Err(Fault::new(read, "a zlib stream", "something else")),
        }
    }
}

/// The compressor, with memory that is reused for the next stream.
#[derive(Default)]
pub(super) struct Compressor {
    state: Box<CompressorOxide>,
}

impl Compressor {
    /// Compresses `data`, or returns `None` if it does not fit in `out`.
    pub(super) fn compress(&mut self, level: u8, data: &[u8], out: &mut [u8]) -> Option<usize> {
        self.state.reset();
        self.state.set_format_and_level(DataFormat::Zlib, level);
        match compress(&mut self.state, data, out, TDEFLFlush::Finish) {
            (TDEFLStatus::Done, _, written) => Some(written),
            _ => None,
        }
    }
}
