//! Item types: the types of the items of lists, as in Python's schemas.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use blosc2::{ErrorKind, Value};

use crate::tag::what;

/// Maximum nesting depth of lists and structures that are written.
const MAX_DEPTH: usize = 32;
/// Maximum number of options of a type, several times the number that Python defines.
const MAX_OPTIONS: usize = 64;
/// Default `max_length`.
const MAX_LENGTH: u64 = 32;
/// Default `batch_rows`.
const BATCH_ROWS: u64 = 2048;

/// The type of the items of a list: the kind, whether items can be null, and options such as bounds. Python:
/// `SchemaSpec`.
///
/// Create an item type from an [`ItemKind`]. The options then have the defaults of Python.
///
/// ```
/// use blosc2_store::{ItemKind, ItemType};
///
/// let count = ItemType::from(ItemKind::UInt16).with("le", 1000).nullable();
/// let name = ItemType::from(ItemKind::String).with("max_length", 100);
/// let fields = vec![("name".to_owned(), name), ("count".to_owned(), count)];
/// let item = ItemType::from(ItemKind::Struct(fields));
/// assert!(!item.is_nullable());
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ItemType {
    /// With the type of the items and the fields, which are stored only here: a copy at each level would multiply the
    /// memory of a type by its depth.
    kind: ItemKind,
    /// The options, each once: in the order in which they were read, or in which Python writes them.
    options: Vec<(String, Value)>,
}

/// The kind of an [`ItemType`].
///
/// ```
/// use blosc2_store::{ItemKind, ListArray};
///
/// let mut lists = ListArray::in_memory(ItemKind::Float32, false)?;
/// lists.append(Some(&[1.5, 2.5]))?;
/// assert_eq!(lists.item_type().kind(), &ItemKind::Float32);
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ItemKind {
    /// 8-bit signed integer.
    Int8,
    /// 16-bit signed integer.
    Int16,
    /// 32-bit signed integer.
    Int32,
    /// 64-bit signed integer.
    Int64,
    /// 8-bit unsigned integer.
    UInt8,
    /// 16-bit unsigned integer.
    UInt16,
    /// 32-bit unsigned integer.
    UInt32,
    /// 64-bit unsigned integer.
    UInt64,
    /// 32-bit float.
    Float32,
    /// 64-bit float.
    Float64,
    /// Complex number of two 32-bit floats.
    Complex64,
    /// Complex number of two 64-bit floats.
    Complex128,
    /// Boolean.
    Bool,
    /// Timestamp: 64-bit signed integer, the time since 1970-01-01. Its unit is the option `unit`: `s`, `ms`, `us`
    /// (default) or `ns`.
    Timestamp,
    /// String of at most `max_length` characters, 32 by default.
    String,
    /// Byte string of at most `max_length` bytes, 32 by default.
    Bytes,
    /// Variable-length string. Python: `vlstring`.
    VlString,
    /// Variable-length bytes. Python: `vlbytes`.
    VlBytes,
    /// Variable-length string. Python: `utf8`. Lists store this kind like `VlString`. Tables store columns of the two
    /// kinds differently: see [`ColumnKind`](crate::ColumnKind).
    Utf8,
    /// List of items of one type.
    List(Box<ItemType>),
    /// Structure: a map with these fields, in this order.
    Struct(Vec<(String, ItemType)>),
    /// A kind of this name that is unknown to this crate. Its items can be read, but not written.
    Other(String),
}

/// The kinds without parameters, and their names.
const NAMED: [(&str, ItemKind); 19] = [
    ("int8", ItemKind::Int8),
    ("int16", ItemKind::Int16),
    ("int32", ItemKind::Int32),
    ("int64", ItemKind::Int64),
    ("uint8", ItemKind::UInt8),
    ("uint16", ItemKind::UInt16),
    ("uint32", ItemKind::UInt32),
    ("uint64", ItemKind::UInt64),
    ("float32", ItemKind::Float32),
    ("float64", ItemKind::Float64),
    ("complex64", ItemKind::Complex64),
    ("complex128", ItemKind::Complex128),
    ("bool", ItemKind::Bool),
    ("timestamp", ItemKind::Timestamp),
    ("string", ItemKind::String),
    ("bytes", ItemKind::Bytes),
    ("vlstring", ItemKind::VlString),
    ("vlbytes", ItemKind::VlBytes),
    ("utf8", ItemKind::Utf8),
];

/// The order in which Python writes the options of a type. Other options come last.
const ORDER: [&str; 16] = [
    "ge",
    "gt",
    "le",
    "lt",
    "min_length",
    "max_length",
    "pattern",
    "unit",
    "timezone",
    "nullable",
    "null_value",
    "null_storage",
    "storage",
    "serializer",
    "batch_rows",
    "items_per_block",
];

/// The entry with the name of a field.
const NAME: &str = "name";

/// The position of an option in this order.
fn place(option: &str) -> usize {
    ORDER.iter().position(|known| *known == option).unwrap_or(ORDER.len())
}

impl ItemKind {
    /// Returns the name of the kind in Python.
    pub fn name(&self) -> &str {
        match self {
            Self::List(_) => "list",
            Self::Struct(_) => "struct",
            Self::Other(name) => name,
            named => NAMED.iter().find(|(_, kind)| kind == named).map_or("", |(name, _)| name),
        }
    }

    /// The options that types of this kind accept; `None` if that is not known.
    fn options(&self) -> Option<&'static [&'static str]> {
        Some(match self {
            Self::Bool | Self::Complex64 | Self::Complex128 | Self::Utf8 => {
                &["nullable", "null_value", "null_storage"]
            }
            Self::Timestamp => &["unit", "timezone", "nullable", "null_value", "null_storage"],
            Self::String => {
                &["min_length", "max_length", "pattern", "nullable", "null_value", "null_storage"]
            }
            Self::Bytes => &["min_length", "max_length", "nullable", "null_value", "null_storage"],
            Self::VlString | Self::VlBytes => {
                &["nullable", "serializer", "batch_rows", "items_per_block"]
            }
            Self::List(_) => {
                &["nullable", "storage", "serializer", "batch_rows", "items_per_block"]
            }
            Self::Struct(_) => &["nullable"],
            Self::Other(_) => return None,
            _ => &["ge", "gt", "le", "lt", "nullable", "null_value", "null_storage"],
        })
    }
}

impl From<ItemKind> for ItemType {
    fn from(kind: ItemKind) -> Self {
        let batches = [("serializer", "msgpack".into()), ("batch_rows", BATCH_ROWS.into())];
        let options: Vec<(&str, Value)> = match &kind {
            ItemKind::String | ItemKind::Bytes => vec![("max_length", MAX_LENGTH.into())],
            ItemKind::Timestamp => vec![("unit", "us".into())],
            ItemKind::VlString | ItemKind::VlBytes => {
                [("nullable", false.into())].into_iter().chain(batches).collect()
            }
            ItemKind::List(_) => {
                let own = [("nullable", false.into()), ("storage", "batch".into())];
                own.into_iter().chain(batches).collect()
            }
            ItemKind::Struct(_) => vec![("nullable", false.into())],
            _ => Vec::new(),
        };
        let options = options.into_iter().map(|(name, value)| (name.to_owned(), value));
        Self { options: options.collect(), kind }
    }
}

impl ItemType {
    /// Returns the kind.
    pub fn kind(&self) -> &ItemKind {
        &self.kind
    }

    /// Allows null items (`None`).
    pub fn nullable(self) -> Self {
        // These kinds have no spare value that can represent null.
        let masked = matches!(self.kind, ItemKind::Complex64 | ItemKind::Complex128);
        let nullable = self.with("nullable", true);
        if masked { nullable.with("null_storage", "mask") } else { nullable }
    }

    /// Returns whether items can be null (`None`).
    pub fn is_nullable(&self) -> bool {
        let is_set = |name| !matches!(self.get(name), None | Some(Value::None));
        self.get("nullable") == Some(&Value::Bool(true))
            || is_set("null_value")
            || is_set("null_storage")
    }

    /// Sets an option. Options have the same names as the arguments in Python:
    ///
    /// - integers and floats: `ge`, `gt`, `le` and `lt` are the bounds of the value (≥, >, ≤, <);
    /// - `String` and `Bytes`: `min_length` and `max_length`;
    /// - `Timestamp`: `unit` and `timezone`;
    /// - the list type of a [`ListArray`](crate::ListArray): `batch_rows`, `items_per_block`, and `storage`, which is
    ///   `batch` or `vl`.
    ///
    /// This method does not check the option. Creating an array with the type checks it.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        let value = value.into();
        match self.options.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => *old = value,
            None => self.options.push((name.to_owned(), value)),
        }
        self.sort();
        self
    }

    fn sort(&mut self) {
        self.options.sort_by_key(|(name, _)| place(name));
    }

    /// Returns the value of an option. The type of the items of a list and the fields of a structure are not options,
    /// but parts of the [`kind`](Self::kind).
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.options.iter().find(|(option, _)| option == name).map(|(_, value)| value)
    }

    /// Returns a map with the kind and all options, as Python writes it to a file.
    pub fn metadata(&self) -> Value {
        Value::Map(self.pairs())
    }

    fn pairs(&self) -> Vec<(Value, Value)> {
        let mut pairs = vec![("kind", self.kind.name().into())];
        match &self.kind {
            ItemKind::List(item) => pairs.push(("item", item.metadata())),
            ItemKind::Struct(fields) => {
                let fields = fields.iter().map(|(name, field)| {
                    let name = (NAME.into(), name.as_str().into());
                    Value::Map([name].into_iter().chain(field.pairs()).collect())
                });
                pairs.push(("fields", Value::List(fields.collect())));
            }
            _ => {}
        }
        let options = self.options.iter().map(|(name, value)| (name.as_str(), value.clone()));
        pairs.into_iter().chain(options).map(|(name, value)| (name.into(), value)).collect()
    }

    /// Parses a type as Python writes it. The error describes the fault.
    pub(crate) fn from_metadata(metadata: Value) -> Result<Self, String> {
        let Value::Map(pairs) = metadata else { return Err("a type that is not a map".to_owned()) };
        Self::from_pairs(pairs)
    }

    fn from_pairs(pairs: Vec<(Value, Value)>) -> Result<Self, String> {
        let (mut kind, mut item, mut fields) = (None, None, None);
        let mut this = Self { kind: ItemKind::Bool, options: Vec::new() };
        for (name, value) in pairs {
            let Value::Str(name) = name else {
                return Err(format!("an option whose name is {}", what(&name)));
            };
            let place = match &*name {
                "kind" => &mut kind,
                "item" => &mut item,
                "fields" => &mut fields,
                _ => {
                    if this.get(&name).is_some() {
                        return Err(format!("two options with the name {}", what(&name.into())));
                    }
                    this.options.push((name, value));
                    check_count(this.options.len())?;
                    continue;
                }
            };
            if place.replace(value).is_some() {
                return Err(format!("a type with two entries `{name}`"));
            }
        }
        let missing = |what: &str| format!("a type without {what}");
        let Some(Value::Str(name)) = kind else { return Err(missing("a kind")) };
        this.kind = match &*name {
            "list" => {
                let item = item.take().ok_or_else(|| missing("an item type"))?;
                ItemKind::List(Box::new(Self::from_metadata(item)?))
            }
            "struct" => {
                let Some(Value::List(fields) | Value::Tuple(fields)) = fields.take() else {
                    return Err(missing("fields"));
                };
                let fields = fields.into_iter().map(Self::field).collect::<Result<Vec<_>, _>>()?;
                check_names(&fields)?;
                ItemKind::Struct(fields)
            }
            _ => match NAMED.iter().find(|(known, _)| *known == name) {
                Some((_, kind)) => kind.clone(),
                None => ItemKind::Other(name),
            },
        };
        // Types of other kinds, which a later Python adds, can have entries of the same names.
        for (name, value) in [("item", item), ("fields", fields)] {
            this.options.extend(value.map(|value| (name.to_owned(), value)));
        }
        Ok(this)
    }

    fn field(metadata: Value) -> Result<(String, Self), String> {
        let Value::Map(pairs) = metadata else {
            return Err("a field that is not a map".to_owned());
        };
        let (mut names, others): (Vec<_>, Vec<_>) =
            pairs.into_iter().partition(|(key, _)| key.as_str() == Some(NAME));
        match (names.pop(), names.is_empty()) {
            (Some((_, Value::Str(name))), true) => Ok((name, Self::from_pairs(others)?)),
            _ => Err("a field without a name".to_owned()),
        }
    }

    /// Checks that Python accepts the type. The error describes the fault.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.check_to(MAX_DEPTH)
    }

    fn check_to(&self, depth: usize) -> Result<(), String> {
        let kind = self.kind.name();
        let known = |name: &str| match self.kind.options() {
            Some(options) => options.contains(&name),
            None => name != "kind",
        };
        if let Some((name, _)) = self.options.iter().find(|(name, _)| !known(name)) {
            return Err(format!("the option `{name}`, which the type `{kind}` does not have"));
        }
        check_count(self.options.len())?;
        ["ge", "gt", "le", "lt"].iter().try_for_each(|name| self.number(name).map(drop))?;
        ["min_length", "max_length"].iter().try_for_each(|name| self.length(name).map(drop))?;
        for name in ["batch_rows", "items_per_block"] {
            if self.length(name)? == Some(0) {
                return Err(format!("`{name}` 0, expected 1 or more"));
            }
        }
        let deeper = || format!("types nested deeper than {MAX_DEPTH} levels");
        let below = || depth.checked_sub(1).ok_or_else(deeper);
        match &self.kind {
            ItemKind::List(item) => item.check_to(below()?),
            ItemKind::Struct(fields) if fields.is_empty() => {
                Err("a structure without fields".to_owned())
            }
            ItemKind::Struct(fields) => {
                check_names(fields)?;
                let below = below()?;
                fields.iter().try_for_each(|(_, field)| field.check_to(below))
            }
            _ => Ok(()),
        }
    }

    fn number(&self, name: &str) -> Result<Option<&Value>, String> {
        match self.get(name) {
            None | Some(Value::None) => Ok(None),
            Some(number @ (Value::Int(_) | Value::Float(_))) => Ok(Some(number)),
            Some(other) => Err(format!("`{name}` {}, expected a number", what(other))),
        }
    }

    pub(crate) fn length(&self, name: &str) -> Result<Option<u64>, String> {
        match self.get(name) {
            None | Some(Value::None) => Ok(None),
            Some(value) => match value.as_u64() {
                Some(length) => Ok(Some(length)),
                None => Err(format!("`{name}` {}, expected an integer of at least 0", what(value))),
            },
        }
    }

    /// Converts a value to its stored form. The error describes why it cannot be stored.
    pub(crate) fn stored(&self, value: Value) -> Result<Value, (ErrorKind, String)> {
        let kind = self.kind.name();
        if value == Value::None {
            let none = format!("None, which its type `{kind}` does not allow");
            return self.is_nullable().then_some(value).ok_or((ErrorKind::InvalidArgument, none));
        }
        let other = |value: &Value| {
            Err((ErrorKind::TypeMismatch, format!("{}, expected `{kind}`", what(value))))
        };
        let stored = match (&self.kind, value) {
            (ItemKind::List(item), Value::List(items)) => {
                let items = items.into_iter().map(|value| item.stored(value));
                return items.collect::<Result<_, _>>().map(Value::List);
            }
            (ItemKind::Struct(fields), Value::Map(pairs)) => {
                let fields = fields.iter().map(|(name, field)| {
                    let value = pairs.iter().find(|(key, _)| key.as_str() == Some(name));
                    let missing = || (ErrorKind::TypeMismatch, format!("a map without `{name}`"));
                    let (key, value) = value.cloned().ok_or_else(missing)?;
                    Ok((key, field.stored(value)?))
                });
                return fields.collect::<Result<_, _>>().map(Value::Map);
            }
            (ItemKind::Other(_), _) => {
                let detail = format!("items of the type `{kind}` cannot be written");
                return Err((ErrorKind::Unsupported, detail));
            }
            (ItemKind::Float32, Value::Float(number)) => (number as f32).into(),
            (ItemKind::Float32, Value::Int(number)) => (number as f32).into(),
            (ItemKind::Float64, Value::Int(number)) => (number as f64).into(),
            (ItemKind::Complex64, Value::Complex { re, im }) => {
                Value::Complex { re: (re as f32).into(), im: (im as f32).into() }
            }
            (ItemKind::Bytes | ItemKind::VlBytes, Value::List(items)) => {
                // serde serializes a vector of bytes as a list of integers.
                let bytes = items.iter().map(|item| u8::try_from(item.as_u64()?).ok());
                match bytes.collect::<Option<_>>() {
                    Some(bytes) => Value::Bytes(bytes),
                    None => return other(&Value::List(items)),
                }
            }
            (_, value) => value,
        };
        let fits = match (&self.kind, &stored) {
            (ItemKind::Int8, Value::Int(number)) => i8::try_from(*number).is_ok(),
            (ItemKind::Int16, Value::Int(number)) => i16::try_from(*number).is_ok(),
            (ItemKind::Int32, Value::Int(number)) => i32::try_from(*number).is_ok(),
            (ItemKind::Int64 | ItemKind::Timestamp, Value::Int(number)) => {
                i64::try_from(*number).is_ok()
            }
            (ItemKind::UInt8, Value::Int(number)) => u8::try_from(*number).is_ok(),
            (ItemKind::UInt16, Value::Int(number)) => u16::try_from(*number).is_ok(),
            (ItemKind::UInt32, Value::Int(number)) => u32::try_from(*number).is_ok(),
            (ItemKind::UInt64, Value::Int(number)) => u64::try_from(*number).is_ok(),
            (ItemKind::Float32 | ItemKind::Float64, Value::Float(_))
            | (ItemKind::Complex64 | ItemKind::Complex128, Value::Complex { .. })
            | (ItemKind::Bool, Value::Bool(_))
            | (ItemKind::String | ItemKind::VlString | ItemKind::Utf8, Value::Str(_))
            | (ItemKind::Bytes | ItemKind::VlBytes, Value::Bytes(_)) => true,
            _ => false,
        };
        if !fits {
            return other(&stored);
        }
        self.check_bounds(&stored).map_err(|detail| (ErrorKind::InvalidArgument, detail))?;
        Ok(stored)
    }

    fn check_bounds(&self, value: &Value) -> Result<(), String> {
        type Fails = fn(Ordering) -> bool;
        let bounds: [(&str, Fails); 4] = [
            ("ge", Ordering::is_lt),
            ("gt", Ordering::is_le),
            ("le", Ordering::is_gt),
            ("lt", Ordering::is_ge),
        ];
        for (name, fails) in bounds {
            if let Some(bound) = self.number(name)?
                && compare(value, bound).is_some_and(fails)
            {
                return Err(format!("{}, expected `{name}` {}", what(value), what(bound)));
            }
        }
        let len = match value {
            Value::Str(text) => text.chars().count() as u64,
            Value::Bytes(bytes) => bytes.len() as u64,
            _ => return Ok(()),
        };
        let (min, max) = (self.length("min_length")?, self.length("max_length")?);
        if min.is_some_and(|min| len < min) || max.is_some_and(|max| len > max) {
            let (min, max) =
                (min.unwrap_or(0), max.map_or("any".to_owned(), |max| max.to_string()));
            return Err(format!("{} of length {len}, expected {min} to {max}", what(value)));
        }
        Ok(())
    }
}

/// Checks the number of options of a type. The error describes the fault.
fn check_count(options: usize) -> Result<(), String> {
    match options <= MAX_OPTIONS {
        true => Ok(()),
        false => Err(format!("a type with more than {MAX_OPTIONS} options")),
    }
}

/// Checks that the names of fields are unique. The error describes the fault.
fn check_names(fields: &[(String, ItemType)]) -> Result<(), String> {
    let mut names = BTreeSet::new();
    match fields.iter().find(|(name, _)| !names.insert(name.as_str())) {
        Some((name, _)) => Err(format!("two fields with the name {}", what(&name.as_str().into()))),
        None => Ok(()),
    }
}

/// Compares two numbers; `None` if one of the values is not a number, or is NaN.
fn compare(one: &Value, other: &Value) -> Option<Ordering> {
    let number = |value: &Value| match value {
        Value::Int(number) => Some(*number as f64),
        Value::Float(number) => Some(*number),
        _ => None,
    };
    match (one, other) {
        (Value::Int(one), Value::Int(other)) => Some(one.cmp(other)),
        _ => number(one)?.partial_cmp(&number(other)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The stored form of a value in a list of such items.
    fn stored(
        item: impl Into<ItemType>,
        value: impl Into<Value>,
    ) -> Result<Value, (ErrorKind, String)> {
        item.into().stored(value.into())
    }

    #[test]
    fn items_are_of_their_type() {
        use ItemKind::*;

        let bytes = |bytes: &[u8]| Value::Bytes(bytes.to_vec());
        let complex = |re, im| Value::Complex { re, im };
        let long = "é".repeat(32);
        let kept: Vec<(ItemKind, Value)> = vec![
            (Int8, (-128).into()),
            (Int16, 32767.into()),
            (Int32, i32::MIN.into()),
            (Int64, i64::MAX.into()),
            (UInt8, 255.into()),
            (UInt16, 65535.into()),
            (UInt32, u32::MAX.into()),
            (UInt64, u64::MAX.into()),
            (Float32, 0.5.into()),
            (Float32, f64::INFINITY.into()),
            (Float64, 0.1.into()),
            (Complex64, complex(0.5, 1.0)),
            (Complex128, complex(0.1, 1.0)),
            (Bool, true.into()),
            (Timestamp, i64::MIN.into()),
            (String, long.as_str().into()),
            (VlString, "x".repeat(1000).into()),
            (Utf8, "x".repeat(1000).into()),
            (Bytes, bytes(&[7; 32])),
            (VlBytes, bytes(&[7; 1000])),
            (List(Box::new(Int8.into())), Value::List(vec![1.into()])),
        ];
        for (kind, value) in kept {
            assert_eq!(stored(kind, value.clone()), Ok(value));
        }
        // The same results as in NumPy.
        let single = f64::from(0.1f32);
        assert_eq!(stored(Float32, 0.1), Ok(single.into()));
        assert_eq!(stored(Float32, 3), Ok(3.0.into()));
        assert_eq!(stored(Float64, 3), Ok(3.0.into()));
        assert_eq!(stored(Complex64, complex(0.1, 0.1)), Ok(complex(single, single)));
        assert_eq!(stored(Bytes, Value::List(vec![1.into(), 255.into()])), Ok(bytes(&[1, 255])));
        let field = |name: &str| (name.to_owned(), ItemType::from(Int8));
        let pairs = Value::from([("c", 3.into()), ("b", 2.into()), ("a", 1.into())]);
        let fields = Struct(vec![field("a"), field("b")]);
        let fit = Value::from([("a", 1.into()), ("b", 2.into())]);
        assert_eq!(stored(fields.clone(), pairs), Ok(fit));

        let refused: Vec<(ItemKind, Value)> = vec![
            (Int8, 128.into()),
            (Int16, 32768.into()),
            (Int32, (1i64 << 31).into()),
            (Int64, (1u64 << 63).into()),
            (Timestamp, (1u64 << 63).into()),
            (UInt8, 256.into()),
            (UInt16, (-1).into()),
            (UInt32, (1i64 << 32).into()),
            (UInt64, (-1).into()),
            (Int8, 1.0.into()),
            (Int8, true.into()),
            (Float64, "1".into()),
            (Complex64, 1.0.into()),
            (Bool, 1.into()),
            (String, bytes(b"a")),
            (Bytes, "a".into()),
            (Bytes, Value::List(vec![256.into()])),
            (List(Box::new(Int8.into())), 1.into()),
            (List(Box::new(Int8.into())), Value::List(vec!["a".into()])),
            (fields.clone(), 1.into()),
            (fields.clone(), Value::from([("a", 1.into())])),
            (fields, Value::from([("a", 1.into()), ("b", "2".into())])),
        ];
        for (kind, value) in refused {
            let (found, text) = stored(kind, value).unwrap_err();
            assert_eq!(found, ErrorKind::TypeMismatch, "{text}");
        }
        let other = stored(Other("ndarray".to_owned()), 1).unwrap_err();
        assert_eq!(other.0, ErrorKind::Unsupported);
    }

    #[test]
    fn items_are_within_their_bounds() {
        use ItemKind::*;

        let of = |kind: ItemKind, name, bound: Value| ItemType::from(kind).with(name, bound);
        let text = |name, len: i32| of(String, name, len.into());
        let both = |item: ItemType, good: Value, bad: Value| {
            assert!(item.stored(good).is_ok());
            let (kind, text) = item.stored(bad).unwrap_err();
            assert_eq!(kind, ErrorKind::InvalidArgument, "{text}");
        };
        both(of(Int32, "ge", 3.into()), 3.into(), 2.into());
        both(of(Int32, "gt", 2.5.into()), 3.into(), 2.into());
        both(of(UInt64, "le", u64::MAX.into()).with("gt", 3), u64::MAX.into(), 3.into());
        both(of(UInt64, "lt", u64::MAX.into()), (u64::MAX - 1).into(), u64::MAX.into());
        both(of(Float64, "ge", 1.into()), 1.0.into(), 0.9.into());
        both(of(Float64, "ge", 1.into()), f64::NAN.into(), 0.9.into());
        both(of(Float32, "lt", 1.5.into()), 1.25.into(), 1.5.into());
        both(text("max_length", 2), "éé".into(), "aaa".into());
        both(text("min_length", 2), "éé".into(), "é".into());
        both(String.into(), "a".repeat(32).into(), "a".repeat(33).into());
        both(Bytes.into(), Value::Bytes(vec![0; 32]), Value::Bytes(vec![0; 33]));
        for kind in [Int8, Bool, Complex64, String, VlBytes, List(Box::new(Int8.into()))] {
            let item = ItemType::from(kind);
            assert!(!item.is_nullable());
            assert_eq!(item.stored(Value::None).unwrap_err().0, ErrorKind::InvalidArgument);
            assert_eq!(item.nullable().stored(Value::None), Ok(Value::None));
        }
        assert!(of(Int8, "null_value", 3.into()).is_nullable());
        assert!(of(Int8, "null_storage", "mask".into()).is_nullable());
    }

    #[test]
    fn types_are_written_as_they_were_read() {
        use ItemKind::*;

        let fields = vec![
            ("a".to_owned(), ItemType::from(Float32).with("le", 3).with("ge", 1.5)),
            ("b".to_owned(), ItemType::from(List(Box::new(VlBytes.into()))).nullable()),
        ];
        let item = ItemType::from(Struct(fields)).nullable();
        let metadata = item.metadata();
        assert_eq!(
            metadata.to_string(),
            "{'kind': 'struct', 'fields': [{'name': 'a', 'kind': 'float32', 'ge': 1.5, 'le': 3}, \
             {'name': 'b', 'kind': 'list', 'item': {'kind': 'vlbytes', 'nullable': False, 'serializer': \
             'msgpack', 'batch_rows': 2048}, 'nullable': True, 'storage': 'batch', 'serializer': 'msgpack', \
             'batch_rows': 2048}], 'nullable': True}"
        );
        assert_eq!(ItemType::from_metadata(metadata), Ok(item.clone()));
        assert_eq!(item.check(), Ok(()));

        // Options that a later Python adds are kept.
        let other = Value::from([("kind", "dictionary".into()), ("ordered", true.into())]);
        let item = ItemType::from_metadata(other.clone()).unwrap();
        assert_eq!((item.kind(), item.metadata()), (&Other("dictionary".to_owned()), other));
        assert_eq!(item.kind().name(), "dictionary");
    }

    #[test]
    fn what_is_no_type_is_refused() {
        let kind = |name: &str| ("kind", Value::from(name));
        let bad = [
            Value::None,
            Value::Map(vec![]),
            Value::from([("kind", 5.into())]),
            Value::from([kind("list")]),
            Value::from([kind("list"), ("item", "int8".into())]),
            Value::from([kind("struct")]),
            Value::from([kind("struct"), ("fields", 5.into())]),
            Value::from([kind("struct"), ("fields", Value::List(vec![5.into()]))]),
            Value::from([
                kind("struct"),
                ("fields", Value::List(vec![Value::from([kind("int8")])])),
            ]),
        ];
        for metadata in bad {
            assert!(ItemType::from_metadata(metadata.clone()).is_err(), "{metadata}");
        }
        let nest = |levels| {
            (0..levels).fold(ItemType::from(ItemKind::Int8), |item, _| {
                ItemKind::List(Box::new(item)).into()
            })
        };
        assert_eq!(nest(MAX_DEPTH).check(), Ok(()));
        let of_maps = |levels| {
            (0..levels).fold(ItemType::from(ItemKind::Int8), |item, level| match level % 2 {
                0 => ItemKind::Struct(vec![("a".to_owned(), item)]).into(),
                _ => ItemKind::List(Box::new(item)).into(),
            })
        };
        assert_eq!(of_maps(MAX_DEPTH).check(), Ok(()));
        let of = |kind: ItemKind| ItemType::from(kind);
        let field = || ("a".to_owned(), of(ItemKind::Bool));
        for item in [
            nest(MAX_DEPTH + 1),
            of_maps(MAX_DEPTH + 1),
            of(ItemKind::Int8).with("max_length", 3),
            of(ItemKind::String).with("ge", 3),
            of(ItemKind::Int8).with("ge", "a"),
            of(ItemKind::String).with("max_length", -3),
            of(ItemKind::Struct(vec![])),
            of(ItemKind::Struct(vec![field(), field()])),
            of(ItemKind::Int8).with("kind", "int16"),
            nest(1).with("item", 5),
            of(ItemKind::Other("new".to_owned())).with("kind", "int16"),
            of(ItemKind::Struct(vec![("a".to_owned(), of(ItemKind::Bool).with("unit", "s"))])),
            nest(1).with("batch_rows", 0),
        ] {
            assert!(item.check().is_err(), "{item:?}");
        }
    }

    #[test]
    fn types_that_readers_refuse_are_not_written() {
        let with = |options: usize| {
            let item = ItemType::from(ItemKind::Other("new".to_owned()));
            (0..options).fold(item, |item, number| item.with(&format!("option {number}"), 1))
        };
        with(MAX_OPTIONS).check().unwrap();
        assert_eq!(ItemType::from_metadata(with(MAX_OPTIONS).metadata()), Ok(with(MAX_OPTIONS)));
        with(MAX_OPTIONS + 1).check().unwrap_err();
        ItemType::from_metadata(with(MAX_OPTIONS + 1).metadata()).unwrap_err();
    }
}
