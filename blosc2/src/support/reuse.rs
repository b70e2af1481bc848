//! Contexts that functions without a context of the caller keep for the next call on the same thread. Creating a context
//! takes longer than decompressing a chunk of 4 KiB.

use std::cell::Cell;
use std::thread::LocalKey;

use crate::Result;

/// The maximum size in bytes of data for which a context is kept, so that a thread does not keep much memory.
pub(crate) const MOST: usize = 64 << 10;

/// The context of a thread.
pub(crate) type Reusable<T> = Cell<Option<Box<T>>>;

/// Calls `work` with the kept context if it `suits`, and with a new context otherwise. Keeps the context for the next
/// call. If `keep` is false, the context is new and is not kept. A context must not be kept if it uses threads of C,
/// which would stay alive.
pub(crate) fn with<T, R>(
    kept: &'static LocalKey<Reusable<T>>,
    keep: bool,
    suits: impl FnOnce(&T) -> bool,
    create: impl FnOnce() -> Result<T>,
    work: impl FnOnce(&mut T) -> Result<R>,
) -> Result<R> {
    if !keep {
        return work(&mut create()?);
    }
    // While the thread exits, its contexts may have been dropped.
    let found = kept.try_with(Cell::take).ok().flatten().filter(|context| suits(context));
    let mut context = found.map_or_else(|| create().map(Box::new), Ok)?;
    let result = work(&mut context);
    // A closure in `work` may have kept another context, which is dropped here.
    drop(kept.try_with(|kept| kept.replace(Some(context))));
    result
}
