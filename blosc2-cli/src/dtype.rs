//! NumPy's item types, in the two notations that files use.
//!
//! Arrays of Blosc2 hold what Python's `str(dtype)` writes (`dtype.str` for plain types), npy files
//! what `dtype.descr` gives. They differ for structures: a npy file says padding as a field without
//! a name, the other one by offsets.

use anyhow::{Result, anyhow, bail};

use crate::literal::{Value, quote, tuple};

/// The type of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Dtype {
    Scalar(Scalar),
    /// So many items of one type along each dimension.
    Array(Box<Dtype>, Vec<u64>),
    Struct(Struct),
}

/// A type without parts, such as `<f4`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scalar {
    /// Byte order: `<`, `>`, or `|` where there is none.
    order: char,
    kind: char,
    /// The number after the kind: bytes, or characters for the kind `U`.
    count: u64,
    /// What dates count, with its brackets, such as `[ns]`; empty for others.
    unit: String,
}

/// A type with named parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Struct {
    fields: Vec<Field>,
    size: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Field {
    name: String,
    title: Option<String>,
    dtype: Dtype,
    offset: u64,
}

impl Dtype {
    /// Reads the dtype of an array of Blosc2.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let bad = |error| anyhow!("the dtype `{text}` is not understood: {error}");
        match text.trim_start().starts_with(['[', '(', '{']) {
            true => {
                Value::parse(text).and_then(|value| Self::from_value(&value, false)).map_err(bad)
            }
            false => Scalar::parse(text).map(Self::Scalar).map_err(bad),
        }
    }

    /// Reads the `descr` of a npy file.
    pub(crate) fn from_descr(value: &Value) -> Result<Self> {
        Self::from_value(value, true)
            .map_err(|error| anyhow!("the dtype is not understood: {error}"))
    }

    /// `npy` says whether fields without a name are padding.
    fn from_value(value: &Value, npy: bool) -> Result<Self> {
        match value {
            Value::Str(text) => Ok(Self::Scalar(Scalar::parse(text)?)),
            Value::Tuple(parts) => match parts.as_slice() {
                [dtype, shape] => Self::from_value(dtype, npy)?.repeated(shape),
                _ => bail!("a tuple has to have a type and a shape"),
            },
            Value::List(fields) => Ok(Self::Struct(Struct::from_fields(fields, npy)?)),
            Value::Dict(_) => Ok(Self::Struct(Struct::from_dict(value, npy)?)),
            _ => bail!("expected a text, a tuple, a list or a dictionary"),
        }
    }

    fn repeated(self, shape: &Value) -> Result<Self> {
        let number = |value: &Value| value.as_int().ok_or_else(|| anyhow!("a shape has numbers"));
        let mut shape = match shape.as_sequence() {
            Some(sizes) => sizes.iter().map(number).collect::<Result<Vec<_>>>()?,
            None => vec![number(shape)?],
        };
        Ok(match self {
            Self::Array(inner, inner_shape) => {
                shape.extend(inner_shape);
                Self::Array(inner, shape)
            }
            one if shape.is_empty() => one,
            one => Self::Array(Box::new(one), shape),
        })
    }

    /// Bytes of an item.
    pub(crate) fn size(&self) -> Result<u64> {
        let size = match self {
            Self::Scalar(scalar) => scalar.size(),
            Self::Array(inner, shape) => {
                shape.iter().try_fold(inner.size()?, |size, &count| size.checked_mul(count))
            }
            Self::Struct(Struct { size, .. }) => Some(*size),
        };
        size.ok_or_else(|| anyhow!("an item is too large"))
    }

    /// The dtype of an array of Blosc2, as Python writes it.
    pub(crate) fn to_text(&self) -> String {
        match self {
            Self::Scalar(scalar) => scalar.to_text(),
            other => other.to_repr(),
        }
    }

    /// The notation inside of structures, where what has no byte order has no sign of it.
    fn to_repr(&self) -> String {
        match self {
            Self::Scalar(scalar) => quote(&scalar.to_short_text()),
            Self::Array(inner, shape) => format!("({}, {})", inner.to_repr(), tuple(shape)),
            Self::Struct(fields) => fields.to_repr(),
        }
    }

    /// The `descr` of a npy file.
    pub(crate) fn to_descr(&self) -> Result<String> {
        match self {
            Self::Scalar(scalar) => Ok(quote(&scalar.to_text())),
            Self::Array(inner, shape) => Ok(format!("({}, {})", inner.to_descr()?, tuple(shape))),
            Self::Struct(fields) => fields.to_descr(),
        }
    }
}

impl Scalar {
    fn parse(text: &str) -> Result<Self> {
        let bad = || anyhow!("`{text}` is no type of NumPy's");
        let bare = text.trim_start_matches(['|', '<', '>', '=']);
        let order = match &text[..text.len() - bare.len()] {
            "" | "=" | "|" if cfg!(target_endian = "little") => '<',
            "" | "=" | "|" | ">" => '>',
            "<" => '<',
            _ => return Err(bad()),
        };
        let bare = if bare == "?" { "b1" } else { bare };
        let (bare, unit) = bare.split_at(bare.find('[').unwrap_or(bare.len()));
        let mut chars = bare.chars();
        let (kind, digits) = (chars.next().ok_or_else(bad)?, chars.as_str());
        if kind == 'O' {
            bail!("`{text}` holds Python objects, which are no bytes");
        }
        if !digits.bytes().all(|digit| digit.is_ascii_digit()) {
            return Err(bad());
        }
        let count = digits.parse().map_err(|_| bad())?;
        let kind = if kind == 'a' { 'S' } else { kind };
        let known = match kind {
            'b' => count == 1,
            'i' | 'u' => [1, 2, 4, 8].contains(&count),
            'f' => [2, 4, 8, 12, 16].contains(&count),
            'c' => [8, 16, 24, 32].contains(&count),
            'm' | 'M' => count == 8,
            'S' | 'U' | 'V' => true,
            _ => false,
        };
        let unit_fits = match kind {
            'm' | 'M' => unit.is_empty() || is_unit(unit),
            _ => unit.is_empty(),
        };
        if !known || !unit_fits {
            return Err(bad());
        }
        let no_order = matches!(kind, 'S' | 'V') || (count == 1 && kind != 'U');
        let order = if no_order { '|' } else { order };
        Ok(Self { order, kind, count, unit: unit.to_owned() })
    }

    fn size(&self) -> Option<u64> {
        if self.kind == 'U' { self.count.checked_mul(4) } else { Some(self.count) }
    }

    /// Python's `dtype.str`.
    fn to_text(&self) -> String {
        format!("{}{}{}{}", self.order, self.kind, self.count, self.unit)
    }

    fn to_short_text(&self) -> String {
        match (self.kind, self.order) {
            ('b', _) => "?".to_owned(),
            (_, '|') => format!("{}{}", self.kind, self.count),
            _ => self.to_text(),
        }
    }
}

/// Whether this is what dates count, such as `[ns]` or `[25s]`.
fn is_unit(text: &str) -> bool {
    let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    let name = inner.map(|inner| inner.trim_start_matches(|each: char| each.is_ascii_digit()));
    name.is_some_and(|name| {
        let known = ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as"];
        known.contains(&name) || name == "generic"
    })
}

impl Struct {
    fn from_fields(fields: &[Value], npy: bool) -> Result<Self> {
        let mut found = Vec::new();
        let mut size = 0u64;
        for field in fields {
            let (name, dtype, shape) = match field.as_sequence() {
                Some([name, dtype]) => (name, dtype, None),
                Some([name, dtype, shape]) => (name, dtype, Some(shape)),
                _ => bail!("a field has to have a name and a type"),
            };
            let mut dtype = Dtype::from_value(dtype, npy)?;
            if let Some(shape) = shape {
                dtype = dtype.repeated(shape)?;
            }
            let (title, name) = match name {
                Value::Str(name) => (None, name.clone()),
                Value::Tuple(both) => match both.as_slice() {
                    [Value::Str(title), Value::Str(name)] => (Some(title.clone()), name.clone()),
                    _ => bail!("a field has to have a title and a name"),
                },
                _ => bail!("a field has to have a name"),
            };
            let offset = size;
            size = size.checked_add(dtype.size()?).ok_or_else(|| anyhow!("it is too large"))?;
            let padding =
                npy && name.is_empty() && matches!(&dtype, Dtype::Scalar(Scalar { kind: 'V', .. }));
            if !padding {
                found.push(Field { name, title, dtype, offset });
            }
        }
        Ok(Self { fields: found, size })
    }

    /// Reads the notation with `names`, `formats`, `offsets`, `titles` and `itemsize`.
    fn from_dict(dict: &Value, npy: bool) -> Result<Self> {
        let list = |key: &str| {
            let values = dict.get(key).and_then(Value::as_sequence);
            values.ok_or_else(|| anyhow!("it has no list `{key}`"))
        };
        let (names, formats, offsets) = (list("names")?, list("formats")?, list("offsets")?);
        let titles = dict.get("titles").and_then(Value::as_sequence);
        let size = dict.get("itemsize").and_then(Value::as_int);
        let size = size.ok_or_else(|| anyhow!("it has no number `itemsize`"))?;
        let count = names.len();
        let titles_fit = titles.is_none_or(|titles| titles.len() == count);
        if formats.len() != count || offsets.len() != count || !titles_fit {
            bail!("its lists have different lengths");
        }
        let mut fields = Vec::new();
        for index in 0..count {
            let name = names[index].as_str().ok_or_else(|| anyhow!("a name has to be a text"))?;
            let offset =
                offsets[index].as_int().ok_or_else(|| anyhow!("an offset is no number"))?;
            let title = titles.and_then(|titles| titles[index].as_str()).map(str::to_owned);
            let dtype = Dtype::from_value(&formats[index], npy)?;
            if offset.checked_add(dtype.size()?).is_none_or(|end| end > size) {
                bail!("the field `{name}` reaches behind the item");
            }
            fields.push(Field { name: name.to_owned(), title, dtype, offset });
        }
        Ok(Self { fields, size })
    }

    /// Whether the fields lie one after the other without padding.
    fn is_packed(&self) -> bool {
        self.gaps().is_ok_and(|gaps| gaps.iter().all(|&gap| gap == 0))
    }

    /// The padding before each field and after the last one.
    fn gaps(&self) -> Result<Vec<u64>> {
        let mut end = 0;
        let mut gaps = Vec::new();
        for field in &self.fields {
            let gap = field.offset.checked_sub(end);
            gaps.push(gap.ok_or_else(|| {
                anyhow!("the field `{}` overlaps another or lies before it", field.name)
            })?);
            end = field.offset + field.dtype.size()?;
        }
        gaps.push(self.size.checked_sub(end).ok_or_else(|| anyhow!("fields reach too far"))?);
        Ok(gaps)
    }

    fn to_repr(&self) -> String {
        if self.is_packed() {
            let fields = self.fields.iter().map(|field| match &field.dtype {
                Dtype::Array(inner, shape) => {
                    format!("({}, {}, {})", field.key(), inner.to_repr(), tuple(shape))
                }
                other => format!("({}, {})", field.key(), other.to_repr()),
            });
            return format!("[{}]", fields.collect::<Vec<_>>().join(", "));
        }
        let list = |item: &dyn Fn(&Field) -> String| {
            format!("[{}]", self.fields.iter().map(item).collect::<Vec<_>>().join(", "))
        };
        let mut out = format!(
            "{{'names': {}, 'formats': {}, 'offsets': {}",
            list(&|field| quote(&field.name)),
            list(&|field| field.dtype.to_repr()),
            list(&|field| field.offset.to_string())
        );
        if self.fields.iter().any(|field| field.title.is_some()) {
            let title = |field: &Field| field.title.as_deref().map_or("None".to_owned(), quote);
            out += &format!(", 'titles': {}", list(&title));
        }
        out + &format!(", 'itemsize': {}}}", self.size)
    }

    fn to_descr(&self) -> Result<String> {
        let gaps = self.gaps()?;
        let padding = |gap: u64| (gap > 0).then(|| format!("('', '|V{gap}')"));
        let mut parts = Vec::new();
        for (field, &gap) in self.fields.iter().zip(&gaps) {
            parts.extend(padding(gap));
            parts.push(match &field.dtype {
                Dtype::Array(inner, shape) => {
                    format!("({}, {}, {})", field.key(), inner.to_descr()?, tuple(shape))
                }
                other => format!("({}, {})", field.key(), other.to_descr()?),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notations_are_pythons() {
        // What `str(dtype)` and `dtype.descr` give for the same dtypes.
        for (text, size, descr) in [
            ("<f4", 4, "'<f4'"),
            (">i8", 8, "'>i8'"),
            ("|b1", 1, "'|b1'"),
            ("|S10", 10, "'|S10'"),
            ("<U10", 40, "'<U10'"),
            ("<M8[25s]", 8, "'<M8[25s]'"),
            ("<m8", 8, "'<m8'"),
            ("|V5", 5, "'|V5'"),
            ("[('a', '<i4'), ('b', '<f8')]", 12, "[('a', '<i4'), ('b', '<f8')]"),
            (
                "[('p', [('x', '<f4'), ('y', '<f4', (3,))]), ('ok', '?')]",
                17,
                "[('p', [('x', '<f4'), ('y', '<f4', (3,))]), ('ok', '|b1')]",
            ),
            ("[(('A title', 'a'), 'i1')]", 1, "[(('A title', 'a'), '|i1')]"),
            (
                "{'names': ['a', 'b'], 'formats': ['i1', '<f8'], 'offsets': [0, 8], 'itemsize': 24}",
                24,
                "[('a', '|i1'), ('', '|V7'), ('b', '<f8'), ('', '|V8')]",
            ),
            (
                "{'names': ['é'], 'formats': [('<f4', (2, 3))], 'offsets': [1], 'titles': ['T'], 'itemsize': 25}",
                25,
                "[('', '|V1'), (('T', 'é'), '<f4', (2, 3))]",
            ),
        ] {
            let dtype = Dtype::parse(text).unwrap();
            assert_eq!((dtype.size().unwrap(), dtype.to_text().as_str()), (size, text));
            assert_eq!(dtype.to_descr().unwrap(), descr, "{text}");
            let read_back = Dtype::from_descr(&Value::parse(descr).unwrap()).unwrap();
            assert_eq!(read_back, dtype, "{text}");
        }
        let nested = Dtype::parse("(('<f4', (3,)), (2,))").unwrap();
        assert_eq!(nested.to_text(), "('<f4', (2, 3))");
        assert_eq!(Dtype::parse("=u1").unwrap().to_text(), "|u1");
    }

    #[test]
    fn what_is_no_dtype_is_refused() {
        for text in [
            "",
            "|O",
            "<",
            "i3",
            "<x4",
            "<i4[s]",
            "<M8[q]",
            "<i",
            "f4, i2",
            "é",
            "<>i4",
            "<f+4",
            "[('a',)]",
            "[('a', '|O')]",
            "[(1, '<i4')]",
            "('<i4',)",
            "('<i4', -1)",
            "[1]",
            "{'names': ['a'], 'formats': [], 'offsets': [0], 'itemsize': 1}",
            "{'names': ['a'], 'formats': ['<i4'], 'offsets': [1], 'itemsize': 4}",
            "('<i4', (18446744073709551615, 18446744073709551615))x",
        ] {
            assert!(Dtype::parse(text).is_err(), "{text}");
        }
        let huge = "('<i4', (18446744073709551615, 18446744073709551615))";
        assert!(Dtype::parse(huge).unwrap().size().is_err());
        // NumPy has no `descr` for fields that overlap either.
        let union =
            "{'names': ['a', 'b'], 'formats': ['<i4', '<f4'], 'offsets': [0, 0], 'itemsize': 4}";
        assert!(Dtype::parse(union).unwrap().to_descr().is_err());
    }
}
