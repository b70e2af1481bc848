//! The types that items of arrays have, in NumPy's notation: read, compared, built and written.
//!
//! Files hold what Python's `str(dtype)` gives, or for types without parts its `dtype.str`.
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

mod difference;
mod literal;
mod scalar;
mod swap;
mod text;

use std::collections::HashSet;
use std::hash::{Hash, Hasher};

use crate::Error;
pub(crate) use literal::{Result as LiteralResult, Unlike, Value, tuple};
use scalar::Scalar;
pub use swap::SwapPlan;

/// The most bytes of an item, NumPy's: 2^31 - 1.
pub const MAX_SIZE: usize = i32::MAX as usize;
/// The most dimensions of a sub-array, NumPy's.
pub const MAX_SUBARRAY_NDIM: usize = 64;
/// How deep structures and sub-arrays may be nested.
pub const MAX_NESTING: usize = 32;
/// The longest text that is read, in bytes: one of tens of thousands of fields.
pub const MAX_TEXT_LEN: usize = 1 << 20;

/// The type of an item: a scalar, an array of items, or a structure with fields.
///
/// Two are equal where NumPy's `==` says so: byte order counts, but not of what has none; so do names,
/// titles, offsets, the order of the fields and the unit of dates. (NumPy also takes `M8[1000ms]` for
/// `M8[s]`, but not the other way round; here they differ both ways.)
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Dtype {
    form: Form,
    size: usize,
    /// Levels below this one.
    nesting: usize,
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum Form {
    Scalar(Scalar),
    /// So many items of one type along each dimension, of which there is one at least.
    Array(Box<Dtype>, Vec<u64>),
    Struct(Struct),
}

#[derive(Clone, Eq)]
struct Struct {
    fields: Vec<Field>,
    /// Whether NumPy laid it out as C does, which its text says and which matters to nothing else.
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

/// What a scalar is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// A byte that is 0 or 1; others are true too. NumPy's `b1`.
    Bool,
    /// A signed integer: `i1` to `i8`.
    Int,
    /// An unsigned integer: `u1` to `u8`.
    UInt,
    /// A floating-point number: `f2`, `f4`, `f8`; `f12` and `f16` are C's `long double`, whose bytes differ
    /// between machines.
    Float,
    /// Two of those: `c8`, `c16`, `c24`, `c32`.
    Complex,
    /// A moment, in [units](Dtype::unit) since 1970: `M8`.
    DateTime,
    /// A length of time, in [units](Dtype::unit): `m8`.
    TimeDelta,
    /// A text of bytes, filled up with zeros: `S10`.
    Bytes,
    /// A text of characters of four bytes each, filled up with zeros: `U10`.
    Unicode,
    /// Bytes of any meaning: `V5`.
    Void,
    /// A pointer to an object of Python's, which means nothing in a file: `O`.
    Object,
}

/// Which byte of a number comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ByteOrder {
    /// The lowest one: `<`.
    Little,
    /// The highest one: `>`.
    Big,
}

impl ByteOrder {
    /// This machine's.
    pub const NATIVE: Self = if cfg!(target_endian = "little") { Self::Little } else { Self::Big };

    fn sign(self) -> char {
        if self == Self::Little { '<' } else { '>' }
    }
}

/// A field of a structure.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Field {
    name: String,
    title: Option<String>,
    offset: usize,
    dtype: Dtype,
}

impl Field {
    /// A field that starts so many bytes after the start of the item.
    pub fn new(name: impl Into<String>, offset: usize, dtype: Dtype) -> Self {
        Self { name: name.into(), title: None, offset, dtype }
    }

    /// The same with a title, a second name that NumPy allows for.
    pub fn with_title(self, title: impl Into<String>) -> Self {
        Self { title: Some(title.into()), ..self }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The second name, if it has one.
    pub fn title(&self) -> Option<&str> {
        self.title.as_deref()
    }

    /// Bytes from the start of the item.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// The type.
    pub fn dtype(&self) -> &Dtype {
        &self.dtype
    }
}

impl Dtype {
    /// As many levels of brackets as there can be: at most three a structure, and two in the innermost.
    pub(crate) const MAX_BRACKETS: usize = 3 * MAX_NESTING + 2;

    /// A scalar of so many bytes, in this machine's byte order; dates without a unit.
    ///
    /// # Errors
    /// [`Error::Argument`]: NumPy has none of this size.
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

    /// A sub-array: so many items along each dimension, the last one running fastest. Without dimensions that
    /// is the item itself.
    ///
    /// # Errors
    /// [`Error::Argument`]: more than [`MAX_SUBARRAY_NDIM`] dimensions, [`MAX_SIZE`] bytes or [`MAX_NESTING`]
    /// levels.
    pub fn array(item: Self, shape: &[u64]) -> Result<Self, Error> {
        item.repeated(shape).map_err(|expected| Error::Argument(format!("expected {expected}")))
    }

    /// A structure of `size` bytes. Fields may leave gaps, and may overlap.
    ///
    /// # Errors
    /// [`Error::Argument`]: a field that reaches behind the item, two of the same name or title, more than
    /// [`MAX_SIZE`] bytes or [`MAX_NESTING`] levels.
    pub fn structure(size: usize, fields: impl IntoIterator<Item = Field>) -> Result<Self, Error> {
        Self::of_fields(size, fields.into_iter().collect(), false)
            .map_err(|expected| Error::Argument(format!("expected {expected}")))
    }

    /// Reads NumPy's notation, such as `<f4` or `[('a', '<i4'), ('b', '<f8', (3,))]`.
    ///
    /// # Errors
    /// [`Error::Format`]: it is no such text, or one over the limits of this module.
    pub fn parse(text: &str) -> Result<Self, Error> {
        Self::parse_nested(text, Self::MAX_BRACKETS)
    }

    /// The same for brackets that are nested no deeper than so many levels.
    pub(crate) fn parse_nested(text: &str, nesting: usize) -> Result<Self, Error> {
        Self::read(text, nesting).map_err(|unlike| unlike.in_text("dtype", text))
    }

    fn of_scalar(scalar: Scalar) -> Self {
        Self { size: scalar.size, form: Form::Scalar(scalar), nesting: 0 }
    }

    /// The error is what was expected.
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
        // Of items without bytes there could be too many.
        let count = fits(product(1)).filter(|_| sides_fit);
        let size = count.and_then(|_| fits(product(self.size as u64)));
        let size = size.ok_or_else(|| format!("a sub-array of at most {MAX_SIZE} bytes"))?;
        let nesting = deeper(self.nesting)?;
        Ok(Self { form: Form::Array(Box::new(self), shape.to_vec()), size, nesting })
    }

    /// The error is what was expected.
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

    /// Bytes of an item.
    pub fn size(&self) -> usize {
        self.size
    }

    /// What kind of scalar it is; `None` for sub-arrays and structures.
    pub fn kind(&self) -> Option<Kind> {
        self.as_scalar().map(|scalar| scalar.kind)
    }

    /// The byte order of a scalar; `None` where it has none, and for sub-arrays and structures.
    pub fn byte_order(&self) -> Option<ByteOrder> {
        self.as_scalar()?.order
    }

    /// How many of which unit a [`Kind::DateTime`] or [`Kind::TimeDelta`] counts, such as 25 and `s`; `None` where
    /// that is not said.
    pub fn unit(&self) -> Option<(u32, &'static str)> {
        self.as_scalar()?.unit
    }

    /// The type of the items of a sub-array, and how many there are along each dimension.
    pub fn subarray(&self) -> Option<(&Self, &[u64])> {
        if let Form::Array(item, shape) = &self.form { Some((item, shape)) } else { None }
    }

    /// The fields of a structure, in NumPy's order.
    pub fn fields(&self) -> Option<&[Field]> {
        if let Form::Struct(Struct { fields, .. }) = &self.form { Some(fields) } else { None }
    }

    fn as_scalar(&self) -> Option<&Scalar> {
        if let Form::Scalar(scalar) = &self.form { Some(scalar) } else { None }
    }

    /// Whether it holds pointers to objects of Python's, which mean nothing in a file.
    pub fn has_pointers(&self) -> bool {
        self.any_scalar(&|scalar| scalar.kind == Kind::Object)
    }

    /// Whether all of it is in this machine's byte order, or has none.
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

    /// Whether items of the two types are the same bytes: the names, offsets and types of the fields and the size are
    /// equal. Titles do not matter, nor does how padding is written.
    ///
    /// Python's `asarray` stores an aligned structure with a void field for each gap, named as NumPy names fields without
    /// a name: `f` and its index. Such a field is equivalent to a gap, and void bytes to a structure of nothing else.
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

    /// The same without the fields that stand for padding, and without titles.
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
        // Levels are compared too, and are those of what is left.
        let nesting = match &form {
            Form::Scalar(_) => 0,
            Form::Array(item, _) => item.nesting + 1,
            Form::Struct(Struct { fields, .. }) => {
                1 + fields.iter().map(|field| field.dtype.nesting).max().unwrap_or(0)
            }
        };
        Self { form, size: self.size, nesting }
    }

    /// The same in this machine's byte order. [`swap_plan`](Self::swap_plan) turns the items.
    pub fn to_native(&self) -> Self {
        self.clone().with_byte_order(ByteOrder::NATIVE)
    }

    /// The same in another byte order, all of it that has one. NumPy's `newbyteorder`.
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

/// The levels of what holds something of so many.
fn deeper(nesting: usize) -> Result<usize, String> {
    match nesting < MAX_NESTING {
        true => Ok(nesting + 1),
        false => Err(format!("at most {MAX_NESTING} levels of structures and sub-arrays")),
    }
}

#[cfg(test)]
mod tests;
