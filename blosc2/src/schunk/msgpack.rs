//! Values in metalayers, encoded as msgpack as in Python.

use blosc2_format::value::{Value, ValueError};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::metalayers::{Content, Metalayers, MetalayersMut};
use crate::{Error, OpenOptions, Reason, Result};

const READ: &str = "read a value from a metalayer";
const WRITE: &str = "write a value to a metalayer";

impl Metalayers<'_> {
    /// Decodes the content of the metalayer `name` from msgpack and converts it to a `T`. Returns `None` if there is no
    /// such metalayer. Python: `SChunk.meta[name]`, `SChunk.vlmeta[name]`.
    ///
    /// Python writes such content with `meta[name] = value` and `vlmeta[name] = value`. [`Value::into_type`] describes
    /// the conversion. This method needs the feature `msgpack`.
    ///
    /// # Errors
    /// Fails with the errors of [`value`](Self::value), and with
    /// - [`ErrorKind::TypeMismatch`](crate::ErrorKind::TypeMismatch): the value cannot be converted to a `T`;
    /// - [`ErrorKind::TooLarge`](crate::ErrorKind::TooLarge): the items of arrays in the value take more memory than
    ///   [`OpenOptions::max_read`](crate::OpenOptions::max_read) allows. Each item counts as 64 bytes.
    pub fn get_value<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>> {
        let Some(value) = self.value(name)? else { return Ok(None) };
        // Each item of an array becomes a value.
        let memory = Value::MEMORY.saturating_mul(value.count_in_arrays());
        let max = self.schunk.metadata_allowed(memory);
        if memory > max {
            return Err(self.failed(name, Reason::over_max_read(memory, max).doing(READ)));
        }
        value.into_type().map(Some).map_err(|error| self.failed(name, error.into()))
    }

    /// Decodes the content of the metalayer `name` from msgpack and returns it as a [`Value`]. Returns `None` if there
    /// is no such metalayer. Python: `SChunk.meta[name]`, `SChunk.vlmeta[name]`.
    ///
    /// This method needs the feature `msgpack`.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidData`](crate::ErrorKind::InvalidData): the content cannot be decompressed, is not
    ///   msgpack, or has more than 128 nested levels;
    /// - [`ErrorKind::TooLarge`](crate::ErrorKind::TooLarge): the content or its decoded values take more memory than
    ///   [`OpenOptions::max_read`](crate::OpenOptions::max_read) allows. Each value counts as 64 bytes;
    /// - [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported): this build does not have the codec or a
    ///   filter of the content.
    pub fn value(&self, name: &str) -> Result<Option<Value>> {
        let Some(content) = self.get(name)? else { return Ok(None) };
        // Each value takes at least one byte.
        let most = Value::MEMORY.saturating_mul(content.len() as u64);
        let value = Value::from_msgpack_within(&content, self.schunk.metadata_allowed(most));
        value.map(Some).map_err(|error| self.failed(name, error.into()))
    }

    fn failed(&self, name: &str, error: Error) -> Error {
        self.schunk
            .at(error.with_doing(READ.to_owned()).in_part(format_args!("metalayer `{name}`")))
    }
}

impl MetalayersMut<'_> {
    /// Encodes a value as msgpack and stores it as the content of the metalayer `name`. Adds the metalayer if it does
    /// not exist. Python: `SChunk.meta[name] = value`, `SChunk.vlmeta[name] = value`.
    ///
    /// The encoding is that of Python:
    /// - A struct becomes a map.
    /// - A tuple becomes an array, which Python reads as a list.
    /// - A `Vec<u8>` becomes an array of integers. To store it as msgpack bytes, use `serde_bytes` or
    ///   [`Value::Bytes`].
    /// - A [`Value`] represents every type that Python stores in a metalayer, for example a tuple, a set, a complex
    ///   number or an array.
    ///
    /// This method needs the feature `msgpack`.
    ///
    /// ```
    /// use std::collections::BTreeMap;
    ///
    /// use blosc2::{CParams, SChunk};
    ///
    /// let mut schunk = SChunk::in_memory::<u8>(&CParams::default())?;
    /// let place = BTreeMap::from([("lat", 46.5), ("lon", 8.0)]);
    /// schunk.vlmeta_mut().set_value("place", &place)?;
    /// let place: Option<BTreeMap<String, f64>> = schunk.vlmeta().get_value("place")?;
    /// assert_eq!(place.unwrap()["lat"], 46.5); // Python: schunk.vlmeta["place"]["lat"]
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// Fails with the errors of [`set`](Self::set), and with
    /// - [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument): [`Value::to_msgpack`] fails for the value;
    /// - [`ErrorKind::TooLarge`](crate::ErrorKind::TooLarge): the default limits would not allow to read the values
    ///   in a variable-length metalayer: at 64 bytes for each [value](Value::count), their memory would exceed 256 times
    ///   the compressed size by more than 1 GiB.
    pub fn set_value<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<()> {
        let content = to_content(name, value).map_err(|error| self.schunk.at(error))?;
        self.set_content(name, &content)
    }
}

impl OpenOptions {
    /// Encodes a value as msgpack and adds it as a fixed-length metalayer to a new super-chunk.
    /// [`MetalayersMut::set_value`] describes the encoding. Python: `meta={name: value}`. This method needs the feature
    /// `msgpack`.
    ///
    /// ```
    /// use blosc2::{NDArray, OpenOptions};
    ///
    /// let options = OpenOptions::new().meta_value("units", "kelvin")?.vlmeta_value("tags", &["raw"])?;
    /// let array = NDArray::builder().options(&options).from_slice(&[273.0f32; 6], [2, 3])?;
    /// // Python: array.schunk.meta["units"], array.schunk.vlmeta["tags"]
    /// assert_eq!(array.meta().get_value::<String>("units")?.unwrap(), "kelvin");
    /// assert_eq!(array.vlmeta().get_value::<Vec<String>>("tags")?.unwrap(), ["raw"]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument): [`Value::to_msgpack`] fails for the value.
    pub fn meta_value<T: Serialize + ?Sized>(self, name: &str, value: &T) -> Result<Self> {
        Ok(self.meta(name, to_content(name, value)?.bytes))
    }

    /// Encodes a value as msgpack and adds it as a variable-length metalayer to a new super-chunk. For an example and
    /// the errors, see [`meta_value`](Self::meta_value).
    pub fn vlmeta_value<T: Serialize + ?Sized>(mut self, name: &str, value: &T) -> Result<Self> {
        self.vlmeta.push((name.to_owned(), to_content(name, value)?));
        Ok(self)
    }
}

/// Encodes a value as the content of a metalayer.
fn to_content<T: Serialize + ?Sized>(name: &str, value: &T) -> Result<Content> {
    let content = Value::from_type(value).and_then(|value| {
        let memory = Value::MEMORY.saturating_mul(value.count());
        Ok(Content { bytes: value.to_msgpack()?, memory })
    });
    content.map_err(|error: ValueError| {
        Error::from(error).with_doing(WRITE.to_owned()).in_part(format_args!("metalayer `{name}`"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    /// The values of a metalayer take more memory than its content.
    #[test]
    #[cfg(feature = "zstd")] // The default codec.
    fn values_that_readers_refuse_are_not_stored() {
        let mut schunk = OpenOptions::new().create_new(true).open(Vec::new()).unwrap();
        let mut set = |memory| {
            let content = Content { bytes: vec![0xc0; 1000], memory };
            schunk.vlmeta_mut().set_content("values", &content).map_err(|error| error.kind())
        };
        assert_eq!(set(1 << 30), Ok(()));
        assert_eq!(set((1 << 30) + (256 << 10)), Err(ErrorKind::TooLarge));
        assert_eq!(schunk.vlmeta().get("values").unwrap().unwrap(), [0xc0; 1000]);
    }
}
