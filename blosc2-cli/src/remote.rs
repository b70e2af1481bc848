//! URLs of files on object stores and HTTP servers.

use std::ffi::OsString;
use std::fmt::Debug;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

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

/// The options of a URL.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct UrlOptions {
    /// Option for a URL, such as `region=eu-west-1`, `endpoint=http://localhost:9000` or `download_limit=1GiB`. Can be
    /// repeated.
    #[arg(long = "storage-option", value_name = "KEY=VALUE", global = true)]
    #[cfg_attr(not(feature = "remote"), arg(hide = true))]
    storage_options: Vec<String>,
}

/// The URLs that contain secrets, with the paths by which the rest of the program knows them.
static SECRETS: Mutex<Vec<(PathBuf, String)>> = Mutex::new(Vec::new());

/// Returns the path for an argument: for a URL with secrets, a path without them, which can appear in messages.
pub(crate) fn hide(argument: OsString) -> PathBuf {
    let path = PathBuf::from(argument);
    let Some(url) = path.to_str().filter(|_| is_url(&path)) else { return path };
    let shown = without_secrets(url);
    if shown == url {
        return path;
    }
    let mut secrets = SECRETS.lock().unwrap_or_else(PoisonError::into_inner);
    let names = (1u64..).map(|number| match number {
        1 => PathBuf::from(&shown),
        _ => PathBuf::from(format!("{shown} ({number})")),
    });
    for name in names {
        match secrets.iter().find(|(other, _)| *other == name) {
            Some((_, other)) if other == url => return name,
            Some(_) => {}
            None => {
                secrets.push((name.clone(), url.to_owned()));
                return name;
            }
        }
    }
    path
}

/// Replaces the URLs in the arguments of the program in a message.
pub(crate) fn hide_arguments(message: String) -> String {
    let arguments = std::env::args_os().filter_map(|argument| argument.into_string().ok());
    let urls = arguments.filter_map(|argument| {
        let start = argument.find("://")?;
        let is_scheme = |each: char| each.is_ascii_alphanumeric();
        let scheme = argument[..start].trim_end_matches(is_scheme).len();
        Some(argument[scheme..].to_owned())
    });
    urls.fold(message, |message, url| message.replace(&url, &without_secrets(&url)))
}

#[cfg(feature = "remote")]
use blosc2_object_store::without_secrets;

/// Returns the scheme of a URL. This build does not need the rest.
#[cfg(not(feature = "remote"))]
fn without_secrets(url: &str) -> String {
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    if url.contains(['?', '#', '@']) { format!("{scheme}://...") } else { url.to_owned() }
}

/// Opens the object of a URL.
#[cfg(feature = "remote")]
pub(crate) fn open(path: &Path, options: &UrlOptions) -> Result<Object> {
    let shown = path.to_str().ok_or_else(|| anyhow!("cannot open a URL that is not UTF-8"))?;
    let secrets = SECRETS.lock().unwrap_or_else(PoisonError::into_inner);
    let secret = secrets.iter().find(|(name, _)| name == path).map(|(_, url)| url.clone());
    drop(secrets);
    let options = options.storage_options.iter().map(|option| {
        option.split_once('=').ok_or_else(|| {
            // It may be a password.
            crate::UsageError("--storage-option expects KEY=VALUE, got no `=`".to_owned()).into()
        })
    });
    let options = options.collect::<Result<Vec<_>>>()?;
    let url = secret.as_deref().unwrap_or(shown);
    let (remote, key) = blosc2_object_store::Remote::from_url(url, options)?;
    let object = remote.object(key).map_err(|error| error.at(path))?;
    Ok(Arc::new(object))
}

/// Fails: this build has no support for URLs.
#[cfg(not(feature = "remote"))]
pub(crate) fn open(path: &Path, options: &UrlOptions) -> Result<Object> {
    let _ = &options.storage_options;
    Err(anyhow!(
        "cannot open ({}): this build does not support URLs: build it with the feature `remote`",
        path.display()
    ))
}

/// Reads an object from its beginning to its end, in large parts.
pub(crate) fn reader(object: Object) -> Box<dyn Read + Send> {
    const PART: usize = 8 << 20;
    Box::new(BufReader::with_capacity(PART, Sequential { object, position: 0 }))
}

struct Sequential {
    object: Object,
    position: u64,
}

impl Read for Sequential {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.object.size()?.saturating_sub(self.position);
        let len = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        self.object.read_exact_at(self.position, &mut buffer[..len])?;
        self.position += len as u64;
        Ok(len)
    }
}
