//! The HTTP client of the object stores.
//!
//! It accepts what the crate `object_store` refuses, although many servers do it: whole objects in response to range
//! requests, encoded objects, and URLs with a query.

use std::fmt;
use std::io::Read;
use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use futures::StreamExt;
use http::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, DATE, ETAG,
    RANGE, TRANSFER_ENCODING,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use http_body_util::BodyExt;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpResponseBody, HttpService,
};
use object_store::{ClientOptions, Result};
use tokio::sync::Mutex;

use crate::client;
use crate::fault::{Fault, cause, summary};
use crate::object::{Sent, Whole};

/// The maximum number of bytes that are read of the body of an error.
const ERROR_BODY: usize = 4 << 10;

/// What requests to an HTTP server have in addition to those of the crate `object_store`. It can contain secrets.
#[derive(Clone, Default)]
pub(crate) struct Site {
    /// The URL of the object that was opened: as `object_store` writes it, and as it was given.
    pub(crate) object: Option<(Uri, Uri)>,
    /// The query of all other URLs.
    pub(crate) query: Option<String>,
    /// The header with the user name and the password of the URL.
    pub(crate) authorization: Option<HeaderValue>,
}

/// Creates the HTTP client of an object store.
#[derive(Clone)]
pub(crate) struct Connector {
    /// `None` for the services S3, Azure and Google Cloud Storage, whose requests are signed.
    pub(crate) site: Option<Site>,
    /// The maximum size of an object that is downloaded completely because of its server, in bytes.
    pub(crate) download_limit: u64,
}

impl fmt::Debug for Connector {
    /// Omits the secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").field("download_limit", &self.download_limit).finish()
    }
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> Result<HttpClient> {
        let client = client::connect(options)?;
        let service = Service { client, connector: self.clone(), downloading: Mutex::new(()) };
        Ok(HttpClient::new(service))
    }
}

#[derive(Debug)]
struct Service {
    client: HttpClient,
    connector: Connector,
    /// Held while an object is downloaded completely, which limits the memory.
    downloading: Mutex<()>,
}

#[async_trait]
impl HttpService for Service {
    async fn call(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        // Without a user name and a password, which an endpoint can have.
        let (name, port) = (request.uri().host().unwrap_or_default(), request.uri().port_u16());
        let host = port.map_or(name.to_owned(), |port| format!("{name}:{port}"));
        let range = range_of(&request);
        let Some(site) = &self.connector.site else {
            let response = self.execute(request, &host).await?;
            if !response.status().is_success() {
                return Ok(with_summary(response).await);
            }
            return match range {
                Some(range) => self.check(response, range, &host).await,
                None => Ok(response),
            };
        };
        site.complete(&mut request);
        let is_list = request.method().as_str() == "PROPFIND";
        let Some(range) = range else {
            let response = self.execute(request, &host).await?;
            if is_list && !knows_lists(response.status()) {
                return Err(HttpError::new(HttpErrorKind::Unknown, Fault::Unlisted(host)));
            }
            return Ok(without_error_page(response));
        };
        // Ranges of an encoded object are not ranges of the object.
        request.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let mut response = self.execute(request.clone(), &host).await?;
        let is_refused = response.status() == StatusCode::RANGE_NOT_SATISFIABLE && range.start == 0;
        let is_encoded = response.status() == StatusCode::PARTIAL_CONTENT
            && !encodings(response.headers()).is_empty();
        if is_refused || is_encoded {
            // An empty object has no range. Any other object is complete without a range.
            request.headers_mut().remove(RANGE);
            response = self.execute(request, &host).await?;
        }
        self.check(without_error_page(response), range, &host).await
    }
}

impl Service {
    async fn execute(&self, request: HttpRequest, host: &str) -> Result<HttpResponse, HttpError> {
        let response = self.client.execute(request).await;
        let response = response.map_err(|error| unreachable(&error, host))?;
        let host = host.to_owned();
        Ok(response.map(|body| {
            HttpResponseBody::new(body.map_err(move |error| unreachable(&error, &host)))
        }))
    }

    /// Checks the response to the request of a range. A complete object becomes the range.
    async fn check(
        &self,
        mut response: HttpResponse,
        range: Range<u64>,
        host: &str,
    ) -> Result<HttpResponse, HttpError> {
        let date = response.headers().get(DATE).and_then(|date| date.to_str().ok());
        if let Some(date) = date.and_then(|date| httpdate::parse_http_date(date).ok()) {
            response.extensions_mut().insert(Sent(date));
        }
        match response.status() {
            StatusCode::PARTIAL_CONTENT => {
                let (start, end, size) = content_range(response.headers()).ok_or_else(|| {
                    let found = response.headers().get(CONTENT_RANGE).map(HeaderValue::as_bytes);
                    let found = String::from_utf8_lossy(found.unwrap_or_default());
                    fault(format!(
                        "the server {host} sends part of the object with an invalid header `Content-Range: {found:.100}`"
                    ))
                })?;
                if start != range.start || end != range.end.min(size) {
                    let Range { start: wanted, end: until } = range;
                    return Err(fault(format!(
                        "the server {host} sends bytes {start} to {end} of {size} instead of {wanted} to {until}"
                    )));
                }
                // Without it, the end of the body shows its length.
                let len = HeaderValue::from(end - start);
                response.headers_mut().entry(CONTENT_LENGTH).or_insert(len);
                Ok(response)
            }
            StatusCode::OK => self.download(response, range, host).await,
            StatusCode::RANGE_NOT_SATISFIABLE if range.start > 0 => {
                // The object was longer when it was opened.
                *response.status_mut() = StatusCode::PRECONDITION_FAILED;
                Ok(response)
            }
            _ => Ok(response),
        }
    }

    /// Reads a complete object, and returns the response that the range would have.
    async fn download(
        &self,
        response: HttpResponse,
        range: Range<u64>,
        host: &str,
    ) -> Result<HttpResponse, HttpError> {
        let _one = self.downloading.lock().await;
        let (mut parts, body) = response.into_parts();
        let limit = self.connector.download_limit;
        let encodings = match self.connector.site {
            Some(_) => encodings(&parts.headers),
            None => Vec::new(),
        };
        let what = match encodings.is_empty() {
            true => "ignores the range of the request",
            false => "encodes the object, which has no ranges then",
        };
        let too_long = |len: Option<u64>| {
            let len = len.map(|len| format!(" of {len} bytes")).unwrap_or_default();
            fault(format!(
                "the server {host} {what}, and sends the complete object{len}, which exceeds the limit of {limit} \
                 bytes: download the file and open the copy, or increase the storage option `download_limit`"
            ))
        };
        let stated = parts.headers.get(CONTENT_LENGTH).and_then(|len| len.to_str().ok());
        // A larger number is invalid.
        let stated: Option<u64> = stated.and_then(|len| len.parse().ok());
        if let Some(len) = stated.filter(|&len| len > limit) {
            return Err(too_long(Some(len)));
        }
        let mut content = Vec::new();
        let mut body = body.bytes_stream();
        while let Some(bytes) = body.next().await {
            let bytes = bytes?;
            if bytes.len() as u64 > limit.saturating_sub(content.len() as u64) {
                return Err(too_long(None));
            }
            let room = content.try_reserve(bytes.len());
            room.map_err(|error| fault(format!("cannot hold the object: {error}")))?;
            content.extend_from_slice(&bytes);
        }
        for encoding in encodings.iter().rev() {
            content = decode(&content, encoding, limit).map_err(|detail| match detail {
                Some(detail) => fault(format!(
                    "the server {host} sends the object in the encoding `{encoding:.100}`: {detail}"
                )),
                None => too_long(None),
            })?;
        }
        let headers = &mut parts.headers;
        let size = content.len() as u64;
        if size == 0 && range.start == 0 {
            let e_tag = headers.get(ETAG).and_then(|e_tag| e_tag.to_str().ok()).map(str::to_owned);
            return Err(HttpError::new(HttpErrorKind::Unknown, Fault::Empty(e_tag)));
        }
        let content = Bytes::from(content);
        let part = range.start as usize..range.end.min(size) as usize;
        let body = if range.start < size {
            parts.status = StatusCode::PARTIAL_CONTENT;
            content.slice(part.clone())
        } else {
            // The object was longer when it was opened.
            parts.status = StatusCode::PRECONDITION_FAILED;
            Bytes::new()
        };
        headers.remove(CONTENT_ENCODING);
        headers.remove(TRANSFER_ENCODING);
        headers.insert(CONTENT_LENGTH, body.len().into());
        if let Some(last) = part.end.checked_sub(1)
            && let Ok(value) = format!("bytes {}-{last}/{size}", part.start).parse()
        {
            headers.insert(CONTENT_RANGE, value);
        }
        // The complete object is kept for as long as it is open; the response may be kept for longer than that.
        let body = Bytes::copy_from_slice(&body);
        parts.extensions.insert(Whole(content));
        Ok(HttpResponse::from_parts(parts, body.into()))
    }
}

impl Site {
    /// Completes a request.
    fn complete(&self, request: &mut HttpRequest) {
        if let Some(value) = &self.authorization {
            request.headers_mut().insert(AUTHORIZATION, value.clone());
        }
        let uri = request.uri_mut();
        match &self.object {
            Some((built, given)) if built == uri => *uri = given.clone(),
            _ => {
                if let Some(query) = &self.query
                    && let Ok(full) = format!("{uri}?{query}").parse()
                {
                    *uri = full;
                }
            }
        }
    }
}

/// Whether this status answers the request of a list of files (WebDAV). Most servers have no lists: they refuse the
/// method, or send the page of the directory.
fn knows_lists(status: StatusCode) -> bool {
    match status {
        StatusCode::MULTI_STATUS
        | StatusCode::UNAUTHORIZED
        | StatusCode::NOT_FOUND
        | StatusCode::REQUEST_TIMEOUT
        | StatusCode::TOO_MANY_REQUESTS => true,
        StatusCode::NOT_IMPLEMENTED => false,
        _ => !status.is_success() && !status.is_client_error(),
    }
}

/// Returns the range of the request for a part of an object.
fn range_of(request: &HttpRequest) -> Option<Range<u64>> {
    let range = request.headers().get(RANGE).filter(|_| request.method() == Method::GET)?;
    let (start, last) = range.to_str().ok()?.strip_prefix("bytes=")?.split_once('-')?;
    let (start, last): (u64, u64) = (start.parse().ok()?, last.parse().ok()?);
    (start <= last).then(|| start..last.saturating_add(1))
}

/// Returns the start and the end of the range that a response contains, and the size of the object.
fn content_range(headers: &HeaderMap) -> Option<(u64, u64, u64)> {
    let range = headers.get(CONTENT_RANGE)?.to_str().ok()?.trim();
    let (range, size) = range.strip_prefix("bytes ")?.split_once('/')?;
    let (start, last) = range.split_once('-')?;
    let (start, last, size): (u64, u64, u64) =
        (start.parse().ok()?, last.parse().ok()?, size.parse().ok()?);
    (start <= last && last < size).then(|| (start, last + 1, size))
}

/// Returns the encodings of a body in the order in which they were applied.
fn encodings(headers: &HeaderMap) -> Vec<String> {
    let values = headers.get_all(CONTENT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    let names = values.flat_map(|value| value.split(','));
    let names = names.map(|name| name.trim().to_ascii_lowercase());
    // S3 keeps `aws-chunked` from the upload, although its responses are not encoded.
    names.filter(|name| !matches!(name.as_str(), "" | "identity" | "aws-chunked")).collect()
}

/// Decodes at most `limit` bytes. The error is `None` if there are more.
fn decode(
    bytes: &[u8],
    encoding: &str,
    limit: u64,
) -> std::result::Result<Vec<u8>, Option<String>> {
    if !matches!(encoding, "gzip" | "x-gzip") {
        return Err(Some("only `gzip` is supported: download the file with a browser".to_owned()));
    }
    let mut content = Vec::new();
    let decoded = MultiGzDecoder::new(bytes).take(limit.saturating_add(1));
    let read = { decoded }.read_to_end(&mut content);
    read.map_err(|error| Some(format!("its content is invalid: {error}")))?;
    if content.len() as u64 > limit { Err(None) } else { Ok(content) }
}

/// Removes the body of a response that is an error. It is a page for browsers, and can repeat the secrets of the URL.
fn without_error_page(response: HttpResponse) -> HttpResponse {
    if response.status().is_success() {
        return response;
    }
    let (mut parts, _) = response.into_parts();
    if parts.status == StatusCode::NOT_IMPLEMENTED {
        // Repeating the request is useless, as for most servers if they are asked for a list of files.
        parts.status = StatusCode::METHOD_NOT_ALLOWED;
    }
    HttpResponse::from_parts(parts, HttpResponseBody::from(Bytes::new()))
}

/// Replaces the body of a response that is an error of a service by its [summary].
async fn with_summary(response: HttpResponse) -> HttpResponse {
    let (parts, body) = response.into_parts();
    let (mut start, mut body) = (Vec::new(), body.bytes_stream());
    // The status tells more about the failure than an error while its body is read.
    while start.len() <= ERROR_BODY
        && let Some(Ok(bytes)) = body.next().await
    {
        start.extend_from_slice(&bytes[..bytes.len().min(ERROR_BODY + 1)]);
    }
    let is_cut = start.len() > ERROR_BODY;
    start.truncate(ERROR_BODY);
    let text = summary(&String::from_utf8_lossy(&start), is_cut);
    HttpResponse::from_parts(parts, HttpResponseBody::from(Bytes::from(text)))
}

fn fault(detail: String) -> HttpError {
    HttpError::new(HttpErrorKind::Unknown, Fault::Other(detail))
}

/// The error of a request without a complete response. Its kind decides whether the request is repeated.
fn unreachable(error: &HttpError, host: &str) -> HttpError {
    let cause = cause(error);
    let detail = match error.kind() {
        HttpErrorKind::Connect => format!("cannot connect to {host}: {cause}"),
        HttpErrorKind::Timeout => format!(
            "{host} does not respond in time: {cause}; the storage options `timeout` and `connect_timeout` are the limits"
        ),
        _ => format!("the request to {host} failed: {cause}"),
    };
    HttpError::new(error.kind(), Fault::Other(detail))
}
