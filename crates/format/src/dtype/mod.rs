//! Types of array items (dtypes): parsing and formatting in NumPy's notation, comparison,
//! construction.
//!
//! A dtype is one of three types: a scalar; a sub-array, which is a fixed-size array inside of an
//! item; or a structure with named fields. Array files store the dtype as text. The text is NumPy's
//! `dtype.str` for a scalar, and `str(dtype)` for a sub-array or a structure.
//!
//! ```
//! use blosc2_format::dtype::{Dtype, Field, Kind};
//!
//! let big: Dtype = ">f8".parse()?;
//! assert_eq!((big.kind(), big.size(), big.is_native()), (Some(Kind::Float), 8, cfg!(target_endian = "big")));
//!
//! let text = "[('id', '<u2'), ('place', '<f4', (3,)), ('ok', '?')]";
//! let record = Dtype::parse(text)?;
//! assert_eq!(record.size(), 15);
//! let place = &record.fields().unwrap()[1];
//! assert_eq!((place.name(), place.offset()), ("place", 2));
//! assert_eq!(place.dtype().subarray(), Some((&Dtype::parse("<f4")?, &[3][..])));
//! assert_eq!(record.to_string(), text);
//!
//! let fields = [Field::new("flag", 0, Dtype::parse("|u1")?), Field::new("value", 4, Dtype::parse("<i4")?)];
//! let padded = Dtype::structure(8, fields)?;
//! let text = "{'names': ['flag', 'value'], 'formats': ['u1', '<i4'], 'offsets': [0, 4], 'itemsize': 8}";
//! assert_eq!(padded.to_string(), text);
//! # Ok::<(), blosc2_format::Error>(())
//! ```

mod decode;
mod difference;
mod literal;
mod scalar;
mod swap;
mod text;

use std::collections::HashSet;
use std::hash::{Hash, Hasher};

use crate::Error;
use crate::limits::MAX_BRACKETS;
pub use decode::ScalarDecoder;
pub(crate) use literal::{Result as LiteralResult, Unlike, Value, tuple};
use scalar::Scalar;
pub use swap::SwapPlan;

pub use crate::limits::MAX_NESTING;

/// The maximum size of an item, in bytes: 2^31 - 1, the limit of NumPy.
pub const MAX_SIZE: usize = i32::MAX as usize;
/// The maximum number of dimensions of a sub-array: the limit of NumPy 2 (NumPy 1 has a limit of
/// 32).
pub const MAX_SUBARRAY_NDIM: usize = 64;
/// The maximum length of the text of a dtype, in bytes: enough for tens of thousands of fields.
pub const MAX_TEXT_LEN: usize = 1 << 20;

/// The type of an item: a scalar, a sub-array, or a structure with fields. NumPy: `dtype`.
///
/// Two types are equal if NumPy's `==` returns `True` for them. The comparison includes:
///
/// - the byte order, if the type has one;
/// - the names, titles, offsets and order of the fields;
/// - the unit of dates and durations.
///
/// There is one exception: equal units whose notations differ by a power of 1000, such as `1000ms`
/// and `s`. NumPy's result depends on the order of the operands: `M8[1000ms] == M8[s]` is true, and
/// `M8[s] == M8[1000ms]` is false. In this crate both comparisons are false.
///
/// ```
/// use blosc2_format::Dtype;
///
/// let dtype = Dtype::parse("[('id', '<u2'), ('place', '<f4', (3,))]")?;
/// assert_eq!(dtype.size(), 14);
/// assert_eq!(dtype.fields().unwrap()[1].name(), "place");
/// # Ok::<(), blosc2_format::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Dtype {
    form: Form,
    size: usize,
    /// The number of levels below this one.
    nesting: usize,
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum Form {
    Scalar(Scalar),
    /// A sub-array: the item type and the shape, which has at least one axis.
    Array(Box<Dtype>, Vec<u64>),
    Struct(Struct),
}

#[derive(Clone, Eq)]
struct Struct {
    fields: Vec<Field>,
    /// Whether NumPy aligned the fields like C. Only the text of the type depends on this flag.
    aligned: bool,
}

impl PartialEq for Struct {
    fn eq(&self, other: &Self) -> bool {
        self.fields == other.fields
    }
}

impl Hash for Struct {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.fields.hash(state);
    }
}

/// The kind of a scalar.
///
/// ```
/// use blosc2_format::dtype::{Dtype, Kind};
///
/// assert_eq!(Dtype::parse("<f8")?.kind(), Some(Kind::Float));
/// # Ok::<(), blosc2_format::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// A boolean of one byte: 0 is false, all other values are true. NumPy: `b1`.
    Bool,
    /// A signed integer: `i1` to `i8`.
    Int,
    /// An unsigned integer: `u1` to `u8`.
    UInt,
    /// A floating-point number: `f2`, `f4` or `f8`. `f12` and `f16` are C's `long double`, whose
    /// representation depends on the platform.
    Float,
    /// A complex number of two floating-point numbers: `c8`, `c16`, `c24`, `c32`.
    Complex,
    /// A point in time: the number of time [units](Dtype::unit) since 1970-01-01. Example:
    /// `M8[ns]`, with the unit nanoseconds.
    DateTime,
    /// A duration: a number of time [units](Dtype::unit). Example: `m8[ns]`, with the unit
    /// nanoseconds.
    TimeDelta,
    /// A byte string, padded with zeros: `S10`.
    Bytes,
    /// A string of 4-byte characters, padded with zeros: `U10`.
    Unicode,
    /// Raw bytes: `V5`.
    Void,
    /// A pointer to a Python object: `O`. It has no meaning in a file.
    Object,
}

/// The byte order of a scalar.
///
/// ```
/// use blosc2_format::dtype::{ByteOrder, Dtype};
///
/// assert_eq!(Dtype::parse(">i4")?.byte_order(), Some(ByteOrder::Big));
/// # Ok::<(), blosc2_format::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ByteOrder {
    /// Little-endian, least significant byte first: `<`.
    Little,
    /// Big-endian, most significant byte first: `>`.
    Big,
}

impl ByteOrder {
    /// The native byte order of this machine.
    pub const NATIVE: Self = if cfg!(target_endian = "little") { Self::Little } else { Self::Big };

    fn sign(self) -> char {
        if self == Self::Little { '<' } else { '>' }
    }
}

/// A field of a structure.
///
/// ```
/// use blosc2_format::dtype::{Dtype, Field};
///
/// let field = Field::new("x", 4, Dtype::parse("<f4")?);
/// assert_eq!((field.name(), field.offset()), ("x", 4));
/// # Ok::<(), blosc2_format::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Field {
    name: String,
    title: Option<String>,
    offset: usize,
    dtype: Dtype,
}

impl Field {
    /// Creates a field at `offset` bytes from the start of the item.
    pub fn new(name: impl Into<String>, offset: usize, dtype: Dtype) -> Self {
        Self { name: name.into(), title: None, offset, dtype }
    }

    /// Sets the title, a second name that NumPy supports.
    pub fn with_title(self, title: impl Into<String>) -> Self {
        Self { title: Some(title.into()), ..self }
    }

    /// Returns the name of the field.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the title of the field, if any.
    pub fn title(&self) -> Option<&str> {
        self.title.as_deref()
    }

    /// Returns the offset of the field from the start of the item, in bytes.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Returns the type of the field.
    pub fn dtype(&self) -> &Dtype {
        &self.dtype
    }
}

impl Dtype {
    /// The maximum nesting depth of brackets.
    pub(crate) const MAX_BRACKETS: usize = MAX_BRACKETS;

    /// Creates a scalar of `size` bytes in native byte order. A date or duration has no unit.
    ///
    /// # Errors
    /// [`Error::Argument`]: NumPy has no scalar of this kind and size.
    ///
    /// ```
    /// use blosc2_format::dtype::{ByteOrder, Dtype, Kind};
    ///
    /// let half = Dtype::scalar(Kind::Float, 2)?.with_byte_order(ByteOrder::Little);
    /// assert_eq!(half, Dtype::parse("<f2")?);
    /// # Ok::<(), blosc2_format::Error>(())
    /// ```
    pub fn scalar(kind: Kind, size: usize) -> Result<Self, Error> {
        let scalar = Scalar::new(kind, size, ByteOrder::NATIVE);
        let error = || Error::Argument(format!("NumPy has no type {kind:?} of {size} bytes"));
        scalar.map(Self::of_scalar).ok_or_else(error)
    }

    /// Creates a sub-array of the given shape, in C order. With an empty shape it returns `item`.
    ///
    /// # Errors
    /// [`Error::Argument`]: the sub-array exceeds [`MAX_SUBARRAY_NDIM`] dimensions, [`MAX_SIZE`]
    /// bytes or [`MAX_NESTING`] levels.
    pub fn array(item: Self, shape: &[u64]) -> Result<Self, Error> {
        item.repeated(shape).map_err(|expected| Error::Argument(format!("expected {expected}")))
    }

    /// Creates a structure of `size` bytes. The fields can be in any order. Gaps between fields and
    /// overlapping fields are allowed.
    ///
    /// # Errors
    /// Fails with [`Error::Argument`] if:
    ///
    /// - a field ends after the item;
    /// - two fields have the same name or title;
    /// - the structure exceeds [`MAX_SIZE`] bytes or [`MAX_NESTING`] levels.
    pub fn structure(size: usize, fields: impl IntoIterator<Item = Field>) -> Result<Self, Error> {
        Self::of_fields(size, fields.into_iter().collect(), false)
            .map_err(|expected| Error::Argument(format!("expected {expected}")))
    }

    /// Parses NumPy's notation, such as `<f4` or `[('a', '<i4'), ('b', '<f8', (3,))]`.
    ///
    /// The names of NumPy's types, such as `float64` or `bool`, and the one-letter codes, such as
    /// `d`, are accepted too. For types of C, such as `long` or `l`, their sizes on 64-bit Linux
    /// are used on all platforms. The texts of this crate contain neither names nor codes.
    ///
    /// ```
    /// use blosc2_format::Dtype;
    ///
    /// assert_eq!(Dtype::parse("float32")?, Dtype::parse("=f4")?);
    /// assert_eq!(Dtype::parse(">H")?.to_string(), ">u2");
    /// # Ok::<(), blosc2_format::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Format`]: the text is not in this notation, or exceeds the limits [`MAX_TEXT_LEN`],
    /// [`MAX_SIZE`], [`MAX_NESTING`] or [`MAX_SUBARRAY_NDIM`].
    pub fn parse(text: &str) -> Result<Self, Error> {
        Self::parse_nested(text, Self::MAX_BRACKETS)
    }

    /// Parses brackets that are nested at most `nesting` levels deep.
    pub(crate) fn parse_nested(text: &str, nesting: usize) -> Result<Self, Error> {
        Self::read(text, nesting).map_err(|unlike| unlike.in_text("dtype", text))
    }

    fn of_scalar(scalar: Scalar) -> Self {
        Self { size: scalar.size, form: Form::Scalar(scalar), nesting: 0 }
    }

    /// The error states the expected value.
    fn repeated(self, shape: &[u64]) -> Result<Self, String> {
        if shape.is_empty() {
            return Ok(self);
        }
        if shape.len() > MAX_SUBARRAY_NDIM {
            return Err(format!("at most {MAX_SUBARRAY_NDIM} dimensions"));
        }
        let product = |start: u64| match shape.contains(&0) {
            true => Some(0),
            false => shape.iter().try_fold(start, |product, &side| product.checked_mul(side)),
        };
        let fits = |number: Option<u64>| {
            number.and_then(|number| usize::try_from(number).ok()).filter(|&size| size <= MAX_SIZE)
        };
        let sides_fit = shape.iter().all(|&side| fits(Some(side)).is_some());
        // For items of zero bytes the count can overflow.
        let count = fits(product(1)).filter(|_| sides_fit);
        let size = count.and_then(|_| fits(product(self.size as u64)));
        let size = size.ok_or_else(|| format!("a sub-array of at most {MAX_SIZE} bytes"))?;
        let nesting = deeper(self.nesting)?;
        Ok(Self { form: Form::Array(Box::new(self), shape.to_vec()), size, nesting })
    }

    /// The error states the expected value.
    fn of_fields(size: usize, fields: Vec<Field>, aligned: bool) -> Result<Self, String> {
        if size > MAX_SIZE {
            return Err(format!("an item of at most {MAX_SIZE} bytes"));
        }
        let mut names = HashSet::new();
        for Field { name, title, offset, dtype } in &fields {
            if offset.checked_add(dtype.size).is_none_or(|end| end > size) {
                return Err(format!("the field `{name}` within the {size} bytes of the item"));
            }
            if let Some(twice) = [Some(name), title.as_ref()]
                .into_iter()
                .flatten()
                .find(|&each| !names.insert(each.as_str()))
            {
                return Err(format!("only one field with the name `{twice}`"));
            }
        }
        let nesting = deeper(fields.iter().map(|field| field.dtype.nesting).max().unwrap_or(0))?;
        Ok(Self { form: Form::Struct(Struct { fields, aligned }), size, nesting })
    }

    /// Returns the size of an item, in bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the kind of a scalar, or `None` for sub-arrays and structures.
    pub fn kind(&self) -> Option<Kind> {
        self.as_scalar().map(|scalar| scalar.kind)
    }

    /// Returns the byte order of a scalar, or `None` for scalars without one, sub-arrays and
    /// structures.
    pub fn byte_order(&self) -> Option<ByteOrder> {
        self.as_scalar()?.order
    }

    /// Returns the multiplier and the unit of a [`Kind::DateTime`] or [`Kind::TimeDelta`]: 25 and
    /// `s` for `M8[25s]`. Returns `None` for types without a unit.
    pub fn unit(&self) -> Option<(u32, &'static str)> {
        self.as_scalar()?.unit
    }

    /// Returns the item type and the shape of a sub-array, or `None` for other types.
    pub fn subarray(&self) -> Option<(&Self, &[u64])> {
        if let Form::Array(item, shape) = &self.form { Some((item, shape)) } else { None }
    }

    /// Returns the fields of a structure in the order of NumPy's `dtype.names`, or `None` for other
    /// types.
    pub fn fields(&self) -> Option<&[Field]> {
        if let Form::Struct(Struct { fields, .. }) = &self.form { Some(fields) } else { None }
    }

    fn as_scalar(&self) -> Option<&Scalar> {
        if let Form::Scalar(scalar) = &self.form { Some(scalar) } else { None }
    }

    /// Returns whether the type contains pointers to Python objects, which have no meaning in a
    /// file.
    pub fn has_pointers(&self) -> bool {
        self.any_scalar(&|scalar| scalar.kind == Kind::Object)
    }

    /// Returns whether all parts of the type are in native byte order. Parts without a byte order
    /// are ignored.
    pub fn is_native(&self) -> bool {
        !self.any_scalar(&|scalar| scalar.order.is_some_and(|order| order != ByteOrder::NATIVE))
    }

    fn any_scalar(&self, of: &impl Fn(&Scalar) -> bool) -> bool {
        match &self.form {
            Form::Scalar(scalar) => of(scalar),
            Form::Array(item, _) => item.any_scalar(of),
            Form::Struct(Struct { fields, .. }) => {
                fields.iter().any(|field| field.dtype.any_scalar(of))
            }
        }
    }

    /// Returns whether both types describe the same bytes. For structures, the size and the names,
    /// offsets, types and order of the fields must be equal. Titles and the notation of padding are
    /// ignored.
    ///
    /// Python's `blosc2.asarray` stores an aligned structure with a void field for each gap between
    /// fields. The name of such a void field is `f` and its index, as for an unnamed field in
    /// NumPy. This method treats such a void field as a gap. A structure with only such void fields
    /// is equivalent to a [`Kind::Void`] of the same size.
    ///
    /// ```
    /// use blosc2_format::dtype::{Dtype, Field};
    ///
    /// let fields = [Field::new("a", 0, Dtype::parse("|u1")?), Field::new("b", 8, Dtype::parse("<f8")?)];
    /// let aligned = Dtype::structure(16, fields)?;
    /// let stored = Dtype::parse("[('a', 'u1'), ('f1', 'V7'), ('b', '<f8')]")?;
    /// assert!(stored != aligned && stored.is_equivalent(&aligned));
    /// assert!(!stored.is_equivalent(&Dtype::parse("[('a', 'u1'), ('b', '<f8'), ('f2', 'V7')]")?));
    /// # Ok::<(), blosc2_format::Error>(())
    /// ```
    pub fn is_equivalent(&self, other: &Self) -> bool {
        self == other
            || self.size == other.size && self.without_padding() == other.without_padding()
    }

    /// Returns the type without the fields that represent padding, and without titles.
    fn without_padding(&self) -> Self {
        let form = match &self.form {
            Form::Scalar(_) => return self.clone(),
            Form::Array(item, shape) => {
                Form::Array(Box::new(item.without_padding()), shape.clone())
            }
            Form::Struct(Struct { fields, aligned }) => {
                let is_padding = |index: usize, field: &Field| {
                    field.dtype.kind() == Some(Kind::Void) && field.name == format!("f{index}")
                };
                let fields = fields.iter().enumerate();
                let fields: Vec<Field> = fields
                    .filter(|(index, field)| !is_padding(*index, field))
                    .map(|(_, Field { name, offset, dtype, .. })| {
                        Field::new(name.clone(), *offset, dtype.without_padding())
                    })
                    .collect();
                match Scalar::new(Kind::Void, self.size, ByteOrder::NATIVE) {
                    Some(scalar) if fields.is_empty() => Form::Scalar(scalar),
                    _ => Form::Struct(Struct { fields, aligned: *aligned }),
                }
            }
        };
        // The nesting depth is part of the comparison, so it is computed from the remaining fields.
        let nesting = match &form {
            Form::Scalar(_) => 0,
            Form::Array(item, _) => item.nesting + 1,
            Form::Struct(Struct { fields, .. }) => {
                1 + fields.iter().map(|field| field.dtype.nesting).max().unwrap_or(0)
            }
        };
        Self { form, size: self.size, nesting }
    }

    /// Returns the same type in native byte order. To convert items to this type, use
    /// [`swap_plan`](Self::swap_plan).
    pub fn to_native(&self) -> Self {
        self.clone().with_byte_order(ByteOrder::NATIVE)
    }

    /// Returns the same type with `order` as the byte order of all parts that have one. NumPy:
    /// `newbyteorder`.
    pub fn with_byte_order(mut self, order: ByteOrder) -> Self {
        self.set_order(order);
        self
    }

    fn set_order(&mut self, order: ByteOrder) {
        match &mut self.form {
            Form::Scalar(scalar) => scalar.order = scalar.order.map(|_| order),
            Form::Array(item, _) => item.set_order(order),
            Form::Struct(Struct { fields, .. }) => {
                fields.iter_mut().for_each(|field| field.dtype.set_order(order));
            }
        }
    }
}

/// Returns the number of levels of a type that contains one of `nesting` levels.
fn deeper(nesting: usize) -> Result<usize, String> {
    match nesting < MAX_NESTING {
        true => Ok(nesting + 1),
        false => Err(format!("at most {MAX_NESTING} levels of structures and sub-arrays")),
    }
}

#[cfg(test)]
mod tests;
