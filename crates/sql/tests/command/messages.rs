//! Errors, help, completions, and what terminals display.

use blosc2::NDArray;

use crate::common::Folder;

#[test]
fn errors_name_the_file_and_the_candidates() {
    let folder = Folder::new();
    folder.trips();
    folder.arrays();
    folder.write("damaged.b2z", &folder.read("trips.b2z")[..700]);
    folder.write("text.b2z", "no table, but long enough to look into");
    folder.write("empty.b2nd", "");
    folder.write("other.dat", "other");
    folder.write("order.sql", "");
    std::fs::create_dir(folder.path("none")).unwrap();
    std::fs::create_dir(folder.path("t.b2d")).unwrap();
    NDArray::from_slice(&[1u8], [1]).unwrap().save(folder.path("a.b2z")).unwrap();
    let all = "SELECT * FROM trips";
    for (status, args, expected) in [
        (
            1,
            &["trips.b2z", "SELECT * FROM trip"][..],
            "table 'datafusion.public.trip' not found; the tables are trips",
        ),
        (
            1,
            &["SELECT * FROM trips"],
            "not found; there are no tables: name files before the query",
        ),
        (1, &["trips.b2z", "SELECT kn FROM trips"], "No field named kn. Did you mean 'trips.km'?"),
        (1, &["trips.b2z", "SELEC km FROM trips"], "found: SELEC at Line: 1"),
        (1, &["trips.b2z", "SELECT nosuch(km) FROM trips"], "Invalid function 'nosuch'"),
        (1, &["trips.b2z", "SELECT 1 / 0"], "ivide by zero"),
        (1, &["missing.b2z", all], "cannot open (missing.b2z): there is no such file"),
        (1, &["missing/*.b2z", all], "cannot open (missing/*.b2z): no file was found"),
        (1, &["none", all], "cannot open (none): no file was found"),
        (1, &["damaged.b2z", all], "cannot open (damaged.b2z): read the table"),
        (1, &["text.b2z", all], "cannot open (text.b2z): read the table"),
        (1, &["empty.b2nd", all], "cannot open (empty.b2nd): the file is empty"),
        (
            1,
            &["other.dat", all],
            "there is no file with a known extension: expected `.b2z`, `.b2nd`",
        ),
        (1, &["t.b2d", all], "it is a directory (`.b2d`) without a file `embed.b2e`"),
        (1, &["*.b2d", all], "a pattern of directories (`.b2d`) cannot be read"),
        (1, &["array.b2nd", "--dims", "a,b,c", all], "cannot open (array.b2nd)"),
        (
            2,
            &["trips.b2z", "./trips.b2z", all],
            "both named `trips`: set another name with NAME=./trips.b2z",
        ),
        (2, &["*.b2z", all], "`*.b2z` has no name for a table: set one with NAME=*.b2z"),
        (2, &["trips.b2z"], "expected a query after the files"),
        (2, &["--cluster", "127.0.0.1", "SELECT 1"], "expected HOST:PORT, such as"),
        (
            1,
            &["--cluster", "127.0.0.1:1", "SELECT 1"],
            "cannot connect to the scheduler 127.0.0.1:1: Connection refused",
        ),
        (2, &["SELECT 1", "missing.csv"], "found the file missing.csv"),
        (2, &["trips.b2z", " "], "the query is empty"),
        (2, &["trips.b2z", "--file", "order.sql"], "the query is empty"),
        (1, &["trips.b2z", "--file", "none.sql"], "cannot read the query (none.sql)"),
        (
            2,
            &["SELECT 1", "-o", "o.xlsx"],
            "cannot write `.xlsx` files (o.xlsx): expected `.txt`, `.csv`",
        ),
        (
            2,
            &["SELECT 1", "-o", "s3://bucket/o.csv"],
            "`COPY (SELECT ...) TO '<URL>'` writes to a URL",
        ),
        (1, &["CREATE VIEW v AS SELECT 1", "-o", "o.csv"], "no result"),
        (
            1,
            &["trips.b2z", "SELECT * FROM trips a, trips b", "-o", "o.json"],
            "two columns are named `city`",
        ),
        (
            1,
            &["SELECT DATE '2024-01-01' AS d", "-o", "o.b2z"],
            "`d`: the Arrow type Date32 has no kind of column; CAST",
        ),
        (2, &["SELECT 1", "--memory", "2GB"], "expected a number of bytes"),
        (2, &["SELECT 1", "--rows", "some"], "expected a number or `all`"),
        (2, &["SELECT 1", "--threads", "0"], "--threads"),
        (2, &["SELECT 1", "--format", "xml"], "csv, json"),
        (2, &["SELECT 1", "--memry", "1"], "'--memory'"),
        (1, &["ftp://me:secret@host/a.b2z", all], "cannot open (ftp://...@host/a.b2z): "),
        (
            1,
            &["https://host/a.b2z?token=secret", all],
            "URLs with a query or a fragment cannot be read",
        ),
    ] {
        let line = folder.bad(status, args);
        assert!(line.contains(expected), "{args:?}: {line}");
        assert!(!line.contains("secret"), "{line}");
    }
}

/// Damage anywhere is an error or other rows, and no crash.
#[test]
fn any_broken_byte_is_survived() {
    let folder = Folder::new();
    folder.trips();
    let good = folder.read("trips.b2z");
    for at in (0..good.len()).step_by(good.len() / 60) {
        let mut bytes = good.clone();
        bytes[at] ^= 0xff;
        folder.write("bad.b2z", bytes);
        let output = folder.command(&["bad.b2z", "SELECT * FROM bad"]).output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(matches!(output.status.code(), Some(0 | 1)), "byte {at}: {errors}");
        assert!(errors.lines().count() <= 1 && !errors.contains("panic"), "byte {at}: {errors}");
    }
}

#[test]
fn help_completions_and_the_manual_page() {
    let folder = Folder::new();
    let help = folder.text(&["--help"]);
    assert_eq!(help, folder.text(&["-h"]));
    let columns = help.lines().map(|line| line.chars().count()).max();
    assert!(help.lines().count() <= 56 && columns <= Some(80), "{columns:?}\n{help}");
    let output = folder.command(&[]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("Usage: blosc2-sql"));
    let version = folder.text(&["--version"]);
    assert!(
        version.starts_with("blosc2-sql 0.") && version.contains("\nDataFusion 55."),
        "{version}"
    );
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let text = folder.text(&["--completions", shell]);
        assert!(text.contains("blosc2-sql") && text.contains("memory"), "{shell}");
    }
    assert!(folder.text(&["--man"]).contains(".TH blosc2-sql 1"));
}

/// Runs the command on a new pseudo-terminal, and returns what it displays. Interrupts it after `last`.
#[cfg(unix)]
fn displayed(folder: &Folder, args: &[&str], last: Option<&str>) -> (Option<i32>, String) {
    use std::io::Read;

    use pty_process::Size;
    use pty_process::blocking::{Command, open};

    let (mut terminal, end) = open().unwrap();
    terminal.resize(Size::new(24, 80)).unwrap();
    let program = blosc2_testing::with_default_signals(crate::common::PROGRAM);
    let command = Command::new(program.get_program()).args(program.get_args()).args(args);
    let mut command = command.current_dir(folder.path(""));
    command = command.env_remove("NO_COLOR").env("TERM", "xterm-256color");
    let mut child = command.spawn(end).unwrap();
    let (mut text, mut piece) = (Vec::new(), [0; 4096]);
    // Linux reports the end of a terminal as an error.
    while let Ok(len @ 1..) = terminal.read(&mut piece) {
        text.extend_from_slice(&piece[..len]);
        if last.is_some_and(|last| String::from_utf8_lossy(&text).contains(last)) {
            let mut kill = std::process::Command::new("kill");
            assert!(kill.args(["-INT", &child.id().to_string()]).status().unwrap().success());
        }
    }
    (child.wait().unwrap().code(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
#[cfg(unix)]
fn on_terminals() {
    let folder = Folder::new();
    let (status, text) = displayed(&folder, &["SELECT 1 AS x"], None);
    assert_eq!((status, text.as_str()), (Some(0), "+---+\r\n| x |\r\n+---+\r\n| 1 |\r\n+---+\r\n"));
    let (status, text) = displayed(&folder, &["SELEC"], None);
    assert!(
        status == Some(1) && text.contains("\u{1b}[") && text.contains("blosc2-sql:"),
        "{text:?}"
    );
    let (status, text) = displayed(&folder, &["SELECT 1 AS x", "--format", "parquet"], None);
    assert!(status == Some(2) && text.contains("not for terminals"), "{text:?}");
    // A long query shows its progress.
    let endless =
        "SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE a.value * b.value % 7 = 3";
    let (status, text) = displayed(&folder, &[endless], Some(" rows, "));
    assert!(status == Some(130) && text.contains("interrupted"), "{text:?}");
}
