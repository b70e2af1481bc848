//! Reading and writing of datasets of any type as bytes.

use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Result, ensure};
use hdf5_metno::Dataset;
use hdf5_metno::sync::sync;
use hdf5_metno_sys::h5d::{H5Dread, H5Dwrite};
use hdf5_metno_sys::h5p::H5P_DEFAULT;
use hdf5_metno_sys::h5s::H5S_ALL;

/// Returns a guard that lets one test use HDF5 at a time. Otherwise a Python process, which inherits the open files of
/// this one, would keep the locks of another test's files.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads all items as HDF5 stores them.
pub(crate) fn read_bytes(dataset: &Dataset) -> Result<Vec<u8>> {
    let datatype = dataset.dtype()?;
    let mut bytes = vec![0u8; dataset.size() * datatype.size()];
    let memory = bytes.as_mut_ptr().cast::<c_void>();
    let (id, datatype) = (dataset.id(), datatype.id());
    // SAFETY: the identifiers are valid, and the memory has the size of all items.
    let status = sync(|| unsafe { H5Dread(id, datatype, H5S_ALL, H5S_ALL, H5P_DEFAULT, memory) });
    ensure!(status >= 0, "H5Dread failed");
    Ok(bytes)
}

/// Writes all items.
pub(crate) fn write_bytes(dataset: &Dataset, bytes: &[u8]) -> Result<()> {
    let datatype = dataset.dtype()?;
    ensure!(bytes.len() == dataset.size() * datatype.size(), "{} bytes", bytes.len());
    let (memory, id, datatype) = (bytes.as_ptr().cast(), dataset.id(), datatype.id());
    // SAFETY: as above.
    let status = sync(|| unsafe { H5Dwrite(id, datatype, H5S_ALL, H5S_ALL, H5P_DEFAULT, memory) });
    ensure!(status >= 0, "H5Dwrite failed");
    Ok(())
}
