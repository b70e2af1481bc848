//! What the tests share: Python, which has another libhdf5 and runs in its own process.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The Python with the packages of the tests.
fn python() -> PathBuf {
    let variable = std::env::var_os("BLOSC2_TEST_PYTHON");
    variable
        .expect(
            "set BLOSC2_TEST_PYTHON to a Python with h5py, hdf5plugin, tables, b2h5py and blosc2",
        )
        .into()
}

/// Runs a script of `tests/python` in a folder with arguments and returns its output. Panics if the script fails.
pub(crate) fn run_python(script: &str, folder: &Path, arguments: &[&str]) -> String {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join("python");
    let mut command = Command::new(python());
    command.arg("-B").arg(scripts.join(script)).args(arguments).current_dir(folder);
    let output = command.output().expect("Python does not start");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let status = output.status;
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(status.success(), "{script} failed ({status}):\n{printed}\n{errors}");
    printed
}
