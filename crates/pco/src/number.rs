//! The formats of numbers, and numbers from and to bytes.

use blosc2::Dtype;
use blosc2::dtype::{ByteOrder, Kind};
use pco::data_types::{Number, NumberType};

/// The bit of the codec's parameter for big-endian numbers. The other bits are pcodec's code of the type.
const BIG_ENDIAN: u8 = 0x80;

/// A number type and its byte order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NumberFormat {
    pub(crate) kind: NumberType,
    pub(crate) is_big_endian: bool,
}

impl NumberFormat {
    /// The format of the items of a dtype; `None` if they are no numbers that pcodec compresses.
    pub(crate) fn of(dtype: &Dtype) -> Option<Self> {
        let kind = match (dtype.kind()?, dtype.size()) {
            (Kind::UInt, 1) => NumberType::U8,
            (Kind::UInt, 2) => NumberType::U16,
            (Kind::UInt, 4) => NumberType::U32,
            (Kind::UInt, 8) => NumberType::U64,
            (Kind::Int, 1) => NumberType::I8,
            (Kind::Int, 2) => NumberType::I16,
            (Kind::Int, 4) => NumberType::I32,
            (Kind::Int | Kind::DateTime | Kind::TimeDelta, 8) => NumberType::I64,
            (Kind::Float, 2) => NumberType::F16,
            (Kind::Float, 4) => NumberType::F32,
            (Kind::Float, 8) => NumberType::F64,
            _ => return None,
        };
        Some(Self { kind, is_big_endian: dtype.byte_order() == Some(ByteOrder::Big) })
    }

    pub(crate) fn from_meta(meta: u8) -> Result<Self, String> {
        let kind = NumberType::from_descriminant(meta & !BIG_ENDIAN);
        let kind = kind.ok_or_else(|| format!("pcodec has no number type with the code {meta}"))?;
        Ok(Self { kind, is_big_endian: meta & BIG_ENDIAN != 0 })
    }

    pub(crate) fn meta(self) -> u8 {
        self.kind as u8 | if self.is_big_endian { BIG_ENDIAN } else { 0 }
    }

    /// The size of a number in bytes.
    pub(crate) fn size(self) -> usize {
        pco::match_number_enum!(self.kind, NumberType<T> => { size_of::<T>() })
    }
}

/// A number as bytes.
pub(crate) trait Bytes: Number + Default {
    /// The numbers in these bytes, whose length is a multiple of the size of a number.
    fn from_bytes(bytes: &[u8], is_big_endian: bool) -> Vec<Self>;

    /// Writes numbers to as many bytes as they have.
    fn to_bytes(numbers: &[Self], bytes: &mut [u8], is_big_endian: bool);
}

macro_rules! bytes {
    ($($number:ty)*) => {$(
        impl Bytes for $number {
            fn from_bytes(bytes: &[u8], is_big_endian: bool) -> Vec<Self> {
                let (items, _) = bytes.as_chunks();
                match is_big_endian {
                    true => items.iter().map(|&item| Self::from_be_bytes(item)).collect(),
                    false => items.iter().map(|&item| Self::from_le_bytes(item)).collect(),
                }
            }

            fn to_bytes(numbers: &[Self], bytes: &mut [u8], is_big_endian: bool) {
                let (items, _) = bytes.as_chunks_mut();
                let items = items.iter_mut().zip(numbers);
                match is_big_endian {
                    true => items.for_each(|(item, number)| *item = number.to_be_bytes()),
                    false => items.for_each(|(item, number)| *item = number.to_le_bytes()),
                }
            }
        }
    )*};
}

bytes!(u8 u16 u32 u64 i8 i16 i32 i64 half::f16 f32 f64);
