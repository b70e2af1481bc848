//! The command on URLs.

mod commands;
mod common;
mod faults;
mod real_servers;
#[path = "../../../object-store/tests/all/server.rs"]
#[allow(dead_code, reason = "not all of it is needed here")]
mod server;
#[path = "../../../object-store/tests/all/servers.rs"]
#[allow(dead_code, reason = "not all of it is needed here")]
mod servers;
