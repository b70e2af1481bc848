//! Conditions on the rows of a table: comparisons of columns with values, combined with "and", "or" and "not".

use std::cmp::Ordering;
use std::fmt;
use std::ops::{Not, Range};
use std::str::FromStr;

use crate::blosc2::{Element, Error, ErrorKind, Result, Value};

use super::CTable;
use crate::ItemKind;
use crate::ranges::{intersection, union};
use crate::tag::shortened;

const READ: &str = "find rows of a table";
const PARSE: &str = "parse a condition";
/// Rows that are compared at once.
const ROWS: u64 = 1 << 16;
/// Nested parentheses of a condition that is parsed.
const MAX_DEPTH: usize = 64;

/// A condition on the rows of a table: a comparison of a column with a value, or several conditions combined with "and",
/// "or" and "not" (the operator `!`). For [`CTable::find_where`].
///
/// A null row satisfies no comparison, also not [`NotEqual`](Comparison::NotEqual), and no negated comparison, as in SQL.
/// Comparisons of numbers are exact, whatever their types. NaN satisfies only `NotEqual`, and the other comparisons if
/// they are negated. Strings are compared by Unicode code points.
///
/// A condition can also be parsed from text. A comparison is the name of a column, an operator (`==` or `=`, `!=`, `<`,
/// `<=`, `>`, `>=`) and a number, a string in quotes, `true` or `false`. Comparisons are combined with `not`, `and`, `or`
/// and parentheses; `not` binds most tightly, and `or` least. Names of columns that are not words, or that are one of
/// these three, are written in backticks.
///
/// ```
/// use blosc2_store::{CTable, Comparison, Condition, Data, ItemKind, Schema};
///
/// let schema = Schema::new().column("id", ItemKind::Int64).column("name", ItemKind::Utf8);
/// let mut table = CTable::in_memory(&schema)?;
/// let names = Data::texts(["a", "b", "a"].map(Some));
/// table.append([("id", Data::items(&[1i64, 2, 3])), ("name", names)])?;
///
/// let condition: Condition = "id >= 2 and name == 'a'".parse()?;
/// assert_eq!(table.find_where(&condition)?, [2]);
/// let id = |comparison, value: i64| Condition::new("id", comparison, value);
/// let ends = id(Comparison::Less, 2).or(id(Comparison::Greater, 2));
/// assert_eq!(table.find_where(&ends)?, [0, 2]);
/// assert_eq!(table.find_where(&!ends)?, [1]);
/// # Ok::<(), blosc2_store::blosc2::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Condition(Node);

#[derive(Debug, Clone, PartialEq)]
enum Node {
    Compare {
        column: String,
        comparison: Comparison,
        value: Value,
        is_negated: bool,
    },
    /// Several conditions. All have to be satisfied, or at least one.
    Group {
        all: bool,
        nodes: Vec<Node>,
    },
}

/// A comparison of the value of a column with another value. Used by [`Condition::new`].
///
/// ```
/// use blosc2_store::{Comparison, Condition};
///
/// let condition = Condition::new("price", Comparison::Less, 9.5);
/// assert_eq!(condition, "price < 9.5".parse()?);
/// # Ok::<(), blosc2_store::blosc2::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

impl Comparison {
    /// Whether it, or its negation, can hold for a value between two others. `least` and `greatest` are their orders to
    /// the value that it is compared with.
    fn may_hold(self, is_negated: bool, least: Ordering, greatest: Ordering) -> bool {
        let between = least.is_le() && greatest.is_ge();
        let orders = [
            (Ordering::Less, least.is_lt()),
            (Ordering::Equal, between),
            (Ordering::Greater, greatest.is_gt()),
        ];
        let holds = |order| self.holds(Some(order)) != is_negated;
        orders.into_iter().any(|(order, is_possible)| is_possible && holds(order))
    }

    /// Whether it holds for two values; `None` is the order if one of them is NaN.
    fn holds(self, order: Option<Ordering>) -> bool {
        match self {
            Self::Equal => order == Some(Ordering::Equal),
            Self::NotEqual => order != Some(Ordering::Equal),
            Self::Less => order == Some(Ordering::Less),
            Self::LessOrEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
            Self::Greater => order == Some(Ordering::Greater),
            Self::GreaterOrEqual => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        }
    }
}

impl Condition {
    /// Compares a column with a value. Timestamps are compared with integers in the unit of the column, or with strings
    /// such as `2026-01-31` or `2026-01-31T12:00:00.5`; in a column with a time zone, these are in UTC and can end in `Z`
    /// or `+00:00`. For a column of 32-bit floats, a number is rounded to one, as in NumPy.
    pub fn new(column: impl Into<String>, comparison: Comparison, value: impl Into<Value>) -> Self {
        let (column, value) = (column.into(), value.into());
        Self(Node::Compare { column, comparison, value, is_negated: false })
    }

    /// Rows that satisfy both conditions.
    pub fn and(self, other: Self) -> Self {
        Self(joined(self.0, other.0, true))
    }

    /// Rows that satisfy at least one of the conditions.
    pub fn or(self, other: Self) -> Self {
        Self(joined(self.0, other.0, false))
    }

    /// Returns the names of the columns that are compared, each once, in the order of the condition.
    pub fn columns(&self) -> Vec<&str> {
        let mut names = Vec::new();
        self.0.columns(&mut names);
        names
    }
}

/// Rows that do not satisfy the condition. A row that only a null leaves open satisfies neither.
impl Not for Condition {
    type Output = Self;

    fn not(self) -> Self {
        Self(self.0.negated())
    }
}

/// Two conditions in one list: conditions of the same kind are not nested, so that their number does not matter.
fn joined(first: Node, second: Node, all: bool) -> Node {
    let parts = |node| match node {
        Node::Group { all: joined, nodes } if joined == all => nodes,
        node => vec![node],
    };
    let mut nodes = parts(first);
    nodes.extend(parts(second));
    Node::Group { all, nodes }
}

impl Node {
    /// The negation of each comparison, in the other combination. Comparisons that a null row leaves open stay open, so
    /// that no row is found because of them.
    fn negated(self) -> Self {
        match self {
            Self::Compare { column, comparison, value, is_negated } => {
                Self::Compare { column, comparison, value, is_negated: !is_negated }
            }
            Self::Group { all, nodes } => {
                Self::Group { all: !all, nodes: nodes.into_iter().map(Self::negated).collect() }
            }
        }
    }

    fn columns<'a>(&'a self, names: &mut Vec<&'a str>) {
        match self {
            Self::Compare { column, .. } if names.contains(&column.as_str()) => {}
            Self::Compare { column, .. } => names.push(column),
            Self::Group { nodes, .. } => nodes.iter().for_each(|node| node.columns(names)),
        }
    }
}

impl CTable {
    /// Returns the indices of the rows that satisfy a condition. Python: `where`.
    ///
    /// The [summaries](Self::summary) of the columns, where there are any, determine the blocks that can contain such
    /// rows; other blocks are not read. Columns that Python computes by an expression are
    /// [evaluated](Self::evaluate), and are null where another column is null.
    ///
    /// # Errors
    /// - [`ErrorKind::NotFound`]: the table does not have a column of the condition;
    /// - [`ErrorKind::TypeMismatch`]: a column has other values than numbers, booleans, timestamps and strings, or is
    ///   compared with a value of another type;
    /// - the errors of [`values`](Self::values).
    pub fn find_where(&self, condition: &Condition) -> Result<Vec<u64>> {
        // The columns and the types of the condition are checked, also if there is no row to compare.
        self.mask(&condition.0, 0..0)?;
        let mut found = Vec::new();
        for range in self.candidates(&condition.0)? {
            for start in range.clone().step_by(ROWS as usize) {
                let rows = start..range.end.min(start + ROWS);
                let mask = self.mask(&condition.0, rows.clone())?;
                found.extend(rows.zip(mask).filter(|(_, holds)| *holds).map(|(row, _)| row));
            }
        }
        Ok(found)
    }

    /// The rows that can satisfy a condition, by the summaries of the columns, in order.
    fn candidates(&self, node: &Node) -> Result<Vec<Range<u64>>> {
        let all = || std::iter::once(0..self.nrows()).collect();
        match node {
            Node::Compare { column, comparison, value, is_negated } => {
                let found = self.find_column(column)?;
                let kind = found.kind();
                let is_stored = !matches!(kind, ItemKind::Computed(_)) && !found.is_stale();
                let Some(number) = Number::of(value).filter(|_| is_stored) else {
                    return Ok(all());
                };
                let number = number.as_of(kind);
                let Some(summary) = self.summary(column)? else { return Ok(all()) };
                Ok(summary.rows_of(|segment| {
                    let order = |item: &Value| Number::of(item).and_then(|it| it.order(number));
                    let nan = segment.has_nan() && comparison.holds(None) != *is_negated;
                    nan || segment.bounds().is_some_and(|(least, greatest)| {
                        match (order(least), order(greatest)) {
                            (Some(least), Some(greatest)) => {
                                comparison.may_hold(*is_negated, least, greatest)
                            }
                            _ => true,
                        }
                    })
                }))
            }
            Node::Group { all: true, nodes } => {
                nodes.iter().try_fold(all(), |rows: Vec<_>, node| match rows[..] {
                    [] => Ok(rows),
                    _ => Ok(intersection(&rows, &self.candidates(node)?)),
                })
            }
            Node::Group { all: false, nodes } => {
                let mut rows = Vec::new();
                for node in nodes {
                    rows.extend(self.candidates(node)?);
                }
                Ok(union(rows))
            }
        }
    }

    /// Whether each of the rows satisfies a condition.
    fn mask(&self, node: &Node, rows: Range<u64>) -> Result<Vec<bool>> {
        let (nodes, all) = match node {
            Node::Compare { column, comparison, value, is_negated } => {
                let holds = |order| comparison.holds(order) != *is_negated;
                return self.compared(column, holds, value, rows);
            }
            Node::Group { all, nodes } => (nodes, *all),
        };
        let mut mask = vec![all; (rows.end - rows.start) as usize];
        for node in nodes {
            let other = self.mask(node, rows.clone())?;
            mask.iter_mut().zip(other).for_each(|(one, other)| {
                *one = if all { *one && other } else { *one || other };
            });
        }
        Ok(mask)
    }

    fn compared(
        &self,
        name: &str,
        compare: impl Fn(Option<Ordering>) -> bool,
        value: &Value,
        rows: Range<u64>,
    ) -> Result<Vec<bool>> {
        let column = self.find_column(name)?;
        let kind = column.kind();
        let number = Number::of(value).map(|number| number.as_of(kind));
        let holds = |item: Number| number.is_some_and(|it| compare(item.order(it)));
        macro_rules! compare_numbers {
            ($($kind:pat => $type:ty, $variant:ident;)*) => {
                match kind {
                    $($kind if number.is_some() => {
                        let of = |item: $type| Number::$variant(item.into());
                        return self.compared_numbers::<$type>(name, rows, of, holds);
                    })*
                    _ => {}
                }
            };
        }
        compare_numbers! {
            ItemKind::Int8 => i8, Int;
            ItemKind::Int16 => i16, Int;
            ItemKind::Int32 => i32, Int;
            ItemKind::Int64 | ItemKind::Timestamp { .. } => i64, Int;
            ItemKind::UInt8 => u8, Int;
            ItemKind::UInt16 => u16, Int;
            ItemKind::UInt32 => u32, Int;
            ItemKind::UInt64 => u64, Int;
            ItemKind::Float32 => f32, Float;
            ItemKind::Float64 => f64, Float;
        }
        match (kind, value) {
            (ItemKind::Timestamp { unit, timezone }, Value::Str(text)) => {
                // The values of columns with a time zone are in UTC.
                let zone = timezone
                    .as_ref()
                    .and_then(|_| text.strip_suffix('Z').or_else(|| text.strip_suffix("+00:00")));
                let other = nanoseconds(zone.unwrap_or(text)).ok_or_else(|| {
                    let found = shortened(text);
                    let detail = format!(
                        "the column `{name}` has timestamps, expected a date such as \
                         `2026-01-31T12:00:00`, found `{found}`"
                    );
                    Error::new(ErrorKind::TypeMismatch, READ, detail)
                })?;
                let ticks = unit.nanoseconds();
                let holds = |item: Number| match item {
                    Number::Int(item) => compare(Some((item * ticks).cmp(&other))),
                    Number::Float(_) => false,
                };
                let of = |item: i64| Number::Int(item.into());
                return self.compared_numbers::<i64>(name, rows, of, holds);
            }
            (ItemKind::Computed(_), _) if number.is_some() => {
                let holds = |value: &Value| Number::of(value).is_some_and(&holds);
                return self.compared_values(name, rows, holds);
            }
            (ItemKind::Bool | ItemKind::Computed(_), Value::Bool(other)) => {
                return self.compared_values(name, rows, |value| match value {
                    Value::Bool(value) => compare(Some(value.cmp(other))),
                    _ => false,
                });
            }
            (kind, Value::Str(other)) if kind.is_text() => {
                return self.compared_values(name, rows, |value| match value {
                    Value::Str(value) => compare(Some(value.cmp(other))),
                    _ => false,
                });
            }
            _ => {}
        }
        let detail = format!("the column `{name}` of {kind} cannot be compared with {value}");
        Err(Error::new(ErrorKind::TypeMismatch, READ, detail))
    }

    fn compared_numbers<T: Element>(
        &self,
        name: &str,
        rows: Range<u64>,
        number: impl Fn(T) -> Number,
        holds: impl Fn(Number) -> bool,
    ) -> Result<Vec<bool>> {
        let column = self.find_column(name)?;
        // Python has not computed the new values of a stale column yet; they are evaluated.
        let items = (!column.is_stale()).then(|| self.read::<T>(name, rows.clone()));
        // The items can be in another byte order, which `values` converts.
        let is_converted = |error: &Error| error.kind() == ErrorKind::TypeMismatch;
        let items = match items {
            Some(items) if !items.as_ref().is_err_and(is_converted) => items?,
            _ => {
                let holds = |value: &Value| Number::of(value).is_some_and(&holds);
                return self.compared_values(name, rows, holds);
            }
        };
        let mut mask: Vec<bool> = items.into_iter().map(|item| holds(number(item))).collect();
        if column.is_nullable() {
            let nulls = self.nulls(name, rows)?;
            mask.iter_mut().zip(nulls).for_each(|(holds, null)| *holds &= !null);
        }
        Ok(mask)
    }

    fn compared_values(
        &self,
        name: &str,
        rows: Range<u64>,
        holds: impl Fn(&Value) -> bool,
    ) -> Result<Vec<bool>> {
        Ok(self.evaluated_values(name, rows)?.iter().map(holds).collect())
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Number {
    Int(i128),
    Float(f64),
}

impl Number {
    /// The number with which items of a column of this kind are compared: for 32-bit floats the nearest one, as in NumPy,
    /// except above their range.
    fn as_of(self, kind: &ItemKind) -> Self {
        let single = match self {
            _ if *kind != ItemKind::Float32 => return self,
            Self::Int(value) => value as f32,
            Self::Float(value) => value as f32,
        };
        if single.is_finite() { Self::Float(single.into()) } else { self }
    }

    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Int(value) => Some(Self::Int(*value)),
            Value::Float(value) => Some(Self::Float(*value)),
            _ => None,
        }
    }

    /// The exact order of two numbers; `None` if one is NaN.
    fn order(self, other: Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Int(one), Self::Int(other)) => Some(one.cmp(&other)),
            (Self::Float(one), Self::Float(other)) => one.partial_cmp(&other),
            (Self::Int(one), Self::Float(other)) => order(one, other),
            (Self::Float(one), Self::Int(other)) => order(other, one).map(Ordering::reverse),
        }
    }
}

/// The exact order of an integer and a float. A conversion of the integer would round it.
fn order(int: i128, float: f64) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    // Floats beyond the range of `i128` become its bounds, which no column has.
    let whole = float.floor();
    Some(int.cmp(&(whole as i128)).then(if float > whole {
        Ordering::Less
    } else {
        Ordering::Equal
    }))
}

/// The nanoseconds from 1970-01-01 to a date, with or without a time: `2026-01-31`, `2026-01-31T12:00`,
/// `2026-01-31 12:00:00.5`. `None` if the text is none.
fn nanoseconds(text: &str) -> Option<i128> {
    let (day, time) = match text.split_once(['T', ' ']) {
        Some((day, time)) => (day, time),
        None => (text, "00:00"),
    };
    let number = |text: &str, digits: usize| {
        let is_number = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<i128>().ok().filter(|_| is_number)
    };
    let mut parts = day.splitn(3, '-');
    let year = number(parts.next()?, 4)?;
    let (month, day) = (number(parts.next()?, 2)?, number(parts.next()?, 2)?);
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = [31, if is_leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let before = days.get(..usize::try_from(month).ok()?.checked_sub(1)?)?;
    if !(1..=*days.get(before.len())?).contains(&day) {
        return None;
    }
    // The leap days before this year.
    let leap = |year: i128| year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let years = (year - 1970) * 365 + leap(year - 1) - leap(1969);
    let days = years + before.iter().sum::<i128>() + day - 1;
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let mut parts = time.splitn(3, ':');
    let (hour, minute) = (number(parts.next()?, 2)?, number(parts.next()?, 2)?);
    let second = parts.next().map_or(Some(0), |text| number(text, 2))?;
    let digits = fraction.len();
    if hour > 23 || minute > 59 || second > 59 || digits > 9 {
        return None;
    }
    let fraction = number(fraction, digits)? * 10i128.pow(9 - digits as u32);
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1_000_000_000 + fraction)
}

impl FromStr for Condition {
    type Err = Error;

    /// Parses a condition; see [`Condition`].
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`]: the text is not a condition; it has parentheses nested more than 64 levels deep.
    fn from_str(text: &str) -> Result<Self> {
        let mut parser = Parser { text, at: 0, depth: 0 };
        let condition = parser.any()?;
        match parser.rest().is_empty() {
            true => Ok(condition),
            false => Err(parser.expected("`and`, `or` or the end")),
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    /// The text after white space.
    fn rest(&mut self) -> &'a str {
        let rest = &self.text[self.at..];
        let trimmed = rest.trim_start();
        self.at += rest.len() - trimmed.len();
        trimmed
    }

    fn expected(&mut self, what: impl fmt::Display) -> Error {
        let found = match self.rest() {
            "" => "the end".to_owned(),
            rest => format!("`{}`", shortened(rest)),
        };
        let detail = format!("expected {what}, found {found}");
        Error::new(ErrorKind::InvalidArgument, PARSE, detail)
    }

    /// Skips a symbol, if it is next.
    fn symbol(&mut self, symbol: &str) -> bool {
        let is_next = self.rest().starts_with(symbol);
        self.at += if is_next { symbol.len() } else { 0 };
        is_next
    }

    /// The next word, which is not skipped.
    fn word(&mut self) -> &'a str {
        let rest = self.rest();
        // Dots separate the levels of nested columns.
        let is_part = |char: char| char.is_alphanumeric() || matches!(char, '_' | '.');
        &rest[..rest.find(|char| !is_part(char)).unwrap_or(rest.len())]
    }

    /// Skips a word, if it is next.
    fn keyword(&mut self, keyword: &str) -> bool {
        let word = self.word();
        let is_next = word.eq_ignore_ascii_case(keyword);
        self.at += if is_next { word.len() } else { 0 };
        is_next
    }

    fn any(&mut self) -> Result<Condition> {
        let mut condition = self.all()?;
        while self.keyword("or") {
            condition = condition.or(self.all()?);
        }
        Ok(condition)
    }

    fn all(&mut self) -> Result<Condition> {
        let mut condition = self.negated()?;
        while self.keyword("and") {
            condition = condition.and(self.negated()?);
        }
        Ok(condition)
    }

    fn negated(&mut self) -> Result<Condition> {
        let mut is_negated = false;
        while self.keyword("not") {
            is_negated = !is_negated;
        }
        let condition = self.one()?;
        Ok(if is_negated { !condition } else { condition })
    }

    fn one(&mut self) -> Result<Condition> {
        if self.symbol("(") {
            self.depth += 1;
            if self.depth > MAX_DEPTH {
                let detail =
                    format!("its parentheses are nested more than {MAX_DEPTH} levels deep");
                return Err(Error::new(ErrorKind::InvalidArgument, PARSE, detail));
            }
            let condition = self.any()?;
            self.depth -= 1;
            return match self.symbol(")") {
                true => Ok(condition),
                false => Err(self.expected("`)`")),
            };
        }
        let column = match self.quoted('`')? {
            Some(name) => name,
            None => match self.word() {
                "" => return Err(self.expected("the name of a column")),
                word => {
                    self.at += word.len();
                    word.to_owned()
                }
            },
        };
        /// Longer operators first.
        const OPERATORS: [(&str, Comparison); 7] = [
            ("==", Comparison::Equal),
            ("!=", Comparison::NotEqual),
            ("<=", Comparison::LessOrEqual),
            (">=", Comparison::GreaterOrEqual),
            ("=", Comparison::Equal),
            ("<", Comparison::Less),
            (">", Comparison::Greater),
        ];
        let operator = OPERATORS.iter().find(|(symbol, _)| self.symbol(symbol));
        let Some((_, comparison)) = operator else {
            return Err(self.expected("an operator (`==`, `!=`, `<`, `<=`, `>`, `>=`)"));
        };
        Ok(Condition::new(column, *comparison, self.value()?))
    }

    /// The text between two equal quotes, if the first is next. In the text, two quotes stand for one.
    fn quoted(&mut self, quote: char) -> Result<Option<String>> {
        if !self.symbol(quote.encode_utf8(&mut [0; 4])) {
            return Ok(None);
        }
        let mut text = String::new();
        loop {
            let rest = &self.text[self.at..];
            let Some(end) = rest.find(quote) else {
                return Err(self.expected(format_args!("a closing {quote}")));
            };
            text += &rest[..end];
            self.at += end + 1;
            if !self.text[self.at..].starts_with(quote) {
                return Ok(Some(text));
            }
            text.push(quote);
            self.at += 1;
        }
    }

    fn value(&mut self) -> Result<Value> {
        for quote in ['\'', '"'] {
            if let Some(text) = self.quoted(quote)? {
                return Ok(text.into());
            }
        }
        for (word, value) in [("true", true), ("false", false)] {
            if self.keyword(word) {
                return Ok(value.into());
            }
        }
        let rest = self.rest();
        let is_part = |char: char| char.is_ascii_alphanumeric() || matches!(char, '+' | '-' | '.');
        let number = &rest[..rest.find(|char| !is_part(char)).unwrap_or(rest.len())];
        let value = match (number.parse::<i128>(), number.parse::<f64>()) {
            (Ok(number), _) => Value::Int(number),
            (_, Ok(number)) => Value::Float(number),
            _ => return Err(self.expected("a number, a string in quotes, `true` or `false`")),
        };
        self.at += number.len();
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_nanoseconds() {
        let seconds = |text: &str| nanoseconds(text).map(|it| it / 1_000_000_000);
        assert_eq!(seconds("1970-01-01"), Some(0));
        assert_eq!(seconds("2000-03-01T00:00:01"), Some(951_868_801));
        assert_eq!(seconds("2024-02-29 23:59"), Some(1_709_251_140));
        assert_eq!(seconds("1900-01-01"), Some(-2_208_988_800));
        assert_eq!(seconds("0001-01-01"), Some(-62_135_596_800));
        assert_eq!(nanoseconds("1970-01-01T00:00:00.25"), Some(250_000_000));
        for text in [
            "",
            "2023-02-29",
            "2023-00-01",
            "2023-13-01",
            "2023-1-1",
            "2023-01-01T24:00",
            "2023-01-01T1",
            "x",
        ] {
            assert_eq!(nanoseconds(text), None, "{text}");
        }
    }

    #[test]
    fn integers_and_floats_are_compared_exactly() {
        let (less, equal, greater) =
            (Some(Ordering::Less), Some(Ordering::Equal), Some(Ordering::Greater));
        for (int, float, expected) in [
            (1, 1.0, equal),
            (1, 1.5, less),
            (2, 1.5, greater),
            (-1, -1.5, greater),
            (-2, -1.5, less),
            ((1 << 53) + 1, (1u64 << 53) as f64, greater),
            (i128::from(u64::MAX), 2f64.powi(64), less),
            (i128::from(i64::MIN), f64::NEG_INFINITY, greater),
            (0, f64::INFINITY, less),
            (0, f64::NAN, None),
        ] {
            assert_eq!(order(int, float), expected, "{int} {float}");
        }
    }

    #[test]
    fn conditions_are_parsed() {
        use Comparison::*;

        let new = |name: &str, comparison, value: i64| Condition::new(name, comparison, value);
        let parsed = |text: &str| text.parse::<Condition>().unwrap();
        let (a, b, c) = (new("a", Equal, 1), new("b", Less, -2), new("c", GreaterOrEqual, 3));
        assert_eq!(parsed("a==1"), a);
        assert_eq!(parsed("a = 1 AND b < -2 or c>=3"), a.clone().and(b.clone()).or(c.clone()));
        assert_eq!(parsed("a == 1 and (b<-2 or (c >= 3))"), a.clone().and(b.clone().or(c.clone())));
        assert_eq!(parsed("not a = 1 and not (b < -2 or not c >= 3)"), !(a.or(b.or(!c))));
        assert_eq!(parsed("not NOT `not` == 1"), new("not", Equal, 1));
        assert_eq!(parsed(&format!("{}a < 1", "not ".repeat(100_001))), !new("a", Less, 1));
        assert_eq!(parsed("x.y != 'it''s'"), Condition::new("x.y", NotEqual, "it's"));
        assert_eq!(parsed("`a b`` c` <= \"'\""), Condition::new("a b` c", LessOrEqual, "'"));
        assert_eq!(parsed("é > 1e-3"), Condition::new("é", Greater, 1e-3));
        assert_eq!(parsed("android == true"), Condition::new("android", Equal, true));
        let deep = format!("{}a == 1{}", "(".repeat(65), ")".repeat(65));
        for text in [
            "",
            "a",
            "a ==",
            "a == b",
            "a == 1 and",
            "a == 1 b == 2",
            "(a == 1",
            "a == 'x",
            "1 <",
            "a ~ 1",
            "not",
            "a not == 1",
            &deep,
        ] {
            let error = text.parse::<Condition>().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{text}: {error}");
        }
        let many = vec!["a == 1"; 100_000].join(" and ");
        assert_eq!(parsed(&many).columns(), ["a"]);
    }
}
