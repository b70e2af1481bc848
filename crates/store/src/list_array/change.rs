//! Creating and changing list arrays.

use serde::Serialize;

use super::*;
use crate::blosc2::super_chunk::MetalayersMut;
use crate::blosc2::{ErrorKind, OpenOptions, Result, SChunk, Target, Value};
use crate::limits::MAX_BATCH;
use crate::tag::{Doing, Fault, check_new, error, weight, what};
use crate::{BatchArray, ItemKind, ItemType, ObjectArray};

impl ListArray {
    /// Opens a file, a directory or another target for reading and changing.
    ///
    /// # Errors
    /// Fails with the errors of [opening a container](crate#opening-a-container).
    pub fn open_rw(target: impl Into<Target>) -> Result<Self> {
        Self::from_schunk(SChunk::open_rw(target)?)
    }

    /// Creates an empty array in a new contiguous file. The items of the lists have the type `item`. If `nullable` is
    /// `true`, rows can be null (`None`).
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: `item` has an option that does not exist for its kind, or an option with an
    ///   invalid value;
    /// - the errors of [creating a container](crate#creating-a-container).
    pub fn create(
        target: impl Into<Target>,
        item: impl Into<ItemType>,
        nullable: bool,
    ) -> Result<Self> {
        let list = list_of(item.into(), nullable);
        check_list(&list).doing(MAKE)?;
        Self::new_in(OpenOptions::new().create_new(true).open(target)?, list)
    }

    /// Creates an empty array in memory. The items of the lists have the type `item`. If `nullable` is `true`, rows can
    /// be null (`None`).
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: `item` has an option that does not exist for its kind, or an option with an
    ///   invalid value;
    /// - [`ErrorKind::Unsupported`]: this build does not have the default codec, Zstandard.
    pub fn in_memory(item: impl Into<ItemType>, nullable: bool) -> Result<Self> {
        Self::new_in(OpenOptions::new().open(Target::memory())?, list_of(item.into(), nullable))
    }

    /// Creates an array in an empty super-chunk. The array uses the storage and the compression parameters of the
    /// super-chunk. `list` is the type of the rows; its kind must be [`List`](ItemKind::List).
    ///
    /// ```
    /// use blosc2::OpenOptions;
    /// use blosc2_store::{ItemKind, ItemType, ListArray};
    ///
    /// let list = ItemType::from(ItemKind::List(Box::new(ItemKind::Float32.into())));
    /// let list = list.with("batch_rows", 100).with("items_per_block", 10);
    /// let mut lists = ListArray::new_in(OpenOptions::new().create_new(true).open(Vec::new())?, list)?;
    /// lists.append(Some(&[1.5]))?;
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: the super-chunk has chunks; its typesize is not 1; the kind of `list` is not
    ///   `List`; or `list` has an option that does not exist for its kind, or an option with an invalid value;
    /// - [`ErrorKind::Unsupported`]: the option `serializer` is not `msgpack`;
    /// - [`ErrorKind::ReadOnly`]: the super-chunk was opened for reading or appending;
    /// - [`ErrorKind::Io`]: the file cannot be written.
    pub fn new_in(mut schunk: SChunk, list: ItemType) -> Result<Self> {
        check_list(&list).map_err(|(kind, detail)| error(&schunk, kind, MAKE, detail))?;
        check_new(&schunk, MAKE)?;
        schunk.meta_mut().set_value(NAME, &to_tag(&list))?;
        let rows = match list.get("storage").and_then(Value::as_str) {
            Some("batch") => {
                let items_per_block = list.length("items_per_block").unwrap_or(None);
                Rows::Batches(BatchArray::new_in(schunk, items_per_block)?)
            }
            _ => Rows::Objects(ObjectArray::new_in(schunk)?),
        };
        Self::new(list, rows)
    }

    /// Flushes the buffered rows and returns the super-chunk.
    ///
    /// # Errors
    /// Fails with the errors of [changing a container](crate#changing-a-container).
    pub fn schunk(&mut self) -> Result<&SChunk> {
        self.flush()?;
        Ok(self.stored())
    }

    /// Flushes the buffered rows and converts the array into its super-chunk.
    ///
    /// # Errors
    /// Fails with the errors of [changing a container](crate#changing-a-container).
    pub fn into_schunk(mut self) -> Result<SChunk> {
        self.flush()?;
        Ok(match self.rows.take().expect("only this function takes it") {
            Rows::Batches(batches) => batches.into_schunk(),
            Rows::Objects(objects) => objects.into_schunk(),
        })
    }

    /// Returns the variable-length metalayers, for changing.
    pub fn vlmeta_mut(&mut self) -> MetalayersMut<'_> {
        match self.rows_mut() {
            Rows::Batches(batches) => batches.vlmeta_mut(),
            Rows::Objects(objects) => objects.vlmeta_mut(),
        }
    }

    /// Re-reads the array if other handles or programs have changed it; see [`BatchArray::refresh`]. Buffered rows stay
    /// in the buffer. Until this call, row numbers and [`len`](Self::len) refer to the number of rows that this handle has
    /// read last.
    ///
    /// # Errors
    /// Fails with the errors of [opening a container](crate#opening-a-container).
    pub fn refresh(&mut self) -> Result<()> {
        match self.rows_mut() {
            Rows::Batches(batches) => batches.refresh()?,
            Rows::Objects(objects) => objects.refresh()?,
        }
        self.stored = self.count()?;
        Ok(())
    }

    /// Appends a row; `None` is a null row. Python: `append`.
    ///
    /// Items of float and complex types are rounded to the precision of the type. Float types accept integers. `Bytes`
    /// and `VlBytes` accept sequences of integers from 0 to 255, such as `Vec<u8>`. If an item is a structure, only the
    /// fields of its type are stored; other fields are ignored.
    ///
    /// # Errors
    /// - [`ErrorKind::TypeMismatch`]: an item has another type, is outside the range of its integer type, or lacks a
    ///   field;
    /// - [`ErrorKind::InvalidArgument`], in one of these cases:
    ///   - an item violates the bounds of its type (`ge`, `gt`, `le`, `lt`, `min_length`, `max_length`);
    ///   - an item or row is null, but its type is not nullable;
    ///   - a list starts with the string `__tuple__`, because Python would read such a list as a tuple;
    /// - [`ErrorKind::Unsupported`]: the items are of the kind [`Other`](ItemKind::Other);
    /// - [`ErrorKind::ReadOnly`]: the array was opened for reading;
    /// - the errors of [changing a container](crate#changing-a-container), if the row completes a batch or the option
    ///   `storage` of the list type is `vl`. After such an error, the row is not appended.
    pub fn append<T: Serialize>(&mut self, row: Option<&[T]>) -> Result<()> {
        let value = self.value_of(row)?;
        if let Rows::Objects(objects) = self.rows_mut() {
            objects.append(&value)?;
            self.stored = self.count()?;
            return Ok(());
        }
        let nbytes = weight(&value);
        if self.pending_bytes.saturating_add(nbytes) > MAX_BATCH {
            // Readers can read each batch.
            self.flush()?;
        }
        self.pending.push(value);
        self.pending_bytes += nbytes;
        let is_full = self.batch_rows.is_some_and(|rows| self.pending() as u64 >= rows);
        if (is_full || self.pending_bytes > MAX_BATCH)
            && let Err(error) = self.flush()
        {
            if self.pending.pop().is_some() {
                self.pending_bytes -= nbytes;
            }
            return Err(error);
        }
        Ok(())
    }

    /// Replaces a row. If the row is in a stored batch, the complete batch is rewritten. Python: `array[row] = with`.
    ///
    /// # Errors
    /// - [`ErrorKind::OutOfBounds`]: `row` is not below the number of rows;
    /// - the errors of [`append`](Self::append) for the row;
    /// - the errors of [reading values](crate#reading-values) and of
    ///   [changing a container](crate#changing-a-container).
    pub fn set<T: Serialize>(&mut self, row: u64, with: Option<&[T]>) -> Result<()> {
        let value = self.value_of(with)?;
        if let Some(index) = self.pending_index(row)? {
            if let Some(old) = self.pending.get_mut(index) {
                self.pending_bytes = self.pending_bytes - weight(old) + weight(&value);
                *old = value;
            }
            return Ok(());
        }
        match self.rows_mut() {
            Rows::Objects(objects) => objects.set(row as usize, &value),
            Rows::Batches(batches) => {
                let (batch, index) = batches.locate(row)?;
                let mut values = batches.batch(batch)?;
                // The length was checked.
                if let Some(old) = values.get_mut(index as usize) {
                    *old = value;
                }
                batches.set_values(batch, &values)
            }
        }
    }

    /// Writes the buffered rows as a batch.
    ///
    /// # Errors
    /// Fails with the errors of [changing a container](crate#changing-a-container). After an error, the rows stay in
    /// the buffer.
    pub fn flush(&mut self) -> Result<()> {
        if let (Some(Rows::Batches(batches)), false) = (&mut self.rows, self.pending.is_empty()) {
            let before = batches.len();
            let appended = batches.append_values(&self.pending);
            // A batch may be stored although the call has failed.
            if appended.is_ok() || batches.len() > before {
                self.pending.clear();
                self.pending_bytes = 0;
                self.stored = self.count()?;
            }
            appended?;
        }
        Ok(())
    }

    fn rows_mut(&mut self) -> &mut Rows {
        self.rows.as_mut().expect("only `into_schunk` takes it")
    }

    /// Converts a row to its stored form.
    fn value_of<T: Serialize>(&self, row: Option<&[T]>) -> Result<Value> {
        if !self.stored().info().is_writable {
            let detail = "it was not opened for changing";
            return Err(error(self.stored(), ErrorKind::ReadOnly, WRITE, detail));
        }
        let value = row.map_or(Ok(Value::None), Value::from_type)?;
        let failed = |(kind, detail): (ErrorKind, String)| {
            error(self.stored(), kind, WRITE, format!("the row is invalid: {detail}"))
        };
        self.list.stored(value).map_err(failed)
    }
}

impl Drop for ListArray {
    fn drop(&mut self) {
        // Errors are ignored here; `flush` returns them.
        let _ = self.flush();
    }
}

fn list_of(item: ItemType, nullable: bool) -> ItemType {
    let list = ItemType::from(ItemKind::List(Box::new(item)));
    if nullable { list.nullable() } else { list }
}

/// Checks that an array of this row type can be created. The error describes the fault.
fn check_list(list: &ItemType) -> Result<(), Fault> {
    let invalid = |detail: String| Err((ErrorKind::InvalidArgument, detail));
    if !matches!(list.kind(), ItemKind::List(_)) {
        return invalid(format!(
            "the type of its rows is `{}`, expected `list`",
            list.kind().name()
        ));
    }
    if let Err(detail) = list.check() {
        return invalid(format!("its type is invalid: {detail}"));
    }
    let text = |name| list.get(name).and_then(Value::as_str);
    let found = |name| list.get(name).map_or_else(String::new, what);
    if !matches!(text("storage"), Some("batch" | "vl")) {
        return invalid(format!("its storage is {}, expected `batch` or `vl`", found("storage")));
    }
    if text("serializer") != Some("msgpack") {
        let detail =
            format!("its serializer is {}, only msgpack is supported", found("serializer"));
        return Err((ErrorKind::Unsupported, detail));
    }
    Ok(())
}

/// The content of the metalayer for a row type.
fn to_tag(list: &ItemType) -> Value {
    let mut pairs = vec![("version".into(), 1.into())];
    let Value::Map(says) = list.metadata() else { return Value::Map(pairs) };
    let (storage, others): (Vec<_>, _) =
        says.into_iter().partition(|(name, _)| name.as_str() == Some("storage"));
    pairs.extend(others);
    pairs.extend(storage.into_iter().map(|(_, storage)| ("backend".into(), storage)));
    Value::Map(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    use crate::{EmbedStore, Object};

    fn list(item: impl Into<ItemType>) -> ItemType {
        list_of(item.into(), true)
    }

    fn schunk() -> SChunk {
        OpenOptions::new().create_new(true).open(Vec::new()).unwrap()
    }

    fn rows(array: &ListArray) -> Vec<Option<Vec<Value>>> {
        array.iter().map(Result::unwrap).collect()
    }

    fn row(items: &[i32]) -> Option<Vec<Value>> {
        Some(items.iter().map(|&item| item.into()).collect())
    }

    fn batch_lens(array: &ListArray) -> Vec<usize> {
        match array.rows() {
            Rows::Batches(batches) => batches.batches().map(|batch| batch.unwrap().len()).collect(),
            Rows::Objects(objects) => vec![objects.len()],
        }
    }

    #[test]
    fn rows_are_collected_until_they_are_a_batch() {
        let list = list(ItemKind::Int32).with("batch_rows", 3);
        let mut array = ListArray::new_in(schunk(), list).unwrap();
        for number in 0..8 {
            array.append(Some(&[number, 1])).unwrap();
            assert_eq!(array.len(), number as u64 + 1);
            assert_eq!(array.pending() as i32, (number + 1) % 3);
        }
        array.set::<i32>(1, None).unwrap();
        array.set(7, Some(&[70])).unwrap();
        let mut expected: Vec<_> = (0..8).map(|number| row(&[number, 1])).collect();
        (expected[1], expected[7]) = (None, row(&[70]));
        assert_eq!((rows(&array), batch_lens(&array)), (expected.clone(), vec![3, 3]));
        let got: Vec<_> = (0..8).map(|index| array.get(index).unwrap()).collect();
        assert_eq!(got, expected);
        array.flush().unwrap();
        array.flush().unwrap();
        array.append::<i32>(Some(&[])).unwrap();
        assert_eq!((batch_lens(&array), array.pending()), (vec![3, 3, 2], 1));
        for error in [array.get(9).unwrap_err(), array.set::<i32>(9, None).unwrap_err()] {
            assert_eq!(error.kind(), ErrorKind::OutOfBounds);
        }

        let array = ListArray::from_schunk(array.into_schunk().unwrap()).unwrap();
        expected.push(row(&[]));
        assert_eq!((rows(&array), batch_lens(&array)), (expected, vec![3, 3, 2, 1]));
    }

    #[test]
    fn rows_are_written_when_the_array_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.b2b");
        let mut array = ListArray::create(&path, ItemKind::UInt8, false).unwrap();
        for _ in 0..2049 {
            array.append(Some(b"ab")).unwrap();
        }
        assert_eq!(array.pending(), 1);
        drop(array);
        let mut array = ListArray::open(&path).unwrap();
        assert_eq!(batch_lens(&array), [2048, 1]);
        assert_eq!(array.get(2048).unwrap(), row(&[97, 98]));
        let error = array.append(Some(b"ab")).unwrap_err();
        assert_eq!((error.kind(), array.len()), (ErrorKind::ReadOnly, 2049));
        assert_eq!(array.set(0, Some(b"ab")).unwrap_err().kind(), ErrorKind::ReadOnly);
        assert_eq!(
            ListArray::create(&path, ItemKind::UInt8, false).unwrap_err().kind(),
            ErrorKind::AlreadyExists
        );
    }

    #[test]
    fn rows_that_do_not_fit_are_not_there() {
        let mut array = ListArray::in_memory(ItemKind::String { max_length: 32 }, false).unwrap();
        let refused = |changed: Result<()>, kind: ErrorKind, text: &str| {
            let error = changed.expect_err(text);
            assert_eq!(error.kind(), kind, "{error}");
            assert!(error.to_string().contains(text), "{error}");
        };
        array.append(Some(&["a"])).unwrap();
        refused(array.append::<i32>(None), ErrorKind::InvalidArgument, "`list` does not allow");
        refused(array.append(Some(&[1])), ErrorKind::TypeMismatch, "1, expected `string`");
        refused(array.set(0, Some(&[1])), ErrorKind::TypeMismatch, "1, expected `string`");
        let long = ["b".repeat(33)];
        refused(
            array.append(Some(&long)),
            ErrorKind::InvalidArgument,
            "length 33, expected 0 to 32",
        );
        let tuple = Some(&["__tuple__", "a"][..]);
        refused(array.append(tuple), ErrorKind::InvalidArgument, "`__tuple__`");
        assert_eq!(rows(&array), [Some(vec!["a".into()])]);
    }

    #[test]
    fn the_super_chunk_has_all_rows() {
        let mut array = ListArray::in_memory(ItemKind::Int32, true).unwrap();
        array.append(Some(&[1, 2])).unwrap();
        array.append::<i32>(None).unwrap();
        let mut store = EmbedStore::in_memory().unwrap();
        store.insert("/lists", array.schunk().unwrap()).unwrap();
        assert_eq!((array.len(), array.pending()), (2, 0));
        let Object::ListArray(kept) = store.get("/lists").unwrap() else { panic!("lists") };
        assert_eq!(rows(&kept), [row(&[1, 2]), None]);
    }

    #[test]
    fn rows_may_have_a_chunk_each() {
        let list = list(ItemKind::Int32).with("storage", "vl");
        let mut array = ListArray::new_in(schunk(), list).unwrap();
        array.append(Some(&[1, 2])).unwrap();
        array.append::<i32>(None).unwrap();
        array.append::<i32>(Some(&[])).unwrap();
        array.set(2, Some(&[3])).unwrap();
        assert_eq!((array.len(), array.pending()), (3, 0));
        let array = ListArray::from_schunk(array.into_schunk().unwrap()).unwrap();
        assert_eq!(rows(&array), [row(&[1, 2]), None, row(&[3])]);
        assert_eq!(array.get(2).unwrap(), row(&[3]));
        assert_eq!(array.list_type().get("storage"), Some(&"vl".into()));
    }

    #[test]
    fn types_that_cannot_be_are_refused() {
        let refused = |list: ItemType, kind: ErrorKind| {
            let error = ListArray::new_in(schunk(), list).unwrap_err();
            assert_eq!(error.kind(), kind, "{error}");
        };
        refused(ItemKind::Int8.into(), ErrorKind::InvalidArgument);
        refused(list(ItemType::from(ItemKind::Int8).with("unit", "s")), ErrorKind::InvalidArgument);
        refused(list(ItemKind::Int8).with("batch_rows", 0), ErrorKind::InvalidArgument);
        refused(list(ItemKind::Int8).with("items_per_block", 0), ErrorKind::InvalidArgument);
        refused(list(ItemKind::Int8).with("storage", "other"), ErrorKind::InvalidArgument);
        refused(list(ItemKind::Int8).with("serializer", "arrow"), ErrorKind::Unsupported);
        let mut full = schunk();
        full.append(b"a").unwrap();
        let error = ListArray::new_in(full, list(ItemKind::Int8)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        // Nothing is created.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.b2b");
        let item = ItemType::from(ItemKind::Int8).with("unit", "s");
        assert!(ListArray::create(&path, item, true).is_err() && !path.exists());
    }

    #[test]
    fn what_is_no_array_of_lists_is_refused() {
        let item = || ("item", Value::from([("kind", "int8".into())]));
        let with = |tag: Value, batches: bool| {
            let mut schunk = schunk();
            schunk.meta_mut().set_value(NAME, &tag)?;
            let schunk = match batches {
                true => BatchArray::new_in(schunk, None)?.into_schunk(),
                false => schunk,
            };
            ListArray::from_schunk(schunk)
        };
        let refused = |opened: Result<ListArray>, kind: ErrorKind| {
            let error = opened.unwrap_err();
            assert_eq!(error.kind(), kind, "{error}");
        };
        use crate::blosc2::ErrorKind::{InvalidData, Unsupported};
        refused(ListArray::from_schunk(schunk()), InvalidData);
        refused(with(5.into(), true), InvalidData);
        refused(with(Value::Map(vec![]), true), InvalidData);
        refused(with(Value::from([item()]), false), InvalidData);
        refused(with(Value::from([item(), ("backend", "vl".into())]), true), InvalidData);
        refused(with(Value::from([item(), ("backend", 5.into())]), true), InvalidData);
        refused(with(Value::from([item(), ("batch_rows", 0.into())]), true), InvalidData);
        refused(with(Value::from([item(), ("batch_rows", "a".into())]), true), InvalidData);
        refused(with(Value::from([item(), ("serializer", "pickle".into())]), true), Unsupported);
        if cfg!(not(feature = "arrow")) {
            refused(with(Value::from([item(), ("serializer", "arrow".into())]), true), Unsupported);
        }
        refused(with(Value::from([item(), ("version", 2.into())]), true), Unsupported);
        // As written before the default of 2048 rows per batch.
        let mut array = with(Value::from([("item_spec", item().1)]), true).unwrap();
        (0..3000).for_each(|_| array.append(Some(&[1])).unwrap());
        assert_eq!((array.pending(), array.item_type().kind()), (3000, &ItemKind::Int8));

        let mut batches = BatchArray::from_schunk(array.into_schunk().unwrap()).unwrap();
        batches.append(&[5]).unwrap();
        let array = ListArray::from_schunk(batches.into_schunk()).unwrap();
        assert_eq!(array.get(3000).unwrap_err().kind(), InvalidData);
    }

    #[test]
    fn there_may_seem_to_be_any_number_of_rows() {
        let mut array = ListArray::in_memory(ItemKind::Int32, true).unwrap();
        array.append(Some(&[1])).unwrap();
        array.flush().unwrap();
        let lengths = Value::from([("batch_lengths", Value::List(vec![u64::MAX.into()]))]);
        array.vlmeta_mut().set_value("_batch_array_metadata", &lengths).unwrap();
        let mut array = ListArray::from_schunk(array.into_schunk().unwrap()).unwrap();
        assert_eq!(array.len(), u64::MAX);
        array.append(Some(&[2])).unwrap();
        assert_eq!(array.len(), u64::MAX);
        assert_eq!(array.get(0).unwrap(), row(&[1]));
        for row in [1, u64::MAX - 1] {
            assert_eq!(array.get(row).unwrap_err().kind(), ErrorKind::InvalidData);
        }
        assert_eq!(array.flush().unwrap_err().kind(), ErrorKind::InvalidData);
        assert_eq!(array.pending(), 1);
    }

    #[test]
    fn a_row_whose_batch_cannot_be_written_is_not_there() {
        let mut schunk = ListArray::new_in(schunk(), list(ItemKind::Int32).with("batch_rows", 2))
            .and_then(ListArray::into_schunk)
            .unwrap();
        schunk.set_cparams(schunk.info().cparams.prefilter(|_| Err("no"))).unwrap();
        let mut array = ListArray::from_schunk(schunk).unwrap();
        array.append(Some(&[1])).unwrap();
        assert_eq!(array.append(Some(&[2])).unwrap_err().kind(), ErrorKind::Callback);
        assert_eq!(array.flush().unwrap_err().kind(), ErrorKind::Callback);
        assert_eq!((rows(&array), array.pending()), (vec![row(&[1])], 1));
    }

    proptest! {
        #[test]
        fn broken_bytes_are_an_error_or_other_rows(
            storage in prop::sample::select(vec!["batch", "vl"]),
            flips in prop::collection::vec((any::<prop::sample::Index>(), 1..=255u8), 1..4),
        ) {
            let list = list(ItemKind::Int32).with("batch_rows", 4).with("storage", storage);
            let mut array = ListArray::new_in(schunk(), list.with("items_per_block", 3)).unwrap();
            for number in 0..10 {
                array.append(Some(&vec![number; number as usize])).unwrap();
            }
            let mut bytes = array.into_schunk().unwrap().into_cframe().unwrap();
            for (index, flip) in flips {
                let index = index.index(bytes.len());
                bytes[index] ^= flip;
            }
            let opened = OpenOptions::new().max_read(1 << 20).open(bytes);
            if let Ok(array) = opened.and_then(ListArray::from_schunk) {
                // Regardless of the stored number of rows.
                let got = (0..array.len().min(100)).map(|row| array.get(row)).filter(Result::is_ok);
                prop_assert!(got.count() <= 100);
                prop_assert!(array.iter().take(100).count() <= 100);
            }
        }
    }

    #[test]
    fn rows_of_a_batch_have_a_maximum_size() {
        let mut array = ListArray::in_memory(ItemKind::VlString, false).unwrap();
        let text = "x".repeat(MAX_BATCH as usize / 4);
        for row in 1..=10 {
            array.append(Some(&[&text])).unwrap();
            assert_eq!((array.len(), array.pending() as u64), (row, (row - 1) % 3 + 1));
        }
        array.set(9, Some(&["short"])).unwrap();
        array.append(Some(&[&text, &text, &text])).unwrap();
        assert_eq!(array.pending(), 2);
        // A single row may be larger.
        array.append(Some(&[&text; 5])).unwrap();
        assert_eq!((batch_lens(&array), array.pending()), (vec![3, 3, 3, 2, 1], 0));
        assert_eq!(array.get(11).unwrap().unwrap().len(), 5);
    }
}
