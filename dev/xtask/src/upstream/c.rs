//! The C programs: tests, examples and some benches of C-Blosc2, on the library that `blosc2-sys` builds.
//!
//! The programs, their arguments and their definitions are those of upstream's CMake files. Each run is what CMake calls
//! a test; it has its own process and its own empty folder.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::hazards::{in_parallel, wait};
use crate::python::{CMAKE, Venv};
use crate::{libclang, run};

/// A run that takes longer than this hangs.
const LIMIT: Duration = Duration::from_secs(600);

/// The function through which the library reads its environment, without the filter of `blosc2-sys`. A program that
/// defines it is linked without that of the library, so that no option of the library has to weaken it.
const LET_THROUGH: &str = "#include <stdlib.h>\n\
    char *blosc2_sys_getenv(const char *name) { return getenv(name); }\n";

/// The header that CMake would write, for the codecs of the library.
const CONFIG: &str =
    "#define HAVE_PLUGINS 1\n#define HAVE_ZFP 1\n#define HAVE_ZLIB 1\n#define HAVE_ZSTD 1\n";

/// The programs that fail if the library reads its environment through the filter, with the variables that they set.
const DIFFERENCES: [(&str, &str); 5] = [
    ("tests/test_b2nd_multiwriter_lock", "`BLOSC_LOCKING`"),
    ("tests/test_b2nd_set_slice_lock", "`BLOSC_LOCKING`"),
    (
        "tests/test_compressor",
        "`BLOSC_COMPRESSOR`, `BLOSC_CLEVEL`, `BLOSC_SHUFFLE`, `BLOSC_DELTA`, `BLOSC_TYPESIZE`",
    ),
    ("tests/test_frame_lock", "`BLOSC_LOCKING`"),
    ("tests/test_nthreads", "`BLOSC_NTHREADS`"),
];

/// A source that is not run, with the reason.
type Reason = (&'static str, &'static str);

/// All sources that are not run. The tests of the vector instructions of this processor are run.
const LEFT_OUT: [Reason; 7] = [
    ("tests/test_shuffle_roundtrip_altivec", "for POWER processors"),
    ("tests/test_shuffle_roundtrip_neon", "for Arm processors"),
    ("tests/test_shuffle_roundtrip_avx2", "for x86 processors"),
    ("tests/test_shuffle_roundtrip_sse2", "for x86 processors"),
    ("examples/many_compressors", "calls functions of Blosc 1; not part of upstream's build"),
    ("examples/win-dynamic-linking", "loads a DLL of Windows; not part of upstream's build"),
    ("examples/b2nd/example_print_meta", "needs a file; not part of upstream's build"),
];

/// The folders with programs, each with the prefix of their names.
const GROUPS: [(&str, &str); 13] = [
    ("tests", "test_"),
    ("tests/b2nd", "test_"),
    ("tests/fuzz", ""),
    ("plugins/codecs/ndlz", "test_"),
    ("plugins/codecs/zfp", "test_"),
    ("plugins/filters/bytedelta", "test_"),
    ("plugins/filters/int_trunc", "test_"),
    ("plugins/filters/ndcell", "test_"),
    ("plugins/filters/ndmean", "test_"),
    ("compat", "filegen"),
    ("bench", ""),
    ("examples", ""),
    ("examples/b2nd", "example_"),
];

/// The benches that upstream's build runs as tests.
const BENCHES: [&str; 4] = ["b2bench", "delta_schunk", "trunc_prec_schunk", "zero_runlen"];

/// A program and its runs.
struct Program {
    folder: &'static str,
    /// The path of its source without the suffix, relative to `c-blosc2`.
    name: String,
    source: PathBuf,
    /// The arguments of each run.
    runs: Vec<Vec<String>>,
    /// Whether it changes the environment.
    sets_variables: bool,
}

/// The library that the programs are linked with.
struct Library {
    /// The patched sources.
    sources: PathBuf,
    arguments: Vec<String>,
}

/// What a program did, added up over its runs.
#[derive(Debug, Default, Clone)]
struct Outcome {
    runs: usize,
    cases: usize,
    failed: usize,
    messages: Vec<String>,
}

/// Compiles and runs all programs, and returns the report.
pub(super) fn programs() -> Result<String> {
    ensure!(cfg!(target_os = "linux"), "this part is for Linux only");
    let library = library()?;
    let (programs, left_out) = list(&library)?;
    let folder = run::root().join("target").join("upstream").join("c");
    run::empty(&folder)?;
    fs::write(folder.join("config.h"), CONFIG)?;
    let open = object(&folder, "let-through", LET_THROUGH)?;

    println!("upstream: compiling {} programs", programs.len());
    let built = in_parallel(&programs, |program| {
        let own = folder.join(&program.name);
        fs::create_dir_all(&own)?;
        let object = own.join("program.o");
        compile(&library, program, &folder, &object)?;
        let mut objects = vec![object];
        if program.folder == "tests/fuzz" && !program.name.ends_with("corpus") {
            objects.push(standalone(&library, &own)?);
        }
        let filtered = match program.sets_variables {
            true => Some(link(&library, &objects, &own.join("filtered"))?),
            false => None,
        };
        objects.push(open.clone());
        Ok((link(&library, &objects, &own.join("program"))?, filtered))
    })?;

    println!("upstream: running them");
    let mut jobs = Vec::new();
    for (program, (open, filtered)) in programs.iter().zip(&built) {
        for (number, arguments) in program.runs.iter().enumerate() {
            jobs.push((program, open, false, number, arguments));
            if let Some(filtered) = filtered {
                jobs.push((program, filtered, true, number, arguments));
            }
        }
    }
    let done = in_parallel(&jobs, |(program, path, is_filtered, number, arguments)| {
        let kind = if *is_filtered { "filtered" } else { "open" };
        let own = folder.join(&program.name).join(format!("{kind}-{number}"));
        let outcome = execute(program, path, arguments, &own, &folder)?;
        if outcome.failed == 0 {
            fs::remove_dir_all(&own)?;
        }
        Ok(outcome)
    })?;
    let mut outcomes = [BTreeMap::new(), BTreeMap::new()];
    for ((program, _, is_filtered, ..), outcome) in jobs.iter().zip(done) {
        let sum: &mut Outcome =
            outcomes[usize::from(*is_filtered)].entry(program.name.as_str()).or_default();
        sum.runs += 1;
        sum.cases += outcome.cases;
        sum.failed += outcome.failed;
        sum.messages.extend(outcome.messages);
    }
    let [open, filtered] = outcomes;
    judge(&open, &filtered)?;
    Ok(report(&programs, &open, &filtered, &left_out))
}

/// Fails if a program fails with the variables let through, or if the others are not the known differences.
fn judge(open: &BTreeMap<&str, Outcome>, filtered: &BTreeMap<&str, Outcome>) -> Result<()> {
    let mut bad = Vec::new();
    for (name, outcome) in open.iter().filter(|(_, outcome)| outcome.failed > 0) {
        bad.push(format!(
            "{name}: {} of {} cases: {}",
            outcome.failed,
            outcome.cases,
            outcome.messages.join("; ")
        ));
    }
    for (name, outcome) in filtered {
        let is_known = DIFFERENCES.iter().any(|(known, _)| known == name);
        if is_known != (outcome.failed > 0) {
            let how = if is_known { "passes, and is listed as a difference" } else { "fails" };
            bad.push(format!(
                "{name}, without its variables, {how}: {}",
                outcome.messages.join("; ")
            ));
        }
    }
    if let Some((name, _)) = DIFFERENCES.iter().find(|(name, _)| !filtered.contains_key(name)) {
        bad.push(format!("{name} is listed as a difference, but does not set variables"));
    }
    ensure!(bad.is_empty(), "upstream's programs:\n{}\nlogs: target/upstream/c", bad.join("\n"));
    Ok(())
}

fn report(
    programs: &[Program],
    open: &BTreeMap<&str, Outcome>,
    filtered: &BTreeMap<&str, Outcome>,
    left_out: &[Reason],
) -> String {
    let mut text = String::from(
        "| folder of C-Blosc2 | programs | runs | cases | failures |\n|---|--:|--:|--:|--:|\n",
    );
    let mut total = [0; 4];
    for (folder, _) in GROUPS {
        let all: Vec<&Outcome> = programs
            .iter()
            .filter(|program| program.folder == folder)
            .map(|program| &open[&*program.name])
            .collect();
        let row = [
            all.len(),
            all.iter().map(|outcome| outcome.runs).sum(),
            all.iter().map(|outcome| outcome.cases).sum(),
            all.iter().map(|outcome| outcome.failed).sum::<usize>(),
        ];
        for (sum, value) in total.iter_mut().zip(row) {
            *sum += value;
        }
        let [programs, runs, cases, failed] = row;
        let _ = writeln!(text, "| `{folder}` | {programs} | {runs} | {cases} | {failed} |");
    }
    let [programs, runs, cases, failed] = total;
    let _ = writeln!(text, "| **all** | {programs} | {runs} | {cases} | {failed} |");
    let _ = write!(
        text,
        "\n{} of these programs set environment variables of C-Blosc2. They run a second time with the library that is \
         shipped,\nwhich reads only `BLOSC_TRACE` and `BLOSC_INFO`. There, {} of them fail, which is intended (see \
         `blosc2/SAFETY.md`):\n\n\
         | program | variables that it sets |\n|---|---|\n",
        filtered.len(),
        DIFFERENCES.len(),
    );
    for (name, variables) in DIFFERENCES {
        let _ = writeln!(text, "| `{name}` | {variables} |");
    }
    text += "\nNot run:\n\n";
    for (name, reason) in left_out {
        let _ = writeln!(text, "- `{name}`: {reason}");
    }
    text
}

/// Builds the patched library, with all codecs and with the functions that upstream's tests need.
fn library() -> Result<Library> {
    let venv = Venv::with(CMAKE)?;
    let programs = venv.python.parent().context("the Python of the environment has a folder")?;
    let mut command = run::cargo(["build", "-p", "cblosc2-sys", "--features", "zfp"]);
    command
        .arg("--message-format=json-render-diagnostics")
        .env("BLOSC2_SYS_TESTING", "1")
        .env("PATH", run::prepend("PATH", programs)?);
    libclang::set(&mut command)?;
    let messages = run::read_stdout(&mut command)?;
    let (mut paths, mut names, mut sources) = (Vec::new(), Vec::new(), None);
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    for message in messages.filter(|message| message["reason"] == "build-script-executed") {
        let strings = |key: &str| -> Vec<String> {
            let list = message[key].as_array().into_iter().flatten();
            list.filter_map(|item| item.as_str().map(str::to_owned)).collect()
        };
        for path in strings("linked_paths") {
            paths.push(format!("-L{}", path.trim_start_matches("native=")));
        }
        for name in strings("linked_libs") {
            let name = name.trim_start_matches("static=").to_owned();
            if name == "cblosc2" {
                sources = message["out_dir"].as_str().map(|out| Path::new(out).join("c-blosc2"));
            }
            names.push(format!("-l{name}"));
        }
    }
    let sources = sources.context("cargo built no libcblosc2")?;
    // The codecs follow the library that calls them.
    names.sort_by_key(|name| name != "-lcblosc2");
    let arguments = [paths, names, ["-lpthread", "-ldl", "-lrt", "-lm"].map(str::to_owned).into()];
    Ok(Library { sources, arguments: arguments.concat() })
}

/// The programs, and the sources that are not run.
fn list(library: &Library) -> Result<(Vec<Program>, Vec<Reason>)> {
    let root = run::root().join("c-blosc2");
    let own_kernels: &[&str] = match std::env::consts::ARCH {
        "x86" | "x86_64" => &["avx2", "sse2"],
        "arm" | "aarch64" => &["neon"],
        _ => &[],
    };
    let left_out: Vec<_> = LEFT_OUT
        .into_iter()
        .filter(|(name, _)| !own_kernels.iter().any(|kernels| name.ends_with(kernels)))
        .collect();
    let mut programs = Vec::new();
    for (folder, prefix) in GROUPS {
        let mut names: Vec<String> = fs::read_dir(root.join(folder))
            .with_context(|| format!("c-blosc2/{folder} cannot be read"))?
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter_map(|name| name.strip_suffix(".c").map(str::to_owned))
            .filter(|name| match folder {
                "bench" => BENCHES.contains(&name.as_str()),
                "tests/fuzz" => name != "standalone",
                _ => name.starts_with(prefix),
            })
            .collect();
        names.sort();
        for name in names {
            let path = format!("{folder}/{name}");
            if left_out.iter().any(|(other, _)| *other == path) {
                continue;
            }
            // The build has copied the plugins with their tests, and patched their headers.
            let base = if folder.starts_with("plugins/") { &library.sources } else { &root };
            let source = base.join(format!("{path}.c"));
            let text = String::from_utf8_lossy(&fs::read(&source)?).into_owned();
            programs.push(Program {
                folder,
                runs: runs(&root, &path)?,
                name: path,
                source,
                sets_variables: text.contains("setenv("),
            });
        }
    }
    Ok((programs, left_out))
}

/// The arguments of the runs of a program.
fn runs(root: &Path, name: &str) -> Result<Vec<Vec<String>>> {
    let path = |name: &str| root.join(name).display().to_string();
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let table = root.join(format!("{name}.csv"));
    if table.is_file() {
        let text = fs::read_to_string(&table)?;
        return Ok(text.lines().skip(1).map(|line| words(&line.replace(',', " "))).collect());
    }
    let compat = |suffix: &str| -> Result<Vec<String>> {
        let mut files: Vec<String> = fs::read_dir(root.join("compat"))?
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| name.ends_with(suffix))
            .collect();
        files.sort();
        Ok(files)
    };
    Ok(match name {
        "compat/filegen" => compat(".cdata")?
            .into_iter()
            .map(|file| {
                let operation = match file.split('-').next() {
                    Some("bitshuffle") => "bitunshuffle",
                    Some("shuffle") => "unshuffle",
                    _ => "decompress",
                };
                vec![operation.to_owned(), path(&format!("compat/{file}"))]
            })
            .collect(),
        "compat/filegen-vl" => compat(".b2frame")?
            .into_iter()
            .map(|file| vec!["decompress".to_owned(), path(&format!("compat/{file}"))])
            .collect(),
        "tests/fuzz/fuzz_compress_chunk"
        | "tests/fuzz/fuzz_compress_frame"
        | "tests/fuzz/fuzz_decompress_chunk"
        | "tests/fuzz/fuzz_decompress_frame" => {
            vec![compat(".cdata")?.iter().map(|file| path(&format!("compat/{file}"))).collect()]
        }
        "bench/b2bench" => [
            "blosclz shuffle test 1",
            "lz4 shuffle test 1",
            "blosclz shuffle test",
            "lz4 shuffle test",
            "lz4hc shuffle test",
            "zlib shuffle test",
            "zstd shuffle test",
            "blosclz bitshuffle test 1",
            "lz4 bitshuffle test 1",
            "blosclz bitshuffle test",
            "lz4 bitshuffle test",
            "lz4hc bitshuffle test",
            "zlib bitshuffle test",
            "zstd bitshuffle test",
        ]
        .map(words)
        .into(),
        "examples/compress_file" => vec![vec![path("LICENSE.txt"), "license.b2frame".to_owned()]],
        "examples/decompress_file" => vec![words("license.b2frame license.txt")],
        _ => vec![Vec::new()],
    })
}

fn compiler(library: &Library, folder: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
    let kernels: &[&str] = match std::env::consts::ARCH {
        "x86" | "x86_64" => &["-DSHUFFLE_SSE2_ENABLED", "-DSHUFFLE_AVX2_ENABLED"],
        "arm" | "aarch64" => &["-DSHUFFLE_NEON_ENABLED"],
        _ => &[],
    };
    command
        .args(["-std=gnu99", "-O2", "-w", "-c", "-DBLOSC_TESTING", "-DBLOSC_SHARED_LIBRARY"])
        .args(["-DUSING_CMAKE", "-DCBLOSC2_INTERNAL_SYMBOLS", "-include"])
        .arg(library.sources.join("include/blosc2/cblosc2-symbols.h"))
        .args(kernels);
    for folder in [&library.sources.join("include"), &library.sources.join("blosc"), folder] {
        command.arg("-I").arg(folder);
    }
    command
}

fn compile(library: &Library, program: &Program, all: &Path, object: &Path) -> Result<()> {
    let mut command = compiler(library, all);
    run::read(command.arg(&program.source).arg("-o").arg(object))?;
    Ok(())
}

/// Compiles the `main` function of the fuzzers.
fn standalone(library: &Library, folder: &Path) -> Result<PathBuf> {
    let object = folder.join("standalone.o");
    let source = run::root().join("c-blosc2/tests/fuzz/standalone.c");
    run::read(compiler(library, folder).arg(source).arg("-o").arg(&object))?;
    Ok(object)
}

/// Compiles C code that needs no headers of the library.
fn object(folder: &Path, name: &str, code: &str) -> Result<PathBuf> {
    let source = folder.join(name).with_extension("c");
    fs::write(&source, code)?;
    let object = source.with_extension("o");
    let mut command = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
    run::read(command.args(["-c", "-O2"]).arg(&source).arg("-o").arg(&object))?;
    Ok(object)
}

fn link(library: &Library, objects: &[PathBuf], program: &Path) -> Result<PathBuf> {
    let mut command = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
    run::read(command.args(objects).args(&library.arguments).arg("-o").arg(program))?;
    Ok(program.to_path_buf())
}

/// Runs a program once, in its own folder.
fn execute(
    program: &Program,
    path: &Path,
    arguments: &[String],
    own: &Path,
    all: &Path,
) -> Result<Outcome> {
    run::empty(own)?;
    let plugins = run::root().join("c-blosc2/plugins/test_data");
    if program.folder.starts_with("plugins/") {
        for entry in fs::read_dir(plugins)? {
            let entry = entry?;
            fs::copy(entry.path(), own.join(entry.file_name()))?;
        }
    }
    if program.name == "examples/decompress_file" {
        let arguments = &runs(&run::root().join("c-blosc2"), "examples/compress_file")?[0];
        let first = all.join("examples/compress_file/program");
        run::read(Command::new(first).args(arguments).current_dir(own))?;
    }
    let log = own.join("log.txt");
    let output = File::create(&log)?;
    let mut command = Command::new(path);
    command.args(arguments).current_dir(own).stdin(Stdio::null());
    command.stdout(output.try_clone()?).stderr(output);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("BLOSC_") {
            command.env_remove(name);
        }
    }
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child =
        command.spawn().with_context(|| format!("{} cannot be started", path.display()))?;
    let status = wait(&mut child, LIMIT)?;
    let text = String::from_utf8_lossy(&fs::read(&log)?).into_owned();
    outcome(status, &text).with_context(|| program.name.clone())
}

/// The outcome of a run, from its status and its output. Upstream has two ways to count cases; a program without either
/// is one case. The last count applies: child processes that a test has forked print theirs too.
fn outcome(status: Option<ExitStatus>, text: &str) -> Result<Outcome> {
    let (mut cases, mut failed) = (0, 0);
    for line in text.lines() {
        if let Some(rest) = line.trim().strip_prefix("TEST RESULTS: ") {
            let numbers: Vec<usize> = rest
                .split(|byte: char| !byte.is_ascii_digit())
                .filter_map(|part| part.parse().ok())
                .collect();
            let [total, _, bad] = numbers[..] else { bail!("unknown results: {line}") };
            (cases, failed) = (total, bad);
        } else if let Some((_, number)) = line.split_once("Tests run: ") {
            cases = number
                .trim()
                .parse::<usize>()
                .with_context(|| format!("unknown number: {line}"))?;
        }
    }
    let mut messages = Vec::new();
    match status {
        Some(status) if status.success() => {}
        Some(status) => messages.push(status.to_string()),
        None => messages.push("hangs".to_owned()),
    }
    if !messages.is_empty() || failed > 0 {
        failed = failed.max(1);
        let last = text.lines().rev().find(|line| !line.trim().is_empty());
        messages.extend(last.map(|line| line.trim().to_owned()));
    }
    Ok(Outcome { runs: 1, cases: cases.max(1), failed, messages })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::{Outcome, outcome};

    fn outcome_of(status: &str, text: &str) -> Outcome {
        let status = Command::new("sh").args(["-c", status]).status().expect("a shell");
        outcome(Some(status), text).expect("an outcome")
    }

    #[test]
    #[cfg(unix)]
    fn cases_are_those_that_a_program_counts() {
        let counts = |outcome: Outcome| (outcome.cases, outcome.failed);
        let results = "..\nTEST RESULTS: 12 tests (10 ok, 2 failed)\n";
        assert_eq!(counts(outcome_of("exit 2", results)), (12, 2));
        assert_eq!(counts(outcome_of("exit 0", " ALL TESTS PASSED\tTests run: 5\n")), (5, 0));
        assert_eq!(counts(outcome_of("exit 1", "F (wrong)\n\tTests run: 3\n")), (3, 1));
        let forked = "\tTests run: 2\n..\tTests run: 2\n";
        assert_eq!(counts(outcome_of("exit 0", forked)), (2, 0));
        assert_eq!(counts(outcome_of("exit 0", "")), (1, 0));
        let killed = outcome_of("kill -9 $$", "last line\n");
        assert_eq!(counts(killed.clone()), (1, 1));
        assert!(killed.messages.contains(&"last line".to_owned()));
        assert_eq!(outcome(None, "").expect("an outcome").messages, ["hangs"]);
    }
}
