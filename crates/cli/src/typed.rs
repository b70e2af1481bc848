//! Items read as another type: floating-point types that NumPy lacks, fields of structures, and items of sub-arrays.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use anyhow::{Context, Result, anyhow, bail};
use blosc2::Dtype;
use blosc2::dtype::{ByteOrder, Kind};

use crate::stream::Items;
use crate::values;

/// Field names that an error message lists.
const LISTED_FIELDS: usize = 10;

/// The type of items, as an option names it.
#[derive(Debug, Clone)]
pub(crate) enum ItemType {
    /// A dtype of NumPy.
    Numpy(Dtype),
    /// A type of the Python package `ml_dtypes`, whose items NumPy stores as `V2` or `V1`.
    Small(SmallFloat),
}

impl ItemType {
    /// Bytes per item.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Numpy(dtype) => dtype.size(),
            Self::Small(float) => float.size(),
        }
    }
}

impl FromStr for ItemType {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(float) = SmallFloat::ALL.into_iter().find(|float| float.name == text) {
            return Ok(Self::Small(float));
        }
        if ["bf", "float8"].iter().any(|start| text.starts_with(start)) {
            let names = SmallFloat::ALL.map(|float| float.name).join(", ");
            return Err(format!("expected a NumPy type or one of {names}"));
        }
        Dtype::parse(text).map(Self::Numpy).map_err(|error| error.to_string())
    }
}

impl fmt::Display for ItemType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Numpy(dtype) => dtype.fmt(f),
            Self::Small(float) => f.write_str(float.name),
        }
    }
}

/// A floating-point type of one or two bytes. `f4` represents all its values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SmallFloat {
    name: &'static str,
    signed: bool,
    /// Bits of the exponent and of the fraction.
    exponent: u32,
    fraction: u32,
    bias: i32,
    specials: Specials,
}

/// The codes that are not finite numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Specials {
    /// As in IEEE 754: the largest exponent is that of infinity and NaN.
    Ieee,
    /// NaN has the largest exponent and the largest fraction (`fn`).
    LastNan,
    /// NaN has the code that would be -0 (`fnuz`).
    ZeroNan,
}

impl SmallFloat {
    const ALL: [Self; 9] = {
        use Specials::{Ieee, LastNan, ZeroNan};
        const fn float(
            name: &'static str,
            exponent: u32,
            fraction: u32,
            bias: i32,
            specials: Specials,
        ) -> SmallFloat {
            SmallFloat { name, signed: true, exponent, fraction, bias, specials }
        }
        [
            float("bfloat16", 8, 7, 127, Ieee),
            float("float8_e3m4", 3, 4, 3, Ieee),
            float("float8_e4m3", 4, 3, 7, Ieee),
            float("float8_e4m3b11fnuz", 4, 3, 11, ZeroNan),
            float("float8_e4m3fn", 4, 3, 7, LastNan),
            float("float8_e4m3fnuz", 4, 3, 8, ZeroNan),
            float("float8_e5m2", 5, 2, 15, Ieee),
            float("float8_e5m2fnuz", 5, 2, 16, ZeroNan),
            Self {
                name: "float8_e8m0fnu",
                signed: false,
                exponent: 8,
                fraction: 0,
                bias: 127,
                specials: LastNan,
            },
        ]
    };

    fn size(self) -> usize {
        ((self.exponent + self.fraction) / 8 + u32::from(self.signed)) as usize
    }

    fn value(self, code: u16) -> f32 {
        let Self { signed, exponent, fraction, bias, specials, .. } = self;
        let largest = (1 << exponent) - 1;
        let negative = signed && code >> (exponent + fraction) == 1;
        let power = i32::from(code >> fraction) & largest;
        let digits = i32::from(code) & ((1 << fraction) - 1);
        let sign = if negative { -1.0 } else { 1.0 };
        match specials {
            Specials::Ieee if power == largest && digits == 0 => return sign * f32::INFINITY,
            Specials::Ieee if power == largest => return f32::NAN,
            Specials::LastNan if power == largest && digits == (1 << fraction) - 1 => {
                return f32::NAN;
            }
            Specials::ZeroNan if negative && power == 0 && digits == 0 => return f32::NAN,
            _ => {}
        }
        // Without a fraction, there are no subnormal numbers and no zero.
        let (whole, power) = match power {
            0 if fraction > 0 => (0, 1),
            power => (1 << fraction, power),
        };
        // The product in `f64` is exact.
        let scale = 2f64.powi(power - bias - fraction as i32);
        sign * (f64::from(whole + digits) * scale) as f32
    }

    /// The dtype of the converted items.
    pub(crate) fn dtype() -> Result<Dtype> {
        Ok(Dtype::scalar(Kind::Float, 4)?.with_byte_order(ByteOrder::Little))
    }
}

/// Items of a [`SmallFloat`] as `f4`.
pub(crate) struct Widened<'a> {
    items: &'a dyn Items,
    float: SmallFloat,
}

impl<'a> Widened<'a> {
    /// The items of this type, which has no fields.
    pub(crate) fn new(
        items: &'a dyn Items,
        float: SmallFloat,
        field: Option<&str>,
    ) -> Result<Self> {
        match field {
            Some(_) => Err(no_fields(float.name)),
            None => Ok(Self { items, float }),
        }
    }
}

impl Items for Widened<'_> {
    fn shape(&self) -> Vec<u64> {
        self.items.shape()
    }

    fn chunks(&self) -> Vec<u64> {
        self.items.chunks()
    }

    fn typesize(&self) -> usize {
        size_of::<f32>()
    }

    fn read(&self, ranges: &[Range<u64>]) -> Result<Vec<u8>> {
        let codes = self.items.read(ranges)?;
        // NumPy stores them in little-endian byte order.
        let value = |code: &[u8]| {
            let code = code.iter().rfold(0, |code, &byte| code << 8 | u16::from(byte));
            self.float.value(code).to_le_bytes()
        };
        Ok(codes.chunks_exact(self.float.size()).flat_map(value).collect())
    }
}

/// A part of each item: a field of a structure, or the item itself. The axes of sub-arrays are the last axes.
pub(crate) struct Part<'a> {
    items: &'a dyn Items,
    /// Position of the part in the item, in bytes.
    offset: usize,
    axes: Vec<u64>,
    size: usize,
}

impl<'a> Part<'a> {
    /// The field `name` of items of this dtype; without a name, the items themselves. Also returns the dtype of the
    /// values.
    pub(crate) fn new(
        items: &'a dyn Items,
        dtype: &Dtype,
        name: Option<&str>,
    ) -> Result<(Self, Dtype)> {
        let (offset, part) = match (dtype.fields(), name) {
            (_, None) => (0, dtype),
            (None, Some(_)) => return Err(no_fields(dtype)),
            (Some(fields), Some(name)) => {
                let found = fields.iter().find(|field| field.name() == name);
                let field = found.with_context(|| {
                    format!("its dtype has no field `{name}`, only: {}", names(dtype))
                })?;
                (field.offset(), field.dtype())
            }
        };
        let (value, axes) = values::without_subarray(part);
        Ok((Self { items, offset, axes, size: value.size() }, value.clone()))
    }

    /// Reads the items of some ranges, at most `MOST` bytes or one item at a time, and appends their parts.
    fn append(
        &self,
        outer: &[Range<u64>],
        inner: &[Range<u64>],
        bytes: &mut Vec<u8>,
    ) -> Result<()> {
        const MOST: u64 = 64 << 20;
        let typesize = self.items.typesize();
        let lens = outer.iter().map(|range| range.end - range.start);
        let len = lens.fold(typesize as u64, u64::saturating_mul);
        let wide = outer.iter().position(|range| range.end - range.start > 1);
        if let Some(axis) = wide.filter(|_| len > MOST) {
            let Range { start, end } = outer[axis].clone();
            let middle = start + (end - start) / 2;
            for half in [start..middle, middle..end] {
                let mut outer = outer.to_vec();
                outer[axis] = half;
                self.append(&outer, inner, bytes)?;
            }
            return Ok(());
        }
        for item in self.items.read(outer)?.chunks_exact(typesize.max(1)) {
            let part = item.get(self.offset..).unwrap_or_default();
            self.append_values(part, 0, inner, bytes);
        }
        Ok(())
    }

    /// Appends the values of a box of the sub-array in `part`.
    fn append_values(&self, part: &[u8], axis: usize, inner: &[Range<u64>], bytes: &mut Vec<u8>) {
        let Some(range) = inner.get(axis) else {
            bytes.extend_from_slice(part.get(..self.size).unwrap_or_default());
            return;
        };
        // The sizes of a dtype fit.
        let stride = self.axes[axis + 1..].iter().product::<u64>() as usize * self.size;
        for at in range.clone() {
            let part = part.get(at as usize * stride..).unwrap_or_default();
            self.append_values(part, axis + 1, inner, bytes);
        }
    }
}

impl Items for Part<'_> {
    fn shape(&self) -> Vec<u64> {
        [self.items.shape(), self.axes.clone()].concat()
    }

    fn chunks(&self) -> Vec<u64> {
        let axes = self.axes.iter().map(|&side| side.max(1));
        self.items.chunks().into_iter().chain(axes).collect()
    }

    fn typesize(&self) -> usize {
        self.size
    }

    fn read(&self, ranges: &[Range<u64>]) -> Result<Vec<u8>> {
        let ndim = ranges.len().saturating_sub(self.axes.len());
        let (outer, inner) = ranges.split_at(ndim);
        if self.size == self.items.typesize() {
            return self.items.read(outer);
        }
        let mut bytes = Vec::new();
        self.append(outer, inner, &mut bytes)?;
        let lens = ranges.iter().map(|range| range.end - range.start);
        let expected = lens.fold(self.size as u64, u64::saturating_mul);
        if bytes.len() as u64 != expected {
            bail!("cannot read items: expected {expected} bytes of a field, got {}", bytes.len());
        }
        Ok(bytes)
    }
}

/// The error for `--field` with items that have no fields.
fn no_fields(dtype: impl fmt::Display) -> anyhow::Error {
    anyhow!("--field requires a structured dtype, got `{dtype}`")
}

/// The names of the first fields of a dtype, for a message.
pub(crate) fn names(dtype: &Dtype) -> String {
    let fields = dtype.fields().unwrap_or_default();
    let names: Vec<&str> = fields.iter().take(LISTED_FIELDS).map(|field| field.name()).collect();
    let more = if fields.len() > LISTED_FIELDS { ", ..." } else { "" };
    format!("{}{more}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_floats_have_the_values_of_ml_dtypes() {
        let (inf, nan) = (f32::INFINITY, f32::NAN);
        type Values<'a> = &'a [(u16, f32)];
        let cases: [(&str, usize, Values<'_>); 9] = [
            (
                "bfloat16",
                2,
                &[
                    (0x3f80, 1.0),
                    (0x4049, 3.140_625),
                    (0xc2f7, -123.5),
                    (0x7f80, inf),
                    (0xff80, -inf),
                    (0x7fc0, nan),
                    (0x0001, 9.183_55e-41),
                    (0x7f7f, 3.389_531_4e38),
                    (0x8000, -0.0),
                ],
            ),
            (
                "float8_e3m4",
                1,
                &[
                    (0x01, 0.015_625),
                    (0x10, 0.25),
                    (0x30, 1.0),
                    (0x6f, 15.5),
                    (0x70, inf),
                    (0xf0, -inf),
                    (0x71, nan),
                ],
            ),
            (
                "float8_e4m3",
                1,
                &[(0x01, 0.001_953_125), (0x38, 1.0), (0x77, 240.0), (0x78, inf), (0x79, nan)],
            ),
            (
                "float8_e4m3b11fnuz",
                1,
                &[(0x01, 0.000_122_070_31), (0x58, 1.0), (0x7f, 30.0), (0x80, nan), (0xff, -30.0)],
            ),
            (
                "float8_e4m3fn",
                1,
                &[
                    (0x01, 0.001_953_125),
                    (0x38, 1.0),
                    (0x7e, 448.0),
                    (0x7f, nan),
                    (0xff, nan),
                    (0x80, -0.0),
                ],
            ),
            (
                "float8_e4m3fnuz",
                1,
                &[(0x01, 0.000_976_562_5), (0x40, 1.0), (0x7f, 240.0), (0x80, nan)],
            ),
            (
                "float8_e5m2",
                1,
                &[
                    (0x01, 1.525_878_9e-5),
                    (0x3c, 1.0),
                    (0x7b, 57344.0),
                    (0x7c, inf),
                    (0xfc, -inf),
                    (0x7d, nan),
                ],
            ),
            (
                "float8_e5m2fnuz",
                1,
                &[(0x01, 7.629_394_5e-6), (0x40, 1.0), (0x7f, 57344.0), (0x80, nan)],
            ),
            (
                "float8_e8m0fnu",
                1,
                &[
                    (0x00, 5.877_472e-39),
                    (0x7f, 1.0),
                    (0x80, 2.0),
                    (0xfe, 1.701_411_8e38),
                    (0xff, nan),
                ],
            ),
        ];
        for (name, size, values) in cases {
            let ItemType::Small(float) = name.parse().unwrap() else { panic!("{name}") };
            assert_eq!((float.size(), ItemType::Small(float).to_string().as_str()), (size, name));
            for &(code, expected) in values {
                let found = float.value(code);
                let same =
                    found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan();
                assert!(same, "{name} {code:#x}: {found} {expected}");
            }
        }
        assert_eq!(cases.len(), SmallFloat::ALL.len());
        assert!("float8".parse::<ItemType>().is_err());
        assert_eq!("float64".parse::<ItemType>().unwrap().to_string(), "<f8");
    }
}
