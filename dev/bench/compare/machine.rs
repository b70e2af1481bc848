//! The machine and the versions that the report names.

use std::process::Command;
use std::{env, fs};

use serde_json::{Value, json};

/// The facts in machine.json, before the measurements.
pub(crate) fn facts() -> Value {
    let git = |args: &[&str]| output(Command::new("git").args(args));
    json!({
        "commit": git(&["rev-parse", "HEAD"]),
        "has_uncommitted_changes": !git(&["status", "--porcelain", "--untracked-files=no"]).is_empty(),
        "date": output(Command::new("date").args(["-u", "+%Y-%m-%d %H:%M UTC"])),
        "cpu": cpu("model name"),
        "cores": crate::cores(),
        "caches": caches(),
        "memory_bytes": memory("MemTotal"),
        "system": output(Command::new("uname").args(["-srm"])),
        "transparent_huge_pages": chosen(&read("/sys/kernel/mm/transparent_hugepage/enabled")),
        "load": read("/proc/loadavg").split_whitespace().next(),
        "rustc": output(Command::new("rustc").arg("--version")),
        "python": python(),
    })
}

/// The memory in bytes that programs can use, or the largest number if it is unknown.
pub(crate) fn available_memory() -> u64 {
    memory("MemAvailable").unwrap_or(u64::MAX)
}

fn memory(key: &str) -> Option<u64> {
    let text = read("/proc/meminfo");
    let line = text.lines().find(|line| line.starts_with(key))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib << 10)
}

fn cpu(key: &str) -> Option<String> {
    let text = read("/proc/cpuinfo");
    let line = text.lines().find(|line| line.starts_with(key))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// The caches of the first core, with their sizes.
fn caches() -> Vec<String> {
    let folder = |index: usize| format!("/sys/devices/system/cpu/cpu0/cache/index{index}");
    let fact = |index, name: &str| read(&format!("{}/{name}", folder(index))).trim().to_owned();
    let exists = |index: &usize| fs::exists(folder(*index)).unwrap_or(false);
    let cache = |index| {
        format!("L{} {} {}", fact(index, "level"), fact(index, "type"), fact(index, "size"))
    };
    (0..).take_while(exists).map(cache).collect()
}

/// The word in brackets.
fn chosen(text: &str) -> Option<&str> {
    text.split_once('[')?.1.split_once(']').map(|(word, _)| word)
}

/// The versions of Python and its packages.
fn python() -> Option<String> {
    let code = "import sys, numpy, blosc2; print('Python', sys.version.split()[0] + ', NumPy', numpy.__version__ + ', \
                python-blosc2', blosc2.__version__, 'with C-Blosc2', blosc2.VERSION_STRING)";
    let python = env::var_os("BLOSC2_TEST_PYTHON")?;
    Some(output(Command::new(python).args(["-I", "-c", code])))
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn output(command: &mut Command) -> String {
    let output = command.output();
    output.map_or(String::new(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
