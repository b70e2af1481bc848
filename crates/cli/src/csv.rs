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
        if dtype.size() == 0 {
            bail!("its dtype {dtype} has no bytes, a CSV file needs values");
        }
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
    if dtype.size() == 0 && (dtype.fields().is_some() || dtype.subarray().is_some()) {
        // Any number of empty items has no value.
        return Ok(());
    }
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
            // Readers skip empty lines.
            let is_line = layout.columns == 1 && layout.values.len() == 1;
            let text = if text.is_empty() && is_line { "\"\"".to_owned() } else { quoted(text) };
            out.write_all(text.as_bytes())?;
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
pub(crate) fn quoted(text: String) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::{CsvWriter, Layout};
    use blosc2::Dtype;

    fn lines(dtype: &str, shape: &[u64], bytes: &[u8]) -> String {
        let layout = Layout::new(shape, &Dtype::parse(dtype).unwrap()).unwrap();
        let mut out = Vec::new();
        CsvWriter::new(&mut out, layout).unwrap().write_all(bytes).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn an_empty_text_alone_in_a_line_has_quotes() {
        assert_eq!(lines("|S1", &[3], b"a\0b"), "a\n\"\"\nb\n");
        assert_eq!(lines("|S1", &[1, 3], b"a\0b"), "a,,b\n");
        assert_eq!(lines("[('t', '|S1')]", &[2], b"\0b"), "t\n\"\"\nb\n");
    }

    #[test]
    fn any_number_of_empty_items_takes_no_time() {
        let empty = "('c', [], (2147483647,))";
        let dtype = format!("[('a', '|i1'), ('b', [{empty}], (2147483647,))]");
        assert_eq!(lines(&dtype, &[2], &[7, 8]), "a\n7\n8\n");
        assert!(Layout::new(&[1], &Dtype::parse("[]").unwrap()).is_err());
    }
}
