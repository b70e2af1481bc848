#![cfg_attr(feature = "hdf5", doc = include_str!("../README.md"))]
#![cfg_attr(
    not(feature = "hdf5"),
    doc = "The Blosc2 filter of HDF5, number 32026, without libhdf5: [`decode`] and [`encode`]."
)]
#![deny(unsafe_code)]

#[cfg(feature = "hdf5")]
#[allow(unsafe_code)]
mod libhdf5;
mod params;
mod payload;

#[cfg(feature = "hdf5")]
pub use libhdf5::register;
pub use params::{FILTER_ID, FilterParams};
pub use payload::{decode, decode_shorter, encode};
