//! The Python that the tests compare with: a virtual environment under `target/`.
//!
//! It has pinned packages only: blosc2, whose wheel includes a C-Blosc2 library, libclang for the bindings, and the
//! packages of the comparison.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::run;

/// Python blosc2, and with it numpy and the wheel's libblosc2.
pub(crate) const BLOSC2: &str = "blosc2==4.14.1";
/// The library with which bindgen reads C headers.
pub(crate) const LIBCLANG: &str = "libclang==18.1.1";

/// What `cargo xtask bench` needs too: HDF5 with the Blosc2 filter, the library that makes the plots, and the cmake that
/// builds a crate of `peers/bench`.
pub(crate) const BENCH: [&str; 4] =
    ["h5py==3.16.0", "hdf5plugin==7.1.0", "matplotlib==3.11.2", "cmake==4.4.4"];

/// The file in the environment that lists the installed requirements, one per line.
const MARKER: &str = "installed.txt";

/// The virtual environment, with the requested requirement.
#[derive(Debug)]
pub(crate) struct Venv {
    /// Its Python.
    pub(crate) python: PathBuf,
    /// The folder of its packages.
    packages: PathBuf,
}

/// A Python 3 of this machine.
pub(crate) fn interpreter() -> Result<&'static str> {
    // Windows has a `python3` that only opens the store: `has` checks that it runs.
    ["python3", "python", "py"]
        .into_iter()
        .find(|name| run::has(name))
        .context("Python is missing: install python3 with pip and venv, and run again")
}

impl Venv {
    /// Ensures that the environment exists and that the requirement is installed in it.
    pub(crate) fn with(requirement: &str) -> Result<Self> {
        let folder = run::root().join("target").join("python-venv");
        let python = if cfg!(windows) {
            folder.join("Scripts").join("python.exe")
        } else {
            folder.join("bin").join("python")
        };
        let marker = folder.join(MARKER);
        let listed = fs::read_to_string(&marker).unwrap_or_default();
        let mut installed: Vec<&str> = listed.lines().collect();
        let is_current = !installed.is_empty()
            && installed
                .iter()
                .all(|line| [BLOSC2, LIBCLANG].contains(line) || BENCH.contains(line))
            && runs(&python);
        if !is_current {
            create(&folder)?;
            installed.clear();
        }
        if installed.contains(&requirement) {
            println!("python: {requirement} is in place");
        } else {
            println!("python: pip install {requirement}");
            let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
            run::read(Command::new(&python).args(pip).arg(requirement)).with_context(|| {
                format!("{requirement} cannot be installed: check that pip reaches its index")
            })?;
            installed.push(requirement);
            fs::write(&marker, installed.join("\n") + "\n")
                .with_context(|| format!("{} cannot be written", marker.display()))?;
        }
        let where_packages = "import sysconfig; print(sysconfig.get_path('platlib'))";
        let packages = run::read(Command::new(&python).args(["-c", where_packages]))?;
        Ok(Self { python, packages: packages.trim().into() })
    }

    /// The folder with the libblosc2 of the wheel.
    pub(crate) fn lib(&self) -> Result<PathBuf> {
        existing(self.packages.join("blosc2").join("lib"))
    }

    /// The folder with `libclang`.
    pub(crate) fn libclang(&self) -> Result<PathBuf> {
        existing(self.packages.join("clang").join("native"))
    }

    /// The folder with the wheel's `blosc2.pc`. Its paths are relative to it, so it can be moved.
    pub(crate) fn pkg_config(&self) -> Result<PathBuf> {
        existing(self.lib()?.join("pkgconfig"))
    }
}

fn existing(folder: PathBuf) -> Result<PathBuf> {
    if !folder.is_dir() {
        bail!("{} is missing: remove target/python-venv and run again", folder.display());
    }
    Ok(folder)
}

fn runs(python: &Path) -> bool {
    Command::new(python)
        .args(["-m", "pip", "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

fn create(folder: &Path) -> Result<()> {
    println!("python: making {}", folder.display());
    if folder.exists() {
        fs::remove_dir_all(folder)
            .with_context(|| format!("{} cannot be removed", folder.display()))?;
    }
    let python = interpreter()?;
    let make = || run::read(Command::new(python).args(["-m", "venv"]).arg(folder));
    // Debian has the module in a separate package.
    make()
        .or_else(|error| if run::apt_install("python3-venv") { make() } else { Err(error) })
        .context(
            "no virtual environment can be made: install Python's venv module, and run again",
        )?;
    Ok(())
}
