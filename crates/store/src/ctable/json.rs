//! The JSON of schemas, as Python's module `json` writes it: with `NaN`, `Infinity`, and values that Python marks
//! because JSON cannot represent them.

use std::fmt::Write;

use crate::blosc2::{ErrorKind, Value};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use crate::tag::{Fault, invalid_data as invalid};

/// Maximum nesting of lists and maps.
const MAX_DEPTH: usize = 127;
/// Maximum bytes of a text.
const MAX_TEXT: usize = 16 << 20;
/// Maximum bytes of memory that one schema may take.
const MAX_MEMORY: usize = 96 << 20;

/// The memory that a schema may still take: a few bytes of a file can make very many columns. Time is proportional to it.
#[derive(Debug)]
pub(super) struct Allowance {
    left: usize,
}

impl Allowance {
    pub(super) fn of_schema() -> Self {
        Self { left: MAX_MEMORY }
    }

    pub(super) fn take(&mut self, nbytes: usize) -> Result<(), Fault> {
        match self.left.checked_sub(nbytes) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => {
                let detail =
                    format!("its schema takes more than {} MiB of memory", MAX_MEMORY >> 20);
                Err((ErrorKind::TooLarge, detail))
            }
        }
    }
}

pub(super) fn parse(text: &str, allowance: &mut Allowance) -> Result<Value, Fault> {
    if text.len() > MAX_TEXT {
        let (len, max) = (text.len(), MAX_TEXT >> 20);
        let detail = format!("its schema has {len} bytes, only {max} MiB are supported");
        return Err((ErrorKind::TooLarge, detail));
    }
    let mut parser = Parser { text, at: 0, allowance };
    let value = parser.value(MAX_DEPTH)?;
    parser.space();
    match parser.at == text.len() {
        true => Ok(value),
        false => Err(parser.unexpected("the end")),
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    allowance: &'a mut Allowance,
}

impl Parser<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn unexpected(&self, expected: &str) -> Fault {
        let at = self.at;
        invalid(match self.rest().chars().next() {
            Some(char) => {
                format!("its schema is not JSON: {char:?} at byte {at}, expected {expected}")
            }
            None => format!("its schema is not JSON: it ends at byte {at}, expected {expected}"),
        })
    }

    fn space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
    }

    /// Skips a token. Returns whether it was there.
    fn skip(&mut self, token: &str) -> bool {
        let is_here = self.rest().starts_with(token);
        if is_here {
            self.at += token.len();
        }
        is_here
    }

    fn value(&mut self, depth: usize) -> Result<Value, Fault> {
        self.space();
        const NAMED: [(&str, Value); 6] = [
            ("null", Value::None),
            ("true", Value::Bool(true)),
            ("false", Value::Bool(false)),
            ("NaN", Value::Float(f64::NAN)),
            ("Infinity", Value::Float(f64::INFINITY)),
            ("-Infinity", Value::Float(f64::NEG_INFINITY)),
        ];
        let inner = || depth.checked_sub(1).ok_or_else(|| invalid("its schema is nested too deep"));
        match self.rest().bytes().next() {
            Some(b'"') => self.text().map(Value::Str),
            Some(b'[') => self.list(inner()?),
            Some(b'{') => self.map(inner()?),
            _ => {
                let named = NAMED.into_iter().find(|(name, _)| self.skip(name));
                named.map_or_else(|| self.number(), |(_, value)| Ok(value))
            }
        }
    }

    /// Parses the items of a list or a map with `item`, up to its end. Each item takes `memory` bytes.
    fn items(
        &mut self,
        end: &str,
        memory: usize,
        mut item: impl FnMut(&mut Self) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        self.at += 1;
        self.space();
        if self.skip(end) {
            return Ok(());
        }
        loop {
            self.allowance.take(memory)?;
            item(self)?;
            self.space();
            if self.skip(end) {
                return Ok(());
            }
            if !self.skip(",") {
                return Err(self.unexpected(&format!("`,` or `{end}`")));
            }
        }
    }

    fn list(&mut self, depth: usize) -> Result<Value, Fault> {
        let mut items = Vec::new();
        // A vector that grows holds its items twice.
        self.items("]", 2 * size_of::<Value>(), |parser| {
            items.push(parser.value(depth)?);
            Ok(())
        })?;
        Ok(Value::List(items))
    }

    fn map(&mut self, depth: usize) -> Result<Value, Fault> {
        let mut pairs = Vec::new();
        self.items("}", 4 * size_of::<Value>(), |parser| {
            parser.space();
            if !parser.rest().starts_with('"') {
                return Err(parser.unexpected("a string"));
            }
            let key = parser.text()?;
            parser.space();
            if !parser.skip(":") {
                return Err(parser.unexpected("`:`"));
            }
            pairs.push((Value::Str(key), parser.value(depth)?));
            Ok(())
        })?;
        Ok(marked(&pairs).unwrap_or(Value::Map(pairs)))
    }

    fn number(&mut self) -> Result<Value, Fault> {
        let is_part = |char: char| matches!(char, '0'..='9' | '-' | '+' | '.' | 'e' | 'E');
        let rest = self.rest();
        let number = &rest[..rest.find(|char| !is_part(char)).unwrap_or(rest.len())];
        // Rust's parsers also accept forms that JSON does not have.
        let digits = number.strip_prefix('-').unwrap_or(number);
        let is_json = digits.starts_with(|char: char| char.is_ascii_digit())
            && !digits.ends_with('.')
            && !digits.contains(".e")
            && !digits.contains(".E");
        let value = match number.parse::<i128>() {
            Ok(number) => Some(Value::Int(number)),
            // Python reads numbers out of range as infinity.
            Err(_) => number.parse::<f64>().ok().map(Value::Float),
        };
        match value.filter(|_| is_json) {
            Some(value) => {
                self.at += number.len();
                Ok(value)
            }
            None => Err(self.unexpected("a value")),
        }
    }

    fn text(&mut self) -> Result<String, Fault> {
        self.at += 1;
        let mut text = String::new();
        loop {
            let rest = self.rest();
            let len = rest.find(['"', '\\']).unwrap_or(rest.len());
            text.push_str(&rest[..len]);
            self.at += len;
            if self.skip("\"") {
                self.allowance.take(text.capacity())?;
                return Ok(text);
            }
            if !self.skip("\\") {
                return Err(self.unexpected("the end of a string"));
            }
            text.push(self.escaped()?);
        }
    }

    /// The character after a backslash.
    fn escaped(&mut self) -> Result<char, Fault> {
        let Some(char) = self.rest().chars().next() else {
            return Err(self.unexpected("an escaped character"));
        };
        let named = match char {
            '"' | '\\' | '/' => char,
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                self.at += 1;
                return self.unicode();
            }
            _ => return Err(self.unexpected("an escaped character")),
        };
        self.at += 1;
        Ok(named)
    }

    /// The character of one or two escaped UTF-16 units.
    fn unicode(&mut self) -> Result<char, Fault> {
        let first = self.unit()?;
        let mut units = vec![first];
        if (0xd800..0xdc00).contains(&first) && self.skip("\\u") {
            units.push(self.unit()?);
        }
        match char::decode_utf16(units).next() {
            Some(Ok(char)) => Ok(char),
            _ => Err(invalid("its schema has a string that is not Unicode")),
        }
    }

    fn unit(&mut self) -> Result<u16, Fault> {
        let digits =
            self.rest().get(..4).filter(|four| four.bytes().all(|b| b.is_ascii_hexdigit()));
        match digits.and_then(|digits| u16::from_str_radix(digits, 16).ok()) {
            Some(unit) => {
                self.at += 4;
                Ok(unit)
            }
            None => Err(self.unexpected("four hexadecimal digits")),
        }
    }
}

/// The value that a map represents, if Python has marked it.
fn marked(pairs: &[(Value, Value)]) -> Option<Value> {
    let get = |name| pairs.iter().rfind(|(key, _)| key.as_str() == Some(name)).map(|(_, it)| it);
    let is_marked = |mark| get(mark) == Some(&Value::Bool(true));
    if is_marked("__bytes__") {
        return BASE64_STANDARD.decode(get("base64")?.as_str()?).ok().map(Value::Bytes);
    }
    if is_marked("__complex__") {
        let part = |name| match get(name)? {
            Value::Float(number) => Some(*number),
            Value::Int(number) => Some(*number as f64),
            _ => None,
        };
        return Some(Value::Complex { re: part("real")?, im: part("imag")? });
    }
    None
}

/// Writes a value as Python's `json.dumps`. The error is a value that JSON cannot represent.
pub(super) fn write(value: &Value, out: &mut String) -> Result<(), Value> {
    let all = |items: &[Value], out: &mut String| {
        out.push('[');
        for (number, item) in items.iter().enumerate() {
            out.push_str(if number > 0 { ", " } else { "" });
            write(item, out)?;
        }
        out.push(']');
        Ok(())
    };
    match value {
        Value::None => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Int(number) => push(out, format_args!("{number}")),
        Value::Float(number) if number.is_nan() => out.push_str("NaN"),
        Value::Float(f64::INFINITY) => out.push_str("Infinity"),
        Value::Float(f64::NEG_INFINITY) => out.push_str("-Infinity"),
        Value::Float(number) => push(out, format_args!("{number:?}")),
        Value::Str(text) => write_text(text, out),
        Value::Bytes(bytes) => {
            let text = BASE64_STANDARD.encode(bytes);
            push(out, format_args!("{{\"__bytes__\": true, \"base64\": \"{text}\"}}"));
        }
        Value::Complex { re, im } => {
            out.push_str("{\"__complex__\": true, \"real\": ");
            write(&Value::Float(*re), out)?;
            out.push_str(", \"imag\": ");
            write(&Value::Float(*im), out)?;
            out.push('}');
        }
        Value::List(items) | Value::Tuple(items) => return all(items, out),
        Value::Map(pairs) => {
            out.push('{');
            for (number, (key, item)) in pairs.iter().enumerate() {
                out.push_str(if number > 0 { ", " } else { "" });
                write_text(key.as_str().ok_or_else(|| key.clone())?, out);
                out.push_str(": ");
                write(item, out)?;
            }
            out.push('}');
        }
        other => return Err(other.clone()),
    }
    Ok(())
}

fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _ = out.write_fmt(text);
}

fn write_text(text: &str, out: &mut String) {
    out.push('"');
    for char in text.chars() {
        match char {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            ' '..='~' => out.push(char),
            char => {
                for unit in char.encode_utf16(&mut [0; 2]) {
                    push(out, format_args!("\\u{unit:04x}"));
                }
            }
        }
    }
    out.push('"');
}

#[cfg(all(test, feature = "c"))]
mod tests {
    use super::*;

    fn value(text: &str) -> Result<Value, Fault> {
        parse(text, &mut Allowance::of_schema())
    }

    #[test]
    fn numbers_that_json_does_not_have_are_read() {
        let text = r#"{"NaN": NaN, "a\"NaN\\": [Infinity, -Infinity, 1, -2, 18446744073709551615, 1.5],
            "é": {"__bytes__": true, "base64": "AP8="}, "c": {"__complex__": true, "real": 1, "imag": NaN},
            "none": null, "text": "-Infinity \\"}"#;
        let value = value(text).unwrap();
        assert!(matches!(value.get("NaN"), Some(Value::Float(number)) if number.is_nan()));
        let infinite = [f64::INFINITY.into(), f64::NEG_INFINITY.into()];
        let others = [1.into(), (-2).into(), u64::MAX.into(), 1.5.into()];
        assert_eq!(value.get("a\"NaN\\"), Some(&Value::List([&infinite[..], &others].concat())));
        assert_eq!(value.get("é"), Some(&Value::Bytes(vec![0, 255])));
        let complex = value.get("c").unwrap();
        assert!(matches!(complex, Value::Complex { re: 1.0, im } if im.is_nan()), "{complex:?}");
        assert_eq!(value.get("text").and_then(Value::as_str), Some("-Infinity \\"));
        assert_eq!(value.get("none"), Some(&Value::None));
    }

    #[test]
    fn what_is_written_is_read() {
        let values = [
            Value::None,
            true.into(),
            i64::MIN.into(),
            u64::MAX.into(),
            1e300.into(),
            (-0.0).into(),
            5e-324.into(),
            f64::INFINITY.into(),
            "a\"\\/\u{8}\u{1f}\u{7f}\n é𝄞".into(),
            Value::Bytes(vec![0, 255, 7]),
            Value::Complex { re: 1.0, im: -0.5 },
        ];
        let map = Value::from([("list", Value::List(values.to_vec())), ("", Value::List(vec![]))]);
        let mut text = String::new();
        write(&map, &mut text).unwrap();
        assert!(text.is_ascii(), "{text}");
        assert_eq!(value(&text).unwrap(), map);
        assert!(write(&Value::Set(vec![]), &mut text).is_err());
    }

    #[test]
    fn what_is_no_json_is_refused() {
        for text in [
            "",
            "{",
            "[1,",
            "[1 2]",
            "{\"a\" 1}",
            "{1: 2}",
            "\"a",
            "\"\\x\"",
            "\"\\u12\"",
            "\"\\ud800\"",
            "\"\\ud800\\u0041\"",
            "1.",
            "+1",
            ".5",
            "1.e5",
            "nan",
            "[] []",
            "tru",
            "-",
            "--1",
            "'a'",
        ] {
            assert!(value(text).is_err(), "{text}");
        }
        for text in ["[".repeat(128), "{\"a\":".repeat(100_000)] {
            assert_eq!(value(&text).unwrap_err().0, ErrorKind::InvalidData);
        }
        assert_eq!(value("\"\\ud834\\udd1e\\/\"").unwrap(), "𝄞/".into());
    }
}
