//! The HTTP client with the settings of an object store.
//!
//! The client of the crate `object_store` has the same settings, but sends the header `Referer` after a redirect. Its
//! value would be the URL with its query, which can contain secrets.

use std::hash::{BuildHasher, RandomState};
use std::net::ToSocketAddrs;
use std::str::FromStr;
use std::time::Duration;

use object_store::client::HttpClient;
use object_store::{ClientConfigKey as Key, ClientOptions, Error, Result};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::tls::Certificate;
use reqwest::{ClientBuilder, NoProxy, Proxy};

/// Creates the client.
pub(crate) fn connect(options: &ClientOptions) -> Result<HttpClient> {
    let settings = Settings(options);
    let agent = concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION"));
    let mut builder = ClientBuilder::new()
        .referer(false)
        .user_agent(settings.text(Key::UserAgent).unwrap_or_else(|| agent.to_owned()))
        // Ranges and sizes are those of the stored bytes.
        .no_gzip()
        .no_brotli()
        .no_zstd()
        .no_deflate()
        .https_only(!settings.flag(Key::AllowHttp)?)
        .danger_accept_invalid_certs(settings.flag(Key::AllowInvalidCertificates)?)
        .http2_keep_alive_while_idle(settings.flag(Key::Http2KeepAliveWhileIdle)?)
        .http2_keep_alive_interval(settings.duration(Key::Http2KeepAliveInterval)?)
        .http2_max_frame_size(settings.number(Key::Http2MaxFrameSize)?);
    if let Some(headers) = options.get_default_headers() {
        builder = builder.default_headers(headers.clone());
    }
    if let Some(url) = settings.text(Key::ProxyUrl) {
        let mut proxy = Proxy::all(url).map_err(failed)?;
        if let Some(certificate) = settings.text(Key::ProxyCaCertificate) {
            let certificate = Certificate::from_pem(certificate.as_bytes()).map_err(failed)?;
            builder = builder.tls_certs_merge([certificate]);
        }
        if let Some(excludes) = settings.text(Key::ProxyExcludes) {
            proxy = proxy.no_proxy(NoProxy::from_string(&excludes));
        }
        builder = builder.proxy(proxy);
    }
    if settings.flag(Key::NoSystemCertificates)? {
        builder = builder.tls_certs_only([]);
    }
    if let Some(timeout) = settings.duration(Key::Timeout)? {
        builder = builder.timeout(timeout);
    }
    if let Some(timeout) = settings.duration(Key::ConnectTimeout)? {
        builder = builder.connect_timeout(timeout);
    }
    if let Some(timeout) = settings.duration(Key::ReadTimeout)? {
        builder = builder.read_timeout(timeout);
    }
    if let Some(timeout) = settings.duration(Key::PoolIdleTimeout)? {
        builder = builder.pool_idle_timeout(timeout);
    }
    if let Some(most) = settings.number(Key::PoolMaxIdlePerHost)? {
        builder = builder.pool_max_idle_per_host(most);
    }
    if let Some(timeout) = settings.duration(Key::Http2KeepAliveTimeout)? {
        builder = builder.http2_keep_alive_timeout(timeout);
    }
    if settings.flag(Key::Http1Only)? {
        builder = builder.http1_only();
    }
    if settings.flag(Key::Http2Only)? {
        builder = builder.http2_prior_knowledge();
    }
    if settings.flag(Key::RandomizeAddresses)? {
        builder = builder.dns_resolver(Shuffled);
    }
    Ok(HttpClient::new(builder.build().map_err(failed)?))
}

/// The settings as text.
struct Settings<'a>(&'a ClientOptions);

impl Settings<'_> {
    fn text(&self, key: Key) -> Option<String> {
        self.0.get_config_value(&key)
    }

    fn parsed<T>(&self, key: Key, parse: impl Fn(&str) -> Option<T>) -> Result<Option<T>> {
        let Some(text) = self.text(key) else { return Ok(None) };
        let invalid = || failed(format!("the option `{}` has the value `{text}`", key.as_ref()));
        parse(&text).map(Some).ok_or_else(invalid)
    }

    fn flag(&self, key: Key) -> Result<bool> {
        let parse = |text: &str| match text.to_ascii_lowercase().as_str() {
            "1" | "true" | "on" | "yes" | "y" => Some(true),
            "0" | "false" | "off" | "no" | "n" => Some(false),
            _ => None,
        };
        Ok(self.parsed(key, parse)?.unwrap_or_default())
    }

    fn duration(&self, key: Key) -> Result<Option<Duration>> {
        self.parsed(key, |text| humantime::parse_duration(text).ok())
    }

    fn number<T: FromStr>(&self, key: Key) -> Result<Option<T>> {
        self.parsed(key, |text| text.parse().ok())
    }
}

/// Resolves the names of hosts. The addresses are in random order, which distributes the requests of many programs over
/// the servers.
struct Shuffled;

impl Resolve for Shuffled {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            // The client replaces the port.
            let resolve = move || (name.as_str(), 0).to_socket_addrs();
            let mut addresses: Vec<_> = tokio::task::spawn_blocking(resolve).await??.collect();
            let random = RandomState::new();
            addresses.sort_by_cached_key(|address| random.hash_one(address));
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

fn failed(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Generic { store: "HTTP client", source: source.into() }
}
