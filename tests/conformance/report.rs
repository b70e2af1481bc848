//! `CONFORMANCE.md`: the cells of the table, with the reasons for empty ones.

use std::collections::BTreeMap;
use std::fmt::Write;

use anyhow::Result;

use crate::object::{SIDES, Side};
use crate::table::{Row, Table};

/// The cases of one row, writer and reader.
#[derive(Debug, Default)]
pub(crate) struct Cell {
    pub(crate) good: usize,
    /// Reasons, each with the number of cases.
    pub(crate) excuses: BTreeMap<&'static str, usize>,
    pub(crate) failures: Vec<String>,
}

pub(crate) type Cells = BTreeMap<(usize, Side, Side), Cell>;

/// For each row and writer, how many of its files have the bytes of those of `blosc2`, and how many were compared.
pub(crate) type SameBytes = BTreeMap<(usize, Side), (usize, usize)>;

const HEAD: &str = r"# Conformance

<!-- Written by `cargo xtask conformance`. Do not edit: CI fails if the file differs from what the command writes. -->

Four programs write the same objects, and each of them reads what all four have written:

| | writer and reader |
|---|---|
| **B** | C-Blosc2 through the safe wrapper `blosc2` (for containers: `blosc2-store`, which uses it) |
| **F** | `blosc2-format`, the formats in pure Rust, without C |
| **P** | python-blosc2, with the C-Blosc2 of its wheel |
| **C** | the C functions of C-Blosc2, called directly through `blosc2-sys`, which compiles them with its patches |

`blosc2` uses `blosc2-format` for the header, the index and the metalayers of frames. In these parts, **B** and **F** are
not independent of each other.
";

const METHOD: &str = r"
One table of objects (`tests/conformance/table.rs`) is the source of all cases. A case is one object, written by one
program and read by one program. It passes if the reader finds what the table contains. Expected values are computed
from the table, never from what a reader returned. These results of the reader are compared:

- of a chunk: its length, its block size (if the table states one and there is a whole item), its data, the data of each
  variable-length block, the kind of a special chunk, and whether there is a dictionary (the last two not by Python,
  which has no function for them);
- of a super-chunk: the data of each chunk, the number of chunks, the size of an item, codec, its parameter, level,
  filters, split mode, whether there are dictionaries, the kind of special chunks, and the names, order and contents of
  all fixed-length and variable-length metalayers;
- of an array, in addition: shape, chunk shape, block shape, dtype, all items, and the items of a box inside it; the
  data of each chunk includes its padding;
- of a container: its kind, all keys, the dtype of arrays, values, columns with their types, and attributes.

For lossy filters, a model in the table computes the expected data. The content of uninitialized chunks is not compared.
When `blosc2-format` is the reader, it also runs its full check of the frame: an error or a warning fails the case.

`cargo xtask conformance` runs all cases and writes this file. `cargo xtask conformance --check` writes nothing, and
fails if this file would change; CI runs it. `--only PART` runs the rows whose names contain `PART`. A failing case is
printed with the object, the expected value and the found value.

## Cells

The columns are named *writer* → *reader*. A cell contains the number of cases that pass. A letter refers to the
[reason](#reasons) why the cell is empty, or why the other objects of the row are not counted. These cases are run too.
If one of them passes although the reason excludes it, the command fails. If a fault of C-Blosc2 makes a result depend
on uninitialized memory, the case is not counted, whether it passes or fails.

The last three columns compare the bytes of the files. `3/4` in F=B means: F and B have both written 4 objects, and the
files of 3 of them are equal. Objects compressed with zlib are left out, because the programs contain different
implementations of zlib. P=B also leaves out objects with thousands of chunks: the library of Python compresses their
index with several threads, which store its blocks in any order. Different bytes are not a fault: for example, programs
may select different block sizes.
";

const REST: &str = r"
## Not covered

- ZFP: the feature `zfp` is not part of the default build, and the codec is lossy without an exact model.
- User-defined codecs and filters, prefilters and postfilters: `blosc2/tests/chunks`.
- Several threads: all writers use one thread, because several threads store blocks in the order in which they finish.
- Files that are changed after they were written. In `tests/python/turns.rs`, Python and Rust change the same files in
  turns; `blosc2/tests/super_chunks/sequences` compares random changes with C.
- Files of older versions of Blosc: `tests/python/kept_files.rs`, `crates/format/tests/golden`.
- Structures with gaps between their fields: `tests/python/arrays.rs`.
- Carriers (files that describe a computation or a reference instead of data): `tests/python/kept_files.rs`.
- Damaged files: `tests/hostile_input`.
- Big-endian machines. Big-endian dtypes are covered.
";

/// The text of the report. It has no times and nothing about the machine.
pub(crate) fn report(
    table: &Table,
    cells: &Cells,
    same: &SameBytes,
    versions: &str,
) -> Result<String> {
    let mut text = HEAD.to_owned();
    let cases: usize = cells.values().map(|cell| cell.good).sum();
    let objects = table.objects.len();
    writeln!(text, "\n{versions}\n\n{cases} cases of {objects} objects pass; none fails.")?;
    text.push_str(METHOD);
    let mut reasons = Reasons::default();
    let mut section = "";
    for (number, row) in table.rows.iter().enumerate() {
        if row.section != section {
            section = row.section;
            write_head(&mut text, row)?;
        }
        write!(text, "| {} ", row.name)?;
        for writer in SIDES {
            for reader in SIDES {
                write!(text, "| {} ", reasons.cell(&cells[&(number, writer, reader)]))?;
            }
        }
        for writer in [Side::Format, Side::Python, Side::C] {
            match same.get(&(number, writer)) {
                Some((same, compared)) => write!(text, "| {same}/{compared} ")?,
                None => write!(text, "| ")?,
            }
        }
        writeln!(text, "|")?;
    }
    writeln!(text, "\n## Reasons\n")?;
    for (letter, reason) in reasons.0.iter().enumerate() {
        writeln!(text, "- **{}**: {reason}", Reasons::letter(letter))?;
    }
    text.push_str(REST);
    Ok(text)
}

fn write_head(text: &mut String, row: &Row) -> Result<()> {
    write!(text, "\n### {}\n\n| ", row.section)?;
    for writer in SIDES {
        for reader in SIDES {
            write!(text, "| {}→{} ", writer.letter(), reader.letter())?;
        }
    }
    writeln!(text, "| F=B | P=B | C=B |\n|---{}|", "|---".repeat(19))?;
    Ok(())
}

/// The reasons in the order of their appearance.
#[derive(Debug, Default)]
struct Reasons(Vec<&'static str>);

impl Reasons {
    fn letter(number: usize) -> char {
        (b'a' + number as u8) as char
    }

    /// The text of a cell.
    fn cell(&mut self, cell: &Cell) -> String {
        let letters: Vec<String> =
            cell.excuses.keys().map(|reason| self.number(reason).to_string()).collect();
        match (cell.good, letters.is_empty()) {
            (good, true) => good.to_string(),
            (0, false) => letters.join(" "),
            (good, false) => format!("{good} {}", letters.join(" ")),
        }
    }

    /// The letter of a reason.
    fn number(&mut self, reason: &'static str) -> char {
        let known = self.0.iter().position(|each| *each == reason);
        Self::letter(known.unwrap_or_else(|| {
            self.0.push(reason);
            self.0.len() - 1
        }))
    }
}
