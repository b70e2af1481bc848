//! Tags: the metalayer that identifies an array of values, and the errors of these arrays.

use crate::blosc2::limits::default_max_read;
use crate::blosc2::{Dtype, Error, ErrorKind, Result, SChunk, Value};

/// The name of the serializer Arrow.
pub(crate) const ARROW: &str = "arrow";

/// A fault, whose action the public function adds.
pub(crate) type Fault = (ErrorKind, String);

/// Adds the action to a fault.
pub(crate) trait Doing<T> {
    fn doing(self, doing: &'static str) -> Result<T>;
}

impl<T> Doing<T> for Result<T, Fault> {
    fn doing(self, doing: &'static str) -> Result<T> {
        self.map_err(|(kind, detail)| Error::new(kind, doing, detail))
    }
}

pub(crate) fn invalid_data(detail: impl ToString) -> Fault {
    (ErrorKind::InvalidData, detail.to_string())
}

pub(crate) fn mismatch(detail: impl ToString) -> Fault {
    (ErrorKind::TypeMismatch, detail.to_string())
}

/// Returns the length of `rows` rows of `row` bytes, which are made of `given` bytes. `None` is a size that overflows.
///
/// The memory has the default limit of reads: a null or a short string can take very many bytes in a column.
pub(crate) fn allowed_len(rows: usize, row: Option<usize>, given: u64) -> Result<usize, Fault> {
    let limit = default_max_read(given);
    let len = row.and_then(|row| rows.checked_mul(row));
    len.filter(|len| *len as u64 <= limit).ok_or_else(|| {
        let row = row.map_or("more than 2^64".to_owned(), |row| row.to_string());
        let detail =
            format!("{rows} rows of {row} bytes each exceed the memory limit of {limit} bytes");
        (ErrorKind::TooLarge, detail)
    })
}

/// An empty buffer with room for the rows of [`allowed_len`].
pub(crate) fn reserve_rows(rows: usize, row: Option<usize>, given: u64) -> Result<Vec<u8>, Fault> {
    let (len, mut bytes) = (allowed_len(rows, row, given)?, Vec::new());
    match bytes.try_reserve_exact(len) {
        Ok(()) => Ok(bytes),
        Err(error) => Err((ErrorKind::OutOfMemory, format!("{len} bytes: {error}"))),
    }
}

/// Checks that a super-chunk can become an array of values.
#[cfg(feature = "c")]
pub(crate) fn check_new(schunk: &SChunk, doing: &str) -> Result<()> {
    let (nchunks, typesize) = (schunk.nchunks(), schunk.typesize());
    if nchunks == 0 && typesize == 1 {
        return Ok(());
    }
    let detail = format!(
        "expected a super-chunk without chunks, with typesize 1; this one has {nchunks} chunks, with typesize {typesize}"
    );
    Err(error(schunk, ErrorKind::InvalidArgument, doing, detail))
}

/// Returns the content of the metalayer that identifies the container, after checking its version and serializer. Items
/// can be serialized with Arrow only in batches.
pub(crate) fn tag(schunk: &SChunk, name: &str, doing: &str) -> Result<Value> {
    let failed = |kind, detail| error(schunk, kind, doing, detail);
    let Some(tag) = schunk.meta().value(name)? else {
        return Err(failed(ErrorKind::InvalidData, format!("there is no metalayer `{name}`")));
    };
    if !matches!(tag, Value::Map(_)) {
        return Err(failed(ErrorKind::InvalidData, format!("the metalayer `{name}` is not a map")));
    }
    let version = tag.get("version").unwrap_or(&Value::None);
    if !matches!(version, Value::None | Value::Int(1)) {
        let detail = format!("the metalayer `{name}` has version {}, expected 1", what(version));
        return Err(failed(ErrorKind::Unsupported, detail));
    }
    match tag.get("serializer") {
        None => {}
        Some(serializer) if serializer.as_str() == Some("msgpack") => {}
        Some(serializer) if serializer.as_str() == Some(ARROW) && name != "vlarray" => {
            if cfg!(not(feature = "arrow")) {
                let detail = "its values are serialized with Arrow: this needs the feature `arrow` of blosc2-store";
                return Err(failed(ErrorKind::Unsupported, detail.to_owned()));
            }
        }
        Some(serializer) => {
            let detail = format!(
                "its values are serialized with {}, which is not supported",
                what(serializer)
            );
            return Err(failed(ErrorKind::Unsupported, detail));
        }
    }
    Ok(tag)
}

pub(crate) fn error(schunk: &SChunk, kind: ErrorKind, doing: &str, detail: impl ToString) -> Error {
    let error = Error::new(kind, doing, detail);
    match schunk.path() {
        Some(path) => error.at(path),
        None => error,
    }
}

/// A short form of a text from a file, for messages.
pub(crate) fn shortened(text: impl ToString) -> String {
    const MAX_CHARS: usize = 80;
    let text = text.to_string();
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

/// A short form of a value, for messages.
pub(crate) fn what(value: &Value) -> String {
    match value {
        Value::None => "None".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Str(text) if text.len() <= 40 => format!("`{text}`"),
        Value::Str(_) => "a text".to_owned(),
        Value::Bytes(_) => "bytes".to_owned(),
        Value::List(_) => "a list".to_owned(),
        Value::Tuple(_) => "a tuple".to_owned(),
        Value::Map(_) => "a map".to_owned(),
        Value::Set(_) => "a set".to_owned(),
        Value::Complex { .. } => "a complex number".to_owned(),
        _ => "an object".to_owned(),
    }
}

/// Approximate bytes of memory of a value.
pub(crate) fn weight(value: &Value) -> u64 {
    let content = match value {
        Value::Str(text) => text.len() as u64,
        Value::Bytes(bytes) | Value::Frame(bytes) | Value::Ext(_, bytes) => bytes.len() as u64,
        Value::Array(array) => (array.data().len() + size_of::<Dtype>()) as u64,
        Value::List(items) | Value::Tuple(items) | Value::Set(items) => {
            items.iter().map(weight).sum()
        }
        Value::Objects { values, .. } => values.iter().map(weight).sum(),
        Value::Map(pairs) => pairs.iter().map(|(key, item)| weight(key) + weight(item)).sum(),
        Value::Reference(value) => weight(value),
        _ => 0,
    };
    size_of::<Value>() as u64 + content
}

/// Lets a single chunk determine the chunk size of its frame.
///
/// If the last chunk of several is left alone, or a single chunk is replaced by a shorter one, the frame keeps its larger
/// chunk size. C-Blosc2 then cannot append a chunk, and its attempt damages the file.
#[cfg(feature = "c")]
pub(crate) fn free_chunksize(schunk: &mut SChunk) -> Result<()> {
    let chunksize = schunk.chunksize();
    if schunk.nchunks() != 1 || chunksize == 0 || schunk.chunk_info(0)?.nbytes == chunksize {
        return Ok(());
    }
    let chunk = schunk.chunk(0)?;
    schunk.remove(0)?;
    schunk.append(&chunk)
}
