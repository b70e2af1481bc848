//! User-defined tuners, which choose the compression parameters of each chunk.

use std::fmt;
use std::time::Duration;

use crate::{CParams, Doing, Error, ErrorKind, Result, Tuner};

use super::BoxError;
use super::registry::Registry;

const DOING: &str = "tune the compression";

/// A user-defined tuner, which chooses the compression parameters of each chunk. [`Tuner::register`] registers it with
/// an id.
///
/// Each [`Compressor`](crate::Compressor), [`SChunk`](crate::SChunk) and
/// [`NDArray`](crate::NDArray) has a separate instance of the tuner. A super-chunk or an array can create a new
/// instance when its parameters or its shape change, and when it re-reads its file.
///
/// The methods run on the thread that compresses the chunk: [`next`](Self::next) before the compression,
/// [`measured`](Self::measured) after the compression. If a method fails or panics, the same instance is used for the
/// next chunk.
///
/// ```
/// use blosc2::user_defined::{BoxError, TunerInput, TunerOutcome, UserTuner};
/// use blosc2::{CParams, Compressor, Tuner};
///
/// /// Compresses at level 1 if the last chunk did not compress well.
/// #[derive(Default)]
/// struct Quick {
///     poor: bool,
/// }
///
/// impl UserTuner for Quick {
///     fn next(&mut self, params: &mut CParams, _: &TunerInput<'_>) -> Result<(), BoxError> {
///         params.level = if self.poor { 1 } else { 5 };
///         Ok(())
///     }
///
///     fn measured(&mut self, outcome: &TunerOutcome) -> Result<(), BoxError> {
///         self.poor = outcome.cbytes > outcome.nbytes / 2;
///         Ok(())
///     }
/// }
///
/// let tuner = Tuner::register(201, "quick", |_| Quick::default())?;
/// let mut compressor = Compressor::new(CParams::new().tuner(tuner))?;
/// assert_eq!(compressor.compress(&[1.5f64; 1000])?.decompress::<f64>()?, [1.5; 1000]);
/// # Ok::<(), blosc2::Error>(())
/// ```
pub trait UserTuner: Send + 'static {
    /// Chooses the parameters for the next chunk: changes `params`. The changes also apply to later chunks.
    ///
    /// [`CParams::typesize`], [`CParams::blosc1`], [`CParams::tuner`] and, in an array, [`CParams::blocksize`] must not
    /// be changed. If `next` changes one of these parameters, or sets an invalid parameter, compression fails with
    /// [`ErrorKind::Callback`].
    ///
    /// # Errors
    /// Any error. The call that compresses then fails with [`ErrorKind::Callback`];
    /// [`Error::get_ref`] returns this error.
    fn next(&mut self, params: &mut CParams, input: &TunerInput<'_>) -> Result<(), BoxError>;

    /// Receives the outcome of the compression of a chunk. This method is not called if the compression failed. The
    /// default implementation does nothing.
    ///
    /// # Errors
    /// Any error. The call that compresses then fails with [`ErrorKind::Callback`];
    /// [`Error::get_ref`] returns this error.
    fn measured(&mut self, outcome: &TunerOutcome) -> Result<(), BoxError> {
        let _ = outcome;
        Ok(())
    }
}

/// The data of the next chunk, as passed to [`UserTuner::next`].
///
/// ```
/// use blosc2::user_defined::{BoxError, TunerInput, UserTuner};
/// use blosc2::{CParams, Compressor, Tuner};
///
/// /// Stores short buffers uncompressed.
/// struct Skip;
///
/// impl UserTuner for Skip {
///     fn next(&mut self, params: &mut CParams, input: &TunerInput<'_>) -> Result<(), BoxError> {
///         let nbytes: usize = input.data.iter().map(|part| part.len()).sum();
///         params.level = if nbytes < 100 { 0 } else { 5 };
///         Ok(())
///     }
/// }
///
/// let tuner = Tuner::register(202, "skip", |_| Skip)?;
/// let mut compressor = Compressor::new(CParams::new().tuner(tuner))?;
/// let items: Vec<u8> = (0..99).collect();
/// assert!(compressor.compress(&items)?.is_stored());
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct TunerInput<'a> {
    /// The uncompressed data: one slice, or one slice for each variable-length block.
    pub data: &'a [&'a [u8]],
    /// The size of an item in bytes.
    pub typesize: usize,
    /// The number of chunks for which this instance has already chosen parameters.
    pub index: usize,
}

/// The outcome of the compression of a chunk, as passed to [`UserTuner::measured`].
///
/// ```
/// use blosc2::user_defined::TunerOutcome;
///
/// /// The speed of compression in bytes per second.
/// fn speed(outcome: &TunerOutcome) -> f64 {
///     outcome.nbytes as f64 / outcome.elapsed.as_secs_f64()
/// }
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct TunerOutcome {
    /// The size of the uncompressed data in bytes.
    pub nbytes: usize,
    /// The size of the chunk in bytes.
    pub cbytes: usize,
    /// The duration of the compression.
    pub elapsed: Duration,
}

pub(super) type Make = dyn Fn(&CParams) -> Box<dyn UserTuner> + Send + Sync;

static TUNERS: Registry<Make> = Registry::new();

impl Tuner {
    /// Registers a user-defined tuner with an id from 160 to 255 and a name, until the process exits.
    ///
    /// `make` creates the instances of the tuner; see [`UserTuner`](crate::user_defined::UserTuner). `make` receives
    /// the parameters that the program has set.
    ///
    /// [`Compressor::params`](crate::Compressor::params) returns the parameters that the tuner chose last. The header
    /// of each chunk stores the codec, the filters and the block size; [`Chunk`](crate::Chunk) and
    /// [`SChunk::chunk_info`](crate::SChunk::chunk_info) return these values. Chunks do not store the level, and files
    /// do not store the id of the tuner.
    ///
    /// C: `blosc2_register_tuner`, which takes functions that work on a C context. Python has no equivalent.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: the id is not from 160 to 255; or the name is empty, is a number from 0 to
    ///   255, or contains a colon;
    /// - [`ErrorKind::AlreadyExists`]: the id or the name is registered already.
    ///
    /// ```
    /// use blosc2::user_defined::{BoxError, UserTuner, TunerInput, TunerOutcome};
    /// use blosc2::{CParams, Codec, Compressor, Tuner};
    ///
    /// /// Raises the level as long as chunks become smaller.
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
        TUNERS.set(id, name, Box::new(make), false).doing("register a tuner")?;
        Ok(Self::from_id(id))
    }

    /// The name, if the tuner is registered.
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
