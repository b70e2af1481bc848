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

/// The names of types that NumPy accepts, with their kinds and their sizes in bytes. A byte order
/// cannot precede them. The sizes of C's types are those of 64-bit Linux.
const NAMES: [(&[&str], Kind, usize); 20] = [
    (&["bool", "bool_"], Kind::Bool, 1),
    (&["int8", "byte"], Kind::Int, 1),
    (&["int16", "short"], Kind::Int, 2),
    (&["int32", "intc"], Kind::Int, 4),
    (&["int64", "int", "int_", "intp", "long", "longlong"], Kind::Int, 8),
    (&["uint8", "ubyte"], Kind::UInt, 1),
    (&["uint16", "ushort"], Kind::UInt, 2),
    (&["uint32", "uintc"], Kind::UInt, 4),
    (&["uint64", "uint", "uintp", "ulong", "ulonglong"], Kind::UInt, 8),
    (&["float16", "half"], Kind::Float, 2),
    (&["float32", "single"], Kind::Float, 4),
    (&["float64", "float", "double"], Kind::Float, 8),
    (&["float128", "longdouble"], Kind::Float, 16),
    (&["complex64", "csingle"], Kind::Complex, 8),
    (&["complex128", "complex", "cdouble"], Kind::Complex, 16),
    (&["complex256", "clongdouble"], Kind::Complex, 32),
    (&["bytes", "bytes_", "a"], Kind::Bytes, 0),
    (&["str", "str_", "unicode"], Kind::Unicode, 0),
    (&["void"], Kind::Void, 0),
    (&["object", "object_"], Kind::Object, 8),
];

/// The one-letter codes of types, NumPy's `dtype.char`. The sizes of C's types are those of 64-bit
/// Linux. The length of texts and raw bytes is flexible; a length of 0 has the same meaning.
const CODES: [(&str, Kind, usize); 23] = [
    ("?", Kind::Bool, 1),
    ("b", Kind::Int, 1),
    ("h", Kind::Int, 2),
    ("i", Kind::Int, 4),
    ("lqpn", Kind::Int, 8),
    ("B", Kind::UInt, 1),
    ("H", Kind::UInt, 2),
    ("I", Kind::UInt, 4),
    ("LQPN", Kind::UInt, 8),
    ("e", Kind::Float, 2),
    ("f", Kind::Float, 4),
    ("d", Kind::Float, 8),
    ("g", Kind::Float, 16),
    ("F", Kind::Complex, 8),
    ("D", Kind::Complex, 16),
    ("G", Kind::Complex, 32),
    ("M", Kind::DateTime, 8),
    ("m", Kind::TimeDelta, 8),
    ("S", Kind::Bytes, 0),
    ("V", Kind::Void, 0),
    // A text of one character, in older versions of NumPy.
    ("c", Kind::Bytes, 1),
    ("U", Kind::Unicode, 0),
    ("O", Kind::Object, 8),
];

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
        if let Some(&(_, kind, size)) = NAMES.iter().find(|(names, ..)| names.contains(&text)) {
            return Self::new(kind, size, ByteOrder::NATIVE);
        }
        let (order, rest) = match text.split_at_checked(1)? {
            ("<", rest) => (ByteOrder::Little, rest),
            (">", rest) => (ByteOrder::Big, rest),
            ("=" | "|", rest) => (ByteOrder::NATIVE, rest),
            _ => (ByteOrder::NATIVE, text),
        };
        let (rest, unit) = rest.split_at(rest.find('[').unwrap_or(rest.len()));
        let time = match rest {
            "M8" | "datetime64" => Some(Kind::DateTime),
            "m8" | "timedelta64" => Some(Kind::TimeDelta),
            _ => None,
        };
        if let Some(kind) = time {
            return Some(Self { unit: read_unit(unit)?, ..Self::new(kind, 8, order)? });
        }
        if !unit.is_empty() {
            return None;
        }
        let mut chars = rest.chars();
        let (letter, digits) = (chars.next()?, chars.as_str());
        if digits.is_empty() {
            let &(_, kind, size) = CODES.iter().find(|(letters, ..)| letters.contains(letter))?;
            return Self::new(kind, size, order);
        }
        let kind = match letter {
            // The name of `S` in older versions of NumPy.
            'a' => Kind::Bytes,
            letter => Kind::ALL.into_iter().find(|kind| kind.letter() == letter)?,
        };
        let count: usize = number(digits)?;
        let size = match kind {
            // NumPy accepts both; the size of a pointer depends on the machine that wrote it.
            Kind::Object => matches!(count, 4 | 8).then_some(8)?,
            Kind::Unicode => count.checked_mul(4)?,
            _ => count,
        };
        Self::new(kind, size, order)
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
    let digits = &inner[..inner.len() - name.len()];
    let name = if name == "μs" { "us" } else { name };
    let name = UNITS.into_iter().find(|&unit| unit == name)?;
    let count = match digits {
        "" => 1,
        digits => number(digits).filter(|&count| count <= i32::MAX.unsigned_abs())?,
    };
    Some(Some((count, name)))
}
