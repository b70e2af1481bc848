//! Object stores with faults that servers hide.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use blosc2::{CParams, ErrorKind, SChunk};
use blosc2_object_store::Remote;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

/// An object store in memory.
#[derive(Debug, Default)]
struct Faulty {
    inner: InMemory,
    /// Refuses requests for metadata.
    refuses_head: bool,
    /// The number of bytes that bodies which do not start at 0 are too long; negative if they are too short.
    excess: isize,
    /// The error of all lists.
    list: Option<fn() -> Error>,
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
        if self.refuses_head && how.head {
            let (path, source) = (from.to_string(), "refused".into());
            return Err(Error::PermissionDenied { path, source });
        }
        let mut result = self.inner.get_opts(from, how).await?;
        if self.excess == 0 || result.range.start == 0 {
            return Ok(result);
        }
        let (meta, range) = (result.meta.clone(), result.range.clone());
        let (attributes, extensions) = (result.attributes.clone(), Default::default());
        let mut body = result.bytes().await?.to_vec();
        body.resize(body.len().saturating_add_signed(self.excess), 0);
        let body = stream::once(async move { Ok(body.into()) });
        let payload = GetResultPayload::Stream(body.boxed());
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
        match self.list {
            Some(error) => stream::once(async move { Err(error()) }).boxed(),
            None => self.inner.list(prefix),
        }
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, how: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, how).await
    }
}

/// A super-chunk of this number of MiB.
fn schunk(mib: usize) -> SChunk {
    let mut schunk = SChunk::in_memory::<u8>(CParams::new().level(0)).unwrap();
    for number in 0..mib {
        schunk.append(&vec![number as u8; 1 << 20]).unwrap();
    }
    schunk
}

#[test]
fn bodies_of_another_length_are_errors() {
    for excess in [-70_000, -1000, -1, 1, 100_000] {
        let remote = Remote::new(Arc::new(Faulty { excess, ..Faulty::default() }));
        remote.save("a", &schunk(1), false).unwrap();
        let error = remote.schunk("a").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io, "{excess}: {error}");
        // Only the start is needed of a small object.
        remote.save("small", &schunk(0), false).unwrap();
        assert_eq!(remote.schunk("small").unwrap().nchunks(), 0);
    }
}

/// A store whose files cannot be listed may exist.
#[test]
fn errors_of_lists_are_reported() {
    let generic = || Error::Generic { store: "Faulty", source: "no response in time".into() };
    let denied = || Error::PermissionDenied { path: "x".to_owned(), source: "refused".into() };
    let unknown =
        || Error::NotImplemented { operation: "list".to_owned(), implementer: "Faulty".to_owned() };
    let missing = || Error::NotFound { path: "x".to_owned(), source: "none".into() };
    type List = fn() -> Error;
    let errors: [(List, ErrorKind, &str); 4] = [
        (generic, ErrorKind::Io, "no response in time"),
        (denied, ErrorKind::Io, "refused"),
        (unknown, ErrorKind::NotFound, "x/runs.b2d"),
        (missing, ErrorKind::NotFound, "x/runs.b2d"),
    ];
    for (list, kind, text) in errors {
        let remote = Remote::new(Arc::new(Faulty { list: Some(list), ..Faulty::default() }));
        remote.save("x/runs.b2d/a.b2nd", &schunk(1), false).unwrap();
        remote.save("x/frame", &schunk(1), false).unwrap();
        let opened =
            [remote.tree_store("x/runs.b2d").map(drop), remote.container("x/runs.b2d").map(drop)];
        for error in opened.map(|opened| opened.unwrap_err()) {
            assert_eq!(error.kind(), kind, "{error}");
            assert!(error.to_string().contains(text), "{error}");
        }
        // This object is no store. The list would not change that.
        let error = remote.tree_store("x/frame").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData, "{error}");
    }
}

/// An object that cannot be looked up may exist.
#[test]
fn an_object_that_may_exist_is_not_replaced() {
    let remote = Remote::new(Arc::new(Faulty { refuses_head: true, ..Faulty::default() }));
    remote.save("a", &schunk(1), false).unwrap();
    let error = remote.save("a", &schunk(70), false).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    assert_eq!(remote.schunk("a").unwrap().nchunks(), 1);
    remote.save("a", &schunk(70), true).unwrap();
    assert_eq!(remote.schunk("a").unwrap().nchunks(), 70);
}
