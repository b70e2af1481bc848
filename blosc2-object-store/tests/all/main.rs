//! Arrays on servers, with counted requests and with faults.

mod counts;
mod data;
mod faults;
mod python;
mod runtimes;
mod server;
mod servers;
mod stores;
mod wrapped;
