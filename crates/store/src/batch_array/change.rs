//! Creating and changing batch arrays.

use std::sync::OnceLock;

#[cfg(feature = "arrow")]
use arrow_array::{Array, ArrayRef};
#[cfg(feature = "arrow")]
use arrow_schema::Field;
use serde::Serialize;

use super::*;
#[cfg(feature = "arrow")]
use crate::arrow::{ipc, values};
use crate::blosc2::super_chunk::{MetalayersMut, VariableBlocks};
use crate::blosc2::{ErrorKind, OpenOptions, Result, SChunk, Target, Value};
use crate::limits::{check_readable, memory_of};
use crate::tag::{check_new, error, free_chunksize, tag};

impl BatchArray {
    /// Opens a file, a directory or another target for reading and changing.
    ///
    /// # Errors
    /// Fails with the errors of [opening a container](crate#opening-a-container).
    pub fn open_rw(target: impl Into<Target>) -> Result<Self> {
        Self::from_schunk(SChunk::open_rw(target)?)
    }

    /// Creates an empty array in a new contiguous file, with the default compression parameters of Python.
    ///
    /// # Errors
    /// Fails with the errors of [creating a container](crate#creating-a-container).
    pub fn create(target: impl Into<Target>) -> Result<Self> {
        Self::new_in(OpenOptions::new().create_new(true).open(target)?, None)
    }

    /// Creates an empty array in memory, with the default compression parameters of Python.
    ///
    /// # Errors
    /// Fails with the errors of [creating a container](crate#creating-a-container).
    pub fn in_memory() -> Result<Self> {
        Self::new_in(OpenOptions::new().open(Target::memory())?, None)
    }

    /// Creates an array in an empty super-chunk, with `items_per_block` items in each block. The array uses the storage
    /// and the compression parameters of the super-chunk.
    ///
    /// If `items_per_block` is `None`, the number of items in each block is computed from the first batch and the
    /// compression level:
    ///
    /// | compression level | items in a block |
    /// |---|---|
    /// | 1 to 3 | as many items as fit in 1 MiB of msgpack |
    /// | 4 to 6 | as many items as fit in 8 MiB of msgpack |
    /// | 7 and 8 | as many items as fit in 16 MiB of msgpack |
    /// | 0 and 9 | all items of the batch |
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: the super-chunk has chunks; its typesize is not 1; or `items_per_block` is
    ///   `Some(0)`;
    /// - [`ErrorKind::ReadOnly`]: the super-chunk was opened for reading or appending;
    /// - [`ErrorKind::Io`]: the file cannot be written.
    pub fn new_in(schunk: SChunk, items_per_block: Option<u64>) -> Result<Self> {
        Self::new_with(schunk, items_per_block, "msgpack")
    }

    pub(crate) fn new_with(
        mut schunk: SChunk,
        items_per_block: Option<u64>,
        serializer: &str,
    ) -> Result<Self> {
        check_new(&schunk, MAKE)?;
        if items_per_block == Some(0) {
            let detail = "expected at least one item per block, got 0";
            return Err(error(&schunk, ErrorKind::InvalidArgument, MAKE, detail));
        }
        let meta = Value::from([
            ("version", 1.into()),
            ("serializer", serializer.into()),
            (ITEMS_PER_BLOCK, items_per_block.map_or(Value::None, Value::from)),
            ("arrow_schema", Value::None),
        ]);
        schunk.meta_mut().set_value(NAME, &meta)?;
        Self::from_schunk(schunk)
    }

    /// Keeps what is known of the batches after a change of this handle.
    fn know(&mut self, known: Known) {
        self.known = known;
        if let Ok(now) = self.schunk.revision() {
            self.revision = now.into();
        }
    }

    pub(crate) fn schunk_mut(&mut self) -> &mut SChunk {
        &mut self.schunk
    }

    /// Returns the variable-length metalayers, for changing. Do not change `_batch_array_metadata`: the array writes
    /// this metalayer.
    pub fn vlmeta_mut(&mut self) -> MetalayersMut<'_> {
        self.schunk.vlmeta_mut()
    }

    /// Re-reads the array if other handles or programs have changed it; see [`SChunk::refresh`].
    ///
    /// If another handle or program has changed the number of items in a batch, or of batches, all methods that read
    /// items or numbers of items fail with [`ErrorKind::Busy`] until `refresh` is called. Changes by programs that do not
    /// lock the file are detected by the length, the modification time and the header of the file.
    ///
    /// # Errors
    /// Fails with the errors of [opening a container](crate#opening-a-container).
    pub fn refresh(&mut self) -> Result<()> {
        self.schunk.refresh()?;
        let known = Known::read(&self.schunk)?;
        self.know(known);
        Ok(())
    }

    /// Appends a batch.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: `items` is empty; or the first item of a block is the string `__tuple__`,
    ///   because Python would read such a block as a tuple;
    /// - the errors of [changing a container](crate#changing-a-container).
    pub fn append<T: Serialize>(&mut self, items: &[T]) -> Result<()> {
        self.append_values(&values_of(items)?)
    }

    /// Inserts a batch before `index`, or appends it if `index` is the number of batches.
    ///
    /// # Errors
    /// - [`ErrorKind::OutOfBounds`]: `index` is above the number of batches;
    /// - the errors of [`append`](Self::append).
    pub fn insert<T: Serialize>(&mut self, index: usize, items: &[T]) -> Result<()> {
        let items = values_of(items)?;
        self.edit(|batches| batches.insert(index, Items::Values(&items)))
    }

    /// Replaces a batch.
    ///
    /// # Errors
    /// - [`ErrorKind::OutOfBounds`]: `index` is not below the number of batches;
    /// - the errors of [`append`](Self::append).
    pub fn set<T: Serialize>(&mut self, index: usize, items: &[T]) -> Result<()> {
        self.set_values(index, &values_of(items)?)
    }

    /// Removes a batch.
    ///
    /// # Errors
    /// - [`ErrorKind::OutOfBounds`]: `index` is not below the number of batches;
    /// - the errors of [changing a container](crate#changing-a-container).
    pub fn remove(&mut self, index: usize) -> Result<()> {
        self.edit(|batches| batches.remove(index))
    }

    /// Counts the items of all batches, and stores the numbers in the file. If the array was opened for reading, this
    /// method stores the numbers in memory only.
    ///
    /// Call it if the stored numbers are wrong, for example because another program was interrupted while it changed
    /// the file.
    ///
    /// # Errors
    /// - The errors of [reading values](crate#reading-values);
    /// - [`ErrorKind::Io`]: the file cannot be written.
    pub fn recount(&mut self) -> Result<()> {
        let lengths = count(&self.schunk, &self.known.format, u64::MAX)?;
        if self.schunk.info().is_writable {
            keep_lengths(&mut self.schunk, &lengths)?;
        }
        let starts = OnceLock::from(starts_of(&self.schunk, &lengths)?);
        let Known { items_per_block, format, .. } = self.known.clone();
        self.know(Known { items_per_block, format, starts });
        Ok(())
    }

    pub(crate) fn append_values(&mut self, items: &[Value]) -> Result<()> {
        self.edit(|batches| batches.append(Items::Values(items)))
    }

    #[cfg(feature = "arrow")]
    pub(crate) fn append_items(&mut self, items: Items<'_>) -> Result<()> {
        self.edit(|batches| batches.append(items))
    }

    pub(crate) fn set_values(&mut self, index: usize, items: &[Value]) -> Result<()> {
        self.edit(|batches| batches.set(index, Items::Values(items)))
    }

    /// Makes several changes in one transaction: all of them or, after an error, none.
    pub(crate) fn edit(&mut self, work: impl FnOnce(&mut Batches<'_>) -> Result<()>) -> Result<()> {
        let changed = self.schunk.transaction(|schunk| {
            let mut batches = Batches::new(schunk)?;
            let before = batches.lengths.clone();
            work(&mut batches)?;
            batches.finish(&before)
        });
        let (known, result) = match changed {
            Ok(known) => (Ok(known), Ok(())),
            // A failed edit may be stored nevertheless.
            Err(error) => (Known::read(&self.schunk), Err(error)),
        };
        if let Ok(known) = known {
            self.know(known);
        }
        result
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Items<'a> {
    Values(&'a [Value]),
    #[cfg(feature = "arrow")]
    Arrow(&'a ArrayRef),
}

impl Items<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Values(items) => items.len(),
            #[cfg(feature = "arrow")]
            Self::Arrow(items) => items.len(),
        }
    }
}

/// The batches of an array during a transaction. Their lengths are stored once, at its end.
#[derive(Debug)]
pub(crate) struct Batches<'a> {
    schunk: &'a mut SChunk,
    items_per_block: Option<u64>,
    format: Format,
    /// The number of items of each batch.
    lengths: Vec<u64>,
}

impl<'a> Batches<'a> {
    fn new(schunk: &'a mut SChunk) -> Result<Self> {
        let Known { items_per_block, starts, format } = Known::read(schunk)?;
        let lengths = match starts.get() {
            Some(starts) => starts.windows(2).map(|pair| pair[1] - pair[0]).collect(),
            None => count(schunk, &format, max_counted(schunk))?,
        };
        Ok(Self { schunk, items_per_block, format, lengths })
    }

    fn finish(self, before: &[u64]) -> Result<Known> {
        let starts = starts_of(self.schunk, &self.lengths)?;
        free_chunksize(self.schunk)?;
        if self.lengths != before {
            keep_lengths(self.schunk, &self.lengths)?;
        }
        let Self { items_per_block, format, .. } = self;
        Ok(Known { items_per_block, starts: starts.into(), format })
    }

    pub(crate) fn schunk(&self) -> &SChunk {
        self.schunk
    }

    /// The number of items of each batch.
    pub(crate) fn lengths(&self) -> &[u64] {
        &self.lengths
    }

    pub(crate) fn batch(&self, index: usize) -> Result<Vec<Value>> {
        let items = batch(self.schunk, &self.format, index)?;
        check_len(self.schunk, index, items.len() as u64, self.lengths[index])?;
        Ok(items)
    }

    pub(crate) fn append(&mut self, items: Items<'_>) -> Result<()> {
        self.insert(self.lengths.len(), items)
    }

    fn insert(&mut self, index: usize, items: Items<'_>) -> Result<()> {
        self.check(index, self.lengths.len() + 1)?;
        let blocks = self.blocks(items)?;
        let blocks: Vec<&[u8]> = blocks.iter().map(Vec::as_slice).collect();
        match index == self.lengths.len() {
            true => self.schunk.append(VariableBlocks(&blocks))?,
            false => self.schunk.insert(index, VariableBlocks(&blocks))?,
        };
        self.check_readable(index, items, &blocks)?;
        self.lengths.insert(index, items.len() as u64);
        Ok(())
    }

    pub(crate) fn set(&mut self, index: usize, items: Items<'_>) -> Result<()> {
        self.check(index, self.lengths.len())?;
        let blocks = self.blocks(items)?;
        let blocks: Vec<&[u8]> = blocks.iter().map(Vec::as_slice).collect();
        self.schunk.replace(index, VariableBlocks(&blocks))?;
        self.check_readable(index, items, &blocks)?;
        self.lengths[index] = items.len() as u64;
        Ok(())
    }

    fn remove(&mut self, index: usize) -> Result<()> {
        self.check(index, self.lengths.len())?;
        self.schunk.remove(index)?;
        self.lengths.remove(index);
        Ok(())
    }

    /// Removes the items from `nitems` on.
    pub(crate) fn truncate(&mut self, nitems: u64) -> Result<()> {
        let (mut kept, mut end) = (0, 0);
        while let Some(len) = self.lengths.get(kept).filter(|_| end < nitems) {
            (kept, end) = (kept + 1, end + len);
        }
        self.schunk.remove(kept..)?;
        self.lengths.truncate(kept);
        if end <= nitems {
            return Ok(());
        }
        let last = kept - 1;
        let items = self.batch(last)?;
        let len = self.lengths[last] - (end - nitems);
        self.set(last, Items::Values(&items[..len as usize]))
    }

    fn check(&self, index: usize, end: usize) -> Result<()> {
        match index < end {
            true => Ok(()),
            false => Err(no_batch(self.schunk, WRITE, index)),
        }
    }

    /// The bytes of the blocks of a batch.
    pub(crate) fn nbytes(&self, index: usize) -> Result<u64> {
        Ok(self.schunk.chunk_info(index)?.nbytes as u64)
    }

    /// Checks that readers can read the batch `index` of these items, which has been stored.
    fn check_readable(&self, index: usize, items: Items<'_>, blocks: &[&[u8]]) -> Result<()> {
        let nbytes = blocks.iter().map(|block| block.len() as u64).sum();
        let memory = match items {
            // Each block is a list.
            Items::Values(items) => memory_of(nbytes, || {
                blocks.len() as u64 + items.iter().map(Value::count).sum::<u64>()
            }),
            #[cfg(feature = "arrow")]
            Items::Arrow(_) => nbytes,
        };
        let stored = self.schunk.chunk_info(index)?.cbytes as u64;
        check_readable(self.schunk, WRITE, memory, stored)
    }

    /// Serializes the blocks of a batch. The first batch determines the items per block and the Arrow schema.
    fn blocks(&mut self, items: Items<'_>) -> Result<Vec<Vec<u8>>> {
        let Self { schunk, items_per_block, format, lengths } = self;
        let (blocks, per_block) = blocks(schunk, format, items, *items_per_block)?;
        if lengths.is_empty() {
            #[cfg(feature = "arrow")]
            if let Format::Arrow(Some(field)) = format {
                keep_schema(schunk, field)?;
            }
            if items_per_block.is_none() {
                keep_in_tag(schunk, ITEMS_PER_BLOCK, per_block.into())?;
                *items_per_block = Some(per_block);
            }
        }
        Ok(blocks)
    }
}

fn values_of<T: Serialize>(items: &[T]) -> Result<Vec<Value>> {
    items.iter().map(|item| Ok(Value::from_type(item)?)).collect()
}

/// Serializes the blocks of a batch. Returns them with the number of items of each but the last.
fn blocks(
    schunk: &SChunk,
    format: &mut Format,
    items: Items<'_>,
    per_block: Option<u64>,
) -> Result<(Vec<Vec<u8>>, u64)> {
    if items.len() == 0 {
        let detail = "expected a batch of at least one item, got none";
        return Err(error(schunk, ErrorKind::InvalidArgument, WRITE, detail));
    }
    let level = schunk.info().cparams.level;
    match (format, items) {
        (Format::Msgpack, Items::Values(items)) => {
            let size = |index: usize| Ok(items[index].to_msgpack()?.len());
            let per_block = per_block.map_or_else(|| guess(level, items.len(), size), Ok)?;
            let blocks = items.chunks(usize::try_from(per_block).unwrap_or(usize::MAX));
            let blocks = blocks.map(|block| Ok(Value::List(block.to_vec()).to_msgpack()?));
            Ok((blocks.collect::<Result<_>>()?, per_block))
        }
        #[cfg(feature = "arrow")]
        (Format::Msgpack, Items::Arrow(_)) => {
            let detail = "its items are serialized with msgpack, expected values";
            Err(error(schunk, ErrorKind::TypeMismatch, WRITE, detail))
        }
        #[cfg(feature = "arrow")]
        (Format::Arrow(field), items) => {
            let array = arrow_items(schunk, field.as_ref(), items)?;
            let column = field.get_or_insert_with(|| ipc::column(array.data_type()));
            let average = array.get_buffer_memory_size() / array.len();
            let guessed = || match array.get_buffer_memory_size() {
                // Nulls take no bytes.
                0 => Ok(array.len().min(ipc::MAX_EMPTY) as u64),
                _ => guess(level, array.len(), |_| Ok(average.max(1))),
            };
            let per_block = per_block.map_or_else(guessed, Ok)?;
            let step = usize::try_from(per_block).unwrap_or(usize::MAX);
            let blocks = (0..array.len()).step_by(step).map(|start| {
                let len = step.min(array.len() - start);
                ipc::block_bytes(column, array.slice(start, len))
                    .map_err(|detail| error(schunk, ErrorKind::InvalidArgument, WRITE, detail))
            });
            Ok((blocks.collect::<Result<_>>()?, per_block))
        }
    }
}

/// The number of items per block from the first batch, by compression level and the size of the items.
fn guess(level: u8, len: usize, size: impl Fn(usize) -> Result<usize>) -> Result<u64> {
    let all = len as u64;
    let budget = match level {
        1..=3 => 1 << 20,
        4..=6 => 1 << 23,
        7 | 8 => 1 << 24,
        _ => return Ok(all),
    };
    let mut nbytes = 0;
    for index in 0..len {
        nbytes += size(index)?;
        if index > 0 && nbytes > budget {
            return Ok(index as u64);
        }
    }
    Ok(all)
}

fn keep_lengths(schunk: &mut SChunk, lengths: &[u64]) -> Result<()> {
    if lengths.is_empty() {
        return schunk.vlmeta_mut().remove(LENGTHS).map(drop);
    }
    let lengths = lengths.iter().map(|&len| len.into()).collect();
    let lengths = Value::from([(BATCH_LENGTHS, Value::List(lengths))]);
    schunk.vlmeta_mut().set_value(LENGTHS, &lengths)
}

/// Stores an entry of the metalayer, which is removed and added again because its length changes.
fn keep_in_tag(schunk: &mut SChunk, name: &str, value: Value) -> Result<()> {
    let mut meta = tag(schunk, NAME, WRITE)?;
    if let Value::Map(pairs) = &mut meta {
        match pairs.iter_mut().find(|(key, _)| key.as_str() == Some(name)) {
            Some((_, old)) => *old = value,
            None => pairs.push((name.into(), value)),
        }
    }
    schunk.meta_mut().remove(NAME)?;
    schunk.meta_mut().set_value(NAME, &meta)
}

/// Stores the schema of items that are serialized with Arrow.
#[cfg(feature = "arrow")]
fn keep_schema(schunk: &mut SChunk, field: &Field) -> Result<()> {
    let bytes = ipc::schema_bytes(field)
        .map_err(|detail| error(schunk, ErrorKind::InvalidArgument, WRITE, detail))?;
    keep_in_tag(schunk, ARROW_SCHEMA, Value::Bytes(bytes))
}

/// The items of a batch to be written with Arrow, of the type of the other batches.
#[cfg(feature = "arrow")]
fn arrow_items(schunk: &SChunk, field: Option<&Field>, items: Items<'_>) -> Result<ArrayRef> {
    match (field, items) {
        (Some(field), Items::Arrow(array)) if field.data_type() != array.data_type() => {
            let (found, expected) = (array.data_type(), field.data_type());
            let detail = format!("items of the type {found}, expected {expected}");
            Err(error(schunk, ErrorKind::TypeMismatch, WRITE, detail))
        }
        (_, Items::Arrow(array)) => Ok(array.clone()),
        (Some(field), Items::Values(items)) => {
            let items: Vec<&Value> = items.iter().collect();
            values::array_from(field, &items).map_err(|(kind, detail)| {
                let kind = match kind {
                    ErrorKind::InvalidData => ErrorKind::TypeMismatch,
                    kind => kind,
                };
                error(schunk, kind, WRITE, detail)
            })
        }
        (None, Items::Values(_)) => {
            let detail = "the first batch of an array that is serialized with Arrow has to be an Arrow array, which \
                determines the type of its items";
            Err(error(schunk, ErrorKind::TypeMismatch, WRITE, detail))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::sync::{Arc, Mutex};

    use crate::blosc2::CParams;
    use crate::blosc2::storage::{ReadAt, Storage};
    use proptest::prelude::*;

    fn ints(items: &[i64]) -> Vec<Value> {
        items.iter().map(|&item| item.into()).collect()
    }

    fn small() -> BatchArray {
        let mut array = BatchArray::new_in(
            OpenOptions::new().create_new(true).open(Vec::new()).unwrap(),
            Some(2),
        )
        .unwrap();
        array.append(&[1, 2, 3]).unwrap();
        array.append(&[4]).unwrap();
        array.append(&[5, 6, 7, 8]).unwrap();
        array
    }

    fn batches(array: &BatchArray) -> Vec<Vec<Value>> {
        array.batches().map(Result::unwrap).collect()
    }

    fn reopened(array: BatchArray, write: bool) -> Result<BatchArray> {
        let bytes = array.into_schunk().into_cframe().unwrap();
        BatchArray::from_schunk(OpenOptions::new().write(write).open(bytes).unwrap())
    }

    /// The same batches with these stored lengths.
    fn kept(lengths: &Value) -> BatchArray {
        let mut array = small();
        array.vlmeta_mut().set_value(LENGTHS, lengths).unwrap();
        reopened(array, true).unwrap()
    }

    #[test]
    fn lengths_that_do_not_fit_are_counted() {
        let of = |lengths: Value| Value::from([(BATCH_LENGTHS, lengths)]);
        for lengths in [
            Value::None,
            5.into(),
            "text".into(),
            Value::from([("other", 1.into())]),
            of(Value::None),
            of("text".into()),
            of(Value::List(vec![])),
            of(ints(&[3, 1]).into()),
            of(ints(&[3, 1, 4, 1]).into()),
            of(ints(&[3, 0, 4]).into()),
            of(ints(&[3, -1, 4]).into()),
            of(Value::List(vec![3.into(), "1".into(), 4.into()])),
            of(Value::List(vec![3.into(), u64::MAX.into(), 4.into()])),
        ] {
            let mut array = kept(&lengths);
            assert_eq!(array.nitems().unwrap(), 8, "{lengths:?}");
            let items: Vec<Value> = (0..8).map(|item| array.item(item).unwrap()).collect();
            assert_eq!(items, ints(&[1, 2, 3, 4, 5, 6, 7, 8]));
            assert_eq!(array.batch_len(2).unwrap(), 4);
            array.insert(1, &[9]).unwrap();
            assert_eq!(array.nitems().unwrap(), 9);
            let kept = array.vlmeta().value(LENGTHS).unwrap();
            assert_eq!(kept, Some(of(ints(&[3, 1, 1, 4]).into())));
        }
        let mut array = small();
        array.vlmeta_mut().remove(LENGTHS).unwrap();
        assert_eq!(reopened(array, false).unwrap().nitems().unwrap(), 8);
    }

    #[test]
    fn lengths_that_are_wrong_are_an_error_until_they_are_counted() {
        // The first two are detected by the number of items in a block, the last one by the number of blocks.
        for lengths in [[3, 1, 3], [2, 2, 4], [3, 1, 5]] {
            let lengths = Value::from([(BATCH_LENGTHS, ints(&lengths).into())]);
            for write in [true, false] {
                let mut array = reopened(kept(&lengths), write).unwrap();
                let errors: Vec<crate::blosc2::Error> = (0..array.nitems().unwrap())
                    .map(|item| array.item(item))
                    .chain((0..3).map(|index| array.batch(index).map(Value::from)))
                    .filter_map(Result::err)
                    .collect();
                assert!(errors.len() > 1);
                assert!(
                    errors.iter().any(|error| error.to_string().contains("its metadata specifies"))
                );
                assert!(errors.iter().all(|error| error.kind() == ErrorKind::InvalidData));
                array.recount().unwrap();
                assert_eq!(array.nitems().unwrap(), 8);
                assert_eq!(array.item(7).unwrap(), 8.into());
                let again = reopened(array, false).unwrap();
                assert_eq!(again.batch(2).is_ok() && again.batch(1).is_ok(), write);
            }
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let mut array = small();
        let before = batches(&array);
        let refused = |kind, changed: Result<()>, text: &str| {
            let error = changed.expect_err(text);
            assert_eq!(error.kind(), kind, "{error}");
            assert!(error.to_string().contains(text), "{error}");
        };
        use crate::blosc2::ErrorKind::{InvalidArgument, OutOfBounds};
        refused(InvalidArgument, array.append::<u8>(&[]), "at least one item");
        refused(InvalidArgument, array.set::<u8>(0, &[]), "at least one item");
        refused(InvalidArgument, array.append(&["__tuple__"]), "`__tuple__`");
        // The first of the second block.
        refused(InvalidArgument, array.append(&["a", "b", "__tuple__"]), "`__tuple__`");
        refused(InvalidArgument, array.append(&[Value::Int(1 << 64)]), "integer");
        refused(OutOfBounds, array.insert(4, &[1]), "there are 3 batches, asked for 4");
        refused(OutOfBounds, array.set(3, &[1]), "there are 3 batches, asked for 3");
        refused(OutOfBounds, array.remove(3), "there are 3 batches, asked for 3");
        refused(OutOfBounds, array.batch(3).map(drop), "there are 3 batches, asked for 3");
        refused(OutOfBounds, array.batch_len(3).map(drop), "there are 3 batches, asked for 3");
        refused(OutOfBounds, array.batch_len(usize::MAX).map(drop), "there are 3 batches");
        refused(OutOfBounds, array.item(8).map(drop), "there are 8 items, asked for 8");
        assert_eq!(batches(&array), before);
        assert_eq!(batches(&reopened(array, false).unwrap()), before);

        let mut array = reopened(small(), false).unwrap();
        for changed in [array.append(&[1]), array.set(0, &[7, 8, 9]), array.remove(0)] {
            assert_eq!(changed.unwrap_err().kind(), ErrorKind::ReadOnly);
        }
        assert_eq!(array.nitems().unwrap(), 8);
    }

    /// C-Blosc2 cannot append a chunk after a single one that is shorter than the chunk size of the frame.
    #[test]
    fn a_single_batch_has_the_size_of_chunks() {
        let long = ["x".repeat(500), "y".repeat(500)];
        let check = |array: &BatchArray| {
            let schunk = array.schunk();
            // 0: chunks have any size.
            let free = [0, schunk.chunk_info(0).unwrap().nbytes];
            assert!(free.contains(&schunk.chunksize()));
            assert_eq!(batches(array), [["short".into()]]);
        };
        let mut array = BatchArray::in_memory().unwrap();
        array.append(&long).unwrap();
        array.set(0, &["short"]).unwrap();
        check(&array);
        let mut array = BatchArray::in_memory().unwrap();
        array.append(&long).unwrap();
        array.append(&["short"]).unwrap();
        array.remove(0).unwrap();
        check(&array);
    }

    #[test]
    fn what_is_no_array_of_batches_is_refused() {
        let schunk = || OpenOptions::new().open(Target::memory()).unwrap();
        let with = |tag: Value| {
            let mut schunk = schunk();
            schunk.meta_mut().set_value(NAME, &tag).unwrap();
            BatchArray::from_schunk(schunk)
        };
        let refused =
            |opened: Result<BatchArray>, kind| assert_eq!(opened.unwrap_err().kind(), kind);
        refused(BatchArray::from_schunk(schunk()), ErrorKind::InvalidData);
        refused(with(5.into()), ErrorKind::InvalidData);
        refused(with(Value::from([("serializer", "pickle".into())])), ErrorKind::Unsupported);
        let arrow = with(Value::from([("serializer", "arrow".into())]));
        match cfg!(feature = "arrow") {
            true => assert_eq!(arrow.unwrap().nitems().unwrap(), 0),
            false => {
                let error = arrow.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Unsupported);
                assert!(error.to_string().contains("feature `arrow`"), "{error}");
            }
        }
        refused(with(Value::from([("version", 2.into())])), ErrorKind::Unsupported);
        for number in [0.into(), (-1).into(), "2".into(), 1.5.into()] {
            let tag = Value::from([(ITEMS_PER_BLOCK, number)]);
            refused(with(tag), ErrorKind::InvalidData);
        }
        assert!(with(Value::from([(ITEMS_PER_BLOCK, u64::MAX.into())])).is_ok());

        refused(BatchArray::new_in(schunk(), Some(0)), ErrorKind::InvalidArgument);
        let wide = OpenOptions::new().typesize(2).open(Target::memory()).unwrap();
        refused(BatchArray::new_in(wide, None), ErrorKind::InvalidArgument);
        let mut full = schunk();
        full.append(&[1u8]).unwrap();
        refused(BatchArray::new_in(full, None), ErrorKind::InvalidArgument);
    }

    #[test]
    fn blocks_that_are_no_lists_are_refused() {
        let made = |work: &dyn Fn(&mut SChunk)| {
            let mut schunk = BatchArray::in_memory().unwrap().into_schunk();
            work(&mut schunk);
            BatchArray::from_schunk(schunk).unwrap()
        };
        for array in [
            made(&|schunk| schunk.append(VariableBlocks(&[b"\x91\x01", b"\x01"])).unwrap()),
            made(&|schunk| schunk.append(VariableBlocks(&[b"\xc1"])).unwrap()),
            made(&|schunk| schunk.append(VariableBlocks(&[b"\x92\x01"])).unwrap()),
            made(&|schunk| schunk.append(b"no blocks").unwrap()),
            made(&|schunk| schunk.fill(crate::blosc2::Special::Zeros, 5000, 5000).unwrap()),
        ] {
            for error in [
                array.batch(0).unwrap_err(),
                array.nitems().unwrap_err(),
                array.item(0).unwrap_err(),
            ] {
                assert_eq!(error.kind(), ErrorKind::InvalidData);
            }
        }
    }

    #[test]
    fn where_the_file_does_not_say_how_many_items_a_block_has_all_are_read() {
        let mut schunk = BatchArray::in_memory().unwrap().into_schunk();
        schunk.append(VariableBlocks(&[b"\x91\x01", b"\x93\x02\x03\x04"])).unwrap();
        let mut array = BatchArray::from_schunk(schunk).unwrap();
        assert_eq!(array.items_per_block(), None);
        array.append(&[5, 6]).unwrap();
        assert_eq!(array.items_per_block(), None);
        let items: Vec<Value> = (0..6).map(|item| array.item(item).unwrap()).collect();
        assert_eq!(items, ints(&[1, 2, 3, 4, 5, 6]));
    }

    #[test]
    fn a_change_that_fails_changes_nothing() {
        let mut array = small();
        let before = batches(&array);
        let mut failing = small().into_schunk();
        failing.set_cparams(failing.info().cparams.prefilter(|_| Err("no"))).unwrap();
        let mut failing = BatchArray::from_schunk(failing).unwrap();
        for number in 0..15 {
            array.vlmeta_mut().set(&number.to_string(), b"").unwrap();
        }
        array.vlmeta_mut().remove(LENGTHS).unwrap();
        array.vlmeta_mut().set("15", b"").unwrap();
        // There is no place for one more metalayer; nothing is compressed.
        for array in [&mut array, &mut failing] {
            for changed in [array.append(&[1]), array.insert(0, &[1]), array.set(0, &[1])] {
                assert!(changed.is_err());
            }
            assert_eq!(batches(array), before);
            assert_eq!(array.nitems().unwrap(), 8);
        }
        assert_eq!(kept_lengths(failing.schunk()).unwrap(), Some(vec![3, 1, 4]));
    }

    /// Bytes of a program that dies after a number of writes, and leaves what it has written.
    #[derive(Clone)]
    struct Dying(Arc<Mutex<(Vec<u8>, usize)>>);

    impl Dying {
        fn live(&self) -> io::Result<()> {
            let mut inner = self.0.lock().unwrap();
            let dead = || io::Error::other("it is dead");
            inner.1 = inner.1.checked_sub(1).ok_or_else(dead)?;
            Ok(())
        }
    }

    impl ReadAt for Dying {
        fn size(&self) -> io::Result<u64> {
            self.0.lock().unwrap().0.size()
        }

        fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
            self.0.lock().unwrap().0.read_exact_at(offset, buffer)
        }
    }

    impl Storage for Dying {
        fn write_all_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
            self.live()?;
            self.0.lock().unwrap().0.write_all_at(offset, bytes)
        }

        fn set_size(&mut self, size: u64) -> io::Result<()> {
            self.live()?;
            self.0.lock().unwrap().0.set_size(size)
        }
    }

    #[test]
    fn a_program_that_dies_leaves_the_old_batches_or_the_new_ones() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.b2b");
        let start = small().into_schunk().into_cframe().unwrap();
        type Work = fn(&mut BatchArray) -> Result<()>;
        let changes: [Work; 5] = [
            |array| array.append(&[9, 9]),
            |array| array.insert(1, &["text"]),
            |array| array.set(0, &[1]),
            |array| array.set(0, &[4, 4, 4]),
            |array| array.remove(2),
        ];
        for work in changes {
            let mut after = small();
            let before = batches(&after);
            work(&mut after).unwrap();
            let after = batches(&after);
            let mut seen = [0, 0];
            for writes in 0.. {
                let bytes = Dying(Arc::new(Mutex::new((start.clone(), writes))));
                let options = OpenOptions::new().write(true);
                let mut array =
                    BatchArray::from_schunk(options.open(Target::storage(bytes.clone())).unwrap())
                        .unwrap();
                let done = work(&mut array).is_ok();
                drop(array);
                std::fs::write(&path, &bytes.0.lock().unwrap().0).unwrap();
                crate::blosc2::repair::repair(&path).unwrap();
                let left = BatchArray::open(&path).unwrap();
                let found = batches(&left);
                assert!(found == before || found == after, "{writes} writes: {found:?}");
                seen[usize::from(found == after)] += 1;
                assert_eq!(left.nitems().unwrap(), found.concat().len() as u64);
                let items: Vec<Value> =
                    (0..left.nitems().unwrap()).map(|item| left.item(item).unwrap()).collect();
                assert_eq!(items, found.concat());
                if done {
                    assert_eq!(found, after);
                    break;
                }
            }
            assert!(seen.iter().all(|&seen| seen > 0), "{seen:?}");
        }
    }

    #[derive(Debug, Clone)]
    enum Step {
        Append(Vec<i64>),
        Insert(usize, Vec<i64>),
        Set(usize, Vec<i64>),
        Remove(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let batch = || prop::collection::vec(any::<i64>(), 1..9);
        let step = prop_oneof![
            batch().prop_map(Step::Append),
            (0..9usize, batch()).prop_map(|(index, items)| Step::Insert(index, items)),
            (0..9usize, batch()).prop_map(|(index, items)| Step::Set(index, items)),
            (0..9usize).prop_map(Step::Remove),
        ];
        prop::collection::vec(step, 0..12)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn changes_do_what_they_do_to_lists(steps in steps(), per_block in prop::option::of(1..5u64)) {
            let params = CParams::default().level(1);
            let schunk = OpenOptions::new().cparams(&params).create_new(true).open(Vec::new()).unwrap();
            let mut array = BatchArray::new_in(schunk, per_block).unwrap();
            let mut model: Vec<Vec<Value>> = Vec::new();
            for step in steps {
                match step {
                    Step::Append(items) => {
                        array.append(&items).unwrap();
                        model.push(ints(&items));
                    }
                    Step::Insert(index, items) if index <= model.len() => {
                        array.insert(index, &items).unwrap();
                        model.insert(index, ints(&items));
                    }
                    Step::Set(index, items) if index < model.len() => {
                        array.set(index, &items).unwrap();
                        model[index] = ints(&items);
                    }
                    Step::Remove(index) if index < model.len() => {
                        array.remove(index).unwrap();
                        model.remove(index);
                    }
                    _ => {}
                }
                prop_assert_eq!(array.len(), model.len());
                prop_assert_eq!(array.nitems().unwrap(), model.concat().len() as u64);
            }
            let array = reopened(array, false).unwrap();
            prop_assert_eq!(&batches(&array), &model);
            let items: Vec<Value> =
                (0..array.nitems().unwrap()).map(|item| array.item(item).unwrap()).collect();
            prop_assert_eq!(items, model.concat());
            let kept = kept_lengths(array.schunk()).unwrap().unwrap();
            prop_assert!(kept.into_iter().eq(model.iter().map(|batch| batch.len() as u64)));
        }
    }
}
