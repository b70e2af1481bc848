//! `blosc2 export` to CSV files.

use std::io::{self, Write};

use anyhow::{Result, bail};
use blosc2::Dtype;

use crate::values;

/// Maximum number of fields of a line that belong to one item of a structure.
const MAX_FIELDS: usize = 10_000;

/// Writes items in C order as lines of comma-separated values.
pub(crate) struct CsvWriter<'a> {
    out: &'a mut dyn Write,
    layout: Layout,
    /// The bytes of an item that is not complete.
    rest: Vec<u8>,
    /// Number of items in the current line.
    column: u64,
}

/// The lines of a CSV file.
pub(crate) struct Layout {
    typesize: usize,
    /// The values of an item: names, offsets and dtypes.
    values: Vec<(String, usize, Dtype)>,
    /// Whether the items are structures, whose fields have names.
    has_names: bool,
    /// Number of items in a line.
    columns: u64,
}

impl Layout {
    /// The lines of an array of this shape. A line contains a row of two axes, an item of one axis, or the fields of
    /// an item.
    pub(crate) fn new(shape: &[u64], dtype: &Dtype) -> Result<Self> {
        let has_names = dtype.fields().is_some();
        let mut values = Vec::new();
        add(dtype, "", 0, &mut values)?;
        let columns = match *shape {
            [] | [_] => 1,
            [_, columns] if !has_names => columns,
            _ => {
                let most = if has_names { "a structured dtype, at most 1" } else { "at most 2" };
                bail!("it has {} dimensions, a CSV file of {dtype} has {most}", shape.len())
            }
        };
        Ok(Self { typesize: dtype.size(), values, has_names, columns })
    }
}

/// Adds the values of an item of this dtype.
fn add(
    dtype: &Dtype,
    name: &str,
    offset: usize,
    values: &mut Vec<(String, usize, Dtype)>,
) -> Result<()> {
    if let Some(fields) = dtype.fields() {
        for field in fields {
            let dot = if name.is_empty() { "" } else { "." };
            let name = format!("{name}{dot}{}", field.name());
            add(field.dtype(), &name, offset + field.offset(), values)?;
        }
    } else if dtype.subarray().is_some() {
        let (item, axes) = values::without_subarray(dtype);
        for index in 0..axes.iter().product() {
            let at = offset + usize::try_from(index)? * item.size();
            add(item, &format!("{name}[{index}]"), at, values)?;
        }
    } else if values.len() == MAX_FIELDS {
        bail!("a line would have more than {MAX_FIELDS} fields for each item");
    } else {
        values.push((name.to_owned(), offset, dtype.clone()));
    }
    Ok(())
}

impl<'a> CsvWriter<'a> {
    /// Writes the names of fields.
    pub(crate) fn new(out: &'a mut dyn Write, layout: Layout) -> io::Result<Self> {
        if layout.has_names {
            let names = layout.values.iter().map(|(name, ..)| quoted(name.clone()));
            writeln!(out, "{}", names.collect::<Vec<_>>().join(","))?;
        }
        Ok(Self { out, layout, rest: Vec::new(), column: 0 })
    }

    fn item(&mut self, item: &[u8]) -> io::Result<()> {
        let Self { out, layout, column, .. } = self;
        for (index, (_, offset, dtype)) in layout.values.iter().enumerate() {
            if index > 0 || *column > 0 {
                out.write_all(b",")?;
            }
            let bytes = item.get(*offset..*offset + dtype.size()).unwrap_or_default();
            let text = values::text(dtype, bytes);
            let text = text.unwrap_or_else(|| values::item(dtype, bytes, true));
            out.write_all(quoted(text).as_bytes())?;
        }
        *column += 1;
        if *column == layout.columns {
            *column = 0;
            out.write_all(b"\n")?;
        }
        Ok(())
    }
}

impl Write for CsvWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let size = self.layout.typesize;
        self.rest.extend_from_slice(bytes);
        let rest = std::mem::take(&mut self.rest);
        let items = rest.chunks_exact(size);
        self.rest = items.remainder().to_vec();
        items.into_iter().try_for_each(|item| self.item(item))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// A value with quotes if it needs them (RFC 4180).
fn quoted(text: String) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    }
}
