//! Headers of NumPy's `.npy` files.
//!
//! ```
//! use blosc2_format::Dtype;
//! use blosc2_format::npy::Header;
//!
//! let header = Header { dtype: Dtype::parse("<i4")?, shape: vec![3, 4], fortran_order: false };
//! let bytes = header.to_bytes()?;
//! assert_eq!((bytes.len(), &bytes[..6]), (128, &b"\x93NUMPY"[..]));
//! assert_eq!(Header::read(&mut &bytes[..])?, header);
//! # Ok::<(), blosc2_format::Error>(())
//! ```

use std::io::Read;

use crate::dtype::{LiteralResult, MAX_TEXT_LEN, Unlike, Value, tuple};
use crate::{Dtype, Error, FormatError};

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// NumPy pads the header, including the magic string, to a multiple of this number of bytes.
const ALIGNMENT: usize = 64;
/// The number of digits that NumPy reserves so that the first axis can grow.
const GROWTH_DIGITS: usize = 21;

/// The header of a `.npy` file.
///
/// ```
/// use blosc2_format::Dtype;
/// use blosc2_format::npy::Header;
///
/// let header = Header { dtype: Dtype::parse("<f8")?, shape: vec![10], fortran_order: false };
/// assert_eq!(Header::read(&mut &header.to_bytes()?[..])?.shape, [10]);
/// # Ok::<(), blosc2_format::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The type of the items. A sub-array is not allowed: append the axes of the sub-array to
    /// `shape` instead.
    pub dtype: Dtype,
    /// The shape of the array.
    pub shape: Vec<u64>,
    /// Whether the items are in Fortran order: the first axis varies fastest. Otherwise they are in
    /// C order: the last axis varies fastest.
    pub fortran_order: bool,
}

impl Header {
    /// Reads the header. The next byte of `file` is then the first byte of the first item.
    ///
    /// # Errors
    /// - [`Error::Format`]: the bytes are not a `.npy` file, are truncated, or have an invalid
    ///   header;
    /// - [`Error::Unsupported`]: the version of the format is unknown;
    /// - [`Error::Limit`]: the header has more than 1 MiB (NumPy's default limit is 10,000 bytes);
    /// - [`Error::Io`]: reading fails.
    pub fn read(file: &mut impl Read) -> Result<Self, Error> {
        let start: [u8; 8] = read(file, 0)?;
        if !start.starts_with(MAGIC) {
            let found = start.escape_ascii();
            return Err(FormatError::new("start of an npy file", 0, "\\x93NUMPY", found).into());
        }
        let (len, at) = match start[6] {
            1 => (u32::from(u16::from_le_bytes(read(file, 8)?)), 10),
            2 | 3 => (u32::from_le_bytes(read(file, 8)?), 12),
            version => return Err(Error::Unsupported(format!("version {version} of npy files"))),
        };
        let (amount, max) = (u64::from(len), MAX_TEXT_LEN as u64);
        if amount > max {
            return Err(Error::Limit { limit: None, what: "bytes of an npy header", amount, max });
        }
        let mut bytes = Vec::new();
        file.take(amount).read_to_end(&mut bytes)?;
        if (bytes.len() as u64) < amount {
            return Err(cut_short(at, amount, bytes.len()));
        }
        // Versions 1 and 2 use Latin-1, whose codes are those of Unicode.
        let text = match start[6] {
            3 => String::from_utf8(bytes)
                .map_err(|error| FormatError::new(WHAT, at, "UTF-8", error))?,
            _ => bytes.into_iter().map(char::from).collect(),
        };
        Self::parse(&text).map_err(|unlike| unlike.in_text(WHAT, &text))
    }

    fn parse(text: &str) -> LiteralResult<Self> {
        let header = Value::parse(text, Dtype::MAX_BRACKETS + 1)?;
        let get = |key: &str, value: &str| {
            header.get(key).ok_or_else(|| Unlike::new(format!("{value} `{key}`")))
        };
        let dtype = Dtype::from_descr_value(get("descr", "a dtype")?)?;
        let wrong = |value: &str| Unlike::new(value.to_owned());
        let shape = match get("shape", "a tuple")? {
            Value::Tuple(sizes) => sizes.iter().map(Value::as_int).collect::<Option<Vec<_>>>(),
            _ => None,
        };
        let shape = shape.ok_or_else(|| wrong("a shape that is a tuple of numbers"))?;
        let fortran_order = get("fortran_order", "True or False")?.as_bool();
        let fortran_order =
            fortran_order.ok_or_else(|| wrong("True or False for `fortran_order`"))?;
        if dtype.subarray().is_some() {
            return Err(wrong("a dtype that is not a sub-array, whose axes belong to the shape"));
        }
        Ok(Self { dtype, shape, fortran_order })
    }

    /// Returns the bytes before the items, as NumPy writes them.
    ///
    /// # Errors
    /// - [`Error::Argument`]: the dtype is a sub-array;
    /// - [`Error::Unsupported`]: the `.npy` format cannot express the dtype, see
    ///   [`Dtype::to_descr`]; or the header would have more than 1 MiB, so that
    ///   [`read`](Self::read) would fail.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        if self.dtype.subarray().is_some() {
            return Err(Error::Argument(format!(
                "a header with the sub-array {}: expected the dtype of its items, and its axes in the shape",
                self.dtype
            )));
        }
        let order = if self.fortran_order { "True" } else { "False" };
        let (descr, shape) = (self.dtype.to_descr()?, tuple(&self.shape));
        let mut text =
            format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}");
        let first = if self.fortran_order { self.shape.last() } else { self.shape.first() };
        if let Some(first) = first {
            let digits = first.to_string().len();
            text.push_str(&" ".repeat(GROWTH_DIGITS.saturating_sub(digits)));
        }
        // Version 1 uses Latin-1 and a length of two bytes; version 3 uses UTF-8 and four bytes.
        let latin1: Option<Vec<u8>> = text.chars().map(|each| u8::try_from(each).ok()).collect();
        let (version, body) = match latin1 {
            Some(latin1) if latin1.len() + 2 * ALIGNMENT <= usize::from(u16::MAX) => (1, latin1),
            Some(latin1) => (2, latin1),
            None => (3, text.into_bytes()),
        };
        let start = if version == 1 { 10 } else { 12 };
        // NumPy also extends a header whose length already is a multiple of the alignment.
        let len = (start + body.len() + 2).next_multiple_of(ALIGNMENT) - start;
        let too_long = || Error::Unsupported(format!("an npy header of {len} bytes"));
        // Readers refuse it.
        if len > MAX_TEXT_LEN {
            return Err(too_long());
        }
        let mut bytes = MAGIC.to_vec();
        bytes.extend([version, 0]);
        match version {
            1 => bytes.extend(u16::try_from(len).map_err(|_| too_long())?.to_le_bytes()),
            _ => bytes.extend(u32::try_from(len).map_err(|_| too_long())?.to_le_bytes()),
        }
        bytes.extend(body);
        bytes.resize(start + len - 1, b' ');
        bytes.push(b'\n');
        Ok(bytes)
    }
}

const WHAT: &str = "npy header";

fn read<const N: usize>(file: &mut impl Read, at: usize) -> Result<[u8; N], Error> {
    let mut bytes = Vec::with_capacity(N);
    file.take(N as u64).read_to_end(&mut bytes)?;
    let len = bytes.len();
    bytes.try_into().map_err(|_| cut_short(at, N as u64, len))
}

fn cut_short(at: usize, wanted: u64, found: usize) -> Error {
    FormatError::new(WHAT, at, format_args!("{wanted} bytes"), found).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_numpys() {
        // As numpy.save writes np.zeros((3, 4), '<i4').
        let header =
            Header { dtype: Dtype::parse("<i4").unwrap(), shape: vec![3, 4], fortran_order: false };
        let bytes = header.to_bytes().unwrap();
        let text = "{'descr': '<i4', 'fortran_order': False, 'shape': (3, 4), }";
        assert_eq!(&bytes[..10], b"\x93NUMPY\x01\x00\x76\x00");
        assert_eq!(bytes.len(), 128);
        assert_eq!(&bytes[10..10 + text.len()], text.as_bytes());
        assert_eq!(bytes[127], b'\n');
        assert_eq!(Header::read(&mut bytes.as_slice()).unwrap(), header);
        for cut in 0..bytes.len() {
            assert!(Header::read(&mut &bytes[..cut]).is_err(), "{cut}");
        }
        let pairs = Header { dtype: Dtype::parse("('<i4', (2,))").unwrap(), ..header };
        assert!(matches!(pairs.to_bytes(), Err(Error::Argument(_))));
    }

    #[test]
    fn names_and_lengths_choose_the_version() {
        let long: Vec<String> = (0..5000).map(|i| format!("('field{i}', '<i4')")).collect();
        let long = format!("[{}]", long.join(", "));
        for (dtype, version) in [("[('é', '<i4')]", 1), (&*long, 2), ("[('日', '<i4')]", 3)] {
            let dtype = Dtype::parse(dtype).unwrap();
            let header = Header { dtype, shape: vec![], fortran_order: true };
            let bytes = header.to_bytes().unwrap();
            assert_eq!((bytes[6], bytes.len() % ALIGNMENT), (version, 0));
            assert_eq!(Header::read(&mut bytes.as_slice()).unwrap(), header);
        }
    }

    /// Readers refuse longer headers.
    #[test]
    fn long_headers_are_read_or_not_written() {
        let header = |name: usize| {
            let dtype = Dtype::parse(&format!("[('{}', '<i4')]", "x".repeat(name))).unwrap();
            Header { dtype, shape: vec![3, 4], fortran_order: false }
        };
        for name in [70_000, MAX_TEXT_LEN - 200, MAX_TEXT_LEN - 100, MAX_TEXT_LEN - 20] {
            let header = header(name);
            match header.to_bytes() {
                Ok(bytes) => assert_eq!(Header::read(&mut bytes.as_slice()).unwrap(), header),
                Err(error) => {
                    assert!(name > MAX_TEXT_LEN - 200, "{name}");
                    assert!(matches!(error, Error::Unsupported(_)), "{error}");
                }
            }
        }
        assert!(header(MAX_TEXT_LEN - 20).to_bytes().is_err());
    }
}
