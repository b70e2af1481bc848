//! Reads from an object store that waits before each request.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use blosc2::{DParams, RawItems, Threads};
use blosc2_object_store::Remote;
use futures::{StreamExt, stream};
use object_store::memory::InMemory;
use object_store::throttle::{ThrottleConfig, ThrottledStore};
use object_store::{ObjectStore, ObjectStoreExt};
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};
use zarrs::array::{Array, ArrayBytes, CodecOptions};
use zarrs_object_store::AsyncObjectStore;

use crate::ours::Ours;
use crate::set::{Part, Set};
use crate::zarr::{Zarrs, fixed, subset};

/// The sets that are read remotely.
pub const SETS: [&str; 3] = ["sparse", "ephemeris", "brain"];
/// The number of parts that are read at the same time.
const PARTS: usize = 128;
/// Chunks are smaller than in files, so that there are more requests than the limit allows at once.
const CHUNK_BYTES: u64 = 256 << 10;

type Store = Arc<ThrottledStore<InMemory>>;

pub fn measure(set: &Set) -> Vec<Value> {
    let runtime =
        Builder::new_multi_thread().worker_threads(2).enable_time().build().expect("threads");
    let store = Arc::new(ThrottledStore::new(InMemory::new(), ThrottleConfig::default()));
    let set = &with_small_chunks(set);
    fill(&runtime, &store, set);
    let parts = &set.tiles()[..PARTS];
    let mut found = Vec::new();
    for delay in [20, 100] {
        let wait = Duration::from_millis(delay);
        store.config_mut(|config| config.wait_get_per_call = wait);
        for limit in [16, 64, 128] {
            let mut add = |library: &str, [all_s, tiles_s]: [f64; 2]| {
                found.push(json!({
                    "set": set.name, "library": library, "delay_ms": delay, "concurrency": limit,
                    "read_s": all_s, "tiles_s": tiles_s, "tiles": PARTS,
                }));
            };
            add("blosc2", ours(&store, set, parts, limit));
            add("zarrs", zarrs(&runtime, &store, set, parts, limit));
        }
        found.push(json!({
            "set": set.name, "library": "npy.zst", "delay_ms": delay, "concurrency": 1,
            "read_s": npy(&runtime, &store, set), "tiles_s": null, "tiles": PARTS,
        }));
    }
    store.config_mut(|config| config.wait_get_per_call = Duration::ZERO);
    found
}

fn with_small_chunks(set: &Set) -> Set {
    let mut chunks = set.chunks.clone();
    while chunks.iter().product::<u64>() * set.itemsize as u64 > CHUNK_BYTES {
        let longest = chunks.iter_mut().max().expect("an axis");
        *longest = longest.div_ceil(2);
    }
    Set {
        name: set.name.clone(),
        dtype: set.dtype.clone(),
        fields: set.fields.clone(),
        itemsize: set.itemsize,
        shape: set.shape.clone(),
        chunks,
        is_table: set.is_table,
        npy: set.npy.clone(),
        items: set.items.clone(),
    }
}

fn zarrs_default(set: &Set) -> Zarrs {
    use crate::library::Library;
    Zarrs::all(set).into_iter().find(Library::is_default).expect("a default setting")
}

/// Writes the set with the default settings of each library.
fn fill(runtime: &Runtime, store: &Store, set: &Set) {
    let array = Ours::default_settings().array(set, blosc2::Target::memory());
    let remote = Remote::new(Arc::clone(store) as Arc<dyn ObjectStore>);
    remote.save("a.b2nd", array.schunk(), true).expect("an object");
    let compressed = zstd::bulk::compress(&set.items, 3).expect("compressed items");
    let path = "a.npy.zst".into();
    runtime.block_on(store.put(&path, compressed.into())).expect("an object");
    let zarr = Arc::new(AsyncObjectStore::new(Arc::clone(store)));
    let array =
        Array::new_with_metadata(zarr, "/a", zarrs_default(set).metadata(set)).expect("an array");
    runtime.block_on(async {
        array.async_store_metadata().await.expect("metadata");
        let items = ArrayBytes::new_flen(&set.items[..]);
        array.async_store_array_subset(&array.subset_all(), items).await.expect("items");
    });
}

/// The seconds of reading everything and all parts, each with a new client. This crate decompresses with two threads.
fn ours(store: &Store, set: &Set, parts: &[Part], limit: usize) -> [f64; 2] {
    let open = || {
        let remote = Remote::new(Arc::clone(store) as Arc<dyn ObjectStore>).concurrency(limit);
        let mut array = remote.array("a.b2nd").expect("an array");
        array.set_dparams(DParams::new().threads(Threads::new(2)));
        array
    };
    let start = Instant::now();
    let items = open().read::<RawItems>(..).expect("items").0;
    let all = start.elapsed().as_secs_f64();
    assert!(items == set.items, "other items of {}", set.name);
    let (start, next) = (Instant::now(), AtomicUsize::new(0));
    let array = open();
    let results: Vec<(usize, Vec<u8>)> = thread::scope(|scope| {
        let work = || {
            let mut found = Vec::new();
            while let index = next.fetch_add(1, Ordering::Relaxed)
                && index < parts.len()
            {
                found.push((index, array.read::<RawItems>(&parts[index][..]).expect("items").0));
            }
            found
        };
        let threads: Vec<_> = (0..limit.min(parts.len())).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("a thread")).collect()
    });
    let tiles = start.elapsed().as_secs_f64();
    assert!(results.len() == parts.len());
    results.iter().for_each(|(index, bytes)| assert!(*bytes == set.expected(&parts[*index])));
    [all, tiles]
}

fn zarrs(runtime: &Runtime, store: &Store, set: &Set, parts: &[Part], limit: usize) -> [f64; 2] {
    let open = || {
        let zarr = Arc::new(AsyncObjectStore::new(Arc::clone(store)));
        Array::async_open(zarr, "/a")
    };
    let options = CodecOptions::default().with_concurrent_target(limit);
    runtime.block_on(async {
        let start = Instant::now();
        let array = open().await.expect("an array");
        let whole = array.subset_all();
        let items = array.async_retrieve_array_subset_opt(&whole, &options).await.expect("items");
        let all = start.elapsed().as_secs_f64();
        assert!(fixed(items) == set.items, "other items of {}", set.name);
        let start = Instant::now();
        let array = Arc::new(open().await.expect("an array"));
        let one = |part: &Part| {
            let (array, subset, options) = (Arc::clone(&array), subset(part), options.clone());
            async move {
                let read = async move {
                    array.async_retrieve_array_subset_opt(&subset, &options).await.expect("items")
                };
                fixed(tokio::spawn(read).await.expect("a task"))
            }
        };
        let results: Vec<Vec<u8>> = stream::iter(parts).map(one).buffered(limit).collect().await;
        let tiles = start.elapsed().as_secs_f64();
        for (bytes, part) in results.iter().zip(parts) {
            assert!(*bytes == set.expected(part));
        }
        [all, tiles]
    })
}

fn npy(runtime: &Runtime, store: &Store, set: &Set) -> f64 {
    let start = Instant::now();
    let bytes = runtime.block_on(async {
        store.get(&"a.npy.zst".into()).await.expect("an object").bytes().await.expect("bytes")
    });
    let items = zstd::bulk::decompress(&bytes, set.items.len()).expect("items");
    let seconds = start.elapsed().as_secs_f64();
    assert!(items == set.items, "other items of {}", set.name);
    seconds
}
