//! Reduction of the items of a slice to a grid of cells, and statistics of all items, in one pass.
//!
//! `LazyExpr::describe` would need another pass. It reads arrays only, and counts infinities as items.

use std::io::{self, Write};

use crate::numbers::Numbers;

/// The shorter side of a picture is at least this part of the longer one: very narrow slices are stretched.
const MIN_SIDE: u32 = 8;

/// A sum that keeps the rounding errors of its additions (Neumaier), so that the mean of equal items is exact.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    sum: f64,
    errors: f64,
}

impl Sum {
    fn add(&mut self, value: f64) {
        let sum = self.sum + value;
        let (larger, smaller) = match self.sum.abs() >= value.abs() {
            true => (self.sum, value),
            false => (value, self.sum),
        };
        self.errors += (larger - sum) + smaller;
        self.sum = sum;
    }

    fn total(self) -> f64 {
        self.sum + self.errors
    }
}

/// The sum of finite numbers. It cannot overflow: large numbers are added up in units of [`UNIT`].
#[derive(Debug, Clone, Copy, Default)]
struct Total {
    small: Sum,
    large: Sum,
}

/// The smallest large number, and the unit of the sum of large numbers, 2^100. 2^64 small numbers, and 2^64 large ones,
/// can be added up without overflow.
const LARGE: f64 = 1e270;
const UNIT: f64 = (1u128 << 100) as f64;

impl Total {
    fn add(&mut self, value: f64) {
        match value.abs() < LARGE {
            true => self.small.add(value),
            false => self.large.add(value / UNIT),
        }
    }

    fn merge(&mut self, other: Self) {
        for (sum, of_other) in [(&mut self.small, other.small), (&mut self.large, other.large)] {
            sum.add(of_other.sum);
            sum.add(of_other.errors);
        }
    }

    /// The mean of `count` numbers.
    fn mean(self, count: u64) -> f64 {
        let mean = |sum: Sum| sum.total() / count as f64;
        // It can be rounded up beyond the largest number.
        (mean(self.large) * UNIT + mean(self.small)).clamp(f64::MIN, f64::MAX)
    }
}

/// The items of one cell.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cell {
    /// Sum and number of the finite items.
    total: Total,
    count: u64,
    /// Smallest and largest item, including infinities; the smallest is larger than the largest if all items are NaN.
    low: f64,
    high: f64,
}

impl Cell {
    const EMPTY: Self = Self {
        total: Total { small: Sum { sum: 0.0, errors: 0.0 }, large: Sum { sum: 0.0, errors: 0.0 } },
        count: 0,
        low: f64::INFINITY,
        high: f64::NEG_INFINITY,
    };

    fn add(&mut self, value: f64) {
        if value.is_finite() {
            self.total.add(value);
            self.count += 1;
        }
        // NaN is neither smaller nor larger than any number.
        self.low = self.low.min(value);
        self.high = self.high.max(value);
    }

    /// The mean of the finite items. Without any it is infinite, or NaN if the items are NaN or infinities of both
    /// signs.
    pub(crate) fn mean(&self) -> f64 {
        match self.range() {
            _ if self.count > 0 => self.total.mean(self.count),
            Some([low, high]) if low == high => low,
            _ => f64::NAN,
        }
    }

    /// The smallest and the largest item, including infinities; `None` if all items are NaN.
    pub(crate) fn range(&self) -> Option<[f64; 2]> {
        (self.low <= self.high).then_some([self.low, self.high])
    }
}

/// Numbers about all items.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Statistics {
    pub(crate) count: u64,
    pub(crate) nan: u64,
    pub(crate) infinite: u64,
    /// Minimum, maximum and mean of the finite items; `None` if there are none.
    pub(crate) finite: Option<Finite>,
}

/// Minimum, maximum and mean of the finite items.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Finite {
    pub(crate) min: f64,
    pub(crate) max: f64,
    pub(crate) mean: f64,
}

/// One axis: its items are distributed over its cells as evenly as possible.
#[derive(Debug, Clone, Copy)]
struct Axis {
    items: u64,
    cells: usize,
    /// The current item and its cell.
    at: u64,
    cell: usize,
    /// The first item of the next cell.
    end: u64,
}

impl Axis {
    fn new(items: u64, cells: usize) -> Self {
        let mut axis = Self { items, cells, at: 0, cell: 0, end: 0 };
        axis.end = axis.start_of(1);
        axis
    }

    /// The first item of a cell.
    fn start_of(&self, cell: usize) -> u64 {
        let start = (cell as u128 * u128::from(self.items)).div_ceil(self.cells as u128);
        u64::try_from(start).unwrap_or(u64::MAX)
    }

    /// Goes to the next item; returns whether it is the first one again.
    fn step(&mut self) -> bool {
        self.at += 1;
        if self.at >= self.items {
            *self = Self::new(self.items, self.cells);
            return true;
        }
        if self.at >= self.end {
            self.cell += 1;
            self.end = self.start_of(self.cell + 1);
        }
        false
    }
}

/// The items of a 1-d or 2-d slice, reduced to a grid of cells. It receives the items as bytes, in C order.
#[derive(Debug)]
pub(crate) struct Grid {
    numbers: Numbers,
    typesize: usize,
    rows: Axis,
    columns: Axis,
    cells: Vec<Cell>,
    count: u64,
    infinite: u64,
    min: f64,
    max: f64,
    /// The smallest and the largest date or duration, which `f64` cannot represent exactly.
    times: Option<[i64; 2]>,
    /// Bytes of an item that is not complete yet.
    rest: Vec<u8>,
}

impl Grid {
    /// A grid of `cells` (rows and columns) for a slice of `items` rows and columns. The number of cells on an axis
    /// must be between 1 and the number of its items; an axis without items has one cell.
    pub(crate) fn new(
        numbers: Numbers,
        typesize: usize,
        items: [u64; 2],
        cells: [usize; 2],
    ) -> Self {
        Self {
            numbers,
            typesize,
            rows: Axis::new(items[0], cells[0]),
            columns: Axis::new(items[1], cells[1]),
            cells: vec![Cell::EMPTY; cells[0] * cells[1]],
            count: 0,
            infinite: 0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
            times: None,
            rest: Vec::new(),
        }
    }

    pub(crate) fn columns(&self) -> usize {
        self.columns.cells
    }

    /// The rows of cells.
    pub(crate) fn rows(&self) -> impl ExactSizeIterator<Item = &[Cell]> {
        self.cells.chunks(self.columns.cells)
    }

    /// The smallest and the largest of the finite `values` of the cells.
    pub(crate) fn range(&self, values: impl Fn(&Cell) -> [f64; 2]) -> Option<(f64, f64)> {
        let finite = self.cells.iter().flat_map(values).filter(|value| value.is_finite());
        finite.fold(None, |range, value| {
            let (low, high) = range.unwrap_or((value, value));
            Some((value.min(low), value.max(high)))
        })
    }

    pub(crate) fn statistics(&self) -> Statistics {
        let finite: u64 = self.cells.iter().map(|cell| cell.count).sum();
        let mut total = Total::default();
        self.cells.iter().for_each(|cell| total.merge(cell.total));
        let mean = total.mean(finite);
        Statistics {
            count: self.count,
            nan: self.count - finite - self.infinite,
            infinite: self.infinite,
            finite: (finite > 0).then_some(Finite { min: self.min, max: self.max, mean }),
        }
    }

    /// The unit of the items, if they are dates.
    pub(crate) fn date_unit(&self) -> Option<(u32, &'static str)> {
        self.numbers.date_unit()
    }

    /// Minimum, maximum and mean of dates or durations as text; `None` if there are none.
    pub(crate) fn times(&self) -> Option<[String; 3]> {
        let [low, high] = self.times?;
        // The conversion saturates.
        let mean = self.statistics().finite?.mean.round() as i64;
        Some([low, high, mean.clamp(low, high)].map(|time| self.numbers.text(time)))
    }

    fn add(&mut self, item: &[u8]) {
        let value = self.numbers.value(item);
        if let Some(time) = self.numbers.time(item) {
            let [low, high] = self.times.unwrap_or([time; 2]);
            self.times = Some([low.min(time), high.max(time)]);
        }
        self.count += 1;
        if value.is_finite() {
            self.min = self.min.min(value);
            self.max = self.max.max(value);
        } else if value.is_infinite() {
            self.infinite += 1;
        }
        let cell = self.rows.cell * self.columns.cells + self.columns.cell;
        if let Some(cell) = self.cells.get_mut(cell) {
            cell.add(value);
        }
        if self.columns.step() {
            self.rows.step();
        }
    }
}

impl Write for Grid {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let missing = match self.rest.len() {
            0 => 0,
            len => (self.typesize - len).min(bytes.len()),
        };
        let (head, bytes_left) = bytes.split_at(missing);
        self.rest.extend_from_slice(head);
        if self.rest.len() == self.typesize {
            let item = std::mem::take(&mut self.rest);
            self.add(&item);
        }
        let items = bytes_left.chunks_exact(self.typesize);
        self.rest.extend_from_slice(items.remainder());
        for item in items {
            self.add(item);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The cells of an axis, and the pixels of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Side {
    pub(crate) cells: usize,
    pub(crate) pixels: u32,
}

impl Side {
    /// Pixels of the whole axis.
    pub(crate) fn len(self) -> u32 {
        self.cells as u32 * self.pixels
    }
}

/// Fits rows and columns of items into a picture of at most `room` pixels (height and width). If all items fit, they
/// become squares; otherwise both axes are reduced by the same factor. If one side would be shorter than an eighth of
/// the other one, it is stretched.
pub(crate) fn fit(items: [u64; 2], room: [u32; 2]) -> [Side; 2] {
    let [rows, columns] = items.map(|items| items.max(1) as f64);
    let scale = (f64::from(room[0]) / rows).min(f64::from(room[1]) / columns);
    let scale = if scale >= 1.0 { scale.floor() } else { scale };
    let longer = (rows.max(columns) * scale).round() as u32;
    let side = |items: f64, room: u32| {
        let len = ((items * scale).round() as u32).max(longer / MIN_SIDE).clamp(1, room);
        match items <= f64::from(len) {
            true => Side { cells: items as usize, pixels: len / items as u32 },
            false => Side { cells: len as usize, pixels: 1 },
        }
    };
    [side(rows, room[0]), side(columns, room[1])]
}

#[cfg(test)]
mod tests {
    use blosc2::Dtype;

    use super::*;

    fn grid(values: &[f64], items: [u64; 2], cells: [usize; 2], piece: usize) -> Grid {
        let numbers = Numbers::new(&Dtype::parse("<f8").unwrap()).unwrap();
        let mut grid = Grid::new(numbers, 8, items, cells);
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        for piece in bytes.chunks(piece) {
            grid.write_all(piece).unwrap();
        }
        grid
    }

    #[test]
    fn cells_hold_the_mean_of_their_items() {
        let values: Vec<f64> = (0..24).map(f64::from).collect();
        for piece in [1, 3, 8, 11, 1000] {
            let grid = grid(&values, [4, 6], [2, 3], piece);
            let means: Vec<f64> = grid.rows().flatten().map(Cell::mean).collect();
            assert_eq!(means, [3.5, 5.5, 7.5, 15.5, 17.5, 19.5], "{piece}");
            let ranges: Vec<_> = grid.rows().flatten().map(Cell::range).collect();
            assert_eq!((ranges[0], ranges[5]), (Some([0.0, 7.0]), Some([16.0, 23.0])));
            let expected = Finite { min: 0.0, max: 23.0, mean: 11.5 };
            let statistics = grid.statistics();
            assert_eq!((statistics.count, statistics.finite), (24, Some(expected)));
        }
    }

    #[test]
    fn every_item_has_one_cell() {
        for (items, cells) in [(7, 3), (10, 10), (1000, 7), (5, 1)] {
            let values = vec![1.0; items];
            let grid = grid(&values, [1, items as u64], [1, cells], 8);
            let counts: Vec<u64> = grid.rows().flatten().map(|cell| cell.count).collect();
            assert_eq!(counts.iter().sum::<u64>(), items as u64);
            let (low, high) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
            assert!(high - low <= 1 && *low >= 1, "{counts:?}");
        }
    }

    #[test]
    fn numbers_that_are_not_finite() {
        let (nan, inf) = (f64::NAN, f64::INFINITY);
        let grid = grid(&[nan, nan, nan, 2.0, inf, 4.0, inf, nan, -inf, inf], [1, 10], [1, 5], 8);
        let means: Vec<f64> = grid.rows().flatten().map(Cell::mean).collect();
        assert!(means[0].is_nan() && means[4].is_nan(), "{means:?}");
        assert_eq!(means[1..4], [2.0, 4.0, inf]);
        assert_eq!(grid.range(|cell| [cell.mean(); 2]), Some((2.0, 4.0)));
        let statistics = grid.statistics();
        assert_eq!((statistics.count, statistics.nan, statistics.infinite), (10, 4, 4));
        assert_eq!(statistics.finite, Some(Finite { min: 2.0, max: 4.0, mean: 3.0 }));
        let range = grid.rows().flatten().next().unwrap().range();
        assert_eq!(range, None);
    }

    #[test]
    fn empty_grids_have_no_range() {
        let grid = grid(&[], [0, 5], [1, 1], 8);
        let statistics = grid.statistics();
        assert_eq!((statistics.count, statistics.nan, statistics.finite), (0, 0, None));
        assert_eq!(grid.range(|cell| [cell.mean(); 2]), None);
    }

    #[test]
    fn means_of_large_numbers_are_finite() {
        let (most, least) = (f64::MAX, f64::MIN);
        for (values, mean) in [
            (vec![1e308; 4], 1e308),
            (vec![most; 7], most),
            (vec![least; 3], least),
            (vec![most, most, least, least, 12.0, -4.0, 1.0, 3.0], 1.5),
            (vec![1e280, 3e280, 2.0, 1e-300], 1e280),
            (vec![f64::MIN_POSITIVE / 4.0; 4], f64::MIN_POSITIVE / 4.0),
        ] {
            for cells in [1, 2, values.len()] {
                let grid = grid(&values, [1, values.len() as u64], [1, cells], 8);
                assert_eq!(grid.statistics().finite.unwrap().mean, mean, "{values:?} {cells}");
            }
            let grid = grid(&values, [1, values.len() as u64], [1, 1], 8);
            let means: Vec<f64> = grid.rows().flatten().map(Cell::mean).collect();
            assert_eq!(means, [mean]);
        }
    }

    #[test]
    fn pictures_fit_their_room() {
        let side = |cells, pixels| Side { cells, pixels };
        for (items, expected) in [
            ([10, 10], [side(10, 60), side(10, 60)]),
            ([3, 7], [side(3, 85), side(7, 85)]),
            ([1200, 600], [side(600, 1), side(300, 1)]),
            ([5000, 3], [side(600, 1), side(3, 25)]),
            ([3, 5000], [side(3, 25), side(600, 1)]),
            ([600, 2], [side(600, 1), side(2, 37)]),
            ([1, 1], [side(1, 600), side(1, 600)]),
            ([0, 5], [side(1, 120), side(5, 120)]),
            ([u64::MAX, u64::MAX], [side(600, 1), side(600, 1)]),
            ([u64::MAX, 1], [side(600, 1), side(1, 75)]),
        ] {
            assert_eq!(fit(items, [600, 600]), expected, "{items:?}");
        }
        assert_eq!(fit([9, 9], [1, 1]), [side(1, 1), side(1, 1)]);
    }
}
