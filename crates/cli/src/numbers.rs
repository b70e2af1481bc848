//! Items of numeric dtypes as `f64`.

use anyhow::{Result, bail};
use blosc2::Dtype;
use blosc2::dtype::{Kind, ScalarDecoder};

use crate::date::{self, NAT};
use crate::printable;
use crate::typed::names;

/// Converts items to `f64`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Numbers {
    kind: Numeric,
    number: ScalarDecoder,
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
    /// The numbers of a scalar dtype.
    pub(crate) fn new(dtype: &Dtype) -> Result<Self> {
        if dtype.fields().is_some() {
            bail!("its dtype has fields; select one with --field: {}", names(dtype));
        }
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
        Ok(Self { kind, number: ScalarDecoder::new(dtype) })
    }

    /// The units of an item that is a date or a duration, and not NaT.
    pub(crate) fn time(&self, item: &[u8]) -> Option<i64> {
        let Numeric::Time { .. } = self.kind else { return None };
        Some(self.number.time(item)).filter(|time| *time != NAT)
    }

    /// The unit of the items, if they are dates.
    pub(crate) fn date_unit(&self) -> Option<(u32, &'static str)> {
        match self.kind {
            Numeric::Time { is_date: true, unit } => unit,
            _ => None,
        }
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
        match self.kind {
            Numeric::Bool => f64::from(u8::from(self.number.int(item) != 0)),
            Numeric::Int => self.number.int(item) as f64,
            Numeric::Time { .. } => match self.number.time(item) {
                NAT => f64::NAN,
                time => time as f64,
            },
            Numeric::Float => self.number.float(item),
            Numeric::Complex => {
                let (real, imaginary) = self.number.complex(item);
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
        Numbers::new(&Dtype::parse(dtype).unwrap()).unwrap().value(bytes)
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
    fn other_types_are_refused() {
        for (dtype, expected) in [
            ("<U3", "`<U3` are not numbers"),
            ("|V8", "`|V8` are not numbers"),
            ("<f16", "`<f16` are not numbers"),
            ("|O", "`|O` are not numbers"),
            ("[('a', '<u2'), ('b', '>i4')]", "select one with --field: a, b"),
        ] {
            let error = Numbers::new(&Dtype::parse(dtype).unwrap()).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
