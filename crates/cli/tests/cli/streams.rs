//! Pipes, raw items, existing files and Ctrl-C.

#![cfg_attr(windows, expect(dead_code, unused_imports, reason = "a part of the tests needs Unix"))]

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use blosc2::{CParams, NDArray, RawItems};
use blosc2_format::dtype::Dtype;
use blosc2_format::npy::Header;
#[cfg(unix)]
use blosc2_testing::with_default_signals;

use crate::common::{Folder, PROGRAM};

fn good(folder: &Folder, args: &[&str], input: &[u8]) -> Vec<u8> {
    let before = names(folder);
    let output = folder.piped(args, input);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{args:?}: {errors}");
    assert!(!names(folder).contains(&"-".to_owned()), "{args:?} created a file `-`");
    assert!(names(folder).iter().filter(|name| !before.contains(name)).count() < 2);
    output.stdout
}

fn bad(folder: &Folder, args: &[&str], input: &[u8]) -> String {
    let before = folder.files();
    let output = folder.piped(args, input);
    assert_eq!(output.status.code(), Some(1), "{args:?}");
    assert!(output.stdout.is_empty() && folder.files() == before, "{args:?} left data");
    String::from_utf8(output.stderr).unwrap()
}

fn names(folder: &Folder) -> Vec<String> {
    let entries = fs::read_dir(folder.path("")).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// An npy file of this array.
fn npy(dtype: &str, shape: &[u64], fortran_order: bool, bytes: &[u8]) -> Vec<u8> {
    let header =
        Header { dtype: Dtype::parse(dtype).unwrap(), shape: shape.to_vec(), fortran_order };
    [&header.to_bytes().unwrap()[..], bytes].concat()
}

#[test]
fn stdin_is_read_as_a_file() {
    let folder = Folder::new();
    let bytes = folder.array("a.b2nd", &[10, 7], &[4, 7], &[2, 3]);
    let file = folder.read("a.b2nd");
    assert_eq!(good(&folder, &["cat", "-"], &file), bytes);
    assert_eq!(good(&folder, &["cat", "-", "--engine", "rust"], &file), bytes);
    assert_eq!(good(&folder, &["cat", "-", "--slice", "3"], &file), bytes[84..112]);
    let text = good(&folder, &["cat", "-", "--text", "--slice", "9"], &file);
    assert_eq!(text, b"[63 64 65 66 67 68 69]\n");
    for args in [["diff", "-", "a.b2nd"], ["diff", "a.b2nd", "-"], ["diff", "-", "-"]] {
        assert_eq!(good(&folder, &args, &file), b"equal\n");
    }
    let output = folder.piped(&["diff", "-", "a.b2nd", "--json"], b"\x93NUMPY");
    assert!(String::from_utf8(output.stderr).unwrap().contains("(-)"));
    let text = String::from_utf8(good(&folder, &["info", "-"], &file)).unwrap();
    assert!(text.starts_with("path           -\nkind           ndarray\n"), "{text}");
    let text = String::from_utf8(good(&folder, &["check", "-"], &file)).unwrap();
    assert!(text.contains("\n-: contiguous frame, good"), "{text}");
    let text = String::from_utf8(good(&folder, &["meta", "-"], &file)).unwrap();
    assert!(text.contains("b2nd"), "{text}");
    good(&folder, &["copy", "-", "copy.b2nd", "--codec", "lz4"], &file);
    assert_eq!(folder.good(&["cat", "copy.b2nd"]), bytes);
    let shifted = [b"abc", &file[..]].concat();
    assert_eq!(good(&folder, &["cat", "-", "--offset", "3"], &shifted), bytes);

    let line = bad(&folder, &["cat", "-"], &file[..file.len() / 2]);
    assert!(line.contains("(-)"), "{line}");
    let line = bad(&folder, &["cat", "-"], b"");
    assert!(line.contains("(-)"), "{line}");
    let output = folder.piped(&["meta", "-", "set", "a", "1"], &file);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn stores_are_read_from_stdin() {
    let folder = Folder::new();
    let store =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/python_files/4.14.1/tree.b2z");
    let store = fs::read(store).unwrap();
    let text = String::from_utf8(good(&folder, &["ls", "-"], &store)).unwrap();
    assert!(text.starts_with("/array\n/batches\n/group/\n"), "{text}");
    let row = good(&folder, &["cat", "-", "--key", "/array", "--slice", "1"], &store);
    assert!(row.chunks(4).map(|item| i32::from_le_bytes(item.try_into().unwrap())).eq(7..14));
    let text = String::from_utf8(good(&folder, &["check", "-"], &store)).unwrap();
    assert!(
        text.ends_with("\n-: zip store, good: 8 members, 0 errors, 0 warnings, 1 note\n"),
        "{text}"
    );
}

#[test]
fn files_are_written_to_stdout() {
    let folder = Folder::new();
    let bytes = folder.array("a.b2nd", &[10, 7], &[4, 7], &[2, 3]);
    folder.good(&["export", "a.b2nd", "a.npy"]);
    let file = folder.read("a.npy");
    assert_eq!(good(&folder, &["export", "a.b2nd", "-"], b""), file);
    assert_eq!(good(&folder, &["export", "-", "-"], &folder.read("a.b2nd")), file);
    let array = good(&folder, &["import", "-", "-", "--chunks", "4,7", "--blocks", "2,3"], &file);
    assert_eq!(array, folder.read("a.b2nd"));
    let array = good(&folder, &["copy", "a.b2nd", "-", "--chunks", "5,5"], b"");
    assert_eq!(NDArray::open_rw(array).unwrap().read::<RawItems>(..).unwrap().0, bytes);
    let chunk = blosc2::compress(&[1u8; 100], &CParams::new()).unwrap();
    assert_eq!(good(&folder, &["copy", "-", "-"], &chunk), chunk);
}

#[test]
fn arrays_are_imported_from_pipes() {
    let folder = Folder::new();
    for (shape, chunks) in [
        (&[10u64, 7, 6][..], "4,5,6"),
        (&[10, 7, 6], "3,7,6"),
        (&[10, 7, 6], "10,2,1"),
        (&[100], "7"),
        (&[3, 0, 2], "1,1,1"),
        (&[1, 1], "1,1"),
    ] {
        let len: u64 = shape.iter().product();
        let bytes: Vec<u8> = (0..len as u32).flat_map(u32::to_le_bytes).collect();
        let file = npy("<u4", shape, false, &bytes);
        for threads in ["1", "4"] {
            let args =
                ["import", "-", "a.b2nd", "--chunks", chunks, "--threads", threads, "--force"];
            good(&folder, &args, &file);
            assert_eq!(folder.good(&["cat", "a.b2nd"]), bytes, "{shape:?} {chunks}");
        }
        folder.write("a.npy", &file);
        folder.good(&["import", "a.npy", "b.b2nd", "--chunks", chunks, "--force"]);
        assert_eq!(folder.read("a.b2nd"), folder.read("b.b2nd"), "{shape:?} {chunks}");
    }
    // 0-d, and Fortran order.
    good(&folder, &["import", "-", "c.b2nd"], &npy("<u4", &[], false, &[1, 2, 3, 4]));
    assert_eq!(folder.good(&["cat", "c.b2nd"]), [1, 2, 3, 4]);
    assert_eq!(folder.info("c.b2nd")["shape"], serde_json::json!([]));
    good(
        &folder,
        &["import", "-", "d.b2nd", "--chunks", "1,2"],
        &npy("|S1", &[2, 3], true, b"adbecf"),
    );
    assert_eq!(folder.good(&["cat", "d.b2nd"]), b"abcdef");

    for (input, reason) in [
        (npy("<u4", &[10, 3], false, &[0; 119]), "expected 120 bytes of items, found 119"),
        (npy("<u4", &[10, 3], true, &[0; 119]), "expected 120 bytes of items, found 119"),
        (npy("<u4", &[10, 3], false, &[0; 121]), "more bytes follow the 120 bytes"),
        (npy("<u4", &[10, 3], true, &[0; 121]), "more bytes follow the 120 bytes"),
        (npy("<u4", &[0, 3], false, &[0; 1]), "more bytes follow the 0 bytes"),
    ] {
        let line = bad(&folder, &["import", "-", "e.b2nd", "--chunks", "4,2"], &input);
        assert!(line.contains("cannot read (-)") && line.contains(reason), "{line}");
        folder.write("e.npy", &input);
        let line = folder.bad(1, &["import", "e.npy", "e.b2nd"]);
        assert!(line.contains("cannot read (e.npy)") && line.contains(reason), "{line}");
    }
}

#[test]
fn raw_items_are_imported() {
    let folder = Folder::new();
    let bytes: Vec<u8> = (0..600u16).flat_map(u16::to_be_bytes).collect();
    folder.write("data.bin", &bytes);
    for (args, shape) in [
        (&["--dtype", ">u2", "--shape", "20,30"][..], serde_json::json!([20, 30])),
        (&["--dtype", ">u2"], serde_json::json!([600])),
        (&["--dtype", ">u2", "--shape", "600,1"], serde_json::json!([600, 1])),
        (&["--dtype", ">u2", "--shape", "(600,)"], serde_json::json!([600])),
    ] {
        folder.good(&[&["import", "data.bin", "a.b2nd", "--force"], args].concat());
        let info = folder.info("a.b2nd");
        assert_eq!((&info["shape"], &info["dtype"]), (&shape, &serde_json::json!(">u2")));
        assert_eq!(folder.good(&["cat", "a.b2nd"]), bytes);
        good(&folder, &[&["import", "-", "b.b2nd", "--force"], args].concat(), &bytes);
        assert_eq!(folder.read("b.b2nd"), folder.read("a.b2nd"));
    }
    for (args, reason) in [
        (&["--dtype", ">u2", "--shape", "20,31"][..], "expected 1240 bytes of items, found 1200"),
        (&["--dtype", ">u2", "--shape", "20,29"], "more bytes follow the 1160 bytes"),
        (&["--dtype", "S7"], "its 1200 bytes are not a whole number of items of 7 bytes"),
    ] {
        let line = folder.bad(1, &[&["import", "data.bin", "c.b2nd"], args].concat());
        assert!(line.contains(reason), "{line}");
        let line = bad(&folder, &[&["import", "-", "c.b2nd"], args].concat(), &bytes);
        assert!(line.contains(reason), "{line}");
    }
    folder.bad(2, &["import", "data.bin", "c.b2nd", "--shape", "600"]);
    folder.bad(2, &["import", "data.bin", "c.b2nd", "--dtype", "nothing"]);
}

#[test]
fn files_are_replaced_with_force_only() {
    let folder = Folder::new();
    let bytes = folder.array("a.b2nd", &[10, 7], &[4, 7], &[2, 3]);
    folder.schunk("s.b2frame", &CParams::new());
    folder.good(&["export", "a.b2nd", "a.npy"]);
    folder.write("old", b"old");
    for args in [
        &["copy", "a.b2nd", "old"][..],
        &["copy", "a.b2nd", "old", "--codec", "lz4"],
        &["copy", "s.b2frame", "old"],
        &["copy", "s.b2frame", "old", "--codec", "lz4"],
        &["import", "a.npy", "old"],
        &["export", "a.b2nd", "old"],
    ] {
        folder.write("old", b"old");
        let line = folder.bad(1, args);
        assert!(line.contains("it already exists; --force replaces it"), "{line}");
        folder.good(&[args, &["--force"]].concat());
        assert_ne!(folder.read("old"), b"old", "{args:?}");
    }
    assert_eq!(folder.read("old"), folder.read("a.npy"));
    // A file can be recompressed in place. Not every Windows replaces a file that is open.
    if cfg!(unix) {
        folder.good(&["copy", "a.b2nd", "a.b2nd", "--force", "--codec", "lz4", "--chunks", "5,5"]);
        assert_eq!(folder.info("a.b2nd")["codec"], "lz4");
    }
    assert_eq!(folder.good(&["cat", "a.b2nd"]), bytes);
    // A failure keeps the old file.
    folder.write("short.npy", &folder.read("a.npy")[..200]);
    folder.bad(1, &["import", "short.npy", "a.b2nd", "--force"]);
    fs::create_dir(folder.path("dir")).unwrap();
    let line = folder.bad(1, &["copy", "a.b2nd", "dir", "--force"]);
    assert!(line.contains("it is a directory, which --force does not replace"), "{line}");
}

#[test]
#[cfg(unix)]
fn links_devices_and_permissions_are_respected() {
    use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};

    let folder = Folder::new();
    folder.array("a.b2nd", &[10, 7], &[4, 7], &[2, 3]);
    folder.good(&["export", "a.b2nd", "a.npy"]);
    let commands = [
        &["copy", "a.b2nd"][..],
        &["copy", "a.b2nd", "--level", "1"],
        &["import", "a.npy"],
        &["export", "a.b2nd"],
    ];
    symlink("second", folder.path("link")).unwrap();
    symlink("target", folder.path("second")).unwrap();
    symlink("loop", folder.path("loop")).unwrap();
    let made = Command::new("mkfifo").arg(folder.path("pipe")).status().unwrap();
    assert!(made.success());
    for args in commands {
        // Links to a path where nothing exists: the file is created there, the links stay.
        folder.good(&[args, &["link", "--force"]].concat());
        assert!(folder.path("link").is_symlink() && folder.path("second").is_symlink(), "{args:?}");
        assert!(fs::symlink_metadata(folder.path("target")).unwrap().is_file(), "{args:?}");
        fs::remove_file(folder.path("target")).unwrap();
        assert_eq!(folder.run(&[args, &["loop", "--force"]].concat()).status.code(), Some(1));
        assert!(folder.path("loop").is_symlink());

        let output = folder.run(&[args, &["pipe", "--force"]].concat());
        let line = String::from_utf8(output.stderr).unwrap();
        assert!(line.contains("is not a regular file; `-` is stdout"), "{line}");
        assert!(fs::metadata(folder.path("pipe")).unwrap().file_type().is_fifo());

        fs::write(folder.path("private"), b"").unwrap();
        fs::set_permissions(folder.path("private"), fs::Permissions::from_mode(0o600)).unwrap();
        folder.good(&[args, &["private", "--force"]].concat());
        let mode = fs::metadata(folder.path("private")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{args:?}");
    }
}

#[test]
fn an_input_is_not_replaced_by_something_else() {
    let folder = Folder::new();
    folder.array("a.b2nd", &[10, 7], &[4, 7], &[2, 3]);
    folder.good(&["export", "a.b2nd", "a.npy"]);
    for args in [
        &["export", "a.b2nd", "./a.b2nd", "--force"][..],
        &["import", "a.npy", "a.npy", "--force"],
        &["view", "a.b2nd", "-o", "a.b2nd", "--force"],
        &["bench", "a.b2nd", "--plot", "./a.b2nd", "--force"],
        &["check", "a.b2nd", "--svg", "./a.b2nd", "--force"],
    ] {
        let line = folder.bad(1, args);
        assert!(line.contains("it is the input"), "{line}");
    }
}

#[test]
fn directories_are_created_with_force_too() {
    let folder = Folder::new();
    let bytes = folder.array("a.b2nd", &[10, 7], &[4, 7], &[2, 3]);
    for (out, args) in [("x", &[][..]), ("y", &["--level", "1"]), ("z", &["--chunks", "5,5"])] {
        folder.good(&[&["copy", "a.b2nd", out, "--directory", "--force"], args].concat());
        assert_eq!(folder.good(&["cat", out]), bytes);
        let again = [&["copy", "a.b2nd", out, "--directory", "--force"], args].concat();
        assert_eq!(folder.run(&again).status.code(), Some(1));
    }
    folder.bad(2, &["copy", "a.b2nd", "-", "--directory"]);
}

#[test]
#[cfg(unix)]
fn named_pipes_are_read() {
    let folder = Folder::new();
    let bytes = folder.array("a.b2nd", &[10, 7], &[4, 7], &[2, 3]);
    folder.good(&["export", "a.b2nd", "a.npy"]);
    let made = Command::new("mkfifo").arg(folder.path("pipe")).status().unwrap();
    assert!(made.success());
    for (args, input) in [
        (&["cat", "pipe"][..], "a.b2nd"),
        (&["info", "pipe"], "a.b2nd"),
        (&["diff", "pipe", "a.b2nd"], "a.b2nd"),
        (&["import", "pipe", "b.b2nd"], "a.npy"),
    ] {
        let input = folder.read(input);
        let output = thread::scope(|scope| {
            scope.spawn(|| fs::write(folder.path("pipe"), input).unwrap());
            folder.run(args)
        });
        assert!(output.status.success(), "{args:?}: {output:?}");
        if args[0] == "cat" {
            assert_eq!(output.stdout, bytes);
        }
    }
    assert_eq!(folder.good(&["cat", "b.b2nd"]), bytes);
}

#[test]
fn a_file_that_only_contains_a_frame_is_not_repaired() {
    let folder = Folder::new();
    folder.array("a.b2nd", &[10, 7], &[4, 7], &[2, 3]);
    let frame = folder.read("a.b2nd");
    let store =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/python_files/4.14.1/tree.b2z");
    folder.write("tree.b2z", &fs::read(store).unwrap());
    folder.write("log.txt", &[&b"a line of text\n".repeat(100)[..], &frame].concat());
    folder.write("unknown", &[&[7u8; 3000][..], &frame[..frame.len() - 40], &[9; 3000]].concat());
    for (name, reason) in [
        ("tree.b2z", "this is a store"),
        ("log.txt", "it is a text file"),
        ("unknown", "not a Blosc2 file"),
    ] {
        let line = folder.bad(1, &["repair", name]);
        assert!(line.contains(reason), "{line}");
    }
    folder.bad(2, &["repair", "a.b2nd", "--output", "-"]);
}

#[test]
fn the_first_items_need_only_the_first_chunks() {
    let folder = Folder::new();
    let items: Vec<u32> = (0..1 << 20).map(|at: u32| at.wrapping_mul(2_654_435_761)).collect();
    let builder = NDArray::builder().chunk_shape(&[1 << 16]).block_shape(&[1 << 12]);
    let array = builder.target(folder.path("a.b2nd")).from_slice(&items, &[1 << 20]).unwrap();
    let last = array.schunk().offsets().unwrap().last().unwrap().unwrap();
    drop(array);
    let mut bytes = folder.read("a.b2nd");
    let start = bytes.len() as u64 - (bytes.len() as u64 - last);
    bytes[start as usize + 1000..][..1 << 14].fill(0x55);
    folder.write("a.b2nd", &bytes);
    // All items: an error.
    assert_eq!(folder.run(&["cat", "a.b2nd"]).status.code(), Some(1));
    let mut child = start_reading(&folder, &["cat", "a.b2nd"]);
    let mut first = [0; 64];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let expected: Vec<u8> = items[..16].iter().flat_map(|item| item.to_ne_bytes()).collect();
    assert_eq!(first[..], expected);
}

fn start_reading(folder: &Folder, args: &[&str]) -> Child {
    folder.start(args, Stdio::piped())
}

/// Sends a signal and waits for the end of the command.
#[cfg(unix)]
fn stop(mut child: Child, signal: &str) -> Output {
    let id = child.id().to_string();
    assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    let stdin = child.stdin.take();
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    output
}

/// Writes half of an npy file to a command, and waits until the command has read it.
#[cfg(unix)]
fn feed(child: &mut Child) -> ChildStdin {
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&npy("<u4", &[1 << 22], false, &vec![7; 8 << 20])).unwrap();
    stdin
}

#[test]
#[cfg(unix)]
fn ctrl_c_leaves_no_file() {
    for (args, signal) in [
        (&["import", "-", "a.b2nd", "--chunks", "65536"][..], "-INT"),
        (&["import", "-", "a.b2nd", "--chunks", "65536"], "-TERM"),
        (&["cat", "-"], "-INT"),
        (&["import", "-", "-", "--chunks", "65536"], "-HUP"),
    ] {
        // QEMU does not interrupt `splice`, by which std copies from pipes. `cargo xtask platforms` sets the variable.
        if args[0] == "cat" && std::env::var_os("BLOSC2_TEST_PLATFORM").is_some() {
            continue;
        }
        let folder = Folder::new();
        let mut child = folder.spawn(with_default_signals(PROGRAM).args(args), Stdio::null());
        let stdin = feed(&mut child);
        child.stdin = Some(stdin);
        // The write above ends when the pipe has room for the rest of it, so at least 7 MiB are read.
        let output = stop(child, signal);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(130), "{args:?}: {errors}");
        assert!(names(&folder).is_empty(), "{args:?} left {:?}", names(&folder));
    }
}

#[test]
#[cfg(target_os = "linux")]
fn ignored_signals_stay_ignored() {
    let folder = Folder::new();
    let mut command = Command::new("nohup");
    command.arg(PROGRAM).args(["import", "-", "a.b2nd", "--dtype", "u1", "--shape", "10"]);
    let mut child = folder.spawn(&mut command, Stdio::null());
    let mut stdin = child.stdin.take().unwrap();
    // After these bytes are read, the handlers are in place.
    stdin.write_all(&[1; 5]).unwrap();
    let pending = || fs::read_dir(folder.path("")).unwrap().count() > 0;
    let start = Instant::now();
    while !pending() {
        assert!(start.elapsed() < Duration::from_secs(60), "nothing is created");
        thread::sleep(Duration::from_millis(5));
    }
    assert!(
        Command::new("kill").args(["-HUP", &child.id().to_string()]).status().unwrap().success()
    );
    stdin.write_all(&[2; 5]).unwrap();
    drop(stdin);
    assert!(child.wait().unwrap().success());
    assert_eq!(folder.good(&["cat", "a.b2nd"]), [1, 1, 1, 1, 1, 2, 2, 2, 2, 2]);
}

#[test]
fn locked_files_are_read_and_changed() {
    let folder = Folder::new();
    let bytes = folder.array("a.b2nd", &[10, 7], &[4, 7], &[2, 3]);
    assert_eq!(folder.good(&["cat", "a.b2nd", "--locking"]), bytes);
    folder.good(&["meta", "a.b2nd", "--locking", "set", "name", "1"]);
    assert_eq!(folder.good(&["meta", "a.b2nd", "--locking", "get", "name"]), b"1\n");
    assert_eq!(names(&folder).len(), 2, "there is no lock file: {:?}", names(&folder));
}

/// A row of a large array: 1 MiB.
fn row_of(row: u64, bytes: &mut Vec<u8>) {
    if bytes.is_empty() {
        bytes.extend((0..1u64 << 17).flat_map(|at| (at % 1000).to_le_bytes()));
    }
    bytes[..8].copy_from_slice(&row.to_le_bytes());
}

/// The highest memory of a process so far, in bytes.
fn peak(id: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse().ok().map(|kib: u64| kib << 10)
}

/// Waits for a command that has to succeed, and returns its highest memory.
fn watch(child: &mut Child) -> u64 {
    let (mut most, start) = (0, Instant::now());
    loop {
        most = most.max(peak(child.id()).unwrap_or(0));
        if let Some(status) = child.try_wait().unwrap() {
            let mut errors = String::new();
            child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
            assert!(status.success(), "{errors}");
            return most;
        }
        assert!(start.elapsed() < Duration::from_secs(1800), "the command hangs");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
#[ignore = "takes minutes and up to 13 GB of disk: `cargo xtask test --large` runs it"]
#[cfg(target_os = "linux")]
fn arrays_larger_than_memory_go_through() {
    const ROWS: u64 = 6 << 10;
    const LIMIT: u64 = 200 << 20;
    let folder = Folder::new();
    // Rows of 1 MiB in chunks of 4 rows go through memory; chunks of 1024 rows need the temporary file.
    for (name, chunks) in [("a.b2nd", "4,131072"), ("b.b2nd", "1024,128")] {
        let mut child = folder.start(&["import", "-", name, "--chunks", chunks], Stdio::null());
        let mut stdin = child.stdin.take().unwrap();
        let writer = thread::spawn(move || {
            stdin.write_all(&npy("<u8", &[ROWS, 1 << 17], false, &[])).unwrap();
            let mut bytes = Vec::new();
            for row in 0..ROWS {
                row_of(row, &mut bytes);
                stdin.write_all(&bytes).unwrap();
            }
        });
        let most = watch(&mut child);
        writer.join().unwrap();
        println!("import {chunks}: {} MiB", most >> 20);
        assert!(most > 0 && most < LIMIT, "import of {chunks} takes {most} bytes");
    }
    for (args, what) in [
        (&["copy", "a.b2nd", "c.b2nd", "--codec", "lz4"][..], "copy"),
        (&["copy", "a.b2nd", "d.b2nd", "--chunks", "64,8192"], "copy to other chunks"),
    ] {
        let most = watch(&mut folder.start(args, Stdio::null()));
        println!("{what}: {} MiB", most >> 20);
        assert!(most > 0 && most < LIMIT, "{what} takes {most} bytes");
    }
    for name in ["a.b2nd", "b.b2nd", "d.b2nd"] {
        let mut child = folder.start(&["export", name, "-"], Stdio::piped());
        let mut stdout = child.stdout.take().unwrap();
        let reader = thread::spawn(move || {
            let mut header = npy("<u8", &[ROWS, 1 << 17], false, &[]);
            let expected = header.clone();
            stdout.read_exact(&mut header).unwrap();
            assert_eq!(header, expected);
            let (mut found, mut row_bytes) = (vec![0; 1 << 20], Vec::new());
            for row in 0..ROWS {
                stdout.read_exact(&mut found).unwrap();
                row_of(row, &mut row_bytes);
                assert!(found == row_bytes, "row {row}");
            }
            assert_eq!(stdout.read(&mut found).unwrap(), 0);
        });
        let most = watch(&mut child);
        reader.join().unwrap();
        println!("export {name}: {} MiB", most >> 20);
        assert!(most > 0 && most < LIMIT, "export of {name} takes {most} bytes");
    }
}
