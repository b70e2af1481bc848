//! Parameters from environment variables, which this crate reads only if the program requests it.

use std::env;
use std::str::FromStr;

use blosc2_format::chunk::MAX_FILTERS;

use crate::{CParams, DParams, Error, ErrorKind, Filter, Result, SplitMode, Threads};

impl CParams {
    /// Replaces parameters with the values of the environment variables in this table, if they are set. C-Blosc2 always
    /// uses these variables; this crate uses them only in this function. An invalid value is an error here; C-Blosc2
    /// ignores most invalid values.
    ///
    /// | variable | value and effect |
    /// |---|---|
    /// | `BLOSC_CLEVEL` | the compression level |
    /// | `BLOSC_COMPRESSOR` | the name of the codec |
    /// | `BLOSC_SHUFFLE` | the last filter: `NOSHUFFLE`, `SHUFFLE` or `BITSHUFFLE` |
    /// | `BLOSC_DELTA` | `1`: the second-to-last filter is delta; `0`: no effect |
    /// | `BLOSC_TYPESIZE` | the typesize in bytes |
    /// | `BLOSC_BLOCKSIZE` | the block size in bytes |
    /// | `BLOSC_NTHREADS` | the number of threads |
    /// | `BLOSC_SPLITMODE` | the split mode: `ALWAYS`, `NEVER`, `AUTO` or `FORWARD_COMPAT` |
    ///
    /// In C-Blosc2, the variables also affect data that the library compresses internally, which corrupts frames. Here,
    /// they change only `self`.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`]: the value of a variable cannot be parsed. The number of threads is clamped to
    /// the range 1 to 256. If another value is out of range, the functions that use the parameters fail.
    ///
    /// ```
    /// let params = blosc2::CParams::new().with_env_overrides()?;
    /// let chunk = blosc2::compress(&[1u8, 2, 3], &params)?;
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    pub fn with_env_overrides(mut self) -> Result<Self> {
        let shuffle = choice(
            "BLOSC_SHUFFLE",
            &[
                ("NOSHUFFLE", None),
                ("SHUFFLE", Some(Filter::Shuffle)),
                ("BITSHUFFLE", Some(Filter::Bitshuffle)),
            ],
        )?;
        let delta = choice("BLOSC_DELTA", &[("0", false), ("1", true)])?;
        if shuffle.is_some() || delta == Some(true) {
            // C has six slots for filters. The last filter is in the last slot.
            let len = self.filters.len().max(MAX_FILTERS);
            let mut places = vec![None; len - self.filters.len()];
            places.extend(self.filters.iter().copied().map(Some));
            if let Some(shuffle) = shuffle {
                places[len - 1] = shuffle;
            }
            if delta == Some(true) {
                places[len - 2] = Some(Filter::Delta);
            }
            self.filters = places.into_iter().flatten().collect();
        }
        if let Some(level) = number("BLOSC_CLEVEL")? {
            self.level = level;
        }
        if let Some(codec) = variable("BLOSC_COMPRESSOR") {
            self.codec = codec
                .parse()
                .map_err(|error: Error| invalid("BLOSC_COMPRESSOR", &codec, &error))?;
        }
        if let Some(typesize) = number("BLOSC_TYPESIZE")? {
            self.typesize = Some(typesize);
        }
        if let Some(blocksize) = number("BLOSC_BLOCKSIZE")? {
            self.blocksize = Some(blocksize);
        }
        if let Some(threads) = number("BLOSC_NTHREADS")? {
            self.threads = Threads::new(threads);
        }
        let split = choice(
            "BLOSC_SPLITMODE",
            &[
                ("ALWAYS", SplitMode::Always),
                ("NEVER", SplitMode::Never),
                ("AUTO", SplitMode::Auto),
                ("FORWARD_COMPAT", SplitMode::ForwardCompat),
            ],
        )?;
        self.split = split.unwrap_or(self.split);
        Ok(self)
    }
}

impl DParams {
    /// Replaces the number of threads with the value of the environment variable `BLOSC_NTHREADS`, if it is set.
    /// C-Blosc2 always uses this variable; this crate uses it only in this function.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`]: the value is not an integer of 0 or more.
    pub fn with_env_overrides(mut self) -> Result<Self> {
        if let Some(threads) = number("BLOSC_NTHREADS")? {
            self.threads = Threads::new(threads);
        }
        Ok(self)
    }
}

fn variable(name: &str) -> Option<String> {
    env::var_os(name).map(|value| value.to_string_lossy().into_owned())
}

fn number<T: FromStr<Err: ToString>>(name: &str) -> Result<Option<T>> {
    let parse = |value: String| {
        value.trim().parse().map_err(|error: T::Err| invalid(name, &value, &error.to_string()))
    };
    variable(name).map(parse).transpose()
}

fn choice<T: Copy>(name: &str, choices: &[(&str, T)]) -> Result<Option<T>> {
    let find = |value: String| match choices.iter().find(|choice| choice.0 == value) {
        Some(choice) => Ok(choice.1),
        None => {
            let names: Vec<&str> = choices.iter().map(|choice| choice.0).collect();
            Err(invalid(name, &value, &format!("expected one of {}", names.join(", "))))
        }
    };
    variable(name).map(find).transpose()
}

fn invalid(name: &str, value: &str, why: &dyn ToString) -> Error {
    let detail = format!("the environment variable {name} is `{value}`: {}", why.to_string());
    Error::new(ErrorKind::InvalidArgument, "read parameters from the environment", detail)
}
