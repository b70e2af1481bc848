//! Items of any dtype as text, as NumPy prints them.

use blosc2::Dtype;
use blosc2::dtype::{Kind, ScalarDecoder};

use crate::date::{self, NAT};
use crate::float::{self, Each, FloatFormat, Width};
use crate::printable;

/// Items of an array above which NumPy prints only the edges.
pub(crate) const THRESHOLD: u64 = 1000;
/// Items that NumPy prints at each end of an axis that it shortens.
pub(crate) const EDGE: u64 = 3;

/// Equally spaced parts of items, such as the values of a field.
#[derive(Debug, Clone)]
pub(crate) struct Column<'a> {
    bytes: &'a [u8],
    offset: usize,
    /// Count and distance in bytes of the items, and of the items in each sub-array around the part.
    levels: Vec<(usize, usize)>,
    /// Whether it is one item that is not in an array. NumPy does not align the numbers of such an item.
    alone: bool,
}

impl<'a> Column<'a> {
    /// `count` items of `size` bytes.
    pub(crate) fn new(bytes: &'a [u8], count: usize, size: usize) -> Self {
        Self { bytes, offset: 0, levels: vec![(count, size)], alone: false }
    }

    /// One item that is not in an array.
    fn scalar(bytes: &'a [u8]) -> Self {
        Self { bytes, offset: 0, levels: Vec::new(), alone: true }
    }

    fn field(&self, offset: usize) -> Self {
        Self { offset: self.offset + offset, ..self.clone() }
    }

    fn subarray(&self, count: usize, size: usize) -> Self {
        let mut column = self.clone();
        column.levels.push((count, size));
        column
    }

    /// Passes the bytes of each value of `size` bytes to `f`.
    fn each(&self, size: usize, f: &mut dyn FnMut(&'a [u8])) {
        self.each_below(&self.levels, self.offset, size, f);
    }

    fn each_below(
        &self,
        levels: &[(usize, usize)],
        at: usize,
        size: usize,
        f: &mut dyn FnMut(&'a [u8]),
    ) {
        match levels {
            [] => f(part(self.bytes, at, size)),
            [(count, step), inner @ ..] => {
                (0..*count).for_each(|k| self.each_below(inner, at + k * step, size, f));
            }
        }
    }
}

/// `size` bytes from `at` on.
fn part(bytes: &[u8], at: usize, size: usize) -> &[u8] {
    bytes.get(at..at + size).unwrap_or_default()
}

/// How the values of a column are printed. All have the same width where NumPy aligns them.
#[derive(Debug)]
pub(crate) enum Format {
    Bool {
        padded: bool,
    },
    Int {
        number: ScalarDecoder,
        width: usize,
    },
    /// A number in a structure that is not in an array.
    Float(ScalarDecoder, Width),
    FloatColumn(ScalarDecoder, FloatFormat),
    Complex(ScalarDecoder, FloatFormat, FloatFormat),
    Date {
        number: ScalarDecoder,
        unit: Option<(u32, &'static str)>,
        width: usize,
    },
    Duration {
        number: ScalarDecoder,
        width: usize,
    },
    Bytes,
    Unicode(ScalarDecoder),
    Raw,
    Struct(Vec<(usize, usize, Self)>),
    Array {
        item: Box<Self>,
        shape: Vec<usize>,
        size: usize,
        shortened: bool,
    },
}

/// The width of a floating-point type; `None` for the `long double` of C, whose representation is unknown.
fn width_of(size: usize) -> Option<Width> {
    match size {
        2 => Some(Width::Half),
        4 => Some(Width::Single),
        8 => Some(Width::Double),
        _ => None,
    }
}

impl Format {
    /// The format of the items of an array, which is computed from the items that are printed.
    /// With `all`, sub-arrays are not shortened.
    pub(crate) fn new(dtype: &Dtype, column: &Column<'_>, all: bool) -> Self {
        let size = dtype.size();
        if let Some(fields) = dtype.fields() {
            let field = |field: &blosc2::dtype::Field| {
                let (at, dtype) = (field.offset(), field.dtype());
                (at, dtype.size(), Self::new(dtype, &column.field(at), all))
            };
            return Self::Struct(fields.iter().map(field).collect());
        }
        if dtype.subarray().is_some() {
            let (item, shape) = without_subarray(dtype);
            // The sizes of a dtype fit.
            let shape: Vec<usize> = shape.iter().map(|&side| side as usize).collect();
            let count = shape.iter().product();
            let values = column.subarray(count, item.size());
            return Self::Array {
                item: Box::new(Self::new(item, &values, all)),
                shape,
                size: item.size(),
                shortened: !all && count as u64 > THRESHOLD,
            };
        }
        let number = ScalarDecoder::new(dtype);
        let each = |f: &mut dyn FnMut(&[u8])| column.each(size, &mut |bytes| f(bytes));
        match dtype.kind() {
            Some(Kind::Bool) => Self::Bool { padded: !column.levels.is_empty() },
            Some(Kind::Int | Kind::UInt) => {
                let (low, high) = extremes(&|f| each(&mut |bytes| f(number.int(bytes))));
                let width = |int: i128| if low > high { 0 } else { int.to_string().len() };
                Self::Int { number, width: width(low).max(width(high)) }
            }
            Some(Kind::Float) => match width_of(size) {
                Some(width) if column.alone => Self::Float(number, width),
                Some(width) => {
                    let values = |f: &mut dyn FnMut(f64)| each(&mut |bytes| f(number.float(bytes)));
                    Self::FloatColumn(number, FloatFormat::new(width, false, &values))
                }
                None => Self::Raw,
            },
            Some(Kind::Complex) => match width_of(size / 2) {
                Some(width) => {
                    let real =
                        |f: &mut dyn FnMut(f64)| each(&mut |bytes| f(number.complex(bytes).0));
                    let imaginary =
                        |f: &mut dyn FnMut(f64)| each(&mut |bytes| f(number.complex(bytes).1));
                    let real = FloatFormat::new(width, false, &real);
                    Self::Complex(number, real, FloatFormat::new(width, true, &imaginary))
                }
                None => Self::Raw,
            },
            Some(kind @ (Kind::DateTime | Kind::TimeDelta)) => {
                let mut any_nat = false;
                each(&mut |bytes| any_nat |= number.time(bytes) == NAT);
                let times = |f: &mut dyn FnMut(i128)| {
                    each(&mut |bytes| match number.time(bytes) {
                        NAT => {}
                        time => f(time.into()),
                    });
                };
                let (low, high) = extremes(&times);
                let unit = dtype.unit();
                let width = |time: i128| match kind {
                    _ if low > high => 0,
                    Kind::DateTime => quoted_date(time as i64, unit).len(),
                    _ => time.to_string().len(),
                };
                let width =
                    width(low).max(width(high)).max(if any_nat { "'NaT'".len() } else { 0 });
                match kind {
                    Kind::DateTime => Self::Date { number, unit, width },
                    _ => Self::Duration { number, width },
                }
            }
            Some(Kind::Bytes) => Self::Bytes,
            Some(Kind::Unicode) => Self::Unicode(number),
            _ => Self::Raw,
        }
    }

    /// Appends the text of a value.
    pub(crate) fn write(&self, bytes: &[u8], out: &mut String) {
        match self {
            Self::Bool { padded } => {
                let is_true = bytes.iter().any(|&byte| byte != 0);
                out.push_str(match (is_true, padded) {
                    (true, true) => " True",
                    (true, false) => "True",
                    (false, _) => "False",
                });
            }
            Self::Int { number, width } => *out += &format!("{:>width$}", number.int(bytes)),
            Self::Float(number, width) => *out += &float::scalar(*width, number.float(bytes)),
            Self::FloatColumn(number, format) => *out += &format.format(number.float(bytes)),
            Self::Complex(number, real_format, imaginary_format) => {
                let (real, imaginary) = number.complex(bytes);
                let imaginary = imaginary_format.format(imaginary);
                let digits = imaginary.trim_end();
                *out +=
                    &format!("{}{digits}j{}", real_format.format(real), &imaginary[digits.len()..]);
            }
            Self::Date { number, unit, width } => match number.time(bytes) {
                NAT => *out += &format!("{:>width$}", "'NaT'"),
                time => *out += &format!("{:>width$}", quoted_date(time, *unit)),
            },
            Self::Duration { number, width } => match number.time(bytes) {
                NAT => *out += &format!("{:>width$}", "'NaT'"),
                time => *out += &format!("{time:>width$}"),
            },
            Self::Bytes => quote_bytes(bytes, out),
            Self::Unicode(number) => quote(&number.chars(bytes).collect::<Vec<_>>(), out),
            Self::Raw => quote_raw(bytes, out),
            Self::Struct(fields) => {
                out.push('(');
                for (k, (at, size, format)) in fields.iter().enumerate() {
                    out.push_str(if k > 0 { ", " } else { "" });
                    format.write(part(bytes, *at, *size), out);
                }
                out.push_str(if fields.len() == 1 { ",)" } else { ")" });
            }
            Self::Array { item, shape, size, shortened } => {
                write_array(item, shape, *size, *shortened, bytes, out);
            }
        }
    }
}

/// The item type of a sub-array of sub-arrays, and the axes of all; other types have no axes.
pub(crate) fn without_subarray(mut dtype: &Dtype) -> (&Dtype, Vec<u64>) {
    let mut axes = Vec::new();
    while let Some((item, shape)) = dtype.subarray() {
        axes.extend(shape);
        dtype = item;
    }
    (dtype, axes)
}

/// Appends the values of a sub-array.
fn write_array(
    item: &Format,
    shape: &[usize],
    size: usize,
    shortened: bool,
    bytes: &[u8],
    out: &mut String,
) {
    let Some((&count, inner)) = shape.split_first() else {
        return item.write(bytes, out);
    };
    let step = inner.iter().product::<usize>() * size;
    let edge = EDGE as usize;
    out.push('[');
    let mut k = 0;
    while k < count {
        out.push_str(if k > 0 { ", " } else { "" });
        if shortened && count > 2 * edge && k == edge {
            out.push_str("..., ");
            k = count - edge;
        }
        write_array(item, inner, size, shortened, part(bytes, k * step, step), out);
        k += 1;
    }
    out.push(']');
}

/// The least and the greatest number that `each` passes to its argument; without numbers the least is greater.
fn extremes(each: &Each<'_, i128>) -> (i128, i128) {
    let (mut low, mut high) = (i128::MAX, i128::MIN);
    each(&mut |number| (low, high) = (low.min(number), high.max(number)));
    (low, high)
}

/// The text of an item that is not in an array. NumPy: `str(array[index])`. With `all`, sub-arrays are not shortened.
pub(crate) fn item(dtype: &Dtype, bytes: &[u8], all: bool) -> String {
    let number = ScalarDecoder::new(dtype);
    let size = dtype.size();
    match dtype.kind() {
        Some(Kind::Complex) => {
            if let Some(width) = width_of(size / 2) {
                let (real, imaginary) = number.complex(bytes);
                return float::complex_scalar(width, real, imaginary);
            }
        }
        Some(Kind::DateTime | Kind::TimeDelta) if number.time(bytes) == NAT => {
            return "NaT".to_owned();
        }
        Some(Kind::DateTime) => return date::date(number.time(bytes), dtype.unit()),
        Some(Kind::TimeDelta) => return date::duration(number.time(bytes), dtype.unit()),
        Some(Kind::Unicode) => {
            let chars = number.chars(bytes).map(char::from_u32);
            let text = chars.map(|each| each.unwrap_or(char::REPLACEMENT_CHARACTER));
            return printable(&text.collect::<String>());
        }
        _ => {}
    }
    let mut text = String::new();
    Format::new(dtype, &Column::scalar(bytes), all).write(bytes, &mut text);
    text
}

/// The text of a string, without quotes and escapes and without the zeros at its end. `None` for other dtypes, and for
/// bytes that are not UTF-8.
pub(crate) fn text(dtype: &Dtype, bytes: &[u8]) -> Option<String> {
    let text: String = match dtype.kind()? {
        Kind::Unicode => {
            let chars = ScalarDecoder::new(dtype).chars(bytes).map(char::from_u32);
            chars.map(|each| each.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
        }
        Kind::Bytes => String::from_utf8(bytes.to_vec()).ok()?,
        _ => return None,
    };
    Some(text.trim_end_matches('\0').to_owned())
}

fn quoted_date(time: i64, unit: Option<(u32, &str)>) -> String {
    format!("'{}'", date::date(time, unit))
}

/// Appends a text with quotes and escapes. Python: `repr`.
fn quote(chars: &[u32], out: &mut String) {
    let has = |each: char| chars.contains(&u32::from(each));
    let mark = if has('\'') && !has('"') { '"' } else { '\'' };
    out.push(mark);
    for &code in chars {
        match char::from_u32(code) {
            Some('\t') => out.push_str("\\t"),
            Some('\n') => out.push_str("\\n"),
            Some('\r') => out.push_str("\\r"),
            Some(each) if each == '\\' || each == mark => out.extend(['\\', each]),
            Some(each) if is_printable(each) => out.push(each),
            _ if code <= 0xff => *out += &format!("\\x{code:02x}"),
            _ if code <= 0xffff => *out += &format!("\\u{code:04x}"),
            _ => *out += &format!("\\U{code:08x}"),
        }
    }
    out.push(mark);
}

/// Whether Python prints a character, and does not escape it.
fn is_printable(each: char) -> bool {
    if each.is_ascii() {
        return !each.is_ascii_control();
    }
    // Rust escapes the same characters, and combining ones at the start of a text.
    ['a', each].iter().collect::<String>().escape_debug().count() == 2
}

/// Appends a byte string with quotes and escapes, without the zeros at its end. Python: `repr`.
fn quote_bytes(bytes: &[u8], out: &mut String) {
    let len = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    let codes: Vec<u32> = bytes[..len].iter().map(|&byte| byte.into()).collect();
    let mut text = String::new();
    quote(&codes, &mut text);
    out.push('b');
    for each in text.chars() {
        match each.is_ascii() {
            true => out.push(each),
            false => *out += &format!("\\x{:02x}", u32::from(each)),
        }
    }
}

/// Appends all bytes in hexadecimal notation.
fn quote_raw(bytes: &[u8], out: &mut String) {
    out.push_str("b'");
    bytes.iter().for_each(|byte| *out += &format!("\\x{byte:02X}"));
    out.push('\'');
}
