//! A proxy between an executor and the S3 server, which records requests and can make them wait.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use crate::processes::PATIENCE;

/// The path and the range of a request for bytes.
pub(crate) type Request = (String, Range<u64>);

#[derive(Debug, Default)]
struct State {
    log: Vec<Request>,
    /// Of the requests for bytes of paths with this text, the number that still pass. `None` is no limit.
    passing: Option<(&'static str, usize)>,
    /// The number of requests that wait.
    waiting: usize,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// A proxy that runs until the process ends.
#[derive(Debug, Clone)]
pub(crate) struct Proxy {
    port: u16,
    shared: Arc<Shared>,
}

impl Proxy {
    /// Starts a proxy for the server with this port.
    pub(crate) fn start(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (port, shared) = (listener.local_addr().unwrap().port(), Arc::<Shared>::default());
        let of_thread = Arc::clone(&shared);
        thread::spawn(move || {
            for client in listener.incoming() {
                let (client, shared) = (client.unwrap(), Arc::clone(&of_thread));
                // A client may close its connection at any time.
                thread::spawn(move || serve(client, server, &shared).unwrap_or_default());
            }
        });
        Self { port, shared }
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Returns the requests for bytes since the last call.
    pub(crate) fn take(&self) -> Vec<Request> {
        std::mem::take(&mut self.shared.state.lock().unwrap().log)
    }

    /// Of the requests for bytes of paths with this text, lets this number pass, and makes the others wait. `None` lets all
    /// pass.
    pub(crate) fn pass(&self, requests: Option<(&'static str, usize)>) {
        self.shared.state.lock().unwrap().passing = requests;
        self.shared.changed.notify_all();
    }

    /// Returns when a request waits.
    pub(crate) fn wait(&self) {
        let state = self.shared.state.lock().unwrap();
        let is_passing = |state: &mut State| state.waiting == 0;
        let (_state, timeout) =
            self.shared.changed.wait_timeout_while(state, PATIENCE, is_passing).unwrap();
        assert!(!timeout.timed_out(), "no request waits");
    }
}

fn serve(client: TcpStream, server: u16, shared: &Shared) -> io::Result<()> {
    let mut upstream = TcpStream::connect(("127.0.0.1", server))?;
    let (mut responses, mut to_client) = (upstream.try_clone()?, client.try_clone()?);
    thread::spawn(move || {
        let _ = io::copy(&mut responses, &mut to_client);
        let _ = to_client.shutdown(Shutdown::Both);
    });
    let mut requests = BufReader::new(client);
    loop {
        let mut head = String::new();
        // The executors and the scheduler send no bodies.
        while !head.ends_with("\r\n\r\n") {
            if requests.read_line(&mut head)? == 0 {
                return upstream.shutdown(Shutdown::Both);
            }
        }
        if let Some(request) = range(&head) {
            let mut state = shared.state.lock().unwrap();
            let path = request.0.clone();
            state.log.push(request);
            let is_stopped = |state: &mut State| {
                state.passing.is_some_and(|(text, passing)| passing == 0 && path.contains(text))
            };
            if is_stopped(&mut state) {
                state.waiting += 1;
                shared.changed.notify_all();
                state = shared.changed.wait_while(state, is_stopped).unwrap();
                state.waiting -= 1;
            }
            if let Some((_, passing)) =
                state.passing.as_mut().filter(|(text, _)| path.contains(text))
            {
                *passing -= 1;
            }
        }
        upstream.write_all(head.as_bytes())?;
    }
}

/// The path and the range of a request, if it has a range.
fn range(head: &str) -> Option<Request> {
    let path = head.split(' ').nth(1)?.to_owned();
    let header = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("range").then(|| value.trim())
    })?;
    let (start, end) = header.strip_prefix("bytes=")?.split_once('-')?;
    Some((path, start.parse().ok()?..end.parse::<u64>().ok()? + 1))
}
