//! The filter in libhdf5: files of Python are read, and Python reads the files of this crate.
#![allow(missing_docs)]

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/hdf5.rs"]
mod hdf5;
mod read;
mod write;

use std::thread;

use anyhow::Result;
use blosc2_hdf5::{FILTER_ID, FilterParams};
use hdf5_metno::File;

#[test]
fn threads_register_and_use_the_filter() -> Result<()> {
    let _alone = hdf5::alone();
    let folder = tempfile::tempdir()?;
    let work = &|number: u32| -> Result<()> {
        let path = folder.path().join(format!("{number}.h5"));
        let items: Vec<u32> = (0..10_000).map(|item| item * number).collect();
        for _ in 0..20 {
            blosc2_hdf5::register()?;
            let file = File::create(&path)?;
            let builder = file.new_dataset::<u32>().shape([100, 100]).chunk([30, 30]);
            let values = FilterParams::new(4, &[30, 30])?.cd_values()?;
            let dataset = builder.add_filter(FILTER_ID, &values).create("x")?;
            dataset.write_raw(&items)?;
            assert!(dataset.storage_size() < 40_000);
            file.close()?;
            assert_eq!(File::open(&path)?.dataset("x")?.read_raw::<u32>()?, items);
        }
        Ok(())
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (1..=4).map(|number| scope.spawn(move || work(number))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap())
    })
}
