//! Parsing and formatting of dtypes in NumPy's two notations.
//!
//! Arrays of Blosc2 store the result of Python's `str(dtype)`. `.npy` files store the result of
//! `dtype.descr`. The notations differ for structures with padding: in `.npy` files padding is a
//! field without a name; in the other notation offsets express padding.

use std::fmt;
use std::str::FromStr;

use super::literal::{Result, Unlike, Value, quote, tuple};
use super::scalar::Scalar;
use super::{Dtype, Field, Form, Kind, MAX_TEXT_LEN, Struct};
use crate::{Error, FormatError};

/// The maximum number of bytes of a text in an error message.
const MAX_SHOWN: usize = 60;

/// The notation of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Notation {
    Str,
    /// The notation within an aligned structure. The nested structures are aligned as well.
    Aligned,
    /// Fields without a name are padding.
    Npy,
}

impl Unlike {
    /// Creates the error for a text that is not a valid `what`.
    pub(crate) fn in_text(self, what: &'static str, text: &str) -> Error {
        let rest = text.get(self.at..).unwrap_or("");
        let found = match rest.char_indices().nth(MAX_SHOWN) {
            _ if rest.is_empty() && self.at > 0 => "the end".to_owned(),
            Some((end, _)) => format!("`{}`...", rest[..end].escape_debug()),
            None => format!("`{}`", rest.escape_debug()),
        };
        FormatError::new(what, self.at, self.expected, found).into()
    }
}

impl FromStr for Dtype {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::parse(text)
    }
}

impl TryFrom<&str> for Dtype {
    type Error = Error;

    fn try_from(text: &str) -> Result<Self, Error> {
        Self::parse(text)
    }
}

/// Formats the type as Python blosc2 writes it into array files. NumPy parses the result to an
/// equal dtype.
///
/// In some cases NumPy's text omits the padding of nested structures. The text of this
/// implementation includes the padding.
impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&match &self.form {
            Form::Scalar(scalar) => scalar.to_text(),
            Form::Struct(structure) if structure.aligned => {
                structure.to_dict(self.size, true, ", 'aligned': True")
            }
            _ => self.to_short_text(false),
        })
    }
}

impl fmt::Debug for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Dtype({self})")
    }
}

impl Dtype {
    /// Parses the notation of `.npy` files, the result of NumPy's `dtype.descr`.
    ///
    /// # Errors
    /// [`Error::Format`]: the text is not in this notation, or exceeds the limits
    /// [`MAX_TEXT_LEN`], [`MAX_SIZE`](super::MAX_SIZE), [`MAX_NESTING`](super::MAX_NESTING) or
    /// [`MAX_SUBARRAY_NDIM`](super::MAX_SUBARRAY_NDIM).
    ///
    /// ```
    /// use blosc2_format::Dtype;
    ///
    /// let descr = "[('a', '|u1'), ('', '|V3'), ('b', '<i4')]";
    /// let dtype = Dtype::from_descr(descr)?;
    /// assert_eq!(dtype.fields().unwrap()[1].offset(), 4);
    /// assert_eq!(dtype.to_descr()?, descr);
    /// assert_eq!(Dtype::from_descr("'<f4'")?, Dtype::parse("<f4")?);
    /// # Ok::<(), blosc2_format::Error>(())
    /// ```
    pub fn from_descr(descr: &str) -> Result<Self, Error> {
        check_len(descr)
            .and_then(|()| Value::parse(descr, Self::MAX_BRACKETS))
            .and_then(|value| Self::from_descr_value(&value))
            .map_err(|unlike| unlike.in_text("dtype", descr))
    }

    pub(crate) fn from_descr_value(value: &Value) -> Result<Self> {
        Self::from_value(value, Notation::Npy)
    }

    pub(super) fn read(text: &str, nesting: usize) -> Result<Self> {
        check_len(text)?;
        match text.trim_start().starts_with(['[', '(', '{']) {
            true => Self::from_value(&Value::parse(text, nesting)?, Notation::Str),
            false => Scalar::parse(text).map(Self::of_scalar),
        }
    }

    fn from_value(value: &Value, notation: Notation) -> Result<Self> {
        match value {
            Value::Str(text) => Scalar::parse(text).map(Self::of_scalar),
            Value::Tuple(parts) => match parts.as_slice() {
                // The first value is the class of the items, which only Python uses.
                [Value::Record, dtype] => Self::from_value(dtype, notation),
                [dtype, shape] => Self::from_value(dtype, notation)?.with_shape(shape),
                _ => Err(Unlike::new("a type and a shape in a tuple")),
            },
            Value::List(fields) => Self::from_list(fields, notation),
            Value::Dict(_) => Self::from_dict(value, notation),
            _ => Err(Unlike::new("a text, a tuple, a list or a dictionary")),
        }
    }

    fn with_shape(self, shape: &Value) -> Result<Self> {
        let number =
            |value: &Value| value.as_int().ok_or_else(|| Unlike::new("numbers in a shape"));
        let shape = match shape.as_sequence() {
            Some(sizes) => sizes.iter().map(number).collect::<Result<Vec<_>>>()?,
            None => vec![number(shape)?],
        };
        self.repeated(&shape).map_err(Unlike::new)
    }

    fn from_list(list: &[Value], notation: Notation) -> Result<Self> {
        let mut fields = Vec::new();
        let (mut size, mut alignment) = (0usize, 1);
        for (number, field) in list.iter().enumerate() {
            let (name, dtype, shape) = match field.as_sequence() {
                Some([name, dtype]) => (name, dtype, None),
                Some([name, dtype, shape]) => (name, dtype, Some(shape)),
                _ => return Err(Unlike::new("a field with a name and a type")),
            };
            let mut dtype = Self::from_value(dtype, notation)?;
            if let Some(shape) = shape {
                dtype = dtype.with_shape(shape)?;
            }
            let (title, name) = match name {
                Value::Str(name) => (None, name),
                Value::Tuple(both) => match both.as_slice() {
                    [title, Value::Str(name)] => (read_title(title)?, name),
                    _ => return Err(Unlike::new("a field with a title and a name")),
                },
                _ => return Err(Unlike::new("a field with a name")),
            };
            let name = match (notation, name.as_str()) {
                (Notation::Npy, "") if dtype.is_void() => None,
                (Notation::Str | Notation::Aligned, "") => Some(format!("f{number}")),
                (_, name) => Some(name.to_owned()),
            };
            let each = if notation == Notation::Aligned { dtype.alignment() } else { 1 };
            alignment = alignment.max(each);
            let offset = aligned(size, each);
            // Sizes that are too large are rejected below.
            size = offset.saturating_add(dtype.size);
            fields.extend(name.map(|name| Field { name, title, offset, dtype }));
        }
        Self::of_fields(aligned(size, alignment), fields, false).map_err(Unlike::new)
    }

    /// Parses the notation with `names`, `formats`, `offsets`, `titles`, `itemsize` and `aligned`.
    fn from_dict(dict: &Value, notation: Notation) -> Result<Self> {
        let list = |key: &str| {
            let values = dict.get(key).and_then(Value::as_sequence);
            values.ok_or_else(|| Unlike::new(format!("a list `{key}`")))
        };
        let (names, formats, offsets) = (list("names")?, list("formats")?, list("offsets")?);
        let titles = dict.get("titles").and_then(Value::as_sequence);
        let size = dict.get("itemsize").and_then(Value::as_usize);
        let size = size.ok_or_else(|| Unlike::new("a number `itemsize`"))?;
        let aligned = dict.get("aligned").and_then(Value::as_bool).unwrap_or(false);
        let notation = if aligned { Notation::Aligned } else { notation };
        let count = names.len();
        let titles_fit = titles.is_none_or(|titles| titles.len() == count);
        if formats.len() != count || offsets.len() != count || !titles_fit {
            return Err(Unlike::new("lists of one length"));
        }
        let mut fields = Vec::new();
        for index in 0..count {
            let name = names[index].as_str().ok_or_else(|| Unlike::new("names that are texts"))?;
            let offset = offsets[index].as_usize();
            let offset = offset.ok_or_else(|| Unlike::new("offsets that are numbers"))?;
            let title = titles.map_or(Ok(None), |titles| read_title(&titles[index]))?;
            let dtype = Self::from_value(&formats[index], notation)?;
            fields.push(Field { name: name.to_owned(), title, offset, dtype });
        }
        Self::of_fields(size, fields, aligned).map_err(Unlike::new)
    }

    /// Returns whether the type consists of void bytes, possibly repeated.
    fn is_void(&self) -> bool {
        match &self.form {
            Form::Array(item, _) => item.is_void(),
            _ => self.kind() == Some(Kind::Void),
        }
    }

    /// Returns the alignment in C on common 64-bit platforms; structures count as aligned.
    fn alignment(&self) -> usize {
        match &self.form {
            Form::Scalar(scalar) => match scalar.kind.word(self.size) {
                // The `long double` of 32-bit platforms.
                12 => 4,
                word => word,
            },
            Form::Array(item, _) => item.alignment(),
            Form::Struct(Struct { fields, .. }) => {
                fields.iter().map(|field| field.dtype.alignment()).max().unwrap_or(1)
            }
        }
    }

    /// Returns the notation within other types, which can be aligned.
    fn to_short_text(&self, aligned: bool) -> String {
        match &self.form {
            Form::Scalar(scalar) => quote(&scalar.to_short_text()),
            Form::Array(item, shape) => {
                format!("({}, {})", item.to_short_text(aligned), tuple(shape))
            }
            Form::Struct(structure) if structure.is_dense(self.size, aligned) => {
                structure.to_list(aligned)
            }
            // NumPy states the alignment of the outermost structure only.
            Form::Struct(structure) => structure.to_dict(self.size, aligned, ""),
        }
    }

    /// Returns the notation of `.npy` files, NumPy's `dtype.descr`.
    ///
    /// # Errors
    /// [`Error::Unsupported`]: the fields overlap, or are not in the order of their offsets. NumPy
    /// also has no `dtype.descr` for such types.
    pub fn to_descr(&self) -> Result<String, Error> {
        match &self.form {
            Form::Scalar(scalar) => Ok(quote(&scalar.to_text())),
            Form::Array(item, shape) => Ok(format!("({}, {})", item.to_descr()?, tuple(shape))),
            Form::Struct(structure) => structure.to_descr(self.size),
        }
    }
}

fn check_len(text: &str) -> Result<()> {
    let expected = || Unlike::new(format!("a text of at most {MAX_TEXT_LEN} bytes"));
    (text.len() <= MAX_TEXT_LEN).then_some(()).ok_or_else(expected)
}

fn aligned(offset: usize, alignment: usize) -> usize {
    // Sizes that are too large are rejected.
    offset.checked_next_multiple_of(alignment).unwrap_or(usize::MAX)
}

fn read_title(value: &Value) -> Result<Option<String>> {
    match value {
        Value::None => Ok(None),
        Value::Str(title) => Ok(Some(title.clone())),
        _ => Err(Unlike::new("titles that are texts")),
    }
}

impl Struct {
    /// Returns the padding before each field and after the last field. Fails with the name of a
    /// field if the field overlaps another field or has a lower offset than its predecessor.
    fn gaps(&self, size: usize) -> Result<Vec<usize>, &str> {
        let mut end = 0;
        let mut gaps = Vec::new();
        for field in &self.fields {
            gaps.push(field.offset.checked_sub(end).ok_or(field.name())?);
            end = field.offset + field.dtype.size;
        }
        // Fields are within the item.
        gaps.push(size.saturating_sub(end));
        Ok(gaps)
    }

    /// Returns whether the notation with a list can describe the fields. All fields need names,
    /// because NumPy treats an empty name in a list as a missing name. The fields may not have more
    /// padding than their alignment requires.
    fn is_dense(&self, size: usize, is_aligned: bool) -> bool {
        let (mut end, mut alignment) = (0, 1);
        for Field { name, offset, dtype, .. } in &self.fields {
            let each = if is_aligned { dtype.alignment() } else { 1 };
            alignment = alignment.max(each);
            if *offset != aligned(end, each) || name.is_empty() {
                return false;
            }
            end = offset + dtype.size;
        }
        aligned(end, alignment) == size
    }

    fn to_list(&self, aligned: bool) -> String {
        let fields = self.fields.iter().map(|field| match &field.dtype.form {
            Form::Array(item, shape) => {
                format!("({}, {}, {})", field.key(), item.to_short_text(aligned), tuple(shape))
            }
            _ => format!("({}, {})", field.key(), field.dtype.to_short_text(aligned)),
        });
        format!("[{}]", fields.collect::<Vec<_>>().join(", "))
    }

    fn to_dict(&self, size: usize, aligned: bool, end: &str) -> String {
        let list = |item: &dyn Fn(&Field) -> String| {
            format!("[{}]", self.fields.iter().map(item).collect::<Vec<_>>().join(", "))
        };
        let mut out = format!(
            "{{'names': {}, 'formats': {}, 'offsets': {}",
            list(&|field| quote(&field.name)),
            list(&|field| field.dtype.to_short_text(aligned)),
            list(&|field| field.offset.to_string())
        );
        if self.fields.iter().any(|field| field.title.is_some()) {
            let title = |field: &Field| field.title.as_deref().map_or("None".to_owned(), quote);
            out += &format!(", 'titles': {}", list(&title));
        }
        out + &format!(", 'itemsize': {size}{end}}}")
    }

    fn to_descr(&self, size: usize) -> Result<String, Error> {
        let gaps = self.gaps(size).map_err(|name| {
            let detail = format!("the field `{name}` overlaps another or has a lower offset");
            Error::Unsupported(format!("{detail}, which npy files cannot express"))
        })?;
        let padding = |gap: usize| (gap > 0).then(|| format!("('', '|V{gap}')"));
        let mut parts = Vec::new();
        for (field, &gap) in self.fields.iter().zip(&gaps) {
            parts.extend(padding(gap));
            parts.push(match &field.dtype.form {
                Form::Array(item, shape) => {
                    format!("({}, {}, {})", field.key(), item.to_descr()?, tuple(shape))
                }
                _ => format!("({}, {})", field.key(), field.dtype.to_descr()?),
            });
        }
        parts.extend(gaps.last().and_then(|&gap| padding(gap)));
        Ok(format!("[{}]", parts.join(", ")))
    }
}

impl Field {
    fn key(&self) -> String {
        match &self.title {
            Some(title) => format!("({}, {})", quote(title), quote(&self.name)),
            None => quote(&self.name),
        }
    }
}
