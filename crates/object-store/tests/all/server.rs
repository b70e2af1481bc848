//! A small HTTP server with ranges, ETags and faults, on the loopback interface.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;

/// The path and the range of a request.
pub(crate) type Request = (String, Option<Range<u64>>);

/// What the server does wrong.
#[derive(Debug, Clone, Default)]
pub(crate) struct Faults {
    /// Waits before each response.
    pub(crate) delay: Duration,
    /// The number of requests to answer with the status 500.
    pub(crate) fail: usize,
    /// The number of responses to end after the header and half of the body.
    pub(crate) drop: usize,
    /// Sends whole objects.
    pub(crate) ignores_ranges: bool,
    /// Sends the range after the requested one.
    pub(crate) wrong_range: bool,
    /// The headers with times, such as `Last-Modified`, instead of those of the server.
    pub(crate) times: Option<String>,
    /// Sends no ETags.
    pub(crate) no_etags: bool,
    /// Sends weak ETags.
    pub(crate) weak_etags: bool,
    /// Ignores the headers `If-Match` and `If-None-Match`.
    pub(crate) ignores_conditions: bool,
    /// After this number of requests, the object has other content.
    pub(crate) changes_after: Option<usize>,
    /// Sends nothing after the header.
    pub(crate) stalls: bool,
    /// Sends whole objects, if the range contains all bytes.
    pub(crate) ignores_whole_ranges: bool,
    /// Answers requests with a range with the status 416.
    pub(crate) refuses_ranges: bool,
    /// Sends no sizes: the end of the connection is the end of the body.
    pub(crate) no_sizes: bool,
    /// Answers `HEAD` with the status 403, as for a signed URL.
    pub(crate) refuses_head: bool,
    /// Answers `PROPFIND`, the request of a list of files, with this status.
    pub(crate) list: Option<&'static str>,
    /// Sends whole objects with this header `Content-Encoding`.
    pub(crate) encoding: Option<&'static str>,
    /// Sends ranges of the encoded object, if the request has one.
    pub(crate) encodes_ranges: bool,
    /// Sends this header `Content-Range`.
    pub(crate) content_range: Option<String>,
    /// Sends ranges of an object of zeros of this size, whatever it has.
    pub(crate) size: Option<u64>,
    /// The query that requests need. Without it, a page repeats the query.
    pub(crate) query: Option<&'static str>,
    /// The header `Authorization` that requests need.
    pub(crate) authorization: Option<&'static str>,
    /// Answers each request with this status and this body.
    pub(crate) error: Option<(&'static str, String)>,
    /// Sends 64 MiB after the body of an error.
    pub(crate) long_errors: bool,
    /// Answers each request with a redirect to the same path of this server.
    pub(crate) redirect: Option<Server>,
}

/// The bytes of an object, and the number of times that they were replaced.
type Content = (Arc<Vec<u8>>, usize);

#[derive(Debug, Default)]
struct State {
    objects: Mutex<HashMap<String, Content>>,
    faults: Mutex<Faults>,
    log: Mutex<Vec<Request>>,
    running: AtomicUsize,
    most: AtomicUsize,
    /// The headers `Referer` of all requests.
    referers: Mutex<Vec<String>>,
    /// The number of bytes that were sent after the body of an error.
    sent: AtomicUsize,
}

/// A server that runs until the process ends.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    port: u16,
    state: Arc<State>,
}

impl Server {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (port, state) = (listener.local_addr().unwrap().port(), Arc::<State>::default());
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, state) = (stream.unwrap(), Arc::clone(&shared));
                // A client may close its connection at any time.
                thread::spawn(move || serve(stream, &state).unwrap_or_default());
            }
        });
        Self { port, state }
    }

    pub(crate) fn put(&self, path: &str, bytes: Vec<u8>) {
        let mut objects = self.state.objects.lock().unwrap();
        let object = objects.entry(format!("/{path}")).or_default();
        let count = if object.0.is_empty() { 0 } else { object.1 + 1 };
        *object = (bytes.into(), count);
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}", self.port)
    }

    pub(crate) fn set(&self, faults: Faults) {
        *self.state.faults.lock().unwrap() = faults;
    }

    /// Returns the headers `Referer` of all requests.
    pub(crate) fn referers(&self) -> Vec<String> {
        self.state.referers.lock().unwrap().clone()
    }

    /// Returns the number of bytes that were sent after the body of an error.
    pub(crate) fn sent(&self) -> usize {
        self.state.sent.load(Ordering::SeqCst)
    }

    /// Returns the requests since the last call, and the maximum number that waited for a response at the same time.
    pub(crate) fn taken(&self) -> (Vec<Request>, usize) {
        let log = std::mem::take(&mut *self.state.log.lock().unwrap());
        (log, self.state.most.swap(0, Ordering::SeqCst))
    }
}

/// Returns the number of bytes of requests.
pub(crate) fn bytes(log: &[Request]) -> u64 {
    log.iter().flat_map(|(_, range)| range).map(|range| range.end - range.start).sum()
}

fn serve(stream: TcpStream, state: &State) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    loop {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            if line.trim().is_empty() {
                break;
            }
            lines.push(line.trim().to_owned());
        }
        let header = |name: &str| {
            lines.iter().find_map(|line| {
                let (key, value) = line.split_once(':')?;
                key.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
            })
        };
        let mut words = lines[0].split(' ');
        let (method, path) = (words.next().unwrap().to_owned(), words.next().unwrap().to_owned());
        if let Some(len) = header("content-length") {
            reader.by_ref().take(len.parse().unwrap()).read_to_end(&mut Vec::new())?;
        }
        let running = state.running.fetch_add(1, Ordering::SeqCst) + 1;
        state.most.fetch_max(running, Ordering::SeqCst);
        if !respond(&stream, state, &method, &path, header)? {
            return Ok(());
        }
    }
}

/// Returns whether the connection stays open.
fn respond(
    mut stream: &TcpStream,
    state: &State,
    method: &str,
    url: &str,
    header: impl Fn(&str) -> Option<String>,
) -> std::io::Result<bool> {
    let (range, condition) = (header("range"), header("if-match"));
    let (path, query) = match url.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (url, None),
    };
    let mut send = |status: &str, headers: &str, body: &[u8], len: usize| {
        let head = format!("HTTP/1.1 {status}\r\ncontent-length: {len}\r\n{headers}\r\n");
        stream.write_all(&[head.as_bytes(), body].concat())
    };
    let faults = {
        let mut faults = state.faults.lock().unwrap();
        let now = faults.clone();
        faults.fail = faults.fail.saturating_sub(1);
        if method == "GET" && now.fail == 0 {
            faults.drop = faults.drop.saturating_sub(1);
            faults.changes_after = faults.changes_after.map(|count| count.saturating_sub(1));
        }
        now
    };
    let range = range.map(|range| {
        let (start, end) = range.strip_prefix("bytes=").unwrap().split_once('-').unwrap();
        start.parse::<u64>().unwrap()..end.parse::<u64>().unwrap() + 1
    });
    state.log.lock().unwrap().push((url.to_owned(), range.clone()));
    state.referers.lock().unwrap().extend(header("referer"));
    thread::sleep(faults.delay);
    // The client can send its next request before this thread knows that it has received the response.
    state.running.fetch_sub(1, Ordering::SeqCst);
    if let Some((status, body)) = faults.error {
        if !faults.long_errors {
            send(status, "", body.as_bytes(), body.len())?;
            return Ok(method != "HEAD");
        }
        stream.write_all(
            format!("HTTP/1.1 {status}\r\nconnection: close\r\n\r\n{body}").as_bytes(),
        )?;
        for _ in 0..64 {
            stream.write_all(&[b' '; 1 << 20])?;
            state.sent.fetch_add(1 << 20, Ordering::SeqCst);
        }
        return Ok(false);
    }
    if let Some(server) = faults.redirect {
        let location = format!("location: {}\r\n", server.url(path.trim_start_matches('/')));
        send("302 Found", &location, b"", 0)?;
        return Ok(true);
    }
    if !["GET", "HEAD"].contains(&method) {
        let status = faults.list.filter(|_| method == "PROPFIND");
        send(status.unwrap_or("501 Unsupported method"), "", b"", 0)?;
        return Ok(true);
    }
    if faults.fail > 0 {
        send("500 Internal Server Error", "", b"", 0)?;
        return Ok(true);
    }
    let is_allowed = faults.query.is_none_or(|needed| query == Some(needed))
        && faults
            .authorization
            .is_none_or(|needed| header("authorization").as_deref() == Some(needed))
        && !(faults.refuses_head && method == "HEAD");
    if !is_allowed {
        let page = format!("<html>\n<p>{url} is not allowed</p>\n</html>");
        send("403 Forbidden", "", page.as_bytes(), page.len())?;
        return Ok(method != "HEAD");
    }
    let (object, is_folder) = {
        let objects = state.objects.lock().unwrap();
        let folder = format!("{}/", path.trim_end_matches('/'));
        (objects.get(path).cloned(), objects.keys().any(|name| name.starts_with(&folder)))
    };
    if object.is_none() && is_folder {
        // As Python's `http.server` does.
        let page = b"<!DOCTYPE HTML>\n<html>\n<title>Directory listing</title>\n</html>";
        match path.ends_with('/') {
            true if method == "HEAD" => send("200 OK", "", b"", page.len())?,
            true => send("200 OK", "", page, page.len())?,
            false => send("301 Moved Permanently", &format!("location: {path}/\r\n"), b"", 0)?,
        }
        return Ok(true);
    }
    let Some((mut object, replaced)) = object else {
        let page = format!("<html>\n<p>{url} is missing</p>\n</html>");
        send("404 Not Found", "", page.as_bytes(), page.len())?;
        return Ok(true);
    };
    let has_changed = faults.changes_after == Some(0);
    if has_changed {
        Arc::make_mut(&mut object).iter_mut().for_each(|byte| *byte ^= 0x55);
    }
    let weak = if faults.weak_etags { "W/" } else { "" };
    let number = if replaced == 0 { String::new() } else { replaced.to_string() };
    let e_tag = format!("{weak}\"{}{number}\"", if has_changed { "two" } else { "one" });
    if header("if-none-match").is_some_and(|known| known == e_tag) && !faults.ignores_conditions {
        send("304 Not Modified", &format!("etag: {e_tag}\r\n"), b"", 0)?;
        return Ok(true);
    }
    if condition.is_some_and(|condition| condition != e_tag) && !faults.ignores_conditions {
        send("412 Precondition Failed", "", b"", 0)?;
        return Ok(true);
    }
    let date = if has_changed { "Tue, 03 Jan 2023" } else { "Mon, 02 Jan 2023" };
    let own_times = format!("last-modified: {date} 00:00:00 GMT\r\n");
    let mut headers = faults.times.clone().unwrap_or(own_times);
    if !faults.no_etags {
        headers += &format!("etag: {e_tag}\r\n");
    }
    if method == "HEAD" {
        send("200 OK", &headers, b"", object.len())?;
        return Ok(true);
    }
    let len = object.len() as u64;
    let is_whole = |range: &Range<u64>| range.start == 0 && range.end >= len;
    let ignores = |range: &Range<u64>| {
        faults.ignores_ranges
            || faults.ignores_whole_ranges && is_whole(range)
            || faults.encoding.is_some() && !faults.encodes_ranges
    };
    if let (Some(size), Some(range)) = (faults.size, &range) {
        let end = range.end.min(size);
        let body = vec![0; end.saturating_sub(range.start) as usize];
        headers +=
            &format!("content-range: bytes {}-{}/{size}\r\n", range.start, end.wrapping_sub(1));
        send("206 Partial Content", &headers, &body, body.len())?;
        return Ok(true);
    }
    if range.is_some() && faults.refuses_ranges {
        send("416 Range Not Satisfiable", "", b"", 0)?;
        return Ok(true);
    }
    if let Some(encoding) = faults.encoding {
        headers += &format!("content-encoding: {encoding}\r\n");
        if encoding == "gzip" {
            object = Arc::new(gzip(&object));
        }
    }
    let size = object.len() as u64;
    let (status, body) = match range.filter(|range| !ignores(range)) {
        None => ("200 OK", &object[..]),
        Some(range) if range.start >= size => {
            send("416 Range Not Satisfiable", "", b"", 0)?;
            return Ok(true);
        }
        Some(range) => {
            let shift = u64::from(faults.wrong_range && range.end + 10 < size) * 10;
            let (start, end) = (range.start + shift, (range.end + shift).min(size));
            let stated = format!("bytes {start}-{}/{size}", end - 1);
            let stated = faults.content_range.as_ref().unwrap_or(&stated);
            headers += &format!("content-range: {stated}\r\n");
            ("206 Partial Content", &object[start as usize..end as usize])
        }
    };
    if faults.no_sizes {
        let head = format!("HTTP/1.1 {status}\r\nconnection: close\r\n{headers}\r\n");
        stream.write_all(&[head.as_bytes(), body].concat())?;
        return Ok(false);
    }
    if faults.stalls {
        send(status, &headers, b"", body.len())?;
        thread::sleep(Duration::from_secs(20));
        return Ok(false);
    }
    let is_dropped = faults.drop > 0;
    let sent = if is_dropped { &body[..body.len() / 2] } else { body };
    send(status, &headers, sent, body.len())?;
    Ok(!is_dropped)
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}
