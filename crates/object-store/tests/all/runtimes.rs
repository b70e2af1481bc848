//! Synchronous and asynchronous calls inside and outside of a runtime.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use blosc2::NDArray;
use blosc2_object_store::{ReadAsync, Remote};
use object_store::ObjectStoreExt;
use object_store::http::HttpBuilder;
use object_store::memory::InMemory;

use crate::data::{self, within_a_minute, within_minutes};
use crate::server::{Faults, Server};

fn start() -> (Server, Vec<f32>) {
    let server = Server::start();
    let (frame, items) = data::array([512, 1024], [64, 1024], [8, 1024]);
    server.put("a.b2nd", frame);
    (server, items)
}

fn remote(server: &Server) -> Remote {
    Remote::from_url(&server.url(""), [("timeout", "10s")]).unwrap().0
}

#[test]
fn synchronous_calls_work_in_every_runtime() {
    within_a_minute(|| {
        let (server, items) = start();
        let read = {
            let (server, items) = (server.clone(), items.clone());
            move || {
                let array = remote(&server).array("a.b2nd").unwrap();
                assert!(array.read::<Vec<f32>>(..).unwrap() == items);
            }
        };
        read();
        let single = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        single.block_on(async { read() });
        let spawned = read.clone();
        single.block_on(async { tokio::spawn(async move { spawned() }).await.unwrap() });
        let several = tokio::runtime::Runtime::new().unwrap();
        let tasks: Vec<_> = (0..8)
            .map(|_| {
                several.spawn({
                    let read = read.clone();
                    async move { read() }
                })
            })
            .collect();
        several.block_on(async {
            for task in tasks {
                task.await.unwrap();
            }
        });
        futures::executor::block_on(async { read() });
    });
}

/// Opens the array in a store that was used in the current runtime before.
async fn open_in_store_of_caller(server: &Server) -> Arc<NDArray> {
    let options = object_store::ClientOptions::new().with_allow_http(true);
    let store = HttpBuilder::new().with_url(server.url("")).with_client_options(options);
    let store = Arc::new(store.build().unwrap());
    store.head(&"a.b2nd".into()).await.unwrap();
    Arc::new(Remote::new(store).array_async("a.b2nd").await.unwrap())
}

/// The store of the caller is used from the caller's runtime first.
#[test]
fn a_store_of_the_caller_works_in_its_runtime() {
    within_a_minute(|| {
        let (server, items) = start();
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(async {
            let array = open_in_store_of_caller(&server).await;
            assert!(array.read_async::<f32>(..).await.unwrap() == items);
            // Another thread of the runtime drives the connections.
            let task = tokio::spawn(async move { array.read::<Vec<f32>>(..).unwrap() });
            assert!(task.await.unwrap() == items);
        });
        let single = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        single.block_on(async {
            let array = open_in_store_of_caller(&server).await;
            assert!(array.read_async::<f32>(..).await.unwrap() == items);
        });
    });
}

/// While one task reads, others run on the same thread.
#[test]
fn asynchronous_reads_do_not_block() {
    within_a_minute(|| {
        let (server, items) = start();
        let array = Arc::new(remote(&server).array("a.b2nd").unwrap());
        server.set(Faults { delay: Duration::from_millis(100), ..Faults::default() });
        let single = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let ticks = single.block_on(async {
            let reading = tokio::spawn({
                let array = Arc::clone(&array);
                async move { array.read_async::<f32>(..).await }
            });
            let mut ticks = 0;
            while !reading.is_finished() {
                tokio::time::sleep(Duration::from_millis(5)).await;
                ticks += 1;
            }
            assert!(reading.await.unwrap().unwrap() == items);
            ticks
        });
        assert!(ticks >= 3, "{ticks}");
    });
}

#[test]
fn asynchronous_calls_return_errors() {
    let array = NDArray::builder().arange(0i32, 10, 1).unwrap();
    let remote = Remote::new(Arc::new(InMemory::new()));
    futures::executor::block_on(async {
        let error = remote.array_async("missing").await.unwrap_err();
        assert_eq!(error.kind(), blosc2::ErrorKind::NotFound);
        let array = Arc::new(array);
        let error = array.read_async::<i32>(5..11).await.unwrap_err();
        assert_eq!(error.kind(), blosc2::ErrorKind::OutOfBounds);
        let error = blosc2_object_store::unblock(|| panic!("on purpose")).await.map(|(): ()| ());
        assert_eq!(error.unwrap_err().kind(), blosc2::ErrorKind::Callback);
    });
}

/// Each read needs two requests, and the name of the host is resolved for new connections.
#[test]
fn ten_thousand_reads_finish() {
    within_minutes(5, || {
        let (server, items) = start();
        let url = server.url("").replace("127.0.0.1", "localhost");
        let (remote, _) = Remote::from_url(&url, [("pool_idle_timeout", "1ms")]).unwrap();
        let array = Arc::new(remote.cache(0).gap(0).array("a.b2nd").unwrap());
        server.taken();
        let reads = (0..10_000u64).map(|number| {
            let array = Arc::clone(&array);
            async move {
                let (row, column) = (number * 7 % 512, number * 13 % 1024);
                let found = array.read_async::<f32>((row..row + 1, column..column + 1)).await;
                (row * 1024 + column, found.unwrap())
            }
        });
        for (at, found) in futures::executor::block_on(futures::future::join_all(reads)) {
            assert_eq!(found, [items[at as usize]]);
        }
        let (log, most) = server.taken();
        assert!(log.len() >= 10_000 && most <= 16, "{} requests, {most} at once", log.len());
    });
}

/// The memory of reads that run at the same time is bounded by their number.
#[test]
fn unblocked_closures_are_limited() {
    within_a_minute(|| {
        static RUNNING: AtomicUsize = AtomicUsize::new(0);
        static MOST: AtomicUsize = AtomicUsize::new(0);
        let work = |number: usize| {
            MOST.fetch_max(RUNNING.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            std::thread::sleep(Duration::from_micros(100));
            RUNNING.fetch_sub(1, Ordering::SeqCst);
            assert!(!number.is_multiple_of(100), "on purpose");
            number
        };
        let calls = (0..10_000).map(|number| blosc2_object_store::unblock(move || work(number)));
        // Those that are dropped while they wait leave their place to others.
        let mut dropped: Vec<_> = (0..1000)
            .map(|_| {
                Box::pin(blosc2_object_store::unblock(|| {
                    std::thread::sleep(Duration::from_millis(1))
                }))
            })
            .collect();
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        for call in &mut dropped {
            assert!(call.as_mut().poll(&mut context).is_pending());
        }
        drop(dropped);
        let found = futures::executor::block_on(futures::future::join_all(calls));
        for (number, found) in found.into_iter().enumerate() {
            assert_eq!(found.ok(), (number % 100 != 0).then_some(number));
        }
        let most = MOST.load(Ordering::SeqCst);
        assert!((1..=64).contains(&most), "{most} at the same time");
    });
}
