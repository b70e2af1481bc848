//! The types of memory that reads return and fill, and that writes copy from.

use std::borrow::Cow;

use super::NDArray;
use super::boxes::are_equal_except;
use super::gather::READ;
use super::places::Sink;
#[cfg(feature = "ndarray")]
use super::scatter::WRITE;
use super::view::{ItemType, NDArrayView, Selected};
use crate::dtype::SwapPlan;
use crate::item::element::{Element, bytes_of, make_items, with_bytes_mut, zeroed};
use crate::{Doing, ErrorKind, Reason, Result};

/// Items of any dtype as their stored bytes, in C order.
///
/// Reads return `RawItems` (`array.read::<RawItems>(..)?.0`), and fill `RawItems(&mut bytes)`. Writes accept
/// `RawItems(&bytes)`. The dtype is not checked, and the byte order is not converted. If the bytes that are written are
/// those of one item, each selected item is replaced by this item.
///
/// ```
/// use blosc2::{NDArray, RawItems};
///
/// let mut array = NDArray::builder().zeros::<u16>(3)?;
/// array.write(.., RawItems(&5u16.to_ne_bytes()))?;
/// array.append(0, RawItems(&6u16.to_ne_bytes()))?;
/// assert_eq!(array.read::<Vec<u16>>(..)?, [5, 5, 5, 6]);
///
/// let RawItems(bytes) = array.read(-1)?;
/// assert_eq!(bytes, 6u16.to_ne_bytes());
/// let mut two = [0; 4];
/// array.read_into(..2, RawItems(&mut two))?;
/// assert_eq!(two, *[5u16, 5].map(u16::to_ne_bytes).concat());
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawItems<B = Vec<u8>>(pub B);

/// What a read returns: selected items as a new value.
///
/// | type | items |
/// |---|---|
/// | `Vec<T>` | items of the type `T`, in C order |
/// | [`RawItems`] | the stored bytes of items of any dtype, in C order |
/// | `ndarray::Array<T, D>`, feature `ndarray` | an array of the crate `ndarray`, such as `ArrayD<f32>`; its number of dimensions must be that of the selection |
///
/// This trait is sealed.
#[diagnostic::on_unimplemented(
    message = "a read does not return `{Self}`",
    note = "a read returns `Vec<T>`, `RawItems`, or `ndarray::Array<T, D>` (feature `ndarray`)"
)]
pub trait FromItems: ReadItems {}

/// The method of [`FromItems`]. Other crates cannot name this trait.
pub trait ReadItems: Sized {
    fn read_items(selected: &Selected<'_>) -> Result<Self>;
}

impl<T: Element> FromItems for Vec<T> {}
impl<T: Element> ReadItems for Vec<T> {
    fn read_items(selected: &Selected<'_>) -> Result<Self> {
        let swap = selected.view.check_type(ItemType::of::<T>()).doing(READ)?;
        make_items(selected.allowed_len()? / size_of::<T>(), |bytes| {
            selected.gather(bytes, true, swap)
        })
        .doing(READ)
    }
}

impl FromItems for RawItems {}
impl ReadItems for RawItems {
    fn read_items(selected: &Selected<'_>) -> Result<Self> {
        let mut bytes = zeroed(selected.allowed_len()?).doing(READ)?;
        selected.gather(&mut bytes, true, None)?;
        Ok(Self(bytes))
    }
}

/// Memory of the caller to which a read writes the selected items.
///
/// | type | items |
/// |---|---|
/// | `&mut [T]`, `&mut Vec<T>`, `&mut [T; N]` | items of the type `T`, in C order; the length must be the number of items |
/// | `RawItems(&mut bytes)` | the stored bytes of items of any dtype, in C order; the length must be their size in bytes |
/// | `ndarray::ArrayViewMut<T, D>`, `&mut ndarray::Array<T, D>`, feature `ndarray` | must have the shape of the selection; any memory layout |
///
/// This trait is sealed.
#[diagnostic::on_unimplemented(
    message = "a read cannot write items to `{Self}`",
    note = "a read writes to `&mut [T]`, `RawItems(&mut bytes)`, or a mutable view of the crate `ndarray` (feature \
            `ndarray`)"
)]
pub trait ItemBuffer: FillItems {}

/// The method of [`ItemBuffer`]. Other crates cannot name this trait.
pub trait FillItems {
    fn fill_from(self, selected: &Selected<'_>) -> Result<()>;
}

/// Implementations for types that are used as slices.
macro_rules! slices {
    ($([$($generics:tt)*] $type:ty;)*) => {$(
        impl<T: Element, $($generics)*> ItemBuffer for &mut $type {}
        impl<T: Element, $($generics)*> FillItems for &mut $type {
            fn fill_from(self, selected: &Selected<'_>) -> Result<()> {
                let swap = selected.view.check_type(ItemType::of::<T>()).doing(READ)?;
                selected.check_len(size_of_val(&self[..])).doing(READ)?;
                with_bytes_mut(&mut self[..], |bytes| selected.gather(bytes, false, swap))
            }
        }

        impl<'a, T: Element, $($generics)*> ItemSource<'a> for &'a $type {}
        impl<'a, T: Element, $($generics)*> IntoItems<'a> for &'a $type {
            fn into_items(self) -> Given<'a> {
                Given::Typed { bytes: bytes_of(self), item: ItemType::of::<T>(), shape: None }
            }
        }
    )*};
}
slices! { [] [T]; [] Vec<T>; [const N: usize] [T; N]; }

// Only of a reference: a buffer that is passed by value would be filled and dropped.
impl<B: AsMut<[u8]> + ?Sized> ItemBuffer for RawItems<&mut B> {}
impl<B: AsMut<[u8]> + ?Sized> FillItems for RawItems<&mut B> {
    fn fill_from(self, selected: &Selected<'_>) -> Result<()> {
        let bytes = self.0.as_mut();
        selected.check_len(bytes.len()).doing(READ)?;
        selected.gather(bytes, false, None)
    }
}

/// Items that a write, an append or an insertion copies to an array.
///
/// | type | items |
/// |---|---|
/// | `&[T]`, `&Vec<T>`, `&[T; N]` | items of the type `T`, in C order |
/// | `T: Element`, such as `0.5f32` | a write replaces each selected item by this item; `[T; N]` without `&` is one item, a sub-array |
/// | [`RawItems(&bytes)`](RawItems) | the stored bytes of items of any dtype, in C order |
/// | `&NDArray`, [`NDArrayView`] | the items of another array or view with the same dtype |
/// | `ndarray::ArrayView<T, D>`, `&ndarray::Array<T, D>`, feature `ndarray` | must have the shape of the selection; any memory layout |
///
/// This trait is sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be written to an array",
    note = "a write accepts `&[T]`, one item, `RawItems(&bytes)`, another array, and a view of the crate `ndarray` \
            (feature `ndarray`)"
)]
pub trait ItemSource<'a>: IntoItems<'a> {}

/// The method of [`ItemSource`]. Other crates cannot name this trait.
pub trait IntoItems<'a> {
    fn into_items(self) -> Given<'a>;
}

/// Items of an [`ItemSource`].
// A `Box` would need an allocation for each write.
#[allow(clippy::large_enum_variant)]
#[derive(Debug)]
pub enum Given<'a> {
    /// Items of a Rust type in C order, and their shape, if it is known.
    Typed {
        bytes: Cow<'a, [u8]>,
        item: ItemType,
        shape: Option<Vec<u64>>,
    },
    One {
        bytes: Vec<u8>,
        item: ItemType,
    },
    Raw(Cow<'a, [u8]>),
    View(NDArrayView<'a>),
    /// Items of a Rust type with any strides.
    #[cfg(feature = "ndarray")]
    Strided(super::places::Strided<'a>, ItemType),
}

impl<'a> Given<'a> {
    pub(super) fn item_type(&self) -> Option<ItemType> {
        match self {
            Self::Typed { item, .. } | Self::One { item, .. } => Some(*item),
            Self::Raw(_) | Self::View(_) => None,
            #[cfg(feature = "ndarray")]
            Self::Strided(_, item) => Some(*item),
        }
    }

    /// Returns the shape of the items of an array of the crate `ndarray`.
    pub(super) fn shape(&self) -> Option<&[u64]> {
        match self {
            Self::Typed { shape, .. } => shape.as_deref(),
            #[cfg(feature = "ndarray")]
            Self::Strided(strided, _) => Some(strided.shape()),
            _ => None,
        }
    }

    /// Returns the shape of the items. Items without a shape have one axis; an item of `typesize` bytes has none.
    pub(super) fn shape_of_all(&self, typesize: usize) -> Vec<u64> {
        match self {
            Self::One { .. } => Vec::new(),
            Self::View(view) => view.shape(),
            Self::Typed { bytes, shape: None, .. } | Self::Raw(bytes) => {
                vec![bytes.len().checked_div(typesize).unwrap_or(0) as u64]
            }
            other => other.shape().unwrap_or_default().to_vec(),
        }
    }

    /// Checks that items with a shape have the shape of the items of `target`, except on `axis`; and that the items of a
    /// view have the dtype of `target`.
    pub(super) fn check_shape(
        &self,
        (target, shape): (&NDArrayView<'_>, &[u64]),
        axis: Option<usize>,
    ) -> Result<(), Reason> {
        if let Self::View(view) = self {
            let joined = view.check_joins((target, shape), axis);
            return joined.map_err(|error| target.array.schunk.at(error));
        }
        let Some(found) = self.shape() else { return Ok(()) };
        if are_equal_except(axis, shape, found) {
            return Ok(());
        }
        let detail = format!("expected items of the shape {shape:?}, got the shape {found:?}");
        Err(target.error(ErrorKind::InvalidArgument, detail))
    }

    /// Checks that the items have the type of the items of `target`, and returns their bytes as `target` stores them.
    pub(super) fn into_stored(self, target: &NDArrayView<'_>) -> Result<Cow<'a, [u8]>, Reason> {
        let swap = match self.item_type() {
            Some(item) => target.check_type(item)?,
            None => None,
        };
        let mut bytes = self.into_bytes()?;
        if let Some(swap) = swap {
            swap.apply(bytes.to_mut());
        }
        Ok(bytes)
    }

    /// Returns the bytes of the items, in C order. The items of a view are read.
    pub(super) fn into_bytes(self) -> Result<Cow<'a, [u8]>> {
        Ok(match self {
            Self::Typed { bytes, .. } | Self::Raw(bytes) => bytes,
            Self::One { bytes, .. } => Cow::Owned(bytes),
            Self::View(view) => {
                Cow::Owned(RawItems::read_items(&Selected { view, points: None })?.0)
            }
            #[cfg(feature = "ndarray")]
            Self::Strided(strided, _) => Cow::Owned(strided.to_bytes().doing(WRITE)?),
        })
    }
}

impl<'a, T: Element> ItemSource<'a> for T {}
impl<'a, T: Element> IntoItems<'a> for T {
    fn into_items(self) -> Given<'a> {
        let bytes = bytes_of(std::slice::from_ref(&self)).into_owned();
        Given::One { bytes, item: ItemType::of::<T>() }
    }
}

impl<'a, B: Into<Cow<'a, [u8]>>> ItemSource<'a> for RawItems<B> {}
impl<'a, B: Into<Cow<'a, [u8]>>> IntoItems<'a> for RawItems<B> {
    fn into_items(self) -> Given<'a> {
        Given::Raw(self.0.into())
    }
}

impl<'a> ItemSource<'a> for NDArrayView<'a> {}
impl<'a> IntoItems<'a> for NDArrayView<'a> {
    fn into_items(self) -> Given<'a> {
        Given::View(self)
    }
}

impl<'a> ItemSource<'a> for &'a NDArray {}
impl<'a> IntoItems<'a> for &'a NDArray {
    fn into_items(self) -> Given<'a> {
        Given::View(self.view())
    }
}

impl Selected<'_> {
    /// Reads the items into a buffer of exactly their length, in C order. `zeros` states that the buffer is zeroed.
    pub(super) fn gather(
        &self,
        bytes: &mut [u8],
        zeros: bool,
        swap: Option<SwapPlan>,
    ) -> Result<()> {
        let part = self.view.part();
        if part.len > 0 {
            self.view.array.gather(self.items(), |plan| Sink::new(plan, part, bytes, zeros))?;
        }
        if let Some(swap) = swap {
            swap.apply(bytes);
        }
        Ok(())
    }
}
