//! The values of items: numbers for pictures and plots, text for tables.

use blosc2_format::Dtype;
use blosc2_format::dtype::{ByteOrder, Kind, ScalarDecoder};

use crate::values;

/// The maximum number of fields of a structure that can be chosen.
const MAX_FIELDS: usize = 1000;
/// The maximum number of elements of a sub-array that can be chosen.
const MAX_ELEMENTS: u64 = 64;
/// The maximum number of bytes of an item that is shown as text.
const MAX_TEXT: usize = 16 << 10;

/// A part of each item that is a number: the item, a field of a structure, or an element of a sub-array.
#[derive(Debug, Clone)]
pub struct Number {
    /// The path of the field, such as `place[0]`; empty for the item.
    pub name: String,
    /// The type of the part.
    pub dtype: Dtype,
    /// The offset of the part in the item, in bytes.
    pub offset: usize,
}

impl Number {
    /// Returns the parts of `dtype` that are numbers.
    pub fn all(dtype: &Dtype) -> Vec<Self> {
        let mut found = Vec::new();
        collect(dtype, String::new(), 0, &mut found);
        found
    }

    /// Appends the number in each item: `count` items with a distance of `step` bytes, the first one at `start`. Items
    /// that are not within `bytes` are NaN. Of complex numbers, the magnitude is used. Dates are numbers of units.
    pub fn decode(
        &self,
        bytes: &[u8],
        start: usize,
        step: usize,
        count: usize,
        out: &mut Vec<f64>,
    ) {
        let size = self.dtype.size();
        let at = start + self.offset;
        let each = |out: &mut Vec<f64>, number: &dyn Fn(&[u8]) -> f64| {
            out.extend((0..count).map(|k| {
                let from = at + k * step;
                bytes.get(from..from + size).map_or(f64::NAN, number)
            }));
        };
        macro_rules! native {
            ($type:ty) => {{
                let wide = |bytes: [u8; size_of::<$type>()]| <$type>::from_le_bytes(bytes) as f64;
                if step == size {
                    let run = bytes.get(at..).unwrap_or_default();
                    let before = out.len();
                    out.extend(run.as_chunks().0.iter().take(count).map(|&item| wide(item)));
                    out.resize(before + count, f64::NAN);
                } else {
                    out.extend((0..count).map(|k| {
                        let item = bytes.get(at + k * step..).and_then(|rest| rest.first_chunk());
                        item.map_or(f64::NAN, |&item| wide(item))
                    }));
                }
            }};
        }
        let number = ScalarDecoder::new(&self.dtype);
        let little = self.dtype.byte_order() != Some(ByteOrder::Big);
        match (self.dtype.kind(), size, little) {
            (Some(Kind::Float), 4, true) => native!(f32),
            (Some(Kind::Float), 8, true) => native!(f64),
            (Some(Kind::Int), 1, _) => native!(i8),
            (Some(Kind::Int), 2, true) => native!(i16),
            (Some(Kind::Int), 4, true) => native!(i32),
            (Some(Kind::Int), 8, true) => native!(i64),
            (Some(Kind::UInt | Kind::Bool), 1, _) => native!(u8),
            (Some(Kind::UInt), 2, true) => native!(u16),
            (Some(Kind::UInt), 4, true) => native!(u32),
            (Some(Kind::UInt), 8, true) => native!(u64),
            (Some(Kind::Float), ..) => each(out, &|item| number.float(item)),
            (Some(Kind::Complex), ..) => each(out, &|item| {
                let (re, im) = number.complex(item);
                re.hypot(im)
            }),
            (Some(Kind::DateTime | Kind::TimeDelta), ..) => {
                each(out, &|item| match number.time(item) {
                    i64::MIN => f64::NAN,
                    time => time as f64,
                })
            }
            _ => each(out, &|item| number.int(item) as f64),
        }
    }
}

fn collect(dtype: &Dtype, name: String, offset: usize, found: &mut Vec<Number>) {
    if found.len() >= MAX_FIELDS {
        return;
    }
    if let Some(fields) = dtype.fields() {
        for field in fields {
            let dot = if name.is_empty() { "" } else { "." };
            collect(
                field.dtype(),
                format!("{name}{dot}{}", field.name()),
                offset + field.offset(),
                found,
            );
        }
        return;
    }
    if dtype.subarray().is_some() {
        let (item, axes) = values::without_subarray(dtype);
        let count = axes.iter().product::<u64>().min(MAX_ELEMENTS);
        for index in 0..count as usize {
            collect(item, format!("{name}[{index}]"), offset + index * item.size(), found);
        }
        return;
    }
    let is_number = match dtype.kind() {
        Some(Kind::Bool | Kind::Int | Kind::UInt | Kind::DateTime | Kind::TimeDelta) => true,
        Some(Kind::Float) => matches!(dtype.size(), 2 | 4 | 8),
        Some(Kind::Complex) => matches!(dtype.size(), 8 | 16),
        _ => false,
    };
    if is_number {
        found.push(Number { name, dtype: dtype.clone(), offset });
    }
}

/// Returns the text of an item, as NumPy prints a single item. Of a large item, only the size is stated.
pub fn text(dtype: &Dtype, item: &[u8]) -> String {
    if item.len() != dtype.size() || item.len() > MAX_TEXT || values_of(dtype) > values::THRESHOLD {
        return format!("({} bytes)", item.len());
    }
    values::item(dtype, item, false)
}

/// The number of values in an item.
fn values_of(dtype: &Dtype) -> u64 {
    let (item, axes) = values::without_subarray(dtype);
    let fields = item.fields().unwrap_or_default().iter();
    let fields = fields.map(|field| values_of(field.dtype())).fold(0, u64::saturating_add);
    axes.into_iter().fold(fields.max(1), u64::saturating_mul)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(dtype: &str) -> Vec<(String, usize)> {
        let all = Number::all(&Dtype::parse(dtype).unwrap());
        all.into_iter().map(|each| (each.name, each.offset)).collect()
    }

    #[test]
    fn fields_have_paths() {
        assert_eq!(numbers("<f4"), [(String::new(), 0)]);
        assert_eq!(numbers("S3"), []);
        let expected = [("a", 0), ("b.c", 2), ("b.d[0]", 10), ("b.d[1]", 14)]
            .map(|(name, at)| (name.to_owned(), at));
        let text = "[('a', '<u2'), ('b', [('c', '<f8'), ('d', '<f4', (2,))]), ('e', 'S2')]";
        assert_eq!(numbers(text), expected);
    }

    #[test]
    fn every_kind_of_number_is_decoded() {
        let decode = |dtype: &str, bytes: &[u8], start, step, count| {
            let number =
                Number { name: String::new(), dtype: Dtype::parse(dtype).unwrap(), offset: 0 };
            let mut out = Vec::new();
            number.decode(bytes, start, step, count, &mut out);
            out
        };
        assert_eq!(decode("<i2", &[1, 0, 0xfe, 0xff, 3, 0], 0, 2, 3), [1.0, -2.0, 3.0]);
        assert_eq!(decode("<i2", &[1, 0, 0xfe, 0xff, 3, 0], 0, 4, 2), [1.0, 3.0]);
        assert_eq!(decode(">u2", &[1, 0, 0, 2], 0, 2, 2), [256.0, 2.0]);
        assert_eq!(decode("|b1", &[1, 0], 0, 1, 2), [1.0, 0.0]);
        assert_eq!(decode("<f2", &[0, 0x3c], 0, 2, 1), [1.0]);
        let three_four = [3f32.to_le_bytes(), 4f32.to_le_bytes()].concat();
        assert_eq!(decode("<c8", &three_four, 0, 8, 1), [5.0]);
        let times = [i64::MIN.to_le_bytes(), 7i64.to_le_bytes()].concat();
        let found = decode("<M8[s]", &times, 0, 8, 2);
        assert!(found[0].is_nan() && found[1] == 7.0);
        // Bytes that are missing.
        let found = decode("<f4", &1f32.to_le_bytes(), 0, 4, 2);
        assert!(found[0] == 1.0 && found[1].is_nan());
    }
}
