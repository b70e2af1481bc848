//! URLs of files on object stores and HTTP servers.

use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, anyhow};
use blosc2::storage::ReadAt;

/// The bytes of a file or an object.
pub(crate) trait Bytes: ReadAt + Debug + Send + Sync {}

impl<T: ReadAt + Debug + Send + Sync> Bytes for T {}

/// An opened file or object.
pub(crate) type Object = Arc<dyn Bytes>;

/// Whether a path is a URL. A file of such a name is `./name`.
pub(crate) fn is_url(path: &Path) -> bool {
    path.to_str().and_then(|text| text.split_once("://")).is_some_and(|(scheme, _)| {
        !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

/// Opens the object of a URL with options of the form `key=value`.
#[cfg(feature = "remote")]
pub(crate) fn open(url: &Path, options: &[String]) -> Result<Object> {
    let url = url.to_str().ok_or_else(|| anyhow!("cannot open a URL that is not UTF-8"))?;
    let options = options.iter().map(|option| {
        option.split_once('=').ok_or_else(|| {
            let detail = format!("--storage-option expects KEY=VALUE, got `{option}`");
            crate::UsageError(detail).into()
        })
    });
    let options = options.collect::<Result<Vec<_>>>()?;
    let (remote, path) = blosc2_object_store::Remote::from_url(url, options)?;
    let object = remote.object(path).map_err(|error| error.at(url))?;
    Ok(Arc::new(object))
}

/// Fails: this build has no support for URLs.
#[cfg(not(feature = "remote"))]
pub(crate) fn open(url: &Path, _: &[String]) -> Result<Object> {
    Err(anyhow!(
        "cannot open ({}): this build does not support URLs: build it with the feature `remote`",
        url.display()
    ))
}
