//! Files of Python are read.

use anyhow::{Context, Result};
use blosc2_hdf5::FILTER_ID;
use hdf5_metno::File;
use hdf5_metno::types::FixedAscii;

use crate::common::run_python;
use crate::hdf5::{alone, read_bytes};

/// Runs a script that writes a file, and compares its datasets with the same data without a filter. Returns their
/// number, which is the one that the script prints.
fn compare(script: &str, name: &str) -> Result<usize> {
    blosc2_hdf5::register()?;
    let folder = tempfile::tempdir()?;
    let printed = run_python(script, folder.path(), &[]);
    let file = File::open(folder.path().join(name))?;
    let (cases, raw) = (file.group("cases")?, file.group("raw")?);
    let names = cases.member_names()?;
    for name in &names {
        let dataset = cases.dataset(name)?;
        assert!(dataset.filters().iter().any(|filter| filter.id() == FILTER_ID), "{name}");
        let found = read_bytes(&dataset).with_context(|| name.clone())?;
        assert!(found == read_bytes(&raw.dataset(name)?)?, "{name} differs");
    }
    if let Ok(broken) = file.dataset("broken") {
        let error = broken.read_raw::<FixedAscii<300>>().unwrap_err().to_string();
        assert!(error.contains("expected 57600, as the frame states, found 192"), "{error}");
    }
    assert_eq!(names.len(), printed.trim().parse::<usize>()?);
    Ok(names.len())
}

#[test]
fn files_of_hdf5plugin() -> Result<()> {
    let _alone = alone();
    let count = compare("write_hdf5plugin.py", "hdf5plugin.h5")?;
    assert_eq!(count, 314);
    Ok(())
}

#[test]
fn files_of_pytables() -> Result<()> {
    let _alone = alone();
    let count = compare("write_pytables.py", "pytables.h5")?;
    assert_eq!(count, 540);
    Ok(())
}
