//! Several changes in one commit.

use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;

use super::{Access, SChunk};
use crate::{ErrorKind, Result};

const DOING: &str = "change a frame in a transaction";

impl SChunk {
    /// Calls `work` and stores all changes that it makes with one write of the index: either all of them or, after an
    /// error, a panic or a crash, none.
    ///
    /// Outside of a transaction each change writes the index, which has up to 8 bytes for each chunk of a contiguous
    /// file or a directory. Appending 1,000 chunks to a file of 100,000 chunks in one transaction takes about one
    /// hundredth of the time of 1,000 separate changes.
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
    /// Within `work`, this handle reads its own changes. Other handles and programs see them after the commit. With
    /// [`OpenOptions::locking`](crate::OpenOptions::locking) the lock of the file is held during the call, as by
    /// [`locked`](Self::locked); otherwise other handles can read the old content at the same time. A change that fails
    /// is not part of the transaction; the changes before and after it are, unless `work` returns the error. A parameter
    /// of the handle, such as [`set_cparams`](Self::set_cparams), is not rolled back.
    ///
    /// # Memory and disk space
    /// For a contiguous frame, the compressed chunks of the transaction are held in memory until the commit; for a large
    /// amount of data, use one transaction for every 64 MiB or so. A directory stores each chunk in its file immediately;
    /// files that a crash leaves are not part of the frame. In both cases the space of replaced and deleted chunks is
    /// released or becomes a gap, as by separate changes.
    ///
    /// # Errors
    /// Fails with the errors of `work`, the [errors of changes](Self#errors-of-changes) and those of
    /// [`locked`](Self::locked), and with
    /// - [`ErrorKind::InvalidArgument`]: another transaction of this handle is in progress; or `work` has replaced the
    ///   super-chunk by another one, as by [`std::mem::replace`].
    ///
    /// After an error all changes of the transaction are rolled back, unless the message states that this was not
    /// possible.
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
            let call = own.changing(DOING, |state, _| Ok(state.begin()))?;
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
                let detail = "the closure has replaced the super-chunk by another one";
                Err(self.error(ErrorKind::InvalidArgument, DOING, detail))
            }
            Some(false) => {
                self.roll_back(call);
                Ok(())
            }
            Some(true) => self.changing(DOING, |state, broken| {
                let committed = state.commit_transaction(DOING);
                committed.inspect_err(|_| *broken = state.reload(DOING).is_err())
            }),
        }
    }

    /// Discards the changes of the transaction, if the call that started it has not ended it.
    fn roll_back(&mut self, call: &Arc<()>) {
        let state = self.state.get_mut();
        if state.transaction.as_ref().is_some_and(|transaction| transaction.is_of(call)) {
            state.roll_back();
            // The changes that could not be stored are discarded too.
            self.broken = false;
        }
        self.forget();
    }
}
