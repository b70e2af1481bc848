//! NumPy's files of one array: the header, and the order of the items.

use std::io::Read;

use anyhow::{Result, anyhow, bail};

use crate::dtype::Dtype;
use crate::literal::{Value, tuple};

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// The header and what is before it fill a multiple of this, as NumPy does it.
const ALIGNMENT: usize = 64;
/// Longer headers than any dtype needs are refused; NumPy stops at 10,000 by default.
const MAX_HEADER_LEN: u64 = 1 << 20;
/// Digits for which NumPy leaves room, so that the first dimension may grow.
const GROWTH_DIGITS: usize = 21;

/// What the header says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) dtype: Dtype,
    pub(crate) shape: Vec<u64>,
    pub(crate) fortran_order: bool,
}

impl Header {
    /// Reads up to where the items start.
    pub(crate) fn read(file: &mut impl Read) -> Result<Self> {
        let mut start = [0; 8];
        let short = || anyhow!("it ends within the header");
        let magic_len = read_up_to(file, &mut start)?;
        if !start.starts_with(MAGIC) {
            bail!("it is no npy file");
        }
        let len_bytes = match start[6] {
            _ if magic_len < start.len() => return Err(short()),
            1 => 2,
            2 | 3 => 4,
            version => bail!("version {version} of the npy format is not known"),
        };
        let mut len = [0; 4];
        if read_up_to(file, &mut len[..len_bytes])? < len_bytes {
            return Err(short());
        }
        let len = u64::from(u32::from_le_bytes(len));
        if len > MAX_HEADER_LEN {
            bail!("its header is too long: {len} bytes");
        }
        let mut bytes = Vec::new();
        file.take(len).read_to_end(&mut bytes)?;
        if (bytes.len() as u64) < len {
            return Err(short());
        }
        // Versions 1 and 2 are in Latin-1, whose codes are those of Unicode.
        let text = match start[6] {
            3 => String::from_utf8(bytes).map_err(|_| anyhow!("its header is not UTF-8"))?,
            _ => bytes.into_iter().map(char::from).collect(),
        };
        Self::parse(&text).map_err(|error| anyhow!("its header is broken: {error}"))
    }

    fn parse(text: &str) -> Result<Self> {
        let header = Value::parse(text)?;
        let get = |key: &str| header.get(key).ok_or_else(|| anyhow!("it has no `{key}`"));
        let dtype = Dtype::from_descr(get("descr")?)?;
        let shape = match get("shape")? {
            Value::Tuple(sizes) => sizes.iter().map(Value::as_int).collect::<Option<Vec<_>>>(),
            _ => None,
        };
        let shape = shape.ok_or_else(|| anyhow!("its shape is no tuple of numbers"))?;
        let fortran_order = get("fortran_order")?.as_bool();
        let fortran_order =
            fortran_order.ok_or_else(|| anyhow!("its order is not True or False"))?;
        if matches!(dtype, Dtype::Array(..)) {
            bail!("its dtype is an array, which belongs to the shape");
        }
        Ok(Self { dtype, shape, fortran_order })
    }

    /// The bytes before the items, as NumPy writes them.
    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>> {
        let order = if self.fortran_order { "True" } else { "False" };
        let (descr, shape) = (self.dtype.to_descr()?, tuple(&self.shape));
        let mut text =
            format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}");
        let first = if self.fortran_order { self.shape.last() } else { self.shape.first() };
        if let Some(first) = first {
            let digits = first.to_string().len();
            text.push_str(&" ".repeat(GROWTH_DIGITS.saturating_sub(digits)));
        }
        // Version 1 has Latin-1 and a length of two bytes, version 3 UTF-8 and four.
        let latin1: Option<Vec<u8>> = text.chars().map(|each| u8::try_from(each).ok()).collect();
        let (version, body) = match latin1 {
            Some(latin1) if latin1.len() + 2 * ALIGNMENT <= usize::from(u16::MAX) => (1, latin1),
            Some(latin1) => (2, latin1),
            None => (3, text.into_bytes()),
        };
        let start = if version == 1 { 10 } else { 12 };
        let len = (start + body.len() + 1).next_multiple_of(ALIGNMENT) - start;
        let mut bytes = MAGIC.to_vec();
        bytes.extend([version, 0]);
        match version {
            1 => bytes.extend(u16::try_from(len)?.to_le_bytes()),
            _ => bytes.extend(u32::try_from(len)?.to_le_bytes()),
        }
        bytes.extend(body);
        bytes.resize(start + len - 1, b' ');
        bytes.push(b'\n');
        Ok(bytes)
    }
}

/// Fills the buffer as far as the file reaches; gives the bytes read.
fn read_up_to(file: &mut impl Read, buffer: &mut [u8]) -> Result<usize> {
    let mut bytes = Vec::new();
    file.take(buffer.len() as u64).read_to_end(&mut bytes)?;
    buffer[..bytes.len()].copy_from_slice(&bytes);
    Ok(bytes.len())
}

/// Puts items whose first index runs fastest in C order, where the last one does.
pub(crate) fn fortran_to_c(bytes: &[u8], shape: &[u64], typesize: usize) -> Vec<u8> {
    let mut strides = Vec::new();
    let mut stride = typesize;
    for &size in shape {
        strides.push(stride);
        // All items are in memory, so that their number fits.
        stride *= size as usize;
    }
    let mut out = Vec::with_capacity(bytes.len());
    let mut index = vec![0; shape.len()];
    let mut at = 0;
    while out.len() < bytes.len() {
        out.extend_from_slice(&bytes[at..at + typesize]);
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            at += strides[axis];
            if index[axis] < shape[axis] {
                break;
            }
            at -= strides[axis] * shape[axis] as usize;
            index[axis] = 0;
        }
    }
    out
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

    #[test]
    fn orders_are_turned() {
        assert_eq!(fortran_to_c(b"adbecf", &[2, 3], 1), b"abcdef");
        assert_eq!(fortran_to_c(b"aabb", &[2], 2), b"aabb");
        assert_eq!(fortran_to_c(b"ab", &[], 2), b"ab");
        assert_eq!(fortran_to_c(b"", &[0, 3], 2), b"");
        // c[i][j][k] is at i + 2 j + 6 k.
        let bytes: Vec<u8> = (0..24).collect();
        let out = fortran_to_c(&bytes, &[2, 3, 4], 1);
        for (place, &found) in out.iter().enumerate() {
            let (i, j, k) = (place / 12, place / 4 % 3, place % 4);
            assert_eq!(usize::from(found), i + 2 * j + 6 * k);
        }
    }
}
