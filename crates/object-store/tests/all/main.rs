//! Arrays on servers, with counted requests and with faults, and in object stores in memory and in folders.

#[cfg(feature = "http")]
mod counts;
#[cfg(feature = "http")]
mod data;
#[cfg(feature = "http")]
mod disk;
#[cfg(feature = "http")]
mod faults;
mod fuzz;
// With an S3 server.
#[cfg(feature = "aws")]
mod python;
#[cfg(feature = "http")]
mod runtimes;
#[cfg(feature = "http")]
mod server;
#[cfg(feature = "aws")]
mod servers;
mod stores;
#[cfg(feature = "http")]
mod web;
mod wrapped;
