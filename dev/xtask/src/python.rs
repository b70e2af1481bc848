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
/// What builds the library of the codec ZFP.
pub(crate) const CMAKE: &str = "cmake==4.4.4";

/// What `cargo xtask bench` needs too: HDF5 with the Blosc2 filter, the library that makes the plots, and the cmake that
/// builds a crate of `dev/peers/bench`.
pub(crate) const BENCH: [&str; 4] = [H5PY, HDF5PLUGIN, "matplotlib==3.11.2", CMAKE];

/// What `cargo xtask bench real` needs: the other libraries, and what decodes photographs and sound.
pub(crate) const REAL: [&str; 10] = [
    BLOSC2,
    H5PY,
    HDF5PLUGIN,
    BENCH[2],
    ZARR[0],
    ARROW[0],
    "pylance==14.0.2",
    "vortex-data==0.93.0",
    "pillow==13.0.0",
    "soundfile==0.14.0",
];

/// What the tests of `blosc2-object-store` need too: an S3 server, and clients for it and for HTTP.
pub(crate) const OBJECT_STORE: [&str; 4] =
    ["fsspec==2026.9.0", "aiohttp==3.14.5", "s3fs==2026.9.0", "moto[server]==5.2.5"];

/// What the tests of the feature `arrow` of `blosc2-store` need too.
pub(crate) const ARROW: [&str; 1] = ["pyarrow==26.0.1"];
/// For the integration with DataFusion, whose results are compared with those of DuckDB, and for the S3 server of its
/// cluster.
pub(crate) const DATAFUSION: [&str; 4] =
    [ARROW[0], "duckdb==2.0.1", "xarray-blosc2==1.7.1", OBJECT_STORE[3]];

/// What the tests of `blosc2-zarrs` need too.
pub(crate) const ZARR: [&str; 3] = ["zarr==3.1.6", "numcodecs==0.16.6", "imagecodecs==2026.3.6"];

/// What the tests of `blosc2-hdf5` need too.
pub(crate) const HDF5: [&str; 4] = [H5PY, HDF5PLUGIN, "tables==3.11.1", "b2h5py==0.5.1"];

/// What the test suite of python-blosc2 needs too, in addition to [`OBJECT_STORE`].
pub(crate) const UPSTREAM: [&str; 10] = [
    H5PY,
    HDF5PLUGIN,
    HDF5[2],
    ZARR[0],
    "pytest==9.2.0",
    "pytest-asyncio==1.5.0",
    "pytest-xdist==3.8.0",
    "psutil==7.2.2",
    "pandas==3.1.1",
    ARROW[0],
];

const H5PY: &str = "h5py==3.16.0";
const HDF5PLUGIN: &str = "hdf5plugin==7.1.0";

/// All requirements that an environment may contain.
fn known() -> impl Iterator<Item = &'static str> {
    [BLOSC2, LIBCLANG]
        .into_iter()
        .chain(BENCH)
        .chain(REAL)
        .chain(OBJECT_STORE)
        .chain(DATAFUSION)
        .chain(ZARR)
        .chain(HDF5)
        .chain(UPSTREAM)
}

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
        Self::with_all(&[requirement])
    }

    /// Ensures that the environment exists and that the requirements are installed in it.
    pub(crate) fn with_all(requirements: &[&str]) -> Result<Self> {
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
            && installed.iter().all(|line| known().any(|requirement| requirement == *line))
            && runs(&python);
        if !is_current {
            create(&folder)?;
            installed.clear();
        }
        let (found, missing): (Vec<&str>, Vec<&str>) =
            requirements.iter().partition(|requirement| installed.contains(requirement));
        if !found.is_empty() {
            println!("python: {} is in place", found.join(" "));
        }
        if !missing.is_empty() {
            let names = missing.join(" ");
            println!("python: pip install {names}");
            let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
            run::read(Command::new(&python).args(pip).args(&missing)).with_context(|| {
                format!("{names} cannot be installed: check that pip reaches its index")
            })?;
            installed.extend(missing);
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
