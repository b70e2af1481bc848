//! Items of numeric dtypes as `f64`.

use anyhow::{Context, Result, bail};
use blosc2::Dtype;
use blosc2::dtype::Kind;

use crate::date::{self, NAT};
use crate::printable;
use crate::values::Number;

/// Field names that an error message lists.
const LISTED_FIELDS: usize = 10;

/// Converts items to `f64`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Numbers {
    kind: Numeric,
    number: Number,
    /// Place of the number in the item, in bytes.
    offset: usize,
    size: usize,
}

#[derive(Debug, Clone, Copy)]
enum Numeric {
    Bool,
    Int,
    Float,
    /// The value is the magnitude.
    Complex,
    /// Dates and durations; the smallest integer is NaT.
    Time {
        is_date: bool,
        unit: Option<(u32, &'static str)>,
    },
}

impl Numbers {
    /// The numbers of a scalar dtype, or those in a field of a structured one.
    pub(crate) fn new(dtype: &Dtype, field: Option<&str>) -> Result<Self> {
        let (offset, dtype) = match (dtype.fields(), field) {
            (None, None) => (0, dtype),
            (None, Some(_)) => bail!("--field requires a structured dtype, got `{dtype}`"),
            (Some(fields), name) => {
                let found = fields.iter().find(|field| Some(field.name()) == name);
                let field = found.with_context(|| {
                    let names = fields.iter().take(LISTED_FIELDS).map(|field| field.name());
                    let mut names = names.collect::<Vec<_>>().join(", ");
                    if fields.len() > LISTED_FIELDS {
                        names += ", ...";
                    }
                    match name {
                        None => format!("its dtype has fields; select one with --field: {names}"),
                        Some(name) => format!("its dtype has no field `{name}`, only: {names}"),
                    }
                })?;
                (field.offset(), field.dtype())
            }
        };
        let kind = match (dtype.kind(), dtype.size()) {
            (Some(Kind::Bool), _) => Numeric::Bool,
            (Some(Kind::Int | Kind::UInt), _) => Numeric::Int,
            (Some(Kind::Float), 2 | 4 | 8) => Numeric::Float,
            (Some(Kind::Complex), 8 | 16) => Numeric::Complex,
            (Some(kind @ (Kind::DateTime | Kind::TimeDelta)), _) => {
                Numeric::Time { is_date: kind == Kind::DateTime, unit: dtype.unit() }
            }
            _ => bail!("items of dtype `{}` are not numbers", printable(&dtype.to_string())),
        };
        Ok(Self { kind, number: Number::of(dtype), offset, size: dtype.size() })
    }

    fn bytes<'a>(&self, item: &'a [u8]) -> &'a [u8] {
        item.get(self.offset..self.offset + self.size).unwrap_or_default()
    }

    /// The units of an item that is a date or a duration, and not NaT.
    pub(crate) fn time(&self, item: &[u8]) -> Option<i64> {
        let Numeric::Time { .. } = self.kind else { return None };
        Some(self.number.time(self.bytes(item))).filter(|time| *time != NAT)
    }

    /// The text of a date or a duration; of other items it is the number.
    pub(crate) fn text(&self, time: i64) -> String {
        match self.kind {
            Numeric::Time { is_date: true, unit } => date::date(time, unit),
            Numeric::Time { is_date: false, unit } => date::duration(time, unit),
            _ => time.to_string(),
        }
    }

    /// The value of an item.
    pub(crate) fn value(&self, item: &[u8]) -> f64 {
        let bytes = self.bytes(item);
        match self.kind {
            Numeric::Bool => f64::from(u8::from(self.number.bits(bytes) != 0)),
            Numeric::Int => self.number.int(bytes) as f64,
            Numeric::Time { .. } => match self.number.time(bytes) {
                NAT => f64::NAN,
                time => time as f64,
            },
            Numeric::Float => self.number.float(bytes),
            Numeric::Complex => {
                let (real, imaginary) = self.number.complex(bytes);
                real.hypot(imaginary)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::*;

    fn value(dtype: &str, bytes: &[u8]) -> f64 {
        Numbers::new(&Dtype::parse(dtype).unwrap(), None).unwrap().value(bytes)
    }

    #[test]
    fn numbers_of_both_byte_orders() {
        for (dtype, expected, little) in [
            ("b1", 1.0, vec![7]),
            ("i1", -1.0, vec![255]),
            ("u1", 255.0, vec![255]),
            ("i2", -2.0, (-2i16).to_le_bytes().to_vec()),
            ("u4", 4e9, 4_000_000_000u32.to_le_bytes().to_vec()),
            ("i8", -3.0, (-3i64).to_le_bytes().to_vec()),
            ("u8", 2f64.powi(64), u64::MAX.to_le_bytes().to_vec()),
            ("f2", -1.5, f16::from_f64(-1.5).to_le_bytes().to_vec()),
            ("f4", 0.25, 0.25f32.to_le_bytes().to_vec()),
            ("f8", 1e300, 1e300f64.to_le_bytes().to_vec()),
            ("M8[s]", 5.0, 5i64.to_le_bytes().to_vec()),
            ("m8[ns]", -5.0, (-5i64).to_le_bytes().to_vec()),
        ] {
            let big: Vec<u8> = little.iter().rev().copied().collect();
            assert_eq!(value(&format!("<{dtype}"), &little), expected, "{dtype}");
            assert_eq!(value(&format!(">{dtype}"), &big), expected, "{dtype}");
        }
        assert!(value("<M8[s]", &i64::MIN.to_le_bytes()).is_nan());
        let parts = [3f32.to_be_bytes(), (-4f32).to_be_bytes()].concat();
        assert_eq!(value(">c8", &parts), 5.0);
    }

    #[test]
    fn fields_are_selected_by_name() {
        let dtype = Dtype::parse("[('a', '<u2'), ('b', '>i4'), ('c', '<f4', (3,)), ('d', 'S3')]");
        let dtype = dtype.unwrap();
        let field = Numbers::new(&dtype, Some("b")).unwrap();
        assert_eq!(field.value(&[9, 9, 0, 0, 1, 2, 9, 9]), 258.0);
        for (name, expected) in [
            (None, "select one with --field: a, b, c, d"),
            (Some("x"), "no field `x`, only: a, b, c, d"),
            (Some("c"), "are not numbers"),
            (Some("d"), "`|S3` are not numbers"),
        ] {
            let error = Numbers::new(&dtype, name).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        for dtype in ["<U3", "|V8", "<f16", "|O"] {
            let error = Numbers::new(&Dtype::parse(dtype).unwrap(), None).unwrap_err().to_string();
            assert!(error.contains("are not numbers"), "{error}");
        }
        assert!(Numbers::new(&Dtype::parse("<f4").unwrap(), Some("a")).is_err());
    }
}
