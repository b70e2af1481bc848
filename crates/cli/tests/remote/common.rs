//! Runs the command.

use std::process::{Command, Output};

pub(crate) fn blosc2(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_blosc2")).args(args).output().unwrap()
}

/// The output of a command that succeeds.
pub(crate) fn bytes(args: &[&str]) -> Vec<u8> {
    let output = blosc2(args);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {errors}");
    output.stdout
}

pub(crate) fn text(args: &[&str]) -> String {
    String::from_utf8_lossy(&bytes(args)).into_owned()
}

/// The error of a command that fails with a status: one line.
pub(crate) fn error(args: &[&str], status: i32) -> String {
    let output = blosc2(args);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(status), "{args:?}: {errors}");
    assert_eq!(errors.lines().count(), 1, "{args:?}: {errors}");
    errors
}
