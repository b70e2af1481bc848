//! Writing columns, for each kind of storage.

use std::sync::OnceLock;

use crate::blosc2::dtype::ByteOrder;
use crate::blosc2::elements::bytes_of;
use crate::blosc2::{Dtype, ErrorKind, NDArray, RawItems, Result, SChunk, Threads, Value};

use super::WRITE;
use super::cells::{Cells, Encoded, Texts};
use super::column::{Content, Stored};
use super::live::{AT_ONCE, LiveRows, Span};
use super::part::row_bytes;
use super::read::read_texts;
use super::splice::{replace, with_rows};
use crate::BatchArray;
use crate::batch_array::{Batches, Items};
use crate::item_type::BATCH_ROWS;
use crate::limits::{MAX_BATCH, check_readable};
use crate::tag::{error, weight};

impl Stored {
    /// The arrays with a row for each place of the table, and the mark of new rows.
    fn arrays(&mut self) -> impl Iterator<Item = (&mut NDArray, bool)> {
        let items = match &mut self.content {
            Content::Items(array) | Content::Codes { codes: array, .. } => Some((array, false)),
            _ => None,
        };
        items.into_iter().chain(self.marks.as_mut().map(|marks| (marks, true)))
    }

    /// Changes the number of rows that fixed-size items have room for.
    pub(super) fn resize(&mut self, rows: u64) -> Result<()> {
        self.arrays().try_for_each(|(array, mark)| {
            let old = array.shape()[0];
            with_rows(array, rows, |array| match mark && rows > old {
                true => array.write(old..rows, true),
                false => Ok(()),
            })
        })
    }

    /// Removes the rows from `rows` on. Storage that keeps places for rows that do not exist is not changed.
    pub(super) fn truncate(&mut self, rows: u64) -> Result<()> {
        match &mut self.content {
            Content::Items(_) | Content::Codes { .. } => Ok(()),
            Content::Texts { offsets, bytes } => {
                if offsets.shape()[0] <= rows + 1 {
                    return Ok(());
                }
                let used = check_end(offsets, bytes, offsets.item::<i64>([rows])?)?;
                offsets.resize([rows + 1])?;
                bytes.resize([used.max(1)])
            }
            Content::Batches(array) if array.nitems()? > rows => {
                array.edit(|batches| batches.truncate(rows))
            }
            Content::Batches(_) => Ok(()),
            Content::Cells(array) => array.truncate(usize::try_from(rows).unwrap_or(usize::MAX)),
        }
    }

    /// Checks that the storage has the rows before `rows`.
    pub(super) fn check_rows(&self, rows: u64) -> Result<()> {
        let (len, schunk) = match &self.content {
            Content::Items(array) | Content::Codes { codes: array, .. } => {
                (array.shape()[0], array.schunk())
            }
            Content::Texts { offsets, .. } => {
                (offsets.shape()[0].saturating_sub(1), offsets.schunk())
            }
            Content::Batches(array) => (array.nitems()?, array.schunk()),
            Content::Cells(array) => (array.len() as u64, array.schunk()),
        };
        let marks = self.marks.as_ref().map(|marks| (marks.shape()[0], marks.schunk()));
        let shortest = [(len, schunk)].into_iter().chain(marks).min_by_key(|(len, _)| *len);
        let (len, schunk) = shortest.expect("a column has a part with rows");
        if len >= rows {
            return Ok(());
        }
        let detail = format!("the table has {rows} rows, but the column has only {len}");
        Err(error(schunk, ErrorKind::InvalidData, WRITE, detail))
    }

    /// Writes rows at the end of the table. Fixed-size items get room for `capacity` rows, in the same commit.
    pub(super) fn append(
        &mut self,
        at: u64,
        encoded: &Encoded<'_>,
        batch_rows: Option<u64>,
        capacity: u64,
    ) -> Result<()> {
        if !matches!(self.content, Content::Batches(_)) {
            self.truncate(at)?;
        }
        let end = at + encoded.rows as u64;
        match (&mut self.content, &encoded.cells) {
            (Content::Items(array), Cells::Items { bytes, .. }) => {
                with_rows(array, capacity, |array| array.write(at..end, RawItems(&**bytes)))?;
            }
            (
                Content::Codes { codes, texts, decoded },
                Cells::Codes { codes: new, texts: added, .. },
            ) => {
                add_words(texts, decoded, added)?;
                with_rows(codes, capacity, |codes| codes.write(at..end, &**new))?;
            }
            (Content::Texts { offsets, bytes }, Cells::Texts(new)) => {
                append_texts(offsets, bytes, at, new)?;
            }
            (Content::Batches(array), Cells::Values(values)) => {
                array.edit(|batches| {
                    batches.truncate(at)?;
                    append_batches(batches, values, batch_rows)
                })?;
            }
            (Content::Cells(array), Cells::Values(values)) => array.append_all(values)?,
            _ => unreachable!("the form was made for this column"),
        }
        if let Some(marks) = &mut self.marks {
            let old = marks.shape()[0];
            with_rows(marks, capacity, |marks| {
                if capacity > old {
                    marks.write(old..capacity, true)?;
                }
                match &encoded.nulls {
                    Some(nulls) => marks.write(at..end, &valid(nulls)),
                    // A deleted row may have been null.
                    None => marks.write(at..end, true),
                }
            })?;
        }
        Ok(())
    }

    /// Replaces rows at ascending places. Row `n` of `encoded` gets place `places[n]`.
    pub(super) fn replace(&mut self, places: &[u64], encoded: &Encoded<'_>) -> Result<()> {
        let Some(&first) = places.first() else { return Ok(()) };
        let budget = self.budget();
        match (&mut self.content, &encoded.cells) {
            (Content::Items(array), Cells::Items { bytes, .. }) => {
                array.transaction(|array| replace(array, places, bytes))?;
            }
            (
                Content::Codes { codes, texts, decoded },
                Cells::Codes { codes: new, texts: added, .. },
            ) => {
                add_words(texts, decoded, added)?;
                let is_big = codes.dtype().and_then(Dtype::byte_order) == Some(ByteOrder::Big);
                let bytes =
                    |code: &i32| if is_big { code.to_be_bytes() } else { code.to_le_bytes() };
                let new: Vec<u8> = new.iter().flat_map(bytes).collect();
                codes.transaction(|codes| replace(codes, places, &new))?;
            }
            (Content::Texts { offsets, bytes }, Cells::Texts(new)) => {
                // The places of all strings after the first one change.
                let rows = first..offsets.shape()[0].saturating_sub(1);
                let mut old = Texts::default();
                read_texts(offsets, bytes, &Span::all(rows.clone()), &budget, &mut old)?;
                let mut all = Texts::default();
                let mut next = 0;
                for (row, old) in rows.zip(old.iter()) {
                    if places.get(next) == Some(&row) {
                        all.push(new.get(next));
                        next += 1;
                    } else {
                        all.push(old);
                    }
                }
                append_texts(offsets, bytes, first, &all)?;
            }
            (Content::Batches(array), Cells::Values(values)) => {
                array.edit(|batches| replace_in_batches(batches, places, values))?;
            }
            (Content::Cells(array), Cells::Values(values)) => {
                array.set_all(places.iter().map(|place| *place as usize).zip(values.iter()))?;
            }
            _ => unreachable!("the form was made for this column"),
        }
        if let Some(marks) = &mut self.marks {
            let all = vec![true; places.len()];
            let valid = encoded.nulls.as_deref().map_or(all, valid);
            marks.transaction(|marks| replace(marks, places, &bytes_of(&valid)))?;
        }
        Ok(())
    }

    /// Moves the live rows to the front.
    pub(super) fn compact(&mut self, live: &LiveRows, batch_rows: Option<u64>) -> Result<()> {
        for (array, _) in self.arrays() {
            let row = row_bytes(array);
            let mut at = 0;
            let mut bytes = Vec::new();
            // Rows are written only to places that were read before.
            for span in live.spans(0..live.len(), Some(array)).of(u64::MAX) {
                bytes.append(&mut span?.read_bytes(array, row)?);
                // Each write compresses its last chunk, so there must not be one for each span.
                if bytes.len() >= AT_ONCE {
                    at = write_rows(array, at, &bytes)?;
                    bytes.clear();
                }
            }
            write_rows(array, at, &bytes)?;
        }
        let cells = match &self.content {
            Content::Texts { .. } | Content::Batches(_) => {
                // Nothing is removed before each row was found.
                Some(self.joined(None, live, 0..live.len())?.into_owned().cells)
            }
            _ => None,
        };
        match (&mut self.content, cells) {
            (Content::Texts { offsets, bytes }, Some(Cells::Texts(texts))) => {
                append_texts(offsets, bytes, 0, &texts)
            }
            (Content::Batches(array), Some(Cells::Values(values))) => array.edit(|batches| {
                batches.truncate(0)?;
                append_batches(batches, &values, batch_rows)
            }),
            (Content::Cells(array), _) => {
                let mut kept = Vec::new();
                for span in live.spans(0..live.len(), None).of(u64::MAX) {
                    let span = span?;
                    span.check_inside(array.schunk(), array.len() as u64)?;
                    kept.extend(span.numbers().map(|row| row as usize));
                }
                array.retain(&kept)
            }
            _ => Ok(()),
        }
    }

    pub(super) fn sync(&mut self) -> Result<()> {
        self.each_part(NDArray::sync, SChunk::sync)
    }

    /// Sets the number of threads of all parts.
    pub(super) fn set_threads(&mut self, threads: Threads) -> Result<()> {
        let array = |array: &mut NDArray| {
            array.set_dparams(array.info().dparams.threads(threads));
            array.set_cparams(array.info().cparams.threads(threads))
        };
        self.each_part(array, |schunk| {
            schunk.set_dparams(schunk.info().dparams.threads(threads));
            schunk.set_cparams(schunk.info().cparams.threads(threads))
        })
    }

    /// Calls one of two functions for each part.
    fn each_part(
        &mut self,
        array: impl Fn(&mut NDArray) -> Result<()>,
        schunk: impl Fn(&mut SChunk) -> Result<()>,
    ) -> Result<()> {
        match &mut self.content {
            Content::Items(items) => array(items)?,
            Content::Codes { codes, texts, .. } => {
                schunk(texts.schunk_mut())?;
                array(codes)?;
            }
            Content::Texts { offsets, bytes } => {
                array(bytes)?;
                array(offsets)?;
            }
            Content::Batches(batches) => schunk(batches.schunk_mut())?,
            Content::Cells(cells) => schunk(cells.schunk_mut())?,
        }
        self.marks.as_mut().map_or(Ok(()), array)
    }
}

/// The marks of rows that are not null.
fn valid(nulls: &[bool]) -> Vec<bool> {
    nulls.iter().map(|null| !null).collect()
}

/// Checks the end of strings. Returns it.
fn check_end(offsets: &NDArray, bytes: &NDArray, end: i64) -> Result<u64> {
    let len = bytes.shape()[0];
    u64::try_from(end).ok().filter(|end| *end <= len).ok_or_else(|| {
        let detail = format!("strings end at byte {end}, but there are {len} bytes");
        error(offsets.schunk(), ErrorKind::InvalidData, WRITE, detail)
    })
}

/// Writes strings from row `at` on; they are the last ones.
fn append_texts(
    offsets: &mut NDArray,
    bytes: &mut NDArray,
    at: u64,
    texts: &Texts<'_>,
) -> Result<()> {
    let start = offsets.item::<i64>([at])?;
    let used = check_end(offsets, bytes, start)? + texts.bytes.len() as u64;
    // Python stores one byte if there are none.
    let len = used.max(1);
    // The bytes first: the strings exist once they have offsets.
    with_rows(bytes, len.max(bytes.shape()[0]), |bytes| match texts.bytes.is_empty() {
        true => Ok(()),
        false => bytes.write(start as u64..used, &*texts.bytes),
    })?;
    let ends: Vec<i64> = texts.offsets[1..].iter().map(|end| start + end).collect();
    let rows = at + ends.len() as u64;
    with_rows(offsets, rows + 1, |offsets| match ends.is_empty() {
        true => Ok(()),
        false => offsets.write(at + 1..rows + 1, &ends),
    })?;
    with_rows(bytes, len, |_| Ok(()))
}

/// Writes rows from place `at` on. Returns the place after them.
fn write_rows(array: &mut NDArray, at: u64, bytes: &[u8]) -> Result<u64> {
    let end = at + (bytes.len() / row_bytes(array).max(1)) as u64;
    array.write(at..end, RawItems(bytes))?;
    Ok(end)
}

/// Appends rows in batches, after filling the last batch.
fn append_batches(
    batches: &mut Batches<'_>,
    values: &[Value],
    batch_rows: Option<u64>,
) -> Result<()> {
    let most = batch_rows.and_then(|rows| usize::try_from(rows).ok()).unwrap_or(usize::MAX).max(1);
    let mut rest = values;
    let last = batches.lengths().iter().enumerate().next_back();
    if let (Some((last, &len)), false, Some(_)) = (last, rest.is_empty(), batch_rows) {
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        if let Some(room) = most.checked_sub(len).filter(|room| *room > 0)
            && batches.nbytes(last)? < MAX_BATCH
        {
            let mut items = batches.batch(last)?;
            let held = items.iter().map(weight).sum();
            let (these, after) = rest.split_at(fitting(rest, room, held));
            if !these.is_empty() {
                items.extend_from_slice(these);
                batches.set(last, Items::Values(&items))?;
                rest = after;
            }
        }
    }
    while !rest.is_empty() {
        let (batch, after) = rest.split_at(fitting(rest, most, 0).max(1));
        batches.append(Items::Values(batch))?;
        rest = after;
    }
    Ok(())
}

/// The number of the first values that fit in a batch, at most `most`. The batch already has `held` bytes.
fn fitting(values: &[Value], most: usize, mut held: u64) -> usize {
    let fits = |value: &&Value| {
        held = held.saturating_add(weight(value));
        held <= MAX_BATCH
    };
    values.iter().take(most).take_while(fits).count()
}

/// Replaces rows at ascending places.
fn replace_in_batches(batches: &mut Batches<'_>, places: &[u64], values: &[Value]) -> Result<()> {
    let mut rest = places.iter().zip(values).peekable();
    let mut end = 0;
    for batch in 0..batches.lengths().len() {
        let Some(&(&next, _)) = rest.peek() else { return Ok(()) };
        let start = end;
        end += batches.lengths()[batch];
        if next >= end {
            continue;
        }
        let mut items = batches.batch(batch)?;
        while let Some((place, value)) = rest.next_if(|(place, _)| **place < end) {
            items[(place - start) as usize] = value.clone();
        }
        batches.set(batch, Items::Values(&items))?;
    }
    match rest.next() {
        None => Ok(()),
        Some((place, _)) => {
            let detail = format!("there is no row {place}, the column has {end} rows");
            Err(error(batches.schunk(), ErrorKind::InvalidData, WRITE, detail))
        }
    }
}

/// Adds strings to a dictionary, before a code refers to them.
fn add_words(
    texts: &mut BatchArray,
    decoded: &mut OnceLock<Vec<String>>,
    added: &[String],
) -> Result<()> {
    if added.is_empty() {
        return Ok(());
    }
    let values: Vec<Value> = added.iter().map(|text| text.as_str().into()).collect();
    let result = texts.edit(|batches| {
        append_batches(batches, &values, Some(BATCH_ROWS))?;
        // Readers read all strings of a dictionary at once.
        let count = batches.lengths().iter().sum::<u64>();
        let schunk = batches.schunk();
        let memory = schunk.nbytes().saturating_add(count.saturating_mul(Value::MEMORY));
        check_readable(schunk, WRITE, memory, schunk.cbytes())
    });
    match (&result, decoded.get_mut()) {
        (Ok(()), Some(decoded)) => decoded.extend_from_slice(added),
        // A failed change may be stored nevertheless.
        _ => drop(decoded.take()),
    }
    result
}

#[cfg(all(test, feature = "c"))]
mod tests {
    use super::*;
    use crate::{CTable, Data, EmbedStore, ItemKind, Object, Schema};

    #[test]
    fn batches_have_a_maximum_size() {
        // Each takes the memory of a value, too.
        let texts = vec![Value::from("x".repeat(MAX_BATCH as usize / 8)); 20];
        assert_eq!(fitting(&texts, 2048, 0), 7);
        assert_eq!(fitting(&texts, 3, 0), 3);
        assert_eq!(fitting(&texts, 2048, MAX_BATCH / 2), 3);
        assert_eq!(fitting(&texts, 2048, MAX_BATCH), 0);

        let mut table = CTable::in_memory(&Schema::new().column("a", ItemKind::VlString)).unwrap();
        let long = Value::from("y".repeat(2 * MAX_BATCH as usize));
        let all = [&texts[..], &[long.clone(), long], &texts].concat();
        for part in [&all[..5], &all[5..]] {
            table.append([("a", Data::values(part))]).unwrap();
        }
        let frame = EmbedStore::from_cframe(table.to_cframe().unwrap()).unwrap();
        let Object::BatchArray(array) = frame.get("/_cols/a").unwrap() else { panic!("batches") };
        let lengths: Vec<u64> = (0..array.len()).map(|at| array.batch_len(at).unwrap()).collect();
        // The second call completes the last batch of the first one.
        assert_eq!(lengths, [7, 7, 6, 1, 1, 7, 7, 6]);
        assert_eq!(table.values("a", ..).unwrap(), all);
    }
}
