//! The runtime on which requests run.
//!
//! It is separate from any runtime of the caller. A synchronous call can therefore wait for requests on every thread,
//! also on a thread of the caller's runtime.

use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{OnceLock, mpsc};
use std::thread;

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::Semaphore;

/// The maximum number of threads that process responses.
const MOST_THREADS: usize = 4;
/// The maximum number of closures of [`unblock`] that run at the same time. The runtime has 512 threads for work that
/// blocks. The others resolve the names of hosts and read local files: reads wait for them.
const MOST_UNBLOCKED: usize = 64;
static UNBLOCKED: Semaphore = Semaphore::const_new(MOST_UNBLOCKED);

/// Returns the runtime of this crate, which is started by the first call.
pub(crate) fn handle() -> io::Result<&'static Handle> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime.handle());
    }
    let threads = thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(threads).thread_name("blosc2-object-store").enable_all();
    // It panics if a thread cannot be started.
    let built = catch_unwind(AssertUnwindSafe(|| builder.build()));
    let runtime = built.unwrap_or_else(|_| Err(io::Error::other("no thread can be started")))?;
    if let Err(second) = RUNTIME.set(runtime) {
        // Another thread was faster. Dropping a runtime waits, which is not allowed in asynchronous code.
        second.shutdown_background();
    }
    RUNTIME.get().map(Runtime::handle).ok_or_else(|| io::Error::other("no runtime"))
}

/// Runs a future on the runtime, and waits for its result.
pub(crate) fn wait<T: Send + 'static>(
    future: impl Future<Output = T> + Send + 'static,
) -> io::Result<T> {
    let (send, receive) = mpsc::sync_channel(1);
    handle()?.spawn(async move {
        // The receiver waits for it.
        let _ = send.send(future.await);
    });
    receive.recv().map_err(|_| io::Error::other("a request has panicked"))
}

/// Runs a closure that blocks or computes on another thread. Returns a future for the result of the closure.
///
/// The future works in every asynchronous runtime. [`ReadAsync`](crate::ReadAsync) uses this function.
///
/// At most 64 closures run at the same time; the others wait without a thread. A closure must therefore not wait for
/// another call of this function. If the future is dropped, a running closure still runs to its end, and a waiting
/// closure does not run.
///
/// ```
/// # futures::executor::block_on(async {
/// let sum = blosc2_object_store::unblock(|| (1..=1000u64).sum::<u64>()).await?;
/// assert_eq!(sum, 500_500);
/// # Ok::<(), blosc2::Error>(())
/// # }).unwrap();
/// ```
///
/// # Errors
/// - [`ErrorKind::Callback`](blosc2::ErrorKind::Callback): the closure panicked;
/// - [`ErrorKind::Io`](blosc2::ErrorKind::Io): no thread can be started.
pub async fn unblock<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> blosc2::Result<T> {
    const DOING: &str = "run blocking work";
    let handle = handle().map_err(|error| blosc2::Error::of_io(DOING, error))?;
    // It is never closed.
    let permit = UNBLOCKED.acquire().await.ok();
    let done = handle.spawn_blocking(move || {
        let _permit = permit;
        work()
    });
    let done = done.await;
    done.map_err(|error| blosc2::Error::new(blosc2::ErrorKind::Callback, DOING, error))
}
