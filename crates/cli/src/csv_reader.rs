//! CSV files as record batches: the types of the columns, and null values.
//!
//! The library for CSV files does not tell an empty field from an empty string in quotes. A filter in front of it marks
//! the empty fields, which are null.

use std::io::{self, BufRead, Read};
use std::sync::Arc;

use anyhow::{Result, bail};
use arrow_array::cast::AsArray;
use arrow_array::timezone::Tz;
use arrow_array::{Array, RecordBatchReader, StringArray};
use arrow_cast::parse::string_to_datetime;
use arrow_csv::ReaderBuilder;
use arrow_csv::reader::Format;
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use regex::Regex;

/// Rows of a batch.
pub(crate) const ROWS: usize = 1 << 16;

/// Stands for a null value. Unicode reserves this character for the use inside programs.
const NULL: &str = "\u{10fffe}";

/// The bytes of a CSV file, with a mark in each empty field without quotes.
struct Marked<R> {
    inner: R,
    state: State,
    /// Commas in the line, and in the first line.
    commas: usize,
    header: Option<usize>,
    /// Whether the last byte was a carriage return.
    is_return: bool,
    /// The line, from 1, and that of the last quote that begins a field.
    line: u64,
    opened: u64,
    is_end: bool,
    ready: Vec<u8>,
    at: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// At the start of a field.
    Start,
    Plain,
    Quoted,
    /// After a quote in a field with quotes.
    Quote,
}

impl<R: BufRead> Marked<R> {
    fn new(inner: R) -> Self {
        let state = State::Start;
        let ready = Vec::new();
        Self {
            inner,
            state,
            commas: 0,
            header: None,
            is_return: false,
            line: 1,
            opened: 1,
            is_end: false,
            ready,
            at: 0,
        }
    }

    fn fill(&mut self) -> io::Result<()> {
        self.ready.clear();
        self.at = 0;
        let Self { inner, state, commas, header, is_return, ready, line, opened, .. } = self;
        let bytes = inner.fill_buf()?;
        let len = bytes.len();
        // An empty line has one empty field if the header has one.
        let is_null = |commas: usize, header: Option<usize>| commas > 0 || header == Some(0);
        for &byte in bytes {
            let is_line_feed = *is_return && byte == b'\n';
            *is_return = byte == b'\r' && *state != State::Quoted;
            *line += u64::from(byte == b'\n');
            let next = match (*state, byte) {
                (State::Quoted, b'"') => State::Quote,
                (State::Quoted, _) | (State::Quote, b'"') => State::Quoted,
                (_, b',') => State::Start,
                (_, b'\r' | b'\n') => State::Start,
                (State::Start, b'"') => State::Quoted,
                _ => State::Plain,
            };
            if next == State::Start && !is_line_feed {
                let is_comma = byte == b',';
                if *state == State::Start && (is_comma || is_null(*commas, *header)) {
                    ready.extend(NULL.as_bytes());
                }
                match is_comma {
                    true => *commas += 1,
                    false => {
                        // Empty lines can be before the header.
                        if *state != State::Start || *commas > 0 {
                            header.get_or_insert(*commas);
                        }
                        *commas = 0;
                    }
                }
            }
            if next == State::Quoted && *state == State::Start {
                *opened = *line;
            }
            *state = next;
            ready.push(byte);
        }
        if len == 0 && !self.is_end {
            self.is_end = true;
            if *state == State::Quoted {
                let detail = format!("the quote that begins in line {opened} has no end");
                return Err(io::Error::new(io::ErrorKind::InvalidData, detail));
            }
            if *state == State::Start && *commas > 0 {
                ready.extend(NULL.as_bytes());
            }
        }
        inner.consume(len);
        Ok(())
    }
}

impl<R: BufRead> Read for Marked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.ready.len() && !self.is_end {
            self.fill()?;
        }
        let left = &self.ready[self.at..];
        let len = left.len().min(buffer.len());
        buffer[..len].copy_from_slice(&left[..len]);
        self.at += len;
        Ok(len)
    }
}

fn format() -> Result<Format> {
    let null = Regex::new(&format!("^{NULL}$"))?;
    Ok(Format::default().with_header(true).with_null_regex(null))
}

/// Skips the byte order mark with which some programs begin a file.
fn without_mark<R: BufRead>(mut file: R) -> io::Result<R> {
    if file.fill_buf()?.starts_with("\u{feff}".as_bytes()) {
        file.consume(3);
    }
    Ok(file)
}

/// Reads a CSV file with these types, and the columns at these indices.
pub(crate) fn reader(
    file: impl BufRead + Send + 'static,
    schema: SchemaRef,
    columns: Option<Vec<usize>>,
) -> Result<impl RecordBatchReader + Send> {
    let mut builder = ReaderBuilder::new(schema).with_format(format()?).with_batch_size(ROWS);
    if let Some(columns) = columns {
        builder = builder.with_projection(columns);
    }
    Ok(builder.build(Marked::new(without_mark(file)?))?)
}

/// Finds the types of the columns, from all rows: booleans, integers, floats, timestamps (ISO 8601) or strings. The first
/// line contains the names.
pub(crate) fn infer(file: impl BufRead + io::Seek + Send + 'static) -> Result<Schema> {
    let mut file = file;
    let names = format()?.infer_schema(Marked::new(without_mark(&mut file)?), Some(0))?.0;
    if names.fields().is_empty() {
        bail!("it has no line with the names of the columns");
    }
    if let Some(at) = names.fields().iter().position(|field| field.name() == NULL) {
        bail!("its column {at} (from 0) has no name in the first line");
    }
    file.rewind()?;
    let texts = names.fields().iter().map(|field| Field::new(field.name(), DataType::Utf8, true));
    let texts = Arc::new(Schema::new(texts.collect::<Vec<_>>()));
    let mut guesses = vec![Guess::new(); texts.fields().len()];
    for batch in reader(file, Arc::clone(&texts), None)? {
        for (guess, column) in guesses.iter_mut().zip(batch?.columns()) {
            guess.add(column.as_string());
        }
    }
    let fields = texts.fields().iter().zip(guesses);
    let fields =
        fields.map(|(field, guess)| Field::new(field.name(), guess.data_type(), guess.is_nullable));
    Ok(Schema::new(fields.collect::<Vec<_>>()))
}

/// The types that all values of a column can have.
#[derive(Debug, Clone)]
struct Guess {
    is_nullable: bool,
    is_empty: bool,
    boolean: bool,
    int: bool,
    uint: bool,
    float: bool,
    /// Whether one of the integers is negative, and whether one is above those of 64 bits with a sign.
    negative: bool,
    above: bool,
    /// Whether one of the floats is a number, not the name of infinity or NaN.
    number: bool,
    time: bool,
    /// Whether all timestamps are in the range of nanoseconds.
    has_nanoseconds: bool,
    /// The most digits after the second of a timestamp.
    digits: usize,
    /// How many timestamps have a time zone, and how many have none.
    zones: [bool; 2],
    /// The time zone of timestamps that state none.
    utc: Option<Tz>,
}

impl Guess {
    fn new() -> Self {
        Self {
            is_nullable: false,
            is_empty: true,
            boolean: true,
            int: true,
            uint: true,
            float: true,
            negative: false,
            above: false,
            number: false,
            time: true,
            has_nanoseconds: true,
            digits: 0,
            zones: [false; 2],
            utc: "+00:00".parse().ok(),
        }
    }

    fn add(&mut self, texts: &StringArray) {
        self.is_nullable |= texts.null_count() > 0;
        for text in texts.iter().flatten() {
            self.is_empty = false;
            self.boolean &= matches!(text, "true" | "false" | "True" | "False");
            // Leading zeros are part of a text, such as of a postal code.
            let digits = text.strip_prefix('-').unwrap_or(text);
            let is_short = digits.len() < 2 || !digits.starts_with('0') || digits.starts_with("0.");
            let is_short = is_short && !text.starts_with('+');
            let (int, uint) = (text.parse::<i64>().is_ok(), text.parse::<u64>().is_ok());
            let is_number = digits.starts_with(|char: char| char.is_ascii_digit() || char == '.');
            let is_integer = is_number && digits.bytes().all(|digit| digit.is_ascii_digit());
            self.negative |= is_integer && digits.len() < text.len();
            self.above |= is_integer && uint && !int;
            // A float would be another number than a long integer, and infinity another one than `1e400`.
            let is_float = |value: f64| match is_integer {
                true => int || uint,
                false => value.is_finite() || !is_number,
            };
            self.int = self.int && is_short && int;
            self.uint = self.uint && is_short && uint;
            self.float = self.float && is_short && text.parse().is_ok_and(is_float);
            self.number |= self.float && is_number;
            self.time = self.time && self.add_time(text);
        }
    }

    fn add_time(&mut self, text: &str) -> bool {
        if text.len() < 10 || !text.is_ascii() {
            return false;
        }
        let Some(Ok(time)) = self.utc.map(|utc| string_to_datetime(&utc, text)) else {
            return false;
        };
        self.has_nanoseconds &= time.timestamp_nanos_opt().is_some();
        let time = &text[10..];
        let digits = time
            .split_once('.')
            .map_or(0, |(_, rest)| rest.bytes().take_while(u8::is_ascii_digit).count());
        self.digits = self.digits.max(digits);
        self.zones[usize::from(time.contains(['Z', 'z', '+', '-']))] = true;
        digits <= 9
    }

    fn data_type(&self) -> DataType {
        let unit = match self.digits {
            0 => TimeUnit::Second,
            1..=3 => TimeUnit::Millisecond,
            4..=6 => TimeUnit::Microsecond,
            _ => TimeUnit::Nanosecond,
        };
        match self {
            Self { is_empty: true, .. } => DataType::Utf8,
            Self { boolean: true, .. } => DataType::Boolean,
            Self { int: true, .. } => DataType::Int64,
            Self { uint: true, .. } => DataType::UInt64,
            // No type has all of these integers.
            Self { negative: true, above: true, .. } => DataType::Utf8,
            Self { float: true, number: true, .. } => DataType::Float64,
            Self { has_nanoseconds: false, .. } if unit == TimeUnit::Nanosecond => DataType::Utf8,
            Self { time: true, zones: [true, false], .. } => DataType::Timestamp(unit, None),
            Self { time: true, zones: [false, true], .. } => {
                DataType::Timestamp(unit, Some("+00:00".into()))
            }
            _ => DataType::Utf8,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(text: &str) -> String {
        let mut out = String::new();
        // Pieces of any size.
        let input = io::BufReader::with_capacity(1, text.as_bytes());
        Marked::new(input).read_to_string(&mut out).unwrap();
        out.replace(NULL, "@")
    }

    #[test]
    fn empty_fields_without_quotes_are_marked() {
        for (text, expected) in [
            ("a,b\n1,\n,2\n\"\",\"\"\n", "a,b\n1,@\n@,2\n\"\",\"\"\n"),
            ("a,b\r\n,\r\n1,", "a,b\r\n@,@\r\n1,@"),
            ("a\n\n1\n\"\"\n", "a\n@\n1\n\"\"\n"),
            ("a\r\n\r\n1\r\n", "a\r\n@\r\n1\r\n"),
            ("a,b\n\n1,2\n", "a,b\n\n1,2\n"),
            ("a,b\n\",\n\"\",\",\n", "a,b\n\",\n\"\",\",@\n"),
            ("\n\r\na,b\n\n1,\n", "\n\r\na,b\n\n1,@\n"),
            ("\na\n\n1\n", "\na\n@\n1\n"),
            ("", ""),
        ] {
            assert_eq!(marked(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_quote_without_an_end_is_an_error() {
        let found = infer(io::Cursor::new("a,b\n1,\"x\ny\"\n2,\"z\n3,4\n")).unwrap_err();
        let says = "the quote that begins in line 4 has no end";
        assert!(found.to_string().contains(says), "{found}");
    }

    fn type_of(lines: &str) -> String {
        let schema = infer(io::Cursor::new(format!("a\n{lines}\n").into_bytes())).unwrap();
        let field = schema.field(0);
        let null = if field.is_nullable() { "?" } else { "" };
        format!("{}{null}", field.data_type())
    }

    #[test]
    fn types_are_those_of_all_rows() {
        for (lines, expected) in [
            ("true\nFalse", "Boolean"),
            ("1\n-2\n\n3", "Int64?"),
            ("1\n18446744073709551615", "UInt64"),
            ("1\n1.5\nnan\n-inf\n1e-300", "Float64"),
            ("nan\ninf", "Utf8"),
            ("12345678901234567890123", "Utf8"),
            ("-9223372036854775809", "Utf8"),
            ("1.5\n18446744073709551616", "Utf8"),
            ("-1\n18446744073709551615", "Utf8"),
            ("-9223372036854775808\n9223372036854775807", "Int64"),
            ("1e400\n2", "Utf8"),
            ("-1e400", "Utf8"),
            ("1e400.5", "Utf8"),
            ("1e-400\n-.5", "Float64"),
            ("007\n1", "Utf8"),
            ("0\n0.5", "Float64"),
            ("1\nx", "Utf8"),
            ("\n", "Utf8?"),
            ("2026-01-31\n2026-01-31T12:00:00", "Timestamp(s)"),
            ("2026-01-31 12:00:00.123456", "Timestamp(µs)"),
            ("2026-01-31T12:00:00.1Z", "Timestamp(ms, \"+00:00\")"),
            ("2026-01-31T12:00:00Z\n2026-01-31", "Utf8"),
            ("2026-02-31", "Utf8"),
            ("1500-01-01\n2026-01-01T00:00:00.123456789", "Utf8"),
            ("1500-01-01\n2026-01-01T00:00:00.123456", "Timestamp(µs)"),
            ("2026-01-31T12:00Z", "Utf8"),
            ("12:00", "Utf8"),
        ] {
            assert_eq!(type_of(lines), expected, "{lines}");
        }
    }
}
