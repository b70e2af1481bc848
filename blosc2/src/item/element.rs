//! The trait of item types, and conversions between items and bytes.

use std::any::TypeId;
use std::borrow::Cow;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Range;

use blosc2_format::dtype::{Kind, MAX_NESTING, MAX_SIZE};

use crate::{Dtype, ErrorKind, Reason, Result};

#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an item of chunks and arrays",
    note = "items can be numbers, bools, arrays of these, and structs with `#[derive(Element)]`; for text use \
            `elements::FixedStr`, for `usize` use `u64`"
)]
/// A Rust type that can be the item type of an array: its values are stored as plain bytes, and a NumPy dtype describes
/// them.
///
/// | type | dtype |
/// |---|---|
/// | `u8` to `u64`, `i8` to `i64` | `\|u1` to `<u8`, `\|i1` to `<i8` |
/// | `f32`, `f64` | `<f4`, `<f8` |
/// | `bool` | `\|b1`; bytes other than 0 and 1 read as `true`, as in NumPy |
/// | `[T; N]`, also nested | `('<f4', (2, 3))` for `[[f32; 3]; 2]`; `N` is at least 1 |
/// | `half::f16`, feature `half` | `<f2` |
/// | `num_complex::Complex`, feature `num-complex` | `<c8`, `<c16` |
/// | [`FixedBytes`](crate::elements::FixedBytes), [`FixedStr`](crate::elements::FixedStr), [`Void`](crate::elements::Void) | `\|S10`, `<U10`, `\|V10` for 10 bytes or characters |
/// | [`DateTime64`](crate::elements::DateTime64), [`TimeDelta64`](crate::elements::TimeDelta64) | `<M8[ns]`, `<m8[ns]` for nanoseconds |
/// | structs, feature `derive`: `#[derive(Element)]` | a structure, such as `[('id', '<u2'), ('x', '<f4')]` |
///
/// The dtypes are in native byte order; the table shows the dtypes of a little-endian machine. `Element` is not
/// implemented for:
/// - `u128` and `i128`: NumPy does not have these types;
/// - `usize` and `isize`: a file must not depend on the machine that writes it;
/// - `char`: not every 4-byte number in a file is a valid `char`.
///
/// Padding in a struct, between fields or at the end, is written as zeros.
///
/// ```
/// use blosc2::{Element, NDArray};
///
/// fn largest<T: Element + PartialOrd>(array: &NDArray) -> blosc2::Result<Option<T>> {
///     Ok(array.read::<Vec<T>>(..)?.into_iter().reduce(|a, b| if b > a { b } else { a }))
/// }
///
/// let array = NDArray::from_slice(&[1.5f32, 7.5, -2.0], 3)?;
/// assert_eq!(largest::<f32>(&array)?, Some(7.5));
/// # Ok::<(), blosc2::Error>(())
/// ```
///
/// # Safety
/// - [`LAYOUT`](Element::LAYOUT) must have the size of the type.
/// - Where `LAYOUT` describes bytes, every byte value must be valid. Where `LAYOUT` describes a bool, 0 and 1 must be
///   valid.
/// - [`dtype`](Element::dtype) must describe the same layout: the same size and type and, for a struct, the same field
///   types and offsets.
/// - All bytes must be initialized, except the bytes that `LAYOUT` describes as padding.
pub unsafe trait Element: Copy + Send + Sync + 'static {
    /// The layout of a value: which bytes can have any value, which are bools, and which are padding.
    const LAYOUT: ElementLayout;

    /// Returns the dtype of the type, in native byte order.
    ///
    /// ```
    /// use blosc2::Element;
    ///
    /// if cfg!(target_endian = "little") {
    ///     assert_eq!(f32::dtype().to_string(), "<f4");
    ///     assert_eq!(<[[u16; 3]; 2]>::dtype().to_string(), "('<u2', (2, 3))");
    /// }
    /// assert_eq!(bool::dtype().to_string(), "|b1");
    /// ```
    fn dtype() -> Dtype;
}

/// The layout of an [`Element`]: which of its bytes can have any value, which are bools, and which are padding.
///
/// A `repr(transparent)` type has the layout of the type that it wraps.
///
/// ```
/// use std::mem::{offset_of, size_of};
///
/// use blosc2::dtype::Field;
/// use blosc2::elements::{ElementField, ElementLayout};
/// use blosc2::{Dtype, Element};
///
/// #[derive(Clone, Copy)]
/// #[repr(C)]
/// struct Reading {
///     sensor: u16,
///     celsius: f32,
/// }
///
/// // SAFETY: the layout and the dtype have the fields of the type, at their offsets; any bytes are valid numbers.
/// unsafe impl Element for Reading {
///     const LAYOUT: ElementLayout = ElementLayout::structure(
///         size_of::<Self>(),
///         const {
///             &[
///                 ElementField::new::<u16>(offset_of!(Self, sensor)),
///                 ElementField::new::<f32>(offset_of!(Self, celsius)),
///             ]
///         },
///     );
///
///     fn dtype() -> Dtype {
///         let sensor = Field::new("sensor", offset_of!(Self, sensor), u16::dtype());
///         let celsius = Field::new("celsius", offset_of!(Self, celsius), f32::dtype());
///         Dtype::structure(size_of::<Self>(), [sensor, celsius]).expect("a valid structure")
///     }
/// }
///
/// assert!(Reading::LAYOUT.has_padding());
/// assert_eq!(Reading::dtype().size(), 8);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct ElementLayout {
    size: usize,
    form: Form,
    has_padding: bool,
    has_bools: bool,
    nesting: usize,
}

#[derive(Debug, Clone, Copy)]
enum Form {
    Bytes,
    Bool,
    Array { item: &'static ElementLayout, count: usize },
    Struct(&'static [ElementField]),
}

/// A field in the [`ElementLayout`] of a struct.
///
/// ```
/// use blosc2::elements::{ElementField, ElementLayout};
///
/// const FIELDS: &[ElementField] = &[ElementField::new::<u8>(0), ElementField::new::<u32>(4)];
/// let layout = ElementLayout::structure(8, FIELDS);
/// assert!(layout.has_padding() && !layout.is_plain());
/// ```
#[derive(Debug, Clone, Copy)]
pub struct ElementField {
    offset: usize,
    layout: ElementLayout,
}

/// The kind of a range of bytes of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Bytes,
    Bools,
    Padding,
}

impl ElementLayout {
    /// The layout of a bool: a byte that is 0 or 1.
    pub const BOOL: Self = Self { form: Form::Bool, has_bools: true, ..Self::bytes(1) };

    /// Returns the layout of `size` bytes, where each byte can have any value.
    ///
    /// # Panics
    /// Panics if `size` is 0 or greater than 2^31 - 1. In a constant this is a compile error.
    pub const fn bytes(size: usize) -> Self {
        assert!(size > 0, "an element has at least one byte");
        assert!(size <= MAX_SIZE, "an element has at most 2^31 - 1 bytes");
        Self { size, form: Form::Bytes, has_padding: false, has_bools: false, nesting: 0 }
    }

    /// Returns the layout of `count` consecutive items of type `T`.
    ///
    /// # Panics
    /// Panics if the size is 0 or greater than 2^31 - 1 bytes, or if arrays and structs are nested more than 32 levels
    /// deep. In a constant this is a compile error.
    pub const fn array<T: Element>(count: usize) -> Self {
        let item = const { &T::LAYOUT };
        Self::of_items(item, count).checked()
    }

    const fn of_items(item: &'static Self, count: usize) -> Self {
        let size = item.size.saturating_mul(count);
        let (form, nesting) = (Form::Array { item, count }, item.nesting + 1);
        Self { size, form, nesting, ..*item }
    }

    /// Returns the layout of a struct of `size` bytes. Bytes outside the fields are padding.
    ///
    /// # Panics
    /// In a constant, these panics are compile errors. Panics if:
    /// - the fields are not in order of their offsets, overlap, or extend beyond `size`;
    /// - `size` is 0 or greater than 2^31 - 1;
    /// - arrays and structs are nested more than 32 levels deep.
    pub const fn structure(size: usize, fields: &'static [ElementField]) -> Self {
        let (mut end, mut nesting, mut index) = (0, 0, 0);
        let (mut has_padding, mut has_bools) = (false, false);
        while index < fields.len() {
            let ElementField { offset, layout } = fields[index];
            assert!(offset >= end, "fields are in order of their offsets and do not overlap");
            has_padding |= offset > end || layout.has_padding;
            has_bools |= layout.has_bools;
            nesting = if layout.nesting > nesting { layout.nesting } else { nesting };
            end = offset + layout.size;
            index += 1;
        }
        assert!(end <= size, "fields are inside the structure");
        has_padding |= end < size;
        let (form, nesting) = (Form::Struct(fields), nesting + 1);
        Self { size, form, has_padding, has_bools, nesting }.checked()
    }

    const fn checked(self) -> Self {
        assert!(self.nesting <= MAX_NESTING, "an element has at most 32 levels of nesting");
        Self { size: Self::bytes(self.size).size, ..self }
    }

    /// Returns whether the layout has no padding and no bools: all bytes can have any value.
    pub const fn is_plain(&self) -> bool {
        !self.has_padding && !self.has_bools
    }

    /// Returns whether the layout has padding.
    pub const fn has_padding(&self) -> bool {
        self.has_padding
    }

    /// Visits the parts of an item that starts at `at`, in order.
    fn visit(&self, at: usize, work: &mut impl FnMut(Range<usize>, Part)) {
        let end = at + self.size;
        match self.form {
            _ if self.is_plain() => work(at..end, Part::Bytes),
            Form::Bytes => work(at..end, Part::Bytes),
            Form::Bool | Form::Array { item: Self { form: Form::Bool, .. }, .. } => {
                work(at..end, Part::Bools);
            }
            Form::Array { item, count } => {
                (0..count).for_each(|index| item.visit(at + index * item.size, work));
            }
            Form::Struct(fields) => {
                let mut done = at;
                for field in fields {
                    let start = at + field.offset;
                    if done < start {
                        work(done..start, Part::Padding);
                    }
                    field.layout.visit(start, work);
                    done = start + field.layout.size;
                }
                if done < end {
                    work(done..end, Part::Padding);
                }
            }
        }
    }
}

impl ElementField {
    /// Returns a field of type `T` at `offset` bytes from the start of the struct.
    pub const fn new<T: Element>(offset: usize) -> Self {
        Self { offset, layout: T::LAYOUT }
    }
}

macro_rules! numbers {
    ($($type:ty, $kind:ident;)*) => {$(
        // SAFETY: numbers have no padding and no invalid bit pattern, and the dtype has the same size and kind in
        // native byte order.
        unsafe impl Element for $type {
            const LAYOUT: ElementLayout = ElementLayout::bytes(size_of::<Self>());

            fn dtype() -> Dtype {
                scalar(Kind::$kind, size_of::<Self>())
            }
        }
    )*};
}

numbers! {
    u8, UInt;
    i8, Int;
    u16, UInt;
    i16, Int;
    u32, UInt;
    i32, Int;
    u64, UInt;
    i64, Int;
    f32, Float;
    f64, Float;
}

#[cfg(feature = "half")]
numbers! {
    half::f16, Float;
}

// Complex numbers are two numbers, `repr(C)`.
#[cfg(feature = "num-complex")]
numbers! {
    num_complex::Complex<f32>, Complex;
    num_complex::Complex<f64>, Complex;
}

// SAFETY: a bool is a byte that is 0 or 1, and so is NumPy's.
unsafe impl Element for bool {
    const LAYOUT: ElementLayout = ElementLayout::BOOL;

    fn dtype() -> Dtype {
        scalar(Kind::Bool, 1)
    }
}

// SAFETY: an array consists of consecutive items, also in NumPy.
unsafe impl<T: Element, const N: usize> Element for [T; N] {
    const LAYOUT: ElementLayout = ElementLayout::array::<T>(N);

    /// Returns the dtype, a sub-array. Nested arrays are one sub-array with several axes, as in NumPy.
    fn dtype() -> Dtype {
        let item = T::dtype();
        let (item, inner) = item.subarray().unwrap_or((&item, &[]));
        let shape = [&[N as u64], inner].concat();
        // `ElementLayout` has checked the size and the number of levels.
        Dtype::array(item.clone(), &shape).expect("an array dtype of NumPy")
    }
}

fn scalar(kind: Kind, size: usize) -> Dtype {
    Dtype::scalar(kind, size).expect("a scalar dtype of NumPy")
}

/// Returns whether `T` is `u8`. Items of this type can represent the bytes of any items.
pub(crate) fn is_byte<T: Element>() -> bool {
    TypeId::of::<T>() == TypeId::of::<u8>()
}

/// Returns the layout of `count` items. Does not compile if a layout does not have the size of its type.
fn layout_of<T: Element>(count: usize) -> ElementLayout {
    const {
        assert!(T::LAYOUT.size == size_of::<T>(), "the layout does not have the size of the type");
    }
    ElementLayout::of_items(const { &T::LAYOUT }, count)
}

/// Returns the bytes of a slice of items without padding.
pub(crate) fn as_bytes<T: Element>(items: &[T]) -> &[u8] {
    const { assert!(T::LAYOUT.is_plain()) };
    // SAFETY: the items have no padding, so all their bytes are initialized; the length is in bytes.
    unsafe { std::slice::from_raw_parts(items.as_ptr().cast(), size_of_val(items)) }
}

/// Returns the bytes of a slice of plain items, for writing.
pub(crate) fn as_bytes_mut<T: Element>(items: &mut [T]) -> &mut [u8] {
    const { assert!(T::LAYOUT.is_plain()) };
    let len = size_of_val(items);
    // SAFETY: the items have no padding, and any bytes are a valid value; the length is in bytes.
    unsafe { std::slice::from_raw_parts_mut(items.as_mut_ptr().cast(), len) }
}

/// Returns the bytes of items, in native byte order. If the items have padding, the result is a copy with zeroed
/// padding.
///
/// ```
/// use blosc2::elements::bytes_of;
///
/// assert_eq!(*bytes_of(&[1u8, 2]), [1, 2]);
/// assert_eq!(*bytes_of(&[0x0102u16]), 0x0102u16.to_ne_bytes());
/// ```
pub fn bytes_of<T: Element>(items: &[T]) -> Cow<'_, [u8]> {
    let layout = layout_of::<T>(items.len());
    let (start, len) = (items.as_ptr(), size_of_val(items));
    if !layout.has_padding {
        // SAFETY: the items have no padding, so all their bytes are initialized; the length is in bytes.
        return Cow::Borrowed(unsafe { std::slice::from_raw_parts(start.cast(), len) });
    }
    let start = start.cast::<u8>();
    let mut copy = vec![0; len];
    layout.visit(0, &mut |range, part| {
        if part != Part::Padding {
            // SAFETY: the range is inside the items, because `copy` has the length of the items. The bytes are not
            // padding, so they are initialized.
            let part = unsafe { std::slice::from_raw_parts(start.add(range.start), range.len()) };
            copy[range].copy_from_slice(part);
        }
    });
    Cow::Owned(copy)
}

/// Passes the bytes of items to `work`, which may write any bytes. Padding is zeroed before that. Afterwards, the items
/// are made valid, even if `work` panics.
pub(crate) fn with_bytes_mut<T: Element, R>(
    items: &mut [T],
    work: impl FnOnce(&mut [u8]) -> R,
) -> R {
    let layout = layout_of::<T>(items.len());
    let (start, len) = (items.as_mut_ptr(), size_of_val(items));
    if layout.has_padding {
        // SAFETY: this is the memory of the items. The code below writes only the padding.
        let memory: &mut [MaybeUninit<u8>] =
            unsafe { std::slice::from_raw_parts_mut(start.cast(), len) };
        layout.visit(0, &mut |range, part| {
            if part == Part::Padding {
                memory[range].fill(MaybeUninit::new(0));
            }
        });
    }
    // SAFETY: all bytes are initialized; the loop above has initialized the padding. The items are not accessed until
    // `Written` is dropped. The drop makes them valid, even if `work` panics.
    let bytes = unsafe { std::slice::from_raw_parts_mut(start.cast(), len) };
    let written = Written::<T>(bytes, PhantomData);
    work(&mut *written.0)
}

/// The bytes of items. Dropping this value makes the items valid.
struct Written<'a, T: Element>(&'a mut [u8], PhantomData<T>);

impl<T: Element> Drop for Written<'_, T> {
    fn drop(&mut self) {
        make_valid::<T>(self.0);
    }
}

/// Creates a vector of items whose bytes `fill` writes. `fill` receives zeroed bytes.
pub(crate) fn make_items<T: Element>(
    len: usize,
    fill: impl FnOnce(&mut [u8]) -> Result<()>,
) -> Result<Vec<T>, Reason> {
    let mut items = zeroed::<T>(len)?;
    // SAFETY: `zeroed` has initialized all bytes, including padding. No items have been written since then. The items
    // are made valid before they are returned. If `fill` fails, the memory is freed, and no item is dropped, because
    // items are `Copy`.
    let bytes = unsafe {
        std::slice::from_raw_parts_mut(items.as_mut_ptr().cast::<u8>(), size_of::<T>() * len)
    };
    fill(bytes)?;
    make_valid::<T>(bytes);
    Ok(items)
}

/// Makes bytes valid values of items: a bool that is not 0 becomes 1.
pub(crate) fn make_valid<T: Element>(bytes: &mut [u8]) {
    let layout = layout_of::<T>(bytes.len() / size_of::<T>());
    if layout.has_bools {
        layout.visit(0, &mut |range, part| {
            if part == Part::Bools {
                bytes[range].iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
            }
        });
    }
}

/// Returns whether bytes are valid values of items.
pub(crate) fn are_valid<T: Element>(bytes: &[u8]) -> bool {
    let layout = layout_of::<T>(bytes.len() / size_of::<T>());
    let mut valid = true;
    if layout.has_bools {
        layout.visit(0, &mut |range, part| {
            valid &= part != Part::Bools || bytes[range].iter().all(|&byte| byte <= 1);
        });
    }
    valid
}

/// Returns a vector of zeroed items. The allocator provides zeroed memory, so that this function does not write to it.
///
/// A failed allocation is an error: a size that a file specifies must not abort the process.
pub(crate) fn zeroed<T: Element>(len: usize) -> Result<Vec<T>, Reason> {
    if len == 0 {
        return Ok(Vec::new());
    }
    let size = len.saturating_mul(size_of::<T>());
    let out_of_memory = || Reason::new(ErrorKind::OutOfMemory, format_args!("{size} bytes"));
    let layout = std::alloc::Layout::array::<T>(len).map_err(|_| out_of_memory())?;
    // SAFETY: the size of the layout is greater than 0, because the size of an `Element` is.
    let start = unsafe { std::alloc::alloc_zeroed(layout) };
    if start.is_null() {
        return Err(out_of_memory());
    }
    prefer_huge_pages(start.cast(), size);
    // SAFETY: the memory comes from the global allocator with the layout of `len` items, and zeros are a valid value of
    // an `Element`.
    Ok(unsafe { Vec::from_raw_parts(start.cast(), len, len) })
}

/// Advises the system to use huge pages for new memory, if it is large.
///
/// The system maps a page when the page is first written. With pages of 4 KiB, this mapping takes up to half of the
/// time of a read. If the allocator reuses freed memory, the advice stays in effect.
pub(crate) fn prefer_huge_pages(start: *mut u8, len: usize) {
    #[cfg(target_os = "linux")]
    {
        /// For less memory, the system call can take longer than it saves.
        const LARGE: usize = 4 << 20;
        /// The advice is for whole pages.
        const PAGE: usize = 64 << 10;
        let skipped = start.align_offset(PAGE);
        if len >= LARGE {
            // SAFETY: for any memory, the advice does not change contents or access rights (Linux: madvise(2)). The
            // system may ignore the advice, so a failure has no effect.
            unsafe {
                let start = start.wrapping_add(skipped);
                libc::madvise(start.cast(), len - skipped, libc::MADV_HUGEPAGE);
            }
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (start, len);
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    /// A structure with padding inside and at the end, and with nested bools.
    #[derive(Debug, Clone, Copy, PartialEq)]
    #[repr(C)]
    struct Padded {
        first: u8,
        number: u16,
        inner: [Inner; 2],
    }

    #[derive(Debug, Clone, Copy, PartialEq)]
    #[repr(C, align(4))]
    struct Inner {
        number: u16,
        is: [bool; 1],
    }

    // SAFETY: the fields are those of the type, and the rest is padding.
    unsafe impl Element for Padded {
        const LAYOUT: ElementLayout = ElementLayout::structure(
            size_of::<Self>(),
            const {
                &[
                    ElementField::new::<u8>(std::mem::offset_of!(Self, first)),
                    ElementField::new::<u16>(std::mem::offset_of!(Self, number)),
                    ElementField::new::<[Inner; 2]>(std::mem::offset_of!(Self, inner)),
                ]
            },
        );

        fn dtype() -> Dtype {
            u8::dtype()
        }
    }

    // SAFETY: see above.
    unsafe impl Element for Inner {
        const LAYOUT: ElementLayout = ElementLayout::structure(
            size_of::<Self>(),
            const {
                &[
                    ElementField::new::<u16>(std::mem::offset_of!(Self, number)),
                    ElementField::new::<[bool; 1]>(std::mem::offset_of!(Self, is)),
                ]
            },
        );

        fn dtype() -> Dtype {
            u8::dtype()
        }
    }

    /// The offsets of padding in an item, and of bools.
    const PADDING: [usize; 3] = [1, 7, 11];
    const BOOLS: [usize; 2] = [6, 10];

    const ITEM: Padded = Padded {
        first: 1,
        number: u16::from_ne_bytes([2, 3]),
        inner: [
            Inner { number: u16::from_ne_bytes([4, 5]), is: [true] },
            Inner { number: u16::from_ne_bytes([6, 7]), is: [false] },
        ],
    };
    const BYTES: [u8; 12] = [1, 0, 2, 3, 4, 5, 1, 0, 6, 7, 0, 0];

    /// Items in memory that was filled with other bytes.
    fn dirty(count: usize) -> Vec<Padded> {
        let mut items: Vec<Padded> = Vec::with_capacity(count);
        let start = items.as_mut_ptr();
        for index in 0..count {
            // SAFETY: within the capacity; fields are written separately, so that the padding stays as it is.
            unsafe {
                let item = start.add(index);
                item.write_bytes(0xaa, 1);
                (*item).first = ITEM.first;
                (*item).number = ITEM.number;
                for (inner, from) in (*item).inner.iter_mut().zip(ITEM.inner) {
                    inner.number = from.number;
                    inner.is = from.is;
                }
            }
        }
        // SAFETY: all fields are written.
        unsafe { items.set_len(count) };
        items
    }

    #[test]
    fn padding_is_copied_as_zeros() {
        let items = dirty(3);
        let bytes = bytes_of(&items);
        assert!(matches!(bytes, Cow::Owned(_)));
        assert_eq!(*bytes, BYTES.repeat(3));
        // Bytes that Rust leaves uninitialized are not read.
        let bytes = bytes_of(std::slice::from_ref(&ITEM));
        assert_eq!(*bytes, BYTES);
    }

    #[test]
    fn what_has_no_padding_is_borrowed() {
        assert!(matches!(bytes_of(&[1u16, 2]), Cow::Borrowed([_, _, _, _])));
        assert!(matches!(bytes_of(&[[true, false]]), Cow::Borrowed([1, 0])));
        assert!(matches!(bytes_of::<Padded>(&[]), Cow::Owned(empty) if empty.is_empty()));
        assert!(ElementLayout::array::<u32>(3).is_plain());
        assert!(!bool::LAYOUT.is_plain() && !bool::LAYOUT.has_padding());
        assert!(Padded::LAYOUT.has_padding());
    }

    #[test]
    fn any_bytes_can_be_written_to_items() {
        let mut items = dirty(2);
        with_bytes_mut(&mut items, |bytes| {
            for (at, byte) in bytes.iter_mut().enumerate() {
                assert_eq!(*byte, BYTES[at % 12], "{at}");
                *byte = 0xaa;
            }
        });
        for item in items {
            assert_eq!((item.first, item.number), (0xaa, 0xaaaa));
            assert_eq!(item.inner, [Inner { number: 0xaaaa, is: [true] }; 2]);
        }
    }

    #[test]
    fn items_are_valid_after_a_panic() {
        let mut items = [false, true, true];
        let panics = catch_unwind(AssertUnwindSafe(|| {
            with_bytes_mut(&mut items, |bytes| {
                bytes.copy_from_slice(&[2, 0, 0xff]);
                panic!("after writing");
            })
        }));
        assert!(panics.is_err());
        assert_eq!(items, [true, false, true]);
    }

    #[test]
    fn items_are_made_of_any_bytes() {
        let items = make_items::<Padded>(2, |bytes| {
            assert!(bytes.iter().all(|&byte| byte == 0) && bytes.len() == 24);
            bytes.fill(0x55);
            Ok(())
        });
        let items = items.unwrap();
        assert_eq!(items[1].inner[1], Inner { number: 0x5555, is: [true] });
        assert_eq!(make_items::<[bool; 2]>(2, |_| Ok(())).unwrap(), [[false; 2]; 2]);
        assert!(make_items::<bool>(0, |_| Ok(())).unwrap().is_empty());
        let failed = make_items::<bool>(2, |bytes| {
            bytes.fill(9);
            Err(crate::Error::new(ErrorKind::Io, "test", "nothing"))
        });
        assert_eq!(failed.unwrap_err().kind(), ErrorKind::Io);
        let huge = make_items::<u64>(usize::MAX / 4, |_| Ok(()));
        assert_eq!(huge.unwrap_err().kind(), ErrorKind::OutOfMemory);
    }

    #[test]
    fn only_bools_can_be_invalid() {
        let mut bytes = vec![0xaa; 24];
        make_valid::<Padded>(&mut bytes);
        for (at, byte) in bytes.iter().enumerate() {
            let expected = if BOOLS.contains(&(at % 12)) { 1 } else { 0xaa };
            assert_eq!(*byte, expected, "{at}");
        }
        assert!(are_valid::<Padded>(&bytes));
        for at in 0..12 {
            let mut bytes = [0; 12];
            bytes[at] = 2;
            assert_eq!(are_valid::<Padded>(&bytes), !BOOLS.contains(&at), "{at}");
        }
        assert!(are_valid::<u8>(&[0xaa]));
        let mut padding = Vec::new();
        Padded::LAYOUT.visit(0, &mut |range, part| {
            padding.extend(range.filter(|_| part == Part::Padding));
        });
        assert_eq!(padding, PADDING);
    }
}
