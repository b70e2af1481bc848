//! Asynchronous reads.

use std::future::Future;
use std::sync::Arc;

use blosc2::{Element, NDArray, Result, Selection};

use crate::unblock;

/// Asynchronous reads of arrays. Requests and decompression run on threads of this crate, so that the caller's runtime
/// is not blocked.
///
/// The futures work in every asynchronous runtime.
///
/// ```
/// # futures::executor::block_on(async {
/// # use blosc2_object_store::Remote;
/// use std::sync::Arc;
///
/// use blosc2::NDArray;
/// use blosc2_object_store::ReadAsync;
/// # let remote = Remote::new(Arc::new(object_store::memory::InMemory::new()));
/// # remote.save("a.b2nd", NDArray::builder().arange(0i64, 1000, 1)?.schunk(), false)?;
///
/// let array: Arc<NDArray> = remote.array_async("a.b2nd").await?.into();
/// assert_eq!(array.read_async::<i64>(10..13).await?, [10, 11, 12]);
/// # Ok::<(), blosc2::Error>(())
/// # }).unwrap();
/// ```
pub trait ReadAsync {
    /// Reads the items of a selection in C order, like [`NDArray::read`].
    ///
    /// # Errors
    /// Fails with the errors of [`NDArray::read`].
    fn read_async<T: Element + Send + 'static>(
        &self,
        selection: impl Into<Selection>,
    ) -> impl Future<Output = Result<Vec<T>>> + Send;
}

impl ReadAsync for Arc<NDArray> {
    fn read_async<T: Element + Send + 'static>(
        &self,
        selection: impl Into<Selection>,
    ) -> impl Future<Output = Result<Vec<T>>> + Send {
        let (array, selection) = (Arc::clone(self), selection.into());
        async move { unblock(move || array.read(selection)).await? }
    }
}
