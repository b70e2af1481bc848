//! How many bytes an item has, by its dtype in NumPy's notation.

/// The bytes of an item of this dtype; `None` where the notation is not understood or nests deeper
/// than `nesting`.
///
/// ```text
/// <i4   |S7   <U3   <M8[ns]   [('a', '<i4'), ('b', '<f8', (2,))]   ('<i4', (2,))
/// {'names': ['x'], 'formats': ['<u2'], 'offsets': [2], 'itemsize': 4}
/// ```
pub(super) fn itemsize(dtype: &str, nesting: usize) -> Option<u64> {
    let dtype = dtype.trim();
    if !dtype.starts_with(['[', '(', '{']) {
        return simple(dtype);
    }
    let mut reader = Reader { text: dtype };
    let value = reader.value(nesting)?;
    reader.text.is_empty().then(|| size(&value))?
}

/// A kind and the number of its bytes or characters, between the byte order and the unit.
fn simple(dtype: &str) -> Option<u64> {
    let rest = dtype.strip_prefix(['<', '>', '|', '=']).unwrap_or(dtype);
    let kind = rest.chars().next()?;
    let rest = &rest[kind.len_utf8()..];
    let (digits, unit) = match rest.split_once('[') {
        Some((digits, unit)) if matches!(kind, 'M' | 'm') && unit.ends_with(']') => (digits, unit),
        Some(_) => return None,
        None => (rest, ""),
    };
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let number: u64 = digits.parse().ok()?;
    let fits = match kind {
        'b' => number == 1,
        'i' | 'u' => matches!(number, 1 | 2 | 4 | 8),
        'f' => matches!(number, 2 | 4 | 8 | 10 | 12 | 16),
        'c' => matches!(number, 8 | 16 | 20 | 24 | 32),
        'M' | 'm' => number == 8 && unit.len() != 1,
        'S' | 'a' | 'V' => true,
        'U' => return number.checked_mul(4),
        _ => false,
    };
    fits.then_some(number)
}

/// A value in Python's notation.
enum Value<'a> {
    Text(&'a str),
    Number(u64),
    /// A list or a tuple.
    Sequence(Vec<Value<'a>>),
    Mapping(Vec<(Value<'a>, Value<'a>)>),
    /// True and its like.
    Word,
}

fn size(dtype: &Value<'_>) -> Option<u64> {
    match dtype {
        Value::Text(dtype) => simple(dtype),
        Value::Sequence(items) => match items.as_slice() {
            // A dtype and a shape, rather than fields.
            [dtype @ (Value::Text(_) | Value::Mapping(_)), shape] => repeated(dtype, shape),
            [dtype @ Value::Sequence(_), shape @ Value::Number(_)] => repeated(dtype, shape),
            [dtype @ Value::Sequence(_), shape @ Value::Sequence(sides)]
                if !sides.is_empty()
                    && sides.iter().all(|side| matches!(side, Value::Number(_))) =>
            {
                repeated(dtype, shape)
            }
            fields => fields.iter().try_fold(0u64, |all, field| {
                let Value::Sequence(field) = field else { return None };
                let size = match field.as_slice() {
                    [_name, dtype] => size(dtype)?,
                    [_name, dtype, shape] => repeated(dtype, shape)?,
                    _ => return None,
                };
                all.checked_add(size)
            }),
        },
        Value::Mapping(items) => items.iter().find_map(|item| match item {
            (Value::Text("itemsize"), Value::Number(size)) => Some(*size),
            _ => None,
        }),
        Value::Number(_) | Value::Word => None,
    }
}

fn repeated(dtype: &Value<'_>, shape: &Value<'_>) -> Option<u64> {
    let number = |value: &Value<'_>| match value {
        Value::Number(number) => Some(*number),
        _ => None,
    };
    let count = match shape {
        Value::Sequence(sides) => {
            sides.iter().try_fold(1u64, |all, side| all.checked_mul(number(side)?))
        }
        side => number(side),
    };
    size(dtype)?.checked_mul(count?)
}

struct Reader<'a> {
    text: &'a str,
}

impl<'a> Reader<'a> {
    /// Skips what is there, and the spaces behind it.
    fn skip(&mut self, expected: char) -> Option<()> {
        self.text = self.text.strip_prefix(expected)?.trim_start();
        Some(())
    }

    fn take(&mut self, len: usize) -> Option<&'a str> {
        let (taken, rest) = self.text.split_at_checked(len)?;
        self.text = rest;
        Some(taken)
    }

    fn value(&mut self, nesting: usize) -> Option<Value<'a>> {
        let nesting = nesting.checked_sub(1)?;
        let value = match self.text.chars().next()? {
            '[' => Value::Sequence(self.items(nesting, '[', ']', Self::value)?),
            '(' => Value::Sequence(self.items(nesting, '(', ')', Self::value)?),
            '{' => Value::Mapping(self.items(nesting, '{', '}', |reader, nesting| {
                let key = reader.value(nesting)?;
                reader.skip(':')?;
                Some((key, reader.value(nesting)?))
            })?),
            quote @ ('\'' | '"') => {
                self.take(1)?;
                let mut escaped = false;
                let end = self.text.find(|each| {
                    let ends = each == quote && !escaped;
                    escaped = each == '\\' && !escaped;
                    ends
                })?;
                let text = self.take(end)?;
                self.take(1)?;
                Value::Text(text)
            }
            _ => {
                let end = |each: char| !each.is_ascii_alphanumeric();
                let word = self.take(self.text.find(end).unwrap_or(self.text.len()))?;
                match word.parse() {
                    Ok(number) => Value::Number(number),
                    Err(_) if word.starts_with(|first: char| first.is_ascii_alphabetic()) => {
                        Value::Word
                    }
                    Err(_) => return None,
                }
            }
        };
        self.text = self.text.trim_start();
        Some(value)
    }

    /// Items between brackets, separated by commas.
    fn items<T>(
        &mut self,
        nesting: usize,
        open: char,
        close: char,
        item: impl Fn(&mut Self, usize) -> Option<T>,
    ) -> Option<Vec<T>> {
        self.skip(open)?;
        let mut items = Vec::new();
        while !self.text.starts_with(close) {
            items.push(item(self, nesting)?);
            if self.text.starts_with(',') {
                self.skip(',')?;
            } else if !self.text.starts_with(close) {
                return None;
            }
        }
        self.take(1)?;
        Some(items)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dtypes_of_numpy() {
        for (dtype, size) in [
            ("|b1", 1),
            ("<i4", 4),
            (">u2", 2),
            ("|u1", 1),
            ("<f2", 2),
            ("<f16", 16),
            ("<c8", 8),
            ("|S7", 7),
            ("|S0", 0),
            ("<U3", 12),
            ("|V5", 5),
            ("<M8[ns]", 8),
            ("<m8[10us]", 8),
            ("<m8", 8),
            ("('<i4', (2,))", 8),
            ("('<i4', (2, 3))", 24),
            ("('<i4', 3)", 12),
            ("[('a', '<i4'), ('b', '<f8', (2,))]", 20),
            ("[('a', '<i4')]", 4),
            ("[('a', [('b', '|S3'), ('c', '<u2')]), (('title', 'd'), '|u1')]", 6),
            ("([('a', '<i4'), ('b', '|u1')], (2,))", 10),
            ("[('a', '<i4', 3), ('it\\'s', '<i4'), (\"it's\", '|b1')]", 17),
            (
                "{'names': ['x', 'y'], 'formats': ['S3', [('z', '<u2')]], 'offsets': [0, 4], \
              'itemsize': 6, 'aligned': True}",
                6,
            ),
            ("({'names': ['x'], 'formats': ['<u2'], 'offsets': [2], 'itemsize': 4}, (3,))", 12),
        ] {
            assert_eq!(itemsize(dtype, 64), Some(size), "{dtype}");
        }
    }

    #[test]
    fn what_is_no_dtype_has_no_size() {
        for dtype in [
            "",
            "<",
            "i",
            "<i3",
            "<i4x",
            "|O",
            "<q8",
            "int32",
            "<i4[ns]",
            "<M8[",
            "<M8[]",
            "|S-1",
            "|S99999999999999999999",
            "<U9999999999999999999",
            "[",
            "[(",
            "[('a', '<i4'",
            "('<i4',)",
            "[('a',)]",
            "[('a', '<i4') ('b', '<i4')]",
            "{'itemsize': }",
            "{}",
            "('<i8', \
             (4294967296, 4294967296))",
            "[('a', '<i4')] x",
            "é",
            "[é]",
            "'",
            "(3, 4)",
        ] {
            assert_eq!(itemsize(dtype, 64), None, "{dtype}");
        }
        let deep = format!("{}'<i4'{}", "[('a', ".repeat(40), ")]".repeat(40));
        assert_eq!(itemsize(&deep, 64), None, "81 levels");
        assert_eq!(itemsize(&deep, 100), Some(4));
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(
            text in "[\\[\\](){}'\",: \\\\a-z0-9<|é]{0,40}",
        ) {
            let _ = itemsize(&text, 8);
        }
    }
}
