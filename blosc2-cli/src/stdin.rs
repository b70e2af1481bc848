//! Standard input as a file: frames and stores are read in any order, so the input is copied to a temporary file.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::{Result, anyhow};

use crate::interrupt;

/// The name of stdin and stdout as arguments. A file of this name is `./-`.
pub(crate) const NAME: &str = "-";

/// The copy of stdin.
static COPY: OnceLock<PathBuf> = OnceLock::new();

pub(crate) fn is_named(path: &Path) -> bool {
    path.as_os_str() == NAME
}

/// Returns the path of a file with all bytes of stdin. It is removed when the command ends.
pub(crate) fn file() -> Result<&'static Path> {
    if let Some(path) = COPY.get() {
        return Ok(path);
    }
    let failed = |error: io::Error| anyhow!("cannot read ({NAME}): {error}");
    let mut file = tempfile::Builder::new().prefix(".blosc2-").tempfile().map_err(failed)?;
    interrupt::register(file.path().to_owned());
    io::copy(&mut io::stdin().lock(), file.as_file_mut()).map_err(failed)?;
    // `interrupt` removes it, also when the process exits without dropping it.
    let (_, path) = file.keep().map_err(|error| failed(error.error))?;
    Ok(COPY.get_or_init(|| path))
}

/// Opens a file, or stdin, for reading from its beginning to its end.
pub(crate) fn open(path: &Path) -> io::Result<Box<dyn Read + Send>> {
    Ok(match is_named(path) {
        true => Box::new(Pieces::start()),
        false => Box::new(BufReader::new(File::open(path)?)),
    })
}

/// Replaces the path of the copy of stdin in a message.
pub(crate) fn named(message: String) -> String {
    match COPY.get() {
        Some(path) => message.replace(&*path.to_string_lossy(), NAME),
        None => message,
    }
}

/// Bytes that are read from stdin at once.
const PIECE: usize = 256 << 10;
/// The time after which a waiting reader checks whether the user has pressed Ctrl-C.
const PATIENCE: Duration = Duration::from_millis(50);

/// Stdin, read by a thread: Ctrl-C also stops a command that waits for input.
struct Pieces {
    next: Receiver<io::Result<Vec<u8>>>,
    /// The current piece, and the position in it.
    piece: Vec<u8>,
    at: usize,
}

impl Pieces {
    fn start() -> Self {
        let (sender, next) = mpsc::sync_channel(2);
        thread::spawn(move || {
            let mut stdin = io::stdin().lock();
            loop {
                let mut piece = Vec::new();
                let read = stdin.by_ref().take(PIECE as u64).read_to_end(&mut piece);
                let is_last = matches!(read, Err(_) | Ok(0));
                // An error here means that nobody reads.
                if sender.send(read.map(|_| piece)).is_err() || is_last {
                    return;
                }
            }
        });
        Self { next, piece: Vec::new(), at: 0 }
    }
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.piece.len() {
            interrupt::check().map_err(io::Error::other)?;
            match self.next.recv_timeout(PATIENCE) {
                Ok(piece) => (self.piece, self.at) = (piece?, 0),
                Err(RecvTimeoutError::Timeout) => continue,
                // After the last piece, which was empty.
                Err(RecvTimeoutError::Disconnected) => return Ok(0),
            }
            if self.piece.is_empty() {
                return Ok(0);
            }
        }
        let len = buffer.len().min(self.piece.len() - self.at);
        buffer[..len].copy_from_slice(&self.piece[self.at..self.at + len]);
        self.at += len;
        Ok(len)
    }
}
