//! Dates and durations as text, in the notation of NumPy.

/// The number of NumPy's NaT (not a time).
pub(crate) const NAT: i64 = i64::MIN;

const DAY: i128 = 24 * 60 * 60;

/// Units below a day: how many a day has, and the digits after the second.
fn per_day(unit: &str) -> Option<(i128, usize)> {
    Some(match unit {
        "h" => (24, 0),
        "m" => (24 * 60, 0),
        "s" => (DAY, 0),
        "ms" => (DAY * 1_000, 3),
        "us" => (DAY * 1_000_000, 6),
        "ns" => (DAY * 1_000_000_000, 9),
        "ps" => (DAY * 1_000_000_000_000, 12),
        "fs" => (DAY * 1_000_000_000_000_000, 15),
        "as" => (DAY * 1_000_000_000_000_000_000, 18),
        _ => return None,
    })
}

/// The text of a date, which is a multiple of a unit after 1970-01-01. NumPy: `datetime_as_string`.
///
/// Without a unit, it is the number: in NumPy, NaT is the only date without a unit.
pub(crate) fn date(value: i64, unit: Option<(u32, &str)>) -> String {
    let Some((count, unit)) = unit else { return value.to_string() };
    let value = i128::from(value) * i128::from(count);
    match unit {
        "Y" => format!("{:04}", 1970 + value),
        "M" => format!("{:04}-{:02}", 1970 + value.div_euclid(12), value.rem_euclid(12) + 1),
        "W" => day(value * 7),
        _ => match per_day(unit) {
            None => day(value),
            Some((ticks, digits)) => {
                format!(
                    "{}T{}",
                    day(value.div_euclid(ticks)),
                    time(value.rem_euclid(ticks), ticks, digits)
                )
            }
        },
    }
}

/// The time of a day, where a day has `ticks` ticks and `value` have passed.
fn time(value: i128, ticks: i128, digits: usize) -> String {
    let hour = ticks / 24;
    let mut text = format!("{:02}", value / hour);
    if ticks >= 24 * 60 {
        text += &format!(":{:02}", value % hour / (ticks / (24 * 60)));
    }
    if ticks >= DAY {
        text += &format!(":{:02}", value % (ticks / (24 * 60)) / (ticks / DAY));
    }
    if digits > 0 {
        text += &format!(".{:0digits$}", value % (ticks / DAY));
    }
    text
}

/// The date of a day, counted from 1970-01-01, in the Gregorian calendar extended to all years.
fn day(days: i128) -> String {
    /// Days in 400 years.
    const CYCLE: i128 = 146_097;
    /// Days from 0000-03-01 to 1970-01-01. A year that starts in March has its leap day at the end.
    const FROM_MARCH_0: i128 = 719_468;
    let days = days + FROM_MARCH_0;
    let (cycle, of_cycle) = (days.div_euclid(CYCLE), days.rem_euclid(CYCLE));
    // Every 4th year has a leap day, except every 100th, except the 400th.
    let year = (of_cycle - of_cycle / 1_460 + of_cycle / 36_524 - of_cycle / 146_096) / 365;
    let of_year = of_cycle - (365 * year + year / 4 - year / 100);
    // From March on, 5 months have 153 days.
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    format!("{:04}-{month:02}-{of_month:02}", cycle * 400 + year + next)
}

/// The text of a duration that is not in an array. NumPy: `str(numpy.timedelta64(value))`.
pub(crate) fn duration(value: i64, unit: Option<(u32, &str)>) -> String {
    let (count, unit) = unit.unwrap_or((1, ""));
    let name = match unit {
        "Y" => "years",
        "M" => "months",
        "W" => "weeks",
        "D" => "days",
        "h" => "hours",
        "m" => "minutes",
        "s" => "seconds",
        "ms" => "milliseconds",
        "us" => "microseconds",
        "ns" => "nanoseconds",
        "ps" => "picoseconds",
        "fs" => "femtoseconds",
        "as" => "attoseconds",
        _ => "generic time units",
    };
    format!("{} {name}", i128::from(value) * i128::from(count))
}
