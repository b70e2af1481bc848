//! `blosc2 cat` of a table: prints its rows.

use std::io::Write;
use std::path::Path;

use anyhow::Result;
use blosc2_store::{CTable, EmbedStore, ItemKind, Object};

use crate::file::{Content, Source};
use crate::slice::Slices;

/// Rows that are read at once.
const ROWS: u64 = 4096;

/// Opens a table; `None` if the file or the entry is not a table.
pub(crate) fn table(source: Source<'_>) -> Option<CTable> {
    let is_store = source.is_store().ok()?;
    if !is_store && source.key.is_none() {
        // A table in memory that was saved.
        let Some(None) = source.kind().ok() else { return None };
        match Content::open(source).ok()? {
            Content::SChunk(schunk) if EmbedStore::is_in(&schunk) => {}
            _ => return None,
        }
    }
    match source.object() {
        Ok(Object::CTable(table)) => Some(table),
        _ => None,
    }
}

/// Prints a line with the names of the columns, and one for each row, separated by tabs. Values are written in Python's
/// notation. Columns that Python computes are left out.
pub(crate) fn write(
    table: &CTable,
    slices: &Slices,
    path: &Path,
    out: &mut dyn Write,
) -> Result<()> {
    let columns = table.columns().iter();
    let columns: Vec<&str> = columns
        .filter(|column| !matches!(column.kind(), ItemKind::Computed(_)))
        .map(|column| column.name())
        .collect();
    let picks = slices.resolve_in(path, &[table.nrows()])?;
    let Some(pick) = picks.first() else { return Ok(()) };
    let names = columns.iter().map(|name| name.escape_debug().to_string());
    writeln!(out, "{}", names.collect::<Vec<_>>().join("\t"))?;
    for start in (0..pick.count()).step_by(ROWS as usize) {
        let end = pick.count().min(start + ROWS);
        let rows: Vec<u64> = (start..end).map(|at| pick.position(at)).collect();
        let cells = columns.iter().map(|name| Ok(table.values(name, &rows[..])?.into_iter()));
        let mut cells = cells.collect::<Result<Vec<_>>>()?;
        for _ in &rows {
            let row = cells.iter_mut().filter_map(|cells| cells.next());
            writeln!(out, "{}", row.map(|cell| cell.to_string()).collect::<Vec<_>>().join("\t"))?;
        }
    }
    Ok(())
}
