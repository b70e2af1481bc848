//! Synchronous and asynchronous calls inside and outside of a runtime.

use std::sync::Arc;
use std::time::Duration;

use blosc2::NDArray;
use blosc2_object_store::{ReadAsync, Remote};
use object_store::ObjectStoreExt;
use object_store::http::HttpBuilder;
use object_store::memory::InMemory;

use crate::data::{self, within_a_minute};
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
                assert!(array.read_all::<f32>().unwrap() == items);
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
            let task = tokio::spawn(async move { array.read_all::<f32>().unwrap() });
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
