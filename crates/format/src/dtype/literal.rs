//! Python literals, as far as dtypes and `.npy` headers use them.

/// A syntax error: the expected text, and its position in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unlike {
    pub(crate) at: usize,
    pub(crate) expected: String,
}

impl Unlike {
    /// Creates an error about the complete text.
    pub(crate) fn new(expected: impl Into<String>) -> Self {
        Self { at: 0, expected: expected.into() }
    }
}

pub(crate) type Result<T, E = Unlike> = std::result::Result<T, E>;

/// The value of a literal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    Str(String),
    Int(u64),
    Bool(bool),
    None,
    /// `numpy.record`, which is not a literal; Python writes it for the dtype of a record array.
    Record,
    List(Vec<Value>),
    Tuple(Vec<Value>),
    Dict(Vec<(Value, Value)>),
}

impl Value {
    /// Parses a text that consists of one literal, nested at most `nesting` levels deep.
    pub(crate) fn parse(text: &str, nesting: usize) -> Result<Self> {
        let mut parser = Parser { text, at: 0 };
        let value = parser.value(nesting)?;
        parser.skip_space();
        match parser.peek() {
            None => Ok(value),
            Some(_) => Err(parser.unexpected("nothing more")),
        }
    }

    pub(crate) fn as_str(&self) -> Option<&str> {
        if let Self::Str(text) = self { Some(text) } else { None }
    }

    pub(crate) fn as_int(&self) -> Option<u64> {
        if let Self::Int(number) = self { Some(*number) } else { None }
    }

    pub(crate) fn as_usize(&self) -> Option<usize> {
        self.as_int().and_then(|number| number.try_into().ok())
    }

    pub(crate) fn as_bool(&self) -> Option<bool> {
        if let Self::Bool(value) = self { Some(*value) } else { None }
    }

    /// Returns the values of a list or a tuple.
    pub(crate) fn as_sequence(&self) -> Option<&[Value]> {
        if let Self::List(values) | Self::Tuple(values) = self { Some(values) } else { None }
    }

    /// Returns the value of a key of a dictionary.
    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        let Self::Dict(entries) = self else { return None };
        entries.iter().find(|(name, _)| name.as_str() == Some(key)).map(|(_, value)| value)
    }
}

/// Formats a text like Python's `repr`.
pub(crate) fn quote(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::from(quote);
    for each in text.chars() {
        match each {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            each if each == quote => out.extend(['\\', each]),
            // All control characters of Unicode have codes below 256.
            each if each.is_control() => out.push_str(&format!("\\x{:02x}", u32::from(each))),
            each => out.push(each),
        }
    }
    out.push(quote);
    out
}

/// Formats numbers as a Python tuple: `()`, `(3,)`, `(3, 4)`.
pub(crate) fn tuple(numbers: &[u64]) -> String {
    match numbers {
        [one] => format!("({one},)"),
        all => format!("({})", all.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")),
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek();
        self.at += next.map_or(0, char::len_utf8);
        next
    }

    /// Consumes `wanted` if the text continues with it.
    fn eat(&mut self, wanted: &str) -> bool {
        let found = self.text[self.at..].starts_with(wanted);
        self.at += if found { wanted.len() } else { 0 };
        found
    }

    fn skip_space(&mut self) {
        while self.peek().is_some_and(char::is_whitespace) {
            self.next();
        }
    }

    fn unexpected(&self, expected: &str) -> Unlike {
        Unlike { at: self.at, expected: expected.to_owned() }
    }

    /// Parses a value of at most `nesting` levels.
    fn value(&mut self, nesting: usize) -> Result<Value> {
        self.skip_space();
        let inner = nesting.checked_sub(1);
        let inner = inner.ok_or_else(|| self.unexpected("less deeply nested brackets"))?;
        match self.peek() {
            Some(quote @ ('\'' | '"')) => self.string(quote).map(Value::Str),
            Some('0'..='9') => self.number(),
            Some('[') => {
                self.next();
                Ok(Value::List(self.values(']', inner)?.0))
            }
            Some('(') => {
                self.next();
                let (mut values, comma) = self.values(')', inner)?;
                match values.pop() {
                    // Parentheses without a comma are not a tuple.
                    Some(value) if values.is_empty() && !comma => Ok(value),
                    last => {
                        values.extend(last);
                        Ok(Value::Tuple(values))
                    }
                }
            }
            Some('{') => {
                self.next();
                self.dict(inner)
            }
            _ if self.eat("True") => Ok(Value::Bool(true)),
            _ if self.eat("False") => Ok(Value::Bool(false)),
            _ if self.eat("None") => Ok(Value::None),
            _ if self.eat("numpy.record") => Ok(Value::Record),
            _ => Err(self.unexpected("a literal")),
        }
    }

    /// Parses the values up to `close`, and returns whether a comma follows the last one.
    fn values(&mut self, close: char, nesting: usize) -> Result<(Vec<Value>, bool)> {
        let mut values = Vec::new();
        let mut comma = false;
        loop {
            self.skip_space();
            if self.peek() == Some(close) {
                self.next();
                return Ok((values, comma));
            }
            if !comma && !values.is_empty() {
                return Err(self.unexpected("a comma"));
            }
            values.push(self.value(nesting)?);
            self.skip_space();
            comma = self.eat(",");
        }
    }

    fn dict(&mut self, nesting: usize) -> Result<Value> {
        let mut entries = Vec::new();
        let mut comma = true;
        loop {
            self.skip_space();
            if self.eat("}") {
                return Ok(Value::Dict(entries));
            }
            if !comma {
                return Err(self.unexpected("a comma"));
            }
            let key = self.value(nesting)?;
            self.skip_space();
            if !self.eat(":") {
                return Err(self.unexpected("a colon"));
            }
            entries.push((key, self.value(nesting)?));
            self.skip_space();
            comma = self.eat(",");
        }
    }

    fn number(&mut self) -> Result<Value> {
        let start = self.at;
        while self.peek().is_some_and(|each| each.is_ascii_digit()) {
            self.next();
        }
        let digits = &self.text[start..self.at];
        let number = digits.parse();
        let number =
            number.map_err(|_| Unlike { at: start, expected: "a smaller number".into() })?;
        // Python 2 wrote long integers in this form.
        self.eat("L");
        Ok(Value::Int(number))
    }

    fn string(&mut self, quote: char) -> Result<String> {
        self.next();
        let mut out = String::new();
        loop {
            match self.next() {
                None => return Err(self.unexpected("a quote")),
                Some(each) if each == quote => return Ok(out),
                Some('\\') => out.push(self.escaped()?),
                Some(each) => out.push(each),
            }
        }
    }

    fn escaped(&mut self) -> Result<char> {
        Ok(match self.next() {
            Some(each @ ('\\' | '\'' | '"')) => each,
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('x') => self.code(2)?,
            Some('u') => self.code(4)?,
            Some('U') => self.code(8)?,
            _ => return Err(self.unexpected("a Python escape sequence before this")),
        })
    }

    fn code(&mut self, digits: usize) -> Result<char> {
        let code = self.text.get(self.at..self.at + digits);
        let code = code.and_then(|code| u32::from_str_radix(code, 16).ok());
        self.at += if code.is_some() { digits } else { 0 };
        code.and_then(char::from_u32).ok_or_else(|| self.unexpected("the code of a character"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_read() {
        let text = |text: &str| Value::Str(text.to_owned());
        for (source, expected) in [
            ("'a\\'b'", text("a'b")),
            (" \"\\x41\\u00e9\\\\\" ", text("Aé\\")),
            ("'é'", text("é")),
            ("(1)", Value::Int(1)),
            ("(1,)", Value::Tuple(vec![Value::Int(1)])),
            ("(3L, 4)", Value::Tuple(vec![Value::Int(3), Value::Int(4)])),
            ("()", Value::Tuple(vec![])),
            ("[True, None]", Value::List(vec![Value::Bool(true), Value::None])),
            ("{'a': 1, }", Value::Dict(vec![(text("a"), Value::Int(1))])),
        ] {
            assert_eq!(Value::parse(source, 32).unwrap(), expected, "{source}");
        }
    }

    #[test]
    fn what_is_no_literal_is_refused() {
        let deep = "[".repeat(1_000_000);
        for source in [
            "",
            "'a",
            "[1",
            "[1 2]",
            "[,]",
            "(,)",
            "{1}",
            "{'a': }",
            "1 2",
            "-1",
            "'\\x4'",
            "'\\xé'",
            "'\\ud800'",
            "99999999999999999999",
            "a",
            "'\\",
            &deep,
        ] {
            assert!(Value::parse(source, 32).is_err(), "{:.20}", source);
        }
    }

    #[test]
    fn quotes_are_pythons() {
        assert_eq!(quote("a"), "'a'");
        assert_eq!(quote("a'b"), "\"a'b\"");
        assert_eq!(quote("a'\"\n\u{1}é"), "'a\\'\"\\n\\x01é'");
        for text in ["a'b\"c\\", "\u{85}\t", "日本"] {
            assert_eq!(Value::parse(&quote(text), 1).unwrap().as_str(), Some(text));
        }
    }
}
