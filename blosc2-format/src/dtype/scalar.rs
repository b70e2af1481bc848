//! Scalar types, such as `<f4`.

use super::literal::{Result, Unlike};
use super::{ByteOrder, Kind, MAX_SIZE};

/// A scalar type.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Scalar {
    pub(super) kind: Kind,
    /// `None` for types without a byte order: one byte, or a sequence of bytes.
    pub(super) order: Option<ByteOrder>,
    pub(super) size: usize,
    /// The multiplier and the unit of dates; `None` for other types and for dates without a unit.
    pub(super) unit: Option<(u32, &'static str)>,
}

/// The units of dates.
const UNITS: [&str; 13] = ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as"];

impl Kind {
    const ALL: [Self; 11] = [
        Self::Bool,
        Self::Int,
        Self::UInt,
        Self::Float,
        Self::Complex,
        Self::DateTime,
        Self::TimeDelta,
        Self::Bytes,
        Self::Unicode,
        Self::Void,
        Self::Object,
    ];

    fn letter(self) -> char {
        match self {
            Self::Bool => 'b',
            Self::Int => 'i',
            Self::UInt => 'u',
            Self::Float => 'f',
            Self::Complex => 'c',
            Self::DateTime => 'M',
            Self::TimeDelta => 'm',
            Self::Bytes => 'S',
            Self::Unicode => 'U',
            Self::Void => 'V',
            Self::Object => 'O',
        }
    }

    fn has_size(self, size: usize) -> bool {
        match self {
            Self::Bool => size == 1,
            Self::Int | Self::UInt => matches!(size, 1 | 2 | 4 | 8),
            Self::Float => matches!(size, 2 | 4 | 8 | 12 | 16),
            Self::Complex => matches!(size, 8 | 16 | 24 | 32),
            Self::DateTime | Self::TimeDelta | Self::Object => size == 8,
            Self::Bytes | Self::Void => size <= MAX_SIZE,
            Self::Unicode => size <= MAX_SIZE && size.is_multiple_of(4),
        }
    }

    /// Returns the size of each part that has a byte order, in bytes.
    pub(super) fn word(self, size: usize) -> usize {
        match self {
            Self::Complex => size / 2,
            Self::Unicode => 4,
            Self::Bytes | Self::Void => 1,
            _ => size,
        }
    }
}

impl Scalar {
    /// Returns `None` if there is no scalar of this size.
    pub(super) fn new(kind: Kind, size: usize, order: ByteOrder) -> Option<Self> {
        let ordered = kind != Kind::Object && kind.word(size) > 1;
        let order = ordered.then_some(order);
        kind.has_size(size).then_some(Self { kind, order, size, unit: None })
    }

    pub(super) fn parse(text: &str) -> Result<Self> {
        Self::read(text).ok_or_else(|| Unlike::new("a NumPy type"))
    }

    fn read(text: &str) -> Option<Self> {
        let (order, rest) = match text.split_at_checked(1)? {
            ("<", rest) => (ByteOrder::Little, rest),
            (">", rest) => (ByteOrder::Big, rest),
            ("=" | "|", rest) => (ByteOrder::NATIVE, rest),
            _ => (ByteOrder::NATIVE, text),
        };
        let (rest, unit) = rest.split_at(rest.find('[').unwrap_or(rest.len()));
        let mut chars = rest.chars();
        let (letter, digits) = (chars.next()?, chars.as_str());
        let kind = match letter {
            // The name of `S` in older versions of NumPy.
            'a' => Kind::Bytes,
            '?' if digits.is_empty() => return Self::new(Kind::Bool, 1, order),
            letter => Kind::ALL.into_iter().find(|kind| kind.letter() == letter)?,
        };
        let count: Option<usize> = number(digits);
        let size = match kind {
            // NumPy accepts both; the size of a pointer depends on the machine that wrote it.
            Kind::Object => matches!(digits, "" | "4" | "8").then_some(8),
            // Without a number the length is flexible. A length of 0 has the same meaning.
            Kind::Bytes | Kind::Void if digits.is_empty() => Some(0),
            Kind::Unicode if digits.is_empty() => Some(0),
            Kind::Unicode => count?.checked_mul(4),
            _ => count,
        };
        let mut scalar = Self::new(kind, size?, order)?;
        if matches!(kind, Kind::DateTime | Kind::TimeDelta) {
            scalar.unit = read_unit(unit)?;
        } else if !unit.is_empty() {
            return None;
        }
        Some(scalar)
    }

    /// Returns NumPy's `dtype.str`.
    pub(super) fn to_text(&self) -> String {
        let order = self.order.map_or('|', ByteOrder::sign);
        let letter = self.kind.letter();
        match (self.kind, self.unit) {
            (Kind::Object, _) => "|O".to_owned(),
            (Kind::Unicode, _) => format!("{}U{}", self.unicode_sign(), self.size / 4),
            (_, Some((1, unit))) => format!("{order}{letter}8[{unit}]"),
            (_, Some((count, unit))) => format!("{order}{letter}8[{count}{unit}]"),
            (_, None) => format!("{order}{letter}{}", self.size),
        }
    }

    /// Returns the notation within other types, where types without a byte order have no prefix.
    pub(super) fn to_short_text(&self) -> String {
        match self.kind {
            Kind::Bool => "?".to_owned(),
            Kind::Bytes if self.size == 0 => "S".to_owned(),
            Kind::Void if self.size == 0 => "V".to_owned(),
            Kind::Unicode if self.size == 0 => format!("{}U", self.unicode_sign()),
            _ => self.to_text().trim_start_matches('|').to_owned(),
        }
    }

    fn unicode_sign(&self) -> char {
        self.order.unwrap_or(ByteOrder::NATIVE).sign()
    }
}

fn number<N: std::str::FromStr>(digits: &str) -> Option<N> {
    // `parse` alone would accept a sign.
    digits.bytes().all(|digit| digit.is_ascii_digit()).then(|| digits.parse().ok())?
}

/// Parses the unit of dates, with its brackets, such as `[ns]`, `[25s]` or an empty text.
#[expect(clippy::option_option, reason = "the outer one states whether it can be read")]
fn read_unit(text: &str) -> Option<Option<(u32, &'static str)>> {
    if matches!(text, "" | "[generic]") {
        return Some(None);
    }
    let inner = text.strip_prefix('[')?.strip_suffix(']')?;
    let name = inner.trim_start_matches(|each: char| each.is_ascii_digit());
    let name = UNITS.into_iter().find(|&unit| unit == name)?;
    let count = match &inner[..inner.len() - name.len()] {
        "" => 1,
        digits => number(digits).filter(|&count| count <= i32::MAX.unsigned_abs())?,
    };
    Some(Some((count, name)))
}
