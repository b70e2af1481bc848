//! Compression to Zstandard frames with the crate `ruzstd`.

use ruzstd::encoding::{CompressionLevel, FrameCompressor};
use ruzstd::io::{Error, Write};

/// The compressor, with the single level of the encoder.
#[derive(Default)]
pub(in crate::codec) struct Compressor {}

impl Compressor {
    /// Compresses `data`, or returns `None` if it does not fit in `out`.
    pub(in crate::codec) fn compress(&mut self, data: &[u8], out: &mut [u8]) -> Option<usize> {
        let mut sink = Sink { out, at: Some(0) };
        let mut compressor = FrameCompressor::new(CompressionLevel::Fastest);
        compressor.set_source(data);
        compressor.set_drain(&mut sink);
        compressor.compress();
        drop(compressor);
        sink.at
    }
}

/// A writer that never fails. `at` becomes `None` when written bytes do not fit.
struct Sink<'a> {
    out: &'a mut [u8],
    at: Option<usize>,
}

impl Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<usize, Error> {
        self.at = self.at.and_then(|at| {
            self.out.get_mut(at..at + bytes.len())?.copy_from_slice(bytes);
            Some(at + bytes.len())
        });
        Ok(bytes.len())
    }

    fn flush(&mut self) -> Result<(), Error> {
        Ok(())
    }
}
