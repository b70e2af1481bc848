//! The derive macro `Element`, of the crate `blosc2-derive`.

/// Derives `Element` for a struct, so that the struct can be the item type of an array. The dtype is a structure with
/// the names, types and offsets of the fields.
///
/// The struct must be `Copy` and `repr(C)`, optionally with `packed` or `align`. Each field must be an `Element`. A
/// struct with one field can be `repr(transparent)` instead; it has the dtype of the field. Padding is written as
/// zeros.
///
/// The fields of a tuple struct are named `f0`, `f1` and so on, as in NumPy. Attributes of a field:
/// - `#[element(name = "...")]` sets the name of the field in the dtype;
/// - `#[element(dtype = "...")]` sets the dtype of the field, in NumPy's notation. For example, `#[element(dtype =
///   "|S8")]` stores a `[u8; 8]` as a byte string. `Element::dtype` panics if the notation is not valid, or if the size
///   of the dtype differs from the size of the field.
///
/// The attribute `#[element(crate = "...")]` of the struct sets the path of this library in the generated code. It is
/// necessary if the library has another name than `blosc2`, for example `b2` after `b2 = { package = "cblosc2", ... }`
/// in `Cargo.toml`, or if another crate exports it:
/// ```
/// mod exported {
///     pub extern crate blosc2 as b2;
/// }
///
/// #[derive(Clone, Copy, exported::b2::Element)]
/// #[element(crate = "exported::b2")]
/// #[repr(C)]
/// struct Point {
///     x: f64,
///     y: f64,
/// }
/// ```
///
/// ```
/// use blosc2::{CParams, Codec, Element};
///
/// #[derive(Debug, Clone, Copy, PartialEq, Element)]
/// #[repr(C)]
/// struct Measurement {
///     sensor: u16,
///     #[element(name = "°C")]
///     celsius: [f32; 2],
///     valid: bool,
/// }
///
/// if cfg!(target_endian = "little") {
///     let dtype = "{'names': ['sensor', '°C', 'valid'], 'formats': ['<u2', ('<f4', (2,)), '?'], \
///                  'offsets': [0, 4, 12], 'itemsize': 16}";
///     assert_eq!(Measurement::dtype().to_string(), dtype);
/// }
/// let items = [Measurement { sensor: 7, celsius: [20.5, 21.0], valid: true }; 100];
/// let chunk = blosc2::compress(&items, &CParams::new().codec(Codec::Lz4))?;
/// assert_eq!(blosc2::decompress::<Measurement>(&chunk)?, items);
/// # Ok::<(), blosc2::Error>(())
/// ```
///
/// Fields can contain strings, dates and times. Python reads and writes this struct as `[('name', 'S8'), ('code',
/// 'S2'), ('time', '<M8[s]')]`:
/// ```
/// use blosc2::elements::{DateTime64, FixedBytes, Seconds};
/// use blosc2::{Dtype, Element};
///
/// #[derive(Clone, Copy, Element)]
/// #[repr(C, packed)]
/// struct Station {
///     name: FixedBytes<8>,
///     #[element(dtype = "|S2")]
///     code: [u8; 2],
///     time: DateTime64<Seconds>,
/// }
///
/// if cfg!(target_endian = "little") {
///     assert_eq!(Station::dtype(), Dtype::parse("[('name', 'S8'), ('code', 'S2'), ('time', '<M8[s]')]")?);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Packed structs
/// By default, the fields of a NumPy structured dtype are adjacent, without padding: this is the layout of `repr(C,
/// packed)`. With `align=True`, NumPy aligns the fields as C does: this is the layout of `repr(C)`. Reading an array
/// with a struct of the other layout fails with [`TypeMismatch`](crate::ErrorKind::TypeMismatch); the error names the
/// first field with a different offset.
///
/// Prefer `repr(C, packed)` for arrays that Python also writes. When Python's blosc2 copies or slices an aligned array,
/// it stores the padding as additional fields, such as `f1`. This crate still reads such arrays as the same struct.
///
/// A field of a packed struct cannot be borrowed (error E0793) if the alignment of its type is greater than one byte.
/// Formatting, comparisons and method calls borrow their operands, so copy the fields first:
/// ```
/// use blosc2::Element;
/// use blosc2::elements::FixedStr;
///
/// #[derive(Clone, Copy, Element)]
/// #[repr(C, packed)]
/// struct Person {
///     name: FixedStr<10>, // Python: [('name', 'U10'), ('born', '<i8')]
///     born: i64,
/// }
///
/// let person = Person { name: "Ada".parse()?, born: 1815 };
/// let Person { name, born } = person;
/// assert_eq!(format!("{name}, {born}"), "Ada, 1815");
/// assert_eq!({ person.name }, "Ada");
/// # Ok::<(), blosc2::Error>(())
/// ```
/// This line borrows the field, and does not compile:
/// ```compile_fail,E0793
/// # use blosc2::elements::FixedStr;
/// # #[derive(Clone, Copy, blosc2::Element)]
/// # #[repr(C, packed)]
/// # struct Person { born: i64, name: FixedStr<10> }
/// # let person = Person { born: 1815, name: FixedStr::default() };
/// println!("{}", person.name);
/// ```
///
/// # What does not compile
/// A struct without a fixed layout, that is, without `repr(C)` or `repr(transparent)`:
/// ```compile_fail
/// #[derive(Clone, Copy, blosc2::Element)]
/// struct Unordered { a: u8, b: u32 }
/// ```
/// A field that is not an `Element`:
/// ```compile_fail,E0277
/// #[derive(Clone, Copy, blosc2::Element)]
/// #[repr(C)]
/// struct Name { text: &'static str }
/// ```
/// Enums, unions and structs without fields. The derive accepts a struct whose fields all have size 0, but the use of
/// this struct as an item type does not compile:
/// ```compile_fail
/// #[derive(Clone, Copy, blosc2::Element)]
/// #[repr(u8)]
/// enum Answer { No, Yes }
/// ```
/// ```compile_fail
/// #[derive(Clone, Copy, blosc2::Element)]
/// #[repr(C)]
/// union Either { a: u32, b: f32 }
/// ```
/// ```compile_fail
/// #[derive(Clone, Copy, blosc2::Element)]
/// #[repr(C)]
/// struct Nothing {}
/// ```
/// ```compile_fail,E0080
/// #[derive(Clone, Copy, blosc2::Element)]
/// #[repr(C)]
/// struct Empty { none: [u8; 0] }
/// # fn main() { blosc2::compress::<Empty>(&[], &blosc2::CParams::default()); }
/// ```
/// Generic types:
/// ```compile_fail
/// #[derive(Clone, Copy, blosc2::Element)]
/// #[repr(C)]
/// struct Pair<T> { left: T, right: T }
/// ```
/// Two fields with the same name, and an empty name:
/// ```compile_fail
/// #[derive(Clone, Copy, blosc2::Element)]
/// #[repr(C)]
/// struct Twice { a: u8, #[element(name = "a")] b: u8 }
/// ```
/// ```compile_fail
/// #[derive(Clone, Copy, blosc2::Element)]
/// #[repr(C)]
/// struct Unnamed { #[element(name = "")] a: u8 }
/// ```
/// A struct that is not `Copy`:
/// ```compile_fail,E0277
/// #[derive(blosc2::Element)]
/// #[repr(C)]
/// struct Fixed { a: u8 }
/// ```
pub use blosc2_derive::Element;
