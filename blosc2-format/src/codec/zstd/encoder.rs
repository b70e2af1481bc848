//! Compressing to Zstandard frames, by the crate `ruzstd`.

use ruzstd::encoding::{CompressionLevel, FrameCompressor};
use ruzstd::io::{Error, Write};

/// Compresses at the one level that the encoder has.
#[derive(Default)]
pub(in crate::codec) struct Compressor {}

impl Compressor {
    /// Compresses `data`; `None` where it does not fit in `out`.
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

/// Takes everything; `at` is `None` as soon as something did not fit.
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
