//! `blosc2 view --web`: serves one file and the page that shows it to the browser of this machine.

use std::path::Path;

use anyhow::{Result, anyhow};

use crate::{remote, stdin};

/// The options of `--web`.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct WebOptions {
    /// Show the file in the browser, until Ctrl-C. Nothing is sent to other machines.
    #[arg(long, conflicts_with_all = CONFLICTS)]
    #[cfg_attr(not(feature = "web"), arg(hide = true))]
    web: bool,
    /// Port of `--web` on this machine [default: a free port].
    #[arg(long, requires = "web")]
    #[cfg_attr(not(feature = "web"), arg(hide = true))]
    port: Option<u16>,
    /// With `--web`, print the address without opening the browser.
    #[arg(long, requires = "web")]
    #[cfg_attr(not(feature = "web"), arg(hide = true))]
    no_open: bool,
}

/// The options of `view` that have no meaning in the browser.
const CONFLICTS: [&str; 9] =
    ["slice", "field", "dtype", "output", "range", "json", "key", "offset", "locking"];

impl WebOptions {
    /// Whether the file is shown in the browser.
    pub(crate) fn is_set(self) -> bool {
        self.web
    }
}

/// Fails unless the page can open the path: it reads single files.
fn check(path: &Path) -> Result<()> {
    let shown = path.display();
    if remote::is_url(path) {
        return Err(anyhow!(
            "cannot serve ({shown}): `--web` serves local files; the page opens an address itself"
        ));
    }
    if stdin::is_pipe(path) {
        return Err(anyhow!(
            "cannot serve ({shown}): `--web` needs a file that can be read at any position, found a pipe"
        ));
    }
    let found = std::fs::metadata(path).map_err(|error| crate::foreign::unopened(path, &error))?;
    if found.is_dir() {
        return Err(anyhow!(
            "cannot serve ({shown}): `--web` needs a single file, found a directory; `blosc2 copy` writes a sparse \
             frame to a single file, and a store to a zip file (`.b2z`)"
        ));
    }
    if !found.is_file() {
        return Err(anyhow!("cannot serve ({shown}): `--web` needs a regular file"));
    }
    // That it can be opened is part of the check.
    std::fs::File::open(path).map_err(|error| crate::foreign::unopened(path, &error))?;
    Ok(())
}

/// Fails: this build has no page.
#[cfg(not(feature = "web"))]
pub(crate) fn serve(path: &Path, options: WebOptions) -> Result<()> {
    let WebOptions { port: _, no_open: _, .. } = options;
    check(path)?;
    Err(anyhow!(
        "cannot serve ({}): this build has no viewer for the browser: build it with the feature `web`",
        path.display()
    ))
}

#[cfg(feature = "web")]
pub(crate) use server::serve;

#[cfg(feature = "web")]
mod server {
    use std::io::{self, Write};
    use std::net::Ipv4Addr;
    use std::path::Path;
    use std::sync::Arc;

    use anyhow::{Result, anyhow};
    use axum::Router;
    use axum::body::Body;
    use axum::extract::{Request, State};
    use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
    use axum::http::{Method, StatusCode};
    use axum::response::{IntoResponse, Response};
    use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
    use tokio::net::TcpListener;
    use tower_http::services::ServeFile;

    use super::{WebOptions, check};

    /// The files of the page, and its content security policy.
    mod page {
        include!(concat!(env!("OUT_DIR"), "/page.rs"));
    }

    /// The characters that are encoded in a part of an address.
    const ENCODED: &AsciiSet =
        &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

    /// What is served, and to whom.
    struct Site {
        /// The values of the header `Host`. Another one is that of a site which has changed its own address to this machine
        /// (DNS rebinding).
        hosts: [String; 2],
        /// The start of all paths. Other programs and sites do not know it.
        prefix: String,
        name: String,
        file: ServeFile,
    }

    /// Serves the file until the process ends.
    pub(crate) fn serve(path: &Path, options: WebOptions) -> Result<()> {
        check(path)?;
        let failed =
            |error: &dyn std::fmt::Display| anyhow!("cannot serve ({}): {error}", path.display());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
        let runtime = runtime.map_err(|error| failed(&error))?;
        let mut token = [0; 16];
        getrandom::fill(&mut token).map_err(|error| failed(&error))?;
        let token: String = token.iter().map(|byte| format!("{byte:02x}")).collect();
        runtime.block_on(async {
            let port = options.port.unwrap_or(0);
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await;
            let listener =
                listener.map_err(|error| failed(&format_args!("port {port}: {error}")))?;
            let port = listener.local_addr().map_err(|error| failed(&error))?.port();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            // The page decodes its query, and then the path in it.
            let encoded = utf8_percent_encode(&name, ENCODED).to_string();
            let encoded = utf8_percent_encode(&encoded, ENCODED);
            let address = format!("http://127.0.0.1:{port}/{token}/?url=file/{encoded}");
            let site = Site {
                hosts: [format!("127.0.0.1:{port}"), format!("localhost:{port}")],
                prefix: format!("/{token}/"),
                name,
                file: ServeFile::new(path),
            };
            let mut out = io::stdout();
            writeln!(out, "{address}")?;
            out.flush()?;
            if !options.no_open
                && let Err(error) = open::that_detached(&address)
            {
                crate::complain(&format!(
                    "warning: cannot open the browser: {error}; open the printed address in it"
                ));
            }
            let router = Router::new().fallback(answer).with_state(Arc::new(site));
            axum::serve(listener, router).await.map_err(|error| failed(&error))
        })
    }

    /// Answers a request, with headers that protect the page and the file from other sites.
    async fn answer(State(site): State<Arc<Site>>, request: Request) -> Response {
        let mut response = match find(&site, &request) {
            Ok(Found::Page(name, bytes)) => {
                ([(header::CONTENT_TYPE, mime(name))], bytes).into_response()
            }
            Ok(Found::File) => file(&site, request).await,
            Err(status) => status.into_response(),
        };
        let headers = response.headers_mut();
        let policy = format!("{}; frame-ancestors 'none'", page::POLICY);
        let mut set = |name: HeaderName, value: &str| {
            HeaderValue::from_str(value).map(|value| headers.insert(name, value))
        };
        let done = set(header::CONTENT_SECURITY_POLICY, &policy)
            .and(set(header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
            .and(set(header::CACHE_CONTROL, "no-store"))
            .and(set(header::REFERRER_POLICY, "no-referrer"))
            .and(set(HeaderName::from_static("cross-origin-resource-policy"), "same-origin"));
        match done {
            Ok(_) => response,
            Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        }
    }

    enum Found {
        Page(&'static str, &'static [u8]),
        File,
    }

    /// Returns what a request asks for, or the status of its refusal.
    fn find(site: &Site, request: &Request) -> Result<Found, StatusCode> {
        if !is_from_here(site, request.headers()) {
            return Err(StatusCode::FORBIDDEN);
        }
        let path = request.uri().path().strip_prefix(&site.prefix).ok_or(StatusCode::NOT_FOUND)?;
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return Err(StatusCode::METHOD_NOT_ALLOWED);
        }
        if let Some(name) = path.strip_prefix("file/") {
            let is_it = percent_decode_str(name).decode_utf8().is_ok_and(|name| name == site.name);
            return if is_it { Ok(Found::File) } else { Err(StatusCode::NOT_FOUND) };
        }
        let wanted = if path.is_empty() { "index.html" } else { path };
        let file = page::FILES.iter().find(|(name, _)| *name == wanted);
        file.map(|(name, bytes)| Found::Page(name, bytes)).ok_or(StatusCode::NOT_FOUND)
    }

    /// Whether the only header `Host` names this server.
    fn is_from_here(site: &Site, headers: &HeaderMap) -> bool {
        let mut hosts = headers.get_all(header::HOST).iter();
        let is_known = |host: &HeaderValue| site.hosts.iter().any(|known| known.as_bytes() == host);
        hosts.next().is_some_and(is_known) && hosts.next().is_none()
    }

    /// Reads the file at its path, as it is now. The header `ETag` changes with the size and the time of the file.
    async fn file(site: &Site, request: Request) -> Response {
        let mut response = match site.file.clone().try_call(request).await {
            Ok(response) => response.map(Body::new),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return StatusCode::NOT_FOUND.into_response();
            }
            Err(_) => return StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        };
        // Whatever its name is, it is never a document or a script of the page.
        let bytes = HeaderValue::from_static("application/octet-stream");
        response.headers_mut().insert(header::CONTENT_TYPE, bytes);
        response
    }

    /// The media type of a file of the page.
    fn mime(name: &str) -> &'static str {
        match name.rsplit_once('.').map_or("", |(_, extension)| extension) {
            "html" => "text/html; charset=utf-8",
            "css" => "text/css; charset=utf-8",
            "js" => "text/javascript; charset=utf-8",
            "svg" => "image/svg+xml",
            "wasm" => "application/wasm",
            _ => "application/octet-stream",
        }
    }
}
