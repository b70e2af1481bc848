//! Responses of object stores with any faults.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::folder;
use async_trait::async_trait;
use blosc2_object_store::Remote;
use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, ObjectStoreExt, PutMultipartOptions, PutOptions, PutPayload,
    PutResult, Result,
};

use crate::walk::{walk, walk_array};

/// Opens an object, whose responses have the faults that the input describes, in every way.
///
/// The first byte is the number of responses with faults. Each has 4 bytes: the fault, and three numbers. The rest is the
/// object, or a folder of objects.
pub fn remote(input: &[u8]) {
    let Some((&count, rest)) = input.split_first() else { return };
    let Some((faults, object)) = rest.split_at_checked(usize::from(count % 16) * 4) else { return };
    let store = InMemory::new();
    let put = |path: String, content: Vec<u8>| {
        // A key can be invalid.
        if let Ok(path) = Path::parse(path) {
            futures::executor::block_on(store.put(&path, content.into())).expect("memory");
        }
    };
    match folder::unpack(object) {
        Some(files) => {
            for (name, content) in files {
                put(format!("a/{name}"), content);
            }
        }
        None => put("a".to_owned(), object.to_vec()),
    }
    let faults = faults.as_chunks::<4>().0.to_vec();
    let faulty = Faulty { inner: store, faults, next: AtomicUsize::new(0) };
    // Small requests, so that one read takes several.
    let remote =
        Remote::new(Arc::new(faulty)).gap(64).request_size(1000).concurrency(2).cache(1 << 16);
    if let Ok(array) = remote.array("a") {
        if array.info().nbytes <= 1 << 20 {
            walk_array(&array);
        }
    } else if let Ok(schunk) = remote.schunk("a")
        && schunk.nbytes() <= 1 << 20
    {
        walk(&schunk);
    }
    drop((remote.container("a"), remote.tree_store("a")));
}

/// An object store in memory whose responses have faults.
#[derive(Debug)]
struct Faulty {
    inner: InMemory,
    /// What is wrong with each response, and numbers.
    faults: Vec<[u8; 4]>,
    /// The number of the next response.
    next: AtomicUsize,
}

impl fmt::Display for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Faulty")
    }
}

#[async_trait]
impl ObjectStore for Faulty {
    async fn put_opts(&self, to: &Path, body: PutPayload, how: PutOptions) -> Result<PutResult> {
        self.inner.put_opts(to, body, how).await
    }

    async fn put_multipart_opts(
        &self,
        to: &Path,
        how: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(to, how).await
    }

    async fn get_opts(&self, from: &Path, how: GetOptions) -> Result<GetResult> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let [fault, a, b, c] = self.faults.get(number).copied().unwrap_or_default();
        let other = i64::from(i16::from_le_bytes([a, b]));
        let path = from.to_string();
        let source = "a fault".into();
        let how = match fault % 16 {
            1 => return Err(Error::NotFound { path, source }),
            2 => return Err(Error::Precondition { path, source }),
            3 => return Err(Error::NotModified { path, source }),
            4 => return Err(Error::Generic { store: "Faulty", source }),
            // The whole object, as by a server that ignores ranges.
            5 => GetOptions { range: None, ..how },
            6 => GetOptions { if_match: None, ..how },
            _ => how,
        };
        let mut result = self.inner.get_opts(from, how).await?;
        let (mut meta, mut range) = (result.meta.clone(), result.range.clone());
        let (attributes, extensions) = (result.attributes.clone(), Default::default());
        let mut body = result.bytes().await?.to_vec();
        let moved = |number: u64| number.saturating_add_signed(other);
        match fault % 16 {
            7 => meta.size = moved(meta.size),
            8 => meta.size = u64::MAX - u64::from(a),
            9 => {
                meta.e_tag =
                    [None, Some(String::new()), Some(format!("W/{b}"))][usize::from(a % 3)].clone()
            }
            10 => range = moved(range.start)..moved(range.end),
            11 => range.end = moved(range.end),
            12 => body.resize(body.len().saturating_add_signed(other as isize), c),
            13 if !body.is_empty() => {
                let at = usize::from(a) * usize::from(b) % body.len();
                body[at] ^= c;
            }
            14 => meta.location = Path::from("other"),
            _ => {}
        }
        // The body comes in parts.
        let each = usize::from(c).max(1) * 16;
        let mut parts: Vec<Result<Bytes>> =
            body.chunks(each).map(|part| Ok(Bytes::copy_from_slice(part))).collect();
        if fault % 16 == 15 {
            parts.truncate(usize::from(a));
            parts.push(Err(Error::Generic { store: "Faulty", source: "a lost connection".into() }));
        }
        let payload = GetResultPayload::Stream(stream::iter(parts).boxed());
        result = GetResult { payload, meta, range, attributes, extensions };
        Ok(result)
    }

    fn delete_stream(
        &self,
        paths: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, how: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, how).await
    }
}
