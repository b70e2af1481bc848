//! Text for people: aligned tables, and sizes with a unit.

use std::io::{self, Write};

use indicatif::BinaryBytes;

/// A number of bytes with a unit, such as `1.2 MiB`.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        _ => BinaryBytes(bytes).to_string(),
    }
}

/// The side of a column on which its cells are aligned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// Writes rows as aligned columns. Columns whose cells are all empty are left out.
///
/// The rows are made twice, as a file can have millions of them: for the widths, and to be written.
pub(crate) fn write<const N: usize>(
    out: &mut dyn Write,
    columns: [Align; N],
    rows: impl Iterator<Item = [String; N]> + Clone,
) -> io::Result<()> {
    let mut widths = [0; N];
    for row in rows.clone() {
        for (width, cell) in widths.iter_mut().zip(&row) {
            *width = cell.chars().count().max(*width);
        }
    }
    for row in rows {
        let cells = row.iter().zip(widths).zip(columns).filter(|((_, width), _)| *width > 0);
        let cells = cells.map(|((cell, width), align)| match align {
            Align::Left => format!("{cell:<width$}"),
            Align::Right => format!("{cell:>width$}"),
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_a_unit() {
        let sizes = [0, 1023, 1024, 1_234_567, 3 << 40, u64::MAX].map(size);
        assert_eq!(sizes, ["0 B", "1023 B", "1.00 KiB", "1.18 MiB", "3.00 TiB", "16.00 EiB"]);
    }

    #[test]
    fn columns_are_aligned_and_empty_ones_left_out() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned);
        let rows = [row(["a", "", "10"]), row(["long", "", "7"]), row(["\u{e9}", "", ""])];
        let mut out = Vec::new();
        write(&mut out, [Align::Left, Align::Left, Align::Right], rows.into_iter()).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "a     10\nlong   7\n\u{e9}\n");
        write(&mut Vec::new(), [Align::Left], std::iter::empty()).unwrap();
    }
}
