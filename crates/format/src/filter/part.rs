//! Undoing the filters for a part of a block.
//!
//! Shuffle and bitshuffle write a block as a matrix: they write the bytes (or the bits of eight
//! items) at the same position in all items as a *row*. A *column* holds the bytes of one item, or
//! of eight items. The bytes after the last whole column are not moved.

use std::ops::Range;

use super::{Pipeline, Step, bitshuffle, bytedelta, shuffle};

/// Shorter pieces are assembled without intermediate results.
const FEW_ITEMS: usize = 64;
const FEW_EIGHTS: usize = 16;

/// The order of the bytes of a filtered block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Order {
    kind: PartKind,
    /// The number of rows, which is also the number of bytes of a column.
    rows: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PartKind {
    /// The bytes are not moved.
    Same,
    Shuffle,
    /// Shuffle, then bytedelta of each row.
    Differences {
        restart: bool,
    },
    Bitshuffle,
}

impl Pipeline {
    /// Returns the order of the bytes of a filtered block, or `None` if the filters can only be
    /// undone for a whole block.
    pub(crate) fn order(&self) -> Option<Order> {
        let lossy = |step: &&Step| matches!(step, Step::TruncPrec { .. } | Step::IntTrunc { .. });
        let mut steps = self.steps.iter().flatten().filter(|step| !lossy(step));
        let order = match (steps.next(), steps.next()) {
            (None, _) => Order { kind: PartKind::Same, rows: 1 },
            (Some(&Step::Shuffle { width }), None) => {
                Order { kind: PartKind::Shuffle, rows: width }
            }
            (Some(&Step::Shuffle { width }), Some(&Step::Bytedelta { streams, restart }))
                if width == streams =>
            {
                Order { kind: PartKind::Differences { restart }, rows: width }
            }
            // Blosc1 leaves some blocks as they are.
            (Some(Step::Bitshuffle), None) if self.version != 2 => {
                Order { kind: PartKind::Bitshuffle, rows: 8 * self.typesize }
            }
            _ => return None,
        };
        steps.next().is_none().then_some(order)
    }
}

/// The bytes of a filtered block that a part of the block needs.
#[derive(Debug, Clone)]
pub(crate) struct Needed {
    /// The length of a row.
    row: usize,
    rows: usize,
    /// The needed bytes of each row.
    columns: Range<usize>,
    /// The needed bytes after the rows.
    rest: Range<usize>,
}

impl Needed {
    /// Returns the end of the needed bytes in the range `stream` of the block, or the start of this
    /// range if no byte is needed.
    pub(crate) fn end(&self, stream: &Range<usize>) -> usize {
        let mut end = stream.start;
        if self.rest.start < stream.end && !self.rest.is_empty() {
            end = end.max(self.rest.end.min(stream.end));
        } else if !self.columns.is_empty() && stream.end > self.columns.start {
            let last = (stream.end - 1 - self.columns.start) / self.row;
            let last = last.min(self.rows - 1) * self.row;
            end = end.max((last + self.columns.end).min(stream.end));
        }
        end
    }

    /// Calls `each` with the needed bytes in the range `stream` of the block.
    pub(crate) fn each(&self, stream: &Range<usize>, mut each: impl FnMut(Range<usize>)) {
        let mut visit = |range: Range<usize>| {
            let range = range.start.max(stream.start)..range.end.min(stream.end);
            if !range.is_empty() {
                each(range);
            }
        };
        if !self.columns.is_empty() && !stream.is_empty() {
            let rows = stream.start / self.row..=(stream.end - 1) / self.row;
            for row in rows.take_while(|row| *row < self.rows) {
                let at = row * self.row;
                visit(at + self.columns.start..at + self.columns.end);
            }
        }
        visit(self.rest.clone());
    }
}

impl Order {
    /// Returns the number of bytes of an item if only shuffle must be undone, 1 if no filter must be
    /// undone, and `None` otherwise.
    pub(crate) fn shuffle_width(&self) -> Option<usize> {
        matches!(self.kind, PartKind::Same | PartKind::Shuffle).then_some(self.rows)
    }

    /// Returns the bytes of a filtered block of `len` bytes that `part` of the block needs.
    pub(crate) fn needed(&self, len: usize, part: Range<usize>) -> Needed {
        let row = len / self.rows;
        let whole = row * self.rows;
        let columns = part.start.min(whole) / self.rows..part.end.min(whole).div_ceil(self.rows);
        let rest = part.start.max(whole)..part.end.max(whole);
        let first =
            if matches!(self.kind, PartKind::Differences { .. }) { 0 } else { columns.start };
        // Bytes after the rows do not need the rows.
        let columns = if part.start < whole { first..columns.end } else { 0..0 };
        Needed { row, rows: self.rows, columns, rest }
    }

    /// Undoes bytedelta, so that [`copy`](Self::copy) can read any bytes of `part`.
    pub(crate) fn prepare(&self, block: &mut [u8], part: Range<usize>) {
        let PartKind::Differences { restart } = self.kind else { return };
        let row = block.len() / self.rows;
        let whole = row * self.rows;
        if part.start >= whole {
            return;
        }
        let columns = part.start / self.rows..part.end.min(whole).div_ceil(self.rows);
        for row in block[..whole].chunks_exact_mut(row) {
            bytedelta::backward_part(row, columns.clone(), restart);
        }
    }

    /// Copies the bytes of the block from `start` on to `out`, and undoes the filters.
    pub(crate) fn copy(&self, block: &[u8], start: usize, out: &mut [u8]) {
        if self.kind == PartKind::Same {
            return out.copy_from_slice(&block[start..start + out.len()]);
        }
        let row = block.len() / self.rows;
        let (out, rest) = out.split_at_mut((row * self.rows).saturating_sub(start).min(out.len()));
        rest.copy_from_slice(&block[start + out.len()..][..rest.len()]);
        // Of the columns at both ends, some bytes may not be copied.
        let (mut column, skipped) = (start / self.rows, start % self.rows);
        let mut first = 0;
        if skipped > 0 {
            first = (self.rows - skipped).min(out.len());
            self.copy_column(block, column, skipped, &mut out[..first]);
            column += 1;
        }
        let out = &mut out[first..];
        let count = out.len() / self.rows;
        let (whole, last) = out.split_at_mut(count * self.rows);
        self.copy_columns(block, column, whole);
        if !last.is_empty() {
            self.copy_column(block, column + count, 0, last);
        }
    }

    /// Copies a part of a column: the bytes from `skipped` on.
    fn copy_column(&self, block: &[u8], column: usize, skipped: usize, out: &mut [u8]) {
        let row = block.len() / self.rows;
        if self.kind != PartKind::Bitshuffle {
            for (at, byte) in out.iter_mut().enumerate() {
                *byte = block[(skipped + at) * row + column];
            }
            return;
        }
        let typesize = self.rows / 8;
        for byte in 0..typesize {
            let eight = bitshuffle::bytes_of_eight(block, row, column, byte);
            // The position of the byte in each of the eight items.
            for (at, byte) in (byte..).step_by(typesize).zip(eight) {
                if let Some(out) = at.checked_sub(skipped).and_then(|at| out.get_mut(at)) {
                    *out = byte;
                }
            }
        }
    }

    /// Copies whole columns.
    fn copy_columns(&self, block: &[u8], first: usize, out: &mut [u8]) {
        let row = block.len() / self.rows;
        let count = out.len() / self.rows;
        if self.kind == PartKind::Bitshuffle {
            if count >= FEW_EIGHTS {
                return bitshuffle::backward_part(block, row, first, out, self.rows / 8);
            }
            for (at, out) in out.chunks_exact_mut(self.rows).enumerate() {
                self.copy_column(block, first + at, 0, out);
            }
        } else if count >= FEW_ITEMS {
            shuffle::backward_part(block, row, first, out, self.rows, &mut shuffle::buffers());
        } else if count > 0 {
            for at in 0..self.rows {
                let bytes = &block[at * row + first..][..count];
                for (out, byte) in out[at..].iter_mut().step_by(self.rows).zip(bytes) {
                    *out = *byte;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use blosc2_testing::Rng;

    use super::*;
    use crate::filter::MAX_FILTERS;

    fn pipeline(filters: &[(u8, u8)], typesize: usize) -> Pipeline {
        let (mut codes, mut metas) = ([0; MAX_FILTERS], [0; MAX_FILTERS]);
        for (at, &(code, meta)) in filters.iter().enumerate() {
            (codes[at], metas[at]) = (code, meta);
        }
        Pipeline::new(&codes, &metas, typesize, typesize, 5).unwrap()
    }

    #[test]
    fn parts_are_those_of_the_block() {
        let mut rng = Rng(5);
        let lists: [&[(u8, u8)]; 8] = [
            &[],
            &[(4, 3)],
            &[(1, 0)],
            &[(1, 3)],
            &[(2, 0)],
            &[(1, 0), (35, 0)],
            &[(4, 5), (1, 0), (34, 0)],
            &[(1, 7), (35, 7)],
        ];
        for filters in lists {
            for typesize in [1, 2, 3, 4, 8, 17, 255] {
                let pipeline = pipeline(filters, typesize);
                let Some(order) = pipeline.order() else {
                    assert_eq!(typesize, 1, "{filters:?}: bytedelta without shuffle");
                    continue;
                };
                for len in [1, 7, 8 * typesize, 100 * typesize, 1111, 3000 + typesize] {
                    let filtered: Vec<u8> = (0..len).map(|_| rng.below(256) as u8).collect();
                    let mut expected = vec![0; len];
                    if pipeline.moves() {
                        let mut block = filtered.clone();
                        pipeline
                            .backward(&mut block, &mut Vec::new(), &mut expected, None)
                            .unwrap();
                    } else {
                        expected.copy_from_slice(&filtered);
                    }
                    for _ in 0..20 {
                        let start = rng.below(len as u64) as usize;
                        let end = start + 1 + rng.below((len - start) as u64) as usize;
                        let needed = order.needed(len, start..end);
                        // Only the needed bytes have their values.
                        let streams = 1 + rng.below(5) as usize;
                        let mut block = vec![0x55; len];
                        for at in 0..streams {
                            let stream = at * len / streams..(at + 1) * len / streams;
                            let limit = needed.end(&stream);
                            needed.each(&stream, |range| {
                                assert!(range.end <= limit, "{filters:?} {range:?} {limit}");
                                block[range.clone()].copy_from_slice(&filtered[range]);
                            });
                        }
                        order.prepare(&mut block, start..end);
                        let mut out = vec![0; end - start];
                        order.copy(&block, start, &mut out);
                        assert!(
                            out == expected[start..end],
                            "{filters:?}, {typesize}: {start}..{end} of {len}"
                        );
                        let inner = start + (end - start) / 3..end - (end - start) / 3;
                        order.copy(&block, inner.start, &mut out[..inner.len()]);
                        assert!(out[..inner.len()] == expected[inner]);
                    }
                }
            }
        }
    }

    #[test]
    fn other_filters_need_whole_blocks() {
        let lists: [&[(u8, u8)]; 7] = [
            &[(3, 0)],
            &[(3, 0), (1, 0)],
            &[(1, 0), (2, 0)],
            &[(35, 0)],
            &[(1, 0), (35, 3)],
            &[(35, 0), (1, 0)],
            &[(1, 0), (35, 0), (35, 0)],
        ];
        for filters in lists {
            assert_eq!(pipeline(filters, 4).order(), None, "{filters:?}");
        }
    }
}
