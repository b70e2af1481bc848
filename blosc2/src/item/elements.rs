//! Item types for NumPy's strings, raw bytes, dates and times; and [`ElementLayout`], the layout of user-defined item
//! types.
//!
//! | type | dtype | Python |
//! |---|---|---|
//! | [`FixedBytes<N>`](FixedBytes) | `\|S10` for `N` = 10 | `np.bytes_` of up to `N` bytes |
//! | [`FixedStr<N>`](FixedStr) | `<U10` for `N` = 10 | `np.str_` of up to `N` characters |
//! | [`Void<N>`](Void) | `\|V10` for `N` = 10 | `np.void` of `N` bytes |
//! | [`DateTime64<U>`](DateTime64) | `<M8[ns]` for `U` = [`Nanoseconds`] | `np.datetime64` |
//! | [`TimeDelta64<U>`](TimeDelta64) | `<m8[ns]` for `U` = [`Nanoseconds`] | `np.timedelta64` |
//!
//! The types in this table can be the item types of arrays and the types of struct fields:
//! ```
//! use blosc2::elements::{DateTime64, FixedStr, Seconds};
//! use blosc2::{Element, NDArray};
//!
//! let names = ["Ada", "Grace"].map(|name| FixedStr::<10>::new(name).unwrap());
//! let array = NDArray::from_slice(&names, &[2])?;
//! assert_eq!(array.item::<FixedStr<10>>(&[1])?, "Grace");
//! if cfg!(target_endian = "little") {
//!     assert_eq!(array.dtype_str(), Some("<U10"));
//!     assert_eq!(DateTime64::<Seconds>::dtype().to_string(), "<M8[s]");
//! }
//! # Ok::<(), blosc2::Error>(())
//! ```

pub use crate::item::element::{ElementField, ElementLayout, bytes_of};

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use crate::dtype::Kind;
use crate::item::element::Element;
use crate::{Dtype, Error, ErrorKind, Result};

const MAKE: &str = "create an item";

fn scalar(kind: Kind, size: usize) -> Dtype {
    // `ElementLayout` has checked the size.
    Dtype::scalar(kind, size).expect("a scalar dtype of NumPy")
}

/// Returns the items without trailing zeros. In NumPy, trailing zeros are not part of a text.
pub(super) fn without_zeros<T: Default + PartialEq>(items: &[T]) -> &[T] {
    let len = items.iter().rposition(|item| *item != T::default()).map_or(0, |last| last + 1);
    &items[..len]
}

/// A byte string of up to `N` bytes, padded with zeros. NumPy: `S`.
///
/// As in NumPy, trailing zeros are not part of the string.
///
/// ```
/// use blosc2::elements::FixedBytes;
///
/// let name: FixedBytes<8> = "station".parse()?;
/// assert_eq!(name, "station");
/// assert_eq!(name.as_bytes(), b"station");
/// assert_eq!(name.to_string(), "station");
/// assert!(FixedBytes::<8>::new("a long name").is_err());
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct FixedBytes<const N: usize>(pub [u8; N]);

impl<const N: usize> FixedBytes<N> {
    /// Creates an item from a string or from bytes.
    ///
    /// # Errors
    /// - [`ErrorKind::TooLarge`]: `text` has more than `N` bytes.
    pub fn new(text: impl AsRef<[u8]>) -> Result<Self> {
        let text = text.as_ref();
        let mut bytes = [0; N];
        let Some(target) = bytes.get_mut(..text.len()) else {
            let detail = format!("the item has {N} bytes, got {}", text.len());
            return Err(Error::new(ErrorKind::TooLarge, MAKE, detail));
        };
        target.copy_from_slice(text);
        Ok(Self(bytes))
    }

    /// Returns the bytes without trailing zeros.
    pub fn as_bytes(&self) -> &[u8] {
        without_zeros(&self.0)
    }
}

/// Formats the string. Bytes that are not valid UTF-8 are shown as U+FFFD.
impl<const N: usize> fmt::Display for FixedBytes<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&String::from_utf8_lossy(self.as_bytes()))
    }
}

impl<const N: usize> fmt::Debug for FixedBytes<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\"", self.as_bytes().escape_ascii())
    }
}

impl<const N: usize> PartialEq<str> for FixedBytes<N> {
    fn eq(&self, other: &str) -> bool {
        self.as_bytes() == without_zeros(other.as_bytes())
    }
}

impl<const N: usize> Default for FixedBytes<N> {
    fn default() -> Self {
        Self([0; N])
    }
}

// SAFETY: the type is an array of bytes, and any bytes are a valid value of it.
unsafe impl<const N: usize> Element for FixedBytes<N> {
    const LAYOUT: ElementLayout = ElementLayout::bytes(N);

    fn dtype() -> Dtype {
        scalar(Kind::Bytes, N)
    }
}

/// A Unicode string of up to `N` characters of 4 bytes each, padded with zeros. NumPy: `U`.
///
/// As in NumPy, trailing zeros are not part of the string. A file can contain numbers that are not Unicode characters;
/// [`chars`](Self::chars) returns them as errors.
///
/// ```
/// use blosc2::elements::FixedStr;
///
/// let city: FixedStr<8> = "Zürich".parse()?;
/// assert_eq!(city, "Zürich");
/// assert_eq!(city.to_string(), "Zürich");
/// assert!(FixedStr::<5>::new("Zürich").is_err());
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct FixedStr<const N: usize>(pub [u32; N]);

impl<const N: usize> FixedStr<N> {
    /// Creates an item from a string.
    ///
    /// # Errors
    /// - [`ErrorKind::TooLarge`]: `text` has more than `N` characters.
    pub fn new(text: &str) -> Result<Self> {
        let mut characters = [0; N];
        for (index, character) in text.chars().enumerate() {
            let Some(target) = characters.get_mut(index) else {
                let found = text.chars().count();
                let detail = format!("the item has {N} characters, got {found}");
                return Err(Error::new(ErrorKind::TooLarge, MAKE, detail));
            };
            *target = character.into();
        }
        Ok(Self(characters))
    }

    /// Returns an iterator over the characters, without trailing zeros. A number that is not a Unicode character is
    /// returned as `Err`.
    pub fn chars(&self) -> impl DoubleEndedIterator<Item = Result<char, u32>> + '_ {
        without_zeros(&self.0).iter().map(|&number| char::from_u32(number).ok_or(number))
    }
}

/// Formats the string. Numbers that are not Unicode characters are shown as U+FFFD.
impl<const N: usize> fmt::Display for FixedStr<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text: String =
            self.chars().map(|each| each.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
        f.pad(&text)
    }
}

impl<const N: usize> fmt::Debug for FixedStr<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_string(), f)
    }
}

impl<const N: usize> PartialEq<str> for FixedStr<N> {
    fn eq(&self, other: &str) -> bool {
        self.chars().eq(other.trim_end_matches('\0').chars().map(Ok))
    }
}

impl<const N: usize> Default for FixedStr<N> {
    fn default() -> Self {
        Self([0; N])
    }
}

// SAFETY: the type is an array of numbers, and any bytes are a valid value of it.
unsafe impl<const N: usize> Element for FixedStr<N> {
    const LAYOUT: ElementLayout = ElementLayout::array::<u32>(N);

    fn dtype() -> Dtype {
        scalar(Kind::Unicode, 4 * N)
    }
}

macro_rules! texts {
    ($($name:ident),*) => {$(
        impl<const N: usize> PartialEq<&str> for $name<N> {
            fn eq(&self, other: &&str) -> bool {
                *self == **other
            }
        }

        impl<const N: usize> FromStr for $name<N> {
            type Err = Error;

            fn from_str(text: &str) -> Result<Self> {
                Self::new(text)
            }
        }

        impl<const N: usize> TryFrom<&str> for $name<N> {
            type Error = Error;

            fn try_from(text: &str) -> Result<Self> {
                Self::new(text)
            }
        }
    )*};
}

texts!(FixedBytes, FixedStr);

/// `N` uninterpreted bytes. NumPy: `V`.
///
/// ```
/// use blosc2::NDArray;
/// use blosc2::elements::Void;
///
/// let array = NDArray::from_slice(&[Void([1u8, 2, 3]), Void([4, 5, 6])], 2)?;
/// assert_eq!(array.dtype_str(), Some("|V3"));
/// assert_eq!(array.item::<Void<3>>(1)?.0, [4, 5, 6]);
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Void<const N: usize>(pub [u8; N]);

impl<const N: usize> Default for Void<N> {
    fn default() -> Self {
        Self([0; N])
    }
}

// SAFETY: the type is an array of bytes, and any bytes are a valid value of it.
unsafe impl<const N: usize> Element for Void<N> {
    const LAYOUT: ElementLayout = ElementLayout::bytes(N);

    fn dtype() -> Dtype {
        scalar(Kind::Void, N)
    }
}

/// The unit of a [`DateTime64`] or [`TimeDelta64`]. The unit types of this module, such as [`Seconds`], implement this
/// trait. The trait is sealed.
///
/// ```
/// use blosc2::elements::{Days, TimeDelta64, TimeUnit};
///
/// fn nanoseconds<U: TimeUnit>(delta: TimeDelta64<U>) -> Option<u64> {
///     U::NANOSECONDS?.checked_mul(u64::try_from(delta.get()).ok()?)
/// }
///
/// assert_eq!(Days::SYMBOL, "D");
/// assert_eq!(nanoseconds(TimeDelta64::<Days>::new(2)), Some(172_800_000_000_000));
/// ```
pub trait TimeUnit:
    sealed::Sealed + fmt::Debug + Copy + Ord + std::hash::Hash + Send + Sync + 'static
{
    /// NumPy's symbol of the unit, such as `ns`.
    const SYMBOL: &'static str;
    /// The length of the unit in nanoseconds; `None` for years and months, whose lengths vary, and for units shorter
    /// than a nanosecond.
    const NANOSECONDS: Option<u64>;
}

mod sealed {
    pub trait Sealed {
        /// The plural of its name.
        const NAME: &'static str;
        const STEP: Step;
    }

    /// The length of a unit, which determines the fields of a printed time.
    #[derive(Debug, Clone, Copy)]
    pub enum Step {
        Year,
        Month,
        /// This number of days.
        Days(i128),
        /// A fraction of a day: this number of units in a day.
        OfDay(i128),
    }
}

use sealed::Step;

/// A unit of time, which a type alias such as [`Seconds`] names. `INDEX` counts the aliases from [`Years`] on; other
/// indices do not compile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unit<const INDEX: usize> {}

impl<const INDEX: usize> sealed::Sealed for Unit<INDEX> {
    const NAME: &'static str = UNITS[INDEX].0;
    const STEP: Step = UNITS[INDEX].3;
}

impl<const INDEX: usize> TimeUnit for Unit<INDEX> {
    const SYMBOL: &'static str = UNITS[INDEX].1;
    const NANOSECONDS: Option<u64> = UNITS[INDEX].2;
}

const SECOND: u64 = 1_000_000_000;
/// The number of seconds in a day.
const SECONDS: i128 = 86_400;

/// The name, the symbol, the nanoseconds and the step of each unit.
const UNITS: [(&str, &str, Option<u64>, Step); 13] = [
    ("years", "Y", None, Step::Year),
    ("months", "M", None, Step::Month),
    ("weeks", "W", Some(7 * 86_400 * SECOND), Step::Days(7)),
    ("days", "D", Some(86_400 * SECOND), Step::Days(1)),
    ("hours", "h", Some(3_600 * SECOND), Step::OfDay(24)),
    ("minutes", "m", Some(60 * SECOND), Step::OfDay(1_440)),
    ("seconds", "s", Some(SECOND), Step::OfDay(SECONDS)),
    ("milliseconds", "ms", Some(1_000_000), Step::OfDay(SECONDS * 1_000)),
    ("microseconds", "us", Some(1_000), Step::OfDay(SECONDS * 1_000_000)),
    ("nanoseconds", "ns", Some(1), Step::OfDay(SECONDS * 1_000_000_000)),
    ("picoseconds", "ps", None, Step::OfDay(SECONDS * 1_000_000_000_000)),
    ("femtoseconds", "fs", None, Step::OfDay(SECONDS * 1_000_000_000_000_000)),
    ("attoseconds", "as", None, Step::OfDay(SECONDS * 1_000_000_000_000_000_000)),
];

/// Years. NumPy: `Y`.
pub type Years = Unit<0>;
/// Months. NumPy: `M`.
pub type Months = Unit<1>;
/// Weeks. NumPy: `W`.
pub type Weeks = Unit<2>;
/// Days. NumPy: `D`.
pub type Days = Unit<3>;
/// Hours. NumPy: `h`.
pub type Hours = Unit<4>;
/// Minutes. NumPy: `m`.
pub type Minutes = Unit<5>;
/// Seconds. NumPy: `s`.
pub type Seconds = Unit<6>;
/// Milliseconds. NumPy: `ms`.
pub type Milliseconds = Unit<7>;
/// Microseconds. NumPy: `us`.
pub type Microseconds = Unit<8>;
/// Nanoseconds. NumPy: `ns`.
pub type Nanoseconds = Unit<9>;
/// Picoseconds. NumPy: `ps`.
pub type Picoseconds = Unit<10>;
/// Femtoseconds. NumPy: `fs`.
pub type Femtoseconds = Unit<11>;
/// Attoseconds. NumPy: `as`.
pub type Attoseconds = Unit<12>;

/// Returns the dtype of a scalar with a unit, in native byte order.
fn with_unit(letter: char, symbol: &str) -> Dtype {
    let order = if cfg!(target_endian = "little") { '<' } else { '>' };
    Dtype::parse(&format!("{order}{letter}8[{symbol}]")).expect("a unit of NumPy")
}

macro_rules! times {
    ($($(#[$doc:meta])* $name:ident, $letter:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        pub struct $name<U: TimeUnit>(i64, PhantomData<U>);

        impl<U: TimeUnit> $name<U> {
            /// The value "not a time". NumPy: `NaT`.
            pub const NAT: Self = Self::new(i64::MIN);

            /// Creates a value of `count` units.
            pub const fn new(count: i64) -> Self {
                Self(count, PhantomData)
            }

            /// Returns the number of units; `i64::MIN` for [`NAT`](Self::NAT).
            pub const fn get(self) -> i64 {
                self.0
            }

            /// Returns whether the value is [`NAT`](Self::NAT).
            pub const fn is_nat(self) -> bool {
                self.0 == i64::MIN
            }
        }

        impl<U: TimeUnit> fmt::Debug for $name<U> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        // SAFETY: the type is a number, and any bytes are a valid value of it.
        unsafe impl<U: TimeUnit> Element for $name<U> {
            const LAYOUT: ElementLayout = <i64 as Element>::LAYOUT;

            fn dtype() -> Dtype {
                with_unit($letter, U::SYMBOL)
            }
        }
    )*};
}

times! {
    /// A point in time: the number of units since 1970-01-01T00:00, UTC. NumPy: `datetime64`.
    ///
    /// Values are ordered by their number of units, so [`NAT`](Self::NAT) is the smallest value. `Display` formats a
    /// value as NumPy does: in ISO 8601 with the precision of the unit, or as `NaT`.
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    ///
    /// use blosc2::elements::{DateTime64, Milliseconds};
    ///
    /// let time = SystemTime::UNIX_EPOCH + Duration::from_micros(1_500_900);
    /// let stored = DateTime64::<Milliseconds>::from_system_time(time).unwrap();
    /// assert_eq!(stored.get(), 1500);
    /// assert_eq!(stored.to_string(), "1970-01-01T00:00:01.500");
    /// assert_eq!(stored.to_system_time(), Some(SystemTime::UNIX_EPOCH + Duration::from_millis(1500)));
    /// ```
    DateTime64, 'M';
    /// A duration: a number of units of time. NumPy: `timedelta64`.
    ///
    /// `Display` formats a duration as NumPy does: `5 days`, or `NaT`.
    ///
    /// ```
    /// use blosc2::elements::{Days, TimeDelta64};
    ///
    /// let delta = TimeDelta64::<Days>::new(5);
    /// assert_eq!((delta.get(), delta.to_string()), (5, "5 days".to_owned()));
    /// assert!(TimeDelta64::<Days>::NAT.is_nat());
    /// ```
    TimeDelta64, 'm';
}

impl<U: TimeUnit> DateTime64<U> {
    /// Converts a `SystemTime`, rounded down to whole units. Returns `None` if the number of units does not fit in an
    /// `i64`. Also returns `None` for years, months and units shorter than a nanosecond: their
    /// [`TimeUnit::NANOSECONDS`] is `None`.
    pub fn from_system_time(time: SystemTime) -> Option<Self> {
        let unit = i128::from(U::NANOSECONDS?);
        let nanoseconds = match time.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(after) => i128::try_from(after.as_nanos()).ok()?,
            Err(before) => -i128::try_from(before.duration().as_nanos()).ok()?,
        };
        let count = i64::try_from(nanoseconds.div_euclid(unit)).ok()?;
        (count != i64::MIN).then(|| Self::new(count))
    }

    /// Converts to a `SystemTime`. Returns `None` for [`NAT`](Self::NAT), and if the time is outside the range of
    /// `SystemTime`. Also returns `None` for years, months and units shorter than a nanosecond: their
    /// [`TimeUnit::NANOSECONDS`] is `None`. The resolution is that of `SystemTime`: 100 ns on Windows, where the rest is
    /// cut off.
    pub fn to_system_time(self) -> Option<SystemTime> {
        let unit = i128::from(U::NANOSECONDS?);
        if self.is_nat() {
            return None;
        }
        let nanoseconds = i128::from(self.0) * unit;
        let size = nanoseconds.unsigned_abs();
        let seconds = u64::try_from(size / u128::from(SECOND)).ok()?;
        let distance = Duration::new(seconds, (size % u128::from(SECOND)) as u32);
        match nanoseconds < 0 {
            true => SystemTime::UNIX_EPOCH.checked_sub(distance),
            false => SystemTime::UNIX_EPOCH.checked_add(distance),
        }
    }
}

impl<U: TimeUnit> fmt::Display for DateTime64<U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_nat() {
            return f.pad("NaT");
        }
        let count = i128::from(self.0);
        let text = match U::STEP {
            Step::Year => format!("{:04}", 1970 + count),
            Step::Month => {
                let (year, month) = (1970 + count.div_euclid(12), count.rem_euclid(12) + 1);
                format!("{year:04}-{month:02}")
            }
            Step::Days(days) => date(count * days),
            Step::OfDay(units) => {
                let (day, rest) = (count.div_euclid(units), count.rem_euclid(units));
                date(day) + &time(rest, units)
            }
        };
        f.pad(&text)
    }
}

impl<U: TimeUnit> fmt::Display for TimeDelta64<U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_nat() {
            true => f.pad("NaT"),
            false => f.pad(&format!("{} {}", self.0, U::NAME)),
        }
    }
}

/// Returns the date `days` days after 1970-01-01, in the Gregorian calendar.
fn date(days: i128) -> String {
    // Years start on 1 March of the year 0: a leap day is then the last day of a year, and of each 4, 100 and 400
    // years.
    const CENTURIES: i128 = 146_097;
    let days = days + 719_468;
    let (start, day) = (400 * days.div_euclid(CENTURIES), days.rem_euclid(CENTURIES));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    // Five months, starting in March or August, have 153 days.
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (year, month) = (start + year + month / 10, (month + 2) % 12 + 1);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Returns the time of day `rest` units after midnight, if a day has `units` units.
fn time(rest: i128, units: i128) -> String {
    let mut text = format!("T{:02}", rest * 24 / units);
    for parts in [1_440, SECONDS] {
        if units >= parts {
            text += &format!(":{:02}", rest * parts / units % 60);
        }
    }
    let fractions = units / SECONDS;
    if fractions > 1 {
        let digits = fractions.ilog10() as usize;
        text += &format!(".{:0digits$}", rest % fractions);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_end_at_their_last_character() {
        assert_eq!(FixedBytes::<4>::new(b"a\0b\0").unwrap().as_bytes(), b"a\0b");
        assert_eq!(FixedBytes::<4>::default().to_string(), "");
        assert_eq!(FixedBytes::<4>::new("").unwrap(), FixedBytes::default());
        assert_eq!(format!("{:?}", FixedBytes::<3>([0xff, b'"', 0])), r#"b"\xff\"""#);
        assert_eq!(FixedBytes::<4>::new("12345").unwrap_err().kind(), ErrorKind::TooLarge);
        let broken = FixedStr::<3>([0xd800, 65, 0]);
        assert_eq!(broken.to_string(), "\u{fffd}A");
        assert_eq!(broken.chars().collect::<Vec<_>>(), [Err(0xd800), Ok('A')]);
        assert!(broken != "\u{fffd}A");
        assert_eq!(FixedStr::<2>::new("日本").unwrap(), "日本");
        assert!(FixedStr::<2>::new("日本").unwrap() != "日");
        assert_eq!(FixedStr::<1>::new("日本").unwrap_err().kind(), ErrorKind::TooLarge);
    }

    #[test]
    fn texts_are_made_of_and_compared_with_str() {
        let bytes: FixedBytes<3> = "abc".parse().unwrap();
        assert_eq!(bytes, FixedBytes::try_from("abc").unwrap());
        assert!(bytes == "abc" && bytes == *"abc" && bytes == "abc\0" && bytes != "ab");
        let text: FixedStr<3> = "abc".parse().unwrap();
        assert_eq!(text, FixedStr::try_from("abc").unwrap());
        assert!(text == "abc" && text == *"abc" && text == "abc\0" && text != "ab");
        assert_eq!("abcd".parse::<FixedBytes<3>>().unwrap_err().kind(), ErrorKind::TooLarge);
        assert_eq!(FixedStr::<3>::try_from("abcd").unwrap_err().kind(), ErrorKind::TooLarge);
    }

    #[test]
    fn moments_are_printed_as_by_numpy() {
        fn text<U: TimeUnit>(count: i64) -> String {
            DateTime64::<U>::new(count).to_string()
        }
        // The output of `str(numpy.datetime64(count, unit))`.
        for (count, expected) in [(0, "1970"), (-1971, "-001"), (-1970, "0000"), (8030, "10000")] {
            assert_eq!(text::<Years>(count), expected);
        }
        assert_eq!(text::<Months>(-1), "1969-12");
        assert_eq!(text::<Weeks>(1), "1970-01-08");
        let days = [
            (-1, "1969-12-31"),
            (59, "1970-03-01"),
            (789, "1972-02-29"),
            (790, "1972-03-01"),
            (11_016, "2000-02-29"),
            (47_541, "2100-03-01"),
            (47_540, "2100-02-28"),
            (-719_468, "0000-03-01"),
            (-719_469, "0000-02-29"),
            (-719_528, "0000-01-01"),
            (-719_529, "-001-12-31"),
            (2_932_896, "9999-12-31"),
        ];
        for (count, expected) in days {
            assert_eq!(text::<Days>(count), expected);
        }
        assert_eq!(text::<Hours>(-1), "1969-12-31T23");
        assert_eq!(text::<Minutes>(61), "1970-01-01T01:01");
        assert_eq!(text::<Seconds>(1_000_000_000), "2001-09-09T01:46:40");
        assert_eq!(text::<Milliseconds>(1_000_000_000_000), "2001-09-09T01:46:40.000");
        assert_eq!(text::<Milliseconds>(-1), "1969-12-31T23:59:59.999");
        assert_eq!(text::<Microseconds>(1), "1970-01-01T00:00:00.000001");
        assert_eq!(text::<Nanoseconds>(i64::MAX), "2262-04-11T23:47:16.854775807");
        assert_eq!(text::<Picoseconds>(86_400_000_000_000_000), "1970-01-02T00:00:00.000000000000");
        assert_eq!(text::<Femtoseconds>(-1), "1969-12-31T23:59:59.999999999999999");
        assert_eq!(text::<Attoseconds>(i64::MAX), "1970-01-01T00:00:09.223372036854775807");
        assert_eq!(text::<Days>(i64::MIN), "NaT");
        assert!(text::<Weeks>(i64::MAX).len() > 10 && text::<Years>(i64::MIN + 1).starts_with('-'));
        assert_eq!(format!("{:>12}|", DateTime64::<Days>::new(0)), "  1970-01-01|");
        assert_eq!(TimeDelta64::<Microseconds>::new(-5).to_string(), "-5 microseconds");
    }

    #[test]
    fn moments_are_those_of_the_clock() {
        let epoch = SystemTime::UNIX_EPOCH;
        for (moment, seconds) in [(epoch, 0), (epoch - Duration::from_millis(1), -1)] {
            let stored = DateTime64::<Seconds>::from_system_time(moment).unwrap();
            assert_eq!(stored.get(), seconds);
        }
        for count in [0, 1, -1, 1_000_000_007, i64::MAX, i64::MIN + 1] {
            let moment = DateTime64::<Nanoseconds>::new(count);
            let system = moment.to_system_time().unwrap();
            // Windows counts in units of 100 ns.
            let stored = if cfg!(windows) { count / 100 * 100 } else { count };
            assert_eq!(
                DateTime64::from_system_time(system),
                Some(DateTime64::<Nanoseconds>::new(stored))
            );
        }
        assert_eq!(DateTime64::<Years>::new(50).to_system_time(), None);
        assert_eq!(DateTime64::<Weeks>::new(i64::MAX).to_system_time(), None);
        assert_eq!(DateTime64::<Seconds>::NAT.to_system_time(), None);
        assert_eq!(
            format!("{:?} {:?}", DateTime64::<Days>::new(3), TimeDelta64::<Days>::NAT),
            "1970-01-04 NaT"
        );
    }
}
