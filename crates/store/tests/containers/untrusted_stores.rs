//! Stores whose names, links, special files and permissions somebody else has chosen.

#![cfg_attr(windows, expect(unused_imports, reason = "a part of the tests needs Unix"))]

use std::fs;
use std::path::Path;
use std::thread;

use blosc2::{ErrorKind, NDArray, SChunk, Target, Value};
use blosc2_store::{EmbedStore, ItemKind, Members, Object, Schema, TreeStore};

use crate::common::measure::measure;
use crate::common::run_python;

fn array(items: &[i32]) -> NDArray {
    NDArray::from_slice(items, items.len()).unwrap()
}

fn read(store: &TreeStore, key: &str) -> Vec<i32> {
    store.array(key).unwrap().read(..).unwrap()
}

#[test]
fn keys_may_look_like_temporary_files() {
    let folder = tempfile::tempdir().unwrap();
    let keys =
        ["/.blosc2-data/a", "/.blosc2-b", "/a.b2work/new", "/x/embed", "/x/embed.b2e.b2lock"];
    for name in ["a.b2d", "a.b2z"] {
        let path = folder.path().join(name);
        let mut store = TreeStore::create(&path).unwrap();
        for key in keys {
            store.insert(key, array(&[1]).schunk()).unwrap();
        }
        store.finish().unwrap();
        drop(store);
        let mut store = TreeStore::open_rw(&path).unwrap();
        store.insert("/other", array(&[2]).schunk()).unwrap();
        store.finish().unwrap();
        drop(store);
        let store = TreeStore::open(&path).unwrap();
        for key in keys {
            assert_eq!(read(&store, key), [1], "{name}, {key}");
        }
        assert_eq!(store.len(), keys.len() + 1);
        let copy = folder.path().join(if name == "a.b2d" { "c.b2z" } else { "c.b2d" });
        if name == "a.b2d" { store.pack(&copy) } else { store.unpack(&copy) }.unwrap();
        assert!(TreeStore::open(&copy).unwrap().keys().eq(store.keys()));
    }
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn keys_of_python_survive_a_change_of_another_key() {
    let folder = tempfile::tempdir().unwrap();
    let script = r#"
import blosc2

for name in ["a.b2d", "a.b2z"]:
    with blosc2.TreeStore(name, mode="w") as store:
        for key in ["/.blosc2-data/a", "/embed", "/embed.b2e.b2work/a", "/t/_meta", "/_valid_rows"]:
            store[key] = blosc2.arange(3, dtype="i4")
"#;
    run_python(script, folder.path(), &[]);
    for name in ["a.b2d", "a.b2z"] {
        let path = folder.path().join(name);
        let mut store = TreeStore::open_rw(&path).unwrap();
        assert_eq!(read(&store, "/.blosc2-data/a"), [0, 1, 2]);
        for key in ["/other", "/embed.b2", "/_meta.x", "/.a", "/a."] {
            store.insert(key, array(&[2]).schunk()).unwrap();
        }
        store.finish().unwrap();
    }
    let script = r#"
import blosc2

for name in ["a.b2d", "a.b2z"]:
    store = blosc2.open(name, mode="r")
    assert type(store) is blosc2.TreeStore
    for key in ["/.blosc2-data/a", "/embed", "/embed.b2e.b2work/a", "/t/_meta", "/_valid_rows"]:
        assert store[key][:].tolist() == [0, 1, 2], key
    for key in ["/other", "/embed.b2", "/_meta.x", "/.a", "/a."]:
        assert store[key][:].tolist() == [2], key
    assert len([key for key in store.keys() if not isinstance(store[key], blosc2.TreeStore)]) == 10
"#;
    run_python(script, folder.path(), &[]);
}

#[test]
fn keys_that_python_reads_otherwise_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = TreeStore::create(folder.path().join("a.b2d")).unwrap();
    let mut meta = SChunk::in_memory::<u8>(blosc2::CParams::new()).unwrap();
    for key in ["/_meta", "/_meta/x", "/...", "/a/....", "/embed.b2e/x", "/embed.b2e.b2lock/x"] {
        let refused = |result: blosc2::Result<()>| {
            assert_eq!(result.unwrap_err().kind(), ErrorKind::InvalidArgument, "{key}");
        };
        refused(store.insert(key, array(&[1]).schunk()));
        refused(store.insert(key, &meta));
        refused(store.create_array(key, |make| make.zeros::<u8>(&[1])).map(drop));
    }
    store.set_attribute("/_meta", "x", &1).unwrap_err();
    // The description of a table, and keys that are only similar.
    meta.vlmeta_mut().set_value("kind", "ctable").unwrap();
    meta.vlmeta_mut().set_value("version", &1).unwrap();
    store.insert("/_meta", &meta).unwrap();
    for key in ["/x/_meta", "/_metadata", "/.../x", "/.a", "/__vlmeta__/x", "/embed", "/embed.b2e"]
    {
        store.insert(key, array(&[1]).schunk()).unwrap();
    }
    // In an embedded store, keys are not names of files.
    EmbedStore::in_memory().unwrap().insert("/_meta", array(&[1]).schunk()).unwrap();
}

#[test]
fn a_dot_in_a_folder_does_not_start_an_extension() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.b2d");
    let mut store = TreeStore::create(&path).unwrap();
    store.insert("/a.b/c", array(&[1]).schunk()).unwrap();
    store.insert("/x", array(&[2]).schunk()).unwrap();
    drop(store);
    fs::rename(path.join("a.b/c.b2nd"), path.join("a.b/c")).unwrap();
    fs::rename(path.join("x.b2nd"), path.join("....b2nd")).unwrap();
    let store = TreeStore::open(&path).unwrap();
    assert!(store.keys().eq(["/....b2nd", "/a.b/c"]));
    let members = Members::open(&path).unwrap();
    assert_eq!(members.get("a.b/c").unwrap().key().as_deref(), Some("/a.b/c"));
    store.pack(folder.path().join("a.b2z")).unwrap();
    let store = TreeStore::open(folder.path().join("a.b2z")).unwrap();
    assert!(store.keys().eq(["/....b2nd", "/a.b/c"]));
}

#[test]
fn attributes_lead_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.b2d");
    super::stores::with_embedded(&path, &["/../x/__vlmeta__", "/a/../../x/__vlmeta__"]);
    let mut store = TreeStore::open_rw(&path).unwrap();
    for group in ["/../x", "/a/../../x", "/..", "", "x"] {
        let error = store.remove_attribute(group, "name").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{group}");
        let error = store.set_attribute(group, "name", &1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{group}");
    }
    drop(store);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn removing_a_group_of_embedded_entries_writes_their_list_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.b2d");
    let keys: Vec<String> = (0..1500).map(|number| format!("/group/{number}")).collect();
    let mut keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    keys.push("/one");
    super::stores::with_embedded(&path, &keys);
    let mut store = TreeStore::open_rw(&path).unwrap();
    let (removed, one, _) = measure(|| store.remove("/one").unwrap());
    removed.unwrap();
    let (removed, group, _) = measure(|| store.remove("/group").unwrap());
    removed.unwrap();
    assert!(store.keys().eq(["/good"]));
    // It would be hundreds of times the work. `measure` returns the time 0 on emulated platforms.
    assert!(group.is_zero() || group < 40 * one, "{group:?} for all, {one:?} for one");
}

#[test]
fn what_a_killed_program_has_left_is_not_listed_and_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.b2d");
    TreeStore::create(&path).unwrap().insert("/a", array(&[1]).schunk()).unwrap();
    let (beside, inside) = (folder.path().join("a.b2d.b2work"), path.join("embed.b2e.b2work"));
    for work in [&beside, &inside] {
        fs::create_dir(work).unwrap();
        fs::write(work.join("lock"), b"").unwrap();
        fs::copy(path.join("a.b2nd"), work.join("new")).unwrap();
    }
    let store = TreeStore::open(&path).unwrap();
    assert!(store.keys().eq(["/a"]));
    assert!(Members::open(&path).unwrap().iter().all(|member| !member.name().contains("work")));
    store.pack(folder.path().join("p.b2z")).unwrap();
    assert_eq!(TreeStore::open(folder.path().join("p.b2z")).unwrap().len(), 1);
    drop(TreeStore::open_rw(&path).unwrap());
    assert!(!beside.exists() && !inside.exists());

    // A file that is that of a key is kept.
    fs::create_dir(&inside).unwrap();
    fs::copy(path.join("a.b2nd"), inside.join("a.b2nd")).unwrap();
    drop(TreeStore::open_rw(&path).unwrap());
    assert!(TreeStore::open(&path).unwrap().keys().eq(["/a", "/embed.b2e.b2work/a"]));

    // The folder above the store cannot contain temporary files.
    fs::write(&beside, b"something else").unwrap();
    let error = TreeStore::open_rw(&path).unwrap().insert("/b", array(&[2]).schunk()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists, "{error}");
    assert!(TreeStore::open(&path).unwrap().keys().eq(["/a", "/embed.b2e.b2work/a"]));
    fs::remove_dir_all(&inside).unwrap();
    let mut store = TreeStore::open_rw(&path).unwrap();
    store.insert("/b", array(&[2]).schunk()).unwrap();
    drop(store.create_array("/c", |make| make.zeros::<u8>(&[10])).unwrap());
    assert!(store.keys().eq(["/a", "/b", "/c"]));
    drop(store);
    assert!(TreeStore::open(&path).unwrap().keys().eq(["/a", "/b", "/c"]));
    assert!(!inside.exists());
    assert_eq!(fs::read(&beside).unwrap(), b"something else");
}

#[test]
fn a_folder_with_the_name_of_the_temporary_one_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.b2d", "a.b2z"] {
        let path = folder.path().join(name);
        let mut store = TreeStore::create(&path).unwrap();
        store.insert("/a", array(&[1]).schunk()).unwrap();
        store.finish().unwrap();
        drop(store);
        let other = folder.path().join(format!("{name}.b2work"));
        fs::create_dir(&other).unwrap();
        fs::write(other.join("thesis"), b"precious").unwrap();
        match TreeStore::open_rw(&path) {
            // The folder inside the store is used.
            Ok(mut store) => store.insert("/b", array(&[2]).schunk()).unwrap(),
            Err(error) => {
                assert_eq!((error.kind(), name), (ErrorKind::AlreadyExists, "a.b2z"), "{error}");
            }
        }
        assert_eq!(fs::read(other.join("thesis")).unwrap(), b"precious");
        assert!(TreeStore::open(&path).unwrap().contains("/a"));
    }
}

#[test]
fn tables_of_one_store_are_changed_by_several_threads() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = TreeStore::create(folder.path().join("a.b2d")).unwrap();
    let schema = Schema::new().column("n", ItemKind::Int8);
    let tables = [0, 1].map(|at| store.create_table(&format!("/t{at}"), &schema).unwrap());
    thread::scope(|scope| {
        for mut table in tables {
            scope.spawn(move || {
                for number in 0..40 {
                    table.set_attribute("number", &number).unwrap();
                }
            });
        }
    });
    for key in ["/t0", "/t1"] {
        let Object::CTable(table) = store.get(key).unwrap() else { panic!("a table") };
        assert_eq!(table.attributes().unwrap(), [("number".to_owned(), 39.into())]);
    }
}

#[test]
fn groups_can_look_like_files_of_a_key() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.b2d");
    let mut store = TreeStore::create(&path).unwrap();
    store.insert("/a", array(&[1]).schunk()).unwrap();
    store.insert("/a.b2f/x", array(&[2]).schunk()).unwrap();
    store.insert("/a", array(&[3]).schunk()).unwrap();
    assert_eq!((read(&store, "/a"), read(&store, "/a.b2f/x")), (vec![3], vec![2]));
    store.remove("/a").unwrap();
    drop(store);
    assert!(TreeStore::open(&path).unwrap().keys().eq(["/a.b2f/x"]));
}

#[test]
fn a_zip_file_that_was_removed_meanwhile_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.b2z");
    TreeStore::create(&path).unwrap().finish().unwrap();
    let mut store = TreeStore::open_rw(&path).unwrap();
    store.insert("/a", array(&[1]).schunk()).unwrap();
    fs::remove_file(&path).unwrap();
    // It would not have the permissions of the removed file.
    assert_eq!(store.finish().unwrap_err().kind(), ErrorKind::Busy);
    assert!(!path.exists());
}

#[cfg(unix)]
mod unix {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::common::{Rng, repeats};

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn links_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.b2d");
        let out = folder.path().join("out");
        fs::create_dir(&out).unwrap();
        array(&[1, 2]).save(out.join("secret.b2nd")).unwrap();
        let mut store = TreeStore::create(&path).unwrap();
        store.insert("/real", array(&[7]).schunk()).unwrap();
        drop(store);
        symlink(&out, path.join("folder")).unwrap();
        symlink(out.join("secret.b2nd"), path.join("file.b2nd")).unwrap();
        symlink(path.join("real.b2nd"), path.join("same.b2nd")).unwrap();
        symlink("/dev/zero", path.join("device.b2nd")).unwrap();

        let mut store = TreeStore::open_rw(&path).unwrap();
        assert!(store.keys().eq(["/real"]));
        for key in ["/file", "/folder/secret", "/device", "/same"] {
            assert_eq!(store.get(key).unwrap_err().kind(), ErrorKind::NotFound);
            assert_eq!(store.edit(key).unwrap_err().kind(), ErrorKind::NotFound);
            assert_eq!(store.remove(key).unwrap_err().kind(), ErrorKind::NotFound);
        }
        let error = store.insert("/folder/x", array(&[3]).schunk()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        let error = store.set_attribute("/folder", "x", &1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        let names = |members: &Members| -> Vec<String> {
            members.iter().map(|member| member.name().to_owned()).collect()
        };
        assert_eq!(names(&Members::open(&path).unwrap()), ["embed.b2e", "real.b2nd"]);
        // Copies do not have them.
        store.pack(folder.path().join("p.b2z")).unwrap();
        let packed = Members::open(folder.path().join("p.b2z")).unwrap();
        assert_eq!(names(&packed), ["embed.b2e", "real.b2nd"]);
        store.unpack(folder.path().join("u.b2d")).unwrap();
        assert_eq!(fs::read_dir(folder.path().join("u.b2d")).unwrap().count(), 2);
        // An array replaces the link, not its target.
        store.insert("/file", array(&[3]).schunk()).unwrap();
        assert!(!path.join("file.b2nd").is_symlink());
        assert_eq!(fs::read_dir(&out).unwrap().count(), 1);
        let secret = NDArray::open(out.join("secret.b2nd")).unwrap();
        assert_eq!(secret.read::<Vec<i32>>(..).unwrap(), [1, 2]);
        drop(store);

        // Nor those of the embedded store and the lock.
        fs::rename(path.join("embed.b2e"), out.join("embed.b2e")).unwrap();
        symlink(out.join("embed.b2e"), path.join("embed.b2e")).unwrap();
        assert!(!TreeStore::is_at(&path).unwrap());
        assert_eq!(TreeStore::open(&path).unwrap_err().kind(), ErrorKind::InvalidData);
        assert_eq!(TreeStore::open_rw(&path).unwrap_err().kind(), ErrorKind::InvalidData);
        fs::remove_file(path.join("embed.b2e")).unwrap();
        fs::rename(out.join("embed.b2e"), path.join("embed.b2e")).unwrap();
        let lock = path.join("embed.b2e.b2lock");
        fs::remove_file(&lock).unwrap();
        fs::write(out.join("victim"), b"precious").unwrap();
        symlink(out.join("victim"), &lock).unwrap();
        assert_eq!(TreeStore::open_rw(&path).unwrap_err().kind(), ErrorKind::Unsupported);
        fs::remove_file(&lock).unwrap();
        fs::hard_link(out.join("victim"), &lock).unwrap();
        assert_eq!(TreeStore::open_rw(&path).unwrap_err().kind(), ErrorKind::Unsupported);
        assert_eq!(fs::read(out.join("victim")).unwrap(), b"precious");
        // The path of a store may be a link.
        fs::remove_file(&lock).unwrap();
        symlink(&path, folder.path().join("link.b2d")).unwrap();
        let mut store = TreeStore::open_rw(folder.path().join("link.b2d")).unwrap();
        store.insert("/by/link", array(&[4]).schunk()).unwrap();
        assert_eq!(TreeStore::open_rw(&path).unwrap_err().kind(), ErrorKind::Busy);
    }

    #[test]
    fn chunks_of_a_sparse_frame_are_not_read_through_links() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.b2d");
        drop(TreeStore::create(&path).unwrap());
        let items: Vec<i32> = (0..1000).collect();
        let builder = NDArray::builder()
            .chunk_shape([100])
            .target(Target::from(path.join("sparse.b2nd")).directory(true));
        builder.from_slice(&items, [1000]).unwrap();
        let mut store = TreeStore::open_rw(&path).unwrap();
        assert_eq!(read(&store, "/sparse"), items);
        for error in [store.edit("/sparse").map(drop), store.remove("/sparse")] {
            assert_eq!(error.unwrap_err().kind(), ErrorKind::Unsupported);
        }
        let chunk = path.join("sparse.b2nd").join("00000003.chunk");
        fs::rename(&chunk, folder.path().join("chunk")).unwrap();
        symlink(folder.path().join("chunk"), &chunk).unwrap();
        let array = store.array("/sparse").unwrap();
        assert_eq!(array.read::<Vec<i32>>(0..300).unwrap(), items[..300]);
        array.read::<Vec<i32>>(300..301).unwrap_err();
        fs::rename(path.join("sparse.b2nd"), folder.path().join("moved")).unwrap();
        symlink(folder.path().join("moved"), path.join("sparse.b2nd")).unwrap();
        assert!(TreeStore::open(&path).unwrap().is_empty());
    }

    /// Makes a call on a thread. Panics if it takes more than a minute.
    fn ends<T: Send + 'static>(call: impl FnOnce() -> T + Send + 'static) -> T {
        let (send, receive) = mpsc::channel();
        thread::spawn(move || send.send(call()));
        receive.recv_timeout(Duration::from_secs(60)).expect("the call hangs")
    }

    fn pipe(path: &Path) {
        let made = std::process::Command::new("mkfifo").arg(path).status().unwrap();
        assert!(made.success());
    }

    #[test]
    fn pipes_do_not_block() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.b2d");
        let mut store = TreeStore::create(&path).unwrap();
        store.insert("/real", array(&[7]).schunk()).unwrap();
        drop(store);
        for name in ["a.b2nd", "b", "embed.b2e.b2lock.b2nd"] {
            pipe(&path.join(name));
        }
        let packed = folder.path().join("p.b2z");
        let unpacked = folder.path().join("u.b2d");
        ends({
            let path = path.clone();
            move || {
                let mut store = TreeStore::open_rw(&path).unwrap();
                assert!(store.keys().eq(["/real"]));
                store.pack(packed).unwrap();
                store.unpack(unpacked).unwrap();
                assert_eq!(store.get("/a").unwrap_err().kind(), ErrorKind::NotFound);
                store.insert("/a", array(&[1]).schunk()).unwrap();
                assert_eq!(Members::open(&path).unwrap().iter().count(), 3);
            }
        });
        for name in ["embed.b2e", "embed.b2e.b2lock"] {
            let _ = fs::remove_file(path.join(name));
            pipe(&path.join(name));
            let path = path.clone();
            ends(move || TreeStore::open_rw(&path).map(drop).unwrap_err());
        }
        let alone = folder.path().join("pipe.b2z");
        pipe(&alone);
        ends(move || {
            TreeStore::open(&alone).unwrap_err();
            TreeStore::open_rw(&alone).unwrap_err();
            Members::open(&alone).unwrap_err();
            EmbedStore::open(&alone).unwrap_err();
            EmbedStore::open_rw(&alone).unwrap_err();
            Object::open(&alone).unwrap_err();
        });
    }

    #[test]
    fn a_file_with_other_names_is_copied_before_it_is_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.b2d");
        super::super::stores::with_embedded(&path, &["/embedded"]);
        let mut store = TreeStore::open_rw(&path).unwrap();
        store.insert("/a", array(&[1, 2]).schunk()).unwrap();
        drop(store);
        let (a, embed) = (folder.path().join("a"), folder.path().join("e"));
        fs::hard_link(path.join("a.b2nd"), &a).unwrap();
        fs::hard_link(path.join("embed.b2e"), &embed).unwrap();
        let before = (fs::read(&a).unwrap(), fs::read(&embed).unwrap());
        let mut store = TreeStore::open_rw(&path).unwrap();
        let Object::NDArray(mut edited) = store.edit("/a").unwrap() else { panic!() };
        edited.write(.., &[8, 9]).unwrap();
        drop(edited);
        store.remove("/embedded").unwrap();
        drop(store);
        assert_eq!(read(&TreeStore::open(&path).unwrap(), "/a"), [8, 9]);
        assert_eq!((fs::read(&a).unwrap(), fs::read(&embed).unwrap()), before);
        assert_eq!(fs::metadata(&a).unwrap().nlink(), 1);

        drop(EmbedStore::create(folder.path().join("a.b2e")).unwrap());
        fs::hard_link(folder.path().join("a.b2e"), folder.path().join("b.b2e")).unwrap();
        let error = EmbedStore::open_rw(folder.path().join("a.b2e")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    }

    #[test]
    fn a_private_store_stays_private() {
        let folder = tempfile::tempdir().unwrap();
        let (zip, directory) = (folder.path().join("a.b2z"), folder.path().join("a.b2d"));
        for path in [&zip, &directory] {
            let mut store = TreeStore::create(path).unwrap();
            store.insert("/a", array(&[1]).schunk()).unwrap();
            store.finish().unwrap();
        }
        // New stores have the permissions of any new file or folder.
        fs::write(folder.path().join("file"), b"").unwrap();
        fs::create_dir(folder.path().join("folder")).unwrap();
        let (of_file, of_folder) =
            (mode(&folder.path().join("file")), mode(&folder.path().join("folder")));
        let packed = folder.path().join("p.b2z");
        TreeStore::open(&directory).unwrap().pack(&packed).unwrap();
        let unpacked = folder.path().join("u.b2d");
        TreeStore::open(&zip).unwrap().unpack(&unpacked).unwrap();
        let embedded = folder.path().join("a.b2e");
        drop(EmbedStore::create(&embedded).unwrap());
        for path in [&zip, &packed, &embedded, &directory.join("a.b2nd"), &unpacked.join("a.b2nd")]
        {
            assert_eq!(mode(path), of_file, "{path:?}");
        }
        for path in [&directory, &unpacked] {
            assert_eq!(mode(path), of_folder, "{path:?}");
        }

        set_mode(&zip, 0o600);
        let mut store = TreeStore::open_rw(&zip).unwrap();
        store.insert("/b", array(&[2]).schunk()).unwrap();
        let work = folder.path().join("a.b2z.b2work");
        assert_eq!(mode(&work), 0o700);
        for entry in fs::read_dir(folder.path()).unwrap() {
            let path = entry.unwrap().path();
            let known = [&zip, &directory, &packed, &unpacked, &embedded, &work];
            let is_known = known.contains(&&path) || path.extension().is_none();
            assert!(is_known || path.ends_with("a.b2e.b2lock"), "{path:?}");
        }
        store.finish().unwrap();
        assert_eq!(mode(&zip), 0o600);
        drop(store);
        assert!(!work.exists());
        // A folder that somebody else has prepared is not used.
        fs::create_dir(&work).unwrap();
        set_mode(&work, 0o777);
        let store = TreeStore::open_rw(&zip).unwrap();
        assert_eq!(mode(&work), 0o700);
        drop(store);

        set_mode(&directory.join("a.b2nd"), 0o600);
        let mut store = TreeStore::open_rw(&directory).unwrap();
        store.insert("/a", array(&[3]).schunk()).unwrap();
        assert_eq!(mode(&directory.join("a.b2nd")), 0o600);
        store.unpack(folder.path().join("v.b2d")).unwrap();
        assert_eq!(mode(&folder.path().join("v.b2d/a.b2nd")), 0o600);
    }

    /// A group is replaced by a link again and again, while entries below it are changed.
    #[test]
    fn a_link_that_replaces_a_folder_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, out) = (folder.path().join("a.b2d"), folder.path().join("out"));
        fs::create_dir(&out).unwrap();
        let mut store = TreeStore::create(&path).unwrap();
        store.insert("/g/a", array(&[1]).schunk()).unwrap();
        store.insert("/g/b", array(&[1]).schunk()).unwrap();
        for name in ["a.b2nd", "b.b2nd", "d.b2nd"] {
            array(&[1]).save(out.join(name)).unwrap();
        }
        let precious = fs::read(out.join("a.b2nd")).unwrap();
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let (group, real) = (path.join("g"), path.join("real"));
                let mut rng = Rng(7);
                let mut wait = || {
                    let start = Instant::now();
                    let time = Duration::from_micros(rng.below(100));
                    while start.elapsed() < time {}
                };
                while !stop.load(Ordering::Relaxed) {
                    if fs::rename(&group, &real).is_ok() {
                        let _ = symlink(&out, &group);
                        wait();
                        // A change may have made a folder of this name.
                        while fs::rename(&real, &group).is_err() {
                            let _ = fs::remove_file(&group).or_else(|_| fs::remove_dir_all(&group));
                        }
                    }
                    wait();
                }
            });
            for round in 2..repeats(20_000) {
                if let Ok(Object::NDArray(mut a)) = store.edit("/g/a") {
                    let _ = a.write(.., &[round as i32]);
                }
                // These take longer.
                if round % 20 == 0 {
                    let _ = store.insert("/g/c", array(&[round as i32]).schunk());
                    let _ = store.create_array("/g/d", |make| make.zeros::<u8>(&[3]));
                    let _ = store.set_attribute("/g", "round", &round);
                    let _ = store.remove("/g/c");
                }
            }
            stop.store(true, Ordering::Relaxed);
        });
        let mut names: Vec<_> =
            fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["a.b2nd", "b.b2nd", "d.b2nd"]);
        for name in names {
            assert_eq!(fs::read(out.join(name)).unwrap(), precious);
        }
    }
}

#[test]
fn values_of_a_crafted_registry_are_not_paths() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.b2d");
    super::stores::with_embedded(&path, &[]);
    let mut embed = SChunk::open_rw(path.join("embed.b2e")).unwrap();
    let entry = Value::from([("kind", "ctable".into())]);
    let registry = Value::from([("/../x", entry.clone()), ("/...", entry)]);
    embed.vlmeta_mut().set_value("_object_registry", &registry).unwrap();
    drop(embed);
    let mut store = TreeStore::open_rw(&path).unwrap();
    assert!(store.keys().eq(["/...", "/good"]));
    store.get("/...").unwrap_err();
    store.remove("/...").unwrap();
    assert!(store.keys().eq(["/good"]));
}
