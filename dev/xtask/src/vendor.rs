//! `cargo xtask vendor`: fills `c-blosc2/` with the pinned sources of the C library.
//!
//! The folder is a git submodule. If its host cannot be reached, the same tree is taken from the source distribution of
//! a Python package that bundles it. In both cases the git tree ids of its parts are compared with those of upstream's
//! tag. The folder is never left incomplete.

use std::env;
use std::fs::{self, File};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use flate2::read::GzDecoder;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::{python, run};

/// The folder, from the root of the workspace.
const FOLDER: &str = "c-blosc2";
/// Upstream's version, and the commit of its tag.
const VERSION: &str = "3.3.2";
const COMMIT: &str = "d1905e9d7157e0f5317ca069c80dd5bacc0d9657";
/// The parts that are compiled or read here, with their git tree ids at that commit.
const TREES: [(&str, &str); 5] = [
    ("blosc", "a5f361fefb445a8963a66b9bdd6f0599b7155305"),
    ("include", "91d119511230aeb5f711511fdf866491281d9cb4"),
    ("plugins", "c74ffa2bdce2038aed31c1b10d6086b7f700ad77"),
    ("compat", "b6ec93c40d91945894958c6516435e763f6de3a3"),
    ("tests", "ffc62308e4c033ec627bd9e4787096c26012d395"),
];

/// The Python package that bundles the same tree.
const PACKAGE: &str = "hdf5plugin";
const PACKAGE_VERSION: &str = "7.1.0";
const PACKAGE_SHA256: &str = "dc4aa9576bf5770d773be9309a060ccf2f0ce2f0031f2b369f566d2662ec2fb3";
/// The path of the tree in the package.
const PACKAGE_FOLDER: &str = "hdf5plugin-7.1.0/lib/c-blosc2";

/// The time limit of git before the Python package is used.
const GIT_PATIENCE: Duration = Duration::from_secs(20);

/// The content of a folder, compared with the pinned sources.
enum State {
    Good,
    Empty,
    /// These parts are missing or different.
    Differs(Vec<&'static str>),
}

/// Ensures that `c-blosc2/` has the pinned sources. With `force`, fills it again.
pub(crate) fn vendor(force: bool) -> Result<()> {
    let root = run::root();
    let folder = root.join(FOLDER);
    let state = inspect(&folder)?;
    if matches!(state, State::Good) && !force {
        println!("vendor: {FOLDER} {VERSION} is in place");
        return Ok(());
    }
    if folder.join(".git").exists() {
        return submodule_checkout(&state);
    }
    match state {
        State::Differs(parts) if !force => bail!(
            "{FOLDER} is not C-Blosc2 {VERSION} (different: {}): move your changes away, then \
             `cargo xtask vendor --force` replaces the folder",
            parts.join(", ")
        ),
        State::Empty => fill(&root),
        State::Good | State::Differs(_) => replace(&root),
    }?;
    println!("vendor: {FOLDER} {VERSION} is in place, and verified");
    Ok(())
}

/// A submodule that a user checked out may contain changes, so it is never modified.
fn submodule_checkout(state: &State) -> Result<()> {
    let parts = match state {
        State::Good => {
            println!("vendor: {FOLDER} {VERSION} is in place (a git checkout, left as it is)");
            return Ok(());
        }
        State::Empty => "the checkout is empty".to_owned(),
        State::Differs(parts) => format!("different: {}", parts.join(", ")),
    };
    bail!(
        "{FOLDER} is a git checkout but not C-Blosc2 {VERSION} ({parts}), and is not touched: look \
         at `git -C {FOLDER} status`, then `git submodule update --init --force {FOLDER}`"
    )
}

/// Moves the old folder aside and fills a new one. If that fails, moves the old one back.
fn replace(root: &Path) -> Result<()> {
    let folder = root.join(FOLDER);
    let aside = temporary(root)?;
    let old = aside.path().join("old");
    fs::rename(&folder, &old).with_context(|| format!("{FOLDER} cannot be moved aside"))?;
    let filled = fill(root);
    if filled.is_err() {
        // After a failure, `fill` leaves an empty folder or none.
        let _ = fs::remove_dir(&folder);
        fs::rename(&old, &folder).with_context(|| {
            let kept = aside.keep().join("old");
            format!("the former {FOLDER} is now {}, move it back", kept.display())
        })?;
    }
    filled
}

/// Fills an empty or absent folder: with git if possible, otherwise from the Python package.
fn fill(root: &Path) -> Result<()> {
    if submodule(root)? {
        return Ok(());
    }
    let archive = source_archive()?;
    let staged = temporary(root)?;
    let fresh = staged.path().join(FOLDER);
    extract(&archive, PACKAGE_FOLDER, &fresh)
        .with_context(|| format!("{} cannot be read", archive.display()))?;
    match inspect(&fresh)? {
        State::Good => {}
        State::Empty => bail!("{} holds no {PACKAGE_FOLDER}", archive.display()),
        State::Differs(parts) => bail!(
            "{} does not hold C-Blosc2 {VERSION} (different: {}): report this, the pins in \
             dev/xtask/src/vendor.rs are wrong",
            archive.display(),
            parts.join(", ")
        ),
    }
    let folder = root.join(FOLDER);
    // A fresh clone has the empty folder. If another run has filled it in the meantime, this fails,
    // and so does the rename.
    let _ = fs::remove_dir(&folder);
    if let Err(error) = fs::rename(&fresh, &folder)
        && !matches!(inspect(&folder)?, State::Good)
    {
        return Err(error).with_context(|| format!("{FOLDER} cannot be put in place"));
    }
    Ok(())
}

/// A temporary folder next to `c-blosc2`, on the same file system.
fn temporary(root: &Path) -> Result<TempDir> {
    tempfile::Builder::new()
        .prefix(".c-blosc2-")
        .tempdir_in(root)
        .with_context(|| format!("no folder can be made in {}", root.display()))
}

// --- Is it the right tree? ---------------------------------------------------------------------

/// Compares a folder with the pinned sources. Git itself computes the ids, in a throw-away
/// repository, so that it does not matter where the files come from.
fn inspect(folder: &Path) -> Result<State> {
    let is_empty = match fs::read_dir(folder) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => true,
        Err(error) => {
            return Err(error).with_context(|| format!("{} cannot be read", folder.display()));
        }
    };
    if is_empty {
        return Ok(State::Empty);
    }
    let scratch = tempfile::tempdir().context("no temporary folder can be made")?;
    let git = |args: &[&str]| -> Result<String> {
        let mut command = Command::new("git");
        // Neither the environment of a hook nor the configuration of a user may change the ids.
        for (key, _) in env::vars_os() {
            if key.to_string_lossy().starts_with("GIT_") {
                command.env_remove(key);
            }
        }
        let nothing = scratch.path().join("nothing");
        command
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", &nothing)
            .env("GIT_DIR", scratch.path().join("git"))
            .arg("-c")
            .arg(format!("core.attributesFile={}", nothing.display()))
            // Line ends are those of upstream's .gitattributes.
            .args(["-c", "core.autocrlf=false", "-c", "core.safecrlf=false"])
            .args(["-c", if cfg!(windows) { "core.fileMode=false" } else { "core.fileMode=true" }])
            .args(["-c", "core.looseCompression=0"])
            .args(args)
            .current_dir(folder);
        run::read(&mut command).context("the sources cannot be verified, which needs git")
    };
    git(&["init", "--quiet", "--bare", "--template="])?;
    let parts = TREES.iter().map(|(name, _)| *name).filter(|name| folder.join(name).is_dir());
    let mut add = vec!["--work-tree=.", "add", "--force", "--"];
    add.extend(parts);
    let found = if add.len() > 4 {
        git(&add)?;
        git(&["ls-tree", git(&["write-tree"])?.trim()])?
    } else {
        String::new()
    };
    // One line per folder: mode, `tree`, id, tab, name.
    let is_there = |name: &str, id: &str| {
        found.lines().any(|line| line == format!("040000 tree {id}\t{name}"))
    };
    let wrong: Vec<_> =
        TREES.iter().filter(|(name, id)| !is_there(name, id)).map(|(name, _)| *name).collect();
    Ok(if wrong.is_empty() { State::Good } else { State::Differs(wrong) })
}

// --- By git ------------------------------------------------------------------------------------

/// Git in the workspace, without the environment variables of a hook.
fn git(root: &Path, args: &[&str]) -> Command {
    let mut command = Command::new("git");
    for key in [
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_PREFIX",
        "GIT_COMMON_DIR",
        "GIT_OBJECT_DIRECTORY",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    ] {
        command.env_remove(key);
    }
    command
        .args(args)
        .current_dir(root)
        .stdin(Stdio::null())
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_HTTP_LOW_SPEED_LIMIT", "1000")
        .env("GIT_HTTP_LOW_SPEED_TIME", "10");
    command
}

/// The output of a git command, or `None` if it fails.
fn ask(root: &Path, args: &[&str]) -> Option<String> {
    let output = git(root, args).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
}

/// Tries the submodule and returns whether the folder is filled. On failure, leaves no files, since git refuses a
/// folder that is not empty.
fn submodule(root: &Path) -> Result<bool> {
    let Some(link) = ask(root, &["ls-files", "--stage", "--", FOLDER]) else {
        println!("vendor: not a git checkout with the submodule {FOLDER}");
        return Ok(false);
    };
    // Mode, id, stage, tab, path.
    if !link.starts_with("160000 ") {
        bail!("{FOLDER} is not a submodule here: take its files out of git's index");
    }
    if !link.starts_with(&format!("160000 {COMMIT} ")) {
        bail!("git and dev/xtask/src/vendor.rs pin different commits of {FOLDER}: make them agree");
    }
    let folder = root.join(FOLDER);
    let section = format!("submodule.{FOLDER}");
    let had_section = ask(root, &["config", "--get-regexp", &format!("^{section}\\.")]).is_some();
    let store = ask(root, &["rev-parse", "--git-path", &format!("modules/{FOLDER}")])
        .map(|path| root.join(path));
    let had_store = store.as_ref().is_some_and(|path| path.exists());

    println!("vendor: trying git submodule update");
    let trouble = match try_update(root)? {
        Some(trouble) => trouble,
        None => match inspect(&folder)? {
            State::Good => return Ok(true),
            State::Empty => "it skipped the folder".to_owned(),
            State::Differs(parts) => bail!(
                "git filled {FOLDER}, but not with C-Blosc2 {VERSION} (different: {}): report this",
                parts.join(", ")
            ),
        },
    };
    println!("vendor: git cannot get it ({trouble})");
    if folder.exists() {
        fs::remove_dir_all(&folder)
            .and_then(|()| fs::create_dir(&folder))
            .with_context(|| format!("{FOLDER} cannot be emptied"))?;
    }
    if let Some(store) = store.filter(|path| !had_store && path.exists()) {
        fs::remove_dir_all(&store)
            .with_context(|| format!("{} cannot be removed", store.display()))?;
    }
    if !had_section {
        let _ = git(root, &["config", "--remove-section", &section]).output();
    }
    Ok(false)
}

/// Runs `git submodule update` with a short time limit. Returns the reason of a failure.
fn try_update(root: &Path) -> Result<Option<String>> {
    // A file, not a pipe: a helper of git that outlives it would keep the pipe open.
    let log = tempfile::NamedTempFile::new().context("no temporary file can be made")?;
    let mut command = git(root, &["submodule", "update", "--init", "--depth", "1", "--", FOLDER]);
    command.stdout(Stdio::null()).stderr(log.reopen()?);
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = command.spawn().context("git cannot be started")?;
    let Some(status) = wait(&mut child, GIT_PATIENCE)? else {
        kill(&mut child);
        return Ok(Some(format!("not done within {} s", GIT_PATIENCE.as_secs())));
    };
    if status.success() {
        return Ok(None);
    }
    let said = fs::read_to_string(log.path()).unwrap_or_default();
    let reason = said.lines().find(|line| line.starts_with("fatal:")).unwrap_or("it failed");
    Ok(Some(reason.trim_start_matches("fatal:").trim().to_owned()))
}

/// Waits for a child, at most for `patience`.
fn wait(child: &mut Child, patience: Duration) -> Result<Option<ExitStatus>> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().context("git cannot be waited for")? {
            return Ok(Some(status));
        }
        if start.elapsed() > patience {
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// Ends a child and the helpers that it started.
fn kill(child: &mut Child) {
    let id = child.id();
    let mut command = if cfg!(windows) {
        let mut command = Command::new("taskkill");
        command.args(["/T", "/F", "/PID", &id.to_string()]);
        command
    } else {
        let mut command = Command::new("kill");
        command.args(["-KILL", "--", &format!("-{id}")]);
        command
    };
    let _ = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    let _ = child.kill();
    let _ = child.wait();
}

// --- From the Python package -------------------------------------------------------------------

/// The compiler features that the setup of the package tests, twice, even if pip only reads its metadata. Setting them
/// in advance skips these tests, which halves the time of the download.
const PROBES: [&str; 10] =
    ["OPENMP", "NATIVE", "BMI2", "SSE2", "SSSE3", "AVX2", "AVX512", "CPP11", "CPP14", "CPP20"];

/// The verified source distribution of the package that bundles the sources.
fn source_archive() -> Result<PathBuf> {
    let probes = PROBES.map(|feature| (format!("HDF5PLUGIN_{feature}"), "False"));
    source_distribution(PACKAGE, PACKAGE_VERSION, PACKAGE_SHA256, &probes).with_context(|| {
        format!(
            "{FOLDER} can be got neither by git nor by pip: check the network, or put the source \
             distribution into {}, or run `git submodule update --init {FOLDER}` where that works",
            cache_folder().display()
        )
    })
}

/// The verified source distribution of a Python package: from the cache, or else by pip with these environment variables.
pub(crate) fn source_distribution(
    package: &str,
    version: &str,
    hash: &str,
    variables: &[(String, &str)],
) -> Result<PathBuf> {
    let file = format!("{package}-{version}.tar.gz");
    let cache = cache_folder();
    let cached = cache.join(&file);
    if cached.is_file() && sha256(&cached)? == hash {
        println!("vendor: taking the sources from {}", cached.display());
        return Ok(cached);
    }
    let python = python::interpreter()?;
    fs::create_dir_all(&cache)
        .with_context(|| format!("the cache {} cannot be made", cache.display()))?;
    let download = tempfile::tempdir_in(&cache).context("the cache cannot be written")?;
    println!("vendor: pip download {package} {version} (about 20 seconds)");
    run::read(
        Command::new(python)
            .args(["-m", "pip", "download", "--no-deps", "--disable-pip-version-check"])
            .args(["--no-binary", package, &format!("{package}=={version}"), "-d"])
            .arg(download.path())
            .envs(variables.iter().map(|(name, value)| (name, value))),
    )?;
    let fresh = download.path().join(&file);
    let got = sha256(&fresh)?;
    if got != hash {
        bail!("pip brought another {file} (sha256 {got}, expected {hash}): not used");
    }
    fs::rename(&fresh, &cached)
        .with_context(|| format!("{} cannot be written", cached.display()))?;
    Ok(cached)
}

/// Where downloads stay, outside the tree, so that they outlive a clean clone.
fn cache_folder() -> PathBuf {
    let from = |key: &str| env::var_os(key).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = if cfg!(windows) { from("LOCALAPPDATA") } else { from("XDG_CACHE_HOME") };
    base.or_else(|| from("HOME").map(|home| home.join(".cache")))
        .unwrap_or_else(env::temp_dir)
        .join("blosc2-rs")
}

fn sha256(path: &Path) -> Result<String> {
    let context = || format!("{} cannot be read", path.display());
    let mut hash = Sha256::new();
    io::copy(&mut File::open(path).with_context(context)?, &mut hash).with_context(context)?;
    Ok(format!("{:x}", hash.finalize()))
}

/// Unpacks only this folder of an archive.
pub(crate) fn extract(archive: &Path, folder: &str, to: &Path) -> Result<()> {
    let mut archive = tar::Archive::new(GzDecoder::new(File::open(archive)?));
    // If a time stamp were in the future, cargo would compile everything each time.
    archive.set_preserve_mtime(false);
    for entry in archive.entries()? {
        let mut entry = entry?;
        let path = entry.path()?.into_owned();
        let Ok(inner) = path.strip_prefix(folder) else {
            // The folder is contiguous in the archive, and most other files follow it.
            if to.exists() {
                break;
            }
            continue;
        };
        if !inner.components().all(|part| matches!(part, Component::Normal(_))) {
            bail!("it holds the strange path {}", path.display());
        }
        let target = to.join(inner);
        let kind = entry.header().entry_type();
        if kind.is_dir() {
            fs::create_dir_all(&target)?;
        } else if kind.is_file() {
            fs::create_dir_all(target.parent().unwrap_or(to))?;
            entry.unpack(&target)?;
        } else {
            bail!("{} is neither a file nor a folder", path.display());
        }
    }
    Ok(())
}
