//! Accumulators that combine several items at the same time, so that the compiler vectorizes the loops.

use std::array;

/// The number of items that are combined at the same time.
pub(super) const LANES: usize = 16;
pub(super) const HALF: usize = LANES / 2;
/// The maximum number of items of a lane. Rounding errors of a lane, and counts of 8 bits, are therefore limited.
pub(super) const GROUPS: usize = 64;
/// The maximum number of items of all lanes.
pub(super) const BLOCK: usize = LANES * GROUPS;

/// At least one and at most [`GROUPS`] groups of [`LANES`] items, at equal distances.
#[derive(Debug, Clone, Copy)]
pub struct Groups<'a, T> {
    items: &'a [T],
    step: usize,
    pub(super) count: usize,
}

impl<'a, T: Copy> Groups<'a, T> {
    /// Creates `count` groups. The distance of their first items is `step`.
    pub(super) fn new(items: &'a [T], step: usize, count: usize) -> Self {
        Self { items, step, count }
    }

    /// Returns the items of the lanes from `lane` on, for each group.
    ///
    /// If a loop has more sums than the processor has registers, it is faster to process a part of the lanes at a time.
    /// Functions with such loops are not inlined, because the compiler would arrange the sums as the caller uses them,
    /// and not vectorize the loop.
    #[inline(always)]
    pub(super) fn part<const N: usize>(self, lane: usize) -> impl Iterator<Item = &'a [T; N]> {
        (0..self.count).map(move |number| {
            match self.items[number * self.step + lane..].first_chunk() {
                Some(group) => group,
                None => unreachable!("a group has {LANES} items"),
            }
        })
    }

    #[inline(always)]
    pub(super) fn iter(self) -> impl Iterator<Item = &'a [T; LANES]> {
        self.part(0)
    }

    #[inline(always)]
    pub(super) fn first(self) -> &'a [T; LANES] {
        match self.items.first_chunk() {
            Some(group) => group,
            None => unreachable!("a group has {LANES} items"),
        }
    }

    pub(super) fn lane(self, lane: usize) -> impl Iterator<Item = &'a T> {
        self.iter().map(move |group| &group[lane])
    }

    #[cfg(feature = "half")]
    pub(super) fn convert<U: Copy + Default, R>(
        self,
        convert: impl Fn(&[T; LANES], &mut [U; LANES]),
        work: impl FnOnce(Groups<'_, U>) -> R,
    ) -> R {
        let mut converted = [[U::default(); LANES]; GROUPS];
        converted.iter_mut().zip(self.iter()).for_each(|(to, group)| convert(group, to));
        work(Groups::new(converted.as_flattened(), LANES, self.count))
    }
}

/// The intermediate state of a result, for which some items are combined.
pub trait Accumulator<T: Copy>: Default + Clone + Send {
    /// Combines each lane of some groups separately.
    fn lanes(groups: Groups<'_, T>) -> [Self; LANES];

    /// Adds an item `count` times. `count` is at least 1.
    fn add_repeated(&mut self, item: T, count: u64);

    fn merge(&mut self, other: &Self);

    /// Whether further items do not change the result.
    fn is_done(&self) -> bool {
        false
    }

    fn add_groups(&mut self, groups: Groups<'_, T>) {
        let mut lanes = Self::lanes(groups);
        let mut half = LANES / 2;
        while half > 0 {
            let (low, high) = lanes.split_at_mut(half);
            low.iter_mut().zip(high).for_each(|(low, high)| low.merge(high));
            half /= 2;
        }
        self.merge(&lanes[0]);
    }

    fn add(&mut self, items: &[T]) {
        for items in items.chunks(BLOCK) {
            let (groups, rest) = items.as_chunks::<LANES>();
            if !groups.is_empty() {
                self.add_groups(Groups::new(groups.as_flattened(), LANES, groups.len()));
            }
            rest.iter().for_each(|item| self.add_repeated(*item, 1));
            if self.is_done() {
                return;
            }
        }
    }

    /// Adds the items of rows. Each item is added to the accumulator whose index is the index of the item in the row.
    fn add_rows(to: &mut [Self], rows: &[T]) {
        each_strip(rows, to.len(), &mut |strip| match strip {
            Strip::Groups(at, groups) => {
                let lanes = Self::lanes(groups);
                to[at..].iter_mut().zip(&lanes).for_each(|(to, lane)| to.merge(lane));
            }
            Strip::Column(at, items) => to[at].add(items),
        });
    }
}

/// A part of rows.
pub(super) enum Strip<'a, T> {
    /// Neighboring columns, and the index of the first column.
    Groups(usize, Groups<'a, T>),
    /// The items of this column.
    Column(usize, &'a [T]),
}

/// Divides rows, which have `width` items each, into strips.
pub(super) fn each_strip<T: Copy>(rows: &[T], width: usize, work: &mut dyn FnMut(Strip<'_, T>)) {
    let Some(&first) = rows.first() else { return };
    // Few columns are processed one by one. Then an accumulator is used for more items at a time.
    let wide = width - width % LANES;
    for rows in rows.chunks(width * GROUPS) {
        for at in (0..wide).step_by(LANES) {
            work(Strip::Groups(at, Groups::new(&rows[at..], width, rows.len() / width)));
        }
    }
    let mut column = [first; BLOCK];
    for rows in rows.chunks(width * BLOCK) {
        for at in wide..width {
            let items = rows[at..].iter().step_by(width);
            let len = items.len();
            column.iter_mut().zip(items).for_each(|(to, item)| *to = *item);
            work(Strip::Column(at, &column[..len]));
        }
    }
}

/// Two accumulators of the same items.
#[derive(Debug, Clone, Default)]
pub(super) struct Both<A, B>(pub(super) A, pub(super) B);

impl<T: Copy, A: Accumulator<T>, B: Accumulator<T>> Accumulator<T> for Both<A, B> {
    fn lanes(groups: Groups<'_, T>) -> [Self; LANES] {
        let (one, other) = (A::lanes(groups), B::lanes(groups));
        array::from_fn(|lane| Self(one[lane].clone(), other[lane].clone()))
    }

    fn add_repeated(&mut self, item: T, count: u64) {
        self.0.add_repeated(item, count);
        self.1.add_repeated(item, count);
    }

    fn merge(&mut self, other: &Self) {
        self.0.merge(&other.0);
        self.1.merge(&other.1);
    }

    fn add_groups(&mut self, groups: Groups<'_, T>) {
        self.0.add_groups(groups);
        self.1.add_groups(groups);
    }
}
