//! Ctrl-C and termination: the query is cancelled, temporary files are removed, and the process ends.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{fs, process, thread};

use blosc2::storage::temporary_prefix;
use tokio::sync::Notify;

/// The exit status after a signal: 128 and the number of SIGINT, as of a shell.
const STATUS: i32 = 130;
/// The time in which the query must end. It removes the temporary files of DataFusion.
const LIMIT: Duration = Duration::from_millis(300);

static STOPPED: AtomicBool = AtomicBool::new(false);
static STOP: Notify = Notify::const_new();
/// The directories in which temporary files are created.
static FOLDERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Handles Ctrl-C and, on Unix, SIGTERM and SIGHUP. A signal that the parent process ignores stays ignored, as `nohup`
/// and shells expect.
pub(crate) fn handle() {
    #[cfg(unix)]
    {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        use signal_hook::iterator::Signals;

        let ignored = ignored();
        let handled = [SIGHUP, SIGINT, SIGTERM];
        let handled = handled.into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0);
        // Without a handler the process ends as by default.
        let Ok(mut signals) = Signals::new(handled) else { return };
        thread::spawn(move || {
            if signals.forever().next().is_some() {
                stop();
            }
        });
    }
    #[cfg(not(unix))]
    let _ = ctrlc::set_handler(stop);
}

/// The set of ignored signals, one bit each from 1 on; empty on systems without `/proc`.
#[cfg(unix)]
fn ignored() -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0)
}

fn stop() {
    STOPPED.store(true, Ordering::SeqCst);
    STOP.notify_one();
    thread::sleep(2 * LIMIT);
    end();
}

fn end() -> ! {
    remove_temporary();
    crate::complain("interrupted");
    process::exit(STATUS)
}

/// Ends the process if a signal has stopped it.
pub(crate) fn end_if_stopped() {
    if STOPPED.load(Ordering::SeqCst) {
        end();
    }
}

/// The runtime of the queries.
#[derive(Debug)]
pub(crate) struct Runtime(Option<tokio::runtime::Runtime>);

impl Runtime {
    pub(crate) fn new(runtime: tokio::runtime::Runtime) -> Self {
        Self(Some(runtime))
    }

    /// Waits for a result, or fails if a signal stops the process.
    pub(crate) fn wait<T>(
        &self,
        work: impl Future<Output = anyhow::Result<T>>,
    ) -> anyhow::Result<T> {
        use futures::future::{Either, select};

        let Some(runtime) = &self.0 else { anyhow::bail!("the runtime has ended") };
        if STOPPED.load(Ordering::SeqCst) {
            anyhow::bail!("interrupted");
        }
        let (work, stop) = (std::pin::pin!(work), std::pin::pin!(STOP.notified()));
        match runtime.block_on(select(work, stop)) {
            Either::Left((result, _)) => result,
            Either::Right(_) => anyhow::bail!("interrupted"),
        }
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        let Some(runtime) = self.0.take() else { return };
        // What still runs belongs to a query that has failed, was interrupted, or needs no more rows.
        let limit = Instant::now() + LIMIT;
        while runtime.metrics().num_alive_tasks() > 0 && Instant::now() < limit {
            thread::sleep(Duration::from_millis(2));
        }
        // Files of `COPY` are removed by blocking tasks, which start in order. Those that have not started would be lost.
        let _ = runtime.block_on(runtime.spawn_blocking(|| ()));
        runtime.shutdown_timeout(LIMIT);
    }
}

/// Registers the directory of an output: temporary files there are removed if the process is stopped.
pub(crate) fn register(folder: &Path) {
    // The working directory does not change, but the path stays valid if it did.
    let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    FOLDERS.lock().unwrap_or_else(PoisonError::into_inner).push(folder);
}

/// Removes the temporary files of this process that were not removed by their owners.
fn remove_temporary() {
    for folder in FOLDERS.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        let Ok(entries) = fs::read_dir(folder) else { continue };
        for entry in entries.flatten() {
            if entry.file_name().to_string_lossy().starts_with(temporary_prefix()) {
                // The process ends anyway.
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }
}
