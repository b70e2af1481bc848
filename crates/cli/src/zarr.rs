//! Zarr arrays in directories. Reads versions 2 and 3 with the codecs `blosc`, `bytes`, `crc32c`, `gzip`, `transpose`,
//! `zlib` and `zstd`. Writes version 3; for dtypes that it does not have, version 2. Both with Zstandard.
//!
//! The crate `zarrs` reads more codecs, but needs a newer compiler than this workspace, and more than 100 crates.

use std::fs::{self, File};
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use blosc2::dtype::Kind;
use blosc2::{Dtype, NDArray, RawItems as Bytes};
use blosc2_format::npy::Header;
use serde_json::{Value, json};

use crate::output::Output;
use crate::progress;
use crate::raw::RawItems;

/// Maximum bytes of a row of chunks (all chunks with the same range of the first axis), which is held in memory.
const MOST: u64 = 1 << 30;
/// Maximum bytes of a file of metadata.
const MAX_METADATA: u64 = 16 << 20;
/// Maximum number of dimensions, as in C-Blosc2.
const MAX_DIMENSIONS: usize = 16;
/// The level of Zstandard, as of arrays that `import` creates.
const LEVEL: i32 = 5;

/// An array in a directory.
struct Array {
    path: PathBuf,
    dtype: Dtype,
    shape: Vec<u64>,
    chunks: Vec<u64>,
    /// What is between the numbers of the name of a chunk, and before the first.
    separator: char,
    prefix: &'static str,
    /// The axes in the order in which a chunk stores them.
    order: Vec<usize>,
    /// The codecs of the bytes, in the order of decoding.
    codecs: Vec<Codec>,
    fill: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Codec {
    Blosc,
    Gzip,
    Zlib,
    Zstd,
    /// A checksum after the bytes.
    Crc32c,
}

/// Opens an array; returns its dtype and its items.
pub(crate) fn open(path: &Path) -> Result<(Dtype, RawItems)> {
    let array = Array::open(path)?;
    let header =
        Header { dtype: array.dtype.clone(), shape: array.shape.clone(), fortran_order: false };
    let (layout, dtype) = (header.layout(), header.dtype);
    let rows = Rows { array, next: 0, bytes: Vec::new(), at: 0 };
    Ok((dtype, RawItems::of_stream(Box::new(rows), layout)?))
}

/// Reads a regular file of at most this size; `None` if there is none.
fn read_file(path: &Path, most: u64) -> io::Result<Option<Vec<u8>>> {
    // Before it is opened: opening a named pipe would block.
    let found = match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        found => found?,
    };
    if !found.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    if found.len() > most {
        let detail = format!("it has {} bytes, expected at most {most}", found.len());
        return Err(io::Error::other(detail));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(most).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// Reads a file of metadata.
fn metadata(path: &Path) -> Result<Option<Value>> {
    let text = read_file(path, MAX_METADATA);
    let Some(text) = text.map_err(|error| anyhow!("cannot read {}: {error}", path.display()))?
    else {
        return Ok(None);
    };
    let parsed = serde_json::from_slice(&text);
    Ok(Some(parsed.map_err(|error| anyhow!("{} is not JSON: {error}", path.display()))?))
}

fn sides(value: &Value, what: &str) -> Result<Vec<u64>> {
    let sides = value.as_array().map(|sides| sides.iter().map(Value::as_u64).collect());
    sides.flatten().ok_or_else(|| anyhow!("its {what} is not a list of sizes"))
}

impl Array {
    fn open(path: &Path) -> Result<Self> {
        let array = match (metadata(&path.join("zarr.json"))?, metadata(&path.join(".zarray"))?) {
            (Some(found), _) => Self::version_3(path, &found)?,
            (None, Some(found)) => Self::version_2(path, &found)?,
            (None, None) => bail!("it has neither a file `zarr.json` nor a file `.zarray`"),
        };
        let (ndim, chunks) = (array.shape.len(), array.chunks.len());
        if ndim != chunks || ndim > MAX_DIMENSIONS || array.chunks.contains(&0) {
            bail!("its chunk shape {:?} does not fit its shape {:?}", array.chunks, array.shape);
        }
        let row = array.row().filter(|&row| row <= MOST);
        let chunk = array.chunk_len().filter(|&chunk| chunk <= MOST);
        if row.is_none() || chunk.is_none() {
            bail!("a row of its chunks of shape {:?} has more than {MOST} bytes", array.chunks);
        }
        Ok(array)
    }

    fn version_3(path: &Path, found: &Value) -> Result<Self> {
        match (&found["zarr_format"], found["node_type"].as_str()) {
            (version, Some("array")) if version == 3 => {}
            (version, Some("group")) if version == 3 => {
                bail!("it is a group; import the directory of one of its arrays")
            }
            _ => bail!("it is not of version 3, and its node type is not `array`"),
        }
        let grid = &found["chunk_grid"];
        if grid["name"] != "regular" {
            bail!("its chunk grid {} is not supported", grid["name"]);
        }
        let chunks = sides(&grid["configuration"]["chunk_shape"], "chunk shape")?;
        let key = &found["chunk_key_encoding"];
        let (prefix, default) = match key["name"].as_str() {
            Some("default") => ("c", "/"),
            Some("v2") => ("", "."),
            _ => bail!("its names of chunks {} are not supported", key["name"]),
        };
        let separator = key["configuration"]["separator"].as_str().unwrap_or(default);
        let mut order: Vec<usize> = (0..chunks.len()).collect();
        let mut is_big = false;
        let mut codecs = Vec::new();
        for codec in found["codecs"].as_array().context("it has no list of codecs")? {
            let name = codec["name"].as_str().or(codec.as_str()).unwrap_or_default();
            let configuration = &codec["configuration"];
            match name {
                "bytes" => is_big = configuration["endian"] == "big",
                "transpose" if codecs.is_empty() => {
                    let axes = sides(&configuration["order"], "order of axes")?;
                    let axes =
                        axes.iter().map(|&axis| order.get(usize::try_from(axis).ok()?).copied());
                    order = axes.collect::<Option<_>>().context("its order of axes is invalid")?;
                }
                "blosc" => codecs.push(Codec::Blosc),
                "gzip" => codecs.push(Codec::Gzip),
                "zstd" => codecs.push(Codec::Zstd),
                "crc32c" => codecs.push(Codec::Crc32c),
                _ => bail!("its codec `{name}` is not supported"),
            }
        }
        codecs.reverse();
        let name = &found["data_type"];
        let dtype =
            dtype_3(name).with_context(|| format!("its data type {name} is not supported"))?;
        let dtype = Dtype::parse(&format!("{}{dtype}", if is_big { '>' } else { '<' }))?;
        Self::new(path, found, dtype, chunks, (separator, prefix), order, codecs)
    }

    fn version_2(path: &Path, found: &Value) -> Result<Self> {
        let chunks = sides(&found["chunks"], "chunk shape")?;
        if let Some(filter) = found["filters"].as_array().and_then(|filters| filters.first()) {
            bail!("its filter {} is not supported", filter["id"]);
        }
        let codec = match (&found["compressor"], found["compressor"]["id"].as_str()) {
            (Value::Null, _) => None,
            (_, Some("blosc")) => Some(Codec::Blosc),
            (_, Some("gzip")) => Some(Codec::Gzip),
            (_, Some("zlib")) => Some(Codec::Zlib),
            (_, Some("zstd")) => Some(Codec::Zstd),
            (other, _) => bail!("its compressor {other} is not supported"),
        };
        let mut order: Vec<usize> = (0..chunks.len()).collect();
        if found["order"] == "F" {
            order.reverse();
        }
        let name = &found["dtype"];
        let dtype = Dtype::parse(&dtype_2(name).context("its dtype is invalid")?)?;
        let separator = found["dimension_separator"].as_str().unwrap_or(".");
        let codecs = codec.into_iter().collect();
        Self::new(path, found, dtype, chunks, (separator, ""), order, codecs)
    }

    fn new(
        path: &Path,
        found: &Value,
        dtype: Dtype,
        chunks: Vec<u64>,
        (separator, prefix): (&str, &'static str),
        order: Vec<usize>,
        codecs: Vec<Codec>,
    ) -> Result<Self> {
        if dtype.has_pointers() || dtype.size() == 0 {
            bail!("its dtype {dtype} has no data in its chunks");
        }
        let shape = sides(&found["shape"], "shape")?;
        let separator = match separator {
            "/" => '/',
            "." => '.',
            other => bail!("its separator `{other}` of names of chunks is not supported"),
        };
        let mut axes = order.clone();
        axes.sort_unstable();
        if !axes.iter().copied().eq(0..chunks.len()) {
            bail!("its order of axes {order:?} is invalid");
        }
        let (path, fill) = (path.to_owned(), found["fill_value"].clone());
        Ok(Self { path, dtype, shape, chunks, separator, prefix, order, codecs, fill })
    }

    /// The bytes of a chunk.
    fn chunk_len(&self) -> Option<u64> {
        self.chunks.iter().try_fold(self.dtype.size() as u64, |len, &side| len.checked_mul(side))
    }

    /// The bytes of the items with one range of the first axis.
    fn row(&self) -> Option<u64> {
        let rows = self.chunks.first().map_or(1, |&rows| rows.min(self.shape[0]));
        let row = rows.checked_mul(self.dtype.size() as u64);
        self.shape.iter().skip(1).try_fold(row?, |len, &side| len.checked_mul(side))
    }

    fn name(&self, chunk: &[u64]) -> String {
        let numbers = chunk.iter().map(u64::to_string);
        let mut parts: Vec<String> = match self.prefix {
            "" => Vec::new(),
            prefix => vec![prefix.to_owned()],
        };
        parts.extend(numbers);
        if parts.is_empty() {
            parts.push("0".to_owned());
        }
        parts.join(&self.separator.to_string())
    }

    /// The bytes of a chunk in the order in which they are stored; `None` if it is missing.
    fn read(&self, chunk: &[u64]) -> Result<Option<Vec<u8>>> {
        let name = self.name(chunk);
        let len = usize::try_from(self.chunk_len().unwrap_or(0))?;
        // Compressed bytes can be more than the items.
        let stored = read_file(&self.path.join(&name), 2 * len as u64 + (64 << 10));
        let stored = stored.map_err(|error| anyhow!("cannot read its chunk {name}: {error}"))?;
        let Some(mut bytes) = stored else { return Ok(None) };
        for codec in &self.codecs {
            // A checksum is also before compression.
            bytes = codec
                .decode(&bytes, len + 4)
                .map_err(|error| anyhow!("its chunk {name}: {error}"))?;
        }
        if bytes.len() != len {
            bail!("its chunk {name} has {} bytes, expected {len}", bytes.len());
        }
        Ok(Some(bytes))
    }

    /// The bytes of an item of a chunk that is missing.
    fn fill(&self) -> Result<Vec<u8>> {
        fill_of(&self.dtype, &self.fill)
            .ok_or_else(|| anyhow!("its fill value {} is not one of {}", self.fill, self.dtype))
    }

    /// The items of a row of chunks, in C order.
    fn row_of(&self, index: u64) -> Result<Vec<u8>> {
        let size = self.dtype.size();
        let rows = match (self.chunks.first(), self.shape.first()) {
            (Some(rows), Some(all)) => (*rows).min(all - index * rows),
            _ => 1,
        };
        let mut shape = self.shape.clone();
        if let Some(first) = shape.first_mut() {
            *first = rows;
        }
        let target = strides(&shape, &(0..shape.len()).collect::<Vec<_>>(), size);
        let source = strides(&self.chunks, &self.order, size);
        let len = shape.iter().map(|&side| side as usize).product::<usize>() * size;
        let mut bytes = vec![0; len];
        let mut fill = None;
        let counts = self.shape.iter().zip(&self.chunks).map(|(side, chunk)| side.div_ceil(*chunk));
        let counts: Vec<u64> = counts.skip(1).collect();
        for number in 0..counts.iter().product() {
            let mut chunk = place(number, &counts);
            if !self.shape.is_empty() {
                chunk.insert(0, index);
            }
            let start = chunk.iter().zip(&self.chunks).map(|(at, side)| at * side);
            let start: Vec<u64> =
                start.enumerate().map(|(axis, at)| if axis == 0 { 0 } else { at }).collect();
            let parts = start.iter().zip(&shape).zip(&self.chunks);
            let part: Vec<usize> =
                parts.map(|((at, side), chunk)| (side - at).min(*chunk) as usize).collect();
            let at: usize =
                start.iter().zip(&target).map(|(&at, stride)| at as usize * stride).sum();
            let stored = self.read(&chunk)?;
            let stored = match &stored {
                Some(bytes) => (&bytes[..], &source[..]),
                None => {
                    let item = match &mut fill {
                        Some(item) => item,
                        fill => fill.insert(self.fill()?),
                    };
                    (&item[..], &[0; MAX_DIMENSIONS][..source.len()])
                }
            };
            copy(stored, 0, (&mut bytes, &target), at, &part, size);
        }
        Ok(bytes)
    }
}

/// The bytes of an item with a fill value of the metadata; `None` if it is no value of the dtype.
fn fill_of(dtype: &Dtype, value: &Value) -> Option<Vec<u8>> {
    let size = dtype.size();
    let mut bytes = vec![0; size];
    // `null` leaves the value undefined.
    if value.is_null() {
        return Some(bytes);
    }
    // The bytes of the numbers of the item, which have a byte order.
    let mut unit = size;
    match dtype.kind() {
        Some(Kind::Bool) => {
            let int = value.as_bool().map(i128::from).or_else(|| int_of(value))?;
            bytes[0] = u8::try_from(int).ok().filter(|&int| int < 2)?;
        }
        Some(Kind::DateTime | Kind::TimeDelta) if value == "NaT" => {
            bytes.copy_from_slice(&i64::MIN.to_le_bytes());
        }
        Some(Kind::UInt) => {
            let int = u64::try_from(int_of(value)?).ok()?;
            (size == 8 || int >> (8 * size) == 0).then_some(())?;
            bytes.copy_from_slice(&int.to_le_bytes()[..size]);
        }
        Some(Kind::Int | Kind::DateTime | Kind::TimeDelta) => {
            let int = i64::try_from(int_of(value)?).ok()?;
            let unused = 64 - 8 * size;
            (int << unused >> unused == int).then_some(())?;
            bytes.copy_from_slice(&int.to_le_bytes()[..size]);
        }
        Some(Kind::Float) => put_float(&mut bytes, value)?,
        Some(Kind::Complex) => {
            unit = size / 2;
            let (real, imaginary) = bytes.split_at_mut(unit);
            match value.as_array().map(Vec::as_slice) {
                Some([first, second]) => {
                    put_float(real, first)?;
                    put_float(imaginary, second)?;
                }
                Some(_) => return None,
                None => put_float(real, value)?,
            }
        }
        Some(Kind::Unicode) if value != 0 => {
            unit = 4;
            let text = value.as_str()?;
            (text.chars().count() <= size / unit).then_some(())?;
            for (bytes, char) in bytes.chunks_exact_mut(unit).zip(text.chars()) {
                bytes.copy_from_slice(&u32::from(char).to_le_bytes());
            }
        }
        _ if value == 0 => {}
        // Bytes and structures.
        kind => {
            unit = 1;
            let stored = BASE64_STANDARD.decode(value.as_str()?).ok()?;
            let fits = match kind {
                Some(Kind::Bytes) => stored.len() <= size,
                _ => stored.is_empty() || stored.len() == size,
            };
            fits.then_some(())?;
            bytes[..stored.len()].copy_from_slice(&stored);
        }
    }
    // In the byte order of the array.
    let is_little = dtype.is_native() == cfg!(target_endian = "little");
    if !is_little {
        bytes.chunks_exact_mut(unit).for_each(<[u8]>::reverse);
    }
    Some(bytes)
}

/// The integer of a number in JSON, also if it is written as a float.
fn int_of(value: &Value) -> Option<i128> {
    let int = value.as_i64().map(i128::from).or(value.as_u64().map(i128::from));
    int.or_else(|| {
        let float = value.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < 1e19)?;
        Some(float as i128)
    })
}

/// Writes a float in little-endian order: a number, a name, or the bits in hexadecimal notation.
fn put_float(bytes: &mut [u8], value: &Value) -> Option<()> {
    if let Some(digits) = value.as_str().and_then(|text| text.strip_prefix("0x")) {
        let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        (is_hex && digits.len() == 2 * bytes.len()).then_some(())?;
        let bits = u128::from_str_radix(digits, 16).ok()?;
        bytes.copy_from_slice(&bits.to_le_bytes()[..bytes.len()]);
        return Some(());
    }
    let float = match value.as_str() {
        Some("NaN") => f64::NAN,
        Some("Infinity") => f64::INFINITY,
        Some("-Infinity") => f64::NEG_INFINITY,
        _ => value.as_f64()?,
    };
    let (is_finite, stored) = match bytes.len() {
        2 => {
            let half = half::f16::from_f64(float);
            (half.is_finite(), half.to_le_bytes().to_vec())
        }
        4 => ((float as f32).is_finite(), (float as f32).to_le_bytes().to_vec()),
        8 => (float.is_finite(), float.to_le_bytes().to_vec()),
        // The `long double` of C, whose representation is unknown. Its zero has no bits.
        len => (true, Some(vec![0; len]).filter(|_| float == 0.0 && float.is_sign_positive())?),
    };
    (is_finite || !float.is_finite()).then_some(())?;
    bytes.copy_from_slice(&stored);
    Some(())
}

/// Returns the position in a grid of an index in C order.
fn place(mut number: u64, counts: &[u64]) -> Vec<u64> {
    let mut place = vec![0; counts.len()];
    for (at, &count) in place.iter_mut().zip(counts).rev() {
        *at = number % count;
        number /= count;
    }
    place
}

/// The distance in bytes of the items along each axis, if a box is stored with the axes in this order.
fn strides(shape: &[u64], order: &[usize], size: usize) -> Vec<usize> {
    let mut strides = vec![0; shape.len()];
    let mut stride = size;
    for &axis in order.iter().rev() {
        strides[axis] = stride;
        stride *= shape[axis] as usize;
    }
    strides
}

/// Copies a box of items.
fn copy(
    (from, from_strides): (&[u8], &[usize]),
    from_at: usize,
    (to, to_strides): (&mut [u8], &[usize]),
    to_at: usize,
    part: &[usize],
    size: usize,
) {
    match part {
        [] => to[to_at..to_at + size].copy_from_slice(&from[from_at..from_at + size]),
        [count] if from_strides == [size] && to_strides == [size] => {
            let len = count * size;
            to[to_at..to_at + len].copy_from_slice(&from[from_at..from_at + len]);
        }
        [count, inner @ ..] => {
            for at in 0..*count {
                copy(
                    (from, &from_strides[1..]),
                    from_at + at * from_strides[0],
                    (to, &to_strides[1..]),
                    to_at + at * to_strides[0],
                    inner,
                    size,
                );
            }
        }
    }
}

impl Codec {
    /// Decodes bytes to at most `most` bytes.
    fn decode(self, bytes: &[u8], most: usize) -> Result<Vec<u8>> {
        let limited = |reader: &mut dyn Read| -> Result<Vec<u8>> {
            let mut out = Vec::new();
            reader.take(most as u64 + 1).read_to_end(&mut out)?;
            Ok(out)
        };
        match self {
            Self::Blosc => {
                let len = bytes
                    .get(4..8)
                    .and_then(|len| len.try_into().ok())
                    .map_or(0, u32::from_le_bytes);
                if len as usize > most {
                    bail!("it has {len} bytes, expected at most {most}");
                }
                Ok(blosc2::decompress(bytes)?)
            }
            Self::Gzip => limited(&mut flate2::bufread::MultiGzDecoder::new(bytes)),
            Self::Zlib => limited(&mut flate2::bufread::ZlibDecoder::new(bytes)),
            Self::Zstd => limited(&mut zstd::stream::read::Decoder::with_buffer(bytes)?),
            Self::Crc32c => {
                let Some((bytes, sum)) = bytes.split_last_chunk::<4>() else {
                    bail!("it has no checksum");
                };
                let found = crc32c(bytes);
                let stated = u32::from_le_bytes(*sum);
                if found != stated {
                    bail!("its checksum is {found:#x}, expected {stated:#x}");
                }
                Ok(bytes.to_vec())
            }
        }
    }
}

/// The checksum CRC-32C (Castagnoli).
fn crc32c(bytes: &[u8]) -> u32 {
    let table: [u32; 256] = std::array::from_fn(|byte| {
        (0..8).fold(byte as u32, |sum, _| sum >> 1 ^ if sum & 1 == 1 { 0x82f6_3b78 } else { 0 })
    });
    !bytes.iter().fold(!0, |sum, byte| sum >> 8 ^ table[usize::from(sum as u8 ^ byte)])
}

/// The items of an array in C order, row of chunks by row of chunks.
struct Rows {
    array: Array,
    next: u64,
    bytes: Vec<u8>,
    at: usize,
}

impl Read for Rows {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Self { array, next, bytes, at } = self;
        let count = match (array.shape.first(), array.chunks.first()) {
            _ if array.shape.contains(&0) => 0,
            (Some(side), Some(chunk)) => side.div_ceil(*chunk),
            _ => 1,
        };
        while *at == bytes.len() {
            if *next == count {
                return Ok(0);
            }
            *bytes = array.row_of(*next).map_err(io::Error::other)?;
            *at = 0;
            *next += 1;
        }
        let len = buffer.len().min(bytes.len() - *at);
        buffer[..len].copy_from_slice(&bytes[*at..*at + len]);
        *at += len;
        Ok(len)
    }
}

/// The data types of version 3, and the dtypes without byte order.
const TYPES: [(&str, &str); 14] = [
    ("bool", "b1"),
    ("int8", "i1"),
    ("int16", "i2"),
    ("int32", "i4"),
    ("int64", "i8"),
    ("uint8", "u1"),
    ("uint16", "u2"),
    ("uint32", "u4"),
    ("uint64", "u8"),
    ("float16", "f2"),
    ("float32", "f4"),
    ("float64", "f8"),
    ("complex64", "c8"),
    ("complex128", "c16"),
];

/// The dtype of a data type of version 3, without byte order.
fn dtype_3(name: &Value) -> Option<String> {
    if let Some(name) = name.as_str() {
        return TYPES
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, dtype)| (*dtype).to_owned());
    }
    let configuration = &name["configuration"];
    let length = |of: u64| {
        let length = configuration["length_bytes"].as_u64()?;
        (length % of == 0).then_some(length / of)
    };
    Some(match name["name"].as_str()? {
        "numpy.datetime64" | "numpy.timedelta64" => {
            let letter = if name["name"] == "numpy.datetime64" { 'M' } else { 'm' };
            let (unit, scale) =
                (configuration["unit"].as_str()?, configuration["scale_factor"].as_u64()?);
            match (unit, scale) {
                ("generic", _) => format!("{letter}8"),
                (unit, 1) => format!("{letter}8[{unit}]"),
                (unit, scale) => format!("{letter}8[{scale}{unit}]"),
            }
        }
        "fixed_length_utf32" => format!("U{}", length(4)?),
        "null_terminated_bytes" => format!("S{}", length(1)?),
        "raw_bytes" => format!("V{}", length(1)?),
        _ => return None,
    })
}

/// The dtype of version 2 as text, as NumPy writes it.
fn dtype_2(value: &Value) -> Option<String> {
    let fields = match value {
        Value::String(text) => return Some(text.clone()),
        value => value.as_array()?,
    };
    let fields = fields.iter().map(|field| {
        let field = field.as_array()?;
        let name = field.first()?.as_str()?;
        let name = name.replace('\\', "\\\\").replace('\'', "\\'");
        let dtype = match dtype_2(field.get(1)?)? {
            dtype if dtype.starts_with('[') => dtype,
            dtype => format!("'{dtype}'"),
        };
        Some(match field.get(2) {
            None => format!("('{name}', {dtype})"),
            Some(shape) => {
                let sides = shape.as_array()?.iter().map(Value::to_string).collect::<Vec<_>>();
                format!("('{name}', {dtype}, ({},))", sides.join(", "))
            }
        })
    });
    Some(format!("[{}]", fields.collect::<Option<Vec<_>>>()?.join(", ")))
}

/// The dtype in the metadata of version 2.
fn to_dtype_2(dtype: &Dtype) -> Result<Value> {
    let Some(fields) = dtype.fields() else {
        if dtype.subarray().is_some() {
            bail!("the dtype {dtype} is a sub-array, which Zarr has only in structures");
        }
        return Ok(dtype.to_string().into());
    };
    let mut end = 0;
    let list = fields.iter().map(|field| {
        if field.offset() != end {
            bail!("the dtype {dtype} has padding, which Zarr does not have");
        }
        end += field.dtype().size();
        let (name, of) = (field.name(), field.dtype());
        Ok(match of.subarray() {
            None => json!([name, to_dtype_2(of)?]),
            Some((item, shape)) => json!([name, to_dtype_2(item)?, shape]),
        })
    });
    let list = list.collect::<Result<Vec<_>>>()?;
    if end != dtype.size() {
        bail!("the dtype {dtype} has padding, which Zarr does not have");
    }
    Ok(list.into())
}

/// The metadata of an array: the name of their file, and the content.
fn describe(dtype: &Dtype, shape: &[u64], chunks: &[u64]) -> Result<(&'static str, Value)> {
    let text = dtype.to_string();
    let plain = text.trim_start_matches(['<', '>', '|']);
    let Some((name, _)) = TYPES.iter().find(|(_, known)| *known == plain) else {
        let found = json!({
            "zarr_format": 2,
            "shape": shape,
            "chunks": chunks,
            "dtype": to_dtype_2(dtype)?,
            "compressor": { "id": "zstd", "level": LEVEL, "checksum": false },
            "fill_value": null,
            "filters": null,
            "order": "C",
        });
        return Ok((".zarray", found));
    };
    let fill = match dtype.kind() {
        Some(Kind::Bool) => json!(false),
        Some(Kind::Float) => json!(0.0),
        Some(Kind::Complex) => json!([0.0, 0.0]),
        _ => json!(0),
    };
    let endian = if text.starts_with('>') { "big" } else { "little" };
    let bytes = match dtype.size() {
        1 => json!({ "name": "bytes" }),
        _ => json!({ "name": "bytes", "configuration": { "endian": endian } }),
    };
    let zstd = json!({ "name": "zstd", "configuration": { "level": LEVEL, "checksum": false } });
    let found = json!({
        "zarr_format": 3,
        "node_type": "array",
        "shape": shape,
        "data_type": name,
        "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": chunks } },
        "chunk_key_encoding": { "name": "default", "configuration": { "separator": "/" } },
        "fill_value": fill,
        "codecs": [bytes, zstd],
        "attributes": {},
    });
    Ok(("zarr.json", found))
}

/// Writes an array, or rows of it, to a new directory, with the chunks of the array.
pub(crate) fn write(array: &NDArray, rows: Option<Range<u64>>, output: Output<'_>) -> Result<()> {
    if output.is_stdout() {
        bail!("a Zarr array is a directory, which stdout cannot be");
    }
    let dtype = array.dtype().context("it has no dtype; `cat` reads its bytes")?;
    if dtype.has_pointers() || dtype.size() == 0 || dtype.size() != array.typesize() {
        bail!("its dtype {dtype} does not describe its items of {} bytes", array.typesize());
    }
    let mut shape = array.shape().to_vec();
    let start = match (rows, shape.first_mut()) {
        (Some(rows), Some(side)) => {
            *side = rows.end - rows.start;
            rows.start
        }
        _ => 0,
    };
    // Chunks of an array with an empty axis can be empty.
    let chunks: Vec<u64> = array.chunk_shape().iter().map(|&side| side.max(1)).collect();
    let (name, found) = describe(dtype, &shape, &chunks)?;
    let items = chunks.iter().product::<u64>();
    let size = array.typesize();
    let counts = shape.iter().zip(&chunks).map(|(side, chunk)| side.div_ceil(*chunk));
    let counts: Vec<u64> = counts.collect();
    let bar = progress::bar(shape.iter().product::<u64>().saturating_mul(size as u64));
    let folder = |path: &Path| {
        fs::create_dir_all(path)
            .with_context(|| format!("cannot create a directory ({})", path.display()))
    };
    let create = |path: PathBuf, bytes: &[u8]| {
        fs::write(&path, bytes)
            .with_context(|| format!("cannot create a file ({})", path.display()))
    };
    output.create_folder(|to| {
        folder(to)?;
        create(to.join(name), &serde_json::to_vec_pretty(&found)?)?;
        for number in 0..counts.iter().product() {
            let chunk = place(number, &counts);
            let ranges = chunk.iter().zip(&chunks).zip(&shape).enumerate();
            let ranges: Vec<Range<u64>> = ranges
                .map(|(axis, ((at, chunk), side))| {
                    let first = if axis == 0 { start } else { 0 };
                    first + at * chunk..first + ((at + 1) * chunk).min(*side)
                })
                .collect();
            let bytes = array.read::<Bytes>(&ranges[..])?.0;
            bar.inc(bytes.len() as u64);
            let part: Vec<usize> =
                ranges.iter().map(|range| (range.end - range.start) as usize).collect();
            let is_whole = bytes.len() == items as usize * size;
            let bytes = match is_whole {
                true => bytes,
                false => {
                    let axes: Vec<usize> = (0..shape.len()).collect();
                    let stored: Vec<u64> = part.iter().map(|&side| side as u64).collect();
                    let from = strides(&stored, &axes, size);
                    let mut padded = vec![0; items as usize * size];
                    let to = strides(&chunks, &axes, size);
                    copy((&bytes, &from), 0, (&mut padded, &to), 0, &part, size);
                    padded
                }
            };
            let numbers: Vec<String> = chunk.iter().map(u64::to_string).collect();
            let file = match (name, numbers.is_empty()) {
                (".zarray", true) => to.join("0"),
                (".zarray", false) => to.join(numbers.join(".")),
                _ => {
                    let names = std::iter::once("c").chain(numbers.iter().map(String::as_str));
                    to.join(names.collect::<Vec<_>>().join("/"))
                }
            };
            file.parent().map_or(Ok(()), folder)?;
            create(file, &zstd::bulk::compress(&bytes, LEVEL)?)?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fill_values_are_exact_or_refused() {
        let fill = |dtype: &str, value: &str| {
            let value = serde_json::from_str(value).unwrap();
            fill_of(&Dtype::parse(dtype).unwrap(), &value)
        };
        for (dtype, value, expected) in [
            ("<f8", "-0.0", &(-0f64).to_le_bytes()[..]),
            (">f4", "1.5", &1.5f32.to_be_bytes()),
            ("<f4", "\"0x7fc00001\"", &0x7fc0_0001u32.to_le_bytes()),
            ("<f2", "\"-Infinity\"", &[0, 0xfc]),
            ("<f16", "0.0", &[0; 16]),
            ("<c32", "null", &[0; 32]),
            (">c8", "[1, \"NaN\"]", &[1f32.to_be_bytes(), f32::NAN.to_be_bytes()].concat()),
            ("<c8", "0", &[0; 8]),
            ("|i1", "-128", &[0x80]),
            ("|i1", "127", &[0x7f]),
            (">u2", "65535.0", &[0xff, 0xff]),
            ("<u8", "18446744073709551615", &[0xff; 8]),
            ("<i8", "1.0", &1i64.to_le_bytes()),
            ("|b1", "1", &[1]),
            ("|b1", "true", &[1]),
            (">M8[s]", "\"NaT\"", &i64::MIN.to_be_bytes()),
            ("<m8[s]", "-1", &[0xff; 8]),
            ("|S3", "\"YWI=\"", b"ab\0"),
            ("|S3", "\"\"", b"\0\0\0"),
            ("|V2", "\"YWI=\"", b"ab"),
            ("[('a', '>i2'), ('b', '|u1')]", "\"AQID\"", &[1, 2, 3]),
            ("[('a', '>i2'), ('b', '|u1')]", "0", &[0; 3]),
            (">U2", "\"\u{e9}\"", &[0, 0, 0, 0xe9, 0, 0, 0, 0]),
        ] {
            assert_eq!(fill(dtype, value).as_deref(), Some(expected), "{dtype} {value}");
        }
        for (dtype, value) in [
            ("<f16", "1.0"),
            ("<f16", "-0.0"),
            ("<c32", "[1.0, 0.0]"),
            ("<f4", "1e300"),
            ("<f4", "\"0x7fc0\""),
            ("<f4", "\"0x+7fc0000\""),
            ("<f8", "\"x\""),
            ("<c8", "[1]"),
            ("|i1", "300"),
            ("|i1", "-129"),
            ("|u1", "256"),
            ("<u8", "-1"),
            ("<u8", "18446744073709551616"),
            ("<i8", "9223372036854775808"),
            ("<i4", "1.5"),
            ("|b1", "2"),
            ("|S3", "\"YWJjZA==\""),
            ("|V3", "\"YWI=\""),
            ("<U1", "\"ab\""),
        ] {
            assert_eq!(fill(dtype, value), None, "{dtype} {value}");
        }
    }
}
