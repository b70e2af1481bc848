//! Tuners of one's own, which choose how each chunk is compressed.

use std::fmt;
use std::time::{Duration, Instant};

use blosc2_format::chunk::Header;
use blosc2_sys as sys;

use crate::params::{Purpose, Resolved};
use crate::{CParams, Error, ErrorKind, Result};

use super::BoxError;
use super::call::{Title, run_here};
use super::registry::Registry;

const DOING: &str = "tune the compression";

/// Chooses the parameters for each chunk; see [`Tuner::register`].
///
/// Each [`Compressor`](crate::Compressor), [`SChunk`](crate::SChunk) and [`NDArray`](crate::NDArray) has
/// its own. Its functions are called by the thread that compresses, before and after that; also after one has
/// failed or panicked.
pub trait Tune: Send + 'static {
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

/// A tuner that was registered, by its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tuner(u8);

type Make = dyn Fn(&CParams) -> Box<dyn Tune> + Send + Sync;

static TUNERS: Registry<Make> = Registry::new();

/// The name of a tuner.
pub(super) fn tuner_name(id: u8) -> Option<&'static str> {
    TUNERS.name(id)
}

impl Tuner {
    /// Makes a tuner available under an id, 160 to 255, until the program ends.
    ///
    /// `make` makes one for each compressor, from the parameters that the program has chosen. No file
    /// says that there was a tuner. C's `blosc2_register_tuner`, Python's `register_tuner`, which take
    /// functions over C's context.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: another id, or a name that is empty, a number, or has a colon;
    /// - [`ErrorKind::AlreadyExists`]: the id or the name is taken.
    ///
    /// ```
    /// use blosc2::{BoxError, CParams, Codec, Compressor, Tune, Tuner, TunerInput, TunerOutcome};
    ///
    /// /// Compresses harder as long as that gains something.
    /// #[derive(Default)]
    /// struct Climb {
    ///     best: Option<usize>,
    ///     done: bool,
    /// }
    ///
    /// impl Tune for Climb {
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
    pub fn register<T: Tune>(
        id: u8,
        name: &str,
        make: impl Fn(&CParams) -> T + Send + Sync + 'static,
    ) -> Result<Self> {
        let make = move |params: &CParams| -> Box<dyn Tune> { Box::new(make(params)) };
        TUNERS.set("register a tuner", id, name, Box::new(make), false)?;
        Ok(Self(id))
    }

    /// The tuner with an id; whether there is one is seen when it is used.
    pub fn from_id(id: u8) -> Self {
        Self(id)
    }

    /// The id.
    pub fn id(self) -> u8 {
        self.0
    }

    fn make(self) -> Result<&'static Make> {
        TUNERS.get(self.0).ok_or_else(|| {
            let detail = format!("no tuner is registered with the id {}", self.0);
            Error::new(ErrorKind::Unsupported, DOING, detail)
        })
    }
}

impl fmt::Display for Tuner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match tuner_name(self.0) {
            Some(name) => f.write_str(name),
            None => write!(f, "tuner {}", self.0),
        }
    }
}

/// A tuner at work, in an encoder. It is made when it is first asked.
pub(crate) struct Tuning {
    tuner: Tuner,
    purpose: Purpose,
    params: CParams,
    tune: Option<Box<dyn Tune>>,
    index: usize,
}

impl fmt::Debug for Tuning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tuning").field("tuner", &self.tuner).finish_non_exhaustive()
    }
}

impl Clone for Tuning {
    /// One that has seen nothing yet.
    fn clone(&self) -> Self {
        Self { params: self.params.clone(), tune: None, index: 0, ..*self }
    }
}

impl Tuning {
    /// The tuner that the parameters name, if they do.
    pub(crate) fn of(params: &CParams, purpose: Purpose) -> Result<Option<Self>> {
        let Some(tuner) = params.tuner else {
            return Ok(None);
        };
        tuner.make()?;
        Ok(Some(Self { tuner, purpose, params: params.clone(), tune: None, index: 0 }))
    }

    /// The parameters as the tuner has left them, for items of this size.
    pub(crate) fn resolve(&self, typesize: usize) -> Result<Resolved> {
        self.params.resolve(typesize, self.purpose)
    }

    /// Asks the tuner, and gives the parameters if it has changed them; `now` are those of before.
    pub(crate) fn next(&mut self, data: &[&[u8]], now: &Resolved) -> Result<Option<Resolved>> {
        let (typesize, index) = (now.typesize(), self.index);
        let make = self.tuner.make()?;
        let mut params = self.params.clone();
        let resolved = run_here(Title::Tuner(self.tuner.0), DOING, || {
            let tune = self.tune.get_or_insert_with(|| make(&params));
            tune.next(&mut params, &TunerInput { data, typesize, index })?;
            if params == self.params {
                return Ok(None);
            }
            let fixed = |params: &CParams| (params.typesize, params.blosc1, params.tuner);
            let in_array = self.purpose == Purpose::Array;
            if fixed(&params) != fixed(&self.params)
                || (in_array && params.blocksize != self.params.blocksize)
            {
                return Err("it changed what has to stay as it is".into());
            }
            let resolved = params.resolve(typesize, self.purpose)?;
            let blocksize = if in_array { now.c.blocksize } else { resolved.c.blocksize };
            let c = sys::blosc2_cparams { blocksize, ..resolved.c };
            Ok(Some(Resolved { c, ..resolved }))
        })?;
        self.params = params;
        self.index += 1;
        Ok(resolved)
    }

    /// Tells the tuner what came out since `start`.
    pub(crate) fn measured(&mut self, start: Instant, header: &Header) -> Result<()> {
        let outcome = TunerOutcome {
            nbytes: header.nbytes as usize,
            cbytes: header.cbytes as usize,
            elapsed: start.elapsed(),
        };
        match &mut self.tune {
            Some(tune) => run_here(Title::Tuner(self.tuner.0), DOING, || tune.measured(&outcome)),
            None => Ok(()),
        }
    }
}
