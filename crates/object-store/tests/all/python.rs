//! nginx, an S3 server, and Python's `blosc2`, which reads what this crate writes, and the reverse.

use std::thread;
use std::time::Duration;

use blosc2::storage::ReadAt;
use blosc2::{CParams, Codec, ErrorKind, NDArray, RawItems, SChunk, Target, Value};
use blosc2_object_store::{DiskCache, Remote};
use blosc2_store::Object as Container;

use crate::data::{self, within_a_minute};
use crate::servers::{BUCKET, Nginx, PlainServer, S3, run_python, write};
use crate::stores::upload;

const SHAPE: [u64; 2] = [8192, 8192];
const CHUNKS: [u64; 2] = [128, 8192];
const BLOCKS: [u64; 2] = [8, 8192];

/// The array with 64 chunks of 4 MiB, on both servers.
#[test]
fn a_box_of_a_large_array_takes_five_requests_at_most() {
    let (frame, items) = data::array(SHAPE, CHUNKS, BLOCKS);
    let expected = &items[5000 * 8192 + 100..][..64];
    let nginx = Nginx::start();
    write(&nginx.files(), "a.b2nd", &frame);
    let (before, _) = nginx.counts();
    let (remote, path) = Remote::from_url(&nginx.url("a.b2nd"), [("", ""); 0]).unwrap();
    let array = remote.array(&path).unwrap();
    assert_eq!(array.read::<Vec<f32>>((5000..5001, 100..164)).unwrap(), expected);
    let (count, bytes) = nginx.counts();
    println!("nginx: {} requests, {bytes} bytes", count - before);
    assert!(count - before <= 5 && bytes < 1 << 20);
    assert!(array.read::<Vec<f32>>(..).unwrap() == items);

    let s3 = S3::start();
    s3.remote().save("x/a.b2nd", NDArray::open_rw(frame).unwrap().schunk(), false).unwrap();
    let array = s3.remote().array("x/a.b2nd").unwrap();
    assert_eq!(array.read::<Vec<f32>>((5000..5001, 100..164)).unwrap(), expected);
    assert!(array.read::<Vec<f32>>(..).unwrap() == items);
}

#[test]
fn files_on_the_server_of_python_are_read() {
    within_a_minute(|| {
        let server = PlainServer::start();
        let (frame, items) = data::array([1024, 1024], [128, 1024], [16, 1024]);
        write(server.files(), "a b.b2nd", &frame);
        write(server.files(), "empty", b"");
        let no_options = [("", ""); 0];
        let (remote, path) = Remote::from_url(&server.url("a%20b.b2nd?x=1"), no_options).unwrap();
        assert!(remote.array(path).unwrap().read::<Vec<f32>>(..).unwrap() == items);
        assert_eq!(remote.object("empty").unwrap().size().unwrap(), 0);
        assert_eq!(remote.array("none").unwrap_err().kind(), ErrorKind::NotFound);
        let url = server.url("a%20b.b2nd");
        let (remote, path) = Remote::from_url(&url, [("download_limit", "1MiB")]).unwrap();
        let error = remote.array(path).unwrap_err().to_string();
        assert!(error.contains("download_limit") && error.contains(&url), "{error}");

        // A directory. The server knows no ETags, so the content of the index is compared.
        let path = server.files().join("dir.b2nd");
        let builder =
            NDArray::builder().target(Target::from(&path).directory(true)).chunk_shape([10, 100]);
        let mut writer = builder.from_fn([100, 100], |[row, _]| row as u16).unwrap();
        let mut reader = remote.array("dir.b2nd").unwrap();
        assert_eq!(reader.read::<Vec<u16>>((9..11, 5)).unwrap(), [9, 10]);
        writer.write((0..10, ..), 1u16).unwrap();
        writer.write((10..20, ..), 2u16).unwrap();
        for row in [0u64, 10, 50] {
            match reader.read::<Vec<u16>>((row, 5)) {
                Ok(found) => assert_eq!(found, [row as u16]),
                Err(error) => assert_eq!(error.kind(), ErrorKind::Busy, "{error}"),
            }
        }
        reader.refresh().unwrap();
        assert_eq!(reader.read::<Vec<u16>>((9..11, 5)).unwrap(), [1, 2]);
    });
}

/// A presigned URL is valid for `GET` only.
#[test]
fn presigned_urls_are_read() {
    within_a_minute(|| {
        let s3 = S3::start();
        let array = NDArray::builder().chunk_shape(1000).arange(0i64, 100_000, 1).unwrap();
        s3.remote().save("a/b c.b2nd", array.schunk(), false).unwrap();
        let program = "
import sys
import boto3
client = boto3.client('s3', endpoint_url=sys.argv[1], region_name='us-east-1',
                      aws_access_key_id='key', aws_secret_access_key='secret')
params = {'Bucket': sys.argv[2], 'Key': 'a/b c.b2nd'}
print(client.generate_presigned_url('get_object', Params=params))
";
        let url = run_python(program, &[&s3.endpoint(), BUCKET]);
        let url = url.trim();
        assert!(url.contains("Signature="), "{url}");
        let (remote, path) = Remote::from_url(url, [("", ""); 0]).unwrap();
        let found = remote.array(path).unwrap();
        assert_eq!(found.read::<Vec<i64>>(..).unwrap(), array.read::<Vec<i64>>(..).unwrap());
    });
}

#[test]
fn s3_objects_are_saved_and_read() {
    within_a_minute(|| {
        let s3 = S3::start();
        let remote = s3.remote();
        let first = NDArray::builder().arange(0i64, 100_000, 1).unwrap();
        let second = NDArray::builder().arange(1i64, 10, 1).unwrap();
        remote.save("a/first.b2nd", first.schunk(), false).unwrap();
        let error = remote.save("a/first.b2nd", second.schunk(), false).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists, "{error}");
        let opened = remote.array("a/first.b2nd").unwrap();
        assert_eq!(opened.read::<Vec<i64>>(..).unwrap(), first.read::<Vec<i64>>(..).unwrap());
        remote.save("a/first.b2nd", second.schunk(), true).unwrap();
        let found = remote.array("a/first.b2nd").unwrap();
        assert_eq!(found.read::<Vec<i64>>(..).unwrap(), second.read::<Vec<i64>>(..).unwrap());
        assert_eq!(remote.array("a/second").unwrap_err().kind(), ErrorKind::NotFound);

        // More than one part.
        let mut schunk = SChunk::in_memory::<u64>(CParams::new().level(0)).unwrap();
        let items: Vec<u64> = (0..9 << 20).collect();
        for items in items.chunks(1 << 20) {
            schunk.append(items).unwrap();
        }
        remote.save("large", &schunk, false).unwrap();
        assert!(remote.schunk("large").unwrap().read::<u64>(..).unwrap() == items);

        // A directory.
        let builder = NDArray::builder()
            .target(Target::folder(remote.folder("dir.b2nd").unwrap()))
            .chunk_shape([10, 100]);
        let mut array = builder.zeros::<u16>([100, 100]).unwrap();
        array.write((50.., ..), 7u16).unwrap();
        let found = remote.array("dir.b2nd").unwrap();
        assert_eq!(found.read::<Vec<u16>>((49..51, 0..2)).unwrap(), [0, 0, 7, 7]);
    });
}

/// Python reads by ranges what this crate has uploaded, from the same servers.
#[test]
fn python_reads_what_was_saved() {
    within_a_minute(|| {
        let s3 = S3::start();
        let items: Vec<f64> = (0..200_000).map(|at| f64::from(at).sqrt()).collect();
        let params = CParams::new().codec(Codec::Zstd);
        let builder =
            NDArray::builder().cparams(params).chunk_shape([50, 1000]).block_shape([10, 1000]);
        let array = builder.from_slice(&items, [200, 1000]).unwrap();
        s3.remote().save("dir/a.b2nd", array.schunk(), false).unwrap();
        let nginx = Nginx::start();
        write(&nginx.files(), "a.b2nd", &array.schunk().to_cframe().unwrap());
        let program = "
import sys
import blosc2
import numpy as np
url, endpoint = sys.argv[1:]
options = {}
if endpoint:
    options = {'key': 'key', 'secret': 'secret', 'client_kwargs': {'endpoint_url': endpoint}}
array = blosc2.open(url, lazy=True, storage_options=options)
expected = np.sqrt(np.arange(200_000, dtype='f8')).reshape(200, 1000)
np.testing.assert_array_equal(array[17:120, 5:10], expected[17:120, 5:10])
np.testing.assert_array_equal(array[:], expected)
print(type(array).__name__)
";
        let printed = run_python(program, &[&format!("s3://{BUCKET}/dir/a.b2nd"), &s3.endpoint()]);
        println!("S3: {printed}");
        let printed = run_python(program, &[&nginx.url("a.b2nd"), ""]);
        println!("nginx: {printed}");
    });
}

/// Python's stores and arrays, on nginx.
#[test]
fn what_python_writes_is_read() {
    within_a_minute(|| {
        let nginx = Nginx::start();
        let program = "
import sys
import blosc2
import numpy as np
folder = sys.argv[1]
for codec in [blosc2.Codec.BLOSCLZ, blosc2.Codec.LZ4, blosc2.Codec.LZ4HC, blosc2.Codec.ZLIB, blosc2.Codec.ZSTD]:
    for dtype in ['u1', '<i2', '<f4', '<f8', '<c16']:
        items = (np.arange(300 * 400) % 251).astype(dtype).reshape(300, 400)
        blosc2.asarray(items, urlpath=f'{folder}/{codec.name}-{dtype[-2:]}.b2nd', mode='w', chunks=(100, 150),
                       blocks=(20, 50), cparams={'codec': codec})
with blosc2.TreeStore(f'{folder}/store.b2z', mode='w') as store:
    store['/group/a'] = np.arange(100_000, dtype='i8').reshape(100, 1000)
    store['/b'] = np.linspace(0, 1, 50_000)
    store['/group'].vlmeta['unit'] = 'm/s'
";
        run_python(program, &[nginx.files().to_str().unwrap()]);
        let (remote, _) = Remote::from_url(&nginx.url(""), [("", ""); 0]).unwrap();
        let mut count = 0;
        for codec in ["BLOSCLZ", "LZ4", "LZ4HC", "ZLIB", "ZSTD"] {
            for dtype in ["u1", "i2", "f4", "f8", "16"] {
                let name = format!("{codec}-{dtype}.b2nd");
                let array = remote.array(&name).unwrap();
                let local = NDArray::open(nginx.files().join(&name)).unwrap();
                assert_eq!(array.dtype(), local.dtype());
                let selection = || (50..250, 149..301);
                let found = array.read::<RawItems>(selection()).unwrap().0;
                assert_eq!(found, local.read::<RawItems>(selection()).unwrap().0, "{name}");
                assert_eq!(
                    array.read::<RawItems>(..).unwrap().0,
                    local.read::<RawItems>(..).unwrap().0
                );
                count += 1;
            }
        }
        println!("{count} arrays of Python are read equal");
        let before = nginx.counts();
        let store = remote.tree_store("store.b2z").unwrap();
        assert_eq!(store.keys().collect::<Vec<_>>(), ["/b", "/group/a"]);
        let array = NDArray::from_schunk(store.schunk("/group/a").unwrap()).unwrap();
        assert_eq!(array.read::<Vec<i64>>((50, 7..9)).unwrap(), [50_007, 50_008]);
        let after = nginx.counts();
        println!(
            "a member of a store: {} requests, {} bytes",
            after.0 - before.0,
            after.1 - before.1
        );
    });
}

/// Python's store in a directory, with a table, on the S3 server.
#[test]
fn a_directory_of_python_is_read() {
    within_a_minute(|| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.b2d");
        let program = "
import sys
from dataclasses import dataclass
import blosc2
import numpy as np
@dataclass
class Row:
    time: float = blosc2.field(blosc2.float64())
    name: str = blosc2.field(blosc2.string(max_length=8))
with blosc2.TreeStore(sys.argv[1], mode='w', threshold=1000) as store:
    store['/group/a'] = np.arange(100_000, dtype='i8').reshape(100, 1000)
    store['/small'] = np.arange(3, dtype='i4')
    store['/group/rows'] = blosc2.CTable(Row, [(0.5, 'a'), (1.5, 'b')])
    store['/group'].vlmeta['unit'] = 'm/s'
";
        run_python(program, &[path.to_str().unwrap()]);
        let s3 = S3::start();
        upload(&s3.remote(), &path, "x/runs.b2d");
        // An object that was changed less than two seconds before is not stored.
        thread::sleep(Duration::from_secs(3));
        let cache = DiskCache::new(folder.path().join("cache")).unwrap();
        for turn in 0..2 {
            let remote = s3.remote().named("s3").disk_cache(&cache).unwrap();
            let store = remote.tree_store("x/runs.b2d").unwrap();
            assert_eq!(store.keys().collect::<Vec<_>>(), ["/group/a", "/group/rows", "/small"]);
            let array = store.array("/group/a").unwrap();
            assert_eq!(array.read::<Vec<i64>>((50, 7..9)).unwrap(), [50_007, 50_008]);
            assert_eq!(store.array("/small").unwrap().read::<Vec<i32>>(..).unwrap(), [0, 1, 2]);
            let Container::CTable(table) = store.get("/group/rows").unwrap() else {
                panic!("a table")
            };
            assert_eq!(table.read::<f64>("time", ..).unwrap(), [0.5, 1.5]);
            assert_eq!(table.values("name", ..).unwrap(), ["a", "b"].map(Value::from));
            assert_eq!(store.attributes("/group").unwrap(), [("unit".to_owned(), "m/s".into())]);
            println!("{:?}", remote.traffic());
            assert!(turn == 0 || remote.traffic().received == 0, "{:?}", remote.traffic());
        }
    });
}

/// The server answers the request for the start of an object with the status 304.
#[test]
fn second_runs_transfer_nothing() {
    within_a_minute(|| {
        let (frame, items) = data::array([1024, 1024], [128, 1024], [16, 1024]);
        let (nginx, s3, folder) = (Nginx::start(), S3::start(), tempfile::tempdir().unwrap());
        write(&nginx.files(), "a.b2nd", &frame);
        s3.remote().save("a.b2nd", NDArray::open_rw(frame).unwrap().schunk(), false).unwrap();
        // An object that was changed less than two seconds before is not stored.
        thread::sleep(Duration::from_secs(3));
        let cache = DiskCache::new(folder.path()).unwrap();
        for (turn, server) in [(0, "nginx"), (1, "nginx"), (0, "S3"), (1, "S3")] {
            let remote = match server {
                "S3" => s3.remote().named("s3"),
                _ => Remote::from_url(&nginx.url(""), [("", ""); 0]).unwrap().0,
            };
            let remote = remote.disk_cache(&cache).unwrap();
            let before = nginx.counts();
            assert!(remote.array("a.b2nd").unwrap().read::<Vec<f32>>(..).unwrap() == items);
            let (after, traffic) = (nginx.counts(), remote.traffic());
            println!("{server}: {traffic:?}");
            if turn == 1 {
                assert_eq!((traffic.requests, traffic.received), (1, 0), "{server}: {traffic:?}");
                let requests = usize::from(server == "nginx");
                assert_eq!((after.0 - before.0, after.1 - before.1), (requests, 0));
            }
        }
    });
}
