//! Reads Blosc2 arrays, super-chunks and stores on S3, Google Cloud Storage, Azure and HTTP servers, and writes arrays
//! and super-chunks.
//!
//! This crate connects the crates [`blosc2`] and [`object_store`]. An array opened from a URL is an ordinary
//! [`NDArray`]. A read requests only the compressed blocks that contain the requested items. Python:
//! `blosc2.open(url, lazy=True)`.
//!
//! ```no_run
//! // Credentials are in the environment, such as `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`.
//! let array = blosc2_object_store::open_array("s3://climate/2025/temperature.b2nd", [("region", "eu-west-1")])?;
//! let day: Vec<f32> = array.read((120, 100..200, 300..400))?;
//! # Ok::<(), blosc2::Error>(())
//! ```
//!
//! A complete example, with an object store in memory:
//!
//! ```
//! use std::sync::Arc;
//!
//! use blosc2::NDArray;
//! use blosc2_object_store::Remote;
//!
//! let remote = Remote::new(Arc::new(object_store::memory::InMemory::new())).concurrency(32);
//! let array = NDArray::builder().from_fn([1000, 1000], |[row, column]| (row * column) as u32)?;
//! remote.save("runs/product.b2nd", array.schunk(), false)?;
//!
//! let array = remote.array("runs/product.b2nd")?;
//! assert_eq!(array.read::<Vec<u32>>((500, 10..13))?, [5000, 5500, 6000]);
//! # Ok::<(), blosc2::Error>(())
//! ```
//!
//! # Requests
//! - Opening a contiguous frame of up to 64 KiB takes one request. Opening a longer frame takes two requests, for its
//!   first 64 KiB and its last 64 KiB. If the index or the metalayers of the frame are not in these parts, opening
//!   usually takes one more request.
//! - Reading from a contiguous frame takes two rounds of requests. The first round requests the headers and the block
//!   starts (the table of the offsets of the blocks) of all chunks that contain requested items. The second round
//!   requests the blocks. Small chunks and completely requested chunks take one round.
//! - The requests of a round run concurrently. [`Remote::concurrency`] limits their number. Byte ranges that are close
//!   to each other share a request: see [`Remote::gap`].
//! - During a large read, the next part is requested while a part is decompressed. Reductions such as sums
//!   ([`blosc2::compute`]) send the same requests as reads, also during the computation.
//! - Iterators over chunks, and computations that create arrays or select items, request chunks or parts of chunks
//!   sequentially on each thread. Before such a computation on a small array, read the complete array.
//! - In a directory (sparse frame), each chunk takes one or two requests. Up to 16 chunks are requested concurrently;
//!   one more request then checks that the index is unchanged.
//! - From an HTTP server that ignores ranges, the object is downloaded once when it is opened, up to a
//!   [limit](Remote::from_url).
//! - With a [`DiskCache`], opening an unchanged object takes one request, which transfers no bytes of it. Reads send
//!   requests only for bytes that are not on disk. [`Remote::traffic`] counts requests and bytes.
//! - [`Remote::cache`] sets the size of the cache of compressed bytes from small reads. [`DParams::cache`] sets the
//!   size of the cache of decompressed blocks.
//!
//! # Failures
//! The crate `object_store` repeats requests that fail with a server error or a lost connection, up to 6 times within a
//! minute. A request takes at most 30 seconds. The [storage options](Remote::from_url) `timeout`, `connect_timeout`,
//! `max_retries` and `retry_timeout` change these limits.
//!
//! If an object changes while it is open, reads fail with [`ErrorKind::Busy`](blosc2::ErrorKind::Busy). [`Object`] and
//! [`RemoteFolder`] describe the limits of this detection. Objects can be untrusted input, like files: invalid bytes
//! lead to errors.
//!
//! # Threads and asynchronous code
//! Requests run on a tokio runtime of this crate, which has up to four threads. The synchronous methods can be called
//! on any thread, also inside a tokio runtime. They block the calling thread. [`ReadAsync`] reads without blocking the
//! calling thread: decompression runs on other threads. [`unblock`] runs any other call without blocking.
//!
//! There is one pitfall, for an object store that you have created and used in a tokio runtime with a single thread.
//! The object store may have open connections that only this runtime can drive. A synchronous call on the thread of
//! this runtime then blocks until the request times out. To avoid this, use [`ReadAsync`], or create the object store
//! by [`Remote::from_url`].
//!
//! After a `fork`, the child process must not use this crate.
//!
//! # Features
//! The features `aws`, `azure`, `fs`, `gcp` and `http` select the URLs that [`Remote::from_url`] accepts. All are
//! enabled by default. For an object store that you create and pass to [`Remote::new`], no feature of this crate is
//! needed.
#![forbid(unsafe_code)]

mod cache;
#[cfg(any(feature = "aws", feature = "azure", feature = "gcp", feature = "http"))]
mod client;
mod disk;
mod fault;
mod folder;
#[cfg(any(feature = "aws", feature = "azure", feature = "gcp", feature = "http"))]
mod http;
mod object;
mod read_async;
mod remote;
mod runtime;
mod traffic;
mod url;

#[doc(no_inline)]
pub use blosc2_store::without_secrets;
pub use disk::DiskCache;
pub use folder::RemoteFolder;
pub use object::Object;
pub use read_async::ReadAsync;
pub use remote::Remote;
pub use runtime::unblock;
pub use traffic::Traffic;

use blosc2::{NDArray, Result, SChunk};

/// Opens an array by its URL, for reading. See [`Remote::from_url`] for URLs and options. Python:
/// `blosc2.open(url, lazy=True)`.
///
/// To open several objects of one server, create a [`Remote`]. The objects then share connections and a cache.
///
/// # Errors
/// Fails with the errors of [`Remote::from_url`] and [`Remote::array`].
pub fn open_array<K: AsRef<str>, V: AsRef<str>>(
    url: &str,
    options: impl IntoIterator<Item = (K, V)>,
) -> Result<NDArray> {
    let (remote, path) = Remote::from_url(url, options)?;
    remote.array(path)
}

/// Opens a super-chunk by its URL, for reading. See [`Remote::from_url`] for URLs and options.
///
/// # Errors
/// Fails with the errors of [`Remote::from_url`] and [`Remote::schunk`].
pub fn open_schunk<K: AsRef<str>, V: AsRef<str>>(
    url: &str,
    options: impl IntoIterator<Item = (K, V)>,
) -> Result<SChunk> {
    let (remote, path) = Remote::from_url(url, options)?;
    remote.schunk(path)
}
