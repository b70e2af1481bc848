//! Scales: the position of values between two ends, and the numbers beside them.

use std::cmp::Ordering;

use crate::date;

/// A range of values, with equal steps or equal factors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scale {
    /// The values at the positions 0 and 1; `low` may be larger than `high`.
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// Whether positions are proportional to the logarithm; both ends are then positive.
    logarithmic: bool,
    /// The unit of values that are dates.
    unit: Option<(u32, &'static str)>,
}

impl Scale {
    pub(crate) fn new(low: f64, high: f64) -> Self {
        Self { low, high, logarithmic: false, unit: None }
    }

    /// A scale with equal factors; `low` must be positive.
    pub(crate) fn logarithmic(low: f64, high: f64) -> Self {
        Self { low, high, logarithmic: true, unit: None }
    }

    /// The same scale for dates in this unit; for other values if there is none.
    pub(crate) fn with_dates(self, unit: Option<(u32, &'static str)>) -> Self {
        Self { unit, ..self }
    }

    /// The position of a value, 0 to 1. Values beyond an end have the position of the end, NaN has NaN. If both ends
    /// are equal, values at them are in the middle.
    pub(crate) fn at(&self, value: f64) -> f64 {
        let log = |value: f64| if self.logarithmic { value.ln() } else { value };
        let (low, high, value) = (log(self.low), log(self.high), log(value));
        if low == high {
            return match value.partial_cmp(&low) {
                Some(Ordering::Less) => 0.0,
                Some(Ordering::Equal) => 0.5,
                Some(Ordering::Greater) => 1.0,
                None => f64::NAN,
            };
        }
        // Halves, because the difference of the ends may be infinite.
        ((value / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0)).clamp(0.0, 1.0)
    }

    /// The text of a value, with digits down to a hundredth of the range.
    pub(crate) fn text(&self, value: f64) -> String {
        // The difference of the ends may be infinite.
        self.label(value, self.high / 100.0 - self.low / 100.0)
    }

    /// The text of a value, of at most 11 characters, with digits down to the resolution.
    pub(crate) fn label(&self, value: f64, resolution: f64) -> String {
        match self.unit {
            Some(unit) if value.is_finite() => date_label(value, unit, resolution),
            _ => number(value, resolution),
        }
    }

    /// At most about `most` round values between the ends, and the smallest step between them.
    pub(crate) fn ticks(&self, most: u32) -> (Vec<f64>, f64) {
        let (low, high) = (self.low.min(self.high), self.low.max(self.high));
        if self.logarithmic && high / low > 10.0 {
            let powers = low.log10().floor() as i32..=high.log10().ceil() as i32;
            let factors: &[f64] = if high / low > 1e4 { &[1.0] } else { &[1.0, 2.0, 5.0] };
            let all = powers.flat_map(|power| factors.iter().map(move |f| f * power_of_ten(power)));
            let ticks: Vec<f64> = all.filter(|tick| (low..=high).contains(tick)).collect();
            let step = ticks.first().copied().unwrap_or(low);
            return (ticks, step);
        }
        let step = round_step((high / f64::from(most)) - (low / f64::from(most)));
        let (first, last) = ((low / step).ceil(), (high / step).floor());
        if !(step.is_normal() && (0.0..=2.0 * f64::from(most)).contains(&(last - first))) {
            return (vec![low], 0.0);
        }
        let ticks = (0..=(last - first) as u32).map(|k| (first + f64::from(k)) * step);
        let mut ticks: Vec<f64> = ticks.collect();
        // The step may be too small for the precision of the values.
        ticks.dedup();
        (ticks, step)
    }
}

/// The smallest of 1, 2, 5 times a power of 10 that is at least `step`.
fn round_step(step: f64) -> f64 {
    let power = power_of_ten(step.log10().floor() as i32);
    let factors = [1.0, 2.0, 5.0, 10.0];
    // The logarithm may be slightly too large or too small.
    factors
        .map(|factor| factor * power)
        .into_iter()
        .find(|round| *round >= step * 0.999)
        .unwrap_or(step)
}

/// The power of 10 as the nearest `f64`: `powf` and `powi` give slightly different values on some platforms.
fn power_of_ten(exponent: i32) -> f64 {
    format!("1e{exponent}").parse().unwrap_or(f64::NAN)
}

/// The part of a date that shows differences of the resolution, in at most 11 characters.
fn date_label(value: f64, unit: (u32, &'static str), resolution: f64) -> String {
    const MOST: usize = 11;
    let seconds = match unit.1 {
        "Y" => 365.0 * 86_400.0,
        "M" => 28.0 * 86_400.0,
        "W" => 7.0 * 86_400.0,
        "h" => 3_600.0,
        "m" => 60.0,
        "s" => 1.0,
        "ms" => 1e-3,
        "us" => 1e-6,
        "ns" => 1e-9,
        "ps" => 1e-12,
        "fs" => 1e-15,
        "as" => 1e-18,
        _ => 86_400.0,
    };
    let resolution = resolution.abs() * seconds * f64::from(unit.0);
    // The conversion saturates.
    let text = date::date(value.round() as i64, Some(unit));
    let last = |text: &str| text[text.len().saturating_sub(MOST)..].to_owned();
    let Some((day, time)) = text.split_once('T') else { return last(&text) };
    let short = |len: usize| time[..len.min(time.len())].to_owned();
    match resolution {
        86_400.0.. => last(day),
        60.0.. => last(&format!("{day}T{}", short(5))),
        1.0.. => short(8),
        _ => {
            let digits = (-resolution.log10()).ceil().clamp(1.0, 18.0) as usize;
            last(&short("00:00:00.".len() + digits))
        }
    }
}

/// A number as text of at most 11 characters, with digits down to the resolution (0: all digits, if there is room).
pub(crate) fn number(value: f64, resolution: f64) -> String {
    const DIGITS: i32 = 8;
    if !value.is_finite() {
        return value.to_string();
    }
    // A value below the resolution is a rounding error of 0.
    if value == 0.0 || value.abs() < resolution.abs() / 2.0 {
        return "0".to_owned();
    }
    let power = |value: f64| value.abs().log10().floor() as i32;
    let largest = power(value);
    let smallest = if resolution == 0.0 { largest - DIGITS } else { power(resolution) };
    let trimmed = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if (-4..DIGITS - 1).contains(&largest) {
        let decimals = (-smallest).clamp(0, DIGITS - 1 - largest.max(0)) as usize;
        return match trimmed(&format!("{value:.decimals$}")) {
            zero if zero == "-0" => "0".to_owned(),
            text => text,
        };
    }
    // An integer whose first digits do not show the resolution.
    if largest <= 9 && smallest >= 0 && largest - smallest > 3 {
        return format!("{value:.0}");
    }
    let digits = (largest - smallest).clamp(0, 3) as usize;
    let text = format!("{value:.digits$e}");
    match text.split_once('e') {
        Some((mantissa, exponent)) => format!("{}e{exponent}", trimmed(mantissa)),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_between_the_ends() {
        let scale = Scale::new(-1.0, 3.0);
        let at = [-1.0, 0.0, 3.0, 9.0, f64::INFINITY, f64::NEG_INFINITY].map(|v| scale.at(v));
        assert_eq!(at, [0.0, 0.25, 1.0, 1.0, 1.0, 0.0]);
        assert!(scale.at(f64::NAN).is_nan());
        assert_eq!(Scale::new(3.0, -1.0).at(2.0), 0.25);
        assert_eq!(Scale::new(f64::MIN, f64::MAX).at(0.0), 0.5);
        assert_eq!(Scale::logarithmic(1.0, 100.0).at(10.0), 0.5);
        let constant = Scale::new(7.0, 7.0);
        assert_eq!([7.0, 8.0, f64::NEG_INFINITY].map(|v| constant.at(v)), [0.5, 1.0, 0.0]);
        assert!(constant.at(f64::NAN).is_nan());
    }

    /// Labels of ticks are different, and fit beside the picture.
    #[test]
    fn labels_of_dates_and_large_integers_differ() {
        let now = 1_700_000_000i64;
        for (unit, per_second, ranges) in [
            ("ns", 1_000_000_000, &[1, 60, 3_600, 86_400, 30 * 86_400, 9_000 * 86_400][..]),
            ("ms", 1_000, &[1, 60, 3_600, 86_400, 30 * 86_400]),
            ("s", 1, &[10, 600, 86_400, 30 * 86_400]),
        ] {
            for range in ranges {
                let (low, high) = (now * per_second, (now + range) * per_second);
                let scale = Scale::new(low as f64, high as f64).with_dates(Some((1, unit)));
                let (ticks, step) = scale.ticks(6);
                let labels: Vec<_> = ticks.iter().map(|tick| scale.label(*tick, step)).collect();
                assert!(labels.len() > 2, "{labels:?}");
                assert!(labels.windows(2).all(|two| two[0] != two[1]), "{labels:?}");
                assert!(labels.iter().all(|label| label.len() <= 11), "{labels:?}");
            }
        }
        let days = Scale::new(19_000.0, 19_100.0).with_dates(Some((1, "D")));
        assert_eq!(days.text(19_000.0), "2022-01-08");
        let minutes = Scale::new(0.0, 86_400.0).with_dates(Some((1, "s")));
        assert_eq!(minutes.label(3_600.0, 3_600.0), "01-01T01:00");
        let scale = Scale::new(1_700_000_000.0, 1_700_000_100.0);
        assert_eq!(scale.text(1_700_000_050.0), "1700000050");
    }

    #[test]
    fn ticks_are_round() {
        for (low, high, expected, step) in [
            (0.0, 10.0, vec![0.0, 2.0, 4.0, 6.0, 8.0, 10.0], 2.0),
            (10.0, 0.0, vec![0.0, 2.0, 4.0, 6.0, 8.0, 10.0], 2.0),
            (-0.9, 1.2, vec![-0.5, 0.0, 0.5, 1.0], 0.5),
            (5.0, 5.0, vec![5.0], 0.0),
            (1e300, 1e300 * (1.0 + f64::EPSILON), vec![1e300, 1.0000000000000002e300], 2e283),
        ] {
            assert_eq!(Scale::new(low, high).ticks(6), (expected, step), "{low} {high}");
        }
        let (ticks, step) = Scale::new(f64::MIN, f64::MAX).ticks(6);
        assert!(ticks.len() >= 2 && step.is_finite(), "{ticks:?}");
        let (ticks, _) = Scale::new(-f64::MIN_POSITIVE, f64::MIN_POSITIVE).ticks(6);
        assert!(!ticks.is_empty());
        let logarithmic = Scale::logarithmic(150.0, 6000.0).ticks(6);
        assert_eq!(logarithmic, (vec![200.0, 500.0, 1000.0, 2000.0, 5000.0], 200.0));
        assert_eq!(Scale::logarithmic(1.0, 1e6).ticks(6).0.len(), 7);
    }

    #[test]
    fn numbers_are_short() {
        for (value, resolution, expected) in [
            (0.0, 1.0, "0"),
            (-0.0, 0.1, "0"),
            (-0.001, 1.0, "0"),
            (5.5, 0.1, "5.5"),
            (11.0, 0.1, "11"),
            (0.30000000000000004, 0.1, "0.3"),
            (1000.0, 200.0, "1000"),
            (1234567.0, 1.0, "1234567"),
            (2.0f64.sqrt(), 0.0, "1.4142136"),
            (-1234567.25, 0.01, "-1234567.2"),
            (123456789.0, 1000.0, "123456789"),
            (200000000.0, 1000.0, "200000000"),
            (200000000.0, 1e6, "2e8"),
            (0.00002, 0.00001, "2e-5"),
            (-1.23456e-300, 0.0, "-1.235e-300"),
            (f64::NAN, 0.0, "NaN"),
            (f64::INFINITY, 1.0, "inf"),
        ] {
            let text = number(value, resolution);
            assert_eq!(text, expected, "{value} {resolution}");
            assert!(text.len() <= 11);
        }
    }
}
