//! `cargo xtask platforms`: the tests on other processors and on Windows.
//!
//! They run in a root file system of Debian's packages under `target/platforms`: it has the cross compilers, the
//! standard library of each processor, QEMU and Wine. The programs are compiled at full speed; only the tests are
//! emulated. PLATFORMS.md is written from the results.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::run;
use crate::runner::{FEW, REPEATS};
use crate::steps::Steps;
use crate::vendor;

/// A platform that the tests are run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Platform {
    I686,
    Aarch64,
    S390x,
    Windows,
}

/// All platforms, and the machine itself, whose files are compared with those of the others.
const ALL: [Platform; 4] = [Platform::I686, Platform::Aarch64, Platform::S390x, Platform::Windows];
const THIS: &str = "x86_64-unknown-linux-gnu";

impl Platform {
    fn target(self) -> &'static str {
        match self {
            Self::I686 => "i686-unknown-linux-gnu",
            Self::Aarch64 => "aarch64-unknown-linux-gnu",
            Self::S390x => "s390x-unknown-linux-gnu",
            Self::Windows => "x86_64-pc-windows-gnu",
        }
    }

    fn compiler(self) -> &'static str {
        match self {
            Self::I686 => "i686-linux-gnu-gcc",
            Self::Aarch64 => "aarch64-linux-gnu-gcc",
            Self::S390x => "s390x-linux-gnu-gcc",
            Self::Windows => "x86_64-w64-mingw32-gcc",
        }
    }
}

/// The packages of the root file system.
const PACKAGES: &str = "rustc cargo rust-src gcc libc6-dev \
    libstd-rust-dev:amd64 libstd-rust-dev:arm64 libstd-rust-dev:s390x libstd-rust-dev:i386 \
    gcc-aarch64-linux-gnu gcc-s390x-linux-gnu gcc-i686-linux-gnu gcc-mingw-w64-x86-64-win32 \
    libc6-dev-arm64-cross libc6-dev-s390x-cross libc6-dev-i386-cross procps qemu-user wine wine64";

/// The packages whose tests are run. The dependencies of `blosc2-object-store` take too long to compile.
const CHOICE: &str = "--workspace --exclude xtask --exclude xtask-public-api \
    --exclude blosc2-object-store --tests --no-fail-fast";

/// Mounts folders in the root file system, and runs a command there. The arguments are the root, the folders, each with
/// its path there, an empty one, and the command.
/// The namespaces end with it: no mount and no registered emulator remains on the machine.
const ENTER: &str = r#"set -e
root=$1; shift
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount --rbind /sys "$root/sys"
misc=$root/proc/sys/fs/binfmt_misc
mount -t binfmt_misc binfmt_misc "$misc"
# Programs that tests start are emulated too. Each is recognized by its ELF header, with its processor in bytes 18, 19.
zeros='\x00\x00\x00\x00\x00\x00\x00\x00\x00'
mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff'
printf %s ":aarch64:M::\x7fELF\x02\x01\x01$zeros\x02\x00\xb7\x00:$mask\xfe\xff\xff\xff:/usr/bin/qemu-aarch64:P" > "$misc/register"
printf %s ":s390x:M::\x7fELF\x02\x02\x01$zeros\x00\x02\x00\x16:$mask\xff\xfe\xff\xff:/usr/bin/qemu-s390x:P" > "$misc/register"
while [ -n "$1" ]; do
    mkdir -p "$root$2"
    mount --bind "$1" "$root$2"
    shift 2
done
shift
exec chroot "$root" "$@""#;

/// Runs the tests on these platforms, on all if there are none, and exchanges files with them.
pub(crate) fn platforms(only: Option<Platform>) -> Result<()> {
    let chosen = only.map_or(ALL.to_vec(), |only| vec![only]);
    let mut steps = Steps::new("platforms");
    steps.step("sources", || vendor::vendor(false))?;
    let here = Here::new()?;
    steps.step("root file system", || here.prepare())?;
    run::empty(&here.exchange())?;
    steps.step("files of x86-64", || here.exchange_here())?;
    let mut failed = Vec::new();
    for platform in chosen {
        let name = platform.target();
        let passed = steps.step(name, || here.test(platform))?;
        if !passed {
            failed.push(name);
        }
    }
    steps.step("files of the others", || here.exchange_here())?;
    steps.step("PLATFORMS.md", || here.report())?;
    if !failed.is_empty() {
        bail!("tests failed on {}: see target/platforms", failed.join(", "));
    }
    steps.finish();
    Ok(())
}

/// The folders of this command.
struct Here {
    folder: PathBuf,
    sources: PathBuf,
}

impl Here {
    fn new() -> Result<Self> {
        ensure!(cfg!(target_os = "linux"), "the platforms are tested on Linux only");
        let folder = run::root().join("target").join("platforms");
        fs::create_dir_all(&folder)?;
        let sources = std::env::var_os("BLOSC2_SYS_SOURCE_DIR")
            .map_or_else(|| run::root().join("c-blosc2"), PathBuf::from);
        Ok(Self { folder: fs::canonicalize(folder)?, sources })
    }

    fn root(&self) -> PathBuf {
        self.folder.join("root")
    }

    fn config(&self) -> PathBuf {
        self.folder.join("config.toml")
    }

    fn exchange(&self) -> PathBuf {
        self.folder.join("exchange")
    }

    /// Makes the root file system, if there is none with these packages, and copies the dependencies.
    fn prepare(&self) -> Result<()> {
        let marker = self.folder.join("packages.txt");
        if fs::read_to_string(&marker).ok().as_deref() != Some(PACKAGES) {
            run::need("mmdebstrap", "mmdebstrap")?;
            run::empty(&self.root())?;
            let include = PACKAGES.split_whitespace().collect::<Vec<_>>().join(",");
            run::run(
                Command::new("mmdebstrap")
                    .args(["--variant=apt", "--architectures=amd64,arm64,s390x,i386"])
                    // A mirror may keep one state of the suite.
                    .arg("--aptopt=Acquire::Check-Valid-Until \"false\"")
                    .arg("--aptopt=APT::Install-Recommends \"false\"")
                    .args(["--dpkgopt=path-exclude=/usr/share/doc/*", "--include"])
                    .args([include.as_str(), "sid"])
                    .arg(self.root())
                    .arg(mirror()?),
            )
            .context(
                "the root file system cannot be made: this has to be run as root, on Debian",
            )?;
            fs::write(marker, PACKAGES)?;
        }
        let vendored = self.folder.join("vendor");
        // Also the dependencies of the standard library, which is compiled for Windows. Its manifests use unstable
        // features of cargo.
        let library = self.root().join("usr/lib/rustlib/src/rust/library/Cargo.toml");
        let mut vendor = run::cargo(["vendor", "--locked", "--quiet", "--sync"]);
        run::read(vendor.args([&library, &vendored]).env("RUSTC_BOOTSTRAP", "1"))?;
        let mut config = format!(
            "[source.crates-io]\nreplace-with = \"vendored\"\n[source.vendored]\ndirectory = {vendored:?}\n"
        );
        for platform in ALL {
            let (target, compiler) = (platform.target(), platform.compiler());
            writeln!(config, "[target.{target}]\nlinker = {compiler:?}").ok();
            if platform == Platform::Windows {
                config += "runner = \"wine\"\n";
            }
        }
        fs::write(self.config(), config)?;
        Ok(())
    }

    /// Runs `cargo test` in the root file system, without network. Prints its output except the tests that pass, and
    /// returns all of it.
    fn cargo_test(&self, target: &str, choice: &str) -> Result<(bool, Vec<String>)> {
        let root = run::root();
        let exchange = self.exchange();
        let mut command = Command::new("unshare");
        command
            .args(["--user", "--map-root-user", "--mount", "--pid", "--fork", "sh", "-c", ENTER])
            .args(["sh".as_ref(), self.root().as_os_str()])
            .args([&root, &root, &self.folder, &self.folder, &self.sources, &root.join("c-blosc2")])
            .args(["", "env", "-C"])
            .arg(&root)
            .args(["sh", "-c", "exec \"$@\" 2>&1", "sh", "cargo", "--offline", "--config"])
            .arg(self.config())
            .args(["test", "--locked", "--target", target])
            .args(choice.split_whitespace())
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env("HOME", "/root")
            .env("CARGO_TARGET_DIR", self.folder.join("build"))
            .envs(run::FAST_BUILD)
            .env("BLOSC2_TEST_EXCHANGE", &exchange)
            .env("BLOSC2_TEST_PLATFORM", target)
            .env("WINEDEBUG", "-all")
            // Wine cannot create files with other names than those of the locale.
            .env("LC_ALL", "C.UTF-8")
            .env(REPEATS, FEW)
            .stdout(Stdio::piped());
        if target == Platform::Windows.target() {
            // Debian has no standard library for Windows.
            command.env("RUSTC_BOOTSTRAP", "1");
            command.env("CARGO_UNSTABLE_BUILD_STD", "std,panic_abort,test");
        } else {
            // Wine aborts at its start if this variable is set.
            command.env("TMPDIR", "/dev/shm");
        }
        if [Platform::Aarch64, Platform::S390x].map(Platform::target).contains(&target) {
            // An emulated program runs several times faster with optimization.
            command.env("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
        }
        for platform in ALL {
            let variable = format!("CC_{}", platform.target().replace('-', "_"));
            command.env(variable, platform.compiler());
        }
        let mut child = command.spawn().context("`unshare` cannot be started")?;
        let output = child.stdout.take().context("the command has no output")?;
        let mut file = File::create(self.folder.join(format!("{target}.log")))?;
        let mut lines = Vec::new();
        for line in BufReader::new(output).lines() {
            let line = line?;
            writeln!(file, "{line}")?;
            if !line.starts_with("test ") || line.ends_with("FAILED") {
                println!("{line}");
            }
            lines.push(line);
        }
        Ok((child.wait()?.success(), lines))
    }

    /// Writes the files of this machine, if they do not exist, and reads those of all platforms.
    fn exchange_here(&self) -> Result<()> {
        let (passed, _) = self.cargo_test(THIS, "--package blosc2-workspace --test exchange")?;
        ensure!(passed, "the files of another platform are not read equal");
        Ok(())
    }

    /// Runs the tests, including the exchange of files, and saves the results. Returns whether all have passed.
    fn test(&self, platform: Platform) -> Result<bool> {
        let target = platform.target();
        let start = Instant::now();
        let (passed, lines) = self.cargo_test(target, CHOICE)?;
        let programs = results(&lines);
        ensure!(
            !programs.is_empty(),
            "the tests do not compile: see target/platforms/{target}.log"
        );
        let files = compare(&self.exchange().join(THIS), &self.exchange().join(target))?;
        let minutes = start.elapsed().as_secs().div_ceil(60);
        let result = json!({ "programs": programs, "files": files, "minutes": minutes });
        fs::write(self.result(platform), result.to_string())?;
        Ok(passed)
    }

    /// The file with the results of the last run on a platform.
    fn result(&self, platform: Platform) -> PathBuf {
        self.folder.join(format!("{}.json", platform.target()))
    }

    /// Writes the results of the last runs into PLATFORMS.md, between its two marks.
    fn report(&self) -> Result<()> {
        let mut programs: BTreeMap<String, [Option<[u64; 3]>; ALL.len()]> = BTreeMap::new();
        let mut exchange = String::new();
        for (column, platform) in ALL.into_iter().enumerate() {
            let Ok(text) = fs::read_to_string(self.result(platform)) else { continue };
            let result: Value = serde_json::from_str(&text)?;
            for (program, counts) in result["programs"].as_object().into_iter().flatten() {
                let count = |at: usize| counts[at].as_u64().unwrap_or(0);
                let row = programs.entry(program.clone()).or_default();
                row[column] = Some([count(0), count(1), count(2)]);
            }
            let target = platform.target();
            let names = |key: &str| -> Vec<&str> {
                result["files"][key]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(Value::as_str)
                    .collect()
            };
            let other = names("other");
            let list =
                if other.is_empty() { "none".to_owned() } else { shorten(&other).join(", ") };
            writeln!(
                exchange,
                "| `{target}` | {} | {} | {list} |",
                names("same").len(),
                other.len()
            )?;
        }
        let mut table = String::from("| tests of |");
        ALL.iter().try_for_each(|platform| write!(table, " `{}` |", platform.target()))?;
        table += "\n|---|---|---|---|---|\n";
        let mut totals = [[0; 3]; ALL.len()];
        for (program, row) in &programs {
            write!(table, "| {program} |")?;
            for (counts, total) in row.iter().zip(&mut totals) {
                let counts = counts.unwrap_or_default();
                total.iter_mut().zip(counts).for_each(|(total, count)| *total += count);
                write!(table, " {} |", cell(counts))?;
            }
            table += "\n";
        }
        table += "| **all** |";
        totals.iter().try_for_each(|total| write!(table, " {} |", cell(*total)))?;
        let content = format!(
            "{table}\n\n\
             ### Files\n| written on | same bytes as on x86-64 | other bytes | files with other bytes |\n\
             |---|---|---|---|\n{exchange}"
        );
        let path = run::root().join("docs/reports/PLATFORMS.md");
        let old = fs::read_to_string(&path)?;
        let (before, rest) = old.split_once(START).context("PLATFORMS.md has no start mark")?;
        let (_, after) = rest.split_once(END).context("PLATFORMS.md has no end mark")?;
        fs::write(path, format!("{before}{START}\n{content}{END}{after}"))?;
        Ok(())
    }
}

const START: &str = "<!-- results: written by `cargo xtask platforms` -->";
const END: &str = "<!-- end of the results -->";

/// The numbers of tests that passed, that failed, and that are ignored.
fn cell([passed, failed, _]: [u64; 3]) -> String {
    match (passed, failed) {
        (0, 0) => "-".to_owned(),
        (passed, 0) => passed.to_string(),
        (passed, failed) => format!("{passed}, {failed} failed"),
    }
}

/// Replaces the names that differ after their first `-` only by one pattern.
fn shorten(names: &[&str]) -> Vec<String> {
    let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for &name in names {
        groups.entry(name.split_once('-').map_or(name, |(start, _)| start)).or_default().push(name);
    }
    let text = |(start, names): (&str, Vec<&str>)| match names[..] {
        [name] => format!("`{name}`"),
        _ => format!("{} of `{start}-*`", names.len()),
    };
    groups.into_iter().map(text).collect()
}

/// The URI of the archive that the packages of this machine come from.
fn mirror() -> Result<String> {
    let format = ["indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"];
    let listed = run::read(Command::new("apt-get").args(format))?;
    listed.lines().next().map(str::to_owned).context("apt has no archive: run `apt-get update`")
}

/// The numbers of tests that passed, failed and are ignored, for each program, from the output of cargo.
fn results(lines: &[String]) -> BTreeMap<String, [u64; 3]> {
    let mut programs = BTreeMap::new();
    let mut program = String::new();
    for line in lines {
        let line = line.trim_start();
        if let Some(started) = line.strip_prefix("Running ") {
            program = name(started);
        } else if let Some(result) = line.strip_prefix("test result: ") {
            let number = |word: &str| -> u64 {
                let part = result.split("; ").find_map(|part| part.strip_suffix(word));
                part.and_then(|part| part.split(' ').next_back()?.parse().ok()).unwrap_or(0)
            };
            let counts = [number(" passed"), number(" failed"), number(" ignored")];
            if counts != [0; 3] {
                programs.insert(program.clone(), counts);
            }
        }
    }
    programs
}

/// The name of a test program: `tests/arrays/main.rs (.../arrays-0123456789abcdef)`.
fn name(started: &str) -> String {
    let (source, path) = started.split_once(" (").unwrap_or((started, ""));
    let path = Path::new(path.trim_end_matches(')'));
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let stem = stem.rsplit_once('-').map_or(&*stem, |(stem, _)| stem);
    match source.strip_prefix("unittests ") {
        Some("src/main.rs") => format!("the program `{stem}`"),
        Some(_) => format!("`{}`, unit tests", stem.replace('_', "-")),
        None => format!("`{}`", source.trim_end_matches("/main.rs").trim_end_matches(".rs")),
    }
}

/// The names of the files in two folders, by whether their bytes are the same.
fn compare(one: &Path, other: &Path) -> Result<Value> {
    let (mut same, mut different) = (Vec::new(), Vec::new());
    for name in files(one)? {
        let read = |folder: &Path| fs::read(folder.join(&name)).with_context(|| name.clone());
        match read(one)? == read(other)? {
            true => same.push(name),
            false => different.push(name),
        }
    }
    let extra = files(other)?.len().checked_sub(same.len() + different.len());
    ensure!(extra == Some(0), "{} has other files than {}", other.display(), one.display());
    Ok(json!({ "same": same, "other": different }))
}

/// The paths of the files below a folder, relative to it, sorted.
fn files(folder: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).with_context(|| next.display().to_string())? {
            let path = entry?.path();
            match path.is_dir() {
                true => folders.push(path),
                false => found.push(path.strip_prefix(folder)?.to_string_lossy().into_owned()),
            }
        }
    }
    found.sort();
    Ok(found)
}
