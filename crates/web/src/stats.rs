//! Statistics and a histogram of numbers.

use serde_json::{Value, json};

/// The number of bins of a histogram.
const BINS: usize = 64;
/// The number of values from which percentiles and the histogram are computed.
const KEPT: usize = 1 << 17;
/// The percentiles.
const PERCENTILES: [f64; 11] = [0.0, 1.0, 2.0, 5.0, 25.0, 50.0, 75.0, 95.0, 98.0, 99.0, 100.0];

/// Statistics that are computed in one pass. Positions are those that the caller states.
#[derive(Debug, Clone)]
pub struct Statistics {
    count: u64,
    nan: u64,
    infinite: u64,
    min: (f64, u64),
    max: (f64, u64),
    /// The least number above zero.
    positive: f64,
    sum: f64,
    /// The mean so far, and the sum of the squares of the differences from it.
    mean: f64,
    squares: f64,
    /// Every `every`-th finite number.
    kept: Vec<f64>,
    every: u64,
}

impl Default for Statistics {
    fn default() -> Self {
        Self {
            count: 0,
            nan: 0,
            infinite: 0,
            min: (f64::INFINITY, 0),
            max: (f64::NEG_INFINITY, 0),
            positive: f64::INFINITY,
            sum: 0.0,
            mean: 0.0,
            squares: 0.0,
            kept: Vec::new(),
            every: 1,
        }
    }
}

impl Statistics {
    /// Adds numbers; `at` is the position of the first one.
    pub fn add(&mut self, values: &[f64], at: u64) {
        for (&value, at) in values.iter().zip(at..) {
            if !value.is_finite() {
                let count = if value.is_nan() { &mut self.nan } else { &mut self.infinite };
                *count += 1;
                continue;
            }
            if value < self.min.0 {
                self.min = (value, at);
            }
            if value > self.max.0 {
                self.max = (value, at);
            }
            if value > 0.0 && value < self.positive {
                self.positive = value;
            }
            if self.count.is_multiple_of(self.every) {
                self.keep(value);
            }
            self.count += 1;
            self.sum += value;
            let difference = value - self.mean;
            self.mean += difference / self.count as f64;
            self.squares += difference * (value - self.mean);
        }
    }

    fn keep(&mut self, value: f64) {
        self.kept.push(value);
        if self.kept.len() > KEPT {
            let mut k = 0;
            self.kept.retain(|_| {
                k += 1;
                k % 2 == 1
            });
            self.every *= 2;
        }
    }

    /// Returns the statistics. `all` states whether the numbers are all that the view shows. `index` returns the indices
    /// of the item at a position. If there are more than 131072 numbers, the median, the percentiles and the histogram are
    /// those of every 2^n-th number, and `kept` is `false`.
    pub fn to_json(&self, all: bool, index: &dyn Fn(u64) -> Vec<u64>) -> Value {
        let mut facts = json!({
            "all": all,
            "count": self.count + self.nan + self.infinite,
            "nan": self.nan,
            "infinite": self.infinite,
        });
        if self.count == 0 {
            return facts;
        }
        let mut sorted = self.kept.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let (min, max) = (self.min.0, self.max.0);
        let percentile = |percent: f64| match percent {
            0.0 => min,
            100.0 => max,
            _ => sorted[((sorted.len() - 1) as f64 * percent / 100.0).round() as usize],
        };
        let half = sorted.len() / 2;
        let median = match sorted.len() % 2 {
            // Half of each, because the sum can be too large for a number.
            0 => sorted[half - 1] / 2.0 + sorted[half] / 2.0,
            _ => sorted[half],
        };
        let percentiles: Vec<[f64; 2]> =
            PERCENTILES.map(|percent| [percent, percentile(percent)]).to_vec();
        let mut bins = [0u64; BINS];
        let width = max - min;
        for value in &sorted {
            let bin = if width > 0.0 { (value - min) / width * BINS as f64 } else { 0.0 };
            bins[(bin as usize).min(BINS - 1)] += 1;
        }
        let more = json!({
            "min": min,
            "minAt": index(self.min.1),
            "max": max,
            "maxAt": index(self.max.1),
            "positive": Some(self.positive).filter(|value| value.is_finite()),
            "mean": self.sum / self.count as f64,
            "std": (self.squares / self.count as f64).sqrt(),
            "median": median,
            "kept": self.every == 1,
            "percentiles": percentiles,
            "bins": bins.to_vec(),
        });
        if let (Value::Object(facts), Value::Object(more)) = (&mut facts, more) {
            facts.extend(more);
        }
        facts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_are_those_of_the_numbers() {
        let mut stats = Statistics::default();
        stats.add(&[3.0, f64::NAN, -1.0], 10);
        stats.add(&[f64::INFINITY, 4.0], 20);
        let facts = stats.to_json(true, &|at| vec![at]);
        assert_eq!(
            (&facts["count"], &facts["nan"], &facts["infinite"]),
            (&json!(5), &json!(1), &json!(1))
        );
        assert_eq!((&facts["min"], &facts["minAt"]), (&json!(-1.0), &json!([12])));
        assert_eq!((&facts["max"], &facts["maxAt"]), (&json!(4.0), &json!([21])));
        assert_eq!((&facts["mean"], &facts["positive"]), (&json!(2.0), &json!(3.0)));
        // The variance of -1, 3, 4 is 14 / 3.
        assert!((facts["std"].as_f64().unwrap() - (14.0f64 / 3.0).sqrt()).abs() < 1e-12);
        assert_eq!(facts["percentiles"][5], json!([50.0, 3.0]));
        assert_eq!((&facts["median"], &facts["kept"]), (&json!(3.0), &json!(true)));
        stats.add(&[3.5], 30);
        assert_eq!(stats.to_json(true, &|at| vec![at])["median"], 3.25);
        assert_eq!(
            facts["bins"].as_array().unwrap().iter().filter_map(Value::as_u64).sum::<u64>(),
            3
        );
    }

    #[test]
    fn memory_is_bounded() {
        let mut stats = Statistics::default();
        for start in 0..40 {
            stats.add(&vec![f64::from(start); 100_000], 0);
        }
        assert!(stats.kept.len() <= KEPT);
        let facts = stats.to_json(true, &|at| vec![at]);
        assert_eq!((&facts["mean"], &facts["count"]), (&json!(19.5), &json!(4_000_000)));
        assert_eq!(facts["kept"], false);
    }
}
