//! URLs, and the options of object stores.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use blosc2::{Error, ErrorKind, Result};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreScheme, RetryConfig};
use url::Url;

const OPEN: &str = "open a URL";
/// The defaults of the options `max_retries` and `retry_timeout`.
const RETRIES: usize = 6;
const RETRY: Duration = Duration::from_secs(60);

/// Creates the object store of a URL, and returns it with the path of the object.
pub(crate) fn parse(
    text: &str,
    options: Vec<(String, String)>,
) -> Result<(Arc<dyn ObjectStore>, Path)> {
    let failed = |kind, detail: &dyn ToString| Error::new(kind, OPEN, detail.to_string()).at(text);
    let invalid = |detail: &dyn ToString| failed(ErrorKind::InvalidArgument, detail);
    let url = Url::parse(text).map_err(|error| invalid(&error))?;
    if url.query().is_some() {
        return Err(invalid(&"URLs with a query, such as signed URLs, are not supported"));
    }
    if url.fragment().is_some() {
        return Err(invalid(&"URLs with a fragment are not supported: write `%23` instead of `#`"));
    }
    let (scheme, path) = ObjectStoreScheme::parse(&url).map_err(|error| invalid(&error))?;
    let options: Vec<(String, String)> =
        options.into_iter().map(|(key, value)| (key.to_ascii_lowercase(), value)).collect();
    if let Some((key, _)) = options.iter().find(|(key, _)| !is_known(&scheme, key)) {
        return Err(invalid(&format!("the storage option `{key}` is unknown")));
    }
    // Later ones replace earlier ones.
    let environment = std::env::vars_os()
        .filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?)))
        .map(|(key, value)| (key.to_ascii_lowercase(), value))
        .filter(|(key, _)| {
            ["aws_", "azure_", "google_"].iter().any(|start| key.starts_with(start))
        });
    let mut all: Vec<(String, String)> = environment.collect();
    // Whoever writes `http` asks for it.
    let is_endpoint = |key: &str| key.contains("endpoint");
    let is_plain = url.scheme() == "http"
        || options.iter().any(|(key, value)| is_endpoint(key) && value.starts_with("http://"));
    if is_plain {
        all.push(("allow_http".to_owned(), "true".to_owned()));
    }
    let mut retry =
        RetryConfig { max_retries: RETRIES, retry_timeout: RETRY, ..Default::default() };
    for (key, value) in options {
        let wrong = || invalid(&format!("the storage option `{key}` has the value `{value}`"));
        match key.as_str() {
            "max_retries" => retry.max_retries = value.parse().map_err(|_| wrong())?,
            "retry_timeout" => {
                let seconds = value.strip_suffix('s').and_then(|seconds| seconds.parse().ok());
                retry.retry_timeout = Duration::from_secs(seconds.ok_or_else(wrong)?);
            }
            _ => all.push((key, value)),
        }
    }
    let store = store(&scheme, &url, all, retry).map_err(|error| invalid(&error))?;
    Ok((store, path))
}

/// Configures a builder of an object store, and builds the store. Unknown keys are those of the environment.
#[cfg(any(feature = "aws", feature = "azure", feature = "gcp", feature = "http"))]
macro_rules! build {
    ($builder:expr, $options:expr, $retry:expr) => {{
        let known =
            $options.into_iter().filter_map(|(key, value)| Some((key.parse().ok()?, value)));
        let builder = known
            .fold($builder.with_retry($retry), |builder, (key, value): (_, String)| {
                builder.with_config(key, value)
            });
        Ok(Arc::new(builder.build()?))
    }};
}

/// Creates the object store of a URL.
fn store(
    scheme: &ObjectStoreScheme,
    url: &Url,
    options: Vec<(String, String)>,
    retry: RetryConfig,
) -> object_store::Result<Arc<dyn ObjectStore>> {
    // Without features for servers, no store has options.
    let _ = (&options, &retry);
    match scheme {
        #[cfg(feature = "fs")]
        ObjectStoreScheme::Local => Ok(Arc::new(object_store::local::LocalFileSystem::new())),
        #[cfg(feature = "aws")]
        ObjectStoreScheme::AmazonS3 => {
            build!(object_store::aws::AmazonS3Builder::new().with_url(url.as_str()), options, retry)
        }
        #[cfg(feature = "azure")]
        ObjectStoreScheme::MicrosoftAzure => {
            let builder = object_store::azure::MicrosoftAzureBuilder::new();
            build!(builder.with_url(url.as_str()), options, retry)
        }
        #[cfg(feature = "gcp")]
        ObjectStoreScheme::GoogleCloudStorage => {
            let builder = object_store::gcp::GoogleCloudStorageBuilder::new();
            build!(builder.with_url(url.as_str()), options, retry)
        }
        #[cfg(feature = "http")]
        ObjectStoreScheme::Http => {
            let builder = object_store::http::HttpBuilder::new();
            build!(builder.with_url(&url[..url::Position::BeforePath]), options, retry)
        }
        _ => {
            let detail = format!("this build does not support `{}:`", url.scheme());
            Err(object_store::Error::NotSupported { source: detail.into() })
        }
    }
}

/// Whether a store of this scheme has an option.
fn is_known(scheme: &ObjectStoreScheme, key: &str) -> bool {
    let is_of_store = match scheme {
        #[cfg(feature = "aws")]
        ObjectStoreScheme::AmazonS3 => object_store::aws::AmazonS3ConfigKey::from_str(key).is_ok(),
        #[cfg(feature = "azure")]
        ObjectStoreScheme::MicrosoftAzure => {
            object_store::azure::AzureConfigKey::from_str(key).is_ok()
        }
        #[cfg(feature = "gcp")]
        ObjectStoreScheme::GoogleCloudStorage => {
            object_store::gcp::GoogleConfigKey::from_str(key).is_ok()
        }
        ObjectStoreScheme::Http => object_store::ClientConfigKey::from_str(key).is_ok(),
        _ => return false,
    };
    is_of_store || matches!(key, "max_retries" | "retry_timeout")
}
