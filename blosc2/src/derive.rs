//! `#[derive(Element)]`, of the crate `blosc2-derive`.

/// Makes a structure an `Element`: an item of chunks and arrays, whose dtype has the names, types and offsets
/// of its fields.
///
/// It has to be `Copy` and `repr(C)`, which may be `packed` or `align`ed too, and each field an `Element`. Fields
/// of a tuple are `f0`, `f1` and so on, as NumPy calls them; `#[element(name = "...")]` gives a field another name, and
/// `#[element(dtype = "...")]` another dtype of the same size, in NumPy's notation: `#[element(dtype = "|S8")]` makes a
/// `[u8; 8]` a text. A text that is no dtype, or one of another size, panics when the dtype is needed first.
/// Padding is written as zeros. A structure of one field may also be `repr(transparent)`, and then is
/// what the field is.
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
/// Text and time are fields too, here exchanged with Python as `[('name', 'S8'), ('code', 'S2'), ('time', '<M8[s]')]`:
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
/// # Packed structures
/// NumPy puts the fields of a structure one behind the other without padding, unless its dtype is made with
/// `align=True`: then as C does. `repr(C, packed)` is the first layout, `repr(C)` the second. Items of the other one are
/// refused as [`TypeMismatch`](crate::ErrorKind::TypeMismatch), with the first field that lies elsewhere.
///
/// Fields of packed structures cannot be borrowed (error E0793) unless they are aligned to one byte, and formatting,
/// comparisons and methods borrow. Copy them out first:
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
/// Layouts that Rust may choose as it likes:
/// ```compile_fail
/// #[derive(Clone, Copy, blosc2::Element)]
/// struct Unordered { a: u8, b: u32 }
/// ```
/// Fields that are no items:
/// ```compile_fail,E0277
/// #[derive(Clone, Copy, blosc2::Element)]
/// #[repr(C)]
/// struct Name { text: &'static str }
/// ```
/// Types of which not all are a value, or which have none:
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
/// Types with parameters:
/// ```compile_fail
/// #[derive(Clone, Copy, blosc2::Element)]
/// #[repr(C)]
/// struct Pair<T> { left: T, right: T }
/// ```
/// Two fields of one name, and names that say nothing:
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
/// What cannot be copied:
/// ```compile_fail,E0277
/// #[derive(blosc2::Element)]
/// #[repr(C)]
/// struct Fixed { a: u8 }
/// ```
pub use blosc2_derive::Element;
