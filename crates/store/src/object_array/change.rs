//! Creating and changing object arrays.

use serde::Serialize;

use super::*;
use crate::blosc2::limits::default_max_read;
use crate::blosc2::super_chunk::MetalayersMut;
use crate::blosc2::{CParams, OpenOptions, Result, SChunk, Target, Value};
use crate::limits::{check_readable, memory_of};
use crate::tag::{check_new, free_chunksize};

impl ObjectArray {
    /// Opens a file, a directory or another target for reading and changing.
    ///
    /// # Errors
    /// Fails with the errors of [opening a container](crate#opening-a-container).
    pub fn open_rw(target: impl Into<Target>) -> Result<Self> {
        Self::from_schunk(SChunk::open_rw(target)?)
    }

    /// Creates an empty array in a new contiguous file, with the [default parameters](Self::default_cparams).
    ///
    /// # Errors
    /// Fails with the errors of [creating a container](crate#creating-a-container).
    pub fn create(target: impl Into<Target>) -> Result<Self> {
        let options = OpenOptions::new().create_new(true).cparams(Self::default_cparams());
        Self::new_in(options.open(target)?)
    }

    /// Creates an empty array in memory, with the [default parameters](Self::default_cparams).
    ///
    /// # Errors
    /// Fails with the errors of [creating a container](crate#creating-a-container).
    pub fn in_memory() -> Result<Self> {
        Self::new_in(OpenOptions::new().cparams(Self::default_cparams()).open(Target::memory())?)
    }

    /// Creates an array in an empty super-chunk. The array uses the storage and the compression parameters of the
    /// super-chunk.
    ///
    /// ```
    /// use blosc2::{CParams, Codec, OpenOptions, Target};
    /// use blosc2_store::ObjectArray;
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("objects");
    /// let params = CParams::new().codec(Codec::Lz4);
    /// let options = OpenOptions::new().create_new(true).cparams(&params);
    /// let mut array = ObjectArray::new_in(options.open(Target::from(&path).directory(true))?)?;
    /// array.append("a file for each value")?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`](blosc2::ErrorKind::InvalidArgument): the super-chunk has chunks, or its
    ///   typesize is not 1;
    /// - [`ErrorKind::ReadOnly`](blosc2::ErrorKind::ReadOnly): the super-chunk was opened for reading or appending;
    /// - [`ErrorKind::Io`](blosc2::ErrorKind::Io): the file cannot be written.
    pub fn new_in(mut schunk: SChunk) -> Result<Self> {
        check_new(&schunk, MAKE)?;
        let meta = Value::from([("version", 1.into()), ("serializer", "msgpack".into())]);
        schunk.meta_mut().set_value(NAME, &meta)?;
        Ok(Self { schunk })
    }

    /// Returns the default compression parameters: Zstandard at level 5, shuffle, and a compression
    /// dictionary in each chunk. Python has the same defaults.
    pub fn default_cparams() -> CParams {
        CParams::default().dictionary(true)
    }

    pub(crate) fn schunk_mut(&mut self) -> &mut SChunk {
        &mut self.schunk
    }

    /// Returns the variable-length metalayers, for changing.
    pub fn vlmeta_mut(&mut self) -> MetalayersMut<'_> {
        self.schunk.vlmeta_mut()
    }

    /// Re-reads the array if other handles or programs have changed it; see [`SChunk::refresh`]. After a change by another
    /// handle of this program, [`get`](Self::get) returns the new values even without a call of this method, and an index
    /// refers to the new values.
    ///
    /// # Errors
    /// Fails with the errors of [opening a container](crate#opening-a-container). After an error, the array is
    /// unchanged.
    pub fn refresh(&mut self) -> Result<()> {
        self.schunk.refresh().map(drop)
    }

    /// Appends a value. Python: `append`.
    ///
    /// # Errors
    /// Fails with the errors of [changing a container](crate#changing-a-container).
    pub fn append<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        let encoded = Encoded::of(value)?;
        self.put(&encoded, |schunk| {
            schunk.append(&encoded.bytes)?;
            Ok(schunk.nchunks() - 1)
        })
    }

    /// Inserts a value before `index`, or appends it if `index` is the number of values. Python: `insert`.
    ///
    /// # Errors
    /// - [`ErrorKind::OutOfBounds`](blosc2::ErrorKind::OutOfBounds): `index` is above the number of values;
    /// - the errors of [changing a container](crate#changing-a-container).
    pub fn insert<T: Serialize + ?Sized>(&mut self, index: usize, value: &T) -> Result<()> {
        let encoded = Encoded::of(value)?;
        self.put(&encoded, |schunk| schunk.insert(index, &encoded.bytes).map(|()| index))
    }

    /// Replaces a value. Python: `array[index] = value`.
    ///
    /// # Errors
    /// - [`ErrorKind::OutOfBounds`](blosc2::ErrorKind::OutOfBounds): `index` is not below the number of values;
    /// - the errors of [changing a container](crate#changing-a-container).
    pub fn set<T: Serialize + ?Sized>(&mut self, index: usize, value: &T) -> Result<()> {
        self.set_all(std::iter::once((index, value)))
    }

    /// Removes a value. Python: `del array[index]`.
    ///
    /// # Errors
    /// - [`ErrorKind::OutOfBounds`](blosc2::ErrorKind::OutOfBounds): `index` is not below the number of values;
    /// - the errors of [changing a container](crate#changing-a-container).
    pub fn remove(&mut self, index: usize) -> Result<()> {
        self.edit(|schunk| schunk.remove(index))
    }

    /// Appends values in one transaction.
    pub(crate) fn append_all(&mut self, values: &[Value]) -> Result<()> {
        self.edit(|schunk| {
            values.iter().try_for_each(|value| {
                let encoded = Encoded::of(value)?;
                schunk.append(&encoded.bytes)?;
                encoded.check(schunk, schunk.nchunks() - 1)
            })
        })
    }

    /// Replaces values in one transaction.
    pub(crate) fn set_all<'a, T: Serialize + ?Sized + 'a>(
        &mut self,
        mut values: impl Iterator<Item = (usize, &'a T)>,
    ) -> Result<()> {
        self.edit(|schunk| {
            values.try_for_each(|(index, value)| {
                let encoded = Encoded::of(value)?;
                schunk.replace(index, &encoded.bytes)?;
                encoded.check(schunk, index)
            })
        })
    }

    pub(crate) fn truncate(&mut self, len: usize) -> Result<()> {
        self.edit(|schunk| schunk.remove(len..))
    }

    /// Keeps the values with these ascending indices and removes all others, in one transaction.
    pub(crate) fn retain(&mut self, kept: &[usize]) -> Result<()> {
        self.edit(|schunk| {
            let mut order = kept.to_vec();
            let mut next = kept.iter().peekable();
            order.extend((0..schunk.nchunks()).filter(|index| next.next_if_eq(&index).is_none()));
            schunk.reorder(&order)?;
            schunk.remove(kept.len()..)
        })
    }

    /// Stores a value with `work`, which returns the index of its chunk.
    fn put(
        &mut self,
        encoded: &Encoded,
        work: impl FnOnce(&mut SChunk) -> Result<usize>,
    ) -> Result<()> {
        if encoded.is_small() {
            return work(&mut self.schunk).map(drop);
        }
        self.schunk.transaction(|schunk| {
            let index = work(schunk)?;
            encoded.check(schunk, index)
        })
    }

    fn edit(&mut self, work: impl FnOnce(&mut SChunk) -> Result<()>) -> Result<()> {
        self.schunk.transaction(|schunk| {
            work(schunk)?;
            free_chunksize(schunk)
        })
    }
}

#[derive(Debug)]
struct Encoded {
    bytes: Vec<u8>,
    memory: u64,
}

impl Encoded {
    fn of<T: Serialize + ?Sized>(value: &T) -> Result<Self> {
        let value = Value::from_type(value)?;
        let bytes = value.to_msgpack()?;
        Ok(Self { memory: memory_of(bytes.len() as u64, || value.count()), bytes })
    }

    /// Whether readers can read it, however well it is compressed.
    fn is_small(&self) -> bool {
        self.memory <= default_max_read(0)
    }

    /// Checks that readers can read the value, which is stored as the chunk `index`.
    fn check(&self, schunk: &SChunk, index: usize) -> Result<()> {
        if self.is_small() {
            return Ok(());
        }
        check_readable(schunk, WRITE, self.memory, schunk.chunk_info(index)?.cbytes as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blosc2::ErrorKind;

    #[test]
    fn values_are_put_where_they_were_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.b2frame");
        let mut array = ObjectArray::create(&path).unwrap();
        assert!(array.is_empty());
        array.append("b").unwrap();
        array.insert(0, &1.5).unwrap();
        array.insert(2, &Value::Tuple(vec![])).unwrap();
        array.set(1, &["longer than before"; 9]).unwrap();
        array.append(&()).unwrap();
        array.remove(3).unwrap();
        array.vlmeta_mut().set_value("of", "me").unwrap();
        drop(array);
        let mut array = ObjectArray::open(&path).unwrap();
        let longer = vec![Value::from("longer than before"); 9];
        let expected = [1.5.into(), longer.into(), Value::Tuple(vec![])];
        assert_eq!(array.iter().collect::<Result<Vec<_>>>().unwrap(), expected);
        assert_eq!(array.iter().next_back().unwrap().unwrap(), Value::Tuple(vec![]));
        assert_eq!(array.vlmeta().value("of").unwrap(), Some("me".into()));
        assert_eq!(array.append(&1).unwrap_err().kind(), ErrorKind::ReadOnly);

        let mut array = ObjectArray::open_rw(&path).unwrap();
        let refused = |changed: Result<()>, kind| assert_eq!(changed.unwrap_err().kind(), kind);
        refused(array.append(&Value::List(vec!["__tuple__".into()])), ErrorKind::InvalidArgument);
        refused(array.append(&["__tuple__", "a"]), ErrorKind::InvalidArgument);
        refused(array.insert(4, &1), ErrorKind::OutOfBounds);
        refused(array.set(3, &1), ErrorKind::OutOfBounds);
        refused(array.remove(3), ErrorKind::OutOfBounds);
        refused(array.get(3).map(drop), ErrorKind::OutOfBounds);
        assert_eq!(array.len(), 3);
        refused(ObjectArray::create(&path).map(drop), ErrorKind::AlreadyExists);
    }

    /// C-Blosc2 cannot append a chunk after a single one that is shorter than the chunk size of the frame.
    #[test]
    fn a_single_value_has_the_size_of_chunks() {
        let long = "x".repeat(500);
        let check = |array: &ObjectArray| {
            let schunk = array.schunk();
            assert_eq!(schunk.nchunks(), 1);
            // 0: chunks have any size.
            let free = [0, schunk.chunk_info(0).unwrap().nbytes];
            assert!(free.contains(&schunk.chunksize()));
            assert_eq!(array.get(0).unwrap(), "short".into());
        };
        let mut array = ObjectArray::in_memory().unwrap();
        array.append(&long).unwrap();
        array.set(0, "short").unwrap();
        check(&array);
        array.insert(0, &long).unwrap();
        array.remove(0).unwrap();
        check(&array);
        let mut array = ObjectArray::in_memory().unwrap();
        array.append(&long).unwrap();
        array.append("short").unwrap();
        array.remove(0).unwrap();
        check(&array);
        array.append(&long).unwrap();
        array.set_all([(0, &long[..]), (1, "short")].into_iter()).unwrap();
        array.retain(&[1]).unwrap();
        check(&array);
    }

    #[test]
    fn what_is_no_array_of_objects_is_refused() {
        let schunk = || OpenOptions::new().open(Target::memory()).unwrap();
        let with = |tag: Value| {
            let mut schunk = schunk();
            schunk.meta_mut().set_value(NAME, &tag).unwrap();
            ObjectArray::from_schunk(schunk)
        };
        let refused =
            |opened: Result<ObjectArray>, kind| assert_eq!(opened.unwrap_err().kind(), kind);
        refused(ObjectArray::from_schunk(schunk()), ErrorKind::InvalidData);
        refused(with(Value::List(vec![])), ErrorKind::InvalidData);
        refused(with(Value::from([("serializer", "pickle".into())])), ErrorKind::Unsupported);
        refused(with(Value::from([("version", 2.into())])), ErrorKind::Unsupported);
        assert!(with(Value::Map(vec![])).is_ok());
        let wide = OpenOptions::new().typesize(4).open(Target::memory()).unwrap();
        refused(ObjectArray::new_in(wide), ErrorKind::InvalidArgument);

        let mut schunk = schunk();
        schunk.append(b"\xc1").unwrap();
        refused(ObjectArray::new_in(schunk.try_clone().unwrap()), ErrorKind::InvalidArgument);
        let mut array = ObjectArray::in_memory().unwrap().into_schunk();
        array.append(b"\xc1").unwrap();
        let error = ObjectArray::from_schunk(array).unwrap().get(0).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
    }

    /// A value is read as a whole. The memory for reading it is compared with the stored bytes.
    #[test]
    fn values_that_readers_refuse_are_not_stored() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.b2frame");
        let mut array = ObjectArray::create(&path).unwrap();
        array.append(&1).unwrap();
        let bytes = Value::Bytes(vec![7; 4000]).to_msgpack().unwrap();
        let mut put = |memory| {
            let encoded = Encoded { bytes: bytes.clone(), memory };
            let append =
                |schunk: &mut SChunk| schunk.append(&encoded.bytes).map(|()| schunk.nchunks() - 1);
            array.put(&encoded, append).map_err(|error| error.kind())
        };
        assert_eq!(put((1 << 30) + 1), Err(ErrorKind::TooLarge));
        assert_eq!(put(1 << 30), Ok(()));
        drop(array);
        let array = ObjectArray::open(&path).unwrap();
        let found = array.iter().collect::<Result<Vec<_>>>().unwrap();
        assert_eq!(found, [1.into(), Value::Bytes(vec![7; 4000])]);
    }

    #[test]
    fn the_memory_of_a_value_is_that_of_a_reader() {
        let memory = |value: &Value| Encoded::of(value).unwrap().memory;
        // The values in a few bytes are not counted.
        assert_eq!(memory(&Value::from("x".repeat(100))), 64 * 102);
        assert_eq!(memory(&Value::from("x".repeat(17 << 20))), (17 << 20) + 5);
        let texts = Value::List(vec!["x".repeat(1 << 20).into(); 17]);
        assert_eq!(memory(&texts), 17 * ((1 << 20) + 5) + 3);
    }
}
