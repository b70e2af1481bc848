//! Tuners of one's own, which choose how each chunk is compressed.

use std::fmt;
use std::time::Duration;

use crate::{CParams, Error, ErrorKind, Result, Tuner};

use super::BoxError;
use super::registry::Registry;

const DOING: &str = "tune the compression";

/// Chooses the parameters for each chunk; see [`Tuner::register`].
///
/// Each [`Compressor`](crate::Compressor), [`SChunk`](crate::SChunk) and [`NDArray`](crate::NDArray) has
/// its own. Its functions are called by the thread that compresses, before and after that; also after one has
/// failed or panicked.
pub trait UserTuner: Send + 'static {
    /// Changes the parameters for the next chunk; they stay so for those after it.
    ///
    /// The typesize, the header and the tuner have to stay as they are, and in an array the block size.
    ///
    /// # Errors
    /// Anything; it becomes the source of the error of the call, of [`ErrorKind::Callback`].
    fn next(&mut self, params: &mut CParams, input: &TunerInput<'_>) -> Result<(), BoxError>;

    /// Is told what came out; not where compressing has failed.
    ///
    /// # Errors
    /// As for [`next`](Self::next).
    fn measured(&mut self, outcome: &TunerOutcome) -> Result<(), BoxError> {
        let _ = outcome;
        Ok(())
    }
}

/// What is about to be compressed.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct TunerInput<'a> {
    /// The data: one slice, or more for a chunk of blocks of variable length.
    pub data: &'a [&'a [u8]],
    /// Bytes of an item.
    pub typesize: usize,
    /// How many times this tuner has chosen before.
    pub index: usize,
}

/// What came out of compressing a chunk.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct TunerOutcome {
    /// Bytes of the data.
    pub nbytes: usize,
    /// Bytes of the chunk.
    pub cbytes: usize,
    /// How long it took.
    pub elapsed: Duration,
}

pub(crate) type Make = dyn Fn(&CParams) -> Box<dyn UserTuner> + Send + Sync;

static TUNERS: Registry<Make> = Registry::new();

impl Tuner {
    /// Makes a tuner available under an id, 160 to 255, until the program ends.
    ///
    /// `make` makes one for each compressor, from the parameters that the program has chosen. No file
    /// says that there was a tuner. What it chose is read from [`Compressor::params`](crate::Compressor::params) and, but
    /// for the level, from each [`Chunk`](crate::Chunk) or by [`SChunk::chunk_info`](crate::SChunk::chunk_info). C's `blosc2_register_tuner`, Python's `register_tuner`, which take
    /// functions over C's context.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: another id, or a name that is empty, a number, or has a colon;
    /// - [`ErrorKind::AlreadyExists`]: the id or the name is taken.
    ///
    /// ```
    /// use blosc2::user_defined::{BoxError, UserTuner, TunerInput, TunerOutcome};
    /// use blosc2::{CParams, Codec, Compressor, Tuner};
    ///
    /// /// Compresses harder as long as that gains something.
    /// #[derive(Default)]
    /// struct Climb {
    ///     best: Option<usize>,
    ///     done: bool,
    /// }
    ///
    /// impl UserTuner for Climb {
    ///     fn next(&mut self, params: &mut CParams, _: &TunerInput<'_>) -> Result<(), BoxError> {
    ///         if !self.done && params.level < 9 {
    ///             params.level += 1;
    ///         }
    ///         Ok(())
    ///     }
    ///
    ///     fn measured(&mut self, outcome: &TunerOutcome) -> Result<(), BoxError> {
    ///         self.done |= self.best.is_some_and(|best| outcome.cbytes >= best);
    ///         self.best = Some(outcome.cbytes);
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let tuner = Tuner::register(200, "climb", |_| Climb::default())?;
    /// let params = CParams::new().codec(Codec::Lz4Hc).level(1).tuner(tuner);
    /// let mut compressor = Compressor::new(&params)?;
    /// for start in 0..5u32 {
    ///     let items: Vec<u32> = (start..start + 10_000).collect();
    ///     assert_eq!(compressor.compress(&items)?.decompress::<u32>()?, items);
    /// }
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    pub fn register<T: UserTuner>(
        id: u8,
        name: &str,
        make: impl Fn(&CParams) -> T + Send + Sync + 'static,
    ) -> Result<Self> {
        let make = move |params: &CParams| -> Box<dyn UserTuner> { Box::new(make(params)) };
        TUNERS.set("register a tuner", id, name, Box::new(make), false)?;
        Ok(Self::from_id(id))
    }

    /// The name, where it is registered.
    pub(crate) fn name(self) -> Option<&'static str> {
        TUNERS.name(self.id())
    }

    pub(crate) fn make(self) -> Result<&'static Make> {
        TUNERS.get(self.id()).ok_or_else(|| {
            let detail = format!("no tuner is registered with the id {}", self.id());
            Error::new(ErrorKind::Unsupported, DOING, detail)
        })
    }
}

impl fmt::Display for Tuner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "tuner {}", self.id()),
        }
    }
}
