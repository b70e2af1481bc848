//! Several changes in one commit.

use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;

use super::store::Transaction;
use super::{Access, SChunk};
use crate::{ErrorKind, Result};

const DOING: &str = "change a frame in a transaction";

impl SChunk {
    /// Calls `work` and stores all changes of `work` in one commit. After an error, a panic or a crash, none of the
    /// changes is stored.
    ///
    /// A transaction writes the index of the frame once. Outside of a transaction, each change that adds, removes or
    /// moves a chunk writes the complete index. In one transaction, appending 1,000 small chunks to a file of 100,000
    /// chunks is about 80 times as fast.
    ///
    /// ```
    /// use blosc2::{CParams, SChunk};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("numbers.b2frame");
    /// let mut schunk = SChunk::create::<u32>(&path, &CParams::default())?;
    /// schunk.transaction(|schunk| {
    ///     for start in 0..100 {
    ///         schunk.append(&[start, start + 1, start + 2])?;
    ///     }
    ///     schunk.delete(0)?;
    ///     schunk.vlmeta_mut().set("complete", b"yes")
    /// })?;
    /// assert_eq!(schunk.nchunks(), 99);
    ///
    /// let failed = schunk.transaction(|schunk| {
    ///     schunk.delete(0)?;
    ///     schunk.delete(1000)
    /// });
    /// assert!(failed.is_err());
    /// assert_eq!(schunk.nchunks(), 99);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Within `work`, all methods of the super-chunk are available, and reads return the new content. Other handles and
    /// programs read the old content until the commit. With [`OpenOptions::locking`](crate::OpenOptions::locking), the
    /// transaction holds the lock of the file until it ends; see [`locked`](Self::locked).
    ///
    /// A change that fails within `work` is not part of the transaction. If `work` handles this error and returns `Ok`,
    /// the other changes are stored. A rollback does not affect the parameters of the handle, for example the
    /// parameters of [`set_cparams`](Self::set_cparams).
    ///
    /// The new compressed chunks stay in memory until the commit. A commit to a contiguous file may copy the chunks,
    /// and then needs twice this memory. Therefore split large amounts of data into several transactions, for example
    /// of 64 MiB.
    ///
    /// # Errors
    /// Fails with the errors of `work`, the [errors of changes](Self#errors-of-changes), the errors of
    /// [`locked`](Self::locked), and with
    /// - [`ErrorKind::InvalidArgument`]: `work` started another transaction of this super-chunk, or replaced this
    ///   super-chunk with another one, for example with [`std::mem::replace`].
    pub fn transaction<R>(&mut self, work: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        Self::transaction_for(self, |schunk| schunk, work)
    }

    /// Like [`transaction`](Self::transaction), for the owner of a super-chunk.
    pub(crate) fn transaction_for<O, R>(
        owner: &mut O,
        schunk: impl Fn(&mut O) -> &mut Self,
        work: impl FnOnce(&mut O) -> Result<R>,
    ) -> Result<R> {
        schunk(owner).check_change(DOING, Access::Append)?;
        Self::kept_for(owner, &schunk, |owner| {
            let own = schunk(owner);
            if own.look().transaction.is_some() {
                let detail = "another transaction of this handle is in progress";
                return Err(own.error(ErrorKind::InvalidArgument, DOING, detail));
            }
            let call = Arc::new(());
            own.changing(DOING, |state, _| {
                state.transaction = Some(Transaction::new(&state.outline, &call));
                Ok(())
            })?;
            let gate = own.gate().filter(|gate| gate.is_locking());
            let calling = gate.as_ref().map(|gate| gate.calling());
            let result = panic::catch_unwind(AssertUnwindSafe(|| work(owner)));
            drop(calling);
            let own = schunk(owner);
            let result = result.map(|result| {
                let value = result?;
                own.commit_transaction(&call)?;
                Ok(value)
            });
            if !matches!(result, Ok(Ok(_))) {
                own.roll_back(&call);
            }
            result.unwrap_or_else(|payload| panic::resume_unwind(payload))
        })
    }

    fn commit_transaction(&mut self, call: &Arc<()>) -> Result<()> {
        let is_changed = match &self.look().transaction {
            Some(transaction) if transaction.is_of(call) => Some(transaction.is_changed()),
            _ => None,
        };
        match is_changed {
            None => {
                let detail = "the closure has replaced the super-chunk with another one";
                Err(self.error(ErrorKind::InvalidArgument, DOING, detail))
            }
            Some(false) => {
                self.roll_back(call);
                Ok(())
            }
            Some(true) => self.changing(DOING, |state, broken| {
                let committed = state.commit_transaction(DOING);
                committed.inspect_err(|_| *broken = state.reload(DOING).is_err())?;
                *broken = !state.reclaim(DOING);
                Ok(())
            }),
        }
    }

    /// Discards the changes of the transaction, if the transaction is in progress and `call` started it.
    fn roll_back(&mut self, call: &Arc<()>) {
        let state = self.state.get_mut();
        if state.transaction.as_ref().is_some_and(|transaction| transaction.is_of(call)) {
            state.roll_back();
        }
        self.forget();
    }
}
