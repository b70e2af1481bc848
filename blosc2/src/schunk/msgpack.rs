//! Values in metalayers, as Python keeps them there: msgpack.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::metalayers::{Metalayers, MetalayersMut};
use crate::value::{self, Fault, VALUE_SIZE};
use crate::{Error, ErrorKind, OpenOptions, Result, Value};

const READ: &str = "read a value from a metalayer";
const WRITE: &str = "write a value to a metalayer";

impl Metalayers<'_> {
    /// The content of a metalayer as one of the program's types; `None` if there is none of this name.
    ///
    /// The content is msgpack, as Python's `meta[name] = value` and `vlmeta[name] = value` leave it, and is made
    /// into a `T` as [`Value::into_type`] does it. Needs the feature `msgpack`.
    ///
    /// # Errors
    /// - [`ErrorKind::TypeMismatch`]: it is not a `T`;
    /// - [`ErrorKind::TooLarge`]: the items of arrays in it, at 64 bytes each, take more memory than
    ///   [`OpenOptions::max_read`](crate::OpenOptions::max_read) allows;
    /// - as for [`value`](Self::value).
    pub fn get_value<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>> {
        let Some(value) = self.value(name)? else { return Ok(None) };
        // Of the bytes of an array come that many values.
        let (values, _) = value.plain_len();
        let made = match values <= self.max_values(values) {
            true => value.make_type(),
            false => Err(Fault::TooMany),
        };
        made.map_err(|fault| self.fault(name, fault))?
            .map(Some)
            .map_err(|error| self.failed(ErrorKind::TypeMismatch, name, error))
    }

    /// The content of a metalayer as a value of any kind; `None` if there is none of this name.
    ///
    /// Needs the feature `msgpack`.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidData`]: the content is not msgpack, or deeper than 128 levels;
    /// - [`ErrorKind::TooLarge`]: its values, at 64 bytes each, take more memory than
    ///   [`OpenOptions::max_read`](crate::OpenOptions::max_read) allows;
    /// - as for [`get`](Self::get).
    pub fn value(&self, name: &str) -> Result<Option<Value>> {
        let Some(content) = self.get(name)? else { return Ok(None) };
        let max_values = self.max_values(content.len() as u64);
        let value = value::read(&content, max_values).map_err(|fault| self.fault(name, fault))?;
        Ok(Some(value))
    }

    /// How many values may be made, where there are to be so many.
    fn max_values(&self, wanted: u64) -> u64 {
        self.schunk.metadata_allowed(VALUE_SIZE.saturating_mul(wanted)) / VALUE_SIZE
    }

    fn fault(&self, name: &str, fault: Fault) -> Error {
        let (kind, detail) = fault.in_content();
        self.failed(kind, name, detail)
    }

    fn failed(&self, kind: ErrorKind, name: &str, detail: String) -> Error {
        self.schunk.error(kind, READ, format!("metalayer `{name}`: {detail}"))
    }
}

impl MetalayersMut<'_> {
    /// Adds a metalayer with a value, or replaces the value of the one of this name.
    ///
    /// It is written as Python writes it: structs are maps, tuples arrays, which Python reads as lists;
    /// bytes are bytes where they serialise as such, with `serde_bytes` for example. A [`Value`] may be a
    /// tuple, a set, a complex number, an array and all else that Python knows there. Needs the feature
    /// `msgpack`.
    ///
    /// ```
    /// # use std::collections::BTreeMap;
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
    /// - [`ErrorKind::InvalidArgument`]: what [`Value::to_msgpack`] refuses; also a fixed metalayer whose value had
    ///   another length;
    /// - as for [`set`](Self::set).
    pub fn set_value<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<()> {
        let content = to_content(name, value).map_err(|error| self.schunk.at(error))?;
        self.set(name, content)
    }
}

impl OpenOptions {
    /// Gives a new super-chunk a fixed metalayer with a value, written as [`MetalayersMut::set_value`] does. Python's
    /// `meta={name: value}`. Needs the feature `msgpack`.
    ///
    /// ```
    /// use blosc2::OpenOptions;
    ///
    /// let schunk = OpenOptions::new().meta_value("units", "kelvin")?.in_memory()?;
    /// assert_eq!(schunk.meta().get_value::<String>("units")?.unwrap(), "kelvin"); // Python: schunk.meta["units"]
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`]: what [`Value::to_msgpack`] refuses.
    pub fn meta_value<T: Serialize + ?Sized>(self, name: &str, value: &T) -> Result<Self> {
        Ok(self.meta(name, &to_content(name, value)?))
    }
}

/// The content of a metalayer with this value.
pub(crate) fn to_content<T: Serialize + ?Sized>(name: &str, value: &T) -> Result<Vec<u8>> {
    let content = Value::of(value).and_then(|value| value.write());
    content.map_err(|fault| {
        let detail = format!("metalayer `{name}`: it would be {fault}");
        Error::new(ErrorKind::InvalidArgument, WRITE, detail)
    })
}
