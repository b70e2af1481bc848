//! Values as text, in Python's notation.

use std::fmt;

use crate::dtype::Kind;

use super::Value;
use super::plain::{Node, Plain};

/// Writes the value in a notation like that of Python's `repr`. Long arrays are written in full.
///
/// The notation differs from Python in these cases:
/// - For a frame, only the length is written.
/// - Dates are written as integers.
/// - In arrays, `?` is a float of more than 64 bits, or a string that is not Unicode.
/// - `...` replaces all items of an array whose text would have far more lists and items than the array has bytes.
///
/// ```
/// use blosc2_format::value::Value;
///
/// let value = Value::Tuple(vec![1.5.into(), Value::None, Value::Complex { re: 0.0, im: 1.0 }]);
/// assert_eq!(value.to_string(), "(1.5, None, 1j)");
/// ```
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::Bool(true) => f.write_str("True"),
            Self::Bool(false) => f.write_str("False"),
            Self::Int(number) => write!(f, "{number}"),
            Self::Float(number) => float(f, *number),
            Self::Str(text) => quoted(f, text),
            Self::Bytes(bytes) => write!(f, "b'{}'", bytes.escape_ascii()),
            Self::List(items) => list(f, "[", items, "]"),
            Self::Tuple(items) if items.len() == 1 => list(f, "(", items, ",)"),
            Self::Tuple(items) => list(f, "(", items, ")"),
            Self::Set(items) if items.is_empty() => f.write_str("set()"),
            Self::Set(items) => list(f, "{", items, "}"),
            Self::Map(pairs) => {
                f.write_str("{")?;
                for (index, (key, value)) in pairs.iter().enumerate() {
                    let comma = if index > 0 { ", " } else { "" };
                    write!(f, "{comma}{key}: {value}")?;
                }
                f.write_str("}")
            }
            Self::Complex { re, im } => complex(f, *re, *im),
            Self::Array(array) => {
                let (dtype, shape) = (array.dtype(), array.shape());
                f.write_str("array(")?;
                let all = Node::Items(dtype, shape, array.data());
                items(f, shape, self.check_plain().is_ok().then_some(all))?;
                f.write_str(", dtype=")?;
                match dtype.kind() {
                    Some(_) => write!(f, "'{dtype}')"),
                    None => write!(f, "{dtype})"),
                }
            }
            Self::Objects { shape, values } => {
                f.write_str("array(")?;
                items(f, shape, Some(Node::objects(shape, values)))?;
                f.write_str(", dtype=object)")
            }
            Self::Frame(bytes) => write!(f, "<frame of {} bytes>", bytes.len()),
            Self::Reference(value) => write!(f, "<reference {value}>"),
            Self::Ext(kind, bytes) => {
                write!(f, "ExtType(code={kind}, data=b'{}')", bytes.escape_ascii())
            }
        }
    }
}

fn list<T: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    open: &str,
    items: impl IntoIterator<Item = T>,
    close: &str,
) -> fmt::Result {
    f.write_str(open)?;
    for (index, item) in items.into_iter().enumerate() {
        let comma = if index > 0 { ", " } else { "" };
        write!(f, "{comma}{item}")?;
    }
    f.write_str(close)
}

/// Writes the items of an array, or its shape if it has no items; `...` if there are too many items.
fn items(f: &mut fmt::Formatter<'_>, shape: &[u64], items: Option<Node<'_>>) -> fmt::Result {
    match shape {
        [0] => f.write_str("[]"),
        shape if shape.contains(&0) => {
            let shape: Vec<Value> = shape.iter().map(|&side| side.into()).collect();
            write!(f, "[], shape={}", Value::Tuple(shape))
        }
        _ => match items {
            Some(items) => write!(f, "{}", Item(items)),
            None => f.write_str("..."),
        },
    }
}

/// A part of an array.
struct Item<'a>(Node<'a>);

impl fmt::Display for Item<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Node::Value(value) = self.0 {
            return value.fmt(f);
        }
        match self.0.plain() {
            Ok(Plain::None) => f.write_str("None"),
            Ok(Plain::Bool(value)) => Value::Bool(value).fmt(f),
            Ok(Plain::Int(number)) => number.fmt(f),
            Ok(Plain::Float(number)) => float(f, number),
            Ok(Plain::Str(text)) => quoted(f, &text),
            Ok(Plain::Bytes(bytes) | Plain::Ext(_, bytes)) => {
                write!(f, "b'{}'", bytes.escape_ascii())
            }
            Ok(Plain::List(mut items)) => {
                if let Node::Items(dtype, [], _) = self.0
                    && dtype.kind() == Some(Kind::Complex)
                    && let (Some(Node::Float(re)), Some(Node::Float(im))) =
                        (items.next(), items.next())
                {
                    return complex(f, re, im);
                }
                list(f, "[", items.map(Item), "]")
            }
            Ok(Plain::Map(fields)) => {
                let close = if fields.len() == 1 { ",)" } else { ")" };
                list(f, "(", fields.map(|(_, item)| Item(item)), close)
            }
            // A number without a Rust type, or a string that is not Unicode.
            Err(_) => f.write_str("?"),
        }
    }
}

fn float(f: &mut fmt::Formatter<'_>, number: f64) -> fmt::Result {
    if number.is_nan() { f.write_str("nan") } else { write!(f, "{number:?}") }
}

/// Python omits a real part of 0, and a fraction of 0.
fn complex(f: &mut fmt::Formatter<'_>, re: f64, im: f64) -> fmt::Result {
    let part = |number: f64| match number.is_nan() {
        true => "nan".to_owned(),
        false => format!("{number:?}").trim_end_matches(".0").to_owned(),
    };
    if re == 0.0 && re.is_sign_positive() {
        return write!(f, "{}j", part(im));
    }
    let plus = if im.is_sign_negative() && !im.is_nan() { "" } else { "+" };
    write!(f, "({}{plus}{}j)", part(re), part(im))
}

fn quoted(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    write!(f, "{quote}")?;
    for each in text.chars() {
        match each {
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            each if each == quote => write!(f, "\\{each}")?,
            // All control characters of Unicode have codes below 256.
            each if each.is_control() => write!(f, "\\x{:02x}", u32::from(each))?,
            each => write!(f, "{each}")?,
        }
    }
    write!(f, "{quote}")
}
