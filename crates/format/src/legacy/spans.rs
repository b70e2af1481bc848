//! Ranges of bytes that should fill a part of a file without gaps and without overlaps.

use crate::report::{Checker, Part, Rule};

/// A range of bytes, and the part it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) at: u64,
    pub(crate) len: u64,
    pub(crate) part: Part,
}

impl Span {
    pub(crate) fn new(part: Part, at: u64, len: u64) -> Self {
        Self { at, len, part }
    }

    fn end(&self) -> u64 {
        self.at.saturating_add(self.len)
    }
}

/// Checks that the spans fill the bytes from `start` to `end`. Removes overlapping spans and sorts
/// the remaining spans by position.
///
/// The total length of the remaining spans is at most the size of the file, even if the file refers
/// to the same bytes repeatedly.
pub(crate) fn check(
    spans: &mut Vec<Span>,
    start: u64,
    end: u64,
    overlap: &'static Rule,
    gap: &'static Rule,
    checker: &mut Checker<'_>,
) {
    spans.sort_by_key(|span| span.at);
    let mut free = start;
    let skip = |checker: &mut Checker<'_>, from: u64, to: u64| {
        let found = format_args!("{} bytes", to - from);
        checker.within(Part::Gap, from).found(gap, 0, to - from, "none", found);
    };
    spans.retain(|span| {
        if span.at < free {
            let expected = format_args!("a start at {free} or later, where the previous part ends");
            let mut checker = checker.within(span.part.clone(), span.at);
            checker.found(overlap, 0, span.len, expected, span.at);
            return false;
        }
        if span.at > free {
            skip(checker, free, span.at);
        }
        free = span.end();
        true
    });
    if free < end {
        skip(checker, free, end);
    }
}

/// Adds the spans, and the gaps between them, to the map of a file of `size` bytes.
pub(crate) fn map(mut spans: Vec<Span>, size: u64, checker: &mut Checker<'_>) {
    spans.retain(|span| span.len > 0);
    spans.sort_by_key(|span| span.at);
    let mut free = 0;
    for span in spans {
        if span.at > free {
            checker.region(Part::Gap, free, span.at - free);
        }
        free = free.max(span.end());
        checker.region(span.part, span.at, span.len);
    }
    if free < size {
        checker.region(Part::Gap, free, size - free);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Report;

    #[test]
    fn gaps_and_overlaps_are_found() {
        static OVERLAP: Rule = Rule::error("overlap", "chunk", "Chunk");
        static GAP: Rule = Rule::warning("gap", "chunk", "Chunk");
        let checked = |spans: &[(u64, u64)]| {
            let number = |i: usize| Part::Chunk(i as u64);
            let spans = spans.iter().enumerate();
            let mut spans: Vec<_> =
                spans.map(|(i, &(at, len))| Span::new(number(i), at, len)).collect();
            let mut report = Report::new();
            check(&mut spans, 10, 30, &OVERLAP, &GAP, &mut Checker::new(&mut report));
            let findings = report.findings.iter();
            let found: Vec<_> = findings.map(|f| (f.rule.id, f.offset, f.len)).collect();
            (found, spans.len())
        };
        assert_eq!(checked(&[(10, 20)]), (vec![], 1));
        assert_eq!(checked(&[(20, 10), (10, 10)]), (vec![], 2), "any order");
        assert_eq!(checked(&[]), (vec![("gap", 10, 20)], 0));
        assert_eq!(checked(&[(12, 16)]), (vec![("gap", 10, 2), ("gap", 28, 2)], 1));
        assert_eq!(checked(&[(10, 12), (20, 10)]), (vec![("overlap", 20, 10), ("gap", 22, 8)], 1));
        assert_eq!(checked(&[(10, 20), (10, 20), (10, 20)]).1, 1);
    }

    #[test]
    fn a_map_covers_the_file() {
        let spans = vec![Span::new(Part::Trailer, 7, 2), Span::new(Part::Header, 0, 4)];
        let mut report = Report::new();
        map(spans, 10, &mut Checker::new(&mut report));
        let regions = report.regions.into_iter();
        let regions: Vec<_> = regions.map(|r| (r.part, r.offset, r.len)).collect();
        let gap = |at, len| (Part::Gap, at, len);
        let expected = [(Part::Header, 0, 4), gap(4, 3), (Part::Trailer, 7, 2), gap(9, 1)];
        assert_eq!(regions, expected);
    }
}
