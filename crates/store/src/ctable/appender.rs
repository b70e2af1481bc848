//! The appender of tables: many small appends, compressed chunk by chunk.

use std::borrow::BorrowMut;
use std::{fmt, mem};

use crate::blosc2::Result;

use super::cells::Encoded;
use super::data::Data;
use super::{CTable, Row};

/// Minimum rows that are written at once: each write also recompresses the last chunks of variable-length columns.
const MIN_ROWS: u64 = 1 << 16;
/// Maximum bytes of collected cells, and of memory that is kept for others.
const MAX_BYTES: u64 = 256 << 20;

/// Appends rows to a table in many small parts, and compresses each chunk only once. An appender collects rows in
/// memory, and writes them when they fill the chunks at the end of the columns. Therefore the size of the parts hardly
/// matters.
///
/// Use one appender for all appends. [`CTable::append`] recompresses the last chunk of each column in each call. If
/// chunks have many rows, one appender can be more than a hundred times as fast. The chunks have the size for the
/// number of rows in [`Schema::expected_rows`](crate::Schema::expected_rows), by default up to 2<sup>20</sup> rows.
///
/// Collected rows are written in these cases:
/// - they fill chunks, and are at least 65,536 rows; or they take more than 256 MiB of memory;
/// - [`flush`](Self::flush) or [`finish`](Self::finish) is called;
/// - the appender is dropped, except during a panic. Errors of this write are ignored, so call `finish`.
///
/// Up to 256 MiB of the memory of rows that were written are used again for the next rows, until `flush` is called.
///
/// Rows are checked when they are appended, so that an error of a cell is an error of the call that passes it. After an
/// error, the appender still contains all rows of the calls that have succeeded.
///
/// Each write is like a call of [`CTable::append`]: its rows become valid in one atomic step. If the process dies,
/// collected rows are lost, and the table contains all rows that were written before. Nothing of a table in a zip file
/// is stored before [`CTable::finish`].
///
/// An appender of [`CTable::appender`] borrows the table. An appender of [`CTable::into_appender`] owns the table, and
/// can therefore be a field of a struct.
///
/// ```
/// use blosc2_store::{CTable, ItemKind, Data, Schema};
///
/// let schema = Schema::new().column("time", ItemKind::Float64).column("name", ItemKind::Utf8);
/// let mut table = CTable::in_memory(&schema)?;
/// let mut rows = table.appender()?;
/// for time in 0..2500 {
///     let name = format!("step {time}");
///     rows.append([("time", Data::items(&[f64::from(time)])), ("name", Data::texts([Some(name)]))])?;
/// }
/// assert_eq!((rows.pending(), rows.table().nrows()), (2500, 0));
/// rows.finish()?;
/// table.finish()?;
/// assert_eq!(table.nrows(), 2500);
/// # Ok::<(), blosc2::Error>(())
/// ```
pub struct TableAppender<T: BorrowMut<CTable> = CTable> {
    /// `Some` until [`finish`](Self::finish) or [`into_inner`](Self::into_inner) returns it.
    table: Option<T>,
    /// The collected rows of each column. If there are none, empty, or columns without rows whose memory is used again.
    rows: Vec<Encoded<'static>>,
    /// The memory that they take, in bytes.
    nbytes: u64,
    /// The columns that these rows make stale.
    stale: Vec<String>,
    /// The number of rows that fill the chunks, when no rows are collected. More than what is collected.
    room: u64,
}

impl CTable {
    /// Creates a [`TableAppender`], which borrows the table.
    ///
    /// # Errors
    /// [`ErrorKind::ReadOnly`](blosc2::ErrorKind::ReadOnly): the table was opened for reading.
    pub fn appender(&mut self) -> Result<TableAppender<&mut Self>> {
        TableAppender::new(self)
    }

    /// Creates a [`TableAppender`], which owns the table; [`TableAppender::finish`] returns the table.
    ///
    /// # Errors
    /// [`ErrorKind::ReadOnly`](blosc2::ErrorKind::ReadOnly): the table was opened for reading. The table is dropped.
    pub fn into_appender(self) -> Result<TableAppender> {
        TableAppender::new(self)
    }
}

impl<T: BorrowMut<CTable>> TableAppender<T> {
    fn new(table: T) -> Result<Self> {
        table.borrow().check_writable()?;
        let (rows, stale) = (Vec::new(), Vec::new());
        Ok(Self { table: Some(table), rows, nbytes: 0, stale, room: 0 })
    }

    /// Returns the table. It does not contain the collected rows yet.
    pub fn table(&self) -> &CTable {
        self.table.as_ref().expect("only `finish` takes it").borrow()
    }

    fn table_mut(&mut self) -> &mut CTable {
        self.table.as_mut().expect("only `finish` takes it").borrow_mut()
    }

    /// Returns the number of rows that are collected and not yet written.
    pub fn pending(&self) -> u64 {
        self.rows.first().map_or(0, |rows| rows.rows as u64)
    }

    /// Appends rows, as [`CTable::append`] does. All checks of the cells are made by this call.
    ///
    /// # Errors
    /// After an error, no row of this call is appended or collected, and the call can be repeated. Rows that were
    /// collected before stay collected.
    ///
    /// - [`ErrorKind::OutOfMemory`](blosc2::ErrorKind::OutOfMemory): there is not enough memory for the collected rows;
    /// - the errors of [`CTable::append`].
    pub fn append<'a, N: AsRef<str>>(
        &mut self,
        columns: impl IntoIterator<Item = (N, Data<'a>)>,
    ) -> Result<()> {
        match self.table().new_rows(columns, true)? {
            Some((rows, stale)) => self.collect(rows, stale),
            None => Ok(()),
        }
    }

    /// Appends rows, as [`CTable::append_rows`] does.
    ///
    /// # Errors
    /// Fails with the errors of [`append`](Self::append).
    pub fn append_rows<R: Row>(&mut self, rows: &[R]) -> Result<()> {
        self.append(R::columns(rows))
    }

    /// Writes the collected rows. They become valid in one atomic step; see [`CTable::append`].
    ///
    /// # Errors
    /// After an error, the rows stay collected, and the call can be repeated.
    ///
    /// Fails with the errors of [`CTable::append`].
    pub fn flush(&mut self) -> Result<()> {
        self.write()?;
        self.rows.clear();
        Ok(())
    }

    /// Writes the collected rows, and keeps their memory for other rows, if it is at most [`MAX_BYTES`].
    fn write(&mut self) -> Result<()> {
        if self.pending() == 0 {
            return Ok(());
        }
        let (rows, stale) = (mem::take(&mut self.rows), mem::take(&mut self.stale));
        let written = self.table_mut().append_collected(&rows, &stale);
        self.rows = rows;
        match written {
            Ok(()) => {
                let memory: u64 = self.rows.iter_mut().map(Encoded::clear).sum();
                if memory > MAX_BYTES {
                    self.rows.clear();
                }
                self.nbytes = 0;
            }
            Err(_) => self.stale = stale,
        }
        written
    }

    /// Writes the collected rows, and returns the table. Call [`CTable::finish`] of the table afterwards.
    ///
    /// After an error, this method drops the collected rows, and also the table if the appender owns it. To handle an
    /// error without this loss, call [`flush`](Self::flush) first.
    ///
    /// # Errors
    /// Fails with the errors of [`flush`](Self::flush).
    pub fn finish(mut self) -> Result<T> {
        let flushed = self.flush();
        // The drop does not write the rows again.
        self.rows.clear();
        let table = self.table.take();
        flushed.map(|()| table.expect("it is taken here"))
    }

    /// Returns the table, and discards the collected rows: they are not written.
    pub fn into_inner(mut self) -> T {
        self.rows.clear();
        self.table.take().expect("only `finish` and this take it")
    }

    fn collect(&mut self, mut new: Vec<Encoded<'_>>, stale: Vec<String>) -> Result<()> {
        let differ = |(old, new): (&Encoded<'_>, &Encoded<'_>)| !old.is_like(new);
        if self.rows.iter().zip(&new).any(differ) {
            // Cells that replace missing ones can have another form.
            self.flush()?;
        }
        let before = self.pending();
        let all = before + new.first().map_or(0, |rows| rows.rows as u64);
        if self.table().may_meet_null_code(all)? {
            // The codes of these strings decide whether the call is valid.
            self.flush()?;
            return self.table_mut().append_collected(&new, &stale);
        }
        if before == 0 {
            self.room = self.table().rows_to_full_chunk(MIN_ROWS)?;
        }
        let chunk = self.table().live.marks().chunk_shape()[0].max(1);
        let nbytes = new.iter().map(Encoded::nbytes).sum::<u64>();
        // The rows that are written now.
        let whole = match all.checked_sub(self.room) {
            Some(more) => self.room + more / chunk * chunk,
            None if self.nbytes + nbytes >= MAX_BYTES => all,
            None => 0,
        };
        let head = whole.saturating_sub(before) as usize;
        let rest: Vec<_> = new.iter_mut().map(|rows| rows.split_off(head)).collect();
        if whole > 0 && before == 0 {
            // What is written now is not copied.
            self.table_mut().append_collected(&new, &stale)?;
        } else if whole > 0 {
            let old = (self.nbytes, self.stale.clone());
            self.keep(new, stale.clone())?;
            if let Err(error) = self.write() {
                for rows in &mut self.rows {
                    rows.split_off(before as usize);
                }
                (self.nbytes, self.stale) = old;
                return Err(error);
            }
        }
        if whole > 0 {
            self.room = MIN_ROWS.next_multiple_of(chunk);
        }
        self.keep(rest, stale)
    }

    /// Collects rows. This cannot fail if no rows are collected yet.
    fn keep(&mut self, new: Vec<Encoded<'_>>, stale: Vec<String>) -> Result<()> {
        if new.first().is_none_or(|rows| rows.rows == 0) {
            return Ok(());
        }
        let reserved = self.rows.iter_mut().zip(&new).try_for_each(|(rows, new)| rows.reserve(new));
        match reserved {
            // The memory of rows that were written is too small.
            Err(_) if self.pending() == 0 => self.rows.clear(),
            reserved => reserved?,
        }
        self.nbytes += new.iter().map(Encoded::nbytes).sum::<u64>();
        self.stale.extend(stale);
        match self.rows.is_empty() {
            true => self.rows = new.into_iter().map(Encoded::into_owned).collect(),
            false => self.rows.iter_mut().zip(new).for_each(|(rows, new)| rows.push(new)),
        }
        Ok(())
    }
}

/// Writes the collected rows. Errors are ignored.
impl<T: BorrowMut<CTable>> Drop for TableAppender<T> {
    fn drop(&mut self) {
        // A panic can have interrupted a change of the table.
        if self.table.is_some() && !std::thread::panicking() {
            let _ = self.flush();
        }
    }
}

impl<T: BorrowMut<CTable>> fmt::Debug for TableAppender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("TableAppender");
        debug.field("pending", &self.pending()).finish_non_exhaustive()
    }
}
