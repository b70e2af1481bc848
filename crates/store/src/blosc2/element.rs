//! Types of items.

use std::borrow::Cow;

use super::Dtype;
use super::dtype::Kind;

/// A type of fixed-size items: numbers and booleans.
pub trait Element: Copy + Send + Sync + 'static {
    /// Returns the dtype, in the native byte order.
    fn dtype() -> Dtype;

    /// Converts the bytes of an item, in the native byte order. Returns `None` if their number is wrong.
    fn from_bytes(bytes: &[u8]) -> Option<Self>;

    /// Appends the bytes of the item, in the native byte order.
    fn push_bytes(self, bytes: &mut Vec<u8>);
}

macro_rules! elements {
    ($($type:ty, $kind:ident;)*) => {
        $(impl Element for $type {
            fn dtype() -> Dtype {
                Dtype::scalar(Kind::$kind, size_of::<Self>()).expect("a size that the kind has")
            }

            fn from_bytes(bytes: &[u8]) -> Option<Self> {
                Some(Self::from_ne_bytes(bytes.try_into().ok()?))
            }

            fn push_bytes(self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_ne_bytes());
            }
        })*
    };
}

elements! {
    u8, UInt;
    u16, UInt;
    u32, UInt;
    u64, UInt;
    i8, Int;
    i16, Int;
    i32, Int;
    i64, Int;
    f32, Float;
    f64, Float;
}

impl Element for bool {
    fn dtype() -> Dtype {
        Dtype::scalar(Kind::Bool, 1).expect("a bool has one byte")
    }

    /// A byte that is not 0 is `true`.
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let [byte] = *bytes else { return None };
        Some(byte != 0)
    }

    fn push_bytes(self, bytes: &mut Vec<u8>) {
        bytes.push(self.into());
    }
}

/// Returns the bytes of items, in the native byte order.
pub fn bytes_of<T: Element>(items: &[T]) -> Cow<'_, [u8]> {
    let mut bytes = Vec::with_capacity(size_of_val(items));
    items.iter().for_each(|item| item.push_bytes(&mut bytes));
    bytes.into()
}

/// Converts bytes to items, in the native byte order.
pub(super) fn items_of<T: Element>(bytes: &[u8]) -> Vec<T> {
    bytes.chunks_exact(size_of::<T>()).filter_map(T::from_bytes).collect()
}
