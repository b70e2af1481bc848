//! The peak memory of a read and of a write, each in a process of its own.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

use crate::library::Library;
use crate::measure::remove;
use crate::set::Set;

/// The argument after which this program measures.
pub const CHILD: &str = "--peak";

/// The peak memory above the memory before, in bytes. `None` where the system does not tell it.
pub fn measure(
    sets: &Path,
    set: &Set,
    library: &dyn Library,
    work: &Path,
    case: &str,
) -> Option<u64> {
    if cfg!(not(target_os = "linux")) {
        return None;
    }
    let path = work.join("peak");
    remove(&path);
    if case == "read" {
        library.write(set, &path);
    }
    let mut command = Command::new(env::current_exe().expect("this program has a path"));
    command.arg(CHILD).arg(sets).arg(&path).args([
        &set.name,
        library.name(),
        &library.setting(),
        case,
    ]);
    let output = command.output().expect("the child runs");
    remove(&path);
    let text = String::from_utf8_lossy(&output.stdout);
    Some(text.trim().parse().unwrap_or_else(|_| {
        panic!("no peak memory of {}: {}", library.name(), String::from_utf8_lossy(&output.stderr))
    }))
}

/// Runs the case and prints its peak memory.
pub fn child(args: &[String]) {
    let [sets, path, name, library, setting, case] = args else { panic!("six arguments") };
    let mut sets = Set::all(Path::new(sets));
    sets.retain(|set| set.name == *name);
    let set = &sets[0];
    let libraries = crate::libraries(set);
    let found = libraries.iter().find(|it| it.name() == library && it.setting() == *setting);
    let (found, path) = (found.expect("a library"), Path::new(path));
    fs::write("/proc/self/clear_refs", "5").expect("the peak memory can be reset");
    let before = status("VmRSS");
    if case == "read" {
        drop(found.open(set, path, 1).all());
    } else {
        found.write(set, path);
    }
    println!("{}", status("VmHWM").saturating_sub(before));
}

/// A value of this process in bytes.
pub fn status(key: &str) -> u64 {
    let text = fs::read_to_string("/proc/self/status").expect("the status can be read");
    let line = text.lines().find(|line| line.starts_with(key)).expect("the status has this value");
    let kib: u64 = line.split_whitespace().nth(1).and_then(|word| word.parse().ok()).expect("KiB");
    kib << 10
}
