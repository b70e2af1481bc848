//! The formats of output files, by their extensions.

use std::path::Path;

use anyhow::Result;

use crate::{UsageError, stdin};

/// Extensions of formats that no command writes with the name of a Blosc2 file.
const OTHERS: [&str; 19] = [
    "arrow", "csv", "gif", "h5", "hdf5", "jpeg", "jpg", "json", "mat", "nc", "npy", "npz",
    "parquet", "png", "svg", "tif", "tiff", "tsv", "zarr",
];

/// The extension in lower case; `None` for stdout and names without an extension.
pub(crate) fn of(path: &Path) -> Option<String> {
    let extension = path.extension().filter(|_| !stdin::is_named(path))?;
    Some(extension.to_string_lossy().to_lowercase())
}

/// The error of an extension whose format the command does not write. `expected` lists those that it writes.
pub(crate) fn unsupported(path: &Path, expected: &str) -> anyhow::Error {
    let extension = of(path).unwrap_or_default();
    let path = path.display();
    let message = format!("cannot write `.{extension}` files ({path}): expected {expected}");
    UsageError(message).into()
}

/// Fails if the file has an extension other than `expected`. Names without an extension are allowed.
pub(crate) fn check(path: &Path, expected: &str) -> Result<()> {
    match of(path) {
        Some(extension) if extension != expected => {
            Err(unsupported(path, &format!("`.{expected}`")))
        }
        _ => Ok(()),
    }
}

/// Fails if a Blosc2 file would have the extension of another format. Other names are allowed.
pub(crate) fn check_blosc2(path: &Path) -> Result<()> {
    match of(path) {
        Some(extension) if OTHERS.contains(&extension.as_str()) => {
            Err(unsupported(path, "a name for a Blosc2 file, such as `.b2nd`"))
        }
        _ => Ok(()),
    }
}
