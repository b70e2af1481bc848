//! Saving, directories, and stores of several objects.

use std::sync::Arc;

use async_trait::async_trait;
use blosc2::{AxisSelection, CParams, ErrorKind, NDArray, SChunk, Target, Value};
use blosc2_object_store::Remote;
use blosc2_store::{CTable, Data, ItemKind, Object as Container, Schema, TreeStore};
use futures::stream::BoxStream;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    ObjectStoreExt, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

/// An object store in memory, and one in a folder.
fn remotes() -> (tempfile::TempDir, [Remote; 2]) {
    let folder = tempfile::tempdir().unwrap();
    let local = LocalFileSystem::new_with_prefix(folder.path()).unwrap();
    let stores: [Arc<dyn ObjectStore>; 2] = [Arc::new(InMemory::new()), Arc::new(local)];
    (folder, stores.map(Remote::new))
}

#[test]
fn saved_arrays_are_read_and_not_replaced() {
    let (_folder, remotes) = remotes();
    for remote in remotes {
        let first = NDArray::builder().arange(0i64, 100_000, 1).unwrap();
        let second = NDArray::builder().arange(1i64, 10, 1).unwrap();
        remote.save("a/b/first.b2nd", first.schunk(), false).unwrap();
        let error = remote.save("a/b/first.b2nd", second.schunk(), false).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists, "{error}");
        let found = remote.array("a/b/first.b2nd").unwrap();
        assert_eq!(found.read::<Vec<i64>>(..).unwrap(), first.read::<Vec<i64>>(..).unwrap());
        remote.save("a/b/first.b2nd", second.schunk(), true).unwrap();
        // The opened one is another version.
        let error = found.read::<Vec<i64>>(50_000..50_001);
        assert!(error.is_ok_and(|items| items == [50_000]) || found.read::<Vec<i64>>(..).is_err());
        let found = remote.array("a/b/first.b2nd").unwrap();
        assert_eq!(found.read::<Vec<i64>>(..).unwrap(), second.read::<Vec<i64>>(..).unwrap());
    }
}

#[test]
fn large_frames_are_uploaded_in_parts() {
    let (_folder, remotes) = remotes();
    let mut state = 1u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        state
    };
    let mut schunk = SChunk::in_memory::<u64>(CParams::new().level(0)).unwrap();
    let items: Vec<u64> = (0..9 << 20).map(|_| random()).collect();
    for items in items.chunks(1 << 20) {
        schunk.append(items).unwrap();
    }
    for remote in remotes {
        remote.save("large", &schunk, false).unwrap();
        let error = remote.save("large", &schunk, false).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists, "{error}");
        remote.save("large", &schunk, true).unwrap();
        let found = remote.schunk("large").unwrap();
        assert_eq!(found.nchunks(), 9);
        assert!(found.read::<u64>(..).unwrap() == items);
    }
}

#[test]
fn directories_are_read_and_changed() {
    let (_folder, remotes) = remotes();
    for remote in remotes {
        let items: Vec<u16> = (0..10_000).collect();
        let builder = NDArray::builder()
            .target(Target::folder(remote.folder("x/dir.b2nd").unwrap()))
            .chunk_shape([10, 100]);
        let mut array = builder.from_slice(&items, [100, 100]).unwrap();
        array.write([55, 5], 7u16).unwrap();
        let found = remote.array("x/dir.b2nd").unwrap();
        assert_eq!(found.item::<u16>(&[55, 5]).unwrap(), 7);
        let rows = [3u64, 97, 50];
        let expected: Vec<u16> =
            rows.iter().flat_map(|&row| &items[row as usize * 100..][..100]).copied().collect();
        assert_eq!(
            found.read::<Vec<u16>>((AxisSelection::from(rows.to_vec()), ..)).unwrap(),
            expected
        );
        let error = remote.array("x").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    }
}

/// A writer stores another chunk in the object of a removed chunk. A reader with the old index must not return it.
#[test]
fn reused_objects_are_not_taken_for_the_chunks_of_an_old_index() {
    let (_folder, [memory, local]) = remotes();
    for remote in [memory, local, Remote::new(Arc::new(NoTags(InMemory::new())))] {
        let items: Vec<u32> = (0..40_000).collect();
        let builder = NDArray::builder()
            .target(Target::folder(remote.folder("dir").unwrap()))
            .chunk_shape([10, 100]);
        let mut writer = builder.from_slice(&items, [400, 100]).unwrap();
        let mut reader = remote.array("dir").unwrap();
        assert_eq!(reader.item::<u32>([0, 0]).unwrap(), 0);
        writer.write((0..10, ..), 1u32).unwrap();
        writer.write((10..20, ..), 2u32).unwrap();
        for rows in [0..1, 10..11, 390..391, 0..400] {
            let found = reader.read::<Vec<u32>>((rows.clone(), ..));
            match found {
                Ok(found) => {
                    assert_eq!(found, items[rows.start as usize * 100..rows.end as usize * 100]);
                }
                Err(error) => assert_eq!(error.kind(), ErrorKind::Busy, "{error}"),
            }
        }
        reader.refresh().unwrap();
        assert_eq!(reader.read::<Vec<u32>>((9..11, 0)).unwrap(), [1, 2]);
        assert_eq!(reader.read::<Vec<u32>>(..).unwrap(), writer.read::<Vec<u32>>(..).unwrap());
    }
}

/// An object store that knows no ETags, and modification times of one second.
#[derive(Debug)]
struct NoTags(InMemory);

impl std::fmt::Display for NoTags {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("NoTags")
    }
}

#[async_trait]
impl ObjectStore for NoTags {
    async fn put_opts(&self, to: &Path, body: PutPayload, how: PutOptions) -> Result<PutResult> {
        self.0.put_opts(to, body, how).await
    }

    async fn put_multipart_opts(
        &self,
        to: &Path,
        how: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.0.put_multipart_opts(to, how).await
    }

    async fn get_opts(&self, from: &Path, how: GetOptions) -> Result<GetResult> {
        let mut result = self.0.get_opts(from, how).await?;
        result.meta.e_tag = None;
        result.meta.last_modified = Default::default();
        Ok(result)
    }

    fn delete_stream(
        &self,
        paths: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.0.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.0.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.0.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, how: CopyOptions) -> Result<()> {
        self.0.copy_opts(from, to, how).await
    }
}

#[test]
fn members_of_stores_are_read_in_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.b2z");
    let mut store = TreeStore::create(&path).unwrap();
    let items: Vec<f64> = (0..300_000).map(f64::from).collect();
    let array = NDArray::builder().chunk_shape(50_000).from_slice(&items, 300_000).unwrap();
    store.insert("/first/speed", array.schunk()).unwrap();
    store.insert("/second", NDArray::builder().arange(0u8, 9, 1).unwrap().schunk()).unwrap();
    store.finish().unwrap();

    let url = format!("file://{}", path.display());
    let (remote, path) = Remote::from_url(&url, [("", ""); 0]).unwrap();
    let store = remote.tree_store(&path).unwrap();
    assert_eq!(store.keys().collect::<Vec<_>>(), ["/first/speed", "/second"]);
    let array = NDArray::from_schunk(store.schunk("/first/speed").unwrap()).unwrap();
    assert_eq!(array.read::<Vec<f64>>(299_990..).unwrap(), items[299_990..]);
    assert!(matches!(remote.container(&path).unwrap(), Container::TreeStore(_)));
    let remote = Remote::new(Arc::new(InMemory::new()));
    remote.save("a", array.schunk(), false).unwrap();
    assert!(matches!(remote.container("a").unwrap(), Container::NDArray(_)));
}

#[test]
fn keys_are_used_unchanged() {
    let (folder, remotes) = remotes();
    let array = NDArray::builder().arange(0i32, 10, 1).unwrap();
    for remote in &remotes {
        for name in ["~a", "#a", "a[1]", "50%", "a%20b", "a b", "x/{y}", "\u{e4}"] {
            remote.save(name, array.schunk(), false).unwrap();
            assert_eq!(
                remote.array(name).unwrap().read::<Vec<i32>>(..).unwrap().len(),
                10,
                "{name}"
            );
        }
        for name in ["a//b", "a/../b", "./a"] {
            let error = remote.array(name).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{name}: {error}");
        }
        let builder = NDArray::builder().target(Target::folder(remote.folder("~d/e f").unwrap()));
        builder.from_slice(&[1u8, 2, 3], [3]).unwrap();
        assert_eq!(remote.array("~d/e f").unwrap().read::<Vec<u8>>(..).unwrap(), [1, 2, 3]);
    }
    // The path of a URL is decoded once.
    let url = format!("file://{}/", folder.path().display());
    for name in ["~a", "%23a", "a[1]", "50%25", "a%20b"] {
        let array = blosc2_object_store::open_array(&format!("{url}{name}"), [("", ""); 0]);
        assert_eq!(array.unwrap().read::<Vec<i32>>(..).unwrap().len(), 10, "{name}");
    }
}

fn put(remote: &Remote, name: &str, content: Vec<u8>) {
    let path = Path::from(name);
    // The clients of servers need it.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(remote.store().put(&path, content.into())).unwrap();
}

/// Uploads all files of a directory, as they are.
pub(crate) fn upload(remote: &Remote, folder: &std::path::Path, prefix: &str) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = format!("{prefix}/{}", path.file_name().unwrap().to_str().unwrap());
        match path.is_dir() {
            true => upload(remote, &path, &name),
            false => {
                put(remote, &name, std::fs::read(&path).unwrap());
            }
        }
    }
}

#[test]
fn stores_in_directories_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.b2d");
    let mut store = TreeStore::create(&path).unwrap();
    let items: Vec<f64> = (0..300_000).map(f64::from).collect();
    let array = NDArray::builder().chunk_shape(50_000).from_slice(&items, 300_000).unwrap();
    store.insert("/first/speed", array.schunk()).unwrap();
    let schema = Schema::new().column("time", ItemKind::Float64).column("name", ItemKind::Utf8);
    let mut table = store.create_table("/first/times", &schema).unwrap();
    let names = [Some("a"), Some(""), Some("\u{e4}\u{f6}")];
    let rows = [("time", Data::items(&[0.5, 1.5, 2.5])), ("name", Data::texts(names))];
    table.append(rows).unwrap();
    table.finish().unwrap();
    drop(table);
    store.set_attribute("/first", "author", "me").unwrap();
    let table_path = folder.path().join("table.b2d");
    let mut table = CTable::create(&table_path, &schema).unwrap();
    let rows = [("time", Data::items(&[7.5])), ("name", Data::texts([Some("b")]))];
    table.append(rows).unwrap();
    table.finish().unwrap();
    drop((table, store));

    let (_folder, remotes) = remotes();
    for remote in remotes {
        upload(&remote, &path, "x/runs.b2d");
        upload(&remote, &table_path, "x/table.b2d");
        let store = remote.tree_store("x/runs.b2d").unwrap();
        assert_eq!(store.keys().collect::<Vec<_>>(), ["/first/speed", "/first/times"]);
        assert!(!store.is_archive() && store.path().is_none());
        assert_eq!(
            store.array("/first/speed").unwrap().read::<Vec<f64>>(299_990..).unwrap(),
            items[299_990..]
        );
        assert_eq!(store.attributes("/first").unwrap(), [("author".to_owned(), "me".into())]);
        let Container::CTable(table) = store.get("/first/times").unwrap() else {
            panic!("a table")
        };
        assert_eq!(table.read::<f64>("time", ..).unwrap(), [0.5, 1.5, 2.5]);
        assert_eq!(table.values("name", ..).unwrap(), ["a", "", "\u{e4}\u{f6}"].map(Value::from));
        let Container::CTable(table) = remote.container("x/table.b2d").unwrap() else {
            panic!("a table")
        };
        assert_eq!(table.read::<f64>("time", ..).unwrap(), [7.5]);
        assert!(matches!(remote.container("x/runs.b2d").unwrap(), Container::TreeStore(_)));

        // It can be copied, and not changed.
        let (packed, copy) = (folder.path().join("copy.b2z"), folder.path().join("copy.b2d"));
        store.pack(&packed).unwrap();
        store.unpack(&copy).unwrap();
        for copied in [&packed, &copy] {
            let copied = TreeStore::open(copied).unwrap();
            assert!(copied.array("/first/speed").unwrap().read::<Vec<f64>>(..).unwrap() == items);
            assert_eq!(copied.keys().collect::<Vec<_>>(), store.keys().collect::<Vec<_>>());
        }
        std::fs::remove_file(packed).unwrap();
        std::fs::remove_dir_all(copy).unwrap();
        let mut store = store;
        let error = store.insert("/second", array.schunk()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ReadOnly, "{error}");

        let error = remote.tree_store("x/none").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        put(&remote, "y/text", b"text".to_vec());
        let error = remote.tree_store("y").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData, "{error}");
    }
}

/// Programs mark directories by empty objects. Writers have a lock file.
#[test]
fn marked_directories_are_read_and_copied() {
    let (folder, [remote, _]) = remotes();
    let array = NDArray::builder().arange(0i32, 10, 1).unwrap();
    remote.save("runs.b2d/first/a.b2nd", array.schunk(), false).unwrap();
    for marker in ["runs.b2d", "runs.b2d/first", "runs.b2d/embed.b2e.b2lock"] {
        put(&remote, marker, Vec::new());
    }
    let Container::TreeStore(store) = remote.container("runs.b2d").unwrap() else {
        panic!("a store")
    };
    assert_eq!(store.keys().collect::<Vec<_>>(), ["/first/a"]);
    let copy = folder.path().join("copy.b2d");
    store.unpack(&copy).unwrap();
    let names: Vec<_> =
        std::fs::read_dir(&copy).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["first"]);
    let copied = TreeStore::open(&copy).unwrap();
    assert_eq!(copied.array("/first/a").unwrap().read::<Vec<i32>>(..).unwrap().len(), 10);
}

/// An entry that was removed after the list is an error of its entry only; damaged ones too.
#[test]
fn entries_of_directories_can_be_missing_or_damaged() {
    let (_folder, [remote, _]) = remotes();
    let array = NDArray::builder().arange(0i32, 10, 1).unwrap();
    for name in ["a", "b", "c"] {
        remote.save(format!("s/{name}.b2nd"), array.schunk(), false).unwrap();
    }
    let store = remote.tree_store("s").unwrap();
    futures::executor::block_on(remote.store().delete(&Path::from("s/a.b2nd"))).unwrap();
    put(&remote, "s/b.b2nd", b"text".to_vec());
    assert_eq!(store.array("/a").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(store.array("/b").unwrap_err().kind(), ErrorKind::InvalidData);
    assert_eq!(store.array("/c").unwrap().read::<Vec<i32>>(..).unwrap().len(), 10);
}
