//! Ranges of rows and items.

use std::ops::{Bound, Range, RangeBounds};

/// The range with these bounds, among `len` items.
pub(crate) fn range_of(bounds: &impl RangeBounds<u64>, len: u64) -> Range<u64> {
    let start = match bounds.start_bound() {
        Bound::Included(start) => *start,
        Bound::Excluded(start) => start.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match bounds.end_bound() {
        Bound::Included(end) => end.saturating_add(1),
        Bound::Excluded(end) => *end,
        Bound::Unbounded => len,
    };
    start..end
}

/// The rows in both of two lists of ranges in ascending order.
pub(crate) fn intersection(one: &[Range<u64>], other: &[Range<u64>]) -> Vec<Range<u64>> {
    let (mut rows, mut at) = (Vec::new(), 0);
    for range in one {
        while at < other.len() && other[at].end <= range.start {
            at += 1;
        }
        for other in other[at..].iter().take_while(|other| other.start < range.end) {
            rows.push(range.start.max(other.start)..range.end.min(other.end));
        }
    }
    rows
}

/// The rows in some ranges, in ascending order.
pub(crate) fn union(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut rows: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match rows.last_mut().filter(|last| last.end >= range.start) {
            Some(last) => last.end = last.end.max(range.end),
            None => rows.push(range),
        }
    }
    rows
}
