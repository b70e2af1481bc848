//! Statistics of the traffic.

use std::sync::atomic::{AtomicU64, Ordering};

/// What the objects of a [`Remote`](crate::Remote) and its clones have read from the network and from the disk, as
/// [`Remote::traffic`](crate::Remote::traffic) returns it.
///
/// Uploads are not included, and a failed request that is repeated counts once.
///
/// ```
/// # use std::sync::Arc;
/// use blosc2::NDArray;
/// use blosc2_object_store::Remote;
/// # let remote = Remote::new(Arc::new(object_store::memory::InMemory::new()));
/// # remote.save("a.b2nd", NDArray::builder().arange(0u8, 100, 1)?.schunk(), false)?;
///
/// remote.array("a.b2nd")?;
/// let traffic = remote.traffic();
/// println!("{} requests, {} bytes", traffic.requests, traffic.received);
/// assert_eq!(traffic.requests, 1);
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Traffic {
    /// The number of requests to the server.
    pub requests: u64,
    /// The number of bytes of objects that the server has sent.
    pub received: u64,
    /// The number of entries that were read from the disk cache.
    pub disk_hits: u64,
    /// The number of bytes of objects that were read from the disk cache.
    pub disk_bytes: u64,
    /// The number of entries that were written to the disk cache.
    pub disk_writes: u64,
    /// The number of damaged entries of the disk cache. They were removed, and their bytes were requested.
    pub disk_damaged: u64,
    /// The number of failures to read or write an entry of the disk cache, such as on a full disk, or in a directory
    /// that is not writable. The reads used the network instead.
    pub disk_failures: u64,
    /// The number of objects that were opened with a disk cache, but cannot be stored in it: the server has sent no
    /// strong ETag, or the object had been changed less than two seconds before.
    pub not_cacheable: u64,
}

/// Declares the counters of the fields of `Traffic`.
macro_rules! counters {
    ($($name:ident),*) => {
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $(pub(crate) $name: Counter,)*
        }

        impl Counters {
            pub(crate) fn traffic(&self) -> Traffic {
                Traffic { $($name: self.$name.0.load(Ordering::Relaxed),)* }
            }
        }
    };
}

counters!(
    requests,
    received,
    disk_hits,
    disk_bytes,
    disk_writes,
    disk_damaged,
    disk_failures,
    not_cacheable
);

#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, number: u64) {
        self.0.fetch_add(number, Ordering::Relaxed);
    }
}
