//! Colours and progress bars on a terminal, help texts, completions and manual pages.

#![cfg_attr(windows, expect(unused_imports, reason = "a part of the tests needs Unix"))]

use std::fs;
use std::io::Read;

use blosc2::{CParams, NDArray};

use crate::common::{Folder, PROGRAM};

/// Runs the command on a new pseudo-terminal of 80 columns, and returns what it displays.
#[cfg(unix)]
pub(crate) fn displayed(
    folder: &Folder,
    args: &[&str],
    variables: &[(&str, &str)],
) -> (Option<i32>, String) {
    use pty_process::Size;
    use pty_process::blocking::{Command, open};

    let (mut terminal, end) = open().unwrap();
    terminal.resize(Size::new(24, 80)).unwrap();
    let mut command = Command::new(PROGRAM).args(args).current_dir(folder.path(""));
    command = command.env_remove("NO_COLOR").env_remove("COLORTERM").env("TERM", "xterm-256color");
    for (name, value) in variables {
        command = command.env(name, value);
    }
    let mut child = command.spawn(end).unwrap();
    let mut text = Vec::new();
    let mut piece = [0; 4096];
    // Linux reports the end of a terminal as an error.
    while let Ok(len @ 1..) = terminal.read(&mut piece) {
        text.extend_from_slice(&piece[..len]);
    }
    (child.wait().unwrap().code(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
#[cfg(unix)]
fn colours_are_for_terminals() {
    let folder = Folder::new();
    folder.array("a.b2nd", &[10, 7], &[4, 7], &[2, 3]);
    folder.write("bad.b2nd", &folder.read("a.b2nd")[..300]);
    for args in
        [&["check", "a.b2nd"][..], &["check", "bad.b2nd"], &["info", "a.b2nd"], &["cat", "missing"]]
    {
        let (status, text) = displayed(&folder, args, &[]);
        assert!(text.contains("\u{1b}["), "{args:?}: no colour in {text:?}");
        let (plain_status, plain) = displayed(&folder, args, &[("NO_COLOR", "1")]);
        assert!(!plain.contains('\u{1b}'), "{args:?}: colour in {plain:?}");
        assert_eq!(status, plain_status);
        let output = folder.run(args);
        assert!(!output.stdout.contains(&0x1b) && !output.stderr.contains(&0x1b), "{args:?}");
        assert_eq!(output.status.code(), status);
        // The same text, with the line ends of a terminal.
        let piped = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert_eq!(plain.replace("\r\n", "\n"), piped, "{args:?}");
    }
}

#[test]
#[cfg(unix)]
fn long_work_shows_its_progress_on_a_terminal() {
    let folder = Folder::new();
    let params = CParams::new().level(1).codec(blosc2::Codec::Lz4);
    let builder = NDArray::builder().chunk_shape(&[1 << 22]).cparams(&params);
    let array = builder.target(folder.path("a.b2nd")).arange(0u64, 10 << 20, 1).unwrap();
    array.schunk().save(folder.path("s.b2frame")).unwrap();
    drop(array);
    folder.good(&["export", "a.b2nd", "a.npy"]);
    for args in [
        &["copy", "a.b2nd", "out", "--level", "2"][..],
        &["copy", "a.b2nd", "out", "--chunks", "1000000"],
        &["import", "a.npy", "out", "--codec", "lz4", "--level", "1"],
        &["export", "a.b2nd", "out"],
    ] {
        let (status, text) = displayed(&folder, args, &[]);
        assert_eq!(status, Some(0), "{args:?}: {text}");
        for part in ["/s", " left", "80.00 MiB"] {
            assert!(text.contains(part), "{args:?}: no {part:?} in {text:?}");
        }
        fs::remove_file(folder.path("out")).unwrap();
        // Nothing in a pipe.
        folder.good(args);
        fs::remove_file(folder.path("out")).unwrap();
    }
}

const COMMANDS: [&str; 13] = [
    "info",
    "ls",
    "cat",
    "check",
    "copy",
    "meta",
    "repair",
    "import",
    "export",
    "view",
    "bench",
    "completions",
    "man",
];

#[test]
fn help_fits_a_screen_and_has_examples() {
    let folder = Folder::new();
    let all = String::from_utf8(folder.good(&["--help"])).unwrap();
    for command in COMMANDS {
        assert!(all.lines().any(|line| line.trim_start().starts_with(command)), "{command}: {all}");
    }
    let listed = all.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed: Vec<&str> = listed
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    let helps = listed
        .iter()
        .filter(|name| **name != "help")
        .flat_map(|&name| [vec![name, "--help"], vec![name, "-h"]]);
    for args in helps.chain([vec!["--help"], vec!["-h"]]) {
        let text = String::from_utf8(folder.good(&args)).unwrap();
        let (lines, columns) =
            (text.lines().count(), text.lines().map(|line| line.chars().count()).max());
        assert!(
            lines <= 40 && columns <= Some(80),
            "{args:?}: {lines} lines, {columns:?} columns\n{text}"
        );
        let examples = text.lines().skip_while(|line| *line != "Examples:").skip(1);
        assert_eq!(
            examples
                .filter(|line| line.starts_with("  blosc2 ") || line.contains("| blosc2 "))
                .count(),
            2,
            "{args:?}: {text}"
        );
    }
}

#[test]
fn completions_and_manual_pages_are_generated() {
    let folder = Folder::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let text = String::from_utf8(folder.good(&["completions", shell])).unwrap();
        assert!(text.contains("blosc2") && text.contains("export"), "{shell}");
    }
    folder.bad(2, &["completions", "tcsh"]);
    let page = String::from_utf8(folder.good(&["man"])).unwrap();
    assert!(page.contains(".TH blosc2 1") && page.contains("blosc2\\-export"), "{page}");
    fs::create_dir(folder.path("man1")).unwrap();
    folder.good(&["man", "--dir", "man1"]);
    for name in ["blosc2.1", "blosc2-info.1", "blosc2-copy.1", "blosc2-meta-set.1"] {
        assert!(
            fs::read_to_string(folder.path("man1").join(name)).unwrap().contains(".TH"),
            "{name}"
        );
    }
    let line = folder.bad(1, &["man", "--dir", "nothing"]);
    assert!(line.contains("cannot write manual pages (nothing)"), "{line}");
}

#[test]
fn the_version_names_the_libraries() {
    let text = String::from_utf8(Folder::new().good(&["--version"])).unwrap();
    let version = text.lines().nth(1).unwrap_or_default();
    assert!(text.starts_with("blosc2 "), "{text}");
    assert!(version.starts_with("C-Blosc2 3.3."), "{text}");
    for codec in ["blosclz", "lz4", "lz4hc", "zlib", "zstd"] {
        assert!(text.lines().any(|line| line.trim_start().starts_with(codec)), "{codec}: {text}");
    }
}

#[test]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn the_program_needs_only_the_c_library() {
    // Not `ldd`, which runs programs of this machine's processor only.
    let output = std::process::Command::new("readelf").args(["-d", PROGRAM]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let libraries: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("(NEEDED)"))
        .filter_map(|line| line.split(['[', ']']).nth(1))
        .collect();
    assert!(libraries.contains(&"libc.so.6"), "{text}");
    let known = ["libc.so.6", "libm.so.6", "libgcc_s.so.1"];
    let is_known = |name: &&str| known.contains(name) || name.starts_with("ld");
    assert!(libraries.iter().all(is_known), "{text}");
}
