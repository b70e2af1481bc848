//! The formats of files that `import` reads and `export` writes, and the conversion of tables.

use std::path::Path;

use anyhow::Result;
use blosc2_format::ReadAt;
use clap::ValueEnum;

use crate::{extension, foreign};

/// A format of files of other programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Npy,
    Csv,
    Parquet,
    // An Arrow IPC file.
    Arrow,
    // An Arrow IPC stream.
    #[value(name = "arrow-stream")]
    Stream,
    Zarr,
}

impl Format {
    /// The format that the extension of a file names; `None` if it names another one, or if there is no extension.
    fn named(path: &Path) -> Option<Self> {
        Some(match extension::of(path)?.as_str() {
            "npy" => Self::Npy,
            "csv" => Self::Csv,
            "parquet" | "pq" => Self::Parquet,
            "arrow" | "feather" | "ipc" => Self::Arrow,
            "arrows" => Self::Stream,
            "zarr" => Self::Zarr,
            _ => return None,
        })
    }

    /// The format of a new file, by its extension.
    pub(crate) fn of_output(path: &Path, default: Self) -> Result<Self> {
        match (Self::named(path), extension::of(path)) {
            (Some(format), _) => Ok(format),
            (None, None) => Ok(default),
            (None, Some(_)) => Err(extension::unsupported(
                path,
                "`.npy`, `.csv`, `.parquet`, `.arrow`, `.arrows` or `.zarr`; --format sets the format",
            )),
        }
    }

    /// The format of a file, by its first bytes, or its extension: npy if both are unknown.
    pub(crate) fn of_input<R: ReadAt + ?Sized>(path: &Path, bytes: Option<&R>) -> Self {
        if path.join("zarr.json").is_file() || path.join(".zarray").is_file() {
            return Self::Zarr;
        }
        match bytes.and_then(foreign::name) {
            Some(foreign::PARQUET) => Self::Parquet,
            Some(foreign::ARROW) => Self::Arrow,
            Some(foreign::NPY) => Self::Npy,
            _ => Self::named(path).unwrap_or(Self::Npy),
        }
    }

    /// The name in messages.
    #[cfg(not(all(feature = "arrow", feature = "zarr")))]
    fn title(self) -> &'static str {
        match self {
            Self::Npy => "npy",
            Self::Csv => "CSV",
            Self::Parquet => "Parquet",
            Self::Arrow | Self::Stream => "Arrow",
            Self::Zarr => "Zarr",
        }
    }

    /// The error of a format that this build does not have.
    #[cfg(not(all(feature = "arrow", feature = "zarr")))]
    pub(crate) fn missing(self, verb: &str, path: &Path) -> anyhow::Error {
        let feature = if self == Self::Zarr { "zarr" } else { "arrow" };
        anyhow::anyhow!(
            "cannot {verb} ({}): this build of the command has no {} files; the feature `{feature}` adds them",
            path.display(),
            self.title()
        )
    }

    /// The same format for record batches.
    #[cfg(feature = "arrow")]
    pub(crate) fn of_batches(self) -> Option<crate::batches::Format> {
        use crate::batches::Format as Batches;
        match self {
            Self::Csv => Some(Batches::Csv),
            Self::Parquet => Some(Batches::Parquet),
            Self::Arrow => Some(Batches::Arrow),
            Self::Stream => Some(Batches::Stream),
            Self::Npy | Self::Zarr => None,
        }
    }
}
