//! Reads Blosc2 arrays, super-chunks and stores on S3, Google Cloud Storage, Azure and HTTP servers, and writes arrays
//! and super-chunks.
//!
//! This crate connects the crates [`blosc2`] and [`object_store`]. An array opened from a URL is an ordinary
//! [`NDArray`]: a read requests only the compressed blocks that it needs. Python: `blosc2.open(url, lazy=True)`.
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
//! assert_eq!(array.read::<u32>((500, 10..13))?, [5000, 5500, 6000]);
//! # Ok::<(), blosc2::Error>(())
//! ```
//!
//! # Requests
//! - Opening a contiguous frame of up to 64 KiB takes one request. A longer frame takes two, for its first and its last
//!   64 KiB, and usually one more if a large index or large metalayers are not in these parts.
//! - A read of an array or super-chunk takes two rounds of requests: the headers and the block starts (the table
//!   of the offsets of the blocks) of all chunks that it touches, then the blocks. Chunks that are small or needed as a
//!   whole take one round. The requests of a round run concurrently, up to [`Remote::concurrency`]; close ranges share
//!   a request ([`Remote::gap`]).
//! - While a part of a large read is decompressed, the next part is requested.
//! - Iterators over chunks, and computations ([`blosc2::compute`]), request one chunk, or a part of it, after the other
//!   on each thread. To compute on a small array, read it first.
//! - In a directory (sparse frame), each chunk takes one or two requests; up to 16 chunks are requested concurrently.
//! - [`Remote::cache`] keeps the compressed bytes of small reads. `NDArray::set_cache` keeps decompressed blocks.
//!
//! # Failures
//! The crate `object_store` repeats requests that fail with a server error or a lost connection, up to 6 times within a
//! minute; a request takes at most 30 seconds. The [storage options](Remote::from_url) `timeout`, `connect_timeout`,
//! `max_retries` and `retry_timeout` change these limits. An object that changes while it is open is reported as
//! [`ErrorKind::Busy`](blosc2::ErrorKind::Busy); the limits of the detection are described at [`Object`] and
//! [`RemoteFolder`]. Objects are untrusted input like files: invalid bytes lead to errors.
//!
//! # Threads and asynchronous code
//! Requests run on a runtime of this crate with up to four threads. The synchronous methods can be called on any
//! thread, also inside a tokio runtime; they block that thread. [`ReadAsync`] reads without blocking it: decompression
//! runs on threads for blocking work. [`unblock`] does the same for any other call.
//!
//! If the caller has created an object store and has already used it in a tokio runtime with a single thread, the store
//! may keep connections that only this runtime can drive. A synchronous call on the thread of this runtime then blocks
//! until the request times out. Use [`ReadAsync`] there, or create the store by [`Remote::from_url`].
//!
//! After a `fork`, the child process must not use this crate.
//!
//! # Features
//! `aws`, `azure`, `fs`, `gcp` and `http` (all by default) select the URLs that [`Remote::from_url`] accepts. A store
//! that the caller creates needs none of them.
#![forbid(unsafe_code)]

mod cache;
mod folder;
mod object;
mod read_async;
mod remote;
mod runtime;
mod url;

pub use folder::RemoteFolder;
pub use object::Object;
pub use read_async::ReadAsync;
pub use remote::Remote;
pub use runtime::unblock;

use blosc2::{NDArray, Result, SChunk};

/// Opens an array by its URL, for reading. See [`Remote::from_url`] for URLs and options. Python:
/// `blosc2.open(url, lazy=True)`.
///
/// To open several objects of one server, create a [`Remote`], which shares connections and the cache.
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
