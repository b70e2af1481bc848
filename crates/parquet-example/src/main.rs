//! `parquet-example SOURCE TARGET`: converts a table (`.b2d`, `.b2z`) to a Parquet file (`.parquet`), or the reverse.

use std::path::Path;

use anyhow::{Result, bail};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [source, target] = &arguments[..] else { bail!("usage: parquet-example SOURCE TARGET") };
    let [source, target] = [Path::new(source), Path::new(target)];
    let is_parquet = |path: &Path| path.extension().is_some_and(|ending| ending == "parquet");
    match (is_parquet(source), is_parquet(target)) {
        (false, true) => parquet_example::table_to_parquet(source, target),
        (true, false) => parquet_example::parquet_to_table(source, target),
        _ => bail!("expected one file with the extension .parquet, and one table"),
    }
}
