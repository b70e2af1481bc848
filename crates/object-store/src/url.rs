//! URLs, and the options of object stores.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use blosc2::{Error, ErrorKind, Result};
use blosc2_store::without_secrets;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreScheme, RetryConfig};
use url::Url;
#[cfg(any(feature = "aws", feature = "azure", feature = "gcp", feature = "http"))]
use {
    crate::http::{Connector, Site},
    base64::{Engine, prelude::BASE64_STANDARD},
    http::HeaderValue,
    percent_encoding::percent_decode_str,
};

const OPEN: &str = "open a URL";
/// The defaults of the options `max_retries` and `retry_timeout`.
const RETRIES: usize = 6;
const RETRY: Duration = Duration::from_secs(60);
/// The default of the option `download_limit`.
const DOWNLOAD_LIMIT: u64 = 64 << 20;

/// The parts of a parsed URL.
pub(crate) struct Parsed {
    pub(crate) store: Arc<dyn ObjectStore>,
    /// The path of the object.
    pub(crate) path: Path,
    /// What distinguishes the object store from all others. It can contain secrets.
    pub(crate) identity: String,
}

/// Creates the object store of a URL.
pub(crate) fn parse(text: &str, options: Vec<(String, String)>) -> Result<Parsed> {
    let invalid = |detail: &dyn ToString| {
        let error = Error::new(ErrorKind::InvalidArgument, OPEN, detail.to_string());
        error.at(shown(text))
    };
    let mut url = Url::parse(text).map_err(|error| invalid(&error))?;
    if url.fragment().is_some() {
        return Err(invalid(&"URLs with a fragment are not supported: write `%23` instead of `#`"));
    }
    let is_web = matches!(url.scheme(), "http" | "https");
    let is_private = url.query().is_some() || has_user(&url);
    if url.query().is_some() && !is_web {
        return Err(invalid(&"only `http://` and `https://` URLs can have a query"));
    }
    let given = url.clone();
    if is_web {
        // They are secrets: the object store shows its URL in messages.
        url.set_query(None);
        let removed = url.set_password(None).and_then(|()| url.set_username(""));
        removed.map_err(|()| invalid(&"it has no host"))?;
    }
    let path = Path::from_url_path(url.path()).map_err(|error| invalid(&error))?;
    let (scheme, path) = match is_web && is_private {
        // It is complete: no service has to sign it.
        true => (ObjectStoreScheme::Http, path),
        false => ObjectStoreScheme::parse(&url).map_err(|_| match text.contains("://") {
            true => invalid(&format!("`{}:` URLs are not supported", url.scheme())),
            // What precedes the colon can be a user name.
            false => invalid(&"it has no scheme such as `s3://`"),
        })?,
    };
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
    let mut download_limit = DOWNLOAD_LIMIT;
    for (key, value) in options {
        let wrong = || invalid(&format!("the storage option `{key}` has the value `{value}`"));
        match key.as_str() {
            "download_limit" => download_limit = size(&value).ok_or_else(wrong)?,
            "max_retries" => retry.max_retries = value.parse().map_err(|_| wrong())?,
            "retry_timeout" => {
                let seconds = value.strip_suffix('s').and_then(|seconds| seconds.parse().ok());
                retry.retry_timeout = Duration::from_secs(seconds.ok_or_else(wrong)?);
            }
            _ => all.push((key, value)),
        }
    }
    let place = Place { scheme, url, given, path, download_limit };
    let identity = place.identity(&all);
    let store = store(&place, all, retry).map_err(|error| invalid(&error))?;
    Ok(Parsed { store, path: place.path, identity })
}

/// Returns a text that should be a URL, for messages.
pub(crate) fn shown(text: &str) -> String {
    match without_secrets(text) {
        // It has no scheme.
        unchanged
            if unchanged == text && !text.contains("://") && text.contains(['@', '?', '#']) =>
        {
            "...".to_owned()
        }
        shown => shown,
    }
}

fn has_user(url: &Url) -> bool {
    !url.username().is_empty() || url.password().is_some()
}

/// Parses a number of bytes, such as `1000`, `64MiB` or `2GiB`.
fn size(text: &str) -> Option<u64> {
    let units = [("KiB", 10), ("MiB", 20), ("GiB", 30), ("", 0)];
    let (number, shift) =
        units.iter().find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, shift)))?;
    number.trim_end().parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// A parsed URL.
struct Place {
    scheme: ObjectStoreScheme,
    /// Without secrets.
    url: Url,
    /// As it was given.
    given: Url,
    path: Path,
    /// The value of the option `download_limit`.
    download_limit: u64,
}

impl Place {
    /// What distinguishes the object store from all others: the kind of client, because the same server sends the
    /// stored bytes to one client and the decoded ones to another; the URL without the path of the object and without
    /// what changes if the access is renewed; and the options that select the server, the bucket and the account.
    fn identity(&self, options: &[(String, String)]) -> String {
        const SELECTING: [&str; 14] = [
            "aws_bucket",
            "aws_default_region",
            "aws_endpoint",
            "aws_endpoint_url_s3",
            "aws_region",
            "aws_s3_express",
            "aws_virtual_hosted_style_request",
            "azure_container_name",
            "azure_storage_account_name",
            "azure_storage_endpoint",
            "azure_storage_use_emulator",
            "azure_use_fabric_endpoint",
            "google_base_url",
            "google_bucket",
        ];
        let whole = Path::from_url_path(self.url.path()).unwrap_or_default();
        let bucket = whole.as_ref().strip_suffix(self.path.as_ref()).unwrap_or(whole.as_ref());
        let query = unsigned(&self.given);
        // The last value of each, in a fixed order: that of the environment is not fixed.
        let options: BTreeMap<String, &str> = options
            .iter()
            .filter_map(|(key, value)| Some((canonical(&self.scheme, key)?, value.as_str())))
            .filter(|(key, _)| SELECTING.contains(&key.as_str()))
            .collect();
        let base = &self.url[..url::Position::BeforePath];
        let Self { scheme, given, .. } = self;
        format!("{scheme:?} {base} {bucket:?} {:?} {query:?} {options:?}", given.username())
    }
}

/// Returns the query of a URL without a signature of Amazon, Google or Azure, which differs for each user and each day.
fn unsigned(url: &Url) -> Vec<(String, String)> {
    /// A parameter that only signatures have, and the other ones that they have.
    const SIGNATURES: [(&str, &[&str]); 2] = [
        ("signature", &["awsaccesskeyid", "expires", "googleaccessid", "key-pair-id", "policy"]),
        (
            "sig",
            &[
                "saoid", "scid", "sdd", "sduoid", "se", "ses", "si", "sip", "skdutid", "ske",
                "skoid", "sks", "skt", "sktid", "skv", "sp", "spr", "sr", "srt", "ss", "st",
                "suoid", "sv",
            ],
        ),
    ];
    let mut query: Vec<(String, String)> = url.query_pairs().into_owned().collect();
    let lower = |name: &str| name.to_ascii_lowercase();
    let marks =
        SIGNATURES.iter().filter(|(mark, _)| query.iter().any(|(name, _)| lower(name) == *mark));
    let marks: Vec<_> = marks.collect();
    query.retain(|(name, _)| {
        let name = lower(name);
        let is_part = marks.iter().any(|(mark, others)| name == *mark || others.contains(&&*name));
        !is_part && !["x-amz-", "x-goog-"].iter().any(|start| name.starts_with(start))
    });
    query
}

#[cfg(any(feature = "aws", feature = "azure", feature = "gcp", feature = "http"))]
impl Place {
    fn connector(&self) -> Connector {
        let site = (self.scheme == ObjectStoreScheme::Http).then(|| self.site());
        Connector { site, download_limit: self.download_limit }
    }

    fn site(&self) -> Site {
        // As the object store builds it.
        let mut built = self.url.clone();
        built.set_path("");
        if let Ok(mut segments) = built.path_segments_mut() {
            segments.extend(self.path.parts());
        }
        let mut given = self.given.clone();
        // A URL with a host can be without both.
        let _ = given.set_password(None).and_then(|()| given.set_username(""));
        let object = built.as_str().parse().ok().zip(given.as_str().parse().ok());
        let authorization = has_user(&self.given).then(|| {
            let part = |text| percent_decode_str(text).collect::<Vec<u8>>();
            let (name, password) = (self.given.username(), self.given.password());
            let pair = [&part(name)[..], b":", &part(password.unwrap_or_default())].concat();
            let value = format!("Basic {}", BASE64_STANDARD.encode(pair));
            // Base64 is valid in a header.
            let mut value = HeaderValue::try_from(value).ok()?;
            value.set_sensitive(true);
            Some(value)
        });
        let query = self.given.query().map(str::to_owned);
        Site { object, query, authorization: authorization.flatten() }
    }
}

/// Configures a builder of an object store, and builds the store. Unknown keys are those of the environment.
#[cfg(any(feature = "aws", feature = "azure", feature = "gcp", feature = "http"))]
macro_rules! build {
    ($builder:expr, $place:expr, $options:expr, $retry:expr) => {{
        let known =
            $options.into_iter().filter_map(|(key, value)| Some((key.parse().ok()?, value)));
        let builder = $builder.with_retry($retry).with_http_connector($place.connector());
        let builder = known
            .fold(builder, |builder, (key, value): (_, String)| builder.with_config(key, value));
        Ok(Arc::new(builder.build()?))
    }};
}

/// Creates the object store of a URL.
fn store(
    place: &Place,
    options: Vec<(String, String)>,
    retry: RetryConfig,
) -> object_store::Result<Arc<dyn ObjectStore>> {
    // Without features for servers, no store has options.
    let _ = (&options, &retry, &place.given, &place.download_limit);
    let url = &place.url;
    match &place.scheme {
        #[cfg(feature = "fs")]
        ObjectStoreScheme::Local => Ok(Arc::new(object_store::local::LocalFileSystem::new())),
        #[cfg(feature = "aws")]
        ObjectStoreScheme::AmazonS3 => {
            let builder = object_store::aws::AmazonS3Builder::new();
            build!(builder.with_url(url.as_str()), place, options, retry)
        }
        #[cfg(feature = "azure")]
        ObjectStoreScheme::MicrosoftAzure => {
            let builder = object_store::azure::MicrosoftAzureBuilder::new();
            build!(builder.with_url(url.as_str()), place, options, retry)
        }
        #[cfg(feature = "gcp")]
        ObjectStoreScheme::GoogleCloudStorage => {
            let builder = object_store::gcp::GoogleCloudStorageBuilder::new();
            build!(builder.with_url(url.as_str()), place, options, retry)
        }
        #[cfg(feature = "http")]
        ObjectStoreScheme::Http => {
            let builder = object_store::http::HttpBuilder::new();
            build!(builder.with_url(&url[..url::Position::BeforePath]), place, options, retry)
        }
        _ => {
            let detail = format!("this build does not support `{}:`", url.scheme());
            Err(object_store::Error::NotSupported { source: detail.into() })
        }
    }
}

/// Whether a store of this scheme has an option.
fn is_known(scheme: &ObjectStoreScheme, key: &str) -> bool {
    let is_own = matches!(key, "download_limit" | "max_retries" | "retry_timeout");
    match scheme {
        ObjectStoreScheme::Local | ObjectStoreScheme::Memory => false,
        _ => is_own || canonical(scheme, key).is_some(),
    }
}

/// Returns the name of an option of a store of this scheme. Many options have several names.
fn canonical(scheme: &ObjectStoreScheme, key: &str) -> Option<String> {
    fn name<K: FromStr + AsRef<str>>(key: &str) -> Option<String> {
        K::from_str(key).ok().map(|key| key.as_ref().to_owned())
    }
    match scheme {
        #[cfg(feature = "aws")]
        ObjectStoreScheme::AmazonS3 => name::<object_store::aws::AmazonS3ConfigKey>(key),
        #[cfg(feature = "azure")]
        ObjectStoreScheme::MicrosoftAzure => name::<object_store::azure::AzureConfigKey>(key),
        #[cfg(feature = "gcp")]
        ObjectStoreScheme::GoogleCloudStorage => name::<object_store::gcp::GoogleConfigKey>(key),
        ObjectStoreScheme::Http => name::<object_store::ClientConfigKey>(key),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #[cfg(any(feature = "aws", feature = "gcp", feature = "http"))]
    use super::*;

    #[cfg(any(feature = "aws", feature = "gcp", feature = "http"))]
    fn identity(url: &str, options: &[(&str, &str)]) -> String {
        let options = options.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        parse(url, options.collect()).unwrap().identity
    }

    /// The protocol of S3 returns the stored bytes; plain HTTP decodes `Content-Encoding`.
    #[cfg(all(feature = "aws", feature = "http"))]
    #[test]
    fn clients_have_different_identities() {
        let url = "https://bucket.s3.eu-west-1.amazonaws.com/a/b";
        let signed = format!("{url}?X-Amz-Signature=1&X-Amz-Date=2");
        assert_ne!(identity(url, &[]), identity(&signed, &[]));
        let renewed = format!("{url}?X-Amz-Signature=3&X-Amz-Date=4");
        assert_eq!(identity(&signed, &[]), identity(&renewed, &[]));
    }

    /// Whatever is renewed for each user, process or day is not part of the identity.
    #[cfg(feature = "aws")]
    #[test]
    fn options_that_select_the_server_are_part_of_the_identity() {
        let of = |options: &[_]| identity("s3://bucket/a", options);
        let one = ("endpoint", "http://one");
        assert_ne!(of(&[one]), of(&[]));
        assert_ne!(of(&[one]), of(&[("endpoint", "http://two")]));
        assert_ne!(of(&[("region", "eu-west-1")]), of(&[("region", "cn-north-1")]));
        assert_eq!(of(&[one, ("region", "a")]), of(&[("region", "a"), one]));
        // Other names of the same option. The last value counts.
        assert_eq!(of(&[one]), of(&[("aws_endpoint_url", "http://one")]));
        assert_eq!(of(&[("endpoint", "http://two"), one]), of(&[one]));
        assert_ne!(of(&[("endpoint", "http://two"), one]), of(&[one, ("endpoint", "http://two")]));
        for key in [
            "container_credentials_relative_uri",
            "container_credentials_full_uri",
            "container_authorization_token_file",
            "endpoint_url_sts",
            "metadata_endpoint",
            "session_token",
            "timeout",
        ] {
            assert_eq!(of(&[one, (key, "5s")]), of(&[one]), "{key}");
        }
    }

    #[cfg(feature = "gcp")]
    #[test]
    fn the_base_url_is_part_of_the_identity() {
        let of = |url| {
            identity(
                "gs://bucket/a",
                &[("google_base_url", url), ("google_skip_signature", "true")],
            )
        };
        assert_ne!(of("http://one"), of("http://two"));
    }

    #[cfg(feature = "http")]
    #[test]
    fn signatures_of_azure_are_not_part_of_the_identity() {
        let signed = |query| identity(&format!("https://host/a?{query}"), &[]);
        assert_eq!(signed("sig=1&scid=2&saoid=3&suoid=4&ses=5&ss=6&srt=7"), signed("sig=2"));
        assert_ne!(signed("sig=1&snapshot=2"), signed("sig=1"));
        // Without a signature they are no parts of one.
        assert_ne!(signed("ses=5"), signed("ses=6"));
    }
}
